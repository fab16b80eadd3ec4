/*
 * Run-time attributes that decide shapes: x[i:i+n] is one signature while the shape stays, costs no memory
 * once it is warm, and each call, its backward and the backward of that keep the position of their time.
 */
#include "context.h"

#include <string.h>

#include "autograd/autograd.h"

enum { ROWS = 1024, COLUMNS = 3, WINDOW = 4, POSITIONS = 1000 };

/* x[r][c] = r + c / 4. */
static tni_array *table(tni_context *c)
{
    static float values[ROWS * COLUMNS];

    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i / COLUMNS) + 0.25f * (float)(i % COLUMNS);
    return test_array(c, 2, (int64_t[]){ROWS, COLUMNS}, values);
}

static void window_values(tni_array *y, int64_t from)
{
    float expected[WINDOW * COLUMNS];

    for (int i = 0; i < WINDOW * COLUMNS; i++)
        expected[i] = (float)(from + i / COLUMNS) + 0.25f * (float)(i % COLUMNS);
    test_values(y, expected, WINDOW * COLUMNS, 0);
}

/* Against `expected` of the size of the table. */
static void whole_values(tni_array *a, const float *expected)
{
    static float got[ROWS * COLUMNS];

    assert_ok(tni_array_read(a, got, sizeof got));
    assert_memory_equal(got, expected, sizeof got);
}

static tni_site *slice_site(tni_context *c)
{
    tni_site *site = NULL;

    assert_ok(tni_site_create(c, "slice", 2, (const char *[]){"begin", "end"},
                              (const char *[]){"(0,)", "(4,)"}, &site));
    return site;
}

static void tuple_set(tni_site *site, uint32_t attr, int64_t item)
{
    const int64_t words[] = {1, item}; /* as tn_tuple */

    assert_ok(tni_site_set(site, attr, (tn_value)(uintptr_t)words));
}

static void window_set(tni_site *site, int64_t from)
{
    tuple_set(site, 0, from);
    tuple_set(site, 1, from + WINDOW);
}

static tni_exec_stats stats_of(tni_context *c)
{
    tni_exec_stats s;

    tni_exec_stats_get(c, &s);
    return s;
}

static uint64_t allocations(tni_context *c)
{
    tni_mem_stats s;

    assert_ok(tni_engine_wait_all(c->engine));
    tni_mem_stats_get(&s);
    return s.alloc_count;
}

/* ---- one signature, no memory ------------------------------------------------------------------------ */

static void positions(void **state)
{
    enum { WARM_UP = 100 };
    tni_context *c = test_context(NULL);
    tni_array *x = table(c), *out = test_array(c, 2, (int64_t[]){WINDOW, COLUMNS}, NULL), *y = NULL;
    tni_site *site = slice_site(c);
    tni_exec_stats first;
    uint64_t before = 0;

    (void)state;
    assert_ok(tni_invoke(site, 1, &x, 1, &y));
    window_values(y, 0);
    tni_array_release(y);
    first = stats_of(c);
    for (int64_t i = 0; i < POSITIONS; i++) {
        if (i == WARM_UP)
            before = allocations(c);
        window_set(site, i);
        assert_ok(tni_invoke(site, 1, &x, 1, &out));
        if (i % 97 == 0)
            window_values(out, i);
        else if (i % 16 == 0)
            assert_ok(tni_array_wait(out));
    }
    assert_int_equal(allocations(c), before);
    window_values(out, POSITIONS - 1);
    assert_int_equal(stats_of(c).misses, first.misses);
    assert_int_equal(stats_of(c).signatures, first.signatures);
    assert_int_equal(stats_of(c).programs, first.programs);
    tuple_set(site, 1, POSITIONS); /* a row less: another shape, another signature */
    y = NULL;
    tuple_set(site, 0, POSITIONS - 3);
    assert_ok(tni_invoke(site, 1, &x, 1, &y));
    assert_int_equal(y->shape[0], 3);
    assert_int_equal(stats_of(c).signatures, first.signatures + 1);
    tni_array_release(y);
    tni_array_release(out);
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

/* An array of another shape for the output, bounds that do not fit: nothing is called. */
static void refused(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = table(c), *out = test_array(c, 2, (int64_t[]){WINDOW, COLUMNS}, NULL);
    const int64_t two[] = {2, 0, 0}, step[] = {1, 0};
    tni_site *site = slice_site(c);

    (void)state;
    window_set(site, 7);
    assert_ok(tni_invoke(site, 1, &x, 1, &out));
    tuple_set(site, 1, 10);
    assert_int_equal(tni_invoke(site, 1, &x, 1, &out), TN_E_SHAPE);
    assert_ok(tni_site_set(site, 0, (tn_value)(uintptr_t)two));
    assert_int_equal(tni_invoke(site, 1, &x, 1, &out), TN_E_ATTR);
    window_set(site, ROWS + 1);
    assert_int_equal(tni_invoke(site, 1, &x, 1, &out), TN_E_SHAPE);
    window_set(site, 7);
    assert_ok(tni_site_set(site, 2, (tn_value)(uintptr_t)step));
    assert_int_equal(tni_invoke(site, 1, &x, 1, &out), TN_E_ATTR);
    assert_ok(tni_site_set(site, 2, 0)); /* None */
    assert_ok(tni_invoke(site, 1, &x, 1, &out));
    window_values(out, 7);
    tni_array_release(out);
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

/* Growing tuples find room in the end, whatever lengths were there before. */
static void growing(void **state)
{
    tni_context *c = test_context(NULL);
    tni_site *site = slice_site(c);
    int64_t words[1 + 64] = {0};
    uint64_t before;

    (void)state;
    for (words[0] = 0; words[0] <= 64; words[0]++)
        for (int k = 0; k < 3; k++)
            assert_ok(tni_site_set(site, 2, (tn_value)(uintptr_t)words));
    before = allocations(c);
    for (int64_t k = 0; k < 200; k++) {
        words[0] = k % 64;
        assert_ok(tni_site_set(site, 2, k % 7 ? (tn_value)(uintptr_t)words : 0));
    }
    assert_int_equal(allocations(c), before);
    tni_site_release(site);
    test_context_close(c);
}

/* ---- the values of their time ------------------------------------------------------------------------ */

static tn_status gate_run(void *payload, tni_run *run)
{
    (void)run;
    while (!atomic_load(*(atomic_uint **)payload))
        tni_sleep_ns(50000);
    return TN_OK;
}

/* Behind it the worker that runs kernels comes to nothing. */
static void gate_push(tni_context *c, atomic_uint *open)
{
    tni_task task = {.run = gate_run, .payload = &open, .payload_bytes = sizeof open, .name = "gate"};

    assert_ok(tni_default_device(c, &task.device));
    assert_ok(tni_engine_push(c->engine, &task));
}

static const char *const queued[] = {"engine.type=threaded", "engine.inline_ns=0", NULL};

static void calls_in_a_queue(void **state)
{
    enum { CALLS = 20 };
    tni_context *c = test_context(queued);
    tni_array *x = table(c), *y[CALLS] = {NULL};
    tni_site *site = slice_site(c);
    atomic_uint open = 0;

    (void)state;
    gate_push(c, &open);
    for (int64_t i = 0; i < CALLS; i++) {
        window_set(site, 31 * i);
        assert_ok(tni_invoke(site, 1, &x, 1, &y[i]));
    }
    window_set(site, 0);
    tni_site_release(site);
    atomic_store(&open, 1u);
    for (int64_t i = 0; i < CALLS; i++) {
        window_values(y[i], 31 * i);
        tni_array_release(y[i]);
    }
    tni_array_release(x);
    test_context_close(c);
}

/* d of sum over both windows, the second times 3: written where the windows lay when they were called. */
static void gradient_check(tni_array *x, int64_t first, int64_t second)
{
    static float expected[ROWS * COLUMNS];

    memset(expected, 0, sizeof expected);
    for (int64_t i = 0; i < WINDOW * COLUMNS; i++) {
        expected[first * COLUMNS + i] += 1;
        expected[second * COLUMNS + i] += 3;
    }
    whole_values(tni_grad_get(x), expected);
}

static tni_array *two_windows(tni_context *c, tni_site *site, tni_array *x, int64_t first, int64_t second)
{
    tni_array *y[2] = {NULL, NULL}, *scaled, *sum;

    test_record(true, true);
    window_set(site, first);
    assert_ok(tni_invoke(site, 1, &x, 1, &y[0]));
    window_set(site, second);
    assert_ok(tni_invoke(site, 1, &x, 1, &y[1]));
    scaled = test_op(c, "_mul_scalar", 1, &y[1], "scalar=3", NULL);
    sum = test_op(c, "elemwise_add", 2, (tni_array *[]){y[0], scaled}, NULL);
    test_record(false, false);
    tni_array_release(y[0]);
    tni_array_release(y[1]);
    tni_array_release(scaled);
    return sum;
}

static void backward_of_its_call(void **state)
{
    static const int64_t at[][2] = {{0, 0}, {3, 900}, {500, 501}, {1020, 4}};
    tni_context *c = test_context(NULL);
    tni_array *x = table(c);
    tni_site *site = slice_site(c);
    uint64_t programs = 0;

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    for (int i = 0; i < 4; i++) {
        tni_array *y = two_windows(c, site, x, at[i][0], at[i][1]);

        window_set(site, 77); /* the backward does not ask the site */
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        gradient_check(x, at[i][0], at[i][1]);
        tni_array_release(y);
        if (i == 0)
            programs = stats_of(c).programs;
    }
    assert_int_equal(stats_of(c).programs, programs);
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

/* The tape and the site are gone when the backward comes to run, and others took their memory. */
static void backward_in_a_queue(void **state)
{
    tni_context *c = test_context(queued);
    tni_array *x = table(c);
    tni_site *site = slice_site(c);

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    for (int64_t i = 0; i < 8; i++) {
        tni_array *y = two_windows(c, site, x, 5 * i, 900 - i), *other = NULL;
        atomic_uint open = 0;

        gate_push(c, &open);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        tni_array_release(y);
        for (int64_t k = 0; k < 8; k++)
            window_set(site, 100 + k);
        assert_ok(tni_invoke(site, 1, &x, 1, &other));
        atomic_store(&open, 1u);
        gradient_check(x, 5 * i, 900 - i);
        window_values(other, 107);
        tni_array_release(other);
    }
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

/* d/dx of sum(dy · w) with dy = d/dx of sum(x[i:i+n]²) = 2 x there: twice the weights, in the window. */
static void second_gradient(void **state)
{
    tni_context *c = test_context(NULL);
    const tni_backward_options again = {.create = true};
    tni_array *x = table(c);
    tni_site *site = slice_site(c);

    (void)state;
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    for (int64_t i = 0; i < 3; i++) {
        static float expected[ROWS * COLUMNS];
        const int64_t at = 11 + 300 * i;
        tni_array *y = NULL, *square, *dx = NULL;

        test_record(true, true);
        window_set(site, at);
        assert_ok(tni_invoke(site, 1, &x, 1, &y));
        square = test_op(c, "square", 1, &y, NULL);
        window_set(site, 0);
        assert_ok(tni_grad(c, 1, &square, NULL, 1, &x, &again, &dx));
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &dx, NULL, NULL));
        memset(expected, 0, sizeof expected);
        for (int64_t k = 0; k < WINDOW * COLUMNS; k++)
            expected[at * COLUMNS + k] = 2;
        whole_values(tni_grad_get(x), expected);
        tni_array_release(dx);
        tni_array_release(square);
        tni_array_release(y);
    }
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

/* ---- threads ----------------------------------------------------------------------------------------- */

typedef struct walker {
    tni_context *c;
    tni_array *x;
    tni_site *site; /* of slice_axis, whose end all share: -1 */
    int64_t first;
    bool good;
} walker;

/* Sets the begin of the shared site, which others set too: each call sees one of the values, whole. */
static void walk(void *arg)
{
    walker *w = arg;

    w->good = true;
    for (int64_t i = 0; i < 300 && w->good; i++) {
        tni_array *y = NULL;
        float value[COLUMNS];

        w->good = !tni_site_set(w->site, 1, (tn_value)(w->first + i)) &&
                  !tni_invoke(w->site, 1, &w->x, 1, &y) && !tni_array_wait(y);
        if (w->good) {
            const int64_t rows = y->shape[0];
            tni_array *last = NULL;

            w->good = rows > 0 && rows < ROWS && !tni_array_at(y, 0, &last) &&
                      !tni_array_read(last, value, sizeof value) && value[0] == (float)(ROWS - 1 - rows);
            tni_array_release(last);
        }
        tni_array_release(y);
    }
}

static void threads_on_one_site(void **state)
{
    enum { THREADS = 4 };
    tni_context *c = test_context(NULL);
    tni_array *x = table(c);
    tni_site *site = NULL;
    tni_thread *threads[THREADS];
    walker all[THREADS];

    (void)state;
    assert_ok(tni_site_create(c, "slice_axis", 3, (const char *[]){"axis", "begin", "end"},
                              (const char *[]){"0", "0", "-1"}, &site));
    for (int i = 0; i < THREADS; i++) {
        all[i] = (walker){c, x, site, 200 * i, false};
        assert_ok(tni_thread_create("walker", walk, &all[i], &threads[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        tni_thread_join(threads[i]);
        assert_true(all[i].good);
    }
    tni_array_release(x);
    tni_site_release(site);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions),
        cmocka_unit_test(refused),
        cmocka_unit_test(growing),
        cmocka_unit_test(calls_in_a_queue),
        cmocka_unit_test(backward_of_its_call),
        cmocka_unit_test(backward_in_a_queue),
        cmocka_unit_test(second_gradient),
        cmocka_unit_test(threads_on_one_site),
    };

    return cmocka_run_group_tests_name("exec.runtime", tests, NULL, NULL);
}

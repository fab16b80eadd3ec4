/* One net served from several threads at once; one site used from several threads; frames apart, results
 * equal. What a worker runs has the seed of the call, however late it comes to it. */
#include "context.h"

#include <math.h>
#include <string.h>

enum { THREADS = 8, CALLS = 200, WIDTH = 16 };

typedef struct served {
    tni_context *c;
    tni_cached_op *op;
    tni_array *weight, *bias;
    tni_site *site;
    uint32_t index;
    tn_status status;
    char error[512];
} served;

static tni_symbol *operator_on(tni_context *c, const char *op, const char *attr, const char *text,
                               tni_symbol *in)
{
    tni_symbol *atom = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, op, attr ? 1 : 0, &attr, &text, op, &atom));
    assert_ok(tni_symbol_compose(atom, op, 1, NULL, &in, &done));
    tni_symbol_release(atom);
    tni_symbol_release(in);
    return done;
}

static tni_cached_op *net(tni_context *c)
{
    tni_symbol *s = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_symbol_variable(c->ops, "data", &s));
    s = operator_on(c, "FullyConnected", "num_hidden", "16", s);
    s = operator_on(c, "tanh", NULL, NULL, s);
    s = operator_on(c, "square", NULL, NULL, s);
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    tni_symbol_release(s);
    return op;
}

/* One call; its input depends on thread and turn, and so does what comes out. */
static tn_status one_call(served *s, uint32_t turn)
{
    const int64_t shape[2] = {1 + (int64_t)(s->index % 3), WIDTH};
    float in[3 * WIDTH], out[3 * WIDTH];
    tni_array *x = NULL, *y = NULL, *z = NULL;
    tni_device *d;
    tn_status st;

    for (int64_t i = 0; i < shape[0] * WIDTH; i++)
        in[i] = (float)(s->index * 31 + turn % 7) / 100.0f;
    if ((st = tni_default_device(s->c, &d)) ||
        (st = tni_array_create(s->c->space, d, TN_F32, 2, shape, "x", &x)) ||
        (st = tni_array_write(x, in, tni_array_bytes(x))) ||
        (st = tni_cached_op_call(s->op, 3, (tni_array *[]){x, s->weight, s->bias}, 1, &y)) ||
        (st = tni_invoke(s->site, 1, &y, 1, &z)) || (st = tni_array_read(z, out, tni_array_bytes(z))))
        goto cleanup;
    for (int64_t i = 0; i < shape[0] * WIDTH; i++) {
        const float h = tanhf(in[0] * 0.5f + 0.25f), want = h * h * 3.0f;

        if (fabsf(out[i] - want) > 1e-5f) {
            st = tni_error(TN_E_INTERNAL, "thread %u turn %u element %lld: %g, not %g", s->index, turn,
                           (long long)i, (double)out[i], (double)want);
            break;
        }
    }

cleanup:
    tni_array_release(x);
    tni_array_release(y);
    tni_array_release(z);
    return st;
}

static void serve(void *arg)
{
    served *s = arg;

    for (uint32_t turn = 0; turn < CALLS && !s->status; turn++)
        s->status = one_call(s, turn);
    if (s->status)
        snprintf(s->error, sizeof s->error, "%s", tni_error_message());
}

static void eight_threads(void **state)
{
    tni_context *c = test_context(NULL);
    float weight[WIDTH * WIDTH], bias[WIDTH];
    served all[THREADS];
    tni_thread *threads[THREADS];
    tni_cached_op *op = net(c);
    tni_array *w, *b;
    tni_site *site = NULL;

    (void)state;
    for (int i = 0; i < WIDTH * WIDTH; i++)
        weight[i] = 0.5f / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        bias[i] = 0.25f;
    w = test_array(c, 2, (int64_t[]){WIDTH, WIDTH}, weight);
    b = test_vector(c, WIDTH, bias);
    assert_ok(tni_site_create(c, "_mul_scalar", 1, (const char *[]){"scalar"}, (const char *[]){"3"}, &site));
    for (uint32_t i = 0; i < THREADS; i++) {
        all[i] = (served){.c = c, .op = op, .weight = w, .bias = b, .site = site, .index = i};
        assert_ok(tni_thread_create("serve", serve, &all[i], &threads[i]));
    }
    for (uint32_t i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    for (uint32_t i = 0; i < THREADS; i++)
        if (all[i].status) {
            print_error("%s\n", all[i].error);
            fail();
        }
    tni_site_release(site);
    tni_array_release(w);
    tni_array_release(b);
    tni_cached_op_release(op);
    test_context_close(c);
}

/* ---- run-time attributes of one site, each set by a thread of its own ---- */

enum { SETS = 2000 };

typedef struct setter {
    tni_site *site;
    uint32_t attr;
    double sign;
    tn_status status;
} setter;

static void set_often(void *arg)
{
    setter *s = arg;
    for (int i = 1; i <= SETS && !s->status; i++)
        s->status = tni_site_set(s->site, s->attr, tn_value_of_float(s->sign * i));
}

static void two_set_one_site(void **state)
{
    const float wide[] = {-1e6f, 0.0f, 1e6f};
    tni_context *c = test_context(NULL);
    tni_site *site = NULL;
    tni_array *x = NULL, *y = NULL;
    tni_thread *threads[2];
    setter all[2];
    tni_device *d;
    float got[3];

    (void)state;
    assert_ok(
        tni_site_create(c, "clip", 2, (const char *[]){"a_min", "a_max"}, (const char *[]){"0", "0"}, &site));
    all[0] = (setter){.site = site, .attr = 0, .sign = -1.0};
    all[1] = (setter){.site = site, .attr = 1, .sign = 1.0};
    for (int i = 0; i < 2; i++)
        assert_ok(tni_thread_create("setter", set_often, &all[i], &threads[i]));
    for (int i = 0; i < 2; i++) {
        tni_thread_join(threads[i]);
        assert_ok(all[i].status);
    }
    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_array_create(c->space, d, TN_F32, 1, (int64_t[]){3}, "x", &x));
    assert_ok(tni_array_write(x, wide, sizeof wide));
    assert_ok(tni_invoke(site, 1, &x, 1, &y));
    assert_ok(tni_array_read(y, got, sizeof got));
    assert_true(got[0] == -SETS && got[1] == 0 && got[2] == SETS);
    tni_array_release(x);
    tni_array_release(y);
    tni_site_release(site);
    test_context_close(c);
}

/* ---- a seed that is set while calls are queued ---- */

static tn_status gate_run(void *payload, tni_run *run)
{
    (void)run;
    while (!atomic_load(*(atomic_uint **)payload))
        tni_sleep_ns(50000);
    return TN_OK;
}

/* Behind it the worker that runs kernels comes to nothing. The naive engine has no worker. */
static void gate_push(tni_context *c, atomic_uint *open)
{
    tni_task task = {.run = gate_run, .payload = &open, .payload_bytes = sizeof open, .name = "gate"};

    assert_ok(tni_default_device(c, &task.device));
    if (!tni_engine_is_naive(c->engine))
        assert_ok(tni_engine_push(c->engine, &task));
}

/* Dropout over ones, as a net or as an operator, under seed 5; seed 6 comes before a worker comes to it. */
static void dropped(tni_context *c, tni_cached_op *op, tni_array *x, bool late, float out[64])
{
    atomic_uint open = 0;
    tni_array *y = NULL;

    assert_ok(tni_random_seed(c, 5, NULL));
    if (late)
        gate_push(c, &open);
    tni_scope_get()->training = true;
    if (op)
        assert_ok(tni_cached_op_call(op, 1, &x, 1, &y));
    else
        y = test_op(c, "Dropout", 1, &x, NULL);
    tni_scope_get()->training = false;
    if (late)
        assert_ok(tni_random_seed(c, 6, NULL));
    atomic_store(&open, 1);
    assert_ok(tni_array_read(y, out, 64 * sizeof *out));
    assert_ok(tni_engine_wait_all(c->engine));
    tni_array_release(y);
}

static void seed_of_the_call(void **state)
{
    tni_context *c = test_context(NULL);
    tni_array *x = test_vector(c, 64, NULL);
    tni_symbol *s = NULL;
    tni_cached_op *op = NULL;

    (void)state;
    assert_ok(tni_array_fill(x, 1));
    assert_ok(tni_symbol_variable(c->ops, "data", &s));
    s = operator_on(c, "Dropout", NULL, NULL, s);
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        float want[64], got[64];
        int zeros = 0;

        dropped(c, hybrid ? op : NULL, x, false, want);
        dropped(c, hybrid ? op : NULL, x, true, got);
        assert_memory_equal(got, want, sizeof want);
        for (int i = 0; i < 64; i++)
            zeros += want[i] == 0.0f;
        assert_in_range(zeros, 1, 63);
    }
    tni_symbol_release(s);
    tni_cached_op_release(op);
    tni_array_release(x);
    test_context_close(c);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads), cmocka_unit_test(two_set_one_site),
                                       cmocka_unit_test(seed_of_the_call)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return test_variants_run(group);
}

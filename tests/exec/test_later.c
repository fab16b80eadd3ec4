/*
 * Backward kernels that complete later: the pass is cut there, and the rest stays compiled. Its gradients
 * have the bits of those that a program computes with an ordinary kernel: eager and hybridized, written and
 * added, with blocks that the forward left and run-time attributes that change from call to call.
 */
#include "context.h"
#include "cube.h"
#include "support/runs.h"
#include "support/static_plugin.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>

/* ---- y = x^3 with ordinary kernels and ones that complete on a thread of their own --------------------- */

static atomic_int ran_later;
static void (*while_later)(void); /* on that thread, before the kernel does its work; NULL: nothing */

static tn_status cube_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    plan->saved_bytes = 4u * (uint64_t)tn_tensor_count(node->in[0]);
    plan->est_ns = 100;
    return TN_OK;
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data, *block = x->saved;

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++) {
        if (block)
            block[i] = 3 * in[i] * in[i];
        out[i] = in[i] * in[i] * in[i];
    }
    return TN_OK;
}

/* As `run` does it, later. The plan is not read. */
static tn_status complete_later(void *(*body)(void *), const tn_exec *x, tn_err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int error = pthread_attr_init(&attr);

    if (!error) {
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        error = pthread_create(&thread, &attr, body, (void *)x);
        (void)pthread_attr_destroy(&attr);
    }
    return error ? tn_fail(err, TN_E_NOMEM, "no thread") : TN_PENDING;
}

static void complete_with(const tn_exec *x, tn_status (*run)(const tn_plan *, const tn_exec *, tn_err *))
{
    const struct timespec a_little = {.tv_nsec = 300000};
    tn_err err = {0};
    tn_status st;

    (void)nanosleep(&a_little, NULL);
    atomic_fetch_add(&ran_later, 1);
    if (while_later)
        while_later();
    st = run(NULL, x, &err);
    x->ops->complete(x->call, st, &err);
}

static void *cube_thread(void *arg)
{
    complete_with(arg, cube_run);
    return NULL;
}

static tn_status cube_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return complete_later(cube_thread, x, err);
}

static tn_status cube_run_fail(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_status st = cube_run(plan, x, err);

    return st ? st : tn_fail(err, TN_E_IO, "the cube came out wrong");
}

static void *cube_fail_thread(void *arg)
{
    complete_with(arg, cube_run_fail);
    return NULL;
}

static tn_status cube_fails_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return complete_later(cube_fail_thread, x, err);
}

static void *backward_thread(void *arg)
{
    complete_with(arg, test_cube_backward_run);
    return NULL;
}

static tn_status backward_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return complete_later(backward_thread, x, err);
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, name_, flags_, prepare_, run_)                                                           \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (name_),       \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types, .prepare = (prepare_), .run = (run_)    \
    }
static const tn_kernel cube_kernel = KERNEL("test_cube", "cube", 0u, cube_prepare, cube_run);
static const tn_kernel cube_later_kernel =
    KERNEL("test_cube", "cubelater", TN_KERNEL_ASYNC, cube_prepare, cube_later);
static const tn_kernel cube_fails_kernel =
    KERNEL("test_cube", "cubefails", TN_KERNEL_ASYNC, cube_prepare, cube_fails_later);
static const tn_kernel prompt_kernel =
    KERNEL("_backward_test_cube", "prompt", 0u, test_cube_backward_prepare, test_cube_backward_run);
static const tn_kernel later_kernel =
    KERNEL("_backward_test_cube", "later", TN_KERNEL_ASYNC, test_cube_backward_prepare, backward_later);
TEST_KERNELS(kernel_table, "cpu", &cube_kernel, &cube_later_kernel, &cube_fails_kernel, &prompt_kernel,
             &later_kernel);
TEST_PLUGIN(plugin, "cubes", &test_cube_ops.head, &kernel_table.head);

/* ---- contexts ------------------------------------------------------------------------------------------ */

/* With kernels of these names for the cube and its backward. */
static tni_context *open_pinned(const char *engine, const char *forward, const char *backward)
{
    char pins[2][64];
    const char *const settings[] = {"compile.passes_off=", pins[0], pins[1], engine, NULL};
    tni_context *c;

    (void)snprintf(pins[0], sizeof pins[0], "kernel.test_cube@cpu=cubes/%s", forward);
    (void)snprintf(pins[1], sizeof pins[1], "kernel._backward_test_cube@cpu=cubes/%s", backward);
    atomic_store(&ran_later, 0);
    while_later = NULL;
    c = test_context(settings);
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

static tni_context *open_with(const char *engine, bool later)
{
    return open_pinned(engine, "cube", later ? "later" : "prompt");
}

/* ---- a training ---------------------------------------------------------------------------------------- */

#define STEPS 3
#define VALUES (4 + 6 + 3) /* gradients of x, w, b */

typedef struct training {
    tni_context *c;
    tni_array *x, *w, *b;
    tni_site *scale; /* its scalar is a run-time attribute */
    tni_cached_op *net;
} training;

static tni_symbol *symbol_on(tni_context *c, const char *op, const char *attr, const char *text,
                             tni_symbol *in)
{
    tni_symbol *atom = NULL, *done = NULL;

    assert_ok(tni_symbol_atomic(c->ops, op, attr ? 1 : 0, &attr, &text, op, &atom));
    assert_ok(tni_symbol_compose(atom, op, 1, NULL, &in, &done));
    tni_symbol_release(atom);
    tni_symbol_release(in);
    return done;
}

static void training_open(training *t, const char *engine, bool later)
{
    tni_symbol *s = NULL;

    *t = (training){.c = open_with(engine, later)};
    t->x = test_array(t->c, 2, (int64_t[]){2, 2}, (float[]){0.1f, -0.4f, 0.7f, 0.3f});
    t->w = test_array(t->c, 2, (int64_t[]){3, 2}, (float[]){1, 0.5f, -0.5f, 2, 0.25f, -1});
    t->b = test_vector(t->c, 3, (float[]){0.1f, 0.2f, 0.3f});
    assert_ok(tni_grad_attach(t->c, t->x, TN_MODE_WRITE, NULL));
    assert_ok(tni_grad_attach(t->c, t->w, TN_MODE_WRITE, NULL));
    assert_ok(tni_grad_attach(t->c, t->b, TN_MODE_ADD, NULL));
    assert_ok(tni_site_create(t->c, "_mul_scalar", 1, (const char *[]){"scalar"}, (const char *[]){"1"},
                              &t->scale));
    assert_ok(tni_symbol_variable(t->c->ops, "data", &s));
    s = symbol_on(t->c, "FullyConnected", "num_hidden", "3", s);
    s = symbol_on(t->c, "test_cube", NULL, NULL, symbol_on(t->c, "tanh", NULL, NULL, s));
    assert_ok(tni_cached_op_create(t->c, s, NULL, &t->net));
    tni_symbol_release(s);
}

static void training_close(training *t)
{
    tni_array_release(t->x);
    tni_array_release(t->w);
    tni_array_release(t->b);
    tni_site_release(t->scale);
    tni_cached_op_release(t->net);
    test_context_close(t->c);
}

static void grad_read(tni_array *leaf, float **at)
{
    tni_array *g = tni_grad_get(leaf);

    assert_ok(tni_array_read(g, *at, tni_array_bytes(g)));
    *at += tni_array_count(g);
}

/* cube(s cube(tanh(w x + b))) summed, with another s each time; the first three layers as a net or one by
 * one. */
static void step(training *t, bool hybrid, int turn, float *out)
{
    const tni_backward_options retain = {.retain = true};
    tni_array *in[] = {t->x, t->w, t->b}, *h[3] = {NULL}, *y[3] = {NULL};
    double scale = 0.5 + turn;
    uint64_t bits;

    memcpy(&bits, &scale, sizeof bits);
    assert_ok(tni_site_set(t->scale, 0, bits));
    test_record(true, true);
    if (hybrid) {
        assert_ok(tni_cached_op_call(t->net, 3, in, 1, &h[2]));
    } else {
        h[0] = test_op(t->c, "FullyConnected", 3, in, "num_hidden=3", NULL);
        h[1] = test_op(t->c, "tanh", 1, &h[0], NULL);
        h[2] = test_op(t->c, "test_cube", 1, &h[1], NULL);
    }
    assert_ok(tni_invoke(t->scale, 1, &h[2], 1, &y[0]));
    y[1] = test_op(t->c, "test_cube", 1, &y[0], NULL);
    y[2] = test_op(t->c, "sum", 1, &y[1], NULL);
    test_record(false, false);
    if (turn == 1) /* twice over the same tape: what is added is added twice */
        assert_ok(tni_backward(t->c, 1, &y[2], NULL, &retain));
    assert_ok(tni_backward(t->c, 1, &y[2], NULL, NULL));
    grad_read(t->x, &out);
    grad_read(t->w, &out);
    grad_read(t->b, &out);
    for (int i = 0; i < 3; i++)
        tni_array_release(y[i]);
    for (int i = 0; i < 3; i++)
        tni_array_release(h[i]);
}

static void same_bits(const char *engine, bool hybrid)
{
    float want[STEPS][VALUES], got[STEPS][VALUES];
    training t;

    training_open(&t, engine, false);
    for (int i = 0; i < STEPS; i++)
        step(&t, hybrid, i, want[i]);
    assert_int_equal(test_cuts(t.c), 0);
    training_close(&t);
    training_open(&t, engine, true);
    for (int i = 0; i < STEPS; i++)
        step(&t, hybrid, i, got[i]);
    assert_int_equal(test_cuts(t.c),
                     (STEPS + 1) * (hybrid ? 3 : 4)); /* around two kernels; a net begins with one */
    assert_int_equal(atomic_load(&ran_later), 2 * (STEPS + 1));
    training_close(&t);
    assert_memory_equal(got, want, sizeof want);
    assert_true(fabsf(want[0][0]) > 1e-6f && fabsf(want[2][0] - want[0][0]) > 1e-6f);
    assert_int_equal(
        heard_times(&test_logged,
                    "(_backward_test_cube): its kernel later completes later; the rest stays compiled"),
        1);
    assert_int_equal(heard_times(&test_logged, "a program is cut"), 1);
}

static void eager(void **state)
{
    same_bits(*state, false);
}

static void hybridized(void **state)
{
    same_bits(*state, true);
}

/* ---- other ways to ask --------------------------------------------------------------------------------- */

/* Gradients of variables as new arrays, given gradients of heads; the attached ones stay untouched. What
 * nothing reaches gets zeros. */
static void new_arrays(void **state)
{
    tni_context *c = open_with(*state, true);
    tni_array *x = test_vector(c, 2, (float[]){1, 2}), *head = test_vector(c, 2, (float[]){10, 100});
    tni_array *other = test_vector(c, 1, (float[]){3}), *variables[] = {x, other}, *y, *g[2];

    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_grad_attach(c, other, TN_MODE_WRITE, NULL));
    test_record(true, true);
    y = test_op(c, "test_cube", 1, &x, NULL);
    test_record(false, false);
    assert_ok(tni_grad(c, 1, &y, &head, 2, variables, NULL, g));
    test_values(g[0], (float[]){30, 1200}, 2, 0);
    test_values(g[1], (float[]){0}, 1, 0);
    test_values(tni_grad_get(x), (float[]){0, 0}, 2, 0);
    assert_int_equal(test_cuts(c), 0); /* nothing is around it */
    tni_array_release(g[0]);
    tni_array_release(g[1]);
    tni_array_release(other);
    tni_array_release(y);
    tni_array_release(head);
    tni_array_release(x);
    test_context_close(c);
}

/* A gradient that is the gradient of the head too: it is read before it is written. */
static void gradient_of_itself(void **state)
{
    for (int later = 0; later < 2; later++) {
        tni_context *c = open_with(*state, later != 0);
        tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y, *z, *g;

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        g = tni_grad_get(x);
        assert_ok(tni_array_fill(g, 2));
        test_record(true, true);
        y = test_op(c, "test_cube", 1, &x, NULL);
        z = test_op(c, "test_cube", 1, &y, NULL);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &z, &g, NULL));
        test_values(g, (float[]){18, 2 * 9 * 256}, 2, 0);
        tni_array_release(y);
        tni_array_release(z);
        tni_array_release(x);
        test_context_close(c);
    }
}

/* Masks of Dropout are those of the forward; no draw is taken by the pass. */
static void draws_stay(void **state)
{
    uint64_t position[2];
    float values[2][16];

    for (int later = 0; later < 2; later++) {
        tni_context *c = open_with(*state, later != 0);
        tni_array *x = test_vector(c, 16, NULL), *d, *y;
        tni_device *device;

        assert_ok(tni_array_fill(x, 1.5));
        assert_ok(tni_default_device(c, &device));
        assert_ok(tni_random_seed(c, 5, NULL));
        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        test_record(true, true);
        d = test_op(c, "Dropout", 1, &x, NULL);
        y = test_op(c, "test_cube", 1, &d, NULL);
        test_record(false, false);
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        assert_ok(tni_array_read(tni_grad_get(x), values[later], sizeof values[later]));
        position[later] = tni_random_position(c, device);
        tni_array_release(d);
        tni_array_release(y);
        tni_array_release(x);
        test_context_close(c);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_true(position[0] == position[1]);
}

/* Sums are in order of creation across cuts, too: (((-2 or 0) + 3 - 1e8) + 1e8) + 1 for the uses of x in x^3
 * - 1e8 x + 1e8 x + x, made from right to left. */
static void sums_in_order(void **state)
{
    for (int forward = 0; forward < 2; forward++) {
        tni_context *c = open_pinned(*state, forward ? "cubelater" : "cube", forward ? "prompt" : "later");
        const char *const factors[] = {"1", "1e8", "-1e8"};
        tni_array *x = test_vector(c, 1, (float[]){1}), *old = test_vector(c, 1, (float[]){-2}), *y = NULL;
        tni_symbol *v = NULL, *s, *terms[4];
        tni_cached_op *net = NULL;

        assert_ok(tni_symbol_variable(c->ops, "data", &v));
        for (int i = 0; i < 3; i++)
            tni_symbol_retain(v);
        for (int i = 0; i < 3; i++)
            terms[i] = symbol_on(c, "_mul_scalar", "scalar", factors[i], v);
        terms[3] = symbol_on(c, "test_cube", NULL, NULL, v);
        assert_ok(tni_symbol_atomic(c->ops, "add_n", 1, (const char *[]){"num_args"}, (const char *[]){"4"},
                                    NULL, &v));
        assert_ok(tni_symbol_compose(v, NULL, 4, NULL,
                                     (tni_symbol *[]){terms[3], terms[2], terms[1], terms[0]}, &s));
        assert_ok(tni_cached_op_create(c, s, NULL, &net));
        for (uint32_t mode = TN_MODE_WRITE; mode <= TN_MODE_ADD; mode++) {
            assert_ok(tni_grad_attach(c, x, mode, old));
            test_record(true, true);
            assert_ok(tni_cached_op_call(net, 1, &x, 1, &y));
            test_record(false, false);
            assert_ok(tni_backward(c, 1, &y, NULL, NULL));
            test_values(old, (float[]){1}, 1, 0);
            assert_ok(tni_array_fill(old, -2));
            tni_array_release(y);
            y = NULL;
        }
        assert_true(test_cuts(c) > 0);
        for (int i = 0; i < 4; i++)
            tni_symbol_release(terms[i]);
        tni_symbol_release(v);
        tni_symbol_release(s);
        tni_cached_op_release(net);
        tni_array_release(x);
        tni_array_release(old);
        test_context_close(c);
    }
}

/* ---- stand-ins ----------------------------------------------------------------------------------------- */

/* A dense-only kernel that completes later: its output may be its input, or a column. */
static void outputs_elsewhere(void **state)
{
    tni_context *c = open_pinned(*state, "cubelater", "prompt");
    tni_array *x = test_vector(c, 2, (float[]){2, 3}), *column = NULL, *head = NULL;
    tni_array *m = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 1, 1, 1});
    tni_array *tall = test_array(c, 2, (int64_t[]){2, 1}, (float[]){2, 3});
    tni_symbol *s = NULL;
    tni_site *site = NULL;
    tni_cached_op *net = NULL;

    assert_ok(tni_site_create(c, "test_cube", 0, NULL, NULL, &site));
    assert_ok(tni_invoke(site, 1, &x, 1, &x));
    test_values(x, (float[]){8, 27}, 2, 0);
    assert_ok(tni_array_view(m, 1, 2, (int64_t[]){2, 1}, (int64_t[]){2, 1}, &column));
    assert_ok(tni_invoke(site, 1, &tall, 1, &column));
    test_values(m, (float[]){1, 8, 1, 27}, 4, 0);
    assert_ok(tni_invoke(site, 1, &column, 1, &column)); /* strided, and its own input */
    test_values(m, (float[]){1, 512, 1, 19683}, 4, 0);
    assert_ok(tni_symbol_variable(c->ops, "data", &s)); /* a net writes into the array given */
    s = symbol_on(c, "test_cube", NULL, NULL, s);
    assert_ok(tni_cached_op_create(c, s, NULL, &net));
    head = column;
    assert_ok(tni_cached_op_call(net, 1, &tall, 1, &head));
    assert_ptr_equal(head, column);
    test_values(m, (float[]){1, 8, 1, 27}, 4, 0);
    assert_int_equal(test_cuts(c), 0);
    assert_int_equal(atomic_load(&ran_later), 4);
    tni_cached_op_release(net);
    tni_symbol_release(s);
    tni_site_release(site);
    tni_array_release(column);
    tni_array_release(tall);
    tni_array_release(m);
    tni_array_release(x);
    test_context_close(c);
}

/* What a failed kernel left in a stand-in goes nowhere; the failure does. */
static void outputs_of_a_failure(void **state)
{
    tni_context *c = open_pinned(*state, "cubefails", "prompt");
    tni_array *m = test_array(c, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}), *column = NULL;
    tni_site *site = NULL;

    assert_ok(tni_site_create(c, "test_cube", 0, NULL, NULL, &site));
    assert_ok(tni_array_view(m, 0, 2, (int64_t[]){2, 1}, (int64_t[]){2, 1}, &column));
    assert_ok(tni_invoke(site, 1, &column, 1, &column));
    assert_int_equal(tni_array_wait(column), TN_E_IO);
    assert_non_null(strstr(tni_error_message(), "the cube came out wrong"));
    assert_memory_equal(tni_array_data(m), ((float[]){1, 2, 3, 4}), 4 * sizeof(float));
    tni_site_release(site);
    tni_array_release(column);
    tni_array_release(m);
    test_context_close(c);
}

/* ---- passes at once ------------------------------------------------------------------------------------ */

static tni_context *shared;
static tni_array *shared_head;
static atomic_int inner_left, inner_done; /* backward passes that kernels of the outer one still start */
static tn_status inner_status;

static tni_array *recorded_cube(tni_context *c, tni_array *x)
{
    tni_array *y;

    test_record(true, true);
    y = test_op(c, "test_cube", 1, &x, NULL);
    test_record(false, false);
    return y;
}

static void backward_of_another(void)
{
    tni_array *x, *y;

    if (atomic_fetch_sub(&inner_left, 1) <= 0)
        return;
    x = test_vector(shared, 2, (float[]){1, 2});
    assert_ok(tni_grad_attach(shared, x, TN_MODE_WRITE, NULL));
    y = recorded_cube(shared, x);
    assert_ok(tni_backward(shared, 1, &y, NULL, NULL));
    tni_array_release(y);
    tni_array_release(x);
    atomic_fetch_add(&inner_done, 1);
}

static void backward_of_the_same(void)
{
    if (atomic_fetch_sub(&inner_left, 1) > 0)
        inner_status = tni_backward(shared, 1, &shared_head, NULL, NULL);
}

/* A thread that ends a kernel may call backward itself: nothing that it waits for waits for it. */
static void within_a_kernel(void **state)
{
    tni_context *c;
    tni_array *x, *y;

    c = shared = open_with(*state, true);
    x = test_vector(c, 2, (float[]){1, 2});
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    y = recorded_cube(c, x);
    atomic_store(&inner_left, 3); /* the inner one's kernel starts the next */
    atomic_store(&inner_done, 0);
    while_later = backward_of_another;
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    test_values(tni_grad_get(x), (float[]){3, 12}, 2, 0);
    while (atomic_load(&inner_done) < 3)
        (void)sched_yield();
    assert_ok(tni_engine_wait_all(c->engine));
    assert_int_equal(test_cuts(c), 0);
    tni_array_release(y);
    tni_array_release(x);
    test_context_close(c);
}

/* Over the same tape: refused if the outer pass consumes it,
 * else it leaves to the outer one what that reads. */
static void over_one_tape(void **state)
{
    for (int keep = 0; keep < 2; keep++) {
        tni_context *c = shared = open_with(*state, true);
        tni_array *x = test_vector(c, 2, (float[]){1, 2}), *y, *z;
        const tni_backward_options retain = {.retain = keep != 0};

        assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, NULL));
        y = recorded_cube(c, x);
        test_record(true, true);
        z = shared_head = test_op(c, "test_cube", 1, &y, NULL);
        test_record(false, false);
        atomic_store(&inner_left, 1);
        while_later = backward_of_the_same;
        assert_ok(tni_backward(c, 1, &z, NULL, &retain));
        assert_ok(tni_array_wait(tni_grad_get(x)));
        assert_ok(tni_engine_wait_all(c->engine));
        assert_int_equal(inner_status, keep ? TN_OK : TN_E_STATE);
        test_values(tni_grad_get(x), (float[]){keep ? 18 : 9, keep ? 4608 : 2304}, 2, 0);
        assert_int_equal(tni_backward(c, 1, &z, NULL, NULL), TN_E_STATE);
        tni_array_release(z);
        tni_array_release(y);
        tni_array_release(x);
        test_context_close(c);
    }
}

#define THREADS 4

static void *one_of_many(void *retain)
{
    const tn_status st = tni_backward(shared, 1, &shared_head, NULL, retain);

    return (void *)(intptr_t)st;
}

/* Threads that walk one tape at once: one wins, or with retain all do. */
static void threads_over_one_tape(void **state)
{
    for (int turn = 0; turn < 24; turn++) {
        const bool keep = turn & 1, later = turn & 2;
        tni_context *c = shared = open_with(*state, later);
        tni_array *x = test_vector(c, 2, (float[]){1, 2});
        tni_backward_options retain = {.retain = keep};
        pthread_t threads[THREADS];
        int won = 0;

        assert_ok(tni_grad_attach(c, x, TN_MODE_ADD, NULL));
        shared_head = recorded_cube(c, x);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, one_of_many, &retain), 0);
        for (int i = 0; i < THREADS; i++) {
            void *status;

            assert_int_equal(pthread_join(threads[i], &status), 0);
            won += (intptr_t)status == TN_OK;
            assert_true((intptr_t)status == TN_OK || (intptr_t)status == TN_E_STATE);
        }
        assert_int_equal(won, keep ? THREADS : 1);
        test_values(tni_grad_get(x), (float[]){3.0f * (float)won, 12.0f * (float)won}, 2, 0);
        tni_array_release(shared_head);
        tni_array_release(x);
        test_context_close(c);
    }
}

/* ---- out of memory ------------------------------------------------------------------------------------- */

/* A pass that failed to be queued leaves the tape as it was, also if it was to consume it. */
static bool memory_fails_at(tni_context *c, tni_array *x, uint64_t nth, bool retain, uint64_t *failures)
{
    const tni_backward_options options = {.retain = retain};
    tni_array *y = recorded_cube(c, x);
    tn_status queued, st;
    bool failed;

    tni_mem_fail_at(nth, false, true);
    st = queued = tni_backward(c, 1, &y, NULL, &options);
    if (!st)
        st = tni_array_wait(tni_grad_get(x));
    failed = tni_mem_failed();
    tni_mem_fail_at(0, false, false);
    if (st != TN_OK && st != TN_E_NOMEM)
        fail_msg("allocation %llu fails, and the status is %s: %s", (unsigned long long)nth,
                 tni_status_name(st), tni_error_message());
    *failures += st == TN_E_NOMEM;
    assert_ok(tni_array_fill(tni_grad_get(x), 7));
    if (!queued && !retain) {
        assert_int_equal(tni_backward(c, 1, &y, NULL, NULL), TN_E_STATE);
    } else {
        assert_ok(tni_backward(c, 1, &y, NULL, NULL));
        test_values(tni_grad_get(x), (float[]){3, 12}, 2, 0);
    }
    tni_autograd_close(c); /* so that the next one compiles again */
    tni_array_release(y);
    return failed;
}

static void memory_runs_out(void **state)
{
    (void)state;
    for (int retain = 0; retain < 2; retain++) {
        tni_context *c = open_with("engine.type=naive", true); /* all is freed when a call is over */
        tni_array *x = test_vector(c, 2, (float[]){1, 2});
        uint64_t failures = 0;

        assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
        for (uint64_t nth = 1; memory_fails_at(c, x, nth, retain != 0, &failures);
             nth = test_failure_next(nth, 60))
            ;
        assert_true(failures > 10);
        tni_array_release(x);
        test_context_close(c);
    }
}

/* Gradients that are added to and written: a pass that could not be queued changed none of them. */
static bool torn_at(tni_context *c, tni_array *const leaves[3], uint64_t nth, uint64_t *failures)
{
    static const float before[] = {5, 5}, after[3][2] = {{8, 101}, {8, 101}, {3, 192}};
    tni_array *h[2], *y;
    tn_status st;
    bool failed;

    test_record(true, true);
    h[0] = test_op(c, "elemwise_mul", 2, leaves, NULL);
    h[1] = test_op(c, "elemwise_mul", 2, (tni_array *[]){h[0], leaves[2]}, NULL);
    y = test_op(c, "test_cube", 1, &h[1], NULL);
    test_record(false, false);
    for (int i = 0; i < 3; i++)
        assert_ok(tni_array_fill(tni_grad_get(leaves[i]), 5));
    tni_mem_fail_at(nth, false, true);
    st = tni_backward(c, 1, &y, NULL, NULL);
    failed = tni_mem_failed();
    tni_mem_fail_at(0, false, false);
    assert_true(st == TN_OK || st == TN_E_NOMEM);
    *failures += st == TN_E_NOMEM;
    for (int i = 0; i < 3 && (st || !failed); i++) /* a kernel's failure sticks to all of them */
        test_values(tni_grad_get(leaves[i]), st ? before : after[i], 2, 0);
    tni_autograd_close(c); /* so that the next one compiles again */
    tni_array_release(h[0]);
    tni_array_release(h[1]);
    tni_array_release(y);
    return failed;
}

static void nothing_is_torn(void **state)
{
    tni_context *c = open_with(*state, true);
    tni_array *leaves[3];
    uint64_t failures = 0;

    for (int i = 0; i < 3; i++) {
        leaves[i] = test_vector(c, 2, (float[]){1, i < 2 ? 2 : 1});
        assert_ok(tni_grad_attach(c, leaves[i], i < 2 ? TN_MODE_ADD : TN_MODE_WRITE, NULL));
    }
    for (uint64_t nth = 1; torn_at(c, leaves, nth, &failures); nth = test_failure_next(nth, 60))
        ;
    assert_true(failures > 10);
    for (int i = 0; i < 3; i++)
        tni_array_release(leaves[i]);
    test_context_close(c);
}

int main(void)
{
    static char threaded[] = "engine.type=threaded", queued[] = "engine.inline_ns=0",
                naive[] = "engine.type=naive", determined[] = "run.deterministic=run";
    char *const engines[] = {threaded, queued, naive, determined};
    int failed = 0;

    for (int i = 0; i < 4; i++) {
        const struct CMUnitTest tests[] = {
            {"eager", eager, NULL, NULL, engines[i]},
            {"hybridized", hybridized, NULL, NULL, engines[i]},
            {"new arrays", new_arrays, NULL, NULL, engines[i]},
            {"a gradient of itself", gradient_of_itself, NULL, NULL, engines[i]},
            {"outputs elsewhere", outputs_elsewhere, NULL, NULL, engines[i]},
            {"outputs of a failure", outputs_of_a_failure, NULL, NULL, engines[i]},
            {"within a kernel", within_a_kernel, NULL, NULL, engines[i]},
            {"over one tape", over_one_tape, NULL, NULL, engines[i]},
            {"threads over one tape", threads_over_one_tape, NULL, NULL, engines[i]},
            {"draws stay", draws_stay, NULL, NULL, engines[i]},
            {"sums in order", sums_in_order, NULL, NULL, engines[i]},
            {"memory runs out", memory_runs_out, NULL, NULL, engines[i]},
            {"nothing is torn", nothing_is_torn, NULL, NULL, engines[i]},
        };

        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}

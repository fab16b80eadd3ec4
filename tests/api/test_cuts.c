/*
 * A net of two layers with something between them that cannot be compiled: a size that only a run tells, an
 * operator that calls back, a function of the program, a kernel that completes later. Each is one cut; the
 * layers stay compiled, the bits are those of calls one by one, and one worker is enough. And a kernel that
 * fails in the middle of backward: what was released is right, the rest and the step carry the error.
 */
#include "api/later.h"

#include <stdio.h>

#include "support/static_plugin.h"
#include "tenon/plugin/op.h"

/* ---- operators: y = 2 x of some kind ------------------------------------------------------------------- */

static tn_ctx *ctx_now; /* of the running test */
static atomic_uint host_runs, later_runs, masks, fails_at, backwards;

static const char *const names_x[] = {"x", NULL}, *const names_y[] = {"y", NULL};
static const char *const names_back[] = {"dy", "x", NULL}, *const names_dx[] = {"dx", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

/* Rows, of which only a run tells how many. */
static tn_status rows_by_run(tn_infer *i)
{
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    *i->out_shape[0] = *i->in_shape[0];
    i->out_shape[0]->dim[0] = -1;
    return TN_OK;
}

static tn_status back_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);
}

static tn_status gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_test_twice", 2, in) : TN_OK;
}

#define OP(name_, exec_, shape_, gradient_, in_, out_, flags_)                                               \
    TEST_OP(.exec = (exec_), .name = (name_), .inputs = (in_), .outputs = (out_), .shape = (shape_),         \
            .gradient = (gradient_), .flags = (flags_))
static const tn_op op_mask = OP("test_mask", TN_EXEC_KERNEL, rows_by_run, NULL, names_x, names_y, 0);
static const tn_op op_host = OP("test_sleeps", TN_EXEC_HOST, same_shape, gradient, names_x, names_y, 0);
static const tn_op op_later = OP("test_async", TN_EXEC_KERNEL, same_shape, gradient, names_x, names_y, 0);
static const tn_op op_prompt = OP("test_prompt", TN_EXEC_KERNEL, same_shape, gradient, names_x, names_y, 0);
static const tn_op op_back =
    OP("_backward_test_twice", TN_EXEC_KERNEL, back_shape, NULL, names_back, names_dx, TN_OP_BACKWARD);
static const tn_op op_own = OP("test_own", TN_EXEC_HOST, same_shape, NULL, names_x, names_y, 0);
TEST_OPS(op_table, "cutting", &op_mask, &op_host, &op_later, &op_prompt, &op_back);

static void twice(const tn_tensor *from, const tn_tensor *to)
{
    for (int64_t i = 0; i < tn_tensor_count(to); i++)
        ((float *)to->data)[i] = 2 * ((const float *)from->data)[i];
}

static tn_status run_prompt(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    twice(x->in[0], x->out[0]);
    return TN_OK;
}

/* All rows: how many is known now. */
static tn_status run_mask(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *out;
    tn_status st;

    (void)plan;
    atomic_fetch_add(&masks, 1u);
    if ((st = x->ops->resize(x->call, 0, x->in[0]->ndim, x->in[0]->shape, &out, err)))
        return st;
    twice(x->in[0], out);
    return TN_OK;
}

static tn_status mask_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_RESIZES;
    return TN_OK;
}

/* It sleeps until other work of the one worker is done: on that worker itself it never would be. */
static tn_status run_sleeping(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    atomic_uint count;
    tn_var *v = NULL;

    (void)err;
    (void)plan;
    atomic_init(&count, 0);
    if (!tn_var_create(ctx_now, &v)) {
        count_push(ctx_now, &count, NULL, v);
        (void)tn_var_wait(ctx_now, v);
    }
    tn_var_destroy(ctx_now, v);
    if (atomic_load(&count) != 1)
        return tn_fail(err, TN_E_INTERNAL, "the work did not run");
    atomic_fetch_add(&host_runs, 1u);
    twice(x->in[0], x->out[0]);
    return TN_OK;
}

static void *complete(void *arg)
{
    const tn_exec *x = arg;

    twice(x->in[0], x->out[0]);
    atomic_fetch_add(&later_runs, 1u);
    x->ops->complete(x->call, TN_OK, NULL);
    return NULL;
}

static tn_status run_later(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    (void)plan;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    failed = pthread_create(&thread, &attr, complete, (void *)(uintptr_t)x);
    (void)pthread_attr_destroy(&attr);
    return failed ? tn_fail(err, TN_E_INTERNAL, "no thread") : TN_PENDING;
}

/* Long enough for what was made before to be given free. */
static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->est_ns = 1000000;
    return TN_OK;
}

/* The call number fails_at fails. */
static tn_status run_back(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    if (atomic_fetch_add(&backwards, 1u) + 1 == atomic_load(&fails_at))
        return tn_fail(err, TN_E_IO, "planted in the middle");
    twice(x->in[0], x->out[0]);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, flags_, prepare_, run_)                                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (op_),         \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types, .prepare = (prepare_), .run = (run_)    \
    }
static const tn_kernel kernel_mask = KERNEL("test_mask", 0u, mask_prepare, run_mask);
static const tn_kernel kernel_host = KERNEL("test_sleeps", 0u, NULL, run_sleeping);
static const tn_kernel kernel_later = KERNEL("test_async", TN_KERNEL_ASYNC, NULL, run_later);
static const tn_kernel kernel_prompt = KERNEL("test_prompt", 0u, NULL, run_prompt);
static const tn_kernel kernel_back = KERNEL("_backward_test_twice", 0u, back_prepare, run_back);
TEST_KERNELS(kernel_table, "cpu", &kernel_mask, &kernel_host, &kernel_later, &kernel_prompt, &kernel_back);
TEST_PLUGIN(cutting, "cutting", &op_table.head, &kernel_table.head);

/* ---- a function: the same ------------------------------------------------------------------------------ */

static tn_status doubled(tn_ctx *ctx, tn_array *x, tn_array **out)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = 1,
                             .op = "_mul_scalar",
                             .attrs = (const char *const[]){"scalar", "2", NULL},
                             .in = &x};

    return tn_invoke_text(ctx, &call, 1, out, NULL);
}

static atomic_uint own_forwards, own_backwards, own_destroyed;

static tn_status own_forward(tn_function_run *run, tn_array *const *in, tn_array **out)
{
    atomic_fetch_add(&own_forwards, 1u);
    return doubled(run->ctx, in[0], out);
}

static tn_status own_backward(tn_function_run *run, tn_array *const *out_grads, tn_array **in_grads)
{
    atomic_fetch_add(&own_backwards, 1u);
    return doubled(run->ctx, out_grads[0], in_grads);
}

static void own_destroy(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1u);
}

/* ---- the net ------------------------------------------------------------------------------------------- */

enum { X, W1, B1, W2, B2, INPUTS };

static const int64_t shapes[INPUTS][2] = {{4, 3}, {5, 3}, {5}, {2, 5}, {2}};
static const int32_t ndims[INPUTS] = {2, 2, 1, 2, 1};

typedef struct net {
    tn_ctx *ctx;
    tn_array *in[INPUTS];
    tn_symbol *s;
    tn_cached_op *op;
} net;

static const char *const five[] = {"num_hidden", "5", NULL}, *const two[] = {"num_hidden", "2", NULL};

static void open_net(net *n, const char *engine, const char *between)
{
    const char *const settings[] = {engine, "engine.threads=1", "engine.workers=1", "engine.inline_ns=0",
                                    NULL};
    const tn_function own = {.struct_size = TN_SIZE(tn_function),
                             .arg = &own_destroyed,
                             .forward = own_forward,
                             .backward = own_backward,
                             .destroy = own_destroy};
    float values[16];
    tn_symbol *s = NULL;

    n->ctx = ctx_now = test_open(settings);
    atomic_store(&fails_at, 0);
    atomic_store(&backwards, 0);
    assert_ok(tn_plugin_add(n->ctx, &cutting));
    assert_ok(tn_function_register(n->ctx, &op_own, &own));
    for (int i = 0; i < INPUTS; i++) {
        for (int k = 0; k < 16; k++)
            values[k] = (float)((k * 7 + i * 5) % 11 - 5) / 8;
        n->in[i] = test_array(n->ctx, ndims[i], shapes[i], values);
        assert_ok(tn_attach_grad(n->ctx, n->in[i], TN_MODE_WRITE, NULL));
    }
    assert_ok(tn_symbol_variable(n->ctx, "x", &s));
    s = test_node(n->ctx, "tanh", "t1", NULL, test_node(n->ctx, "FullyConnected", "f1", five, s));
    s = test_node(n->ctx, between, "between", NULL, s);
    if (!strcmp(between, "test_prompt"))
        s = test_node(n->ctx, between, "again", NULL, s);
    n->s = test_node(n->ctx, "tanh", "t2", NULL, test_node(n->ctx, "FullyConnected", "f2", two, s));
    assert_ok(tn_cached_op_create(n->ctx, n->s, NULL, &n->op));
}

static void close_net(net *n, bool failed)
{
    for (int i = 0; i < INPUTS; i++)
        tn_array_release(n->in[i]);
    tn_cached_op_release(n->op);
    tn_symbol_release(n->s);
    if (failed) {
        (void)tn_wait_all(n->ctx);
        (void)tn_close(n->ctx);
    } else {
        test_close(n->ctx);
    }
}

static tn_array *eager(const net *n, const char *between)
{
    tn_array *h[5], *y;

    h[0] = test_op(n->ctx, "FullyConnected", five, 3, (tn_array *const[]){n->in[X], n->in[W1], n->in[B1]});
    h[1] = test_op(n->ctx, "tanh", NULL, 1, &h[0]);
    h[2] = test_op(n->ctx, between, NULL, 1, &h[1]);
    h[3] = test_op(n->ctx, strcmp(between, "test_prompt") ? "_copy" : between, NULL, 1, &h[2]);
    h[4] = test_op(n->ctx, "FullyConnected", two, 3, (tn_array *const[]){h[3], n->in[W2], n->in[B2]});
    y = test_op(n->ctx, "tanh", NULL, 1, &h[4]);
    for (int i = 0; i < 5; i++)
        tn_array_release(h[i]);
    return y;
}

static tn_stats stats_of(const net *n)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(n->ctx, &stats));
    return stats;
}

/* ---- one cut each -------------------------------------------------------------------------------------- */

#define BITS (8 + 12 + 15 + 5 + 10 + 2) /* of the output and the gradients */

static void step(const net *n, bool hybrid, const char *between, float *bits)
{
    tn_array *y = NULL;

    (void)tn_record_set(1);
    if (hybrid)
        assert_ok(tn_cached_op_call(n->op, INPUTS, n->in, 1, &y));
    else
        y = eager(n, between);
    (void)tn_record_set(0);
    assert_ok(tn_backward(n->ctx, 1, &y, NULL, 0));
    assert_ok(tn_array_read(y, bits, 8 * sizeof *bits));
    bits += 8;
    memset(bits, 0, (BITS - 8) * sizeof *bits);
    for (int i = 0; i < INPUTS; i++) {
        tn_array *g = tn_array_grad(n->in[i]);

        if (!g)
            continue;
        assert_ok(tn_array_read(g, bits, tn_array_bytes(g)));
        bits += tn_array_count(g);
    }
    tn_array_release(y);
}

/* Forward and backward are this many operations of the engine more than one. What calls back, completes
 * later, or tells a size, has an operation of its own between two; a function runs on the caller between two
 * nets. Backward is cut by a function alone. */
static const struct {
    const char *op, *why;
    uint32_t forward, backward;
    uint32_t programs; /* compiled for all steps together */
    int first;         /* input with a gradient: through a size that a run tells goes none */
    atomic_uint *runs;
} kinds[] = {
    {"test_mask", "size of its outputs", 2, 0, 2, W2, &masks},
    {"test_sleeps", "it calls back into the program", 2, 0, 1, X, &host_runs},
    {"test_own", "it calls back into the program", 1, 1, 2, X, &own_forwards},
    {"test_async", "completes later", 2, 0, 1, X, &later_runs},
};

static void named(const net *n, const char *why)
{
    const tn_known known = {.name = "x", .shape = shapes[X], .ndim = 2, .dtype = TN_F32};
    tn_break info = {.struct_size = TN_SIZE(tn_break)};
    tn_inferred *inferred = NULL;
    tn_breaks *b = NULL;
    uint32_t between = 0;

    assert_ok(tn_symbol_infer(n->s, 1, &known, TN_SYMBOL_PARTIAL, &inferred));
    assert_ok(tn_graph_breaks(n->ctx, n->s, inferred, NULL, &b));
    for (uint32_t i = 0; i < tn_breaks_count(b); i++) {
        assert_ok(tn_breaks_at(b, i, &info));
        if (strcmp(info.node, "between") != 0)
            continue;
        between++;
        if (!strstr(info.why, why))
            fail_msg("%s", info.why);
    }
    assert_int_equal(between, 1);
    tn_breaks_destroy(b);
    tn_inferred_destroy(inferred);
}

static void one_cut(void **state)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        float want[BITS], got[BITS];
        tn_stats before, after;
        net n;

        atomic_store(&own_destroyed, 0);
        open_net(&n, *state, kinds[k].op);
        named(&n, kinds[k].why);
        for (int i = X; i < kinds[k].first; i++)
            tn_detach_grad(n.in[i]);
        step(&n, false, kinds[k].op, want);
        atomic_store(kinds[k].runs, 0);
        before = stats_of(&n);
        for (int turn = 0; turn < 3; turn++) {
            step(&n, true, kinds[k].op, got);
            assert_memory_equal(got, want, sizeof want);
            after = stats_of(&n);
            if (after.cuts - before.cuts != kinds[k].forward + kinds[k].backward)
                fail_msg("%s: %u cuts", kinds[k].op, (unsigned)(after.cuts - before.cuts));
            if (after.programs - before.programs != (turn ? 0 : kinds[k].programs))
                fail_msg("%s: %u programs", kinds[k].op, (unsigned)(after.programs - before.programs));
            before = after;
        }
        assert_int_equal(atomic_load(kinds[k].runs), 3);
        close_net(&n, false);
        assert_int_equal(atomic_load(&own_destroyed), 1);
    }
    assert_int_equal(atomic_load(&own_backwards) % 4, 0);
}

/* ---- a failure in the middle of backward --------------------------------------------------------------- */

static float *weight_data[INPUTS];

/* The step: one operation that reads all gradients and writes all weights. */
static tn_status sweep_run(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1u);
    for (int i = W1; i < INPUTS; i++)
        weight_data[i][0] += 1;
    return TN_OK;
}

static void sweep_push(const net *n, atomic_uint *count)
{
    tn_var *reads[INPUTS], *writes[INPUTS];
    const tn_task task = {.struct_size = TN_SIZE(tn_task),
                          .run = sweep_run,
                          .arg = count,
                          .reads = reads,
                          .writes = writes,
                          .read_count = INPUTS - W1,
                          .write_count = INPUTS - W1,
                          .name = "sweep"};

    for (int i = W1; i < INPUTS; i++) {
        reads[i - W1] = tn_array_var(tn_array_grad(n->in[i]));
        writes[i - W1] = tn_array_var(n->in[i]);
    }
    assert_ok(tn_engine_push(n->ctx, &task));
}

/* Two long kernels lie between the layers, and the second one fails. Behind it lie w2 and b2, whose gradients
 * are right; x, w1 and b1 carry the error, so does the step, and no weight changes. */
static void fails_in_the_middle(void **state)
{
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        float want[BITS], weights[INPUTS][16], got[16];
        const float *right = want + 8 + 12 + 15 + 5; /* of w2, then b2 */
        atomic_uint sweeps;
        tn_array *y = NULL;
        net n;

        atomic_init(&sweeps, 0);

        open_net(&n, *state, "test_prompt");
        step(&n, hybrid, "test_prompt", want);
        for (int i = 0; i < INPUTS; i++) {
            void *data = NULL;

            assert_ok(tn_array_data(n.in[i], &data));
            weight_data[i] = data;
            memcpy(weights[i], weight_data[i], tn_array_bytes(n.in[i]));
        }
        (void)tn_record_set(1);
        if (hybrid)
            assert_ok(tn_cached_op_call(n.op, INPUTS, n.in, 1, &y));
        else
            y = eager(&n, "test_prompt");
        (void)tn_record_set(0);
        atomic_store(&fails_at, atomic_load(&backwards) + 2);
        assert_ok(tn_backward(n.ctx, 1, &y, NULL, 0));
        sweep_push(&n, &sweeps);
        for (int i = 0; i < W2; i++) {
            assert_fails(tn_array_wait(tn_array_grad(n.in[i])), TN_E_IO);
            assert_non_null(strstr(tn_error_text(), "planted in the middle"));
        }
        assert_ok(tn_array_read(tn_array_grad(n.in[W2]), got, 10 * sizeof *got));
        assert_memory_equal(got, right, 10 * sizeof *got);
        assert_ok(tn_array_read(tn_array_grad(n.in[B2]), got, 2 * sizeof *got));
        assert_memory_equal(got, right + 10, 2 * sizeof *got);
        for (int i = W1; i < INPUTS; i++) {
            assert_fails(tn_array_wait(n.in[i]), TN_E_IO);
            assert_non_null(strstr(tn_error_text(), "planted in the middle"));
            assert_memory_equal(weight_data[i], weights[i], tn_array_bytes(n.in[i]));
        }
        assert_int_equal(atomic_load(&sweeps), 0);
        tn_array_release(y);
        close_net(&n, true);
    }
}

int main(void)
{
#define TEST(f, e)                                                                                           \
    {                                                                                                        \
#f, f, NULL, NULL, (void *)(uintptr_t)later_engines[e]                                               \
    }
    const struct CMUnitTest tests[] = {TEST(one_cut, 0),
                                       TEST(one_cut, 1),
                                       TEST(one_cut, 2),
                                       TEST(fails_in_the_middle, 0),
                                       TEST(fails_in_the_middle, 1),
                                       TEST(fails_in_the_middle, 2)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

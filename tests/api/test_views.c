/*
 * What views say is what runs; and nets with nodes that cut them have the same numbers and gradients as eager
 * calls, and say so.
 */
#include "api/support.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/base.h"
#include "support/heard.h"
#include "support/list.h"
#include "support/static_plugin.h"
#include "tenon/plugin/op.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- a plugin whose operators break graphs ---- */

static const char *const names_data[] = {"data", NULL}, *const names_output[] = {"output", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

/* One dimension, of any size. */
static tn_status shape_by_run(tn_infer *i)
{
    if (i->out_shape[0]->ndim < 0) {
        i->out_shape[0]->ndim = 1;
        i->out_shape[0]->dim[0] = -1;
    }
    return TN_OK;
}

/* Of y = 2 x + 1. */
static tn_status gradient(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    const tn_attr_text two = {"scalar", "2"};
    tn_edge dx;
    tn_status st;

    if (!dy.node)
        return TN_OK;
    st = tn_grad_node(g, "_mul_scalar", 1, &dy, 1, &two, &dx);
    return st ? st : g->ops->set(g, 0, dx);
}

#define OP(name_, exec_, shape_, gradient_)                                                                  \
    TEST_OP(.exec = (exec_), .name = (name_), .inputs = names_data, .outputs = names_output,                 \
            .shape = (shape_), .gradient = (gradient_))
static const tn_op later = OP("test_later", TN_EXEC_KERNEL, same_shape, gradient);
static const tn_op host = OP("test_host", TN_EXEC_HOST, same_shape, gradient);
static const tn_op positive = OP("test_positive", TN_EXEC_KERNEL, shape_by_run, NULL);
static const tn_op orphan = OP("test_orphan", TN_EXEC_KERNEL, same_shape, NULL); /* no kernel at all */
static tn_status gradient_later(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? tn_grad_emit(g, 0, "_backward_test_shy", 1, &dy) : TN_OK;
}

static const tn_op shy = OP("test_shy", TN_EXEC_KERNEL, same_shape, gradient_later);
static const tn_op shy_backward = OP("_backward_test_shy", TN_EXEC_KERNEL, same_shape, NULL);
TEST_OPS(op_table, "breaky", &later, &host, &positive, &orphan, &shy, &shy_backward);

static tn_status run_line(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan;
    (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->out[0]); i++)
        out[i] = 2 * in[i] + 1;
    return TN_OK;
}

static tn_status prepare_resizing(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_RESIZES;
    return TN_OK;
}

static tn_status run_positive(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    const tn_tensor *out;
    int64_t count = 0;
    tn_status st;

    (void)plan;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        count += in[i] > 0;
    if ((st = x->ops->resize(x->call, 0, 1, &count, &out, err)))
        return st;
    count = 0;
    for (int64_t i = 0; i < tn_tensor_count(x->in[0]); i++)
        if (in[i] > 0)
            ((float *)out->data)[count++] = in[i];
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, flags_, prepare_, run_)                                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (op_),         \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types, .prepare = (prepare_), .run = (run_)    \
    }
static const tn_kernel kernel_later = KERNEL("test_later", TN_KERNEL_ASYNC, NULL, run_line);
static const tn_kernel kernel_host = KERNEL("test_host", 0u, NULL, run_line);
static const tn_kernel kernel_positive = KERNEL("test_positive", 0u, prepare_resizing, run_positive);
static const tn_kernel kernel_shy = KERNEL("test_shy", 0u, NULL, run_line);
static const tn_kernel kernel_shy_backward = KERNEL("_backward_test_shy", TN_KERNEL_ASYNC, NULL, run_line);
TEST_KERNELS(kernel_table, "cpu", &kernel_later, &kernel_host, &kernel_positive, &kernel_shy,
             &kernel_shy_backward);
TEST_PLUGIN(breaky, "breaky", &op_table.head, &kernel_table.head);

/* ---- contexts and nets ---- */

static heard logged = HEARD(TN_LOG_WARNING); /* by the context opened last */

static tn_ctx *open_with(const char *engine)
{
    const char *settings[] = {"plugins.trust=off", engine, NULL, NULL},
               *folder = getenv("TENON_TEST_PLUGINS");
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                         .settings = settings,
                         .log = heard_take,
                         .log_arg = &logged};
    char path[4096];
    tn_ctx *ctx = NULL;

    if (folder) {
        (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
        settings[2] = path;
    }
    heard_clear(&logged);
    assert_ok(tn_open(&o, &ctx));
    assert_ok(tn_plugin_add(ctx, &breaky));
    return ctx;
}

static tn_ctx *open_breaky(void)
{
    return open_with("engine.type=threaded");
}

static tn_symbol *variable(tn_ctx *ctx, const char *name)
{
    tn_symbol *x = NULL;

    assert_ok(tn_symbol_variable(ctx, name, &x));
    return x;
}

static void breaks_of(tn_ctx *ctx, tn_symbol *s, bool with_shapes, size_t count, const char *const *nodes,
                      const char *const *whys)
{
    const tn_known known = {.name = "x", .ndim = 1, .shape = (int64_t[]){4}, .dtype = TN_F32};
    tn_inferred *shapes = NULL;
    tn_breaks *b = NULL;

    if (with_shapes)
        assert_ok(tn_symbol_infer(s, 1, &known, TN_SYMBOL_PARTIAL, &shapes));
    assert_ok(tn_graph_breaks(ctx, s, shapes, NULL, &b));
    assert_int_equal(tn_breaks_count(b), count);
    for (uint32_t i = 0; i < count; i++) {
        tn_break one = {.struct_size = TN_SIZE(tn_break)};

        assert_ok(tn_breaks_at(b, i, &one));
        assert_string_equal(one.node, nodes[i]);
        assert_int_equal(one.backward, strstr(one.node, "_backward") != NULL);
        if (!strstr(one.why, whys[i]))
            fail_msg("%s: \"%s\" has no \"%s\" in it", one.node, one.why, whys[i]);
    }
    tn_breaks_destroy(b);
    tn_inferred_destroy(shapes);
}

static void named(void **state)
{
    tn_ctx *ctx = open_breaky();
    tn_symbol *s = test_node(ctx, "tanh", "a", NULL, variable(ctx, "x"));

    (void)state;
    s = test_node(ctx, "test_later", "b", NULL, s);
    s = test_node(ctx, "test_host", "c", NULL, s);
    s = test_node(ctx, "test_orphan", "d", NULL, s);
    s = test_node(ctx, "test_positive", "e", NULL, s);
    s = test_node(ctx, "relu", "f", NULL, s);
    breaks_of(ctx, s, true, 4, LIST("b", "c", "d", "e"),
              LIST("test_later completes later", "calls back", "no kernel", "only after it ran"));
    breaks_of(ctx, s, false, 3, LIST("b", "c", "d"),
              LIST("completes later", "calls back", "no loaded plugin"));
    tn_symbol_release(s);
    test_close(ctx);
}

/* Nodes of the gradient are named behind those of the net, by the node that they are the gradient of. */
static void named_backward(void **state)
{
    tn_ctx *ctx = open_breaky();
    tn_symbol *s = test_node(ctx, "tanh", "a", NULL, variable(ctx, "x"));
    tn_breaks *b = NULL;
    tn_break one = {.struct_size = TN_SIZE(tn_break)};

    (void)state;
    s = test_node(ctx, "test_later", "c", NULL, test_node(ctx, "test_shy", "b", NULL, s));
    breaks_of(ctx, s, true, 2, LIST("c", "b_backward"),
              LIST("test_later completes later", "its kernel _backward_test_shy completes later"));
    breaks_of(ctx, s, false, 2, LIST("c", "b_backward"), LIST("completes later", "each of its kernels"));
    assert_ok(tn_graph_breaks(ctx, s, NULL, NULL, &b));
    assert_ok(tn_breaks_at(b, 1, &one));
    assert_int_equal(one.index, 2); /* x, a, b */
    assert_string_equal(one.op, "_backward_test_shy");
    tn_breaks_destroy(b);
    s = test_node(ctx, "test_orphan", "d", NULL, s); /* it has no gradient: nobody trains this */
    breaks_of(ctx, s, true, 2, LIST("c", "d"), LIST("completes later", "no kernel"));
    tn_symbol_release(s);
    s = test_node(ctx, "test_later", "c", NULL, test_node(ctx, "test_shy", "b", NULL, variable(ctx, "x")));
    s = test_node(ctx, "Pooling", "p", NULL, s); /* no kernel is given: inference refuses it */
    breaks_of(ctx, s, false, 2, LIST("c", "b_backward"), LIST("completes later", "each of its kernels"));
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- cuts ---- */

static uint64_t counted(tn_ctx *ctx)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(ctx, &stats));
    return stats.cuts;
}

/* A shape that only users tell is known to the node that runs by itself, too. */
static void shapes_from_users(void **state)
{
    static const char text[] =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, "
        "{\"op\": \"_ones\", \"name\": \"o\", \"attrs\": {\"shape\": \"(0,)\"}, \"inputs\": []}, "
        "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [1, 0, 0]]}, "
        "{\"op\": \"test_later\", \"name\": \"b\", \"inputs\": [[2, 0, 0]]}], "
        "\"arg_nodes\": [0], \"heads\": [[3, 0, 0], [2, 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", "
        "10901]}}";
    tn_ctx *ctx = open_breaky();
    const float values[] = {0, 1, 2, 3}, expected[] = {1, 2, 3, 4};
    tn_array *x = test_array(ctx, 1, (int64_t[]){4}, values), *y[2] = {NULL, NULL};
    tn_cached_op *op = NULL;
    tn_symbol *s = NULL;

    (void)state;
    assert_ok(tn_symbol_from_json(ctx, text, sizeof text - 1, &s));
    assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
    assert_ok(tn_cached_op_call(op, 1, &x, 2, y));
    test_values(y[1], expected, 4, 0);
    assert_int_equal(counted(ctx), 1);
    tn_array_release(y[0]);
    tn_array_release(y[1]);
    tn_array_release(x);
    tn_cached_op_release(op);
    tn_symbol_release(s);
    test_close(ctx);
}

/* tanh(2 (w x) + 1), once eagerly and once as a net that is cut: outputs and gradients have the same bits. */
static void gradients_are_right(void **state)
{
    tn_ctx *ctx = open_breaky();
    const float values[] = {0.1f, -0.2f, 0.3f, 0.5f}, weights[] = {1, 2, -1, 0.5f};
    tn_array *x = test_array(ctx, 1, (int64_t[]){4}, values),
             *w = test_array(ctx, 1, (int64_t[]){4}, weights);
    tn_array *in[2] = {x, w}, *y[3] = {NULL, NULL, NULL};
    tn_symbol *pair[2] = {variable(ctx, "x"), variable(ctx, "w")}, *s = NULL;
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 2, .op = "elemwise_mul", .name = "m", .in = pair};
    tn_cached_op *op = NULL;
    float want[2][4], got[4];
    uint64_t planned, bound;

    (void)state;
    assert_ok(tn_symbol_op(ctx, &call, &s));
    s = test_node(ctx, "tanh", "t", NULL, test_node(ctx, "test_later", "b", NULL, s));
    assert_ok(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    y[0] = test_op(ctx, "elemwise_mul", NULL, 2, in);
    y[1] = test_op(ctx, "test_later", NULL, 1, &y[0]);
    y[2] = test_op(ctx, "tanh", NULL, 1, &y[1]);
    (void)tn_record_set(0);
    assert_ok(tn_backward(ctx, 1, &y[2], NULL, 0));
    assert_ok(tn_array_read(y[2], want[0], sizeof want[0]));
    assert_ok(tn_array_read(tn_array_grad(w), want[1], sizeof want[1]));
    for (size_t i = 0; i < 3; i++)
        tn_array_release(y[i]);
    assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
    for (uint64_t turn = 1; turn <= 3; turn++) {
        y[0] = NULL;
        assert_ok(tn_array_fill(tn_array_grad(w), 7));
        (void)tn_record_set(1);
        assert_ok(tn_cached_op_call(op, 2, in, 1, y));
        (void)tn_record_set(0);
        assert_ok(tn_backward(ctx, 1, y, NULL, 0));
        assert_ok(tn_array_read(y[0], got, sizeof got));
        assert_memory_equal(got, want[0], sizeof got);
        assert_ok(tn_array_read(tn_array_grad(w), got, sizeof got));
        assert_memory_equal(got, want[1], sizeof got);
        tn_array_release(y[0]);
        assert_int_equal(counted(ctx), 2 * turn);
    }
    assert_int_equal(heard_times(&logged, "cut at node \"b\" (test_later)"), 1);
    assert_int_equal(heard_times(&logged, "is cut at"), 1);
    assert_ok(tn_cached_op_memory(op, &planned, &bound));
    tn_cached_op_release(op);
    tn_symbol_release(s);
    tn_symbol_release(pair[0]);
    tn_symbol_release(pair[1]);
    tn_array_release(x);
    tn_array_release(w);
    test_close(ctx);
}

/* Heads that are inputs, or the same twice, and arrays that the caller gives; sizes that only a run tells. */
static void outputs_of_all_kinds(void **state)
{
    tn_ctx *ctx = open_breaky();
    const float values[] = {1, -2, 3, -4}, doubled[] = {3, -3, 7, -7};
    tn_array *x = test_array(ctx, 1, (int64_t[]){4}, values), *given = NULL, *out[4] = {NULL};
    tn_symbol *s = variable(ctx, "x"), *b, *parts[4], *group = NULL, *p;
    tn_cached_op *op = NULL;

    (void)state;
    tn_symbol_retain(s);
    b = test_node(ctx, "test_host", "b", NULL, s);
    tn_symbol_retain(b);
    p = test_node(ctx, "test_positive", "p", NULL, b);
    parts[0] = s;
    parts[1] = parts[2] = b;
    parts[3] = p;
    assert_ok(tn_symbol_group(4, parts, &group));
    assert_ok(tn_cached_op_create(ctx, group, NULL, &op));
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){4}, NULL, &given));
    out[2] = given;
    assert_ok(tn_cached_op_call(op, 1, &x, 4, out));
    assert_ptr_equal(out[2], given);
    assert_true(out[0] != x && out[1] != out[2]);
    test_values(out[0], values, 4, 0);
    test_values(out[1], doubled, 4, 0);
    test_values(out[2], doubled, 4, 0);
    test_values(out[3], (const float[]){3, 7}, 2, 0);
    for (size_t i = 0; i < 4; i++)
        tn_array_release(out[i]);
    tn_array_release(x);
    tn_cached_op_release(op);
    tn_symbol_release(group);
    tn_symbol_release(s);
    tn_symbol_release(b);
    tn_symbol_release(p);
    test_close(ctx);
}

/* What has no kernel is refused by the compiler: nothing ran. */
static void refusals_stand(void **state)
{
    tn_ctx *ctx = open_breaky();
    tn_symbol *s =
        test_node(ctx, "test_orphan", "d", NULL, test_node(ctx, "test_later", "b", NULL, variable(ctx, "x")));
    tn_array *x = test_array(ctx, 1, (int64_t[]){1}, (const float[]){1}), *y = NULL;
    tn_cached_op *op = NULL;

    (void)state;
    assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
    assert_fails(tn_cached_op_call(op, 1, &x, 1, &y), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "test_orphan has no kernel"));
    assert_null(y);
    assert_int_equal(counted(ctx), 0);
    tn_cached_op_release(op);
    tn_symbol_release(s);
    tn_array_release(x);
    test_close(ctx);
}

/* One draw of two Dropouts around a node that breaks the graph; `parts`: the operators one by one. */
static void dropouts(tn_ctx *ctx, bool parts, float out[64])
{
    float ones[64];
    tn_array *x, *y[3] = {NULL, NULL, NULL};

    for (size_t i = 0; i < 64; i++)
        ones[i] = 1;
    x = test_array(ctx, 1, (int64_t[]){64}, ones);
    assert_ok(tn_random_seed(ctx, 5, NULL));
    (void)tn_train_set(1);
    if (parts) {
        y[0] = test_op(ctx, "Dropout", NULL, 1, &x);
        y[1] = test_op(ctx, "test_host", NULL, 1, &y[0]);
        y[2] = test_op(ctx, "Dropout", NULL, 1, &y[1]);
    } else {
        tn_symbol *s = test_node(ctx, "Dropout", "d", NULL, variable(ctx, "x"));
        tn_cached_op *op = NULL;

        s = test_node(ctx, "Dropout", "e", NULL, test_node(ctx, "test_host", "b", NULL, s));
        assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
        assert_ok(tn_cached_op_call(op, 1, &x, 1, &y[2]));
        tn_cached_op_release(op);
        tn_symbol_release(s);
    }
    (void)tn_train_set(0);
    assert_ok(tn_array_read(y[2], out, 64 * sizeof *out));
    for (size_t i = 0; i < 3; i++)
        tn_array_release(y[i]);
    tn_array_release(x);
}

static void draws_are_the_same(void **state)
{
    tn_ctx *ctx = open_breaky();
    float eager[64], net[64];

    (void)state;
    dropouts(ctx, true, eager);
    dropouts(ctx, false, net);
    assert_memory_equal(eager, net, sizeof net);
    assert_int_equal(counted(ctx), 2); /* before and behind it */
    test_close(ctx);
}

typedef struct broken_net {
    tn_ctx *ctx;
    tn_symbol *s;
    tn_array *x;
} broken_net;

/* Texts that only explain may be left out for want of memory: then the call succeeds. Nothing is lost either
 * way. */
static uint64_t survives_each_failure(tn_status (*body)(void *arg), void *arg)
{
    for (uint64_t nth = 1;; nth++) {
        tni_mem_stats before, after;
        tn_status st;
        bool failed;

        tni_mem_stats_get(&before);
        tni_mem_fail_at(nth, false, true);
        st = body(arg);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, false);
        tni_mem_stats_get(&after);
        if (st != TN_OK && st != TN_E_NOMEM)
            fail_msg("allocation %llu fails, and the status is %s: %s", (unsigned long long)nth,
                     tn_status_name(st), tn_error_text());
        assert_int_equal(after.live_count, before.live_count);
        if (!failed)
            return nth - 1;
    }
}

static tn_status net_call(void *arg)
{
    broken_net *n = arg;
    tn_cached_op *op = NULL;
    tn_array *y = NULL;
    tn_status st = tn_cached_op_create(n->ctx, n->s, NULL, &op);

    if (!st && !(st = tn_cached_op_call(op, 1, &n->x, 1, &y)))
        st = tn_array_wait(y);
    tn_array_release(y);
    tn_cached_op_release(op);
    return st;
}

/* Of a part that compiles. */
static tn_status net_look(void *arg)
{
    const tn_known known = {.name = "x", .ndim = 1, .shape = (int64_t[]){3}, .dtype = TN_F32};
    broken_net *n = arg;
    tn_symbol *x = NULL, *s = NULL;
    tn_inferred *shapes = NULL;
    tn_program_view *plan = NULL;
    tn_breaks *b = NULL;
    tn_status st = tn_symbol_variable(n->ctx, "x", &x);
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .op = "tanh", .name = "t", .in = &x};

    if (!st && !(st = tn_symbol_op(n->ctx, &call, &s)) && !(st = tn_symbol_infer(s, 1, &known, 0, &shapes)) &&
        !(st = tn_program_view_plan(n->ctx, s, shapes, NULL, TN_VIEW_RECORDED, &plan)))
        st = tn_graph_breaks(n->ctx, s, shapes, NULL, &b);
    tn_breaks_destroy(b);
    tn_program_view_destroy(plan);
    tn_inferred_destroy(shapes);
    tn_symbol_release(s);
    tn_symbol_release(x);
    return st;
}

static void memory_runs_out(void **state)
{
    broken_net n = {.ctx = open_with("engine.type=naive")}; /* all is freed when a call is over */
    tn_symbol *s = test_node(n.ctx, "test_host", "b", NULL, variable(n.ctx, "x"));

    (void)state;
    n.s = test_node(n.ctx, "tanh", "t", NULL, s);
    n.x = test_array(n.ctx, 1, (int64_t[]){3}, (const float[]){1, 2, 3});
    assert_ok(
        net_call(&n)); /* caches are filled; the pool that this loads makes the kernels be gathered anew */
    assert_ok(net_call(&n));
    assert_ok(net_look(&n));
    assert_true(survives_each_failure(net_call, &n) > 20);
    assert_true(survives_each_failure(net_look, &n) > 20);
    tn_symbol_release(n.s);
    tn_array_release(n.x);
    (void)tn_close(n.ctx); /* which may tell of work that failed, as it should */
}

/* ---- what a view says is what runs ---- */

static void views_agree(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    const tn_known known = {.name = "x", .ndim = 2, .shape = (int64_t[]){3, 5}, .dtype = TN_F32};
    tn_symbol *s = test_node(ctx, "FullyConnected", "a", LIST("num_hidden", "7"), variable(ctx, "x"));
    tn_view_program plan = {.struct_size = TN_SIZE(tn_view_program)}, ran = plan;
    tn_program_view *planned = NULL, *seen = NULL;
    tn_array *in[5] = {NULL}, *y = NULL;
    tn_inferred *shapes = NULL;
    tn_cached_op *op = NULL;
    uint64_t bytes = 0, bound = 0;

    (void)state;
    s = test_node(ctx, "FullyConnected", "b", LIST("num_hidden", "2"), test_node(ctx, "tanh", "t", NULL, s));
    assert_ok(tn_symbol_infer(s, 1, &known, 0, &shapes));
    assert_ok(tn_program_view_plan(ctx, s, shapes, NULL, 0, &planned));
    for (size_t i = 0; i < COUNT(in); i++) {
        tn_known k;

        assert_ok(tn_inferred_at(shapes, TN_LIST_INPUTS, i, &k));
        assert_ok(tn_array_zeros(ctx, k.dtype, k.ndim, k.shape, NULL, &in[i]));
    }
    assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
    assert_ok(tn_cached_op_call(op, COUNT(in), in, 1, &y));
    assert_ok(tn_cached_op_memory(op, &bytes, &bound));
    assert_ok(tn_program_view_cached(op, &seen));
    assert_ok(tn_program_view_info(planned, &plan));
    assert_ok(tn_program_view_info(seen, &ran));
    assert_true(plan.planned == bytes && plan.bound == bound && ran.planned == bytes);
    assert_true(plan.step_count == 3 && ran.step_count == 3 && plan.entry_count == ran.entry_count);
    for (uint32_t i = 0; i < plan.step_count; i++) {
        tn_view_step one = {.struct_size = TN_SIZE(tn_view_step)}, other = one;

        assert_ok(tn_program_view_step(planned, i, &one));
        assert_ok(tn_program_view_step(seen, i, &other));
        assert_string_equal(one.node, other.node);
        assert_string_equal(one.kernel, other.kernel);
    }
    tn_cached_op_release(op);
    tn_symbol_release(s);
    tn_inferred_destroy(shapes);
    for (size_t i = 0; i < COUNT(in); i++)
        tn_array_release(in[i]);
    tn_array_release(y);
    test_close(ctx);
    assert_ok(tn_program_view_info(seen, &ran)); /* a view outlives everything */
    assert_string_equal(ran.device, "cpu:0");
    tn_program_view_destroy(seen);
    tn_program_view_destroy(planned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),
        cmocka_unit_test(named_backward),
        cmocka_unit_test(shapes_from_users),
        cmocka_unit_test(gradients_are_right),
        cmocka_unit_test(outputs_of_all_kinds),
        cmocka_unit_test(refusals_stand),
        cmocka_unit_test(draws_are_the_same),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(views_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Operators that run graphs of their own, tried with one that repeats its graph: the bits of the same graph
 * written out, gradients too, in every engine and with one worker; a cut that is told; failures, draws, and
 * calls by the dozen that nobody waits for.
 */
#include "net.h"
#include "support/runs.h"
#include "support/static_plugin.h"
#include "tenon/plugin/attr.h"

#include <string.h>

/* ---- y = body(… body(data, weight) …, weight), `times` times ------------------------------------------- */

static tn_status repeat_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);
}

static tn_status backward_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < 2 && !st; k++)
        st = tn_shape_unify(i, i->in_shape[1 + k], i->out_shape[k]);
    return st ? st : tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);
}

static tn_status repeat_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_test_repeat", 3, in, 0, 2) : TN_OK;
}

static const tn_attr_def attrs[] = {TN_ATTR_INT_IN("times", TN_REQUIRED, 1, 64, "how often"), TN_ATTR_END};
static const char *const names_in[] = {"data", "weight", NULL}, *const names_out[] = {"output", NULL};
static const char *const names_dy[] = {"dy", "data", "weight", NULL}, *const names_d[] = {"dx", "dw", NULL};
static tn_status repeat_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err);
static tn_status repeat_backward_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err);

#define OP(name_, exec_, in_, out_, shape_, ...)                                                             \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, run_bodies), .version = 1, .doc = "for tests",                \
        .exec = (exec_), .name = (name_), .attrs = attrs, .inputs = (in_), .outputs = (out_),                \
        .shape = (shape_), __VA_ARGS__                                                                       \
    }
static const tn_op repeat = OP("test_repeat", TN_EXEC_SUBGRAPH, names_in, names_out, repeat_shape,
                               .gradient = repeat_gradient, .run_bodies = repeat_run);
static const tn_op repeat_backward =
    OP("_backward_test_repeat", TN_EXEC_SUBGRAPH, names_dy, names_d, backward_shape, .flags = TN_OP_BACKWARD,
       .run_bodies = repeat_backward_run);
static const tn_op lonely =
    OP("test_lonely", TN_EXEC_SUBGRAPH, names_in, names_out, repeat_shape, .flags = 0);
static const tn_op hasty =
    OP("test_hasty", TN_EXEC_KERNEL, names_in, names_out, repeat_shape, .run_bodies = repeat_run);
static const tn_op breaking =
    OP("test_breaking", TN_EXEC_KERNEL, names_in, names_out, repeat_shape, .flags = 0);
TEST_OPS(op_table, "repeats", &repeat, &repeat_backward, &breaking);

static atomic_int breaks_left; /* runs of test_breaking that fail */

static tn_status breaking_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    if (atomic_fetch_sub(&breaks_left, 1) > 0)
        return tn_fail(err, TN_E_IO, "it broke");
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel breaking_kernel =
    TEST_KERNEL("test_breaking", "cpu", .name = "breaking", .types = types, .run = breaking_run);
TEST_KERNELS(kernel_table, "cpu", &breaking_kernel);
TEST_PLUGIN(plugin, "repeats", &op_table.head, &kernel_table.head);

/* ---- what runs it -------------------------------------------------------------------------------------- */

typedef struct chain {
    tn_body_call *call;
    const tn_body_ops *ops;
    tn_err *err;
    int64_t times;
} chain;

static chain chain_of(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    return (chain){call, ops, err, tn_value_int(ops->attrs(call)[0])};
}

static tn_status chain_run(const chain *c, tn_body_array *data, tn_body_array *weight, tn_body_array *last,
                           const uint8_t *modes)
{
    tn_body_array *in[2] = {data, weight}, *out = NULL;
    tn_status st = TN_OK;

    for (int64_t k = 0; k < c->times && !st; k++) {
        out = last;
        if (k + 1 < c->times || !last)
            st = c->ops->like(c->call, data, &out, c->err);
        if (!st)
            st = c->ops->forward(c->call, 0, in, &out, modes, NULL, c->err);
        in[0] = out;
    }
    return st;
}

static tn_status repeat_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    const chain c = chain_of(call, ops, err);

    return chain_run(&c, ops->input(call, 0), ops->input(call, 1), ops->output(call, 0), NULL);
}

/* The forward again, then from its last run to its first; the first of these writes dw, the others add. */
static tn_status repeat_backward_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    const chain c = chain_of(call, ops, err);
    uint8_t modes[2] = {TN_MODE_WRITE, TN_MODE_WRITE};
    tn_body_array *dy = ops->input(call, 0), *grads[2] = {NULL, ops->output(call, 1)};
    tn_status st = chain_run(&c, ops->input(call, 1), ops->input(call, 2), NULL, modes);

    for (int64_t k = c.times; k-- > 0 && !st;) {
        grads[0] = ops->output(call, 0);
        if (k > 0)
            st = ops->like(call, dy, &grads[0], err);
        if (!st)
            st = ops->backward(call, (uint32_t)k, &dy, modes, grads, err);
        dy = grads[0];
        modes[1] = TN_MODE_ADD;
    }
    return st;
}

/* ---- nets ---------------------------------------------------------------------------------------------- */

#define VARIABLE(name) "{\"op\":\"null\",\"name\":\"" name "\",\"inputs\":[]}"
#define NODE(op, name, inputs) "{\"op\":\"" op "\",\"name\":\"" name "\",\"inputs\":" inputs "}"
#define REPEAT(op, name, times, inputs, body)                                                                \
    "{\"op\":\"" op "\",\"name\":\"" name "\",\"attrs\":{\"times\":\"" times "\"},\"inputs\":" inputs        \
    ",\"subgraphs\":[" body "]}"
#define GRAPH(nodes, head) "{\"nodes\":[" nodes "],\"arg_nodes\":[0,1],\"heads\":[" head "]}"
#define BODY                                                                                                 \
    GRAPH(VARIABLE("h") "," VARIABLE("v") "," NODE("elemwise_mul", "m", "[[0,0],[1,0]]") "," NODE(           \
              "elemwise_add", "a", "[[2,0],[0,0]]") "," NODE("tanh", "t", "[[3,0]]"),                        \
          "[4,0]")
#define NET(op, times, body)                                                                                 \
    GRAPH(VARIABLE("x") "," VARIABLE("w") "," NODE("sigmoid", "s", "[[0,0]]") "," REPEAT(                    \
              op, "loop", times, "[[2,0],[1,0]]", body) "," NODE("square", "q", "[[3,0]]"),                  \
          "[4,0]")

static tni_context *open_with(const char *engine)
{
    tni_context *c = test_context((const char *const[]){engine, NULL});

    atomic_store(&breaks_left, 0);
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    return c;
}

static tni_symbol *symbol_of(tni_context *c, const char *json)
{
    tni_symbol *s = NULL;

    assert_ok(tni_symbol_from_json(c->ops, "net", json, strlen(json), &s));
    return s;
}

/* What NET with BODY is, written out. */
static tni_symbol *written_out(tni_context *c, int times)
{
    tni_symbol *x = net_variable(c, "x"), *w = net_variable(c, "w");
    tni_symbol *h = net_op(c, "sigmoid", 1, &x, NULL);

    for (int k = 0; k < times; k++) {
        tni_symbol *m = net_op(c, "elemwise_mul", 2, (tni_symbol *[]){h, w}, NULL);

        h = net_take(c, "elemwise_add", m, h, NULL);
        h = net_take(c, "tanh", h, NULL, NULL);
    }
    tni_symbol_release(x);
    tni_symbol_release(w);
    return net_take(c, "square", h, NULL, NULL);
}

#define COUNT 3
static const float values_x[COUNT] = {0.5f, -1.25f, 2}, values_w[COUNT] = {0.25f, 1.5f, -0.75f};

/* ---- the bits ------------------------------------------------------------------------------------------ */

/* Output, gradients of x and w: twice over one tape, then of a further call; w's is added up. */
static void trained(tni_context *c, tni_symbol *s, float *out)
{
    const tni_backward_options retain = {.retain = true};
    tni_array *x = test_vector(c, COUNT, values_x), *w = test_vector(c, COUNT, values_w);
    tni_array *in[] = {x, w}, *y[2] = {NULL, NULL};
    tni_cached_op *op = NULL;

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_ok(tni_grad_attach(c, x, TN_MODE_WRITE, NULL));
    assert_ok(tni_grad_attach(c, w, TN_MODE_ADD, NULL));
    for (int turn = 0; turn < 2; turn++) {
        test_record(true, true);
        assert_ok(tni_cached_op_call(op, 2, in, 1, &y[turn]));
        test_record(false, false);
        if (turn == 0)
            assert_ok(tni_backward(c, 1, &y[turn], NULL, &retain));
        assert_ok(tni_backward(c, 1, &y[turn], NULL, NULL));
    }
    assert_ok(tni_array_read(y[1], out, COUNT * sizeof *out));
    assert_ok(tni_array_read(tni_grad_get(x), out + COUNT, COUNT * sizeof *out));
    assert_ok(tni_array_read(tni_grad_get(w), out + 2 * COUNT, COUNT * sizeof *out));
    tni_array_release(y[0]);
    tni_array_release(y[1]);
    tni_array_release(x);
    tni_array_release(w);
    tni_cached_op_release(op);
}

static void same_bits(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "3", BODY)), *flat = written_out(c, 3);
    float want[3 * COUNT], got[3 * COUNT];

    trained(c, flat, want);
    assert_int_equal(test_cuts(c), 0);
    trained(c, loop, got);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(test_cuts(c), 5 * 2); /* around each of five runs: two forwards, three backwards */
    assert_int_equal(
        heard_times(&test_logged, "cut at node \"loop\" (test_repeat): it runs graphs of its own"), 1);
    assert_int_equal(heard_times(&test_logged, "(test_repeat)"), 1);
    tni_symbol_release(loop);
    tni_symbol_release(flat);
    test_context_close(c);
}

/* Who asks beforehand is told of the node and of its backward. */
static void breaks_named(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "3", BODY));
    tni_breaks_spec spec = {.threads = 1};
    tni_graph *g = NULL, *trained_graph = NULL;
    tni_vec found;

    tni_vec_init(&found, sizeof(tni_break), 16);
    assert_ok(tni_default_device(c, &spec.device));
    assert_ok(tni_graph_of(loop, &g));
    assert_ok(tni_graph_infer(g, true));
    assert_ok(tni_graph_trained(g, &trained_graph));
    spec.graph = trained_graph;
    assert_ok(tni_graph_breaks(c->selector, &spec, &found));
    assert_int_equal(found.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const tni_break *b = tni_vec_at(&found, i);

        assert_string_equal(trained_graph->nodes[b->node].name, i ? "loop_backward" : "loop");
        assert_true(b->runs);
        assert_string_equal(b->why, "it runs graphs of its own");
    }
    tni_vec_fini(&found);
    tni_graph_destroy(trained_graph);
    tni_graph_destroy(g);
    tni_symbol_release(loop);
    test_context_close(c);
}

/* Repeats within repeats: 2 times 3 are 6. Each of the 2 sums its 3 gradients of w before they meet. */
static void nested(void **state)
{
    static const char *const inner = NET(
        "test_repeat", "2",
        GRAPH(VARIABLE("g") "," VARIABLE("u") "," REPEAT("test_repeat", "inner", "3", "[[0,0],[1,0]]", BODY),
              "[2,0]"));
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, inner), *flat = written_out(c, 6);
    float want[3 * COUNT], got[3 * COUNT];

    trained(c, flat, want);
    trained(c, loop, got);
    assert_memory_equal(got, want, 2 * COUNT * sizeof *want);
    for (int i = 2 * COUNT; i < 3 * COUNT; i++)
        assert_float_equal(got[i], want[i], 1e-6f);
    tni_symbol_release(loop);
    tni_symbol_release(flat);
    test_context_close(c);
}

/* Far more at once than there are threads for callbacks, and one worker: nobody waits for anybody. */
static void many_at_once(void **state)
{
    enum { CALLS = 60 };
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "4", BODY)), *flat = written_out(c, 4);
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)};
    tni_array *y[CALLS] = {NULL}, *want = NULL;
    tni_cached_op *op = NULL;

    net_call(c, flat, true, in, &want);
    assert_ok(tni_cached_op_create(c, loop, NULL, &op));
    for (int k = 0; k < CALLS; k++)
        assert_ok(tni_cached_op_call(op, 2, in, 1, &y[k]));
    for (int k = CALLS; k-- > 0;) {
        net_same(y[k], want, "one of many");
        tni_array_release(y[k]);
    }
    tni_array_release(want);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_cached_op_release(op);
    tni_symbol_release(loop);
    tni_symbol_release(flat);
    test_context_close(c);
}

/* Everything is given up while it is under way. */
static void closed_while_pending(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "64", BODY));
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL;

    for (int k = 0; k < 5; k++) {
        net_call(c, loop, true, in, &y);
        tni_array_release(y);
    }
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_symbol_release(loop);
    test_context_close(c);
}

/* An input that is overwritten right behind the call is read before, and one written before is read then. */
static void order_is_kept(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "3", BODY)), *flat = written_out(c, 3);
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)};
    tni_array *y[3] = {NULL}, *want[2] = {NULL};
    tni_cached_op *op = NULL;

    net_call(c, flat, true, in, &want[0]);
    assert_ok(tni_cached_op_create(c, loop, NULL, &op));
    assert_ok(tni_cached_op_call(op, 2, in, 1, &y[0]));
    assert_ok(tni_array_fill(in[0], 0.125));
    assert_ok(tni_cached_op_call(op, 2, in, 1, &y[1]));
    net_call(c, flat, true, in, &want[1]);
    assert_ok(tni_array_fill(in[0], 7));
    net_same(y[0], want[0], "before");
    net_same(y[1], want[1], "behind");
    for (int k = 0; k < 2; k++) {
        tni_array_release(y[k]);
        tni_array_release(want[k]);
        tni_array_release(in[k]);
    }
    tni_cached_op_release(op);
    tni_symbol_release(loop);
    tni_symbol_release(flat);
    test_context_close(c);
}

/* ---- what goes wrong ----------------------------------------------------------------------------------- */

#define BREAKING_BODY                                                                                        \
    GRAPH(VARIABLE("h") "," VARIABLE("v") "," REPEAT("test_breaking", "b", "1", "[[0,0],[1,0]]", ""), "[2,"  \
                                                                                                      "0]")

/* The failure of a body names the nodes on the way, reaches the results alone, and passes. */
static void failures_travel(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "3", BREAKING_BODY));
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_cached_op_create(c, loop, NULL, &op));
    for (int at = 0; at < 2; at++) {
        atomic_store(&breaks_left, 1);
        assert_ok(tni_cached_op_call(op, 2, in, 1, &y));
        assert_int_equal(tni_array_wait(y), TN_E_IO);
        assert_non_null(strstr(tni_error_message(), "node \"loop\""));
        assert_non_null(strstr(tni_error_message(), "node \"b\": it broke"));
        assert_ok(tni_array_wait(in[0]));
        assert_ok(tni_engine_wait_all(c->engine)); /* it was told once */
        tni_array_release(y);
        y = NULL;
        atomic_store(&breaks_left, 0);
        assert_ok(tni_cached_op_call(op, 2, in, 1, &y));
        assert_ok(tni_array_wait(y));
        tni_array_release(y);
        y = NULL;
    }
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_cached_op_release(op);
    tni_symbol_release(loop);
    test_context_close(c);
}

/* A body that cannot be compiled comes out at the wait: its shapes are known then. */
static void bodies_refused(void **state)
{
    static const char *const wrong =
        NET("test_repeat", "2",
            GRAPH(VARIABLE("h") "," VARIABLE("v") "," NODE("dot", "d", "[[0,0],[1,0]]"), "[2,0]"));
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, wrong);
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL;

    net_call(c, loop, true, in, &y); /* of vectors dot is a number, and the second one has no such operand */
    assert_true(tni_array_wait(y) != TN_OK);
    tni_array_release(y);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_symbol_release(loop);
    (void)tni_engine_wait_all(c->engine);
    test_context_close(c);
}

static void refused(tni_context *c, const char *json, const char *why)
{
    tni_symbol *s = symbol_of(c, json);
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL;
    tni_cached_op *op = NULL;

    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    assert_int_equal(tni_cached_op_call(op, 2, in, 1, &y), TN_E_UNSUPPORTED);
    if (!strstr(tni_error_message(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tni_error_message(), why);
    assert_null(y);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_cached_op_release(op);
    tni_symbol_release(s);
}

/* Who is of this kind says how it runs, and nobody else does. */
static void nothing_runs_it(void **state)
{
    tni_context *c = open_with(*state);

    assert_int_equal(tni_opset_add(c->ops, &lonely, NULL), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tni_error_message(), "operator test_lonely runs graphs of its own, but"));
    assert_int_equal(tni_opset_add(c->ops, &hasty, NULL), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tni_error_message(), "test_hasty"));
    test_context_close(c);
}

static void hosts_only(void **state)
{
    tni_context *c = open_with(*state);

    refused(c, NET("test_repeat", "2", BODY), "on hosts only, not fake:0");
    test_context_close(c);
}

/* No call of one operator has a graph to run, and no gradient of a gradient goes through one. */
static void nets_only(void **state)
{
    const tni_backward_options twice = {.create = true};
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "2", BODY));
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL,
              *dx = NULL;

    assert_int_equal(tni_invoke_text(c, "test_repeat", 2, in, 1, (const char *[]){"times"},
                                     (const char *[]){"2"}, 1, &y, NULL),
                     TN_E_UNSUPPORTED);
    assert_non_null(strstr(tni_error_message(), "a node of a net"));
    assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
    test_record(true, true);
    net_call(c, loop, true, in, &y);
    assert_int_equal(tni_grad(c, 1, &y, NULL, 1, in, &twice, &dx), TN_E_UNSUPPORTED);
    test_record(false, false);
    assert_ok(tni_backward(c, 1, &y, NULL, NULL));
    tni_array_release(y);
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_symbol_release(loop);
    test_context_close(c);
}

/* Whatever allocation fails: an error at the call or at the wait, or the right numbers. */
static void memory_fails(void **state)
{
    tni_context *c = open_with(*state);
    tni_symbol *loop = symbol_of(c, NET("test_repeat", "2", BODY));
    tni_array *in[] = {test_vector(c, COUNT, values_x), test_vector(c, COUNT, values_w)}, *y = NULL;
    float want[COUNT], got[COUNT];
    bool failed = true;

    assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
    for (uint64_t nth = 0; failed; nth = test_failure_next(nth, 20)) {
        tni_cached_op *op = NULL;
        tn_status st;

        assert_ok(tni_cached_op_create(c, loop, NULL, &op));
        test_record(true, true);
        tni_mem_fail_at(nth, false, false);
        if (!(st = tni_cached_op_call(op, 2, in, 1, &y)) && !(st = tni_backward(c, 1, &y, NULL, NULL)))
            st = tni_array_read(tni_grad_get(in[0]), nth ? got : want, sizeof got);
        (void)tni_engine_wait_all(c->engine);
        failed = tni_mem_failed() || !nth;
        tni_mem_fail_at(0, false, false);
        test_record(false, false);
        assert_true(st == TN_OK || st == TN_E_NOMEM);
        if (!st && nth)
            assert_memory_equal(got, want, sizeof got);
        tni_array_release(y);
        y = NULL;
        tni_cached_op_release(op);
    }
    tni_array_release(in[0]);
    tni_array_release(in[1]);
    tni_symbol_release(loop);
    test_context_close(c);
}

/* ---- draws --------------------------------------------------------------------------------------------- */

/* Each run within draws for itself, the backward as its forward did, and other draws stay as they were. */
static void draws_within(void **state)
{
    enum { LONG = 256 };
    static const char *const dropping =
        GRAPH(VARIABLE("x") "," VARIABLE("w") "," REPEAT(
                  "test_repeat", "loop", "2", "[[0,0],[1,0]]",
                  GRAPH(VARIABLE("h") "," VARIABLE("v") "," NODE("Dropout", "d", "[[0,0]]") "," NODE(
                            "elemwise_add", "a", "[[2,0],[1,0]]"),
                        "[3,0]")),
              "[2,0]");
    tni_context *c = open_with(*state);
    tni_symbol *s = symbol_of(c, dropping);
    float ones[LONG], y[LONG], again[LONG], dx[LONG];
    tni_array *in[2], *out = NULL, *zeros;
    tni_device *d;
    int counts[3] = {0};

    for (int i = 0; i < LONG; i++)
        ones[i] = 1;
    assert_ok(tni_default_device(c, &d));
    in[0] = test_vector(c, LONG, ones);
    memset(again, 0, sizeof again);
    zeros = in[1] = test_vector(c, LONG, again);
    assert_ok(tni_grad_attach(c, in[0], TN_MODE_WRITE, NULL));
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(tni_random_seed(c, 5, NULL));
        test_record(true, true);
        net_call(c, s, true, in, &out);
        test_record(false, false);
        assert_int_equal(tni_random_position(c, d), 1); /* one draw, whatever is within */
        assert_ok(tni_backward(c, 1, &out, NULL, NULL));
        assert_ok(tni_array_read(out, turn ? again : y, sizeof y));
        assert_ok(tni_array_read(tni_grad_get(in[0]), dx, sizeof dx));
        assert_memory_equal(dx, y, sizeof y); /* x is one, so both are the product of the masks */
        tni_array_release(out);
    }
    assert_memory_equal(again, y, sizeof y);
    for (int i = 0; i < LONG; i++)
        counts[y[i] == 0 ? 0 : y[i] == 4 ? 1 : 2]++; /* two masks that are not the same */
    assert_in_range(counts[0], LONG / 2, LONG - 1);
    assert_true(counts[1] > 0);
    assert_int_equal(counts[2], 0);
    tni_array_release(in[0]);
    tni_array_release(zeros);
    tni_symbol_release(s);
    test_context_close(c);
}

#define WITH(test, engine)                                                                                   \
    {                                                                                                        \
#test " " engine, test, NULL, NULL, (void *)"engine.type=" engine                                    \
    }
#define EVERYWHERE(test) WITH(test, "threaded"), WITH(test, "naive"), WITH(test, "stepped")

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVERYWHERE(same_bits),
        EVERYWHERE(nested),
        EVERYWHERE(many_at_once),
        EVERYWHERE(order_is_kept),
        EVERYWHERE(failures_travel),
        EVERYWHERE(closed_while_pending),
        EVERYWHERE(bodies_refused),
        EVERYWHERE(nothing_runs_it),
        EVERYWHERE(draws_within),
        WITH(breaks_named, "threaded"),
        EVERYWHERE(nets_only),
        EVERYWHERE(memory_fails),
        cmocka_unit_test_prestate(hosts_only, (void *)"device.default=fake:0"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

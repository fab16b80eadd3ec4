/*
 * _foreach, _while_loop and _cond: what their nodes must say, loops of no step, rows that no step fills, one
 * branch only, loops whose end only values tell, in each engine. Numbers of MXNet are in tests/mxnet.
 */
#include "api/support.h"

#include <stdio.h>

#define V(name) "{\"op\":\"null\",\"name\":\"" name "\",\"inputs\":[]}"
#define N(op, name, in) "{\"op\":\"" op "\",\"name\":\"" name "\",\"inputs\":" in "}"
#define A(op, name, attrs, in)                                                                               \
    "{\"op\":\"" op "\",\"name\":\"" name "\",\"attrs\":{" attrs "},\"inputs\":" in "}"
#define G(nodes, arguments, heads) "{\"nodes\":[" nodes "],\"arg_nodes\":" arguments ",\"heads\":" heads "}"

/* (x * w + s, s + x) */
#define STEP                                                                                                 \
    G(V("x") "," V("w") "," N("elemwise_mul", "m", "[[0,0],[1,0]]") "," V("s") "," N(                        \
          "elemwise_add", "a", "[[2,0],[3,0]]") "," N("elemwise_add", "b", "[[3,0],[0,0]]"),                 \
      "[0,1,3]", "[[4,0],[5,0]]")
/* i < 3 */
#define BELOW3 G(V("i") "," A("_lesser_scalar", "l", "\"scalar\":\"3\"", "[[0,0]]"), "[0]", "[[1,0]]")
/* (a * w, i + 1, a + 1): variables in order of first use, a, w, i */
#define COUNT                                                                                                \
    G(V("i") "," V("a") "," V("w") "," N("elemwise_mul", "m", "[[1,0],[2,0]]") "," A(                        \
          "_plus_scalar", "n", "\"scalar\":\"1\"", "[[0,0]]") "," A("_plus_scalar", "b", "\"scalar\":\"1\"", \
                                                                    "[[1,0]]"),                              \
      "[0,1,2]", "[[3,0],[4,0],[5,0]]")
#define NODE(op, attrs, bodies)                                                                              \
    "{\"op\":\"" op "\",\"name\":\"loop\",\"attrs\":{" attrs "},\"inputs\":[[0,0],[1,0],[2,0]]" bodies "}"
#define NET(node, heads) G(V("p") "," V("q") "," V("r") "," node, "[0,1,2]", heads)
#define BODIES(list) ",\"subgraphs\":[" list "]"
#define FOREACH(data, states, others, args, outs, out_data)                                                  \
    "\"in_data_locs\":\"" data "\",\"in_state_locs\":\"" states "\",\"remain_locs\":\"" others               \
    "\",\"num_args\":\"" args "\",\"num_outputs\":\"" outs "\",\"num_out_data\":\"" out_data "\""
#define WHILE(cond, func, vars, most, args, outs, out_data)                                                  \
    "\"cond_input_locs\":\"" cond "\",\"func_input_locs\":\"" func "\",\"func_var_locs\":\"" vars            \
    "\",\"max_iterations\":\"" most "\",\"num_args\":\"" args "\",\"num_outputs\":\"" outs                   \
    "\",\"num_out_data\":\"" out_data "\""
#define COND(cond, then_, else_, args, outs)                                                                 \
    "\"cond_input_locs\":\"" cond "\",\"then_input_locs\":\"" then_ "\",\"else_input_locs\":\"" else_        \
    "\",\"num_args\":\"" args "\",\"num_outputs\":\"" outs "\""
#define SCAN(attrs, bodies) NET(NODE("_foreach", attrs, bodies), "[[3,0],[3,1]]")
#define LOOP(attrs, bodies) NET(NODE("_while_loop", attrs, bodies), "[[3,0],[3,1],[3,2]]")
#define BRANCH(attrs, bodies) NET(NODE("_cond", attrs, bodies), "[[3,0]]")
#define GOOD_SCAN FOREACH("[0]", "[2]", "[1]", "4", "2", "1")
#define GOOD_LOOP(most) WHILE("[0]", "[1,2,0]", "[2,0]", most, "5", "3", "1")
#define ONE G(V("c") "," N("_copy", "k", "[[0,0]]"), "[0]", "[[1,0]]")
#define TWICE G(V("c") "," N("square", "k", "[[0,0]]"), "[0]", "[[1,0]]")

static tn_ctx *open_with(const char *engine)
{
    return test_open((const char *const[]){engine, NULL});
}

static tn_array *vector(tn_ctx *ctx, int32_t ndim, const int64_t *shape, const float *values)
{
    tn_array *a = NULL;

    assert_ok(tn_array_from(ctx, TN_F32, ndim, shape, values, &a));
    return a;
}

static void numbers(tn_array *a, size_t count, const float *want)
{
    float have[64];

    assert_true(count <= 64);
    assert_int_equal(tn_array_count(a), count);
    assert_ok(tn_array_read(a, have, count * sizeof *have));
    for (size_t i = 0; i < count; i++)
        assert_float_equal(have[i], want[i], 1e-5f);
}

static tn_cached_op *net_of(tn_ctx *ctx, const char *json)
{
    tn_symbol *s = NULL;
    tn_cached_op *net = NULL;

    assert_ok(tn_symbol_from_json(ctx, json, strlen(json), &s));
    assert_ok(tn_cached_op_create(ctx, s, NULL, &net));
    tn_symbol_release(s);
    return net;
}

/* Inputs with gradients, a recorded call, a backward from heads of ones. */
static void trained(tn_cached_op *net, tn_ctx *ctx, tn_array **in, uint32_t outs, tn_array **out)
{
    for (int i = 0; i < 3; i++)
        assert_ok(tn_attach_grad(ctx, in[i], TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    assert_ok(tn_cached_op_call(net, 3, in, outs, out));
    (void)tn_record_set(0);
    assert_ok(tn_backward(ctx, outs, out, NULL, 0));
}

static void drop(tn_array **arrays, int count)
{
    for (int i = 0; i < count; i++)
        tn_array_release(arrays[i]);
}

/* ---- what nodes say ------------------------------------------------------------------------------------ */

static const struct {
    const char *json;
    tn_status status;
    const char *text;
} wrong[] = {
    {SCAN(GOOD_SCAN, ""), TN_E_ARG, "0 graphs, but it runs 1"},
    {SCAN(GOOD_SCAN, BODIES(STEP "," STEP)), TN_E_ARG, "2 graphs, but it runs 1"},
    {SCAN(GOOD_SCAN, BODIES(ONE)), TN_E_ARG,
     "graph 0 has 1 inputs and 1 outputs, but the attributes say 3 and 2"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "5", "2", "1"), BODIES(STEP)), TN_E_ATTR, "of 4 inputs"},
    {SCAN(FOREACH("[]", "[2]", "[0,1]", "4", "2", "1"), BODIES(STEP)), TN_E_ATTR, "of 3 inputs"},
    {SCAN(FOREACH("[3]", "[2]", "[1]", "4", "2", "1"), BODIES(STEP)), TN_E_ATTR,
     "names input 3, but there are 3"},
    {SCAN(FOREACH("[-1]", "[2]", "[1]", "4", "2", "1"), BODIES(STEP)), TN_E_ATTR, "in_data_locs"},
    {SCAN(FOREACH("[1]", "[2]", "[1]", "4", "2", "1"), BODIES(STEP)), TN_E_ATTR, "which was named before"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "4", "2", "2"), BODIES(STEP)), TN_E_ATTR, "names 1 states"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "4", "2", "3"), BODIES(STEP)), TN_E_ATTR,
     "num_out_data is 3, but num_outputs is 2"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "0", "2", "1"), BODIES(STEP)), TN_E_ATTR, "num_args"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "4", "-2", "1"), BODIES(STEP)), TN_E_ATTR, "num_outputs"},
    {SCAN(FOREACH("[0]", "[2]", "[1]", "99999999999", "2", "1"), BODIES(STEP)), TN_E_ATTR, "num_args"},
    {SCAN(FOREACH("0", "[2]", "x", "4", "2", "1"), BODIES(STEP)), TN_E_ATTR, "remain_locs"},
    {LOOP(GOOD_LOOP("-1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR, "max_iterations"},
    {LOOP(GOOD_LOOP("0"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR, "max_iterations"},
    {LOOP(GOOD_LOOP("5"), BODIES(COUNT)), TN_E_ARG, "1 graphs, but it runs 2"},
    {LOOP(GOOD_LOOP("5"), BODIES(COUNT "," BELOW3)), TN_E_ARG, "graph 0 has 3 inputs and 3 outputs"},
    {LOOP(WHILE("[3]", "[0,1,2]", "[0,1]", "5", "5", "3", "1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR,
     "cond_input_locs"},
    {LOOP(WHILE("[0]", "[0,1,1]", "[0,1]", "5", "5", "3", "1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR,
     "named before"},
    {LOOP(WHILE("[0]", "[0,1,2]", "[0,3]", "5", "5", "3", "1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR,
     "func_var_locs"},
    {LOOP(WHILE("[0]", "[0,1,2]", "[0]", "5", "5", "3", "1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR,
     "names 1 variables"},
    {LOOP(WHILE("[0]", "[0,1,2]", "[0,1]", "5", "1", "3", "1"), BODIES(BELOW3 "," COUNT)), TN_E_ATTR,
     "num_args"},
    {BRANCH(COND("[0]", "[1]", "[2]", "6", "1"), BODIES(ONE "," ONE)), TN_E_ARG, "2 graphs, but it runs 3"},
    {BRANCH(COND("[0]", "[1]", "[2]", "6", "1"), BODIES(ONE "," ONE "," STEP)), TN_E_ARG,
     "graph 2 has 3 inputs"},
    {BRANCH(COND("[0]", "[1]", "[9]", "6", "1"), BODIES(ONE "," ONE "," ONE)), TN_E_ATTR, "else_input_locs"},
    {BRANCH(COND("[0]", "[1]", "[2]", "3", "1"), BODIES(ONE "," ONE "," ONE)), TN_E_ATTR, "but there are 0"},
};

/* At once, or when the shapes are asked for. */
static void nodes_refused(void **state)
{
    tn_ctx *ctx = open_with(*state);
    const float ones[6] = {1, 1, 1, 1, 1, 1};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_array *in[] = {vector(ctx, 1, (int64_t[]){1}, ones), vector(ctx, 1, (int64_t[]){1}, ones),
                          vector(ctx, 1, (int64_t[]){1}, ones)};
        tn_array *out[3] = {NULL};
        tn_cached_op *net = NULL;
        tn_symbol *s = NULL;
        tn_status st = tn_symbol_from_json(ctx, wrong[i].json, strlen(wrong[i].json), &s);

        if (!st && !(st = tn_cached_op_create(ctx, s, NULL, &net)))
            st = tn_cached_op_call(net, 3, in, tn_symbol_output_count(s), out);
        if (st != wrong[i].status || !strstr(tn_error_text(), wrong[i].text))
            fail_msg("row %zu: %s: \"%s\", without \"%s\"", i, tn_status_name(st), tn_error_text(),
                     wrong[i].text);
        tn_cached_op_release(net);
        tn_symbol_release(s);
        drop(in, 3);
    }
    test_close(ctx);
}

/* A decision of several elements, data of other lengths, a state that changes its shape. */
static void shapes_refused(void **state)
{
    static const struct {
        const char *json;
        int64_t p[2], q, r;
        const char *text;
    } rows[] = {
        {LOOP(GOOD_LOOP("5"), BODIES(BELOW3 "," COUNT)), {1, 2}, 2, 2, "gives 2 elements, one is needed"},
        {SCAN(FOREACH("[0,1]", "[2]", "[]", "4", "2", "1"), BODIES(STEP)), {3, 2}, 2, 2, "must agree"},
        {SCAN(GOOD_SCAN, BODIES(STEP)), {3, 2}, 2, 3, "must agree"},
    };
    tn_ctx *ctx = open_with(*state);
    const float ones[6] = {1, 1, 1, 1, 1, 1};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_cached_op *net = net_of(ctx, rows[i].json);
        tn_array *in[] = {vector(ctx, 2, rows[i].p, ones), vector(ctx, 1, &rows[i].q, ones),
                          vector(ctx, 1, &rows[i].r, ones)};
        tn_array *out[3] = {NULL};

        assert_int_equal(tn_cached_op_call(net, 3, in, i ? 2 : 3, out), TN_E_SHAPE);
        if (!strstr(tn_error_text(), rows[i].text))
            fail_msg("row %zu: \"%s\"", i, tn_error_text());
        tn_cached_op_release(net);
        drop(in, 3);
    }
    test_close(ctx);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static void no_steps(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net = net_of(ctx, SCAN(GOOD_SCAN, BODIES(STEP)));
    const float s[2] = {3, 4}, ones[2] = {1, 1}, zeros[2] = {0, 0};
    const int64_t two = 2;
    tn_array *out[2] = {NULL}, *in[3];

    (void)tn_np_shape_set(1);
    in[0] = vector(ctx, 2, (int64_t[]){0, 2}, NULL); /* data */
    in[1] = vector(ctx, 1, &two, s);                 /* the state */
    in[2] = vector(ctx, 1, &two, ones);
    trained(net, ctx, in, 2, out);
    assert_int_equal(tn_array_count(out[0]), 0);
    numbers(out[1], 2, s);
    numbers(tn_array_grad(in[1]), 2, ones);
    numbers(tn_array_grad(in[2]), 2, zeros);
    (void)tn_np_shape_set(0);
    drop(in, 3);
    drop(out, 2);
    tn_cached_op_release(net);
    test_close(ctx);
}

/* From i: 3 - i steps of 5, then rows of zeros. d/da: each row gives w, the last a gives 1. */
static void rows_behind_are_zero(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net = net_of(ctx, LOOP(GOOD_LOOP("5"), BODIES(BELOW3 "," COUNT)));
    const float a = 10, w = 2;

    for (int from = 0; from < 5; from++) {
        const int64_t one = 1;
        const int steps = from < 3 ? 3 - from : 0;
        const float i = (float)from;
        tn_array *in[] = {vector(ctx, 1, &one, &i), vector(ctx, 1, &one, &a), vector(ctx, 1, &one, &w)};
        tn_array *out[3] = {NULL};
        float rows[5] = {0}, dw = 0;

        for (int k = 0; k < steps; k++) {
            rows[k] = (a + (float)k) * w;
            dw += a + (float)k;
        }
        trained(net, ctx, in, 3, out);
        numbers(out[0], 5, rows);
        numbers(out[1], 1, (float[]){from < 3 ? 3 : i});
        numbers(out[2], 1, (float[]){a + (float)steps});
        numbers(tn_array_grad(in[0]), 1, (float[]){1});
        numbers(tn_array_grad(in[1]), 1, (float[]){(float)steps * w + 1});
        numbers(tn_array_grad(in[2]), 1, &dw);
        drop(in, 3);
        drop(out, 3);
    }
    tn_cached_op_release(net);
    test_close(ctx);
}

/* As many steps as a stack would not hold, and a loop that its limit ends. */
static void many_steps(void **state)
{
#define MANY(limit)                                                                                          \
    LOOP(GOOD_LOOP("3000"),                                                                                  \
         BODIES(G(V("i") "," A("_lesser_scalar", "l", "\"scalar\":\"" limit "\"", "[[0,0]]"), "[0]",         \
                  "[[1,0]]") "," COUNT))
    static const char *const nets[] = {MANY("2500"), MANY("1e9")};
    const float want[] = {2500, 3000}, zero = 0, one = 1;
    const int64_t length = 1;
    tn_ctx *ctx = open_with(*state);

    for (int k = 0; k < 2; k++) {
        tn_cached_op *net = net_of(ctx, nets[k]);
        tn_array *in[] = {vector(ctx, 1, &length, &zero), vector(ctx, 1, &length, &one),
                          vector(ctx, 1, &length, &one)};
        tn_array *out[3] = {NULL};

        assert_ok(tn_cached_op_call(net, 3, in, 3, out));
        numbers(out[1], 1, &want[k]);
        drop(in, 3);
        drop(out, 3);
        tn_cached_op_release(net);
    }
    test_close(ctx);
}

/* ---- branches ------------------------------------------------------------------------------------------ */

/* The branch that is not taken would fail: it takes an element that is not there. */
static void one_branch_runs(void **state)
{
#define FAILS G(V("c") "," A("take", "k", "\"mode\":\"raise\"", "[[0,0],[0,0]]"), "[0]", "[[1,0]]")
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net =
        net_of(ctx, BRANCH(COND("[0]", "[1]", "[2]", "6", "1"), BODIES(ONE "," TWICE "," FAILS)));
    const float yes = 1, no = 0, p = 3, q = 7;
    const int64_t one = 1;
    tn_array *in[] = {vector(ctx, 1, &one, &yes), vector(ctx, 1, &one, &p), vector(ctx, 1, &one, &q)};
    tn_array *out[1] = {NULL};

    trained(net, ctx, in, 1, out);
    numbers(out[0], 1, (float[]){9});
    numbers(tn_array_grad(in[0]), 1, &no);
    numbers(tn_array_grad(in[1]), 1, (float[]){6});
    numbers(tn_array_grad(in[2]), 1, &no);
    drop(out, 1);
    out[0] = NULL;
    assert_ok(tn_array_write(in[0], &no, sizeof no));
    assert_ok(tn_cached_op_call(net, 3, in, 1, out));
    assert_true(tn_array_wait(out[0]) != TN_OK);
    assert_non_null(strstr(tn_error_text(), "node \"loop\""));
    (void)tn_wait_all(ctx);
    drop(out, 1);
    drop(in, 3);
    tn_cached_op_release(net);
    assert_ok(tn_close(ctx)); /* an operation failed */
}

/* A graph within whose sizes only a run tells: refused at each call, and nothing of it is kept. */
static void open_sizes_refused(void **state)
{
#define MASKED                                                                                               \
    G(V("x") "," V("m") "," N("_contrib_boolean_mask", "b", "[[0,0],[1,0]]") "," N("sum", "s", "[[2,0]]"),   \
      "[0,1]", "[[3,0]]")
    static const char *const json =
        G(V("d") "," V("m") ",{\"op\":\"_foreach\",\"name\":\"loop\",\"attrs\":{" FOREACH(
              "[0]", "[]", "[1]", "3", "1", "1") "},\"inputs\":[[0,0],[1,0]]" BODIES(MASKED) "}",
          "[0,1]", "[[2,0]]");
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net = net_of(ctx, json);
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    const int64_t three = 3;
    tn_array *in[2], *out[1] = {NULL};

    in[0] = vector(ctx, 2, (int64_t[]){2, 3}, ones);
    in[1] = vector(ctx, 1, &three, ones);
    for (int turn = 0; turn < 3; turn++) {
        assert_ok(tn_cached_op_call(net, 2, in, 1, out));
        assert_int_equal(tn_array_wait(out[0]), TN_E_UNSUPPORTED);
        assert_non_null(strstr(tn_error_text(), "sizes that only a run tells"));
        drop(out, 1);
        out[0] = NULL;
    }
    (void)tn_wait_all(ctx);
    drop(in, 2);
    tn_cached_op_release(net);
    assert_ok(tn_close(ctx)); /* an operation failed */
}

/* Nobody would see what a graph within changes. */
static void changed_inputs_refused(void **state)
{
#define NORM                                                                                                 \
    G(V("x") "," V("g") "," V("b") "," V("m") "," V("v") "," N("BatchNorm", "n",                             \
                                                               "[[0,0],[1,0],[2,0],[3,0],[4,0]]"),           \
      "[0,1,2,3,4]", "[[5,0]]")
    static const char *const json =
        G(V("d") "," V("g") "," V("b") "," V("m") "," V(
              "v") ","
                   "{\"op\":\"_foreach\",\"name\":\"loop\",\"attrs\":{" FOREACH(
                       "[0]", "[]", "[1,2,3,4]", "6", "1",
                       "1") "},"
                            "\"inputs\":[[0,0],[1,0],[2,0],[3,0],[4,0]]" BODIES(NORM) "}",
          "[0,1,2,3,4]", "[[5,0]]");
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net = net_of(ctx, json);
    const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t three = 3;
    tn_array *in[5], *out[1] = {NULL};

    in[0] = vector(ctx, 3, (int64_t[]){2, 2, 3}, ones);
    for (int i = 1; i < 5; i++)
        in[i] = vector(ctx, 1, &three, ones);
    assert_ok(tn_cached_op_call(net, 5, in, 1, out)); /* in inference it changes nothing */
    assert_ok(tn_array_wait(out[0]));
    drop(out, 1);
    out[0] = NULL;
    (void)tn_train_set(1);
    assert_ok(tn_cached_op_call(net, 5, in, 1, out));
    (void)tn_train_set(0);
    assert_int_equal(tn_array_wait(out[0]), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "\"n\" (BatchNorm) changes an input"));
    (void)tn_wait_all(ctx);
    drop(out, 1);
    drop(in, 5);
    tn_cached_op_release(net);
    assert_ok(tn_close(ctx)); /* an operation failed */
}

/* ---- depth --------------------------------------------------------------------------------------------- */

/* A loop in a loop in a loop …, `depth` of them. */
static char *nested(int depth)
{
    static const char *const open =
        "{\"nodes\":[" V("x") "," V("s") ",{\"op\":\"_foreach\",\"name\":\"f\",\"attrs\":{" FOREACH(
            "[0]", "[1]", "[]", "3", "2", "1") "},\"inputs\":[[0,0],[1,0]],\"subgraphs\":[";
    static const char *const close = "]}],\"arg_nodes\":[0,1],\"heads\":[[2,0],[2,1]]}";
    static const char *const inner =
        G(V("x") "," V("s") "," N("elemwise_add", "a", "[[0,0],[1,0]]"), "[0,1]", "[[2,0],[2,0]]");
    char *text = calloc(1, (size_t)depth * (strlen(open) + strlen(close)) + strlen(inner) + 1);

    assert_non_null(text);
    for (int i = 0; i < depth; i++)
        strcat(text, open);
    strcat(text, inner);
    for (int i = 0; i < depth; i++)
        strcat(text, close);
    return text;
}

static void depth_is_limited(void **state)
{
    tn_ctx *ctx = open_with(*state);
    const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, sixteen = 17, four = 1;
    tn_array *in[] = {vector(ctx, 4, (int64_t[]){2, 2, 2, 2}, ones), vector(ctx, 0, NULL, &four)};
    tn_array *out[2] = {NULL};
    tn_cached_op *net;
    tn_symbol *s = NULL;
    char *json = nested(4);

    (void)tn_np_shape_set(1);
    net = net_of(ctx, json);
    assert_ok(tn_cached_op_call(net, 2, in, 2, out));
    numbers(out[1], 1, &sixteen);
    (void)tn_np_shape_set(0);
    free(json);
    for (int depth = 12; depth < 400; depth *= 3) {
        json = nested(depth);
        assert_int_equal(tn_symbol_from_json(ctx, json, strlen(json), &s), TN_E_FORMAT);
        assert_null(s);
        free(json);
    }
    drop(in, 2);
    drop(out, 2);
    tn_cached_op_release(net);
    test_close(ctx);
}

/* ---- cuts, and the same steps by hand ------------------------------------------------------------------ */

#define BEFORE(node)                                                                                         \
    G(V("p") "," V("q") "," V("r") "," node "," N("square", "after", "[[3,0]]"), "[0,1,2]", "[[4,0]]")

/* Who asks beforehand is told, a call counts them. */
static void cuts_are_named(void **state)
{
    static const struct {
        const char *json, *why;
    } rows[] = {
        {BEFORE(NODE("_foreach", GOOD_SCAN, BODIES(STEP))), "it runs graphs of its own"},
        {BEFORE(NODE("_while_loop", GOOD_LOOP("5"), BODIES(BELOW3 "," COUNT))),
         "it runs graphs of its own, and values decide which"},
        {BEFORE(NODE("_cond", COND("[0]", "[1]", "[2]", "6", "1"), BODIES(ONE "," ONE "," TWICE))),
         "it runs graphs of its own, and values decide which"},
    };
    tn_ctx *ctx = open_with(*state);
    const float ones[] = {1};
    const int64_t one = 1;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_array *in[] = {vector(ctx, 1, &one, ones), vector(ctx, i ? 1 : 0, &one, ones),
                          vector(ctx, i ? 1 : 0, &one, ones)};
        tn_stats before = {.struct_size = TN_SIZE(tn_stats)}, after = before;
        tn_inferred *inferred = NULL;
        tn_break info = {.struct_size = TN_SIZE(tn_break)};
        tn_cached_op *net = net_of(ctx, rows[i].json);
        tn_array *out[3] = {NULL};
        tn_breaks *b = NULL;
        tn_symbol *s = NULL;

        (void)tn_np_shape_set(1);
        assert_ok(tn_symbol_from_json(ctx, rows[i].json, strlen(rows[i].json), &s));
        assert_ok(tn_symbol_infer(s, 0, NULL, TN_SYMBOL_PARTIAL, &inferred));
        assert_ok(tn_graph_breaks(ctx, s, inferred, NULL, &b));
        assert_int_equal(tn_breaks_count(b), 2);
        for (uint32_t k = 0; k < 2; k++) {
            assert_ok(tn_breaks_at(b, k, &info));
            assert_string_equal(info.node, k ? "loop_backward" : "loop");
            assert_string_equal(info.why, rows[i].why);
        }
        assert_ok(tn_ctx_stats(ctx, &before));
        assert_ok(tn_cached_op_call(net, 3, in, tn_symbol_output_count(s), out));
        assert_ok(tn_array_wait(out[0]));
        assert_ok(tn_ctx_stats(ctx, &after));
        assert_true(after.cuts > before.cuts);
        (void)tn_np_shape_set(0);
        tn_breaks_destroy(b);
        tn_inferred_destroy(inferred);
        tn_symbol_release(s);
        tn_cached_op_release(net);
        drop(in, 3);
        drop(out, 3);
    }
    test_close(ctx);
}

static tn_array *two(tn_ctx *ctx, const char *op, tn_array *a, tn_array *b)
{
    return test_op(ctx, op, NULL, 2, (tn_array *const[]){a, b});
}

/* A loop of the program over the same operators gives the same bits. */
static void bits_of_steps(void **state)
{
    enum { STEPS = 5, WIDTH = 3 };
    tn_ctx *ctx = open_with(*state);
    tn_cached_op *net = net_of(ctx, SCAN(GOOD_SCAN, BODIES(STEP)));
    float x[STEPS * WIDTH], w[WIDTH] = {0.3f, -1.7f, 2.9f}, s[WIDTH] = {0.1f, 0.7f, -3.3f};
    float rows[STEPS * WIDTH], row[WIDTH];
    const int64_t shape[] = {STEPS, WIDTH}, width = WIDTH;
    tn_array *in[3], *out[2] = {NULL}, *h;

    for (int i = 0; i < STEPS * WIDTH; i++)
        x[i] = (float)(i * 37 % 19) / 7.0f - 1.1f;
    in[0] = vector(ctx, 2, shape, x);
    in[1] = vector(ctx, 1, &width, s); /* the graph has it third */
    in[2] = vector(ctx, 1, &width, w);
    assert_ok(tn_cached_op_call(net, 3, in, 2, out));
    assert_ok(tn_array_read(out[0], rows, sizeof rows));
    tn_array_retain(h = in[1]);
    for (int k = 0; k < STEPS; k++) {
        tn_array *step = vector(ctx, 1, &width, x + k * WIDTH),
                 *product = two(ctx, "elemwise_mul", step, in[2]);
        tn_array *y = two(ctx, "elemwise_add", product, h), *next = two(ctx, "elemwise_add", h, step);

        assert_ok(tn_array_read(y, row, sizeof row));
        assert_memory_equal(row, rows + k * WIDTH, sizeof row);
        tn_array_release(h);
        tn_array_release(step);
        tn_array_release(product);
        tn_array_release(y);
        h = next;
    }
    assert_ok(tn_array_read(h, row, sizeof row));
    assert_ok(tn_array_read(out[1], rows, sizeof row));
    assert_memory_equal(row, rows, sizeof row);
    tn_array_release(h);
    drop(in, 3);
    drop(out, 2);
    tn_cached_op_release(net);
    test_close(ctx);
}

#define WITH(test, engine)                                                                                   \
    {                                                                                                        \
#test " " engine, test, NULL, NULL, (void *)"engine.type=" engine                                    \
    }
#define EVERYWHERE(test) WITH(test, "threaded"), WITH(test, "naive"), WITH(test, "stepped")

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(nodes_refused, "threaded"),
        WITH(shapes_refused, "threaded"),
        EVERYWHERE(no_steps),
        WITH(cuts_are_named, "threaded"),
        EVERYWHERE(bits_of_steps),
        EVERYWHERE(rows_behind_are_zero),
        EVERYWHERE(many_steps),
        EVERYWHERE(one_branch_runs),
        EVERYWHERE(open_sizes_refused),
        EVERYWHERE(changed_inputs_refused),
        EVERYWHERE(depth_is_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

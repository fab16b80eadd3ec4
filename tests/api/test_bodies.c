/*
 * A plugin's operator that runs a graph of its own (tests/check/kinds/subgraph.c), composed from symbols: the
 * bits of the net written out, gradients too; inference from either end; files; and wrong use.
 */
#include "api/support.h"

#include <stdio.h>

enum { STEPS = 4, WIDTH = 3 };

static const float x_values[STEPS * WIDTH] = {0.5f, -1, 0.25f,  1.5f,   0.75f,  -0.5f,
                                              -2,   1,  0.125f, 0.375f, -0.25f, 2};
static const float s_values[WIDTH] = {0.25f, -0.5f, 1}, w_values[WIDTH] = {1.25f, -0.75f, 0.5f};

static tn_ctx *open_with(const char *engine)
{
    tn_ctx *ctx = test_open((const char *const[]){engine, "compile.passes_off=fold,fuse,layout", NULL});
    char path[4096];
    size_t index;

    (void)snprintf(path, sizeof path, "%s/tests/check/kinds/kind-subgraph-healthy.so",
                   getenv("TENON_TEST_BUILD"));
    assert_ok(tn_plugin_open(ctx, path, &index));
    return ctx;
}

static tn_symbol *variable(tn_ctx *ctx, const char *name)
{
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_variable(ctx, name, &s));
    return s;
}

static tn_symbol *op2(tn_ctx *ctx, const char *op, tn_symbol *a, tn_symbol *b)
{
    tn_symbol *const in[] = {a, b};
    const tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = b ? 2 : 1, .op = op, .in = in};
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_op(ctx, &call, &s));
    return s;
}

/* (y, next) = (tanh(x + s) * w, tanh(x + s)), of symbols that are the caller's. */
static void step_compose(tn_ctx *ctx, tn_symbol *x, tn_symbol *s, tn_symbol *w, tn_symbol *out[2])
{
    tn_symbol *sum = op2(ctx, "broadcast_add", x, s);

    out[1] = op2(ctx, "tanh", sum, NULL);
    out[0] = op2(ctx, "broadcast_mul", out[1], w);
    tn_symbol_release(sum);
}

/* The same as a graph; `op` NULL, or what its state goes through. */
static tn_symbol *body_make(tn_ctx *ctx, const char *op)
{
    tn_symbol *x = variable(ctx, "step"), *s = variable(ctx, "h"), *w = variable(ctx, "v");
    tn_symbol *out[2], *through, *body = NULL;

    step_compose(ctx, x, s, w, out);
    if (op) {
        through = op2(ctx, op, out[1], NULL);
        tn_symbol_release(out[1]);
        out[1] = through;
    }
    assert_ok(tn_symbol_group(2, out, &body));
    tn_symbol_release(out[0]);
    tn_symbol_release(out[1]);
    tn_symbol_release(x);
    tn_symbol_release(s);
    tn_symbol_release(w);
    return body;
}

static tn_status scan_try(tn_ctx *ctx, uint32_t count, tn_symbol *const *bodies, tn_symbol **out)
{
    tn_symbol *in[] = {variable(ctx, "data"), variable(ctx, "state"), variable(ctx, "weight")};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 3,
                                 .op = "kind_scan",
                                 .name = "loop",
                                 .in = in,
                                 .bodies = bodies,
                                 .body_count = count};
    const tn_status st = tn_symbol_op(ctx, &call, out);

    for (int i = 0; i < 3; i++)
        tn_symbol_release(in[i]);
    return st;
}

static tn_symbol *scan_make(tn_ctx *ctx, const char *op)
{
    tn_symbol *body = body_make(ctx, op), *s = NULL;

    assert_ok(scan_try(ctx, 1, &body, &s));
    tn_symbol_release(body);
    return s;
}

/* The loop written out: STEPS times the step, of slices of data, their outputs stacked. */
static tn_symbol *written_out(tn_ctx *ctx)
{
    static const char *const split[] = {"num_outputs", "4", "axis", "0", "squeeze_axis", "1", NULL};
    tn_symbol *data = variable(ctx, "data"), *state = variable(ctx, "state"), *w = variable(ctx, "weight");
    tn_symbol *rows, *y[STEPS], *both[2], *s = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .attrs = split};

    call.op = "SliceChannel";
    call.in = &data;
    assert_ok(tn_symbol_op(ctx, &call, &rows));
    both[1] = state;
    for (uint32_t t = 0; t < STEPS; t++) {
        tn_symbol *x, *out[2];

        assert_ok(tn_symbol_output(rows, t, &x));
        step_compose(ctx, x, both[1], w, out);
        tn_symbol_release(x);
        tn_symbol_release(both[1]);
        y[t] = out[0];
        both[1] = out[1];
    }
    call =
        (tn_symbol_call){.struct_size = TN_SIZE(tn_symbol_call), .in_count = STEPS, .op = "stack", .in = y};
    assert_ok(tn_symbol_op(ctx, &call, &both[0]));
    assert_ok(tn_symbol_group(2, both, &s));
    for (int t = 0; t < STEPS; t++)
        tn_symbol_release(y[t]);
    tn_symbol_release(both[0]);
    tn_symbol_release(both[1]);
    tn_symbol_release(rows);
    tn_symbol_release(data);
    tn_symbol_release(w);
    return s;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

typedef struct answer {
    float y[STEPS * WIDTH], last[WIDTH], data[STEPS * WIDTH], state[WIDTH], weight[WIDTH];
} answer;

static void inputs_make(tn_ctx *ctx, tn_array *in[3])
{
    in[0] = test_array(ctx, 2, (const int64_t[]){STEPS, WIDTH}, x_values);
    in[1] = test_array(ctx, 1, (const int64_t[]){WIDTH}, s_values);
    in[2] = test_array(ctx, 1, (const int64_t[]){WIDTH}, w_values);
}

static void arrays_drop(tn_array **a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tn_array_release(a[i]);
}

/* `heads`: bit o: a gradient arrives at output o. A small net that asks to be called operator by operator is
 * not, since a call has no graphs. */
static void trained(tn_ctx *ctx, tn_symbol *s, uint32_t heads, answer *out)
{
    const tn_cached_options options = {.struct_size = TN_SIZE(tn_cached_options), .inline_limit = 2};
    tn_array *in[3], *y[2] = {NULL}, *from[2];
    tn_cached_op *op = NULL;
    uint32_t count = 0;

    inputs_make(ctx, in);
    for (int i = 0; i < 3; i++)
        assert_ok(tn_attach_grad(ctx, in[i], TN_MODE_WRITE, NULL));
    assert_ok(tn_cached_op_create(ctx, s, &options, &op));
    (void)tn_record_set(1);
    assert_ok(tn_cached_op_call(op, 3, in, 2, y));
    (void)tn_record_set(0);
    for (uint32_t o = 0; o < 2; o++)
        if (heads >> o & 1u)
            from[count++] = y[o];
    assert_ok(tn_backward(ctx, count, from, NULL, 0));
    assert_ok(tn_array_read(y[0], out->y, sizeof out->y));
    assert_ok(tn_array_read(y[1], out->last, sizeof out->last));
    assert_ok(tn_array_read(tn_array_grad(in[0]), out->data, sizeof out->data));
    assert_ok(tn_array_read(tn_array_grad(in[1]), out->state, sizeof out->state));
    assert_ok(tn_array_read(tn_array_grad(in[2]), out->weight, sizeof out->weight));
    arrays_drop(y, 2);
    arrays_drop(in, 3);
    tn_cached_op_release(op);
}

/* Whatever arrives, the bits of the net written out; w's gradient is summed in another order. */
static void same_bits(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_symbol *loop = scan_make(ctx, NULL), *flat = written_out(ctx);

    for (uint32_t heads = 1; heads < 4; heads++) {
        answer want, got;

        trained(ctx, flat, heads, &want);
        trained(ctx, loop, heads, &got);
        assert_memory_equal(got.y, want.y, sizeof got.y);
        assert_memory_equal(got.last, want.last, sizeof got.last);
        assert_memory_equal(got.data, want.data, sizeof got.data);
        assert_memory_equal(got.state, want.state, sizeof got.state);
        for (int i = 0; i < WIDTH; i++)
            assert_float_equal(got.weight[i], want.weight[i], 1e-6f);
    }
    tn_symbol_release(loop);
    tn_symbol_release(flat);
    test_close(ctx);
}

/* Key "subgraphs", as in MXNet's files; what is read back computes the same and is written the same. */
static void files(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_symbol *loop = scan_make(ctx, NULL), *again = NULL;
    char *text = NULL, *second = NULL;
    answer want, got;

    assert_ok(tn_symbol_to_json(loop, &text));
    assert_non_null(strstr(text, "\"subgraphs\""));
    assert_ok(tn_symbol_from_json(ctx, text, strlen(text), &again));
    assert_ok(tn_symbol_to_json(again, &second));
    assert_string_equal(text, second);
    trained(ctx, loop, 3, &want);
    trained(ctx, again, 3, &got);
    assert_memory_equal(&got, &want, sizeof got);
    tn_free(text);
    tn_free(second);
    tn_symbol_release(loop);
    tn_symbol_release(again);
    test_close(ctx);
}

/* ---- inference --------------------------------------------------------------------------------------- */

typedef struct inference_row {
    const char *what;
    int64_t data[2], state[2], weight[2]; /* shapes: data (a, b), state (a), weight (a); -1: not known */
    int32_t data_dtype, state_dtype;
    tn_status status; /* TN_OK: all is found */
} inference_row;

static const inference_row inference_rows[] = {
    {"from data", {STEPS, WIDTH}, {-2}, {-2}, TN_F64, -1, TN_OK},
    {"from the state", {STEPS, -1}, {WIDTH}, {-2}, -1, TN_F16, TN_OK},
    {"from the weight", {STEPS, -1}, {-1}, {WIDTH}, TN_F32, -1, TN_OK},
    {"two states", {STEPS, WIDTH}, {WIDTH + 1}, {-2}, -1, -1, TN_E_SHAPE},
    {"two types", {STEPS, WIDTH}, {-2}, {-2}, TN_F64, TN_F32, TN_E_DTYPE},
    {"no steps", {0, WIDTH}, {-2}, {-2}, -1, -1, TN_E_SHAPE},
};

/* `shape` of -2: nothing is known of it. */
static tn_known known_of(const char *name, const int64_t *shape, int32_t ndim, int32_t dtype)
{
    return (tn_known){.name = name, .shape = shape, .ndim = shape[0] == -2 ? -1 : ndim, .dtype = dtype};
}

static void inference_tried(tn_symbol *s, const inference_row *r)
{
    const tn_known known[] = {known_of("data", r->data, 2, r->data_dtype),
                              known_of("state", r->state, 1, r->state_dtype),
                              known_of("weight", r->weight, 1, -1)};
    tn_inferred *found = NULL;
    const tn_status st = tn_symbol_infer(s, 3, known, TN_SYMBOL_PARTIAL, &found);
    tn_known y, last, state;

    if (st != r->status)
        fail_msg("%s: %s: %s", r->what, tn_status_name(st), tn_error_text());
    if (st) {
        assert_non_null(strstr(tn_error_text(), "node \"loop\""));
        return;
    }
    assert_true(tn_inferred_complete(found));
    assert_ok(tn_inferred_at(found, TN_LIST_OUTPUTS, 0, &y));
    assert_ok(tn_inferred_at(found, TN_LIST_OUTPUTS, 1, &last));
    assert_ok(tn_inferred_at(found, TN_LIST_INPUTS, 1, &state));
    assert_true(y.ndim == 2 && y.shape[0] == STEPS && y.shape[1] == WIDTH);
    assert_true(last.ndim == 1 && last.shape[0] == WIDTH && state.ndim == 1 && state.shape[0] == WIDTH);
    assert_int_equal(y.dtype, r->data_dtype < 0 ? r->state_dtype : r->data_dtype);
    assert_int_equal(last.dtype, y.dtype);
    tn_inferred_destroy(found);
}

static void inferred(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_symbol *sum, *in[2], *through, *body = NULL, *loop = NULL;

    /* Its sums of equal shapes say what broadcasting leaves open. */
    in[0] = variable(ctx, "step");
    in[1] = variable(ctx, "h");
    sum = op2(ctx, "elemwise_add", in[0], in[1]);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    in[0] = variable(ctx, "v");
    in[1] = op2(ctx, "tanh", sum, NULL);
    through = op2(ctx, "elemwise_mul", in[1], in[0]);
    assert_ok(tn_symbol_group(2, (tn_symbol *const[]){through, in[1]}, &body));
    assert_ok(scan_try(ctx, 1, &body, &loop));
    for (size_t i = 0; i < sizeof inference_rows / sizeof *inference_rows; i++)
        inference_tried(loop, &inference_rows[i]);
    tn_symbol_release(sum);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    tn_symbol_release(through);
    tn_symbol_release(body);
    tn_symbol_release(loop);
    test_close(ctx);
}

/* ---- wrong use --------------------------------------------------------------------------------------- */

/* The call of a net, or the wait for it, fails with `status` and says `why`. */
static void call_fails(tn_ctx *ctx, tn_symbol *s, tn_status status, const char *why)
{
    tn_array *in[3], *y[2] = {NULL};
    tn_cached_op *op = NULL;
    tn_status st;

    inputs_make(ctx, in);
    assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
    if (!(st = tn_cached_op_call(op, 3, in, 2, y)))
        st = tn_array_wait(y[0]);
    test_status(st, status, why, __FILE__, __LINE__);
    if (!strstr(tn_error_text(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tn_error_text(), why);
    arrays_drop(y, 2);
    arrays_drop(in, 3);
    (void)tn_wait_all(ctx);
    tn_cached_op_release(op);
}

static void wrong_bodies(void **state)
{
    tn_ctx *ctx = open_with(*state), *other = open_with(*state);
    tn_symbol *body = body_make(ctx, NULL), *foreign = body_make(other, NULL), *x = variable(ctx, "x");
    tn_symbol *two[] = {body, body}, *s = NULL, *none = NULL;
    tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .op = "tanh", .in = &x, .bodies = two};

    assert_ok(scan_try(ctx, 0, NULL, &s)); /* composes; what is missing is told with the shapes */
    call_fails(ctx, s, TN_E_ARG, "kind_scan runs one graph, and has 0");
    tn_symbol_release(s);
    assert_ok(scan_try(ctx, 2, two, &s));
    call_fails(ctx, s, TN_E_ARG, "kind_scan runs one graph, and has 2");
    tn_symbol_release(s);
    assert_ok(scan_try(ctx, 1, &x, &s));
    call_fails(ctx, s, TN_E_ARG, "this one has 1 inputs and 1 outputs");
    tn_symbol_release(s);
    s = NULL;
    assert_fails(scan_try(ctx, 1, &foreign, &s), TN_E_ARG);
    assert_fails(scan_try(ctx, 1, &none, &s), TN_E_ARG);
    assert_fails(scan_try(ctx, 1, NULL, &s), TN_E_ARG);
    call.body_count = 1;
    assert_fails(tn_symbol_op(ctx, &call, &s), TN_E_ARG);
    assert_non_null(strstr(tn_error_text(), "operator tanh runs no graphs of its own"));
    assert_null(s);
    tn_symbol_release(body);
    tn_symbol_release(foreign);
    tn_symbol_release(x);
    test_close(ctx);
    test_close(other);
}

/* Loops within loops: 11 are composed, one more is told. */
static void nested_deep(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_symbol *body = body_make(ctx, NULL);
    uint32_t depth = 1;

    for (tn_symbol *s = NULL; !scan_try(ctx, 1, &body, &s); s = NULL, depth++) {
        assert_true(depth < 40);
        tn_symbol_release(body);
        body = s;
    }
    assert_int_equal(tn_error_code(), TN_E_ARG);
    assert_non_null(strstr(tn_error_text(), "nest deeper than 12"));
    assert_int_equal(depth, 11);
    tn_symbol_release(body);
    test_close(ctx);
}

/* A graph whose state changes its shape; a call without a net. */
static void wrong_runs(void **state)
{
    tn_ctx *ctx = open_with(*state);
    tn_symbol *loop = scan_make(ctx, "sum");
    tn_array *arrays[3], *y[2] = {NULL};
    const tn_op_call eager = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = 3, .op = "kind_scan", .in = arrays};

    call_fails(ctx, loop, TN_E_SHAPE, "node \"loop\"");
    tn_symbol_release(loop);
    inputs_make(ctx, arrays);
    assert_fails(tn_invoke_text(ctx, &eager, 2, y, NULL), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "a node of a net"));
    arrays_drop(arrays, 3);
    test_close(ctx);
}

#define WITH(test, engine)                                                                                   \
    {                                                                                                        \
#test " " engine, test, NULL, NULL, (void *)"engine.type=" engine                                    \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(same_bits, "threaded"),  WITH(same_bits, "naive"),       WITH(files, "threaded"),
        WITH(inferred, "threaded"),   WITH(wrong_bodies, "threaded"), WITH(nested_deep, "threaded"),
        WITH(wrong_runs, "threaded"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

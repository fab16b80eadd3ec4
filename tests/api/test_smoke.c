/* The whole way of a program: arrays, operators, gradients, a hybridized net, files. */
#include "api/support.h"

#include <stdio.h>

#include "support/list.h"
#include "support/scratch.h"

static void arrays_compute(void **state)
{
    const float a_values[] = {1, 2, 3, 4, 5, 6}, b_values[] = {1, 0, 0, 1, 1, 1};
    const float sum[] = {2, 2, 3, 5, 6, 7}, product[] = {4, 5, 10, 11};
    tn_ctx *ctx = test_open(NULL);
    tn_array *a = test_array(ctx, 2, (int64_t[]){2, 3}, a_values),
             *b = test_array(ctx, 2, (int64_t[]){2, 3}, b_values);
    tn_array *c = test_op(ctx, "elemwise_add", NULL, 2, (tn_array *[]){a, b}), *r = NULL, *d, *e;
    tn_site *site = NULL;

    (void)state;
    test_values(c, sum, 6, 0);
    assert_ok(tn_array_reshape(b, 2, (int64_t[]){3, -1}, &r));
    d = test_op(ctx, "dot", NULL, 2, (tn_array *[]){a, r});
    test_values(d, product, 4, 0);
    assert_ok(tn_site_create(ctx, "elemwise_add", NULL, &site));
    for (int i = 0; i < 100; i++) {
        e = NULL;
        assert_ok(tn_invoke(site, 2, (tn_array *[]){a, b}, 1, &e));
        tn_array_release(e);
    }
    tn_site_release(site);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(c);
    tn_array_release(d);
    tn_array_release(r);
    test_close(ctx);
}

/* y = sum((x w^T)^2): dw = 2 (x w^T)^T x */
static void gradients_flow(void **state)
{
    const float x_values[] = {1, 2}, w_values[] = {3, 4}, expected[] = {22, 44};
    tn_ctx *ctx = test_open(NULL);
    tn_array *x = test_array(ctx, 2, (int64_t[]){1, 2}, x_values),
             *w = test_array(ctx, 2, (int64_t[]){1, 2}, w_values);
    const char *const *attrs = LIST("num_hidden", "1", "no_bias", "True");
    tn_array *y, *z, *g = NULL;

    (void)state;
    assert_ok(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    for (int pass = 0; pass < 3; pass++) {
        assert_int_equal(tn_record_set(1), 0);
        assert_int_equal(tn_train_set(1), 0);
        y = test_op(ctx, "FullyConnected", attrs, 2, (tn_array *[]){x, w});
        z = test_op(ctx, "square", NULL, 1, &y);
        assert_int_equal(tn_recording(), 1);
        tn_record_set(0);
        tn_train_set(0);
        assert_ok(tn_backward(ctx, 1, &z, NULL, 0));
        test_values(tn_array_grad(w), expected, 2, 0);
        assert_fails(tn_backward(ctx, 1, &z, NULL, 0), TN_E_STATE);
        tn_array_release(y);
        tn_array_release(z);
    }
    tn_record_set(1);
    y = test_op(ctx, "FullyConnected", attrs, 2, (tn_array *[]){x, w});
    z = test_op(ctx, "square", NULL, 1, &y);
    tn_record_set(0);
    const tn_gradient_call call = {.struct_size = TN_SIZE(tn_gradient_call),
                                   .head_count = 1,
                                   .variable_count = 1,
                                   .heads = &z,
                                   .variables = &w};
    assert_ok(tn_gradients(ctx, &call, &g));
    test_values(g, expected, 2, 0);
    tn_array_release(g);
    tn_array_release(y);
    tn_array_release(z);
    tn_array_release(x);
    tn_array_release(w);
    test_close(ctx);
}

static tn_symbol *mlp(tn_ctx *ctx)
{
    tn_symbol *s = NULL;

    assert_ok(tn_symbol_variable(ctx, "data", &s));
    s = test_node(ctx, "FullyConnected", "fc1", LIST("num_hidden", "8"), s);
    s = test_node(ctx, "Activation", "relu1", LIST("act_type", "relu"), s);
    return test_node(ctx, "FullyConnected", "fc2", LIST("num_hidden", "3"), s);
}

typedef struct net {
    tn_symbol *symbol;
    tn_array *in[8];
    char **names;
    size_t count;
} net;

/* Inputs of the shapes that follow from data (4, 5), filled by a rule. */
static void net_make(tn_ctx *ctx, net *n)
{
    const tn_known known = {.name = "data", .shape = (int64_t[]){4, 5}, .ndim = 2, .dtype = TN_F32};
    tn_inferred *inferred = NULL;
    tn_known found;

    n->symbol = mlp(ctx);
    assert_ok(tn_symbol_list(n->symbol, TN_LIST_INPUTS, &n->count, &n->names));
    assert_int_equal(n->count, 5);
    assert_ok(tn_symbol_infer(n->symbol, 1, &known, 0, &inferred));
    assert_int_equal(tn_inferred_complete(inferred), 1);
    for (size_t i = 0; i < n->count; i++) {
        float values[64];
        uint64_t count;

        assert_ok(tn_inferred_at(inferred, TN_LIST_INPUTS, i, &found));
        assert_string_equal(found.name, n->names[i]);
        assert_ok(tn_array_create(ctx, found.dtype, found.ndim, found.shape, NULL, &n->in[i]));
        count = tn_array_count(n->in[i]);
        for (uint64_t k = 0; k < count; k++)
            values[k] = (float)((int)((k * 7 + i * 3) % 11) - 5) * 0.1f;
        assert_ok(tn_array_write(n->in[i], values, count * sizeof *values));
    }
    assert_ok(tn_inferred_at(inferred, TN_LIST_OUTPUTS, 0, &found));
    assert_string_equal(found.name, "fc2_output");
    assert_int_equal(found.shape[0], 4);
    assert_int_equal(found.shape[1], 3);
    tn_inferred_destroy(inferred);
}

static void net_free(net *n)
{
    for (size_t i = 0; i < n->count; i++)
        tn_array_release(n->in[i]);
    tn_free(n->names);
    tn_symbol_release(n->symbol);
}

static void read_all(tn_array *a, float *out, size_t count)
{
    assert_int_equal(tn_array_count(a), count);
    assert_ok(tn_array_read(a, out, count * sizeof *out));
}

static void nets_are_compiled(void **state)
{
    const tn_cached_options options = {
        .struct_size = TN_SIZE(tn_cached_options), .static_alloc = 1, .static_shape = 1};
    tn_ctx *ctx = test_open(NULL);
    tn_cached_op *op = NULL;
    uint64_t planned, bound;
    float first[12], eager[12], grad[2][40];
    tn_array *h, *a, *y;
    net n;

    (void)state;
    net_make(ctx, &n);
    assert_ok(tn_cached_op_create(ctx, n.symbol, &options, &op));
    assert_fails(tn_cached_op_memory(op, &planned, &bound), TN_E_STATE);
    h = test_op(ctx, "FullyConnected", LIST("num_hidden", "8"), 3, n.in);
    a = test_op(ctx, "Activation", LIST("act_type", "relu"), 1, &h);
    y = test_op(ctx, "FullyConnected", LIST("num_hidden", "3"), 3, (tn_array *[]){a, n.in[3], n.in[4]});
    read_all(y, eager, 12);
    tn_array_release(h);
    tn_array_release(a);
    tn_array_release(y);
    for (int i = 0; i < 3; i++) {
        y = NULL;
        assert_ok(tn_cached_op_call(op, 5, n.in, 1, &y));
        read_all(y, first, 12);
        assert_memory_equal(first, eager, sizeof eager);
        tn_array_release(y);
    }
    assert_ok(tn_cached_op_memory(op, &planned, &bound));
    assert_true(planned >= bound);
    assert_ok(tn_attach_grad(ctx, n.in[1], TN_MODE_WRITE, NULL));
    for (int i = 0; i < 2; i++) {
        tn_record_set(1);
        tn_train_set(1);
        y = NULL;
        assert_ok(tn_cached_op_call(op, 5, n.in, 1, &y));
        tn_record_set(0);
        tn_train_set(0);
        assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
        read_all(tn_array_grad(n.in[1]), grad[i], 40);
        tn_array_release(y);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
    tn_cached_op_release(op);
    net_free(&n);
    test_close(ctx);
}

/* What is known of a later variable counts for that one: fc(data) + extra, with `extra` known. */
static void inference_goes_by_name(void **state)
{
    const char *const attrs[] = {"num_hidden", "5", NULL};
    const int64_t extra[] = {3, 5}, data[] = {3, 4};
    const tn_known known[] = {{"extra", extra, 2, TN_F32}, {"data", data, 2, TN_F32}};
    tn_ctx *ctx = test_open(NULL);
    tn_symbol *in[2] = {NULL}, *sum = NULL, *fc = NULL;
    const tn_symbol_call dense = {.struct_size = TN_SIZE(tn_symbol_call),
                                  .op = "FullyConnected",
                                  .name = "fc",
                                  .attrs = attrs,
                                  .in_count = 1,
                                  .in = in};
    const tn_symbol_call add = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = "elemwise_add", .name = "sum", .in_count = 2, .in = in};
    const int64_t wrong[] = {3, 6};
    const tn_known contradiction[] = {{"extra", wrong, 2, TN_F32}};
    tn_inferred *found = NULL;
    tn_known weight;

    (void)state;
    assert_ok(tn_symbol_variable(ctx, "data", &in[0]));
    assert_ok(tn_symbol_op(ctx, &dense, &fc));
    tn_symbol_release(in[0]);
    in[0] = fc;
    assert_ok(tn_symbol_variable(ctx, "extra", &in[1]));
    assert_ok(tn_symbol_op(ctx, &add, &sum));
    assert_ok(tn_symbol_infer(sum, 2, known, 0, &found));
    assert_int_equal(tn_inferred_complete(found), 1);
    assert_ok(tn_inferred_at(found, TN_LIST_ARGUMENTS, 1, &weight));
    assert_string_equal(weight.name, "fc_weight");
    assert_int_equal(weight.shape[0], 5);
    assert_int_equal(weight.shape[1], 4);
    tn_inferred_destroy(found);
    assert_fails(tn_symbol_infer(sum, 1, contradiction, TN_SYMBOL_PARTIAL, &found), TN_E_SHAPE);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    tn_symbol_release(sum);
    test_close(ctx);
}

static void files_go_round(void **state)
{
    const char *symbol = scratch_path("net-symbol.json"), *params = scratch_path("net-0000.params");
    const char *folder = scratch_path("checkpoints");
    char hex[2][65], *path = NULL;
    tn_ctx *ctx = test_open(NULL);
    tn_params *p = NULL, *q = NULL;
    tn_program *program = NULL;
    tn_checkpoint *c = NULL;
    tn_array *y = NULL, *z = NULL;
    float want[12], got[12];
    net n;

    (void)state;
    net_make(ctx, &n);
    assert_ok(tn_params_create(&p));
    for (size_t i = 1; i < n.count; i++) {
        char name[64];

        (void)snprintf(name, sizeof name, "arg:%s", n.names[i]);
        assert_ok(tn_params_add(p, name, n.in[i]));
    }
    assert_fails(tn_params_add(p, "arg:fc1_bias", n.in[1]), TN_E_KEY);
    assert_ok(tn_symbol_save(n.symbol, symbol));
    assert_ok(tn_params_save(p, params));
    assert_ok(tn_params_load(ctx, params, NULL, &q));
    assert_ok(tn_params_sha256(p, hex[0]));
    assert_ok(tn_params_sha256(q, hex[1]));
    assert_string_equal(hex[0], hex[1]);
    assert_ok(tn_program_create(ctx, n.symbol, p, &program));
    assert_ok(tn_program_run(program, 1, n.in, 1, &y));
    read_all(y, want, 12);
    tn_program_destroy(program);
    assert_ok(tn_program_load(ctx, symbol, params, NULL, &program));
    assert_int_equal(tn_program_input_count(program), 1);
    assert_string_equal(tn_program_input(program, 0), "data");
    assert_string_equal(tn_program_output(program, 0), "fc2_output");
    assert_ok(tn_program_run(program, 1, n.in, 1, &z));
    read_all(z, got, 12);
    assert_memory_equal(got, want, sizeof want);
    assert_ok(tn_checkpoint_save(folder, "{\"epoch\":3}", p, 2, &path));
    assert_ok(tn_checkpoint_load(ctx, folder, NULL, &c));
    assert_string_equal(tn_checkpoint_json(c), "{\"epoch\":3}");
    assert_string_equal(tn_checkpoint_path(c), path);
    assert_int_equal(tn_checkpoint_number(c), 1);
    assert_string_equal(tn_checkpoint_skipped(c), "");
    assert_int_equal(tn_params_count(tn_checkpoint_params(c)), 4);
    tn_checkpoint_destroy(c);
    assert_ok(tn_checkpoint_load_file(ctx, path, NULL, &c));
    assert_string_equal(tn_checkpoint_json(c), "{\"epoch\":3}");
    assert_string_equal(tn_checkpoint_path(c), path);
    assert_int_equal(tn_params_count(tn_checkpoint_params(c)), 4);
    tn_checkpoint_destroy(c);
    tn_free(path);
    tn_array_release(y);
    tn_array_release(z);
    tn_program_destroy(program);
    tn_params_destroy(p);
    tn_params_destroy(q);
    net_free(&n);
    test_close(ctx);
}

/* ---- shapes that users tell ---------------------------------------------------------------------- */

#define GRAPH                                                                                                \
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}, "                                     \
    "{\"op\": \"%s\", \"name\": \"z\", \"attrs\": {%s\"shape\": \"%s\"}, \"inputs\": []}, "                  \
    "{\"op\": \"elemwise_add\", \"name\": \"y\", \"inputs\": [[0, 0, 0], [1, 0, 0]]}], "                     \
    "\"arg_nodes\": [0], \"heads\": [[%d, 0, 0]], \"attrs\": {\"mxnet_version\": [\"int\", 10901]%s}}"

static tn_status graph_infer(tn_ctx *ctx, const char *text, tn_symbol **s, int64_t found[2])
{
    const int64_t shape[] = {2, 4};
    const tn_known x = {.name = "x", .shape = shape, .ndim = 2, .dtype = TN_F32};
    tn_inferred *shapes = NULL;
    tn_symbol *inner = NULL;
    tn_known z;
    tn_status st;

    assert_ok(tn_symbol_from_json(ctx, text, strlen(text), s));
    assert_ok(tn_symbol_internals(*s, &inner));
    if (!(st = tn_symbol_infer(inner, strstr(text, "[[1, 0, 0]], \"attrs\"") ? 0 : 1, &x, 0, &shapes))) {
        assert_ok(tn_inferred_at(shapes, TN_LIST_OUTPUTS, tn_symbol_output_count(inner) > 1, &z));
        assert_int_equal(z.ndim, 2);
        memcpy(found, z.shape, 2 * sizeof *found);
    }
    tn_inferred_destroy(shapes);
    tn_symbol_release(inner);
    return st;
}

/* In files of MXNet's classic mode 0 says "not known", as recurrent nets write it of their batch: operators
 * without inputs take it from their users. The file's text stays. */
static void shapes_from_users(void **state)
{
    static const struct {
        const char *op, *attrs;
        float value; /* 9: random */
    } rows[] = {{"_zeros", "", 0},
                {"_ones", "", 1},
                {"_full", "\"value\": \"3\", ", 3},
                {"_random_uniform", "", 9},
                {"_random_normal", "", 9}};
    static const char *const shapes[] = {"(0, 4)", "(2, 0)", "(0,0)", "(2L, 0L)"};
    tn_ctx *ctx = test_open(NULL);
    const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    float expected[8];
    char text[1024];

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            int64_t found[2] = {0};
            tn_symbol *s = NULL;
            tn_cached_op *op = NULL;
            tn_array *x = test_array(ctx, 2, (int64_t[]){2, 4}, ones), *y = NULL;
            char *again = NULL;

            (void)snprintf(text, sizeof text, GRAPH, rows[r].op, rows[r].attrs, shapes[k], 2, "");
            assert_ok(graph_infer(ctx, text, &s, found));
            assert_true(found[0] == 2 && found[1] == 4);
            assert_ok(tn_cached_op_create(ctx, s, NULL, &op));
            assert_ok(tn_cached_op_call(op, 1, &x, 1, &y));
            for (size_t i = 0; i < 8; i++)
                expected[i] = 1 + rows[r].value;
            if (rows[r].value < 9)
                test_values(y, expected, 8, 0);
            assert_ok(tn_symbol_to_json(s, &again));
            assert_non_null(strstr(again, shapes[k]));
            tn_free(again);
            tn_array_release(x);
            tn_array_release(y);
            tn_cached_op_release(op);
            tn_symbol_release(s);
        }
    test_close(ctx);
}

static void shapes_that_stay_unknown(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    int64_t found[2] = {0};
    tn_symbol *s = NULL;
    char text[1024];

    (void)state;
    (void)snprintf(text, sizeof text, GRAPH, "_zeros", "", "(0, 4)", 1, "");
    assert_fails(graph_infer(ctx, text, &s, found), TN_E_SHAPE);
    assert_non_null(strstr(tn_error_text(), "node \"z\" (_zeros) does not follow"));
    tn_symbol_release(s);
    (void)snprintf(text, sizeof text, GRAPH, "_zeros", "", "(0, 5)", 2, ""); /* 5, but x has 4 */
    assert_fails(graph_infer(ctx, text, &s, found), TN_E_SHAPE);
    tn_symbol_release(s);
    /* NumPy's shapes: 0 is 0. */
    (void)snprintf(text, sizeof text, GRAPH, "_zeros", "", "(0, 4)", 1, ", \"is_np_shape\": [\"int\", 1]");
    assert_ok(graph_infer(ctx, text, &s, found));
    assert_true(found[0] == 0 && found[1] == 4);
    tn_symbol_release(s);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_from_users), cmocka_unit_test(shapes_that_stay_unknown),
        cmocka_unit_test(arrays_compute),    cmocka_unit_test(gradients_flow),
        cmocka_unit_test(nets_are_compiled), cmocka_unit_test(inference_goes_by_name),
        cmocka_unit_test(files_go_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

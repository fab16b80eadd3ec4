/*
 * Nets as functions over values: paths and names, arrays and symbols with the same bits, programs by shapes,
 * files, nets within nets.
 */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t image[4] = {4, 2, 6, 6}, flat[2] = {4, 5};

/* ---- a net with all kinds of parts --------------------------------------------------------------- */

static tn_x residual(tn_x x, int64_t channels)
{
    tn_x y = tn_batchnorm(tn_conv2d(x, .channels = channels, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = 1));
    tn_x skip = tn_dim(x, 1) == channels ? x : tn_conv2d(x, .channels = channels, .kernel = {1, 1});

    return tn_relu(tn_add(y, skip));
}

static void everything(const tn_x *in, tn_x *out)
{
    tn_x x = in[0], s = tn_state(in[1], 3), parts[2];

    for (int stage = 0; stage < 2; stage++) {
        tn_scope_begin(x, "stage%d", stage + 1);
        x = residual(residual(x, 4 << stage), 4 << stage);
        tn_scope_end(x);
    }
    x = tn_flatten(tn_concat(1, tn_maxpool2d(x), tn_avgpool2d(x)));
    x = tn_dropout(tn_dense(x, .units = 6, .activation = "tanh", .name = "wide"), .rate = 0.25);
    for (int t = 0; t < 3; t++) {
        tn_scope_begin(x, "cell");
        s = tn_tanh(tn_add(tn_dense(tn_slice(in[1], .axis = 1, .begin = t, .end = t + 2), .units = 3,
                                    .name = "i2h", .share = 1),
                           tn_dense(s, .units = 3, .name = "h2h", .share = 1)));
        tn_scope_end(x);
    }
    tn_split(tn_concat(1, x, s, tn_layernorm(in[1])), 2, 1, parts);
    out[0] = tn_dense(tn_mul(tn_sigmoid(parts[0]), tn_dropout(parts[1], .rate = 0.5)), .units = 4);
    out[1] = tn_op(out[0], "topk", .attrs = {"k", "2", "ret_typ", "value"});
}

static tn_net *everything_net(tn_app *app)
{
    return tn_net_functions(app, everything, .name = "all", .inputs = {"picture", "row"},
                            .outputs = {"score", "best"});
}

/* Outputs, gradients and parameters of three steps, with a smaller batch in the last one. */
static size_t bits_of(int hybrid, int flags, const char *setting, float *out, size_t room)
{
    const float labels[4] = {0, 3, 1, 2};
    tn_app *app = nn_open("run.deterministic=threads", setting, NULL);
    tn_net *net = everything_net(app);
    tn_trainer *trainer = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    size_t at = 0;

    tn_net_init(net, .seed = 3);
    (void)tn_random_seed(tn_app_ctx(app), 5, NULL);
    if (hybrid)
        tn_net_hybridize(net, .static_alloc = flags, .static_shape = flags);
    for (int step = 0; step < 4; step++) {
        const int64_t n = step == 2 ? 3 : 4;
        const int64_t shape[4] = {n, 2, 6, 6};
        tn_array *in[2] = {nn_array(app, 4, shape, 7), NULL}, *y[2], *loss;
        const int64_t rows[2] = {n, 5};

        in[1] = nn_array(app, 2, rows, 8);
        if (step < 3)
            tn_app_record(app);
        assert_true(tn_net_run(net, 2, in, 2, y));
        at += nn_read(app, y[1], out + at, room - at);
        loss = tn_loss_softmax_ce(app, y[0], tn_app_array(app, 1, &n, labels));
        at += nn_read(app, loss, out + at, room - at);
        if (step < 3) {
            tn_app_backward(app, loss);
            tn_trainer_step(trainer, n);
        }
    }
    at += nn_read_params(app, net, out + at, room - at);
    nn_close(app);
    return at;
}

static void test_same_bits(void **state)
{
    static float a[32768], b[32768];
    size_t n = bits_of(0, 0, NULL, a, 32768);

    (void)state;
    assert_true(n > 1000);
    for (int flags = 0; flags < 2; flags++) {
        assert_int_equal(bits_of(1, flags, NULL, b, 32768), n);
        assert_memory_equal(a, b, n * sizeof *a);
    }
    assert_int_equal(bits_of(1, 1, "engine.type=naive", b, 32768), n);
    assert_memory_equal(a, b, n * sizeof *a);
}

/* ---- names and files ----------------------------------------------------------------------------- */

static void listed(tn_symbol *symbol, int32_t what, const char *wanted)
{
    char **names = NULL, all[4096] = "";
    size_t count = 0;

    assert_int_equal(tn_symbol_list(symbol, what, &count, &names), TN_OK);
    for (size_t i = 0; i < count; i++) {
        strcat(all, names[i]);
        strcat(all, " ");
    }
    assert_string_equal(all, wanted);
    tn_free(names);
}

static void test_names(void **state)
{
    static const char *const first[] = {"stage1.conv0.weight", "stage1.batchnorm0.gamma",
                                        "stage1.batchnorm0.beta", "stage1.batchnorm0.running_mean"};
    tn_app *app = nn_open(NULL);
    tn_net *net = everything_net(app);
    char *folder = nn_quick_folder(), prefix[256];
    tn_symbol *symbol;
    tn_array *kept;
    float value[8], again[8];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/m", folder);
    tn_net_init(net, .seed = 1, .shapes = {{4, 2, 6, 6}, {4, 5}});
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(tn_net_param_name(net, i), first[i]);
    assert_non_null(tn_net_param(net, "cell.i2h.weight"));
    assert_ptr_equal(tn_net_param(net, "all_cell_h2h_bias"), tn_net_param(net, "cell.h2h.bias"));
    assert_non_null(tn_net_param(net, "stage2.conv1.weight"));
    assert_string_equal(tn_net_input(net), "picture");
    assert_int_equal(tn_net_input_count(net), 2);
    symbol = tn_net_symbol(net);
    listed(symbol, TN_LIST_OUTPUTS, "all_dense0_fwd_output all_topk0_output ");
    tn_symbol_release(symbol);
    /* A parameter's first values are those of its name, whatever else there is. */
    kept = tn_net_param(net, "wide.bias");
    nn_shape(kept, 1, (const int64_t[]){6});
    kept = tn_net_param(net, "cell.i2h.bias");
    (void)nn_read(app, tn_net_param(net, "cell.i2h.weight"), value, 8);
    tn_net_export(net, prefix); /* layers that are shared are there once */
    assert_true(tn_app_ok(app));
    tn_net_init(net, .seed = 1, .shapes = {{1, 2, 6, 6}, {1, 5}});
    (void)nn_read(app, tn_net_param(net, "cell.i2h.weight"), again, 8);
    assert_memory_equal(value, again, 6 * sizeof *value);
    nn_close(app);
    nn_folder_remove(folder);
}

static tn_x classifier(tn_x x)
{
    return tn_dense(tn_flatten(residual(x, 3)), .units = 4);
}

/* Saved, exported, loaded: the same numbers; a second net takes them. */
static void test_files(void **state)
{
    char *folder = nn_quick_folder(), prefix[256], params[256];
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, classifier, .name = "c"), *twin, *model;
    tn_array *x = nn_array(app, 4, image, 3), *out[1];
    float want[16], have[16];
    char hex[2][65];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/m", folder);
    (void)snprintf(params, sizeof params, "%s/c.params", folder);
    tn_net_init(net, .seed = 5);
    assert_int_equal(nn_read(app, tn_net_forward(net, x), want, 16), 16);
    tn_net_save(net, params);
    tn_net_export(net, prefix);
    model = tn_net_load(app, prefix);
    assert_int_equal(nn_read(app, tn_net_forward(model, x), have, 16), 16);
    assert_memory_equal(want, have, sizeof want);
    twin = tn_net_function(app, classifier, .name = "c");
    tn_net_init(twin, .shape = {1, 2, 6, 6});
    tn_net_load_params(twin, params);
    tn_net_hybridize(twin);
    assert_true(tn_net_run(twin, 1, &x, 1, out));
    (void)nn_read(app, out[0], have, 16);
    assert_memory_equal(want, have, sizeof want);
    assert_true(tn_net_sha256(net, hex[0]) && tn_net_sha256(twin, hex[1]));
    assert_string_equal(hex[0], hex[1]);
    nn_close(app);
    nn_folder_remove(folder);
}

/* ---- programs ------------------------------------------------------------------------------------ */

static int calls;

static tn_x counted(tn_x x)
{
    calls++;
    return tn_dense(tn_dim(x, 0) > 4 ? tn_scale(x, 2) : x, .units = 2, .no_bias = 1);
}

static void test_programs(void **state)
{
    const int64_t more[2] = {6, 5};
    float small[8], large[12];

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, counted);
        tn_array *x = nn_array(app, 2, flat, 1), *wide = nn_array(app, 2, more, 1);

        tn_net_init(net, .seed = 1);
        if (hybrid)
            tn_net_hybridize(net);
        calls = 0;
        for (int i = 0; i < 3; i++) {
            (void)nn_read(app, tn_net_forward(net, x), small, 8);
            (void)nn_read(app, tn_net_forward(net, wide), large, 12);
            for (int k = 0; k < 8; k++)
                assert_true(large[k] == 2 * small[k]);
        }
        assert_int_equal(calls, hybrid ? 2 : 6);
        tn_net_retrace(net);
        (void)tn_net_forward(net, x);
        assert_int_equal(calls, hybrid ? 3 : 7);
        nn_close(app);
    }
}

/* Outputs that are inputs, or one value twice; an input that is not used. */
static void crossed(const tn_x *in, tn_x *out)
{
    out[0] = in[1];
    out[1] = out[2] = tn_dense(in[0], .units = 2);
}

static void test_crossed(void **state)
{
    float x[20], y[20], first[8], second[8], before[8] = {0};

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_functions(app, crossed, .inputs = {"a", "b", "c"}, .outputs = {"x", "y", "z"});
        tn_array *in[3] = {nn_array(app, 2, flat, 1), nn_array(app, 2, flat, 2), nn_array(app, 2, flat, 3)};
        tn_array *out[3];

        tn_net_init(net, .seed = 1);
        if (hybrid)
            tn_net_hybridize(net);
        for (int again = 0; again < 2; again++) {
            assert_true(tn_net_run(net, 3, in, 3, out));
            (void)nn_read(app, in[1], x, 20);
            (void)nn_read(app, out[0], y, 20);
            assert_memory_equal(x, y, sizeof x);
            (void)nn_read(app, out[1], first, 8);
            (void)nn_read(app, out[2], second, 8);
            assert_memory_equal(first, second, sizeof first);
            assert_memory_not_equal(first, before, sizeof first);
            memcpy(before, first, sizeof before);
            tn_net_init(net, .seed = 9); /* other values, the program is there */
        }
        nn_close(app);
    }
}

static bool with_more;

static tn_x sometimes(tn_x x)
{
    if (with_more)
        x = tn_dense(x, .units = 5, .name = "more");
    return tn_dense(x, .units = 2);
}

/* A named layer may come later; a trainer that has begun does not know its parameters. */
static void test_later(void **state)
{
    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, sometimes);
        tn_trainer *trainer = tn_trainer_new(net, .lr = 0.1);

        tn_net_init(net, .seed = 1);
        if (hybrid)
            tn_net_hybridize(net);
        for (int step = 0; step < 2; step++) {
            tn_array *x = nn_array(app, 2, flat, 1), *wanted = nn_array(app, 2, (const int64_t[]){4, 2}, 2);

            with_more = step > 0;
            tn_net_retrace(net);
            tn_app_record(app);
            tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, x), wanted));
            assert_true(tn_app_ok(app));
            assert_int_equal(tn_net_param_count(net), step ? 4 : 2);
            tn_trainer_step(trainer, 4);
        }
        nn_close_failed(app, "has got parameters since its trainer", 1);
    }
}

static void test_takes(void **state)
{
    const int64_t wrong[2] = {4, 6};
    int64_t shape[8];
    int32_t ndim = 0;
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, counted);
    char text[2048] = "";
    FILE *out = fmemopen(text, sizeof text, "w");

    (void)state;
    tn_net_init(net, .seed = 1, .shape = {4, 5});
    assert_true(tn_net_takes(net, 2, flat, &ndim, shape));
    assert_true(ndim == 2 && shape[0] == 4 && shape[1] == 2);
    assert_false(tn_net_takes(net, 2, wrong, &ndim, shape));
    tn_net_summary(net, out, 2, flat);
    (void)fclose(out);
    assert_non_null(strstr(text, "net.dense0"));
    nn_close(app);
}

/* ---- nets within nets ---------------------------------------------------------------------------- */

static tn_net *inner;

static tn_x encoder(tn_x x)
{
    return tn_dense(x, .units = 3, .activation = "tanh");
}

static tn_x twice(tn_x x)
{
    tn_x a = tn_net_call(inner, x), b = tn_net_call(inner, tn_scale(x, -1));

    return tn_dense(tn_sub(a, b), .units = 2);
}

static void test_within(void **state)
{
    char *folder = nn_quick_folder(), path[256];
    float before[8], after[8];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/t.params", folder);
    for (int hybrid = 0; hybrid < 2; hybrid++)
        for (int chain = 0; chain < 2; chain++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_function(app, twice, .name = "t");
            tn_array *x = nn_array(app, 2, flat, 1), *loss, *code;

            inner = chain ? tn_net_new(app, .name = "e") : tn_net_function(app, encoder, .name = "e");
            if (chain)
                tn_net_dense(inner, .units = 3, .activation = "tanh");
            tn_net_init(net, .seed = 2);
            if (hybrid)
                tn_net_hybridize(net);
            for (int i = 0; i < 2; i++) {
                tn_app_record(app);
                loss = tn_loss_l2(app, tn_net_forward(net, x), nn_array(app, 2, (const int64_t[]){4, 2}, 4));
                tn_app_backward(app, loss);
                tn_trainer_step(tn_trainer_new(net, .lr = 0.1), 4);
            }
            assert_int_equal(tn_net_param_count(net), 4);
            assert_non_null(tn_net_param(net, chain ? "e.0.weight" : "e.dense0.weight"));
            assert_ptr_equal(tn_net_param(net, "e_dense0_bias"), tn_net_param(inner, "e_dense0_bias"));
            code = tn_net_forward(inner, x); /* by itself, too */
            nn_shape(code, 2, (const int64_t[]){4, 3});
            (void)nn_read(app, tn_net_forward(net, x), before, 8);
            tn_net_save(net, path);
            tn_net_init(net, .seed = 3, .shape = {4, 5});
            tn_net_load_params(net, path);
            (void)nn_read(app, tn_net_forward(net, x), after, 8);
            assert_memory_equal(before, after, sizeof before);
            nn_close(app);
        }
    nn_folder_remove(folder);
}

/* Parts of a chain that are run by hand: the chain is something else. */
static void test_by_hand(void **state)
{
    for (int what = 0; what < 5; what++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app, .name = "n"), *part = tn_net_sequential(net, .name = "part");
        tn_array *x = nn_array(app, 2, flat, 1);
        tn_evaluation found = {.struct_size = sizeof found};

        (void)state;
        tn_net_dense(part, .units = 5);
        tn_net_init(net, .shape = {4, 5});
        assert_non_null(tn_net_forward(part, x));
        assert_true(tn_app_ok(app));
        if (what == 0)
            tn_net_export(net, "/nowhere/n");
        else if (what == 1)
            assert_null(tn_net_symbol(net));
        else if (what == 2)
            (void)tn_net_eval(net, tn_data_open(app, "digits:test"), "accuracy");
        else if (what == 3)
            (void)tn_net_evaluate(net, tn_data_open(app, "digits:test"), &found);
        else
            tn_net_summary(net, stderr, 2, flat);
        nn_close_failed(app, "part n.part was run by hand", 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_names),   cmocka_unit_test(test_files),
        cmocka_unit_test(test_programs),  cmocka_unit_test(test_takes),   cmocka_unit_test(test_within),
        cmocka_unit_test(test_by_hand),   cmocka_unit_test(test_crossed), cmocka_unit_test(test_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

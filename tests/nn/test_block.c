/* Symbols' files as nets within nets: the numbers of what they came from, trained with the rest, refused. */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE = 2 * 1 * 6 * 6, FEATURES = 2 * 3 * 4 * 4, SCORES = 2 * 2, PARAMS = 1024 };

static const int64_t image[] = {2, 1, 6, 6};
static tn_net *inner; /* of the net around it */

static tn_x feature_net(tn_x x)
{
    x = tn_batchnorm(tn_conv2d(x, .channels = 3, .kernel = {3, 3}, .name = "c"), .name = "n");
    return tn_dropout(tn_relu(x), .rate = 0.5);
}

static tn_x around(tn_x x)
{
    return tn_dense(tn_flatten(tn_net_call(inner, x)), .units = 2, .name = "d");
}

/* One of its own, exported; its output, and the file's name. */
static void features_save(const char *folder, float *out)
{
    tn_app *app = nn_open("plugins.load=cpu", NULL); /* as below: the kernels are the same */
    tn_net *net = tn_net_function(app, feature_net, .name = "f");
    char prefix[512];

    (void)snprintf(prefix, sizeof prefix, "%s/f", folder);
    tn_net_init(net, .with = "uniform", .scale = 0.5, .seed = 4);
    assert_int_equal(nn_read(app, tn_net_forward(net, nn_array(app, 4, image, 1)), out, FEATURES), FEATURES);
    tn_net_export(net, prefix);
    nn_close(app);
}

/* Trained for three steps: all parameters, and the scores; the block's own output first. */
static void trained(const char *folder, bool hybrid, float *features, float *params, size_t *count,
                    float *scores)
{
    tn_app *app = nn_open("run.deterministic=threads", "plugins.load=cpu", NULL);
    char json[512], file[512];
    tn_array *x = nn_array(app, 4, image, 1), *y = nn_array(app, 2, (int64_t[]){2, 2}, 3);
    tn_array *out;
    tn_net *net;
    tn_trainer *t;

    (void)snprintf(json, sizeof json, "%s/f-symbol.json", folder);
    (void)snprintf(file, sizeof file, "%s/f-0000.params", folder);
    inner = tn_net_block(app, json, .params = file, .name = "b");
    if (!(out = tn_net_forward(inner, x)))
        fail_msg("%s", tn_app_error(app));
    assert_int_equal(nn_read(app, out, features, FEATURES), FEATURES);
    assert_non_null(tn_net_param(inner, "f_c_weight"));
    assert_null(tn_net_param_grad(inner, "f_n_running_mean"));
    assert_int_equal(tn_random_seed(tn_app_ctx(app), 9, NULL), TN_OK);
    net = tn_net_function(app, around, .name = "a");
    tn_net_init(net, .seed = 7);
    if (hybrid)
        tn_net_hybridize(net);
    t = tn_trainer_new(net, .lr = 0.1);
    for (int step = 0; step < 3; step++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, x), y));
        tn_trainer_step(t, 2);
    }
    if (!tn_app_ok(app))
        fail_msg("%s", tn_app_error(app));
    assert_non_null(tn_net_param_grad(net, "b.f_c_weight"));
    *count = nn_read_params(app, net, params, PARAMS);
    assert_int_equal(nn_read(app, tn_net_forward(net, x), scores, SCORES), SCORES);
    nn_close(app);
}

static void within_a_net(void **state)
{
    static float want[FEATURES], features[2][FEATURES], params[2][PARAMS], scores[2][SCORES];
    char *folder = nn_folder();
    size_t count[2];

    (void)state;
    features_save(folder, want);
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        trained(folder, hybrid, features[hybrid], params[hybrid], &count[hybrid], scores[hybrid]);
        assert_memory_equal(features[hybrid], want, sizeof want);
    }
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(params[0], params[1], count[0] * sizeof **params);
    assert_memory_equal(scores[0], scores[1], sizeof *scores);
    nn_folder_remove(folder);
}

/* An exported file of a net with another name: that is told from the names of its own parameters; the block's
 * are called the same in both. */
static void of_another_name(void **state)
{
    static const char *const names[] = {"a", "one_whose_name_is_longer_than_any_parameter_of_the_block"};
    static float params[2][PARAMS];
    char *folder = nn_folder(), json[512], file[560], prefix[512];
    size_t count[2];

    (void)state;
    features_save(folder, (float[FEATURES]){0});
    (void)snprintf(json, sizeof json, "%s/f-symbol.json", folder);
    (void)snprintf(prefix, sizeof prefix, "%s/whole", folder);
    (void)snprintf(file, sizeof file, "%s-0000.params", prefix);
    for (int i = 0; i < 2; i++) {
        tn_app *app = nn_open(NULL);
        tn_array *x = nn_array(app, 4, image, 1);
        tn_net *net;

        inner = tn_net_block(app, json, .name = "b");
        net = tn_net_function(app, around, .name = names[i]);
        tn_net_init(net, .seed = (uint64_t)i + 7);
        (void)tn_net_forward(net, x);
        if (i)
            tn_net_load_params(net, file);
        else
            tn_net_export(net, prefix);
        if (!tn_app_ok(app))
            fail_msg("%s", tn_app_error(app));
        count[i] = nn_read_params(app, net, params[i], PARAMS);
        nn_close(app);
    }
    assert_int_equal(count[0], count[1]);
    assert_memory_equal(params[0], params[1], count[0] * sizeof **params);
    nn_folder_remove(folder);
}

static tn_net *parts[2];

static tn_x both_parts(tn_x x)
{
    return tn_net_call(parts[1], tn_net_call(parts[0], x));
}

static tn_x part(tn_x x)
{
    return tn_dense(x, .units = 2, .name = "d");
}

/* No parameter is the net's own, but the name of a net within it begins as its name does, and is not the
 * file's. The first parameter's name is shorter than the net's. */
static void of_no_own_name(void **state)
{
    char *folder = nn_folder(), file[560], prefix[512];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/parts", folder);
    (void)snprintf(file, sizeof file, "%s-0000.params", prefix);
    for (int i = 0; i < 2; i++) {
        tn_app *app = nn_open(NULL);
        tn_array *x = nn_array(app, 2, (int64_t[]){2, 3}, 1);
        tn_net *net;

        parts[0] = tn_net_function(app, part, .name = "x");
        parts[1] =
            tn_net_function(app, part, .name = i ? "a_net_with_a_long_name3" : "a_net_with_a_long_name2");
        net = tn_net_function(app, both_parts, .name = "a_net_with_a_long_name");
        tn_net_init(net, .seed = 1);
        (void)tn_net_forward(net, x);
        if (!i)
            tn_net_export(net, prefix);
        if (!tn_app_ok(app))
            fail_msg("%s", tn_app_error(app));
        if (i) {
            tn_net_load_params(net, file);
            nn_close_failed(app, "a_net_with_a_long_name3_d_weight", 2);
        } else {
            nn_close(app);
        }
    }
    nn_folder_remove(folder);
}

/* Two inputs and two outputs, of Gluon's export: as the model that is loaded of it. */
static void of_mxnet(void **state)
{
    tn_app *app = nn_open(NULL);
    const char *source = getenv("TENON_TEST_SOURCE");
    tn_array *in[2], *out[2], *of_block[2];
    tn_net *model, *block;
    char prefix[512], json[560], params[560];
    static float a[4096], b[4096];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/tests/oracle/recorded/nn/pair", source ? source : ".");
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    (void)snprintf(params, sizeof params, "%s-0000.params", prefix);
    model = tn_net_load(app, prefix);
    block = tn_net_block(app, json, .params = params, .inputs = {"data0", "data1"});
    in[0] = nn_array(app, 2, (int64_t[]){3, 4}, 1);
    in[1] = nn_array(app, 2, (int64_t[]){3, 6}, 2);
    if (!tn_net_run(model, 2, in, 2, out) || !tn_net_run(block, 2, in, 2, of_block))
        fail_msg("%s", tn_app_error(app));
    for (int k = 0; k < 2; k++) {
        const size_t n = nn_read(app, out[k], a, 4096);

        assert_true(n > 0);
        assert_int_equal(nn_read(app, of_block[k], b, 4096), n);
        assert_memory_equal(a, b, n * sizeof *a);
    }
    nn_close(app);
}

/* data -> FullyConnected with a weight of that name; saved. */
static void graph_save(const char *file, const char *weight)
{
    tn_app *app = nn_open(NULL);
    const char *const attrs[] = {"num_hidden", "2", "no_bias", "True", NULL};
    tn_symbol *in[2] = {NULL}, *out = NULL;
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 2,
                                 .op = "FullyConnected",
                                 .attrs = attrs,
                                 .in = in};

    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), "data", &in[0]), TN_OK);
    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), weight, &in[1]), TN_OK);
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &out), TN_OK);
    assert_int_equal(tn_symbol_save(out, file), TN_OK);
    tn_symbol_release(in[0]);
    tn_symbol_release(in[1]);
    tn_symbol_release(out);
    nn_close(app);
}

/* An affine layer whose variables say how they begin and are trained; `offset` by no name, of six
 * dimensions. */
static void said_save(const char *file, const char *offset_init)
{
    static const char *const dense[] = {"num_hidden", "2", NULL}, *const deep[] = {"shape", "(-1,1,1,1,1,2)",
                                                                                   NULL};
    static const char *const names[] = {"data", "fc_weight", "fc_bias", "offset"};
    static const char *const attrs[][2] = {
        {"fc_weight", "__init__"},    {"[\"constant\", {\"value\": 0.25}]"},
        {"fc_weight", "__lr_mult__"}, {"0"},
        {"fc_bias", "__init__"},      {"[\"strange\", {}]"},
        {"fc_bias", "__wd_mult__"},   {"3"},
        {"offset", "__shape__"},      {"(1,1,1,1,1,2)"},
        {"offset", "__lr_mult__"},    {"2"}};
    tn_app *app = nn_open(NULL);
    tn_symbol *in[4] = {NULL}, *fc = NULL, *wide = NULL, *out = NULL, *sum[2];
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                           .in_count = 3,
                           .op = "FullyConnected",
                           .attrs = dense,
                           .in = in};

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(tn_symbol_variable(tn_app_ctx(app), names[i], &in[i]), TN_OK);
        for (size_t k = 0; k < sizeof attrs / sizeof *attrs; k += 2)
            if (!strcmp(attrs[k][0], names[i]))
                assert_int_equal(tn_symbol_attr_set(in[i], attrs[k][1], attrs[k + 1][0]), TN_OK);
    }
    assert_int_equal(tn_symbol_attr_set(in[3], "__init__", offset_init), TN_OK);
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &fc), TN_OK);
    call.in_count = 1;
    call.op = "Reshape";
    call.attrs = deep;
    call.in = &fc;
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &wide), TN_OK);
    sum[0] = wide;
    sum[1] = in[3];
    call.in_count = 2;
    call.op = "broadcast_add";
    call.attrs = NULL;
    call.in = sum;
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &out), TN_OK);
    assert_int_equal(tn_symbol_save(out, file), TN_OK);
    for (size_t i = 0; i < 4; i++)
        tn_symbol_release(in[i]);
    tn_symbol_release(fc);
    tn_symbol_release(wide);
    tn_symbol_release(out);
    nn_close(app);
}

/* Read as a block or to be trained: first values, rates and decay are the same, and those of the file. */
static void as_variables_say(void **state)
{
    static const char *const names[] = {"fc_weight", "fc_bias", "offset"};
    char *folder = nn_folder(), json[512];
    float values[2][2][3][6]; /* reader, before and after, parameter */

    (void)state;
    memset(values, 0, sizeof values);
    (void)snprintf(json, sizeof json, "%s/said-symbol.json", folder);
    said_save(json, "ones");
    for (int reader = 0; reader < 2; reader++) {
        tn_app *app = nn_open(NULL);
        tn_array *x = nn_array(app, 2, (int64_t[]){2, 3}, 1),
                 *y = nn_array(app, 6, (int64_t[]){2, 1, 1, 1, 1, 2}, 2);
        tn_net *net = reader ? tn_net_block(app, json) : tn_net_from_symbol(app, json);
        tn_trainer *t;

        tn_net_init(net, .with = "constant", .scale = 0.5, .shape = {2, 3});
        t = tn_trainer_new(net, .lr = 0.1, .wd = 0.2);
        for (int after = 0; after < 2; after++) {
            for (size_t i = 0; i < 3; i++)
                assert_int_equal(nn_read(app, tn_net_param(net, names[i]), values[reader][after][i], 6),
                                 i ? 2 : 6);
            tn_app_record(app);
            tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, x), y));
            tn_trainer_step(t, 2);
        }
        nn_close(app);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_true(values[0][0][0][0] == 0.25f && values[0][0][2][0] == 1);
    assert_memory_equal(values[0][0][0], values[0][1][0], sizeof values[0][0][0]); /* its rate is 0 */
    assert_true(values[0][0][1][0] != values[0][1][1][0] && values[0][0][2][0] != values[0][1][2][0]);
    said_save(json, "[\"strange\", {}]"); /* nothing else says how it begins */
    for (int reader = 0; reader < 2; reader++) {
        tn_app *app = nn_open(NULL);

        tn_net_init(reader ? tn_net_block(app, json) : tn_net_from_symbol(app, json), .shape = {2, 3});
        nn_close_failed(app, "offset: its name does not say how it is filled", 1);
    }
    nn_folder_remove(folder);
}

static void refused(void **state)
{
    char *folder = nn_folder(), good[512], odd[512];
    tn_app *app;

    (void)state;
    (void)snprintf(good, sizeof good, "%s/good.json", folder);
    (void)snprintf(odd, sizeof odd, "%s/odd.json", folder);
    graph_save(good, "fc_weight");
    graph_save(odd, "w");

    assert_null(tn_net_block_(NULL, good, NULL));
    app = nn_open(NULL);
    assert_null(tn_net_block_(app, NULL, NULL));
    nn_close_failed(app, "a file's name is missing", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, good, .name = "a b"));
    nn_close_failed(app, "letters, digits", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, "/nowhere"));
    nn_close_failed(app, "/nowhere", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, good, .inputs = {"dada"}));
    nn_close_failed(app, "no variable \"dada\"", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, good, .inputs = {"fullyconnected0"})); /* a node, which no call can feed */
    nn_close_failed(app, "no variable \"fullyconnected0\"", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, good, .inputs = {"data", "data"}));
    nn_close_failed(app, "input \"data\" is given twice", 2);
    app = nn_open(NULL);
    assert_null(tn_net_block(app, good, .params = "/nowhere"));
    nn_close_failed(app, "/nowhere", 2);
    app = nn_open(NULL);
    assert_null(tn_net_forward(tn_net_block(app, good), nn_array(app, 2, (int64_t[]){2, 3}, 1)));
    nn_close_failed(app, "call tn_net_init()", 1);
    app = nn_open(NULL);
    assert_null(
        tn_net_forward(tn_net_block(app, odd, .inputs = {"data"}), nn_array(app, 2, (int64_t[]){2, 3}, 1)));
    nn_close_failed(app, "variable \"w\" is neither an input nor a parameter", 1);
    nn_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(within_a_net),     cmocka_unit_test(of_mxnet),
                                       cmocka_unit_test(of_another_name),  cmocka_unit_test(of_no_own_name),
                                       cmocka_unit_test(as_variables_say), cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Functions as layers of a chain (tn_net_add): the same numbers, names and files as of the same calls in one
 * function, on arrays and compiled, in training, by several shapes.
 */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t image[4] = {3, 4, 6, 6};

/* Gluon's HybridConcurrent, Identity, PixelShuffle2D, and a net within. */
static tn_net *within;

static tn_x branches(tn_x x)
{
    const tn_x left = tn_conv2d(x, .channels = 4, .kernel = {1, 1});
    const tn_x right = tn_maxpool2d(x, .kernel = {3, 3}, .stride = {1}, .pad = {1, 1});

    (void)tn_param(x, "conv0.weight"); /* found below the chain's name for it, too */
    return tn_concat(1, x, left, right);
}

static tn_x identity(tn_x x)
{
    return x;
}

static tn_x shuffled(tn_x x)
{
    return tn_pixelshuffle(x, .factor = {2});
}

static tn_x half(tn_x x)
{
    return tn_dense(x, .units = tn_dim(x, 1) / 2);
}

static tn_x calls(tn_x x)
{
    return tn_net_call(within, tn_flatten(x));
}

static tn_x all(tn_x x)
{
    x = tn_batchnormrelu(tn_conv2d(x, .channels = 6, .kernel = {3, 3}));
    return tn_dense(calls(shuffled(identity(branches(x)))), .units = 2);
}

static tn_net *chain(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "chain");

    within = tn_net_function(app, half, .name = "half");
    tn_net_conv2d(net, .channels = 6, .kernel = {3, 3});
    tn_net_batchnormrelu(net);
    tn_net_add(net, tn_net_function(app, branches));
    tn_net_add(net, tn_net_function(app, identity));
    tn_net_add(net, tn_net_function(app, shuffled));
    tn_net_add(net, tn_net_function(app, calls));
    tn_net_dense(net, .units = 2);
    return net;
}

/* Two steps; outputs, parameters and gradients. */
static size_t trained(tn_app *app, tn_net *net, float *out, size_t room)
{
    tn_trainer *t = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    size_t at = 0;

    for (int step = 0; step < 2; step++) {
        const int64_t shape[4] = {3 - step, 4, 6, 6}; /* two shapes, so two programs at most */
        tn_array *y;

        tn_app_record(app);
        y = tn_net_forward(net, nn_array(app, 4, shape, 5 + (uint64_t)step));
        tn_app_backward(app, y);
        tn_trainer_step(t, 2);
        at += nn_read(app, y, out + at, room - at);
    }
    return at + nn_read_params(app, net, out + at, room - at);
}

enum { ROOM = 90000 };

static void test_same(void **state)
{
    static float want[ROOM], have[2][ROOM];
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_net *net = chain(app), *one;
    char *folder = nn_folder(), path[512];
    size_t count, wanted;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/first.params", folder);
    tn_net_init(net, .seed = 3, .shape = {3, 4, 6, 6});
    tn_net_save(net, path);
    count = trained(app, net, have[0], ROOM);
    for (int i = 0; i < 2; i++) { /* again from these values, compiled */
        tn_net *hybrid = chain(app);

        tn_net_init(hybrid, .seed = 7, .shape = {3, 4, 6, 6});
        tn_net_load_params(hybrid, path);
        tn_net_hybridize(hybrid, .static_alloc = i);
        assert_int_equal(trained(app, hybrid, have[1], ROOM), count);
        assert_memory_equal(have[0], have[1], count * sizeof **have);
    }
    within = tn_net_function(app, half, .name = "half");
    one = tn_net_function(app, all);
    tn_net_init(one, .seed = 9, .shape = {3, 4, 6, 6});
    assert_int_equal(tn_net_param_count(one), tn_net_param_count(net));
    {
        static const char *const names[][2] = {{"0.weight", "conv0.weight"},
                                               {"0.bias", "conv0.bias"},
                                               {"1.gamma", "batchnormrelu0.gamma"},
                                               {"2.conv0.weight", "conv1.weight"},
                                               {"2.conv0.bias", "conv1.bias"},
                                               {"5.half.dense0.weight", "half.dense0.weight"},
                                               {"5.half.dense0.bias", "half.dense0.bias"},
                                               {"6.weight", "dense0.weight"},
                                               {"6.bias", "dense0.bias"}};
        tn_params *params = NULL;

        assert_int_equal(tn_params_load(tn_app_ctx(app), path, NULL, &params), TN_OK);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            tn_array *array = NULL;

            assert_int_equal(tn_params_get(params, names[i][0], &array), TN_OK);
            assert_int_equal(tn_array_copy(array, tn_net_param(one, names[i][1])), TN_OK);
            tn_array_release(array);
        }
        tn_params_destroy(params);
    }
    wanted = trained(app, one, want, ROOM);
    assert_int_equal(wanted, count);
    assert_memory_equal(want, have[0], 10 * sizeof *want); /* what came out of both steps */
    nn_folder_remove(folder);
    nn_close(app);
}

/* Exported and loaded it gives the same; its table has all layers. */
static void test_files(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = chain(app), *loaded;
    char *folder = nn_folder(), prefix[512], table[8192] = "";
    FILE *file = fmemopen(table, sizeof table, "w");
    float a[6], b[6];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/chain", folder);
    tn_net_init(net, .seed = 3);
    assert_int_equal(nn_read(app, tn_net_forward(net, nn_array(app, 4, image, 1)), a, 6), 6);
    tn_net_export(net, prefix);
    loaded = tn_net_load(app, prefix);
    assert_int_equal(nn_read(app, tn_net_forward(loaded, nn_array(app, 4, image, 1)), b, 6), 6);
    assert_memory_equal(a, b, sizeof a);
    assert_non_null(file);
    tn_net_summary(net, file, 4, image);
    (void)fclose(file);
    assert_non_null(strstr(table, "chain.function0.conv0"));
    assert_non_null(strstr(table, "half.dense0"));
    nn_folder_remove(folder);
    nn_close(app);
}

static tn_x two(tn_x x)
{
    return tn_relu(x);
}

static void pair(const tn_x *in, tn_x *out)
{
    out[0] = out[1] = in[0];
}

static void test_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        tn_app *app = nn_open(NULL), *other = nn_open(NULL);
        tn_net *net = tn_net_new(app), *function = tn_net_function(i == 0 ? other : app, two);

        if (i == 1)
            tn_net_add(net, function);
        if (i == 2)
            (void)tn_net_forward(function, nn_array(app, 4, image, 1));
        if (i == 3)
            function = tn_net_functions(app, pair, .outputs = {"a", "b"});
        tn_net_add(i == 4 ? function : net, i == 4 ? tn_net_function(app, two) : function);
        nn_close_failed(app,
                        i == 0   ? "a net of another app"
                        : i == 3 ? "one input and one output"
                        : i == 4 ? "its layers are made where it calls them"
                                 : "was added, or called, before",
                        i == 4 ? 1 : 2);
        nn_close(other);
    }
}

/* Along .axes of Dropout one draw holds: a row is dropped whole. */
static void test_dropout_axes(void **state)
{
    enum { ROWS = 64, COLUMNS = 5 };
    const int64_t rows[2] = {ROWS, COLUMNS};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    float ones[ROWS * COLUMNS], out[ROWS * COLUMNS];
    int dropped = 0;

    (void)state;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1;
    tn_net_dropout(net, .rate = 0.5, .axes = "1");
    tn_app_record(app);
    (void)nn_read(app, tn_net_forward(net, tn_app_array(app, 2, rows, ones)), out, ROWS * COLUMNS);
    tn_app_pause(app);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_true(out[i] == 0 || out[i] == 2);
        assert_true(out[i] == out[i / COLUMNS * COLUMNS]);
        dropped += out[i] == 0;
    }
    assert_true(dropped > 0 && dropped < ROWS * COLUMNS);
    nn_close(app);
}

/* On one device it is BatchNorm. */
static void test_syncbatchnorm(void **state)
{
    enum { NORM_ROOM = 1024 };
    static float have[2][NORM_ROOM];
    size_t count = 0;

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app);

        if (sync)
            tn_net_syncbatchnorm(net, .momentum = 0.8, .epsilon = 0.01);
        else
            tn_net_batchnorm(net, .momentum = 0.8, .epsilon = 0.01);
        tn_net_init(net, .seed = 1, .shape = {3, 4, 6, 6});
        count = trained(app, net, have[sync], NORM_ROOM);
        nn_close(app);
    }
    for (size_t i = 0; i < count; i++) /* by another kernel */
        assert_true(fabsf(have[0][i] - have[1][i]) < 1e-4f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),          cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_dropout_axes),
        cmocka_unit_test(test_syncbatchnorm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

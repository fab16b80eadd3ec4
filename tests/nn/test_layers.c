/* Shapes of every layer, sizes found at the first forward, wrong options, gradients, same bits hybridized or
 * not. */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int32_t ndim;
    int64_t dim[4];
} shape;

static void add_dense(tn_net *net)
{
    tn_net_dense(net, .units = 5, .activation = "relu");
}
static void add_dense_last(tn_net *net)
{
    tn_net_dense(net, .units = 5, .keep_axes = 1, .no_bias = 1);
}
static void add_conv(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4, .kernel = {3}, .pad = {1, 0}, .stride = {2});
}
static void add_conv_groups(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4, .kernel = {2, 3}, .groups = 2, .dilate = {1, 2});
}
static void add_max(tn_net *net)
{
    tn_net_maxpool2d(net);
}
static void add_max_full(tn_net *net)
{
    tn_net_maxpool2d(net, .kernel = {3}, .stride = {2}, .ceil = 1);
}
static void add_avg(tn_net *net)
{
    tn_net_avgpool2d(net, .kernel = {3, 2}, .stride = {1, 1}, .pad = {1, 1}, .exclude_pad = 1);
}
static void add_global(tn_net *net)
{
    tn_net_globalavgpool2d(net);
}
static void add_norm(tn_net *net)
{
    tn_net_batchnorm(net);
}
static void add_dropout(tn_net *net)
{
    tn_net_dropout(net, .rate = 0.3);
}
static void add_flatten(tn_net *net)
{
    tn_net_flatten(net);
}
static void add_activation(tn_net *net)
{
    tn_net_activation(net, .activation = "softsign");
}
static void add_leaky(tn_net *net)
{
    tn_net_leakyrelu(net, .slope = 0.1);
}
static void add_nested(tn_net *net)
{
    tn_net *inner = tn_net_sequential(net, .name = "inner");

    tn_net_conv2d(inner, .channels = 3, .kernel = {1});
    tn_net_dense(tn_net_sequential(inner), .units = 7);
}

static const struct row {
    const char *name;
    void (*add)(tn_net *net);
    shape in, out;
    int64_t elements;
} rows[] = {
    {"dense", add_dense, {4, {3, 2, 2, 4}}, {2, {3, 5}}, 85},
    {"dense, last axis", add_dense_last, {3, {3, 2, 4}}, {3, {3, 2, 5}}, 20},
    {"conv", add_conv, {4, {2, 3, 7, 9}}, {4, {2, 4, 4, 4}}, 112},
    {"conv, groups", add_conv_groups, {4, {2, 6, 7, 9}}, {4, {2, 4, 6, 5}}, 76},
    {"max", add_max, {4, {2, 3, 7, 9}}, {4, {2, 3, 3, 4}}, 0},
    {"max, full", add_max_full, {4, {2, 3, 8, 8}}, {4, {2, 3, 4, 4}}, 0},
    {"avg", add_avg, {4, {2, 3, 5, 5}}, {4, {2, 3, 5, 6}}, 0},
    {"global", add_global, {4, {2, 3, 5, 5}}, {4, {2, 3, 1, 1}}, 0},
    {"batchnorm", add_norm, {4, {2, 3, 5, 5}}, {4, {2, 3, 5, 5}}, 12},
    {"dropout", add_dropout, {2, {2, 3}}, {2, {2, 3}}, 0},
    {"flatten", add_flatten, {4, {2, 3, 5, 5}}, {2, {2, 75}}, 0},
    {"activation", add_activation, {2, {2, 3}}, {2, {2, 3}}, 0},
    {"leaky", add_leaky, {1, {6}}, {1, {6}}, 0},
    {"nested", add_nested, {4, {2, 2, 3, 3}}, {2, {2, 7}}, 9 + 27 * 7 + 7},
};

static void test_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_new(app);
            tn_array *y;

            rows[i].add(net);
            tn_net_init(net, .seed = 3);
            if (hybrid)
                tn_net_hybridize(net);
            assert_int_equal(tn_net_param_elements(net), 0); /* not known yet */
            y = tn_net_forward(net, nn_array(app, rows[i].in.ndim, rows[i].in.dim, 1));
            if (!y)
                print_error("%s: %s\n", rows[i].name, tn_app_error(app));
            nn_shape(y, rows[i].out.ndim, rows[i].out.dim);
            assert_int_equal(tn_net_param_elements(net), rows[i].elements);
            nn_close(app);
        }
}

static void test_init_with_shape(void **state)
{
    const int64_t dense[2] = {500, 200}, conv[4] = {20, 1, 5, 5};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_zoo(app, "lenet");
    float bias[500];

    (void)state;
    assert_null(tn_net_param(net, "0.weight"));
    tn_net_init(net, .seed = 1, .shape = {64, 1, 8, 8});
    assert_int_equal(tn_net_param_elements(net), 131080);
    assert_int_equal(tn_net_param_count(net), 8);
    assert_string_equal(tn_net_param_name(net, 0), "0.weight");
    nn_shape(tn_net_param(net, "5.weight"), 2, dense);
    nn_shape(tn_net_param(net, "lenet_conv0_weight"), 4, conv);
    assert_int_equal(nn_read(app, tn_net_param(net, "5.bias"), bias, 500), 500);
    for (int i = 0; i < 500; i++)
        assert_true(bias[i] == 0);
    nn_close(app);
}

/* Values depend on seed and place in the net alone; each initialiser keeps its promise. */
static void test_initialisers(void **state)
{
    static const struct {
        const char *with, *factor, *distribution;
        double deviation; /* 0: constant */
        double value;
    } kinds[] = {
        {"xavier", "avg", "uniform", 0.11547, 0}, /* sqrt(3 / 75) / sqrt(3) */
        {"xavier", "in", "gaussian", 0.173205, 0},
        {"xavier", "out", "uniform", 0.141421 / 1.5491933, 0},
        {"msraprelu", "in", NULL, 0.137198868, 0},
        {"normal", NULL, NULL, 0.01, 0},
        {"uniform", NULL, NULL, 0.07 / 1.7320508, 0},
        {"zero", NULL, NULL, 0, 0},
        {"one", NULL, NULL, 0, 1},
        {"constant", NULL, NULL, 0, -2.5},
    };
    static float a[20000], b[20000];

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app), *other = tn_net_new(app, .name = "other");
        double sum = 0, squares = 0;
        size_t n;

        tn_net_dense(net, .units = 200);
        tn_net_flatten(other); /* not a parameter: does not move the numbers */
        tn_net_dense(other, .units = 200);
        tn_net_init(net, .with = kinds[i].with, .factor = kinds[i].factor,
                    .distribution = kinds[i].distribution, .seed = 9, .scale = kinds[i].value,
                    .shape = {1, 100});
        tn_net_init(other, .with = kinds[i].with, .factor = kinds[i].factor,
                    .distribution = kinds[i].distribution, .seed = 9, .scale = kinds[i].value,
                    .shape = {1, 100});
        assert_true(tn_app_ok(app));
        n = nn_read(app, tn_net_param(net, "0.weight"), a, 20000);
        assert_int_equal(nn_read(app, tn_net_param(other, "1.weight"), b, 20000), n);
        assert_memory_equal(a, b, n * sizeof *a);
        for (size_t k = 0; k < n; k++) {
            sum += (double)a[k];
            squares += (double)a[k] * (double)a[k];
        }
        if (kinds[i].deviation > 0) {
            double wanted = kinds[i].deviation;

            if (!strcmp(kinds[i].with, "xavier"))
                wanted = !strcmp(kinds[i].factor, "avg")  ? sqrt(3 / 150.0) / sqrt(3)
                         : !strcmp(kinds[i].factor, "in") ? sqrt(3 / 100.0)
                                                          : sqrt(3 / 200.0) / sqrt(3);
            assert_true(fabs(sum / (double)n) < 4 * wanted / sqrt((double)n));
            assert_true(fabs(sqrt(squares / (double)n) / wanted - 1) < 0.03);
        } else {
            assert_true(a[0] == (float)kinds[i].value && a[n - 1] == a[0]);
        }
        nn_close(app);
    }
}

/* ---- what is refused ---- */

static void bad_channels(tn_net *net)
{
    tn_net_conv2d(net, .channels = -4, .kernel = {3});
}
static void bad_kernel(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4);
}
static void bad_stride(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4, .kernel = {3}, .stride = {-1});
}
static void bad_pad(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4, .kernel = {3}, .pad = {-1, 0});
}
static void bad_groups(tn_net *net)
{
    tn_net_conv2d(net, .channels = 4, .kernel = {3}, .groups = 3);
}
static void bad_units(tn_net *net)
{
    tn_net_dense(net, .units = 0);
}
static void bad_activation(tn_net *net)
{
    tn_net_dense(net, .units = 3, .activation = "rellu");
}
static void no_activation(tn_net *net)
{
    tn_net_activation(net, .name = "a");
}
static void bad_rate(tn_net *net)
{
    tn_net_dropout(net, .rate = 1);
}
static void nan_rate(tn_net *net)
{
    tn_net_dropout(net, .rate = (double)NAN);
}
static void bad_momentum(tn_net *net)
{
    tn_net_batchnorm(net, .momentum = 2);
}
static void twice(tn_net *net)
{
    tn_net_dense(net, .name = "fc", .units = 3);
    tn_net_dense(net, .name = "fc", .units = 3);
}
static void bad_init(tn_net *net)
{
    tn_net_init(net, .with = "xavior");
}
static void bad_factor(tn_net *net)
{
    tn_net_init(net, .factor = "both");
}
static void bad_shape(tn_net *net)
{
    tn_net_init(net, .shape = {4, -1});
}
static void bad_suffix(tn_net *net)
{
    tn_net_multiply(net, ".bios", 1, 0);
}
static void bad_static(tn_net *net)
{
    tn_net_hybridize(net, .static_shape = 1);
}
static void too_deep(tn_net *net)
{
    for (int i = 0; net && i < 100; i++)
        net = tn_net_sequential(net);
}

static void test_refused(void **state)
{
    static const struct {
        void (*add)(tn_net *net);
        const char *text;
    } bad[] = {
        {bad_channels, ".channels is -4"},
        {bad_kernel, ".kernel"},
        {bad_stride, ".stride is {-1, -1}"},
        {bad_pad, ".pad is {-1, 0}"},
        {bad_groups, ".groups is 3"},
        {bad_units, ".units is 0"},
        {bad_activation, "did you mean \"relu\""},
        {no_activation, ".activation is missing"},
        {bad_rate, ".rate is 1"},
        {nan_rate, ".rate is"},
        {bad_momentum, ".momentum is 2"},
        {twice, "\"fc\" already"},
        {bad_init, "did you mean \"xavier\""},
        {bad_factor, "there are: avg, in, out"},
        {bad_shape, ".shape"},
        {bad_suffix, "\".bios\""},
        {bad_static, ".static_alloc"},
        {too_deep, "nested"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app, .name = "n");
        const int64_t in[4] = {1, 1, 8, 8};

        bad[i].add(net);
        tn_net_init(net);
        assert_null(tn_net_forward(net, nn_array(app, 4, in, 1)));
        nn_close_failed(app, bad[i].text, 2);
    }
}

/* The message names layer, shapes, place and a way out. */
static void test_no_output_left(void **state)
{
    const int64_t in[4] = {64, 1, 28, 28};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app, .name = "lenet");
    int line;
    char where[64];

    (void)state;
    tn_net_conv2d(net, .channels = 20, .kernel = {5, 5});
    tn_net_maxpool2d(net, .kernel = {2, 2});
    tn_net_conv2d(net, .channels = 50, .kernel = {5, 5});
    tn_net_maxpool2d(net, .kernel = {2, 2});
    line = __LINE__ + 1;
    tn_net_conv2d(net, .channels = 80, .kernel = {5, 5});
    tn_net_init(net);
    assert_null(tn_net_forward(net, nn_array(app, 4, in, 1)));
    (void)snprintf(where, sizeof where, "test_layers.c:%d", line);
    assert_non_null(strstr(tn_app_error(app), "no output left in lenet.conv2 (Convolution), called at"));
    assert_non_null(strstr(tn_app_error(app), where));
    assert_non_null(strstr(tn_app_error(app), "input 64×50×4×4 (from lenet.pool1)"));
    assert_non_null(strstr(tn_app_error(app), "→ 64×80×0×0"));
    nn_close_failed(app, "help: add .pad = {2, 2}", 1);
}

static void test_wrong_inputs(void **state)
{
    const int64_t flat[2] = {4, 10}, other[2] = {4, 11};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);

    (void)state;
    tn_net_conv2d(net, .channels = 2, .kernel = {1});
    tn_net_init(net);
    assert_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "needs images (N, C, H, W)", 1);

    app = nn_open(NULL);
    net = tn_net_new(app);
    tn_net_dense(net, .units = 2);
    assert_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "tn_net_init()", 1);

    app = nn_open(NULL);
    net = tn_net_new(app);
    tn_net_dense(net, .units = 2);
    tn_net_init(net);
    assert_non_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    assert_null(tn_net_forward(net, nn_array(app, 2, other, 1)));
    nn_close_failed(app, "net.dense0 (FullyConnected), called at", 1);

    app = nn_open(NULL);
    net = tn_net_new(app);
    tn_net_dense(net, .units = 2, .input = 11);
    tn_net_init(net);
    assert_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "net.dense0", 1);
}

/* ---- gradients ---- */

static tn_net *small_net(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "small"), *inner;

    tn_net_conv2d(net, .channels = 3, .kernel = {3, 3}, .pad = {1, 1}, .activation = "tanh");
    tn_net_batchnorm(net);
    tn_net_avgpool2d(net);
    inner = tn_net_sequential(net);
    tn_net_conv2d(inner, .channels = 2, .kernel = {2, 2});
    tn_net_leakyrelu(inner, .slope = 0.2);
    tn_net_flatten(net);
    tn_net_dense(net, .units = 6, .activation = "sigmoid");
    tn_net_dropout(net, .rate = 0.25);
    tn_net_dense(net, .units = 4);
    return net;
}

static double loss_of(tn_app *app, tn_net *net, tn_array *x, tn_array *y)
{
    float losses[8];
    double sum = 0;
    size_t n, mark = tn_app_mark(app);
    tn_array *loss;

    (void)tn_random_seed(tn_app_ctx(app), 5, NULL); /* the same elements are dropped each time */
    tn_app_record(app);
    loss = tn_loss_softmax_ce(app, tn_net_forward(net, x), y);
    n = nn_read(app, loss, losses, 8);
    for (size_t i = 0; i < n; i++)
        sum += (double)losses[i];
    tn_app_backward(app, loss);
    tn_app_release(app, mark);
    return sum;
}

/* Central differences in single precision: a coarse check of the whole chain; operators have theirs in
 * double. */
static void test_gradients(void **state)
{
    const int64_t in[4] = {4, 2, 6, 6}, labels[1] = {4};
    const float y[4] = {0, 3, 1, 2}, step = 1e-2f;
    tn_app *app = nn_open(NULL);
    tn_net *net = small_net(app);
    tn_array *x = nn_array(app, 4, in, 7), *label = tn_app_array(app, 1, labels, y);
    static float values[512], grads[512], kept;

    (void)state;
    tn_net_init(net, .seed = 3, .shape = {4, 2, 6, 6});
    for (size_t p = 0; p < tn_net_param_count(net); p++) {
        const char *name = tn_net_param_name(net, p);
        tn_array *a = tn_net_param(net, name), *g = tn_net_param_grad(net, name);
        size_t n;

        if (!g)
            continue; /* running statistics */
        (void)loss_of(app, net, x, label);
        n = nn_read(app, a, values, 512);
        assert_int_equal(nn_read(app, g, grads, 512), n);
        for (size_t k = 0; k < n; k += n / 3 + 1) {
            double up, down;

            kept = values[k];
            values[k] = kept + step;
            assert_int_equal(tn_array_write(a, values, n * sizeof *values), TN_OK);
            up = loss_of(app, net, x, label);
            values[k] = kept - step;
            assert_int_equal(tn_array_write(a, values, n * sizeof *values), TN_OK);
            down = loss_of(app, net, x, label);
            values[k] = kept;
            assert_int_equal(tn_array_write(a, values, n * sizeof *values), TN_OK);
            if (fabs((up - down) / (2 * (double)step) - (double)grads[k]) >
                5e-3 + 0.02 * fabs((double)grads[k])) {
                print_error("%s[%zu]: %g by differences, %g\n", name, k, (up - down) / (2 * (double)step),
                            (double)grads[k]);
                fail();
            }
        }
    }
    nn_close(app);
}

/* Outputs, gradients and running statistics after three steps, as bytes. */
static size_t bits_of(int hybrid, int flags, const char *setting, float *out, size_t room)
{
    const int64_t in[4] = {4, 2, 6, 6}, labels[1] = {4};
    const float y[4] = {0, 3, 1, 2};
    tn_app *app = nn_open("run.deterministic=threads", setting, NULL);
    tn_net *net = small_net(app);
    tn_trainer *trainer = tn_trainer_new(net, .lr = 0.1, .momentum = 0.9);
    size_t at = 0;

    tn_net_init(net, .seed = 3);
    (void)tn_random_seed(tn_app_ctx(app), 5, NULL);
    if (hybrid)
        tn_net_hybridize(net, .static_alloc = flags, .static_shape = flags);
    for (int step = 0; step < 3; step++) {
        tn_array *loss;

        tn_app_record(app);
        loss = tn_loss_softmax_ce(app, tn_net_forward(net, nn_array(app, 4, in, 7)),
                                  tn_app_array(app, 1, labels, y));
        tn_app_backward(app, loss);
        tn_trainer_step(trainer, 4);
        at += nn_read(app, loss, out + at, room - at);
    }
    at += nn_read(app, tn_net_forward(net, nn_array(app, 4, in, 8)), out + at, room - at); /* inference */
    at += nn_read_params(app, net, out + at, room - at);
    nn_close(app);
    return at;
}

static void test_same_bits(void **state)
{
    static float a[4096], b[4096];
    size_t n = bits_of(0, 0, NULL, a, 4096);

    (void)state;
    assert_true(n > 200);
    assert_int_equal(bits_of(1, 0, NULL, b, 4096), n);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_int_equal(bits_of(1, 1, NULL, b, 4096), n);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_int_equal(bits_of(1, 1, "engine.type=naive", b, 4096), n);
    assert_memory_equal(a, b, n * sizeof *a);
}

static void test_fake_device(void **state)
{
    static float a[4096], b[4096];
    tn_app *probe;
    char setting[4096];
    size_t n;
    int there;

    (void)state;
    (void)snprintf(setting, sizeof setting, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    probe = tn_app_open(.device = "fake:0", .no_environment = 1,
                        .settings = (const char *const[]){setting, NULL});
    there = tn_app_ok(probe);
    (void)tn_app_close(probe);
    if (!there) {
        print_message("skipped: the plugin fake is not built\n");
        skip();
    }
    n = bits_of(0, 0, "kernel.prefer=cpu", a, 4096);
    assert_int_equal(bits_of(1, 1, "device.default=fake:0", b, 4096), n);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_int_equal(bits_of(0, 0, "device.default=fake:0", b, 4096), n);
    assert_memory_equal(a, b, n * sizeof *a);
}

/* Used twice before one backward: gradients add up. */
static void test_called_twice(void **state)
{
    const int64_t in[2] = {2, 3};
    float once[12], twice_[12];

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app);
        tn_array *x = nn_array(app, 2, in, 1), *zero = tn_app_array(app, 2, in, NULL), *loss;

        tn_net_dense(net, .units = 3);
        tn_net_dense(net, .units = 3);
        tn_net_init(net, .seed = 1, .shape = {2, 3});
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        loss = tn_loss_l2(app, tn_net_forward(net, x), zero);
        tn_app_backward(app, loss);
        (void)nn_read(app, tn_net_param_grad(net, "0.weight"), once, 12);
        tn_app_record(app);
        {
            tn_array *a = tn_loss_l2(app, tn_net_forward(net, x), zero);
            tn_array *b = tn_loss_l2(app, tn_net_forward(net, x), zero);
            tn_array *in2[2] = {a, b}, *sum = NULL;
            tn_op_call call = {
                .struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "elemwise_add", .in = in2};

            assert_int_equal(tn_invoke_text(tn_app_ctx(app), &call, 1, &sum, NULL), TN_OK);
            tn_app_backward(app, tn_app_own(app, sum));
        }
        (void)nn_read(app, tn_net_param_grad(net, "0.weight"), twice_, 12);
        for (int i = 0; i < 9; i++)
            assert_true(fabsf(twice_[i] - 2 * once[i]) <= 1e-6f);
        nn_close(app);
    }
}

static void test_summary(void **state)
{
    const int64_t in[4] = {64, 1, 28, 28};
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    tn_app *app = nn_open("model.pad=0", NULL);
    tn_net *net = tn_net_zoo(app, "zoo:lenet");

    (void)state;
    tn_net_summary(net, out, 4, in);
    (void)fclose(out);
    assert_non_null(strstr(text, "lenet.conv0"));
    assert_non_null(strstr(text, "Convolution tanh"));
    assert_non_null(strstr(text, "64×50×4×4"));
    assert_non_null(strstr(text, "400500"));
    assert_non_null(strstr(text, "431080"));
    assert_non_null(strstr(text, "2293000"));
    nn_close(app);
}

static void test_zoo_options(void **state)
{
    tn_app *app = nn_open("model.padd=1", NULL);

    (void)state;
    assert_null(tn_net_zoo(app, "lenet"));
    nn_close_failed(app, "did you mean \"pad\"", 2);
    app = nn_open("model.pad=two", NULL);
    assert_null(tn_net_zoo(app, "lenet"));
    nn_close_failed(app, "model.pad", 2);
    app = nn_open(NULL);
    assert_null(tn_net_zoo(app, "zoo:lennet"));
    nn_close_failed(app, "did you mean \"lenet\"", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_init_with_shape),
        cmocka_unit_test(test_initialisers),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_output_left), cmocka_unit_test(test_wrong_inputs),
        cmocka_unit_test(test_gradients),      cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_fake_device),    cmocka_unit_test(test_called_twice),
        cmocka_unit_test(test_summary),        cmocka_unit_test(test_zoo_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

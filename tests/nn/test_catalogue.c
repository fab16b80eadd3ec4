/*
 * Losses, metrics and initializers by name: what they refuse, and what numbers of MXNet cannot show (random
 * first values). Their numbers are those of the test mxnet.nn.
 */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- losses -------------------------------------------------------------------------------------- */

static const int64_t shape[2] = {4, 3}, row[1] = {4};

static tn_x l_unknown(tn_x x)
{
    return tn_loss(x, x, "hubert");
}
static tn_x l_combination(tn_x x)
{
    return tn_loss(x, x, "l2", .transformed = 1);
}
static tn_x l_dense(tn_x x)
{
    return tn_loss(x, x, "softmax_ce", .binary = 1);
}
static tn_x l_no_other(tn_x x)
{
    return tn_loss(x, x, "triplet");
}
static tn_x l_other(tn_x x)
{
    return tn_loss(x, x, "l1", .other = x);
}
static tn_x l_rho(tn_x x)
{
    return tn_loss(x, x, "huber", .rho = -1);
}
static tn_x l_nan(tn_x x)
{
    return tn_loss(x, x, "hinge", .margin = (double)NAN);
}
static tn_x l_weight(tn_x x)
{
    return tn_loss(x, x, "l2", .sample_weight = tn_slice(x, .axis = 0, .end = 3));
}
static tn_x l_shape(tn_x x)
{
    return tn_loss(x, tn_slice(x, .axis = 1, .end = 2), "l2");
}
static tn_x l_order(tn_x x)
{
    return tn_loss(tn_dense(x, .units = 2), tn_dense(x, .units = 2), "l2");
}

static tn_x l_lengths(tn_x x)
{
    return tn_loss(x, x, "l2", .label_lengths = x);
}
static tn_x l_layout(tn_x x)
{
    return tn_loss(x, x, "ctc", .layout = "NCT");
}
static tn_x l_axes(tn_x x)
{
    return tn_loss(x, x, "ctc");
}

static tn_x l_axis(tn_x x)
{
    return tn_loss(x, x, "softmax_ce", .dense = 1, .axis = 2);
}
static tn_x l_axis_below(tn_x x)
{
    return tn_loss(x, x, "softmax_ce", .dense = 1, .axis = -3);
}
static tn_x l_axis_samples(tn_x x)
{
    return tn_loss(x, x, "kl_div", .axis = 1, .batch_axis = 1);
}
static tn_x l_axis_other(tn_x x)
{
    return tn_loss(x, x, "l2", .axis = 1);
}
static tn_x l_default_axis(tn_x x)
{
    return tn_loss(x, x, "softmax_ce", .dense = 1, .batch_axis = 1);
}
static tn_x l_batch_axis(tn_x x)
{
    return tn_loss(x, x, "l2", .batch_axis = 2);
}
static tn_x l_batch_axis_below(tn_x x)
{
    return tn_loss(x, x, "l2", .batch_axis = -1);
}
static tn_x l_batch_axis_other(tn_x x)
{
    return tn_loss(x, x, "sdml", .batch_axis = 1);
}
static tn_x l_label_layout(tn_x x)
{
    return tn_loss(x, x, "ctc", .label_layout = "NTC");
}
static tn_x l_label_layout_other(tn_x x)
{
    return tn_loss(x, x, "l1", .label_layout = "NT");
}

static void test_losses_refused(void **state)
{
    static const struct {
        tn_x (*function)(tn_x x);
        const char *text;
        int exit_code;
    } bad[] = {
        {l_unknown, "did you mean \"huber\"", 2},
        {l_combination, "l2, called at", 2},
        {l_dense, "no such combination", 2},
        {l_no_other, "needs .other", 2},
        {l_other, "takes no .other", 2},
        {l_lengths, "takes neither lengths", 2},
        {l_layout, "neither NTC nor TNC", 2},
        {l_axes, "transpose", 1},
        {l_axis, ".axis 2 and .batch_axis 0 of 2 axes", 2},
        {l_axis_below, ".axis -3 and .batch_axis 0 of 2 axes", 2},
        {l_axis_samples, ".axis 1 and .batch_axis 1 of 2 axes", 2},
        {l_axis_other, "takes no .axis", 2},
        {l_default_axis, ".axis 1 and .batch_axis 1 of 2 axes", 2},
        {l_batch_axis, ".axis 0 and .batch_axis 2 of 2 axes", 2},
        {l_batch_axis_below, ".axis 0 and .batch_axis -1 of 2 axes", 2},
        {l_batch_axis_other, "takes no .batch_axis", 2},
        {l_label_layout, "neither NT nor TN", 2},
        {l_label_layout_other, "takes no .label_layout", 2},
        {l_rho, ".rho is not below 0", 2},
        {l_nan, "finite numbers", 2},
        {l_weight, "net.mul", 1},
        {l_shape, "net.reshape0 (Reshape)", 1},
        {l_order, "which argument they run first", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_function(app, bad[i].function);

            tn_net_init(net, .seed = 1);
            if (hybrid)
                tn_net_hybridize(net);
            (void)tn_net_forward(net, nn_array(app, 2, shape, 1));
            if (!strstr(tn_app_error(app), bad[i].text))
                print_error("case %zu, hybrid %d\n", i, hybrid);
            nn_close_failed(app, bad[i].text, bad[i].exit_code);
        }
}

/* ---- metrics ------------------------------------------------------------------------------------- */

static void test_metrics_refused(void **state)
{
    static const float labels[4] = {0, 1, 2, 1}, high[4] = {0, 3, 1, 1}, part[4] = {0, 0.5f, 1, 1},
                       below[4] = {-1, 0, 0, 0};
    static const struct {
        const char *name, *text;
        const float *labels;
        int classes; /* of x */
    } bad[] = {
        {"f1", "for scores of 2 classes, these have 3", labels, 3},
        {"mcc", "for scores of 2 classes", labels, 3},
        {"f1", "label 2 of 2 classes", labels, 2},
        {"top_k_accuracy", "label 3 of 3 classes", high, 3},
        {"pcc", "label -1 of 3 classes", below, 3},
        {"perplexity", "label 0.5 of 3 classes", part, 3},
        {"nll", "label 3 of 3 classes", high, 3},
        {"mse", "12 numbers with 4 labels", labels, 3},
        {"pearson", "12 numbers with 4 labels", labels, 3},
        {"pcc", "classes, at most 2048", labels, 3000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_meter *m = tn_meter_open(app, bad[i].name);
        const int64_t wide[2] = {4, bad[i].classes};

        tn_meter_add(m, nn_array(app, 2, wide, 1), tn_app_array(app, 1, row, bad[i].labels));
        assert_true(isnan(tn_meter_value(m)));
        if (!strstr(tn_app_error(app), bad[i].text))
            print_error("case %zu\n", i);
        assert_non_null(strstr(tn_app_error(app), bad[i].text));
        assert_true(tn_app_close(app));
    }
    {
        tn_app *app = nn_open(NULL);
        const int64_t odd[1] = {5};
        tn_meter *m = tn_meter_new(app, "accuracy");

        tn_meter_add(m, nn_array(app, 2, shape, 1), nn_array(app, 1, odd, 1));
        assert_true(isnan(tn_meter_value(m)));
        nn_close_failed(app, "accuracy of 12 numbers with 5 labels", 1);
        app = nn_open(NULL);
        assert_null(tn_meter_open(app, "top_k_accuracy", .k = -1));
        nn_close_failed(app, ".k is -1", 2);
        app = nn_open(NULL);
        assert_null(tn_meter_new(app, "acuracy"));
        nn_close_failed(app, "did you mean \"accuracy\"", 2);
    }
}

/* Scores and labels that lie to each other in no way, or not along the asked axis. */
static void test_metrics_axes_refused(void **state)
{
    static const struct {
        const char *name, *text;
        int64_t shape[4], labels[3];
        int32_t axis;
    } bad[] = {
        {"accuracy", "axis 2 of scores 2×5×2, with labels 2", {2, 5, 2}, {2}, 0},
        {"accuracy", "axis 1 of scores 2×3×4, with labels 2×3", {2, 3, 4}, {2, 3}, 1},
        {"accuracy", "axis 3 of scores 2×3×4, with labels 2×4", {2, 3, 4}, {2, 4}, 3},
        {"accuracy", "axis -1 of scores 2×3×4, with labels 2×4", {2, 3, 4}, {2, 4}, -4},
        {"perplexity", "axis 2 of scores 2×3×4, with labels 2×4", {2, 3, 4}, {2, 4}, 0},
        {"f1", "axis 0 of scores 4, with labels 4", {4}, {4}, 0},
        {"f1", "for scores of 2 classes, these have 1", {4, 1}, {4}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_meter *m = tn_meter_open(app, bad[i].name, .axis = bad[i].axis);
        int32_t ndim = 0, label_ndim = 0;

        while (ndim < 4 && bad[i].shape[ndim])
            ndim++;
        while (label_ndim < 3 && bad[i].labels[label_ndim])
            label_ndim++;
        tn_meter_add(m, nn_array(app, ndim, bad[i].shape, 1),
                     tn_app_array(app, label_ndim, bad[i].labels, NULL));
        assert_true(isnan(tn_meter_value(m)));
        nn_close_failed(app, bad[i].text, 1);
    }
    for (int i = 0; i < 3; i++) {
        tn_app *app = nn_open(NULL);

        assert_null(tn_meter_open(app, "nll", .eps = i == 0 ? -1 : i == 1 ? 1 : (double)NAN));
        nn_close_failed(app, i == 0 ? ".eps -1" : i == 1 ? ".eps 1" : "nan", 2);
    }
}

/* ---- initializers -------------------------------------------------------------------------------- */

enum { MATRIX_MAX = 64 };

/* Rows, or columns, are orthogonal and of the given length; with another seed they are others. */
static void orthogonal(int64_t rows, int64_t columns, double scale, const char *distribution, float *first)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    float w[3][MATRIX_MAX];
    const int64_t count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;

    tn_net_dense(net, .units = rows, .no_bias = 1);
    for (int i = 0; i < 3; i++) {
        tn_net_init(net, .with = "orthogonal", .scale = scale, .distribution = distribution,
                    .seed = i == 2 ? 9 : 4, .shape = {2, columns});
        assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), w[i], MATRIX_MAX), rows * columns);
    }
    assert_memory_equal(w[0], w[1], (size_t)(rows * columns) * sizeof(float));
    assert_memory_not_equal(w[0], w[2], (size_t)(rows * columns) * sizeof(float));
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b < count; b++) {
            double dot = 0;

            for (int64_t k = 0; k < length; k++)
                dot += (double)w[0][rows < columns ? a * columns + k : k * columns + a] *
                       (double)w[0][rows < columns ? b * columns + k : k * columns + b];
            assert_true(fabs(dot - (a == b ? scale * scale : 0)) < 1e-5);
        }
    memcpy(first, w[0], sizeof w[0]);
    nn_close(app);
}

static void test_orthogonal(void **state)
{
    static const char *const distributions[] = {"uniform", "normal", NULL};
    float w[3][MATRIX_MAX] = {{0}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        orthogonal(7, 4, 0.5, distributions[i], w[i]);
        orthogonal(6, 6, 1.414, distributions[i], w[i]);
        orthogonal(4, 7, 1.414, distributions[i], w[i]);
    }
    assert_memory_equal(w[0], w[2], sizeof w[0]); /* as MXNet's rand_type */
    assert_memory_not_equal(w[0], w[1], sizeof w[0]);
    orthogonal(1, 1, 1.414, "normal", w[0]);
}

static void test_init_where(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    float a[16], b[16];

    (void)state;
    tn_net_dense(net, .units = 4);
    tn_net_init_where(net, ".bias", .with = "one");
    assert_non_null(strstr(tn_app_error(app), "no values yet"));
    tn_app_clear(app);
    tn_net_init(net, .seed = 3, .shape = {1, 3});
    assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), a, 16), 12);
    tn_net_init_where(net, ".bias", .with = "lstmbias", .scale = 3);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.bias"), b, 16), 4);
    assert_true(b[0] == 0 && b[1] == 3 && b[2] == 0 && b[3] == 0);
    tn_net_init_where(net, ".weight", .with = "xavier"); /* by the net's own seed: what it has */
    assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), b, 16), 12);
    assert_memory_equal(a, b, 12 * sizeof *a);
    assert_non_null(tn_net_param_grad(net, "0.weight"));
    tn_net_init_where(net, ".weight", .with = "normal", .scale = 1, .seed = 8);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), b, 16), 12);
    assert_memory_not_equal(a, b, 12 * sizeof *a);
    tn_net_init_where(net, ".wight", .with = "one");
    assert_non_null(strstr(tn_app_error(app), "ends with \".wight\""));
    tn_app_clear(app);
    tn_net_init_where(net, ".bias", .with = "orthogonl");
    nn_close_failed(app, "did you mean \"orthogonal\"", 2);
}

/* Names as MXNet's registries take them. */
static void test_names(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    float x[2][8];

    (void)state;
    tn_net_dense(net, .units = 2);
    for (int i = 0; i < 2; i++) {
        tn_net_init(net, .with = i ? "Xavier" : "xavier", .seed = 3, .shape = {1, 3});
        assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), x[i], 8), 6);
    }
    assert_memory_equal(x[0], x[1], 6 * sizeof(float));
    tn_net_init_where(net, ".weight", .with = "Ones");
    tn_net_init_where(net, ".bias", .with = "zeros");
    assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), x[0], 8), 6);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.bias"), x[1], 8), 2);
    assert_true(x[0][5] == 1 && x[1][1] == 0);
    assert_non_null(tn_trainer_new(net, .optimizer = "Adam"));
    assert_string_equal(tn_meter_name(tn_meter_open(app, "Accuracy, F1,MSE")), "accuracy");
    nn_close(app);
}

static void test_init_chosen(void **state)
{
    static const tn_init_row none[] = {{"1", {.with = "one"}}, {NULL, {0}}},
                             torn[] = {{"(", {.with = "one"}}, {NULL, {0}}},
                             outside[] = {{"0)|(1", {.with = "one"}}, {NULL, {0}}},
                             wrong[] = {{".*", {.with = "won"}}, {NULL, {0}}},
                             nested[] = {{".*", {.mixed = none}}, {NULL, {0}}};
    static const struct {
        const tn_init_row *rows;
        const char *load, *says;
    } bad[] = {
        {none, NULL, "fits no pattern"},      {torn, NULL, "pattern \"(\""},
        {outside, NULL, "pattern \"0)|(1\""}, {wrong, NULL, "did you mean \"one\""},
        {nested, NULL, "of its own"},         {NULL, "/nowhere/values.params", "/nowhere/values.params"}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app);

        tn_net_dense(net, .units = 4);
        tn_net_init(net, .mixed = bad[i].rows, .load = bad[i].load, .shape = {1, 3});
        if (tn_app_ok(app) || !strstr(tn_app_error(app), bad[i].says))
            fail_msg("row %zu: %s", i, tn_app_ok(app) ? "no error" : tn_app_error(app));
        tn_app_clear(app);
        tn_net_init(net, .with = "one", .shape = {1, 3});
        assert_true(tn_app_ok(app));
        tn_net_init_where(net, ".bias", .mixed = none);
        nn_close_failed(app, "are tn_net_init's", 2);
    }
}

/* Of a program with a later header, whose options are longer. */
static void test_init_later(void **state)
{
    typedef struct later_options {
        tn_init_options now;
        const void *more;
    } later_options;
    static const struct {
        const char *pattern;
        later_options init;
    } rows[] = {
        {"0.bias", {{.with = "zero"}, &rows}}, {"0.weight", {{.with = "one"}, &rows}}, {NULL, {{0}, &rows}}};
    const later_options options = {
        {.struct_size = sizeof options, .mixed = (const tn_init_row *)(const void *)rows, .shape = {1, 3}},
        NULL};
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);
    float weight[8], bias[8];

    (void)state;
    tn_net_dense(net, .units = 2);
    tn_net_init_(net, &options.now);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.weight"), weight, 8), 6);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.bias"), bias, 8), 2);
    for (int i = 0; i < 6; i++)
        assert_float_equal(weight[i], 1, 0);
    assert_float_equal(bias[0], 0, 0);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses_refused),       cmocka_unit_test(test_metrics_refused),
        cmocka_unit_test(test_metrics_axes_refused), cmocka_unit_test(test_orthogonal),

        cmocka_unit_test(test_init_where),           cmocka_unit_test(test_names),
        cmocka_unit_test(test_init_chosen),          cmocka_unit_test(test_init_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

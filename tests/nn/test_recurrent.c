/* Layers of whole sequences: equal to steps of cells, dropout, lengths, files, and what is refused. */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 5, SAMPLES = 3, WIDTH = 4, UNITS = 6, NUMBERS = 4096 };

static const int64_t shape[] = {STEPS, SAMPLES, WIDTH};

static void near_arrays(tn_app *app, tn_array *a, tn_array *b)
{
    float x[NUMBERS], y[NUMBERS];
    const size_t count = nn_read(app, a, x, NUMBERS);

    assert_int_equal(nn_read(app, b, y, NUMBERS), count);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(x[i] - y[i]) <= 2e-6f))
            fail_msg("element %zu: %.9g and %.9g", i, (double)x[i], (double)y[i]);
}

/* ---- cells --------------------------------------------------------------------------------------- */

static const struct {
    tn_x (*layer)(tn_x x, tn_x *states, const tn_rnn_options *o);
    tn_x (*cell)(tn_x x, tn_x *states, const tn_cell_options *o);
    const char *activation;
} kinds[] = {{tn_rnn_, tn_rnn_cell_, "relu"},
             {tn_rnn_, tn_rnn_cell_, "tanh"},
             {tn_lstm_, tn_lstm_cell_, NULL},
             {tn_gru_, tn_gru_cell_, NULL}};

/* The last output of the layer, and that of steps of the cell. */
static void both(const tn_x *in, tn_x *out)
{
    const size_t of = (size_t)(uintptr_t)tn_arg(in[0]);
    const tn_rnn_options o = {
        .struct_size = sizeof o, .name = "deep", .units = UNITS, .activation = kinds[of].activation};
    const tn_cell_options c = {
        .struct_size = sizeof c, .name = "cell", .units = UNITS, .activation = kinds[of].activation};
    tn_x y = kinds[of].layer(in[0], NULL, &o), x = tn_reshape(tn_slice(in[0], .end = 1), -1, WIDTH);
    tn_x states[2] = {tn_state(x, UNITS), NULL};

    states[1] = states[0];
    for (int64_t t = 0; t < STEPS; t++)
        out[1] = kinds[of].cell(tn_reshape(tn_slice(in[0], .begin = t, .end = t + 1), -1, WIDTH), states, &c);
    out[0] = tn_reshape(tn_slice(y, .begin = STEPS - 1, .end = STEPS), -1, UNITS);
    out[2] = tn_add(out[0], out[1]);
}

static void equal_to_cells(void **state)
{
    static const char *const names[][2] = {{"deep.l0_i2h_weight", "cell.i2h.weight"},
                                           {"deep.l0_h2h_weight", "cell.h2h.weight"},
                                           {"deep.l0_i2h_bias", "cell.i2h.bias"},
                                           {"deep.l0_h2h_bias", "cell.h2h.bias"}};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        tn_app *app = nn_open(NULL);
        tn_net *net =
            tn_net_functions(app, both, .arg = (void *)(uintptr_t)k, .outputs = {"layer", "cell", "all"});
        tn_array *x = nn_array(app, 3, shape, 1), *out[3];

        tn_net_init(net, .seed = 3, .with = "uniform", .scale = 0.5);
        assert_true(tn_net_run(net, 1, &x, 3, out));
        assert_int_equal(tn_net_param_count(net), 8);
        for (size_t i = 0; i < 4; i++) {
            if (strstr(names[i][0], "bias")) { /* zeros at first */
                const int64_t count = (int64_t)tn_array_count(tn_net_param(net, names[i][0]));

                assert_int_equal(
                    tn_array_copy(nn_array(app, 1, &count, 7 + i), tn_net_param(net, names[i][0])), TN_OK);
            }
            assert_int_equal(tn_array_copy(tn_net_param(net, names[i][0]), tn_net_param(net, names[i][1])),
                             TN_OK);
        }
        tn_app_record(app);
        assert_true(tn_net_run(net, 1, &x, 3, out));
        near_arrays(app, out[0], out[1]);
        tn_app_backward(app, out[2]);
        for (size_t i = 0; i < 4; i++)
            near_arrays(app, tn_net_param_grad(net, names[i][0]), tn_net_param_grad(net, names[i][1]));
        nn_close(app);
    }
}

/* ---- dropout ------------------------------------------------------------------------------------- */

static tn_x dropped(tn_x x)
{
    return tn_lstm(x, NULL, .name = "deep", .units = UNITS, .layers = 3, .bidirectional = 1, .dropout = 0.5);
}

/* Outputs of two calls in training, and gradients; hybridized or not. */
static size_t dropout_run(int hybrid, float *out)
{
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_net *net = tn_net_function(app, dropped);
    tn_array *x = nn_array(app, 3, shape, 1), *y;
    size_t count = 0;

    tn_net_init(net, .seed = 3);
    (void)tn_net_forward(net, x);
    if (hybrid)
        tn_net_hybridize(net);
    for (int k = 0; k < 2; k++) {
        tn_app_record(app);
        y = tn_net_forward(net, x);
        tn_app_backward(app, y);
        count += nn_read(app, y, out + count, NUMBERS);
    }
    count += nn_read_params(app, net, out + count, 2 * NUMBERS);
    nn_close(app);
    return count;
}

static void dropout_is_drawn(void **state)
{
    static float eager[4 * NUMBERS], hybrid[4 * NUMBERS];
    const size_t first = (size_t)STEPS * SAMPLES * 2 * UNITS;
    size_t count;

    (void)state;
    count = dropout_run(0, eager);
    assert_int_equal(dropout_run(1, hybrid), count);
    assert_memory_equal(eager, hybrid, count * sizeof *eager);
    assert_memory_not_equal(eager, eager + first, first * sizeof *eager); /* another draw */
}

/* ---- lengths, layouts, files --------------------------------------------------------------------- */

static void timed(const tn_x *in, tn_x *out)
{
    tn_x states[2] = {NULL, NULL};

    out[0] = tn_lstm(in[0], states, .name = "deep", .units = UNITS, .lengths = in[1], .layout = "NTC",
                     .projection = 2);
    out[1] = states[0];
    out[2] = states[1];
}

/* A shorter sequence alone gives what it gives among longer ones. */
static void lengths(void **state)
{
    const int64_t all[] = {SAMPLES, STEPS, WIDTH}, part[] = {1, 2, WIDTH}, n[] = {SAMPLES}, one[] = {1};
    const float steps[] = {STEPS, 2, 0}, two[] = {2};
    float x[SAMPLES * STEPS * WIDTH], y[SAMPLES][STEPS][2], alone[2][2], last[SAMPLES][2], last_alone[2];
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_functions(app, timed, .inputs = {"x", "t"}, .outputs = {"y", "h", "c"});
    tn_array *in[2], *out[3];

    (void)state;
    nn_numbers(x, SAMPLES * STEPS * WIDTH, 5);
    tn_net_init(net, .seed = 1);
    in[0] = tn_app_array(app, 3, all, x);
    in[1] = tn_app_array(app, 1, n, steps);
    assert_true(tn_net_run(net, 2, in, 3, out));
    nn_shape(out[0], 3, (int64_t[]){SAMPLES, STEPS, 2});
    nn_shape(out[2], 3, (int64_t[]){1, SAMPLES, UNITS});
    assert_int_equal(nn_read(app, out[0], &y[0][0][0], SAMPLES * STEPS * 2), SAMPLES * STEPS * 2);
    assert_int_equal(nn_read(app, out[1], &last[0][0], SAMPLES * 2), SAMPLES * 2);
    in[0] = tn_app_array(app, 3, part, x + STEPS * WIDTH); /* its first two steps */
    in[1] = tn_app_array(app, 1, one, two);
    assert_true(tn_net_run(net, 2, in, 3, out));
    assert_int_equal(nn_read(app, out[0], &alone[0][0], 4), 4);
    assert_int_equal(nn_read(app, out[1], last_alone, 2), 2);
    for (int k = 0; k < 2; k++) {
        assert_true(fabsf(y[1][0][k] - alone[0][k]) < 1e-6f && fabsf(y[1][1][k] - alone[1][k]) < 1e-6f);
        assert_true(fabsf(last[1][k] - last_alone[k]) < 1e-6f);
        for (int t = 2; t < STEPS; t++)
            assert_true(y[1][t][k] == 0 && y[2][t][k] == 0);
        assert_true(last[2][k] == 0 && y[0][STEPS - 1][k] == last[0][k]);
    }
    nn_close(app);
}

static tn_x deep(tn_x x)
{
    return tn_gru(x, NULL, .name = "deep", .units = UNITS, .layers = 2, .bidirectional = 1, .layout = "NTC");
}

/* The file serves other batches and lengths than the first. */
static void files(void **state)
{
    char *folder = nn_folder(), prefix[4200];
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, deep, .name = "net"), *loaded;
    tn_array *y;

    (void)state;
    tn_net_init(net, .seed = 1, .shape = {SAMPLES, STEPS, WIDTH});
    (void)snprintf(prefix, sizeof prefix, "%s/deep", folder);
    tn_net_export(net, prefix);
    loaded = tn_net_load(app, prefix);
    for (int64_t k = 1; k < 4; k++) {
        const int64_t other[] = {k, 7 - k, WIDTH};
        tn_array *x = nn_array(app, 3, other, (uint64_t)k);

        y = tn_net_forward(net, x);
        nn_shape(y, 3, (int64_t[]){k, 7 - k, 2 * UNITS});
        near_arrays(app, y, tn_net_forward(loaded, x));
    }
    nn_close(app);
    nn_folder_remove(folder);
}

/* ---- what is refused ----------------------------------------------------------------------------- */

static const struct {
    tn_rnn_options o;
    const char *text;
    int gru;
} bad[] = {
    {{.units = 2}, ".name is needed", 0},
    {{.name = "a"}, ".units is below 1", 0},
    {{.name = "a", .units = -1}, ".units is below 1", 0},
    {{.name = "a", .units = 2, .projection = -1}, ".projection is below 0", 0},
    {{.name = "a", .units = 2, .projection = 1}, "only an LSTM", 1},
    {{.name = "a", .units = 2, .layers = -1}, ".layers", 0},
    {{.name = "a", .units = 2, .layers = 17}, ".layers", 0},
    {{.name = "a", .units = 2, .layers = 9, .bidirectional = 1}, ".layers", 0},
    {{.name = "a", .units = 2, .dropout = 1}, ".dropout", 0},
    {{.name = "a", .units = 2, .dropout = NAN}, ".dropout", 0},
    {{.name = "a", .units = 2, .layout = "NCT"}, ".layout", 0},
    {{.name = "a/b", .units = 2}, "a/b", 0},
    {{.name = "a", .units = 2, .activation = "gelu"}, ".activation", 2},
};

static tn_x refused(tn_x x)
{
    const size_t k = (size_t)(uintptr_t)tn_arg(x);
    tn_rnn_options o = bad[k].o;

    o.struct_size = sizeof o;
    return (bad[k].gru == 1 ? tn_gru_ : bad[k].gru ? tn_rnn_ : tn_lstm_)(x, NULL, &o);
}

static tn_x two_axes(tn_x x)
{
    return tn_lstm(tn_reshape(x, -1, WIDTH), NULL, .name = "a", .units = 2);
}

static void faults(void **state)
{
    (void)state;
    for (size_t k = 0; k <= sizeof bad / sizeof *bad; k++) {
        const int last = k == sizeof bad / sizeof *bad;
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, last ? two_axes : refused, .arg = (void *)(uintptr_t)k);

        tn_net_init(net, .seed = 1);
        assert_null(tn_net_forward(net, nn_array(app, 3, shape, 1)));
        nn_close_failed(app, last ? "three axes" : bad[k].text, 2);
    }
    assert_null(tn_lstm_(NULL, NULL, NULL));
    assert_null(tn_gru_(NULL, NULL, NULL));
    assert_null(tn_rnn_(NULL, NULL, NULL));
}

static tn_x projected_gru(tn_x x)
{
    tn_x y = tn_reshape(x, -1, WIDTH), states[1] = {tn_state(y, UNITS)};

    return tn_gru_cell(y, states, .name = "a", .units = UNITS, .projection = 2);
}

static tn_x projected_below(tn_x x)
{
    tn_x y = tn_reshape(x, -1, WIDTH), states[2] = {tn_state(y, UNITS), tn_state(y, UNITS)};

    return tn_lstm_cell(y, states, .name = "a", .units = UNITS, .projection = -2);
}

static tn_x even(tn_x x)
{
    tn_x states[1] = {NULL};

    return tn_gru_cell(x, states, .name = "a", .units = UNITS, .kernel = {3}, .state_kernel = {2});
}

/* A convolutional cell whose first states are zeros: a state of zeros that is given gives the same. */
static void windowed(const tn_x *in, tn_x *out)
{
    tn_x none[2] = {NULL, NULL}, given[2];

    out[0] =
        tn_lstm_cell(in[0], none, .name = "a", .units = 2, .kernel = {3}, .pad = {1}, .state_kernel = {3});
    given[0] = given[1] = tn_scale(out[0], 0);
    out[1] =
        tn_lstm_cell(in[0], given, .name = "a", .units = 2, .kernel = {3}, .pad = {1}, .state_kernel = {3});
    out[2] = none[1];
}

static void zeros_stand_in(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_functions(app, windowed, .outputs = {"a", "b", "c"});
    tn_array *x = nn_array(app, 3, shape, 1), *out[3];

    (void)state;
    tn_net_init(net, .seed = 1);
    assert_true(tn_net_run(net, 1, &x, 3, out));
    nn_shape(out[2], 3, (int64_t[]){STEPS, 2, WIDTH});
    near_arrays(app, out[0], out[1]);
    nn_close(app);
}

static void cell_faults(void **state)
{
    static const struct {
        tn_x (*function)(tn_x x);
        const char *text;
    } rows[] = {{projected_gru, "only an LSTM"},
                {projected_below, ".projection is below 0"},
                {even, ".state_kernel is even"}};

    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, rows[k].function);

        tn_net_init(net, .seed = 1);
        assert_null(tn_net_forward(net, nn_array(app, 3, shape, 1)));
        nn_close_failed(app, rows[k].text, 2);
    }
}

/* ---- zoneout and variational dropout ------------------------------------------------------------------- */

enum { DRAWN = 50 * 40 };

static void drawn_net(const tn_x *in, tn_x *out)
{
    const tn_x mask = tn_dropout_mask(in[0], 0.5), twice = tn_mul(in[0], mask);

    out[0] = tn_zoneout(in[0], NULL, 0.25);
    out[1] = tn_zoneout(tn_shift(in[0], 1), in[0], 0.25);
    out[2] = tn_add(twice, tn_mul(in[0], mask));
}

/* How many are `x` times `times` plus `more`; the others have to be `otherwise` times x. */
static int counted(const float *x, const float *y, float times, float more, float otherwise)
{
    int count = 0;

    for (int i = 0; i < DRAWN; i++)
        if (y[i] == x[i] * times + more)
            count++;
        else
            assert_true(y[i] == x[i] * otherwise);
    return count;
}

static void zones_are_kept(void **state)
{
    static float x[DRAWN], y[3][DRAWN], before[DRAWN];

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_functions(app, drawn_net, .outputs = {"a", "b", "c"});
        tn_array *in = nn_array(app, 2, (int64_t[]){50, 40}, 1), *out[3];

        if (hybrid)
            tn_net_hybridize(net);
        assert_int_equal(nn_read(app, in, x, DRAWN), DRAWN);
        for (int train = 0; train < 2; train++) {
            if (train) {
                assert_int_equal(tn_random_seed(tn_app_ctx(app), 3, NULL), TN_OK);
                tn_app_record(app);
            }
            assert_true(tn_net_run(net, 1, &in, 3, out));
            for (int k = 0; k < 3; k++)
                assert_int_equal(nn_read(app, out[k], y[k], DRAWN), DRAWN);
            if (!train) {
                assert_int_equal(counted(x, y[0], 1, 0, 0), DRAWN);
                assert_int_equal(counted(x, y[1], 1, 1, 1), DRAWN);
                assert_int_equal(counted(x, y[2], 2, 0, 0), DRAWN);
                continue;
            }
            assert_in_range(counted(x, y[0], 1, 0, 0), DRAWN * 0.71, DRAWN * 0.79);
            assert_in_range(counted(x, y[1], 1, 1, 1), DRAWN * 0.71, DRAWN * 0.79);
            assert_in_range(counted(x, y[2], 4, 0, 0), DRAWN * 0.455, DRAWN * 0.545);
            if (hybrid)
                assert_memory_equal(before, y[2], sizeof before);
            memcpy(before, y[2], sizeof before);
        }
        nn_close(app);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_to_cells), cmocka_unit_test(dropout_is_drawn), cmocka_unit_test(lengths),
        cmocka_unit_test(files),          cmocka_unit_test(faults),           cmocka_unit_test(cell_faults),
        cmocka_unit_test(zeros_stand_in), cmocka_unit_test(zones_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

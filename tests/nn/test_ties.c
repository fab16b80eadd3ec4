/*
 * Parameters that several layers share (tn_param, .weight, .bias): one array, one gradient, one entry in
 * files; what is refused. Functions that are traced again (nn.trace_check).
 */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 6, UNITS = 4, BATCH = 3, LENGTH = 2, NUMBERS = 512 };

static const int64_t batch[2] = {BATCH, LENGTH}, labels_shape[2] = {BATCH * LENGTH, WORDS};
static const float words[BATCH * LENGTH] = {0, 3, 5, 5, 1, 2};

/* ---- one array ----------------------------------------------------------------------------------- */

/* Words into a table, and out through the same table. */
static tn_x tied(tn_x x)
{
    tn_x y = tn_reshape(tn_embedding(x, .count = WORDS, .units = UNITS), -1, UNITS);

    tn_scope_begin(x, "hidden");
    y = tn_dense(y, .units = UNITS, .activation = "tanh");
    y = tn_dense(y, .units = UNITS, .weight = tn_param(x, "dense0.weight"),
                 .bias = tn_param(x, "/hidden.dense0.bias"));
    tn_scope_end(x);
    return tn_dense(y, .units = WORDS, .weight = tn_param(x, "/embedding0.weight"));
}

/* The same with arrays of their own. */
static tn_x apart(tn_x x)
{
    tn_x y = tn_reshape(tn_embedding(x, .count = WORDS, .units = UNITS), -1, UNITS);

    tn_scope_begin(x, "hidden");
    y = tn_dense(tn_dense(y, .units = UNITS, .activation = "tanh"), .units = UNITS);
    tn_scope_end(x);
    return tn_dense(y, .units = WORDS);
}

/* Output, then parameters and gradients after `steps` steps. */
static size_t trained(tn_net *net, tn_app *app, int steps, float *out)
{
    tn_array *x = tn_app_array(app, 2, batch, words), *y = nn_array(app, 2, labels_shape, 9), *z = NULL;
    tn_trainer *t = tn_trainer_new(net, .lr = 0.5, .momentum = 0.9);
    size_t at;

    for (int i = 0; i < steps; i++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_l2(app, z = tn_net_forward(net, x), y));
        tn_trainer_step(t, 1);
    }
    at = nn_read(app, z, out, NUMBERS);
    return at + nn_read_params(app, net, out + at, NUMBERS - at);
}

static void test_same_bits(void **state)
{
    float eager[NUMBERS], hybrid[NUMBERS];
    size_t count = 0;

    (void)state;
    for (int h = 0; h < 2; h++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, tied, .name = "t");

        tn_net_init(net, .seed = 3);
        if (h)
            tn_net_hybridize(net, .static_alloc = 1);
        count = trained(net, app, 3, h ? hybrid : eager);
        assert_int_equal(tn_net_param_count(net), 4); /* one table, one hidden layer, the last bias */
        assert_string_equal(tn_net_param_name(net, 3), "dense0.bias");
        nn_close(app);
    }
    assert_int_equal(count, BATCH * LENGTH * WORDS + 2 * (WORDS * UNITS + UNITS * UNITS + UNITS + WORDS));
    assert_memory_equal(eager, hybrid, count * sizeof *eager);
}

static void copy(tn_net *from, const char *name, tn_net *to, const char *as)
{
    assert_int_equal(tn_array_copy(tn_net_param(from, name), tn_net_param(to, as)), TN_OK);
}

static void near_sum(tn_app *app, tn_array *sum, tn_array *a, tn_array *b)
{
    float s[32], x[32], y[32];
    const size_t count = nn_read(app, sum, s, 32);

    assert_int_equal(nn_read(app, a, x, 32), count);
    assert_int_equal(nn_read(app, b, y, 32), count);
    for (size_t i = 0; i < count; i++)
        assert_true(fabs((double)s[i] - ((double)x[i] + (double)y[i])) < 1e-6);
}

/* The gradient is the sum of what each use gives. */
static void test_gradient(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *one = tn_net_function(app, tied, .name = "t"), *two = tn_net_function(app, apart, .name = "a");
    tn_array *x = tn_app_array(app, 2, batch, words), *y = nn_array(app, 2, labels_shape, 9);
    float a[BATCH * LENGTH * WORDS], b[BATCH * LENGTH * WORDS];

    (void)state;
    tn_net_init(one, .seed = 3, .shape = {BATCH, LENGTH});
    tn_net_init(two, .seed = 4, .shape = {BATCH, LENGTH});
    for (int i = 0; i < 2; i++) {
        copy(one, "embedding0.weight", two, i ? "dense0.weight" : "embedding0.weight");
        copy(one, "hidden.dense0.weight", two, i ? "hidden.dense1.weight" : "hidden.dense0.weight");
        copy(one, "hidden.dense0.bias", two, i ? "hidden.dense1.bias" : "hidden.dense0.bias");
    }
    copy(one, "dense0.bias", two, "dense0.bias");
    for (int i = 0; i < 2; i++) {
        tn_array *out;

        tn_app_record(app);
        out = tn_net_forward(i ? two : one, x);
        tn_app_backward(app, tn_loss_l2(app, out, y));
        assert_int_equal(nn_read(app, out, i ? b : a, BATCH * LENGTH * WORDS), BATCH * LENGTH * WORDS);
    }
    assert_memory_equal(a, b, sizeof a);
    near_sum(app, tn_net_param_grad(one, "embedding0.weight"), tn_net_param_grad(two, "embedding0.weight"),
             tn_net_param_grad(two, "dense0.weight"));
    near_sum(app, tn_net_param_grad(one, "hidden.dense0.weight"),
             tn_net_param_grad(two, "hidden.dense0.weight"), tn_net_param_grad(two, "hidden.dense1.weight"));
    near_sum(app, tn_net_param_grad(one, "hidden.dense0.bias"), tn_net_param_grad(two, "hidden.dense0.bias"),
             tn_net_param_grad(two, "hidden.dense1.bias"));
    nn_close(app);
}

/* Exported, saved and loaded: the shared arrays are there once, the numbers are the same. */
static void test_files(void **state)
{
    char *folder = nn_quick_folder(), prefix[256], params[256];
    float want[NUMBERS], have[NUMBERS];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/t", folder);
    (void)snprintf(params, sizeof params, "%s/t.params", folder);
    for (int h = 0; h < 2; h++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, tied, .name = "t"), *twin, *model;
        tn_array *x = tn_app_array(app, 2, batch, words);
        char **names = NULL;
        size_t count = 0;
        tn_symbol *symbol;

        tn_net_init(net, .seed = 3, .shape = {BATCH, LENGTH});
        if (h)
            tn_net_hybridize(net);
        (void)trained(net, app, 2, want);
        count = nn_read(app, tn_net_forward(net, x), want, NUMBERS);
        tn_net_save(net, params);
        tn_net_export(net, prefix);
        model = tn_net_load(app, prefix);
        assert_int_equal(tn_net_param_count(model), 4);
        assert_int_equal(nn_read(app, tn_net_forward(model, x), have, NUMBERS), count);
        assert_memory_equal(want, have, count * sizeof *want);
        symbol = tn_net_symbol(model);
        assert_int_equal(tn_symbol_list(symbol, TN_LIST_ARGUMENTS, &count, &names), TN_OK);
        assert_int_equal(count, 5); /* with the input */
        tn_free(names);
        tn_symbol_release(symbol);
        twin = tn_net_function(app, tied, .name = "t");
        tn_net_init(twin, .shape = {BATCH, LENGTH});
        tn_net_load_params(twin, params);
        count = nn_read(app, tn_net_forward(twin, x), have, NUMBERS);
        assert_memory_equal(want, have, count * sizeof *want);
        nn_close(app);
    }
    nn_folder_remove(folder);
}

/* A parameter is a value like others: an operator takes it, a gradient comes back. */
static tn_x scaled(tn_x x)
{
    tn_x y = tn_add(tn_dense(x, .units = LENGTH, .no_bias = 1), x), w = tn_param(x, "dense0.weight");

    return tn_op(y, "dot", .with = {tn_mul(w, w)});
}

static void test_value(void **state)
{
    float w[2][4], g[2][4], y[2][BATCH * LENGTH];

    (void)state;
    for (int h = 0; h < 2; h++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, scaled);
        tn_array *x = tn_app_array(app, 2, batch, words), *out;
        double sum;

        tn_net_init(net, .seed = 3);
        if (h)
            tn_net_hybridize(net);
        tn_app_record(app);
        tn_app_backward(app, out = tn_net_forward(net, x));
        (void)nn_read(app, out, y[h], BATCH * LENGTH);
        (void)nn_read(app, tn_net_param(net, "dense0.weight"), w[h], 4);
        (void)nn_read(app, tn_net_param_grad(net, "dense0.weight"), g[h], 4);
        for (int c = 0; c < 2; c++) { /* the first row: (w·x + x)·w² */
            sum = 0;
            for (int k = 0; k < 2; k++)
                sum += ((double)w[h][2 * k] * (double)words[0] + (double)w[h][2 * k + 1] * (double)words[1] +
                        (double)words[k]) *
                       (double)w[h][2 * k + c] * (double)w[h][2 * k + c];
            assert_true(fabs(sum - (double)y[h][c]) < 1e-5);
        }
        nn_close(app);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(g[0], g[1], sizeof g[0]);
}

/* ---- what is refused ----------------------------------------------------------------------------- */

static int turn;
static tn_net *inner;
static tn_x kept;

static tn_x f_shape(tn_x x)
{
    tn_x y = tn_dense(x, .units = 3);

    return tn_dense(y, .units = 3, .weight = tn_param(x, "dense0.weight"));
}
static tn_x f_units(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2);

    return tn_dense(y, .units = 5, .weight = tn_param(x, "dense0.weight"));
}
static tn_x f_bias_shape(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2);

    return tn_dense(y, .units = 2, .bias = tn_param(x, "dense0.weight"));
}
static tn_x f_missing(tn_x x)
{
    return tn_dense(x, .units = 2,
                    .weight = tn_param(x, "dense0.weight")); /* its own, which is not there yet */
}
static tn_x f_path(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2);

    tn_scope_begin(x, "s");
    y = tn_dense(y, .units = 2, .weight = tn_param(x, "dense0.weight")); /* not of this scope */
    tn_scope_end(x);
    return y;
}
static tn_x f_null_path(tn_x x)
{
    return tn_param(x, NULL);
}
static tn_x f_value(tn_x x)
{
    return tn_dense(x, .units = 2, .weight = tn_dense(x, .units = 2));
}
static tn_x f_statistic(tn_x x)
{
    x = tn_batchnorm(x);
    return tn_dense(x, .units = 2, .bias = tn_param(x, "batchnorm0.running_mean"));
}
static tn_x f_no_bias(tn_x x)
{
    x = tn_dense(x, .units = 2);
    return tn_dense(x, .units = 2, .no_bias = 1, .bias = tn_param(x, "dense0.bias"));
}
static tn_x f_inner(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2);

    kept = tn_param(x, "dense0.weight");
    return y;
}
static tn_x f_other_net(tn_x x)
{
    tn_x y = tn_net_call(inner, x);

    return tn_dense(y, .units = 2, .weight = kept);
}
static tn_x f_other_call(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2, .name = "a");

    if (!turn)
        kept = tn_param(x, "a.weight");
    return tn_dense(y, .units = 2, .weight = kept, .name = "b");
}
static tn_x f_sometimes(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2);

    return turn ? tn_dense(y, .units = 2) : tn_dense(y, .units = 2, .weight = tn_param(x, "dense0.weight"));
}
static tn_x f_another(tn_x x)
{
    tn_x y = tn_dense(tn_dense(x, .units = 2), .units = 2);

    return tn_dense(y, .units = 2, .weight = tn_param(x, turn ? "dense1.weight" : "dense0.weight"));
}

static void test_refused(void **state)
{
    static const struct {
        tn_x (*function)(tn_x x);
        const char *text;
        int exit_code;
    } bad[] = {
        {f_shape, "net.dense1 (FullyConnected)", 1},
        {f_units, "net.dense1 (FullyConnected)", 1},
        {f_bias_shape, "net.dense1 (FullyConnected)", 1},
        {f_missing, "no layer with a parameter \"dense0.weight\"", 2},
        {f_path, "no layer with a parameter \"dense0.weight\"", 2},
        {f_null_path, "the path is NULL", 2},
        {f_value, "a value, not a parameter", 2},
        {f_statistic, "a running statistic", 2},
        {f_no_bias, ".bias and .no_bias", 2},
        {f_other_net, "dense0.weight of net inner, but the layer is one of net net", 2},
        {f_other_call, "a value of another call", 2},
        {f_sometimes, "net.dense1: .weight is its own at", 1},
        {f_another, "net.dense2: .weight is dense1.weight at", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_function(app, bad[i].function);
            tn_array *x = nn_array(app, 2, batch, 1);

            inner = tn_net_function(app, f_inner, .name = "inner");
            tn_net_init(net, .seed = 1);
            if (hybrid)
                tn_net_hybridize(net);
            for (turn = 0; turn < 2 && tn_app_ok(app); turn++) {
                (void)tn_net_forward(net, x);
                tn_net_retrace(net);
            }
            if (!strstr(tn_app_error(app), bad[i].text))
                print_error("case %zu, hybrid %d\n", i, hybrid);
            nn_close_failed(app, bad[i].text, bad[i].exit_code);
        }
}

static tn_x keeps(tn_x x)
{
    return kept = x;
}

static void test_chain(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);

    (void)state;
    (void)tn_net_forward(tn_net_function(app, keeps), nn_array(app, 2, batch, 1));
    assert_null(tn_param_(NULL, "x", NULL, 0));
    tn_net_dense(net, .units = 2, .weight = kept);
    nn_close_failed(app, "net net is a chain: .weight at", 2);
}

/* ---- nn.trace_check ------------------------------------------------------------------------------ */

static int level; /* a global, which a hybridized function must not read */

static tn_x g_factor(tn_x x)
{
    return tn_scale(x, 1 + level);
}
static tn_x g_operator(tn_x x)
{
    return level ? tn_tanh(x) : tn_sigmoid(x);
}
static tn_x g_more(tn_x x)
{
    x = tn_sigmoid(x);
    return level ? tn_square(x) : x;
}
static tn_x g_less(tn_x x)
{
    x = tn_sigmoid(x);
    return level ? x : tn_square(x);
}
static tn_x g_input(tn_x x)
{
    tn_x a = tn_sigmoid(x), b = tn_square(x);

    return tn_exp(level ? a : b);
}
static tn_x g_output(tn_x x)
{
    tn_x a = tn_sigmoid(x), b = tn_square(a);

    return level ? a : b;
}
static tn_x g_layer(tn_x x)
{
    return tn_dense(x, .units = 2 + level);
}
static tn_x g_extra_layer(tn_x x)
{
    x = tn_dense(x, .units = 2);
    return level ? tn_dense(x, .units = 2) : x;
}
static tn_x g_same(tn_x x)
{
    if (level)
        return tn_scale(x, 3);
    return tn_scale(x, 3);
}

static void test_trace_check(void **state)
{
    static const struct {
        tn_x (*function)(tn_x x);
        const char *text[2]; /* what it calls; where it was compiled otherwise */
    } cases[] = {
        {g_factor,
         {"net.mulscalar0 (_mul_scalar scalar=2) of input0 at ", "net.mulscalar0 (_mul_scalar scalar=1)"}},
        {g_operator,
         {"calls net.tanh0 (Activation act_type=tanh) of input0 at ", "has net.sigmoid0 (Activation"}},
        {g_more, {"calls net.square0 (square) of net.sigmoid0:0 at ", "has outputs net.sigmoid0:0"}},
        {g_less, {"calls outputs net.sigmoid0:0", "has net.square0 (square) of net.sigmoid0:0 at "}},
        {g_input, {"calls net.exp0 (exp) of net.sigmoid0:0 at ", "has net.exp0 (exp) of net.square0:0 at "}},
        {g_output, {"calls outputs net.sigmoid0:0", "has outputs net.square0:0"}},
        {g_layer, {"net.dense0: num_hidden 3 at ", "2 at "}},
        {g_extra_layer, {"net.dense1 (FullyConnected) at ", "did not run in the first call"}},
        {g_same, {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int every = 0; every < 4; every += 3) {
            tn_app *app = nn_open(every ? "nn.trace_check=3" : NULL, NULL);
            tn_net *net = tn_net_function(app, cases[i].function);
            tn_array *x = nn_array(app, 2, batch, 1);
            int done = 0;

            level = 0;
            tn_net_init(net, .seed = 1);
            tn_net_hybridize(net);
            (void)tn_net_forward(net, x);
            for (level = 1; done < 6 && tn_net_forward(net, x); done++)
                ;
            assert_int_equal(done, every && cases[i].text[0] ? 2 : 6); /* every third call is traced again */
            if (!every || !cases[i].text[0]) {
                nn_close(app);
                continue;
            }
            for (int k = 0; k < 2; k++)
                if (!strstr(tn_app_error(app), cases[i].text[k]))
                    fail_msg("case %zu: %s\nlacks %s", i, tn_app_error(app), cases[i].text[k]);
            if (cases[i].function != g_output)
                assert_non_null(strstr(tn_app_error(app), "test_ties.c:"));
            assert_int_equal(tn_app_close(app), 1);
        }
}

/* After tn_net_retrace() a change is none. */
static void test_retrace(void **state)
{
    tn_app *app = nn_open("nn.trace_check=1", NULL);
    tn_net *net = tn_net_function(app, g_factor);
    tn_array *x = nn_array(app, 2, batch, 1);
    float a[BATCH * LENGTH], b[BATCH * LENGTH];

    (void)state;
    tn_net_hybridize(net);
    for (level = 0; level < 70; level++) {
        const int64_t shape[2] = {1 + level, LENGTH};

        tn_net_retrace(net);
        (void)nn_read(app, tn_net_forward(net, x), b, BATCH * LENGTH);
        (void)nn_read(app, tn_net_forward(net, x), a, BATCH * LENGTH);
        assert_memory_equal(a, b, sizeof a);
        (void)tn_net_forward(net, nn_array(app, 2, shape, 1));
        (void)tn_net_forward(net, nn_array(app, 2, shape, 1));
    }
    tn_net_retrace(net);
    for (int64_t n = 1; n < 100; n++) { /* more than are remembered */
        const int64_t shape[2] = {n, LENGTH};

        (void)tn_net_forward(net, nn_array(app, 2, shape, 1));
        (void)tn_net_forward(net, nn_array(app, 2, shape, 1));
    }
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_gradient), cmocka_unit_test(test_files),
        cmocka_unit_test(test_value),       cmocka_unit_test(test_refused),  cmocka_unit_test(test_chain),
        cmocka_unit_test(test_trace_check), cmocka_unit_test(test_retrace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

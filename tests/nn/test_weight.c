/*
 * Parameters and constants of a function's own (tn_weight): the numbers of layers' ones, names, first values,
 * files, devices; what is refused.
 */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { IN = 3, UNITS = 4, BATCH = 2, ROOM = 256 };

static const int64_t batch[2] = {BATCH, IN}, wide[2] = {BATCH, UNITS};
static const float ramp[UNITS] = {0.5f, -1, 2, 0.25f};

/* ---- as a layer's ------------------------------------------------------------------------------------ */

static tn_x by_layer(tn_x x)
{
    return tn_dense(x, .units = UNITS, .name = "fc");
}

static tn_x by_hand(tn_x x)
{
    tn_x weight = tn_weight(x, "weight", .shape = {UNITS, IN});
    tn_x bias = tn_weight(x, "bias", .shape = {UNITS});

    return tn_op(x, "FullyConnected", .attrs = {"num_hidden", "4"}, .with = {weight, bias});
}

static size_t trained(tn_app *app, tn_net *net, bool hybrid, float *out)
{
    tn_array *x = nn_array(app, 2, batch, 1), *y = nn_array(app, 2, wide, 2), *z = NULL;
    tn_trainer *t;
    size_t at;

    if (hybrid)
        tn_net_hybridize(net);
    t = tn_trainer_new(net, .optimizer = "adam", .lr = 0.1, .wd = 0.01);
    for (int i = 0; i < 3; i++) {
        tn_app_record(app);
        tn_app_backward(app, tn_loss_l2(app, z = tn_net_forward(net, x), y));
        tn_trainer_step(t, BATCH);
    }
    at = nn_read(app, z, out, ROOM);
    return at + nn_read_params(app, net, out + at, ROOM - at);
}

static void test_as_a_layer(void **state)
{
    float numbers[3][ROOM];
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, i ? by_hand : by_layer, .name = "n");
        tn_net *other = tn_net_function(app, by_layer, .name = "n");

        tn_net_init(net, .shape = {BATCH, IN});
        tn_net_init(other, .seed = 5, .shape = {BATCH, IN});
        for (int bias = 0; bias < 2; bias++)
            assert_int_equal(tn_array_copy(tn_net_param(other, bias ? "fc.bias" : "fc.weight"),
                                           tn_net_param(net, i      ? (bias ? "bias" : "weight")
                                                             : bias ? "fc.bias"
                                                                    : "fc.weight")),
                             TN_OK);
        count = trained(app, net, i == 2, numbers[i]);
        nn_close(app);
    }
    assert_int_equal(count, BATCH * UNITS + 2 * (UNITS * IN + UNITS));
    assert_memory_equal(numbers[0], numbers[1], count * sizeof(float));
    assert_memory_equal(numbers[0], numbers[2], count * sizeof(float));
}

/* ---- first values ------------------------------------------------------------------------------------ */

static tn_x several(tn_x x)
{
    tn_x y = tn_add(x, tn_weight(x, "in_bias", .shape = {1, IN}));

    tn_scope_begin(x, "block");
    y = tn_mul(y, tn_weight(x, "gamma", .shape = {1, IN}));
    y = tn_mul(y, tn_weight(x, "scale", .shape = {1, IN}, .init = "constant", .scale = -2.5));
    y = tn_add(y, tn_weight(x, "noise", .shape = {1, IN}, .init = "normal", .scale = 0.5));
    tn_scope_end(x);
    y = tn_op(y, "dot", .with = {tn_weight(x, "map", .shape = {IN, UNITS})});
    y = tn_mul(y, tn_weight(x, "ramp", .shape = {1, UNITS}, .values = ramp));
    return tn_mul(y, tn_weight(x, "still", .shape = {1, 1}, .init = "one", .fixed = 1));
}

static void all_equal(tn_app *app, tn_net *net, const char *name, float value)
{
    float x[16];
    const size_t count = nn_read(app, tn_net_param(net, name), x, 16);

    assert_true(count);
    for (size_t i = 0; i < count; i++)
        if (x[i] != value)
            fail_msg("%s: %g", name, (double)x[i]);
}

static void test_first_values(void **state)
{
    float drawn[4][IN], x[UNITS];

    (void)state;
    for (int i = 0; i < 4; i++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, several, .name = "n");

        tn_net_init(net, .with = "constant", .scale = 7, .seed = i == 2 ? 4 : 3, .shape = {BATCH, IN});
        if (i == 1) /* again: constants come back */
            tn_net_init(net, .with = "constant", .scale = 7, .seed = 3, .shape = {BATCH, IN});
        if (i == 3)
            tn_net_init(net, .mixed = (const tn_init_row[]){{".*", {.with = "constant", .scale = 7}}, {0}},
                        .seed = 3, .shape = {BATCH, IN});
        all_equal(app, net, "in_bias", 0);
        all_equal(app, net, "block.gamma", 1);
        all_equal(app, net, "block.scale", -2.5f);
        all_equal(app, net, "map", 7);
        all_equal(app, net, "still", 1);
        assert_int_equal(nn_read(app, tn_net_param(net, "ramp"), x, UNITS), UNITS);
        assert_memory_equal(x, ramp, sizeof ramp);
        assert_int_equal(nn_read(app, tn_net_param(net, "block.noise"), drawn[i], IN), IN);
        assert_true(drawn[i][0] != drawn[i][1]);
        nn_close(app);
    }
    assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
    assert_memory_not_equal(drawn[0], drawn[2], sizeof drawn[0]);
    assert_memory_equal(drawn[0], drawn[3], sizeof drawn[0]);
}

/* ---- training: a constant stays ---------------------------------------------------------------------- */

static void test_constants(void **state)
{
    float x[UNITS];

    (void)state;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_function(app, several, .name = "n");
        float numbers[ROOM], before, after;

        tn_net_init(net, .shape = {BATCH, IN});
        assert_null(tn_net_param_grad(net, "ramp"));
        assert_null(tn_net_param_grad(net, "still"));
        assert_int_equal(tn_net_set(net, "ramp", .grad = "write"), 1); /* constants never have one */
        assert_null(tn_net_param_grad(net, "ramp"));
        assert_int_equal(tn_net_set(net, "still", .grad = hybrid ? "write" : "none"), 1);
        assert_int_equal(nn_read(app, tn_net_param(net, "block.noise"), x, UNITS), IN);
        before = x[0];
        (void)trained(app, net, hybrid, numbers);
        assert_int_equal(nn_read(app, tn_net_param(net, "ramp"), x, UNITS), UNITS);
        assert_memory_equal(x, ramp, sizeof ramp);
        assert_int_equal(nn_read(app, tn_net_param(net, "block.noise"), x, UNITS), IN);
        assert_true(x[0] != before);
        assert_int_equal(nn_read(app, tn_net_param(net, "still"), &after, 1), 1);
        assert_true((after == 1) == !hybrid);
        nn_close(app);
    }
}

/* ---- names and files --------------------------------------------------------------------------------- */

static void listed(tn_app *app, tn_net *net)
{
    static const char *const names[] = {"in_bias", "block.gamma", "block.scale", "block.noise",
                                        "map",     "ramp",        "still"};
    static const char *const full[] = {"n_in_bias", "n_block_gamma", "n_block_scale", "n_block_noise",
                                       "n_map",     "n_ramp",        "n_still"};
    tn_symbol *symbol = tn_net_symbol(net);
    char **inputs = NULL;
    size_t count = 0;

    assert_int_equal(tn_net_param_count(net), 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(tn_net_param_name(net, i), names[i]);
    assert_int_equal(tn_symbol_list(symbol, TN_LIST_ARGUMENTS, &count, &inputs), TN_OK);
    assert_int_equal(count, 8); /* with data */
    for (size_t i = 0; i < 7; i++) {
        size_t at = 0;

        while (at < count && strcmp(inputs[at], full[i]) != 0)
            at++;
        if (at == count)
            fail_msg("%s is no argument", full[i]);
    }
    assert_true(tn_app_ok(app));
    tn_free(inputs);
    tn_symbol_release(symbol);
}

/* Loaded as a model, as a block within a net, and to be trained: each gives the same. */
static void test_files(void **state)
{
    char *folder = nn_quick_folder(), prefix[256], file[320], json[320], params[320];
    float want[UNITS * BATCH], have[UNITS * BATCH];
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, several, .name = "n"), *twin, *block, *graph;
    tn_array *x = nn_array(app, 2, batch, 1);
    float numbers[ROOM];

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/n", folder);
    (void)snprintf(file, sizeof file, "%s.params", prefix);
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    (void)snprintf(params, sizeof params, "%s-0000.params", prefix);
    tn_net_init(net, .shape = {BATCH, IN});
    listed(app, net);
    (void)trained(app, net, true, numbers);
    assert_int_equal(nn_read(app, tn_net_forward(net, x), want, UNITS * BATCH), UNITS * BATCH);
    tn_net_save(net, file);
    tn_net_export(net, prefix);
    twin = tn_net_function(app, several, .name = "n");
    tn_net_init(twin, .seed = 9, .shape = {BATCH, IN});
    tn_net_load_params(twin, file);
    block = tn_net_block(app, json, .params = params);
    graph = tn_net_from_symbol(app, json);
    tn_net_init(graph, .load = params, .shape = {BATCH, IN});
    if (!tn_app_ok(app))
        fail_msg("%s", tn_app_error(app));
    assert_int_equal(tn_net_input_count(block), 1);
    assert_int_equal(tn_net_input_count(graph), 1);
    for (int i = 0; i < 4; i++) {
        tn_net *of[] = {twin, tn_net_load(app, prefix), block, graph};

        assert_int_equal(nn_read(app, tn_net_forward(of[i], x), have, UNITS * BATCH), UNITS * BATCH);
        assert_memory_equal(want, have, sizeof want);
    }
    (void)trained(app, graph, false, numbers);
    assert_int_equal(nn_read(app, tn_net_param(graph, "n_ramp"), have, UNITS), UNITS);
    assert_memory_equal(have, ramp, sizeof ramp); /* its factors are 0 */
    (void)trained(app, block, false, numbers);
    assert_int_equal(nn_read(app, tn_net_param(block, "n_ramp"), have, UNITS), UNITS);
    assert_memory_equal(have, ramp, sizeof ramp);
    nn_close(app);
    nn_folder_remove(folder);
}

/* ---- shared, cast, on two devices -------------------------------------------------------------------- */

static tn_x twice(tn_x x)
{
    tn_x once = tn_weight(x, "w", .shape = {1, IN}, .init = "one", .share = 1);

    return tn_add(tn_mul(x, once), tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .init = "one", .share = 1)));
}

static void test_shared(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, twice);
    tn_array *x = nn_array(app, 2, batch, 1);
    float in[BATCH * IN], out[BATCH * IN];

    (void)state;
    tn_net_init(net, .shape = {BATCH, IN});
    assert_int_equal(tn_net_param_count(net), 1);
    (void)nn_read(app, x, in, BATCH * IN);
    (void)nn_read(app, tn_net_forward(net, x), out, BATCH * IN);
    for (size_t i = 0; i < BATCH * IN; i++)
        assert_true(out[i] == 2 * in[i]);
    tn_net_cast(net, "float64");
    assert_int_equal(tn_array_dtype(tn_net_param(net, "w")), TN_F64);
    nn_close(app);
}

static tn_x scalar(tn_x x) /* no shape: one number */
{
    return tn_mul(x, tn_reshape(tn_weight(x, "temperature", .init = "constant", .scale = 0.5), 1, 1));
}

static void test_devices(void **state)
{
    tn_app *app = nn_open("device.default=cpu:0,cpu:1", NULL);
    tn_net *net = tn_net_function(app, several), *one = tn_net_function(app, scalar);
    tn_array *x = nn_array(app, 2, batch, 1);
    float whole[BATCH * UNITS], parts[BATCH * UNITS], y[BATCH * IN];

    (void)state;
    tn_net_init(net, .shape = {BATCH, IN});
    tn_net_init(one, .shape = {BATCH, IN});
    if (!tn_net_forward(net, x))
        fail_msg("%s", tn_app_error(app));
    (void)nn_read(app, tn_net_forward(net, x), whole, BATCH * UNITS);
    for (size_t k = 0; k < 2; k++)
        if (!tn_net_forward(net, tn_app_part(app, x, k)))
            fail_msg("%zu: %s", k, tn_app_error(app));
    for (size_t k = 0; k < 2; k++)
        assert_int_equal(nn_read(app, tn_net_forward(net, tn_app_part(app, x, k)), parts + k * UNITS, UNITS),
                         UNITS);
    assert_memory_equal(whole, parts, sizeof whole);
    assert_int_equal(nn_read(app, tn_net_forward(one, x), y, BATCH * IN), BATCH * IN);
    assert_int_equal(tn_net_param_elements(one), 1);
    nn_close(app);
}

/* ---- what is refused --------------------------------------------------------------------------------- */

static int turn;

static tn_x r_twice(tn_x x)
{
    (void)tn_weight(x, "w", .shape = {1, IN});
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}));
}
static tn_x r_other_shape(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, turn ? 1 : IN}));
}
static tn_x r_other_init(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .init = turn ? "one" : "zero"));
}
static tn_x r_layer(tn_x x)
{
    x = tn_dense(x, .units = IN, .name = "w");
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}));
}
static tn_x r_name(tn_x x)
{
    return tn_mul(x, tn_weight(x, "a.b", .shape = {1, IN}));
}
static tn_x r_no_name(tn_x x)
{
    return tn_mul(x, tn_weight(x, NULL, .shape = {1, IN}));
}
static tn_x r_empty(tn_x x)
{
    return tn_mul(x, tn_weight(x, "", .shape = {1, IN}));
}
static tn_x r_negative(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, -3}));
}
static tn_x r_gap(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, 0, 3}));
}
static tn_x r_huge(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {(int64_t)1 << 31, (int64_t)1 << 31, (int64_t)1 << 31}));
}
static tn_x r_init(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .init = "xaver"));
}
static tn_x r_scale(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .scale = 2));
}
static tn_x r_both(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .init = "one", .values = ramp));
}
static tn_x r_below(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN}, .init = "normal", .scale = -1));
}
static tn_x r_null(tn_x x)
{
    (void)tn_weight(NULL, "w", .shape = {1, IN});
    return x;
}
static tn_x r_fit(tn_x x)
{
    return tn_mul(x, tn_weight(x, "w", .shape = {1, IN + 1}));
}

static void test_refused(void **state)
{
    static const struct {
        tn_x (*function)(tn_x x);
        const char *text;
        int exit_code;
    } rows[] = {
        {r_twice, "net.w is called twice in one call of the net", 2},
        {r_other_shape, "net.w: .shape 1×1 at", 1},
        {r_other_init, "net.w: .init one at", 1},
        {r_layer, "net.w: parameter at", 1},
        {r_name, "a layer is called \"a.b\"", 2},
        {r_no_name, "tn_weight, called at", 2},
        {r_empty, "a layer is called \"\"", 2},
        {r_negative, "tn_weight \"w\", called at", 2},
        {r_gap, ".shape has 3 as dimension 2", 2},
        {r_huge, ".shape has 2147483648 as dimension 1", 2},
        {r_init, "did you mean \"xavier\"", 2},
        {r_scale, ".scale is that of an .init", 2},
        {r_both, "both .values and .init are given", 2},
        {r_below, "initialiser normal: .scale is -1", 2},
        {r_null, "tn_weight, called at", 2},
        {r_fit, "net.mul0 (broadcast_mul), called at", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_function(app, rows[i].function);
            tn_array *x = nn_array(app, 2, batch, 1);

            tn_net_init(net, .with = "normal");
            if (hybrid)
                tn_net_hybridize(net);
            for (turn = 0; turn < 2 && tn_app_ok(app); turn++) {
                (void)tn_net_forward(net, x);
                tn_net_retrace(net);
            }
            nn_close_failed(app, rows[i].text, rows[i].exit_code);
        }
}

/* No value, no app: nothing happens. Without first values the parameter is named. */
static void test_outside(void **state)
{
    tn_app *app = nn_open(NULL);

    (void)state;
    assert_null(tn_weight_(NULL, "w", NULL));
    assert_null(tn_net_forward(tn_net_function(app, several), nn_array(app, 2, batch, 1)));
    nn_close_failed(app, "parameter net_in_bias has no values: call tn_net_init()", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_a_layer), cmocka_unit_test(test_first_values),
        cmocka_unit_test(test_constants),  cmocka_unit_test(test_files),
        cmocka_unit_test(test_shared),     cmocka_unit_test(test_devices),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What functions over values refuse: each fault with its message, on arrays and traced; NULL for every
 * pointer.
 */
#include "nn/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/nulls.h"

static const int64_t flat[2] = {4, 5};
static tn_net *inner;

static tn_x encoder(tn_x x)
{
    return tn_dense(x, .units = 3, .activation = "tanh");
}

static tn_x counted(tn_x x)
{
    return tn_dense(x, .units = 2, .no_bias = 1);
}

/* ---- what is refused ----------------------------------------------------------------------------- */

static int turn; /* of the same function's calls */
static tn_x stale;

static tn_x f_null(tn_x x)
{
    (void)x;
    return NULL;
}
static tn_x f_null_value(tn_x x)
{
    return tn_add(x, NULL);
}
static tn_x f_stale(tn_x x)
{
    tn_x y = turn ? tn_relu(stale) : x;

    stale = x;
    return y;
}
static tn_x f_stale_out(tn_x x)
{
    tn_x y = turn ? stale : x;

    stale = x;
    return y;
}
static tn_x f_open(tn_x x)
{
    tn_scope_begin(x, "left");
    return tn_dense(x, .units = 2);
}
static tn_x f_end(tn_x x)
{
    tn_scope_end(x);
    return x;
}
static tn_x f_twice(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2, .name = "fc");

    return tn_add(y, tn_dense(x, .units = 2, .name = "fc"));
}
static tn_x f_half_shared(tn_x x)
{
    tn_x y = tn_dense(x, .units = 2, .name = "fc");

    return tn_add(y, tn_dense(x, .units = 2, .name = "fc", .share = 1));
}
static tn_x f_name(tn_x x)
{
    return tn_dense(x, .units = 2, .name = "a.b");
}
static tn_x f_no_name(tn_x x)
{
    return tn_dense(x, .units = 2, .name = "");
}
static tn_x f_scope_name(tn_x x)
{
    tn_scope_begin(x, "a/%d", 1);
    return x;
}
static tn_x f_other_units(tn_x x)
{
    return tn_dense(x, .units = turn ? 3 : 2);
}
static tn_x f_other_activation(tn_x x)
{
    return tn_dense(x, .units = 2, .activation = turn ? "tanh" : NULL);
}
static tn_x f_less(tn_x x)
{
    x = turn ? x : tn_dense(x, .units = 5);
    return tn_batchnorm(x);
}
static tn_x f_more(tn_x x)
{
    x = turn ? tn_dense(x, .units = 5) : x;
    return tn_batchnorm(x);
}
static tn_x f_order(tn_x x)
{
    return tn_add(tn_dense(x, .units = 2), tn_dense(tn_relu(x), .units = 2));
}
static tn_x f_order_concat(tn_x x)
{
    return tn_concat(1, tn_relu(x), tn_dense(x, .units = 2), x, tn_relu(tn_dropout(x, .rate = 0.5)));
}
static tn_x f_read(tn_x x)
{
    float value[20];

    (void)tn_read(x, 20, value);
    return tn_relu(x);
}
static tn_x f_axis(tn_x x)
{
    return tn_scale(x, (double)tn_dim(x, 2));
}
static tn_x f_units(tn_x x)
{
    return tn_dense(x, .units = 0);
}
static tn_x f_window(tn_x x)
{
    return tn_conv2d(x, .channels = 2, .kernel = {3});
}
static tn_x f_shapes(tn_x x)
{
    return tn_op(x, "dot", .with = {x});
}
static tn_x f_operator(tn_x x)
{
    return tn_op(x, "no_such_operator");
}
static tn_x f_attr(tn_x x)
{
    return tn_op(x, "topk", .attrs = {"kay", "3"});
}
static tn_x f_outputs(tn_x x)
{
    tn_x out[3];

    return tn_op(x, "SliceChannel", .attrs = {"num_outputs", "5"}, .out = out, .out_count = 65);
}
static tn_x f_few(tn_x x)
{
    tn_x out[3];

    return tn_op(x, "topk", .out = out, .out_count = 3);
}
static tn_x f_split(tn_x x)
{
    tn_x out[3];

    return tn_split(x, 0, 1, out);
}
static tn_net *itself;
static tn_x f_itself(tn_x x)
{
    return tn_net_call(itself, x);
}
static tn_x f_forward(tn_x x)
{
    (void)tn_net_forward(itself, (tn_array *)tn_arg(x));
    return x;
}
static tn_x f_deep(tn_x x)
{
    for (int i = 0; i < 100; i++)
        tn_scope_begin(x, "s");
    return x;
}
static tn_x f_many(tn_x x)
{
    for (int i = 0; x && i < 1 << 20; i++)
        x = tn_net_call(inner, x);
    return x;
}
static tn_x f_unused(tn_x x)
{
    (void)tn_dropout(x, .rate = 0.5);
    return tn_relu(x);
}
static tn_x f_loss(tn_x x)
{
    return tn_softmax_ce(tn_dense(x, .units = 2), tn_dense(x, .units = 1));
}

static tn_x f_sequence(tn_x x)
{
    return tn_conv1d(x, .channels = 2, .kernel = {2});
}
static tn_x f_volume(tn_x x)
{
    return tn_maxpool3d(tn_reshape(x, 1, 1, 4, 5, 1), .kernel = {3});
}
static tn_x f_sides(tn_x x)
{
    return tn_conv3d(tn_reshape(x, 1, 1, 4, 5, 1), .channels = 1, .kernel = {3, 3, -1});
}
static tn_x f_groups(tn_x x)
{
    return tn_groupnorm(tn_reshape(x, 4, 5, 1), .groups = 2);
}
static tn_x f_no_groups(tn_x x)
{
    return tn_groupnorm(tn_reshape(x, 4, 5, 1), .groups = -1);
}
static tn_x f_epsilon(tn_x x)
{
    return tn_instancenorm(tn_reshape(x, 4, 5, 1), .epsilon = 2);
}
static tn_x f_slopes(tn_x x)
{
    return tn_prelu(x, .channels = 3);
}

static tn_x f_reflected(tn_x x)
{
    return tn_reflectionpad2d(x, .sides = {0, 0, -1});
}

static tn_x f_axes(tn_x x)
{
    return tn_dropout(x, .rate = 0.5, .axes = "1; 2");
}
static tn_x f_no_image(tn_x x)
{
    return tn_deformableconv2d(x, .channels = 2);
}
static tn_x f_no_divisor(tn_x x)
{
    return tn_modulateddeformableconv2d(tn_reshape(x, 1, 1, 4, 5), .channels = 2, .groups = 2);
}
static tn_x f_deformed_sides(tn_x x)
{
    return tn_deformableconv2d(tn_reshape(x, 1, 1, 4, 5), .channels = 2, .kernel = {3, 1025});
}
static tn_x f_deformed_changes(tn_x x)
{
    return tn_deformableconv2d(tn_reshape(x, 1, 1, 4, 5), .channels = 2, .pad = {turn});
}
static tn_x f_gates(tn_x x)
{
    tn_x states[2] = {NULL};

    return tn_gru_cell(x, states, .name = "a", .units = 2, .activation = "relu");
}
static tn_x f_recurrent(tn_x x)
{
    tn_x states[2] = {NULL};

    return tn_gru_cell(x, states, .name = "a", .units = 2, .recurrent_activation = "relu");
}
static tn_x f_recurrent_name(tn_x x)
{
    tn_x states[2] = {NULL};

    return tn_lstm_cell(x, states, .name = "a", .units = 2, .recurrent_activation = "sigmod");
}
static tn_x f_dilation(tn_x x)
{
    tn_x states[1] = {NULL};

    return tn_rnn_cell(tn_reshape(x, 1, 4, 5), states, .name = "a", .units = 2, .kernel = {3},
                       .dilate = {-1});
}
static tn_x f_state_window(tn_x x)
{
    tn_x states[1] = {NULL};

    return tn_rnn_cell(tn_reshape(x, 1, 4, 5), states, .name = "a", .units = 2, .kernel = {3},
                       .state_kernel = {INT32_MAX}, .state_dilate = {1024});
}
static tn_x step_nothing(tn_x x, tn_x *states, void *arg)
{
    (void)arg;
    states[0] = NULL;
    return x;
}
static tn_x f_steps(tn_x x)
{
    tn_x states[1] = {x};

    return tn_unroll(tn_reshape(x, 4, 5, 1), states, step_nothing, .states = 1, .lengths = x);
}
static tn_x f_many_steps(tn_x x)
{
    tn_x states[1] = {x};

    return tn_unroll(tn_op(tn_reshape(x, 4, 5, 1), "tile", .attrs = {"reps", "(17, 1, 1)"}), states,
                     step_nothing, .states = 1);
}

typedef struct refusal {
    tn_x (*function)(tn_x x);
    const char *text;
    int exit_code, traced; /* traced 1: only then */
} refusal;

static void refused_once(const refusal *r, int hybrid)
{
    tn_app *app = nn_open(NULL);
    tn_array *x = nn_array(app, 2, flat, 1);

    itself = tn_net_function(app, r->function, .arg = x);
    inner = tn_net_new(app, .name = "inner");
    tn_net_activation(inner, .activation = "relu");
    tn_net_init(itself, .seed = 1);
    if (hybrid)
        tn_net_hybridize(itself);
    for (turn = 0; turn < 2 && tn_app_ok(app); turn++) {
        (void)tn_net_forward(itself, x);
        tn_net_retrace(itself);
    }
    if (!strstr(tn_app_error(app), r->text))
        print_error("\"%s\" is not there, hybrid %d\n", r->text, hybrid);
    nn_close_failed(app, r->text, r->exit_code);
}

static void test_refused(void **state)
{
    static const refusal bad[] = {
        {f_null, "gives nothing for output 0", 1, 0},
        {f_null_value, "plus, called at", 2, 0},
        {f_stale, "a value of another call", 2, 0},
        {f_stale_out, "a value of another call for output 0", 1, 0},
        {f_open, "scope \"left\", begun at", 1, 0},
        {f_end, "no scope is open", 1, 0},
        {f_twice, "net.fc is called twice", 2, 0},
        {f_half_shared, "net.fc is called twice", 2, 0},
        {f_name, "\"a.b\"", 2, 0},
        {f_no_name, "a layer is called \"\"", 2, 0},
        {f_scope_name, "a scope is called \"a/1\"", 2, 0},
        {f_other_units, "net.dense0: num_hidden 3 at", 1, 0},
        {f_other_activation, "net.dense0: activation tanh at", 1, 0},
        {f_less, "net.dense0 (FullyConnected) ran in the first call", 1, 0},
        {f_more, "net.dense0 (FullyConnected) at", 1, 0},
        {f_order, "which argument they run first", 1, 0},
        {f_order_concat, "which argument they run first", 1, 0},
        {f_loss, "which argument they run first", 1, 0},
        {f_read, "the net is traced here", 1, 1},
        {f_axis, "axis 2, but x has 2 dimensions", 2, 0},
        {f_units, ".units is 0", 2, 0},
        {f_window, "net.conv0 (Convolution) needs images", 1, 0},
        {f_sequence, "net.conv0 (Convolution) needs sequences (N, C, W)", 1, 0},
        {f_volume, "kernel 3×3×3 · stride 3×3×3 · pad 0×0×0 → 1×1×1×1×0", 1, 0},
        {f_sides, ".kernel is {3, 3, -1}, at least 1 is needed", 2, 0},
        {f_groups, "net.groupnorm0 (GroupNorm)", 1, 0},
        {f_no_groups, ".groups is -1", 2, 0},
        {f_epsilon, ".epsilon is 2", 2, 0},
        {f_reflected, ".pad is 0 and .sides {0, 0, -1, 0}", 2, 0},
        {f_slopes, "net.prelu0 (LeakyReLU)", 1, 0},
        {f_shapes, "net.dot0 (dot), called at", 1, 0},
        {f_operator, "no_such_operator", 3, 0},
        {f_attr, "kay", 2, 0},
        {f_outputs, ".out and .out_count", 2, 0},
        {f_few, "3 outputs were asked for", 2, 0},
        {f_split, "0 values", 2, 0},
        {f_itself, "called by its own function", 2, 0},
        {f_forward, "called by its own function", 1, 0},
        {f_deep, "deep", 2, 0},
        {f_many, "a call", 2, 0},
        {f_axes, ".axes is \"1; 2\"", 2, 0},
        {f_no_image, "images (N, C, H, W) are needed", 2, 0},
        {f_no_divisor, ".groups do not divide", 2, 0},
        {f_deformed_sides, "not within 1", 2, 0},
        {f_deformed_changes, "net.deformable_conv0: pad (1, 0) at", 1, 0},
        {f_gates, "have no .activation", 2, 0},
        {f_recurrent, "has a .recurrent_activation", 2, 0},
        {f_recurrent_name, "did you mean \"sigmoid\"", 2, 0},
        {f_dilation, "a dilation is below 1", 2, 0},
        {f_state_window, ".state_kernel is below 0, or above 1024", 2, 0},
        {f_steps, "sequence_length (4, 5) has 2 dimensions", 1, 0},
        {f_many_steps, "1 to 64 steps", 2, 0},
        {f_unused, "nothing uses what it gives", 1, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int hybrid = bad[i].traced; hybrid < 2; hybrid++)
            refused_once(&bad[i], hybrid);
}

/* One that reads numbers runs on arrays; one whose dropout is used nowhere, too. */
static void test_arrays_only(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, f_read);

    (void)state;
    assert_non_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    tn_net_export(net, "/nowhere/x");
    nn_close_failed(app, "tn_read, called at", 1);
}

static tn_app *other_app;
static tn_net *other_net;
static tn_x other_x;

static tn_x f_other(tn_x x)
{
    other_x = x;
    (void)tn_net_forward(other_net, nn_array(other_app, 2, flat, 1));
    return x;
}

static tn_x f_uses_other(tn_x x)
{
    (void)tn_relu(other_x);
    return x;
}

static tn_x f_calls_other(tn_x x)
{
    return tn_net_call(other_net, x);
}

static void test_other_app(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, f_other);

    (void)state;
    other_app = nn_open(NULL);
    other_net = tn_net_function(other_app, f_uses_other);
    assert_non_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    assert_null(tn_net_forward(tn_net_function(app, f_calls_other), nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "a net of another app", 2);
    nn_close_failed(other_app, "a value of another app", 2);
}

/* Outside of any function a value is refused, and says so to its app. */
static void test_outside(void **state)
{
    tn_app *app = nn_open(NULL);

    (void)state;
    turn = 0;
    assert_non_null(tn_net_forward(tn_net_function(app, f_stale), nn_array(app, 2, flat, 1)));
    assert_null(tn_relu(stale));
    nn_close_failed(app, "no net's function is running", 1);
}

/* The parameters of a call that failed are used by the next one. */
static void test_goes_on(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, counted);
    const int64_t wrong[2] = {4, 6};

    (void)state;
    tn_net_init(net, .seed = 1);
    assert_non_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    assert_null(tn_net_forward(net, nn_array(app, 2, wrong, 1)));
    assert_non_null(strstr(tn_app_error(app), "net.dense0 (FullyConnected), called at"));
    assert_non_null(strstr(tn_app_error(app), "input 4×6 (from the input)"));
    tn_app_clear(app);
    assert_non_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    tn_net_dense(net, .units = 2);
    nn_close_failed(app, "its layers are made where it calls them", 1);
}

static void f_two(const tn_x *in, tn_x *out)
{
    out[0] = tn_add(in[0], in[1]);
}

static void test_making(void **state)
{
    static const char *const names[9] = {"a", "b", "c", "d", "e", "f", "g", "h", NULL};
    tn_app *app = nn_open(NULL);
    tn_net *net;

    (void)state;
    assert_null(tn_net_function(app, NULL));
    nn_close_failed(app, "the function is NULL", 2);
    app = nn_open(NULL);
    assert_null(tn_net_function(app, encoder, .name = "a b"));
    nn_close_failed(app, "not a b", 2);
    app = nn_open(NULL);
    assert_null(tn_net_function(app, encoder, .inputs = {"a", "b"}));
    nn_close_failed(app, "tn_net_functions()", 2);
    app = nn_open(NULL);
    assert_null(tn_net_functions(app, f_two, .inputs = {"a", "a"}));
    nn_close_failed(app, "are called \"a\"", 2);
    app = nn_open(NULL);
    assert_null(tn_net_functions(app, f_two, .outputs = {"ä"}));
    nn_close_failed(app, "outputs \"", 2);
    app = nn_open(NULL);
    net = tn_net_functions(
        app, f_two,
        .inputs = {names[0], names[1], names[2], names[3], names[4], names[5], names[6], names[7]});
    assert_int_equal(tn_net_input_count(net), 8);
    assert_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "has 8 inputs: tn_net_run()", 2);
    app = nn_open(NULL);
    net = tn_net_functions(app, f_two, .inputs = {"a", "b"});
    tn_net_init(net, .shape = {4, 5});
    nn_close_failed(app, "has 2 inputs, shapes of 1 are given", 2);
    app = nn_open(NULL);
    net = tn_net_function(app, encoder);
    tn_net_export(net, "/nowhere/n");
    nn_close_failed(app, "has not seen an input", 1);
    app = nn_open(NULL);
    net = tn_net_function(app, encoder);
    assert_null(tn_net_forward(net, nn_array(app, 2, flat, 1)));
    nn_close_failed(app, "call tn_net_init()", 1);
    app = nn_open(NULL);
    net = tn_net_function(app, encoder);
    tn_net_load_params(net, "/nowhere/n");
    nn_close_failed(app, "/nowhere/n", 2);
}

/* ---- NULL for every pointer ---------------------------------------------------------------------- */

static int quiet;

static void nothing(tn_x made, const char *call, tn_app *app)
{
    if (made || tn_app_status(app) != TN_E_ARG) {
        print_error("%s: %s, %s\n", call, made ? "a value" : "NULL", tn_app_error(app));
        quiet++;
    }
    tn_app_clear(app);
}

#define NOTHING(call) nothing(call, #call, app)

static void nulls_of_operators(tn_app *app, tn_x x)
{
    NOTHING(tn_relu_(NULL, NULL, 0));
    NOTHING(tn_sigmoid_(NULL, NULL, 0));
    NOTHING(tn_tanh_(NULL, NULL, 0));
    NOTHING(tn_softrelu_(NULL, NULL, 0));
    NOTHING(tn_softsign_(NULL, NULL, 0));
    NOTHING(tn_swish_(NULL, 1, NULL, 0));
    NOTHING(tn_pixelshuffle_(NULL, NULL));
    NOTHING(tn_pixelshuffle_(x, NULL));
    NOTHING(tn_pixelshuffle(x, .factor = {2, -1}));
    NOTHING(tn_pixelshuffle(x, .factor = {2})); /* two dimensions */
    NOTHING(tn_dropout_mask_(NULL, 0.5, NULL, 0));
    NOTHING(tn_dropout_mask_(x, 1, NULL, 0));
    NOTHING(tn_zoneout_(NULL, x, 0.5, NULL, 0));
    NOTHING(tn_zoneout_(NULL, NULL, 0.5, NULL, 0));
    NOTHING(tn_zoneout_(x, NULL, -1, NULL, 0));
    NOTHING(tn_exp_(NULL, NULL, 0));
    NOTHING(tn_log_(NULL, NULL, 0));
    NOTHING(tn_abs_(NULL, NULL, 0));
    NOTHING(tn_square_(NULL, NULL, 0));
    NOTHING(tn_sqrt_(NULL, NULL, 0));
    NOTHING(tn_stop_(NULL, NULL, 0));
    NOTHING(tn_softmax_(NULL, NULL, 0));
    NOTHING(tn_log_softmax_(NULL, NULL, 0));
    NOTHING(tn_add_(NULL, x, NULL, 0));
    NOTHING(tn_add_(x, NULL, NULL, 0));
    NOTHING(tn_sub_(NULL, NULL, NULL, 0));
    NOTHING(tn_mul_(NULL, NULL, NULL, 0));
    NOTHING(tn_div_(NULL, NULL, NULL, 0));
    NOTHING(tn_scale_(NULL, 1, NULL, 0));
    NOTHING(tn_shift_(NULL, 1, NULL, 0));
    NOTHING(tn_reshape_(NULL, 1, (const int64_t[]){-1}, NULL, 0));
    NOTHING(tn_reshape_(x, 1, NULL, NULL, 0));
    NOTHING(tn_transpose_(NULL, 1, NULL, NULL, 0));
    NOTHING(tn_transpose_(x, 9, NULL, NULL, 0));
    NOTHING(tn_concat_(1, 1, NULL, NULL, 0));
    NOTHING(tn_concat_(1, 65, &x, NULL, 0));
    NOTHING(tn_concat_(1, 1, (const tn_x[]){NULL}, NULL, 0));
    NOTHING(tn_split_(NULL, 1, 1, &x, NULL, 0));
    NOTHING(tn_slice_(NULL, NULL));
    NOTHING(tn_op_(NULL, "relu", NULL));
    NOTHING(tn_state_(NULL, 3, NULL, 0));
    NOTHING(tn_mean_(NULL, NULL, 0));
    NOTHING(tn_softmax_ce_(NULL, NULL, NULL, 0));
    NOTHING(tn_sigmoid_ce_(NULL, NULL, NULL, 0));
    NOTHING(tn_l2_(NULL, NULL, NULL, 0));
    NOTHING(tn_l1_(NULL, NULL, NULL, 0));
    NOTHING(tn_accuracy_(NULL, NULL, NULL, 0));
    NOTHING(tn_loss_(NULL, x, "l2", NULL));
    NOTHING(tn_loss_(x, NULL, "l2", NULL));
    NOTHING(tn_loss_(x, x, NULL, NULL));
}

static void nulls_of_layers(tn_app *app, tn_x x)
{
    NOTHING(tn_dense_(NULL, NULL));
    NOTHING(tn_dense_(x, NULL)); /* units are asked for */
    NOTHING(tn_conv2d_(NULL, NULL));
    NOTHING(tn_conv2d_(x, NULL));
    NOTHING(tn_maxpool2d_(NULL, NULL));
    NOTHING(tn_avgpool2d_(NULL, NULL));
    NOTHING(tn_globalavgpool2d_(NULL, NULL));
    NOTHING(tn_conv1d_(NULL, NULL));
    NOTHING(tn_conv3d_(NULL, NULL));
    NOTHING(tn_maxpool1d_(NULL, NULL));
    NOTHING(tn_maxpool3d_(NULL, NULL));
    NOTHING(tn_avgpool1d_(NULL, NULL));
    NOTHING(tn_avgpool3d_(NULL, NULL));
    NOTHING(tn_globalmaxpool1d_(NULL, NULL));
    NOTHING(tn_globalmaxpool2d_(NULL, NULL));
    NOTHING(tn_globalmaxpool3d_(NULL, NULL));
    NOTHING(tn_globalavgpool1d_(NULL, NULL));
    NOTHING(tn_globalavgpool3d_(NULL, NULL));
    NOTHING(tn_instancenorm_(NULL, NULL));
    NOTHING(tn_groupnorm_(NULL, NULL));
    NOTHING(tn_prelu_(NULL, NULL));
    NOTHING(tn_elu_(NULL, NULL));
    NOTHING(tn_selu_(NULL, NULL));
    NOTHING(tn_gelu_(NULL, NULL));
    NOTHING(tn_conv1d_(x, NULL));
    NOTHING(tn_conv3d_(x, NULL));
    NOTHING(tn_conv1dtranspose_(NULL, NULL));
    NOTHING(tn_conv1dtranspose_(x, NULL));
    NOTHING(tn_conv2dtranspose_(NULL, NULL));
    NOTHING(tn_conv2dtranspose_(x, NULL));
    NOTHING(tn_conv3dtranspose_(NULL, NULL));
    NOTHING(tn_conv3dtranspose_(x, NULL));
    NOTHING(tn_batchnorm_(NULL, NULL));
    NOTHING(tn_batchnormrelu_(NULL, NULL));
    NOTHING(tn_syncbatchnorm_(NULL, NULL));
    NOTHING(tn_syncbatchnorm(x, .axis = 2));
    NOTHING(tn_deformableconv2d_(NULL, NULL));
    NOTHING(tn_deformableconv2d_(x, NULL));
    NOTHING(tn_modulateddeformableconv2d_(NULL, NULL));
    NOTHING(tn_modulateddeformableconv2d_(x, NULL));
    NOTHING(tn_layernorm_(NULL, NULL));
    NOTHING(tn_embedding_(NULL, NULL));
    NOTHING(tn_embedding_(x, NULL));
    NOTHING(tn_dropout_(NULL, NULL));
    NOTHING(tn_flatten_(NULL, NULL));
    NOTHING(tn_activation_(NULL, NULL));
    NOTHING(tn_leakyrelu_(NULL, NULL));
    NOTHING(tn_reflectionpad2d_(NULL, NULL));
}

static void nulls_of_unroll(tn_app *app, tn_x x)
{
    tn_x steps = tn_reshape(x, 4, 5, 1), states[1] = {NULL};

    NOTHING(tn_unroll_(NULL, states, step_nothing, NULL));
    NOTHING(tn_unroll_(steps, NULL, step_nothing, NULL));
    NOTHING(tn_unroll_(steps, states, NULL, NULL));
    NOTHING(tn_unroll_(steps, states, step_nothing, NULL)); /* states are asked for */
    NOTHING(tn_unroll(steps, states, step_nothing, .states = 9));
    NOTHING(tn_unroll(steps, states, step_nothing, .states = 1, .layout = "NCT"));
    NOTHING(tn_unroll(x, states, step_nothing, .states = 1));
}

static tn_x f_nulls(tn_x x)
{
    const tn_x kept = x;
    tn_app *app = other_app;
    float value;

    nulls_of_operators(app, x);
    nulls_of_layers(app, x);
    nulls_of_unroll(app, x);
    NOTHING(tn_split_(x, 1, 1, NULL, NULL, 0));
    NOTHING(tn_op_(x, NULL, NULL));
    NOTHING(tn_state_(x, 0, NULL, 0));
    NOTHING(tn_rnn_cell_(NULL, &x, NULL));
    NOTHING(tn_rnn_cell_(x, NULL, NULL));
    NOTHING(tn_rnn_cell_(x, &x, NULL));
    NOTHING(tn_lstm_cell_(x, (tn_x[]){x, NULL}, NULL));
    NOTHING(tn_lstm_cell_(NULL, NULL, NULL));
    NOTHING(tn_gru_cell_(NULL, NULL, NULL));
    NOTHING(
        tn_gru_cell_(x, &x, &(const tn_cell_options){.struct_size = sizeof(tn_cell_options), .name = "g"}));
    NOTHING(tn_rnn_(NULL, NULL, NULL));
    NOTHING(tn_rnn_(x, &x, NULL));
    NOTHING(tn_lstm_(NULL, NULL, NULL));
    NOTHING(tn_lstm_(x, NULL, NULL));
    NOTHING(tn_gru_(NULL, &x, NULL));
    NOTHING(tn_gru_(x, NULL, NULL));
    NOTHING(tn_net_call_(NULL, x, NULL, 0));
    NOTHING(tn_net_call_(inner, NULL, NULL, 0));
    NOTHING((tn_net_call_all_(inner, NULL, &x, NULL, 0), NULL));
    NOTHING((tn_net_call_all_(inner, (const tn_x[]){x}, NULL, NULL, 0), NULL));
    NOTHING((tn_net_call_all_(NULL, NULL, NULL, NULL, 0), NULL));
    x = tn_relu(kept); /* out[] was set to NULL */
    NOTHING((tn_scope_begin_(NULL, NULL, 0, "a"), NULL));
    NOTHING((tn_scope_begin_(x, NULL, 0, NULL), NULL));
    NOTHING(((void)tn_dim_(NULL, 0, NULL, 0), NULL));
    NOTHING(((void)tn_dim_(x, 7, NULL, 0), NULL));
    NOTHING(((void)tn_ndim_(NULL, NULL, 0), NULL));
    NOTHING(((void)tn_arg(NULL), NULL));
    NOTHING(((void)tn_param_(NULL, "dense0.weight", NULL, 0), NULL));
    NOTHING(tn_param_(x, NULL, NULL, 0));
    NOTHING(tn_weight_(NULL, "w", NULL));
    NOTHING(tn_weight_(x, NULL, NULL));
    NOTHING(((void)tn_read_(NULL, 1, &value, NULL, 0), NULL));
    NOTHING(((void)tn_read_(x, 1, NULL, NULL, 0), NULL));
    NOTHING(((void)tn_read_(x, 3, &value, NULL, 0), NULL));
    tn_arguments_(NULL, 0);
    tn_scope_begin_(x, NULL, 0, "s");
    tn_scope_end_(NULL, NULL, 0); /* closes the scope all the same */
    return x;
}

static void test_nulls(void **state)
{
    char *header = nulls_source("sdk/include/tenon/nn_values.h"),
         *tests[] = {nulls_source("tests/nn/test_values_bad.c"), NULL};
    size_t functions = 0;

    (void)state;
    assert_null(tn_relu_(NULL, NULL, 0)); /* outside, with no app to tell */
    assert_null(tn_net_function_(NULL, NULL, NULL));
    assert_null(tn_net_functions_(NULL, NULL, NULL));
    assert_null(tn_net_block_(NULL, NULL, NULL));
    other_app = nn_open(NULL);
    inner = tn_net_function(other_app, encoder, .name = "inner");
    assert_non_null(tn_net_forward(tn_net_function(other_app, f_nulls), nn_array(other_app, 2, flat, 1)));
    assert_null(tn_net_functions_(other_app, NULL, NULL));
    tn_app_clear(other_app);
    nn_close(other_app);
    assert_int_equal(quiet, 0);
    assert_int_equal(nulls_missing("nn_values.h", header, tests, &functions), 0);
    assert_true(functions > 50);
    free(header);
    free(tests[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused), cmocka_unit_test(test_arrays_only), cmocka_unit_test(test_other_app),
        cmocka_unit_test(test_outside), cmocka_unit_test(test_goes_on),     cmocka_unit_test(test_making),
        cmocka_unit_test(test_nulls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

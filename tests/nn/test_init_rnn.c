/* First values of the vector of an RNN's parameters: of any parameter, and as a graph's variable says. */
#include "nn/symbols.h"

#include <math.h>
#include <string.h>

#include "tenon/nn_module.h"
#include "tenon/nn_values.h"

#define ROOM 256

/* A net whose bias is a vector of `count` elements, and which was initialised. */
static tn_net *vector_net(tn_app *app, int64_t count)
{
    tn_net *net = tn_net_new(app);

    tn_net_dense(net, .units = count);
    tn_net_init(net, .seed = 3, .with = "constant", .scale = 4, .shape = {1, 2});
    return net;
}

enum { RNN_LENGTH = 4 * 2 * (3 + 2 + 2) }; /* LSTM: 2 units, 3 inputs */

/* Matrices of the gates get numbers of their own, all biases none but those of the forget gates. */
static void test_init_rnn(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = vector_net(app, RNN_LENGTH);
    float v[2][RNN_LENGTH];

    (void)state;
    tn_net_init_where(net, ".bias", .with = "FusedRNN", .units = 2, .forget_bias = 0.5);
    assert_int_equal(nn_read(app, tn_net_param(net, "0.bias"), v[0], RNN_LENGTH), RNN_LENGTH);
    for (size_t k = 0; k < RNN_LENGTH; k++) {
        const size_t bias = k - 4 * 2 * (3 + 2);

        assert_true(v[0][k] == (k < 40 ? 4 : bias / 2 % 4 == 1 ? 0.5f : 0));
    }
    for (size_t i = 0; i < 2; i++) {
        tn_net_init_where(net, ".bias", .with = "fusedrnn", .weights = i ? "orthogonal" : "uniform",
                          .scale = 0.25, .units = 2, .no_forget_bias = 1);
        assert_int_equal(nn_read(app, tn_net_param(net, "0.bias"), v[i], RNN_LENGTH), RNN_LENGTH);
        for (size_t k = 40; k < RNN_LENGTH; k++)
            assert_true(v[i][k] == 0);
    }
    for (size_t k = 0; k < 40; k++) {
        assert_true(fabsf(v[0][k]) < 0.25f && v[0][k] != 0);
        assert_true(k < 6 || (v[0][k] != v[0][k - 6] && v[1][k] != v[1][k - 6]));
    }
    for (size_t gate = 0; gate < 4; gate++) { /* rows of each (2, 3), each (2, 2) */
        const float *w = v[1] + 6 * gate, *h = v[1] + 24 + 4 * gate;

        assert_true(fabsf(w[0] * w[3] + w[1] * w[4] + w[2] * w[5]) < 1e-6f);
        assert_true(fabsf(h[0] * h[2] + h[1] * h[3]) < 1e-6f);
        assert_true(fabsf(w[0] * w[0] + w[1] * w[1] + w[2] * w[2] - 0.0625f) < 1e-6f);
    }
    nn_close(app);
}

static void test_init_rnn_refused(void **state)
{
    static const struct {
        tn_init_options o;
        const char *text;
    } rows[] = {
        {{.units = 0}, ".units is missing"},
        {{.units = -1}, ".units is missing"},
        {{.units = INT64_MAX}, ".units is missing or above"},
        {{.units = 2, .layers = -1}, ".layers is below 0"},
        {{.units = 2, .layers = INT32_MAX}, ".layers is below 0 or above"},
        {{.units = 2, .forget_bias = NAN}, ".forget_bias"},
        {{.units = 2, .weights = "fusedrnn"}, ".weights is itself"},
        {{.units = 2, .weights = "orthogonl"}, "did you mean \"orthogonal\""},
        {{.units = 2, .mode = "lstn"}, "did you mean \"lstm\""},
    };
    static const struct {
        tn_init_options o;
        const char *text;
    } shapes[] = {
        {{.units = 3}, "56 elements in 1 dimensions are no vector of an RNN (lstm, 3 units, 1 layers)"},
        {{.units = 2, .layers = 2}, "no vector"},
        {{.units = 2, .bidirectional = 1, .mode = "gru"}, "2 units, 1 layers, in both directions"},
        {{.units = 1 << 30, .layers = 65536, .bidirectional = 1}, "no vector"},
    };
    enum { ROWS = sizeof rows / sizeof *rows, SHAPES = sizeof shapes / sizeof *shapes };

    (void)state;
    for (size_t i = 0; i < ROWS + SHAPES; i++) {
        const int fits = i < ROWS;
        tn_app *app = nn_open(NULL);
        tn_net *net = vector_net(app, RNN_LENGTH);
        tn_init_options o = fits ? rows[i].o : shapes[i - ROWS].o;

        o.struct_size = (uint32_t)sizeof o;
        o.with = "fusedrnn";
        tn_net_init_where_(net, ".bias", &o);
        assert_int_equal(tn_app_status(app), fits ? TN_E_ARG : TN_E_SHAPE);
        nn_close_failed(app, fits ? rows[i].text : shapes[i - ROWS].text, fits ? 2 : 1);
    }
}

static tn_x with_vector(tn_x x)
{
    return tn_add(x, tn_weight(x, "rnn_weight", .shape = {RNN_LENGTH}));
}

/* A matrix is no vector; the gates of a net's own initialiser have none. */
static void test_init_rnn_of_net(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);

    (void)state;
    tn_net_dense(net, .units = RNN_LENGTH);
    tn_net_init(net, .with = "fusedrnn", .units = 2, .shape = {1, 2});
    nn_close_failed(app, "in 2 dimensions are no vector", 1);
    app = nn_open(NULL);
    net = tn_net_function(app, with_vector);
    tn_net_init(net, .with = "fusedrnn", .units = 2);
    (void)tn_net_forward(net, nn_array(app, 2, (int64_t[]){1, RNN_LENGTH}, 1));
    nn_close_failed(app, "gate l0_i2h_i_weight: no initialiser of the weights is given", 2);
}

/* First values of an RNN's vector whose variable says `init`; its length, or 0: the module refused. */
static size_t rnn_values(const char *init, float *out)
{
    tn_app *app = nn_open(NULL);
    tn_symbol *in[] = {variable(app, "data"), variable(app, "rnn_parameters"), variable(app, "first"),
                       variable(app, "cell")},
              *s = NULL;
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 4,
                                 .op = "RNN",
                                 .name = "rnn",
                                 .attrs = LIST("state_size", "2", "num_layers", "1", "mode", "lstm"),
                                 .in = in};
    size_t count = 0;
    tn_module *m;

    assert_int_equal(tn_symbol_attr_set(in[1], "__init__", init), TN_OK);
    assert_int_equal(tn_symbol_op(tn_app_ctx(app), &call, &s), TN_OK);
    for (size_t i = 0; i < 4; i++)
        tn_symbol_release(in[i]);
    m = tn_module_new(app, .symbol = s, .data = LIST("data", "first", "cell"));
    tn_symbol_release(s);
    tn_module_bind(m, .shapes = {{5, 1, 3}, {1, 1, 2}, {1, 1, 2}});
    tn_module_init_params(m, .with = "constant", .scale = 4);
    if (tn_app_ok(app))
        count = nn_read_module(app, m, out, ROOM);
    else
        tn_app_clear(app);
    nn_close(app);
    return count;
}

/* As mx.init.FusedRNN writes itself; 40 weights, 16 biases. Others are none that is here, or do not fit. */
static void rnn_by_its_variable(void **state)
{
    static const char *const texts[] = {
        "[\"fusedrnn\", {\"init\": \"[\\\"constant\\\", {\\\"value\\\": 0.5}]\", \"num_hidden\": 2, "
        "\"num_layers\": 1, \"mode\": \"lstm\", \"bidirectional\": false, \"forget_bias\": -2.0}]",
        "[\"fusedrnn\", {\"init\": null, \"num_hidden\": 2, \"num_layers\": 1, \"mode\": \"lstm\", "
        "\"bidirectional\": false, \"forget_bias\": 0.0}]"};
    static const char *const wrong[] = {
        "fusedrnn",
        "[\"fusedrnn\"]",
        "[\"fusedrnn\", {\"num_hidden\": 2}]",
        "[\"fusedrnn\", {\"num_hidden\": 2.5, \"num_layers\": 1}]",
        "[\"fusedrnn\", {\"num_hidden\": 0, \"num_layers\": 1}]",
        "[\"fusedrnn\", {\"num_hidden\": 2, \"num_layers\": 4294967297}]",
        "[\"fusedrnn\", {\"num_hidden\": 2, \"num_layers\": 1, \"mode\": \"lstn\"}]",
        "[\"fusedrnn\", {\"num_hidden\": 2, \"num_layers\": 1, \"forget_bias\": \"1\"}]",
        "[\"fusedrnn\", {\"init\": 3, \"num_hidden\": 2, \"num_layers\": 1}]",
        "[\"fusedrnn\", {\"init\": \"nobody\", \"num_hidden\": 2, \"num_layers\": 1}]",
        ("[\"fusedrnn\", {\"init\": \"[\\\"fusedrnn\\\", {\\\"num_hidden\\\": 2, \\\"num_layers\\\": 1}]\", "
         "\"num_hidden\": 2, \"num_layers\": 1}]"),
        "[\"fusedrnn\", {\"init\": null, \"num_hidden\": 3, \"num_layers\": 1}]",
    };
    float v[ROOM];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rnn_values(texts[i], v), 56);
        for (size_t k = 0; k < 56; k++)
            assert_true(v[k] == (k < 40 ? i ? 4 : 0.5f : !i && (k - 40) / 2 % 4 == 1 ? -2 : 0));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(rnn_values(wrong[i], v), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_rnn), cmocka_unit_test(test_init_rnn_refused),
        cmocka_unit_test(test_init_rnn_of_net), cmocka_unit_test(rnn_by_its_variable)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Recurrent layers, cells over sequences and CTC of nn give what MXNet 1.9.1's Gluon gives:
 * tests/oracle/recorded/nn, which tests/oracle/nn.py wrote.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mxnet/nn_calls.h"
#include "tenon/nn_data.h"

/* ---- layers of whole sequences ------------------------------------------------------------------- */

enum { PARAMS_MAX = 16 };

/* The names of the parameters in MXNet's order; how many there are. */
static uint32_t recurrent_names(const call *c, char names[PARAMS_MAX][32])
{
    static const char *const suffixes[] = {"i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"};
    const int layers = (int)fmax(number_of(c, "layers"), 1);
    uint32_t count = 0;

    for (int layer = 0; layer < layers; layer++)
        for (int direction = 0; direction <= (int)number_of(c, "bidirectional"); direction++)
            for (int i = 0; i < 4; i++)
                (void)snprintf(names[count++], 32, "deep.%c%d_%s", "lr"[direction], layer, suffixes[i]);
    return count;
}

static void recurrent_net(const tn_x *in, tn_x *out)
{
    static tn_x (*const run[])(tn_x x, tn_x * states, const tn_rnn_options *o) = {tn_rnn_, tn_lstm_, tn_gru_};
    const call *c = tn_arg(in[0]);
    const char *kind = name_of(c, "recurrent");
    const tn_rnn_options o = {.struct_size = sizeof o,
                              .name = "deep",
                              .units = text_of(c, "units") ? (int64_t)number_of(c, "units") : 4,
                              .layers = (int32_t)number_of(c, "layers"),
                              .bidirectional = (int32_t)number_of(c, "bidirectional"),
                              .layout = text_of(c, "layout"),
                              .activation = text_of(c, "activation")};
    tn_x states[2] = {in[1], in[2]};

    out[0] = run[*kind == 'r' ? 0 : *kind == 'l' ? 1 : 2](in[0], states, &o);
    out[1] = states[0];
    out[2] = *kind == 'l' ? states[1] : states[0];
}

static void recurrent_replay(const call *c, const char *name)
{
    const uint32_t states = *name == 'l' ? 2 : 1;
    char names[PARAMS_MAX][32];
    const uint32_t count = recurrent_names(c, names);

    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_functions(app, recurrent_net, .arg = (void *)(uintptr_t)c,
                                       .inputs = {"x", "s", "t"}, .outputs = {"y", "h", "k"});
        tn_array *in[3], *out[3];

        for (uint32_t i = 0; i < 3; i++)
            in[i] = array_of(app, &c->parts[IN][i <= states ? i : 1]);
        tn_net_init(net, .seed = 1);
        if (!tn_net_run(net, 3, in, 3, out))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        assert_int_equal(tn_net_param_count(net), count);
        assert_int_equal(c->counts[IN], 1 + states + count);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(
                tn_array_copy(array_of(app, &c->parts[IN][1 + states + i]), tn_net_param(net, names[i])),
                TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 3, in, 3, out);
        tn_app_backward(app, out[0]);
        for (uint32_t i = 0; i <= states; i++)
            near_array(app, c, "output", &c->parts[OUT][i], out[i], 1);
        for (uint32_t i = 0; i < count; i++)
            near_array(app, c, names[i], &c->parts[GRAD][i], tn_net_param_grad(net, names[i]), 1);
        app_close(app, c);
    }
}

static void test_recurrent(void **state)
{
    (void)state;
    each("recurrent", recurrent_replay);
}

/* ---- a cell with a projection -------------------------------------------------------------------- */

static void projected_net(const tn_x *in, tn_x *out)
{
    tn_x states[2] = {in[3], in[4]}, total = NULL;

    for (int i = 0; i < 3; i++) {
        const tn_x y = tn_lstm_cell(in[i], states, .name = "cell0", .units = 4, .projection = 3);

        total = total ? tn_add(total, y) : y;
    }
    out[0] = total;
    out[1] = states[0];
    out[2] = states[1];
}

static void projected_replay(const call *c, const char *name)
{
    static const char *const names[] = {"cell0.i2h.weight", "cell0.i2h.bias", "cell0.h2h.weight",
                                        "cell0.h2h.bias", "cell0.h2r.weight"};

    (void)name;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_functions(app, projected_net, .inputs = {"a", "b", "c", "s", "t"},
                                       .outputs = {"y", "h", "k"});
        tn_array *in[5], *out[3];

        for (uint32_t i = 0; i < 5; i++)
            in[i] = array_of(app, &c->parts[IN][i]);
        tn_net_init(net, .seed = 1);
        if (!tn_net_run(net, 5, in, 3, out))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        for (uint32_t i = 0; i < 5; i++)
            assert_int_equal(tn_array_copy(array_of(app, &c->parts[IN][5 + i]), tn_net_param(net, names[i])),
                             TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 5, in, 3, out);
        tn_app_backward(app, out[0]);
        for (uint32_t i = 0; i < 3; i++)
            near_array(app, c, "output", &c->parts[OUT][i], out[i], 1);
        for (uint32_t i = 0; i < 5; i++)
            near_array(app, c, names[i], &c->parts[GRAD][i], tn_net_param_grad(net, names[i]), 1);
        app_close(app, c);
    }
}

static void test_projected(void **state)
{
    (void)state;
    each("projected", projected_replay);
}

/* ---- cells over whole sequences ------------------------------------------------------------------ */

static tn_x lstm_step(tn_x x, tn_x *states, void *name)
{
    return tn_lstm_cell(x, states, .name = name, .units = 3);
}

static tn_x residual_step(tn_x x, tn_x *states, void *name)
{
    return tn_add(tn_gru_cell(x, states, .name = name, .units = 2), x);
}

static void unroll_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const tn_x lengths = text_of(c, "lengths") ? in[1] : NULL;
    const char *layout = text_of(c, "layout");
    static char left[] = "left", right[] = "right";
    tn_x states[4] = {NULL}, back;

    if (!strcmp(name_of(c, "unroll"), "residual")) {
        out[0] = tn_unroll(in[0], states, residual_step, .arg = left, .layout = layout, .lengths = lengths,
                           .states = 1);
        out[1] = out[2] = out[3] = out[4] = states[0];
        return;
    }
    out[0] =
        tn_unroll(in[0], states, lstm_step, .arg = left, .layout = layout, .lengths = lengths, .states = 2);
    back = tn_unroll(in[0], states + 2, lstm_step, .arg = right, .layout = layout, .lengths = lengths,
                     .states = 2, .reverse = 1);
    out[0] = tn_concat(2, out[0], back);
    memcpy(out + 1, states, sizeof states);
}

static void unroll_replay(const call *c, const char *name)
{
    static const char *const names[] = {"left.i2h.weight",  "left.i2h.bias",    "left.h2h.weight",
                                        "left.h2h.bias",    "right.i2h.weight", "right.i2h.bias",
                                        "right.h2h.weight", "right.h2h.bias"};
    const uint32_t params = *name == 'b' ? 8 : 4, first = c->counts[IN] - params;

    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_functions(app, unroll_net, .arg = (void *)(uintptr_t)c,
                                       .inputs = {"x", "lengths"}, .outputs = {"y", "a", "b", "c", "d"});
        tn_array *in[2], *out[5];

        for (uint32_t i = 0; i < 2; i++)
            in[i] = array_of(app, &c->parts[IN][i < first ? i : 0]);
        tn_net_init(net, .seed = 1);
        if (!tn_net_run(net, 2, in, 5, out))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        for (uint32_t i = 0; i < params; i++)
            assert_int_equal(
                tn_array_copy(array_of(app, &c->parts[IN][first + i]), tn_net_param(net, names[i])), TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 2, in, 5, out);
        tn_app_backward(app, out[0]);
        for (uint32_t i = 0; i < c->counts[OUT]; i++)
            near_array(app, c, "output", &c->parts[OUT][i], out[i], 1);
        for (uint32_t i = 0; i < params; i++)
            near_array(app, c, names[i], &c->parts[GRAD][i], tn_net_param_grad(net, names[i]), 1);
        app_close(app, c);
    }
}

static void test_unroll(void **state)
{
    (void)state;
    each("unroll", unroll_replay);
}

/* ---- CTC ------------------------------------------------------------------------------------------ */

/* x is the parameter "x.weight", whose rows are all steps. */
static void ctc_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const recorded *x = &c->parts[IN][0];
    const int timed = text_of(c, "data_lengths") != NULL, counted = text_of(c, "label_lengths") != NULL;
    tn_x scores;

    (void)tn_embedding(tn_reshape(in[0], -1), .count = x->shape[0] * x->shape[1], .units = x->shape[2],
                       .name = "x");
    scores = tn_reshape(tn_param(in[0], "x.weight"), x->shape[0], x->shape[1], x->shape[2]);
    out[0] = tn_loss(scores, in[1], "ctc", .weight = number_of(c, "weight"), .layout = text_of(c, "layout"),
                     .label_layout = text_of(c, "label_layout"), .data_lengths = timed ? in[2] : NULL,
                     .label_lengths = counted ? in[timed ? 3 : 2] : NULL);
}

static void ctc_replay(const call *c, const char *name)
{
    (void)name;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net =
            tn_net_functions(app, ctc_net, .arg = (void *)(uintptr_t)c, .inputs = {"x", "y", "t", "l"});
        const recorded *x = &c->parts[IN][0];
        const int64_t rows[] = {x->shape[0] * x->shape[1], x->shape[2]};
        tn_array *in[4], *out = NULL;
        float values[NUMBERS_MAX];

        for (uint32_t i = 0; i < 4; i++)
            in[i] = array_of(app, &c->parts[IN][i < c->counts[IN] ? i : 0]);
        for (size_t i = 0; i < x->count; i++)
            values[i] = (float)x->values[i];
        tn_net_init(net, .seed = 1);
        if (!tn_net_run(net, 4, in, 1, &out))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        assert_int_equal(tn_array_copy(tn_app_array(app, 2, rows, values), tn_net_param(net, "x.weight")),
                         TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 4, in, 1, &out);
        tn_app_backward(app, out);
        near_array(app, c, "loss", &c->parts[OUT][0], out, 1);
        near_array(app, c, "gradient", &c->parts[GRAD][0], tn_net_param_grad(net, "x.weight"), 1);
        app_close(app, c);
    }
}

static void test_ctc(void **state)
{
    (void)state;
    each("ctc", ctc_replay);
}

/* ---- gradients that no backward has reached ------------------------------------------------------------ */

static void two_layers(const tn_x *in, tn_x *out)
{
    for (int i = 0; i < 2; i++) {
        const tn_x y = tn_dense(in[0], .units = 3, .no_bias = 1, .name = i ? "b" : "a");

        out[i] = tn_mul(y, y);
    }
}

static void stale_replay(const call *c, const char *name)
{
    static const int masks[] = {3, 1, 2, 1, 3};
    tn_app *app = app_open();
    tn_net *net = tn_net_functions(app, two_layers, .outputs = {"a", "b"});
    tn_array *x = array_of(app, &c->parts[IN][2]), *out[2], *both = NULL;
    tn_trainer *t;

    tn_net_init(net, .shape = {2, 2});
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(
            tn_array_copy(array_of(app, &c->parts[IN][i]), tn_net_param(net, i ? "b.weight" : "a.weight")),
            TN_OK);
    t = tn_trainer_new(net, .optimizer = name, .lr = number_of(c, "lr"), .wd = number_of(c, "wd"),
                       .momentum = number_of(c, "momentum"), .ignore_stale_grad = 1);
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        tn_app_record(app);
        (void)tn_net_run(net, 1, &x, 2, out);
        if (masks[i] == 3)
            assert_int_equal(tn_invoke_text(tn_app_ctx(app),
                                            &(const tn_op_call){.struct_size = TN_SIZE(tn_op_call),
                                                                .op = "elemwise_add",
                                                                .in_count = 2,
                                                                .in = out},
                                            1, &both, NULL),
                             TN_OK);
        tn_app_backward(app, masks[i] == 3 ? both : out[masks[i] - 1]);
        tn_trainer_step(t, 2);
        tn_array_release(both);
        both = NULL;
    }
    for (uint32_t i = 0; i < 2; i++) { /* a step is a tenth, and the numbers are what is left of several */
        const recorded *want = &c->parts[OUT][i];
        float values[NUMBERS_MAX];
        double wide[NUMBERS_MAX];

        assert_true(tn_app_read(app, tn_net_param(net, i ? "b.weight" : "a.weight"), want->count, values));
        for (size_t k = 0; k < want->count; k++)
            wide[k] = (double)values[k];
        near(c, "weight", want, wide, want->count, 5e-5);
    }
    app_close(app, c);
}

static void test_stale(void **state)
{
    (void)state;
    each("stale", stale_replay);
}

/* ---- rotations of images ----------------------------------------------------------------------------- */

static void rotate_replay(const call *c, const char *name)
{
    tn_app *app = app_open();
    const tn_transform_step steps[] = {
        {.kind = "rotate", .angle = {number_of(c, "degrees")}, .zoom = (int32_t)number_of(c, "zoom")}, {0}};
    const tn_transform *t = tn_transform_new(app, steps);
    const recorded *want = &c->parts[OUT][0];
    double largest = 0;
    float values[NUMBERS_MAX];
    tn_array *y = NULL;

    (void)name;
    if (!t || tn_transform_apply(t, 1, 0, array_of(app, &c->parts[IN][0]), &y))
        fail_msg("%s: %s", c->text, t ? tn_error_text() : tn_app_error(app));
    assert_true(want->count <= NUMBERS_MAX && tn_app_read(app, y, want->count, values));
    for (size_t i = 0; i < c->parts[IN][0].count; i++)
        largest = fmax(largest, fabs(c->parts[IN][0].values[i]));
    for (size_t i = 0; i < want->count; i++) /* MXNet finds the places in float32 */
        if (!(fabs((double)values[i] - want->values[i]) <= 1e-5 * largest))
            fail_msg("%s: pixel %zu is %g, MXNet has %g", c->text, i, (double)values[i], want->values[i]);
    tn_array_release(y);
    app_close(app, c);
}

static void test_rotations(void **state)
{
    (void)state;
    each("rotate", rotate_replay);
}

/* ---- a net with a parameter and a constant of its own ------------------------------------------------ */

static tn_x own_function(tn_x x)
{
    static const float shift[] = {0.5f, -1, 2, 0.25f};
    const tn_x y = tn_dense(x, .units = 4, .name = "fc");
    const tn_x scale = tn_weight(x, "scale", .shape = {4}, .init = "constant", .scale = 1.5);

    return tn_add(tn_mul(y, scale), tn_weight(x, "shift", .shape = {1, 4}, .values = shift));
}

static void own_near(tn_app *app, const call *c, tn_net *net, const char *scale, const char *weight)
{
    tn_array *x = array_of(app, &c->parts[IN][0]), *head = array_of(app, &c->parts[IN][1]), *out;
    tn_array *both[] = {NULL, head}, *product = NULL;

    tn_app_record(app);
    both[0] = out = tn_net_forward(net, x);
    if (out)
        assert_int_equal(tn_invoke_text(tn_app_ctx(app),
                                        &(const tn_op_call){.struct_size = TN_SIZE(tn_op_call),
                                                            .op = "elemwise_mul",
                                                            .in_count = 2,
                                                            .in = both},
                                        1, &product, NULL),
                         TN_OK);
    tn_app_backward(app, product);
    near_array(app, c, "output", &c->parts[OUT][0], out, 1);
    near_array(app, c, "gradient", &c->parts[GRAD][0], tn_net_param_grad(net, scale), 1);
    near_array(app, c, "gradient", &c->parts[GRAD][1], tn_net_param_grad(net, weight), 1);
    tn_array_release(product);
}

/* The same function here, with what Gluon saved of it; the graph that Gluon exported, trained further. */
static void own_replay(const call *c, const char *name)
{
    static const float shift[] = {0.5f, -1, 2, 0.25f};
    float values[4];

    (void)name;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_function(app, own_function, .name = "own");

        tn_net_init(net, .shape = {3, 5});
        assert_true(tn_app_read(app, tn_net_param(net, "shift"), 4, values));
        assert_memory_equal(values, shift, sizeof shift);
        tn_net_load_params(net, path_of("own.params"));
        if (hybrid)
            tn_net_hybridize(net);
        own_near(app, c, net, "scale", "fc.weight");
        app_close(app, c);
    }
    {
        tn_app *app = app_open();
        tn_net *net = tn_net_from_symbol(app, path_of("own-symbol.json"));

        tn_net_init(net, .load = path_of("own-0000.params"), .shape = {3, 5});
        own_near(app, c, net, "own_scale", "own_dense0_weight");
        app_close(app, c);
    }
}

static void test_own(void **state)
{
    (void)state;
    each("own", own_replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recurrent), cmocka_unit_test(test_ctc),
                                       cmocka_unit_test(test_projected), cmocka_unit_test(test_unroll),
                                       cmocka_unit_test(test_own),       cmocka_unit_test(test_rotations),
                                       cmocka_unit_test(test_stale),     cmocka_unit_test(nn_all_replayed)};
    int failed;

    if (!recording_open(path_of("sequences.txt.gz"), &all))
        return 1;
    failed = cmocka_run_group_tests_name("mxnet.sequences", tests, NULL, NULL);
    recording_close(&all);
    return failed;
}

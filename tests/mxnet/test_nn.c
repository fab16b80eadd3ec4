/*
 * Losses, metrics, schedules, optimizers, initializers and layers of nn give what MXNet 1.9.1's Gluon gives:
 * tests/oracle/recorded/nn, which tests/oracle/nn.py wrote.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mxnet/nn_calls.h"

/* ---- losses -------------------------------------------------------------------------------------- */

static tn_x loss_of(const call *c, tn_x x, tn_x labels, tn_x third)
{
    const int weighted = text_of(c, "sample_weight") != NULL, positive = text_of(c, "pos_weight") != NULL;

    return tn_loss(x, labels, name_of(c, "loss"), .weight = number_of(c, "weight"),
                   .margin = number_of(c, "margin"), .rho = number_of(c, "rho"),
                   .transformed = text_of(c, "transformed") != NULL, .dense = text_of(c, "dense") != NULL,
                   .smoothing = number_of(c, "smoothing"), .binary = text_of(c, "binary") != NULL,
                   .full = text_of(c, "full") != NULL, .axis = (int32_t)number_of(c, "axis"),
                   .batch_axis = (int32_t)number_of(c, "batch_axis"),
                   .sample_weight = weighted ? third : NULL, .pos_weight = positive ? third : NULL,
                   .other = weighted || positive ? NULL : third);
}

/* cosine_embedding has its labels behind both inputs in MXNet. */
static const recorded *input_of(const call *c, uint32_t index)
{
    const uint32_t other = strcmp(c->op, "loss.cosine_embedding") ? index : index ? 3 - index : 0;

    return &c->parts[IN][other];
}

/* The input x, which is a parameter here, so that it has a gradient; the rest are inputs. */
static void loss_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    tn_weight_options o = {.struct_size = sizeof o};
    tn_x x, third;

    memcpy(o.shape, input_of(c, 0)->shape, (size_t)input_of(c, 0)->ndim * sizeof *o.shape);
    x = tn_weight_(in[0], "x", &o);
    third = c->counts[IN] > 2 ? in[2] : NULL;
    out[0] = loss_of(c, x, in[1], third);
}
static void loss_replay(const call *c, const char *name)
{
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_functions(app, loss_net, .arg = (void *)(uintptr_t)c, .inputs = {"x", "y", "z"});
        const recorded *x = input_of(c, 0);
        const int single = c->parts[OUT][0].count == 1; /* poisson_nll: the mean of all samples */
        tn_array *in[3], *out = NULL, *loss;

        (void)name;
        for (uint32_t i = 0; i < 3; i++)
            in[i] = array_of(app, input_of(c, i < c->counts[IN] ? i : 0));
        tn_net_init(net, .seed = 1);
        (void)tn_net_run(net, 3, in, 1, &out); /* makes the parameter */
        assert_true(tn_app_ok(app) || !fprintf(stderr, "%s: %s\n", c->text, tn_app_error(app)));
        assert_int_equal(tn_array_copy(in[0], tn_net_param(net, "x")), TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 3, in, 1, &out);
        loss = out;
        if (c->counts[GRAD])
            tn_app_backward(app, loss);
        else
            tn_app_pause(app);
        if (single)
            loss = NULL;
        if (loss)
            near_array(app, c, "loss", &c->parts[OUT][0], loss, 1);
        if (c->counts[GRAD])
            near_array(app, c, "gradient", &c->parts[GRAD][0], tn_net_param_grad(net, "x"),
                       single ? 1.0 / (double)x->shape[0] : 1);
        app_close(app, c);
    }
}

static void test_losses(void **state)
{
    (void)state;
    each("loss", loss_replay);
}

/* ---- schedules and optimizers -------------------------------------------------------------------- */

/* Options of a trainer by name: doubles, then integers. */
#define OPTION(name)                                                                                         \
    {                                                                                                        \
#name, offsetof(tn_trainer_options, name)                                                            \
    }

static const struct {
    const char *name;
    size_t at;
} doubles[] = {OPTION(lr),     OPTION(momentum),       OPTION(wd),           OPTION(beta1),
               OPTION(beta2),  OPTION(epsilon),        OPTION(clip),         OPTION(lr_begin),
               OPTION(lr_end), OPTION(power),          OPTION(factor),       OPTION(gamma1),
               OPTION(gamma2), OPTION(wd_lh),          OPTION(clip_weights), OPTION(rho),
               OPTION(lamda),  OPTION(schedule_decay), OPTION(lamda1),       OPTION(beta),
               OPTION(eta),    OPTION(lower_bound),    OPTION(upper_bound),  OPTION(rescale_grad)},
  whole[] = {OPTION(steps),         OPTION(warmup),        OPTION(every),           OPTION(batch_scale),
             OPTION(warmup_epochs), OPTION(epoch_updates), OPTION(begin_num_update)},
  flags[] = {OPTION(centered), OPTION(warmup_constant), OPTION(no_bias_correction)};

static tn_trainer_options options_of(const call *c)
{
    tn_trainer_options o = {.struct_size = sizeof o};
    char *at = (char *)&o;

    for (size_t i = 0; c->attrs[i]; i += 2) {
        const double value = strtod(c->attrs[i + 1], NULL);
        int found = 0;

        for (size_t k = 0; k < sizeof doubles / sizeof *doubles; k++)
            if (!strcmp(doubles[k].name, c->attrs[i]) && ++found)
                *(double *)(void *)(at + doubles[k].at) = value;
        for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
            if (!strcmp(whole[k].name, c->attrs[i]) && ++found)
                *(int64_t *)(void *)(at + whole[k].at) = (int64_t)value;
        for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
            if (!strcmp(flags[k].name, c->attrs[i]) && ++found)
                *(int32_t *)(void *)(at + flags[k].at) = (int32_t)value;
        if (!strcmp(c->attrs[i], "strategy") && ++found)
            o.strategy = c->attrs[i + 1];
        if (!strcmp(c->attrs[i], "milestones") && ++found)
            assert_int_equal(sscanf(c->attrs[i + 1], "%ld,%ld,%ld", &o.milestones[0],
                                    &o.milestones[1], /* NOLINT */
                                    &o.milestones[2]),
                             3);
        if (found != 1)
            fail_msg("%s: option %s is not known", c->text, c->attrs[i]);
    }
    return o;
}

static void schedule_replay(const call *c, const char *name)
{
    tn_trainer_options o = options_of(c);
    double rates[NUMBERS_MAX];

    o.schedule = name;
    for (size_t t = 0; t < c->parts[OUT][0].count; t++)
        rates[t] = tn_schedule_lr(&o, (int64_t)t);
    near(c, "rate", &c->parts[OUT][0], rates, c->parts[OUT][0].count, 1e-12);
}

/* `half`: of float16, updated in float32; float16 has 10 bits, and a step ends with a rounding to them. */
static void steps_replay(const call *c, const char *name, int half)
{
    tn_app *app = app_open();
    tn_net *net = tn_net_new(app);
    const recorded *first = &c->parts[IN][0];
    tn_trainer_options o = options_of(c);
    tn_array *weight, *grad;
    tn_trainer *t;

    o.optimizer = name;
    o.multi_precision = half;
    tn_net_dense(net, .units = first->shape[0], .no_bias = 1);
    tn_net_init(net, .seed = 1, .shape = {1, first->shape[1]});
    if (half)
        tn_net_cast(net, "float16");
    t = tn_trainer_new_(net, &o);
    weight = tn_net_param(net, "0.weight");
    grad = tn_net_param_grad(net, "0.weight");
    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_int_equal(tn_array_copy(array_of(app, first), weight), TN_OK);
    for (uint32_t step = 0; step < c->counts[OUT]; step++) {
        const recorded *want = &c->parts[OUT][step];
        float values[NUMBERS_MAX];
        double wide[NUMBERS_MAX];
        char what[32];

        assert_int_equal(tn_array_copy(array_of(app, &c->parts[IN][1 + step]), grad), TN_OK);
        tn_trainer_step(t, 2);
        (void)snprintf(what, sizeof what, "weight of step %u,", step);
        if (!half) {
            near_array(app, c, what, want, weight, 1);
            continue;
        }
        assert_int_equal(tn_array_dtype(weight), TN_F16);
        if (!tn_app_read(app, weight, want->count, values))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        for (size_t i = 0; i < want->count; i++)
            wide[i] = (double)values[i];
        near(c, what, want, wide, want->count, 1e-3);
    }
    app_close(app, c);
}

static void optimizer_replay(const call *c, const char *name)
{
    steps_replay(c, name, 0);
}

static void half_replay(const call *c, const char *name)
{
    steps_replay(c, name, 1);
}

/* Rows that no sample looks up stay as they are, with momentum and weight decay, too. */
static void lazy_replay(const call *c, const char *name)
{
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net = tn_net_new(app);
        tn_trainer_options o = options_of(c);
        tn_array *weight;
        tn_trainer *t;

        o.optimizer = name;
        tn_net_embedding(net, .count = 5, .units = 3, .sparse_grad = 1);
        tn_net_init(net, .seed = 1, .shape = {4});
        if (hybrid)
            tn_net_hybridize(net);
        t = tn_trainer_new_(net, &o);
        weight = tn_net_param(net, "0.weight");
        if (!tn_app_ok(app))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        assert_int_equal(tn_array_copy(array_of(app, &c->parts[IN][0]), weight), TN_OK);
        for (uint32_t step = 0; step < c->counts[OUT]; step++) {
            tn_array *ids = array_of(app, &c->parts[IN][1 + 2 * step]);
            tn_array *labels = array_of(app, &c->parts[IN][2 + 2 * step]);
            char what[32];

            tn_app_record(app);
            tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, ids), labels));
            tn_trainer_step(t, 4);
            assert_int_equal(tn_array_storage(tn_array_grad(weight)), TN_STORAGE_ROW_SPARSE);
            (void)snprintf(what, sizeof what, "weight of step %u,", step);
            near_array(app, c, what, &c->parts[OUT][step], weight, 1);
        }
        app_close(app, c);
    }
}

static void test_lazy(void **state)
{
    (void)state;
    each("lazy", lazy_replay);
}

static void test_schedules(void **state)
{
    (void)state;
    each("schedule", schedule_replay);
}

static void test_optimizers(void **state)
{
    (void)state;
    each("optimizer", optimizer_replay);
    each("half", half_replay);
}

/* ---- metrics and initializers -------------------------------------------------------------------- */

static void metric_replay(const call *c, const char *name)
{
    tn_app *app = app_open();
    tn_meter *m =
        tn_meter_open(app, name, .k = (int32_t)number_of(c, "k"), .micro = (int32_t)number_of(c, "micro"),
                      .axis = (int32_t)number_of(c, "axis"), .eps = number_of(c, "eps"),
                      .ignores = text_of(c, "ignore") != NULL, .ignore = (int64_t)number_of(c, "ignore"));
    double value;

    for (int again = 0; again < 2; again++) {
        tn_meter_reset(m);
        for (uint32_t i = 0; i < c->counts[IN]; i += 2)
            tn_meter_add(m, array_of(app, &c->parts[IN][i]), array_of(app, &c->parts[IN][i + 1]));
        value = tn_meter_value(m);
        near(c, "value", &c->parts[OUT][0], &value, 1, 1e-5);
    }
    app_close(app, c);
}

/* The initialiser of the net, by which an RNN's own may go: patterns of gates, or one number. */
static void bias_init(const call *c, tn_net *net)
{
    const tn_init_options two = {.with = "constant", .scale = 2}, three = {.with = "constant", .scale = 3};
    const tn_init_row rows[] = {{"l0_i2h_f", two}, {"r1_h2h.*weight", {.with = "one"}}, {".*", three}, {0}};

    tn_net_init(net, .with = "constant", .scale = 0.25, .mixed = text_of(c, "mixed") ? rows : NULL,
                .shape = {1, 2});
}

/* The parameter of the recorded shape: a weight of a convolution, or a bias. */
static void init_replay(const call *c, const char *name)
{
    const recorded *want = &c->parts[OUT][0];
    const int conv = want->ndim == 4;
    tn_app *app = app_open();
    tn_net *net = tn_net_new(app);

    if (conv)
        tn_net_conv2d(net, .channels = want->shape[0], .input = want->shape[1],
                      .kernel = {(int32_t)want->shape[2], (int32_t)want->shape[3]});
    else
        tn_net_dense(net, .units = want->shape[0]);
    if (conv)
        tn_net_init(net, .seed = 1, .shape = {1, want->shape[1], 8, 8});
    else
        bias_init(c, net);
    tn_net_init_where(
        net, conv ? ".weight" : ".bias", .with = name, .scale = number_of(c, "scale"),
        .weights = text_of(c, "weights"), .mode = text_of(c, "mode"), .units = (int64_t)number_of(c, "units"),
        .layers = (int32_t)number_of(c, "layers"), .bidirectional = (int32_t)number_of(c, "bidirectional"),
        .forget_bias = number_of(c, "forget"), .no_forget_bias = (int32_t)number_of(c, "no_forget"));
    near_array(app, c, "value", want, tn_net_param(net, conv ? "0.weight" : "0.bias"), 1);
    app_close(app, c);
}

/* Initializers by name, in the order of the rows; values by name out of a file. */
static void chosen_replay(const call *c, const char *name)
{
    static const char *const params[] = {"0.weight", "0.bias", "1.weight", "1.bias"};
    const tn_init_row rows[][3] = {
        {{"0", {.with = "constant", .scale = 2}}, {".*", {.with = "constant", .scale = 3}}},
        {{".*", {.with = "one"}}, {"0", {.with = "constant", .scale = 3}}}};
    char folder[] = "/tmp/tenon-chosen-XXXXXX", path[64];
    tn_app *app = app_open();
    tn_net *net = tn_net_new(app);
    const bool load = !strcmp(name, "load");
    tn_params *p = NULL;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/values.params", folder);
    tn_net_dense(net, .units = 2, .input = 3);
    tn_net_dense(net, .units = 1, .input = 2);
    if (load) {
        assert_int_equal(tn_params_create(&p), TN_OK);
        assert_int_equal(tn_params_add(p, "arg:0.weight", array_of(app, &c->parts[IN][0])), TN_OK);
        assert_int_equal(tn_params_save(p, path), TN_OK);
        tn_params_destroy(p);
        tn_net_init(net, .with = "constant", .scale = 4, .load = path, .shape = {1, 3});
        assert_int_equal(unlink(path), 0);
    } else {
        tn_net_init(net, .mixed = rows[!strcmp(name, "mixed_order")], .shape = {1, 3});
    }
    for (uint32_t i = 0; i < 4; i++)
        near_array(app, c, params[i], &c->parts[OUT][i], tn_net_param(net, params[i]), 1);
    assert_int_equal(rmdir(folder), 0);
    app_close(app, c);
}

static void test_metrics(void **state)
{
    (void)state;
    each("metric", metric_replay);
}

static void test_initializers(void **state)
{
    (void)state;
    each("init", init_replay);
    each("chosen", chosen_replay);
}

/* ---- layers -------------------------------------------------------------------------------------- */

/* "3,2" to three numbers. */
static void sides_of(const call *c, const char *name, int32_t out[3])
{
    const char *at = text_of(c, name);

    memset(out, 0, 3 * sizeof *out);
    for (int i = 0; at && i < 3; i++) {
        out[i] = (int32_t)strtol(at, NULL, 10);
        at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
    }
}

static int32_t whole_of(const call *c, const char *name)
{
    return (int32_t)number_of(c, name);
}

static tn_x transpose_of(const call *c, tn_x x, const tn_conv_options *as)
{
    tn_convtranspose_options o = {.struct_size = sizeof o,
                                  .channels = as->channels,
                                  .groups = as->groups,
                                  .no_bias = as->no_bias,
                                  .activation = as->activation};

    memcpy(o.kernel, as->kernel, sizeof o.kernel);
    memcpy(o.stride, as->stride, sizeof o.stride);
    memcpy(o.pad, as->pad, sizeof o.pad);
    memcpy(o.dilate, as->dilate, sizeof o.dilate);
    sides_of(c, "adjust", o.adjust);
    return tn_ndim(x) == 3   ? tn_conv1dtranspose_(x, &o)
           : tn_ndim(x) == 4 ? tn_conv2dtranspose_(x, &o)
                             : tn_conv3dtranspose_(x, &o);
}

static tn_x conv_of(const call *c, tn_x x)
{
    tn_conv_options o = {.struct_size = sizeof o,
                         .channels = whole_of(c, "channels"),
                         .groups = whole_of(c, "groups"),
                         .no_bias = whole_of(c, "no_bias"),
                         .activation = text_of(c, "activation")};
    tn_conv2d_options two = {.struct_size = sizeof two,
                             .channels = o.channels,
                             .groups = o.groups,
                             .no_bias = o.no_bias,
                             .activation = o.activation};

    sides_of(c, "kernel", o.kernel);
    sides_of(c, "stride", o.stride);
    sides_of(c, "pad", o.pad);
    sides_of(c, "dilate", o.dilate);
    if (strstr(c->op, "transpose"))
        return transpose_of(c, x, &o);
    memcpy(two.kernel, o.kernel, sizeof two.kernel);
    memcpy(two.stride, o.stride, sizeof two.stride);
    memcpy(two.pad, o.pad, sizeof two.pad);
    memcpy(two.dilate, o.dilate, sizeof two.dilate);
    return tn_ndim(x) == 3 ? tn_conv1d_(x, &o) : tn_ndim(x) == 4 ? tn_conv2d_(x, &two) : tn_conv3d_(x, &o);
}

static tn_x pool_of(const call *c, tn_x x, int max)
{
    tn_pool_options o = {
        .struct_size = sizeof o, .ceil = whole_of(c, "ceil"), .exclude_pad = whole_of(c, "exclude_pad")};
    tn_pool2d_options two = {.struct_size = sizeof two, .ceil = o.ceil, .exclude_pad = o.exclude_pad};

    sides_of(c, "kernel", o.kernel);
    sides_of(c, "stride", o.stride);
    sides_of(c, "pad", o.pad);
    memcpy(two.kernel, o.kernel, sizeof two.kernel);
    memcpy(two.stride, o.stride, sizeof two.stride);
    memcpy(two.pad, o.pad, sizeof two.pad);
    if (tn_ndim(x) == 4)
        return max ? tn_maxpool2d_(x, &two) : tn_avgpool2d_(x, &two);
    if (tn_ndim(x) == 3)
        return max ? tn_maxpool1d_(x, &o) : tn_avgpool1d_(x, &o);
    return max ? tn_maxpool3d_(x, &o) : tn_avgpool3d_(x, &o);
}

static tn_x norm_of(const call *c, const char *name, tn_x x)
{
    const double epsilon = number_of(c, "epsilon");

    const int32_t no_center = whole_of(c, "no_center"), no_scale = whole_of(c, "no_scale");

    if (!strcmp(name, "batchnormrelu"))
        return tn_batchnormrelu(x, .epsilon = epsilon, .no_center = no_center);
    if (!strcmp(name, "instancenorm"))
        return tn_instancenorm(x, .epsilon = epsilon, .scale = whole_of(c, "scale"), .no_center = no_center);
    if (!strcmp(name, "groupnorm"))
        return tn_groupnorm(x, .epsilon = epsilon, .groups = whole_of(c, "groups"), .no_scale = no_scale);
    return tn_layernorm(x, .epsilon = epsilon, .axis = whole_of(c, "axis"), .no_center = no_center);
}

static tn_x deformable_of(const call *c, const char *name, tn_x x)
{
    tn_deformable_options o = {.struct_size = sizeof o,
                               .channels = whole_of(c, "channels"),
                               .groups = whole_of(c, "groups"),
                               .parts = whole_of(c, "parts"),
                               .no_bias = whole_of(c, "no_bias"),
                               .offset_no_bias = whole_of(c, "offset_no_bias"),
                               .activation = text_of(c, "activation")};
    const struct {
        const char *name;
        int32_t *at;
    } sides[] = {{"kernel", o.kernel}, {"stride", o.stride}, {"pad", o.pad}, {"dilate", o.dilate}};

    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        int32_t found[3];

        sides_of(c, sides[i].name, found);
        memcpy(sides[i].at, found, 2 * sizeof *found);
    }
    return *name == 'm' ? tn_modulateddeformableconv2d_(x, &o) : tn_deformableconv2d_(x, &o);
}

static tn_x activation_of(const call *c, const char *name, tn_x x)
{
    if (!strcmp(name, "prelu"))
        return tn_prelu(x, .channels = whole_of(c, "channels"));
    if (!strcmp(name, "elu"))
        return tn_elu(x, .alpha = number_of(c, "alpha"));
    if (!strcmp(name, "reflectionpad2d"))
        return tn_reflectionpad2d(x, .pad = (int32_t)whole_of(c, "pad"));
    if (!strcmp(name, "leakyrelu"))
        return tn_leakyrelu(x, .slope = number_of(c, "slope"));
    if (!strcmp(name, "swish"))
        return tn_swish(x, text_of(c, "beta") ? number_of(c, "beta") : 1);
    return tn_activation(x, .activation = text_of(c, "activation"));
}

static tn_x layer_of(const call *c, const char *name, tn_x x)
{
    static const struct {
        const char *name;
        tn_x (*run)(tn_x x, const tn_net_options *o);
    } plain[] = {
        {"globalmaxpool1d", tn_globalmaxpool1d_},
        {"globalmaxpool2d", tn_globalmaxpool2d_},
        {"globalmaxpool3d", tn_globalmaxpool3d_},
        {"globalavgpool1d", tn_globalavgpool1d_},
        {"globalavgpool2d", tn_globalavgpool2d_},
        {"globalavgpool3d", tn_globalavgpool3d_},
        {"selu", tn_selu_},
        {"gelu", tn_gelu_},
    };

    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(name, plain[i].name))
            return plain[i].run(x, NULL);
    if (!strncmp(name, "conv", 4))
        return conv_of(c, x);
    if (!strncmp(name + 3, "pool", 4))
        return pool_of(c, x, *name == 'm');
    if (strstr(name, "norm"))
        return norm_of(c, name, x);
    if (strstr(name, "deformable"))
        return deformable_of(c, name, x);
    if (!strcmp(name, "pixelshuffle")) {
        tn_pixelshuffle_options o = {.struct_size = sizeof o};

        assert_int_equal(sscanf(text_of(c, "factor"), "%d,%d,%d", &o.factor[0], &o.factor[1], /* NOLINT */
                                &o.factor[2]),
                         3);
        return tn_pixelshuffle_(x, &o);
    }
    if (!strcmp(name, "dense"))
        return tn_dense(x, .units = whole_of(c, "units"), .activation = text_of(c, "activation"),
                        .no_bias = whole_of(c, "no_bias"), .keep_axes = whole_of(c, "keep_axes"));
    return activation_of(c, name, x);
}

/* The input is a parameter, so that it has a gradient; the head multiplies the output. */
static void layer_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const recorded *x = &c->parts[IN][0];
    tn_x y;

    (void)tn_embedding(tn_reshape(in[0], -1), .count = x->shape[0], .units = (int64_t)x->count / x->shape[0],
                       .name = "x");
    y = tn_param(in[0], "x.weight");
    y = tn_reshape_(y, (size_t)x->ndim, x->shape, __FILE__, __LINE__);
    out[0] = layer_of(c, name_of(c, "layer"), y);
    out[1] = tn_mul(out[0], in[1]);
}

/* Parameters of the layer by number: those that are trained first, as they are recorded. */
static const char *param_at(tn_net *net, uint32_t number)
{
    for (int fixed = 0; fixed < 2; fixed++)
        for (size_t i = 1; i < tn_net_param_count(net); i++) {
            const char *name = tn_net_param_name(net, i);

            if ((tn_net_param_grad(net, name) == NULL) == fixed && !number--)
                return name;
        }
    fail_msg("a parameter is missing");
    return NULL;
}

static tn_net *layer_ready(tn_app *app, const call *c, tn_array *const *in)
{
    tn_net *net = tn_net_functions(app, layer_net, .arg = (void *)(uintptr_t)c, .inputs = {"x", "head"},
                                   .outputs = {"y", "scaled"});
    const recorded *x = &c->parts[IN][0];
    const int64_t rows[2] = {x->shape[0], (int64_t)x->count / x->shape[0]};
    tn_array *out[2], *flat = NULL;

    tn_net_init(net, .seed = 1);
    if (!tn_net_run(net, 2, in, 2, out))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_int_equal(tn_net_param_count(net), c->counts[IN] - 1);
    assert_int_equal(tn_array_reshape(in[0], 2, rows, &flat), TN_OK);
    assert_int_equal(tn_array_copy(flat, tn_net_param(net, "x.weight")), TN_OK);
    tn_array_release(flat);
    for (uint32_t i = 1; i + 1 < c->counts[IN]; i++)
        assert_int_equal(
            tn_array_copy(array_of(app, &c->parts[IN][i]), tn_net_param(net, param_at(net, i - 1))), TN_OK);
    return net;
}

static void layer_replay(const call *c, const char *name)
{
    (void)name;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_array *in[2] = {array_of(app, &c->parts[IN][0]), array_of(app, &c->parts[IN][c->counts[IN] - 1])};
        tn_net *net = layer_ready(app, c, in);
        tn_array *out[2];

        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 2, in, 2, out);
        tn_app_backward(app, out[1]);
        near_array(app, c, "output", &c->parts[OUT][0], out[0], 1);
        for (uint32_t i = 0; i < c->counts[GRAD]; i++) {
            const char *of = i ? param_at(net, i - 1) : "x.weight";
            char what[160];

            (void)snprintf(what, sizeof what, "gradient of %s,", of);
            near_array(app, c, what, &c->parts[GRAD][i], tn_net_param_grad(net, of), 1);
        }
        app_close(app, c);
    }
}

static void test_layers(void **state)
{
    (void)state;
    each("layer", layer_replay);
}

/* ---- cells --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    tn_x (*run)(tn_x x, tn_x *states, const tn_cell_options *o);
    uint32_t states;
} cells[] = {{"rnn", tn_rnn_cell_, 1}, {"lstm", tn_lstm_cell_, 2}, {"gru", tn_gru_cell_, 1}};

static size_t cell_of(const call *c)
{
    size_t i = 0;

    while (strcmp(cells[i].name, name_of(c, "cell")))
        i++;
    return i;
}

/* Three steps from the given states: the outputs, the last states, and the sum of the outputs. */
static void cell_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const size_t of = cell_of(c);
    const int32_t kernel = (int32_t)number_of(c, "kernel"), pad = (int32_t)number_of(c, "pad"),
                  of_state = (int32_t)number_of(c, "state_kernel"), dilate = whole_of(c, "dilate"),
                  state_dilate = whole_of(c, "state_dilate");
    const tn_cell_options o = {.struct_size = sizeof o,
                               .name = "cell0",
                               .units = 4,
                               .activation = text_of(c, "activation"),
                               .recurrent_activation = text_of(c, "recurrent"),
                               .kernel = {kernel, kernel, kernel},
                               .pad = {pad, pad, pad},
                               .state_kernel = {of_state, of_state, of_state},
                               .dilate = {dilate},
                               .state_dilate = {state_dilate}};
    tn_x states[2] = {in[3], in[4]};

    for (int i = 0; i < 3; i++)
        out[i] = cells[of].run(in[i], states, &o);
    out[3] = states[0];
    out[4] = cells[of].states > 1 ? states[1] : states[0];
    out[5] = tn_add(out[0], out[1]);
    out[5] = tn_add(out[5], out[2]);
}

static void cell_replay(const call *c, const char *name)
{
    static const char *const names[] = {"cell0.i2h.weight", "cell0.i2h.bias", "cell0.h2h.weight",
                                        "cell0.h2h.bias"};
    const uint32_t states = cells[cell_of(c)].states;

    (void)name;
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        tn_app *app = app_open();
        tn_net *net =
            tn_net_functions(app, cell_net, .arg = (void *)(uintptr_t)c, .inputs = {"a", "b", "c", "s", "t"},
                             .outputs = {"o0", "o1", "o2", "h", "k", "all"});
        tn_array *in[5], *out[6];

        for (uint32_t i = 0; i < 5; i++)
            in[i] = array_of(app, &c->parts[IN][i < 3 + states ? i : 3]);
        tn_net_init(net, .seed = 1);
        if (!tn_net_run(net, 5, in, 6, out))
            fail_msg("%s: %s", c->text, tn_app_error(app));
        assert_int_equal(tn_net_param_count(net), 4);
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(
                tn_array_copy(array_of(app, &c->parts[IN][3 + states + i]), tn_net_param(net, names[i])),
                TN_OK);
        if (hybrid)
            tn_net_hybridize(net);
        tn_app_record(app);
        (void)tn_net_run(net, 5, in, 6, out);
        tn_app_backward(app, out[5]);
        for (uint32_t i = 0; i < 3 + states; i++)
            near_array(app, c, "output", &c->parts[OUT][i], out[i], 1);
        for (uint32_t i = 0; i < 4; i++)
            near_array(app, c, names[i], &c->parts[GRAD][i], tn_net_param_grad(net, names[i]), 1);
        app_close(app, c);
    }
}

static void test_cells(void **state)
{
    (void)state;
    each("cell", cell_replay);
}

/* ---- a model of two inputs and two outputs ------------------------------------------------------- */

static void pair_run(tn_app *app, tn_net *net, const call *c)
{
    tn_array *in[2] = {array_of(app, &c->parts[IN][0]), array_of(app, &c->parts[IN][1])}, *out[2];

    assert_int_equal(tn_net_input_count(net), 2);
    assert_int_equal(tn_net_output_count(net), 2);
    assert_string_equal(tn_net_input_at(net, 0), "data0");
    assert_string_equal(tn_net_input_at(net, 1), "data1");
    assert_null(tn_net_input_at(net, 2));
    if (!tn_net_run(net, 2, in, 2, out))
        fail_msg("%s", tn_app_error(app));
    near_array(app, c, "output", &c->parts[OUT][0], out[0], 1);
    near_array(app, c, "output", &c->parts[OUT][1], out[1], 1);
}

/* MXNet's files; then what we export of them. */
static void pair_replay(const call *c, const char *name)
{
    char folder[] = "/tmp/tenon-pair-XXXXXX", prefix[128], json[160], params[160];
    tn_app *app = app_open();
    tn_net *net = tn_net_load(app, path_of("pair"));
    char a[65], b[65];

    (void)name;
    pair_run(app, net, c);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(prefix, sizeof prefix, "%s/p", folder);
    tn_net_export(net, prefix);
    assert_true(tn_net_sha256(net, a));
    net = tn_net_load(app, prefix);
    pair_run(app, net, c);
    assert_true(tn_net_sha256(net, b));
    assert_string_equal(a, b);
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    (void)snprintf(params, sizeof params, "%s-0000.params", prefix);
    net = tn_net_load_files(app, json, params, "data1,data0"); /* in an order of our own */
    assert_string_equal(tn_net_input_at(net, 0), "data1");
    assert_null(tn_net_forward(net, array_of(app, &c->parts[IN][0])));
    assert_non_null(strstr(tn_app_error(app), "tn_net_run() takes them, the first is data1"));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, "data0")); /* who has data1? */
    assert_non_null(strstr(tn_app_error(app), "has no array for \"data1\""));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, "data0,data0"));
    assert_non_null(strstr(tn_app_error(app), "named twice"));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, "data0,,data1"));
    assert_non_null(strstr(tn_app_error(app), "no free input \"\""));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, ""));
    tn_app_clear(app);
    (void)remove(json);
    (void)remove(params);
    (void)remove(folder);
    app_close(app, c);
}

static void test_pair(void **state)
{
    (void)state;
    each("net", pair_replay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair),         cmocka_unit_test(test_losses), cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_optimizers),   cmocka_unit_test(test_lazy),   cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_initializers), cmocka_unit_test(test_layers), cmocka_unit_test(test_cells),
        cmocka_unit_test(nn_all_replayed),
    };
    int failed;

    if (!recording_open(path_of("calls.txt.gz"), &all))
        return 1;
    failed = cmocka_run_group_tests_name("mxnet.nn", tests, NULL, NULL);
    recording_close(&all);
    return failed;
}

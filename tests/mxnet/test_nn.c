/*
 * Losses, metrics, schedules, optimizers, initializers and layers of nn give what MXNet 1.9.1's Gluon gives:
 * tests/oracle/recorded/nn, which tests/oracle/nn.py wrote. Every call of the recording is replayed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mxnet/recording.h"
#include "tenon/nn.h"

#define NUMBERS_MAX 1024

static recording all;
static size_t replayed;

/* ---- what a call says ---------------------------------------------------------------------------- */

static tn_app *app_open(void)
{
    static char plugins[4096];
    const char *settings[] = {plugins, NULL}, *path = getenv("TENON_TEST_PLUGINS");

    assert_non_null(path);
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", path);
    return tn_app_open(.name = "test", .settings = settings, .no_environment = 1);
}

static void app_close(tn_app *app, const call *c)
{
    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_int_equal(tn_app_close(app), 0);
}

static const char *text_of(const call *c, const char *name)
{
    for (size_t i = 0; c->attrs[i]; i += 2)
        if (!strcmp(c->attrs[i], name))
            return c->attrs[i + 1];
    return NULL;
}

static double number_of(const call *c, const char *name)
{
    const char *text = text_of(c, name);

    return text ? strtod(text, NULL) : 0;
}

/* "loss.huber" to "huber"; NULL: of another kind. */
static const char *name_of(const call *c, const char *kind)
{
    const size_t length = strlen(kind);

    return !strncmp(c->op, kind, length) && c->op[length] == '.' ? c->op + length + 1 : NULL;
}

static tn_array *array_of(tn_app *app, const recorded *r)
{
    float values[NUMBERS_MAX];

    assert_true(r->count <= NUMBERS_MAX);
    for (size_t i = 0; i < r->count; i++)
        values[i] = (float)r->values[i];
    return tn_app_array(app, r->ndim, r->shape, values);
}

static void near(const call *c, const char *what, const recorded *want, const double *have, size_t count,
                 double relative)
{
    double largest = 0;

    if (count != want->count)
        fail_msg("%s: %zu numbers of %s, MXNet has %zu", c->text, count, what, want->count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want->values[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs(have[i] - want->values[i]) <= relative * fabs(want->values[i]) + relative / 10 * largest))
            fail_msg("%s: %s %zu is %.9g, MXNet has %.9g", c->text, what, i, have[i], want->values[i]);
}

static void near_array(tn_app *app, const call *c, const char *what, const recorded *want, tn_array *have,
                       double times)
{
    float values[NUMBERS_MAX];
    double wide[NUMBERS_MAX];
    const size_t count = have ? tn_array_count(have) : 0;

    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_true(count <= NUMBERS_MAX && tn_app_read(app, have, count, values));
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i] * times;
    near(c, what, want, wide, count, 1e-5);
}

/* Runs `replay` for each call of a kind. */
static void each(const char *kind, void (*replay)(const call *c, const char *name))
{
    size_t count = 0;

    for (size_t i = 0; i < all.count; i++) {
        const char *name = name_of(&all.calls[i], kind);

        if (name) {
            replay(&all.calls[i], name);
            count++;
        }
    }
    assert_true(count);
    replayed += count;
}

/* ---- losses -------------------------------------------------------------------------------------- */

/* The input x, which is a parameter here, so that it has a gradient; the rest are inputs. */
static void loss_function(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const tn_x x = tn_param(in[0], "x.weight");
    const tn_x third = c->counts[IN] > 2 ? in[2] : NULL;
    const int weighted = text_of(c, "sample_weight") != NULL, positive = text_of(c, "pos_weight") != NULL;

    out[0] = tn_loss(x, in[1], name_of(c, "loss"), .weight = number_of(c, "weight"),
                     .margin = number_of(c, "margin"), .rho = number_of(c, "rho"),
                     .transformed = text_of(c, "transformed") != NULL, .dense = text_of(c, "dense") != NULL,
                     .binary = text_of(c, "binary") != NULL, .full = text_of(c, "full") != NULL,
                     .sample_weight = weighted ? third : NULL, .pos_weight = positive ? third : NULL,
                     .other = weighted || positive ? NULL : third);
}

/* cosine_embedding has its labels behind both inputs in MXNet. */
static const recorded *input_of(const call *c, uint32_t index)
{
    const uint32_t other = strcmp(c->op, "loss.cosine_embedding") ? index : index ? 3 - index : 0;

    return &c->parts[IN][other];
}

static void loss_net(const tn_x *in, tn_x *out)
{
    const call *c = tn_arg(in[0]);
    const recorded *x = input_of(c, 0);

    (void)tn_embedding(tn_reshape(in[0], -1), .count = x->shape[0], .units = x->shape[1], .name = "x");
    loss_function(in, out);
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
        assert_int_equal(tn_array_copy(in[0], tn_net_param(net, "x.weight")), TN_OK);
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
            near_array(app, c, "gradient", &c->parts[GRAD][0], tn_net_param_grad(net, "x.weight"),
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
#define OPTION(name) {#name, offsetof(tn_trainer_options, name)}

static const struct {
    const char *name;
    size_t at;
} doubles[] = {OPTION(lr),     OPTION(momentum), OPTION(wd),           OPTION(beta1), OPTION(beta2),  OPTION(epsilon),
               OPTION(clip),   OPTION(lr_begin), OPTION(lr_end),       OPTION(power), OPTION(factor), OPTION(gamma1),
               OPTION(gamma2), OPTION(wd_lh),    OPTION(clip_weights), OPTION(rho),   OPTION(lamda),  OPTION(schedule_decay)},
  whole[] = {OPTION(steps), OPTION(warmup), OPTION(every)}, flags[] = {OPTION(centered), OPTION(warmup_constant)};

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
        if (!strcmp(c->attrs[i], "milestones") && ++found)
            assert_int_equal(sscanf(c->attrs[i + 1], "%ld,%ld,%ld", &o.milestones[0], &o.milestones[1], /* NOLINT */
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

static void optimizer_replay(const call *c, const char *name)
{
    tn_app *app = app_open();
    tn_net *net = tn_net_new(app);
    const recorded *first = &c->parts[IN][0];
    tn_trainer_options o = options_of(c);
    tn_array *weight, *grad;
    tn_trainer *t;

    o.optimizer = name;
    tn_net_dense(net, .units = first->shape[0], .no_bias = 1);
    tn_net_init(net, .seed = 1, .shape = {1, first->shape[1]});
    t = tn_trainer_new_(net, &o);
    weight = tn_net_param(net, "0.weight");
    grad = tn_net_param_grad(net, "0.weight");
    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_int_equal(tn_array_copy(array_of(app, first), weight), TN_OK);
    for (uint32_t step = 0; step < c->counts[OUT]; step++) {
        char what[32];

        assert_int_equal(tn_array_copy(array_of(app, &c->parts[IN][1 + step]), grad), TN_OK);
        tn_trainer_step(t, 2);
        (void)snprintf(what, sizeof what, "weight of step %u,", step);
        near_array(app, c, what, &c->parts[OUT][step], weight, 1);
    }
    app_close(app, c);
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
}

/* ---- metrics and initializers -------------------------------------------------------------------- */

static void metric_replay(const call *c, const char *name)
{
    tn_app *app = app_open();
    tn_meter *m = tn_meter_open(app, name, .k = (int32_t)number_of(c, "k"), .macro = (int32_t)number_of(c, "macro"),
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

/* The parameter of the recorded shape is the weight of an embedding, seen as what it is. */
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
    tn_net_init(net, .seed = 1, .shape = {1, conv ? want->shape[1] : 2, conv ? 8 : 0, conv ? 8 : 0});
    tn_net_init_where(net, conv ? ".weight" : ".bias", .with = name, .scale = number_of(c, "scale"));
    near_array(app, c, "value", want, tn_net_param(net, conv ? "0.weight" : "0.bias"), 1);
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
}

/* ---- a model of two inputs and two outputs ------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[4096];

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/nn/%s", getenv("TENON_TEST_SOURCE"), name);
    return path;
}

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
    assert_non_null(strstr(tn_app_error(app), "2 inputs, the first is data1"));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, "data0")); /* who has data1? */
    assert_non_null(strstr(tn_app_error(app), "has no array for \"data1\""));
    tn_app_clear(app);
    assert_null(tn_net_load_files(app, json, params, "data0,data0"));
    assert_non_null(strstr(tn_app_error(app), "asked for twice"));
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

static void test_all_replayed(void **state)
{
    (void)state;
    assert_int_equal(replayed, all.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_initializers),
        cmocka_unit_test(test_all_replayed),
    };
    int failed;

    if (!recording_open(path_of("calls.txt.gz"), &all))
        return 1;
    failed = cmocka_run_group_tests_name("mxnet.nn", tests, NULL, NULL);
    recording_close(&all);
    return failed;
}

/* Modules over batches whose samples lie along another axis than the first: the same training, metrics and
 * outputs as along that one, on one device and on two. */
#include "nn/symbols.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"
#include "tenon/nn_module.h"

enum { COUNT = 43, BATCH = 5, WORDS = 12, LONGEST = 10, ROOM = 16384 };
#define TWO "device.default=cpu:0,cpu:1"
#define ONE "device.default=cpu"

static int32_t tokens[COUNT * LONGEST];
static int64_t lengths[COUNT];

static int sentences_make(void **state)
{
    size_t used = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = i * 7 % LONGEST + 1;
        for (int k = 0; k < lengths[i]; k++)
            tokens[used++] = (i * 5 + k * 3 + i * k) % 11 + 1;
    }
    return 0;
}

static tn_data *sentences(tn_app *app, const char *layout)
{
    static const int64_t buckets[] = {4, 7, LONGEST, 0};

    return tn_data_from_sentences(app, .tokens = tokens, .lengths = lengths, .count = COUNT, .batch = BATCH,
                                  .buckets = buckets, .shuffle = 1, .seed = 4, .layout = layout);
}

typedef struct model {
    bool time;   /* its time is axis 0 */
    bool shaped; /* its output has three axes, of which it says which one has the samples */
} model;

/* Scores of the next word, from a sum over the words so far. */
static tn_symbol *language(void *arg, tn_app *app, int64_t key)
{
    const model *as = arg;
    tn_symbol *s, *label = variable(app, "softmax_label");

    (void)key;
    s = node(app, "Embedding", "embed", LIST("input_dim", "12", "output_dim", "8"), variable(app, "data"));
    s = node(app, "_np_cumsum", NULL, LIST("axis", as->time ? "0" : "1"), s);
    if (!as->shaped) {
        s = node(app, "Reshape", NULL, LIST("shape", "(-1, 8)"), s);
        label = node(app, "Reshape", NULL, LIST("shape", "(-1,)"), label);
    }
    s = node(app, "FullyConnected", "pred", LIST("num_hidden", "12", "flatten", "0"), s);
    s = symbol_node(tn_app_ctx(app), "SoftmaxOutput", "softmax",
                    LIST("use_ignore", "1", "ignore_label", "0", "preserve_shape", as->shaped ? "1" : "0"), s,
                    label);
    if (as->shaped)
        assert_int_equal(tn_symbol_attr_set(s, "__layout__", as->time ? "TNC" : "NTC"), TN_OK);
    return s;
}

typedef struct result {
    float params[ROOM], predicted[ROOM];
    size_t param_count, predicted_count;
    double trained, valid, scored;
} result;

static int32_t keep_values(void *arg, tn_module *m, int64_t epoch, int64_t batch, double train, double valid)
{
    result *r = arg;

    (void)m;
    (void)epoch;
    if (batch < 0) {
        r->trained = train;
        r->valid = valid;
    }
    return 0;
}

static void training(const char *devices, model as, const char *metric, result *r)
{
    const char *layout = as.time ? "TN" : "NT";
    tn_app *app = nn_open(devices, NULL);
    tn_module *m = tn_module_new(app, .bucket = language, .arg = &as, .key = LONGEST);
    tn_data *d = sentences(app, layout), *valid = sentences(app, layout);

    tn_module_fit(m, d, .epochs = 1, .metric = metric);
    tn_module_init_optimizer(m, .lr = 0.1, .momentum = 0.5, .wd = 0.01);
    tn_module_fit(m, d, .valid = valid, .epochs = 3, .first = 1, .metric = metric, .event = keep_values,
                  .arg = r);
    r->param_count = nn_read_module(app, m, r->params, ROOM);
    r->scored = tn_module_score(m, d, metric);
    tn_data_seek(d, 0, 0);
    if (!as.shaped) /* those of several lengths are no one array */
        r->predicted_count = nn_read(app, tn_module_predict(m, d, 0), r->predicted, ROOM);
    nn_close(app);
}

static void near(const char *what, const float *got, const float *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - want[i]) < 1e-5f))
            fail_msg("%s: number %zu is %.9g, not %.9g", what, i, (double)got[i], (double)want[i]);
}

static void results_near(const char *what, const result *got, const result *want)
{
    assert_int_equal(got->param_count, want->param_count);
    assert_true(want->param_count > 100);
    near(what, got->params, want->params, want->param_count);
    if (!(fabs(got->trained - want->trained) < 1e-4 * want->trained &&
          fabs(got->valid - want->valid) < 1e-4 * want->valid &&
          fabs(got->scored - want->scored) < 1e-4 * want->scored))
        fail_msg("%s: %g, %g, %g; not %g, %g, %g", what, got->trained, got->valid, got->scored, want->trained,
                 want->valid, want->scored);
}

/* Predictions of batches, one behind the other: (n, length) becomes (length, n) in each. */
static size_t turned(const float *from, float *to)
{
    tn_app *app = nn_open(NULL);
    tn_data *d = sentences(app, "NT");
    size_t done = 0;
    tn_batch b;

    while (tn_data_next(d, &b)) {
        const size_t length = (size_t)tn_data_bucket(d);

        for (size_t n = 0; n < BATCH; n++)
            for (size_t t = 0; t < length; t++)
                memcpy(to + done + (t * BATCH + n) * WORDS, from + done + (n * length + t) * WORDS,
                       WORDS * sizeof *to);
        done += BATCH * length * WORDS;
    }
    nn_close(app);
    return done;
}

/* The same parameters, metrics and predictions whatever the axis, on one device and on two. */
static void same_training(void **state)
{
    static const char *const metrics[] = {"perplexity", "accuracy", "top_k_accuracy"};
    static result rows, time, two, rows_two;
    static float expected[ROOM];

    (void)state;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        training(ONE, (model){.time = false}, metrics[i], &rows);
        training(ONE, (model){.time = true}, metrics[i], &time);
        results_near("TN", &time, &rows);
        assert_int_equal(time.predicted_count, rows.predicted_count);
        assert_int_equal(turned(rows.predicted, expected), rows.predicted_count);
        near("predictions", time.predicted, expected, rows.predicted_count);
        training(TWO, (model){.time = false}, metrics[i], &rows_two);
        training(TWO, (model){.time = true}, metrics[i], &two);
        results_near("TN of two devices", &two, &rows);
        results_near("NT of two devices", &rows_two, &rows);
    }
}

/* Outputs that say where their samples are: they are joined there, and metrics take them so. */
static void shaped_output(void **state)
{
    static result rows, other;

    (void)state;
    training(ONE, (model){.shaped = true}, "loss", &rows);
    training(ONE, (model){.shaped = true, .time = true}, "loss", &other);
    results_near("TN", &other, &rows);
    training(TWO, (model){.shaped = true}, "loss", &other);
    results_near("NT of two devices", &other, &rows);
    training(TWO, (model){.shaped = true, .time = true}, "loss", &other);
    results_near("TN of two devices", &other, &rows);
}

/* ---- step by step ----------------------------------------------------------------------------- */

/* A program's loop over what .layouts says has the bits of tn_module_fit(). */
static void by_hand(void **state)
{
    static const char *const devices[] = {ONE, TWO};
    static float whole[ROOM], steps[ROOM];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        tn_app *app = nn_open(devices[i], NULL);
        model as = {.time = true};
        tn_module *m = tn_module_new(app, .bucket = language, .arg = &as, .key = LONGEST),
                  *other = tn_module_new(app, .bucket = language, .arg = &as, .key = LONGEST);
        tn_data *d = sentences(app, "TN"), *again = sentences(app, "TN");
        tn_meter *meter = tn_meter_new(app, "perplexity"), *own = tn_meter_new(app, "perplexity");
        size_t count;
        tn_batch b;

        tn_module_fit(m, d, .meter = meter);
        count = nn_read_module(app, m, whole, ROOM);
        tn_module_bind(other, .shapes = {{LONGEST, BATCH}}, .label_shapes = {{LONGEST, BATCH}},
                       .layouts = {"TN"}, .label_layouts = {"TN"});
        tn_module_init_params(other);
        tn_module_init_optimizer(other);
        while (tn_data_next(again, &b)) {
            tn_module_switch(other, tn_data_bucket(again));
            tn_module_forward(other, 1, 2, (tn_array *[]){b.x, b.y});
            tn_module_backward(other, NULL);
            tn_module_update(other);
            tn_module_measure(other, own, b.y);
        }
        assert_int_equal(nn_read_module(app, other, steps, ROOM), count);
        assert_memory_equal(whole, steps, count * sizeof *whole);
        assert_true(tn_meter_value(meter) == tn_meter_value(own));
        nn_close(app);
    }
}

/* A module that was bound by data of one layout takes data of the other, and then again arrays of the one. */
static void both_layouts(void **state)
{
    tn_app *app = nn_open(TWO, NULL);
    tn_symbol *s =
        node(app, "Embedding", "embed", LIST("input_dim", "12", "output_dim", "12"), variable(app, "data"));
    tn_data *d = sentences(app, "TN");
    tn_module *m;
    tn_batch b;

    (void)state;
    s = symbol_node(tn_app_ctx(app), "SoftmaxOutput", "softmax", LIST("preserve_shape", "1"), s,
                    variable(app, "softmax_label"));
    assert_int_equal(tn_symbol_attr_set(s, "__layout__", "TNC"), TN_OK);
    m = tn_module_new(app, .symbol = s);
    tn_symbol_release(s);
    tn_module_fit(m, d, .metric = "perplexity");
    tn_module_fit(m, sentences(app, "NT"), .metric = "perplexity");
    assert_true(tn_data_next(d, &b));
    tn_module_forward(m, 1, 2, (tn_array *[]){b.x, b.y});
    nn_shape(tn_module_output(m, 0), 3, (int64_t[]){tn_data_bucket(d), BATCH, WORDS});
    nn_close(app);
}

enum { T = 3, N = 5, IN = 4, OUT = 2, ALL = 512 };

/* data (T, N, 4) + offset (4) -> (T, N, 2), which says its layout; gradients come from outside. */
static size_t outer_step(const char *devices, float *out)
{
    tn_app *app = nn_open(devices, NULL);
    const int64_t in[] = {T, N, IN}, up[] = {T, N, OUT}, offset[] = {1, 1, IN};
    tn_symbol *s = symbol_node(tn_app_ctx(app), "broadcast_add", NULL, NULL, variable(app, "data"),
                               variable(app, "offset"));
    const char *const names[] = {"data", "offset", NULL};
    tn_module *m;
    size_t n;

    s = node(app, "FullyConnected", "fc", LIST("num_hidden", "2", "flatten", "0"), s);
    s = node(app, "tanh", "act", NULL, s);
    assert_int_equal(tn_symbol_attr_set(s, "__layout__", "TNC"), TN_OK);
    m = tn_module_new(app, .symbol = s, .data = names);
    tn_symbol_release(s);
    tn_module_bind(m, .shapes = {{T, N, IN}, {1, 1, IN}}, .layouts = {"TNC", "T"}, .input_grads = 1);
    tn_module_init_params(m, .seed = 3);
    tn_module_init_optimizer(m, .lr = 0.5);
    tn_module_forward(m, 1, 2, (tn_array *[]){nn_array(app, 3, in, 1), nn_array(app, 3, offset, 2)});
    nn_shape(tn_module_output(m, 0), 3, up);
    n = nn_read(app, tn_module_output(m, 0), out, ALL);
    tn_module_backward(m, (tn_array *[]){nn_array(app, 3, up, 3)});
    nn_shape(tn_module_input_grad(m, 0), 3, in);
    nn_shape(tn_module_input_grad(m, 1), 3, offset);
    n += nn_read(app, tn_module_input_grad(m, 0), out + n, ALL - n);
    tn_module_update(m);
    n += nn_read_module(app, m, out + n, ALL - n);
    nn_close(app);
    return n;
}

/* Outputs, gradients of outputs and of inputs are cut and joined along N; each device has all of an input
 * without N. */
static void cut_and_joined(void **state)
{
    static float one[ALL], two[ALL];
    const size_t n = outer_step(ONE, one);

    (void)state;
    assert_true(n == T * N * (OUT + IN) + OUT * (IN + 1));
    assert_int_equal(outer_step(TWO, two), n);
    near("two devices", two, one, n);
}

/* The mean of F1 over three batches: scores of two classes, (T * N, 2), and labels (T, N). */
static double mean_f1(const char *devices)
{
    tn_app *app = nn_open(devices, NULL);
    tn_symbol *s =
        node(app, "FullyConnected", "fc", LIST("num_hidden", "2", "flatten", "0"), variable(app, "data"));
    tn_meter *meter = tn_meter_new(app, "f1");
    tn_module *m;
    double f1;

    s = symbol_node(tn_app_ctx(app), "SoftmaxOutput", "softmax", NULL,
                    node(app, "Reshape", NULL, LIST("shape", "(-1, 2)"), s),
                    node(app, "Reshape", NULL, LIST("shape", "(-1,)"), variable(app, "softmax_label")));
    m = tn_module_new(app, .symbol = s);
    tn_symbol_release(s);
    tn_module_bind(m, .shapes = {{T, N, IN}}, .label_shapes = {{T, N}}, .layouts = {"TNC"},
                   .label_layouts = {"TN"});
    tn_module_init_params(m, .seed = 3);
    for (uint64_t step = 0; step < 3; step++) {
        float labels[T * N];
        tn_array *y;

        for (size_t i = 0; i < T * N; i++)
            labels[i] = (float)((i * i + step) % 3 == 0);
        y = tn_app_array(app, 2, (const int64_t[]){T, N}, labels);
        tn_module_forward(m, 1, 2, (tn_array *[]){nn_array(app, 3, (const int64_t[]){T, N, IN}, step), y});
        tn_module_measure(m, meter, y);
    }
    f1 = tn_meter_value(meter);
    nn_close(app);
    return f1;
}

/* Parts of devices are one batch to a metric that takes the mean over batches. */
static void one_batch(void **state)
{
    const double one = mean_f1(ONE);

    (void)state;
    assert_true(one > 0.1 && one < 0.9);
    assert_true(fabs(mean_f1(TWO) - one) < 1e-9);
}

/* ---- what goes wrong -------------------------------------------------------------------------- */

static tn_module *plain(tn_app *app)
{
    tn_symbol *s = node(app, "FullyConnected", "fc", LIST("num_hidden", "2"), variable(app, "data"));
    tn_module *m = tn_module_new(app, .symbol = s);

    tn_symbol_release(s);
    return m;
}

static void refused(void **state)
{
    static const struct {
        const char *layout;
        int64_t shape[3], given[3]; /* of the module, of the batch */
        tn_status status;
        const char *text;
    } rows[] = {
        {"TN", {5}, {5}, TN_E_ARG, "layout TN of \"data\", whose shape has 1 dimensions"},
        {"TCN", {5, 4}, {5, 4}, TN_E_ARG, "layout TCN of \"data\""},
        {"TN", {5, 4}, {5}, TN_E_SHAPE, "the samples of \"data\" lie along axis 1 of 1"},
        {"TN", {5, 4}, {5, 1}, TN_E_SHAPE, "1 rows for 2 devices"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(TWO, NULL);
        const tn_module_bind_options o = {
            .struct_size = (uint32_t)sizeof o,
            .shapes = {{rows[i].shape[0], rows[i].shape[1], rows[i].shape[2]}},
            .layouts = {rows[i].layout},
        };
        int32_t ndim = 0;
        tn_module *m = plain(app);

        while (ndim < 3 && rows[i].given[ndim])
            ndim++;
        tn_module_bind_(m, &o);
        tn_module_init_params(m);
        tn_module_forward(m, 1, 1, (tn_array *[]){nn_array(app, ndim, rows[i].given, 1)});
        if (tn_app_status(app) != rows[i].status || !strstr(tn_app_error(app), rows[i].text))
            fail_msg("row %zu: %s", i, tn_app_error(app));
        nn_close_failed(app, rows[i].text, rows[i].status == TN_E_ARG ? 2 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_training), cmocka_unit_test(shaped_output),  cmocka_unit_test(by_hand),
        cmocka_unit_test(both_layouts),  cmocka_unit_test(cut_and_joined), cmocka_unit_test(one_batch),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, sentences_make, NULL);
}

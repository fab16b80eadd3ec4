/*
 * Losses, metrics and named data of the program: what they compute, that a training goes on exactly, and what
 * is refused.
 */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t rows[2] = {40, 6}, forty[1] = {40};

/* Two inputs, two outputs: rows and their negatives; a class and a number to be found. */
static void net_of(const tn_x *in, tn_x *out)
{
    tn_x h = tn_dense(tn_concat(1, in[0], in[1]), .units = 8, .activation = "tanh");

    h = tn_dropout(tn_batchnorm(h), .rate = 0.1);
    out[0] = tn_dense(h, .units = 3, .name = "kind");
    out[1] = tn_dense(h, .units = 1, .name = "size");
}

static tn_x both(const tn_x *out, const tn_x *labels)
{
    return tn_add(tn_softmax_ce(out[0], labels[0]), tn_scale(tn_l2(out[1], labels[1]), 2));
}

static tn_x right(const tn_x *out, const tn_x *labels)
{
    return tn_accuracy(out[0], labels[0]);
}

static tn_x off(const tn_x *out, const tn_x *labels)
{
    return tn_l1(out[1], labels[1]);
}

static tn_data *data_of(tn_app *app, int32_t shuffle)
{
    float x[240], kind[40], size[40];

    nn_numbers(x, 240, 5);
    for (int i = 0; i < 40; i++) {
        kind[i] = x[6 * i] > 0.3f ? 2 : x[6 * i + 1] > 0;
        size[i] = x[6 * i + 2] + x[6 * i + 3];
    }
    for (int i = 0; i < 240; i++)
        x[i] *= 2;
    return tn_data_from_arrays(app, .batch = 16, .shuffle = shuffle, .seed = 3,
                               .fields = {{"row", tn_app_array(app, 2, rows, x)},
                                          {"kind", tn_app_array(app, 1, forty, kind)},
                                          {"again", tn_app_array(app, 2, rows, x)},
                                          {"size", tn_app_array(app, 1, forty, size)}});
}

static tn_net *two_net(tn_app *app)
{
    tn_net *net =
        tn_net_functions(app, net_of, .name = "two", .inputs = {"row", "again"}, .outputs = {"kind", "size"});

    tn_net_init(net, .seed = 2);
    return net;
}

#define OPTIONS                                                                                              \
    .loss = both, .labels = {"kind", "size"}, .metrics = {{"right", right}, {"off", off}}, .lr = 0.05,       \
    .momentum = 0.9, .seed = 7

/* ---- data ---------------------------------------------------------------------------------------- */

static void test_arrays(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *data = data_of(app, 1);
    int64_t shape[4], seen = 0;
    char hex[65];
    tn_batch b;

    (void)state;
    assert_int_equal(tn_data_count(data), 40);
    assert_int_equal(tn_data_batches(data), 3);
    assert_int_equal(tn_data_classes(data), 3);
    tn_data_shape(data, shape);
    assert_true(shape[0] == 1 && shape[1] == 6 && !shape[2]);
    assert_true(tn_data_sha256(data, hex) && strlen(hex) == 64);
    assert_string_equal(tn_data_file(data, 0), "");
    assert_null(tn_data_field(data, "row")); /* no batch yet */
    while (tn_data_next(data, &b)) {
        float x[96], again[96], kind[16];

        assert_ptr_equal(tn_data_field(data, "row"), b.x);
        assert_ptr_equal(tn_data_field(data, "kind"), b.y);
        (void)nn_read(app, b.x, x, 96);
        (void)nn_read(app, tn_data_field(data, "again"), again, 96);
        (void)nn_read(app, b.y, kind, 16);
        assert_memory_equal(x, again, (size_t)b.n * 6 * sizeof *x);
        for (int64_t i = 0; i < b.n; i++) /* one order for all fields */
            assert_true((double)kind[i] == (x[6 * i] > 0.6f ? 2 : x[6 * i + 1] > 0));
        seen += b.n;
    }
    assert_int_equal(seen, 40);
    assert_null(tn_data_field(data, "row"));
    assert_null(tn_data_field(data, "rows"));
    nn_close_failed(app, "did you mean \"row\"", 2);
}

static void bad_data(const char *text, int exit_code, tn_app *app, tn_data *data)
{
    assert_null(data);
    nn_close_failed(app, text, exit_code);
}

static void test_arrays_refused(void **state)
{
    tn_app *app = nn_open(NULL), *other;
    tn_array *x = nn_array(app, 2, rows, 1);

    (void)state;
    bad_data("no field is given", 2, app, tn_data_from_arrays(app));
    app = nn_open(NULL);
    x = nn_array(app, 2, rows, 1);
    bad_data(".batch is out of range", 2, app, tn_data_from_arrays(app, .fields = {{"x", x}}, .batch = -1));
    app = nn_open(NULL);
    bad_data("the array is NULL", 2, app, tn_data_from_arrays(app, .fields = {{"x", NULL}}));
    app = nn_open(NULL);
    x = nn_array(app, 2, rows, 1);
    bad_data("letters, digits", 2, app, tn_data_from_arrays(app, .fields = {{"a b", x}}));
    app = nn_open(NULL);
    x = nn_array(app, 2, rows, 1);
    bad_data("two fields \"x\"", 2, app, tn_data_from_arrays(app, .fields = {{"x", x}, {"x", x}}));
    app = nn_open(NULL);
    x = nn_array(app, 2, rows, 1);
    bad_data(
        "another number than x", 1, app,
        tn_data_from_arrays(app, .fields = {{"x", x}, {"y", nn_array(app, 1, (const int64_t[]){39}, 1)}}));
    app = nn_open(NULL);
    bad_data("at least 1 is needed", 1, app,
             tn_data_from_arrays(app, .fields = {{"x", nn_array(app, 2, (const int64_t[]){0, 6}, 1)}}));
    app = nn_open(NULL);
    other = nn_open(NULL);
    (void)tn_fit(two_net(app), data_of(other, 0), OPTIONS);
    nn_close(other);
    nn_close_failed(app, "another app", 2);
}

/* ---- trainings ----------------------------------------------------------------------------------- */

static int32_t stop_at(void *arg, int32_t kind, tn_train *t)
{
    tn_train_info info = {.struct_size = sizeof info};

    tn_train_info_get(t, 0, &info);
    return kind == TN_TRAIN_STEP && *(int64_t *)arg > 0 && info.step == *(int64_t *)arg;
}

/* `stop`: after so many steps; 0: not; below 0: goes on from the folder. */
static size_t fitted(int hybrid, const char *folder, int64_t stop, float *out, size_t room)
{
    tn_app *app = nn_open("run.deterministic=threads", NULL);
    tn_net *net = two_net(app);
    tn_train_info info = {.struct_size = sizeof info};
    tn_train *t;
    size_t at = 0;

    t = tn_train_open(app, .net = net, .train_data = data_of(app, 1), .valid_data = data_of(app, 0), OPTIONS,
                      .event = stop_at, .arg = &stop, .no_hybridize = !hybrid, .epochs = 6,
                      .checkpoint = folder, .resume = stop < 0);
    if (!t)
        print_error("%s\n", tn_app_error(app));
    assert_non_null(t);
    (void)tn_train_run(t);
    tn_train_info_get(t, 1, &info);
    assert_int_equal(info.metric_count, 2);
    assert_string_equal(info.metric_names[1], "off");
    if (stop <= 0) {
        assert_true(info.valid_metrics[0] > 0.7 && info.valid_metrics[1] < 0.8);
        assert_true(info.accuracy == info.metrics[0] && info.best_accuracy >= info.valid_accuracy);
        out[at++] = (float)info.loss;
        out[at++] = (float)info.valid_loss;
        out[at++] = (float)info.metrics[0];
        out[at++] = (float)info.metrics[1];
    }
    for (size_t p = 0; p < tn_net_param_count(net); p++)
        at += nn_read(app, tn_net_param(net, tn_net_param_name(net, p)), out + at, room - at);
    nn_close(app);
    return at;
}

static void test_fit(void **state)
{
    char *folder = nn_quick_folder();
    float a[512], b[512];
    size_t n = fitted(0, NULL, 0, a, 512);

    (void)state;
    assert_true(n > 150);
    assert_int_equal(fitted(1, NULL, 0, b, 512), n);
    assert_memory_equal(a, b, n * sizeof *a);
    (void)fitted(1, folder, 8, b, 512); /* ended within an epoch, gone on with */
    assert_int_equal(fitted(0, folder, -1, b, 512), n);
    assert_memory_equal(a, b, n * sizeof *a);
    nn_folder_remove(folder);
}

/* Nothing but a net and data: the loss is softmax cross-entropy, as ever. */
static tn_x plain(tn_x x)
{
    return tn_dense(tn_dense(x, .units = 16, .activation = "relu"), .units = 10);
}

static void test_defaults(void **state)
{
    char text[2048] = "", *line;
    FILE *out = fmemopen(text, sizeof text, "w");
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, plain);

    (void)state;
    assert_true(
        tn_fit(net, tn_data_open(app, "digits:train", .seed = 1), .epochs = 2, .lr = 0.1, .log = out));
    (void)fclose(out);
    assert_non_null(strstr(text, "epoch  1  loss "));
    assert_non_null(line = strstr(text, "epoch  2  loss "));
    assert_true(strtod(strstr(line, "accuracy ") + 9, NULL) > 0.7);
    assert_true(tn_net_eval(net, tn_data_open(app, "digits:test"), "accuracy") > 0.7);
    nn_close(app);
}

/* A chain with a loss of the program; the graph of a file has its own. */
static tn_x first_right(const tn_x *out, const tn_x *labels)
{
    return tn_accuracy(out[0], labels[0]);
}

static void test_chain(void **state)
{
    char *folder = nn_quick_folder(), prefix[256], json[280];
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app, .name = "chain");
    tn_data *data = tn_data_open(app, "digits:train", .seed = 1);

    (void)state;
    (void)snprintf(prefix, sizeof prefix, "%s/m", folder);
    (void)snprintf(json, sizeof json, "%s-symbol.json", prefix);
    tn_net_dense(net, .units = 16, .activation = "relu");
    tn_net_dense(tn_net_sequential(net), .units = 10);
    assert_true(tn_fit(net, data, .metrics = {{"right", first_right}}, .epochs = 2, .lr = 0.1));
    assert_true(tn_net_eval(net, tn_data_open(app, "digits:test"), "accuracy") > 0.7);
    tn_net_export(net, prefix);
    assert_false(
        tn_fit(tn_net_from_symbol(app, json), data, .metrics = {{"right", first_right}}, .epochs = 1));
    nn_close_failed(app, "is the graph of a file", 1);
    nn_folder_remove(folder);
}

/* ---- what is refused ----------------------------------------------------------------------------- */

static tn_x l_null(const tn_x *out, const tn_x *labels)
{
    (void)out;
    (void)labels;
    return NULL;
}
static tn_x l_shape(const tn_x *out, const tn_x *labels)
{
    (void)labels;
    return tn_softmax(out[0]);
}
static tn_x l_layer(const tn_x *out, const tn_x *labels)
{
    (void)labels;
    return tn_mean(tn_dense(out[0], .units = 2));
}
static tn_x l_label(const tn_x *out, const tn_x *labels)
{
    return tn_softmax_ce(out[0], labels[5]);
}

static tn_x l_few(const tn_x *out, const tn_x *labels)
{
    return tn_softmax_ce(out[1], labels[0]); /* one class, labels 0 to 2 */
}
static tn_x two_classes(tn_x x)
{
    return tn_dense(x, .units = 2);
}

/* Labels that the net has no class for: in a loop of one's own; a training without a loss of the program
 * knows them before it begins. */
static void test_few_classes(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_function(app, two_classes, .name = "few");
    tn_batch b;
    tn_data *data = data_of(app, 0);

    (void)state;
    tn_net_init(net, .seed = 1);
    assert_int_equal(tn_data_next(data, &b), 1);
    assert_null(tn_loss_softmax_ce(app, tn_net_forward(net, b.x), b.y));
    nn_close_failed(app, "label 2, but the net gives 2 classes", 1);
    app = nn_open(NULL);
    net = tn_net_function(app, two_classes, .name = "few");
    assert_false(tn_fit(net, data_of(app, 0), .labels = {"kind"}, .epochs = 1));
    nn_close_failed(app, "label 2, but the net gives 2 classes", 1);
}

static void refused(const char *text, int exit_code, const tn_train_options *options)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = two_net(app);

    assert_false(tn_fit_(net, data_of(app, 0), options));
    nn_close_failed(app, text, exit_code);
}

#define REFUSED(text, exit_code, ...)                                                                        \
    refused(text, exit_code,                                                                                 \
            &(const tn_train_options){.struct_size = sizeof(tn_train_options), .epochs = 1, __VA_ARGS__})

static void test_refused(void **state)
{
    (void)state;
    REFUSED("label 2, but the net gives 1 classes", 1, .loss = l_few, .labels = {"kind"});
    REFUSED("gives nothing for output 0", 1, .loss = l_null, .labels = {"kind"});
    REFUSED("the loss gives 16×3, one number per sample is needed: (16)", 1, .loss = l_shape,
            .labels = {"kind"});
    REFUSED("metric odd gives 16×3", 1, .labels = {"kind"}, .metrics = {{"odd", l_shape}});
    REFUSED("whose parameters nobody trains", 2, .loss = l_layer, .labels = {"kind"});
    REFUSED("a value is NULL", 2, .loss = l_label, .labels = {"kind"});
    REFUSED("has no field \"kinds\"", 2, .labels = {"kinds"});
    REFUSED("metric 0: its name", 2, .labels = {"kind"}, .metrics = {{NULL, right}});
    REFUSED("metric 0: its name", 2, .labels = {"kind"}, .metrics = {{"a b", right}});
    REFUSED("more than 8 fields", 2, .labels = {"kind", "size", "kind", "size", "kind", "size", "kind"});
}

static void test_inputs_refused(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_functions(app, net_of, .inputs = {"row", "other"}, .outputs = {"a", "b"});

    (void)state;
    assert_false(tn_fit(net, data_of(app, 0), OPTIONS, .epochs = 1));
    nn_close_failed(app, "has no field \"other\"", 2);
    app = nn_open(NULL);
    assert_false(tn_fit(two_net(app), data_of(app, 0), .epochs = 1, .loss = both, .labels = {"kind", "size"},
                        .valid_data = tn_data_open(app, "digits:test")));
    nn_close_failed(app, "has no field \"row\"", 2);
}

static tn_x kind_alone(const tn_x *out, const tn_x *labels)
{
    return tn_softmax_ce(out[0], labels[0]);
}

/* A head that the loss does not take is an error, or stays as it is. */
static void test_idle_head(void **state)
{
    (void)state;
    for (int ignores = 0; ignores < 2; ignores++) {
        tn_app *app = nn_open(NULL);
        tn_net *net = two_net(app);
        float before[8], after[8];

        tn_net_init(net, .seed = 2, .shapes = {{16, 6}, {16, 6}});
        (void)nn_read(app, tn_net_param(net, "size.weight"), before, 8);
        assert_int_equal(tn_fit(net, data_of(app, 0), .loss = kind_alone, .labels = {"kind"}, .epochs = 2,
                                .wd = 0.1, .ignore_stale_grad = ignores),
                         ignores);
        if (!ignores) {
            nn_close_failed(app, ".ignore_stale_grad = 1", 1);
            continue;
        }
        (void)nn_read(app, tn_net_param(net, "size.weight"), after, 8);
        assert_memory_equal(before, after, sizeof before);
        nn_close(app);
    }
}

/* A line each two steps: 3 batches an epoch, of 2 epochs. */
static void test_speed(void **state)
{
    tn_app *app = nn_open(NULL);
    char text[1024] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    tn_speed speed = {.out = out, .every = 2};
    static const char *const lines[] = {
        "epoch 1, batch 2 of 3: ", "epoch 2, batch 1 of 3: ", "epoch 2, batch 3 of 3: "};
    char *at = text;

    (void)state;
    assert_non_null(out);
    assert_true(
        tn_fit(two_net(app), data_of(app, 0), OPTIONS, .epochs = 2, .event = tn_train_speed, .arg = &speed));
    (void)fclose(out);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_memory_equal(at, lines[i], strlen(lines[i]));
        at = strchr(at, '\n');
        assert_non_null(at);
        assert_memory_equal(at - 10, " samples/s", 10);
        at++;
    }
    assert_string_equal(at, "");
    assert_int_equal(speed.samples, 80);
    nn_close(app);
}

/* Three batches an epoch; a length of more than 200 is 200. */
static void test_progress(void **state)
{
    static const struct {
        int64_t length;
        const char *begin;
    } bars[] = {{10, "[===-------] 34%\r[=======---] 67%\r[==========] 100%\r\n[===-------] 34%\r"},
                {1 << 20, "[="}};

    (void)state;
    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++) {
        tn_app *app = nn_open(NULL);
        char text[2048] = "";
        FILE *out = fmemopen(text, sizeof text, "w");
        tn_progress bar = {.out = out, .length = bars[i].length};

        assert_non_null(out);
        assert_true(tn_fit(two_net(app), data_of(app, 0), OPTIONS, .epochs = 2, .event = tn_train_progress,
                           .arg = &bar));
        (void)fclose(out);
        assert_memory_equal(text, bars[i].begin, strlen(bars[i].begin));
        assert_int_equal(strcspn(text, "]"), 1 + (i ? 200 : 10));
        nn_close(app);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_arrays_refused),
        cmocka_unit_test(test_fit),       cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_chain),     cmocka_unit_test(test_few_classes),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_inputs_refused),
        cmocka_unit_test(test_speed),     cmocka_unit_test(test_progress),
        cmocka_unit_test(test_idle_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

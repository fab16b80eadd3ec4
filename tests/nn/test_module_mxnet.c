/* A training by MXNet's Module and one by its BucketingModule (tests/oracle/module.py), step by step: outputs
 * of each batch, and all parameters behind the last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/support.h"
#include "tenon/nn_data.h"
#include "tenon/nn_module.h"

#define STEPS 4
#define ROOM 256
#define TOLERANCE 2e-6 /* of numbers around 1, after four steps in float32 */

static const char *path_of(const char *name)
{
    static char path[4096];
    const char *root = getenv("TENON_TEST_SOURCE");

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/module/%s", root ? root : ".", name);
    return path;
}

static tn_params *file_of(tn_app *app, const char *name)
{
    tn_params *p = NULL;

    assert_int_equal(tn_params_load(tn_app_ctx(app), path_of(name), NULL, &p), TN_OK);
    return p;
}

static tn_array *array_of(tn_app *app, const tn_params *p, const char *name, int step)
{
    tn_array *a = NULL;
    char full[64];

    (void)snprintf(full, sizeof full, step < 0 ? "%s" : "%s%d", name, step);
    assert_int_equal(tn_params_get(p, full, &a), TN_OK);
    return tn_app_own(app, a);
}

static void same(tn_app *app, tn_array *ours, tn_array *theirs, const char *what, int step)
{
    float a[ROOM], b[ROOM];
    const size_t count = nn_read(app, ours, a, ROOM);

    assert_int_equal(nn_read(app, theirs, b, ROOM), count);
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= (float)TOLERANCE * fmaxf(1, fabsf(b[i]))))
            fail_msg("%s, step %d, element %zu: %g, MXNet has %g", what, step, i, (double)a[i], (double)b[i]);
}

static void steps(tn_app *app, tn_module *m, const char *name, bool buckets)
{
    char file[64];
    tn_params *batches, *after, *ours;

    (void)snprintf(file, sizeof file, "%s-batches.params", name);
    batches = file_of(app, file);
    (void)snprintf(file, sizeof file, "%s-%04d.params", name, STEPS);
    after = file_of(app, file);
    for (int i = 0; i < STEPS; i++) {
        tn_array *in[] = {array_of(app, batches, "data", i), array_of(app, batches, "label", i)};
        const int64_t *shape = NULL;
        int32_t ndim = 0;

        assert_int_equal(tn_array_shape(in[0], &ndim, &shape), TN_OK);
        if (buckets)
            tn_module_switch(m, shape[1]);
        tn_module_forward(m, 1, 2, in);
        same(app, tn_module_output(m, 0), array_of(app, batches, "out", i), name, i);
        tn_module_backward(m, NULL);
        tn_module_update(m);
    }
    ours = tn_module_params(m);
    assert_int_equal(tn_params_count(ours), tn_params_count(after));
    for (size_t i = 0; i < tn_params_count(after); i++)
        same(app, array_of(app, ours, tn_params_name(after, i), -1),
             array_of(app, after, tn_params_name(after, i), -1), tn_params_name(after, i), STEPS);
    tn_params_destroy(ours);
    tn_params_destroy(after);
    tn_params_destroy(batches);
}

static void module(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_load(app, path_of("plain"), 0, 0, .name = "plain");

    (void)state;
    tn_module_bind(m, .shapes = {{4, 5}}, .label_shapes = {{4}});
    tn_module_init_optimizer(m, .lr = 0.3, .momentum = 0.9, .wd = 0.05);
    steps(app, m, "plain", false);
    nn_close(app);
}

/* First values are the recorded ones. */
static void begins(tn_app *app, tn_module *m, const char *name)
{
    char file[64];
    tn_params *want, *have;

    (void)snprintf(file, sizeof file, "%s-0000.params", name);
    want = file_of(app, file);
    have = tn_module_params(m);
    assert_int_equal(tn_params_count(have), tn_params_count(want));
    for (size_t i = 0; i < tn_params_count(want); i++)
        same(app, array_of(app, have, tn_params_name(want, i), -1),
             array_of(app, want, tn_params_name(want, i), -1), tn_params_name(want, i), 0);
    tn_params_destroy(have);
    tn_params_destroy(want);
}

/* First values and decay as the variables say, the scale of gradients as the optimizer does. */
static void module_as_given(void **state)
{
    static const char *const fixed[] = {"act_gamma", NULL};
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_new(app, .json = path_of("given-symbol.json"), .name = "given", .fixed = fixed);

    (void)state;
    tn_module_bind(m, .shapes = {{4, 5}}, .label_shapes = {{4}});
    tn_module_init_params(m, .with = "constant", .scale = 0.0625);
    begins(app, m, "given");
    tn_module_init_optimizer(m, .lr = 0.3, .momentum = 0.9, .wd = 0.05, .rescale_grad = 0.125);
    steps(app, m, "given", false);
    nn_close(app);
}

/* Vectors of RNNs, by MXNet's FusedRNN: an LSTM in both directions, and a GRU of two layers. */
static void module_of_rnns(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_new(app, .json = path_of("rnns-symbol.json"), .name = "rnns");

    (void)state;
    tn_module_bind(m, .shapes = {{2, 3, 4}}, .label_shapes = {{2}});
    tn_module_init_params(m, .with = "constant", .scale = 0.25);
    begins(app, m, "rnns");
    tn_module_init_optimizer(m, .lr = 0.3, .momentum = 0.9, .wd = 0.05);
    steps(app, m, "rnns", false);
    nn_close(app);
}

/* A recorded graph with all of one text for another one, which is no longer, in `folder`. */
static const char *edited(const char *folder, const char *name, const char *from, const char *to)
{
    static char path[512];
    FILE *in = fopen(path_of(name), "rb"), *out;
    char text[8192] = "", *at;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    out = fopen(path, "wb");
    assert_true(in && out && fread(text, 1, sizeof text - 1, in) > 0 && strstr(text, from));
    while ((at = strstr(text, from)) != NULL) {
        memcpy(at, to, strlen(to));
        memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    }
    assert_true(fputs(text, out) >= 0);
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
    return path;
}

/* As set_wd_mult of MXNet's optimizers: what ends in neither _weight nor _gamma decays only where its
 * variable says so, whatever else it is. */
static void module_decays(void **state)
{
    char *folder = nn_folder();

    (void)state;
    for (int says = 0; says < 2; says++) {
        float offset[2][8];

        for (int wd = 0; wd < 2; wd++) {
            tn_app *app = nn_open(NULL);
            tn_module *m = tn_module_new(
                app, .json = says ? path_of("given-symbol.json")
                                  : edited(folder, "given-symbol.json", "__wd_mult__", "__no_mult__"));
            tn_params *batches = file_of(app, "given-batches.params"), *after;
            tn_array *in[] = {array_of(app, batches, "data", 0), array_of(app, batches, "label", 0)};

            tn_module_bind(m, .shapes = {{4, 5}}, .label_shapes = {{4}});
            tn_module_init_params(m, .with = "normal");
            tn_module_init_optimizer(m, .lr = 0.3, .wd = wd * 0.5);
            tn_module_forward(m, 1, 2, in);
            tn_module_backward(m, NULL);
            tn_module_update(m);
            after = tn_module_params(m);
            assert_int_equal(nn_read(app, array_of(app, after, "arg:offset", -1), offset[wd], 8), 8);
            tn_params_destroy(after);
            tn_params_destroy(batches);
            nn_close(app);
        }
        assert_int_equal(memcmp(offset[0], offset[1], sizeof offset[0]) != 0, says);
    }
    nn_folder_remove(folder);
}

/* f1 and mcc of a batch are of all outputs together, as MXNet's. */
static void module_pools(void **state)
{
    static const char *const labels[] = {"one_label", "two_label", NULL};
    static const char *const metrics[] = {"f1", "mcc"};
    static const int64_t rows[] = {8, 5}, eight[] = {8};
    static const float classes[2][8] = {{0, 1, 1, 0, 1, 1, 0, 1}, {1, 1, 0, 1, 0, 0, 0, 1}};
    char *folder = nn_folder();
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_new(
        app, .json = edited(folder, "scored-symbol.json", "\"num_hidden\": \"3\"", "\"num_hidden\": \"2\""),
        .labels = labels);
    tn_data *data = tn_data_from_arrays(app,
                                        .fields = {{"data", nn_array(app, 2, rows, 4)},
                                                   {"one_label", tn_app_array(app, 1, eight, classes[0])},
                                                   {"two_label", tn_app_array(app, 1, eight, classes[1])}},
                                        .batch = 4);

    (void)state;
    tn_module_bind(m, .shapes = {{4, 5}}, .label_shapes = {{4}, {4}});
    tn_module_init_params(m, .with = "normal", .scale = 1, .seed = 3);
    for (size_t k = 0; k < 2; k++) {
        double want = 0;
        tn_batch b;

        while (tn_data_next(data, &b)) {
            tn_array *in[] = {b.x, tn_data_field(data, "one_label"), tn_data_field(data, "two_label")};
            tn_meter *all = tn_meter_open(app, metrics[k], .micro = 1);

            tn_module_forward(m, 0, 3, in);
            for (size_t i = 0; i < 2; i++)
                tn_meter_add(all, tn_module_output(m, i), in[1 + i]);
            want += tn_meter_value(all) / 2;
        }
        assert_true(fabs(tn_module_score(m, data, metrics[k]) - want) < 1e-12 && want != 0);
    }
    nn_close(app);
    nn_folder_remove(folder);
}

/* Metrics of a module with two outputs, each with its labels. */
static void module_scored(void **state)
{
    static const char *const labels[] = {"one_label", "two_label", NULL};
    static const char *const metrics[] = {"acc", "ce", "pcc"};
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_load(app, path_of("scored"), 0, 0, .labels = labels);
    tn_params *values = file_of(app, "scored-batches.params");
    tn_data *data = tn_data_from_arrays(app,
                                        .fields = {{"data", array_of(app, values, "data", -1)},
                                                   {"two_label", array_of(app, values, "two_label", -1)},
                                                   {"one_label", array_of(app, values, "one_label", -1)}},
                                        .batch = 2);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        float want = 0;

        assert_int_equal(nn_read(app, array_of(app, values, metrics[i], -1), &want, 1), 1);
        if (!(fabs(tn_module_score(m, data, metrics[i]) - (double)want) < 1e-5))
            fail_msg("%s: %g, MXNet has %g: %s", metrics[i], tn_module_score(m, data, metrics[i]),
                     (double)want, tn_app_error(app));
    }
    tn_params_destroy(values);
    nn_close(app);
}

static tn_symbol *bucket(void *arg, tn_app *app, int64_t key)
{
    char file[64];

    (void)arg;
    (void)snprintf(file, sizeof file, "buckets-%lld-symbol.json", (long long)key);
    return tn_app_symbol(app, path_of(file));
}

static void bucketing_module(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_module *m = tn_module_new(app, .bucket = bucket, .key = 5);
    tn_params *first = file_of(app, "buckets-0000.params");

    (void)state;
    tn_module_bind(m, .shapes = {{2, 5, 4}}, .label_shapes = {{2}});
    tn_module_set_params(m, first, 0);
    tn_module_init_optimizer(m, .lr = 0.3, .momentum = 0.9, .wd = 0.05);
    steps(app, m, "buckets", true);
    tn_params_destroy(first);
    nn_close(app);
}

/* ---- sentences -------------------------------------------------------------------------------- */

static tn_symbol *unrolled(void *arg, tn_app *app, int64_t key)
{
    char file[64];

    (void)snprintf(file, sizeof file, "%s-%lld-symbol.json", (const char *)arg, (long long)key);
    return tn_app_symbol(app, path_of(file));
}

enum { SENTENCES = 26, LONGEST = 6 };

/* Those of tests/oracle/module.py. */
static tn_data *sentences_of(tn_app *app, const char *layout)
{
    static const int64_t buckets[] = {3, LONGEST, 0};
    int32_t tokens[SENTENCES * LONGEST];
    int64_t lengths[SENTENCES];
    size_t used = 0;

    for (int i = 0; i < SENTENCES; i++) {
        lengths[i] = i * 7 % LONGEST + 1;
        for (int k = 0; k < lengths[i]; k++)
            tokens[used++] = (i * 5 + k * 3) % 11 + 1;
    }
    return tn_data_from_sentences(app, .tokens = tokens, .lengths = lengths, .count = SENTENCES, .batch = 4,
                                  .buckets = buckets, .layout = layout);
}

static void near_value(tn_app *app, const tn_params *p, const char *name, double have)
{
    float want = 0;

    assert_int_equal(nn_read(app, array_of(app, p, name, -1), &want, 1), 1);
    if (!(fabs(have - (double)want) < 1e-4))
        fail_msg("perplexity of %s: %g, MXNet has %g", name, have, (double)want);
}

/* Of a training, whose files and symbols are called so. */
static void fit_compare(const char *name, char *symbols, const char *layout, const char *devices)
{
    tn_app *app = nn_open(devices, NULL);
    tn_module *m = tn_module_new(app, .bucket = unrolled, .arg = symbols, .key = LONGEST);
    char file[64];
    tn_params *first = file_of(app, "sentences-0000.params"), *after, *values, *ours;
    tn_meter *meter = tn_meter_open(app, "perplexity", .ignores = 1);
    tn_data *d = sentences_of(app, layout);
    const int64_t rows = *layout == 'N' ? 4 : LONGEST, columns = 4 + LONGEST - rows;

    (void)snprintf(file, sizeof file, "%s-0002.params", name);
    after = file_of(app, file);
    (void)snprintf(file, sizeof file, "%s-perplexity.params", name);
    values = file_of(app, file);
    tn_module_bind(m, .shapes = {{rows, columns}}, .label_shapes = {{rows, columns}});
    tn_module_set_params(m, first, 0);
    tn_module_init_optimizer(m, .lr = 0.5, .momentum = 0.5, .wd = 0.01);
    tn_module_fit(m, d, .epochs = 2, .meter = meter);
    near_value(app, values, "fit", tn_meter_value(meter));
    ours = tn_module_params(m);
    assert_int_equal(tn_params_count(ours), tn_params_count(after));
    for (size_t i = 0; i < tn_params_count(after); i++)
        same(app, array_of(app, ours, tn_params_name(after, i), -1),
             array_of(app, after, tn_params_name(after, i), -1), tn_params_name(after, i), 2);
    near_value(app, values, "score", tn_module_score_by(m, d, meter));
    tn_params_destroy(ours);
    tn_params_destroy(first);
    tn_params_destroy(after);
    tn_params_destroy(values);
    nn_close(app);
}

/* A whole training with buckets, an LSTM unrolled to each, over MXNet's BucketSentenceIter; batches along the
 * first axis or the second, there on one device and on two. */
static void bucketing_fit(void **state)
{
    static char sentences[] = "sentences", time[] = "time";

    (void)state;
    fit_compare("sentences", sentences, "NT", NULL);
    fit_compare("time", time, "TN", NULL);
    fit_compare("time-two", time, "TN", "device.default=cpu:0,cpu:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(module),           cmocka_unit_test(module_as_given),
                                       cmocka_unit_test(module_scored),    cmocka_unit_test(module_decays),
                                       cmocka_unit_test(module_pools),     cmocka_unit_test(module_of_rnns),
                                       cmocka_unit_test(bucketing_module), cmocka_unit_test(bucketing_fit)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

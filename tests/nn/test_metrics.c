/* Several metrics at once, as CompositeEvalMetric, and metrics of the program, as CustomMetric. */
#include "nn/symbols.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int64_t hits(void *arg, const float *x, size_t count, const float *labels, size_t rows, double *sum)
{
    const size_t classes = count / rows;

    if (arg)
        return -1;
    for (size_t r = 0; r < rows; r++) {
        bool best = true;

        for (size_t k = 0; k < classes; k++)
            best = best && x[r * classes + k] <= x[r * classes + (size_t)labels[r]];
        *sum += best;
    }
    return (int64_t)rows;
}

static int64_t once(void *arg, const float *x, size_t count, const float *labels, size_t rows, double *sum)
{
    (void)arg, (void)labels, (void)rows;
    *sum = (double)x[count - 1];
    return 1;
}

static void test_composite(void **state)
{
    static const char *const names[] = {"accuracy",      "top_k_accuracy_2", "loss",
                                        "cross-entropy", "nll-loss",         "pcc"};
    static const char *const single[] = {"accuracy", "top_k_accuracy", "loss", "cross_entropy", "nll", "pcc"};
    static const int64_t wide[] = {3, 3}, right_rows[] = {3};
    static const float x[2][9] = {{0.5f, 0.3f, 0.2f, 0.1f, 0.2f, 0.7f, 0.6f, 0.3f, 0.1f},
                                  {0.2f, 0.7f, 0.1f, 0.3f, 0.3f, 0.4f, 0.1f, 0.8f, 0.1f}};
    static const float labels[2][3] = {{0, 2, 1}, {1, 0, 1}};
    tn_app *app = nn_open(NULL);
    tn_meter *all = tn_meter_open(app, "acc, top_k_acc,loss, ce,nll_loss,pcc", .k = 2), *of[6];
    tn_meter *own = tn_meter_open(app, "hits", .function = hits),
             *last = tn_meter_open(app, NULL, .function = once);

    (void)state;
    for (size_t i = 0; i < 6; i++)
        of[i] = tn_meter_open(app, single[i], .k = 2);
    for (int turn = 0; turn < 2; turn++) {
        for (int b = 0; b < 40; b++) { /* more than a meter keeps unread */
            tn_array *scores = tn_app_array(app, 2, wide, x[b % 2]),
                     *right = tn_app_array(app, 1, right_rows, labels[b % 2]);

            for (size_t i = 0; i < 6; i++)
                tn_meter_add(of[i], scores, right);
            tn_meter_add(all, scores, right);
            tn_meter_add(own, scores, right);
            tn_meter_add(last, scores, right);
        }
        for (size_t i = 0; i < 6; i++) {
            assert_true(tn_meter_value(tn_meter_at(all, i)) == tn_meter_value(of[i]));
            assert_string_equal(tn_meter_name(tn_meter_at(all, i)), names[i]);
            assert_int_equal(tn_meter_count(tn_meter_at(all, i)), 6 - i);
            tn_meter_reset(of[i]);
        }
        assert_true(tn_meter_value(own) == tn_meter_value(all) &&
                    fabs(tn_meter_value(all) - 4.0 / 6) < 1e-12);
        assert_true(fabs(tn_meter_value(last) - 0.1) < 1e-6);
        tn_meter_reset(all);
        for (size_t i = 0; i < 6; i++)
            assert_true(isnan(tn_meter_value(tn_meter_at(all, i))));
        tn_meter_reset(own);
        tn_meter_reset(last);
    }
    assert_string_equal(tn_meter_name(own), "hits");
    assert_string_equal(tn_meter_name(last), "custom");
    assert_null(tn_meter_at(all, 6));
    assert_null(tn_meter_at(NULL, 0));
    assert_null(tn_meter_name(NULL));
    assert_int_equal(tn_meter_count(NULL), 0);
    nn_close(app);
}

/* Of pixels along axis 1, of steps along the last one. */
static void accuracies(const tn_x *in, tn_x *out)
{
    out[0] = tn_accuracy(in[0], in[1]);
}

static void test_axes(void **state)
{
    static const int64_t shape[] = {2, 3, 4}, labels[2][2] = {{2, 4}, {2, 3}};

    (void)state;
    for (int last = 0; last < 2; last++)
        for (int hybrid = 0; hybrid < 2; hybrid++) {
            tn_app *app = nn_open(NULL);
            tn_net *net = tn_net_functions(app, accuracies, .inputs = {"x", "y"});
            tn_array *in[] = {nn_array(app, 3, shape, 1), NULL}, *out = NULL;
            tn_meter *m = tn_meter_new(app, "acc");
            float x[24], right[8] = {0}, got[8];
            double sum = 0;

            (void)nn_read(app, in[0], x, 24);
            for (int i = 0; i < (last ? 6 : 8); i++) /* the class that is right, of each second one */
                for (int k = 0; k < (last ? 4 : 3) && i % 2; k++)
                    if (last ? x[4 * i + k] > x[4 * i + (int)right[i]]
                             : x[i / 4 * 12 + 4 * k + i % 4] > x[i / 4 * 12 + 4 * (int)right[i] + i % 4])
                        right[i] = (float)k;
            for (int i = 0; i < 8; i += 2)
                right[i] = 5; /* none */
            in[1] = tn_app_array(app, 2, labels[last], right);
            if (hybrid)
                tn_net_hybridize(net);
            assert_true(tn_net_run(net, 2, in, 1, &out));
            for (size_t i = 0, n = nn_read(app, out, got, 8); i < n; i++)
                sum += (double)got[i];
            assert_true(sum == (last ? 3 : 4));
            tn_meter_add(m, in[0], in[1]);
            assert_true(tn_meter_value(m) == 0.5);
            nn_close(app);
        }
}

static void test_composite_refused(void **state)
{
    static const char *const lists[] = {
        "accuracy,", ",accuracy", "accuracy,acuracy", "acc, ,ce", "acc ce", "accuracy;loss", " ", "a",
        "acc ,",     ""};
    static const int64_t wide[] = {1, 3}, row[] = {1};
    static const float zeros[3] = {0};
    tn_app *app;

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        app = nn_open(NULL);
        assert_null(tn_meter_open(app, lists[i]));
        nn_close_failed(app, "unknown meter", 2);
    }
    app = nn_open(NULL);
    {
        tn_meter *m = tn_meter_open(app, "mine", .function = hits, .arg = app);

        tn_meter_add(m, tn_app_array(app, 2, wide, zeros), tn_app_array(app, 1, row, zeros));
        assert_true(isnan(tn_meter_value(m)));
        nn_close_failed(app, "metric mine: its function failed", 2);
    }
}

/* 64 in a list, and no more; blanks around names. */
static void test_composite_longest(void **state)
{
    char list[65 * 6] = "";

    (void)state;
    for (size_t count = 1; count <= 65; count++) {
        tn_app *app = nn_open(NULL);
        tn_meter *m;

        strcat(list, count == 1 ? "  acc" : count % 2 ? ", acc" : " ,ce");
        m = tn_meter_open(app, list);
        assert_int_equal(tn_meter_count(m), count > 64 ? 0 : count);
        if (count <= 64)
            assert_string_equal(tn_meter_name(tn_meter_at(m, count - 1)),
                                count % 2 ? "accuracy" : "cross-entropy");
        if (count <= 64)
            nn_close(app);
        else
            nn_close_failed(app, "a list of more than 64 metrics", 2);
    }
}

/* ---- of a module --------------------------------------------------------------------------------------- */

static tn_module *digits_module(tn_app *app)
{
    tn_symbol *s = NULL;
    tn_module *m;

    assert_int_equal(tn_symbol_variable(tn_app_ctx(app), "data", &s), TN_OK);
    s = node(app, "FullyConnected", "fc", (const char *const[]){"num_hidden", "10", NULL}, s);
    s = node(app, "SoftmaxOutput", "softmax", NULL, s);
    m = tn_module_new(app, .symbol = s);
    tn_symbol_release(s);
    return m;
}

typedef struct both {
    tn_meter *train, *valid;
    double seen[4];
} both;

static int32_t both_noted(void *arg, tn_module *m, int64_t epoch, int64_t batch, double train, double valid)
{
    both *b = arg;

    (void)m, (void)epoch;
    if (batch >= 0)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        b->seen[i] = tn_meter_value(tn_meter_at(b->train, i));
        b->seen[2 + i] = tn_meter_value(tn_meter_at(b->valid, i));
    }
    assert_true(train == b->seen[0] && valid == b->seen[2]);
    return 0;
}

static int32_t valid_noted(void *arg, tn_module *m, int64_t epoch, int64_t batch, double train, double valid)
{
    (void)m, (void)epoch, (void)batch, (void)train;
    *(double *)arg = valid;
    return 0;
}

/* Several metrics at once, by meters of the program. */
static void measured(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *train = tn_data_open(app, "digits:train", .batch = 50),
            *test = tn_data_open(app, "digits:test", .batch = 50);
    tn_module *m = digits_module(app);
    double valid = 0;
    both b = {tn_meter_open(app, "acc,ce"), tn_meter_open(app, "acc,ce"), {0}};

    (void)state;
    tn_module_fit(m, train, .valid = test, .meter = b.train, .valid_meter = b.valid, .event = both_noted,
                  .arg = &b);
    for (size_t i = 0; i < 4; i++)
        assert_true(b.seen[i] > 0);
    assert_true(tn_module_score(m, test, "ce") == b.seen[3]);
    assert_true(tn_module_score(m, test, "acc,ce") == b.seen[2]);
    assert_true(tn_module_score_by(m, test, tn_meter_at(b.train, 1)) == b.seen[3]);
    assert_true(tn_meter_value(b.train) == b.seen[0]); /* that before it in the list is as it was */
    assert_true(isnan(tn_module_score_by(m, test, NULL)));
    assert_true(isnan(tn_module_score_by(NULL, test, b.train)));
    tn_module_fit(m, train, .valid = test, .meter = b.train, .event = valid_noted, .arg = &valid);
    assert_true(valid > 0);
    assert_true(tn_app_ok(app));
    tn_module_fit(m, train, .valid = test, .meter = b.train, .valid_meter = b.train);
    nn_close_failed(app, ".meter and .valid_meter share a metric", 2);
}

/* A line each two batches, of 23 an epoch; nothing of a clock in it is looked at. */
static void speed_told(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *train = tn_data_open(app, "digits:train", .batch = 64);
    char text[4096] = "", *at = text;
    FILE *out = fmemopen(text, sizeof text, "w");
    tn_speed speed = {.out = out, .every = 2};
    tn_meter *m = tn_meter_open(app, "acc,ce");
    size_t lines = 0;

    (void)state;
    assert_non_null(out);
    tn_module_fit(digits_module(app), train, .meter = m, .epochs = 2, .event = tn_module_speed,
                  .arg = &speed);
    (void)fclose(out);
    for (; *at; lines++) {
        char begin[64];

        (void)snprintf(begin, sizeof begin, "epoch %zu, batch %zu: ", lines / 11, 2 * (lines % 11) + 2);
        assert_memory_equal(at, begin, strlen(begin));
        assert_non_null(at = strstr(at, " samples/s, accuracy 0."));
        assert_non_null(at = strstr(at, ", cross-entropy "));
        assert_non_null(at = strchr(at, '\n'));
        at++;
    }
    assert_int_equal(tn_data_batches(train), 23);
    assert_int_equal(lines, 22);
    nn_close(app);
}

/* Either way round: measuring the one would begin the other anew. */
static void shared(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        tn_app *app = nn_open(NULL);
        tn_data *train = tn_data_open(app, "digits:train", .batch = 50);
        tn_meter *all = tn_meter_open(app, "acc,ce,mse");
        tn_meter *a = tn_meter_at(all, i / 2), *b = tn_meter_at(all, 1 + i % 2);

        tn_module_fit(digits_module(app), train, .meter = i == 1 ? b : a, .valid_meter = i == 1 ? a : b);
        nn_close_failed(app, ".meter and .valid_meter share a metric", 2);
    }
}

/* Of numbers of classes the whole part counts, as accuracy takes it. */
static void test_parts(void **state)
{
    static const int64_t four[] = {4};
    static const float x[2][4] = {{0, 1.75f, 2.5f, 1}, {0, 1, 2, 1}},
                       labels[2][4] = {{0.5f, 1, 2, 0.25f}, {0, 1, 2, 0}};
    double got[2];
    tn_app *app = nn_open(NULL);

    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        tn_meter *m = tn_meter_new(app, "pcc");

        tn_meter_add(m, tn_app_array(app, 1, four, x[whole]), tn_app_array(app, 1, four, labels[whole]));
        got[whole] = tn_meter_value(m);
    }
    assert_true(got[0] == got[1] && got[0] > 0 && got[0] < 1);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_composite),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_composite_refused),
        cmocka_unit_test(test_composite_longest),
        cmocka_unit_test(measured),
        cmocka_unit_test(speed_told),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

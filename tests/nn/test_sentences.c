/* Sentences in buckets: as MXNet's BucketSentenceIter makes their batches, and as data of modules. */
#include "nn/symbols.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"
#include "tenon/nn_module.h"

enum { COUNT = 43, ROOM = 1024, TOKENS = COUNT * 10, WORDS = 12 };

static int32_t tokens[TOKENS];
static int64_t lengths[COUNT];

/* As tests/oracle/data.py has them. */
static int sentences_make(void **state)
{
    size_t used = 0;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        lengths[i] = i * 7 % 10 + 1;
        for (int k = 0; k < lengths[i]; k++)
            tokens[used++] = (i * 5 + k * 3) % 11 + 1;
    }
    return 0;
}

#define SENTENCES .tokens = tokens, .lengths = lengths, .count = COUNT

/* ---- batches ---------------------------------------------------------------------------------- */

/* An array of the recorded file; NULL: there is none. */
static tn_array *recorded(tn_app *app, const tn_params *p, const char *set, int64_t index, const char *what)
{
    char name[64];
    tn_array *a = NULL;

    (void)snprintf(name, sizeof name, "%s:0:%d:%s", set, (int)index, what);
    return tn_params_get(p, name, &a) ? NULL : tn_app_own(app, a);
}

static void same(tn_app *app, tn_array *got, tn_array *want)
{
    float x[ROOM], y[ROOM];
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    size_t count;

    assert_int_equal(tn_array_shape(want, &ndim, &shape), TN_OK);
    nn_shape(got, ndim, shape);
    count = nn_read(app, got, x, ROOM);
    assert_int_equal(nn_read(app, want, y, ROOM), count);
    assert_memory_equal(x, y, count * sizeof *x);
}

static void as_mxnet(void **state)
{
    static const int64_t given[] = {7, 3, 9, 30, 0}, few[] = {2, 4, 8, 0};
    static const struct {
        const char *name;
        const int64_t *buckets;
        int64_t batch;
        int32_t invalid;
        const char *layout;
    } sets[] = {{"given", given, 4, -1, NULL},
                {"usual", NULL, 4, 0, "NT"},
                {"few", few, 3, 0, NULL},
                {"time", given, 4, -1, "TN"}};
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/data/sentences.params",
                   getenv("TENON_TEST_SOURCE"));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        tn_app *app = nn_open(NULL);
        tn_data *d =
            tn_data_from_sentences(app, SENTENCES, .batch = sets[i].batch, .buckets = sets[i].buckets,
                                   .invalid_label = sets[i].invalid, .layout = sets[i].layout);
        tn_params *p = NULL;
        int64_t shape[4];
        char largest[64];
        tn_array *a = NULL;
        float key = 0;
        tn_batch b;

        assert_int_equal(tn_params_load(tn_app_ctx(app), path, NULL, &p), TN_OK);
        (void)snprintf(largest, sizeof largest, "%s:largest", sets[i].name);
        assert_int_equal(tn_params_get(p, largest, &a), TN_OK);
        assert_int_equal(nn_read(app, tn_app_own(app, a), &key, 1), 1);
        tn_data_shape(d, shape);
        assert_true(shape[0] == 1 && shape[1] == (int64_t)key && !shape[2]);
        assert_int_equal(tn_data_bucket(d), 0);
        while (tn_data_next(d, &b)) {
            assert_int_equal(b.n, sets[i].batch);
            assert_int_equal(nn_read(app, recorded(app, p, sets[i].name, b.index, "bucket"), &key, 1), 1);
            assert_int_equal(tn_data_bucket(d), (int64_t)key);
            same(app, b.x, recorded(app, p, sets[i].name, b.index, "data"));
            same(app, tn_data_field(d, "softmax_label"), recorded(app, p, sets[i].name, b.index, "label"));
        }
        assert_int_equal(tn_data_bucket(d), 0);
        assert_null(recorded(app, p, sets[i].name, tn_data_batches(d), "data"));
        assert_non_null(recorded(app, p, sets[i].name, tn_data_batches(d) - 1, "data"));
        tn_params_destroy(p);
        nn_close(app);
    }
}

/* Of each row: its bucket and its tokens, as one number. */
static double row_sum(const float *row, int64_t length)
{
    double sum = (double)length * 1e6;

    for (int64_t k = 0; k < length; k++)
        sum += (double)row[k] * (double)(k + 1) * (double)(k + 3);
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

enum { BATCH = 4, BATCHES = 10, ROWS = BATCH * BATCHES };

/* One epoch: rows in their order. */
static void epoch_read(tn_app *app, tn_data *d, double *rows)
{
    float x[ROOM];
    tn_batch b;
    size_t n = 0;

    while (tn_data_next(d, &b)) {
        const int64_t length = tn_data_bucket(d);

        assert_int_equal(nn_read(app, b.x, x, ROOM), BATCH * length);
        for (int64_t i = 0; i < BATCH; i++)
            rows[n++] = row_sum(x + i * length, length);
    }
    assert_int_equal(n, ROWS);
}

/* Another order in each epoch, of rows and of batches; by the seed it is the same again, and after a seek. */
static void shuffled(void **state)
{
    static const int64_t buckets[] = {5, 10, 0};
    static double plain[ROWS], rows[4][ROWS];
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .buckets = buckets, .shuffle = 1,
                                        .seed = 5),
            *again = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .buckets = buckets, .shuffle = 1,
                                            .seed = 5),
            *ordered = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .buckets = buckets);
    bool mixed = false;

    (void)state;
    for (int i = 0; i < 2; i++)
        epoch_read(app, d, rows[i]);
    epoch_read(app, again, rows[2]);
    assert_memory_equal(rows[0], rows[2], sizeof *rows);
    assert_memory_not_equal(rows[0], rows[1], sizeof *rows);
    tn_data_seek(d, 0, 0);
    epoch_read(app, d, rows[3]);
    assert_memory_equal(rows[0], rows[3], sizeof *rows);
    epoch_read(app, ordered, plain);
    for (size_t i = BATCH; i < ROWS; i++) /* short ones come first in order */
        mixed |= rows[0][i] < 6e6 && rows[0][i - BATCH] > 6e6;
    assert_true(mixed);
    assert_memory_not_equal(plain, rows[0], sizeof plain);
    assert_int_equal(tn_data_count(d), COUNT);
    nn_close(app);
}

/* Shares have each sentence once; a bucket of one of them may lack others. */
static void shares(void **state)
{
    static const int64_t buckets[] = {10, 0};
    double all[COUNT], parts[COUNT];
    tn_app *app = nn_open(NULL);
    size_t n = 0, m = 0;

    (void)state;
    for (int64_t part = -1; part < 3; part++) {
        tn_data *d = tn_data_from_sentences(app, SENTENCES, .batch = 1, .buckets = buckets,
                                            .parts = part < 0 ? 0 : 3, .part = part < 0 ? 0 : part);
        float x[10];
        tn_batch b;

        while (tn_data_next(d, &b)) {
            assert_int_equal(nn_read(app, b.x, x, 10), 10);
            *(part < 0 ? &all[n++] : &parts[m++]) = row_sum(x, 10);
        }
    }
    assert_true(n == COUNT && m == COUNT);
    qsort(all, COUNT, sizeof *all, by_size);
    qsort(parts, COUNT, sizeof *parts, by_size);
    assert_memory_equal(all, parts, sizeof all);
    nn_close(app);
}

/* ---- modules ---------------------------------------------------------------------------------- */

/* Scores of the next word at each step, of a text of `key` steps: no other length fits. As MXNet's example of
 * bucketing, with a sum over the steps so far instead of an LSTM. */
static tn_symbol *language(void *arg, tn_app *app, int64_t key)
{
    char shape[32];
    tn_symbol *s;

    *(int *)arg += 1;
    (void)snprintf(shape, sizeof shape, "(-1, %d, 16)", (int)key);
    s = node(app, "Embedding", "embed", LIST("input_dim", "12", "output_dim", "16"), variable(app, "data"));
    s = node(app, "Reshape", NULL, LIST("shape", shape), s);
    s = node(app, "Reshape", NULL, LIST("shape", "(-1, 16)"), s);
    s = node(app, "FullyConnected", "pred", LIST("num_hidden", "12"), s);
    return symbol_node(tn_app_ctx(app), "SoftmaxOutput", "softmax",
                       LIST("use_ignore", "1", "ignore_label", "0"), s,
                       node(app, "Reshape", NULL, LIST("shape", "(-1,)"), variable(app, "softmax_label")));
}

/* Training, score and prediction go through the buckets of the batches, whatever bucket came first; step by
 * step it is the same. The next word follows from a word here. */
static void trained(void **state)
{
    static float whole[ROOM], by_hand[ROOM];
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .shuffle = 1, .seed = 3);
    tn_data *other = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .shuffle = 1, .seed = 3);
    tn_meter *meter = tn_meter_open(app, "perplexity", .ignore = 0, .ignores = 1);
    int calls = 0;
    tn_module *m = tn_module_new(app, .bucket = language, .arg = &calls, .key = 4), *steps;
    size_t count;
    tn_batch b;

    (void)state;
    tn_module_fit(m, d, .epochs = 1, .meter = meter);
    assert_true(tn_app_ok(app));
    assert_int_equal(calls, 10); /* lengths 1 to 10 */
    count = nn_read_module(app, m, whole, ROOM);
    steps = tn_module_new(app, .bucket = language, .arg = &calls, .key = 10);
    tn_module_bind(steps, .shapes = {{BATCH, 10}}, .label_shapes = {{BATCH, 10}});
    tn_module_init_params(steps);
    tn_module_init_optimizer(steps);
    while (tn_data_next(other, &b)) {
        tn_module_switch(steps, tn_data_bucket(other));
        tn_module_forward(steps, 1, 2, (tn_array *[]){b.x, b.y});
        tn_module_backward(steps, NULL);
        tn_module_update(steps);
    }
    assert_int_equal(nn_read_module(app, steps, by_hand, ROOM), count);
    assert_memory_equal(whole, by_hand, count * sizeof *whole);
    tn_module_init_optimizer(m, .optimizer = "adam", .lr = 0.05);
    tn_module_fit(m, d, .epochs = 40, .first = 1, .meter = meter);
    assert_true(tn_module_score_by(m, d, meter) < 1.2);
    nn_shape(tn_module_predict(m, d, 0), 2, (int64_t[]){4 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10), WORDS});
    nn_close(app);
}

/* A module with one symbol takes lengths as shapes, as long as its parameters fit. */
static void one_symbol(void **state)
{
    static const int64_t buckets[] = {5, 10, 0};
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .buckets = buckets);
    tn_symbol *s =
        node(app, "Embedding", "embed", LIST("input_dim", "12", "output_dim", "12"), variable(app, "data"));
    tn_module *m;

    (void)state;
    s = symbol_node(tn_app_ctx(app), "SoftmaxOutput", "softmax", LIST("preserve_shape", "1"), s,
                    variable(app, "softmax_label"));
    m = tn_module_new(app, .symbol = s);
    tn_symbol_release(s);
    tn_module_fit(m, d, .epochs = 1, .metric = "perplexity");
    nn_close(app);
}

/* ---- what goes wrong -------------------------------------------------------------------------- */

static void refused(void **state)
{
    static const int32_t large[] = {1 << 24, (1 << 24) + 1}, small[] = {INT32_MIN};
    static const int64_t two[] = {2}, one[] = {1}, below[] = {-1}, much[] = {INT64_MAX}, zero[] = {0},
                         b2[] = {2, 0}, b_below[] = {2, -1, 0}, b_much[] = {INT64_MAX, 0}, b1[] = {1, 0};
    static int64_t many[300];
    const struct {
        tn_sentences_options o;
        const char *text;
    } rows[] = {
        {{.count = 1}, ".tokens or .lengths is missing"},
        {{.tokens = large, .count = 1}, ".tokens or .lengths is missing"},
        {{.lengths = two, .count = 1}, ".tokens or .lengths is missing"},
        {{.tokens = large, .lengths = two}, ".count not 1"},
        {{.tokens = large, .lengths = two, .count = -1}, ".count not 1"},
        {{.tokens = large, .lengths = two, .count = INT64_MAX}, ".count not 1"},
        {{.tokens = large, .lengths = below, .count = 1, .batch = 1}, "sentence 0 has -1 tokens"},
        {{.tokens = large, .lengths = much, .count = 1, .batch = 1}, "0 to 2^20 are allowed"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .last = "pad"}, ".last is \"pad\""},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .last = "none"}, "none"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .layout = "T"}, ".layout is \"T\""},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .layout = ""}, "neither NT nor TN"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1}, "token 16777217 is not within 2^24"},
        {{.tokens = small, .lengths = one, .count = 1, .batch = 1}, "token -2147483648"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 2}, "no length has a batch of 2"},
        {{.tokens = large, .lengths = zero, .count = 1, .batch = 1}, "no length has a batch of 1"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 2, .buckets = b2},
         "no bucket has a batch of 2"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .buckets = b1}, "no bucket has a batch"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .buckets = b_below},
         "a bucket of -1 tokens"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .buckets = b_much}, "1 to 2^20 tokens"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .buckets = many}, "more than 256 buckets"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = -1}, ".batch is out of range"},
        {{.tokens = large, .lengths = two, .count = 1, .parts = 2, .part = 2}, "part 2 of 2"},
        {{.tokens = large, .lengths = two, .count = 1, .batch = 1, .parts = 2}, "no length has a batch"},
    };

    (void)state;
    for (size_t i = 0; i < 299; i++)
        many[i] = 7;
    assert_null(tn_data_from_sentences_(NULL, NULL));
    assert_int_equal(tn_data_bucket(NULL), 0);
    for (size_t i = 0; i <= sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);
        tn_sentences_options o = i ? rows[i - 1].o : (tn_sentences_options){.count = 0};

        o.struct_size = (uint32_t)sizeof o;
        assert_null(tn_data_from_sentences_(app, i ? &o : NULL));
        assert_int_equal(tn_app_status(app), TN_E_ARG);
        nn_close_failed(app, i ? rows[i - 1].text : ".tokens or .lengths is missing", 2);
    }
}

/* Trainings cut batches along the first axis: they say that these have another one. */
static void time_major(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_net *net = tn_net_new(app);

    (void)state;
    tn_net_dense(net, .units = 3);
    (void)tn_train_run(
        tn_train_open(app, .net = net, .labels = {"softmax_label"},
                      .train_data = tn_data_from_sentences(app, SENTENCES, .batch = BATCH, .layout = "TN")));
    assert_int_equal(tn_app_status(app), TN_E_UNSUPPORTED);
    nn_close_failed(app, "has layout TN", 1);
}

/* Sentences longer than the largest bucket are told of; without tokens there is a row of fillers. */
static void left_out(void **state)
{
    static const int64_t buckets[] = {3, 2, 3, 0}, four[] = {0, 4, 3, 1};
    static const int32_t text[] = {1, 2, 3, 4, 5, 6, 7, 8};
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_sentences(app, .tokens = text, .lengths = four, .count = 4, .batch = 1,
                                        .buckets = buckets, .invalid_label = 9, .data_name = "words",
                                        .label_name = "next", .name = "text");
    float x[3];
    tn_batch b;

    (void)state;
    assert_string_equal(tn_data_name(d), "text");
    assert_int_equal(tn_data_batches(d), 3);
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, tn_data_field(d, "words"), x, 3), 2);
    assert_true(x[0] == 9 && x[1] == 9);
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, tn_data_field(d, "next"), x, 3), 2);
    assert_true(x[0] == 9 && x[1] == 9);
    assert_int_equal(nn_read(app, tn_data_field(d, "words"), x, 3), 2);
    assert_true(x[0] == 8 && x[1] == 9);
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, tn_data_field(d, "next"), x, 3), 3);
    assert_true(x[0] == 6 && x[1] == 7 && x[2] == 9);
    assert_false(tn_data_next(d, &b));
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_mxnet), cmocka_unit_test(shuffled),   cmocka_unit_test(shares),
        cmocka_unit_test(trained),  cmocka_unit_test(one_symbol), cmocka_unit_test(refused),
        cmocka_unit_test(left_out), cmocka_unit_test(time_major),
    };

    return cmocka_run_group_tests(tests, sentences_make, NULL);
}

/*
 * Data sets of files and arrays beyond what MXNet's iterators were asked: last batches with shuffling,
 * positions, shares, filler in figures, damaged files, wrong options. The last test: no NULL is left out of
 * nn_data.h.
 */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/nulls.h"
#include "support/scratch.h"
#include "tenon/nn_data.h"

#define N 10

static tn_array *numbers(tn_app *app, int64_t count, int64_t width)
{
    static float x[4096];

    for (int64_t i = 0; i < count * width; i++)
        x[i] = (float)i;
    return tn_app_array(app, 2, (int64_t[]){count, width}, x);
}

/* ---- last batches and positions ---- */

/* Every sample of an epoch comes once, as far as the batch is no filler, in an order of its own. */
static void test_shuffled(void **state)
{
    static const char *const lasts[] = {"keep", "pad", "discard", "roll_over", "round"};

    (void)state;
    for (size_t l = 0; l < 5; l++) {
        tn_app *app = nn_open(NULL);
        tn_data *d = tn_data_from_arrays(app, .fields = {{"x", numbers(app, N, 1)}}, .batch = 4, .shuffle = 1,
                                         .seed = 3, .last = lasts[l]);
        float seen[64], x[4];
        size_t count = 0;
        int64_t epoch = 0;
        tn_batch b;

        while (epoch < 4) {
            if (!tn_data_next(d, &b)) {
                epoch++;
                continue;
            }
            assert_int_equal(b.n, l || b.index < 2 ? 4 : 2);
            (void)nn_read(app, b.x, x, 4);
            /* of `round` the filler is of the next epoch, which leaves it out */
            for (int64_t i = 0; i < b.n - (l == 1 ? tn_data_filler(d) : 0); i++)
                seen[count++] = x[i];
        }
        assert_true(tn_app_ok(app));
        assert_int_equal(count, l == 2 ? 32 : 40);
        for (size_t e = 0; e < 4 && l != 2; e++) { /* 10 of the stream are an epoch's */
            int times[N] = {0};

            for (size_t i = 0; i < N; i++)
                times[(int)seen[N * e + i]]++;
            for (size_t i = 0; i < N; i++)
                assert_int_equal(times[i], 1);
            if (e)
                assert_memory_not_equal(seen + N * e, seen + N * e - N, N * sizeof *seen);
        }
        nn_close(app);
    }
}

/* The batch at a position is the same whatever was read before. */
static void test_seek(void **state)
{
    static const char *const lasts[] = {"keep", "pad", "discard", "roll_over", "round"};

    (void)state;
    for (size_t l = 0; l < 5; l++) {
        tn_app *app = nn_open(NULL);
        tn_data *d = tn_data_from_arrays(app, .fields = {{"x", numbers(app, N, 1)}}, .batch = 4, .shuffle = 1,
                                         .seed = 9, .last = lasts[l]);
        float kept[4][4][4] = {{{0}}}, x[4];
        int64_t batches[4];
        tn_batch b;

        for (int e = 0; e < 4; e++) {
            batches[e] = tn_data_batches(d);
            for (int i = 0; tn_data_next(d, &b); i++)
                (void)nn_read(app, b.x, kept[e][i], 4);
        }
        for (int e = 3; e >= 0; e--)
            for (int64_t i = batches[e] - 1; i >= 0; i--) {
                tn_data_seek(d, e, i);
                assert_int_equal(tn_data_next(d, &b), 1);
                assert_true(b.epoch == e && b.index == i);
                (void)nn_read(app, b.x, x, 4);
                assert_memory_equal(x, kept[e][i], (size_t)b.n * sizeof *x);
            }
        tn_data_seek(d, (int64_t)1 << 30, 0); /* far away */
        assert_int_equal(tn_data_next(d, &b), 1);
        assert_true(tn_app_ok(app));
        tn_data_seek(d, INT64_MAX - 1, 0);
        assert_int_equal(tn_app_ok(app), l < 3); /* a stream has an end */
        if (l < 3)
            nn_close(app);
        else
            nn_close_failed(app, "there is no batch", 2);
    }
}

/* Labels that are no numbers of classes are refused before they count anything. */
static void test_no_classes(void **state)
{
    static const float labels[][4] = {{0, 1, -1, 0}, {0, 1, 0.5f, 0}, {0, 1, NAN, 0}, {0, 1, 1e30f, 0}};
    static const int64_t pairs[] = {4, 2};

    (void)state;
    for (size_t i = 0; i <= sizeof labels / sizeof *labels; i++) { /* the last one: without labels */
        tn_app *app = nn_open(NULL);
        tn_net *net = tn_net_new(app);
        const bool has = i < sizeof labels / sizeof *labels;
        tn_data *d = tn_data_from_arrays(
            app, .fields = {{"data", nn_array(app, 2, pairs, 1)},
                            {has ? "label" : NULL, tn_app_array(app, 1, pairs, labels[has ? i : 0])}});
        tn_evaluation e = {.struct_size = sizeof e};

        tn_net_dense(net, .units = 2);
        tn_net_init(net, .shape = {4, 2});
        assert_true(tn_app_ok(app));
        assert_false(tn_net_evaluate(net, d, &e));
        nn_close_failed(app, "has no labels that are numbers of classes", 2);
    }
}

/* Behind the last number of an epoch there is none. */
static void test_last_epoch(void **state)
{
    static const char *const lasts[] = {"keep", "roll_over"};

    (void)state;
    for (int l = 0; l < 2; l++) {
        tn_app *app = nn_open(NULL);
        tn_data *d =
            tn_data_from_arrays(app, .fields = {{"x", numbers(app, 4, 1)}}, .batch = 2, .last = lasts[l]);
        int64_t epoch = 0;
        tn_batch b;

        tn_data_seek(d, l ? (int64_t)1 << 30 : INT64_MAX, 2);
        assert_int_equal(tn_data_next(d, &b), 0);
        tn_data_tell(d, &epoch, NULL);
        assert_true(epoch > 0);
        nn_close_failed(app, "no more epochs", 2);
    }
}

/* Epochs end also where each needs more than one of them to fill a batch. */
static void test_few(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *d =
        tn_data_from_arrays(app, .fields = {{"x", numbers(app, 3, 1)}}, .batch = 8, .last = "roll_over");
    tn_data *pad = tn_data_from_arrays(app, .fields = {{"x", numbers(app, 3, 1)}}, .batch = 8, .last = "pad");
    float x[8];
    int given = 0;
    tn_batch b;

    (void)state;
    for (int epoch = 0; epoch < 8; epoch++)
        while (tn_data_next(d, &b)) {
            assert_true(b.n == 8 && b.index == 0);
            given++;
        }
    assert_int_equal(given, 3); /* of 24 */
    assert_int_equal(tn_data_next(pad, &b), 1);
    assert_int_equal(tn_data_filler(pad), 5);
    (void)nn_read(app, b.x, x, 8);
    for (int i = 0; i < 8; i++)
        assert_true(x[i] == (float)(i % 3));
    nn_close(app);
}

static void test_shares(void **state)
{
    tn_app *app = nn_open(NULL);

    (void)state;
    for (int64_t count = 1; count < 60; count += 7)
        for (int64_t parts = 1; parts <= count; parts += 1 + parts / 3) {
            int64_t next = 0;

            for (int64_t part = 0; part < parts; part++) {
                tn_data *d = tn_data_from_arrays(app, .fields = {{"x", numbers(app, count, 1)}}, .batch = 64,
                                                 .parts = parts, .part = part);
                float x[64];
                tn_batch b;

                assert_int_equal(tn_data_next(d, &b), 1);
                (void)nn_read(app, b.x, x, 64);
                for (int64_t i = 0; i < b.n; i++)
                    assert_true(x[i] == (float)next++);
                assert_int_equal(tn_data_next(d, &b), 0);
            }
            assert_int_equal(next, count);
        }
    nn_close(app);
}

/* ---- figures leave filler out ---- */

static void test_figures(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_array *x = nn_array(app, 2, (int64_t[]){N, 3}, 1), *y = numbers(app, N, 1);
    tn_net *net = tn_net_new(app);
    tn_data *plain, *pad;
    tn_evaluation e = {.struct_size = sizeof e}, f = {.struct_size = sizeof f};

    (void)state;
    tn_net_dense(net, .units = 10);
    tn_net_init(net, .seed = 2);
    y = tn_app_array(app, 1, (int64_t[]){N}, (float[N]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    plain = tn_data_from_arrays(app, .fields = {{"x", x}, {"y", y}}, .batch = 4);
    pad = tn_data_from_arrays(app, .fields = {{"x", x}, {"y", y}}, .batch = 4, .last = "pad");
    assert_true(tn_net_eval(net, plain, "accuracy") == tn_net_eval(net, pad, "accuracy"));
    assert_true(tn_net_eval(net, plain, "loss") == tn_net_eval(net, pad, "loss"));
    nn_close(app);

    app = nn_open(NULL);
    net = tn_net_zoo(app, "zoo:lenet");
    tn_net_init(net);
    plain = tn_data_open(app, "digits:test", .batch = 64);
    pad = tn_data_open(app, "digits:test", .batch = 64, .last = "round");
    assert_true(tn_net_evaluate(net, plain, &e) && tn_net_evaluate(net, pad, &f));
    assert_true(e.samples == f.samples && e.right == f.right && fabs(e.loss - f.loss) < 1e-6);
    nn_close(app);

    app = nn_open(NULL);
    net = tn_net_zoo(app, "zoo:lenet");
    assert_int_equal(
        tn_fit(net, tn_data_open(app, "digits:train", .batch = 64, .last = "roll_over"), .epochs = 1), 0);
    nn_close_failed(app, "keep or discard", 2);
}

/* ---- files ---- */

static void test_csv(void **state)
{
    tn_app *app = nn_open(NULL);
    const char *path = scratch_write("a.csv", "p,q,r\n1,2,0\n3,4,1\n5,6,2\n7,8,3\n", 30);
    const char *more = scratch_write("b.csv", "10\n20\n30\n40\n", 12);
    tn_data *d = tn_data_from_csv(app, path, .batch = 3);
    float x[8], y[4], z[4];
    int64_t next = 0;
    char hex[65], other[65];
    tn_batch b;

    (void)state;
    assert_int_equal(tn_data_next(d, &b), 1);
    nn_shape(b.x, 2, (int64_t[]){3, 2});
    nn_shape(b.y, 1, (int64_t[]){3});
    (void)nn_read(app, b.x, x, 6);
    assert_memory_equal(x, ((float[]){1, 2, 3, 4, 5, 6}), 6 * sizeof *x);
    assert_int_equal(tn_data_classes(d), 4);
    assert_string_equal(tn_data_file(d, 0), path);
    assert_true(tn_data_sha256(d, hex));
    for (int64_t part = 0; part < 2; part++) { /* columns of three files and shapes, row by row */
        d = tn_data_from_csv(
            app, path, .parts = 2, .part = part, .batch = 4,
            .fields = {{"first", .count = 1, .shape = {1, 1}}, {"both", .first = 1}, {"more", .path = more}});
        assert_true(tn_data_sha256(d, other));
        assert_string_not_equal(hex, other);
        assert_int_equal(tn_data_next(d, &b), 1);
        nn_shape(b.x, 3, (int64_t[]){b.n, 1, 1});
        nn_shape(b.y, 2, (int64_t[]){b.n, 2});
        (void)nn_read(app, b.x, x, 4);
        (void)nn_read(app, b.y, y, 8);
        (void)nn_read(app, tn_data_field(d, "more"), z, 4);
        for (int64_t i = 0; i < b.n; i++, next++)
            assert_true(x[i] == (float)(2 * next + 1) && y[2 * i + 1] == (float)next &&
                        z[i] == (float)(10 * next + 10));
    }
    assert_int_equal(next, 4);
    nn_close(app);
}

/* Records with one label and two; float32 and bytes; shares. */
static void test_records(void **state)
{
    (void)state;
    for (int width = 1; width <= 2; width++) {
        const char *path = scratch_path("x.rec");
        tn_app *app = nn_open(NULL);
        tn_record_writer *w = NULL;
        int64_t next = 0;

        assert_int_equal(tn_record_create(path, NULL, &w), TN_OK);
        for (uint64_t i = 0; i < 20; i++) {
            const float labels[] = {(float)i, (float)i / 2}, x[] = {(float)i, -(float)i, 0.25f};
            const uint8_t bytes[] = {(uint8_t)i, 255, 0};
            tn_record_header h = {.struct_size = TN_SIZE(tn_record_header), .label = (float)i, .id = i};
            void *made = NULL;
            uint64_t size = 0;

            if (width == 2) {
                h.label_count = 2;
                h.labels = labels;
            }
            assert_int_equal(
                tn_record_pack(&h, width == 2 ? (const void *)bytes : x, width == 2 ? 3 : 12, &made, &size),
                TN_OK);
            assert_int_equal(tn_record_append(w, i, made, size), TN_OK);
            tn_free(made);
        }
        assert_int_equal(tn_record_finish(w), TN_OK);
        for (int64_t part = 0; part < 3; part++) {
            tn_data *d =
                tn_data_from_records(app, path, .shape = {3}, .label_width = width, .parts = 3, .part = part,
                                     .dtype = width == 2 ? TN_U8 : TN_F32, .batch = 64);
            float x[60], y[40];
            tn_batch b;

            assert_int_equal(tn_data_next(d, &b), 1);
            nn_shape(b.x, 2, (int64_t[]){b.n, 3});
            nn_shape(b.y, width, (int64_t[]){b.n, 2});
            (void)nn_read(app, b.x, x, 60);
            (void)nn_read(app, b.y, y, 40);
            for (int64_t i = 0; i < b.n; i++, next++)
                assert_true(x[3 * i] == (width == 2 ? (float)next / 255.0f : (float)next) &&
                            y[width * i] == (float)next);
        }
        assert_int_equal(next, 20);
        nn_close(app);
    }
}

/* A csr field: batches have the rows, in the order of the epoch; data is the same as itself only. */
static void test_sparse(void **state)
{
    tn_app *app = nn_open(NULL);
    const char *path = scratch_write("x.svm", "0 1:1\n1\n2 0:2 3:4\n3 2:5\n4 0:6\n", 30);
    tn_data *d = tn_data_from_libsvm(app, path, .batch = 2, .shuffle = 1, .seed = 4);
    static const float rows[5][4] = {{0, 1}, {0}, {2, 0, 0, 4}, {0, 0, 5}, {6}};
    tn_array *dense = NULL;
    int seen = 0;
    char hex[65];
    tn_batch b;

    (void)state;
    while (tn_data_next(d, &b)) {
        float x[8], y[2];

        assert_int_equal(tn_array_storage(b.x), TN_STORAGE_CSR);
        assert_int_equal(tn_array_to_storage(tn_app_ctx(app), b.x, TN_STORAGE_DENSE, &dense), TN_OK);
        assert_int_equal(tn_array_read(dense, x, (uint64_t)b.n * 4 * sizeof *x), TN_OK);
        tn_array_release(dense);
        (void)nn_read(app, b.y, y, 2);
        for (int64_t i = 0; i < b.n; i++, seen++)
            assert_memory_equal(x + 4 * i, rows[(int)y[i]], sizeof rows[0]);
    }
    assert_int_equal(seen, 5);
    assert_true(tn_data_sha256(d, hex));
    nn_close(app);
}

/* ---- refused ---- */

typedef tn_data *(*open_fn)(tn_app *app, const char *path);

static tn_data *csv_columns(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .first = 1, .count = 2}});
}
static tn_data *csv_first(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .first = -1}});
}
static tn_data *csv_least(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .first = INT64_MIN}});
}
static tn_data *csv_most(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .first = 1, .count = INT64_MAX}});
}
static tn_data *csv_behind(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .first = 2}});
}
static tn_data *csv_shape(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .count = 2, .shape = {3}}});
}
static tn_data *csv_negative(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .shape = {-3}}});
}
static tn_data *csv_large(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .shape = {65536, 65536, 65536, 65536}}});
}
static tn_data *csv_twice(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{"x", .count = 1}, {"x", .count = 1}});
}
static tn_data *csv_absent(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{.name = "x"}, {"y", .path = "/nowhere/y.csv"}});
}
static tn_data *csv_name(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .fields = {{.name = "x y"}});
}
static tn_data *csv_plain(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .batch = 2);
}
static tn_data *csv_last(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .last = "rollover");
}
static tn_data *csv_part(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .parts = 2, .part = 2);
}
static tn_data *csv_parts(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .parts = -1);
}
static tn_data *csv_batch(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .batch = -1);
}
static tn_data *csv_discard(tn_app *app, const char *path)
{
    return tn_data_from_csv(app, path, .batch = 8, .last = "discard");
}
static tn_data *svm(tn_app *app, const char *path)
{
    return tn_data_from_libsvm(app, path, .columns = 3);
}
static tn_data *svm_columns(tn_app *app, const char *path)
{
    return tn_data_from_libsvm(app, path, .columns = -3);
}
static tn_data *svm_labels(tn_app *app, const char *path)
{
    return tn_data_from_libsvm(app, path, .labels = scratch_write("one.svm", "0 0:1\n", 6));
}
static tn_data *idx(tn_app *app, const char *path)
{
    return tn_data_from_idx(app, path);
}
static tn_data *idx_divisor(tn_app *app, const char *path)
{
    return tn_data_from_idx(app, path, .divisor = -1);
}
static tn_data *cifar(tn_app *app, const char *path)
{
    return tn_data_from_cifar(app, path);
}
static tn_data *cifar_classes(tn_app *app, const char *path)
{
    return tn_data_from_cifar(app, path, .classes = 11);
}
static tn_data *cifar_folder(tn_app *app, const char *path)
{
    (void)path;
    return tn_data_from_cifar(app, "/");
}
static tn_data *records(tn_app *app, const char *path)
{
    return tn_data_from_records(app, path, .shape = {2});
}
static tn_data *records_type(tn_app *app, const char *path)
{
    return tn_data_from_records(app, path, .dtype = TN_F64);
}

static void test_refused(void **state)
{
    static char pixels[3073];
    static const struct {
        open_fn open;
        const char *text;
        size_t bytes;
        const char *says;
        int code;
    } rows[] = {
        {csv_columns, "1,2\n", 4, "asks for columns 1 to 2, the file has 2", 1},
        {csv_first, "1,2\n", 4, "asks for columns -1", 1},
        {csv_least, "1,2\n", 4, "asks for columns -9223372036854775808 to", 1},
        {csv_most, "1,2\n", 4, "asks for columns 1 to", 1},
        {csv_behind, "1,2\n", 4, "asks for columns 2 to 2, the file has 2", 1},
        {csv_shape, "1,2\n", 4, "which its shape does not hold", 1},
        {csv_negative, "1,2\n", 4, "a dimension of -3", 1},
        {csv_large, "1,2\n", 4, "a dimension of 65536", 1},
        {csv_twice, "1,2\n", 4, "two fields \"x\"", 2},
        {csv_absent, "1,2\n", 4, "/nowhere/y.csv", 2},
        {csv_name, "1,2\n", 4, "its name needs", 2},
        {csv_plain, "1\n2\n", 4, "has one column; .fields says", 4},
        {csv_plain, "1,2\nx,3\n", 8, ":2:1: \"x\" is no number", 4},
        {csv_plain, "", 0, "holds no numbers", 4},
        {csv_last, "1,2\n", 4, "did you mean \"roll_over\"", 2},
        {csv_part, "1,2\n", 4, "part 2 of 2", 2},
        {csv_parts, "1,2\n", 4, "part 0 of -1", 2},
        {csv_batch, "1,2\n", 4, ".batch is out of range", 2},
        {csv_discard, "1,2\n", 4, "a batch of 8, but there are 1 samples", 2},
        {svm, "0 5:1\n", 6, "index 5, but there are 3 columns", 4},
        {svm_columns, "0 5:1\n", 6, "columns below 0", 2},
        {svm_labels, "0 5:1\n1\n", 8, "\"label\" has 1 samples, another number than data", 1},
        {idx, "\0\0\10\1\0\0\0\1x", 9, "has 1 dimensions", 4},
        {idx, "\0\0\10\3\0\0\0\1\0\0\0\0\0\0\0\1", 16, "holds no pixels", 4},
        {idx, "\0\0", 2, "is no IDX file", 4},
        {idx_divisor, "x", 1, ".divisor is -1", 2},
        {cifar, pixels, 3072, "has 3072 bytes; a file of CIFAR-10 has 3073", 4},
        {cifar, "", 0, "has 0 bytes", 4},
        {cifar, pixels, 3073, "label 12, but there are 10 classes", 4},
        {cifar_classes, pixels, 3073, ".classes is 11", 2},
        {cifar_folder, "", 0, "/ cannot be read", 1},
        {records, "\0\0\0\0\0\0\0\0", 8, "no record begins here", 4},
        {records, "\x0a\x23\xd7\xce\4\0\0\0abcd", 12, "has no header of 24", 4},
        {records, "\x0a\x23\xd7\xce\30\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32,
         "1 labels and 0 bytes; 1 and 8 are needed", 4},
        {records, "\x0a\x23\xd7\xce\30\0\0\0\377\377\377\377\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32,
         "cannot have 4294967295 labels", 4},
        {records, "", 0, "holds no records", 4},
        {records_type, "", 0, ".dtype is to be", 2},
    };

    (void)state;
    pixels[0] = 12;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);

        if (rows[i].open(app, scratch_write("bad", rows[i].text, rows[i].bytes)))
            fail_msg("row %zu is read", i);
        if (!strstr(tn_app_error(app), rows[i].says))
            fail_msg("row %zu: %s", i, tn_app_error(app));
        if (tn_app_exit_code(app) != rows[i].code)
            fail_msg("row %zu: exit code %d", i, tn_app_exit_code(app));
        nn_close_failed(app, rows[i].says, rows[i].code);
    }
}

static void test_arguments(void **state)
{
    tn_app *app = nn_open(NULL);
    char *header = nulls_source("sdk/include/tenon/nn_data.h"),
         *tests[] = {nulls_source("tests/nn/test_data_files.c"),
                     nulls_source("tests/nn/test_loader.c"),
                     nulls_source("tests/nn/test_transform.c"),
                     nulls_source("tests/nn/test_images.c"),
                     nulls_source("tests/nn/test_sentences.c"),
                     nulls_source("tests/nn/test_vocab.c"),
                     NULL};
    size_t functions = 0;

    (void)state;
#define WRONG(call) (assert_null(call), assert_int_equal(tn_app_status(app), TN_E_ARG), tn_app_clear(app))
    assert_null(tn_data_from_csv_(NULL, "x", NULL));
    assert_null(tn_data_from_libsvm_(NULL, "x", NULL));
    assert_null(tn_data_from_npz_(NULL, "x", NULL));
    assert_null(tn_data_from_idx_(NULL, "x", NULL));
    assert_null(tn_data_from_cifar_(NULL, "x", NULL));
    assert_null(tn_data_from_records_(NULL, "x", NULL));
    WRONG(tn_data_from_csv_(app, NULL, NULL));
    WRONG(tn_data_from_libsvm_(app, NULL, NULL));
    WRONG(tn_data_from_npz_(app, NULL, NULL));
    WRONG(tn_data_from_idx_(app, NULL, NULL));
    WRONG(tn_data_from_cifar_(app, NULL, NULL));
    WRONG(tn_data_from_records_(app, NULL, NULL));
    WRONG(tn_data_from_csv(app, ""));
    nn_close(app);
    assert_int_equal(nulls_missing("nn_data.h", header, tests, &functions), 0);
    assert_true(functions >= 5);
    free(header);
    for (size_t i = 0; tests[i]; i++)
        free(tests[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shuffled),   cmocka_unit_test(test_seek),
        cmocka_unit_test(test_few),        cmocka_unit_test(test_last_epoch),
        cmocka_unit_test(test_no_classes), cmocka_unit_test(test_shares),
        cmocka_unit_test(test_figures),    cmocka_unit_test(test_csv),
        cmocka_unit_test(test_records),    cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

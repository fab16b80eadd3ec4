/*
 * Samplers and split_data as MXNet has them (tests/oracle/data.py), loaders with threads: the order, the
 * bound of what is made ahead, sizes, errors, ends.
 */
#include "nn/support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

/* ---- samplers and slices, beside MXNet --------------------------------------------------------------- */

static tn_params *load(tn_app *app)
{
    tn_params *p = NULL;
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/data/samplers.params",
                   getenv("TENON_TEST_SOURCE"));
    assert_int_equal(tn_params_load(tn_app_ctx(app), path, NULL, &p), TN_OK);
    return p;
}

static int no_second_third(void *arg, int64_t number)
{
    assert_null(arg);
    return number % 3 != 1;
}

static void test_samplers(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_params *p = load(app);
    const struct {
        const char *name;
        tn_sampler *sampler;
    } rows[] = {
        {"keep", tn_sampler_new(app, .count = 10, .batch = 4)},
        {"discard", tn_sampler_new(app, .count = 10, .batch = 4, .last = "discard")},
        {"roll_over", tn_sampler_new(app, .count = 10, .batch = 4, .last = "roll_over")},
        {"few", tn_sampler_new(app, .count = 3, .batch = 4, .last = "roll_over")},
        {"start", tn_sampler_new(app, .count = 5, .start = 7, .batch = 2)},
        {"interval", tn_sampler_new(app, .count = 13, .interval = 3, .batch = 5)},
        {"once", tn_sampler_new(app, .count = 13, .interval = 3, .once = 1, .batch = 5)},
        {"filter", tn_sampler_new(app, .count = 11, .keep = no_second_third, .batch = 4)},
    };

    (void)state;
    assert_true(tn_app_ok(app));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int epoch = 0; epoch < 4; epoch++) {
            const int64_t *numbers = NULL, batches = tn_sampler_batches(rows[i].sampler);
            int64_t n, index = 0;
            tn_array *a = NULL;
            char name[64];
            float want[8];

            for (; (n = tn_sampler_next(rows[i].sampler, &numbers)); index++) {
                (void)snprintf(name, sizeof name, "%s:%d:%d:numbers", rows[i].name, epoch, (int)index);
                if (tn_params_get(p, name, &a))
                    fail_msg("MXNet has no %s", name);
                assert_int_equal(tn_array_count(a), n);
                assert_int_equal(tn_array_read(a, want, (uint64_t)n * sizeof *want), TN_OK);
                for (int64_t k = 0; k < n; k++)
                    if ((float)numbers[k] != want[k])
                        fail_msg("%s: number %d is %d", name, (int)k, (int)numbers[k]);
                tn_array_release(a);
            }
            assert_int_equal(index, batches);
            (void)snprintf(name, sizeof name, "%s:%d:%d:numbers", rows[i].name, epoch, (int)index);
            assert_int_not_equal(tn_params_get(p, name, &a), TN_OK);
        }
    tn_params_destroy(p);
    nn_close(app);
}

static void test_shuffled(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_sampler *s = tn_sampler_new(app, .count = 50, .shuffle = 1, .seed = 3, .batch = 50);
    const int64_t *numbers = NULL;
    int64_t kept[50];
    int times[50] = {0};

    (void)state;
    assert_int_equal(tn_sampler_count(s), 50);
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(tn_sampler_next(s, &numbers), 50);
        for (int i = 0; i < 50; i++)
            times[numbers[i]]++;
        if (epoch)
            assert_memory_not_equal(kept, numbers, sizeof kept);
        memcpy(kept, numbers, sizeof kept);
        assert_int_equal(tn_sampler_next(s, &numbers), 0);
    }
    for (int i = 0; i < 50; i++)
        assert_int_equal(times[i], 3);
    tn_sampler_seek(s, 2, 0);
    assert_int_equal(tn_sampler_next(s, &numbers), 50);
    assert_memory_equal(kept, numbers, sizeof kept);
    nn_close(app);
}

/* An interval above the count gives the numbers as they are; `once`: the first one alone. */
static void test_wide_interval(void **state)
{
    static const int64_t intervals[] = {5, 6, INT64_MAX - 1, INT64_MAX};
    tn_app *app = nn_open(NULL);
    const int64_t *numbers = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof intervals / sizeof *intervals; i++) {
        tn_sampler *all = tn_sampler_new(app, .count = 5, .interval = intervals[i], .batch = 5);
        tn_sampler *once = tn_sampler_new(app, .count = 5, .interval = intervals[i], .once = 1);

        assert_int_equal(tn_sampler_count(all), 5);
        assert_int_equal(tn_sampler_next(all, &numbers), 5);
        for (int64_t k = 0; k < 5; k++)
            assert_int_equal(numbers[k], k);
        assert_int_equal(tn_sampler_count(once), 1);
    }
    nn_close(app);
}

static void test_split(void **state)
{
    static const struct {
        size_t count;
        int32_t axis;
    } rows[] = {{5, 0}, {3, 0}, {2, 1}, {3, 1}, {7, 0}, {2, 2}};
    static const char *const devices[] = {"cpu", "cpu:1", NULL};
    tn_app *app = nn_open(NULL);
    tn_params *p = load(app);
    float x[60], got[60], want[60];
    tn_array *a, *out[8], *w = NULL;

    (void)state;
    for (int i = 0; i < 60; i++)
        x[i] = (float)i;
    a = tn_app_array(app, 3, (int64_t[]){5, 4, 3}, x);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_split_data(app, a, rows[i].count, rows[i].axis - (i % 2 ? 3 : 0), 1, out), 1);
        for (size_t k = 0; k < rows[i].count; k++) {
            const int64_t *shape = NULL;
            int32_t ndim = 0;
            char name[32];

            (void)snprintf(name, sizeof name, "split:%zu:%zu:%d", rows[i].count, k, rows[i].axis);
            assert_int_equal(tn_params_get(p, name, &w), TN_OK);
            assert_int_equal(tn_array_shape(out[k], &ndim, &shape), TN_OK);
            if (tn_array_count(w)) { /* MXNet's files hold no array of size 0 */
                assert_int_equal(tn_array_shape(w, &ndim, &shape), TN_OK);
                nn_shape(out[k], ndim, shape);
                assert_int_equal(nn_read(app, w, want, 60), nn_read(app, out[k], got, 60));
                assert_memory_equal(got, want, tn_array_bytes(w));
            } else {
                assert_int_equal(tn_array_count(out[k]), 0);
            }
            tn_array_release(w);
        }
    }
    assert_int_equal(tn_split_and_load(app, a, devices, 1, 0, out), 1);
    nn_shape(out[1], 3, (int64_t[]){5, 2, 3});
    assert_int_equal(tn_split_data(app, a, 3, 0, 0, out), 0);
    tn_params_destroy(p);
    nn_close_failed(app, "5 along axis 0 are not cut evenly into 3", 1);
}

/* ---- loaders ----------------------------------------------------------------------------------------- */

typedef struct maker { /* what samples are made of */
    tn_ctx *ctx;
    int64_t bad; /* this one fails; -1: none */
    int64_t odd; /* this one has another shape; -1: none */
    bool ragged; /* sample n has 1 + n % 4 rows */
    atomic_int begun, made;
} maker;

static tn_status make(void *arg, int64_t number, tn_array *out[8])
{
    maker *m = arg;
    const int64_t rows = m->ragged ? 1 + number % 4 : 2 + (number == m->odd), shape[] = {rows, 2};
    const int32_t label = (int32_t)(10 * number);
    float x[10];
    tn_status st;

    atomic_fetch_add(&m->begun, 1);
    if (number == m->bad)
        return tn_array_create(m->ctx, TN_F32, -5, shape, NULL, &out[0]); /* an error of the core */
    for (int i = 0; i < 10; i++)
        x[i] = (float)number + (float)i / 16;
    for (volatile int64_t i = 0; i < (number % 5) * 20000; i++) /* samples take different times */
        ;
    if (!(st = tn_array_from(m->ctx, TN_F32, 2, shape, x, &out[0])))
        st = tn_array_from(m->ctx, TN_I32, 0, NULL, &label, &out[1]);
    atomic_fetch_add(&m->made, 1);
    return st;
}

/* The same batches in the same order, whatever threads there are, over two epochs. */
static void test_order(void **state)
{
    static const struct {
        int workers, prefetch;
    } rows[] = {{0, 0}, {1, 1}, {1, 0}, {4, 1}, {4, 3}, {8, 0}};

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_app *app = nn_open(NULL);
        maker m = {.ctx = tn_app_ctx(app), .bad = -1, .odd = -1};
        tn_sampler *s = tn_sampler_new(app, .count = 30, .batch = 4, .shuffle = 1, .seed = 8);
        tn_sampler *again = tn_sampler_new(app, .count = 30, .batch = 4, .shuffle = 1, .seed = 8);
        tn_loader *l = tn_loader_new(s, .sample = make, .arg = &m, .workers = rows[r].workers,
                                     .prefetch = rows[r].prefetch);
        const size_t ahead = rows[r].prefetch ? (size_t)rows[r].prefetch : 2 * (size_t)rows[r].workers;

        for (int epoch = 0; epoch < 2; epoch++) {
            const int64_t *numbers = NULL;
            int64_t n;
            size_t batches = 0;
            tn_array *out[8];
            float x[16];
            int32_t y[4];

            while ((n = tn_sampler_next(again, &numbers))) {
                assert_int_equal(tn_loader_next(l, out), 2);
                batches++;
                /* no more than what may lie ready, and the batch that is read */
                assert_true((size_t)atomic_load(&m.begun) <=
                            30 * (size_t)epoch + 4 * (batches + (ahead ? ahead : 1)));
                nn_shape(out[0], 3, (int64_t[]){n, 2, 2});
                nn_shape(out[1], 1, &n);
                assert_int_equal(tn_array_read(out[0], x, (uint64_t)n * 16), TN_OK);
                assert_int_equal(tn_array_read(out[1], y, (uint64_t)n * 4), TN_OK);
                for (int64_t i = 0; i < n; i++)
                    assert_true(x[4 * i] == (float)numbers[i] &&
                                x[4 * i + 3] == (float)numbers[i] + 0.1875f && y[i] == 10 * numbers[i]);
            }
            assert_int_equal(tn_loader_next(l, out), 0);
            assert_true(tn_app_ok(app));
        }
        assert_int_equal(atomic_load(&m.made), 60);
        nn_close(app);
    }
}

static void test_pad(void **state)
{
    tn_app *app = nn_open(NULL);
    maker m = {.ctx = tn_app_ctx(app), .bad = -1, .odd = -1, .ragged = true};
    tn_sampler *s = tn_sampler_new(app, .count = 4, .batch = 4);
    tn_loader *l = tn_loader_new(s, .sample = make, .arg = &m, .workers = 2, .pad = 1, .fill = -7);
    tn_array *out[8];
    float x[32];

    (void)state;
    assert_int_equal(tn_loader_next(l, out), 2);
    nn_shape(out[0], 3, (int64_t[]){4, 4, 2});
    (void)nn_read(app, out[0], x, 32);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 8; k++)
            assert_true(x[8 * i + k] == (k < 2 * (i + 1) ? (float)i + (float)k / 16 : -7.0f));
    nn_close(app);
}

/* The batches before come, then the error with the sample's number, then nothing. */
static void test_errors(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 4; workers += 2)
        for (int kind = 0; kind < 2; kind++) {
            tn_app *app = nn_open(NULL);
            maker m = {.ctx = tn_app_ctx(app), .bad = kind ? -1 : 13, .odd = kind ? 13 : -1};
            tn_sampler *s = tn_sampler_new(app, .count = 40, .batch = 4);
            tn_loader *l = tn_loader_new(s, .sample = make, .arg = &m, .workers = workers);
            tn_array *out[8];
            int given = 0;

            while (tn_loader_next(l, out))
                given++;
            assert_int_equal(given, 3);
            assert_int_equal(tn_loader_next(l, out), 0);
            nn_close_failed(app, kind ? "sample 13: an array has another size" : "sample 13: ", 1);
        }
}

/* Each sample is empty, and all of them padded have more bytes than a size can say. */
static tn_status make_wide(void *arg, int64_t number, tn_array *out[8])
{
    const int64_t shapes[2][2] = {{(int64_t)1 << 31, 0}, {0, (int64_t)1 << 31}};

    return tn_array_zeros(arg, TN_U8, 2, shapes[number % 2], NULL, &out[0]);
}

/* A sparse array behind dense ones. */
static tn_status make_sparse(void *arg, int64_t number, tn_array *out[8])
{
    const int64_t shape[] = {2, 2}, starts[] = {0, 0, 0};
    const tn_array_sparse empty = {.struct_size = TN_SIZE(tn_array_sparse),
                                   .storage = TN_STORAGE_CSR,
                                   .dtype = TN_F32,
                                   .ndim = 2,
                                   .shape = shape,
                                   .indptr = starts};

    return number < 3 ? tn_array_zeros(arg, TN_F32, 2, shape, NULL, &out[0])
                      : tn_array_sparse_from(arg, &empty, &out[0]);
}

/* An error of the core that was got over, then one without words. */
static tn_status make_silent(void *arg, int64_t number, tn_array *out[8])
{
    if (number == 1)
        return TN_E_UNSUPPORTED;
    (void)tn_array_create(arg, TN_F32, -5, NULL, NULL, &out[1]);
    return tn_array_zeros(arg, TN_F32, 0, NULL, NULL, &out[0]);
}

static void test_odd_samples(void **state)
{
    static const struct {
        tn_sample_fn sample;
        int32_t pad;
        const char *says;
    } rows[] = {{make_silent, 0, "sample 1: TN_E_UNSUPPORTED"},
                {make_wide, 1, "the batch has too many elements"},
                {make_sparse, 0, "sample 3: an array has too many dimensions, or is sparse"},
                {make_sparse, 1, "sample 3: an array has too many dimensions, or is sparse"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int workers = 0; workers < 2; workers++) {
            tn_app *app = nn_open(NULL);
            tn_loader *l =
                tn_loader_new(tn_sampler_new(app, .count = 4, .batch = 4), .sample = rows[i].sample,
                              .arg = tn_app_ctx(app), .workers = workers, .pad = rows[i].pad);
            tn_array *out[8];

            assert_int_equal(tn_loader_next(l, out), 0);
            assert_non_null(strstr(tn_app_error(app), rows[i].says));
            tn_app_clear(app);
            assert_int_equal(tn_loader_next(l, out), 0); /* no batch behind an error */
            nn_close_failed(app, rows[i].says, 1);
        }
}

/* Closed in the middle, by hand or with the app; two loaders beside each other. */
static void test_ends(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        tn_app *app = nn_open(NULL);
        maker m = {.ctx = tn_app_ctx(app), .bad = -1, .odd = -1}, n = m;
        tn_loader *l = tn_loader_new(tn_sampler_new(app, .count = 1000, .batch = 4), .sample = make,
                                     .arg = &m, .workers = 3);
        tn_loader *other = tn_loader_new(tn_sampler_new(app, .count = 8, .batch = 4), .sample = make,
                                         .arg = &n, .workers = 1);
        tn_array *out[8];

        for (int i = 0; i < round; i++)
            assert_int_equal(tn_loader_next(i % 3 ? l : other, out) != 0, i != 6);
        if (round % 2)
            tn_loader_close(l);
        nn_close(app);
    }
}

/* ---- records by their number -------------------------------------------------------------------------- */

static tn_status read_record(void *arg, int64_t number, tn_array *out[8])
{
    return tn_records_read(arg, number, &out[0]);
}

/* Those that MXNet wrote (tests/oracle/record.py), by threads, backwards too. */
static void test_records(void **state)
{
    static const int64_t bytes[] = {0, 1, 4, 11, 4, 8, 11, 8, 8, 768};
    tn_app *app = nn_open(NULL);
    char path[1024], index[1024];
    tn_array *out[8], *a = NULL;
    tn_records *r;
    tn_loader *l;
    uint8_t text[16];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/record/some.rec",
                   getenv("TENON_TEST_SOURCE"));
    (void)snprintf(index, sizeof index, "%s/tests/oracle/recorded/record/some.idx",
                   getenv("TENON_TEST_SOURCE"));
    r = tn_records_open(app, path, NULL);
    assert_int_equal(tn_records_count(r), 12);
    assert_int_equal(tn_records_count(tn_records_open(app, path, index)), 12);
    l = tn_loader_new(tn_sampler_new(app, .count = 10), .sample = read_record, .arg = r, .workers = 3);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tn_loader_next(l, out), 1);
        nn_shape(out[0], 2, (int64_t[]){1, bytes[i]});
    }
    for (int64_t i = 9; i >= 0; i--) {
        assert_int_equal(tn_records_read(r, i, &a), TN_OK);
        nn_shape(a, 1, &bytes[i]);
        if (i == 3) {
            assert_int_equal(tn_array_read(a, text, 11), TN_OK);
            assert_memory_equal(text, "eleven byte", 11);
        }
        tn_array_release(a);
    }
    assert_int_equal(tn_records_read(r, 12, &a), TN_E_ARG);
    assert_int_equal(tn_records_read(r, -1, &a), TN_E_ARG);
    assert_int_equal(tn_records_read(NULL, 0, &a), TN_E_ARG);
    assert_int_equal(tn_records_read(r, 0, NULL), TN_E_ARG);
    assert_int_equal(tn_records_count(NULL), 0);
    assert_null(tn_records_open(NULL, path, NULL));
    assert_null(tn_records_open(app, NULL, NULL));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    assert_null(tn_records_open(app, index, path)); /* the wrong way round */
    assert_int_equal(tn_app_status(app), TN_E_FORMAT);
    tn_app_clear(app);
    assert_null(tn_records_open(app, "/nowhere/x.rec", NULL));
    nn_close_failed(app, "/nowhere/x.idx", 2);
}

static tn_status nothing(void *arg, int64_t number, tn_array *out[8])
{
    (void)arg;
    (void)number;
    (void)out;
    return TN_OK;
}

static void test_arguments(void **state)
{
    static const char *const devices[] = {"cpu", NULL}, *const unknown[] = {"cpu", "nowhere", NULL};
    tn_app *app = nn_open(NULL);
    tn_sampler *s = tn_sampler_new(app, .count = 4);
    tn_loader *l = tn_loader_new(s, .sample = nothing);
    tn_array *x = nn_array(app, 2, (int64_t[]){4, 2}, 1), *out[8];
    const int64_t *numbers = NULL;

    (void)state;
#define WRONG(call) (assert_false((call)), assert_int_equal(tn_app_status(app), TN_E_ARG), tn_app_clear(app))
#define QUIET(call) (assert_false((call)), assert_true(tn_app_ok(app)))
    QUIET(tn_sampler_new_(NULL, NULL));
    QUIET(tn_sampler_count(NULL));
    QUIET(tn_sampler_batches(NULL));
    QUIET(tn_sampler_next(NULL, &numbers));
    QUIET(tn_sampler_next(s, NULL));
    tn_sampler_seek(NULL, 0, 0);
    QUIET(tn_loader_new_(NULL, NULL));
    QUIET(tn_loader_next(NULL, out));
    QUIET(tn_loader_next(l, NULL));
    tn_loader_close(NULL);
    QUIET(tn_split_data(NULL, x, 2, 0, 0, out));
    QUIET(tn_split_and_load(NULL, x, devices, 0, 0, out));
    WRONG(tn_sampler_new_(app, NULL));
    WRONG(tn_sampler_new(app, .count = -1));
    WRONG(tn_sampler_new(app, .count = INT64_MAX));
    WRONG(tn_sampler_new(app, .count = 4, .interval = -1));
    WRONG(tn_sampler_new(app, .count = 4, .start = INT64_MAX));
    WRONG(tn_sampler_new(app, .count = 4, .batch = -1));
    WRONG(tn_sampler_new(app, .count = 4, .parts = 2, .part = 2));
    WRONG(tn_sampler_new(app, .count = 1, .parts = 2));
    WRONG(tn_sampler_new(app, .count = 4, .batch = 5, .last = "discard"));
    WRONG((tn_sampler_seek(s, -1, 0), 0));
    WRONG((tn_sampler_seek(s, 0, 5), 0));
    WRONG(tn_loader_new_(s, NULL));
    WRONG(tn_loader_new(s, .sample = make, .workers = -1));
    WRONG(tn_loader_new(s, .sample = make, .workers = 100000));
    WRONG(tn_loader_new(s, .sample = make, .prefetch = -1));
    WRONG(tn_split_data(app, NULL, 2, 0, 0, out));
    WRONG(tn_split_data(app, x, 2, 0, 0, NULL));
    WRONG(tn_split_data(app, x, 0, 0, 0, out));
    WRONG(tn_split_data(app, x, 2, 2, 0, out));
    WRONG(tn_split_data(app, x, 2, -3, 0, out));
    WRONG(tn_split_and_load(app, NULL, devices, 0, 0, out));
    WRONG(tn_split_and_load(app, x, NULL, 0, 0, out));
    WRONG(tn_split_and_load(app, x, devices, 0, 0, NULL));
    assert_false(tn_split_and_load(app, x, unknown, 0, 0, out));
    assert_int_equal(tn_app_status(app), TN_E_DEVICE);
    tn_app_clear(app);
    assert_null(tn_sampler_new(app, .count = 4, .last = "rollover"));
    tn_app_clear(app);
    assert_false(tn_loader_next(l, out));
    nn_close_failed(app, "sample 0: no array was made", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samplers),    cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_split),       cmocka_unit_test(test_order),
        cmocka_unit_test(test_pad),         cmocka_unit_test(test_errors),
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_records),     cmocka_unit_test(test_wide_interval),
        cmocka_unit_test(test_odd_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

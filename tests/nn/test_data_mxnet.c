/* The batches that MXNet's iterators make of the files of tests/oracle/data.py. */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define NUMBERS_MAX 16384

static tn_params *recorded;

/* Path of one of the files; good for eight calls. */
static const char *at(const char *name)
{
    static char paths[8][1024];
    static size_t next;
    char *path = paths[next++ % 8];

    (void)snprintf(path, sizeof *paths, "%s/tests/oracle/recorded/data/%s", getenv("TENON_TEST_SOURCE"),
                   name);
    return path;
}

static void numbers_of(tn_array *a, tn_app *app, float *out, size_t *count)
{
    tn_array *dense = NULL;

    assert_int_equal(tn_array_to_storage(tn_app_ctx(app), a, TN_STORAGE_DENSE, &dense), TN_OK);
    *count = (size_t)tn_array_count(dense);
    assert_true(*count <= NUMBERS_MAX);
    assert_int_equal(tn_array_read(dense, out, *count * sizeof *out), TN_OK);
    tn_array_release(dense);
}

/* The array of that name; NULL: none was recorded. */
static tn_array *wanted(const char *set, int64_t epoch, int64_t batch, const char *field)
{
    tn_array *a = NULL;
    char name[128];

    (void)snprintf(name, sizeof name, "%s:%d:%d:%s", set, (int)epoch, (int)batch, field);
    (void)tn_params_get(recorded, name, &a);
    return a;
}

static void field_check(tn_app *app, const char *set, const tn_batch *b, const char *field, tn_array *got)
{
    static float x[NUMBERS_MAX], y[NUMBERS_MAX];
    tn_array *want = wanted(set, b->epoch, b->index, field);
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    size_t m, n;

    if (!want)
        fail_msg("%s: epoch %d has no batch %d", set, (int)b->epoch, (int)b->index);
    assert_int_equal(tn_array_shape(want, &ndim, &shape), TN_OK);
    nn_shape(got, ndim, shape);
    numbers_of(want, app, x, &m);
    numbers_of(got, app, y, &n);
    assert_int_equal(m, n);
    if (memcmp(x, y, m * sizeof *x))
        fail_msg("%s, epoch %d, batch %d: other numbers in \"%s\"", set, (int)b->epoch, (int)b->index, field);
    tn_array_release(want);
}

/* All batches of `epochs` epochs, no more and no fewer than MXNet gives. */
static void check(tn_app *app, const char *set, tn_data *d, const char *const *fields, int epochs,
                  bool filler)
{
    float pad = 0;
    tn_batch b;

    if (!tn_app_ok(app))
        fail_msg("%s: %s", set, tn_app_error(app));
    for (int epoch = 0; epoch < epochs; epoch++) {
        const int64_t batches = tn_data_batches(d);
        tn_array *more;
        int64_t count = 0;

        while (tn_data_next(d, &b)) {
            for (size_t i = 0; fields[i]; i++)
                field_check(app, set, &b, fields[i], tn_data_field(d, fields[i]));
            more = wanted(set, b.epoch, b.index, "pad");
            assert_int_equal(tn_array_read(more, &pad, sizeof pad), TN_OK);
            tn_array_release(more);
            if (filler)
                assert_int_equal(tn_data_filler(d), (int64_t)pad);
            count++;
        }
        if (!tn_app_ok(app))
            fail_msg("%s: %s", set, tn_app_error(app));
        assert_int_equal(count, batches);
        if ((more = wanted(set, epoch, count, fields[0])))
            fail_msg("%s: epoch %d has more than %d batches", set, epoch, (int)count);
    }
}

/* ---- arrays ---- */

static tn_array *counted(tn_app *app, int32_t ndim, const int64_t *shape, float from)
{
    static float x[64];
    size_t count = 1;

    for (int32_t i = 0; i < ndim; i++)
        count *= (size_t)shape[i];
    for (size_t i = 0; i < count; i++)
        x[i] = from + (float)i;
    return tn_app_array(app, ndim, shape, x);
}

static void test_arrays(void **state)
{
    static const char *const lasts[] = {"pad", "discard", "roll_over", "even"};
    static const char *const fields[] = {"a", "b", "y", NULL};

    for (size_t i = 0; i < 4; i++) {
        tn_app *app = *state;
        const int64_t count = i == 3 ? 8 : 10;
        tn_array *a = counted(app, 2, (int64_t[]){count, 2}, 0), *y = counted(app, 1, &count, 0);
        tn_array *b = counted(app, 3, (int64_t[]){count, 3, 1}, 100);
        tn_data *d = tn_data_from_arrays(app, .fields = {{"a", a}, {"b", b}, {"y", y}}, .batch = 4,
                                         .last = i == 3 ? "roll_over" : lasts[i]);
        char set[32];

        (void)snprintf(set, sizeof set, "arrays_%s", lasts[i]);
        check(app, set, d, fields, i == 3 ? 2 : 4, i < 2); /* MXNet calls rows that were not seen filler */
    }
}

/* ---- files ---- */

static const char *const both[] = {"data", "label", NULL};

static void test_csv(void **state)
{
    tn_app *app = *state;

#define LABELLED                                                                                             \
    {                                                                                                        \
        {"data", .path = NULL},                                                                              \
        {                                                                                                    \
            "label", .path = at("y.csv")                                                                     \
        }                                                                                                    \
    }
    check(app, "csv_round",
          tn_data_from_csv(app, at("x.csv"), .fields = LABELLED, .batch = 4, .last = "round"), both, 4, true);
    check(app, "csv_keep", tn_data_from_csv(app, at("x.csv"), .fields = LABELLED, .batch = 4), both, 2,
          false);
    check(app, "csv_even",
          tn_data_from_csv(app, at("x.csv"), .fields = LABELLED, .batch = 5, .last = "round"), both, 2, true);
    check(app, "csv_shape",
          tn_data_from_csv(app, at("x.csv"),
                           .fields = {{"data", .shape = {2, 2}}, {"label", .path = at("y.csv")}}, .batch = 5),
          both, 1, true);
}

static void test_libsvm(void **state)
{
    tn_app *app = *state;
    char set[32];

    check(app, "libsvm_round",
          tn_data_from_libsvm(app, at("x.libsvm"), .batch = 4, .last = "round", .columns = 7), both, 3, true);
    check(app, "libsvm_labels",
          tn_data_from_libsvm(app, at("x.libsvm"), .batch = 4, .last = "round", .columns = 7, .dense = 1,
                              .labels = at("y.libsvm"), .label_columns = 3),
          both, 1, true);
    for (int part = 0; part < 3; part++) {
        (void)snprintf(set, sizeof set, "libsvm_part%d", part);
        check(app, set,
              tn_data_from_libsvm(app, at("x.libsvm"), .batch = 1, .parts = 3, .part = part, .columns = 7),
              both, 1, true);
    }
}

static void test_mnist(void **state)
{
    tn_app *app = *state;
    char set[32];

    check(app, "mnist",
          tn_data_from_idx(app, at("images"), .labels = at("labels"), .batch = 4, .divisor = 256,
                           .last = "discard"),
          both, 2, true);
    check(app, "mnist_flat",
          tn_data_from_idx(app, at("images"), .labels = at("labels"), .batch = 4, .divisor = 256,
                           .last = "discard", .flat = 1),
          both, 1, true);
    for (int part = 0; part < 3; part++) {
        (void)snprintf(set, sizeof set, "mnist_part%d", part);
        check(app, set,
              tn_data_from_idx(app, at("images"), .labels = at("labels"), .batch = 1, .divisor = 256,
                               .parts = 3, .part = part),
              both, 1, true);
    }
}

static void test_cifar(void **state)
{
    tn_app *app = *state;

    check(app, "cifar10",
          tn_data_from_cifar(app, at("cifar10_0.bin"), .files = {at("cifar10_1.bin")}, .divisor = 1), both, 1,
          true);
    check(app, "cifar100",
          tn_data_from_cifar(app, at("cifar100_0.bin"), .files = {at("cifar100_1.bin")}, .divisor = 1,
                             .classes = 100),
          both, 1, true);
    check(app, "cifar20", tn_data_from_cifar(app, at("cifar100_0.bin"), .divisor = 1, .classes = 20), both, 1,
          true);
}

static int load(void **state)
{
    tn_app *app = *state = nn_open(NULL);

    assert_int_equal(tn_params_load(tn_app_ctx(app), at("batches.params"), NULL, &recorded), TN_OK);
    return 0;
}

static int unload(void **state)
{
    tn_params_destroy(recorded);
    nn_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays), cmocka_unit_test(test_csv),   cmocka_unit_test(test_libsvm),
        cmocka_unit_test(test_mnist),  cmocka_unit_test(test_cifar),
    };

    return cmocka_run_group_tests(tests, load, unload);
}

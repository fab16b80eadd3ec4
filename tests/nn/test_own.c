/*
 * Data as people have it, from C: arrays of .npz by name, the same batches with threads and without, shares
 * that hold every sample once, a test part read as the part to train on, and damaged descriptions of a
 * model's data.
 */
#include "nn/support.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/scratch.h"
#include "tenon/nn_data.h"

#define ROWS 20

static const char *table_write(void)
{
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "a,b,kind\n");

    for (int i = 0; i < ROWS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,%s\n", i, 3 * i % 7,
                                 i % 2 ? "odd" : "even");
    return scratch_write("table.csv", text, used);
}

/* All rows of an epoch: two features and the label of each. */
static size_t rows_read(tn_app *app, tn_data *d, float *out)
{
    size_t count = 0;
    float x[2 * ROWS], y[ROWS];
    tn_batch b;

    while (tn_data_next(d, &b)) {
        (void)nn_read(app, b.x, x, 2 * ROWS);
        (void)nn_read(app, b.y, y, ROWS);
        for (int64_t i = 0; i < b.n; i++, count++) {
            out[3 * count] = x[2 * i];
            out[3 * count + 1] = x[2 * i + 1];
            out[3 * count + 2] = y[i];
        }
    }
    return count;
}

static char *part_name(const char *path, const char *part)
{
    static char name[2][512];
    char *to = name[!strcmp(part, "test")];

    (void)snprintf(to, sizeof name[0], "%s:%s", path, part);
    return to;
}

static void test_table(void **state)
{
    const char *path = table_write();
    float plain[3 * ROWS], ahead[3 * ROWS], test[3 * ROWS], sum = 0;
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_open(app, part_name(path, "train"), .batch = 4, .shuffle = 1, .seed = 5), *t;

    (void)state;
    assert_true(tn_app_ok(app));
    assert_int_equal(tn_data_count(d), 16);
    assert_int_equal(tn_data_classes(d), 2);
    assert_int_equal(tn_data_task(d), TN_TASK_CLASSES);
    assert_string_equal(tn_data_class_name(d, 0), "even");
    assert_string_equal(tn_data_column(d, 1), "b");
    assert_true(strstr(tn_data_note(d), "16 to train, 4 to test") != NULL);
    assert_int_equal(rows_read(app, d, plain), 16);
    for (int i = 0; i < 16; i++)
        sum += plain[3 * i];
    assert_true(fabsf(sum) < 1e-4f); /* scaled by these very samples */
    d = tn_data_open(app, part_name(path, "train"), .batch = 4, .shuffle = 1, .seed = 5, .threads = 3,
                     .prefetch = 2);
    assert_int_equal(rows_read(app, d, ahead), 16);
    assert_memory_equal(plain, ahead, 16 * 3 * sizeof *plain);
    t = tn_data_open(app, part_name(path, "test"), .batch = 4, .like = d);
    assert_int_equal(rows_read(app, t, test), 4);
    assert_true(tn_data_about_save(d, scratch_path("about.json")));
    t = tn_data_open(app, part_name(path, "test"), .batch = 4, .about = scratch_path("about.json"));
    assert_int_equal(rows_read(app, t, ahead), 4);
    assert_memory_equal(test, ahead, 4 * 3 * sizeof *test);
    nn_close(app);
}

/* Every sample of the part is in one share. */
static void test_shares(void **state)
{
    const char *path = table_write();
    float rows[3 * ROWS], share[3 * ROWS];
    tn_app *app = nn_open(NULL);
    size_t count = 0;

    (void)state;
    assert_int_equal(rows_read(app, tn_data_open(app, part_name(path, "train"), .batch = 5), rows), 16);
    for (int64_t part = 0; part < 3; part++) {
        const size_t n = rows_read(
            app, tn_data_open(app, part_name(path, "train"), .batch = 5, .parts = 3, .part = part), share);

        assert_memory_equal(rows + 3 * count, share, n * 3 * sizeof *rows);
        count += n;
    }
    assert_int_equal(count, 16);
    nn_close(app);
}

static void test_npz(void **state)
{
    const float left[] = {1, 2, 3, 4, 5, 6}, right[] = {7, 8, 9}, same[] = {0, 1, 1};
    const uint8_t bytes[] = {0, 51, 255};
    const struct {
        const char *name;
        int32_t dtype, ndim;
        int64_t shape[2];
        const void *data;
    } rows[] = {{"left", TN_F32, 2, {3, 2}, left},
                {"right", TN_F32, 1, {3}, right},
                {"same", TN_F32, 1, {3}, same},
                {"pixels", TN_U8, 1, {3}, bytes}};
    const char *path = scratch_path("pairs.params");
    tn_app *app = nn_open(NULL);
    tn_params *p = NULL;
    tn_data *d;
    tn_batch b;
    float x[6];

    (void)state;
    assert_false(tn_params_create(&p));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_array *a = NULL;

        assert_false(
            tn_array_from(tn_app_ctx(app), rows[i].dtype, rows[i].ndim, rows[i].shape, rows[i].data, &a));
        assert_false(tn_params_add(p, rows[i].name, a));
        tn_array_release(a);
    }
    assert_false(tn_save(tn_app_ctx(app), p, path)); /* what tn_load() reads is read alike */
    tn_params_destroy(p);
    d = tn_data_from_npz(
        app, path, .fields = {{.name = "left"}, {"label", "same"}, {.name = "right"}, {.name = "pixels"}},
        .batch = 3, .threads = 2);
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, tn_data_field(d, "left"), x, 6), 6);
    assert_memory_equal(x, left, sizeof left);
    assert_int_equal(nn_read(app, b.y, x, 6), 3);
    assert_memory_equal(x, same, sizeof same);
    assert_int_equal(nn_read(app, tn_data_field(d, "pixels"), x, 6), 3);
    assert_true(x[0] == 0 && x[1] == 51.0f / 255 && x[2] == 1);
    assert_null(tn_data_from_npz(app, path, .fields = {{.name = "lest"}}));
    assert_non_null(strstr(tn_app_error(app), "did you mean \"left\""));
    tn_app_clear(app);
    assert_null(tn_data_from_npz(app, path, .fields = {{.name = "left"}}, .threads = 1000));
    nn_close_failed(app, ".threads is 0 to 256", 2);
}

/* FOLDER/NAME.npy of bytes, (rows, columns). */
static void npy_write(const char *name, int rows, int columns, const char *digits)
{
    char text[256];
    int used = snprintf(text, sizeof text,
                        "\x93NUMPY\1%cv%c{'descr': '|u1', 'fortran_order': False, 'shape': "
                        "(%d, %d), }",
                        0, 0, rows, columns);

    while (used < 127)
        text[used++] = ' ';
    text[used++] = '\n';
    for (int i = 0; i < rows * columns; i++)
        text[used++] = (char)(digits[i] - '0');
    (void)scratch_write(name, text, (size_t)used);
}

/* One-hot labels are not taken for numbers, unless that is asked; other rows of numbers are a regression. */
static void test_one_hot(void **state)
{
    static const struct {
        const char *labels, *task;
        bool refused;
    } rows[] = {
        {"100010001100010001", NULL, true},          {"100010001100010001", "classification", true},
        {"100010001100010001", "regression", false}, {"100100100100100100", NULL, true}, /* of one class */
        {"100010001100010011", NULL, false}, /* two ones: several labels of a sample */
        {"100010001100010000", NULL, false},         {"100010001100010002", NULL, false},
        {"100010001100010021", NULL, false},
    };
    char folder[512];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s", scratch_path("hot"));
    assert_true(!mkdir(folder, 0777) || errno == EEXIST);
    npy_write("hot/x.npy", 6, 2, "123456789123");
    (void)snprintf(folder, sizeof folder, "%s/:train", scratch_path("hot"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);
        tn_data *d;

        npy_write("hot/y.npy", 6, 3, rows[i].labels);
        d = tn_data_open(app, folder, .task = rows[i].task);
        if (!d != rows[i].refused || (d && tn_data_task(d) != TN_TASK_NUMBERS))
            fail_msg("row %zu: %s", i, tn_app_error(app));
        if (d)
            nn_close(app);
        else
            nn_close_failed(app, rows[i].task ? "y.argmax(1)" : "data.task=regression learns the labels as",
                            1);
    }
}

/* A description that is cut anywhere, or has another byte somewhere, is an error or another description. */
static void test_damaged(void **state)
{
    const char *path = table_write(), *about = scratch_path("about.json");
    tn_app *app = nn_open(NULL);
    char *text = NULL;
    size_t bytes = 0, failed = 0;
    FILE *file;

    (void)state;
    assert_true(tn_data_about_save(tn_data_open(app, part_name(path, "train")), about));
    file = fopen(about, "r");
    assert_true(file && (text = calloc(1, 8192)) && (bytes = fread(text, 1, 8191, file)) > 100);
    (void)fclose(file);
    for (size_t i = 0; i < bytes; i += 3) {
        const char kept = text[i];

        (void)scratch_write("cut.json", text, i);
        if (tn_data_open(app, part_name(path, "test"), .about = scratch_path("cut.json")))
            assert_true(i + 2 >= bytes);
        tn_app_clear(app);
        text[i] = kept == '9' ? '-' : '9';
        (void)scratch_write("cut.json", text, bytes);
        failed += !tn_data_open(app, part_name(path, "test"), .about = scratch_path("cut.json"));
        tn_app_clear(app);
        text[i] = kept;
    }
    assert_true(failed > bytes / 6);
    free(text);
    nn_close(app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),   cmocka_unit_test(test_shares),  cmocka_unit_test(test_npz),
        cmocka_unit_test(test_one_hot), cmocka_unit_test(test_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Orders of samples, last batches, positions, files that are absent or damaged. */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Labels of `batches` batches from (epoch, index) on. */
static size_t labels_from(tn_app *app, tn_data *d, int64_t epoch, int64_t index, int batches, float *out,
                          size_t room)
{
    size_t n = 0;
    tn_batch b;

    tn_data_seek(d, epoch, index);
    for (int i = 0; i < batches; i++) {
        if (!tn_data_next(d, &b))
            (void)tn_data_next(d, &b);
        n += nn_read(app, b.y, out + n, room - n);
    }
    return n;
}

static void test_batches(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_open(app, "digits:train", .batch = 100);
    static float pixels[100 * 64], labels[100];
    int64_t seen = 0, shape[4], epoch, index, counts[10] = {0};
    tn_batch b;

    (void)state;
    assert_int_equal(tn_data_count(d), 1437);
    assert_int_equal(tn_data_batches(d), 15);
    assert_int_equal(tn_data_classes(d), 10);
    tn_data_shape(d, shape);
    assert_int_equal(shape[0] * 1000 + shape[1] * 100 + shape[2] * 10 + shape[3], 1188);
    for (int64_t i = 0; tn_data_next(d, &b); i++) {
        const int64_t x[4] = {i < 14 ? 100 : 37, 1, 8, 8};
        const size_t n = (size_t)x[0];

        assert_int_equal(b.n, x[0]);
        assert_int_equal(b.index, i);
        assert_int_equal(b.epoch, 0);
        nn_shape(b.x, 4, x);
        nn_shape(b.y, 1, x);
        (void)nn_read(app, b.x, pixels, 6400);
        (void)nn_read(app, b.y, labels, 100);
        for (size_t k = 0; k < n * 64; k++) {
            assert_true(pixels[k] >= 0 && pixels[k] <= 1);
            assert_true(fabsf(pixels[k] * 255 - roundf(pixels[k] * 255)) < 1e-4f); /* a byte */
        }
        for (size_t k = 0; k < n; k++)
            counts[(int)labels[k]]++;
        seen += b.n;
    }
    assert_int_equal(seen, 1437);
    for (int i = 0; i < 10; i++)
        assert_true(counts[i] > 100);
    tn_data_tell(d, &epoch, &index);
    assert_int_equal(epoch, 1);
    assert_int_equal(index, 0);
    assert_int_equal(tn_data_next(d, &b), 1);
    assert_int_equal(b.epoch, 1);
    nn_close(app);
}

/* A function of seed and epoch: same again, other with either; every sample once. */
static void test_order(void **state)
{
    static float a[1437], b[1437], plain[1437];
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_open(app, "digits:train", .batch = 100, .shuffle = 1, .seed = 5);
    tn_data *same = tn_data_open(app, "digits:train", .batch = 64, .shuffle = 1, .seed = 5);
    tn_data *other = tn_data_open(app, "digits:train", .batch = 100, .shuffle = 1, .seed = 6);
    tn_data *file = tn_data_open(app, "digits:train", .batch = 1437);
    double counts[3][10] = {{0}};

    (void)state;
    assert_int_equal(labels_from(app, d, 0, 0, 15, a, 1437), 1437);
    assert_int_equal(labels_from(app, same, 0, 0, 23, b, 1437), 1437);
    assert_memory_equal(a, b, sizeof a); /* whatever the batch */
    assert_int_equal(labels_from(app, other, 0, 0, 15, b, 1437), 1437);
    assert_memory_not_equal(a, b, sizeof a);
    assert_int_equal(labels_from(app, d, 1, 0, 15, b, 1437), 1437);
    assert_memory_not_equal(a, b, sizeof a);
    assert_int_equal(labels_from(app, file, 0, 0, 1, plain, 1437), 1437);
    for (size_t i = 0; i < 1437; i++) {
        counts[0][(int)a[i]]++;
        counts[1][(int)b[i]]++;
        counts[2][(int)plain[i]]++;
    }
    assert_memory_equal(counts[0], counts[2], sizeof counts[0]);
    assert_memory_equal(counts[1], counts[2], sizeof counts[0]);
    assert_int_equal(labels_from(app, d, 0, 7, 3, b, 1437), 300); /* from the middle */
    assert_memory_equal(b, a + 700, 300 * sizeof *a);
    assert_int_equal(labels_from(app, d, 0, 15, 1, b, 1437), 100); /* at the end: the next epoch */
    nn_close(app);
}

static void test_names(void **state)
{
    static const char *const good[] = {"digits", "digits:train", "digits:test", "digits-by-writer:test"};
    static const struct {
        const char *name, *text;
        int code;
    } bad[] = {
        {"digitz:train", "digitz", 2},
        {"digits:valid", "there are: train, test", 2},
        {"digits:trian", "did you mean \"train\"", 2},
        {":train", "name is missing", 2},
        {"", "name is missing", 2},
        {"/nowhere/at/all:train", "/nowhere/at/all", 2},
    };
    char hex[65], again[65];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tn_app *app = nn_open(NULL);
        tn_data *d = tn_data_open(app, good[i]);

        assert_true(tn_data_count(d) > 0);
        assert_string_equal(tn_data_name(d), good[i]);
        assert_true(tn_data_sha256(d, hex) && tn_data_sha256(d, again));
        assert_int_equal(strlen(hex), 64);
        assert_string_equal(hex, again);
        nn_close(app);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);

        assert_null(tn_data_open(app, bad[i].name));
        nn_close_failed(app, bad[i].text, bad[i].code);
    }
}

/* ---- files ---- */

static void file_write(const char *folder, const char *name, const void *bytes, size_t count, int packed)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s%s", folder, name, packed ? ".gz" : "");
    if (packed) {
        gzFile file = gzopen(path, "wb");

        assert_int_equal(gzwrite(file, bytes, (unsigned)count), count);
        assert_int_equal(gzclose(file), Z_OK);
    } else {
        FILE *file = fopen(path, "wb");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, count, file), count);
        assert_int_equal(fclose(file), 0);
    }
}

/* `n` images of 2×3, pixel = 10 * image + place; labels image % 3. */
static void set_write(const char *folder, uint8_t n, uint8_t label_count, int packed)
{
    uint8_t images[16 + 6 * 255] = {0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 3};
    uint8_t labels[8 + 255] = {0, 0, 8, 1, 0, 0, 0, label_count};

    for (int i = 0; i < n; i++)
        for (int k = 0; k < 6; k++)
            images[16 + 6 * i + k] = (uint8_t)(10 * i + k);
    for (int i = 0; i < label_count; i++)
        labels[8 + i] = (uint8_t)(i % 3);
    file_write(folder, "train-images-idx3-ubyte", images, 16u + 6u * n, packed);
    file_write(folder, "train-labels-idx1-ubyte", labels, 8u + label_count, packed);
}

static void test_folder(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        char *folder = nn_folder();
        tn_app *app = nn_open(NULL);
        float x[18], y[3];
        tn_data *d;
        tn_batch b;

        set_write(folder, 5, 5, packed);
        d = tn_data_open(app, folder, .batch = 3);
        assert_int_equal(tn_data_next(d, &b), 1);
        assert_int_equal(nn_read(app, b.x, x, 18), 18);
        assert_int_equal(nn_read(app, b.y, y, 3), 3);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < 6; k++)
                assert_true(x[6 * i + k] == (float)(10 * i + k) / 255.0f);
            assert_true(y[i] == (float)(i % 3));
        }
        assert_int_equal(tn_data_next(d, &b), 1);
        assert_int_equal(b.n, 2);
        assert_int_equal(tn_data_next(d, &b), 0);
        nn_close(app);
        nn_folder_remove(folder);
    }
}

static void test_damaged(void **state)
{
    char *folder = nn_folder(), name[512];
    tn_app *app;

    (void)state;
    set_write(folder, 5, 4, 0); /* one label is missing */
    app = nn_open(NULL);
    assert_null(tn_data_open(app, folder));
    assert_false(tn_app_ok(app));
    assert_true(tn_app_close(app) != 0);

    file_write(folder, "train-images-idx3-ubyte", "\0\0\10\3\0\0\0\5\0\0\0\2", 12, 0); /* cut off */
    app = nn_open(NULL);
    assert_null(tn_data_open(app, folder));
    nn_close_failed(app, folder, 4);

    (void)snprintf(name, sizeof name, "%s/train-labels-idx1-ubyte", folder);
    assert_int_equal(remove(name), 0);
    app = nn_open(NULL);
    assert_null(tn_data_open(app, folder));
    nn_close_failed(app, "train-labels-idx1-ubyte.gz", 2);

    (void)snprintf(name, sizeof name, "%s:test", folder);
    app = nn_open(NULL);
    assert_null(tn_data_open(app, name));
    nn_close_failed(app, "t10k-images", 2);
    nn_folder_remove(folder);
}

static void test_positions_refused(void **state)
{
    static const int64_t bad[][2] = {{-1, 0}, {0, -1}, {0, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_app *app = nn_open(NULL);
        tn_data *d = tn_data_open(app, "digits:test", .batch = 64);

        tn_data_seek(d, bad[i][0], bad[i][1]);
        nn_close_failed(app, "there is no batch", 2);
    }
    tn_app *app = nn_open(NULL);

    assert_null(tn_data_open(app, "digits", .batch = -3));
    nn_close_failed(app, ".batch", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches), cmocka_unit_test(test_order),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_folder),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_positions_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

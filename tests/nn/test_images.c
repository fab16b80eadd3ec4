/*
 * Data sets of images: folders of classes, shares, what is drawn whatever the threads do, files that cannot
 * be read, and wrong arguments.
 */
#include "nn/support.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/image.h"
#include "tenon/nn_data.h"

#define SIDE 8
#define EACH (3 * SIDE * SIDE)

static char *folder;

static char *path_of(const char *name)
{
    static char paths[4][1200];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof *paths, "%s/%s", folder, name);
    return path;
}

static void file_put(const char *name, const void *data, size_t bytes)
{
    FILE *file = fopen(path_of(name), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_false(fclose(file));
}

static const char *recorded(const char *name)
{
    static char path[1200];

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/image/%s", getenv("TENON_TEST_SOURCE"), name);
    return path;
}

/* Every pixel of image `k` is 10 k; a PNG. */
static void image_put(tn_app *app, const char *name, int k, int64_t width, int64_t height)
{
    unsigned char *pixels = malloc((size_t)(width * height * 3));
    tn_array *a = NULL;
    void *data = NULL;
    uint64_t bytes = 0;

    assert_non_null(pixels);
    memset(pixels, 10 * k, (size_t)(width * height * 3));
    assert_int_equal(
        tn_array_from(tn_app_ctx(app), TN_U8, 3, (const int64_t[]){height, width, 3}, pixels, &a), 0);
    assert_int_equal(tn_image_encode(tn_app_ctx(app), a, "png", 1, &data, &bytes), TN_OK);
    file_put(name, data, bytes);
    tn_free(data);
    tn_array_release(a);
    free(pixels);
}

/* Two classes of six images, one with other sizes. */
static int folder_make(void **state)
{
    tn_app *app = nn_open(NULL);
    char name[32];

    (void)state;
    folder = nn_quick_folder();
    assert_false(mkdir(path_of("dog"), 0700) || mkdir(path_of("cat"), 0700) ||
                 mkdir(path_of(".hidden"), 0700));
    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof name, "%s/%c.png", i < 6 ? "cat" : "dog", 'a' + i % 6);
        image_put(app, name, i, i == 3 ? 13 : SIDE, i == 3 ? 11 : SIDE);
    }
    file_put("cat/readme.txt", "no image", 8);
    nn_close(app);
    return 0;
}

static int folder_end(void **state)
{
    (void)state;
    nn_folder_remove(folder);
    return 0;
}

static void close_failed(tn_app *app, const char *text)
{
    if (!strstr(tn_app_error(app), text))
        fail_msg("the error is: %s\nand should contain: %s", tn_app_error(app), text);
    assert_int_not_equal(tn_app_close(app), 0);
}

static void classes(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_images(app, folder, .batch = 12);
    int64_t shape[4];
    float x[12 * EACH], y[12];
    tn_batch b;

    (void)state;
    assert_non_null(d);
    tn_data_shape(d, shape);
    assert_true(shape[0] == 1 && shape[1] == 3 && shape[2] == SIDE && shape[3] == SIDE);
    assert_int_equal(tn_data_count(d), 12);
    assert_int_equal(tn_data_classes(d), 2);
    assert_string_equal(tn_data_class_name(d, 0), "cat");
    assert_string_equal(tn_data_class_name(d, 1), "dog");
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, b.x, x, 12 * EACH), 12 * EACH);
    assert_int_equal(nn_read(app, b.y, y, 12), 12);
    for (int i = 0; i < 12; i++) {
        assert_true(y[i] == (float)(i / 6));
        for (int k = 0; k < EACH; k++)
            assert_true(x[i * EACH + k] == (float)(10 * i));
    }
    assert_false(tn_data_next(d, &b));
    nn_close(app);
}

/* Without folders "train" and "test", each fifth image of a class is to test with. */
static void parts(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *train = tn_data_from_images(app, folder, .part_of = "train");
    tn_data *test = tn_data_from_images(app, folder, .part_of = "test");
    tn_data *share = tn_data_from_images(app, folder, .parts = 5, .part = 1, .batch = 2, .divisor = 255);
    float x[2 * EACH];
    tn_batch b;

    (void)state;
    assert_int_equal(tn_data_count(train), 10);
    assert_int_equal(tn_data_count(test), 2);
    assert_int_equal(tn_data_count(share), 2); /* 2 and 3 */
    assert_true(tn_data_next(share, &b));
    assert_int_equal(nn_read(app, b.x, x, 2 * EACH), 2 * EACH);
    assert_true(x[0] == 20.f / 255.f && x[EACH] == 30.f / 255.f);
    nn_close(app);
}

/* All that is drawn: the same numbers with any threads, others in the next epoch. */
static void draws(void **state)
{
    static float first[2][12 * EACH], x[12 * EACH];

    (void)state;
    for (int32_t threads = -1; threads < 6; threads += 2) {
        tn_app *app = nn_open(NULL);
        tn_data *d = tn_data_from_images(
            app, folder, .batch = 5, .shuffle = 1, .seed = 7, .shape = {3, SIDE, SIDE}, .rand_crop = 1,
            .pad = 3, .fill_value = 200, .rand_mirror = 1, .brightness = 0.3, .contrast = 0.3,
            .saturation = 0.3, .random_h = 20, .random_s = 20, .random_l = 20, .pca_noise = 0.1,
            .max_rotate_angle = 10, .max_shear_ratio = 0.1, .max_random_scale = 1.2, .min_random_scale = 0.9,
            .max_aspect_ratio = 0.2, .max_random_contrast = 0.1, .max_random_illumination = 2,
            .threads = threads, .prefetch = 2);

        for (int epoch = 0; epoch < 2; epoch++) {
            tn_batch b;
            size_t used = 0;

            while (tn_data_next(d, &b))
                used += nn_read(app, b.x, x + used, 12 * EACH - used);
            assert_int_equal(used, 12 * EACH);
            if (threads < 0)
                memcpy(first[epoch], x, sizeof x);
            assert_memory_equal(first[epoch], x, sizeof x);
        }
        if (threads > 0) { /* any batch again */
            tn_batch b;

            tn_data_seek(d, 0, 1);
            assert_true(tn_data_next(d, &b) && b.index == 1 && b.epoch == 0);
            assert_int_equal(nn_read(app, b.x, x, 5 * EACH), 5 * EACH);
            assert_memory_equal(first[0] + 5 * EACH, x, 5 * EACH * sizeof *x);
        }
        nn_close(app);
    }
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
}

static void broken(void **state)
{
    tn_app *app;
    tn_data *d;
    float x[12 * EACH], y[13];
    tn_batch b;

    (void)state;
    file_put("cat/bb.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR!", 17);
    app = nn_open(NULL);
    d = tn_data_from_images(app, folder, .batch = 13, .shape = {1, SIDE, SIDE}, .threads = 3);
    assert_int_equal(tn_data_count(d), 13);
    assert_int_equal(tn_data_broken(d), 0);
    assert_true(tn_data_next(d, &b));
    assert_int_equal(tn_data_broken(d), 1);
    assert_non_null(strstr(tn_data_broken_text(d, 0), "cat/bb.png: png: the PNG ends early, at byte 17"));
    assert_null(tn_data_broken_text(d, 1));
    assert_null(tn_data_broken_text(d, -1));
    assert_int_equal(nn_read(app, b.x, x, 12 * EACH), 13 * SIDE * SIDE);
    assert_int_equal(nn_read(app, b.y, y, 13), 13);
    assert_true(x[2 * SIDE * SIDE] == 20 && x[3 * SIDE * SIDE] == 20); /* the next one stands in its place */
    nn_close(app);
    app = nn_open(NULL);
    d = tn_data_from_images(app, folder, .batch = 13, .strict = 1);
    assert_false(tn_data_next(d, &b));
    close_failed(app, "cat/bb.png: png: the PNG");
    assert_false(unlink(path_of("cat/bb.png")));
}

static void one_file(void **state)
{
    tn_app *app = nn_open(NULL);
    float x[EACH];

    (void)state;
    assert_true(tn_image_sample(app, path_of("dog/a.png"), (const int64_t[]){3, SIDE, SIDE}, x));
    assert_true(x[0] == 60.f / 255.f);
    assert_true(tn_image_sample(app, path_of("cat/d.png"), (const int64_t[]){1, 4, 4}, x));
    nn_close(app);
    app = nn_open(NULL);
    assert_false(tn_image_sample(app, path_of("absent.png"), (const int64_t[]){1, 4, 4}, x));
    close_failed(app, "absent.png");
    app = nn_open(NULL);
    assert_false(tn_image_sample(app, path_of("cat/readme.txt"), (const int64_t[]){1, 4, 4}, x));
    close_failed(app, "no image of a known format");
    assert_false(tn_image_sample(NULL, "x", (const int64_t[]){1, 4, 4}, x));
    app = nn_open(NULL);
#define WRONG(call) (assert_false(call), assert_int_equal(tn_app_status(app), TN_E_ARG), tn_app_clear(app))
    WRONG(tn_image_sample(app, NULL, (const int64_t[]){1, 4, 4}, x));
    WRONG(tn_image_sample(app, "x", NULL, x));
    WRONG(tn_image_sample(app, "x", (const int64_t[]){1, 4, 4}, NULL));
    WRONG(tn_image_sample(app, "x", (const int64_t[]){1, 4, -4}, x));
    assert_false(tn_pack_images_(NULL, "x", "y", NULL, NULL));
    WRONG(tn_pack_images_(app, NULL, "y", NULL, NULL));
    WRONG(tn_pack_images_(app, "x", NULL, NULL, NULL));
    WRONG(tn_pack_images(app, "x", "y", NULL, .resize = -1));
    WRONG(tn_pack_images(app, "x", "y", NULL, .threads = 1000));
    WRONG(tn_pack_images(app, "x", "y", NULL, .quality = 101, .encoding = "jpg"));
    nn_close(app);
}

/* ---- files that cannot be opened: the linker puts __wrap_fopen in place of fopen ---- */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static const char *shut; /* the end of a path; NULL: all can be opened */
static int shut_error;

FILE *__wrap_fopen(const char *path, const char *mode)
{
    const size_t all = strlen(path), end = shut ? strlen(shut) : SIZE_MAX;

    if (all < end || strcmp(path + all - end, shut) != 0)
        return __real_fopen(path, mode);
    errno = shut_error;
    return NULL;
}

/* What is done with the folder while a file is shut: packing, batches, their shape, one sample. */
enum { PACK, BATCH, SHAPE, SAMPLE };

static bool shut_run(tn_app *app, int what, tn_packed *packed, float *x)
{
    tn_data *d;
    tn_batch b;

    switch (what) {
    case PACK:
        return tn_pack_images(app, folder, path_of("x.rec"), packed, .threads = 2);
    case BATCH:
        d = tn_data_from_images(app, folder, .batch = 12, .shape = {3, SIDE, SIDE});
        return tn_data_next(d, &b);
    case SHAPE:
        return tn_data_from_images(app, folder, .batch = 12) != NULL;
    default:
        return tn_image_sample(app, path_of("cat/a.png"), (const int64_t[]){3, SIDE, SIDE}, x);
    }
}

/* Where memory runs out no image is at fault: none is left out, and the status is TN_E_NOMEM. */
static void shut_files(void **state)
{
    static const struct {
        const char *shut, *says;
        int what, error;
        tn_status status;
    } rows[] = {
        {"cat/b.png", "cat/b.png: Cannot allocate memory", PACK, ENOMEM, TN_E_NOMEM},
        {"cat/b.png", "", PACK, EACCES, TN_OK},
        {"x.lst.tmp", "x.lst: Cannot allocate memory", PACK, ENOMEM, TN_E_NOMEM},
        {"x.lst.tmp", "x.lst: Permission denied", PACK, EACCES, TN_E_IO},
        {"dog/c.png", "dog/c.png: Cannot allocate memory", BATCH, ENOMEM, TN_E_NOMEM},
        {"dog/c.png", "", BATCH, EACCES, TN_OK},
        {"cat/a.png", "cat/a.png: Cannot allocate memory", SHAPE, ENOMEM, TN_E_NOMEM},
        {"cat/a.png", "", SHAPE, EACCES, TN_OK},
        {"cat/a.png", "cat/a.png: Cannot allocate memory", SAMPLE, ENOMEM, TN_E_NOMEM},
        {"cat/a.png", "cat/a.png: Permission denied", SAMPLE, EACCES, TN_E_IO},
    };

    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        tn_app *app = nn_open(NULL);
        tn_packed packed = {0};
        float x[EACH];
        bool ran;

        shut = rows[r].shut;
        shut_error = rows[r].error;
        ran = shut_run(app, rows[r].what, &packed, x);
        if (tn_app_status(app) != rows[r].status || ran != !rows[r].status ||
            !strstr(tn_app_error(app), rows[r].says))
            fail_msg("row %zu: status %d: %s", r, tn_app_status(app), tn_app_error(app));
        if (ran && rows[r].what == PACK)
            assert_true(packed.images == 11 && packed.broken == 1 &&
                        strstr(packed.text, "cat/b.png: Permission denied"));
        tn_app_clear(app);
        nn_close(app); /* its threads open no file any more */
        shut = NULL;
    }
}

#define FAILS(text, path, ...)                                                                               \
    do {                                                                                                     \
        tn_app *app_ = nn_open(NULL);                                                                        \
        assert_null(tn_data_from_images(app_, path, __VA_ARGS__));                                           \
        close_failed(app_, text);                                                                            \
    } while (0)
#define ARGS(...)                                                                                            \
    .args = (const char *const[])                                                                            \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

static void wrong(void **state)
{
    (void)state;
    FAILS("a path is missing", NULL, .batch = 1);
    FAILS("nowhere", "/nowhere", .batch = 1);
    FAILS("has no folders", path_of("cat"), .batch = 1);
    FAILS("no record begins here", path_of("cat/readme.txt"), .batch = 1);
    FAILS("the shape is 1, 3 or 4 channels", folder, .shape = {2, 8, 8});
    FAILS("the shape is 1, 3 or 4 channels", folder, .shape = {3, 0, 8});
    FAILS("the shape is 1, 3 or 4 channels", folder, .shape = {3, 8, INT64_MAX});
    FAILS("resize is -3", folder, .resize = -3);
    FAILS("pca_noise is nan", folder, .pca_noise = (double)NAN);
    FAILS("preprocess_threads is 1000", folder, .threads = 1000);
    FAILS("prefetch_buffer is -1", folder, .prefetch = -1);
    FAILS("interpolation \"bilinear\"", folder, .inter = "bilinear");
    FAILS("a min_ is above its max_", folder, .min_random_scale = 2, .max_random_scale = 1.5);
    FAILS("random_resized_crop goes with none", folder, .random_resized_crop = 1, .rand_crop = 1);
    FAILS("label_width is 1 to 65536", folder, .label_width = -1);
    FAILS("part of a data set", folder, .part_of = "valid");
    FAILS("nolist", recorded("iter.rec"), .list = "nolist");
    FAILS("noindex", recorded("iter.rec"), .index = "noindex");
    FAILS("did you mean \"rand_crop\"", folder, ARGS("randcrop", "1"));
    FAILS("resize has no value", folder, ARGS("resize"));
    FAILS("resize = \"1.5\"", folder, ARGS("resize", "1.5"));
    FAILS("mean_r = \"x\"", folder, ARGS("mean_r", "x"));
    FAILS("rand_mirror = \"2\"", folder, ARGS("rand_mirror", "2"));
    FAILS("data_shape = \"(3,2)\"", folder, ARGS("data_shape", "(3,2)"));
    FAILS("inter_method = \"7\"", folder, ARGS("inter_method", "7"));
    assert_int_equal(tn_data_broken(NULL), 0);
    assert_int_equal(tn_data_broken_images(NULL), 0);
    assert_null(tn_data_broken_text(NULL, 0));
    assert_null(tn_data_from_images(NULL, "x", .batch = 1));
    assert_null(tn_data_from_images_(NULL, NULL, NULL));
}

/* Labels that are others than asked for; a record that lies. */
static void records(void **state)
{
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_images(app, recorded("iter.rec"), .shape = {3, 20, 20}, .batch = 5);
    tn_batch b;

    (void)state;
    assert_int_equal(tn_data_count(d), 5);
    assert_int_equal(tn_data_classes(d), 3);
    assert_true(tn_data_next(d, &b));
    nn_close(app);
    app = nn_open(NULL);
    d = tn_data_from_images(app, recorded("iter.rec"), .shape = {3, 20, 20}, .label_width = 2, .strict = 1);
    assert_int_equal(tn_data_classes(d), 0);
    assert_false(tn_data_next(d, &b));
    close_failed(app, "has 0 labels, label_width is 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes), cmocka_unit_test(parts),      cmocka_unit_test(draws),
        cmocka_unit_test(broken),  cmocka_unit_test(one_file),   cmocka_unit_test(wrong),
        cmocka_unit_test(records), cmocka_unit_test(shut_files),
    };
    char path[2048];

    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin image was not built\n");
        return 77;
    }
    return cmocka_run_group_tests_name("images", tests, folder_make, folder_end);
}

/*
 * Images with boxes: an object's box goes where its pixels go, whatever is drawn; labels that are no boxes,
 * and wrong arguments. What MXNet computes without draws: test_images_mxnet.c.
 */
#include "nn/support.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/image.h"
#include "tenon/nn_data.h"
#include "tenon/record.h"

#define WIDTH 120
#define HEIGHT 80
#define SIDE 96
#define IMAGES 16
#define LABELS (4 + 2 + 6)

static char *folder;
static char path[1200];

/* A .rec of images whose labels are these; each is black with a white object from (30, 20) to (60, 60). */
static void records_make(const float *labels, uint32_t count)
{
    static unsigned char pixels[HEIGHT][WIDTH];
    tn_app *app = nn_open(NULL);
    tn_record_header h = {
        .struct_size = TN_SIZE(tn_record_header), .label_count = count, .labels = labels, .label = 7};
    tn_record_writer *w = NULL;
    tn_array *a = NULL;
    void *png = NULL, *record = NULL;
    uint64_t bytes = 0, size = 0;

    for (int y = 20; y < 60; y++)
        memset(&pixels[y][30], 255, 30);
    assert_int_equal(tn_array_from(tn_app_ctx(app), TN_U8, 2, (const int64_t[]){HEIGHT, WIDTH}, pixels, &a),
                     0);
    assert_int_equal(tn_image_encode(tn_app_ctx(app), a, "png", 1, &png, &bytes), TN_OK);
    assert_int_equal(tn_record_create(path, NULL, &w), TN_OK);
    for (h.id = 0; h.id < IMAGES; h.id++) {
        assert_int_equal(tn_record_pack(&h, png, bytes, &record, &size), TN_OK);
        assert_int_equal(tn_record_append(w, h.id, record, size), TN_OK);
        tn_free(record);
    }
    assert_int_equal(tn_record_finish(w), TN_OK);
    tn_free(png);
    tn_array_release(a);
    nn_close(app);
}

/* The white part of a sample, as left, top, right, bottom in pixels; false: there is none. */
static bool white_find(const float *x, float box[4])
{
    bool any = false;

    box[0] = box[1] = SIDE;
    box[2] = box[3] = 0;
    for (int at = 0; at < SIDE * SIDE; at++)
        if (x[at] > 127) {
            box[0] = fminf(box[0], (float)(at % SIDE));
            box[1] = fminf(box[1], (float)(at / SIDE));
            box[2] = fmaxf(box[2], (float)(at % SIDE + 1));
            box[3] = fmaxf(box[3], (float)(at / SIDE + 1));
            any = true;
        }
    return any;
}

/* `seen`: left edges, to tell that something was drawn. */
static void sample_check(const float *x, const float *label, float *seen)
{
    float box[4];

    assert_true(label[0] == 1 && label[1] == SIDE && label[2] == SIDE);
    assert_true(label[3] == 8 && label[4] == 2 && label[5] == 6 && label[6] == 5 && label[11] == 0.5f);
    assert_true(white_find(x, box));
    for (int i = 0; i < 4; i++)
        if (fabsf(box[i] - label[7 + i] * SIDE) > 4) /* cut to pixels twice, then enlarged up to 3 times */
            fail_msg("edge %d is at pixel %g, its box says %g", i, (double)box[i],
                     (double)label[7 + i] * SIDE);
    *seen = label[7];
}

static const float one_object[] = {2, 6, 5, 0.25f, 0.25f, 0.5f, 0.75f, 0.5f};

static void boxes_follow(const tn_boxes_options *boxes, int least)
{
    static float x[4][IMAGES * SIDE * SIDE], y[IMAGES * LABELS], seen[3 * IMAGES];
    int others = 0;

    for (int threads = -1; threads < 3; threads++) {
        tn_app *app = nn_open(NULL);
        tn_data *d =
            tn_data_from_images(app, path, .shape = {1, SIDE, SIDE}, .batch = IMAGES, .seed = 5,
                                .fill_value = -1, .inter = "nearest", .threads = threads, .boxes = boxes);
        tn_batch b;

        for (int epoch = 0; epoch < 3; epoch++) {
            assert_true(tn_data_next(d, &b) || tn_data_next(d, &b));
            assert_int_equal(nn_read(app, b.x, x[threads + 1], IMAGES * SIDE * SIDE), IMAGES * SIDE * SIDE);
            assert_int_equal(nn_read(app, b.y, y, IMAGES * LABELS), IMAGES * LABELS);
            for (size_t i = 0; i < IMAGES; i++)
                sample_check(x[threads + 1] + i * SIDE * SIDE, y + i * LABELS,
                             &seen[epoch * IMAGES + (int)i]);
        }
        nn_close(app);
        assert_memory_equal(x[0], x[threads + 1], sizeof x[0]); /* whatever the threads do */
    }
    for (int i = 1; i < 3 * IMAGES; i++)
        others += seen[i] != seen[i - 1];
    assert_true(others >= least);
}

static void draws(void **state)
{
    static const tn_crop_sampler samplers[] = {
        {.min_scale = 0.5, .max_scale = 0.9, .min_aspect_ratio = 0.7, .max_aspect_ratio = 2, .trials = 50},
        {.min_scale = 0.6, .min_aspect_ratio = 1, .max_aspect_ratio = 1.5, .min_object_coverage = 0.8}};

    (void)state;
    records_make(one_object, 8);
    boxes_follow(&(const tn_boxes_options){0}, 0);
    boxes_follow(&(const tn_boxes_options){.rand_mirror_prob = 0.5}, 10);
    boxes_follow(&(const tn_boxes_options){.rand_pad_prob = 1, .max_pad_scale = 3}, 20);
    boxes_follow(&(const tn_boxes_options){.rand_crop_prob = 1, .samplers = samplers, .num_crop_sampler = 2},
                 20);
    boxes_follow(&(const tn_boxes_options){.rand_crop_prob = 1,
                                           .samplers = samplers,
                                           .crop_emit_mode = "overlap",
                                           .emit_overlap_thresh = 0.6,
                                           .rand_mirror_prob = 0.5,
                                           .rand_pad_prob = 0.5,
                                           .max_pad_scale = 2,
                                           .max_random_contrast = 0.2,
                                           .random_contrast_prob = 1},
                 20);
    boxes_follow(&(const tn_boxes_options){.rand_crop_prob = 1, .num_crop_sampler = -1}, 0); /* none */
}

/* The window keeps the bounds of its sampler: the object covers as much of it. */
static void bounds(void **state)
{
    static const tn_crop_sampler wide = {.min_sample_coverage = 0.3, .trials = 1000};
    static float y[IMAGES * LABELS];
    tn_app *app = nn_open(NULL);
    tn_data *d =
        tn_data_from_images(app, path, .shape = {1, SIDE, SIDE}, .batch = IMAGES,
                            .boxes = &(const tn_boxes_options){.rand_crop_prob = 1, .samplers = &wide});
    tn_batch b;

    (void)state;
    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, b.y, y, IMAGES * LABELS), IMAGES * LABELS);
    for (size_t i = 0; i < IMAGES; i++) {
        const float *v = y + i * LABELS + 7;

        assert_true((v[2] - v[0]) * (v[3] - v[1]) > 0.29f);
    }
    nn_close(app);
}

static float first[2][IMAGES * SIDE * SIDE];

/* The first batch of images. */
static void batch_read(const tn_boxes_options *boxes, const char *const *args, float *x)
{
    tn_app *app = nn_open(NULL);
    tn_data *d = tn_data_from_images(app, path, .shape = {1, SIDE, SIDE}, .batch = IMAGES, .seed = 5,
                                     .args = args, .boxes = boxes);
    tn_batch b;

    assert_true(tn_data_next(d, &b));
    assert_int_equal(nn_read(app, b.x, x, IMAGES * SIDE * SIDE), IMAGES * SIDE * SIDE);
    nn_close(app);
}

static int cropped(const tn_boxes_options *boxes, const char *const *args)
{
    const size_t each = sizeof *first / IMAGES;
    int count = 0;

    batch_read(&(const tn_boxes_options){0}, NULL, first[0]);
    batch_read(boxes, args, first[1]);
    for (size_t i = 0; i < IMAGES; i++)
        count += memcmp((char *)first[0] + i * each, (char *)first[1] + i * each, each) != 0;
    return count;
}

/* An object that fills the image covers each window: none is turned down for a part that rounds to more than
 * 1, or to less. No trials: no crops. */
static void trials(void **state)
{
    static const float all[] = {2, 6, 5, 0, 0, 1, 1, 0.5f};
    static const tn_crop_sampler once = {
        .min_scale = 0.3, .max_scale = 0.9, .min_aspect_ratio = 0.5, .max_aspect_ratio = 2, .trials = 1};
    static const char *const none[] = {"rand_crop_prob",
                                       "1",
                                       "min_crop_scales",
                                       "0.3",
                                       "max_crop_scales",
                                       "0.9",
                                       "max_crop_trials",
                                       "0",
                                       NULL};
    tn_crop_sampler sampler = once;

    (void)state;
    records_make(all, 8);
    for (int i = 0; i < 3; i++) {
        const tn_boxes_options o = {.rand_crop_prob = 1,
                                    .samplers = &sampler,
                                    .num_crop_sampler = 1,
                                    .crop_emit_mode = "overlap",
                                    .emit_overlap_thresh = 1e-9};

        assert_int_equal(cropped(&o, NULL), i < 2 ? IMAGES : 0);
        sampler.min_sample_coverage = 1;
        sampler.trials = i ? -1 : 1;
    }
    assert_int_equal(cropped(&(const tn_boxes_options){0}, none), 0);
}

/* Labels of no boxes: each image is named, and none is left. */
static void labels_wrong(const float *labels, uint32_t count, const char *text)
{
    tn_app *app;
    tn_data *d;
    tn_batch b;

    records_make(labels, count);
    app = nn_open(NULL);
    d = tn_data_from_images(app, path, .shape = {1, SIDE, SIDE}, .batch = 2,
                            .boxes = &(const tn_boxes_options){0});
    assert_non_null(d);
    assert_false(tn_data_next(d, &b));
    if (!strstr(tn_app_error(app), text))
        fail_msg("\"%s\" is not in: %s", text, tn_app_error(app));
    (void)tn_app_close(app);
}

static void labels(void **state)
{
    static const float nan_width[] = {2, NAN, 0, 0, 0, 1, 1}, part[] = {2, 5, 0, 0, 0, 1, 1, 1};
    static const float beyond[] = {1e9f, 5, 0}, narrow[] = {1, 5, 0}, thin[] = {2, 4, 0, 0, 0, 1};

    (void)state;
    labels_wrong(NULL, 0, "begin with the widths");
    labels_wrong(nan_width, 7, "begin with the widths");
    labels_wrong(beyond, 3, "begin with the widths");
    labels_wrong(narrow, 3, "begin with the widths");
    labels_wrong(thin, 6, "begin with the widths");
    labels_wrong(part, 8, "are no whole objects");
}

#define FAILS(text, boxes_, ...)                                                                             \
    do {                                                                                                     \
        tn_app *app_ = nn_open(NULL);                                                                        \
        assert_null(tn_data_from_images(app_, path, .shape = {1, 9, 9},                                      \
                                        .boxes = &(const tn_boxes_options)boxes_, __VA_ARGS__));             \
        if (!strstr(tn_app_error(app_), text))                                                               \
            fail_msg("\"%s\" is not in: %s", text, tn_app_error(app_));                                      \
        (void)tn_app_close(app_);                                                                            \
    } while (0)
#define BOXES(...)                                                                                           \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define ARG(name, text)                                                                                      \
    .args = (const char *const[])                                                                            \
    {                                                                                                        \
        name, text, NULL                                                                                     \
    }

static void wrong(void **state)
{
    static const tn_crop_sampler crossed = {.min_scale = 0.5, .max_scale = 0.4}, far = {.max_overlap = 2},
                                 backwards = {.trials = -2};

    (void)state;
    records_make(one_object, 8);
    FAILS("rand_crop_prob is 2; it is 0 to 1", BOXES(.rand_crop_prob = 2), .batch = 1);
    FAILS("max_pad_scale is 0.5", BOXES(.max_pad_scale = 0.5), .batch = 1);
    FAILS("rand_mirror_prob is nan", BOXES(.rand_mirror_prob = (double)NAN), .batch = 1);
    FAILS("num_crop_sampler is 2", BOXES(.num_crop_sampler = 2), .batch = 1);
    FAILS("num_crop_sampler is 1000", BOXES(.num_crop_sampler = 1000, .samplers = &far), .batch = 1);
    FAILS("of sampler 0 a min_", BOXES(.samplers = &crossed), .batch = 1);
    FAILS("max_crop_overlaps is 2", BOXES(.samplers = &far), .batch = 1);
    FAILS("an image has 8 labels, label_pad_width is 7", BOXES(.label_pad_width = 7), .batch = 1);
    FAILS("label_pad_width is 0 to 2^24", BOXES(.label_pad_width = -2), .batch = 1);
    FAILS("crop_emit_mode \"centre\"", BOXES(.crop_emit_mode = "centre"), .batch = 1);
    FAILS("resize_mode \"\"", BOXES(.resize_mode = ""), .batch = 1);
    FAILS("pad does not go with boxes", BOXES(0), .pad = 1);
    FAILS("rand_mirror does not go with boxes", BOXES(0), .rand_mirror = 1);
    FAILS("force_resize does not go with boxes", BOXES(0), .force_resize = 1);
    FAILS("divisor does not go with boxes", BOXES(0), .divisor = 255);
    FAILS("classes does not go with boxes", BOXES(0), .classes = 3);
    FAILS("max_crop_trials is -2", BOXES(.samplers = &backwards), .batch = 1);
    FAILS("argument of ImageDetRecordIter \"rand_crop\"", BOXES(0), ARG("rand_crop", "1"));
    FAILS("rand_crop_prob = \"\"", BOXES(0), ARG("rand_crop_prob", NULL));
    FAILS("rand_crop_prob = \"1x\"", BOXES(0), ARG("rand_crop_prob", "1x"));
    FAILS("min_crop_scales = \"(0.1;2)\"", BOXES(0), ARG("min_crop_scales", "(0.1;2)"));
    FAILS("min_crop_scales = \"()\"", BOXES(0), ARG("min_crop_scales", "()"));
    FAILS("a tuple of 2 numbers, num_crop_sampler is 1", BOXES(0), ARG("min_crop_scales", "(0.1,0.2)"));
    FAILS("max_crop_trials = \"1.5\"", BOXES(0), ARG("max_crop_trials", "1.5"));
    FAILS("label_pad_width = \"-2\"", BOXES(0), ARG("label_pad_width", "-2"));
    FAILS("aug_seq = \"aug_default\"", BOXES(0), ARG("aug_seq", "aug_default"));
    (void)snprintf(path, sizeof path, "%s", folder);
    FAILS("boxes are read from a .rec", BOXES(0), .batch = 1);
}

static int folder_end(void **state)
{
    (void)state;
    nn_folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(draws), cmocka_unit_test(bounds),
                                       cmocka_unit_test(trials), cmocka_unit_test(labels),
                                       cmocka_unit_test(wrong)};

    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin image was not built\n");
        return 77;
    }
    folder = nn_quick_folder();
    (void)snprintf(path, sizeof path, "%s/boxes.rec", folder);
    return cmocka_run_group_tests_name("boxes", tests, NULL, folder_end);
}

/*
 * Transforms of images: beside MXNet's (tests/oracle/data.py); those that draw: the same numbers on any
 * thread, within their ranges, and what they do is what the drawn number says.
 */
#include "nn/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define H 6
#define W 9
#define PIXELS (H * W * 3)

static tn_array *cast(tn_app *app, tn_array *x, int32_t dtype)
{
    tn_array *y = NULL;

    assert_int_equal(tn_array_cast(tn_app_ctx(app), x, dtype, &y), TN_OK);
    return tn_app_own(app, y);
}

static tn_array *apply(tn_app *app, const tn_transform_step *steps, uint64_t seed, uint64_t number,
                       tn_array *x)
{
    const tn_transform *t = tn_transform_new(app, steps);
    tn_array *y = NULL;

    if (!t || tn_transform_apply(t, seed, number, x, &y))
        fail_msg("%s: %s", steps[0].kind, t ? tn_error_text() : tn_app_error(app));
    return tn_app_own(app, y);
}

static void test_mxnet(void **state)
{
    static const struct {
        const char *name;
        tn_transform_step steps[3];
        float off; /* bytes: one unit of rounding where windows are resized */
    } rows[] = {
        {"to_tensor", {{.kind = "to_tensor"}}, 0},
        {"normalize",
         {{.kind = "to_tensor"}, {.kind = "normalize", .mean = {0.25, 0.5}, .std = {0.5, 2}}},
         1e-6f},
        {"cast", {{.kind = "cast"}}, 0},
        {"center", {{.kind = "center_crop", .size = {4, 3}}}, 0},
        {"center_odd", {{.kind = "center_crop", .size = {7, 5}}}, 0},
        {"center_wide", {{.kind = "center_crop", .size = {18, 6}}}, 1},
        {"resize", {{.kind = "resize", .size = {5, 7}}}, 1},
        {"resize_one", {{.kind = "resize", .size = {4}}}, 1},
        {"resize_short", {{.kind = "resize", .size = {4}, .keep_ratio = 1}}, 1},
    };
    tn_app *app = nn_open(NULL);
    tn_params *p = NULL;
    tn_array *image = NULL, *want = NULL, *y;
    float a[512], b[512];
    char path[1024];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/data/transforms.params",
                   getenv("TENON_TEST_SOURCE"));
    assert_int_equal(tn_params_load(tn_app_ctx(app), path, NULL, &p), TN_OK);
    assert_int_equal(tn_params_get(p, "image", &image), TN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t *shape = NULL;
        int32_t ndim = 0;
        size_t n;

        y = apply(app, rows[i].steps, 0, 0, cast(app, image, TN_U8));
        assert_int_equal(tn_params_get(p, rows[i].name, &want), TN_OK);
        assert_int_equal(tn_array_shape(want, &ndim, &shape), TN_OK);
        nn_shape(y, ndim, shape);
        n = nn_read(app, want, a, 512);
        assert_int_equal(nn_read(app, cast(app, y, TN_F32), b, 512), n);
        for (size_t k = 0; k < n; k++)
            if (!(fabsf(a[k] - b[k]) <= rows[i].off))
                fail_msg("%s: element %zu is %g, MXNet's %g", rows[i].name, k, (double)b[k], (double)a[k]);
        tn_array_release(want);
    }
    tn_array_release(image);
    tn_params_destroy(p);
    nn_close(app);
}

/* Equal draws for equal numbers, others for others; every kind within its range. */
static void test_random(void **state)
{
    static const char *const kinds[] = {"random_flip_left_right", "random_flip_top_bottom",
                                        "random_brightness",      "random_contrast",
                                        "random_saturation",      "random_hue",
                                        "random_lighting",        "random_resized_crop"};
    tn_app *app = nn_open(NULL);
    float pixels[PIXELS], x[PIXELS], y[PIXELS], first[PIXELS];
    tn_array *image;

    (void)state;
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = 20 + (float)(i * 37 % 101);
    image = tn_app_array(app, 3, (int64_t[]){H, W, 3}, pixels);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const tn_transform_step steps[] = {
            {.kind = kinds[k], .amount = 0.4, .size = {4, 4}, .interp = "nearest"}, {.kind = NULL}};
        int same = 0, others = 0;

        for (uint64_t number = 0; number < 40; number++) {
            const size_t n = nn_read(app, apply(app, steps, 7, number, image), x, PIXELS);

            assert_int_equal(nn_read(app, apply(app, steps, 7, number, image), y, PIXELS), n);
            assert_memory_equal(x, y, n * sizeof *x);
            same += number && !memcmp(x, first, n * sizeof *x);
            (void)nn_read(app, apply(app, steps, 8, number, image), y, PIXELS);
            others += memcmp(x, y, n * sizeof *x) != 0;
            if (!number)
                memcpy(first, x, n * sizeof *x);
            if (k == 2) { /* one factor for all pixels */
                const float f = x[0] / pixels[0];

                assert_true(f >= 0.6f && f <= 1.4f);
                for (size_t i = 0; i < n; i++)
                    assert_true(fabsf(x[i] - f * pixels[i]) < 1e-3f);
            }
            for (size_t i = 0; k == 7 && i < n; i++) /* pixels of the image, none else */
                assert_true(x[i] >= 20 && x[i] <= 120);
            tn_app_release(app, 1);
        }
        if (k < 2) /* half of them */
            assert_true(same > 8 && same < 32);
        else
            assert_true(same < 3 && others > 35);
    }
    nn_close(app);
}

/* A flip is a flip; nothing at all gives the array itself. */
static void test_kinds(void **state)
{
    static const tn_transform_step none[] = {{.kind = NULL}},
                                   flip[] = {{.kind = "random_flip_left_right"}, {.kind = NULL}};
    tn_app *app = nn_open(NULL);
    float pixels[PIXELS], x[PIXELS];
    tn_array *one;
    int flipped = 0;

    (void)state;
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = (float)i;
    one = tn_app_array(app, 3, (int64_t[]){H, W, 3}, pixels);
    assert_ptr_equal(apply(app, none, 0, 0, one), one);
    for (uint64_t number = 0; number < 20; number++) {
        assert_int_equal(nn_read(app, apply(app, flip, 1, number, one), x, PIXELS), PIXELS);
        flipped += x[0] != 0;
        for (int i = 0; x[0] != 0 && i < H * W; i++)
            assert_true(x[3 * i] == pixels[3 * (i / W * W + W - 1 - i % W)]);
    }
    assert_true(flipped > 2 && flipped < 18);
    nn_close(app);
}

/* What the program draws is what it would draw without them. */
static void test_draws(void **state)
{
    static const tn_transform_step all[] = {
        {.kind = "random_brightness", .amount = 0.4},    {.kind = "random_contrast", .amount = 0.4},
        {.kind = "random_saturation", .amount = 0.4},    {.kind = "random_hue", .amount = 0.4},
        {.kind = "random_lighting", .amount = 0.1},      {.kind = "random_flip_top_bottom"},
        {.kind = "random_resized_crop", .size = {4, 4}}, {.kind = NULL}};
    float drawn[2][4];

    (void)state;
    for (int with = 0; with < 2; with++) {
        tn_app *app = nn_open(NULL);
        const char *const attrs[] = {"shape", "(4,)", NULL};
        const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "_random_uniform", .attrs = attrs};
        tn_array *image = tn_app_array(app, 3, (int64_t[]){H, W, 3}, NULL), *y = NULL;

        for (uint64_t i = 0; with && i < 5; i++)
            nn_shape(apply(app, all, 1, i, image), 3, (int64_t[]){4, 4, 3});
        assert_int_equal(tn_invoke_text(tn_app_ctx(app), &call, 1, &y, NULL), TN_OK);
        assert_int_equal(tn_array_read(y, drawn[with], sizeof drawn[with]), TN_OK);
        tn_array_release(y);
        nn_close(app);
    }
    assert_memory_equal(drawn[0], drawn[1], sizeof drawn[0]);
}

static void test_refused(void **state)
{
    static const struct {
        tn_transform_step step;
        const char *says;
    } rows[] = {
        {{.kind = "random_flip"}, "there are: to_tensor"},
        {{.kind = ""}, "there are: to_tensor"},
        {{.kind = "resize"}, ".size is missing"},
        {{.kind = "center_crop", .size = {-1, 2}}, ".size is missing"},
        {{.kind = "resize", .size = {4, -2}}, ".size is missing"},
        {{.kind = "resize", .size = {4}, .interp = "lanczos"}, "unknown interpolation"},
        {{.kind = "random_resized_crop", .size = {4}, .area = {0.5, 0.2}}, ".area or .ratio"},
        {{.kind = "random_resized_crop", .size = {4}, .area = {0.5, 2}}, ".area or .ratio"},
        {{.kind = "random_resized_crop", .size = {4}, .ratio = {0, 2}}, ".area or .ratio"},
        {{.kind = "random_brightness", .amount = -1}, ".amount is to be"},
        {{.kind = "random_hue", .amount = NAN}, ".amount is to be"},
        {{.kind = "normalize", .mean = {INFINITY}}, "are to be finite"},
        {{.kind = "cast", .dtype = 99}, ".dtype is none"},
    };
    static const char *const shaped[] = {"to_tensor", "center_crop", "random_resized_crop", "resize"};
    static const tn_transform_step none[] = {{.kind = NULL}};
    static tn_transform_step many[100];
    tn_app *app = nn_open(NULL);
    tn_transform *t;
    tn_array *flat, *out = NULL;

    (void)state;
    assert_null(tn_transform_new(NULL, none));
    assert_null(tn_transform_new(app, NULL));
    assert_int_equal(tn_app_status(app), TN_E_ARG);
    tn_app_clear(app);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tn_transform_step steps[] = {rows[i].step, {.kind = NULL}};

        assert_null(tn_transform_new(app, steps));
        if (!strstr(tn_app_error(app), rows[i].says))
            fail_msg("row %zu: %s", i, tn_app_error(app));
        tn_app_clear(app);
    }
    for (int i = 0; i < 99; i++)
        many[i].kind = "to_tensor";
    assert_null(tn_transform_new(app, many));
    tn_app_clear(app);
    flat = tn_app_array(app, 1, (int64_t[]){5}, NULL);
    for (size_t i = 0; i < sizeof shaped / sizeof *shaped; i++) {
        const tn_transform_step steps[] = {{.kind = shaped[i], .size = {2}}, {.kind = NULL}};

        t = tn_transform_new(app, steps);
        assert_int_not_equal(tn_transform_apply(t, 0, 0, flat, &out), TN_OK);
        assert_true(!out && *tn_error_text());
    }
    t = tn_transform_new(app, none);
    assert_int_equal(tn_transform_apply(NULL, 0, 0, flat, &out), TN_E_ARG);
    assert_int_equal(tn_transform_apply(t, 0, 0, NULL, &out), TN_E_ARG);
    assert_int_equal(tn_transform_apply(t, 0, 0, flat, NULL), TN_E_ARG);
    nn_close(app);
}

/* Parts, groups: with a chance, in a random order; each step draws what it draws alone. */
static void test_groups(void **state)
{
    static const tn_transform_step flips[] = {{.kind = "random_flip_left_right"}, {.kind = NULL}};
    static const tn_transform_step never[] = {{.kind = "random_apply", .size = {2}, .amount = 1e-300},
                                              {.kind = "resize", .size = {3}},
                                              {.kind = "cast"},
                                              {.kind = "center_crop", .size = {2, 2}},
                                              {.kind = NULL}};
    static const tn_transform_step half[] = {
        {.kind = "random_apply", .size = {1}}, {.kind = "center_crop", .size = {2, 2}}, {.kind = NULL}};
    static const tn_transform_step order[] = {{.kind = "random_order", .size = {2}},
                                              {.kind = "center_crop", .size = {8, 2}},
                                              {.kind = "center_crop", .size = {4, 6}},
                                              {.kind = NULL}};
    static const tn_transform_step part[] = {
        {.kind = "crop_resize", .at = {2, 1}, .crop = {3, 4}, .size = {3, 4}}, {.kind = NULL}};
    static const tn_transform_step anywhere[] = {{.kind = "random_crop", .size = {4, 2}}, {.kind = NULL}};
    static const tn_transform_step jitter[] = {
        {.kind = "random_color_jitter", .amounts = {0.2, 0.2, 0.2, 0.2}}, {.kind = NULL}};
    tn_app *app = nn_open(NULL);
    const int64_t shape[] = {H, W, 3};
    tn_array *x = cast(app, tn_app_array(app, 3, shape, NULL), TN_U8);
    unsigned char bytes[PIXELS], got[PIXELS];
    int taken = 0, first = 0;

    (void)state;
    for (int i = 0; i < PIXELS; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(tn_array_from(tn_app_ctx(app), TN_U8, 3, shape, bytes, &x), TN_OK);
    x = tn_app_own(app, x);
    nn_shape(apply(app, never, 1, 1, x), 3, (const int64_t[]){2, 2, 3});
    assert_int_equal(tn_array_read(apply(app, part, 1, 1, x), got, 36), TN_OK);
    for (int y = 0; y < 4; y++)
        assert_memory_equal(got + 9 * y, bytes + ((y + 1) * W + 2) * 3, 9);
    nn_shape(apply(app, anywhere, 1, 1, x), 3, (const int64_t[]){2, 4, 3});
    for (uint64_t n = 0; n < 40; n++) {
        const int64_t *size = NULL;
        int32_t ndim;

        assert_int_equal(tn_array_shape(apply(app, half, 3, n, x), &ndim, &size), TN_OK);
        taken += size[0] == 2;
        nn_shape(apply(app, jitter, 3, n, x), 3, shape);
        nn_shape(apply(app, flips, 3, n, x), 3, shape);
        assert_int_equal(tn_array_shape(apply(app, order, 3, n, x), &ndim, &size), TN_OK);
        first += size[0] == 6;
    }
    assert_in_range(taken, 8, 32);
    assert_in_range(first, 8, 32);
    nn_close(app);
}

/* A drawn angle turns as that angle does; other images than float32 (C, H, W) are the operator's errors. */
static void test_rotations(void **state)
{
    static const tn_transform_step turn[] = {{.kind = "rotate", .angle = {25}, .zoom = 1}, {.kind = NULL}},
                                   fixed[] = {{.kind = "random_rotation", .angle = {25, 25}, .zoom = 1},
                                              {.kind = NULL}},
                                   drawn[] = {{.kind = "random_rotation", .angle = {-60, 60}},
                                              {.kind = NULL}};
    static const int64_t shape[] = {3, H, W}, flat[] = {H, W}, row[] = {3, 1, W};
    tn_app *app = nn_open(NULL);
    tn_array *x = nn_array(app, 3, shape, 1), *bytes = cast(app, x, TN_U8), *y = NULL;
    float a[PIXELS], b[PIXELS], c[PIXELS];

    (void)state;
    (void)nn_read(app, apply(app, turn, 1, 1, x), a, PIXELS);
    (void)nn_read(app, apply(app, fixed, 5, 7, x), b, PIXELS);
    assert_memory_equal(a, b, sizeof a);
    (void)nn_read(app, apply(app, drawn, 5, 7, x), a, PIXELS);
    (void)nn_read(app, apply(app, drawn, 5, 7, x), b, PIXELS);
    (void)nn_read(app, apply(app, drawn, 5, 8, x), c, PIXELS);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    nn_shape(apply(app, turn, 1, 1, nn_array(app, 3, row, 1)), 3, row);
    assert_int_not_equal(tn_transform_apply(tn_transform_new(app, turn), 1, 1, bytes, &y), TN_OK);
    assert_non_null(strstr(tn_error_text(), "BilinearSampler"));
    assert_int_not_equal(tn_transform_apply(tn_transform_new(app, turn), 1, 1, nn_array(app, 2, flat, 1), &y),
                         TN_OK);
    assert_non_null(strstr(tn_error_text(), "BilinearSampler"));
    assert_null(y);
    nn_close(app);
}

static void test_wrong_groups(void **state)
{
    static const struct {
        tn_transform_step steps[4];
        const char *text;
    } rows[] = {
        {{{.kind = "random_apply", .size = {2}}, {.kind = "cast"}}, "step 0 is a group of 2, 1 follow"},
        {{{.kind = "random_apply"}, {.kind = "cast"}}, "random_apply: .size is missing"},
        {{{.kind = "random_apply", .size = {1}, .amount = 1.5}, {.kind = "cast"}},
         ".amount is to be 0 or more"},
        {{{.kind = "random_order", .size = {2}}, {.kind = "random_apply", .size = {1}}, {.kind = "cast"}},
         "step 1 is a group within a random order"},
        {{{.kind = "random_color_jitter", .amounts = {0, -1}}}, ".amounts are to be 0 or more"},
        {{{.kind = "random_color_jitter", .amounts = {0, NAN}}}, ".amounts are to be 0 or more"},
        {{{.kind = "crop_resize", .at = {0, 0}, .crop = {2, 2}}}, "crop_resize: .size is missing"},
        {{{.kind = "rotate", .angle = {NAN}}}, "rotate: .angle is to be finite"},
        {{{.kind = "random_rotation", .angle = {10, INFINITY}}}, "random_rotation: .angle is to be finite"},
        {{{.kind = "random_rotation", .angle = {10, 9}}}, "the smaller one first"},
        {{{.kind = "rotate", .zoom = 2}}, "rotate: .zoom is to be -1, 0 or 1"},
        {{{.kind = "rotate", .zoom = -2}}, "rotate: .zoom is to be -1, 0 or 1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_app *app = nn_open(NULL);

        assert_null(tn_transform_new(app, rows[i].steps));
        assert_int_equal(tn_app_status(app), TN_E_ARG);
        nn_close_failed(app, rows[i].text, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_wrong_groups), cmocka_unit_test(test_mxnet),
        cmocka_unit_test(test_random),  cmocka_unit_test(test_kinds),        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_rotations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

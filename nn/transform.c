/*
 * Changes of images that are arrays, step by step, by the operators _image_*. What is random is drawn here,
 * from the seed, the number of the sample and the place of the step; the operators get one factor as both
 * ends of their range. So threads may do samples in any order.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define STEPS_MAX 64
#define APART "cpu:63"
#define NUMBERS_TEXT (4 * TNN_NUMBER_TEXT + 8)
#define TRIES 10 /* for a window that lies in the image, as MXNet's random_size_crop */

typedef struct step step;
typedef tn_status (*step_fn)(step *s);

typedef struct planned { /* a step, as it was checked */
    step_fn run;
    int64_t width, height; /* height 0: not said */
    int32_t keep_ratio, interp, dtype;
    bool ordered; /* a group: in a random order, else with a chance */
    double area[2], ratio[2], mean[4], std[4], amount, amounts[4], angle[2];
    int64_t at[2], crop[2];
    int32_t zoom;
} planned;

struct tn_transform {
    tnn_object object;
    tn_ctx *ctx;
    size_t count;
    planned steps[STEPS_MAX];
};

struct step {
    tn_ctx *ctx;
    const planned *t;
    uint64_t key, number, place, drawn;
    tn_array *x; /* ours */
    int64_t rows, columns, channels;
};

/* In [0, 1), another one at each call. */
static double draw(step *s)
{
    return tnn_random_unit(s->key, s->number, s->place << 32 | s->drawn++);
}

static double draw_between(step *s, double low, double high)
{
    return low + (high - low) * draw(s);
}

/* x = y, where that came about. [takes] y */
static tn_status replace(step *s, tn_status st, tn_array *y)
{
    if (st)
        return st;
    tn_array_release(s->x);
    s->x = y;
    return TN_OK;
}

/* x = op(x) with pairs of attributes. */
static tn_status call(step *s, const char *op, const char *const *attrs)
{
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = 1, .op = op, .attrs = attrs, .in = &s->x};
    tn_array *y = NULL;
    const tn_status st = tn_invoke_text(s->ctx, &c, 1, &y, NULL);

    return replace(s, st, y);
}

/* Its size as an image (…, H, W, C); `channels` as a tensor (…, C, H, W). */
static tn_status image_look(step *s)
{
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    tn_status st = tn_array_shape(s->x, &ndim, &shape);

    if (st || ndim < 3) /* the operator says what it needs */
        return st ? st : call(s, "_image_flip_left_right", NULL);
    s->channels = s->rows = shape[ndim - 3];
    s->columns = shape[ndim - 2];
    return TN_OK;
}

static tn_status to_tensor(step *s)
{
    return call(s, "_image_to_tensor", NULL);
}

/* "(0.5,1,2)" of up to 4 numbers. */
static void numbers_write(char out[NUMBERS_TEXT], const double *from, size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        out[used++] = i ? ',' : '(';
        tnn_number_text(out + used, 9, from[i]);
        used += strlen(out + used);
    }
    memcpy(out + used, ")", 2);
}

static tn_status normalize(step *s)
{
    char mean[NUMBERS_TEXT], std[NUMBERS_TEXT];
    const char *const attrs[] = {"mean", mean, "std", std, NULL};
    size_t count;
    tn_status st = image_look(s);

    if (st)
        return st;
    count = s->channels > 0 && s->channels < 4 ? (size_t)s->channels : 4;
    numbers_write(mean, s->t->mean, count);
    numbers_write(std, s->t->std, count);
    return call(s, "_image_normalize", attrs);
}

static tn_status cast(step *s)
{
    tn_array *y = NULL;
    const tn_status st = tn_array_cast(s->ctx, s->x, s->t->dtype, &y);

    return replace(s, st, y);
}

static tn_status resize_to(step *s, int64_t width, int64_t height, int32_t keep)
{
    char size[64], interp[4];

    (void)snprintf(size, sizeof size, height ? "(%lld,%lld)" : "(%lld,)", (long long)width,
                   (long long)height);
    (void)snprintf(interp, sizeof interp, "%d", s->t->interp);
    return call(s, "_image_resize",
                (const char *const[]){"size", size, "keep_ratio", keep ? "1" : "0", "interp", interp, NULL});
}

static tn_status resize(step *s)
{
    return resize_to(s, s->t->width, s->t->height, s->t->keep_ratio);
}

/* The window, in the size that is asked for. */
static tn_status window(step *s, int64_t x, int64_t y, int64_t width, int64_t height)
{
    const int64_t to_width = s->t->width, to_height = s->t->height ? s->t->height : to_width;
    char text[4][24];
    tn_status st;

    (void)snprintf(text[0], sizeof *text, "%lld", (long long)x);
    (void)snprintf(text[1], sizeof *text, "%lld", (long long)y);
    (void)snprintf(text[2], sizeof *text, "%lld", (long long)width);
    (void)snprintf(text[3], sizeof *text, "%lld", (long long)height);
    st = call(s, "_image_crop",
              (const char *const[]){"x", text[0], "y", text[1], "width", text[2], "height", text[3], NULL});
    return st || (width == to_width && height == to_height) ? st : resize_to(s, to_width, to_height, 0);
}

/* The largest window of the wanted ratio up to the wanted size: width, height. */
static void scale_down(const step *s, int64_t out[2])
{
    double width = (double)s->t->width, height = (double)(s->t->height ? s->t->height : s->t->width);
    const double h = (double)s->rows, w = (double)s->columns;

    if (h < height) {
        width = width * h / height;
        height = h;
    }
    if (w < width) {
        height = height * w / width;
        width = w;
    }
    out[0] = (int64_t)width;
    out[1] = (int64_t)height;
}

static tn_status center_crop(step *s)
{
    tn_status st = image_look(s);
    int64_t size[2];

    if (st)
        return st;
    scale_down(s, size);
    return window(s, (s->columns - size[0]) / 2, (s->rows - size[1]) / 2, size[0], size[1]);
}

static tn_status random_resized_crop(step *s)
{
    const double *area = s->t->area, *ratio = s->t->ratio;
    tn_status st = image_look(s);

    if (st)
        return st;
    for (int i = 0; i < TRIES; i++) {
        const double h = (double)s->rows, w = (double)s->columns;
        const double target = draw_between(s, area[0], area[1]) * h * w;
        const double shape = exp(draw_between(s, log(ratio[0]), log(ratio[1])));
        const double width = nearbyint(sqrt(target * shape)), height = nearbyint(sqrt(target / shape));

        if (width >= 1 && height >= 1 && width <= w && height <= h)
            return window(s, (int64_t)(draw(s) * (w - width + 1)), (int64_t)(draw(s) * (h - height + 1)),
                          (int64_t)width, (int64_t)height);
    }
    return center_crop(s);
}

static tn_status flip_columns(step *s)
{
    return draw(s) < 0.5 ? TN_OK : call(s, "_image_flip_left_right", NULL);
}

static tn_status flip_rows(step *s)
{
    return draw(s) < 0.5 ? TN_OK : call(s, "_image_flip_top_bottom", NULL);
}

/* x = the copy on `device`. */
static tn_status move(step *s, const tn_device *device)
{
    tn_array *y = NULL;
    const tn_status st = tn_array_to(s->ctx, s->x, device, &y);

    return replace(s, st, y);
}

/* By an operator that takes a draw of its device though its range is one number. It runs on a device that the
 * program does not use: else what the program draws would depend on how far the threads are. */
static tn_status factor(step *s, const char *op, double amount)
{
    const tn_device *home = tn_array_device(s->x), *apart = NULL;
    const double low = amount < 1 ? 1 - amount : 0;
    char text[TNN_NUMBER_TEXT];
    tn_status st;

    tnn_number_text(text, 9, draw_between(s, low, 1 + amount));
    if ((st = tn_device_get(s->ctx, APART, &apart)) || (st = move(s, apart)) ||
        (st = call(s, op, (const char *const[]){"min_factor", text, "max_factor", text, NULL})))
        return st;
    return move(s, home);
}

static const char *const colours[] = {"_image_random_brightness", "_image_random_contrast",
                                      "_image_random_saturation", "_image_random_hue"};

static tn_status brightness(step *s)
{
    return factor(s, colours[0], s->t->amount);
}

static tn_status contrast(step *s)
{
    return factor(s, colours[1], s->t->amount);
}

static tn_status saturation(step *s)
{
    return factor(s, colours[2], s->t->amount);
}

static tn_status hue(step *s)
{
    return factor(s, colours[3], s->t->amount);
}

static void order_draw(step *s, size_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count; i-- > 1;) {
        const size_t other = (size_t)(draw(s) * (double)(i + 1)), kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
}

static tn_status jitter(step *s)
{
    size_t order[4];
    tn_status st = TN_OK;

    order_draw(s, order, 4);
    for (size_t i = 0; !st && i < 4; i++)
        if (s->t->amounts[order[i]] > 0)
            st = factor(s, colours[order[i]], s->t->amounts[order[i]]);
    return st;
}

static tn_status lighting(step *s)
{
    char text[NUMBERS_TEXT];
    double alpha[3];

    for (int i = 0; i < 3; i++)
        alpha[i] = s->t->amount * tnn_random_normal(s->key, s->number, s->place << 32 | s->drawn++);
    numbers_write(text, alpha, 3);
    return call(s, "_image_adjust_lighting", (const char *const[]){"alpha", text, NULL});
}

/* The part at `at`, and its size. */
static tn_status crop_resize(step *s)
{
    return window(s, s->t->at[0], s->t->at[1], s->t->crop[0], s->t->crop[1]);
}

static tn_status random_crop(step *s)
{
    tn_status st = image_look(s);
    int64_t size[2];

    if (st)
        return st;
    scale_down(s, size);
    return window(s, (int64_t)(draw(s) * (double)(s->columns - size[0] + 1)),
                  (int64_t)(draw(s) * (double)(s->rows - size[1] + 1)), size[0], size[1]);
}

/* ---- rotations: a grid of places that BilinearSampler reads at, as mx.image.imrotate has it ---- */

static double zoom_of(double turn, double w, double h, int32_t zoom)
{
    const double corner = atan(h / w), rho = sqrt(h * h + w * w);
    const double x = fmax(fabs(rho * cos(corner + turn)), fabs(rho * cos(corner - turn)));
    const double y = fmax(fabs(rho * sin(corner + turn)), fabs(rho * sin(corner - turn)));

    return zoom < 0 ? fmax(x / w, y / h) : zoom > 0 ? fmin(w / x, h / y) : 1;
}

/* (1, 2, H, W): from -1 to 1, columns, then rows. */
static void grid_fill(float *grid, int64_t h, int64_t w, double degrees, int32_t zoom)
{
    const double turn = degrees * 3.14159265358979323846 / 180, c = cos(turn), d = sin(turn);
    const double by = zoom_of(fabs(turn), (double)w, (double)h, zoom);
    const double middle[2] = {(double)(w - 1) / 2, (double)(h - 1) / 2};

    for (int64_t i = 0; i < h * w; i++) {
        const double x = (double)(i % w) - middle[0], y = (double)(i / w) - middle[1];

        grid[i] = middle[0] > 0 ? (float)((x * c - y * d) / middle[0] * by) : 0;
        grid[h * w + i] = middle[1] > 0 ? (float)((x * d + y * c) / middle[1] * by) : 0;
    }
}

static tn_status grid_make(step *s, const int64_t *image, double degrees, tn_array **out)
{
    const int64_t shape[] = {1, 2, image[1], image[2]};
    float *values = calloc((size_t)(image[1] * image[2]) + 1, 2 * sizeof *values);
    tn_array *made = NULL;
    tn_status st = values ? TN_OK : TN_E_NOMEM;

    if (values)
        grid_fill(values, image[1], image[2], degrees, s->t->zoom);
    if (!st && !(st = tn_array_from(s->ctx, TN_F32, 4, shape, values, &made)))
        st = tn_array_to(s->ctx, made, tn_array_device(s->x), out);
    tn_array_release(made);
    free(values);
    return st;
}

static tn_status rotated(step *s, double degrees)
{
    const int64_t *shape = NULL;
    int64_t one[] = {1, 0, 0, 0};
    int32_t ndim = 0;
    tn_array *in[2] = {NULL}, *y = NULL, *back = NULL;
    const tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "BilinearSampler", .in = in};
    tn_status st = tn_array_shape(s->x, &ndim, &shape);

    if (!st && ndim != 3) /* the operator says what it needs */
        return call(s, "BilinearSampler", NULL);
    if (!st) {
        memcpy(one + 1, shape, 3 * sizeof *one);
        st = tn_array_reshape(s->x, 4, one, &in[0]);
    }
    if (!st && !(st = grid_make(s, one + 1, degrees, &in[1])) &&
        !(st = tn_invoke_text(s->ctx, &c, 1, &y, NULL)))
        st = tn_array_reshape(y, 3, one + 1, &back);
    tn_array_release(in[0]);
    tn_array_release(in[1]);
    tn_array_release(y);
    return replace(s, st, back);
}

static tn_status rotate(step *s)
{
    return rotated(s, s->t->angle[0]);
}

static tn_status random_rotation(step *s)
{
    return rotated(s, draw_between(s, s->t->angle[0], s->t->angle[1]));
}

#define SIZED 1u
#define GROUP 2u  /* of the steps that follow */
#define TURNED 4u /* two angles */

static const struct {
    const char *name;
    step_fn run;
    uint32_t needs;
} kinds[] = {
    {"to_tensor", to_tensor, 0},
    {"normalize", normalize, 0},
    {"cast", cast, 0},
    {"resize", resize, SIZED},
    {"center_crop", center_crop, SIZED},
    {"random_resized_crop", random_resized_crop, SIZED},
    {"random_flip_left_right", flip_columns, 0},
    {"random_flip_top_bottom", flip_rows, 0},
    {"random_brightness", brightness, 0},
    {"random_contrast", contrast, 0},
    {"random_saturation", saturation, 0},
    {"random_hue", hue, 0},
    {"random_lighting", lighting, 0},
    {"random_color_jitter", jitter, 0},
    {"crop_resize", crop_resize, SIZED},
    {"random_crop", random_crop, SIZED},
    {"rotate", rotate, 0},
    {"random_rotation", random_rotation, TURNED},
    {"random_apply", NULL, SIZED | GROUP},
    {"random_order", NULL, SIZED | GROUP},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* ---- making ---- */

static void range_take(double out[2], const double given[2], double low, double high)
{
    out[0] = given[0] != 0 || given[1] != 0 ? given[0] : low;
    out[1] = given[0] != 0 || given[1] != 0 ? given[1] : high;
}

static tn_status step_take(tn_app *app, const tn_transform_step *t, planned *out)
{
    static const char *const interps[] = {"nearest", "linear", "cubic", "area", NULL};
    const char *names[KINDS + 1] = {NULL};
    size_t k = 0;

    for (size_t i = 0; i < KINDS; i++)
        names[i] = kinds[i].name;
    while (k < KINDS && strcmp(names[k], t->kind) != 0)
        k++;
    if (k == KINDS)
        return tnn_unknown(app, "transform", t->kind, names);
    *out = (planned){.run = kinds[k].run,
                     .width = t->size[0],
                     .height = t->size[1],
                     .keep_ratio = t->keep_ratio,
                     .interp = 1,
                     .dtype = t->dtype,
                     .amount = t->amount,
                     .at = {t->at[0], t->at[1]},
                     .crop = {t->crop[0], t->crop[1]},
                     .angle = {t->angle[0], t->angle[1]},
                     .zoom = t->zoom,
                     .ordered = !strcmp(t->kind, "random_order")};
    if (t->interp) {
        if (!tnn_one_of(t->interp, interps))
            return tnn_unknown(app, "interpolation", t->interp, interps);
        for (out->interp = 0; strcmp(interps[out->interp], t->interp) != 0;)
            out->interp++;
    }
    range_take(out->area, t->area, 0.08, 1);
    range_take(out->ratio, t->ratio, 3.0 / 4, 4.0 / 3);
    for (int i = 0; i < 4; i++) {
        out->mean[i] = t->mean[i];
        out->std[i] = t->std[i] != 0 ? t->std[i] : 1;
        if (!isfinite(t->mean[i]) || !isfinite(t->std[i]))
            return tnn_fail(app, TN_E_ARG, "%s: mean and std are to be finite", t->kind);
    }
    if (kinds[k].needs & SIZED &&
        (t->size[0] < 1 || t->size[0] > INT32_MAX || t->size[1] < 0 || t->size[1] > INT32_MAX))
        return tnn_fail(app, TN_E_ARG, "%s: .size is missing or out of range", t->kind);
    if (!(out->area[0] >= 0 && out->area[0] <= out->area[1] && out->area[1] <= 1 && out->ratio[0] > 0 &&
          out->ratio[0] <= out->ratio[1] && out->ratio[1] < 1e6))
        return tnn_fail(app, TN_E_ARG, "%s: .area or .ratio is out of range", t->kind);
    for (int i = 0; i < 4; i++) {
        out->amounts[i] = t->amounts[i];
        if (!(t->amounts[i] >= 0 && t->amounts[i] < 1e6))
            return tnn_fail(app, TN_E_ARG, "%s: .amounts are to be 0 or more", t->kind);
    }
    if (!isfinite(t->angle[0]) || !isfinite(t->angle[1]) ||
        (kinds[k].needs & TURNED && t->angle[0] > t->angle[1]))
        return tnn_fail(app, TN_E_ARG, "%s: .angle is to be finite%s", t->kind,
                        kinds[k].needs & TURNED ? ", the smaller one first" : "");
    if (t->zoom < -1 || t->zoom > 1)
        return tnn_fail(app, TN_E_ARG, "%s: .zoom is to be -1, 0 or 1", t->kind);
    if (!(t->amount >= 0 && t->amount < 1e6) || (kinds[k].needs & GROUP && t->amount > 1))
        return tnn_fail(app, TN_E_ARG, "%s: .amount is to be 0 or more%s", t->kind,
                        kinds[k].needs & GROUP ? ", up to 1" : "");
    return t->dtype >= 0 && t->dtype < TN_DTYPE_LIMIT
               ? TN_OK
               : tnn_fail(app, TN_E_ARG, "%s: .dtype is none", t->kind);
}

static void transform_destroy(tnn_object *object)
{
    free(object);
}

/* A group's steps are there; those of an order are none themselves. */
static tn_status groups_check(tn_app *app, const tn_transform *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const planned *g = &t->steps[i];

        if (g->run)
            continue;
        if (g->width > (int64_t)(t->count - i - 1))
            return tnn_fail(app, TN_E_ARG, "step %zu is a group of %lld, %zu follow", i, (long long)g->width,
                            t->count - i - 1);
        for (size_t k = 1; g->ordered && k <= (size_t)g->width; k++)
            if (!t->steps[i + k].run)
                return tnn_fail(app, TN_E_ARG, "step %zu is a group within a random order", i + k);
    }
    return TN_OK;
}

tn_transform *tn_transform_new(tn_app *app, const tn_transform_step *steps)
{
    tn_transform *t;

    if (!tnn_ok(app))
        return NULL;
    if (!steps) {
        (void)tnn_fail(app, TN_E_ARG, "tn_transform_new: steps is NULL");
        return NULL;
    }
    if (!(t = tnn_alloc(app, 1, sizeof *t)))
        return NULL;
    tnn_object_add(app, &t->object, transform_destroy);
    t->ctx = app->ctx;
    for (; !app->status && steps[t->count].kind; t->count++) {
        if (t->count == STEPS_MAX)
            (void)tnn_fail(app, TN_E_ARG, "a transform of more than %d steps", STEPS_MAX);
        else
            (void)step_take(app, &steps[t->count], &t->steps[t->count]);
        if (app->status)
            break;
    }
    return app->status || groups_check(app, t) ? NULL : t;
}

static tn_status one_run(step *s, const planned *t, size_t place)
{
    s->t = t;
    s->place = place;
    s->drawn = 0;
    return t->run(s);
}

/* Of a group, and the steps that it takes away: how many places. */
static tn_status group_run(step *s, const tn_transform *t, size_t place, size_t *places)
{
    const planned *g = &t->steps[place];
    const size_t count = (size_t)g->width;
    size_t order[STEPS_MAX];
    tn_status st = TN_OK;

    s->place = place;
    s->drawn = 0;
    *places = 1;
    if (!g->ordered) {
        *places += draw(s) < (g->amount != 0 ? g->amount : 0.5) ? 0 : count;
        return TN_OK;
    }
    order_draw(s, order, count);
    for (size_t i = 0; !st && i < count; i++)
        st = one_run(s, &t->steps[place + 1 + order[i]], place + 1 + order[i]);
    *places += count;
    return st;
}

tn_status tn_transform_apply(const tn_transform *t, uint64_t seed, uint64_t number, tn_array *x,
                             tn_array **out)
{
    step s = {.key = tnn_random_mix(seed, TNN_PURPOSE_TRANSFORM), .number = number, .x = x};
    tn_status st = TN_OK;
    size_t at = 0;

    if (!t || !x || !out)
        return TN_E_ARG;
    s.ctx = t->ctx;
    tn_array_retain(x);
    while (!st && at < t->count) {
        size_t places = 1;

        st = t->steps[at].run ? one_run(&s, &t->steps[at], at) : group_run(&s, t, at, &places);
        at += places;
    }
    if (st)
        tn_array_release(s.x);
    else
        *out = s.x;
    return st;
}

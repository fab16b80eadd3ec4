/*
 * What MXNet's ImageRecordIter does with an image, step by step. Resizes and crops are only noted at first:
 * which pixels the last one needs is known then, and no others are decoded or computed. A turn or a border
 * needs the whole image.
 */
#include "augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pixels.h"
#include "tenon/image.h"

#define STAGES_MAX 6
#define SIDE_MAX 65500
#define TRIES 10
#define AUTO 9
#define RANDOM 10

typedef struct stage { /* a part of the image is resized */
    tnb_rect from, window;
    tnb_resize resize;
} stage;

typedef struct shot {
    tn_ctx *ctx;
    const tn_images_options *o;
    tnn_draws *draws;
    const void *data; /* encoded; the image is not decoded yet while `image.data` is NULL */
    uint64_t bytes;
    tnb_pixels image; /* ours */
    stage stages[STAGES_MAX];
    size_t count;
    tnb_rect now; /* the image as it will be, within the result of the last stage */
    int interp;
    const char *why; /* what is wrong; NULL: tn_error_text() */
} shot;

static tn_status wrong(shot *s, const char *text)
{
    s->why = text;
    return TN_E_SHAPE;
}

/* ---- draws ---- */

static double draw(shot *s)
{
    return tnn_random_unit(s->draws->key, s->draws->sample, s->draws->drawn++);
}

static double between(shot *s, double low, double high)
{
    return low + (high - low) * draw(s);
}

/* A whole number from `low` to `high`. */
static int32_t whole_between(shot *s, int32_t low, int32_t high)
{
    const double span = (double)high - low + 1;
    const int32_t step = (int32_t)(draw(s) * span);

    return low + (step < (int32_t)span ? step : (int32_t)span - 1);
}

static int interp_of(shot *s, int32_t width, int32_t height, int32_t new_width, int32_t new_height)
{
    if (s->interp == RANDOM)
        return whole_between(s, TNB_NEAREST, TNB_LANCZOS);
    if (s->interp != AUTO)
        return s->interp;
    if (new_width > width && new_height > height)
        return TNB_CUBIC;
    return new_width < width && new_height < height ? TNB_AREA : TNB_LINEAR;
}

/* ---- sizes: noted, then made ---- */

static tn_status resize_to(shot *s, int64_t width, int64_t height)
{
    stage *t = &s->stages[s->count];

    if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX || s->count == STAGES_MAX)
        return wrong(s, "a resized image has no pixels, or too many");
    t->resize = (tnb_resize){{s->now.width, s->now.height}, {(int32_t)width, (int32_t)height}, 0};
    t->resize.interp = interp_of(s, s->now.width, s->now.height, (int32_t)width, (int32_t)height);
    t->from = s->now;
    s->now = (tnb_rect){0, 0, (int32_t)width, (int32_t)height};
    if (t->from.width != width || t->from.height != height)
        s->count++;
    else
        s->now = t->from; /* the same size: nothing is to be done */
    return TN_OK;
}

static void crop(shot *s, tnb_rect r)
{
    s->now = (tnb_rect){s->now.x + r.x, s->now.y + r.y, r.width, r.height};
}

static tn_status pixels_make(shot *s, tnb_pixels *p, const tnb_rect *at, int32_t width, int32_t height,
                             int32_t channels)
{
    *p = (tnb_pixels){.stride = (int64_t)at->width * channels,
                      .channels = channels,
                      .width = width,
                      .height = height,
                      .at = *at};
    p->data = malloc((size_t)p->stride * (size_t)at->height);
    s->why = p->data ? s->why : "out of memory";
    return p->data ? TN_OK : TN_E_NOMEM;
}

static tn_status part_decode(shot *s, const tnb_rect *r)
{
    const tn_image_options o = {.struct_size = TN_SIZE(tn_image_options),
                                .channels = (int32_t)s->o->shape[0],
                                .x = r->x,
                                .y = r->y,
                                .width = r->width,
                                .height = r->height};
    tnb_pixels p;
    tn_status st = pixels_make(s, &p, r, s->image.width, s->image.height, o.channels);

    if (!st)
        st = tn_image_read(s->ctx, s->data, s->bytes, &o, p.data, (uint64_t)p.stride * (uint64_t)r->height,
                           p.stride);
    if (st)
        free(p.data);
    else
        s->image = p;
    return st;
}

static tn_status stage_run(shot *s, const stage *t)
{
    tnb_pixels from = s->image, to;
    tn_status st = pixels_make(s, &to, &t->window, t->resize.out[0], t->resize.out[1], from.channels);

    if (st)
        return st;
    from.at.x -= t->from.x;
    from.at.y -= t->from.y;
    from.width = t->from.width;
    from.height = t->from.height;
    if (!tnb_resize_run(&t->resize, &from, &to)) {
        free(to.data);
        s->why = "out of memory";
        return TN_E_NOMEM;
    }
    free(s->image.data);
    s->image = to;
    return TN_OK;
}

/* The image as it was noted: exactly its pixels, in memory. */
static tn_status sizes_make(shot *s)
{
    tnb_rect need = s->now;
    tn_status st = TN_OK;

    for (size_t k = s->count; k-- > 0;) {
        stage *t = &s->stages[k];

        t->window = need;
        need = tnb_resize_needs(&t->resize, &need);
        need.x += t->from.x;
        need.y += t->from.y;
    }
    if (!s->image.data)
        st = part_decode(s, &need);
    for (size_t k = 0; !st && k < s->count; k++)
        st = stage_run(s, &s->stages[k]);
    if (st)
        return st;
    s->count = 0;
    return TN_OK;
}

/* The view of what is there of the noted image. */
static tnb_pixels view_of(const shot *s)
{
    tnb_pixels p = s->image;

    p.data += (s->now.y - p.at.y) * p.stride + (s->now.x - p.at.x) * p.channels;
    p.width = s->now.width;
    p.height = s->now.height;
    p.at = (tnb_rect){0, 0, p.width, p.height};
    return p;
}

/* ---- MXNet's steps, in its order ---- */

static tn_status shorter_edge(shot *s)
{
    const int64_t edge = s->o->resize, w = s->now.width, h = s->now.height;

    if (!edge)
        return TN_OK;
    return h > w ? resize_to(s, edge, edge * h / w) : resize_to(s, edge * w / h, edge);
}

static uint8_t fill_of(const tn_images_options *o)
{
    return (uint8_t)(o->fill_value < 0 ? 0 : o->fill_value ? o->fill_value : 255);
}

/* `to`, of the image's size, takes its place. */
static void image_replace(shot *s, const tnb_pixels *to)
{
    free(s->image.data);
    s->image = *to;
    s->now = to->at;
}

static bool turns(const tn_images_options *o)
{
    return o->max_rotate_angle > 0 || o->max_shear_ratio > 0 || o->rotate > 0 || o->min_random_scale != 1 ||
           o->max_random_scale != 1 || o->max_img_size != 0 || o->min_img_size != 0 ||
           (!o->random_resized_crop && (o->min_aspect_ratio != 1 || o->max_aspect_ratio != 1));
}

static float clamp_side(const tn_images_options *o, float side)
{
    const float max = o->max_img_size != 0 ? (float)o->max_img_size : 1e10f;

    return fmaxf((float)o->min_img_size, fminf(max, side));
}

static tn_status turn(shot *s)
{
    const tn_images_options *o = s->o;
    const float shear = (float)between(s, -o->max_shear_ratio, o->max_shear_ratio);
    const int drawn = whole_between(s, -o->max_rotate_angle, o->max_rotate_angle);
    const double angle = o->rotate > 0 ? o->rotate : drawn;
    const float a = (float)cos(angle / 180.0 * 3.14159265358979323846),
                b = (float)sin(angle / 180.0 * 3.14159265358979323846);
    float scale = 1, ratio = 1, hs, ws, width, height, m[6];
    tnb_pixels from, to;
    tn_status st;

    if (!o->random_resized_crop) {
        scale = (float)between(s, o->min_random_scale, o->max_random_scale);
        ratio = (float)between(s, o->min_aspect_ratio, o->max_aspect_ratio);
    }
    if ((st = sizes_make(s)))
        return st;
    from = view_of(s);
    hs = 2 * scale / (1 + ratio);
    ws = ratio * hs;
    width = clamp_side(o, scale * (float)from.width);
    height = clamp_side(o, scale * (float)from.height);
    m[0] = hs * a - shear * b * ws;
    m[3] = -b * ws;
    m[1] = hs * b + shear * a * ws;
    m[4] = a * ws;
    m[2] = (width - (m[0] * (float)from.width + m[1] * (float)from.height)) / 2;
    m[5] = (height - (m[3] * (float)from.width + m[4] * (float)from.height)) / 2;
    if (width < 1 || height < 1 || width > SIDE_MAX || height > SIDE_MAX)
        return wrong(s, "a turned image has no pixels, or too many");
    if ((st = pixels_make(s, &to, &(const tnb_rect){0, 0, (int32_t)width, (int32_t)height}, (int32_t)width,
                          (int32_t)height, from.channels)))
        return st;
    tnn_warp(&from, m, fill_of(o), &to);
    image_replace(s, &to);
    return TN_OK;
}

/* `fill` around the image. */
static tn_status border(shot *s, int32_t left, int32_t top, int32_t right, int32_t bottom, uint8_t fill)
{
    tnb_pixels from, to;
    tnb_rect all;
    tn_status st = sizes_make(s);

    if (st)
        return st;
    from = view_of(s);
    all = (tnb_rect){0, 0, from.width + left + right, from.height + top + bottom};
    if (all.width > SIDE_MAX || all.height > SIDE_MAX)
        return wrong(s, "an image with a border has too many pixels");
    if ((st = pixels_make(s, &to, &all, all.width, all.height, from.channels)))
        return st;
    tnn_border(&from, left, top, fill, &to);
    image_replace(s, &to);
    return TN_OK;
}

static tn_status pad(shot *s)
{
    const int32_t n = s->o->pad;

    return n ? border(s, n, n, n, n, fill_of(s->o)) : TN_OK;
}

/* A window of a drawn area and ratio, resized; false: none that lies in the image was drawn. */
static bool area_crop(shot *s, tn_status *st)
{
    const tn_images_options *o = s->o;
    const double area = (double)s->now.width * s->now.height;

    if (o->min_random_area == 1 && o->max_random_area == 1 && o->min_aspect_ratio == 1 &&
        o->max_aspect_ratio == 1)
        return false;
    for (int i = 0; i < TRIES; i++) {
        const double target = area * between(s, o->min_random_area, o->max_random_area),
                     ratio = between(s, o->min_aspect_ratio, o->max_aspect_ratio);
        const double tall = round(sqrt(target / ratio)), wide = round(sqrt(target * ratio));
        const bool swapped = draw(s) > 0.5;
        const double h = swapped ? wide : tall, w = swapped ? tall : wide;

        if (!(h >= 1 && w >= 1 && h <= s->now.height && w <= s->now.width))
            continue;
        crop(s, (tnb_rect){whole_between(s, 0, s->now.width - (int32_t)w),
                           whole_between(s, 0, s->now.height - (int32_t)h), (int32_t)w, (int32_t)h});
        *st = resize_to(s, o->shape[2], o->shape[1]);
        return true;
    }
    return false;
}

/* Of the image, a window of this size. */
static void window(shot *s, int32_t width, int32_t height)
{
    const int32_t x = s->now.width - width, y = s->now.height - height;

    if (s->o->rand_crop)
        crop(s,
             (tnb_rect){
                 .y = whole_between(s, 0, y), .x = whole_between(s, 0, x), .width = width, .height = height});
    else
        crop(s, (tnb_rect){x / 2, y / 2, width, height});
}

static tn_status square_crop(shot *s)
{
    const tn_images_options *o = s->o;
    int32_t size;

    if (s->now.width < o->max_crop_size || s->now.height < o->max_crop_size)
        return wrong(s, "the image is smaller than max_crop_size");
    size = whole_between(s, o->min_crop_size, o->max_crop_size);
    window(s, size, size);
    return resize_to(s, o->shape[2], o->shape[1]);
}

/* Smaller images become larger first. */
static tn_status shape_crop(shot *s)
{
    const int32_t h = (int32_t)s->o->shape[1], w = (int32_t)s->o->shape[2];
    tn_status st = TN_OK;

    if (s->now.height < h)
        st = resize_to(s, (int64_t)((float)h / (float)s->now.height * (float)s->now.width), h);
    if (!st && s->now.width < w)
        st = resize_to(s, w, (int64_t)((float)w / (float)s->now.width * (float)s->now.height));
    if (!st && (s->now.width < w || s->now.height < h))
        return wrong(s, "the image is smaller than the sample");
    if (!st)
        window(s, w, h);
    return st;
}

static tn_status crop_choose(shot *s)
{
    const tn_images_options *o = s->o;
    tn_status st = TN_OK;

    if (o->force_resize)
        return resize_to(s, o->shape[2], o->shape[1]);
    if (o->random_resized_crop && area_crop(s, &st))
        return st;
    return !o->random_resized_crop && o->max_crop_size ? square_crop(s) : shape_crop(s);
}

static void jitter(shot *s, const tnb_pixels *p)
{
    static void (*const changes[])(const tnb_pixels *, float) = {tnn_brightness, tnn_contrast,
                                                                 tnn_saturation};
    const double far[] = {s->o->brightness, s->o->contrast, s->o->saturation};
    float alpha[3];
    int order[] = {0, 1, 2};

    if (!(far[0] > 0 || far[1] > 0 || far[2] > 0))
        return;
    for (int i = 0; i < 3; i++)
        alpha[i] = (float)between(s, 1 - far[i], 1 + far[i]);
    for (int i = 2; i > 0; i--) {
        const int other = whole_between(s, 0, i), kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < 3; i++)
        changes[order[i]](p, alpha[order[i]]);
}

/* Near to normal: mostly in the middle. */
static int drawn_step(shot *s, int32_t far)
{
    const double first = draw(s), second = draw(s);

    return (int)((first + 4 * second) / 5 * far * 2 - far);
}

static void hues(shot *s, const tnb_pixels *p)
{
    const tn_images_options *o = s->o;
    int h, l, t;

    if (!o->random_h && !o->random_s && !o->random_l)
        return;
    h = drawn_step(s, o->random_h);
    t = drawn_step(s, o->random_s);
    l = drawn_step(s, o->random_l);
    tnn_hls(p, h, l, t);
}

static void noise(shot *s, const tnb_pixels *p)
{
    static const float axes[3][3] = {{55.46f * -0.5675f, 4.794f * 0.7192f, 1.148f * 0.4009f},
                                     {55.46f * -0.5808f, 4.794f * -0.0045f, 1.148f * -0.8140f},
                                     {55.46f * -0.5836f, 4.794f * -0.6948f, 1.148f * 0.4203f}};
    float alpha[3], add[3];

    if (!(s->o->pca_noise > 0))
        return;
    for (int i = 0; i < 3; i++)
        alpha[i] =
            (float)(s->o->pca_noise * tnn_random_normal(s->draws->key, s->draws->sample, s->draws->drawn++));
    for (int i = 0; i < 3; i++)
        add[i] = axes[i][0] * alpha[0] + axes[i][1] * alpha[1] + axes[i][2] * alpha[2];
    tnn_add(p, add);
}

/* ---- numbers ---- */

/* Rows of the sample are `row` numbers apart. */
static void plane_mean(const tnb_pixels *p, int32_t c, bool mirror, int64_t row, const float *mean,
                       float factor, float add, float *out)
{
    for (int32_t y = 0; y < p->height; y++)
        for (int32_t x = 0; x < p->width; x++) {
            const int64_t at = y * row + x;
            const float v = (float)p->data[y * p->stride + x * p->channels + c];

            out[mirror ? y * row + p->width - 1 - x : at] = (v - mean[at]) * factor + add;
        }
}

static void plane_write(const tnb_pixels *p, int32_t c, bool mirror, int64_t row, const float table[256],
                        float *out)
{
    for (int32_t y = 0; y < p->height; y++, out += row) {
        const uint8_t *at = p->data + y * p->stride + c;

        if (mirror)
            for (int32_t x = p->width; x-- > 0; at += p->channels)
                out[x] = table[*at];
        else
            for (int32_t x = 0; x < p->width; x++, at += p->channels)
                out[x] = table[*at];
    }
}

static void numbers_write(shot *s, const tnb_pixels *p, const float *mean, float *out)
{
    const tn_images_options *o = s->o;
    const bool mirror = (o->rand_mirror && draw(s) < 0.5) || o->mirror;
    const float scale = (float)o->scale;
    const float contrast = (float)between(s, 1 - o->max_random_contrast, 1 + o->max_random_contrast) * scale;
    const float light = (float)between(s, -o->max_random_illumination, o->max_random_illumination) * scale;
    const int64_t row = o->shape[2], plane = row * o->shape[1];

    for (int32_t c = 0; c < p->channels; c++, out += plane) {
        const float std = (float)o->std[c], factor = contrast / std, add = light / std;
        float table[256];

        if (mean) {
            plane_mean(p, c, mirror, row, mean + c * plane, factor, add, out);
            continue;
        }
        for (int v = 0; v < 256; v++)
            table[v] = o->divisor != 0 ? (float)v / (float)o->divisor
                       : o->boxes      ? ((float)v - (float)o->mean[c]) / std * scale /* as MXNet rounds */
                                       : ((float)v - (float)o->mean[c]) * factor + add;
        plane_write(p, c, mirror, row, table, out);
    }
}

static tn_status steps_run(shot *s)
{
    tn_status st;

    if ((st = shorter_edge(s)) || (turns(s->o) && (st = turn(s))) || (st = pad(s)) || (st = crop_choose(s)))
        return st;
    return sizes_make(s);
}

/* ---- images with boxes: MXNet's steps of ImageDetRecordIter ---- */

/* Added with this chance: from -far to far. */
static double added(shot *s, double chance, double far)
{
    const double v = between(s, -far, far);

    return draw(s) < chance ? v : 0;
}

static tn_status boxes_colours(shot *s)
{
    const tn_boxes_options *b = s->o->boxes;
    int h, l, t;
    double contrast;
    tnb_pixels p;
    tn_status st;

    if (!(b->random_hue_prob > 0 || b->random_saturation_prob > 0 || b->random_illumination_prob > 0 ||
          b->random_contrast_prob > 0))
        return TN_OK;
    h = (int)added(s, b->random_hue_prob, b->max_random_hue);
    t = (int)added(s, b->random_saturation_prob, b->max_random_saturation);
    l = (int)added(s, b->random_illumination_prob, b->max_random_illumination);
    contrast = added(s, b->random_contrast_prob, b->max_random_contrast);
    if ((st = sizes_make(s)))
        return st;
    p = view_of(s);
    if (h || l || t)
        tnn_hls(&p, h, l, t);
    if (fabs(contrast) > 1e-3)
        tnn_brightness(&p, (float)contrast + 1);
    return TN_OK;
}

static tn_status boxes_mirror(shot *s, tnn_boxes *boxes)
{
    tnb_pixels p;
    tn_status st;

    if (!(draw(s) < s->o->boxes->rand_mirror_prob))
        return TN_OK;
    if ((st = sizes_make(s)))
        return st;
    p = view_of(s);
    tnn_mirror(&p);
    tnn_boxes_mirror(boxes);
    return TN_OK;
}

static tn_status boxes_pad(shot *s, tnn_boxes *boxes)
{
    const tn_boxes_options *b = s->o->boxes;
    const int32_t w = s->now.width, h = s->now.height;
    float scale, x, y;

    if (!(draw(s) < b->rand_pad_prob))
        return TN_OK;
    scale = (float)between(s, 1, b->max_pad_scale);
    if (scale < 1.05f) /* MXNet leaves the image as it is then */
        return TN_OK;
    x = (float)between(s, 0, scale - 1);
    y = (float)between(s, 0, scale - 1);
    tnn_boxes_project(boxes, (tnn_part){-x, -y, scale, scale});
    return border(s, (int32_t)(x * (float)w), (int32_t)(y * (float)h), (int32_t)((scale - x - 1) * (float)w),
                  (int32_t)((scale - y - 1) * (float)h),
                  s->o->fill_value < 0 ? 0 : (uint8_t)s->o->fill_value);
}

static tnn_part window_draw(shot *s, const tn_crop_sampler *c)
{
    const double image = (double)s->now.width / s->now.height;
    const double scale = between(s, c->min_scale, c->max_scale) + 1e-12;
    const double low = fmax(c->min_aspect_ratio / image, scale * scale);
    const double high = fmin(c->max_aspect_ratio / image, 1 / (scale * scale));
    const double ratio = sqrt(low < high ? between(s, low, high) : low);
    const double width = fmin(1, scale * ratio), height = fmin(1, scale / ratio);

    return (tnn_part){(float)between(s, 0, 1 - width), (float)between(s, 0, 1 - height), (float)width,
                      (float)height};
}

/* Whether a window of this sampler was taken. */
static bool sampler_try(shot *s, tnn_boxes *boxes, const tn_crop_sampler *c)
{
    const float w = (float)s->now.width, h = (float)s->now.height;

    for (int32_t i = 0; i < c->trials; i++) {
        const tnn_part v = window_draw(s, c);
        const tnb_rect r = {(int32_t)(v.x * w), (int32_t)(v.y * h), (int32_t)(v.width * w),
                            (int32_t)(v.height * h)};

        if (r.width < 1 || r.height < 1 || !tnn_boxes_crop(boxes, v, c))
            continue;
        crop(s, r);
        return true;
    }
    return false;
}

static void boxes_crop(shot *s, tnn_boxes *boxes)
{
    const tn_boxes_options *b = s->o->boxes;
    int32_t order[TNN_SAMPLERS_MAX];

    if (!(draw(s) < b->rand_crop_prob))
        return;
    for (int32_t i = 0; i < b->num_crop_sampler; i++) {
        const int32_t at = whole_between(s, 0, i);

        order[i] = order[at];
        order[at] = i;
    }
    for (int32_t i = 0; i < b->num_crop_sampler; i++)
        if (sampler_try(s, boxes, &b->samplers[order[i]]))
            return;
}

static tn_status boxes_resize(shot *s)
{
    const char *mode = s->o->boxes->resize_mode;
    const float h = (float)s->o->shape[1], w = (float)s->o->shape[2];
    const float down = h / (float)s->now.height, across = w / (float)s->now.width;
    const float ratio = fminf(down, across);

    if (!mode || strcmp(mode, "force") == 0)
        return resize_to(s, s->o->shape[2], s->o->shape[1]);
    if (strcmp(mode, "shrink") == 0 && ratio >= 1)
        return TN_OK;
    return resize_to(s, (int64_t)(ratio * (float)s->now.width), (int64_t)(ratio * (float)s->now.height));
}

static tn_status boxes_run(shot *s, tnn_boxes *boxes)
{
    tn_status st;

    if ((st = shorter_edge(s)) || (st = boxes_colours(s)) || (st = boxes_mirror(s, boxes)) ||
        (st = boxes_pad(s, boxes)))
        return st;
    boxes_crop(s, boxes);
    if ((st = boxes_resize(s)) || (st = sizes_make(s)))
        return st;
    boxes->shape[0] = s->image.channels;
    boxes->shape[1] = s->now.height;
    boxes->shape[2] = s->now.width;
    return TN_OK;
}

tn_status tnn_augment_run(tn_ctx *ctx, const tn_images_options *o, const float *mean, const void *data,
                          uint64_t bytes, tnn_draws *draws, tnn_boxes *boxes, float *out, const char **why)
{
    static const char *const names[] = {"nearest", "linear", "cubic", "area", "lanczos", NULL};
    shot s = {.ctx = ctx, .o = o, .draws = draws, .data = data, .bytes = bytes, .interp = TNB_LINEAR};
    tn_image_about about = {.struct_size = TN_SIZE(tn_image_about)};
    tnb_pixels p;
    tn_status st;

    if (o->inter)
        s.interp = !strcmp(o->inter, "auto") ? AUTO : !strcmp(o->inter, "random") ? RANDOM : TNB_NEAREST;
    for (int i = 0; o->inter && names[i]; i++)
        s.interp = strcmp(names[i], o->inter) ? s.interp : i;
    *why = NULL;
    if ((st = tn_image_look(ctx, data, bytes, &about))) {
        *why = tn_error_text();
        return st;
    }
    s.image.width = about.width;
    s.image.height = about.height;
    s.now = (tnb_rect){0, 0, about.width, about.height};
    if (boxes)
        memset(out, 0, (size_t)(o->shape[0] * o->shape[1] * o->shape[2]) * sizeof *out);
    if (!(st = boxes ? boxes_run(&s, boxes) : steps_run(&s))) {
        p = view_of(&s);
        if (!boxes) {
            jitter(&s, &p);
            hues(&s, &p);
            noise(&s, &p);
        }
        numbers_write(&s, &p, mean, out);
    }
    free(s.image.data);
    *why = s.why ? s.why : st ? tn_error_text() : NULL;
    return st;
}

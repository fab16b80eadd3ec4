/*
 * Images as arrays. Colours are computed in float32, as MXNet does, but those of float64 in float64; what
 * goes into whole numbers is cut to their range. Numbers that are drawn are elements 0, 1 … of the call's
 * draw.
 */
#include <float.h>
#include <math.h>

#include "../../common/colours.h"
#include "../../common/taps.h"
#include "forms.h"
#include "move.h"
#include "tenon/plugin/op/image.h"
#include "tenon/plugin/random.h"

/* ---- flips ------------------------------------------------------------------------------------------- */

/* Rows (axis 0) or columns (axis 1) turned round, or (`flip` false) as they are. */
static void flip_axis(const tn_plan *plan, const tn_exec *x, int32_t axis, bool flip)
{
    const tn_tensor *t = x->in[0];
    int64_t steps[3], start = flip ? t->shape[axis] - 1 : 0;
    tnb_move m = {.size = (int32_t)tn_dtype_bytes(t->dtype)};

    tnb_move_steps(t->shape, 3, steps);
    for (int32_t k = 0; k < 3; k++)
        tnb_move_add(&m, t->shape[k], flip && k == axis ? -steps[k] : steps[k], steps[k]);
    tncpu_move_run(&m, (const char *)t->data + start * steps[axis] * m.size, x->out[0]->data,
                   tncpu_run_threads(plan, x));
}

TNCPU_PREPARE(flip_prepare, tncpu_move_plan(node, plan, tn_tensor_count(node->out[0])))

/* Whether the call's draw turns the image round. */
static bool flips(const tn_exec *x)
{
    const tn_draw draw = tn_draw_of(x->rng);

    return tn_draw_unit(&draw, 0) < 0.5;
}

TNCPU_RUN(top_bottom_run, flip_axis(plan, x, 0, true))
TNCPU_RUN(left_right_run, flip_axis(plan, x, 1, true))
TNCPU_RUN(random_top_bottom_run, flip_axis(plan, x, 0, flips(x)))
TNCPU_RUN(random_left_right_run, flip_axis(plan, x, 1, flips(x)))

/* ---- normalize, to_tensor: planes are the tasks ------------------------------------------------------ */

static double channel_number(const tn_value *attrs, uint32_t index, int64_t channel)
{
    const tn_floats *f = (const tn_floats *)tn_value_pointer(attrs[index]);

    return f->item[f->count == 1 ? 0 : channel];
}

/* Of the output: planes, or rows of pixels. */
static int64_t output_planes(const tn_node *node)
{
    return tncpu_dims(node->out[0], 0, node->out[0]->ndim - 2);
}

/* (v - mean) / std, or (`back`) v / std */
static void normalize_plane(const tn_exec *x, int64_t task, bool back)
{
    const tn_tensor *t = x->in[0];
    const int64_t plane = tncpu_dims(t, t->ndim - 2, t->ndim), channel = task % t->shape[t->ndim - 3];
    const double mean = back ? 0 : channel_number(x->attrs, TN_image_normalize_mean, channel),
                 std = channel_number(x->attrs, TN_image_normalize_std, channel);
    double v[TNCPU_TILE];

    for (int64_t at = 0; at < plane; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, plane - at);

        tncpu_numbers(t, task * plane + at, 1, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = (v[i] - mean) / std;
        tncpu_numbers_store(x->out[0], task * plane + at, 1, n, v);
    }
}

static void normalize(const void *call, int64_t task, double *room)
{
    (void)room;
    normalize_plane(call, task, false);
}

static void backward_normalize(const void *call, int64_t task, double *room)
{
    (void)room;
    normalize_plane(call, task, true);
}

static void to_tensor(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const tn_tensor *t = x->in[0];
    const int64_t channels = t->shape[t->ndim - 1], plane = tncpu_dims(t, t->ndim - 3, t->ndim - 1);
    const int64_t from = task / channels * plane * channels + task % channels;
    double v[TNCPU_TILE];

    (void)room;
    for (int64_t at = 0; at < plane; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, plane - at);

        tncpu_numbers(t, from + at * channels, channels, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = (double)((float)v[i] / 255.0f);
        tncpu_numbers_store(x->out[0], task * plane + at, 1, n, v);
    }
}

/* in: dy (…, C, H, W), shape of data; planes of dy back between the other channels */
static int64_t tensor_planes(const tn_node *node)
{
    return tncpu_dims(node->in[0], 0, node->in[0]->ndim - 2);
}

static void backward_to_tensor(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const tn_tensor *dy = x->in[0];
    const int64_t channels = dy->shape[dy->ndim - 3], plane = tncpu_dims(dy, dy->ndim - 2, dy->ndim);
    const int64_t to = task / channels * plane * channels + task % channels;
    double v[TNCPU_TILE];

    (void)room;
    for (int64_t at = 0; at < plane; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, plane - at);

        tncpu_numbers(dy, task * plane + at, 1, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] /= 255;
        tncpu_numbers_store(x->out[0], to + at * channels, channels, n, v);
    }
}

/* ---- colours ----------------------------------------------------------------------------------------- */

#define BODY "../../common/colours.inc"
#include "../common/floats.inc"

typedef struct colour_call {
    const tn_tensor *from, *to;
    tnb_change c;
} colour_call;

#define PIXELS (TNCPU_TILE / 3)

/* Pixels that are neither float32 nor float64, from element `at` on. */
static void converted_change(const colour_call *call, int64_t at, int64_t pixels, int64_t channels)
{
    double v[TNCPU_TILE];
    float f[TNCPU_TILE];

    tncpu_numbers(call->from, at, 1, pixels * channels, v);
    for (int64_t i = 0; i < pixels * channels; i++)
        f[i] = (float)v[i];
    pixels_change_f32(&call->c, pixels, channels, f);
    tncpu_widen[TNCPU_K_F32][TNCPU_K_F64](f, v, pixels * channels);
    tncpu_numbers_store(call->to, at, 1, pixels * channels, v);
}

static void colours_part(void *arg, int64_t begin, int64_t end)
{
    const colour_call *call = arg;
    const int64_t channels = call->to->shape[2], size = (int64_t)tn_dtype_bytes(call->to->dtype);

    for (int64_t at = begin; at < end; at += PIXELS) {
        const int64_t n = tncpu_min(PIXELS, end - at);
        char *to = (char *)call->to->data + at * channels * size;

        if (call->to->dtype != TN_F32 && call->to->dtype != TN_F64) {
            converted_change(call, at * channels, n, channels);
            continue;
        }
        if (call->from->data != call->to->data)
            memcpy(to, (const char *)call->from->data + at * channels * size, (size_t)(n * channels * size));
        if (call->to->dtype == TN_F32)
            pixels_change_f32(&call->c, n, channels, (float *)(void *)to);
        else
            pixels_change_f64(&call->c, n, channels, (double *)(void *)to);
    }
}

/* The mean of all pixels' grey. */
static double grey_mean(const tn_tensor *t)
{
    const int64_t pixels = t->shape[0] * t->shape[1], channels = t->shape[2];
    double sum = 0, v[TNCPU_TILE];

    for (int64_t at = 0; at < pixels; at += PIXELS) {
        const int64_t n = tncpu_min(PIXELS, pixels - at);

        tncpu_numbers(t, at * channels, 1, n * channels, v);
        for (int64_t i = 0; i < n * channels; i++)
            sum += v[i] * (channels == 3 ? (double)tnb_grey((int32_t)(i % 3)) : 1);
    }
    return sum / (double)tncpu_max(pixels, 1);
}

static void colours_run(const tn_plan *plan, const tn_exec *x, const tn_tensor *from, tnb_change c)
{
    colour_call call = {from, x->out[0], c};

    if (c.kind == TNB_LIGHTING && c.add[0] == 0 && c.add[1] == 0 && c.add[2] == 0) {
        tncpu_copy(x->in[0], x->out[0]); /* no change of colours */
        return;
    }
    if (c.kind == TNB_CONTRAST)
        call.c.add[0] = (from->dtype == TN_F64 ? mean_part_f64 : mean_part_f32)(c.alpha, grey_mean(from));
    tncpu_for(plan, x, from->shape[0] * from->shape[1], PIXELS, colours_part, &call);
}

TNCPU_PREPARE(colours_prepare, tncpu_plan_work(node, plan, 50 + 10 * (double)tn_tensor_count(node->out[0])))

/* Number `k` of the call's draw between two others. */
static double between(const tn_exec *x, uint64_t k, double low, double high)
{
    const tn_draw draw = tn_draw_of(x->rng);

    return low + (high - low) * tn_draw_unit(&draw, k);
}

static void colour_random(const tn_plan *plan, const tn_exec *x, int kind)
{
    const tnb_change c = {.kind = kind,
                          .alpha = between(x, 0, tn_value_float(x->attrs[TN_image_random_min_factor]),
                                           tn_value_float(x->attrs[TN_image_random_max_factor]))};

    colours_run(plan, x, x->in[0], c);
}

TNCPU_RUN(brightness_run, colour_random(plan, x, TNB_BRIGHTNESS))
TNCPU_RUN(contrast_run, colour_random(plan, x, TNB_CONTRAST))
TNCPU_RUN(saturation_run, colour_random(plan, x, TNB_SATURATION))
TNCPU_RUN(hue_run, colour_random(plan, x, TNB_HUE))

/* The changes in a random order (elements 0 to 3 of the draw), each by a number of its own. */
static tn_status jitter_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *from = x->in[0];
    int order[] = {TNB_BRIGHTNESS, TNB_CONTRAST, TNB_SATURATION, TNB_HUE};

    (void)err;
    for (int k = 3; k > 0; k--) {
        const int other = (int)tnb_whole(between(x, (uint64_t)k, 0, k + 1), 0, k), kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
    for (int k = 0; k < 4; k++) {
        const double far = tn_value_float(x->attrs[order[k]]);
        tnb_change c = {.kind = order[k]};

        if (!(far > 0))
            continue;
        c.alpha = between(x, (uint64_t)(4 + k), -far, far) + (order[k] == TNB_HUE ? 0 : 1);
        colours_run(plan, x, from, c);
        from = x->out[0];
    }
    if (from == x->in[0])
        tncpu_copy(x->in[0], x->out[0]);
    return TN_OK;
}

/* Adds multiples of the eigenvectors of ImageNet's colours, which are multiplied by their eigenvalues. */
static tn_status lighting(const tn_plan *plan, const tn_exec *x, const double *alpha)
{
    tnb_change c = {.kind = TNB_LIGHTING};

    tnb_light(alpha, c.add);
    colours_run(plan, x, x->in[0], c);
    return TN_OK;
}

static tn_status adjust_lighting_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_floats *f = (const tn_floats *)tn_value_pointer(x->attrs[TN_image_adjust_lighting_alpha]);

    (void)err;
    return lighting(plan, x, f->item);
}

/* Box and Muller. */
static tn_status random_lighting_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double deviation = tn_value_float(x->attrs[TN_image_random_lighting_alpha_std]);
    const tn_draw draw = tn_draw_of(x->rng);
    double alpha[3];

    (void)err;
    for (uint64_t k = 0; k < 3; k++) {
        uint32_t w[4];

        tn_draw_words(&draw, k, w);
        alpha[k] = tnb_light_normal(deviation, tn_unit(w[0], w[1]), tn_unit(w[2], w[3]));
    }
    return lighting(plan, x, alpha);
}

/* ---- resize: rows of the output are the tasks -------------------------------------------------------- */

/* One row of the image into a row of the output's width. */
static void columns_sum(const double *row, const int64_t *size, int64_t width, int way, bool bytes,
                        double *to)
{
    const int64_t channels = size[2];

    for (int64_t o = 0; o < width; o++) {
        const tnb_taps t = tnb_taps_of(o, size[1], width, way);

        for (int64_t c = 0; c < channels; c++)
            to[o * channels + c] = 0;
        for (int64_t k = 0; k < t.count; k++) {
            const int64_t at = tncpu_min(tncpu_max(t.first + k, 0), size[1] - 1);
            const double w = tnb_tap_weight(&t, k, way, bytes);

            for (int64_t c = 0; c < channels; c++)
                to[o * channels + c] = tnb_sum_of(to[o * channels + c], w, row[at * channels + c], way);
        }
    }
}

/* A row of the image, one of the output's width, and the sum of such. */
static uint64_t resize_room(const tn_node *node)
{
    const tn_tensor *x = node->in[0], *y = node->out[0];

    return (uint64_t)(tncpu_dims(x, x->ndim - 2, x->ndim) + 2 * tncpu_dims(y, y->ndim - 2, y->ndim)) *
           sizeof(double);
}

static void resize_row(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const tn_tensor *t = x->in[0], *y = x->out[0];
    const int64_t *in = t->shape + t->ndim - 3, *out = y->shape + y->ndim - 3, row = in[1] * in[2],
                  n = out[1] * out[2];
    const int way = tnb_way_of((int32_t)tn_value_int(x->attrs[TN_image_resize_interp]), in, out);
    const bool bytes = t->dtype == TN_U8, half = in[0] == 2 * out[0] && in[1] == 2 * out[1];
    const tnb_taps v = tnb_taps_of(task % out[0], in[0], out[0], way);
    double *from = room, *columns = room + row, *sum = columns + n;

    memset(sum, 0, sizeof *sum * (size_t)n);
    for (int64_t k = 0; k < v.count; k++) {
        const int64_t at = tncpu_min(tncpu_max(v.first + k, 0), in[0] - 1);
        const double w = tnb_tap_weight(&v, k, way, bytes);

        tncpu_numbers(t, (task / out[0] * in[0] + at) * row, 1, row, from);
        columns_sum(from, in, out[1], way, bytes, columns);
        for (int64_t i = 0; i < n; i++)
            sum[i] = tnb_rows_sum(sum[i], w, columns[i], way, bytes);
    }
    for (int64_t i = 0; i < n; i++)
        sum[i] = tnb_pixel_of(sum[i], way, !tncpu_is_float(t->dtype), bytes, half);
    tncpu_numbers_store(y, task * n, 1, n, sum);
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static const char *const all[] = {"data:" TNCPU_ALL, "output:=data", NULL};
static const char *const tensors[] = {"output:f32", "*:" TNCPU_ALL, NULL};
static const char *const back_tensors[] = {"dy:f32", "*:" TNCPU_ALL, NULL};

#define EMPTY TN_KERNEL_EMPTY_OK
#define PLANES(X)                                                                                            \
    X("_image_normalize", tncpu_numeric, EMPTY, image, output_planes, normalize, NULL)                       \
    X("_backward__image_normalize", tncpu_numeric, EMPTY, image, output_planes, backward_normalize, NULL)    \
    X("_image_to_tensor", tensors, EMPTY, image, output_planes, to_tensor, NULL)                             \
    X("_backward__image_to_tensor", back_tensors, EMPTY, image, tensor_planes, backward_to_tensor, NULL)     \
    X("_image_resize", tncpu_numeric, EMPTY, image, output_planes, resize_row, resize_room)

static const tncpu_form forms[] = {PLANES(TNCPU_DOUBLE)};
TNCPU_DOUBLES(image, forms)

#define COLOURS(op, run) TNCPU_ROW("_image_" op, tncpu_numeric, 0, colours_prepare, run)
#define FLIPS(op, run) TNCPU_ROW("_image_" op, all, 0, flip_prepare, run)

const tn_kernel *const tncpu_family_image[] = {
    PLANES(TNCPU_DOUBLE_ROW) IMAGE_ROWS(FLIPS, COLOURS),
    NULL,
};

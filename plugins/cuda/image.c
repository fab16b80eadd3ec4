/* Images as arrays: kernels/image.cu. The GPU draws the random numbers. */
#include "tenon/plugin/op/image.h"
#include "../common/colours.h"
#include "../common/taps.h"
#include "launch.h"

#define CHANGE_BYTES (4 * sizeof(tnb_change)) /* as many as one image takes */

/* ---- flips --------------------------------------------------------------------------------------------- */

/* Rows (axis 0) or columns (axis 1). */
static tn_status flip(const tn_exec *x, int32_t axis, bool random, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    tncuda_image_args a = {.count = tn_tensor_count(t),
                           .size = t->shape[axis],
                           .channels = tnb_dims(t, axis + 1, 3),
                           .from = tncuda_array_of(t, TN_MODE_WRITE),
                           .to = tncuda_array_of(x->out[0], TN_MODE_WRITE),
                           .bytes = (int32_t)tn_dtype_bytes(t->dtype),
                           .f = {random ? 0.5 : 1}};

    if (random)
        a.draw = tncuda_draw_of(x->rng);
    return x->modes[0] == TN_MODE_NONE ? TN_OK : tncuda_launch(x, "image", "image_flip", a.count, &a, err);
}

#define FLIP(name, axis)                                                                                     \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        (void)plan;                                                                                          \
        return flip(x, axis, false, err);                                                                    \
    }                                                                                                        \
    static tn_status random_##name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                 \
    {                                                                                                        \
        (void)plan;                                                                                          \
        return flip(x, axis, true, err);                                                                     \
    }
FLIP(top_bottom, 0)
FLIP(left_right, 1)

/* ---- normalize, to_tensor, resize ---------------------------------------------------------------------- */

static tn_status normalize_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tncuda_call_args a = {0};

    if (tncuda_call_numbers(node->attrs, TN_image_normalize_mean, 0, &a) +
            tncuda_call_numbers(node->attrs, TN_image_normalize_std, 0, &a) >
        TNCUDA_CALL_NUMBERS)
        return tn_failf(err, TN_E_UNSUPPORTED, "at most %d means and deviations", TNCUDA_CALL_NUMBERS);
    return tncuda_plain_prepare(plugin, node, plan, err);
}

static tn_status normalized(const tn_exec *x, bool back, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    tncuda_call_args a = {.count = tn_tensor_count(t),
                          .size = t->shape[t->ndim - 3],
                          .inner = tnb_dims(t, t->ndim - 2, t->ndim),
                          .n = {0, 0, back}};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.n[0] = tncuda_call_numbers(x->attrs, TN_image_normalize_mean, 0, &a);
    a.n[1] = tncuda_call_numbers(x->attrs, TN_image_normalize_std, a.n[0], &a);
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "image", "image_normalize", a.count, &a, err);
}

static tn_status normalize_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return normalized(x, false, err);
}

static tn_status normalize_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return normalized(x, true, err);
}

/* `last`: the side that has its channels last. */
static tn_status tensors(const tn_exec *x, const tn_tensor *last, bool back, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(last),
                          .size = tnb_dims(last, last->ndim - 3, last->ndim - 1),
                          .inner = last->shape[last->ndim - 1],
                          .n = {back}};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "image", "image_to_tensor", a.count, &a, err);
}

static tn_status to_tensor_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return tensors(x, x->in[0], false, err);
}

static tn_status to_tensor_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return tensors(x, x->out[0], true, err);
}

static tn_status resize_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *t = x->in[0], *y = x->out[0];
    const int64_t *in = t->shape + t->ndim - 3, *out = y->shape + y->ndim - 3;
    tncuda_call_args a = {.count = tn_tensor_count(y),
                          .n = {in[0], in[1], in[2], out[0], out[1], out[2],
                                tnb_way_of((int32_t)tn_value_int(x->attrs[TN_image_resize_interp]), in, out),
                                t->dtype == TN_U8, in[0] == 2 * out[0] && in[1] == 2 * out[1],
                                !tncuda_is_float(t->dtype)}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "image", "image_resize", a.count, &a, err);
}

/* ---- colours ------------------------------------------------------------------------------------------- */

static tn_status colours_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = CHANGE_BYTES;
    return st;
}

/* `passes` changes, one after the other; `grey`: one of them may need the mean of the image. */
static tn_status colours(const tn_exec *x, tncuda_image_args *a, int32_t passes, bool grey, tn_err *err)
{
    const tn_tensor *t = x->in[0];
    const bool wide = t->dtype == TN_F64;
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a->count = t->shape[0] * t->shape[1];
    a->channels = t->shape[2];
    a->from = tncuda_array_of(t, TN_MODE_WRITE);
    a->to = tncuda_array_of(x->out[0], TN_MODE_WRITE);
    a->room = x->workspace;
    if (a->kind != TNB_LIGHTING)
        a->draw = tncuda_draw_of(x->rng);
    st = tncuda_launch(x, "image", "image_changes", 1, a, err);
    for (a->pass = 0; a->pass < passes && !st; a->pass++) {
        if (grey &&
            (st = tncuda_launch_blocks(x, "image", wide ? "image_grey_f64" : "image_grey_f32", 1, a, err)))
            return st;
        st = tncuda_launch(x, "image", wide ? "image_colours_f64" : "image_colours_f32", a->count, a, err);
        a->from = a->to;
    }
    return st;
}

#define RANDOM(name, kind_)                                                                                  \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        tncuda_image_args a = {.kind = kind_,                                                                \
                               .f = {tn_value_float(x->attrs[TN_image_random_min_factor]),                   \
                                     tn_value_float(x->attrs[TN_image_random_max_factor])}};                 \
                                                                                                             \
        (void)plan;                                                                                          \
        return colours(x, &a, 1, (kind_) == TNB_CONTRAST, err);                                              \
    }
RANDOM(brightness, TNB_BRIGHTNESS)
RANDOM(contrast, TNB_CONTRAST)
RANDOM(saturation, TNB_SATURATION)
RANDOM(hue, TNB_HUE)

static tn_status jitter_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_image_args a = {.kind = TNCUDA_IMAGE_JITTER};
    int32_t passes = 0;

    (void)plan;
    for (int k = 0; k < 4; k++) {
        a.f[k] = tn_value_float(x->attrs[k]);
        passes += a.f[k] > 0;
    }
    return colours(x, &a, passes ? passes : 1, a.f[TNB_CONTRAST] > 0, err);
}

static tn_status adjust_lighting_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_floats *f = (const tn_floats *)tn_value_pointer(x->attrs[TN_image_adjust_lighting_alpha]);
    tncuda_image_args a = {.kind = TNB_LIGHTING, .f = {f->item[0], f->item[1], f->item[2]}};

    (void)plan;
    return colours(x, &a, 1, false, err);
}

static tn_status random_lighting_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_image_args a = {.kind = TNCUDA_IMAGE_LIGHT,
                           .f = {tn_value_float(x->attrs[TN_image_random_lighting_alpha_std])}};

    (void)plan;
    return colours(x, &a, 1, false, err);
}

static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const all[] = {"data:" TNCUDA_ALL, "output:=data", NULL};
static const char *const from_types[] = {"output:f32", "*:" TNCUDA_ALL, NULL};
static const char *const back_types[] = {"dy:f32", "*:" TNCUDA_ALL, NULL};

#define COLOURS(op, run) TNCUDA_ROW("_image_" op, numbers, 0, colours_prepare, run)
#define FLIPS(op, run) TNCUDA_ROW("_image_" op, all, 0, tncuda_plain_prepare, run)
#define PLANES(op, types, prepare, run) TNCUDA_ROW(op, types, TN_KERNEL_EMPTY_OK, prepare, run)

const tn_kernel *const tncuda_family_image[] = {
    PLANES("_image_normalize", numbers, normalize_prepare, normalize_run),
    PLANES("_backward__image_normalize", numbers, normalize_prepare, normalize_back_run),
    PLANES("_image_to_tensor", from_types, tncuda_plain_prepare, to_tensor_run),
    PLANES("_backward__image_to_tensor", back_types, tncuda_plain_prepare, to_tensor_back_run),
    PLANES("_image_resize", numbers, tncuda_plain_prepare, resize_run),
    IMAGE_ROWS(FLIPS, COLOURS),
    NULL,
};

/*
 * Images as arrays (H, W, C) or (N, H, W, C), and as tensors (C, H, W): windows, flips, other sizes, colours.
 * Those that draw numbers take one image. Gradients of changes of colour go straight through, as MXNet's do.
 */
#include "tenon/plugin/op/image.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def random_attrs[] = TN_ATTR_TABLE(image_random);

/* Of one image, or of several. */
static tn_status images_check(tn_infer *i, const tn_shape *s)
{
    return s->ndim == 3 || s->ndim == 4
               ? TN_OK
               : tni_infer_fail(i, TN_E_SHAPE, "an image has %d dimensions, 3 or 4 are needed", s->ndim);
}

/* Rows and columns are the dimensions in front of the last one. */
static tn_status size_set(tn_infer *i, int64_t height, int64_t width)
{
    tn_shape y = *i->in_shape[0];

    y.dim[y.ndim - 3] = height;
    y.dim[y.ndim - 2] = width;
    return tni_shape_assign(i, i->out_shape[0], &y);
}

static tn_status crop_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const int64_t left = tni_attr_int(i->attrs, TN_image_crop_x),
                  top = tni_attr_int(i->attrs, TN_image_crop_y),
                  width = tni_attr_int(i->attrs, TN_image_crop_width),
                  height = tni_attr_int(i->attrs, TN_image_crop_height);
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = images_check(i, x)))
        return st;
    if ((x->dim[x->ndim - 3] >= 0 && top + height > x->dim[x->ndim - 3]) ||
        (x->dim[x->ndim - 2] >= 0 && left + width > x->dim[x->ndim - 2]))
        return tni_infer_fail(i, TN_E_SHAPE,
                              "%lld x %lld pixels from (%lld, %lld) on do not lie in the image",
                              (long long)width, (long long)height, (long long)left, (long long)top);
    return size_set(i, height, width);
}

static tn_status resize_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const tn_tuple *size = tni_attr_tuple(i->attrs, TN_image_resize_size);
    int64_t h, w, width, height;
    tn_status st;

    if (tni_tuple_count(size) < 1 || size->count > 2)
        return tni_infer_fail(i, TN_E_ATTR, "size has %lld items, 1 or 2 are needed",
                              (long long)tni_tuple_count(size));
    if (x->ndim < 0)
        return TN_OK;
    if ((st = images_check(i, x)))
        return st;
    h = x->dim[x->ndim - 3];
    w = x->dim[x->ndim - 2];
    if (h == 0 || w == 0 || h > INT32_MAX || w > INT32_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the image has %lld x %lld pixels", (long long)w, (long long)h);
    width = size->item[0];
    height = size->item[size->count - 1];
    if (size->count == 1 && tni_attr_bool(i->attrs, TN_image_resize_keep_ratio)) {
        if (h < 0 || w < 0)
            return TN_OK;
        height = h > w ? h * width / w : height;
        width = h > w ? width : w * height / h;
    }
    return size_set(i, height, width);
}

static tn_status normalize_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = images_check(i, x)))
        return st;
    for (uint32_t k = 0; k < 2; k++) {
        const tn_floats *f = (const tn_floats *)tn_value_pointer(i->attrs[k]);
        const int64_t count = f ? f->count : 0, channels = x->dim[x->ndim - 3];
        const bool given = !i->op->attrs[k].default_text || count != 4; /* four are the default */

        if (channels >= 0 &&
            ((given && count != 1 && count != channels) || count < 1 || (count > 1 && count < channels)))
            return tni_infer_fail(i, TN_E_SHAPE, "%s has %lld items, the image %lld channels",
                                  i->op->attrs[k].name, (long long)count, (long long)channels);
    }
    return tni_shape_assign(i, i->out_shape[0], x);
}

/* One image of one or three colours. */
static tn_status colours_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    const tn_shape *x = i->in_shape[0];

    if (st || x->ndim < 0)
        return st;
    if (x->ndim != 3 || (x->dim[2] >= 0 && x->dim[2] != 1 && x->dim[2] != 3))
        return tni_infer_fail(i, TN_E_SHAPE, "an image (H, W, C) with 1 or 3 channels is needed");
    return TN_OK;
}

static tn_status lighting_shape(tn_infer *i)
{
    const tn_floats *alpha = (const tn_floats *)tn_value_pointer(i->attrs[TN_image_adjust_lighting_alpha]);

    if (!alpha || alpha->count != 3)
        return tni_infer_fail(i, TN_E_ATTR, "alpha has %lld items, 3 are needed",
                              (long long)(alpha ? alpha->count : 0));
    return colours_shape(i);
}

#define IMAGE(name_, ...)                                                                                    \
    TNI_ROW("_image_" name_, .aliases = TNI_NAMES("_npx__image_" name_), .inputs = TNI_NAMES("data"),        \
            .outputs = TNI_NAMES("output"), .cost = tni_cost_each_output, __VA_ARGS__)
#define RANDOM(name_, doc_, ...)                                                                             \
    IMAGE(name_, .doc = doc_, .shape = colours_shape, .effects = TN_EFFECT_RANDOM,                           \
          .gradients = "composed: data = dy", __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_image[] = {
    IMAGE("crop", .doc = "A window of the image.", .attrs = TNI_ATTRS(image_crop), .shape = crop_shape,
          .gradients = "linear: dy ~data -> data"),
    IMAGE("flip_left_right", .doc = "The image with its columns turned round.",
          .shape = colours_shape, .gradients = "composed: data = _image_flip_left_right(dy)"),
    IMAGE("flip_top_bottom", .doc = "The image with its rows turned round.",
          .shape = colours_shape, .gradients = "composed: data = _image_flip_top_bottom(dy)"),
    IMAGE("normalize", .doc = "(data - mean) / std of a tensor (C, H, W) or several.",
          .attrs = TNI_ATTRS(image_normalize), .shape = normalize_shape, .types = "T:number",
          .gradients = "once: dy ~data -> data"),
    TNI_ROW("_image_to_tensor", .aliases = TNI_NAMES("_npx__image_to_tensor"),
            .doc = "Channels first, divided by 255.", .shapes = "data:(N..,H,W,C) -> output:(N..,C,H,W)",
            .types = "data:D; output:f32", .gradients = "once: dy ~data -> data",
            .cost = tni_cost_each_output),
    IMAGE("resize", .doc = "The image in another size.", .attrs = TNI_ATTRS(image_resize),
          .shape = resize_shape, .types = "T:number", .flags = TN_OP_ZERO_GRADIENT),
    IMAGE("adjust_lighting", .doc = "Adds multiples of the principal colours of photographs.",
          .attrs = TNI_ATTRS(image_adjust_lighting), .shape = lighting_shape, .types = "T:number",
          .gradients = "composed: data = dy"),
    RANDOM("random_brightness", "The image times a random factor.", .attrs = random_attrs,
           .types = "T:number"),
    RANDOM("random_contrast", "Drawn away from its mean by a random factor.",
           .attrs = random_attrs, .types = "T:number"),
    RANDOM("random_saturation", "Drawn away from grey by a random factor.",
           .attrs = random_attrs, .types = "T:number"),
    RANDOM("random_hue", "Colours turned by a random part of the circle.", .attrs = random_attrs,
           .types = "T:number"),
    RANDOM("random_flip_left_right", "The image, or with its columns turned round.", ),
    RANDOM("random_flip_top_bottom", "The image, or with its rows turned round.", ),
    RANDOM("random_color_jitter",
           "Brightness, contrast, saturation and hue in a random order.",
           .attrs = TNI_ATTRS(image_random_color_jitter), .types = "T:number"),
    RANDOM("random_lighting", "Adds random multiples of the principal colours.",
           .attrs = TNI_ATTRS(image_random_lighting), .types = "T:number"),
    NULL,
};
/* clang-format on */

/*
 * Images of other sizes, (N, C, H, W): UpSampling by copies or by a Deconvolution, bilinear resizing, means
 * of equal parts, and Crop.
 */
#include "tenon/plugin/op/resize.h"
#include "op/cost.h"
#include "op/infer_help.h"

static tn_status image_check(tn_infer *i, const tn_shape *s)
{
    return s->ndim == 4 ? TN_OK
                        : tni_infer_fail(i, TN_E_SHAPE,
                                         "an input has %d dimensions, 4 are needed: (N, C, H, W)", s->ndim);
}

/* ---- UpSampling -------------------------------------------------------------------------------------- */

static tn_status upsampling_args(tn_infer *i)
{
    static const char *const names[] = {"data", "weight", NULL};

    if (tni_attr_int(i->attrs, TN_UpSampling_sample_type) != TN_UpSampling_sample_type_bilinear)
        return TN_OK;
    if (i->in_count != 2)
        return tni_infer_fail(i, TN_E_ARG, "sample_type bilinear has 2 inputs, data and weight");
    i->in_names = names;
    return TN_OK;
}

static tn_status weight_unify(tn_infer *i, const tn_shape *data, tn_shape *weight)
{
    const int64_t scale = tni_attr_int(i->attrs, TN_UpSampling_scale), size = 2 * scale - scale % 2;
    const int64_t filters = tni_attr_int(i->attrs, TN_UpSampling_num_filter);
    const tn_shape known = {.ndim = 4, .dim = {data->dim[1], 1, size, size}};

    if (data->dim[1] >= 0 && filters != data->dim[1])
        return tni_infer_fail(i, TN_E_SHAPE, "num_filter is %lld, but data has %lld channels",
                              (long long)filters, (long long)data->dim[1]);
    return tni_shape_assign(i, weight, &known);
}

/* One more input of sample_type nearest into the output's shape. */
static tn_status nearest_unify(tn_infer *i, const tn_shape *x, bool sum, tn_shape *y)
{
    for (int32_t d = 2; d < 4; d++)
        if (x->dim[d] == 0 || (x->dim[d] > 0 && y->dim[d] >= 0 && y->dim[d] % x->dim[d]))
            return tni_infer_fail(i, TN_E_SHAPE, "size %lld of an input does not divide %lld of the output",
                                  (long long)x->dim[d], (long long)y->dim[d]);
    if (x->dim[0] >= 0 && y->dim[0] >= 0 && x->dim[0] != y->dim[0])
        return tni_infer_fail(i, TN_E_SHAPE, "inputs of %lld and %lld images", (long long)x->dim[0],
                              (long long)y->dim[0]);
    if (sum && x->dim[1] >= 0 && y->dim[1] >= 0 && x->dim[1] != y->dim[1])
        return tni_infer_fail(i, TN_E_SHAPE, "inputs of %lld and %lld channels are summed",
                              (long long)x->dim[1], (long long)y->dim[1]);
    if (!sum && (x->dim[1] < 0 || y->dim[1] < 0))
        y->dim[1] = TN_DIM_UNKNOWN;
    else if (!sum && __builtin_add_overflow(y->dim[1], x->dim[1], &y->dim[1]))
        return tni_infer_fail(i, TN_E_SHAPE, "there are too many channels");
    return TN_OK;
}

static tn_status upsampling_shape(tn_infer *i)
{
    const int64_t scale = tni_attr_int(i->attrs, TN_UpSampling_scale);
    const bool sum =
        tni_attr_int(i->attrs, TN_UpSampling_multi_input_mode) == TN_UpSampling_multi_input_mode_sum;
    const bool nearest =
        tni_attr_int(i->attrs, TN_UpSampling_sample_type) == TN_UpSampling_sample_type_nearest;
    tn_shape y;
    tn_status st;

    if (i->in_count < 1)
        return tni_infer_fail(i, TN_E_ARG, "at least one input is needed");
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = image_check(i, i->in_shape[0])))
        return st;
    y = *i->in_shape[0];
    for (int32_t d = 2; d < 4; d++)
        if (y.dim[d] > 0 && __builtin_mul_overflow(y.dim[d], scale, &y.dim[d]))
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of the output is too large", d);
    if (!nearest)
        st = weight_unify(i, i->in_shape[0], i->in_shape[1]);
    else if (!sum)
        y.dim[1] = 0;
    for (uint32_t k = 0; !st && nearest && k < i->in_count; k++) {
        if (i->in_shape[k]->ndim < 0)
            return TN_OK;
        if (!(st = image_check(i, i->in_shape[k])))
            st = nearest_unify(i, i->in_shape[k], sum, &y);
    }
    return st ? st : tni_shape_assign(i, i->out_shape[0], &y);
}

/* ---- Crop, AdaptiveAvgPooling2D ---------------------------------------------------------------------- */

static tn_status crop_shape(tn_infer *i)
{
    const tn_tuple *size = tni_attr_tuple(i->attrs, TN_Crop_h_w),
                   *at = tni_attr_tuple(i->attrs, TN_Crop_offset);
    const tn_shape *like = i->in_count > 1 ? i->in_shape[1] : NULL;
    const bool center = tni_attr_bool(i->attrs, TN_Crop_center_crop);
    tn_shape y;
    tn_status st;

    if (i->in_count < 1 || i->in_count > 2)
        return tni_infer_fail(i, TN_E_ARG, "%u inputs, 1 or 2 are needed", i->in_count);
    if (i->in_shape[0]->ndim < 0 || (like && like->ndim < 0))
        return TN_OK;
    if ((st = image_check(i, i->in_shape[0])) || (like && (st = image_check(i, like))))
        return st;
    if ((!like && tni_tuple_count(size) != 2) || (!center && tni_tuple_count(at) != 2))
        return tni_infer_fail(i, TN_E_ATTR, "h_w has %lld items and offset %lld: 2 are needed",
                              (long long)tni_tuple_count(size), (long long)tni_tuple_count(at));
    y = *i->in_shape[0];
    for (int32_t k = 0; k < 2; k++) {
        const int64_t whole = y.dim[2 + k], part = like ? like->dim[2 + k] : size->item[k];

        if (!like && part < 1)
            return tni_infer_fail(i, TN_E_ATTR, "item %d of h_w is %lld", k, (long long)part);
        if (whole >= 0 && part >= 0 && part + (center ? 0 : at->item[k]) > whole)
            return tni_infer_fail(i, TN_E_SHAPE, "%lld from %lld on do not lie in dimension %d of size %lld",
                                  (long long)part, (long long)(center ? 0 : at->item[k]), 2 + k,
                                  (long long)whole);
        y.dim[2 + k] = part;
    }
    return tni_shape_assign(i, i->out_shape[0], &y);
}

static tn_status adaptive_shape(tn_infer *i)
{
    const tn_tuple *size = tni_attr_tuple(i->attrs, TN_contrib_AdaptiveAvgPooling2D_output_size);
    const int64_t n = tni_tuple_count(size);
    tn_shape y;
    tn_status st;

    if (n > 2)
        return tni_infer_fail(i, TN_E_ATTR, "output_size has %lld items, at most 2 are allowed",
                              (long long)n);
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = image_check(i, i->in_shape[0])))
        return st;
    y = *i->in_shape[0];
    for (int32_t k = 0; k < 2; k++) {
        if (y.dim[2 + k] == 0)
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d has size 0: there is no mean", 2 + k);
        if (y.dim[2 + k] > INT32_MAX)
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d is too large", 2 + k);
        y.dim[2 + k] = tni_tuple_item(size, n == 1 ? 0 : k, 1);
    }
    return tni_shape_assign(i, i->out_shape[0], &y);
}

/* ---- table ------------------------------------------------------------------------------------------- */

const tn_op *const tni_family_resize[] = {
    TNI_ROW("UpSampling",
            .doc = "Each element in scale * scale copies, or a Deconvolution with stride scale.",
            .attrs = TNI_ATTRS(UpSampling), .inputs = TNI_NAMES("arg*"), .outputs = TNI_NAMES("output"),
            .args = upsampling_args, .shape = upsampling_shape, .types = "T:float",
            .gradients = "once: dy arg* -> arg*", .cost = tni_cost_each_output),
    TNI_ROW("Crop", .doc = "A window of the last two dimensions; a second input says its size.",
            .attrs = TNI_ATTRS(Crop), .inputs = TNI_NAMES("arg*"), .outputs = TNI_NAMES("output"),
            .shape = crop_shape, .gradients = "linear: dy ~arg* -> arg*"),
    TNI_ROW("_contrib_BilinearResize2D", .doc = "The image in another size, by bilinear interpolation.",
            .attrs = TNI_ATTRS(contrib_BilinearResize2D),
            .shapes = "[mode=like] data:(N,C,H,W) like?mode=like:(M,D,T,U) -> output:(N,C,T,U) "
                      "| data:(N,C,S..) like?mode=like:(M,D,T,U) -> output:(N,C,resized(S..)) "
                      "; A=H-1 ; B=W-1", /* there is a pixel */
            .types = "T:float", .gradients = "linear: dy ~data ~like -> data like=0",
            .cost = tni_cost_each_output),
    TNI_ROW("_contrib_AdaptiveAvgPooling2D", .doc = "The means of output_size parts of the image.",
            .attrs = TNI_ATTRS(contrib_AdaptiveAvgPooling2D), .inputs = TNI_NAMES("data"),
            .outputs = TNI_NAMES("output"), .shape = adaptive_shape, .types = "T:float",
            .gradients = "linear: dy ~data -> data", .cost = tni_cost_each_input),
    NULL,
};

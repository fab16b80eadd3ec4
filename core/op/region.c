/*
 * Regions of images: rows (image, x1, y1, x2, y2) of `rois`, each pooled to a grid of parts; and Correlation
 * of patches of two images. A region of an image that is not there gives zeros. Regions have no gradient.
 */
#include "tenon/plugin/op/region.h"
#include "op/cost.h"
#include "op/infer_help.h"

/* The regions, and the data's rank; `known`: there is something to tell of the output. */
static tn_status regions_check(tn_infer *i, bool *known)
{
    tn_shape rois = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, 5}};
    const tn_shape *data = i->in_shape[0];
    tn_status st = tni_shape_assign(i, i->in_shape[1], &rois);

    if (!st && data->ndim >= 0 && data->ndim != 4)
        st = tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, 4 are needed: (N, C, H, W)", data->ndim);
    *known = data->ndim == 4;
    return st;
}

/* (regions, channels, h, w) */
static tn_status regions_output(tn_infer *i, int64_t channels, const int64_t *size)
{
    tn_shape y = {.ndim = 4, .dim = {i->in_shape[1]->dim[0], channels, size[0], size[1]}};

    return tni_outputs_assign(i, &y);
}

static tn_status pooling_shape(tn_infer *i)
{
    int64_t size[2];
    bool known;
    tn_status st;

    if ((st = tni_attr_pair(i, TN_ROIPooling_pooled_size, size)) || (st = regions_check(i, &known)) || !known)
        return st;
    return regions_output(i, i->in_shape[0]->dim[1], size);
}

static tn_status align_shape(tn_infer *i)
{
    int64_t size[2], channels;
    bool known;
    tn_status st;

    if ((st = tni_attr_pair(i, TN_contrib_ROIAlign_pooled_size, size)) || (st = regions_check(i, &known)) ||
        !known)
        return st;
    channels = i->in_shape[0]->dim[1];
    if (channels >= 0 && tni_attr_bool(i->attrs, TN_contrib_ROIAlign_position_sensitive)) {
        if (channels % (size[0] * size[1]))
            return tni_infer_fail(i, TN_E_SHAPE, "%lld channels cannot be shared by %lld parts",
                                  (long long)channels, (long long)(size[0] * size[1]));
        channels /= size[0] * size[1];
    }
    return regions_output(i, channels, size);
}

static tn_status psroi_shape(tn_infer *i)
{
    const int64_t dim = tni_attr_int(i->attrs, TN_contrib_PSROIPooling_output_dim),
                  pooled = tni_attr_int(i->attrs, TN_contrib_PSROIPooling_pooled_size),
                  given = tni_attr_int(i->attrs, TN_contrib_PSROIPooling_group_size);
    const int64_t group = given ? given : pooled, size[] = {pooled, pooled};
    int64_t channels;
    bool known;
    tn_status st = regions_check(i, &known);

    if (st || !known)
        return st;
    if (__builtin_mul_overflow(dim, group * group, &channels) ||
        (i->in_shape[0]->dim[1] >= 0 && i->in_shape[0]->dim[1] < channels))
        return tni_infer_fail(i, TN_E_SHAPE, "data has %lld channels: output_dim * group_size^2 are needed",
                              (long long)i->in_shape[0]->dim[1]);
    return regions_output(i, dim, size);
}

static tn_status correlation_shape(tn_infer *i)
{
    const int64_t kernel = tni_attr_int(i->attrs, TN_Correlation_kernel_size),
                  pad = tni_attr_int(i->attrs, TN_Correlation_pad_size),
                  stride = tni_attr_int(i->attrs, TN_Correlation_stride1),
                  reach = tni_attr_int(i->attrs, TN_Correlation_max_displacement);
    const int64_t border = reach + (kernel - 1) / 2,
                  steps = 2 * (reach / tni_attr_int(i->attrs, TN_Correlation_stride2)) + 1;
    tn_shape y;
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    if (kernel % 2 == 0)
        return tni_infer_fail(i, TN_E_ATTR, "kernel_size %lld is even", (long long)kernel);
    if (st || i->in_shape[0]->ndim < 0)
        return st;
    y = *i->in_shape[0];
    if (y.ndim != 4)
        return tni_infer_fail(i, TN_E_SHAPE, "data1 has %d dimensions, 4 are needed: (N, C, H, W)", y.ndim);
    y.dim[1] = steps * steps;
    for (int32_t d = 2; d < 4; d++) {
        if (y.dim[d] < 0)
            continue;
        if (y.dim[d] > INT32_MAX || y.dim[d] + 2 * (pad - border) < 1)
            return tni_infer_fail(i, TN_E_SHAPE,
                                  "patches and displacements do not fit into dimension %d, %lld", d,
                                  (long long)y.dim[d]);
        y.dim[d] = (y.dim[d] + 2 * (pad - border) - 1) / stride + 1;
    }
    return tni_shape_assign(i, i->out_shape[0], &y);
}

#define REGION(name_, attrs_, shape_, outputs_, types_, gradients_, ...)                                     \
    TNI_ROW(name_, .attrs = attrs_, .inputs = TNI_NAMES("data", "rois"), .outputs = outputs_, .visible = 1,  \
            .shape = shape_, .types = types_, .gradients = gradients_, .cost = tni_cost_each_output,         \
            __VA_ARGS__)

const tn_op *const tni_family_region[] = {
    REGION("ROIPooling", TNI_ATTRS(ROIPooling), pooling_shape, TNI_NAMES("output", "max_idx"),
           "T:float; max_idx:i64", "once: dy ~data rois max_idx -> data rois=0",
           .aliases = TNI_NAMES("_npx_roi_pooling"), .doc = "The maximum of each part of each region."),
    REGION("_contrib_ROIAlign", TNI_ATTRS(contrib_ROIAlign), align_shape, TNI_NAMES("output"), "T:float",
           "linear: dy ~data rois -> data rois=0",
           .doc = "Means of samples of each part of each region, by bilinear interpolation."),
    REGION("_contrib_PSROIPooling", TNI_ATTRS(contrib_PSROIPooling), psroi_shape, TNI_NAMES("output"),
           "T:float", "linear: dy ~data rois -> data rois=0",
           .doc = "The mean of each part of each region, of a channel of its own."),
    TNI_ROW("Correlation", .doc = "Patches of one image with those around the same place in another one.",
            .attrs = TNI_ATTRS(Correlation), .inputs = TNI_NAMES("data1", "data2"),
            .outputs = TNI_NAMES("output"), .shape = correlation_shape, .types = "T:float",
            .gradients = "once: dy data1 data2 -> data1 data2", .cost = tni_cost_each_output),
    NULL,
};

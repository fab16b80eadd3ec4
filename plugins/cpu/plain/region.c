/*
 * Regions of images. Forward tasks are regions (Correlation: planes of the output), backward tasks are planes
 * of the data: each goes over all regions in their order. A region is a row (image, x1, y1, x2, y2); numbers
 * that no image has are brought to its border.
 */
#include <float.h>
#include <math.h>

#include "forms.h"
#include "tenon/plugin/op/region.h"

/* Pixels first … end-1 of both axes; nothing where end <= first. */
typedef struct part {
    int64_t first[2], end[2];
} part;

/* Cut to the image. */
static part part_cut(part p, const int64_t *size)
{
    for (int k = 0; k < 2; k++) {
        p.first[k] = tncpu_min(tncpu_max(p.first[k], 0), size[k]);
        p.end[k] = tncpu_min(tncpu_max(p.end[k], 0), size[k]);
    }
    return p;
}

static bool part_empty(const part *p)
{
    return p->end[0] <= p->first[0] || p->end[1] <= p->first[1];
}

/* Far outside of every image, and small enough for sums of them. */
#define FAR ((int64_t)1 << 40)

/* The image of a region, -1: none. */
static int64_t image_of(double number, int64_t count)
{
    const int64_t n = tncpu_whole(number, -1, count);

    return number < 0 || n >= count ? -1 : n;
}

/* The channel of PSROIPooling that part (h, w) of output channel `c` has. */
static int64_t group_channel(const tn_value *attrs, int64_t c, int64_t h, int64_t w)
{
    const int64_t pooled = tn_value_int(attrs[TN_contrib_PSROIPooling_pooled_size]),
                  given = tn_value_int(attrs[TN_contrib_PSROIPooling_group_size]);
    const int64_t group = given ? given : pooled;

    return (c * group + h * group / pooled) * group + w * group / pooled;
}

/* Patches of Correlation: y1 = oy * stride1 + reach - pad …, y2 = y1 + dy. */
typedef struct patches {
    int64_t kernel, stride, from, steps, step, radius;
    bool multiply;
} patches;

static patches patches_of(const tn_value *attrs)
{
    const int64_t reach = tn_value_int(attrs[TN_Correlation_max_displacement]),
                  step = tn_value_int(attrs[TN_Correlation_stride2]);

    return (patches){.kernel = tn_value_int(attrs[TN_Correlation_kernel_size]),
                     .stride = tn_value_int(attrs[TN_Correlation_stride1]),
                     .from = reach - tn_value_int(attrs[TN_Correlation_pad_size]),
                     .steps = 2 * (reach / step) + 1,
                     .step = step,
                     .radius = reach / step,
                     .multiply = tn_value_int(attrs[TN_Correlation_is_multiply]) != 0};
}

#define BODY "../plain/region.inc"
#include "../common/floats.inc"

static int64_t regions(const tn_node *node)
{
    return node->out[0]->shape[0];
}

static int64_t output_planes(const tn_node *node)
{
    return tncpu_planes(node->out[0]);
}

static const tncpu_form forms[] = {
    {"ROIPooling", regions, max_region_f32, max_region_f64, NULL},
    {"_backward_ROIPooling", output_planes, backward_max_f32, backward_max_f64, NULL},
    {"_contrib_ROIAlign", regions, align_region_f32, align_region_f64, NULL},
    {"_backward__contrib_ROIAlign", output_planes, backward_align_f32, backward_align_f64, NULL},
    {"_contrib_PSROIPooling", regions, psroi_region_f32, psroi_region_f64, NULL},
    {"_backward__contrib_PSROIPooling", output_planes, backward_psroi_f32, backward_psroi_f64, NULL},
    {"Correlation", output_planes, correlation_f32, correlation_f64, NULL},
    {"_backward_Correlation", output_planes, backward_correlation_f32, backward_correlation_f64, NULL},
};

TNCPU_FORMS(region, forms, 0)
TNCPU_FORMS(shaped, forms, 1u << 1)

static const char *const types[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const maximum[] = {"max_idx:i64", "*:" TNCPU_FLOATS, NULL};

#define REGION(op, types) TNCPU_ROW(op, types, TN_KERNEL_EMPTY_OK, region_prepare, region_run)
#define BACKWARD(op, types) TNCPU_ROW("_backward_" op, types, TN_KERNEL_EMPTY_OK, shaped_prepare, shaped_run)

const tn_kernel *const tncpu_family_region[] = {
    REGION("ROIPooling", maximum),
    BACKWARD("ROIPooling", maximum),
    REGION("_contrib_ROIAlign", types),
    BACKWARD("_contrib_ROIAlign", types),
    REGION("_contrib_PSROIPooling", types),
    BACKWARD("_contrib_PSROIPooling", types),
    REGION("Correlation", types),
    REGION("_backward_Correlation", types),
    NULL,
};

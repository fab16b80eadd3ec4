/*
 * Regions of images. Forward tasks are regions (Correlation: planes of the output), backward tasks are planes
 * of the data: each goes over all regions in their order. A region is a row (image, x1, y1, x2, y2); numbers
 * that no image has are brought to its border.
 */
#include <float.h>
#include <math.h>

#include "../../common/region.h"
#include "forms.h"
#include "tenon/plugin/op/region.h"

static tnb_patches patches_of(const tn_value *attrs)
{
    const int64_t reach = tn_value_int(attrs[TN_Correlation_max_displacement]),
                  step = tn_value_int(attrs[TN_Correlation_stride2]);

    return (tnb_patches){.kernel = tn_value_int(attrs[TN_Correlation_kernel_size]),
                         .stride = tn_value_int(attrs[TN_Correlation_stride1]),
                         .from = reach - tn_value_int(attrs[TN_Correlation_pad_size]),
                         .steps = 2 * (reach / step) + 1,
                         .step = step,
                         .radius = reach / step,
                         .multiply = tn_value_int(attrs[TN_Correlation_is_multiply]) != 0};
}

static tnb_roi_align align_of(const tn_value *attrs)
{
    return (tnb_roi_align){.scale = tn_value_float(attrs[TN_contrib_ROIAlign_spatial_scale]),
                           .asked = tn_value_int(attrs[TN_contrib_ROIAlign_sample_ratio]),
                           .aligned = tn_value_int(attrs[TN_contrib_ROIAlign_aligned]) != 0};
}

/* The channel of PSROIPooling that part (h, w) of output channel `c` has. */
static int64_t group_channel(const tn_value *attrs, int64_t c, int64_t h, int64_t w)
{
    return tnb_group_channel(tn_value_int(attrs[TN_contrib_PSROIPooling_pooled_size]),
                             tn_value_int(attrs[TN_contrib_PSROIPooling_group_size]), c, h, w);
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

static const char *const maximum[] = {"max_idx:i64", "*:" TNCPU_FLOATS, NULL};

#define EMPTY TN_KERNEL_EMPTY_OK
#define REGIONS(X)                                                                                           \
    X("ROIPooling", maximum, EMPTY, region, regions, max_region, NULL)                                       \
    X("_backward_ROIPooling", maximum, EMPTY, shaped, output_planes, backward_max, NULL)                     \
    X("_contrib_ROIAlign", tncpu_floats, EMPTY, region, regions, align_region, NULL)                         \
    X("_backward__contrib_ROIAlign", tncpu_floats, EMPTY, shaped, output_planes, backward_align, NULL)       \
    X("_contrib_PSROIPooling", tncpu_floats, EMPTY, region, regions, psroi_region, NULL)                     \
    X("_backward__contrib_PSROIPooling", tncpu_floats, EMPTY, shaped, output_planes, backward_psroi, NULL)   \
    X("Correlation", tncpu_floats, EMPTY, region, output_planes, correlation, NULL)                          \
    X("_backward_Correlation", tncpu_floats, EMPTY, region, output_planes, backward_correlation, NULL)

static const tncpu_form forms[] = {REGIONS(TNCPU_FORM)};
TNCPU_FORMS(region, forms, 0)
TNCPU_FORMS(shaped, forms, 1u << 1)
const tn_kernel *const tncpu_family_region[] = {REGIONS(TNCPU_FORM_ROW) NULL};

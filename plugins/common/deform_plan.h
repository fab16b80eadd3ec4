/* Sizes of deformable convolutions, read from a node. On the host. */
#ifndef TNB_DEFORM_PLAN_H
#define TNB_DEFORM_PLAN_H

#include "deform.h"
#include "window.h"

#include <string.h>

/* The attributes of both operators stand in the same places. */
_Static_assert((int)TN_contrib_DeformableConvolution_no_bias ==
                       TN_contrib_ModulatedDeformableConvolution_no_bias &&
                   (int)TN_contrib_DeformableConvolution_kernel == TN_Convolution_kernel &&
                   (int)TN_contrib_DeformableConvolution_pad == TN_Convolution_pad,
               "windows are read as those of Convolution");

/* Data has four dimensions. */
static inline void tnb_deform_plan(const tn_node *node, const tn_tensor *data, const tn_tensor *y,
                                   tnb_deform *d)
{
    int64_t in[TNB_SPACE], out[TNB_SPACE], kernel[TNB_SPACE], stride[TNB_SPACE], dilate[TNB_SPACE],
        pad[TNB_SPACE];
    const tnb_window w = {in, out, kernel, stride, dilate, pad};

    tnb_window_attrs(node->attrs, 2, w);
    tnb_window_extents(data, y, 2, w);
    d->modulated = strstr(node->op, "Modulated") != NULL;
    d->channels = data->shape[1];
    d->offset_groups = tn_value_int(node->attrs[TN_contrib_DeformableConvolution_num_deformable_group]);
    d->taps = d->in_pixels = d->out_pixels = 1;
    for (int32_t k = 0; k < 2; k++) {
        d->taps *= kernel[k + 1];
        d->in_pixels *= in[k + 1];
        d->out_pixels *= out[k + 1];
        d->in[k] = in[k + 1];
        d->out[k] = out[k + 1];
        d->kernel[k] = kernel[k + 1];
        d->stride[k] = stride[k + 1];
        d->dilate[k] = dilate[k + 1];
        d->pad[k] = pad[k + 1];
    }
}

#endif

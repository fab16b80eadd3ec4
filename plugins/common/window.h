/*
 * Windows over (batch, channels, d, h, w), or with channels last: what convolutions, their unfolding and
 * deconvolutions read from attributes; 1-D and 2-D have leading dimensions of 1. On the host.
 */
#ifndef TNB_WINDOW_H
#define TNB_WINDOW_H

#include "node.h"
#include "tenon/plugin/op/conv.h"

#define TNB_SPACE 3 /* depth, height, width */

typedef struct tnb_window {
    int64_t *in, *out, *kernel, *stride, *dilate, *pad; /* TNB_SPACE of each */
} tnb_window;

/* Kernel, stride, dilate and pad: the first four attributes, for `space` dimensions. */
static inline void tnb_window_attrs(const tn_value *attrs, int32_t space, tnb_window w)
{
    for (int32_t i = 0; i < TNB_SPACE; i++) {
        const int32_t from = i - (TNB_SPACE - space);

        w.kernel[i] = from >= 0 ? tnb_tuple_item(attrs[TN_Convolution_kernel], from, 1) : 1;
        w.stride[i] = from >= 0 ? tnb_tuple_item(attrs[TN_Convolution_stride], from, 1) : 1;
        w.dilate[i] = from >= 0 ? tnb_tuple_item(attrs[TN_Convolution_dilate], from, 1) : 1;
        w.pad[i] = from >= 0 ? tnb_tuple_item(attrs[TN_Convolution_pad], from, 0) : 0;
    }
}

/* The extents of the tensors in front of and behind the convolution, whose space begins with axis `first`. */
static inline void tnb_window_extents(const tn_tensor *data, const tn_tensor *out, int32_t first,
                                      tnb_window w)
{
    for (int32_t i = 0; i < TNB_SPACE; i++) {
        const int32_t from = i - (TNB_SPACE - (data->ndim - 2));

        w.in[i] = from >= 0 ? data->shape[first + from] : 1;
        w.out[i] = from >= 0 ? out->shape[first + from] : 1;
    }
}

/* Behind these two: with a target, Deconvolution's padding is half of what the output without padding has too
 * much, rounded up. */
static inline void tnb_window_target(const tn_value *attrs, int32_t space, tnb_window w)
{
    int64_t any = 0;

    for (int32_t k = 0; k < space; k++)
        any |= tnb_tuple_item(attrs[TN_Deconvolution_target_shape], k, 0);
    for (int32_t i = TNB_SPACE - space; any && i < TNB_SPACE; i++) {
        const int64_t whole = w.stride[i] * (w.out[i] - 1) + w.dilate[i] * (w.kernel[i] - 1) + 1;

        w.pad[i] = (whole - w.in[i] + 1) / 2;
    }
}

/* UpSampling with a weight: the windows of its Deconvolution. */
static inline void tnb_window_scale(int64_t scale, tnb_window w)
{
    for (int32_t i = 0; i < TNB_SPACE; i++) {
        w.kernel[i] = i ? 2 * scale - scale % 2 : 1;
        w.stride[i] = i ? scale : 1;
        w.dilate[i] = 1;
        w.pad[i] = i ? scale / 2 : 0;
    }
}

/* im2col and col2im: how many windows there are. */
static inline void tnb_window_outputs(tnb_window w)
{
    for (int32_t i = 0; i < TNB_SPACE; i++)
        w.out[i] = (w.in[i] + 2 * w.pad[i] - w.dilate[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
}

#endif

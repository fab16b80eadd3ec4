/* The geometry of a convolution, read from a node or a call; 1-D and 2-D have leading dimensions of 1. */
#ifndef TNCPU_CONV_H
#define TNCPU_CONV_H

#include "../../common/window.h"
#include "gemm.h"

#define TNCPU_SPACE TNB_SPACE
#define TNCPU_CONV_COL_BYTES (384 << 10) /* of unfolded pixels at a time: stays in the second-level cache */
#define TNCPU_CONV_TASKS 8               /* that a run is cut into where the shape allows it */
#define TNCPU_CONV_PARTIAL_BYTES ((int64_t)64 << 20) /* of partial weight gradients, at most */

typedef struct tncpu_conv {
    int64_t batch, groups, channels, filters; /* the last two: of one group */
    int64_t in[TNCPU_SPACE], out[TNCPU_SPACE];
    int64_t kernel[TNCPU_SPACE], stride[TNCPU_SPACE], dilate[TNCPU_SPACE], pad[TNCPU_SPACE];
    int64_t in_pixels, out_pixels, taps;
    int64_t rows;        /* channels * taps: the length of one unfolded pixel */
    int64_t tile, tiles; /* pixels unfolded at a time, and how many times */
    int64_t outer, inner, outer_block,
        outer_blocks; /* rows = outer * inner: (channel, tap) or (tap, channel) */
    int64_t chunks;   /* parts of the batch with their own weight gradient */
    int32_t channels_last, direct, dtype, has_bias; /* direct: 1x1, nothing to unfold */
} tncpu_conv;

/** Pixels unfolded at a time: by cache, whole output rows, enough tasks for small batches. Shape only. */
static inline void tncpu_conv_tiles(tncpu_conv *c)
{
    const int64_t width = c->out[2], images = c->batch * c->groups;
    int64_t tile = TNCPU_CONV_COL_BYTES / (int64_t)tn_dtype_bytes(c->dtype) / tncpu_max(c->rows, 1);

    tile = tncpu_max(tile, 64);
    if (images < TNCPU_CONV_TASKS)
        tile = tncpu_min(
            tile, tncpu_max(64, tncpu_ceil_div(c->out_pixels,
                                               tncpu_ceil_div(TNCPU_CONV_TASKS, tncpu_max(images, 1)))));
    if (width > 0 && width <= tile)
        tile = tile / width * width;
    c->tile = tncpu_max(1, tncpu_min(tile, c->out_pixels));
    c->tiles = tncpu_ceil_div(c->out_pixels, c->tile);
}

/** Blocks of rows and chunks of the batch for the gradients. Shape only. */
static inline void tncpu_conv_blocks(tncpu_conv *c)
{
    const int64_t weights = c->groups * c->filters * c->rows * (int64_t)tn_dtype_bytes(c->dtype);
    int64_t wanted;

    c->outer = c->channels_last ? c->taps : c->channels;
    c->inner = c->channels_last ? c->channels : c->taps;
    wanted = tncpu_max(1, tncpu_min(TNCPU_CONV_TASKS / tncpu_max(c->groups, 1), c->rows / 64));
    c->outer_block = tncpu_max(1, tncpu_ceil_div(c->outer, wanted));
    c->outer_blocks = tncpu_ceil_div(c->outer, c->outer_block);
    wanted = tncpu_ceil_div(TNCPU_CONV_TASKS, tncpu_max(1, c->groups * c->outer_blocks));
    c->chunks =
        tncpu_max(1, tncpu_min(wanted, tncpu_min(c->batch, TNCPU_CONV_PARTIAL_BYTES / (weights + 1))));
}

static inline tnb_window tncpu_conv_window(tncpu_conv *c)
{
    return (tnb_window){c->in, c->out, c->kernel, c->stride, c->dilate, c->pad};
}

/** What follows from windows, extents, `channels_last`, `groups` and the number of all filters. */
static inline void tncpu_conv_finish(const tn_tensor *data, int64_t filters, tncpu_conv *c)
{
    c->dtype = data->dtype;
    c->batch = data->shape[0];
    c->channels = data->shape[c->channels_last ? data->ndim - 1 : 1] / c->groups;
    c->filters = filters / c->groups;
    c->in_pixels = c->out_pixels = c->taps = 1;
    c->direct = 1;
    for (int32_t i = 0; i < TNCPU_SPACE; i++) {
        c->in_pixels *= c->in[i];
        c->out_pixels *= c->out[i];
        c->taps *= c->kernel[i];
        c->direct &= c->kernel[i] == 1 && c->stride[i] == 1 && c->pad[i] == 0;
    }
    c->rows = c->channels * c->taps;
    tncpu_conv_tiles(c);
    tncpu_conv_blocks(c);
}

/** Reads the geometry; `data` and `out` are the tensors in front of and behind the convolution. */
static inline void tncpu_conv_read(const tn_value *attrs, const tn_tensor *data, const tn_tensor *out,
                                   tncpu_conv *c)
{
    const int64_t layout = tn_value_int(attrs[TN_Convolution_layout]);

    c->channels_last = layout == TN_Convolution_layout_NHWC || layout == TN_Convolution_layout_NDHWC;
    c->has_bias = !tn_value_int(attrs[TN_Convolution_no_bias]);
    c->groups = tn_value_int(attrs[TN_Convolution_num_group]);
    tnb_window_attrs(attrs, data->ndim - 2, tncpu_conv_window(c));
    tnb_window_extents(data, out, c->channels_last ? 1 : 2, tncpu_conv_window(c));
    tncpu_conv_finish(data, tn_value_int(attrs[TN_Convolution_num_filter]), c);
}

#endif

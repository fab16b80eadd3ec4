/* Deformable convolutions: sizes that bodies (deform.inc) and plans of hosts and GPUs read. In C and CUDA. */
#ifndef TNB_DEFORM_H
#define TNB_DEFORM_H

#include "storage.h"

/* Two dimensions of space: height, width. Columns of an image are (channel, tap) rows of out_pixels. */
typedef struct tnb_deform {
    int64_t channels, offset_groups, taps, in_pixels, out_pixels;
    int64_t in[2], out[2], kernel[2], stride[2], dilate[2], pad[2];
    int32_t modulated; /* places have factors, and what lies outside counts as 0 */
} tnb_deform;

#endif

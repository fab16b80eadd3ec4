/* Where pixels of resized images come from. In C and CUDA. */
#ifndef TNB_RESIZE_H
#define TNB_RESIZE_H

#include "storage.h"

/* Between which rows (or columns) `at` and `at` + `step` of the input an output row lies, and how far. */
typedef struct tnb_between {
    int64_t at, step;
    float part;
} tnb_between;

/* As MXNet computes it, in float32 for every type. */
TNB_INLINE tnb_between tnb_between_of(int64_t o, int64_t in, int64_t out, int32_t corners)
{
    const float scale = out < 2 ? 0 : corners ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float x = corners ? scale * (float)o : (float)((double)scale * ((double)o + 0.5) - 0.5);
    tnb_between b;

    if (!(x > 0))
        x = 0;
    b.at = (int64_t)x < in - 1 ? (int64_t)x : in - 1;
    b.step = b.at < in - 1;
    b.part = x - (float)b.at;
    return b;
}

/* Rows first … end-1 of the input that output row `o` is the mean of. */
TNB_INLINE int64_t tnb_mean_first(int64_t o, int64_t in, int64_t out)
{
    return o * in / out;
}

TNB_INLINE int64_t tnb_mean_end(int64_t o, int64_t in, int64_t out)
{
    return ((o + 1) * in + out - 1) / out;
}

#endif

/* Which pixels a resized image is made of, as OpenCV has it. In C and CUDA. */
#ifndef TNB_TAPS_H
#define TNB_TAPS_H

#include <math.h>

#include "storage.h"

#define TNB_TAPS_FIXED 4
#define TNB_UNIT 2048.0

/* Where an output pixel reads along one axis: pixels first … first + count - 1, cut to the image. */
typedef struct tnb_taps {
    int64_t first, count;
    double w[TNB_TAPS_FIXED]; /* of areas: of the first and the last one, and of those between */
} tnb_taps;

enum { TNB_NEAREST, TNB_LINEAR, TNB_CUBIC, TNB_AREA, TNB_AREA_UP };

TNB_INLINE tnb_taps tnb_area_taps(int64_t o, double scale, int64_t in)
{
    const double begin = (double)o * scale, end = begin + scale, width = fmin(scale, (double)in - begin);
    int64_t a = (int64_t)ceil(begin), b = (int64_t)floor(end) < in - 1 ? (int64_t)floor(end) : in - 1;
    const double before = (double)a - begin, behind = end - (double)b;
    tnb_taps t;

    for (int32_t k = 0; k < TNB_TAPS_FIXED; k++)
        t.w[k] = 1 / width;
    a = a < b ? a : b;
    t.first = a;
    if (before > 1e-3) {
        t.first = a - 1;
        t.w[0] = before / width;
    }
    t.count = b - t.first;
    if (behind > 1e-3) {
        t.count++;
        t.w[2] = fmin(fmin(behind, 1.0), scale) / width;
    }
    return t;
}

TNB_INLINE double tnb_area_weight(const tnb_taps *t, int64_t k)
{
    return k == 0 ? t->w[0] : k == t->count - 1 ? t->w[2] : t->w[1];
}

TNB_INLINE tnb_taps tnb_taps_of(int64_t o, int64_t in, int64_t out, int32_t interp)
{
    const double scale = (double)in / (double)out, x = ((double)o + 0.5) * scale - 0.5;
    double at = floor(x), f = (double)(float)(x - at);
    tnb_taps t;

    t.first = (int64_t)at;
    t.count = 2;
    t.w[2] = t.w[3] = 0;
    if (interp == TNB_NEAREST) {
        at = floor((double)o * scale);
        t.first = (int64_t)at < in - 1 ? (int64_t)at : in - 1;
        t.count = 1;
        t.w[0] = 1;
        return t;
    }
    if (interp == TNB_AREA)
        return tnb_area_taps(o, scale, in);
    if (interp == TNB_CUBIC) {
        t.first--;
        t.count = 4;
        t.w[0] = ((-0.75 * (f + 1) + 5 * 0.75) * (f + 1) - 8 * 0.75) * (f + 1) + 4 * 0.75;
        t.w[1] = (1.25 * f - 2.25) * f * f + 1;
        t.w[2] = (1.25 * (1 - f) - 2.25) * (1 - f) * (1 - f) + 1;
        t.w[3] = 1 - t.w[0] - t.w[1] - t.w[2];
        return t;
    }
    if (interp == TNB_AREA_UP) { /* linear, but pixels keep their area */
        at = floor((double)o * scale);
        f = (double)(o + 1) - (at + 1) / scale;
        f = f <= 0 ? 0 : (double)(float)(f - floor(f));
        t.first = (int64_t)at;
    }
    t.w[0] = 1 - f;
    t.w[1] = f;
    return t;
}

/* The way that pixels are read: areas need a smaller image, and halves are areas, as in OpenCV. */
TNB_INLINE int32_t tnb_way_of(int32_t interp, const int64_t *in, const int64_t *out)
{
    if (interp == TNB_LINEAR && in[0] == 2 * out[0] && in[1] == 2 * out[1])
        return TNB_AREA;
    return interp == TNB_AREA && (in[0] < out[0] || in[1] < out[1]) ? TNB_AREA_UP : interp;
}

/* Weights of bytes are multiples of 1 / 2048, and sums of them are whole numbers, as in OpenCV. */
TNB_INLINE double tnb_tap_weight(const tnb_taps *t, int64_t k, int32_t way, int32_t bytes)
{
    const double w = way == TNB_AREA ? tnb_area_weight(t, k) : t->w[k];

    return bytes && way != TNB_AREA && way != TNB_NEAREST ? rint(w * TNB_UNIT) : w;
}

/* sum + w v; of areas in float32, as OpenCV has it. */
TNB_INLINE double tnb_sum_of(double sum, double w, double v, int32_t way)
{
    return way == TNB_AREA ? (double)((float)sum + (float)w * (float)v) : sum + w * v;
}

/* The same of rows: OpenCV's linear rows of bytes lose bits on the way. */
TNB_INLINE double tnb_rows_sum(double sum, double w, double v, int32_t way, int32_t bytes)
{
    return bytes && (way == TNB_LINEAR || way == TNB_AREA_UP) ? sum + floor(w * floor(v / 16) / 65536)
                                                              : tnb_sum_of(sum, w, v, way);
}

TNB_INLINE double tnb_pixel_of(double sum, int32_t way, int32_t whole, int32_t bytes, int32_t half)
{
    if (bytes && (way == TNB_LINEAR || way == TNB_AREA_UP))
        return floor((sum + 2) / 4);
    if (bytes && way == TNB_CUBIC)
        return floor((sum + TNB_UNIT * TNB_UNIT / 2) / (TNB_UNIT * TNB_UNIT));
    return !whole ? sum : half ? floor(sum + 0.5) : rint(sum);
}

#endif

/* Images as rows of bytes, (height, width, channels): sizes, turns, colours, as OpenCV computes them. */
#ifndef TN_NN_PIXELS_H
#define TN_NN_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tnn_rect {
    int32_t x, y, width, height;
} tnn_rect;

typedef struct tnn_pixels { /* a part of an image: that of `at`, of one of width x height */
    uint8_t *data;
    int64_t stride;
    int32_t channels, width, height;
    tnn_rect at;
} tnn_pixels;

enum { TNN_NEAREST, TNN_LINEAR, TNN_CUBIC, TNN_AREA, TNN_LANCZOS };

typedef struct tnn_resize { /* an image of in[0] x in[1] pixels becomes one of out[0] x out[1] */
    int32_t in[2], out[2];
    int interp;
} tnn_resize;

/* The part of the image that these pixels of the result are made of. */
tnn_rect tnn_resize_needs(const tnn_resize *r, const tnn_rect *result);
/* to->at of the result, from a `from` that has what this needs. False: out of memory. */
bool tnn_resize_run(const tnn_resize *r, const tnn_pixels *from, const tnn_pixels *to);

/* Pixel (x, y) of the whole image `from` goes to m (x, y, 1); what comes from outside is `fill`. */
void tnn_warp(const tnn_pixels *from, const float m[6], uint8_t fill, const tnn_pixels *to);
/* The whole image `from` in `to`, `fill` around it. */
void tnn_border(const tnn_pixels *from, int32_t left, int32_t top, uint8_t fill, const tnn_pixels *to);
/* Left and right are changed over. */
void tnn_mirror(const tnn_pixels *p);

/* Of red, green, blue; others are left as they are. */
void tnn_brightness(const tnn_pixels *p, float alpha);
void tnn_contrast(const tnn_pixels *p, float alpha);
void tnn_saturation(const tnn_pixels *p, float alpha);
void tnn_hls(const tnn_pixels *p, int h, int l, int s); /* added in 180 steps of hue, 255 of both others */
void tnn_add(const tnn_pixels *p, const float colours[3]);

#endif

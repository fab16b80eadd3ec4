/* Images as rows of bytes, (height, width, channels): turns and colours, as OpenCV computes them. */
#ifndef TN_NN_PIXELS_H
#define TN_NN_PIXELS_H

#include "../plugins/common/pixels.h"

/* Pixel (x, y) of the whole image `from` goes to m (x, y, 1); what comes from outside is `fill`. */
void tnn_warp(const tnb_pixels *from, const float m[6], uint8_t fill, const tnb_pixels *to);
/* The whole image `from` in `to`, `fill` around it. */
void tnn_border(const tnb_pixels *from, int32_t left, int32_t top, uint8_t fill, const tnb_pixels *to);
/* Left and right are changed over. */
void tnn_mirror(const tnb_pixels *p);

/* Of red, green, blue; others are left as they are. */
void tnn_brightness(const tnb_pixels *p, float alpha);
void tnn_contrast(const tnb_pixels *p, float alpha);
void tnn_saturation(const tnb_pixels *p, float alpha);
void tnn_hls(const tnb_pixels *p, int h, int l, int s); /* added in 180 steps of hue, 255 of both others */
void tnn_add(const tnb_pixels *p, const float colours[3]);

#endif

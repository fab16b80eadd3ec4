/* Images as rows of bytes, (height, width, channels), and their resizing (pixels.inc): of nn and the plugin
 * image. */
#ifndef TNB_PIXELS_H
#define TNB_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tnb_rect {
    int32_t x, y, width, height;
} tnb_rect;

typedef struct tnb_pixels { /* a part of an image: that of `at`, of one of width x height */
    uint8_t *data;
    int64_t stride;
    int32_t channels, width, height;
    tnb_rect at;
} tnb_pixels;

enum { TNB_NEAREST, TNB_LINEAR, TNB_CUBIC, TNB_AREA, TNB_LANCZOS };

typedef struct tnb_resize { /* an image of in[0] x in[1] pixels becomes one of out[0] x out[1] */
    int32_t in[2], out[2];
    int interp;
} tnb_resize;

/* The part of the image that these pixels of the result are made of. */
tnb_rect tnb_resize_needs(const tnb_resize *r, const tnb_rect *result);
/* Bytes of memory that tnb_resize_run takes for a result of `width` columns. */
size_t tnb_resize_bytes(int32_t width, int32_t channels);
/* to->at of the result, from a `from` that has the pixels which it needs; a row has at most INT32_MAX bytes.
 * False: out of memory. */
bool tnb_resize_run(const tnb_resize *r, const tnb_pixels *from, const tnb_pixels *to);

#endif

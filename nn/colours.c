/* Turns and colours of images in bytes, with the arithmetic of OpenCV, as MXNet's augmenter calls it. */
#include "pixels.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- turns ---- */

#define PLACE_BITS 10 /* of a place, */
#define PART_BITS 5   /* of which so many choose the weights */
#define PARTS (1 << PART_BITS)

static int64_t fixed(double v)
{
    v *= 1 << PLACE_BITS;
    return v <= INT32_MIN ? INT32_MIN : v >= INT32_MAX ? INT32_MAX : (int64_t)rint(v);
}

/* Between four pixels at (x, y) / PARTS; those outside are `fill`. */
static void pixel_between(const tnb_pixels *from, int64_t x, int64_t y, uint8_t fill, uint8_t *out)
{
    const int64_t column = x >> PART_BITS, row = y >> PART_BITS;
    const int32_t a = (int32_t)(x & (PARTS - 1)), b = (int32_t)(y & (PARTS - 1));
    const int32_t weights[] = {(PARTS - b) * (PARTS - a), (PARTS - b) * a, b * (PARTS - a), b * a};
    int32_t sums[4] = {0};

    for (int k = 0; k < 4; k++) {
        const int64_t at = column + k % 2, line = row + k / 2;
        const bool inside = at >= 0 && at < from->width && line >= 0 && line < from->height;
        const uint8_t *p = inside ? from->data + line * from->stride + at * from->channels : NULL;

        for (int32_t c = 0; c < from->channels; c++)
            sums[c] += weights[k] * (p ? p[c] : fill);
    }
    for (int32_t c = 0; c < from->channels; c++)
        out[c] = (uint8_t)((sums[c] + PARTS * PARTS / 2) >> 2 * PART_BITS);
}

void tnn_warp(const tnb_pixels *from, const float m[6], uint8_t fill, const tnb_pixels *to)
{
    const double d = (double)m[0] * (double)m[4] - (double)m[1] * (double)m[3], by = d != 0 ? 1 / d : 0;
    const double a = (double)m[4] * by, b = (double)m[1] * -by, c = (double)m[3] * -by, e = (double)m[0] * by;
    const double left = -a * (double)m[2] - b * (double)m[5], top = -c * (double)m[2] - e * (double)m[5];
    const int64_t round = (1 << PLACE_BITS) / PARTS / 2;

    for (int32_t y = 0; y < to->height; y++) {
        const int64_t x0 = fixed(b * y + left) + round, y0 = fixed(e * y + top) + round;

        for (int32_t x = 0; x < to->width; x++)
            pixel_between(from, (x0 + fixed(a * x)) >> (PLACE_BITS - PART_BITS),
                          (y0 + fixed(c * x)) >> (PLACE_BITS - PART_BITS), fill,
                          to->data + y * to->stride + x * to->channels);
    }
}

void tnn_border(const tnb_pixels *from, int32_t left, int32_t top, uint8_t fill, const tnb_pixels *to)
{
    for (int32_t y = 0; y < to->height; y++)
        memset(to->data + y * to->stride, fill, (size_t)(to->width * to->channels));
    for (int32_t y = 0; y < from->height; y++)
        memcpy(to->data + (top + y) * to->stride + left * to->channels, from->data + y * from->stride,
               (size_t)(from->width * from->channels));
}

void tnn_mirror(const tnb_pixels *p)
{
    for (int32_t y = 0; y < p->height; y++)
        for (int32_t x = 0; x < p->width / 2; x++)
            for (int32_t c = 0; c < p->channels; c++) {
                uint8_t *one = p->data + y * p->stride + x * p->channels + c;
                uint8_t *other = one + (p->width - 1 - 2 * x) * p->channels, kept = *one;

                *one = *other;
                *other = kept;
            }
}

/* ---- colours ---- */

static uint8_t byte_of(float v)
{
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)lrintf(v);
}

/* MXNet takes its BGR images for RGB here: blue has the weight of red. */
static int32_t grey_of(const uint8_t *p, int32_t channels)
{
    return channels < 3 ? p[0] : (4899 * p[2] + 9617 * p[1] + 1868 * p[0] + 8192) >> 14;
}

#define EACH_PIXEL(p, at)                                                                                    \
    for (int32_t y_ = 0; y_ < (p)->at.height; y_++)                                                          \
        for (uint8_t *at = (p)->data + y_ * (p)->stride, *end_ = at + (p)->at.width * (p)->channels;         \
             at < end_; at += (p)->channels)

static void linear(const tnb_pixels *p, float alpha, float beta)
{
    EACH_PIXEL(p, at)
    for (int32_t c = 0; c < p->channels; c++)
        at[c] = byte_of((float)at[c] * alpha + beta);
}

void tnn_brightness(const tnb_pixels *p, float alpha)
{
    linear(p, alpha, 0);
}

void tnn_contrast(const tnb_pixels *p, float alpha)
{
    int64_t sum = 0;

    EACH_PIXEL(p, at)
    sum += grey_of(at, p->channels);
    linear(p, alpha, (1 - alpha) * (float)((double)sum / ((double)p->at.width * p->at.height)));
}

void tnn_saturation(const tnb_pixels *p, float alpha)
{
    EACH_PIXEL(p, at)
    {
        const float grey = (float)grey_of(at, p->channels);

        for (int32_t c = 0; c < p->channels; c++)
            at[c] = byte_of((float)at[c] * alpha + grey * (1 - alpha));
    }
}

/* Hue in 180 steps, lightness and saturation in 255, rounded. */
static void hls_of(const uint8_t *p, int *out)
{
    const float r = (float)p[0] * (1.f / 255), g = (float)p[1] * (1.f / 255), b = (float)p[2] * (1.f / 255);
    const float max = fmaxf(fmaxf(r, g), b), min = fminf(fminf(r, g), b), l = (max + min) * 0.5f;
    float h = 0, s = 0, range = max - min;

    if (range > FLT_EPSILON) {
        s = l < 0.5f ? range / (max + min) : range / (2 - max - min);
        range = 60 / range;
        h = max == r ? (g - b) * range : max == g ? (b - r) * range + 120 : (r - g) * range + 240;
        h = h < 0 ? h + 360 : h;
    }
    out[0] = byte_of(h * 0.5f);
    out[1] = byte_of(l * 255);
    out[2] = byte_of(s * 255);
}

static void hls_back(const int *from, uint8_t *p)
{
    static const int sectors[][3] = {{1, 3, 0}, {1, 0, 2}, {3, 0, 1}, {0, 2, 1}, {0, 1, 3}, {2, 1, 0}};
    const float l = (float)from[1] * (1.f / 255), s = (float)from[2] * (1.f / 255);
    const float p2 = l <= 0.5f ? l * (1 + s) : l + s - l * s, p1 = 2 * l - p2;
    float h = (float)from[0] * (6.f / 180), tab[4];
    int sector;

    while (h >= 6)
        h -= 6;
    sector = (int)h;
    h -= (float)sector;
    tab[0] = p2;
    tab[1] = p1;
    tab[2] = p1 + (p2 - p1) * (1 - h);
    tab[3] = p1 + (p2 - p1) * h;
    for (int c = 0; c < 3; c++)
        p[2 - c] = byte_of((from[2] ? tab[sectors[sector][c]] : l) * 255);
}

void tnn_hls(const tnb_pixels *p, int h, int l, int s)
{
    const int add[] = {h, l, s}, limit[] = {180, 255, 255};
    int v[3];

    if (p->channels < 3)
        return;
    EACH_PIXEL(p, at)
    {
        hls_of(at, v);
        for (int c = 0; c < 3; c++) {
            v[c] += add[c];
            v[c] = v[c] < 0 ? 0 : v[c] > limit[c] ? limit[c] : v[c];
        }
        hls_back(v, at);
    }
}

void tnn_add(const tnb_pixels *p, const float colours[3])
{
    EACH_PIXEL(p, at)
    for (int32_t c = 0; c < p->channels && c < 3; c++) {
        const int v = (int)((float)at[c] + colours[c]);

        at[c] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/*
 * Resizing bytes with the arithmetic of OpenCV: weights are multiples of 1 / 2048, sums whole numbers; areas
 * are summed in float32. Only what a part of the result needs is read and computed.
 */
#include "pixels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TAPS_MAX 8
#define UNIT 2048
#define PI 3.1415926535897932

/* Where one pixel of the result reads along an axis. */
typedef struct taps {
    int32_t at[TAPS_MAX]; /* pixels, cut to the image; of an area the first one */
    int16_t weight[TAPS_MAX];
    int32_t count; /* of an area */
    float first, middle, last;
} taps;

enum { FIXED, AREA, AREA_WHOLE, NEAREST }; /* ways; AREA_WHOLE: the scales are whole numbers */

typedef struct plan {
    int way, kernel; /* taps */
    bool up;         /* an area that becomes larger: linear, but pixels keep theirs */
    int32_t whole[2];
} plan;

static double scale_of(const tnn_resize *r, int axis)
{
    return 1 / ((double)r->out[axis] / r->in[axis]);
}

static plan plan_of(const tnn_resize *r)
{
    static const int kernels[] = {1, 2, 4, 2, 8};
    const double sx = scale_of(r, 0), sy = scale_of(r, 1);
    const bool whole = fabs(sx - rint(sx)) < DBL_EPSILON && fabs(sy - rint(sy)) < DBL_EPSILON;
    const bool half = whole && rint(sx) == 2 && rint(sy) == 2;
    plan p = {FIXED, kernels[r->interp], false, {(int32_t)rint(sx), (int32_t)rint(sy)}};

    if (r->interp == TNN_NEAREST)
        p.way = NEAREST;
    else if ((r->interp == TNN_AREA && sx >= 1 && sy >= 1) || (r->interp == TNN_LINEAR && half))
        p.way = whole ? AREA_WHOLE : AREA;
    else
        p.up = r->interp == TNN_AREA;
    return p;
}

static int32_t cut(int32_t at, int32_t size)
{
    return at < 0 ? 0 : at < size ? at : size - 1;
}

static void lanczos(float x, float *w)
{
    static const double turn[][2] = {{1, 0},  {-M_SQRT1_2, -M_SQRT1_2}, {0, 1},  {M_SQRT1_2, -M_SQRT1_2},
                                     {-1, 0}, {M_SQRT1_2, M_SQRT1_2},   {0, -1}, {-M_SQRT1_2, M_SQRT1_2}};
    const double y0 = -((double)x + 3) * PI * 0.25, s0 = sin(y0), c0 = cos(y0);
    float sum = 0;

    if (x < FLT_EPSILON) {
        memset(w, 0, TAPS_MAX * sizeof *w);
        w[3] = 1;
        return;
    }
    for (int i = 0; i < TAPS_MAX; i++) {
        const double y = -((double)x + 3 - i) * PI * 0.25;

        w[i] = (float)((turn[i][0] * s0 + turn[i][1] * c0) / (y * y));
        sum += w[i];
    }
    for (int i = 0; i < TAPS_MAX; i++)
        w[i] *= 1 / sum;
}

static void weights_of(float f, int kernel, float *w)
{
    const float a = -0.75f;

    if (kernel == TAPS_MAX) {
        lanczos(f, w);
    } else if (kernel == 4) {
        w[0] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
        w[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
        w[2] = ((a + 2) * (1 - f) - (a + 3)) * (1 - f) * (1 - f) + 1;
        w[3] = 1.f - w[0] - w[1] - w[2];
    } else {
        w[0] = 1.f - f;
        w[1] = f;
    }
}

/* The pixels that overlap [o, o + 1) * scale, and how much of it the first, the last and the others are. */
static void area_taps(int32_t o, double scale, int32_t in, taps *t)
{
    const double begin = o * scale, end = begin + scale, width = fmin(scale, in - begin);
    int32_t a = (int32_t)ceil(begin), b = (int32_t)fmin(floor(end), in - 1);
    double before, behind;

    a = a < b ? a : b;
    before = a - begin;
    behind = end - b;
    t->at[0] = before > 1e-3 ? a - 1 : a;
    t->middle = t->first = t->last = (float)(1 / width);
    if (before > 1e-3)
        t->first = (float)(before / width);
    t->count = b - t->at[0];
    if (behind > 1e-3) {
        t->count++;
        t->last = (float)(fmin(fmin(behind, 1), scale) / width);
    }
}

static void taps_of(const tnn_resize *r, const plan *p, int axis, int32_t o, taps *t)
{
    const double scale = scale_of(r, axis);
    float f = (float)((o + 0.5) * scale - 0.5), w[TAPS_MAX];
    int32_t at = (int32_t)floorf(f);

    if (p->way == NEAREST) {
        t->at[0] = cut((int32_t)floor(o * scale), r->in[axis]);
    } else if (p->way == AREA) {
        area_taps(o, scale, r->in[axis], t);
    } else if (p->way == AREA_WHOLE) {
        t->at[0] = o * p->whole[axis];
        t->count = p->whole[axis];
    } else {
        f -= (float)at;
        if (p->up) {
            at = (int32_t)floor(o * scale);
            f = (float)((o + 1) - (at + 1) / scale);
            f = f <= 0 ? 0 : f - floorf(f);
        }
        weights_of(f, p->kernel, w);
        for (int k = 0; k < p->kernel; k++) {
            t->at[k] = cut(at + k + 1 - p->kernel / 2, r->in[axis]);
            t->weight[k] = (int16_t)lrintf(w[k] * UNIT);
        }
    }
}

static void needs_along(const tnn_resize *r, const plan *p, int axis, int32_t first, int32_t count,
                        int32_t *begin, int32_t *end)
{
    taps a, b;

    taps_of(r, p, axis, first, &a);
    taps_of(r, p, axis, first + count - 1, &b);
    *begin = a.at[0];
    *end = 1 + (p->way == AREA || p->way == AREA_WHOLE ? b.at[0] + b.count - 1
                                                       : b.at[p->way == NEAREST ? 0 : p->kernel - 1]);
}

tnn_rect tnn_resize_needs(const tnn_resize *r, const tnn_rect *result)
{
    const plan p = plan_of(r);
    int32_t begin[2], end[2];

    needs_along(r, &p, 0, result->x, result->width, &begin[0], &end[0]);
    needs_along(r, &p, 1, result->y, result->height, &begin[1], &end[1]);
    return (tnn_rect){begin[0], begin[1], end[0] - begin[0], end[1] - begin[1]};
}

static const uint8_t *row_at(const tnn_pixels *p, int32_t y)
{
    return p->data + (y - p->at.y) * p->stride;
}

/* ---- nearest, areas ---- */

static void nearest_row(const taps *columns, const uint8_t *row, const tnn_pixels *to, uint8_t *out)
{
    for (int32_t i = 0; i < to->at.width; i++)
        memcpy(out + i * to->channels, row + columns[i].at[0] * to->channels, (size_t)to->channels);
}

static uint8_t byte_of(float v)
{
    return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)lrintf(v);
}

/* One pixel's channel: row by row, in float32. */
static float area_sum(const taps *column, const taps *line, const tnn_pixels *from, int32_t c)
{
    float sum = 0;

    for (int32_t y = 0; y < line->count; y++) {
        const uint8_t *at = row_at(from, line->at[0] + y) + column->at[0] * from->channels + c;
        const float w = y == 0 ? line->first : y == line->count - 1 ? line->last : line->middle;
        float row = 0;

        for (int32_t x = 0; x < column->count; x++, at += from->channels)
            row += (float)*at * (x == 0                   ? column->first
                                 : x == column->count - 1 ? column->last
                                                          : column->middle);
        sum += w * row;
    }
    return sum;
}

static uint8_t area_whole(const taps *column, const taps *line, const tnn_pixels *from, int32_t c)
{
    const int32_t area = column->count * line->count;
    int32_t sum = 0;

    for (int32_t y = 0; y < line->count; y++) {
        const uint8_t *at = row_at(from, line->at[0] + y) + column->at[0] * from->channels + c;

        for (int32_t x = 0; x < column->count; x++, at += from->channels)
            sum += *at;
    }
    return area == 4 && column->count == 2 ? (uint8_t)((sum + 2) >> 2)
                                           : byte_of((float)sum * (1.f / (float)area));
}

static void area_row(int way, const taps *columns, const taps *line, const tnn_pixels *from,
                     const tnn_pixels *to, uint8_t *out)
{
    for (int32_t i = 0; i < to->at.width; i++)
        for (int32_t c = 0; c < to->channels; c++)
            out[i * to->channels + c] = way == AREA ? byte_of(area_sum(&columns[i], line, from, c))
                                                    : area_whole(&columns[i], line, from, c);
}

/* ---- weights ---- */

/* One row of the image, of the result's width, times UNIT. */
static inline void columns_each(const taps *t, int kernel, int32_t channels, int32_t width,
                                const uint8_t *row, int32_t *out)
{
    for (int32_t i = 0; i < width; i++, t++, out += channels) {
        const uint8_t *p = row + t->at[0] * channels, *q = row + t->at[1] * channels;

        for (int32_t c = 0; c < channels; c++)
            out[c] = p[c] * t->weight[0] + q[c] * t->weight[1];
        for (int k = 2; k < kernel; k++)
            for (int32_t c = 0; c < channels; c++)
                out[c] += row[t->at[k] * channels + c] * t->weight[k];
    }
}

static void columns_sum(const taps *columns, int kernel, const uint8_t *row, const tnn_pixels *to,
                        int32_t *out)
{
    if (kernel == 2 && to->channels == 3) /* by far the most usual: the compiler knows the numbers */
        columns_each(columns, 2, 3, to->at.width, row, out);
    else
        columns_each(columns, kernel, to->channels, to->at.width, row, out);
}

/* OpenCV's linear rows lose bits on the way. */
static void linear_rows(const int32_t *a, const int32_t *b, const int16_t *w, int32_t count, uint8_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t v = (((w[0] * (a[i] >> 4)) >> 16) + ((w[1] * (b[i] >> 4)) >> 16) + 2) >> 2;

        out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/* OpenCV's cubic rows, eight numbers at a time, are summed in float32. */
static void cubic_rows(int32_t *const *rows, const int16_t *w, int32_t count, uint8_t *out)
{
    const float unit = 1.f / (UNIT * UNIT);
    const float b[] = {(float)w[0] * unit, (float)w[1] * unit, (float)w[2] * unit, (float)w[3] * unit};

    for (int32_t i = 0; i < count; i++)
        out[i] = byte_of((float)rows[0][i] * b[0] + (float)rows[1][i] * b[1] + (float)rows[2][i] * b[2] +
                         (float)rows[3][i] * b[3]);
}

/* From number `begin` on. */
static void rows_sum(int32_t *const *rows, const int16_t *w, int kernel, int32_t begin, int32_t count,
                     uint8_t *out)
{
    for (int32_t i = begin; i < count; i++) {
        int64_t v = UNIT * UNIT / 2;

        for (int k = 0; k < kernel; k++)
            v += (int64_t)rows[k][i] * w[k];
        v >>= 22;
        out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

typedef struct kept { /* rows that were summed, by their number in the image */
    int32_t number[TAPS_MAX];
    int32_t *rows[TAPS_MAX];
} kept;

/* The row's sum: one that is kept, or computed in the place of one that `line` does not need. */
static int32_t *row_kept(kept *k, const taps *columns, const taps *line, const plan *p,
                         const tnn_pixels *from, const tnn_pixels *to, int32_t y)
{
    int slot = 0;

    for (int i = 0; i < p->kernel; i++)
        if (k->number[i] == y)
            return k->rows[i];
    for (int i = 0; i < p->kernel; i++) {
        bool needed = false;

        for (int j = 0; j < p->kernel; j++)
            needed |= k->number[i] == line->at[j];
        if (!needed)
            slot = i;
    }
    k->number[slot] = y;
    columns_sum(columns, p->kernel, row_at(from, y), to, k->rows[slot]);
    return k->rows[slot];
}

static void fixed_rows(const tnn_resize *r, const plan *p, const taps *columns, const tnn_pixels *from,
                       const tnn_pixels *to, int32_t *room)
{
    const int32_t count = to->at.width * to->channels, left = to->at.x * to->channels;
    const int32_t eights = to->width * to->channels / 8 * 8 - left; /* of the whole row */
    const int32_t whole = eights < 0 ? 0 : eights < count ? eights : count;
    kept k;
    taps line;

    for (int i = 0; i < p->kernel; i++) {
        k.number[i] = -1;
        k.rows[i] = room + (size_t)i * (size_t)count;
    }
    for (int32_t y = 0; y < to->at.height; y++) {
        int32_t *rows[TAPS_MAX];

        taps_of(r, p, 1, to->at.y + y, &line);
        for (int i = 0; i < p->kernel; i++)
            rows[i] = row_kept(&k, columns, &line, p, from, to, line.at[i]);
        if (p->kernel == 2)
            linear_rows(rows[0], rows[1], line.weight, count, to->data + y * to->stride);
        if (p->kernel == 4)
            cubic_rows(rows, line.weight, whole, to->data + y * to->stride);
        if (p->kernel > 2)
            rows_sum(rows, line.weight, p->kernel, p->kernel == 4 ? whole : 0, count,
                     to->data + y * to->stride);
    }
}

bool tnn_resize_run(const tnn_resize *r, const tnn_pixels *from, const tnn_pixels *to)
{
    const plan p = plan_of(r);
    const size_t width = (size_t)to->at.width, row = width * (size_t)to->channels * sizeof(int32_t);
    taps *columns = malloc(width * sizeof *columns + TAPS_MAX * row), line;

    if (!columns)
        return false;
    for (size_t i = 0; i < width; i++) {
        columns[i] = (taps){.count = 0};
        taps_of(r, &p, 0, to->at.x + (int32_t)i, &columns[i]);
        for (int k = 0; k < TAPS_MAX; k++) /* within what is there of the image */
            columns[i].at[k] -= from->at.x;
    }
    if (p.way == FIXED)
        fixed_rows(r, &p, columns, from, to, (int32_t *)(void *)(columns + width));
    for (int32_t y = 0; p.way != FIXED && y < to->at.height; y++) {
        uint8_t *out = to->data + y * to->stride;

        taps_of(r, &p, 1, to->at.y + y, &line);
        if (p.way == NEAREST)
            nearest_row(columns, row_at(from, line.at[0]), to, out);
        else
            area_row(p.way, columns, &line, from, to, out);
    }
    free(columns);
    return true;
}

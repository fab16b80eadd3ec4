/*
 * Sums over all samples and pixels of each channel, in the order of memory that a tensor has. The library
 * adds in float, one after the other, where the error grows with the number of pixels; here a few pixels are
 * added so, then the sum goes on in double. One thread adds a channel of a sample, so no bit depends on
 * threads.
 */
#include "onednn.h"

#define RUN 32 /* pixels that are added in float */
#define WIDE TNDNN_LANES

bool tndnn_channels_of(const tndnn_md *md, tndnn_channels *c)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    const int64_t channels = md->dims[1], lanes = b->inner_nblks ? b->inner_blks[0] : 1;
    const bool last = !b->inner_nblks && b->strides[1] == 1;
    int64_t step = last ? channels : lanes;

    if (md->format_kind != dnnl_blocked || b->inner_nblks > 1 || lanes > WIDE ||
        (b->inner_nblks && b->inner_idxs[0] != 1))
        return false;
    *c = (tndnn_channels){.samples = md->dims[0], .channels = channels, .pixels = tndnn_md_count(md, 2)};
    c->lanes = last ? WIDE : lanes;
    c->blocks = tncpu_ceil_div(channels, c->lanes);
    c->padded = b->inner_nblks > 0;
    c->pixel = step;
    c->sample = b->strides[0];
    c->block = last ? WIDE : b->strides[1];
    for (int k = md->ndims; k-- > 2; step *= md->dims[k])
        if (md->dims[k] > 1 && b->strides[k] != step)
            return false;
    return true;
}

uint64_t tndnn_channels_bytes(const tndnn_channels *c)
{
    return (uint64_t)(c->samples * c->blocks * 2 * c->lanes) * sizeof(double);
}

/* sum += a - s, product += (a - s) (b - t) for `lanes` floats at each of `count` places. */
static inline void lanes_add(const float *a, const float *b, const float *s, const float *t, int64_t step,
                             int64_t count, int64_t lanes, double *sum, double *product)
{
    for (int64_t i = 0; i < count; i += RUN) {
        const int64_t end = tncpu_min(count, i + RUN);
        float sums[WIDE] = {0}, products[WIDE] = {0};

        for (int64_t p = i; p < end; p++)
            for (int64_t k = 0; k < lanes; k++) {
                const float u = a[p * step + k] - s[k];

                sums[k] += u;
                products[k] += u * (b[p * step + k] - t[k]);
            }
        for (int64_t k = 0; k < lanes; k++) {
            sum[k] += (double)sums[k];
            product[k] += (double)products[k];
        }
    }
}

static void places_add(const float *a, const float *b, const float *s, const float *t, int64_t step,
                       int64_t count, int64_t lanes, double *sum, double *product)
{
    if (lanes == WIDE)
        lanes_add(a, b, s, t, step, count, WIDE, sum, product);
    else if (lanes == WIDE / 2)
        lanes_add(a, b, s, t, step, count, WIDE / 2, sum, product);
    else
        lanes_add(a, b, s, t, step, count, lanes, sum, product);
}

/* One channel of one sample, its pixels side by side. */
static void row_add(const float *a, const float *b, float s, float t, int64_t count, double *room)
{
    const int64_t whole = count / WIDE * WIDE;
    double sum[WIDE] = {0}, product[WIDE] = {0};
    float shift[WIDE], other[WIDE];

    for (int k = 0; k < WIDE; k++) {
        shift[k] = s;
        other[k] = t;
    }
    places_add(a, b, shift, other, WIDE, count / WIDE, WIDE, sum, product);
    places_add(a + whole, b + whole, shift, other, 0, whole < count, count - whole, sum, product);
    room[0] = room[1] = 0;
    for (int k = 0; k < WIDE; k++) {
        room[0] += sum[k];
        room[1] += product[k];
    }
}

/* Task `i` is a block of channels of one sample. */
static int64_t task_lanes(const tndnn_channels *c, int64_t i)
{
    return tncpu_min(c->lanes, c->channels - i / c->samples * c->lanes);
}

static int64_t task_at(const tndnn_channels *c, int64_t i)
{
    return i % c->samples * c->sample + i / c->samples * c->block;
}

static void task_add(const tndnn_channels *c, int64_t i, const float *a, const float *b, const float *s,
                     const float *t, double *room)
{
    static const float zero[WIDE];
    const int64_t first = i / c->samples * c->lanes, lanes = task_lanes(c, i);

    a += task_at(c, i);
    b += task_at(c, i);
    s = s ? s + first : zero;
    t = t ? t + first : zero;
    if (c->lanes == 1) {
        row_add(a, b, *s, *t, c->pixels, room);
        return;
    }
    memset(room, 0, (size_t)(2 * c->lanes) * sizeof *room);
    places_add(a, b, s, t, c->pixel, c->pixels, lanes, room, room + c->lanes);
}

void tndnn_channels_sum(const tndnn_channels *c, const float *a, const float *b, const float *s,
                        const float *t, int threads, double *room)
{
    const int64_t tasks = c->blocks * c->samples, each = 2 * c->lanes;

#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < tasks; i++)
        task_add(c, i, a, b, s, t, room + i * each);
    for (int64_t i = 0; i < tasks; i++) /* into those of the first sample */
        for (int64_t k = 0; i % c->samples && k < each; k++)
            room[i / c->samples * c->samples * each + k] += room[i * each + k];
}

double tndnn_channel_sum(const tndnn_channels *c, const double *room, int64_t channel, int which)
{
    const int64_t block = channel / c->lanes;

    return room[block * c->samples * 2 * c->lanes + which * c->lanes + channel % c->lanes];
}

/* y = a·scale + (b - mean)·factor + bias */
static inline void lanes_map(const float *a, const float *b, const tndnn_channel_map *m, int64_t step,
                             int64_t count, int64_t lanes, float *restrict y)
{
    for (int64_t p = 0; p < count * step; p += step)
        for (int64_t k = 0; k < lanes; k++)
            y[p + k] = a[p + k] * m->scale[k] + ((b[p + k] - m->mean[k]) * m->factor[k] + m->bias[k]);
}

static void row_map(const float *a, const float *b, const tndnn_channel_map *m, int64_t count,
                    float *restrict y)
{
    const float scale = m->scale[0], mean = m->mean[0], factor = m->factor[0], bias = m->bias[0];

    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * scale + ((b[i] - mean) * factor + bias);
}

void tndnn_channels_map(const tndnn_channels *c, const float *a, const float *b,
                        const tndnn_channel_map *maps, int threads, float *y)
{
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < c->blocks * c->samples; i++) {
        const tndnn_channel_map *m = &maps[i / c->samples];
        const int64_t at = task_at(c, i), lanes = c->padded ? c->lanes : task_lanes(c, i);

        if (c->lanes == 1)
            row_map(a + at, b + at, m, c->pixels, y + at);
        else if (lanes == WIDE)
            lanes_map(a + at, b + at, m, c->pixel, c->pixels, WIDE, y + at);
        else if (lanes == WIDE / 2)
            lanes_map(a + at, b + at, m, c->pixel, c->pixels, WIDE / 2, y + at);
        else
            lanes_map(a + at, b + at, m, c->pixel, c->pixels, lanes, y + at);
    }
}

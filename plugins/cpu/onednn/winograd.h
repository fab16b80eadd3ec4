/*
 * Convolution of 3 x 3 pixels in Winograd's form, of our own, for processors with AVX2 and without AVX-512:
 * oneDNN 2 has that form for AVX-512 alone. Data and output have channels in blocks of 8, as the library's
 * kernels for AVX2.
 */
#ifndef TNDNN_WINOGRAD_H
#define TNDNN_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#define TNDNN_WINO_BLOCK 8  /* channels that lie together */
#define TNDNN_WINO_PANEL 16 /* filters that lie together in a weight */
#define TNDNN_WINO_CHUNK 4  /* panels whose products are made at a time */

/* A convolution; a tile is a square of output pixels, `side` high and wide, with the pixels that it reads. */
typedef struct tndnn_wino {
    int64_t batch, channels, filters; /* the last two: multiples of 8 */
    int64_t in[2], out[2], pad[2];    /* height and width */
    int64_t side;                     /* 2 or 4 */
    int64_t high, wide, tiles;        /* tiles of an image; of the batch */
    int64_t block, groups;            /* tiles transformed together, and how many such blocks at a time */
} tndnn_wino;

typedef struct tndnn_wino_call {
    const float *data, *weight; /* the weight as tndnn_wino_weight makes it */
    const float *bias, *addend; /* may be NULL; the addend lies as the output, and may be it */
    float *output;
    float low, high; /* limits of the output */
} tndnn_wino_call;

/* Floats of the transformed weight, of transformed data of all groups, and of one thread's products. */
static inline int64_t tndnn_wino_elements(int64_t side)
{
    return (side + 2) * (side + 2);
}

static inline int64_t tndnn_wino_panels(int64_t filters)
{
    return (filters + TNDNN_WINO_PANEL - 1) / TNDNN_WINO_PANEL;
}

/* Tiles from one element to the next: odd, so that elements do not share sets of a cache. */
static inline int64_t tndnn_wino_stride(const tndnn_wino *w)
{
    return w->block | 1;
}

static inline int64_t tndnn_wino_weight_floats(int64_t side, int64_t filters, int64_t channels)
{
    return tndnn_wino_elements(side) * tndnn_wino_panels(filters) * TNDNN_WINO_PANEL * channels;
}

static inline int64_t tndnn_wino_data_floats(const tndnn_wino *w)
{
    return tndnn_wino_elements(w->side) * w->channels * tndnn_wino_stride(w);
}

static inline int64_t tndnn_wino_product_floats(const tndnn_wino *w)
{
    return tndnn_wino_elements(w->side) * TNDNN_WINO_CHUNK * TNDNN_WINO_PANEL * tndnn_wino_stride(w);
}

/* `work`: data floats of each group, then product floats of each thread; aligned to 64 bytes. */
void tndnn_wino_run(const tndnn_wino *w, const tndnn_wino_call *c, float *work, int threads);

/* Rows (filters, channels, 3, 3) to the transformed weight. */
void tndnn_wino_weight(int64_t side, int64_t filters, int64_t channels, const float *from, float *to,
                       int threads);

#endif

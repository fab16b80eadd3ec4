/*
 * Which kernel of kernels/dense.inc makes a product, and of how many slices k is made. Both follow from the
 * sizes alone, so that the bits are the same on every GPU. The double of cuBLASLt sums in the same order.
 */
#ifndef TNCUDA_PRODUCT_H
#define TNCUDA_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#define TNCUDA_PRODUCT_FEW 4096          /* multiplications of what threads make by themselves */
#define TNCUDA_PRODUCT_LARGE_FROM 96     /* rows and columns from which tiles are large */
#define TNCUDA_PRODUCT_BLOCKS_WANTED 256 /* two for each unit of a large GPU, about */
#define TNCUDA_PRODUCT_SLICES_MOST 32

typedef struct tncuda_product_form {
    int32_t tile; /* 0: elements by themselves */
    int64_t slices, depth;
} tncuda_product_form;

static inline int64_t tncuda_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Slices of at least `least` of k that give the blocks that are wanted. */
static inline tncuda_product_form tncuda_sliced(int64_t blocks, int64_t k, int32_t tile, int64_t least)
{
    tncuda_product_form f = {.tile = tile, .slices = 1, .depth = k};
    int64_t slices = blocks < TNCUDA_PRODUCT_BLOCKS_WANTED / 2 ? TNCUDA_PRODUCT_BLOCKS_WANTED / blocks : 1;

    slices = slices < TNCUDA_PRODUCT_SLICES_MOST ? slices : TNCUDA_PRODUCT_SLICES_MOST;
    slices = slices < k / least ? slices : k / least;
    if (slices > 1) {
        f.depth = tncuda_ceil(tncuda_ceil(k, slices), 32) * 32;
        f.slices = tncuda_ceil(k, f.depth);
    }
    return f;
}

static inline tncuda_product_form tncuda_product_form_of(int64_t m, int64_t n, int64_t k, int64_t batch,
                                                         bool wide)
{
    const int64_t small = tncuda_ceil(m, 64) * tncuda_ceil(n, 64) * batch,
                  large = tncuda_ceil(m, 128) * tncuda_ceil(n, 128) * batch;
    tncuda_product_form f;

    if (k < 1 || (double)m * (double)n * (double)k * (double)batch <= TNCUDA_PRODUCT_FEW)
        return (tncuda_product_form){.slices = 1, .depth = k};
    if (!wide && m >= TNCUDA_PRODUCT_LARGE_FROM && n >= TNCUDA_PRODUCT_LARGE_FROM) {
        f = tncuda_sliced(large, k, 128, 256);
        if (large * f.slices >= TNCUDA_PRODUCT_BLOCKS_WANTED / 4)
            return f;
    }
    return tncuda_sliced(small, k, 64, 64);
}

#endif

/*
 * Products of matrices by kernels/dense.inc, for the operators that are one: which kernel makes them, and of
 * how many slices k is made. Both follow from the sizes alone, so that the bits are the same on every GPU.
 */
#include "launch.h"

#include <stdio.h>

#define FEW 4096          /* multiplications of what threads make by themselves */
#define LARGE_FROM 96     /* rows and columns from which tiles are large */
#define BLOCKS_WANTED 256 /* two for each unit of a large GPU, about */
#define SLICES_MOST 32

typedef struct product_form {
    int32_t tile; /* 0: elements by themselves */
    int64_t slices, depth;
} product_form;

static int64_t ceil_of(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Slices of at least `least` of k that give the blocks that are wanted. */
static product_form sliced(int64_t blocks, int64_t k, int32_t tile, int64_t least)
{
    product_form f = {.tile = tile, .slices = 1, .depth = k};
    int64_t slices = blocks < BLOCKS_WANTED / 2 ? BLOCKS_WANTED / blocks : 1;

    slices = tnb_least(tnb_least(slices, SLICES_MOST), k / least);
    if (slices > 1) {
        f.depth = ceil_of(ceil_of(k, slices), 32) * 32;
        f.slices = ceil_of(k, f.depth);
    }
    return f;
}

static product_form form_of(int64_t m, int64_t n, int64_t k, int64_t batch, int32_t dtype)
{
    const int64_t small = ceil_of(m, 64) * ceil_of(n, 64) * batch,
                  large = ceil_of(m, 128) * ceil_of(n, 128) * batch;
    product_form f;

    if (k < 1 || (double)m * (double)n * (double)k * (double)batch <= FEW)
        return (product_form){.slices = 1, .depth = k};
    if (dtype != TN_F64 && m >= LARGE_FROM && n >= LARGE_FROM) {
        f = sliced(large, k, 128, 256);
        if (large * f.slices >= BLOCKS_WANTED / 4)
            return f;
    }
    return sliced(small, k, 64, 64);
}

uint64_t tncuda_product_room(int64_t m, int64_t n, int64_t k, int64_t batch, int32_t dtype)
{
    const product_form f = form_of(m, n, k, batch, dtype);

    return f.slices > 1 ? (uint64_t)(f.slices * m * n * batch) * (dtype == TN_F64 ? 8 : 4) : 0;
}

static bool aligned(const void *data, int64_t step, int64_t batch_step)
{
    return (uintptr_t)data % 16 == 0 && step % 4 == 0 && batch_step % 4 == 0;
}

static int32_t packs_of(const tncuda_product_args *a, const void *data, int64_t row, int64_t col,
                        int64_t batch)
{
    return a->dtype != TN_F32 && a->dtype != TN_F64                   ? TNCUDA_PACKS_NONE
           : col == 1 && aligned(data, row, a->batch > 1 ? batch : 0) ? TNCUDA_PACKS_ROWS
           : row == 1 && aligned(data, col, a->batch > 1 ? batch : 0) ? TNCUDA_PACKS_COLUMNS
                                                                      : TNCUDA_PACKS_NONE;
}

tn_status tncuda_product(const tn_exec *x, tncuda_product_args *a, void *room, tn_err *err)
{
    product_form f = form_of(a->m, a->n, a->k, a->batch, a->dtype);
    const bool apart = room && f.slices > 1;
    char kernel[TNCUDA_NAME_BYTES];
    tn_status st;

    if (f.slices > 1 && !room)
        f.slices = 1;
    a->slices = f.slices;
    a->depth = apart ? f.depth : a->k;
    a->room = apart ? room : NULL;
    if (!f.tile) {
        (void)snprintf(kernel, sizeof kernel, "product_%s", tncuda_suffix(a->dtype));
        return tncuda_launch(x, "dense", kernel, a->m * a->n * a->batch, a, err);
    }
    a->packs_a = packs_of(a, a->a, a->a_row, a->a_col, a->a_batch);
    a->packs_b = packs_of(a, a->b, a->b_row, a->b_col, a->b_batch);
    a->packs_c = apart ? a->n % 4 == 0
                       : !a->add && packs_of(a, a->c, a->c_row, a->c_col, a->c_batch) == TNCUDA_PACKS_ROWS;
    (void)snprintf(kernel, sizeof kernel, "product_%d_%s", (int)f.tile, tncuda_suffix(a->dtype));
    st = tncuda_launch_blocks(x, "dense", kernel,
                              ceil_of(a->m, f.tile) * ceil_of(a->n, f.tile) * a->batch * a->slices, a, err);
    if (st || !apart)
        return st;
    (void)snprintf(kernel, sizeof kernel, "product_sum_%s", tncuda_suffix(a->dtype));
    return tncuda_launch(x, "dense", kernel, a->m * a->n * a->batch, a, err);
}

tn_status tncuda_columns(const tn_exec *x, const tncuda_columns_args *a, tn_err *err)
{
    char kernel[TNCUDA_NAME_BYTES];

    (void)snprintf(kernel, sizeof kernel, "columns_%s%s", a->inner == 1 ? "" : "long_",
                   tncuda_suffix(a->dtype));
    return tncuda_launch_blocks(x, "dense", kernel, a->inner == 1 ? ceil_of(a->n, 32) : a->n, a, err);
}

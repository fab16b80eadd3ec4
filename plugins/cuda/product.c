/* Products of matrices by kernels/dense.inc, for the operators that are one. */
#include "product.h"
#include "launch.h"

#include <stdio.h>

uint64_t tncuda_product_room(int64_t m, int64_t n, int64_t k, int64_t batch, int32_t dtype)
{
    const tncuda_product_form f = tncuda_product_form_of(m, n, k, batch, dtype == TN_F64);

    return f.slices > 1 ? (uint64_t)(f.slices * m * n * batch) * tncuda_wide_bytes(dtype) : 0;
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

tn_status tncuda_product_plain(const tn_exec *x, const tncuda_product_args *args, void *room, tn_err *err)
{
    tncuda_product_args whole = *args, *const a = &whole;
    tncuda_product_form f = tncuda_product_form_of(a->m, a->n, a->k, a->batch, a->dtype == TN_F64);
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
                              tncuda_ceil(a->m, f.tile) * tncuda_ceil(a->n, f.tile) * a->batch * a->slices, a,
                              err);
    if (st || !apart)
        return st;
    (void)snprintf(kernel, sizeof kernel, "product_sum_%s", tncuda_suffix(a->dtype));
    return tncuda_launch(x, "dense", kernel, a->m * a->n * a->batch, a, err);
}

/* ---- sums of columns ----------------------------------------------------------------------------------- */

#define SUMS_BLOCKS_WANTED 512
#define SUMS_SLICES_MOST 256
#define SUMS_SLICE_STEP (TNCUDA_THREADS * 8) /* elements: a pack for each thread */

/* `slices` and `depth`: about as many blocks as are wanted, of at least `least`, multiples of `step`. */
static void columns_sliced(tncuda_columns_args *a, int64_t blocks, int64_t each, int64_t least, int64_t step)
{
    int64_t slices =
        tnb_least(tnb_least(tncuda_ceil(SUMS_BLOCKS_WANTED, blocks), each / least), SUMS_SLICES_MOST);

    slices = slices < 1 ? 1 : slices;
    a->depth = tncuda_ceil(tncuda_ceil(each, slices), step) * step;
    a->slices = a->depth ? tncuda_ceil(each, a->depth) : 1;
    a->depth = a->depth ? a->depth : step;
}

/* Who sums what: from sizes and type alone, so that the bits are the same on every GPU. */
static tncuda_columns_args columns_form(int64_t outer, int64_t n, int64_t inner, int32_t dtype)
{
    tncuda_columns_args a = {.outer = outer, .n = n, .inner = inner, .slices = 1, .depth = 1, .lanes = 1};
    const int64_t side = inner == 1 ? n : inner, each = outer * inner;

    a.dtype = dtype;
    a.pack = dtype == TN_F64 || side % 4 ? 1 : side % 8 ? 4 : 8;
    if (n < 1)
        return a;
    if (inner != 1) {
        if (inner > 0 && inner <= INT32_MAX)
            a.by_inner = tncuda_divisor_of(inner);
        columns_sliced(&a, tncuda_ceil(n, 2), each, SUMS_SLICE_STEP, SUMS_SLICE_STEP);
        return a;
    }
    while (a.lanes < 32 && a.lanes * a.pack < n)
        a.lanes *= 2;
    columns_sliced(&a, tncuda_ceil(n, a.lanes * a.pack), each, 4 * (TNCUDA_THREADS / a.lanes),
                   TNCUDA_THREADS / a.lanes);
    return a;
}

uint64_t tncuda_bias_back_room(int64_t outer, int64_t n, int64_t inner, int32_t dtype)
{
    const tncuda_columns_args a = columns_form(outer, n, inner, dtype);

    return a.slices > 1 ? (uint64_t)(a.slices * n) * sizeof(double) : 0;
}

tn_status tncuda_bias_back(const tn_exec *x, uint32_t o, int64_t outer, int64_t n, int64_t inner, tn_err *err)
{
    tncuda_columns_args a = columns_form(outer, n, inner, x->in[0]->dtype);
    const int64_t blocks = inner == 1 ? tncuda_ceil(n, a.lanes * a.pack) : n;
    char kernel[TNCUDA_NAME_BYTES];
    tn_status st;

    if (x->modes[o] == TN_MODE_NONE)
        return TN_OK;
    a.x = x->in[0]->data;
    a.y = x->out[o]->data;
    a.room = x->workspace;
    a.aligned = (uintptr_t)a.x % 16 == 0;
    a.add = x->modes[o] == TN_MODE_ADD;
    (void)snprintf(kernel, sizeof kernel, "columns_%s%s", inner == 1 ? "" : "long_", tncuda_suffix(a.dtype));
    st = tncuda_launch_blocks(x, "dense", kernel, blocks * a.slices, &a, err);
    if (st || a.slices == 1)
        return st;
    (void)snprintf(kernel, sizeof kernel, "columns_end_%s", tncuda_suffix(a.dtype));
    return tncuda_launch_blocks(x, "dense", kernel, tncuda_ceil(n, 32), &a, err);
}

/*
 * Matrix products of the plain CPU kernels: picks the instruction set once, and brings every product to the
 * form in which the columns of c lie together.
 */
#include "../common/isa.h"
#include "gemm_isa.h"

#include "../common/gemm_tiles.inc"

#define NS_PER_FLOP 0.01 /* about 100 GFLOP/s */

uint64_t tncpu_gemm_bytes(int64_t m, int64_t n, int64_t k, int32_t dtype)
{
    const int64_t depth = tncpu_min(K_BLOCK, k), wide = tncpu_min(N_BLOCK, tncpu_max(m, n) + 31);
    const int64_t blocks = (M_BLOCK + ((wide + 31) & ~(int64_t)31)) * depth;

    return (uint64_t)tncpu_max(tncpu_max(blocks, k), 64) * tn_dtype_bytes(dtype);
}

tn_status tncpu_gemm_serves(int64_t largest, tn_err *err)
{
    (void)largest, (void)err;
    return TN_OK;
}

double tncpu_gemm_ns(int64_t m, int64_t n, int64_t k)
{
    return 100 + 2 * NS_PER_FLOP * (double)m * (double)n * (double)k;
}

int tncpu_gemm_begin(void)
{
    return 0;
}

void tncpu_gemm_end(int before)
{
    (void)before;
}

/* c = a b  <=>  c' = b' a' */
static tncpu_gemm turned(const tncpu_gemm *g)
{
    tncpu_gemm t = *g;

    t.a = g->b, t.b = g->a;
    t.m = g->n, t.n = g->m;
    t.a_row = g->b_col, t.a_col = g->b_row;
    t.b_row = g->a_col, t.b_col = g->a_row;
    t.c_row = g->c_col, t.c_col = g->c_row;
    return t;
}

static tncpu_gemm_fn *const products[TNCPU_ISAS][2] = {
    {tncpu_gemm_f32_base, tncpu_gemm_f64_base},
    {tncpu_gemm_f32_avx2, tncpu_gemm_f64_avx2},
    {tncpu_gemm_f32_avx512, tncpu_gemm_f64_avx512},
};

static void clear(const tncpu_gemm *g)
{
    const size_t size = tn_dtype_bytes(g->dtype);

    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            memset((char *)g->c + (size_t)(i * g->c_row + j * g->c_col) * size, 0, size);
}

void tncpu_gemm_one(const tncpu_gemm *g, void *work)
{
    tncpu_gemm t = *g;

    if (g->m <= 0 || g->n <= 0)
        return;
    if (g->k <= 0) {
        if (!g->add)
            clear(g);
        return;
    }
    if (g->m != 1 && (g->n == 1 || g->c_col != 1))
        t = turned(g);
    products[tncpu_isa()][g->dtype == TN_F64](&t, work);
}

/*
 * Matrix products by OpenBLAS, one thread per call: inside a team of OpenMP threads the library does not
 * start its own, and for code outside of one the number of threads is set to 1 and put back afterwards. Tiles
 * and the parts of a sum are cut by shape, so the bits do not depend on the number of threads.
 */
#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <stdbool.h>
#include <string.h>

#include "../common/gemm.h"
#include "openblas.h"

#include "../common/gemm_tiles.inc"

#define NS_PER_FLOP 0.005 /* about 200 GFLOP/s */

/* OpenBLAS 0.3.21 has kernels for small products on processors with AVX-512. To meet them, the longer side of
 * a product with at most FEW rows or columns is cut into runs, and the sum, along the memory of both, into
 * parts. Elsewhere such parts are multiplied vector by vector, if these are at most FEW_VECTORS. */
#define FEW 16
#define FEW_VECTORS 4
#define VECTOR_SUM 1024       /* elements: with SMALL_RUN rows they are read from a cache again */
#define SMALL_RUN 64          /* times FEW at most 1200: the library's bound on the elements of the result */
#define SMALL_SUM 4096        /* elements: with SMALL_RUN rows they fit the second-level cache */
#define SMALL_SUM_MIN 32      /* the library's bound on shorter ones */
#define SMALL_PRODUCT 1000000 /* the library's bound on m n k */

uint64_t tncpu_gemm_bytes(int64_t m, int64_t n, int64_t k, int32_t dtype)
{
    (void)m, (void)n, (void)k, (void)dtype;
    return 64; /* the library has its own */
}

tn_status tncpu_gemm_serves(int64_t largest, tn_err *err)
{
    if (largest > INT_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "an extent is larger than the library's integers");
    return tnblas_room(err);
}

double tncpu_gemm_ns(int64_t m, int64_t n, int64_t k)
{
    return 300 + 2 * NS_PER_FLOP * (double)m * (double)n * (double)k;
}

int tncpu_gemm_begin(void)
{
    const int before = omp_get_max_threads();

    omp_set_num_threads(1);
    return before;
}

void tncpu_gemm_end(int before)
{
    omp_set_num_threads(before);
}

typedef struct operand {
    enum CBLAS_TRANSPOSE trans;
    blasint step;
} operand;

/* Rows (`row` apart) of elements that lie together, or the transpose of that. */
static operand operand_of(int64_t rows, int64_t columns, int64_t row, int64_t col)
{
    if (col == 1 && (row >= columns || rows <= 1))
        return (operand){CblasNoTrans, (blasint)tncpu_max(row, tncpu_max(columns, 1))};
    return (operand){CblasTrans, (blasint)tncpu_max(col, tncpu_max(rows, 1))};
}

static void clear(const tncpu_gemm *g)
{
    const size_t size = tn_dtype_bytes(g->dtype);

    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++)
            memset((char *)g->c + (size_t)(i * g->c_row + j * g->c_col) * size, 0, size);
}

/* y (n) = x (k) · b (k, n): a product with one row. */
static void vector_product(const tncpu_gemm *g)
{
    const operand b = operand_of(g->k, g->n, g->b_row, g->b_col);
    const int plain = b.trans == CblasNoTrans;
    const enum CBLAS_TRANSPOSE trans = plain ? CblasTrans : CblasNoTrans; /* y = b' x */
    const blasint rows = (blasint)(plain ? g->k : g->n), columns = (blasint)(plain ? g->n : g->k);

    if (g->dtype == TN_F32)
        cblas_sgemv(CblasRowMajor, trans, rows, columns, 1, g->b, b.step, g->a, (blasint)g->a_col,
                    g->add ? 1 : 0, g->c, (blasint)g->c_col);
    else
        cblas_dgemv(CblasRowMajor, trans, rows, columns, 1, g->b, b.step, g->a, (blasint)g->a_col,
                    g->add ? 1 : 0, g->c, (blasint)g->c_col);
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

static bool small_kernels(void)
{
    static const char *const names[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *name = openblas_get_corename();

    return !strcmp(name, names[0]) || !strcmp(name, names[1]) || !strcmp(name, names[2]);
}

static void product(const tncpu_gemm *g, operand a, operand b)
{
    if (g->dtype == TN_F32)
        cblas_sgemm(CblasRowMajor, a.trans, b.trans, (blasint)g->m, (blasint)g->n, (blasint)g->k, 1, g->a,
                    a.step, g->b, b.step, g->add ? 1 : 0, g->c, (blasint)g->c_row);
    else
        cblas_dgemm(CblasRowMajor, a.trans, b.trans, (blasint)g->m, (blasint)g->n, (blasint)g->k, 1, g->a,
                    a.step, g->b, b.step, g->add ? 1 : 0, g->c, (blasint)g->c_row);
}

/* Row by row, or column by column if these are fewer. */
static void vector_products(const tncpu_gemm *g)
{
    const int64_t size = (int64_t)tn_dtype_bytes(g->dtype);
    const tncpu_gemm t = g->m <= g->n ? *g : turned(g);

    for (int64_t i = 0; i < t.m; i++) {
        tncpu_gemm one = t;

        one.m = 1;
        one.a = (const char *)t.a + i * t.a_row * size;
        one.c = (char *)t.c + i * t.c_row * size;
        vector_product(&one);
    }
}

/* With few rows or columns, a product is made of ones that the library takes for small, or of ones with a
 * vector: it multiplies those where they lie, and would else copy its operands, which costs more. */
static void products(const tncpu_gemm *g, operand a, operand b, bool small)
{
    const int64_t m = g->m > FEW ? SMALL_RUN : g->m, n = g->n > FEW ? SMALL_RUN : g->n;
    const int64_t most = small ? tncpu_min(SMALL_SUM, SMALL_PRODUCT / (m * n)) : VECTOR_SUM;
    const int64_t k = tncpu_ceil_div(g->k, tncpu_ceil_div(g->k, most));
    const int64_t size = (int64_t)tn_dtype_bytes(g->dtype);
    tncpu_gemm part = *g;

    for (int64_t l = 0; l < g->k; l += k, part.add = 1)
        for (int64_t i = 0; i < g->m; i += m)
            for (int64_t j = 0; j < g->n; j += n) {
                part.m = tncpu_min(m, g->m - i);
                part.n = tncpu_min(n, g->n - j);
                part.k = tncpu_min(k, g->k - l);
                part.a = (const char *)g->a + (i * g->a_row + l * g->a_col) * size;
                part.b = (const char *)g->b + (l * g->b_row + j * g->b_col) * size;
                part.c = (char *)g->c + (i * g->c_row + j * g->c_col) * size;
                if (small)
                    product(&part, a, b);
                else
                    vector_products(&part);
            }
}

void tncpu_gemm_one(const tncpu_gemm *g, void *work)
{
    tncpu_gemm t = *g;
    bool along, small;
    operand a, b;

    (void)work;
    if (g->m <= 0 || g->n <= 0)
        return;
    if (g->k <= 0) {
        if (!g->add)
            clear(g);
        return;
    }
    if (g->m != 1 && (g->n == 1 || g->c_col != 1))
        t = turned(g);
    if (t.m == 1) {
        vector_product(&t);
        return;
    }
    a = operand_of(t.m, t.k, t.a_row, t.a_col);
    b = operand_of(t.k, t.n, t.b_row, t.b_col);
    along = a.trans == CblasNoTrans && b.trans == CblasTrans && t.k >= SMALL_SUM_MIN;
    small = along && tncpu_min(t.m, t.n) <= FEW && small_kernels();
    if (small || (along && tncpu_min(t.m, t.n) <= FEW_VECTORS))
        products(&t, a, b, small);
    else
        product(&t, a, b);
}

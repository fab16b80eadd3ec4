/*
 * Matrix products as convolution, dense layers and dot see them. Each CPU plugin has its own implementation.
 *
 * The bits of a product depend on its shape and strides alone, never on the number of threads.
 */
#ifndef TNCPU_GEMM_H
#define TNCPU_GEMM_H

#include "cpu.h"

/** c (m, n) = a (m, k) · b (k, n), or c += …. Strides in elements; of each matrix one stride is 1 (or its
 * dimension is at most 1). */
typedef struct tncpu_gemm {
    const void *a, *b;
    void *c;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    int32_t add, dtype; /* 1: c += a b; TN_F32 or TN_F64 */
} tncpu_gemm;

/** Scratch that one thread needs for a product of at most this size. */
uint64_t tncpu_gemm_bytes(int64_t m, int64_t n, int64_t k, int32_t dtype);

/** The same for a product (m, k) · (k, n) and the two that its gradients are. */
static inline uint64_t tncpu_gemm_bytes_all(int64_t m, int64_t n, int64_t k, int32_t dtype)
{
    const uint64_t y = tncpu_gemm_bytes(m, n, k, dtype), a = tncpu_gemm_bytes(m, k, n, dtype),
                   b = tncpu_gemm_bytes(k, n, m, dtype);

    return y > a ? (y > b ? y : b) : (a > b ? a : b);
}

/** The whole product on the calling thread. `work`: tncpu_gemm_bytes, 64-byte aligned. */
void tncpu_gemm_one(const tncpu_gemm *g, void *work);

/** The product cut into tiles by shape, on `threads` threads. `work`: tncpu_gemm_bytes for each of them. */
void tncpu_gemm_all(const tncpu_gemm *g, void *work, int threads);

/** How many tiles tncpu_gemm_all makes of this shape. */
int64_t tncpu_gemm_tasks(int64_t m, int64_t n, int64_t k);

/** TN_OK, or TN_E_UNSUPPORTED with the reason: products are not made here, or none with an extent or a stride
 * as large as `largest`. */
tn_status tncpu_gemm_serves(int64_t largest, tn_err *err);

/** Nanoseconds that a product takes on one thread, roughly. */
double tncpu_gemm_ns(int64_t m, int64_t n, int64_t k);

/** Runs `first` before any product on the calling thread and `last` after them: a library's own threads are
 * off in between. For code that calls tncpu_gemm_one outside a team. */
int tncpu_gemm_begin(void);
void tncpu_gemm_end(int before);

#endif

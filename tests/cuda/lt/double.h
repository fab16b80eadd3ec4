/*
 * A double of cuBLASLt, for tests: libcublasLt.so.13 on the double of the driver (../emulator). A product is
 * a function of the stream, also while the stream is captured. Never installed.
 *
 * It knows products of real matrices, column by column, with and without a bias, as plugin cuda asks for
 * them. What NVIDIA's documents call wrong or leave open is refused, with the rule. Sums are in the order of
 * k.
 *
 *     TNLT_FAULT    "matmul:2:13,heuristic:1+:15": what the second call of cublasLtMatmul, and all calls of
 *                   the heuristic, give. Clocks: create desc layout preference set heuristic algo matmul, and
 *       none        the heuristic finds nothing       inplace   it offers what the mask leaves out
 *       state       what it finds does not serve
 *     TNLT_CHOICES  what the heuristic lists, in this order, default "pn"
 *       n             a plain algorithm             p         sums in parts, added in the compute type
 *       w             one with a large workspace    x         one that no run takes
 *     TNLT_COUNTS   a file: how often each clock came, and what was not given back
 */
#ifndef TNLT_DOUBLE_H
#define TNLT_DOUBLE_H

#include <cublasLt.h>
#include <stdbool.h>

typedef struct double_layout { /* what cublasLtMatrixLayoutOpaque_t holds */
    uint32_t magic;
    int32_t type, batch;
    uint64_t rows, cols;
    int64_t ld, stride;
} double_layout;

typedef struct double_desc {
    uint32_t magic;
    int32_t compute, scale, trans[2];
    uint32_t epilogue;
    const void *bias;
} double_desc;

typedef struct double_algo { /* what cublasLtMatmulAlgo_t holds */
    uint32_t magic, scheme, align, id;
    uint64_t workspace_bytes, problem; /* problem: a hash of what it was found for */
    uint64_t refuses;                  /* it looks well, but does not run */
} double_algo;

typedef struct double_job { /* a product on its way */
    struct double_job *next;
    double_desc desc;
    double_layout a, b, c, d;
    const void *from[2], *other;
    void *to, *workspace;
    size_t workspace_bytes;
    double alpha, beta;
    bool once; /* no graph has it: it is freed behind its run */
} double_job;

void double_job_run(void *job); /* a function of the stream; graphs call it again and again */

#endif

/* The matrix product per type and instruction set, and the sizes that all of them share. */
#ifndef TNCPU_GEMM_ISA_H
#define TNCPU_GEMM_ISA_H

#include <string.h>

#include "../common/gemm.h"

#define M_BLOCK 64  /* rows of a packed at a time: 64 KiB with K_BLOCK in f32 */
#define N_BLOCK 512 /* columns of b packed at a time */
#define K_BLOCK 256 /* length of a partial sum: part of the result's bits */

/* One product on the calling thread, c's columns lying together (or m = 1). */
typedef void tncpu_gemm_fn(const tncpu_gemm *g, void *work);

tncpu_gemm_fn tncpu_gemm_f32_base, tncpu_gemm_f64_base;
tncpu_gemm_fn tncpu_gemm_f32_avx2, tncpu_gemm_f64_avx2;
tncpu_gemm_fn tncpu_gemm_f32_avx512, tncpu_gemm_f64_avx512;

#endif

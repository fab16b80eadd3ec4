/* The matrix product of gemm_block.inc in f32 for AVX-512. */
#include "gemm_isa.h"

#define T float
#define VECTOR_BYTES 64
#define ROWS 8
#define NAME tncpu_gemm_f32_avx512
#include "gemm_block.inc"

/* The matrix product of gemm_block.inc in f32 for AVX2. */
#include "gemm_isa.h"

#define T float
#define VECTOR_BYTES 32
#define ROWS 4
#define NAME tncpu_gemm_f32_avx2
#include "gemm_block.inc"

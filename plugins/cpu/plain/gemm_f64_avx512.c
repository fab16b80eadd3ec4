/* The matrix product of gemm_block.inc in f64 for AVX-512. */
#include "gemm_isa.h"

#define T double
#define VECTOR_BYTES 64
#define ROWS 8
#define NAME tncpu_gemm_f64_avx512
#include "gemm_block.inc"

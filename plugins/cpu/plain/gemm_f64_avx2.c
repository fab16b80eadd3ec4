/* The matrix product of gemm_block.inc in f64 for AVX2. */
#include "gemm_isa.h"

#define T double
#define VECTOR_BYTES 32
#define ROWS 4
#define NAME tncpu_gemm_f64_avx2
#include "gemm_block.inc"

/* The matrix product of gemm_block.inc in f32 for the instructions every x86-64 has. */
#include "gemm_isa.h"

#define T float
#define VECTOR_BYTES 16
#define ROWS 4
#define NAME tncpu_gemm_f32_base
#include "gemm_block.inc"

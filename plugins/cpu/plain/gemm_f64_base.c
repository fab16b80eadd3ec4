/* The matrix product of gemm_block.inc in f64 for the instructions every x86-64 has. */
#include "gemm_isa.h"

#define T double
#define VECTOR_BYTES 16
#define ROWS 4
#define NAME tncpu_gemm_f64_base
#include "gemm_block.inc"

/* Loops in f32 for AVX-512. */
#define TABLE tncpu_loops_f32_avx512
#include "loops_wide.inc"

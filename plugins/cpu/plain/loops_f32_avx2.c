/* Loops in f32 for AVX2. */
#define TABLE tncpu_loops_f32_avx2
#include "loops_wide.inc"

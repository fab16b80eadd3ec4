/* Conversions of short floats for AVX2. */
#define TABLE tncpu_shorts_avx2
#include "shorts.inc"

/* Conversions of short floats for AVX-512. */
#define TABLE tncpu_shorts_avx512
#include "shorts.inc"

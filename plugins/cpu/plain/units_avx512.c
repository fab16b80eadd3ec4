/* Uniform numbers for AVX-512. */
#define UNITS tncpu_units_avx512
#include "units.inc"

/* Pointwise kernels that compute in f64. */
#define WORDS_F64
#include "point.inc"

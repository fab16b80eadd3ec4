/* Pointwise kernels that compute in i64. */
#define WORDS_I64
#include "point.inc"

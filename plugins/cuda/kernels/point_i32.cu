/* Pointwise kernels that compute in i32. */
#define WORDS_I32
#include "point.inc"

/* Pointwise kernels that compute in f32. */
#define WORDS_F32
#include "point.inc"

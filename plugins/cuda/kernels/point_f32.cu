/* Pointwise kernels that compute in f32. */
#include "../../common/functions_float.h"

#define WORDS_F32
#include "point.inc"

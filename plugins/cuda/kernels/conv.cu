/* Kernels of the family conv, for both compute types of floating point; forward of int8, too. */
#include "window.h"

#define BODY "conv.inc"
#include "both.h"

/* Of int8 sums are exact in double; what lies outside of it saturates. */
TNCUDA_INLINE double element_i8(const void *data, int32_t dtype, int64_t i)
{
    (void)dtype;
    return ELEMENT_AT(int8_t, data, i);
}

TNCUDA_INLINE void element_set_i8(void *data, int32_t dtype, int64_t i, double v)
{
    ELEMENT_SET(int8_t, data, i, element_cut(dtype, v));
}

#define T double
#define N i8
#include "conv_y.inc"

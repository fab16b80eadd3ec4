/* Kernels of the family resize, for both compute types of floating point. */
#include "../../common/resize.h"
#include "element.h"

/* Rows lo … hi of the output, the only ones that may read row `at` of the input. */
TNCUDA_INLINE void resize_readers(int64_t at, int64_t in, int64_t out, int64_t *lo, int64_t *hi)
{
    const double scale = out > 1 && in > 1 ? (double)(in - 1) / (double)out : 0; /* at least */

    *lo = 0;
    *hi = out - 1;
    if (at > 1 && scale > 0) /* the scale is at most in / (out - 1) */
        *lo = (int64_t)((double)(at - 2) * (double)(out - 1) / (double)in) - 2;
    if (at < in - 1 && scale > 0)
        *hi = (int64_t)((double)(at + 2) / scale) + 2;
    *lo = *lo > 0 ? *lo : 0;
    *hi = *hi < out - 1 ? *hi : out - 1;
}

#define BODY "resize.inc"
#include "both.h"

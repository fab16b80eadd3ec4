/* Sums over the threads of a block, in a tree of fixed form. */
#ifndef TNCUDA_BLOCK_H
#define TNCUDA_BLOCK_H

#include "element.h"

#define EACH_BLOCK(i, count) for (int64_t i = TNCUDA_BLOCK; i < (count); i += TNCUDA_BLOCKS)
#define EACH_THREAD(i, count) for (int64_t i = TNCUDA_THREAD; i < (count); i += TNCUDA_BLOCK_THREADS)

/* The sum of all threads' `v`, for each of them; `part` is shared and has an element for each. */
TNCUDA_INLINE double block_sum(double *part, double v)
{
    double sum;

    TNCUDA_PUT(part, TNCUDA_THREAD, v);
    TNCUDA_SYNC();
    for (int32_t half = TNCUDA_BLOCK_THREADS / 2; half > 0; half /= 2) {
        if (TNCUDA_THREAD < half)
            TNCUDA_PUT(part, TNCUDA_THREAD,
                       TNCUDA_GET(part, TNCUDA_THREAD) + TNCUDA_GET(part, TNCUDA_THREAD + half));
        TNCUDA_SYNC();
    }
    sum = TNCUDA_GET(part, 0);
    TNCUDA_SYNC();
    return sum;
}

#endif

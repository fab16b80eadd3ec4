/* Sums over the threads of a block, in a tree of fixed form. */
#ifndef TNCUDA_BLOCK_H
#define TNCUDA_BLOCK_H

#include "element.h"

#define EACH_BLOCK(i, count) for (int64_t i = TNCUDA_BLOCK; i < (count); i += TNCUDA_BLOCKS)
#define EACH_THREAD(i, count) for (int64_t i = TNCUDA_THREAD; i < (count); i += TNCUDA_BLOCK_THREADS)

/* The sum over `lanes` threads side by side, a power of 2, for each of them; `part` is shared and has an
 * element for each thread of the block. All groups of the block come here together. */
TNCUDA_INLINE double group_sum(double *part, double v, int32_t lanes)
{
    const int32_t lane = TNCUDA_THREAD & (lanes - 1);
    double sum;

    TNCUDA_PUT(part, TNCUDA_THREAD, v);
    TNCUDA_SYNC();
    for (int32_t half = lanes / 2; half > 0; half /= 2) {
        if (lane < half)
            TNCUDA_PUT(part, TNCUDA_THREAD,
                       TNCUDA_GET(part, TNCUDA_THREAD) + TNCUDA_GET(part, TNCUDA_THREAD + half));
        TNCUDA_SYNC();
    }
    sum = TNCUDA_GET(part, TNCUDA_THREAD - lane);
    TNCUDA_SYNC();
    return sum;
}

/* Two sums over `members` threads that are `step` apart, a power of 2 of them, for each of them; this one is
 * number `member`. `part` and `other` are shared as above. */
TNCUDA_INLINE void members_sums(double *part, double *other, int32_t member, int32_t members, int32_t step,
                                double *a, double *b)
{
    const int32_t first = TNCUDA_THREAD - member * step;

    TNCUDA_PUT(part, TNCUDA_THREAD, *a);
    TNCUDA_PUT(other, TNCUDA_THREAD, *b);
    TNCUDA_SYNC();
    for (int32_t half = members / 2; half > 0; half /= 2) {
        if (member < half) {
            const int32_t with = TNCUDA_THREAD + half * step;

            TNCUDA_PUT(part, TNCUDA_THREAD, TNCUDA_GET(part, TNCUDA_THREAD) + TNCUDA_GET(part, with));
            TNCUDA_PUT(other, TNCUDA_THREAD, TNCUDA_GET(other, TNCUDA_THREAD) + TNCUDA_GET(other, with));
        }
        TNCUDA_SYNC();
    }
    *a = TNCUDA_GET(part, first);
    *b = TNCUDA_GET(other, first);
    TNCUDA_SYNC();
}

/* The largest of them; NaN where there is one. */
TNCUDA_INLINE double group_most(double *part, double v, int32_t lanes)
{
    const int32_t lane = TNCUDA_THREAD & (lanes - 1);
    double most;

    TNCUDA_PUT(part, TNCUDA_THREAD, v);
    TNCUDA_SYNC();
    for (int32_t half = lanes / 2; half > 0; half /= 2) {
        if (lane < half) {
            const double a = TNCUDA_GET(part, TNCUDA_THREAD), b = TNCUDA_GET(part, TNCUDA_THREAD + half);

            TNCUDA_PUT(part, TNCUDA_THREAD, b > a || b != b ? b : a);
        }
        TNCUDA_SYNC();
    }
    most = TNCUDA_GET(part, TNCUDA_THREAD - lane);
    TNCUDA_SYNC();
    return most;
}

/* The sum of all threads' `v`. */
TNCUDA_INLINE double block_sum(double *part, double v)
{
    return group_sum(part, v, TNCUDA_BLOCK_THREADS);
}

#endif

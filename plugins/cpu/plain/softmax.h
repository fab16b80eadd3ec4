/*
 * The loops of the softmax family, for f32 built for several instruction sets: the same operations in the
 * same order, so the same bits. softmax.inc has them.
 */
#ifndef TNCPU_SOFTMAX_H
#define TNCPU_SOFTMAX_H

#include <math.h>
#include <string.h>

#include "../../common/functions.h"
#include "plain.h"

#define TNCPU_SOFT 0
#define TNCPU_SOFT_LOGS 1
#define TNCPU_SOFT_MIN 2
#define TNCPU_SOFT_STRIP 64  /* vectors side by side */
#define TNCPU_SOFT_BLOCK 512 /* elements of a row at a time */

/* Vectors of n elements that lie `stride` apart, `width` of them side by side; rows, whose elements are
 * together: one behind the other. `over` is 1 / temperature. */
typedef struct tncpu_vectors {
    int64_t n, stride, width;
    int32_t mode;
    double over;
} tncpu_vectors;

typedef struct tncpu_softmax { /* [backward][strips] */
    void (*of[2][2])(const tncpu_vectors *v, const void *const *in, void *to);
} tncpu_softmax;

extern const tncpu_softmax tncpu_softmax_f32_base, tncpu_softmax_f32_avx2, tncpu_softmax_f32_avx512;

#define TNCPU_SOFTMAX(n)                                                                                     \
    {                                                                                                        \
        {                                                                                                    \
            {forward_row##n, forward_strip##n},                                                              \
            {                                                                                                \
                back_row##n, back_strip##n                                                                   \
            }                                                                                                \
        }                                                                                                    \
    }

/* Whole numbers in the order of floating point ones, and back. */
static inline int32_t tncpu_key_f32(float x)
{
    const int32_t bits = (int32_t)tnb_float_bits(x);

    return bits ^ (bits >> 31 & INT32_MAX);
}

static inline float tncpu_of_key_f32(int32_t key)
{
    return tnb_bits_float((uint32_t)(key ^ (key >> 31 & INT32_MAX)));
}

static inline int64_t tncpu_key_f64(double x)
{
    const int64_t bits = (int64_t)tnb_double_bits(x);

    return bits ^ (bits >> 63 & INT64_MAX);
}

static inline double tncpu_of_key_f64(int64_t key)
{
    return tnb_bits_double((uint64_t)(key ^ (key >> 63 & INT64_MAX)));
}

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#endif

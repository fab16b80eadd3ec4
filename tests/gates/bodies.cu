/*
 * plugins/common as CUDA: every row of its lists for the four compute types, the conversions of short floats,
 * the index map and the reductions. tests/gates/bodies.sh compiles it; nothing runs it.
 */
#include "functions.h"
#include "index.h"

#define GLUE_(a, b) a##_##b
#define GLUE(a, b) GLUE_(a, b)

#define WORDS_F32
#include "bodies.inc"
#define WORDS_F64
#include "bodies.inc"
#define WORDS_I32
#include "bodies.inc"
#define WORDS_I64
#include "bodies.inc"

extern "C" __global__ void storage(const uint16_t *half, const double *wide, uint16_t *out, uint64_t *whole)
{
    out[0] = tnb_float_half(tnb_half_float(half[0]));
    out[1] = tnb_float_bf16(tnb_bf16_float(half[1]));
    out[2] = tnb_float_half(tnb_odd_float(wide[0]));
    whole[0] = tnb_u64_of_double(wide[1]);
}

/* One thread to an output: the sum, product … over a strided tensor. */
#define ACC double
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MINUS(a) (-(a))
#define LOW -INFINITY
#define HIGH INFINITY
#define IS_NAN(x) ((x) != (x))
#define REDUCE(id, init, map, join)                                                                          \
    extern "C" __global__ void reduce_##id(int32_t ndim, const int64_t *shape, const int64_t *stride,        \
                                           int64_t n, const float *from, double *to)                         \
    {                                                                                                        \
        ACC total = init;                                                                                    \
                                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const float x = from[tnb_offset(ndim, shape, stride, i)];                                        \
            const ACC a = total, b = map;                                                                    \
            total = join;                                                                                    \
        }                                                                                                    \
        *to = total;                                                                                         \
    }
#include "reduce.list"

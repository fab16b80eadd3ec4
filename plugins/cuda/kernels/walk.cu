/*
 * Sums of products of arrays: a thread makes one element of the output, the terms in the order of the walk.
 * walk_wide takes floats of any type as doubles.
 */
#include "element.h"

/* Places of all arrays at element i of the output. */
TNCUDA_INLINE void walk_places(const tncuda_walk_args *call, int64_t i, int64_t *at)
{
    for (int32_t k = 0; k <= call->inputs; k++)
        at[k] = 0;
    for (int32_t a = call->outer; a-- > 0; i /= call->extent[a])
        for (int32_t k = 0; k <= call->inputs; k++)
            at[k] += i % call->extent[a] * call->step[k][a];
}

/* One term further: the last axis changes with each. */
TNCUDA_INLINE void walk_next(const tncuda_walk_args *call, int64_t *digit, int64_t *at)
{
    for (int32_t a = call->all; a-- > call->outer;) {
        const int64_t by = ++digit[a] < call->extent[a] ? 1 : 1 - call->extent[a];

        for (int32_t k = 0; k < call->inputs; k++)
            at[k] += by * call->step[k][a];
        if (by == 1)
            return;
        digit[a] = 0;
    }
}

#define PRODUCT(a, b) ((a) * (b))
#define SUM(a, b) ((a) + (b))

#define T float
#define N f32
#define LOAD(k, i) element_f32(call->in[k].data, call->in[k].dtype, i)
#define STORE(i, v) element_set_f32(call->out.data, call->out.dtype, i, v)
#define OTHER(i) element_f32(call->c, call->out.dtype, i)
#include "walk.inc"
#undef T
#undef N
#undef LOAD
#undef STORE
#undef OTHER

#define T double
#define N wide
#define LOAD(k, i) element_number(call->in[k].data, call->in[k].dtype, i)
#define STORE(i, v) element_set_number(call->out.data, call->out.dtype, i, v)
#define OTHER(i) element_number(call->c, call->out.dtype, i)
#include "walk.inc"
#undef T
#undef N
#undef LOAD
#undef STORE
#undef OTHER
#undef PRODUCT
#undef SUM

#define PRODUCT(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define SUM(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define T int64_t
#define N whole
#define LOAD(k, i) WHOLE_IN(k, i)
#define STORE(i, v) element_set_whole(call->out.data, call->out.dtype, i, v)
#define OTHER(i) element_whole(call->c, call->out.dtype, i)
#include "walk.inc"

/* Where elements lie, and how operands are walked. In C and CUDA. */
#ifndef TNB_INDEX_H
#define TNB_INDEX_H

#include "storage.h"

/* Elements from the first to number `index` of a tensor, counted row-major over `ndim` dimensions. */
TNB_INLINE int64_t tnb_offset(int32_t ndim, const int64_t *shape, const int64_t *stride, int64_t index)
{
    int64_t offset = 0;

    for (int32_t d = ndim; d-- > 0;) {
        const int64_t above = index / shape[d]; /* one division: a GPU has no instruction for it */

        offset += (index - above * shape[d]) * stride[d];
        index = above;
    }
    return offset;
}

/* Steps of a tensor along an output of `out_ndim` dimensions to which it broadcasts: 0 where it has one
 * element. */
TNB_INLINE void tnb_steps(int32_t ndim, const int64_t *shape, const int64_t *stride, int32_t out_ndim,
                          int64_t *steps)
{
    const int32_t lead = out_ndim - ndim;

    for (int32_t d = 0; d < out_ndim; d++)
        steps[d] = d < lead || shape[d - lead] == 1 ? 0 : stride[d - lead];
}

/* Joins dimensions that all operands walk as one, and drops those of size 1; `steps` of each operand become
 * those of `joined`, of which there are as many as it returns. */
TNB_INLINE int32_t tnb_join(int32_t ndim, const int64_t *shape, uint32_t count, int64_t *const *steps,
                            int64_t *joined)
{
    int32_t n = 0;

    for (int32_t d = 0; d < ndim; d++) {
        int32_t join = n > 0;

        if (shape[d] == 1)
            continue;
        for (uint32_t k = 0; k < count && join; k++)
            join = steps[k][n - 1] == steps[k][d] * shape[d];
        n += !join;
        joined[n - 1] = join ? joined[n - 1] * shape[d] : shape[d];
        for (uint32_t k = 0; k < count; k++)
            steps[k][n - 1] = steps[k][d];
    }
    return n;
}

#endif

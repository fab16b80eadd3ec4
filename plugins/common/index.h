/* Where elements lie. In C and CUDA. */
#ifndef TNB_INDEX_H
#define TNB_INDEX_H

#include "storage.h"

/* Elements from the first to number `index` of a tensor, counted row-major over `ndim` dimensions. */
TNB_INLINE int64_t tnb_offset(int32_t ndim, const int64_t *shape, const int64_t *stride, int64_t index)
{
    int64_t offset = 0;

    for (int32_t d = ndim; d-- > 0;) {
        offset += index % shape[d] * stride[d];
        index /= shape[d];
    }
    return offset;
}

#endif

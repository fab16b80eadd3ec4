/* What an output of a reduction is made of. */
#ifndef TNCUDA_OVER_H
#define TNCUDA_OVER_H

#include "element.h"

/* The first element of output `o`, and element `k` of it. */
TNCUDA_INLINE int64_t over_first(const tncuda_reduce_args *call, int64_t o)
{
    return tnb_offset(call->outer_ndim, call->outer_shape, call->outer_stride, o);
}

TNCUDA_INLINE int64_t over_at(const tncuda_reduce_args *call, int64_t first, int64_t k)
{
    return first + (call->inner_ndim == 1
                        ? k * call->inner_stride[0]
                        : tnb_offset(call->inner_ndim, call->inner_shape, call->inner_stride, k));
}

#endif

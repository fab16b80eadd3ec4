/* Values that are written into an array: of insert and of masks. */
#ifndef TNCUDA_EDIT_H
#define TNCUDA_EDIT_H

#include "element.h"

/* Element i of the output becomes value number `k` of its row, element `inner` of it. */
TNCUDA_INLINE void edit_value(const tncuda_edit_args *call, int64_t i, int64_t outer, int64_t k,
                              int64_t inner)
{
    const int32_t axis = call->axis, behind = call->ndim - axis - 1;
    int64_t at;

    if (!call->values.data) {
        element_set_number(call->out.data, call->out.dtype, i, call->number);
        return;
    }
    at = tnb_offset(axis, call->shape, call->along, outer) + k * call->along[axis] +
         tnb_offset(behind, call->shape + axis + 1, call->along + axis + 1, inner);
    element_convert(call->out.data, call->out.dtype, i, call->values.data, call->values.dtype, at);
}

#endif

/* Elements by position: pick along an axis, and its gradient. */
#include "element.h"

/* The index as the axis takes it: clipped, or wrapped around. NaN is 0. */
TNCUDA_INLINE int64_t index_of(const tncuda_index_args *call, int64_t i)
{
    int64_t at;

    if (element_is_float(call->index_dtype))
        at = tnb_i64_of_double(element_number(call->index, call->index_dtype, i));
    else
        at = element_whole(call->index, call->index_dtype, i);
    if (call->index_dtype == ELEMENT_U64 && at < 0) /* above all that i64 has */
        return call->wrap ? (int64_t)((uint64_t)at % (uint64_t)call->size) : call->size - 1;
    if (call->wrap) {
        at %= call->size;
        return at < 0 ? at + call->size : at;
    }
    return at < 0 ? 0 : at >= call->size ? call->size - 1 : at;
}

TNCUDA_INLINE void element_copy(void *to, int64_t to_at, const void *from, int64_t from_at, int32_t dtype)
{
    if (element_is_float(dtype) && dtype != ELEMENT_F64 && dtype != ELEMENT_F32)
        ELEMENT_SET(uint16_t, to, to_at, ELEMENT_AT(uint16_t, from, from_at));
    else if (element_is_float(dtype))
        element_set_number(to, dtype, to_at, element_number(from, dtype, from_at));
    else
        element_set_whole(to, dtype, to_at, element_whole(from, dtype, from_at));
}

/* (outer, size, inner), indices (outer, inner) -> (outer, inner) */
TNCUDA_KERNEL(index_pick, FREE, tncuda_index_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->outer * call->inner; i += TNCUDA_STEP) {
        const int64_t at = (i / call->inner * call->size + index_of(call, i)) * call->inner + i % call->inner;

        element_copy(call->to, i, call->x, at, call->dtype);
    }
}

/* An integer type with the bits of `dtype`: its 0 is that type's. */
TNCUDA_INLINE int32_t zero_dtype(int32_t dtype)
{
    if (dtype == ELEMENT_F16 || dtype == ELEMENT_BF16)
        return ELEMENT_U16;
    return dtype == ELEMENT_F32 ? ELEMENT_U32 : dtype;
}

/* dy (outer, inner) -> dx (outer, size, inner): 0 but at the indices. */
TNCUDA_KERNEL(index_unpick, FREE, tncuda_index_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, outer = i / call->inner / call->size;
        const int64_t from = outer * call->inner + inner;

        if (i / call->inner % call->size == index_of(call, from))
            element_copy(call->to, i, call->x, from, call->dtype);
        else
            element_set_whole(call->to, zero_dtype(call->dtype), i, 0);
    }
}

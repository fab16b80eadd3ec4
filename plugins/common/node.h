/* How kernels of any plugin read tensors and attributes. On the host. */
#ifndef TNB_NODE_H
#define TNB_NODE_H

#include "tenon/plugin/op.h"

/* Product of the dimensions first … last-1. */
static inline int64_t tnb_dims(const tn_tensor *t, int32_t first, int32_t last)
{
    int64_t n = 1;

    for (int32_t i = first; i < last; i++)
        n *= t->shape[i];
    return n;
}

/* Item `i` of a tuple attribute; `otherwise` where the tuple is None or shorter. */
static inline int64_t tnb_tuple_item(tn_value v, int64_t i, int64_t otherwise)
{
    const tn_tuple *t = (const tn_tuple *)tn_value_pointer(v);

    return t && i < t->count ? t->item[i] : otherwise;
}

static inline int64_t tnb_tuple_count(tn_value v)
{
    const tn_tuple *t = (const tn_tuple *)tn_value_pointer(v);

    return t ? t->count : 0;
}

/* An axis counted from the end if negative; the definition has checked its range. */
static inline int32_t tnb_axis(int64_t axis, int32_t ndim)
{
    return (int32_t)(axis < 0 ? axis + ndim : axis);
}

static inline int64_t tnb_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif

/* Some dimensions of a tensor as one space: those that a reduction keeps, those that it runs over. */
#ifndef TNB_AXES_H
#define TNB_AXES_H

#include "index.h"
#include "node.h"

#include <stdbool.h>

typedef struct tnb_axes {
    int32_t ndim;
    int64_t count, shape[TN_NDIM_MAX], stride[TN_NDIM_MAX];
} tnb_axes;

static inline void tnb_axes_add(tnb_axes *a, int64_t size, int64_t stride)
{
    if (a->ndim > 0 && a->stride[a->ndim - 1] == size * stride) { /* one axis with the one before */
        a->shape[a->ndim - 1] *= size;
        a->stride[a->ndim - 1] = stride;
    } else if (size != 1) {
        a->shape[a->ndim] = size;
        a->stride[a->ndim++] = stride;
    }
    a->count *= size;
}

/* The axes of `t` whose bits in `mask` are set are `reduced`, the others `kept`. */
static inline void tnb_axes_split(const tn_tensor *t, uint32_t mask, tnb_axes *kept, tnb_axes *reduced)
{
    kept->ndim = reduced->ndim = 0;
    kept->count = reduced->count = 1;
    for (int32_t d = 0; d < t->ndim; d++)
        tnb_axes_add(mask >> d & 1u ? reduced : kept, t->shape[d], t->stride[d]);
}

static inline int64_t tnb_axes_offset(const tnb_axes *a, int64_t index)
{
    return a->ndim == 1 ? index * a->stride[0] : tnb_offset(a->ndim, a->shape, a->stride, index);
}

/* The axes of an attribute by bit. None: all of them; `exclude`: all others. () is None, or with `numpy` no
 * axis. */
static inline uint32_t tnb_axes_mask(tn_value axis, bool exclude, bool numpy, int32_t ndim)
{
    const tn_tuple *t = (const tn_tuple *)tn_value_pointer(axis);
    const uint32_t all = ndim >= 32 ? UINT32_MAX : (1u << ndim) - 1u;
    uint32_t mask = 0;

    for (int64_t k = 0; t && k < t->count; k++)
        mask |= 1u << tnb_axis(t->item[k], ndim);
    if (!t || (t->count == 0 && !numpy))
        return exclude ? 0 : all;
    return exclude ? all & ~mask : mask;
}

#endif

/* Some dimensions of a tensor as one space: those that a reduction keeps, those that it runs over. */
#ifndef TNCPU_AXES_H
#define TNCPU_AXES_H

#include "../../common/index.h"
#include "plain.h"

typedef struct tncpu_axes {
    int32_t ndim;
    int64_t count, shape[TN_NDIM_MAX], stride[TN_NDIM_MAX];
} tncpu_axes;

static inline void tncpu_axes_add(tncpu_axes *a, int64_t size, int64_t stride)
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
static inline void tncpu_axes_split(const tn_tensor *t, uint32_t mask, tncpu_axes *kept, tncpu_axes *reduced)
{
    kept->ndim = reduced->ndim = 0;
    kept->count = reduced->count = 1;
    for (int32_t d = 0; d < t->ndim; d++)
        tncpu_axes_add(mask >> d & 1u ? reduced : kept, t->shape[d], t->stride[d]);
}

static inline int64_t tncpu_axes_offset(const tncpu_axes *a, int64_t index)
{
    return a->ndim == 1 ? index * a->stride[0] : tnb_offset(a->ndim, a->shape, a->stride, index);
}

/* The axes of an attribute by bit. None: all of them; `exclude`: all others. () is None, or with `numpy` no
 * axis. */
static inline uint32_t tncpu_axes_mask(tn_value axis, bool exclude, bool numpy, int32_t ndim)
{
    const tn_tuple *t = tn_value_pointer(axis);
    const uint32_t all = ndim >= 32 ? UINT32_MAX : (1u << ndim) - 1u;
    uint32_t mask = 0;

    for (int64_t k = 0; t && k < t->count; k++)
        mask |= 1u << tncpu_axis(t->item[k], ndim);
    if (!t || (t->count == 0 && !numpy))
        return exclude ? 0 : all;
    return exclude ? all & ~mask : mask;
}

#endif

/*
 * Strided loops on the host: dimensions are ordered by the destination's strides and joined where both sides
 * run on; what is left is an odometer around one row function.
 */
#include "tensor/internal.h"

typedef struct loop_dim {
    int64_t size, src, dst;
} loop_dim;

/* Fills `dims`, outermost first; returns how many (at least 1), or 0 if there is no element. */
static int32_t loop_dims(const tn_tensor *src, const tn_tensor *dst, loop_dim dims[TN_NDIM_MAX])
{
    int32_t count = 0, joined = 0;

    for (int32_t i = 0; i < dst->ndim; i++) {
        loop_dim d = {dst->shape[i], src->stride[i], dst->stride[i]};
        int32_t at = count;

        if (d.size == 0)
            return 0;
        if (d.size == 1)
            continue;
        for (; at > 0 && dims[at - 1].dst < d.dst; at--)
            dims[at] = dims[at - 1];
        dims[at] = d;
        count++;
    }
    if (count == 0) {
        dims[0] = (loop_dim){1, 1, 1};
        return 1;
    }
    for (int32_t i = 1; i < count; i++) {
        if (dims[joined].src == dims[i].size * dims[i].src && dims[joined].dst == dims[i].size * dims[i].dst)
            dims[joined] = (loop_dim){dims[joined].size * dims[i].size, dims[i].src, dims[i].dst};
        else
            dims[++joined] = dims[i];
    }
    return joined + 1;
}

static void row(const void *src, const tn_tensor *s, void *dst, const tn_tensor *d, const loop_dim *inner,
                bool add)
{
    if (add)
        tni_cast_add(src, inner->src, dst, inner->dst, d->dtype, inner->size);
    else
        tni_cast(src, s->dtype, inner->src, dst, d->dtype, inner->dst, inner->size);
}

static void walk(const tn_tensor *src, const tn_tensor *dst, bool add)
{
    const uint64_t src_bytes = tn_dtype_bytes(src->dtype), dst_bytes = tn_dtype_bytes(dst->dtype);
    int64_t index[TN_NDIM_MAX] = {0};
    loop_dim dims[TN_NDIM_MAX];
    const char *from = src->data;
    char *to = dst->data;
    int32_t count = loop_dims(src, dst, dims), at;

    if (count == 0)
        return;
    for (;;) {
        row(from, src, to, dst, &dims[count - 1], add);
        for (at = count - 2; at >= 0; at--) {
            from += dims[at].src * (int64_t)src_bytes;
            to += dims[at].dst * (int64_t)dst_bytes;
            if (++index[at] < dims[at].size)
                break;
            index[at] = 0;
            from -= dims[at].size * dims[at].src * (int64_t)src_bytes;
            to -= dims[at].size * dims[at].dst * (int64_t)dst_bytes;
        }
        if (at < 0)
            return;
    }
}

void tni_copy_strided(const tn_tensor *src, const tn_tensor *dst)
{
    walk(src, dst, false);
}

void tni_add_strided(const tn_tensor *src, const tn_tensor *dst)
{
    walk(src, dst, true);
}

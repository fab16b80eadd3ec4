/*
 * Strided loops on the host: dimensions are ordered by the destination's strides and joined where both sides
 * run on; what is left is an odometer around one row function.
 */
#include "tensor/internal.h"

typedef struct loop_dim {
    int64_t size, src, dst;
} loop_dim;

typedef struct walk {
    int32_t src_dtype, dst_dtype;
    int64_t src_bytes, dst_bytes; /* of an element */
    bool add;
} walk;

/* Elements: lines of the source that the first-level cache keeps even at a stride of 2^n. */
#define STRIP 16

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

static void row(const char *from, char *to, const walk *w, const loop_dim *inner, int64_t size)
{
    if (w->add)
        tni_cast_add(from, inner->src, to, inner->dst, w->dst_dtype, size);
    else
        tni_cast(from, w->src_dtype, inner->src, to, w->dst_dtype, inner->dst, size);
}

/* Two dimensions whose sources run crosswise: narrow strips, so that a line of memory is read once. */
static void strips(const char *from, char *to, const walk *w, const loop_dim *outer, const loop_dim *inner)
{
    for (int64_t begin = 0; begin < inner->size; begin += STRIP) {
        const int64_t size = inner->size - begin < STRIP ? inner->size - begin : STRIP;
        const char *src = from + begin * inner->src * w->src_bytes;
        char *dst = to + begin * inner->dst * w->dst_bytes;

        for (int64_t i = 0; i < outer->size; i++) {
            row(src, dst, w, inner, size);
            src += outer->src * w->src_bytes;
            dst += outer->dst * w->dst_bytes;
        }
    }
}

static void walk_all(const tn_tensor *src, const tn_tensor *dst, bool add)
{
    const walk w = {.src_dtype = src->dtype,
                    .dst_dtype = dst->dtype,
                    .src_bytes = (int64_t)tn_dtype_bytes(src->dtype),
                    .dst_bytes = (int64_t)tn_dtype_bytes(dst->dtype),
                    .add = add};
    int64_t index[TN_NDIM_MAX] = {0};
    loop_dim dims[TN_NDIM_MAX];
    const char *from = src->data;
    char *to = dst->data;
    int32_t count = loop_dims(src, dst, dims), at, last;
    bool crosswise;

    if (count == 0)
        return;
    crosswise = count > 1 && dims[count - 2].src < dims[count - 1].src && dims[count - 2].size > 1;
    last = crosswise ? count - 2 : count - 1; /* the odometer turns the dimensions before it */
    for (;;) {
        if (crosswise)
            strips(from, to, &w, &dims[last], &dims[last + 1]);
        else
            row(from, to, &w, &dims[last], dims[last].size);
        for (at = last - 1; at >= 0; at--) {
            from += dims[at].src * w.src_bytes;
            to += dims[at].dst * w.dst_bytes;
            if (++index[at] < dims[at].size)
                break;
            index[at] = 0;
            from -= dims[at].size * dims[at].src * w.src_bytes;
            to -= dims[at].size * dims[at].dst * w.dst_bytes;
        }
        if (at < 0)
            return;
    }
}

/* Packed elements lie one after the other; a source without strides is one element, again and again. */
static void copy_packed(const tn_tensor *src, const tn_tensor *dst)
{
    const int64_t count = tn_tensor_count(dst);
    uint8_t one = 0;
    bool same = count > 1;

    for (int32_t d = 0; d < dst->ndim; d++)
        same &= src->stride[d] == 0;
    if (!same) {
        tni_cast(src->data, src->dtype, 1, dst->data, dst->dtype, 1, count);
        return;
    }
    tni_cast(src->data, src->dtype, 1, &one, dst->dtype, 1, 1);
    for (int64_t i = 0; i < count; i += 2) /* what is left over of the last byte is 0 */
        ((uint8_t *)dst->data)[i / 2] = i + 1 < count ? (uint8_t)(one * 17u) : one;
}

void tni_copy_strided(const tn_tensor *src, const tn_tensor *dst)
{
    if (tni_dtype_packed(src->dtype) || tni_dtype_packed(dst->dtype)) {
        copy_packed(src, dst);
        return;
    }
    walk_all(src, dst, false);
}

void tni_add_strided(const tn_tensor *src, const tn_tensor *dst)
{
    walk_all(src, dst, true);
}

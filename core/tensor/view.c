/*
 * Views: further arrays on the same storage, with its variable. They are never on the tape: recorded reshapes
 * and slices are operators, in room exec.
 */
#include "tensor/internal.h"

static tn_status viewable(tni_array *a)
{
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "a sparse array has no views");
    return tni_array_shape_wait(a);
}

/* Of a part: the elements have addresses of their own. */
static tn_status divisible(tni_array *a)
{
    const tn_status st = viewable(a);

    if (!st && tni_dtype_packed(a->dtype))
        return tni_error(TN_E_UNSUPPORTED, "%s shares its bytes: there are no views of parts",
                         tni_dtype_name(a->dtype));
    return st;
}

tn_status tni_array_reshape(tni_array *a, int32_t ndim, const int64_t *shape, tni_array **out)
{
    uint64_t count;
    tn_status st = viewable(a);

    if (st || (st = tni_shape_check(a->dtype, ndim, shape, &count)))
        return st;
    if (!(a->flags & TNI_ARRAY_CONTIGUOUS))
        return tni_error(TN_E_SHAPE,
                         "only a contiguous array can be viewed with another shape: copy it first");
    if (count != tni_array_count(a))
        return tni_error(TN_E_SHAPE, "a shape of %llu elements, but the array has %llu",
                         (unsigned long long)count, (unsigned long long)tni_array_count(a));
    return tni_array_on(a->storage, a->dtype, a->offset, ndim, shape, NULL, out);
}

tn_status tni_array_shaped(tni_array *a, int32_t ndim, const int64_t *shape, tni_array **out)
{
    tni_array *dense = NULL;
    tn_status st;

    if (a->flags & TNI_ARRAY_CONTIGUOUS)
        return tni_array_reshape(a, ndim, shape, out);
    if (!(st = tni_array_like(a, "array", &dense)) && !(st = tni_array_copy(a, dense)))
        st = tni_array_reshape(dense, ndim, shape, out);
    tni_array_release(dense);
    return st;
}

tn_status tni_array_slice(tni_array *a, int64_t begin, int64_t end, tni_array **out)
{
    int64_t shape[TN_NDIM_MAX];
    tn_status st = divisible(a);

    if (st)
        return st;
    if (a->ndim < 1)
        return tni_error(TN_E_SHAPE, "an array without dimensions cannot be sliced");
    if (begin < 0 || end < begin || end > a->shape[0])
        return tni_error(TN_E_ARG, "slice %lld to %lld of %lld rows", (long long)begin, (long long)end,
                         (long long)a->shape[0]);
    memcpy(shape, a->shape, (size_t)a->ndim * sizeof *shape);
    shape[0] = end - begin;
    return tni_array_on(a->storage, a->dtype, a->offset + (uint64_t)(begin * a->stride[0]), a->ndim, shape,
                        a->stride, out);
}

tn_status tni_array_at(tni_array *a, int64_t index, tni_array **out)
{
    tn_status st = divisible(a);

    if (st)
        return st;
    if (a->ndim < 1)
        return tni_error(TN_E_SHAPE, "an array without dimensions has no rows");
    if (index < 0 || index >= a->shape[0])
        return tni_error(TN_E_ARG, "row %lld of %lld", (long long)index, (long long)a->shape[0]);
    return tni_array_on(a->storage, a->dtype, a->offset + (uint64_t)(index * a->stride[0]), a->ndim - 1,
                        a->shape + 1, a->stride + 1, out);
}

tn_status tni_array_view(tni_array *a, uint64_t offset, int32_t ndim, const int64_t *shape,
                         const int64_t *stride, tni_array **out)
{
    uint64_t count, extent, end, held;
    tn_status st = divisible(a);

    if (st || (st = tni_shape_check(a->dtype, ndim, shape, &count)))
        return st;
    extent = count;
    if (stride && (st = tni_extent(ndim, shape, stride, &extent)))
        return st;
    held = a->storage->bytes / tn_dtype_bytes(a->dtype);
    if (!tni_size_add(a->offset, offset, &end) || !tni_size_add(end, extent, &end) || end > held)
        return tni_error(TN_E_ARG, "a view of %llu elements from %llu on, but its memory holds %llu",
                         (unsigned long long)extent, (unsigned long long)offset, (unsigned long long)held);
    return tni_array_on(a->storage, a->dtype, a->offset + offset, ndim, shape, stride, out);
}

tn_status tni_array_detach(tni_array *a, tni_array **out)
{
    tn_status st;

    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_sparse_with(a, a, out);
    st = tni_array_shape_wait(a);
    return st ? st : tni_array_on(a->storage, a->dtype, a->offset, a->ndim, a->shape, a->stride, out);
}

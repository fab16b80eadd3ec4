/*
 * Sparse arrays as containers: a logical shape, a storage with the values, and dense arrays with their
 * places. row_sparse: aux[0] = ids of the rows that are there; csr: aux[0] = where each row begins, aux[1] =
 * columns.
 */
#include "tensor/internal.h"

static tn_status aux_check(int32_t storage_type, int32_t ndim, const int64_t *shape, tni_array *const aux[2])
{
    const int32_t count = storage_type == TN_STORAGE_CSR ? 2 : 1;

    if (storage_type == TN_STORAGE_CSR ? ndim != 2 : storage_type != TN_STORAGE_ROW_SPARSE || ndim < 1)
        return tni_error(TN_E_SHAPE, "storage type %d cannot have %d dimensions", storage_type, ndim);
    for (int32_t i = 0; i < count; i++) {
        if (!aux[i] || aux[i]->ndim != 1 || aux[i]->storage_type != TN_STORAGE_DENSE)
            return tni_error(TN_E_SHAPE, "index array %d of a sparse array must have one dimension", i);
        if (aux[i]->dtype != TN_I64 && aux[i]->dtype != TN_I32)
            return tni_error(TN_E_DTYPE, "index array %d of a sparse array must be int64 or int32", i);
    }
    if (count == 2 && (shape[0] == INT64_MAX || aux[0]->shape[0] != shape[0] + 1))
        return tni_error(TN_E_SHAPE, "a csr array of %lld rows has %lld row starts", (long long)shape[0],
                         (long long)aux[0]->shape[0]);
    if (count == 1 && aux[0]->shape[0] > shape[0])
        return tni_error(TN_E_SHAPE, "%lld row ids, but the array has %lld rows", (long long)aux[0]->shape[0],
                         (long long)shape[0]);
    return TN_OK;
}

/* Shape of the values. */
static int32_t values_shape(int32_t storage_type, int32_t ndim, const int64_t *shape, tni_array *const aux[2],
                            int64_t out[TN_NDIM_MAX])
{
    if (storage_type == TN_STORAGE_CSR) {
        out[0] = aux[1]->shape[0];
        return 1;
    }
    out[0] = aux[0]->shape[0];
    for (int32_t i = 1; i < ndim; i++)
        out[i] = shape[i];
    return ndim;
}

tn_status tni_array_create_sparse(tni_space *space, tni_device *d, int32_t storage_type, int32_t dtype,
                                  int32_t ndim, const int64_t *shape, tni_array *const aux[2],
                                  tni_array **out)
{
    int64_t values[TN_NDIM_MAX];
    uint64_t count;
    int32_t values_ndim;
    tni_array *dense = NULL, *a = NULL;
    tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (st || (st = aux_check(storage_type, ndim, shape, aux)))
        return st;
    values_ndim = values_shape(storage_type, ndim, shape, aux, values);
    if ((st = tni_array_create(space, d, dtype, values_ndim, values, NULL, &dense)) ||
        (st = tni_array_on(dense->storage, dtype, 0, ndim, shape, NULL, &a)))
        goto cleanup;
    a->flags &= ~TNI_ARRAY_CONTIGUOUS; /* the strides are those of the logical shape, of no use in memory */
    a->storage_type = (uint16_t)storage_type;
    for (int32_t i = 0; i < (storage_type == TN_STORAGE_CSR ? 2 : 1); i++) {
        tni_array_retain(aux[i]);
        a->aux[i] = aux[i];
    }
    *out = a;

cleanup:
    tni_array_release(dense);
    return st;
}

tn_status tni_array_values(tni_array *a, tni_array **out)
{
    int64_t values[TN_NDIM_MAX];
    int32_t ndim;

    if (a->storage_type == TN_STORAGE_DENSE)
        return tni_error(TN_E_ARG, "a dense array has no values apart from its elements");
    ndim = values_shape(a->storage_type, a->ndim, a->shape, a->aux, values);
    return tni_array_on(a->storage, a->dtype, 0, ndim, values, NULL, out);
}

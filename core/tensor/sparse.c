/*
 * Sparse arrays as containers: a logical shape, a storage with the values, and dense arrays with their
 * places. row_sparse: aux[0] = ids of the rows that are there; csr: aux[0] = where each row begins, aux[1] =
 * columns. The last index array has as many elements as are stored: where only a run tells that number, it is
 * pending.
 */
#include <stdlib.h>

#include "tensor/internal.h"

static int32_t aux_count(int32_t storage_type)
{
    return storage_type == TN_STORAGE_CSR ? 2 : 1;
}

/* As many elements as are stored. */
static tni_array *stored_of(const tni_array *a)
{
    return a->aux[aux_count(a->storage_type) - 1];
}

/* csr: elements; row_sparse: rows. */
static tn_status stored_check(int32_t storage_type, const int64_t *shape, int64_t stored)
{
    const bool csr = storage_type == TN_STORAGE_CSR;

    if (stored >= 0 &&
        (csr ? !stored || (shape[0] && shape[1] && (stored - 1) / shape[1] < shape[0]) : stored <= shape[0]))
        return TN_OK;
    if (csr)
        return tni_error(TN_E_SHAPE, "%lld stored elements, but the array has %lld rows and %lld columns",
                         (long long)stored, (long long)shape[0], (long long)shape[1]);
    return tni_error(TN_E_SHAPE, "%lld stored rows, but the array has %lld", (long long)stored,
                     (long long)shape[0]);
}

static tn_status kind_check(int32_t storage_type, int32_t ndim)
{
    if (storage_type == TN_STORAGE_CSR ? ndim == 2 : storage_type == TN_STORAGE_ROW_SPARSE && ndim >= 1)
        return TN_OK;
    return tni_error(TN_E_SHAPE, "storage type %d cannot have %d dimensions", storage_type, ndim);
}

static tn_status aux_check(int32_t storage_type, int32_t ndim, const int64_t *shape, tni_array *const aux[2])
{
    const int32_t count = aux_count(storage_type);
    tn_status st = kind_check(storage_type, ndim);

    if (st)
        return st;
    for (int32_t i = 0; i < count; i++) {
        if (!aux[i] || aux[i]->ndim != 1 || aux[i]->storage_type != TN_STORAGE_DENSE)
            return tni_error(TN_E_SHAPE, "index array %d of a sparse array must have one dimension", i);
        if (aux[i]->dtype != TN_I64 && aux[i]->dtype != TN_I32)
            return tni_error(TN_E_DTYPE, "index array %d of a sparse array must be int64 or int32", i);
    }
    if (count == 2 && (shape[0] == INT64_MAX || aux[0]->shape[0] != shape[0] + 1))
        return tni_error(TN_E_SHAPE, "a csr array of %lld rows has %lld row starts", (long long)shape[0],
                         (long long)aux[0]->shape[0]);
    return stored_check(storage_type, shape, aux[count - 1]->shape[0]);
}

/* Shape of the values. */
static int32_t values_shape(int32_t storage_type, int32_t ndim, const int64_t *shape, int64_t stored,
                            int64_t out[TN_NDIM_MAX])
{
    out[0] = stored;
    for (int32_t i = 1; i < ndim; i++)
        out[i] = shape[i];
    return storage_type == TN_STORAGE_CSR ? 1 : ndim;
}

/* On the storage of `values`, with references on the index arrays. */
tn_status tni_sparse_on(tni_array *values, int32_t storage_type, int32_t ndim, const int64_t *shape,
                        tni_array *const aux[2], tni_array **out)
{
    tni_array *a;
    const tn_status st = tni_array_on(values->storage, values->dtype, 0, ndim, shape, NULL, &a);

    if (st)
        return st;
    a->flags &= ~TNI_ARRAY_CONTIGUOUS; /* the strides are those of the logical shape, of no use in memory */
    a->storage_type = (uint16_t)storage_type;
    for (int32_t i = 0; i < aux_count(storage_type); i++)
        tni_array_retain(a->aux[i] = aux[i]);
    *out = a;
    return TN_OK;
}

tn_status tni_array_create_sparse(tni_space *space, tni_device *d, int32_t storage_type, int32_t dtype,
                                  int32_t ndim, const int64_t *shape, tni_array *const aux[2],
                                  tni_array **out)
{
    int64_t values[TN_NDIM_MAX];
    uint64_t count;
    tni_array *dense = NULL;
    tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (st || (st = aux_check(storage_type, ndim, shape, aux)))
        return st;
    ndim = values_shape(storage_type, ndim, shape, aux[aux_count(storage_type) - 1]->shape[0], values);
    if (!(st = tni_array_create(space, d, dtype, ndim, values, NULL, &dense)))
        st = tni_sparse_on(dense, storage_type, storage_type == TN_STORAGE_CSR ? 2 : ndim, shape, aux, out);
    tni_array_release(dense);
    return st;
}

tn_status tni_array_create_sparse_pending(tni_space *space, tni_device *d, int32_t storage_type,
                                          int32_t dtype, int32_t ndim, const int64_t *shape, tni_array **out)
{
    const int32_t last = aux_count(storage_type) - 1;
    tni_array *values = NULL, *aux[2] = {NULL, NULL};
    uint64_t count;
    tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (!st && !(st = kind_check(storage_type, ndim)) &&
        !(st = last && shape[0] == INT64_MAX ? tni_error(TN_E_SHAPE, "too many rows") : TN_OK) &&
        !(st = last ? tni_array_create(space, d, TN_I64, 1, (int64_t[]){shape[0] + 1}, NULL, &aux[0])
                    : TN_OK) &&
        !(st = tni_array_create_pending(space, d, TN_I64, &aux[last])) &&
        !(st = tni_array_create_pending(space, d, dtype, &values)) &&
        !(st = tni_sparse_on(values, storage_type, ndim, shape, aux, out)))
        tni_sparse_seal(*out);
    tni_array_release(values);
    tni_array_release(aux[0]);
    tni_array_release(aux[1]);
    return st;
}

tn_status tni_sparse_resolve(tni_array *a, int64_t stored)
{
    int64_t values[TN_NDIM_MAX];
    tni_array *last = stored_of(a);
    uint64_t count;
    tn_status st;

    if (!atomic_load_explicit(&last->pending, memory_order_relaxed))
        return tni_error(TN_E_STATE, "the number of stored elements is known already");
    if ((st = stored_check(a->storage_type, a->shape, stored)) ||
        (st = tni_shape_check(a->dtype, values_shape(a->storage_type, a->ndim, a->shape, stored, values),
                              values, &count)))
        return st;
    a->storage->bytes = tn_dtype_size(a->dtype, count);
    if ((st = tni_storage_allocate(a->storage, NULL)) ||
        (last != a->aux[0] && (st = tni_storage_allocate(a->aux[0]->storage, NULL))) ||
        (st = tni_array_resolve(last, 1, &stored, NULL)))
        return st;
    for (int32_t i = 0; i < aux_count(a->storage_type); i++) /* what is left unwritten is found: -1 */
        if (tni_array_count(a->aux[i]))
            memset(tni_array_data(a->aux[i]), 0xff, tni_array_bytes(a->aux[i]));
    return TN_OK;
}

tn_status tni_rows_none(const tni_array *like, tni_array **out)
{
    tni_space *s = like->storage->space;
    tni_device *d = like->storage->device;
    tni_array *ids = NULL;
    tn_status st;

    if (!(st = tni_array_create(s, d, TN_I64, 1, (int64_t[]){0}, NULL, &ids)) &&
        !(st = tni_array_create_sparse(s, d, TN_STORAGE_ROW_SPARSE, like->dtype, like->ndim, like->shape,
                                       (tni_array *const[]){ids, NULL}, out)))
        tni_sparse_seal(*out);
    tni_array_release(ids);
    return st;
}

tn_status tni_rows_fill(tni_array *a, tni_array *dense)
{
    tni_array *ids = NULL;
    tn_status st = tni_array_shape_wait(a->aux[0]);

    if (st || (st = tni_array_create(dense->storage->space, dense->storage->device, TN_I64, 1, dense->shape,
                                     NULL, &ids)))
        return st;
    if (!(st = tni_storage_allocate(ids->storage, NULL)) &&
        !(st = tni_engine_wait_write(dense->storage->space->engine, tni_array_var(a), 0))) {
        for (int64_t i = 0; i < dense->shape[0]; i++)
            ((int64_t *)tni_array_data(ids))[i] = i;
        tni_storage_retain(dense->storage);
        tni_storage_release(a->storage);
        tni_array_release(a->aux[0]);
        a->storage = dense->storage;
        tni_array_retain(a->aux[0] = ids);
        tni_sparse_seal(a);
    }
    tni_array_release(ids);
    return st;
}

bool tni_sparse_pending(const tni_array *a)
{
    return atomic_load_explicit(&stored_of(a)->pending, memory_order_acquire) != 0;
}

void tni_sparse_seal(tni_array *a)
{
    for (int32_t i = 0; i < aux_count(a->storage_type); i++)
        __atomic_or_fetch(&a->aux[i]->storage->flags, TNI_STORAGE_READ_ONLY, __ATOMIC_RELAXED);
}

void tni_sparse_tensors(const tni_array *a, tn_tensor *t, tn_tensor aux[2])
{
    tni_array_tensor(a, t);
    for (int32_t i = 0; a->storage_type != TN_STORAGE_DENSE && i < aux_count(a->storage_type); i++) {
        tni_array_tensor(a->aux[i], &aux[i]);
        t->aux[i] = &aux[i];
    }
}

/* ---- indices ------------------------------------------------------------------------------------------- */

int64_t tni_index_at(const tni_array *a, int64_t i)
{
    return a->dtype == TN_I64 ? ((const int64_t *)tni_array_data(a))[i]
                              : ((const int32_t *)tni_array_data(a))[i];
}

static const char *rows_fault(const tni_array *a, int64_t *value)
{
    int64_t before = -1;

    for (int64_t i = 0; i < a->aux[0]->shape[0]; i++) {
        *value = tni_index_at(a->aux[0], i);
        if (*value <= before || *value >= a->shape[0])
            return "row id out of order or range:";
        before = *value;
    }
    return NULL;
}

int tni_index_order(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Columns first … end-1 of one row; those that rise are looked at once. */
static const char *columns_fault(const tni_array *a, int64_t first, int64_t end, int64_t *value)
{
    const char *fault = NULL;
    int64_t *sorted, i = first + 1;

    while (i < end && tni_index_at(a->aux[1], i) > tni_index_at(a->aux[1], i - 1))
        i++;
    if (i >= end)
        return NULL;
    *value = end - first;
    if (!(sorted = tni_alloc((uint64_t)(end - first) * sizeof *sorted)))
        return "no memory to look at the columns of a row:";
    for (i = first; i < end; i++)
        sorted[i - first] = tni_index_at(a->aux[1], i);
    qsort(sorted, (size_t)(end - first), sizeof *sorted, tni_index_order);
    for (i = 1; i < end - first && !fault; i++)
        if (sorted[i] == sorted[i - 1]) {
            *value = sorted[i];
            fault = "a row has a column twice:";
        }
    tni_free(sorted);
    return fault;
}

static const char *csr_fault(const tni_array *a, int64_t *value)
{
    const int64_t stored = a->aux[1]->shape[0];
    int64_t before = 0;

    for (int64_t i = 0; i <= a->shape[0]; i++) {
        *value = tni_index_at(a->aux[0], i);
        if (*value < before || *value > stored || (i == 0 && *value))
            return "row start out of order or range:";
        before = *value;
    }
    if (before != stored)
        return "row starts end at";
    for (int64_t i = 0; i < stored; i++) {
        *value = tni_index_at(a->aux[1], i);
        if (*value < 0 || *value >= a->shape[1])
            return "column out of range:";
    }
    for (int64_t i = 0; i < a->shape[0]; i++) {
        const char *fault =
            columns_fault(a, tni_index_at(a->aux[0], i), tni_index_at(a->aux[0], i + 1), value);

        if (fault)
            return fault;
    }
    return NULL;
}

const char *tni_sparse_fault(const tni_array *a, int64_t *value)
{
    return a->storage_type == TN_STORAGE_CSR ? csr_fault(a, value) : rows_fault(a, value);
}

/* ---- values -------------------------------------------------------------------------------------------- */

tn_status tni_array_values(tni_array *a, tni_array **out)
{
    int64_t values[TN_NDIM_MAX];
    int32_t ndim;
    tn_status st;

    if (a->storage_type == TN_STORAGE_DENSE)
        return tni_error(TN_E_ARG, "a dense array has no values apart from its elements");
    if ((st = tni_array_shape_wait(stored_of(a))))
        return st;
    ndim = values_shape(a->storage_type, a->ndim, a->shape, stored_of(a)->shape[0], values);
    return tni_array_on(a->storage, a->dtype, 0, ndim, values, NULL, out);
}

/* tenon/array.h. A tn_array is the struct of room tensor. */
#include <string.h>

#include "api/api.h"
#include "tenon/array.h"

/* ---- making and freeing -------------------------------------------------------------------------- */

static tn_status shape_given(const char *function, int32_t ndim, const int64_t *shape)
{
    return ndim > 0 && !shape ? api_null(function, "shape") : TN_OK;
}

tn_status tn_array_create(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape,
                          const tn_device *device, tn_array **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = shape_given(__func__, ndim, shape)) || (st = api_device(ctx, device, &d)))
        return st;
    return tni_array_create(ctx->space, d, dtype, ndim, shape, "array", out);
}

tn_status tn_array_zeros(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape,
                         const tn_device *device, tn_array **out)
{
    tni_array *a = NULL;
    tn_status st = tn_array_create(ctx, dtype, ndim, shape, device, out ? &a : NULL);

    if (!st && (st = tni_array_fill(a, 0.0))) {
        tni_array_release(a);
        return st;
    }
    if (!st)
        *out = a;
    return st;
}

tn_status tn_array_from(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape, const void *data,
                        tn_array **out)
{
    tni_array *a = NULL;
    tn_status st = tn_array_create(ctx, dtype, ndim, shape, NULL, out ? &a : NULL);

    if (st)
        return st;
    if (!data && tni_array_bytes(a))
        st = api_null(__func__, "data");
    else
        st = tni_array_first_write(a, data ? data : "", tni_array_bytes(a));
    if (st)
        tni_array_release(a);
    else
        *out = a;
    return st;
}

tn_status tn_array_wrap(tn_ctx *ctx, const tn_array_memory *memory, tn_array **out)
{
    tn_array_memory m;
    tni_device *d;
    tn_status st;

    if (!ctx || !memory || !out)
        return api_null(__func__, "ctx, memory or out");
    if ((st = api_options(__func__, memory, &m, (uint32_t)sizeof m)) ||
        (st = shape_given(__func__, m.ndim, m.shape)) || (st = api_device(ctx, m.device, &d)))
        return st;
    return tni_array_wrap(ctx->space, d, m.data, m.bytes, m.dtype, m.ndim, m.shape, m.stride, m.release,
                          m.arg, out);
}

static tn_status index_make(tn_ctx *ctx, tni_device *d, int64_t count, const int64_t *from, tni_array **out)
{
    const tn_status st = tni_array_create(ctx->space, d, TN_I64, 1, &count, "array", out);

    return st ? st : tni_array_first_write(*out, from ? (const void *)from : "", tni_array_bytes(*out));
}

/* Values and indices are in place: are the latter such as kernels trust? */
static tn_status sparse_fill(tni_array *a, const void *data)
{
    tni_array *values = NULL;
    const char *fault;
    int64_t value = 0;
    tn_status st;

    if (!(st = tni_array_values(a, &values)))
        st = tni_array_write(values, data ? data : "", tni_array_bytes(values));
    tni_array_release(values);
    if (!st && (fault = tni_sparse_fault(a, &value)))
        st = tni_error(TN_E_ARG, "a sparse array with a %s %lld", fault, (long long)value);
    if (!st)
        tni_sparse_seal(a);
    return st;
}

tn_status tn_array_sparse_from(tn_ctx *ctx, const tn_array_sparse *from, tn_array **out)
{
    tn_array_sparse s;
    tni_array *aux[2] = {NULL, NULL}, *a = NULL;
    tni_device *d;
    tn_status st;
    bool csr;

    if (!ctx || !from || !out)
        return api_null(__func__, "ctx, from or out");
    if ((st = api_options(__func__, from, &s, (uint32_t)sizeof s)) ||
        (st = shape_given(__func__, s.ndim, s.shape)) || (st = api_device(ctx, NULL, &d)))
        return st;
    csr = s.storage == TN_STORAGE_CSR;
    if ((s.stored > 0 && (!s.values || !s.indices)) || (csr && !s.indptr))
        return api_null(__func__, "values, indices or indptr");
    if (!d->host)
        return tni_error(TN_E_UNSUPPORTED, "sparse arrays lie on hosts, not on %s:%d", d->type, d->index);
    if ((csr && (s.ndim != 2 || s.shape[0] < 0 || s.shape[0] == INT64_MAX)) || s.stored < 0)
        return tni_error(TN_E_SHAPE, "%d dimensions, %lld stored: no sparse array has that", s.ndim,
                         (long long)s.stored);
    if ((csr && (st = index_make(ctx, d, s.shape[0] + 1, s.indptr, &aux[0]))) ||
        (st = index_make(ctx, d, s.stored, s.indices, &aux[csr])) ||
        (st = tni_array_create_sparse(ctx->space, d, s.storage, s.dtype, s.ndim, s.shape, aux, &a)) ||
        (st = sparse_fill(a, s.values)))
        goto cleanup;
    *out = a;
    a = NULL;

cleanup:
    tni_array_release(aux[0]);
    tni_array_release(aux[1]);
    tni_array_release(a);
    return st;
}

void tn_array_retain(tn_array *a)
{
    if (a)
        tni_array_retain(a);
}

void tn_array_release(tn_array *a)
{
    tni_array_release(a);
}

/* ---- what it is ---------------------------------------------------------------------------------- */

tn_status tn_array_shape(tn_array *a, int32_t *ndim, const int64_t **shape)
{
    tn_status st;

    if (!a)
        return api_null(__func__, "a");
    if ((st = tni_array_shape_wait(a)))
        return st;
    if (ndim)
        *ndim = a->ndim;
    if (shape)
        *shape = a->shape;
    return TN_OK;
}

tn_status tn_array_stride(tn_array *a, const int64_t **stride)
{
    tn_status st;

    if (!a || !stride)
        return api_null(__func__, "a or stride");
    if (!(st = tni_array_shape_wait(a)))
        *stride = a->stride;
    return st;
}

int32_t tn_array_dtype(const tn_array *a)
{
    return a ? a->dtype : TN_DTYPE_UNKNOWN;
}

int32_t tn_array_storage(const tn_array *a)
{
    return a ? a->storage_type : TN_STORAGE_UNKNOWN;
}

const tn_device *tn_array_device(const tn_array *a)
{
    return a ? (const void *)a->storage->device : NULL;
}

uint64_t tn_array_count(tn_array *a)
{
    return a && !tni_array_shape_wait(a) ? tni_array_count(a) : 0;
}

uint64_t tn_array_bytes(tn_array *a)
{
    return a && !tni_array_shape_wait(a) ? tni_array_bytes(a) : 0;
}

tn_status tn_array_aux(tn_array *a, uint32_t index, tn_array **out)
{
    if (!a || !out)
        return api_null(__func__, "a or out");
    if (index >= 2 || !a->aux[index])
        return tni_error(TN_E_ARG, "the array has no index array %u", index);
    tni_array_retain(a->aux[index]);
    *out = a->aux[index];
    return TN_OK;
}

tn_status tn_array_values(tn_array *a, tn_array **out)
{
    if (!a || !out)
        return api_null(__func__, "a or out");
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_array_values(a, out);
    tni_array_retain(a);
    *out = a;
    return TN_OK;
}

/* Of an operator that makes one array. */
static tn_status one_made(tn_ctx *ctx, const char *op, const char *attr, const char *text, uint32_t in_count,
                          tn_array *const *in, tn_array **out)
{
    tn_array *made = NULL;
    const tn_status st = tni_invoke_text(ctx, op, in_count, in, attr ? 1 : 0, &attr, &text, 1, &made, NULL);

    if (!st)
        *out = made;
    return st;
}

tn_status tn_array_to_storage(tn_ctx *ctx, tn_array *a, int32_t storage, tn_array **out)
{
    tn_status st;

    if (!ctx || !a || !out)
        return api_null(__func__, "ctx, a or out");
    if ((st = api_arrays(__func__, ctx, 1, &a)))
        return st;
    if (storage < TN_STORAGE_DENSE || storage > TN_STORAGE_CSR)
        return tni_error(TN_E_ARG, "%d is no storage type", storage);
    return one_made(ctx, "cast_storage", "stype",
                    storage == TN_STORAGE_DENSE ? "default" : tni_storage_type_name(storage), 1, &a, out);
}

tn_status tn_array_retain_rows(tn_ctx *ctx, tn_array *a, tn_array *ids, tn_array **out)
{
    tn_array *const in[] = {a, ids};
    tn_status st;

    if (!ctx || !a || !ids || !out)
        return api_null(__func__, "ctx, a, ids or out");
    if ((st = api_arrays(__func__, ctx, 2, in)))
        return st;
    if (a->storage_type != TN_STORAGE_ROW_SPARSE)
        return tni_error(TN_E_ARG, "rows are kept of row_sparse arrays, not of %s ones",
                         tni_storage_type_name(a->storage_type));
    return one_made(ctx, "_sparse_retain", NULL, NULL, 2, in, out);
}

/* ---- values -------------------------------------------------------------------------------------- */

tn_status tn_array_read(tn_array *a, void *data, uint64_t bytes)
{
    if (!a || (!data && bytes))
        return api_null(__func__, "a or data");
    return tni_array_read(a, data ? data : &bytes, bytes);
}

tn_status tn_array_write(tn_array *a, const void *data, uint64_t bytes)
{
    if (!a || (!data && bytes))
        return api_null(__func__, "a or data");
    return tni_array_write(a, data ? data : "", bytes);
}

tn_status tn_array_scalar(tn_array *a, double *value)
{
    uint64_t bytes[1];
    tn_status st;

    if (!a || !value)
        return api_null(__func__, "a or value");
    if ((st = tni_array_shape_wait(a)))
        return st;
    if (tni_array_count(a) != 1)
        return tni_error(TN_E_SHAPE, "an array of %llu elements has no single value",
                         (unsigned long long)tni_array_count(a));
    if (!(st = tni_array_read(a, bytes, tni_array_bytes(a))))
        tni_cast(bytes, a->dtype, 1, value, TN_F64, 1, 1);
    return st;
}

tn_status tn_array_fill(tn_array *a, double value)
{
    return a ? tni_array_fill(a, value) : api_null(__func__, "a");
}

tn_status tn_array_copy(tn_array *src, tn_array *dst)
{
    if (!src || !dst)
        return api_null(__func__, "src or dst");
    if (src->storage->space != dst->storage->space)
        return tni_error(TN_E_ARG, "src and dst belong to two contexts");
    return tni_array_copy(src, dst);
}

static tn_status copy_make(tn_ctx *ctx, tn_array *a, tni_device *d, int32_t dtype, tn_array **out)
{
    tni_array *made = NULL;
    tn_status st;

    if ((st = tni_array_shape_wait(a)))
        return st;
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED,
                         "a sparse array is not copied as a whole: copy its values and indices");
    if ((st = tni_array_create(ctx->space, d, dtype, a->ndim, a->shape, "array", &made)))
        return st;
    if ((st = tni_array_copy(a, made)))
        tni_array_release(made);
    else
        *out = made;
    return st;
}

tn_status tn_array_to(tn_ctx *ctx, tn_array *a, const tn_device *device, tn_array **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !a || !out)
        return api_null(__func__, "ctx, a or out");
    d = a->storage->device;
    if ((st = api_arrays(__func__, ctx, 1, &a)) || (device && (st = api_device(ctx, device, &d))))
        return st;
    return copy_make(ctx, a, d, a->dtype, out);
}

tn_status tn_array_cast(tn_ctx *ctx, tn_array *a, int32_t dtype, tn_array **out)
{
    tn_status st;

    if (!ctx || !a || !out)
        return api_null(__func__, "ctx, a or out");
    if ((st = api_arrays(__func__, ctx, 1, &a)))
        return st;
    return copy_make(ctx, a, a->storage->device, dtype, out);
}

tn_status tn_array_wait(tn_array *a)
{
    return a ? tni_array_wait(a) : api_null(__func__, "a");
}

tn_status tn_array_wait_write(tn_array *a)
{
    return a ? tni_array_wait_write(a) : api_null(__func__, "a");
}

/* Memory that nobody wrote yet is made now, with zeros. */
static tn_status data_make(tn_array *a)
{
    if (a->storage->device->host)
        return tni_storage_touch(a->storage, NULL);
    return tni_array_fill(a, 0.0) || tni_array_wait(a) ? tn_error_code() : TN_OK;
}

tn_status tn_array_data(tn_array *a, void **data)
{
    tn_status st;

    if (!a || !data)
        return api_null(__func__, "a or data");
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "a sparse array has no single address: take tn_array_values");
    if (!a->storage->device->host && !a->storage->device->host_addressable &&
        a->storage->memory == TN_MEMORY_DEVICE)
        return tni_error(TN_E_UNSUPPORTED, "memory of %s:%d is not addressable by the host",
                         a->storage->device->type, a->storage->device->index);
    if ((st = tni_array_wait(a)) || (tni_array_count(a) && !tni_array_data(a) && (st = data_make(a))))
        return st;
    *data = tni_array_count(a) ? tni_array_data(a) : NULL;
    return TN_OK;
}

/* ---- views --------------------------------------------------------------------------------------- */

tn_status tn_array_reshape(tn_array *a, int32_t ndim, const int64_t *shape, tn_array **out)
{
    int64_t full[TN_NDIM_MAX];
    uint64_t known = 1;
    int32_t open = -1;
    tn_status st;

    if (!a || !out)
        return api_null(__func__, "a or out");
    if ((st = shape_given(__func__, ndim, shape)) || (st = tni_array_shape_wait(a)))
        return st;
    if (ndim < 0 || ndim > TN_NDIM_MAX)
        return tni_error(TN_E_SHAPE, "%d dimensions, at most %d are possible", ndim, TN_NDIM_MAX);
    for (int32_t i = 0; i < ndim; i++) {
        full[i] = shape[i];
        if (shape[i] == -1 && open < 0)
            open = i;
        else if (shape[i] < 0)
            return tni_error(TN_E_SHAPE, "dimension %d is %lld", i, (long long)shape[i]);
        else if (!tni_size_mul(known, (uint64_t)shape[i], &known))
            return tni_error(TN_E_SHAPE, "a shape of more elements than can be counted");
    }
    if (open >= 0) {
        const uint64_t count = tni_array_count(a);

        if (!known || count % known)
            return tni_error(TN_E_SHAPE, "no dimension %d makes %llu elements of the others", open,
                             (unsigned long long)count);
        full[open] = (int64_t)(count / known);
    }
    return tni_array_reshape(a, ndim, full, out);
}

tn_status tn_array_slice(tn_array *a, int64_t begin, int64_t end, tn_array **out)
{
    tn_status st;

    if (!a || !out)
        return api_null(__func__, "a or out");
    if ((st = tni_array_shape_wait(a)))
        return st;
    if (a->ndim > 0 && begin < 0)
        begin += a->shape[0];
    if (a->ndim > 0 && end < 0)
        end += a->shape[0];
    return tni_array_slice(a, begin, end, out);
}

tn_status tn_array_at(tn_array *a, int64_t index, tn_array **out)
{
    tn_status st;

    if (!a || !out)
        return api_null(__func__, "a or out");
    if ((st = tni_array_shape_wait(a)))
        return st;
    return tni_array_at(a, a->ndim > 0 && index < 0 ? index + a->shape[0] : index, out);
}

tn_status tn_array_view(tn_array *a, uint64_t offset, int32_t ndim, const int64_t *shape,
                        const int64_t *stride, tn_array **out)
{
    tn_status st;

    if (!a || !out)
        return api_null(__func__, "a or out");
    if ((st = shape_given(__func__, ndim, shape)))
        return st;
    return tni_array_view(a, offset, ndim, shape, stride, out);
}

tn_status tn_array_detach(tn_array *a, tn_array **out)
{
    if (!a || !out)
        return api_null(__func__, "a or out");
    return tni_array_detach(a, out);
}

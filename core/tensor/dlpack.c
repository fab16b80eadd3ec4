/*
 * DLPack: lends arrays to other libraries and borrows theirs, without a copy.
 *
 * A lent array keeps a reference until the other side calls the deleter. A borrowed one is checked whole
 * before it is taken: on a refusal the capsule still belongs to the caller. Host memory only.
 */
#include "tensor/dlpack.h"

#include "tensor/internal.h"

typedef struct lent {
    union {
        DLManagedTensor legacy;
        DLManagedTensorVersioned versioned;
    } managed;
    tni_array *array;
    int64_t dims[2 * TN_NDIM_MAX]; /* the array's own may go before the other side is done */
} lent;

static const DLDataType types[TN_I4] = {
    {TNI_DL_FLOAT, 32, 1},  {TNI_DL_FLOAT, 64, 1}, {TNI_DL_FLOAT, 16, 1}, {TNI_DL_UINT, 8, 1},
    {TNI_DL_INT, 32, 1},    {TNI_DL_INT, 8, 1},    {TNI_DL_INT, 64, 1},   {TNI_DL_BOOL, 8, 1},
    {TNI_DL_INT, 16, 1},    {TNI_DL_UINT, 16, 1},  {TNI_DL_UINT, 32, 1},  {TNI_DL_UINT, 64, 1},
    {TNI_DL_BFLOAT, 16, 1},
};

static void lent_free(lent *l)
{
    tni_array_release(l->array);
    tni_free(l);
}

static void delete_legacy(DLManagedTensor *m)
{
    if (m)
        lent_free(m->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *m)
{
    if (m)
        lent_free(m->manager_ctx);
}

/* Waits for the value, and, for a writer, for its readers. */
static tn_status lend(tni_array *a, bool writable, lent **out)
{
    lent *l;
    tn_status st;

    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "DLPack has no sparse arrays");
    if (tni_dtype_packed(a->dtype))
        return tni_error(TN_E_UNSUPPORTED, "an array of %s is not lent by DLPack: cast it first",
                         tni_dtype_name(a->dtype));
    if (!a->storage->device->host)
        return tni_error(TN_E_UNSUPPORTED,
                         "an array on %s:%d cannot be lent by DLPack: copy it to the host first",
                         a->storage->device->type, a->storage->device->index);
    if (writable && !tni_array_writable(a))
        return tni_error(TN_E_STATE, "the array is memory of others that is read only");
    if ((st = tni_array_shape_wait(a)) || (st = writable ? tni_array_wait_write(a) : tni_array_wait(a)) ||
        (st = tni_storage_touch(a->storage, NULL)))
        return st;
    l = tni_zalloc(sizeof *l);
    if (!l)
        return TN_E_NOMEM;
    tni_array_retain(a);
    l->array = a;
    if (writable)
        __atomic_or_fetch(&a->storage->flags, TNI_STORAGE_LENT, __ATOMIC_RELAXED);
    *out = l;
    return TN_OK;
}

static void describe(lent *l, DLTensor *t)
{
    const tni_array *a = l->array;

    for (int32_t i = 0; i < a->ndim; i++) {
        l->dims[i] = a->shape[i];
        l->dims[a->ndim + i] = a->stride[i];
    }
    *t = (DLTensor){.data = tni_array_data(a),
                    .device_type = TNI_DL_CPU,
                    .ndim = a->ndim,
                    .dtype = types[a->dtype],
                    .shape = l->dims,
                    .strides = l->dims + a->ndim};
}

tn_status tni_dlpack_export(tni_array *a, bool writable, DLManagedTensorVersioned **out)
{
    lent *l;
    tn_status st = lend(a, writable, &l);

    if (st)
        return st;
    l->managed.versioned = (DLManagedTensorVersioned){.major = TNI_DL_MAJOR,
                                                      .minor = TNI_DL_MINOR,
                                                      .manager_ctx = l,
                                                      .deleter = delete_versioned,
                                                      .flags = writable ? 0 : TNI_DL_READ_ONLY};
    describe(l, &l->managed.versioned.dl_tensor);
    *out = &l->managed.versioned;
    return TN_OK;
}

tn_status tni_dlpack_export_legacy(tni_array *a, DLManagedTensor **out)
{
    lent *l;
    tn_status st = lend(a, true, &l); /* the old struct cannot say "read only" */

    if (st)
        return st;
    l->managed.legacy = (DLManagedTensor){.manager_ctx = l, .deleter = delete_legacy};
    describe(l, &l->managed.legacy.dl_tensor);
    *out = &l->managed.legacy;
    return TN_OK;
}

static tn_status dtype_of(DLDataType t, int32_t *out)
{
    for (int32_t i = 0; i < TN_I4; i++)
        if (t.code == types[i].code && t.bits == types[i].bits && t.lanes == 1) {
            *out = i;
            return TN_OK;
        }
    return tni_error(TN_E_DTYPE, "a DLPack tensor of type code %u, %u bits, %u lanes has no data type here",
                     t.code, t.bits, t.lanes);
}

/* Everything that the other side says, before any of it is used. */
static tn_status borrow(tni_space *s, const DLTensor *t, void (*release)(void *), void *arg, tni_array **out)
{
    tni_device *host;
    uint64_t count, extent, bytes;
    int32_t dtype = TN_DTYPE_UNKNOWN;
    tn_status st;

    if (t->device_type != TNI_DL_CPU)
        return tni_error(TN_E_UNSUPPORTED, "a DLPack tensor of device type %d: only host memory (1) is taken",
                         t->device_type);
    if ((st = dtype_of(t->dtype, &dtype)))
        return st;
    if (t->ndim < 0 || t->ndim > TN_NDIM_MAX)
        return tni_error(TN_E_SHAPE, "a DLPack tensor of %d dimensions, but an array has 0 to %d", t->ndim,
                         TN_NDIM_MAX);
    if (t->ndim > 0 && !t->shape)
        return tni_error(TN_E_ARG, "a DLPack tensor of %d dimensions without a shape", t->ndim);
    if ((st = tni_shape_check(dtype, t->ndim, t->shape, &count)))
        return st;
    extent = count;
    if (t->strides && (st = tni_extent(t->ndim, t->shape, t->strides, &extent)))
        return st;
    if (!tni_size_mul(extent, tn_dtype_bytes(dtype), &bytes) || t->byte_offset > TN_SIZE_MAX ||
        (uintptr_t)t->data > UINTPTR_MAX - t->byte_offset ||
        (uintptr_t)t->data + t->byte_offset > UINTPTR_MAX - bytes)
        return tni_error(TN_E_ARG, "a DLPack tensor that reaches beyond the end of memory");
    if (bytes && !t->data)
        return tni_error(TN_E_ARG, "a DLPack tensor of %llu elements without data",
                         (unsigned long long)count);
    if ((st = tni_device_get(s->devices, "cpu", 0, &host)))
        return st;
    return tni_array_wrap(s, host, t->data ? (char *)t->data + t->byte_offset : NULL, bytes, dtype, t->ndim,
                          t->shape, t->strides, release, arg, out);
}

static void give_back_versioned(void *arg)
{
    DLManagedTensorVersioned *m = arg;

    if (m->deleter)
        m->deleter(m);
}

static void give_back_legacy(void *arg)
{
    DLManagedTensor *m = arg;

    if (m->deleter)
        m->deleter(m);
}

tn_status tni_dlpack_import(tni_space *s, DLManagedTensorVersioned *m, tni_array **out)
{
    tn_status st;

    if (!m)
        return tni_error(TN_E_ARG, "no DLPack tensor");
    if (m->major != TNI_DL_MAJOR)
        return tni_error(TN_E_UNSUPPORTED, "a DLPack tensor of version %u.%u, but only %u.x is read",
                         m->major, m->minor, TNI_DL_MAJOR);
    st = borrow(s, &m->dl_tensor, give_back_versioned, m, out);
    if (!st && m->flags & TNI_DL_READ_ONLY)
        (*out)->storage->flags |= TNI_STORAGE_READ_ONLY;
    return st;
}

tn_status tni_dlpack_import_legacy(tni_space *s, DLManagedTensor *m, tni_array **out)
{
    return m ? borrow(s, &m->dl_tensor, give_back_legacy, m, out) : tni_error(TN_E_ARG, "no DLPack tensor");
}

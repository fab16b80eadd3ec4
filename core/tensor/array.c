/*
 * Arrays and storages: how they come and go.
 *
 * A whole block is array + storage + small data. The array's references are those of its users; when they are
 * gone the array gives up its one reference on its storage. The storage's references are arrays and queued
 * operations; when they are gone so is the block, for the array in the same block is then dead already. Views
 * have blocks of their own without a storage. Nothing waits here: whoever has an operation queued holds a
 * reference.
 */
#include <assert.h>

#include "tensor/internal.h"

#define EMPTY_DATA_BYTES TNI_SMALL_BYTES /* storages up to this need no pool */

/* ---- spaces ------------------------------------------------------------------------------------------ */

tn_status tni_space_create(tni_engine *engine, tni_device_set *devices, tni_space **out)
{
    tni_space *s = tni_zalloc(sizeof *s);

    if (!s || tni_keep_create(TN_KEPT_BYTES_MAX, &s->keep)) {
        tni_free(s);
        return TN_E_NOMEM;
    }
    s->engine = engine;
    s->devices = devices;
    s->slot = tni_cache_slot_take();
    s->calls = tni_cache_calls(s->slot);
    *out = s;
    return TN_OK;
}

void tni_space_live(const tni_space *s, uint64_t *arrays, uint64_t *storages)
{
    uint64_t a, b;

    tni_cache_live(s->slot, &a, &b);
    if (arrays)
        *arrays = a;
    if (storages)
        *storages = b;
}

uint64_t tni_space_calls(const tni_space *s)
{
    return tni_cache_calls(s->slot) - s->calls;
}

void tni_space_destroy(tni_space *s)
{
    uint64_t arrays, storages;

    if (!s)
        return;
    tni_space_live(s, &arrays, &storages);
    tni_cache_trim();
    tni_keep_trim(s->keep);
    if (arrays || storages) {
        atomic_store(&s->closed, true); /* late releases still find their counters: the space stays */
        return;
    }
    tni_cache_slot_give(s->slot);
    tni_keep_destroy(s->keep);
    tni_free(s);
}

/* ---- shapes ------------------------------------------------------------------------------------------ */

tn_status tni_shape_check(int32_t dtype, int32_t ndim, const int64_t *shape, uint64_t *count)
{
    uint64_t n = 1, widest = 1, bytes;

    if (tn_dtype_bytes(dtype) == 0)
        return tni_error(TN_E_DTYPE, "%d is no data type", dtype);
    if (ndim < 0 || ndim > TN_NDIM_MAX)
        return tni_error(TN_E_SHAPE, "%d dimensions, but an array has 0 to %d", ndim, TN_NDIM_MAX);
    for (int32_t i = 0; i < ndim; i++) {
        uint64_t dim = (uint64_t)shape[i];

        if (shape[i] < 0)
            return tni_error(TN_E_SHAPE, "dimension %d is %lld", i, (long long)shape[i]);
        if (!tni_size_mul(widest, dim ? dim : 1, &widest)) /* without zeros: strides must fit too */
            return tni_error(TN_E_SHAPE, "a shape of %d dimensions has too many elements", ndim);
        n *= dim;
    }
    if (!tni_size_mul(widest, tn_dtype_bytes(dtype), &bytes))
        return tni_error(TN_E_SHAPE, "a shape of %d dimensions has too many bytes", ndim);
    *count = n;
    return TN_OK;
}

tn_status tni_extent(int32_t ndim, const int64_t *shape, const int64_t *stride, uint64_t *out)
{
    uint64_t extent = 1, span;

    for (int32_t i = 0; i < ndim; i++)
        if (shape[i] == 0) {
            *out = 0;
            return TN_OK;
        }
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0 || stride[i] < 0)
            return tni_error(TN_E_SHAPE, "dimension %d is %lld with stride %lld: both must be at least 0", i,
                             (long long)shape[i], (long long)stride[i]);
        if (!tni_size_mul((uint64_t)shape[i] - 1, (uint64_t)stride[i], &span) ||
            !tni_size_add(extent, span, &extent))
            return tni_error(TN_E_SHAPE, "the strides of %d dimensions reach too far", ndim);
    }
    *out = extent;
    return TN_OK;
}

int64_t tni_row_major(int32_t ndim, const int64_t *shape, int64_t *stride)
{
    int64_t step = 1, count = 1;

    for (int32_t i = ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= shape[i] > 0 ? shape[i] : 1;
        count *= shape[i] < 0 ? 1 : shape[i];
    }
    return count;
}

bool tni_is_row_major(int32_t ndim, const int64_t *shape, const int64_t *stride)
{
    int64_t step = 1;

    for (int32_t i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0)
            return true;
        if (shape[i] != 1 && stride[i] != step)
            return false;
        step *= shape[i] > 0 ? shape[i] : 1; /* as tni_row_major has it: a size may be open */
    }
    return true;
}

tn_status tni_array_dims(tni_array *a, int32_t ndim, const int64_t *shape, const int64_t *stride)
{
    int64_t *dims = a->inline_dims;

    if (ndim > 4) {
        dims = tni_alloc((uint64_t)ndim * 2 * sizeof *dims);
        if (!dims)
            return TN_E_NOMEM;
        a->flags |= TNI_ARRAY_DIMS;
    }
    a->ndim = ndim;
    a->shape = dims;
    a->stride = dims + ndim;
    for (int32_t i = 0; i < ndim; i++)
        dims[i] = shape[i];
    if (stride)
        for (int32_t i = 0; i < ndim; i++)
            dims[ndim + i] = stride[i];
    else
        (void)tni_row_major(ndim, shape, dims + ndim);
    if (!stride || tni_is_row_major(ndim, shape, stride))
        a->flags |= TNI_ARRAY_CONTIGUOUS;
    return TN_OK;
}

/* ---- arrays ------------------------------------------------------------------------------------------ */

static void array_init(tni_array *a, tni_storage *s, int32_t dtype, uint32_t flags)
{
    tni_ref_init(&a->refs);
    a->flags = flags;
    a->storage = s;
    a->offset = 0;
    a->ndim = 0;
    a->dtype = dtype;
    a->storage_type = TN_STORAGE_DENSE;
    a->grad_turn = 0;
    a->shape = a->stride = a->inline_dims;
    a->aux[0] = a->aux[1] = NULL;
    a->grad_entry = NULL;
    a->grad = NULL;
    a->grad_req = TN_MODE_NONE;
    a->leaf_mark = 0; /* of no walk: an old one of the block may equal a mark to come */
    atomic_init(&a->pending, 0);
}

/* A block with a storage of `bytes`, without dimensions. */
static tni_array *block_create(tni_space *space, tni_device *d, int32_t dtype, uint64_t bytes,
                               const char *owner)
{
    tni_array *a = tni_cache_take(space, false);
    tni_storage *s;

    if (!a)
        return NULL;
    s = &((tni_array_block *)(void *)a)->storage;
    array_init(a, s, dtype, 0);
    tni_ref_init(&s->refs);
    tni_ref_init(&s->kept);
    atomic_init(&s->user, NULL);
    s->flags = 0;
    tni_var_begin(&s->var, space->engine);
    s->space = space;
    s->device = d;
    s->data = NULL;
    s->bytes = bytes;
    s->block.pool = NULL;
    s->external_free = NULL;
    s->refill = NULL;
    s->memory = TN_MEMORY_DEVICE;
    s->owner = owner ? owner : "array";
    if (bytes <= EMPTY_DATA_BYTES && d->host) {
        a->flags |= TNI_ARRAY_SMALL;
        s->flags = TNI_STORAGE_INLINE;
        memset(((tni_array_block *)(void *)a)->small, 0, bytes);
        s->data = ((tni_array_block *)(void *)a)->small;
    }
    return a;
}

tn_status tni_array_create(tni_space *space, tni_device *d, int32_t dtype, int32_t ndim, const int64_t *shape,
                           const char *owner, tni_array **out)
{
    uint64_t count;
    tni_array *a;
    tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (TN_UNLIKELY(st))
        return st;
    a = block_create(space, d, dtype, tn_dtype_size(dtype, count), owner);
    if (TN_UNLIKELY(!a))
        return TN_E_NOMEM;
    st = tni_array_dims(a, ndim, shape, NULL);
    if (TN_UNLIKELY(st)) {
        tni_array_release(a);
        return st;
    }
    *out = a;
    return TN_OK;
}

tn_status tni_array_form_init(tni_array_form *f, tni_device *d, int32_t dtype, int32_t ndim,
                              const int64_t *shape)
{
    uint64_t count;
    const tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (st || ndim > TNI_FORM_NDIM)
        return st ? st : tni_error(TN_E_SHAPE, "a form of %d dimensions", ndim);
    f->device = d;
    f->bytes = tn_dtype_size(dtype, count);
    f->dtype = dtype;
    f->ndim = ndim;
    memset(f->dims, 0, sizeof f->dims);
    memcpy(f->dims, shape, (size_t)ndim * sizeof *shape);
    (void)tni_row_major(ndim, shape, f->dims + ndim);
    return TN_OK;
}

tn_status tni_array_create_as(tni_space *space, const tni_array_form *f, const char *owner, tni_array **out)
{
    tni_array *a = block_create(space, f->device, f->dtype, f->bytes, owner);

    if (TN_UNLIKELY(!a))
        return TN_E_NOMEM;
    a->flags |= TNI_ARRAY_CONTIGUOUS;
    a->ndim = f->ndim;
    a->stride = a->inline_dims + f->ndim;
    memcpy(a->inline_dims, f->dims, sizeof f->dims);
    *out = a;
    return TN_OK;
}

tn_status tni_array_like(const tni_array *a, const char *owner, tni_array **out)
{
    return tni_array_create(a->storage->space, a->storage->device, a->dtype, a->ndim, a->shape, owner, out);
}

tn_status tni_array_filled(const tni_array *a, double value, const char *owner, tni_array **out)
{
    tni_array *made = NULL;
    tn_status st;

    if ((st = tni_array_like(a, owner, &made)) || (st = tni_array_fill(made, value)))
        tni_array_release(made);
    else
        *out = made;
    return st;
}

tn_status tni_array_create_pending(tni_space *space, tni_device *d, int32_t dtype, tni_array **out)
{
    tni_array *a;

    if (tn_dtype_bytes(dtype) == 0)
        return tni_error(TN_E_DTYPE, "%d is no data type", dtype);
    a = block_create(space, d, dtype, 0, NULL);
    if (!a)
        return TN_E_NOMEM;
    a->flags = 0;
    a->storage->flags = 0;
    a->storage->data = NULL;
    a->ndim = TN_NDIM_UNKNOWN;
    atomic_store_explicit(&a->pending, 1, memory_order_relaxed);
    *out = a;
    return TN_OK;
}

tn_status tni_array_wrap(tni_space *space, tni_device *d, void *data, uint64_t bytes, int32_t dtype,
                         int32_t ndim, const int64_t *shape, const int64_t *stride, void (*release)(void *),
                         void *arg, tni_array **out)
{
    uint64_t count, extent, item = tn_dtype_bytes(dtype);
    tni_array *a;
    tn_status st = tni_shape_check(dtype, ndim, shape, &count);

    if (st)
        return st;
    extent = count;
    if (stride && (st = tni_extent(ndim, shape, stride, &extent)))
        return st;
    if (tni_dtype_packed(dtype) && stride && !tni_is_row_major(ndim, shape, stride))
        return tni_error(TN_E_UNSUPPORTED, "%s shares its bytes: it has no strides", tni_dtype_name(dtype));
    if (tni_dtype_packed(dtype) ? tn_dtype_size(dtype, extent) > bytes : extent > bytes / item)
        return tni_error(TN_E_ARG, "%llu elements of %s reach beyond the %llu bytes given",
                         (unsigned long long)extent, tni_dtype_name(dtype), (unsigned long long)bytes);
    if (extent && (!data || (uintptr_t)data % item))
        return tni_error(TN_E_ARG, "memory of %s must begin at a multiple of %llu bytes",
                         tni_dtype_name(dtype), (unsigned long long)item);
    a = block_create(space, d, dtype, 0, "external");
    if (!a)
        return TN_E_NOMEM;
    if ((st = tni_array_dims(a, ndim, shape, stride))) {
        tni_array_release(a);
        return st;
    }
    if (extent) {
        a->flags &= ~TNI_ARRAY_SMALL;
        a->storage->flags = 0;
        a->storage->data = data;
        a->storage->bytes = bytes;
    }
    a->storage->memory = d->host ? TN_MEMORY_HOST : TN_MEMORY_DEVICE;
    a->storage->external_free = release;
    a->storage->external_arg = arg;
    *out = a;
    return TN_OK;
}

tn_status tni_array_on(tni_storage *s, int32_t dtype, uint64_t offset, int32_t ndim, const int64_t *shape,
                       const int64_t *stride, tni_array **out)
{
    tni_array *a = tni_cache_take(s->space, true);
    tn_status st;

    if (!a)
        return TN_E_NOMEM;
    tni_storage_retain(s);
    array_init(a, s, dtype, TNI_ARRAY_VIEW);
    a->offset = offset;
    st = tni_array_dims(a, ndim, shape, stride);
    if (st) {
        tni_array_release(a);
        return st;
    }
    *out = a;
    return TN_OK;
}

void tni_array_retain(tni_array *a)
{
    tni_ref_retain(&a->refs);
}

void tni_storage_retain(tni_storage *s)
{
    tni_ref_retain(&s->refs);
}

/* One who holds the only reference needs no read-modify-write: nobody else can make it two. */
static inline bool last_reference(tni_refcount *r)
{
    return atomic_load_explicit(&r->count, memory_order_acquire) == 1u || tni_ref_release(r);
}

static inline void block_give(tni_storage *s, tn_stream *stream)
{
    if (s->block.pool && !atomic_load_explicit(&s->space->closed, memory_order_relaxed))
        tni_block_free(&s->block, stream);
}

/* `whole`: with its array, which dies now. */
static inline void storage_free(tni_storage *s, bool whole)
{
    tni_space *space = s->space;

    if (TN_UNLIKELY(!tni_var_is_plain(&s->var)))
        tni_var_fini(&s->var);
    block_give(s, s->block.memory.stream);
    if (s->external_free)
        s->external_free(s->external_arg);
    if (s->refill)
        s->refill->release(s->refill);
    tni_cache_give(space, &tni_block_of_storage(s)->array, false, whole);
}

/* Nobody needs the memory but streams, each up to what it was given by now. */
static void storage_unused(tni_storage *s)
{
    tn_stream *user = atomic_load_explicit(&s->user, memory_order_relaxed);

    if (user && user != TNI_STREAMS_MANY)
        block_give(s, user);
    if (tni_ref_release(&s->kept))
        storage_free(s, false);
}

void tni_storage_release(tni_storage *s)
{
    if (!s || !last_reference(&s->refs))
        return;
    if (TN_LIKELY(tni_ref_count(&s->kept) == 1u))
        storage_free(s, false);
    else
        storage_unused(s);
}

static void stream_note(tni_storage *s, const tni_run *run)
{
    tn_stream *mine = run->device == s->device ? run->stream : TNI_STREAMS_MANY, *none = NULL;

    if (!atomic_compare_exchange_strong(&s->user, &none, mine) && none != mine)
        atomic_store(&s->user, TNI_STREAMS_MANY);
}

void tni_storage_issued(tni_storage *s, const tni_run *run)
{
    if (run->stream)
        stream_note(s, run);
    tni_ref_retain(&s->kept);
    tni_storage_release(s);
}

tni_storage *tni_array_issued(tni_array *a, const tni_run *run)
{
    tni_storage *s = a ? a->storage : NULL;

    if (!a)
        return NULL;
    tni_storage_retain(s);
    tni_array_release(a);
    tni_storage_issued(s, run);
    return s;
}

void tni_storage_complete(tni_storage *s)
{
    if (s && tni_ref_release(&s->kept))
        storage_free(s, false);
}

static void array_parts_release(tni_array *a)
{
    if (a->flags & TNI_ARRAY_DIMS)
        tni_free(a->shape);
    tni_array_release(a->aux[0]);
    tni_array_release(a->aux[1]);
    tni_array_release(a->grad);
    if (a->grad_entry && a->storage->space->grad_release)
        a->storage->space->grad_release(a->grad_entry);
}

void tni_array_release(tni_array *a)
{
    tni_storage *s;
    tni_space *space;

    if (!a || !last_reference(&a->refs))
        return;
    if (TN_UNLIKELY(a->flags & TNI_ARRAY_DIMS || a->aux[0] || a->aux[1] || a->grad || a->grad_entry))
        array_parts_release(a);
    s = a->storage;
    space = s->space;
    if (a->flags & TNI_ARRAY_VIEW) {
        tni_cache_give(space, a, true, true);
    } else if (TN_LIKELY(tni_ref_count(&s->refs) == 1u && tni_ref_count(&s->kept) == 1u)) {
        storage_free(s, true);
        return;
    } else {
        tni_cache_count_array(space, -1);
    }
    tni_storage_release(s);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Memory for `s` in `block`, NULL data for no bytes. */
static tn_status memory_take(tni_storage *s, tn_stream *stream, tni_block *block)
{
    return tni_block_alloc(s->device, s->memory, s->bytes, stream, s->owner, block);
}

static void memory_set(tni_storage *s, const tni_block *block)
{
    /* no bytes: a valid pointer that nobody dereferences */
    void *data = s->bytes ? block->memory.data : (void *)tni_block_of_storage(s)->small;

    s->block = *block;
    __atomic_store_n(&s->data, data, __ATOMIC_RELEASE);
}

static tn_status storage_allocate(tni_storage *s, tn_stream *stream)
{
    tni_block block;
    tn_status st = memory_take(s, stream, &block);

    if (!st)
        memory_set(s, &block);
    return st;
}

tn_status tni_storage_allocate(tni_storage *s, tn_stream *stream)
{
    if (TN_LIKELY(s->data != NULL))
        return TN_OK;
    return s->refill ? tni_storage_touch(s, stream) : storage_allocate(s, stream);
}

/* What nobody wrote reads as zeros on a host. */
static tn_status memory_fill(tni_storage *s, void *data)
{
    if (s->refill)
        return s->refill->read(s->refill, data, s->bytes);
    if (s->device->host && s->bytes)
        memset(data, 0, s->bytes);
    return TN_OK;
}

tn_status tni_storage_touch(tni_storage *s, tn_stream *stream)
{
    static tni_mutex lock = TNI_MUTEX_INIT;
    tni_block block;
    bool late;
    tn_status st;

    if (__atomic_load_n(&s->data, __ATOMIC_ACQUIRE))
        return TN_OK;
    if ((st = memory_take(s, stream, &block))) /* not under the lock: a pool may wait for operations */
        return st;
    if ((st = memory_fill(s, block.memory.data))) {
        tni_block_free(&block, stream);
        return st;
    }
    tni_mutex_lock(&lock);
    late = s->data != NULL;
    if (!late)
        memory_set(s, &block);
    tni_mutex_unlock(&lock);
    if (late)
        tni_block_free(&block, stream);
    return TN_OK;
}

void tni_storage_refillable(tni_storage *s, tni_refill *r)
{
    assert(s->device->host && !s->data && !s->refill);
    s->memory = TNI_MEMORY_APART;
    s->refill = r;
    r->version = tni_var_version(&s->var);
}

void tni_storage_drop(tni_storage *s)
{
    tni_block block;
    if (!s->refill || __atomic_load_n(&s->flags, __ATOMIC_RELAXED) & TNI_STORAGE_LENT ||
        tni_var_version(&s->var) != s->refill->version || !__atomic_load_n(&s->data, __ATOMIC_ACQUIRE))
        return;
    block = s->block; /* nobody else gives it up while the caller holds the variable */
    if (tni_var_take(&s->var, &s->data))
        tni_block_free(&block, NULL);
}

uint64_t tni_array_count(const tni_array *a)
{
    uint64_t n = a->ndim < 0 ? 0 : 1;

    for (int32_t i = 0; i < a->ndim; i++)
        n *= (uint64_t)a->shape[i];
    return n;
}

uint64_t tni_array_bytes(const tni_array *a)
{
    return tn_dtype_size(a->dtype, tni_array_count(a));
}

void tni_array_tensor(const tni_array *a, tn_tensor *t)
{
    tni_array_tensor_now(a, t);
}

tn_status tni_array_shape_wait(tni_array *a)
{
    tn_status st;

    if (TN_LIKELY(!atomic_load_explicit(&a->pending, memory_order_acquire)))
        return TN_OK;
    st = tni_engine_wait_read(a->storage->space->engine, &a->storage->var, 0);
    if (!st && atomic_load_explicit(&a->pending, memory_order_acquire))
        st = tni_error(TN_E_STATE, "no operation has given this array its shape");
    return st;
}

static tn_status dims_give(tni_array *a, int32_t ndim, const int64_t *shape)
{
    uint64_t count;
    tn_status st = tni_shape_check(a->dtype, ndim, shape, &count);

    if (st)
        return st;
    if (!atomic_load_explicit(&a->pending, memory_order_relaxed))
        return tni_error(TN_E_STATE, "the array has its shape already");
    if (!(st = tni_array_dims(a, ndim, shape, NULL)))
        a->storage->bytes = tn_dtype_size(a->dtype, count);
    return st;
}

tn_status tni_array_settle(tni_array *a, int32_t ndim, const int64_t *shape)
{
    const tn_status st = dims_give(a, ndim, shape);

    if (!st)
        atomic_store_explicit(&a->pending, 0, memory_order_release);
    return st;
}

tn_status tni_array_resolve(tni_array *a, int32_t ndim, const int64_t *shape, tn_stream *stream)
{
    tni_storage *s = a->storage;
    tn_status st = dims_give(a, ndim, shape);

    if (st)
        return st;
    if ((st = storage_allocate(s, stream))) {
        if (a->flags & TNI_ARRAY_DIMS)
            tni_free(a->shape);
        a->flags = 0;
        a->ndim = TN_NDIM_UNKNOWN;
        s->bytes = 0;
        return st;
    }
    atomic_store_explicit(&a->pending, 0, memory_order_release);
    return TN_OK;
}

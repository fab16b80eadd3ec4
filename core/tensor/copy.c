/*
 * Copies, reads, writes and fills, as operations of the engine.
 *
 * A *leg* is one operation: host to host (any dtypes and strides), the bytes of two contiguous arrays of one
 * dtype by a device's `copy`, or two arrays of one device by a kernel of it (any dtypes and strides).
 * Whatever else is asked is cut into legs with dense arrays between: on the device where it has a kernel,
 * else on the host. Each leg names the variables that it touches, so their order needs no further care.
 * Arrays live until their leg is done.
 */
#include "tensor/internal.h"

#define INLINE_BYTES 16384 /* a copy up to this may run on the caller */

typedef struct leg_task {
    tni_kernel_move move; /* its arrays are retained; src may be NULL; both once it was issued to a stream */
    tni_storage *sent[2]; /* theirs, from then on */
    const void *data;     /* of a write: borrowed, its caller waits */
} leg_task;

static tni_engine *engine_of(const tni_array *a)
{
    return a->storage->space->engine;
}

static bool on_host(const tni_array *a)
{
    return a->storage->device->host;
}

static tn_status dense(const tni_array *a)
{
    return a->storage_type == TN_STORAGE_DENSE
               ? TN_OK
               : tni_error(TN_E_UNSUPPORTED, "sparse arrays are not copied as a whole");
}

static tn_status writable(const tni_array *a)
{
    return tni_array_writable(a) ? TN_OK
                                 : tni_error(TN_E_STATE, "the array is memory of others that is read only");
}

/* ---- bodies ------------------------------------------------------------------------------------------ */

static bool overlap(const tni_array *a, const tni_array *b)
{
    uint64_t a_extent = 0, b_extent = 0, a_item = tn_dtype_bytes(a->dtype), b_item = tn_dtype_bytes(b->dtype);

    if (a->storage != b->storage || tni_extent(a->ndim, a->shape, a->stride, &a_extent) ||
        tni_extent(b->ndim, b->shape, b->stride, &b_extent))
        return false;
    return a->offset * a_item < (b->offset + b_extent) * b_item &&
           b->offset * b_item < (a->offset + a_extent) * a_item;
}

/* Through memory between, row-major: what is read may be what is overwritten. */
static tn_status copy_overlapping(const tn_tensor *src, const tn_tensor *dst, uint64_t bytes)
{
    int64_t stride[TN_NDIM_MAX];
    tn_tensor between = *src;
    int64_t step = 1;

    between.data = tni_alloc(bytes);
    if (!between.data)
        return TN_E_NOMEM;
    for (int32_t i = src->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= src->shape[i];
    }
    between.stride = stride;
    tni_copy_strided(src, &between);
    tni_copy_strided(&between, dst);
    tni_free(between.data);
    return TN_OK;
}

static tn_status copy_host(tni_array *src, tni_array *dst)
{
    tn_tensor from, to;
    tn_status st = tni_storage_touch(src->storage, NULL);

    if (st || (st = tni_storage_allocate(dst->storage, NULL)))
        return st;
    tni_array_tensor(src, &from);
    tni_array_tensor(dst, &to);
    if (src->storage == dst->storage && overlap(src, dst))
        return copy_overlapping(&from, &to, tni_array_bytes(src));
    if (tni_array_contiguous(src) && tni_array_contiguous(dst))
        tni_cast(from.data, from.dtype, 1, to.data, to.dtype, 1, tn_tensor_count(&from));
    else
        tni_copy_strided(&from, &to);
    return TN_OK;
}

static tn_place place_of(const tni_array *a)
{
    const tni_device *d = a->storage->device;

    return (tn_place){.data = tni_array_data(a),
                      .device = d->host ? -1 : d->index,
                      .memory = d->host ? TN_MEMORY_HOST : a->storage->memory,
                      .type = d->host ? NULL : d->type};
}

static tn_status copy_device(tni_array *src, tni_array *dst, tni_run *run)
{
    tn_place from, to;
    tn_err err = {.code = TN_OK};
    tn_status st = tni_storage_touch(src->storage, on_host(src) ? NULL : run->stream);

    if (st || (st = tni_storage_allocate(dst->storage, on_host(dst) ? NULL : run->stream)))
        return st;
    from = place_of(src);
    to = place_of(dst);
    st = run->device->ops->copy(run->stream, &to, &from, tni_array_bytes(src), &err);
    return st ? tni_error_take(st, &err, run->device->type) : TN_OK;
}

static tn_status run_kernel(leg_task *t, tni_run *run)
{
    tn_err err = {.code = TN_OK};
    tn_status st = t->move.src ? tni_storage_touch(t->move.src->storage, run->stream) : TN_OK;

    if (st || (st = tni_storage_allocate(t->move.dst->storage, run->stream)))
        return st;
    st = tni_kernel_move_run(&t->move, run, &err);
    return st ? tni_error_take(st, &err, run->device->type) : TN_OK;
}

static tn_status fill_host(tni_array *dst, double value)
{
    static const int64_t still[TN_NDIM_MAX];
    uint64_t item = 0;
    tn_tensor from = {.data = &item, .stride = still, .dtype = dst->dtype}, to;
    tn_status st = tni_storage_allocate(dst->storage, NULL);

    if (st)
        return st;
    tni_array_tensor(dst, &to);
    tni_cast(&value, TN_F64, 1, &item, dst->dtype, 1, 1);
    from.shape = to.shape;
    from.ndim = to.ndim;
    if (item == 0 && tni_array_contiguous(dst))
        memset(to.data, 0, tni_array_bytes(dst));
    else
        tni_copy_strided(&from, &to);
    return TN_OK;
}

static tn_status write_host(tni_array *dst, const void *data)
{
    tn_tensor from = {.data = (void *)(uintptr_t)data, .dtype = dst->dtype}, to;
    int64_t stride[TN_NDIM_MAX], step = 1;
    tn_status st = tni_storage_allocate(dst->storage, NULL);

    if (st)
        return st;
    tni_array_tensor(dst, &to);
    for (int32_t i = to.ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= to.shape[i];
    }
    from.shape = to.shape;
    from.stride = stride;
    from.ndim = to.ndim;
    if (tni_array_contiguous(dst))
        memcpy(to.data, data, tni_array_bytes(dst));
    else
        tni_copy_strided(&from, &to);
    return TN_OK;
}

static tn_status leg_body(leg_task *t, tni_run *run)
{
    if (t->data)
        return write_host(t->move.dst, t->data);
    if (t->move.kernel)
        return run_kernel(t, run);
    if (!t->move.src)
        return fill_host(t->move.dst, t->move.value);
    return run && !run->device->host ? copy_device(t->move.src, t->move.dst, run)
                                     : copy_host(t->move.src, t->move.dst);
}

/* ---- legs as operations ------------------------------------------------------------------------------ */

static tn_status leg_run(void *payload, tni_run *run)
{
    leg_task *t = payload;
    const tn_status st = leg_body(t, run);

    if (st || !run->stream || (t->move.kernel && tni_kernel_moves_late(run)))
        return st;
    t->sent[0] = tni_array_issued(t->move.src, run);
    t->sent[1] = tni_array_issued(t->move.dst, run);
    t->move.src = t->move.dst = NULL;
    return TN_OK;
}

static void leg_done(void *payload, tni_engine *engine, tn_status status)
{
    leg_task *t = payload;

    (void)engine;
    (void)status;
    tni_array_release(t->move.src);
    tni_array_release(t->move.dst);
    tni_storage_complete(t->sent[0]);
    tni_storage_complete(t->sent[1]);
    tni_kernel_move_fini(&t->move);
}

static bool covers_storage(const tni_array *a)
{
    return tni_array_contiguous(a) && tni_array_bytes(a) == a->storage->bytes;
}

/* [takes] its kernel, also on failure. Runs at once if the variables are free and the work is small; else
 * queues it on `device`. */
static tn_status leg_start(leg_task *t, tni_device *device, const char *name)
{
    tni_engine *engine = engine_of(t->move.dst);
    tni_var *write = tni_array_var(t->move.dst), *read = t->move.src ? tni_array_var(t->move.src) : NULL;
    const uint64_t bytes = tni_array_bytes(t->move.dst), est_ns = 50 + bytes / 4;
    const uint32_t reads = read && read != write;
    tni_task task = {.run = leg_run,
                     .done = leg_done,
                     .payload = t,
                     .payload_bytes = sizeof *t,
                     .reads = &read,
                     .writes = &write,
                     .read_count = reads,
                     .write_count = 1,
                     .device = device,
                     .name = name,
                     .est_ns = est_ns};
    tn_status st;

    if (device->host && bytes <= INLINE_BYTES && est_ns <= tni_engine_inline_ns(engine) &&
        tni_engine_enter(engine, &read, reads, &write, 1)) {
        st = leg_body(t, NULL);
        tni_engine_leave(engine, &read, reads, &write, 1, st, name);
        return TN_OK; /* a failure comes out at the wait, as if it had been queued */
    }
    if (covers_storage(t->move.dst) && read != write)
        task.flags |= TNI_TASK_CLEARS;
    if (t->move.src && t->move.src->storage->device != t->move.dst->storage->device)
        task.lane = device == t->move.dst->storage->device ? TNI_LANE_IN : TNI_LANE_OUT;
    if (t->move.src)
        tni_array_retain(t->move.src);
    tni_array_retain(t->move.dst);
    st = tni_engine_push(engine, &task);
    if (st) {
        tni_array_release(t->move.src);
        tni_array_release(t->move.dst);
        tni_kernel_move_fini(&t->move);
    }
    return st;
}

static tn_status copy_leg(tni_array *src, tni_array *dst, tni_device *device)
{
    leg_task t = {.move = {.src = src, .dst = dst}};

    return leg_start(&t, device, "_copy");
}

/* ---- copies without the host ------------------------------------------------------------------------- */

/* The device whose `copy` moves these bytes; NULL: none, they go through host memory. */
static tni_device *runner_of(const tni_array *src, const tni_array *dst)
{
    tni_device *s = src->storage->device, *d = dst->storage->device;

    if (d->host)
        return s;
    if (s->host || s == d)
        return d;
    if (s->type_id == d->type_id && d->ops->head.struct_size >= TN_END(tn_device_ops, peer) && d->ops->peer &&
        d->ops->peer(d->handle, s->index) == 1)
        return d;
    return NULL;
}

static bool apart(const tni_array *src, const tni_array *dst)
{
    return src->storage != dst->storage || !overlap(src, dst);
}

/* In one operation. *done stays false: neither a device's copy nor a kernel can. */
static tn_status copy_direct(tni_array *src, tni_array *dst, bool *done)
{
    tni_device *runner = runner_of(src, dst);
    leg_task t = {.move = {.src = src, .dst = dst}};
    tn_status st = TN_OK;

    if (!apart(src, dst))
        return TN_OK;
    if (runner && tni_array_contiguous(src) && tni_array_contiguous(dst) && src->dtype == dst->dtype) {
        *done = true;
        return copy_leg(src, dst, runner);
    }
    if (on_host(dst) || src->storage->device != dst->storage->device ||
        (st = tni_kernel_move_find(&t.move)) || !t.move.kernel)
        return st;
    *done = true;
    return leg_start(&t, dst->storage->device, "_move");
}

static tn_status between_create(const tni_array *like, tni_device *device, int32_t dtype, tni_array **out)
{
    return tni_array_create(like->storage->space, device, dtype, like->ndim, like->shape, "copy", out);
}

/* Queues a copy of `src` into a new dense array of `dtype` on its device. *out NULL: the device cannot. */
static tn_status to_dense(tni_array *src, int32_t dtype, tni_array **out)
{
    bool done = false;
    tn_status st;

    *out = NULL;
    if (on_host(src))
        return TN_OK;
    if ((st = between_create(src, src->storage->device, dtype, out)))
        return st;
    st = copy_direct(src, *out, &done);
    if (st || !done) {
        tni_array_release(*out);
        *out = NULL;
    }
    return st;
}

/* To a strided array on a device: a dense array there gets the elements, and a kernel copies them on. *done
 * stays false: there is no kernel. */
static tn_status copy_spread(tni_array *src, tni_array *dst, bool *done)
{
    tni_array *between = NULL;
    leg_task t = {.move = {.dst = dst}};
    tn_status st;

    if (on_host(dst) || tni_array_contiguous(dst))
        return TN_OK;
    if ((st = between_create(dst, dst->storage->device, dst->dtype, &between)))
        return st;
    t.move.src = between;
    if (!(st = tni_kernel_move_find(&t.move)) && t.move.kernel) {
        *done = true;
        if ((st = tni_array_copy(src, between)))
            tni_kernel_move_fini(&t.move);
        else
            st = leg_start(&t, dst->storage->device, "_move");
    }
    tni_array_release(between);
    return st;
}

/* In several operations, with dense arrays on devices between. *done stays false: a kernel is missing. */
static tn_status copy_on_devices(tni_array *src, tni_array *dst, bool *done)
{
    tni_array *between = NULL;
    tn_status st = TN_OK;

    if (!tni_array_contiguous(src) || src->dtype != dst->dtype || !apart(src, dst))
        st = to_dense(src, dst->dtype, &between);
    if (between) {
        *done = true;
        st = tni_array_copy(between, dst);
        tni_array_release(between);
        return st;
    }
    return st ? st : copy_spread(src, dst, done);
}

/* ---- copies through the host ------------------------------------------------------------------------- */

static tn_status host_of(const tni_array *a, tni_device **out)
{
    return tni_device_get(a->storage->space->devices, "cpu", 0, out);
}

/*
 * A strided array on a device, as the contiguous memory that it spans (`span`, a view), a host array of that
 * size (`between`) and the same strided view of it (`view`).
 */
static tn_status span_create(tni_array *a, tni_device *host, tni_array **span, tni_array **between,
                             tni_array **view)
{
    uint64_t extent;
    int64_t length;
    tn_status st = tni_extent(a->ndim, a->shape, a->stride, &extent);

    length = (int64_t)extent;
    if (st || (st = tni_array_view(a, 0, 1, &length, NULL, span)) ||
        (st = tni_array_create(a->storage->space, host, a->dtype, 1, &length, "copy", between)))
        return st;
    return tni_array_view(*between, 0, a->ndim, a->shape, a->stride, view);
}

/* A host array with what `src` holds: `src` itself, or a copy that is under way. */
static tn_status to_host(tni_array *src, tni_device *host, tni_array **out)
{
    tni_array *span = NULL, *between = NULL, *view = NULL, *packed = NULL;
    tn_status st = TN_OK;

    if (on_host(src)) {
        tni_array_retain(src);
        *out = src;
        return TN_OK;
    }
    if (!tni_array_contiguous(src) && (st = to_dense(src, src->dtype, &packed)))
        return st;
    src = packed ? packed : src;
    if (tni_array_contiguous(src)) {
        if ((st = tni_array_create(src->storage->space, host, src->dtype, src->ndim, src->shape, "copy",
                                   &view)) ||
            (st = copy_leg(src, view, src->storage->device)))
            goto cleanup;
    } else if ((st = span_create(src, host, &span, &between, &view)) ||
               (st = copy_leg(span, between, src->storage->device))) {
        goto cleanup;
    }
    *out = view;
    view = NULL;

cleanup:
    tni_array_release(packed);
    tni_array_release(span);
    tni_array_release(between);
    tni_array_release(view);
    return st;
}

static tn_status from_host(tni_array *src, tni_array *dst, tni_device *host)
{
    tni_device *device = dst->storage->device;
    tni_array *span = NULL, *between = NULL, *view = NULL;
    tn_status st;

    if (device->host)
        return copy_leg(src, dst, device);
    if (tni_array_contiguous(dst) && tni_array_contiguous(src) && src->dtype == dst->dtype)
        return copy_leg(src, dst, device);
    if (tni_array_contiguous(dst)) {
        if ((st = tni_array_create(dst->storage->space, host, dst->dtype, dst->ndim, dst->shape, "copy",
                                   &between)) ||
            (st = copy_leg(src, between, host)) || (st = copy_leg(between, dst, device)))
            goto cleanup;
    } else if ((st = span_create(dst, host, &span, &between, &view)) ||
               (st = copy_leg(span, between, device)) || (st = copy_leg(src, view, host)) ||
               (st = copy_leg(between, span, device))) {
        goto cleanup;
    }

cleanup:
    tni_array_release(span);
    tni_array_release(between);
    tni_array_release(view);
    return st;
}

static tn_status copy_check(tni_array *src, tni_array *dst)
{
    tn_status st;

    if ((st = dense(src)) || (st = dense(dst)) || (st = writable(dst)) || (st = tni_array_shape_wait(src)) ||
        (st = tni_array_shape_wait(dst)))
        return st;
    if (src->storage->space != dst->storage->space)
        return tni_error(TN_E_ARG, "the arrays belong to two contexts");
    if (src->ndim != dst->ndim)
        return tni_error(TN_E_SHAPE, "copy of %d dimensions to %d", src->ndim, dst->ndim);
    for (int32_t i = 0; i < src->ndim; i++)
        if (src->shape[i] != dst->shape[i])
            return tni_error(TN_E_SHAPE, "copy of %lld to %lld in dimension %d", (long long)src->shape[i],
                             (long long)dst->shape[i], i);
    return TN_OK;
}

/* A packed array has no strides, so that what has comes there, or goes from there, by a dense array. */
static tn_status copy_packed(tni_array *src, tni_array *dst)
{
    const bool from = tni_array_contiguous(src);
    tni_array *between = NULL;
    tn_status st = tni_array_like(from ? dst : src, "copy", &between);

    if (!st && !(st = tni_array_copy(src, between)))
        st = tni_array_copy(between, dst);
    tni_array_release(between);
    return st;
}

tn_status tni_array_copy(tni_array *src, tni_array *dst)
{
    tni_array *between = NULL;
    tni_device *host;
    bool done = false;
    tn_status st = copy_check(src, dst);

    if (st)
        return st;
    if ((tni_dtype_packed(src->dtype) || tni_dtype_packed(dst->dtype)) &&
        !(tni_array_contiguous(src) && tni_array_contiguous(dst)))
        return copy_packed(src, dst);
    if (on_host(src) && on_host(dst))
        return copy_leg(src, dst, dst->storage->device);
    if (tni_array_count(dst) == 0)
        return TN_OK;
    if ((st = copy_direct(src, dst, &done)) || done || (st = copy_on_devices(src, dst, &done)) || done)
        return st;
    if ((st = host_of(dst, &host)) || (st = to_host(src, host, &between)))
        return st;
    st = from_host(between, dst, host);
    tni_array_release(between);
    return st;
}

/* ---- reads and writes that wait ---------------------------------------------------------------------- */

static tn_status bytes_check(tni_array *a, uint64_t bytes)
{
    tn_status st = dense(a);

    if (st || (st = tni_array_shape_wait(a)))
        return st;
    if (bytes != tni_array_bytes(a))
        return tni_error(TN_E_ARG, "%llu bytes, but the array has %llu", (unsigned long long)bytes,
                         (unsigned long long)tni_array_bytes(a));
    return TN_OK;
}

static void read_host(tni_array *a, void *out, uint64_t bytes)
{
    tn_tensor from, to;
    int64_t stride[TN_NDIM_MAX], step = 1;

    tni_array_tensor(a, &from);
    if (!from.data) { /* nobody wrote it */
        memset(out, 0, bytes);
        return;
    }
    if (tni_array_contiguous(a)) {
        memcpy(out, from.data, bytes);
        return;
    }
    for (int32_t i = a->ndim - 1; i >= 0; i--) {
        stride[i] = step;
        step *= a->shape[i];
    }
    to = from;
    to.data = out;
    to.stride = stride;
    tni_copy_strided(&from, &to);
}

tn_status tni_array_read(tni_array *a, void *out, uint64_t bytes)
{
    tni_array *local = NULL;
    tni_device *host;
    tn_status st = bytes_check(a, bytes);

    if (st)
        return st;
    if (!on_host(a) && bytes) {
        if ((st = host_of(a, &host)) || (st = to_host(a, host, &local)))
            return st;
        a = local;
    }
    st = tni_array_wait(a);
    if (!st && bytes)
        read_host(a, out, bytes);
    tni_array_release(local);
    return st;
}

tn_status tni_array_write(tni_array *a, const void *data, uint64_t bytes)
{
    tni_array *local = NULL;
    tni_device *host;
    leg_task t = {.move = {.dst = a}, .data = data};
    tn_status st = bytes_check(a, bytes);

    if (st || (st = writable(a)) || bytes == 0)
        return st;
    if (tni_engine_on_worker())
        return tni_error(TN_E_STATE, "an operation may not wait for the engine");
    if (on_host(a))
        return (st = leg_start(&t, a->storage->device, "_write")) ? st : tni_array_wait(a);
    if ((st = host_of(a, &host)) ||
        (st = tni_array_create(a->storage->space, host, a->dtype, a->ndim, a->shape, "copy", &local)))
        return st;
    t.move.dst = local;
    if (!(st = leg_start(&t, host, "_write")) && !(st = tni_array_wait(local)) &&
        !(st = tni_array_copy(local, a)))
        st = tni_array_wait(a);
    tni_array_release(local);
    return st;
}

static tn_status first_write(tni_array *a, const void *data)
{
    const tn_status st = write_host(a, data);

    if (!st)
        tni_var_written(tni_array_var(a));
    return st;
}

tn_status tni_array_first_write(tni_array *a, const void *data, uint64_t bytes)
{
    tni_array *staging = NULL;
    tni_device *host;
    tn_status st = bytes_check(a, bytes);

    if (st || bytes == 0)
        return st;
    if (tni_engine_on_worker())
        return tni_error(TN_E_STATE, "an operation may not wait for the engine");
    if (on_host(a))
        return first_write(a, data);
    if ((st = host_of(a, &host)) ||
        (st = tni_array_create(a->storage->space, host, a->dtype, a->ndim, a->shape, "copy", &staging)))
        return st;
    if (!(st = first_write(staging, data)))
        st = tni_array_copy(staging, a);
    tni_array_release(staging);
    return st;
}

tn_status tni_array_fill(tni_array *a, double value)
{
    leg_task t = {.move = {.dst = a, .value = value}};
    tni_array *local = NULL;
    tni_device *host;
    tn_status st;

    if ((st = dense(a)) || (st = writable(a)) || (st = tni_array_shape_wait(a)))
        return st;
    if (on_host(a))
        return leg_start(&t, a->storage->device, "_fill");
    if (tni_array_count(a) == 0)
        return TN_OK;
    if ((st = tni_kernel_move_find(&t.move)) || t.move.kernel)
        return st ? st : leg_start(&t, a->storage->device, "_fill");
    if ((st = host_of(a, &host)) ||
        (st = tni_array_create(a->storage->space, host, a->dtype, a->ndim, a->shape, "copy", &local)))
        return st;
    t.move.dst = local;
    if (!(st = leg_start(&t, host, "_fill")))
        st = tni_array_copy(local, a);
    tni_array_release(local);
    return st;
}

tn_status tni_array_wait(tni_array *a)
{
    return tni_engine_wait_read(engine_of(a), tni_array_var(a), 0);
}

tn_status tni_array_wait_write(tni_array *a)
{
    const tn_status st = tni_engine_wait_write(engine_of(a), tni_array_var(a), 0);

    if (!st)
        tni_var_written(tni_array_var(a)); /* who waits for this is about to write */
    return st;
}

/*
 * Moves: what one operation copies, adds or sets to zero in several arrays, on the host or in the order of a
 * stream. All memory is reserved before the first of them is written, so lack of it changes none.
 *
 * On a device the bytes of contiguous arrays go by its copy; all else runs by a kernel of the device. One
 * that has none lets the host do it: where the host does not reach the memory, what the arrays span is copied
 * there, and what the destination spans is copied back.
 */
#include "tensor/internal.h"

typedef struct move {
    tni_array *src, *dst; /* retained; src NULL: zeros; both once a stream has all that it needs of them */
    tni_storage *sent[2]; /* theirs, from then on */
    tni_kernel_move by;   /* of the kernel that does it, if any */
    bool add, empty;
    void *local[2]; /* on the host: what src and dst span */
} move;

struct tni_moves {
    tni_moves *self; /* the payload of the operation */
    tni_keep *keep;  /* where this came from */
    tni_var **vars;  /* of the operation */
    uint32_t count;
    move list[];
};

static bool on_device(const tni_array *a)
{
    return a && !a->storage->device->host;
}

static bool reached(const tni_array *a)
{
    return a->storage->device->host_addressable;
}

/* By the device's copy, without the host. */
static bool by_bytes(const move *m)
{
    return m->src && !m->add && tni_array_contiguous(m->src) && tni_array_contiguous(m->dst) &&
           (on_device(m->src) || on_device(m->dst));
}

static tn_status kernel_find(move *m)
{
    if (m->empty || by_bytes(m) || !on_device(m->dst) ||
        (m->src && m->src->storage->device != m->dst->storage->device))
        return TN_OK;
    m->by = (tni_kernel_move){.src = m->src, .dst = m->dst, .add = m->add};
    return tni_kernel_move_find(&m->by);
}

tn_status tni_moves_add(tni_moves **m, uint32_t most, tni_array *src, tni_array *dst, bool add)
{
    tni_keep *keep = dst->storage->space->keep;
    move one = {.src = src, .dst = dst, .add = add, .empty = !tni_array_count(dst)};
    tn_status st;

    if (!tni_array_writable(dst))
        return tni_error(TN_E_STATE, "the array is memory of others that is read only");
    if (add && tni_dtype_packed(dst->dtype))
        return tni_error(TN_E_UNSUPPORTED, "nothing is added to arrays of %s", tni_dtype_name(dst->dtype));
    if (!*m) {
        if (!(*m = tni_keep_zeroed(keep, 1, sizeof **m + most * sizeof *(*m)->list)))
            return TN_E_NOMEM;
        (*m)->keep = keep;
    }
    if ((st = kernel_find(&one)))
        return st;
    if (src)
        tni_array_retain(src);
    tni_array_retain(dst); /* also an empty one: the operation holds its variable */
    (*m)->list[(*m)->count++] = one;
    return TN_OK;
}

void tni_moves_destroy(tni_moves *m)
{
    for (uint32_t i = 0; m && i < m->count; i++) {
        tni_array_release(m->list[i].src);
        tni_array_release(m->list[i].dst);
        tni_storage_complete(m->list[i].sent[0]);
        tni_storage_complete(m->list[i].sent[1]);
        tni_kernel_move_fini(&m->list[i].by);
        tni_free(m->list[i].local[0]);
        tni_free(m->list[i].local[1]);
    }
    if (!m)
        return;
    tni_keep_give(m->keep, (void *)m->vars);
    tni_keep_give(m->keep, m);
}

static uint64_t span_bytes(const tni_array *a)
{
    uint64_t extent = 0;

    (void)tni_extent(a->ndim, a->shape, a->stride, &extent); /* it fits: the array was made */
    return tn_dtype_size(a->dtype, extent);
}

static tn_status reserve(tni_array *a, bool local, const tni_run *run, void **memory)
{
    tn_status st = tni_storage_touch(a->storage, a->storage->device->host ? NULL : run->stream);

    if (!st && local && !reached(a) && !(*memory = tni_zalloc(span_bytes(a))))
        st = TN_E_NOMEM;
    return st;
}

tn_status tni_moves_reserve(tni_moves *m, const tni_run *run)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; m && i < m->count && !st; i++) {
        move *one = &m->list[i];
        const bool local = !by_bytes(one) && !one->by.kernel;

        if (one->empty)
            continue;
        if (!one->src || !(st = reserve(one->src, local, run, &one->local[0])))
            st = reserve(one->dst, local, run, &one->local[1]);
    }
    return st;
}

static tn_status on_host(void *arg, tn_err *err)
{
    static const uint64_t zero[2];
    static const int64_t still[TN_NDIM_MAX];
    const move *m = arg;
    tn_tensor from, to;

    (void)err;
    tni_array_tensor(m->dst, &to);
    if (m->local[1])
        to.data = m->local[1];
    if (m->src) {
        tni_array_tensor(m->src, &from);
        if (m->local[0])
            from.data = m->local[0];
    } else { /* one zero, read again and again */
        from = to;
        from.data = (void *)(uintptr_t)zero;
        from.stride = still;
    }
    if (m->add)
        tni_add_strided(&from, &to);
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

/* What `a` spans, from the device to `local` or back. */
static tn_status span_copy(const tni_run *run, const tni_array *a, void *local, bool back, tn_err *err)
{
    const tn_place there = place_of(a), here = {.data = local, .device = -1, .memory = TN_MEMORY_HOST};

    return run->device->ops->copy(run->stream, back ? &there : &here, back ? &here : &there, span_bytes(a),
                                  err);
}

/* A device may lack stream_call: then the host waits. */
static tn_status host_in_stream(move *m, const tni_run *run, tn_err *err)
{
    const tn_device_ops *ops = run->device->ops;
    tn_status st;

    if (ops->stream_call)
        return ops->stream_call(run->stream, on_host, m, err);
    st = ops->stream_wait(run->stream, err);
    return st ? st : on_host(m, err);
}

static tn_status in_stream(move *m, const tni_run *run, tn_err *err)
{
    tn_place from, to;
    tn_status st = TN_OK;

    if (by_bytes(m)) {
        from = place_of(m->src);
        to = place_of(m->dst);
        return run->device->ops->copy(run->stream, &to, &from, tni_array_bytes(m->dst), err);
    }
    if (m->by.kernel)
        return tni_kernel_move_run(&m->by, run, err);
    if (m->local[0])
        st = span_copy(run, m->src, m->local[0], false, err);
    if (!st && m->local[1] && (m->add || !tni_array_contiguous(m->dst)))
        st = span_copy(run, m->dst, m->local[1], false, err);
    if (!st)
        st = host_in_stream(m, run, err);
    return !st && m->local[1] ? span_copy(run, m->dst, m->local[1], true, err) : st;
}

tn_status tni_moves_run(tni_moves *m, const tni_run *run)
{
    tn_status st = TN_OK;
    tn_err err = {.code = TN_OK};

    for (uint32_t i = 0; m && i < m->count && !st; i++)
        if (!m->list[i].empty)
            st = run->stream ? in_stream(&m->list[i], run, &err) : on_host(&m->list[i], &err);
    return st ? tni_error_take(st, &err, run->device->type) : TN_OK;
}

/* ---- as an operation of their own --------------------------------------------------------------------- */

/* A device's own copies and kernels need the memory, in stream order;
 * a call in the stream needs the arrays. */
static void moves_issued(tni_moves *m, const tni_run *run)
{
    for (uint32_t i = 0; i < m->count; i++) {
        move *one = &m->list[i];

        if (one->empty || !(by_bytes(one) || (one->by.kernel && !tni_kernel_moves_late(run))))
            continue;
        one->sent[0] = tni_array_issued(one->src, run);
        one->sent[1] = tni_array_issued(one->dst, run);
        one->src = one->dst = NULL;
    }
}

static tn_status moves_run(void *payload, tni_run *run)
{
    tni_moves *m = *(tni_moves **)payload;
    tn_status st;

    if ((st = tni_moves_reserve(m, run)) || (st = tni_moves_run(m, run)))
        return st;
    if (run->stream)
        moves_issued(m, run);
    return TN_OK;
}

static void moves_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    tni_moves_destroy(*(tni_moves **)payload);
}

tn_status tni_moves_task(tni_moves *m, tni_device *d, const char *name, tni_task *out)
{
    uint32_t reads = 0;

    if (!(m->vars = tni_keep_zeroed(m->keep, 2ull * m->count + 1, sizeof(*m->vars))))
        return TN_E_NOMEM;
    m->self = m;
    *out = (tni_task){.run = moves_run,
                      .done = moves_done,
                      .payload = &m->self,
                      .payload_bytes = sizeof m->self,
                      .reads = m->vars,
                      .writes = m->vars + m->count,
                      .write_count = m->count,
                      .flags = TNI_TASK_CLEARS,
                      .device = d,
                      .name = name};
    for (uint32_t i = 0; i < m->count; i++) {
        const move *one = &m->list[i];

        m->vars[m->count + i] = tni_array_var(one->dst);
        if (one->src)
            m->vars[reads++] = tni_array_var(one->src);
        if (one->add || tni_array_bytes(one->dst) != one->dst->storage->bytes)
            out->flags = 0;
    }
    out->read_count = reads;
    return TN_OK;
}

tn_status tni_moves_push(tni_moves *m, tni_device *d, const char *name)
{
    const bool any = m->count != 0; /* once pushed they are the operation's */
    tni_task task;
    tn_status st = tni_moves_task(m, d, name, &task);

    if (!st && any)
        st = tni_engine_push(m->list[0].dst->storage->space->engine, &task);
    if (st || !any)
        tni_moves_destroy(m);
    return st;
}

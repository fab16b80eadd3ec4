/*
 * Streams: the driver's queues, with functions of the host in them.
 *
 * The driver has no way to drop what is queued behind a function that failed, so a stream has a *fate*: it
 * numbers its functions, and the first failure is a number too. Functions behind it are not called, events
 * behind it say so; kernels and copies that were queued by then are carried out, and nobody reads what they
 * wrote.
 */
#include "internal.h"

#include <string.h>

/* ---- fates --------------------------------------------------------------------------------------------- */

static tncuda_fate *fate_create(tn_device_handle *d)
{
    tncuda_fate *f = tncuda_new(d->plugin, sizeof *f);

    if (!f)
        return NULL;
    f->device = d;
    atomic_store_explicit(&f->refs, 1u, memory_order_relaxed);
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->points, NULL);
    return f;
}

tncuda_fate *tncuda_fate_retain(tncuda_fate *fate)
{
    if (fate)
        atomic_fetch_add_explicit(&fate->refs, 1u, memory_order_relaxed);
    return fate;
}

/* Its stream for notifications is gone by then: whoever made the last one holds no fate. */
void tncuda_fate_release(tncuda_fate *fate)
{
    if (!fate || atomic_fetch_sub_explicit(&fate->refs, 1u, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&fate->points);
    pthread_mutex_destroy(&fate->lock);
    tncuda_delete(fate->device->plugin, fate);
}

void tncuda_fate_fail(tncuda_fate *fate, uint64_t number, tn_status status, const tn_err *err)
{
    pthread_mutex_lock(&fate->lock);
    if (!fate->err.code) {
        fate->err = *err;
        fate->err.code = status;
        atomic_store_explicit(&fate->failed, number, memory_order_release);
    }
    pthread_mutex_unlock(&fate->lock);
}

tn_status tncuda_fate_at(tncuda_fate *fate, uint64_t number, tn_err *err)
{
    const uint64_t failed = fate ? atomic_load_explicit(&fate->failed, memory_order_acquire) : 0;
    tn_status st = TN_OK;

    if (!failed || failed > number)
        return TN_OK;
    pthread_mutex_lock(&fate->lock);
    st = fate->err.code;
    if (err)
        *err = fate->err;
    pthread_mutex_unlock(&fate->lock);
    return st;
}

tn_status tncuda_stream_failed(tn_stream *stream, tn_err *err)
{
    return tncuda_fate_at(stream->fate, UINT64_MAX, err);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void call_do(const tncuda_call *c, tncuda_point at, tncuda_point look)
{
    tn_err err = {0};
    tn_status st;

    if (!atomic_load_explicit(&at.fate->failed, memory_order_acquire) &&
        (st = c->fn ? c->fn(c->arg, &err) : tncuda_fate_at(look.fate, look.number, &err)))
        tncuda_fate_fail(at.fate, at.number, st, &err);
    atomic_store_explicit(&at.fate->done, at.number, memory_order_release);
}

/* The driver's thread comes here, and below. It must not call the driver. */
static void graph_call_make(void *arg)
{
    const tncuda_call *c = arg;

    call_do(c, tncuda_graph_at(c), tncuda_graph_look(c));
}

static void call_make(void *arg)
{
    tncuda_call *c = arg;
    tn_device_handle *d = c->at.fate->device;

    tncuda_item_begin(d, &c->item);
    call_do(c, c->at, c->look);
    tncuda_item_end(d, &c->item);
}

static void call_drop(tncuda_item *item)
{
    tncuda_call *c = (tncuda_call *)(void *)item;
    const tncuda_plugin *p = c->at.fate->device->plugin;

    tncuda_fate_release(c->look.fate);
    tncuda_fate_release(c->at.fate);
    tncuda_delete(p, c);
}

tn_status tncuda_function_locked(tn_stream *stream, void (*fn)(void *arg), void *arg, tn_err *err)
{
    tn_device_handle *d = stream->device;
    const tn_status st = stream->recording ? TN_OK : tncuda_moment_close(stream, err);

    if (st)
        return st;
    stream->work++;
    return tncuda_check(d, d->driver->stream_function(stream->handle, fn, arg), "cuLaunchHostFunc", err);
}

static tn_status call_queue(tn_stream *s, const tncuda_call *like, tn_err *err)
{
    tn_device_handle *d = s->device;
    tncuda_call *c = tncuda_new(d->plugin, sizeof *c);
    tn_status st;

    if (!c)
        return tncuda_nomem(err, "a call");
    *c = *like;
    c->item.drop = call_drop;
    c->at = (tncuda_point){.fate = tncuda_fate_retain(s->fate), .number = s->calls + 1};
    (void)tncuda_fate_retain(c->look.fate);
    tncuda_item_add(d, &c->item);
    if ((st = tncuda_function_locked(s, call_make, c, err)))
        tncuda_item_end(d, &c->item);
    else
        s->calls++;
    return st;
}

tn_status tncuda_call_locked(tn_stream *stream, const tncuda_call *like, tn_err *err)
{
    tncuda_call *c;
    tn_status st;

    if (!stream->recording)
        return call_queue(stream, like, err);
    if (tncuda_graph_compared(stream, NULL, 0, NULL, 0))
        return TN_OK;
    st = tncuda_graph_call(stream->recording, like, &c, err);
    return st ? st : tncuda_function_locked(stream, graph_call_make, c, err);
}

tn_status tncuda_stream_call(tn_stream *stream, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                             tn_err *err)
{
    tn_status st;

    if (!stream || !fn)
        return tn_fail(err, TN_E_ARG, "no stream or no function to call");
    if ((st = tncuda_enter(stream->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    if (!(st = tncuda_stream_failed(stream, err)) &&
        !(st = tncuda_call_locked(stream, &(tncuda_call){.fn = fn, .arg = arg}, err)))
        tncuda_count(&stream->device->count.calls);
    pthread_mutex_unlock(&stream->lock);
    tncuda_leave(stream->device);
    return st;
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* The host's memory, pinned or not, or that of a GPU: its index, -1 for the host, -2 for what is not ours. */
static int32_t where(const tn_place *p)
{
    if (!p->type)
        return p->device == -1 ? -1 : -2;
    if (p->memory != TN_MEMORY_DEVICE)
        return -1;
    return strcmp(p->type, tncuda_device_ops.head.id) == 0 && p->device >= 0 && p->device < TNCUDA_DEVICES_MAX
               ? p->device
               : -2;
}

/* The context of another GPU, which is kept until the device is closed. Without access the driver goes over
 * the host. */
static tn_status peer_context(tn_device_handle *d, int32_t peer, tncuda_context *out, tn_err *err)
{
    tncuda_plugin *p = d->plugin;
    int32_t can = 0, ordinal = 0;
    bool known;
    tn_status st;

    if ((st = tncuda_context_get(p, peer, out, err)))
        return st;
    pthread_mutex_lock(&d->lock);
    known = d->peers[peer];
    d->peers[peer] = 1;
    pthread_mutex_unlock(&d->lock);
    if (known)
        tncuda_context_give(p, peer); /* the first one is kept */
    else if (!d->driver->device_get(&ordinal, peer) && !d->driver->device_peer(&can, d->ordinal, ordinal) &&
             can) {
        const tncuda_result result = d->driver->context_peer(*out, 0);

        if (result != TNCUDA_PEER_ACCESS_ALREADY_ENABLED)
            st = tncuda_check(d, result, "cuCtxEnablePeerAccess", err);
    }
    return st;
}

static tn_status copy_locked(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                             tn_err *err)
{
    tn_device_handle *d = s->device;
    const tncuda_address to = (tncuda_address)(uintptr_t)dst->data,
                         from = (tncuda_address)(uintptr_t)src->data;
    const int32_t ends[2] = {where(dst), where(src)};
    const bool within = ends[0] == d->index && ends[1] == d->index;
    const tncuda_copied copied = {.dst = to, .src = from, .bytes = bytes};
    tncuda_context contexts[2] = {d->context, d->context};
    tn_status st;

    /* From memory that is not pinned the driver may read at once, where a function of the stream has still to
     * write it. */
    if (ends[1] < 0 && src->memory != TN_MEMORY_PINNED && !s->recording &&
        atomic_load_explicit(&s->fate->done, memory_order_acquire) < s->calls &&
        (st = tncuda_check(d, d->driver->stream_wait(s->handle), "cuStreamSynchronize", err)))
        return st;
    if (tncuda_graph_compared(s, NULL, 0, &copied, within ? sizeof copied : 0))
        return TN_OK;
    if ((st = tncuda_work_locked(s, err)))
        return st;
    if (ends[0] < 0 || ends[1] < 0 || within) {
        st = tncuda_check(d, d->driver->copy(to, from, (size_t)bytes, s->handle), "cuMemcpyAsync", err);
        return st || !within ? st : tncuda_graph_note(s, NULL, 0, &copied, sizeof copied, err);
    }
    for (int i = 0; i < 2; i++)
        if (ends[i] != d->index && (st = peer_context(d, ends[i], &contexts[i], err)))
            return st;
    return tncuda_check(d, d->driver->copy_peer(to, contexts[0], from, contexts[1], (size_t)bytes, s->handle),
                        "cuMemcpyPeerAsync", err);
}

tn_status tncuda_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                      tn_err *err)
{
    bool driven;
    tn_status st;

    if (!stream || !dst || !src || (bytes && (!dst->data || !src->data)) || bytes > SIZE_MAX)
        return tn_fail(err, TN_E_ARG, "a copy needs a stream and two places");
    if (where(dst) == -2 || where(src) == -2)
        return tn_fail(err, TN_E_UNSUPPORTED, "one end of the copy is no place of a GPU or the host");
    driven = !tncuda_graph_compares(stream);
    if (driven && (st = tncuda_enter(stream->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    if (!(st = tncuda_stream_failed(stream, err)) && bytes &&
        !(st = copy_locked(stream, dst, src, bytes, err)) && driven)
        tncuda_count(&stream->device->count.copies);
    pthread_mutex_unlock(&stream->lock);
    if (driven)
        tncuda_leave(stream->device);
    return st;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

/* The driver's priorities: a smaller number is more urgent. */
static int32_t priority_of(const tn_device_handle *d, int32_t priority)
{
    int32_t least = 0, greatest = 0;

    if (d->driver->context_priorities(&least, &greatest))
        return 0;
    return priority > 0 ? greatest : priority < 0 ? least : (least + greatest) / 2;
}

tn_status tncuda_stream_create(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s;
    tn_status st;

    if (!device || !out)
        return tn_fail(err, TN_E_ARG, "no device");
    if ((st = tncuda_enter(device, err)))
        return st;
    s = tncuda_new(device->plugin, sizeof *s);
    if (!s || !(s->fate = fate_create(device))) {
        tncuda_delete(device->plugin, s);
        tncuda_leave(device);
        return tncuda_nomem(err, "a stream");
    }
    s->device = device;
    s->late_at = UINT64_MAX;
    s->number = atomic_fetch_add_explicit(&device->streams, 1u, memory_order_relaxed) + 1;
    st = tncuda_check(
        device,
        device->driver->stream_create(&s->handle, TNCUDA_STREAM_NON_BLOCKING, priority_of(device, priority)),
        "cuStreamCreateWithPriority", err);
    tncuda_leave(device);
    if (st) {
        tncuda_fate_release(s->fate);
        tncuda_delete(device->plugin, s);
        return st;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->fate->handle = s->handle;
    *out = s;
    return TN_OK;
}

/* What is queued runs out first: functions of the host are in it. */
void tncuda_stream_destroy(tn_stream *stream)
{
    tn_device_handle *d = stream ? stream->device : NULL;

    if (!stream || atomic_load_explicit(&d->plugin->forked, memory_order_relaxed))
        return;
    if (stream->recording)
        (void)tncuda_graph_end(stream, 0, NULL, NULL, NULL, NULL);
    if (tncuda_enter_end(d)) {
        (void)tncuda_moment_close(stream, NULL);
        (void)tncuda_check(d, d->driver->stream_wait(stream->handle), "cuStreamSynchronize", NULL);
        tncuda_moments_end(stream->fate);
        if (stream->fate->notes) {
            (void)tncuda_check(d, d->driver->stream_wait(stream->fate->notes), "cuStreamSynchronize", NULL);
            (void)d->driver->stream_destroy(stream->fate->notes);
            stream->fate->notes = NULL;
        }
        (void)d->driver->stream_destroy(stream->handle);
        tncuda_leave(d);
    }
    tncuda_moment_release(d, stream->moment);
    tncuda_moments_end(stream->fate);
    tncuda_fate_release(stream->fate);
    pthread_mutex_destroy(&stream->lock);
    tncuda_delete(d->plugin, stream);
}

tn_status tncuda_stream_wait(tn_stream *stream, tn_err *err)
{
    tn_status st;
    bool recording;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    pthread_mutex_lock(&stream->lock);
    recording = stream->recording != NULL;
    pthread_mutex_unlock(&stream->lock);
    if (recording)
        return tn_fail(err, TN_E_STATE, "the stream is recording: nothing may wait for it");
    if ((st = tncuda_enter(stream->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    st = tncuda_moment_close(stream, err); /* who has waited finds its events reached */
    pthread_mutex_unlock(&stream->lock);
    if (!st)
        st = tncuda_check(stream->device, stream->device->driver->stream_wait(stream->handle),
                          "cuStreamSynchronize", err);
    tncuda_leave(stream->device);
    return st ? st : tncuda_stream_failed(stream, err);
}

/*
 * Streams: a queue of items and a thread that carries them out in order, each after a random delay.
 *
 * An item stays in the queue until it is done. A failed item fails its stream for good: later calls and
 * copies are dropped, later records are reached with the error, and whoever waits for one of these fails as
 * well. A wait can only name a record that was queued before it, so that waits never form a ring and every
 * queue drains; this is why `destroy` may simply let the queue run out (without delays) and join the thread.
 */
#include "fake.h"

#include <inttypes.h>
#include <string.h>

static void count(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1u, memory_order_relaxed);
}

/* ---- carrying out -------------------------------------------------------------------------------- */

static tn_status call_or_copy(const tnfake_item *i, tn_err *err)
{
    if (i->fault)
        return tnfake_fail(err, TN_E_DEVICE, "fault: this %s fails on demand",
                           i->kind == TNFAKE_CALL ? "call" : "copy");
    if (i->kind == TNFAKE_CALL)
        return i->fn(i->arg, err);
    memmove(i->dst, i->src, (size_t)i->bytes);
    return TN_OK;
}

static void stream_fail(tn_stream *s, tn_status code, const tn_err *err)
{
    pthread_mutex_lock(&s->lock);
    s->err = *err;
    s->err.code = code;
    pthread_mutex_unlock(&s->lock);
    count(&s->device->count.failed_streams);
}

static void carry_out(tn_stream *s, tnfake_item *i)
{
    tnfake_counters *c = &s->device->count;
    const bool failed = s->err.code != TN_OK; /* only this thread writes it */
    tn_err err = {0};
    tn_status st;

    switch (i->kind) {
    case TNFAKE_RECORD:
        tnfake_point_reach(i->point, &s->err);
        count(&c->records);
        break;
    case TNFAKE_WAIT:
        if (!i->fault && !tnfake_point_wait(i->point, &c->event_waits_blocked, &err) && !failed)
            stream_fail(s, err.code, &err);
        count(&c->event_waits);
        break;
    default:
        if (!failed && (st = call_or_copy(i, &err)))
            stream_fail(s, st, &err);
        count(i->kind == TNFAKE_CALL ? &c->calls : &c->copies);
        break;
    }
}

/* With reorder = 0, waits until everything submitted before on this device is done. */
static void turn_wait(tn_device_handle *d, uint64_t order)
{
    pthread_mutex_lock(&d->turn_lock);
    while (d->turn + 1 != order)
        pthread_cond_wait(&d->turn_changed, &d->turn_lock);
    pthread_mutex_unlock(&d->turn_lock);
}

static void turn_pass(tn_device_handle *d)
{
    pthread_mutex_lock(&d->turn_lock);
    d->turn++;
    pthread_cond_broadcast(&d->turn_changed);
    pthread_mutex_unlock(&d->turn_lock);
}

/* Is an earlier submission of another stream still under way? */
static bool overtakes(const tn_stream *s, uint64_t order)
{
    for (uint32_t i = 0; i < TNFAKE_STREAMS_MAX; i++) {
        uint64_t oldest = atomic_load_explicit(&s->device->oldest[i], memory_order_relaxed);

        if (i != s->slot && oldest && oldest < order)
            return true;
    }
    return false;
}

/* Takes the finished item from the queue and tells those who wait for the stream. */
static void item_finish(tn_stream *s, tnfake_item *i)
{
    count(&s->device->count.completions);
    if (overtakes(s, i->order))
        count(&s->device->count.out_of_order);
    pthread_mutex_lock(&s->lock);
    s->first = i->next;
    if (!s->first)
        s->last = &s->first;
    s->done++;
    atomic_store_explicit(&s->device->oldest[s->slot], s->first ? s->first->order : 0u, memory_order_relaxed);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!s->device->plugin->reorder)
        turn_pass(s->device);
    tnfake_point_release(i->point);
    tnfake_delete(s->device->plugin, i);
}

static void stream_main(void *arg)
{
    tn_stream *s = arg;

    for (;;) {
        tnfake_item *i;
        bool closing;

        pthread_mutex_lock(&s->lock);
        while (!s->first && !s->closing)
            pthread_cond_wait(&s->changed, &s->lock);
        i = s->first;
        closing = s->closing;
        pthread_mutex_unlock(&s->lock);
        if (!i)
            return;
        if (!closing && !atomic_load_explicit(&s->device->hurry, memory_order_relaxed))
            tnfake_sleep(i->delay_us);
        if (!s->device->plugin->reorder)
            turn_wait(s->device, i->order);
        carry_out(s, i);
        item_finish(s, i);
    }
}

/* ---- queueing ------------------------------------------------------------------------------------ */

/* Half of the calls and copies are late, by up to delay_us. */
static uint32_t delay_of(const tn_stream *s, uint32_t kind)
{
    const tnfake_plugin *p = s->device->plugin;
    uint64_t random = tnfake_random(p->seed, (uint64_t)s->device->index << 32 | s->number, s->submitted);

    if (kind > TNFAKE_COPY || random & 1u)
        return 0;
    return (uint32_t)((random >> 8) % ((uint64_t)p->delay_us + 1));
}

/* Records and waits are taken from failed streams too, so that what depends on them ends. */
static tn_status refused_locked(const tn_stream *s, uint64_t count, bool work, tn_err *err)
{
    if (s->err.code && work) {
        if (err)
            *err = s->err;
        return s->err.code;
    }
    if (s->closing)
        return tn_fail(err, TN_E_STATE, "the stream is being destroyed");
    if (s->submitted - s->done > TNFAKE_QUEUE_MAX - count)
        return tn_fail(err, TN_E_STATE, "the stream's queue is full");
    return TN_OK;
}

static void put_locked(tn_stream *s, tnfake_item *i)
{
    static const uint32_t faults[] = {TNFAKE_FAULT_CALL, TNFAKE_FAULT_COPY, 0, TNFAKE_FAULT_WAIT};
    tn_device_handle *d = s->device;

    i->fault = i->kind != TNFAKE_RECORD && tnfake_fault_due(d, faults[i->kind]);
    i->delay_us = delay_of(s, i->kind);
    i->order = atomic_fetch_add_explicit(&d->order, 1u, memory_order_relaxed) + 1;
    if (!s->first)
        atomic_store_explicit(&d->oldest[s->slot], i->order, memory_order_relaxed);
    *s->last = i;
    s->last = &i->next;
    s->submitted++;
    count(&d->count.submitted);
}

tn_status tnfake_stream_put(tn_stream *s, tnfake_item *first, uint64_t items, tn_err *err)
{
    tn_status st;

    pthread_mutex_lock(&s->lock);
    if (s->recording)
        st = tn_fail(err, TN_E_STATE, "the stream is recording");
    else
        st = refused_locked(s, items, true, err);
    while (!st && first) {
        tnfake_item *i = first;

        first = i->next;
        i->next = NULL;
        put_locked(s, i);
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return st;
}

tn_status tnfake_submit(tn_stream *s, const tnfake_item *from, tn_err *err)
{
    tn_device_handle *d = s->device;
    tn_status st = tnfake_forked(d->plugin, err);
    tnfake_item *i = st ? NULL : tnfake_new(d->plugin, sizeof *i);

    if (st)
        return st;
    if (!i)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the stream's queue");
    *i = *from;
    pthread_mutex_lock(&s->lock);
    if (s->recording) {
        st = tnfake_graph_add(s->recording, i, err);
    } else if (i->kind > TNFAKE_COPY && !i->point) { /* it ended to record after event.c had looked */
        st = tn_fail(err, TN_E_STATE, "another thread has ended what the stream recorded");
    } else if (!(st = refused_locked(s, 1, i->kind <= TNFAKE_COPY, err))) {
        put_locked(s, i);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (st)
        tnfake_delete(d->plugin, i);
    return st;
}

tn_status tnfake_stream_call(tn_stream *stream, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                             tn_err *err)
{
    if (!stream || !fn)
        return tn_fail(err, TN_E_ARG, "no stream or no function to call");
    return tnfake_submit(stream, &(tnfake_item){.kind = TNFAKE_CALL, .fn = fn, .arg = arg}, err);
}

/* The host's memory, pinned or not, or that of a device of this plugin. */
static bool reached(const tn_stream *stream, const tn_place *p)
{
    if (!p->type)
        return p->device == -1;
    if (strcmp(p->type, tnfake_device_ops.head.id) != 0)
        return p->memory != TN_MEMORY_DEVICE;
    return p->device >= 0 && p->device < (int32_t)stream->device->plugin->devices;
}

tn_status tnfake_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                      tn_err *err)
{
    if (!stream || !dst || !src || (bytes && (!dst->data || !src->data)) || bytes > SIZE_MAX)
        return tn_fail(err, TN_E_ARG, "a copy needs a stream and two places");
    if (!reached(stream, dst) || !reached(stream, src))
        return tn_fail(err, TN_E_UNSUPPORTED, "one end of the copy is no place of a fake device or the host");
    return tnfake_submit(
        stream, &(tnfake_item){.kind = TNFAKE_COPY, .dst = dst->data, .src = src->data, .bytes = bytes}, err);
}

/* ---- life ---------------------------------------------------------------------------------------- */

static tn_status slot_take(tn_device_handle *device, tn_stream *s, tn_err *err)
{
    uint32_t i = 0;

    pthread_mutex_lock(&device->lock);
    while (i < TNFAKE_STREAMS_MAX && device->streams[i])
        i++;
    if (i < TNFAKE_STREAMS_MAX) {
        device->streams[i] = s;
        s->slot = i;
        s->number = device->stream_count++;
    }
    pthread_mutex_unlock(&device->lock);
    return i < TNFAKE_STREAMS_MAX ? TN_OK : tn_fail(err, TN_E_NOMEM, "a fake device has at most 64 streams");
}

static void slot_give(tn_stream *s)
{
    pthread_mutex_lock(&s->device->lock);
    s->device->streams[s->slot] = NULL;
    pthread_mutex_unlock(&s->device->lock);
}

/* `priority` is accepted and has no effect: the order of completion is random anyway. */
tn_status tnfake_stream_create(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s;
    tn_status st;

    (void)priority;
    if (!device || !out)
        return tn_fail(err, TN_E_ARG, "no device");
    if ((st = tnfake_forked(device->plugin, err)))
        return st;
    s = tnfake_new(device->plugin, sizeof *s);
    if (!s)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for a stream");
    s->device = device;
    s->last = &s->first;
    if ((st = slot_take(device, s, err))) {
        tnfake_delete(device->plugin, s);
        return st;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if ((st = tnfake_thread_start(device->plugin, "tn-fake-stream", stream_main, s, &s->thread))) {
        slot_give(s);
        tnfake_delete(device->plugin, s);
        return tn_fail(err, st, "no thread for a stream");
    }
    *out = s;
    return TN_OK;
}

void tnfake_stream_destroy(tn_stream *stream)
{
    if (!stream || tnfake_forked(stream->device->plugin, NULL))
        return;
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    tnfake_thread_join(stream->device->plugin, stream->thread);
    tnfake_graph_free(stream->recording);
    slot_give(stream);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    tnfake_delete(stream->device->plugin, stream);
}

tn_status tnfake_stream_wait(tn_stream *stream, tn_err *err)
{
    uint64_t until;
    tn_status st;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    if ((st = tnfake_forked(stream->device->plugin, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    until = stream->submitted;
    while (!stream->recording && stream->done < until)
        pthread_cond_wait(&stream->changed, &stream->lock);
    st = stream->err.code;
    if (st && err)
        *err = stream->err;
    if (stream->recording)
        st = tn_fail(err, TN_E_STATE, "the stream is recording: nothing may wait for it");
    pthread_mutex_unlock(&stream->lock);
    return st;
}

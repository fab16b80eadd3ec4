/*
 * Events: the driver's, and the point of the stream's fate that each was recorded at.
 *
 * A notification is a callback in a stream of its own beside the event's stream, which waits for the event:
 * so it says of an error that ended the context, too, where the driver calls no functions any more.
 */
#include "internal.h"

#define LATE_MAX 8u /* kernels and copies behind an event that its moment may have, too */

/* ---- points -------------------------------------------------------------------------------------------- */

static void event_move_locked(tn_event *e, tncuda_fate *fate, uint64_t number)
{
    tncuda_fate *before = e->fate;

    e->fate = tncuda_fate_retain(fate);
    e->number = number;
    tncuda_fate_release(before);
}

void tncuda_event_move(tn_event *event, tncuda_fate *fate, uint64_t number)
{
    pthread_mutex_lock(&event->lock);
    event_move_locked(event, fate, number);
    pthread_mutex_unlock(&event->lock);
}

static tncuda_point point_locked(const tn_event *e)
{
    return (tncuda_point){.fate = tncuda_fate_retain(e->fate), .number = e->number};
}

tncuda_point tncuda_event_point(tn_event *event)
{
    tncuda_point p;

    pthread_mutex_lock(&event->lock);
    p = point_locked(event);
    pthread_mutex_unlock(&event->lock);
    return p;
}

/* ---- moments ------------------------------------------------------------------------------------------- */

static tn_status moment_make(tn_device_handle *d, tncuda_moment **out, tn_err *err)
{
    tncuda_moment *m = tncuda_new(d->plugin, sizeof *m);
    tn_status st;

    if (!m)
        return tncuda_nomem(err, "an event");
    if ((st = tncuda_check(d, d->driver->event_create(&m->handle, TNCUDA_EVENT_NO_TIMING), "cuEventCreate",
                           err))) {
        tncuda_delete(d->plugin, m);
        return st;
    }
    atomic_store_explicit(&m->refs, 1u, memory_order_relaxed);
    *out = m;
    return TN_OK;
}

static void moment_destroy(tn_device_handle *d, tncuda_moment *m)
{
    if (tncuda_enter_end(d)) {
        (void)tncuda_check(d, d->driver->event_destroy(m->handle), "cuEventDestroy", NULL);
        tncuda_leave(d);
    }
    tncuda_delete(d->plugin, m);
}

static tncuda_moment *moment_retain(tncuda_moment *m)
{
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1u, memory_order_relaxed);
    return m;
}

void tncuda_moment_release(tn_device_handle *device, tncuda_moment *moment)
{
    if (!moment || atomic_fetch_sub_explicit(&moment->refs, 1u, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_lock(&device->lock);
    moment->next = device->moments;
    device->moments = moment;
    pthread_mutex_unlock(&device->lock);
}

void tncuda_moments_drop(tn_device_handle *device)
{
    for (tncuda_moment *m = device->moments, *next; m; m = next) {
        next = m->next;
        moment_destroy(device, m);
    }
    device->moments = NULL;
}

static tncuda_moment *moment_left(tn_device_handle *d)
{
    tncuda_moment *m;

    pthread_mutex_lock(&d->lock);
    if ((m = d->moments))
        d->moments = m->next;
    pthread_mutex_unlock(&d->lock);
    return moment_retain(m);
}

/* Of a device that is usable, as the caller has asked. */
static tn_status context_take(tn_device_handle *d, tn_err *err)
{
    return tncuda_check(d, d->driver->context_push(d->context), "cuCtxPushCurrent", err);
}

static tn_status moment_get(tn_device_handle *d, tncuda_moment **out, tn_err *err)
{
    tn_status st;

    if ((*out = moment_left(d))) {
        atomic_store_explicit(&(*out)->there, false, memory_order_relaxed);
        return TN_OK;
    }
    if ((st = context_take(d, err)))
        return st;
    st = moment_make(d, out, err);
    tncuda_leave(d);
    return st;
}

static void open_end_locked(tncuda_fate *f)
{
    tncuda_moment *m = f->open;

    f->open = NULL;
    tncuda_moment_release(f->device, m);
}

/* What cannot be recorded is waited for. */
static tn_status settle_locked(tncuda_fate *f, tncuda_moment *m, tn_err *err)
{
    tn_device_handle *d = f->device;
    tn_status st;

    if (atomic_load_explicit(&m->there, memory_order_relaxed))
        return TN_OK;
    if (!f->gone) {
        if ((st = context_take(d, err)))
            return st;
        st = tncuda_check(d, d->driver->event_record(m->handle, f->handle, 0), "cuEventRecordWithFlags", err);
        if (st && !tncuda_check(d, d->driver->stream_wait(f->handle), "cuStreamSynchronize", NULL))
            st = TN_OK;
        tncuda_leave(d);
        if (st)
            return st;
    }
    atomic_store_explicit(&m->there, true, memory_order_release);
    if (f->open == m)
        open_end_locked(f);
    return TN_OK;
}

/* A moment of the fate's stream, NULL if there is none, is the driver's from here on. */
static tn_status settle(tncuda_fate *fate, tncuda_moment *moment, tn_err *err)
{
    tn_status st;

    if (!moment || !fate || atomic_load_explicit(&moment->there, memory_order_acquire))
        return TN_OK;
    pthread_mutex_lock(&fate->points);
    st = settle_locked(fate, moment, err);
    pthread_mutex_unlock(&fate->points);
    return st;
}

/* The end of the stream is its newest moment. */
static tn_status here_locked(tn_stream *s, tn_err *err)
{
    tncuda_fate *f = s->fate;
    tncuda_moment *m = moment_retain(f->open);
    tn_status st = m ? TN_OK : moment_get(s->device, &m, err);

    if (!st && (st = settle_locked(f, m, err)))
        tncuda_moment_release(s->device, m);
    if (st)
        return st;
    tncuda_moment_release(s->device, s->moment);
    s->moment = m;
    s->moment_work = s->work;
    return TN_OK;
}

tn_status tncuda_moment_here(tn_stream *stream, tncuda_moment **moment, tn_err *err)
{
    tncuda_moment *before = *moment;
    tn_status st = TN_OK;

    pthread_mutex_lock(&stream->fate->points);
    if (!stream->moment || stream->moment_work != stream->work)
        st = here_locked(stream, err);
    if (!st)
        *moment = moment_retain(stream->moment);
    pthread_mutex_unlock(&stream->fate->points);
    if (!st)
        tncuda_moment_release(stream->device, before);
    return st;
}

tn_status tncuda_moment_close(tn_stream *stream, tn_err *err)
{
    tn_status st = TN_OK;

    pthread_mutex_lock(&stream->fate->points);
    if (stream->fate->open)
        st = here_locked(stream, err);
    pthread_mutex_unlock(&stream->fate->points);
    return st;
}

tn_status tncuda_work_locked(tn_stream *s, tn_err *err)
{
    tn_status st = TN_OK;

    if (s->work >= s->late_at) {
        s->late_at = UINT64_MAX;
        st = tncuda_moment_close(s, err);
    }
    s->work++; /* a moment that was closed is in front of it */
    return st;
}

void tncuda_moments_end(tncuda_fate *fate)
{
    pthread_mutex_lock(&fate->points);
    fate->gone = true;
    fate->handle = NULL;
    if (fate->open) {
        atomic_store_explicit(&fate->open->there, true, memory_order_release);
        open_end_locked(fate);
    }
    pthread_mutex_unlock(&fate->points);
}

/* Under the lock of the stream: the event's moment is here, or a little later. */
static tn_status moment_join(tn_stream *s, tn_event *e, tn_err *err)
{
    tncuda_fate *f = s->fate;
    tncuda_moment *m, *before = e->moment;
    tn_status st = TN_OK;

    pthread_mutex_lock(&f->points);
    if (s->moment && s->moment_work == s->work) {
        m = s->moment;
    } else {
        if (!f->open && !(st = moment_get(s->device, &f->open, err)))
            s->late_at = s->work + LATE_MAX;
        m = f->open;
    }
    if (!st) {
        e->moment = moment_retain(m);
        tncuda_moment_release(s->device, before);
    }
    pthread_mutex_unlock(&f->points);
    return st;
}

static tn_status notes_need(tncuda_fate *fate, tn_err *err)
{
    tn_device_handle *d = fate->device;
    tn_status st = TN_OK;

    pthread_mutex_lock(&fate->lock);
    if (!fate->notes)
        st = tncuda_check(d, d->driver->stream_create(&fate->notes, TNCUDA_STREAM_NON_BLOCKING, 0),
                          "cuStreamCreateWithPriority", err);
    pthread_mutex_unlock(&fate->lock);
    return st;
}

/* Graphs know the driver's event, so from here on it is always the same. What it had shared is behind the
 * point where that lay. */
static tn_status pin_locked(tn_event *e, tn_err *err)
{
    tn_device_handle *d = e->device;
    tncuda_moment *own = NULL;
    tn_status st;

    if (e->pinned)
        return TN_OK;
    if ((st = settle(e->fate, e->moment, err)) || (st = moment_make(d, &own, err)))
        return st;
    atomic_store_explicit(&own->there, true, memory_order_relaxed);
    if (e->moment && e->fate && !e->fate->gone && !(st = notes_need(e->fate, err)) &&
        !(st = tncuda_check(d, d->driver->stream_event(e->fate->notes, e->moment->handle, 0),
                            "cuStreamWaitEvent", err)))
        st = tncuda_check(d, d->driver->event_record(own->handle, e->fate->notes, 0),
                          "cuEventRecordWithFlags", err);
    if (st) {
        moment_destroy(d, own);
        return st;
    }
    tncuda_moment_release(d, e->moment);
    e->moment = own;
    e->pinned = true;
    return TN_OK;
}

/* ---- records and waits --------------------------------------------------------------------------------- */

/* Of an event that graphs know, or will. */
static tn_status record_pinned(tn_event *e, tn_stream *s, tn_err *err)
{
    tn_device_handle *d = s->device;
    tn_status st;

    if ((st = context_take(d, err)))
        return st;
    if (s->recording)
        st = pin_locked(e, err);
    if (!st)
        st = tncuda_check(
            d,
            d->driver->event_record(e->moment->handle, s->handle, s->recording ? TNCUDA_EVENT_EXTERNAL : 0),
            "cuEventRecordWithFlags", err);
    tncuda_leave(d);
    return st;
}

static tn_status record_locked(tn_event *e, tn_stream *s, tn_err *err)
{
    tn_status st;

    if (tncuda_graph_compared(s, NULL, 0, NULL, 0))
        return TN_OK;
    pthread_mutex_lock(&e->lock);
    st = s->recording || e->pinned ? record_pinned(e, s, err) : moment_join(s, e, err);
    if (!st && !s->recording)
        event_move_locked(e, s->fate, s->calls);
    pthread_mutex_unlock(&e->lock);
    return !st && s->recording ? tncuda_graph_event(s->recording, s, e, false, err) : st;
}

tn_status tncuda_event_record(tn_event *event, tn_stream *stream, tn_err *err)
{
    tn_status st;

    if (!event || !stream)
        return tn_fail(err, TN_E_ARG, "no event or no stream to record it on");
    if ((st = tncuda_usable(stream->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    st = record_locked(event, stream, err);
    pthread_mutex_unlock(&stream->lock);
    return st;
}

/* Only where a function of the other stream is still to come, or has failed, there is something to look at.
 */
static tn_status look_locked(tn_stream *s, tncuda_point at, tn_err *err)
{
    if (!at.fate || at.fate == s->fate ||
        (atomic_load_explicit(&at.fate->done, memory_order_acquire) >= at.number &&
         !tncuda_fate_at(at.fate, at.number, NULL)))
        return TN_OK;
    return tncuda_call_locked(s, &(tncuda_call){.look = at}, err);
}

static tn_status wait_locked(tn_stream *s, tn_event *e, tn_err *err)
{
    tn_device_handle *d = s->device;
    tncuda_point at;
    tn_status st = TN_OK;

    if (tncuda_graph_compared(s, NULL, 0, NULL, 0))
        return TN_OK;
    pthread_mutex_lock(&e->lock);
    at = point_locked(e);
    if (s->recording)
        st = pin_locked(e, err);
    else if (!(st = settle(e->fate, e->moment, err)))
        st = tncuda_moment_close(s, err);
    s->work++;
    if (!st && e->moment)
        st = tncuda_check(
            d,
            d->driver->stream_event(s->handle, e->moment->handle, s->recording ? TNCUDA_EVENT_EXTERNAL : 0),
            "cuStreamWaitEvent", err);
    pthread_mutex_unlock(&e->lock);
    if (!st)
        st = s->recording ? tncuda_graph_event(s->recording, s, e, true, err) : look_locked(s, at, err);
    tncuda_fate_release(at.fate);
    return st;
}

tn_status tncuda_event_wait(tn_stream *stream, tn_event *event, tn_err *err)
{
    tn_status st;

    if (!event || !stream)
        return tn_fail(err, TN_E_ARG, "no event or no stream that waits for it");
    if ((st = tncuda_enter(stream->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    if (!(st = wait_locked(stream, event, err)))
        tncuda_count(&stream->device->count.event_waits);
    pthread_mutex_unlock(&stream->lock);
    tncuda_leave(stream->device);
    return st;
}

tn_status tncuda_event_query(tn_event *event, tn_err *err)
{
    tncuda_result result = TNCUDA_SUCCESS;
    tncuda_moment *moment;
    tncuda_point at;
    tn_status st;

    if (!event)
        return tn_fail(err, TN_E_ARG, "no event");
    if ((st = tncuda_enter(event->device, err)))
        return st;
    pthread_mutex_lock(&event->lock);
    at = point_locked(event);
    moment = moment_retain(event->moment);
    pthread_mutex_unlock(&event->lock);
    if (!(st = settle(at.fate, moment, err)) && moment)
        result = event->device->driver->event_query(moment->handle);
    tncuda_moment_release(event->device, moment);
    if (result == TNCUDA_NOT_READY)
        st = TN_PENDING;
    else if (!st && !(st = tncuda_check(event->device, result, "cuEventQuery", err)))
        st = tncuda_fate_at(at.fate, at.number, err);
    tncuda_fate_release(at.fate);
    tncuda_leave(event->device);
    return st;
}

/* ---- notifications ------------------------------------------------------------------------------------- */

typedef struct note {
    tncuda_item item; /* first */
    tn_device_handle *device;
    tncuda_point at;
    void (*fn)(void *arg, tn_status status, const tn_err *err); /* NULL: it was called */
    void *arg;
} note;

static void note_say(note *n, tn_status status, const tn_err *err)
{
    void (*fn)(void *arg, tn_status status, const tn_err *err) = n->fn;

    n->fn = NULL;
    fn(n->arg, status, err);
}

static void note_drop(tncuda_item *item)
{
    note *n = (note *)(void *)item;
    const tncuda_plugin *p = n->device->plugin;
    tn_err err = {0};

    if (n->fn)
        note_say(n, tn_fail(&err, TN_E_DEVICE, "the GPU has failed"), &err);
    tncuda_fate_release(n->at.fate);
    tncuda_delete(p, n);
}

/* The driver's thread comes here. */
static void note_give(tncuda_stream stream, tncuda_result result, void *arg)
{
    note *n = arg;
    tn_err err = {0};
    tn_status st;

    (void)stream;
    tncuda_item_begin(n->device, &n->item);
    st = result ? tncuda_driver_fail(NULL, result, "the GPU's work", &err)
                : tncuda_fate_at(n->at.fate, n->at.number, &err);
    note_say(n, st, &err);
    tncuda_item_end(n->device, &n->item);
}

/* Takes the note on success. */
static tn_status note_queue(tn_event *e, note *n, tn_err *err)
{
    tn_device_handle *d = n->device;
    tncuda_stream notes;
    tn_status st;

    if ((st = notes_need(n->at.fate, err)))
        return st;
    notes = n->at.fate->notes;
    pthread_mutex_lock(&e->lock);
    if (!(st = settle(e->fate, e->moment, err)))
        st = tncuda_check(d, d->driver->stream_event(notes, e->moment->handle, 0), "cuStreamWaitEvent", err);
    pthread_mutex_unlock(&e->lock);
    if (st)
        return st;
    tncuda_item_add(d, &n->item);
    return tncuda_check(d, d->driver->stream_callback(notes, note_give, n, 0), "cuStreamAddCallback", err);
}

tn_status tncuda_event_notify(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    tn_device_handle *d = event ? event->device : NULL;
    tn_err said = {0};
    note *n;
    tn_status st;

    if (!event || !fn)
        return tn_fail(err, TN_E_ARG, "no event or nobody to notify");
    if ((st = tncuda_enter(d, err)))
        return st;
    if (!(n = tncuda_new(d->plugin, sizeof *n))) {
        tncuda_leave(d);
        return tncuda_nomem(err, "a notification");
    }
    *n = (note){.item.drop = note_drop, .device = d, .at = tncuda_event_point(event), .fn = fn, .arg = arg};
    tncuda_count(&d->count.notifications);
    if (n->at.fate && !n->at.fate->gone) {
        st = note_queue(event, n, err);
    } else { /* reached */
        note_say(n, tncuda_fate_at(n->at.fate, n->at.number, &said), &said);
        note_drop(&n->item);
    }
    tncuda_leave(d);
    if (!st)
        return TN_OK;
    n->fn = NULL; /* the caller is told by the status */
    if (n->item.link)
        tncuda_item_end(d, &n->item);
    else
        note_drop(&n->item);
    return st;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

tn_status tncuda_event_create(tn_device_handle *device, tn_event **out, tn_err *err)
{
    tn_event *e;
    tn_status st;

    if (!device || !out)
        return tn_fail(err, TN_E_ARG, "no device");
    if ((st = tncuda_driver_need(device->plugin, err)))
        return st;
    if (!(e = tncuda_new(device->plugin, sizeof *e)))
        return tncuda_nomem(err, "an event");
    e->device = device;
    pthread_mutex_init(&e->lock, NULL);
    *out = e;
    return TN_OK;
}

void tncuda_event_destroy(tn_event *event)
{
    tn_device_handle *d = event ? event->device : NULL;

    if (!event || atomic_load_explicit(&d->plugin->forked, memory_order_relaxed))
        return;
    if (event->pinned) /* graphs may know it */
        moment_destroy(d, event->moment);
    else
        tncuda_moment_release(d, event->moment);
    tncuda_fate_release(event->fate);
    pthread_mutex_destroy(&event->lock);
    tncuda_delete(d->plugin, event);
}

/*
 * A healthy plugin with two devices of host memory. Each stream is a thread with a queue; one lock and one
 * condition serve a device. A file that includes it says by DEFECT what is wrong with it, and by NAME what it
 * is called.
 */
#ifndef TN_DEFECTS_HEALTHY_QUEUE_H
#define TN_DEFECTS_HEALTHY_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/device.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    COPY_NOW,    /* a copy does not wait for what was queued before */
    WAIT_BLOCKS, /* event_wait waits itself */
    WAIT_LEFT,   /* a stream does not wait for the event of another one */
    QUERY_GOOD,  /* event_query does not tell that the stream failed */
    PEER_HALF,   /* between two devices half of the bytes are copied */
    PINNED_KEPT, /* pinned memory does not come back */
    ONE_LEVEL,   /* streams with less priority are refused */
    NO_MEMORY,   /* where memory fails alloc says TN_OK */
    ONE_DEVICE,  /* two users get one device */
};

typedef enum job_kind { JOB_CALL, JOB_COPY, JOB_RECORD, JOB_WAIT } job_kind;

typedef struct job {
    struct job *next;
    job_kind kind;
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg;
    tn_event *event;
    uint64_t number; /* of a record */
    void *to;
    const void *from;
    uint64_t bytes;
} job;

typedef struct note {
    struct note *next;
    uint64_t number;
    void (*fn)(void *arg, tn_status status, const tn_err *err);
    void *arg;
} note;

struct tn_device_handle {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct tn_event {
    tn_device_handle *device;
    tn_stream *stream;
    uint64_t recorded, reached;
    note *notes;
    tn_err err; /* of the stream when the event was reached */
};

struct tn_stream {
    tn_device_handle *device;
    pthread_t thread;
    job *first, **last;
    bool ending, busy;
    tn_err err;
};

/* ---- the thread of a stream -------------------------------------------------------------------------- */

/* Takes the notes up to `number` from an event. */
static note *notes_take_locked(tn_event *e, uint64_t number)
{
    note *taken = NULL, **end = &taken;

    for (note **at = &e->notes; *at;)
        if ((*at)->number <= number) {
            note *one = *at;

            *at = one->next;
            one->next = NULL;
            *end = one;
            end = &one->next;
        } else {
            at = &(*at)->next;
        }
    return taken;
}

static void notes_call(note *n, const tn_err *err)
{
    while (n) {
        note *next = n->next;

        n->fn(n->arg, err->code, err->code ? err : NULL);
        free(n);
        n = next;
    }
}

static void reach(tn_stream *s, const job *j)
{
    const tn_err err = s->err;
    note *notes;

    if (j->number > j->event->reached)
        j->event->reached = j->number;
    j->event->err = err;
    notes = notes_take_locked(j->event, j->number);
    (void)pthread_mutex_unlock(&s->device->lock);
    notes_call(notes, &err);
    (void)pthread_mutex_lock(&s->device->lock);
}

static void job_do(tn_stream *s, const job *j)
{
    tn_err err = {0};
    tn_status st = TN_OK;

    if (j->kind == JOB_RECORD)
        reach(s, j);
    while (j->kind == JOB_WAIT && DEFECT != WAIT_LEFT && j->event->reached < j->number)
        (void)pthread_cond_wait(&s->device->changed, &s->device->lock);
    if (j->kind > JOB_COPY || s->err.code)
        return;
    (void)pthread_mutex_unlock(&s->device->lock);
    if (j->kind == JOB_CALL)
        st = j->fn(j->arg, &err);
    else
        memcpy(j->to, j->from, (size_t)j->bytes);
    (void)pthread_mutex_lock(&s->device->lock);
    if (st) {
        s->err = err;
        s->err.code = st;
    }
}

static void *stream_main(void *arg)
{
    tn_stream *s = arg;

    (void)pthread_mutex_lock(&s->device->lock);
    for (;;) {
        job *j;

        while (!s->first && !s->ending)
            (void)pthread_cond_wait(&s->device->changed, &s->device->lock);
        if (!s->first)
            break;
        j = s->first;
        s->first = j->next;
        if (!s->first)
            s->last = &s->first;
        s->busy = true;
        job_do(s, j);
        s->busy = false;
        free(j);
        (void)pthread_cond_broadcast(&s->device->changed);
    }
    (void)pthread_mutex_unlock(&s->device->lock);
    return NULL;
}

static tn_status put(tn_stream *s, const job *what, tn_err *err)
{
    job *j = malloc(sizeof *j);

    if (!j)
        return tn_fail(err, TN_E_NOMEM, "no memory for the queue");
    *j = *what;
    j->next = NULL;
    (void)pthread_mutex_lock(&s->device->lock);
    *s->last = j;
    s->last = &j->next;
    (void)pthread_cond_broadcast(&s->device->changed);
    (void)pthread_mutex_unlock(&s->device->lock);
    return TN_OK;
}

/* ---- devices and memory ------------------------------------------------------------------------------ */

static tn_status queue_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin, (void)err;
    *out = 2;
    return TN_OK;
}

static tn_status queue_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    static tn_device_handle *only;
    tn_device_handle *d;

    (void)plugin;
    if (index < 0 || index > 1)
        return tn_fail(err, TN_E_DEVICE, "there are two devices");
    d = DEFECT == ONE_DEVICE && only ? only : calloc(1, sizeof *d);
    if (!d)
        return tn_fail(err, TN_E_NOMEM, "no memory for a device");
    if (d != only) {
        (void)pthread_mutex_init(&d->lock, NULL);
        (void)pthread_cond_init(&d->changed, NULL);
    }
    if (DEFECT == ONE_DEVICE)
        only = d;
    *out = d;
    return TN_OK;
}

static void queue_close(tn_device_handle *d)
{
    if (DEFECT == ONE_DEVICE)
        return;
    (void)pthread_cond_destroy(&d->changed);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

static tn_status queue_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    const uint32_t bytes = out->struct_size;
    const tn_device_info info = {.struct_size = bytes,
                                 .flags = TN_DEVICE_F_HOST_ADDRESSABLE,
                                 .name = "a queue of the host",
                                 .memory_total = (uint64_t)1 << 32,
                                 .memory_free = (uint64_t)1 << 31,
                                 .units = 1,
                                 .alignment = 64};

    (void)d, (void)err;
    memcpy(out, &info, bytes < sizeof info ? bytes : sizeof info);
    return TN_OK;
}

static tn_status queue_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    (void)d;
    if (memory != TN_MEMORY_DEVICE && memory != TN_MEMORY_PINNED)
        return tn_fail(err, TN_E_UNSUPPORTED, "there is no such memory");
    if (!bytes)
        return tn_fail(err, TN_E_ARG, "no bytes");
    if (bytes > (uint64_t)1 << 32)
        return tn_fail(err, TN_E_NOMEM, "there are 4 GiB");
    if (!posix_memalign(out, 64, (size_t)bytes))
        return TN_OK;
    *out = NULL;
    return DEFECT == NO_MEMORY ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory of the host");
}

static void queue_free(tn_device_handle *d, int32_t memory, void *data)
{
    (void)d;
    if (DEFECT != PINNED_KEPT || memory != TN_MEMORY_PINNED)
        free(data);
}

/* ---- streams ----------------------------------------------------------------------------------------- */

static tn_status queue_stream(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s;

    if (DEFECT == ONE_LEVEL && priority < 0)
        return tn_fail(err, TN_E_ARG, "all streams are urgent");
    s = calloc(1, sizeof *s);
    if (!s)
        return tn_fail(err, TN_E_NOMEM, "no memory for a stream");
    s->device = d;
    s->last = &s->first;
    if (pthread_create(&s->thread, NULL, stream_main, s)) {
        free(s);
        return tn_fail(err, TN_E_NOMEM, "no thread for a stream");
    }
    *out = s;
    return TN_OK;
}

static void queue_destroy(tn_stream *s)
{
    (void)pthread_mutex_lock(&s->device->lock);
    s->ending = true;
    (void)pthread_cond_broadcast(&s->device->changed);
    (void)pthread_mutex_unlock(&s->device->lock);
    (void)pthread_join(s->thread, NULL);
    free(s);
}

static tn_status queue_wait(tn_stream *s, tn_err *err)
{
    tn_status st;

    (void)pthread_mutex_lock(&s->device->lock);
    while (s->first || s->busy)
        (void)pthread_cond_wait(&s->device->changed, &s->device->lock);
    st = s->err.code;
    if (st && err)
        *err = s->err;
    (void)pthread_mutex_unlock(&s->device->lock);
    return st;
}

static tn_status queue_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg, tn_err *err)
{
    return put(s, &(job){.kind = JOB_CALL, .fn = fn, .arg = arg}, err);
}

static tn_status queue_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                            tn_err *err)
{
    const bool peers = dst->device >= 0 && src->device >= 0 && dst->device != src->device;

    if ((dst->type && strcmp(dst->type, "defect-queue") != 0) ||
        (src->type && strcmp(src->type, "defect-queue") != 0))
        return tn_fail(err, TN_E_UNSUPPORTED, "memory of another device");
    if (DEFECT == PEER_HALF && peers)
        bytes /= 2;
    if (DEFECT == COPY_NOW) {
        memcpy(dst->data, src->data, (size_t)bytes);
        return TN_OK;
    }
    return put(s, &(job){.kind = JOB_COPY, .to = dst->data, .from = src->data, .bytes = bytes}, err);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static tn_status queue_event(tn_device_handle *d, tn_event **out, tn_err *err)
{
    tn_event *e = calloc(1, sizeof *e);

    if (!e)
        return tn_fail(err, TN_E_NOMEM, "no memory for an event");
    e->device = d;
    *out = e;
    return TN_OK;
}

static void queue_event_destroy(tn_event *e)
{
    free(e);
}

static tn_status queue_record(tn_event *e, tn_stream *s, tn_err *err)
{
    job what = {.kind = JOB_RECORD, .event = e};

    (void)pthread_mutex_lock(&e->device->lock);
    what.number = ++e->recorded;
    (void)pthread_mutex_unlock(&e->device->lock);
    return put(s, &what, err);
}

static tn_status queue_event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    job what = {.kind = JOB_WAIT, .event = e};

    (void)pthread_mutex_lock(&e->device->lock);
    what.number = e->recorded;
    while (DEFECT == WAIT_BLOCKS && e->reached < e->recorded)
        (void)pthread_cond_wait(&e->device->changed, &e->device->lock);
    (void)pthread_mutex_unlock(&e->device->lock);
    return put(s, &what, err);
}

static tn_status queue_query(tn_event *e, tn_err *err)
{
    tn_status st;

    (void)pthread_mutex_lock(&e->device->lock);
    st = e->reached < e->recorded ? TN_PENDING : DEFECT == QUERY_GOOD ? TN_OK : e->err.code;
    if (st > TN_OK && err)
        *err = e->err;
    (void)pthread_mutex_unlock(&e->device->lock);
    return st;
}

static tn_status queue_notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    note *n = malloc(sizeof *n), *now = NULL;
    tn_err reached;

    if (!n)
        return tn_fail(err, TN_E_NOMEM, "no memory for a notification");
    (void)pthread_mutex_lock(&e->device->lock);
    *n = (note){.number = e->recorded, .fn = fn, .arg = arg};
    reached = e->err;
    if (e->reached >= e->recorded) {
        now = n;
    } else {
        n->next = e->notes;
        e->notes = n;
    }
    (void)pthread_mutex_unlock(&e->device->lock);
    notes_call(now, &reached);
    return TN_OK;
}

static const tn_device_ops queue_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "defect-queue"),
    .runs_kernels_of = "cpu",
    .count = queue_count,
    .open = queue_open,
    .close = queue_close,
    .info = queue_info,
    .alloc = queue_alloc,
    .free = queue_free,
    .stream_create = queue_stream,
    .stream_destroy = queue_destroy,
    .stream_wait = queue_wait,
    .stream_call = queue_call,
    .event_create = queue_event,
    .event_destroy = queue_event_destroy,
    .event_record = queue_record,
    .event_wait = queue_event_wait,
    .event_query = queue_query,
    .event_notify = queue_notify,
    .copy = queue_copy,
};
static const tn_capability *const capabilities[] = {&queue_ops.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "nobody", "Apache-2.0", "a plugin with a defect", "", "device:defect-queue",
                 NULL, NULL, NULL, capabilities);

#endif

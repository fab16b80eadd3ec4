/*
 * A plugin with one asynchronous device, `acme-async:0`: host memory that counts as the device's own, and the
 * kernels of the plugin `cpu`.
 *
 * The idea: a stream is a thread with a queue. What a stream is asked for is a task at the end of its queue,
 * so no function here waits but stream_wait and stream_destroy. Each record of an event makes a *point*,
 * which its stream reaches when it comes to the task; whoever waits for the event holds the point that it had
 * then, so an event may be recorded again, or destroyed, meanwhile. A driver has streams and events of its
 * own: there each function is one or two of its calls.
 */
#include "tenon/plugin/util.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 1
#define MEMORY_BYTES ((uint64_t)1 << 30)
#define ALIGNMENT 256u

struct tn_device_handle {
    pthread_mutex_t lock;
    uint64_t used_bytes; /* of MEMORY_BYTES */
};

typedef struct note { /* somebody to be told of a point */
    struct note *next;
    void (*fn)(void *arg, tn_status status, const tn_err *err);
    void *arg;
} note;

typedef struct point {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t refs, reached;
    tn_err failed; /* the stream's error when it came here */
    note *notes;
} point;

struct tn_event {
    pthread_mutex_t lock;
    point *last; /* NULL: never recorded, which counts as reached */
};

typedef struct task {
    struct task *next;
    void (*run)(tn_stream *s, struct task *t); /* on the stream's thread */
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg, *dst;
    const void *src;
    uint64_t bytes;
    point *at;
} task;

struct tn_stream {
    pthread_mutex_t lock; /* never held while foreign code runs */
    pthread_cond_t changed;
    pthread_t thread;
    task *first, **last;
    uint32_t busy, ending;
    tn_err failed; /* code TN_OK: nothing failed so far */
};

/* In front of each block of memory. */
typedef struct block {
    uint64_t counted_bytes;
} block;

static tn_status error_copy(tn_err *err, const tn_err *from)
{
    if (err)
        *err = *from;
    return from->code;
}

/* ---- the device: count, open, close, info -------------------------------------------------------------- */

static tn_status device_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin;
    (void)err;
    *out = DEVICES;
    return TN_OK;
}

/* A driver is loaded here, not in the plugin's init: a node without the device must not pay for it. */
static tn_status device_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    tn_device_handle *d;

    (void)plugin;
    if (index < 0 || index >= DEVICES)
        return tn_failf(err, TN_E_DEVICE, "there is no acme-async:%d, only %d of them", (int)index, DEVICES);
    d = calloc(1, sizeof *d);
    if (!d)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    (void)pthread_mutex_init(&d->lock, NULL);
    *out = d;
    return TN_OK;
}

static void device_close(tn_device_handle *d)
{
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

/* The host may know fewer or more members than we do: struct_size says how much room there is. */
static tn_status device_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    const uint32_t bytes = out->struct_size;
    tn_device_info info = {.struct_size = bytes,
                           .flags = TN_DEVICE_F_HOST_ADDRESSABLE,
                           .name = "acme-async, a device of host memory with queues",
                           .memory_total = MEMORY_BYTES,
                           .units = 1,
                           .alignment = ALIGNMENT};

    (void)err;
    (void)pthread_mutex_lock(&d->lock);
    info.memory_free = MEMORY_BYTES - d->used_bytes;
    (void)pthread_mutex_unlock(&d->lock);
    memcpy(out, &info, bytes < sizeof info ? bytes : sizeof info);
    return TN_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static tn_status memory_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    const uint64_t counted = memory == TN_MEMORY_DEVICE ? bytes : 0;
    block *made = NULL;
    int fits;

    if (memory != TN_MEMORY_DEVICE && memory != TN_MEMORY_PINNED)
        return tn_failf(err, TN_E_UNSUPPORTED, "acme-async has no memory of kind %d", (int)memory);
    if (!bytes || bytes > MEMORY_BYTES)
        return tn_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "no block can have this size");
    (void)pthread_mutex_lock(&d->lock);
    fits = counted <= MEMORY_BYTES - d->used_bytes;
    d->used_bytes += fits ? counted : 0;
    (void)pthread_mutex_unlock(&d->lock);
    if (fits) /* a whole number of lines, and one in front for the head */
        made = aligned_alloc(ALIGNMENT, ((size_t)bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (made) {
        made->counted_bytes = counted;
        *out = (char *)made + ALIGNMENT;
        return TN_OK;
    }
    if (fits) {
        (void)pthread_mutex_lock(&d->lock);
        d->used_bytes -= counted;
        (void)pthread_mutex_unlock(&d->lock);
    }
    return tn_failf(err, TN_E_NOMEM, "acme-async cannot give %llu bytes", (unsigned long long)bytes);
}

static void memory_free(tn_device_handle *d, int32_t memory, void *data)
{
    block *made;

    (void)memory;
    if (!data)
        return;
    made = (block *)(void *)((char *)data - ALIGNMENT);
    (void)pthread_mutex_lock(&d->lock);
    d->used_bytes -= made->counted_bytes;
    (void)pthread_mutex_unlock(&d->lock);
    free(made);
}

/* ---- points: what events are made of ------------------------------------------------------------------- */

static point *point_create(uint32_t refs)
{
    point *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->refs = refs;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    return p;
}

static void point_release(point *p)
{
    uint32_t left;

    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    left = --p->refs;
    (void)pthread_mutex_unlock(&p->lock);
    if (left)
        return;
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

/* The point that the event has now; to be released. */
static point *point_of(tn_event *e)
{
    point *p;

    (void)pthread_mutex_lock(&e->lock);
    if ((p = e->last) != NULL) {
        (void)pthread_mutex_lock(&p->lock);
        p->refs++;
        (void)pthread_mutex_unlock(&p->lock);
    }
    (void)pthread_mutex_unlock(&e->lock);
    return p;
}

static void point_reach(point *p, const tn_err *failed)
{
    note *n;

    (void)pthread_mutex_lock(&p->lock);
    p->failed = *failed;
    p->reached = 1;
    n = p->notes;
    p->notes = NULL;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    while (n) {
        note *next = n->next;

        n->fn(n->arg, failed->code, failed);
        free(n);
        n = next;
    }
}

static tn_err point_await(point *p)
{
    tn_err failed;

    (void)pthread_mutex_lock(&p->lock);
    while (!p->reached)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    failed = p->failed;
    (void)pthread_mutex_unlock(&p->lock);
    return failed;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

static tn_err stream_state(tn_stream *s)
{
    tn_err failed;

    (void)pthread_mutex_lock(&s->lock);
    failed = s->failed;
    (void)pthread_mutex_unlock(&s->lock);
    return failed;
}

/* The first failure stays. */
static void stream_fail(tn_stream *s, const tn_err *why)
{
    (void)pthread_mutex_lock(&s->lock);
    if (!s->failed.code)
        s->failed = *why;
    (void)pthread_mutex_unlock(&s->lock);
}

static void *stream_main(void *arg)
{
    tn_stream *s = arg;
    task *t;

    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->first && !s->ending)
            (void)pthread_cond_wait(&s->changed, &s->lock);
        if (!(t = s->first))
            break; /* what was queued is done */
        if (!(s->first = t->next))
            s->last = &s->first;
        s->busy = 1;
        (void)pthread_mutex_unlock(&s->lock);
        t->run(s, t);
        free(t);
        (void)pthread_mutex_lock(&s->lock);
        s->busy = 0;
        (void)pthread_cond_broadcast(&s->changed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static tn_status stream_create(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s = calloc(1, sizeof *s);

    (void)d;
    (void)priority;
    if (!s)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    s->last = &s->first;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, stream_main, s)) {
        (void)pthread_cond_destroy(&s->changed);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
        return tn_fail(err, TN_E_NOMEM, "no thread for a stream");
    }
    *out = s;
    return TN_OK;
}

/* Its work runs out first. */
static void stream_destroy(tn_stream *s)
{
    if (!s)
        return;
    (void)pthread_mutex_lock(&s->lock);
    s->ending = 1;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->thread, NULL);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static tn_status stream_wait(tn_stream *s, tn_err *err)
{
    tn_status st;

    (void)pthread_mutex_lock(&s->lock);
    while (s->first || s->busy)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    st = error_copy(err, &s->failed);
    (void)pthread_mutex_unlock(&s->lock);
    return st;
}

/* A copy of `like` at the end of the queue. `work`: a failed stream takes none of it. */
static tn_status task_queue(tn_stream *s, const task *like, int work, tn_err *err)
{
    task *t = malloc(sizeof *t);
    tn_status st = TN_OK;

    if (!t)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    *t = *like;
    (void)pthread_mutex_lock(&s->lock);
    if (work && s->failed.code) {
        st = error_copy(err, &s->failed);
        free(t);
    } else {
        *s->last = t;
        s->last = &t->next;
        (void)pthread_cond_broadcast(&s->changed);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return st;
}

/* After a failure nothing of what was queued before runs either. */
static void call_run(tn_stream *s, task *t)
{
    tn_err err = stream_state(s);
    tn_status st;

    if (err.code)
        return;
    if ((st = t->fn(t->arg, &err)) != TN_OK) {
        err.code = st;
        stream_fail(s, &err);
    }
}

static tn_status stream_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg, tn_err *err)
{
    return task_queue(s, &(task){.run = call_run, .fn = fn, .arg = arg}, 1, err);
}

static void copy_run(tn_stream *s, task *t)
{
    if (!stream_state(s).code)
        memmove(t->dst, t->src, (size_t)t->bytes);
}

/* Memory of the host, pinned or not, or of this device. For the rest: TN_E_UNSUPPORTED, and the host goes
 * another way. */
static int reached(const tn_place *p)
{
    return !p->type || p->memory != TN_MEMORY_DEVICE || strcmp(p->type, "acme-async") == 0;
}

static tn_status stream_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                             tn_err *err)
{
    if (!reached(dst) || !reached(src))
        return tn_fail(err, TN_E_UNSUPPORTED, "one end of the copy is another device's memory");
    return task_queue(s, &(task){.run = copy_run, .dst = dst->data, .src = src->data, .bytes = bytes}, 1,
                      err);
}

/* ---- events -------------------------------------------------------------------------------------------- */

static tn_status event_create(tn_device_handle *d, tn_event **out, tn_err *err)
{
    tn_event *e = calloc(1, sizeof *e);

    (void)d;
    if (!e)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    (void)pthread_mutex_init(&e->lock, NULL);
    *out = e;
    return TN_OK;
}

static void event_destroy(tn_event *e)
{
    if (!e)
        return;
    point_release(e->last);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

static void record_run(tn_stream *s, task *t)
{
    const tn_err failed = stream_state(s);

    point_reach(t->at, &failed);
    point_release(t->at);
}

static tn_status event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    point *made = point_create(2), *before; /* the event's and the task's */
    tn_status st;

    if (!made)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    if ((st = task_queue(s, &(task){.run = record_run, .at = made}, 0, err))) {
        point_release(made);
        point_release(made);
        return st;
    }
    (void)pthread_mutex_lock(&e->lock);
    before = e->last;
    e->last = made;
    (void)pthread_mutex_unlock(&e->lock);
    point_release(before);
    return TN_OK;
}

/* A stream that waits for a failed one fails, too. */
static void wait_run(tn_stream *s, task *t)
{
    const tn_err failed = point_await(t->at);

    if (failed.code)
        stream_fail(s, &failed);
    point_release(t->at);
}

static tn_status event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    point *p = point_of(e);
    tn_status st = TN_OK;

    if (p && (st = task_queue(s, &(task){.run = wait_run, .at = p}, 0, err)))
        point_release(p);
    return st;
}

static tn_status event_query(tn_event *e, tn_err *err)
{
    point *p = point_of(e);
    tn_status st = TN_OK;

    if (!p)
        return st;
    (void)pthread_mutex_lock(&p->lock);
    st = p->reached ? error_copy(err, &p->failed) : TN_PENDING;
    (void)pthread_mutex_unlock(&p->lock);
    point_release(p);
    return st;
}

static tn_status event_notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    static const tn_err good = {0};
    note *n = malloc(sizeof *n);
    point *p;
    uint32_t reached;

    if (!n)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    if (!(p = point_of(e))) {
        free(n);
        fn(arg, TN_OK, &good);
        return TN_OK;
    }
    *n = (note){NULL, fn, arg};
    (void)pthread_mutex_lock(&p->lock);
    if (!(reached = p->reached)) {
        n->next = p->notes;
        p->notes = n;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (reached) { /* nobody changes it any more */
        free(n);
        fn(arg, p->failed.code, &p->failed);
    }
    point_release(p);
    return TN_OK;
}

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static const tn_device_ops device_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "acme-async"),
    .runs_kernels_of = "cpu",
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .alloc = memory_alloc,
    .free = memory_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .stream_call = stream_call,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_notify = event_notify,
    .copy = stream_copy,
};

static const tn_capability *const capabilities[] = {&device_ops.head, NULL};

TN_PLUGIN_DEFINE("acme-async", "1.0.0", "Acme", "Apache-2.0", "a device of host memory with queues", "",
                 "device:acme-async", NULL, NULL, NULL, capabilities);

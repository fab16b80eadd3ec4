/*
 * A plugin with one device, `acme-device:0`: host memory that counts as the device's own, streams, events,
 * copies, and the kernels of the plugin `cpu`.
 *
 * The idea: everything is done at once, by the thread that asks for it, so a stream is never behind and an
 * event is reached as soon as it is recorded. A driver has queues of its own; each function below is the
 * place of one or two of its calls. What the host relies on is the same: order within a stream, errors that
 * stick to their stream, each notification exactly once.
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

struct tn_stream {
    pthread_mutex_t lock; /* never held while foreign code runs */
    pthread_cond_t idle;
    uint32_t running;
    tn_err failed; /* code TN_OK: nothing failed so far */
};

/* The stream's error when the event was recorded. */
struct tn_event {
    pthread_mutex_t lock;
    tn_err failed;
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
        return tn_failf(err, TN_E_DEVICE, "there is no acme-device:%d, only %d of them", (int)index, DEVICES);
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
                           .name = "acme-device, a device of host memory",
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
        return tn_failf(err, TN_E_UNSUPPORTED, "acme-device has no memory of kind %d", (int)memory);
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
    return tn_failf(err, TN_E_NOMEM, "acme-device cannot give %llu bytes", (unsigned long long)bytes);
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

/* ---- streams ------------------------------------------------------------------------------------------- */

static tn_status stream_create(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s = calloc(1, sizeof *s);

    (void)d;
    (void)priority;
    if (!s)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->idle, NULL);
    *out = s;
    return TN_OK;
}

static void stream_destroy(tn_stream *s)
{
    if (!s)
        return;
    (void)pthread_cond_destroy(&s->idle);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static tn_status stream_wait(tn_stream *s, tn_err *err)
{
    tn_status st;

    (void)pthread_mutex_lock(&s->lock);
    while (s->running)
        (void)pthread_cond_wait(&s->idle, &s->lock);
    st = error_copy(err, &s->failed);
    (void)pthread_mutex_unlock(&s->lock);
    return st;
}

/* After a failure nothing runs on the stream any more. */
static tn_status stream_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg, tn_err *err)
{
    tn_err mine = {0};
    tn_status st;

    (void)pthread_mutex_lock(&s->lock);
    if ((st = error_copy(err, &s->failed)) == TN_OK)
        s->running++;
    (void)pthread_mutex_unlock(&s->lock);
    if (st)
        return st;
    st = fn(arg, &mine);
    (void)pthread_mutex_lock(&s->lock);
    if (st && !s->failed.code) {
        s->failed = mine;
        s->failed.code = st;
    }
    s->running--;
    (void)pthread_cond_broadcast(&s->idle);
    (void)pthread_mutex_unlock(&s->lock);
    return TN_OK; /* the call was taken; its failure is the stream's */
}

typedef struct copy_work {
    void *dst;
    const void *src;
    uint64_t bytes;
} copy_work;

static tn_status copy_run(void *arg, tn_err *err)
{
    const copy_work *c = arg;

    (void)err;
    memmove(c->dst, c->src, (size_t)c->bytes);
    return TN_OK;
}

/* Memory of the host, pinned or not, or of this device. For the rest: TN_E_UNSUPPORTED, and the host goes
 * another way. */
static int reached(const tn_place *p)
{
    return !p->type || p->memory != TN_MEMORY_DEVICE || strcmp(p->type, "acme-device") == 0;
}

static tn_status stream_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                             tn_err *err)
{
    copy_work work = {dst->data, src->data, bytes};

    if (!reached(dst) || !reached(src))
        return tn_fail(err, TN_E_UNSUPPORTED, "one end of the copy is another device's memory");
    return stream_call(s, copy_run, &work, err);
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
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

/* What the event knows: how its stream stood when it was recorded. */
static tn_err event_state(tn_event *e)
{
    tn_err state;

    (void)pthread_mutex_lock(&e->lock);
    state = e->failed;
    (void)pthread_mutex_unlock(&e->lock);
    return state;
}

static tn_status event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    tn_err state = {0};

    (void)err;
    (void)stream_wait(s, &state);
    (void)pthread_mutex_lock(&e->lock);
    e->failed = state;
    (void)pthread_mutex_unlock(&e->lock);
    return TN_OK;
}

/* The point is reached already. A stream that waits for a failed one fails too. */
static tn_status event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    const tn_err state = event_state(e);

    (void)err;
    (void)pthread_mutex_lock(&s->lock);
    if (state.code && !s->failed.code)
        s->failed = state;
    (void)pthread_mutex_unlock(&s->lock);
    return TN_OK;
}

static tn_status event_query(tn_event *e, tn_err *err)
{
    const tn_err state = event_state(e);

    return error_copy(err, &state);
}

static tn_status event_notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    const tn_err state = event_state(e);

    (void)err;
    fn(arg, state.code, &state);
    return TN_OK;
}

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static const tn_device_ops device_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "acme-device"),
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

TN_PLUGIN_DEFINE("acme-device", "1.0.0", "Acme", "Apache-2.0", "a device of host memory", "",
                 "device:acme-device", NULL, NULL, NULL, capabilities);

/* See far.h. An address of the device is the real one with a bit that no address of a process has. */
#include "far.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FAR ((uintptr_t)1 << 52)

struct tn_device_handle {
    int32_t index;
};
struct tn_stream {
    int unused;
};
struct tn_event {
    int unused;
};

static void *real(const void *data)
{
    return (void *)((uintptr_t)data & ~FAR);
}

void *far_near(const tn_tensor *t)
{
    return real(t->data);
}

/* ---- memory that was given as pinned ------------------------------------------------------------------- */

static struct {
    char *data;
    uint64_t bytes;
} pinned[64];
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

static void pinned_note(void *data, uint64_t bytes)
{
    size_t i = 0;

    pthread_mutex_lock(&pinned_lock);
    while (i < 64 && pinned[i].data)
        i++;
    assert_true(i < 64);
    pinned[i].data = data;
    pinned[i].bytes = bytes;
    pthread_mutex_unlock(&pinned_lock);
}

static void pinned_forget(const void *data)
{
    pthread_mutex_lock(&pinned_lock);
    for (size_t i = 0; i < 64; i++)
        if (pinned[i].data == data)
            pinned[i].data = NULL;
    pthread_mutex_unlock(&pinned_lock);
}

bool far_pinned(const void *data)
{
    bool found = false;

    pthread_mutex_lock(&pinned_lock);
    for (size_t i = 0; i < 64; i++)
        found |= pinned[i].data && (const char *)data >= pinned[i].data &&
                 (const char *)data < pinned[i].data + pinned[i].bytes;
    pthread_mutex_unlock(&pinned_lock);
    return found;
}

static tn_status far_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin;
    (void)err;
    *out = 1;
    return TN_OK;
}

static tn_status far_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    (void)plugin;
    if (!(*out = calloc(1, sizeof **out)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    (*out)->index = index;
    return TN_OK;
}

static void far_close(tn_device_handle *d)
{
    free(d);
}

static tn_status far_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    (void)d;
    (void)err;
    out->memory_total = out->memory_free = 1u << 30;
    out->alignment = 256;
    return TN_OK;
}

static tn_status beside_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    out->flags = TN_DEVICE_F_HOST_ADDRESSABLE;
    return far_info(d, out, err);
}

static tn_status beside_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    (void)d;
    (void)memory;
    *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *out ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory");
}

static tn_status far_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    const tn_status st = beside_alloc(d, memory, bytes, out, err);

    if (!st && memory == TN_MEMORY_DEVICE)
        *out = (void *)((uintptr_t)*out | FAR);
    if (!st && memory == TN_MEMORY_PINNED)
        pinned_note(*out, bytes);
    return st;
}

static void far_free(tn_device_handle *d, int32_t memory, void *data)
{
    (void)d;
    if (memory == TN_MEMORY_PINNED)
        pinned_forget(data);
    free(real(data));
}

static tn_status far_stream_create(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    (void)d;
    (void)priority;
    if (!(*out = calloc(1, sizeof **out)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    return TN_OK;
}

static void far_stream_destroy(tn_stream *s)
{
    free(s);
}

static tn_status far_stream_wait(tn_stream *s, tn_err *err)
{
    (void)s;
    (void)err;
    return TN_OK;
}

static tn_status far_stream_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                                 tn_err *err)
{
    (void)s;
    return fn(arg, err);
}

static tn_status far_event_create(tn_device_handle *d, tn_event **out, tn_err *err)
{
    (void)d;
    if (!(*out = calloc(1, sizeof **out)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    return TN_OK;
}

static void far_event_destroy(tn_event *e)
{
    free(e);
}

static tn_status far_event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    (void)e;
    (void)s;
    (void)err;
    return TN_OK;
}

static tn_status far_event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    (void)e;
    (void)s;
    (void)err;
    return TN_OK;
}

static tn_status far_event_query(tn_event *e, tn_err *err)
{
    (void)e;
    (void)err;
    return TN_OK;
}

static tn_status far_event_notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err),
                                  void *arg, tn_err *err)
{
    (void)e;
    (void)err;
    fn(arg, TN_OK, NULL);
    return TN_OK;
}

static tn_status beside_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                             tn_err *err)
{
    (void)s;
    (void)err;
    memcpy(dst->data, src->data, bytes);
    return TN_OK;
}

/* The host's places have no type, those of devices one of these. */
static bool place_said(const tn_place *p)
{
    return p->device < 0 ? !p->type : p->type && (!strcmp(p->type, "far") || !strcmp(p->type, "farther"));
}

/* Whoever names device memory as the host's, or the other way round, does not get far. */
static tn_status far_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes, tn_err *err)
{
    const tn_place *const places[] = {dst, src};

    (void)s;
    for (int i = 0; i < 2; i++)
        if ((bytes && ((uintptr_t)places[i]->data & FAR) != (places[i]->device < 0 ? 0 : FAR)) ||
            !place_said(places[i]))
            return tn_fail(err, TN_E_INTERNAL, "a place is not where it says");
    memcpy(real(dst->data), real(src->data), bytes);
    return TN_OK;
}

#define FAR_OPS(name, info_, alloc_, copy_)                                                                  \
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, name), .count = far_count, .open = far_open,  \
    .close = far_close, .info = info_, .alloc = alloc_, .free = far_free,                                    \
    .stream_create = far_stream_create, .stream_destroy = far_stream_destroy,                                \
    .stream_wait = far_stream_wait, .event_create = far_event_create, .event_destroy = far_event_destroy,    \
    .event_record = far_event_record, .event_wait = far_event_wait, .event_query = far_event_query,          \
    .event_notify = far_event_notify, .copy = copy_

const tn_device_ops far_ops = {FAR_OPS("far", far_info, far_alloc, far_copy), .stream_call = far_stream_call};
const tn_device_ops farther_ops = {FAR_OPS("farther", far_info, far_alloc, far_copy)};
const tn_device_ops beside_ops = {FAR_OPS("beside", beside_info, beside_alloc, beside_copy),
                                  .stream_call = far_stream_call};

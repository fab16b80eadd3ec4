/*
 * Where pools get memory from: raw blocks of the device, counted and limited, and marks, which are the
 * device's events. Events are kept for reuse; one may be recorded again while streams still wait for its
 * earlier point.
 */
#include "device/internal.h"

tn_status tni_device_event_take(tni_device *d, tn_event **out)
{
    device_impl *impl = tni_device_impl(d);
    tn_err err = {0};
    tn_event *event = NULL;
    tn_status st;

    tni_mutex_lock(&impl->event_lock);
    if (impl->event_count)
        event = impl->events[--impl->event_count];
    tni_mutex_unlock(&impl->event_lock);
    if (!event && (st = d->ops->event_create(d->handle, &event, &err)))
        return tni_error_take(st, &err, d->type);
    *out = event;
    return TN_OK;
}

void tni_device_event_give(tni_device *d, tn_event *event)
{
    device_impl *impl = tni_device_impl(d);

    if (!event)
        return;
    tni_mutex_lock(&impl->event_lock);
    if (impl->event_count < TNI_EVENTS_CACHED_MAX) {
        impl->events[impl->event_count++] = event;
        event = NULL;
    }
    tni_mutex_unlock(&impl->event_lock);
    if (event && !atomic_load(&d->set->forked))
        d->ops->event_destroy(event);
}

/* ---- the functions of tn_pool_source --------------------------------------------------------------- */

static tn_status raw_alloc(tni_pool *p, uint64_t bytes, void **out, tn_err *err)
{
    tni_device *d = p->device;
    tn_status st;

    if (d->host) {
        if (!(st = tni_host_alloc(p->memory, bytes, out)))
            return TN_OK;
        tni_error_get(err);
        return st;
    }
    if (atomic_load(&d->set->forked))
        return tn_fail(err, TN_E_STATE, "devices other than the host cannot be used after fork");
    return d->ops->alloc(d->handle, p->memory, bytes, out, err);
}

static void raw_free(tni_pool *p, void *data, uint64_t bytes)
{
    tni_device *d = p->device;

    if (d->host)
        tni_host_free(p->memory, data, bytes);
    else if (!atomic_load(&d->set->forked)) /* a child leaves the parent's device memory alone */
        d->ops->free(d->handle, p->memory, data);
}

static tn_status source_alloc(void *arg, uint64_t bytes, void **out, tn_err *err)
{
    tni_pool *p = arg;
    tn_err local;
    void *data = NULL;
    tn_status st;

    if (!err)
        err = &local;
    tni_mutex_lock(&p->raw_lock);
    if (p->limit_bytes && (bytes > p->limit_bytes || p->raw.bytes > p->limit_bytes - bytes)) {
        tni_err_format(err, TN_E_NOMEM, "the limit of %llu bytes is reached",
                       (unsigned long long)p->limit_bytes);
        st = TN_E_NOMEM;
    } else if ((st = tni_raw_reserve(&p->raw))) {
        tni_error_get(err);
    } else if (!(st = raw_alloc(p, bytes, &data, err))) {
        tni_raw_add(&p->raw, data, bytes);
        *out = data;
    }
    tni_mutex_unlock(&p->raw_lock);
    return st;
}

static void source_free(void *arg, void *data)
{
    tni_pool *p = arg;
    uint64_t bytes;
    bool known;

    tni_mutex_lock(&p->raw_lock);
    if ((known = tni_raw_remove(&p->raw, data, &bytes)))
        raw_free(p, data, bytes);
    tni_mutex_unlock(&p->raw_lock);
    if (!known && data)
        tni_logf(p->device->set->log, TN_LOG_ERROR, "pool %s of %s freed a block that it never got", p->name,
                 p->device->type);
}

static tn_status source_info(void *arg, uint64_t *free_bytes, uint64_t *total_bytes)
{
    tni_pool *p = arg;
    tni_device *d = p->device;
    tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    tn_err err = {0};
    tn_status st;

    if (d->host || p->memory != TN_MEMORY_DEVICE) {
        tni_host_info(free_bytes, total_bytes);
    } else {
        if ((st = d->ops->info(d->handle, &info, &err)))
            return st;
        *free_bytes = info.memory_free;
        *total_bytes = info.memory_total;
    }
    if (p->limit_bytes) {
        uint64_t used, left;

        tni_mutex_lock(&p->raw_lock);
        used = p->raw.bytes;
        tni_mutex_unlock(&p->raw_lock);
        left = p->limit_bytes > used ? p->limit_bytes - used : 0;
        *free_bytes = left < *free_bytes ? left : *free_bytes;
        *total_bytes = p->limit_bytes < *total_bytes ? p->limit_bytes : *total_bytes;
    }
    return TN_OK;
}

static const char *source_option(void *arg, const char *key)
{
    tni_pool *p = arg;
    char name[TN_INI_NAME_MAX * 2 + 2];
    const char *text;

    if (!p->device->set->options)
        return NULL;
    (void)snprintf(name, sizeof name, "memory.%s%s.%s", p->device->type,
                   p->memory == TN_MEMORY_PINNED ? ".pinned" : "", key);
    text = tni_option_text(p->device->set->options, name);
    return text && text[0] ? text : NULL;
}

static tn_status source_mark_record(void *arg, tn_stream *stream, void **out)
{
    tni_device *d = ((tni_pool *)arg)->device;
    tn_event *event = NULL;
    tn_err err = {0};
    tn_status st;

    *out = NULL;
    if (d->host || !stream || atomic_load(&d->set->forked))
        return TN_OK;
    if ((st = tni_device_event_take(d, &event)))
        return st;
    tni_device_recording_lock(d); /* blocks are freed on any thread */
    st = d->ops->event_record(event, stream, &err);
    tni_device_recording_unlock(d);
    if (st) {
        tni_device_event_give(d, event);
        return tni_error_take(st, &err, d->type);
    }
    *out = event;
    return TN_OK;
}

/* A failed stream does no more work: its memory is as free as memory of a finished one. */
static int32_t source_mark_done(void *arg, void *mark)
{
    tni_device *d = ((tni_pool *)arg)->device;
    tn_err err;

    return !mark || atomic_load(&d->set->forked) || d->ops->event_query(mark, &err) != TN_PENDING;
}

static tn_status source_mark_wait(void *arg, void *mark, tn_stream *stream)
{
    tni_device *d = ((tni_pool *)arg)->device;
    tn_err err = {0};
    tn_status st;

    if (!mark || !stream || atomic_load(&d->set->forked))
        return TN_OK;
    tni_device_recording_lock(d);
    st = d->ops->event_wait(stream, mark, &err);
    tni_device_recording_unlock(d);
    return st ? tni_error_take(st, &err, d->type) : TN_OK;
}

static void source_mark_release(void *arg, void *mark)
{
    tni_device_event_give(((tni_pool *)arg)->device, mark);
}

tn_status tni_pool_source_init(tni_pool *p)
{
    const char *limit;

    p->source = (tn_pool_source){
        .struct_size = (uint32_t)TN_END(tn_pool_source, mark_release),
        .alignment = tni_device_impl(p->device)->alignment,
        .arg = p,
        .alloc = source_alloc,
        .free = source_free,
        .info = source_info,
        .option = source_option,
        .mark_record = source_mark_record,
        .mark_done = source_mark_done,
        .mark_wait = source_mark_wait,
        .mark_release = source_mark_release,
    };
    if ((limit = source_option(p, "limit")) && !tni_parse_u64(limit, &p->limit_bytes))
        return tni_error(TN_E_ARG, "memory.%s.limit is '%s', expected bytes", p->device->type, limit);
    return TN_OK;
}

/*
 * One GPU: its table of functions, its memory, its numbers.
 *
 * The context is the primary one, which the vendor's libraries and other users of the process share. Each
 * function makes it the thread's own and takes it back, so that a thread's own choice stays. An error that
 * ends the context (an illegal address, a lost device) fails the device: it is logged once, and every later
 * call answers with it.
 */
#include "launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- failing ------------------------------------------------------------------------------------------- */

static tn_status failure_of(tn_device_handle *d, tn_err *err)
{
    tn_status st;

    pthread_mutex_lock(&d->lock);
    if ((st = d->failure.code) && err)
        *err = d->failure;
    pthread_mutex_unlock(&d->lock);
    return st;
}

static void device_fail(tn_device_handle *d, const tn_err *why)
{
    bool first;

    pthread_mutex_lock(&d->lock);
    if ((first = !d->failure.code)) {
        d->failure = *why;
        d->failure.code = TN_E_DEVICE;
    }
    pthread_mutex_unlock(&d->lock);
    if (first)
        tncuda_log(d->plugin, TN_LEVEL_ERROR,
                   "cuda:%" PRId32 " has failed and is of no more use in this process: %s", d->index,
                   why->message);
}

tn_status tncuda_check(tn_device_handle *device, tncuda_result result, const char *what, tn_err *err)
{
    tn_err own = {0};
    tn_status st;

    if (!result)
        return TN_OK;
    st = tncuda_driver_fail(device->driver, result, what, &own);
    if (tncuda_driver_sticky(result))
        device_fail(device, &own);
    if (err)
        *err = own;
    return st;
}

tn_status tncuda_usable(tn_device_handle *device, tn_err *err)
{
    const tn_status st = tncuda_driver_need(device->plugin, err);

    return st ? st : failure_of(device, err);
}

tn_status tncuda_enter(tn_device_handle *device, tn_err *err)
{
    const tn_status st = tncuda_usable(device, err);

    if (st)
        return st;
    return tncuda_check(device, device->driver->context_push(device->context), "cuCtxPushCurrent", err);
}

bool tncuda_enter_end(tn_device_handle *device)
{
    return !tncuda_driver_need(device->plugin, NULL) && !device->driver->context_push(device->context);
}

void tncuda_leave(tn_device_handle *device)
{
    tncuda_context gone;

    (void)device->driver->context_pop(&gone);
}

/* ---- items --------------------------------------------------------------------------------------------- */

void tncuda_item_add(tn_device_handle *device, tncuda_item *item)
{
    pthread_mutex_lock(&device->lock);
    device->pending++;
    item->link = &device->items;
    if ((item->next = device->items))
        item->next->link = &item->next;
    device->items = item;
    pthread_mutex_unlock(&device->lock);
}

void tncuda_item_begin(tn_device_handle *device, tncuda_item *item)
{
    pthread_mutex_lock(&device->lock);
    item->running = true;
    pthread_mutex_unlock(&device->lock);
}

void tncuda_item_end(tn_device_handle *device, tncuda_item *item)
{
    pthread_mutex_lock(&device->lock);
    if ((*item->link = item->next))
        item->next->link = item->link;
    pthread_mutex_unlock(&device->lock);
    item->drop(item);
    pthread_mutex_lock(&device->lock);
    device->pending--;
    pthread_cond_broadcast(&device->quiet);
    pthread_mutex_unlock(&device->lock);
}

void tncuda_items_drop(tn_device_handle *device)
{
    pthread_mutex_lock(&device->lock);
    while (device->pending) {
        tncuda_item *i = device->items;

        while (i && i->running)
            i = i->next;
        if (!i) {
            pthread_cond_wait(&device->quiet, &device->lock);
            continue;
        }
        i->running = true;
        pthread_mutex_unlock(&device->lock);
        tncuda_item_end(device, i);
        pthread_mutex_lock(&device->lock);
    }
    pthread_mutex_unlock(&device->lock);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static tn_status cuda_count(void *plugin, int32_t *out, tn_err *err)
{
    tncuda_plugin *p = plugin;
    int32_t count = 0;
    tncuda_result result;
    tn_status st = tncuda_driver_need(p, err);

    if (st)
        return st;
    result = p->driver.device_count(&count);
    if (result == TNCUDA_NO_DEVICE || (!result && !count))
        return tn_fail(err, TN_E_DEVICE,
                       "the NVIDIA driver finds no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES");
    if (result)
        return tncuda_driver_fail(&p->driver, result, "cuDeviceGetCount", err);
    *out = count < TNCUDA_DEVICES_MAX ? count : TNCUDA_DEVICES_MAX;
    return TN_OK;
}

static tn_status cuda_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    tncuda_plugin *p = plugin;
    tn_device_handle *d;
    int32_t count;
    tn_status st;

    if ((st = cuda_count(plugin, &count, err)))
        return st;
    if (index < 0 || index >= count)
        return tn_failf(err, TN_E_DEVICE, "there is no cuda:%d, the driver has %d", (int)index, (int)count);
    if (!(d = tncuda_new(p, sizeof *d)))
        return tncuda_nomem(err, "a device");
    d->plugin = p;
    d->driver = &p->driver;
    d->index = index;
    if ((st = tncuda_context_get(p, index, &d->context, err))) {
        tncuda_delete(p, d);
        return st;
    }
    (void)p->driver.device_get(&d->ordinal, index); /* it was asked before */
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->quiet, NULL);
    *out = d;
    return TN_OK;
}

/* All work runs out first. What the driver does not call, because the context has failed, is dropped behind
 * the release: a context that is gone calls nothing. */
static void cuda_close(tn_device_handle *device)
{
    tncuda_plugin *p = device ? device->plugin : NULL;

    if (!device || atomic_load_explicit(&p->forked, memory_order_relaxed))
        return;
    if (!tncuda_enter(device, NULL)) {
        (void)tncuda_check(device, device->driver->context_wait(), "cuCtxSynchronize", NULL);
        tncuda_leave(device);
    }
    tncuda_graphs_sweep(device, true);
    tncuda_modules_drop(device);
    tncuda_moments_drop(device);
    for (int32_t i = 0; i < TNCUDA_DEVICES_MAX; i++)
        if (device->peers[i])
            tncuda_context_give(p, i);
    tncuda_context_give(p, device->index);
    tncuda_items_drop(device);
    pthread_cond_destroy(&device->quiet);
    pthread_mutex_destroy(&device->lock);
    tncuda_delete(p, device);
}

static tn_status cuda_info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    const tncuda_driver *d = device->driver;
    const uint32_t bytes = out->struct_size;
    tn_device_info info = {.struct_size = bytes, .alignment = TNCUDA_ALIGN};
    int32_t units = 0, major = 0, minor = 0;
    size_t left = 0, total = 0;
    tn_status st;

    if ((st = tncuda_enter(device, err)))
        return st;
    (void)((st = tncuda_check(device, d->device_name(info.name, sizeof info.name, device->ordinal),
                              "cuDeviceGetName", err)) ||
           (st = tncuda_check(device, d->memory_info(&left, &total), "cuMemGetInfo", err)) ||
           (st = tncuda_check(device, d->device_attribute(&units, TNCUDA_ATTRIBUTE_UNITS, device->ordinal),
                              "cuDeviceGetAttribute", err)) ||
           (st = tncuda_check(device,
                              d->device_attribute(&major, TNCUDA_ATTRIBUTE_COMPUTE_MAJOR, device->ordinal),
                              "cuDeviceGetAttribute", err)) ||
           (st = tncuda_check(device,
                              d->device_attribute(&minor, TNCUDA_ATTRIBUTE_COMPUTE_MINOR, device->ordinal),
                              "cuDeviceGetAttribute", err)));
    tncuda_leave(device);
    if (st)
        return st;
    info.name[sizeof info.name - 1] = '\0';
    info.memory_total = total;
    info.memory_free = left;
    info.units = (uint32_t)units;
    info.compute_major = (uint32_t)major;
    info.compute_minor = (uint32_t)minor;
    memcpy(out, &info, bytes < sizeof info ? bytes : sizeof info);
    return TN_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void blocks_span(tn_device_handle *device, uint64_t at, uint64_t bytes)
{
    pthread_mutex_lock(&device->lock);
    if (!device->behind || at < device->lowest)
        device->lowest = at;
    if (at + bytes > device->behind)
        device->behind = at + bytes;
    pthread_mutex_unlock(&device->lock);
}

static tn_status cuda_alloc(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    const tncuda_driver *d = device->driver;
    tncuda_address at = 0;
    void *data = NULL;
    char what[80];
    tn_status st;

    if (memory != TN_MEMORY_DEVICE && memory != TN_MEMORY_PINNED)
        return tn_failf(err, TN_E_UNSUPPORTED, "cuda has no memory of kind %d", (int)memory);
    if (!bytes || bytes > (uint64_t)INT64_MAX)
        return tn_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "no block can have this size");
    if ((st = tncuda_enter(device, err)))
        return st;
    (void)snprintf(what, sizeof what, "cuda:%" PRId32 ", a block of %" PRIu64 " bytes: the driver",
                   device->index, bytes);
    if (memory == TN_MEMORY_PINNED)
        st = tncuda_check(device, d->host_alloc(&data, (size_t)bytes, TNCUDA_HOST_PORTABLE), what, err);
    else if (device->plugin->managed)
        st = tncuda_check(device, d->memory_managed(&at, (size_t)bytes, TNCUDA_MANAGED_GLOBAL), what, err);
    else
        st = tncuda_check(device, d->memory_alloc(&at, (size_t)bytes), what, err);
    tncuda_leave(device);
    if (st)
        return st;
    tncuda_count(&device->count.allocations);
    *out = memory == TN_MEMORY_PINNED ? data : (void *)(uintptr_t)at;
    blocks_span(device, (uintptr_t)*out, bytes);
    return TN_OK;
}

static void cuda_free(tn_device_handle *device, int32_t memory, void *data)
{
    if (!data || !tncuda_enter_end(device))
        return;
    if (memory == TN_MEMORY_PINNED)
        (void)tncuda_check(device, device->driver->host_free(data), "cuMemFreeHost", NULL);
    else
        (void)tncuda_check(device, device->driver->memory_free((tncuda_address)(uintptr_t)data), "cuMemFree",
                           NULL);
    tncuda_leave(device);
}

static tn_status cuda_host_register(tn_device_handle *device, void *data, uint64_t bytes, tn_err *err)
{
    tn_status st;

    if (!data || !bytes || bytes > (uint64_t)INT64_MAX)
        return tn_fail(err, TN_E_ARG, "no memory to register");
    if ((st = tncuda_enter(device, err)))
        return st;
    st = tncuda_check(device, device->driver->host_register(data, (size_t)bytes, TNCUDA_HOST_PORTABLE),
                      "cuMemHostRegister", err);
    tncuda_leave(device);
    return st;
}

static void cuda_host_unregister(tn_device_handle *device, void *data)
{
    if (!data || !tncuda_enter_end(device))
        return;
    (void)tncuda_check(device, device->driver->host_unregister(data), "cuMemHostUnregister", NULL);
    tncuda_leave(device);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

/* The driver copies between any two, over the host where it must. */
static int32_t cuda_peer(tn_device_handle *device, int32_t peer)
{
    int32_t count;

    return !cuda_count(device->plugin, &count, NULL) && peer >= 0 && peer < count;
}

static const char *cuda_statistics(tn_device_handle *device)
{
    tncuda_counters *c = &device->count;
    const struct {
        const char *name;
        atomic_ullong *value;
    } rows[] = {
        {"calls", &c->calls},
        {"copies", &c->copies},
        {"launches", &c->launches},
        {"event_waits", &c->event_waits},
        {"notifications", &c->notifications},
        {"graphs", &c->graphs},
        {"graph_launches", &c->graph_launches},
        {"graph_updates", &c->graph_updates},
        {"allocations", &c->allocations},
    };
    size_t at = 0;

    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        at += (size_t)snprintf(device->text + at, sizeof device->text - at, "%s\"%s\":%llu", i ? "," : "{",
                               rows[i].name, atomic_load_explicit(rows[i].value, memory_order_relaxed));
    (void)snprintf(device->text + at, sizeof device->text - at, ",\"failed\":%s}",
                   device->failure.code ? "true" : "false");
    pthread_mutex_unlock(&device->lock);
    return device->text;
}

const tn_device_ops tncuda_device_ops = {
    .head = TN_CAPABILITY(tn_device_ops, graph_run, TN_KIND_DEVICE, "cuda"),
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .stream_create = tncuda_stream_create,
    .stream_destroy = tncuda_stream_destroy,
    .stream_wait = tncuda_stream_wait,
    .stream_call = tncuda_stream_call,
    .event_create = tncuda_event_create,
    .event_destroy = tncuda_event_destroy,
    .event_record = tncuda_event_record,
    .event_wait = tncuda_event_wait,
    .event_query = tncuda_event_query,
    .event_notify = tncuda_event_notify,
    .copy = tncuda_copy,
    .statistics = cuda_statistics,
    .peer = cuda_peer,
    .host_register = cuda_host_register,
    .host_unregister = cuda_host_unregister,
    .graph_begin = tncuda_graph_begin,
    .graph_end = tncuda_graph_end,
    .graph_update = tncuda_graph_update,
    .graph_launch = tncuda_graph_launch,
    .graph_free = tncuda_graph_free,
    .graph_run = tncuda_graph_run,
};

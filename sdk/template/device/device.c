/*
 * One fake device: its table of functions, its memory, its numbers.
 *
 * New memory is filled with bytes of 0xff: a float read before its producer ran is NaN, an index is -1.
 * Memory may only be given back when no work on it is pending; unlike some drivers, `free` does not wait for
 * that.
 */
#include "fake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lies in the TNFAKE_ALIGN bytes before each block. */
typedef struct block_head {
    uint64_t bytes;
    int32_t memory;
} block_head;

static tn_status fake_count(void *plugin, int32_t *out, tn_err *err)
{
    const tnfake_plugin *p = plugin;

    (void)err;
    *out = (int32_t)p->devices;
    return TN_OK;
}

static tn_status fake_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    tnfake_plugin *p = plugin;
    tn_device_handle *d;
    tn_status st;

    if ((st = tnfake_forked(p, err)))
        return st;
    if (index < 0 || (uint32_t)index >= p->devices)
        return tnfake_fail(err, TN_E_DEVICE, "there is no fake:%" PRId32 "; plugin.fake.devices is %" PRIu32,
                           index, p->devices);
    d = tnfake_new(p, sizeof *d);
    if (!d)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    d->plugin = p;
    d->index = index;
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->turn_lock, NULL);
    pthread_cond_init(&d->turn_changed, NULL);
    if ((st = tnfake_driver_start(d, err))) {
        tnfake_delete(p, d);
        return st;
    }
    *out = d;
    return TN_OK;
}

/* Streams that are still there are drained and destroyed; every notification is delivered first. */
static void fake_close(tn_device_handle *device)
{
    if (!device || tnfake_forked(device->plugin, NULL))
        return;
    atomic_store_explicit(&device->hurry, 1u, memory_order_relaxed);
    for (uint32_t i = 0; i < TNFAKE_STREAMS_MAX; i++)
        tnfake_stream_destroy(device->streams[i]);
    tnfake_driver_stop(device);
    pthread_cond_destroy(&device->turn_changed);
    pthread_mutex_destroy(&device->turn_lock);
    pthread_mutex_destroy(&device->lock);
    tnfake_delete(device->plugin, device);
}

static tn_status fake_info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    uint64_t used = atomic_load_explicit(&device->count.memory_bytes, memory_order_relaxed);
    uint32_t bytes = out->struct_size;
    tn_device_info info = {
        .struct_size = bytes,
        .flags = TN_DEVICE_F_HOST_ADDRESSABLE,
        .memory_total = device->plugin->memory_bytes,
        .units = 1,
        .alignment = TNFAKE_ALIGN,
    };

    (void)err;
    if (!info.memory_total)
        info.memory_total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    info.memory_free = info.memory_total > used ? info.memory_total - used : 0;
    (void)snprintf(info.name, sizeof info.name, "fake asynchronous device %" PRId32, device->index);
    memcpy(out, &info, bytes < sizeof info ? bytes : sizeof info);
    return TN_OK;
}

/* ---- memory -------------------------------------------------------------------------------------- */

bool tnfake_fault_due(tn_device_handle *device, uint32_t kind)
{
    const tnfake_plugin *p = device->plugin;
    uint64_t now = atomic_fetch_add_explicit(&device->fault_clock[kind], 1u, memory_order_relaxed) + 1;

    for (uint32_t i = 0; i < p->fault_count; i++)
        if (p->faults[i].kind == kind && p->faults[i].at == now) {
            atomic_fetch_add_explicit(&device->count.faults, 1u, memory_order_relaxed);
            return true;
        }
    return false;
}

/* Takes `bytes` out of the device's memory; false: there are not as many left. */
static bool memory_reserve(tn_device_handle *device, uint64_t bytes)
{
    const uint64_t limit = device->plugin->memory_bytes;
    unsigned long long used = atomic_load_explicit(&device->count.memory_bytes, memory_order_relaxed), peak;

    do {
        if (limit && (bytes > limit || used > limit - bytes))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&device->count.memory_bytes, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    peak = atomic_load_explicit(&device->count.memory_peak_bytes, memory_order_relaxed);
    while (peak < used + bytes &&
           !atomic_compare_exchange_weak_explicit(&device->count.memory_peak_bytes, &peak, used + bytes,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return true;
}

static tn_status fake_alloc(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    const uint64_t counted = memory == TN_MEMORY_DEVICE ? bytes : 0;
    void *block;
    tn_status st;

    if ((st = tnfake_forked(device->plugin, err)))
        return st;
    if (memory != TN_MEMORY_DEVICE && memory != TN_MEMORY_PINNED)
        return tnfake_fail(err, TN_E_UNSUPPORTED, "the fake device has no memory of kind %" PRId32, memory);
    if (!bytes || bytes > (uint64_t)PTRDIFF_MAX - TNFAKE_ALIGN)
        return tnfake_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "cannot allocate %" PRIu64 " bytes", bytes);
    atomic_fetch_add_explicit(&device->count.allocations, 1u, memory_order_relaxed);
    if (tnfake_fault_due(device, TNFAKE_FAULT_ALLOC))
        return tnfake_fail(err, TN_E_NOMEM, "fault: this allocation of %" PRIu64 " bytes fails on demand",
                           bytes);
    if (!memory_reserve(device, counted))
        return tnfake_fail(err, TN_E_NOMEM,
                           "fake:%" PRId32 " cannot give %" PRIu64 " bytes: its memory has %" PRIu64,
                           device->index, bytes, device->plugin->memory_bytes);
    if (posix_memalign(&block, TNFAKE_ALIGN, (size_t)bytes + TNFAKE_ALIGN)) {
        atomic_fetch_sub_explicit(&device->count.memory_bytes, counted, memory_order_relaxed);
        return tnfake_fail(err, TN_E_NOMEM, "the host has no %" PRIu64 " bytes for fake:%" PRId32, bytes,
                           device->index);
    }
    *(block_head *)block = (block_head){counted, memory};
    *out = (char *)block + TNFAKE_ALIGN;
    memset(*out, 0xff, (size_t)bytes);
    return TN_OK;
}

static void fake_free(tn_device_handle *device, int32_t memory, void *data)
{
    block_head *block;

    (void)memory;
    if (!data)
        return;
    block = (block_head *)(void *)((char *)data - TNFAKE_ALIGN);
    atomic_fetch_sub_explicit(&device->count.memory_bytes, block->bytes, memory_order_relaxed);
    free(block);
}

/* ---- the rest ------------------------------------------------------------------------------------ */

static const char *fake_statistics(tn_device_handle *device)
{
    tnfake_counters *c = &device->count;
    const struct {
        const char *name;
        atomic_ullong *value;
    } rows[] = {
        {"submitted", &c->submitted},
        {"completions", &c->completions},
        {"out_of_order", &c->out_of_order},
        {"calls", &c->calls},
        {"copies", &c->copies},
        {"records", &c->records},
        {"event_waits", &c->event_waits},
        {"event_waits_blocked", &c->event_waits_blocked},
        {"notifications", &c->notifications},
        {"notifications_reordered", &c->notifications_reordered},
        {"faults", &c->faults},
        {"failed_streams", &c->failed_streams},
        {"graphs", &c->graphs},
        {"graph_launches", &c->graph_launches},
        {"graph_updates", &c->graph_updates},
        {"allocations", &c->allocations},
        {"memory_bytes", &c->memory_bytes},
        {"memory_peak_bytes", &c->memory_peak_bytes},
    };
    size_t at = 0;

    pthread_mutex_lock(&device->lock);
    at += (size_t)snprintf(device->text, sizeof device->text, "{\"device\":%" PRId32 ",\"seed\":%" PRIu64,
                           device->index, device->plugin->seed);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && at < sizeof device->text; i++)
        at += (size_t)snprintf(device->text + at, sizeof device->text - at, ",\"%s\":%llu", rows[i].name,
                               atomic_load_explicit(rows[i].value, memory_order_relaxed));
    if (at + 1 < sizeof device->text)
        memcpy(device->text + at, "}", 2);
    pthread_mutex_unlock(&device->lock);
    return device->text;
}

static int32_t fake_peer(tn_device_handle *device, int32_t peer)
{
    return peer >= 0 && (uint32_t)peer < device->plugin->devices;
}

/* All host memory is within reach already. */
static tn_status fake_host_register(tn_device_handle *device, void *data, uint64_t bytes, tn_err *err)
{
    (void)device;
    return data && bytes ? TN_OK : tn_fail(err, TN_E_ARG, "nothing to register");
}

static void fake_host_unregister(tn_device_handle *device, void *data)
{
    (void)device;
    (void)data;
}

const tn_device_ops tnfake_device_ops = {
    .head = TN_CAPABILITY(tn_device_ops, graph_free, TN_KIND_DEVICE, "fake"),
    .runs_kernels_of = "cpu",
    .count = fake_count,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .alloc = fake_alloc,
    .free = fake_free,
    .stream_create = tnfake_stream_create,
    .stream_destroy = tnfake_stream_destroy,
    .stream_wait = tnfake_stream_wait,
    .stream_call = tnfake_stream_call,
    .event_create = tnfake_event_create,
    .event_destroy = tnfake_event_destroy,
    .event_record = tnfake_event_record,
    .event_wait = tnfake_event_wait,
    .event_query = tnfake_event_query,
    .event_notify = tnfake_event_notify,
    .copy = tnfake_copy,
    .statistics = fake_statistics,
    .peer = fake_peer,
    .host_register = fake_host_register,
    .host_unregister = fake_host_unregister,
    .graph_begin = tnfake_graph_begin,
    .graph_end = tnfake_graph_end,
    .graph_update = tnfake_graph_update,
    .graph_launch = tnfake_graph_launch,
    .graph_free = tnfake_graph_free,
};

/*
 * The asynchronous device of `plugins new`. PLANTED says what is wrong with it, NAME what it is called.
 */
#include "tenon/plugin/device.h"

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "../../../sdk/template/device-async/acme_async.c"
#pragma pop_macro("TN_PLUGIN_DEFINE")

#include <unistd.h>

enum {
    HEALTHY,
    IMPATIENT, /* stream_wait gives up after 20 ms */
};

static tn_status impatient_wait(tn_stream *s, tn_err *err)
{
    uint32_t left = 20;
    int busy = 1;

    while (busy && left--) {
        (void)pthread_mutex_lock(&s->lock);
        busy = s->first || s->busy;
        (void)pthread_mutex_unlock(&s->lock);
        if (busy)
            (void)usleep(1000);
    }
    return busy ? TN_OK : stream_wait(s, err);
}

static const tn_device_ops ops = {
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
    .stream_wait = PLANTED == IMPATIENT ? impatient_wait : stream_wait,
    .stream_call = stream_call,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_notify = event_notify,
    .copy = stream_copy,
};
static const tn_capability *const tables[] = {&ops.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a device with queues", "", "device:acme-async", NULL,
                 NULL, NULL, tables);

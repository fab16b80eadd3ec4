/*
 * The healthy device: the template of a device that does everything at once, without its descriptor.
 */
#ifndef TN_DEFECTS_HEALTHY_DEVICE_H
#define TN_DEFECTS_HEALTHY_DEVICE_H

#include "tenon/plugin/device.h"

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "acme_device.c"
#pragma pop_macro("TN_PLUGIN_DEFINE")

/* A device that is well but for the functions given after those that are. */
#define DEFECT_DEVICE(NAME, ...)                                                                             \
    static const tn_device_ops defect_ops = {                                                                \
        .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "acme-device"),                           \
        .runs_kernels_of = "cpu",                                                                            \
        .count = device_count,                                                                               \
        .close = device_close,                                                                               \
        .info = device_info,                                                                                 \
        .alloc = memory_alloc,                                                                               \
        .free = memory_free,                                                                                 \
        .stream_create = stream_create,                                                                      \
        .stream_destroy = stream_destroy,                                                                    \
        .stream_call = stream_call,                                                                          \
        .event_create = event_create,                                                                        \
        .event_record = event_record,                                                                        \
        .event_wait = event_wait,                                                                            \
        .event_query = event_query,                                                                          \
        __VA_ARGS__,                                                                                         \
    };                                                                                                       \
    static const tn_capability *const defect_tables[] = {&defect_ops.head, NULL};                            \
    TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "device:acme-device",      \
                     NULL, NULL, NULL, defect_tables)

#endif

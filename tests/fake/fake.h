/* The fake device under test: the plugin as a file, driven through its table, without the core. */
#ifndef TEST_FAKE_FAKE_H
#define TEST_FAKE_FAKE_H

#include "tenon/plugin/device.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct fake_options {
    int64_t seed, delay_us, reorder, devices;
    const char *fault, *memory;
} fake_options;

typedef struct fake {
    fake_options options;
    tn_host host;
    tn_options_service options_service;
    tn_memory_service memory_service;
    atomic_llong memory_calls, memory_live;
    int64_t memory_fail_at; /* this call and all later ones fail; 0: none. Set it after fake_init */
    const tn_plugin *descriptor;
    const tn_device_ops *ops;
    void *plugin;
    tn_device_handle *device;
} fake;

/* Loads, reads the options, opens device 0. Fails the test if that does not work. */
void fake_start(fake *f, fake_options options);
tn_status fake_init(fake *f, fake_options options, tn_err *err); /* only init: what it said */
void fake_stop(fake *f);

tn_stream *fake_stream(fake *f);
tn_event *fake_event(fake *f);
int64_t fake_number(fake *f, const char *name); /* of the statistics; -1: no such name */
/* Records a fresh event at the stream's end. */
tn_event *fake_mark(fake *f, tn_stream *stream);

#endif

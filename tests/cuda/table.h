/* The plugin as a file, driven through its table, without the core: see table.c. */
#ifndef TEST_CUDA_TABLE_H
#define TEST_CUDA_TABLE_H

#include "tenon/plugin/device.h"

#include <stdatomic.h>

typedef struct table {
    tn_host host;
    tn_memory_service memory_service;
    tn_log_service log_service;
    atomic_llong memory_live, logged; /* blocks of the host; lines of errors */
    const tn_plugin *descriptor;
    const tn_device_ops *ops;
    void *plugin;
    tn_device_handle *device;
} table;

/* Loads it and opens device 0; the status of the first call that fails. */
tn_status table_start(table *t, tn_err *err);
void table_stop(table *t); /* after table_start, also where it failed */

#endif

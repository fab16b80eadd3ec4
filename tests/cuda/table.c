/* The smallest host that the plugin runs on: counts its memory and its lines of errors. */
#include "table.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void *memory_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    table *t = host->self;

    assert_true(align <= 16);
    atomic_fetch_add(&t->memory_live, 1);
    return malloc((size_t)bytes);
}

static void memory_free(const tn_host *host, void *memory)
{
    table *t = host->self;

    atomic_fetch_sub(&t->memory_live, 1);
    free(memory);
}

static void log_write(const tn_host *host, int32_t level, const char *message)
{
    table *t = host->self;

    (void)message;
    if (level == TN_LEVEL_ERROR)
        atomic_fetch_add(&t->logged, 1);
}

static const tn_service *host_service(const tn_host *host, const char *id)
{
    const table *t = host->self;

    if (!strcmp(id, TN_SERVICE_MEMORY))
        return &t->memory_service.head;
    return strcmp(id, TN_SERVICE_LOG) ? NULL : &t->log_service.head;
}

static const tn_plugin *plugin_descriptor(void)
{
    char path[4096];
    const tn_plugin *found;
    void *file;

    (void)snprintf(path, sizeof path, "%s/cuda.so", getenv("TENON_TEST_PLUGINS"));
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        fail_msg("%s", dlerror());
    found = dlsym(file, "tn_plugin_v1");
    assert_non_null(found);
    return found;
}

tn_status table_start(table *t, tn_err *err)
{
    const tn_capability *const *at;
    tn_status st;

    memset(t, 0, sizeof *t);
    t->host =
        (tn_host){(uint32_t)TN_END(tn_host, service), TN_ABI_MAJOR, TN_ABI_MINOR, "test", t, host_service};
    t->memory_service = (tn_memory_service){
        {(uint32_t)TN_END(tn_memory_service, free), 0, TN_SERVICE_MEMORY}, memory_alloc, memory_free};
    t->log_service =
        (tn_log_service){{(uint32_t)TN_END(tn_log_service, write), 0, TN_SERVICE_LOG}, log_write};
    t->descriptor = plugin_descriptor();
    for (at = t->descriptor->capabilities; (*at)->kind != TN_KIND_DEVICE; at++)
        assert_non_null(at[1]);
    t->ops = (const tn_device_ops *)(const void *)*at;
    st = t->descriptor->init(&t->host, &t->plugin, err);
    assert_int_equal(st, TN_OK);
    return t->ops->open(t->plugin, 0, &t->device, err);
}

void table_stop(table *t)
{
    t->ops->close(t->device);
    t->descriptor->fini(t->plugin);
}

/* The smallest host that the fake device runs on. See fake.h. */
#include "fake.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *option_text(const tn_host *host, const char *key)
{
    const fake *f = host->self;

    if (!strcmp(key, "fault"))
        return f->options.fault;
    return strcmp(key, "memory") ? NULL : f->options.memory;
}

static tn_status option_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    const fake *f = host->self;

    *out = !strcmp(key, "seed")       ? f->options.seed
           : !strcmp(key, "delay_us") ? f->options.delay_us
           : !strcmp(key, "reorder")  ? f->options.reorder
           : !strcmp(key, "devices")  ? f->options.devices
                                      : fallback;
    return TN_OK;
}

static void *memory_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    fake *f = host->self;
    int64_t call = atomic_fetch_add(&f->memory_calls, 1) + 1;

    assert_true(align <= 16);
    if (f->memory_fail_at && call >= f->memory_fail_at)
        return NULL;
    atomic_fetch_add(&f->memory_live, 1);
    return malloc((size_t)bytes);
}

static void memory_free(const tn_host *host, void *memory)
{
    fake *f = host->self;

    atomic_fetch_sub(&f->memory_live, 1);
    free(memory);
}

static const tn_service *host_service(const tn_host *host, const char *id)
{
    const fake *f = host->self;

    if (!strcmp(id, TN_SERVICE_MEMORY))
        return &f->memory_service.head;
    return strcmp(id, TN_SERVICE_OPTIONS) ? NULL : &f->options_service.head;
}

static const tn_plugin *plugin_descriptor(void)
{
    static const tn_plugin *found;
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[4096];
    void *file;

    if (found)
        return found;
    if (!folder || snprintf(path, sizeof path, "%s/fake.so", folder) >= (int)sizeof path)
        fail_msg("TENON_TEST_PLUGINS must name the folder of fake.so");
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        fail_msg("%s", dlerror());
    found = dlsym(file, "tn_plugin_v1");
    assert_non_null(found);
    return found;
}

tn_status fake_init(fake *f, fake_options options, tn_err *err)
{
    const tn_capability *const *at;

    memset(f, 0, sizeof *f);
    f->options = options;
    f->host =
        (tn_host){(uint32_t)TN_END(tn_host, service), TN_ABI_MAJOR, TN_ABI_MINOR, "test", f, host_service};
    f->options_service =
        (tn_options_service){{(uint32_t)TN_END(tn_options_service, number), 0, TN_SERVICE_OPTIONS},
                             option_text,
                             option_integer,
                             NULL};
    f->memory_service = (tn_memory_service){
        {(uint32_t)TN_END(tn_memory_service, free), 0, TN_SERVICE_MEMORY}, memory_alloc, memory_free};
    f->descriptor = plugin_descriptor();
    for (at = f->descriptor->capabilities; (*at)->kind != TN_KIND_DEVICE; at++)
        assert_non_null(at[1]);
    f->ops = (const tn_device_ops *)(const void *)*at;
    return f->descriptor->init(&f->host, &f->plugin, err);
}

void fake_start(fake *f, fake_options options)
{
    tn_err err = {0};

    if (fake_init(f, options, &err) || f->ops->open(f->plugin, 0, &f->device, &err))
        fail_msg("%s", err.message);
}

void fake_stop(fake *f)
{
    f->ops->close(f->device);
    f->descriptor->fini(f->plugin);
    assert_int_equal(atomic_load(&f->memory_live), 0);
}

tn_stream *fake_stream(fake *f)
{
    tn_stream *s = NULL;
    tn_err err = {0};

    if (f->ops->stream_create(f->device, 0, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

tn_event *fake_event(fake *f)
{
    tn_event *e = NULL;

    assert_int_equal(f->ops->event_create(f->device, &e, NULL), TN_OK);
    return e;
}

tn_event *fake_mark(fake *f, tn_stream *stream)
{
    tn_event *e = fake_event(f);

    assert_int_equal(f->ops->event_record(e, stream, NULL), TN_OK);
    return e;
}

int64_t fake_number(fake *f, const char *name)
{
    char key[64];
    const char *at;

    (void)snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(f->ops->statistics(f->device), key);
    return at ? (int64_t)strtoll(at + strlen(key), NULL, 10) : -1;
}

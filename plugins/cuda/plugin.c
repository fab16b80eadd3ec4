/* Options, the plugin's memory, its driver and the contexts of its devices. */
#include "dnn.h"
#include "fused.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *tncuda_new(const tncuda_plugin *plugin, uint64_t bytes)
{
    void *made = plugin->memory ? plugin->memory->alloc(plugin->host, bytes, 16) : malloc((size_t)bytes);

    if (made)
        memset(made, 0, (size_t)bytes);
    return made;
}

void tncuda_delete(const tncuda_plugin *plugin, void *memory)
{
    if (!memory)
        return;
    if (plugin->memory)
        plugin->memory->free(plugin->host, memory);
    else
        free(memory);
}

tn_status tncuda_nomem(tn_err *err, const char *what)
{
    return tn_failf(err, TN_E_NOMEM, "out of host memory for %s", what);
}

void tncuda_log(const tncuda_plugin *plugin, int32_t level, const char *format, ...)
{
    char line[1024];
    va_list list;

    if (!plugin->log)
        return;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list);
    va_end(list);
    plugin->log->write(plugin->host, level, line);
}

tn_status tncuda_library_open(const tncuda_plugin *plugin, const tncuda_library *l, void **out,
                              const char **file, tn_err *err)
{
    char why[256];
    void *library = library_open(plugin->libraries, l->files, file, why);
    tn_status st;

    if (!library && !l->advised)
        return tn_fail(err, TN_E_DEVICE, l->absent);
    if (!library)
        return tn_failf(err, TN_E_DEVICE, "%s%s%s", l->absent, *why ? why : "plugin.cuda.libraries is none",
                        l->advised);
    if ((st = library_functions(library, *file, l->rows, l->count, l->advice, err)))
        (void)dlclose(library);
    else
        *out = library;
    return st;
}

tn_status tncuda_absent(tn_err *err, const char *why)
{
    (void)tn_fail(err, TN_E_DEVICE, why);
    return TN_E_UNSUPPORTED;
}

/* ---- the driver and its contexts --------------------------------------------------------------------- */

static tn_status forked(const tncuda_plugin *p, tn_err *err)
{
    return atomic_load_explicit(&p->forked, memory_order_relaxed)
               ? tn_fail(err, TN_E_STATE, "cuda cannot be used in a child of fork(); start a new process")
               : TN_OK;
}

static tn_status driver_need_locked(tncuda_plugin *p, tn_err *err)
{
    tn_status st = TN_OK;

    if (!p->opened && !(st = tncuda_driver_open(&p->driver, err)))
        p->opened = true;
    return st;
}

tn_status tncuda_driver_need(tncuda_plugin *plugin, tn_err *err)
{
    tn_status st = forked(plugin, err);

    if (st)
        return st;
    pthread_mutex_lock(&plugin->lock);
    st = driver_need_locked(plugin, err);
    pthread_mutex_unlock(&plugin->lock);
    return st;
}

tn_status tncuda_context_get(tncuda_plugin *plugin, int32_t index, tncuda_context *out, tn_err *err)
{
    const tncuda_driver *d = &plugin->driver;
    int32_t ordinal = 0;
    tncuda_result result;
    tn_status st = TN_OK;

    if (index < 0 || index >= TNCUDA_DEVICES_MAX)
        return tn_failf(err, TN_E_DEVICE, "there is no cuda:%d", (int)index);
    pthread_mutex_lock(&plugin->lock);
    if (!plugin->contexts[index].users) {
        if ((result = d->device_get(&ordinal, index)))
            st = tncuda_driver_fail(d, result, "cuDeviceGet", err);
        else if ((result = d->context_retain(&plugin->contexts[index].context, ordinal)))
            st = tncuda_driver_fail(d, result, "cuDevicePrimaryCtxRetain", err);
    }
    if (!st) {
        plugin->contexts[index].users++;
        *out = plugin->contexts[index].context;
    }
    pthread_mutex_unlock(&plugin->lock);
    return st;
}

void tncuda_context_give(tncuda_plugin *plugin, int32_t index)
{
    int32_t ordinal;

    pthread_mutex_lock(&plugin->lock);
    if (--plugin->contexts[index].users == 0 && !plugin->driver.device_get(&ordinal, index)) {
        tncuda_lt_drop(plugin, index);
        tncuda_dnn_device_drop(plugin, index);
        (void)plugin->driver.context_release(ordinal);
    }
    pthread_mutex_unlock(&plugin->lock);
}

/* ---- options ------------------------------------------------------------------------------------------ */

static const tn_option_row option_memory = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "memory",
    .type = "choice",
    .choices = "device|managed",
    .default_text = "device",
    .help = "managed: blocks may exceed the GPU's memory, pages move on demand",
    .since = "0.1",
    .min = 1,
    .max = 0,
};

static const tn_option_row option_graphs = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "graphs",
    .type = "bool",
    .default_text = "true",
    .help = "kernels of compiled nets are recorded at their third run and launched as one piece",
    .since = "0.1",
    .min = 1,
    .max = 0,
};

static const tn_option_row option_tf32 = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "tf32",
    .type = "bool",
    .default_text = "false",
    .help = "matrix products and convolutions of float32 by tensor cores, with 10 bits of fraction",
    .since = "0.1",
    .min = 1,
    .max = 0,
};

static const tn_option_row option_autotune = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "autotune",
    .type = "bool",
    .default_text = "true",
    .help = "the fastest of a few engines or algorithms serves convolutions and products, where "
            "run.deterministic is off",
    .since = "0.1",
    .min = 1,
    .max = 0,
};

static const tn_option_row option_libraries = {
    .struct_size = (uint32_t)TN_END(tn_option_row, max),
    .key = "libraries",
    .type = "text",
    .default_text = "",
    .help = "folder of cuBLASLt, cuDNN and NVRTC, which are tried there first, then where the loader looks; "
            "none: none of them is used",
    .since = "0.1",
    .min = 1,
    .max = 0,
};

static const tn_option_row *const option_rows[] = {&option_memory,   &option_graphs,    &option_tf32,
                                                   &option_autotune, &option_libraries, NULL};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "cuda"),
    .rows = option_rows,
};

/* NULL: nobody said. */
static const char *option_text(const tncuda_plugin *plugin, const char *key)
{
    const tn_options_service *s = tn_host_service(plugin->host, TN_SERVICE_OPTIONS);

    return s && TN_OFFERS(s, tn_options_service, text) ? s->text(plugin->host, key) : NULL;
}

/* As the host has checked it. */
static bool option_true(const tncuda_plugin *plugin, const char *key, bool otherwise)
{
    static const char *const no[] = {"false", "False", "no", "off", "0"};
    const char *text = option_text(plugin, key);

    for (size_t i = 0; text && i < sizeof no / sizeof *no; i++)
        if (!strcmp(text, no[i]))
            return false;
    return text ? true : otherwise;
}

static tn_status options_read(tncuda_plugin *plugin, tn_err *err)
{
    const char *memory = option_text(plugin, "memory"), *folder = option_text(plugin, "libraries");

    if (memory && strcmp(memory, "device") != 0 && strcmp(memory, "managed") != 0)
        return tn_failf(err, TN_E_ARG, "memory is '%.40s', but must be device or managed", memory);
    if (folder && strlen(folder) >= sizeof plugin->libraries)
        return tn_failf(err, TN_E_ARG, "libraries has more than %zu characters",
                        sizeof plugin->libraries - 1);
    plugin->managed = memory && strcmp(memory, "managed") == 0;
    plugin->graphs = option_true(plugin, "graphs", true);
    plugin->tf32 = option_true(plugin, "tf32", false);
    plugin->autotune = option_true(plugin, "autotune", true);
    (void)snprintf(plugin->libraries, sizeof plugin->libraries, "%s", folder ? folder : "");
    if (folder && *folder && strcmp(folder, "none") != 0 && access(folder, X_OK))
        tncuda_log(plugin, TN_LEVEL_WARNING, "plugin.cuda.libraries: %.900s: %s", folder, strerror(errno));
    return TN_OK;
}

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static tn_status cuda_init(const tn_host *host, void **plugin, tn_err *err)
{
    tncuda_plugin made = {.host = host,
                          .memory = tn_host_service(host, TN_SERVICE_MEMORY),
                          .log = tn_host_service(host, TN_SERVICE_LOG)};
    tncuda_plugin *p;
    tn_status st;

    if (made.memory && !TN_OFFERS(made.memory, tn_memory_service, free))
        return tn_fail(err, TN_E_UNSUPPORTED, "the host's memory service lacks a function");
    if (made.log && !TN_OFFERS(made.log, tn_log_service, write))
        made.log = NULL;
    if (!(p = tncuda_new(&made, sizeof *p)))
        return tncuda_nomem(err, "the plugin");
    p->host = made.host;
    p->memory = made.memory;
    p->log = made.log;
    if ((st = options_read(p, err))) {
        tncuda_delete(&made, p);
        return st;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->compiling, NULL);
    *plugin = p;
    return TN_OK;
}

static void cuda_fini(void *plugin)
{
    tncuda_plugin *p = plugin;

    if (p) {
        const tncuda_plugin with = {.host = p->host, .memory = p->memory};

        tncuda_lt_fini(p);
        tncuda_dnn_delete(p);
        tncuda_nvrtc_close(p);
        pthread_mutex_destroy(&p->compiling);
        pthread_mutex_destroy(&p->lock);
        tncuda_delete(&with, p);
    }
}

static tn_status cuda_fork(void *plugin, uint32_t phase)
{
    tncuda_plugin *p = plugin;

    if (phase == TN_FORK_CHILD)
        atomic_store_explicit(&p->forked, 1u, memory_order_relaxed);
    return TN_OK;
}

#define TNCUDA_FAMILY(name) extern const tn_kernel *const tncuda_family_##name[];
#include "kernels.list"
#undef TNCUDA_FAMILY

#define TNCUDA_FAMILY(name)                                                                                  \
    static const tn_kernel_table table_##name = {                                                            \
        .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cuda"),                      \
        .kernels = tncuda_family_##name,                                                                     \
    };
#include "kernels.list"
#undef TNCUDA_FAMILY

static const tn_capability *const capabilities[] = {
    &tncuda_device_ops.head,
#define TNCUDA_FAMILY(name) &table_##name.head,
#include "kernels.list"
#undef TNCUDA_FAMILY
    &options.head,
    NULL,
};

TN_PLUGIN_DEFINE("cuda", "0.1.0", "Tenon", "Apache-2.0", "NVIDIA GPUs by the driver's interface", "",
                 "device:cuda kernels@cuda options", cuda_init, cuda_fini, cuda_fork, capabilities);

/*
 * The plugin `fake`: a device that behaves like a GPU without being one. Its memory is host memory and its
 * kernels are those of the plugin `cpu`, but all work is done later, by threads of its own, with random
 * delays, out of order between streams. What is right on it waits where it has to wait.
 *
 * init reads options only; threads start when a device is opened.
 */
#include "fake.h"

#include "tenon/plugin/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DELAY_US_MAX 1000000

/* ---- memory, threads, errors, random numbers ----------------------------------------------------- */

void *tnfake_new(tnfake_plugin *plugin, uint64_t bytes)
{
    void *memory;

    if (!plugin->memory)
        return calloc(1, (size_t)bytes);
    memory = plugin->memory->alloc(plugin->host, bytes, 16);
    if (memory)
        memset(memory, 0, (size_t)bytes);
    return memory;
}

void tnfake_delete(tnfake_plugin *plugin, void *memory)
{
    if (!memory)
        return;
    if (plugin->memory)
        plugin->memory->free(plugin->host, memory);
    else
        free(memory);
}

/* A thread of our own, where the host has no service for threads. */
typedef struct own_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
} own_thread;

static void *own_thread_main(void *arg)
{
    const own_thread *t = arg;

    t->run(t->arg);
    return NULL;
}

tn_status tnfake_thread_start(tnfake_plugin *plugin, const char *name, void (*run)(void *arg), void *arg,
                              void **out)
{
    own_thread *t;

    if (plugin->threads)
        return plugin->threads->create(plugin->host, name, run, arg, out);
    t = tnfake_new(plugin, sizeof *t);
    if (!t)
        return TN_E_NOMEM;
    t->run = run;
    t->arg = arg;
    if (pthread_create(&t->id, NULL, own_thread_main, t)) {
        tnfake_delete(plugin, t);
        return TN_E_IO;
    }
    *out = t;
    return TN_OK;
}

void tnfake_thread_join(tnfake_plugin *plugin, void *thread)
{
    if (plugin->threads) {
        plugin->threads->join(plugin->host, thread);
        return;
    }
    (void)pthread_join(((own_thread *)thread)->id, NULL);
    tnfake_delete(plugin, thread);
}

tn_status tnfake_fail(tn_err *err, tn_status code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    tn_fail(err, code, "");
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

tn_status tnfake_forked(const tnfake_plugin *plugin, tn_err *err)
{
    if (!atomic_load_explicit(&plugin->forked, memory_order_relaxed))
        return TN_OK;
    return tn_fail(err, TN_E_STATE, "the fake device's threads did not follow fork(); use cpu in the child");
}

uint64_t tnfake_random(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t z =
        seed * 0xd1342543de82ef95u + a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + 0x632be59bd9b4e019u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void tnfake_sleep(uint32_t us)
{
    struct timespec left = {(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};

    if (us)
        while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
            ;
}

/* ---- options ------------------------------------------------------------------------------------- */

#define ROW(KEY, TYPE, FALLBACK, HELP, LOW, HIGH)                                                            \
    {                                                                                                        \
        (uint32_t) TN_END(tn_option_row, max), 0, KEY, TYPE, NULL, FALLBACK, HELP, "0.1", LOW, HIGH          \
    }

static const tn_option_row option_rows[] = {
    ROW("seed", "int", "0", "of all delays and orders", 0, 9e18),
    ROW("delay_us", "int", "50", "longest delay of an item or a notification; 0: none", 0, DELAY_US_MAX),
    ROW("reorder", "int", "1", "0: items run in the order of their submission over all streams of a device",
        0, 1),
    ROW("devices", "int", "2", "how many devices there are", 0, 64),
    ROW("memory", "bytes", "0", "memory of each device; 0: no limit", 0, 9e18),
    ROW("fault", "text", "",
        "call:N, copy:N, alloc:N, comma between: the N-th on each device fails; wait:N is left out", 1, 0),
};

static const tn_option_row *const option_list[] = {
    &option_rows[0],
    &option_rows[1],
    &option_rows[2],
    &option_rows[3],
    &option_rows[4],
    &option_rows[5],
    NULL,
};

static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "fake"),
    .rows = option_list,
};

static tn_status faults_read(tnfake_plugin *plugin, const char *text, tn_err *err)
{
    static const char *const kinds[TNFAKE_FAULT_KINDS] = {"call:", "copy:", "alloc:", "wait:"};
    const char *at = text;

    while (*at) {
        tnfake_fault fault = {0, 0};

        while (fault.kind < TNFAKE_FAULT_KINDS && strncmp(at, kinds[fault.kind], strlen(kinds[fault.kind])))
            fault.kind++;
        if (fault.kind == TNFAKE_FAULT_KINDS || plugin->fault_count == TNFAKE_FAULTS_MAX)
            goto bad;
        at += strlen(kinds[fault.kind]);
        if (tn_text_digits(&at, &fault.at) || !fault.at)
            goto bad;
        plugin->faults[plugin->fault_count++] = fault;
        while (*at == ',' || *at == ' ')
            at++;
    }
    return TN_OK;

bad:
    return tnfake_fail(
        err, TN_E_ARG,
        "fault is '%.80s', but must be up to %u of call:N, copy:N, alloc:N, wait:N with N from 1", text,
        TNFAKE_FAULTS_MAX);
}

static tn_status options_read(tnfake_plugin *plugin, tn_err *err)
{
    const tn_options_service *s = tn_host_service(plugin->host, TN_SERVICE_OPTIONS);
    static const struct {
        const char *key;
        int64_t fallback, max;
    } rows[] = {
        {"seed", 0, INT64_MAX},
        {"delay_us", 50, DELAY_US_MAX},
        {"reorder", 1, 1},
        {"devices", 2, 64},
    };
    int64_t value[4];
    const char *text;
    tn_status st;

    for (uint32_t i = 0; i < 4; i++) {
        value[i] = rows[i].fallback;
        if (s && TN_OFFERS(s, tn_options_service, integer) &&
            (st = s->integer(plugin->host, rows[i].key, rows[i].fallback, &value[i])))
            return tnfake_fail(err, st, "%s must be a whole number", rows[i].key);
        if (value[i] < 0 || value[i] > rows[i].max)
            return tnfake_fail(err, TN_E_ARG, "%s is %" PRId64 ", but must be from 0 to %" PRId64,
                               rows[i].key, value[i], rows[i].max);
    }
    plugin->seed = (uint64_t)value[0];
    plugin->delay_us = (uint32_t)value[1];
    plugin->reorder = value[2] != 0;
    plugin->devices = (uint32_t)value[3];
    if (!s || !TN_OFFERS(s, tn_options_service, text))
        return TN_OK;
    text = s->text(plugin->host, "memory");
    if (text && tn_text_bytes(text, &plugin->memory_bytes))
        return tnfake_fail(err, TN_E_ARG, "memory is '%.40s', but must be a size such as 64MiB", text);
    text = s->text(plugin->host, "fault");
    return text ? faults_read(plugin, text, err) : TN_OK;
}

/* ---- the plugin ---------------------------------------------------------------------------------- */

static tn_status fake_init(const tn_host *host, void **plugin, tn_err *err)
{
    tnfake_plugin made = {.host = host,
                          .memory = tn_host_service(host, TN_SERVICE_MEMORY),
                          .threads = tn_host_service(host, TN_SERVICE_THREADS)};
    tnfake_plugin *p;
    tn_status st;

    if ((made.memory && !TN_OFFERS(made.memory, tn_memory_service, free)) ||
        (made.threads && !TN_OFFERS(made.threads, tn_threads_service, join)))
        return tn_fail(err, TN_E_UNSUPPORTED, "the host's services for memory or threads lack a function");
    p = tnfake_new(&made, sizeof *p);
    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    p->host = made.host;
    p->memory = made.memory;
    p->threads = made.threads;
    if ((st = options_read(p, err))) {
        tnfake_delete(p, p);
        return st;
    }
    *plugin = p;
    return TN_OK;
}

static void fake_fini(void *plugin)
{
    tnfake_plugin *p = plugin;

    if (p) {
        tnfake_plugin with = {.host = p->host, .memory = p->memory};

        tnfake_delete(&with, p);
    }
}

static tn_status fake_fork(void *plugin, uint32_t phase)
{
    tnfake_plugin *p = plugin;

    if (phase == TN_FORK_CHILD)
        atomic_store_explicit(&p->forked, 1u, memory_order_relaxed);
    return TN_OK;
}

static const tn_capability *const capabilities[] = {
    &tnfake_device_ops.head,
    &options.head,
    NULL,
};

TN_PLUGIN_DEFINE("fake", "0.1.0", "Tenon", "Apache-2.0", "an asynchronous device without hardware, for tests",
                 "", "device:fake options", fake_init, fake_fini, fake_fork, capabilities);

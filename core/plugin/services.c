/*
 * What a plugin may ask its host for: log, memory, options, trace, clock, threads; further tables come from
 * the rooms that own them. One tn_host per plugin and registry, so that lines, bytes and threads carry the
 * plugin's name.
 */
#include <string.h>

#include "plugin/internal.h"

#define THREAD_NAME_BYTES 16 /* the system's */

static tni_services *of(const tn_host *host)
{
    return host->self;
}

static void log_write(const tn_host *host, int32_t level, const char *message)
{
    tni_services *s = of(host);

    if (message)
        tni_logf(s->log, level < TN_LOG_ERROR ? TN_LOG_ERROR : level, "%s: %s", s->name, message);
}

static void *memory_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    tni_services *s = of(host);
    void *p;

    if (align & (align - 1))
        return NULL;
    p = tni_alloc_aligned(align, bytes);
    if (p) {
        atomic_fetch_add_explicit(&s->bytes, (long long)tni_mem_bytes(p), memory_order_relaxed);
        atomic_fetch_add_explicit(&s->blocks, 1, memory_order_relaxed);
    }
    return p;
}

static void memory_free(const tn_host *host, void *memory)
{
    tni_services *s = of(host);

    if (!memory)
        return;
    atomic_fetch_sub_explicit(&s->bytes, (long long)tni_mem_bytes(memory), memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->blocks, 1, memory_order_relaxed);
    tni_free_aligned(memory);
}

/* The full key and, if the plugin has one, the row of `key`. False: it is not set. */
static bool option_find(const tni_services *s, const char *key, char *full, size_t size,
                        const tni_option_def **row)
{
    *row = NULL;
    for (size_t i = 0; i < s->row_count; i++)
        if (strcmp(s->rows[i].key, key) == 0)
            *row = &s->rows[i];
    return snprintf(full, size, strncmp(key, "kvstore.", 8) ? "plugin.%s.%s" : "%.0s%s", s->name, key) <
               (int)size &&
           tni_option_is_set(s->options, full);
}

static const char *options_text(const tn_host *host, const char *key)
{
    const tni_option_def *row;
    char full[256];

    return key && option_find(of(host), key, full, sizeof full, &row)
               ? tni_option_text(of(host)->options, full)
               : NULL;
}

static tn_status options_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    const tni_option_def *row;
    char full[256];
    int64_t value = 0;
    double number;

    if (!key || !option_find(of(host), key, full, sizeof full, &row)) {
        *out = fallback;
        return TN_OK;
    }
    if (row) {
        tn_status st =
            tni_option_parse(row, full, "", tni_option_text(of(host)->options, full), &value, &number);

        if (st)
            return st;
    } else if (!tni_parse_i64(tni_option_text(of(host)->options, full), &value)) {
        return tni_error_number(1205, TN_E_ARG, "%s: expected an integer", full);
    }
    *out = value;
    return TN_OK;
}

static tn_status options_number(const tn_host *host, const char *key, double fallback, double *out)
{
    const tni_option_def *row;
    char full[256];
    double value;

    if (!key || !option_find(of(host), key, full, sizeof full, &row)) {
        *out = fallback;
        return TN_OK;
    }
    if (!tni_parse_f64(tni_option_text(of(host)->options, full), &value))
        return tni_error_number(1205, TN_E_ARG, "%s: expected a number", full);
    *out = value;
    return TN_OK;
}

static void trace_event(const tn_host *host, uint32_t phase, const char *category, const char *name)
{
    (void)host;
    if (category && name && phase < 128)
        tni_trace_event((char)phase, category, name, 0);
}

static uint64_t clock_now(const tn_host *host)
{
    (void)host;
    return tni_clock_ns();
}

static tn_status threads_create(const tn_host *host, const char *name, void (*run)(void *arg), void *arg,
                                void **thread)
{
    tni_services *s = of(host);
    tni_thread *made;
    tn_status st;

    if (!run || !thread)
        return tni_error(TN_E_ARG, "%s: a thread needs a function and a place for its handle", s->name);
    st = tni_thread_create(name ? name : s->name, run, arg, &made);
    if (st)
        return st;
    atomic_fetch_add(&s->threads, 1);
    *thread = made;
    return TN_OK;
}

static void threads_join(const tn_host *host, void *thread)
{
    if (!thread)
        return;
    tni_thread_join(thread);
    atomic_fetch_sub(&of(host)->threads, 1);
}

#define HEAD(type, last, id_)                                                                                \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(type, last), .id = id_                                               \
    }

static const tn_log_service log_service = {.head = HEAD(tn_log_service, write, TN_SERVICE_LOG),
                                           .write = log_write};
static const tn_memory_service memory_service = {
    .head = HEAD(tn_memory_service, free, TN_SERVICE_MEMORY), .alloc = memory_alloc, .free = memory_free};
static const tn_options_service options_service = {.head =
                                                       HEAD(tn_options_service, number, TN_SERVICE_OPTIONS),
                                                   .text = options_text,
                                                   .integer = options_integer,
                                                   .number = options_number};
static const tn_trace_service trace_service = {
    .head = HEAD(tn_trace_service, event, TN_SERVICE_TRACE), .on = &tni_trace_flag, .event = trace_event};
static const tn_clock_service clock_service = {.head = HEAD(tn_clock_service, now_ns, TN_SERVICE_CLOCK),
                                               .now_ns = clock_now};
static const tn_threads_service threads_service = {.head = HEAD(tn_threads_service, join, TN_SERVICE_THREADS),
                                                   .create = threads_create,
                                                   .join = threads_join};

static const tn_service *const own_services[] = {&log_service.head,     &memory_service.head,
                                                 &options_service.head, &trace_service.head,
                                                 &clock_service.head,   &threads_service.head};

static const tn_service *service_find(const tn_host *host, const char *id)
{
    if (!id)
        return NULL;
    for (size_t i = 0; i < sizeof own_services / sizeof own_services[0]; i++)
        if (strcmp(own_services[i]->id, id) == 0)
            return own_services[i];
    return tni_registry_service(of(host)->registry, id);
}

void tni_services_host(tni_services *s, tn_host *out)
{
    *out = (tn_host){
        .struct_size = (uint32_t)TN_END(tn_host, service),
        .abi_major = TN_ABI_MAJOR,
        .abi_minor = TN_ABI_MINOR,
        .version = tn_version(),
        .self = s,
        .service = service_find,
    };
}

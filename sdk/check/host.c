/*
 * The kit as a host: service tables made for one plugin, and their accounts.
 *
 * Blocks of the memory service carry a header and a canary behind, so that free knows its own blocks. What
 * the plugin takes by its own malloc is counted by imports.c. An allocation that is to fail is counted over
 * both, and over threads.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define OPTIONS_MAX 32
#define BLOCK_MAGIC 0x6b6f6c626e74ULL
#define CANARY 0xC7u
#define CANARY_BYTES 16u

typedef struct option {
    const char *key, *value;
} option;

struct chk_host {
    chk_env *env;
    chk_host_kind kind;
    tn_host *table;
    tn_service *services[8]; /* NULL-ended */
    option options[OPTIONS_MAX];
    size_t option_count;
    atomic_llong bytes, blocks, threads;
};

typedef struct block {
    uint64_t magic, bytes;
    void *raw;
    chk_host *host;
} block;

typedef struct thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
} thread;

static chk_host *of(const tn_host *host)
{
    return host->self;
}

/* ---- services ---- */

static void log_write(const tn_host *host, int32_t level, const char *message)
{
    if (!message)
        chk_fail(of(host)->env, "R1", "the log gets no text at level %d", (int)level);
    (void)fprintf(stderr, "log: %s\n", message);
}

static void *memory_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    chk_host *h = of(host);
    unsigned char *raw, *data;
    block *head;

    if (!align || align & (align - 1))
        chk_fail(h->env, "R1", "the memory service is asked for an alignment of %llu",
                 (unsigned long long)align);
    if (chk_allocation_fails() || bytes > UINT64_MAX / 4 || align > ((uint64_t)1 << 30))
        return NULL;
    raw = malloc(bytes + align + sizeof *head + CANARY_BYTES);
    if (!raw)
        return NULL;
    data = raw + sizeof *head;
    data += (align - (uintptr_t)data % align) % align;
    head = (block *)(void *)(data - sizeof *head);
    memcpy(head, &(block){BLOCK_MAGIC, bytes, raw, h}, sizeof *head);
    memset(data, 0xA5, bytes); /* nobody may count on zeros */
    memset(data + bytes, CANARY, CANARY_BYTES);
    atomic_fetch_add(&h->bytes, (long long)bytes);
    atomic_fetch_add(&h->blocks, 1);
    return data;
}

static void memory_free(const tn_host *host, void *memory)
{
    chk_host *h = of(host);
    unsigned char *data = memory;
    block head;

    if (!memory)
        return;
    memcpy(&head, data - sizeof head, sizeof head);
    if (head.magic != BLOCK_MAGIC || head.host != h)
        chk_fail(h->env, "R5", "the memory service is to free a block that it did not give, or twice");
    for (uint32_t i = 0; i < CANARY_BYTES; i++)
        if (data[head.bytes + i] != CANARY)
            chk_fail(h->env, "M-bounds",
                     "a block of %llu bytes from the memory service was written %u bytes behind its end",
                     (unsigned long long)head.bytes, (unsigned)i);
    memset(data - sizeof head, 0, sizeof head);
    atomic_fetch_sub(&h->bytes, (long long)head.bytes);
    atomic_fetch_sub(&h->blocks, 1);
    free(head.raw);
}

/* What the caller of the kit sets, as --set does: plugin.NAME.KEY=VALUE; NULL: nothing. */
static const char *options_given(const chk_host *h, const char *key)
{
    const chk_case *c = chk_case_of(h->env);
    const char *found = NULL;
    char start[256];
    const int length =
        c->descriptor ? snprintf(start, sizeof start, "plugin.%s.%s=", c->descriptor->name, key) : 0;

    for (size_t i = 0; length > 0 && (size_t)length < sizeof start && c->settings && c->settings[i]; i++)
        if (strncmp(c->settings[i], start, (size_t)length) == 0)
            found = c->settings[i] + length;
    return found;
}

static const char *options_text(const tn_host *host, const char *key)
{
    const chk_host *h = of(host);

    chk_fail_if(h->env, !key, "R1", "the options service is asked for no key");
    for (size_t i = h->option_count; i-- > 0;)
        if (strcmp(h->options[i].key, key) == 0)
            return h->options[i].value;
    return options_given(h, key);
}

static tn_status options_integer(const tn_host *host, const char *key, int64_t fallback, int64_t *out)
{
    const char *text = options_text(host, key);
    char *end = "";
    const long long value = text ? strtoll(text, &end, 10) : fallback;

    if (end == text || *end)
        return TN_E_ARG;
    *out = value;
    return TN_OK;
}

static tn_status options_number(const tn_host *host, const char *key, double fallback, double *out)
{
    const char *text = options_text(host, key);
    char *end = "";
    const double value = text ? strtod(text, &end) : fallback;

    if (end == text || *end)
        return TN_E_ARG;
    *out = value;
    return TN_OK;
}

static void trace_event(const tn_host *host, uint32_t phase, const char *category, const char *name)
{
    if (!category || !name || !phase || phase > 127)
        chk_fail(of(host)->env, "R1", "a trace event without category or name, or of phase %u",
                 (unsigned)phase);
}

static uint64_t clock_now(const tn_host *host)
{
    (void)host;
    return chk_clock_ns(CLOCK_MONOTONIC);
}

static void *thread_main(void *arg)
{
    const thread *t = arg;

    t->run(t->arg);
    return NULL;
}

static tn_status threads_create(const tn_host *host, const char *name, void (*run)(void *arg), void *arg,
                                void **out)
{
    chk_host *h = of(host);
    thread *t;

    (void)name;
    chk_fail_if(h->env, !run || !out, "R1", "a thread without a function, or without a place for its handle");
    t = chk_allocation_fails() ? NULL : malloc(sizeof *t);
    if (!t)
        return TN_E_NOMEM;
    t->run = run;
    t->arg = arg;
    if (pthread_create(&t->id, NULL, thread_main, t)) {
        free(t);
        return TN_E_NOMEM;
    }
    atomic_fetch_add(&h->threads, 1);
    *out = t;
    return TN_OK;
}

static void threads_join(const tn_host *host, void *handle)
{
    thread *t = handle;

    if (!t)
        return;
    (void)pthread_join(t->id, NULL);
    free(t);
    atomic_fetch_sub(&of(host)->threads, 1);
}

/* ---- the host's table ---- */

static const uint32_t trace_on = 1;

#define SERVICE(type, last, id_, ...)                                                                        \
    &(const tn_##type##_service){                                                                            \
        .head = {.struct_size = (uint32_t)TN_END(tn_##type##_service, last), .id = id_}, __VA_ARGS__}        \
         .head

static const tn_service *const services[] = {
    SERVICE(log, write, TN_SERVICE_LOG, .write = log_write),
    SERVICE(memory, free, TN_SERVICE_MEMORY, .alloc = memory_alloc, .free = memory_free),
    SERVICE(options, number, TN_SERVICE_OPTIONS, .text = options_text, .integer = options_integer,
            .number = options_number),
    SERVICE(trace, event, TN_SERVICE_TRACE, .on = &trace_on, .event = trace_event),
    SERVICE(clock, now_ns, TN_SERVICE_CLOCK, .now_ns = clock_now),
    SERVICE(threads, join, TN_SERVICE_THREADS, .create = threads_create, .join = threads_join),
};

static const tn_service *service_find(const tn_host *host, const char *id)
{
    chk_host *h = of(host);

    chk_fail_if(h->env, !id, "R1", "a service without an id is asked for");
    for (size_t i = 0; h->services[i]; i++)
        if (strcmp(h->services[i]->id, id) == 0)
            return h->services[i];
    return NULL;
}

chk_host *chk_host_create(chk_env *env, chk_host_kind kind)
{
    chk_host *h = calloc(1, sizeof *h);
    tn_host table = {.abi_major = TN_ABI_MAJOR,
                     .abi_minor = TN_ABI_MINOR,
                     .version = tn_version(),
                     .self = h,
                     .service = service_find};

    chk_fail_if(env, !h, "kit", "out of memory");
    h->env = env;
    h->kind = kind;
    if (kind == CHK_HOST_OLD)
        table.abi_minor = chk_descriptor(env)->abi_minor_min;
    if (kind == CHK_HOST_FUTURE)
        table.abi_minor = TN_ABI_MINOR + 9;
    for (size_t i = 0; kind != CHK_HOST_BARE && i < sizeof services / sizeof *services; i++)
        h->services[i] =
            chk_struct_make(env, kind, services[i], services[i]->struct_size, services[i]->struct_size);
    table.struct_size = (uint32_t)TN_END(tn_host, service);
    h->table = chk_struct_make(env, kind, &table, CHK_SIZES(tn_host, service));
    return h;
}

void chk_host_option(chk_host *host, const char *key, const char *value)
{
    chk_fail_if(host->env, host->option_count == OPTIONS_MAX, "kit", "over %d options", OPTIONS_MAX);
    host->options[host->option_count++] = (option){key, value};
}

uint64_t chk_host_memory(const chk_host *host, uint64_t *bytes)
{
    uint64_t own_bytes, own_blocks;

    chk_imports_memory(&own_bytes, &own_blocks);
    if (bytes)
        *bytes = (uint64_t)atomic_load(&host->bytes) + own_bytes;
    return (uint64_t)atomic_load(&host->blocks) + own_blocks;
}

void chk_host_left(const chk_host *host, uint64_t before, const char *format, ...)
{
    const uint64_t after = chk_host_memory(host, NULL);
    char text[300];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (after > before)
        chk_fail(host->env, "M-leak", "%s: %llu blocks are left", text, (unsigned long long)(after - before));
}

void chk_host_accounts(const chk_host *host)
{
    long long blocks = atomic_load(&host->blocks), bytes = atomic_load(&host->bytes),
              threads = atomic_load(&host->threads);

    if (blocks)
        chk_fail(host->env, "M-leak", "after fini %lld blocks with %lld bytes of the memory service are left",
                 blocks, bytes);
    if (threads)
        chk_fail(host->env, "R9", "after fini %lld threads of the threads service were not joined", threads);
}

bool chk_host_intact(const chk_host *host)
{
    bool intact = chk_struct_intact(host->table);

    for (size_t i = 0; host->services[i]; i++)
        intact &= chk_struct_intact(host->services[i]);
    return intact;
}

void chk_host_fail_at(chk_host *host, uint64_t nth)
{
    (void)host;
    chk_allocation_arm(nth);
}

bool chk_host_failed(const chk_host *host)
{
    (void)host;
    return chk_allocation_armed() < 0;
}

const tn_host *chk_host_table(const chk_host *host)
{
    return host->table;
}

chk_host_kind chk_host_kind_of(const chk_host *host)
{
    return host->kind;
}

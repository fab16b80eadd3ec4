/* The smallest host that the plugin kv-nccl runs on, and what the ranks of the tests do. */
#include "nccl_rank.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/collective.h"

#define LONG_NS 60000000000u
#define BUCKETS 6u
#define ELEMENTS 3000u

typedef struct rank {
    const tn_collective_ops *ops;
    tn_communicator *c;
    uint32_t rank, ranks;
    uint64_t timeout_ns;
} rank;

typedef struct cell { /* a thread of the host's service */
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
} cell;

static void stop(const char *what, const tn_err *err)
{
    (void)printf("%s: %s\n", what, err ? err->message : "");
    (void)fflush(stdout);
    exit(3);
}

/* ---- the host ------------------------------------------------------------------------------------------ */

static void *cell_main(void *arg)
{
    cell *t = arg;

    t->run(t->arg);
    return NULL;
}

static tn_status cell_create(const tn_host *host, const char *name, void (*run)(void *arg), void *arg,
                             void **out)
{
    cell *t = calloc(1, sizeof *t);

    (void)host;
    (void)name;
    if (!t)
        return TN_E_NOMEM;
    t->run = run;
    t->arg = arg;
    if (pthread_create(&t->id, NULL, cell_main, t)) {
        free(t);
        return TN_E_NOMEM;
    }
    *out = t;
    return TN_OK;
}

static void cell_join(const tn_host *host, void *thread)
{
    cell *t = thread;

    (void)host;
    (void)pthread_join(t->id, NULL);
    free(t);
}

static const tn_threads_service threads = {
    {(uint32_t)TN_END(tn_threads_service, join), 0, TN_SERVICE_THREADS}, cell_create, cell_join};

static const tn_service *service(const tn_host *host, const char *id)
{
    (void)host;
    return strcmp(id, TN_SERVICE_THREADS) ? NULL : &threads.head;
}

static const tn_host own_host = {
    .struct_size = (uint32_t)TN_END(tn_host, service),
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_MINOR,
    .version = "test",
    .service = service,
};

/* ---- memory of the device ------------------------------------------------------------------------------ */

/* Of the emulator, whose device memory the host can look at. */
static void *device_new(size_t bytes)
{
    static int (*alloc)(unsigned long long *out, size_t bytes);
    static int (*retain)(void **out, int device), (*push)(void *context);
    const struct {
        const char *name;
        void *member;
    } rows[] = {{"cuMemAlloc", (void *)&alloc},
                {"cuDevicePrimaryCtxRetain", (void *)&retain},
                {"cuCtxPushCurrent", (void *)&push}};
    int (*find)(const char *name, void **out, int version, unsigned long long flags, void *status);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol, *context = NULL;
    unsigned long long data = 0;

    if (!library || !(symbol = dlsym(library, "cuGetProcAddress_v2")))
        stop("the driver", NULL);
    memcpy((void *)&find, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !alloc; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            if (find(rows[k].name, &symbol, 12000, 0, NULL))
                stop(rows[k].name, NULL);
            memcpy(rows[k].member, &symbol, sizeof symbol);
        }
        if (retain(&context, 0) || push(context))
            stop("a context", NULL);
    }
    if (alloc(&data, bytes ? bytes : 1))
        stop("memory of the device", NULL);
    return (void *)(uintptr_t)data;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static const int32_t types[] = {TN_F32, TN_F64, TN_I32, TN_I64, TN_U8, TN_I8, TN_U32, TN_U64, TN_I16};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Sums of floats depend on the order: they differ in size. */
static void put(int32_t dtype, uint64_t seed, uint64_t i, void *to)
{
    const uint64_t h = mix(seed * 7919 + i + 1);
    const double scaled = (double)((int64_t)(h % 20001) - 10000) * (double)(1u << (h >> 40) % 20);

    if (dtype == TN_F32)
        ((float *)to)[i] = (float)scaled;
    else if (dtype == TN_F64)
        ((double *)to)[i] = scaled * 1e-3;
    else
        memcpy((char *)to + i * tn_dtype_bytes(dtype), &h, tn_dtype_bytes(dtype));
}

#define PLUS(T)                                                                                              \
    for (uint64_t i = 0; i < count; i++)                                                                     \
    ((T *)into)[i] = (T)(((T *)into)[i] + ((const T *)from)[i])

/* As type `device` adds: each addition rounded once. */
static void plus(int32_t dtype, uint64_t count, const void *from, void *into)
{
    if (dtype == TN_F32)
        PLUS(float);
    else if (dtype == TN_F64)
        PLUS(double);
    else if (tn_dtype_bytes(dtype) == 8)
        PLUS(uint64_t);
    else if (tn_dtype_bytes(dtype) == 4)
        PLUS(uint32_t);
    else if (tn_dtype_bytes(dtype) == 2)
        PLUS(uint16_t);
    else
        PLUS(uint8_t);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Polls until `left` calls have ended. */
static void until(rank *r, uint32_t left)
{
    while (left) {
        tn_collective_event e = {.struct_size = (uint32_t)sizeof e};
        tn_err err = {0};
        uint32_t count = 1;

        if (r->ops->poll(r->c, &e, &count, 1000000000, &err))
            stop("poll", &err);
        if (count && e.status) {
            (void)printf("%s: %s\n", e.status == TN_E_TIMEOUT ? "late" : "failed", e.text);
            (void)fflush(stdout);
            r->ops->close(r->c, LONG_NS);
            exit(2);
        }
        left -= count;
    }
}

static void start(rank *r, uint32_t kind, uint32_t flags, int32_t dtype, uint32_t parts,
                  tn_collective_part *part, const char *name)
{
    const tn_collective_call call = {.struct_size = (uint32_t)sizeof call,
                                     .flags = flags,
                                     .kind = kind,
                                     .dtype = dtype,
                                     .root = r->ranks - 1,
                                     .part_count = parts,
                                     .parts = part,
                                     .timeout_ns = r->timeout_ns,
                                     .cookie = 1,
                                     .name = name};
    tn_err err = {0};

    if (r->ops->start(r->c, &call, &err))
        stop("start", &err);
}

/* Two parts, one in place; odd counts, so that shares differ. */
static void call_check(rank *r, uint32_t number, uint32_t kind, uint32_t flags, int32_t dtype, bool device)
{
    const uint64_t size = tn_dtype_bytes(dtype), counts[] = {1 + number % 5, ELEMENTS + number};
    const bool exact = kind != TN_COLLECTIVE_SUM || flags || dtype > TN_F64;
    tn_collective_part parts[2];

    for (uint32_t p = 0; p < 2; p++) {
        void *in = device ? device_new(counts[p] * size) : calloc(counts[p], size);

        for (uint64_t i = 0; in && i < counts[p]; i++)
            put(dtype, number * 100 + p * 10 + r->rank, i, in);
        parts[p] = (tn_collective_part){in,
                                        p        ? in
                                        : device ? device_new(counts[p] * size)
                                                 : calloc(counts[p], size),
                                        counts[p]};
    }
    start(r, kind, flags, dtype, 2, parts, "a bucket");
    until(r, 1);
    for (uint32_t p = 0; p < 2; p++) {
        void *want = calloc(counts[p], size), *one = calloc(counts[p], size);

        for (uint32_t of = 0; of < r->ranks; of++) {
            for (uint64_t i = 0; i < counts[p]; i++)
                put(dtype, number * 100 + p * 10 + of, i, one);
            if (of == 0 || kind == TN_COLLECTIVE_BROADCAST)
                memcpy(want, one, counts[p] * size);
            else
                plus(dtype, counts[p], one, want);
        }
        if (exact && memcmp(want, parts[p].out, counts[p] * size) != 0)
            stop("another sum than that in the order of ranks", NULL);
        free(want);
        free(one);
        if (!device && parts[p].in != parts[p].out)
            free((void *)(uintptr_t)parts[p].in);
        if (!device)
            free(parts[p].out);
    }
}

static void sums(rank *r)
{
    uint32_t number = 0;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        call_check(r, ++number, TN_COLLECTIVE_SUM, TN_COLLECTIVE_ORDERED, types[i], true);
        call_check(r, ++number, TN_COLLECTIVE_SUM, 0, types[i], i % 2);
        call_check(r, ++number, TN_COLLECTIVE_BROADCAST, 0, types[i], i % 3);
    }
    call_check(r, ++number, TN_COLLECTIVE_SUM, TN_COLLECTIVE_ORDERED, TN_F32, false);
    start(r, TN_COLLECTIVE_BARRIER, 0, 0, 0, NULL, "1");
    until(r, 1);
}

static void bucket_start(rank *r, uint32_t number)
{
    static float data[BUCKETS + 1][ELEMENTS];
    tn_collective_part part = {data[number], data[number], ELEMENTS};
    char name[40];

    (void)snprintf(name, sizeof name, "bucket %u (w%u)", number, number);
    start(r, TN_COLLECTIVE_SUM, 0, TN_F32, 1, &part, name);
}

static void buckets(rank *r, const char *script)
{
    const bool last = r->rank + 1 == r->ranks, swapped = last && !strcmp(script, "swapped");
    const bool ends = last && (!strcmp(script, "absent") || !strcmp(script, "leaves"));
    const uint32_t most = ends ? 2 : BUCKETS;

    for (uint32_t b = 1; b <= most; b++) {
        bucket_start(r, swapped && b == 3 ? 4 : swapped && b == 4 ? 3 : b);
        until(r, 1);
    }
    if (last && !strcmp(script, "absent"))
        until(r, 1);
}

int nccl_rank_main(const char *script, uint32_t number, uint32_t ranks, const char *root, uint32_t timeout_ms)
{
    rank r = {.rank = number, .ranks = ranks, .timeout_ns = (uint64_t)timeout_ms * 1000000u};
    const tn_collective_config config = {.struct_size = (uint32_t)sizeof config,
                                         .rank = number,
                                         .ranks = ranks,
                                         .job = getenv("TEST_JOB") ? getenv("TEST_JOB") : "",
                                         .root = root,
                                         .timeout_ns = strcmp(script, "opens") ? LONG_NS : r.timeout_ns,
                                         .add = plus};
    const tn_plugin *descriptor = NULL;
    char path[4096];
    tn_err err = {0};
    void *file, *plugin = NULL;

    (void)snprintf(path, sizeof path, "%s/kv-nccl.so", getenv("TENON_TEST_PLUGINS"));
    if (!(file = dlopen(path, RTLD_NOW | RTLD_LOCAL)) || !(descriptor = dlsym(file, "tn_plugin_v1")) ||
        descriptor->init(&own_host, &plugin, &err))
        stop(path, &err);
    r.ops = (const tn_collective_ops *)(const void *)descriptor->capabilities[0];
    if (r.ops->open(plugin, &config, &r.c, &err))
        stop("open", &err);
    if (!strcmp(script, "sums"))
        sums(&r);
    else if (strcmp(script, "opens") != 0)
        buckets(&r, script);
    r.ops->close(r.c, LONG_NS);
    descriptor->fini(plugin);
    (void)printf("ok\n");
    return 0;
}

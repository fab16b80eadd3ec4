/*
 * Group device: one case for each device type of the plugin, on its device 0.
 */
#include "device.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

/* ---- what there is ---- */

static void index_refused(chk_device *d, int32_t index)
{
    tn_device_handle *handle = NULL;
    tn_status st;

    chk_err.message[0] = '\0';
    st = d->ops->open(d->plugin.self, index, &handle, &chk_err);
    chk_count(d->env);
    chk_device_said(d, "open", st, &chk_err);
    chk_fail_if(d->env, !st, NULL, "device %d opens, though there are %d", (int)index, (int)d->count);
    chk_fail_if(d->env, !*chk_err.message, NULL, "open refuses device %d and does not say why", (int)index);
}

void chk_device_count(chk_env *env)
{
    chk_device d;

    chk_device_begin(&d, env, CHK_HOST_EXACT);
    index_refused(&d, -1);
    index_refused(&d, d.count);
    index_refused(&d, INT32_MAX);
    index_refused(&d, INT32_MIN);
    for (int32_t i = 0; i < d.count && i < 16; i++) {
        tn_status st = d.ops->open(d.plugin.self, i, &d.handle, &chk_err);

        if (st)
            chk_fail(env, NULL, "device %d of %d does not open: %s: %s", (int)i, (int)d.count,
                     tn_status_name(st), chk_err.message);
        d.ops->close(d.handle);
        chk_count(env);
    }
    d.handle = NULL;
    chk_device_close(&d);
}

void chk_device_info(chk_env *env)
{
    chk_device d;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    if (!memchr(d.info.name, '\0', sizeof d.info.name) || !*d.info.name)
        chk_fail(env, NULL, "info gives no name, or one without an end");
    if (d.info.memory_free > d.info.memory_total)
        chk_fail(env, NULL, "info: %llu bytes are free of %llu", (unsigned long long)d.info.memory_free,
                 (unsigned long long)d.info.memory_total);
    if (d.info.flags & ~TN_DEVICE_F_KNOWN)
        chk_fail(env, NULL, "info: the flags %#x have no meaning",
                 (unsigned)(d.info.flags & ~TN_DEVICE_F_KNOWN));
    if (!d.info.alignment || d.info.alignment & (d.info.alignment - 1))
        chk_fail(env, NULL, "info: the alignment is %u, no power of two", (unsigned)d.info.alignment);
    if (TN_OFFERS(d.ops, tn_device_ops, statistics)) {
        const char *text = d.ops->statistics(d.handle);
        size_t length = text ? strlen(text) : 0;

        while (length && strchr(" \t\r\n", text[length - 1]))
            length--;
        if (!length || *text != '{' || text[length - 1] != '}')
            chk_fail(env, NULL, "statistics gives no JSON object");
    }
    chk_device_close(&d);
}

/* Two users of one process: each has a plugin, a device, a stream of its own. */
void chk_device_twice(chk_env *env)
{
    chk_device a, b;
    tn_stream *s, *t;

    chk_device_open(&a, env, CHK_HOST_EXACT);
    chk_device_open(&b, env, CHK_HOST_EXACT);
    chk_fail_if(env, a.handle == b.handle, NULL, "two users get one device");
    s = chk_device_stream(&a);
    t = chk_device_stream(&b);
    chk_device_wait(&a, s);
    a.ops->stream_destroy(s);
    chk_device_close(&a);
    chk_device_wait(&b, t);
    b.ops->stream_destroy(t);
    chk_device_close(&b);
}

/* ---- memory ---- */

static const uint64_t sizes[] = {1, 2, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097, 65536, 1000003, 4 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

static void memory_kind(chk_device *d, int32_t kind)
{
    char *blocks[SIZES];
    void *made = NULL;
    tn_status st = d->ops->alloc(d->handle, kind, 64, &made, &chk_err);

    chk_device_said(d, "alloc", st, &chk_err);
    if (st == TN_E_UNSUPPORTED && kind != TN_MEMORY_DEVICE)
        return;
    if (st)
        chk_fail(d->env, NULL, "64 bytes of memory kind %d: %s: %s", (int)kind, tn_status_name(st),
                 chk_err.message);
    d->ops->free(d->handle, kind, made);
    for (size_t i = 0; i < SIZES; i++) {
        blocks[i] = chk_device_alloc(d, kind, sizes[i]);
        if ((uintptr_t)blocks[i] % d->info.alignment)
            chk_fail(d->env, NULL, "%llu bytes lie at %p; the alignment is %u", (unsigned long long)sizes[i],
                     (void *)blocks[i], (unsigned)d->info.alignment);
        for (size_t k = 0; k < i; k++)
            if (blocks[i] < blocks[k] + sizes[k] && blocks[k] < blocks[i] + sizes[i])
                chk_fail(d->env, NULL, "two blocks of memory kind %d overlap", (int)kind);
        if (kind != TN_MEMORY_DEVICE || (d->info.flags & TN_DEVICE_F_HOST_ADDRESSABLE))
            memset(blocks[i], (int)i, sizes[i]);
    }
    for (size_t i = SIZES; i-- > 0;)
        d->ops->free(d->handle, kind, blocks[i]);
}

/* The blocks that are left, at most those that the time before left: NULL, there was none. */
static uint64_t memory_of(chk_env *env, const uint64_t *before)
{
    static const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 4095, (uint64_t)1 << 62, (uint64_t)1 << 48};
    chk_device d;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    memory_kind(&d, TN_MEMORY_DEVICE);
    memory_kind(&d, TN_MEMORY_PINNED);
    memory_kind(&d, TN_MEMORY_SHARED);
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        void *made = NULL;
        tn_status st = d.ops->alloc(d.handle, TN_MEMORY_DEVICE, huge[i], &made, &chk_err);

        chk_count(env);
        if (st != TN_E_NOMEM)
            chk_fail(env, NULL, "%llu bytes give %s instead of TN_E_NOMEM", (unsigned long long)huge[i],
                     tn_status_name(st));
    }
    for (int32_t kind = 4; kind < 1000; kind += 331) {
        void *made = NULL;

        if (!d.ops->alloc(d.handle, kind, 64, &made, &chk_err))
            chk_fail(env, NULL, "gives memory of the unknown kind %d", (int)kind);
    }
    d.ops->free(d.handle, TN_MEMORY_DEVICE, NULL);
    chk_device_close(&d);
    if (before)
        chk_host_left(d.plugin.host, *before, "alloc, free and close");
    return chk_host_memory(d.plugin.host, NULL);
}

/* What the first time leaves may be made once. */
void chk_device_memory(chk_env *env)
{
    const uint64_t once = memory_of(env, NULL);

    (void)memory_of(env, &once);
}

/* ---- copies ---- */

#define AREA (8 * MIB)
#define CANARY 0x5Cu

static void bytes_fill(chk_env *env, unsigned char *p, uint64_t bytes)
{
    uint64_t random = chk_random(env);

    for (uint64_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)((random + i) * 0x9E3779B97F4A7C15ULL >> 56);
}

static void same_or_fail(chk_device *d, const unsigned char *is, const unsigned char *want, uint64_t at,
                         uint64_t bytes, const char *way)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (is[at + i] != want[i])
            chk_fail(d->env, NULL, "%s: byte %llu of %llu is %02x, not %02x", way, (unsigned long long)i,
                     (unsigned long long)bytes, is[at + i], want[i]);
    for (uint64_t i = 1; i <= 64; i++)
        if ((at >= i && is[at - i] != CANARY) || is[at + bytes + i - 1] != CANARY)
            chk_fail(d->env, NULL, "%s of %llu bytes writes outside its place", way,
                     (unsigned long long)bytes);
}

typedef struct areas {
    unsigned char *host, *back;     /* plain host memory */
    unsigned char *device, *second; /* the device's */
    unsigned char *pinned;          /* NULL: not offered */
    tn_stream *stream;
} areas;

/* host → device → device → host, each at an offset of its own; what comes back is what went, and nothing
 * else. */
static void round_trip(chk_device *d, areas *a, uint64_t bytes, uint64_t offset)
{
    const tn_place host = chk_host_place(a->host), first = chk_device_place(d, a->device + offset),
                   second = chk_device_place(d, a->second + offset / 2 + 64),
                   back = chk_host_place(a->back + 64 + offset);
    const tn_place clean = chk_host_place(a->back), whole = chk_device_place(d, a->second);

    bytes_fill(d->env, a->host, bytes);
    memset(a->back, CANARY, bytes + offset + 256);
    chk_device_copy(d, a->stream, &whole, &clean, bytes + offset + 256);
    chk_device_copy(d, a->stream, &first, &host, bytes);
    chk_device_copy(d, a->stream, &second, &first, bytes);
    chk_device_copy(d, a->stream, &back, &second, bytes);
    chk_device_wait(d, a->stream);
    same_or_fail(d, a->back, a->host, 64 + offset, bytes, "host to device to host");
    memset(a->back, 0, bytes + offset + 256);
    chk_device_copy(d, a->stream, &clean, &whole, bytes + offset + 256);
    chk_device_wait(d, a->stream);
    same_or_fail(d, a->back, a->host, 64 + offset / 2, bytes, "device to device");
}

static void pinned_trip(chk_device *d, areas *a, uint64_t bytes)
{
    const tn_place pinned = {a->pinned, 0, TN_MEMORY_PINNED, d->ops->head.id},
                   first = chk_device_place(d, a->device);
    const tn_place back = {a->pinned + AREA / 2 + 64, 0, TN_MEMORY_PINNED, d->ops->head.id};

    bytes_fill(d->env, a->pinned, bytes);
    memset(a->pinned + AREA / 2, CANARY, bytes + 256);
    chk_device_copy(d, a->stream, &first, &pinned, bytes);
    chk_device_copy(d, a->stream, &back, &first, bytes);
    chk_device_wait(d, a->stream);
    same_or_fail(d, a->pinned + AREA / 2, a->pinned, 64, bytes, "pinned to device to pinned");
}

/* Memory of a device that no plugin has: nobody can reach it. */
static void foreign_refused(chk_device *d, areas *a)
{
    const tn_place host = chk_host_place(a->host), there = {a->back, 0, TN_MEMORY_DEVICE, "foreign-device"},
                   own = chk_device_place(d, a->device);
    const struct {
        const tn_place *to, *from;
    } pairs[] = {{&there, &host}, {&host, &there}, {&there, &own}, {&own, &there}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const tn_status st = d->ops->copy(a->stream, pairs[i].to, pairs[i].from, 64, &chk_err);

        if (st != TN_E_UNSUPPORTED)
            chk_fail(d->env, NULL,
                     "a copy with memory of another device type gives %s; it is not this device's to reach",
                     tn_status_name(st));
    }
}

void chk_device_copies(chk_env *env)
{
    static const uint64_t lengths[] = {1, 2, 3, 7, 8, 63, 64, 65, 255, 4096, 4097, 65537, MIB, 3 * MIB + 1};
    static const uint64_t offsets[] = {0, 1, 4, 64, 1000};
    void *pinned = NULL;
    chk_device d;
    areas a;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    a = (areas){.host = malloc(AREA),
                .back = malloc(AREA),
                .device = chk_device_alloc(&d, TN_MEMORY_DEVICE, AREA),
                .second = chk_device_alloc(&d, TN_MEMORY_DEVICE, AREA),
                .stream = chk_device_stream(&d)};
    chk_fail_if(env, !a.host || !a.back, "kit", "out of memory");
    if (!d.ops->alloc(d.handle, TN_MEMORY_PINNED, AREA, &pinned, &chk_err))
        a.pinned = pinned;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets && (!k || lengths[i] < MIB || env->sizes);
             k++)
            round_trip(&d, &a, lengths[i], offsets[k]);
        if (a.pinned)
            pinned_trip(&d, &a, lengths[i]);
    }
    chk_device_peers(&d, a.stream);
    foreign_refused(&d, &a);
    d.ops->stream_destroy(a.stream);
    d.ops->free(d.handle, TN_MEMORY_DEVICE, a.device);
    d.ops->free(d.handle, TN_MEMORY_DEVICE, a.second);
    if (a.pinned)
        d.ops->free(d.handle, TN_MEMORY_PINNED, a.pinned);
    chk_device_close(&d);
    free(a.host);
    free(a.back);
}

/* ---- order ---- */

#define CALLS 300u

typedef struct ordered {
    chk_env *env;
    atomic_uint next; /* the number that is to come */
    struct one {
        struct ordered *all;
        uint32_t number;
    } one[CALLS];
} ordered;

static tn_status in_order(void *arg, tn_err *err)
{
    const struct one *o = arg;
    uint32_t came = atomic_fetch_add(&o->all->next, 1);

    (void)err;
    if (came != o->number)
        chk_fail(o->all->env, "D-order", "call %u of a stream runs as number %u", (unsigned)o->number,
                 (unsigned)came);
    return TN_OK;
}

#define SLOW_US 300000u

static tn_status slow(void *arg, tn_err *err)
{
    (void)err;
    chk_sleep_us(SLOW_US);
    atomic_store((atomic_uint *)arg, 1);
    return TN_OK;
}

/* A wait has no patience of its own: it ends when the work does. */
static void slow_work(chk_device *d, tn_stream *s)
{
    static atomic_uint done;

    chk_device_call(d, s, slow, &done);
    chk_device_wait(d, s);
    chk_fail_if(d->env, !atomic_load(&done), NULL, "stream_wait returns before a slow call has ended");
}

void chk_device_order(chk_env *env)
{
    static ordered o;
    chk_device d;
    tn_stream *s;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    s = chk_device_stream(&d);
    o.env = env;
    for (uint32_t i = 0; i < CALLS; i++) {
        o.one[i] = (struct one){&o, i};
        chk_device_call(&d, s, in_order, &o.one[i]);
    }
    chk_device_wait(&d, s);
    if (atomic_load(&o.next) != CALLS)
        chk_fail(env, NULL, "stream_wait returns after %u of %u calls", (unsigned)atomic_load(&o.next),
                 CALLS);
    slow_work(&d, s);
    chk_device_mixed(&d, s);
    for (int32_t priority = -2; priority <= 2; priority++) {
        tn_stream *other = NULL;
        const tn_status st = d.ops->stream_create(d.handle, priority, &other, &chk_err);

        if (st || !other)
            chk_fail(env, NULL, "stream_create with priority %d gives %s: %s", (int)priority,
                     tn_status_name(st), chk_err.message);
        d.ops->stream_destroy(other);
    }
    d.ops->stream_destroy(s);
    chk_device_close(&d);
}

/* ---- hosts of other versions ---- */

static tn_status touched(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_uint *)arg, 1);
    return TN_OK;
}

void chk_device_hosts(chk_env *env)
{
    static const chk_host_kind kinds[] = {CHK_HOST_OLD, CHK_HOST_FUTURE, CHK_HOST_BARE};
    const tn_device_info info = {.struct_size = (uint32_t)TN_END(tn_device_info, alignment)};
    static atomic_uint calls;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        tn_device_info *made = chk_struct_make(env, kinds[k], &info, CHK_SIZES(tn_device_info, alignment));
        uint32_t size = made->struct_size;
        unsigned char bytes[1000], back[1000];
        chk_device d;
        tn_stream *s;
        tn_place host = chk_host_place(bytes), there, home = chk_host_place(back);

        chk_device_open(&d, env, kinds[k]);
        if (d.ops->info(d.handle, made, &chk_err) || made->struct_size != size || !chk_struct_intact(made))
            chk_fail(env, NULL,
                     "info fails for a struct of %u bytes, changes struct_size, or writes behind it",
                     (unsigned)size);
        s = chk_device_stream(&d);
        there = chk_device_place(&d, chk_device_alloc(&d, TN_MEMORY_DEVICE, sizeof bytes));
        bytes_fill(env, bytes, sizeof bytes);
        chk_device_copy(&d, s, &there, &host, sizeof bytes);
        chk_device_copy(&d, s, &home, &there, sizeof bytes);
        chk_device_call(&d, s, touched, &calls);
        chk_device_wait(&d, s);
        if (memcmp(bytes, back, sizeof bytes) != 0 || atomic_load(&calls) != k + 1)
            chk_fail(env, NULL, "a copy or a call got lost");
        d.ops->stream_destroy(s);
        d.ops->free(d.handle, TN_MEMORY_DEVICE, there.data);
        chk_device_close(&d);
        chk_struct_free(made);
    }
}

/* ---- what need not be there ---- */

static void registered(chk_device *d)
{
    const uint64_t bytes = 64 * 1024;
    tn_stream *s = chk_device_stream(d);
    void *here = aligned_alloc(4096, bytes), *there = chk_device_alloc(d, TN_MEMORY_DEVICE, bytes);
    const tn_place host = chk_host_place(here), device = chk_device_place(d, there);
    unsigned char *before = malloc(bytes);
    tn_status st;

    chk_fail_if(d->env, !here || !before, "kit", "out of memory");
    bytes_fill(d->env, here, bytes);
    memcpy(before, here, bytes);
    st = d->ops->host_register(d->handle, here, bytes, &chk_err);
    chk_device_said(d, "host_register", st, &chk_err);
    chk_device_copy(d, s, &device, &host, bytes);
    chk_device_wait(d, s);
    memset(here, 0, bytes);
    chk_device_copy(d, s, &host, &device, bytes);
    chk_device_wait(d, s);
    if (memcmp(here, before, bytes) != 0)
        chk_fail(d->env, NULL, "host memory that was registered comes back changed");
    if (!st)
        d->ops->host_unregister(d->handle, here);
    d->ops->free(d->handle, TN_MEMORY_DEVICE, there);
    d->ops->stream_destroy(s);
    free(here);
    free(before);
}

void chk_device_optional(chk_env *env)
{
    static const int32_t peers[] = {-1, 0, 1, INT32_MAX};
    chk_device d;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    for (size_t i = 0; TN_OFFERS(d.ops, tn_device_ops, peer) && i < sizeof peers / sizeof *peers; i++) {
        int32_t reads = d.ops->peer(d.handle, peers[i]);

        if ((reads != 0 && reads != 1) || (reads && (peers[i] < 0 || peers[i] >= d.count)))
            chk_fail(env, NULL, "peer(%d) gives %d; there are %d devices", (int)peers[i], (int)reads,
                     (int)d.count);
        chk_count(env);
    }
    if (TN_OFFERS(d.ops, tn_device_ops, host_register) != TN_OFFERS(d.ops, tn_device_ops, host_unregister))
        chk_fail(env, NULL, "one of host_register and host_unregister is there without the other");
    if (TN_OFFERS(d.ops, tn_device_ops, host_register))
        registered(&d);
    chk_device_close(&d);
}

/* ---- fork ---- */

/* The child may use the host's devices only; what it asks of this one is refused or done,
 * and nothing hangs. */
static _Noreturn void child(chk_device *d)
{
    const tn_plugin *p = d->plugin.descriptor;
    tn_stream *s = NULL;
    int32_t count;

    if (TN_HAS(p, tn_plugin, fork))
        (void)p->fork(d->plugin.self, TN_FORK_CHILD);
    (void)d->ops->count(d->plugin.self, &count, &chk_err);
    if (!d->ops->stream_create(d->handle, 0, &s, &chk_err))
        d->ops->stream_destroy(s);
    _exit(0);
}

void chk_device_fork(chk_env *env)
{
    const tn_plugin *p = chk_descriptor(env);
    chk_device d;
    tn_stream *s;
    int status = 0;
    pid_t pid;

    if (chk_patience() > 1) /* a lock of its allocator may be held by a thread that the child lacks */
        chk_skip(env, "sanitizers do not follow a fork with threads");
    chk_device_open(&d, env, CHK_HOST_EXACT);
    s = chk_device_stream(&d);
    chk_device_wait(&d, s);
    if (TN_HAS(p, tn_plugin, fork) && p->fork(d.plugin.self, TN_FORK_PREPARE))
        chk_fail(env, NULL, "fork refuses its phase PREPARE");
    pid = fork();
    if (!pid)
        child(&d);
    if (TN_HAS(p, tn_plugin, fork))
        (void)p->fork(d.plugin.self, TN_FORK_PARENT);
    chk_fail_if(env, pid < 0 || waitpid(pid, &status, 0) < 0, "kit", "no child");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        chk_fail(env, NULL, "in the child of a fork the device crashes (wait status %d)", status);
    chk_device_wait(&d, s);
    d.ops->stream_destroy(s);
    chk_device_close(&d);
}

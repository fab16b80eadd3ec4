/*
 * Counted host memory. Each thread counts in a node of its own with plain relaxed stores, so an allocation
 * costs no contended instruction; nodes are never freed, only handed to the next thread, so their sum is
 * exact at any time and survives fork(). The peak is taken whenever a thread has moved by PEAK_STEP bytes: it
 * can be too low by at most that much per thread. Blocks carry no header: the C library knows their size.
 *
 * Failure injection counts allocations, process-wide or of one thread, and makes one of them return NULL.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define PEAK_STEP (64 << 10)

typedef struct mem_node {
    _Alignas(64) atomic_llong live_bytes;
    atomic_llong live_count;
    atomic_ullong alloc_count;
    long long unflushed; /* owner only: moved since the last look at the peak */
    atomic_bool used;
    struct mem_node *next; /* set once */
} mem_node;

static _Atomic(mem_node *) nodes;
static mem_node spare; /* threads that could get no node share this one, atomically */
static atomic_llong flushed_bytes;
static atomic_llong peak_bytes;
static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;
static bool exit_key_valid;
static TN_THREAD_LOCAL_FAST mem_node *mine;

static atomic_bool fail_armed; /* read by every allocation, written by tests */
static atomic_bool fail_forever, fail_hit;
static atomic_ullong fail_left;   /* process-wide countdown */
static atomic_ullong fail_thread; /* id of the only thread that counts; 0: all */

static void node_leave(void *node)
{
    mine = NULL;
    atomic_store_explicit(&((mem_node *)node)->used, false, memory_order_release);
}

static void exit_key_make(void)
{
    exit_key_valid = pthread_key_create(&exit_key, node_leave) == 0;
}

/* The calling thread's node: a free one, or a new one. */
static mem_node *node_enter(void)
{
    mem_node *node = NULL;

    pthread_once(&exit_once, exit_key_make);
    if (!exit_key_valid)
        return &spare;
    for (node = atomic_load_explicit(&nodes, memory_order_acquire); node; node = node->next) {
        bool used = false;

        if (atomic_compare_exchange_strong(&node->used, &used, true))
            break;
    }
    if (!node) {
        node = aligned_alloc(_Alignof(mem_node), sizeof *node);
        if (!node)
            return &spare;
        memset(node, 0, sizeof *node);
        atomic_init(&node->used, true);
        node->next = atomic_load_explicit(&nodes, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&nodes, &node->next, node, memory_order_release,
                                                      memory_order_relaxed))
            ;
    }
    mine = node; /* before setspecific, which may allocate but never through us */
    if (pthread_setspecific(exit_key, node)) {
        node_leave(node);
        return &spare;
    }
    return node;
}

static void peak_update(long long moved)
{
    long long live = atomic_fetch_add_explicit(&flushed_bytes, moved, memory_order_relaxed) + moved;
    long long peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);

    while (live > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, live,
                                                                 memory_order_relaxed, memory_order_relaxed))
        ;
}

static void count_shared(long long bytes, long long blocks, unsigned long long allocs)
{
    atomic_fetch_add(&spare.live_bytes, bytes);
    atomic_fetch_add(&spare.live_count, blocks);
    atomic_fetch_add(&spare.alloc_count, allocs);
    peak_update(bytes);
}

#define BUMP(counter, by)                                                                                    \
    atomic_store_explicit(&(counter), atomic_load_explicit(&(counter), memory_order_relaxed) + (by),         \
                          memory_order_relaxed)

static void count(long long bytes, long long blocks, unsigned long long allocs)
{
    mem_node *node = TN_LIKELY(mine) ? mine : node_enter();

    if (TN_UNLIKELY(node == &spare)) {
        count_shared(bytes, blocks, allocs);
        return;
    }
    BUMP(node->live_bytes, bytes);
    BUMP(node->live_count, blocks);
    BUMP(node->alloc_count, allocs);
    node->unflushed += bytes;
    if (TN_UNLIKELY(node->unflushed > PEAK_STEP || node->unflushed < -PEAK_STEP)) {
        peak_update(node->unflushed);
        node->unflushed = 0;
    }
}

/* True: this allocation is the one that fails. */
static bool fail_now(void)
{
    uint64_t only = atomic_load(&fail_thread);
    unsigned long long left;

    if (only && only != tni_thread_id())
        return false;
    left = atomic_load(&fail_left);
    while (left > 0 && !atomic_compare_exchange_weak(&fail_left, &left, left - 1))
        ;
    if (left == 1 || (left == 0 && atomic_load(&fail_forever))) {
        atomic_store(&fail_hit, true);
        return true;
    }
    return false;
}

static bool refused(uint64_t bytes)
{
    return (TN_UNLIKELY(atomic_load_explicit(&fail_armed, memory_order_relaxed)) && fail_now()) ||
           bytes > TN_SIZE_MAX;
}

static void *counted(void *p, uint64_t bytes)
{
    if (TN_UNLIKELY(!p))
        tni_error(TN_E_NOMEM, "out of memory: %llu bytes", (unsigned long long)bytes);
    else
        count((long long)malloc_usable_size(p), 1, 1);
    return p;
}

void *tni_alloc(uint64_t bytes)
{
    return counted(refused(bytes) ? NULL : malloc(bytes ? bytes : 1), bytes);
}

void *tni_zalloc(uint64_t bytes)
{
    return counted(refused(bytes) ? NULL : calloc(1, bytes ? bytes : 1), bytes);
}

void *tni_calloc(uint64_t items, uint64_t bytes)
{
    uint64_t total;

    if (!tni_size_mul(items, bytes, &total)) {
        tni_error(TN_E_NOMEM, "out of memory: %llu items of %llu bytes", (unsigned long long)items,
                  (unsigned long long)bytes);
        return NULL;
    }
    return tni_zalloc(total);
}

void *tni_realloc(void *p, uint64_t bytes)
{
    long long before;
    void *next;

    if (!p)
        return tni_alloc(bytes);
    before = (long long)malloc_usable_size(p);
    next = refused(bytes) ? NULL : realloc(p, bytes ? bytes : 1);
    if (!next) {
        tni_error(TN_E_NOMEM, "out of memory: %llu bytes", (unsigned long long)bytes);
        return NULL;
    }
    count((long long)malloc_usable_size(next) - before, 0, 1);
    return next;
}

void *tni_alloc_aligned(uint64_t align, uint64_t bytes)
{
    void *p = NULL;

    if (align < sizeof(void *))
        align = sizeof(void *);
    if (refused(bytes) || posix_memalign(&p, align, bytes ? bytes : 1))
        p = NULL;
    return counted(p, bytes);
}

void tni_free(void *p)
{
    if (!p)
        return;
    count(-(long long)malloc_usable_size(p), -1, 0);
    free(p);
}

uint64_t tni_mem_bytes(const void *p)
{
    return malloc_usable_size((void *)p);
}

void tni_free_aligned(void *p)
{
    tni_free(p);
}

char *tni_strndup(const char *text, size_t bytes)
{
    size_t length = strnlen(text, bytes);
    char *copy = tni_alloc((uint64_t)length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *tni_strdup(const char *text)
{
    return tni_strndup(text, strlen(text));
}

static void stats_add(tni_mem_stats *out, const mem_node *node)
{
    out->live_bytes += (uint64_t)atomic_load_explicit(&node->live_bytes, memory_order_relaxed);
    out->live_count += (uint64_t)atomic_load_explicit(&node->live_count, memory_order_relaxed);
    out->alloc_count += atomic_load_explicit(&node->alloc_count, memory_order_relaxed);
}

void tni_mem_stats_get(tni_mem_stats *out)
{
    tni_mem_stats sum = {0};

    stats_add(&sum, &spare);
    for (const mem_node *node = atomic_load_explicit(&nodes, memory_order_acquire); node; node = node->next)
        stats_add(&sum, node);
    sum.peak_bytes = (uint64_t)atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    if (sum.peak_bytes < sum.live_bytes)
        sum.peak_bytes = sum.live_bytes;
    *out = sum;
}

void tni_mem_fail_at(uint64_t nth, bool forever, bool this_thread)
{
    atomic_store(&fail_armed, false);
    atomic_store(&fail_thread, this_thread ? tni_thread_id() : 0);
    atomic_store(&fail_left, nth);
    atomic_store(&fail_forever, forever);
    if (nth) {
        atomic_store(&fail_hit, false);
        atomic_store(&fail_armed, true);
    }
}

bool tni_mem_failed(void)
{
    return atomic_load(&fail_hit);
}

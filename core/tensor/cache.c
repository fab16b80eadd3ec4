/*
 * Free blocks of arrays. Each thread keeps those that it made: it takes from its own list without any atomic
 * instruction; another thread that frees one of them pushes it onto a stack that the maker empties when its
 * list has run dry. Threads beyond CACHES_MAX, and blocks whose maker has ended, use tni_alloc and tni_free.
 *
 * Live arrays and storages are counted per thread and context with plain stores; their sum is exact while
 * nothing moves. The version of a new storage starts at a number never used before, so whoever remembers
 * (storage, version) cannot mistake a reused block for the old one.
 */
#include "tensor/internal.h"

#define CACHES_MAX 256           /* threads with a cache: more than any server has cores */
#define SLOTS_MAX 16             /* contexts counted apart; further ones share the last slot */
#define KEPT_MAX 2048            /* free blocks of a thread: 1 MiB */
#define VERSION_STRIDE 0x100000u /* writes of one storage before it meets the next one's numbers */

typedef struct tni_cache {
    _Alignas(64) tni_array *blocks[2]; /* [0] whole blocks, [1] views; owner only; linked by `storage` */
    uint32_t kept[2];
    uint64_t versions;
    atomic_int_fast64_t arrays[SLOTS_MAX], storages[SLOTS_MAX],
        calls[SLOTS_MAX];                          /* written by the owner only */
    _Alignas(64) _Atomic(tni_array *) returned[2]; /* by other threads */
    atomic_uint returned_count[2];
    atomic_bool used;
} tni_cache;

static tni_cache caches[CACHES_MAX];
static tni_cache shared;        /* counters of threads without a cache: atomically, never `used` */
static atomic_uint slots_taken; /* bit per slot */
static atomic_uint_fast64_t shared_versions;
static TN_THREAD_LOCAL_FAST tni_cache *mine;

#ifdef TN_TEST_SWITCHES
static bool keeps_nothing;

void tni_cache_keep_nothing(bool on)
{
    keeps_nothing = on;
    tni_keep_nothing(on);
}
#else
#define keeps_nothing false
#endif

/* The free list's link lies where a dead array keeps its storage. */
static tni_array *next_of(const tni_array *a)
{
    return (tni_array *)(void *)a->storage;
}

static void link_to(tni_array *a, tni_array *next)
{
    a->storage = (tni_storage *)(void *)next;
}

static uint32_t list_free(tni_array *list)
{
    uint32_t freed = 0;

    for (; list; freed++) {
        tni_array *next = next_of(list);

        tni_free_aligned(list);
        list = next;
    }
    return freed;
}

/* Any thread may: the stack is taken whole. */
static void returned_flush(tni_cache *c)
{
    for (int view = 0; view < 2; view++)
        atomic_fetch_sub(&c->returned_count[view], list_free(atomic_exchange(&c->returned[view], NULL)));
}

static void cache_flush(tni_cache *c)
{
    for (int view = 0; view < 2; view++) {
        list_free(c->blocks[view]);
        c->blocks[view] = NULL;
        c->kept[view] = 0;
    }
    returned_flush(c);
}

static void cache_leave(void *arg)
{
    tni_cache *c = arg;

    mine = NULL;
    cache_flush(c);
    atomic_store_explicit(&c->used, false, memory_order_release);
}

static tni_cache *cache_enter(void)
{
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        bool used = false;

        if (!atomic_load_explicit(&caches[i].used, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&caches[i].used, &used, true)) {
            if (caches[i].versions == 0)
                caches[i].versions = (uint64_t)(i + 1) << 54;
            mine = &caches[i];
            if (tni_thread_on_exit(cache_leave, &caches[i])) {
                cache_leave(&caches[i]);
                break;
            }
            return &caches[i];
        }
    }
    return &shared;
}

static inline tni_cache *cache_mine(void)
{
    return TN_LIKELY(mine) ? mine : cache_enter();
}

static inline void count(tni_cache *c, atomic_int_fast64_t *counter, int64_t by)
{
    if (TN_UNLIKELY(c == &shared))
        atomic_fetch_add(counter, by);
    else
        atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                              memory_order_relaxed);
}

static inline uint64_t version_new(tni_cache *c)
{
    if (TN_UNLIKELY(c == &shared))
        return (uint64_t)(CACHES_MAX + 1) << 54 | (atomic_fetch_add(&shared_versions, VERSION_STRIDE));
    return c->versions += VERSION_STRIDE;
}

static tni_array *refill(tni_cache *c, bool view)
{
    tni_array *list = atomic_load_explicit(&c->returned[view], memory_order_relaxed)
                          ? atomic_exchange_explicit(&c->returned[view], NULL, memory_order_acquire)
                          : NULL;
    tni_array *a;

    if (list) {
        uint32_t got = 0;

        for (const tni_array *at = list; at; at = next_of(at))
            got++;
        atomic_fetch_sub_explicit(&c->returned_count[view], got, memory_order_relaxed);
        c->blocks[view] = next_of(list);
        c->kept[view] = got - 1;
        return list;
    }
    a = tni_alloc_aligned(64, view ? sizeof(tni_array) : sizeof(tni_array_block));
    if (a)
        a->home = c == &shared ? NULL : c;
    return a;
}

tni_array *tni_cache_take(tni_space *space, bool view)
{
    tni_cache *c = cache_mine();
    tni_array *a = c->blocks[view]; /* `shared` has none */

    if (TN_LIKELY(a != NULL)) {
        c->blocks[view] = next_of(a);
        c->kept[view]--;
    } else {
        a = refill(c, view);
        if (!a)
            return NULL;
    }
    count(c, &c->arrays[space->slot], 1);
    if (!view) {
        count(c, &c->storages[space->slot], 1);
        ((tni_array_block *)(void *)a)->storage.var.version = version_new(c);
    }
    return a;
}

void tni_cache_count_array(tni_space *space, int64_t by)
{
    tni_cache *c = cache_mine();

    count(c, &c->arrays[space->slot], by);
}

void tni_space_count_call(tni_space *space)
{
    tni_cache *c = cache_mine();

    count(c, &c->calls[space->slot], 1);
}

uint64_t tni_cache_calls(uint32_t slot)
{
    int64_t calls = atomic_load(&shared.calls[slot]);

    for (uint32_t i = 0; i < CACHES_MAX; i++)
        calls += atomic_load_explicit(&caches[i].calls[slot], memory_order_relaxed);
    return (uint64_t)calls;
}

/* Of another thread: onto its stack, unless that thread has ended or does not come to empty it. */
static void give_back(tni_cache *home, tni_array *a, bool view)
{
    tni_array *top;

    if (!atomic_load_explicit(&home->used, memory_order_relaxed) ||
        atomic_load_explicit(&home->returned_count[view], memory_order_relaxed) >= KEPT_MAX) {
        tni_free_aligned(a);
        return;
    }
    atomic_fetch_add_explicit(&home->returned_count[view], 1, memory_order_relaxed);
    top = atomic_load_explicit(&home->returned[view], memory_order_relaxed);
    do
        link_to(a, top);
    while (!atomic_compare_exchange_weak_explicit(&home->returned[view], &top, a, memory_order_release,
                                                  memory_order_relaxed));
}

void tni_cache_give(tni_space *space, tni_array *a, bool view, bool counted)
{
    tni_cache *c = cache_mine(), *home = a->home;

    if (counted)
        count(c, &c->arrays[space->slot], -1);
    if (!view)
        count(c, &c->storages[space->slot], -1);
    if (TN_LIKELY(home == c && c->kept[view] < KEPT_MAX && !keeps_nothing)) {
        link_to(a, c->blocks[view]);
        c->blocks[view] = a;
        c->kept[view]++;
    } else if (!home || home == c || keeps_nothing) {
        tni_free_aligned(a);
    } else {
        give_back(home, a, view);
    }
}

uint32_t tni_cache_slot_take(void)
{
    uint32_t taken = atomic_load(&slots_taken), slot;

    do {
        for (slot = 0; slot < SLOTS_MAX - 1 && taken & 1u << slot; slot++)
            ;
    } while (!atomic_compare_exchange_weak(&slots_taken, &taken, taken | 1u << slot));
    return slot;
}

void tni_cache_slot_give(uint32_t slot)
{
    if (slot < SLOTS_MAX - 1)
        atomic_fetch_and(&slots_taken, ~(1u << slot));
}

void tni_cache_live(uint32_t slot, uint64_t *arrays, uint64_t *storages)
{
    int64_t a = atomic_load(&shared.arrays[slot]), s = atomic_load(&shared.storages[slot]);

    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        a += atomic_load_explicit(&caches[i].arrays[slot], memory_order_relaxed);
        s += atomic_load_explicit(&caches[i].storages[slot], memory_order_relaxed);
    }
    *arrays = a > 0 ? (uint64_t)a : 0;
    *storages = s > 0 ? (uint64_t)s : 0;
}

void tni_cache_trim(void)
{
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        tni_cache *c = &caches[i];

        if (c == mine)
            cache_flush(c);
        else if (!atomic_load(&c->used)) /* pushed by a thread that had not seen it end */
            returned_flush(c);
    }
}

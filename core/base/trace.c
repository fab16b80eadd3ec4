/*
 * The profiler's ring. Writers take the next number with one addition and never wait; the oldest events are
 * lost. A slot has one writer at a time: who finds the slot of its number in the making (its writer was
 * interrupted for a whole round of the ring) or already used by a later number takes another number. Such
 * numbers stay holes; the ring has spare slots for them, and a reader takes the newest `count` events that
 * are there. A slot is written word by word, each behind the sequence that says so, so a reader that meets a
 * slot in the making skips it. A ring is never freed: a writer may still be on its way into it. A larger one
 * goes on counting where the smaller one ended, so that what is in that stays readable.
 *
 * Events are the process's, and so is the ring. Its users (contexts, the program) are counted: the last one
 * that leaves ends the recording, and each is told the events between its coming and its leaving.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define RING_MIN 64u
#define RING_MAX (1u << 24)
#define RINGS_MAX 19   /* sizes from the least to the largest */
#define RING_SPARE 64u /* writers that may be interrupted at once without costing an old event */
#define EVENT_WORDS 11

typedef struct trace_event {
    uint64_t ns, thread;
    char phase, category[15], name[56];
} trace_event;

_Static_assert(sizeof(trace_event) == 8 * EVENT_WORDS, "an event is a whole number of words");

typedef struct trace_slot {
    atomic_ullong sequence; /* twice the number of its event, from 1; odd while that is written; 0: none */
    atomic_ullong words[EVENT_WORDS];
} trace_slot;

typedef struct trace_ring {
    struct trace_ring *older;
    uint64_t count, size; /* events that it keeps; slots */
    atomic_ullong next;   /* number of the next event in the process */
    uint64_t base;        /* events before it are in older rings */
    trace_slot slots[];
} trace_ring;

atomic_bool tni_trace_on;
uint32_t tni_trace_flag;
static _Atomic(trace_ring *) ring;
static tni_mutex start_lock = TNI_MUTEX_INIT;
static uint32_t users TN_GUARDED_BY(start_lock);
static uint64_t began TN_GUARDED_BY(start_lock); /* number of the first event since there are users */
static char own_name[24] TN_GUARDED_BY(start_lock), own_facts[256] TN_GUARDED_BY(start_lock);

/* A ring of at least `count` events is there. */
static tn_status ring_grow_locked(uint64_t count) TN_REQUIRES(&start_lock);
static tn_status ring_grow_locked(uint64_t count)
{
    trace_ring *r = atomic_load(&ring), *next;

    if (r && r->count >= count)
        return TN_OK;
    if (!(next = tni_zalloc(sizeof *next + (count + RING_SPARE) * sizeof next->slots[0])))
        return TN_E_NOMEM;
    next->older = r;
    next->count = count;
    next->size = count + RING_SPARE;
    next->base = r ? atomic_load(&r->next) : 0;
    atomic_init(&next->next, next->base);
    atomic_store(&ring, next);
    return TN_OK;
}

static void on_set(bool on)
{
    atomic_store(&tni_trace_on, on);
    __atomic_store_n(&tni_trace_flag, on, __ATOMIC_RELAXED);
}

tn_status tni_trace_start(tni_trace_user *u, uint32_t events_max)
{
    uint64_t count = RING_MIN;
    tn_status st;

    while (count < events_max && count < RING_MAX)
        count *= 2;
    tni_mutex_lock(&start_lock);
    if (!(st = ring_grow_locked(count))) {
        u->first = atomic_load(&atomic_load(&ring)->next);
        if (!u->on && users++ == 0)
            began = u->first;
        u->on = u->was = true;
        on_set(true);
    }
    tni_mutex_unlock(&start_lock);
    return st;
}

void tni_trace_stop(tni_trace_user *u)
{
    tni_mutex_lock(&start_lock);
    if (u->on) {
        u->on = false;
        u->last = atomic_load(&atomic_load(&ring)->next);
        if (--users == 0)
            on_set(false);
    }
    tni_mutex_unlock(&start_lock);
}

void tni_trace_own_set(const char *name, const char *facts)
{
    tni_mutex_lock(&start_lock);
    (void)snprintf(own_name, sizeof own_name, "%s", name);
    (void)snprintf(own_facts, sizeof own_facts, "%s", facts);
    tni_mutex_unlock(&start_lock);
}

void tni_trace_own_name(char out[24])
{
    tni_mutex_lock(&start_lock);
    memcpy(out, own_name, sizeof own_name);
    tni_mutex_unlock(&start_lock);
}

static void text_copy(char *to, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(to, text, length);
}

/* A slot that is this thread's until it stores `*written` as its sequence; NULL: every slot has a writer. */
static trace_slot *slot_take(trace_ring *r, uint64_t *written)
{
    for (uint32_t tries = 0; tries < 2 * RING_SPARE; tries++) {
        uint64_t number = atomic_fetch_add(&r->next, 1);
        trace_slot *slot = &r->slots[number % r->size];
        unsigned long long before = atomic_load_explicit(&slot->sequence, memory_order_relaxed);

        *written = 2 * (number + 1);
        if (before % 2 == 0 && before < *written &&
            atomic_compare_exchange_strong(&slot->sequence, &before, *written + 1))
            return slot;
    }
    return NULL;
}

void tni_trace_event(char phase, const char *category, const char *name, uint64_t ns)
{
    trace_ring *r = atomic_load_explicit(&ring, memory_order_acquire);
    trace_event event = {.ns = ns ? ns : tni_clock_ns(), .thread = tni_thread_id(), .phase = phase};
    uint64_t words[EVENT_WORDS], written;
    trace_slot *slot;

    if (!r || !atomic_load_explicit(&tni_trace_on, memory_order_relaxed))
        return;
    text_copy(event.category, sizeof event.category, category);
    text_copy(event.name, sizeof event.name, name);
    memcpy(words, &event, sizeof words);
    if (!(slot = slot_take(r, &written)))
        return;
    for (size_t i = 0; i < EVENT_WORDS; i++) /* whoever reads one finds the slot in the making afterwards */
        atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
    atomic_store_explicit(&slot->sequence, written, memory_order_release);
}

static bool slot_whole(trace_ring *r, uint64_t number)
{
    return atomic_load_explicit(&r->slots[number % r->size].sequence, memory_order_acquire) ==
           2 * (number + 1);
}

static bool slot_read(trace_ring *r, uint64_t number, trace_event *out)
{
    trace_slot *slot = &r->slots[number % r->size];
    uint64_t words[EVENT_WORDS];

    if (!slot_whole(r, number))
        return false;
    for (size_t i = 0; i < EVENT_WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
    memcpy(out, words, sizeof *out);
    return slot_whole(r, number); /* still */
}

static void event_write(tni_str *out, const trace_event *e)
{
    tni_str_add(out, "{\"name\":");
    tni_str_add_json(out, e->name, strnlen(e->name, sizeof e->name));
    tni_str_add(out, ",\"cat\":");
    tni_str_add_json(out, e->category, strnlen(e->category, sizeof e->category));
    if (e->phase == 'b' || e->phase == 'e') { /* within this process */
        tni_str_add(out, ",\"id2\":{\"local\":");
        tni_str_add_json(out, e->name, strnlen(e->name, sizeof e->name));
        tni_str_add(out, "}");
    }
    tni_str_addf(out, ",\"ph\":\"%c\",\"pid\":1,\"tid\":%llu,\"ts\":%llu.%03u}", e->phase,
                 (unsigned long long)e->thread, (unsigned long long)(e->ns / 1000), (unsigned)(e->ns % 1000));
}

/* The newest events of one ring with numbers in [first, last). */
static void ring_write_locked(trace_ring *r, uint64_t first, uint64_t last, tni_str *out,
                              const char **between) TN_REQUIRES(&start_lock);
static void ring_write_locked(trace_ring *r, uint64_t first, uint64_t last, tni_str *out,
                              const char **between)
{
    uint64_t number = last, least = last > r->size ? last - r->size : 0;
    trace_event event;

    least = least < r->base ? r->base : least;
    least = least < first ? first : least;
    for (uint64_t found = 0; number > least && found < r->count; number--)
        found += slot_whole(r, number - 1);
    for (; number < last; number++) {
        if (!slot_read(r, number, &event))
            continue;
        tni_str_add(out, *between);
        event_write(out, &event);
        *between = ",\n";
    }
}

tn_status tni_trace_json(const tni_trace_user *u, tni_str *out)
{
    trace_ring *list[RINGS_MAX], *r;
    const char *between = "";
    uint64_t first, last;
    size_t count = 0;

    tni_str_add(out, "{\"displayTimeUnit\":\"ns\",");
    tni_mutex_lock(&start_lock);
    if (*own_facts)
        tni_str_addf(out, "\"otherData\":{%s},", own_facts);
    tni_str_add(out, "\"traceEvents\":[");
    for (r = atomic_load(&ring); r && count < RINGS_MAX; r = r->older)
        list[count++] = r;
    last = count ? atomic_load(&list[0]->next) : 0;
    first = u->was ? u->first : began;
    if (u->was && !u->on)
        last = u->last;
    while (count-- > 0) { /* who met the smaller ring still writes into it: all that it has */
        r = list[count];
        ring_write_locked(r, first, count && list[count - 1]->base < last ? atomic_load(&r->next) : last, out,
                          &between);
    }
    tni_mutex_unlock(&start_lock);
    return tni_str_add(out, "]}\n");
}

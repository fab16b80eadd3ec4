/*
 * The profiler's ring. Writers take the next slot with one addition and never wait; the oldest events are
 * lost. A slot is written word by word with relaxed stores under a sequence number, so a reader that meets a
 * slot in the making skips it. A ring is never freed: a writer may still be on its way into it. A larger one
 * goes on counting where the smaller one ended, so that what is in that stays readable.
 *
 * Events are the process's, and so is the ring. Its users (contexts, the program) are counted: the last one
 * that leaves ends the recording, and each is told the events between its coming and its leaving.
 */
#include <string.h>

#include "base/base.h"

#define RING_MIN 64u
#define RING_MAX (1u << 24)
#define RINGS_MAX 19 /* sizes from the least to the largest */
#define EVENT_WORDS 11

typedef struct trace_event {
    uint64_t ns, thread;
    char phase, category[15], name[56];
} trace_event;

_Static_assert(sizeof(trace_event) == 8 * EVENT_WORDS, "an event is a whole number of words");

typedef struct trace_slot {
    atomic_ullong sequence; /* number of the event in it, from 1; 0: being written */
    atomic_ullong words[EVENT_WORDS];
} trace_slot;

typedef struct trace_ring {
    struct trace_ring *older;
    uint64_t mask;
    atomic_ullong next; /* number of the next event in the process */
    uint64_t base;      /* events before it are in older rings */
    trace_slot slots[];
} trace_ring;

atomic_bool tni_trace_on;
uint32_t tni_trace_flag;
static _Atomic(trace_ring *) ring;
static tni_mutex start_lock = TNI_MUTEX_INIT;
static uint32_t users TN_GUARDED_BY(start_lock);
static uint64_t began TN_GUARDED_BY(start_lock); /* number of the first event since there are users */

/* A ring of at least `count` events is there. */
static tn_status ring_grow_locked(uint64_t count) TN_REQUIRES(&start_lock);
static tn_status ring_grow_locked(uint64_t count)
{
    trace_ring *r = atomic_load(&ring), *next;

    if (r && r->mask + 1 >= count)
        return TN_OK;
    if (!(next = tni_zalloc(sizeof *next + count * sizeof next->slots[0])))
        return TN_E_NOMEM;
    next->older = r;
    next->mask = count - 1;
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

static void text_copy(char *to, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(to, text, length);
}

void tni_trace_event(char phase, const char *category, const char *name, uint64_t ns)
{
    trace_ring *r = atomic_load_explicit(&ring, memory_order_acquire);
    trace_event event = {.ns = ns ? ns : tni_clock_ns(), .thread = tni_thread_id(), .phase = phase};
    uint64_t words[EVENT_WORDS], number;
    trace_slot *slot;

    if (!r || !atomic_load_explicit(&tni_trace_on, memory_order_relaxed))
        return;
    text_copy(event.category, sizeof event.category, category);
    text_copy(event.name, sizeof event.name, name);
    memcpy(words, &event, sizeof words);
    number = atomic_fetch_add(&r->next, 1);
    slot = &r->slots[number & r->mask];
    atomic_exchange_explicit(&slot->sequence, 0, memory_order_acq_rel); /* no word is stored before it */
    for (size_t i = 0; i < EVENT_WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, number + 1, memory_order_release);
}

static bool slot_read(trace_slot *slot, uint64_t number, trace_event *out)
{
    uint64_t words[EVENT_WORDS];

    if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != number + 1)
        return false;
    for (size_t i = 0; i < EVENT_WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
    if (atomic_load_explicit(&slot->sequence, memory_order_relaxed) != number + 1)
        return false;
    memcpy(out, words, sizeof *out);
    return true;
}

static void event_write(tni_str *out, const trace_event *e)
{
    tni_str_add(out, "{\"name\":");
    tni_str_add_json(out, e->name, strnlen(e->name, sizeof e->name));
    tni_str_add(out, ",\"cat\":");
    tni_str_add_json(out, e->category, strnlen(e->category, sizeof e->category));
    tni_str_addf(out, ",\"ph\":\"%c\",\"pid\":1,\"tid\":%llu,\"ts\":%llu.%03u}", e->phase,
                 (unsigned long long)e->thread, (unsigned long long)(e->ns / 1000), (unsigned)(e->ns % 1000));
}

/* The events of `u` that one ring holds; a smaller, older one comes first. */
static void ring_write_locked(trace_ring *r, uint64_t first, uint64_t last, tni_str *out,
                              const char **between) TN_REQUIRES(&start_lock);
static void ring_write_locked(trace_ring *r, uint64_t first, uint64_t last, tni_str *out,
                              const char **between)
{
    trace_event event;

    first = first < r->base ? r->base : first;
    first = last > r->mask + 1 && first < last - r->mask - 1 ? last - r->mask - 1 : first;
    for (uint64_t number = first; number < last; number++) {
        if (!slot_read(&r->slots[number & r->mask], number, &event))
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

    tni_str_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    tni_mutex_lock(&start_lock);
    for (r = atomic_load(&ring); r && count < RINGS_MAX; r = r->older)
        list[count++] = r;
    last = count ? atomic_load(&list[0]->next) : 0;
    first = u->was ? u->first : began;
    if (u->was && !u->on)
        last = u->last;
    while (count-- > 0)
        ring_write_locked(list[count], first,
                          count && list[count - 1]->base < last ? list[count - 1]->base : last, out,
                          &between);
    tni_mutex_unlock(&start_lock);
    return tni_str_add(out, "]}\n");
}

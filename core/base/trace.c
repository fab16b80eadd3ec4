/*
 * The profiler's ring. Writers take the next slot with one addition and never wait; the oldest events are
 * lost. A slot is written word by word with relaxed stores under a sequence number, so a reader that meets a
 * slot in the making skips it. A ring is never freed: a writer may still be on its way into it.
 */
#include <string.h>

#include "base/base.h"

#define RING_MIN 64u
#define RING_MAX (1u << 24)
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
    atomic_ullong next;
    uint64_t first; /* events before it are of an earlier start */
    trace_slot slots[];
} trace_ring;

atomic_bool tni_trace_on;
uint32_t tni_trace_flag;
static _Atomic(trace_ring *) ring;
static tni_mutex start_lock = TNI_MUTEX_INIT;

tn_status tni_trace_start(uint32_t events_max)
{
    uint64_t count = RING_MIN;
    trace_ring *r;

    while (count < events_max && count < RING_MAX)
        count *= 2;
    tni_mutex_lock(&start_lock);
    r = atomic_load(&ring);
    if (!r || r->mask + 1 < count) {
        trace_ring *next = tni_zalloc(sizeof *next + count * sizeof next->slots[0]);

        if (!next) {
            tni_mutex_unlock(&start_lock);
            return TN_E_NOMEM;
        }
        next->older = r;
        next->mask = count - 1;
        atomic_store(&ring, next);
        r = next;
    }
    r->first = atomic_load(&r->next);
    atomic_store(&tni_trace_on, true);
    __atomic_store_n(&tni_trace_flag, 1, __ATOMIC_RELAXED);
    tni_mutex_unlock(&start_lock);
    return TN_OK;
}

void tni_trace_stop(void)
{
    __atomic_store_n(&tni_trace_flag, 0, __ATOMIC_RELAXED);
    atomic_store(&tni_trace_on, false);
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

tn_status tni_trace_json(tni_str *out)
{
    trace_ring *r = atomic_load(&ring);
    const char *between = "";
    trace_event event;

    tni_str_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    tni_mutex_lock(&start_lock);
    if (r) {
        uint64_t last = atomic_load(&r->next);
        uint64_t first = last > r->mask + 1 && last - r->mask - 1 > r->first ? last - r->mask - 1 : r->first;

        for (uint64_t number = first; number < last; number++) {
            if (!slot_read(&r->slots[number & r->mask], number, &event))
                continue;
            tni_str_add(out, between);
            event_write(out, &event);
            between = ",\n";
        }
    }
    tni_mutex_unlock(&start_lock);
    return tni_str_add(out, "]}\n");
}

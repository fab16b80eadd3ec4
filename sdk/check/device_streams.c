/*
 * Group device: copies and calls in one stream, copies between two devices, waits that do not block the host.
 */
#include "device.h"

#include <string.h>

/* ---- a call that is held ---- */

void chk_hold_begin(chk_hold *h, uint32_t limit_ms)
{
    h->limit_ms = limit_ms;
    h->host = pthread_self();
    atomic_store(&h->open, 0);
    atomic_store(&h->late, 0);
}

void chk_hold_end(chk_hold *h)
{
    atomic_store(&h->open, 1);
}

void chk_hold_wait(chk_hold *h)
{
    const struct timespec end = chk_deadline(h->limit_ms);
    bool late = pthread_equal(pthread_self(), h->host);

    while (!late && !atomic_load(&h->open))
        late = !chk_pause(&end) && !atomic_load(&h->open);
    atomic_store(&h->late, late);
}

/* ---- copies and calls in one order ---- */

#define WORDS 4096u
#define ROUNDS 24u
#define HELDS 2u     /* of these: the copy is asked for before anything is there */
#define HELD_MS 100u /* for a device that copies at once */

typedef struct mixed {
    chk_env *env;
    uint32_t *words; /* that this call fills, or looks at */
    uint32_t number, pause_us;
    chk_hold *hold; /* NULL: only the pause */
} mixed;

static tn_status words_fill(void *arg, tn_err *err)
{
    const mixed *m = arg;

    (void)err;
    if (m->hold)
        chk_hold_wait(m->hold);
    chk_sleep_us(m->pause_us);
    for (uint32_t i = 0; i < WORDS; i++)
        m->words[i] = m->number * 2654435761u + i;
    return TN_OK;
}

static tn_status words_look(void *arg, tn_err *err)
{
    const mixed *m = arg;

    (void)err;
    for (uint32_t i = 0; i < WORDS; i++)
        if (m->words[i] != m->number * 2654435761u + i)
            chk_fail(m->env, "D-order", "a copy between two calls of one stream is not done between them");
    return TN_OK;
}

static bool copied(chk_device *d, tn_stream *s, const tn_place *to, const tn_place *from, uint64_t bytes)
{
    const tn_status st = d->ops->copy(s, to, from, bytes, &chk_err);

    chk_device_said(d, "copy", st, &chk_err);
    if (st && st != TN_E_UNSUPPORTED)
        chk_fail(d->env, NULL, "a copy gives %s: %s", tn_status_name(st), chk_err.message);
    return !st;
}

/* A call fills a place, it is copied to another one, a call looks there. */
void chk_device_mixed(chk_device *d, tn_stream *s)
{
    static mixed calls[ROUNDS][2];
    static chk_hold holds[HELDS];
    const bool addressable = (d->info.flags & TN_DEVICE_F_HOST_ADDRESSABLE) != 0;
    const int32_t kind = addressable ? TN_MEMORY_DEVICE : TN_MEMORY_PINNED;
    tn_place from = {.device = 0, .memory = kind, .type = d->ops->head.id}, to = from;

    if (d->ops->alloc(d->handle, kind, WORDS * sizeof(uint32_t), &from.data, &chk_err))
        return; /* it has no memory of which host and device both know */
    to.data = chk_device_alloc(d, kind, WORDS * sizeof(uint32_t));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        chk_hold *hold = i < HELDS ? &holds[i] : NULL;
        bool done;

        calls[i][0] = (mixed){d->env, from.data, i + 1, (uint32_t)(chk_random(d->env) % 400), hold};
        calls[i][1] = (mixed){d->env, to.data, i + 1, 0, NULL};
        if (hold)
            chk_hold_begin(hold, HELD_MS);
        chk_device_call(d, s, words_fill, &calls[i][0]);
        done = copied(d, s, &to, &from, WORDS * sizeof(uint32_t));
        if (hold)
            chk_hold_end(hold);
        if (!done)
            break; /* this pair of places is not the device's to copy */
        chk_device_call(d, s, words_look, &calls[i][1]);
    }
    chk_device_wait(d, s);
    d->ops->free(d->handle, kind, to.data);
    d->ops->free(d->handle, kind, from.data);
}

/* ---- between two devices ---- */

/* There and back again, by the stream of the first one. A device may leave such copies to the host. */
void chk_device_peers(chk_device *d, tn_stream *s)
{
    static unsigned char here[70001], back[70001];
    chk_device other = *d;
    const tn_place host = chk_host_place(here), home = chk_host_place(back);
    tn_place first = chk_device_place(d, NULL), second = first, third = first;

    if (d->count < 2 || d->ops->open(d->plugin.self, 1, &other.handle, &chk_err))
        return;
    second.device = 1;
    first.data = chk_device_alloc(d, TN_MEMORY_DEVICE, sizeof here);
    third.data = chk_device_alloc(d, TN_MEMORY_DEVICE, sizeof here);
    second.data = chk_device_alloc(&other, TN_MEMORY_DEVICE, sizeof here);
    for (size_t i = 0; i < sizeof here; i++)
        here[i] = (unsigned char)(i * 131 >> 3);
    chk_device_copy(d, s, &first, &host, sizeof here);
    if (copied(d, s, &second, &first, sizeof here) && copied(d, s, &third, &second, sizeof here)) {
        chk_device_copy(d, s, &home, &third, sizeof here);
        chk_device_wait(d, s);
        if (memcmp(here, back, sizeof here) != 0)
            chk_fail(d->env, NULL, "what goes to device 1 and back is not what went");
    }
    chk_device_wait(d, s);
    d->ops->free(d->handle, TN_MEMORY_DEVICE, first.data);
    d->ops->free(d->handle, TN_MEMORY_DEVICE, third.data);
    other.ops->free(other.handle, TN_MEMORY_DEVICE, second.data);
    other.ops->close(other.handle);
}

/* ---- without blocking the host ---- */

typedef struct gate {
    chk_hold hold;
    atomic_uint called; /* stream_call came back */
    atomic_uint waits;  /* and it did not while the gate was held */
} gate;

static tn_status gate_wait(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    chk_hold_wait(&g->hold);
    atomic_store(&g->waits, atomic_load(&g->hold.late) && !atomic_load(&g->called));
    return TN_OK;
}

/*
 * A call of stream `a` waits until the host opens a gate, which it does behind event_wait. A device that does
 * everything at once waits in stream_call already: of that nothing is said.
 */
static bool is_blocked(chk_device *d, tn_stream *a, tn_stream *b, tn_event *e, uint32_t limit_ms)
{
    static gate g;

    g = (gate){.waits = 0};
    chk_hold_begin(&g.hold, limit_ms);
    chk_device_call(d, a, gate_wait, &g);
    atomic_store(&g.called, 1);
    CHK_MUST(d, event_record, e, a);
    CHK_MUST(d, event_wait, b, e);
    chk_hold_end(&g.hold);
    chk_device_wait(d, a);
    chk_device_wait(d, b);
    return atomic_load(&g.hold.late) && !atomic_load(&g.waits);
}

/* A host that came late to the gate, for want of a processor, is tried once more and gets time for it. */
void chk_device_unblocked(chk_device *d, tn_stream *a, tn_stream *b, tn_event *e)
{
    if (is_blocked(d, a, b, e, 150) && is_blocked(d, a, b, e, 5000))
        chk_fail(d->env, NULL, "event_record or event_wait blocks the host until the event is reached");
}

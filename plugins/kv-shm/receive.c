/*
 * What comes: a head, which is copied before anything of it is believed, then the payload, which is copied
 * out of the ring into memory of this process alone, once there is room for it among receive_bytes. With
 * TN_OPEN_SHARED a long one stays in the ring: the ring behind its begin is not given back before it is
 * released.
 */
#include "kv_shm.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_BYTES ((uint64_t)4 << 20) /* of one lane before another one has its turn */
#define SPARE_MIN                                                                                            \
    ((uint64_t)128 << 10) /* memory of long payloads is used again: the system need not clear it */
#define RESERVE_MAX ((uint64_t)64 << 10) /* room that urgent messages alone may use */

/* ---- memory ------------------------------------------------------------------------------------------- */

void tnshm_spare_free(tn_transport *t, uint64_t keep)
{
    while (t->spare && t->spare_bytes > keep) {
        tnshm_incoming *in = t->spare;

        t->spare = (tnshm_incoming *)in->e.next;
        t->spare_bytes -= sizeof *in + in->bytes;
        free(in);
    }
}

/* ---- payloads that stay in the ring ------------------------------------------------------------------- */

/* Up to where the ring is given back. */
static uint64_t given(const tnshm_in *in)
{
    return in->places ? in->places->begin : in->pipe.own;
}

static void give(tnshm_in *in)
{
    atomic_store_explicit(&in->pipe.ring->head, given(in), memory_order_release);
}

/* The peer may wait for room; half of a ring is worth waking it. */
static void writer_wake(tn_link *l, tnshm_in *in)
{
    if (in->pipe.seen - given(in) > in->pipe.size / 2)
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&in->pipe.ring->hungry, memory_order_relaxed))
        tnshm_link_ring(l);
}

static void place_release(tnshm_incoming *in)
{
    tnshm_in *of = in->of;
    tn_link *l = in->e.link;

    tnshm_map_drop(in->map);
    if (!of) {
        free(in);
        return;
    }
    in->released = true;
    while (of->places && of->places->released) {
        in = of->places;
        if (!(of->places = in->later))
            of->places_last = &of->places;
        free(in);
    }
    give(of);
    writer_wake(l, of);
}

void tnshm_places_leave(tnshm_in *in)
{
    for (tnshm_incoming *p = in->places, *later; p; p = later) {
        later = p->later;
        p->of = NULL;
        if (p == in->in) { /* it has not come */
            tnshm_map_drop(p->map);
            in->in = NULL;
            free(p);
        } else if (p->released) {
            free(p);
        }
    }
    in->places = NULL;
}

static tnshm_incoming *place_create(tn_link *l, tnshm_in *in)
{
    tnshm_incoming *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->bytes = in->head.bytes;
    p->map = l->map;
    p->map->uses++;
    p->of = in;
    p->begin = in->pipe.own;
    p->payload = in->pipe.data + (p->begin & (in->pipe.size - 1));
    if (!in->places)
        in->places_last = &in->places;
    *in->places_last = p;
    in->places_last = &p->later;
    in->came = 0;
    return p;
}

/* At most half a ring: one more message has room beside it. */
static bool stays(const tn_link *l, const tnshm_in *in, uint32_t lane)
{
    return l->t->config.flags & TN_OPEN_SHARED && lane == TNSHM_BULK && in->head.bytes > TNSHM_PLACE_MIN &&
           in->head.bytes <= in->pipe.size / 2;
}

/* ---- payloads that are copied ------------------------------------------------------------------------- */

void tnshm_incoming_free(tn_transport *t, tnshm_incoming *in)
{
    const uint64_t bytes = in ? sizeof *in + in->bytes : 0, most = t->config.receive_bytes / 2;

    if (in && in->map) {
        place_release(in);
        return;
    }
    t->held -= bytes;
    if (bytes < SPARE_MIN || t->held + bytes > most) {
        free(in);
        return;
    }
    tnshm_spare_free(t, most - t->held - bytes);
    in->e.next = t->spare ? &t->spare->e : NULL;
    t->spare = in;
    t->spare_bytes += bytes;
}

/* Lengths of parts repeat. */
static tnshm_incoming *incoming_create(tn_transport *t, uint64_t payload)
{
    const uint64_t bytes = sizeof(tnshm_incoming) + payload, used = t->held + bytes,
                   most = t->config.receive_bytes;
    tnshm_incoming **at = &t->spare, *in;

    while (*at && (*at)->bytes != payload)
        at = (tnshm_incoming **)(void *)&(*at)->e.next;
    if ((in = *at)) {
        *at = (tnshm_incoming *)in->e.next;
        t->spare_bytes -= bytes;
    } else {
        tnshm_spare_free(t, used < most ? most - used : 0);
        if (!(in = malloc(bytes)))
            return NULL;
        in->bytes = payload;
    }
    in->map = NULL;
    in->payload = in->data;
    t->held += bytes;
    return in;
}

/* One message may come whatever is held by nobody. */
static bool has_room(const tn_transport *t, uint64_t bytes, uint32_t lane)
{
    const uint64_t eighth = t->config.receive_bytes / 8,
                   reserve = lane == TNSHM_URGENT   ? 0
                             : eighth < RESERVE_MAX ? eighth
                                                    : RESERVE_MAX,
                   cost = sizeof(tnshm_incoming) + bytes, most = t->config.receive_bytes - reserve;

    return !t->held || (cost <= most && t->held <= most - cost);
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static void fault(tn_link *l, const char *text)
{
    l->t->faults++;
    tnshm_link_end(l, TN_E_PEER, text);
}

static bool payload_begin(tn_link *l, tnshm_in *in, uint32_t lane)
{
    if (!(in->in = stays(l, in, lane) ? place_create(l, in) : incoming_create(l->t, in->head.bytes))) {
        tnshm_link_end(l, TN_E_PEER, "out of memory for a message");
        return false;
    }
    memcpy(in->in->header, in->head.header, TN_HEADER_BYTES);
    return true;
}

/* A whole head is here. False: nothing more is read now. */
static bool head_over(tn_link *l, tnshm_in *in, uint32_t lane)
{
    tn_transport *t = l->t;

    if (in->head.magic != TNSHM_MAGIC || in->head.reserved) {
        fault(l, "the peer's message has no head");
        return false;
    }
    if (in->head.bytes > t->config.message_max) {
        fault(l, "the peer's message is too long");
        return false;
    }
    if (stays(l, in, lane) ||
        ((lane == TNSHM_URGENT || !t->starving) && has_room(t, in->head.bytes, lane)))
        return payload_begin(l, in, lane);
    in->starved = ++t->turn;
    in->late_ns = 0;
    t->starving++;
    return false;
}

/* The part of a message that comes next: its end, and where it goes, NULL: nowhere. */
static uint64_t part_end(const tnshm_in *in, uint8_t **to)
{
    const uint64_t over = in->got - TNSHM_HEAD_BYTES;

    *to = NULL;
    if (in->got < TNSHM_HEAD_BYTES) {
        *to = (uint8_t *)(uintptr_t)&in->head + in->got;
        return TNSHM_HEAD_BYTES;
    }
    if (in->in->map || over >= in->in->bytes)
        return TNSHM_HEAD_BYTES + tnshm_padded(in->in->bytes);
    *to = in->in->data + over;
    return TNSHM_HEAD_BYTES + in->in->bytes;
}

/* Takes `bytes` of what is there, at most to the end of the head or payload. False: as head_over. */
static bool bytes_take(tn_link *l, tnshm_in *in, uint32_t lane, uint64_t bytes)
{
    const bool in_head = in->got < TNSHM_HEAD_BYTES;
    uint8_t *to;
    const uint64_t left = part_end(in, &to) - in->got, n = bytes < left ? bytes : left;

    if (to)
        tnshm_pipe_read(&in->pipe, to, n);
    else
        in->pipe.own += n;
    give(in);
    in->got += n;
    in->late_ns = l->t->polled_ns + (uint64_t)l->t->plugin->stall_ms * 1000000u;
    if (in_head && in->got == TNSHM_HEAD_BYTES && !head_over(l, in, lane))
        return false;
    if (in->in && in->got == TNSHM_HEAD_BYTES + tnshm_padded(in->in->bytes)) {
        in->got = in->late_ns = 0;
        l->t->received++;
        tnshm_event_push(l->t, &in->in->e, TN_EVENT_RECV, l);
        in->in = NULL;
    }
    return true;
}

/* Bytes without which nothing can go on. */
static uint64_t needed(const tnshm_in *in)
{
    return in->in && in->in->map ? tnshm_padded(in->in->bytes) : 1;
}

bool tnshm_in_ready(tnshm_in *in)
{
    return tnshm_pipe_filled(&in->pipe) >= needed(in);
}

/* More of a payload that stays has come. */
static void still_comes(tn_link *l, tnshm_in *in, uint64_t filled)
{
    if (filled > in->came)
        in->late_ns = l->t->polled_ns + (uint64_t)l->t->plugin->stall_ms * 1000000u;
    in->came = filled;
}

static void lane_read(tn_link *l, uint32_t lane)
{
    tnshm_in *in = &l->in[lane];
    uint64_t taken = 0;

    while (l->state != TNSHM_CLOSED && !in->starved && taken < ROUND_BYTES) {
        const uint64_t filled = tnshm_pipe_filled(&in->pipe), need = needed(in), from = in->pipe.own;
        const uint64_t n = need > 1 ? need : filled < TNSHM_STEP ? filled : TNSHM_STEP;

        if (filled == UINT64_MAX) {
            fault(l, "the peer says that it has written more than there is room for");
            return;
        }
        if (filled < need) {
            if (need > 1)
                still_comes(l, in, filled);
            break;
        }
        if (!bytes_take(l, in, lane, n) && l->state == TNSHM_CLOSED)
            break;
        taken += in->pipe.own - from;
        writer_wake(l, in);
    }
    if (l->state != TNSHM_CLOSED && in->late_ns)
        tnshm_due(l->t, in->late_ns);
}

void tnshm_link_read(tn_link *l)
{
    bool more = false;

    for (uint32_t lane = 0; lane < TNSHM_LANES; lane++)
        lane_read(l, lane);
    if (l->state != TNSHM_DRAINING)
        return;
    for (uint32_t lane = 0; lane < TNSHM_LANES; lane++)
        more |= l->in[lane].starved || tnshm_in_ready(&l->in[lane]);
    if (!more)
        tnshm_link_end(l, l->why, l->text);
}

/* The lane that has waited longest goes on first; urgent ones need not wait for it. */
static bool starved_serve_one(tn_transport *t)
{
    tn_link *first = NULL;
    uint32_t at = 0;

    for (tn_link *l = t->links; l; l = l->next)
        for (uint32_t lane = 0; lane < TNSHM_LANES; lane++) {
            const tnshm_in *in = &l->in[lane];

            if (!in->starved || (lane == TNSHM_URGENT && !has_room(t, in->head.bytes, lane)))
                continue;
            if (!first || lane < at || (lane == at && in->starved < first->in[at].starved)) {
                first = l;
                at = lane;
            }
        }
    if (!first || !has_room(t, first->in[at].head.bytes, at))
        return false;
    first->in[at].starved = 0;
    t->starving--;
    if (payload_begin(first, &first->in[at], at)) {
        (void)bytes_take(first, &first->in[at], at, 0);
        tnshm_link_active(first);
    }
    return true;
}

void tnshm_starved_serve(tn_transport *t)
{
    while (t->starving && starved_serve_one(t))
        ;
}

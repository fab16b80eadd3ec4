/*
 * What comes: a head, which is copied before anything of it is believed, then the payload, which is copied
 * out of the ring into memory of this process alone, once there is room for it among receive_bytes. With
 * TN_OPEN_SHARED a long one stays in the ring: the ring behind its begin is not given back before it is
 * released.
 */
#include "kv_shm.h"

#include <stdlib.h>
#include <string.h>

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
    tn_link *l = in->base.e.link;

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
    p->base.bytes = in->head.bytes;
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
static bool stays(const tn_link *l, const tnshm_in *in, uint32_t class)
{
    return l->t->config.flags & TN_OPEN_SHARED && class == RING_BULK && in->head.bytes > TNSHM_PLACE_MIN &&
           in->head.bytes <= in->pipe.size / 2;
}

/* ---- payloads that are copied ------------------------------------------------------------------------- */

void tnshm_incoming_free(tn_transport *t, ring_incoming *base)
{
    tnshm_incoming *in = (tnshm_incoming *)base;

    if (in && in->map)
        place_release(in);
    else
        ring_incoming_free(t, base);
}

void tnshm_received(ring_incoming *base, tn_transport_event *to)
{
    const tnshm_incoming *in = (const tnshm_incoming *)base;

    to->data = in->payload;
    to->flags = in->map ? TN_RECV_SHARED : 0;
}

static tnshm_incoming *incoming_create(tn_transport *t, uint64_t payload)
{
    tnshm_incoming *in = ring_incoming_create(t, payload);

    if (in) {
        in->map = NULL;
        in->payload = in->data;
    }
    return in;
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static bool payload_begin(tn_link *l, tnshm_in *in, uint32_t class)
{
    if (!(in->in = stays(l, in, class) ? place_create(l, in) : incoming_create(l->t, in->head.bytes))) {
        ring_link_end(l, TN_E_PEER, "out of memory for a message");
        return false;
    }
    memcpy(in->in->base.header, in->head.header, TN_HEADER_BYTES);
    return true;
}

/* A whole head is here. False: nothing more is read now. */
static bool head_over(tn_link *l, tnshm_in *in, uint32_t class)
{
    tn_transport *t = l->t;

    if (in->head.magic != TNSHM_MAGIC || in->head.reserved) {
        ring_fault(l, "the peer's message has no head");
        return false;
    }
    if (in->head.bytes > t->config.message_max) {
        ring_fault(l, "the peer's message is too long");
        return false;
    }
    if (stays(l, in, class) || ring_may_come(t, in->head.bytes, class))
        return payload_begin(l, in, class);
    ring_starve(t, &in->wait, in->head.bytes);
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
    if (in->in->map || over >= in->in->base.bytes)
        return TNSHM_HEAD_BYTES + tnshm_padded(in->in->base.bytes);
    *to = in->in->data + over;
    return TNSHM_HEAD_BYTES + in->in->base.bytes;
}

/* Takes `bytes` of what is there, at most to the end of the head or payload. False: as head_over. */
static bool bytes_take(tn_link *l, tnshm_in *in, uint32_t class, uint64_t bytes)
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
    in->wait.late_ns = ring_stalls_at(l->t);
    if (in_head && in->got == TNSHM_HEAD_BYTES && !head_over(l, in, class))
        return false;
    if (in->in && in->got == TNSHM_HEAD_BYTES + tnshm_padded(in->in->base.bytes)) {
        in->got = 0;
        ring_received(l, &in->in->base, &in->wait);
        in->in = NULL;
    }
    return true;
}

/* Bytes without which nothing can go on. */
static uint64_t needed(const tnshm_in *in)
{
    return in->in && in->in->map ? tnshm_padded(in->in->base.bytes) : 1;
}

bool tnshm_in_ready(tnshm_in *in)
{
    return tnshm_pipe_filled(&in->pipe) >= needed(in);
}

/* More of a payload that stays has come. */
static void still_comes(tn_link *l, tnshm_in *in, uint64_t filled)
{
    if (filled > in->came)
        in->wait.late_ns = ring_stalls_at(l->t);
    in->came = filled;
}

static void lane_read(tn_link *l, uint32_t class)
{
    tnshm_in *in = &l->in[class];
    uint64_t taken = 0;

    while (l->state != RING_CLOSED && !in->wait.starved && taken < RING_ROUND_BYTES) {
        const uint64_t filled = tnshm_pipe_filled(&in->pipe), need = needed(in), from = in->pipe.own;
        const uint64_t n = need > 1 ? need : filled < TNSHM_STEP ? filled : TNSHM_STEP;

        if (filled == UINT64_MAX) {
            ring_fault(l, "the peer says that it has written more than there is room for");
            return;
        }
        if (filled < need) {
            if (need > 1)
                still_comes(l, in, filled);
            break;
        }
        if (!bytes_take(l, in, class, n) && l->state == RING_CLOSED)
            break;
        taken += in->pipe.own - from;
        writer_wake(l, in);
    }
    if (l->state != RING_CLOSED && in->wait.late_ns)
        ring_due(l->t, in->wait.late_ns);
}

void tnshm_link_read(tn_link *l)
{
    bool more = false;

    for (uint32_t class = 0; class < RING_CLASSES; class ++)
        lane_read(l, class);
    if (l->state != RING_DRAINING)
        return;
    for (uint32_t class = 0; class < RING_CLASSES; class ++)
        more |= l->in[class].wait.starved || tnshm_in_ready(&l->in[class]);
    if (!more)
        ring_link_end(l, l->why, l->text);
}

void tnshm_payload_resume(tn_link *l, uint32_t class)
{
    if (payload_begin(l, &l->in[class], class)) {
        (void)bytes_take(l, &l->in[class], class, 0);
        ring_link_active(l);
    }
}

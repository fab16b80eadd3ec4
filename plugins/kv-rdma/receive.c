/*
 * What comes: a head, which is copied before anything of it is believed, then the payload, which is copied
 * out of the ring into memory of this process alone, once there is room for it among receive_bytes.
 */
#include "kv_rdma.h"

#include <stdlib.h>
#include <string.h>

#define STEP ((uint64_t)64 << 10) /* bytes that are copied before the peer may be told */

/* ---- rings --------------------------------------------------------------------------------------------- */

static void ring_read(tnrdma_in *in, void *data, uint64_t bytes)
{
    const uint64_t at = in->own & (in->size - 1), first = bytes < in->size - at ? bytes : in->size - at;

    if (bytes) {
        memcpy(data, in->data + at, first);
        memcpy((uint8_t *)data + first, in->data, bytes - first);
    }
    in->own += bytes;
}

/* ---- messages ----------------------------------------------------------------------------------------- */

/* Of a put, the payload is where it was told to go. */
static uint64_t bytes_here(const tnrdma_in *in)
{
    return in->head.put ? 0 : in->head.bytes;
}

static bool payload_begin(tn_link *l, tnrdma_in *in)
{
    const tnrdma_landing *to = in->head.put ? tnrdma_landing_find(l, in->head.token) : NULL;

    if (in->head.put && (!to || in->head.bytes > to->bytes)) {
        ring_fault(l, "the peer has put something where there is no landing");
        return false;
    }
    if (!(in->in = ring_incoming_create(l->t, bytes_here(in)))) {
        ring_link_end(l, TN_E_PEER, "out of memory for a message");
        return false;
    }
    in->in->slot = to ? to->slot : UINT64_MAX;
    in->in->put = to ? in->head.bytes : UINT64_MAX;
    memcpy(in->in->base.header, in->head.header, TN_HEADER_BYTES);
    return true;
}

/* A whole head is here. False: nothing more is read now. */
static bool head_over(tn_link *l, tnrdma_in *in, uint32_t class)
{
    tn_transport *t = l->t;

    if (in->head.magic != TNRDMA_MAGIC || in->head.put > 1) {
        ring_fault(l, "the peer's message has no head");
        return false;
    }
    if (in->head.bytes > t->config.message_max) {
        ring_fault(l, "the peer's message is too long");
        return false;
    }
    if (ring_may_come(t, bytes_here(in), class))
        return payload_begin(l, in);
    ring_starve(t, &in->wait, bytes_here(in));
    return false;
}

/* Takes `bytes` of what is there, at most to the end of the head or payload. False: as head_over. */
static bool bytes_take(tn_link *l, tnrdma_in *in, uint32_t class, uint64_t bytes)
{
    const bool in_head = in->got < TNRDMA_HEAD_BYTES;
    const uint64_t left = in_head ? TNRDMA_HEAD_BYTES - in->got
                                  : TNRDMA_HEAD_BYTES + in->in->base.bytes - in->got,
                   n = bytes < left ? bytes : left;

    ring_read(in, in_head ? (uint8_t *)&in->head + in->got : in->in->data + (in->got - TNRDMA_HEAD_BYTES), n);
    in->got += n;
    in->wait.late_ns = ring_stalls_at(l->t);
    if (in_head && in->got == TNRDMA_HEAD_BYTES && !head_over(l, in, class))
        return false;
    if (in->in && in->got == TNRDMA_HEAD_BYTES + in->in->base.bytes) {
        in->got = 0;
        ring_received(l, &in->in->base, &in->wait);
        in->in = NULL;
    }
    return true;
}

static void class_read(tn_link *l, uint32_t class)
{
    tnrdma_in *in = &l->in[class];
    uint64_t taken = 0;

    while (l->state != RING_CLOSED && !in->wait.starved && taken < RING_ROUND_BYTES) {
        const uint64_t filled = in->filled - in->own, n = filled < STEP ? filled : STEP, from = in->own;

        if (!n || (!bytes_take(l, in, class, n) && l->state == RING_CLOSED))
            break;
        taken += in->own - from;
        tnrdma_note_send(l);
    }
    if (l->state != RING_CLOSED && in->wait.late_ns)
        ring_due(l->t, in->wait.late_ns);
}

/* All that the peer has said it sent is here, or nothing more can come. */
static bool drained(const tn_link *l)
{
    for (uint32_t class = 0; class < RING_CLASSES; class ++) {
        const tnrdma_in *in = &l->in[class];

        if (in->wait.starved || in->filled != in->own ||
            (l->bye && !l->flushed && (int32_t)(l->last[class] - in->next) > 0))
            return false;
    }
    return true;
}

void tnrdma_link_read(tn_link *l)
{
    if (l->state != RING_UP && l->state != RING_DRAINING)
        return;
    for (uint32_t class = 0; class < RING_CLASSES; class ++)
        class_read(l, class);
    if (l->state == RING_DRAINING && drained(l))
        ring_link_end(l, l->why, l->text);
}

void tnrdma_payload_resume(tn_link *l, uint32_t class)
{
    if (payload_begin(l, &l->in[class])) {
        (void)bytes_take(l, &l->in[class], class, 0);
        ring_link_active(l);
    }
}

void tnrdma_received(ring_incoming *base, tn_transport_event *to)
{
    const tnrdma_incoming *in = (const tnrdma_incoming *)base;

    to->data = in->put == UINT64_MAX ? in->data : NULL;
    to->bytes = in->put == UINT64_MAX ? in->base.bytes : in->put;
    to->slot = in->slot;
}

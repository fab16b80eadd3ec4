/*
 * What comes: a head, which is copied before anything of it is believed, then the payload, which is copied
 * out of the ring into memory of this process alone, once there is room for it among receive_bytes.
 */
#include "kv_rdma.h"

#include <stdlib.h>
#include <string.h>

#define ROUND_BYTES ((uint64_t)4 << 20) /* of one class before another one has its turn */
#define SPARE_MIN                                                                                            \
    ((uint64_t)128 << 10)         /* memory of long payloads is used again: the system need not clear it */
#define STEP ((uint64_t)64 << 10) /* bytes that are copied before the peer may be told */
#define RESERVE_MAX ((uint64_t)64 << 10) /* room that urgent messages alone may use */

/* ---- memory ------------------------------------------------------------------------------------------- */

void tnrdma_spare_free(tn_transport *t, uint64_t keep)
{
    while (t->spare && t->spare_bytes > keep) {
        tnrdma_incoming *in = t->spare;

        t->spare = (tnrdma_incoming *)in->e.next;
        t->spare_bytes -= sizeof *in + in->bytes;
        free(in);
    }
}

void tnrdma_incoming_free(tn_transport *t, tnrdma_incoming *in)
{
    const uint64_t bytes = in ? sizeof *in + in->bytes : 0, most = t->config.receive_bytes / 2;

    t->held -= bytes;
    if (bytes < SPARE_MIN || t->held + bytes > most) {
        free(in);
        return;
    }
    tnrdma_spare_free(t, most - t->held - bytes);
    in->e.next = t->spare ? &t->spare->e : NULL;
    t->spare = in;
    t->spare_bytes += bytes;
}

/* Lengths of parts repeat. */
static tnrdma_incoming *incoming_create(tn_transport *t, uint64_t payload)
{
    const uint64_t bytes = sizeof(tnrdma_incoming) + payload, used = t->held + bytes,
                   most = t->config.receive_bytes;
    tnrdma_incoming **at = &t->spare, *in;

    while (*at && (*at)->bytes != payload)
        at = (tnrdma_incoming **)(void *)&(*at)->e.next;
    if ((in = *at)) {
        *at = (tnrdma_incoming *)in->e.next;
        t->spare_bytes -= bytes;
    } else {
        tnrdma_spare_free(t, used < most ? most - used : 0);
        if (!(in = malloc(bytes)))
            return NULL;
        in->bytes = payload;
    }
    t->held += bytes;
    return in;
}

/* One message may come whatever is held by nobody. */
static bool has_room(const tn_transport *t, uint64_t bytes, uint32_t class)
{
    const uint64_t eighth = t->config.receive_bytes / 8,
                   reserve = class == TNRDMA_URGENT ? 0
                             : eighth < RESERVE_MAX ? eighth
                                                    : RESERVE_MAX,
                   cost = sizeof(tnrdma_incoming) + bytes, most = t->config.receive_bytes - reserve;

    return !t->held || (cost <= most && t->held <= most - cost);
}

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

void tnrdma_fault(tn_link *l, const char *text)
{
    l->t->faults++;
    tnrdma_link_end(l, TN_E_PEER, text);
}

/* Of a put, the payload is where it was told to go. */
static uint64_t bytes_here(const tnrdma_in *in)
{
    return in->head.put ? 0 : in->head.bytes;
}

static bool payload_begin(tn_link *l, tnrdma_in *in)
{
    const tnrdma_landing *to = in->head.put ? tnrdma_landing_find(l, in->head.token) : NULL;

    if (in->head.put && (!to || in->head.bytes > to->bytes)) {
        tnrdma_fault(l, "the peer has put something where there is no landing");
        return false;
    }
    if (!(in->in = incoming_create(l->t, bytes_here(in)))) {
        tnrdma_link_end(l, TN_E_PEER, "out of memory for a message");
        return false;
    }
    in->in->slot = to ? to->slot : UINT64_MAX;
    in->in->put = to ? in->head.bytes : UINT64_MAX;
    memcpy(in->in->header, in->head.header, TN_HEADER_BYTES);
    return true;
}

/* A whole head is here. False: nothing more is read now. */
static bool head_over(tn_link *l, tnrdma_in *in, uint32_t class)
{
    tn_transport *t = l->t;

    if (in->head.magic != TNRDMA_MAGIC || in->head.put > 1) {
        tnrdma_fault(l, "the peer's message has no head");
        return false;
    }
    if (in->head.bytes > t->config.message_max) {
        tnrdma_fault(l, "the peer's message is too long");
        return false;
    }
    if ((class == TNRDMA_URGENT || !t->starving) && has_room(t, bytes_here(in), class))
        return payload_begin(l, in);
    in->starved = ++t->turn;
    in->late_ns = 0;
    t->starving++;
    return false;
}

/* Takes `bytes` of what is there, at most to the end of the head or payload. False: as head_over. */
static bool bytes_take(tn_link *l, tnrdma_in *in, uint32_t class, uint64_t bytes)
{
    const bool in_head = in->got < TNRDMA_HEAD_BYTES;
    const uint64_t left = in_head ? TNRDMA_HEAD_BYTES - in->got : TNRDMA_HEAD_BYTES + in->in->bytes - in->got,
                   n = bytes < left ? bytes : left;

    ring_read(in, in_head ? (uint8_t *)&in->head + in->got : in->in->data + (in->got - TNRDMA_HEAD_BYTES), n);
    in->got += n;
    in->late_ns = l->t->polled_ns + (uint64_t)l->t->plugin->stall_ms * 1000000u;
    if (in_head && in->got == TNRDMA_HEAD_BYTES && !head_over(l, in, class))
        return false;
    if (in->in && in->got == TNRDMA_HEAD_BYTES + in->in->bytes) {
        in->got = in->late_ns = 0;
        l->t->received++;
        tnrdma_event_push(l->t, &in->in->e, TN_EVENT_RECV, l);
        in->in = NULL;
    }
    return true;
}

static void class_read(tn_link *l, uint32_t class)
{
    tnrdma_in *in = &l->in[class];
    uint64_t taken = 0;

    while (l->state != TNRDMA_CLOSED && !in->starved && taken < ROUND_BYTES) {
        const uint64_t filled = in->filled - in->own, n = filled < STEP ? filled : STEP, from = in->own;

        if (!n || (!bytes_take(l, in, class, n) && l->state == TNRDMA_CLOSED))
            break;
        taken += in->own - from;
        tnrdma_note_send(l);
    }
    if (l->state != TNRDMA_CLOSED && in->late_ns)
        tnrdma_due(l->t, in->late_ns);
}

/* All that the peer has said it sent is here, or nothing more can come. */
static bool drained(const tn_link *l)
{
    for (uint32_t class = 0; class < TNRDMA_CLASSES; class ++) {
        const tnrdma_in *in = &l->in[class];

        if (in->starved || in->filled != in->own ||
            (l->bye && !l->flushed && (int32_t)(l->last[class] - in->next) > 0))
            return false;
    }
    return true;
}

void tnrdma_link_read(tn_link *l)
{
    if (l->state != TNRDMA_UP && l->state != TNRDMA_DRAINING)
        return;
    for (uint32_t class = 0; class < TNRDMA_CLASSES; class ++)
        class_read(l, class);
    if (l->state == TNRDMA_DRAINING && drained(l))
        tnrdma_link_end(l, l->why, l->text);
}

/* The class that has waited longest goes on first; urgent ones need not wait for it. */
static bool starved_serve_one(tn_transport *t)
{
    tn_link *first = NULL;
    uint32_t at = 0;

    for (tn_link *l = t->links; l; l = l->next)
        for (uint32_t class = 0; class < TNRDMA_CLASSES; class ++) {
            const tnrdma_in *in = &l->in[class];

            if (!in->starved || (class == TNRDMA_URGENT && !has_room(t, bytes_here(in), class)))
                continue;
            if (!first || class < at || (class == at && in->starved < first->in[at].starved)) {
                first = l;
                at = class;
            }
        }
    if (!first || !has_room(t, bytes_here(&first->in[at]), at))
        return false;
    first->in[at].starved = 0;
    t->starving--;
    if (payload_begin(first, &first->in[at])) {
        (void)bytes_take(first, &first->in[at], at, 0);
        tnrdma_link_active(first);
    }
    return true;
}

void tnrdma_starved_serve(tn_transport *t)
{
    while (t->starving && starved_serve_one(t))
        ;
}

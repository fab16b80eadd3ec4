/*
 * Links: what waits to be sent, how it gets into the rings, and how links end.
 *
 * A link that the host leaves is CLOSING until all that was copied in has been written, for at most a
 * second; then its peer is told how much that was, and reads it. A link whose peer is gone is DRAINING
 * until that is read.
 */
#include "kv_rdma.h"

/* ---- links -------------------------------------------------------------------------------------------- */

void tnrdma_link_hangup(tn_link *l, const char *text)
{
    if (l->state == RING_CLOSING) {
        ring_link_end(l, TN_E_CANCELLED, "disconnected");
        return;
    }
    if (l->state != RING_UP) {
        ring_link_end(l, TN_E_PEER, text);
        return;
    }
    ring_link_drain(l, l->bye ? TN_OK : TN_E_PEER, text);
    l->late_ns = l->t->polled_ns + TNRDMA_BYE_NS; /* for what is still to come of it */
    ring_due(l->t, l->late_ns);
}

void tnrdma_link_leave(tn_link *l)
{
    if (l->state >= RING_CLOSING && l->state != RING_DRAINING)
        return;
    if (l->state != RING_UP) {
        ring_link_end(l, TN_E_CANCELLED, "disconnected");
        return;
    }
    l->state = RING_CLOSING;
    l->late_ns = l->t->polled_ns + TNRDMA_BYE_NS;
    ring_due(l->t, l->late_ns);
    ring_outs_cancel(l);
    ring_link_active(l);
}

/* What has not come by now will not; what has is read. */
static void link_late(tn_link *l)
{
    if (l->state == RING_DRAINING) {
        l->flushed = true;
        l->late_ns = 0;
        tnrdma_link_read(l);
    } else if (l->state == RING_CLOSING) {
        tnrdma_bye(l);
        ring_link_end(l, TN_E_CANCELLED, "disconnected");
    } else {
        ring_link_end(l, TN_E_PEER, l->late_ns ? "the peer does not answer" : "a message stops half way");
    }
}

const ring_ops tnrdma_links = {
    .incoming_bytes = sizeof(tnrdma_incoming),
    .closed = tnrdma_wire_destroy,
    .serve = tnrdma_serve,
    .resume = tnrdma_payload_resume,
    .late = link_late,
    .sleep = tnrdma_sleep,
    .accept = tnrdma_accept,
    .socket = tnrdma_socket,
    .received = tnrdma_received,
    .release = ring_incoming_free,
    .quiet = tnrdma_wire_quiet,
};

/* ---- sending ------------------------------------------------------------------------------------------ */

static void out_write(void *to, const void *data, uint64_t bytes)
{
    tnrdma_out_copy(to, data, bytes);
}

/* A message is copied in whole, or by halves of the ring, so that it takes few work requests. */
static void outgoing_write(tnrdma_out *out, tnrdma_outgoing *of)
{
    ring_outgoing *const o = &of->base;

    while (o->done < o->bytes) {
        const uint64_t room = tnrdma_out_room(out), left = o->bytes - o->done;

        if (room < left && room < out->size / 2)
            break;
        ring_outgoing_copy(o, &of->head, TNRDMA_HEAD_BYTES, left < room ? left : room, out_write, out);
    }
}

static tnrdma_outgoing *front(const tnrdma_out *out)
{
    return (tnrdma_outgoing *)out->queue.first;
}

/* The one in front; false: the rest of it has no room now. */
static bool message_write(tn_link *l, tnrdma_out *out)
{
    outgoing_write(out, front(out));
    if (out->queue.first->done != out->queue.first->bytes)
        return false;
    l->t->sent++;
    ring_outgoing_end(l, ring_queue_pop(&out->queue), TN_OK);
    return true;
}

/* The payload goes to the landing first, on the queue pair that its head will take. */
static bool put_write(tn_link *l, tnrdma_out *out)
{
    tnrdma_outgoing *o = front(out);

    if (tnrdma_out_room(out) < TNRDMA_HEAD_BYTES || !tnrdma_put_begin(l, o))
        return false;
    (void)ring_queue_pop(&out->queue);
    tnrdma_out_copy(out, &o->head, TNRDMA_HEAD_BYTES);
    l->t->sent++;
    if (!o->head.bytes)
        ring_outgoing_end(l, &o->base, TN_OK); /* else once it was written */
    return true;
}

void tnrdma_link_write(tn_link *l)
{
    for (uint32_t i = 0; l->state == RING_UP && i < RING_CLASSES; i++) {
        tnrdma_out *out = &l->out[i];

        while (out->queue.first && (front(out)->head.put ? put_write(l, out) : message_write(l, out)))
            ;
    }
    if (l->state == RING_UP || l->state == RING_CLOSING)
        tnrdma_wire_post(l);
    if (l->state == RING_UP)
        ring_credit(l);
    if (l->state != RING_CLOSING || !tnrdma_wire_quiet(l))
        return;
    tnrdma_bye(l);
    ring_link_end(l, TN_E_CANCELLED, "disconnected");
}

tn_status tnrdma_message_queue(tn_link *l, const tn_send *m, bool put, tn_err *err)
{
    const uint32_t class = m->flags & TN_SEND_URGENT && !put ? RING_URGENT : RING_BULK;
    const uint64_t most = l->t->config.message_max;
    tnrdma_out *out = &l->out[class];
    tnrdma_outgoing now, *o;
    tn_status st =
        ring_message(l, m, class, put && most > TNRDMA_PUT_MAX ? TNRDMA_PUT_MAX : most, &now.base, err);

    if (st)
        return st;
    now.base.bytes = TNRDMA_HEAD_BYTES + now.base.payload;
    now.head = (tnrdma_head){
        .magic = TNRDMA_MAGIC, .put = put, .bytes = now.base.payload, .token = put ? m->token : 0};
    now.offset = put ? m->offset : 0;
    memcpy(now.head.header, m->header, TN_HEADER_BYTES);
    if (!now.base.told && !put && l->state == RING_UP && !out->queue.first &&
        tnrdma_out_room(out) >= now.base.bytes) { /* at once: no copy but that into the ring */
        l->t->sent++;
        outgoing_write(out, &now);
        tnrdma_wire_post(l);
        ring_link_active(l);
        return TN_OK;
    }
    if (!(o = ring_outgoing_keep(&now.base, sizeof now)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a message");
    ring_queue_add(&out->queue, &o->base);
    if (l->state == RING_UP && out->queue.first == &o->base) {
        tnrdma_link_write(l);
        if (l->state == RING_UP)
            ring_link_active(l);
    }
    return TN_OK;
}

tn_status tnrdma_send(tn_link *l, const tn_send *m, tn_err *err)
{
    return tnrdma_message_queue(l, m, false, err);
}

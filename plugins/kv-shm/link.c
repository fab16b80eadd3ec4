/*
 * Links: what waits to be sent, how it gets into the rings, and how links end.
 *
 * A side that has nothing to do sets `asleep` and looks once more before it waits; the other side, once it
 * has published an index, takes the flag back and sends a byte on the socket. One of both always sees the
 * other.
 */
#include "kv_shm.h"

#include <stdio.h>
#include <sys/socket.h>

/* ---- links -------------------------------------------------------------------------------------------- */

static void link_awake(tn_link *l)
{
    if (l->armed && atomic_exchange(&l->area->side[!l->called].asleep, 0))
        l->bells--; /* nobody has seen it, so no byte comes */
    l->armed = false;
}

void tnshm_link_ring(tn_link *l)
{
    _Atomic uint32_t *const asleep = &l->area->side[l->called].asleep;

    atomic_thread_fence(memory_order_seq_cst);
    if (l->fd >= 0 && atomic_load_explicit(asleep, memory_order_relaxed) && atomic_exchange(asleep, 0))
        (void)!send(l->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void link_leave(tn_link *l)
{
    if (l->area)
        atomic_store(&l->area->side[!l->called].bye, l->why != TN_E_PEER);
}

static void link_closed(tn_link *l)
{
    for (uint32_t i = 0; i < RING_CLASSES; i++)
        tnshm_places_leave(&l->in[i]);
    tnshm_area_drop(l);
}

static bool link_serve(tn_link *l)
{
    tnshm_link_read(l);
    tnshm_link_write(l);
    return false;
}

static void link_late(tn_link *l)
{
    ring_link_end(l, TN_E_PEER, l->late_ns ? "the peer does not answer" : "a message stops half way");
}

const ring_ops tnshm_links = {
    .incoming_bytes = sizeof(tnshm_incoming),
    .leave = link_leave,
    .closed = link_closed,
    .awake = link_awake,
    .serve = link_serve,
    .resume = tnshm_payload_resume,
    .late = link_late,
    .sleep = tnshm_sleep,
    .accept = tnshm_accept,
    .socket = tnshm_socket,
    .received = tnshm_received,
    .release = tnshm_incoming_free,
};

/* ---- sending ------------------------------------------------------------------------------------------ */

static void pipe_write(void *to, const void *data, uint64_t bytes)
{
    tnshm_pipe_write(to, data, bytes);
}

/* Puts as much of it into the ring as there is room for. False: the link has ended. A peer that sleeps is
 * woken for a quarter of the ring, or for all there is. */
static bool outgoing_write(tn_link *l, tnshm_pipe *p, tnshm_outgoing *of)
{
    ring_outgoing *const o = &of->base;
    uint64_t told = p->own;

    while (o->done < o->bytes) {
        const uint64_t room = tnshm_pipe_room(p), left = o->bytes - o->done;
        uint64_t n = left < room ? left : room;

        if (room == UINT64_MAX) {
            ring_fault(l, "the peer says that it has read what was not written");
            return false;
        }
        if (!n)
            break;
        ring_outgoing_copy(o, &of->head, TNSHM_HEAD_BYTES, n < TNSHM_STEP ? n : TNSHM_STEP, pipe_write, p);
        atomic_store_explicit(&p->ring->tail, p->own, memory_order_release);
        if (p->own - told >= p->size / 4) {
            tnshm_link_ring(l);
            told = p->own;
        }
    }
    if (p->own != told)
        tnshm_link_ring(l);
    return true;
}

void tnshm_link_write(tn_link *l)
{
    for (uint32_t i = 0; l->state == RING_UP && i < RING_CLASSES; i++) {
        tnshm_out *out = &l->out[i];

        while (out->queue.first && outgoing_write(l, &out->pipe, (tnshm_outgoing *)out->queue.first) &&
               out->queue.first->done == out->queue.first->bytes) {
            l->t->sent++;
            ring_outgoing_end(l, ring_queue_pop(&out->queue), TN_OK);
        }
    }
    if (l->state == RING_UP)
        ring_credit(l);
}

tn_status tnshm_send(tn_link *l, const tn_send *m, tn_err *err)
{
    const uint32_t class = m->flags & TN_SEND_URGENT ? RING_URGENT : RING_BULK;
    tnshm_out *out = &l->out[class];
    tnshm_outgoing now, *o;
    tn_status st;

    if ((st = ring_message(l, m, class, l->t->config.message_max, &now.base, err)))
        return st;
    now.base.bytes = TNSHM_HEAD_BYTES + tnshm_padded(now.base.payload);
    now.head = (tnshm_head){.magic = TNSHM_MAGIC, .bytes = now.base.payload};
    memcpy(now.head.header, m->header, TN_HEADER_BYTES);
    if (!now.base.told && l->state == RING_UP && !out->queue.first) {
        const uint64_t room = tnshm_pipe_room(&out->pipe);

        if (room != UINT64_MAX && room >= now.base.bytes) { /* at once: no copy but that into the ring */
            l->t->sent++;
            (void)outgoing_write(l, &out->pipe, &now);
            return TN_OK;
        }
    }
    if (!(o = ring_outgoing_keep(&now.base, sizeof now)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a message");
    ring_queue_add(&out->queue, &o->base);
    if (l->state == RING_UP && out->queue.first == &o->base) {
        tnshm_link_write(l);
        if (l->state == RING_UP && out->queue.first)
            ring_link_active(l);
    }
    return TN_OK;
}

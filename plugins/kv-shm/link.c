/*
 * Links: what waits to be sent, how it gets into the rings, and how links end.
 *
 * A side that has nothing to do sets `asleep` and looks once more before it waits; the other side, once it
 * has published an index, takes the flag back and sends a byte on the socket. One of both always sees the
 * other.
 */
#include "kv_shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

tn_status tnshm_fail_system(tn_err *err, const char *what)
{
    const int number = errno;
    const tn_status st = number == ENOMEM || number == ENOBUFS ? TN_E_NOMEM : TN_E_IO;

    (void)tn_failf(err, st, "%s: %s", what, strerror(number));
    if (err)
        err->native = number;
    return st;
}

/* ---- events ------------------------------------------------------------------------------------------- */

void tnshm_event_push(tn_transport *t, tnshm_event *e, uint32_t kind, tn_link *l)
{
    *e = (tnshm_event){.kind = kind, .waits = true, .link = l};
    *t->last = e;
    t->last = &e->next;
}

tnshm_event *tnshm_event_pop(tn_transport *t)
{
    tnshm_event *e = t->first;

    if (!(t->first = e->next))
        t->last = &t->first;
    e->waits = false;
    return e;
}

/* A message that has gone, or will not. */
static void outgoing_end(tn_link *l, tnshm_outgoing *o, tn_status status)
{
    o->status = status;
    if (o->told)
        tnshm_event_push(l->t, &o->e, TN_EVENT_SENT, l);
    else
        free(o);
}

static tnshm_outgoing *queue_pop(tnshm_out *out)
{
    tnshm_outgoing *o = out->queue;

    out->queue = (tnshm_outgoing *)o->e.next;
    out->queued--;
    out->copied -= o->told ? 0 : o->bytes;
    return o;
}

/* ---- links -------------------------------------------------------------------------------------------- */

tn_link *tnshm_link_create(tn_transport *t, int fd, bool called)
{
    struct epoll_event e = {.events = EPOLLIN};
    tn_link *l = calloc(1, sizeof *l);

    e.data.ptr = l;
    if (!l || epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e)) {
        const int number = errno;

        free(l);
        (void)close(fd);
        errno = number;
        return NULL;
    }
    *l = (tn_link){.t = t, .next = t->links, .place = &t->links, .fd = fd, .called = called, .seen = called};
    if (l->next)
        l->next->place = &l->next;
    t->links = l;
    *(called ? &t->open : &t->strangers) += 1;
    l->late_ns = t->polled_ns + (uint64_t)t->plugin->handshake_ms * 1000000u;
    tnshm_due(t, l->late_ns);
    return l;
}

void tnshm_link_active(tn_link *l)
{
    if (l->armed && atomic_exchange(&l->area->side[!l->called].asleep, 0))
        l->bells--; /* nobody has seen it, so no byte comes */
    l->armed = false;
    if (l->active)
        return;
    l->active = true;
    l->active_next = l->t->active;
    l->t->active = l;
}

void tnshm_link_up(tn_link *l)
{
    l->state = TNSHM_UP;
    l->late_ns = 0;
    tnshm_event_push(l->t, &l->up, TN_EVENT_UP, l);
    tnshm_link_active(l);
}

void tnshm_link_ring(tn_link *l)
{
    _Atomic uint32_t *const asleep = &l->area->side[l->called].asleep;

    atomic_thread_fence(memory_order_seq_cst);
    if (l->fd >= 0 && atomic_load_explicit(asleep, memory_order_relaxed) && atomic_exchange(asleep, 0))
        (void)!send(l->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void outs_cancel(tn_link *l)
{
    for (uint32_t i = 0; i < TNSHM_LANES; i++)
        while (l->out[i].queue)
            outgoing_end(l, queue_pop(&l->out[i]), TN_E_CANCELLED);
}

static void socket_close(tn_link *l)
{
    if (l->fd < 0)
        return;
    (void)close(l->fd);
    l->fd = -1;
    tnshm_listener_arm(l->t, false);
}

void tnshm_link_end(tn_link *l, tn_status why, const char *text)
{
    tn_transport *t = l->t;

    if (l->state == TNSHM_CLOSED)
        return;
    if (l->area)
        atomic_store(&l->area->side[!l->called].bye, why != TN_E_PEER);
    if (text != l->text)
        (void)snprintf(l->text, sizeof l->text, "%s", text);
    l->why = why;
    l->state = TNSHM_CLOSED;
    socket_close(l);
    outs_cancel(l);
    for (uint32_t i = 0; i < TNSHM_LANES; i++) {
        tnshm_places_leave(&l->in[i]);
        tnshm_incoming_free(t, l->in[i].in);
        l->in[i].in = NULL;
        t->starving -= l->in[i].starved != 0;
        l->in[i].starved = 0;
    }
    tnshm_area_drop(l);
    if ((*l->place = l->next))
        l->next->place = l->place;
    *(l->seen ? &t->open : &t->strangers) -= 1;
    t->refused += !l->seen;
    if (l->seen) {
        tnshm_event_push(t, &l->down, TN_EVENT_DOWN, l);
        return;
    }
    l->next = t->gone;
    t->gone = l;
}

void tnshm_link_hangup(tn_link *l, const char *text)
{
    if (l->state != TNSHM_UP) {
        tnshm_link_end(l, TN_E_PEER, text);
        return;
    }
    l->why = atomic_load(&l->area->side[l->called].bye) ? TN_OK : TN_E_PEER;
    (void)snprintf(l->text, sizeof l->text, "%s", l->why ? text : "the peer has closed the link");
    socket_close(l);
    outs_cancel(l);
    tnshm_link_active(l);
    l->state = TNSHM_DRAINING;
}

void tnshm_link_free(tn_link *l)
{
    for (tn_link **at = &l->t->active; *at && l->active; at = &(*at)->active_next)
        if (*at == l) {
            *at = l->active_next;
            break;
        }
    free(l);
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* Bytes from `done` on, which are not more than the ring has room for. */
static void bytes_copy(tnshm_pipe *p, tnshm_outgoing *o, uint64_t bytes)
{
    static const uint8_t zeros[TNSHM_ALIGN];
    uint64_t from = 0;

    for (uint32_t i = 0; bytes; i++) { /* 0: the head; behind all pieces: zeros */
        const bool behind = i > o->piece_count;
        const uint64_t all = behind ? o->bytes - from : i ? o->pieces[i - 1].bytes : TNSHM_HEAD_BYTES;
        const uint8_t *data = behind ? zeros : i ? o->pieces[i - 1].data : (const void *)&o->head;

        if (o->done < from + all) {
            const uint64_t left = from + all - o->done, n = bytes < left ? bytes : left;

            tnshm_pipe_write(p, data + (all - left), n);
            o->done += n;
            bytes -= n;
        }
        from += all;
    }
}

/* Puts as much of it into the ring as there is room for. False: the link has ended. A peer that sleeps is
 * woken for a quarter of the ring, or for all there is. */
static bool outgoing_write(tn_link *l, tnshm_pipe *p, tnshm_outgoing *o)
{
    uint64_t told = p->own;

    while (o->done < o->bytes) {
        const uint64_t room = tnshm_pipe_room(p), left = o->bytes - o->done;
        uint64_t n = left < room ? left : room;

        if (room == UINT64_MAX) {
            l->t->faults++;
            tnshm_link_end(l, TN_E_PEER, "the peer says that it has read what was not written");
            return false;
        }
        if (!n)
            break;
        bytes_copy(p, o, n < TNSHM_STEP ? n : TNSHM_STEP);
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

static void credit_check(tn_link *l)
{
    if (!l->no_room)
        return;
    for (uint32_t i = 0; i < TNSHM_LANES; i++)
        if (l->out[i].queued > TNSHM_QUEUE_MAX / 2 || l->out[i].copied > TNSHM_COPIED_MAX / 2)
            return;
    l->no_room = false;
    if (!l->credit.waits)
        tnshm_event_push(l->t, &l->credit, TN_EVENT_CREDIT, l);
}

void tnshm_link_write(tn_link *l)
{
    for (uint32_t i = 0; l->state == TNSHM_UP && i < TNSHM_LANES; i++) {
        tnshm_out *out = &l->out[i];

        while (out->queue && outgoing_write(l, &out->pipe, out->queue) &&
               out->queue->done == out->queue->bytes) {
            l->t->sent++;
            outgoing_end(l, queue_pop(out), TN_OK);
        }
    }
    if (l->state == TNSHM_UP)
        credit_check(l);
}

/* The one that is half in the ring stays in front. */
static void queue_add(tnshm_out *out, tnshm_outgoing *o)
{
    tnshm_outgoing **at = &out->queue;

    while (*at && ((*at)->done || (*at)->priority >= o->priority))
        at = (tnshm_outgoing **)(void *)&(*at)->e.next;
    o->e.next = *at ? &(*at)->e : NULL;
    *at = o;
    out->queued++;
    out->copied += o->told ? 0 : o->bytes;
}

static bool payload_bytes(const tn_send *m, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < m->piece_count; i++) {
        const uint64_t bytes = m->pieces[i].bytes;

        if (bytes > UINT64_MAX / 2 - *out || (bytes && !m->pieces[i].data))
            return false;
        *out += bytes;
    }
    return true;
}

/* A message on the heap, with its list of pieces, or a copy of their bytes. */
static tnshm_outgoing *outgoing_keep(const tnshm_outgoing *from, bool copy)
{
    const uint64_t bytes = from->bytes - TNSHM_HEAD_BYTES;
    tnshm_outgoing *o = malloc(sizeof *o + from->piece_count * sizeof *o->pieces + (copy ? bytes : 0));
    tn_piece *pieces = (tn_piece *)(void *)(o + 1);
    uint8_t *to = (uint8_t *)&pieces[from->piece_count];

    if (!o)
        return NULL;
    *o = *from;
    o->pieces = pieces;
    for (uint32_t i = 0; i < from->piece_count; i++) {
        pieces[i] = from->pieces[i];
        if (!copy || !pieces[i].bytes)
            continue;
        memcpy(to, pieces[i].data, pieces[i].bytes);
        pieces[i].data = to;
        to += pieces[i].bytes;
    }
    return o;
}

tn_status tnshm_send(tn_link *l, const tn_send *m, tn_err *err)
{
    const bool copy = m->flags & TN_SEND_COPY;
    tnshm_out *out = &l->out[m->flags & TN_SEND_URGENT ? TNSHM_URGENT : TNSHM_BULK];
    tnshm_outgoing now = {.told = !copy}, *o;
    uint64_t bytes;

    if (m->struct_size < TN_END(tn_send, cookie) || m->flags & ~TN_SEND_KNOWN || !m->header ||
        m->piece_count > TNSHM_PIECES_MAX || !payload_bytes(m, &bytes) || bytes > l->t->config.message_max)
        return tn_fail(err, TN_E_ARG, "a message that is too long, of too many pieces, or of unknown flags");
    if (l->state >= TNSHM_DRAINING)
        return tn_fail(err, TN_E_PEER, l->text);
    if (out->queued >= TNSHM_QUEUE_MAX || (copy && out->copied && out->copied + bytes > TNSHM_COPIED_MAX)) {
        l->no_room = true;
        return TN_PENDING;
    }
    now.priority = m->flags & TN_SEND_URGENT ? 0 : m->priority; /* urgent ones keep their order */
    now.cookie = m->cookie;
    now.bytes = TNSHM_HEAD_BYTES + tnshm_padded(bytes);
    now.head = (tnshm_head){.magic = TNSHM_MAGIC, .bytes = bytes};
    memcpy(now.head.header, m->header, TN_HEADER_BYTES);
    now.piece_count = m->piece_count;
    now.pieces = m->pieces;
    if (copy && l->state == TNSHM_UP && !out->queue) {
        const uint64_t room = tnshm_pipe_room(&out->pipe);

        if (room != UINT64_MAX && room >= now.bytes) { /* at once: no copy but that into the ring */
            l->t->sent++;
            (void)outgoing_write(l, &out->pipe, &now);
            return TN_OK;
        }
    }
    if (!(o = outgoing_keep(&now, copy)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a message");
    queue_add(out, o);
    if (l->state == TNSHM_UP && out->queue == o) {
        tnshm_link_write(l);
        if (l->state == TNSHM_UP && out->queue)
            tnshm_link_active(l);
    }
    return TN_OK;
}

/*
 * Links: what waits to be sent, how it gets into the rings, and how links end.
 *
 * A link that the host leaves is CLOSING until all that was copied in has been written, for at most a
 * second; then its peer is told how much that was, and reads it. A link whose peer is gone is DRAINING
 * until that is read.
 */
#include "kv_rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- events ------------------------------------------------------------------------------------------- */

void tnrdma_event_push(tn_transport *t, tnrdma_event *e, uint32_t kind, tn_link *l)
{
    *e = (tnrdma_event){.kind = kind, .waits = true, .link = l};
    *t->last = e;
    t->last = &e->next;
}

tnrdma_event *tnrdma_event_pop(tn_transport *t)
{
    tnrdma_event *e = t->first;

    if (!(t->first = e->next))
        t->last = &t->first;
    e->waits = false;
    return e;
}

/* A message that has gone, or will not. */
void tnrdma_outgoing_end(tn_link *l, tnrdma_outgoing *o, tn_status status)
{
    o->status = status;
    if (o->told)
        tnrdma_event_push(l->t, &o->e, TN_EVENT_SENT, l);
    else
        free(o);
}

static tnrdma_outgoing *queue_pop(tnrdma_out *out)
{
    tnrdma_outgoing *o = out->queue;

    out->queue = (tnrdma_outgoing *)o->e.next;
    out->queued--;
    out->copied -= o->told ? 0 : o->bytes;
    return o;
}

/* ---- links -------------------------------------------------------------------------------------------- */

tn_link *tnrdma_link_create(tn_transport *t, int fd, bool called)
{
    struct epoll_event e = {.events = called ? EPOLLIN | EPOLLOUT : EPOLLIN};
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
    l->state = called ? TNRDMA_CALLING : TNRDMA_GREETING;
    if (l->next)
        l->next->place = &l->next;
    t->links = l;
    *(called ? &t->open : &t->strangers) += 1;
    l->late_ns = t->polled_ns + (uint64_t)t->plugin->handshake_ms * 1000000u;
    tnrdma_due(t, l->late_ns);
    return l;
}

void tnrdma_link_active(tn_link *l)
{
    if (l->active)
        return;
    l->active = true;
    l->active_next = l->t->active;
    l->t->active = l;
}

void tnrdma_link_up(tn_link *l)
{
    l->state = TNRDMA_UP;
    l->late_ns = 0;
    tnrdma_event_push(l->t, &l->up, TN_EVENT_UP, l);
    tnrdma_link_active(l);
}

static void outs_cancel(tn_link *l)
{
    for (uint32_t i = 0; i < TNRDMA_CLASSES; i++)
        while (l->out[i].queue)
            tnrdma_outgoing_end(l, queue_pop(&l->out[i]), TN_E_CANCELLED);
}

static void socket_close(tn_link *l)
{
    if (l->fd < 0)
        return;
    (void)close(l->fd); /* and out of the epoll set with it */
    l->fd = -1;
    tnrdma_listener_arm(l->t, false);
}

void tnrdma_link_end(tn_link *l, tn_status why, const char *text)
{
    tn_transport *t = l->t;

    if (l->state == TNRDMA_CLOSED)
        return;
    if (text != l->text)
        (void)snprintf(l->text, sizeof l->text, "%s", text);
    l->why = why;
    l->state = TNRDMA_CLOSED;
    socket_close(l);
    tnrdma_wire_destroy(l);
    outs_cancel(l);
    for (uint32_t i = 0; i < TNRDMA_CLASSES; i++) {
        tnrdma_incoming_free(t, l->in[i].in);
        l->in[i].in = NULL;
        t->starving -= l->in[i].starved != 0;
        l->in[i].starved = 0;
    }
    if ((*l->place = l->next))
        l->next->place = l->place;
    *(l->seen ? &t->open : &t->strangers) -= 1;
    t->refused += !l->seen;
    if (l->seen) {
        tnrdma_event_push(t, &l->down, TN_EVENT_DOWN, l);
        return;
    }
    l->next = t->gone;
    t->gone = l;
}

void tnrdma_link_hangup(tn_link *l, const char *text)
{
    if (l->state == TNRDMA_CLOSING) {
        tnrdma_link_end(l, TN_E_CANCELLED, "disconnected");
        return;
    }
    if (l->state != TNRDMA_UP) {
        tnrdma_link_end(l, TN_E_PEER, text);
        return;
    }
    l->why = l->bye ? TN_OK : TN_E_PEER;
    (void)snprintf(l->text, sizeof l->text, "%s", l->why ? text : "the peer has closed the link");
    l->state = TNRDMA_DRAINING;
    l->late_ns = l->t->polled_ns + TNRDMA_BYE_NS; /* for what is still to come of it */
    tnrdma_due(l->t, l->late_ns);
    socket_close(l);
    outs_cancel(l);
    tnrdma_link_active(l);
}

void tnrdma_link_leave(tn_link *l)
{
    if (l->state >= TNRDMA_CLOSING && l->state != TNRDMA_DRAINING)
        return;
    if (l->state != TNRDMA_UP) {
        tnrdma_link_end(l, TN_E_CANCELLED, "disconnected");
        return;
    }
    l->state = TNRDMA_CLOSING;
    l->late_ns = l->t->polled_ns + TNRDMA_BYE_NS;
    tnrdma_due(l->t, l->late_ns);
    outs_cancel(l);
    tnrdma_link_active(l);
}

void tnrdma_link_free(tn_link *l)
{
    for (tn_link **at = &l->t->active; *at && l->active; at = &(*at)->active_next)
        if (*at == l) {
            *at = l->active_next;
            break;
        }
    free(l);
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* Bytes from `done` on, which are not more than there is room for. */
static void bytes_copy(tnrdma_out *out, tnrdma_outgoing *o, uint64_t bytes)
{
    uint64_t from = 0;

    for (uint32_t i = 0; bytes; i++) { /* 0: the head */
        const uint64_t all = i ? o->pieces[i - 1].bytes : TNRDMA_HEAD_BYTES;
        const uint8_t *data = i ? o->pieces[i - 1].data : (const void *)&o->head;

        if (o->done < from + all) {
            const uint64_t left = from + all - o->done, n = bytes < left ? bytes : left;

            tnrdma_out_copy(out, data + (all - left), n);
            o->done += n;
            bytes -= n;
        }
        from += all;
    }
}

/* A message is copied in whole, or by halves of the ring, so that it takes few work requests. */
static void outgoing_write(tnrdma_out *out, tnrdma_outgoing *o)
{
    while (o->done < o->bytes) {
        const uint64_t room = tnrdma_out_room(out), left = o->bytes - o->done;

        if (room < left && room < out->size / 2)
            break;
        bytes_copy(out, o, left < room ? left : room);
    }
}

static void credit_check(tn_link *l)
{
    if (!l->no_room)
        return;
    for (uint32_t i = 0; i < TNRDMA_CLASSES; i++)
        if (l->out[i].queued > TNRDMA_QUEUE_MAX / 2 || l->out[i].copied > TNRDMA_COPIED_MAX / 2)
            return;
    l->no_room = false;
    if (!l->credit.waits)
        tnrdma_event_push(l->t, &l->credit, TN_EVENT_CREDIT, l);
}

/* The one in front; false: the rest of it has no room now. */
static bool message_write(tn_link *l, tnrdma_out *out)
{
    outgoing_write(out, out->queue);
    if (out->queue->done != out->queue->bytes)
        return false;
    l->t->sent++;
    tnrdma_outgoing_end(l, queue_pop(out), TN_OK);
    return true;
}

/* The payload goes to the landing first, on the queue pair that its head will take. */
static bool put_write(tn_link *l, tnrdma_out *out)
{
    tnrdma_outgoing *o = out->queue;

    if (tnrdma_out_room(out) < TNRDMA_HEAD_BYTES || !tnrdma_put_begin(l, o))
        return false;
    (void)queue_pop(out);
    tnrdma_out_copy(out, &o->head, TNRDMA_HEAD_BYTES);
    l->t->sent++;
    if (!o->head.bytes)
        tnrdma_outgoing_end(l, o, TN_OK); /* else once it was written */
    return true;
}

void tnrdma_link_write(tn_link *l)
{
    for (uint32_t i = 0; l->state == TNRDMA_UP && i < TNRDMA_CLASSES; i++) {
        tnrdma_out *out = &l->out[i];

        while (out->queue && (out->queue->head.put ? put_write(l, out) : message_write(l, out)))
            ;
    }
    if (l->state == TNRDMA_UP || l->state == TNRDMA_CLOSING)
        tnrdma_wire_post(l);
    if (l->state == TNRDMA_UP)
        credit_check(l);
    if (l->state != TNRDMA_CLOSING || !tnrdma_wire_quiet(l))
        return;
    tnrdma_bye(l);
    tnrdma_link_end(l, TN_E_CANCELLED, "disconnected");
}

/* The one that is half in the ring stays in front. */
static void queue_add(tnrdma_out *out, tnrdma_outgoing *o)
{
    tnrdma_outgoing **at = &out->queue;

    while (*at && ((*at)->done || (*at)->priority >= o->priority))
        at = (tnrdma_outgoing **)(void *)&(*at)->e.next;
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
static tnrdma_outgoing *outgoing_keep(const tnrdma_outgoing *from, bool copy)
{
    const uint64_t bytes = from->bytes - TNRDMA_HEAD_BYTES;
    tnrdma_outgoing *o = malloc(sizeof *o + from->piece_count * sizeof *o->pieces + (copy ? bytes : 0));
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

tn_status tnrdma_message_queue(tn_link *l, const tn_send *m, bool put, tn_err *err)
{
    const bool copy = m->flags & TN_SEND_COPY;
    tnrdma_out *out = &l->out[m->flags & TN_SEND_URGENT && !put ? TNRDMA_URGENT : TNRDMA_BULK];
    tnrdma_outgoing now = {.told = !copy}, *o;
    uint64_t bytes;

    if (m->struct_size < TN_END(tn_send, cookie) || m->flags & ~TN_SEND_KNOWN || !m->header ||
        m->piece_count > TNRDMA_PIECES_MAX || !payload_bytes(m, &bytes) || bytes > l->t->config.message_max ||
        (put && bytes > TNRDMA_PUT_MAX))
        return tn_fail(err, TN_E_ARG, "a message that is too long, of too many pieces, or of unknown flags");
    if (l->state >= TNRDMA_CLOSING)
        return tn_fail(err, TN_E_PEER, *l->text ? l->text : "the link is closed");
    if (out->queued >= TNRDMA_QUEUE_MAX || (copy && out->copied && out->copied + bytes > TNRDMA_COPIED_MAX)) {
        l->no_room = true;
        return TN_PENDING;
    }
    now.priority = m->flags & TN_SEND_URGENT ? 0 : m->priority; /* urgent ones keep their order */
    now.cookie = m->cookie;
    now.bytes = TNRDMA_HEAD_BYTES + bytes;
    now.head = (tnrdma_head){.magic = TNRDMA_MAGIC, .put = put, .bytes = bytes, .token = put ? m->token : 0};
    now.offset = put ? m->offset : 0;
    memcpy(now.head.header, m->header, TN_HEADER_BYTES);
    now.piece_count = m->piece_count;
    now.pieces = m->pieces;
    if (copy && !put && l->state == TNRDMA_UP && !out->queue) {
        if (tnrdma_out_room(out) >= now.bytes) { /* at once: no copy but that into the ring */
            l->t->sent++;
            outgoing_write(out, &now);
            tnrdma_wire_post(l);
            tnrdma_link_active(l);
            return TN_OK;
        }
    }
    if (!(o = outgoing_keep(&now, copy)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a message");
    queue_add(out, o);
    if (l->state == TNRDMA_UP && out->queue == o) {
        tnrdma_link_write(l);
        if (l->state == TNRDMA_UP)
            tnrdma_link_active(l);
    }
    return TN_OK;
}

tn_status tnrdma_send(tn_link *l, const tn_send *m, tn_err *err)
{
    return tnrdma_message_queue(l, m, false, err);
}

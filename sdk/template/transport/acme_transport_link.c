/*
 * Links: what waits to be sent, what has come in part, and events of both.
 */
#include "acme_transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

tn_status tcp_fail_system(tn_err *err, const char *what)
{
    const int number = errno;
    char text[200];

    (void)snprintf(text, sizeof text, "%s: %s", what, strerror(number));
    (void)tn_fail(err, number == ENOMEM || number == ENOBUFS ? TN_E_NOMEM : TN_E_IO, text);
    if (err)
        err->native = number;
    return number == ENOMEM || number == ENOBUFS ? TN_E_NOMEM : TN_E_IO;
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void event_push(tn_transport *t, event *e, uint32_t kind, tn_link *link)
{
    e->kind = kind;
    e->link = link;
    e->next = NULL;
    e->waits = true;
    *t->last = e;
    t->last = &e->next;
}

event *tcp_event_pop(tn_transport *t)
{
    event *e = t->first;

    if (!(t->first = e->next))
        t->last = &t->first;
    e->waits = false;
    return e;
}

/* A message that has gone, or will not. */
static void outgoing_end(tn_link *l, outgoing *o, tn_status status)
{
    o->status = status;
    if (o->told)
        event_push(l->t, &o->e, TN_EVENT_SENT, l);
    else
        free(o);
}

void tcp_incoming_free(tn_transport *t, incoming *in)
{
    if (in)
        t->held -= sizeof *in + in->bytes;
    free(in);
}

/* Fills in the first event of the list, and takes it out. */
void tcp_event_take(tn_transport *t, tn_transport_event *to)
{
    event *e = tcp_event_pop(t);
    tn_transport_event x = {
        .struct_size = to->struct_size, .kind = e->kind, .link = e->link, .slot = UINT64_MAX};

    if (e->kind == TN_EVENT_RECV) {
        incoming *in = (incoming *)e;

        memcpy(x.header, in->header, sizeof x.header);
        x.data = in->data;
        x.bytes = in->bytes;
        x.held = in;
    } else if (e->kind == TN_EVENT_SENT) {
        x.cookie = ((outgoing *)e)->cookie;
        x.status = ((outgoing *)e)->status;
        free(e);
    } else if (e->kind == TN_EVENT_DOWN) {
        x.status = e->link->why;
        x.text = e->link->text;
        e->link->next = t->gone;
        t->gone = e->link;
    }
    memcpy(to, &x, to->struct_size < sizeof x ? to->struct_size : sizeof x);
}

/* ---- links -------------------------------------------------------------------------------------------- */

void tcp_link_arm(tn_link *l)
{
    const uint32_t want = (l->state != CALLING && !l->starved ? EPOLLIN : 0u) |
                          (l->state == CALLING || l->queue ? EPOLLOUT : 0u);
    struct epoll_event e = {.events = want, .data.ptr = l};

    if (want != l->armed && !epoll_ctl(l->t->epoll, EPOLL_CTL_MOD, l->fd, &e))
        l->armed = want;
}

void tcp_listener_arm(tn_transport *t, bool deaf)
{
    struct epoll_event e = {.events = deaf ? 0u : EPOLLIN, .data.ptr = NULL};

    if (t->listener >= 0 && t->deaf != deaf && !epoll_ctl(t->epoll, EPOLL_CTL_MOD, t->listener, &e))
        t->deaf = deaf;
}

/* Ends it: messages come back, then it is told that it is down. A stranger goes without a word. */
void tcp_link_end(tn_link *l, tn_status why, const char *format, ...)
{
    tn_transport *t = l->t;
    va_list args;

    if (l->state == CLOSED)
        return;
    va_start(args, format);
    (void)vsnprintf(l->text, sizeof l->text, format, args);
    va_end(args);
    l->why = why;
    l->state = CLOSED;
    (void)close(l->fd);
    l->fd = -1;
    tcp_listener_arm(t, false);
    tcp_incoming_free(t, l->in);
    l->in = NULL;
    t->starving -= l->starved != 0;
    for (outgoing *o; (o = l->queue);) {
        l->queue = (outgoing *)o->e.next;
        outgoing_end(l, o, TN_E_CANCELLED);
    }
    if ((*l->place = l->next))
        l->next->place = l->place;
    *(l->seen ? &t->open : &t->strangers) -= 1;
    if (l->seen) {
        event_push(t, &l->down, TN_EVENT_DOWN, l);
    } else {
        t->refused++;
        l->next = t->gone;
        t->gone = l;
    }
}

/* Takes the connection `fd`, which it closes where it fails. */
tn_link *tcp_link_create(tn_transport *t, int fd, bool called)
{
    tn_link *l = calloc(1, sizeof *l);
    struct epoll_event e = {.events = called ? EPOLLOUT : EPOLLIN, .data.ptr = l};
    static const int settings[][3] = {
        /* a peer's machine may be gone without a word: 25 s */
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, 10},
        {IPPROTO_TCP, TCP_KEEPINTVL, 5}, {IPPROTO_TCP, TCP_KEEPCNT, 3},
    };

    if (!l || epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e)) {
        (void)close(fd);
        free(l);
        return NULL;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        (void)setsockopt(fd, settings[i][0], settings[i][1], &settings[i][2], sizeof settings[i][2]);
    *l = (tn_link){
        .t = t, .next = t->links, .place = &t->links, .fd = fd, .called = called, .armed = e.events};
    l->state = called ? CALLING : GREETING;
    l->seen = called;
    l->late_ns = t->polled_ns + t->plugin->stall_ns;
    if (l->next)
        l->next->place = &l->next;
    t->links = l;
    *(called ? &t->open : &t->strangers) += 1;
    return l;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* Behind what has begun, and behind all that is not of a lower rank. */
static void queue_add(tn_link *l, outgoing *o)
{
    outgoing **at = &l->queue;

    if (*at && (*at)->done)
        at = (outgoing **)(void *)&(*at)->e.next;
    while (*at && (*at)->rank >= o->rank)
        at = (outgoing **)(void *)&(*at)->e.next;
    o->e.next = (event *)*at;
    *at = o;
    l->queued++;
}

static void copied_change(tn_link *l, const outgoing *o, bool more)
{
    if (!o->told)
        l->copied += more ? o->bytes : 0 - o->bytes;
}

/* The bytes from `o->done` on, as the system wants them; how many vectors. */
static int vectors_fill(outgoing *o, struct iovec *v)
{
    uint64_t skip = o->done;
    int count = 0;

    for (uint32_t i = 0; i <= o->piece_count; i++) {
        const uint8_t *data = i ? o->pieces[i - 1].data : (const uint8_t *)&o->head;
        const uint64_t bytes = i ? o->pieces[i - 1].bytes : sizeof o->head;

        if (skip < bytes)
            v[count++] = (struct iovec){(void *)(uintptr_t)(data + skip), (size_t)(bytes - skip)};
        skip -= skip < bytes ? skip : bytes;
    }
    return count;
}

void tcp_link_write(tn_link *l)
{
    for (outgoing *o; l->state >= GREETING && l->state < CLOSED && (o = l->queue);) {
        struct iovec vectors[PIECES_MAX + 1];
        const struct msghdr what = {.msg_iov = vectors, .msg_iovlen = (size_t)vectors_fill(o, vectors)};
        const ssize_t n = sendmsg(l->fd, &what, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            tcp_link_end(l, TN_E_PEER, "the connection is lost: %s", strerror(errno));
            return;
        }
        if (n < 0)
            break;
        if ((o->done += (uint64_t)n) < o->bytes)
            continue;
        l->queue = (outgoing *)o->e.next;
        l->queued--;
        l->t->sent += o->head.kind == FRAME_MESSAGE;
        copied_change(l, o, false);
        outgoing_end(l, o, TN_OK);
        if (l->no_room && l->queued <= QUEUE_MAX / 2 && l->copied <= COPIED_MAX / 2) {
            l->no_room = false;
            if (!l->credit.waits)
                event_push(l->t, &l->credit, TN_EVENT_CREDIT, l);
        }
    }
    if (l->state != CLOSED)
        tcp_link_arm(l);
}

/* A frame without payload. False: no memory. */
bool tcp_frame_queue(tn_link *l, uint32_t kind, int64_t rank)
{
    outgoing *o = calloc(1, sizeof *o);

    if (!o)
        return false;
    o->head.magic = MAGIC;
    o->head.kind = kind;
    o->rank = rank;
    o->bytes = sizeof o->head;
    copied_change(l, o, true);
    queue_add(l, o);
    return true;
}

static bool payload_bytes(const tn_send *message, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < message->piece_count; i++) {
        const uint64_t bytes = message->pieces[i].bytes;

        if (bytes > UINT64_MAX / 2 - *out || (bytes && !message->pieces[i].data))
            return false;
        *out += bytes;
    }
    return true;
}

static outgoing *outgoing_create(const tn_send *message, uint64_t bytes)
{
    const bool copy = message->flags & TN_SEND_COPY;
    outgoing *o = calloc(1, sizeof *o + message->piece_count * sizeof *o->pieces + (copy ? bytes : 0));
    uint8_t *to = o ? (uint8_t *)&o->pieces[message->piece_count] : NULL;

    if (!o)
        return NULL;
    o->told = !copy;
    o->cookie = message->cookie;
    o->rank = message->flags & TN_SEND_URGENT ? RANK_URGENT : message->priority;
    o->bytes = sizeof o->head + bytes;
    o->head.magic = MAGIC;
    o->head.kind = FRAME_MESSAGE;
    o->head.bytes = bytes;
    memcpy(o->head.header, message->header, TN_HEADER_BYTES);
    o->piece_count = message->piece_count;
    for (uint32_t i = 0; i < message->piece_count; i++) {
        o->pieces[i] = message->pieces[i];
        if (!copy || !o->pieces[i].bytes)
            continue;
        memcpy(to, o->pieces[i].data, o->pieces[i].bytes);
        o->pieces[i].data = to;
        to += o->pieces[i].bytes;
    }
    return o;
}

tn_status tcp_send(tn_link *l, const tn_send *message, tn_err *err)
{
    const uint32_t room = QUEUE_MAX + (message->flags & TN_SEND_URGENT ? URGENT_MAX : 0);
    uint64_t bytes;
    outgoing *o;

    if (message->struct_size < TN_END(tn_send, cookie) || message->flags & ~TN_SEND_KNOWN ||
        !message->header || message->piece_count > PIECES_MAX || !payload_bytes(message, &bytes) ||
        bytes > l->t->config.message_max)
        return tn_fail(err, TN_E_ARG, "a message that is too long, of too many pieces, or of unknown flags");
    if (l->state == CLOSED)
        return tn_fail(err, TN_E_PEER, l->text);
    if (l->queued >= room || (message->flags & TN_SEND_COPY && l->copied && l->copied + bytes > COPIED_MAX)) {
        l->no_room = true;
        return TN_PENDING;
    }
    if (!(o = outgoing_create(message, bytes)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a message");
    copied_change(l, o, true);
    queue_add(l, o);
    tcp_link_write(l);
    return TN_OK;
}

/* ---- receiving ---------------------------------------------------------------------------------------- */

/* What is wrong with the head that came; NULL: nothing. */
static const char *head_fault(const tn_link *l)
{
    const head *h = &l->head;

    if (h->magic != MAGIC)
        return "the peer speaks another protocol";
    if (l->state == GREETING ? h->kind != (l->called ? FRAME_ANSWER : FRAME_CALL)
                             : h->kind != FRAME_MESSAGE && h->kind != FRAME_BYE)
        return "the peer sends what is not its turn";
    if (h->kind != FRAME_MESSAGE && h->bytes)
        return "the peer's frame has a payload that it cannot have";
    return h->bytes > l->t->config.message_max ? "the peer's message is too long" : NULL;
}

/* The peer has said who it is. */
static void link_greeted(tn_link *l)
{
    tn_transport *t = l->t;

    if (!l->called) {
        if (t->open >= t->config.links_max || !tcp_frame_queue(l, FRAME_ANSWER, RANK_HELLO)) {
            tcp_link_end(l, TN_E_PEER, "no room for another link");
            return;
        }
        t->strangers--;
        t->open++;
        l->seen = true;
    }
    l->state = OPEN;
    event_push(t, &l->up, TN_EVENT_UP, l);
    tcp_link_write(l);
}

static bool has_room(const tn_transport *t, uint64_t bytes)
{
    const uint64_t cost = sizeof(incoming) + bytes;

    return !t->held || (cost <= t->config.receive_bytes && t->held <= t->config.receive_bytes - cost);
}

static void payload_begin(tn_link *l)
{
    if (!(l->in = malloc(sizeof *l->in + l->head.bytes))) {
        tcp_link_end(l, TN_E_PEER, "out of memory for a message of %llu bytes",
                     (unsigned long long)l->head.bytes);
        return;
    }
    l->t->held += sizeof *l->in + l->head.bytes;
    l->late_ns = l->t->polled_ns + l->t->plugin->stall_ns + l->head.bytes * BYTE_NS;
    l->in->bytes = l->head.bytes;
    memcpy(l->in->header, l->head.header, TN_HEADER_BYTES);
}

/* Where the next bytes go, and how many: `*bytes` is 0 where none can be taken now. */
void *tcp_bytes_want(tn_link *l, uint64_t *bytes)
{
    *bytes = 0;
    if (l->got < HEAD_BYTES) {
        *bytes = HEAD_BYTES - l->got;
        return (uint8_t *)&l->head + l->got;
    }
    if (!l->in)
        return NULL;
    *bytes = HEAD_BYTES + l->in->bytes - l->got;
    return l->in->data + (l->got - HEAD_BYTES);
}

/* The message is complete if it is. */
static bool payload_over(tn_link *l)
{
    incoming *in = l->in;

    if (!in || l->got < HEAD_BYTES + in->bytes)
        return false;
    l->in = NULL;
    l->got = l->late_ns = 0;
    l->t->received++;
    event_push(l->t, &in->e, TN_EVENT_RECV, l);
    return true;
}

/* A whole head is here. True: a frame is complete, or the link has ended. */
static bool head_over(tn_link *l)
{
    tn_transport *t = l->t;
    const char *fault = head_fault(l);

    if (fault) {
        tcp_link_end(l, TN_E_PEER, "%s", fault);
    } else if (l->head.kind == FRAME_BYE) {
        tcp_link_end(l, TN_OK, "the peer has closed the link");
    } else if (l->head.kind != FRAME_MESSAGE) {
        l->got = l->late_ns = 0;
        link_greeted(l);
    } else if (!t->starving && has_room(t, l->head.bytes)) {
        payload_begin(l);
        return payload_over(l);
    } else {
        l->starved = ++t->turn;
        l->late_ns = 0;
        t->starving++;
        return false;
    }
    return true;
}

/* So many bytes came to where they were wanted. True: a frame is complete, or the link has ended. */
bool tcp_bytes_got(tn_link *l, uint64_t bytes)
{
    const bool in_head = l->got < HEAD_BYTES;

    if (!l->got && l->state == OPEN)
        l->late_ns = l->t->polled_ns + l->t->plugin->stall_ns;
    if ((l->got += bytes) < HEAD_BYTES)
        return false;
    return in_head ? head_over(l) : payload_over(l);
}

void tcp_link_read(tn_link *l)
{
    for (uint32_t frames = 0; frames < ROUND_MAX && l->state != CLOSED;) {
        uint64_t bytes;
        void *to = tcp_bytes_want(l, &bytes);
        const ssize_t n = bytes ? recv(l->fd, to, bytes, 0) : 0;

        if (!bytes || (n < 0 && errno == EAGAIN))
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            tcp_link_end(l, TN_E_PEER, "the connection is lost: %s",
                         n ? strerror(errno) : "the peer has gone");
        else
            frames += tcp_bytes_got(l, (uint64_t)n);
    }
    if (l->state != CLOSED)
        tcp_link_arm(l);
}

/* Those that waited for room go on, in the order in which they came. */
void tcp_starved_serve(tn_transport *t)
{
    while (t->starving) {
        tn_link *first = NULL;

        for (tn_link *l = t->links; l; l = l->next)
            if (l->starved && (!first || l->starved < first->starved))
                first = l;
        if (!first || !has_room(t, first->head.bytes))
            break;
        first->starved = 0;
        t->starving--;
        payload_begin(first);
        if (first->state != CLOSED) {
            (void)payload_over(first);
            tcp_link_read(first);
        }
    }
}

/*
 * The loop: what libzmq's threads gave back, sockets that are ready, deadlines, then events for the host.
 *
 * libzmq's descriptors tell of changes, not of states: a socket that was used must be asked again before the
 * loop sleeps. So each source that was used or told of is `ready`, until it has nothing more.
 */
#include "kv_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READY_MAX 64   /* sources that one wait tells of */
#define EVENTS_MAX 256 /* that wait for the host before no more are made */

/* ---- sources ---------------------------------------------------------------------------------------- */

void tnzmq_source_ready(tn_transport *t, tnzmq_source *s)
{
    if (s->socket && !s->ready.next)
        tnzmq_list_add(&t->ready, &s->ready);
}

tn_status tnzmq_source_open(tn_transport *t, tnzmq_source *s, void *socket, tn_err *err)
{
    struct epoll_event watch = {.events = EPOLLIN, .data.ptr = s};
    size_t bytes = sizeof s->fd;

    if (zmq_getsockopt(socket, ZMQ_FD, &s->fd, &bytes) || epoll_ctl(t->epoll, EPOLL_CTL_ADD, s->fd, &watch)) {
        (void)tnzmq_fail(err, TN_E_IO, "a socket's descriptor");
        (void)zmq_close(socket);
        return TN_E_IO;
    }
    s->socket = socket;
    tnzmq_source_ready(t, s);
    return TN_OK;
}

void tnzmq_source_close(tn_transport *t, tnzmq_source *s, int linger_ms)
{
    if (!s->socket)
        return;
    tnzmq_list_remove(&s->ready);
    (void)epoll_ctl(t->epoll, EPOLL_CTL_DEL, s->fd, NULL);
    (void)tnzmq_socket_int(s->socket, ZMQ_LINGER, linger_ms);
    (void)zmq_close(s->socket);
    s->socket = NULL;
}

static void sources_serve(tn_transport *t)
{
    tnzmq_node now;

    /* Those that get ready meanwhile have their turn in the next round. */
    if (t->ready.next == &t->ready)
        return;
    now = t->ready;
    now.next->last = now.last->next = &now;
    tnzmq_list_init(&t->ready);
    while (now.next != &now) {
        tnzmq_source *s = (tnzmq_source *)(void *)now.next;

        tnzmq_list_remove(&s->ready);
        s->serve(t, s);
    }
}

/* ---- waiting ---------------------------------------------------------------------------------------- */

void tnzmq_ring(tn_transport *t)
{
    const uint64_t one = 1;

    if (atomic_load(&t->sleeping) && write(t->bell, &one, sizeof one) < 0)
        return; /* it is rung already as often as it can be */
}

void tnzmq_wake(tn_transport *t)
{
    atomic_store(&t->woken, true);
    tnzmq_ring(t);
}

void tnzmq_deadline(tn_transport *t, uint64_t at_ns)
{
    t->tick_ns = at_ns < t->tick_ns ? at_ns : t->tick_ns;
}

static void tick(tn_transport *t)
{
    const uint64_t now = t->tick_ns == UINT64_MAX ? 0 : monotonic_ns();

    if (now < t->tick_ns)
        return;
    t->tick_ns = UINT64_MAX; /* all that is still to come is said again */
    tnzmq_link_tick(t, now);
    tnzmq_door_tick(t, now);
}

/* Until something happens, or `end_ns`; without sources that are ready. */
static tn_status wait(tn_transport *t, uint64_t end_ns, tn_err *err)
{
    struct epoll_event ready[READY_MAX];
    const uint64_t until = end_ns < t->tick_ns ? end_ns : t->tick_ns, now = monotonic_ns();
    uint64_t rung, ms = until <= now ? 0 : (until - now + 999999) / 1000000;
    int count;

    atomic_store(&t->sleeping, true);
    if (atomic_load(&t->done) || atomic_load(&t->woken) || t->ready.next != &t->ready)
        ms = 0;
    count = epoll_wait(t->epoll, ready, READY_MAX, ms > 1000000 ? 1000000 : (int)ms);
    if (count < 0 && errno != EINTR)
        return tn_failf(err, TN_E_IO, "epoll_wait: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        if (ready[i].data.ptr)
            tnzmq_source_ready(t, ready[i].data.ptr);
        else
            (void)!read(t->bell, &rung, sizeof rung);
    }
    return TN_OK;
}

/* ---- events ----------------------------------------------------------------------------------------- */

void tnzmq_event_add(tn_transport *t, tnzmq_event *e, uint32_t kind, tn_link *link)
{
    if (e->node.next)
        return; /* it waits already */
    e->kind = kind;
    e->link = link;
    tnzmq_list_add(&t->events, &e->node);
    t->events_count++;
}

static void event_fill(tn_transport *t, tnzmq_event *e, tn_transport_event *out)
{
    const uint32_t size = out->struct_size;
    const tn_transport_event x = {.struct_size = size, .kind = e->kind, .link = e->link, .slot = UINT64_MAX};

    memcpy(out, &x, size < sizeof x ? size : sizeof x);
    if (e->kind == TN_EVENT_RECV) {
        tnzmq_held *h = (tnzmq_held *)(void *)e;

        memcpy(out->header, h->header, sizeof out->header);
        out->data = h->data;
        out->bytes = h->bytes;
        out->held = h;
    } else if (e->kind == TN_EVENT_SENT) {
        tnzmq_record *r = (tnzmq_record *)(void *)e;

        out->cookie = r->cookie;
        out->status = r->status;
        free(r);
    } else if (e->kind == TN_EVENT_DOWN) {
        out->status = e->link->status;
        out->text = *e->link->text ? e->link->text : NULL;
        tnzmq_list_remove(&e->link->node);
        tnzmq_list_add(&t->graves, &e->link->node);
    }
}

static uint32_t events_take(tn_transport *t, tn_transport_event *events, uint32_t room)
{
    uint32_t count = 0;

    while (count < room && t->events.next != &t->events) {
        tnzmq_event *e = (tnzmq_event *)(void *)t->events.next;

        tnzmq_list_remove(&e->node);
        t->events_count--;
        event_fill(t, e, tn_transport_event_at(events, count++));
    }
    return count;
}

int32_t tnzmq_descriptor(tn_transport *t)
{
    return t->epoll;
}

tn_status tnzmq_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                     tn_err *err)
{
    const uint32_t room = *count;
    const uint64_t now = timeout_ns && timeout_ns != UINT64_MAX ? monotonic_ns() : 0,
                   end = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    tn_status st = TN_OK;

    *count = 0;
    while (t->graves.next != &t->graves)
        tnzmq_link_destroy((tn_link *)(void *)t->graves.next);
    while (!st) {
        atomic_store(&t->sleeping, false); /* set behind a poll without an event: for the descriptor */
        tnzmq_links_reap(t);
        if (t->events_count < EVENTS_MAX)
            sources_serve(t);
        tick(t);
        if ((*count = events_take(t, events, room))) {
            atomic_store(&t->woken, false);
            break;
        }
        if (atomic_exchange(&t->woken, false)) {
            atomic_store(&t->sleeping, true);
            tnzmq_ring(t); /* there may be more to do, which a host that waits for the descriptor is told */
            break;
        }
        st = wait(t, end, err);
        /* With time 0 one look at the descriptors still belongs to "what is there". */
        if (!st && t->ready.next == &t->ready && !atomic_load(&t->done) && monotonic_ns() >= end)
            break;
    }
    return st;
}

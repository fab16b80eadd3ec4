/*
 * The loop. The thread that calls `poll` is the one that looks for completions: links that are active are
 * asked in each turn. With nothing to do it goes on asking for `spin_us`, then arms the completion
 * queues, asks once more, and waits for their channel together with sockets and `wake`.
 */
#include "kv_rdma.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define WAITS_MAX 64   /* of one epoll_wait */
#define LOOKS_EVERY 8u /* polls with events between two looks at the sockets */

uint64_t tnrdma_now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bell_ring(tn_transport *t)
{
    const uint64_t one = 1;

    (void)!write(t->wake, &one, sizeof one);
}

void tnrdma_wake(tn_transport *t)
{
    atomic_store(&t->woken, true);
    bell_ring(t);
}

void tnrdma_due(tn_transport *t, uint64_t at_ns)
{
    t->due_ns = at_ns < t->due_ns ? at_ns : t->due_ns;
}

/* ---- peers that are late ------------------------------------------------------------------------------ */

static uint64_t link_late(const tn_link *l)
{
    uint64_t least = l->late_ns ? l->late_ns : UINT64_MAX;

    for (uint32_t i = 0; i < TNRDMA_CLASSES; i++)
        if (l->in[i].late_ns && l->in[i].late_ns < least)
            least = l->in[i].late_ns;
    return least;
}

/* What has not come by now will not; what has is read. */
static void link_is_late(tn_link *l)
{
    if (l->state == TNRDMA_DRAINING) {
        l->flushed = true;
        l->late_ns = 0;
        tnrdma_link_read(l);
    } else if (l->state == TNRDMA_CLOSING) {
        tnrdma_bye(l);
        tnrdma_link_end(l, TN_E_CANCELLED, "disconnected");
    } else {
        tnrdma_link_end(l, TN_E_PEER, l->late_ns ? "the peer does not answer" : "a message stops half way");
    }
}

static void late_check(tn_transport *t)
{
    if (t->polled_ns < t->due_ns)
        return;
    t->due_ns = UINT64_MAX;
    for (tn_link *l = t->links, *next; l; l = next) {
        const uint64_t late = link_late(l);

        next = l->next;
        if (late <= t->polled_ns)
            link_is_late(l);
        else
            tnrdma_due(t, late);
    }
}

/* ---- work --------------------------------------------------------------------------------------------- */

/* Something of it is left to be read, and nobody else will say so. */
static bool link_unread(const tn_link *l)
{
    for (uint32_t i = 0; i < TNRDMA_CLASSES; i++)
        if (l->state != TNRDMA_CLOSING && !l->in[i].starved && l->in[i].filled != l->in[i].own)
            return true;
    return false;
}

static bool link_serve(tn_link *l)
{
    const bool any = tnrdma_wire_poll(l);

    if (l->state != TNRDMA_CLOSED)
        tnrdma_link_read(l);
    if (l->state != TNRDMA_CLOSED)
        tnrdma_link_write(l);
    if (l->state == TNRDMA_UP)
        tnrdma_note_send(l);
    return any;
}

static bool active_serve(tn_transport *t)
{
    bool any = false;

    for (tn_link **at = &t->active, *l; (l = *at);) {
        any |= link_serve(l);
        if (l->state != TNRDMA_CLOSED) {
            at = &l->active_next;
            continue;
        }
        *at = l->active_next;
        l->active = false;
    }
    return any;
}

/* All active links go to sleep, but for those for which something has come. True: all do. */
static bool active_sleep(tn_transport *t)
{
    bool all = true;

    for (tn_link **at = &t->active, *l; (l = *at);) {
        if (!t->verbs->cq_arm(l->wire.cq) && !link_serve(l) && l->state != TNRDMA_CLOSED && !link_unread(l)) {
            *at = l->active_next;
            l->active = false;
            continue;
        }
        all = false;
        if (l->state != TNRDMA_CLOSED) {
            at = &l->active_next;
            continue;
        }
        *at = l->active_next;
        l->active = false;
    }
    return all;
}

/* Looks for completions for a while before it waits: a peer that answers at once costs no wake-up. */
static void active_spin(tn_transport *t, uint64_t wait_ns)
{
    const uint64_t from = tnrdma_now_ns(), most = wait_ns < t->spin_ns ? wait_ns : t->spin_ns;

    while (t->active && !t->first && !atomic_load_explicit(&t->woken, memory_order_relaxed) &&
           tnrdma_now_ns() - from < most && !active_serve(t))
        ;
}

static void device_events(tn_transport *t)
{
    void *of;
    int kind;

    while (!t->verbs->cq_event(t->device.channel, &of))
        if (((tn_link *)of)->state != TNRDMA_CLOSED)
            tnrdma_link_active(of);
    while (!t->verbs->async_event(t->device.context, &kind, &of)) {
        if (of && ((tn_link *)of)->state != TNRDMA_CLOSED)
            tnrdma_link_active(of); /* its completions say what it was */
        for (tn_link *l = t->links, *next; kind == IBV_EVENT_DEVICE_FATAL && l; l = next) {
            next = l->next;
            tnrdma_link_end(l, TN_E_PEER, "the RDMA device has failed");
        }
    }
}

static tn_status sockets_serve(tn_transport *t, uint64_t wait_ns, tn_err *err)
{
    const uint64_t ms = wait_ns / 1000000 + (wait_ns % 1000000 != 0);
    struct epoll_event events[WAITS_MAX];
    const int n = epoll_wait(t->epoll, events, WAITS_MAX,
                             wait_ns == UINT64_MAX ? -1
                             : ms < INT_MAX        ? (int)ms
                                                   : INT_MAX);
    uint64_t count;

    if (n < 0 && errno != EINTR)
        return tnrdma_fail_system(err, "epoll");
    for (int i = 0; i < n; i++) {
        void *of = events[i].data.ptr;

        if (!of)
            tnrdma_accept(t);
        else if (of == (void *)t)
            (void)!read(t->wake, &count, sizeof count);
        else if (of == (void *)&t->device)
            device_events(t);
        else if (((tn_link *)of)->fd >= 0)
            tnrdma_greet(of, events[i].events);
    }
    return TN_OK;
}

tn_status tnrdma_turn(tn_transport *t, uint64_t wait_ns, tn_err *err)
{
    const uint64_t from = tnrdma_now_ns();
    tn_status st = TN_OK;

    tnrdma_starved_serve(t);
    (void)active_serve(t);
    late_check(t);
    active_spin(t, wait_ns);
    if (t->first || atomic_load_explicit(&t->woken, memory_order_relaxed) || !active_sleep(t))
        wait_ns = 0;
    if (t->due_ns != UINT64_MAX && t->due_ns - t->polled_ns < wait_ns)
        wait_ns = t->due_ns - t->polled_ns;
    if (!t->first || ++t->polls % LOOKS_EVERY == 0)
        st = sockets_serve(t, wait_ns, err);
    t->polled_ns += tnrdma_now_ns() - from;
    return st;
}

void tnrdma_gone_free(tn_transport *t)
{
    while (t->gone) {
        tn_link *l = t->gone;

        t->gone = l->next;
        tnrdma_link_free(l);
    }
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void event_take(tn_transport *t, tn_transport_event *to)
{
    tnrdma_event *e = tnrdma_event_pop(t);
    tn_transport_event x = {
        .struct_size = to->struct_size, .kind = e->kind, .link = e->link, .slot = UINT64_MAX};

    if (e->kind == TN_EVENT_RECV) {
        tnrdma_incoming *in = (tnrdma_incoming *)e;

        memcpy(x.header, in->header, sizeof x.header);
        x.data = in->put == UINT64_MAX ? in->data : NULL;
        x.bytes = in->put == UINT64_MAX ? in->bytes : in->put;
        x.slot = in->slot;
        x.held = in;
    } else if (e->kind == TN_EVENT_SENT) {
        x.cookie = ((tnrdma_outgoing *)e)->cookie;
        x.status = ((tnrdma_outgoing *)e)->status;
        free(e);
    } else if (e->kind == TN_EVENT_DOWN) {
        x.status = e->link->why;
        x.text = e->link->text;
        e->link->next = t->gone;
        t->gone = e->link;
    }
    memcpy(to, &x, to->struct_size < sizeof x ? to->struct_size : sizeof x);
}

tn_status tnrdma_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                      tn_err *err)
{
    const uint32_t room = *count;
    const uint64_t from = tnrdma_now_ns();
    uint64_t spent = 0;
    tn_status st = TN_OK;

    *count = 0;
    tnrdma_gone_free(t);
    tnrdma_listener_arm(t, false);
    while (!st) {
        st = tnrdma_turn(t, timeout_ns == UINT64_MAX ? UINT64_MAX : timeout_ns - spent, err);
        spent = tnrdma_now_ns() - from;
        if (t->first || atomic_exchange(&t->woken, false) || spent >= timeout_ns)
            break;
        tnrdma_gone_free(t);
    }
    while (t->first && *count < room)
        event_take(t, tn_transport_event_at(events, (*count)++));
    if (!*count && t->active)
        bell_ring(t); /* there is more to do, which a host that waits for the descriptor is told */
    return *count ? TN_OK : st;
}

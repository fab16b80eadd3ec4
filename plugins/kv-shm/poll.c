/*
 * The loop. Links that are active are looked at in each turn; one that has nothing to do sleeps: its peer
 * sends a byte on its socket, which epoll waits for together with callers, hang-ups and `wake`.
 */
#include "kv_shm.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAITS_MAX 64   /* of one epoll_wait */
#define LOOKS_EVERY 8u /* polls with events between two looks at the sockets */

uint64_t tnshm_now_ns(void)
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

void tnshm_wake(tn_transport *t)
{
    atomic_store(&t->woken, true);
    bell_ring(t);
}

void tnshm_due(tn_transport *t, uint64_t at_ns)
{
    t->due_ns = at_ns < t->due_ns ? at_ns : t->due_ns;
}

/* ---- peers that are late ------------------------------------------------------------------------------ */

static uint64_t link_late(const tn_link *l)
{
    uint64_t least = l->late_ns ? l->late_ns : UINT64_MAX;

    for (uint32_t i = 0; i < TNSHM_LANES; i++)
        if (l->in[i].late_ns && l->in[i].late_ns < least)
            least = l->in[i].late_ns;
    return least;
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
            tnshm_link_end(l, TN_E_PEER,
                           l->late_ns ? "the peer does not answer" : "a message stops half way");
        else
            tnshm_due(t, late);
    }
}

/* ---- work --------------------------------------------------------------------------------------------- */

static void active_serve(tn_transport *t)
{
    for (tn_link **at = &t->active, *l; (l = *at);) {
        tnshm_link_read(l);
        tnshm_link_write(l);
        if (l->state != TNSHM_CLOSED) {
            at = &l->active_next;
            continue;
        }
        *at = l->active_next;
        l->active = false;
    }
}

/* Anything to do for a link, whose peer would not wake us for it? */
static bool link_busy(tn_link *l)
{
    bool busy = l->state == TNSHM_DRAINING && !l->in[0].starved && !l->in[1].starved;

    for (uint32_t i = 0; i < TNSHM_LANES; i++) {
        busy |= !l->in[i].starved && tnshm_in_ready(&l->in[i]);
        busy |= l->out[i].queue && tnshm_pipe_room(&l->out[i].pipe) >= l->out[i].pipe.size / 2;
    }
    return busy;
}

/* All active links go to sleep, but for those that have something to do. True: all do. */
static bool active_sleep(tn_transport *t)
{
    bool all = true;

    for (tn_link *l = t->active; l; l = l->active_next) {
        for (uint32_t i = 0; i < TNSHM_LANES; i++)
            atomic_store_explicit(&l->out[i].pipe.ring->hungry, l->out[i].queue != NULL,
                                  memory_order_relaxed);
        atomic_store_explicit(&l->area->side[!l->called].asleep, 1, memory_order_relaxed);
        l->armed = true;
        l->bells++;
    }
    atomic_thread_fence(memory_order_seq_cst);
    for (tn_link **at = &t->active, *l; (l = *at);) {
        if (link_busy(l)) {
            all = false;
            tnshm_link_active(l);
            at = &l->active_next;
        } else {
            *at = l->active_next;
            l->active = false;
        }
    }
    return all;
}

/* A byte of a peer that wakes us, or its end. */
static void bell_take(tn_link *l)
{
    char byte[2];
    const ssize_t n = recv(l->fd, byte, sizeof byte, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    tnshm_link_active(l);
    if (n <= 0) {
        tnshm_link_hangup(l, "the peer has gone");
    } else if (n > 1 || !l->bells) {
        l->t->faults++;
        tnshm_link_end(l, TN_E_PEER, "the peer wakes who does not sleep");
    } else {
        l->bells--;
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
        return tnshm_fail_system(err, "epoll");
    for (int i = 0; i < n; i++) {
        tn_link *l = events[i].data.ptr;

        if (!l)
            tnshm_accept(t);
        else if ((void *)l == (void *)t)
            (void)!read(t->wake, &count, sizeof count);
        else if (l->state == TNSHM_UP)
            bell_take(l);
        else if (l->state < TNSHM_UP)
            tnshm_greet(l);
    }
    return TN_OK;
}

tn_status tnshm_turn(tn_transport *t, uint64_t wait_ns, tn_err *err)
{
    const uint64_t from = tnshm_now_ns();
    tn_status st = TN_OK;

    tnshm_starved_serve(t);
    active_serve(t);
    late_check(t);
    if (t->first || atomic_load_explicit(&t->woken, memory_order_relaxed) || !active_sleep(t))
        wait_ns = 0;
    if (t->due_ns != UINT64_MAX && t->due_ns - t->polled_ns < wait_ns)
        wait_ns = t->due_ns - t->polled_ns;
    if (!t->first || ++t->polls % LOOKS_EVERY == 0)
        st = sockets_serve(t, wait_ns, err);
    t->polled_ns += tnshm_now_ns() - from;
    return st;
}

void tnshm_gone_free(tn_transport *t)
{
    while (t->gone) {
        tn_link *l = t->gone;

        t->gone = l->next;
        tnshm_link_free(l);
    }
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void event_take(tn_transport *t, tn_transport_event *to)
{
    tnshm_event *e = tnshm_event_pop(t);
    tn_transport_event x = {
        .struct_size = to->struct_size, .kind = e->kind, .link = e->link, .slot = UINT64_MAX};

    if (e->kind == TN_EVENT_RECV) {
        tnshm_incoming *in = (tnshm_incoming *)e;

        memcpy(x.header, in->header, sizeof x.header);
        x.data = in->payload;
        x.flags = in->map ? TN_RECV_SHARED : 0;
        x.bytes = in->bytes;
        x.held = in;
    } else if (e->kind == TN_EVENT_SENT) {
        x.cookie = ((tnshm_outgoing *)e)->cookie;
        x.status = ((tnshm_outgoing *)e)->status;
        free(e);
    } else if (e->kind == TN_EVENT_DOWN) {
        x.status = e->link->why;
        x.text = e->link->text;
        e->link->next = t->gone;
        t->gone = e->link;
    }
    memcpy(to, &x, to->struct_size < sizeof x ? to->struct_size : sizeof x);
}

tn_status tnshm_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                     tn_err *err)
{
    const uint32_t room = *count;
    const uint64_t from = tnshm_now_ns();
    uint64_t spent = 0;
    tn_status st = TN_OK;

    *count = 0;
    tnshm_gone_free(t);
    tnshm_listener_arm(t, false);
    while (!st) {
        st = tnshm_turn(t, timeout_ns == UINT64_MAX ? UINT64_MAX : timeout_ns - spent, err);
        spent = tnshm_now_ns() - from;
        if (t->first || atomic_exchange(&t->woken, false) || spent >= timeout_ns)
            break;
        tnshm_gone_free(t);
    }
    while (t->first && *count < room)
        event_take(t, tn_transport_event_at(events, (*count)++));
    if (!*count && t->active)
        bell_ring(t); /* there is more to do, which a host that waits for the descriptor is told */
    return *count ? TN_OK : st;
}

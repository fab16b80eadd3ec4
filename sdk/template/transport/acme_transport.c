/*
 * A plugin with one transport, `acme_tcp`: each link is a TCP connection, and `poll` alone does the work, by
 * epoll. There are no threads.
 *
 * Everything that is sent is a frame: a head of 80 bytes (magic, kind, length, the host's 64 bytes) and the
 * payload. The side that connects says CALL first, the other one ANSWER; then both send messages, and BYE
 * before they close. A payload is read once there is room for it among `receive_bytes`; until then nothing
 * more of that connection is read, TCP's own window fills up, and the peer's `send` says TN_PENDING.
 *
 * Each event lies in what it tells of (the link, the message), so none can be lost for want of memory.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "acme_transport.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

static void link_serve(tn_link *l, uint32_t events)
{
    int error = 0;
    socklen_t length = sizeof error;

    if (l->state == CALLING) {
        if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) {
            tcp_link_end(l, TN_E_PEER, "no connection: %s", strerror(error ? error : errno));
            return;
        }
        l->state = GREETING;
    }
    if (events & (EPOLLOUT | EPOLLERR))
        tcp_link_write(l);
    if (l->state != CLOSED && events & (EPOLLIN | EPOLLERR | EPOLLHUP) && !l->starved)
        tcp_link_read(l);
    else if (events & (EPOLLERR | EPOLLHUP))
        tcp_link_end(l, TN_E_PEER, "the connection is lost");
}

/* Ends the links whose peer is late, and gives the time until the next one would be; UINT64_MAX: none. */
static uint64_t late_check(tn_transport *t)
{
    uint64_t least = UINT64_MAX;

    for (tn_link *l = t->links, *next; l; l = next) {
        next = l->next;
        if (!l->late_ns)
            continue;
        if (l->late_ns <= t->polled_ns)
            tcp_link_end(l, TN_E_PEER,
                         l->state == OPEN ? "a message stops half way" : "the peer does not answer");
        else if (l->late_ns - t->polled_ns < least)
            least = l->late_ns - t->polled_ns;
    }
    return least;
}

/* One wait, for at most `wait_ns`, and the work it brings. `*woken`: `wake` was called. */
static tn_status transport_turn(tn_transport *t, uint64_t wait_ns, bool *woken, tn_err *err)
{
    const uint64_t ms = wait_ns / 1000000 + (wait_ns % 1000000 != 0), from = now_ns();
    struct epoll_event events[WAITS_MAX];
    const int n = epoll_wait(t->epoll, events, WAITS_MAX,
                             wait_ns == UINT64_MAX ? -1
                             : ms < INT_MAX        ? (int)ms
                                                   : INT_MAX);
    uint64_t count;

    t->polled_ns += now_ns() - from;
    if (n < 0 && errno != EINTR)
        return tcp_fail_system(err, "epoll");
    for (int i = 0; i < n; i++) {
        tn_link *l = events[i].data.ptr;

        if (!l)
            tcp_accept(t);
        else if ((void *)l == (void *)t)
            *woken |= read(t->wake, &count, sizeof count) > 0;
        else if (l->state != CLOSED)
            link_serve(l, events[i].events);
    }
    return TN_OK;
}

static void gone_free(tn_transport *t)
{
    while (t->gone) {
        tn_link *l = t->gone;

        t->gone = l->next;
        free(l);
    }
}

static tn_status transport_poll(tn_transport *t, tn_transport_event *events, uint32_t *count,
                                uint64_t timeout_ns, tn_err *err)
{
    const uint32_t room = *count;
    const uint64_t from = now_ns();
    uint64_t spent = 0, late, wait;
    bool woken = false;
    tn_status st = TN_OK;

    *count = 0;
    gone_free(t);
    tcp_listener_arm(t, false);
    while (!st) {
        tcp_starved_serve(t);
        late = late_check(t);
        wait = t->first                    ? 0
               : timeout_ns == UINT64_MAX  ? late
               : timeout_ns - spent < late ? timeout_ns - spent
                                           : late;
        st = transport_turn(t, wait, &woken, err);
        spent = now_ns() - from;
        if (t->first || woken || spent >= timeout_ns)
            break;
        gone_free(t);
    }
    while (t->first && *count < room)
        tcp_event_take(t, tn_transport_event_at(events, (*count)++));
    return *count ? TN_OK : st;
}

static void transport_wake(tn_transport *t)
{
    const uint64_t one = 1;

    (void)!write(t->wake, &one, sizeof one);
}

/* ---- the transport ------------------------------------------------------------------------------------ */

static tn_status transport_open(void *self, const tn_transport_config *config, tn_transport **out,
                                tn_err *err)
{
    tn_transport *t;
    struct epoll_event e = {.events = EPOLLIN};

    if (config->struct_size < TN_END(tn_transport_config, lanes) || config->flags & ~TN_OPEN_KNOWN ||
        config->receive_bytes < config->message_max || config->message_max > (uint64_t)INT64_MAX / 32)
        return tn_fail(err, TN_E_ARG, "a configuration with unknown flags, or limits that cannot be");
    if (config->secret)
        return tn_fail(err, TN_E_UNSUPPORTED, "acme_tcp does not encrypt, so it takes no secret");
    if (!(t = calloc(1, sizeof *t)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for a transport");
    t->plugin = self;
    t->config = (tn_transport_config){.flags = config->flags,
                                      .receive_bytes = config->receive_bytes,
                                      .message_max = config->message_max,
                                      .links_max = config->links_max};
    t->last = &t->first;
    t->listener = -1;
    t->polled_ns = 1;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    e.data.ptr = t;
    if (t->epoll < 0 || t->wake < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->wake, &e)) {
        const tn_status st = tcp_fail_system(err, "epoll");

        (void)close(t->epoll);
        (void)close(t->wake);
        free(t);
        return st;
    }
    *out = t;
    return TN_OK;
}

static void transport_info(tn_transport *t, tn_transport_info *out)
{
    const tn_transport_info info = {
        .struct_size = out->struct_size, .message_max = UINT64_MAX, .pieces_max = PIECES_MAX};

    (void)t;
    memcpy(out, &info, out->struct_size < sizeof info ? out->struct_size : sizeof info);
}

static void transport_disconnect(tn_link *l)
{
    const head bye = {.magic = MAGIC, .kind = FRAME_BYE};

    if (l->state == OPEN && !(l->queue && l->queue->done))
        (void)!send(l->fd, &bye, sizeof bye, MSG_NOSIGNAL);
    tcp_link_end(l, TN_E_CANCELLED, "disconnected");
}

/* What is told to nobody. */
static void events_drop(tn_transport *t)
{
    while (t->first) {
        event *e = tcp_event_pop(t);

        if (e->kind == TN_EVENT_RECV)
            tcp_incoming_free(t, (incoming *)e);
        else if (e->kind == TN_EVENT_SENT)
            free(e);
        else if (e->kind == TN_EVENT_DOWN)
            free(e->link);
    }
}

/* Nothing waits any more, here or in the system. */
static bool all_sent(const tn_transport *t)
{
    int left = 0;

    for (const tn_link *l = t->links; l; l = l->next)
        if (l->seen && (l->queue || (!ioctl(l->fd, SIOCOUTQ, &left) && left)))
            return false;
    return true;
}

/* What comes in meanwhile is read and forgotten: a connection that is closed with unread bytes loses those
 * that it was still to send. */
static void transport_close(tn_transport *t, uint64_t timeout_ns)
{
    const uint64_t from = now_ns();
    bool woken = false;

    if (!t)
        return;
    for (tn_link *l = t->links; l; l = l->next)
        if (l->seen && tcp_frame_queue(l, FRAME_BYE, INT64_MIN))
            tcp_link_arm(l);
    do {
        events_drop(t);
        tcp_starved_serve(t);
    } while (!all_sent(t) && now_ns() - from < timeout_ns && !transport_turn(t, TURN_NS, &woken, NULL));
    while (t->links)
        tcp_link_end(t->links, TN_E_CANCELLED, "closed");
    events_drop(t);
    gone_free(t);
    if (t->listener >= 0)
        (void)close(t->listener);
    (void)close(t->epoll);
    (void)close(t->wake);
    free(t);
}

static const char *transport_statistics(tn_transport *t)
{
    (void)snprintf(t->statistics, sizeof t->statistics,
                   "{\"links\":%u,\"strangers\":%u,\"refused\":%llu,\"sent\":%llu,\"received\":%llu,"
                   "\"held_bytes\":%llu}",
                   t->open, t->strangers, (unsigned long long)t->refused, (unsigned long long)t->sent,
                   (unsigned long long)t->received, (unsigned long long)t->held);
    return t->statistics;
}

static void transport_release(tn_transport *t, void *held)
{
    tcp_incoming_free(t, held); /* starved links go on in `poll` */
}

static const tn_transport_ops transport_ops = {
    .head = TN_CAPABILITY(tn_transport_ops, statistics, TN_KIND_TRANSPORT, "acme_tcp"),
    .open = transport_open,
    .info = transport_info,
    .listen = tcp_listen,
    .connect = tcp_connect,
    .send = tcp_send,
    .poll = transport_poll,
    .wake = transport_wake,
    .release = transport_release,
    .disconnect = transport_disconnect,
    .close = transport_close,
    .statistics = transport_statistics,
};

/* ---- the plugin --------------------------------------------------------------------------------------- */

static const tn_option_row stall_row = {(uint32_t)TN_END(tn_option_row, max),
                                        0,
                                        "stall_ms",
                                        "int",
                                        NULL,
                                        "10000",
                                        "longest time in which a peer answers, or a message stops half way",
                                        "1.0",
                                        1,
                                        86400000};
static const tn_option_row *const rows[] = {&stall_row, NULL};
static const tn_option_table options = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "acme-transport"), .rows = rows};
static const tn_capability *const capabilities[] = {&transport_ops.head, &options.head, NULL};

static tn_status init(const tn_host *host, void **self, tn_err *err)
{
    const tn_options_service *o = (const tn_options_service *)host->service(host, TN_SERVICE_OPTIONS);
    int64_t stall_ms = STALL_MS;
    plugin *p;

    if (o && o->integer(host, "stall_ms", STALL_MS, &stall_ms))
        return tn_fail(err, TN_E_ARG, "stall_ms is a number of milliseconds");
    if (stall_ms < 1 || stall_ms > 86400000)
        return tn_fail(err, TN_E_ARG, "stall_ms is at least 1 and at most a day");
    if (!(p = malloc(sizeof *p)))
        return tn_fail(err, TN_E_NOMEM, "out of memory for the plugin");
    p->stall_ns = (uint64_t)stall_ms * 1000000;
    *self = p;
    return TN_OK;
}

static void fini(void *self)
{
    free(self);
}

TN_PLUGIN_DEFINE("acme-transport", "1.0.0", "Acme", "Apache-2.0", "a transport over TCP", "",
                 "transport:acme_tcp options:acme-transport", init, fini, NULL, capabilities);

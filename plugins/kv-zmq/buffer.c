/*
 * Connections below libzmq: whose a descriptor is, and how much of what it sends lies in the system.
 *
 * TCP by itself takes more and more until packets are lost. Where n nodes send to n others, the bytes of all
 * connections meet at each link, and the first values of a round wait behind those that are needed last. So a
 * connection to another machine nearby has room for a few times what is on its way (room.h). The rate grows
 * with the room as long as its link is not full, so a faster link gets more at each look. Both ends on one
 * machine, or far apart: as the system likes.
 */
#include "kv_zmq.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <unistd.h>

#include "../common/place.h"
#include "room.h"

#define LOOK_NS 10000000u /* between two looks at a connection that sends */
#define BUSY_US 5000u     /* of these, in which it had something on its way: less tells nothing */

typedef struct ends {
    struct sockaddr_storage own, peer;
} ends;

/* The descriptor is libzmq's, which may close it at any moment, and its number may be another file's then. So
 * a duplicate is looked at: whatever it is, it stays that. -1: it is no connection. */
static int copy_of(int fd, ends *out)
{
    const int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    socklen_t own_bytes = sizeof out->own, peer_bytes = sizeof out->peer;

    if (copy < 0)
        return -1;
    if (!getsockname(copy, (struct sockaddr *)(void *)&out->own, &own_bytes) &&
        !getpeername(copy, (struct sockaddr *)(void *)&out->peer, &peer_bytes) &&
        (out->own.ss_family == AF_INET || out->own.ss_family == AF_INET6))
        return copy;
    (void)close(copy);
    return -1;
}

void tnzmq_kick(const tnzmq_door *d, int fd)
{
    ends e = {0};
    const int copy = copy_of(fd, &e);

    if (copy < 0)
        return;
    if (ntohs(*port_of(&e.own)) == d->port)
        (void)shutdown(copy, SHUT_RDWR);
    (void)close(copy);
}

static bool one_machine(const ends *e)
{
    const struct sockaddr_in *own = (const void *)&e->own, *peer = (const void *)&e->peer;
    const struct sockaddr_in6 *own6 = (const void *)&e->own, *peer6 = (const void *)&e->peer;

    if (is_loopback(&e->peer))
        return true;
    return e->own.ss_family == AF_INET ? own->sin_addr.s_addr == peer->sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&own6->sin6_addr, &peer6->sin6_addr);
}

static void room_free(int fd)
{
#ifdef SO_BUF_LOCK
    const int none = 0;

    (void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &none, sizeof none);
#else
    (void)fd;
#endif
}

/* A room that the system does not allow (net.core.wmem_max) would be less than it takes by itself. */
static void room_set(int fd, int room)
{
    socklen_t bytes = sizeof(int);
    int now = 0;

    if (!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) &&
        !getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &now, &bytes) && now / 2 < room)
        room_free(fd);
}

/* By what came out at the other end since the last look, while something was on its way. */
static void room_find(tnzmq_channel *c, int fd, uint32_t links)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    uint64_t busy_us, room;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
        bytes < offsetof(struct tcp_info, tcpi_busy_time) + sizeof info.tcpi_busy_time)
        return;
    busy_us = info.tcpi_busy_time - c->busy_us;
    if (c->room && busy_us < BUSY_US)
        return;
    room = tnzmq_room(busy_us < BUSY_US ? 0 : (info.tcpi_bytes_acked - c->acked) * 1000000u / busy_us,
                      info.tcpi_min_rtt, links);
    c->busy_us = info.tcpi_busy_time;
    c->acked = info.tcpi_bytes_acked;
    if (room != TNZMQ_ROOM_ANY)
        room_set(fd, (int)room);
    else if (c->room != room)
        room_free(fd);
    c->room = room;
}

void tnzmq_room_fit(tn_link *link)
{
    const tn_transport *t = link->t;
    tnzmq_channel *c = &link->channel[TNZMQ_BULK];
    const uint64_t now = monotonic_ns();
    ends e = {0};
    int copy;

    if (now < c->look_ns)
        return;
    c->look_ns = t->plugin->send_bytes ? UINT64_MAX : now + LOOK_NS;
    if (t->plugin->send_bytes || (copy = copy_of(c->fd, &e)) < 0)
        return;
    if (link->dialled ? ntohs(*port_of(&e.peer)) == link->place.port
                      : ntohs(*port_of(&e.own)) == t->door[TNZMQ_BULK].port) {
        if (one_machine(&e))
            c->look_ns = UINT64_MAX;
        else
            room_find(c, copy, t->links_count);
    }
    (void)close(copy);
}

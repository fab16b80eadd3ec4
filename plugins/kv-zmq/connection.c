/*
 * Connections below libzmq: whose a descriptor is, how one is ended, and the size of its send buffer.
 *
 * The kernel lets a send buffer grow until packets are lost. Where n nodes send to n others, the bytes of all
 * connections meet at each link, and the first values of a round wait behind those that are needed last. So
 * the buffer of a connection to another host nearby holds a few times what is on its way (sendbuf.h).
 */
#include "kv_zmq.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <unistd.h>

#define LOOK_NS 10000000u /* between two looks at a connection that sends */
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.14 */
#endif

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

static bool one_host(const ends *e)
{
    const struct sockaddr_in *own = (const void *)&e->own, *peer = (const void *)&e->peer;
    const struct sockaddr_in6 *own6 = (const void *)&e->own, *peer6 = (const void *)&e->peer;

    if (is_loopback(&e->peer))
        return true;
    return e->own.ss_family == AF_INET ? own->sin_addr.s_addr == peer->sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&own6->sin6_addr, &peer6->sin6_addr);
}

/* To a buffer that the kernel tunes again. False: it cannot be had any more. */
static bool tuned_again(int fd)
{
    const int none = 0;

    return !setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &none, sizeof none);
}

/* On a socket that nobody uses: the largest send buffer that the system allows (net.core.wmem_max), or 0
 * where there is no way back to a tuned one. */
uint64_t tnzmq_sendbuf_most(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), large = 1 << 30;
    socklen_t bytes = sizeof(int);
    int most = 0;

    if (fd < 0)
        return 0;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large) ||
        getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, &bytes) || !tuned_again(fd))
        most = 0;
    (void)close(fd);
    return (uint64_t)most / 2; /* the kernel says twice what it was told */
}

static bool measure(int fd, tnzmq_measured *out)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ||
        bytes < offsetof(struct tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited)
        return false;
    *out = (tnzmq_measured){.acked = info.tcpi_bytes_acked,
                            .busy_us = info.tcpi_busy_time - info.tcpi_rwnd_limited,
                            .round_us = info.tcpi_min_rtt};
    return true;
}

static void sendbuf_set(tnzmq_channel *c, int fd, const tn_transport *t)
{
    const uint64_t before = c->sendbuf.bytes;
    tnzmq_measured now;
    uint64_t bytes;
    int size;

    if (!measure(fd, &now) ||
        !(bytes = tnzmq_sendbuf_next(&c->sendbuf, &now, t->links_count, t->sendbuf_most)) || bytes == before)
        return;
    size = (int)bytes; /* at most sendbuf_most */
    if (bytes != TNZMQ_SENDBUF_TUNED)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    else if (before)
        (void)tuned_again(fd);
}

void tnzmq_sendbuf_fit(tn_link *link)
{
    const tn_transport *t = link->t;
    tnzmq_channel *c = &link->channel[TNZMQ_BULK];
    const uint64_t now = monotonic_ns();
    ends e = {0};
    int copy;

    if (now < c->look_ns)
        return;
    c->look_ns = t->sendbuf_most ? now + LOOK_NS : UINT64_MAX;
    if (!t->sendbuf_most || (copy = copy_of(c->fd, &e)) < 0)
        return;
    if (link->dialled ? ntohs(*port_of(&e.peer)) == link->at.port
                      : ntohs(*port_of(&e.own)) == t->door[TNZMQ_BULK].port) {
        if (one_host(&e))
            c->look_ns = UINT64_MAX;
        else
            sendbuf_set(c, copy, t);
    }
    (void)close(copy);
}

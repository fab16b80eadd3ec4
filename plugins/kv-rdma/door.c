/* Places, and the sockets of TCP at which links begin. */
#include "kv_rdma.h"

#include "../common/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- listening ---------------------------------------------------------------------------------------- */

tn_status tnrdma_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                        tn_err *err)
{
    char text[TN_TRANSPORT_ADDRESS_MAX];
    const int one = 1;
    place p = {0};
    socklen_t bytes = sizeof p.address;
    tn_status st;
    int fd;

    if (t->listener >= 0)
        return tn_fail(err, TN_E_STATE, "it listens already");
    if ((st = place_read(&t->config, where, strlen(where), true, &p, err)))
        return st;
    fd = socket(p.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(fd, (struct sockaddr *)&p.address, p.bytes) || listen(fd, SOMAXCONN) ||
        getsockname(fd, (struct sockaddr *)&p.address, &bytes) || !ring_watch(t, fd, NULL)) {
        st = fail_system(err, where);
        if (fd >= 0)
            (void)close(fd);
        return st;
    }
    t->listener = fd;
    p.port = ntohs(*port_of(&p.address));
    place_print(&p, text, sizeof text);
    *address_bytes = (uint32_t)strlen(text);
    memcpy(address, text, *address_bytes);
    return TN_OK;
}

/* Each packet is answered, and waits for nothing. */
static void socket_set(int fd)
{
    const int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

void tnrdma_accept(tn_transport *t)
{
    for (int i = 0; i < RING_ROUND_CALLERS; i++) {
        place p = {.bytes = sizeof p.address};
        const int fd = ring_accept(t, (struct sockaddr *)&p.address, &p.bytes);
        tn_link *l;

        if (fd < 0)
            return;
        ring_stranger_room(t);
        socket_set(fd);
        p.port = ntohs(*port_of(&p.address));
        if ((l = ring_link_create(t, fd, false, RING_GREETING)))
            place_print(&p, l->peer, sizeof l->peer);
    }
}

/* ---- calling ------------------------------------------------------------------------------------------ */

tn_status tnrdma_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                         tn_err *err)
{
    place p = {0};
    tn_link *l;
    tn_status st;
    int fd;

    if (t->open >= t->config.links_max)
        return tn_fail(err, TN_E_STATE, "there are links_max links already");
    if ((st = place_read(&t->config, address, address_bytes, false, &p, err)))
        return st;
    fd = socket(p.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        socket_set(fd);
    if (fd < 0 || !(l = ring_link_create(t, fd, true, RING_CALLING)))
        return fail_system(err, "no connection can be made");
    place_print(&p, l->peer, sizeof l->peer);
    if (connect(fd, (struct sockaddr *)&p.address, p.bytes) && errno != EINPROGRESS)
        ring_link_end(l, TN_E_PEER, errno == ECONNREFUSED ? "nobody listens there" : strerror(errno));
    *out = l;
    return TN_OK;
}

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

#define ROUND_MAX 32 /* callers before others have their turn */

/* ---- places ------------------------------------------------------------------------------------------- */

static void place_print(const place *p, char *out, size_t bytes)
{
    char host[INET6_ADDRSTRLEN + 8] = "?";

    (void)getnameinfo((const struct sockaddr *)&p->address, p->bytes, host, sizeof host, NULL, 0,
                      NI_NUMERICHOST);
    (void)snprintf(out, bytes, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)p->port);
}

/* ---- listening ---------------------------------------------------------------------------------------- */

tn_status tnrdma_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                        tn_err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    char text[TN_TRANSPORT_ADDRESS_MAX];
    const int one = 1;
    place p = {0};
    socklen_t bytes = sizeof p.address;
    tn_status st;
    int fd;

    if (t->listener >= 0)
        return tn_fail(err, TN_E_STATE, "it listens already");
    if ((st = place_read(&t->config, where, strlen(where), &p, err)))
        return st;
    fd = socket(p.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(fd, (struct sockaddr *)&p.address, p.bytes) || listen(fd, SOMAXCONN) ||
        getsockname(fd, (struct sockaddr *)&p.address, &bytes) ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e)) {
        st = tnrdma_fail_system(err, where);
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

void tnrdma_listener_arm(tn_transport *t, bool deaf)
{
    struct epoll_event e = {.events = deaf ? 0u : EPOLLIN, .data.ptr = NULL};

    if (t->listener >= 0 && t->deaf != deaf && !epoll_ctl(t->epoll, EPOLL_CTL_MOD, t->listener, &e))
        t->deaf = deaf;
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
    for (int i = 0; i < ROUND_MAX; i++) {
        place p = {.bytes = sizeof p.address};
        const int fd =
            accept4(t->listener, (struct sockaddr *)&p.address, &p.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        tn_link *oldest = NULL, *l;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                tnrdma_listener_arm(t, true); /* until the next poll, or the end of a link */
            return;
        }
        for (l = t->strangers >= TNRDMA_STRANGERS_MAX ? t->links : NULL; l; l = l->next)
            if (!l->seen)
                oldest = l; /* new ones are in front */
        if (oldest)
            tnrdma_link_end(oldest, TN_E_PEER, "others came");
        socket_set(fd);
        p.port = ntohs(*port_of(&p.address));
        if ((l = tnrdma_link_create(t, fd, false)))
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
    if ((st = place_read(&t->config, address, address_bytes, &p, err)))
        return st;
    if (!p.port)
        return tn_fail(err, TN_E_ARG, "nobody listens on port 0");
    fd = socket(p.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        socket_set(fd);
    if (fd < 0 || !(l = tnrdma_link_create(t, fd, true)))
        return tnrdma_fail_system(err, "no connection can be made");
    place_print(&p, l->peer, sizeof l->peer);
    if (connect(fd, (struct sockaddr *)&p.address, p.bytes) && errno != EINPROGRESS)
        tnrdma_link_end(l, TN_E_PEER, errno == ECONNREFUSED ? "nobody listens there" : strerror(errno));
    *out = l;
    return TN_OK;
}

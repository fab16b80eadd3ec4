/*
 * Addresses, and how connections begin.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "acme_transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_loopback(const struct sockaddr *a)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static bool is_any(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return !((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* "HOST:PORT", "[HOST]:PORT" */
static tn_status address_read(const tn_transport *t, const char *text, uint64_t length, struct addrinfo **out,
                              tn_err *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[TN_TRANSPORT_ADDRESS_MAX + 1] = "", *port, *name = host, *end;
    int failed;

    if (length < sizeof host)
        memcpy(host, text, length);
    if (!(port = strrchr(host, ':')) || strlen(host) != length || port == host)
        return tn_fail(err, TN_E_ARG, "an address is HOST:PORT");
    *port++ = '\0';
    if (*name == '[' && port - name > 2 && port[-2] == ']') {
        port[-2] = '\0';
        name++;
    }
    if (*port < '0' || *port > '9' || strtoul(port, &end, 10) > UINT16_MAX || *end)
        return tn_fail(err, TN_E_ARG, "a port is a number up to 65535");
    if ((failed = getaddrinfo(name, port, &hints, out)))
        return failed == EAI_MEMORY ? tn_fail(err, TN_E_NOMEM, "out of memory for an address")
                                    : tn_fail(err, TN_E_ARG, gai_strerror(failed));
    if (is_any((*out)->ai_addr) || (!is_loopback((*out)->ai_addr) && !(t->config.flags & TN_OPEN_INSECURE))) {
        const bool any = is_any((*out)->ai_addr);

        freeaddrinfo(*out);
        return any ? tn_fail(err, TN_E_ARG, "an address is that of one interface")
                   : tn_fail(
                         err, TN_E_STATE,
                         "acme_tcp does not encrypt: it leaves loopback with kvstore.security = none only");
    }
    return TN_OK;
}

tn_status tcp_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes, tn_err *err)
{
    char host[INET6_ADDRSTRLEN + 8], port[8], text[TN_TRANSPORT_ADDRESS_MAX];
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    struct addrinfo *a;
    const int one = 1;
    tn_status st;
    int fd;

    if (t->listener >= 0)
        return tn_fail(err, TN_E_STATE, "it listens already");
    if ((st = address_read(t, where, strlen(where), &a, err)))
        return st;
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, SOMAXCONN) ||
        getsockname(fd, (struct sockaddr *)&bound, &length) ||
        getnameinfo((struct sockaddr *)&bound, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) ||
        epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &e)) {
        st = tcp_fail_system(err, where);
        if (fd >= 0)
            (void)close(fd);
        freeaddrinfo(a);
        return st;
    }
    *address_bytes =
        (uint32_t)snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    memcpy(address, text, *address_bytes);
    t->listener = fd;
    freeaddrinfo(a);
    return TN_OK;
}

tn_status tcp_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                      tn_err *err)
{
    struct addrinfo *a;
    tn_link *l;
    tn_status st;
    int fd;

    if (t->open >= t->config.links_max)
        return tn_fail(err, TN_E_STATE, "there are links_max links already");
    if ((st = address_read(t, address, address_bytes, &a, err)))
        return st;
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || !(l = tcp_link_create(t, fd, true))) {
        freeaddrinfo(a);
        return tcp_fail_system(err, "no connection can be made");
    }
    if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
        tcp_link_end(l, TN_E_PEER, "no connection: %s", strerror(errno));
    else if (!tcp_frame_queue(l, FRAME_CALL, RANK_HELLO))
        tcp_link_end(l, TN_E_PEER, "out of memory");
    freeaddrinfo(a);
    *out = l;
    return TN_OK;
}

void tcp_accept(tn_transport *t)
{
    for (uint32_t i = 0; i < ROUND_MAX; i++) {
        const int fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        tn_link *oldest = NULL;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                tcp_listener_arm(t, true); /* until the next poll, or the end of a link */
            return;
        }
        for (tn_link *l = t->strangers >= STRANGERS_MAX ? t->links : NULL; l; l = l->next)
            if (!l->seen)
                oldest = l; /* new ones are in front */
        if (oldest)
            tcp_link_end(oldest, TN_E_PEER, "others came");
        (void)tcp_link_create(t, fd, false);
    }
}

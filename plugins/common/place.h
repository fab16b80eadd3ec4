/* On the host, for plugins of transports: the addresses of TCP at which links begin, as text and as sockets
 * have them. */
#ifndef TNB_PLACE_H
#define TNB_PLACE_H

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tenon/plugin/transport.h"
#include "tenon/plugin/util.h"

typedef struct place {
    struct sockaddr_storage address; /* with the port */
    socklen_t bytes;
    uint16_t port;
} place;

static inline uint16_t *port_of(struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET ? &((struct sockaddr_in *)(void *)a)->sin_port
                                   : &((struct sockaddr_in6 *)(void *)a)->sin6_port;
}

static inline bool is_loopback(const struct sockaddr_storage *a)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;

    if (a->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static inline bool is_any(const struct sockaddr_storage *a)
{
    if (a->ss_family == AF_INET)
        return !((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr;
    return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static inline tn_status host_find(const char *host, place *out, tn_err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &list);

    hints.ai_flags = 0;
    if (failed == EAI_NONAME)
        failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed)
        return failed == EAI_MEMORY
                   ? tn_fail(err, TN_E_NOMEM, "out of memory for an address")
                   : tn_failf(err, TN_E_ARG, "host \"%.100s\": %s", host, gai_strerror(failed));
    out->bytes = list->ai_addrlen;
    memcpy(&out->address, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return TN_OK;
}

/* "HOST:PORT" or "[HOST]:PORT". Without a secret only loopback, unless the options say insecure. TN_E_ARG,
 * TN_E_STATE, TN_E_NOMEM. */
static inline tn_status place_read(const tn_transport_config *config, const char *text, uint64_t length,
                                   place *out, tn_err *err)
{
    char host[TN_TRANSPORT_ADDRESS_MAX + 1] = "", *port, *name = host;
    unsigned long number = 0;
    tn_status st;

    if (length < sizeof host)
        memcpy(host, text, length);
    if (strlen(host) != length || !(port = strrchr(host, ':')) || port == host)
        return tn_fail(err, TN_E_ARG, "an address is HOST:PORT");
    *port++ = '\0';
    if (*name == '[' && port - name > 2 && port[-2] == ']') {
        port[-2] = '\0';
        name++;
    }
    if (!*port || strlen(port) > 5 || strspn(port, "0123456789") != strlen(port) ||
        (number = strtoul(port, NULL, 10)) > UINT16_MAX)
        return tn_fail(err, TN_E_ARG, "a port is a number up to 65535");
    if ((st = host_find(name, out, err)))
        return st;
    if (is_any(&out->address))
        return tn_fail(err, TN_E_ARG, "an address is that of one interface");
    if (!is_loopback(&out->address) && !config->secret && !(config->flags & TN_OPEN_INSECURE))
        return tn_fail(err, TN_E_STATE, "without a secret only loopback addresses are used");
    out->port = (uint16_t)number;
    *port_of(&out->address) = htons(out->port);
    return TN_OK;
}

static inline void place_print(const place *p, char *out, size_t bytes)
{
    char host[INET6_ADDRSTRLEN + 8] = "?";

    (void)getnameinfo((const struct sockaddr *)&p->address, p->bytes, host, sizeof host, NULL, 0,
                      NI_NUMERICHOST);
    (void)snprintf(out, bytes, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)p->port);
}

#endif

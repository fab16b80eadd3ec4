/* On the host, for plugins of transports: the addresses of TCP at which links begin, as text and as sockets
 * have them. */
#ifndef TNB_PLACE_H
#define TNB_PLACE_H

#include <arpa/inet.h>
#include <ifaddrs.h>
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

/* False: an address of another kind, or one that names no place for peers: that stands for all addresses of a
 * machine, or needs an interface beside it. */
static inline bool address_take(const struct sockaddr *from, socklen_t bytes, place *out)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;

    if (from->sa_family == AF_INET
            ? !((const struct sockaddr_in *)(const void *)from)->sin_addr.s_addr
            : from->sa_family != AF_INET6 || IN6_IS_ADDR_UNSPECIFIED(six) || IN6_IS_ADDR_LINKLOCAL(six))
        return false;
    memcpy(&out->address, from, bytes);
    out->bytes = bytes;
    return true;
}

/* The IPv4 address of an interface, or else its IPv6 one. */
static inline bool interface_find(const char *name, place *out)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list))
        return false;
    for (int six = 0; six < 2 && !found; six++)
        for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
            found = i->ifa_addr && i->ifa_addr->sa_family == (six ? AF_INET6 : AF_INET) &&
                    !strcmp(i->ifa_name, name) &&
                    address_take(i->ifa_addr, six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                                 out);
    freeifaddrs(list);
    return found;
}

static inline tn_status host_find(const char *host, place *out, tn_err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(host, NULL, &hints, &list);
    bool found = false;

    hints.ai_flags = 0;
    if (failed == EAI_NONAME)
        failed = getaddrinfo(host, NULL, &hints, &list);
    if (failed)
        return failed == EAI_MEMORY
                   ? tn_fail(err, TN_E_NOMEM, "out of memory for an address")
                   : tn_failf(err, TN_E_ARG, "host \"%.100s\": %s", host, gai_strerror(failed));
    for (const struct addrinfo *i = list; i && !found; i = i->ai_next)
        found = address_take(i->ai_addr, i->ai_addrlen, out);
    freeaddrinfo(list);
    return found ? TN_OK
                 : tn_failf(err, TN_E_ARG, "host \"%.100s\" is not the address of one interface", host);
}

/* HOST and PORT of "HOST:PORT" or "[HOST]:PORT"; false: the text is neither. */
static inline bool place_split(const char *text, uint64_t length, char host[TN_TRANSPORT_ADDRESS_MAX + 1],
                               uint16_t *port)
{
    unsigned long number;
    char *colon;

    if (!text || length > TN_TRANSPORT_ADDRESS_MAX)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    for (const char *c = host; c < host + length; c++)
        if (*c <= ' ' || *c > '~' || *c == ';' || *c == '/')
            return false;
    colon = strrchr(host, ':');
    if (!colon || !colon[1] || strlen(colon) > 6 || colon[1 + strspn(colon + 1, "0123456789")])
        return false;
    number = strtoul(colon + 1, NULL, 10);
    *port = (uint16_t)number;
    *colon = '\0';
    if (*host == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        memmove(host, host + 1, strlen(host));
    } else if (strchr(host, ':')) {
        return false;
    }
    return *host && number <= UINT16_MAX;
}

/* Of `listen`, HOST may be the name of an interface, and PORT 0. Without a secret only loopback, unless the
 * options say insecure. TN_E_ARG, TN_E_STATE, TN_E_NOMEM. */
static inline tn_status place_read(const tn_transport_config *config, const char *text, uint64_t length,
                                   bool listen, place *out, tn_err *err)
{
    const int shown = length < 100 ? (int)length : 100;
    char host[TN_TRANSPORT_ADDRESS_MAX + 1];
    tn_status st;

    if (!place_split(text, length, host, &out->port))
        return tn_failf(err, TN_E_ARG, "\"%.*s\" is not HOST:PORT", text ? shown : 0, text ? text : "");
    if (!listen && !out->port)
        return tn_fail(err, TN_E_ARG, "nobody listens on port 0");
    if (!(listen && interface_find(host, out)) && (st = host_find(host, out, err)))
        return st;
    if (!is_loopback(&out->address) && !config->secret && !(config->flags & TN_OPEN_INSECURE))
        return tn_failf(err, TN_E_STATE, "%.100s is not this machine alone, and the job has no secret", host);
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

/* Where to listen and to connect: HOST:PORT to a numeric address, and whether it is this machine's alone. */
#include "kv_zmq.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "../common/place.h"

#define HOST_MAX 253 /* bytes of a DNS name */

/* HOST and PORT of "HOST:PORT", "[HOST]:PORT"; false: it is neither. */
static bool place_split(const char *text, size_t bytes, char host[HOST_MAX + 1], uint16_t *port)
{
    const char *end = memchr(text, '\0', bytes), *colon = NULL;
    size_t length;
    long number = 0;

    end = end ? end : text + bytes;
    for (const char *c = text; c < end; c++) {
        if (*c <= ' ' || *c > '~' || *c == ';' || *c == '/')
            return false;
        colon = *c == ':' ? c : colon;
    }
    if (!colon || end - colon < 2 || end - colon > 6)
        return false;
    for (const char *c = colon + 1; c < end; c++) {
        if (*c < '0' || *c > '9')
            return false;
        number = number * 10 + (*c - '0');
    }
    if (number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    if (*text == '[' && colon[-1] == ']') {
        text++;
        colon--;
    } else if (memchr(text, ':', (size_t)(colon - text))) {
        return false;
    }
    length = (size_t)(colon - text);
    if (!length || length > HOST_MAX)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    return true;
}

/* False: an address of another kind, or one that stands for all of a machine's. */
static bool place_take(const struct sockaddr *a, tnzmq_place *out)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr six;

    if (a->sa_family == AF_INET) {
        const struct in_addr four = ((const struct sockaddr_in *)(const void *)a)->sin_addr;

        if (!four.s_addr)
            return false;
        out->loopback = is_loopback((const void *)a);
        return inet_ntop(AF_INET, &four, out->host, sizeof out->host) != NULL;
    }
    if (a->sa_family != AF_INET6)
        return false;
    six = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&six) || IN6_IS_ADDR_LINKLOCAL(&six)) /* the latter needs an interface, too */
        return false;
    out->loopback = is_loopback((const void *)a);
    if (!inet_ntop(AF_INET6, &six, text, sizeof text))
        return false;
    (void)snprintf(out->host, sizeof out->host, "[%s]", text);
    return true;
}

static bool place_by_name(const char *host, int flags, tnzmq_place *out)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *list = NULL;
    bool found = false;

    if (getaddrinfo(host, NULL, &hints, &list))
        return false;
    for (const struct addrinfo *a = list; a && !found; a = a->ai_next)
        found = place_take(a->ai_addr, out);
    freeaddrinfo(list);
    return found;
}

/* The IPv4 address of an interface, or else its IPv6 one. */
static bool place_of_interface(const char *name, tnzmq_place *out)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list))
        return false;
    for (int family = AF_INET; !found; family = AF_INET6) {
        for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next)
            if (i->ifa_addr && i->ifa_addr->sa_family == family && !strcmp(i->ifa_name, name))
                found = place_take(i->ifa_addr, out);
        if (family == AF_INET6)
            break;
    }
    freeifaddrs(list);
    return found;
}

tn_status tnzmq_place_find(const char *text, size_t bytes, bool listen, tnzmq_place *out, tn_err *err)
{
    const int shown = bytes < 100 ? (int)bytes : 100;
    char host[HOST_MAX + 1];

    if (!text || !place_split(text, bytes, host, &out->port) || (!listen && !out->port))
        return tn_failf(err, TN_E_ARG, "\"%.*s\" is not HOST:PORT", text ? shown : 0, text ? text : "");
    if (place_by_name(host, AI_NUMERICHOST, out) || (listen && place_of_interface(host, out)) ||
        place_by_name(host, 0, out))
        return TN_OK;
    return tn_failf(err, TN_E_ARG, "%.100s is %s", host,
                    listen ? "neither one address of this machine nor one of its interfaces"
                           : "no address, and no name of one");
}

void tnzmq_place_print(const tnzmq_place *p, char out[80])
{
    (void)snprintf(out, 80, "%s:%u", p->host, (unsigned)p->port);
}

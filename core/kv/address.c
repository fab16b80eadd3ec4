/* Where a process listens: an address of the option, of an interface, or of the route to the scheduler. */
#include "kv/address.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool tni_kv_host_loopback(const char *host)
{
    return !*host || !strcmp(host, "localhost") || !strcmp(host, "::1") || !strncmp(host, "127.", 4);
}

tn_status tni_kv_place_text(const char *host, uint64_t port, char *out, size_t size)
{
    const bool colons = strchr(host, ':') && host[0] != '[';
    const int length = snprintf(out, size, colons ? "[%s]:%llu" : "%s:%llu", host, (unsigned long long)port);

    return length > 0 && (size_t)length < size ? TN_OK
                                               : tni_error(TN_E_ATTR, "a host of %zu bytes", strlen(host));
}

static bool numeric(const struct sockaddr *a, char *out, size_t size)
{
    const socklen_t bytes =
        a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    return !getnameinfo(a, bytes, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
}

tn_status tni_kv_host_of_interface(const char *interface, char *out, size_t size)
{
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all))
        return tni_error(TN_E_IO, "the network interfaces cannot be read: %s", strerror(errno));
    for (int v6 = 0; v6 < 2 && !found; v6++)
        for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
            found = i->ifa_addr && i->ifa_addr->sa_family == (v6 ? AF_INET6 : AF_INET) &&
                    !strcmp(i->ifa_name, interface) && numeric(i->ifa_addr, out, size);
    freeifaddrs(all);
    return found
               ? TN_OK
               : tni_error(TN_E_ATTR, "kvstore.interface: no interface \"%.60s\" with an address", interface);
}

/* A datagram socket that is connected sends nothing, but has chosen its address. */
tn_status tni_kv_host_of_route(const char *to, char *out, size_t size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *all = NULL;
    const int failed = getaddrinfo(to, "9", &hints, &all);
    bool found = false;

    if (failed)
        return tni_error(TN_E_IO, "kvstore.scheduler: host \"%.100s\": %s", to, gai_strerror(failed));
    for (const struct addrinfo *a = all; a && !found; a = a->ai_next) {
        struct sockaddr_storage own;
        socklen_t bytes = sizeof own;
        const int fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        found = fd >= 0 && !connect(fd, a->ai_addr, a->ai_addrlen) &&
                !getsockname(fd, (struct sockaddr *)&own, &bytes) &&
                numeric((const struct sockaddr *)&own, out, size);
        if (fd >= 0)
            (void)close(fd);
    }
    freeaddrinfo(all);
    return found ? TN_OK : tni_error(TN_E_IO, "there is no route to the scheduler's host %.100s", to);
}

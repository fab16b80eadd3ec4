/*
 * How ranks find each other: an abstract local socket whose name is made of the user and the job. Rank 0
 * listens there until all have come; the others try until it does. Only processes of the same user are let
 * in.
 */
#include "acme_collective.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define NAP_MS 2
#define JOIN_US 200000 /* for the first words of one that connects */

typedef struct join {
    uint32_t magic, rank, ranks;
} join;

static socklen_t name_of(const char *job, struct sockaddr_un *out)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (const char *at = job; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "acme_star-%u-%016llx",
                                        (unsigned)geteuid(), (unsigned long long)hash));
}

static bool same_user(int fd)
{
    struct ucred other = {.uid = (uid_t)-1};
    socklen_t bytes = sizeof other;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &bytes) && other.uid == geteuid();
}

/* Whether something comes on `fd` before `end_ns`. */
static bool comes(int fd, uint64_t end_ns)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    const uint64_t now = star_now_ns();

    return now < end_ns && poll(&file, 1, (int)((end_ns - now) / 1000000 % 1000) + 1) > 0;
}

/* One that connects and says which rank it is; another one is hung up on. */
static void join_take(tn_communicator *c, int listener)
{
    const struct timeval time = {.tv_usec = JOIN_US};
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    join j = {0};

    if (fd < 0)
        return;
    if (same_user(fd) && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) &&
        recv(fd, &j, sizeof j, MSG_WAITALL) == (ssize_t)sizeof j && j.magic == STAR_MAGIC &&
        j.ranks == c->ranks && j.rank && j.rank < c->ranks && c->peers[j.rank].fd < 0)
        c->peers[j.rank].fd = fd;
    else
        (void)close(fd);
}

static tn_status late(uint32_t rank, tn_err *err)
{
    return tn_failf(err, TN_E_TIMEOUT, "rank %u has not come", (unsigned)rank);
}

static tn_status hub_open(tn_communicator *c, const char *job, uint64_t end_ns, tn_err *err)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name;
    const socklen_t bytes = name_of(job, &name);
    uint32_t r = 1;
    bool there = false;

    while (fd >= 0 && !there && star_now_ns() < end_ns) /* a job of that name may still be beginning */
        if (!(there = !bind(fd, (struct sockaddr *)&name, bytes) && !listen(fd, SOMAXCONN)))
            (void)poll(NULL, 0, NAP_MS);
    while (there && r < c->ranks && star_now_ns() < end_ns) {
        if (comes(fd, end_ns))
            join_take(c, fd);
        while (r < c->ranks && c->peers[r].fd >= 0)
            r++;
    }
    if (fd >= 0)
        (void)close(fd);
    if (!there)
        return tn_fail(err, fd < 0 ? TN_E_IO : TN_E_TIMEOUT, "no socket, or another job has this name");
    if (r < c->ranks)
        return late(r, err);
    for (r = 1; r < c->ranks; r++)
        if (send(c->peers[r].fd, "", 1, MSG_NOSIGNAL) != 1)
            return tn_failf(err, TN_E_PEER, "rank %u has died", (unsigned)r);
    return TN_OK;
}

static tn_status other_open(tn_communicator *c, const char *job, uint64_t end_ns, tn_err *err)
{
    const join j = {.magic = STAR_MAGIC, .rank = c->rank, .ranks = c->ranks};
    struct sockaddr_un name;
    const socklen_t bytes = name_of(job, &name);
    char byte;

    while (star_now_ns() < end_ns) {
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
            return tn_fail(err, TN_E_IO, "no socket");
        if (!connect(fd, (struct sockaddr *)&name, bytes) && same_user(fd) &&
            send(fd, &j, sizeof j, MSG_NOSIGNAL) == (ssize_t)sizeof j) {
            while (!comes(fd, end_ns) && star_now_ns() < end_ns)
                ;
            if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
                c->peers[0].fd = fd;
                return TN_OK;
            }
        }
        (void)close(fd);
        (void)poll(NULL, 0, NAP_MS);
    }
    return late(0, err);
}

tn_status star_open(void *plugin, const tn_collective_config *config, tn_communicator **out, tn_err *err)
{
    const uint64_t now = star_now_ns(),
                   end_ns = config->timeout_ns < UINT64_MAX - now ? now + config->timeout_ns : UINT64_MAX;
    tn_communicator *c;
    tn_status st;

    (void)plugin;
    if (config->struct_size < TN_END(tn_collective_config, add) || config->flags || !config->add ||
        !config->job || config->rank >= config->ranks || config->ranks > STAR_RANKS_MAX)
        return tn_fail(err, TN_E_ARG, "no rank of a job of up to 64");
    if (!(c = calloc(1, sizeof *c)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    c->rank = config->rank;
    c->ranks = config->ranks;
    c->first = c->rank ? 0 : 1;
    c->end = c->rank ? 1 : c->ranks;
    c->add = config->add;
    for (uint32_t r = 0; r < STAR_RANKS_MAX; r++)
        c->peers[r].fd = -1;
    c->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    st = c->bell < 0 ? tn_fail(err, TN_E_IO, "no eventfd")
         : c->rank   ? other_open(c, config->job, end_ns, err)
                     : hub_open(c, config->job, end_ns, err);
    if (st) {
        star_free(c);
        return st;
    }
    *out = c;
    return TN_OK;
}

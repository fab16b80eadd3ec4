/*
 * Links: sockets to rank 0, which carry notes of a fixed size. Where nothing says where rank 0 is, ranks are
 * threads of this process and meet at a name of it.
 */
#include "kv_nccl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../common/place.h"

#define OUT_MAX (64u << 20) /* bytes that one may leave unread */
#define NAP_NS 20000000u

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

static tn_status address_of(const tn_collective_config *config, place *out, tn_err *err)
{
    const tn_transport_config any = {.flags = TN_OPEN_INSECURE};
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&out->address;
    int bytes;

    *out = (place){0};
    if (config->root)
        return place_read(&any, config->root, strlen(config->root), false, out, err);
    un->sun_family = AF_UNIX;
    bytes = snprintf(un->sun_path + 1, sizeof un->sun_path - 1, "tenon-nccl-%ld-%llx", (long)getpid(),
                     (unsigned long long)hash_of(config->job));
    out->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes);
    return TN_OK;
}

static int socket_make(const place *at)
{
    const int one = 1;
    const int fd = socket(at->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && at->address.ss_family != AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return fd;
}

tn_status tnnccl_listen(const tn_collective_config *config, int *fd, tn_err *err)
{
    place at;
    tn_status st = address_of(config, &at, err);
    int failure;

    if (st)
        return st;
    if ((*fd = socket_make(&at)) >= 0 && !bind(*fd, (const struct sockaddr *)(void *)&at.address, at.bytes) &&
        !listen(*fd, 128))
        return TN_OK;
    failure = errno;
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    return tn_failf(err, TN_E_IO, "rank 0 cannot listen at %.200s: %s",
                    config->root ? config->root : "its name", strerror(failure));
}

/* Where nobody listens at a port that the system may choose, a socket can come to be linked with itself. */
static bool meets_itself(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_bytes = sizeof own, peer_bytes = sizeof peer;

    return !getsockname(fd, (struct sockaddr *)(void *)&own, &own_bytes) && own.ss_family != AF_UNIX &&
           !getpeername(fd, (struct sockaddr *)(void *)&peer, &peer_bytes) && own_bytes == peer_bytes &&
           !memcmp(&own, &peer, own_bytes);
}

/* 1: it is up, 0: not so far, -1: it will not be. */
static int connect_try(int fd, const place *at)
{
    if (!connect(fd, (const struct sockaddr *)(const void *)&at->address, at->bytes) || errno == EISCONN)
        return meets_itself(fd) ? -1 : 1;
    return errno == EINPROGRESS || errno == EALREADY || errno == EINTR ? 0 : -1;
}

tn_status tnnccl_connect(const tn_collective_config *config, uint64_t end_ns, int *fd, tn_err *err)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    place at;
    tn_status st = address_of(config, &at, err);

    while (!st) {
        const int made = *fd = socket_make(&at);
        int up = made < 0 ? -1 : connect_try(made, &at);

        while (!up && tnnccl_now() < end_ns) {
            (void)nanosleep(&nap, NULL);
            up = connect_try(made, &at);
        }
        if (up > 0)
            return TN_OK;
        if (made >= 0)
            (void)close(made);
        *fd = -1;
        if (tnnccl_now() >= end_ns)
            st = tn_failf(err, TN_E_TIMEOUT, "rank 0 did not come within %.3g s: nobody answers at %.200s",
                          (double)config->timeout_ns / 1e9,
                          config->root ? config->root
                                       : "a name of this process; kvstore.scheduler and its port say where "
                                         "rank 0 of several processes is");
        else
            (void)nanosleep(&nap, NULL);
    }
    return st;
}

/* ---- notes --------------------------------------------------------------------------------------------- */

bool tnnccl_link_send(tnnccl_link *l, const tnnccl_note *note)
{
    if (l->fd < 0)
        return true;
    if (l->out_room - l->out_bytes < sizeof *note) {
        const uint64_t room = l->out_room ? 2 * l->out_room : 8 * sizeof *note;
        uint8_t *out = room > OUT_MAX ? NULL : realloc(l->out, room);

        if (!out)
            return false;
        l->out = out;
        l->out_room = room;
    }
    memcpy(l->out + l->out_bytes, note, sizeof *note);
    l->out_bytes += sizeof *note;
    return true;
}

bool tnnccl_link_flush(tnnccl_link *l)
{
    while (l->fd >= 0 && l->out_bytes) {
        const ssize_t sent = send(l->fd, l->out, l->out_bytes, MSG_NOSIGNAL);

        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        l->out_bytes -= (uint64_t)sent;
        memmove(l->out, l->out + sent, l->out_bytes);
    }
    return true;
}

int tnnccl_link_read(tnnccl_link *l)
{
    ssize_t got;

    if (l->fd < 0)
        return 0;
    got = recv(l->fd, (uint8_t *)&l->in + l->in_bytes, sizeof l->in - l->in_bytes, 0);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    l->in_bytes += (uint32_t)got;
    if (l->in_bytes < sizeof l->in)
        return 0;
    l->in_bytes = 0;
    l->in.text[sizeof l->in.text - 1] = '\0';
    return l->in.magic == TNNCCL_MAGIC && l->in.kind && l->in.kind < TNNCCL_KINDS ? 1 : -1;
}

void tnnccl_link_close(tnnccl_link *l)
{
    if (l->fd >= 0) {
        (void)tnnccl_link_flush(l);
        (void)shutdown(l->fd, SHUT_WR);
        (void)close(l->fd);
    }
    free(l->out);
    *l = (tnnccl_link){.fd = -1};
}

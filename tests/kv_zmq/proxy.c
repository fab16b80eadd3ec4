/* See proxy.h. One thread, which looks at all of its connections each time. */
#include "proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 16
#define PIECE 65536

typedef struct record {
    unsigned char *bytes;
    size_t count, room;
} record;

struct proxy {
    int listener, stop[2];
    uint16_t port;
    struct {
        int fd[2]; /* of the dialling side, of the other */
    } pair[PAIRS_MAX];
    int pairs;
    atomic_bool silent;
    pthread_t thread;
    pthread_mutex_t lock; /* of both records */
    record first, all;
};

static void record_add(record *r, const unsigned char *bytes, size_t count)
{
    if (r->count + count > r->room) {
        r->room = 2 * (r->count + count);
        r->bytes = realloc(r->bytes, r->room);
        if (!r->bytes)
            abort();
    }
    memcpy(r->bytes + r->count, bytes, count);
    r->count += count;
}

static int socket_at(const char *host, uint16_t port, bool listening)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    (void)inet_pton(AF_INET, host, &a.sin_addr);
    if (listening)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd >= 0 && (listening ? !bind(fd, (const struct sockaddr *)&a, sizeof a) && !listen(fd, 16)
                              : !connect(fd, (const struct sockaddr *)&a, sizeof a)))
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

int plain_connect(uint16_t port)
{
    return socket_at("127.0.0.1", port, false);
}

/* Passes on what has come from one side of a pair; false: that side is closed. */
static bool pass(proxy *p, int pair, int side)
{
    unsigned char bytes[PIECE];
    const ssize_t count = recv(p->pair[pair].fd[side], bytes, sizeof bytes, 0);

    if (count <= 0)
        return false;
    (void)pthread_mutex_lock(&p->lock);
    record_add(&p->all, bytes, (size_t)count);
    if (pair == 0 && side == 0)
        record_add(&p->first, bytes, (size_t)count);
    (void)pthread_mutex_unlock(&p->lock);
    for (ssize_t at = 0, n; at < count; at += n)
        if ((n = send(p->pair[pair].fd[!side], bytes + at, (size_t)(count - at), MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

static void pair_open(proxy *p)
{
    const int fd = accept(p->listener, NULL, NULL);
    const int other = fd < 0 || p->pairs == PAIRS_MAX ? -1 : plain_connect(p->port);

    if (other < 0) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    p->pair[p->pairs].fd[0] = fd;
    p->pair[p->pairs++].fd[1] = other;
}

static void pair_close(proxy *p, int pair)
{
    for (int side = 0; side < 2; side++) {
        if (p->pair[pair].fd[side] >= 0)
            (void)close(p->pair[pair].fd[side]);
        p->pair[pair].fd[side] = -1;
    }
}

static void *proxy_run(void *arg)
{
    proxy *p = arg;
    struct pollfd look[2 + 2 * PAIRS_MAX];

    for (;;) {
        const bool silent = atomic_load(&p->silent);

        look[0] = (struct pollfd){.fd = p->stop[0], .events = POLLIN};
        look[1] = (struct pollfd){.fd = silent ? -1 : p->listener, .events = POLLIN};
        for (int i = 0; i < 2 * p->pairs; i++)
            look[2 + i] = (struct pollfd){.fd = silent ? -1 : p->pair[i / 2].fd[i % 2], .events = POLLIN};
        if (poll(look, 2 + 2 * (nfds_t)p->pairs, -1) < 0)
            continue;
        if (look[0].revents) {
            char command = 0;

            if (read(p->stop[0], &command, 1) != 1 || command == 'q')
                return NULL;
            continue;
        }
        for (int i = 0, count = 2 * p->pairs; i < count; i++)
            if (look[2 + i].revents && !pass(p, i / 2, i % 2))
                pair_close(p, i / 2);
        if (look[1].revents)
            pair_open(p);
    }
}

proxy *proxy_open(uint16_t port)
{
    proxy *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    p->port = port;
    p->listener = socket_at("127.0.0.2", port, true);
    (void)pthread_mutex_init(&p->lock, NULL);
    if (p->listener < 0 || pipe(p->stop) || pthread_create(&p->thread, NULL, proxy_run, p))
        abort();
    return p;
}

void proxy_silence(proxy *p)
{
    atomic_store(&p->silent, true);
    if (write(p->stop[1], "s", 1) != 1)
        abort();
}

static size_t record_get(proxy *p, const record *r, const unsigned char **bytes)
{
    size_t count;

    (void)pthread_mutex_lock(&p->lock);
    count = r->count;
    *bytes = r->bytes;
    (void)pthread_mutex_unlock(&p->lock);
    return count;
}

size_t proxy_first(proxy *p, const unsigned char **bytes)
{
    return record_get(p, &p->first, bytes);
}

size_t proxy_all(proxy *p, const unsigned char **bytes)
{
    return record_get(p, &p->all, bytes);
}

void proxy_close(proxy *p)
{
    if (write(p->stop[1], "q", 1) != 1)
        abort();
    (void)pthread_join(p->thread, NULL);
    for (int i = 0; i < p->pairs; i++)
        pair_close(p, i);
    (void)close(p->listener);
    (void)close(p->stop[0]);
    (void)close(p->stop[1]);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->first.bytes);
    free(p->all.bytes);
    free(p);
}

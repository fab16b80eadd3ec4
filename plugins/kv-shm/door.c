/*
 * How links begin: places, and the handshake over a local socket.
 *
 *     caller                                listener
 *     HELLO nonce                   ->
 *                                   <-      WELCOME nonce, proof
 *     OFFER token, proof, file      ->
 *                                   <-      READY proof
 *
 * A proof is an HMAC by the job's secret over both nonces and the token. The file descriptor comes once both
 * know the secret, and both are of one user. PORT is that of a socket of TCP which is bound and never
 * listens: so numbers are free or taken for all transports alike, and nobody is here whom a network reaches.
 */
#include "kv_shm.h"

#include "../common/place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORT_TRIES 16 /* of free ports whose name somebody has taken */

/* ---- places ------------------------------------------------------------------------------------------- */

/* The abstract socket of a port; the bytes that are used of `out`. */
static socklen_t name_of(uint16_t port, struct sockaddr_un *out)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (
        socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                   (size_t)snprintf(out->sun_path + 1, sizeof out->sun_path - 1, TNSHM_NAME, (unsigned)port));
}

/* ---- listening ---------------------------------------------------------------------------------------- */

/* A socket of TCP at the place, which has its port then. -1: errno says why. */
static int port_hold(place *p)
{
    const int fd = socket(p->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = sizeof p->address;

    if (fd >= 0 && !bind(fd, (struct sockaddr *)&p->address, p->bytes) &&
        !getsockname(fd, (struct sockaddr *)&p->address, &bytes)) {
        p->port = ntohs(*port_of(&p->address));
        return fd;
    }
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static bool listener_open(tn_transport *t, place *p)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    struct sockaddr_un name;
    socklen_t bytes;

    if ((t->port = port_hold(p)) < 0)
        return false;
    bytes = name_of(p->port, &name);
    t->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (t->listener >= 0 && !bind(t->listener, (struct sockaddr *)&name, bytes) &&
        !listen(t->listener, SOMAXCONN) && !epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->listener, &e))
        return true;
    if (t->listener >= 0)
        (void)close(t->listener);
    (void)close(t->port);
    t->listener = t->port = -1;
    return false;
}

tn_status tnshm_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                       tn_err *err)
{
    char text[TN_TRANSPORT_ADDRESS_MAX], own[17];
    place p = {0};
    uint16_t wanted;
    tn_status st;

    if (t->listener >= 0)
        return tn_fail(err, TN_E_STATE, "it listens already");
    if ((st = place_read(&t->config, where, strlen(where), true, &p, err)))
        return st;
    wanted = p.port;
    for (int i = 0; t->listener < 0; i++) {
        *port_of(&p.address) = htons(wanted);
        if (!listener_open(t, &p) && (wanted || errno != EADDRINUSE || i == PORT_TRIES))
            return fail_system(err, where);
    }
    tnshm_host_name(own);
    *address_bytes = (uint32_t)snprintf(text, sizeof text, "%s/", own);
    place_print(&p, text + *address_bytes, sizeof text - *address_bytes);
    *address_bytes = (uint32_t)strlen(text);
    memcpy(address, text, *address_bytes);
    return TN_OK;
}

static bool same_user(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t bytes = sizeof peer;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) && peer.uid == geteuid();
}

void tnshm_accept(tn_transport *t)
{
    for (int i = 0; i < RING_ROUND_CALLERS; i++) {
        const int fd = ring_accept(t, NULL, NULL);

        if (fd < 0)
            return;
        if (!same_user(fd)) {
            t->refused++;
            (void)close(fd);
            continue;
        }
        ring_stranger_room(t);
        (void)ring_link_create(t, fd, false, RING_GREETING);
    }
}

/* ---- the handshake ------------------------------------------------------------------------------------ */

/* `file`: -1: none. */
static bool packet_send(tn_link *l, tnshm_packet *p, int file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec piece = {p, sizeof *p};
    struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};

    p->magic = TNSHM_MAGIC;
    if (file >= 0) {
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &file, sizeof file);
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
    }
    return sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *p;
}

/* False: nothing came. The text is set where it is none of the handshake; `*file` is open, or -1. */
static bool packet_receive(tn_link *l, tnshm_packet *p, int *file, const char **wrong)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec piece = {p, sizeof *p};
    struct msghdr m = {.msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_LEN(sizeof *file)}; /* CMSG_SPACE has room for a second one */
    const ssize_t n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n >= 0 && m.msg_controllen >= CMSG_LEN(sizeof *file) && control.head.cmsg_level == SOL_SOCKET &&
        control.head.cmsg_type == SCM_RIGHTS)
        memcpy(file, CMSG_DATA(&control.head), sizeof *file);
    if (n <= 0)
        *wrong = "the peer hangs up: it has another secret, or links enough";
    else if (n != (ssize_t)sizeof *p || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || p->magic != TNSHM_MAGIC)
        *wrong = "the peer speaks another protocol";
    return true;
}

static bool proof_right(const tn_link *l, char step, const tnshm_packet *p)
{
    uint8_t right[PROOF_BYTES];

    tnshm_proof(l, step, right);
    return proof_equal(right, p->proof);
}

static const char *hello_take(tn_link *l, const tnshm_packet *p)
{
    tnshm_packet answer = {.kind = TNSHM_WELCOME};

    memcpy(l->nonce[0], p->nonce, sizeof p->nonce);
    if (random_fill(l->nonce[1], sizeof l->nonce[1], NULL))
        return "there are no random numbers";
    memcpy(answer.nonce, l->nonce[1], sizeof answer.nonce);
    tnshm_proof(l, 'w', answer.proof);
    l->state = RING_OFFERED;
    return packet_send(l, &answer, -1) ? NULL : "the peer does not listen";
}

static const char *welcome_take(tn_link *l, const tnshm_packet *p)
{
    tnshm_packet answer = {.kind = TNSHM_OFFER, .ring_bytes = (uint64_t)l->t->plugin->ring_bytes};
    const char *wrong = NULL;
    int file = -1;

    memcpy(l->nonce[1], p->nonce, sizeof p->nonce);
    if (!proof_right(l, 'w', p))
        return "the peer has another secret";
    if (random_fill(l->token, sizeof l->token, NULL) || tnshm_area_create(l, answer.ring_bytes, &file, NULL))
        return "there is no memory to share with the peer";
    memcpy(answer.token, l->token, sizeof answer.token);
    tnshm_proof(l, 'o', answer.proof);
    l->state = RING_OFFERED;
    if (!packet_send(l, &answer, file))
        wrong = "the peer does not listen";
    (void)close(file);
    return wrong;
}

static const char *offer_take(tn_link *l, const tnshm_packet *p, int file)
{
    tn_transport *t = l->t;
    tnshm_packet answer = {.kind = TNSHM_READY};
    const char *wrong;

    memcpy(l->token, p->token, sizeof l->token);
    if (!proof_right(l, 'o', p))
        return "the peer has another secret";
    if (file < 0)
        return "the peer offers no memory";
    if ((wrong = tnshm_area_take(l, file, p->ring_bytes)))
        return wrong;
    if (t->open >= t->config.links_max)
        return "there are links_max links";
    tnshm_proof(l, 'r', answer.proof);
    if (!packet_send(l, &answer, -1))
        return "the peer does not listen";
    ring_link_seen(l);
    ring_link_up(l);
    return NULL;
}

static const char *ready_take(tn_link *l, const tnshm_packet *p)
{
    if (!proof_right(l, 'r', p))
        return "the peer has another secret";
    ring_link_up(l);
    return NULL;
}

void tnshm_greet(tn_link *l)
{
    const bool offered = l->state == RING_OFFERED;
    const uint32_t wanted = l->called ? (offered ? TNSHM_READY : TNSHM_WELCOME)
                            : offered ? TNSHM_OFFER
                                      : TNSHM_HELLO;
    const char *wrong = NULL;
    tnshm_packet p = {0};
    int file = -1;

    if (!packet_receive(l, &p, &file, &wrong))
        return;
    if (!wrong && (p.kind != wanted || (file >= 0 && wanted != TNSHM_OFFER)))
        wrong = "the peer says what is not its turn";
    if (!wrong)
        wrong = wanted == TNSHM_HELLO     ? hello_take(l, &p)
                : wanted == TNSHM_WELCOME ? welcome_take(l, &p)
                : wanted == TNSHM_OFFER   ? offer_take(l, &p, file)
                                          : ready_take(l, &p);
    if (file >= 0)
        (void)close(file);
    if (wrong)
        ring_link_end(l, TN_E_PEER, wrong);
}

/* ---- calling ------------------------------------------------------------------------------------------ */

/* Whether the place is this host's, which a socket that is bound there tells. */
static tn_status place_own(place *p, tn_err *err)
{
    const uint16_t port = p->port;
    int fd;

    *port_of(&p->address) = 0;
    fd = port_hold(p);
    p->port = port;
    if (fd >= 0)
        (void)close(fd);
    else if (errno == EADDRNOTAVAIL)
        return tn_fail(err, TN_E_ARG, "the peer is on another host, and shared memory is of one");
    return fd >= 0 ? TN_OK : fail_system(err, "the peer's address");
}

tn_status tnshm_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                        tn_err *err)
{
    const char *text = address, *slash = memchr(address, '/', address_bytes);
    tnshm_packet hello = {.kind = TNSHM_HELLO};
    struct sockaddr_un name;
    char own[17];
    place p = {0};
    socklen_t bytes;
    tn_link *l;
    tn_status st;
    int fd;

    tnshm_host_name(own);
    if (slash && ((size_t)(slash - text) != strlen(own) || memcmp(text, own, strlen(own)) != 0))
        return tn_fail(err, TN_E_ARG, "the peer is on another host, and shared memory is of one");
    text = slash ? slash + 1 : text;
    address_bytes -= (uint32_t)(text - (const char *)address);
    if (t->open >= t->config.links_max)
        return tn_fail(err, TN_E_STATE, "there are links_max links already");
    if ((st = place_read(&t->config, text, address_bytes, false, &p, err)) ||
        (st = slash ? TN_OK : place_own(&p, err)))
        return st;
    bytes = name_of(p.port, &name);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || !(l = ring_link_create(t, fd, true, RING_GREETING)))
        return fail_system(err, "no connection can be made");
    if (connect(fd, (struct sockaddr *)&name, bytes))
        ring_link_end(l, TN_E_PEER, errno == ECONNREFUSED ? "nobody listens there" : strerror(errno));
    else if (!same_user(fd))
        ring_link_end(l, TN_E_PEER, "another user listens there");
    else if (random_fill(l->nonce[0], sizeof l->nonce[0], NULL))
        ring_link_end(l, TN_E_PEER, "there are no random numbers");
    else {
        memcpy(hello.nonce, l->nonce[0], sizeof hello.nonce);
        if (!packet_send(l, &hello, -1))
            ring_link_end(l, TN_E_PEER, "the peer does not listen");
    }
    *out = l;
    return TN_OK;
}

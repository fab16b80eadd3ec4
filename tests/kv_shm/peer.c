/* See peer.h. */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

uint16_t peer_port(const char *address)
{
    return (uint16_t)atoi(strrchr(address, ':') + 1);
}

void peer_call(peer *p, uint16_t port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, TNSHM_NAME, (unsigned)port);

    *p = (peer){.l = {.called = true, .state = RING_UP}};
    p->l.t = &p->t;
    p->l.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_true(p->l.fd >= 0);
    assert_int_equal(connect(p->l.fd, (struct sockaddr *)&name,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)),
                     0);
}

void peer_say(peer *p, tnshm_packet *what, int file)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec piece = {what, sizeof *what};
    struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1};

    what->magic = TNSHM_MAGIC;
    if (file >= 0) {
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &file, sizeof file);
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
    }
    (void)sendmsg(p->l.fd, &m, MSG_NOSIGNAL); /* it may be hung up on already */
}

/* What comes on the socket while `n` polls; false: its end. */
static bool packet_wait(peer *p, wire_node *n, tnshm_packet *out)
{
    ssize_t got = -1;

    WIRE_UNTIL(n, NULL,
               (got = recv(p->l.fd, out, sizeof *out, MSG_DONTWAIT)) >= 0 ||
                   (errno != EAGAIN && errno != EINTR));
    return got == (ssize_t)sizeof *out;
}

void peer_hello(peer *p, wire_node *n)
{
    tnshm_packet hello = {.kind = TNSHM_HELLO}, answer;

    memset(hello.nonce, 7, sizeof hello.nonce);
    memcpy(p->l.nonce[0], hello.nonce, sizeof hello.nonce);
    peer_say(p, &hello, -1);
    assert_true(packet_wait(p, n, &answer));
    assert_int_equal(answer.kind, TNSHM_WELCOME);
    memcpy(p->l.nonce[1], answer.nonce, sizeof answer.nonce);
}

int peer_file(peer *p, uint64_t ring_bytes)
{
    int file = -1;

    memset(p->l.token, 9, sizeof p->l.token);
    assert_int_equal(tnshm_area_create(&p->l, ring_bytes, &file, NULL), TN_OK);
    return file;
}

bool peer_offer(peer *p, wire_node *n, int file, uint64_t ring_bytes)
{
    tnshm_packet offer = {.kind = TNSHM_OFFER, .ring_bytes = ring_bytes}, answer;

    memcpy(offer.token, p->l.token, sizeof offer.token);
    tnshm_proof(&p->l, 'o', offer.proof);
    peer_say(p, &offer, file);
    return packet_wait(p, n, &answer) && answer.kind == TNSHM_READY;
}

void peer_join(peer *p, wire_node *n)
{
    const uint64_t up = n->seen[TN_EVENT_UP];
    int file;

    peer_hello(p, n);
    file = peer_file(p, TNSHM_RING_MIN);
    assert_true(peer_offer(p, n, file, TNSHM_RING_MIN));
    (void)close(file);
    WIRE_UNTIL(n, NULL, n->seen[TN_EVENT_UP] == up + 1);
}

bool peer_hung_up(peer *p)
{
    tnshm_packet none;
    const ssize_t got = recv(p->l.fd, &none, sizeof none, MSG_DONTWAIT);

    return !got || (got < 0 && errno != EAGAIN && errno != EINTR);
}

void peer_close(peer *p)
{
    tnshm_area_drop(&p->l);
    (void)close(p->l.fd);
}

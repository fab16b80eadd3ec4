/*
 * How links begin and end, over a socket of TCP, which stays open as long as the link.
 *
 *     caller                                listener
 *     HELLO nonce                   ->
 *                                   <-      WELCOME nonce, what it allows, proof
 *     OFFER endpoint, proof         ->
 *                                   <-      READY endpoint, proof, or REFUSE text, proof
 *     GO proof                      ->
 *     BYE counts, proof             <->     by the side that leaves
 *
 * A proof is an HMAC by the job's secret over the packet, both nonces and both endpoints. Numbers of
 * queue pairs and keys of memory are told to those alone who know the secret.
 */
#include "kv_rdma.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* `*p` is of our side's next step; its proof is made here. */
static bool packet_send(tn_link *l, tnrdma_packet *p)
{
    p->magic = TNRDMA_MAGIC;
    p->version = TNRDMA_VERSION;
    if (p->kind != TNRDMA_HELLO)
        tnrdma_proof(l, p, p->proof);
    return send(l->fd, p, sizeof *p, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *p;
}

/* False: it is not whole yet. The text is set where it is none of the handshake. */
static bool packet_receive(tn_link *l, const char **wrong)
{
    const ssize_t n = recv(l->fd, (uint8_t *)&l->packet + l->packet_bytes, sizeof l->packet - l->packet_bytes,
                           MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        *wrong = l->state == RING_UP
                     ? "the peer has gone"
                     : "the peer hangs up: it has another secret, another kvstore.transport, or "
                       "links enough";
        return true;
    }
    l->packet_bytes += (uint32_t)n;
    if (l->packet_bytes >= 8 && (l->packet.magic != TNRDMA_MAGIC || l->packet.version != TNRDMA_VERSION)) {
        *wrong = "the peer speaks another protocol: kvstore.transport = rdma has to be that of all processes";
        return true;
    }
    if (l->packet_bytes < sizeof l->packet)
        return false;
    l->packet_bytes = 0;
    return true;
}

static bool proof_right(const tn_link *l)
{
    uint8_t right[PROOF_BYTES];

    tnrdma_proof(l, &l->packet, right);
    return proof_equal(right, l->packet.proof);
}

/* ---- steps: the text says why the link ends ------------------------------------------------------------ */

static const char *text_keep(tn_link *l, const char *text)
{
    (void)snprintf(l->text, sizeof l->text, "%.*s", (int)sizeof l->text - 1, text);
    return l->text;
}

static const char *hello_take(tn_link *l)
{
    const tn_transport *t = l->t;
    tnrdma_packet answer = {.kind = TNRDMA_WELCOME};

    memcpy(l->nonce[0], l->packet.nonce, sizeof l->nonce[0]);
    if (random_fill(l->nonce[1], sizeof l->nonce[1], NULL))
        return "there are no random numbers";
    memcpy(answer.nonce, l->nonce[1], sizeof answer.nonce);
    answer.of.endpoint = (tnrdma_endpoint){.lanes = t->config.lanes, .ring_bytes = t->ring_bytes};
    l->state = RING_OFFERED;
    return packet_send(l, &answer) ? NULL : "the peer does not listen";
}

static const char *welcome_take(tn_link *l)
{
    const tn_transport *t = l->t;
    const tnrdma_endpoint allowed = l->packet.of.endpoint;
    tnrdma_packet answer = {.kind = TNRDMA_OFFER};
    tn_err err = {0};

    memcpy(l->nonce[1], l->packet.nonce, sizeof l->nonce[1]);
    if (!proof_right(l))
        return "the peer has another secret";
    if (!allowed.lanes || allowed.ring_bytes < TNRDMA_RING_MIN ||
        allowed.ring_bytes & (allowed.ring_bytes - 1))
        return "the peer allows what cannot be";
    l->ring_bytes = allowed.ring_bytes < t->ring_bytes ? allowed.ring_bytes : t->ring_bytes;
    if (tnrdma_wire_create(l, allowed.lanes < t->config.lanes ? allowed.lanes : t->config.lanes, &err))
        return text_keep(l, err.message);
    tnrdma_wire_endpoint(l, &l->end[0]);
    answer.of.endpoint = l->end[0];
    l->state = RING_OFFERED;
    return packet_send(l, &answer) ? NULL : "the peer does not listen";
}

static const char *refuse(tn_link *l, const char *text)
{
    tnrdma_packet answer = {.kind = TNRDMA_REFUSE};

    (void)snprintf(answer.of.text, sizeof answer.of.text, "%.*s", (int)sizeof answer.of.text - 1, text);
    (void)packet_send(l, &answer);
    return text_keep(l, text);
}

static const char *offer_take(tn_link *l)
{
    tnrdma_packet answer = {.kind = TNRDMA_READY};
    const char *wrong;
    tn_err err = {0};

    l->end[0] = l->packet.of.endpoint;
    if (!proof_right(l))
        return "the peer has another secret";
    if (l->t->open >= l->t->config.links_max)
        return refuse(l, "there are links_max links");
    if ((wrong = tnrdma_endpoint_wrong(l, &l->end[0])))
        return refuse(l, wrong);
    l->ring_bytes = l->end[0].ring_bytes;
    if (tnrdma_wire_create(l, l->end[0].lanes, &err) || tnrdma_wire_connect(l, &l->end[0], &err))
        return refuse(l, err.message);
    tnrdma_wire_endpoint(l, &l->end[1]);
    answer.of.endpoint = l->end[1];
    return packet_send(l, &answer) ? NULL : "the peer does not listen";
}

static const char *ready_take(tn_link *l)
{
    tnrdma_packet answer = {.kind = TNRDMA_GO};
    const char *wrong;
    tn_err err = {0};

    if (l->packet.kind == TNRDMA_READY)
        l->end[1] = l->packet.of.endpoint;
    if (!proof_right(l))
        return "the peer has another secret";
    if (l->packet.kind == TNRDMA_REFUSE) {
        (void)snprintf(l->text, sizeof l->text, "%s refuses: %.*s", l->peer,
                       (int)sizeof l->packet.of.text - 1, l->packet.of.text);
        return l->text;
    }
    if ((wrong = tnrdma_endpoint_wrong(l, &l->end[1])))
        return wrong;
    if (l->end[1].ring_bytes != l->ring_bytes || l->end[1].lanes != l->wire.lanes)
        return "the peer answers what was not asked";
    if (tnrdma_wire_connect(l, &l->end[1], &err))
        return text_keep(l, err.message);
    if (!packet_send(l, &answer))
        return "the peer does not listen";
    ring_link_up(l);
    return NULL;
}

static const char *go_take(tn_link *l)
{
    tn_transport *t = l->t;

    if (!proof_right(l))
        return "the peer has another secret";
    if (t->open >= t->config.links_max)
        return "there are links_max links";
    ring_link_seen(l);
    ring_link_up(l);
    return NULL;
}

static const char *bye_take(tn_link *l)
{
    if (!proof_right(l))
        return "the peer's end is not its own";
    memcpy(l->last, l->packet.of.posted, sizeof l->last);
    l->bye = true;
    return "the peer has closed the link";
}

void tnrdma_bye(tn_link *l)
{
    tnrdma_packet p = {.kind = TNRDMA_BYE};

    for (uint32_t i = 0; i < RING_CLASSES; i++)
        p.of.posted[i] = l->out[i].posts;
    (void)packet_send(l, &p);
}

/* ---- the socket --------------------------------------------------------------------------------------- */

/* connect(2) is over. */
static const char *called(tn_link *l)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
    tnrdma_packet hello = {.kind = TNRDMA_HELLO};
    socklen_t bytes = sizeof errno;

    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &errno, &bytes) || errno ||
        epoll_ctl(l->t->epoll, EPOLL_CTL_MOD, l->fd, &e))
        return errno == ECONNREFUSED ? "nobody listens there" : strerror(errno);
    if (random_fill(l->nonce[0], sizeof l->nonce[0], NULL))
        return "there are no random numbers";
    memcpy(hello.nonce, l->nonce[0], sizeof hello.nonce);
    l->state = RING_GREETING;
    return packet_send(l, &hello) ? NULL : "the peer does not listen";
}

static const char *packet_take(tn_link *l)
{
    static const struct {
        uint32_t kind;
        ring_state state;
        bool called;
        const char *(*take)(tn_link *l);
    } steps[] = {
        {TNRDMA_HELLO, RING_GREETING, false, hello_take}, {TNRDMA_WELCOME, RING_GREETING, true, welcome_take},
        {TNRDMA_OFFER, RING_OFFERED, false, offer_take},  {TNRDMA_READY, RING_OFFERED, true, ready_take},
        {TNRDMA_REFUSE, RING_OFFERED, true, ready_take},  {TNRDMA_GO, RING_OFFERED, false, go_take},
        {TNRDMA_BYE, RING_UP, false, bye_take},           {TNRDMA_BYE, RING_UP, true, bye_take},
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i].kind == l->packet.kind && steps[i].state == l->state && steps[i].called == l->called &&
            (steps[i].kind == TNRDMA_GO) == (l->state == RING_OFFERED && !l->called && l->wire.cq))
            return steps[i].take(l);
    return "the peer says what is not its turn";
}

void tnrdma_greet(tn_link *l, uint32_t events)
{
    const char *wrong = NULL;

    if (l->state == RING_CALLING) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
            wrong = called(l);
    } else if (packet_receive(l, &wrong) && !wrong) {
        wrong = packet_take(l);
    }
    if (wrong && l->state == RING_UP)
        (void)tnrdma_wire_poll(l); /* all it has written is told there */
    if (wrong)
        tnrdma_link_hangup(l, wrong);
}

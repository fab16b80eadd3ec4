/* kv-rdma and peers that know the secret and misbehave, and others that do not know it. */
#include "plugin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/runs.h"

/* ---- work requests ------------------------------------------------------------------------------------ */

/* What is sent on a link behind the plugin's back. */
typedef struct crime {
    tnrdma_head head;    /* written at the ring's begin, unless `bytes` is 0 */
    uint32_t bytes, imm; /* imm: class and number */
    uint64_t at;         /* in the ring */
    tnrdma_note note;    /* sent, if its magic is there */
    uint32_t note_bytes;
    uint32_t pair;
} crime;

static void commit(tn_link *l, const crime *c)
{
    struct ibv_sge piece = {.addr = (uintptr_t)&c->head, .length = c->bytes};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)2 << 56, /* as of a note: nobody looks at it */
                             .sg_list = &piece,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .send_flags = IBV_SEND_INLINE,
                             .imm_data = htobe32(c->imm)};

    wr.wr.rdma.remote_addr = l->out[c->imm >> 31].remote + c->at;
    wr.wr.rdma.rkey = l->wire.rkey;
    if (c->note_bytes) {
        piece = (struct ibv_sge){.addr = (uintptr_t)&c->note, .length = c->note_bytes};
        wr.opcode = IBV_WR_SEND;
    }
    l->wire.notes++;
    assert_int_equal(card_verbs.post_send(l->wire.pair[c->pair], &wr), 0);
}

#define HEAD(...)                                                                                            \
    {                                                                                                        \
        .magic = TNRDMA_MAGIC, __VA_ARGS__                                                                   \
    }
#define BULK 0x80000000u

/* Each ends the link at the honest side, with a reason, before anything is handed out. */
static void crimes(void **state)
{
    static const crime rows[] = {
        {.head = {.magic = 7}, .bytes = 88, .imm = BULK, .pair = 1},
        {.head = HEAD(.put = 2), .bytes = 88, .imm = BULK, .pair = 1},
        {.head = HEAD(.bytes = (uint64_t)9 << 20), .bytes = 88, .imm = BULK, .pair = 1},
        {.head = HEAD(.bytes = UINT64_MAX), .bytes = 88, .imm = BULK, .pair = 1},
        {.head = HEAD(.put = 1, .token = 5), .bytes = 88, .imm = BULK, .pair = 1},
        {.head = HEAD(.bytes = 0), .bytes = 88, .imm = BULK | 64, .pair = 1},         /* a number too far */
        {.head = HEAD(.bytes = 0), .bytes = 88, .imm = BULK | 0x7fffffff, .pair = 1}, /* and one of before */
        {.head = HEAD(.bytes = 0), .bytes = 88, .imm = 0, .pair = 1},                 /* urgent, elsewhere */
        {.head = HEAD(.bytes = 0), .bytes = 88, .imm = BULK, .pair = 0},
        {.head = HEAD(.bytes = 0), .bytes = 0, .imm = BULK, .pair = 1}, /* no bytes */
        {.head = HEAD(.bytes = 0),
         .bytes = 88,
         .imm = BULK,
         .pair = 1,
         .at = 65536 - 87}, /* behind the ring */
        {.head = HEAD(.bytes = 0), .bytes = 88, .imm = BULK, .pair = 1, .at = (uint64_t)-65536 - 64},
        {.note = {.magic = 5}, .note_bytes = sizeof(tnrdma_note)},
        {.note = {.magic = TNRDMA_MAGIC, .reserved = 1}, .note_bytes = sizeof(tnrdma_note)},
        {.note = {.magic = TNRDMA_MAGIC, .read = {0, 1}},
         .note_bytes = sizeof(tnrdma_note)}, /* more than was sent */
        {.note = {.magic = TNRDMA_MAGIC, .read = {UINT64_MAX, 0}}, .note_bytes = sizeof(tnrdma_note)},
        {.note = {.magic = TNRDMA_MAGIC, .count = {0, 1}}, .note_bytes = sizeof(tnrdma_note)},
        {.note = {.magic = TNRDMA_MAGIC}, .note_bytes = sizeof(tnrdma_note) - 1},
        {.note = {.magic = TNRDMA_MAGIC}, .note_bytes = sizeof(tnrdma_note), .pair = 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wire_node *a = wire_open(1), *b = wire_open(1), *good = wire_open(1);
        char address[TN_TRANSPORT_ADDRESS_MAX + 1];
        tn_link *of_a, *of_good;

        wire_listen(b, "127.0.0.1:0", address);
        of_a = wire_connect(a, address);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP]);
        of_good = wire_connect(good, address);
        WIRE_UNTIL(good, b, good->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP] == 2);
        commit(of_a, &rows[i]);
        WIRE_UNTIL(b, a, b->seen[TN_EVENT_DOWN] == 1 && a->seen[TN_EVENT_DOWN] == 1);
        assert_int_equal(b->seen[TN_EVENT_RECV], 0);
        assert_int_equal(b->links[0].down, TN_E_PEER);
        assert_true(b->links[0].text[0]);
        assert_int_equal(wire_send(of_good, 0, 3000, NULL, 0), TN_OK);
        WIRE_UNTIL(b, good, b->next[0] == 1);
        wire_close(a, SECOND);
        wire_close(b, SECOND);
        wire_close(good, SECOND);
    }
}

/* More than the ring holds, by a peer that waits for no note: it overwrites its own messages, and is hung
 * up on. */
static void too_much(void **state)
{
    wire_node *a = wire_open(1), *b = wire_open(1);
    tn_link *of_a, *of_b;
    crime c = {.head = HEAD(.bytes = 0), .bytes = 88, .pair = 1};

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    for (uint32_t i = 0; i < TNRDMA_DEPTH; i++) { /* 60 KiB of it is the payload of the first */
        struct ibv_sge piece = {
            .addr = (uintptr_t)of_a->wire.area, .length = 4096, .lkey = of_a->wire.out_mr->lkey};
        struct ibv_send_wr wr = {.wr_id = (uint64_t)2 << 56,
                                 .sg_list = &piece,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                 .imm_data = htobe32(BULK | i)};

        wr.wr.rdma.remote_addr = of_a->out[1].remote;
        wr.wr.rdma.rkey = of_a->wire.rkey;
        of_a->wire.notes++;
        assert_int_equal(card_verbs.post_send(of_a->wire.pair[c.pair], &wr), 0);
    }
    WIRE_UNTIL(b, a, b->seen[TN_EVENT_DOWN] && a->seen[TN_EVENT_DOWN]);
    assert_int_equal(b->links[0].down, TN_E_PEER);
    assert_int_equal(b->seen[TN_EVENT_RECV], 0);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

static uint64_t next_random(uint64_t *r)
{
    *r = *r * 6364136223846793005u + 1442695040888963407u;
    return *r >> 17;
}

/* Heads and notes with random bits changed: the link ends, or what comes is within bounds. */
static void mutated(void **state)
{
    const uint64_t runs = test_runs(500);
    uint64_t random = 12345;
    wire_node *a = wire_open(1), *b = wire_open(1);
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    uint64_t ended = 0;

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    for (uint64_t run = 0; run < runs; run++) {
        crime c = {
            .head = HEAD(.bytes = 0), .bytes = 88, .imm = BULK, .pair = 1, .note = {.magic = TNRDMA_MAGIC}};
        tn_link *of_a = wire_connect(a, address);
        uint8_t *bytes = next_random(&random) % 2 ? (uint8_t *)&c.head : (uint8_t *)&c.note;
        const uint64_t down = b->seen[TN_EVENT_DOWN];

        a->links_count = b->links_count = 0;
        a->next[0] = b->next[0] = 0;
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] == run + 1 && b->seen[TN_EVENT_UP] == run + 1);
        if (bytes == (uint8_t *)&c.note)
            c = (crime){.note = c.note, .note_bytes = sizeof c.note};
        for (uint64_t k = next_random(&random) % 4; k < 5; k++) {
            const uint64_t bit = next_random(&random) % (8 * (c.note_bytes ? sizeof c.note : 24));

            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        commit(of_a, &c);
        for (int i = 0; i < 5 && b->seen[TN_EVENT_DOWN] == down; i++)
            (void)wire_poll(b);
        ended += b->seen[TN_EVENT_DOWN] != down;
        if (b->seen[TN_EVENT_DOWN] == down)
            wire->disconnect(of_a);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] == run + 1 && b->seen[TN_EVENT_DOWN] == run + 1);
    }
    assert_in_range(ended, runs / 2, runs);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* ---- greetings ---------------------------------------------------------------------------------------- */

typedef struct caller {
    tn_transport t; /* its key is used, and nothing else of it */
    tn_link l;
    int fd;
} caller;

static void call(caller *c, const char *address, uint8_t secret)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    *c = (caller){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    c->l.t = &c->t;
    memset(c->t.key, secret, TN_TRANSPORT_SECRET_BYTES);
    c->t.key[TN_TRANSPORT_SECRET_BYTES] = secret != 0;
    assert_true(c->fd >= 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&to, sizeof to), 0);
}

static void say(caller *c, tnrdma_packet *p)
{
    p->magic = p->magic ? p->magic : TNRDMA_MAGIC;
    p->version = p->version ? p->version : TNRDMA_VERSION;
    tnrdma_proof(&c->l, p, p->proof);
    assert_int_equal(send(c->fd, p, sizeof *p, MSG_NOSIGNAL), sizeof *p);
}

/* False: it hangs up. */
static bool hear(caller *c, wire_node *n, tnrdma_packet *out)
{
    size_t got = 0;
    ssize_t r = 0;

    WIRE_UNTIL(n, NULL,
               (r = recv(c->fd, (uint8_t *)out + got, sizeof *out - got, MSG_DONTWAIT)) == 0 ||
                   (r < 0 && errno != EAGAIN && errno != EINTR) ||
                   (got += r > 0 ? (size_t)r : 0) == sizeof *out);
    return got == sizeof *out;
}

static void greet(caller *c, wire_node *n, const char *address, uint8_t secret)
{
    tnrdma_packet hello = {.kind = TNRDMA_HELLO}, welcome;

    call(c, address, secret);
    memset(hello.nonce, 9, sizeof hello.nonce);
    memcpy(c->l.nonce[0], hello.nonce, sizeof hello.nonce);
    say(c, &hello);
    assert_true(hear(c, n, &welcome));
    assert_int_equal(welcome.kind, TNRDMA_WELCOME);
    memcpy(c->l.nonce[1], welcome.nonce, sizeof welcome.nonce);
}

/* What is no handshake, is out of turn, or is of somebody who does not know the secret, is hung up on. */
static void greetings(void **state)
{
    static const tnrdma_packet first[] = {{.kind = TNRDMA_OFFER},
                                          {.kind = TNRDMA_GO},
                                          {.kind = TNRDMA_BYE},
                                          {.kind = 99},
                                          {.kind = TNRDMA_HELLO, .magic = 5},
                                          {.kind = TNRDMA_HELLO, .version = 2}};
    static const tnrdma_packet second[] = {
        {.kind = TNRDMA_HELLO}, {.kind = TNRDMA_GO}, {.kind = TNRDMA_READY}, {.kind = TNRDMA_REFUSE}};
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *n = wire_open(4);
    tnrdma_packet p;
    caller c;

    (void)state;
    wire_listen(n, "127.0.0.1:0", address);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        call(&c, address, 4);
        p = first[i];
        say(&c, &p);
        assert_false(hear(&c, n, &p));
        (void)close(c.fd);
    }
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        greet(&c, n, address, 4);
        p = second[i];
        say(&c, &p);
        assert_false(hear(&c, n, &p));
        (void)close(c.fd);
    }
    greet(&c, n, address, 5); /* another secret */
    p = (tnrdma_packet){.kind = TNRDMA_OFFER, .of.endpoint = {.lanes = 1, .ring_bytes = 65536, .mtu = 3}};
    c.l.end[0] = p.of.endpoint;
    say(&c, &p);
    assert_false(hear(&c, n, &p));
    (void)close(c.fd);
    assert_int_equal(n->seen[TN_EVENT_UP], 0);
    assert_int_equal(wire_statistic(n, "strangers"), 0);
    wire_close(n, SECOND);
}

/* Endpoints that cannot be, of somebody who knows the secret: refused with a reason. */
static void endpoints(void **state)
{
    static const tnrdma_endpoint good = {.gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
                                         .lanes = 1,
                                         .mtu = IBV_MTU_1024,
                                         .ethernet = 1,
                                         .ring_bytes = 65536};
    static const struct {
        uint32_t lanes, mtu, ethernet;
        uint64_t ring_bytes;
        bool ipv6;
        const char *text;
    } rows[] = {{0, 3, 1, 65536, false, "lanes"},
                {2, 3, 1, 65536, false, "lanes"},
                {UINT32_MAX, 3, 1, 65536, false, "lanes"},
                {1, 0, 1, 65536, false, "MTU"},
                {1, 200, 1, 65536, false, "MTU"},
                {1, 3, 0, 65536, false, "InfiniBand"},
                {1, 3, 1, 0, false, "ring"},
                {1, 3, 1, 65537, false, "ring"},
                {1, 3, 1, 131072, false, "ring"},
                {1, 3, 1, UINT64_MAX, false, "ring"},
                {1, 3, 1, 65536, true, "kvstore.rdma_gid"}};
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *n = wire_open(4);

    (void)state;
    wire_listen(n, "127.0.0.1:0", address);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tnrdma_packet p = {.kind = TNRDMA_OFFER, .of.endpoint = good};
        caller c;

        p.of.endpoint.lanes = rows[i].lanes;
        p.of.endpoint.mtu = (uint8_t)rows[i].mtu;
        p.of.endpoint.ethernet = (uint8_t)rows[i].ethernet;
        p.of.endpoint.ring_bytes = rows[i].ring_bytes;
        p.of.endpoint.gid[0] = rows[i].ipv6;
        greet(&c, n, address, 4);
        c.l.end[0] = p.of.endpoint;
        say(&c, &p);
        assert_true(hear(&c, n, &p));
        assert_int_equal(p.kind, TNRDMA_REFUSE);
        p.of.text[sizeof p.of.text - 1] = '\0';
        if (!strstr(p.of.text, rows[i].text))
            fail_msg("\"%s\" does not say \"%s\"", p.of.text, rows[i].text);
        assert_false(hear(&c, n, &p));
        (void)close(c.fd);
    }
    assert_int_equal(n->seen[TN_EVENT_UP], 0);
    wire_close(n, SECOND);
}

/* Who is called speaks something else, as a peer with another transport does: it is said. */
static void another_transport(void **state)
{
    static const char zmtp[80] = "\xff\0\0\0\0\0\0\0\1\x7f\3\1NULL";
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wire_node *n = wire_open(0);
    char address[40];
    int peer;

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, bytes), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &bytes), 0);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", ntohs(a.sin_port));
    (void)wire_connect(n, address);
    peer = accept(fd, NULL, NULL);
    assert_true(peer >= 0);
    assert_int_equal(send(peer, zmtp, sizeof zmtp, MSG_NOSIGNAL), sizeof zmtp);
    WIRE_UNTIL(n, NULL, n->seen[TN_EVENT_DOWN]);
    assert_non_null(strstr(n->links[0].text, "kvstore.transport = rdma has to be that of all processes"));
    (void)close(peer);
    (void)close(fd);
    wire_close(n, SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLUGIN_TEST(crimes),    PLUGIN_TEST(too_much),  PLUGIN_TEST(mutated),
        PLUGIN_TEST(greetings), PLUGIN_TEST(endpoints), PLUGIN_TEST(another_transport),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* kv-shm: peers that are silent, speak anything, offer memory that is not right, or write into the rings what
 * they like. A good peer stays linked and its messages pass meanwhile; what was refused is counted. */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/runs.h"

#define SECOND 1000000000u
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* A listener with a good peer, and hostile ones beside it. */
typedef struct scene {
    wire_node *server, *good;
    tn_link *link; /* the good one's */
    uint16_t port;
    uint64_t sent;
} scene;

static scene scene_open(void)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    scene s = {.server = wire_open(0), .good = wire_open(0)};

    wire_listen(s.server, "127.0.0.1:0", address);
    s.port = peer_port(address);
    s.link = wire_connect(s.good, address);
    WIRE_UNTIL(s.good, s.server, s.good->seen[TN_EVENT_UP] && s.server->seen[TN_EVENT_UP]);
    return s;
}

static void scene_good(scene *s)
{
    assert_int_equal(wire_send(s->link, s->sent, 20000, NULL, 0), TN_OK);
    s->sent++;
    WIRE_UNTIL(s->good, s->server, s->server->next[0] == s->sent);
}

/* The good peer is still there, and nobody else. */
static void scene_close(scene *s)
{
    scene_good(s);
    WIRE_UNTIL(s->server, s->good, wire_statistic(s->server, "strangers") == 0);
    WIRE_UNTIL(s->server, s->good, wire_statistic(s->server, "links") == 1);
    assert_int_equal(s->server->seen[TN_EVENT_UP], 1 + s->server->seen[TN_EVENT_DOWN]);
    assert_int_equal(s->good->seen[TN_EVENT_DOWN], 0);
    wire_close(s->good, SECOND);
    wire_close(s->server, SECOND);
}

static void refused(scene *s, peer *p)
{
    WIRE_UNTIL(s->server, s->good, peer_hung_up(p));
    peer_close(p);
    scene_good(s);
}

/* ---- the handshake ------------------------------------------------------------------------------------ */

/* Nothing, and half of the handshake: until handshake_ms is over. */
static void silent(void **state)
{
    scene s = scene_open();
    peer p[2];

    (void)state;
    peer_call(&p[0], s.port);
    peer_call(&p[1], s.port);
    peer_hello(&p[1], s.server);
    for (int i = 0; i < 2; i++)
        refused(&s, &p[i]);
    assert_int_equal(wire_statistic(s.server, "refused"), 2);
    scene_close(&s);
}

/* Packets of any length and content, and those that are not their turn. */
static void malformed(void **state)
{
    const uint64_t runs = test_runs(200);
    scene s = scene_open();
    uint32_t random = 1;
    uint8_t bytes[300];
    peer p;

    (void)state;
    for (uint64_t run = 0; run < runs; run++) {
        tnshm_packet turn = {.kind = (uint32_t)(run % 7)};
        const size_t count = run % 3 ? 1 + random % sizeof bytes : sizeof turn;

        peer_call(&p, s.port);
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
        if (run % 2)
            peer_hello(&p, s.server);
        if (run % 3 == 0 && turn.kind != TNSHM_HELLO)
            peer_say(&p, &turn, run % 5 ? -1 : p.l.fd);
        else
            (void)send(p.l.fd, bytes, count, MSG_NOSIGNAL);
        WIRE_UNTIL(s.server, s.good, peer_hung_up(&p));
        peer_close(&p);
    }
    assert_int_equal(wire_statistic(s.server, "refused"), runs);
    scene_close(&s);
}

static int plain_file(void)
{
    char path[] = "/tmp/kv-shm-XXXXXX";
    const int file = mkstemp(path);

    assert_true(file >= 0);
    (void)unlink(path);
    return file;
}

/* Memory that is offered: what is wrong with it. */
enum {
    NONE,
    TOKEN,
    PROOF,
    UNSEALED,
    HALF_SEALED,
    SHORT,
    LONG,
    PLAIN,
    SOCKET,
    READ_ONLY,
    ODD,
    HUGE_RING,
    ZERO,
    WRONGS
};

static int wrong_file(peer *p, int wrong, uint64_t *ring)
{
    const uint64_t bytes = TNSHM_AREA_BYTES + 2 * (TNSHM_URGENT_BYTES + *ring);
    const bool own =
        wrong == UNSEALED || wrong == HALF_SEALED || wrong == SHORT || wrong == LONG || wrong == READ_ONLY;
    int file = own               ? memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC)
               : wrong == PLAIN  ? plain_file()
               : wrong == SOCKET ? dup(p->l.fd)
               : wrong == NONE   ? -1
                                 : peer_file(p, *ring);

    if (own || wrong == PLAIN) {
        assert_int_equal(ftruncate(file, (off_t)(bytes + (wrong == LONG) - (wrong == SHORT))), 0);
        memset(p->l.token, 9, sizeof p->l.token);
        assert_int_equal(pwrite(file, p->l.token, sizeof p->l.token, 0), sizeof p->l.token);
        if (own && wrong != UNSEALED)
            assert_int_equal(fcntl(file, F_ADD_SEALS,
                                   wrong == HALF_SEALED ? F_SEAL_GROW
                                   : wrong == READ_ONLY ? SEALS | F_SEAL_WRITE
                                                        : SEALS),
                             0);
    }
    *ring = wrong == ODD ? *ring + 1 : wrong == HUGE_RING ? (uint64_t)1 << 62 : wrong == ZERO ? 0 : *ring;
    if (wrong == TOKEN)
        p->l.token[5] ^= 1;
    if (wrong == PROOF)
        p->l.nonce[1][0] ^= 1;
    return file;
}

static void offers(void **state)
{
    scene s = scene_open();
    peer p;

    (void)state;
    for (int wrong = 0; wrong < WRONGS; wrong++) {
        uint64_t ring = TNSHM_RING_MIN;
        int file;

        peer_call(&p, s.port);
        peer_hello(&p, s.server);
        file = wrong_file(&p, wrong, &ring);
        if (peer_offer(&p, s.server, file, ring))
            fail_msg("memory of kind %d is taken", wrong);
        if (file >= 0)
            (void)close(file);
        peer_close(&p);
        scene_good(&s);
    }
    assert_int_equal(wire_statistic(s.server, "refused"), WRONGS);
    peer_call(&p, s.port); /* the same without a fault */
    peer_join(&p, s.server);
    peer_close(&p);
    scene_close(&s);
}

/* Several descriptors with one packet: none stays open. A pipe ends once nobody has its other end. */
static void descriptors(void **state)
{
    enum { FILES = 8 };
    scene s = scene_open();

    (void)state;
    for (size_t count = 1; count <= FILES; count++) {
        tnshm_packet turn = {.magic = TNSHM_MAGIC, .kind = count % 2 ? TNSHM_HELLO : TNSHM_OFFER};
        union {
            struct cmsghdr head;
            char bytes[CMSG_SPACE(FILES * sizeof(int))];
        } control = {.bytes = {0}};
        struct iovec piece = {&turn, sizeof turn};
        struct msghdr m = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control};
        int ends[2], files[FILES];
        char byte;
        peer p;

        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        for (size_t i = 0; i < count; i++)
            files[i] = ends[1];
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(count * sizeof *files), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), files, count * sizeof *files);
        m.msg_controllen = CMSG_SPACE(count * sizeof *files);
        peer_call(&p, s.port);
        if (turn.kind == TNSHM_OFFER)
            peer_hello(&p, s.server);
        assert_int_equal(sendmsg(p.l.fd, &m, MSG_NOSIGNAL), sizeof turn);
        refused(&s, &p);
        (void)close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 0);
        (void)close(ends[0]);
    }
    scene_close(&s);
}

/* More callers than may wait: the oldest ones go, a good one gets in. */
static void flood(void **state)
{
    static peer p[3 * RING_STRANGERS_MAX];
    scene s = scene_open();
    peer late;

    (void)state;
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        peer_call(&p[i], s.port);
        if (i % 16 == 0)
            (void)wire_poll(s.server);
    }
    WIRE_UNTIL(s.server, s.good, peer_hung_up(&p[0]));
    assert_in_range(wire_statistic(s.server, "strangers"), 0, RING_STRANGERS_MAX);
    peer_call(&late, s.port);
    peer_join(&late, s.server);
    peer_close(&late);
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        peer_close(&p[i]);
    scene_close(&s);
}

/* ---- rings -------------------------------------------------------------------------------------------- */

typedef void scribble(peer *p, scene *s);

static void head_write(peer *p, const tnshm_head *h, unsigned lane)
{
    tnshm_pipe *pipe = &p->l.out[lane].pipe;

    tnshm_pipe_write(pipe, h, sizeof *h);
    atomic_store(&pipe->ring->tail, pipe->own);
}

static void tail_far(peer *p, scene *s)
{
    (void)s;
    atomic_store(&p->l.out[RING_BULK].pipe.ring->tail, TNSHM_RING_MIN + 1);
}

static void tail_max(peer *p, scene *s)
{
    (void)s;
    atomic_store(&p->l.out[RING_URGENT].pipe.ring->tail, UINT64_MAX);
}

static void tail_back(peer *p, scene *s)
{
    const tnshm_head half = {.magic = TNSHM_MAGIC, .bytes = 1000};

    head_write(p, &half, RING_BULK);
    tnshm_link_ring(&p->l);
    WIRE_UNTIL(s->server, s->good, atomic_load(&p->l.out[RING_BULK].pipe.ring->head) == sizeof half);
    atomic_store(&p->l.out[RING_BULK].pipe.ring->tail, 8);
}

/* What it says that it has read was never written. */
static void head_far(peer *p, scene *s)
{
    const tn_send m = {.struct_size = (uint32_t)sizeof m, .flags = TN_SEND_COPY, .header = &p->t.key};
    uint8_t header[TN_HEADER_BYTES] = {0};
    tn_send what = m;
    tn_err err = {0};

    what.header = header;
    atomic_store(&p->l.in[RING_BULK].pipe.ring->head, 5);
    (void)wire->send(s->server->links[s->server->links_count - 1].link, &what, &err);
}

static void magic(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = 1}, RING_BULK);
}

static void reserved(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = TNSHM_MAGIC, .reserved = 1}, RING_URGENT);
}

static void too_long(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = TNSHM_MAGIC, .bytes = ((uint64_t)8 << 20) + 1}, RING_BULK);
}

static void longest(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = TNSHM_MAGIC, .bytes = UINT64_MAX - 7}, RING_URGENT);
}

static void bells(peer *p, scene *s)
{
    (void)s;
    for (int i = 0; i < 50; i++)
        (void)send(p->l.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void packets(peer *p, scene *s)
{
    static const uint8_t bytes[3000];

    (void)s;
    (void)send(p->l.fd, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* It would stay in the ring, as far as that has room for it. */
static void stays(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = TNSHM_MAGIC, .bytes = TNSHM_RING_MIN / 2 - 7}, RING_BULK);
}

/* A message that does not go on is given up, and its room is somebody else's. */
static void stops(peer *p, scene *s)
{
    (void)s;
    head_write(p, &(tnshm_head){.magic = TNSHM_MAGIC, .bytes = 7 << 20}, RING_BULK);
}

static void rings(void **state)
{
    static scribble *const all[] = {tail_far, tail_max, tail_back, head_far, magic, reserved,
                                    too_long, longest,  bells,     packets,  stops, stays};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        scene s = scene_open();
        peer p;

        peer_call(&p, s.port);
        peer_join(&p, s.server);
        all[i](&p, &s);
        tnshm_link_ring(&p.l);
        WIRE_UNTIL(s.server, s.good, s.server->seen[TN_EVENT_DOWN]);
        assert_int_equal(s.server->links[s.server->links_count - 1].down, TN_E_PEER);
        peer_close(&p);
        scene_close(&s);
    }
}

/* All of the shared memory, while the good peer's messages pass. */
static void random_memory(void **state)
{
    const uint64_t runs = test_runs(100);
    scene s = scene_open();
    uint64_t random = 88172645463325252u;

    (void)state;
    for (uint64_t run = 0; run < runs; run++) {
        peer p;

        peer_call(&p, s.port);
        peer_join(&p, s.server);
        for (size_t i = run % 2 ? sizeof p.l.area->token : 0; i < p.l.map->bytes; i += run % 2 ? 8 : 16) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            memcpy((uint8_t *)p.l.area + i, &random, sizeof random);
            if (i % 32768 == 0)
                (void)wire_poll(s.server);
        }
        (void)wire_poll(s.server);
        peer_close(&p);
        scene_good(&s);
    }
    WIRE_UNTIL(s.server, s.good, s.server->seen[TN_EVENT_DOWN] == runs);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent),      cmocka_unit_test(malformed), cmocka_unit_test(offers),
        cmocka_unit_test(flood),       cmocka_unit_test(rings),     cmocka_unit_test(random_memory),
        cmocka_unit_test(descriptors),
    };

    if (!wire_load("kv-shm", "handshake_ms=300 stall_ms=500"))
        return 77;
    wire_flags = TN_OPEN_SHARED;
    if (cmocka_run_group_tests_name("shared", tests, NULL, NULL))
        return 1;
    wire_flags = 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

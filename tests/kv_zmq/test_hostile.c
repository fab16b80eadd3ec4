/* kv-zmq: peers without a key or with another one, that are silent, slow, or send anything. A good peer stays
 * linked and its messages pass meanwhile; what was refused is counted. */
#include "support/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "proxy.h"
#include "support/runs.h"

#define SECOND 1000000000u
#define OURS 9

/* A listener with a good peer, and hostile ones beside it. */
typedef struct scene {
    wire_node *server, *good;
    tn_link *link; /* the good one's */
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    uint16_t port, bulk_port;
    uint64_t sent;
} scene;

static scene scene_open(uint8_t secret)
{
    scene s = {.server = wire_open(secret), .good = wire_open(secret)};

    wire_listen(s.server, "127.0.0.1:0", s.address);
    s.link = wire_connect(s.good, s.address);
    WIRE_UNTIL(s.good, s.server, s.good->seen[TN_EVENT_UP] && s.server->seen[TN_EVENT_UP]);
    s.port = (uint16_t)wire_statistic(s.server, "port");
    s.bulk_port = (uint16_t)wire_statistic(s.server, "bulk_port");
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
    WIRE_UNTIL(s->server, s->good, wire_statistic(s->server, "connections") == 2);
    assert_int_equal(s->server->seen[TN_EVENT_UP], 1 + s->server->seen[TN_EVENT_DOWN]);
    assert_int_equal(wire_statistic(s->server, "links"), 1);
    assert_int_equal(s->good->seen[TN_EVENT_DOWN], 0);
    wire_close(s->good, SECOND);
    wire_close(s->server, SECOND);
}

/* ---- keys ------------------------------------------------------------------------------------------- */

/* Without a key, and with another one: each way round. */
static void keys(void **state)
{
    static const uint8_t secrets[][2] = {{OURS, 0}, {OURS, 5}, {0, 5}};

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        scene s = scene_open(secrets[i][0]);
        wire_node *bad = wire_open(secrets[i][1]);
        tn_link *link = wire_connect(bad, s.address);

        WIRE_UNTIL(bad, s.server, wire_of(bad, link)->seen[TN_EVENT_DOWN]);
        assert_int_equal(wire_of(bad, link)->down, TN_E_PEER);
        assert_int_equal(bad->seen[TN_EVENT_UP], 0);
        assert_non_null(strstr(wire_of(bad, link)->text, s.address));
        WIRE_UNTIL(bad, s.server, wire_statistic(s.server, "strangers") > 0);
        wire_close(bad, 0);
        scene_close(&s);
    }
}

/* What one peer has sent is sent once more, byte for byte, by another. */
static void replayed(void **state)
{
    scene s = scene_open(OURS);
    wire_node *peer = wire_open(OURS);
    proxy *control = proxy_open(s.port), *bulk = proxy_open(s.bulk_port);
    const unsigned char *bytes;
    char address[40], answer[4096];
    size_t count;
    int fd;

    (void)state;
    (void)snprintf(address, sizeof address, "127.0.0.2:%u", (unsigned)s.port);
    (void)wire_connect(peer, address);
    WIRE_UNTIL(peer, s.server, peer->seen[TN_EVENT_UP] && s.server->seen[TN_EVENT_UP] == 2);
    wire->disconnect(peer->links[0].link);
    WIRE_UNTIL(peer, s.server, peer->seen[TN_EVENT_DOWN] && s.server->seen[TN_EVENT_DOWN]);
    count = proxy_first(control, &bytes);
    assert_true(count > 300); /* greeting, HELLO, INITIATE of CURVE and more */
    fd = plain_connect(s.port);
    assert_true(fd >= 0);
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), count);
    while (recv(fd, answer, sizeof answer, MSG_DONTWAIT) != 0) /* until it is hung up on */
        (void)wire_poll(s.server);
    (void)close(fd);
    assert_int_equal(s.server->seen[TN_EVENT_UP], 2);
    wire_close(peer, 0);
    proxy_close(control);
    proxy_close(bulk);
    scene_close(&s);
}

static void unchecked(wire_node *n, const tn_transport_event *e)
{
    (void)n;
    (void)e;
}

/* Nothing of a payload is to be found in what goes over the wire; without a secret all of it is. */
static void captured(void **state)
{
    static const unsigned char marker[] = "1048576 parameters, and this is one of them";
    static unsigned char memory[100000];

    (void)state;
    for (uint32_t secret = 0; secret < 2; secret++) {
        scene s = scene_open(secret ? OURS : 0);
        wire_node *peer = wire_open(secret ? OURS : 0);
        proxy *path[2] = {proxy_open(s.port), proxy_open(s.bulk_port)};
        unsigned char header[TN_HEADER_BYTES] = "the header is nobody's business either";
        tn_piece piece = {.data = memory, .bytes = sizeof memory};
        tn_send send = {
            .struct_size = (uint32_t)sizeof send, .header = header, .pieces = &piece, .piece_count = 1};
        uint32_t markers = 0, headers = 0;
        char address[40];
        tn_link *link;
        tn_err err;

        for (size_t i = 0; i < sizeof memory; i++)
            memory[i] = marker[i % (sizeof marker - 1)];
        (void)snprintf(address, sizeof address, "127.0.0.2:%u", (unsigned)s.port);
        link = wire_connect(peer, address);
        WIRE_UNTIL(peer, s.server, peer->seen[TN_EVENT_UP]);
        s.server->hold = true; /* unchecked */
        s.server->received = unchecked;
        assert_int_equal(wire->send(link, &send, &err), TN_OK);
        send.flags = TN_SEND_URGENT;
        piece.bytes = 100;
        assert_int_equal(wire->send(link, &send, &err), TN_OK);
        WIRE_UNTIL(peer, s.server, s.server->held_count == 2 && peer->seen[TN_EVENT_SENT] == 2);
        wire_release(s.server, 2);
        s.server->hold = false;
        s.server->received = NULL;
        wire_close(peer, SECOND);
        WIRE_UNTIL(s.server, s.good, s.server->seen[TN_EVENT_DOWN] == 1);
        for (uint32_t i = 0; i < 2; i++) {
            const unsigned char *bytes;
            const size_t count = proxy_all(path[i], &bytes);

            markers += memmem(bytes, count, marker, 16) != NULL;
            headers += memmem(bytes, count, header, 16) != NULL;
            proxy_close(path[i]);
        }
        assert_int_equal(markers, secret ? 0 : 2);
        assert_int_equal(headers, secret ? 0 : 2);
        scene_close(&s);
    }
}

/* ---- no peers of ours ---------------------------------------------------------------------------------- */

static const unsigned char greeting[64] = {0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'C', 'U', 'R', 'V', 'E'};

/* Plain sockets that say: nothing, a greeting and no more, nonsense. Each is hung up on. */
static void plain(void **state)
{
    (void)state;
    for (uint32_t secret = 0; secret < 2; secret++) {
        scene s = scene_open(secret ? OURS : 0);
        unsigned char nonsense[4096], answer[512];
        int fd[12];

        for (size_t i = 0; i < sizeof nonsense; i++)
            nonsense[i] = (unsigned char)(i * 2654435761u >> 13);
        for (uint32_t i = 0; i < 12; i++) {
            fd[i] = plain_connect(i % 2 ? s.port : s.bulk_port);
            assert_true(fd[i] >= 0);
            if (i >= 4)
                (void)send(fd[i], i < 8 ? greeting : nonsense, i < 8 ? 64 : sizeof nonsense, MSG_NOSIGNAL);
        }
        for (uint32_t i = 0; i < 12; i++) {
            ssize_t got;

            while ((got = recv(fd[i], answer, sizeof answer, MSG_DONTWAIT)) > 0 ||
                   (got < 0 && errno == EAGAIN))
                if (got < 0)
                    scene_good(&s);
            (void)close(fd[i]);
        }
        WIRE_UNTIL(s.server, s.good, wire_statistic(s.server, "strangers") >= 12);
        scene_close(&s);
    }
}

/* One byte of a greeting after the other, as long as the connection lives, which is not for ever. */
static void slow(void **state)
{
    scene s = scene_open(OURS);
    const int fd = plain_connect(s.port);
    char answer[512];
    ssize_t got = 1;

    (void)state;
    assert_true(fd >= 0);
    for (uint32_t i = 0; got; i++) {
        if (i % 64 == 0 && i < 63 * 64)
            (void)send(fd, greeting + i / 64, 1, MSG_NOSIGNAL);
        scene_good(&s);
        got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
        got = got < 0 && errno != EAGAIN ? 0 : got < 0 ? 1 : got;
    }
    (void)close(fd);
    scene_close(&s);
}

/* Connections by the hundred (campaigns: 10,000), most of which stay open: no more than so many are kept. */
static void flood(void **state)
{
    const uint64_t rounds = test_runs(300);
    scene s = scene_open(0);
    int fd[256];
    uint64_t most = 0;

    (void)state;
    for (uint32_t i = 0; i < 256; i++)
        fd[i] = -1;
    for (uint64_t i = 0; i < rounds; i++) {
        if (fd[i % 256] >= 0)
            (void)close(fd[i % 256]);
        fd[i % 256] = plain_connect(s.port);
        assert_true(fd[i % 256] >= 0);
        (void)wire_poll(s.server);
        if (i % 50 == 0)
            scene_good(&s);
        if (wire_statistic(s.server, "connections") > most)
            most = wire_statistic(s.server, "connections");
    }
    assert_in_range(most, 3, 2 * (64 + 64)); /* two doors, links_max and some more */
    for (uint32_t i = 0; i < 256; i++)
        if (fd[i] >= 0)
            (void)close(fd[i]);
    scene_close(&s);
}

/* ---- peers that speak ZMTP -------------------------------------------------------------------------  */

static void *dealer(void *context, uint16_t port, const void *id, size_t id_bytes)
{
    void *s = zmq_socket(context, ZMQ_DEALER);
    const int none = 0, off = -1;
    char endpoint[40];

    assert_non_null(s);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", (unsigned)port);
    assert_int_equal(zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof none), 0);
    assert_int_equal(zmq_setsockopt(s, ZMQ_RECONNECT_IVL, &off, sizeof off), 0);
    if (id_bytes)
        assert_int_equal(zmq_setsockopt(s, ZMQ_ROUTING_ID, id, id_bytes), 0);
    assert_int_equal(zmq_connect(s, endpoint), 0);
    return s;
}

typedef struct bytes_of {
    const void *bytes;
    size_t count;
} bytes_of;

static const unsigned char zeros[1 << 16];
#define HELLO "Tnzq\1\1\0\0\0\0\0\0\0\0\0\0"
#define WELCOME_ "Tnzq\1\2\1\1\0\0\0\0\0\0\0\0"
#define BYE_ "Tnzq\1\3\0\0\0\0\0\0\0\0\0\0"

/* What is sent in place of a HELLO, or behind one (second half): each ends the connection. */
static const struct {
    bool greets;
    bytes_of part[4]; /* up to one without bytes, at least the first */
} malformed[] = {
    {false, {{"", 0}}},
    {false, {{"x", 1}}},
    {false, {{zeros, 16}}},
    {false, {{zeros, 64}}},
    {false, {{zeros, 64}, {zeros, 100}}},
    {false, {{"Tnzq\2\1\0\0\0\0\0\0\0\0\0\0", 16}}}, /* another version */
    {false, {{"Tnzq\1\0\0\0\0\0\0\0\0\0\0\0", 16}}}, /* of no kind */
    {false, {{"Tnzq\1\4\0\0\0\0\0\0\0\0\0\0", 16}}},
    {false, {{"Tnzq\1\1\1\0\0\0\0\0\0\0\0\0", 16}}}, /* a port where none belongs */
    {false, {{"Tnzq\1\1\0\0\0\0\0\0\0\0\0\1", 16}}},
    {false, {{WELCOME_, 16}}},
    {false, {{BYE_, 16}}},
    {false, {{HELLO, 16}, {"x", 1}}},
    {false, {{zeros, 8192}}},
    {false, {{zeros, 65536}}}, /* more than `control` takes */
    {true, {{HELLO, 16}}},     /* twice */
    {true, {{WELCOME_, 16}}},
    {true, {{zeros, 64}}}, /* before it is up */
    {true, {{zeros, 63}}},
    {true, {{zeros, 65}}},
    {true, {{zeros, 64}, {zeros, 10}, {zeros, 10}}},
};
#define CASES (sizeof malformed / sizeof *malformed)

static void parts_send(void *socket, const bytes_of *part)
{
    for (uint32_t i = 0; i == 0 || part[i].count; i++)
        assert_int_equal(zmq_send(socket, part[i].bytes, part[i].count, part[i + 1].count ? ZMQ_SNDMORE : 0),
                         part[i].count);
}

/* 200 of them, each on a connection of its own; no link comes of any. */
static void malformed_frames(void **state)
{
    void *context = zmq_ctx_new();
    scene s = scene_open(0);

    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        const uint64_t before = wire_statistic(s.server, "accepted");
        unsigned char id[16] = {1, 2, 3, (unsigned char)i, (unsigned char)(i >> 8), 9};
        void *bad = dealer(context, i % 3 ? s.port : s.bulk_port, id, i % 7 ? 16 : i % 5);

        if (malformed[i % CASES].greets)
            assert_int_equal(zmq_send(bad, HELLO, 16, 0), 16);
        parts_send(bad, malformed[i % CASES].part);
        WIRE_UNTIL(s.server, s.good,
                   wire_statistic(s.server, "accepted") > before &&
                       wire_statistic(s.server, "connections") == 2);
        (void)zmq_close(bad);
    }
    assert_true(wire_statistic(s.server, "malformed") + wire_statistic(s.server, "strangers") > 150);
    (void)zmq_ctx_term(context);
    scene_close(&s);
}

/* A peer that knows the greetings, and then sends what no message may be. */
static void malformed_when_up(void **state)
{
    static const bytes_of wrong[][4] = {
        {{"", 0}},
        {{zeros, 63}},
        {{zeros, 65}},
        {{HELLO, 16}},
        {{zeros, 64}, {zeros, 10}, {zeros, 10}},
        {{zeros, 16}, {zeros, 64}},
    };
    void *context = zmq_ctx_new();
    scene s = scene_open(0);

    (void)state;
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const unsigned char id[16] = {7, 7, 7, (unsigned char)i, 1};
        void *bad[2] = {dealer(context, s.port, id, 16), NULL};
        unsigned char welcome[64];

        assert_int_equal(zmq_send(bad[0], HELLO, 16, 0), 16);
        WIRE_UNTIL(s.server, s.good, zmq_recv(bad[0], welcome, sizeof welcome, ZMQ_DONTWAIT) == 16);
        assert_memory_equal(welcome, "Tnzq\1\2", 6);
        assert_int_equal(welcome[6] | welcome[7] << 8, s.bulk_port);
        bad[1] = dealer(context, s.bulk_port, id, 16);
        assert_int_equal(zmq_send(bad[1], HELLO, 16, 0), 16);
        WIRE_UNTIL(s.server, s.good, s.server->seen[TN_EVENT_UP] == 2 + i);
        parts_send(bad[i % 2], wrong[i]);
        WIRE_UNTIL(s.server, s.good, s.server->seen[TN_EVENT_DOWN] == 1 + i);
        assert_int_equal(s.server->links[s.server->links_count - 1].down, TN_E_PEER);
        (void)zmq_close(bad[0]);
        (void)zmq_close(bad[1]);
        scene_good(&s);
    }
    (void)zmq_ctx_term(context);
    scene_close(&s);
}

/* Greets on one connection and never on the other, or on none at all: it is turned out in time. */
static void silent(void **state)
{
    void *context = zmq_ctx_new();
    scene s = scene_open(0);
    const unsigned char id[16] = {5};
    void *bad[3] = {dealer(context, s.port, id, 16), dealer(context, s.port, NULL, 0),
                    dealer(context, s.bulk_port, NULL, 0)};

    (void)state;
    assert_int_equal(zmq_send(bad[0], HELLO, 16, 0), 16);
    WIRE_UNTIL(s.server, s.good, wire_statistic(s.server, "accepted") == 5);
    WIRE_UNTIL(s.server, s.good, wire_statistic(s.server, "connections") == 2);
    for (uint32_t i = 0; i < 3; i++)
        (void)zmq_close(bad[i]);
    (void)zmq_ctx_term(context);
    assert_int_equal(s.server->seen[TN_EVENT_DOWN], 0); /* the host has never seen them */
    scene_close(&s);
}

/* The path falls silent without an end: both sides notice. */
static void half_dead(void **state)
{
    proxy *control, *bulk;
    wire_node *peer;
    char address[40];
    scene s;

    (void)state;
    assert_true(wire_load("kv-zmq", "handshake_ms=2000 heartbeat_ms=200 dead_ms=4000"));
    s = scene_open(OURS);
    peer = wire_open(OURS);
    control = proxy_open(s.port);
    bulk = proxy_open(s.bulk_port);
    (void)snprintf(address, sizeof address, "127.0.0.2:%u", (unsigned)s.port);
    (void)wire_connect(peer, address);
    WIRE_UNTIL(peer, s.server, peer->seen[TN_EVENT_UP] && s.server->seen[TN_EVENT_UP] == 2);
    proxy_silence(control);
    proxy_silence(bulk);
    assert_int_equal(wire_send(peer->links[0].link, 0, 1000000, NULL, 0), TN_OK);
    WIRE_UNTIL(peer, s.server, peer->seen[TN_EVENT_DOWN] && s.server->seen[TN_EVENT_DOWN]);
    assert_int_equal(peer->links[0].down, TN_E_PEER);
    wire_close(peer, 0);
    proxy_close(control);
    proxy_close(bulk);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(replayed),
        cmocka_unit_test(captured),
        cmocka_unit_test(plain),
        cmocka_unit_test(slow),
        cmocka_unit_test(flood),
        cmocka_unit_test(silent),
        cmocka_unit_test(malformed_frames),
        cmocka_unit_test(malformed_when_up),
        cmocka_unit_test(half_dead),
    };

    /* A machine that stands still for a second ends no link of a good peer. */
    if (!wire_load("kv-zmq", "handshake_ms=2000 heartbeat_ms=200 dead_ms=600000"))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

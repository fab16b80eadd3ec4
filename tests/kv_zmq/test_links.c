/* kv-zmq: how links begin and end, where they lead, and that nothing is left of them. */
#include "support/wire.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/runs.h"

#define SECOND 1000000000u

/* ---- ends ------------------------------------------------------------------------------------------- */

static void *closer(void *arg)
{
    wire_close(arg, (uint64_t)60 * SECOND);
    return NULL;
}

/* Who ends it: each in turn, by `disconnect`, by `close` while the other one reads, and before it does. */
static void ends(void **state)
{
    static unsigned char memory[20][50000];

    (void)state;
    for (uint32_t how = 0; how < 6; how++) {
        wire_node *a = wire_open(0), *b = wire_open(0), *ends = how & 1 ? b : a, *stays = how & 1 ? a : b;
        tn_link *of_a, *of_b, *of;
        pthread_t thread;

        wire_pair(a, b, &of_a, &of_b);
        of = how & 1 ? of_b : of_a;
        for (uint64_t i = 0; i < 20; i++)
            assert_int_equal(wire_send(of, i, how < 4 ? 50000 : 1000, i < 10 ? NULL : memory[i], 0), TN_OK);
        if (how < 2) {
            wire->disconnect(of);
            wire->disconnect(of);
            assert_int_equal(wire_send(of, 9, 1, NULL, 0), TN_E_PEER);
            WIRE_UNTIL(a, b, ends->seen[TN_EVENT_DOWN]);
            assert_int_equal(wire_of(ends, of)->down, TN_E_CANCELLED);
            assert_int_equal(ends->seen[TN_EVENT_SENT], 10);
        } else if (how < 4) {
            assert_int_equal(pthread_create(&thread, NULL, closer, ends), 0);
            ends = NULL;
        } else {
            (void)closer(ends);
            ends = NULL;
        }
        WIRE_UNTIL(stays, ends, stays->seen[TN_EVENT_DOWN]);
        if (stays->links[0].down)
            fail_msg("%u: %s, %llu messages", how, stays->links[0].text, (unsigned long long)stays->next[0]);
        assert_int_equal(stays->next[0], 20); /* what was sent before has come before */
        assert_int_equal(wire_statistic(stays, "links"), 0);
        assert_int_equal(wire_statistic(stays, "lost"), 0);
        if (ends)
            wire_close(ends, 0);
        else if (how < 4)
            assert_int_equal(pthread_join(thread, NULL), 0);
        wire_close(stays, 0);
    }
}

/* The peer does not read: what was sent comes back all the same, and then the link is down. */
static void ends_against_silence(void **state)
{
    static unsigned char memory[4 << 20];

    (void)state;
    for (uint32_t how = 0; how < 2; how++) {
        wire_node *a = wire_open(0), *b = wire_open(0), *n = how ? b : a;
        tn_link *of_a, *of_b, *of;
        uint64_t sent = 0;

        wire_pair(a, b, &of_a, &of_b);
        of = how ? of_b : of_a;
        for (int quiet = 0; quiet < 100; quiet++)
            while (wire_send(of, sent, sizeof memory, memory, 0) == TN_OK)
                for (quiet = 0, sent++; wire_poll(n);)
                    ;
        wire->disconnect(of);
        WIRE_UNTIL(n, NULL, wire_of(n, of)->seen[TN_EVENT_DOWN]);
        assert_int_equal(n->seen[TN_EVENT_SENT], sent);
        wire_close(a, 0);
        wire_close(b, 0);
    }
}

static void before_it_is_up(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *link;

    (void)state;
    wire_listen(b, "localhost:0", address);
    link = wire_connect(a, address);
    assert_int_equal(wire_send(link, 0, 10, NULL, 0), TN_PENDING);
    assert_int_equal(wire_send(link, 0, 10, NULL, TN_SEND_URGENT), TN_PENDING);
    WIRE_UNTIL(a, b, wire_of(a, link)->seen[TN_EVENT_CREDIT]);
    assert_int_equal(wire_of(a, link)->seen[TN_EVENT_UP], 1);
    assert_int_equal(wire_send(link, 0, 10, NULL, 0), TN_OK);
    WIRE_UNTIL(a, b, b->next[0] == 1);
    link = wire_connect(a, address); /* a second one, ended before it is anything */
    wire->disconnect(link);
    WIRE_UNTIL(a, b, wire_of(a, link)->seen[TN_EVENT_DOWN]);
    assert_int_equal(wire_of(a, link)->down, TN_E_CANCELLED);
    wire_close(a, SECOND);
    WIRE_UNTIL(b, NULL, wire_statistic(b, "connections") == 0);
    wire_close(b, 0);
}

/* ---- places ----------------------------------------------------------------------------------------- */

static void where(void **state)
{
    char longest[400];
    tn_link *link;

    (void)state;
    wire_places();
    for (uint32_t secret = 0; secret < 2; secret++) { /* from another machine: by the secret, or the flag */
        const uint8_t key[TN_TRANSPORT_SECRET_BYTES] = {1};
        const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                            .flags = secret ? 0 : TN_OPEN_INSECURE,
                                            .secret = secret ? key : NULL,
                                            .links_max = 1};
        wire_node *n = wire_open_with(&config);
        tn_err err = {0};

        link = wire_connect(n, "192.0.2.1:9");
        assert_int_equal(wire->connect(n->t, "192.0.2.1:9", 11, &link, &err), TN_E_STATE); /* links_max */
        memset(longest, 'a', sizeof longest);
        assert_int_equal(wire->connect(n->t, longest, sizeof longest, &link, &err), TN_E_ARG);
        wire_close(n, 0);
    }
}

static void taken(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1], other[TN_TRANSPORT_ADDRESS_MAX + 1];
    uint32_t bytes = sizeof other - 1;
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *link;
    tn_err err = {0};

    (void)state;
    wire_listen(a, "127.0.0.1:0", address);
    assert_int_equal(wire->listen(b->t, address, other, &bytes, &err), TN_E_IO);
    assert_non_null(strstr(err.message, address));
    wire_listen(b, "127.0.0.1:0", other); /* it can still */
    wire_close(a, 0);
    link = wire_connect(b, address); /* nobody is there now */
    WIRE_UNTIL(b, NULL, wire_of(b, link)->seen[TN_EVENT_DOWN]);
    assert_int_equal(wire_of(b, link)->down, TN_E_PEER);
    assert_non_null(strstr(wire_of(b, link)->text, address));
    wire_close(b, 0);
}

static void six(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    uint32_t bytes = TN_TRANSPORT_ADDRESS_MAX;
    wire_node *a = wire_open(3), *b = wire_open(3);
    tn_err err = {0};

    (void)state;
    if (wire->listen(b->t, "[::1]:0", address, &bytes, &err)) {
        print_message("skipped: no IPv6 here: %s\n", err.message);
    } else {
        address[bytes] = '\0';
        (void)wire_connect(a, address);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP]);
    }
    wire_close(a, 0);
    wire_close(b, 0);
}

/* ---- many ------------------------------------------------------------------------------------------- */

/* More than `links_max` at once: those over it are turned away, the others stay. */
static void many(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *server = wire_open(0), *a = wire_open(0), *b = wire_open(0);

    (void)state;
    wire_listen(server, "127.0.0.1:0", address);
    for (uint32_t i = 0; i < 64; i++)
        (void)wire_connect(a, address);
    WIRE_UNTIL(a, server, a->seen[TN_EVENT_UP] == 64 && server->seen[TN_EVENT_UP] == 64);
    (void)wire_connect(b, address);
    WIRE_UNTIL(b, server, b->seen[TN_EVENT_DOWN] == 1);
    assert_int_equal(b->links[0].down, TN_E_PEER);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(wire_send(a->links[i].link, i, 1000, NULL, 0), TN_OK);
    server->next[0] = 0;
    server->received = NULL;
    WIRE_UNTIL(a, server, server->seen[TN_EVENT_RECV] == 64 || server->next[0] == 64);
    for (uint32_t i = 0; i < 64; i++)
        wire->disconnect(a->links[i].link);
    WIRE_UNTIL(a, server, a->seen[TN_EVENT_DOWN] == 64 && server->seen[TN_EVENT_DOWN] == 64);
    WIRE_UNTIL(a, server, wire_statistic(server, "connections") == 0);
    assert_true(wire_statistic(server, "refused") > 0);
    wire_close(a, 0);
    wire_close(b, 0);
    wire_close(server, 0);
}

/* Ends all connections of this process, whoever's they are. */
static void connections_cut(void)
{
    struct sockaddr_storage peer;
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d))) {
        const int fd = atoi(entry->d_name);
        socklen_t bytes = sizeof peer;

        if (!getpeername(fd, (struct sockaddr *)(void *)&peer, &bytes) && peer.ss_family != AF_UNIX)
            (void)shutdown(fd, SHUT_RDWR);
    }
    (void)closedir(d);
}

/* Both connections of a link are lost at about the same time, and nothing of that keeps the next link from
 * coming up: libzmq may still want to tell of the second one when the first has ended the link. */
static void one_after_another(void **state)
{
    const uint64_t rounds = test_runs(60);
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0);

    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        wire_node *b = wire_open(0);
        tn_link *link;

        a->links_count = 0;
        memset(a->seen, 0, sizeof a->seen);
        wire_listen(b, "127.0.0.1:0", address);
        link = wire_connect(a, address);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] + a->seen[TN_EVENT_DOWN]);
        if (a->seen[TN_EVENT_DOWN])
            fail_msg("round %u: %s", (unsigned)i, wire_of(a, link)->text);
        connections_cut();
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN]);
        wire_close(b, 0);
    }
    wire_close(a, 0);
}

/* libzmq has several threads, and one may pass on a greeting while another has yet to tell of its connection:
 * each link comes up all the same, and its end is told. */
static void threads(void **state)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = (uint64_t)64 << 20,
                                        .message_max = (uint64_t)8 << 20,
                                        .links_max = 64,
                                        .lanes = 8};
    const uint64_t rounds = test_runs(30);
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open_with(&config), *b = wire_open_with(&config);

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    for (uint64_t i = 0; i < rounds; i++) {
        a->links_count = b->links_count = 0;
        memset(a->seen, 0, sizeof a->seen);
        memset(b->seen, 0, sizeof b->seen);
        for (uint32_t k = 0; k < 16; k++)
            (void)wire_connect(a, address);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] + a->seen[TN_EVENT_DOWN] == 16);
        for (uint32_t k = 0; k < 16; k++) {
            if (a->links[k].seen[TN_EVENT_DOWN])
                fail_msg("round %u, link %u: %s", (unsigned)i, (unsigned)k, a->links[k].text);
            wire->disconnect(a->links[k].link);
        }
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] == 16 && b->seen[TN_EVENT_DOWN] == 16);
        WIRE_UNTIL(a, b, wire_statistic(b, "connections") == 0);
    }
    assert_int_equal(wire_statistic(b, "refused"), 0);
    assert_int_equal(wire_statistic(b, "strangers"), 0);
    assert_int_equal(wire_statistic(b, "malformed"), 0);
    wire_close(a, 0);
    wire_close(b, 0);
}

static uint32_t entries(const char *folder)
{
    DIR *d = opendir(folder);
    uint32_t count = 0;

    assert_non_null(d);
    while (readdir(d))
        count++;
    (void)closedir(d);
    return count;
}

static uint64_t resident_bytes(void)
{
    unsigned long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
    (void)fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Links come and go by the hundred (campaigns: 10,000): nothing grows. */
static void come_and_go(void **state)
{
    const uint64_t rounds = test_runs(300), warm = rounds / 3;
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0), *b = wire_open(0);
    uint64_t resident = 0;
    uint32_t files = 0, threads = 0;

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    for (uint64_t i = 0; i < rounds; i++) {
        tn_link *link = wire_connect(a, address);

        a->links_count = b->links_count = 0;
        memset(a->seen, 0, sizeof a->seen);
        memset(b->seen, 0, sizeof b->seen);
        b->next[0] = 0;
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP]);
        assert_int_equal(wire_send(link, 0, 20000, NULL, 0), TN_OK);
        wire->disconnect(i % 2 ? link : b->links[0].link);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN]);
        if (i == warm) {
            WIRE_UNTIL(a, b, wire_statistic(b, "connections") == 0);
            resident = resident_bytes();
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    WIRE_UNTIL(a, b, wire_statistic(b, "connections") == 0);
    assert_in_range(entries("/proc/self/fd"), 0, files + 8); /* libzmq closes on its own threads */
    assert_int_equal(entries("/proc/self/task"), threads);
    if (!test_short()) /* a sanitizer keeps what was freed */
        assert_in_range(resident_bytes(), 0, resident + (2 << 20) + rounds * 64);
    wire_close(a, 0);
    wire_close(b, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends),
        cmocka_unit_test(ends_against_silence),
        cmocka_unit_test(before_it_is_up),
        cmocka_unit_test(where),
        cmocka_unit_test(taken),
        cmocka_unit_test(six),
        cmocka_unit_test(many),
        cmocka_unit_test(one_after_another),
        cmocka_unit_test(threads),
        cmocka_unit_test(come_and_go),
    };

    const struct CMUnitTest short_buffers[] = {cmocka_unit_test(many), cmocka_unit_test(threads)};
    int failures;

    if (!wire_load("kv-zmq", "handshake_ms=20000"))
        return 77;
    failures = cmocka_run_group_tests(tests, NULL, NULL);
    (void)wire_load("kv-zmq", "handshake_ms=20000 send_bytes=4096");
    return failures + cmocka_run_group_tests(short_buffers, NULL, NULL);
}

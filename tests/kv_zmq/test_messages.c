/* kv-zmq: what is sent arrives whole, in order and once; memory comes back once; room ends and comes back. */
#include "support/wire.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/runs.h"

static const uint8_t secrets[] = {0, 7};
#define SECONDS 1000000000u

static void sizes(void **state)
{
    static const uint64_t bytes[] = {0,    1,    15,   16,     63,      64,      65,      128, 4000,
                                     8191, 8192, 8193, 100000, 1 << 20, 5 << 20, 8 << 20, 3,   0};
    static unsigned char memory[sizeof bytes / sizeof *bytes][8 << 20];
    const uint64_t count = test_short() ? 13 : sizeof bytes / sizeof *bytes; /* the short ones */

    (void)state;
    for (uint32_t s = 0; s < 2; s++) {
        wire_node *a = wire_open(secrets[s]), *b = wire_open(secrets[s]);
        tn_link *of_a, *of_b;

        wire_pair(a, b, &of_a, &of_b);
        for (uint32_t copy = 0; copy < 2; copy++) {
            for (uint64_t i = 0; i < count; i++) {
                WIRE_UNTIL(a, b,
                           wire_send(of_a, copy * count + i, bytes[i], copy ? NULL : memory[i], 0) == 0);
                WIRE_UNTIL(a, b, wire_send(of_b, copy * count + i, bytes[i], NULL, 0) == 0);
            }
            WIRE_UNTIL(a, b, a->next[0] == (copy + 1) * count && b->next[0] == (copy + 1) * count);
        }
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_SENT] == count);
        assert_int_equal(a->cookies, count * (count - 1) / 2);
        assert_int_equal(b->seen[TN_EVENT_SENT], 0);
        assert_int_equal(wire_statistic(a, "messages_received"), 2 * count);
        assert_int_equal(wire_statistic(a, "bytes_held"), 0);
        wire_close(a, SECONDS);
        wire_close(b, SECONDS);
    }
}

static void pieces(void **state)
{
    static unsigned char first[100000];
    unsigned char header[TN_HEADER_BYTES] = {0};
    const uint64_t all = sizeof first + 24;
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;
    unsigned char last[24];
    const tn_piece parts[] = {
        {.data = first, .bytes = sizeof first}, {0}, {.data = last, .bytes = sizeof last}};
    tn_send send = {
        .struct_size = (uint32_t)sizeof send, .header = header, .pieces = parts, .piece_count = 3};
    tn_err err;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    memcpy(header + 8, &all, sizeof all);
    for (uint64_t i = 0; i < all; i++) /* byte_of(0, i) */
        *(i < sizeof first ? &first[i] : &last[i - sizeof first]) = (unsigned char)(i * 7 + (i >> 8));
    assert_int_equal(wire->send(of_a, &send, &err), TN_OK);
    WIRE_UNTIL(a, b, b->next[0] == 1 && a->seen[TN_EVENT_SENT] == 1);
    send.piece_count = 65;
    assert_int_equal(wire->send(of_a, &send, &err), TN_E_ARG);
    assert_int_equal(wire_send(of_a, 1, (8 << 20) + 1, NULL, 0), TN_E_ARG);
    wire_close(a, SECONDS);
    wire_close(b, SECONDS);
}

/* More than a window holds: no room, then room again, and nothing is lost or comes twice. */
static void room(void **state)
{
    const uint64_t bytes[] = {64, 100000, 4 << 20};
    unsigned char *memory = malloc(4 << 20);

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        wire_node *a = wire_open(0), *b = wire_open(0);
        uint64_t sent = 0, wanted = k == 2 ? 20 : test_short() ? 100 : 5000, credits;
        tn_link *of_a, *of_b;
        tn_status st = TN_OK;

        wire_pair(a, b, &of_a, &of_b);
        for (int full = 0; !full && sent < 1000000; sent += !full) { /* nobody polls */
            st = wire_send(of_a, sent, bytes[k], NULL, 0);
            full = st == TN_PENDING;
        }
        assert_int_equal(st, TN_PENDING);
        credits = a->seen[TN_EVENT_CREDIT];
        while (sent < wanted) {
            WIRE_UNTIL(a, b, a->seen[TN_EVENT_CREDIT] > credits);
            credits = a->seen[TN_EVENT_CREDIT];
            while (sent < wanted && (st = wire_send(of_a, sent, bytes[k], NULL, 0)) == TN_OK)
                sent++;
            assert_true(sent == wanted || st == TN_PENDING);
        }
        WIRE_UNTIL(a, b, b->next[0] == sent);
        wire_close(a, SECONDS);
        wire_close(b, SECONDS);
    }
    free(memory);
}

/* A receiver that keeps what it gets stops reading; urgent messages pass all the same. */
static void receiver_holds(void **state)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .receive_bytes = 8 << 20,
                                        .message_max = 1 << 20,
                                        .links_max = 1,
                                        .lanes = 2};
    wire_node *a = wire_open_with(&config), *b = wire_open_with(&config);
    uint64_t sent = 0, urgent = 0, quiet = 0;
    tn_link *of_a, *of_b;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    b->hold = true;
    while (quiet < 200) { /* polls of both without anything new */
        const uint64_t before = sent + b->seen[TN_EVENT_RECV];

        while (wire_send(of_a, sent, 1 << 20, NULL, 0) == TN_OK)
            sent++;
        quiet = wire_poll(a) + wire_poll(b) || sent + b->seen[TN_EVENT_RECV] != before ? 0 : quiet + 1;
    }
    assert_in_range(b->held_bytes, 1 << 20, 8 << 20);
    assert_in_range(sent, b->held_count + 1, 200);
    for (; urgent < 10; urgent++)
        assert_int_equal(wire_send(of_a, urgent, 100, NULL, TN_SEND_URGENT), TN_OK);
    WIRE_UNTIL(a, b, b->next[1] == urgent);
    assert_true(b->next[0] < sent);
    while (b->next[0] < sent) {
        const uint64_t before = b->next[0];

        wire_release(b, b->held_count);
        WIRE_UNTIL(a, b, b->next[0] > before);
    }
    wire_close(a, SECONDS);
    wire_close(b, SECONDS);
}

/* ---- waking ----------------------------------------------------------------------------------------- */

static void *waker(void *arg)
{
    for (int i = 0; i < 100; i++)
        wire->wake(((wire_node *)arg)->t);
    return NULL;
}

static void wakes(void **state)
{
    wire_node *a = wire_open(0);
    tn_transport_event e = {.struct_size = (uint32_t)sizeof e};
    pthread_t thread;
    tn_err err;

    (void)state;
    for (int i = 0; i < 20; i++) {
        uint32_t count = 1;

        assert_int_equal(pthread_create(&thread, NULL, waker, a), 0);
        assert_int_equal(wire->poll(a->t, &e, &count, UINT64_MAX, &err), TN_OK);
        assert_int_equal(count, 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    wire->wake(a->t);
    for (uint32_t count = 1; count;) { /* the next one, since none waited */
        assert_int_equal(wire->poll(a->t, &e, &count, UINT64_MAX, &err), TN_OK);
        assert_int_equal(count, 0);
    }
    wire_close(a, 0);
}

/* ---- signals ---------------------------------------------------------------------------------------- */

typedef struct striker {
    pthread_t at;
    atomic_bool over;
} striker;

static void struck(int number)
{
    (void)number;
}

static void *strike(void *arg)
{
    striker *s = arg;

    while (!atomic_load(&s->over)) {
        (void)pthread_kill(s->at, SIGUSR1);
        sched_yield();
    }
    return NULL;
}

/* Signals interrupt the system's calls of the thread that uses the transport: no message is lost, no link. */
static void signals(void **state)
{
    const struct sigaction action = {.sa_handler = struck};
    striker s = {.at = pthread_self()};
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;
    pthread_t thread;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, strike, &s), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        WIRE_UNTIL(a, b, wire_send(of_a, i, i % 2 ? 100 : 20000, NULL, 0) == TN_OK);
        WIRE_UNTIL(a, b, wire_send(of_b, i, 100, NULL, 0) == TN_OK);
        WIRE_UNTIL(a, b, a->next[0] == i + 1 && b->next[0] == i + 1);
    }
    atomic_store(&s.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(a->seen[TN_EVENT_DOWN] + b->seen[TN_EVENT_DOWN], 0);
    wire_close(a, SECONDS);
    wire_close(b, SECONDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),          cmocka_unit_test(pieces), cmocka_unit_test(room),
        cmocka_unit_test(receiver_holds), cmocka_unit_test(wakes),  cmocka_unit_test(signals),
    };

    if (!wire_load("kv-zmq", ""))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

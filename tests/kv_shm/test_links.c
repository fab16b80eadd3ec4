/* kv-shm: links that come and go and leave nothing, long messages, peers that are killed or stopped. */
#include "support/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/runs.h"

#define SECOND 1000000000u
#define LONG_BYTES ((uint64_t)8 << 20) /* wire_open's message_max, and more than a ring */

/* Mappings of shared memory of this process. */
static uint32_t areas(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t count = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        count += strstr(line, "tenon-kv-shm") != NULL;
    (void)fclose(f);
    return count;
}

/* ---- nothing is left ---------------------------------------------------------------------------------- */

static void cycles(void **state)
{
    const uint64_t runs = test_runs(300);
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0), *b = wire_open(0);
    uint32_t files = 0;
    const uint32_t named = wire_entries("/dev/shm");

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    for (uint64_t run = 0; run < runs; run++) {
        tn_link *of_a = wire_connect(a, address);

        a->links_count = b->links_count = 0;
        a->next[0] = b->next[0] = 0;
        assert_int_equal(wire_send(of_a, 0, 1000, NULL, 0), TN_OK);
        WIRE_UNTIL(a, b, b->next[0] == 1);
        wire->disconnect(run % 2 ? of_a : b->links[0].link);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] == run + 1 && b->seen[TN_EVENT_DOWN] == run + 1);
        files = run ? files : wire_entries("/proc/self/fd");
    }
    assert_int_equal(wire_entries("/proc/self/fd"), files);
    assert_int_equal(areas(), 0);
    assert_int_equal(wire_statistic(a, "links") + wire_statistic(b, "links"), 0);
    assert_int_equal(wire_entries("/dev/shm"), named);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* Longer than the ring, both ways at once, copied and not; urgent ones overtake. */
static void long_messages(void **state)
{
    unsigned char *memory[2] = {malloc(LONG_BYTES), malloc(LONG_BYTES)};
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;

    (void)state;
    assert_true(memory[0] && memory[1]);
    wire_pair(a, b, &of_a, &of_b);
    assert_int_equal(wire_send(of_a, 0, LONG_BYTES, memory[0], 0), TN_OK);
    assert_int_equal(wire_send(of_a, 1, LONG_BYTES, NULL, 0), TN_OK);
    assert_int_equal(wire_send(of_a, 0, 100, NULL, TN_SEND_URGENT), TN_OK);
    assert_int_equal(wire_send(of_b, 0, LONG_BYTES - 1, memory[1], 0), TN_OK);
    while (!b->next[1]) {
        assert_int_equal(b->next[0], 0); /* nobody has read more than a ring */
        (void)wire_poll(b);
    }
    WIRE_UNTIL(a, b, b->next[0] == 2 && a->next[0] == 1 && a->seen[TN_EVENT_SENT] && b->seen[TN_EVENT_SENT]);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
    free(memory[0]);
    free(memory[1]);
}

/* What was sent has come, also when the sender is gone before anybody reads. */
static void sent_and_gone(void **state)
{
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(wire_send(of_a, i, 50000, NULL, 0), TN_OK);
    wire_close(a, 0);
    WIRE_UNTIL(b, NULL, b->seen[TN_EVENT_DOWN]);
    assert_int_equal(b->links[0].down, TN_OK);
    assert_int_equal(b->next[0], 20);
    wire_close(b, SECOND);
}

/* ---- other processes ---------------------------------------------------------------------------------- */

/* Sends for ever. */
static _Noreturn void sender(const char *address)
{
    wire_node *n = wire_open(0);
    tn_link *link = wire_connect(n, address);
    uint64_t number = 0;

    (void)alarm(300);
    for (;;) {
        if (wire_send(link, number, number % 2 ? 3000000 : 1000, NULL, 0) == TN_OK)
            number++;
        (void)wire_poll(n);
    }
}

/* A peer that is killed in the midst of its messages; whole ones have come, and the link says why it ended. A
 * peer that is stopped for a while goes on. */
static void killed(void **state)
{
    const uint32_t named = wire_entries("/dev/shm");

    (void)state;
    for (uint64_t point = 0; point < 8; point++) {
        char address[TN_TRANSPORT_ADDRESS_MAX + 1];
        wire_node *b = wire_open(0);
        int status;
        pid_t pid;

        wire_listen(b, "127.0.0.1:0", address);
        (void)fflush(NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (!pid)
            sender(address);
        WIRE_UNTIL(b, NULL, b->next[0] >= 3 * point);
        if (point % 2) {
            assert_int_equal(kill(pid, SIGSTOP), 0);
            for (int i = 0; i < 20; i++)
                (void)wire_poll(b);
            assert_int_equal(b->seen[TN_EVENT_DOWN], 0);
            assert_int_equal(kill(pid, SIGCONT), 0);
            WIRE_UNTIL(b, NULL, b->next[0] >= 3 * point + 20);
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        if (b->links_count) {
            WIRE_UNTIL(b, NULL, b->seen[TN_EVENT_DOWN]);
            assert_int_equal(b->links[0].down, TN_E_PEER);
        }
        wire_close(b, SECOND);
        assert_int_equal(areas(), 0);
    }
    assert_int_equal(wire_entries("/dev/shm"), named);
}

/* ---- places ------------------------------------------------------------------------------------------- */

static tn_status connect_to(wire_node *n, const char *address)
{
    tn_link *link = NULL;
    tn_err err = {0};

    return wire->connect(n->t, address, (uint32_t)strlen(address), &link, &err);
}

/* Another host's name, a name that is cut, an address that is not this machine's. */
static void places(void **state)
{
    const tn_transport_config open = {.struct_size = (uint32_t)sizeof open,
                                      .flags = TN_OPEN_INSECURE,
                                      .receive_bytes = 1 << 20,
                                      .message_max = 1 << 20,
                                      .links_max = 4};
    char address[TN_TRANSPORT_ADDRESS_MAX + 1], other[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open_with(&open), *b = wire_open(0);

    (void)state;
    wire_places();
    wire_listen(b, "127.0.0.1:0", address);
    (void)snprintf(other, sizeof other, "%s", address);
    other[3] = other[3] == '0' ? '1' : '0';
    assert_int_equal(connect_to(a, other), TN_E_ARG);
    assert_int_equal(connect_to(a, address + 1), TN_E_ARG);
    assert_int_equal(connect_to(a, "/127.0.0.1:9"), TN_E_ARG);
    assert_int_equal(connect_to(a, "192.0.2.1:9"), TN_E_ARG);
    assert_int_equal(connect_to(b, "192.0.2.1:9"), TN_E_STATE);
    assert_int_equal(connect_to(a, strchr(address, '/') + 1), TN_OK);
    WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP]);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* ---- payloads that stay in the ring ------------------------------------------------------------------- */

#define LENGTHS 6
static const uint64_t lengths[LENGTHS] = {70001, 1 << 20, 100, (1 << 20) + 1, 333333, 3 << 20};
static uint32_t shared; /* that came */

static void shared_count(wire_node *n, const tn_transport_event *e)
{
    (void)n;
    assert_int_equal((uintptr_t)e->data % 16, 0);
    assert_false(e->bytes <= 65536 && e->flags); /* copied, as those longer than half a ring are */
    assert_false(e->bytes > 1 << 20 && e->flags);
    shared += e->flags == TN_RECV_SHARED;
}

static void all_send(wire_node *a, wire_node *b, tn_link *link, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        while (wire_send(link, i, lengths[i % LENGTHS], NULL, 0) == TN_PENDING) {
            (void)wire_poll(a);
            (void)wire_poll(b);
        }
}

/* Of all lengths, round and round the ring. */
static void shared_payloads(void **state)
{
    wire_node *a = wire_open(0), *b;
    tn_link *of_a, *of_b;

    (void)state;
    wire_flags = TN_OPEN_SHARED;
    b = wire_open(0);
    wire_flags = 0;
    wire_pair(a, b, &of_a, &of_b);
    all_send(a, b, of_a, 40);
    WIRE_UNTIL(a, b, b->next[0] == 40);
    shared = 0;
    b->received = shared_count;
    all_send(a, b, of_a, 12);
    WIRE_UNTIL(a, b, b->seen[TN_EVENT_RECV] == 52);
    assert_int_equal(shared, 6);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* They are released in another order, and behind the end of their link. */
static void shared_and_held(void **state)
{
    wire_node *a = wire_open(0), *b;
    tn_link *of_a, *of_b;

    (void)state;
    wire_flags = TN_OPEN_SHARED;
    b = wire_open(0);
    wire_flags = 0;
    wire_pair(a, b, &of_a, &of_b);
    b->hold = true;
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(wire_send(of_a, i, 100000, NULL, 0), TN_OK);
    WIRE_UNTIL(a, b, b->next[0] == 20);
    while (b->held_count)
        wire->release(b->t, b->held[--b->held_count]);
    for (uint64_t i = 20; i < 60; i++) { /* more than the ring: it was given back */
        while (wire_send(of_a, i, 100000, NULL, 0) == TN_PENDING)
            (void)wire_poll(a);
        WIRE_UNTIL(a, b, b->next[0] == i + 1);
        if (b->held_count == 7)
            wire_release(b, 7);
    }
    assert_true(b->held_count > 1);
    wire->release(b->t, b->held[--b->held_count]); /* an earlier one is still there */
    wire->disconnect(b->links[0].link);
    WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN]);
    assert_true(areas() > 0);
    wire_release(b, b->held_count);
    assert_int_equal(areas(), 0);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles), cmocka_unit_test(long_messages),   cmocka_unit_test(sent_and_gone),
        cmocka_unit_test(killed), cmocka_unit_test(places),          cmocka_unit_test(shared_payloads),
        cmocka_unit_test(shared_and_held),
    };

    if (!wire_load("kv-shm", ""))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

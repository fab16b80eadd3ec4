/* Two transports as one (core/kv/near.h), of the plugins kv-zmq and kv-shm: which links go where. */
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "kv/near.h"

#define SECOND 1000000000u

static tni_kv_carriers carriers;

/* Ends of links of kv-shm in this process, by the mappings of the begin of their files. */
static uint32_t areas(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t count = 0;

    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        count += strstr(line, "tenon-kv-shm") && strstr(line, " 00000000 ");
    (void)fclose(f);
    return count;
}

/* Messages both ways, of which one side keeps some; `near`: by memory. */
static void exchange(wire_node *a, wire_node *b, tn_link *of_a, bool near)
{
    static unsigned char memory[300000];
    tn_link *of_b;
    tn_status st;

    /* b has this link, and not just those that are down */
    WIRE_UNTIL(a, b, wire_of(a, of_a)->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP] > b->seen[TN_EVENT_DOWN]);
    of_b = b->links[b->links_count - 1].link;
    assert_int_equal(areas(), near ? 2 : 0);
    a->next[0] = b->next[0] = a->next[1] = 0;
    b->hold = true;
    for (uint64_t i = 0; i < 10; i++) {
        /* without room it is tried again */
        WIRE_UNTIL(a, b,
                   (st = wire_send(of_a, i, i % 2 ? sizeof memory : 100, i == 9 ? memory : NULL, 0)) !=
                       TN_PENDING);
        assert_int_equal(st, TN_OK);
        WIRE_UNTIL(a, b, (st = wire_send(of_b, i, 5000, NULL, TN_SEND_URGENT)) != TN_PENDING);
        assert_int_equal(st, TN_OK);
    }
    WIRE_UNTIL(a, b, b->next[0] == 10 && a->next[1] == 10 && a->seen[TN_EVENT_SENT]);
    b->hold = false;
    wire_release(b, b->held_count);
}

static void link_ends(wire_node *a, wire_node *b, tn_link *of_a)
{
    const uint64_t down = b->seen[TN_EVENT_DOWN];

    wire->disconnect(of_a);
    WIRE_UNTIL(a, b, wire_of(a, of_a)->seen[TN_EVENT_DOWN] && b->seen[TN_EVENT_DOWN] == down + 1);
    assert_int_equal(areas(), 0);
}

/* Both have both: memory. An address without the near part, or with one of another host: the far way. */
static void ways(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1], other[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *link;
    char *near;

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    near = strstr(address, ";shm:");
    assert_non_null(near);
    link = wire_connect(a, address);
    exchange(a, b, link, true);
    link_ends(a, b, link);
    (void)snprintf(other, sizeof other, "%s", address);
    other[near - address + 5] ^= 1; /* of the name of the host */
    link = wire_connect(a, other);
    exchange(a, b, link, false);
    link_ends(a, b, link);
    (void)snprintf(other, sizeof other, "%.*s;shm:", (int)(near - address), address);
    link = wire_connect(a, other);
    exchange(a, b, link, false);
    link_ends(a, b, link);
    *near = '\0';
    link = wire_connect(a, address);
    exchange(a, b, link, false);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* The near part is of this host, and nobody is there: that link goes down, the next one goes the far way. */
static void nobody_near(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1], gone[TN_TRANSPORT_ADDRESS_MAX + 1],
        mixed[2 * TN_TRANSPORT_ADDRESS_MAX + 2];
    wire_node *a = wire_open(0), *b = wire_open(0), *c = wire_open(0);
    tn_link *link;

    (void)state;
    wire_listen(b, "127.0.0.1:0", address);
    wire_listen(c, "127.0.0.1:0", gone);
    wire_close(c, 0);
    *strstr(address, ";shm:") = '\0';
    (void)snprintf(mixed, sizeof mixed, "%s%s", address, strstr(gone, ";shm:"));
    link = wire_connect(a, mixed);
    WIRE_UNTIL(a, b, wire_of(a, link)->seen[TN_EVENT_DOWN]);
    assert_int_equal(wire_of(a, link)->seen[TN_EVENT_UP], 0);
    assert_int_equal(wire_of(a, link)->down, TN_E_PEER);
    assert_int_equal(b->seen[TN_EVENT_UP], 0);
    a->links_count = 0;
    exchange(a, b, wire_connect(a, mixed), false);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* What is wrong with both parts is told. */
static void refused(void **state)
{
    wire_node *a = wire_open(0);
    static const char *const bad[] = {"", ";shm:", "x;shm:y", "127.0.0.1:99999;shm:"};
    tn_link *link = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_err err = {0};

        assert_int_equal(wire->connect(a->t, bad[i], (uint32_t)strlen(bad[i]), &link, &err), TN_E_ARG);
        assert_true(err.message[0]);
    }
    wire->release(a->t, NULL);
    wire_close(a, 0);
}

static uint64_t came[2]; /* to a node with links of both ways: by the near one, by the far one */

static void came_count(wire_node *n, const tn_transport_event *e)
{
    (void)n;
    came[e->bytes == 1]++;
}

/* A near way on which there is always something keeps nothing from coming the far way. */
static void neither_way_starves(void **state)
{
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a = wire_open(0), *b = wire_open(0), *c = wire_open(0);
    tn_link *near, *far;
    tn_status st;

    (void)state;
    came[0] = came[1] = 0;
    b->received = came_count;
    wire_listen(b, "127.0.0.1:0", address);
    near = wire_connect(a, address);
    *strstr(address, ";shm:") = '\0';
    far = wire_connect(c, address);
    WIRE_UNTIL(a, b, wire_of(a, near)->seen[TN_EVENT_UP]);
    WIRE_UNTIL(c, b, wire_of(c, far)->seen[TN_EVENT_UP] && b->seen[TN_EVENT_UP] == 2);
    for (uint64_t i = 0; i < 20; i++) {
        WIRE_UNTIL(c, b, (st = wire_send(far, i, 1, NULL, 0)) != TN_PENDING);
        assert_int_equal(st, TN_OK);
        while (came[1] <= i) {
            WIRE_UNTIL(a, b, (st = wire_send(near, i, 100, NULL, 0)) != TN_PENDING);
            assert_int_equal(st, TN_OK);
            (void)wire_poll(b);
        }
    }
    assert_true(came[0] >= 20);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
    wire_close(c, SECOND);
}

static void wake_main(void *t)
{
    wire->wake(t);
}

/* Before the poll that it ends, or while it waits. */
static void woken(void **state)
{
    wire_node *a = wire_open(0);

    (void)state;
    for (int i = 0; i < 200; i++) {
        tn_transport_event event = {.struct_size = (uint32_t)sizeof event};
        tni_thread *thread;
        uint32_t count = 1;

        assert_int_equal(tni_thread_create("wakes", wake_main, a->t, &thread), TN_OK);
        assert_int_equal(wire->poll(a->t, &event, &count, UINT64_MAX, NULL), TN_OK);
        assert_int_equal(count, 0);
        tni_thread_join(thread);
    }
    wire_close(a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways), cmocka_unit_test(nobody_near),
                                       cmocka_unit_test(neither_way_starves), cmocka_unit_test(woken),
                                       cmocka_unit_test(refused)};
    static const char *const names[] = {"kv-zmq", "kv-shm"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!wire_load(names[i], ""))
            return 77;
        carriers.ops[i] = wire;
        carriers.plugin[i] = wire_plugin();
    }
    wire_use(&tni_kv_near_ops, &carriers);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* kv-rdma on a card in memory: messages, links that come and go and leave nothing, work requests, puts. */
#include "plugin.h"

#include <dirent.h>
#include <stdlib.h>

#include "support/runs.h"

#define MIB ((uint64_t)1 << 20)

/* With rings as long as they are by default. */
static int setup(void **state)
{
    const int failed = plugin_setup(state);

    plugin.ring_bytes = 16 << 20;
    return failed;
}

static uint32_t files(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (d && readdir(d))
        count++;
    if (d)
        (void)closedir(d);
    return count;
}

/* Both ways at once, short and longer than a ring, copied and not; urgent ones overtake. */
static void messages(void **state)
{
    unsigned char *memory[2] = {malloc(8 * MIB), malloc(8 * MIB)};
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .message_max = 8 * MIB,
                                        .receive_bytes = 32 * MIB,
                                        .links_max = 4,
                                        .lanes = 3};
    wire_node *a, *b;
    tn_link *of_a, *of_b;

    (void)state;
    assert_true(memory[0] && memory[1]);
    plugin.ring_bytes = 1 << 20;
    a = wire_open_with(&config);
    b = wire_open_with(&config);
    wire_pair(a, b, &of_a, &of_b);
    assert_int_equal(wire_send(of_a, 0, 8 * MIB, memory[0], 0), TN_OK);
    assert_int_equal(wire_send(of_a, 1, 3 * MIB, NULL, 0), TN_OK);
    assert_int_equal(wire_send(of_a, 0, 100, NULL, TN_SEND_URGENT), TN_OK);
    assert_int_equal(wire_send(of_b, 0, 8 * MIB - 1, memory[1], 0), TN_OK);
    WIRE_UNTIL(a, b, b->next[0] == 2 && a->next[0] == 1 && b->next[1] == 1);
    for (uint64_t i = 0; i < 1000; i++) {
        tn_status st;

        while ((st = wire_send(of_a, 2 + i, i * 7 % 3000, NULL, 0)) == TN_PENDING) {
            (void)wire_poll(a);
            (void)wire_poll(b);
        }
        assert_int_equal(st, TN_OK);
    }
    WIRE_UNTIL(a, b, b->next[0] == 1002);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
    free(memory[0]);
    free(memory[1]);
}

/* A part of 4 MiB is at most two work requests, whatever came before; short messages share theirs. */
static void requests(void **state)
{
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .message_max = 4 * MIB + 4096,
                                        .receive_bytes = 32 * MIB,
                                        .links_max = 4,
                                        .lanes = 2};
    unsigned char *memory = malloc(4 * MIB);
    wire_node *a = wire_open_with(&config), *b = wire_open_with(&config);
    tn_link *of_a, *of_b;

    (void)state;
    assert_non_null(memory);
    wire_pair(a, b, &of_a, &of_b);
    for (uint64_t i = 0; i < 50; i++) {
        const uint64_t before = wire_statistic(a, "requests");

        assert_int_equal(wire_send(of_a, i, 4 * MIB, memory, 0), TN_OK);
        WIRE_UNTIL(a, b, b->next[0] == i + 1 && a->seen[TN_EVENT_SENT] == i + 1);
        assert_in_range(wire_statistic(a, "requests") - before, 1, 2);
    }
    assert_in_range(wire_statistic(b, "notes"), 25, 100);
    for (uint64_t i = 0; i < 400; i++)
        assert_int_equal(wire_send(of_a, 50 + i, 200, NULL, 0), TN_OK);
    WIRE_UNTIL(a, b, b->next[0] == 450);
    assert_in_range(wire_statistic(a, "requests"), 52, 200);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
    free(memory);
}

static void places(void **state)
{
    (void)state;
    wire_places();
}

/* Links come and go, by either side, and leave no file and nothing on the card. */
static void cycles(void **state)
{
    const uint64_t runs = test_runs(100);
    char address[TN_TRANSPORT_ADDRESS_MAX + 1];
    wire_node *a, *b;
    uint32_t open = 0, left = 0;

    (void)state;
    plugin.ring_bytes = 1 << 16;
    a = wire_open(7);
    b = wire_open(7);
    wire_listen(b, "127.0.0.1:0", address);
    for (uint64_t run = 0; run < runs; run++) {
        tn_link *of_a = wire_connect(a, address);

        a->links_count = b->links_count = 0;
        a->next[0] = b->next[0] = 0;
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_UP] == run + 1);
        assert_int_equal(wire_send(of_a, 0, 1000, NULL, 0), TN_OK);
        WIRE_UNTIL(a, b, b->next[0] == 1);
        wire->disconnect(run % 2 ? of_a : b->links[0].link);
        WIRE_UNTIL(a, b, a->seen[TN_EVENT_DOWN] == run + 1 && b->seen[TN_EVENT_DOWN] == run + 1);
        open = run ? open : files();
        left = run ? left : card_left();
    }
    assert_int_equal(files(), open);
    assert_int_equal(card_left(), left);
    assert_int_equal(wire_statistic(a, "links") + wire_statistic(b, "links"), 0);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
}

/* What was sent has come, also when the sender is gone before anybody reads. */
static void sent_and_gone(void **state)
{
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;

    (void)state;
    wire_pair(a, b, &of_a, &of_b);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(wire_send(of_a, i, 5000, NULL, 0), TN_OK);
    wire_close(a, SECOND);
    WIRE_UNTIL(b, NULL, b->seen[TN_EVENT_DOWN]);
    assert_int_equal(b->links[0].down, TN_OK);
    assert_int_equal(b->next[0], 20);
    wire_close(b, SECOND);
}

/* ---- puts --------------------------------------------------------------------------------------------- */

/* Waits for the put that comes at `b`; its slot, or UINT64_MAX once the link has ended. */
static uint64_t put_wait(wire_node *a, wire_node *b, uint64_t *bytes)
{
    const uint64_t begin = wire_now_ns();

    for (;;) {
        tn_transport_event e = {.struct_size = (uint32_t)sizeof e};
        uint32_t count = 1;
        tn_err err = {0};

        (void)wire_poll(a);
        assert_int_equal(wire->poll(b->t, &e, &count, 1000000, &err), TN_OK);
        if (count && e.kind == TN_EVENT_DOWN) {
            assert_int_equal(e.status, TN_E_PEER);
            return UINT64_MAX;
        }
        if (wire_now_ns() - begin > 100u * (uint64_t)SECOND)
            fail_msg("no put comes, and the link does not end");
        if (!count)
            continue;
        assert_int_equal(e.kind, TN_EVENT_RECV);
        assert_null(e.data);
        *bytes = e.bytes;
        wire->release(b->t, e.held);
        return e.slot;
    }
}

static tn_status put(tn_link *link, uint64_t token, uint64_t offset, const tn_piece *piece, uint32_t flags)
{
    static const uint8_t header[TN_HEADER_BYTES] = {1};
    const tn_send m = {.struct_size = (uint32_t)sizeof m,
                       .flags = flags,
                       .header = header,
                       .pieces = piece,
                       .piece_count = 1,
                       .cookie = 5,
                       .token = token,
                       .offset = offset};
    tn_err err = {0};

    return wire->put(link, &m, &err);
}

/* From a region straight into the landing, by two work requests; the region is in use until it is written. */
static void puts_land(void **state)
{
    uint8_t *from = malloc(MIB), *to = calloc(1, MIB);
    wire_node *a = wire_open(0), *b = wire_open(0);
    tn_link *of_a, *of_b;
    tn_region *region = NULL, *again = NULL, *other = NULL;
    uint64_t token = 0, bytes = 0, before;
    tn_err err = {0};

    (void)state;
    assert_true(from && to);
    memset(from, 7, MIB);
    wire_pair(a, b, &of_a, &of_b);
    assert_int_equal(wire->region_add(a->t, from, MIB, &region, &err), TN_OK);
    before = card_left();
    assert_int_equal(wire->region_add(a->t, from, MIB, &again, &err), TN_OK);
    assert_ptr_equal(region, again); /* the card knows it once */
    assert_int_equal(card_left(), before);
    assert_int_equal(wire->region_add(b->t, to, MIB, &other, &err), TN_OK);
    assert_int_equal(wire->landing(b->links[0].link, 99, to + 100, MIB - 200, other, &token, &err), TN_OK);
    assert_int_equal(wire->region_remove(b->t, other, &err), TN_E_STATE);
    before = wire_statistic(a, "requests");
    assert_int_equal(put(of_a, token, 50, &(tn_piece){from, 1000, region}, 0), TN_OK);
    assert_int_equal(wire->region_remove(a->t, again, &err), TN_OK);
    assert_int_equal(wire->region_remove(a->t, region, &err), TN_E_STATE);
    assert_int_equal(put_wait(a, b, &bytes), 99);
    WIRE_UNTIL(a, NULL, a->seen[TN_EVENT_SENT] == 1);
    assert_int_equal(wire_statistic(a, "requests") - before, 2);
    assert_int_equal(bytes, 1000);
    assert_true(!to[149] && to[150] == 7 && to[1149] == 7 && !to[1150]);
    assert_int_equal(wire->region_remove(a->t, region, &err), TN_OK);
    assert_int_equal(put(of_a, token, 0, &(tn_piece){from, 10, NULL}, TN_SEND_COPY), TN_OK);
    assert_int_equal(put_wait(a, b, &bytes), 99);
    wire->landing_remove(b->links[0].link, token);
    assert_int_equal(wire->region_remove(b->t, other, &err), TN_OK);
    wire_close(a, SECOND);
    wire_close(b, SECOND);
    free(from);
    free(to);
}

/* Nothing is written outside of a landing, nor with another key, nor once it was removed: the card refuses
 * it, and the link ends at both ends. With another token of the key it ends, and nothing is told. */
static void puts_refused(void **state)
{
    static const struct {
        uint64_t offset, bytes, other;
    } rows[] = {{3000, 2000, 0},           {4000, 1, 0},   {0, 4001, 0}, {1 << 20, 8, 0},
                {0, 8, (uint64_t)1 << 40}, {0, 8, 1 << 20}};
    uint8_t memory[3][8192], from[8192];

    (void)state;
    for (size_t i = 0; i <= sizeof rows / sizeof *rows; i++) {
        const bool removed = i == sizeof rows / sizeof *rows;
        wire_node *a = wire_open(0), *b = wire_open(0);
        tn_link *of_a, *of_b;
        uint64_t token = 0, bytes = 0;
        tn_err err = {0};

        memset(memory, 3, sizeof memory);
        memset(from, 4, sizeof from);
        wire_pair(a, b, &of_a, &of_b);
        assert_int_equal(wire->landing(b->links[0].link, 1, memory[1], 4000, NULL, &token, &err), TN_OK);
        if (removed)
            wire->landing_remove(b->links[0].link, token);
        assert_int_equal(put(of_a, token ^ (removed ? 0 : rows[i].other), removed ? 0 : rows[i].offset,
                             &(tn_piece){from, removed ? 8 : rows[i].bytes, NULL}, TN_SEND_COPY),
                         TN_OK);
        assert_int_equal(put_wait(a, b, &bytes), UINT64_MAX);
        WIRE_UNTIL(a, NULL, a->seen[TN_EVENT_DOWN]);
        for (size_t k = 0; k < sizeof memory[0]; k++)
            assert_true(memory[0][k] == 3 && memory[2][k] == 3 && (k < 4000 || memory[1][k] == 3));
        wire_close(a, SECOND);
        wire_close(b, SECOND);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(requests, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(places, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(cycles, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(sent_and_gone, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(puts_land, setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(puts_refused, setup, plugin_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* kv-shm: a million mutated heads, read out of a ring in this process by the plugin's own code. Either a
 * message of the length that the head says comes, or the link ends; no memory stays. */
#include "peer.h"

#include <stdlib.h>

#include "support/runs.h"

#define MESSAGE_MAX 4096u
#define RING TNSHM_RING_MIN

static uint64_t random_state = 1;

static uint64_t draw(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 20;
}

/* A link that is up, whose rings are this process's memory, and the other side of its bulk ring. */
static void link_make(tn_transport *t, tn_link *l, tnshm_area *area, uint8_t *data, tnshm_pipe *writer)
{
    *l = (tn_link){.t = t, .place = &t->links, .fd = -1, .state = RING_UP, .seen = true, .area = area};
    t->links = l;
    t->open = 1;
    for (uint32_t lane = 0; lane < RING_CLASSES; lane++) {
        atomic_store(&area->ring[0][lane].tail, 0);
        atomic_store(&area->ring[0][lane].head, 0);
        l->in[lane].pipe =
            (tnshm_pipe){.ring = &area->ring[0][lane], .data = data + lane * RING, .size = RING};
        l->out[lane].pipe = (tnshm_pipe){.ring = &area->ring[1][lane], .data = data, .size = RING};
    }
    *writer = l->in[RING_BULK].pipe;
}

static tnshm_head mutated(uint64_t bytes)
{
    tnshm_head h = {.magic = TNSHM_MAGIC, .bytes = bytes};
    uint8_t *at = (uint8_t *)&h;

    for (uint64_t flips = draw() % 4; flips; flips--)
        at[draw() % 4 ? draw() % 16 : draw() % sizeof h] ^= (uint8_t)(1u << draw() % 8);
    return h;
}

static void heads(void **state)
{
    const tnshm_plugin plugin = {.handshake_ms = 1000, .stall_ms = 1000, .ring_bytes = RING};
    const uint64_t runs = test_runs(1000000);
    tnshm_area *area = aligned_alloc(64, sizeof *area);
    uint8_t *data = calloc(2, RING), payload[MESSAGE_MAX + TNSHM_ALIGN] = {0};
    tn_transport t = {
        .ops = &tnshm_links, .plugin = &plugin, .listener = -1, .polled_ns = 1, .due_ns = UINT64_MAX};
    uint64_t ends = 0, messages = 0;
    tnshm_pipe writer;
    tn_link l;

    (void)state;
    assert_true(area && data);
    memset(area, 0, sizeof *area);
    t.last = &t.first;
    t.config = (tn_transport_config){.receive_bytes = 1 << 20, .message_max = MESSAGE_MAX, .links_max = 4};
    link_make(&t, &l, area, data, &writer);
    for (uint64_t run = 0; run < runs; run++) {
        const uint64_t bytes = draw() % 200;
        const tnshm_head h = mutated(bytes);
        const bool right = h.magic == TNSHM_MAGIC && !h.reserved && h.bytes <= MESSAGE_MAX;

        tnshm_pipe_write(&writer, &h, sizeof h);
        tnshm_pipe_write(&writer, payload, tnshm_padded(right ? h.bytes : bytes));
        atomic_store(&writer.ring->tail, writer.own);
        tnshm_link_read(&l);
        assert_non_null(t.first);
        if (t.first->kind == TN_EVENT_RECV) {
            ring_incoming *in = (ring_incoming *)ring_event_pop(&t);

            assert_true(right);
            assert_int_equal(in->bytes, h.bytes);
            assert_memory_equal(in->header, h.header, sizeof h.header);
            tnshm_incoming_free(&t, in);
            messages++;
        } else {
            assert_int_equal(ring_event_pop(&t)->kind, TN_EVENT_DOWN);
            assert_false(right);
            assert_int_equal(l.why, TN_E_PEER);
            link_make(&t, &l, area, data, &writer);
            ends++;
        }
        assert_null(t.first);
        assert_int_equal(t.held, 0);
    }
    assert_int_equal(ends, t.faults);
    assert_int_equal(messages, t.received);
    assert_in_range(ends, runs / 8, runs);
    assert_in_range(messages, runs / 8, runs);
    ring_spare_free(&t, 0);
    free(area);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(heads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

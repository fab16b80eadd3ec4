/* Headers, batches and readers: what is written is read back; nothing that is mutated does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/protocol.h"
#include "support/runs.h"

#define PAYLOAD 512u

static uint64_t state = 1;

static uint64_t random_next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static tni_kv_header random_header(uint64_t bytes)
{
    return (tni_kv_header){.type = (uint8_t)(1 + random_next() % (TNI_KV_BATCH - 1)),
                           .flags = (uint8_t)random_next(),
                           .dtype = (uint8_t)random_next(),
                           .what = (uint8_t)random_next(),
                           .priority = (uint8_t)random_next(),
                           .from = (uint16_t)random_next(),
                           .to = (uint16_t)random_next(),
                           .view = (uint32_t)random_next(),
                           .incarnation = (uint32_t)random_next(),
                           .round = (uint32_t)random_next(),
                           .job = random_next(),
                           .sequence = random_next(),
                           .key = random_next(),
                           .bytes = bytes};
}

static void same_header(const tni_kv_header *a, const tni_kv_header *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->what, b->what);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->from, b->from);
    assert_int_equal(a->to, b->to);
    assert_int_equal(a->view, b->view);
    assert_int_equal(a->incarnation, b->incarnation);
    assert_int_equal(a->round, b->round);
    assert_true(a->job == b->job && a->sequence == b->sequence && a->key == b->key && a->bytes == b->bytes);
}

static void headers_are_read_back(void **unused)
{
    uint8_t payload[PAYLOAD], text[TNI_KV_HEADER_BYTES];
    tni_kv_header h, back;

    (void)unused;
    for (int i = 0; i < 2000; i++) {
        for (size_t k = 0; k < PAYLOAD; k++)
            payload[k] = (uint8_t)random_next();
        h = random_header(random_next() % PAYLOAD);
        tni_kv_encode(&h, payload, text);
        assert_int_equal(tni_kv_decode(text, payload, h.bytes, &back), TN_OK);
        same_header(&h, &back);
        assert_int_equal(tni_kv_decode(text, payload, h.bytes + 1, &back), TN_E_FORMAT);
    }
}

/* The layout is fixed: this header was written down by hand from wire.h. */
static void layout_is_fixed(void **unused)
{
    static const uint8_t expected[56] = {
        0x74, 0x6e, 2, 6, 0x44, 3, 2, 9,                                     /* magic to priority */
        8,    7,    6, 5, 4,    3, 2, 1, 0x02, 0x80, 0x01, 0x40,             /* job, from, to */
        5,    0,    0, 0, 7,    0, 0, 0, 0x0a, 0,    0,    0,                /* view, incarnation, round */
        1,    0,    0, 0, 7,    0, 0, 0, 0x03, 0,    0x11, 0,    0, 0, 0, 0, /* sequence, key */
        0,    0,    0, 0, 0,    0, 0, 0};
    tni_kv_header h = {.type = TNI_KV_PUSH,
                       .flags = 0x44,
                       .dtype = 3,
                       .what = 2,
                       .priority = 9,
                       .from = 0x8002,
                       .to = 0x4001,
                       .view = 5,
                       .incarnation = 7,
                       .round = 10,
                       .job = 0x0102030405060708u,
                       .sequence = 7ull << 32 | 1,
                       .key = 0x11ull << 16 | 3};
    uint8_t text[TNI_KV_HEADER_BYTES];

    (void)unused;
    assert_int_equal(TNI_KV_NODE(TNI_KV_WORKER, 2), 0x8002);
    tni_kv_encode(&h, NULL, text);
    assert_memory_equal(text, expected, sizeof expected);
}

static void batches_are_read_back(void **unused)
{
    uint8_t batch[4096], payload[PAYLOAD];
    tni_kv_header put[8], got, whole = {.type = TNI_KV_BATCH, .from = 3, .job = 9};
    const uint8_t *out;
    uint64_t at = 0;

    (void)unused;
    memset(payload, 7, sizeof payload);
    for (int i = 0; i < 8; i++) {
        put[i] = random_header((uint64_t)i * 37);
        tni_kv_entry_put(&put[i], payload, batch + at);
        at += tni_kv_entry_bytes(put[i].bytes);
    }
    whole.bytes = at;
    at = 0;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(tni_kv_entry_get(&whole, batch, &at, &got, &out), TN_OK);
        assert_int_equal(got.type, put[i].type);
        assert_true(got.key == put[i].key && got.sequence == put[i].sequence && got.bytes == put[i].bytes);
        assert_int_equal(got.from, 3);
        assert_memory_equal(out, payload, got.bytes);
    }
    assert_true(at == whole.bytes);
    assert_int_equal(tni_kv_entry_get(&whole, batch, &at, &got, &out), TN_E_FORMAT);
}

static void mutate(uint8_t *text, size_t bytes)
{
    for (uint64_t n = 1 + random_next() % 4; n > 0; n--)
        text[random_next() % bytes] ^= (uint8_t)(1 + random_next() % 255);
}

/* A mutated header never passes its checksum; one that is signed anew never reads outside. */
static void mutated_headers(void **unused)
{
    const uint64_t runs = test_runs(test_short() ? 100000 : 1000000);
    uint8_t payload[PAYLOAD] = {0}, text[TNI_KV_HEADER_BYTES], first[TNI_KV_HEADER_BYTES];
    tni_kv_header h, back;
    uint64_t taken = 0;

    (void)unused;
    for (uint64_t i = 0; i < runs; i++) {
        if (i % 64 == 0) {
            h = random_header(random_next() % PAYLOAD);
            tni_kv_encode(&h, payload, first);
        }
        memcpy(text, first, sizeof text);
        mutate(text, i % 2 ? sizeof text : 60);
        if (i % 2) {
            if (memcmp(text, first, sizeof text) != 0)
                assert_int_equal(tni_kv_decode(text, payload, h.bytes, &back), TN_E_FORMAT);
            continue;
        }
        tni_kv_put(text + 60, tni_crc32(0, text, 60), 4);
        if (tni_kv_decode(text, payload, h.bytes, &back) == TN_OK) {
            taken++;
            assert_true(back.bytes == h.bytes && back.type > 0 && back.type < TNI_KV_TYPE_END);
        }
    }
    assert_true(taken > 0);
}

/* One bit of a payload of any length, on both sides of where another checksum begins. */
static void flipped_payloads(void **unused)
{
    static uint8_t payload[3 * TNI_KV_CRC_MAX + 5];
    uint8_t text[TNI_KV_HEADER_BYTES];
    tni_kv_header h, back;

    (void)unused;
    for (size_t k = 0; k < sizeof payload; k++)
        payload[k] = (uint8_t)random_next();
    for (uint64_t bytes = 1; bytes <= sizeof payload; bytes += bytes < TNI_KV_CRC_MAX - 3 ? 17 : 1) {
        const uint64_t bit = random_next() % (8 * bytes);

        h = random_header(bytes);
        h.flags |= TNI_KV_CHECKED;
        tni_kv_encode(&h, payload, text);
        assert_int_equal(tni_kv_decode(text, payload, bytes, &back), TN_OK);
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(tni_kv_decode(text, payload, bytes, &back), TN_E_FORMAT);
        payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* ---- builds of other versions ---- */

typedef struct caught { /* the last message that was sent */
    uint8_t header[TNI_KV_HEADER_BYTES];
    char text[400];
    uint32_t count;
} caught;

static void catch_sent(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                       uint64_t bytes, uint32_t priority)
{
    caught *c = arg;

    (void)to;
    (void)priority;
    c->count++;
    memcpy(c->header, header, sizeof c->header);
    memset(c->text, 0, sizeof c->text);
    memcpy(c->text, payload, bytes < sizeof c->text ? bytes : sizeof c->text - 1);
}

static tn_status append_nothing(void *arg, const void *record, uint64_t bytes)
{
    (void)arg;
    (void)record;
    (void)bytes;
    return TN_OK;
}

static void done_nothing(void *arg, uint64_t cookie, tn_status st)
{
    (void)arg;
    (void)cookie;
    (void)st;
}

static const tni_kv_settings one = {.job = 5, .workers = 1, .servers = 1, .control_timeout_ns = 1000000000u};

/* The scheduler's word for a process of version 1 or 3, in the version that all can read. */
static void other_hellos_are_refused(void **unused)
{
    const tni_kv_journal j = {.append = append_nothing};
    const uint8_t versions[] = {0, 3};
    uint8_t text[TNI_KV_HEADER_BYTES], body[37] = {TNI_KV_WORKER, 0xff, 0xff, 0xff, 0xff, 9};
    caught c = {.count = 0};
    const tni_kv_host host = {.arg = &c, .send = catch_sent};
    tni_kv_header h, back;
    tni_kv_scheduler *s;

    (void)unused;
    assert_int_equal(tni_kv_scheduler_create(&one, &host, &j, NULL, 0, 1, &s), TN_OK);
    for (size_t i = 0; i < 2; i++) {
        c.count = 0;
        h = (tni_kv_header){.type = TNI_KV_HELLO, .flags = TNI_KV_CHECKED, .version = 1, .what = versions[i],
                            .from = TNI_KV_UNKNOWN, .job = 5, .bytes = sizeof body};
        tni_kv_encode(&h, body, text);
        assert_int_equal(text[2], 1);
        tni_kv_scheduler_receive(s, text, body, sizeof body, 2);
        assert_int_equal(c.count, 1);
        assert_int_equal(c.header[2], 1);
        assert_int_equal(tni_kv_decode(c.header, c.text, strlen(c.text), &back), TN_OK);
        assert_int_equal(back.type, TNI_KV_REFUSED);
        assert_int_equal(back.what, TNI_KV_FULL);
        assert_true(back.sequence == 9);
        assert_non_null(strstr(c.text, "speaks version 2 of the protocol"));
        assert_non_null(strstr(c.text, versions[i] ? "this process version 3" : "this process version 1"));
    }
    tni_kv_scheduler_destroy(s);
}

/* A worker says its version, and ends when a scheduler of version 1 asks it to take a rank. */
static void other_schedulers_are_refused(void **unused)
{
    const tni_kv_start start = {.rank = -1, .birth = 77};
    uint8_t text[TNI_KV_HEADER_BYTES];
    caught c = {.count = 0};
    const tni_kv_host host = {.arg = &c, .send = catch_sent};
    tni_kv_header h = {.type = TNI_KV_WELCOME, .version = 1, .to = TNI_KV_UNKNOWN, .incarnation = 1, .job = 5,
                       .sequence = 77, .key = 123};
    tni_kv_worker *w;

    (void)unused;
    assert_int_equal(tni_kv_worker_create(&one, &host, &start, done_nothing, &w), TN_OK);
    tni_kv_worker_tick(w, 1);
    assert_int_equal(c.count, 1);
    assert_true(c.header[2] == 1 && c.header[3] == TNI_KV_HELLO && c.header[6] == TNI_KV_WIRE_VERSION);
    h.type = TNI_KV_BEAT; /* of another version nothing else is read */
    tni_kv_encode(&h, NULL, text);
    tni_kv_worker_receive(w, text, NULL, 0, 2);
    assert_int_equal(tni_kv_worker_status(w), TN_OK);
    h.type = TNI_KV_WELCOME;
    tni_kv_encode(&h, NULL, text);
    tni_kv_worker_receive(w, text, NULL, 0, 3);
    assert_int_equal(tni_kv_worker_status(w), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "speaks version 1 of the protocol, this process version 2"));
    assert_int_equal(c.count, 1);
    tni_kv_worker_destroy(w);
}

static void mutated_batches(void **unused)
{
    const uint64_t runs = test_runs(test_short() ? 20000 : 200000);
    uint8_t *batch;
    tni_kv_header got, whole = {.type = TNI_KV_BATCH};
    const uint8_t *out;

    (void)unused;
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t at = 0, bytes = 1 + random_next() % 200;
        uint32_t steps = 0;

        batch = tni_zalloc(bytes); /* of its exact size, so that a sanitizer sees what reads behind it */
        assert_non_null(batch);
        batch[0] = TNI_KV_PUSH;
        if (bytes > 32)
            batch[24] = (uint8_t)(random_next() % 64);
        mutate(batch, bytes);
        whole.bytes = bytes;
        while (at < bytes && tni_kv_entry_get(&whole, batch, &at, &got, &out) == TN_OK)
            assert_true(out + got.bytes <= batch + bytes && ++steps < 16);
        tni_free(batch);
    }
}

static void readers_stop_at_the_end(void **unused)
{
    const uint8_t text[5] = {1, 2, 3, 4, 5};
    tni_kv_reader r = {text, sizeof text, false};

    (void)unused;
    assert_true(tni_kv_read(&r, 4) == 0x04030201);
    assert_true(tni_kv_read(&r, 2) == 0 && r.bad);
    assert_null(tni_kv_read_bytes(&r, 1)); /* once bad, always bad */
    r = (tni_kv_reader){text, sizeof text, false};
    assert_null(tni_kv_read_bytes(&r, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_back), cmocka_unit_test(layout_is_fixed),
        cmocka_unit_test(batches_are_read_back), cmocka_unit_test(mutated_headers),
        cmocka_unit_test(mutated_batches),       cmocka_unit_test(readers_stop_at_the_end),
        cmocka_unit_test(flipped_payloads),      cmocka_unit_test(other_hellos_are_refused),
        cmocka_unit_test(other_schedulers_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
        0x74, 0x6e, 1, 6, 0x44, 3, 2, 9,                                     /* magic to priority */
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

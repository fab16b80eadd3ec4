/*
 * Rows on the wire: payloads are what they say, whatever arrives; a server's sums are those of rows one after
 * the other; a server refuses what is none, and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/rows.h"
#include "kv/server.h"

#define PART 64u /* bytes: 8 rows of 8 */

static uint64_t payload_of(uint8_t *out, uint64_t row_bytes, uint64_t said, uint64_t count,
                           const uint32_t *ids, bool values)
{
    uint64_t at = 8;

    tni_kv_put(out, row_bytes, 4);
    tni_kv_put(out + 4, said, 4);
    for (uint64_t i = 0; values && i < count * row_bytes; i++)
        out[at++] = (uint8_t)i;
    for (uint64_t i = 0; i < count; i++, at += 4)
        tni_kv_put(out + at, ids[i], 4);
    return at;
}

static void payloads_that_are_none(void **unused)
{
    static const struct {
        uint64_t row_bytes, said, count;
        uint32_t ids[9];
        tn_status status;
    } rows[] = {
        {8, 0, 0, {0}, TN_OK},
        {8, 2, 2, {0, 7}, TN_OK},
        {64, 1, 1, {0}, TN_OK},
        {8, 8, 8, {0, 1, 2, 3, 4, 5, 6, 7}, TN_OK},
        {8, 9, 9, {0, 1, 2, 3, 4, 5, 6, 7, 7}, TN_E_FORMAT}, /* too many */
        {8, 1, 1, {8}, TN_E_FORMAT},                         /* out of range */
        {8, 1, 1, {UINT32_MAX}, TN_E_FORMAT},
        {8, 2, 2, {3, 2}, TN_E_FORMAT}, /* not rising */
        {8, 2, 2, {3, 3}, TN_E_FORMAT}, /* twice */
        {8, 3, 2, {0, 1}, TN_E_FORMAT}, /* cut */
        {8, 1, 2, {0, 1}, TN_E_FORMAT}, /* more than it says */
        {8, UINT32_MAX, 1, {0}, TN_E_FORMAT},
        {0, 1, 1, {0}, TN_E_FORMAT},
        {6, 1, 1, {0}, TN_E_FORMAT},   /* no elements */
        {12, 1, 1, {0}, TN_E_FORMAT},  /* do not fill the part */
        {128, 1, 1, {0}, TN_E_FORMAT}, /* longer than the part */
        {UINT32_MAX, 1, 0, {0}, TN_E_FORMAT},
    };
    uint8_t text[2048];
    tni_kv_row_set r;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int values = 0; values < 2; values++) {
            const uint64_t bytes = payload_of(text, rows[i].row_bytes, rows[i].said, rows[i].count,
                                              rows[i].ids, values && rows[i].row_bytes < 256);

            assert_int_equal(tni_kv_rows_read(text, bytes, values, PART, 4, &r), rows[i].status);
            for (uint64_t cut = 0; rows[i].said == rows[i].count && cut < bytes; cut++)
                assert_int_equal(tni_kv_rows_read(text, cut, values, PART, 4, &r), TN_E_FORMAT);
            assert_int_equal(tni_kv_rows_read(text, bytes + 1, values, PART, 4, &r), TN_E_FORMAT);
            assert_int_equal(tni_kv_rows_read(text, bytes, values, PART, 0, &r), TN_E_FORMAT);
            if (rows[i].count)
                assert_int_equal(tni_kv_rows_read(text, bytes, values, 0, 4, &r), TN_E_FORMAT);
        }
}

/* What is written for each part is read there; rows come back where they were. */
static void parts_have_their_rows(void **unused)
{
    const tni_kv_plan_options o = {3, 0, 1024};
    const int64_t ids[] = {0, 1, 84, 85, 86, 170, 299};
    float values[7 * 3], part[86 * 3], taken[86 * 3];
    tni_kv_cut *cuts;
    tni_kv_plan plan;
    uint64_t found = 0;

    (void)unused;
    for (int i = 0; i < 7 * 3; i++)
        values[i] = (float)i;
    assert_int_equal(tni_kv_plan_make(&o, 5, 300, 12, &plan), TN_OK);
    assert_true(plan.parts > 4 && plan.piece % 12 == 0 && plan.piece < 1024 + 12);
    for (int pulls = 0; pulls < 2; pulls++) {
        assert_int_equal(tni_kv_rows_write(&plan, 12, ids, 7, pulls ? NULL : values, &cuts), TN_OK);
        found = 0;
        for (uint32_t i = 0; i < plan.parts; i++) {
            const tni_kv_part p = tni_kv_plan_part(&plan, i);
            const uint8_t *text = (const uint8_t *)tni_kv_rows_payload(cuts, plan.parts) + cuts[i].at;
            tni_kv_row_set r;

            assert_int_equal(tni_kv_rows_read(text, cuts[i + 1].at - cuts[i].at, !pulls, p.bytes, 4, &r),
                             TN_OK);
            assert_int_equal(r.count, cuts[i + 1].row - cuts[i].row);
            for (uint64_t k = 0; k < r.count; k++, found++) {
                assert_int_equal(p.offset + tni_kv_rows_at(&r, k), (uint64_t)ids[found] * 12);
                if (!pulls)
                    assert_memory_equal(r.values + k * 12, values + found * 3, 12);
            }
            for (uint64_t k = 0; k < p.bytes / sizeof(float); k++)
                part[k] = (float)k;
            tni_kv_rows_take(&r, part, taken);
            for (uint64_t k = 0; k < r.count; k++)
                assert_memory_equal(taken + 3 * k, (char *)part + tni_kv_rows_at(&r, k), 12);
        }
        assert_int_equal(found, 7);
        tni_free(cuts);
    }
}

/* ---- a server ---- */

#define WORKER(rank) TNI_KV_NODE(TNI_KV_WORKER, rank)

typedef struct talk {
    tni_kv_server *s;
    tni_kv_named named;
    uint8_t what, type;
    uint64_t bytes;
    float value[16];
} talk;

static void answered(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                     uint64_t bytes, uint32_t priority)
{
    talk *t = arg;
    const uint8_t *entry = payload;

    (void)to;
    (void)priority;
    t->type = header[3] == TNI_KV_BATCH ? entry[0] : header[3];
    t->what = header[3] == TNI_KV_BATCH ? entry[3] : header[6];
    t->bytes = header[3] == TNI_KV_BATCH ? tni_kv_get(entry + 24, 4) : bytes;
    if (t->type == TNI_KV_VALUE && t->bytes <= sizeof t->value)
        memcpy(t->value, entry + (header[3] == TNI_KV_BATCH ? TNI_KV_ENTRY_BYTES : 0), t->bytes);
}

static uint64_t takes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == TN_F32 && (what == 0 || what == TNI_KV_ROWS) ? bytes : 0;
}

static tn_status adds(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                      const void *payload, uint64_t bytes)
{
    return tni_kv_rows_add(&((talk *)arg)->named, h, first, base, sum, payload, bytes);
}

static tn_status applies(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                         uint32_t count, uint32_t members)
{
    (void)arg, (void)h, (void)count, (void)members;
    memcpy(value, sum, bytes);
    return TN_OK;
}

static void say(talk *t, tni_kv_header h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h.to = t->s->node.id;
    h.view = t->s->node.view.number;
    h.job = t->s->node.settings->job;
    h.incarnation = 3;
    h.bytes = bytes;
    t->type = t->what = 0;
    tni_kv_encode(&h, payload, text);
    (void)tni_kv_server_receive(t->s, text, payload, bytes, 1000);
}

static void push(talk *t, uint32_t rank, uint32_t round, uint64_t row_bytes, uint64_t count,
                 const uint32_t *ids)
{
    static uint64_t sequence = 10;
    uint8_t text[512];
    const uint64_t bytes = payload_of(text, row_bytes, count, count, ids, true);
    const float one = (float)(rank + 1);

    for (uint64_t i = 0; i < count * row_bytes / sizeof one; i++)
        memcpy(text + 8 + i * sizeof one, &one, sizeof one);
    say(t,
        (tni_kv_header){.type = TNI_KV_PUSH,
                        .from = WORKER(rank),
                        .dtype = TN_F32,
                        .what = TNI_KV_ROWS,
                        .round = round,
                        .key = 1 << 16,
                        .sequence = ++sequence},
        text, bytes);
}

static void pull(talk *t, uint32_t round, uint64_t count, const uint32_t *ids)
{
    uint8_t text[512];

    say(t,
        (tni_kv_header){.type = TNI_KV_PULL,
                        .from = WORKER(0),
                        .what = TNI_KV_ROWS,
                        .round = round,
                        .key = 1 << 16,
                        .sequence = 1000 + round},
        text, payload_of(text, 8, count, count, ids, false));
}

/* Rows that are wrong have no answer and no effect: the round ends with the right ones. */
static void a_server_of_rows(void **unused)
{
    static const uint32_t some[] = {1, 6}, others[] = {1, 2}, wrong[] = {6, 1}, far[] = {8};
    static const float expected[16] = {0, 0, 3, 3, 2, 2, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0};
    const tni_kv_settings settings = {
        .job = 5, .workers = 2, .servers = 1, .landing_bytes = 1000, .timeout_ns = 1u << 30};
    talk t = {0};
    const tni_kv_host host = {.arg = &t, .send = answered};
    const tni_kv_start start = {.birth = 1};
    const tni_kv_update update = {.arg = &t, .payload_bytes = takes, .add = adds, .apply = applies};
    tni_kv_header empty = {
        .type = TNI_KV_INIT, .from = WORKER(0), .dtype = TN_F32, .key = 2 << 16, .sequence = 2000};
    float zeros[16] = {0};

    (void)unused;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &t.s), TN_OK);
    t.s->node.id = TNI_KV_NODE(TNI_KV_SERVER, 0);
    t.s->node.incarnation = 2;
    for (uint32_t w = 0; w < 2; w++) {
        t.s->node.view.members[w].state = TNI_KV_ALIVE;
        t.s->node.view.members[w].incarnation = 3;
    }
    say(&t,
        (tni_kv_header){
            .type = TNI_KV_INIT, .from = WORKER(0), .dtype = TN_F32, .key = 1 << 16, .sequence = 1},
        zeros, sizeof zeros);
    assert_int_equal(t.what, TNI_KV_APPLIED);
    push(&t, 1, 1, 8, 2, wrong);
    assert_int_equal(t.type, 0);
    push(&t, 1, 1, 8, 1, far);
    assert_int_equal(t.type, 0);
    push(&t, 1, 1, 12, 1, some);
    assert_int_equal(t.type, 0);
    push(&t, 1, 1, 8, 2, others); /* waits for worker 0 */
    assert_int_equal(t.what, TNI_KV_HELD);
    pull(&t, 1, 2, some); /* waits, and is told to ask again */
    assert_int_equal(t.what, TNI_KV_HELD);
    push(&t, 0, 1, 8, 2, some);
    assert_int_equal(t.s->table_size ? tni_kv_part_find(t.s, 1 << 16)->version : 0, 1);
    assert_memory_equal(tni_kv_part_find(t.s, 1 << 16)->value, expected, sizeof expected);
    pull(&t, 1, 2, wrong);
    assert_int_equal(t.type, 0);
    pull(&t, 1, 1, far);
    assert_int_equal(t.type, 0);
    pull(&t, 1, 2, others);
    assert_int_equal(t.type, TNI_KV_VALUE);
    assert_int_equal(t.bytes, 16);
    assert_memory_equal(t.value, expected + 2, 16);
    pull(&t, 1, 0, others);
    assert_int_equal(t.type, TNI_KV_VALUE);
    assert_int_equal(t.bytes, 0);
    say(&t, empty, zeros, 0);
    assert_int_equal(t.what, TNI_KV_APPLIED);
    empty.type = TNI_KV_PUSH; /* no rows, not even of a part that has none */
    empty.what = TNI_KV_ROWS;
    empty.round = 1;
    say(&t, empty, zeros, 0);
    assert_int_equal(t.type, 0);
    assert_int_equal(tni_kv_server_status(t.s), TN_OK);
    assert_int_equal(t.s->landing_bytes, 0);
    tni_kv_server_destroy(t.s);
    tni_free(t.named.bits);
}

/* Rows of two lengths are no sum: the error says whose they are. */
static void two_lengths(void **unused)
{
    static const uint32_t ids[] = {1, 2};
    tni_kv_header h = {.from = WORKER(0), .dtype = TN_F32, .key = 7 << 16};
    tni_kv_named named = {.bits = NULL};
    uint8_t text[64];
    float sum[16];

    (void)unused;
    h.bytes = payload_of(text, 8, 2, 2, ids, true);
    assert_int_equal(tni_kv_rows_add(&named, &h, true, sum, sum, text, sizeof sum), TN_OK);
    h.from = WORKER(1);
    h.bytes = payload_of(text, 4, 2, 2, ids, true);
    assert_int_equal(tni_kv_rows_add(&named, &h, false, sum, sum, text, sizeof sum), TN_E_SHAPE);
    assert_string_equal(tni_error_message(), "key 7: worker 1 pushes rows of 4 bytes, others of 8");
    tni_free(named.bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(payloads_that_are_none),
                                       cmocka_unit_test(parts_have_their_rows),
                                       cmocka_unit_test(a_server_of_rows), cmocka_unit_test(two_lengths)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

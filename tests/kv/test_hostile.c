/*
 * Members that send what they like, well signed; journals, views and snapshots that are torn or changed:
 * nothing crashes, hangs or grows, and what is wrong is TN_E_FORMAT.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/server.h"
#include "kv/sim/sim.h"
#include "support/runs.h"

static uint64_t state = 7;

static uint64_t random_next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void hostile_members(void **unused)
{
    const uint64_t seeds = test_runs(test_short() ? 100 : 300);
    tni_mem_stats before, stats;
    sim_result result;

    (void)unused;
    tni_mem_stats_get(&before);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        const sim_options o = {.seed = seed, .mode = -1, .faults = SIM_LOSS | SIM_DOUBLE, .hostile = true};

        (void)sim_run(&o, &result); /* its values are wrong, of course */
        tni_mem_stats_get(&stats);
        if (stats.live_bytes != before.live_bytes)
            fail_msg("seed %llu leaks", (unsigned long long)seed);
    }
    assert_true(stats.peak_bytes < before.peak_bytes + (16u << 20));
}

static void mutated_views(void **unused)
{
    tni_kv_view v, back;
    tni_str text;
    uint64_t taken = 0;

    (void)unused;
    assert_int_equal(tni_kv_view_init(&v, 3, 2), TN_OK);
    v.number = 9;
    v.members[1] = (tni_kv_member){77, 5, 12, TNI_KV_ENDED, 4, (uint8_t *)tni_strdup("abc")};
    tni_str_init(&text, 1u << 20);
    tni_kv_view_write(&v, &text);
    assert_int_equal(text.status, TN_OK);
    assert_int_equal(tni_kv_view_init(&back, 3, 2), TN_OK);
    assert_int_equal(tni_kv_view_read(&back, (uint8_t *)text.text, text.length), TN_OK);
    assert_int_equal(back.number, 9);
    assert_int_equal(back.members[1].last_round, 12);
    assert_memory_equal(back.members[1].address, "abc", 4);
    assert_null(tni_kv_view_member(&v, TNI_KV_NODE(TNI_KV_WORKER, 3)));
    assert_null(tni_kv_view_member(&v, TNI_KV_UNKNOWN));
    for (size_t bytes = 0; bytes < text.length; bytes++)
        assert_int_equal(tni_kv_view_read(&back, (uint8_t *)text.text, bytes), TN_E_FORMAT);
    for (int i = 0; i < 20000; i++) {
        uint8_t *copy = tni_alloc(text.length);
        tn_status st;

        assert_non_null(copy);
        memcpy(copy, text.text, text.length);
        for (uint64_t n = random_next() % 4; n < 4; n++)
            copy[random_next() % text.length] = (uint8_t)random_next();
        st = tni_kv_view_read(&back, copy, text.length);
        assert_true(st == TN_OK || st == TN_E_FORMAT);
        taken += st == TN_OK;
        tni_free(copy);
    }
    assert_true(taken > 0);
    assert_int_equal(tni_kv_view_init(&(tni_kv_view){0}, 0, 1), TN_E_ARG);
    assert_int_equal(tni_kv_view_init(&(tni_kv_view){0}, 1, TNI_KV_RANKS_MAX + 1), TN_E_ARG);
    tni_str_fini(&text);
    tni_kv_view_fini(&v);
    tni_kv_view_fini(&back);
}

static void torn_journals(void **unused)
{
    static const char *const records[] = {"first", "", "the third record"};
    uint64_t ends[4] = {0};
    tni_str text;

    (void)unused;
    tni_str_init(&text, 1u << 20);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tni_kv_journal_record(records[i], strlen(records[i]), &text), TN_OK);
        ends[i + 1] = text.length;
    }
    for (uint64_t bytes = 0; bytes <= text.length; bytes++) {
        int whole = 0;

        while (whole < 3 && ends[whole + 1] <= bytes)
            whole++;
        assert_true(tni_kv_journal_whole(text.text, bytes) == ends[whole]);
    }
    for (uint64_t bit = 0; bit < 8 * text.length; bit++) { /* what is behind a changed bit is not read */
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        assert_true(tni_kv_journal_whole(text.text, text.length) <= bit / 8);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_int_equal(tni_kv_journal_record("", UINT64_MAX, &text), TN_E_ARG);
    tni_str_fini(&text);
}

static void nothing_sent(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES],
                         const void *payload, uint64_t bytes, uint32_t priority)
{
    (void)arg, (void)to, (void)header, (void)payload, (void)bytes, (void)priority;
}

static void changed_snapshots(void **unused)
{
    const tni_kv_settings settings = {.job = 5, .workers = 2, .servers = 1};
    const tni_kv_host host = {NULL, nothing_sent, NULL};
    const tni_kv_start start = {.birth = 1};
    const tni_kv_update update = {0};
    tni_kv_store_part *p;
    tni_kv_server *s;
    uint32_t version;
    tni_str text;

    (void)unused;
    assert_int_equal(tni_kv_server_create(&settings, &host, &start, &update, NULL, &s), TN_OK);
    for (uint64_t key = 0; key < 3; key++) {
        assert_int_equal(tni_kv_part_create(s, key << 16, 0, 40 * key, &p), TN_OK);
        p->version = (uint32_t)key + 7;
        memset(p->value, 9, 40 * key);
    }
    tni_str_init(&text, 1u << 20);
    assert_int_equal(tni_kv_snapshot_write(s, &text), TN_OK);
    tni_kv_parts_clear(s);
    assert_int_equal(tni_kv_snapshot_read(s, text.text, text.length), TN_OK);
    assert_non_null(tni_kv_server_value(s, 2 << 16, &version));
    assert_int_equal(version, 9);
    for (uint64_t i = 0; i < 5000; i++) {
        const uint64_t bit = random_next() % (8 * text.length), bytes = random_next() % text.length;
        tn_status st;

        tni_kv_parts_clear(s);
        assert_int_equal(tni_kv_snapshot_read(s, text.text, bytes), TN_E_FORMAT);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(tni_kv_snapshot_read(s, text.text, text.length), TN_E_FORMAT);
        tni_kv_put((uint8_t *)text.text + text.length - 4, tni_crc32(0, text.text, text.length - 4), 4);
        tni_kv_parts_clear(s);
        st = tni_kv_snapshot_read(s, text.text, text.length); /* well signed: no more than an error */
        assert_true(st == TN_OK || st == TN_E_FORMAT || st == TN_E_NOMEM);
        text.text[bit / 8] ^= (char)(1 << bit % 8);
        tni_kv_put((uint8_t *)text.text + text.length - 4, tni_crc32(0, text.text, text.length - 4), 4);
    }
    tni_str_fini(&text);
    tni_kv_server_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_members), cmocka_unit_test(mutated_views),
                                       cmocka_unit_test(torn_journals), cmocka_unit_test(changed_snapshots)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Random use of all pools with canaries in real memory, and random use by several streams against an oracle
 * that knows, for each 64 bytes of the device, who may touch them.
 */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 30000u
#define LIVE_MAX 200u
#define POOLS 4u

static const char *const ids[] = {"naive", "round", "segment", "first-fit"};

static uint64_t random_size(uint64_t *random)
{
    uint64_t r = test_random(random), kind = r % 10;

    r >>= 8;
    if (kind < 6)
        return 1 + r % 2000;
    return kind < 9 ? 1 + r % 100000 : 1 + r % 1500000;
}

static void fill(const tn_memory *m, unsigned char value)
{
    memset(m->data, value, (size_t)m->bytes);
}

static void check(const tn_memory *m, unsigned char value)
{
    const unsigned char *p = m->data;

    for (uint64_t i = 0; i < m->bytes; i += i < 64 || i + 256 > m->bytes ? 1 : 61)
        if (p[i] != value)
            fail_msg("byte %llu of %llu was overwritten", (unsigned long long)i,
                     (unsigned long long)m->bytes);
}

static void test_canaries(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < POOLS; k++) {
        tn_memory live[LIVE_MAX];
        uint64_t random = 7 + k, asked = 0, block = 0;
        uint32_t count = 0;
        tn_pool *pool;

        source_init(&s, true);
        pool = source_pool(&s, ids[k]);
        for (uint32_t step = 0; step < STEPS; step++) {
            tn_pool_stats stats;

            if (count < LIVE_MAX && test_random(&random) % 100 < (step / 1000 % 2 ? 35 : 60)) {
                live[count] = pool_get(pool, random_size(&random), NULL);
                assert_int_equal((uintptr_t)live[count].data % s.ops.alignment, 0);
                block += live[count].block_bytes;
                fill(&live[count], (unsigned char)(uintptr_t)(live[count].bytes * 31));
                count++;
                asked++;
            } else if (count) {
                uint32_t i = (uint32_t)(test_random(&random) % count);

                check(&live[i], (unsigned char)(uintptr_t)(live[i].bytes * 31));
                block -= live[i].block_bytes;
                pool->ops->free(pool, &live[i], NULL);
                live[i] = live[--count];
            }
            if (step % 997 == 0)
                pool->ops->trim(pool, test_random(&random) % (1u << 20));
            if (step % 16)
                continue;
            stats = pool_stats(pool);
            assert_int_equal(stats.live_bytes, block);
            assert_int_equal(stats.live_blocks, count);
            assert_int_equal(stats.live_bytes + stats.cached_bytes, s.given_bytes);
            assert_int_equal(stats.hits + stats.misses, asked);
            assert_int_equal(stats.misses, s.alloc_calls);
            assert_int_equal(stats.releases, s.free_calls);
            assert_int_equal(stats.peak_bytes, s.peak_bytes);
            assert_true(stats.largest_free <= stats.cached_bytes);
            assert_true(!stats.cached_bytes == !stats.largest_free);
        }
        while (count) {
            check(&live[count - 1], (unsigned char)(uintptr_t)(live[count - 1].bytes * 31));
            pool->ops->free(pool, &live[--count], NULL);
        }
        pool->ops->trim(pool, 0); /* all chunks merged again: every segment is whole and idle */
        assert_int_equal(pool_stats(pool).cached_bytes, 0);
        assert_int_equal(pool_stats(pool).cached_blocks, 0);
        assert_int_equal(s.given_bytes, 0);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

/* ---- streams ------------------------------------------------------------------------------------- */

#define UNIT 64u
#define SPACE ((uint64_t)256 << 20)

typedef struct unit {
    uint32_t stream; /* freed there, 1 + index; 0: never used */
    uint32_t live;
    uint64_t at;
} unit;

typedef struct oracle {
    source *s;
    unit *units;
} oracle;

static void claim_check(oracle *o, const tn_memory *m, uint32_t stream)
{
    uint64_t first = (uintptr_t)m->data / UNIT, last = ((uintptr_t)m->data + m->block_bytes - 1) / UNIT;

    for (uint64_t i = first; i <= last; i++) {
        unit *u = &o->units[i];

        assert_int_equal(u->live, 0);
        if (u->stream && u->stream != stream + 1 && o->s->streams[u->stream - 1].reached < u->at &&
            o->s->seen[stream][u->stream - 1] < u->at)
            fail_msg("stream %u got memory that stream %u still uses", stream, u->stream - 1);
        u->live = 1;
    }
}

static void claim_end(oracle *o, const tn_memory *m, uint32_t stream)
{
    uint64_t first = (uintptr_t)m->data / UNIT, last = ((uintptr_t)m->data + m->block_bytes - 1) / UNIT;

    for (uint64_t i = first; i <= last; i++)
        o->units[i] = (unit){stream + 1, 0, o->s->streams[stream].queued};
}

static void give_check(void *arg, void *data, uint64_t bytes)
{
    oracle *o = arg;

    for (uint64_t i = (uintptr_t)data / UNIT; i < ((uintptr_t)data + bytes) / UNIT; i++) {
        const unit *u = &o->units[i];

        assert_int_equal(u->live, 0);
        assert_true(!u->stream || o->s->streams[u->stream - 1].reached >= u->at);
    }
}

/* Streams advance at random; a small device makes the pool trim, wait and reuse across streams. */
static void test_streams(void **state)
{
    static source s;
    oracle o = {&s, calloc(SPACE / UNIT, sizeof(unit))};

    (void)state;
    assert_non_null(o.units);
    for (uint32_t k = 0; k < POOLS; k++) {
        tn_memory live[LIVE_MAX];
        uint64_t random = 77 + k, waits = 0, full = 0;
        uint32_t count = 0;
        tn_pool *pool;

        memset(o.units, 0, SPACE / UNIT * sizeof(unit));
        source_init(&s, false);
        s.total_bytes = 5u << 20;
        s.on_give = give_check;
        s.on_give_arg = &o;
        pool = source_pool(&s, ids[k]);
        for (uint32_t step = 0; step < STEPS && s.next_address < SPACE - (16u << 20); step++) {
            uint32_t stream = (uint32_t)(test_random(&random) % SOURCE_STREAMS);
            source_stream *clock = &s.streams[test_random(&random) % SOURCE_STREAMS];

            if (clock->reached < clock->queued && step % 3 == 0)
                clock->reached += 1 + test_random(&random) % (clock->queued - clock->reached);
            if (count < 40 && test_random(&random) % 2) {
                tn_memory *m = &live[count];
                tn_err err = {0};
                tn_status st =
                    pool->ops->alloc(pool, random_size(&random), source_stream_at(&s, stream), m, &err);

                full += st == TN_E_NOMEM;
                if (st == TN_OK) {
                    claim_check(&o, m, stream);
                    count++;
                } else {
                    assert_int_equal(st, TN_E_NOMEM);
                }
            } else if (count) {
                uint32_t i = (uint32_t)(test_random(&random) % count);

                pool->ops->free(pool, &live[i], source_stream_at(&s, stream));
                claim_end(&o, &live[i], stream);
                live[i] = live[--count];
            }
            if (step % 499 == 0)
                pool->ops->trim(pool, 0);
        }
        for (uint32_t i = 0; i < SOURCE_STREAMS; i++)
            waits += s.streams[i].waits;
        print_message("%s: %llu hits, %llu misses, %llu waits, %llu times full\n", ids[k],
                      (unsigned long long)pool_stats(pool).hits, (unsigned long long)pool_stats(pool).misses,
                      (unsigned long long)waits, (unsigned long long)full);
        assert_true(waits > 0 || k == 3); /* the template waits for no stream */
        while (count) {
            pool->ops->free(pool, &live[--count], source_stream_at(&s, 0));
            claim_end(&o, &live[count], 0);
        }
        pool->ops->trim(pool, 0);
        source_reach_all(&s);
        pool->ops->trim(pool, 0);
        assert_int_equal(s.given_bytes, 0);
        assert_int_equal(s.marks, 0);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
    free(o.units);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_canaries), cmocka_unit_test(test_streams)};

    return cmocka_run_group_tests_name("pool.random", tests, NULL, NULL);
}

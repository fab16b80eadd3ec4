/* What the pools do when memory runs out, on the device or on the host, and what they give back when. */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const ids[] = {"naive", "round", "segment"};

#define MIB ((uint64_t)1 << 20)

/* The same work with allocation n of the device failing: each call succeeds or changes nothing. */
static void test_device_alloc_fails(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++)
        for (int64_t n = 1; n < 40; n++) {
            tn_memory live[32];
            uint32_t count = 0;
            tn_pool *pool;

            source_init(&s, false);
            s.fail_at = n;
            pool = source_pool(&s, ids[k]);
            for (uint64_t i = 0; i < 32; i++) {
                tn_pool_stats before = pool_stats(pool), after;
                tn_memory m = {.bytes = 77};
                tn_err err = {0};

                if (pool->ops->alloc(pool, (i * 37 % 11 + 1) * 100000, NULL, &m, &err) == TN_OK) {
                    live[count++] = m;
                } else {
                    after = pool_stats(pool);
                    assert_int_equal(m.bytes, 77);
                    assert_int_equal(err.code, TN_E_NOMEM);
                    assert_int_equal(after.live_bytes, before.live_bytes);
                    assert_int_equal(after.hits + after.misses, before.hits + before.misses);
                }
                if (i % 5 == 4) {
                    pool->ops->free(pool, &live[count - 1], NULL);
                    count--;
                }
            }
            while (count)
                pool->ops->free(pool, &live[--count], NULL);
            pool->ops->destroy(pool);
            source_fini(&s);
        }
}

/* Host memory for the bookkeeping fails from call n on, for good. Freeing must still work. */
static void test_bookkeeping_fails(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++)
        for (int64_t n = 1; n < 60; n++) {
            tn_memory live[400];
            uint32_t count = 0;
            tn_pool *pool = NULL;
            tn_err err = {0};

            source_init(&s, false);
            s.memory_fail_at = n + 1; /* after init's own */
            if (source_pool_ops(ids[k])->create(s.plugin, &s.ops, &pool, &err)) {
                assert_int_equal(err.code, TN_E_NOMEM);
                source_fini(&s);
                continue;
            }
            for (uint64_t i = 0; i < 400; i++)
                if (pool->ops->alloc(pool, 1 + i * 9973 % 70000, NULL, &live[count], &err) == TN_OK)
                    count++;
            for (uint32_t i = 0; i < count; i += 2)
                pool->ops->free(pool, &live[i], NULL);
            for (uint32_t i = 1; i < count; i += 2)
                pool->ops->free(pool, &live[i], NULL);
            pool->ops->trim(pool, 0);
            assert_int_equal(pool_stats(pool).live_bytes, 0);
            assert_int_equal(s.given_bytes, 0);
            pool->ops->destroy(pool);
            source_fini(&s);
        }
}

/* A full device: the cache is released and the request tried again. */
static void test_cache_is_released(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_memory a, b, m = {0};
        tn_err err = {0};
        tn_pool *pool;

        source_init(&s, false);
        s.total_bytes = 64 * MIB;
        source_option(&s, "reserve", "0");
        pool = source_pool(&s, ids[k]);
        a = pool_get(pool, 20 * MIB, NULL);
        b = pool_get(pool, 24 * MIB, NULL);
        pool->ops->free(pool, &a, NULL);
        pool->ops->free(pool, &b, NULL);
        a = pool_get(pool, 60 * MIB, NULL); /* needs what a and b had */
        assert_true(pool_stats(pool).releases >= 2);
        assert_int_equal(pool->ops->alloc(pool, 8 * MIB, NULL, &m, &err), TN_E_NOMEM);
        assert_true(err.message[0]);
        pool->ops->free(pool, &a, NULL);
        b = pool_get(pool, 8 * MIB, NULL);
        pool->ops->free(pool, &b, NULL);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

/* MXNet's reserve: with less than it left, a miss releases the whole cache first, though memory would do. */
static void test_reserve(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        tn_memory a, b, c;
        tn_pool *pool;

        source_init(&s, false);
        s.total_bytes = 100 * MIB;
        source_option(&s, "reserve", "50");
        pool = source_pool(&s, ids[k]);
        a = pool_get(pool, 16 * MIB, NULL);
        pool->ops->free(pool, &a, NULL);
        b = pool_get(pool, 32 * MIB, NULL); /* 84 free, 50 kept: 34 may go */
        assert_int_equal(pool_stats(pool).releases, 0);
        c = pool_get(pool, 4 * MIB, NULL); /* 52 free: too few */
        assert_int_equal(pool_stats(pool).releases, 1);
        assert_int_equal(pool_stats(pool).cached_bytes, 0);
        pool->ops->free(pool, &b, NULL);
        pool->ops->free(pool, &c, NULL);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

static void test_limit(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_memory a, m = {0};
        tn_err err = {0};
        tn_pool *pool;

        source_init(&s, false);
        source_option(&s, "limit", "32m");
        pool = source_pool(&s, ids[k]);
        a = pool_get(pool, 16 * MIB, NULL);
        assert_int_equal(pool->ops->alloc(pool, 17 * MIB, NULL, &m, &err), TN_E_NOMEM);
        assert_non_null(strstr(err.message, "limit"));
        assert_int_equal(pool->ops->alloc(pool, 33 * MIB, NULL, &m, &err), TN_E_NOMEM);
        pool->ops->free(pool, &a, NULL);
        a = pool_get(pool, 17 * MIB, NULL);
        assert_true(s.given_bytes <= 32 * MIB);
        pool->ops->free(pool, &a, NULL);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

/* Live blocks at destroy are given back too. */
static void test_destroy_live(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_pool *pool;

        source_init(&s, false);
        pool = source_pool(&s, ids[k]);
        for (uint64_t i = 1; i < 100; i++) {
            tn_memory m = pool_get(pool, i * 5000, source_stream_at(&s, i % 2));

            if (i % 3 == 0)
                pool->ops->free(pool, &m, source_stream_at(&s, i % 4));
        }
        pool->ops->destroy(pool);
        source_pool_ops(ids[k])->destroy(NULL);
        source_fini(&s);
    }
}

/* A stream that cannot be marked any more keeps its blocks; nothing else breaks. */
static void test_marks_fail(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_memory a, b;
        tn_pool *pool;

        source_init(&s, false);
        pool = source_pool(&s, ids[k]);
        a = pool_get(pool, 100000, source_stream_at(&s, 0));
        s.marks_fail = true;
        pool->ops->free(pool, &a, source_stream_at(&s, 0));
        b = pool_get(pool, 100000, source_stream_at(&s, 1));
        assert_ptr_not_equal(a.data, b.data);
        pool->ops->trim(pool, 0);
        assert_true(s.given_bytes >= 200000);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

/* Same stream: at once. Another: when the mark is done. Nothing open goes back to the device. */
static void test_marks(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_memory a, b;
        tn_pool *pool;

        source_init(&s, false);
        pool = source_pool(&s, ids[k]);
        a = pool_get(pool, 2 * MIB, source_stream_at(&s, 0));
        pool->ops->free(pool, &a, source_stream_at(&s, 0));
        b = pool_get(pool, 2 * MIB, source_stream_at(&s, 0));
        assert_ptr_equal(a.data, b.data);
        pool->ops->free(pool, &b, source_stream_at(&s, 0));
        pool->ops->trim(pool, 0);
        assert_int_equal(pool_stats(pool).releases, 0);
        source_reach_all(&s);
        b = pool_get(pool, 2 * MIB, source_stream_at(&s, 1));
        assert_ptr_equal(a.data, b.data);
        assert_int_equal(s.streams[1].waits, 0);
        pool->ops->free(pool, &b, source_stream_at(&s, 1));
        source_reach_all(&s);
        pool->ops->trim(pool, 0);
        assert_int_equal(s.given_bytes, 0);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

static void test_trim_keeps(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_memory m[10];
        tn_pool_stats stats;
        tn_pool *pool;

        source_init(&s, false);
        pool = source_pool(&s, ids[k]);
        for (uint32_t i = 0; i < 10; i++)
            m[i] = pool_get(pool, 2 * MIB, NULL);
        for (uint32_t i = 0; i < 10; i++)
            pool->ops->free(pool, &m[i], NULL);
        stats = pool_stats(pool);
        assert_in_range(stats.cached_bytes, 20 * MIB, 23 * MIB); /* segment takes a little ahead */
        pool->ops->trim(pool, stats.cached_bytes);
        assert_int_equal(pool_stats(pool).releases, 0);
        pool->ops->trim(pool, 7 * MIB);
        assert_in_range(pool_stats(pool).cached_bytes, 4 * MIB, 7 * MIB);
        assert_int_equal(pool_stats(pool).largest_free, 2 * MIB);
        assert_int_equal(pool_stats(pool).peak_bytes, stats.cached_bytes);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

static void test_bad_source(void **state)
{
    static source s;

    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        tn_pool *pool = NULL;
        tn_pool_source bad;

        source_init(&s, false);
        bad = s.ops;
        bad.alignment = 48;
        assert_int_equal(source_pool_ops(ids[k])->create(s.plugin, &bad, &pool, NULL), TN_E_ARG);
        bad = s.ops;
        bad.alloc = NULL;
        assert_int_equal(source_pool_ops(ids[k])->create(s.plugin, &bad, &pool, NULL), TN_E_ARG);
        bad = s.ops;
        bad.struct_size = (uint32_t)TN_END(tn_pool_source, alloc);
        assert_int_equal(source_pool_ops(ids[k])->create(s.plugin, &bad, &pool, NULL), TN_E_ARG);
        assert_null(pool);
        bad = s.ops;
        bad.struct_size = (uint32_t)TN_END(tn_pool_source, free); /* the least that works */
        assert_int_equal(source_pool_ops(ids[k])->create(s.plugin, &bad, &pool, NULL), TN_OK);
        {
            tn_memory m = pool_get(pool, 100, source_stream_at(&s, 0));

            pool->ops->free(pool, &m, source_stream_at(&s, 0));
        }
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_alloc_fails),
        cmocka_unit_test(test_bookkeeping_fails),
        cmocka_unit_test(test_cache_is_released),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_destroy_live),
        cmocka_unit_test(test_marks_fail),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_trim_keeps),
        cmocka_unit_test(test_bad_source),
    };

    return cmocka_run_group_tests_name("pool.faults", tests, NULL, NULL);
}

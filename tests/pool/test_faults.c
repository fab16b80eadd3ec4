/*
 * What the pools do when memory runs out, on the device or on the host, and what they give back when.
 *
 * Each scenario is a test of its own for each pool. Its row says what the device has and which option is set;
 * the fixture makes the pool before it and sees to it that all came back after it.
 */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static source s;      /* the device of the test that runs */
static tn_pool *pool; /* the pool of the test that runs; NULL while it makes its own */
static const char *id;

/* Fails once: the call succeeds or changes nothing. */
static bool alloc_or_unchanged(uint64_t bytes, tn_memory *out)
{
    tn_pool_stats before = pool_stats(pool), after;
    tn_err err = {0};

    out->bytes = 77;
    if (pool->ops->alloc(pool, bytes, NULL, out, &err) == TN_OK)
        return true;
    after = pool_stats(pool);
    assert_int_equal(out->bytes, 77);
    assert_int_equal(err.code, TN_E_NOMEM);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.hits + after.misses, before.hits + before.misses);
    return false;
}

/* The same work with allocation n of the device failing. */
static void device_alloc_fails(void)
{
    for (int64_t n = 1; n < 40; n++) {
        tn_memory live[32];
        uint32_t count = 0;

        source_init(&s, false);
        s.fail_at = n;
        pool = source_pool(&s, id);
        for (uint64_t i = 0; i < 32; i++) {
            count += alloc_or_unchanged((i * 37 % 11 + 1) * 100000, &live[count]);
            if (i % 5 == 4)
                pool->ops->free(pool, &live[--count], NULL);
        }
        while (count)
            pool->ops->free(pool, &live[--count], NULL);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

/* Host memory for the bookkeeping fails from call n on, for good. Freeing must still work. */
static void bookkeeping_fails(void)
{
    for (int64_t n = 1; n < 60; n++) {
        tn_memory live[400];
        uint32_t count = 0;
        tn_err err = {0};

        source_init(&s, false);
        s.memory_fail_at = n + 1; /* after init's own */
        if (source_pool_ops(id)->create(s.plugin, &s.ops, &pool, &err)) {
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
static void cache_is_released(void)
{
    tn_memory a = pool_get(pool, 20 * MIB, NULL), b = pool_get(pool, 24 * MIB, NULL), m = {0};
    tn_err err = {0};

    pool->ops->free(pool, &a, NULL);
    pool->ops->free(pool, &b, NULL);
    a = pool_get(pool, 60 * MIB, NULL); /* needs what a and b had */
    assert_true(pool_stats(pool).releases >= 2);
    assert_int_equal(pool->ops->alloc(pool, 8 * MIB, NULL, &m, &err), TN_E_NOMEM);
    assert_true(err.message[0]);
    pool->ops->free(pool, &a, NULL);
    b = pool_get(pool, 8 * MIB, NULL);
    pool->ops->free(pool, &b, NULL);
}

/* MXNet's reserve: with less than it left, a miss releases the whole cache first, though memory would do. */
static void reserve(void)
{
    tn_memory a = pool_get(pool, 16 * MIB, NULL), b, c;

    pool->ops->free(pool, &a, NULL);
    b = pool_get(pool, 32 * MIB, NULL); /* 84 free, 50 kept: 34 may go */
    assert_int_equal(pool_stats(pool).releases, 0);
    c = pool_get(pool, 4 * MIB, NULL); /* 52 free: too few */
    assert_int_equal(pool_stats(pool).releases, 1);
    assert_int_equal(pool_stats(pool).cached_bytes, 0);
    pool->ops->free(pool, &b, NULL);
    pool->ops->free(pool, &c, NULL);
}

static void limit(void)
{
    tn_memory a = pool_get(pool, 16 * MIB, NULL), m = {0};
    tn_err err = {0};

    assert_int_equal(pool->ops->alloc(pool, 17 * MIB, NULL, &m, &err), TN_E_NOMEM);
    assert_non_null(strstr(err.message, "limit"));
    assert_int_equal(pool->ops->alloc(pool, 33 * MIB, NULL, &m, &err), TN_E_NOMEM);
    pool->ops->free(pool, &a, NULL);
    a = pool_get(pool, 17 * MIB, NULL);
    assert_true(s.given_bytes <= 32 * MIB);
    pool->ops->free(pool, &a, NULL);
}

/* Live blocks at destroy are given back too. */
static void destroy_live(void)
{
    for (uint64_t i = 1; i < 100; i++) {
        tn_memory m = pool_get(pool, i * 5000, source_stream_at(&s, i % 2));

        if (i % 3 == 0)
            pool->ops->free(pool, &m, source_stream_at(&s, i % 4));
    }
    source_pool_ops(id)->destroy(NULL);
}

/* A stream that cannot be marked any more keeps its blocks; nothing else breaks. */
static void marks_fail(void)
{
    tn_memory a = pool_get(pool, 100000, source_stream_at(&s, 0)), b;

    s.marks_fail = true;
    pool->ops->free(pool, &a, source_stream_at(&s, 0));
    b = pool_get(pool, 100000, source_stream_at(&s, 1));
    assert_ptr_not_equal(a.data, b.data);
    pool->ops->trim(pool, 0);
    assert_true(s.given_bytes >= 200000);
}

/* Same stream: at once. Another: when the mark is done. Nothing open goes back to the device. */
static void marks(void)
{
    tn_memory a = pool_get(pool, 2 * MIB, source_stream_at(&s, 0)), b;

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
}

static void trim_keeps(void)
{
    tn_memory m[10];
    tn_pool_stats stats;

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
}

static void bad_source(void)
{
    tn_pool_source bad;
    tn_pool *made = NULL;
    tn_memory m;

    source_init(&s, false);
    bad = s.ops;
    bad.alignment = 48;
    assert_int_equal(source_pool_ops(id)->create(s.plugin, &bad, &made, NULL), TN_E_ARG);
    bad = s.ops;
    bad.alloc = NULL;
    assert_int_equal(source_pool_ops(id)->create(s.plugin, &bad, &made, NULL), TN_E_ARG);
    bad = s.ops;
    bad.struct_size = (uint32_t)TN_END(tn_pool_source, alloc);
    assert_int_equal(source_pool_ops(id)->create(s.plugin, &bad, &made, NULL), TN_E_ARG);
    assert_null(made);
    bad = s.ops;
    bad.struct_size = (uint32_t)TN_END(tn_pool_source, free); /* the least that works */
    assert_int_equal(source_pool_ops(id)->create(s.plugin, &bad, &made, NULL), TN_OK);
    m = pool_get(made, 100, source_stream_at(&s, 0));
    made->ops->free(made, &m, source_stream_at(&s, 0));
    made->ops->destroy(made);
    source_fini(&s);
}

static const char *const ids[] = {"round", "naive", "segment"};

typedef struct scenario {
    const char *name;
    void (*run)(void);
    bool alone;           /* makes its pools itself */
    uint32_t pools;       /* how many of `ids` */
    uint64_t total_bytes; /* of the device; 0: without end */
    const char *key, *text;
} scenario;

static const scenario scenarios[] = {
    {"device_alloc_fails", device_alloc_fails, true, 3, 0, NULL, NULL},
    {"bookkeeping_fails", bookkeeping_fails, true, 3, 0, NULL, NULL},
    {"cache_is_released", cache_is_released, false, 3, 64 * MIB, "reserve", "0"},
    {"reserve", reserve, false, 2, 100 * MIB, "reserve", "50"},
    {"limit", limit, false, 3, 0, "limit", "32m"},
    {"destroy_live", destroy_live, false, 3, 0, NULL, NULL},
    {"marks_fail", marks_fail, false, 3, 0, NULL, NULL},
    {"marks", marks, false, 3, 0, NULL, NULL},
    {"trim_keeps", trim_keeps, false, 3, 0, NULL, NULL},
    {"bad_source", bad_source, true, 3, 0, NULL, NULL},
};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)
#define POOLS (sizeof ids / sizeof *ids)

typedef struct one {
    const scenario *row;
    const char *id;
    char name[64];
} one;

static void scenario_test(void **state)
{
    const one *o = *state;
    const scenario *row = o->row;

    id = o->id;
    pool = NULL;
    if (row->alone) {
        row->run();
        return;
    }
    source_init(&s, false);
    s.total_bytes = row->total_bytes;
    if (row->key)
        source_option(&s, row->key, row->text);
    pool = source_pool(&s, id);
    row->run();
    pool->ops->destroy(pool);
    source_fini(&s);
}

int main(void)
{
    static one ones[SCENARIOS * POOLS];
    static struct CMUnitTest tests[SCENARIOS * POOLS];
    size_t count = 0;

    for (size_t i = 0; i < SCENARIOS; i++)
        for (uint32_t k = 0; k < scenarios[i].pools; k++, count++) {
            one *o = &ones[count];

            o->row = &scenarios[i];
            o->id = ids[k];
            (void)snprintf(o->name, sizeof o->name, "%s %s", scenarios[i].name, ids[k]);
            tests[count] =
                (struct CMUnitTest){.name = o->name, .test_func = scenario_test, .initial_state = o};
        }
    return _cmocka_run_group_tests("pool.faults", tests, count, NULL, NULL);
}

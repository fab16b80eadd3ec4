/* Block sizes of `naive` and `round` against MXNet's rules, written a second time in the way MXNet states
 * them. */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZES 10000u

/* Log-uniform up to 2^limit, every third one next to a power of two. */
static uint64_t size_at(uint64_t *random, uint32_t i, uint32_t limit)
{
    uint32_t log = (uint32_t)(test_random(random) % limit);
    uint64_t power = (uint64_t)1 << log;

    if (i % 3 == 0)
        return power + test_random(random) % 3 - (power > 1 ? 1 : 0);
    return power + test_random(random) % power;
}

static uint64_t naive_rule(uint64_t size, uint64_t page, uint64_t large)
{
    uint64_t r = (size + page - 1) / page * page;

    return r > large ? (r + large - 1) / large * large : r;
}

static uint64_t round_rule(uint64_t size, uint64_t page, uint64_t cutoff)
{
    uint64_t k = 0, bucket, log_page = 0;

    while (k < 64 && ((uint64_t)1 << k) < size)
        k++;
    while (((uint64_t)1 << log_page) < page)
        log_page++;
    if (k <= cutoff) {
        bucket = k > log_page ? k : log_page;
        return (uint64_t)1 << bucket;
    }
    bucket = (size - 1) / ((uint64_t)1 << cutoff) + 1 - 1 + cutoff;
    return (bucket - cutoff + 1) * ((uint64_t)1 << cutoff);
}

/* One block per call: allocated, compared, freed, given back. */
static void block_check(tn_pool *pool, uint64_t size, uint64_t expected)
{
    tn_memory m = pool_get(pool, size, NULL);

    assert_int_equal(m.block_bytes, expected);
    pool->ops->free(pool, &m, NULL);
    pool->ops->trim(pool, 0);
}

static void test_naive(void **state)
{
    static source s;
    uint64_t random = 1;
    tn_pool *pool;

    (void)state;
    source_init(&s, false);
    pool = source_pool(&s, "naive");
    for (uint32_t i = 0; i < SIZES; i++) {
        uint64_t size = size_at(&random, i, 44);

        block_check(pool, size, naive_rule(size, 4096, 2u << 20));
    }
    pool->ops->destroy(pool);
    source_option(&s, "page_size", "96");
    source_option(&s, "large_alloc_round_size", "1m");
    pool = source_pool(&s, "naive");
    for (uint32_t i = 0; i < SIZES / 10; i++) {
        uint64_t size = size_at(&random, i, 30);

        block_check(pool, size, naive_rule(size, 96, 1u << 20));
    }
    pool->ops->destroy(pool);
    source_fini(&s);
}

static void test_round(void **state)
{
    static const char *const cutoffs[] = {NULL, "20", "24", "27", "34"};
    static source s;
    uint64_t random = 2;

    (void)state;
    source_init(&s, false);
    for (uint32_t c = 0; c < sizeof cutoffs / sizeof *cutoffs; c++) {
        uint64_t cutoff = cutoffs[c] ? strtoull(cutoffs[c], NULL, 10) : 24;
        tn_pool *pool;

        if (cutoffs[c])
            source_option(&s, "round_linear_cutoff", cutoffs[c]);
        pool = source_pool(&s, "round");
        for (uint32_t i = 0; i < SIZES; i++) {
            uint64_t size = size_at(&random, i, 44); /* far beyond MXNet's 16 GiB */

            block_check(pool, size, round_rule(size, 4096, cutoff));
        }
        pool->ops->destroy(pool);
    }
    source_option(&s, "page_size", "64k");
    {
        tn_pool *pool = source_pool(&s, "round");

        block_check(pool, 1, 65536);
        block_check(pool, 65537, 131072);
        pool->ops->destroy(pool);
    }
    source_fini(&s);
}

/* Nothing that 64 bits cannot hold, and nothing of size 0. */
static void test_ends(void **state)
{
    static const char *const ids[] = {"naive", "round", "segment"};
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 4095,
                                     UINT64_MAX - (2u << 20) + 1};
    static source s;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        tn_memory m = {.data = &m};
        tn_err err = {0};
        tn_pool *pool;

        source_init(&s, false);
        s.total_bytes = (uint64_t)1 << 62;
        pool = source_pool(&s, ids[i]);
        for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            assert_int_equal(pool->ops->alloc(pool, sizes[k], NULL, &m, &err), TN_E_NOMEM);
            assert_true(err.message[0]);
        }
        assert_int_equal(pool->ops->alloc(pool, 0, NULL, &m, &err), TN_E_ARG);
        assert_int_equal(pool->ops->alloc(pool, 0, NULL, &m, NULL), TN_E_ARG);
        assert_ptr_equal(m.data, &m);
        pool->ops->destroy(pool);
        source_fini(&s);
    }
}

static void test_options(void **state)
{
    static const struct {
        const char *pool, *key, *text;
        tn_status status;
    } cases[] = {
        {"round", "round_linear_cutoff", "19", TN_E_ARG},
        {"round", "round_linear_cutoff", "35", TN_E_ARG},
        {"round", "round_linear_cutoff", "x", TN_E_ARG},
        {"round", "round_linear_cutoff", "", TN_E_ARG},
        {"round", "round_linear_cutoff", "24 ", TN_E_ARG},
        {"round", "round_linear_cutoff", "-24", TN_E_ARG},
        {"round", "page_size", "5000", TN_E_ARG},
        {"round", "page_size", "16", TN_E_ARG},
        {"round", "page_size", "32", TN_OK},
        {"naive", "page_size", "31", TN_E_ARG},
        {"naive", "page_size", "99999999999999999999999", TN_E_ARG},
        {"naive", "page_size", "18014398509481984k", TN_E_ARG},
        {"naive", "page_size", "4K", TN_OK},
        {"naive", "page_size", "4kx", TN_E_ARG},
        {"naive", "large_alloc_round_size", "0", TN_E_ARG},
        {"segment", "reserve", "101", TN_E_ARG},
        {"segment", "reserve", "100", TN_OK},
        {"segment", "reserve", "5%", TN_E_ARG},
        {"naive", "limit", "1g", TN_OK},
        {"segment", "limit", "much", TN_E_ARG},
    };
    static source s;

    (void)state;
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_pool *pool = NULL;
        tn_err err = {0};

        source_init(&s, false);
        source_option(&s, cases[i].key, cases[i].text);
        assert_int_equal(source_pool_ops(cases[i].pool)->create(s.plugin, &s.ops, &pool, &err),
                         cases[i].status);
        if (cases[i].status)
            assert_non_null(strstr(err.message, cases[i].key));
        if (pool)
            pool->ops->destroy(pool);
        source_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_options),
    };

    return cmocka_run_group_tests_name("pool.blocks", tests, NULL, NULL);
}

/* Kept blocks: the same one comes back, sizes share a class, all together stay below the maximum. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static uint64_t allocations(void)
{
    tni_mem_stats stats;

    tni_mem_stats_get(&stats);
    return stats.alloc_count;
}

/* Every size up to some pages, and those beside each power of two: what comes back has the room asked for. */
static void test_sizes(void **state)
{
    tni_keep *k;

    (void)state;
    assert_int_equal(tni_keep_create(1u << 26, &k), TN_OK);
    for (int round = 0; round < 2; round++) {
        const uint64_t before = allocations();

        for (uint64_t bytes = 0; bytes < (3u << 20); bytes += bytes < 9000 ? 1 : bytes / 7) {
            unsigned char *p = tni_keep_take(k, bytes);

            assert_non_null(p);
            assert_true(tni_mem_bytes(p) >= bytes);
            memset(p, 0xa5, bytes);
            tni_keep_give(k, p);
            p = tni_keep_zeroed(k, bytes, 1);
            for (uint64_t i = 0; i < bytes; i += 61)
                assert_int_equal(p[i], 0);
            tni_keep_give(k, p);
        }
        assert_true(round == 0 || allocations() == before);
    }
    assert_null(tni_keep_zeroed(k, UINT64_MAX / 2, 3));
    tni_error_clear();
    tni_keep_give(k, NULL);
    tni_keep_destroy(k);
}

static void test_bound(void **state)
{
    enum { MAX = 1 << 16, COUNT = 64 };
    void *blocks[COUNT];
    tni_keep *k;

    (void)state;
    assert_int_equal(tni_keep_create(MAX, &k), TN_OK);
    for (uint64_t bytes = 64; bytes < 4 * MAX; bytes = bytes * 5 / 4 + 1) {
        for (int i = 0; i < COUNT; i++)
            assert_non_null(blocks[i] = tni_keep_take(k, bytes));
        for (int i = 0; i < COUNT; i++) {
            tni_keep_give(k, blocks[i]);
            assert_true(tni_keep_bytes(k) <= MAX);
        }
        if (bytes <= MAX / 2) /* blocks of other sizes made room */
            assert_true(tni_keep_bytes(k) >= bytes);
    }
    assert_true(tni_keep_bytes(k) > 0);
    tni_keep_trim(k);
    assert_int_equal(tni_keep_bytes(k), 0);
    tni_keep_destroy(k);
}

/* What is larger than all that may be kept drives nothing else out. */
static void test_too_large(void **state)
{
    tni_keep *k;

    (void)state;
    assert_int_equal(tni_keep_create(4096, &k), TN_OK);
    tni_keep_give(k, tni_keep_take(k, 1024));
    assert_int_equal(tni_keep_bytes(k), 1024);
    tni_keep_give(k, tni_keep_take(k, 1u << 20));
    assert_int_equal(tni_keep_bytes(k), 1024);
    tni_keep_give(k, tni_keep_take(k, (uint64_t)80 << 20));
    assert_int_equal(tni_keep_bytes(k), 1024);
    tni_keep_destroy(k);
}

static void test_vector(void **state)
{
    uint64_t before = 0;
    tni_keep *k;

    (void)state;
    assert_int_equal(tni_keep_create(1u << 20, &k), TN_OK);
    for (int round = 0; round < 3; round++) {
        tni_vec v;

        if (round)
            before = allocations();
        tni_vec_init_kept(&v, k, sizeof(uint32_t), 5000);
        for (uint32_t i = 0; i < 5000; i++)
            assert_int_equal(tni_vec_push(&v, &i), TN_OK);
        assert_int_equal(tni_vec_push(&v, &before), TN_E_NOMEM);
        tni_error_clear();
        for (uint32_t i = 0; i < 5000; i++)
            assert_int_equal(*(uint32_t *)tni_vec_at(&v, i), i);
        tni_vec_fini(&v);
        assert_true(round == 0 || allocations() == before);
    }
    tni_keep_destroy(k);
}

static void test_no_memory(void **state)
{
    tni_keep *k = NULL;
    void *p;

    (void)state;
    tni_mem_fail_at(1, false, true);
    assert_int_equal(tni_keep_create(4096, &k), TN_E_NOMEM);
    assert_null(k);
    tni_mem_fail_at(0, false, false);
    assert_int_equal(tni_keep_create(4096, &k), TN_OK);
    tni_keep_give(k, tni_keep_take(k, 100));
    tni_mem_fail_at(1, true, true);
    assert_non_null(p = tni_keep_take(k, 112)); /* kept */
    assert_null(tni_keep_take(k, 112));
    tni_mem_fail_at(0, false, false);
    tni_error_clear();
    tni_keep_give(k, p);
    tni_keep_destroy(k);
    tni_keep_destroy(NULL);
}

static void *take_and_give(void *arg)
{
    tni_keep *k = arg;

    for (uint32_t i = 0; i < 20000; i++) {
        unsigned char *p = tni_keep_zeroed(k, 1, 64 + i * 37 % 2000);

        p[0] = 1;
        tni_keep_give(k, p);
    }
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];
    tni_keep *k;

    (void)state;
    assert_int_equal(tni_keep_create(1u << 14, &k), TN_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, k), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(tni_keep_bytes(k) <= 1u << 14);
    tni_keep_destroy(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_bound),     cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_vector), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

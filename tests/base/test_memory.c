/* Counted memory, vectors, maps, arenas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/scratch.h"

static void counting(void **state)
{
    tni_mem_stats before, during, after;
    char *p[3];

    (void)state;
    tni_mem_stats_get(&before);
    p[0] = tni_alloc(1000);
    p[1] = tni_zalloc(1u << 20);
    p[2] = tni_alloc_aligned(256, 100);
    assert_int_equal((uintptr_t)p[2] % 256, 0);
    p[0] = tni_realloc(p[0], 500000);
    tni_mem_stats_get(&during);
    assert_int_equal(during.live_count, before.live_count + 3);
    assert_true(during.live_bytes >= before.live_bytes + 1500000);
    assert_true(during.peak_bytes >= during.live_bytes);
    assert_int_equal(during.alloc_count, before.alloc_count + 4);
    tni_free(p[0]);
    tni_free(p[1]);
    tni_free_aligned(p[2]);
    tni_free(NULL);
    tni_mem_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.live_count, before.live_count);
    assert_true(after.peak_bytes >= during.live_bytes - 65536);
}

static void sizes(void **state)
{
    uint64_t n;
    void *p;

    (void)state;
    p = tni_alloc(0);
    assert_non_null(p);
    tni_free(p);
    assert_null(tni_alloc(UINT64_MAX));
    assert_null(tni_calloc(UINT64_MAX / 2, 3));
    assert_null(tni_calloc((uint64_t)1 << 40, (uint64_t)1 << 40));
    assert_true(tni_size_mul(1u << 31, 1u << 30, &n));
    assert_false(tni_size_mul((uint64_t)1 << 32, (uint64_t)1 << 31, &n)); /* above TN_SIZE_MAX */
    assert_false(tni_size_add(TN_SIZE_MAX, 1, &n));
    assert_true(tni_size_align(65, 64, &n) && n == 128);
    assert_false(tni_size_align(UINT64_MAX - 3, 64, &n));
}

static void thread_body(void *arg)
{
    for (int i = 0; i < 1000; i++)
        tni_free(tni_alloc(100));
    ((void **)arg)[0] = tni_alloc(4096);
    tni_free(((void **)arg)[1]);
}

static void counting_across_threads(void **state)
{
    tni_mem_stats before, after;

    (void)state;
    tni_mem_stats_get(&before);
    for (int round = 0; round < 4; round++) { /* nodes of ended threads are used again */
        tni_thread *threads[8];
        void *blocks[8][2];

        for (int i = 0; i < 8; i++) {
            blocks[i][1] = tni_alloc(64);
            assert_int_equal(tni_thread_create("count", thread_body, blocks[i], &threads[i]), TN_OK);
        }
        for (int i = 0; i < 8; i++) {
            tni_thread_join(threads[i]);
            tni_free(blocks[i][0]);
        }
    }
    tni_mem_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.live_count, before.live_count);
    assert_true(after.alloc_count >= before.alloc_count + 32000);
}

static void failing(void **state)
{
    void *p;

    (void)state;
    tni_mem_fail_at(3, false, true);
    for (int i = 1; i <= 5; i++) {
        p = tni_alloc(8);
        assert_true((p == NULL) == (i == 3));
        tni_free(p);
    }
    assert_true(tni_mem_failed());
    tni_mem_fail_at(2, true, false);
    assert_false(tni_mem_failed());
    for (int i = 1; i <= 5; i++) {
        p = tni_zalloc(8);
        assert_true((p == NULL) == (i >= 2));
        tni_free(p);
    }
    tni_mem_fail_at(0, false, false);
    p = tni_alloc(8);
    assert_non_null(p);
    tni_mem_fail_at(1, false, true);
    assert_null(tni_realloc(p, 100000)); /* p stays */
    memset(p, 1, 8);
    tni_mem_fail_at(0, false, true);
    tni_free(p);
}

static void vectors(void **state)
{
    tni_vec v;
    void *at;

    (void)state;
    tni_vec_init(&v, sizeof(int), 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(tni_vec_push(&v, &i), TN_OK);
    assert_int_equal(tni_vec_push(&v, &(int){0}), TN_E_NOMEM);
    assert_int_equal(v.count, 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(*(int *)tni_vec_at(&v, i), i);
    assert_null(tni_vec_at(&v, 1000));
    assert_int_equal(tni_vec_extend(&v, SIZE_MAX, &at), TN_E_NOMEM);
    assert_int_equal(tni_vec_extend(&v, 0, &at), TN_OK);
    tni_vec_fini(&v);
    tni_vec_init(&v, SIZE_MAX / 4, SIZE_MAX);
    assert_int_equal(tni_vec_reserve(&v, 100), TN_E_NOMEM);
    tni_vec_fini(&v);
}

static void maps(void **state)
{
    enum { KEYS = 5000 };
    tni_map *m;
    char key[32];
    const char *name;
    void *value;
    size_t cursor = 0, seen = 0;

    (void)state;
    assert_int_equal(tni_map_create(KEYS, &m), TN_OK);
    assert_false(tni_map_get(m, "x", NULL));
    assert_false(tni_map_remove(m, "x"));
    for (uintptr_t i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key%zu", (size_t)i);
        assert_int_equal(tni_map_set(m, key, (void *)i), TN_OK);
    }
    assert_int_equal(tni_map_set(m, "one too many", NULL), TN_E_NOMEM);
    assert_int_equal(tni_map_set(m, "key7", (void *)70), TN_OK);
    for (uintptr_t i = 0; i < KEYS; i += 2) {
        snprintf(key, sizeof key, "key%zu", (size_t)i);
        assert_true(tni_map_remove(m, key));
        assert_false(tni_map_get(m, key, NULL));
    }
    assert_int_equal(tni_map_count(m), KEYS / 2);
    for (int round = 0; round < 20000; round++) { /* holes are swept out */
        assert_int_equal(tni_map_set(m, "again", NULL), TN_OK);
        assert_true(tni_map_remove(m, "again"));
    }
    while (tni_map_next(m, &cursor, &name, &value)) {
        snprintf(key, sizeof key, "key%zu", seen * 2 + 1);
        assert_string_equal(name, key); /* insertion order */
        assert_true((uintptr_t)value == (seen == 3 ? 70 : seen * 2 + 1));
        seen++;
    }
    assert_int_equal(seen, KEYS / 2);
    tni_map_destroy(m);
}

static tn_status map_body(void *arg)
{
    tni_map *m = NULL;
    tn_status st = tni_map_create(1000, &m);
    char key[16];

    (void)arg;
    for (int i = 0; !st && i < 100; i++) {
        size_t count = tni_map_count(m);

        snprintf(key, sizeof key, "%d", i);
        st = tni_map_set(m, key, m);
        assert_int_equal(tni_map_count(m), count + !st);
    }
    tni_map_destroy(m);
    return st;
}

static void maps_without_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(map_body, NULL) > 100);
}

static void arenas(void **state)
{
    tni_arena *a;
    char *last = NULL;

    (void)state;
    assert_int_equal(tni_arena_create(1u << 20, &a), TN_OK);
    for (size_t i = 1; i < 500; i++) {
        char *p = tni_arena_alloc(a, i);

        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, i);
        assert_ptr_not_equal(p, last);
        last = p;
    }
    assert_string_equal(tni_arena_strdup(a, "text"), "text");
    assert_null(tni_arena_alloc(a, 1u << 20));
    assert_null(tni_arena_alloc(a, SIZE_MAX));
    assert_non_null(tni_arena_alloc(a, 0));
    tni_arena_destroy(a);
    tni_arena_destroy(NULL);
}

static void hashes(void **state)
{
    char bytes[100] = {0};
    uint64_t bits_changed = 0;

    (void)state;
    assert_int_equal(tni_hash_bytes(1, "abc", 3), tni_hash_bytes(1, "abc", 3));
    assert_true(tni_hash_bytes(1, "abc", 3) != tni_hash_bytes(2, "abc", 3));
    for (size_t n = 0; n < 99; n++) /* zeros of each length differ */
        assert_true(tni_hash_bytes(0, bytes, n) != tni_hash_bytes(0, bytes, n + 1));
    for (size_t bit = 0; bit < 800; bit++) {
        uint64_t before = tni_hash_bytes(0, bytes, sizeof bytes);

        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        bits_changed += (uint64_t)__builtin_popcountll(before ^ tni_hash_bytes(0, bytes, sizeof bytes));
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    assert_in_range(bits_changed / 800, 30, 34); /* half of the bits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counting),
        cmocka_unit_test(sizes),
        cmocka_unit_test(counting_across_threads),
        cmocka_unit_test(failing),
        cmocka_unit_test(vectors),
        cmocka_unit_test(maps),
        cmocka_unit_test(maps_without_memory),
        cmocka_unit_test(arenas),
        cmocka_unit_test(hashes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

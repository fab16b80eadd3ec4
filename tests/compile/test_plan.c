/* Offsets: no two buffers that live together overlap, and the plan is near its bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "compile/compile.h"

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    uint32_t words[4];

    tn_philox(7, 0, (*state)++, words);
    return words[0] % limit;
}

static void check(tni_interval *items, uint32_t count, uint64_t total)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_true(items[i].offset % 64 == 0);
        assert_true(!items[i].bytes || items[i].offset + items[i].bytes <= total);
        for (uint32_t k = 0; k < i; k++) {
            const tni_interval *a = &items[i], *b = &items[k];
            bool together = a->first <= b->last && b->first <= a->last && a->bytes && b->bytes;

            if (together)
                assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
        }
    }
}

static void random_plans(void **state)
{
    uint64_t seed = 0;

    (void)state;
    for (int round = 0; round < 60; round++) {
        tni_interval items[120] = {{0}};
        uint32_t count = random_below(&seed, 120), times = 1 + random_below(&seed, 100);
        uint64_t total = 0, bound = 0;

        for (uint32_t i = 0; i < count; i++) {
            items[i].bytes = random_below(&seed, 5000) * (random_below(&seed, 8) ? 1u : 0u);
            items[i].first = random_below(&seed, times);
            items[i].last = items[i].first + random_below(&seed, times - items[i].first);
        }
        assert_int_equal(tni_plan_offsets(items, count, 64, &total, &bound), TN_OK);
        assert_true(total >= bound);
        assert_true(total <= bound + bound / 5);
        check(items, count, total);
    }
}

/* A chain of layers: each buffer lives for two instructions; the plan is the bound. */
static void chain_is_optimal(void **state)
{
    enum { COUNT = 20000 };
    tni_interval *items = tni_calloc(COUNT, sizeof *items);
    uint64_t total, bound;

    (void)state;
    assert_non_null(items);
    for (uint32_t i = 0; i < COUNT; i++)
        items[i] = (tni_interval){.bytes = 64u * (1u + i % 7), .first = i, .last = i + 1};
    assert_int_equal(tni_plan_offsets(items, COUNT, 64, &total, &bound), TN_OK);
    assert_int_equal(total, bound);
    tni_free(items);
}

/* A recorded net: one result in three is kept for the backward, the others live for two instructions. As many
 * as here took minutes while all pairs of kept ones were compared. */
static void many_kept(void **state)
{
    enum { COUNT = 60000 };
    tni_interval *items = tni_calloc(COUNT, sizeof *items);
    tni_plan_sizes sizes;
    uint64_t total, low = 0;

    (void)state;
    assert_non_null(items);
    for (uint32_t i = 0; i < COUNT; i++)
        items[i] = (tni_interval){.bytes = 64u * (1u + i * 7u % 5),
                                  .first = i,
                                  .last = i % 3 ? (i < COUNT - 2 ? i + 1 : i) : COUNT};
    assert_int_equal(tni_plan_phases(items, COUNT, 64, COUNT, &sizes), TN_OK);
    total = sizes.kept + sizes.scratch[0];
    assert_true(total >= sizes.bound && total <= sizes.bound + sizes.bound / 100);
    for (uint32_t i = 0; i < COUNT; i += 3) { /* kept: in a row; the others above those made so far */
        assert_int_equal(items[i].offset, low);
        low += items[i].bytes;
        for (uint32_t k = i + 1; k < i + 3 && k < COUNT; k++)
            assert_true(items[k].offset >= low && items[k].offset + items[k].bytes <= total);
    }
    assert_int_equal(sizes.kept, low);
    for (uint32_t i = 1; i + 2 < COUNT; i++) /* neighbours that live together */
        if (i % 3 && (i + 1) % 3)
            assert_true(items[i].offset + items[i].bytes <= items[i + 1].offset ||
                        items[i + 1].offset + items[i + 1].bytes <= items[i].offset);
    tni_free(items);
}

/* Random lives on both sides of a border and across it: kept ones without a gap, nobody across the parts. */
static void random_phases(void **state)
{
    uint64_t seed = 1000;

    (void)state;
    for (int round = 0; round < 60; round++) {
        tni_interval items[120] = {{0}};
        uint32_t count = random_below(&seed, 120), times = 2 + random_below(&seed, 100),
                 border = 1 + random_below(&seed, times - 1);
        tni_plan_sizes sizes;
        uint64_t kept = 0;

        for (uint32_t i = 0; i < count; i++) {
            items[i].bytes = random_below(&seed, 5000) * (random_below(&seed, 8) ? 1u : 0u);
            items[i].first = random_below(&seed, times);
            items[i].last = items[i].first + random_below(&seed, times - items[i].first);
        }
        assert_int_equal(tni_plan_phases(items, count, 64, border, &sizes), TN_OK);
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t end = items[i].offset + items[i].bytes;

            if (items[i].first < border && items[i].last >= border) {
                kept += items[i].bytes;
                assert_true(end <= sizes.kept);
            } else if (items[i].bytes) {
                assert_true(end <= sizes.kept || items[i].offset >= sizes.kept);
                assert_true(end <= sizes.kept + sizes.scratch[items[i].first >= border]);
            }
        }
        assert_int_equal(kept, sizes.kept);
        check(items, count, UINT64_MAX);
    }
}

static void edges(void **state)
{
    tni_interval one = {.bytes = 1, .first = 0, .last = 0},
                 huge[2] = {{.bytes = TN_SIZE_MAX}, {.bytes = TN_SIZE_MAX}};
    uint64_t total = 1, bound = 1;

    (void)state;
    assert_int_equal(tni_plan_offsets(NULL, 0, 64, &total, &bound), TN_OK);
    assert_int_equal(total, 0);
    assert_int_equal(bound, 0);
    assert_int_equal(tni_plan_offsets(&one, 1, 256, &total, &bound), TN_OK);
    assert_int_equal(total, 256);
    assert_int_equal(tni_plan_offsets(huge, 2, 64, &total, &bound), TN_E_SHAPE);
}

static void out_of_memory(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        tni_interval items[3] = {
            {.bytes = 10, .last = 2}, {.bytes = 20, .first = 1, .last = 1}, {.bytes = 30}};
        uint64_t total, bound;
        tn_status st;

        tni_mem_fail_at(nth, true, true);
        st = tni_plan_offsets(items, 3, 64, &total, &bound);
        if (!tni_mem_failed()) {
            tni_mem_fail_at(0, false, true);
            assert_int_equal(st, TN_OK);
            break;
        }
        tni_mem_fail_at(0, false, true);
        assert_int_equal(st, TN_E_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans), cmocka_unit_test(chain_is_optimal),
        cmocka_unit_test(many_kept),    cmocka_unit_test(random_phases),
        cmocka_unit_test(edges),        cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

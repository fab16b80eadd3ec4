/* Every byte of an array lies in exactly one part; servers hold as much as they should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kv/plan.h"

static void check_plan(const tni_kv_plan_options *o, uint32_t key, uint64_t elements, uint64_t size)
{
    uint64_t at = 0, most = 0, least = UINT64_MAX, held[64] = {0};
    tni_kv_plan p, again;

    assert_int_equal(tni_kv_plan_make(o, key, elements, size, &p), TN_OK);
    assert_int_equal(tni_kv_plan_make(o, key, elements, size, &again), TN_OK);
    assert_memory_equal(&p, &again, sizeof p);
    assert_true(p.parts >= 1 && p.parts <= TNI_KV_PARTS_MAX);
    for (uint32_t i = 0; i < p.parts; i++) {
        const tni_kv_part part = tni_kv_plan_part(&p, i);

        assert_true(part.offset == at && part.server < o->servers);
        assert_true(part.key == ((uint64_t)key << 16 | i));
        assert_true(i + 1 == p.parts || part.bytes % TNI_KV_ALIGN == 0);
        assert_true(part.bytes > 0 || elements == 0);
        held[part.server] += part.bytes;
        at += part.bytes;
    }
    assert_true(at == elements * size);
    for (uint32_t s = 0; s < o->servers; s++) {
        most = held[s] > most ? held[s] : most;
        least = held[s] < least ? held[s] : least;
    }
    assert_true(p.parts == 1 || most - least <= 2 * p.piece);
}

static void parts_cover_the_array(void **unused)
{
    static const uint64_t elements[] = {0, 1, 31, 32, 999999, 1000000, 1000001, 5000011, 400000000};
    static const uint64_t bounds[] = {0, 1, 1000000};

    (void)unused;
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
        for (size_t b = 0; b < 3; b++)
            for (uint32_t servers = 1; servers <= 64; servers = servers * 2 + 1) {
                const tni_kv_plan_options o = {servers, bounds[b], 4u << 20};

                check_plan(&o, (uint32_t)(e * 7 + servers), elements[e], e % 2 ? 4 : 2);
            }
}

static void big_arrays_over_all_servers(void **unused)
{
    const tni_kv_plan_options o = {3, 1000000, 4u << 20}, own = {3, 0, 4u << 20};
    tni_kv_plan p;

    (void)unused;
    assert_int_equal(tni_kv_plan_make(&o, 1, 999999, 4, &p), TN_OK);
    assert_int_equal(p.parts, 1);
    assert_int_equal(tni_kv_plan_make(&o, 1, 1000000, 4, &p), TN_OK);
    assert_int_equal(p.parts, 8); /* of an eighth of part_bytes at least */
    assert_int_equal(tni_kv_plan_make(&own, 1, 1 << 20, 4, &p), TN_OK); /* 4 MiB: one part */
    assert_int_equal(p.parts, 1);
    assert_int_equal(tni_kv_plan_make(&o, 1, (uint64_t)1 << 36, 4, &p), TN_OK); /* 256 GiB: longer parts */
    assert_true(p.parts <= TNI_KV_PARTS_MAX && p.piece > o.part_bytes);
}

/* Of several servers each gets 64 parts, unless they were shorter than an eighth of part_bytes or longer than
 * it; part_bytes may be less than 8. */
static void parts_of_several_servers(void **unused)
{
    static const struct {
        uint32_t servers;
        uint64_t mib, piece;
    } rows[] = {{1, 32, 1u << 20}, {2, 32, 1u << 18},  {4, 32, 1u << 17},  {8, 32, 1u << 17},
                {8, 64, 1u << 17}, {8, 128, 1u << 18}, {8, 512, 1u << 20}, {8, 4096, 1u << 20}};
    const tni_kv_plan_options tiny = {3, 1, 1};
    tni_kv_plan p;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tni_kv_plan_options o = {rows[i].servers, 0, 1u << 20};

        assert_int_equal(tni_kv_plan_make(&o, 3, rows[i].mib << 18, 4, &p), TN_OK);
        assert_int_equal(p.piece, rows[i].piece);
    }
    check_plan(&tiny, 9, 1000, 4);
}

/* The hash, not the number, chooses: keys that are multiples of the count do not meet on one server. */
static void small_keys_spread(void **unused)
{
    const tni_kv_plan_options o = {8, 0, 4u << 20};
    uint32_t held[8] = {0};
    tni_kv_plan p;

    (void)unused;
    for (uint32_t key = 0; key < 8000; key += 8) {
        assert_int_equal(tni_kv_plan_make(&o, key, 10, 4, &p), TN_OK);
        held[p.first]++;
    }
    for (int s = 0; s < 8; s++)
        assert_in_range(held[s], 80, 170);
}

static void refusals(void **unused)
{
    const tni_kv_plan_options none = {0, 0, 4096}, no_part = {1, 0, 0}, good = {1, 0, 4096};
    tni_kv_plan p = {.parts = 77};

    (void)unused;
    assert_int_equal(tni_kv_plan_make(&none, 0, 1, 4, &p), TN_E_ARG);
    assert_int_equal(tni_kv_plan_make(&no_part, 0, 1, 4, &p), TN_E_ARG);
    assert_int_equal(tni_kv_plan_make(&good, TNI_KV_NUMBERS_MAX, 1, 4, &p), TN_E_ARG);
    assert_int_equal(tni_kv_plan_make(&good, 0, 1, 0, &p), TN_E_ARG);
    assert_int_equal(tni_kv_plan_make(&good, 0, UINT64_MAX, 8, &p), TN_E_ARG);
    assert_int_equal(p.parts, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_the_array),
        cmocka_unit_test(big_arrays_over_all_servers),
        cmocka_unit_test(parts_of_several_servers),
        cmocka_unit_test(small_keys_spread),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

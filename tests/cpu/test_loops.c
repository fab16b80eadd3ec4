/*
 * Loops of the plugin cpu for wider instruction sets give the bits of those that every processor has: for
 * numbers of all sizes, infinities, NaN, subnormal ones, for every length of a tail, and in place. So do
 * conversions of short floats, uniform numbers, and softmax, whose exponential is as near to the library's as
 * it says. The plugin's objects are linked into this program. What this processor lacks is skipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../plugins/cpu/common/isa.h"
#include "../../plugins/cpu/plain/distribution.h"
#include "../../plugins/cpu/plain/loops.h"
#include "../../plugins/cpu/plain/softmax.h"
#include "tenon/plugin/attr.h"

#define COUNT 65536
#define TAILS 40

static float in[2][COUNT], expected[COUNT], got[COUNT];

/* Bit patterns far from each other, in another order for the second operand; some that are special first. */
static void inputs_make(void)
{
    static const uint32_t special[] = {0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                       0x00000001u, 0x807fffffu, 0x3f800000u, 0xbf800000u, 0x42b17218u};
    const size_t specials = sizeof special / sizeof *special;

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bits[2] = {i * 65537u + 11u, i * 2654435761u};

        if (i < specials * specials) {
            bits[0] = special[i % specials];
            bits[1] = special[i / specials];
        }
        memcpy(&in[0][i], &bits[0], sizeof bits[0]);
        memcpy(&in[1][i], &bits[1], sizeof bits[1]);
    }
}

static void same_bits(const char *what, uint32_t loop, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t a, b;

        memcpy(&a, &expected[i], sizeof a);
        memcpy(&b, &got[i], sizeof b);
        if (a != b && !(expected[i] != expected[i] && got[i] != got[i]))
            fail_msg("%s, loop %u, element %lld of %lld: f(%a, %a) is %a, not %a", what, loop, (long long)i,
                     (long long)n, (double)in[0][i], (double)in[1][i], (double)got[i], (double)expected[i]);
    }
}

static void loop_check(const char *what, uint32_t id, tncpu_loop wide)
{
    const tn_value attrs[] = {tn_value_of_float(1.25), tn_value_of_float(-0.5)};
    const void *const from[] = {in[0], in[1], in[0]}, *const place[] = {got, in[1], in[0]};
    const tncpu_loop base = tncpu_loops[id][TNCPU_K_F32];

    base(expected, from, COUNT, attrs);
    wide(got, from, COUNT, attrs);
    same_bits(what, id, COUNT);
    memcpy(got, in[0], sizeof got);
    wide(got, place, COUNT, attrs);
    same_bits(what, id, COUNT);
    for (int64_t n = 0; n < TAILS; n++) {
        memset(got, 0, sizeof got);
        wide(got, from, n, attrs);
        same_bits(what, id, n);
        assert_true(got[n] == 0); /* and nothing behind them */
    }
}

static void table_check(const char *what, const tncpu_loop *table)
{
    size_t loops = 0;

    inputs_make();
    for (uint32_t id = 0; id < TNCPU_LOOP_COUNT; id++)
        if (table[id]) {
            loop_check(what, id, table[id]);
            loops++;
        }
    assert_non_null(table[TNCPU_EXP]);
    assert_in_range(loops, 8, TNCPU_LOOP_COUNT);
}

/* Every short float there is, and as many floats. */
static void shorts_check(const tncpu_shorts *wide)
{
    static uint16_t patterns[COUNT], stored[2][COUNT];
    const tncpu_shorts *const both[2] = {&tncpu_shorts_base, wide};

    for (uint32_t i = 0; i < COUNT; i++)
        patterns[i] = (uint16_t)i;
    for (int64_t n = COUNT - TAILS; n <= COUNT; n++) {
        wide->load_f16(patterns, got, n);
        tncpu_shorts_base.load_f16(patterns, expected, n);
        assert_memory_equal(got, expected, (size_t)n * sizeof *got);
        wide->load_bf16(patterns, got, n);
        tncpu_shorts_base.load_bf16(patterns, expected, n);
        assert_memory_equal(got, expected, (size_t)n * sizeof *got);
        for (uint32_t k = 0; k < 2; k++)
            both[k]->store_f16(in[0], stored[k], n);
        assert_memory_equal(stored[0], stored[1], (size_t)n * sizeof *stored[0]);
        for (uint32_t k = 0; k < 2; k++)
            both[k]->store_bf16(in[0], stored[k], n);
        assert_memory_equal(stored[0], stored[1], (size_t)n * sizeof *stored[0]);
    }
}

/* Rows and vectors side by side of several lengths, forward and backward, in each mode. */
static void softmax_check(const char *what, const tncpu_softmax *wide)
{
    static const int64_t lengths[] = {1, 7, 8, 10, 16, 100, 513};

    for (int64_t i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++) /* in [-8, 8) */
            in[k][i] =
                (float)((double)(uint32_t)(i * 2654435761u + (uint32_t)k * 40503u) / 268435456.0 - 8.0);
    for (uint32_t i = 0; i < 7 * 3 * 4; i++) {
        const uint32_t back = i & 1u, strips = i >> 1 & 1u;
        const int64_t n = lengths[i / 12];
        const tncpu_vectors v = {.n = n,
                                 .stride = strips ? 50 : 1,
                                 .width = strips    ? 50
                                          : n < 512 ? 512 / n
                                                    : 1,
                                 .mode = (int32_t)(i / 4 % 3),
                                 .over = 1.5};
        const void *const from[] = {in[0], in[1]};

        memset(expected, 0, sizeof expected);
        memset(got, 0, sizeof got);
        tncpu_softmax_f32_base.of[back][strips](&v, from, expected);
        wide->of[back][strips](&v, from, got);
        same_bits(what, 1000 + i, COUNT);
    }
}

/* Of draws whose counters pass 2^32 and 2^64, for every length of a tail; nothing behind it is written. */
static void units_check(tncpu_units_by *units)
{
    static const uint64_t firsts[] = {0, 1000, UINT32_MAX - 7, UINT64_MAX - 3};
    const tn_draw draw = {0x0123456789abcdefu, 0xfedcba9876543210u};

    for (int64_t n = 0; n < TAILS; n++)
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
            double to[TAILS + 1];

            to[n] = -1;
            units(&draw, firsts[i], n, to);
            for (int64_t k = 0; k < n; k++)
                assert_true(to[k] == tn_draw_unit(&draw, firsts[i] + (uint64_t)k));
            assert_true(to[n] == -1);
        }
}

static void units_are_the_draws(void **state)
{
    (void)state;
    units_check(tncpu_units_base);
    units_check(tncpu_units);
}

static void exponential_is_near(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0xff800000u; bits += 997) {
        const float x = tnb_bits_float(bits), y = tnb_exp_f32(x);
        const double e = exp((double)x);

        if (x != x)
            assert_true(y != y);
        else if (e < 0x1p-124)
            assert_true((double)y >= 0 && (double)y <= 1.000001 * e);
        else if (e > 3.4e38)
            assert_true(y > 3.39e38f);
        else if (!(fabs((double)y - e) <= 1.1 * ldexp(1, ilogb(e) - 23)))
            fail_msg("e^%a is %a, not %a", (double)x, (double)y, e);
    }
    assert_true(tnb_exp_f32(-INFINITY) == 0 && isinf(tnb_exp_f32(INFINITY)) && tnb_exp_f32(0) == 1);
}

/* Of floats of all sizes: as near as functions.h says, and odd or even to the bit. */
static void sine_is_near(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits < 0x7f800000u; bits += 4099) {
        const double x = (double)tnb_bits_float(bits), made[] = {tnb_sin(x), tnb_cos(x)};
        const double libs[] = {sin(x), cos(x)};

        for (int k = 0; k < 2; k++)
            if (!(fabs(made[k] - libs[k]) <= 1e-12 * fabs(libs[k])))
                fail_msg("%s of %a is %a, not %a", k ? "cos" : "sin", x, made[k], libs[k]);
        assert_true(tnb_sin(-x) == -made[0] && tnb_cos(-x) == made[1]);
    }
    assert_true(tnb_sin(0.0) == 0 && !signbit(tnb_sin(0.0)) && signbit(tnb_sin(-0.0)));
    assert_true((float)tnb_cos(-0.0) == 1 && (float)tnb_sin(1e-40) == 1e-40f);
    assert_true(isnan(tnb_sin(INFINITY)) && isnan(tnb_cos(-INFINITY)) && isnan(tnb_sin(NAN)));
}

static void avx2_gives_the_same_bits(void **state)
{
    (void)state;
    if (tncpu_isa() < TNCPU_AVX2) {
        print_message("skipped: the processor has no AVX2\n");
        skip();
    }
    table_check("AVX2", tncpu_loops_f32_avx2);
    shorts_check(&tncpu_shorts_avx2);
    softmax_check("AVX2", &tncpu_softmax_f32_avx2);
}

static void avx512_gives_the_same_bits(void **state)
{
    (void)state;
    if (tncpu_isa() < TNCPU_AVX512) {
        print_message("skipped: the processor has no AVX-512\n");
        skip();
    }
    table_check("AVX-512", tncpu_loops_f32_avx512);
    shorts_check(&tncpu_shorts_avx512);
    units_check(tncpu_units_avx512);
    softmax_check("AVX-512", &tncpu_softmax_f32_avx512);
}

static void the_widest_is_chosen(void **state)
{
    (void)state;
    if (tncpu_isa() == TNCPU_BASE) {
        print_message("skipped: the processor has no AVX2\n");
        skip();
    }
    assert_true(tncpu_loop_of(TNCPU_EXP, TNCPU_K_F32) != tncpu_loops[TNCPU_EXP][TNCPU_K_F32]);
    assert_true(tncpu_loop_of(TNCPU_EXP, TNCPU_K_F64) == tncpu_loops[TNCPU_EXP][TNCPU_K_F64]);
    assert_true(tncpu_loop_of(TNCPU_ADD, TNCPU_K_F32) == tncpu_loops[TNCPU_ADD][TNCPU_K_F32]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(avx2_gives_the_same_bits), cmocka_unit_test(avx512_gives_the_same_bits),
        cmocka_unit_test(the_widest_is_chosen),     cmocka_unit_test(units_are_the_draws),
        cmocka_unit_test(exponential_is_near),
        cmocka_unit_test(sine_is_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

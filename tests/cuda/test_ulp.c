/*
 * The bounds of plugins/cuda/ulp.list hold for the emulated kernels: in steps of the last place between
 * what a kernel makes and the long double function, rounded once.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emulator.h"
#include "kernels/args.h"
#include "kernels/loops.h"
#include "tenon/plugin/base.h"

#include "../../plugins/common/functions_float.h"

#define COUNT 8192
#define BLOCKS 4u
#define THREADS 256u

typedef struct bound {
    const char *loop;
    double f32, f64, low, high;
    long double (*exact)(long double x, long double y);
} bound;

#define ULP(loop, cuda, f32, f64, low, high, function)                                                       \
    static long double exact_##loop(long double x, long double y)                                            \
    {                                                                                                        \
        (void)y;                                                                                             \
        return function;                                                                                     \
    }
#include "ulp.list"
#undef ULP

static const bound bounds[] = {
#define ULP(loop, cuda, f32, f64, low, high, function) {#loop, f32, f64, low, high, exact_##loop},
#include "ulp.list"
#undef ULP
};

/* No bound of the list is below CUDA's own. */
#define ULP(loop, cuda, f32, f64, low, high, function)                                                       \
    _Static_assert((cuda) <= (f64), #loop " of f64 promises more than CUDA does");
#include "ulp.list"
#undef ULP

static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u; /* SplitMix64 */

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Between low and high: one half evenly, the other half by magnitudes from 1e-8 of the larger end on. */
static double number_of(const bound *b, uint64_t *state)
{
    const uint64_t bits = random_bits(state);
    const double u = (double)(bits >> 11) * 0x1p-53, end = bits & 1 ? b->high : b->low;
    double v = end * pow(10, -8 * u);

    if (bits & 2 || v < b->low || v > b->high)
        v = b->low + (b->high - b->low) * u;
    return v;
}

/* Integers in the order of the numbers: neighbouring numbers have neighbouring integers. */
static int64_t order_f64(double v)
{
    int64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static int64_t order_f32(float v)
{
    int32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits < 0 ? INT32_MIN - (int64_t)bits : bits;
}

static void kernel_run(const bound *b, int32_t dtype, void *x, void *y, void *to)
{
    const uint32_t grid[] = {BLOCKS, 1, 1}, block[] = {THREADS, 1, 1};
    char name[64];
    const emu_kernel *k;
    tncuda_point_args a = {.count = COUNT, .ndim = 1, .scalar = -1, .shape = {COUNT}};

    a.in[0] = a.in[1] = a.out = (tncuda_operand){.dtype = dtype, .stride = {1}};
    a.in[0].data = x;
    a.in[1].data = y;
    a.out.data = to;
    (void)snprintf(name, sizeof name, "point_%s_%s", b->loop, dtype == TN_F64 ? "f64" : "f32");
    k = emu_kernel_find(name);
    if (!k)
        fail_msg("there is no kernel %s", name);
    emu_kernel_run(k, grid, block, &a, 1);
}

/* The largest distance of one function. */
static double furthest(const bound *b, int32_t dtype, double *at)
{
    static double x[COUNT], y[COUNT], to[COUNT];
    static float xf[COUNT], yf[COUNT], tof[COUNT];
    const bool wide = dtype == TN_F64;
    uint64_t state = 1;
    double most = 0;

    for (int i = 0; i < COUNT; i++) {
        x[i] = number_of(b, &state);
        y[i] = number_of(b, &state);
        xf[i] = (float)x[i];
        yf[i] = (float)y[i];
    }
    kernel_run(b, dtype, wide ? (void *)x : xf, wide ? (void *)y : yf, wide ? (void *)to : tof);
    for (int i = 0; i < COUNT; i++) {
        const long double exact = b->exact(wide ? x[i] : (double)xf[i], wide ? y[i] : (double)yf[i]);
        const int64_t step =
            wide ? order_f64(to[i]) - order_f64((double)exact) : order_f32(tof[i]) - order_f32((float)exact);

        if (fabs((double)step) > most) {
            most = fabs((double)step);
            *at = wide ? x[i] : (double)xf[i];
        }
    }
    return most;
}

static void bounds_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        double at32 = 0, at64 = 0;
        const double f32 = furthest(&bounds[i], TN_F32, &at32), f64 = furthest(&bounds[i], TN_F64, &at64);

        printf("%-10s f32 %g of %g, f64 %g of %g\n", bounds[i].loop, f32, bounds[i].f32, f64, bounds[i].f64);
        if (f32 > bounds[i].f32)
            fail_msg("%s of f32 is %g units off at %.9g, at most %g are promised", bounds[i].loop, f32, at32,
                     bounds[i].f32);
        if (f64 > bounds[i].f64)
            fail_msg("%s of f64 is %g units off at %.17g, at most %g are promised", bounds[i].loop, f64, at64,
                     bounds[i].f64);
    }
}

/* The functions of float32 alone far below 0, where 1 + erf(x) would have lost all bits. */
static void tails_keep_their_bits(void **state)
{
    static const bound tails[] = {{"GELU", 8, 0, -13, 0, exact_GELU},
                                  {"SIGMOID", 4, 0, -87, 0, exact_SIGMOID},
                                  {"SOFTRELU", 4, 0, -87, 0, exact_SOFTRELU}};

    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        double at = 0;
        const double most = furthest(&tails[i], TN_F32, &at);

        if (most > tails[i].f32)
            fail_msg("%s is %g units off at %.9g, at most %g are promised", tails[i].loop, most, at,
                     tails[i].f32);
    }
}

static long double exact_GELU_BACK(long double v, long double y)
{
    (void)y;
    return erfcl(-v * 0.707106781186547524400844362104849039L) / 2 +
           v * 0.398942280401432677939946L * expl(-v * v / 2);
}

/* The derivative of GELU is 0 near -0.75: its error is one of the sum's larger part. */
static void slope_is_near(void **state)
{
    static float x[COUNT], one[COUNT], to[COUNT];
    const bound b = {"GELU_BACK", 0, 0, -20, 20, NULL};
    uint64_t draw = 1;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)number_of(&b, &draw);
        one[i] = 1;
    }
    kernel_run(&b, TN_F32, one, x, to);
    for (int i = 0; i < COUNT; i++) {
        const long double exact = exact_GELU_BACK(x[i], 0);

        if (!(fabsl(to[i] - exact) <= 0x1p-22L))
            fail_msg("the slope at %.9g is %.9g, not %.9Lg", (double)x[i], (double)to[i], exact);
    }
}

/* What lies outside: infinities, NaN, and what is too small for a float32. */
static void ends_are_ends(void **state)
{
    static const struct {
        const char *loop;
        float x, y;
    } ends[] = {
        {"EXP", -INFINITY, 0},
        {"EXP", INFINITY, INFINITY},
        {"EXP", 89, INFINITY},
        {"EXP", NAN, NAN},
        {"EXPM1", -INFINITY, -1},
        {"EXPM1", INFINITY, INFINITY},
        {"EXPM1", NAN, NAN},
        {"LOG", 0, -INFINITY},
        {"LOG", INFINITY, INFINITY},
        {"LOG", -1, NAN},
        {"LOG", NAN, NAN},
        {"TANH", -INFINITY, -1},
        {"TANH", INFINITY, 1},
        {"TANH", NAN, NAN},
        {"SIGMOID", -INFINITY, 0},
        {"SIGMOID", INFINITY, 1},
        {"SIGMOID", NAN, NAN},
        {"SOFTRELU", -INFINITY, 0},
        {"SOFTRELU", NAN, NAN},
        {"SOFTRELU", INFINITY, INFINITY},
        {"ERF", -INFINITY, -1},
        {"ERF", INFINITY, 1},
        {"ERF", NAN, NAN},
        {"GELU", -14, 0},
        {"GELU", -3e38f, 0},
        {"GELU", 3e38f, 3e38f},
        {"GELU", INFINITY, INFINITY},
        {"GELU", NAN, NAN},
    };
    float x[COUNT] = {0}, to[COUNT];

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const bound b = {.loop = ends[i].loop};

        x[0] = ends[i].x;
        kernel_run(&b, TN_F32, x, x, to);
        if (to[0] != ends[i].y && !(isnan(to[0]) && isnan(ends[i].y)))
            fail_msg("%s of %g is %g, not %g", b.loop, (double)x[0], (double)to[0], (double)ends[i].y);
    }
}

/* Softmax's e^x, of numbers up to 0. */
static void exp_below_is_near(void **state)
{
    int64_t most = 0;

    (void)state;
    for (uint32_t bits = 0x80000000u; bits < 0xc2ad3333u; bits += 997) { /* to -86.6 */
        const float x = tnb_bits_float(bits), y = tnb_float_exp_below(x);
        const int64_t off = llabs(order_f32(y) - order_f32((float)expl(x)));

        if (off > 1)
            fail_msg("e^%.9g is %.9g, %lld units off", (double)x, (double)y, (long long)off);
        most = off > most ? off : most;
    }
    printf("exp_below  f32 %lld of 1\n", (long long)most);
    assert_true(tnb_float_exp_below(0) == 1 && tnb_float_exp_below(-0.0f) == 1);
    assert_true(tnb_float_exp_below(-86.7f) == 0 && tnb_float_exp_below(-3e38f) == 0);
    assert_true(tnb_float_exp_below(-INFINITY) == 0 && isnan(tnb_float_exp_below(NAN)));
}

/* ---- results of 16 bits -------------------------------------------------------------------------------- */

#define SHORTS 65536 /* every float16, and every bfloat16 */

typedef struct short_type {
    const char *name;
    int32_t dtype;
    double normal;          /* the smallest one */
    double error, to_error; /* of the f32 before it is rounded; of the 16 bits, in units of the last place */
    float (*wide)(uint16_t);
    uint16_t (*narrow)(float);
} short_type;

static const short_type short_types[] = {
    {"f16", TN_F16, 0x1p-14, 0x1.6ap-17, 1, tnb_half_float, tnb_float_half},
    {"bf16", TN_BF16, 0x1p-126, 0x1p-14, 1, tnb_bf16_float, tnb_float_bf16},
};

static const struct short_word {
    const char *loop;
    uint16_t id;
    uint8_t operands;
    float (*of)(float), (*wide)(float);
    long double (*exact)(long double, long double);
} short_words[] = {
    {"GELU", TNCUDA_GELU, 1, tnb_float_short_gelu, tnb_float_gelu, exact_GELU},
    {"GELU_BACK", TNCUDA_GELU_BACK, 2, tnb_float_short_gelu_slope, tnb_float_gelu_slope, exact_GELU_BACK},
};

static int32_t order_16(uint16_t v)
{
    return v & 0x8000 ? -(int32_t)(v & 0x7fff) : (int32_t)v;
}

/* The f32 of the shorter arithmetic for every number of a type, and its 16 bits; ends and zeros are those of
 * the longer one. */
static void shorts_are_near(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof short_types / sizeof *short_types; i++) {
        const short_type *t = &short_types[i / 2];
        const struct short_word *w = &short_words[i % 2];
        double most = 0;
        int32_t most_steps = 0;

        for (uint32_t k = 0; k < SHORTS; k++) {
            const float x = t->wide((uint16_t)k), y = w->of(x), long_y = w->wide(x);
            const long double exact = w->exact(x, 0);
            const uint16_t bits = t->narrow(y);
            double error;
            int32_t steps;

            if (isnan(x) || isinf(x) || x == 0 || fabsf(x) > 14) {
                const uint16_t expected = t->narrow(long_y);

                if (bits != expected && !(isnan(y) && isnan(long_y)))
                    fail_msg("%s of %g as %s is %#x, not %#x", w->loop, (double)x, t->name, bits, expected);
                continue;
            }
            if (fabsl(exact) < (long double)t->normal)
                continue;
            error = (double)fabsl((y - exact) / exact);
            steps = abs(order_16(bits) - order_16(t->narrow(tnb_odd_float((double)exact))));
            if (!(error <= t->error) || steps > t->to_error)
                fail_msg("%s of %.9g is %.9g, not %.9Lg: %g of it, and %d units of %s", w->loop, (double)x,
                         (double)y, exact, error, steps, t->name);
            most = error > most ? error : most;
            most_steps = steps > most_steps ? steps : most_steps;
        }
        printf("%-10s %-4s 2^%.2f of 2^%.2f, %d units\n", w->loop, t->name, log2(most), log2(t->error),
               most_steps);
    }
}

/* How the arrays of a kernel lie, and which way it goes. */
static const struct short_way {
    const char *name;
    int32_t places, step;
} short_ways[] = {{"packs of 8", TNCUDA_PLACES_SHORTS, 1},    {"packs of 4", TNCUDA_PLACES_MIXED, 1},
                  {"elements", TNCUDA_PLACES_ANY, 1},         {"elements in 64 bits", TNCUDA_PLACES_WIDE, 1},
                  {"every second one", TNCUDA_PLACES_ANY, 2}, {"a chain", -1, 1}};

static void short_run(const struct short_word *w, int32_t dtype, const struct short_way *way, int64_t count,
                      uint16_t *x, uint16_t *dy, uint16_t *to)
{
    const uint32_t grid[] = {BLOCKS, 1, 1}, block[] = {THREADS, 1, 1};
    static tncuda_fused_args chain;
    tncuda_point_args a = {
        .count = count, .ndim = 1, .scalar = -1, .places = way->places, .varies = 3, .shape = {count}};
    char name[64];

    a.in[0] = a.in[1] = a.out = (tncuda_operand){.dtype = dtype, .stride = {way->step}};
    a.in[0].data = w->operands > 1 ? dy : x;
    a.in[1].data = x;
    a.out.data = to;
    (void)snprintf(name, sizeof name, "point_%s_f32", w->loop);
    if (way->places >= 0) {
        emu_kernel_run(emu_kernel_find(name), grid, block, &a, 1);
        return;
    }
    chain = (tncuda_fused_args){.count = count, .ndim = 1, .steps = 1, .outs = 1, .shape = {count}};
    for (int k = 0; k < 2; k++)
        chain.in[k] = (tncuda_fused_place){.data = a.in[k].data, .dtype = dtype, .stride = {1}};
    chain.out[0] = (tncuda_fused_place){.data = to, .dtype = dtype, .stride = {1}};
    chain.step[0] = (tncuda_fused_step){.loop = w->id,
                                        .kind = TNCUDA_KIND_F32,
                                        .dtype = (uint8_t)dtype,
                                        .operands = w->operands,
                                        .scalar = 255,
                                        .operand = {0, 1}};
    emu_kernel_run(emu_kernel_find("fused_steps"), grid, block, &chain, 1);
}

/* Every number, by each way that a kernel of 16 bits goes: the same bits, those of the shorter arithmetic. */
static void shorts_are_the_same_in_all_ways(void **state)
{
    static _Alignas(16) uint16_t x[2 * SHORTS], dy[2 * SHORTS], to[2 * SHORTS];
    static uint16_t expected[SHORTS];

    (void)state;
    for (size_t i = 0; i < 2 * sizeof short_types / sizeof *short_types; i++) {
        const short_type *t = &short_types[i / 2];
        const struct short_word *w = &short_words[i % 2];

        for (uint32_t k = 0; k < SHORTS; k++) {
            const float y = w->of(t->wide((uint16_t)k));

            expected[k] = t->narrow(w->operands > 1 ? t->wide((uint16_t)(k * 40503u)) * y : y);
        }
        for (size_t m = 0; m < sizeof short_ways / sizeof *short_ways; m++) {
            const int32_t step = short_ways[m].step;
            const int64_t count = SHORTS - 3; /* the last ones of packs are elements */

            memset(to, 0, sizeof to);
            for (uint32_t k = 0; k < SHORTS; k++) {
                x[k * (uint32_t)step] = (uint16_t)k;
                dy[k * (uint32_t)step] = (uint16_t)(k * 40503u);
            }
            short_run(w, t->dtype, &short_ways[m], count, x, dy, to);
            for (uint32_t k = 0; k < count; k++) {
                const uint16_t made = to[k * (uint32_t)step];

                if (made != expected[k] && !(isnan(t->wide(made)) && isnan(t->wide(expected[k]))))
                    fail_msg("%s of %s %#x by %s is %#x, not %#x", w->loop, t->name, k, short_ways[m].name,
                             made, expected[k]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold),
                                       cmocka_unit_test(tails_keep_their_bits),
                                       cmocka_unit_test(slope_is_near),
                                       cmocka_unit_test(ends_are_ends),
                                       cmocka_unit_test(exp_below_is_near),
                                       cmocka_unit_test(shorts_are_near),
                                       cmocka_unit_test(shorts_are_the_same_in_all_ways)};

    if (sizeof(long double) < 10 || LDBL_MANT_DIG < 64) {
        printf("skipped: long double has no more bits than double\n");
        return 77;
    }
    return cmocka_run_group_tests_name("ulp", tests, NULL, NULL);
}

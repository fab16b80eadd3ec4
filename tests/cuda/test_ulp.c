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
#include "tenon/plugin/base.h"

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
        const long double v = x[i], exact = erfcl(-v * 0.707106781186547524400844362104849039L) / 2 +
                                            v * 0.398942280401432677939946L * expl(-v * v / 2);

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold), cmocka_unit_test(tails_keep_their_bits),
                                       cmocka_unit_test(slope_is_near), cmocka_unit_test(ends_are_ends)};

    if (sizeof(long double) < 10 || LDBL_MANT_DIG < 64) {
        printf("skipped: long double has no more bits than double\n");
        return 77;
    }
    return cmocka_run_group_tests_name("ulp", tests, NULL, NULL);
}

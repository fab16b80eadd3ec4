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

/* What CUDA states is within what the list promises. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold)};

    if (sizeof(long double) < 10 || LDBL_MANT_DIG < 64) {
        printf("skipped: long double has no more bits than double\n");
        return 77;
    }
    return cmocka_run_group_tests_name("ulp", tests, NULL, NULL);
}

/*
 * Products of matrices by the emulated kernels, against sums in the same order: sizes that fill tiles and
 * those that do not, matrices that lie either way, aligned and not, batches, slices of k.
 */
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

#define THREADS 256u
#define AROUND 8

typedef struct shape {
    int64_t m, n, k, batch, slices, depth;
    int tile;
    bool a_turned, b_turned, aligned, bias, add;
} shape;

static const shape shapes[] = {
    {64, 64, 32, 1, 1, 32, 64, false, false, true, false, false},
    {64, 64, 33, 1, 1, 33, 64, false, true, false, true, false},
    {65, 130, 70, 1, 1, 70, 64, true, false, true, true, true},
    {3, 200, 100, 2, 1, 100, 64, false, true, true, false, false},
    {68, 36, 256, 1, 3, 96, 64, false, true, true, true, true},
    {5, 7, 260, 2, 4, 96, 64, true, true, false, true, false},
    {128, 128, 16, 1, 1, 16, 128, false, true, true, false, false},
    {132, 200, 40, 1, 1, 40, 128, true, true, true, true, false},
    {129, 131, 75, 2, 1, 75, 128, false, false, false, false, true},
    {256, 140, 96, 1, 3, 32, 128, false, false, true, true, false},
};

static uint64_t random_state = 1;

static double random_number(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(random_state >> 33) / 1073741824.0 - 1;
}

static void *numbers(int32_t dtype, int64_t count, bool aligned)
{
    const size_t each = dtype == TN_F64 ? 8 : 4;
    char *all = aligned_alloc(64, ((size_t)(count + 2 * AROUND) * each + 127) / 64 * 64);
    char *data = all + AROUND * each + (aligned ? 0 : each);

    assert_non_null(all);
    for (int64_t i = 0; i < count; i++)
        if (dtype == TN_F64)
            ((double *)(void *)data)[i] = random_number();
        else
            ((float *)(void *)data)[i] = (float)random_number();
    return data;
}

static void numbers_free(void *data, int32_t dtype, bool aligned)
{
    const size_t each = dtype == TN_F64 ? 8 : 4;

    free((char *)data - AROUND * each - (aligned ? 0 : each));
}

static double at(const void *data, int32_t dtype, int64_t i)
{
    return dtype == TN_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static double rounded(int32_t dtype, double v)
{
    return dtype == TN_F64 ? v : (double)(float)v;
}

static double wanted(const shape *s, const tncuda_product_args *a, const void *c, int64_t batch, int64_t i,
                     int64_t j)
{
    const int64_t place = batch * a->c_batch + i * a->c_row + j;
    double all = 0;

    for (int64_t slice = 0; slice < s->slices; slice++) {
        double sum = 0;

        for (int64_t k = slice * s->depth; k < (slice + 1) * s->depth && k < s->k; k++) {
            const double x = at(a->a, a->dtype, batch * a->a_batch + i * a->a_row + k * a->a_col),
                         y = at(a->b, a->dtype, batch * a->b_batch + k * a->b_row + j * a->b_col);

            sum = a->dtype == TN_F64 ? fma(x, y, sum) : (double)fmaf((float)x, (float)y, (float)sum);
        }
        all = slice ? rounded(a->dtype, all + sum) : sum;
    }
    all = s->bias ? rounded(a->dtype, all + at(a->bias, a->dtype, j)) : all;
    return s->add ? rounded(a->dtype, at(c, a->dtype, place) + all) : all;
}

static void kernel_run(const char *name, uint32_t blocks, const tncuda_product_args *a, uint64_t seed)
{
    const uint32_t grid[] = {blocks, 1, 1}, block[] = {THREADS, 1, 1};
    const emu_kernel *k = emu_kernel_find(name);

    if (!k)
        fail_msg("there is no kernel %s", name);
    emu_kernel_run(k, grid, block, a, seed);
}

static void product_is(const shape *s, int32_t dtype, uint32_t blocks)
{
    const char *suffix = dtype == TN_F64 ? "f64" : "f32";
    const size_t each = dtype == TN_F64 ? 8 : 4;
    const bool even = s->aligned;
    tncuda_product_args a = {.m = s->m,
                             .n = s->n,
                             .k = s->k,
                             .batch = s->batch,
                             .c_row = s->n,
                             .c_col = 1,
                             .slices = s->slices,
                             .depth = s->depth,
                             .dtype = dtype,
                             .add = s->add};
    void *c, *before, *room = numbers(dtype, s->slices * s->batch * s->m * s->n, true);
    char name[64];

    a.a_row = s->a_turned ? 1 : s->k, a.a_col = s->a_turned ? s->m : 1;
    a.b_row = s->b_turned ? 1 : s->n, a.b_col = s->b_turned ? s->k : 1;
    a.a_batch = s->m * s->k, a.b_batch = s->k * s->n, a.c_batch = s->m * s->n;
    a.a = numbers(dtype, a.a_batch * s->batch, even);
    a.b = numbers(dtype, a.b_batch * s->batch, even);
    a.bias = s->bias ? numbers(dtype, s->n, even) : NULL;
    a.c = c = numbers(dtype, a.c_batch * s->batch, even);
    before = numbers(dtype, a.c_batch * s->batch, even);
    memcpy(before, c, (size_t)(a.c_batch * s->batch) * each);
    a.room = s->slices > 1 ? room : NULL;
    a.packs_a = even && (s->a_turned ? s->m : s->k) % 4 == 0 && a.a_batch % 4 == 0
                    ? s->a_turned ? TNCUDA_PACKS_COLUMNS : TNCUDA_PACKS_ROWS
                    : TNCUDA_PACKS_NONE;
    a.packs_b = even && (s->b_turned ? s->k : s->n) % 4 == 0 && a.b_batch % 4 == 0
                    ? s->b_turned ? TNCUDA_PACKS_COLUMNS : TNCUDA_PACKS_ROWS
                    : TNCUDA_PACKS_NONE;
    a.packs_c = s->n % 4 == 0 && (a.room || (even && !s->add));
    (void)snprintf(name, sizeof name, "product_%d_%s", s->tile, suffix);
    kernel_run(name, blocks, &a, 3);
    (void)snprintf(name, sizeof name, "product_sum_%s", suffix);
    if (a.room)
        kernel_run(name, 2, &a, 5);
    for (int64_t i = 0; i < s->batch * s->m * s->n; i++) {
        const double right = wanted(s, &a, before, i / a.c_batch, i % a.c_batch / s->n, i % s->n);

        if (at(c, dtype, i) != right)
            fail_msg("%s, %lld x %lld x %lld: element %lld is %.17g, not %.17g", name, (long long)s->m,
                     (long long)s->n, (long long)s->k, (long long)i, at(c, dtype, i), right);
    }
    numbers_free((void *)(uintptr_t)a.a, dtype, even);
    numbers_free((void *)(uintptr_t)a.b, dtype, even);
    if (a.bias)
        numbers_free((void *)(uintptr_t)a.bias, dtype, even);
    numbers_free(c, dtype, even);
    numbers_free(before, dtype, even);
    numbers_free(room, dtype, true);
}

/* The same bits from any grid. */
static void sums_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        product_is(&shapes[i], TN_F32, 1 + (uint32_t)i);
        if (shapes[i].tile == 64)
            product_is(&shapes[i], TN_F64, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_in_order)};

    return cmocka_run_group_tests_name("product", tests, NULL, NULL);
}

/* Names, the 16-bit floats against arithmetic in double, and casts against plain C. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor.h"

static void names(void **state)
{
    int32_t dtype;

    (void)state;
    for (int32_t i = 0; i < TN_DTYPE_LIMIT; i++) {
        assert_true(tni_dtype_parse(tni_dtype_name(i), &dtype));
        assert_int_equal(dtype, i);
    }
    assert_true(tni_dtype_parse("bf16", &dtype) && dtype == TN_BF16);
    assert_true(tni_dtype_parse("f32", &dtype) && dtype == TN_F32);
    assert_false(tni_dtype_parse("float", &dtype));
    assert_false(tni_dtype_parse("", &dtype));
    assert_false(tni_dtype_parse(NULL, &dtype));
    assert_null(tni_dtype_name(-1));
    assert_null(tni_dtype_name(TN_DTYPE_LIMIT));
}

/* The value of a half, computed by its definition. */
static double half_value(uint16_t h)
{
    int exponent = (h >> 10) & 31, mantissa = h & 1023;
    double v = exponent == 31 ? (mantissa ? NAN : INFINITY)
               : exponent     ? ldexp(1024 + mantissa, exponent - 25)
                              : ldexp(mantissa, -24);

    return h & 0x8000 ? -v : v;
}

static void half_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        double want = half_value((uint16_t)i);
        float got = tni_half_to_float((uint16_t)i);

        if (isnan(want)) {
            assert_true(isnan(got));
            assert_true(isnan(tni_half_to_float(tni_float_to_half(got))));
            continue;
        }
        assert_true(want == (double)got && !signbit(want) == !signbit(got));
        assert_int_equal(tni_float_to_half(got), i);
    }
}

/* Between two neighbours: below the middle down, above up, in the middle to the even one. */
static void half_rounding(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7bff; i++) {
        double a = half_value((uint16_t)i), b = half_value((uint16_t)(i + 1)), middle = (a + b) / 2;

        assert_int_equal(tni_float_to_half((float)middle), i + (i & 1));
        assert_int_equal(tni_float_to_half(nextafterf((float)middle, 0)), i);
        assert_int_equal(tni_float_to_half(nextafterf((float)middle, INFINITY)), i + 1);
    }
    assert_int_equal(tni_float_to_half(65519.996f), 0x7bff);
    assert_int_equal(tni_float_to_half(65520.0f), 0x7c00);
    assert_int_equal(tni_float_to_half(-INFINITY), 0xfc00);
    assert_int_equal(tni_float_to_half(1e-30f), 0);
}

static void bf16(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        float f = tni_bf16_to_float((uint16_t)i);

        if (isnan(f))
            assert_true(isnan(tni_bf16_to_float(tni_float_to_bf16(f))));
        else
            assert_int_equal(tni_float_to_bf16(f), i);
    }
    assert_int_equal(tni_float_to_bf16(1.00390625f), 0x3f80); /* the middle, to even */
    assert_int_equal(tni_float_to_bf16(1.01171875f), 0x3f82);
    assert_int_equal(tni_float_to_bf16(3.4e38f), 0x7f80);
}

/* Rounded once: a double just above a middle must not be rounded to the middle first. */
static void double_to_half_once(void **state)
{
    double d = 1.0 + ldexp(1, -11) + ldexp(1, -40);
    uint16_t h;

    (void)state;
    tni_cast(&d, TN_F64, 1, &h, TN_F16, 1, 1);
    assert_int_equal(h, 0x3c01);
    d = -d;
    tni_cast(&d, TN_F64, 1, &h, TN_F16, 1, 1);
    assert_int_equal(h, 0xbc01);
    d = 1.0 + ldexp(1, -8) + ldexp(1, -40);
    tni_cast(&d, TN_F64, 1, &h, TN_BF16, 1, 1);
    assert_int_equal(h, 0x3f81);
    d = 1e300;
    tni_cast(&d, TN_F64, 1, &h, TN_BF16, 1, 1);
    assert_int_equal(h, 0x7f80);
}

static double as_double(const void *p, int32_t dtype)
{
    double out;

    tni_cast(p, dtype, 1, &out, TN_F64, 1, 1);
    return out;
}

/* Small whole numbers survive every pair of types, at every stride. */
static void every_pair(void **state)
{
    enum { N = 600 };
    static double values[N];
    static unsigned char from[N * 8 * 3], to[N * 8 * 2];

    (void)state;
    for (int i = 0; i < N; i++)
        values[i] = i % 101;
    for (int32_t a = 0; a < TN_I4; a++)
        for (int32_t b = 0; b < TN_I4; b++)
            for (int stride = 1; stride <= 3; stride += 2) {
                int to_stride = stride == 1 ? 1 : 2;

                memset(to, 0xee, sizeof to);
                tni_cast(values, TN_F64, 1, from, a, stride, N);
                tni_cast(from, a, stride, to, b, to_stride, N);
                for (int i = 0; i < N; i++) {
                    double want = a == TN_BOOL || b == TN_BOOL ? values[i] != 0 : values[i];

                    assert_true(as_double(to + (uint64_t)(i * to_stride) * tn_dtype_bytes(b), b) == want);
                }
            }
}

/* Four bits: sizes, order within a byte, what is left over, saturation from floats,
 * low bits from integers. */
static void packed(void **state)
{
    static const double numbers[] = {-8, 7, 3, -1, 20, -30, (double)NAN, 2.9, -0.5};
    static const int8_t signed_want[] = {-8, 7, 3, -1, 7, -8, 0, 2, 0};
    static const uint8_t unsigned_want[] = {0, 7, 3, 0, 15, 0, 0, 2, 0};
    static const int32_t wide[] = {17, -9, 8, 255};
    uint8_t bytes[6], back[9];
    int32_t again[4];

    (void)state;
    assert_int_equal(tn_dtype_size(TN_I4, 0), 0);
    assert_int_equal(tn_dtype_size(TN_U4, 1), 1);
    assert_int_equal(tn_dtype_size(TN_I4, 9), 5);
    assert_true(tn_dtype_size(TN_I4, INT64_MAX) == (uint64_t)1 << 62);
    memset(bytes, 0xee, sizeof bytes);
    tni_cast(numbers, TN_F64, 1, bytes, TN_I4, 1, 9);
    assert_int_equal(bytes[0], 0x78); /* the first one in the low half */
    assert_int_equal(bytes[4], 0);
    assert_int_equal(bytes[5], 0xee);
    tni_cast(bytes, TN_I4, 1, back, TN_I8, 1, 9);
    assert_memory_equal(back, signed_want, 9);
    tni_cast(numbers, TN_F64, 1, bytes, TN_U4, 1, 9);
    tni_cast(bytes, TN_U4, 1, back, TN_U8, 1, 9);
    assert_memory_equal(back, unsigned_want, 9);
    tni_cast(wide, TN_I32, 1, bytes, TN_I4, 1, 4);
    tni_cast(bytes, TN_I4, 1, again, TN_I32, 1, 4);
    assert_memory_equal(again, ((int32_t[]){1, 7, -8, -1}), sizeof again);
    tni_cast(bytes, TN_I4, 1, back, TN_U4, 1, 3);
    assert_int_equal(back[0], 0x71);
    assert_int_equal(back[1], 0x08);
}

/* Longer than one piece of a cast, from any type to four bits and back. */
static void packed_pairs(void **state)
{
    enum { N = 601 };
    static double values[N], got[N];
    static unsigned char from[N * 8], bytes[N];

    (void)state;
    for (int i = 0; i < N; i++)
        values[i] = i % 8;
    for (int32_t a = 0; a < TN_DTYPE_LIMIT; a++)
        for (int32_t b = TN_I4; b <= TN_U4; b++) {
            tni_cast(values, TN_F64, 1, from, a, 1, N);
            tni_cast(from, a, 1, bytes, b, 1, N);
            tni_cast(bytes, b, 1, got, TN_F64, 1, N);
            for (int i = 0; i < N; i++)
                assert_true(got[i] == (a == TN_BOOL ? values[i] != 0 : values[i]));
        }
}

static void floats_to_integers(void **state)
{
    const double in[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 2.9, -2.9, -0.5, 255.9, 127.9, -128.9};
    const int8_t i8[] = {0, 127, -128, 127, -128, 2, -2, 0, 127, 127, -128};
    const uint8_t u8[] = {0, 255, 0, 255, 0, 2, 0, 0, 255, 127, 0};
    const int32_t i32[] = {0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 2, -2, 0, 255, 127, -128};
    const int64_t i64[] = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 2, -2, 0, 255, 127, -128};
    const uint64_t u64[] = {0, UINT64_MAX, 0, UINT64_MAX, 0, 2, 0, 0, 255, 127, 0};
    const uint8_t bln[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    enum { N = sizeof in / sizeof *in };
    unsigned char out[N * 8];

    (void)state;
    tni_cast(in, TN_F64, 1, out, TN_I8, 1, N);
    assert_memory_equal(out, i8, sizeof i8);
    tni_cast(in, TN_F64, 1, out, TN_U8, 1, N);
    assert_memory_equal(out, u8, sizeof u8);
    tni_cast(in, TN_F64, 1, out, TN_I32, 1, N);
    assert_memory_equal(out, i32, sizeof i32);
    tni_cast(in, TN_F64, 1, out, TN_I64, 1, N);
    assert_memory_equal(out, i64, sizeof i64);
    tni_cast(in, TN_F64, 1, out, TN_U64, 1, N);
    assert_memory_equal(out, u64, sizeof u64);
    tni_cast(in, TN_F64, 1, out, TN_BOOL, 1, N);
    assert_memory_equal(out, bln, sizeof bln);
}

static void integers(void **state)
{
    const int64_t in[] = {-1, 300, INT64_MIN, INT64_MAX};
    const uint64_t big = UINT64_MAX;
    uint8_t u8[4];
    uint64_t u64[4];
    float f;
    double d;

    (void)state;
    tni_cast(in, TN_I64, 1, u8, TN_U8, 1, 4);
    assert_int_equal(u8[0], 255);
    assert_int_equal(u8[1], 44);
    assert_int_equal(u8[2], 0);
    tni_cast(in, TN_I64, 1, u64, TN_U64, 1, 4);
    assert_true(u64[0] == UINT64_MAX && u64[2] == (uint64_t)1 << 63);
    tni_cast(&big, TN_U64, 1, &d, TN_F64, 1, 1);
    assert_true(d == 18446744073709551616.0);
    tni_cast(&in[3], TN_I64, 1, &f, TN_F32, 1, 1);
    assert_true(f == 9223372036854775808.0f);
    tni_cast(in, TN_I64, 1, u8, TN_U8, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(half_all),
        cmocka_unit_test(half_rounding),
        cmocka_unit_test(bf16),
        cmocka_unit_test(double_to_half_once),
        cmocka_unit_test(every_pair),
        cmocka_unit_test(packed),
        cmocka_unit_test(packed_pairs),
        cmocka_unit_test(floats_to_integers),
        cmocka_unit_test(integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Floating point becomes integers: toward zero, beyond the range its end, NaN 0, whatever computes it. What
 * integers make of integers wraps. Each kernel is held to it, on hosts and on the double of a GPU.
 */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define VALUES "256 3125 -1 1e10 1e20 inf nan"

#define CAST(to, from, expected)                                                                             \
    {                                                                                                        \
#from " to " #to, "dtype=" #to,                                                                      \
            .in = {#from "[7] " VALUES }, .out = {#to "[7] " expected }, .flags = N                          \
    }
#define CASTS(to, expected) CAST(to, f32, expected), CAST(to, f64, expected)
/* The largest numbers below infinity are 65504 and 3.4e38. */
#define SHORT(to, from, expected)                                                                            \
    {                                                                                                        \
#from " to " #to, "dtype=" #to,                                                                      \
            .in = {#from "[5] 256 -1.5 -inf inf nan" }, .out = {#to "[5] " expected }, .flags = N            \
    }
#define SHORTS(to, expected) SHORT(to, f16, expected), SHORT(to, bf16, expected)

static const tn_op_case cast[] = {
    CASTS(u8, "255 255 0 255 255 255 0"),
    CASTS(i8, "127 127 -1 127 127 127 0"),
    CASTS(u16, "256 3125 0 65535 65535 65535 0"),
    CASTS(i16, "256 3125 -1 32767 32767 32767 0"),
    CASTS(u32, "256 3125 0 4294967295 4294967295 4294967295 0"),
    CASTS(i32, "256 3125 -1 2147483647 2147483647 2147483647 0"),
    CASTS(u64, "256 3125 0 10000000000 18446744073709551615 18446744073709551615 0"),
    CASTS(i64, "256 3125 -1 10000000000 9223372036854775807 9223372036854775807 0"),
    CASTS(bool, "1 1 1 1 1 1 1"),
    SHORTS(u8, "255 0 0 255 0"),
    SHORTS(i8, "127 -1 -128 127 0"),
    SHORTS(u16, "256 0 0 65535 0"),
    SHORTS(i16, "256 -1 -32768 32767 0"),
    SHORTS(u32, "256 0 0 4294967295 0"),
    SHORTS(i32, "256 -1 -2147483648 2147483647 0"),
    SHORTS(u64, "256 0 0 18446744073709551615 0"),
    SHORTS(i64, "256 -1 -9223372036854775808 9223372036854775807 0"),
    SHORTS(bool, "1 1 1 1 1"),
    {"fractions and low ends", "dtype=i32", .in = {"f64[5] 2.99 -2.99 -1e10 -1e20 -inf"},
     .out = {"i32[5] 2 -2 -2147483648 -2147483648 -2147483648"}, .flags = N},
    {"the ends of 64 bits", "dtype=i64",
     .in = {"f64[3] 9223372036854774784 9223372036854775808 -9223372036854775808"},
     .out = {"i64[3] 9223372036854774784 9223372036854775807 -9223372036854775808"}, .flags = N},
    {"many", "dtype=u8", .in = {"f32[300] random:-600:600"}, .flags = N},
};

/* Powers are exact; those of narrow types wrap as sums do, behind 32 bits (64 of the wide ones) they end. */
static const tn_op_case power[] = {
    {"u8", "", .in = {"u8[6] 16 2 4 5 0 7", "u8[6] 2 8 4 5 0 0"}, .out = {"u8[6] 0 0 0 53 1 1"}},
    {"i8", "", .in = {"i8[7] 16 2 -5 5 -1 -1 -3", "i8[7] 2 7 3 5 127 -3 -1"},
     .out = {"i8[7] 0 -128 -125 53 -1 -1 0"}},
    {"u16", "", .in = {"u16[3] 16 5 256", "u16[3] 4 5 2"}, .out = {"u16[3] 0 3125 0"}},
    {"i16", "", .in = {"i16[4] 16 5 -10 -2", "i16[4] 4 5 11 15"}, .out = {"i16[4] 0 3125 0 -32768"}},
    {"i32", "", .in = {"i32[3] 16 5 3", "i32[3] 2 5 19"}, .out = {"i32[3] 256 3125 1162261467"}},
    {"u32", "", .in = {"u32[4] 16 5 10 2", "u32[4] 2 5 10 31"},
     .out = {"u32[4] 256 3125 1410065408 2147483648"}},
    {"i64", "", .in = {"i64[3] 10 3 2", "i64[3] 10 33 62"},
     .out = {"i64[3] 10000000000 5559060566555523 4611686018427387904"}},
    {"narrow ends", "", .in = {"u8[3] 10 255 0", "u8[3] 10 255 1"}, .out = {"u8[3] 255 255 0"}},
    {"an infinite byte", "", .in = {"i8[1] 0", "i8[1] -1"}, .out = {"i8[1] -1"}},
    {"ends", "", .in = {"i32[3] 10 -10 0", "i32[3] 10 11 -1"},
     .out = {"i32[3] 2147483647 -2147483648 2147483647"}},
    {"wide ends", "", .in = {"i64[4] 10 -10 -2 0", "i64[4] 20 21 63 -2"},
     .out = {"i64[4] 9223372036854775807 -9223372036854775808 -9223372036854775808 9223372036854775807"}},
    {"powers of a byte", "", .in = {"u8[300] random:0:255", "u8[300] random:0:9"}},
};

static const tn_op_case lengths[] = {
    {"integers", "", .in = {"i32[4] 3 5 -8 1", "i32[4] 4 12 15 1"}, .out = {"i32[4] 5 13 17 1"}},
    {"u8", "", .in = {"u8[2] 255 6", "u8[2] 255 8"}, .out = {"u8[2] 104 10"}},
    {"i64", "", .in = {"i64[2] 300000000 0", "i64[2] 400000000 -7"}, .out = {"i64[2] 500000000 7"}},
};

static const tn_op_case ldexp_cases[] = {
    {"i32", "", .in = {"i32[5] 1 -5 7 0 1", "i32[5] 8 3 -1 5000 -5000"}, .out = {"i32[5] 256 -40 3 0 0"}},
    {"u8", "", .in = {"u8[2] 1 3", "u8[2] 8 1"}, .out = {"u8[2] 0 6"}},
    {"ends", "", .in = {"i32[3] 3 -3 1", "i32[3] 30 31 3000"},
     .out = {"i32[3] 2147483647 -2147483648 2147483647"}},
};

#define SCALAR(number, type, expected)                                                                       \
    {                                                                                                        \
#type " and " #number, "scalar=" #number, .in = {#type "[2] 1 2" }, .out = { #type "[2] " expected } \
    }
static const tn_op_case mul_scalar[] = {
    SCALAR(256, u8, "0 0"),
    SCALAR(3125, u8, "53 106"),
    SCALAR(1e10, u8, "255 254"),
    SCALAR(-1, i16, "-1 -2"),
    SCALAR(1e20, i32, "2147483647 -2"),
    SCALAR(1e10, i64, "10000000000 20000000000"),
    SCALAR(1e20, i64, "9223372036854775807 -2"),
    SCALAR(nan, i32, "0 0"),
};

#define FILL(type, number, expected)                                                                         \
    {                                                                                                        \
#type " " #number, "value=" #number,                                                                 \
            .in = {#type "[2] 1 2" }, .out = {#type "[2] " expected }, .flags = N                            \
    }
static const tn_op_case fill[] = {
    FILL(u8, 256, "255 255"),
    FILL(u8, 3125, "255 255"),
    FILL(u8, -1, "0 0"),
    FILL(i8, -1e30, "-128 -128"),
    FILL(i8, nan, "0 0"),
    FILL(u16, 1e10, "65535 65535"),
    FILL(i16, 1e10, "32767 32767"),
    FILL(u32, 1e20, "4294967295 4294967295"),
    FILL(i32, inf, "2147483647 2147483647"),
    FILL(u64, 1e20, "18446744073709551615 18446744073709551615"),
    FILL(u64, -1, "0 0"),
    FILL(i64, 1e20, "9223372036854775807 9223372036854775807"),
    FILL(bool, 0.5, "1 1"),
};

#define FULL(type, number, expected)                                                                         \
    {                                                                                                        \
#type " " #number, "shape=(2,) dtype=" #type " value=" #number, .out = { #type "[2] " expected }     \
    }
static const tn_op_case full[] = {
    FULL(u8, 3125, "255 255"), FULL(u8, -1, "0 0"),
    FULL(i8, 256, "127 127"),  FULL(i32, 1e10, "2147483647 2147483647"),
    FULL(i32, nan, "0 0"),     FULL(i64, 1e20, "9223372036854775807 9223372036854775807"),
    FULL(u8, inf, "255 255"),
};

static const tn_op_case arange[] = {
    {"u8", "start=254 stop=259 dtype=u8", .out = {"u8[5] 254 255 255 255 255"}},
    {"i8", "start=-130 stop=-126 dtype=i8", .out = {"i8[4] -128 -128 -128 -127"}},
    {"i32", "start=2147483646 stop=2147483650 dtype=i32",
     .out = {"i32[4] 2147483646 2147483647 2147483647 2147483647"}},
};

/* clang-format off */
TN_OP_TESTS(cast, "Cast", cast)
TN_OP_TESTS(power, "_power", power)
TN_OP_TESTS(hypot_, "_hypot", lengths)
TN_OP_TESTS(ldexp_, "_npi_ldexp", ldexp_cases)
TN_OP_TESTS(mul_scalar, "_mul_scalar", mul_scalar)
TN_OP_TESTS(fill, "_fill", fill)
TN_OP_TESTS(full, "_full", full)
TN_OP_TESTS(arange, "_arange", arange)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(cast),       TN_OP_TEST(power), TN_OP_TEST(hypot_), TN_OP_TEST(ldexp_),
        TN_OP_TEST(mul_scalar), TN_OP_TEST(fill),  TN_OP_TEST(full),   TN_OP_TEST(arange),
    };

    return tn_op_main(tests);
}

/* Families elemwise, scalar and broadcast. */
#include <stdio.h>

#include <math.h>
#include <string.h>

#include "support/op_case.h"
#include "support/op_run.h"

#define N TN_CASE_NO_GRAD

static const tn_op_case add[] = {
    {"f32", "", .in = {"f32[2,2] 1 2 3 4", "f32[2,2] 10 20 30 40"}, .out = {"f32[2,2] 11 22 33 44"},
     .flags = TN_CASE_GRAD2},
    {"large", "", .in = {"f32[300,301] random", "f32[300,301] random"}, .flags = N},
    {"f16", "", .in = {"f16[3] 1 2 60000", "f16[3] 0.5 0.25 60000"}, .out = {"f16[3] 1.5 2.25 inf"},
     .flags = N},
    {"bf16", "", .in = {"bf16[2] 1 2", "bf16[2] 0.5 0.25"}, .out = {"bf16[2] 1.5 2.25"}, .flags = N},
    {"u8 wraps", "", .in = {"u8[2] 250 1", "u8[2] 10 1"}, .out = {"u8[2] 4 2"}},
    {"i8 wraps", "", .in = {"i8[2] 127 1", "i8[2] 1 1"}, .out = {"i8[2] -128 2"}},
    {"i64", "", .in = {"i64[1] 9007199254740993", "i64[1] 1"}, .out = {"i64[1] 9007199254740994"}},
    {"i16 u16 u32", "", .in = {"u32[1] 4294967295", "u32[1] 2"}, .out = {"u32[1] 1"}},
    {"bool is or", "", .in = {"bool[3] 0 1 1", "bool[3] 0 0 1"}, .out = {"bool[3] 0 1 1"}},
    {"scalars", "", .in = {"f32[] 1", "f32[] 2"}, .out = {"f32[] 3"}},
    {"empty", "", .in = {"f32[0,2]", "f32[0,2]"}, .out = {"f32[0,2]"}},
    {"shapes differ", "", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE,
     .message = "(2,), (3,)"},
    {"types differ", "", .in = {"f32[1] 1", "f64[1] 1"}, .status = TN_E_DTYPE, .message = "cast one"},
    {"one input", "", .in = {"f32[1] 1"}, .status = TN_E_ARG},
};
static const tn_op_case mul[] = {
    {"f64", "", .in = {"f64[3] 1 -2 3", "f64[3] 4 5 -6"}, .out = {"f64[3] 4 -10 -18"},
     .flags = TN_CASE_GRAD2},
    {"same twice", "", .in = {"f64[40] random", "f64[40] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case divide[] = {
    {"f32", "", .in = {"f32[3] 1 -2 3", "f32[3] 4 5 0"}, .out = {"f32[3] 0.25 -0.4 inf"}, .flags = N},
    {"gradient", "", .in = {"f64[6] random", "f64[6] random:0.5:2"}, .flags = TN_CASE_GRAD2},
    {"integers", "", .in = {"i32[4] 7 -7 1 -2147483648", "i32[4] 2 2 0 -1"},
     .out = {"i32[4] 3 -3 0 -2147483648"}},
};
static const tn_op_case mod[] = {
    {"sign of the divisor", "", .in = {"f32[5] 5 -5 5 -5 1", "f32[5] 3 3 -3 -3 0"},
     .out = {"f32[5] 2 1 -1 -2 0"}, .flags = N},
    {"integers", "", .in = {"i32[6] 5 -5 5 -5 1 -2147483648", "i32[6] 3 3 -3 -3 0 -1"},
     .out = {"i32[6] 2 1 -1 -2 0 0"}},
    {"gradient", "", .in = {"f64[4] 5.3 -5.2 4.1 7.7", "f64[4] 3 2 1.3 -2.5"}},
};
static const tn_op_case power[] = {
    {"f32", "", .in = {"f32[4] 2 3 -2 0", "f32[4] 10 0.5 3 0"}, .out = {"f32[4] 1024 1.7320508 -8 1"},
     .flags = N},
    {"gradient", "", .in = {"f64[6] random:0.5:2", "f64[6] random"}, .flags = TN_CASE_GRAD2},
    {"integers", "", .in = {"i64[2] 3 2", "i64[2] 4 -1"}, .out = {"i64[2] 81 0"}},
};
static const tn_op_case maximum[] = {
    {"nan", "", .in = {"f32[4] 1 nan 3 -1", "f32[4] 2 1 nan -2"}, .out = {"f32[4] 2 nan nan -1"}, .flags = N},
    {"gradient", "", .in = {"f64[9] random", "f64[9] random"}, .flags = TN_CASE_GRAD2},
    {"ties go left", "", .in = {"f32[1] 2", "f32[1] 2"}, .grad = {"f32[1] 1", "f32[1] 0"}, .flags = N},
};
static const tn_op_case hypot_cases[] = {
    {"gradient", "", .in = {"f64[3] 3 5 -8", "f64[3] 4 12 15"}, .out = {"f64[3] 5 13 17"},
     .flags = TN_CASE_GRAD2},
};
static const tn_op_case equal[] = {
    {"nan", "", .in = {"f32[3] 1 nan 0", "f32[3] 1 nan -0"}, .out = {"f32[3] 1 0 1"}},
};
static const tn_op_case logical_xor[] = {
    {"f32", "", .in = {"f32[4] 0 0 2 3", "f32[4] 0 5 0 -1"}, .out = {"f32[4] 0 1 1 0"}},
};
static const tn_op_case add_n[] = {
    {"three", "", .in = {"f32[2] 1 2", "f32[2] 10 20", "f32[2] 100 200"}, .out = {"f32[2] 111 222"},
     .flags = TN_CASE_GRAD2},
    {"one, counted", "num_args=1", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}},
    {"f16", "", .in = {"f16[600] random", "f16[600] random"}, .flags = N},
    {"counted wrongly", "num_args=3", .in = {"f32[2] 1 2"}, .status = TN_E_ARG, .message = "num_args is 3"},
    {"none", "num_args=0", .status = TN_E_ARG},
};
static const tn_op_case copy[] = {
    {"u64", "", .in = {"u64[2] 0 9007199254740992"}, .out = {"u64[2] 0 9007199254740992"}},
    {"f32", "", .in = {"f32[2,3] random"}, .flags = TN_CASE_GRAD2},
    {"nan stays", "", .in = {"f32[1] nan"}, .out = {"f32[1] nan"}, .flags = N},
};
static const tn_op_case block_grad[] = {
    {"stops", "", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}},
};
static const tn_op_case ones_like[] = {
    {"bool", "", .in = {"bool[2] 0 0"}, .out = {"bool[2] 1 1"}},
    {"f16", "", .in = {"f16[2] nan 0"}, .out = {"f16[2] 1 1"}},
};
static const tn_op_case cast[] = {
    {"to int", "dtype=int32", .in = {"f32[6] 1.9 -1.9 nan 3e9 -3e9 inf"},
     .out = {"i32[6] 1 -1 0 2147483647 -2147483648 2147483647"}, .flags = N},
    {"to u8", "dtype=uint8", .in = {"f64[4] 1.9 -1.9 300 255"}, .out = {"u8[4] 1 0 255 255"}, .flags = N},
    {"i64 to u8 wraps", "dtype=u8", .in = {"i64[2] 257 -1"}, .out = {"u8[2] 1 255"}},
    {"to half, rounded once", "dtype=float16", .in = {"f64[1] 1.000488281250001"},
     .out = {"f16[1] 1.0009765625"}, .flags = N, .tolerance = 1e-15},
    {"to bool", "dtype=bool", .in = {"f32[3] 0 0.1 nan"}, .out = {"bool[3] 0 1 1"}, .flags = N},
    {"from bool", "dtype=float32", .in = {"bool[2] 0 1"}, .out = {"f32[2] 0 1"}},
    {"from u64", "dtype=float64", .in = {"u64[1] 18446744073709549568"},
     .out = {"f64[1] 18446744073709549568"}},
    {"to bf16", "dtype=bfloat16", .in = {"f32[2] 1.0039062 3"}, .out = {"bf16[2] 1 3"}, .flags = N},
    {"same", "dtype=float64", .in = {"f64[700] random"}, .flags = TN_CASE_GRAD2},
    {"none", "dtype=None", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
    {"unknown", "dtype=float17", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "data type"},
};
/* No call reaches these two by name: their values and gradients are tested here. */
static const tn_op_case sum_like[] = {
    {"rows", "", .in = {"f64[2,3] 1 2 3 4 5 6", "f64[3] range"}, .out = {"f64[3] 5 7 9"},
     .flags = TN_CASE_GRAD2},
    {"kept", "", .in = {"f64[2,3] random", "f64[2,1] range"}, .flags = TN_CASE_GRAD2},
    {"wider", "", .in = {"f32[3] range", "f32[2,3] range"}, .status = TN_E_SHAPE},
};
static const tn_op_case stretch_like[] = {
    {"rows", "", .in = {"f64[3] 1 2 3", "f64[2,3] range"}, .out = {"f64[2,3] 1 2 3 1 2 3"},
     .flags = TN_CASE_GRAD2},
    {"kept", "", .in = {"f64[2,1] random", "f64[2,3] range"}, .flags = TN_CASE_GRAD2},
    {"narrower", "", .in = {"f32[2,3] range", "f32[3] range"}, .status = TN_E_SHAPE},
};
static const tn_op_case where[] = {
    {"rows of a number", "", .in = {"f32[1] 1", "f32[] 2", "f32[] 3"}, .status = TN_E_SHAPE},
    {"shape", "", .in = {"f32[2,2] 1 0 nan 0", "f64[2,2] 1 2 3 4", "f64[2,2] 5 6 7 8"},
     .out = {"f64[2,2] 1 6 3 8"}, .no_grad_inputs = 1},
    {"rows", "", .in = {"i32[2] 0 7", "f32[2,3] 1 2 3 4 5 6", "f32[2,3] 9 9 9 9 9 9"},
     .out = {"f32[2,3] 9 9 9 4 5 6"}},
    {"bool, i8", "", .in = {"bool[3] 1 0 1", "i8[3] 1 2 3", "i8[3] 4 5 6"}, .out = {"i8[3] 1 5 3"}},
    {"large", "", .in = {"i64[40,60] random", "f32[40,60] random", "f32[40,60] random"}, .flags = N},
    {"condition too long", "", .in = {"f32[3] 1 1 1", "f32[2,2] 1 2 3 4", "f32[2,2] 1 2 3 4"},
     .status = TN_E_SHAPE},
    {"condition of another rank", "", .in = {"f32[2,2] 1 1 1 1", "f32[2,2,1] 1 2 3 4", "f32[2,2,1] 1 2 3 4"},
     .status = TN_E_SHAPE},
};

/* clang-format off */
TN_OP_TESTS(add, "elemwise_add", add)
TN_OP_TESTS(mul, "elemwise_mul", mul)
TN_OP_TESTS(divide, "elemwise_div", divide)
TN_OP_TESTS(mod, "_mod", mod)
TN_OP_TESTS(power, "_power", power)
TN_OP_TESTS(maximum, "_maximum", maximum)
TN_OP_TESTS(hypot, "_hypot", hypot_cases)
TN_OP_TESTS(equal, "_equal", equal)
TN_OP_TESTS(logical_xor, "_logical_xor", logical_xor)
TN_OP_TESTS(add_n, "add_n", add_n)
TN_OP_TESTS(copy, "identity", copy)
TN_OP_TESTS(block_grad, "stop_gradient", block_grad)
TN_OP_TESTS(ones_like, "ones_like", ones_like)
TN_OP_TESTS(cast, "Cast", cast)
TN_OP_TESTS(where, "where", where)
TN_OP_TESTS(sum_like, "_sum_like", sum_like)
TN_OP_TESTS(stretch_like, "_stretch_like", stretch_like)
/* clang-format on */

/* ---- an array and a number -------------------------------------------------------------------- */

typedef struct scalar_row {
    const char *op, *out; /* of 1 2 -3 with scalar=2 */
    uint32_t flags;
} scalar_row;

static const scalar_row scalars[] = {
    {"_plus_scalar", "3 4 -1", TN_CASE_GRAD2},
    {"_minus_scalar", "-1 0 -5", TN_CASE_GRAD2},
    {"_rminus_scalar", "1 0 5", TN_CASE_GRAD2},
    {"_mul_scalar", "2 4 -6", TN_CASE_GRAD2},
    {"_div_scalar", "0.5 1 -1.5", TN_CASE_GRAD2},
    {"_rdiv_scalar", "2 1 -0.66666666666666667", TN_CASE_GRAD2},
    {"_mod_scalar", "1 0 1", N},
    {"_rmod_scalar", "0 0 -1", N},
    {"_power_scalar", "1 4 9", TN_CASE_GRAD2},
    {"_rpower_scalar", "2 4 0.125", TN_CASE_GRAD2},
    {"_maximum_scalar", "2 2 2", N},
    {"_minimum_scalar", "1 2 -3", N},
    {"_hypot_scalar", "2.23606797749979 2.8284271247461903 3.605551275463989", TN_CASE_GRAD2},
    {"_equal_scalar", "0 1 0", 0},
    {"_not_equal_scalar", "1 0 1", 0},
    {"_greater_scalar", "0 0 0", 0},
    {"_greater_equal_scalar", "0 1 0", 0},
    {"_lesser_scalar", "1 0 1", 0},
    {"_lesser_equal_scalar", "1 1 1", 0},
    {"_logical_and_scalar", "1 1 1", 0},
    {"_logical_or_scalar", "1 1 1", 0},
    {"_logical_xor_scalar", "0 0 0", 0},
    {"_PlusScalar", "3 4 -1", 0},
};

static void test_scalars(void **state)
{
    static const char *const shapes[] = {"f64[3] 1 2 -3", "f32[3] 1 2 -3", "f16[3] 1 2 -3",
                                         "f32[2,700] random", "f64[] 0.7"};

    (void)state;
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            char out[100];
            tn_op_case c = {scalars[i].op, "scalar=2", .in = {shapes[k]},
                            .flags = k == 0 ? scalars[i].flags : N};

            snprintf(out, sizeof out, "%.3s[3] %s", shapes[k], scalars[i].out);
            if (k < 3)
                c.out[0] = out;
            tn_op_cases_run(scalars[i].op, &c, 1);
        }
}

static const tn_op_case mul_scalar[] = {
    {"default", "", .in = {"f32[1] 3"}, .out = {"f32[1] 3"}},
    {"integers cut", "scalar=2.9", .in = {"i32[2] 3 -3"}, .out = {"i32[2] 6 -6"}},
    {"infinite", "scalar=inf", .in = {"f32[2] 3 0"}, .out = {"f32[2] inf nan"}, .flags = N},
    {"maximum", "scalar=0.1", .in = {"f64[8] random"}},
    {"words", "scalar=two", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "scalar is \"two\""},
};
static const tn_op_case mod_scalar[] = {
    {"gradient", "scalar=1.3", .in = {"f64[5] 0.2 2 3 -4 5"}},
};
static const tn_op_case rmod_scalar[] = {
    {"gradient", "scalar=7.3", .in = {"f64[3] 0.95 2 -3"}},
};
static const tn_op_case maximum_scalar[] = {
    {"gradient", "scalar=0.1", .in = {"f64[9] random"}, .flags = TN_CASE_GRAD2},
    {"nan", "scalar=0", .in = {"f32[2] nan -1"}, .out = {"f32[2] nan 0"}, .flags = N},
};
static const tn_op_case power_scalar[] = {
    {"gradient", "scalar=-1.5", .in = {"f64[5] random:0.5:2"}, .flags = TN_CASE_GRAD2},
    {"square at 0", "scalar=2", .in = {"f64[3] 0 1 -1"}, .flags = TN_CASE_GRAD2},
};

/* clang-format off */
TN_OP_TESTS(mul_scalar, "_mul_scalar", mul_scalar)
TN_OP_TESTS(mod_scalar, "_mod_scalar", mod_scalar)
TN_OP_TESTS(rmod_scalar, "_rmod_scalar", rmod_scalar)
TN_OP_TESTS(maximum_scalar, "_maximum_scalar", maximum_scalar)
TN_OP_TESTS(power_scalar, "_power_scalar", power_scalar)
/* clang-format on */

/* ---- broadcasting ----------------------------------------------------------------------------- */

static const tn_op_case broadcast_add[] = {
    {"row", "", .in = {"f32[2,3] 1 2 3 4 5 6", "f32[1,3] 10 20 30"}, .out = {"f32[2,3] 11 22 33 14 25 36"},
     .flags = TN_CASE_GRAD2},
    {"column", "", .in = {"f32[2,1] 1 2", "f32[1,3] 10 20 30"}, .out = {"f32[2,3] 11 21 31 12 22 32"},
     .flags = TN_CASE_GRAD2},
    {"fewer axes", "", .in = {"f64[2,3] 1 2 3 4 5 6", "f64[3] 10 20 30"},
     .out = {"f64[2,3] 11 22 33 14 25 36"}},
    {"scalar", "", .in = {"f64[] 5", "f64[2] 1 2"}, .out = {"f64[2] 6 7"}},
    {"channels", "", .in = {"f32[4,3,20,30] random", "f32[1,3,1,1] 1 2 3"}, .flags = N},
    {"one for all", "", .in = {"f32[40,50] random", "f32[1,1] 3"}, .flags = N},
    {"f16", "", .in = {"f16[40,50] random", "f16[40,1] random"}, .flags = N},
    {"empty", "", .in = {"f32[0,3]", "f32[1,3] 1 2 3"}, .out = {"f32[0,3]"}, .flags = N},
    {"does not fit", "", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE,
     .message = "2 and 3 do not broadcast"},
};
static const tn_op_case broadcast_mul[] = {
    {"both stretch", "", .in = {"f64[2,1,3] random", "f64[4,1] random"}, .flags = TN_CASE_GRAD2},
    {"same shape", "", .in = {"f64[2,3] random", "f64[2,3] random"}},
};
static const tn_op_case broadcast_sub[] = {
    {"both stretch", "", .in = {"f64[2,1] random", "f64[1,3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case broadcast_div[] = {
    {"both stretch", "", .in = {"f64[2,1] random", "f64[1,3] random:0.5:2"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case broadcast_power[] = {
    {"both stretch", "", .in = {"f64[2,1] random:0.5:2", "f64[1,3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case broadcast_mod[] = {
    {"both stretch", "", .in = {"f64[2,1] 5.3 -5.2", "f64[1,3] 3 1.7 -2.4"}},
};
static const tn_op_case broadcast_maximum[] = {
    {"both stretch", "", .in = {"f64[5,1] random", "f64[1,3] random"}},
};
static const tn_op_case broadcast_hypot[] = {
    {"both stretch", "", .in = {"f64[5,1] random", "f64[1,3] random"}},
};
static const tn_op_case broadcast_lesser[] = {
    {"column", "", .in = {"i64[2,1] 1 2", "i64[2] 1 2"}, .out = {"i64[2,2] 0 1 0 0"}},
};
static const tn_op_case broadcast_to[] = {
    {"stretch", "shape=(2,3)", .in = {"f32[1,3] 1 2 3"}, .out = {"f32[2,3] 1 2 3 1 2 3"},
     .flags = TN_CASE_GRAD2},
    {"zero keeps", "shape=(4,0)", .in = {"f32[1,3] 1 2 3"}},
    {"rows that repeat", "shape=(2,27,3)", .in = {"f16[2,1,3] 1 2 3 4 5 6"},
     .out = {"f16[2,27,3]"
             " 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3"
             " 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 4 5 6"
             " 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6"
             " 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6 4 5 6"}},
    {"rows that repeat beyond a tile", "shape=(2,900,5,3)", .in = {"f64[2,1,5,3] random"}},
    {"u64", "shape=[2]", .in = {"u64[1] 7"}, .out = {"u64[2] 7 7"}},
    {"cannot shrink", "shape=(1,)", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE,
     .message = "cannot be stretched"},
    {"other rank", "shape=(2,3)", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE, .message = "2 items"},
    {"negative", "shape=(-2,)", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
    {"too many", "shape=(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
     .in = {"f32[1] 1"}, .status = TN_E_SHAPE},
    {"too large", "shape=(4611686018427387904,4)", .in = {"f32[1,1] 1"}, .status = TN_E_SHAPE,
     .message = "too large"},
};
static const tn_op_case broadcast_axis[] = {
    {"one", "axis=1 size=2", .in = {"f32[2,1] 1 2"}, .out = {"f32[2,2] 1 1 2 2"}, .flags = TN_CASE_GRAD2},
    {"two", "axis=(0,2) size=(2,3)", .in = {"f32[1,2,1] 1 2"}, .out = {"f32[2,2,3] 1 1 1 2 2 2 1 1 1 2 2 2"}},
    {"not size 1", "axis=0 size=2", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"unequal lists", "axis=(0,1) size=2", .in = {"f32[1,1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case broadcast_like[] = {
    {"all", "", .in = {"f64[1,3] 1 2 3", "f64[2,3] random"}, .out = {"f64[2,3] 1 2 3 1 2 3"},
     .flags = TN_CASE_GRAD2},
    {"axes", "lhs_axes=(0,) rhs_axes=(-1,)", .in = {"f32[1,3] 1 2 3", "f32[9,2] random"},
     .out = {"f32[2,3] 1 2 3 1 2 3"}},
    {"other rank", "", .in = {"f32[3] 1 2 3", "f32[2,3] random"}, .status = TN_E_SHAPE},
    {"half the axes", "lhs_axes=(0,)", .in = {"f32[1,3] 1 2 3", "f32[2,3] random"}, .status = TN_E_ATTR},
};

/* clang-format off */
TN_OP_TESTS(broadcast_add, "broadcast_add", broadcast_add)
TN_OP_TESTS(broadcast_mul, "broadcast_mul", broadcast_mul)
TN_OP_TESTS(broadcast_sub, "broadcast_minus", broadcast_sub)
TN_OP_TESTS(broadcast_div, "broadcast_div", broadcast_div)
TN_OP_TESTS(broadcast_power, "broadcast_power", broadcast_power)
TN_OP_TESTS(broadcast_mod, "broadcast_mod", broadcast_mod)
TN_OP_TESTS(broadcast_maximum, "broadcast_maximum", broadcast_maximum)
TN_OP_TESTS(broadcast_minimum, "broadcast_minimum", broadcast_maximum)
TN_OP_TESTS(broadcast_hypot, "broadcast_hypot", broadcast_hypot)
TN_OP_TESTS(broadcast_lesser, "broadcast_lesser", broadcast_lesser)
TN_OP_TESTS(broadcast_to, "broadcast_to", broadcast_to)
TN_OP_TESTS(broadcast_axis, "broadcast_axes", broadcast_axis)
TN_OP_TESTS(broadcast_like, "broadcast_like", broadcast_like)
/* clang-format on */

/* ---- every half, and many floats on their way to a half ------------------------------------------- */

/* Runs Cast from `in` to `dtype`; the result is in n->out[0]. */
static void cast_run(op_tensor *in, const char *dtype, op_node *n)
{
    const op_form form = {.threads = 1, .mode = TN_MODE_WRITE};
    const char *name = "dtype";
    tn_shape shape = {.ndim = 1, .dim = {in->shape[0]}};
    int32_t in_dtype = in->t.dtype, out_dtype;

    memset(n, 0, sizeof *n);
    assert_int_equal(tni_opset_find(op_set(), "Cast", &n->def), TN_OK);
    assert_int_equal(tni_attrs_parse(n->def, 1, &name, &dtype, &n->attrs), TN_OK);
    assert_int_equal(tni_op_args(n->def, n->attrs, -1, &n->args), TN_OK);
    assert_true(tni_dtype_parse(dtype, &out_dtype));
    assert_true(op_kernels_find(n->def, &n->args, &in_dtype, &out_dtype, &n->kernel, 1) == 1);
    assert_int_equal(op_node_run(n, &in, &shape, &out_dtype, &form, NULL), TN_OK);
}

static void test_halves(void **state)
{
    static const char *const names[] = {"float16", "bfloat16"};
    static const int32_t dtypes[] = {TN_F16, TN_BF16};
    const int64_t all = 65536, many = 400000;
    op_tensor in, singles;
    op_node n;

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        op_tensor_create(&in, dtypes[kind], 1, &all, false);
        for (int64_t i = 0; i < all; i++)
            ((uint16_t *)in.t.data)[i] = (uint16_t)i;
        cast_run(&in, "float32", &n);
        for (int64_t i = 0; i < all; i++) {
            float expected = kind ? tni_bf16_to_float((uint16_t)i) : tni_half_to_float((uint16_t)i);
            float got = ((const float *)n.out[0].t.data)[i];

            if (memcmp(&got, &expected, sizeof got) != 0 && !(isnan(got) && isnan(expected)))
                fail_msg("%s %04llx became %g, expected %g", names[kind], (unsigned long long)i, (double)got,
                         (double)expected);
        }
        op_node_free(&n);
        op_tensor_free(&in);
        op_tensor_create(&singles, TN_F32, 1, &many, false);
        for (int64_t i = 0; i < many; i++) { /* all exponents; every fourth one half way between two halves */
            uint32_t bits = (uint32_t)((uint64_t)i * 2654435761u);

            bits = i % 4 == 0 ? (bits & ~(kind ? 0xffffu : 0x1fffu)) | (kind ? 0x8000u : 0x1000u) : bits;
            memcpy((float *)singles.t.data + i, &bits, sizeof bits);
        }
        cast_run(&singles, names[kind], &n);
        for (int64_t i = 0; i < many; i++) {
            float f = ((const float *)singles.t.data)[i];
            uint16_t expected = kind ? tni_float_to_bf16(f) : tni_float_to_half(f);
            uint16_t got = ((const uint16_t *)n.out[0].t.data)[i];

            if (got != expected && !isnan(f))
                fail_msg("%.9g as %s is %04x, expected %04x", (double)f, names[kind], got, expected);
        }
        op_node_free(&n);
        op_tensor_free(&singles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(add),
        TN_OP_TEST(mul),
        TN_OP_TEST(divide),
        TN_OP_TEST(mod),
        TN_OP_TEST(power),
        TN_OP_TEST(maximum),
        TN_OP_TEST(hypot),
        TN_OP_TEST(equal),
        TN_OP_TEST(logical_xor),
        TN_OP_TEST(add_n),
        TN_OP_TEST(copy),
        TN_OP_TEST(block_grad),
        TN_OP_TEST(ones_like),
        TN_OP_TEST(cast),
        TN_OP_TEST(where),
        TN_OP_TEST(sum_like),
        TN_OP_TEST(stretch_like),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_halves),
        TN_OP_TEST(mul_scalar),
        TN_OP_TEST(mod_scalar),
        TN_OP_TEST(rmod_scalar),
        TN_OP_TEST(maximum_scalar),
        TN_OP_TEST(power_scalar),
        TN_OP_TEST(broadcast_add),
        TN_OP_TEST(broadcast_mul),
        TN_OP_TEST(broadcast_sub),
        TN_OP_TEST(broadcast_div),
        TN_OP_TEST(broadcast_power),
        TN_OP_TEST(broadcast_mod),
        TN_OP_TEST(broadcast_maximum),
        TN_OP_TEST(broadcast_minimum),
        TN_OP_TEST(broadcast_hypot),
        TN_OP_TEST(broadcast_lesser),
        TN_OP_TEST(broadcast_to),
        TN_OP_TEST(broadcast_axis),
        TN_OP_TEST(broadcast_like),
    };

    return tn_op_main(tests);
}

/* NumPy's names: the bits of what they mean, and data types as MXNet 1.9.1 gives them. */
#include <stdio.h>
#include <string.h>

#include "support/op_case.h"
#include "support/op_run.h"
#include "tenon/plugin/attr.h"

#define N TN_CASE_NO_GRAD

static const tn_op_case add[] = {
    {"one type", "", .in = {"f64[2,1] random", "f64[3] random"}, .flags = TN_CASE_GRAD2},
    {"f16 f32", "", .in = {"f16[2] 1 2", "f32[2] 1 0.1"}, .out = {"f32[2] 2 2.1"}, .flags = N},
    {"f16 bf16", "", .in = {"f16[1] 1", "bf16[1] 2"}, .out = {"f32[1] 3"}, .flags = N},
    {"f32 f64", "", .in = {"f32[2] 1 2", "f64[2,1] 0.1 0.2"}, .out = {"f64[2,2] 1.1 2.1 1.2 2.2"},
     .flags = N},
    {"i32 f32", "", .in = {"i32[2] 1 -2", "f32[] 0.5"}, .out = {"f32[2] 1.5 -1.5"},
     .flags = N | TN_CASE_NP_SHAPE},
    {"i32 f16", "", .in = {"i32[1] 3", "f16[1] 0.5"}, .out = {"f16[1] 3.5"}, .flags = N},
    {"i32 i64", "", .in = {"i32[1] -1", "i64[1] 4294967297"}, .out = {"i64[1] 4294967296"}, .flags = N},
    {"u8 i8", "", .in = {"u8[1] 255", "i8[1] -1"}, .out = {"i16[1] 254"}, .flags = N},
    {"u32 i32", "", .in = {"u32[1] 4294967295", "i32[1] -1"}, .out = {"i64[1] 4294967294"}, .flags = N},
    {"bool bool", "", .in = {"bool[3] 0 1 1", "bool[3] 0 0 1"}, .out = {"bool[3] 0 1 1"}, .flags = N},
    {"bool f32", "", .in = {"bool[2] 0 1", "f32[2] 1 2"}, .out = {"f32[2] 1 3"}, .flags = N},
    {"bool u8", "", .in = {"bool[2] 0 1", "u8[2] 1 2"}, .out = {"u8[2] 1 3"}, .flags = N},
    {"many", "", .in = {"i32[40,33] random", "f64[40,1] random"}, .flags = N},
    {"empty", "", .in = {"i32[0,2]", "f32[2] 1 2"}, .out = {"f32[0,2]"}, .flags = N},
    {"u64 i64", "", .in = {"u64[1] 1", "i64[1] 1"}, .status = TN_E_DTYPE, .message = "cast one"},
    {"shapes", "", .in = {"f32[2] 1 2", "f64[3] 1 2 3"}, .status = TN_E_SHAPE},
};
static const tn_op_case subtract[] = {
    {"one type", "", .in = {"f64[2,3] random", "f64[3] random"}, .flags = TN_CASE_GRAD2},
    {"bool f32", "", .in = {"bool[2] 0 1", "f32[2] 0 2"}, .out = {"f32[2] 0 -1"}, .flags = N},
};
static const tn_op_case multiply[] = {
    {"one type", "", .in = {"f64[2,3] random", "f64[3] random"}, .flags = TN_CASE_GRAD2},
    {"i64 f32", "", .in = {"i64[2] 3 16777217", "f32[2] 0.5 1"}, .out = {"f32[2] 1.5 16777216"}, .flags = N},
};
static const tn_op_case divide[] = {
    {"one type", "", .in = {"f64[2,3] random", "f64[3] random:0.5:2"}, .flags = TN_CASE_GRAD2},
    {"integers", "", .in = {"i32[4] 1 7 -1 1", "i32[4] 2 2 4 0"}, .out = {"f32[4] 0.5 3.5 -0.25 inf"},
     .flags = N},
    {"i64 i8", "", .in = {"i64[1] 1", "i8[1] 4"}, .out = {"f32[1] 0.25"}, .flags = N},
    {"bool", "", .in = {"bool[2] 0 1", "bool[2] 1 1"}, .out = {"f32[2] 0 1"}, .flags = N},
    {"i32 f64", "", .in = {"i32[1] 1", "f64[1] 10"}, .out = {"f64[1] 0.1"}, .flags = N},
};
static const tn_op_case power[] = {
    {"one type", "", .in = {"f64[4] random:0.5:2", "f64[4] random"}, .flags = TN_CASE_GRAD2},
    {"i32 f64", "", .in = {"i32[2] 2 9", "f64[2] -1 0.5"}, .out = {"f64[2] 0.5 3"}, .flags = N},
};
static const tn_op_case equal[] = {
    {"f32", "", .in = {"f32[3] 1 nan 0", "f32[3] 1 nan -0"}, .out = {"bool[3] 1 0 1"}, .flags = N},
    {"f64 tiny", "", .in = {"f64[2] 1e-300 0.25", "f64[2] 0 0.25"}, .out = {"bool[2] 0 1"}, .flags = N},
    {"i64", "", .in = {"i64[2] 4294967296 5", "i64[2] 0 5"}, .out = {"bool[2] 0 1"}, .flags = N},
    {"i32 f32", "", .in = {"i32[2] 1 2", "f32[2] 1.5 2"}, .out = {"bool[2] 0 1"}, .flags = N},
    {"stretched", "", .in = {"u8[2,1] 1 2", "u8[3] 1 2 3"}, .out = {"bool[2,3] 1 0 0 0 1 0"}, .flags = N},
    {"empty", "", .in = {"f32[0]", "f32[1] 1"}, .out = {"bool[0]"}, .flags = N},
};
static const tn_op_case less[] = {
    {"f16", "", .in = {"f16[3] 1 2 nan", "f16[3] 2 2 1"}, .out = {"bool[3] 1 0 0"}, .flags = N},
    {"bool", "", .in = {"bool[2] 0 1", "bool[2] 1 1"}, .out = {"bool[2] 1 0"}, .flags = N},
};
static const tn_op_case add_scalar[] = {
    {"f16", "scalar=2.5 is_int=False", .in = {"f16[2] 1 2"}, .out = {"f16[2] 3.5 4.5"}, .flags = N},
    {"i32, whole", "scalar=2", .in = {"i32[2] 1 2"}, .out = {"i32[2] 3 4"}, .flags = N},
    {"i32, a point", "scalar=2.5 is_int=False", .in = {"i32[2] 1 2"}, .out = {"f64[2] 3.5 4.5"}, .flags = N},
    {"bool, whole", "scalar=2", .in = {"bool[2] 1 0"}, .out = {"i64[2] 3 2"}, .flags = N},
    {"bool, a point", "scalar=2.5 is_int=False", .in = {"bool[2] 1 0"}, .out = {"f64[2] 3.5 2.5"},
     .flags = N},
    {"u8 wraps", "scalar=255", .in = {"u8[1] 2"}, .out = {"u8[1] 1"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case rsubtract_scalar[] = {
    {"u8", "scalar=2", .in = {"u8[2] 1 2"}, .out = {"u8[2] 1 0"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case divide_scalar[] = {
    {"f16", "scalar=2", .in = {"f16[2] 1 2"}, .out = {"f16[2] 0.5 1"}, .flags = N},
    {"u8", "scalar=2", .in = {"u8[2] 1 2"}, .out = {"f32[2] 0.5 1"}, .flags = N},
    {"bool", "scalar=2.5 is_int=False", .in = {"bool[1] 1"}, .out = {"f32[1] 0.4"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case rdivide_scalar[] = {
    {"i32", "scalar=3", .in = {"i32[2] 2 0"}, .out = {"f32[2] 1.5 inf"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[3] random:0.5:2"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case power_scalar[] = {
    {"i32", "scalar=2.5 is_int=False", .in = {"i32[2] 1 4"}, .out = {"f64[2] 1 32"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[3] random:0.5:2"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case equal_scalar[] = {
    {"whole", "scalar=2", .in = {"i32[3] 1 2 3"}, .out = {"bool[3] 0 1 0"}, .flags = N},
    {"a point", "scalar=2.5 is_int=False", .in = {"i32[3] 1 2 3"}, .out = {"bool[3] 0 0 0"}, .flags = N},
    {"f16", "scalar=2.5 is_int=False", .in = {"f16[2] 2.5 2"}, .out = {"bool[2] 1 0"}, .flags = N},
};
static const tn_op_case less_scalar[] = {
    {"a point", "scalar=2.5 is_int=False", .in = {"u8[3] 1 2 3"}, .out = {"bool[3] 1 1 0"}, .flags = N},
    {"f32", "scalar=2", .in = {"f32[3] 1 2 nan"}, .out = {"bool[3] 1 0 0"}, .flags = N},
};
static const tn_op_case logical_not[] = {
    {"f32", "", .in = {"f32[4] 0 -0 0.5 nan"}, .out = {"bool[4] 1 1 0 0"}, .flags = N},
    {"f64", "", .in = {"f64[2] 1e-300 0"}, .out = {"bool[2] 0 1"}, .flags = N},
    {"bool", "", .in = {"bool[2] 0 1"}, .out = {"bool[2] 1 0"}, .flags = N},
};
static const tn_op_case exponential[] = {
    {"gradient", "", .in = {"f64[2,3] random"}, .flags = TN_CASE_GRAD2},
    {"f16", "", .in = {"f16[2] 0 1"}, .out = {"f16[2] 1 2.71875"}, .flags = N},
    {"integers are cut toward zero", "", .in = {"i32[4] -1 0 1 3"}, .out = {"i32[4] 0 1 2 20"}, .flags = N},
    {"bool", "", .in = {"bool[1] 1"}, .status = TN_E_DTYPE, .message = "cast it first"},
};
static const tn_op_case is_nan[] = {
    {"f32", "", .in = {"f32[5] 1 nan inf -inf 0"}, .out = {"bool[5] 0 1 0 0 0"}, .flags = N},
    {"f16", "", .in = {"f16[2] nan inf"}, .out = {"bool[2] 1 0"}, .flags = N},
    {"i32", "", .in = {"i32[2] 0 -2147483648"}, .out = {"bool[2] 0 0"}, .flags = N},
};
static const tn_op_case is_finite[] = {
    {"f64", "", .in = {"f64[5] 1e300 nan inf -inf 0"}, .out = {"bool[5] 1 0 0 0 1"}, .flags = N},
    {"bool", "", .in = {"bool[2] 0 1"}, .out = {"bool[2] 1 1"}, .flags = N},
};
static const tn_op_case is_inf[] = {
    {"f32", "", .in = {"f32[5] 3e38 nan inf -inf 0"}, .out = {"bool[5] 0 0 1 1 0"}, .flags = N},
};
static const tn_op_case is_posinf[] = {
    {"f32", "", .in = {"f32[5] 3e38 nan inf -inf 0"}, .out = {"bool[5] 0 0 1 0 0"}, .flags = N},
};
static const tn_op_case is_neginf[] = {
    {"f64", "", .in = {"f64[5] -1e308 nan inf -inf 0"}, .out = {"bool[5] 0 0 0 1 0"}, .flags = N},
    {"i8", "", .in = {"i8[1] -128"}, .out = {"bool[1] 0"}, .flags = N},
};
static const tn_op_case arctan2_cases[] = {
    {"quarters", "", .in = {"f64[4] 1 1 -1 -1", "f64[4] 1 -1 -1 1"},
     .out = {"f64[4] 0.7853981633974483 2.356194490192345 -2.356194490192345 -0.7853981633974483"},
     .flags = TN_CASE_GRAD2},
    {"stretched", "", .in = {"f64[2,1] random:0.5:2", "f64[3] random:0.5:2"}, .flags = TN_CASE_GRAD2},
    {"signed zeros", "", .in = {"f32[2] 0 -0", "f32[2] -1 -1"}, .out = {"f32[2] 3.1415927 -3.1415927"},
     .flags = N},
    {"integers", "", .in = {"i32[1] 1", "i32[1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case copysign_cases[] = {
    {"gradient", "", .in = {"f64[4] 1 -2 3 -4", "f64[4] 1 -1 -1 1"}, .out = {"f64[4] 1 -2 -3 4"}},
    {"stretched", "", .in = {"f64[2,1] 1 -2", "f64[3] 1 -1 2"}, .out = {"f64[2,3] 1 -1 1 2 -2 2"}},
    {"zeros", "", .in = {"f32[2] 0 1", "f32[2] -1 -0"}, .out = {"f32[2] -0 -1"}, .flags = N},
    {"i32", "", .in = {"i32[3] 1 -2 -2147483648", "i32[3] -1 0 1"}, .out = {"i32[3] -1 2 -2147483648"},
     .flags = N},
    {"bool", "", .in = {"bool[1] 1", "bool[1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case ldexp_cases[] = {
    {"f32", "", .in = {"f32[3] 1 -0.5 3", "f32[3] 3 -1 0.5"}, .out = {"f32[3] 8 -0.25 4.2426405"},
     .flags = N},
    {"gradient", "", .in = {"f64[2,1] random", "f64[3] random"}, .flags = TN_CASE_GRAD2},
    {"i32", "", .in = {"i32[3] 1 2 -3", "i32[3] 1 2 40"}, .out = {"i32[3] 2 8 -2147483648"}, .flags = N},
};
static const tn_op_case lcm_cases[] = {
    {"i32", "", .in = {"i32[5] 4 -4 0 7 1", "i32[5] 6 6 5 7 -1"}, .out = {"i32[5] 12 12 0 7 1"}, .flags = N},
    {"i64", "", .in = {"i64[1] 4294967296", "i64[1] 6"}, .out = {"i64[1] 12884901888"}, .flags = N},
    {"least", "", .in = {"i64[1] -9223372036854775808", "i64[1] -1"}, .out = {"i64[1] -9223372036854775808"},
     .flags = N},
    {"bool", "", .in = {"bool[3] 0 1 1", "bool[3] 1 1 0"}, .out = {"bool[3] 0 1 0"}, .flags = N},
    {"f32", "", .in = {"f32[1] 1", "f32[1] 1"}, .status = TN_E_DTYPE, .message = "integer"},
};
static const tn_op_case bits_and[] = {
    {"i32", "", .in = {"i32[2] 12 -1", "i32[2] 10 7"}, .out = {"i32[2] 8 7"}, .flags = N},
    {"u8", "", .in = {"u8[2,1] 255 1", "u8[2] 129 2"}, .out = {"u8[2,2] 129 2 1 0"}, .flags = N},
    {"bool", "", .in = {"bool[2] 1 1", "bool[2] 0 1"}, .out = {"bool[2] 0 1"}, .flags = N},
    {"f32", "", .in = {"f32[1] 1", "f32[1] 1"}, .status = TN_E_DTYPE, .message = "integer"},
};
static const tn_op_case bits_xor[] = {
    {"i64", "", .in = {"i64[2] 12 -1", "i64[2] 10 0"}, .out = {"i64[2] 6 -1"}, .flags = N},
};
static const tn_op_case bits_or[] = {
    {"i16", "", .in = {"i16[2] 12 -32768", "i16[2] 3 1"}, .out = {"i16[2] 15 -32767"}, .flags = N},
};
static const tn_op_case bits_not[] = {
    {"i32", "", .in = {"i32[2] 1 -1"}, .out = {"i32[2] -2 0"}, .flags = N},
    {"u8", "", .in = {"u8[2] 1 255"}, .out = {"u8[2] 254 0"}, .flags = TN_CASE_NO_GRAD | TN_CASE_ONE_FORM},
    {"bool", "", .in = {"bool[2] 0 1"}, .out = {"bool[2] 1 0"}, .flags = N},
};
static const tn_op_case arctan2_scalar[] = {
    {"f16", "scalar=2", .in = {"f16[2] 1 2"}, .out = {"f16[2] 0.4636 0.785"}, .flags = N},
    {"i32, a point", "scalar=2.5 is_int=False", .in = {"i32[2] 1 2"},
     .out = {"f64[2] 0.3805063771123649 0.6747409422235527"}, .flags = N},
    {"i32, whole", "scalar=1", .in = {"i32[2] 9 -9"}, .out = {"i32[2] 1 -1"}, .flags = N},
    {"gradient", "scalar=1.5 is_int=False", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case rarctan2_scalar[] = {
    {"gradient", "scalar=-1.5 is_int=False", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case copysign_scalar[] = {
    {"gradient", "scalar=-2", .in = {"f64[2] 1 -2"}, .out = {"f64[2] -1 -2"}},
};
static const tn_op_case rcopysign_scalar[] = {
    {"f32", "scalar=-2", .in = {"f32[3] 1 -2 -0"}, .out = {"f32[3] 2 -2 -2"}, .flags = N},
};
static const tn_op_case ldexp_scalar[] = {
    {"bool", "scalar=2", .in = {"bool[2] 1 0"}, .out = {"i64[2] 4 0"}, .flags = N},
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case rldexp_scalar[] = {
    {"gradient", "scalar=2.5 is_int=False", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case lcm_scalar[] = {
    {"u8", "scalar=6", .in = {"u8[2] 4 0"}, .out = {"u8[2] 12 0"}, .flags = N}};
static const tn_op_case and_scalar[] = {
    {"i32", "scalar=6", .in = {"i32[2] 12 -1"}, .out = {"i32[2] 4 6"}, .flags = N}};
static const tn_op_case or_scalar[] = {
    {"bool", "scalar=2", .in = {"bool[2] 1 0"}, .out = {"bool[2] 1 1"}, .flags = N | TN_CASE_ONE_FORM}};
static const tn_op_case xor_scalar[] = {
    {"i64", "scalar=6", .in = {"i64[2] 12 -1"}, .out = {"i64[2] 10 -7"}, .flags = N}};
static const tn_op_case concatenate[] = {
    {"axis 0 if none is said", "num_args=2", .in = {"f64[1,2] 1 2", "f64[2,2] 3 4 5 6"},
     .out = {"f64[3,2] 1 2 3 4 5 6"}, .flags = TN_CASE_GRAD2},
    {"the last axis", "num_args=2 axis=-1", .in = {"f64[2,1] 1 2", "f64[2,2] 3 4 5 6"},
     .out = {"f64[2,3] 1 3 4 2 5 6"}, .flags = TN_CASE_GRAD2},
    {"an axis too many", "num_args=2 axis=2", .in = {"f64[1,2] 1 2", "f64[1,2] 3 4"}, .status = TN_E_SHAPE},
    {"Concat's word for the axis", "num_args=2 dim=0", .in = {"f64[1] 1", "f64[1] 2"}, .status = TN_E_ATTR},
};
static const tn_op_case stack_cases[] = {
    {"two", "num_args=2 axis=1", .in = {"f64[2] 1 2", "f64[2] 3 4"}, .out = {"f64[2,2] 1 3 2 4"},
     .flags = TN_CASE_GRAD2},
    {"counted wrongly", "num_args=3", .in = {"f64[2] 1 2", "f64[2] 3 4"}, .status = TN_E_ARG},
};
static const tn_op_case flip_cases[] = {
    {"one axis", "axis=(1,)", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[2,2] 2 1 4 3"},
     .flags = TN_CASE_GRAD2},
};
static const tn_op_case transpose_cases[] = {
    {"reversed", "", .in = {"f64[2,3] 1 2 3 4 5 6"}, .out = {"f64[3,2] 1 4 2 5 3 6"}, .flags = TN_CASE_GRAD2},
    {"None", "axes=None", .in = {"i32[2,1,2] 1 2 3 4"}, .out = {"i32[2,1,2] 1 3 2 4"}, .flags = N},
    {"an order", "axes=(1,0,2)", .in = {"f64[2,1,2] 1 2 3 4"}, .out = {"f64[1,2,2] 1 2 3 4"},
     .flags = TN_CASE_GRAD2},
    {"too many", "axes=(1,0,2)", .in = {"f64[2,1] 1 2"}, .status = TN_E_SHAPE},
};
static const tn_op_case zeros_cases[] = {
    {"bool", "shape=(2,) dtype=bool", .out = {"bool[2] 0 0"}, .flags = N},
    {"a number", "shape=()", .out = {"f32[] 0"}, .flags = N | TN_CASE_NP_SHAPE},
};
static const tn_op_case ones_cases[] = {
    {"f16", "shape=(1,2) dtype=float16", .out = {"f16[1,2] 1 1"}, .flags = N}};
TN_OP_TESTS(arctan2_scalar, "_npi_arctan2_scalar", arctan2_scalar)
TN_OP_TESTS(rarctan2_scalar, "_npi_rarctan2_scalar", rarctan2_scalar)
TN_OP_TESTS(copysign_scalar, "_npi_copysign_scalar", copysign_scalar)
TN_OP_TESTS(rcopysign_scalar, "_npi_rcopysign_scalar", rcopysign_scalar)
TN_OP_TESTS(ldexp_scalar, "_npi_ldexp_scalar", ldexp_scalar)
TN_OP_TESTS(rldexp_scalar, "_npi_rldexp_scalar", rldexp_scalar)
TN_OP_TESTS(lcm_scalar, "_npi_lcm_scalar", lcm_scalar)
TN_OP_TESTS(and_scalar, "_npi_bitwise_and_scalar", and_scalar)
TN_OP_TESTS(or_scalar, "_npi_bitwise_or_scalar", or_scalar)
TN_OP_TESTS(xor_scalar, "_npi_bitwise_xor_scalar", xor_scalar)
TN_OP_TESTS(concatenate, "_npi_concatenate", concatenate)
TN_OP_TESTS(stack, "_npi_stack", stack_cases)
TN_OP_TESTS(flip, "_npi_flip", flip_cases)
TN_OP_TESTS(transpose, "_np_transpose", transpose_cases)
TN_OP_TESTS(zeros, "_npi_zeros", zeros_cases)
TN_OP_TESTS(ones, "_npi_ones", ones_cases)
TN_OP_TESTS(is_nan, "_npi_isnan", is_nan)
TN_OP_TESTS(is_finite, "_npi_isfinite", is_finite)
TN_OP_TESTS(is_inf, "_npi_isinf", is_inf)
TN_OP_TESTS(is_posinf, "_npi_isposinf", is_posinf)
TN_OP_TESTS(is_neginf, "_npi_isneginf", is_neginf)
TN_OP_TESTS(arctan2, "_npi_arctan2", arctan2_cases)
TN_OP_TESTS(copysign, "_npi_copysign", copysign_cases)
TN_OP_TESTS(ldexp, "_npi_ldexp", ldexp_cases)
TN_OP_TESTS(lcm, "_npi_lcm", lcm_cases)
TN_OP_TESTS(bits_and, "_npi_bitwise_and", bits_and)
TN_OP_TESTS(bits_or, "_npi_bitwise_or", bits_or)
TN_OP_TESTS(bits_xor, "_npi_bitwise_xor", bits_xor)
TN_OP_TESTS(bits_not, "_npi_bitwise_not", bits_not)
TN_OP_TESTS(add, "_npi_add", add)
TN_OP_TESTS(subtract, "_npi_subtract", subtract)
TN_OP_TESTS(multiply, "_npi_multiply", multiply)
TN_OP_TESTS(divide, "_npi_true_divide", divide)
TN_OP_TESTS(power, "_npi_power", power)
TN_OP_TESTS(equal, "_npi_equal", equal)
TN_OP_TESTS(less, "_npi_less", less)
TN_OP_TESTS(add_scalar, "_npi_add_scalar", add_scalar)
TN_OP_TESTS(rsubtract_scalar, "_npi_rsubtract_scalar", rsubtract_scalar)
TN_OP_TESTS(divide_scalar, "_npi_true_divide_scalar", divide_scalar)
TN_OP_TESTS(rdivide_scalar, "_npi_rtrue_divide_scalar", rdivide_scalar)
TN_OP_TESTS(power_scalar, "_npi_power_scalar", power_scalar)
TN_OP_TESTS(equal_scalar, "_npi_equal_scalar", equal_scalar)
TN_OP_TESTS(less_scalar, "_npi_less_scalar", less_scalar)
TN_OP_TESTS(logical_not, "_npi_logical_not", logical_not)
TN_OP_TESTS(exponential, "_npi_exp", exponential)

static const tn_op_case embedding_cases[] = {
    {"rows", "input_dim=3 output_dim=2", .in = {"i32[3] 2 0 7", "f32[3,2] 1 2 3 4 5 6"},
     .out = {"f32[3,2] 5 6 1 2 5 6"}, .flags = N},
    {"no size", "output_dim=2", .in = {"i32[1] 2", "f32[3,2] 1 2 3 4 5 6"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(sparse_embedding, "_contrib_SparseEmbedding", embedding_cases)

static const tn_op_case pair_case[] = {
    {"one type", "", .in = {"f32[2,3] random:0.5:0.9", "f32[3] random:0.5:0.9"}, .flags = N}};
static const tn_op_case single_case[] = {{"one", "", .in = {"f32[2,3] random:0.5:0.9"}, .flags = N}};

/* Every operator with a meaning: its arguments fit those of the kernels, in all forms. */
static void all(void **state)
{
    tni_opset *set = op_set();
    uint32_t run = 0;

    (void)state;
    for (size_t i = 0; i < tni_opset_count(set); i++) {
        const tni_opdef *def = tni_opset_at(set, i);

        if (!def->meaning)
            continue;
        assert_ptr_not_equal(def->op, def->meaning->op);
        assert_null(def->meaning->meaning);
        assert_int_equal(def->attr_count, def->meaning->attr_count);
        run++;
        if (def->variadic || !def->input_count || (def->op->flags & TN_OP_VIEW) ||
            !strcmp(def->op->name, "_npi_flip") || !strcmp(def->op->name, "_npi_broadcast_to") ||
            !strcmp(def->op->name, "_npi_cholesky") ||
            !strcmp(def->op->name, "_contrib_SparseEmbedding"))
            continue; /* they have cases of their own */
        tn_op_cases_run(def->op->name, def->input_count == 2 ? pair_case : single_case, 1);
    }
    assert_true(run >= 60);
}

/* ---- hostile definitions ---------------------------------------------------------------------- */

static const tn_attr_def other_attrs[] = {TN_ATTR_FLOAT_RUN("factor", "1", ""),
                                          TN_ATTR_BOOL("is_int", "True", ""), TN_ATTR_END};
static const tn_attr_def fewer_attrs[] = {TN_ATTR_FLOAT_RUN("scalar", "1", ""), TN_ATTR_END};
static const tn_attr_def fixed_attrs[] = {TN_ATTR_FLOAT("scalar", "1", ""),
                                          TN_ATTR_BOOL("is_int", "True", ""), TN_ATTR_END};
static const tn_attr_def same_attrs[] = {TN_ATTR_FLOAT_RUN("scalar", "3", ""),
                                         TN_ATTR_BOOL("is_int", "False", ""), TN_ATTR_END};
static const char *const three[] = {"a", "b", "c", NULL};

#define ROW(name_, computes_, ...)                                                                           \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, computes), .name = name_, .computes = computes_, __VA_ARGS__            \
    }

static void hostile(void **state)
{
    static const tn_op bad[] = {
        ROW("acme_a", "acme_unknown", .doc = NULL),
        ROW("acme_a", "", .doc = NULL),
        ROW("acme_a", "acme_a", .doc = NULL),
        ROW("", "exp", .doc = NULL),
        ROW(NULL, "exp", .doc = NULL),
        ROW("exp", "log", .doc = NULL),
        ROW("acme_a", "_plus_scalar", .attrs = other_attrs),
        ROW("acme_a", "_plus_scalar", .attrs = fewer_attrs),
        ROW("acme_a", "_plus_scalar", .attrs = fixed_attrs),
        ROW("acme_a", "exp", .attrs = same_attrs),
        ROW("acme_a", "broadcast_add", .inputs = three),
        ROW("acme_a", "exp", .outputs = three),
        ROW("acme_a", "exp", .exec = TN_EXEC_HOST),
        ROW("acme_a", "exp", .mutates = 1),
        ROW("acme_a", "exp", .effects = TN_EFFECT_RANDOM),
    };
    static const tn_op good = ROW("acme_a", "_npi_add_scalar", .attrs = same_attrs);
    const tni_opdef *def, *plus;
    tni_opset *set = NULL;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &set), TN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t before = tni_opset_count(set);

        if (tni_opset_add(set, &bad[i], NULL) == TN_OK)
            fail_msg("row %zu is taken", i);
        assert_string_not_equal(tni_error_message(), "");
        assert_int_equal(tni_opset_count(set), before);
    }
    assert_int_equal(tni_opset_add(set, &good, NULL), TN_OK);
    assert_int_equal(tni_opset_find(set, "acme_a", &def) | tni_opset_find(set, "_plus_scalar", &plus), TN_OK);
    assert_ptr_equal(def->meaning, plus); /* of the meaning's meaning */
    assert_true(tn_value_float(def->defaults[0]) == 3.0 && !tn_value_int(def->defaults[1]));
    assert_true(tn_value_float(plus->defaults[0]) == 1.0);
    tni_opset_destroy(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(add),
                                       TN_OP_TEST(subtract),
                                       TN_OP_TEST(multiply),
                                       TN_OP_TEST(divide),
                                       TN_OP_TEST(power),
                                       TN_OP_TEST(equal),
                                       TN_OP_TEST(less),
                                       TN_OP_TEST(add_scalar),
                                       TN_OP_TEST(rsubtract_scalar),
                                       TN_OP_TEST(divide_scalar),
                                       TN_OP_TEST(rdivide_scalar),
                                       TN_OP_TEST(power_scalar),
                                       TN_OP_TEST(equal_scalar),
                                       TN_OP_TEST(less_scalar),
                                       TN_OP_TEST(logical_not),
                                       TN_OP_TEST(exponential),
                                       TN_OP_TEST(sparse_embedding),
                                       TN_OP_TEST(arctan2_scalar),
                                       TN_OP_TEST(rarctan2_scalar),
                                       TN_OP_TEST(copysign_scalar),
                                       TN_OP_TEST(rcopysign_scalar),
                                       TN_OP_TEST(ldexp_scalar),
                                       TN_OP_TEST(rldexp_scalar),
                                       TN_OP_TEST(lcm_scalar),
                                       TN_OP_TEST(and_scalar),
                                       TN_OP_TEST(or_scalar),
                                       TN_OP_TEST(xor_scalar),
                                       TN_OP_TEST(concatenate),
                                       TN_OP_TEST(stack),
                                       TN_OP_TEST(flip),
                                       TN_OP_TEST(transpose),
                                       TN_OP_TEST(zeros),
                                       TN_OP_TEST(ones),
                                       TN_OP_TEST(is_nan),
                                       TN_OP_TEST(is_finite),
                                       TN_OP_TEST(is_inf),
                                       TN_OP_TEST(is_posinf),
                                       TN_OP_TEST(is_neginf),
                                       TN_OP_TEST(arctan2),
                                       TN_OP_TEST(copysign),
                                       TN_OP_TEST(ldexp),
                                       TN_OP_TEST(lcm),
                                       TN_OP_TEST(bits_and),
                                       TN_OP_TEST(bits_or),
                                       TN_OP_TEST(bits_xor),
                                       TN_OP_TEST(bits_not),
                                       cmocka_unit_test(all),
                                       cmocka_unit_test(hostile)};

    return tn_op_main(tests);
}

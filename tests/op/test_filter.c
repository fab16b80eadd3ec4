/* Family filter: elements chosen by value, and arrays written where a mask says so. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define ONE TN_CASE_ONE_FORM /* outputs without a shape have one form */

static const tn_op_case boolean_mask[] = {
    {"rows", "", .in = {"f32[3,2] 1 2 3 4 5 6", "f32[3] 1 0 nan"}, .out = {"f32[2,2] 1 2 5 6"},
     .flags = N | ONE},
    {"columns", "axis=-1", .in = {"u8[2,3] 1 2 3 4 5 6", "bool[3] 0 1 1"}, .out = {"u8[2,2] 2 3 5 6"},
     .flags = N | ONE},
    {"none", "", .in = {"f16[2] 1 2", "i64[2] 0 0"}, .out = {"f16[0]"}, .flags = N | ONE},
    {"empty", "", .in = {"f32[0,2]", "f32[0]"}, .out = {"f32[0,2]"}, .flags = N | ONE},
    {"lengths", "", .in = {"f32[2] 1 2", "f32[3] 1 1 1"}, .status = TN_E_SHAPE},
    {"beyond", "axis=1", .in = {"f32[2] 1 2", "f32[2] 1 1"}, .status = TN_E_SHAPE},
};
static const tn_op_case nonzero[] = {
    {"matrix", "", .in = {"f64[2,3] 0 1 0 1e-300 0 nan"}, .out = {"i64[3,2] 0 1 1 0 1 2"}, .flags = N | ONE},
    {"bool", "", .in = {"bool[3] 1 0 1"}, .out = {"i64[2,1] 0 2"}, .flags = N | ONE},
    {"scalar", "", .in = {"f32[] 3"}, .out = {"i64[1,0]"}, .flags = N | ONE | NP},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"i64[0,2]"}, .flags = N | ONE},
};
static const tn_op_case unique[] = {
    {"flat", "", .in = {"f32[2,3] 3 -0 1 3 0 nan"}, .out = {"f32[4] -0 1 3 nan"}, .flags = N | ONE},
    {"everything", "return_index=1 return_inverse=1 return_counts=1", .in = {"i8[4] 7 -1 7 2"},
     .out = {"i8[3] -1 2 7", "i64[3] 1 3 0", "i64[4] 2 0 2 1", "i64[3] 1 1 2"}, .flags = N | ONE},
    {"counts alone", "return_counts=1", .in = {"bool[3] 1 0 1"}, .out = {"bool[2] 0 1", "i64[2] 1 2"},
     .flags = N | ONE},
    {"rows", "axis=0 return_inverse=1", .in = {"f64[3,2] 2 1 1 9 2 1"},
     .out = {"f64[2,2] 1 9 2 1", "i64[3] 1 0 1"}, .flags = N | ONE},
    {"columns", "axis=1 return_index=1", .in = {"u8[2,3] 2 1 2 0 5 0"},
     .out = {"u8[2,2] 1 2 5 0", "i64[2] 1 0"}, .flags = N | ONE},
    {"u64", "", .in = {"u64[3] 18446744073709551615 1 18446744073709551615"},
     .out = {"u64[2] 1 18446744073709551615"}, .flags = N | ONE},
    {"empty", "", .in = {"f32[0]"}, .out = {"f32[0]"}, .flags = N | ONE},
    {"scalar", "return_index=1 return_inverse=1 return_counts=1", .in = {"f32[] 4"},
     .out = {"f32[1] 4", "i64[1] 0", "i64[1] 0", "i64[1] 1"}, .flags = N | ONE},
    {"no rows", "axis=0", .in = {"f32[0,2]"}, .out = {"f32[0,2]"}, .flags = N | ONE},
    {"rows of nothing", "axis=0", .in = {"f32[2,0]"}, .out = {"f32[1,0]"}, .flags = N | ONE},
    {"beyond", "axis=1", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};
static const tn_op_case assign_scalar[] = {
    {"elements", "value=9 start_axis=0", .in = {"f32[2,2] 1 2 3 4", "bool[2,2] 1 0 0 1"},
     .out = {"f32[2,2] 9 2 3 9"}, .flags = N},
    {"rows", "value=9 start_axis=0", .in = {"i32[2,2] 1 2 3 4", "bool[2] 0 1"}, .out = {"i32[2,2] 1 2 9 9"},
     .flags = N},
    {"columns", "value=1.5 start_axis=1", .in = {"f16[2,2] 1 2 3 4", "bool[2] 0 1"},
     .out = {"f16[2,2] 1 1.5 3 1.5"}, .flags = N},
    {"empty", "value=1 start_axis=0", .in = {"f32[0]", "bool[0]"}, .out = {"f32[0]"}, .flags = N},
    {"axis", "value=1 start_axis=2", .in = {"f32[2,2] random", "bool[2] 0 1"}, .status = TN_E_SHAPE,
     .message = "start_axis 2"},
    {"shape", "value=1 start_axis=0", .in = {"f32[2,2] random", "bool[3] 0 1 1"}, .status = TN_E_SHAPE},
    {"no value", "start_axis=0", .in = {"f32[1] 1", "bool[1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case assign_tensor[] = {
    {"elements", "start_axis=0", .in = {"f32[2,2] 1 2 3 4", "bool[2,2] 1 0 0 1", "f32[2] 8 9"},
     .out = {"f32[2,2] 8 2 3 9"}, .flags = N},
    {"rows", "start_axis=0", .in = {"i8[3,2] 1 2 3 4 5 6", "bool[3] 1 0 1", "i8[2,2] 7 8 9 10"},
     .out = {"i8[3,2] 7 8 3 4 9 10"}, .flags = N},
    {"one row", "start_axis=0", .in = {"f32[3,2] 1 2 3 4 5 6", "bool[3] 1 0 1", "f32[2] 7 8"},
     .out = {"f32[3,2] 7 8 3 4 7 8"}, .flags = N},
    {"columns", "start_axis=1", .in = {"f32[2,2] 1 2 3 4", "bool[2] 0 1", "f32[2,1] 8 9"},
     .out = {"f32[2,2] 1 8 3 9"}, .flags = N},
    {"matrices", "start_axis=0", .in = {"f32[2,3,2] range", "bool[2] 0 1", "f32[3,2] 9 8 7 6 5 4"},
     .out = {"f32[2,3,2] 0 1 2 3 4 5 9 8 7 6 5 4"}, .flags = N},
    {"stretched across", "start_axis=0", .in = {"i16[2,3,2] range", "bool[2] 0 1", "i16[1,3,1] 9 8 7"},
     .out = {"i16[2,3,2] 0 1 2 3 4 5 9 9 8 8 7 7"}, .flags = N},
    {"stretched down", "start_axis=0", .in = {"f64[2,3,2] range", "bool[2] 1 0", "f64[1,1,2] 9 8"},
     .out = {"f64[2,3,2] 9 8 9 8 9 8 6 7 8 9 10 11"}, .flags = N},
    {"one for all", "start_axis=0", .in = {"u8[2,1,5] range", "bool[2] 0 1", "u8[1] 7"},
     .out = {"u8[2,1,5] 0 1 2 3 4 7 7 7 7 7"}, .flags = N},
    {"scalar", "start_axis=0", .in = {"f32[2] 1 2", "bool[2] 0 1", "f32[] 9"}, .out = {"f32[2] 1 9"},
     .flags = N | NP},
    {"too long", "start_axis=0", .in = {"f32[1,2] 1 2", "bool[1] 1", "f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"too many axes", "start_axis=0", .in = {"f32[2,2] random", "bool[2,2] random", "f32[1,2] 1 2"},
     .status = TN_E_SHAPE, .message = "at most 1"},
};

/* clang-format off */
TN_OP_TESTS(boolean_mask, "_contrib_boolean_mask", boolean_mask)
TN_OP_TESTS(nonzero, "_npx_nonzero", nonzero)
TN_OP_TESTS(unique, "_npi_unique", unique)
TN_OP_TESTS(assign_scalar, "_npi_boolean_mask_assign_scalar", assign_scalar)
TN_OP_TESTS(assign_tensor, "_npi_boolean_mask_assign_tensor", assign_tensor)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(boolean_mask),  TN_OP_TEST(nonzero),       TN_OP_TEST(unique),
        TN_OP_TEST(assign_scalar), TN_OP_TEST(assign_tensor),
    };

    return tn_op_main(tests);
}

/* Family shape: the codes of Reshape as MXNet documents them, views and transposes, gradients by differences.
 */
#include "support/op_case.h"

#define X "f32[2,3,4] range"

static const tn_op_case reshape_cases[] = {
    {"sizes", "shape=(4,6)", .in = {X}, .out = {"f32[4,6] range"}},
    {"keep", "shape=(0,12)", .in = {X}, .out = {"f32[2,12] range"}},
    {"keep later", "shape=(4,0,2)", .in = {X}, .out = {"f32[4,3,2] range"}},
    {"rest", "shape=(6,-1)", .in = {X}, .out = {"f32[6,4] range"}},
    {"rest of none", "shape=(2,3,4,-1)", .in = {X}, .out = {"f32[2,3,4,1] range"}},
    {"all that follow", "shape=(-2,1,1)", .in = {X}, .out = {"f32[2,3,4,1,1] range"}},
    {"merge", "shape=(-3,4)", .in = {X}, .out = {"f32[6,4] range"}},
    {"merge twice", "shape=(-3,-3)", .in = {"f32[2,3,4,5] range"}, .out = {"f32[6,20] range"}},
    {"split", "shape=(-4,1,2,-2)", .in = {X}, .out = {"f32[1,2,3,4] range"}},
    {"split open", "shape=(2,-4,-1,3,-2)", .in = {X}, .out = {"f32[2,1,3,4] range"}},
    {"from the right", "shape=(-1,0) reverse=True", .in = {"f32[10,5,4] range"}, .out = {"f32[50,4] range"}},
    {"from the left", "shape=(-1,0)", .in = {"f32[10,5,4] range"}, .out = {"f32[40,5] range"}},
    {"target", "target_shape=(2,0)", .in = {X}, .out = {"f32[2,12] range"}},
    {"target keeps", "target_shape=(9,0) keep_highest=1", .in = {X}, .out = {"f32[2,12] range"}},
    {"scalar", "shape=()", .in = {"f64[1] 3"}, .out = {"f64[] 3"},
     .flags = TN_CASE_NP_SHAPE | TN_CASE_NO_GRAD},
    {"bytes", "shape=(3,2)", .in = {"u8[6] 1 2 3 4 5 6"}, .out = {"u8[3,2] 1 2 3 4 5 6"}},
    {"empty", "shape=(-1,3)", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"gradient", "shape=(-3,0)", .in = {"f64[2,3,4] random"}},
    {"count", "shape=(5,5)", .in = {X}, .status = TN_E_SHAPE, .message = "24 elements"},
    {"no rest", "shape=(5,-1)", .in = {X}, .status = TN_E_SHAPE},
    {"two rests", "shape=(-1,-1)", .in = {X}, .status = TN_E_ATTR},
    {"nothing to keep", "shape=(2,3,4,0)", .in = {X}, .status = TN_E_SHAPE},
    {"nothing to merge", "shape=(2,3,-3)", .in = {X}, .status = TN_E_SHAPE},
    {"split short", "shape=(-4,1)", .in = {X}, .status = TN_E_ATTR},
    {"split wrong", "shape=(-4,2,2,-2)", .in = {X}, .status = TN_E_SHAPE},
    {"code", "shape=(-5,1)", .in = {X}, .status = TN_E_ATTR},
    {"none", "", .in = {X}, .status = TN_E_ATTR},
    {"overflow", "shape=(3000000000,3000000000,3000000000)", .in = {X}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(reshape, "Reshape", reshape_cases)

static const tn_op_case flatten_cases[] = {
    {"three", "", .in = {X}, .out = {"f32[2,12] range"}},
    {"one", "", .in = {"f32[3] range"}, .out = {"f32[3,1] range"}},
    {"gradient", "", .in = {"f64[2,3,2] random"}},
    {"scalar", "", .in = {"f32[] 1"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(flatten, "Flatten", flatten_cases)

static const tn_op_case expand_cases[] = {
    {"first", "axis=0", .in = {"f32[2,3] range"}, .out = {"f32[1,2,3] range"}},
    {"last", "axis=-1", .in = {"f64[2,3] range"}, .out = {"f64[2,3,1] range"}},
    {"far", "axis=3", .in = {"f32[2,3] range"}, .status = TN_E_SHAPE},
    {"missing", "", .in = {"f32[2,3] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(expand_dims, "expand_dims", expand_cases)

static const tn_op_case squeeze_cases[] = {
    {"all", "", .in = {"f32[1,2,1,3] range"}, .out = {"f32[2,3] range"}},
    {"one", "axis=2", .in = {"f64[1,2,1,3] range"}, .out = {"f64[1,2,3] range"}},
    {"two", "axis=(0,-2)", .in = {"f64[1,2,1,3] range"}, .out = {"f64[2,3] range"}},
    {"only ones", "", .in = {"f32[1,1] 7"}, .out = {"f32[1] 7"}},
    {"only ones, np", "", .in = {"f32[1,1] 7"}, .out = {"f32[] 7"}, .flags = TN_CASE_NP_SHAPE},
    {"large", "axis=1", .in = {"f32[1,2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(squeeze, "squeeze", squeeze_cases)

static const tn_op_case transpose_cases[] = {
    {"matrix", "", .in = {"f32[2,3] range"}, .out = {"f32[3,2] 0 3 1 4 2 5"}},
    {"axes", "axes=(1,0,2)", .in = {"i64[2,3,2] range"}, .out = {"i64[3,2,2] 0 1 6 7 2 3 8 9 4 5 10 11"},
     .flags = TN_CASE_NO_GRAD},
    {"three", "axes=(2,0,1)", .in = {"f64[2,3,4] random"}},
    {"four", "axes=(3,1,0,2)", .in = {"f64[5,6,7,8] random"}, .flags = TN_CASE_NO_GRAD},
    {"negative", "axes=(-1,0,1)", .in = {"f64[2,3,4] random"}},
    {"reversed", "", .in = {"f64[2,3,4] random"}},
    {"large", "", .in = {"f32[150,170] random"}, .flags = TN_CASE_NO_GRAD},
    {"bytes", "axes=(0,2,1)", .in = {"u8[2,2,3] 0 1 2 3 4 5 6 7 8 9 10 11"},
     .out = {"u8[2,3,2] 0 3 1 4 2 5 6 9 7 10 8 11"}, .flags = TN_CASE_NO_GRAD},
    {"halves", "", .in = {"f16[2,2] 1 2 3 4"}, .out = {"f16[2,2] 1 3 2 4"}, .flags = TN_CASE_NO_GRAD},
    {"scalar", "", .in = {"f32[] 1"}, .out = {"f32[] 1"}},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"f32[3,0]"}, .flags = TN_CASE_NO_GRAD},
    {"twice", "axes=(0,0)", .in = {"f32[2,3] range"}, .status = TN_E_SHAPE},
    {"few", "axes=(0,1)", .in = {"f32[2,3,4] range"}, .status = TN_E_SHAPE},
    {"far", "axes=(0,2)", .in = {"f32[2,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(transpose, "transpose", transpose_cases)

static const tn_op_case swap_cases[] = {
    {"two", "dim1=0 dim2=1", .in = {"f32[2,3] range"}, .out = {"f32[3,2] 0 3 1 4 2 5"}},
    {"three", "dim1=0 dim2=-1", .in = {"f64[2,3,4] random"}},
    {"same", "", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[2,2] 1 2 3 4"}},
    {"far", "dim1=0 dim2=2", .in = {"f32[2,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(swap_axis, "SwapAxis", swap_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(reshape), TN_OP_TEST(flatten),   TN_OP_TEST(expand_dims),
                                       TN_OP_TEST(squeeze), TN_OP_TEST(transpose), TN_OP_TEST(swap_axis)};

    return tn_op_main(tests);
}

/* Families slice and join: windows, joins, copies; values by hand, gradients by differences. */
#include "support/op_case.h"

#define X "f32[3,4] range"

static const tn_op_case slice_cases[] = {
    {"window", "begin=(1,1) end=(3,3)", .in = {X}, .out = {"f32[2,2] 5 6 9 10"}},
    {"open", "begin=(None,2) end=(2,None)", .in = {X}, .out = {"f32[2,2] 2 3 6 7"}},
    {"from the end", "begin=(-2,-3) end=(-1,-1)", .in = {X}, .out = {"f32[1,2] 5 6"}},
    {"steps", "begin=(0,0) end=(3,4) step=(2,3)", .in = {X}, .out = {"f32[2,2] 0 3 8 11"}},
    {"backwards", "begin=(None,3) end=(None,0) step=(-1,-2)", .in = {X}, .out = {"f32[3,2] 11 9 7 5 3 1"}},
    {"fewer axes", "begin=1 end=2", .in = {X}, .out = {"f32[1,4] 4 5 6 7"}},
    {"nothing", "begin=1 end=1", .in = {X}, .out = {"f32[0,4]"}, .flags = TN_CASE_NO_GRAD},
    {"bytes", "begin=1 end=3", .in = {"i8[4] -1 -2 -3 -4"}, .out = {"i8[2] -2 -3"}, .flags = TN_CASE_NO_GRAD},
    {"gradient", "begin=(0,None,1) end=(2,None,None) step=(1,-1,2)", .in = {"f64[3,2,5] random"}},
    {"begin", "begin=3 end=3", .in = {X}, .out = {"f32[0,4]"}, .flags = TN_CASE_NO_GRAD},
    {"far", "begin=4 end=5", .in = {X}, .status = TN_E_SHAPE},
    {"end", "begin=0 end=4", .in = {X}, .status = TN_E_SHAPE},
    {"step 0", "begin=0 end=2 step=0", .in = {X}, .status = TN_E_ATTR},
    {"lengths", "begin=(0,0) end=2", .in = {X}, .status = TN_E_ATTR},
    {"axes", "begin=(0,0,0) end=(1,1,1)", .in = {X}, .status = TN_E_SHAPE},
    {"least", "begin=-9223372036854775807 end=2", .in = {X}, .status = TN_E_SHAPE},
    {"long step", "begin=(2,1) end=(None,None) step=(9223372036854775807,-9223372036854775807)", .in = {X},
     .out = {"f32[1,1] 9"}},
};
/* ---- NumPy's ---- */

static const tn_op_case hstack[] = {
    {"matrices", "num_args=2", .in = {"f64[2,3] random", "f64[2,1] random"}, .flags = TN_CASE_GRAD2},
    {"vectors", "num_args=2", .in = {"u8[2] 1 2", "u8[1] 3"}, .out = {"u8[3] 1 2 3"}},
    {"scalars", "num_args=2", .in = {"f64[] 1", "f64[] 2"}, .out = {"f64[2] 1 2"}, .flags = TN_CASE_NP_SHAPE},
    {"empty", "num_args=2", .in = {"f32[2,0]", "f32[2,1] 1 2"}, .out = {"f32[2,1] 1 2"}},
    {"heights", "num_args=2", .in = {"f32[2,1] 1 2", "f32[3,1] 1 2 3"}, .status = TN_E_SHAPE},
};
static const tn_op_case vstack[] = {
    {"rows", "num_args=3", .in = {"f64[2] random", "f64[2,2] random", "f64[2] random"},
     .flags = TN_CASE_GRAD2},
    {"scalars", "num_args=2", .in = {"f32[] 1", "f32[] 2"}, .out = {"f32[2,1] 1 2"},
     .flags = TN_CASE_NP_SHAPE},
};
static const tn_op_case dstack[] = {
    {"matrices", "num_args=2", .in = {"f64[2,3] random", "f64[2,3] random"}, .flags = TN_CASE_GRAD2},
    {"vectors", "num_args=2", .in = {"i32[2] 1 2", "i32[2] 3 4"}, .out = {"i32[1,2,2] 1 3 2 4"}},
};
static const tn_op_case column_stack[] = {
    {"mixed", "num_args=2", .in = {"f64[3] random", "f64[3,2] random"}, .flags = TN_CASE_GRAD2},
    {"lengths", "num_args=2", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE},
};
static const tn_op_case split_v2[] = {
    {"indices", "indices=(0,1,1) axis=1", .in = {"f64[2,3] random"}, .flags = TN_CASE_GRAD2},
    {"sections", "indices=() sections=2 axis=-1", .in = {"f64[2,4] random"}, .flags = TN_CASE_GRAD2},
    {"squeeze", "indices=() sections=2 axis=0 squeeze_axis=1", .in = {"f64[2,3] random"},
     .flags = TN_CASE_GRAD2},
    {"no 0", "indices=(1,2) axis=0", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE, .message = "begin with 0"},
    {"order", "indices=(0,2,1) axis=0", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"beyond", "indices=(0,4) axis=0", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"unequal", "indices=() sections=2 axis=0", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"nothing", "indices=() axis=0", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR},
    {"thick", "indices=(0,1) axis=0 squeeze_axis=1", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
};
static const tn_op_case hsplit[] = {
    {"vector", "indices=() sections=2", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
    {"matrix", "indices=(0,1)", .in = {"f64[2,3] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case dsplit[] = {
    {"cube", "indices=(0,1)", .in = {"f64[2,2,3] random"}, .flags = TN_CASE_GRAD2},
    {"matrix", "indices=(0,1)", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE},
};

TN_OP_TESTS(slice, "slice", slice_cases)

static const tn_op_case slice_axis_cases[] = {
    {"columns", "axis=1 begin=1 end=3", .in = {X}, .out = {"f32[3,2] 1 2 5 6 9 10"}},
    {"open", "axis=-1 begin=-2 end=None", .in = {X}, .out = {"f32[3,2] 2 3 6 7 10 11"}},
    {"gradient", "axis=0 begin=1 end=2", .in = {"f64[3,2] random"}},
    {"far", "axis=2 begin=0 end=1", .in = {X}, .status = TN_E_SHAPE},
    {"end", "axis=0 begin=0 end=9", .in = {X}, .status = TN_E_SHAPE},
    {"least begin", "axis=1 begin=-9223372036854775808 end=3", .in = {X}, .status = TN_E_SHAPE,
     .message = "begin -9223372036854775808 and end 3 do not lie in axis 1 of size 4"},
    {"least end", "axis=1 begin=0 end=-9223372036854775808", .in = {X}, .status = TN_E_SHAPE},
    {"largest", "axis=1 begin=9223372036854775807 end=None", .in = {X}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(slice_axis, "slice_axis", slice_axis_cases)

static const tn_op_case slice_like_cases[] = {
    {"all", "", .in = {X, "f32[2,2] range"}, .out = {"f32[2,2] 0 1 4 5"}},
    {"one axis", "axes=(1,)", .in = {"f64[2,3] random", "f64[9,2] random"}, .flags = TN_CASE_GRAD2},
    {"longer", "", .in = {X, "f32[4,2] range"}, .status = TN_E_SHAPE},
    {"ranks", "", .in = {X, "f32[2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(slice_like, "slice_like", slice_like_cases)

static const tn_op_case slice_like_back_cases[] = {
    {"all", "", .in = {"f32[1,2] 5 6", X}, .out = {"f32[3,4] 5 6 0 0 0 0 0 0 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"one axis", "axes=0", .in = {"f32[1,4] 5 6 7 8", X}, .out = {"f32[3,4] 5 6 7 8 0 0 0 0 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"longer", "", .in = {"f32[4,4] range", X}, .status = TN_E_SHAPE, .message = "axis 0 of dy is longer"},
    {"other axis", "axes=0", .in = {"f32[1,2] 5 6", X}, .status = TN_E_SHAPE},
    {"ranks", "", .in = {"f32[1] 5", X}, .status = TN_E_SHAPE, .message = "dy has 1 dimensions, data 2"},
    {"axes", "axes=2", .in = {"f32[1,2] 5 6", X}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(slice_like_back, "_backward_slice_like", slice_like_back_cases)

static const tn_op_case concat_cases[] = {
    {"columns", "num_args=2", .in = {"f32[2,1] 1 2", "f32[2,2] 3 4 5 6"}, .out = {"f32[2,3] 1 3 4 2 5 6"}},
    {"rows", "dim=0", .in = {"f32[1,2] 1 2", "f32[2,2] 3 4 5 6"}, .out = {"f32[3,2] 1 2 3 4 5 6"}},
    {"last", "dim=-1", .in = {"f64[2,3,1] random", "f64[2,3,4] random", "f64[2,3,2] random"}},
    {"one", "dim=0", .in = {"f64[2] 1 2"}, .out = {"f64[2] 1 2"}},
    {"empty part", "dim=0", .in = {"f32[0,2]", "f32[1,2] 1 2"}, .out = {"f32[1,2] 1 2"},
     .flags = TN_CASE_NO_GRAD},
    {"bytes", "dim=0", .in = {"u8[1] 1", "u8[2] 2 3"}, .out = {"u8[3] 1 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"extents", "dim=0", .in = {"f32[1,2] 1 2", "f32[1,3] 1 2 3"}, .status = TN_E_SHAPE},
    {"ranks", "dim=0", .in = {"f32[2] 1 2", "f32[1,2] 1 2"}, .status = TN_E_SHAPE},
    {"axis", "dim=2", .in = {"f32[1,2] 1 2", "f32[1,2] 1 2"}, .status = TN_E_SHAPE},
    {"types", "dim=0", .in = {"f32[1] 1", "f64[1] 1"}, .status = TN_E_DTYPE},
    {"count", "num_args=3", .in = {"f32[1] 1", "f32[1] 1"}, .status = TN_E_ARG},
};
TN_OP_TESTS(concat, "Concat", concat_cases)

static const tn_op_case stack_cases[] = {
    {"first", "", .in = {"f32[2] 1 2", "f32[2] 3 4"}, .out = {"f32[2,2] 1 2 3 4"}},
    {"last", "axis=-1", .in = {"f32[2] 1 2", "f32[2] 3 4"}, .out = {"f32[2,2] 1 3 2 4"}},
    {"middle", "axis=1", .in = {"f64[2,3] random", "f64[2,3] random", "f64[2,3] random"}},
    {"shapes", "", .in = {"f32[2] 1 2", "f32[3] 3 4 5"}, .status = TN_E_SHAPE},
    {"axis", "axis=2", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(stack, "stack", stack_cases)

static const tn_op_case split_cases[] = {
    {"columns", "num_outputs=2", .in = {"f32[2,4] range"}, .out = {"f32[2,2] 0 1 4 5", "f32[2,2] 2 3 6 7"}},
    {"squeezed", "num_outputs=3 axis=0 squeeze_axis=True", .in = {"f64[3,2] range"},
     .out = {"f64[2] 0 1", "f64[2] 2 3", "f64[2] 4 5"}},
    {"gradient", "num_outputs=2 axis=-1", .in = {"f64[2,2,6] random"}},
    {"uneven", "num_outputs=3", .in = {"f32[2,4] range"}, .status = TN_E_SHAPE},
    {"not squeezable", "num_outputs=2 squeeze_axis=1", .in = {"f32[2,4] range"}, .status = TN_E_SHAPE},
    {"none", "num_outputs=0", .in = {"f32[2,4] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(split, "SliceChannel", split_cases)

static const tn_op_case tile_cases[] = {
    {"both", "reps=(2,2)", .in = {"f32[1,2] 1 2"}, .out = {"f32[2,4] 1 2 1 2 1 2 1 2"}},
    {"more axes", "reps=(2,1,2)", .in = {"f64[2] 1 2"}, .out = {"f64[2,1,4] 1 2 1 2 1 2 1 2"}},
    {"fewer", "reps=2", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[2,4] 1 2 1 2 3 4 3 4"}},
    {"none", "reps=0", .in = {"f32[2] 1 2"}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"gradient", "reps=(2,1,3)", .in = {"f64[2,3,2] random"}},
    {"negative", "reps=-1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"nothing", "reps=(1,1000000007)", .in = {"f32[70368744177664,0]"}, .out = {"f32[70368744177664,0]"}},
};
TN_OP_TESTS(tile, "tile", tile_cases)

static const tn_op_case repeat_cases[] = {
    {"flat", "repeats=2", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[8] 1 1 2 2 3 3 4 4"}},
    {"axis", "repeats=2 axis=0", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[4,2] 1 2 1 2 3 4 3 4"}},
    {"gradient", "repeats=3 axis=1", .in = {"f64[2,3,2] random"}},
    {"gradient, flat", "repeats=3", .in = {"f64[2,3] random"}},
    {"axis", "repeats=2 axis=2", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
    {"nothing", "repeats=1000000007 axis=0", .in = {"f32[0,288230376151711744]"},
     .out = {"f32[0,288230376151711744]"}},
};
TN_OP_TESTS(repeat, "repeat", repeat_cases)

static const tn_op_case reverse_cases[] = {
    {"rows", "axis=0", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[2,2] 3 4 1 2"}},
    {"both", "axis=(0,1)", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[2,2] 4 3 2 1"}},
    {"gradient", "axis=-1", .in = {"f64[2,3] random"}},
    {"twice", "axis=(0,0)", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(reverse, "reverse", reverse_cases)

static const tn_op_case slice_assign[] = {
    {"window", "begin=(0,1) end=(2,3)", .in = {"f32[2,3] 1 2 3 4 5 6", "f32[2,2] 7 8 9 10"},
     .out = {"f32[2,3] 1 7 8 4 9 10"}, .flags = TN_CASE_NO_GRAD},
    {"steps", "begin=(None,) end=(None,) step=(-2,)", .in = {"i8[3] 1 2 3", "i8[2] 8 9"},
     .out = {"i8[3] 9 2 8"},
     .flags = TN_CASE_NO_GRAD},
    {"nothing", "begin=(1,) end=(1,)", .in = {"f32[2] 1 2", "f32[0]"}, .out = {"f32[2] 1 2"},
     .flags = TN_CASE_NO_GRAD},
    {"shape", "begin=(0,) end=(2,)", .in = {"f32[2] 1 2", "f32[1] 1"}, .status = TN_E_SHAPE},
    {"step 0", "begin=(0,) end=(2,) step=(0,)", .in = {"f32[2] 1 2", "f32[1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case slice_assign_scalar[] = {
    {"window", "begin=(0,1) end=(2,3) scalar=7.5", .in = {"f16[2,3] 1 2 3 4 5 6"},
     .out = {"f16[2,3] 1 7.5 7.5 4 7.5 7.5"}, .flags = TN_CASE_NO_GRAD},
    {"steps", "begin=(None,) end=(None,) step=(-2,) scalar=9", .in = {"u8[3] 1 2 3"}, .out = {"u8[3] 9 2 9"},
     .flags = TN_CASE_NO_GRAD},
    {"nothing", "begin=(1,) end=(1,)", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}, .flags = TN_CASE_NO_GRAD},
    {"items", "begin=(0,0) end=(1,1)", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};

/* clang-format off */
TN_OP_TESTS(hstack, "_npi_hstack", hstack)
TN_OP_TESTS(vstack, "_npi_vstack", vstack)
TN_OP_TESTS(dstack, "_npi_dstack", dstack)
TN_OP_TESTS(column_stack, "_npi_column_stack", column_stack)
TN_OP_TESTS(split_v2, "_split_v2", split_v2)
TN_OP_TESTS(hsplit, "_npi_hsplit", hsplit)
TN_OP_TESTS(dsplit, "_npi_dsplit", dsplit)
TN_OP_TESTS(slice_assign, "_slice_assign", slice_assign)
TN_OP_TESTS(slice_assign_scalar, "_slice_assign_scalar", slice_assign_scalar)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(slice),   TN_OP_TEST(slice_axis),     TN_OP_TEST(slice_like), TN_OP_TEST(concat),
        TN_OP_TEST(stack),   TN_OP_TEST(split),          TN_OP_TEST(tile),       TN_OP_TEST(repeat),
        TN_OP_TEST(reverse), TN_OP_TEST(slice_like_back),

        TN_OP_TEST(hstack),
        TN_OP_TEST(vstack),
        TN_OP_TEST(dstack),
        TN_OP_TEST(column_stack),
        TN_OP_TEST(split_v2),
        TN_OP_TEST(hsplit),
        TN_OP_TEST(dsplit),
        TN_OP_TEST(slice_assign),
        TN_OP_TEST(slice_assign_scalar),
    };

    return tn_op_main(tests);
}

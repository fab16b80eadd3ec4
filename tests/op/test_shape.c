/* Family shape: the codes of Reshape as MXNet documents them, views and transposes,
 * gradients by differences. */
#include "support/op_case.h"

#define X "f32[2,3,4] range"
#define X4 "f32[1,8,1,3] range"

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
/* ---- NumPy's ---- */

#define NP TN_CASE_NP_SHAPE
static const tn_op_case moveaxis[] = {
    {"one", "source=(0,) destination=(2,)", .in = {"f64[2,3,4] random"}, .flags = TN_CASE_GRAD2},
    {"two", "source=(0,1) destination=(-1,-2)", .in = {"f64[2,3,4] random"}, .flags = TN_CASE_GRAD2},
    {"none", "source=() destination=()", .in = {"u8[2] 1 2"}, .out = {"u8[2] 1 2"}},
    {"counts", "source=(0,) destination=(0,1)", .in = {"f32[2,2] random"}, .status = TN_E_ATTR},
    {"twice", "source=(0,0) destination=(0,1)", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE,
     .message = "twice"},
};
static const tn_op_case npx_reshape[] = {
    {"keep", "newshape=(-2,-1)", .in = {"f64[2,3,2] random"}},
    {"drop", "newshape=(-3,-4)", .in = {"i8[1,2] 1 2"}, .out = {"i8[2] 1 2"}},
    {"merge", "newshape=(-5,-2)", .in = {"f64[2,3,2] random"}},
    {"split", "newshape=(-6,-1,2,-4)", .in = {"f64[4,3] random"}},
    {"reverse", "newshape=(-1,-2) reverse=1", .in = {"f64[2,3,2] random"}},
    {"scalar", "newshape=()", .in = {"f64[1,1] 2"}, .out = {"f64[] 2"}, .flags = NP},
    {"0 is a size", "newshape=(0,)", .in = {"f32[2,0]"}, .out = {"f32[0]"}},
    {"not a 1", "newshape=(-3,-4)", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE, .message = "code -3"},
    {"too few", "newshape=(-5,-5)", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE, .message = "code -5"},
    {"unknown code", "newshape=(-7,)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"order", "newshape=(4,) order=F", .in = {"f32[2,2] random"}, .status = TN_E_ATTR, .message = "order"},
};
static const tn_op_case np_reshape[] = {
    {"rest", "newshape=(3,-1)", .in = {"f64[2,3] random"}},
    {"count", "newshape=(4,)", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
    {"code", "newshape=(-2,)", .in = {"f32[2,3] random"}, .status = TN_E_ATTR},
};
static const tn_op_case reshape_like[] = {
    {"all", "", .in = {"f64[2,3] random", "f64[3,2] random"}},
    {"some", "lhs_begin=1 lhs_end=3 rhs_begin=0 rhs_end=1",
     .in = {"f32[1,2,3] 1 2 3 4 5 6", "i8[6,5] fill:1"},
     .out = {"f32[1,6] 1 2 3 4 5 6"}},
    {"count", "", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"beyond", "lhs_begin=3", .in = {"f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_SHAPE,
     .message = "dimensions 3"},
};
static const tn_op_case shape_array[] = {
    {"matrix", "", .in = {"f32[2,3] random"}, .out = {"i64[2] 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"scalar", "", .in = {"f32[] 1"}, .out = {"i64[0]"}, .flags = TN_CASE_NO_GRAD | NP},
    {"empty", "", .in = {"bool[0,3]"}, .out = {"i64[2] 0 3"}, .flags = TN_CASE_NO_GRAD},
};
static const tn_op_case size_array[] = {
    {"matrix", "", .in = {"u8[2,3] random"}, .out = {"i64[1] 6"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"i64[1] 0"}, .flags = TN_CASE_NO_GRAD},
};
static const tn_op_case np_diag[] = {
    {"vector", "k=-1", .in = {"f64[3] random"}, .flags = TN_CASE_GRAD2},
    {"matrix", "k=1", .in = {"f64[3,4] random"}, .flags = TN_CASE_GRAD2},
    {"beside it", "k=9", .in = {"f64[3,4] random"}, .out = {"f64[0]"}},
    {"three", "", .in = {"f32[1,1,1] 1"}, .status = TN_E_SHAPE},
};
static const tn_op_case diagflat[] = {
    {"matrix", "", .in = {"f64[2,2] random"}, .flags = TN_CASE_GRAD2},
    {"value", "k=1", .in = {"i8[1] 5"}, .out = {"i8[2,2] 0 5 0 0"}},
    {"empty", "k=1", .in = {"f32[0]"}, .out = {"f32[1,1] 0"}},
};
static const tn_op_case diagonal[] = {
    {"axes", "offset=-1 axis1=0 axis2=2", .in = {"f64[3,2,3] random"}, .flags = TN_CASE_GRAD2},
    {"beside it", "offset=-9", .in = {"f64[2,2] random"}, .out = {"f64[0]"}},
    {"vector", "", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"one axis", "axis2=0", .in = {"f32[2,2] random"}, .status = TN_E_ATTR, .message = "both"},
};
static const tn_op_case np_broadcast_to[] = {
    {"more dimensions", "shape=(2,3,4)", .in = {"f64[3,1] random"}, .flags = TN_CASE_GRAD2},
    {"scalar", "shape=(2,)", .in = {"i64[] 7"}, .out = {"i64[2] 7 7"}, .flags = NP},
    {"to nothing", "shape=(0,)", .in = {"f32[1] 1"}, .out = {"f32[0]"}},
    {"fewer", "shape=(3,)", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
    {"smaller", "shape=(1,3)", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
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

/* As MXNet 1.9.1 gives them; it takes no empty arrays here. */
static const tn_op_case depth_to_space_cases[] = {
    {"wide", "block_size=2", .in = {"f32[1,8,1,3] range"},
     .out = {"f32[1,2,2,6] 0 6 1 7 2 8 12 18 13 19 14 20 3 9 4 10 5 11 15 21 16 22 17 23"}},
    {"square", "block_size=2", .in = {"f64[1,8,2,2] range"},
     .out = {"f64[1,2,4,4] 0 8 1 9 16 24 17 25 2 10 3 11 18 26 19 27 "
             "4 12 5 13 20 28 21 29 6 14 7 15 22 30 23 31"}},
    {"1", "block_size=1", .in = {X4}, .out = {X4}},
    {"bytes", "block_size=2", .in = {"u8[1,4,1,1] 1 2 3 4"}, .out = {"u8[1,1,2,2] 1 2 3 4"}},
    {"gradient", "block_size=3", .in = {"f64[2,18,2,3] random"}, .flags = TN_CASE_GRAD2},
    {"threads", "block_size=4", .in = {"f32[3,32,40,30] range"}, .flags = TN_CASE_NO_GRAD},
    {"nothing", "block_size=2", .in = {"f32[0,8,1,3]"}, .out = {"f32[0,2,2,6]"}, .flags = TN_CASE_NO_GRAD},
    {"channels", "block_size=3", .in = {X4}, .status = TN_E_SHAPE, .message = "8"},
    {"0", "block_size=0", .in = {X4}, .status = TN_E_ATTR, .message = "block_size"},
    {"below 0", "block_size=-2", .in = {X4}, .status = TN_E_ATTR, .message = "block_size"},
    {"missing", "", .in = {X4}, .status = TN_E_ATTR, .message = "block_size"},
    {"large", "block_size=2147483647", .in = {X4}, .status = TN_E_SHAPE},
    {"rank 3", "block_size=2", .in = {"f32[8,1,3] range"}, .status = TN_E_SHAPE},
    {"rank 5", "block_size=2", .in = {"f32[1,8,1,3,1] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(depth_to_space, "depth_to_space", depth_to_space_cases)

static const tn_op_case space_to_depth_cases[] = {
    {"wide", "block_size=2", .in = {"f32[1,1,4,6] range"},
     .out = {"f32[1,4,2,3] 0 2 4 12 14 16 1 3 5 13 15 17 6 8 10 18 20 22 7 9 11 19 21 23"}},
    {"channels", "block_size=2", .in = {"f64[1,2,4,4] range"},
     .out = {"f64[1,8,2,2] 0 2 8 10 16 18 24 26 1 3 9 11 17 19 25 27 "
             "4 6 12 14 20 22 28 30 5 7 13 15 21 23 29 31"}},
    {"gradient", "block_size=3", .in = {"f64[2,2,6,3] random"}, .flags = TN_CASE_GRAD2},
    {"threads", "block_size=4", .in = {"f32[3,2,160,120] range"}, .flags = TN_CASE_NO_GRAD},
    {"nothing", "block_size=2", .in = {"f32[1,0,2,2]"}, .out = {"f32[1,0,1,1]"}, .flags = TN_CASE_NO_GRAD},
    {"height", "block_size=3", .in = {"f32[1,1,4,6] range"}, .status = TN_E_SHAPE, .message = "4"},
    {"width", "block_size=4", .in = {"f32[1,1,4,6] range"}, .status = TN_E_SHAPE, .message = "6"},
    {"0", "block_size=0", .in = {X4}, .status = TN_E_ATTR, .message = "block_size"},
    {"rank 2", "block_size=2", .in = {"f32[8,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(space_to_depth, "space_to_depth", space_to_depth_cases)

#define M "f32[3,4] range"
#define C "f32[2,3,4] range"

static const tn_op_case diag_cases[] = {
    {"main", "", .in = {M}, .out = {"f32[3] 0 5 10"}},
    {"right", "k=1", .in = {M}, .out = {"f32[3] 1 6 11"}},
    {"far right", "k=3", .in = {M}, .out = {"f32[1] 3"}},
    {"under", "k=-1", .in = {M}, .out = {"f32[2] 4 9"}},
    {"far under", "k=-2", .in = {M}, .out = {"f32[1] 8"}},
    {"beside, right", "k=4", .in = {M}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"beside, under", "k=-3", .in = {M}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"other way", "k=1 axis1=1 axis2=0", .in = {M}, .out = {"f32[2] 4 9"}},
    {"from the end", "axis1=-1 axis2=-2", .in = {M}, .out = {"f32[3] 0 5 10"}},
    {"vector", "", .in = {"f32[3] 1 2 3"}, .out = {"f32[3,3] 1 0 0 0 2 0 0 0 3"}},
    {"vector, right", "k=1", .in = {"f64[3] 1 2 3"}, .out = {"f64[4,4] 0 1 0 0 0 0 2 0 0 0 0 3 0 0 0 0"}},
    {"vector, under", "k=-2", .in = {"f32[3] 1 2 3"},
     .out = {"f32[5,5] 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 2 0 0 0 0 0 3 0 0"}},
    {"vector, axes not read", "axis1=5 axis2=5", .in = {"f32[2] 1 2"}, .out = {"f32[2,2] 1 0 0 2"}},
    {"bytes", "k=-1", .in = {"u8[2] 7 8"}, .out = {"u8[3,3] 0 0 0 7 0 0 0 8 0"}},
    {"rank 3", "", .in = {C}, .out = {"f32[4,2] 0 16 1 17 2 18 3 19"}},
    {"rank 3, last", "axis1=1 axis2=2", .in = {C}, .out = {"f32[2,3] 0 5 10 12 17 22"}},
    {"rank 3, outer", "axis1=2 axis2=0", .in = {C}, .out = {"f32[3,2] 0 13 4 17 8 21"}},
    {"rank 3, right", "k=1 axis1=2 axis2=0", .in = {C}, .out = {"f32[3,1] 12 16 20"}},
    {"rank 3, under", "k=-1 axis1=2 axis2=0", .in = {C}, .out = {"f32[3,2] 1 14 5 18 9 22"}},
    {"rank 3, mixed", "k=1 axis1=-1 axis2=1", .in = {C}, .out = {"f32[2,2] 4 9 16 21"}},
    {"rank 4", "k=1 axis1=1 axis2=3", .in = {"f64[2,3,2,3] range"},
     .out = {"f64[2,2,2] 1 8 4 11 19 26 22 29"}},
    {"gradient", "k=1 axis1=2 axis2=1", .in = {"f64[2,3,4,2] random"}, .flags = TN_CASE_GRAD2},
    {"gradient, vector", "k=-1", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
    {"gradient of nothing", "k=2", .in = {"f64[3,2] random"}},
    {"threads", "k=-3 axis1=2 axis2=0", .in = {"f32[60,70,80] range"}, .flags = TN_CASE_NO_GRAD},
    {"empty vector", "", .in = {"f32[0]"}, .out = {"f32[0,0]"}, .flags = TN_CASE_NO_GRAD},
    {"empty vector, right", "k=2", .in = {"f32[0]"}, .out = {"f32[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"no rows", "", .in = {"f32[0,3]"}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"nothing beside", "", .in = {"f32[3,3,0]"}, .out = {"f32[0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"none right", "k=5", .in = {M}, .status = TN_E_SHAPE, .message = "no diagonal 5"},
    {"none under", "k=-4", .in = {M}, .status = TN_E_SHAPE, .message = "no diagonal -4"},
    {"largest", "k=9223372036854775807", .in = {M}, .status = TN_E_ATTR},
    {"same axis", "axis1=1 axis2=1", .in = {M}, .status = TN_E_ATTR, .message = "both axis 1"},
    {"same axis from the end", "axis1=1 axis2=-1", .in = {M}, .status = TN_E_ATTR, .message = "both axis 1"},
    {"axis1", "axis1=2 axis2=0", .in = {M}, .status = TN_E_SHAPE},
    {"axis2", "axis2=-3", .in = {M}, .status = TN_E_SHAPE},
    {"scalar", "", .in = {"f32[] 1"}, .flags = TN_CASE_NP_SHAPE, .status = TN_E_SHAPE},
};
TN_OP_TESTS(diag, "diag", diag_cases)

/* dy counts from 1 as MXNet's did. */
static const tn_op_case diag_back_cases[] = {
    {"right", "k=1", .in = {"f32[3] 1 2 3", M}, .out = {"f32[3,4] 0 1 0 0 0 0 2 0 0 0 0 3"},
     .flags = TN_CASE_NO_GRAD},
    {"vector", "k=-1", .in = {"f64[4,4] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "f64[3] 1 2 3"},
     .out = {"f64[3] 5 10 15"}, .flags = TN_CASE_NO_GRAD},
    {"rank 3", "k=1 axis1=2 axis2=1", .in = {"f32[2,2] 1 2 3 4", C},
     .out = {"f32[2,3,4] 0 0 0 0 1 0 0 0 0 2 0 0 0 0 0 0 3 0 0 0 0 4 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"beside", "k=4", .in = {"f32[0]", M}, .out = {"f32[3,4] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"dy", "k=1", .in = {"f32[2] 1 2", M}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(diag_back, "_backward_diag", diag_back_cases)

/* clang-format off */
TN_OP_TESTS(moveaxis, "_np_moveaxis", moveaxis)
TN_OP_TESTS(npx_reshape, "_npx_reshape", npx_reshape)
TN_OP_TESTS(np_reshape, "_np_reshape", np_reshape)
TN_OP_TESTS(reshape_like, "reshape_like", reshape_like)
TN_OP_TESTS(shape_array, "shape_array", shape_array)
TN_OP_TESTS(size_array, "size_array", size_array)
TN_OP_TESTS(np_diag, "_np_diag", np_diag)
TN_OP_TESTS(diagflat, "_np_diagflat", diagflat)
TN_OP_TESTS(diagonal, "_np_diagonal", diagonal)
TN_OP_TESTS(np_broadcast_to, "_npi_broadcast_to", np_broadcast_to)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(reshape), TN_OP_TEST(flatten),   TN_OP_TEST(expand_dims),
                                       TN_OP_TEST(squeeze), TN_OP_TEST(transpose), TN_OP_TEST(swap_axis),
                                       TN_OP_TEST(depth_to_space), TN_OP_TEST(space_to_depth),
                                       TN_OP_TEST(diag), TN_OP_TEST(diag_back),

        TN_OP_TEST(moveaxis),
        TN_OP_TEST(npx_reshape),
        TN_OP_TEST(np_reshape),
        TN_OP_TEST(reshape_like),
        TN_OP_TEST(shape_array),
        TN_OP_TEST(size_array),
        TN_OP_TEST(np_diag),
        TN_OP_TEST(diagflat),
        TN_OP_TEST(diagonal),
        TN_OP_TEST(np_broadcast_to),
    };

    return tn_op_main(tests);
}

/* Family pad: what stands around an array, and the gradients. */
#include "support/op_case.h"

#define IMAGE "f64[1,1,2,3] 1 2 3 4 5 6"
#define AROUND "pad_width=(0,0,0,0,1,0,1,2) mode="

static const tn_op_case images[] = {
    {"constant", AROUND "constant constant_value=9", .in = {IMAGE},
     .out = {"f64[1,1,3,6] 9 9 9 9 9 9 9 1 2 3 9 9 9 4 5 6 9 9"}, .flags = TN_CASE_GRAD2},
    {"edge", AROUND "edge", .in = {IMAGE}, .out = {"f64[1,1,3,6] 1 1 2 3 3 3 1 1 2 3 3 3 4 4 5 6 6 6"},
     .grad = {"f64[1,1,2,3] 4 2 6 2 1 3"}, .flags = TN_CASE_GRAD2},
    {"reflect", AROUND "reflect", .in = {IMAGE}, .out = {"f64[1,1,3,6] 5 4 5 6 5 4 2 1 2 3 2 1 5 4 5 6 5 4"},
     .flags = TN_CASE_GRAD2},
    {"two dimensions", "pad_width=(1,0,0,1) mode=edge", .in = {"i32[1,2] 1 2"},
     .out = {"i32[2,3] 1 2 2 1 2 2"}},
    {"nothing", "pad_width=(0,0) mode=reflect", .in = {"u8[2] 1 2"}, .out = {"u8[2] 1 2"}},
    {"empty", "pad_width=(0,0,1,1) mode=constant constant_value=2", .in = {"f32[2,0]"},
     .out = {"f32[2,2] 2 2 2 2"}},
    {"empty batch", "pad_width=(0,0,1,1) mode=edge", .in = {"f32[0,2]"}, .out = {"f32[0,4]"}},
    {"many", "pad_width=(0,0,3,4,5,6) mode=edge", .in = {"f32[3,40,50] random"}},
    {"types", "pad_width=(1,0) mode=constant constant_value=1", .in = {"bool[1] 0"}, .out = {"bool[2] 1 0"}},
    {"count", "pad_width=(1,1) mode=edge", .in = {IMAGE}, .status = TN_E_ATTR, .message = "pad_width"},
    {"negative", "pad_width=(0,-1) mode=edge", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR,
     .message = "pad_width"},
    {"no width", "mode=edge", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR, .message = "pad_width"},
    {"no mode", "pad_width=(1,1)", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR, .message = "mode"},
    {"bad mode", "pad_width=(1,1) mode=symmetric", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR},
    {"reflects too far", "pad_width=(3,0) mode=reflect", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE,
     .message = "padding"},
};
TN_OP_TESTS(pad, "Pad", images)

static const tn_op_case numpys[] = {
    {"pairs", "pad_width=((1,0),(0,1))", .in = {"f64[1,2] 1 2"}, .out = {"f64[2,3] 0 0 0 1 2 0"},
     .flags = TN_CASE_GRAD2},
    {"one axis", "pad_width=((1,),(2,)) constant_value=-1", .in = {"f64[1] 5"}, .out = {"f64[4] -1 5 -1 -1"},
     .flags = TN_CASE_GRAD2},
    {"one pair", "pad_width=((1,2),)", .in = {"i64[1] 5"}, .out = {"i64[4] 0 5 0 0"}},
    {"flat", "pad_width=(1,2)", .in = {"i64[1] 5"}, .out = {"i64[4] 0 5 0 0"}},
    {"reflect far", "pad_width=((5,),(4,)) mode=reflect", .in = {"f64[3] 1 2 3"},
     .out = {"f64[12] 2 1 2 3 2 1 2 3 2 1 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"reflect far, its gradient", "pad_width=((5,2),(3,7)) mode=reflect", .in = {"f64[3,2] random"},
     .flags = TN_CASE_GRAD2},
    {"reflect one", "pad_width=((2,),(1,)) mode=reflect", .in = {"f64[1] 7"}, .out = {"f64[4] 7 7 7 7"},
     .flags = TN_CASE_GRAD2},
    {"symmetric far", "pad_width=((5,),(4,)) mode=symmetric", .in = {"f64[2] 1 2"},
     .out = {"f64[11] 1 1 2 2 1 1 2 2 1 1 2"}, .flags = TN_CASE_GRAD2},
    {"symmetric", "pad_width=((1,2),(3,4)) mode=symmetric", .in = {"f64[3,2] random"},
     .flags = TN_CASE_GRAD2},
    {"edge", "pad_width=((1,2),(3,4)) mode=edge", .in = {"f64[1,2] random"}, .flags = TN_CASE_GRAD2},
    {"maximum", "pad_width=((1,0),(0,2)) mode=maximum", .in = {"f64[2,2] 1 4 3 2"},
     .out = {"f64[3,4] 3 4 4 4 1 4 4 4 3 2 3 3"}, .flags = TN_CASE_NO_GRAD},
    {"minimum", "pad_width=((1,0),(0,1)) mode=minimum", .in = {"i8[2,2] 1 -4 -3 2"},
     .out = {"i8[3,3] -3 -4 -4 1 -4 -4 -3 2 -3"}},
    {"minimum of planes", "pad_width=((1,0),(0,1),(1,1)) mode=minimum",
     .in = {"f64[2,2,2] 3 -1 4 1 -5 9 2 6"}, /* numpy.pad */
     .out = {"f64[3,3,4] -5 -5 -1 -5 1 2 1 1 -5 -5 -1 -5 -1 3 -1 -1 1 4 1 1 -1 3 -1 -1 -5 -5 9 -5 2 2 6 2 -5 "
             "-5 6 -5"},
     .flags = TN_CASE_NO_GRAD},
    {"no dimensions", "pad_width=()", .in = {"f32[] 3"}, .out = {"f32[] 3"}, .flags = TN_CASE_NP_SHAPE},
    {"empty", "pad_width=((2,),(1,)) constant_value=3", .in = {"f32[0]"}, .out = {"f32[3] 3 3 3"}},
    {"nothing to pad with", "pad_width=((2,),(1,)) mode=edge", .in = {"f32[0]"}, .status = TN_E_SHAPE,
     .message = "no elements"},
    {"odd", "pad_width=((1,),(1,)) mode=reflect reflect_type=odd", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR,
     .message = "reflect_type"},
    {"deep", "pad_width=(((1,1),),)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "pad_width"},
    {"open", "pad_width=((1,1)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "pad_width"},
    {"twice", "pad_width=(1,1)(1,1)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "pad_width"},
    {"count", "pad_width=((1,1),)", .in = {"f32[1,1] 1"}, .status = TN_E_ATTR, .message = "pad_width"},
    {"negative", "pad_width=((-1,1),)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "pad_width"},
};
TN_OP_TESTS(npi_pad, "_npi_pad", numpys)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(pad), TN_OP_TEST(npi_pad)};

    return tn_op_main(tests);
}

/* Family init: every data type, lengths of ranges as numpy.arange has them. */
#include "support/op_case.h"

static const tn_op_case zeros_cases[] = {
    {"float", "shape=(2,2)", .out = {"f32[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"bool", "shape=2 dtype=bool", .out = {"bool[2] 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "shape=(0,2)", .out = {"f32[0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"scalar", "shape=()", .out = {"f32[] 0"}, .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"negative", "shape=(-2,2)", .status = TN_E_ATTR},
    {"no dtype", "shape=2 dtype=None", .out = {"f32[2] 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"dtype", "shape=(2,2) dtype=float8", .status = TN_E_ATTR},
};
TN_OP_TESTS(zeros, "_zeros", zeros_cases)

static const tn_op_case ones_cases[] = {
    {"half", "shape=(1,3) dtype=float16", .out = {"f16[1,3] 1 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"byte", "shape=3 dtype=int8", .out = {"i8[3] 1 1 1"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(ones, "_ones", ones_cases)

static const tn_op_case full_cases[] = {
    {"float", "shape=(2,) value=2.5", .out = {"f32[2] 2.5 2.5"}, .flags = TN_CASE_NO_GRAD},
    {"integer", "shape=(2,) value=-7 dtype=int64", .out = {"i64[2] -7 -7"}, .flags = TN_CASE_NO_GRAD},
    {"many", "shape=(1300,) value=3 dtype=float64", .out = {"f64[1300] fill:3"}, .flags = TN_CASE_NO_GRAD},
    {"no dtype", "shape=2 value=1 dtype=None", .out = {"f32[2] 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"value", "shape=(2,)", .status = TN_E_ATTR},
};
TN_OP_TESTS(full, "_full", full_cases)

static const tn_op_case arange_cases[] = {
    {"count", "start=4", .out = {"f32[4] 0 1 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"step", "start=1 stop=2 step=0.3", .out = {"f32[4] 1 1.3 1.6 1.9"}, .flags = TN_CASE_NO_GRAD},
    {"down", "start=3 stop=0 step=-1 dtype=int32", .out = {"i32[3] 3 2 1"}, .flags = TN_CASE_NO_GRAD},
    {"repeat", "start=0 stop=2 repeat=2", .out = {"f32[4] 0 0 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"no dtype", "start=2 dtype=None", .out = {"f32[2] 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "start=2 stop=1", .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"step 0", "start=0 stop=2 step=0", .status = TN_E_ATTR},
    {"endless", "start=0 stop=inf", .status = TN_E_ATTR},
    {"repeat 0", "start=0 stop=2 repeat=0", .status = TN_E_ATTR},
};
TN_OP_TESTS(arange, "_arange", arange_cases)

static const tn_op_case eye_cases[] = {
    {"square", "N=2", .out = {"f32[2,2] 1 0 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"above", "N=2 M=3 k=1", .out = {"f32[2,3] 0 1 0 0 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"below", "N=3 M=2 k=-1 dtype=uint8", .out = {"u8[3,2] 0 0 1 0 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"no dtype", "N=2 dtype=None", .out = {"f32[2,2] 1 0 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"outside", "N=2 k=9223372036854775807", .out = {"f32[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"outside below", "N=2 k=-9223372036854775807", .out = {"f32[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(eye, "_eye", eye_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(zeros), TN_OP_TEST(ones), TN_OP_TEST(full),
                                       TN_OP_TEST(arange), TN_OP_TEST(eye)};

    return tn_op_main(tests);
}

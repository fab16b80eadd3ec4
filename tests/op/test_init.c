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
/* ---- NumPy's, and arrays like an input ---- */

#define N TN_CASE_NO_GRAD
static const tn_op_case linspace[] = {
    {"endpoint", "start=0 stop=1 num=3", .out = {"f32[3] 0 0.5 1"}, .flags = N},
    {"without", "start=0 stop=1 num=2 endpoint=0 dtype=float64", .out = {"f64[2] 0 0.5"}, .flags = N},
    {"one", "start=3 stop=9 num=1", .out = {"f32[1] 3"}, .flags = N},
    {"none", "start=0 stop=1 num=0", .out = {"f32[0]"}, .flags = N},
    {"below 0", "start=0 stop=1 num=-1", .status = TN_E_ATTR},
};
static const tn_op_case logspace[] = {
    {"base", "start=0 stop=3 num=4 base=2 dtype=int64", .out = {"i64[4] 1 2 4 8"}, .flags = N},
};
static const tn_op_case npi_eye[] = {
    {"square", "N=2", .out = {"f32[2,2] 1 0 0 1"}, .flags = N},
    {"above", "N=2 M=3 k=1 dtype=int8", .out = {"i8[2,3] 0 1 0 0 0 1"}, .flags = N},
    {"no columns", "N=2 M=0", .out = {"f32[2,0]"}, .flags = N},
    {"below 0", "N=2 M=-1", .status = TN_E_ATTR},
};
static const tn_op_case identity[] = {
    {"bool", "shape=(2,2) dtype=bool", .out = {"bool[2,2] 1 0 0 1"}, .flags = N},
    {"vector", "shape=(2,)", .status = TN_E_ATTR, .message = "2 items"},
};
static const tn_op_case indices[] = {
    {"grid", "dimensions=(2,3)", .out = {"i32[2,2,3] 0 0 0 1 1 1 0 1 2 0 1 2"}, .flags = N},
    {"empty", "dimensions=(2,0)", .out = {"i32[2,2,0]"}, .flags = N},
    {"none", "dimensions=()", .out = {"i32[0]"}, .flags = N},
};
static const tn_op_case hamming[] = {
    {"three", "M=3", .out = {"f32[3] 0.08 1 0.08"}, .flags = N},
    {"one", "M=1", .out = {"f32[1] 1"}, .flags = N},
    {"below 0", "M=-3", .out = {"f32[0]"}, .flags = N},
    {"no M", "", .status = TN_E_ATTR, .message = "M is missing"},
};
static const tn_op_case zeros_without_dtype[] = {
    {"float32", "shape=(2,)", .out = {"f32[2] 0 0"}, .flags = N},
    {"a number", "shape=(1,) dtype=4", .out = {"i32[1] 0"}, .flags = N},
    {"no such", "shape=(1,) dtype=13", .status = TN_E_ATTR},
};
static const tn_op_case diag_indices[] = {
    {"square", "", .in = {"f32[2,2] random"}, .out = {"i64[2,2] 0 1 0 1"}, .flags = N},
    {"empty", "", .in = {"f32[0,0]"}, .out = {"i64[2,0]"}, .flags = N},
    {"no square", "", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE},
    {"vector", "", .in = {"f32[2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case arange_like[] = {
    {"shape", "start=1 repeat=2", .in = {"f64[2,2] random"}, .out = {"f64[2,2] 1 1 2 2"}, .flags = N},
    {"axis", "axis=-1 step=0.5", .in = {"f32[2,3] random"}, .out = {"f32[3] 0 0.5 1"}, .flags = N},
    {"beyond", "axis=2", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE, .message = "axis 2"},
};
static const tn_op_case index_array[] = {
    {"all", "", .in = {"f32[2,2] random"}, .out = {"i64[2,2,2] 0 0 0 1 1 0 1 1"}, .flags = N},
    {"axes", "axes=(-1,)", .in = {"u8[1,3] random"}, .out = {"i64[1,3,1] 0 1 2"}, .flags = N},
    {"no axes", "axes=()", .in = {"f32[2] 1 2"}, .out = {"i64[2,0]"}, .flags = N},
    {"beyond", "axes=(1,)", .in = {"f32[2] random"}, .status = TN_E_SHAPE},
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

/* clang-format off */
TN_OP_TESTS(linspace, "_linspace", linspace)
TN_OP_TESTS(logspace, "_npi_logspace", logspace)
TN_OP_TESTS(npi_eye, "_npi_eye", npi_eye)
TN_OP_TESTS(identity, "_npi_identity", identity)
TN_OP_TESTS(indices, "_npi_indices", indices)
TN_OP_TESTS(hamming, "_npi_hamming", hamming)
TN_OP_TESTS(zeros_without_dtype, "_zeros_without_dtype", zeros_without_dtype)
TN_OP_TESTS(diag_indices, "_npi_diag_indices_from", diag_indices)
TN_OP_TESTS(arange_like, "_contrib_arange_like", arange_like)
TN_OP_TESTS(index_array, "_contrib_index_array", index_array)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(zeros), TN_OP_TEST(ones), TN_OP_TEST(full),
                                       TN_OP_TEST(arange), TN_OP_TEST(eye),

        TN_OP_TEST(linspace),
        TN_OP_TEST(logspace),
        TN_OP_TEST(npi_eye),
        TN_OP_TEST(identity),
        TN_OP_TEST(indices),
        TN_OP_TEST(hamming),
        TN_OP_TEST(zeros_without_dtype),
        TN_OP_TEST(diag_indices),
        TN_OP_TEST(arange_like),
        TN_OP_TEST(index_array),
    };

    return tn_op_main(tests);
}

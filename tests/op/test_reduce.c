/* Family reduce: sums and their relatives over axes, norms, positions; the fixed tree over many threads. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD

static const tn_op_case sum[] = {
    {"all", "", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[1] 21"}},
    {"all, 0-d", "", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[] 21"}, .flags = TN_CASE_NP_SHAPE | N},
    {"rows", "axis=1", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[2] 6 15"}, .flags = TN_CASE_GRAD2},
    {"columns", "axis=0", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[3] 5 7 9"}, .flags = TN_CASE_GRAD2},
    {"negative axis", "axis=-1", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[2] 6 15"}},
    {"keepdims", "axis=(0,) keepdims=True", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[1,3] 5 7 9"}},
    {"two axes", "axis=(0,2)", .in = {"f64[2,3,4] range"}, .out = {"f64[3] 60 92 124"}},
    {"exclude", "axis=1 exclude=True", .in = {"f64[2,3,4] range"}, .out = {"f64[3] 60 92 124"}},
    {"exclude keepdims", "axis=1 exclude=1 keepdims=1", .in = {"f64[2,3,4] range"},
     .out = {"f64[1,3,1] 60 92 124"}},
    {"empty tuple", "axis=()", .in = {"i32[3] 1 2 3"}, .out = {"i32[1] 6"}},
    {"exclude none", "axis=None exclude=True", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}},
    {"no elements", "axis=1", .in = {"f32[2,0]"}, .out = {"f32[2] 0 0"}},
    {"nothing out", "axis=0", .in = {"f32[2,0]"}, .out = {"f32[0]"}, .flags = N},
    {"nan", "", .in = {"f32[3] 1 nan 2"}, .out = {"f32[1] nan"}, .flags = N},
    {"wraps", "", .in = {"i32[2] 2147483647 1"}, .out = {"i32[1] -2147483648"}},
    {"i64", "", .in = {"i64[2] 4611686018427387904 3"}, .out = {"i64[1] 4611686018427387907"}},
    {"f16", "", .in = {"f16[3] 0.1 0.2 0.3"}, .out = {"f16[1] 0.6"}},
    {"many rows", "axis=1", .in = {"f32[300,70] random"}, .flags = N},
    {"long row", "", .in = {"f32[200000] random"}, .flags = N},
    {"long rows", "axis=1", .in = {"f32[3,70001] random"}, .flags = N},
    {"many columns", "axis=0", .in = {"f32[2100,300] random"}, .flags = N},
    {"middle", "axis=1", .in = {"f32[5,1500,40] random"}, .flags = N},
    {"outer and inner", "axis=(0,2)", .in = {"f64[5,3,7] random"}, .flags = TN_CASE_GRAD2},
    {"axis too large", "axis=2", .in = {"f32[2,3] 1 2 3 4 5 6"}, .status = TN_E_SHAPE, .message = "axis 2"},
    {"axis twice", "axis=(0,-2)", .in = {"f32[2,3] 1 2 3 4 5 6"}, .status = TN_E_SHAPE, .message = "twice"},
    {"unknown attribute", "axes=1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR,
     .message = "did you mean axis"},
    {"bad tuple", "axis=(1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"too many inputs", "", .in = {"f32[1] 1", "f32[1] 1"}, .status = TN_E_ARG},
};
static const tn_op_case mean[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 2 3 4 5 9"}, .out = {"f32[2] 2 6"}, .flags = TN_CASE_GRAD2},
    {"all", "", .in = {"f64[4,5] random"}, .flags = TN_CASE_GRAD2},
    {"integers", "", .in = {"i32[3] 1 2 5"}, .out = {"i32[1] 2"}},
    {"no elements", "", .in = {"f32[0]"}, .out = {"f32[1] nan"}, .flags = N},
};
static const tn_op_case prod[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[2] 6 120"}, .flags = TN_CASE_GRAD2},
    {"columns", "axis=0", .in = {"f64[3,2] 1 2 3 4 5 6"}, .out = {"f64[2] 15 48"}},
    {"no elements", "", .in = {"f32[0]"}, .out = {"f32[1] 1"}, .flags = N},
};
static const tn_op_case nansum[] = {
    {"skips", "", .in = {"f32[3] 1 nan 2"}, .out = {"f32[1] 3"}, .grad = {"f32[3] 1 0 1"}, .flags = N},
    {"smooth", "axis=0", .in = {"f64[3,2] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case nanprod[] = {
    {"skips", "", .in = {"f32[3] 2 nan 3"}, .out = {"f32[1] 6"}, .grad = {"f32[3] 3 0 2"}, .flags = N},
    {"smooth", "axis=0", .in = {"f64[3,2] random:0.5:2"}},
};
static const tn_op_case max[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 3 2 -4 -5 -6"}, .out = {"f32[2] 3 -4"}, .flags = TN_CASE_GRAD2},
    {"ties share", "", .in = {"f32[3] 5 1 5"}, .out = {"f32[1] 5"}, .grad = {"f32[3] 1 0 1"}, .flags = N},
    {"nan", "", .in = {"f32[3] 5 nan 7"}, .out = {"f32[1] nan"}, .flags = N},
    {"i64", "axis=0", .in = {"i64[2,2] -9007199254740993 1 -9007199254740994 2"},
     .out = {"i64[2] -9007199254740993 2"}},
    {"random", "axis=(0,2)", .in = {"f64[4,3,5] random"}},
    {"u8", "", .in = {"u8[3] 3 250 7"}, .out = {"u8[1] 250"}},
    {"infinite", "", .in = {"f32[2] -inf -inf"}, .out = {"f32[1] -inf"}, .flags = N},
};
static const tn_op_case min[] = {
    {"columns", "axis=0", .in = {"f32[2,3] 1 3 2 -4 5 -6"}, .out = {"f32[3] -4 3 -6"}},
    {"nan", "axis=0", .in = {"f32[2,1] nan 1"}, .out = {"f32[1] nan"}, .flags = N},
    {"random", "axis=1", .in = {"f64[4,9] random"}},
};
static const tn_op_case square_sum[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 2 3 4 5 6"}, .out = {"f32[2] 14 77"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case norm[] = {
    {"two", "", .in = {"f32[2,2] 1 2 2 4"}, .out = {"f32[1] 5"}, .flags = TN_CASE_GRAD2},
    {"one", "ord=1 axis=1", .in = {"f32[2,2] 1 -2 2 4"}, .out = {"f32[2] 3 6"}},
    {"keepdims", "axis=0 keepdims=True", .in = {"f64[3,4] random"}, .flags = TN_CASE_GRAD2},
    {"wider", "out_dtype=float64", .in = {"f32[2] 3 4"}, .out = {"f64[1] 5"}},
    {"three", "ord=3", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "from 1 to 2"},
};
static const tn_op_case argmax[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 3 2 9 5 9"}, .out = {"f32[2] 1 0"}},
    {"columns", "axis=0", .in = {"f32[2,3] 1 3 2 9 5 1"}, .out = {"f32[3] 1 1 0"}},
    {"flat", "", .in = {"f32[2,3] 1 3 2 9 5 1"}, .out = {"f32[1] 3"}},
    {"keepdims", "axis=-1 keepdims=True", .in = {"i32[2,2] 1 3 2 -9"}, .out = {"i32[2,1] 1 0"}},
    {"nan", "", .in = {"f32[4] 1 nan 9 nan"}, .out = {"f32[1] 1"}},
    {"long", "axis=1", .in = {"f64[3,5000] random"}},
    {"empty axis", "axis=1", .in = {"f32[2,0]"}, .status = TN_E_SHAPE, .message = "empty"},
    {"no such axis", "axis=-3", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
};
static const tn_op_case argmin[] = {
    {"rows", "axis=1", .in = {"f32[2,3] 1 3 1 9 5 -9"}, .out = {"f32[2] 0 2"}},
};
static const tn_op_case argmax_channel[] = {
    {"rows", "", .in = {"f32[2,3] 1 3 1 9 5 -9"}, .out = {"f32[2] 1 0"}},
    {"one axis", "", .in = {"f32[2] 1 3"}, .status = TN_E_SHAPE},
};

static const tn_op_case moments[] = {
    {"rows", "axes=(1,)", .in = {"f64[2,2] 1 3 -2 4"}, .out = {"f64[2] 2 1", "f64[2] 1 9"},
     .flags = TN_CASE_GRAD2},
    {"keepdims", "axes=(0,2) keepdims=True", .in = {"f64[2,3,4] random"}, .flags = TN_CASE_GRAD2},
    {"middle", "axes=(-2,)", .in = {"f32[2,700,3] random"}},
    {"all", "axes=(0,1)", .in = {"f32[2,2] 1 3 5 7"}, .out = {"f32[1] 4", "f32[1] 5"}},
    {"far from 0", "axes=(0,)", .in = {"f32[4] 10001 10003 10001 10003"},
     .out = {"f32[1] 10002", "f32[1] 1"}},
    {"half", "axes=(1,)", .in = {"f16[3,600] random"}},
    {"bfloat16", "axes=(0,)", .in = {"bf16[600,3] random"}},
    {"integers", "axes=(0,)", .in = {"i32[4] 1 2 4 8"}, .out = {"i32[1] 3", "i32[1] 7"}},
    {"no axes", "axes=()", .in = {"f32[2] 1 3"}, .status = TN_E_ATTR, .message = "axes is empty"},
    {"no such axis", "axes=(2,)", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
    {"twice", "axes=(0,-2)", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
    {"bool", "axes=(0,)", .in = {"bool[2] 0 1"}, .status = TN_E_DTYPE},
};

/* ---- NumPy's ---- */

#define NP TN_CASE_NP_SHAPE
static const tn_op_case np_sum[] = {
    {"below a narrow type", "dtype=uint8", .in = {"f32[3] -7 2 1"}, .out = {"u8[1] 0"},
     .flags = TN_CASE_NO_GRAD},
    {"all", "", .in = {"f64[2,3] random"}, .flags = NP | TN_CASE_GRAD2},
    {"rows", "axis=1", .in = {"f64[2,3,2] random"}, .flags = NP | TN_CASE_GRAD2},
    {"no axis", "axis=()", .in = {"i32[2] 1 2"}, .out = {"i32[2] 1 2"}, .flags = NP},
    {"scalar", "", .in = {"f64[] 2"}, .out = {"f64[] 2"}, .flags = NP},
    {"bool", "", .in = {"bool[3] 1 1 0"}, .out = {"i64[] 2"}, .flags = NP | N},
    {"type", "axis=0 dtype=float64", .in = {"f32[2,1] 1 2"}, .out = {"f64[1] 3"}, .flags = NP},
    {"type of integers", "dtype=float32", .in = {"i32[2] 1 2"}, .out = {"f32[] 3"}, .flags = NP | N},
    {"no elements", "axis=0", .in = {"f32[0,2]"}, .out = {"f32[2] 0 0"}, .flags = NP},
    {"initial", "initial=1", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "initial"},
    {"axis", "axis=2", .in = {"f32[2,3] random"}, .status = TN_E_SHAPE, .message = "axis 2"},
};
static const tn_op_case np_mean[] = {
    {"columns", "axis=0 keepdims=1", .in = {"f64[3,2] random"}, .flags = NP | TN_CASE_GRAD2},
    {"integers", "", .in = {"i64[2] 1 2"}, .out = {"f32[] 1.5"}, .flags = NP | N},
    {"type", "dtype=float64", .in = {"i8[2] 1 2"}, .out = {"f64[] 1.5"}, .flags = NP | N},
    {"narrow", "axis=1 dtype=float32", .in = {"f64[2,2] 1 2 3 5"}, .out = {"f32[2] 1.5 4"}, .flags = NP | N},
};
static const tn_op_case np_prod[] = {
    {"rows", "axis=1", .in = {"f64[2,3] random:0.5:2"}, .flags = NP | TN_CASE_GRAD2},
    {"bool", "", .in = {"bool[2] 1 1"}, .out = {"i64[] 1"}, .flags = NP | N},
};
static const tn_op_case np_max[] = {
    {"rows", "axis=1", .in = {"f64[2,3] random"}, .flags = NP | TN_CASE_GRAD2},
    {"no axis", "axis=()", .in = {"f64[3] random"}, .flags = NP},
    {"nan", "", .in = {"f32[3] 5 nan 7"}, .out = {"f32[] nan"}, .flags = NP | N},
};
static const tn_op_case np_all[] = {
    {"rows", "axis=1", .in = {"f32[2,2] 1 0.5 nan 0"}, .out = {"bool[2] 1 0"}, .flags = NP | N},
    {"no elements", "axis=1", .in = {"i32[2,0]"}, .out = {"bool[2] 1 1"}, .flags = NP | N},
    {"long", "axis=0", .in = {"u8[3000,3] fill:1"}, .out = {"bool[3] 1 1 1"}, .flags = NP | N},
};
static const tn_op_case np_any[] = {
    {"rows", "axis=1", .in = {"f64[2,2] 0 -0 1e-300 0"}, .out = {"bool[2] 0 1"}, .flags = NP | N},
    {"no elements", "", .in = {"f16[0]"}, .out = {"bool[] 0"}, .flags = NP | N},
};
static const tn_op_case np_argmax[] = {
    {"rows", "axis=1", .in = {"f16[2,3] 1 3 2 -1 -2 -1"}, .out = {"i64[2] 1 0"}, .flags = NP | N},
    {"bool", "", .in = {"bool[3] 0 1 1"}, .out = {"i64[] 1"}, .flags = NP | N},
    {"empty", "axis=0", .in = {"f32[0,2]"}, .status = TN_E_SHAPE, .message = "empty axis"},
};
static const tn_op_case np_trace[] = {
    {"matrix", "", .in = {"f64[3,4] random"}, .flags = NP | TN_CASE_GRAD2},
    {"axes", "offset=-1 axis1=2 axis2=0", .in = {"f64[2,3,4] random"}, .flags = NP | TN_CASE_GRAD2},
    {"value", "offset=1", .in = {"i32[2,3] 1 2 3 4 5 6"}, .out = {"i32[] 8"}, .flags = NP},
    {"beside it", "offset=7", .in = {"f64[2,2] 1 2 3 4"}, .out = {"f64[] 0"}, .flags = NP},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"f32[] 0"}, .flags = NP | N},
    {"one axis", "axis2=-2", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_ATTR, .message = "both"},
    {"vector", "", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};

/* clang-format off */
TN_OP_TESTS(sum, "sum", sum)
TN_OP_TESTS(mean, "mean", mean)
TN_OP_TESTS(prod, "prod", prod)
TN_OP_TESTS(nansum, "nansum", nansum)
TN_OP_TESTS(nanprod, "nanprod", nanprod)
TN_OP_TESTS(max, "max", max)
TN_OP_TESTS(min, "min", min)
TN_OP_TESTS(square_sum, "_square_sum", square_sum)
TN_OP_TESTS(moments, "moments", moments)
TN_OP_TESTS(norm, "norm", norm)
TN_OP_TESTS(argmax, "argmax", argmax)
TN_OP_TESTS(argmin, "argmin", argmin)
TN_OP_TESTS(argmax_channel, "argmax_channel", argmax_channel)
TN_OP_TESTS(np_sum, "_np_sum", np_sum)
TN_OP_TESTS(np_mean, "_npi_mean", np_mean)
TN_OP_TESTS(np_prod, "_np_prod", np_prod)
TN_OP_TESTS(np_max, "_np_max", np_max)
TN_OP_TESTS(np_all, "_np_all", np_all)
TN_OP_TESTS(np_any, "_np_any", np_any)
TN_OP_TESTS(np_argmax, "_npi_argmax", np_argmax)
TN_OP_TESTS(np_trace, "_np_trace", np_trace)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(sum),      TN_OP_TEST(mean),   TN_OP_TEST(prod),    TN_OP_TEST(nansum),
        TN_OP_TEST(nanprod),  TN_OP_TEST(max),    TN_OP_TEST(min),     TN_OP_TEST(square_sum),
        TN_OP_TEST(norm),     TN_OP_TEST(argmax), TN_OP_TEST(argmin),  TN_OP_TEST(argmax_channel),
        TN_OP_TEST(moments),  TN_OP_TEST(np_sum), TN_OP_TEST(np_mean), TN_OP_TEST(np_prod),
        TN_OP_TEST(np_max),   TN_OP_TEST(np_all), TN_OP_TEST(np_any),  TN_OP_TEST(np_argmax),
        TN_OP_TEST(np_trace),
    };

    return tn_op_main(tests);
}

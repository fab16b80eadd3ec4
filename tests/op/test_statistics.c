/* Family statistics: moments, variances, averages, percentiles and counts. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE

static const tn_op_case var[] = {
    {"all", "", .in = {"f32[4] 1 2 3 6"}, .out = {"f32[] 3.5"}, .flags = NP | N},
    {"ddof", "axis=1 ddof=1", .in = {"f64[2,2] 1 3 2 2"}, .out = {"f64[2] 2 0"}, .flags = NP | N},
    {"type", "dtype=float64", .in = {"f16[2] 1 2"}, .out = {"f64[] 0.25"}, .flags = NP | N},
    {"far from 0", "", .in = {"f64[2] 1e9 1000000001"}, .out = {"f64[] 0.25"}, .flags = NP | N},
    {"too few", "ddof=2", .in = {"f32[2] 1 2"}, .out = {"f32[] inf"}, .flags = NP | N},
    {"no elements", "axis=0", .in = {"f32[0,1]"}, .out = {"f32[1] nan"}, .flags = NP | N},
    {"long", "axis=(0,2)", .in = {"f32[40,3,70] random"}, .flags = NP | N},
    {"axis", "axis=(1,1)", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE, .message = "twice"},
};
static const tn_op_case std[] = {
    {"all", "", .in = {"f32[4] 1 1 3 3"}, .out = {"f32[] 1"}, .flags = NP | N},
    {"keepdims", "axis=0 keepdims=1", .in = {"f64[2,1] 1 3"}, .out = {"f64[1,1] 1"}, .flags = NP | N},
};
static const tn_op_case average[] = {
    {"all", "", .in = {"f64[2,3] random", "f64[2,3] random:0.5:2"}, .flags = NP},
    {"rows", "axis=1", .in = {"f64[2,3] random", "f64[2,3] random:0.5:2"}, .flags = NP},
    {"line", "axis=1", .in = {"f64[2,3,2] random", "f64[3] random:0.5:2"}, .flags = NP},
    {"plain", "axis=0 weighted=0", .in = {"f64[3,2] random"}, .flags = NP},
    {"returned", "axis=0 returned=1", .in = {"f32[2] 1 5", "f32[2] 1 3"}, .out = {"f32[] 4", "f32[] 4"},
     .flags = NP | N},
    {"f16", "", .in = {"f16[2] 1 5", "f16[2] 1 3"}, .out = {"f16[] 4"}, .flags = NP | N},
    {"length", "axis=1", .in = {"f32[2,3] random", "f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"shape", "axis=1", .in = {"f32[2,3] random", "f32[3,2] random"}, .status = TN_E_SHAPE},
    {"no weights", "", .in = {"f32[2] 1 2"}, .status = TN_E_ARG},
};
static const tn_op_case percentile[] = {
    {"rows", "axis=1", .in = {"f32[2,4] 4 1 3 2 1 1 1 9", "f64[2] 50 100"}, .out = {"f32[2,2] 2.5 1 4 9"},
     .flags = NP | N},
    {"integers", "q_scalar=25", .in = {"i32[3] 4 0 2"}, .out = {"f32[] 1"}, .flags = NP | N},
    {"lower", "q_scalar=40 interpolation=lower", .in = {"f64[3] 2 4 8"}, .out = {"f64[] 2"}, .flags = NP | N},
    {"higher", "q_scalar=40 interpolation=higher", .in = {"f64[3] 2 4 8"}, .out = {"f64[] 4"},
     .flags = NP | N},
    {"midpoint", "q_scalar=40 interpolation=midpoint", .in = {"f64[3] 2 4 8"}, .out = {"f64[] 3"},
     .flags = NP | N},
    {"nearest", "q_scalar=40 interpolation=nearest", .in = {"f64[3] 2 4 8"}, .out = {"f64[] 4"},
     .flags = NP | N},
    {"nan", "q_scalar=0", .in = {"f32[3] 2 nan 1"}, .out = {"f32[] nan"}, .flags = NP | N},
    {"long", "axis=0 q_scalar=31", .in = {"f32[2100,3] random"}, .flags = NP | N},
    {"empty", "axis=0 q_scalar=1", .in = {"f32[0,2]"}, .out = {"f32[2] nan nan"}, .flags = NP | N},
    {"choice", "q_scalar=1 interpolation=cubic", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
};
static const tn_op_case histogram[] = {
    {"range", "bin_cnt=2 range=(0,4)", .in = {"f32[6] 0 1.5 2 4 5 nan"},
     .out = {"i64[2] 2 2", "f32[3] 0 2 4"}, .flags = N},
    {"bins", "", .in = {"f64[4] 1 2 3 9", "f64[3] 0 2 3"}, .out = {"i64[2] 1 2", "f64[3] 0 2 3"}, .flags = N},
    {"empty", "bin_cnt=1 range=(0,1)", .in = {"f32[0]"}, .out = {"i64[1] 0", "f32[2] 0 1"}, .flags = N},
    {"no range", "bin_cnt=2", .in = {"f32[1] 1"}, .status = TN_E_ATTR, .message = "range"},
    {"range turned round", "bin_cnt=2 range=(1,0)", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
    {"below 0", "bin_cnt=-1 range=(0,1)", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case bincount[] = {
    {"counts", "", .in = {"i32[4] 0 3 1 3"}, .out = {"i32[4] 1 1 0 2"}, .flags = N},
    {"weights", "has_weights=1 minlength=3", .in = {"u8[3] 0 1 1", "f32[3] 0.5 1 2"},
     .out = {"f32[3] 0.5 3 0"}, .flags = N},
    {"empty", "", .in = {"i64[0]"}, .out = {"i64[0]"}, .flags = N},
    {"floats", "", .in = {"f32[1] 1"}, .status = TN_E_DTYPE},
    {"length", "minlength=-1", .in = {"i32[1] 1"}, .status = TN_E_ATTR},
};

/* clang-format off */
TN_OP_TESTS(var, "_npi_var", var)
TN_OP_TESTS(std, "_npi_std", std)
TN_OP_TESTS(average, "_npi_average", average)
TN_OP_TESTS(percentile, "_npi_percentile", percentile)
TN_OP_TESTS(histogram, "_histogram", histogram)
TN_OP_TESTS(bincount, "_npi_bincount", bincount)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(var),        TN_OP_TEST(std),       TN_OP_TEST(average),
        TN_OP_TEST(percentile), TN_OP_TEST(histogram), TN_OP_TEST(bincount),
    };

    return tn_op_main(tests);
}

/* Family scan: running sums, differences, polynomials. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define G TN_CASE_GRAD2

static const tn_op_case cumsum[] = {
    {"flat", "", .in = {"f64[2,3] random"}, .flags = G},
    {"axis", "axis=-2", .in = {"f64[2,3,2] random"}, .flags = G},
    {"bool", "", .in = {"bool[3] 1 0 1"}, .out = {"i64[3] 1 1 2"}, .flags = N},
    {"u8 wraps", "", .in = {"u8[2] 200 100"}, .out = {"u8[2] 200 44"}, .flags = N},
    {"i64", "", .in = {"i64[2] 4611686018427387905 1"},
     .out = {"i64[2] 4611686018427387905 4611686018427387906"}, .flags = N},
    {"type", "axis=0 dtype=int32", .in = {"f32[3] 0.5 1.5 -1.5"}, .out = {"i32[3] 0 1 0"}, .flags = N},
    {"wider", "dtype=float64", .in = {"f32[2] 1 2"}, .out = {"f64[2] 1 3"}},
    {"scalar", "", .in = {"f64[] 2"}, .out = {"f64[1] 2"}, .flags = NP},
    {"long", "axis=0", .in = {"f32[1500,3] random"}, .flags = N},
    {"empty", "axis=0", .in = {"f32[0,2]"}, .out = {"f32[0,2]"}},
    {"beyond", "axis=2", .in = {"f32[2,2] random"}, .status = TN_E_SHAPE},
};
static const tn_op_case diff[] = {
    {"once", "", .in = {"f64[2,4] random"}, .flags = G},
    {"twice", "n=2 axis=0", .in = {"f64[4,2] random"}, .flags = G},
    {"not", "n=0", .in = {"f64[3] random"}, .flags = G},
    {"too often", "n=7", .in = {"f64[2,3] random"}, .out = {"f64[2,0]"}},
    {"integers", "", .in = {"i64[3] 4611686018427387905 1 2"}, .out = {"i64[2] -4611686018427387904 1"},
     .flags = N},
    {"u8 wraps", "", .in = {"u8[2] 2 1"}, .out = {"u8[1] 255"}, .flags = N},
    {"below 0", "n=-1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"beyond", "axis=1", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE, .message = "axis 1"},
};
static const tn_op_case ediff1d[] = {
    {"plain", "", .in = {"f64[2,3] random"}},
    {"numbers", "to_begin_scalar=0 to_end_scalar=2", .in = {"f64[3] random"}},
    {"arrays", "to_begin_arr_given=1 to_end_arr_given=1",
     .in = {"f64[3] random", "f64[2] random", "f64[1] random"}},
    {"one array", "to_end_arr_given=1 to_begin_scalar=3", .in = {"i32[3] 1 4 9", "i32[1] 7"},
     .out = {"i32[4] 3 3 5 7"}, .flags = N},
    {"one element", "", .in = {"f64[1] 1"}, .out = {"f64[0]"}},
    {"no array", "to_end_arr_given=1", .in = {"f32[1] 1"}, .status = TN_E_ARG},
};
static const tn_op_case polyval[] = {
    {"cubic", "", .in = {"f64[4] random", "f64[2,3] random"}},
    {"constant", "", .in = {"f64[1] 3", "f64[2] 1 2"}, .out = {"f64[2] 3 3"}},
    {"no terms", "", .in = {"f32[0]", "f32[2] 1 2"}, .out = {"f32[2] 0 0"}, .flags = N},
    {"integers", "", .in = {"i8[2] 100 27", "i8[1] 2"}, .out = {"i8[1] -29"}, .flags = N},
    {"empty", "", .in = {"f32[2] 1 2", "f32[0]"}, .out = {"f32[0]"}},
    {"matrix", "", .in = {"f32[1,1] 1", "f32[1] 1"}, .status = TN_E_SHAPE},
};

/* clang-format off */
TN_OP_TESTS(cumsum, "_np_cumsum", cumsum)
TN_OP_TESTS(diff, "_npi_diff", diff)
TN_OP_TESTS(ediff1d, "_npi_ediff1d", ediff1d)
TN_OP_TESTS(polyval, "_npi_polyval", polyval)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(cumsum),
        TN_OP_TEST(diff),
        TN_OP_TEST(ediff1d),
        TN_OP_TEST(polyval),
    };

    return tn_op_main(tests);
}

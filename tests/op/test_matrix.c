/* Family matrix: values by hand, every form of transpose, vectors, sizes that cut tiles; gradients by
 * differences. */
#include "support/op_case.h"

static const tn_op_case dot_cases[] = {
    {"matrices", "", .in = {"f32[2,3] range", "f32[3,2] range"}, .out = {"f32[2,2] 10 13 28 40"}},
    {"f16", "", .in = {"f16[2,3] range", "f16[3,2] range"}, .out = {"f16[2,2] 10 13 28 40"},
     .flags = TN_CASE_NO_GRAD},
    {"bf16 rounds once", "", .in = {"bf16[1,3] 256 1 1", "bf16[3,1] 1 1 1"}, .out = {"bf16[1,1] 258"},
     .flags = TN_CASE_NO_GRAD},
    {"f16 nothing to sum", "", .in = {"f16[2,0]", "f16[0,2]"}, .out = {"f16[2,2] 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"integers", "", .in = {"i32[1,1] 1", "i32[1,1] 1"}, .status = TN_E_DTYPE},
    {"a turned", "transpose_a=True", .in = {"f32[3,2] range", "f32[3,2] range"},
     .out = {"f32[2,2] 20 26 26 35"}},
    {"b turned", "transpose_b=True", .in = {"f32[2,3] range", "f32[2,3] range"},
     .out = {"f32[2,2] 5 14 14 50"}},
    {"both turned", "transpose_a=1 transpose_b=1", .in = {"f64[4,3] random", "f64[5,4] random"}},
    {"vectors", "", .in = {"f64[3] 1 2 3", "f64[3] 4 5 6"}, .out = {"f64[1] 32"}},
    {"vectors, np", "", .in = {"f64[3] 1 2 3", "f64[3] 4 5 6"}, .out = {"f64[] 32"},
     .flags = TN_CASE_NP_SHAPE},
    {"matrix and vector", "", .in = {"f64[2,3] range", "f64[3] 1 0 2"}, .out = {"f64[2] 4 13"}},
    {"vector and matrix", "", .in = {"f64[2] 1 2", "f64[2,3] range"}, .out = {"f64[3] 6 9 12"}},
    {"many axes", "", .in = {"f64[2,3,4] random", "f64[4,5,2] random"}},
    {"many axes turned", "transpose_a=1 transpose_b=1", .in = {"f64[4,3,2] random", "f64[5,2,4] random"}},
    {"one row", "", .in = {"f64[1,60] random", "f64[60,40] random"}},
    {"one row turned", "transpose_b=1", .in = {"f64[1,60] random", "f64[40,60] random"}},
    {"one column", "", .in = {"f64[50,60] random", "f64[60,1] random"}},
    {"outer", "", .in = {"f64[5,1] random", "f64[1,7] random"}},
    {"tiles", "", .in = {"f32[130,300] random", "f32[300,270] random"}, .flags = TN_CASE_NO_GRAD,
     .tolerance = 1e-4},
    {"nothing to sum", "", .in = {"f32[2,0]", "f32[0,2]"}, .out = {"f32[2,2] 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"no rows", "", .in = {"f32[0,2]", "f32[2,2] random"}, .out = {"f32[0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"sizes", "", .in = {"f32[2,3] range", "f32[2,3] range"}, .status = TN_E_SHAPE, .message = "sum runs"},
    {"scalar", "", .in = {"f32[] 1", "f32[2,3] range"}, .status = TN_E_SHAPE},
    {"turned vectors", "transpose_a=1", .in = {"f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[2,2] range", "i32[2,2] range"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(dot, "dot", dot_cases)

static const tn_op_case batch_cases[] = {
    {"two", "", .in = {"f32[2,1,2] 1 2 3 4", "f32[2,2,1] 1 1 2 3"}, .out = {"f32[2,1,1] 3 18"}},
    {"bf16", "", .in = {"bf16[2,1,2] 1 2 3 4", "bf16[2,2,1] 1 1 2 3"}, .out = {"bf16[2,1,1] 3 18"},
     .flags = TN_CASE_NO_GRAD},
    {"few", "", .in = {"f64[3,4,5] random", "f64[3,5,2] random"}},
    {"many", "transpose_a=1", .in = {"f64[11,5,4] random", "f64[11,5,2] random"}},
    {"turned", "transpose_b=1", .in = {"f64[9,4,5] random", "f64[9,2,5] random"}},
    {"both turned, four axes", "transpose_a=1 transpose_b=1",
     .in = {"f64[2,2,3,4] random", "f64[2,2,5,3] random"}},
    {"large", "", .in = {"f32[9,60,70] random", "f32[9,70,50] random"}, .flags = TN_CASE_NO_GRAD,
     .tolerance = 1e-4},
    {"nothing, very often", "", .in = {"f32[4398046511104,0,2]", "f32[4398046511104,2,0]"},
     .out = {"f32[4398046511104,0,0]"}, .flags = TN_CASE_NO_GRAD},
    {"batches", "", .in = {"f32[2,1,2] range", "f32[3,2,1] range"}, .status = TN_E_SHAPE},
    {"matrices", "", .in = {"f32[1,2] range", "f32[2,1] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(batch_dot, "batch_dot", batch_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(dot), TN_OP_TEST(batch_dot)};

    return tn_op_main(tests);
}

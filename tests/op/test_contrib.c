/* Family contrib: values by hand, or from MXNet (tests/mxnet); gradients by differences. */
#include "support/op_case.h"

static const tn_op_case div_sqrt_dim[] = {
    {"four", "", .in = {"f32[2,4] range"}, .out = {"f32[2,4] 0 0.5 1 1.5 2 2.5 3 3.5"},
     .flags = TN_CASE_GRAD2},
    {"whole", "", .in = {"i32[5] 4 -3 2 1 0"}, .out = {"i32[5] 2 -1 1 0 0"}},
    {"many", "", .in = {"f64[3,700] random"}},
    {"empty", "", .in = {"f32[2,0]"}, .out = {"f32[2,0]"}},
    {"bool", "", .in = {"bool[2] 1 0"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(div_sqrt_dim, "_contrib_div_sqrt_dim", div_sqrt_dim)

static const tn_op_case quadratic[] = {
    {"one", "a=1 b=2 c=3", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[2,2] 6 11 18 27"},
     .flags = TN_CASE_GRAD2},
    {"none", "", .in = {"f64[2] 1 nan"}, .out = {"f64[2] 0 nan"}, .flags = TN_CASE_NO_GRAD},
    {"whole", "a=0.5 c=-0.25", .in = {"i8[3] 0 1 3"}, .out = {"i8[3] 0 0 4"}},
    {"empty", "a=1", .in = {"f32[0]"}, .out = {"f32[0]"}},
};
TN_OP_TESTS(quadratic, "_contrib_quadratic", quadratic)

static const tn_op_case multiplier[] = {
    {"bool", "scalar=3", .in = {"bool[2] 1 0"}, .out = {"bool[2] 1 0"}},
    {"forward", "scalar=-2", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"f32[0]"}, .out = {"f32[0]"}},
    {"text", "scalar=x", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(multiplier, "_contrib_gradientmultiplier", multiplier)

static const tn_op_case index_copy[] = {
    {"rows", "", .in = {"f32[3,2] range", "i32[2] 2 0", "f32[2,2] 10 11 12 13"},
     .out = {"f32[3,2] 12 13 2 3 10 11"}},
    {"one dimension", "", .in = {"u8[3] 1 2 3", "f32[1] 1.9", "u8[1] 9"}, .out = {"u8[3] 1 9 3"}},
    {"gradient", "", .in = {"f64[5,2,3] random", "i64[3] 4 0 2", "f64[3,2,3] random"}, .no_grad_inputs = 2},
    {"none", "", .in = {"f32[2] 1 2", "i32[0]", "f32[0]"}, .out = {"f32[2] 1 2"}, .flags = TN_CASE_NO_GRAD},
    {"more rows", "", .in = {"f32[1,2] range", "i32[2] 0 0", "f32[2,2] range"}, .status = TN_E_SHAPE},
    {"columns", "", .in = {"f32[3,2] range", "i32[2] 0 1", "f32[2,3] range"}, .status = TN_E_SHAPE},
    {"types", "", .in = {"f32[3] range", "i32[1] 0", "f64[1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(index_copy, "_contrib_index_copy", index_copy)

static const tn_op_case allclose[] = {
    {"close", "rtol=0.1 atol=0", .in = {"f32[2] 1 10", "f32[2] 1.09 9.2"}, .out = {"u8[1] 1"}},
    {"apart", "rtol=0.1 atol=0", .in = {"f32[2] 1 10", "f32[2] 1.09 8"}, .out = {"u8[1] 0"}},
    {"infinite", "", .in = {"f64[2] inf -inf", "f64[2] inf -inf"}, .out = {"u8[1] 1"}},
    {"opposite", "", .in = {"f64[1] inf", "f64[1] -inf"}, .out = {"u8[1] 1"}},
    {"nan", "", .in = {"f16[2] nan 1", "f16[2] nan 1"}, .out = {"u8[1] 1"}},
    {"nan is not", "equal_nan=0", .in = {"f16[2] nan 1", "f16[2] nan 1"}, .out = {"u8[1] 0"}},
    {"nan and a number", "rtol=10", .in = {"f16[1] nan", "f16[1] 1"}, .out = {"u8[1] 0"}},
    {"nothing", "", .in = {"f32[0]", "f32[0]"}, .out = {"u8[1] 1"}},
    {"np", "", .in = {"i8[2] 1 2", "i8[2] 1 2"}, .out = {"u8[] 1"}, .flags = TN_CASE_NP_SHAPE},
    {"shapes", "", .in = {"f32[2] 1 2", "f32[1] 1"}, .status = TN_E_SHAPE},
    {"types", "", .in = {"f32[1] 1", "f64[1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(allclose, "_contrib_allclose", allclose)

static const tn_op_case fft[] = {
    {"four", "", .in = {"f32[1,4] 1 2 3 5"}, .out = {"f32[1,8] 11 0 -2 3 -3 0 -2 -3"}},
    {"lengths", "compute_size=1", .in = {"f64[2,3,12] random"}, .flags = TN_CASE_GRAD2},
    {"prime", "", .in = {"f64[2,7] random"}},
    {"one", "", .in = {"f64[2,1] 3 4"}, .out = {"f64[2,2] 3 0 4 0"}},
    {"bf16", "", .in = {"bf16[2] 1 2"}, .out = {"bf16[4] 3 0 -1 0"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"f32[0,4]"}, .out = {"f32[0,8]"}, .flags = TN_CASE_NO_GRAD},
    {"integers", "", .in = {"i32[4] range"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(fft, "_contrib_fft", fft)

static const tn_op_case ifft[] = {
    {"back", "", .in = {"f32[1,8] 11 0 -2 3 -3 0 -2 -3"}, .out = {"f32[1,4] 4 8 12 20"}},
    {"lengths", "", .in = {"f64[2,30] random"}, .flags = TN_CASE_GRAD2},
    {"odd", "", .in = {"f32[3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(ifft, "_contrib_ifft", ifft)

static const tn_op_case selfatt_qk[] = {
    {"heads", "heads=2", .in = {"f64[5,3,18] random"}},
    {"f16", "heads=1", .in = {"f16[1,1,3] 2 3 4"}, .out = {"f16[1,1,1] 6"}, .flags = TN_CASE_NO_GRAD},
    {"no place", "heads=1", .in = {"f32[0,2,3]"}, .out = {"f32[2,0,0]"}, .flags = TN_CASE_NO_GRAD},
    {"rest", "heads=2", .in = {"f32[1,1,9] range"}, .status = TN_E_ATTR},
    {"rank", "heads=1", .in = {"f32[1,3] range"}, .status = TN_E_SHAPE},
    {"no head", "heads=0", .in = {"f32[1,1,3] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(selfatt_qk, "_contrib_interleaved_matmul_selfatt_qk", selfatt_qk)

static const tn_op_case selfatt_valatt[] = {
    {"heads", "heads=2", .in = {"f64[4,3,12] random", "f64[6,4,4] random"}, .flags = TN_CASE_GRAD2},
    {"attention", "heads=2", .in = {"f32[4,3,12] random", "f32[6,4,3] random"}, .status = TN_E_SHAPE},
    {"width", "heads=1", .in = {"f32[1,1,4] range", "f32[1,1,1] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(selfatt_valatt, "_contrib_interleaved_matmul_selfatt_valatt", selfatt_valatt)

static const tn_op_case encdec_qk[] = {
    {"heads", "heads=2", .in = {"f64[3,2,6] random", "f64[5,2,12] random"}, .flags = TN_CASE_GRAD2},
    {"no key", "heads=1", .in = {"f32[2,1,1] range", "f32[0,1,2]"}, .out = {"f32[1,2,0]"},
     .flags = TN_CASE_NO_GRAD},
    {"width", "heads=1", .in = {"f32[2,1,2] range", "f32[2,1,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(encdec_qk, "_contrib_interleaved_matmul_encdec_qk", encdec_qk)

static const tn_op_case encdec_valatt[] = {
    {"heads", "heads=3", .in = {"f64[5,2,12] random", "f64[6,4,5] random"}, .flags = TN_CASE_GRAD2},
    {"no value", "heads=1", .in = {"f32[0,1,2]", "f32[1,2,0]"}, .out = {"f32[2,1,1] 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"heads of others", "heads=2", .in = {"f32[2,1,4] range", "f32[1,2,2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(encdec_valatt, "_contrib_interleaved_matmul_encdec_valatt", encdec_valatt)

static const tn_op_case sparse_reg[] = {
    {"inference", "", .in = {"f32[2,1] 0.2 0.6", "f32[1] 0.5"},
     .out = {"f32[2,1] 0.2 0.6", NULL, "f32[1] 0.5"}, .flags = TN_CASE_NO_GRAD},
    {"training", "momentum=0.5", .in = {"f32[2,1] 0.2 0.6", "f32[1] 0.5"},
     .out = {"f32[2,1] 0.2 0.6", NULL, "f32[1] 0.45"}, .flags = TN_CASE_NO_GRAD | TN_CASE_TRAIN},
    {"no example", "", .in = {"f32[0,1]", "f32[1] 0.5"}, .out = {"f32[0,1]", NULL, "f32[1] 0.5"},
     .flags = TN_CASE_NO_GRAD | TN_CASE_TRAIN},
    {"units", "", .in = {"f32[2,1] range", "f32[2] 1 1"}, .status = TN_E_SHAPE},
    {"target", "sparseness_target=2", .in = {"f32[2,1] range", "f32[1] 1"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(sparse_reg, "IdentityAttachKLSparseReg", sparse_reg)

static const tn_op_case svm[] = {
    {"squared", "", .in = {"f32[1,3] 0.5 2 -3", "f32[1] 0"}, .out = {"f32[1,3] 0.5 2 -3"},
     .grad = {"f32[1,3] -1 6 0"}, .flags = TN_CASE_NO_GRAD},
    {"hinge", "use_linear=1 regularization_coefficient=2", .in = {"f64[1,3] 0.5 2 -3", "f64[1] 1"},
     .grad = {"f64[1,3] 2 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"no class", "", .in = {"f32[1,1] 0", "f32[1] nan"}, .grad = {"f32[1,1] 2"}, .flags = TN_CASE_NO_GRAD},
    {"labels", "", .in = {"f32[2,3] range", "f32[3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(svm, "SVMOutput", svm)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(div_sqrt_dim), TN_OP_TEST(quadratic),     TN_OP_TEST(multiplier),
        TN_OP_TEST(index_copy),   TN_OP_TEST(allclose),      TN_OP_TEST(fft),
        TN_OP_TEST(ifft),         TN_OP_TEST(selfatt_qk),    TN_OP_TEST(selfatt_valatt),
        TN_OP_TEST(encdec_qk),    TN_OP_TEST(encdec_valatt), TN_OP_TEST(sparse_reg),
        TN_OP_TEST(svm)};

    return tn_op_main(tests);
}

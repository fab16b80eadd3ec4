/* Family fused: operators of passes. Values computed by hand from the definitions (Python, 17 digits). */
#include "support/op_case.h"
#include "support/op_run.h"
#include "tenon/plugin/pointwise.h"

#include <string.h>

#define NAN_TEXT "f64[2] nan nan"

static const tn_op_case weight_cases[] = {
    {"scaled", "fix_gamma=0 eps=0", .in = {"f64[2,2] 1 2 3 4", "f64[2] 2 3", "f64[2] 4 0.25"},
     .out = {"f64[2,2] 1 2 18 24"}},
    {"fixed gamma", "eps=0", .in = {"f64[2,1,2] 1 2 3 4", NAN_TEXT, "f64[2] 4 0.25"},
     .out = {"f64[2,1,2] 0.5 1 6 8"}},
    {"eps", "fix_gamma=0 eps=1", .in = {"f32[1,3] 1 2 3", "f32[1] 2", "f32[1] 3"}, .out = {"f32[1,3] 1 2 3"}},
    {"one dimension", "eps=0", .in = {"f32[2] 1 2", "f32[2] 1 1", "f32[2] 4 16"}, .out = {"f32[2] 0.5 0.5"}},
    {"half", "fix_gamma=0 eps=0", .in = {"f16[2,2] 1 2 3 4", "f32[2] 2 3", "f32[2] 4 0.25"},
     .out = {"f16[2,2] 1 2 18 24"}},
    {"bf16", "fix_gamma=0 eps=0", .in = {"bf16[1,2] 1 2", "f32[1] 2", "f32[1] 4"}, .out = {"bf16[1,2] 1 2"}},
    {"rounded once", "eps=0", .in = {"f32[1,1] 3", "f32[1] 1", "f32[1] 9"}, .out = {"f32[1,1] 1"}},
    {"many", "fix_gamma=0", .in = {"f32[70,30,3,3] random", "f32[70] random", "f32[70] random:0.5:2"}},
    {"more than a tile", "", .in = {"f32[3,40,5,7] random", "f32[3] random", "f32[3] random:0.5:2"}},
    {"nothing", "", .in = {"f32[2,0]", "f32[2] 1 1", "f32[2] 1 1"}, .out = {"f32[2,0]"}},
    {"channels", "", .in = {"f32[2,2] range", "f32[3] range", "f32[2] range"}, .status = TN_E_SHAPE},
    {"scalar", "", .in = {"f32[] 1", "f32[1] 1", "f32[1] 1"}, .status = TN_E_SHAPE},
    {"statistics", "", .in = {"f16[2,2] range", "f16[2] range", "f16[2] range"}, .status = TN_E_DTYPE},
    {"integers", "", .in = {"i32[2,2] range", "f32[2] range", "f32[2] range"}, .status = TN_E_DTYPE},
    {"negative eps", "eps=-1", .in = {"f32[2,2] range", "f32[2] range", "f32[2] range"}, .status = TN_E_ATTR},
};

static const tn_op_case bias_cases[] = {
    {"no bias", "fix_gamma=0 eps=0 no_bias=1",
     .in = {"f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 2", "f64[2] 4 0.25"}, .out = {"f64[2] 9 8"}},
    {"bias", "fix_gamma=0 eps=0",
     .in = {"f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 2", "f64[2] 4 0.25", "f64[2] 3 1"},
     .out = {"f64[2] 12 14"}},
    {"fixed gamma", "eps=0 no_bias=1", .in = {NAN_TEXT, "f64[2] 10 20", "f64[2] 1 2", "f64[2] 4 0.25"},
     .out = {"f64[2] 9.5 16"}},
    {"half", "eps=0", .in = {"f32[1] 1", "f32[1] 10", "f32[1] 1", "f32[1] 4", "f16[1] 3"},
     .out = {"f16[1] 11"}},
    {"half, no bias", "eps=0 no_bias=1 dtype=float16",
     .in = {"f32[1] 1", "f32[1] 10", "f32[1] 1", "f32[1] 4"}, .out = {"f16[1] 9.5"}},
    {"many", "fix_gamma=0",
     .in = {"f32[70] random", "f32[70] random", "f32[70] random", "f32[70] random:0.5:2", "f32[70] random"}},
    {"type of the bias", "dtype=float16", .in = {"f32[1] 1", "f32[1] 10", "f32[1] 1", "f32[1] 4", "f32[1] 3"},
     .status = TN_E_DTYPE},
    {"channels", "no_bias=1", .in = {"f32[2] 1 1", "f32[2] 1 1", "f32[3] 1 1 1", "f32[2] 1 1"},
     .status = TN_E_SHAPE},
    {"matrix", "no_bias=1", .in = {"f32[2,1] 1 1", "f32[2] 1 1", "f32[2] 1 1", "f32[2] 1 1"},
     .status = TN_E_SHAPE},
    {"integers", "", .in = {"f32[1] 1", "f32[1] 10", "f32[1] 1", "f32[1] 4", "i32[1] 3"},
     .status = TN_E_DTYPE},
};

/* What inference refuses, with or without a kernel. */
static const tn_op_case conv_wrong[] = {
    {"addend's shape", "kernel=(1,) num_filter=2 no_bias=1 with_sum=1",
     .in = {"f32[1,2,3] range", "f32[2,2,1] range", "f32[1,2,4] range"}, .status = TN_E_SHAPE},
    {"addend's rank", "kernel=(1,) num_filter=2 with_sum=1",
     .in = {"f32[1,2,3] range", "f32[2,2,1] range", "f32[2] range", "f32[1,2] range"}, .status = TN_E_SHAPE},
    {"no addend", "kernel=(1,) num_filter=2 no_bias=1 with_sum=1",
     .in = {"f32[1,2,3] range", "f32[2,2,1] range"}, .status = TN_E_ARG},
    {"weight", "kernel=(1,) num_filter=2 no_bias=1", .in = {"f32[1,2,3] range", "f32[2,3,1] range"},
     .status = TN_E_SHAPE},
    {"bias", "kernel=(1,) num_filter=2", .in = {"f32[1,2,3] range", "f32[2,2,1] range", "f32[3] range"},
     .status = TN_E_SHAPE},
    {"no function", "kernel=(1,) num_filter=2 act_type=gelu",
     .in = {"f32[1,2,3] range", "f32[2,2,1] range", "f32[2] range"}, .status = TN_E_ATTR},
    {"types", "kernel=(1,) num_filter=2", .in = {"f32[1,2,3] range", "f64[2,2,1] range", "f32[2] range"},
     .status = TN_E_DTYPE},
};

static const tn_op_case dense_wrong[] = {
    {"addend", "num_hidden=2 no_bias=1 with_sum=1",
     .in = {"f32[3,2] range", "f32[2,2] range", "f32[3,3] range"}, .status = TN_E_SHAPE},
    {"weight", "num_hidden=2 with_sum=1",
     .in = {"f32[3,2] range", "f32[2,3] range", "f32[2] range", "f32[3,2] range"}, .status = TN_E_SHAPE},
    {"no bias", "num_hidden=2", .in = {"f32[3,2] range", "f32[2,2] range"}, .status = TN_E_ARG},
};

static const tn_op_case reorder_wrong[] = {
    {"shape", "", .in = {"f32[2,3] range", "f32[2,3] range"}, .status = TN_E_ARG},
};

/* Dtypes in programs: float32 0, float64 1, float16 2, int32 4, bool 7, bfloat16 12.
 * Numbers: hexadecimal bits of doubles. */
static const tn_op_case pointwise_cases[] = {
    {"open type", "program=square[](i0):=;elemwise_add[](t0,i0):=>t1 num_args=1", .in = {"f64[2] 2 3"},
     .out = {"f64[2] 6 12"}},
    {"one step", "program=exp[](i0):0>t0 num_args=1", .in = {"f32[2] 0 0"}, .out = {"f32[2] 1 1"}},
    {"two results", "program=square[](i0):0;negative[](t0):0>t1,t0 num_args=1", .in = {"f32[3] 1 2 3"},
     .out = {"f32[3] -1 -4 -9", "f32[3] 1 4 9"}},
    {"one result twice", "program=square[](i0):0>t0,t0 num_args=1", .in = {"f32[2] 2 3"},
     .out = {"f32[2] 4 9", "f32[2] 4 9"}},
    {"number", "program=_mul_scalar[4000000000000000,1](i0):1>t0 num_args=1", .in = {"f64[2] 1 3"},
     .out = {"f64[2] 2 6"}},
    {"run-time number",
     "program=_mul_scalar[r2,1](i0):1;_plus_scalar[r17,1](t0):1>t1 num_args=1 r0=5 r15=0.5",
     .in = {"f64[2] 1 3"}, .out = {"f64[2] 5.5 15.5"}},
    {"rounded between", "program=elemwise_add[](i0,i1):2;elemwise_sub[](t0,i1):2>t1 num_args=2",
     .in = {"f16[2] 1 1", "f16[2] 2048 2"}, .out = {"f16[2] 0 1"}},
    {"broadcast", "program=broadcast_mul[](i0,i1):0;broadcast_add[](t0,i2):0>t1 num_args=3",
     .in = {"f32[2,3] range", "f32[3] 1 2 3", "f32[2,1] 10 20"}, .out = {"f32[2,3] 10 12 16 23 28 35"}},
    {"one element", "program=broadcast_mul[](i0,i1):0>t0 num_args=2", .in = {"f32[2,2] range", "f32[1] 3"},
     .out = {"f32[2,2] 0 3 6 9"}},
    {"integers", "program=elemwise_mul[](i0,i0):4;_minus_scalar[3ff0000000000000,1](t0):4>t1 num_args=1",
     .in = {"i32[3] -2 0 3"}, .out = {"i32[3] 3 -1 8"}},
    {"a choice", "program=Activation[0](i0):0;LeakyReLU[1,3fe0000000000000,0,0](i0):0>t0,t1 num_args=1",
     .in = {"f32[2] -2 3"}, .out = {"f32[2] 0 3", "f32[2] -1 3"}},
    {"condition", "program=_greater[](i0,i1):0;where[](t0,i0,i1):0>t1 num_args=2",
     .in = {"f32[3] 1 5 -1", "f32[3] 2 2 nan"}, .out = {"f32[3] 2 5 nan"}},
    {"more than a tile",
     "program=tanh[](i0):0;elemwise_mul[](t0,i0):0;elemwise_add[](t1,t0):0>t2,t0 num_args=1",
     .in = {"f32[7,401] random"}},
    {"halves of many", "program=tanh[](i0):2;broadcast_mul[](t0,i1):2;exp[](t1):2>t2 num_args=2",
     .in = {"f16[9,211] random", "f16[211] random"}},
    {"bf16 of a sum", "program=elemwise_add[](i0,i1):12;Activation[0](t0):12>t1,t0 num_args=2",
     .in = {"bf16[9] 1 -3 nan inf -inf 256 257 -0 2", "bf16[9] 0.5 1 1 1 1 1 1 -0 -2"},
     .out = {"bf16[9] 1.5 0 nan inf 0 256 256 0 0", "bf16[9] 1.5 -2 nan inf -inf 256 256 -0 0"}},
    {"bf16 of a gradient", "program=elemwise_add[](i0,i1):12;_backward_Activation[0](t0,i2):12>t1 num_args=3",
     .in = {"bf16[5] 1 nan 256 4 inf", "bf16[5] 0.5 1 1 5 1", "bf16[5] 1 2 3 0 0"},
     .out = {"bf16[5] 1.5 nan 256 0 0"}},
    {"bf16 of many",
     "program=elemwise_add[](i0,i1):12;Activation[0](t0):12;elemwise_mul[](t1,i0):12>t2,t1 num_args=2",
     .in = {"bf16[557,487] random", "bf16[557,487] random"}},
    {"text", "program=exp[](i0):0 num_args=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR},
    {"later result", "program=exp[](t0):0>t0 num_args=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR},
    {"absent input", "program=exp[](i1):0>t0 num_args=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR},
    {"an input as result", "program=exp[](i0):0>i0 num_args=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR},
    {"shapes", "program=elemwise_add[](i0,i1):0>t0 num_args=2", .in = {"f32[2] 0 0", "f32[3] 0 0 0"},
     .status = TN_E_SHAPE},
};

/* Texts that kernels are handed: a limit of each kind, and cut at every byte. */
static void codes(void **state)
{
    static const char good[] = "_mul_scalar[3fe,r127](i15):12;elemwise_add[](t0,i0):0>t1,t0";
    static const char *const bad[] = {
        "",
        ">t0",
        "exp[](i0):0>",
        "exp[](i0):99>t0",
        "exp[](i16):0>t0",
        "exp[](i0,i0,i0,i0,i0):0>t0",
        "exp[r128](i0):0>t0",
        "exp[0,0,0,0,0,0,0,0,0](i0):0>t0",
        "exp[11112222333344445](i0):0>t0",
        "exp[](i0):0>t0 ",
        "exp[](i99999999999999999999999):0>t0",
        "exp[,](i0):0>t0",
        "exp[]():0>t0",
        "0123456789012345678901234567890123456789012345678901234567890123[](i0):0>t0",
        "exp[](i0):0>t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0,t0",
        "exp[F](i0):0>t0"};
    tn_point_code code;
    char text[TN_POINT_STEPS_MAX * 12 + 32] = "exp[](i0):0", cut[sizeof good];
    const char *at = NULL;

    (void)state;
    assert_int_equal(tn_point_read(good, &code, &at), TN_OK);
    assert_true(at == good + sizeof good - 1 && code.step_count == 2 && code.input_count == 16);
    assert_true(code.step[0].attrs[0] == 0x3fe && code.step[0].run[1] == 127 &&
                code.output[1] == TN_POINT_RESULT);
    for (size_t n = 0; n + 3 < sizeof good - 1; n++) {
        memcpy(cut, good, n);
        cut[n] = '\0';
        assert_int_equal(tn_point_read(cut, &code, NULL), TN_E_ARG);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tn_point_read(bad[i], &code, &at), TN_E_ARG);
    assert_int_equal(tn_point_read(NULL, &code, NULL), TN_E_ARG);
    for (uint32_t n = 1; n < TN_POINT_STEPS_MAX; n++)
        strcat(text, ";exp[](i0):0");
    strcat(text, ">t0");
    assert_int_equal(tn_point_read(text, &code, NULL), TN_OK);
    memcpy(strchr(text, '>'), ";exp[](i0):0>t0", sizeof ";exp[](i0):0>t0");
    assert_int_equal(tn_point_read(text, &code, NULL), TN_E_ARG);
}

TN_OP_TESTS(pointwise, "_fused_pointwise", pointwise_cases)
TN_OP_TESTS(fold_weight, "_fold_weight", weight_cases)
TN_OP_TESTS(fold_bias, "_fold_bias", bias_cases)
TN_OP_TESTS(conv_refused, "_fused_conv", conv_wrong)
TN_OP_TESTS(dense_refused, "_fused_dense", dense_wrong)
TN_OP_TESTS(reorder_refused, "_reorder", reorder_wrong)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(pointwise),      cmocka_unit_test(codes),
                                       TN_OP_TEST(fold_weight),    TN_OP_TEST(fold_bias),
                                       TN_OP_TEST(conv_refused),   TN_OP_TEST(dense_refused),
                                       TN_OP_TEST(reorder_refused)};

    return tn_op_main(tests);
}

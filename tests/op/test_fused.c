/* Family fused: operators of passes. Values computed by hand from the definitions (Python, 17 digits). */
#include "support/op_case.h"
#include "support/op_run.h"

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

TN_OP_TESTS(fold_weight, "_fold_weight", weight_cases)
TN_OP_TESTS(fold_bias, "_fold_bias", bias_cases)
TN_OP_TESTS(conv_refused, "_fused_conv", conv_wrong)
TN_OP_TESTS(dense_refused, "_fused_dense", dense_wrong)
TN_OP_TESTS(reorder_refused, "_reorder", reorder_wrong)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(fold_weight), TN_OP_TEST(fold_bias),
                                       TN_OP_TEST(conv_refused), TN_OP_TEST(dense_refused),
                                       TN_OP_TEST(reorder_refused)};

    return tn_op_main(tests);
}

/* Family products: sums of products over chosen axes. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define G TN_CASE_GRAD2

static const tn_op_case dot[] = {
    {"vectors", "", .in = {"f64[3] random", "f64[3] random"}, .flags = G | NP},
    {"matrices", "", .in = {"f64[2,3] random", "f64[3,4] random"}, .flags = G | NP},
    {"more axes", "", .in = {"f64[2,2,3] random", "f64[2,3,2] random"}, .flags = G | NP},
    {"matrix and vector", "", .in = {"f64[2,3] random", "f64[3] random"}, .flags = G | NP},
    {"scalar", "", .in = {"f64[] 2", "f64[2,3] random"}, .flags = G | NP},
    {"scalar behind", "", .in = {"f64[2,3] random", "f64[] 2"}, .flags = G | NP},
    {"f16", "", .in = {"f16[2,2] 1 2 3 4", "f16[2] 1 1"}, .out = {"f16[2] 3 7"}, .flags = N | NP},
    {"bf16", "", .in = {"bf16[1,2] 1 2", "bf16[2,1] 3 4"}, .out = {"bf16[1,1] 11"}, .flags = N | NP},
    {"nothing to sum", "", .in = {"f32[2,0]", "f32[0,2]"}, .out = {"f32[2,2] 0 0 0 0"}, .flags = N | NP},
    {"empty", "", .in = {"f32[0,3]", "f32[3,2] random"}, .out = {"f32[0,2]"}, .flags = N | NP},
    {"large", "", .in = {"f32[70,130] random", "f32[3,130,40] random"}, .flags = N | NP},
    {"lengths", "", .in = {"f32[2,3] random", "f32[2,3] random"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[2] 1 2", "i32[2] 1 2"}, .status = TN_E_DTYPE},
};
static const tn_op_case matmul[] = {
    {"vectors", "", .in = {"f64[3] random", "f64[3] random"}, .flags = G | NP},
    {"vector first", "", .in = {"f64[3] random", "f64[2,3,2] random"}, .flags = G | NP},
    {"stretched", "", .in = {"f64[2,1,2,3] random", "f64[3,3,2] random"}, .flags = NP},
    {"both stretched", "", .in = {"f64[2,1,1,3] random", "f64[1,3,3,2] random"}, .flags = G | NP},
    {"matrix and batch", "", .in = {"f64[2,3] random", "f64[4,3,2] random"}, .flags = NP},
    {"nothing to sum", "", .in = {"f32[2,1,0]", "f32[0,1]"}, .out = {"f32[2,1,1] 0 0"}, .flags = N | NP},
    {"batches", "", .in = {"f32[2,2,3] random", "f32[3,3,2] random"}, .status = TN_E_SHAPE},
    {"scalar", "", .in = {"f32[] 1", "f32[1] 1"}, .status = TN_E_SHAPE, .flags = NP},
};
static const tn_op_case tensordot[] = {
    {"two axes", "a_axes_summed=(0,2) b_axes_summed=(1,0)", .in = {"f64[2,3,4] random", "f64[4,2,2] random"},
     .flags = G | NP},
    {"middle", "a_axes_summed=(1,) b_axes_summed=(1,)", .in = {"f64[2,3,2] random", "f64[2,3,2] random"},
     .flags = G | NP},
    {"last", "a_axes_summed=(-1,) b_axes_summed=(-1,)", .in = {"f64[2,3] random", "f64[4,3] random"},
     .flags = G | NP},
    {"none", "a_axes_summed=() b_axes_summed=()", .in = {"f64[2] random", "f64[3] random"}, .flags = G | NP},
    {"all", "a_axes_summed=(1,0) b_axes_summed=(0,1)", .in = {"f64[2,3] random", "f64[3,2] random"},
     .flags = G | NP},
    {"f16", "a_axes_summed=(0,) b_axes_summed=(0,)", .in = {"f16[2,1] 1 2", "f16[2] 3 4"},
     .out = {"f16[1] 11"}, .flags = N | NP},
    {"counts", "a_axes_summed=(0,) b_axes_summed=()", .in = {"f32[2] 1 2", "f32[2] 1 2"},
     .status = TN_E_ATTR},
    {"twice", "a_axes_summed=(0,0) b_axes_summed=(0,1)", .in = {"f32[2,2] random", "f32[2,2] random"},
     .status = TN_E_SHAPE},
};
static const tn_op_case int_axes[] = {
    {"two", "axes=2", .in = {"f64[2,3,4] random", "f64[3,4,2] random"}, .flags = G | NP},
    {"none", "axes=0", .in = {"f64[2] random", "f64[3,2] random"}, .flags = G | NP},
    {"too many", "axes=2", .in = {"f32[2,2] random", "f32[2] random"}, .status = TN_E_SHAPE},
    {"below 0", "axes=-1", .in = {"f32[2] random", "f32[2] random"}, .status = TN_E_ATTR},
};
static const tn_op_case einsum[] = {
    {"product", "num_args=2 subscripts=ij,jk->ik", .in = {"f64[2,3] random", "f64[3,4] random"}, .flags = NP},
    {"implicit", "num_args=2 subscripts=ij,jk", .in = {"f64[2,3] random", "f64[3,2] random"}, .flags = NP},
    {"diagonal", "num_args=1 subscripts=ii->i", .in = {"f64[3,3] random"}, .flags = NP},
    {"trace", "num_args=1 subscripts=ii", .in = {"f64[3,3] random"}, .flags = NP},
    {"three", "num_args=3 subscripts=ij,jk,kl->il",
     .in = {"f64[2,3] random", "f64[3,2] random", "f64[2,2] random"}, .flags = NP},
    {"ellipsis", "num_args=2 subscripts=...ij,...jk->...ik",
     .in = {"f64[2,1,2,3] random", "f64[3,3,2] random"}, .flags = NP},
    {"one sum", "num_args=2 subscripts=ij,k->i", .in = {"f64[2,3] random", "f64[2] random"}, .flags = NP},
    {"integers", "num_args=2 subscripts=i,i->", .in = {"i64[2] 4611686018427387905 1", "i64[2] 1 2"},
     .out = {"i64[] 4611686018427387907"}, .flags = N | NP},
    {"u8 wraps", "num_args=2 subscripts=i,i->", .in = {"u8[2] 200 100", "u8[2] 2 1"}, .out = {"u8[] 244"},
     .flags = N | NP},
    {"f16", "num_args=2 subscripts=i,j", .in = {"f16[2] 1 2", "f16[1] 3"}, .out = {"f16[2,1] 3 6"},
     .flags = N | NP},
    {"empty", "num_args=1 subscripts=ij->i", .in = {"f32[2,0]"}, .out = {"f32[2] 0 0"}, .flags = N | NP},
    {"rank", "num_args=1 subscripts=ij->i", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "axes"},
    {"groups", "num_args=1 subscripts=i,j->i", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "group"},
    {"output", "num_args=1 subscripts=i->j", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "output"},
    {"output twice", "num_args=1 subscripts=i->ii", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR,
     .message = "twice"},
    {"letters", "num_args=1 subscripts=1->1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"a point", "num_args=1 subscripts=.i", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "point"},
    {"two outputs", "num_args=1 subscripts=i->i->i", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR,
     .message = "behind"},
    {"none", "num_args=1", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"extents", "num_args=2 subscripts=i,i->i", .in = {"f32[2] 1 2", "f32[3] 1 2 3"}, .status = TN_E_SHAPE},
};
static const tn_op_case khatri_rao[] = {
    {"two", "num_args=2", .in = {"f32[2,2] 1 2 3 4", "f32[1,2] 5 6"}, .out = {"f32[2,2] 5 12 15 24"},
     .flags = N},
    {"order", "num_args=2", .in = {"f64[2,1] 2 3", "f64[2,1] 5 7"}, .out = {"f64[4,1] 10 14 15 21"},
     .flags = N},
    {"empty", "num_args=2", .in = {"f32[0,2]", "f32[1,2] 1 2"}, .out = {"f32[0,2]"}, .flags = N},
    {"columns", "num_args=2", .in = {"f32[1,2] 1 2", "f32[1,3] 1 2 3"}, .status = TN_E_SHAPE},
    {"vector", "num_args=1", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE},
};

/* clang-format off */
TN_OP_TESTS(dot, "_np_dot", dot)
TN_OP_TESTS(matmul, "_npi_matmul", matmul)
TN_OP_TESTS(tensordot, "_npi_tensordot", tensordot)
TN_OP_TESTS(int_axes, "_npi_tensordot_int_axes", int_axes)
TN_OP_TESTS(einsum, "_npi_einsum", einsum)
TN_OP_TESTS(khatri_rao, "khatri_rao", khatri_rao)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(dot),      TN_OP_TEST(matmul), TN_OP_TEST(tensordot),
        TN_OP_TEST(int_axes), TN_OP_TEST(einsum), TN_OP_TEST(khatri_rao),
    };

    return tn_op_main(tests);
}

/* Family index: values by hand, indices of every kind and outside of the range, gradients by differences. */
#include "support/op_case.h"
#include "support/op_run.h"

#define A "f32[3,2] 1 2 3 4 5 6"

static const tn_op_case take_cases[] = {
    {"nothing, very often", "axis=2", .in = {"f64[2,4398046511104,0,3]", "i64[0,3]"},
     .out = {"f64[2,4398046511104,0,3,3]"}, .no_grad_inputs = 2},
    {"rows", "", .in = {A, "i32[2] 2 0"}, .out = {"f32[2,2] 5 6 1 2"}, .no_grad_inputs = 2},
    {"columns", "axis=1", .in = {A, "f32[2,1] 1 0"}, .out = {"f32[3,2,1] 2 1 4 3 6 5"}, .no_grad_inputs = 2},
    {"clip", "mode=clip", .in = {A, "i64[2] -5 9"}, .out = {"f32[2,2] 1 2 5 6"}, .no_grad_inputs = 2},
    {"wrap", "mode=wrap", .in = {A, "i8[3] -1 4 3"}, .out = {"f32[3,2] 5 6 3 4 1 2"}, .no_grad_inputs = 2},
    {"again", "", .in = {"f64[3,2] random", "i32[4] 1 1 1 0"}, .no_grad_inputs = 2},
    {"again, last", "axis=-1", .in = {"f64[3,2,4] random", "i32[2,3] 1 1 3 0 2 1"}, .no_grad_inputs = 2},
    {"scalar index", "", .in = {A, "f32[] 1.9"}, .out = {"f32[2] 3 4"}, .flags = TN_CASE_NP_SHAPE,
     .no_grad_inputs = 2},
    {"not a number", "", .in = {A, "f32[2] nan inf"}, .out = {"f32[2,2] 1 2 5 6"}, .flags = TN_CASE_NO_GRAD},
    {"large", "", .in = {A, "u64[1] 18446744073709551615"}, .out = {"f32[1,2] 5 6"},
     .flags = TN_CASE_NO_GRAD},
    {"bytes", "", .in = {"u8[3] 7 8 9", "u8[2] 2 1"}, .out = {"u8[2] 9 8"}, .flags = TN_CASE_NO_GRAD},
    {"no index", "", .in = {A, "i32[0]"}, .out = {"f32[0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"nothing there", "", .in = {"f32[0,2]", "i32[1] 0"}, .status = TN_E_SHAPE},
    {"axis", "axis=2", .in = {A, "i32[1] 0"}, .status = TN_E_SHAPE},
    {"mode", "mode=none", .in = {A, "i32[1] 0"}, .status = TN_E_ATTR},
};
static const tn_op_case batch_take[] = {
    {"rows", "", .in = {"f64[3,4] random", "i32[3] 0 3 1"}, .no_grad_inputs = 2},
    {"clipped", "", .in = {"f32[2,2] 1 2 3 4", "i32[2] -1 7"}, .out = {"f32[2] 1 4"},
     .flags = TN_CASE_NO_GRAD},
    {"counts", "", .in = {"f32[2,2] random", "i32[3] 0 0 0"}, .status = TN_E_SHAPE},
    {"floats", "", .in = {"f32[1,2] random", "f32[1] 0"}, .status = TN_E_DTYPE},
    {"rank", "", .in = {"f32[2,2,1] random", "i32[2] 0 0"}, .status = TN_E_SHAPE},
    {"nothing in rows", "", .in = {"f32[2,0]", "i32[2] 0 0"}, .status = TN_E_SHAPE},
    {"no rows", "", .in = {"f32[0,2]", "i32[0]"}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"no rows of nothing", "", .in = {"f32[0,0]", "i32[0]"}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
};
static const tn_op_case ravel[] = {
    {"two axes", "shape=(3,4)", .in = {"i64[2,3] 0 1 2 3 2 0"}, .out = {"i64[3] 3 6 8"},
     .flags = TN_CASE_NO_GRAD},
    {"first open", "shape=(-1,4)", .in = {"f32[2,1] 9 1"}, .out = {"f32[1] 37"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "shape=(2,2)", .in = {"i32[2,0]"}, .out = {"i32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"axes", "shape=(3,4,5)", .in = {"i64[2,1] 0 0"}, .status = TN_E_SHAPE},
    {"no shape", "", .in = {"i64[2,1] 0 0"}, .status = TN_E_ATTR, .message = "shape"},
};
static const tn_op_case unravel[] = {
    {"two axes", "shape=(3,4)", .in = {"i64[3] 3 6 8"}, .out = {"i64[2,3] 0 1 2 3 2 0"},
     .flags = TN_CASE_NO_GRAD},
    {"a matrix", "shape=(3,4)", .in = {"i32[1,2] 5 11"}, .out = {"i32[2,2] 1 2 1 3"},
     .flags = TN_CASE_NO_GRAD},
    {"size 0", "shape=(2,0)", .in = {"i32[1] 5"}, .out = {"i32[2,1] 5 0"}, .flags = TN_CASE_NO_GRAD},
};
static const tn_op_case scatter_set[] = {
    {"elements", "shape=(2,2)", .in = {"f32[2,2] 1 2 3 4", "f32[2] 8 9", "i64[2,2] 0 1 1 0"},
     .out = {"f32[2,2] 1 8 9 4"}, .flags = TN_CASE_NO_GRAD},
    {"rows", "shape=(2,2)", .in = {"i8[2,2] 1 2 3 4", "i8[1,2] 8 9", "i32[1,1] -1"},
     .out = {"i8[2,2] 1 2 8 9"}, .flags = TN_CASE_NO_GRAD},
    {"another shape", "shape=(2,3)", .in = {"f32[2,2] random", "f32[1] 1", "i64[2,1] 0 0"},
     .status = TN_E_SHAPE},
};

TN_OP_TESTS(take, "take", take_cases)

static const tn_op_case embedding_cases[] = {
    {"rows", "input_dim=3 output_dim=2", .in = {"f32[1,2] 2 0", A}, .out = {"f32[1,2,2] 5 6 1 2"},
     .no_grad_inputs = 1},
    {"clip", "input_dim=3 output_dim=2", .in = {"i32[2] -1 3", A}, .out = {"f32[2,2] 1 2 5 6"},
     .no_grad_inputs = 1},
    {"again", "input_dim=4 output_dim=70", .in = {"i64[6] 0 3 3 1 0 3", "f64[4,70] random"},
     .no_grad_inputs = 1},
    {"weight", "input_dim=4 output_dim=2", .in = {"f32[1] 2", A}, .status = TN_E_SHAPE},
    {"dim", "input_dim=0 output_dim=2", .in = {"f32[1] 2", A}, .status = TN_E_ATTR},
};
TN_OP_TESTS(embedding, "Embedding", embedding_cases)

static const tn_op_case one_hot_cases[] = {
    {"float", "depth=3", .in = {"f32[2] 1 0"}, .out = {"f32[2,3] 0 1 0 1 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"values", "depth=2 on_value=8 off_value=-1 dtype=int32", .in = {"i32[1,2] 1 0"},
     .out = {"i32[1,2,2] -1 8 8 -1"}, .flags = TN_CASE_NO_GRAD},
    {"outside", "depth=2", .in = {"f32[3] -1 2 nan"}, .out = {"f32[3,2] 0 0 0 0 1 0"},
     .flags = TN_CASE_NO_GRAD},
    {"no dtype", "depth=2 dtype=None", .in = {"f64[1] 1"}, .out = {"f32[1,2] 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"depth 0", "depth=0", .in = {"f32[3] 1 2 3"}, .out = {"f32[3,0]"}, .flags = TN_CASE_NO_GRAD},
    {"negative", "depth=-1", .in = {"f32[3] 1 2 3"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(one_hot, "one_hot", one_hot_cases)

static const tn_op_case pick_cases[] = {
    {"last", "", .in = {A, "f32[3] 1 0 1"}, .out = {"f32[3] 2 3 6"}, .no_grad_inputs = 2},
    {"kept", "keepdims=True", .in = {A, "f32[3] 1 0 1"}, .out = {"f32[3,1] 2 3 6"}, .no_grad_inputs = 2},
    {"kept index", "keepdims=True", .in = {A, "f32[3,1] 1 0 1"}, .out = {"f32[3,1] 2 3 6"},
     .no_grad_inputs = 2},
    {"first", "axis=0", .in = {A, "i32[2] 2 0"}, .out = {"f32[2] 5 2"}, .no_grad_inputs = 2},
    {"clip", "", .in = {A, "i32[3] -1 5 0"}, .out = {"f32[3] 1 4 5"}, .no_grad_inputs = 2},
    {"wrap", "mode=wrap", .in = {A, "i32[3] -1 5 0"}, .out = {"f32[3] 2 4 5"}, .no_grad_inputs = 2},
    {"middle", "axis=1", .in = {"f64[2,3,4] random", "i32[2,4] 0 1 2 0 2 2 1 1"}, .no_grad_inputs = 2},
    {"index", "", .in = {A, "i32[2] 0 0"}, .status = TN_E_SHAPE},
    {"axis", "axis=5", .in = {A, "i32[3] 0 0 0"}, .status = TN_E_SHAPE},
    {"none", "axis=None", .in = {A, "i32[3] 0 0 0"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(pick, "pick", pick_cases)

static const tn_op_case gather_cases[] = {
    {"elements", "", .in = {A, "i32[2,3] 0 2 -1 1 0 0"}, .out = {"f32[3] 2 5 5"}, .no_grad_inputs = 2},
    {"rows", "", .in = {A, "f32[1,2] 2 0"}, .out = {"f32[2,2] 5 6 1 2"}, .no_grad_inputs = 2},
    {"again", "", .in = {"f64[3,2,4] random", "i32[2,5] 0 1 2 1 0 0 1 1 1 0"}, .no_grad_inputs = 2},
    {"axes", "", .in = {A, "i32[3,1] 0 0 0"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(gather_nd, "gather_nd", gather_cases)

/* Values and gradients as MXNet 1.9.1 computes them. Outside, where it writes beyond the output: refused. */
static const tn_op_case scatter_cases[] = {
    {"elements", "shape=(3,2)", .in = {"f32[3] 1 2 4", "f32[2,3] 0 1 2 0 1 1"},
     .out = {"f32[3,2] 1 0 0 2 0 4"}, .no_grad_inputs = 2},
    {"rows", "shape=(4,2)", .in = {"f64[2,2] 1 2 3 4", "i64[1,2] 3 0"}, .out = {"f64[4,2] 3 4 0 0 0 0 1 2"},
     .no_grad_inputs = 2},
    {"the last stays", "shape=(3,2)", .in = {"f32[4] 1 2 3 4", "f32[2,4] 0 1 0 2 0 1 0 1"},
     .out = {"f32[3,2] 3 0 0 2 0 4"}, .flags = TN_CASE_NO_GRAD},
    {"several axes of indices", "shape=(5,2)", .in = {"f32[2,2,2] 0 1 2 3 4 5 6 7", "i64[1,2,2] 0 1 2 3"},
     .out = {"f32[5,2] 0 1 2 3 4 5 6 7 0 0"}, .no_grad_inputs = 2},
    {"integers", "shape=(4,)", .in = {"i32[3] 1 2 3", "u8[1,3] 2 1 0"}, .out = {"i32[4] 3 2 1 0"},
     .flags = TN_CASE_NO_GRAD},
    {"rank 5", "shape=(2,1,3,2,2)", .in = {"f64[2,2,2] random", "i32[3,2] 1 0 0 0 2 1"}, .no_grad_inputs = 2},
    {"from the end", "shape=(4,)", .in = {"f32[2] 7 8", "i32[1,2] -1 0"}, .out = {"f32[4] 8 0 0 7"},
     .no_grad_inputs = 2},
    {"no index", "shape=(2,2)", .in = {"f32[0,2]", "i32[1,0]"}, .out = {"f32[2,2] 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"nothing", "shape=(2,0)", .in = {"f32[3,0]", "i32[1,3] 0 1 0"}, .out = {"f32[2,0]"},
     .flags = TN_CASE_NO_GRAD},
    {"indices", "shape=(4,)", .in = {"f32[1] 1", "i32[1] 0"}, .status = TN_E_SHAPE, .message = "at least 2"},
    {"axes", "shape=(4,)", .in = {"f32[1] 1", "i32[2,1] 0 0"}, .status = TN_E_SHAPE, .message = "2 axes"},
    {"rows too long", "shape=(4,3)", .in = {"f32[2,2] 1 2 3 4", "i32[1,2] 0 1"}, .status = TN_E_SHAPE},
    {"too few rows", "shape=(4,2)", .in = {"f32[2,2] 1 2 3 4", "i32[1,3] 0 1 2"}, .status = TN_E_SHAPE},
    {"no shape", "", .in = {"f32[1] 1", "i32[1,1] 0"}, .status = TN_E_ATTR},
    {"negative shape", "shape=(-1,)", .in = {"f32[1] 1", "i32[1,1] 0"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(scatter_nd, "scatter_nd", scatter_cases)

/* A coordinate outside is an error of the run, so nothing is written. */
static void scatter_outside(void **state)
{
    static const char *const name[] = {"shape"}, *const shape[] = {"(4,)"};
    static const char *const far[] = {"i32[1,1] 4", "i64[1,1] -5", "f32[1,1] inf", "f64[1,1] -1e30"};
    const op_form form = {.threads = 1, .mode = TN_MODE_WRITE};
    const tn_shape y = {.ndim = 1, .dim = {4}};
    const int32_t out_dtype = TN_F32;

    (void)state;
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        op_tensor in[2];
        op_node n = {0};

        op_tensor_read(&in[0], "f32[1] 7", -1, 1);
        op_tensor_read(&in[1], far[i], -1, 1);
        assert_int_equal(tni_opset_find(op_set(), "scatter_nd", &n.def), TN_OK);
        assert_int_equal(tni_attrs_parse(n.def, 1, name, shape, &n.attrs), TN_OK);
        assert_int_equal(tni_op_args(n.def, n.attrs, 2, &n.args), TN_OK);
        assert_int_equal(
            op_kernels_find(n.def, &n.args, (int32_t[]){TN_F32, in[1].t.dtype}, &out_dtype, &n.kernel, 1), 1);
        assert_int_equal(op_node_run(&n, (op_tensor *[]){&in[0], &in[1]}, &y, &out_dtype, &form, NULL),
                         op_kernel_on_device(&n.kernel) ? TN_OK : TN_E_ARG); /* a GPU clips it */
        op_node_free(&n);
        op_tensor_free(&in[0]);
        op_tensor_free(&in[1]);
    }
}

/* clang-format off */
TN_OP_TESTS(batch_take, "batch_take", batch_take)
TN_OP_TESTS(ravel, "_ravel_multi_index", ravel)
TN_OP_TESTS(unravel, "_unravel_index", unravel)
TN_OP_TESTS(scatter_set, "_scatter_set_nd", scatter_set)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(take),
        TN_OP_TEST(embedding),
        TN_OP_TEST(one_hot),
        TN_OP_TEST(pick),
        TN_OP_TEST(gather_nd),
        TN_OP_TEST(scatter_nd),
        cmocka_unit_test(scatter_outside),

        TN_OP_TEST(batch_take),
        TN_OP_TEST(ravel),
        TN_OP_TEST(unravel),
        TN_OP_TEST(scatter_set),
    };

    return tn_op_main(tests);
}

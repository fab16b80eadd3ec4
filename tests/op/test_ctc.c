/* Family ctc: probabilities by hand, gradients by differences; MXNet's values in tests/mxnet. */
#include <string.h>

#include <math.h>

#include "support/op_case.h"
#include "support/op_run.h"

static const tn_op_case cases[] = {
    /* Two symbols, each with probability 1/2: alignments are counted. */
    {"one step", "", .in = {"f64[1,1,2] 0 0", "f64[1,1] 1"},
     .out = {"f64[1] 0.69314718055994531", "f64[1,1,2] 0.5 -0.5"}, .no_grad_inputs = 2},
    {"three of four", "", .in = {"f64[2,1,2] fill:7", "f64[1,2] 1 0"},
     .out = {"f64[1] 0.28768207245178085", NULL}, .no_grad_inputs = 2},
    {"a repeat", "", .in = {"f32[3,1,2] fill:-1000", "i32[1,2] 1 1"}, .out = {"f32[1] 2.0794415", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"no label", "", .in = {"f64[2,1,2] fill:0", "f64[1,1] 0"}, .out = {"f64[1] 1.3862943611198906", NULL},
     .no_grad_inputs = 2},
    {"no label's room", "", .in = {"f64[2,1,2] fill:0", "f64[1,0]"},
     .out = {"f64[1] 1.3862943611198906", NULL}, .no_grad_inputs = 2},
    {"the last is blank", "blank_label=last", .in = {"f64[2,1,2] fill:0", "i8[1,2] 0 -1"},
     .out = {"f64[1] 0.28768207245178085", NULL}, .no_grad_inputs = 2},
    {"too few steps", "", .in = {"f64[2,2,3] random", "f64[2,2] 1 1 1 2"}, .out = {NULL, NULL},
     .no_grad_inputs = 2},
    {"too few steps, value", "", .in = {"f32[2,1,3] random", "f32[1,2] 2 2"},
     .out = {"f32[1] 0", "f32[2,1,3] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"random", "", .in = {"f64[7,3,5] random:-3:3", "i64[3,4] 1 2 2 4 3 0 0 0 4 4 4 0"}, .no_grad_inputs = 2},
    {"lengths", "use_data_lengths=1 use_label_lengths=1 blank_label=last",
     .in = {"f64[7,4,5] random:-3:3", "i32[4,4] 1 2 2 3 3 0 0 0 0 0 4 4 1 1 1 1", "f64[4] 7 5 3 0",
            "i32[4] 4 1 2 0"},
     .no_grad_inputs = 14},
    {"label lengths alone", "use_label_lengths=1",
     .in = {"f64[4,2,3] random", "i32[2,2] 1 0 2 2", "i32[2] 1 2"}, .no_grad_inputs = 6},
    {"lengths beyond", "use_data_lengths=1 use_label_lengths=1",
     .in = {"f64[2,2,2] fill:0", "f64[2,1] 1 1", "f64[2] 1e30 -5", "f64[2] 9 -2"},
     .out = {"f64[2] 0.28768207245178085 0", NULL}, .no_grad_inputs = 14},
    {"a symbol that cannot be", "", .in = {"f64[1,1,2] 0 -inf", "f64[1,1] 1"},
     .out = {"f64[1] inf", "f64[1,1,2] 1 0"}, .flags = TN_CASE_NO_GRAD},
    {"NaN", "", .in = {"f32[1,1,2] 0 nan", "f32[1,1] 1"}, .out = {"f32[1] nan", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"f16", "", .in = {"f16[2,1,2] fill:0", "f16[1,1] 1"}, .out = {"f16[1] 0.28768", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"bf16", "", .in = {"bf16[2,1,2] fill:0", "i32[1,1] 1"}, .out = {"bf16[1] 0.28768", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"a long one", "", .in = {"f32[1500,1,2] fill:50", "f32[1,1] 0"}, .out = {"f32[1] 1039.7208", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"nothing", "", .in = {"f64[3,0,2]", "f64[0,2]"}, .out = {"f64[0]", "f64[3,0,2]"}, .no_grad_inputs = 2},
    {"no step", "", .in = {"f64[0,2,2]", "f64[2,0]"}, .out = {"f64[2] 0 0", "f64[0,2,2]"},
     .no_grad_inputs = 2},
    {"no symbol", "", .in = {"f32[1,1,0]", "f32[1,1] 0"}, .status = TN_E_SHAPE},
    {"more labels than steps", "", .in = {"f32[1,1,2] 0 0", "f32[1,2] 1 1"}, .status = TN_E_SHAPE},
    {"sequences", "", .in = {"f32[1,1,2] 0 0", "f32[2,1] 1 1"}, .status = TN_E_SHAPE, .message = "label"},
    {"rank", "", .in = {"f32[1,2] 0 0", "f32[1,1] 1"}, .status = TN_E_SHAPE, .message = "data"},
    {"no lengths", "use_data_lengths=1", .in = {"f32[1,1,2] 0 0", "f32[1,1] 1"}, .status = TN_E_ARG},
    {"blank", "blank_label=middle", .in = {"f32[1,1,2] 0 0", "f32[1,1] 1"}, .status = TN_E_ATTR,
     .message = "blank_label"},
    {"integers", "", .in = {"i32[1,1,2] 0 0", "i32[1,1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(ctc, "CTCLoss", cases)

/* A label that is no symbol is an error of the run. Behind the padding anything may stand. */
static void label_outside(void **state)
{
    static const struct {
        const char *labels;
        tn_status st;
    } rows[] = {{"f32[1,2] 2 0", TN_E_ARG},    {"i32[1,2] 1 -1", TN_E_ARG}, {"i64[1,2] 9 9", TN_E_ARG},
                {"f32[1,2] 1e30 0", TN_E_ARG}, {"f32[1,2] 0 7", TN_OK},     {"f32[1,2] 1 0", TN_OK}};
    const op_form form = {.threads = 1, .mode = TN_MODE_WRITE};
    const tn_shape out[] = {{.ndim = 1, .dim = {1}}, {.ndim = 3, .dim = {2, 1, 2}}};
    const int32_t out_dtype[] = {TN_F32, TN_F32};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op_tensor in[2];
        op_node n = {0};
        bool on_device;
        tn_status st;

        op_tensor_read(&in[0], "f32[2,1,2] 0 0 0 0", -1, 1);
        op_tensor_read(&in[1], rows[i].labels, -1, 1);
        assert_int_equal(tni_opset_find(op_set(), "CTCLoss", &n.def), TN_OK);
        assert_int_equal(tni_attrs_parse(n.def, 0, NULL, NULL, &n.attrs), TN_OK);
        assert_int_equal(tni_op_args(n.def, n.attrs, 2, &n.args), TN_OK);
        assert_int_equal(
            op_kernels_find(n.def, &n.args, (int32_t[]){TN_F32, in[1].t.dtype}, out_dtype, &n.kernel, 1), 1);
        st = op_node_run(&n, (op_tensor *[]){&in[0], &in[1]}, out, out_dtype, &form, NULL);
        on_device = op_kernel_on_device(&n.kernel);
        assert_int_equal(st, on_device ? TN_OK : rows[i].st);
        if (on_device)
            assert_int_equal(isnan(op_tensor_get(&n.out[0], 0)) != 0, rows[i].st != TN_OK);
        else if (rows[i].st)
            assert_non_null(strstr(op_error()->message, "is none of 2 symbols"));
        op_node_free(&n);
        op_tensor_free(&in[0]);
        op_tensor_free(&in[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(ctc), cmocka_unit_test(label_outside)};

    return tn_op_main(tests);
}

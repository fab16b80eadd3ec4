/* Attributes as lists: a list gives the rows that are written by hand, and the headers of the families agree
 * with the definitions of the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "op/op.h"
#include "support/scratch.h"
#include "tenon/plugin/op/activation.h"
#include "tenon/plugin/op/broadcast.h"
#include "tenon/plugin/op/elemwise.h"
#include "tenon/plugin/op/fused.h"
#include "tenon/plugin/op/index.h"
#include "tenon/plugin/op/init.h"
#include "tenon/plugin/op/join.h"
#include "tenon/plugin/op/matrix.h"
#include "tenon/plugin/op/move.h"
#include "tenon/plugin/op/norm.h"
#include "tenon/plugin/op/numpy.h"
#include "tenon/plugin/op/optimizer.h"
#include "tenon/plugin/op/order.h"
#include "tenon/plugin/op/pool.h"
#include "tenon/plugin/op/random.h"
#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/regression.h"
#include "tenon/plugin/op/scalar.h"
#include "tenon/plugin/op/sequence.h"
#include "tenon/plugin/op/shape.h"
#include "tenon/plugin/op/slice.h"
#include "tenon/plugin/op/softmax.h"
#include "tenon/plugin/op/unary.h"

#include <cmocka.h>

/* Each kind once. Names of choices may be words of the language. */
#define TN_every_c_CHOICES(C, op, name) C(op, name, None) C(op, name, default) C(op, name, 2d)
#define TN_every_ATTRS(X)                                                                                    \
    X(every, INT, i, "1", TN_ANY, "integer")                                                                 \
    X(every, INT, small, "3", TN_IN(1, 5), "integer in a range")                                             \
    X(every, FLOAT, f, "0.5", TN_IN(-1.5, 1e300), "number")                                                  \
    X(every, BOOL, b, "False", TN_ANY, "truth")                                                              \
    X(every, CHOICE, c, "None", TN_ANY, "choice")                                                            \
    X(every, TEXT, t, "", TN_ANY, "text")                                                                    \
    X(every, TUPLE, tuple, TN_REQUIRED, TN_IN(-10, 9e15), "tuple")                                           \
    X(every, DTYPE, dtype, "None", TN_ANY, "type")                                                           \
    X(every, OPT_INT, oi, "None", TN_ANY, "integer or none")                                                 \
    X(every, OPT_FLOAT, of, "None", TN_ANY, "number or none")                                                \
    X(every, OPT_BOOL, ob, "None", TN_ANY, "truth or none")                                                  \
    X(every, FLOATS, fs, "None", TN_ANY, "numbers")                                                          \
    X(every, OPT_TUPLE, ot, "()", TN_ANY, "tuple with holes")                                                \
    X(every, INT_RUN, ir, "2", TN_ANY, "run-time integer")                                                   \
    X(every, FLOAT_RUN, fr, "2", TN_IN(0, 4), "run-time number")                                             \
    X(every, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")                               \
    X(every, INT, later, "7", TN_ANY_SINCE(2), "of version 2")                                               \
    X(every, INT, last, "8", TN_IN_SINCE(3, 1, 9), "of version 3")
TN_ATTRS(every);
TN_CHOICES(every, c);

static const tn_attr_def listed[] = TN_ATTR_TABLE(every);
static const tn_attr_def by_hand[] = {
    [TN_every_i] = TN_ATTR_INT("i", "1", "integer"),
    [TN_every_small] = TN_ATTR_INT_IN("small", "3", 1, 5, "integer in a range"),
    [TN_every_f] = TN_ATTR_FLOAT_IN("f", "0.5", -1.5, 1e300, "number"),
    [TN_every_b] = TN_ATTR_BOOL("b", "False", "truth"),
    [TN_every_c] = TN_ATTR_CHOICE("c", "None", "None|default|2d", "choice"),
    [TN_every_t] = TN_ATTR_TEXT("t", "", "text"),
    [TN_every_tuple] = TN_ATTR_TUPLE_IN("tuple", TN_REQUIRED, -10, 9e15, "tuple"),
    [TN_every_dtype] = TN_ATTR_DTYPE("dtype", "None", "type"),
    [TN_every_oi] = TN_ATTR_OPT_INT("oi", "None", "integer or none"),
    [TN_every_of] = TN_ATTR_OPT_FLOAT("of", "None", "number or none"),
    [TN_every_ob] = TN_ATTR_OPT_BOOL("ob", "None", "truth or none"),
    [TN_every_fs] = TN_ATTR_FLOATS("fs", "None", "numbers"),
    [TN_every_ot] = TN_ATTR_OPT_TUPLE("ot", "()", "tuple with holes"),
    [TN_every_ir] = TN_ATTR_INT_RUN("ir", "2", "run-time integer"),
    [TN_every_fr] = TN_ATTR_FLOAT_RUN_IN("fr", "2", 0, 4, "run-time number"),
    [TN_every_num_args] = TN_ATTR_COUNT("num_args"),
    [TN_every_later] = TN_ATTR_ROW_SINCE(2, "later", TN_ATTR_T_INT, 0, NULL, "7", 1, 0, "of version 2"),
    [TN_every_last] = TN_ATTR_ROW_SINCE(3, "last", TN_ATTR_T_INT, 0, NULL, "8", 1, 9, "of version 3"),
    TN_ATTR_END,
};

static void same_text(const char *a, const char *b)
{
    assert_int_equal(!a, !b);
    if (a)
        assert_string_equal(a, b);
}

static void rows(void **state)
{
    const size_t count = sizeof by_hand / sizeof *by_hand;

    (void)state;
    assert_int_equal(sizeof listed, sizeof by_hand);
    for (size_t k = 0; k < count; k++) {
        const tn_attr_def *a = &listed[k], *b = &by_hand[k];

        same_text(a->name, b->name);
        same_text(a->choices, b->choices);
        same_text(a->default_text, b->default_text);
        same_text(a->doc, b->doc);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->flags, b->flags);
        assert_int_equal(a->since, b->since);
        assert_true(a->min == b->min && a->max == b->max && a->reserved == 0);
    }
    assert_int_equal(TN_every_c_None, 0);
    assert_int_equal(TN_every_c_default, 1);
    assert_int_equal(TN_every_c_2d, 2);
}

/* What kernels of the library's operators read, by the headers.
 * Shared lists: by each end of those who share. */
static const struct {
    const char *op, *attr, *text;
    uint32_t index, number; /* of a choice */
} known[] = {
    {"Convolution", "layout", "NHWC", TN_Convolution_layout, TN_Convolution_layout_NHWC},
    {"_fused_conv", "layout", "NHWC", TN_fused_conv_layout, TN_fused_conv_layout_NHWC},
    {"_fused_conv", "act_type", "leaky", TN_fused_conv_act_type, TN_fused_conv_act_type_leaky},
    {"_fused_dense", "act_type", "relu", TN_fused_dense_act_type, TN_fused_dense_act_type_relu},
    {"_fused_dense", "slope", NULL, TN_fused_dense_slope, 0},
    {"Pooling", "pool_type", "max", TN_Pooling_pool_type, TN_Pooling_pool_type_max},
    {"_backward_Pooling", "count_include_pad", NULL, TN_Pooling_count_include_pad, 0},
    {"mean", "exclude", NULL, TN_reduce_exclude, 0},
    {"argmin", "keepdims", NULL, TN_argmax_keepdims, 0},
    {"_mul_scalar", "is_int", NULL, TN_scalar_is_int, 0},
    {"_npi_arctan2_scalar", "is_int", NULL, TN_scalar_is_int, 0},
    {"_ones", "dtype", NULL, TN_zeros_dtype, 0},
    {"mp_sgd_mom_update", "lazy_update", NULL, TN_sgd_mom_update_lazy_update, 0},
    {"adam_update", "clip_gradient", NULL, TN_adam_update_clip_gradient, 0},
    {"_random_normal", "dtype", NULL, TN_random_normal_dtype, 0},
    {"batch_dot", "forward_stype", "default", TN_dot_forward_stype, TN_dot_forward_stype_default},
    {"log_softmax", "use_length", NULL, TN_softmax_use_length, 0},
    {"SoftmaxOutput", "normalization", "null", TN_SoftmaxOutput_normalization,
     TN_SoftmaxOutput_normalization_null},
    {"MAERegressionOutput", "grad_scale", NULL, TN_regression_grad_scale, 0},
};

static void operators(void **state)
{
    tni_opset *set = NULL;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &set), TN_OK);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const char *name = known[k].attr, *text = known[k].text;
        const tni_opdef *def = NULL;
        tni_str out;

        assert_int_equal(tni_opset_find(set, known[k].op, &def), TN_OK);
        assert_true(known[k].index < def->attr_count);
        assert_string_equal(def->op->attrs[known[k].index].name, name);
        if (!text)
            continue;
        tni_str_init(&out, 64);
        assert_int_equal(tni_attr_format(&def->op->attrs[known[k].index], known[k].number, &out), TN_OK);
        assert_string_equal(out.text, text);
        tni_str_fini(&out);
    }
    tni_opset_destroy(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(operators)};

    return cmocka_run_group_tests_name("op.attr_lists", tests, NULL, NULL);
}

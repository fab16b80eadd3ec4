/* Regression losses: pointwise, but for labels that may be (N) beside data (N, 1). */
#include "tenon/plugin/op/regression.h"
#include "loops.h"

static const tncpu_point rows[] = {
    {"LinearRegressionOutput", TNCPU_COPY, 1, TNCPU_NO_SCALAR},
    {"LogisticRegressionOutput", TNCPU_SIGMOID, 1, TNCPU_NO_SCALAR},
    {"MAERegressionOutput", TNCPU_COPY, 1, TNCPU_NO_SCALAR},
    {"_backward_LinearRegressionOutput", TNCPU_ERROR, 2, TNCPU_NO_SCALAR},
    {"_backward_LogisticRegressionOutput", TNCPU_ERROR, 2, TNCPU_NO_SCALAR},
    {"_backward_MAERegressionOutput", TNCPU_ERROR_SIGN, 2, TNCPU_NO_SCALAR},
};

/* The output follows from the data alone. */
static tn_status forward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_node one = *node;

    one.in_count = 1;
    return tncpu_point_prepare(rows, sizeof rows / sizeof rows[0], plugin, &one, plan, err);
}

/* in: output, label */
static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *label = node->in[1];
    const int64_t examples = label->ndim && label->shape[0] ? label->shape[0] : 1;
    const int64_t each = tncpu_max(tn_tensor_count(label) / examples, 1);
    tn_tensor view = *node->out[0]; /* dense, as the label is */
    const tn_tensor *in[] = {node->in[0], &view};
    tn_node same = *node;
    tn_status st;

    view.dtype = label->dtype;
    same.in = in;
    st = tncpu_point_prepare(rows, sizeof rows / sizeof rows[0], plugin, &same, plan, err);
    if (!st)
        tncpu_point_number(plan, tn_value_float(node->attrs[TN_regression_grad_scale]) / (double)each);
    return st;
}

#define LOSS(op)                                                                                             \
    TNCPU_ROW(op, tncpu_floats, 0, forward_prepare, tncpu_point_run),                                        \
        TNCPU_ROW("_backward_" op, tncpu_floats, 0, back_prepare, tncpu_point_run)

const tn_kernel *const tncpu_family_regression[] = {
    LOSS("LinearRegressionOutput"),
    LOSS("LogisticRegressionOutput"),
    LOSS("MAERegressionOutput"),
    NULL,
};

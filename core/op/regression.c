/*
 * Layers that end a net in a regression loss. The output is the prediction; the gradient is that of the loss
 * with the labels, whatever arrives from behind: grad_scale / (labels of one example) times
 *   LinearRegressionOutput    y - label              of (y - label)² / 2
 *   LogisticRegressionOutput  sigmoid(x) - label     of the cross-entropy
 *   MAERegressionOutput       sign(y - label)        of |y - label|
 */
#include "tenon/plugin/op/regression.h"
#include "op/infer_help.h"

static const tn_attr_def regression_attrs[] = TN_ATTR_TABLE(regression);

/* The label has the data's shape; data (N, 1) may have labels (N). */
static tn_status label_unify(tn_infer *i, const tn_shape *data, tn_shape *label)
{
    tn_shape flat = *data;

    if (data->ndim < 0)
        return TN_OK;
    if (data->ndim == 2 && data->dim[1] == 1 && label->ndim == 1) {
        flat.ndim = 1;
        return tni_shape_assign(i, label, &flat);
    }
    return tni_shape_assign(i, label, data);
}

static tn_status regression_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : label_unify(i, i->in_shape[0], i->in_shape[1]);
}

static tn_status backward_regression_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : label_unify(i, i->in_shape[0], i->in_shape[1]);
}

/* The output and the label; labels have no gradient. */
static tn_status regression_back(tn_grad *g, const char *op)
{
    const tn_edge in[] = {tn_grad_output(g, 0), tn_grad_input(g, 1)};
    tn_status st = tn_grad_emit(g, 0, op, 2, in);

    if (st || !g->ops->needs(g, 1))
        return st;
    return tni_grad_set(g, &st, 1, tni_grad_op1(g, &st, "zeros_like", tn_grad_input(g, 1)));
}

static tn_status linear_grad(tn_grad *g)
{
    return regression_back(g, "_backward_LinearRegressionOutput");
}

static tn_status logistic_grad(tn_grad *g)
{
    return regression_back(g, "_backward_LogisticRegressionOutput");
}

static tn_status mae_grad(tn_grad *g)
{
    return regression_back(g, "_backward_MAERegressionOutput");
}

#define FORWARD(name_, doc_, gradient_)                                                                      \
    TNI_OP(name_, .doc = doc_, .aliases = TNI_NAMES("_sparse_" name_), .attrs = regression_attrs,            \
           .inputs = TNI_NAMES("data", "label"), .outputs = TNI_NAMES("output"), .flags = TN_OP_IGNORE_HEAD, \
           .shape = regression_shape, .types = "T:float", .gradient = gradient_)

#define BACKWARD(name_)                                                                                      \
    TNI_OP("_backward_" name_, .doc = "Gradient of " name_ ".", .attrs = regression_attrs,                   \
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("output", "label"), .outputs = TNI_NAMES("dx"),      \
           .shape = backward_regression_shape, .types = "T:float")

static const tn_op linear = FORWARD("LinearRegressionOutput", "The input; squared loss.", linear_grad);
static const tn_op backward_linear = BACKWARD("LinearRegressionOutput");
static const tn_op logistic =
    FORWARD("LogisticRegressionOutput", "The input's sigmoid; cross-entropy.", logistic_grad);
static const tn_op backward_logistic = BACKWARD("LogisticRegressionOutput");
static const tn_op mae = FORWARD("MAERegressionOutput", "The input; mean absolute error.", mae_grad);
static const tn_op backward_mae = BACKWARD("MAERegressionOutput");

const tn_op *const tni_family_regression[] = {
    &linear, &backward_linear, &logistic, &backward_logistic, &mae, &backward_mae, NULL,
};

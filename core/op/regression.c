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

#define REGRESSION(name_, doc_)                                                                              \
    TNI_ROW(name_, .doc = doc_, .aliases = TNI_NAMES("_sparse_" name_), .attrs = regression_attrs,           \
            .inputs = TNI_NAMES("data", "label"), .outputs = TNI_NAMES("output"),                            \
            .flags = TN_OP_IGNORE_HEAD, .shape = regression_shape, .types = "T:float",                       \
            .gradients = "once: output label -> data label=0")

/* clang-format off */
const tn_op *const tni_family_regression[] = {
    REGRESSION("LinearRegressionOutput", "The input; squared loss."),
    REGRESSION("LogisticRegressionOutput", "The input's sigmoid; cross-entropy."),
    REGRESSION("MAERegressionOutput", "The input; mean absolute error."),
    NULL,
};
/* clang-format on */

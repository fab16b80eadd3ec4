/* Regression losses: one pass over the elements, forward and backward. */
#include <math.h>

#include "plain.h"
#include "short.h"
#include "tenon/plugin/op/regression.h"

enum { LINEAR, MAE }; /* what a gradient is made of: the difference, or its sign */

#define BODY "../plain/regression.inc"
#include "../common/floats.inc"

static tn_status regression_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 8 * (double)tn_tensor_count(node->in[0]));
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    plan->inplace[0] = 0;
    return TN_OK;
}

static tn_status identity_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    if (x->out[0]->data != x->in[0]->data)
        memcpy(x->out[0]->data, x->in[0]->data,
               (size_t)tn_tensor_count(x->in[0]) * tn_dtype_bytes(x->in[0]->dtype));
    return TN_OK;
}

static tn_status logistic_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    if (x->in[0]->dtype == TN_F32)
        sigmoid_f32(x->in[0]->data, tn_tensor_count(x->in[0]), x->out[0]->data);
    else
        sigmoid_f64(x->in[0]->data, tn_tensor_count(x->in[0]), x->out[0]->data);
    return TN_OK;
}

/* in: output, label */
static tn_status back(const tn_exec *x, int kind)
{
    const int64_t count = tn_tensor_count(x->in[1]);
    const int64_t each = x->in[1]->ndim && x->in[1]->shape[0] ? count / x->in[1]->shape[0] : 1;
    const double scale = tn_value_float(x->attrs[TN_regression_grad_scale]) / (double)(each > 0 ? each : 1);

    if (x->in[0]->dtype == TN_F32)
        slope_f32(x->in[0]->data, x->in[1]->data, count, kind, (float)scale, x->out[0]->data);
    else
        slope_f64(x->in[0]->data, x->in[1]->data, count, kind, scale, x->out[0]->data);
    return TN_OK;
}

static tn_status backward_difference_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return back(x, LINEAR);
}

static tn_status backward_mae_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return back(x, MAE);
}

static const char *const types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
static const char *const back_types[] = {"output:" TNCPU_FLOATS, "*:=output", NULL};

TNCPU_SHORT_KERNEL(linear, "LinearRegressionOutput", types, 0, regression_prepare, identity_run)
TNCPU_SHORT_KERNEL(backward_linear, "_backward_LinearRegressionOutput", back_types, 0, regression_prepare,
                   backward_difference_run)
TNCPU_SHORT_KERNEL(logistic, "LogisticRegressionOutput", types, 0, regression_prepare, logistic_run)
TNCPU_SHORT_KERNEL(backward_logistic, "_backward_LogisticRegressionOutput", back_types, 0, regression_prepare,
                   backward_difference_run)
TNCPU_SHORT_KERNEL(mae, "MAERegressionOutput", types, 0, regression_prepare, identity_run)
TNCPU_SHORT_KERNEL(backward_mae, "_backward_MAERegressionOutput", back_types, 0, regression_prepare,
                   backward_mae_run)

const tn_kernel *const tncpu_family_regression[] = {
    &linear, &backward_linear, &logistic, &backward_logistic, &mae, &backward_mae, NULL,
};

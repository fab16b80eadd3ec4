/* Gradients of loss layers, and softmax_cross_entropy: kernels/loss.cu. */
#include "launch.h"
#include "tenon/plugin/op/elemwise.h"
#include "tenon/plugin/op/softmax.h"

typedef struct loss_state {
    bool counts; /* the scale follows from how many labels count */
    tncuda_call_args args;
} loss_state;

/* ---- SoftmaxOutput: (y - label) scale ------------------------------------------------------------------ */

static tn_status output_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *label = node->in[0], *y = node->in[1];
    const bool multi = node->attrs[TN_SoftmaxOutput_multi_output] != 0,
               last = node->attrs[TN_SoftmaxOutput_preserve_shape] != 0,
               probabilities = tncuda_same_shape(label, y);
    const uint64_t normalization = node->attrs[TN_SoftmaxOutput_normalization];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(loss_state), err);
    loss_state *s = plan->state;
    tncuda_call_args *a;
    int64_t divide;

    if (st)
        return st;
    a = &s->args;
    tncuda_call_rows(y, multi ? 1 : last ? y->ndim - 1 : y->ndim > 1, multi ? 2 : y->ndim, a);
    if (!probabilities && tn_tensor_count(label) != a->outer * a->inner) {
        tncuda_release(plan);
        return tn_fail(err, TN_E_SHAPE, "as many labels as examples are needed: is preserve_shape missing?");
    }
    s->counts = normalization == TN_SoftmaxOutput_normalization_valid && !probabilities;
    divide = normalization == TN_SoftmaxOutput_normalization_valid ? 1 : a->inner;
    if (normalization == TN_SoftmaxOutput_normalization_batch)
        divide *= multi ? label->shape[0] : a->outer;
    a->n[0] = probabilities;
    a->n[1] = node->attrs[TN_SoftmaxOutput_use_ignore] != 0;
    a->n[2] = s->counts;
    a->f[0] = tn_value_float(node->attrs[TN_SoftmaxOutput_grad_scale]);
    a->f[0] = s->counts || probabilities ? a->f[0] : a->f[0] / (double)divide;
    a->f[1] = tn_value_float(node->attrs[TN_SoftmaxOutput_ignore_label]);
    a->f[2] = tn_value_float(node->attrs[TN_SoftmaxOutput_smooth_alpha]);
    if (node->out[0]->dtype == y->dtype)
        plan->inplace[0] = 1;
    plan->workspace_bytes = sizeof(double);
    return TN_OK;
}

static tn_status output_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const loss_state *s = plan->state;
    tncuda_call_args a = s->args, valid;
    tn_status st = TN_OK;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    a.count = tn_tensor_count(x->out[0]);
    if (s->counts) {
        valid = a;
        valid.count = tn_tensor_count(x->in[0]);
        valid.n[0] = 0;
        st = tncuda_launch_blocks(x, "loss", "loss_valid", 1, &valid, err);
    }
    return st ? st : tncuda_launch(x, "loss", "loss_softmax", a.count, &a, err);
}

/* ---- softmax_cross_entropy ----------------------------------------------------------------------------- */

static tn_status plain_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = sizeof(double);
    return st;
}

static tn_status entropy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.outer = x->in[0]->shape[0], .size = x->in[0]->shape[1]};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch_blocks(x, "loss", "loss_entropy", 1, &a, err);
}

static tn_status entropy_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.outer = x->in[1]->shape[0], .size = x->in[1]->shape[1]};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 3, 1, &a);
    return tncuda_launch(x, "loss", "loss_entropy_back", a.outer, &a, err);
}

/* ---- MakeLoss: a constant, divided by the batch or by the elements above a threshold ------------------- */

static tn_status make_loss_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const uint64_t normalization = x->attrs[TN_MakeLoss_normalization];
    tncuda_call_args a = {.n = {1},
                          .f = {tn_value_float(x->attrs[TN_MakeLoss_grad_scale]),
                                tn_value_float(x->attrs[TN_MakeLoss_valid_thresh])}};
    tn_status st;

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (normalization == TN_MakeLoss_normalization_batch && data->ndim > 0 && data->shape[0] > 0)
        a.f[0] /= (double)data->shape[0];
    tncuda_call_arrays(x, 1, 1, &a);
    a.count = normalization == TN_MakeLoss_normalization_valid ? tn_tensor_count(data) : 0;
    if ((st = tncuda_launch_blocks(x, "loss", "loss_valid", 1, &a, err)))
        return st;
    a.count = tn_tensor_count(x->out[0]);
    return tncuda_launch(x, "loss", "loss_fill", a.count, &a, err);
}

static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const labelled[] = {"label:" TNCUDA_MOST, "*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_loss[] = {
    TNCUDA_ROW("_backward_SoftmaxOutput", labelled, 0, output_prepare, output_run),
    TNCUDA_ROW("softmax_cross_entropy", labelled, 0, plain_prepare, entropy_run),
    TNCUDA_ROW("_backward_softmax_cross_entropy", labelled, 0, plain_prepare, entropy_back_run),
    TNCUDA_ROW("_backward_MakeLoss", floats, 0, plain_prepare, make_loss_run),
    NULL,
};

/* Folding of BatchNorm's statistics into the parameters of the layer before it: once, where these are
 * constants. */
#include "launch.h"
#include "tenon/plugin/op/fused.h"

static tn_status weight_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_plain_prepare(plugin, node, plan, err);

    if (!st)
        plan->inplace[0] = 0;
    return st;
}

static tn_status weight_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]),
                          .inner = tnb_dims(x->in[0], 1, x->in[0]->ndim),
                          .n = {x->attrs[TN_fold_weight_fix_gamma] != 0, 2},
                          .f = {tn_value_float(x->attrs[TN_fold_weight_eps])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 3, 1, &a);
    return tncuda_launch(x, "fold", "fold_weight", a.count, &a, err);
}

static tn_status bias_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]),
                          .n = {x->attrs[TN_fold_bias_fix_gamma] != 0, 3},
                          .f = {tn_value_float(x->attrs[TN_fold_bias_eps])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, x->attrs[TN_fold_bias_no_bias] ? 4 : 5, 1, &a);
    return tncuda_launch(x, "fold", "fold_bias", a.count, &a, err);
}

static const char *const weight_types[] = {"weight:" TNCUDA_FLOATS, "output:=weight", "*:f32,f64", NULL};
static const char *const bias_types[] = {"output:" TNCUDA_FLOATS, "bias:=output", "*:f32,f64", NULL};

const tn_kernel *const tncuda_family_fold[] = {
    TNCUDA_ROW("_fold_weight", weight_types, 0, weight_prepare, weight_run),
    TNCUDA_ROW("_fold_bias", bias_types, 0, tncuda_plain_prepare, bias_run),
    NULL,
};

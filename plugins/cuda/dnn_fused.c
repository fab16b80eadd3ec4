/*
 * _fused_conv by cuDNN: a convolution, its addend, its bias and a ReLU in one plan.
 *
 * The library's engines of such graphs want a bias. Without one, or without an engine, the operators stay
 * apart. A run that the library refuses goes by our own kernels, one after the other.
 */
#include "dnn.h"

#include "tenon/plugin/op/fused.h"

typedef struct fused_state {
    const tn_kernel *plain; /* Convolution's */
    tn_plan inner;          /* of it */
    tncuda_dnn_plan *made;
    uint32_t addend; /* which input; 0: none */
    bool relu;
} fused_state;

static void fused_release(tn_plan *plan)
{
    fused_state *s = plan->state;

    if (s) {
        tncuda_dnn_plan_give(s->made);
        if (s->inner.state)
            s->plain->release(&s->inner);
    }
    tncuda_release(plan);
}

/* in: data, weight, bias, [addend] */
static tn_status form_of(const tncuda_plugin *plugin, const tn_node *node, tncuda_dnn_form *form, tn_err *err)
{
    const int64_t act = tn_value_int(node->attrs[TN_fused_conv_act_type]);
    const bool sum = tn_value_int(node->attrs[TN_fused_conv_with_sum]) != 0;
    tncuda_window_args args = {0};
    tn_status st;

    if (act != TN_fused_conv_act_type_None && act != TN_fused_conv_act_type_relu)
        return tn_fail(err, TN_E_UNSUPPORTED, "a function that is not relu");
    if (node->in_count < (sum ? 4u : 3u))
        return tn_fail(err, TN_E_UNSUPPORTED, "no engine of cuDNN fuses what has no bias");
    if (node->modes[0] == TN_MODE_ADD)
        return tn_fail(err, TN_E_UNSUPPORTED, "the result is not added to what is there");
    if ((st = tncuda_conv_args(node, &args, err)))
        return st;
    if (!tncuda_dnn_form_of(plugin, node, &args, form))
        return tn_fail(err, TN_E_UNSUPPORTED, "nothing for cuDNN");
    form->kind = TNCUDA_DNN_FORWARD;
    form->after = TNCUDA_DNN_BIAS | (sum ? TNCUDA_DNN_ADDEND : 0) |
                  (act == TN_fused_conv_act_type_relu ? TNCUDA_DNN_RELU : 0);
    return TN_OK;
}

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_plan like = *plan;
    const tncuda_dnn *dnn;
    tncuda_dnn_form form;
    fused_state *s;
    tn_status st;

    if ((st = tncuda_dnn_need(plugin, &dnn, err)) || (st = form_of(plugin, node, &form, err)) ||
        (st = tncuda_state(plugin, node, plan, sizeof *s, err)))
        return st;
    s = plan->state;
    s->plain = tncuda_dnn_plain("Convolution");
    s->inner = like;
    s->addend = form.after & TNCUDA_DNN_ADDEND ? node->in_count - 1 : 0;
    s->relu = (form.after & TNCUDA_DNN_RELU) != 0;
    if ((st = tncuda_dnn_plain_plan(plugin, node, s->plain, &s->inner, plan, err)) ||
        (st = tncuda_dnn_plan_get(plugin, node->in[0]->device, &form, &s->made, err))) {
        fused_release(plan);
        return st;
    }
    if (plan->workspace_bytes < s->made->workspace_bytes)
        plan->workspace_bytes = s->made->workspace_bytes;
    return TN_OK;
}

/* With channels last, and then the addend, too, where a convolution alone is. */
static tn_status last_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool sum = tn_value_int(node->attrs[TN_fused_conv_with_sum]) != 0 && node->in_count > 3;
    uint32_t ins = 0, outs = 0;
    tncuda_last last;
    tn_status st;

    if (!tncuda_dnn_last(plugin, node, sum ? 1u << (node->in_count - 1) : 0, &last, &ins, &outs))
        return fused_prepare(plugin, node, plan, err);
    if (!(st = fused_prepare(plugin, &last.node, plan, err)) &&
        (st = tncuda_last_ask(plugin, node, plan, ins, outs, err)))
        fused_release(plan);
    return st;
}

/* By our own kernels. */
static tn_status plain_run(const fused_state *s, const tn_exec *x, tn_err *err)
{
    tn_status st = s->plain->run(&s->inner, x, err);

    if (!st && s->addend)
        st = tncuda_cast(x, x->in[s->addend], x->out[0], true, err);
    return st || !s->relu ? st : tncuda_relu(x, x->out[0], err);
}

static tn_status fused_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const fused_state *s = plan->state;
    const tncuda_dnn_args a = {.x = x->in[0]->data,
                               .w = x->in[1]->data,
                               .y = x->out[0]->data,
                               .addend = s->addend ? x->in[s->addend]->data : NULL,
                               .bias = x->in[2]->data,
                               .workspace = x->workspace};
    const uintptr_t all =
        (uintptr_t)a.x | (uintptr_t)a.w | (uintptr_t)a.y | (uintptr_t)a.addend | (uintptr_t)a.bias;
    tn_err why = {0};
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (all % TNCUDA_DNN_ALIGN || atomic_load(&s->made->broken))
        return plain_run(s, x, err);
    st = tncuda_dnn_run(x, s->made, &a, &why);
    if (st == TN_E_UNSUPPORTED && atomic_load(&s->made->broken))
        return plain_run(s, x, err);
    if (st && err)
        *err = why;
    return st;
}

static const char *const types[] = {"data:f32,f16,bf16", "*:=data", NULL};

const tn_kernel *const tncuda_family_dnn_fused[] = {
    TNCUDA_ROW_RANKED("_fused_conv", "cudnn", 128, types, TN_KERNEL_LAYOUTS, last_prepare, fused_run,
                      fused_release),
    NULL,
};

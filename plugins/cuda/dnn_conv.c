/*
 * Convolution, Deconvolution and their gradients by cuDNN.
 *
 * Each output that an engine serves is one plan; the others, the gradient of the bias, and runs that the
 * library refuses are computed by the plain kernel of the same operator, which is planned beside. A
 * deconvolution is convolution's gradient by its input, so x is its output.
 *
 * Where tensor cores compute, data, weights and gradients are asked for with channels last: the node is
 * planned as one whose attribute `layout` says so.
 */
#include "dnn.h"

#include <string.h>

#include "../common/window.h"

typedef struct dnn_output {
    tncuda_dnn_plan *plan; /* NULL: the plain kernel's */
    int32_t mode;
    bool apart; /* made in the workspace and added then */
    bool whole; /* the bias is added by the plan */
} dnn_output;

typedef struct dnn_state {
    const tn_kernel *plain;
    tn_plan inner;        /* of the plain kernel */
    dnn_output output[2]; /* y; or the gradients of data and weight */
    tncuda_window_args args;
    bool turned, back, bias; /* a deconvolution; a gradient; there is a bias */
} dnn_state;

const tn_kernel *tncuda_dnn_plain(const char *op)
{
    const tn_kernel *const *row = tncuda_family_conv;

    while (*row && strcmp((*row)->op, op) != 0)
        row++;
    return *row;
}

/* ---- planning ------------------------------------------------------------------------------------------ */

static bool fits(const tn_node *node, const tncuda_window_args *a)
{
    const bool turned = strstr(node->op, "Deconvolution") != NULL;
    const int off = turned ? (int)TN_Deconvolution_cudnn_off : (int)TN_Convolution_cudnn_off;

    if (tn_value_int(node->attrs[off]) || !tncuda_is_float(a->dtype) || a->groups < 1 ||
        a->channels % a->groups || a->filters % a->groups)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i]->dtype != a->dtype || tn_tensor_count(node->in[i]) < 1)
            return false;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i]->dtype != a->dtype || tn_tensor_count(node->out[i]) < 1)
            return false;
    for (int k = 0; k < TNCUDA_SPACE; k++) { /* a target_shape may lead elsewhere */
        const int64_t whole = a->in[k] + 2 * a->pad[k] - a->dilate[k] * (a->kernel[k] - 1) - 1;

        if (a->pad[k] < 0 || whole < 0 || whole / a->stride[k] + 1 != a->out[k])
            return false;
    }
    return true;
}

/* The fastest engine may be another one from run to run. */
static bool measured(const tncuda_plugin *plugin, const tn_node *node, bool turned)
{
    const int64_t tune =
        tn_value_int(node->attrs[turned ? (int)TN_Deconvolution_cudnn_tune : (int)TN_Convolution_cudnn_tune]);

    return !(node->flags & TN_NODE_DETERMINISTIC) && tune != TN_Convolution_cudnn_tune_off &&
           (plugin->autotune || tune != TN_Convolution_cudnn_tune_None);
}

static void form_of(const tncuda_plugin *plugin, const tn_node *node, const tncuda_window_args *a,
                    tncuda_dnn_form *form)
{
    const bool turned = strstr(node->op, "Deconvolution") != NULL;
    const int room = turned ? (int)TN_Deconvolution_workspace : (int)TN_Convolution_workspace;

    memset(form, 0, sizeof *form);
    form->dtype = a->dtype;
    form->space = node->in[0]->ndim == 5 ? 3 : 2;
    form->last = a->last;
    form->tf32 = plugin->tf32 && a->dtype == TN_F32;
    form->measured = measured(plugin, node, turned);
    form->batch = a->batch;
    form->channels = a->channels;
    form->filters = a->filters;
    form->groups = a->groups;
    form->limit_bytes = tn_value_int(node->attrs[room]) << 20;
    memcpy(form->in, a->in, sizeof form->in);
    memcpy(form->out, a->out, sizeof form->out);
    memcpy(form->kernel, a->kernel, sizeof form->kernel);
    memcpy(form->stride, a->stride, sizeof form->stride);
    memcpy(form->dilate, a->dilate, sizeof form->dilate);
    memcpy(form->pad, a->pad, sizeof form->pad);
}

bool tncuda_dnn_form_of(const tncuda_plugin *plugin, const tn_node *node, const tncuda_window_args *args,
                        tncuda_dnn_form *form)
{
    if (!fits(node, args))
        return false;
    form_of(plugin, node, args, form);
    return true;
}

/* With the bias in it where that can be. */
static tn_status whole_plan(tncuda_plugin *plugin, int32_t device, tncuda_dnn_form *form, bool bias,
                            dnn_output *out, tn_err *err)
{
    tn_status st = TN_E_UNSUPPORTED;

    if (bias && form->kind == TNCUDA_DNN_FORWARD && !form->add && form->dtype != TN_F64) {
        form->after = TNCUDA_DNN_BIAS;
        st = tncuda_dnn_plan_get(plugin, device, form, &out->plan, err);
        out->whole = !st;
        form->after = 0;
    }
    return st == TN_E_UNSUPPORTED ? tncuda_dnn_plan_get(plugin, device, form, &out->plan, err) : st;
}

/* Where it cannot be added to what is there, it is made apart. */
static tn_status output_plan(tncuda_plugin *plugin, const tn_node *node, uint32_t o, int32_t kind,
                             tncuda_dnn_form *form, dnn_output *out, tn_plan *plan, tn_err *err)
{
    const int32_t device = node->in[0]->device;
    tn_status st;

    out->mode = node->modes[o];
    if (out->mode == TN_MODE_NONE)
        return TN_OK;
    form->kind = kind;
    form->add = out->mode == TN_MODE_ADD;
    st = whole_plan(plugin, device, form, node->out_count == 1 && node->in_count > 2, out, err);
    if (st == TN_E_UNSUPPORTED && form->add) {
        form->add = 0;
        out->apart = true;
        st = tncuda_dnn_plan_get(plugin, device, form, &out->plan, err);
    }
    if (!st) {
        const uint64_t bytes =
            tncuda_aligned(out->plan->workspace_bytes) +
            (out->apart ? tn_dtype_size(node->out[o]->dtype, (uint64_t)tn_tensor_count(node->out[o])) : 0);

        if (plan->workspace_bytes < bytes)
            plan->workspace_bytes = bytes;
    }
    return st == TN_E_UNSUPPORTED ? TN_OK : st;
}

static void dnn_release(tn_plan *plan)
{
    dnn_state *s = plan->state;

    if (s) {
        tncuda_dnn_plan_give(s->output[0].plan);
        tncuda_dnn_plan_give(s->output[1].plan);
        if (s->inner.state)
            s->plain->release(&s->inner);
    }
    tncuda_release(plan);
}

tn_status tncuda_dnn_plain_plan(void *plugin, const tn_node *node, const tn_kernel *plain, tn_plan *inner,
                                tn_plan *plan, tn_err *err)
{
    tn_status st;

    inner->state = NULL;
    if ((st = plain->prepare(plugin, node, inner, err)))
        return st;
    plan->flags = inner->flags;
    plan->workspace_bytes = inner->workspace_bytes;
    if (plan->workspace_align < inner->workspace_align)
        plan->workspace_align = inner->workspace_align;
    if (plan->workspace_align < TNCUDA_ALIGN)
        plan->workspace_align = TNCUDA_ALIGN;
    return TN_OK;
}

/* How many elements each channel of what is behind the operator has; how many channels. */
static int64_t rows_behind(const dnn_state *s, int64_t *channels)
{
    const int64_t *extent = s->turned ? s->args.in : s->args.out;

    *channels = s->turned ? s->args.channels : s->args.filters;
    return s->args.batch * extent[0] * extent[1] * extent[2];
}

/* `all`: each output that is made is to be made by an engine. */
static tn_status dnn_prepare(void *plugin, const tn_node *node, tn_plan *plan, bool all, tn_err *err)
{
    const bool turned = strstr(node->op, "Deconvolution") != NULL, back = node->out_count > 1;
    const tn_plan like = *plan;
    tncuda_window_args args = {0};
    const tncuda_dnn *dnn;
    tncuda_dnn_form form;
    dnn_state *s;
    tn_status st;

    if ((st = tncuda_dnn_need(plugin, &dnn, err)) || (st = tncuda_conv_args(node, &args, err)))
        return st;
    if (!fits(node, &args) || (back && node->modes[0] == TN_MODE_NONE && node->modes[1] == TN_MODE_NONE))
        return tn_fail(err, TN_E_UNSUPPORTED, "nothing for cuDNN");
    if ((st = tncuda_state(plugin, node, plan, sizeof *s, err)))
        return st;
    s = plan->state;
    s->plain = tncuda_dnn_plain(node->op);
    s->inner = like;
    s->args = args;
    s->turned = turned;
    s->back = back;
    s->bias = back ? node->out_count > 2 : node->in_count > 2;
    form_of(plugin, node, &args, &form);
    st = tncuda_dnn_plain_plan(plugin, node, s->plain, &s->inner, plan, err);
    for (uint32_t o = 0; o <= back && !st; o++) {
        const int32_t kind = o ? TNCUDA_DNN_FILTER : turned == back ? TNCUDA_DNN_FORWARD : TNCUDA_DNN_DATA;

        st = output_plan(plugin, node, o, kind, &form, &s->output[o], plan, err);
        if (!st && all && !s->output[o].plan && node->modes[o] != TN_MODE_NONE)
            st = TN_E_UNSUPPORTED;
    }
    if (!st && !s->output[0].plan && !s->output[1].plan)
        st = TN_E_UNSUPPORTED; /* as it was said last */
    if (st)
        dnn_release(plan);
    return st;
}

/* ---- channels last ------------------------------------------------------------------------------------- */

/* Whether tensor cores take so many channels as they are: of the first layer's few, copies are small. */
static bool channels_fit(const tncuda_window_args *a)
{
    const int64_t pack = a->dtype == TN_F32 ? 4 : 8, in = a->channels / a->groups,
                  out = a->filters / a->groups;

    return (in % pack == 0 || (a->groups == 1 && in <= 4)) && out % pack == 0;
}

bool tncuda_dnn_last(const tncuda_plugin *plugin, const tn_node *node, uint32_t more, tncuda_last *l,
                     uint32_t *ins, uint32_t *outs)
{
    const bool turned = strstr(node->op, "Deconvolution") != NULL, back = node->out_count > 1;
    const uint32_t attr = turned ? (uint32_t)TN_Deconvolution_layout : (uint32_t)TN_Convolution_layout;
    tncuda_window_args a = {0};

    *ins = more | 3u | (back && node->modes[0] != TN_MODE_NONE ? 4u : 0u);
    *outs = back ? 3 : 1;
    if (!tncuda_last_given(node, *outs) || tncuda_conv_args(node, &a, NULL) || a.last || a.groups < 1 ||
        !(tncuda_is_short(a.dtype) || (a.dtype == TN_F32 && plugin->tf32)) || !channels_fit(&a))
        return false;
    return tncuda_last_see(l, node, more | (back ? 7u : 3u), *outs, attr,
                           node->in[0]->ndim == 5 ? TN_Convolution_layout_NDHWC : TN_Convolution_layout_NHWC);
}

static tn_status last_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_plan like = *plan;
    uint32_t ins = 0, outs = 0;
    tncuda_last last;
    tn_status st;

    if (!tncuda_dnn_last(plugin, node, 0, &last, &ins, &outs))
        return dnn_prepare(plugin, node, plan, false, err);
    if (!(st = dnn_prepare(plugin, &last.node, plan, true, NULL))) {
        if (!(st = tncuda_last_ask(plugin, node, plan, ins, outs, err)))
            return TN_OK;
        dnn_release(plan);
    }
    *plan = like;
    return st == TN_E_NOMEM ? tncuda_nomem(err, "a plan") : dnn_prepare(plugin, node, plan, false, err);
}

/* ---- running ------------------------------------------------------------------------------------------- */

/* Of one output, by the plain kernel. */
static tn_status plain_run(const dnn_state *s, const tn_exec *x, uint32_t o, tn_err *err)
{
    uint8_t modes[3] = {TN_MODE_NONE, TN_MODE_NONE, TN_MODE_NONE};
    tn_exec one = *x;

    if (x->modes[o] == TN_MODE_NONE)
        return TN_OK;
    modes[o] = x->modes[o];
    one.modes = modes;
    return s->plain->run(&s->inner, &one, err);
}

/* x, w and y of the convolution, one of them being `to`: the memory of output `o`. */
static void places(const dnn_state *s, const tn_exec *x, uint32_t o, void *to, tncuda_dnn_args *a)
{
    void **data = s->turned ? &a->y : &a->x, **other = s->turned ? &a->x : &a->y;

    if (!s->back) {
        *data = x->in[0]->data;
        a->w = x->in[1]->data;
        *other = to;
        return;
    }
    *other = x->in[0]->data;
    *data = o == 0 ? to : x->in[1]->data;
    a->w = o == 1 ? to : x->in[2]->data;
}

static bool served(const dnn_output *out, const tn_exec *x, uint32_t o, const tncuda_dnn_args *a)
{
    const uintptr_t all = (uintptr_t)a->x | (uintptr_t)a->w | (uintptr_t)a->y | (uintptr_t)a->bias;

    return out->plan && !atomic_load(&out->plan->broken) && x->modes[o] == out->mode &&
           all % TNCUDA_DNN_ALIGN == 0;
}

static tn_status output_run(const dnn_state *s, const tn_exec *x, uint32_t o, tn_err *err)
{
    const dnn_output *out = &s->output[o];
    tn_tensor made = *x->out[o];
    tncuda_dnn_args a = {.workspace = x->workspace};
    tn_err why = {0};
    tn_status st;

    if (out->plan && out->apart)
        made.data = (char *)x->workspace + tncuda_aligned(out->plan->workspace_bytes);
    places(s, x, o, made.data, &a);
    a.bias = out->whole ? x->in[2]->data : NULL;
    if (!served(out, x, o, &a))
        return plain_run(s, x, o, err);
    st = tncuda_dnn_run(x, out->plan, &a, &why);
    if (st == TN_E_UNSUPPORTED && atomic_load(&out->plan->broken))
        return plain_run(s, x, o, err);
    if (st && err)
        *err = why;
    if (!st && out->apart)
        st = tncuda_cast(x, &made, x->out[o], true, err);
    if (!st && s->bias && !s->back && !out->whole) {
        int64_t channels;
        const int64_t rows = rows_behind(s, &channels), batch = s->args.batch;

        st = tncuda_bias_add(x, x->in[2], x->out[o], s->args.last ? rows : batch, channels,
                             s->args.last ? 1 : rows / batch, err);
    }
    return st;
}

static tn_status dnn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return x->modes[0] == TN_MODE_NONE ? TN_OK : output_run(plan->state, x, 0, err);
}

/* dy, data, weight -> ddata, dweight, dbias */
static tn_status dnn_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dnn_state *s = plan->state;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < 2 && !st; o++)
        if (x->modes[o] != TN_MODE_NONE)
            st = output_run(s, x, o, err);
    return st || !s->bias ? st : plain_run(s, x, 2, err);
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};

#define ROW(op_, run_, flags_)                                                                               \
    TNCUDA_ROW_RANKED(op_, "cudnn", 128, types, TN_KERNEL_ADD_TO | (flags_), last_prepare, run_, dnn_release)

const tn_kernel *const tncuda_family_dnn_conv[] = {
    ROW("Convolution", dnn_run, TN_KERNEL_LAYOUTS),
    ROW("_backward_Convolution", dnn_back_run, TN_KERNEL_EMPTY_OK | TN_KERNEL_LAYOUTS),
    ROW("Deconvolution", dnn_run, TN_KERNEL_EMPTY_OK | TN_KERNEL_LAYOUTS),
    ROW("_backward_Deconvolution", dnn_back_run, TN_KERNEL_EMPTY_OK | TN_KERNEL_LAYOUTS),
    NULL,
};

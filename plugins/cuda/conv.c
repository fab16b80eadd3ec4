/* Convolution and Deconvolution, their gradients, im2col and col2im, as kernels/conv.inc computes them. */
#include "../common/window.h"
#include "launch.h"
#include "tenon/plugin/op/resize.h"

#include <stdio.h>
#include <string.h>

typedef struct conv_state {
    char y[TNCUDA_NAME_BYTES], dx[TNCUDA_NAME_BYTES], dw[TNCUDA_NAME_BYTES];
    bool bias, turned; /* turned: a deconvolution, whose output is convolution's gradient by its input */
    int64_t sum_outer, sum_channels, sum_inner; /* of the bias' gradient */
    tncuda_window_args args;                    /* all but the arrays */
} conv_state;

static tnb_window window_of(tncuda_window_args *a)
{
    return (tnb_window){a->in, a->out, a->kernel, a->stride, a->dilate, a->pad};
}

static void names(conv_state *s)
{
    const char *suffix = s->args.dtype == TN_I8 ? "i8" : tncuda_suffix(s->args.dtype);

    (void)snprintf(s->y, sizeof s->y, "conv_y_%s", suffix);
    (void)snprintf(s->dx, sizeof s->dx, "conv_dx_%s", suffix);
    (void)snprintf(s->dw, sizeof s->dw, "conv_dw_%s", suffix);
}

tn_status tncuda_conv_args(const tn_node *node, tncuda_window_args *args, tn_err *err)
{
    const bool back = node->out_count > 1, turned = strstr(node->op, "Deconvolution") != NULL;
    const int64_t layout =
        tn_value_int(node->attrs[turned ? (int)TN_Deconvolution_layout : (int)TN_Convolution_layout]);
    const tn_tensor *front = node->in[back], *behind = back ? node->in[0] : node->out[0];
    const tn_tensor *data = turned ? behind : front, *y = turned ? front : behind;

    if (data->ndim < 3 || data->ndim > 5)
        return tn_fail(err, TN_E_UNSUPPORTED, "space has 1 to 3 dimensions here");
    args->last = layout == TN_Convolution_layout_NHWC || layout == TN_Convolution_layout_NDHWC;
    tnb_window_attrs(node->attrs, data->ndim - 2, window_of(args));
    tnb_window_extents(data, y, args->last ? 1 : 2, window_of(args));
    if (turned)
        tnb_window_target(node->attrs, data->ndim - 2, window_of(args));
    args->batch = data->shape[0];
    args->channels = data->shape[args->last ? data->ndim - 1 : 1];
    args->filters = y->shape[args->last ? y->ndim - 1 : 1];
    args->groups =
        tn_value_int(node->attrs[turned ? (int)TN_Deconvolution_num_group : (int)TN_Convolution_num_group]);
    args->dtype = data->dtype;
    return TN_OK;
}

/* The gradient of the bias: the sums of dy, which is y or, of a deconvolution, x. */
static void bias_plan(conv_state *s, const tn_node *node, tn_plan *plan)
{
    const int64_t *extent = s->turned ? s->args.in : s->args.out;
    const int64_t space = extent[0] * extent[1] * extent[2];

    s->sum_outer = s->args.batch * (s->args.last ? space : 1);
    s->sum_channels = s->turned ? s->args.channels : s->args.filters;
    s->sum_inner = s->args.last ? 1 : space;
    plan->workspace_bytes =
        tncuda_bias_back_room(s->sum_outer, s->sum_channels, s->sum_inner, node->in[0]->dtype);
}

static tn_status conv_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tncuda_window_args args = {0};
    conv_state *s;
    tn_status st;

    if ((st = tncuda_conv_args(node, &args, err)) ||
        (st = tncuda_state(plugin, node, plan, sizeof(conv_state), err)))
        return st;
    s = plan->state;
    s->args = args;
    s->bias = node->out_count > 1 ? node->out_count > 2 : node->in_count > 2;
    s->turned = strstr(node->op, "Deconvolution") != NULL;
    if (node->out_count > 2)
        bias_plan(s, node, plan);
    names(s);
    return TN_OK;
}

static tn_status window_run(const tn_exec *x, uint32_t out, const char *family, const char *kernel,
                            const tncuda_window_args *like, tn_err *err)
{
    tncuda_window_args a = *like;

    if (x->modes[out] == TN_MODE_NONE)
        return TN_OK;
    a.to = x->out[out]->data;
    a.count = tn_tensor_count(x->out[out]);
    a.add = x->modes[out] == TN_MODE_ADD;
    return tncuda_launch(x, family, kernel, a.count, &a, err);
}

static tn_status conv_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const conv_state *s = plan->state;
    tncuda_window_args a = s->args;

    a.x = a.dy = x->in[0]->data; /* a kernel reads one of them */
    a.w = x->in[1]->data;
    a.bias = s->bias ? x->in[2]->data : NULL;
    return window_run(x, 0, "conv", s->turned ? s->dx : s->y, &a, err);
}

/* dy, data, weight -> ddata, dweight, dbias */
static tn_status conv_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const conv_state *s = plan->state;
    tncuda_window_args a = s->args;
    tn_status st;

    a.dy = x->in[s->turned]->data;
    a.x = x->in[!s->turned]->data;
    a.w = x->in[2]->data;
    if ((st = window_run(x, 0, "conv", s->turned ? s->y : s->dx, &a, err)) ||
        (st = window_run(x, 1, "conv", s->dw, &a, err)))
        return st;
    return s->bias ? tncuda_bias_back(x, 2, s->sum_outer, s->sum_channels, s->sum_inner, err) : TN_OK;
}

/* ---- UpSampling with a weight ---------------------------------------------------------------------- */

/* The Deconvolution that UpSampling with a weight is: each channel is its own group. */
tn_status tncuda_upsampling_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = node->out_count > 1;
    const int64_t scale = tn_value_int(node->attrs[TN_UpSampling_scale]);
    const tn_tensor *data = node->in[back], *y = back ? node->in[0] : node->out[0];
    tncuda_window_args *a;
    conv_state *s;
    tn_status st;

    if ((st = tncuda_state(plugin, node, plan, sizeof(conv_state), err)))
        return st;
    s = plan->state;
    s->turned = true;
    a = &s->args;
    tnb_window_extents(y, data, 2, window_of(a));
    tnb_window_scale(scale, window_of(a));
    a->batch = y->shape[0];
    a->channels = a->filters = a->groups = y->shape[1];
    a->dtype = y->dtype;
    names(s);
    return TN_OK;
}

tn_status tncuda_upsampling_run(const tn_plan *plan, const tn_exec *x, bool back, tn_err *err)
{
    return (back ? conv_back_run : conv_run)(plan, x, err);
}

/* ---- im2col, col2im: s->y is the kernel ----------------------------------------------------------- */

static tn_status unfold_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0, col2im = strstr(node->op, "col2im") != NULL;
    const bool fold = back != col2im;
    const tn_tensor *image = fold ? node->out[0] : node->in[0];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(conv_state), err);
    conv_state *s = plan->state;

    if (st)
        return st;
    s->args.dtype = image->dtype;
    tnb_window_attrs(node->attrs + (col2im ? TN_col2im_kernel : 0), image->ndim - 2, window_of(&s->args));
    tnb_window_extents(image, image, 2, window_of(&s->args));
    tnb_window_outputs(window_of(&s->args));
    (void)snprintf(s->y, sizeof s->y, "%s_%s", fold ? "fold" : "unfold", tncuda_suffix(image->dtype));
    return TN_OK;
}

static tn_status unfold_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const conv_state *s = plan->state;
    tncuda_window_args a = s->args;

    a.x = x->in[0]->data;
    return window_run(x, 0, "conv", s->y, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const bytes_types[] = {"data:i8", "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};
static const char *const any[] = {"*:" TNCUDA_FLOATS, NULL};

#define DECONV (TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK)
#define UNFOLD(op) TNCUDA_ROW(op, any, TN_KERNEL_ADD_TO, unfold_prepare, unfold_run)

const tn_kernel *const tncuda_family_conv[] = {
    TNCUDA_ROW("Convolution", types, TN_KERNEL_ADD_TO, conv_prepare, conv_run),
    TNCUDA_ROW_NAMED("Convolution", "bytes", bytes_types, 0, conv_prepare, conv_run),
    TNCUDA_ROW("_backward_Convolution", back_types, TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK, conv_prepare,
               conv_back_run),
    TNCUDA_ROW("Deconvolution", any, DECONV, conv_prepare, conv_run),
    TNCUDA_ROW("_backward_Deconvolution", any, DECONV, conv_prepare, conv_back_run),
    UNFOLD("im2col"),
    UNFOLD("_backward_im2col"),
    UNFOLD("col2im"),
    UNFOLD("_backward_col2im"),
    NULL,
};

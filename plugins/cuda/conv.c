/* Convolution with channels second, and its gradients, as kernels/conv.inc computes them. */
#include "tenon/plugin/op/conv.h"
#include "launch.h"

#include <stdio.h>

typedef struct conv_state {
    char y[TNCUDA_NAME_BYTES], dx[TNCUDA_NAME_BYTES], dw[TNCUDA_NAME_BYTES], columns[TNCUDA_NAME_BYTES];
    bool bias;
    tncuda_window_args args; /* all but the arrays */
} conv_state;

static void extents(conv_state *s, const tn_node *node, const tn_tensor *data, const tn_tensor *y)
{
    const int32_t space = data->ndim - 2;

    for (int32_t i = 0; i < TNCUDA_SPACE; i++) {
        const int32_t from = i - (TNCUDA_SPACE - space);

        s->args.in[i] = from < 0 ? 1 : data->shape[2 + from];
        s->args.out[i] = from < 0 ? 1 : y->shape[2 + from];
        s->args.kernel[i] = from < 0 ? 1 : tnb_tuple_item(node->attrs[TN_Convolution_kernel], from, 1);
        s->args.stride[i] = from < 0 ? 1 : tnb_tuple_item(node->attrs[TN_Convolution_stride], from, 1);
        s->args.dilate[i] = from < 0 ? 1 : tnb_tuple_item(node->attrs[TN_Convolution_dilate], from, 1);
        s->args.pad[i] = from < 0 ? 0 : tnb_tuple_item(node->attrs[TN_Convolution_pad], from, 0);
    }
}

static tn_status conv_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = node->out_count > 1;
    const tn_tensor *data = node->in[back ? 1 : 0], *y = back ? node->in[0] : node->out[0];
    const int64_t layout = tn_value_int(node->attrs[TN_Convolution_layout]);
    const char *suffix = tncuda_suffix(data->dtype);
    conv_state *s;
    tn_status st;

    if (layout == TN_Convolution_layout_NHWC || layout == TN_Convolution_layout_NDHWC || data->ndim < 3 ||
        data->ndim > 5)
        return tn_fail(err, TN_E_UNSUPPORTED, "channels are the second axis here, and space has 1 to 3");
    if ((st = tncuda_state(plugin, node, plan, sizeof(conv_state), err)))
        return st;
    s = plan->state;
    extents(s, node, data, y);
    s->args.batch = data->shape[0];
    s->args.channels = data->shape[1];
    s->args.filters = y->shape[1];
    s->args.groups = tn_value_int(node->attrs[TN_Convolution_num_group]);
    s->args.dtype = data->dtype;
    s->bias = back ? node->out_count > 2 : node->in_count > 2;
    (void)snprintf(s->y, sizeof s->y, "conv_y_%s", suffix);
    (void)snprintf(s->dx, sizeof s->dx, "conv_dx_%s", suffix);
    (void)snprintf(s->dw, sizeof s->dw, "conv_dw_%s", suffix);
    (void)snprintf(s->columns, sizeof s->columns, "columns_%s", suffix);
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

    a.x = x->in[0]->data;
    a.w = x->in[1]->data;
    a.bias = s->bias ? x->in[2]->data : NULL;
    return window_run(x, 0, "conv", s->y, &a, err);
}

/* dy, data, weight -> ddata, dweight, dbias */
static tn_status conv_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const conv_state *s = plan->state;
    tncuda_window_args a = s->args;
    tn_status st;

    a.dy = x->in[0]->data;
    a.x = x->in[1]->data;
    a.w = x->in[2]->data;
    if ((st = window_run(x, 0, "conv", s->dx, &a, err)) || (st = window_run(x, 1, "conv", s->dw, &a, err)))
        return st;
    if (s->bias && x->modes[2] != TN_MODE_NONE) {
        const tncuda_columns_args bias = {.outer = a.batch,
                                          .n = a.filters,
                                          .inner = a.out[0] * a.out[1] * a.out[2],
                                          .x = a.dy,
                                          .y = x->out[2]->data,
                                          .dtype = a.dtype,
                                          .add = x->modes[2] == TN_MODE_ADD};

        st = tncuda_launch(x, "dense", s->columns, a.filters, &bias, err);
    }
    return st;
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncuda_family_conv[] = {
    TNCUDA_ROW("Convolution", types, TN_KERNEL_ADD_TO, conv_prepare, conv_run),
    TNCUDA_ROW("_backward_Convolution", back_types, TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK, conv_prepare,
               conv_back_run),
    NULL,
};

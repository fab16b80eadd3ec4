/* softmax, log_softmax, softmin, SoftmaxActivation, SoftmaxOutput and the gradients of the first four. */
#include "tenon/plugin/op/softmax.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define ROW_LEAST 8    /* elements of a row that several threads make */
#define ROW_SHORT 1024 /* of one that stays in registers: 32 for each of 32 threads */

typedef struct soft_state {
    char kernel[TNCUDA_NAME_BYTES];
    bool back, lengths;
    tncuda_rows_args args;
} soft_state;

static tn_status soft_plan(void *plugin, const tn_node *node, tn_plan *plan, int32_t first, int32_t end,
                           tn_err *err)
{
    const tn_tensor *out = node->out[0], *in = node->in[0];
    const bool back = strncmp(node->op, "_backward", 9) == 0;
    soft_state *s;
    tn_status st;

    if (back && node->in[1]->dtype != in->dtype)
        return tn_fail(err, TN_E_UNSUPPORTED, "two inputs of different data types");
    if ((in->dtype == TN_F64) != (out->dtype == TN_F64))
        return tn_fail(err, TN_E_UNSUPPORTED, "float64 on one side alone");
    if ((st = tncuda_state(plugin, node, plan, sizeof(soft_state), err)))
        return st;
    s = plan->state;
    s->back = back;
    s->args.outer = tnb_dims(out, 0, first);
    s->args.size = tnb_dims(out, first, end);
    s->args.inner = tnb_dims(out, end, out->ndim);
    s->args.scale = 1;
    s->args.dtype = in->dtype;
    s->args.out_dtype = out->dtype;
    (void)snprintf(s->kernel, sizeof s->kernel, "soft_%s_%s", back ? "dx" : "y", tncuda_suffix(in->dtype));
    return TN_OK;
}

static tn_status softmax_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int32_t ndim = node->out[0]->ndim;
    const int64_t asked = tn_value_int(node->attrs[TN_softmax_axis]);
    const int32_t axis = (int32_t)(asked < 0 ? asked + ndim : asked);
    const double *temperature = tn_value_pointer(node->attrs[TN_softmax_temperature]);
    const char *name = node->op + (strncmp(node->op, "_backward_", 10) == 0 ? 10 : 0);
    soft_state *s;
    tn_status st;

    if ((st = soft_plan(plugin, node, plan, axis, axis + 1, err)))
        return st;
    s = plan->state;
    s->lengths = strcmp(node->op, "softmax") == 0 && node->in_count > 1;
    s->args.form = strcmp(name, "log_softmax") == 0 ? TNCUDA_SOFT_LOG : TNCUDA_SOFT_MAX;
    s->args.scale = (strcmp(name, "softmin") == 0 ? -1 : 1) * (temperature ? 1 / *temperature : 1);
    return TN_OK;
}

/* All of an example, or axis 1. */
static tn_status activation_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool instance = node->attrs[TN_SoftmaxActivation_mode] == TN_SoftmaxActivation_mode_instance;

    return soft_plan(plugin, node, plan, 1, instance ? node->out[0]->ndim : 2, err);
}

/* Axis 1, the last axis, or all of an example. */
static tn_status output_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int32_t ndim = node->out[0]->ndim;
    const bool multi = node->attrs[TN_SoftmaxOutput_multi_output] != 0,
               last = node->attrs[TN_SoftmaxOutput_preserve_shape] != 0;

    return soft_plan(plugin, node, plan, multi ? 1 : last ? ndim - 1 : ndim > 1, multi ? 2 : ndim, err);
}

/* Rows that stay in registers: what a thread makes follows from the shape alone. */
static tn_status short_run(const soft_state *s, const tn_exec *x, tncuda_rows_args *a, tn_err *err)
{
    char kernel[TNCUDA_NAME_BYTES];
    int64_t rows;
    bool whole;

    for (a->lanes = 4; a->lanes < 32 && a->lanes * 16 < a->size;)
        a->lanes *= 2;
    rows = TNCUDA_THREADS / a->lanes;
    a->aligned = (((uintptr_t)a->x | (uintptr_t)a->y | (uintptr_t)a->to) & 15) == 0;
    whole = a->aligned && a->dtype == a->out_dtype && a->form != TNCUDA_SOFT_LOG;
    (void)snprintf(kernel, sizeof kernel, "soft_%s_%s%d%s", s->back ? "dx" : "y",
                   a->form == TNCUDA_SOFT_LOG ? "log_" : "", a->size <= a->lanes * 16 ? 16 : 32,
                   !whole               ? ""
                   : a->dtype == TN_F32 ? "_f32"
                   : a->dtype == TN_F16 ? "_f16"
                                        : "_bf16");
    return tncuda_launch_blocks(x, "softmax", kernel, (a->outer + rows - 1) / rows, a, err);
}

static tn_status soft_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const soft_state *s = plan->state;
    tncuda_rows_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.x = a.dy = x->in[0]->data;
    a.y = s->back ? x->in[1]->data : NULL;
    a.to = x->out[0]->data;
    if (s->lengths) {
        a.label = x->in[1]->data;
        a.label_dtype = x->in[1]->dtype;
    } else if (a.inner == 1 && a.size >= ROW_LEAST && a.size <= ROW_SHORT && a.size % 8 == 0 &&
               a.dtype != TN_F64) {
        return short_run(s, x, &a, err);
    } else if (a.inner == 1 && a.size >= ROW_LEAST) {
        const int64_t rows = a.size < TNCUDA_SOFT_LONG ? TNCUDA_THREADS / 32 : 1;
        char kernel[TNCUDA_NAME_BYTES];

        (void)snprintf(kernel, sizeof kernel, "soft_%s_rows_%s", s->back ? "dx" : "y",
                       tncuda_suffix(a.dtype));
        return tncuda_launch_blocks(x, "softmax", kernel, (a.outer + rows - 1) / rows, &a, err);
    }
    return tncuda_launch(x, "softmax", s->kernel, a.size ? a.outer * a.inner : 0, &a, err);
}

static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const lengths[] = {"data:" TNCUDA_FLOATS, "length:" TNCUDA_ALL, "*:" TNCUDA_FLOATS, NULL};
static const char *const labelled[] = {"label:" TNCUDA_MOST, "*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_softmax[] = {
    TNCUDA_ROW("softmax", lengths, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("log_softmax", floats, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("softmin", floats, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("SoftmaxActivation", floats, 0, activation_prepare, soft_run),
    TNCUDA_ROW("SoftmaxOutput", labelled, 0, output_prepare, soft_run),
    TNCUDA_ROW("_backward_softmax", floats, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("_backward_log_softmax", floats, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("_backward_softmin", floats, 0, softmax_prepare, soft_run),
    TNCUDA_ROW("_backward_SoftmaxActivation", floats, 0, activation_prepare, soft_run),
    NULL,
};

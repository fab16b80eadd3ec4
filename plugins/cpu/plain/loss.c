/*
 * Gradients of the loss layers, and softmax_cross_entropy. They are the last step of a forward pass and read
 * every element once; one example is one thread's. Everything is computed in double, a tile at a time.
 */
#include <math.h>

#include "rows.h"
#include "tenon/plugin/op/elemwise.h"
#include "tenon/plugin/op/softmax.h"

/* ---- SoftmaxOutput: (y - label) scale --------------------------------------------------------- */

typedef struct output_plan {
    tncpu_rows rows;    /* of y; labels: (outer, inner) */
    bool probabilities; /* labels have the shape of y */
    bool ignore;
    int64_t divide;
    uint64_t normalization;
    double scale, ignored, alpha;
} output_plan;

typedef struct output_call {
    const output_plan *p;
    const tn_exec *x;
    double scale;
} output_call;

static tn_status output_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *label = node->in[0], *y = node->in[1];
    bool multi = node->attrs[TN_SoftmaxOutput_multi_output] != 0,
         last = node->attrs[TN_SoftmaxOutput_preserve_shape] != 0;
    int32_t first = multi ? 1 : last ? y->ndim - 1 : y->ndim > 1 ? 1 : 0, end = multi ? 2 : y->ndim;
    output_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->rows = tncpu_rows_of(y, first, end);
    p->probabilities = tncpu_same_shape(label, y);
    if (!p->probabilities && tn_tensor_count(label) != p->rows.outer * p->rows.inner) {
        tncpu_release(plan);
        return tn_fail(err, TN_E_SHAPE, "as many labels as examples are needed: is preserve_shape missing?");
    }
    p->scale = tn_value_float(node->attrs[TN_SoftmaxOutput_grad_scale]);
    p->ignored = tn_value_float(node->attrs[TN_SoftmaxOutput_ignore_label]);
    p->ignore = node->attrs[TN_SoftmaxOutput_use_ignore] != 0;
    p->normalization = node->attrs[TN_SoftmaxOutput_normalization];
    p->alpha = tn_value_float(node->attrs[TN_SoftmaxOutput_smooth_alpha]);
    p->divide = p->normalization == TN_SoftmaxOutput_normalization_valid ? 1 : p->rows.inner;
    if (p->normalization == TN_SoftmaxOutput_normalization_batch)
        p->divide *= multi ? label->shape[0] : p->rows.outer;
    if (node->out[0]->dtype == y->dtype)
        plan->inplace[0] = 1;
    tncpu_plan_work(node, plan, 30.0 + (double)(p->rows.outer * p->rows.size * p->rows.inner) * 3.0);
    return TN_OK;
}

/* Labels that count for normalization=valid, at least 1. */
static int64_t valid_count(const output_plan *p, const tn_exec *x)
{
    int64_t valid = 0;

    for (int64_t k = 0; k < p->rows.outer * p->rows.inner; k++)
        valid += tncpu_number(x->in[0], k) != p->ignored;
    return valid > 0 ? valid : 1;
}

/* The elements of one label. */
static void label_row(const void *arg, int64_t row, double *room)
{
    const output_call *call = arg;
    const output_plan *p = call->p;
    const int64_t size = p->rows.size, inner = p->rows.inner, base = tncpu_row_at(&p->rows, row);
    const double label = tncpu_number(call->x->in[0], row),
                 rest = size > 1 ? p->alpha / (double)(size - 1) : 0;
    const bool none = p->ignore && label == p->ignored;
    double d[TNCPU_TILE];

    (void)room;
    for (int64_t at = 0; at < size; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, size - at);

        tncpu_numbers(call->x->in[1], base + at * inner, inner, n, d);
        for (int64_t i = 0; i < n; i++) {
            const double target = (double)(at + i) == trunc(label) ? 1 - p->alpha : rest;

            d[i] = none ? 0 : (d[i] - target) * call->scale;
        }
        tncpu_numbers_store(call->x->out[0], base + at * inner, inner, n, d);
    }
}

static void probability_tile(const void *arg, int64_t tile, double *room)
{
    const output_call *call = arg;
    const tn_tensor *y = call->x->in[1];
    const int64_t at = tile * TNCPU_TILE, n = tncpu_min(TNCPU_TILE, tn_tensor_count(y) - at);
    double d[TNCPU_TILE], label[TNCPU_TILE];

    (void)room;
    tncpu_numbers(y, at, 1, n, d);
    tncpu_numbers(call->x->in[0], at, 1, n, label);
    for (int64_t i = 0; i < n; i++)
        d[i] = (d[i] - label[i]) * call->p->scale;
    tncpu_numbers_store(call->x->out[0], at, 1, n, d);
}

static tn_status output_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const output_plan *p = plan->state;
    output_call call = {p, x, p->scale / (double)p->divide};

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (p->normalization == TN_SoftmaxOutput_normalization_valid && !p->probabilities)
        call.scale = p->scale / (double)valid_count(p, x);
    if (p->probabilities)
        tncpu_rows_run(plan, x, tncpu_ceil_div(tn_tensor_count(x->in[1]), TNCPU_TILE), 0, probability_tile,
                       &call);
    else
        tncpu_rows_run(plan, x, p->rows.outer * p->rows.inner, 0, label_row, &call);
    return TN_OK;
}

/* ---- softmax_cross_entropy: rows are joined in order ------------------------------------------ */

/* in: …, data, label */
static tn_status entropy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[node->in_count - 2];

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 30.0 + (double)tn_tensor_count(data) * 20.0, 1);
    tncpu_plan_workspace(plan, (uint64_t)(data->shape[1] + 1) * sizeof(double));
    return TN_OK;
}

/* exp(x - largest) of a row; the sum of it. */
static double row_exp(const tn_tensor *data, int64_t row, double *to)
{
    const int64_t size = data->shape[1];
    double top = -INFINITY, sum = 0;

    tncpu_numbers(data, row * size, 1, size, to);
    for (int64_t k = 0; k < size; k++)
        top = to[k] > top ? to[k] : top;
    for (int64_t k = 0; k < size; k++)
        sum += to[k] = exp(to[k] - top);
    return sum;
}

static tn_status entropy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const double *e = x->workspace;
    double loss = 0;

    (void)plan, (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t n = 0; n < data->shape[0]; n++) {
        const double at = trunc(tncpu_number(x->in[1], n)), sum = row_exp(data, n, x->workspace);
        const double p = at >= 0 && at < (double)data->shape[1] ? e[(int64_t)at] / sum : 0;

        loss -= log(p > 1e-8 ? p : 1e-8);
    }
    tncpu_numbers_store(x->out[0], 0, 1, 1, &loss);
    return TN_OK;
}

static tn_status entropy_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[1];
    const double dy = tncpu_number(x->in[0], 0);
    double *e = x->workspace;

    (void)plan, (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t n = 0, size = data->shape[1]; n < data->shape[0]; n++) {
        const double at = trunc(tncpu_number(x->in[2], n)), sum = row_exp(data, n, e);

        for (int64_t k = 0; k < size; k++)
            e[k] = (e[k] / sum - ((double)k == at)) * dy;
        tncpu_numbers_store(x->out[0], n * size, 1, size, e);
    }
    return TN_OK;
}

/* ---- MakeLoss: a constant, divided by the batch or by the elements above a threshold ---------- */

TNCPU_PREPARE(make_loss_prepare,
              tncpu_plan_tasks(node, plan, 30.0 + (double)tn_tensor_count(node->in[0]) * 2.0, 1))

static tn_status make_loss_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const uint64_t normalization = x->attrs[TN_MakeLoss_normalization];
    const double above = tn_value_float(x->attrs[TN_MakeLoss_valid_thresh]);
    double scale = tn_value_float(x->attrs[TN_MakeLoss_grad_scale]);
    int64_t valid = 0;

    (void)plan, (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (normalization == TN_MakeLoss_normalization_batch && data->ndim > 0 && data->shape[0] > 0)
        scale /= (double)data->shape[0];
    if (normalization == TN_MakeLoss_normalization_valid) {
        for (int64_t k = 0; k < tn_tensor_count(data); k++)
            valid += tncpu_number(data, k) > above;
        scale /= (double)(valid > 0 ? valid : 1);
    }
    tncpu_fill(x->out[0], scale);
    return TN_OK;
}

static const char *const labelled[] = {"label:" TNCPU_MOST, "*:" TNCPU_FLOATS, NULL};

/* clang-format off */
const tn_kernel *const tncpu_family_loss[] = {
    TNCPU_ROW("_backward_SoftmaxOutput", labelled, 0, output_prepare, output_run),
    TNCPU_ROW("softmax_cross_entropy", labelled, 0, entropy_prepare, entropy_run),
    TNCPU_ROW("_backward_softmax_cross_entropy", labelled, 0, entropy_prepare, entropy_back_run),
    TNCPU_ROW("_backward_MakeLoss", tncpu_floats, 0, make_loss_prepare, make_loss_run),
    NULL,
};
/* clang-format on */

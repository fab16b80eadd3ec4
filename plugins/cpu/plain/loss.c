/*
 * Gradients of the loss layers, and softmax_cross_entropy. They are the last step of a forward pass and read
 * every element once; one example is one thread's. Elements are brought to double one row at a time.
 */
#include <math.h>

#include "loops.h"
#include "tenon/plugin/op/elemwise.h"
#include "tenon/plugin/op/softmax.h"

/* Element `at` of an array of any type, as a number. */
static double number(const tncpu_convert *c, const void *data, int64_t at)
{
    tncpu_tile one;

    c->load((const char *)data + at * c->bytes, 1, &one, 1);
    switch (c->kind) {
    case TNCPU_K_F32:
        return (double)one.f32[0];
    case TNCPU_K_F64:
        return one.f64[0];
    case TNCPU_K_I32:
        return (double)one.i32[0];
    default:
        return (double)one.i64[0];
    }
}

/* ---- SoftmaxOutput: (y - label) scale --------------------------------------------------------- */

typedef struct output_plan {
    int64_t outer, size, inner; /* as in softmax.c; labels: (outer, inner) */
    bool probabilities;         /* labels have the shape of y */
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
    p->outer = p->size = p->inner = 1;
    for (int32_t d = 0; d < y->ndim; d++)
        *(d < first ? &p->outer : d < end ? &p->size : &p->inner) *= y->shape[d];
    p->probabilities = tncpu_same_shape(label, y);
    if (!p->probabilities && tn_tensor_count(label) != p->outer * p->inner) {
        tncpu_release(plan);
        return tn_fail(err, TN_E_SHAPE, "as many labels as examples are needed: is preserve_shape missing?");
    }
    p->scale = tn_value_float(node->attrs[TN_SoftmaxOutput_grad_scale]);
    p->ignored = tn_value_float(node->attrs[TN_SoftmaxOutput_ignore_label]);
    p->ignore = node->attrs[TN_SoftmaxOutput_use_ignore] != 0;
    p->normalization = node->attrs[TN_SoftmaxOutput_normalization];
    p->alpha = tn_value_float(node->attrs[TN_SoftmaxOutput_smooth_alpha]);
    p->divide = p->normalization == TN_SoftmaxOutput_normalization_valid ? 1 : p->inner;
    if (p->normalization == TN_SoftmaxOutput_normalization_batch)
        p->divide *= multi ? label->shape[0] : p->outer;
    if (node->out[0]->dtype == y->dtype)
        plan->inplace[0] = 1;
    tncpu_plan_work(node, plan, 30.0 + (double)(p->outer * p->size * p->inner) * 3.0);
    return TN_OK;
}

/* Labels that count for normalization=valid, at least 1. */
static int64_t valid_count(const output_plan *p, const tn_exec *x)
{
    const tncpu_convert *c = &tncpu_converts[x->in[0]->dtype];
    int64_t valid = 0;

    for (int64_t k = 0; k < p->outer * p->inner; k++)
        valid += number(c, x->in[0]->data, k) != p->ignored;
    return valid > 0 ? valid : 1;
}

/* One label: `size` elements, `inner` apart. */
static void label_run(const output_call *call, int64_t vector)
{
    const output_plan *p = call->p;
    const tn_exec *x = call->x;
    const tncpu_convert *c = &tncpu_converts[x->out[0]->dtype];
    int64_t base = vector / p->inner * p->size * p->inner + vector % p->inner;
    double label = number(&tncpu_converts[x->in[0]->dtype], x->in[0]->data, vector);
    double rest = p->size > 1 ? p->alpha / (double)(p->size - 1) : 0;
    bool none = p->ignore && label == p->ignored;
    tncpu_tile tile;

    for (int64_t at = 0; at < p->size; at += TNCPU_TILE) {
        int64_t n = p->size - at < TNCPU_TILE ? p->size - at : TNCPU_TILE;
        int64_t offset = (base + at * p->inner) * c->bytes;

        c->load((const char *)x->in[1]->data + offset, p->inner, &tile, n);
        for (int64_t i = 0; i < n; i++) {
            double y = c->kind == TNCPU_K_F64 ? tile.f64[i] : (double)tile.f32[i];
            double target = (double)(at + i) == trunc(label) ? 1 - p->alpha : rest;
            double d = none ? 0 : (y - target) * call->scale;

            if (c->kind == TNCPU_K_F64)
                tile.f64[i] = d;
            else
                tile.f32[i] = (float)d;
        }
        c->store(&tile, (char *)x->out[0]->data + offset, p->inner, n);
    }
}

static void output_part(void *arg, int64_t begin, int64_t end)
{
    const output_call *call = arg;

    for (int64_t k = begin; k < end; k++)
        label_run(call, k);
}

static void probability_part(void *arg, int64_t begin, int64_t end)
{
    const output_call *call = arg;
    const tn_exec *x = call->x;
    const tncpu_convert *label = &tncpu_converts[x->in[0]->dtype], *c = &tncpu_converts[x->out[0]->dtype];

    for (int64_t k = begin; k < end; k++) {
        double d = (number(c, x->in[1]->data, k) - number(label, x->in[0]->data, k)) * call->p->scale;

        c->store_f(&d, (char *)x->out[0]->data + k * c->bytes, 1, 1);
    }
}

static tn_status output_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const output_plan *p = plan->state;
    output_call call = {p, x, p->scale / (double)p->divide};
    uint32_t threads = tncpu_threads(plan, x);

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (p->probabilities) {
        tncpu_for(threads, p->outer * p->size * p->inner, TNCPU_TILE, probability_part, &call);
        return TN_OK;
    }
    if (p->normalization == TN_SoftmaxOutput_normalization_valid)
        call.scale = p->scale / (double)valid_count(p, x);
    tncpu_for(threads, p->outer * p->inner, 1, output_part, &call);
    return TN_OK;
}

/* ---- softmax_cross_entropy: rows are joined in order ------------------------------------------ */

static tn_status entropy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    tncpu_plan_work(node, plan, 30.0 + (double)tn_tensor_count(node->in[node->in_count - 2]) * 20.0);
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

/* The largest element of a row and the sum of exp(x - largest). */
static double row_sum(const tncpu_convert *c, const char *row, int64_t size, double *top)
{
    double sum = 0;

    *top = -INFINITY;
    for (int64_t k = 0; k < size; k++) {
        double v = number(c, row, k);

        *top = v > *top ? v : *top;
    }
    for (int64_t k = 0; k < size; k++)
        sum += exp(number(c, row, k) - *top);
    return sum;
}

static tn_status entropy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *label = x->in[1];
    const tncpu_convert *c = &tncpu_converts[data->dtype], *l = &tncpu_converts[label->dtype];
    double loss = 0, top;

    (void)plan;
    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t n = 0; n < data->shape[0]; n++) {
        const char *row = (const char *)data->data + n * data->shape[1] * c->bytes;
        double at = trunc(number(l, label->data, n)), sum = row_sum(c, row, data->shape[1], &top), p = 0;

        if (at >= 0 && at < (double)data->shape[1])
            p = exp(number(c, row, (int64_t)at) - top) / sum;
        loss -= log(p > 1e-8 ? p : 1e-8);
    }
    tncpu_converts[x->out[0]->dtype].store_f(&loss, x->out[0]->data, 1, 1);
    return TN_OK;
}

static tn_status entropy_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[1], *label = x->in[2];
    const tncpu_convert *c = &tncpu_converts[data->dtype], *l = &tncpu_converts[label->dtype];
    double dy = number(c, x->in[0]->data, 0), top;

    (void)plan;
    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t n = 0; n < data->shape[0]; n++) {
        int64_t offset = n * data->shape[1] * c->bytes;
        const char *row = (const char *)data->data + offset;
        double at = trunc(number(l, label->data, n)), sum = row_sum(c, row, data->shape[1], &top);

        for (int64_t k = 0; k < data->shape[1]; k++) {
            double d = (exp(number(c, row, k) - top) / sum - ((double)k == at)) * dy;

            c->store_f(&d, (char *)x->out[0]->data + offset + k * c->bytes, 1, 1);
        }
    }
    return TN_OK;
}

/* ---- MakeLoss: a constant, divided by the batch or by the elements above a threshold ---------- */

static tn_status make_loss_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    tncpu_plan_work(node, plan, 30.0 + (double)tn_tensor_count(node->in[0]) * 2.0);
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

static tn_status make_loss_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const tncpu_convert *c = &tncpu_converts[data->dtype];
    int64_t count = tn_tensor_count(data), valid = 0;
    double scale = tn_value_float(x->attrs[TN_MakeLoss_grad_scale]),
           above = tn_value_float(x->attrs[TN_MakeLoss_valid_thresh]);

    (void)plan;
    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (x->attrs[TN_MakeLoss_normalization] == TN_MakeLoss_normalization_batch && data->ndim > 0 &&
        data->shape[0] > 0)
        scale /= (double)data->shape[0];
    for (int64_t k = 0; k < count && x->attrs[TN_MakeLoss_normalization] == TN_MakeLoss_normalization_valid;
         k++)
        valid += number(c, data->data, k) > above;
    if (x->attrs[TN_MakeLoss_normalization] == TN_MakeLoss_normalization_valid)
        scale /= (double)(valid > 0 ? valid : 1);
    for (int64_t k = 0; k < count; k++)
        c->store_f(&scale, (char *)x->out[0]->data + k * c->bytes, 1, 1);
    return TN_OK;
}

static const char *const floats[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const labelled[] = {"label:" TNCPU_MOST, "*:" TNCPU_FLOATS, NULL};

/* clang-format off */
const tn_kernel *const tncpu_family_loss[] = {
    TNCPU_ROW("_backward_SoftmaxOutput", labelled, 0, output_prepare, output_run),
    TNCPU_ROW("softmax_cross_entropy", labelled, 0, entropy_prepare, entropy_run),
    TNCPU_ROW("_backward_softmax_cross_entropy", labelled, 0, entropy_prepare, entropy_back_run),
    TNCPU_ROW("_backward_MakeLoss", floats, 0, make_loss_prepare, make_loss_run),
    NULL,
};
/* clang-format on */

/*
 * Normalisation. Blocks of channels (or whole rows) are the tasks; a sum never crosses tasks, so the bits do
 * not depend on threads.
 */
#include <math.h>

#include "meet.h"
#include "rows.h"
#include "short.h"
#include "tenon/plugin/op/norm.h"
#include "tenon/plugin/util.h"

#define BLOCK 16     /* channels of a task */
#define ELEMENTS 128 /* of a row, in a task that goes over all rows */
#define PLACES 256   /* sums side by side in LRN */
#define LANES 8      /* running sums of one channel */

/* Data as (outer, size, inner), size counts channels; outer is 0 where inner is. */
static tncpu_rows channels_of(const tn_tensor *x, int64_t asked)
{
    const int32_t axis = tncpu_axis(asked, x->ndim);
    tncpu_rows r = tncpu_rows_of(x, axis, axis + 1);

    r.outer = r.inner ? r.outer : 0;
    return r;
}

static double tree(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

typedef struct batch_norm_call {
    tncpu_rows l;
    const tn_exec *x;
    int train, backward;
    double count; /* of elements of a channel */
    /* Of several devices, (2, channels): what this one brings, what all do; NULL: it is alone. */
    double *own, *all;
} batch_norm_call;

#define BODY "../plain/norm.inc"
#include "../common/floats.inc"

/* ---- BatchNorm --------------------------------------------------------------------------------------- */

typedef struct batch_norm_state {
    int32_t train, backward;  /* train: the batch's own statistics are used */
    tncpu_meetings *meetings; /* NULL: of one device */
} batch_norm_state;

static int32_t wants_batch(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) && !tn_value_int(node->attrs[TN_BatchNorm_use_global_stats]);
}

static int is_backward(const tn_node *node)
{
    return strncmp(node->op, "_backward", 9) == 0;
}

static tn_status batch_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int backward = is_backward(node);
    const tn_tensor *data = node->in[backward];
    const tncpu_rows l = channels_of(data, tn_value_int(node->attrs[TN_BatchNorm_axis]));
    batch_norm_state *state;
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    state->backward = backward;
    state->train = wants_batch(node) && /* of a backward: in predict mode, or of a forward in it, not */
                   (!backward || !node->forward || ((const batch_norm_state *)node->forward->state)->train);
    tncpu_plan_tasks(node, plan, 100 + 2 * (double)tn_tensor_count(data), tncpu_ceil_div(l.size, BLOCK));
    return TN_OK;
}

static batch_norm_call call_of(const batch_norm_state *s, const tn_exec *x, int64_t axis)
{
    const tncpu_rows l = channels_of(x->in[s->backward], axis);

    return (batch_norm_call){.l = l,
                             .x = x,
                             .train = s->train != 0,
                             .backward = s->backward,
                             .count = (double)(l.outer * l.inner)};
}

/* Blocks of channels. `bodies`: for float32 and float64. */
static void blocks_run(const tn_plan *plan, const batch_norm_call *call, tncpu_row_body *const bodies[2])
{
    const tn_exec *x = call->x;

    tncpu_rows_run(plan, x, tncpu_ceil_div(call->l.size, BLOCK), plan->workspace_bytes,
                   bodies[x->in[call->backward]->dtype == TN_F64], call);
}

static tncpu_row_body *const norm_bodies[2][2] = {
    {batch_norm_block_f32, batch_norm_block_f64},
    {backward_batch_norm_block_f32, backward_batch_norm_block_f64},
};

static tn_status batch_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const batch_norm_state *s = plan->state;
    const batch_norm_call call = call_of(s, x, tn_value_int(x->attrs[TN_BatchNorm_axis]));

    (void)err;
    blocks_run(plan, &call, norm_bodies[s->backward]);
    return TN_OK;
}

static tn_status batch_norm_relu_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const int64_t count = x->modes[0] ? tn_tensor_count(y) : 0;
    const tn_status st = batch_norm_run(plan, x, err);

    for (int64_t k = 0; k < count; k++)
        if (y->dtype == TN_F64)
            ((double *)y->data)[k] = ((double *)y->data)[k] < 0 ? 0 : ((double *)y->data)[k];
        else
            ((float *)y->data)[k] = ((float *)y->data)[k] < 0 ? 0 : ((float *)y->data)[k];
    return st;
}

/* SyncBatchNorm's attributes as BatchNorm's. */
#define BATCH_NORM_ATTRS (TN_BatchNorm_max_calib_range + 1)
static void sync_attrs(const tn_value *attrs, tn_value *out)
{
    memset(out, 0, BATCH_NORM_ATTRS * sizeof *out);
    memcpy(out, attrs, (TN_BatchNorm_output_mean_var + 1) * sizeof *out);
    out[TN_BatchNorm_axis] = 1;
}

/* Whether statistics are those of a batch, which the forward of a backward had, too. */
static bool meets(const tn_node *node)
{
    return wants_batch(node) && !(is_backward(node) && node->forward && !node->forward->saved_bytes);
}

static tn_status alone_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_value attrs[BATCH_NORM_ATTRS];
    tn_node plain = *node;

    if (tn_value_int(node->attrs[TN_contrib_SyncBatchNorm_ndev]) > 1 && meets(node))
        return tn_fail(err, TN_E_UNSUPPORTED, "of several devices: the kernel sync does it");
    sync_attrs(node->attrs, attrs);
    plain.attrs = attrs;
    return batch_norm_prepare(plugin, &plain, plan, err);
}

static tn_status alone_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_value attrs[BATCH_NORM_ATTRS];
    tn_exec plain = *x;

    sync_attrs(x->attrs, attrs);
    plain.attrs = attrs;
    return batch_norm_run(plan, &plain, err);
}

/* ---- SyncBatchNorm of several devices ------------------------------------------------------------------ */

/* The workspace: the arrival; what this device brings; what all do. The saved block: the meeting's number, by
 * which the backward finds those of the same forward. */
static tn_status sync_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[is_backward(node)];
    const int64_t channels = channels_of(data, 1).size;
    batch_norm_state *state;
    tn_status st;

    if (!meets(node))
        return alone_prepare(plugin, node, plan, err);
    if (!((const tncpu_plugin *)plugin)->meetings)
        return tn_fail(err, TN_E_UNSUPPORTED, "the host gives no threads to wait for other devices");
    if ((st = tncpu_state(plugin, plan, sizeof *state, err)))
        return st;
    state = plan->state;
    *state = (batch_norm_state){1, is_backward(node), ((const tncpu_plugin *)plugin)->meetings};
    tncpu_plan_tasks(node, plan, 100 + 2 * (double)tn_tensor_count(data), tncpu_ceil_div(channels, BLOCK));
    plan->workspace_bytes = sizeof(tncpu_arrival) + 4 * (uint64_t)channels * sizeof(double);
    plan->saved_bytes = state->backward ? 0 : sizeof(uint64_t);
    return TN_OK;
}

/* Sums over the devices, in their order. */
static void sync_join(const tncpu_arrival *first, int backward, double *all)
{
    const int64_t channels = first->channels;
    double count = 0;

    memset(all, 0, 2 * (size_t)channels * sizeof *all);
    for (const tncpu_arrival *a = first; a; a = a->next) {
        const double part = backward ? 1 : a->count; /* means count as often as there are elements */

        count += a->count;
        for (int64_t c = 0; c < channels; c++)
            all[c] += part * a->own[c];
    }
    for (int64_t c = 0; c < channels && !backward; c++)
        all[c] = count > 0 ? all[c] / count : 0;
    for (const tncpu_arrival *a = first; a; a = a->next)
        for (int64_t c = 0; c < channels; c++) {
            const double apart = a->own[c] - all[c], second = a->own[channels + c];

            all[channels + c] += backward ? second : a->count * (second + apart * apart);
        }
    for (int64_t c = 0; c < channels && !backward; c++)
        all[channels + c] = count > 0 ? all[channels + c] / count : 0;
}

static tn_status sync_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static tncpu_row_body *const bodies[2] = {sync_block_f32, sync_block_f64};
    const batch_norm_state *s = plan->state;
    tncpu_arrival *mine = x->workspace, *first = NULL;
    batch_norm_call call;
    double *all, count = 0;
    tn_status st;

    if (!s->meetings)
        return alone_run(plan, x, err);
    call = call_of(s, x, 1);
    all = (double *)(void *)(mine + 1) + 2 * call.l.size;
    call.own = all - 2 * call.l.size;
    blocks_run(plan, &call, bodies);
    *mine =
        (tncpu_arrival){.plan = plan,
                        .x = x,
                        .name = s->backward ? "_backward__contrib_SyncBatchNorm" : "_contrib_SyncBatchNorm",
                        .key = tn_attrs_text(x->attrs, TN_contrib_SyncBatchNorm_key),
                        .ndev = tn_value_int(x->attrs[TN_contrib_SyncBatchNorm_ndev]),
                        .channels = call.l.size,
                        .device = x->in[0]->device,
                        .round = s->backward && x->saved ? *(const uint64_t *)x->saved : 0,
                        .count = call.count,
                        .own = call.own};
    if ((st = tncpu_meet(s->meetings, mine, &first, err)))
        return st;
    sync_join(first, s->backward, all);
    for (const tncpu_arrival *a = first; a; a = a->next)
        count += a->count;
    for (const tncpu_arrival *a = first; a; a = a->next) {
        call = call_of(s, a->x, 1);
        call.count = count;
        call.own = a->own;
        call.all = all;
        blocks_run(a->plan, &call, norm_bodies[s->backward]);
        if (!s->backward && a->x->saved)
            *(uint64_t *)a->x->saved = a->round;
    }
    tncpu_meet_end(first, mine, TN_OK, NULL);
    return TN_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

/* What is normalised together. Each element of a row has a gamma and a beta; with groups, each row has: those
 * of row % groups, and inner is 1. */
typedef struct norm_state {
    const struct norm_form *form;
    tncpu_rows rows;
    int64_t count, groups; /* count: of rows */
    double eps;
    uint32_t outputs;
    bool backward, keeps_variance;
} norm_state;

typedef struct norm_call {
    const norm_state *s;
    const tn_exec *x;
    const double *gamma, *beta; /* of all elements or groups */
} norm_call;

/* Of an operator and its gradient. */
typedef struct norm_form {
    const char *op;
    tncpu_row_body *row, *back;
    bool affine; /* inputs are followed by gamma, and of the forward by beta */
} norm_form;

static void geometry_set(norm_state *s, const tn_tensor *x, const tn_value *attrs)
{
    const bool group = strcmp(s->form->op, "GroupNorm") == 0;

    s->keeps_variance = strcmp(s->form->op, "InstanceNorm") == 0;
    if (strcmp(s->form->op, "LayerNorm") == 0) {
        s->rows = channels_of(x, tn_value_int(attrs[TN_LayerNorm_axis]));
        s->eps = tn_value_float(attrs[TN_LayerNorm_eps]);
    } else if (strcmp(s->form->op, "L2Normalization") == 0) {
        const int64_t mode = tn_value_int(attrs[TN_L2Normalization_mode]);

        s->rows = mode == TN_L2Normalization_mode_channel
                      ? channels_of(x, 1)
                      : tncpu_rows_of(x, mode == TN_L2Normalization_mode_instance ? 1 : 2, x->ndim);
        s->eps = tn_value_float(attrs[TN_L2Normalization_eps]);
    } else {
        s->groups = group ? tn_value_int(attrs[TN_GroupNorm_num_groups]) : x->shape[1];
        s->rows.outer = x->shape[0] * s->groups;
        s->rows.size = s->groups ? x->shape[1] / s->groups * tncpu_dims(x, 2, x->ndim) : 0;
        s->rows.inner = 1;
        s->eps = group               ? tn_value_float(attrs[TN_GroupNorm_eps])
                 : s->keeps_variance ? tn_value_float(attrs[TN_InstanceNorm_eps])
                                     : 0;
    }
    s->count = s->rows.outer * s->rows.inner;
}

static int64_t params_of(const norm_state *s)
{
    return s->groups ? s->groups : s->rows.size;
}

/* Of gamma and beta in the workspace. */
static uint64_t shared_bytes(const norm_state *s)
{
    return 2 * (uint64_t)params_of(s) * sizeof(double);
}

static void rows_each(const tn_plan *plan, const tn_exec *x, int64_t count, tncpu_row_body *body, int gamma,
                      int beta)
{
    const norm_state *s = plan->state;
    const int64_t params = params_of(s);
    double *room = x->workspace;
    const norm_call call = {s, x, room, room + params};

    if (count > 0 && gamma)
        tncpu_numbers(x->in[gamma], 0, 1, params, room);
    if (count > 0 && beta)
        tncpu_numbers(x->in[beta], 0, 1, params, room + params);
    tncpu_rows_run(plan, x, count, shared_bytes(s), body, &call);
}

static void row_load(const norm_call *c, uint32_t input, int64_t row, double *to)
{
    const tncpu_rows *r = &c->s->rows;

    tncpu_numbers(c->x->in[input], tncpu_row_at(r, row), r->inner, r->size, to);
}

static void row_store(const norm_call *c, int64_t row, const double *from)
{
    const tncpu_rows *r = &c->s->rows;

    if (c->x->modes[0])
        tncpu_numbers_store(c->x->out[0], tncpu_row_at(r, row), r->inner, r->size, from);
}

/* What is made for each row, where somebody wants it. */
static void each_store(const norm_call *c, uint32_t output, int64_t at, int64_t n, const double *from)
{
    if (c->x->modes[output])
        tncpu_numbers_store(c->x->out[output], at, 1, n, from);
}

static double deviation(const norm_call *c, int64_t row)
{
    const double kept = tncpu_number(c->x->in[4], row);

    return c->s->keeps_variance ? sqrt(kept + c->s->eps) : kept;
}

/* in: data, gamma, beta; out: y, mean, deviation or variance. */
static void norm_row(const void *call, int64_t row, double *x)
{
    const norm_call *c = call;
    const int64_t n = c->s->rows.size, g = c->s->groups ? 0 : 1, first = g ? 0 : row % c->s->groups;
    const double *gamma = c->gamma + first, *beta = c->beta + first;
    double mean, var, dev;

    row_load(c, 0, row, x);
    mean = tncpu_lanes_sum(x, NULL, n) / (double)n;
    for (int64_t i = 0; i < n; i++)
        x[i] -= mean;
    var = tncpu_lanes_sum(x, x, n) / (double)n;
    dev = sqrt(var + c->s->eps);
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] / dev * gamma[i * g] + beta[i * g];
    row_store(c, row, x);
    each_store(c, 1, row, 1, &mean);
    each_store(c, 2, row, 1, c->s->keeps_variance ? &var : &dev);
}

/* in: dy, data, gamma, mean, deviation or variance; out: dx, dgamma, dbeta.
 * dx = (g - mean(g) - n·mean(g·n)) / deviation, with n the normalised row and g = dy·gamma. */
static void backward_norm_row(const void *call, int64_t row, double *dy)
{
    const norm_call *c = call;
    const int64_t n = c->s->rows.size, g = c->s->groups ? 0 : 1;
    const double *gamma = c->gamma + (g ? 0 : row % c->s->groups);
    const double mean = tncpu_number(c->x->in[3], row), dev = deviation(c, row);
    double *x = dy + n, a, b;

    row_load(c, 0, row, dy);
    row_load(c, 1, row, x);
    for (int64_t i = 0; i < n; i++) {
        dy[i] *= gamma[i * g];
        x[i] = (x[i] - mean) / dev;
    }
    a = tncpu_lanes_sum(dy, NULL, n) / (double)n;
    b = tncpu_lanes_sum(dy, x, n) / (double)n;
    for (int64_t i = 0; i < n; i++)
        dy[i] = (dy[i] - a - x[i] * b) / dev;
    row_store(c, row, dy);
}

/* dgamma and dbeta of a block of elements of the rows, over all rows in order. */
static void backward_norm_elements(const void *call, int64_t block, double *room)
{
    const norm_call *c = call;
    const tncpu_rows *r = &c->s->rows;
    const int64_t first = block * ELEMENTS, n = tncpu_min(ELEMENTS, r->size - first);
    double sum[ELEMENTS] = {0}, product[ELEMENTS] = {0}, dy[ELEMENTS], x[ELEMENTS];

    (void)room;
    for (int64_t row = 0; row < c->s->count; row++) {
        const int64_t at = tncpu_row_at(r, row) + first * r->inner;
        const double mean = tncpu_number(c->x->in[3], row), dev = deviation(c, row);

        tncpu_numbers(c->x->in[0], at, r->inner, n, dy);
        tncpu_numbers(c->x->in[1], at, r->inner, n, x);
        for (int64_t i = 0; i < n; i++) {
            sum[i] += dy[i];
            product[i] += dy[i] * ((x[i] - mean) / dev);
        }
    }
    each_store(c, 1, first, n, product);
    each_store(c, 2, first, n, sum);
}

/* dgamma and dbeta of one group, over its rows in order. */
static void backward_norm_group(const void *call, int64_t group, double *dy)
{
    const norm_call *c = call;
    const int64_t n = c->s->rows.size;
    double *x = dy + n, sum = 0, product = 0;

    for (int64_t row = group; row < (n ? c->s->count : 0); row += c->s->groups) {
        const double mean = tncpu_number(c->x->in[3], row);

        row_load(c, 0, row, dy);
        row_load(c, 1, row, x);
        for (int64_t i = 0; i < n; i++)
            x[i] -= mean;
        sum += tncpu_lanes_sum(dy, NULL, n);
        product += tncpu_lanes_sum(dy, x, n) / deviation(c, row);
    }
    each_store(c, 1, group, 1, &product);
    each_store(c, 2, group, 1, &sum);
}

/* ---- L2Normalization --------------------------------------------------------------------------------- */

/* in: data; out: y, norm. */
static void l2_row(const void *call, int64_t row, double *x)
{
    const norm_call *c = call;
    const int64_t n = c->s->rows.size;
    double norm;

    row_load(c, 0, row, x);
    norm = sqrt(tncpu_lanes_sum(x, x, n) + c->s->eps);
    for (int64_t i = 0; i < n; i++)
        x[i] /= norm;
    row_store(c, row, x);
    each_store(c, 1, row, 1, &norm);
}

/* in: dy, data, norm; out: dx = (dy - y sum(dy y)) / norm, with y = data / norm. */
static void backward_l2_row(const void *call, int64_t row, double *dy)
{
    const norm_call *c = call;
    const int64_t n = c->s->rows.size;
    const double norm = tncpu_number(c->x->in[2], row);
    double *y = dy + n, sum;

    row_load(c, 0, row, dy);
    row_load(c, 1, row, y);
    for (int64_t i = 0; i < n; i++)
        y[i] /= norm;
    sum = tncpu_lanes_sum(dy, y, n);
    for (int64_t i = 0; i < n; i++)
        dy[i] = (dy[i] - y[i] * sum) / norm;
    row_store(c, row, dy);
}

/* ---- LRN: a row is one channel of one example, its neighbours are channels of the same example ------- */

/* sum[k] = Σ x², or of the backward Σ dy·y / norm, at `count` places from `at` of the row on, over the
 * channels that its window has: as many before the row's own as behind it,
 * as MXNet with oneDNN takes them. */
static void lrn_window(const norm_call *c, int64_t row, int64_t at, int64_t count, double *sum)
{
    const int64_t reach = (tn_value_int(c->x->attrs[TN_LRN_nsize]) - 1) / 2;
    const int64_t channel = row % c->s->groups, last = tncpu_min(c->s->groups - 1, channel + reach);
    double a[PLACES], y[PLACES], norm[PLACES];

    for (int64_t k = 0; k < count; k++)
        sum[k] = 0;
    for (int64_t j = tncpu_max(0, channel - reach); j <= last; j++) {
        const int64_t from = (row - channel + j) * c->s->rows.size + at;

        tncpu_numbers(c->x->in[0], from, 1, count, a);
        for (int64_t k = 0; !c->s->backward && k < count; k++)
            sum[k] += a[k] * a[k];
        if (!c->s->backward)
            continue;
        tncpu_numbers(c->x->in[2], from, 1, count, y);
        tncpu_numbers(c->x->in[3], from, 1, count, norm);
        for (int64_t k = 0; k < count; k++)
            sum[k] += a[k] * y[k] / norm[k];
    }
}

static double lrn_scale(const norm_call *c)
{
    return tn_value_float(c->x->attrs[TN_LRN_alpha]) / (double)tn_value_int(c->x->attrs[TN_LRN_nsize]);
}

/* in: data; out: y = data norm^-beta, norm = knorm + alpha / nsize Σ data². */
static void lrn_row(const void *call, int64_t row, double *norm)
{
    const norm_call *c = call;
    const double beta = tn_value_float(c->x->attrs[TN_LRN_beta]),
                 knorm = tn_value_float(c->x->attrs[TN_LRN_knorm]), scale = lrn_scale(c);
    double *y = norm + PLACES;

    for (int64_t at = 0; at < c->s->rows.size; at += PLACES) {
        const int64_t n = tncpu_min(PLACES, c->s->rows.size - at), first = row * c->s->rows.size + at;

        lrn_window(c, row, at, n, norm);
        tncpu_numbers(c->x->in[0], first, 1, n, y);
        for (int64_t k = 0; k < n; k++) {
            norm[k] = knorm + scale * norm[k];
            y[k] *= c->x->modes[0] ? pow(norm[k], -beta) : 0;
        }
        each_store(c, 0, first, n, y);
        each_store(c, 1, first, n, norm);
    }
}

/* in: dy, data, y, norm; out: dx = dy norm^-beta - 2 beta alpha / nsize data Σ dy y / norm. */
static void backward_lrn_row(const void *call, int64_t row, double *room)
{
    const norm_call *c = call;
    const double beta = tn_value_float(c->x->attrs[TN_LRN_beta]), scale = lrn_scale(c);
    double sum[PLACES], norm[PLACES], *dy = room, *x = room + PLACES;

    for (int64_t at = 0; at < c->s->rows.size; at += PLACES) {
        const int64_t n = tncpu_min(PLACES, c->s->rows.size - at), first = row * c->s->rows.size + at;

        lrn_window(c, row, at, n, sum);
        tncpu_numbers(c->x->in[0], first, 1, n, dy);
        tncpu_numbers(c->x->in[1], first, 1, n, x);
        tncpu_numbers(c->x->in[3], first, 1, n, norm);
        for (int64_t k = 0; k < n; k++)
            dy[k] = dy[k] * pow(norm[k], -beta) - 2 * beta * scale * x[k] * sum[k];
        each_store(c, 0, first, n, dy);
    }
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

/* X(operator, body, body of the gradient, affine, flags of the gradient) */
#define NORMS(X)                                                                                             \
    X("LayerNorm", norm_row, backward_norm_row, true, TN_KERNEL_EMPTY_OK)                                    \
    X("InstanceNorm", norm_row, backward_norm_row, true, TN_KERNEL_EMPTY_OK)                                 \
    X("GroupNorm", norm_row, backward_norm_row, true, TN_KERNEL_EMPTY_OK)                                    \
    X("L2Normalization", l2_row, backward_l2_row, false, 0)                                                  \
    X("LRN", lrn_row, backward_lrn_row, false, 0)

#define FORM(op, row, back, affine, flags) {op, row, back, affine},
static const norm_form forms[] = {NORMS(FORM)};

/* Workspace: gamma and beta as doubles, then two rows for each thread. */
static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool backward = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[backward];
    tn_status st = tncpu_state(plugin, plan, sizeof(norm_state), err);
    norm_state *s;

    if (st)
        return st;
    s = plan->state;
    s->backward = backward;
    s->outputs = node->out_count;
    s->form = tncpu_form_of(forms, sizeof *forms, node->op + (backward ? 10 : 0));
    geometry_set(s, data, node->attrs);
    tncpu_plan_tasks(node, plan, 50 + 4 * (double)tn_tensor_count(data), s->count);
    plan->workspace_bytes = shared_bytes(s);
    tncpu_plan_workspace(plan, 2 * (uint64_t)tncpu_max(s->rows.size, PLACES) * sizeof(double));
    return TN_OK;
}

static tn_status rows_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_state *s = plan->state;
    const norm_form *f = s->form;
    bool others = false; /* statistics, or gradients of parameters */

    (void)err;
    for (uint32_t o = 1; o < s->outputs; o++)
        others = others || x->modes[o] != TN_MODE_NONE;
    if (s->backward && s->rows.size && x->modes[0])
        rows_each(plan, x, s->count, f->back, f->affine ? 2 : 0, 0);
    if (!s->backward && (s->rows.size || others)) /* rows of nothing have a mean and a deviation, too */
        rows_each(plan, x, s->count, f->row, f->affine ? 1 : 0, f->affine ? 2 : 0);
    if (s->backward && others && s->groups)
        rows_each(plan, x, s->groups, backward_norm_group, 0, 0);
    else if (s->backward && others)
        rows_each(plan, x, tncpu_ceil_div(s->rows.size, ELEMENTS), backward_norm_elements, 0, 0);
    return TN_OK;
}

static const char *const norm_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
/* Statistics of short types are float32. */
static const char *const batch_norm_types[] = {"data:" TNCPU_FLOATS, "*:" TNCPU_FLOATS, NULL};

TNCPU_SHORT_KERNEL(batch_norm, "BatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK, batch_norm_prepare,
                   batch_norm_run)
TNCPU_SHORT_ROW(backward_batch_norm, "_backward_BatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK,
                batch_norm_prepare, true, batch_norm_run)

TNCPU_SHORT_KERNEL(batch_norm_relu, "_contrib_BatchNormWithReLU", batch_norm_types, TN_KERNEL_EMPTY_OK,
                   batch_norm_prepare, batch_norm_relu_run)
TNCPU_SHORT_KERNEL(sync_alone, "_contrib_SyncBatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK, alone_prepare,
                   alone_run)
TNCPU_SHORT_ROW(backward_sync_alone, "_backward__contrib_SyncBatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK,
                alone_prepare, true, alone_run)

/* Behind `plain`, which serves one device. */
#define SYNC(op)                                                                                             \
    (&(const tn_kernel)TNCPU_KERNEL_RANKED(op, "sync", 32, TNCPU_TYPES("*:f32,f64"),                         \
                                           TN_KERNEL_EMPTY_OK | TN_KERNEL_ASYNC, sync_prepare, sync_run,     \
                                           tncpu_release))

#define ROWS(op, row, back, affine, flags)                                                                   \
    TNCPU_ROW(op, norm_types, 0, rows_prepare, rows_run),                                                    \
        TNCPU_ROW("_backward_" op, norm_types, flags, rows_prepare, rows_run),

const tn_kernel *const tncpu_family_norm[] = {
    &batch_norm,
    &backward_batch_norm,
    &batch_norm_relu,
    &sync_alone,
    &backward_sync_alone,
    SYNC("_contrib_SyncBatchNorm"),
    SYNC("_backward__contrib_SyncBatchNorm"),
    NORMS(ROWS) NULL,
};

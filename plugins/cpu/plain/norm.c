/*
 * Normalisation. Blocks of channels (or whole rows) are the tasks; a sum never crosses tasks, so the bits do
 * not depend on threads.
 */
#include <math.h>

#include "../common/cpu.h"
#include "plain.h"
#include "short.h"
#include "tenon/plugin/op/norm.h"

#define BLOCK 16  /* channels of a task */
#define PLACES 64 /* sums side by side in LRN */
#define LANES 8   /* running sums of one channel */

/* Data as (outer, channels, inner); outer is 0 where inner is, however many there would be. */
typedef struct layout {
    int64_t outer, channels, inner;
} layout;

static layout layout_of(const tn_tensor *x, int64_t asked)
{
    const int32_t axis = tncpu_axis(asked, x->ndim);
    const int64_t inner = tncpu_dims(x, axis + 1, x->ndim);

    return (layout){inner ? tncpu_dims(x, 0, axis) : 0, x->shape[axis], inner};
}

/* What is normalised together: `count` rows of `length` elements that lie `step` apart. Each element of a row
 * has a gamma and a beta; with groups, each row has: those of row % groups, and step is 1. */
typedef struct rows {
    int64_t count, length, step, groups, keeps_variance;
    double eps;
} rows;

typedef void row_function(const rows *r, const tn_exec *x, int64_t row);

static int64_t row_start(const rows *r, int64_t row)
{
    return row / r->step * r->length * r->step + row % r->step;
}

static int64_t row_group(const rows *r, int64_t row)
{
    return r->groups ? row % r->groups : 0;
}

/* Channels that LRN sums for one: this many before it and behind it, as MXNet with oneDNN takes them. */
static int64_t lrn_reach(const tn_value *attrs)
{
    return (tn_value_int(attrs[TN_LRN_nsize]) - 1) / 2;
}

static double lrn_scale(const tn_value *attrs)
{
    return tn_value_float(attrs[TN_LRN_alpha]) / (double)tn_value_int(attrs[TN_LRN_nsize]);
}

static double tree(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#define BODY "../plain/norm.inc"
#include "../common/floats.inc"

/* ---- BatchNorm --------------------------------------------------------------------------------------- */

typedef struct batch_norm_state {
    int64_t train; /* the batch's own statistics are used */
} batch_norm_state;

static int32_t wants_batch(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) && !tn_value_int(node->attrs[TN_BatchNorm_use_global_stats]);
}

static tn_status batch_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int backward = strcmp(node->op, "_backward_BatchNorm") == 0;
    const tn_tensor *data = node->in[backward ? 1 : 0];
    const layout l = layout_of(data, tn_value_int(node->attrs[TN_BatchNorm_axis]));
    batch_norm_state *state;
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    state->train = wants_batch(node) && /* of a backward: in predict mode, or of a forward in it, not */
                   (!backward || !node->forward || ((const batch_norm_state *)node->forward->state)->train);
    tncpu_plan_tasks(node, plan, 100 + 2 * (double)tn_tensor_count(data), tncpu_ceil_div(l.channels, BLOCK));
    return TN_OK;
}

static tn_status batch_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const layout l = layout_of(x->in[0], tn_value_int(x->attrs[TN_BatchNorm_axis]));
    const int train = ((const batch_norm_state *)plan->state)->train != 0,
              threads = tncpu_run_threads(plan, x);

    (void)err, (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t c = 0; c < l.channels; c += BLOCK)
        if (x->in[0]->dtype == TN_F32)
            batch_norm_block_f32(&l, x, train, c, tncpu_min(c + BLOCK, l.channels));
        else
            batch_norm_block_f64(&l, x, train, c, tncpu_min(c + BLOCK, l.channels));
    return TN_OK;
}

static tn_status backward_batch_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const layout l = layout_of(x->in[1], tn_value_int(x->attrs[TN_BatchNorm_axis]));
    const int train = ((const batch_norm_state *)plan->state)->train != 0,
              threads = tncpu_run_threads(plan, x);

    (void)err, (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t c = 0; c < l.channels; c += BLOCK)
        if (x->in[1]->dtype == TN_F32)
            backward_batch_norm_block_f32(&l, x, train, c, tncpu_min(c + BLOCK, l.channels));
        else
            backward_batch_norm_block_f64(&l, x, train, c, tncpu_min(c + BLOCK, l.channels));
    return TN_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

/* (outer, channels, inner): rows of channels. */
static rows rows_between(const layout *l, double eps)
{
    return (rows){.count = l->outer * l->inner, .length = l->channels, .step = l->inner, .eps = eps};
}

static rows rows_grouped(const tn_tensor *x, int64_t groups, double eps)
{
    return (rows){.count = x->shape[0] * groups,
                  .length = groups ? x->shape[1] / groups * tncpu_dims(x, 2, x->ndim) : 0,
                  .step = 1,
                  .groups = groups,
                  .eps = eps};
}

static rows rows_of(const char *op, const tn_tensor *x, const tn_value *attrs)
{
    rows r;

    if (strcmp(op, "LayerNorm") == 0) {
        const layout l = layout_of(x, tn_value_int(attrs[TN_LayerNorm_axis]));

        return rows_between(&l, tn_value_float(attrs[TN_LayerNorm_eps]));
    }
    if (strcmp(op, "GroupNorm") == 0)
        return rows_grouped(x, tn_value_int(attrs[TN_GroupNorm_num_groups]),
                            tn_value_float(attrs[TN_GroupNorm_eps]));
    if (strcmp(op, "L2Normalization") == 0) {
        const int64_t mode = tn_value_int(attrs[TN_L2Normalization_mode]);
        const int32_t first = mode == TN_L2Normalization_mode_instance ? 1 : 2;
        const double eps = tn_value_float(attrs[TN_L2Normalization_eps]);

        if (mode == TN_L2Normalization_mode_channel) {
            const layout l = layout_of(x, 1);

            return rows_between(&l, eps);
        }
        return (rows){
            .count = tncpu_dims(x, 0, first), .length = tncpu_dims(x, first, x->ndim), .step = 1, .eps = eps};
    }
    if (strcmp(op, "LRN") == 0)
        return rows_grouped(x, x->shape[1], 0);
    r = rows_grouped(x, x->shape[1], tn_value_float(attrs[TN_InstanceNorm_eps]));
    r.keeps_variance = 1;
    return r;
}

static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int backward = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[backward];
    tn_status st = tncpu_state(plugin, plan, sizeof(rows), err);
    rows *r;

    if (st)
        return st;
    r = plan->state;
    *r = rows_of(node->op + (backward ? 10 : 0), data, node->attrs);
    tncpu_plan_tasks(node, plan, 50 + 4 * (double)tn_tensor_count(data), r->count);
    return TN_OK;
}

static void rows_each(const tn_plan *plan, const tn_exec *x, int64_t count, row_function *f32,
                      row_function *f64)
{
    const rows *r = plan->state;
    row_function *const run = x->in[0]->dtype == TN_F32 ? f32 : f64;
    const int threads = tncpu_run_threads(plan, x);

    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t row = 0; row < count; row++)
        run(r, x, row);
}

static tn_status norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows *r = plan->state;

    (void)err; /* rows of nothing have a mean and a deviation, if somebody wants them */
    rows_each(plan, x, r->length || x->modes[1] || x->modes[2] ? r->count : 0, norm_row_f32, norm_row_f64);
    return TN_OK;
}

static tn_status backward_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows *r = plan->state;
    const int params = x->modes[1] || x->modes[2];

    (void)err;
    rows_each(plan, x, x->modes[0] && r->length ? r->count : 0, backward_norm_row_f32, backward_norm_row_f64);
    if (params && r->groups)
        rows_each(plan, x, r->groups, backward_norm_group_f32, backward_norm_group_f64);
    else if (params)
        rows_each(plan, x, tncpu_ceil_div(r->length, BLOCK), backward_norm_elements_f32,
                  backward_norm_elements_f64);
    return TN_OK;
}

static tn_status l2_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows *r = plan->state;

    (void)err;
    rows_each(plan, x, r->length || x->modes[1] ? r->count : 0, l2_row_f32, l2_row_f64);
    return TN_OK;
}

static tn_status backward_l2_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const rows *r = plan->state;

    (void)err;
    rows_each(plan, x, r->length ? r->count : 0, backward_l2_row_f32, backward_l2_row_f64);
    return TN_OK;
}

static tn_status lrn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_each(plan, x, ((const rows *)plan->state)->count, lrn_row_f32, lrn_row_f64);
    return TN_OK;
}

static tn_status backward_lrn_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_each(plan, x, ((const rows *)plan->state)->count, backward_lrn_row_f32, backward_lrn_row_f64);
    return TN_OK;
}

static const char *const norm_types[] = {"data:" TNCPU_FLOATS, "*:=data", NULL};
/* Statistics of short types are float32. */
static const char *const batch_norm_types[] = {"data:" TNCPU_FLOATS, "*:" TNCPU_FLOATS, NULL};

TNCPU_SHORT_KERNEL(batch_norm, "BatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK, batch_norm_prepare,
                   batch_norm_run)
TNCPU_SHORT_ROW(backward_batch_norm, "_backward_BatchNorm", batch_norm_types, TN_KERNEL_EMPTY_OK,
                batch_norm_prepare, true, backward_batch_norm_run)

#define ROWS(id, op, flags, run) TNCPU_SHORT_KERNEL(id, op, norm_types, flags, rows_prepare, run)

ROWS(layer_norm, "LayerNorm", 0, norm_run)
ROWS(backward_layer_norm, "_backward_LayerNorm", TN_KERNEL_EMPTY_OK, backward_norm_run)
ROWS(instance_norm, "InstanceNorm", 0, norm_run)
ROWS(backward_instance_norm, "_backward_InstanceNorm", TN_KERNEL_EMPTY_OK, backward_norm_run)
ROWS(group_norm, "GroupNorm", 0, norm_run)
ROWS(backward_group_norm, "_backward_GroupNorm", TN_KERNEL_EMPTY_OK, backward_norm_run)
ROWS(l2_normalization, "L2Normalization", 0, l2_run)
ROWS(backward_l2_normalization, "_backward_L2Normalization", 0, backward_l2_run)
ROWS(lrn, "LRN", 0, lrn_run)
ROWS(backward_lrn, "_backward_LRN", 0, backward_lrn_run)

const tn_kernel *const tncpu_family_norm[] = {
    &batch_norm,
    &backward_batch_norm,
    &layer_norm,
    &backward_layer_norm,
    &instance_norm,
    &backward_instance_norm,
    &group_norm,
    &backward_group_norm,
    &l2_normalization,
    &backward_l2_normalization,
    &lrn,
    &backward_lrn,
    NULL,
};

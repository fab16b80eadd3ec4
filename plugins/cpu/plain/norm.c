/*
 * Normalisation. Blocks of channels (or whole rows) are the tasks; a sum never crosses tasks, so the bits do
 * not depend on threads.
 */
#include <math.h>

#include "../common/cpu.h"
#include "plain.h"
#include "tenon/plugin/indices.h"

#define BLOCK 16 /* channels of a task */
#define LANES 8  /* running sums of one channel */

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

static double tree(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#define T float
#define FN(name) name##_f32
#include "norm.inc"
#undef T
#undef FN
#define T double
#define FN(name) name##_f64
#include "norm.inc"
#undef T
#undef FN

/* ---- BatchNorm --------------------------------------------------------------------------------------- */

typedef struct batch_norm_state {
    int64_t train; /* the batch's own statistics are used */
} batch_norm_state;

static int32_t wants_batch(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) && !tn_value_int(node->attrs[TN_BATCHNORM_USE_GLOBAL_STATS]);
}

static tn_status batch_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int backward = strcmp(node->op, "_backward_BatchNorm") == 0;
    const tn_tensor *data = node->in[backward ? 1 : 0];
    const layout l = layout_of(data, tn_value_int(node->attrs[TN_BATCHNORM_AXIS]));
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
    const layout l = layout_of(x->in[0], tn_value_int(x->attrs[TN_BATCHNORM_AXIS]));
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
    const layout l = layout_of(x->in[1], tn_value_int(x->attrs[TN_BATCHNORM_AXIS]));
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

/* ---- LayerNorm --------------------------------------------------------------------------------------- */

static tn_status layer_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[strcmp(node->op, "_backward_LayerNorm") == 0 ? 1 : 0];
    const layout l = layout_of(data, tn_value_int(node->attrs[TN_LAYERNORM_AXIS]));

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 50 + 4 * (double)tn_tensor_count(data), l.outer * l.inner);
    return TN_OK;
}

static tn_status layer_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const layout l = layout_of(x->in[0], tn_value_int(x->attrs[TN_LAYERNORM_AXIS]));
    const int threads = tncpu_run_threads(plan, x);
    /* rows of nothing have a mean and a deviation, if somebody wants them */
    const int64_t rows = l.channels || x->modes[1] || x->modes[2] ? l.outer * l.inner : 0;

    (void)err, (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t row = 0; row < rows; row++)
        if (x->in[0]->dtype == TN_F32)
            layer_norm_row_f32(&l, x, row);
        else
            layer_norm_row_f64(&l, x, row);
    return TN_OK;
}

static tn_status backward_layer_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const layout l = layout_of(x->in[1], tn_value_int(x->attrs[TN_LAYERNORM_AXIS]));
    const int threads = tncpu_run_threads(plan, x), single = x->in[1]->dtype == TN_F32;

    (void)err, (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t row = 0; row < (x->modes[0] && l.channels ? l.outer * l.inner : 0); row++)
        if (single)
            backward_layer_norm_row_f32(&l, x, row);
        else
            backward_layer_norm_row_f64(&l, x, row);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t c = 0; c < (x->modes[1] || x->modes[2] ? l.channels : 0); c += BLOCK)
        if (single)
            backward_layer_norm_params_f32(&l, x, c, tncpu_min(c + BLOCK, l.channels));
        else
            backward_layer_norm_params_f64(&l, x, c, tncpu_min(c + BLOCK, l.channels));
    return TN_OK;
}

static const char *const norm_types[] = {"data:f32,f64", "*:=data", NULL};

static const tn_kernel batch_norm =
    TNCPU_KERNEL("BatchNorm", norm_types, TN_KERNEL_EMPTY_OK, batch_norm_prepare, batch_norm_run);
static const tn_kernel backward_batch_norm = TNCPU_KERNEL(
    "_backward_BatchNorm", norm_types, TN_KERNEL_EMPTY_OK, batch_norm_prepare, backward_batch_norm_run);
static const tn_kernel layer_norm =
    TNCPU_KERNEL("LayerNorm", norm_types, 0, layer_norm_prepare, layer_norm_run);
static const tn_kernel backward_layer_norm = TNCPU_KERNEL(
    "_backward_LayerNorm", norm_types, TN_KERNEL_EMPTY_OK, layer_norm_prepare, backward_layer_norm_run);

const tn_kernel *const tncpu_family_norm[] = {&batch_norm, &backward_batch_norm, &layer_norm,
                                              &backward_layer_norm, NULL};

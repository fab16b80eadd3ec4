/* Reshapes that cannot be views (another device, a given output), and transposes. */
#include "move.h"

#include <string.h>

#include "tenon/plugin/indices.h"

/* ---- copies ------------------------------------------------------------------------------------------ */

static tn_status copy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 20 + 0.3 * (double)tn_tensor_count(node->in[0]), 1);
    plan->inplace[0] = 0;
    return TN_OK;
}

static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    if (x->out[0]->data != x->in[0]->data)
        memcpy(x->out[0]->data, x->in[0]->data,
               (size_t)tn_tensor_count(x->in[0]) * tn_dtype_bytes(x->in[0]->dtype));
    return TN_OK;
}

/* ---- transposes -------------------------------------------------------------------------------------- */

/* The output's axis k is the input's axis order[k]. */
static void permute(const tn_plan *plan, const tn_exec *x, const int32_t *order)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    int64_t src_step[TN_NDIM_MAX], dst_step[TN_NDIM_MAX];
    tncpu_move m;

    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(in->dtype);
    tncpu_move_steps(in->shape, in->ndim, src_step);
    tncpu_move_steps(out->shape, out->ndim, dst_step);
    for (int32_t k = 0; k < out->ndim; k++)
        tncpu_move_add(&m, out->shape[k], src_step[order[k]], dst_step[k]);
    tncpu_move_run(&m, in->data, out->data, tncpu_run_threads(plan, x));
}

static tn_status transpose_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    return tncpu_move_plan(node, plan, tn_tensor_count(node->in[0]));
}

static tn_status transpose_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int32_t ndim = x->in[0]->ndim;
    int32_t order[TN_NDIM_MAX];

    (void)err;
    for (int32_t k = 0; k < ndim; k++)
        order[k] = tncpu_axis(tncpu_tuple_item(x->attrs[TN_TRANSPOSE_AXES], k, ndim - 1 - k), ndim);
    permute(plan, x, order);
    return TN_OK;
}

static tn_status swap_axis_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int32_t ndim = x->in[0]->ndim, a = tncpu_axis(tn_value_int(x->attrs[TN_SWAPAXIS_DIM1]), ndim);
    const int32_t b = tncpu_axis(tn_value_int(x->attrs[TN_SWAPAXIS_DIM2]), ndim);
    int32_t order[TN_NDIM_MAX];

    (void)err;
    for (int32_t k = 0; k < ndim; k++)
        order[k] = k == a ? b : k == b ? a : k;
    permute(plan, x, order);
    return TN_OK;
}

static const char *const move_types[] = {"data:" TNCPU_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "data:=dy", "dx:=dy", NULL};

static const tn_kernel reshape = TNCPU_KERNEL("Reshape", move_types, 0, copy_prepare, copy_run);
static const tn_kernel flatten = TNCPU_KERNEL("Flatten", move_types, 0, copy_prepare, copy_run);
static const tn_kernel expand_dims = TNCPU_KERNEL("expand_dims", move_types, 0, copy_prepare, copy_run);
static const tn_kernel squeeze = TNCPU_KERNEL("squeeze", move_types, 0, copy_prepare, copy_run);
static const tn_kernel backward_reshape =
    TNCPU_KERNEL("_backward_reshape", back_types, 0, copy_prepare, copy_run);
static const tn_kernel transpose = TNCPU_KERNEL("transpose", move_types, 0, transpose_prepare, transpose_run);
static const tn_kernel swap_axis = TNCPU_KERNEL("SwapAxis", move_types, 0, transpose_prepare, swap_axis_run);

const tn_kernel *const tncpu_family_shape[] = {
    &reshape, &flatten, &expand_dims, &squeeze, &backward_reshape, &transpose, &swap_axis, NULL,
};

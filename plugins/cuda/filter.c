/* Arrays that are written where a mask is not 0: kernels/filter.cu. */
#include "tenon/plugin/op/filter.h"
#include "../common/move.h"
#include "edit.h"

static int64_t parts_of(const tn_tensor *mask)
{
    return (tn_tensor_count(mask) + TNCUDA_FILTER_PART - 1) / TNCUDA_FILTER_PART;
}

static tn_status assign_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *mask = node->in[1];
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->inplace[0] = 0;
    if (node->in_count > 2)
        plan->workspace_bytes = (uint64_t)(tn_tensor_count(mask) + parts_of(mask) + 1) * sizeof(int64_t);
    return st;
}

static void mask_args(const tn_exec *x, int32_t axis, tncuda_edit_args *a)
{
    const tn_tensor *data = x->in[0], *mask = x->in[1];

    tncuda_edit_arrays(x, a);
    a->places = tncuda_array_of(mask, TN_MODE_NONE);
    a->outer = tnb_dims(data, 0, axis);
    a->size = tn_tensor_count(mask);
    a->inner = tnb_dims(data, axis + mask->ndim, data->ndim);
    a->axis = axis;
}

static tn_status assign_scalar_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_edit_args a = {.number = tn_value_float(x->attrs[TN_mask_assign_scalar_value]), .most = 1};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    mask_args(x, (int32_t)tn_value_int(x->attrs[TN_mask_assign_scalar_start_axis]), &a);
    return tncuda_launch(x, "filter", "filter_put", a.count, &a, err);
}

/* The value's steps along (before the mask's axes …, chosen, behind them …); a dimension of size 1 does not
 * move. */
static void value_steps(const tn_tensor *data, const tn_tensor *mask, const tn_tensor *v, tncuda_edit_args *a)
{
    int64_t n = 1;

    a->ndim = data->ndim - mask->ndim + 1;
    a->most = INT64_MAX;
    for (int32_t d = a->ndim; d-- > 0;) {
        const int32_t at = d - (a->ndim - v->ndim);

        a->shape[d] = data->shape[d <= a->axis ? d : d + mask->ndim - 1];
        a->along[d] = at < 0 || v->shape[at] == 1 ? 0 : n;
        n *= at < 0 ? 1 : v->shape[at];
        if (d == a->axis && at >= 0 && v->shape[at] != 1)
            a->most = v->shape[at];
    }
}

static tn_status assign_tensor_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *v = x->in[2];
    tncuda_edit_args a = {.count = 0};
    tn_status st;

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    mask_args(x, (int32_t)tn_value_int(x->attrs[TN_mask_assign_tensor_start_axis]), &a);
    value_steps(x->in[0], x->in[1], v, &a);
    if (!tn_tensor_count(v)) /* where nothing is written there is nothing to write */
        return tnb_move_copy(plan, x, x->in[0], x->out[0], err);
    a.values = tncuda_array_of(v, TN_MODE_NONE);
    a.count = parts_of(x->in[1]);
    if ((st = tncuda_launch(x, "filter", "filter_counts", a.count, &a, err)) ||
        (st = tncuda_launch_blocks(x, "filter", "filter_starts", 1, &a, err)) ||
        (st = tncuda_launch(x, "filter", "filter_ranks", a.count, &a, err)))
        return st;
    a.count = tn_tensor_count(x->out[0]);
    return tncuda_launch(x, "filter", "filter_put", a.count, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_ALL, "mask:" TNCUDA_ALL, "*:=data", NULL};

const tn_kernel *const tncuda_family_filter[] = {
    TNCUDA_ROW("_npi_boolean_mask_assign_scalar", types, 0, assign_prepare, assign_scalar_run),
    TNCUDA_ROW("_npi_boolean_mask_assign_tensor", types, 0, assign_prepare, assign_tensor_run),
    NULL,
};

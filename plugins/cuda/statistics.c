/* Moments and averages over axes: kernels/statistics.cu. */
#include "tenon/plugin/op/statistics.h"
#include "../common/axes.h"
#include "launch.h"

#include <string.h>

/* All have the axis first. */
static tn_status over_plan(void *plugin, const tn_node *node, tn_plan *plan, const tn_tensor *data,
                           bool numpy, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(tncuda_moments_args), err);
    tncuda_moments_args *a = plan->state;

    if (st)
        return st;
    tncuda_reduce_split(data, tnb_axes_mask(node->attrs[0], false, numpy, data->ndim), &a->over);
    a->over.dtype = data->dtype;
    a->whole = !tncuda_is_float(data->dtype);
    return TN_OK;
}

static tn_status sums_run(const tn_exec *x, const char *kernel, tncuda_moments_args *a, tn_err *err)
{
    a->over.x = x->in[0]->data;
    return tncuda_launch_sums(x, "statistics", kernel, a->over.outer, a->over.inner, a, err);
}

static tn_status moments_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return over_plan(plugin, node, plan, node->in[0], false, err);
}

static tn_status moments_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_moments_args a = *(const tncuda_moments_args *)plan->state;

    a.mean = tncuda_array_of(x->out[0], x->modes[0]);
    a.var = tncuda_array_of(x->out[1], x->modes[1]);
    return sums_run(x, "moments", &a, err);
}

static tn_status var_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = over_plan(plugin, node, plan, node->in[0], true, err);
    tncuda_moments_args *a = plan->state;

    if (st)
        return st;
    a->ddof = (double)tn_value_int(node->attrs[TN_npi_var_ddof]);
    a->root = strcmp(node->op, "_npi_std") == 0;
    return TN_OK;
}

static tn_status var_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_moments_args a = *(const tncuda_moments_args *)plan->state;

    a.var = tncuda_array_of(x->out[0], x->modes[0]);
    return sums_run(x, "moments", &a, err);
}

/* ---- average ------------------------------------------------------------------------------------------- */

static tn_status average_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint32_t first = strncmp(node->op, "_backward_", 10) == 0; /* dy */
    const bool weighted = tn_value_int(node->attrs[TN_npi_average_weighted]) != 0;
    const tn_tensor *data = node->in[first];
    const tn_status st = over_plan(plugin, node, plan, data, true, err);

    if (!st)
        ((tncuda_moments_args *)plan->state)->line =
            weighted && !tncuda_same_shape(data, node->in[first + 1]);
    return st;
}

static tn_status average_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_moments_args a = *(const tncuda_moments_args *)plan->state;

    if (tn_value_int(x->attrs[TN_npi_average_weighted]))
        a.w = tncuda_array_of(x->in[1], TN_MODE_NONE);
    a.mean = tncuda_array_of(x->out[0], x->modes[0]);
    a.var = tncuda_array_of(x->out[1], x->modes[1]);
    return sums_run(x, "average", &a, err);
}

/* in: dy, a, weights if there are some, average, sum of the weights */
static tn_status backward_average_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const uint32_t weighted = tn_value_int(x->attrs[TN_npi_average_weighted]) != 0;
    tncuda_moments_args a = *(const tncuda_moments_args *)plan->state;
    tn_status st;

    a.over.x = x->in[1]->data;
    a.dy = tncuda_array_of(x->in[0], TN_MODE_NONE);
    a.mean = tncuda_array_of(x->in[2 + weighted], TN_MODE_NONE);
    a.var = tncuda_array_of(x->in[3 + weighted], TN_MODE_NONE);
    a.dx = tncuda_array_of(x->out[0], x->modes[0]);
    if (weighted) {
        a.w = tncuda_array_of(x->in[2], TN_MODE_NONE);
        a.dw = tncuda_array_of(x->out[1], x->modes[1]);
    }
    st = tncuda_launch(x, "statistics", "average_back", a.over.outer * a.over.inner, &a, err);
    return st || !a.line || !a.dw.mode
               ? st
               : tncuda_launch(x, "statistics", "average_line", a.over.inner, &a, err);
}

/* ---- percentile ---------------------------------------------------------------------------------------- */

_Static_assert((int)TN_npi_percentile_interpolation_linear == TNCUDA_BETWEEN_LINEAR &&
                   (int)TN_npi_percentile_interpolation_lower == TNCUDA_BETWEEN_LOWER &&
                   (int)TN_npi_percentile_interpolation_higher == TNCUDA_BETWEEN_HIGHER &&
                   (int)TN_npi_percentile_interpolation_midpoint == TNCUDA_BETWEEN_MIDPOINT &&
                   (int)TN_npi_percentile_interpolation_nearest == TNCUDA_BETWEEN_NEAREST,
               "kernels know the choices by number");

static tn_status percentile_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[0];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(tncuda_percentile_args), err);
    tncuda_percentile_args *a = plan->state;

    if (st)
        return st;
    tncuda_reduce_split(data, tnb_axes_mask(node->attrs[0], false, true, data->ndim), &a->over);
    a->over.dtype = data->dtype;
    plan->workspace_bytes = 2 * TNCUDA_ENTRY_BYTES * (uint64_t)(a->over.outer * a->over.inner + 1);
    return TN_OK;
}

static tn_status percentile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double *only = (const double *)tn_value_pointer(x->attrs[TN_npi_percentile_q_scalar]);
    tncuda_percentile_args a = *(const tncuda_percentile_args *)plan->state;
    const int64_t entries = a.over.outer * a.over.inner;
    void *spare = (char *)x->workspace + entries * TNCUDA_ENTRY_BYTES;
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.over.x = x->in[0]->data;
    if (!only)
        a.q = tncuda_array_of(x->in[1], TN_MODE_NONE);
    a.only = only ? *only : 0;
    a.between = (int32_t)tn_value_int(x->attrs[TN_npi_percentile_interpolation]);
    a.out = tncuda_array_of(x->out[0], x->modes[0]);
    a.count = tn_tensor_count(x->out[0]);
    a.room = x->workspace;
    if ((st = tncuda_launch(x, "statistics", "percentile_load", entries, &a, err)) ||
        (st = tncuda_order_merge(x, entries, a.over.inner, &a.room, &spare, err)))
        return st;
    return tncuda_launch(x, "statistics", "percentile_pick", a.count, &a, err);
}

static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_statistics[] = {
    TNCUDA_ROW("moments", numbers, 0, moments_prepare, moments_run),
    TNCUDA_ROW("_npi_var", all, 0, var_prepare, var_run),
    TNCUDA_ROW("_npi_std", all, 0, var_prepare, var_run),
    TNCUDA_ROW("_npi_average", all, 0, average_prepare, average_run),
    TNCUDA_ROW("_npi_percentile", all, 0, percentile_prepare, percentile_run),
    TNCUDA_ROW("_backward__npi_average", floats, TN_KERNEL_EMPTY_OK, average_prepare, backward_average_run),
    NULL,
};

/* Choices between arrays and numbers that broadcast; functions that look like them. */
#include "tenon/plugin/op/select.h"
#include "../common/index.h"
#include "../common/move.h"
#include "launch.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

static tn_status select_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncuda_state(plugin, node, plan, 0, err);
}

static void operand_set(tncuda_operand *o, const tn_tensor *t, const tn_tensor *y)
{
    o->data = t->data;
    o->dtype = t->dtype;
    tnb_steps(t->ndim, t->shape, t->stride, y->ndim, o->stride);
}

/* `yes`, `no`: inputs; NULL: the next attribute. */
static tn_status choose(const tn_exec *x, const tn_tensor *yes, const tn_tensor *no, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_point_args a = {.count = tn_tensor_count(y),
                           .ndim = y->ndim,
                           .s = yes ? 0 : tn_value_float(x->attrs[0]),
                           .s2 = no ? 0 : tn_value_float(x->attrs[yes ? 0 : 1]),
                           .out = {.data = y->data, .dtype = y->dtype}};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int32_t d = 0; d < y->ndim; d++)
        a.shape[d] = y->shape[d];
    operand_set(&a.in[0], x->in[0], y);
    if (yes)
        operand_set(&a.in[1], yes, y);
    if (no)
        operand_set(&a.in[2], no, y);
    return tncuda_launch(x, "elemwise", "choose_stretched", a.count, &a, err);
}

static tn_status where_both_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return choose(x, x->in[1], x->in[2], err);
}

static tn_status where_lscalar_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return choose(x, NULL, x->in[1], err);
}

static tn_status where_rscalar_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return choose(x, x->in[1], NULL, err);
}

static tn_status where_scalar2_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return choose(x, NULL, NULL, err);
}

static double largest(int32_t dtype)
{
    return dtype == TN_F64   ? DBL_MAX
           : dtype == TN_F32 ? (double)FLT_MAX
           : dtype == TN_F16 ? 65504
                             : 3.3895313892515355e38;
}

static tn_status nan_to_num_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double *high = tn_value_pointer(x->attrs[TN_npi_nan_to_num_posinf]),
                 *low = tn_value_pointer(x->attrs[TN_npi_nan_to_num_neginf]);
    const double end = largest(x->in[0]->dtype);
    tncuda_call_args a = {
        .count = tn_tensor_count(x->in[0]),
        .f = {tn_value_float(x->attrs[TN_npi_nan_to_num_nan]), high ? *high : end, low ? *low : -end}};

    if (!tncuda_is_float(x->in[0]->dtype))
        return tnb_move_copy(plan, x, x->in[0], x->out[0], err);
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "elemwise", "nan_to_num", a.count, &a, err);
}

/* Integers are cut to multiples of a power of 10, if that is above 1. */
static tn_status around_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row row = {"_npi_around", TNCUDA_AROUND, 1, -1};
    const int64_t asked = tn_value_int(node->attrs[TN_npi_around_decimals]);
    const int64_t decimals = tncuda_is_float(node->in[0]->dtype) ? asked : asked < 0 ? -asked : 0;
    const tn_status st = tncuda_point_plan(&row, 1, plugin, node, plan, err);
    char text[32];

    (void)snprintf(text, sizeof text, "1e%lld", (long long)decimals);
    if (!st)
        tncuda_point_number(plan, strtod(text, NULL)); /* the nearest to a power of 10 */
    return st;
}

static tn_status full_like_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    tnb_move_all(&m, x->out[0]);
    return tnb_move_number(plan, x, &m, x->out[0]->dtype,
                           tn_value_float(x->attrs[TN_npi_full_like_fill_value]), x->out[0]->data, err);
}

static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const most[] = {"*:" TNCUDA_MOST, NULL};

const tn_kernel *const tncuda_family_select[] = {
    TNCUDA_ROW("_npi_where", all, 0, select_prepare, where_both_run),
    TNCUDA_ROW("_npi_where_lscalar", all, 0, select_prepare, where_lscalar_run),
    TNCUDA_ROW("_npi_where_rscalar", all, 0, select_prepare, where_rscalar_run),
    TNCUDA_ROW("_npi_where_scalar2", all, 0, select_prepare, where_scalar2_run),
    TNCUDA_ROW("_npi_nan_to_num", all, 0, select_prepare, nan_to_num_run),
    TNCUDA_ROW("_npi_around", most, TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, around_prepare, tncuda_point_run),
    TNCUDA_ROW("_npi_full_like", all, 0, select_prepare, full_like_run),
    NULL,
};

/* Reductions over axes, and the gradients that stretch what arrives over them. */
#include "tenon/plugin/op/reduce.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define TREE_FROM 1024 /* elements to an output from which a block makes it */

typedef struct reduce_state {
    const char *id;
    tncuda_reduce_args args;
} reduce_state;

static const struct {
    const char *op, *id;
    bool mean;
} rows[] = {{"sum", "SUM", false},       {"mean", "SUM", true},         {"prod", "PROD", false},
            {"nansum", "NANSUM", false}, {"nanprod", "NANPROD", false}, {"max", "MAX", false},
            {"min", "MIN", false}};

/* The axes of a node by bit: None or () are all of them. */
static uint32_t mask_of(const tn_node *node, int32_t ndim)
{
    const tn_tuple *t = tn_value_pointer(node->attrs[TN_reduce_axis]);
    const bool exclude = node->attrs[TN_reduce_exclude] != 0;
    const uint32_t all = ndim >= 32 ? UINT32_MAX : (1u << ndim) - 1u;
    uint32_t mask = 0;

    if (!t || !t->count)
        return exclude ? 0 : all;
    for (int64_t k = 0; k < t->count; k++)
        mask |= 1u << (t->item[k] < 0 ? t->item[k] + ndim : t->item[k]);
    return exclude ? all & ~mask : mask;
}

static void axis_add(int32_t *ndim, int64_t *shape, int64_t *stride, int64_t size, int64_t step)
{
    if (*ndim > 0 && stride[*ndim - 1] == size * step) { /* one axis with the one before */
        shape[*ndim - 1] *= size;
        stride[*ndim - 1] = step;
    } else if (size != 1) {
        shape[*ndim] = size;
        stride[(*ndim)++] = step;
    }
}

static tn_status reduce_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const uint32_t mask = mask_of(node, in->ndim);
    tncuda_reduce_args *a;
    reduce_state *s;
    size_t row = 0;
    tn_status st;

    if ((st = tncuda_state(plugin, node, plan, sizeof(reduce_state), err)))
        return st;
    while (strcmp(rows[row].op, node->op) != 0)
        row++;
    s = plan->state;
    a = &s->args;
    a->outer = a->inner = 1;
    for (int32_t d = 0; d < in->ndim; d++) {
        const bool gone = mask >> d & 1u;

        *(gone ? &a->inner : &a->outer) *= in->shape[d];
        if (gone)
            axis_add(&a->inner_ndim, a->inner_shape, a->inner_stride, in->shape[d], in->stride[d]);
        else
            axis_add(&a->outer_ndim, a->outer_shape, a->outer_stride, in->shape[d], in->stride[d]);
    }
    a->dtype = in->dtype;
    a->out_dtype = node->out[0]->dtype;
    a->divide = rows[row].mean ? (double)a->inner : 1;
    s->id = rows[row].id;
    return TN_OK;
}

tn_status tncuda_reduce_launch(const tn_exec *x, const char *id, const tncuda_reduce_args *a, tn_err *err)
{
    const bool tree = a->inner >= TREE_FROM;
    char kernel[TNCUDA_NAME_BYTES];

    (void)snprintf(kernel, sizeof kernel, "reduce_%s%s_%s", tree ? "tree_" : "", id,
                   tncuda_is_float(a->dtype) ? "float" : "whole");
    return tree ? tncuda_launch_blocks(x, "reduce", kernel, a->outer < 65535 ? a->outer : 65535, a, err)
                : tncuda_launch(x, "reduce", kernel, a->outer, a, err);
}

static tn_status reduce_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const reduce_state *s = plan->state;
    tncuda_reduce_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.x = x->in[0]->data;
    a.y = x->out[0]->data;
    a.add = x->modes[0] == TN_MODE_ADD;
    return tncuda_reduce_launch(x, s->id, &a, err);
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

static const tncuda_point_row back_rows[] = {
    {"_backward_sum", TNCUDA_COPY, 1, -1},           {"_backward_mean", TNCUDA_OVER, 1, -1},
    {"_backward_nansum", TNCUDA_NANSUM_BACK, 2, -1}, {"_backward_nanprod", TNCUDA_NANPROD_BACK, 3, -1},
    {"_backward_max", TNCUDA_PICKED_BACK, 3, -1},    {"_backward_min", TNCUDA_PICKED_BACK, 3, -1},
};

/* A tensor of the reduction's shape, seen with all of the input's axes; the reduced ones have size 1. */
static void small_view(const tn_tensor *small, const tn_tensor *wide, uint32_t mask, int64_t *dims,
                       tn_tensor *view)
{
    int64_t *shape = dims, *stride = dims + TN_NDIM_MAX;
    const bool keepdims = small->ndim == wide->ndim;

    for (int32_t d = 0, k = 0; d < wide->ndim; d++) {
        const bool reduced = mask >> d & 1u;
        const int32_t at = keepdims ? d : k;

        shape[d] = reduced ? 1 : wide->shape[d];
        stride[d] = reduced || at >= small->ndim ? 0 : small->stride[at];
        k += !reduced;
    }
    *view = *small;
    view->ndim = wide->ndim;
    view->shape = shape;
    view->stride = stride;
}

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *wide = node->out[0];
    const uint32_t mask = mask_of(node, wide->ndim);
    int64_t dims[2][2 * TN_NDIM_MAX], count = 1;
    tn_tensor views[2];
    const tn_tensor *in[3] = {&views[0], node->in_count > 1 ? node->in[1] : NULL, &views[1]};
    tn_node stretched = *node;
    size_t row = 0;
    tn_status st;

    while (strcmp(back_rows[row].op, node->op) != 0)
        row++;
    small_view(node->in[0], wide, mask, dims[0], &views[0]);
    if (node->in_count > 2)
        small_view(node->in[2], wide, mask, dims[1], &views[1]);
    stretched.in = in;
    for (int32_t d = 0; d < wide->ndim; d++)
        count *= mask >> d & 1u ? wide->shape[d] : 1;
    st = tncuda_point_plan(&back_rows[row], back_rows[row].operands, plugin, &stretched, plan, err);
    if (!st)
        tncuda_point_number(plan, (double)count);
    return st;
}

static const char *const most[] = {"*:" TNCUDA_MOST, NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO)
#define REDUCE_ROW(op) TNCUDA_ROW(op, most, TN_KERNEL_ADD_TO, reduce_prepare, reduce_run)
#define BACK_ROW(op, types) TNCUDA_ROW("_backward_" op, types, FLAGS, back_prepare, tncuda_point_run)
const tn_kernel *const tncuda_family_reduce[] = {
    REDUCE_ROW("sum"),           REDUCE_ROW("mean"),
    REDUCE_ROW("prod"),          REDUCE_ROW("nansum"),
    REDUCE_ROW("nanprod"),       REDUCE_ROW("max"),
    REDUCE_ROW("min"),           BACK_ROW("sum", most),
    BACK_ROW("mean", most),      BACK_ROW("nansum", floats),
    BACK_ROW("nanprod", floats), BACK_ROW("max", most),
    BACK_ROW("min", most),       NULL,
};

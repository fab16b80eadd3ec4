/* Reductions over axes, and the gradients that stretch what arrives over them. */
#include "tenon/plugin/op/reduce.h"
#include "../common/axes.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define SHARED_FROM 16    /* elements to an output from which several threads make it */
#define BLOCK_FROM 1024   /* from which a block does */
#define BLOCKS_WANTED 256 /* below half of it an output is made by several blocks */
#define CHUNK_LEAST 16    /* elements for each thread of them */
#define THREADS TNCUDA_THREADS

typedef struct reduce_state {
    const char *id;
    int64_t first; /* element of the input */
    tncuda_reduce_args args;
} reduce_state;

/* All have the axis first; NumPy's have no `exclude`. */
static const struct {
    const char *op, *id;
    bool mean, numpy;
} rows[] = {{"sum", "SUM", false, false},         {"mean", "SUM", true, false},
            {"prod", "PROD", false, false},       {"nansum", "NANSUM", false, false},
            {"nanprod", "NANPROD", false, false}, {"max", "MAX", false, false},
            {"min", "MIN", false, false},         {"_square_sum", "SQUARES", false, false},
            {"_np_sum", "SUM", false, true},      {"_npi_mean", "SUM", true, true},
            {"_np_prod", "PROD", false, true},    {"_np_max", "MAX", false, true},
            {"_np_min", "MIN", false, true},      {"_np_all", "ALL", false, true},
            {"_np_any", "ANY", false, true}};

static uint32_t node_mask(const tn_node *node, bool numpy, int32_t ndim)
{
    return tnb_axes_mask(node->attrs[TN_reduce_axis], !numpy && node->attrs[TN_reduce_exclude] != 0, numpy,
                         ndim);
}

void tncuda_reduce_split(const tn_tensor *t, uint32_t mask, tncuda_reduce_args *a)
{
    tnb_axes kept, reduced;

    tnb_axes_split(t, mask, &kept, &reduced);
    a->outer = kept.count;
    a->inner = reduced.count;
    a->outer_ndim = kept.ndim;
    a->inner_ndim = reduced.ndim;
    memcpy(a->outer_shape, kept.shape, (size_t)kept.ndim * sizeof *kept.shape);
    memcpy(a->outer_stride, kept.stride, (size_t)kept.ndim * sizeof *kept.stride);
    memcpy(a->inner_shape, reduced.shape, (size_t)reduced.ndim * sizeof *reduced.shape);
    memcpy(a->inner_stride, reduced.stride, (size_t)reduced.ndim * sizeof *reduced.stride);
}

/* How threads share the work: from the shape alone. Without `room` no output is made by several blocks. */
static void members_set(tncuda_reduce_args *a, bool room)
{
    const int32_t o = a->outer_ndim - 1, i = a->inner_ndim - 1;
    int64_t blocks, most;

    a->slices = 1;
    a->chunk = a->inner;
    a->columns =
        o >= 0 && a->outer_stride[o] == 1 && a->outer_shape[o] >= 32 && i >= 0 && a->inner_stride[i] != 1;
    a->members = a->inner < SHARED_FROM ? 0 : a->columns ? 8 : a->inner < BLOCK_FROM ? 32 : THREADS;
    if (!a->members || !room || a->outer < 1)
        return;
    blocks = (a->outer * a->members + THREADS - 1) / THREADS;
    most = a->inner / (a->members * CHUNK_LEAST);
    if (blocks >= BLOCKS_WANTED / 2 || most < 2)
        return;
    most = tnb_least(most, BLOCKS_WANTED / blocks);
    a->chunk = (a->inner + most - 1) / most;
    a->slices = (a->inner + a->chunk - 1) / a->chunk;
}

static tn_status plan_make(void *plugin, const tn_node *node, tn_plan *plan, const char *id, uint32_t mask,
                           tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(reduce_state), err);
    reduce_state *s = plan->state;

    if (st)
        return st;
    s->id = id;
    tncuda_reduce_split(in, mask, &s->args);
    s->args.dtype = in->dtype;
    s->args.out_dtype = node->out[0]->dtype;
    s->args.divide = 1;
    members_set(&s->args, true);
    plan->workspace_bytes =
        s->args.slices > 1 ? (uint64_t)(s->args.outer * s->args.slices) * sizeof(int64_t) : 0;
    return TN_OK;
}

static tn_status reduce_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    size_t row = 0;
    tn_status st;

    while (strcmp(rows[row].op, node->op) != 0)
        row++;
    st =
        plan_make(plugin, node, plan, rows[row].id, node_mask(node, rows[row].numpy, node->in[0]->ndim), err);
    if (!st && rows[row].mean)
        ((reduce_state *)plan->state)->args.divide = (double)((reduce_state *)plan->state)->args.inner;
    return st;
}

static tn_status norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool one = tn_value_int(node->attrs[TN_norm_ord]) == 1;
    const tn_status st =
        plan_make(plugin, node, plan, one ? "MAGNITUDES" : "SQUARES",
                  tnb_axes_mask(node->attrs[TN_norm_axis], false, false, node->in[0]->ndim), err);

    if (!st)
        ((reduce_state *)plan->state)->args.root = !one;
    return st;
}

/* A diagonal is an axis whose step is that of rows and columns together. */
static tn_status trace_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const int64_t k = tn_value_int(node->attrs[TN_np_trace_offset]);
    const int32_t row = tnb_axis(tn_value_int(node->attrs[TN_np_trace_axis1]), in->ndim),
                  column = tnb_axis(tn_value_int(node->attrs[TN_np_trace_axis2]), in->ndim);
    const int64_t lines = tnb_least(in->shape[row] + (k < 0 ? k : 0), in->shape[column] - (k > 0 ? k : 0));
    int64_t shape[TN_NDIM_MAX], stride[TN_NDIM_MAX];
    tn_tensor diagonals = *in;
    const tn_tensor *const inputs[] = {&diagonals};
    tn_node seen = *node;
    tn_status st;

    diagonals.ndim = 0;
    diagonals.shape = shape;
    diagonals.stride = stride;
    for (int32_t d = 0; d <= in->ndim; d++) {
        const bool whole = d == in->ndim;

        if (d == row || d == column)
            continue;
        shape[diagonals.ndim] = whole ? lines > 0 ? lines : 0 : in->shape[d];
        stride[diagonals.ndim++] = whole ? in->stride[row] + in->stride[column] : in->stride[d];
    }
    seen.in = inputs;
    st = plan_make(plugin, &seen, plan, "SUM", 1u << (diagonals.ndim - 1), err);
    if (!st)
        ((reduce_state *)plan->state)->first = k > 0 ? k * in->stride[column] : -k * in->stride[row];
    return st;
}

/* The axes that stretching added or repeated. */
static tn_status sum_like_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0], *out = node->out[0];
    const int32_t lead = in->ndim - out->ndim;
    uint32_t mask = 0;

    for (int32_t d = 0; d < in->ndim; d++)
        if (d < lead || (out->shape[d - lead] == 1 && in->shape[d] != 1))
            mask |= 1u << d;
    return plan_make(plugin, node, plan, "SUM", mask, err);
}

/* The first largest or smallest; NaN counts as either. */
static tn_status arg_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const int64_t *axis = node->attr_count > 0 ? tn_value_pointer(node->attrs[TN_argmax_axis]) : NULL;
    const int32_t a = node->attr_count == 0 ? 1 : axis ? tnb_axis(*axis, in->ndim) : -1;
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(tncuda_call_args), err);
    tncuda_call_args *args = plan->state;

    if (st)
        return st;
    tncuda_call_rows(in, a < 0 ? 0 : a, a < 0 ? in->ndim : a + 1, args);
    args->n[0] = strcmp(node->op, "argmin") != 0;
    return TN_OK;
}

static tn_status arg_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = *(const tncuda_call_args *)plan->state;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    a.count = a.outer * a.inner;
    return tncuda_launch(x, "reduce", tncuda_is_float(x->in[0]->dtype) ? "position_float" : "position_whole",
                         a.count, &a, err);
}

static tn_status named_launch(const tn_exec *x, const char *id, const tncuda_reduce_args *a, tn_err *err)
{
    const int64_t outs = a->members ? THREADS / a->members : 1;
    char kernel[TNCUDA_NAME_BYTES];

    (void)snprintf(kernel, sizeof kernel, "reduce_%s%s_%s", a->members ? "tree_" : "", id,
                   tncuda_is_float(a->dtype) ? "float" : "whole");
    return a->members
               ? tncuda_launch_blocks(x, "reduce", kernel,
                                      tnb_least((a->outer + outs - 1) / outs * a->slices, INT32_MAX), a, err)
               : tncuda_launch(x, "reduce", kernel, a->outer, a, err);
}

/* What joins parts. */
static const char *join_of(const char *id)
{
    return strcmp(id, "NANPROD") == 0                                                                 ? "PROD"
           : strcmp(id, "NANSUM") == 0 || strcmp(id, "SQUARES") == 0 || strcmp(id, "MAGNITUDES") == 0 ? "SUM"
                                                                                                      : id;
}

/* `room`: of the parts, where a->slices is above 1. */
static tn_status shared_launch(const tn_exec *x, const char *id, const tncuda_reduce_args *a, tn_err *err)
{
    tncuda_reduce_args parts = {.outer = a->outer,
                                .inner = a->slices,
                                .outer_ndim = 1,
                                .inner_ndim = 1,
                                .dtype = tncuda_is_float(a->dtype) ? TN_F64 : TN_I64,
                                .out_dtype = a->out_dtype,
                                .outer_shape = {a->outer},
                                .outer_stride = {a->slices},
                                .inner_shape = {a->slices},
                                .inner_stride = {1},
                                .x = a->room,
                                .y = a->y,
                                .divide = a->divide,
                                .add = a->add,
                                .root = a->root};
    tn_status st = named_launch(x, id, a, err);

    if (st || a->slices <= 1)
        return st;
    members_set(&parts, false);
    return named_launch(x, join_of(id), &parts, err);
}

tn_status tncuda_reduce_launch(const tn_exec *x, const char *id, const tncuda_reduce_args *args, tn_err *err)
{
    tncuda_reduce_args a = *args;

    members_set(&a, false);
    return shared_launch(x, id, &a, err);
}

static tn_status reduce_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const reduce_state *s = plan->state;
    tncuda_reduce_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.x = (const char *)x->in[0]->data + s->first * (int64_t)tn_dtype_bytes(a.dtype);
    a.y = x->out[0]->data;
    a.add = x->modes[0] == TN_MODE_ADD;
    a.room = x->workspace;
    return shared_launch(x, s->id, &a, err);
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

static const tncuda_point_row back_rows[] = {
    {"_backward_sum", TNCUDA_COPY, 1, -1},
    {"_backward_mean", TNCUDA_OVER, 1, -1},
    {"_backward_nansum", TNCUDA_NANSUM_BACK, 2, -1},
    {"_backward_nanprod", TNCUDA_NANPROD_BACK, 3, -1},
    {"_backward_max", TNCUDA_PICKED_BACK, 3, -1},
    {"_backward_min", TNCUDA_PICKED_BACK, 3, -1},
    {"_backward__np_sum", TNCUDA_COPY, 1, -1},
    {"_backward__npi_mean", TNCUDA_OVER, 1, -1},
    {"_backward__np_max", TNCUDA_PICKED_BACK, 3, -1},
    {"_backward__np_min", TNCUDA_PICKED_BACK, 3, -1},
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
    const uint32_t mask = node_mask(node, strncmp(node->op, "_backward__", 11) == 0, wide->ndim);
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
#define ARG_ROW(op) TNCUDA_ROW(op, most, 0, arg_prepare, arg_run)
#define BACK_ROW(op, types) TNCUDA_ROW("_backward_" op, types, FLAGS, back_prepare, tncuda_point_run)
const tn_kernel *const tncuda_family_reduce[] = {
    REDUCE_ROW("sum"),
    REDUCE_ROW("mean"),
    REDUCE_ROW("prod"),
    REDUCE_ROW("nansum"),
    REDUCE_ROW("nanprod"),
    REDUCE_ROW("max"),
    REDUCE_ROW("min"),
    REDUCE_ROW("_square_sum"),
    REDUCE_ROW("_np_sum"),
    REDUCE_ROW("_npi_mean"),
    REDUCE_ROW("_np_prod"),
    REDUCE_ROW("_np_max"),
    REDUCE_ROW("_np_min"),
    REDUCE_ROW("_np_all"),
    REDUCE_ROW("_np_any"),
    TNCUDA_ROW("_np_trace", most, TN_KERNEL_ADD_TO, trace_prepare, reduce_run),
    TNCUDA_ROW("norm", most, TN_KERNEL_ADD_TO, norm_prepare, reduce_run),
    TNCUDA_ROW("_sum_like", most, TN_KERNEL_ADD_TO, sum_like_prepare, reduce_run),
    ARG_ROW("argmax"),
    ARG_ROW("argmin"),
    ARG_ROW("argmax_channel"),
    BACK_ROW("sum", most),
    BACK_ROW("mean", most),
    BACK_ROW("nansum", floats),
    BACK_ROW("nanprod", floats),
    BACK_ROW("max", most),
    BACK_ROW("min", most),
    BACK_ROW("_np_sum", most),
    BACK_ROW("_npi_mean", floats),
    BACK_ROW("_np_max", most),
    BACK_ROW("_np_min", most),
    NULL,
};

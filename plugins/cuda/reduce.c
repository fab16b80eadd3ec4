/* Reductions over axes, and the gradients that stretch what arrives over them. */
#include "tenon/plugin/op/reduce.h"
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

static const char *const most_types[] = {"*:" TNCUDA_MOST, NULL};
static const char *const float_types[] = {"*:" TNCUDA_FLOATS, NULL};
#include "../common/reduce_plan.inc"

static const char *const reduction_ids[R_COUNT] = {
#define REDUCE(id, init, map, join) #id,
#include "../common/reduce.list"
#undef REDUCE
};

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

static tn_status plan_make(void *plugin, const tn_node *node, tn_plan *plan, uint32_t id, uint32_t finish,
                           uint32_t mask, tn_err *err)
{
    const tn_tensor *in = node->in[0];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(reduce_state), err);
    reduce_state *s = plan->state;

    if (st)
        return st;
    s->id = reduction_ids[id];
    tncuda_reduce_split(in, mask, &s->args);
    s->args.dtype = in->dtype;
    s->args.out_dtype = node->out[0]->dtype;
    s->args.divide = finish == FINISH_MEAN ? (double)s->args.inner : 1;
    s->args.root = finish == FINISH_ROOT;
    members_set(&s->args, true);
    plan->workspace_bytes =
        s->args.slices > 1 ? (uint64_t)(s->args.outer * s->args.slices) * sizeof(int64_t) : 0;
    return TN_OK;
}

static void plan_begin(tn_plan *plan, int64_t first)
{
    ((reduce_state *)plan->state)->first = first;
}

static tn_status sum_like_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return plan_make(plugin, node, plan, R_SUM, FINISH_NONE, stretched_mask(node->in[0], node->out[0]), err);
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

#define POINT(op, loop, operands)                                                                            \
    {                                                                                                        \
        op, TNCUDA_##loop, operands, -1                                                                      \
    }
static const tncuda_point_row back_rows[] = {GRADIENT_POINTS(POINT)};

static tn_status gradient_plan(void *plugin, const tn_node *node, tn_plan *plan, int64_t count, tn_err *err)
{
    const tncuda_point_row *row = back_rows;
    tn_status st;

    while (strcmp(row->op, node->op) != 0)
        row++;
    st = tncuda_point_plan(row, row->operands, plugin, node, plan, err);
    if (!st)
        tncuda_point_number(plan, (double)count);
    return st;
}

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO)
#define REDUCE_ROW(op) TNCUDA_ROW(op, most_types, TN_KERNEL_ADD_TO, reduce_prepare, reduce_run)
#define ARG_ROW(op) TNCUDA_ROW(op, most_types, 0, arg_prepare, arg_run)
#define BACK_ROW(op, types) TNCUDA_ROW("_backward_" op, types, FLAGS, back_prepare, tncuda_point_run)
const tn_kernel *const tncuda_family_reduce[] = {
    REDUCE_ROWS(REDUCE_ROW, ARG_ROW, BACK_ROW),
    TNCUDA_ROW("_np_trace", most_types, TN_KERNEL_ADD_TO, trace_prepare, reduce_run),
    TNCUDA_ROW("norm", most_types, TN_KERNEL_ADD_TO, norm_prepare, reduce_run),
    TNCUDA_ROW("_sum_like", most_types, TN_KERNEL_ADD_TO, sum_like_prepare, reduce_run),
    NULL,
};

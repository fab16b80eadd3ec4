/*
 * Concat, stack, SliceChannel: each input or part is one strided copy. tile and repeat copy along dimensions
 * in which the source does not move; their gradients add up along the same dimensions, in the order of dy.
 * reverse moves backwards.
 */
#include "convert.h"
#include "move.h"
#include "short.h"

#include "../../common/index.h"

#include "tenon/plugin/op/join.h"

static tn_status join_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int64_t count = 0;

    (void)plugin, (void)err;
    for (uint32_t k = 0; k < node->out_count; k++)
        count += tn_tensor_count(node->out[k]);
    return tncpu_move_plan(node, plan, count);
}

/* Moves `rows` rows of `count` elements between steps of so many elements. */
static void rows_move(const tn_plan *plan, const tn_exec *x, int32_t dtype, int64_t rows, int64_t count,
                      const char *src, int64_t src_step, char *dst, int64_t dst_step)
{
    tncpu_move m;

    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(dtype);
    if (rows == 0 || count == 0)
        return;
    tncpu_move_add(&m, rows, src_step, dst_step);
    tncpu_move_add(&m, count, 1, 1);
    tncpu_move_run(&m, src, dst, tncpu_run_threads(plan, x));
}

/* Parts of `whole` along an axis, one after the other, from or (with `modes`) into `part`; they may have
 * fewer
 * dimensions of size 1. Those that are `thin` have one index of that axis. */
static tn_status parts_run(const tn_plan *plan, const tn_exec *x, const tn_tensor *whole, int64_t along,
                           bool thin, const tn_tensor *const *part, const uint8_t *modes)
{
    const int32_t axis = tncpu_axis(along, whole->ndim);
    const int64_t size = (int64_t)tn_dtype_bytes(whole->dtype), rows = tncpu_dims(whole, 0, axis);
    const int64_t row = tncpu_dims(whole, axis, whole->ndim),
                  inner = tncpu_dims(whole, axis + 1, whole->ndim);
    int64_t done = 0;

    if (rows == 0 || inner == 0)
        return TN_OK;
    for (int64_t k = 0; done < whole->shape[axis]; k++) {
        const int64_t here = thin ? 1 : tn_tensor_count(part[k]) / (rows * inner);
        char *at = (char *)whole->data + done * inner * size;

        if (!modes)
            rows_move(plan, x, whole->dtype, rows, here * inner, part[k]->data, here * inner, at, row);
        else if (modes[k])
            rows_move(plan, x, whole->dtype, rows, here * inner, at, row, part[k]->data, here * inner);
        done += here;
    }
    return TN_OK;
}

static tn_status concat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return parts_run(plan, x, x->out[0], tn_value_int(x->attrs[TN_Concat_dim]), false, x->in, NULL);
}

static tn_status backward_concat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return parts_run(plan, x, x->in[0], tn_value_int(x->attrs[TN_Concat_dim]), false, x->out, x->modes);
}

static tn_status stack_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return parts_run(plan, x, x->out[0], tn_value_int(x->attrs[TN_stack_axis]), true, x->in, NULL);
}

static tn_status slice_channel_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool squeeze = tn_value_int(x->attrs[TN_SliceChannel_squeeze_axis]) != 0;

    (void)err;
    return parts_run(plan, x, x->in[0], tn_value_int(x->attrs[TN_SliceChannel_axis]), squeeze, x->out,
                     x->modes);
}

/* Along which axis NumPy's stacks and splits have parts; `whole` has got all dimensions. */
static const struct numpy_parts {
    const char *op;
    int32_t axis; /* of a vector 0; -1: an attribute says it */
} numpy_parts[] = {
    {"_npi_hstack", 1}, {"_npi_vstack", 0}, {"_npi_dstack", 2}, {"_npi_column_stack", 1},
    {"_split_v2", -1},  {"_npi_hsplit", 1}, {"_npi_dsplit", 2},
};

static tn_status numpy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const char *op = node->op + (strncmp(node->op, "_backward_", 10) ? 0 : 10);
    const struct numpy_parts *row = tncpu_form_of(numpy_parts, sizeof *numpy_parts, op);
    tn_status st = tncpu_state(plugin, plan, sizeof row, err);

    if (st)
        return st;
    *(const struct numpy_parts **)plan->state = row;
    return join_prepare(plugin, node, plan, err);
}

static int64_t numpy_axis(const tn_plan *plan, const tn_exec *x, const tn_tensor *whole)
{
    const struct numpy_parts *row = *(const struct numpy_parts *const *)plan->state;

    return row->axis < 0 ? tn_value_int(x->attrs[TN_split_v2_axis]) : whole->ndim == 1 ? 0 : row->axis;
}

static tn_status numpy_stack_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return parts_run(plan, x, x->out[0], numpy_axis(plan, x, x->out[0]), false, x->in, NULL);
}

/* Of splits, and of gradients of stacks. */
static tn_status numpy_split_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    return parts_run(plan, x, x->in[0], numpy_axis(plan, x, x->in[0]), false, x->out, x->modes);
}

/* ---- tile, repeat, reverse --------------------------------------------------------------------------- */

/* dst (copies) from src; `dst_step` of a copy dimension is that of the larger tensor. `back`: the other way
 * round. */
static void copies_add(tncpu_move *m, int64_t extent, int64_t small, int64_t large, int back)
{
    if (back)
        tncpu_move_add(m, extent, large, small);
    else
        tncpu_move_add(m, extent, small, large);
}

static void tile_move(const tn_value *attrs, const tn_tensor *x, const tn_tensor *y, int back, tncpu_move *m)
{
    const int64_t reps = tncpu_tuple_count(attrs[TN_tile_reps]);
    int64_t small[TN_NDIM_MAX], large[TN_NDIM_MAX];

    m->ndim = 0;
    m->size = (int32_t)tn_dtype_bytes(x->dtype);
    tncpu_move_steps(x->shape, x->ndim, small);
    tncpu_move_steps(y->shape, y->ndim, large);
    for (int32_t k = 0; k < y->ndim; k++) {
        const int32_t from = k - (y->ndim - x->ndim);
        const int64_t at = k - (y->ndim - reps), size = from >= 0 ? x->shape[from] : 1;

        copies_add(m, at >= 0 ? tncpu_tuple_item(attrs[TN_tile_reps], at, 1) : 1, 0, size * large[k], back);
        copies_add(m, size, from >= 0 ? small[from] : 0, large[k], back);
    }
}

static void repeat_move(const tn_value *attrs, const tn_tensor *x, int back, tncpu_move *m)
{
    const int64_t *axis = (const int64_t *)tn_value_pointer(attrs[TN_repeat_axis]);
    const int64_t repeats = tn_value_int(attrs[TN_repeat_repeats]);
    const int32_t cut = axis ? tncpu_axis(*axis, x->ndim) + 1 : x->ndim;
    const int64_t outer = tncpu_dims(x, 0, cut), inner = tncpu_dims(x, cut, x->ndim);

    m->ndim = 0;
    m->size = (int32_t)tn_dtype_bytes(x->dtype);
    copies_add(m, outer, inner, repeats * inner, back);
    copies_add(m, repeats, 0, inner, back);
    copies_add(m, inner, 1, 1, back);
}

static tn_status tile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncpu_move m;

    (void)err;
    if (!tn_tensor_count(x->out[0])) /* the other dimensions may be of any size then */
        return TN_OK;
    tile_move(x->attrs, x->in[0], x->out[0], 0, &m);
    tncpu_move_run(&m, x->in[0]->data, x->out[0]->data, tncpu_run_threads(plan, x));
    return TN_OK;
}

static tn_status repeat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncpu_move m;

    (void)err;
    if (!tn_tensor_count(x->out[0])) /* the other dimensions may be of any size then */
        return TN_OK;
    repeat_move(x->attrs, x->in[0], 0, &m);
    tncpu_move_run(&m, x->in[0]->data, x->out[0]->data, tncpu_run_threads(plan, x));
    return TN_OK;
}

static tn_status sum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 20 + (double)tn_tensor_count(node->in[0]), 1);
    return TN_OK;
}

/* dx = 0. False: dy has no elements. */
static bool sum_begin(const tn_exec *x)
{
    tncpu_fill(x->out[0], 0);
    return tn_tensor_count(x->in[0]) != 0;
}

/* Adds dy (`m` walks it from end to end) to where its elements were copied from, in the order of dy. */
static void copies_sum(const tncpu_move *m, const tn_exec *x)
{
    const tncpu_convert *c = &tncpu_converts[x->out[0]->dtype];
    const int32_t outer = m->ndim > 2 ? m->ndim - 2 : 0;
    const int64_t rows = m->ndim > 1 ? m->extent[m->ndim - 2] : 1,
                  step = m->ndim > 1 ? m->dst_step[m->ndim - 2] : 0;
    const int64_t n = m->ndim > 0 ? m->extent[m->ndim - 1] : 1,
                  inner = m->ndim > 0 ? m->dst_step[m->ndim - 1] : 1;
    const char *dy = x->in[0]->data;

    for (int64_t k = 0; k < tn_tensor_count(x->in[0]) / (rows * n); k++) {
        char *dx = (char *)x->out[0]->data + tnb_offset(outer, m->extent, m->dst_step, k) * c->bytes;

        for (int64_t r = 0; r < rows; r++, dy += n * c->bytes)
            c->add(dy, dx + r * step * c->bytes, inner, n);
    }
}

static tn_status backward_tile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncpu_move m;

    (void)plan, (void)err;
    if (!sum_begin(x))
        return TN_OK;
    tile_move(x->attrs, x->out[0], x->in[0], 1, &m);
    copies_sum(&m, x);
    return TN_OK;
}

static tn_status backward_repeat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncpu_move m;

    (void)plan, (void)err;
    if (!sum_begin(x))
        return TN_OK;
    repeat_move(x->attrs, x->out[0], 1, &m);
    copies_sum(&m, x);
    return TN_OK;
}

static tn_status reverse_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0];
    const int64_t axes = tncpu_tuple_count(x->attrs[TN_reverse_axis]);
    int64_t step[TN_NDIM_MAX], start = 0;
    uint32_t mask = axes ? 0 : UINT32_MAX;
    tncpu_move m;

    (void)err;
    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(in->dtype);
    tncpu_move_steps(in->shape, in->ndim, step);
    for (int64_t k = 0; k < axes; k++)
        mask |= 1u << tncpu_axis(tncpu_tuple_item(x->attrs[TN_reverse_axis], k, 0), in->ndim);
    for (int32_t k = 0; k < in->ndim; k++) {
        const int turned = (int)(mask >> k & 1u);

        start += turned ? (in->shape[k] - 1) * step[k] : 0;
        tncpu_move_add(&m, in->shape[k], turned ? -step[k] : step[k], step[k]);
    }
    tncpu_move_run(&m, (const char *)in->data + start * m.size, x->out[0]->data, tncpu_run_threads(plan, x));
    return TN_OK;
}

static const char *const concat_types[] = {"arg0:" TNCPU_ALL, "*:=arg0", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "*:=dy", NULL};
static const char *const data_types[] = {"data:" TNCPU_ALL, "*:=data", NULL};
static const char *const sum_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

TNCPU_SHORT_SHAPED(backward_tile, "_backward_tile", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare,
                   backward_tile_run)
TNCPU_SHORT_SHAPED(backward_repeat, "_backward_repeat", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare,
                   backward_repeat_run)

static const char *const stack_types[] = {"data0:" TNCPU_ALL, "*:=data0", NULL};
#define NUMPY_STACK(op)                                                                                      \
    TNCPU_ROW(op, stack_types, TN_KERNEL_EMPTY_OK, numpy_prepare, numpy_stack_run),                          \
        TNCPU_ROW("_backward_" op, back_types, TN_KERNEL_EMPTY_OK, numpy_prepare, numpy_split_run)
#define NUMPY_SPLIT(op) TNCPU_ROW(op, data_types, TN_KERNEL_EMPTY_OK, numpy_prepare, numpy_split_run)

const tn_kernel *const tncpu_family_join[] = {
    TNCPU_ROW("Concat", concat_types, TN_KERNEL_EMPTY_OK, join_prepare, concat_run),
    TNCPU_ROW("_backward_Concat", back_types, TN_KERNEL_EMPTY_OK, join_prepare, backward_concat_run),
    TNCPU_ROW("stack", concat_types, 0, join_prepare, stack_run),
    TNCPU_ROW("SliceChannel", data_types, TN_KERNEL_EMPTY_OK, join_prepare, slice_channel_run),
    NUMPY_STACK("_npi_hstack"),
    NUMPY_STACK("_npi_vstack"),
    NUMPY_STACK("_npi_dstack"),
    NUMPY_STACK("_npi_column_stack"),
    NUMPY_SPLIT("_split_v2"),
    NUMPY_SPLIT("_npi_hsplit"),
    NUMPY_SPLIT("_npi_dsplit"),
    TNCPU_ROW("tile", data_types, 0, join_prepare, tile_run),
    &backward_tile,
    TNCPU_ROW("repeat", data_types, 0, join_prepare, repeat_run),
    &backward_repeat,
    TNCPU_ROW("reverse", data_types, 0, join_prepare, reverse_run),
    NULL,
};

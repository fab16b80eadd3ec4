/* Reshapes that cannot be views (another device, a given output), and transposes. */
#include "move.h"

#include <string.h>

#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/shape.h"

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
        order[k] = tncpu_axis(tncpu_tuple_item(x->attrs[TN_transpose_axes], k, ndim - 1 - k), ndim);
    permute(plan, x, order);
    return TN_OK;
}

static tn_status moveaxis_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tncpu_tuple_count(x->attrs[TN_np_moveaxis_source]);
    const int32_t ndim = x->in[0]->ndim;
    int32_t order[TN_NDIM_MAX], at = 0;
    uint32_t moved = 0, taken = 0;

    (void)err;
    for (int64_t k = 0; k < count; k++) {
        const int32_t from = tncpu_axis(tncpu_tuple_item(x->attrs[TN_np_moveaxis_source], k, 0), ndim);
        const int32_t to = tncpu_axis(tncpu_tuple_item(x->attrs[TN_np_moveaxis_destination], k, 0), ndim);

        order[to] = from;
        moved |= 1u << from;
        taken |= 1u << to;
    }
    for (int32_t k = 0; k < ndim; k++) {
        if (moved >> k & 1u)
            continue;
        while (taken >> at & 1u)
            at++;
        order[at++] = k;
    }
    permute(plan, x, order);
    return TN_OK;
}

static tn_status swap_axis_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int32_t ndim = x->in[0]->ndim, a = tncpu_axis(tn_value_int(x->attrs[TN_SwapAxis_dim1]), ndim);
    const int32_t b = tncpu_axis(tn_value_int(x->attrs[TN_SwapAxis_dim2]), ndim);
    int32_t order[TN_NDIM_MAX];

    (void)err;
    for (int32_t k = 0; k < ndim; k++)
        order[k] = k == a ? b : k == b ? a : k;
    permute(plan, x, order);
    return TN_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------ */

/* Depth (N, bi, bj, C, H, W) and space (N, C, H, bi, W, bj) hold the same: dimension k as both see it. */
typedef struct block_axis {
    int64_t extent, depth, space;
} block_axis;

static void blocks_move(const tn_plan *plan, const tn_exec *x, int64_t b, bool to_space)
{
    static const int space_order[] = {0, 3, 4, 1, 5, 2};
    const tn_tensor *depth = to_space ? x->in[0] : x->out[0], *space = to_space ? x->out[0] : x->in[0];
    const int64_t c = space->shape[1], h = depth->shape[2], w = depth->shape[3], area = h * w;
    const block_axis axis[] = {{depth->shape[0], b * b * c * area, b * b * c * area},
                               {b, b * c * area, b * w},
                               {b, c * area, 1},
                               {c, area, b * b * area},
                               {h, w, b * b * w},
                               {w, 1, b}};
    tncpu_move m;

    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(depth->dtype);
    for (int k = 0; k < 6; k++) {
        const block_axis *a = &axis[to_space ? space_order[k] : k];

        tncpu_move_add(&m, a->extent, to_space ? a->depth : a->space, to_space ? a->space : a->depth);
    }
    tncpu_move_run(&m, x->in[0]->data, x->out[0]->data, tncpu_run_threads(plan, x));
}

static tn_status depth_to_space_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    blocks_move(plan, x, tn_value_int(x->attrs[TN_depth_to_space_block_size]), true);
    return TN_OK;
}

static tn_status space_to_depth_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    blocks_move(plan, x, tn_value_int(x->attrs[TN_space_to_depth_block_size]), false);
    return TN_OK;
}

/* ---- shapes as arrays -------------------------------------------------------------------------------- */

static tn_status info_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 20, 1);
    return TN_OK;
}

static tn_status shape_array_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    memcpy(x->out[0]->data, x->in[0]->shape, (size_t)x->in[0]->ndim * sizeof(int64_t));
    return TN_OK;
}

static tn_status size_array_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    *(int64_t *)x->out[0]->data = tn_tensor_count(x->in[0]);
    return TN_OK;
}

/* ---- diagonals --------------------------------------------------------------------------------------- */

/* One of data and y has rows and columns (`whole`), the other has a diagonal of them as its last axis. Moves
 * from one to the other; beside the diagonal is 0. */
static void diagonal_move(const tn_plan *plan, const tn_exec *x, const tn_tensor *data, const tn_tensor *y,
                          bool axes)
{
    const bool vector = data->ndim == 1;
    const tn_tensor *whole = vector ? y : data, *line = vector ? data : y;
    const int32_t row = vector || !axes ? 0 : tncpu_axis(tn_value_int(x->attrs[TN_diag_axis1]), whole->ndim);
    const int32_t column =
        vector || !axes ? 1 : tncpu_axis(tn_value_int(x->attrs[TN_diag_axis2]), whole->ndim);
    const int64_t k = tn_value_int(x->attrs[TN_diag_k]);
    const bool fills = whole == x->out[0];
    int64_t whole_step[TN_NDIM_MAX], line_step[TN_NDIM_MAX];
    const char *from = x->in[0]->data;
    char *to = x->out[0]->data;
    int32_t at = 0;
    int64_t first;
    tncpu_move m;

    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(whole->dtype);
    if (fills)
        memset(to, 0, (size_t)(tn_tensor_count(whole) * m.size));
    if (tn_tensor_count(line) == 0)
        return;
    tncpu_move_steps(whole->shape, whole->ndim, whole_step);
    tncpu_move_steps(line->shape, line->ndim, line_step);
    first = (k > 0 ? k * whole_step[column] : -k * whole_step[row]) * m.size;
    for (int32_t d = 0; d <= whole->ndim; d++) {
        const int64_t step = d < whole->ndim ? whole_step[d] : whole_step[row] + whole_step[column];

        if (d == row || d == column)
            continue;
        tncpu_move_add(&m, line->shape[at], fills ? line_step[at] : step, fills ? step : line_step[at]);
        at++;
    }
    tncpu_move_run(&m, from + (fills ? 0 : first), to + (fills ? first : 0), tncpu_run_threads(plan, x));
}

static tn_status diag_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    return tncpu_move_plan(node, plan, tn_tensor_count(node->out[0]));
}

static tn_status diag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    diagonal_move(plan, x, x->in[0], x->out[0], true);
    return TN_OK;
}

/* in: dy, data */
static tn_status backward_diag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    diagonal_move(plan, x, x->out[0], x->in[0], true);
    return TN_OK;
}

/* NumPy's, without axes. */
static tn_status np_diag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    diagonal_move(plan, x, x->in[0], x->out[0], false);
    return TN_OK;
}

static tn_status backward_np_diag_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    diagonal_move(plan, x, x->out[0], x->in[0], false);
    return TN_OK;
}

static tn_status diagflat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_tensor_count(x->in[0]), step = 1;
    tn_tensor flat = *x->in[0];

    (void)err;
    flat.ndim = 1;
    flat.shape = &count;
    flat.stride = &step;
    diagonal_move(plan, x, &flat, x->out[0], false);
    return TN_OK;
}

/* in: dy, data: each sum of a diagonal goes to its elements. */
static tn_status backward_trace_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dy = x->in[0], *dx = x->out[0];
    const int64_t k = tn_value_int(x->attrs[TN_np_trace_offset]), below = k < 0 ? -k : 0,
                  right = k > 0 ? k : 0;
    const int32_t row = tncpu_axis(tn_value_int(x->attrs[TN_np_trace_axis1]), dx->ndim),
                  column = tncpu_axis(tn_value_int(x->attrs[TN_np_trace_axis2]), dx->ndim);
    const int64_t length = tncpu_min(dx->shape[row] - below, dx->shape[column] - right);
    int64_t from[TN_NDIM_MAX], to[TN_NDIM_MAX];
    tncpu_move m;

    (void)err;
    m.ndim = 0;
    m.size = (int32_t)tn_dtype_bytes(dx->dtype);
    memset(dx->data, 0, (size_t)(tn_tensor_count(dx) * m.size));
    if (length <= 0 || tn_tensor_count(dx) == 0)
        return TN_OK;
    tncpu_move_steps(dy->shape, dy->ndim, from);
    tncpu_move_steps(dx->shape, dx->ndim, to);
    for (int32_t d = 0, at = 0; d < dx->ndim; d++)
        if (d != row && d != column)
            tncpu_move_add(&m, dx->shape[d], from[at++], to[d]);
    tncpu_move_add(&m, length, 0, to[row] + to[column]);
    tncpu_move_run(&m, dy->data, (char *)dx->data + (below * to[row] + right * to[column]) * m.size,
                   tncpu_run_threads(plan, x));
    return TN_OK;
}

static const char *const move_types[] = {"data:" TNCPU_ALL, "output:=data", NULL};
static const char *const any_types[] = {"*:" TNCPU_ALL, NULL};
static const char *const like_types[] = {"lhs:" TNCPU_ALL, "rhs:" TNCPU_ALL, "output:=lhs", NULL};
static const char *const info_types[] = {"data:" TNCPU_ALL, "output:i64", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "*:=dy", NULL};

const tn_kernel *const tncpu_family_shape[] = {
    TNCPU_ROW("Reshape", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("Flatten", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("expand_dims", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("squeeze", move_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("_backward_reshape", back_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("transpose", move_types, 0, transpose_prepare, transpose_run),
    TNCPU_ROW("SwapAxis", move_types, 0, transpose_prepare, swap_axis_run),
    TNCPU_ROW("depth_to_space", move_types, 0, transpose_prepare, depth_to_space_run),
    TNCPU_ROW("space_to_depth", move_types, 0, transpose_prepare, space_to_depth_run),
    TNCPU_ROW("diag", move_types, 0, diag_prepare, diag_run),
    TNCPU_ROW("_backward_diag", back_types, 0, diag_prepare, backward_diag_run),
    TNCPU_ROW("_np_reshape", any_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("_npx_reshape", any_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("reshape_like", like_types, 0, copy_prepare, copy_run),
    TNCPU_ROW("shape_array", info_types, TN_KERNEL_EMPTY_OK, info_prepare, shape_array_run),
    TNCPU_ROW("size_array", info_types, TN_KERNEL_EMPTY_OK, info_prepare, size_array_run),
    TNCPU_ROW("_np_moveaxis", any_types, 0, transpose_prepare, moveaxis_run),
    TNCPU_ROW("_np_diag", any_types, TN_KERNEL_EMPTY_OK, diag_prepare, np_diag_run),
    TNCPU_ROW("_backward__np_diag", back_types, TN_KERNEL_EMPTY_OK, diag_prepare, backward_np_diag_run),
    TNCPU_ROW("_np_diagflat", any_types, TN_KERNEL_EMPTY_OK, diag_prepare, diagflat_run),
    TNCPU_ROW("_np_diagonal", any_types, 0, diag_prepare, diag_run),
    TNCPU_ROW("_backward__np_diagonal", back_types, TN_KERNEL_EMPTY_OK, diag_prepare, backward_diag_run),
    TNCPU_ROW("_backward__np_trace", back_types, TN_KERNEL_EMPTY_OK, diag_prepare, backward_trace_run),
    NULL,
};

/*
 * Operators that keep the elements and change how they are laid out: Reshape, Flatten, expand_dims, squeeze
 * (views), transpose, SwapAxis, depth_to_space and space_to_depth (copies in another order); diag.
 *
 * The gradient of a view is `_backward_reshape`: dy in the shape of the input. The gradient of a transpose is
 * the transpose with the inverse permutation; depth_to_space and space_to_depth are each other's.
 */
#include <stdio.h>

#include "op/infer_help.h"
#include "op/reshape.h"
#include "tenon/plugin/op/shape.h"

static const tn_attr_def reshape_attrs[] = TN_ATTR_TABLE(Reshape);
static const tn_attr_def expand_dims_attrs[] = TN_ATTR_TABLE(expand_dims);
static const tn_attr_def squeeze_attrs[] = TN_ATTR_TABLE(squeeze);
static const tn_attr_def transpose_attrs[] = TN_ATTR_TABLE(transpose);
static const tn_attr_def swap_axis_attrs[] = TN_ATTR_TABLE(SwapAxis);
static const tn_attr_def depth_to_space_attrs[] = TN_ATTR_TABLE(depth_to_space);
static const tn_attr_def space_to_depth_attrs[] = TN_ATTR_TABLE(space_to_depth);
static const tn_attr_def diag_attrs[] = TN_ATTR_TABLE(diag);

static tn_status reshape_shape(tn_infer *i)
{
    const tn_tuple *shape = tni_attr_tuple(i->attrs, TN_Reshape_shape);
    const bool reverse = tni_attr_bool(i->attrs, TN_Reshape_reverse);
    tn_shape y;
    tn_status st;

    y.ndim = TN_NDIM_UNKNOWN;
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if (tni_tuple_count(shape) || (i->flags & TN_INFER_NP_SHAPE))
        st = tni_reshape(i, i->in_shape[0], shape, reverse, &y);
    else
        st = tni_reshape_target(i, i->in_shape[0], tni_attr_tuple(i->attrs, TN_Reshape_target_shape),
                                tni_attr_bool(i->attrs, TN_Reshape_keep_highest), &y);
    if (st || (st = tn_shape_unify(i, &y, i->out_shape[0])))
        return st;
    tni_reshape_back(i->in_shape[0], &y);
    return tni_reshape_counts(i, i->in_shape[0], &y);
}

static tn_status expand_dims_shape(tn_infer *i)
{
    tn_shape *x = i->in_shape[0], *y = i->out_shape[0], z;
    const int64_t asked = tni_attr_int(i->attrs, TN_expand_dims_axis);
    const int32_t ndim = x->ndim >= 0 ? x->ndim + 1 : y->ndim;
    int32_t axis = 0;
    tn_status st;

    if (ndim < 0)
        return TN_OK;
    if (ndim > TN_NDIM_MAX || ndim < 1)
        return tni_infer_fail(i, TN_E_SHAPE, "%d dimensions, 1 to %d are allowed", ndim, TN_NDIM_MAX);
    if ((st = tni_axis(i, asked, ndim, &axis)))
        return st;
    z.ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        z.dim[k] = k == axis ? 1 : x->ndim < 0 ? TN_DIM_UNKNOWN : x->dim[k < axis ? k : k - 1];
    if ((st = tn_shape_unify(i, &z, y)))
        return st;
    x->ndim = ndim - 1;
    for (int32_t k = 0; k < ndim - 1; k++)
        x->dim[k] = z.dim[k < axis ? k : k + 1];
    return TN_OK;
}

static tn_status squeeze_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_squeeze_axis);
    const tn_shape *x = i->in_shape[0];
    uint32_t mask = 0;
    tn_shape y = {0};
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if (axes && (st = tni_axes_mask(i, axes, false, x->ndim, &mask)))
        return st;
    if (axes && axes->count == 0)
        mask = 0;
    for (int32_t k = 0; k < x->ndim; k++) {
        if (!axes && x->dim[k] < 0)
            return TN_OK; /* it may be 1 */
        if (axes && (mask >> k & 1u) && x->dim[k] > 1)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d has size %lld, only size 1 can be dropped", k,
                                  (long long)x->dim[k]);
        if (axes ? !(mask >> k & 1u) : x->dim[k] != 1)
            y.dim[y.ndim++] = x->dim[k];
    }
    if (y.ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        y.dim[y.ndim++] = 1;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* dy and data: dx is dy in the shape of data. */
static tn_status backward_reshape_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st || i->in_shape[0]->ndim < 0 || i->out_shape[0]->ndim < 0
               ? st
               : tni_reshape_counts(i, i->in_shape[0], i->out_shape[0]);
}

/* ---- transpose --------------------------------------------------------------------------------------- */

static tn_status swap_axis_shape(tn_infer *i)
{
    tn_shape *x = i->in_shape[0], *y = i->out_shape[0], swapped = *x;
    const int32_t ndim = x->ndim >= 0 ? x->ndim : y->ndim;
    int32_t a = 0, b = 0;
    tn_status st;

    if (ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_SwapAxis_dim1), ndim, &a)) ||
        (st = tni_axis(i, tni_attr_int(i->attrs, TN_SwapAxis_dim2), ndim, &b)))
        return st;
    for (int pass = 0; pass < 2; pass++) { /* there and back */
        tn_shape *from = pass ? y : x, *to = pass ? x : y;

        swapped = *from;
        if (from->ndim > 0) {
            swapped.dim[a] = from->dim[b];
            swapped.dim[b] = from->dim[a];
        }
        if ((st = tn_shape_unify(i, to, &swapped)))
            return st;
    }
    return TN_OK;
}

static tn_status transpose_grad(tn_grad *g)
{
    const tn_tuple *axes = tni_attr_tuple(g->attrs, TN_transpose_axes);
    const int64_t n = tni_tuple_count(axes);
    const tn_edge dy = tn_grad_of(g, 0);
    char text[TN_NDIM_MAX * 4 + 4] = "(";
    const tn_attr_text attr = {"axes", text};
    int64_t inverse[TN_NDIM_MAX] = {0};
    size_t at = 1;
    tn_edge dx = {0};
    tn_status st;

    if (!dy.node || n > TN_NDIM_MAX)
        return TN_OK;
    for (int64_t k = 0; k < n; k++)
        inverse[(axes->item[k] + n) % n] = k;
    for (int64_t k = 0; k < n; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%d,", (int)inverse[k]);
    text[at] = ')';
    text[at + 1] = '\0';
    st = tn_grad_node(g, "transpose", 1, &dy, n ? 1 : 0, &attr, &dx);
    return tni_grad_set(g, &st, 0, dx);
}

static tn_status transpose_view(const tn_infer *i, tn_view *v)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_transpose_axes);
    const int32_t ndim = i->in_shape[0]->ndim;

    for (int32_t k = 0; k < ndim; k++)
        v->stride[k] = v->in_stride[tni_tuple_count(axes) ? (axes->item[k] + ndim) % ndim : ndim - 1 - k];
    return TN_OK;
}

static tn_status swap_axis_view(const tn_infer *i, tn_view *v)
{
    const int64_t ndim = i->in_shape[0]->ndim, a = tni_attr_int(i->attrs, TN_SwapAxis_dim1),
                  b = tni_attr_int(i->attrs, TN_SwapAxis_dim2);

    for (int64_t k = 0; k < ndim; k++)
        v->stride[k] = v->in_stride[k];
    if (ndim) {
        v->stride[(a + ndim) % ndim] = v->in_stride[(b + ndim) % ndim];
        v->stride[(b + ndim) % ndim] = v->in_stride[(a + ndim) % ndim];
    }
    return TN_OK;
}

/* ---- diag -------------------------------------------------------------------------------------------- */

/* A vector becomes a matrix; of anything else two axes become one, the last. */
static tn_status diag_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    tn_shape *out = i->out_shape[0];
    const int64_t k = tni_attr_int(i->attrs, TN_diag_k), right = k > 0 ? k : 0, under = k < 0 ? -k : 0;
    tn_shape y = {.ndim = 2};
    int32_t row = 0, column = 0;
    int64_t h, w;
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if (x->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "the input has no dimensions, at least 1 is needed");
    if (x->ndim == 1) {
        y.dim[0] = y.dim[1] = x->dim[0] < 0 ? TN_DIM_UNKNOWN : x->dim[0] + right + under;
        return tn_shape_unify(i, out, &y);
    }
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_diag_axis1), x->ndim, &row)) ||
        (st = tni_axis(i, tni_attr_int(i->attrs, TN_diag_axis2), x->ndim, &column)))
        return st;
    if (row == column)
        return tni_infer_fail(i, TN_E_ATTR, "axis1 and axis2 are both axis %d", row);
    h = x->dim[row];
    w = x->dim[column];
    if ((h >= 0 && h < under) || (w >= 0 && w < right))
        return tni_infer_fail(i, TN_E_SHAPE, "there is no diagonal %lld", (long long)k);
    y.ndim = 0;
    for (int32_t d = 0; d < x->ndim; d++)
        if (d != row && d != column)
            y.dim[y.ndim++] = x->dim[d];
    y.dim[y.ndim++] = h < 0 || w < 0 ? TN_DIM_UNKNOWN : h - under < w - right ? h - under : w - right;
    return tn_shape_unify(i, out, &y);
}

/* ---- table -------------------------------------------------------------------------------------------- */

#define VIEW(id, name_, ...)                                                                                 \
    static const tn_op id =                                                                                  \
        TNI_OP(name_, .flags = TN_OP_VIEW, .gradients = "composed: data = _backward_reshape(dy, ~data)",     \
               __VA_ARGS__);
#define DATA .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output")
/* clang-format off */
VIEW(reshape, "Reshape", .doc = "The same elements in another shape.", .aliases = TNI_NAMES("reshape"),
     .attrs = reshape_attrs, DATA, .shape = reshape_shape)
VIEW(flatten, "Flatten", .doc = "All axes but the first as one.",
     .aliases = TNI_NAMES("_npx_batch_flatten", "flatten"), .shapes = "data:(N,S..) -> output:(N,#S)")
VIEW(expand_dims, "expand_dims", .doc = "A new axis of size 1.", .aliases = TNI_NAMES("_npi_expand_dims"),
     .attrs = expand_dims_attrs, DATA, .shape = expand_dims_shape)
VIEW(squeeze, "squeeze", .doc = "Drops axes of size 1.", .attrs = squeeze_attrs, DATA, .shape = squeeze_shape)
/* clang-format on */

static const tn_op backward_reshape =
    TNI_OP("_backward_reshape", .doc = "Gradient of the operators that only reshape.",
           .flags = TN_OP_BACKWARD | TN_OP_VIEW, .shapes_only = 2, .inputs = TNI_NAMES("dy", "data"),
           .outputs = TNI_NAMES("dx"), .shape = backward_reshape_shape,
           .gradients = "composed: dy = _backward_reshape(h, ~dy)");

static const tn_op transpose = TNI_OP(
    "transpose", .doc = "The axes in another order.", .attrs = transpose_attrs,
    .shapes = "data:(D..) -> output:(permute(D..))", .gradient = transpose_grad, .view = transpose_view);

static const tn_op swap_axis =
    TNI_OP("SwapAxis", .doc = "Two axes change places.", .aliases = TNI_NAMES("_npi_swapaxes", "swapaxes"),
           .attrs = swap_axis_attrs, DATA, .shape = swap_axis_shape,
           .gradients = "composed: data = SwapAxis!(dy)", .view = swap_axis_view);

static const tn_op depth_to_space =
    TNI_OP("depth_to_space", .doc = "Channels become blocks of space; of a block, channels stand together.",
           .attrs = depth_to_space_attrs,
           .shapes = "data:(N,C:channels,H,W) "
                     "-> output:(N,C/(block_size*block_size),H*block_size,W*block_size)",
           .gradients = "composed: data = space_to_depth!(dy)");

static const tn_op space_to_depth =
    TNI_OP("space_to_depth", .doc = "Blocks of space become channels: undoes depth_to_space.",
           .attrs = space_to_depth_attrs,
           .shapes = "data:(N,C:channels,H:height,W:width) "
                     "-> output:(N,C*block_size*block_size,H/block_size,W/block_size)",
           .gradients = "composed: data = depth_to_space!(dy)");

static const tn_op diag =
    TNI_OP("diag", .doc = "A diagonal of matrices, or of a vector the matrix that it is a diagonal of.",
           .attrs = diag_attrs, DATA, .shape = diag_shape, .gradients = "linear: dy ~data -> data");

const tn_op *const tni_family_shape[] = {
    &reshape,        &flatten,        &expand_dims, &squeeze, &backward_reshape, &transpose, &swap_axis,
    &depth_to_space, &space_to_depth, &diag,        NULL,
};

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

static tn_status flatten_shape(tn_infer *i)
{
    tn_shape *x = i->in_shape[0], y = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, 1}};
    tn_status st;

    if (x->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "the input has no dimensions, at least 1 is needed");
    if (x->ndim > 0)
        y.dim[0] = x->dim[0];
    else
        y.dim[1] = TN_DIM_UNKNOWN;
    for (int32_t k = 1; k < x->ndim; k++)
        if (x->dim[k] < 0 || y.dim[1] < 0 || __builtin_mul_overflow(y.dim[1], x->dim[k], &y.dim[1]))
            y.dim[1] = TN_DIM_UNKNOWN;
    if ((st = tn_shape_unify(i, &y, i->out_shape[0])))
        return st;
    if (x->ndim > 0)
        x->dim[0] = y.dim[0];
    tni_reshape_back(x, &y);
    return TN_OK;
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

static tn_status view_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    tn_edge dx;
    tn_status st = in[0].node ? tn_grad_node(g, "_backward_reshape", 2, in, 0, NULL, &dx) : TN_OK;

    return in[0].node ? tni_grad_set(g, &st, 0, dx) : TN_OK;
}

/* ---- transpose --------------------------------------------------------------------------------------- */

/* The output's axis k is the input's axis order[k]. */
static tn_status permute(tn_infer *i, int32_t ndim, const int32_t *order)
{
    tn_shape *x = i->in_shape[0], y;
    tn_status st;

    y.ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        y.dim[k] = x->ndim < 0 ? TN_DIM_UNKNOWN : x->dim[order[k]];
    if ((st = tn_shape_unify(i, &y, i->out_shape[0])))
        return st;
    x->ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        x->dim[order[k]] = y.dim[k];
    return TN_OK;
}

static tn_status transpose_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_transpose_axes);
    const int32_t ndim = i->in_shape[0]->ndim >= 0 ? i->in_shape[0]->ndim : i->out_shape[0]->ndim;
    int32_t order[TN_NDIM_MAX];
    uint32_t seen = 0;
    tn_status st;

    if (ndim < 0)
        return TN_OK;
    if (tni_tuple_count(axes) && axes->count != ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "axes has %lld items, but the input has %d dimensions",
                              (long long)axes->count, ndim);
    for (int32_t k = 0; k < ndim; k++) {
        order[k] = ndim - 1 - k;
        if (tni_tuple_count(axes) && (st = tni_axis(i, axes->item[k], ndim, &order[k])))
            return st;
        if (seen >> order[k] & 1u)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d is there twice", order[k]);
        seen |= 1u << order[k];
    }
    return permute(i, ndim, order);
}

static tn_status swap_axis_shape(tn_infer *i)
{
    const int32_t ndim = i->in_shape[0]->ndim >= 0 ? i->in_shape[0]->ndim : i->out_shape[0]->ndim;
    int32_t order[TN_NDIM_MAX], a = 0, b = 0;
    tn_status st;

    if (ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_SwapAxis_dim1), ndim, &a)) ||
        (st = tni_axis(i, tni_attr_int(i->attrs, TN_SwapAxis_dim2), ndim, &b)))
        return st;
    for (int32_t k = 0; k < ndim; k++)
        order[k] = k == a ? b : k == b ? a : k;
    return permute(i, ndim, order);
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

static tn_status swap_axis_grad(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    char a[24], b[24];
    const tn_attr_text attrs[] = {{"dim1", a}, {"dim2", b}};
    tn_edge dx = {0};
    tn_status st;

    if (!dy.node)
        return TN_OK;
    snprintf(a, sizeof a, "%lld", (long long)tni_attr_int(g->attrs, TN_SwapAxis_dim1));
    snprintf(b, sizeof b, "%lld", (long long)tni_attr_int(g->attrs, TN_SwapAxis_dim2));
    st = tn_grad_node(g, "SwapAxis", 1, &dy, 2, attrs, &dx);
    return tni_grad_set(g, &st, 0, dx);
}

static tn_status depth_to_space_grad(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    tn_status st = TN_OK;

    return dy.node ? tni_grad_set(g, &st, 0, tni_grad_inherit(g, &st, "space_to_depth", dy)) : TN_OK;
}

static tn_status space_to_depth_grad(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    tn_status st = TN_OK;

    return dy.node ? tni_grad_set(g, &st, 0, tni_grad_inherit(g, &st, "depth_to_space", dy)) : TN_OK;
}

/* ---- diag -------------------------------------------------------------------------------------------- */

/* A vector becomes a matrix; of anything else two axes become one, the last. */
static tn_status diag_unify(tn_infer *i, const tn_shape *x, tn_shape *out)
{
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

static tn_status diag_shape(tn_infer *i)
{
    return diag_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status diag_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_diag", 2, in) : TN_OK;
}

/* dy, data */
static tn_status backward_diag_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : diag_unify(i, i->in_shape[1], i->in_shape[0]);
}

/* ---- table -------------------------------------------------------------------------------------------- */

static const tn_op reshape =
    TNI_OP("Reshape", .doc = "The same elements in another shape.", .aliases = TNI_NAMES("reshape"),
           .attrs = reshape_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .flags = TN_OP_VIEW, .shape = reshape_shape, .gradient = view_grad);

static const tn_op flatten = TNI_OP("Flatten", .doc = "All axes but the first as one.",
                                    .aliases = TNI_NAMES("_npx_batch_flatten", "flatten"),
                                    .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
                                    .flags = TN_OP_VIEW, .shape = flatten_shape, .gradient = view_grad);

static const tn_op expand_dims =
    TNI_OP("expand_dims", .doc = "A new axis of size 1.", .aliases = TNI_NAMES("_npi_expand_dims"),
           .attrs = expand_dims_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .flags = TN_OP_VIEW, .shape = expand_dims_shape, .gradient = view_grad);

static const tn_op squeeze = TNI_OP("squeeze", .doc = "Drops axes of size 1.", .attrs = squeeze_attrs,
                                    .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
                                    .flags = TN_OP_VIEW, .shape = squeeze_shape, .gradient = view_grad);

static const tn_op backward_reshape =
    TNI_OP("_backward_reshape", .doc = "Gradient of the operators that only reshape.",
           .flags = TN_OP_BACKWARD | TN_OP_VIEW, .inputs = TNI_NAMES("dy", "data"),
           .outputs = TNI_NAMES("dx"), .shape = backward_reshape_shape, .gradient = view_grad);

static const tn_op transpose = TNI_OP(
    "transpose", .doc = "The axes in another order.", .attrs = transpose_attrs, .inputs = TNI_NAMES("data"),
    .outputs = TNI_NAMES("output"), .shape = transpose_shape, .gradient = transpose_grad);

static const tn_op swap_axis =
    TNI_OP("SwapAxis", .doc = "Two axes change places.", .aliases = TNI_NAMES("_npi_swapaxes", "swapaxes"),
           .attrs = swap_axis_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .shape = swap_axis_shape, .gradient = swap_axis_grad);

static const tn_op depth_to_space =
    TNI_OP("depth_to_space", .doc = "Channels become blocks of space; of a block, channels stand together.",
           .attrs = depth_to_space_attrs,
           .shapes = "data:(N,C:channels,H,W) "
                     "-> output:(N,C/(block_size*block_size),H*block_size,W*block_size)",
           .gradient = depth_to_space_grad);

static const tn_op space_to_depth =
    TNI_OP("space_to_depth", .doc = "Blocks of space become channels: undoes depth_to_space.",
           .attrs = space_to_depth_attrs,
           .shapes = "data:(N,C:channels,H:height,W:width) "
                     "-> output:(N,C*block_size*block_size,H/block_size,W/block_size)",
           .gradient = space_to_depth_grad);

static const tn_op diag =
    TNI_OP("diag", .doc = "A diagonal of matrices, or of a vector the matrix that it is a diagonal of.",
           .attrs = diag_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .shape = diag_shape, .gradient = diag_grad);

static const tn_op backward_diag =
    TNI_OP("_backward_diag", .doc = "Gradient of diag.", .attrs = diag_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data"), .outputs = TNI_NAMES("dx"), .shape = backward_diag_shape,
           .gradient = tni_grad_of_linear);

const tn_op *const tni_family_shape[] = {
    &reshape,   &flatten,        &expand_dims,    &squeeze, &backward_reshape, &transpose,
    &swap_axis, &depth_to_space, &space_to_depth, &diag,    &backward_diag,    NULL,
};

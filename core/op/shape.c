/*
 * Operators that keep the elements and change how they are laid out: Reshape, Flatten, expand_dims, squeeze
 * (views), transpose, SwapAxis, depth_to_space and space_to_depth (copies in another order); diag.
 *
 * The gradient of a view is `_backward_reshape`: dy in the shape of the input. The gradient of a transpose is
 * the transpose with the inverse permutation; depth_to_space and space_to_depth are each other's.
 */
#include <stdio.h>
#include <string.h>

#include "op/infer_help.h"
#include "op/reshape.h"
#include "tenon/plugin/op/shape.h"

static const tn_attr_def np_diag_attrs[] = TN_ATTR_TABLE(np_diag);

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
        st = tni_reshape(i, i->in_shape[0], shape, TNI_RESHAPE_CLASSIC, reverse, &y);
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
    return tni_outputs_assign(i, &y);
}

static tn_status numpy_reshape(tn_infer *i, const tn_tuple *codes, bool reverse, const char *order)
{
    tn_shape y;
    tn_status st;

    if (order && strcmp(order, "C") != 0)
        return tni_infer_fail(i, TN_E_ATTR, "order is %.8s, there is only C", order);
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = tni_reshape(i, i->in_shape[0], codes, TNI_RESHAPE_NUMPY, reverse, &y)) ||
        (st = tn_shape_unify(i, &y, i->out_shape[0])))
        return st;
    tni_reshape_back(i->in_shape[0], &y);
    return tni_reshape_counts(i, i->in_shape[0], &y);
}

static tn_status np_reshape_shape(tn_infer *i)
{
    return numpy_reshape(i, tni_attr_tuple(i->attrs, TN_np_reshape_newshape), false,
                         tn_value_pointer(i->attrs[TN_np_reshape_order]));
}

static tn_status npx_reshape_shape(tn_infer *i)
{
    return numpy_reshape(i, tni_attr_tuple(i->attrs, TN_npx_reshape_newshape),
                         tni_attr_bool(i->attrs, TN_npx_reshape_reverse),
                         tn_value_pointer(i->attrs[TN_npx_reshape_order]));
}

/* Which dimensions of `x` attributes `begin` and `begin` + 1 choose. */
static tn_status dims_choose(tn_infer *i, const tn_shape *x, uint32_t begin, int64_t *from, int64_t *to)
{
    const int64_t *first = tni_attr_opt_int(i->attrs, begin), *end = tni_attr_opt_int(i->attrs, begin + 1);

    *from = !first ? 0 : *first < 0 ? *first + x->ndim : *first;
    *to = !end ? x->ndim : *end < 0 ? *end + x->ndim : *end;
    if (*from < 0 || *to > x->ndim || *from > *to)
        return tni_infer_fail(i, TN_E_SHAPE, "dimensions %lld to %lld do not lie in %d", (long long)*from,
                              (long long)*to, x->ndim);
    return TN_OK;
}

static tn_status reshape_like_shape(tn_infer *i)
{
    const tn_shape *lhs = i->in_shape[0], *rhs = i->in_shape[1];
    int64_t from = 0, to = 0, first = 0, end = 0;
    tn_shape y = {0};
    tn_status st;

    if (lhs->ndim < 0 || rhs->ndim < 0)
        return TN_OK;
    if ((st = dims_choose(i, lhs, TN_reshape_like_lhs_begin, &from, &to)) ||
        (st = dims_choose(i, rhs, TN_reshape_like_rhs_begin, &first, &end)))
        return st;
    if (lhs->ndim - (to - from) + (end - first) > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    for (int64_t k = 0; k < from; k++)
        y.dim[y.ndim++] = lhs->dim[k];
    for (int64_t k = first; k < end; k++)
        y.dim[y.ndim++] = rhs->dim[k];
    for (int64_t k = to; k < lhs->ndim; k++)
        y.dim[y.ndim++] = lhs->dim[k];
    st = tn_shape_unify(i, i->out_shape[0], &y);
    return st ? st : tni_reshape_counts(i, lhs, &y);
}

static tn_status shape_array_shape(tn_infer *i)
{
    const tn_shape y = {.ndim = 1, .dim = {i->in_shape[0]->ndim}};

    return i->in_shape[0]->ndim < 0 ? TN_OK : tni_shape_assign(i, i->out_shape[0], &y);
}

static tn_status size_array_shape(tn_infer *i)
{
    const tn_shape y = {.ndim = 1, .dim = {1}};

    return tni_shape_assign(i, i->out_shape[0], &y);
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

static tn_status moveaxis_shape(tn_infer *i)
{
    const tn_tuple *source = tni_attr_tuple(i->attrs, TN_np_moveaxis_source),
                   *destination = tni_attr_tuple(i->attrs, TN_np_moveaxis_destination);
    const tn_shape *x = i->in_shape[0];
    tn_shape y = {.ndim = x->ndim};
    uint32_t moved = 0, taken = 0;
    int32_t at = 0;
    tn_status st;

    if (tni_tuple_count(source) != tni_tuple_count(destination))
        return tni_infer_fail(i, TN_E_ATTR, "source has %lld axes, destination %lld",
                              (long long)tni_tuple_count(source), (long long)tni_tuple_count(destination));
    if (x->ndim < 0)
        return TN_OK;
    if (tni_tuple_count(source) && ((st = tni_axes_mask(i, source, false, x->ndim, &moved)) ||
                                    (st = tni_axes_mask(i, destination, false, x->ndim, &taken))))
        return st;
    for (int64_t k = 0; k < tni_tuple_count(source); k++)
        y.dim[(destination->item[k] + x->ndim) % x->ndim] = x->dim[(source->item[k] + x->ndim) % x->ndim];
    for (int32_t k = 0; k < x->ndim; k++) { /* the others keep their order */
        if (moved >> k & 1u)
            continue;
        while (taken >> at & 1u)
            at++;
        y.dim[at++] = x->dim[k];
    }
    return tn_shape_unify(i, i->out_shape[0], &y);
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

/* Elements of diagonal `k` of a matrix; 0 where there is none. */
static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t k)
{
    const int64_t h = rows + (k < 0 ? k : 0), w = columns - (k > 0 ? k : 0), n = h < w ? h : w;

    return n > 0 ? n : 0;
}

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
    if ((st = tni_axis_pair(i, TN_diag_axis1, x->ndim, &row, &column)))
        return st;
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

/* NumPy's: of a vector the matrix, of a matrix the vector. */
static tn_status np_diag_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const int64_t k = tni_attr_int(i->attrs, TN_np_diag_k), right = k > 0 ? k : 0, under = k < 0 ? -k : 0;
    tn_shape y = {.ndim = x->ndim == 1 ? 2 : 1};

    if (x->ndim < 0)
        return TN_OK;
    if (x->ndim < 1 || x->ndim > 2)
        return tni_infer_fail(i, TN_E_SHAPE, "the input has %d dimensions, 1 or 2 are needed", x->ndim);
    if (x->ndim == 1)
        y.dim[0] = y.dim[1] = x->dim[0] < 0 ? TN_DIM_UNKNOWN : x->dim[0] + right + under;
    else if (x->dim[0] < 0 || x->dim[1] < 0)
        y.dim[0] = TN_DIM_UNKNOWN;
    else
        y.dim[0] = diagonal_length(x->dim[0], x->dim[1], k);
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status diagflat_shape(tn_infer *i)
{
    const int64_t k = tni_attr_int(i->attrs, TN_np_diag_k);
    tn_shape y = {.ndim = 2};

    if (!tn_shape_known(i->in_shape[0]))
        return TN_OK;
    if (__builtin_add_overflow(tn_shape_count(i->in_shape[0]), k < 0 ? -k : k, &y.dim[0]))
        return tni_infer_fail(i, TN_E_SHAPE, "the matrix is too large");
    y.dim[1] = y.dim[0];
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status diagonal_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    int32_t row = 0, column = 0;
    tn_shape y = {0};
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = tni_axis_pair(i, TN_np_diagonal_axis1, x->ndim, &row, &column)))
        return st;
    for (int32_t d = 0; d < x->ndim; d++)
        if (d != row && d != column)
            y.dim[y.ndim++] = x->dim[d];
    y.dim[y.ndim++] =
        x->dim[row] < 0 || x->dim[column] < 0
            ? TN_DIM_UNKNOWN
            : diagonal_length(x->dim[row], x->dim[column], tni_attr_int(i->attrs, TN_np_diagonal_offset));
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* ---- table -------------------------------------------------------------------------------------------- */

#define VIEW(name_, ...)                                                                                     \
    TNI_ROW(name_, .flags = TN_OP_VIEW, .gradients = "composed: data = _backward_reshape(dy, ~data)",        \
            __VA_ARGS__)
#define DATA .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output")

/* ---- NumPy's, and what is made of shapes -------------------------------------------------------------- */

#define INPUT(name) .inputs = TNI_NAMES(name), .outputs = TNI_NAMES("out")
#define VIEW_GRAD(name) "composed: " name " = _backward_reshape(dy, ~" name ")"
#define ROW(name_, ...) TNI_ROW(name_, __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_shape[] = {
    VIEW("Reshape", .doc = "The same elements in another shape.", .aliases = TNI_NAMES("reshape"),
         .attrs = TNI_ATTRS(Reshape), DATA, .shape = reshape_shape),
    VIEW("Flatten", .doc = "All axes but the first as one.",
         .aliases = TNI_NAMES("_npx_batch_flatten", "flatten"), .shapes = "data:(N,S..) -> output:(N,#S)"),
    VIEW("expand_dims", .doc = "A new axis of size 1.", .aliases = TNI_NAMES("_npi_expand_dims"),
         .attrs = TNI_ATTRS(expand_dims), DATA, .shape = expand_dims_shape),
    VIEW("squeeze", .doc = "Drops axes of size 1.", .attrs = TNI_ATTRS(squeeze), DATA,
         .shape = squeeze_shape),
    TNI_ROW("_backward_reshape", .doc = "Gradient of the operators that only reshape.",
            .flags = TN_OP_BACKWARD | TN_OP_VIEW, .shapes_only = 2, .inputs = TNI_NAMES("dy", "data"),
            .outputs = TNI_NAMES("dx"), .shape = backward_reshape_shape,
            .gradients = "composed: dy = _backward_reshape(h, ~dy)"),
    TNI_ROW(
        "transpose", .doc = "The axes in another order.", .attrs = TNI_ATTRS(transpose),
        .shapes = "data:(D..) -> output:(permute(D..))", .gradient = transpose_grad, .view = transpose_view),
    TNI_ROW("SwapAxis", .doc = "Two axes change places.", .aliases = TNI_NAMES("_npi_swapaxes", "swapaxes"),
            .attrs = TNI_ATTRS(SwapAxis), DATA, .shape = swap_axis_shape,
            .gradients = "composed: data = SwapAxis!(dy)", .view = swap_axis_view),
    TNI_ROW("depth_to_space", .doc = "Channels become blocks of space; of a block, channels stand together.",
            .attrs = TNI_ATTRS(depth_to_space),
            .shapes = "data:(N,C:channels,H,W) "
                      "-> output:(N,C/(block_size*block_size),H*block_size,W*block_size)",
            .gradients = "composed: data = space_to_depth!(dy)"),
    TNI_ROW("space_to_depth", .doc = "Blocks of space become channels: undoes depth_to_space.",
            .attrs = TNI_ATTRS(space_to_depth),
            .shapes = "data:(N,C:channels,H:height,W:width) "
                      "-> output:(N,C*block_size*block_size,H/block_size,W/block_size)",
            .gradients = "composed: data = depth_to_space!(dy)"),
    TNI_ROW("diag", .doc = "A diagonal of matrices, or of a vector the matrix that it is a diagonal of.",
            .attrs = TNI_ATTRS(diag), DATA, .shape = diag_shape, .gradients = "linear: dy ~data -> data"),
    ROW("_np_reshape", .doc = "The same elements in another shape.", .attrs = TNI_ATTRS(np_reshape),
        INPUT("a"), .flags = TN_OP_VIEW, .shape = np_reshape_shape, .gradients = VIEW_GRAD("a")),
    ROW("_npx_reshape", .doc = "The same elements in another shape.",
        .aliases = TNI_NAMES("_npi_reshape"), .attrs = TNI_ATTRS(npx_reshape), INPUT("a"),
        .flags = TN_OP_VIEW, .shape = npx_reshape_shape, .gradients = VIEW_GRAD("a")),
    ROW("reshape_like", .doc = "lhs in the shape of rhs, or with some of its dimensions.",
        .aliases = TNI_NAMES("_npx_reshape_like"), .attrs = TNI_ATTRS(reshape_like),
        .inputs = TNI_NAMES("lhs", "rhs"),
        .outputs = TNI_NAMES("output"), .flags = TN_OP_VIEW, .shapes_only = 2, .shape = reshape_like_shape,
        .types = "rhs:R", .gradients = VIEW_GRAD("lhs") " ; rhs = zeros_like(~rhs)"),
    ROW("shape_array", .doc = "The shape as an array.", .aliases = TNI_NAMES("_npx_shape_array"),
        DATA,
        .flags = TN_OP_ZERO_GRADIENT, .shapes_only = 1, .shape = shape_array_shape, .types = "output:i64"),
    ROW("size_array", .doc = "The number of elements as an array.", DATA,
        .flags = TN_OP_ZERO_GRADIENT, .shapes_only = 1, .shape = size_array_shape, .types = "output:i64"),
    ROW("_np_moveaxis", .doc = "Some axes in other places.",
        .attrs = TNI_ATTRS(np_moveaxis), INPUT("a"), .shape = moveaxis_shape,
        .gradients = "composed: a = _np_moveaxis(dy, source=@destination, destination=@source)"),
    ROW("_np_diag", .doc = "A diagonal of a matrix, or the matrix that a vector is a diagonal of.",
        .attrs = np_diag_attrs, DATA, .shape = np_diag_shape, .gradients = "linear: dy ~data -> data"),
    ROW("_np_diagflat", .doc = "The matrix that the flat input is a diagonal of.",
        .attrs = np_diag_attrs, DATA, .shape = diagflat_shape,
        .gradients = "composed: data = _backward_reshape(_np_diag!(dy), ~data)"),
    ROW("_np_diagonal", .doc = "A diagonal of matrices.", .attrs = TNI_ATTRS(np_diagonal), DATA,
        .shape = diagonal_shape, .gradients = "linear: dy ~data -> data"),
    NULL,
};
/* clang-format on */

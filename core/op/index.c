/*
 * Lookups by index arrays: take, Embedding, one_hot, pick, gather_nd, scatter_nd. Indices may be of any data
 * type, fractions are cut off. What lies outside is clipped, wrapped round or refused, as the mode says.
 * Gradients go to the data; indices have none (zeros, where somebody asks).
 */
#include "tenon/plugin/op/index.h"
#include "op/infer_help.h"

static const tn_attr_def take_attrs[] = TN_ATTR_TABLE(take);
static const tn_attr_def embedding_attrs[] = TN_ATTR_TABLE(Embedding);
static const tn_attr_def one_hot_attrs[] = TN_ATTR_TABLE(one_hot);
static const tn_attr_def pick_attrs[] = TN_ATTR_TABLE(pick);
static const tn_attr_def scatter_attrs[] = TN_ATTR_TABLE(scatter_nd);

/* The gradient of what only chooses. */
static tn_status no_gradient(tn_grad *g, tn_status st, uint32_t input)
{
    if (st || !g->ops->needs(g, input))
        return st;
    return tni_grad_set(g, &st, input, tni_grad_op1(g, &st, "zeros_like", tn_grad_input(g, input)));
}

/* ---- take --------------------------------------------------------------------------------------------- */

static tn_status take_unify(tn_infer *i, const tn_shape *a, const tn_shape *indices, tn_shape *out)
{
    tn_shape y;
    int32_t axis = 0;
    tn_status st;

    if (a->ndim < 0 || indices->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_take_axis), a->ndim, &axis)))
        return st;
    if (a->ndim - 1 + indices->ndim > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    y.ndim = 0;
    for (int32_t k = 0; k < axis; k++)
        y.dim[y.ndim++] = a->dim[k];
    for (int32_t k = 0; k < indices->ndim; k++)
        y.dim[y.ndim++] = indices->dim[k];
    for (int32_t k = axis + 1; k < a->ndim; k++)
        y.dim[y.ndim++] = a->dim[k];
    if (y.ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        y.dim[y.ndim++] = 1;
    if (a->dim[axis] == 0 && tn_shape_known(indices) && tn_shape_count(indices) > 0)
        return tni_infer_fail(i, TN_E_SHAPE, "nothing can be taken from axis %d, it has size 0", axis);
    return tn_shape_unify(i, out, &y);
}

static tn_status take_shape(tn_infer *i)
{
    return take_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

/* Input 0 and the output are of one type, the indices of any. */
static tn_status take_dtype(tn_infer *i)
{
    return tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
}

static tn_status take_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? no_gradient(g, tn_grad_emit(g, 0, "_backward_take", 3, in), 1) : TN_OK;
}

/* dy, a, indices */
static tn_status backward_take_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : take_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

/* dy, the data, the index: all but the index of one type. */
static tn_status backward_index_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);

    return st || (st = tni_dtype_unify(i, &i->in_dtype[1], &i->out_dtype[0])) ||
                   (st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]))
               ? st
               : TN_OK;
}

/* ---- Embedding ---------------------------------------------------------------------------------------- */

static tn_status embedding_unify(tn_infer *i, tn_shape *data, tn_shape *weight, tn_shape *out)
{
    const tn_shape w = {.ndim = 2,
                        .dim = {tni_attr_int(i->attrs, TN_Embedding_input_dim),
                                tni_attr_int(i->attrs, TN_Embedding_output_dim)}};
    tn_shape y = *data;
    tn_status st = tni_shape_assign(i, weight, &w);

    if (st)
        return st;
    if (data->ndim < 0 && out->ndim >= 1) {
        data->ndim = out->ndim - 1;
        for (int32_t k = 0; k < data->ndim; k++)
            data->dim[k] = out->dim[k];
    }
    if (data->ndim < 0)
        return TN_OK;
    if (data->ndim == TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    y = *data;
    y.dim[y.ndim++] = w.dim[1];
    if ((st = tn_shape_unify(i, out, &y)))
        return st;
    for (int32_t k = 0; k < data->ndim; k++)
        data->dim[k] = y.dim[k];
    return TN_OK;
}

static tn_status embedding_shape(tn_infer *i)
{
    return embedding_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status embedding_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[1], &i->out_dtype[0]);

    if (!st && i->in_dtype[1] < 0)
        i->in_dtype[1] = i->out_dtype[0] = (int32_t)tni_attr_int(i->attrs, TN_Embedding_dtype);
    return st;
}

static tn_status embedding_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 1), tn_grad_input(g, 0)};

    return in[0].node ? no_gradient(g, tn_grad_emit(g, 1, "_backward_Embedding", 3, in), 0) : TN_OK;
}

/* dy, weight, data */
static tn_status backward_embedding_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st || (st = embedding_unify(i, i->in_shape[2], i->in_shape[1], i->in_shape[0]))
               ? st
               : tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);
}

/* ---- one_hot ------------------------------------------------------------------------------------------ */

static tn_status one_hot_shape(tn_infer *i)
{
    const tn_shape *indices = i->in_shape[0];
    tn_shape y = *indices;

    if (indices->ndim < 0)
        return TN_OK;
    if (indices->ndim == TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    y.dim[y.ndim++] = tni_attr_int(i->attrs, TN_one_hot_depth);
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status one_hot_dtype(tn_infer *i)
{
    return tni_dtype_asked(i, &i->out_dtype[0], (int32_t)tni_attr_int(i->attrs, TN_one_hot_dtype));
}

/* ---- pick --------------------------------------------------------------------------------------------- */

/* The index has the data's shape without the axis, or with size 1 there. */
static tn_status pick_unify(tn_infer *i, const tn_shape *data, tn_shape *index, tn_shape *out)
{
    const int64_t *asked = tni_attr_opt_int(i->attrs, TN_pick_axis);
    const bool keep = tni_attr_bool(i->attrs, TN_pick_keepdims), np = (i->flags & TN_INFER_NP_SHAPE) != 0;
    tn_shape y, with, without;
    int32_t axis = 0;
    tn_status st;

    if (!asked)
        return tni_infer_fail(i, TN_E_ATTR, "axis may not be None");
    if (data->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, *asked, data->ndim, &axis)))
        return st;
    if (data->dim[axis] == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "nothing can be picked along axis %d, it has size 0", axis);
    tni_shape_reduce(data, 1u << axis, true, np, &with);
    tni_shape_reduce(data, 1u << axis, false, np, &without);
    y = keep ? with : without;
    if ((st = tni_shape_assign(i, index,
                               index->ndim == with.ndim && data->ndim > 1 ? &with
                               : index->ndim < 0                          ? &y
                                                                          : &without)))
        return st;
    return tn_shape_unify(i, out, &y);
}

static tn_status pick_shape(tn_infer *i)
{
    return pick_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status pick_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? no_gradient(g, tn_grad_emit(g, 0, "_backward_pick", 3, in), 1) : TN_OK;
}

/* dy, data, index */
static tn_status backward_pick_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : pick_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

/* ---- gather_nd ---------------------------------------------------------------------------------------- */

/* indices (M, rest): the first M axes of data are looked up. */
static tn_status gather_unify(tn_infer *i, const tn_shape *data, const tn_shape *indices, tn_shape *out)
{
    tn_shape y;
    int64_t looked_up;

    if (data->ndim < 0 || indices->ndim < 0 || (indices->ndim > 0 && indices->dim[0] < 0))
        return TN_OK;
    looked_up = indices->ndim > 0 ? indices->dim[0] : 0;
    if (looked_up < 1 || looked_up > data->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "indices look up %lld axes, but the data has %d",
                              (long long)looked_up, data->ndim);
    if (indices->ndim - 1 + data->ndim - looked_up > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    y.ndim = 0;
    for (int32_t k = 1; k < indices->ndim; k++)
        y.dim[y.ndim++] = indices->dim[k];
    for (int32_t k = (int32_t)looked_up; k < data->ndim; k++)
        y.dim[y.ndim++] = data->dim[k];
    if (y.ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        y.dim[y.ndim++] = 1;
    return tn_shape_unify(i, out, &y);
}

static tn_status gather_shape(tn_infer *i)
{
    return gather_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status gather_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? no_gradient(g, tn_grad_emit(g, 0, "_backward_gather_nd", 3, in), 1) : TN_OK;
}

/* dy, data, indices */
static tn_status backward_gather_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : gather_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

/* ---- scatter_nd --------------------------------------------------------------------------------------- */

/* Turned round: gather_nd would find the data in the output. */
static tn_status scatter_shape(tn_infer *i)
{
    const tn_tuple *shape = tni_attr_tuple(i->attrs, TN_scatter_nd_shape);
    const tn_shape *indices = i->in_shape[1];
    tn_shape y;
    tn_status st;

    if (tni_tuple_count(shape) > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "shape has %lld dimensions, at most %d",
                              (long long)tni_tuple_count(shape), TN_NDIM_MAX);
    if (indices->ndim == 0 || indices->ndim == 1)
        return tni_infer_fail(i, TN_E_SHAPE, "indices have %d dimensions, at least 2 are needed",
                              indices->ndim);
    tni_shape_set(&y, (int32_t)tni_tuple_count(shape), shape ? shape->item : NULL);
    st = tn_shape_unify(i, i->out_shape[0], &y);
    return st ? st : gather_unify(i, i->out_shape[0], indices, i->in_shape[0]);
}

static tn_status scatter_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge dx;

    if (!tni_grad_arrives(g))
        return TN_OK;
    dx = tni_grad_op2(g, &st, "gather_nd", tn_grad_of(g, 0), tn_grad_input(g, 1));
    return no_gradient(g, tni_grad_set(g, &st, 0, dx), 1);
}

/* Of _backward_Embedding(dy, weight, data): to dy goes what arrives at the rows. */
static tn_status backward_embedding_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 2), tn_grad_of(g, 0)};
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, "Embedding", in, NULL, 2, 0};
    tn_edge made = {0};
    tn_status st = in[1].node ? g->ops->emit(g, &e, &made) : TN_OK;

    return in[1].node ? tni_grad_set(g, &st, 0, made) : TN_OK;
}

/* ---- table -------------------------------------------------------------------------------------------- */

static const tn_op take =
    TNI_OP("take", .doc = "Elements of `a` along an axis, in the order of the indices.",
           .aliases = TNI_NAMES("_npi_take"), .attrs = take_attrs, .inputs = TNI_NAMES("a", "indices"),
           .outputs = TNI_NAMES("output"), .flags = TN_OP_CHECKS_VALUES, .shape = take_shape,
           .dtype = take_dtype, .gradient = take_grad);

static const tn_op backward_take =
    TNI_OP("_backward_take", .doc = "Gradient of take.", .attrs = take_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data", "indices"), .outputs = TNI_NAMES("dx"),
           .shape = backward_take_shape, .dtype = backward_index_dtype, .gradient = tni_grad_of_linear);

static const tn_op embedding =
    TNI_OP("Embedding", .doc = "Rows of a weight, chosen by index; indices outside are clipped.",
           .aliases = TNI_NAMES("_npx_embedding", "_sparse_Embedding"), .attrs = embedding_attrs,
           .inputs = TNI_NAMES("data", "weight"), .outputs = TNI_NAMES("output"), .shape = embedding_shape,
           .dtype = embedding_dtype, .gradient = embedding_grad);

static const tn_op backward_embedding = TNI_OP(
    "_backward_Embedding", .doc = "Gradient of Embedding.", .attrs = embedding_attrs, .flags = TN_OP_BACKWARD,
    .inputs = TNI_NAMES("dy", "data", "indices"), .outputs = TNI_NAMES("dx"),
    .shape = backward_embedding_shape, .dtype = backward_index_dtype, .gradient = backward_embedding_grad);

static const tn_op one_hot = TNI_OP(
    "one_hot", .doc = "A new last axis with `on_value` at the index.", .aliases = TNI_NAMES("_npx_one_hot"),
    .attrs = one_hot_attrs, .inputs = TNI_NAMES("indices"), .outputs = TNI_NAMES("output"),
    .flags = TN_OP_ZERO_GRADIENT, .shape = one_hot_shape, .dtype = one_hot_dtype);

static const tn_op pick =
    TNI_OP("pick", .doc = "One element along an axis for each index.",
           .aliases = TNI_NAMES("_npx_pick", "choose_element_0index"), .attrs = pick_attrs,
           .inputs = TNI_NAMES("data", "index"), .outputs = TNI_NAMES("output"), .shape = pick_shape,
           .dtype = take_dtype, .gradient = pick_grad);

static const tn_op backward_pick =
    TNI_OP("_backward_pick", .doc = "Gradient of pick.", .attrs = pick_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data", "index"), .outputs = TNI_NAMES("dx"),
           .shape = backward_pick_shape, .dtype = backward_index_dtype, .gradient = tni_grad_of_linear);

static const tn_op gather_nd =
    TNI_OP("gather_nd", .doc = "Elements of the data whose coordinates are the columns of indices.",
           .aliases = TNI_NAMES("_npi_gather_nd", "_npx_gather_nd"), .inputs = TNI_NAMES("data", "indices"),
           .outputs = TNI_NAMES("output"), .flags = TN_OP_CHECKS_VALUES, .shape = gather_shape,
           .dtype = take_dtype, .gradient = gather_grad);

static const tn_op backward_gather_nd =
    TNI_OP("_backward_gather_nd", .doc = "Gradient of gather_nd.", .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data", "indices"), .outputs = TNI_NAMES("dx"),
           .shape = backward_gather_shape, .dtype = backward_index_dtype, .gradient = tni_grad_of_linear);

static const tn_op scatter_nd = TNI_OP(
    "scatter_nd",
    .doc = "Zeros, with the data at the coordinates that are the columns of indices; the last of equal ones.",
    .attrs = scatter_attrs, .inputs = TNI_NAMES("data", "indices"), .outputs = TNI_NAMES("output"),
    .flags = TN_OP_CHECKS_VALUES, .shape = scatter_shape, .dtype = take_dtype, .gradient = scatter_grad);

const tn_op *const tni_family_index[] = {
    &take,          &backward_take, &embedding,          &backward_embedding, &one_hot, &pick,
    &backward_pick, &gather_nd,     &backward_gather_nd, &scatter_nd,         NULL,
};

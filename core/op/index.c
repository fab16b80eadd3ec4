/*
 * Lookups by index arrays: take, Embedding, one_hot, pick, gather_nd, scatter_nd. Indices may be of any data
 * type, fractions are cut off. What lies outside is clipped, wrapped round or refused, as the mode says.
 * Gradients go to the data; indices have none (zeros, where somebody asks).
 */
#include "tenon/plugin/op/index.h"
#include "op/infer_help.h"

static const tn_attr_def scatter_attrs[] = TN_ATTR_TABLE(scatter_nd);

/* ---- take --------------------------------------------------------------------------------------------- */

static tn_status take_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0], *indices = i->in_shape[1];
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
    if (a->dim[axis] == 0 && tn_shape_known(indices) && tn_shape_count(indices) > 0)
        return tni_infer_fail(i, TN_E_SHAPE, "nothing can be taken from axis %d, it has size 0", axis);
    return tni_outputs_assign(i, &y);
}

/* ---- pick --------------------------------------------------------------------------------------------- */

/* The index has the data's shape without the axis, or with size 1 there. */
static tn_status pick_shape(tn_infer *i)
{
    const tn_shape *data = i->in_shape[0];
    tn_shape *index = i->in_shape[1];
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
    return tn_shape_unify(i, i->out_shape[0], &y);
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

/* ---- batch_take --------------------------------------------------------------------------------------- */

static tn_status batch_take_shape(tn_infer *i)
{
    tn_shape matrix = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}}, vector = {.ndim = 1};
    tn_shape *a = i->in_shape[0], *indices = i->in_shape[1];
    tn_status st = tn_shape_unify(i, a, &matrix);

    if (st)
        return st;
    vector.dim[0] = a->dim[0];
    if ((st = tn_shape_unify(i, indices, &vector)) || (st = tn_shape_unify(i, i->out_shape[0], indices)) ||
        (st = tni_dim_unify(i, &a->dim[0], &indices->dim[0])))
        return st;
    return a->dim[1] == 0 && a->dim[0] > 0
               ? tni_infer_fail(i, TN_E_SHAPE, "nothing can be taken from axis 1, it has size 0")
               : TN_OK;
}

/* ---- scatter_nd --------------------------------------------------------------------------------------- */

/* The output has the shape of the attribute. Turned round: gather_nd would find the data, input `data`, in it
 * by the input behind that. */
static tn_status scattered(tn_infer *i, uint32_t data)
{
    const tn_tuple *shape = tni_attr_tuple(i->attrs, TN_scatter_nd_shape);
    const tn_shape *indices = i->in_shape[data + 1];
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
    return st ? st : gather_unify(i, i->out_shape[0], indices, i->in_shape[data]);
}

static tn_status scatter_shape(tn_infer *i)
{
    return scattered(i, 0);
}

/* The data are put into lhs, which has the output's shape. */
static tn_status scatter_set_shape(tn_infer *i)
{
    tn_status st = scattered(i, 1);

    return st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

/* ---- ravel, unravel
 * ------------------------------------------------------------------------------------- */

/* Coordinates (axes, N) of N indices. */
static tn_status ravel_shape(tn_infer *i)
{
    const int64_t axes = tni_tuple_count(tni_attr_tuple(i->attrs, TN_ravel_shape));
    tn_shape coordinates = {.ndim = 2, .dim = {axes, TN_DIM_UNKNOWN}}, flat = {.ndim = 1};
    tn_status st;

    if (axes < 1)
        return tni_infer_fail(i, TN_E_ATTR, "shape is missing");
    if ((st = tn_shape_unify(i, i->in_shape[0], &coordinates)))
        return st;
    flat.dim[0] = i->in_shape[0]->dim[1];
    return tn_shape_unify(i, i->out_shape[0], &flat);
}

static tn_status unravel_shape(tn_infer *i)
{
    const int64_t axes = tni_tuple_count(tni_attr_tuple(i->attrs, TN_ravel_shape));
    const tn_shape *x = i->in_shape[0];
    tn_shape y = {.ndim = 2, .dim = {axes, tn_shape_known(x) ? tn_shape_count(x) : TN_DIM_UNKNOWN}};

    if (axes < 1)
        return tni_infer_fail(i, TN_E_ATTR, "shape is missing");
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* ---- table -------------------------------------------------------------------------------------------- */

static const tn_attr_def ravel_attrs[] = TN_ATTR_TABLE(ravel);
#define RAVEL(name_, shape_, alias, doc_)                                                                    \
    TNI_ROW(name_, .doc = doc_, .aliases = TNI_NAMES(alias), .attrs = ravel_attrs,                           \
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = shape_,                    \
            .types = "T:number", .flags = TN_OP_ZERO_GRADIENT)

const tn_op *const tni_family_index[] = {
    TNI_ROW("take", .doc = "Elements of `a` along an axis, in the order of the indices.",
            .aliases = TNI_NAMES("_npi_take"), .attrs = TNI_ATTRS(take), .inputs = TNI_NAMES("a", "indices"),
            .outputs = TNI_NAMES("output"), .flags = TN_OP_CHECKS_VALUES, .shape = take_shape,
            .types = "indices:I", .gradients = "linear: dy ~a indices -> a indices=0"),
    TNI_ROW("Embedding", .doc = "Rows of a weight, chosen by index; indices outside are clipped.",
            .aliases = TNI_NAMES("_npx_embedding", "_sparse_Embedding"), .attrs = TNI_ATTRS(Embedding),
            .shapes = "data:(I..) weight:(input_dim,output_dim) -> output:(I..,output_dim)",
            .types = "data:I; T:or(attr(dtype))", .gradients = "linear: dy ~weight data -> weight data=0"),
    /* Its gradient is dense here. */
    TNI_ROW("_contrib_SparseEmbedding",
            .doc = "Rows of a weight, chosen by index; indices outside are clipped.",
            .computes = "Embedding"),
    TNI_ROW("one_hot", .doc = "A new last axis with `on_value` at the index.",
            .aliases = TNI_NAMES("_npx_one_hot"), .attrs = TNI_ATTRS(one_hot), .flags = TN_OP_ZERO_GRADIENT,
            .shapes = "indices:(I..) -> output:(I..,depth)",
            .types = "indices:I; output:attr(dtype,or(f32))"),
    TNI_ROW("pick", .doc = "One element along an axis for each index.",
            .aliases = TNI_NAMES("_npx_pick", "choose_element_0index"), .attrs = TNI_ATTRS(pick),
            .inputs = TNI_NAMES("data", "index"), .outputs = TNI_NAMES("output"), .shape = pick_shape,
            .types = "index:I", .gradients = "linear: dy ~data index -> data index=0"),
    TNI_ROW("gather_nd", .doc = "Elements of the data whose coordinates are the columns of indices.",
            .aliases = TNI_NAMES("_npi_gather_nd", "_npx_gather_nd"), .inputs = TNI_NAMES("data", "indices"),
            .outputs = TNI_NAMES("output"), .flags = TN_OP_CHECKS_VALUES, .shape = gather_shape,
            .types = "indices:I", .gradients = "linear: dy ~data indices -> data indices=0"),
    TNI_ROW("scatter_nd",
            .doc = "Zeros, with the data at the coordinates that are the columns of indices; the last of "
                   "equal ones.",
            .attrs = scatter_attrs, .inputs = TNI_NAMES("data", "indices"), .outputs = TNI_NAMES("output"),
            .flags = TN_OP_CHECKS_VALUES, .shape = scatter_shape, .types = "indices:I",
            .gradients = "composed: data = gather_nd(dy, indices) ; indices = zeros_like(~indices)"),
    TNI_ROW("_scatter_set_nd", .doc = "lhs, with rhs at the coordinates that are the columns of indices.",
            .aliases = TNI_NAMES("_npi_scatter_set_nd"), .attrs = scatter_attrs,
            .inputs = TNI_NAMES("lhs", "rhs", "indices"), .outputs = TNI_NAMES("output"),
            .flags = TN_OP_CHECKS_VALUES, .shape = scatter_set_shape, .types = "indices:I"),
    TNI_ROW("batch_take", .doc = "Of each row the element at the index, which is clipped.",
            .inputs = TNI_NAMES("a", "indices"), .outputs = TNI_NAMES("output"), .shape = batch_take_shape,
            .types = "indices:I:integer", .gradients = "linear: dy ~a indices -> a indices=0"),
    RAVEL("_ravel_multi_index", ravel_shape, "ravel_multi_index",
          "Coordinates, the columns of data, as indices of the flat array."),
    RAVEL("_unravel_index", unravel_shape, "unravel_index", "Indices of the flat array as coordinates."),
    NULL,
};

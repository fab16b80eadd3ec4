/*
 * Sorting: sort, argsort, topk. Elements that compare equal keep their order, ascending and descending; NaN
 * is larger than every number. MXNet leaves both open. `axis` None sorts the whole array as a flat one.
 * `sort`, and `topk` with its values, leave the positions of the chosen elements for backward, which puts dy
 * there.
 */
#include "tenon/plugin/op/order.h"
#include "op/infer_help.h"

#define INDEX_TYPES "float16, float32, float64, uint8, int32 or int64"

static const tn_attr_def sort_attrs[] = TN_ATTR_TABLE(sort);
static const tn_attr_def argsort_attrs[] = TN_ATTR_TABLE(argsort);
static const tn_attr_def topk_attrs[] = TN_ATTR_TABLE(topk);

/* ---- sort, argsort ------------------------------------------------------------------------------------ */

/* Indices of a type that MXNet has for them; a short one wraps round (uint8) or rounds. */
static tn_status indices_dtype(tn_infer *i, int32_t *slot, uint32_t attr)
{
    const int32_t asked = (int32_t)tni_attr_int(i->attrs, attr);

    if (asked != TN_F16 && asked != TN_F32 && asked != TN_F64 && asked != TN_U8 && asked != TN_I32 &&
        asked != TN_I64)
        return tni_infer_fail(i, TN_E_ATTR, "dtype is %s, but indices are " INDEX_TYPES,
                              asked < 0 ? "None" : tni_dtype_name(asked));
    return tni_dtype_assign(i, slot, asked);
}

static tn_status sort_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);

    return st ? st : tni_dtype_assign(i, &i->out_dtype[1], TN_I32);
}

static tn_status argsort_dtype(tn_infer *i)
{
    return indices_dtype(i, &i->out_dtype[0], TN_argsort_dtype);
}

/* ---- topk --------------------------------------------------------------------------------------------- */

static bool topk_is(const tn_value *attrs, int64_t ret_typ)
{
    return tni_attr_int(attrs, TN_topk_ret_typ) == ret_typ;
}

static bool topk_gives_values(const tn_value *attrs)
{
    return topk_is(attrs, TN_topk_ret_typ_value) || topk_is(attrs, TN_topk_ret_typ_both);
}

static tn_status topk_args(tn_infer *i)
{
    i->out_count = topk_gives_values(i->attrs) ? 2 : 1;
    i->visible_count = topk_is(i->attrs, TN_topk_ret_typ_both) ? 2 : 1;
    return TN_OK;
}

/* The shape of what is chosen; unknown as long as the data's is. */
static tn_status topk_chosen(tn_infer *i, const tn_shape *data, tn_shape *chosen)
{
    const int64_t *given = tni_attr_opt_int(i->attrs, TN_topk_axis), k = tni_attr_int(i->attrs, TN_topk_k);
    int64_t size = TN_DIM_UNKNOWN;
    int32_t axis = 0;
    tn_status st;

    *chosen = *data;
    if (data->ndim < 0)
        return TN_OK;
    if (given && (st = tni_axis(i, *given, data->ndim, &axis)))
        return st;
    if (given)
        size = data->dim[axis];
    else if (tn_shape_known(data))
        size = tn_shape_count(data);
    if (size >= 0 && k > size)
        return tni_infer_fail(i, TN_E_SHAPE, "k is %lld, but there are %lld elements to choose from",
                              (long long)k, (long long)size);
    chosen->ndim = given ? data->ndim : 1;
    chosen->dim[axis] = k > 0 ? k : size;
    return TN_OK;
}

static tn_status topk_shape(tn_infer *i)
{
    tn_shape chosen;
    tn_status st =
        topk_is(i->attrs, TN_topk_ret_typ_mask) ? tn_shape_unify(i, i->in_shape[0], i->out_shape[0]) : TN_OK;

    if (st || (st = topk_chosen(i, i->in_shape[0], &chosen)) || topk_is(i->attrs, TN_topk_ret_typ_mask))
        return st;
    for (uint32_t k = 0; !st && k < i->out_count; k++)
        st = tni_shape_assign(i, i->out_shape[k], &chosen);
    return st;
}

/* Indices that users do not see are int32, whatever they asked for. */
static tn_status topk_dtype(tn_infer *i)
{
    int32_t unseen = -1;
    int32_t *indices = topk_is(i->attrs, TN_topk_ret_typ_indices) ? &i->out_dtype[0]
                       : topk_is(i->attrs, TN_topk_ret_typ_both)  ? &i->out_dtype[1]
                                                                  : &unseen;
    tn_status st = indices_dtype(i, indices, TN_topk_dtype);

    if (!st && topk_is(i->attrs, TN_topk_ret_typ_value))
        st = tni_dtype_assign(i, &i->out_dtype[1], TN_I32);
    return st || topk_is(i->attrs, TN_topk_ret_typ_indices)
               ? st
               : tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
}

static tn_status topk_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_output(g, 1)};
    tn_status st = TN_OK;

    if (topk_gives_values(g->attrs))
        return in[0].node ? tn_grad_emit(g, 0, "_backward_topk", 3, in) : TN_OK;
    return tni_grad_set(g, &st, 0, tni_grad_op1(g, &st, "zeros_like", in[1]));
}

/* dy, data, indices */
static tn_status backward_topk_shape(tn_infer *i)
{
    tn_shape chosen;
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st || (st = topk_chosen(i, i->in_shape[1], &chosen)) ||
                   (st = tni_shape_assign(i, i->in_shape[0], &chosen))
               ? st
               : tni_shape_assign(i, i->in_shape[2], &chosen);
}

static tn_status backward_topk_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);

    return st || (st = tni_dtype_unify(i, &i->in_dtype[1], &i->out_dtype[0]))
               ? st
               : tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);
}

/* ---- table -------------------------------------------------------------------------------------------- */

static const tn_op sort =
    TNI_OP("sort", .doc = "The elements in order along an axis; equal ones keep theirs, NaN is the largest.",
           .aliases = TNI_NAMES("_npi_sort"), .attrs = sort_attrs,
           .shapes = "[axis=None] data:(D..) -> output:(#D) indices~:(#D)"
                     " | data:(A..,D@axis,B..) -> output:data indices~:data",
           .gradients = "once: dy data indices -> data", .dtype = sort_dtype);

static const tn_op argsort =
    TNI_OP("argsort", .doc = "Where the elements stand that sort brings to each place.",
           .aliases = TNI_NAMES("_npi_argsort"), .attrs = argsort_attrs, .flags = TN_OP_ZERO_GRADIENT,
           .shapes = "[axis=None] data:(D..) -> output:(#D) | data:(A..,D@axis,B..) -> output:data",
           .dtype = argsort_dtype);

static const tn_op topk =
    TNI_OP("topk", .doc = "The k largest or smallest elements along an axis, in order.",
           .aliases = TNI_NAMES("_npx_topk"), .attrs = topk_attrs, .inputs = TNI_NAMES("data"),
           .outputs = TNI_NAMES("output", "indices"), .args = topk_args, .shape = topk_shape,
           .dtype = topk_dtype, .gradient = topk_grad);

static const tn_op backward_topk =
    TNI_OP("_backward_topk", .doc = "Gradient of topk.", .attrs = topk_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data", "indices"), .outputs = TNI_NAMES("dx"),
           .shape = backward_topk_shape, .dtype = backward_topk_dtype);

const tn_op *const tni_family_order[] = {&sort, &argsort, &topk, &backward_topk, NULL};

/*
 * Reductions over axes. None and () mean all axes; `exclude` all but the given ones. Gradients stretch what
 * arrives over the reduced axes (_backward_sum and its relatives) and multiply by the partial derivative.
 */
#include "tenon/plugin/op/reduce.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def reduce_attrs[] = TN_ATTR_TABLE(reduce);
/* ---- norm ------------------------------------------------------------------------------------- */

static const tn_attr_def norm_attrs[] = TN_ATTR_TABLE(norm);

/* ---- positions -------------------------------------------------------------------------------- */

static const tn_attr_def arg_attrs[] = TN_ATTR_TABLE(argmax);

static tn_status arg_shape(tn_infer *i)
{
    const int64_t *axis = tni_attr_opt_int(i->attrs, TN_argmax_axis);
    const tn_shape *in = i->in_shape[0];
    int32_t a = 0;
    tn_shape out;
    tn_status st;

    if (in->ndim < 0)
        return TN_OK;
    if (axis && (st = tni_axis(i, *axis, in->ndim, &a)))
        return st;
    for (int32_t d = 0; d < in->ndim; d++)
        if (in->dim[d] == 0 && (!axis || d == a))
            return tn_fail(i->err, TN_E_SHAPE, "an empty axis has no largest element");
    tni_shape_reduce(in, axis ? 1u << a : UINT32_MAX, tni_attr_bool(i->attrs, TN_argmax_keepdims),
                     i->flags & TN_INFER_NP_SHAPE, &out);
    return tn_shape_unify(i, i->out_shape[0], &out);
}

/* ---- moments ---------------------------------------------------------------------------------- */

static const tn_attr_def moments_attrs[] = TN_ATTR_TABLE(moments);

static tn_status moments_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_moments_axes);
    uint32_t mask = 0;
    tn_shape out;
    tn_status st;

    if (!tni_tuple_count(axes))
        return tn_fail(i->err, TN_E_ATTR, "axes is empty; list those to take mean and variance over");
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = tni_axes_mask(i, axes, false, i->in_shape[0]->ndim, &mask)))
        return st;
    tni_shape_reduce(i->in_shape[0], mask, tni_attr_bool(i->attrs, TN_moments_keepdims),
                     i->flags & TN_INFER_NP_SHAPE, &out);
    st = tn_shape_unify(i, i->out_shape[0], &out);
    return st ? st : tn_shape_unify(i, i->out_shape[1], &out);
}

/* What arrives at an output, over its elements. */
#define OVER(op, e) "_backward_" op "(" e ", ~data, axis=@axes, keepdims=@keepdims)"
static const tn_op op_moments =
    TNI_OP("moments", .doc = "mean and variance over axes", .attrs = moments_attrs, .types = "T:number",
           .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("mean", "var"), .shape = moments_shape,
           .gradients = "composed: data = " OVER("mean", "dy") "+" OVER("mean", "dy1") "*2*(data-" OVER(
               "sum", "mean") ")",
           .cost = tni_cost_each_input);

/* ---- the family ------------------------------------------------------------------------------- */

#define STRETCHED(e) "_backward_sum!(" e ", ~data)"
#define CAST(e) "_backward_cast(" e ", ~data)"

/* Of what is linear in dy with a mask of x, which is the backward operator of ones. */
#define PICKED(name)                                                                                         \
    "own: dy data output -> data ; dy = sum!(h*_backward_" #name "!(ones_like(~dy), data, output))"

/* X(name, gradient, doc, aliases) */
#define REDUCTIONS(X)                                                                                        \
    X(sum, "linear: dy ~data -> data", "sum", "_sparse_sum", "sum_axis")                                     \
    X(mean, "linear: dy ~data -> data", "arithmetic mean", "_sparse_mean")                                   \
    X(prod, "composed: data = " STRETCHED("dy*output") "/data", "product", NULL)                             \
    X(nansum, PICKED(nansum), "sum of what is not NaN", NULL)                                                \
    X(nanprod, "once: dy data output -> data", "product of what is not NaN", NULL)                           \
    X(max, PICKED(max), "largest element; NaN if there is one", "max_axis")                                  \
    X(min, PICKED(min), "smallest element; NaN if there is one", "min_axis")                                 \
    X(_square_sum, "composed: data = " STRETCHED("dy") "*data*2", "sum of squares", NULL)

#define REDUCE(name_, gradient, doc_, ...)                                                                   \
    static const tn_op op_##name_ = TNI_OP(                                                                  \
        #name_, .doc = doc_, .aliases = TNI_NAMES(__VA_ARGS__), .attrs = reduce_attrs,                       \
        .shapes = "data:(D..) -> output:(reduce(D..))", .gradients = gradient, .cost = tni_cost_each_input);
/* clang-format off */
REDUCTIONS(REDUCE)
/* clang-format on */

/* Of ord 1 dy sign(x), else dy x / y, in the type of x. */
static const tn_op op_norm =
    TNI_OP("norm", .doc = "norm over axes", .aliases = TNI_NAMES("_sparse_norm"), .attrs = norm_attrs,
           .shapes = "data:(D..) -> output:(reduce(D..))", .types = "output:attr(out_dtype,T)",
           .gradients = "composed: [ord=1&out_dtype=None] data = " STRETCHED(
               "dy") "*sign(data)"
                     " | [ord=1] data = " STRETCHED(
                         CAST("dy")) "*sign(data)"
                                     " | [out_dtype=None] data = " STRETCHED("dy") "*(data/" STRETCHED(
                                         "output") ")"
                                                   " | data = " STRETCHED(CAST("dy")) "*(data/" STRETCHED(
                                                       CAST("output")) ")",
           .cost = tni_cost_each_input);

#define POSITION(id, name_, doc_, ...)                                                                       \
    static const tn_op id =                                                                                  \
        TNI_OP(name_, .doc = doc_, .flags = TN_OP_ZERO_GRADIENT, .cost = tni_cost_each_input, __VA_ARGS__);
#define ARG                                                                                                  \
    .attrs = arg_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = arg_shape
/* clang-format off */
POSITION(op_argmax, "argmax", "position of the largest element; the first if there are several", ARG)
POSITION(op_argmin, "argmin", "position of the smallest element; the first if there are several", ARG)
POSITION(op_argmax_channel, "argmax_channel", "position of the largest element along axis 1",
         .shapes = "data:(N,C,S..) -> output:(N,S..)")

const tn_op *const tni_family_reduce[] = {
#define POINTER(name, ...) &op_##name,
    REDUCTIONS(POINTER) &op_norm, &op_argmax, &op_argmin, &op_argmax_channel, &op_moments,
    NULL,
};
/* clang-format on */

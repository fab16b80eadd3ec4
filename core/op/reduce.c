/*
 * Reductions over axes. None and () mean all axes; `exclude` all but the given ones. Gradients stretch what
 * arrives over the reduced axes (_backward_sum and its relatives) and multiply by the partial derivative.
 */
#include <string.h>

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/op/reduce.h"

static const tn_attr_def reduce_attrs[] = TN_ATTR_TABLE(reduce);
static const char *const data_names[] = {"data", NULL};
static const char *const output_names[] = {"output", NULL};
static const char *const back_names[] = {"dy", "data", "y", NULL};
static const char *const back_like_names[] = {"dy", "like", NULL};

static tn_status reduced_shape(tn_infer *i, const tn_shape *in, bool has_exclude, tn_shape *out)
{
    uint32_t mask = 0;
    tn_status st = tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_reduce_axis),
                                 has_exclude && tni_attr_bool(i->attrs, TN_reduce_exclude), in->ndim, &mask);

    if (!st)
        tni_shape_reduce(in, mask, tni_attr_bool(i->attrs, TN_reduce_keepdims), i->flags & TN_INFER_NP_SHAPE,
                         out);
    return st;
}

static tn_status reduce_shape(tn_infer *i)
{
    tn_shape out;
    tn_status st;

    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    st = reduced_shape(i, i->in_shape[0], true, &out);
    return st ? st : tn_shape_unify(i, i->out_shape[0], &out);
}

/* dy, data[, y] -> the gradient of data; dy has the shape of the reduction. */
static tn_status back_shape(tn_infer *i)
{
    tn_shape small;
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    if (st || i->in_shape[1]->ndim < 0)
        return st;
    if (i->in_shape[0]->ndim == 0)
        i->flags |= TN_INFER_NP_SHAPE;
    if ((st = reduced_shape(i, i->in_shape[1], true, &small)) ||
        (st = tni_shape_assign(i, i->in_shape[0], &small)))
        return st;
    return i->in_count > 2 ? tni_shape_assign(i, i->in_shape[2], &small) : TN_OK;
}

/* ---- gradients -------------------------------------------------------------------------------- */

/* Node `op` with the axes of this one. */
static tn_edge like_node(tn_grad *g, tn_status *st, const char *op, uint32_t count, const tn_edge *in)
{
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, op, in, NULL, count, 0};
    tn_edge out = {NULL, 0, 0};

    if (!*st)
        *st = g->ops->emit(g, &e, &out);
    return out;
}

/* `e`, of the output's shape, stretched to the input's. */
static tn_edge stretched(tn_grad *g, tn_status *st, tn_edge e)
{
    const tn_edge in[] = {e, tn_grad_input(g, 0)};

    return like_node(g, st, "_backward_sum", 2, in);
}

/* sum, mean: _backward_<name>(dy, like) */
static tn_status linear_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    char name[32];

    snprintf(name, sizeof name, "_backward_%s", g->op->name);
    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, name, 2, in) : TN_OK;
}

/* max, min, nansum, nanprod: _backward_<name>(dy, x, y) */
static tn_status picked_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_output(g, 0)};
    char name[32];

    snprintf(name, sizeof name, "_backward_%s", g->op->name);
    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, name, 3, in) : TN_OK;
}

/* The gradient of a product is dy y / x. */
static tn_status prod_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op2(g, &st, "elemwise_mul", tn_grad_of(g, 0), tn_grad_output(g, 0));
    return tni_grad_set(g, &st, 0,
                        tni_grad_op2(g, &st, "elemwise_div", stretched(g, &st, e), tn_grad_input(g, 0)));
}

/* Of a stretched gradient: what arrives, reduced again. */
static tn_status back_linear_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0)};
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    return tni_grad_set(g, &st, 0, like_node(g, &st, g->op->name + strlen("_backward_"), 1, in));
}

/* Linear in dy with a mask of x: the mask is this operator of ones. */
static tn_status back_picked_grad(tn_grad *g)
{
    tn_edge in[] = {tn_grad_input(g, 0), tn_grad_input(g, 1), tn_grad_input(g, 2)}, mask;
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    in[0] = tni_grad_op1(g, &st, "ones_like", in[0]);
    mask = like_node(g, &st, g->op->name, 3, in);
    mask = tni_grad_op2(g, &st, "elemwise_mul", tn_grad_of(g, 0), mask);
    return tni_grad_set(g, &st, 0, like_node(g, &st, "sum", 1, &mask));
}

/* ---- norm ------------------------------------------------------------------------------------- */

static const tn_attr_def norm_attrs[] = TN_ATTR_TABLE(norm);

static tn_status norm_shape(tn_infer *i)
{
    uint32_t mask = 0;
    tn_shape out;
    tn_status st;

    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_norm_axis), false, i->in_shape[0]->ndim, &mask)))
        return st;
    tni_shape_reduce(i->in_shape[0], mask, tni_attr_bool(i->attrs, TN_norm_keepdims),
                     i->flags & TN_INFER_NP_SHAPE, &out);
    return tn_shape_unify(i, i->out_shape[0], &out);
}

static tn_status norm_dtype(tn_infer *i)
{
    int64_t dtype = tni_attr_int(i->attrs, TN_norm_out_dtype);

    if (dtype >= 0)
        return tni_dtype_assign(i, &i->out_dtype[0], (int32_t)dtype);
    return tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
}

/* 1: dy sign(x); 2: dy x / y. Written with operators, so that it can be differentiated again. */
static tn_status norm_grad(tn_grad *g)
{
    tn_edge x = tn_grad_input(g, 0), dy = tn_grad_of(g, 0), y = tn_grad_output(g, 0), e;
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if (tni_attr_int(g->attrs, TN_norm_out_dtype) >= 0) {
        const tn_edge a[] = {dy, x}, b[] = {y, x};

        st = tn_grad_node(g, "_backward_cast", 2, a, 0, NULL, &dy);
        st = st ? st : tn_grad_node(g, "_backward_cast", 2, b, 0, NULL, &y);
    }
    dy = stretched(g, &st, dy);
    if (tni_attr_int(g->attrs, TN_norm_ord) == 1)
        e = tni_grad_op1(g, &st, "sign", x);
    else
        e = tni_grad_op2(g, &st, "elemwise_div", x, stretched(g, &st, y));
    return tni_grad_set(g, &st, 0, tni_grad_op2(g, &st, "elemwise_mul", dy, e));
}

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

static tn_status channel_shape(tn_infer *i)
{
    tn_shape out;

    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if (i->in_shape[0]->ndim < 2)
        return tn_fail(i->err, TN_E_SHAPE, "at least two dimensions are needed");
    tni_shape_reduce(i->in_shape[0], 2, false, true, &out);
    return tn_shape_unify(i, i->out_shape[0], &out);
}

/* ---- the family ------------------------------------------------------------------------------- */

#define ALIAS(name, ...) static const char *const alias_##name[] = {__VA_ARGS__, NULL};
/* clang-format off */
ALIAS(sum, "_sparse_sum", "sum_axis")
ALIAS(mean, "_sparse_mean")
ALIAS(max, "max_axis")
ALIAS(min, "min_axis")
ALIAS(prod, NULL)
ALIAS(nansum, NULL)
ALIAS(nanprod, NULL)
ALIAS(_square_sum, NULL)
/* clang-format on */

/* sum of x^2: 2 dy x */
static tn_status square_sum_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op2(g, &st, "elemwise_mul", stretched(g, &st, tn_grad_of(g, 0)), tn_grad_input(g, 0));
    return tni_grad_set(g, &st, 0, tni_grad_scalar(g, &st, "_mul_scalar", e, "2"));
}

#define REDUCE(name_, gradient_, doc_)                                                                       \
    static const tn_op op_##name_ = TNI_OP(                                                                  \
        #name_, .doc = doc_, .aliases = alias_##name_, .attrs = reduce_attrs, .inputs = data_names,          \
        .outputs = output_names, .shape = reduce_shape, .gradient = gradient_, .cost = tni_cost_each_input);
#define BACK(name_, names_, gradient_)                                                                       \
    static const tn_op back_##name_ = TNI_OP(                                                                \
        "_backward_" #name_, .doc = "gradient of " #name_, .attrs = reduce_attrs, .inputs = names_,          \
        .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = back_shape, .gradient = gradient_);
/* clang-format off */
REDUCE(sum, linear_grad, "sum")
REDUCE(mean, linear_grad, "arithmetic mean")
REDUCE(prod, prod_grad, "product")
REDUCE(nansum, picked_grad, "sum of what is not NaN")
REDUCE(nanprod, picked_grad, "product of what is not NaN")
REDUCE(max, picked_grad, "largest element; NaN if there is one")
REDUCE(min, picked_grad, "smallest element; NaN if there is one")
REDUCE(_square_sum, square_sum_grad, "sum of squares")
BACK(sum, back_like_names, back_linear_grad)
BACK(mean, back_like_names, back_linear_grad)
BACK(nansum, back_names, back_picked_grad)
BACK(nanprod, back_names, NULL)
BACK(max, back_names, back_picked_grad)
BACK(min, back_names, back_picked_grad)
/* clang-format on */

static const tn_op op_norm =
    TNI_OP("norm", .doc = "norm over axes", .aliases = TNI_NAMES("_sparse_norm"), .attrs = norm_attrs,
           .inputs = data_names, .outputs = output_names, .shape = norm_shape, .dtype = norm_dtype,
           .gradient = norm_grad, .cost = tni_cost_each_input);
static const tn_op op_argmax =
    TNI_OP("argmax", .doc = "position of the largest element; the first if there are several",
           .attrs = arg_attrs, .inputs = data_names, .outputs = output_names, .flags = TN_OP_ZERO_GRADIENT,
           .shape = arg_shape, .cost = tni_cost_each_input);
static const tn_op op_argmin =
    TNI_OP("argmin", .doc = "position of the smallest element; the first if there are several",
           .attrs = arg_attrs, .inputs = data_names, .outputs = output_names, .flags = TN_OP_ZERO_GRADIENT,
           .shape = arg_shape, .cost = tni_cost_each_input);
static const tn_op op_argmax_channel =
    TNI_OP("argmax_channel", .doc = "position of the largest element along axis 1", .inputs = data_names,
           .outputs = output_names, .flags = TN_OP_ZERO_GRADIENT, .shape = channel_shape,
           .cost = tni_cost_each_input);

/* clang-format off */
const tn_op *const tni_family_reduce[] = {
    &op_sum, &op_mean, &op_prod, &op_nansum, &op_nanprod, &op_max, &op_min, &op__square_sum, &back_sum,
    &back_mean, &back_nansum, &back_nanprod, &back_max, &back_min, &op_norm, &op_argmax, &op_argmin,
    &op_argmax_channel, NULL,
};
/* clang-format on */

/*
 * Operators of arrays of one shape: arithmetic and comparison of two, sums of many, copies, constants of a
 * shape, casts, a choice by condition.
 */
#include "tenon/plugin/op/elemwise.h"
#include "op/binary.h"

#define INPUTS(...) .inputs = TNI_NAMES(__VA_ARGS__), .outputs = TNI_NAMES("output"), .shape = tni_shape_same
#define ZERO .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT

#define PAIR(name_, gradient_, doc_, ...)                                                                    \
    TNI_ROW(#name_, .doc = doc_, .aliases = TNI_NAMES(__VA_ARGS__), INPUTS("lhs", "rhs"),                    \
            .flags = TN_OP_POINTWISE, .gradients = "composed: " TNI_GRAD_##gradient_("output"))
#define QUESTION(name_, doc_, alias_)                                                                        \
    TNI_ROW(#name_, .doc = doc_, .aliases = TNI_NAMES(alias_), INPUTS("lhs", "rhs"), ZERO)

/* ---- copies and constants --------------------------------------------------------------------- */

#define ONE(name_, ...) TNI_ROW(#name_, INPUTS("data"), __VA_ARGS__)

/* No kernel: the core copies. */
#define COPY(name_, ...)                                                                                     \
    (&(const tn_op){.struct_size = TN_END(tn_op, gradients),                                                 \
                    .version = 1,                                                                            \
                    .exec = TN_EXEC_COPY,                                                                    \
                    .name = name_,                                                                           \
                    INPUTS("data"),                                                                          \
                    .gradients = "composed: data = dy",                                                      \
                    __VA_ARGS__})

/* ---- add_n ------------------------------------------------------------------------------------ */

static tn_status add_n_args(tn_infer *i)
{
    if (i->in_count == 0)
        return tn_fail(i->err, TN_E_ARG, "at least one input is needed");
    i->out_count = 1;
    return TN_OK;
}

static tn_status add_n_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < g->in_count; i++)
        st = g->ops->set(g, i, tn_grad_of(g, 0));
    return st;
}

/* ---- casts ------------------------------------------------------------------------------------ */

static const tn_attr_def cast_attrs[] = TN_ATTR_TABLE(Cast);
/* Whole numbers, such as indices and labels, stay what they are. */
static tn_status amp_cast_dtype(tn_infer *i)
{
    const int32_t from = i->in_dtype[0];

    if (from < 0)
        return TN_OK;
    return tni_dtype_assign(i, &i->out_dtype[0],
                            tni_dtype_is_float(from) ? (int32_t)tni_attr_int(i->attrs, TN_Cast_dtype) : from);
}

static tn_status multicast_args(tn_infer *i)
{
    i->in_count = i->out_count = i->visible_count =
        (uint32_t)tni_attr_int(i->attrs, TN_amp_multicast_num_outputs);
    return TN_OK;
}

static tn_status multicast_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->in_count && !st; k++)
        st = tn_shape_unify(i, i->in_shape[k], i->out_shape[k]);
    return st;
}

static bool amp_type(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F16 || dtype == TN_BF16;
}

/* float32, float16 and bfloat16 become one of them: float32 if one is, or narrow only if all are; else what
 * the first of them is. Other types stay. */
static tn_status multicast_dtype(tn_infer *i)
{
    const bool narrow = tni_attr_bool(i->attrs, TN_amp_multicast_cast_narrow);
    int32_t to = -1;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->in_count; k++) {
        const int32_t dtype = i->in_dtype[k];

        if (dtype < 0)
            return TN_OK;
        if (amp_type(dtype) && (to < 0 || (dtype == TN_F32 && !narrow) || (to == TN_F32 && narrow)))
            to = dtype;
    }
    for (uint32_t k = 0; k < i->in_count && !st; k++)
        st = tni_dtype_assign(i, &i->out_dtype[k], amp_type(i->in_dtype[k]) ? to : i->in_dtype[k]);
    return st;
}

static tn_status multicast_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < g->in_count && !st; k++) {
        const tn_edge dy = tn_grad_of(g, k);

        if (dy.node)
            st = tni_grad_set(g, &st, k, tni_grad_op2(g, &st, "_backward_cast", dy, tn_grad_input(g, k)));
    }
    return st;
}

#define CAST_GRAD "composed: data = _backward_cast(dy, ~data)"

/* ---- where ------------------------------------------------------------------------------------ */

/* All inputs but the first, and the output, are alike. */
static tn_status rest_shape(tn_infer *i)
{
    tn_infer rest = *i;
    const tn_shape *c = i->in_shape[0];
    tn_status st;

    rest.in_shape++;
    rest.in_count--;
    if ((st = tni_shape_same(&rest)) || c->ndim < 0 || i->out_shape[0]->ndim < 0)
        return st;
    if (c->ndim == i->out_shape[0]->ndim)
        return tni_shape_assign(i, i->in_shape[0], i->out_shape[0]);
    if (c->ndim != 1 || i->out_shape[0]->ndim == 0)
        return tn_fail(i->err, TN_E_SHAPE,
                       "the condition must have the shape of x, or one element for each row of it");
    return tni_dim_unify(i, &i->in_shape[0]->dim[0], &i->out_shape[0]->dim[0]);
}

#define BACK_WHERE(side)                                                                                     \
    TNI_ROW("_backward_where_" side, .doc = "dy where where took " side ", else 0",                          \
            .inputs = TNI_NAMES("condition", "dy"), .outputs = TNI_NAMES("output"), .flags = TN_OP_BACKWARD, \
            .shape = rest_shape, .types = "condition:C",                                                     \
            .gradients = "composed: dy = _backward_where_" side "(condition, h)")

/* clang-format off */
const tn_op *const tni_family_elemwise[] = {
    /* PAIR(name, gradient, doc, aliases) */
    PAIR(elemwise_add, add, "lhs + rhs", "_Plus", "_add", "_plus", "_sparse_elemwise_add"),
    PAIR(elemwise_sub, sub, "lhs - rhs", "_Minus", "_minus", "_sparse_elemwise_sub", "_sub"),
    PAIR(elemwise_mul, mul, "lhs * rhs", "_Mul", "_mul", "_sparse_elemwise_mul"),
    PAIR(elemwise_div, div, "lhs / rhs", "_Div", "_div", "_sparse_elemwise_div"),
    PAIR(_grad_add, add, "sum of two gradients", NULL),
    PAIR(_scatter_elemwise_div, div, "lhs / rhs, where lhs is stored", NULL),
    PAIR(_mod, mod, "remainder with the sign of rhs", "_Mod"),
    PAIR(_power, power, "lhs to the power of rhs", "_Power"),
    PAIR(_maximum, maximum, "the larger one; NaN if one is", "_Maximum"),
    PAIR(_minimum, minimum, "the smaller one; NaN if one is", "_Minimum"),
    PAIR(_hypot, hypot, "sqrt(lhs^2 + rhs^2)", "_Hypot"),
    /* QUESTION(name, doc, alias) */
    QUESTION(_equal, "1 where lhs = rhs, else 0", "_Equal"),
    QUESTION(_not_equal, "1 where lhs and rhs differ, else 0", "_Not_Equal"),
    QUESTION(_greater, "1 where lhs > rhs, else 0", "_Greater"),
    QUESTION(_greater_equal, "1 where lhs >= rhs, else 0", "_Greater_Equal"),
    QUESTION(_lesser, "1 where lhs < rhs, else 0", "_Lesser"),
    QUESTION(_lesser_equal, "1 where lhs <= rhs, else 0", "_Lesser_Equal"),
    QUESTION(_logical_and, "1 where neither is 0, else 0", "_Logical_And"),
    QUESTION(_logical_or, "1 where one is not 0, else 0", "_Logical_Or"),
    QUESTION(_logical_xor, "1 where exactly one is not 0, else 0", "_Logical_Xor"),
    ONE(_copy, .doc = "the same again", .aliases = TNI_NAMES("identity"), .flags = TN_OP_POINTWISE,
        .gradients = "composed: data = dy"),
    COPY("_copyto", .doc = "the same on another device", .aliases = TNI_NAMES("_npi_copyto"),
         .attrs = TNI_ATTRS(copyto)),
    /* MXNet puts it between groups of devices. It runs where its group says. */
    COPY("_CrossDeviceCopy", .doc = "the same on the device of its group"),
    ONE(BlockGrad, .doc = "the same again; no gradient goes back",
        .aliases = TNI_NAMES("_sparse_stop_gradient", "stop_gradient"), ZERO),
    ONE(make_loss, .doc = "the same again; its gradient is 1", .aliases = TNI_NAMES("_sparse_make_loss"),
        .flags = TN_OP_POINTWISE | TN_OP_IGNORE_HEAD, .gradients = "composed: data = ones_like(~data)"),
    ONE(MakeLoss, .doc = "the same again; its gradient is grad_scale, normalised",
        .attrs = TNI_ATTRS(MakeLoss),
        .flags = TN_OP_POINTWISE | TN_OP_IGNORE_HEAD, .gradients = "once: data -> data"),
    ONE(zeros_like, .doc = "zeros of this shape and type", .shapes_only = 1,
        .aliases = TNI_NAMES("_sparse_zeros_like"), ZERO),
    ONE(ones_like, .doc = "ones of this shape and type", .shapes_only = 1, ZERO),
    TNI_ROW("add_n", .doc = "sum of all inputs, added from first to last",
            .aliases = TNI_NAMES("ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n"),
            .attrs = TNI_ATTRS(add_n), INPUTS("arg*"), .flags = TN_OP_POINTWISE, .args = add_n_args,
            .gradient = add_n_grad),
    TNI_ROW("Cast", .doc = "the same numbers as another type; to integers toward zero",
            .aliases = TNI_NAMES("_npi_cast", "_npx_cast", "cast"), .attrs = cast_attrs, INPUTS("data"),
            .flags = TN_OP_POINTWISE, .types = "output:attr(dtype)", .gradients = CAST_GRAD),
    TNI_ROW(
        "amp_cast", .doc = "a cast put in by mixed precision; whole numbers keep their type",
        .attrs = cast_attrs,
        INPUTS("data"), .flags = TN_OP_POINTWISE, .dtype = amp_cast_dtype, .gradients = CAST_GRAD),
    TNI_ROW(
        "amp_multicast", .doc = "casts of mixed precision: arrays of one type out of several",
        .attrs = TNI_ATTRS(amp_multicast), .inputs = TNI_NAMES("data_*"), .outputs = TNI_NAMES("output*"),
        .args = multicast_args, .shape = multicast_shape, .dtype = multicast_dtype,
        .gradient = multicast_grad),
    TNI_ROW("_backward_cast", .doc = "dy in the type of the second input", .flags = TN_OP_BACKWARD,
            .shapes_only = 2, .shapes = "dy:(S..) like:(L..) -> output:dy", .types = "dy:D",
            .gradients = "composed: dy = _backward_cast(h, ~dy)"),
    TNI_ROW(
        "where", .doc = "x where the condition is not 0, else y", .aliases = TNI_NAMES("_sparse_where"),
        .inputs = TNI_NAMES("condition", "x", "y"), .outputs = TNI_NAMES("output"), .shape = rest_shape,
        .types = "condition:C",
        .gradients = "composed: x = _backward_where_x(condition, dy) ; y = _backward_where_y(condition, dy)"),
    BACK_WHERE("x"),
    BACK_WHERE("y"),
    NULL,
};
/* clang-format on */

/*
 * Operators of arrays of one shape: arithmetic and comparison of two, sums of many, copies, constants of a
 * shape, casts, a choice by condition. Rows of two operands take their gradients from binary.c.
 */
#include "tenon/plugin/op/elemwise.h"
#include "op/binary.h"

static const char *const pair_names[] = {"lhs", "rhs", NULL};
static const char *const data_names[] = {"data", NULL};
static const char *const output_names[] = {"output", NULL};

/* X(name, gradient, flags, doc) */
#define PAIRS(X)                                                                                             \
    X(elemwise_add, tni_binary_grad_elemwise, 0, "lhs + rhs")                                                \
    X(elemwise_sub, tni_binary_grad_elemwise, 0, "lhs - rhs")                                                \
    X(elemwise_mul, tni_binary_grad_elemwise, 0, "lhs * rhs")                                                \
    X(elemwise_div, tni_binary_grad_elemwise, 0, "lhs / rhs")                                                \
    X(_grad_add, tni_binary_grad_elemwise, 0, "sum of two gradients")                                        \
    X(_scatter_elemwise_div, tni_binary_grad_elemwise, 0, "lhs / rhs, where lhs is stored")                  \
    X(_mod, tni_binary_grad_elemwise, 0, "remainder with the sign of rhs")                                   \
    X(_power, tni_binary_grad_elemwise, 0, "lhs to the power of rhs")                                        \
    X(_maximum, tni_binary_grad_elemwise, 0, "the larger one; NaN if one is")                                \
    X(_minimum, tni_binary_grad_elemwise, 0, "the smaller one; NaN if one is")                               \
    X(_hypot, tni_binary_grad_elemwise, 0, "sqrt(lhs^2 + rhs^2)")                                            \
    X(_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs = rhs, else 0")                                        \
    X(_not_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs and rhs differ, else 0")                           \
    X(_greater, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs > rhs, else 0")                                      \
    X(_greater_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs >= rhs, else 0")                               \
    X(_lesser, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs < rhs, else 0")                                       \
    X(_lesser_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs <= rhs, else 0")                                \
    X(_logical_and, NULL, TN_OP_ZERO_GRADIENT, "1 where neither is 0, else 0")                               \
    X(_logical_or, NULL, TN_OP_ZERO_GRADIENT, "1 where one is not 0, else 0")                                \
    X(_logical_xor, NULL, TN_OP_ZERO_GRADIENT, "1 where exactly one is not 0, else 0")

#define ALIAS(name, ...) static const char *const alias_##name[] = {__VA_ARGS__, NULL};
/* clang-format off */
ALIAS(elemwise_add, "_Plus", "_add", "_plus", "_sparse_elemwise_add")
ALIAS(elemwise_sub, "_Minus", "_minus", "_sparse_elemwise_sub", "_sub")
ALIAS(elemwise_mul, "_Mul", "_mul", "_sparse_elemwise_mul")
ALIAS(elemwise_div, "_Div", "_div", "_sparse_elemwise_div")
ALIAS(_grad_add, NULL)
ALIAS(_scatter_elemwise_div, NULL)
ALIAS(_mod, "_Mod")
ALIAS(_power, "_Power")
ALIAS(_maximum, "_Maximum")
ALIAS(_minimum, "_Minimum")
ALIAS(_hypot, "_Hypot")
ALIAS(_equal, "_Equal")
ALIAS(_not_equal, "_Not_Equal")
ALIAS(_greater, "_Greater")
ALIAS(_greater_equal, "_Greater_Equal")
ALIAS(_lesser, "_Lesser")
ALIAS(_lesser_equal, "_Lesser_Equal")
ALIAS(_logical_and, "_Logical_And")
ALIAS(_logical_or, "_Logical_Or")
ALIAS(_logical_xor, "_Logical_Xor")
/* clang-format on */

#define PAIR(name_, gradient_, flags_, doc_)                                                                 \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_, .aliases = alias_##name_, .inputs = pair_names, .outputs = output_names, \
               .flags = TN_OP_POINTWISE | (flags_), .shape = tni_shape_same, .gradient = gradient_);
/* clang-format off */
PAIRS(PAIR)
/* clang-format on */

/* ---- copies and constants --------------------------------------------------------------------- */

static tn_status pass_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < g->in_count && tni_grad_arrives(g); i++)
        if (g->ops->needs(g, i))
            st = g->ops->set(g, i, tn_grad_of(g, 0));
    return st;
}

static tn_status make_loss_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    return tni_grad_set(g, &st, 0, tni_grad_op1(g, &st, "ones_like", tn_grad_input(g, 0)));
}

static tn_status MakeLoss_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 0)};

    return tn_grad_emit(g, 0, "_backward_MakeLoss", 1, in);
}

static const tn_attr_def MakeLoss_attrs[] = TN_ATTR_TABLE(MakeLoss);
static const tn_attr_def copyto_attrs[] = TN_ATTR_TABLE(copyto);

/* clang-format off */
ALIAS(_copy, "identity")
ALIAS(_copyto, "_npi_copyto")
ALIAS(BlockGrad, "_sparse_stop_gradient", "stop_gradient")
ALIAS(make_loss, "_sparse_make_loss")
ALIAS(zeros_like, "_sparse_zeros_like")
/* clang-format on */

#define ONE(name_, ...)                                                                                      \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .inputs = data_names, .outputs = output_names, .shape = tni_shape_same, __VA_ARGS__);
/* clang-format off */
ONE(_copy, .doc = "the same again", .aliases = alias__copy, .flags = TN_OP_POINTWISE, .gradient = pass_grad)
ONE(BlockGrad, .doc = "the same again; no gradient goes back", .aliases = alias_BlockGrad,
    .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT)
ONE(make_loss, .doc = "the same again; its gradient is 1", .aliases = alias_make_loss,
    .flags = TN_OP_POINTWISE | TN_OP_IGNORE_HEAD, .gradient = make_loss_grad)
ONE(MakeLoss, .doc = "the same again; its gradient is grad_scale, normalised", .attrs = MakeLoss_attrs,
    .flags = TN_OP_POINTWISE | TN_OP_IGNORE_HEAD, .gradient = MakeLoss_grad)
ONE(_backward_MakeLoss, .doc = "gradient of MakeLoss", .attrs = MakeLoss_attrs, .flags = TN_OP_BACKWARD)
ONE(zeros_like, .doc = "zeros of this shape and type", .aliases = alias_zeros_like,
    .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT)
ONE(ones_like, .doc = "ones of this shape and type", .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT)
/* clang-format on */

/* No kernel: the core copies. */
static const tn_op op__copyto = {.struct_size = TN_END(tn_op, gradient),
                                 .version = 1,
                                 .exec = TN_EXEC_COPY,
                                 .name = "_copyto",
                                 .doc = "the same on another device",
                                 .aliases = alias__copyto,
                                 .attrs = copyto_attrs,
                                 .inputs = data_names,
                                 .outputs = output_names,
                                 .shape = tni_shape_same,
                                 .gradient = pass_grad};

/* ---- add_n ------------------------------------------------------------------------------------ */

static const tn_attr_def add_n_attrs[] = TN_ATTR_TABLE(add_n);
static const char *const add_n_inputs[] = {"arg*", NULL};

/* clang-format off */
ALIAS(add_n, "ElementWiseSum", "_sparse_ElementWiseSum", "_sparse_add_n")
/* clang-format on */

static tn_status add_n_args(tn_infer *i)
{
    if (i->in_count == 0)
        return tn_fail(i->err, TN_E_ARG, "at least one input is needed");
    i->out_count = 1;
    return TN_OK;
}

static const tn_op op_add_n =
    TNI_OP("add_n", .doc = "sum of all inputs, added from first to last", .aliases = alias_add_n,
           .attrs = add_n_attrs, .inputs = add_n_inputs, .outputs = output_names, .flags = TN_OP_POINTWISE,
           .args = add_n_args, .shape = tni_shape_same, .gradient = pass_grad);

/* ---- casts ------------------------------------------------------------------------------------ */

static const tn_attr_def cast_attrs[] = TN_ATTR_TABLE(Cast);
static const char *const back_cast_names[] = {"dy", "like", NULL};

static tn_status cast_dtype(tn_infer *i)
{
    int64_t dtype = tni_attr_int(i->attrs, TN_Cast_dtype);

    if (dtype < 0)
        return tn_fail(i->err, TN_E_ATTR, "attribute dtype is None, expected a data type");
    return tni_dtype_assign(i, &i->out_dtype[0], (int32_t)dtype);
}

/* Whole numbers, such as indices and labels, stay what they are. */
static tn_status amp_cast_dtype(tn_infer *i)
{
    const int32_t from = i->in_dtype[0];

    if (from < 0)
        return TN_OK;
    return tni_dtype_is_float(from) ? cast_dtype(i) : tni_dtype_assign(i, &i->out_dtype[0], from);
}

/* Only the type of the second input is read. */
static tn_status cast_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_backward_cast", 2, in) : TN_OK;
}

static tn_status back_cast_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status back_cast_dtype(tn_infer *i)
{
    return tni_dtype_unify(i, &i->out_dtype[0], &i->in_dtype[1]);
}

static tn_status back_cast_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_backward_cast", 2, in) : TN_OK;
}

/* clang-format off */
ALIAS(Cast, "_npi_cast", "_npx_cast", "cast")
/* clang-format on */

static const tn_op op_Cast =
    TNI_OP("Cast", .doc = "the same numbers as another type; to integers toward zero", .aliases = alias_Cast,
           .attrs = cast_attrs, .inputs = data_names, .outputs = output_names, .flags = TN_OP_POINTWISE,
           .shape = tni_shape_same, .dtype = cast_dtype, .gradient = cast_grad);
static const tn_op op_amp_cast =
    TNI_OP("amp_cast", .doc = "a cast put in by mixed precision; whole numbers keep their type",
           .attrs = cast_attrs, .inputs = data_names, .outputs = output_names, .flags = TN_OP_POINTWISE,
           .shape = tni_shape_same, .dtype = amp_cast_dtype, .gradient = cast_grad);
static const tn_op op_back_cast =
    TNI_OP("_backward_cast", .doc = "dy in the type of the second input", .inputs = back_cast_names,
           .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = back_cast_shape,
           .dtype = back_cast_dtype, .gradient = back_cast_grad);

/* ---- where ------------------------------------------------------------------------------------ */

static const char *const where_names[] = {"condition", "x", "y", NULL};
static const char *const back_where_names[] = {"condition", "dy", NULL};

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

static tn_status rest_dtype(tn_infer *i)
{
    tn_infer rest = *i;

    rest.in_dtype++;
    rest.in_count--;
    return tni_dtype_same(&rest);
}

static tn_status where_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 0), tn_grad_of(g, 0)};
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if (g->ops->needs(g, 1))
        st = tn_grad_emit(g, 1, "_backward_where_x", 2, in);
    return !st && g->ops->needs(g, 2) ? tn_grad_emit(g, 2, "_backward_where_y", 2, in) : st;
}

static tn_status back_where_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 0), tn_grad_of(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 1, g->op->name, 2, in) : TN_OK;
}

/* clang-format off */
ALIAS(where, "_sparse_where")
/* clang-format on */

static const tn_op op_where = TNI_OP("where", .doc = "x where the condition is not 0, else y",
                                     .aliases = alias_where, .inputs = where_names, .outputs = output_names,
                                     .shape = rest_shape, .dtype = rest_dtype, .gradient = where_grad);
#define BACK_WHERE(side)                                                                                     \
    TNI_OP("_backward_where_" side, .doc = "dy where where took " side ", else 0",                           \
           .inputs = back_where_names, .outputs = output_names, .flags = TN_OP_BACKWARD,                     \
           .shape = rest_shape, .dtype = rest_dtype, .gradient = back_where_grad)
static const tn_op op_back_where_x = BACK_WHERE("x");
static const tn_op op_back_where_y = BACK_WHERE("y");

/* clang-format off */
const tn_op *const tni_family_elemwise[] = {
#define POINTER(name, gradient, flags, doc) &op_##name,
    PAIRS(POINTER) &op__copy, &op__copyto, &op_BlockGrad, &op_make_loss, &op_MakeLoss, &op__backward_MakeLoss,
    &op_zeros_like, &op_ones_like, &op_add_n, &op_Cast, &op_amp_cast, &op_back_cast, &op_where,
    &op_back_where_x, &op_back_where_y, NULL,
};
/* clang-format on */

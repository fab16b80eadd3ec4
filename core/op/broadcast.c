/*
 * Operators of two arrays whose dimensions of size 1 stretch to the other's, as NumPy has it, and operators
 * that stretch one array. The gradient of a stretched operand is summed back to its shape (_sum_like).
 */
#include "tenon/plugin/op/broadcast.h"
#include "op/binary.h"
#include "op/cost.h"

static const char *const pair_names[] = {"lhs", "rhs", NULL};
static const char *const data_names[] = {"data", NULL};
static const char *const output_names[] = {"output", NULL};

/* ---- two operands ----------------------------------------------------------------------------- */

/* X(name, gradient, flags, doc) */
#define PAIRS(X)                                                                                             \
    X(broadcast_add, tni_binary_grad_broadcast, 0, "lhs + rhs")                                              \
    X(broadcast_sub, tni_binary_grad_broadcast, 0, "lhs - rhs")                                              \
    X(broadcast_mul, tni_binary_grad_broadcast, 0, "lhs * rhs")                                              \
    X(broadcast_div, tni_binary_grad_broadcast, 0, "lhs / rhs")                                              \
    X(broadcast_mod, tni_binary_grad_broadcast, 0, "remainder with the sign of rhs")                         \
    X(broadcast_power, tni_binary_grad_broadcast, 0, "lhs to the power of rhs")                              \
    X(broadcast_maximum, tni_binary_grad_broadcast, 0, "the larger one; NaN if one is")                      \
    X(broadcast_minimum, tni_binary_grad_broadcast, 0, "the smaller one; NaN if one is")                     \
    X(broadcast_hypot, tni_binary_grad_broadcast, 0, "sqrt(lhs^2 + rhs^2)")                                  \
    X(broadcast_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs = rhs, else 0")                               \
    X(broadcast_not_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs and rhs differ, else 0")                  \
    X(broadcast_greater, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs > rhs, else 0")                             \
    X(broadcast_greater_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs >= rhs, else 0")                      \
    X(broadcast_lesser, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs < rhs, else 0")                              \
    X(broadcast_lesser_equal, NULL, TN_OP_ZERO_GRADIENT, "1 where lhs <= rhs, else 0")                       \
    X(broadcast_logical_and, NULL, TN_OP_ZERO_GRADIENT, "1 where neither is 0, else 0")                      \
    X(broadcast_logical_or, NULL, TN_OP_ZERO_GRADIENT, "1 where one is not 0, else 0")                       \
    X(broadcast_logical_xor, NULL, TN_OP_ZERO_GRADIENT, "1 where exactly one is not 0, else 0")

#define ALIAS(name, ...) static const char *const alias_##name[] = {__VA_ARGS__, NULL};
/* clang-format off */
ALIAS(broadcast_add, "_sparse_broadcast_add", "_sparse_broadcast_plus", "broadcast_plus")
ALIAS(broadcast_sub, "_sparse_broadcast_minus", "_sparse_broadcast_sub", "broadcast_minus")
ALIAS(broadcast_mul, "_sparse_broadcast_mul")
ALIAS(broadcast_div, "_sparse_broadcast_div")
ALIAS(broadcast_mod, NULL)
ALIAS(broadcast_power, NULL)
ALIAS(broadcast_maximum, "_npi_maximum")
ALIAS(broadcast_minimum, "_npi_minimum")
ALIAS(broadcast_hypot, NULL)
ALIAS(broadcast_equal, NULL)
ALIAS(broadcast_not_equal, NULL)
ALIAS(broadcast_greater, NULL)
ALIAS(broadcast_greater_equal, NULL)
ALIAS(broadcast_lesser, NULL)
ALIAS(broadcast_lesser_equal, NULL)
ALIAS(broadcast_logical_and, NULL)
ALIAS(broadcast_logical_or, NULL)
ALIAS(broadcast_logical_xor, NULL)
/* clang-format on */

#define PAIR(name_, gradient_, flags_, doc_)                                                                 \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_ "; dimensions of size 1 stretch", .aliases = alias_##name_,               \
               .inputs = pair_names, .outputs = output_names, .flags = flags_, .shape = tni_shape_pair,      \
               .gradient = gradient_, .cost = tni_cost_each_output);
/* clang-format off */
PAIRS(PAIR)
/* clang-format on */

/* ---- one stretched ---------------------------------------------------------------------------- */

static const tn_attr_def to_attrs[] = TN_ATTR_TABLE(broadcast_to);
static const tn_attr_def axis_attrs[] = TN_ATTR_TABLE(broadcast_axis);
static const tn_attr_def like_attrs[] = TN_ATTR_TABLE(broadcast_like);

static tn_status dim_stretch(tn_infer *i, tn_shape *out, int32_t axis, int64_t size)
{
    if (out->dim[axis] >= 0 && out->dim[axis] != 1 && size >= 0 && out->dim[axis] != size)
        return tni_infer_fail(i, TN_E_SHAPE, "dimension %d has size %lld, it cannot be stretched to %lld",
                              axis, (long long)out->dim[axis], (long long)size);
    out->dim[axis] = size;
    return TN_OK;
}

static tn_status to_shape(tn_infer *i)
{
    const tn_tuple *shape = tni_attr_tuple(i->attrs, TN_broadcast_to_shape);
    tn_shape out = *i->in_shape[0];
    tn_status st;

    if (out.ndim < 0)
        return TN_OK;
    if (tni_tuple_count(shape) != out.ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "shape has %lld items, but the input has %d dimensions",
                              (long long)tni_tuple_count(shape), out.ndim);
    for (int32_t d = 0; d < out.ndim; d++)
        if (shape->item[d] != 0 && (st = dim_stretch(i, &out, d, shape->item[d])))
            return st;
    return tn_shape_unify(i, i->out_shape[0], &out);
}

static tn_status axis_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_broadcast_axis_axis),
                   *sizes = tni_attr_tuple(i->attrs, TN_broadcast_axis_size);
    tn_shape out = *i->in_shape[0];
    tn_status st;

    if (out.ndim < 0)
        return TN_OK;
    if (tni_tuple_count(axes) != tni_tuple_count(sizes))
        return tni_infer_fail(i, TN_E_ATTR, "axis has %lld items, size has %lld",
                              (long long)tni_tuple_count(axes), (long long)tni_tuple_count(sizes));
    for (int64_t k = 0; k < tni_tuple_count(axes); k++) {
        int32_t axis = 0;

        if ((st = tni_axis(i, axes->item[k], out.ndim, &axis)))
            return st;
        if (out.dim[axis] >= 0 && out.dim[axis] != 1)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d has size %lld, only size 1 stretches", axis,
                                  (long long)out.dim[axis]);
        out.dim[axis] = sizes->item[k];
    }
    return tn_shape_unify(i, i->out_shape[0], &out);
}

static tn_status like_shape(tn_infer *i)
{
    const tn_tuple *left = tni_attr_tuple(i->attrs, TN_broadcast_like_lhs_axes),
                   *right = tni_attr_tuple(i->attrs, TN_broadcast_like_rhs_axes);
    tn_shape out = *i->in_shape[0];
    const tn_shape *like = i->in_shape[1];
    tn_status st;

    if (out.ndim < 0 || like->ndim < 0)
        return TN_OK;
    if (tni_tuple_count(left) != tni_tuple_count(right))
        return tn_fail(i->err, TN_E_ATTR, "lhs_axes and rhs_axes must have as many items");
    if (!left && out.ndim != like->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "lhs has %d dimensions, rhs %d", out.ndim, like->ndim);
    for (int64_t k = 0; k < (left ? left->count : out.ndim); k++) {
        int32_t l = (int32_t)k, r = (int32_t)k;

        if (left && ((st = tni_axis(i, left->item[k], out.ndim, &l)) ||
                     (st = tni_axis(i, right->item[k], like->ndim, &r))))
            return st;
        if ((st = dim_stretch(i, &out, l, like->dim[r])))
            return st;
    }
    return tn_shape_unify(i, i->out_shape[0], &out);
}

static tn_status stretch_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_sum_like", 2, in) : TN_OK;
}

/* clang-format off */
ALIAS(broadcast_axis, "broadcast_axes")
/* clang-format on */

static const tn_op op_broadcast_to =
    TNI_OP("broadcast_to", .doc = "stretches dimensions of size 1 to a given shape", .attrs = to_attrs,
           .inputs = data_names, .outputs = output_names, .shape = to_shape, .gradient = stretch_grad);
static const tn_op op_broadcast_axis =
    TNI_OP("broadcast_axis", .doc = "stretches given dimensions of size 1", .aliases = alias_broadcast_axis,
           .attrs = axis_attrs, .inputs = data_names, .outputs = output_names, .shape = axis_shape,
           .gradient = stretch_grad);
static const tn_op op_broadcast_like =
    TNI_OP("broadcast_like", .doc = "stretches lhs to the shape of rhs", .attrs = like_attrs,
           .inputs = pair_names, .outputs = output_names, .shape = like_shape, .gradient = stretch_grad);

/* ---- back again ------------------------------------------------------------------------------- */

static const char *const sum_like_names[] = {"data", "like", NULL};

/* Both have the type of `like`, which may be narrower than data's, or wider. */
static tn_status like_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->out_dtype[0], &i->in_dtype[1]);

    return st ? st : tni_dtype_assign(i, &i->in_dtype[0], i->in_dtype[0] < 0 ? i->in_dtype[1] : -1);
}

/* The output has the shape of `like`, which must broadcast to data's; its values are not read. */
static tn_status sum_like_shape(tn_infer *i)
{
    tn_shape wide;
    tn_status st;

    if ((st = tn_shape_unify(i, i->out_shape[0], i->in_shape[1])) || i->in_shape[0]->ndim < 0 ||
        i->in_shape[1]->ndim < 0)
        return st;
    if ((st = tni_shape_broadcast(i, i->in_shape[0], i->in_shape[1], &wide)))
        return st;
    return tn_shape_unify(i, i->in_shape[0], &wide);
}

static tn_status sum_like_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    tn_status st = TN_OK;

    return tni_grad_arrives(g) ? tni_grad_set(g, &st, 0, tni_grad_op2(g, &st, "_stretch_like", in[0], in[1]))
                               : TN_OK;
}

/* As NumPy stretches: `data` may have fewer dimensions. */
static tn_status stretch_like_shape(tn_infer *i)
{
    tn_shape wide;
    tn_status st;

    if ((st = tn_shape_unify(i, i->out_shape[0], i->in_shape[1])) || i->in_shape[0]->ndim < 0 ||
        i->in_shape[1]->ndim < 0)
        return st;
    if ((st = tni_shape_broadcast(i, i->in_shape[0], i->in_shape[1], &wide)))
        return st;
    return tn_shape_unify(i, i->in_shape[1], &wide);
}

static const tn_op op_sum_like =
    TNI_OP("_sum_like", .doc = "sum over what stretching repeated", .inputs = sum_like_names,
           .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = sum_like_shape, .dtype = like_dtype,
           .gradient = sum_like_grad);
static const tn_op op_stretch_like =
    TNI_OP("_stretch_like", .doc = "stretches data to the shape of like", .inputs = sum_like_names,
           .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = stretch_like_shape, .dtype = like_dtype,
           .gradient = stretch_grad);

/* clang-format off */
const tn_op *const tni_family_broadcast[] = {
#define POINTER(name, gradient, flags, doc) &op_##name,
    PAIRS(POINTER) &op_broadcast_to, &op_broadcast_axis, &op_broadcast_like, &op_sum_like,
    &op_stretch_like, NULL,
};
/* clang-format on */

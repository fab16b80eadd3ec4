/*
 * Operators of two arrays whose dimensions of size 1 stretch to the other's, as NumPy has it, and operators
 * that stretch one array. The gradient of a stretched operand is summed back to its shape (_sum_like).
 */
#include "tenon/plugin/op/broadcast.h"
#include "op/binary.h"
#include "op/cost.h"

#define DEFINE(name_, doc_, ...)                                                                             \
    TNI_ROW(#name_, .doc = doc_ "; dimensions of size 1 stretch", .inputs = TNI_NAMES("lhs", "rhs"),         \
            .outputs = TNI_NAMES("output"), .shape = tni_shape_pair, .cost = tni_cost_each_output,           \
            __VA_ARGS__)
#define PAIR(name, gradient, doc, ...)                                                                       \
    DEFINE(name, doc, .aliases = TNI_NAMES(__VA_ARGS__),                                                     \
           .gradients = "broadcast: " TNI_GRAD_##gradient("output"))
#define QUESTION(name, doc) DEFINE(name, doc, .flags = TN_OP_ZERO_GRADIENT)

/* ---- one stretched ---------------------------------------------------------------------------- */

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

#define STRETCH_GRAD(input) "composed: " input " = _sum_like(dy, ~" input ")"

/* ---- back again ------------------------------------------------------------------------------- */

/* The output has the shape of `like`, whose values are not read; one of both broadcasts to the other, the
 * `wide` one. As NumPy stretches: the other may have fewer dimensions. */
static tn_status back_shape(tn_infer *i, uint32_t wide)
{
    tn_shape both;
    tn_status st;

    if ((st = tn_shape_unify(i, i->out_shape[0], i->in_shape[1])) || i->in_shape[0]->ndim < 0 ||
        i->in_shape[1]->ndim < 0 || (st = tni_shape_broadcast(i, i->in_shape[0], i->in_shape[1], &both)))
        return st;
    return tn_shape_unify(i, i->in_shape[wide], &both);
}

static tn_status sum_like_shape(tn_infer *i)
{
    return back_shape(i, 0);
}

static tn_status stretch_like_shape(tn_infer *i)
{
    return back_shape(i, 1);
}

/* clang-format off */
const tn_op *const tni_family_broadcast[] = {
    /* PAIR(name, gradient, doc, aliases) */
    PAIR(broadcast_add, add, "lhs + rhs", "_sparse_broadcast_add", "_sparse_broadcast_plus",
         "broadcast_plus"),
    PAIR(broadcast_sub, sub, "lhs - rhs", "_sparse_broadcast_minus", "_sparse_broadcast_sub",
         "broadcast_minus"),
    PAIR(broadcast_mul, mul, "lhs * rhs", "_sparse_broadcast_mul"),
    PAIR(broadcast_div, div, "lhs / rhs", "_sparse_broadcast_div"),
    PAIR(broadcast_mod, mod, "remainder with the sign of rhs", NULL),
    PAIR(broadcast_power, power, "lhs to the power of rhs", NULL),
    PAIR(broadcast_maximum, maximum, "the larger one; NaN if one is", "_npi_maximum"),
    PAIR(broadcast_minimum, minimum, "the smaller one; NaN if one is", "_npi_minimum"),
    PAIR(broadcast_hypot, hypot, "sqrt(lhs^2 + rhs^2)", NULL),
    /* QUESTION(name, doc) */
    QUESTION(broadcast_equal, "1 where lhs = rhs, else 0"),
    QUESTION(broadcast_not_equal, "1 where lhs and rhs differ, else 0"),
    QUESTION(broadcast_greater, "1 where lhs > rhs, else 0"),
    QUESTION(broadcast_greater_equal, "1 where lhs >= rhs, else 0"),
    QUESTION(broadcast_lesser, "1 where lhs < rhs, else 0"),
    QUESTION(broadcast_lesser_equal, "1 where lhs <= rhs, else 0"),
    QUESTION(broadcast_logical_and, "1 where neither is 0, else 0"),
    QUESTION(broadcast_logical_or, "1 where one is not 0, else 0"),
    QUESTION(broadcast_logical_xor, "1 where exactly one is not 0, else 0"),
    TNI_ROW("broadcast_to", .doc = "stretches dimensions of size 1 to a given shape",
            .attrs = TNI_ATTRS(broadcast_to), .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
            .shape = to_shape, .gradients = STRETCH_GRAD("data")),
    TNI_ROW("broadcast_axis", .doc = "stretches given dimensions of size 1",
            .aliases = TNI_NAMES("broadcast_axes"), .attrs = TNI_ATTRS(broadcast_axis),
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = axis_shape,
            .gradients = STRETCH_GRAD("data")),
    TNI_ROW("broadcast_like", .doc = "stretches lhs to the shape of rhs", .attrs = TNI_ATTRS(broadcast_like),
            .inputs = TNI_NAMES("lhs", "rhs"), .outputs = TNI_NAMES("output"), .shape = like_shape,
            .gradients = STRETCH_GRAD("lhs")),
    TNI_ROW("_sum_like", .doc = "sum over what stretching repeated", .inputs = TNI_NAMES("data", "like"),
            .shapes_only = 2, .outputs = TNI_NAMES("output"), .flags = TN_OP_BACKWARD,
            .shape = sum_like_shape,
            .types = "data:or(T)", .gradients = "composed: data = _stretch_like(dy, ~data)"),
    TNI_ROW("_stretch_like", .doc = "stretches data to the shape of like",
            .inputs = TNI_NAMES("data", "like"),
            .shapes_only = 2, .outputs = TNI_NAMES("output"), .flags = TN_OP_BACKWARD,
            .shape = stretch_like_shape, .types = "data:or(T)", .gradients = STRETCH_GRAD("data")),
    NULL,
};
/* clang-format on */

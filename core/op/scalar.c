/*
 * Operators of an array and a number. The number is a run-time attribute: gradients never read it, they hand
 * it on to the nodes they make, so one compiled backward serves all its values.
 */
#include "tenon/plugin/op/scalar.h"
#include "op/infer_help.h"

static const tn_attr_def scalar_attrs[] = TN_ATTR_TABLE(scalar);
static const char *const data_names[] = {"data", NULL};
static const char *const back_names[] = {"dy", "data", NULL};
static const char *const output_names[] = {"output", NULL};

static tn_edge dy_times(tn_grad *g, tn_status *st, tn_edge factor)
{
    return tni_grad_op2(g, st, "elemwise_mul", tn_grad_of(g, 0), factor);
}

static tn_status pass_grad(tn_grad *g)
{
    return tni_grad_arrives(g) ? g->ops->set(g, 0, tn_grad_of(g, 0)) : TN_OK;
}

static tn_status rminus_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    return tni_grad_arrives(g) ? tni_grad_set(g, &st, 0, tni_grad_op1(g, &st, "negative", tn_grad_of(g, 0)))
                               : TN_OK;
}

/* x s and x / s: the same operator on what arrives. */
static tn_status linear_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    return tni_grad_arrives(g)
               ? tni_grad_set(g, &st, 0, tni_grad_inherit(g, &st, g->op->name, tn_grad_of(g, 0)))
               : TN_OK;
}

/* y = s / x: -dy y / x */
static tn_status rdiv_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op2(g, &st, "elemwise_div", dy_times(g, &st, tn_grad_output(g, 0)), tn_grad_input(g, 0));
    return tni_grad_set(g, &st, 0, tni_grad_op1(g, &st, "negative", e));
}

/* s mod x = s - x floor(s / x) */
static tn_status rmod_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op1(g, &st, "floor", tni_grad_inherit(g, &st, "_rdiv_scalar", tn_grad_input(g, 0)));
    return tni_grad_set(g, &st, 0, tni_grad_op1(g, &st, "negative", dy_times(g, &st, e)));
}

static tn_status power_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_backward_power_scalar", 2, in) : TN_OK;
}

/* Of dy s x^(s-1): to dy the same with what arrives, to x that times dy s (s-1) x^(s-2). */
static tn_status back_power_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 1)};
    tn_status st;
    tn_edge s, less, power;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if ((st = tn_grad_emit(g, 0, "_backward_power_scalar", 2, in)) || !g->ops->needs(g, 1))
        return st;
    s = tni_grad_number(g, &st, tn_grad_input(g, 1));
    less = tni_grad_scalar(g, &st, "_plus_scalar", s, "-1");
    power =
        tni_grad_op2(g, &st, "_power", tn_grad_input(g, 1), tni_grad_scalar(g, &st, "_plus_scalar", s, "-2"));
    power = tni_grad_op2(g, &st, "elemwise_mul", tni_grad_op2(g, &st, "elemwise_mul", s, less), power);
    power = tni_grad_op2(g, &st, "elemwise_mul", tn_grad_input(g, 0), power);
    return tni_grad_set(g, &st, 1, dy_times(g, &st, power));
}

/* y = s^x: dy y ln s */
static tn_status rpower_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op1(g, &st, "log", tni_grad_number(g, &st, tn_grad_input(g, 0)));
    return tni_grad_set(g, &st, 0,
                        dy_times(g, &st, tni_grad_op2(g, &st, "elemwise_mul", tn_grad_output(g, 0), e)));
}

static tn_status chosen_grad(tn_grad *g, const char *where)
{
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    return tni_grad_set(g, &st, 0, dy_times(g, &st, tni_grad_inherit(g, &st, where, tn_grad_input(g, 0))));
}

static tn_status maximum_grad(tn_grad *g)
{
    return chosen_grad(g, "_greater_equal_scalar");
}

static tn_status minimum_grad(tn_grad *g)
{
    return chosen_grad(g, "_lesser_equal_scalar");
}

static tn_status hypot_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge e;

    if (!tni_grad_arrives(g))
        return TN_OK;
    e = tni_grad_op2(g, &st, "elemwise_div", tn_grad_input(g, 0), tn_grad_output(g, 0));
    return tni_grad_set(g, &st, 0, dy_times(g, &st, e));
}

/* X(name, gradient, flags, doc) */
#define OPS(X)                                                                                               \
    X(_plus_scalar, pass_grad, 0, "x + scalar")                                                              \
    X(_minus_scalar, pass_grad, 0, "x - scalar")                                                             \
    X(_rminus_scalar, rminus_grad, 0, "scalar - x")                                                          \
    X(_mul_scalar, linear_grad, 0, "x * scalar")                                                             \
    X(_div_scalar, linear_grad, 0, "x / scalar")                                                             \
    X(_rdiv_scalar, rdiv_grad, 0, "scalar / x")                                                              \
    X(_mod_scalar, pass_grad, 0, "remainder of x / scalar, with the sign of scalar")                         \
    X(_rmod_scalar, rmod_grad, 0, "remainder of scalar / x, with the sign of x")                             \
    X(_power_scalar, power_grad, 0, "x to the power of scalar")                                              \
    X(_rpower_scalar, rpower_grad, 0, "scalar to the power of x")                                            \
    X(_maximum_scalar, maximum_grad, 0, "the larger of x and scalar")                                        \
    X(_minimum_scalar, minimum_grad, 0, "the smaller of x and scalar")                                       \
    X(_hypot_scalar, hypot_grad, 0, "sqrt(x^2 + scalar^2)")                                                  \
    X(_equal_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x = scalar, else 0")                                \
    X(_not_equal_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x differs from scalar, else 0")                 \
    X(_greater_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x > scalar, else 0")                              \
    X(_greater_equal_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x >= scalar, else 0")                       \
    X(_lesser_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x < scalar, else 0")                               \
    X(_lesser_equal_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x <= scalar, else 0")                        \
    X(_logical_and_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where neither x nor scalar is 0, else 0")           \
    X(_logical_or_scalar, NULL, TN_OP_ZERO_GRADIENT, "1 where x or scalar is not 0, else 0")                 \
    X(_logical_xor_scalar, NULL, TN_OP_ZERO_GRADIENT,                                                        \
      "1 where exactly one of x and scalar is not 0, else 0")                                                \
    X(_scatter_plus_scalar, pass_grad, 0, "x + scalar, where x is stored")                                   \
    X(_scatter_minus_scalar, pass_grad, 0, "x - scalar, where x is stored")

#define ALIAS(name, ...) static const char *const alias_##name[] = {__VA_ARGS__, NULL};
/* clang-format off */
ALIAS(_plus_scalar, "_PlusScalar")
ALIAS(_minus_scalar, "_MinusScalar")
ALIAS(_rminus_scalar, "_RMinusScalar")
ALIAS(_mul_scalar, "_MulScalar")
ALIAS(_div_scalar, "_DivScalar")
ALIAS(_rdiv_scalar, "_RDivScalar")
ALIAS(_mod_scalar, "_ModScalar")
ALIAS(_rmod_scalar, "_RModScalar")
ALIAS(_power_scalar, "_PowerScalar")
ALIAS(_rpower_scalar, "_RPowerScalar")
ALIAS(_maximum_scalar, "_MaximumScalar", "_npi_maximum_scalar")
ALIAS(_minimum_scalar, "_MinimumScalar", "_npi_minimum_scalar")
ALIAS(_hypot_scalar, "_HypotScalar", "_npi_hypot_scalar")
ALIAS(_equal_scalar, "_EqualScalar")
ALIAS(_not_equal_scalar, "_NotEqualScalar")
ALIAS(_greater_scalar, "_GreaterScalar")
ALIAS(_greater_equal_scalar, "_GreaterEqualScalar")
ALIAS(_lesser_scalar, "_LesserScalar")
ALIAS(_lesser_equal_scalar, "_LesserEqualScalar")
ALIAS(_logical_and_scalar, "_LogicalAndScalar")
ALIAS(_logical_or_scalar, "_LogicalOrScalar")
ALIAS(_logical_xor_scalar, "_LogicalXorScalar")
ALIAS(_scatter_plus_scalar, NULL)
ALIAS(_scatter_minus_scalar, NULL)
/* clang-format on */

#define DEFINE(name_, gradient_, flags_, doc_)                                                               \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_, .aliases = alias_##name_, .attrs = scalar_attrs, .inputs = data_names,   \
               .outputs = output_names, .flags = TN_OP_POINTWISE | (flags_), .shape = tni_shape_same,        \
               .gradient = gradient_);
/* clang-format off */
OPS(DEFINE)
/* clang-format on */

static const tn_op op_back_power =
    TNI_OP("_backward_power_scalar", .doc = "dy scalar x^(scalar - 1)", .attrs = scalar_attrs,
           .inputs = back_names, .outputs = output_names, .flags = TN_OP_POINTWISE | TN_OP_BACKWARD,
           .shape = tni_shape_same, .gradient = back_power_grad);

/* clang-format off */
const tn_op *const tni_family_scalar[] = {
#define POINTER(name, gradient, flags, doc) &op_##name,
    OPS(POINTER) &op_back_power, NULL,
};
/* clang-format on */

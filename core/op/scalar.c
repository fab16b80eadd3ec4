/*
 * Operators of an array and a number. The number is a run-time attribute: gradients never read it, they hand
 * it on to the nodes they make, so one compiled backward serves all its values.
 */
#include "tenon/plugin/op/scalar.h"
#include "op/binary.h"

const tn_attr_def tni_scalar_attrs[] = TN_ATTR_TABLE(scalar);

/* dy s x^(s-1), whose factor has the derivative s (s-1) x^(s-2). */
#define NUMBER "ones_like(~data)*scalar"
#define POWER_GRAD "pointwise: dy data -> data ; " NUMBER "*(" NUMBER "-1)*data^(" NUMBER "-2)"

#define SCALAR(name_, doc_, ...)                                                                             \
    TNI_ROW(#name_, .doc = doc_, .attrs = tni_scalar_attrs, .inputs = TNI_NAMES("data"),                     \
            .outputs = TNI_NAMES("output"), .shape = tni_shape_same, __VA_ARGS__)
#define OP(name, gradient, doc, ...)                                                                         \
    SCALAR(name, doc, .aliases = TNI_NAMES(__VA_ARGS__), .flags = TN_OP_POINTWISE, .gradients = gradient)
#define QUESTION(name, doc, alias)                                                                           \
    SCALAR(name, doc, .aliases = TNI_NAMES(alias), .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT)
/* clang-format off */
const tn_op *const tni_family_scalar[] = {
    /* OP(name, gradient, doc, aliases) */
    OP(_plus_scalar, "composed: data = dy", "x + scalar", "_PlusScalar"),
    OP(_minus_scalar, "composed: data = dy", "x - scalar", "_MinusScalar"),
    OP(_rminus_scalar, "composed: data = -dy", "scalar - x", "_RMinusScalar"),
    OP(_mul_scalar, "composed: data = dy*scalar", "x * scalar", "_MulScalar"),
    OP(_div_scalar, "composed: data = dy/scalar", "x / scalar", "_DivScalar"),
    OP(_rdiv_scalar, "composed: data = -(dy*output/data)", "scalar / x", "_RDivScalar"),
    OP(_mod_scalar, "composed: data = dy", "remainder of x / scalar, with the sign of scalar", "_ModScalar"),
    OP(_rmod_scalar, "composed: data = -(dy*floor(scalar/data))",
       "remainder of scalar / x, with the sign of x", "_RModScalar"),
    OP(_power_scalar, POWER_GRAD, "x to the power of scalar", "_PowerScalar"),
    OP(_rpower_scalar, "composed: data = dy*(output*log(ones_like(~data)*scalar))",
       "scalar to the power of x", "_RPowerScalar"),
    OP(_maximum_scalar, "composed: data = dy*(data>=scalar)", "the larger of x and scalar", "_MaximumScalar",
       "_npi_maximum_scalar"),
    OP(_minimum_scalar, "composed: data = dy*(data<=scalar)", "the smaller of x and scalar",
       "_MinimumScalar", "_npi_minimum_scalar"),
    OP(_hypot_scalar, "composed: data = dy*(data/output)", "sqrt(x^2 + scalar^2)", "_HypotScalar",
       "_npi_hypot_scalar"),
    OP(_scatter_plus_scalar, "composed: data = dy", "x + scalar, where x is stored", NULL),
    OP(_scatter_minus_scalar, "composed: data = dy", "x - scalar, where x is stored", NULL),
    /* QUESTION(name, doc, alias) */
    QUESTION(_equal_scalar, "1 where x = scalar, else 0", "_EqualScalar"),
    QUESTION(_not_equal_scalar, "1 where x differs from scalar, else 0", "_NotEqualScalar"),
    QUESTION(_greater_scalar, "1 where x > scalar, else 0", "_GreaterScalar"),
    QUESTION(_greater_equal_scalar, "1 where x >= scalar, else 0", "_GreaterEqualScalar"),
    QUESTION(_lesser_scalar, "1 where x < scalar, else 0", "_LesserScalar"),
    QUESTION(_lesser_equal_scalar, "1 where x <= scalar, else 0", "_LesserEqualScalar"),
    QUESTION(_logical_and_scalar, "1 where neither x nor scalar is 0, else 0", "_LogicalAndScalar"),
    QUESTION(_logical_or_scalar, "1 where one of x and scalar is not 0, else 0", "_LogicalOrScalar"),
    QUESTION(_logical_xor_scalar, "1 where exactly one of x and scalar is not 0, else 0",
             "_LogicalXorScalar"),
    NULL,
};
/* clang-format on */

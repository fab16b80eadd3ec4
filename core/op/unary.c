/*
 * Functions of one array, element by element. Their gradients are of class `pointwise`: dy times a function
 * of the input or of the output, with the derivative of that function behind the semicolon, written with
 * operators, so that higher derivatives follow.
 */
#include "tenon/plugin/op/unary.h"
#include "op/infer_help.h"

#define SPARSE(name) "_sparse_" #name

static const tn_attr_def clip_attrs[] = TN_ATTR_TABLE(clip);
static const tn_attr_def hard_sigmoid_attrs[] = TN_ATTR_TABLE(hard_sigmoid);
static const tn_attr_def smooth_l1_attrs[] = TN_ATTR_TABLE(smooth_l1);

#define UNARY(name_, doc_, ...)                                                                              \
    TNI_ROW(#name_, .doc = doc_, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),                \
            .shape = tni_shape_same, __VA_ARGS__)
#define FLOAT_OP(name, gradient, doc, ...)                                                                   \
    UNARY(name, doc, .aliases = TNI_NAMES(__VA_ARGS__), .flags = TN_OP_POINTWISE, .types = "T:number",       \
          .gradients = "pointwise: " gradient)
#define NUMBER_OP(name, gradient, doc, alias)                                                                \
    UNARY(name, doc, .aliases = TNI_NAMES(alias), .flags = TN_OP_POINTWISE,                                  \
          .gradients = "pointwise: " gradient)
#define STEP_OP(name, doc, alias)                                                                            \
    UNARY(name, doc, .aliases = TNI_NAMES(alias), .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT)
#define STRAIGHT_OP(name, doc, alias)                                                                        \
    UNARY(name, doc, .aliases = TNI_NAMES(alias), .flags = TN_OP_POINTWISE,                                  \
          .gradients = "composed: data = dy")
/* Linear functions: the gradient is the function of what arrives. */
#define LINEAR_OP(name, doc, types_)                                                                         \
    UNARY(name, doc, .aliases = TNI_NAMES(SPARSE(name)), .flags = TN_OP_POINTWISE, .types = types_,          \
          .gradients = "composed: data = " #name "(dy)")
/* Piecewise linear ones, with attributes. */
#define PIECES_OP(name, doc, types_, ...)                                                                    \
    UNARY(name, doc, .aliases = TNI_NAMES(__VA_ARGS__), .attrs = name##_attrs, .flags = TN_OP_POINTWISE,     \
          .types = types_, .gradients = "pointwise: dy data -> data ; 0")

/* clang-format off */
const tn_op *const tni_family_unary[] = {
    /* FLOAT_OP(name, gradient, doc, aliases) */
    FLOAT_OP(sigmoid, "dy output -> data ; output*-2+1", "1 / (1 + exp(-x))", SPARSE(sigmoid)),
    FLOAT_OP(softsign, "dy data -> data ; (abs(data)+1)^-3*-2*sign(data)", "x / (1 + |x|)", NULL),
    FLOAT_OP(tanh, "dy output -> data ; output*-2", "hyperbolic tangent", SPARSE(tanh)),
    FLOAT_OP(expm1, "dy data -> data ; exp(data)", "exp(x) - 1, exact near 0", SPARSE(expm1)),
    FLOAT_OP(log, "dy data -> data ; data^-2*-1", "natural logarithm", SPARSE(log)),
    FLOAT_OP(log2, "dy data -> data ; data^-2*-1.4426950408889634", "logarithm to base 2", SPARSE(log2)),
    FLOAT_OP(log10, "dy data -> data ; data^-2*-0.4342944819032518", "logarithm to base 10", SPARSE(log10)),
    FLOAT_OP(log1p, "dy data -> data ; (data+1)^-2*-1", "log(1 + x), exact near 0", SPARSE(log1p)),
    FLOAT_OP(sqrt, "dy output -> data ; output^-2*-0.5", "square root", SPARSE(sqrt)),
    FLOAT_OP(rsqrt, "dy data -> data ; data^-2.5*0.75", "1 / sqrt(x)", SPARSE(rsqrt)),
    FLOAT_OP(cbrt, "dy output -> data ; output^-3*-0.6666666666666666", "cube root", SPARSE(cbrt)),
    FLOAT_OP(rcbrt, "dy data -> data ; data^-2*rcbrt(data)*0.4444444444444444", "1 / cbrt(x)", NULL),
    FLOAT_OP(reciprocal, "dy data -> data ; data^-3*2", "1 / x", NULL),
    FLOAT_OP(erf, "dy data -> data ; exp(-square(data))*-2.256758334191025*data", "error function",
             "_npx_erf"),
    FLOAT_OP(erfinv, "dy output -> data ; exp(square(output))*1.772453850905516*output",
             "inverse of the error function", "_npx_erfinv"),
    FLOAT_OP(sin, "dy data -> data ; -sin(data)", "sine, x in radians", SPARSE(sin)),
    FLOAT_OP(cos, "dy data -> data ; -cos(data)", "cosine, x in radians", SPARSE(cos)),
    FLOAT_OP(tan, "dy output -> data ; output*2", "tangent, x in radians", SPARSE(tan)),
    FLOAT_OP(arcsin, "dy data -> data ; (square(data)*-1+1)^-1.5*data", "inverse sine", SPARSE(arcsin)),
    FLOAT_OP(arccos, "dy data -> data ; (square(data)*-1+1)^-1.5*-1*data", "inverse cosine", SPARSE(arccos)),
    FLOAT_OP(arctan, "dy data -> data ; (square(data)+1)^-2*-2*data", "inverse tangent", SPARSE(arctan)),
    FLOAT_OP(sinh, "dy data -> data ; sinh(data)", "hyperbolic sine", SPARSE(sinh)),
    FLOAT_OP(cosh, "dy data -> data ; cosh(data)", "hyperbolic cosine", SPARSE(cosh)),
    FLOAT_OP(arcsinh, "dy data -> data ; (square(data)+1)^-1.5*-1*data", "inverse hyperbolic sine",
             SPARSE(arcsinh)),
    FLOAT_OP(arccosh, "dy data -> data ; (square(data)-1)^-1.5*-1*data", "inverse hyperbolic cosine",
             SPARSE(arccosh)),
    FLOAT_OP(arctanh, "dy data -> data ; (square(data)*-1+1)^-2*2*data", "inverse hyperbolic tangent",
             SPARSE(arctanh)),
    FLOAT_OP(gamma, "dy data -> data", "gamma function", "_npx_gamma", SPARSE(gamma)),
    FLOAT_OP(gammaln, "dy data -> data", "logarithm of |gamma(x)|", "_npx_gammaln", SPARSE(gammaln)),
    NUMBER_OP(square, "dy data -> data ; ones_like(~data)*2", "x * x", SPARSE(square)),
    NUMBER_OP(relu, "dy output -> data ; 0", "max(x, 0)", SPARSE(relu)),
    NUMBER_OP(abs, "dy data -> data ; 0", "absolute value", SPARSE(abs)),
    /* No gradient but zero. STEP_OP(name, doc, alias) */
    STEP_OP(sign, "-1, 0 or 1; 0 for NaN", SPARSE(sign)),
    STEP_OP(floor, "the largest integer that is not above x", SPARSE(floor)),
    STEP_OP(ceil, "the smallest integer that is not below x", SPARSE(ceil)),
    STEP_OP(round, "the nearest integer, halves away from zero", SPARSE(round)),
    STEP_OP(rint, "the nearest integer, halves downwards", SPARSE(rint)),
    STEP_OP(fix, "the integer part, toward zero", SPARSE(fix)),
    STEP_OP(trunc, "the integer part, toward zero", SPARSE(trunc)),
    STEP_OP(logical_not, "1 where x is 0, else 0", NULL),
    /* Steps whose gradient is what arrives, as if they were not there. STRAIGHT_OP(name, doc, alias) */
    STRAIGHT_OP(_contrib_round_ste, "round; the gradient goes straight through", SPARSE(_contrib_round_ste)),
    STRAIGHT_OP(_contrib_sign_ste, "sign; the gradient goes straight through", SPARSE(_contrib_sign_ste)),
    UNARY(exp, "exponential", .aliases = TNI_NAMES(SPARSE(exp)), .flags = TN_OP_POINTWISE,
          .types = "T:number", .gradients = "composed: data = dy*output"),
    LINEAR_OP(negative, "-x", NULL),
    LINEAR_OP(degrees, "x from radians to degrees", "T:number"),
    LINEAR_OP(radians, "x from degrees to radians", "T:number"),
    PIECES_OP(clip, "x limited to a_min ... a_max", NULL, "_npi_clip", "_sparse_clip"),
    PIECES_OP(hard_sigmoid, "alpha x + beta, limited to 0 ... 1", "T:float", NULL),
    PIECES_OP(smooth_l1, "quadratic near 0, else |x| - 0.5 / sigma^2", "T:number", "_npx_smooth_l1"),
    NULL,
};
/* clang-format on */

/*
 * NumPy's names. Most are for what other families mean: a row says the meaning, whose kernels, gradient,
 * shapes and attributes serve it, and its own rule of data types: operands of different types meet in the
 * wider one, comparisons give bool, and a quotient is floating point. Some functions have no older name and
 * are defined here.
 */
#include "tenon/plugin/op/numpy.h"
#include "op/binary.h"
#include "op/cost.h"
#include "tenon/plugin/op/scalar.h"

static const char *const x_name[] = {"x", NULL};
static const char *const x_names[] = {"x1", "x2", NULL};
static const char *const pair_names[] = {"lhs", "rhs", NULL};
static const char *const a_name[] = {"a", NULL};
static const char *const list_names[] = {"data*", NULL};
static const char *const abs_alias[] = {"_npi_abs", NULL};
static const char *const array_name[] = {"array", NULL};
static const char *const data_name[] = {"data", NULL};
static const char *const out_name[] = {"out", NULL};

/* Types of two operands, and of an array beside a number. */
#define PAIR "T:promote(lhs,rhs)"
#define PAIR_FLOAT "T:promote(lhs,rhs); out:floatof(T)"
#define PAIR_TRUTH "T:promote(lhs,rhs); out:bool"
#define NUMBER "out:scalar(T)"
#define NUMBER_FLOAT "out:floatof(T)"
#define TRUTH "out:bool"
#define POSITION "out:i64"

/* ---- own meanings ------------------------------------------------------------------------------- */

/* X(name, doc) */
#define QUESTIONS(X)                                                                                         \
    X(_npi_isfinite, "neither infinite nor NaN")                                                             \
    X(_npi_isinf, "infinite")                                                                                \
    X(_npi_isnan, "NaN")                                                                                     \
    X(_npi_isneginf, "negative infinity")                                                                    \
    X(_npi_isposinf, "positive infinity")

/* X(name, inputs, types, gradient, doc) */
#define FUNCTIONS(X)                                                                                         \
    X(_npi_arctan2, x_names, "T:float",                                                                      \
      "broadcast: part = dy/(square(x1)+square(x2)) ; x1 = part*x2 ; x2 = -(part*x1)",                       \
      "angle of the point (x2, x1), -pi to pi")                                                              \
    X(_npi_copysign, pair_names, "T:number",                                                                 \
      "broadcast: ones = ones_like(~lhs) ; rhs = zeros_like(~rhs)"                                           \
      " ; lhs = dy*(_npi_copysign(ones, lhs)*_npi_copysign(ones, rhs))",                                     \
      "|x1| with the sign of x2")                                                                            \
    X(_npi_ldexp, pair_names, "T:number",                                                                    \
      "broadcast: lhs = dy*_npi_ldexp(ones_like(~lhs), rhs) ; rhs = dy*(out*0.6931471805599453)",            \
      "x1 times 2 to the power of x2")

/* X(name, doc) */
#define BITS(X)                                                                                              \
    X(_npi_lcm, "least common multiple, not negative")                                                       \
    X(_npi_bitwise_and, "bits that both have")                                                               \
    X(_npi_bitwise_or, "bits that one has")                                                                  \
    X(_npi_bitwise_xor, "bits that exactly one has")

/* X(name, gradient, doc) */
#define NUMBER_FUNCTIONS(X)                                                                                  \
    X(_npi_arctan2_scalar, "composed: data = dy/(square(data)+square(ones_like(~data)*scalar))*scalar",      \
      "angle of the point (scalar, x)")                                                                      \
    X(_npi_rarctan2_scalar, "composed: data = -(dy/(square(data)+square(ones_like(~data)*scalar)))*scalar",  \
      "angle of the point (x, scalar)")                                                                      \
    X(_npi_copysign_scalar,                                                                                  \
      "composed: ones = ones_like(~data)"                                                                    \
      " ; data = dy*(_npi_copysign(ones, data)*_npi_copysign_scalar!(ones))",                                \
      "|x| with the sign of scalar")                                                                         \
    X(_npi_ldexp_scalar, "composed: data = _npi_ldexp_scalar!(dy)", "x times 2 to the power of scalar")      \
    X(_npi_rldexp_scalar, "composed: data = dy*(out*0.6931471805599453)", "scalar times 2 to the power of x")

/* X(name, doc) */
#define NUMBER_BITS(X)                                                                                       \
    X(_npi_lcm_scalar, "least common multiple, not negative")                                                \
    X(_npi_bitwise_and_scalar, "bits that x and scalar have")                                                \
    X(_npi_bitwise_or_scalar, "bits that x or scalar has")                                                   \
    X(_npi_bitwise_xor_scalar, "bits that exactly one of x and scalar has")

#define STRETCHED(name_, inputs_, types_, doc_, ...)                                                         \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_ "; dimensions of size 1 stretch", .inputs = inputs_, .outputs = out_name, \
               .shape = tni_shape_pair, .types = types_, .cost = tni_cost_each_output, __VA_ARGS__);
#define POINTWISE(name_, inputs_, types_, doc_, ...)                                                         \
    static const tn_op op_##name_ = TNI_OP(#name_, .doc = doc_, .inputs = inputs_, .outputs = out_name,      \
                                           .shape = tni_shape_same, .types = types_, __VA_ARGS__);
#define NO_GRADIENT .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT
#define QUESTION_OP(name, doc) POINTWISE(name, x_name, TRUTH, "true where x is " doc, NO_GRADIENT)
#define FUNCTION_OP(name, inputs, types, gradient, doc)                                                      \
    STRETCHED(name, inputs, types, doc, .gradients = gradient)
#define BITS_OP(name, doc) STRETCHED(name, pair_names, "T:integer", doc, .flags = TN_OP_ZERO_GRADIENT)
#define NUMBER_FUNCTION_OP(name, gradient, doc)                                                              \
    POINTWISE(name, data_name, NUMBER, doc, .attrs = tni_scalar_attrs, .flags = TN_OP_POINTWISE,             \
              .gradients = gradient)
#define NUMBER_BITS_OP(name, doc)                                                                            \
    POINTWISE(name, data_name, "T:integer", doc, .attrs = tni_scalar_attrs, NO_GRADIENT)
/* clang-format off */
QUESTIONS(QUESTION_OP)
FUNCTIONS(FUNCTION_OP)
BITS(BITS_OP)
NUMBER_FUNCTIONS(NUMBER_FUNCTION_OP)
NUMBER_BITS(NUMBER_BITS_OP)
POINTWISE(_npi_rcopysign_scalar, data_name, NUMBER, "|scalar| with the sign of x", .attrs = tni_scalar_attrs,
          NO_GRADIENT)
POINTWISE(_npi_bitwise_not, x_name, "T:integer", "the other bits; of bool the other value", NO_GRADIENT)
/* clang-format on */

/* ---- rows --------------------------------------------------------------------------------------- */

/* X(name, meaning, types) */
#define UNARY(X)                                                                                             \
    X(_npi_arccos, "arccos")                                                                                 \
    X(_npi_arccosh, "arccosh")                                                                               \
    X(_npi_arcsin, "arcsin")                                                                                 \
    X(_npi_arcsinh, "arcsinh")                                                                               \
    X(_npi_arctan, "arctan")                                                                                 \
    X(_npi_arctanh, "arctanh")                                                                               \
    X(_npi_cbrt, "cbrt")                                                                                     \
    X(_npi_ceil, "ceil")                                                                                     \
    X(_npi_cos, "cos")                                                                                       \
    X(_npi_cosh, "cosh")                                                                                     \
    X(_npi_degrees, "degrees")                                                                               \
    X(_npi_exp, "exp")                                                                                       \
    X(_npi_expm1, "expm1")                                                                                   \
    X(_npi_fix, "fix")                                                                                       \
    X(_npi_floor, "floor")                                                                                   \
    X(_npi_log, "log")                                                                                       \
    X(_npi_log10, "log10")                                                                                   \
    X(_npi_log1p, "log1p")                                                                                   \
    X(_npi_log2, "log2")                                                                                     \
    X(_npi_negative, "negative")                                                                             \
    X(_npi_radians, "radians")                                                                               \
    X(_npi_reciprocal, "reciprocal")                                                                         \
    X(_npi_rint, "rint")                                                                                     \
    X(_npi_sign, "sign")                                                                                     \
    X(_npi_sin, "sin")                                                                                       \
    X(_npi_sinh, "sinh")                                                                                     \
    X(_npi_sqrt, "sqrt")                                                                                     \
    X(_npi_square, "square")                                                                                 \
    X(_npi_tan, "tan")                                                                                       \
    X(_npi_tanh, "tanh")                                                                                     \
    X(_npi_trunc, "trunc")

#define LAYERS(X) /* their input is named "data" */                                                          \
    X(_npx_relu, "relu")                                                                                     \
    X(_npx_sigmoid, "sigmoid")

/* X(name, meaning, types, gradient) */
#define PAIRS(X)                                                                                             \
    X(_npi_add, "broadcast_add", PAIR, TNI_GRAD_add("out"))                                                  \
    X(_npi_subtract, "broadcast_sub", PAIR, TNI_GRAD_sub("out"))                                             \
    X(_npi_multiply, "broadcast_mul", PAIR, TNI_GRAD_mul("out"))                                             \
    X(_npi_true_divide, "broadcast_div", PAIR_FLOAT, TNI_GRAD_div("out"))                                    \
    X(_npi_mod, "broadcast_mod", PAIR, TNI_GRAD_mod("out"))                                                  \
    X(_npi_power, "broadcast_power", PAIR, /* the logarithm of an integer is no integer */                   \
      "lhs = dy*(rhs*lhs^(rhs-1)) ; rhs = dy*(out*log(lhs*1))")

#define TRUTHS(X)                                                                                            \
    X(_npi_equal, "broadcast_equal")                                                                         \
    X(_npi_not_equal, "broadcast_not_equal")                                                                 \
    X(_npi_greater, "broadcast_greater")                                                                     \
    X(_npi_greater_equal, "broadcast_greater_equal")                                                         \
    X(_npi_less, "broadcast_lesser")                                                                         \
    X(_npi_less_equal, "broadcast_lesser_equal")

/* X(name, meaning, types, gradient): what arrives may have another type than the input */
#define SLOPES(X)                                                                                            \
    X(_npi_add_scalar, "_plus_scalar", NUMBER, "data = dy")                                                  \
    X(_npi_subtract_scalar, "_minus_scalar", NUMBER, "data = dy")                                            \
    X(_npi_rsubtract_scalar, "_rminus_scalar", NUMBER, "data = -dy")                                         \
    X(_npi_multiply_scalar, "_mul_scalar", NUMBER, "data = dy*scalar")                                       \
    X(_npi_true_divide_scalar, "_div_scalar", NUMBER_FLOAT, "data = dy/scalar")                              \
    X(_npi_mod_scalar, "_mod_scalar", NUMBER, "data = dy")

/* X(name, meaning, types) */
#define NUMBERS(X)                                                                                           \
    X(_npi_rtrue_divide_scalar, "_rdiv_scalar", NUMBER_FLOAT)                                                \
    X(_npi_rmod_scalar, "_rmod_scalar", NUMBER)                                                              \
    X(_npi_power_scalar, "_power_scalar", NUMBER)                                                            \
    X(_npi_rpower_scalar, "_rpower_scalar", NUMBER)                                                          \
    X(_npi_equal_scalar, "_equal_scalar", TRUTH)                                                             \
    X(_npi_not_equal_scalar, "_not_equal_scalar", TRUTH)                                                     \
    X(_npi_greater_scalar, "_greater_scalar", TRUTH)                                                         \
    X(_npi_greater_equal_scalar, "_greater_equal_scalar", TRUTH)                                             \
    X(_npi_less_scalar, "_lesser_scalar", TRUTH)                                                             \
    X(_npi_less_equal_scalar, "_lesser_equal_scalar", TRUTH)

/* X(name, meaning, inputs) */
#define OTHERS(X)                                                                                            \
    X(_npi_hypot, "broadcast_hypot", x_names)                                                                \
    X(_npi_stack, "stack", list_names)                                                                       \
    X(_npi_flip, "reverse", data_name)                                                                       \
    X(_np_squeeze, "squeeze", a_name)                                                                        \
    X(_np_copy, "_copy", a_name)                                                                             \
    X(_npi_arange, "_arange", NULL)                                                                          \
    X(_npi_zeros, "_zeros", NULL)                                                                            \
    X(_npi_ones, "_ones", NULL)

#define DERIVED(name_, computes_, ...)                                                                       \
    static const tn_op op_##name_ = {.struct_size = TN_END(tn_op, types),                                    \
                                     .name = #name_,                                                         \
                                     .computes = computes_,                                                  \
                                     .outputs = out_name,                                                    \
                                     __VA_ARGS__};
#define UNARY_OP(name, meaning) DERIVED(name, meaning, .inputs = x_name)
#define LAYER_OP(name, meaning) DERIVED(name, meaning, .inputs = data_name)
#define PAIR_OP(name, meaning, types_, gradient)                                                             \
    DERIVED(name, meaning, .types = types_, .gradients = "numpy: " gradient)
#define TRUTH_OP(name, meaning) DERIVED(name, meaning, .types = PAIR_TRUTH)
#define OTHER_OP(name, meaning, names) DERIVED(name, meaning, .inputs = names)
#define NUMBER_OP(name, meaning, types_) DERIVED(name, meaning, .inputs = data_name, .types = types_)
#define SLOPE_OP(name, meaning, types_, gradient)                                                            \
    DERIVED(name, meaning, .inputs = data_name, .types = types_, .gradients = "numpy: " gradient)
static const tn_attr_def axes_attrs[] = TN_ATTR_TABLE(np_transpose);
static const tn_attr_def concatenate_attrs[] = TN_ATTR_TABLE(npi_concatenate);

/* Unlike its meaning it takes more dimensions, and no 0 that keeps one. */
static tn_status broadcast_to_shape(tn_infer *i)
{
    const tn_tuple *shape = tni_attr_tuple(i->attrs, 0);
    const tn_shape *x = i->in_shape[0];
    tn_shape y, both;
    tn_status st;

    if (tni_tuple_count(shape) > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "shape has %lld items", (long long)shape->count);
    tni_shape_set(&y, (int32_t)tni_tuple_count(shape), shape ? shape->item : NULL);
    if ((st = tn_shape_unify(i, i->out_shape[0], &y)) || x->ndim < 0 ||
        (st = tni_shape_broadcast(i, x, i->out_shape[0], &both)))
        return st;
    return tn_shape_unify(i, i->out_shape[0], &both); /* not larger than shape says */
}

/* clang-format off */
UNARY(UNARY_OP)
LAYERS(LAYER_OP)
PAIRS(PAIR_OP)
TRUTHS(TRUTH_OP)
NUMBERS(NUMBER_OP)
SLOPES(SLOPE_OP)
OTHERS(OTHER_OP)
DERIVED(_npi_absolute, "abs", .inputs = x_name, .aliases = abs_alias)
DERIVED(_np_transpose, "transpose", .inputs = a_name, .attrs = axes_attrs)
DERIVED(_npi_concatenate, "Concat", .inputs = list_names, .attrs = concatenate_attrs,
        .gradients = "composed: data* = _backward_Concat(dy, ~data*, dim=@axis)")
DERIVED(_npi_broadcast_to, "broadcast_to", .inputs = array_name, .shape = broadcast_to_shape)
DERIVED(_npi_argmax, "argmax", .inputs = data_name, .types = POSITION)
DERIVED(_npi_argmin, "argmin", .inputs = data_name, .types = POSITION)
DERIVED(_npi_logical_not, "logical_not", .inputs = x_name, .types = TRUTH)

const tn_op *const tni_family_numpy[] = {
#define POINTER(name, ...) &op_##name,
    UNARY(POINTER) LAYERS(POINTER) PAIRS(POINTER) TRUTHS(POINTER) NUMBERS(POINTER) SLOPES(POINTER)
    QUESTIONS(POINTER)
    FUNCTIONS(POINTER)
    BITS(POINTER) NUMBER_FUNCTIONS(POINTER) NUMBER_BITS(POINTER) OTHERS(POINTER) &op__npi_rcopysign_scalar,
    &op__npi_bitwise_not, &op__npi_absolute, &op__np_transpose, &op__npi_concatenate,
    &op__npi_logical_not, &op__npi_argmax, &op__npi_argmin, &op__npi_broadcast_to, NULL,
};
/* clang-format on */

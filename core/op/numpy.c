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

#define STRETCHED(name_, inputs_, types_, doc_, ...)                                                         \
    TNI_ROW(#name_, .doc = doc_ "; dimensions of size 1 stretch", .inputs = inputs_, .outputs = out_name,    \
            .shape = tni_shape_pair, .types = types_, .cost = tni_cost_each_output, __VA_ARGS__)
#define POINTWISE(name_, inputs_, types_, doc_, ...)                                                         \
    TNI_ROW(#name_, .doc = doc_, .inputs = inputs_, .outputs = out_name, .shape = tni_shape_same,            \
            .types = types_, __VA_ARGS__)
#define NO_GRADIENT .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT
#define QUESTION_OP(name, doc) POINTWISE(name, x_name, TRUTH, "true where x is " doc, NO_GRADIENT)
#define FUNCTION_OP(name, inputs, types, gradient, doc)                                                      \
    STRETCHED(name, inputs, types, doc, .gradients = gradient)
#define BITS_OP(name, doc) STRETCHED(name, pair_names, "T:integer", doc, .flags = TN_OP_ZERO_GRADIENT)
#define NUMBER_FUNCTION(name, gradient, doc)                                                                 \
    POINTWISE(name, data_name, NUMBER, doc, .attrs = tni_scalar_attrs, .flags = TN_OP_POINTWISE,             \
              .gradients = gradient)
#define NUMBER_BITS_OP(name, doc)                                                                            \
    POINTWISE(name, data_name, "T:integer", doc, .attrs = tni_scalar_attrs, NO_GRADIENT)

/* ---- rows --------------------------------------------------------------------------------------- */

#define DERIVED(name_, computes_, ...)                                                                       \
    &(const tn_op)                                                                                           \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, types), .name = #name_, .computes = computes_, .outputs = out_name,     \
        __VA_ARGS__                                                                                          \
    }
#define UNARY_OP(meaning) DERIVED(_npi_##meaning, #meaning, .inputs = x_name)
#define LAYER_OP(name, meaning) DERIVED(name, meaning, .inputs = data_name)
#define PAIR_OP(name, meaning, types_, gradient)                                                             \
    DERIVED(name, meaning, .types = types_, .gradients = "numpy: " gradient)
#define TRUTH_OP(name, meaning) DERIVED(name, meaning, .types = PAIR_TRUTH)
#define OTHER_OP(name, meaning, names) DERIVED(name, meaning, .inputs = names)
#define NUMBER_OP(name, meaning, types_) DERIVED(name, meaning, .inputs = data_name, .types = types_)
#define SLOPE_OP(name, meaning, types_, gradient)                                                            \
    DERIVED(name, meaning, .inputs = data_name, .types = types_, .gradients = "numpy: " gradient)

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
const tn_op *const tni_family_numpy[] = {
    /* UNARY_OP(meaning): its name behind "_npi_" */
    UNARY_OP(arccos), UNARY_OP(arccosh), UNARY_OP(arcsin), UNARY_OP(arcsinh), UNARY_OP(arctan),
    UNARY_OP(arctanh), UNARY_OP(cbrt), UNARY_OP(ceil), UNARY_OP(cos), UNARY_OP(cosh), UNARY_OP(degrees),
    UNARY_OP(exp), UNARY_OP(expm1), UNARY_OP(fix), UNARY_OP(floor), UNARY_OP(log), UNARY_OP(log10),
    UNARY_OP(log1p), UNARY_OP(log2), UNARY_OP(negative), UNARY_OP(radians), UNARY_OP(reciprocal),
    UNARY_OP(rint), UNARY_OP(sign), UNARY_OP(sin), UNARY_OP(sinh), UNARY_OP(sqrt), UNARY_OP(square),
    UNARY_OP(tan), UNARY_OP(tanh), UNARY_OP(trunc),
    /* LAYER_OP(name, meaning): their input is named "data" */
    LAYER_OP(_npx_relu, "relu"),
    LAYER_OP(_npx_sigmoid, "sigmoid"),
    /* PAIR_OP(name, meaning, types, gradient) */
    PAIR_OP(_npi_add, "broadcast_add", PAIR, TNI_GRAD_add("out")),
    PAIR_OP(_npi_subtract, "broadcast_sub", PAIR, TNI_GRAD_sub("out")),
    PAIR_OP(_npi_multiply, "broadcast_mul", PAIR, TNI_GRAD_mul("out")),
    PAIR_OP(_npi_true_divide, "broadcast_div", PAIR_FLOAT, TNI_GRAD_div("out")),
    PAIR_OP(_npi_mod, "broadcast_mod", PAIR, TNI_GRAD_mod("out")),
    PAIR_OP(_npi_power, "broadcast_power", PAIR, /* the logarithm of an integer is no integer */
            "lhs = dy*(rhs*lhs^(rhs-1)) ; rhs = dy*(out*log(lhs*1))"),
    TRUTH_OP(_npi_equal, "broadcast_equal"),
    TRUTH_OP(_npi_not_equal, "broadcast_not_equal"),
    TRUTH_OP(_npi_greater, "broadcast_greater"),
    TRUTH_OP(_npi_greater_equal, "broadcast_greater_equal"),
    TRUTH_OP(_npi_less, "broadcast_lesser"),
    TRUTH_OP(_npi_less_equal, "broadcast_lesser_equal"),
    /* NUMBER_OP(name, meaning, types) */
    NUMBER_OP(_npi_rtrue_divide_scalar, "_rdiv_scalar", NUMBER_FLOAT),
    NUMBER_OP(_npi_rmod_scalar, "_rmod_scalar", NUMBER),
    NUMBER_OP(_npi_power_scalar, "_power_scalar", NUMBER),
    NUMBER_OP(_npi_rpower_scalar, "_rpower_scalar", NUMBER),
    NUMBER_OP(_npi_equal_scalar, "_equal_scalar", TRUTH),
    NUMBER_OP(_npi_not_equal_scalar, "_not_equal_scalar", TRUTH),
    NUMBER_OP(_npi_greater_scalar, "_greater_scalar", TRUTH),
    NUMBER_OP(_npi_greater_equal_scalar, "_greater_equal_scalar", TRUTH),
    NUMBER_OP(_npi_less_scalar, "_lesser_scalar", TRUTH),
    NUMBER_OP(_npi_less_equal_scalar, "_lesser_equal_scalar", TRUTH),
    /* SLOPE_OP(name, meaning, types, gradient): what arrives may have another type than the input */
    SLOPE_OP(_npi_add_scalar, "_plus_scalar", NUMBER, "data = dy"),
    SLOPE_OP(_npi_subtract_scalar, "_minus_scalar", NUMBER, "data = dy"),
    SLOPE_OP(_npi_rsubtract_scalar, "_rminus_scalar", NUMBER, "data = -dy"),
    SLOPE_OP(_npi_multiply_scalar, "_mul_scalar", NUMBER, "data = dy*scalar"),
    SLOPE_OP(_npi_true_divide_scalar, "_div_scalar", NUMBER_FLOAT, "data = dy/scalar"),
    SLOPE_OP(_npi_mod_scalar, "_mod_scalar", NUMBER, "data = dy"),
    /* QUESTION_OP(name, doc) */
    QUESTION_OP(_npi_isfinite, "neither infinite nor NaN"),
    QUESTION_OP(_npi_isinf, "infinite"),
    QUESTION_OP(_npi_isnan, "NaN"),
    QUESTION_OP(_npi_isneginf, "negative infinity"),
    QUESTION_OP(_npi_isposinf, "positive infinity"),
    /* FUNCTION_OP(name, inputs, types, gradient, doc) */
    FUNCTION_OP(_npi_arctan2, x_names, "T:float",
                "broadcast: part = dy/(square(x1)+square(x2)) ; x1 = part*x2 ; x2 = -(part*x1)",
                "angle of the point (x2, x1), -pi to pi"),
    FUNCTION_OP(_npi_copysign, pair_names, "T:number",
                "broadcast: ones = ones_like(~lhs) ; rhs = zeros_like(~rhs)"
                " ; lhs = dy*(_npi_copysign(ones, lhs)*_npi_copysign(ones, rhs))",
                "|x1| with the sign of x2"),
    FUNCTION_OP(_npi_ldexp, pair_names, "T:number",
                "broadcast: lhs = dy*_npi_ldexp(ones_like(~lhs), rhs) ; rhs = dy*(out*0.6931471805599453)",
                "x1 times 2 to the power of x2"),
    /* BITS_OP(name, doc) */
    BITS_OP(_npi_lcm, "least common multiple, not negative"),
    BITS_OP(_npi_bitwise_and, "bits that both have"),
    BITS_OP(_npi_bitwise_or, "bits that one has"),
    BITS_OP(_npi_bitwise_xor, "bits that exactly one has"),
    /* NUMBER_FUNCTION(name, gradient, doc) */
    NUMBER_FUNCTION(_npi_arctan2_scalar,
                    "composed: data = dy/(square(data)+square(ones_like(~data)*scalar))*scalar",
                    "angle of the point (scalar, x)"),
    NUMBER_FUNCTION(_npi_rarctan2_scalar,
                    "composed: data = -(dy/(square(data)+square(ones_like(~data)*scalar)))*scalar",
                    "angle of the point (x, scalar)"),
    NUMBER_FUNCTION(_npi_copysign_scalar,
                    "composed: ones = ones_like(~data)"
                    " ; data = dy*(_npi_copysign(ones, data)*_npi_copysign_scalar!(ones))",
                    "|x| with the sign of scalar"),
    NUMBER_FUNCTION(_npi_ldexp_scalar, "composed: data = _npi_ldexp_scalar!(dy)",
                    "x times 2 to the power of scalar"),
    NUMBER_FUNCTION(_npi_rldexp_scalar, "composed: data = dy*(out*0.6931471805599453)",
                    "scalar times 2 to the power of x"),
    /* NUMBER_BITS_OP(name, doc) */
    NUMBER_BITS_OP(_npi_lcm_scalar, "least common multiple, not negative"),
    NUMBER_BITS_OP(_npi_bitwise_and_scalar, "bits that x and scalar have"),
    NUMBER_BITS_OP(_npi_bitwise_or_scalar, "bits that x or scalar has"),
    NUMBER_BITS_OP(_npi_bitwise_xor_scalar, "bits that exactly one of x and scalar has"),
    /* OTHER_OP(name, meaning, inputs) */
    OTHER_OP(_npi_hypot, "broadcast_hypot", x_names),
    OTHER_OP(_npi_stack, "stack", list_names),
    OTHER_OP(_npi_flip, "reverse", data_name),
    OTHER_OP(_np_squeeze, "squeeze", a_name),
    OTHER_OP(_np_copy, "_copy", a_name),
    OTHER_OP(_npi_arange, "_arange", NULL),
    OTHER_OP(_npi_zeros, "_zeros", NULL),
    OTHER_OP(_npi_ones, "_ones", NULL),
    POINTWISE(_npi_rcopysign_scalar, data_name, NUMBER, "|scalar| with the sign of x",
              .attrs = tni_scalar_attrs, NO_GRADIENT),
    POINTWISE(_npi_bitwise_not, x_name, "T:integer", "the other bits; of bool the other value", NO_GRADIENT),
    DERIVED(_npi_absolute, "abs", .inputs = x_name, .aliases = abs_alias),
    DERIVED(_np_transpose, "transpose", .inputs = a_name, .attrs = TNI_ATTRS(np_transpose)),
    DERIVED(_npi_concatenate, "Concat", .inputs = list_names, .attrs = TNI_ATTRS(npi_concatenate),
            .gradients = "composed: data* = _backward_Concat(dy, ~data*, dim=@axis)"),
    DERIVED(_npi_logical_not, "logical_not", .inputs = x_name, .types = TRUTH),
    DERIVED(_npi_argmax, "argmax", .inputs = data_name, .types = POSITION),
    DERIVED(_npi_argmin, "argmin", .inputs = data_name, .types = POSITION),
    DERIVED(_npi_broadcast_to, "broadcast_to", .inputs = array_name, .shape = broadcast_to_shape),
    NULL,
};
/* clang-format on */

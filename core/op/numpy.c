/*
 * NumPy's names. Most are for what other families mean: a row says the meaning, whose kernels, gradient,
 * shapes and attributes serve it, and its own rule of data types: operands of different types meet in the
 * wider one, comparisons give bool, and a quotient is floating point. Some functions have no older name and
 * are defined here.
 */
#include "tenon/plugin/op/numpy.h"
#include "op/binary.h"
#include "op/cost.h"
#include "op/join.h"
#include "tenon/plugin/op/scalar.h"

static const char *const x_name[] = {"x", NULL};
static const char *const x_names[] = {"x1", "x2", NULL};
static const char *const pair_names[] = {"lhs", "rhs", NULL};
static const char *const a_name[] = {"a", NULL};
static const char *const list_names[] = {"data*", NULL};
static const char *const abs_alias[] = {"_npi_abs", NULL};
static const char *const data_name[] = {"data", NULL};
static const char *const out_name[] = {"out", NULL};

/* ---- data types ------------------------------------------------------------------------------- */

/* bool < integers < floating point; within floating point bf16 and f16 < f32 < f64. */
static int32_t rank_of(int32_t dtype)
{
    switch (dtype) {
    case TN_BOOL:
        return 0;
    case TN_F64:
        return 4;
    case TN_F32:
        return 3;
    default:
        return tni_dtype_is_float(dtype) ? 2 : 1;
    }
}

static bool is_signed(int32_t dtype)
{
    return dtype == TN_I8 || dtype == TN_I16 || dtype == TN_I32 || dtype == TN_I64;
}

/* The least integer type that holds both; -1: there is none. */
static int32_t integer_of(int32_t a, int32_t b)
{
    static const int32_t wider[] = {[1] = TN_I16, [2] = TN_I32, [4] = TN_I64};
    const uint64_t a_bytes = tn_dtype_bytes(a), b_bytes = tn_dtype_bytes(b);

    if (is_signed(a) == is_signed(b))
        return a_bytes >= b_bytes ? a : b;
    if (!is_signed(a))
        return integer_of(b, a);
    if (a_bytes > b_bytes)
        return a;
    return b_bytes < 8 ? wider[b_bytes] : -1;
}

/* The type in which two meet. An integer and a floating point type meet in the latter, as MXNet has it. */
static tn_status promote(tn_infer *i, int32_t a, int32_t b, int32_t *out)
{
    const int32_t ra = rank_of(a), rb = rank_of(b);

    *out = ra > rb ? a : b;
    if (a == b || ra != rb)
        return TN_OK;
    *out = ra == 1 ? integer_of(a, b) : TN_F32; /* f16 and bf16 */
    if (*out < 0)
        return tni_infer_fail(i, TN_E_DTYPE, "no type holds %s and %s, cast one of them", tni_dtype_name(a),
                              tni_dtype_name(b));
    return TN_OK;
}

/* One unknown operand has the type of the other. */
static tn_status operands(tn_infer *i, int32_t *met)
{
    tn_status st;

    if (i->in_count == 2 &&
        (st = tni_dtype_assign(i, &i->in_dtype[0], i->in_dtype[0] < 0 ? i->in_dtype[1] : -1)))
        return st;
    if (i->in_count == 2 &&
        (st = tni_dtype_assign(i, &i->in_dtype[1], i->in_dtype[1] < 0 ? i->in_dtype[0] : -1)))
        return st;
    *met = i->in_dtype[0];
    return i->in_count == 2 && *met >= 0 ? promote(i, i->in_dtype[0], i->in_dtype[1], met) : TN_OK;
}

static tn_status pair_dtype(tn_infer *i)
{
    int32_t met;
    tn_status st = operands(i, &met);

    if (!st && met < 0)
        return tni_dtype_same(i);
    return st ? st : tni_dtype_assign(i, &i->out_dtype[0], met);
}

static tn_status quotient_dtype(tn_infer *i)
{
    int32_t met;
    tn_status st = operands(i, &met);

    if (st || met < 0)
        return st;
    return tni_dtype_assign(i, &i->out_dtype[0], tni_dtype_is_float(met) ? met : TN_F32);
}

static tn_status truth_dtype(tn_infer *i)
{
    int32_t met;
    tn_status st = operands(i, &met);

    return st ? st : tni_dtype_assign(i, &i->out_dtype[0], TN_BOOL);
}

/* Attribute is_int of the scalar operators: a number with a point makes integers f64. */
static tn_status scalar_dtype(tn_infer *i)
{
    const bool whole = tn_value_int(i->attrs[TN_scalar_is_int]) != 0;
    int32_t dtype = i->in_dtype[0];

    if (dtype < 0)
        return TN_OK;
    if (!tni_dtype_is_float(dtype))
        dtype = !whole ? TN_F64 : dtype == TN_BOOL ? TN_I64 : dtype;
    return tni_dtype_assign(i, &i->out_dtype[0], dtype);
}

/* Integers and bool. */
static tn_status integer_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_same(i);

    if (!st && i->in_dtype[0] >= 0 && tni_dtype_is_float(i->in_dtype[0]))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no integer type, cast it first",
                              tni_dtype_name(i->in_dtype[0]));
    return st;
}

/* ---- own meanings ------------------------------------------------------------------------------- */

/* X(name, doc) */
#define QUESTIONS(X)                                                                                         \
    X(_npi_isfinite, "neither infinite nor NaN")                                                             \
    X(_npi_isinf, "infinite")                                                                                \
    X(_npi_isnan, "NaN")                                                                                     \
    X(_npi_isneginf, "negative infinity")                                                                    \
    X(_npi_isposinf, "positive infinity")

/* X(name, inputs, types, flags, gradient, doc) */
#define FUNCTIONS(X)                                                                                         \
    X(_npi_arctan2, x_names, tni_dtype_same_float, 0, tni_binary_grad_broadcast,                             \
      "angle of the point (x2, x1), -pi to pi")                                                              \
    X(_npi_copysign, pair_names, tni_dtype_same_number, 0, tni_binary_grad_broadcast,                        \
      "|x1| with the sign of x2")                                                                            \
    X(_npi_ldexp, pair_names, tni_dtype_same_number, 0, tni_binary_grad_broadcast,                           \
      "x1 times 2 to the power of x2")                                                                       \
    X(_npi_lcm, pair_names, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "least common multiple, not negative") \
    X(_npi_bitwise_and, pair_names, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "bits that both have")         \
    X(_npi_bitwise_or, pair_names, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "bits that one has")            \
    X(_npi_bitwise_xor, pair_names, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "bits that exactly one has")

/* X(name, types, flags, gradient, doc) */
#define NUMBER_FUNCTIONS(X)                                                                                  \
    X(_npi_arctan2_scalar, scalar_dtype, 0, arctan2_grad, "angle of the point (scalar, x)")                  \
    X(_npi_rarctan2_scalar, scalar_dtype, 0, rarctan2_grad, "angle of the point (x, scalar)")                \
    X(_npi_copysign_scalar, scalar_dtype, 0, copysign_grad, "|x| with the sign of scalar")                   \
    X(_npi_rcopysign_scalar, scalar_dtype, TN_OP_ZERO_GRADIENT, NULL, "|scalar| with the sign of x")         \
    X(_npi_ldexp_scalar, scalar_dtype, 0, ldexp_grad, "x times 2 to the power of scalar")                    \
    X(_npi_rldexp_scalar, scalar_dtype, 0, rldexp_grad, "scalar times 2 to the power of x")                  \
    X(_npi_lcm_scalar, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "least common multiple, not negative")      \
    X(_npi_bitwise_and_scalar, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "bits that x and scalar have")      \
    X(_npi_bitwise_or_scalar, integer_dtype, TN_OP_ZERO_GRADIENT, NULL, "bits that x or scalar has")         \
    X(_npi_bitwise_xor_scalar, integer_dtype, TN_OP_ZERO_GRADIENT, NULL,                                     \
      "bits that exactly one of x and scalar has")

static const tn_attr_def scalar_attrs[] = TN_ATTR_TABLE(scalar);

/* dy / (x^2 + scalar^2) */
static tn_edge arctan2_part(tn_grad *g, tn_status *st)
{
    tn_edge x = tn_grad_input(g, 0), s = tni_grad_number(g, st, x);
    tn_edge squares = tni_grad_op2(g, st, "elemwise_add", tni_grad_op1(g, st, "square", x),
                                   tni_grad_op1(g, st, "square", s));

    return tni_grad_op2(g, st, "elemwise_div", tn_grad_of(g, 0), squares);
}

static tn_status arctan2_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    return tni_grad_set(g, &st, 0, tni_grad_inherit(g, &st, "_mul_scalar", arctan2_part(g, &st)));
}

static tn_status rarctan2_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    return tni_grad_set(
        g, &st, 0,
        tni_grad_inherit(g, &st, "_mul_scalar", tni_grad_op1(g, &st, "negative", arctan2_part(g, &st))));
}

/* The product of both signs. */
static tn_status copysign_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge ones, signs;

    if (!tni_grad_arrives(g))
        return TN_OK;
    ones = tni_grad_op1(g, &st, "ones_like", tn_grad_input(g, 0));
    signs =
        tni_grad_op2(g, &st, "elemwise_mul", tni_grad_op2(g, &st, "_npi_copysign", ones, tn_grad_input(g, 0)),
                     tni_grad_inherit(g, &st, "_npi_copysign_scalar", ones));
    return tni_grad_set(g, &st, 0, tni_grad_op2(g, &st, "elemwise_mul", tn_grad_of(g, 0), signs));
}

static tn_status ldexp_grad(tn_grad *g)
{
    tn_status st = TN_OK;

    return tni_grad_arrives(g)
               ? tni_grad_set(g, &st, 0, tni_grad_inherit(g, &st, "_npi_ldexp_scalar", tn_grad_of(g, 0)))
               : TN_OK;
}

/* y = scalar 2^x: dy y ln 2 */
static tn_status rldexp_grad(tn_grad *g)
{
    tn_status st = TN_OK;
    tn_edge slope;

    if (!tni_grad_arrives(g))
        return TN_OK;
    slope = tni_grad_scalar(g, &st, "_mul_scalar", tn_grad_output(g, 0), "0.6931471805599453");
    return tni_grad_set(g, &st, 0, tni_grad_op2(g, &st, "elemwise_mul", tn_grad_of(g, 0), slope));
}

#define QUESTION_OP(name_, doc_)                                                                             \
    static const tn_op op_##name_ = TNI_OP(                                                                  \
        #name_, .doc = "true where x is " doc_, .inputs = x_name, .outputs = out_name,                       \
        .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT, .shape = tni_shape_same, .dtype = truth_dtype);
#define FUNCTION_OP(name_, inputs_, types, flags_, gradient_, doc_)                                          \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_ "; dimensions of size 1 stretch", .inputs = inputs_, .outputs = out_name, \
               .flags = flags_, .shape = tni_shape_pair, .dtype = types, .gradient = gradient_,              \
               .cost = tni_cost_each_output);
/* clang-format off */
QUESTIONS(QUESTION_OP)
FUNCTIONS(FUNCTION_OP)
#define NUMBER_FUNCTION_OP(name_, types, flags_, gradient_, doc_)                                           \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_, .attrs = scalar_attrs, .inputs = data_name, .outputs = out_name,         \
               .flags = TN_OP_POINTWISE | flags_, .shape = tni_shape_same, .dtype = types,                   \
               .gradient = gradient_);
NUMBER_FUNCTIONS(NUMBER_FUNCTION_OP)
static const tn_op op__npi_bitwise_not =
    TNI_OP("_npi_bitwise_not", .doc = "the other bits; of bool the other value", .inputs = x_name,
           .outputs = out_name, .flags = TN_OP_POINTWISE | TN_OP_ZERO_GRADIENT, .shape = tni_shape_same,
           .dtype = integer_dtype);
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

#define PAIRS(X)                                                                                             \
    X(_npi_add, "broadcast_add", pair_dtype)                                                                 \
    X(_npi_subtract, "broadcast_sub", pair_dtype)                                                            \
    X(_npi_multiply, "broadcast_mul", pair_dtype)                                                            \
    X(_npi_true_divide, "broadcast_div", quotient_dtype)                                                     \
    X(_npi_mod, "broadcast_mod", pair_dtype)                                                                 \
    X(_npi_power, "broadcast_power", pair_dtype)

#define TRUTHS(X)                                                                                            \
    X(_npi_equal, "broadcast_equal")                                                                         \
    X(_npi_not_equal, "broadcast_not_equal")                                                                 \
    X(_npi_greater, "broadcast_greater")                                                                     \
    X(_npi_greater_equal, "broadcast_greater_equal")                                                         \
    X(_npi_less, "broadcast_lesser")                                                                         \
    X(_npi_less_equal, "broadcast_lesser_equal")

#define NUMBERS(X)                                                                                           \
    X(_npi_add_scalar, "_plus_scalar", scalar_dtype)                                                         \
    X(_npi_subtract_scalar, "_minus_scalar", scalar_dtype)                                                   \
    X(_npi_rsubtract_scalar, "_rminus_scalar", scalar_dtype)                                                 \
    X(_npi_multiply_scalar, "_mul_scalar", scalar_dtype)                                                     \
    X(_npi_true_divide_scalar, "_div_scalar", quotient_dtype)                                                \
    X(_npi_rtrue_divide_scalar, "_rdiv_scalar", quotient_dtype)                                              \
    X(_npi_mod_scalar, "_mod_scalar", scalar_dtype)                                                          \
    X(_npi_rmod_scalar, "_rmod_scalar", scalar_dtype)                                                        \
    X(_npi_power_scalar, "_power_scalar", scalar_dtype)                                                      \
    X(_npi_rpower_scalar, "_rpower_scalar", scalar_dtype)                                                    \
    X(_npi_equal_scalar, "_equal_scalar", truth_dtype)                                                       \
    X(_npi_not_equal_scalar, "_not_equal_scalar", truth_dtype)                                               \
    X(_npi_greater_scalar, "_greater_scalar", truth_dtype)                                                   \
    X(_npi_greater_equal_scalar, "_greater_equal_scalar", truth_dtype)                                       \
    X(_npi_less_scalar, "_lesser_scalar", truth_dtype)                                                       \
    X(_npi_less_equal_scalar, "_lesser_equal_scalar", truth_dtype)

/* X(name, meaning, inputs) */
#define OTHERS(X)                                                                                            \
    X(_npi_hypot, "broadcast_hypot", x_names)                                                                \
    X(_npi_stack, "stack", list_names)                                                                       \
    X(_npi_flip, "reverse", data_name)                                                                       \
    X(_np_squeeze, "squeeze", a_name)                                                                        \
    X(_np_copy, "_copy", a_name)                                                                             \
    X(_npi_zeros, "_zeros", NULL)                                                                            \
    X(_npi_ones, "_ones", NULL)

#define DERIVED(name_, computes_, ...)                                                                       \
    static const tn_op op_##name_ = {.struct_size = TN_END(tn_op, computes),                                 \
                                     .name = #name_,                                                         \
                                     .computes = computes_,                                                  \
                                     .outputs = out_name,                                                    \
                                     __VA_ARGS__};
#define UNARY_OP(name, meaning) DERIVED(name, meaning, .inputs = x_name)
#define LAYER_OP(name, meaning) DERIVED(name, meaning, .inputs = data_name)
#define PAIR_OP(name, meaning, types)                                                                        \
    DERIVED(name, meaning, .dtype = types, .gradient = tni_binary_grad_numpy)
#define TRUTH_OP(name, meaning) DERIVED(name, meaning, .dtype = truth_dtype)
#define OTHER_OP(name, meaning, names) DERIVED(name, meaning, .inputs = names)
#define NUMBER_OP(name, meaning, types) DERIVED(name, meaning, .inputs = data_name, .dtype = types)
static const tn_attr_def axes_attrs[] = TN_ATTR_TABLE(np_transpose);
static const tn_attr_def concatenate_attrs[] = TN_ATTR_TABLE(npi_concatenate);

/* clang-format off */
UNARY(UNARY_OP)
LAYERS(LAYER_OP)
PAIRS(PAIR_OP)
TRUTHS(TRUTH_OP)
NUMBERS(NUMBER_OP)
OTHERS(OTHER_OP)
DERIVED(_npi_absolute, "abs", .inputs = x_name, .aliases = abs_alias)
DERIVED(_np_transpose, "transpose", .inputs = a_name, .attrs = axes_attrs)
DERIVED(_npi_concatenate, "Concat", .inputs = list_names, .attrs = concatenate_attrs,
        .gradient = tni_concat_grad)
DERIVED(_npi_logical_not, "logical_not", .inputs = x_name, .dtype = truth_dtype)

const tn_op *const tni_family_numpy[] = {
#define POINTER(name, ...) &op_##name,
    UNARY(POINTER) LAYERS(POINTER) PAIRS(POINTER) TRUTHS(POINTER) NUMBERS(POINTER) QUESTIONS(POINTER)
    FUNCTIONS(POINTER) NUMBER_FUNCTIONS(POINTER) OTHERS(POINTER) &op__npi_bitwise_not,
    &op__npi_absolute, &op__np_transpose, &op__npi_concatenate, &op__npi_logical_not, NULL,
};
/* clang-format on */

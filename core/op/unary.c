/*
 * Functions of one array, element by element. A row says of what the gradient is made: the input (IN) or the
 * output (OUT) goes into `_backward_<name>` with what arrives. For the second derivative a row has a formula
 * of that operand, a chain of steps: a name is a function, "*2", "+1" and "^-3" take a number, "&f"
 * multiplies by f of the operand and "&" by the operand itself. Higher derivatives follow, because the steps
 * are operators.
 */
#include <string.h>

#include "op/infer_help.h"
#include "tenon/plugin/op/unary.h"

#define IN 1  /* _backward_<name>(dy, x) */
#define OUT 2 /* _backward_<name>(dy, y) */

/* X(name, operand, second derivative; NULL: none, "0": zero, doc) */
#define FLOATS(X)                                                                                            \
    X(sigmoid, OUT, "*-2 +1", "1 / (1 + exp(-x))")                                                           \
    X(softsign, IN, "abs +1 ^-3 *-2 &sign", "x / (1 + |x|)")                                                 \
    X(tanh, OUT, "*-2", "hyperbolic tangent")                                                                \
    X(expm1, IN, "exp", "exp(x) - 1, exact near 0")                                                          \
    X(log, IN, "^-2 *-1", "natural logarithm")                                                               \
    X(log2, IN, "^-2 *-1.4426950408889634", "logarithm to base 2")                                           \
    X(log10, IN, "^-2 *-0.4342944819032518", "logarithm to base 10")                                         \
    X(log1p, IN, "+1 ^-2 *-1", "log(1 + x), exact near 0")                                                   \
    X(sqrt, OUT, "^-2 *-0.5", "square root")                                                                 \
    X(rsqrt, IN, "^-2.5 *0.75", "1 / sqrt(x)")                                                               \
    X(cbrt, OUT, "^-3 *-0.6666666666666666", "cube root")                                                    \
    X(rcbrt, IN, "^-2 &rcbrt *0.4444444444444444", "1 / cbrt(x)")                                            \
    X(reciprocal, IN, "^-3 *2", "1 / x")                                                                     \
    X(erf, IN, "square negative exp *-2.256758334191025 &", "error function")                                \
    X(erfinv, OUT, "square exp *1.772453850905516 &", "inverse of the error function")                       \
    X(sin, IN, "sin negative", "sine, x in radians")                                                         \
    X(cos, IN, "cos negative", "cosine, x in radians")                                                       \
    X(tan, OUT, "*2", "tangent, x in radians")                                                               \
    X(arcsin, IN, "square *-1 +1 ^-1.5 &", "inverse sine")                                                   \
    X(arccos, IN, "square *-1 +1 ^-1.5 *-1 &", "inverse cosine")                                             \
    X(arctan, IN, "square +1 ^-2 *-2 &", "inverse tangent")                                                  \
    X(sinh, IN, "sinh", "hyperbolic sine")                                                                   \
    X(cosh, IN, "cosh", "hyperbolic cosine")                                                                 \
    X(arcsinh, IN, "square +1 ^-1.5 *-1 &", "inverse hyperbolic sine")                                       \
    X(arccosh, IN, "square +-1 ^-1.5 *-1 &", "inverse hyperbolic cosine")                                    \
    X(arctanh, IN, "square *-1 +1 ^-2 *2 &", "inverse hyperbolic tangent")                                   \
    X(gamma, IN, NULL, "gamma function")                                                                     \
    X(gammaln, IN, NULL, "logarithm of |gamma(x)|")

#define NUMBERS(X)                                                                                           \
    X(square, IN, "ones_like *2", "x * x")                                                                   \
    X(relu, OUT, "0", "max(x, 0)")                                                                           \
    X(abs, IN, "0", "absolute value")

/* No gradient but zero. X(name, doc) */
#define STEPS(X)                                                                                             \
    X(sign, "-1, 0 or 1; 0 for NaN")                                                                         \
    X(floor, "the largest integer that is not above x")                                                      \
    X(ceil, "the smallest integer that is not below x")                                                      \
    X(round, "the nearest integer, halves away from zero")                                                   \
    X(rint, "the nearest integer, halves downwards")                                                         \
    X(fix, "the integer part, toward zero")                                                                  \
    X(trunc, "the integer part, toward zero")

typedef struct unary_row {
    const char *name, *back, *second;
    int32_t operand;
} unary_row;

static const unary_row rows[] = {
#define ROW(name, operand, second, doc) {#name, "_backward_" #name, second, operand},
    FLOATS(ROW) NUMBERS(ROW)
#undef ROW
};

static const char *const data_name[] = {"data", NULL};
static const char *const output_name[] = {"output", NULL};
static const char *const back_names[] = {"dy", "operand", NULL};

static const unary_row *row_of(const char *name, bool back)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(back ? rows[i].back : rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static tn_status unary_grad(tn_grad *g)
{
    const unary_row *row = row_of(g->op->name, false);
    const tn_edge in[] = {tn_grad_of(g, 0), row->operand == IN ? tn_grad_input(g, 0) : tn_grad_output(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, row->back, 2, in) : TN_OK;
}

/* One step of a formula: `at` so far, `b` the operand. */
static tn_edge step_apply(tn_grad *g, tn_status *st, const char *step, tn_edge at, tn_edge b)
{
    switch (step[0]) {
    case '*':
        return tni_grad_scalar(g, st, "_mul_scalar", at, step + 1);
    case '+':
        return tni_grad_scalar(g, st, "_plus_scalar", at, step + 1);
    case '^':
        return tni_grad_scalar(g, st, "_power_scalar", at, step + 1);
    case '&':
        return tni_grad_op2(g, st, "elemwise_mul", at, step[1] ? tni_grad_op1(g, st, step + 1, b) : b);
    default:
        return tni_grad_op1(g, st, step, at);
    }
}

tn_edge tni_grad_formula(tn_grad *g, tn_status *st, const char *formula, tn_edge b)
{
    tn_edge at = b;
    char step[32];

    while (*formula) {
        size_t length = strcspn(formula, " ");

        memcpy(step, formula, length);
        step[length] = '\0';
        at = step_apply(g, st, step, at, b);
        formula += length + strspn(formula + length, " ");
    }
    return at;
}

/* Of _backward_f(dy, b) = dy f'(b): to dy goes h f'(b), to b goes h dy f''(b). */
static tn_status unary_back_grad(tn_grad *g)
{
    const unary_row *row = row_of(g->op->name, true);
    tn_edge h = tn_grad_of(g, 0), dy = tn_grad_input(g, 0), b = tn_grad_input(g, 1);
    const tn_edge in[] = {h, b};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if ((st = tn_grad_emit(g, 0, row->back, 2, in)) || !g->ops->needs(g, 1))
        return st;
    if (!row->second)
        return tn_fail(g->err, TN_E_UNSUPPORTED, "it has a first derivative only");
    if (strcmp(row->second, "0") == 0)
        return TN_OK;
    return tni_grad_set(g, &st, 1,
                        tni_grad_op2(g, &st, "elemwise_mul", tni_grad_op2(g, &st, "elemwise_mul", h, dy),
                                     tni_grad_formula(g, &st, row->second, b)));
}

/* exp is its own derivative: the gradient is a product with the output. */
static tn_status exp_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_output(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "elemwise_mul", 2, in) : TN_OK;
}

/* Linear functions: the gradient is the function of what arrives. */
static tn_status linear_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, g->op->name, 1, in) : TN_OK;
}

/* ---- with attributes -------------------------------------------------------------------------- */

static const tn_attr_def clip_attrs[] = TN_ATTR_TABLE(clip);
static const tn_attr_def hard_sigmoid_attrs[] = TN_ATTR_TABLE(hard_sigmoid);
static const tn_attr_def smooth_l1_attrs[] = TN_ATTR_TABLE(smooth_l1);

/* _backward_<name>(dy, x) with the forward's attributes. */
static tn_status attr_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    char name[64];

    snprintf(name, sizeof name, "_backward_%s", g->op->name);
    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, name, 2, in) : TN_OK;
}

/* Piecewise linear functions: the gradient's gradient goes to dy alone. */
static tn_status attr_back_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 1)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, g->op->name, 2, in) : TN_OK;
}

/* ---- the family ------------------------------------------------------------------------------- */

#define DEFINE(name_, doc_, dtype_, flags_, gradient_)                                                       \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_, .aliases = alias_##name_, .inputs = data_name, .outputs = output_name,   \
               .flags = TN_OP_POINTWISE | (flags_), .shape = tni_shape_same, .dtype = dtype_,                \
               .gradient = gradient_);
#define DEFINE_BACK(name_, dtype_)                                                                           \
    static const tn_op back_##name_ =                                                                        \
        TNI_OP("_backward_" #name_, .doc = "gradient of " #name_, .inputs = back_names,                      \
               .outputs = output_name, .flags = TN_OP_POINTWISE | TN_OP_BACKWARD, .shape = tni_shape_same,   \
               .dtype = dtype_, .gradient = unary_back_grad);
#define ALIAS(name_, ...) static const char *const alias_##name_[] = {__VA_ARGS__};
#define SPARSE(name_) ALIAS(name_, "_sparse_" #name_, NULL)
#define NONE(name_) ALIAS(name_, NULL)

/* clang-format off */
SPARSE(sigmoid) NONE(softsign) SPARSE(tanh) SPARSE(expm1) SPARSE(log) SPARSE(log2) SPARSE(log10) SPARSE(log1p)
SPARSE(sqrt) SPARSE(rsqrt) SPARSE(cbrt) NONE(rcbrt) NONE(reciprocal) ALIAS(erf, "_npx_erf", NULL)
ALIAS(erfinv, "_npx_erfinv", NULL) SPARSE(sin) SPARSE(cos) SPARSE(tan) SPARSE(arcsin) SPARSE(arccos)
SPARSE(arctan) SPARSE(sinh) SPARSE(cosh) SPARSE(arcsinh) SPARSE(arccosh) SPARSE(arctanh)
ALIAS(gamma, "_npx_gamma", "_sparse_gamma", NULL) ALIAS(gammaln, "_npx_gammaln", "_sparse_gammaln", NULL)
SPARSE(square) SPARSE(relu) SPARSE(abs) SPARSE(sign) SPARSE(floor) SPARSE(ceil) SPARSE(round) SPARSE(rint)
SPARSE(fix) SPARSE(trunc) SPARSE(exp) SPARSE(negative) SPARSE(degrees) SPARSE(radians) NONE(logical_not)
ALIAS(clip, "_npi_clip", "_sparse_clip", NULL) NONE(hard_sigmoid) ALIAS(smooth_l1, "_npx_smooth_l1", NULL)
/* clang-format on */

#define FLOAT_OP(name, operand, second, doc)                                                                 \
    DEFINE(name, doc, tni_dtype_same_number, 0, unary_grad) DEFINE_BACK(name, tni_dtype_same_float)
#define NUMBER_OP(name, operand, second, doc)                                                                \
    DEFINE(name, doc, tni_dtype_same, 0, unary_grad) DEFINE_BACK(name, tni_dtype_same)
#define STEP_OP(name, doc) DEFINE(name, doc, tni_dtype_same, TN_OP_ZERO_GRADIENT, NULL)
    /* clang-format off */
FLOATS(FLOAT_OP)
NUMBERS(NUMBER_OP)
STEPS(STEP_OP)
STEP_OP(logical_not, "1 where x is 0, else 0")
DEFINE(exp, "exponential", tni_dtype_same_number, 0, exp_grad)
DEFINE(negative, "-x", tni_dtype_same, 0, linear_grad)
DEFINE(degrees, "x from radians to degrees", tni_dtype_same_number, 0, linear_grad)
DEFINE(radians, "x from degrees to radians", tni_dtype_same_number, 0, linear_grad)
/* clang-format on */

#define ATTR_OP(name_, doc_, dtype_)                                                                         \
    static const tn_op op_##name_ =                                                                          \
        TNI_OP(#name_, .doc = doc_, .aliases = alias_##name_, .attrs = name_##_attrs, .inputs = data_name,   \
               .outputs = output_name, .flags = TN_OP_POINTWISE, .shape = tni_shape_same, .dtype = dtype_,   \
               .gradient = attr_grad);                                                                       \
    static const tn_op back_##name_ =                                                                        \
        TNI_OP("_backward_" #name_, .doc = "gradient of " #name_, .attrs = name_##_attrs,                    \
               .inputs = back_names, .outputs = output_name, .flags = TN_OP_POINTWISE | TN_OP_BACKWARD,      \
               .shape = tni_shape_same, .dtype = dtype_, .gradient = attr_back_grad);
    /* clang-format off */
ATTR_OP(clip, "x limited to a_min ... a_max", tni_dtype_same)
ATTR_OP(hard_sigmoid, "alpha x + beta, limited to 0 ... 1", tni_dtype_same_float)
ATTR_OP(smooth_l1, "quadratic near 0, else |x| - 0.5 / sigma^2", tni_dtype_same_number)

const tn_op *const tni_family_unary[] = {
#define BOTH(name, operand, second, doc) &op_##name, &back_##name,
#define ONE(name, doc) &op_##name,
    FLOATS(BOTH) NUMBERS(BOTH) STEPS(ONE) &op_logical_not, &op_exp, &op_negative, &op_degrees,
    &op_radians, &op_clip, &back_clip, &op_hard_sigmoid, &back_hard_sigmoid, &op_smooth_l1,
    &back_smooth_l1, NULL,
};
/* clang-format on */

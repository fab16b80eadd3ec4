/* Kernels of one input, element by element, and their gradients: rows over the loops of loops_float.list. */
#include "loops.h"

#define FORWARD(X)                                                                                           \
    X(sigmoid, SIGMOID)                                                                                      \
    X(softsign, SOFTSIGN)                                                                                    \
    X(tanh, TANH)                                                                                            \
    X(exp, EXP)                                                                                              \
    X(expm1, EXPM1)                                                                                          \
    X(log, LOG)                                                                                              \
    X(log2, LOG2)                                                                                            \
    X(log10, LOG10)                                                                                          \
    X(log1p, LOG1P)                                                                                          \
    X(sqrt, SQRT)                                                                                            \
    X(rsqrt, RSQRT)                                                                                          \
    X(cbrt, CBRT)                                                                                            \
    X(rcbrt, RCBRT)                                                                                          \
    X(reciprocal, RECIPROCAL)                                                                                \
    X(erf, ERF)                                                                                              \
    X(erfinv, ERFINV)                                                                                        \
    X(sin, SIN)                                                                                              \
    X(cos, COS)                                                                                              \
    X(tan, TAN)                                                                                              \
    X(arcsin, ARCSIN)                                                                                        \
    X(arccos, ARCCOS)                                                                                        \
    X(arctan, ARCTAN)                                                                                        \
    X(sinh, SINH)                                                                                            \
    X(cosh, COSH)                                                                                            \
    X(arcsinh, ARCSINH)                                                                                      \
    X(arccosh, ARCCOSH)                                                                                      \
    X(arctanh, ARCTANH)                                                                                      \
    X(gamma, GAMMA)                                                                                          \
    X(gammaln, GAMMALN)                                                                                      \
    X(degrees, DEGREES)                                                                                      \
    X(radians, RADIANS)                                                                                      \
    X(smooth_l1, SMOOTH_L1)

/* This one takes no integers. */
#define FORWARD_FLOAT(X) X(hard_sigmoid, HARD_SIGMOID)

/* These are for integers too. */
#define FORWARD_ALL(X)                                                                                       \
    X(relu, RELU)                                                                                            \
    X(square, SQUARE)                                                                                        \
    X(abs, ABS)                                                                                              \
    X(_contrib_round_ste, ROUND)                                                                             \
    X(_contrib_sign_ste, SIGN)                                                                               \
    X(sign, SIGN)                                                                                            \
    X(negative, NEGATIVE)                                                                                    \
    X(floor, FLOOR)                                                                                          \
    X(ceil, CEIL)                                                                                            \
    X(round, ROUND)                                                                                          \
    X(rint, RINT)                                                                                            \
    X(fix, TRUNC)                                                                                            \
    X(trunc, TRUNC)                                                                                          \
    X(logical_not, NOT)                                                                                      \
    X(clip, CLIP)

#define BACKWARD(X)                                                                                          \
    X(_backward_sigmoid, SIGMOID_BACK)                                                                       \
    X(_backward_softsign, SOFTSIGN_BACK)                                                                     \
    X(_backward_tanh, TANH_BACK)                                                                             \
    X(_backward_expm1, EXPM1_BACK)                                                                           \
    X(_backward_log, LOG_BACK)                                                                               \
    X(_backward_log2, LOG2_BACK)                                                                             \
    X(_backward_log10, LOG10_BACK)                                                                           \
    X(_backward_log1p, LOG1P_BACK)                                                                           \
    X(_backward_sqrt, SQRT_BACK)                                                                             \
    X(_backward_rsqrt, RSQRT_BACK)                                                                           \
    X(_backward_cbrt, CBRT_BACK)                                                                             \
    X(_backward_rcbrt, RCBRT_BACK)                                                                           \
    X(_backward_reciprocal, RECIPROCAL_BACK)                                                                 \
    X(_backward_square, SQUARE_BACK)                                                                         \
    X(_backward_erf, ERF_BACK)                                                                               \
    X(_backward_erfinv, ERFINV_BACK)                                                                         \
    X(_backward_sin, SIN_BACK)                                                                               \
    X(_backward_cos, COS_BACK)                                                                               \
    X(_backward_tan, TAN_BACK)                                                                               \
    X(_backward_arcsin, ARCSIN_BACK)                                                                         \
    X(_backward_arccos, ARCCOS_BACK)                                                                         \
    X(_backward_arctan, ARCTAN_BACK)                                                                         \
    X(_backward_sinh, SINH_BACK)                                                                             \
    X(_backward_cosh, COSH_BACK)                                                                             \
    X(_backward_arcsinh, ARCSINH_BACK)                                                                       \
    X(_backward_arccosh, ARCCOSH_BACK)                                                                       \
    X(_backward_arctanh, ARCTANH_BACK)                                                                       \
    X(_backward_gamma, GAMMA_BACK)                                                                           \
    X(_backward_gammaln, GAMMALN_BACK)                                                                       \
    X(_backward_hard_sigmoid, HARD_SIGMOID_BACK)                                                             \
    X(_backward_smooth_l1, SMOOTH_L1_BACK)

#define BACKWARD_ALL(X)                                                                                      \
    X(_backward_relu, STEP_BACK)                                                                             \
    X(_backward_abs, SIGN_BACK)                                                                              \
    X(_backward_clip, CLIP_BACK)

/* clang-format off */
static const tncpu_point rows[] = {FORWARD(TNCPU_POINT_1) FORWARD_FLOAT(TNCPU_POINT_1)
                                       FORWARD_ALL(TNCPU_POINT_1)
                                       BACKWARD(TNCPU_POINT_2) BACKWARD_ALL(TNCPU_POINT_2)};
/* clang-format on */
static const char *const floats[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const numbers[] = {"*:" TNCPU_NUMBERS, NULL};
static const char *const most[] = {"*:" TNCPU_MOST, NULL};

/* clang-format off */
TNCPU_POINT_PREPARE(unary_prepare, rows)
/* clang-format on */

#define KERNEL_FLOAT(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, floats)
#define KERNEL_NUMBER(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, numbers)
#define KERNEL_MOST(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, most)
/* clang-format off */
const tn_kernel *const tncpu_family_unary[] = {
    FORWARD(KERNEL_NUMBER) FORWARD_FLOAT(KERNEL_FLOAT) FORWARD_ALL(KERNEL_MOST) BACKWARD(KERNEL_FLOAT)
    BACKWARD_ALL(KERNEL_MOST) NULL,
};
/* clang-format on */

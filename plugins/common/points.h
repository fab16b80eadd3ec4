/*
 * Pointwise operators: X(operator, loop of the lists). A row here, and its definition in the core, is all
 * that a new one needs to run on hosts and on GPUs.
 */
#ifndef TNB_POINTS_H
#define TNB_POINTS_H

/* Of two arrays of one shape. */
#define TNB_ELEMWISE_2(X)                                                                                    \
    X(elemwise_add, ADD)                                                                                     \
    X(elemwise_sub, SUB)                                                                                     \
    X(elemwise_mul, MUL)                                                                                     \
    X(elemwise_div, DIV)                                                                                     \
    X(_grad_add, ADD)                                                                                        \
    X(_scatter_elemwise_div, DIV)                                                                            \
    X(_mod, MOD)                                                                                             \
    X(_power, POWER)                                                                                         \
    X(_maximum, MAXIMUM)                                                                                     \
    X(_minimum, MINIMUM)                                                                                     \
    X(_hypot, HYPOT)                                                                                         \
    X(_equal, EQUAL)                                                                                         \
    X(_not_equal, NOT_EQUAL)                                                                                 \
    X(_greater, GREATER)                                                                                     \
    X(_greater_equal, GREATER_EQUAL)                                                                         \
    X(_lesser, LESSER)                                                                                       \
    X(_lesser_equal, LESSER_EQUAL)                                                                           \
    X(_logical_and, AND)                                                                                     \
    X(_logical_or, OR)                                                                                       \
    X(_logical_xor, XOR)

/* Of one array, of every data type. */
#define TNB_ELEMWISE_1(X)                                                                                    \
    X(_copy, COPY)                                                                                           \
    X(BlockGrad, COPY)                                                                                       \
    X(make_loss, COPY)                                                                                       \
    X(MakeLoss, COPY)                                                                                        \
    X(zeros_like, ZERO)                                                                                      \
    X(ones_like, ONE)

/* Of one array of numbers; integers are computed as doubles. */
#define TNB_UNARY_NUMBERS(X)                                                                                 \
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

/* Of one array of floating point. */
#define TNB_UNARY_FLOATS(X) X(hard_sigmoid, HARD_SIGMOID)

/* Of one array of numbers of every kind. */
#define TNB_UNARY_MOST(X)                                                                                    \
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

/* Of what arrives, and what the forward read or gave. */
#define TNB_UNARY_BACK_FLOATS(X)                                                                             \
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

/* Of the same for integers, too. */
#define TNB_UNARY_BACK_MOST(X)                                                                               \
    X(_backward_relu, STEP_BACK)                                                                             \
    X(_backward_abs, SIGN_BACK)                                                                              \
    X(_backward_clip, CLIP_BACK)

/* Of an array and a number: run-time attribute 0. */
#define TNB_SCALAR(X)                                                                                        \
    X(_plus_scalar, ADD)                                                                                     \
    X(_scatter_plus_scalar, ADD)                                                                             \
    X(_minus_scalar, SUB)                                                                                    \
    X(_scatter_minus_scalar, SUB)                                                                            \
    X(_rminus_scalar, RSUB)                                                                                  \
    X(_mul_scalar, MUL)                                                                                      \
    X(_div_scalar, DIV)                                                                                      \
    X(_rdiv_scalar, RDIV)                                                                                    \
    X(_mod_scalar, MOD)                                                                                      \
    X(_rmod_scalar, RMOD)                                                                                    \
    X(_power_scalar, POWER)                                                                                  \
    X(_rpower_scalar, RPOWER)                                                                                \
    X(_maximum_scalar, MAXIMUM)                                                                              \
    X(_minimum_scalar, MINIMUM)                                                                              \
    X(_hypot_scalar, HYPOT)                                                                                  \
    X(_equal_scalar, EQUAL)                                                                                  \
    X(_not_equal_scalar, NOT_EQUAL)                                                                          \
    X(_greater_scalar, GREATER)                                                                              \
    X(_greater_equal_scalar, GREATER_EQUAL)                                                                  \
    X(_lesser_scalar, LESSER)                                                                                \
    X(_lesser_equal_scalar, LESSER_EQUAL)                                                                    \
    X(_logical_and_scalar, AND)                                                                              \
    X(_logical_or_scalar, OR)                                                                                \
    X(_logical_xor_scalar, XOR)

/* Of dy, x: the number is the loop's own attribute. */
#define TNB_SCALAR_BACK(X) X(_backward__power_scalar, POWER_BACK)

/* Of two arrays that broadcast to each other. */
#define TNB_BROADCAST_2(X)                                                                                   \
    X(broadcast_add, ADD)                                                                                    \
    X(broadcast_sub, SUB)                                                                                    \
    X(broadcast_mul, MUL)                                                                                    \
    X(broadcast_div, DIV)                                                                                    \
    X(broadcast_mod, MOD)                                                                                    \
    X(broadcast_power, POWER)                                                                                \
    X(broadcast_maximum, MAXIMUM)                                                                            \
    X(broadcast_minimum, MINIMUM)                                                                            \
    X(broadcast_hypot, HYPOT)                                                                                \
    X(broadcast_equal, EQUAL)                                                                                \
    X(broadcast_not_equal, NOT_EQUAL)                                                                        \
    X(broadcast_greater, GREATER)                                                                            \
    X(broadcast_greater_equal, GREATER_EQUAL)                                                                \
    X(broadcast_lesser, LESSER)                                                                              \
    X(broadcast_lesser_equal, LESSER_EQUAL)                                                                  \
    X(broadcast_logical_and, AND)                                                                            \
    X(broadcast_logical_or, OR)                                                                              \
    X(broadcast_logical_xor, XOR)

/* Of one array that broadcasts to a given shape. */
#define TNB_BROADCAST_1(X)                                                                                   \
    X(broadcast_to, COPY)                                                                                    \
    X(broadcast_axis, COPY)

/* Of the same to the shape of a second one. */
#define TNB_BROADCAST_LIKE(X)                                                                                \
    X(broadcast_like, COPY)                                                                                  \
    X(_stretch_like, COPY)

/* NumPy's functions that have no older name: of floating point, of numbers, of integers, of a number */

#define TNB_NUMPY_QUESTIONS(X)                                                                              \
    X(_npi_isfinite, IS_FINITE)                                                                             \
    X(_npi_isinf, IS_INF)                                                                                   \
    X(_npi_isnan, IS_NAN)                                                                                   \
    X(_npi_isneginf, IS_NEGINF)                                                                             \
    X(_npi_isposinf, IS_POSINF)
#define TNB_NUMPY_FLOATS(X) X(_npi_arctan2, ARCTAN2)
#define TNB_NUMPY_NUMBERS(X)                                                                                \
    X(_npi_copysign, COPYSIGN)                                                                              \
    X(_npi_ldexp, LDEXP)
#define TNB_NUMPY_INTEGERS(X)                                                                               \
    X(_npi_lcm, LCM)                                                                                        \
    X(_npi_bitwise_and, BIT_AND)                                                                            \
    X(_npi_bitwise_or, BIT_OR)                                                                              \
    X(_npi_bitwise_xor, BIT_XOR)
#define TNB_NUMPY_SCALARS(X)                                                                                \
    X(_npi_copysign_scalar, COPYSIGN)                                                                       \
    X(_npi_rcopysign_scalar, RCOPYSIGN)                                                                     \
    X(_npi_ldexp_scalar, LDEXP)                                                                             \
    X(_npi_rldexp_scalar, RLDEXP)                                                                           \
    X(_npi_arctan2_scalar, ARCTAN2)                                                                         \
    X(_npi_rarctan2_scalar, RARCTAN2)
#define TNB_NUMPY_INTEGER_SCALARS(X)                                                                        \
    X(_npi_lcm_scalar, LCM)                                                                                 \
    X(_npi_bitwise_and_scalar, BIT_AND)                                                                     \
    X(_npi_bitwise_or_scalar, BIT_OR)                                                                       \
    X(_npi_bitwise_xor_scalar, BIT_XOR)
#define TNB_NUMPY_NOTS(X) X(_npi_bitwise_not, BIT_NOT)

#endif

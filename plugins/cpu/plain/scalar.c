/* Kernels of an array and a number. The number is run-time attribute 0: it is read at each call. */
#include "loops.h"

#define OPS(X)                                                                                               \
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

/* dy, x: the number is the loop's own attribute. */
#define BACKWARD(X) X(_backward__power_scalar, POWER_BACK)

/* clang-format off */
static const tncpu_point rows[] = {OPS(TNCPU_POINT_SCALAR) BACKWARD(TNCPU_POINT_2)};
/* clang-format on */
static const char *const most[] = {"*:" TNCPU_MOST, NULL};
static const char *const floats[] = {"*:" TNCPU_FLOATS, NULL};

/* clang-format off */
TNCPU_POINT_PREPARE(scalar_prepare, rows)
/* clang-format on */

#define KERNEL(op, id) TNCPU_POINT_KERNEL(op, scalar_prepare, most)
#define KERNEL_BACK(op, id) TNCPU_POINT_KERNEL(op, scalar_prepare, floats)
const tn_kernel *const tncpu_family_scalar[] = {OPS(KERNEL) BACKWARD(KERNEL_BACK) NULL};

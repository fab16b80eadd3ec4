/* Kernels of NumPy's functions that have no older name. */
#include "loops.h"

#define QUESTIONS(X)                                                                                         \
    X(_npi_isfinite, IS_FINITE)                                                                              \
    X(_npi_isinf, IS_INF)                                                                                    \
    X(_npi_isnan, IS_NAN)                                                                                    \
    X(_npi_isneginf, IS_NEGINF)                                                                              \
    X(_npi_isposinf, IS_POSINF)
#define FLOATS(X) X(_npi_arctan2, ARCTAN2)
#define NUMBERS(X)                                                                                           \
    X(_npi_copysign, COPYSIGN)                                                                               \
    X(_npi_ldexp, LDEXP)
#define INTEGERS(X)                                                                                          \
    X(_npi_lcm, LCM)                                                                                         \
    X(_npi_bitwise_and, BIT_AND)                                                                             \
    X(_npi_bitwise_or, BIT_OR)                                                                               \
    X(_npi_bitwise_xor, BIT_XOR)
#define SCALARS(X)                                                                                           \
    X(_npi_copysign_scalar, COPYSIGN)                                                                        \
    X(_npi_rcopysign_scalar, RCOPYSIGN)                                                                      \
    X(_npi_ldexp_scalar, LDEXP)                                                                              \
    X(_npi_rldexp_scalar, RLDEXP)                                                                            \
    X(_npi_arctan2_scalar, ARCTAN2)                                                                          \
    X(_npi_rarctan2_scalar, RARCTAN2)
#define INTEGER_SCALARS(X)                                                                                   \
    X(_npi_lcm_scalar, LCM)                                                                                  \
    X(_npi_bitwise_and_scalar, BIT_AND)                                                                      \
    X(_npi_bitwise_or_scalar, BIT_OR)                                                                        \
    X(_npi_bitwise_xor_scalar, BIT_XOR)
#define NOTS(X) X(_npi_bitwise_not, BIT_NOT)

/* clang-format off */
static const tncpu_point rows[] = {
    QUESTIONS(TNCPU_POINT_1) FLOATS(TNCPU_POINT_2) NUMBERS(TNCPU_POINT_2) INTEGERS(TNCPU_POINT_2)
    SCALARS(TNCPU_POINT_SCALAR) INTEGER_SCALARS(TNCPU_POINT_SCALAR) NOTS(TNCPU_POINT_1)
};
/* clang-format on */
/* The bits of a bool: one that has others beside the first would be another true. */
static const tncpu_point bool_rows[] = {
    {"_npi_bitwise_not", TNCPU_NOT, 1, TNCPU_NO_SCALAR},
    {"_npi_bitwise_and_scalar", TNCPU_AND, 2, 1},
    {"_npi_bitwise_or_scalar", TNCPU_OR, 2, 1},
    {"_npi_bitwise_xor_scalar", TNCPU_XOR, 2, 1},
    {"_npi_lcm_scalar", TNCPU_AND, 2, 1},
};
static const char *const floats[] = {"*:" TNCPU_FLOATS, NULL};
static const char *const most[] = {"*:" TNCPU_MOST, NULL};
static const char *const numbers[] = {"*:" TNCPU_NUMBERS, NULL};
static const char *const integers[] = {"*:u8,i32,i8,i64,bool,i16,u16,u32", NULL};

/* clang-format off */
TNCPU_POINT_PREPARE(numpy_prepare, rows)
TNCPU_POINT_PREPARE(bool_prepare, bool_rows)
/* clang-format on */

static tn_status bits_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return (node->out[0]->dtype == TN_BOOL ? bool_prepare : numpy_prepare)(plugin, node, plan, err);
}

#define KERNEL_FLOAT(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, floats)
#define KERNEL_MOST(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, most)
#define KERNEL_NUMBER(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, numbers)
#define KERNEL_INTEGER(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, integers)
#define KERNEL_BITS(op, id) TNCPU_POINT_KERNEL(op, bits_prepare, integers)
/* clang-format off */
const tn_kernel *const tncpu_family_numpy[] = {
    QUESTIONS(KERNEL_MOST) FLOATS(KERNEL_FLOAT) NUMBERS(KERNEL_NUMBER) INTEGERS(KERNEL_INTEGER)
    SCALARS(KERNEL_MOST) INTEGER_SCALARS(KERNEL_BITS) NOTS(KERNEL_BITS) NULL,
};
/* clang-format on */

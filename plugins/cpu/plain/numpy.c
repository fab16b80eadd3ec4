/* Kernels of NumPy's functions that have no older name. */
#include "../../common/points.h"
#include "loops.h"

/* clang-format off */
static const tncpu_point rows[] = {
    TNB_NUMPY_QUESTIONS(TNCPU_POINT_1) TNB_NUMPY_FLOATS(TNCPU_POINT_2) TNB_NUMPY_NUMBERS(TNCPU_POINT_2)
    TNB_NUMPY_INTEGERS(TNCPU_POINT_2)
    TNB_NUMPY_SCALARS(TNCPU_POINT_SCALAR) TNB_NUMPY_INTEGER_SCALARS(TNCPU_POINT_SCALAR)
    TNB_NUMPY_NOTS(TNCPU_POINT_1)
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
static const char *const integers[] = {"*:u8,i32,i8,i64,bool,i16,u16,u32", NULL};

/* clang-format off */
TNCPU_POINT_PREPARE(numpy_prepare, rows)
TNCPU_POINT_PREPARE(bool_prepare, bool_rows)
/* clang-format on */

static tn_status bits_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return (node->out[0]->dtype == TN_BOOL ? bool_prepare : numpy_prepare)(plugin, node, plan, err);
}

#define KERNEL_FLOAT(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, tncpu_floats)
#define KERNEL_MOST(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, tncpu_most)
#define KERNEL_NUMBER(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, tncpu_numeric)
#define KERNEL_INTEGER(op, id) TNCPU_POINT_KERNEL(op, numpy_prepare, integers)
#define KERNEL_BITS(op, id) TNCPU_POINT_KERNEL(op, bits_prepare, integers)
/* clang-format off */
const tn_kernel *const tncpu_family_numpy[] = {
    TNB_NUMPY_QUESTIONS(KERNEL_MOST) TNB_NUMPY_FLOATS(KERNEL_FLOAT) TNB_NUMPY_NUMBERS(KERNEL_NUMBER)
    TNB_NUMPY_INTEGERS(KERNEL_INTEGER)
    TNB_NUMPY_SCALARS(KERNEL_MOST) TNB_NUMPY_INTEGER_SCALARS(KERNEL_BITS) TNB_NUMPY_NOTS(KERNEL_BITS) NULL,
};
/* clang-format on */

/* Kernels of one input, element by element, and their gradients: rows over the loops of loops_float.list. */
#include "../../common/points.h"
#include "loops.h"

/* clang-format off */
static const tncpu_point rows[] = {TNB_UNARY_NUMBERS(TNCPU_POINT_1) TNB_UNARY_FLOATS(TNCPU_POINT_1)
                                       TNB_UNARY_MOST(TNCPU_POINT_1)
                                       TNB_UNARY_BACK_FLOATS(TNCPU_POINT_2)
                                       TNB_UNARY_BACK_MOST(TNCPU_POINT_2)};
TNCPU_POINT_PREPARE(unary_prepare, rows)
/* clang-format on */

#define KERNEL_FLOAT(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, tncpu_floats)
#define KERNEL_NUMBER(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, tncpu_numeric)
#define KERNEL_MOST(op, id) TNCPU_POINT_KERNEL(op, unary_prepare, tncpu_most)
/* clang-format off */
const tn_kernel *const tncpu_family_unary[] = {
    TNB_UNARY_NUMBERS(KERNEL_NUMBER) TNB_UNARY_FLOATS(KERNEL_FLOAT) TNB_UNARY_MOST(KERNEL_MOST)
    TNB_UNARY_BACK_FLOATS(KERNEL_FLOAT) TNB_UNARY_BACK_MOST(KERNEL_MOST) NULL,
};
/* clang-format on */

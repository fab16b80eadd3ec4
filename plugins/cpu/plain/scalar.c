/* Kernels of an array and a number. The number is run-time attribute 0: it is read at each call. */
#include "../../common/points.h"
#include "loops.h"

/* clang-format off */
static const tncpu_point rows[] = {TNB_SCALAR(TNCPU_POINT_SCALAR) TNB_SCALAR_BACK(TNCPU_POINT_2)};
TNCPU_POINT_PREPARE(scalar_prepare, rows)
/* clang-format on */

#define KERNEL(op, id) TNCPU_POINT_KERNEL(op, scalar_prepare, tncpu_most)
#define KERNEL_BACK(op, id) TNCPU_POINT_KERNEL(op, scalar_prepare, tncpu_floats)
const tn_kernel *const tncpu_family_scalar[] = {TNB_SCALAR(KERNEL) TNB_SCALAR_BACK(KERNEL_BACK) NULL};

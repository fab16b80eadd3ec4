/* Kernels of two arrays that broadcast to each other, and of one that broadcasts to a given shape. */
#include "../../common/points.h"
#include "loops.h"

/* The second input gives the shape only. */
#define LIKE_ROW(op, id) {#op, TNCPU_##id, 1, TNCPU_NO_SCALAR},

/* clang-format off */
static const tncpu_point rows[] = {TNB_BROADCAST_2(TNCPU_POINT_2) TNB_BROADCAST_1(TNCPU_POINT_1)
                                       TNB_BROADCAST_LIKE(LIKE_ROW)};
TNCPU_POINT_PREPARE(broadcast_prepare, rows)
/* clang-format on */

static tn_status like_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_node one = *node;

    one.in_count = 1;
    return broadcast_prepare(plugin, &one, plan, err);
}

#define KERNEL2(op, id) TNCPU_POINT_KERNEL(op, broadcast_prepare, tncpu_most)
#define KERNEL1(op, id) TNCPU_POINT_KERNEL(op, broadcast_prepare, tncpu_all)
#define KERNEL_LIKE(op, id) TNCPU_POINT_KERNEL(op, like_prepare, tncpu_all)
const tn_kernel *const tncpu_family_broadcast[] = {TNB_BROADCAST_2(KERNEL2) TNB_BROADCAST_1(KERNEL1)
                                                       TNB_BROADCAST_LIKE(KERNEL_LIKE) NULL};

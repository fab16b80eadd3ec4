/* Kernels of two arrays that broadcast to each other, and of one that broadcasts to a given shape. */
#include "loops.h"

#define OPS2(X)                                                                                              \
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

#define OPS1(X)                                                                                              \
    X(broadcast_to, COPY)                                                                                    \
    X(broadcast_axis, COPY)

/* The second input gives the shape only. */
#define OPS_LIKE(X)                                                                                          \
    X(broadcast_like, COPY)                                                                                  \
    X(_stretch_like, COPY)

#define LIKE_ROW(op, id) {#op, TNCPU_##id, 1, TNCPU_NO_SCALAR},

/* clang-format off */
static const tncpu_point rows[] = {OPS2(TNCPU_POINT_2) OPS1(TNCPU_POINT_1) OPS_LIKE(LIKE_ROW)};
/* clang-format on */
static const char *const most[] = {"*:" TNCPU_MOST, NULL};
static const char *const all[] = {"*:" TNCPU_ALL, NULL};

/* clang-format off */
TNCPU_POINT_PREPARE(broadcast_prepare, rows)
/* clang-format on */

static tn_status like_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_node one = *node;

    one.in_count = 1;
    return broadcast_prepare(plugin, &one, plan, err);
}

#define KERNEL2(op, id) TNCPU_POINT_KERNEL(op, broadcast_prepare, most)
#define KERNEL1(op, id) TNCPU_POINT_KERNEL(op, broadcast_prepare, all)
#define KERNEL_LIKE(op, id) TNCPU_POINT_KERNEL(op, like_prepare, all)
const tn_kernel *const tncpu_family_broadcast[] = {OPS2(KERNEL2) OPS1(KERNEL1) OPS_LIKE(KERNEL_LIKE) NULL};

/* dot and batch_dot on the plugin's own matrix product: see ../common/matrix.inc.
 * Short floats: as float32. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/matrix.inc"

#include "short.h"

static const char *const short_types[] = {"lhs:f16,bf16", "*:=lhs", NULL};

#define SHORT(id, op)                                                                                        \
    TNCPU_SHORT_BESIDE(short_##id, op, short_types, TN_KERNEL_EMPTY_OK, id##_prepare, id##_run)
/* clang-format off */
SHORT(dot, "dot")
SHORT(backward_dot, "_backward_dot")
SHORT(batch_dot, "batch_dot")
SHORT(backward_batch_dot, "_backward_batch_dot")

const tn_kernel *const tncpu_family_matrix[] = {
    &dot, &backward_dot, &batch_dot, &backward_batch_dot,
    &short_dot, &short_backward_dot, &short_batch_dot, &short_backward_batch_dot, NULL,
};
/* clang-format on */

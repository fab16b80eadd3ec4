/* dot and batch_dot on the plugin's own matrix product: see ../common/matrix.inc. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/matrix.inc"

const tn_kernel *const tncpu_family_matrix[] = {&dot, &backward_dot, &batch_dot, &backward_batch_dot, NULL};

/* FullyConnected on the plugin's own matrix product: see ../common/dense.inc. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/dense.inc"

const tn_kernel *const tncpu_family_dense[] = {&fully_connected, &backward_fully_connected, NULL};

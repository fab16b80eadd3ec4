/* Convolution on the plugin's own matrix product: see ../common/conv.inc. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/conv.inc"

const tn_kernel *const tncpu_family_conv[] = {&convolution, &backward_convolution, NULL};

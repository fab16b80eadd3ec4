/* Convolution on OpenBLAS: see ../common/conv.inc. */
#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/conv.inc"

const tn_kernel *const tnblas_family_conv[] = {&convolution, &backward_convolution, NULL};

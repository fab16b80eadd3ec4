/* FullyConnected on OpenBLAS: see ../common/dense.inc. */
#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/dense.inc"

const tn_kernel *const tnblas_family_dense[] = {&fully_connected, &backward_fully_connected, NULL};

/* dot and batch_dot on OpenBLAS: see ../common/matrix.inc. */
#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/matrix.inc"

const tn_kernel *const tnblas_family_matrix[] = {&dot, &backward_dot, &batch_dot, &backward_batch_dot, NULL};

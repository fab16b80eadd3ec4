/* RNN on OpenBLAS: see ../common/rnn.inc. */
#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/rnn.inc"

const tn_kernel *const tnblas_family_rnn[] = {&rnn_kernel, &backward_rnn_kernel, NULL};

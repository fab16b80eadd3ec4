/* Convolution and Deconvolution on OpenBLAS: see ../common/conv.inc. */
#define KERNEL_NAME "openblas"
#define KERNEL_RANK 128
#include "../common/conv.inc"
#include "../common/deconv.inc"

const tn_kernel *const tnblas_family_conv[] = {
    &convolution, &backward_convolution, &deconvolution, &backward_deconvolution,
    &upsampling,  &backward_upsampling,  NULL,
};

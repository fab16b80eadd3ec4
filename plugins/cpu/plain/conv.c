/* Convolution on the plugin's own matrix product: see ../common/conv.inc. Short floats: as float32. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/conv.inc"

#include "short.h"

static const char *const short_types[] = {"data:f16,bf16", "*:=data", NULL};

/* clang-format off */
TNCPU_SHORT_BESIDE(short_forward, "Convolution", short_types, 0, convolution_prepare, convolution_run)
TNCPU_SHORT_BESIDE(short_backward, "_backward_Convolution", short_types, TN_KERNEL_EMPTY_OK,
                   backward_convolution_prepare, backward_convolution_run)
/* clang-format on */

const tn_kernel *const tncpu_family_conv[] = {&convolution, &backward_convolution, &short_forward,
                                              &short_backward, NULL};

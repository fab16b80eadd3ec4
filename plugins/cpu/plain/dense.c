/* FullyConnected on the plugin's own matrix product: see ../common/dense.inc. Short floats: as float32. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/dense.inc"

#include "short.h"

static const char *const short_types[] = {"data:f16,bf16", "*:=data", NULL};

/* clang-format off */
TNCPU_SHORT_BESIDE(short_forward, "FullyConnected", short_types, TN_KERNEL_EMPTY_OK, dense_prepare, dense_run)
TNCPU_SHORT_BESIDE(short_backward, "_backward_FullyConnected", short_types, TN_KERNEL_EMPTY_OK,
                   backward_dense_prepare, backward_dense_run)
/* clang-format on */

const tn_kernel *const tncpu_family_dense[] = {&fully_connected, &backward_fully_connected, &short_forward,
                                               &short_backward, NULL};

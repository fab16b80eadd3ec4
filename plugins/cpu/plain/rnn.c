/* RNN on the plugin's own matrix product: see ../common/rnn.inc. Short floats: as float32. */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/rnn.inc"

#include "short.h"

#define SHORT_LENGTHS RNN_LENGTHS ",f16,bf16"
static const char *const short_types[] = {"data:f16,bf16", SHORT_LENGTHS, "*:=data", NULL};
static const char *const backward_short_types[] = {"dy:f16,bf16", SHORT_LENGTHS, "*:=dy", NULL};

/* clang-format off */
TNCPU_SHORT_NAMED(short_forward, "RNN", "short", short_types, TN_KERNEL_EMPTY_OK, rnn_prepare, rnn_run,
                  false, 0)
TNCPU_SHORT_NAMED(short_backward, "_backward_RNN", "short", backward_short_types, TN_KERNEL_EMPTY_OK,
                  backward_rnn_prepare, backward_rnn_run, true, 0)
/* clang-format on */

const tn_kernel *const tncpu_family_rnn[] = {&rnn_kernel, &backward_rnn_kernel, &short_forward,
                                             &short_backward, NULL};

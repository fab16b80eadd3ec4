/* A table of kernels without a list. */
#include "tenon/plugin/op.h"

static const tn_kernel_table table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu")};
static const tn_capability *const tables[] = {&table.head, NULL};

TN_PLUGIN_DEFINE("defect-kernel-no-list", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "kernels@cpu", NULL, NULL, NULL, tables);

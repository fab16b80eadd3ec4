/* A table that ends before its last function. */
#include "healthy.h"

#define defect_ops short_ops
DEFECT_CREATE

static const tn_pool_ops short_ops = {
    .head = TN_CAPABILITY(tn_pool_ops, stats, TN_KIND_POOL, "first-fit"),
    .create = create,
    .alloc = pool_alloc,
    .free = pool_free,
    .trim = pool_trim,
    .stats = pool_stats,
    .destroy = pool_destroy,
};
static const tn_capability *const tables[] = {&short_ops.head, NULL};

TN_PLUGIN_DEFINE("defect-table-size", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "pool:first-fit",
                 NULL, NULL, NULL, tables);

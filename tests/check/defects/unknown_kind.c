/* A table of a kind that is a sketch. */
#include "healthy.h"

#include "tenon/plugin/iter.h"

static const tn_iter_ops ring = {.head = TN_CAPABILITY(tn_iter_ops, close, TN_KIND_ITER, "ring")};
static const tn_capability *const tables[] = {&pool_ops.head, &ring.head, NULL};

TN_PLUGIN_DEFINE("defect-unknown-kind", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit iter:ring", NULL, NULL, NULL, tables);

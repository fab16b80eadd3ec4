/* A table of a kind that is a sketch. */
#include "healthy.h"

#include "tenon/plugin/collective.h"

static const tn_collective_ops ring = {
    .head = TN_CAPABILITY(tn_collective_ops, destroy, TN_KIND_COLLECTIVE, "ring")};
static const tn_capability *const tables[] = {&pool_ops.head, &ring.head, NULL};

TN_PLUGIN_DEFINE("defect-unknown-kind", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit collective:ring", NULL, NULL, NULL, tables);

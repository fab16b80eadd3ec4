/* A table of a kind that is a sketch. */
#include "healthy.h"

#include "tenon/plugin/transport.h"

static const tn_transport_ops wire = {.head =
                                          TN_CAPABILITY(tn_transport_ops, close, TN_KIND_TRANSPORT, "wire")};
static const tn_capability *const tables[] = {&pool_ops.head, &wire.head, NULL};

TN_PLUGIN_DEFINE("defect-unknown-kind", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "pool:first-fit transport:wire", NULL, NULL, NULL, tables);

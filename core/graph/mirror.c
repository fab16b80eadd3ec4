/*
 * Mirror marks: the nodes whose results a backward may compute again instead of keeping them. The choice is
 * MXNet's: all but layers that cost much, or only those that a symbol names with __force_mirroring__.
 */
#include <string.h>

#include "graph/graph.h"

static bool listed(const tni_gnode *node, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(node->def->op->name, *names))
            return true;
    return false;
}

void tni_graph_mirror(tni_graph *g, bool all)
{
    static const char *const never[] = {"Dropout", NULL};
    static const char *const dear[] = {"Convolution", "FullyConnected", "Concat", "SoftmaxOutput", NULL};

    for (uint32_t n = 0; n < g->node_count; n++) {
        tni_gnode *node = &g->nodes[n];

        if (!node->def)
            continue;
        if (listed(node, never))
            node->flags &= ~TNI_GNODE_MIRROR;
        else if (all && !listed(node, dear))
            node->flags |= TNI_GNODE_MIRROR;
    }
}

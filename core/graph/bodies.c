/* Graphs within a node, as the functions of its operator's definition see them. */
#include <string.h>

#include "graph/graph.h"

static tn_status graph_of(const tn_bodies *b, uint32_t body, tni_graph **out)
{
    const tni_gnode *n = b->self;

    if (body >= b->count)
        return tni_error(TN_E_ARG, "graph %u of a node with %u", body, b->count);
    return tni_graph_of(n->subgraphs[body], out);
}

static tn_status reported(tn_status st, tn_err *err)
{
    if (st)
        tni_error_get(err);
    return st;
}

static tn_status counts(const tn_bodies *b, uint32_t body, uint32_t *in_count, uint32_t *out_count,
                        tn_err *err)
{
    tni_graph *g = NULL;
    tn_status st = graph_of(b, body, &g);

    if (!st) {
        *in_count = g->variable_count;
        *out_count = g->head_count;
    }
    tni_graph_destroy(g);
    return reported(st, err);
}

/* What is known of the outputs goes in beside the variables. */
static tn_status known_set(tni_graph *g, tn_shape *const *in, tn_shape *const *out, const int32_t *in_dtype,
                           const int32_t *out_dtype)
{
    tn_status st = TN_OK;

    for (uint32_t v = 0; v < g->variable_count && !st; v++)
        st = tni_graph_preset(g, v, in ? in[v] : NULL, in_dtype ? in_dtype[v] : -1, -1);
    for (uint32_t h = 0; h < g->head_count && !st; h++) {
        const uint32_t e = g->heads[h];

        if (out && out[h]->ndim >= 0 && g->shapes[e].ndim < 0)
            g->shapes[e] = *out[h];
        if (out_dtype && out_dtype[h] >= 0 && g->dtypes[e] < 0)
            g->dtypes[e] = out_dtype[h];
    }
    return st;
}

static tn_status infer(const tn_bodies *b, uint32_t body, uint32_t flags, tn_shape *const *in,
                       tn_shape *const *out, int32_t *in_dtype, int32_t *out_dtype, tn_err *err)
{
    tni_graph *g = NULL;
    tn_status st = graph_of(b, body, &g);

    if (!st) {
        g->np_shape = (flags & TN_INFER_NP_SHAPE) != 0;
        g->train = (flags & TN_INFER_TRAIN) != 0;
        if (!(st = known_set(g, in, out, in_dtype, out_dtype)))
            st = tni_graph_infer(g, true);
    }
    for (uint32_t v = 0; !st && v < g->variable_count; v++) {
        const uint32_t e = g->nodes[g->variables[v]].first_entry;

        if (in)
            *in[v] = g->shapes[e];
        if (in_dtype)
            in_dtype[v] = g->dtypes[e];
    }
    for (uint32_t h = 0; !st && h < g->head_count; h++) {
        if (out)
            *out[h] = g->shapes[g->heads[h]];
        if (out_dtype)
            out_dtype[h] = g->dtypes[g->heads[h]];
    }
    tni_graph_destroy(g);
    return reported(st, err);
}

tn_bodies tni_bodies_of(const tni_gnode *n)
{
    return (tn_bodies){.struct_size = TN_END(tn_bodies, infer),
                       .count = n->subgraph_count,
                       .self = (void *)(uintptr_t)n,
                       .counts = counts,
                       .infer = infer};
}

/* ---- giving a node its graphs --------------------------------------------------------------------- */

/* How deep graphs nest within `s`, itself counted, to `most` at most. */
static tn_status depth_of(tni_symbol *s, uint32_t most, uint32_t *out)
{
    tni_graph *g = NULL;
    tn_status st = most ? tni_graph_of(s, &g) : TN_OK;

    *out = 1;
    for (uint32_t n = 0; g && n < g->node_count && !st; n++)
        for (uint32_t i = 0; i < g->nodes[n].subgraph_count && !st; i++) {
            uint32_t within = 0;

            if (!(st = depth_of(g->nodes[n].subgraphs[i], most - 1, &within)) && within + 1 > *out)
                *out = within + 1;
        }
    tni_graph_destroy(g);
    return st;
}

tn_status tni_symbol_bodies(tni_symbol *atomic, uint32_t count, tni_symbol *const *bodies)
{
    tni_node *n = atomic->outputs[0].node;
    uint32_t depth = 0;
    tn_status st = TN_OK;

    if (n->def->op->exec != TN_EXEC_SUBGRAPH || count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "operator %s runs no graphs of its own, or not %u", n->def->op->name,
                         count);
    for (uint32_t i = 0; i < count && !st; i++) {
        if (!bodies[i] || bodies[i]->ops != atomic->ops)
            return tni_error(TN_E_ARG, "graph %u is missing or belongs to another context", i);
        if (!(st = depth_of(bodies[i], TNI_BODIES_DEPTH_MAX, &depth)) && depth + 1 >= TNI_BODIES_DEPTH_MAX)
            st = tni_error(TN_E_ARG, "graph %u: graphs within graphs nest deeper than %u", i,
                           TNI_BODIES_DEPTH_MAX);
    }
    if (st || !(n->subgraphs = tni_calloc(count + 1, sizeof(*n->subgraphs))))
        return st ? st : TN_E_NOMEM;
    for (; n->subgraph_count < count; n->subgraph_count++) {
        tni_symbol_retain(bodies[n->subgraph_count]);
        n->subgraphs[n->subgraph_count] = bodies[n->subgraph_count];
    }
    return TN_OK;
}

/* A part of a flat graph as a graph of its own: what its nodes read from outside becomes variables. */
#include <string.h>

#include "graph/walk.h"

typedef struct parter {
    const tni_graph *g;
    tni_graph *to;
    uint32_t *map;     /* entry of g -> entry of `to`; TNI_NONE */
    uint32_t *outside; /* per variable of `to`: the entry of g that it stands for */
} parter;

static void entry_take(const parter *w, uint32_t from, uint32_t to)
{
    w->map[from] = to;
    w->to->shapes[to] = w->g->shapes[from];
    w->to->dtypes[to] = w->g->dtypes[from];
    w->to->storages[to] = w->g->storages[from];
}

/* The entry of the part that stands for entry `e`: made there, or a variable. */
static tn_status entry_find(const parter *w, uint32_t e, uint32_t *out)
{
    uint32_t node;
    tn_status st;

    if (w->map[e] == TNI_NONE) {
        if ((st = tni_graph_add_variable(w->to, w->g->nodes[w->g->entry_node[e]].name, &node)))
            return st;
        w->outside[w->to->nodes[node].variable] = e;
        entry_take(w, e, w->to->nodes[node].first_entry);
    }
    *out = w->map[e];
    return TN_OK;
}

static tn_status node_take(const parter *w, uint32_t index)
{
    const tni_gnode *n = &w->g->nodes[index];
    uint32_t *inputs = tni_calloc(n->input_count + 1u, sizeof *inputs), node = 0;
    tn_status st = inputs ? TN_OK : TN_E_NOMEM;
    tni_gnode *made;

    for (uint32_t i = 0; i < n->input_count && !st; i++)
        st = entry_find(w, tni_graph_input(w->g, n, i), &inputs[i]);
    if (!st)
        st = tni_graph_add_node(w->to, n->def, n->attrs, n->name, n->input_count, inputs, &node);
    tni_free(inputs);
    if (st)
        return st;
    made = &w->to->nodes[node];
    made->random = n->random;
    made->flags = n->flags;
    made->dict = n->dict;
    made->device = n->device;
    made->subgraphs = n->subgraphs;
    made->subgraph_count = n->subgraph_count;
    for (uint32_t o = 0; o < n->output_count; o++)
        entry_take(w, n->first_entry + o, made->first_entry + o);
    return TN_OK;
}

static tn_status heads_take(const parter *w, uint32_t count, const uint32_t *heads)
{
    uint32_t *list = tni_calloc(count + 1u, sizeof *list);
    tn_status st = list ? TN_OK : TN_E_NOMEM;

    for (uint32_t h = 0; h < count && !st; h++)
        st = entry_find(w, heads[h], &list[h]);
    if (!st)
        st = tni_graph_set_heads(w->to, count, list);
    tni_free(list);
    return st;
}

tn_status tni_graph_part(const tni_graph *g, const uint8_t *take, uint32_t head_count, const uint32_t *heads,
                         tni_graph **out, uint32_t *outside)
{
    parter w = {.g = g, .outside = outside, .map = tni_alloc((g->entry_count + 1ull) * sizeof *w.map)};
    tn_status st = w.map ? tni_graph_create(g->ops, &w.to) : TN_E_NOMEM;

    if (w.map)
        memset(w.map, 0xff, (g->entry_count + 1ull) * sizeof *w.map);
    for (uint32_t n = 0; n < g->node_count && !st; n++)
        if (take[n] && g->nodes[n].def)
            st = node_take(&w, n);
    if (!st && !(st = heads_take(&w, head_count, heads))) {
        w.to->random_count = g->random_count;
        w.to->np_shape = g->np_shape;
        w.to->train = g->train;
        if ((w.to->symbol = g->symbol))
            tni_symbol_retain(g->symbol);
        *out = w.to; /* moved */
        w.to = NULL;
    }
    tni_graph_destroy(w.to);
    tni_free(w.map);
    return st;
}

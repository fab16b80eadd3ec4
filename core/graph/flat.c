/*
 * The flat graph: nodes in one array in topological order, their inputs in another, all outputs numbered as
 * entries. Invariant: a node's inputs are entries of nodes before it; a symbol's operators stand in the order
 * of their creation, in which eager calls would run; entries of a node are consecutive; variables stand in
 * the order of their nodes. Arrays grow by doubling; names live in the arena.
 */
#include <string.h>

#include "graph/walk.h"

#define INPUTS_TOTAL_MAX (1u << 26) /* of all nodes together */

tn_status tni_graph_create(tni_opset *ops, tni_graph **out)
{
    tni_graph *g = tni_zalloc(sizeof *g);
    tn_status st;

    if (!g)
        return TN_E_NOMEM;
    g->ops = ops;
    st = tni_arena_create(TN_TEXT_MAX, &g->arena);
    if (st) {
        tni_free(g);
        return st;
    }
    *out = g;
    return TN_OK;
}

void tni_graph_destroy(tni_graph *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->node_count; i++)
        tni_attrs_release(g->nodes[i].attrs);
    tni_free(g->nodes);
    tni_free(g->inputs);
    tni_free(g->shapes);
    tni_free(g->dtypes);
    tni_free(g->storages);
    tni_free(g->entry_node);
    tni_free(g->like);
    tni_free(g->heads);
    tni_free(g->variables);
    tni_arena_destroy(g->arena);
    tni_symbol_release(g->symbol);
    tni_free(g);
}

/* ---- growing ------------------------------------------------------------------------------------- */

static bool resized(void **p, uint32_t capacity, size_t item_bytes)
{
    void *next = tni_realloc(*p, (uint64_t)capacity * item_bytes);

    if (next)
        *p = next;
    return next != NULL;
}

/* The capacity after growing from `capacity` for `need` items. */
static uint32_t capacity_for(uint32_t capacity, uint32_t need)
{
    uint64_t next = capacity ? capacity : 16;

    while (next < need)
        next *= 2;
    return (uint32_t)next;
}

static tn_status nodes_reserve(tni_graph *g, uint32_t need)
{
    uint32_t capacity = capacity_for(g->node_capacity, need);
    void *p = g->nodes;

    if (need > TN_GRAPH_NODES_MAX)
        return tni_error(TN_E_NOMEM, "a graph has more than %u nodes", TN_GRAPH_NODES_MAX);
    if (need <= g->node_capacity)
        return TN_OK;
    if (!resized(&p, capacity, sizeof *g->nodes))
        return TN_E_NOMEM;
    g->nodes = p;
    g->node_capacity = capacity;
    return TN_OK;
}

static tn_status inputs_reserve(tni_graph *g, uint32_t more)
{
    uint32_t need = g->input_total + more;
    uint32_t capacity = capacity_for(g->input_capacity, need);
    void *p = g->inputs;

    if (need > INPUTS_TOTAL_MAX)
        return tni_error(TN_E_NOMEM, "the nodes of a graph have more than %u inputs", INPUTS_TOTAL_MAX);
    if (need <= g->input_capacity)
        return TN_OK;
    if (!resized(&p, capacity, sizeof *g->inputs))
        return TN_E_NOMEM;
    g->inputs = p;
    g->input_capacity = capacity;
    return TN_OK;
}

/* All arrays per entry have one capacity; the smallest counts if a growth fails half way. */
static tn_status entries_reserve(tni_graph *g, uint32_t more)
{
    uint32_t need = g->entry_count + more;
    uint32_t capacity = capacity_for(g->entry_capacity, need);
    void *arrays[5] = {g->shapes, g->dtypes, g->storages, g->entry_node, g->like};
    const size_t bytes[5] = {sizeof *g->shapes, sizeof *g->dtypes, sizeof *g->storages, sizeof *g->entry_node,
                             sizeof *g->like};
    bool fits = true;

    if (need > 2 * TN_GRAPH_NODES_MAX)
        return tni_error(TN_E_NOMEM, "the nodes of a graph have more than %u outputs",
                         2 * TN_GRAPH_NODES_MAX);
    if (need <= g->entry_capacity)
        return TN_OK;
    for (int i = 0; i < 5 && fits; i++)
        fits = resized(&arrays[i], capacity, bytes[i]);
    g->shapes = arrays[0];
    g->dtypes = arrays[1];
    g->storages = arrays[2];
    g->entry_node = arrays[3];
    g->like = arrays[4];
    if (!fits)
        return TN_E_NOMEM;
    g->entry_capacity = capacity;
    return TN_OK;
}

static tn_status variables_reserve(tni_graph *g)
{
    uint32_t capacity = capacity_for(g->variable_capacity, g->variable_count + 1);
    void *p = g->variables;

    if (g->variable_count < g->variable_capacity)
        return TN_OK;
    if (!resized(&p, capacity, sizeof *g->variables))
        return TN_E_NOMEM;
    g->variables = p;
    g->variable_capacity = capacity;
    return TN_OK;
}

static void entry_clear(tni_graph *g, uint32_t e, uint32_t node)
{
    g->shapes[e].ndim = TN_NDIM_UNKNOWN;
    g->shapes[e].reserved = 0;
    g->dtypes[e] = TN_DTYPE_UNKNOWN;
    g->storages[e] = TN_STORAGE_UNKNOWN;
    g->entry_node[e] = node;
    g->like[e] = TNI_NONE;
}

/* Appends a node whose counts are known; `like_this` gives def, attrs, name and counts. */
static tn_status node_append(tni_graph *g, const tni_gnode *like_this, const uint32_t *inputs, uint32_t *node)
{
    char *name;
    tni_gnode *n;
    tn_status st;

    if ((st = nodes_reserve(g, g->node_count + 1)) || (st = inputs_reserve(g, like_this->input_count)) ||
        (st = entries_reserve(g, like_this->output_count)) ||
        (st = like_this->def ? TN_OK : variables_reserve(g)))
        return st;
    name = tni_arena_strdup(g->arena, like_this->name);
    if (!name)
        return TN_E_NOMEM;
    n = &g->nodes[g->node_count];
    *n = *like_this;
    n->name = name;
    n->attrs = like_this->attrs ? tni_attrs_retain(like_this->attrs) : NULL;
    n->first_input = g->input_total;
    n->first_entry = g->entry_count;
    n->variable = TNI_NONE;
    if (!n->def) {
        n->variable = g->variable_count;
        g->variables[g->variable_count++] = g->node_count;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        g->inputs[g->input_total++] = inputs[i];
    for (uint32_t i = 0; i < n->output_count; i++)
        entry_clear(g, g->entry_count++, g->node_count);
    g->inferred = 0;
    *node = g->node_count++;
    return TN_OK;
}

tn_status tni_graph_add_variable(tni_graph *g, const char *name, uint32_t *node)
{
    const tni_gnode n = {.name = name ? name : "",
                         .output_count = 1,
                         .visible_count = 1,
                         .forward = TNI_NONE,
                         .attr_source = g->node_count,
                         .random = TNI_NONE};

    return node_append(g, &n, NULL, node);
}

/* Marks the variables that node `node` changes. */
static void aux_mark(tni_graph *g, uint32_t node)
{
    const tni_gnode *n = &g->nodes[node];

    for (uint32_t i = 0; n->def->op->mutates && i < n->input_count; i++) {
        tni_gnode *source = &g->nodes[g->entry_node[tni_graph_input(g, n, i)]];

        if (tn_op_mutates(n->def->op, n->input_count, i) && !source->def)
            source->flags |= TNI_GNODE_AUX;
    }
}

tn_status tni_graph_add_node(tni_graph *g, const tni_opdef *def, tni_attrs *attrs, const char *name,
                             uint32_t count, const uint32_t *inputs, uint32_t *node)
{
    tni_gnode n = {.def = def,
                   .attrs = attrs,
                   .name = name ? name : def->op->name,
                   .input_count = count,
                   .forward = TNI_NONE,
                   .attr_source = g->node_count,
                   .random = TNI_NONE};
    tni_args args;
    tn_status st;

    if (count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%s: %u inputs, at most %d are allowed", def->op->name, count,
                         TN_NODE_INPUTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (inputs[i] >= g->entry_count)
            return tni_error(TN_E_ARG, "%s: input %u is entry %u of %u", def->op->name, i, inputs[i],
                             g->entry_count);
    st = tni_op_args(def, attrs, count, &args);
    if (st)
        return st;
    if (args.in_count != count)
        return tni_error(TN_E_ARG, "node \"%.80s\" (%s): %u inputs, but the operator takes %u", n.name,
                         def->op->name, count, args.in_count);
    n.output_count = args.out_count;
    n.visible_count = args.visible_count;
    st = node_append(g, &n, inputs, node);
    if (st)
        return st;
    if (def->op->effects & TN_EFFECT_RANDOM)
        g->nodes[*node].random = g->random_count++;
    aux_mark(g, *node);
    return TN_OK;
}

tn_status tni_graph_set_heads(tni_graph *g, uint32_t count, const uint32_t *entries)
{
    uint32_t *heads;

    for (uint32_t i = 0; i < count; i++)
        if (entries[i] >= g->entry_count)
            return tni_error(TN_E_ARG, "head %u is entry %u of %u", i, entries[i], g->entry_count);
    heads = tni_alloc((uint64_t)count * sizeof *heads);
    if (!heads)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        heads[i] = entries[i];
    tni_free(g->heads);
    g->heads = heads;
    g->head_count = count;
    return TN_OK;
}

tni_graph_mark tni_graph_mark_get(const tni_graph *g)
{
    return (tni_graph_mark){g->node_count, g->input_total, g->entry_count, g->variable_count,
                            g->random_count};
}

void tni_graph_cut(tni_graph *g, tni_graph_mark mark)
{
    for (uint32_t i = mark.nodes; i < g->node_count; i++)
        tni_attrs_release(g->nodes[i].attrs);
    g->node_count = mark.nodes;
    g->input_total = mark.inputs;
    g->entry_count = mark.entries;
    g->variable_count = mark.variables;
    g->random_count = mark.random;
    for (uint32_t e = 0; e < g->entry_count; e++)
        if (g->like[e] != TNI_NONE && g->like[e] >= g->entry_count)
            g->like[e] = TNI_NONE;
}

/* ---- from a symbol ------------------------------------------------------------------------------- */

/* Nodes that stand for a draw are numbered by creation, so that a program draws what eager calls would. */
static void draws_number(tni_graph *g, const tni_walk *w)
{
    g->random_count = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (tni_node_random(w->nodes[i]))
            g->nodes[i].random = g->random_count++;
}

static bool text_true(const char *text)
{
    return text && (tni_str_equal(text, "True") || tni_str_equal(text, "true") || tni_str_equal(text, "1"));
}

static tn_status node_take(tni_graph *g, const tni_walk *w, const tni_node *n)
{
    uint32_t stack_inputs[16];
    uint32_t *inputs = stack_inputs;
    uint32_t node = 0;
    tn_status st;

    if (n->input_count > 16 && !(inputs = tni_calloc(n->input_count, sizeof *inputs)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = g->nodes[tni_walk_index(w, n->inputs[i].node)].first_entry + n->inputs[i].index;
    st = n->def ? tni_graph_add_node(g, n->def, n->attrs, tni_node_name(n), n->input_count, inputs, &node)
                : tni_graph_add_variable(g, tni_node_name(n), &node);
    if (inputs != stack_inputs)
        tni_free(inputs);
    if (st)
        return st;
    g->nodes[node].dict = n->dict;
    g->nodes[node].subgraphs = n->subgraphs;
    g->nodes[node].subgraph_count = n->subgraph_count;
    if (n->def && (text_true(tni_node_dict_get(n, "__force_mirroring__"))))
        g->nodes[node].flags |= TNI_GNODE_MIRROR;
    return TN_OK;
}

static tn_status heads_take(tni_graph *g, const tni_walk *w, const tni_symbol *s)
{
    uint32_t *heads = tni_calloc(s->output_count, sizeof *heads);
    tn_status st;

    if (!heads)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->output_count; i++)
        heads[i] = g->nodes[tni_walk_index(w, s->outputs[i].node)].first_entry + s->outputs[i].index;
    st = tni_graph_set_heads(g, s->output_count, heads);
    tni_free(heads);
    return st;
}

tn_status tni_graph_of(tni_symbol *s, tni_graph **out)
{
    tni_graph *g = NULL;
    tni_walk depth_first, w = {0};
    tn_status st = tni_walk_of(s, &depth_first);

    if (st)
        return st;
    if (!(st = tni_walk_by_creation(&depth_first, &w)))
        st = tni_graph_create(s->ops, &g);
    for (uint32_t i = 0; i < w.count && !st; i++)
        st = node_take(g, &w, w.nodes[i]);
    if (st)
        goto cleanup;
    draws_number(g, &w);
    if ((st = heads_take(g, &w, s)))
        goto cleanup;
    tni_symbol_retain(s);
    g->symbol = s;
    g->np_shape = s->np_shape;
    *out = g; /* moved */
    g = NULL;

cleanup:
    tni_graph_destroy(g);
    tni_walk_fini(&w);
    tni_walk_fini(&depth_first);
    return st;
}

/* ---- copies -------------------------------------------------------------------------------------- */

/* Node `i` of `g` to the end of `to`, where all before it stand: numbers of nodes and entries stay. */
static tn_status node_copy(const tni_graph *g, uint32_t i, tni_graph *to)
{
    const tni_gnode *n = &g->nodes[i];
    const uint32_t first = n->first_entry;
    uint32_t node = 0;
    tn_status st = node_append(to, n, &g->inputs[n->first_input], &node);

    if (st)
        return st;
    to->nodes[node].forward = n->forward;
    to->nodes[node].attr_source = n->attr_source;
    for (uint32_t e = first; e < first + n->output_count; e++) {
        to->shapes[e] = g->shapes[e];
        to->dtypes[e] = g->dtypes[e];
        to->storages[e] = g->storages[e];
        to->like[e] = g->like[e];
    }
    return TN_OK;
}

tn_status tni_graph_copy(const tni_graph *g, tni_graph **out)
{
    tni_graph *to = NULL;
    tn_status st = tni_graph_create(g->ops, &to);

    for (uint32_t i = 0; i < g->node_count && !st; i++)
        st = node_copy(g, i, to);
    if (st || (st = tni_graph_set_heads(to, g->head_count, g->heads))) {
        tni_graph_destroy(to);
        return st;
    }
    to->random_count = g->random_count;
    to->inferred = g->inferred;
    to->np_shape = g->np_shape;
    to->train = g->train;
    if (g->symbol)
        tni_symbol_retain(g->symbol);
    to->symbol = g->symbol;
    *out = to;
    return TN_OK;
}

/* Nodes are in topological order, so one walk backwards does. */
void tni_graph_wanted(const tni_graph *g, uint32_t first_node, uint8_t *wanted)
{
    for (uint32_t i = 0; i < g->head_count; i++)
        wanted[g->entry_node[g->heads[i]]] = 1;
    for (uint32_t n = g->node_count; n-- > first_node;) {
        const tni_gnode *node = &g->nodes[n];

        if (node->def && node->def->op->mutates && !(node->flags & TNI_GNODE_BACKWARD))
            wanted[n] = 1; /* an effect that somebody asked for by composing it */
        if (!wanted[n] || !node->def)
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            wanted[g->entry_node[tni_graph_input(g, node, i)]] = 1;
    }
}

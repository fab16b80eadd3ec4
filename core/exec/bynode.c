/*
 * Graphs that break: nodes that cannot be part of a program run one by one, as if the caller had called them,
 * and so do all others of the graph: those of a cached operator, and of a backward pass behind its forward
 * (`first_node`). What a net's nodes record is what eager calls record, so gradients are theirs. The log says
 * so once, and each call is counted.
 *
 * Random nodes use the draws that a program would give them: one block of draws, numbered by creation.
 */
#include "exec/internal.h"

#include <string.h>

typedef struct node_plan { /* how a node runs; site NULL: it does not */
    tni_site *site;
    tni_prepared *forward; /* of a backward node: what its forward ran on; retained */
    uint32_t saved_input;  /* the block that this left; TNI_NONE */
} node_plan;

struct tni_bynode {
    const tni_graph *g;
    node_plan *plans; /* per node */
    uint32_t *uses;   /* per entry: nodes and heads that read it */
    tni_port *inputs;
    uint32_t input_count;
    tni_device *device;
    uint32_t draws; /* of one call: a backward pass takes none */
    tni_site *copy; /* of heads that are no fresh result */
    tni_break first;
};

void tni_bynode_destroy(tni_bynode *b)
{
    if (!b)
        return;
    for (uint32_t n = 0; b->plans && n < b->g->node_count; n++) {
        tni_site_release(b->plans[n].site);
        tni_prepared_release(b->plans[n].forward);
    }
    tni_site_release(b->copy);
    tni_free(b->plans);
    tni_free(b->uses);
    tni_free(b->inputs);
    tni_free(b);
}

/* ---- making ------------------------------------------------------------------------------------------ */

static tn_status node_plan_make(tni_context *c, const tni_bynode_spec *spec, tni_bynode *b, uint32_t n)
{
    const tni_graph *g = b->g;
    const tni_gnode *node = &g->nodes[n];
    node_plan *plan = &b->plans[n];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t entry = tni_graph_input(g, node, i), from = g->entry_node[entry];
        const tni_gnode *maker = &g->nodes[from];

        if (from >= spec->first_node && maker->def && entry - maker->first_entry >= maker->visible_count)
            return tni_error(TN_E_UNSUPPORTED,
                             "node \"%s\" reads an output of \"%s\" that callers do not see", node->name,
                             maker->name);
        b->uses[entry]++;
    }
    if (spec->forward && node->flags & TNI_GNODE_BACKWARD && node->forward < spec->first_node &&
        (plan->forward = spec->forward[node->forward]) != NULL)
        tni_prepared_retain(plan->forward);
    return tni_site_of(c, node->def, node->attrs, &plan->site);
}

static tn_status plans_make(tni_context *c, const tni_bynode_spec *spec, tni_bynode *b)
{
    const tni_graph *g = b->g;
    uint8_t *wanted = tni_calloc(g->node_count + 1u, 1);
    tn_status st = wanted ? tni_site_create(c, "_copy", 0, NULL, NULL, &b->copy) : TN_E_NOMEM;

    if (!st)
        tni_graph_wanted(g, spec->first_node, wanted);
    for (uint32_t n = spec->first_node; !st && n < g->node_count; n++) {
        b->plans[n].saved_input = TNI_NONE;
        if (g->nodes[n].def && wanted[n])
            st = node_plan_make(c, spec, b, n);
    }
    for (uint32_t h = 0; h < g->head_count; h++)
        b->uses[g->heads[h]]++;
    tni_free(wanted);
    return st;
}

static void input_add(tni_bynode *b, uint32_t entry)
{
    b->inputs[b->input_count++] = (tni_port){.entry = entry,
                                             .saved_node = TNI_NONE,
                                             .dtype = b->g->dtypes[entry],
                                             .shape = b->g->shapes[entry],
                                             .mode = TN_MODE_WRITE};
}

/* As those of a program (compile/place.c), but for blocks that the chosen kernel may not read: it is not
 * known yet. */
static tn_status inputs_make(const tni_bynode_spec *spec, tni_bynode *b)
{
    const tni_graph *g = b->g;

    b->inputs = tni_calloc((uint64_t)g->entry_count + g->node_count + 1u, sizeof *b->inputs);
    if (!b->inputs)
        return TN_E_NOMEM;
    for (uint32_t v = 0; spec->first_node == 0 && v < g->variable_count; v++)
        input_add(b, g->nodes[g->variables[v]].first_entry);
    for (uint32_t e = 0; spec->first_node && e < g->entry_count; e++)
        if (b->uses[e] && (g->entry_node[e] < spec->first_node || !g->nodes[g->entry_node[e]].def))
            input_add(b, e);
    for (uint32_t n = spec->first_node; n < g->node_count; n++) {
        const tni_prepared *forward = b->plans[n].forward;

        if (!forward || !forward->plan.saved_bytes)
            continue;
        b->plans[n].saved_input = b->input_count;
        b->inputs[b->input_count++] =
            (tni_port){.entry = TNI_NONE,
                       .saved_node = g->nodes[n].forward,
                       .dtype = TN_U8,
                       .shape = {.ndim = 1, .dim = {(int64_t)forward->plan.saved_bytes}},
                       .mode = TN_MODE_WRITE};
    }
    return TN_OK;
}

/* TN_E_UNSUPPORTED: nothing breaks the graph, or one node could not even run by itself. */
static tn_status breaks_find(tni_context *c, const tni_bynode_spec *spec, tni_break *first)
{
    const tni_breaks_spec ask = {.graph = spec->graph,
                                 .device = spec->device,
                                 .threads = c->exec->threads,
                                 .first_node = spec->first_node,
                                 .forward = spec->forward,
                                 .flags = spec->flags};
    tni_vec found;
    tn_status st;

    tni_vec_init(&found, sizeof(tni_break), TN_GRAPH_NODES_MAX);
    st = tni_graph_breaks(c->selector, &ask, &found);
    if (!st && !found.count)
        st = TN_E_UNSUPPORTED;
    for (size_t i = 0; !st && i < found.count; i++)
        if (!((const tni_break *)tni_vec_at(&found, i))->runs)
            st = TN_E_UNSUPPORTED;
    if (!st)
        *first = *(const tni_break *)tni_vec_at(&found, 0);
    tni_vec_fini(&found);
    return st;
}

tn_status tni_bynode_create(tni_context *c, const tni_bynode_spec *spec, tni_bynode **out)
{
    const tni_graph *g = spec->graph;
    tni_bynode *b = tni_zalloc(sizeof *b);
    tn_status st;

    if (!b)
        return TN_E_NOMEM;
    b->g = g;
    b->device = spec->device;
    b->draws = spec->first_node ? 0 : g->random_count;
    b->plans = tni_calloc(g->node_count + 1u, sizeof *b->plans);
    b->uses = tni_calloc(g->entry_count + 1u, sizeof *b->uses);
    if (!b->plans || !b->uses)
        st = TN_E_NOMEM;
    else if (!(st = breaks_find(c, spec, &b->first)) && !(st = plans_make(c, spec, b)))
        st = inputs_make(spec, b);
    if (st)
        tni_bynode_destroy(b);
    else
        *out = b;
    return st;
}

const tni_gnode *tni_bynode_first(const tni_bynode *b)
{
    return &b->g->nodes[b->first.node];
}

void tni_bynode_tell(const tni_context *c, const tni_bynode *b, const char *what)
{
    const tni_gnode *node = tni_bynode_first(b);

    tni_logf(&c->log, TN_LEVEL_WARNING, "%s node by node: \"%s\" (%s) cannot be part of a program: %s", what,
             node->name, node->def->op->name, b->first.why);
}

const tni_port *tni_bynode_inputs(const tni_bynode *b, uint32_t *count)
{
    *count = b->input_count;
    return b->inputs;
}

/* ---- a call ------------------------------------------------------------------------------------------ */

typedef struct bynode_call {
    const tni_bynode *b;
    const tni_graph *g;
    tni_array *const *inputs;
    const tni_attrs *const *sources; /* per node, or NULL */
    tni_array **values;              /* per entry; each is a reference */
    uint32_t *left;                  /* per entry: uses to come */
    tni_array **in, **made;          /* scratch: of the widest node */
    tni_array **heads;               /* per head: the result, a reference */
    uint64_t draw;                   /* the first of the call's */
    tni_array *const *given;         /* per head: the caller's array, or NULL */
} bynode_call;

static tn_status call_init(bynode_call *k)
{
    const tni_graph *g = k->g;
    uint32_t widest = 0;

    for (uint32_t n = 0; n < g->node_count; n++)
        if (g->nodes[n].input_count + g->nodes[n].output_count > widest)
            widest = g->nodes[n].input_count + g->nodes[n].output_count;
    k->values = tni_calloc(g->entry_count + 1u, sizeof(*k->values));
    k->left = tni_calloc(g->entry_count + 1u, sizeof *k->left);
    k->in = tni_calloc(2ull * widest + 2, sizeof(*k->in));
    k->heads = tni_calloc(g->head_count + 1u, sizeof(*k->heads));
    if (!k->values || !k->left || !k->in || !k->heads)
        return TN_E_NOMEM;
    k->made = k->in + widest + 1;
    memcpy(k->left, k->b->uses, g->entry_count * sizeof *k->left);
    return TN_OK;
}

static void call_fini(bynode_call *k)
{
    for (uint32_t e = 0; k->values && e < k->g->entry_count; e++)
        tni_array_release(k->values[e]);
    for (uint32_t h = 0; k->heads && h < k->g->head_count; h++)
        tni_array_release(k->heads[h]);
    tni_free(k->values);
    tni_free(k->left);
    tni_free(k->in);
    tni_free(k->heads);
}

/* The head that output `entry` of a node may be written into directly; TNI_NONE: none is given. */
static uint32_t head_given(const bynode_call *k, const tni_gnode *node, uint32_t entry)
{
    for (uint32_t h = 0; h < k->g->head_count; h++)
        if (k->g->heads[h] == entry && k->given[h] && !(node->def->op->flags & TN_OP_VIEW))
            return h;
    return TNI_NONE;
}

/* The node's attributes with the run-time values of the call that it is the backward of; NULL: as they are.
 */
static tn_status attrs_of_call(const bynode_call *k, const tni_gnode *node, tni_attrs **out)
{
    const tni_gnode *source = node->attr_source == TNI_NONE ? NULL : &k->g->nodes[node->attr_source];
    const tni_attrs *from = source && source != node && k->sources ? k->sources[node->attr_source] : NULL;
    tn_status st = TN_OK;

    *out = NULL;
    for (uint32_t a = 0; !st && from && source->def && a < node->def->attr_count; a++) {
        const int32_t at = tni_attr_index(source->def, node->def->op->attrs[a].name);
        tni_attrs *next = NULL;

        if (at < 0 || !(node->def->op->attrs[a].flags & TN_ATTR_F_RUNTIME))
            continue;
        if (!(st = tni_attrs_with(*out ? *out : node->attrs, a, from->values[at], &next))) {
            tni_attrs_release(*out);
            *out = next;
        }
    }
    return st;
}

static tn_status node_run(bynode_call *k, uint32_t n)
{
    const tni_gnode *node = &k->g->nodes[n];
    const node_plan *plan = &k->b->plans[n];
    const uint64_t draw = k->draw + node->random; /* of a random one */
    tni_invoke_given given = {.forward = plan->forward};
    tn_status st;

    if ((st = attrs_of_call(k, node, &given.attrs))) {
        tni_attrs_release(given.attrs);
        return st;
    }
    if (plan->saved_input != TNI_NONE)
        given.saved = k->inputs[plan->saved_input];
    for (uint32_t i = 0; i < node->input_count; i++)
        k->in[i] = k->values[tni_graph_input(k->g, node, i)];
    for (uint32_t o = 0; o < node->visible_count; o++) {
        const uint32_t h = head_given(k, node, node->first_entry + o);

        k->made[o] = h == TNI_NONE ? NULL : k->given[h];
        if (k->made[o])
            tni_array_retain(k->made[o]);
    }
    tni_scope_get()->draw = node->random == TNI_NONE ? NULL : &draw;
    st = tni_invoke_with(plan->site, &given, node->input_count, k->in, node->visible_count, k->made);
    tni_scope_get()->draw = NULL;
    tni_attrs_release(given.attrs);
    for (uint32_t o = 0; o < node->visible_count; o++)
        k->values[node->first_entry + o] = k->made[o];
    for (uint32_t i = 0; !st && i < node->input_count; i++) {
        const uint32_t entry = tni_graph_input(k->g, node, i);

        if (--k->left[entry] == 0) {
            tni_array_release(k->values[entry]);
            k->values[entry] = NULL;
        }
    }
    return st;
}

/* Inputs, views and results that are several heads are copied: each output is an array of its own. */
static tn_status head_take(bynode_call *k, uint32_t h)
{
    const uint32_t entry = k->g->heads[h];
    const tni_gnode *node = &k->g->nodes[k->g->entry_node[entry]];
    tni_array *value = k->values[entry];
    bool fresh = k->b->plans[k->g->entry_node[entry]].site && !(node->def->op->flags & TN_OP_VIEW) &&
                 (!k->given[h] || k->given[h] == value);

    for (uint32_t i = 0; i < k->g->head_count; i++)
        fresh &= i == h || (k->heads[i] != value && k->given[i] != value);
    if (!fresh) {
        if ((k->heads[h] = k->given[h]))
            tni_array_retain(k->heads[h]);
        return tni_invoke(k->b->copy, 1, &value, 1, &k->heads[h]);
    }
    tni_array_retain(k->heads[h] = value);
    return TN_OK;
}

static tn_status call_run(tni_context *c, bynode_call *k)
{
    const tni_graph *g = k->g;
    tn_status st = call_init(k);

    if (!st && k->b->draws)
        k->draw = tni_random_take(c, k->b->device, k->b->draws);
    for (uint32_t i = 0; !st && i < k->b->input_count; i++)
        if (k->b->inputs[i].entry != TNI_NONE)
            tni_array_retain(k->values[k->b->inputs[i].entry] = k->inputs[i]);
    for (uint32_t n = 0; !st && n < g->node_count; n++)
        if (k->b->plans[n].site)
            st = node_run(k, n);
    for (uint32_t h = 0; !st && h < g->head_count; h++)
        st = head_take(k, h);
    return st;
}

tn_status tni_bynode_call(tni_context *c, const tni_bynode *b, tni_array *const *in,
                          const tni_attrs *const *sources, tni_array **out)
{
    bynode_call k = {.b = b, .g = b->g, .inputs = in, .sources = sources, .given = out};
    tni_scope *scope = tni_scope_get();
    const bool np_shape = scope->np_shape;
    tni_device *const device = scope->device;
    tn_status st;

    atomic_fetch_add_explicit(&c->exec->by_node, 1, memory_order_relaxed);
    scope->np_shape = np_shape || b->g->np_shape;
    scope->device = b->device; /* of nodes without inputs */
    st = call_run(c, &k);
    scope->device = device;
    scope->np_shape = np_shape;
    for (uint32_t h = 0; !st && h < b->g->head_count; h++)
        if (!out[h]) {
            out[h] = k.heads[h]; /* moved */
            k.heads[h] = NULL;
        }
    call_fini(&k);
    return st;
}

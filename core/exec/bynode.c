/*
 * Cached operators whose graph breaks: nodes that cannot be part of a program run one by one, as if the
 * caller had called them, and so do all others of the graph. What is recorded is what eager calls record, so
 * gradients are theirs. The log says so once per cached operator, and each call is counted.
 *
 * Random nodes use the draws that a program would give them: one block of draws, numbered by creation.
 */
#include "exec/internal.h"

#include <string.h>

struct tni_bynode {
    tni_site **sites; /* per node; NULL: a variable */
    uint32_t *uses;   /* per entry: nodes and heads that read it */
    uint32_t node_count;
    tni_device *device;
    tni_site *copy; /* of heads that are no fresh result */
};

void tni_bynode_destroy(tni_bynode *b)
{
    if (!b)
        return;
    for (uint32_t n = 0; b->sites && n < b->node_count; n++)
        tni_site_release(b->sites[n]);
    tni_site_release(b->copy);
    tni_free(b->sites);
    tni_free(b->uses);
    tni_free(b);
}

static tn_status sites_make(tni_context *c, const tni_graph *g, tni_bynode *b)
{
    tn_status st = tni_site_create(c, "_copy", 0, NULL, NULL, &b->copy);

    b->sites = tni_calloc(g->node_count + 1u, sizeof(*b->sites));
    b->uses = tni_calloc(g->entry_count + 1u, sizeof *b->uses);
    if (!b->sites || !b->uses)
        return TN_E_NOMEM;
    b->node_count = g->node_count;
    for (uint32_t n = 0; !st && n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];

        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t entry = tni_graph_input(g, node, i);
            const tni_gnode *from = &g->nodes[g->entry_node[entry]];

            if (from->def && entry - from->first_entry >= from->visible_count)
                return tni_error(TN_E_UNSUPPORTED,
                                 "node \"%s\" reads an output of \"%s\" that callers do not see", node->name,
                                 from->name);
            b->uses[entry]++;
        }
        if (node->def)
            st = tni_site_of(c, node->def, node->attrs, &b->sites[n]);
    }
    for (uint32_t h = 0; h < g->head_count; h++)
        b->uses[g->heads[h]]++;
    return st;
}

/* The first node that breaks the graph goes to the log; TN_E_UNSUPPORTED: one could not even run by itself.
 */
static tn_status breaks_tell(tni_cached_op *op, const tni_vec *found)
{
    const tni_graph *g = op->graph;
    const tni_break *first = found->count ? tni_vec_at(found, 0) : NULL;

    for (size_t i = 0; i < found->count; i++)
        if (!((const tni_break *)tni_vec_at(found, i))->runs)
            return TN_E_UNSUPPORTED;
    if (!first)
        return TN_E_UNSUPPORTED;
    if (!op->told)
        tni_logf(&op->ctx->log, TN_LEVEL_WARNING,
                 "a net runs node by node: \"%s\" (%s) cannot be part of a program: %s%s",
                 g->nodes[first->node].name, g->nodes[first->node].def->op->name, first->why,
                 found->count > 1 ? "; nor can others" : "");
    op->told = true;
    return TN_OK;
}

tn_status tni_bynode_create(tni_cached_op *op, const tni_graph *g, tni_device *device, uint16_t flags,
                            tni_bynode **out)
{
    tni_context *c = op->ctx;
    tni_bynode *b = NULL;
    tni_vec found;
    tn_status st;

    tni_vec_init(&found, sizeof(tni_break), TN_GRAPH_NODES_MAX);
    st = tni_graph_breaks(c->selector, g, device, c->exec->threads, flags, &found);
    if (!st)
        st = breaks_tell(op, &found);
    tni_vec_fini(&found);
    if (st)
        return st;
    if (!(b = tni_zalloc(sizeof *b)))
        return TN_E_NOMEM;
    b->device = device;
    if ((st = sites_make(c, g, b)))
        tni_bynode_destroy(b);
    else
        *out = b;
    return st;
}

/* ---- a call ------------------------------------------------------------------------------------------ */

typedef struct bynode_call {
    const tni_bynode *b;
    const tni_graph *g;
    tni_array **values;      /* per entry; each is a reference */
    uint32_t *left;          /* per entry: uses to come */
    tni_array **in, **made;  /* scratch: of the widest node */
    tni_array **heads;       /* per head: the result, a reference */
    uint64_t draw;           /* the first of the call's */
    tni_array *const *given; /* per head: the caller's array, or NULL */
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

static tn_status node_run(bynode_call *k, uint32_t n)
{
    const tni_gnode *node = &k->g->nodes[n];
    const uint64_t draw = k->draw + node->random; /* of a random one */
    tn_status st;

    for (uint32_t i = 0; i < node->input_count; i++)
        k->in[i] = k->values[tni_graph_input(k->g, node, i)];
    for (uint32_t o = 0; o < node->visible_count; o++) {
        const uint32_t h = head_given(k, node, node->first_entry + o);

        k->made[o] = h == TNI_NONE ? NULL : k->given[h];
        if (k->made[o])
            tni_array_retain(k->made[o]);
    }
    tni_scope_get()->draw = node->random == TNI_NONE ? NULL : &draw;
    st = tni_invoke(k->b->sites[n], node->input_count, k->in, node->visible_count, k->made);
    tni_scope_get()->draw = NULL;
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
    bool fresh = node->def && !(node->def->op->flags & TN_OP_VIEW) && (!k->given[h] || k->given[h] == value);

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

static tn_status call_run(tni_context *c, bynode_call *k, tni_array *const *in)
{
    const tni_graph *g = k->g;
    tn_status st = call_init(k);

    if (!st && g->random_count)
        k->draw = tni_random_take(c, k->b->device, g->random_count);
    for (uint32_t i = 0; !st && i < g->variable_count; i++)
        tni_array_retain(k->values[g->nodes[g->variables[i]].first_entry] = in[i]);
    for (uint32_t n = 0; !st && n < g->node_count; n++)
        if (g->nodes[n].def)
            st = node_run(k, n);
    for (uint32_t h = 0; !st && h < g->head_count; h++)
        st = head_take(k, h);
    return st;
}

tn_status tni_bynode_call(tni_context *c, const tni_bynode *b, const tni_graph *g, tni_array *const *in,
                          tni_array **out)
{
    bynode_call k = {.b = b, .g = g, .given = out};
    tni_scope *scope = tni_scope_get();
    const bool np_shape = scope->np_shape;
    tni_device *const device = scope->device;
    tn_status st;

    atomic_fetch_add_explicit(&c->exec->by_node, 1, memory_order_relaxed);
    scope->np_shape = np_shape || g->np_shape;
    scope->device = b->device; /* of nodes without inputs */
    st = call_run(c, &k, in);
    scope->device = device;
    scope->np_shape = np_shape;
    for (uint32_t h = 0; !st && h < g->head_count; h++)
        if (!out[h]) {
            out[h] = k.heads[h]; /* moved */
            k.heads[h] = NULL;
        }
    call_fini(&k);
    return st;
}

/*
 * Small nets, and those that are not hybridized: their operators are called one by one, as if the caller had
 * called them, and are recorded one by one. MXNet's flag inline_limit asks for it.
 *
 * Random operators use the draws that a program would give them. Inputs, views and results that are several
 * heads are copied, so that each output is an array of its own, as of a program.
 */
#include "exec/internal.h"

#include <string.h>

struct tni_inlined {
    const tni_graph *g; /* borrowed: the entry's */
    tni_site **sites;   /* per node; NULL: a variable, or nobody needs it */
    uint32_t *uses;     /* per entry: nodes and heads that read it */
    uint32_t widest;    /* inputs or outputs of a node */
    tni_device *device;
    tni_site *copy;
    tni_watch watch;
};

bool tni_inlines(const tni_graph *g, uint32_t limit)
{
    uint32_t count = 0;

    for (uint32_t n = 0; n < g->node_count && count <= limit; n++) {
        const tni_gnode *node = &g->nodes[n];

        if (node->def && ((!node->input_count && limit < UINT32_MAX) ||
                          node->def->op->exec == TN_EXEC_SUBGRAPH))
            return false; /* its shape may come from its readers; a call has no graphs to run */
        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t entry = tni_graph_input(g, node, i);
            const tni_gnode *from = &g->nodes[g->entry_node[entry]];

            if (from->def && entry - from->first_entry >= from->visible_count)
                return false; /* callers do not see this output */
        }
        count += node->def != NULL;
    }
    return limit && count <= limit;
}

void tni_inlined_destroy(tni_inlined *b)
{
    if (!b)
        return;
    for (uint32_t n = 0; b->sites && n < b->g->node_count; n++)
        tni_site_release(b->sites[n]);
    tni_site_release(b->copy);
    tni_free((void *)b->sites);
    tni_free(b->uses);
    tni_free(b);
}

static tn_status sites_make(tni_context *c, tni_inlined *b)
{
    const tni_graph *g = b->g;
    uint8_t *wanted = tni_calloc(g->node_count + 1u, 1);
    tn_status st = wanted ? tni_site_create(c, "_copy", 0, NULL, NULL, &b->copy) : TN_E_NOMEM;

    if (!st)
        tni_graph_wanted(g, 0, wanted);
    for (uint32_t n = 0; !st && n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];

        if (!node->def || !wanted[n])
            continue;
        for (uint32_t i = 0; i < node->input_count; i++)
            b->uses[tni_graph_input(g, node, i)]++;
        if (node->input_count > b->widest)
            b->widest = node->input_count;
        if (node->output_count > b->widest)
            b->widest = node->output_count;
        st = tni_site_of(c, node->def, node->attrs, &b->sites[n]);
    }
    for (uint32_t h = 0; h < g->head_count; h++)
        b->uses[g->heads[h]]++;
    tni_free(wanted);
    return st;
}

tn_status tni_inlined_create(tni_context *c, const tni_graph *g, tni_device *device, const tni_watch *watch,
                             tni_inlined **out)
{
    tni_inlined *b = tni_zalloc(sizeof *b);
    tn_status st = TN_E_NOMEM;

    if (!b)
        return st;
    b->g = g;
    b->device = device;
    b->watch = *watch;
    b->sites = tni_calloc(g->node_count + 1u, sizeof(*b->sites));
    b->uses = tni_calloc(g->entry_count + 1u, sizeof *b->uses);
    if (b->sites && b->uses && !(st = sites_make(c, b)))
        *out = b;
    else
        tni_inlined_destroy(b);
    return st;
}

/* ---- a call -------------------------------------------------------------------------------------------- */

typedef struct inlined_call {
    const tni_inlined *b;
    const tni_graph *g;
    tni_array **values; /* per entry; each is a reference */
    uint32_t *left;     /* per entry: uses to come */
    tni_array **in, **made;
    tni_array **heads;       /* per head: the result, a reference */
    tni_array *const *given; /* per head: the caller's array, or NULL */
    tni_tape_entry **before; /* per head: what was recorded of that array */
    uint64_t draw;           /* the first of the call's */
} inlined_call;

static tn_status call_init(inlined_call *k, tni_array *const *in)
{
    const tni_graph *g = k->g;
    const uint64_t widest = k->b->widest;

    k->values = tni_calloc(g->entry_count + g->head_count + 2 * widest + 1u, sizeof(*k->values));
    k->left = tni_calloc(g->entry_count + 1u, sizeof *k->left);
    k->before = tni_calloc(g->head_count + 1u, sizeof(*k->before));
    if (!k->values || !k->left || !k->before)
        return TN_E_NOMEM;
    k->heads = k->values + g->entry_count;
    k->in = k->heads + g->head_count;
    k->made = k->in + widest;
    memcpy(k->left, k->b->uses, g->entry_count * sizeof *k->left);
    for (uint32_t v = 0; v < g->variable_count; v++)
        tni_array_retain(k->values[g->nodes[g->variables[v]].first_entry] = in[v]);
    return TN_OK;
}

static void call_fini(inlined_call *k)
{
    for (uint32_t i = 0; k->values && i < k->g->entry_count + k->g->head_count; i++)
        tni_array_release(k->values[i]);
    tni_free((void *)k->values);
    tni_free((void *)k->before);
    tni_free(k->left);
}

/* The array of the caller that a node's output may be written into at once; NULL: none. */
static tni_array *head_given(const inlined_call *k, const tni_gnode *node, uint32_t entry)
{
    for (uint32_t h = 0; h < k->g->head_count; h++)
        if (k->g->heads[h] == entry && k->given[h] && !(node->def->op->flags & TN_OP_VIEW) &&
            !tni_op_keeps(node->def, node->attrs)) /* a program's arrays hold nothing before */
            return k->given[h];
    return NULL;
}

/* What has no inputs may have its shape from its readers, which a call does not know. */
static tn_status shape_check(const inlined_call *k, const tni_gnode *node)
{
    const tn_shape *shape = &k->g->shapes[node->first_entry];

    if (!tn_shape_known(shape) || tni_array_has_shape(k->made[0], shape->ndim, shape->dim))
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED,
                     "node %.80s has its shape from its readers, in a net called operator by operator",
                     node->name);
}

static tn_status node_run(inlined_call *k, uint32_t n)
{
    const tni_gnode *node = &k->g->nodes[n];
    const uint64_t draw = k->draw + node->random; /* of a random one */
    tni_scope *scope = tni_scope_get();
    tn_status st;

    for (uint32_t i = 0; i < node->input_count; i++)
        k->in[i] = k->values[tni_graph_input(k->g, node, i)];
    if (k->b->watch.fn && (st = k->b->watch.fn(k->b->watch.arg, node, false, k->in)))
        return st;
    for (uint32_t o = 0; o < node->visible_count; o++)
        if ((k->made[o] = head_given(k, node, node->first_entry + o)) != NULL)
            tni_array_retain(k->made[o]);
    scope->draw = node->random == TNI_NONE ? NULL : &draw;
    st = tni_invoke(k->b->sites[n], node->input_count, k->in, node->visible_count, k->made);
    scope->draw = NULL;
    for (uint32_t o = 0; o < node->visible_count; o++)
        k->values[node->first_entry + o] = k->made[o];
    if (!st && !node->input_count)
        st = shape_check(k, node);
    if (!st && k->b->watch.fn)
        st = k->b->watch.fn(k->b->watch.arg, node, true, k->made);
    for (uint32_t i = 0; !st && i < node->input_count; i++) {
        const uint32_t entry = tni_graph_input(k->g, node, i);

        if (--k->left[entry] == 0) {
            tni_array_release(k->values[entry]);
            k->values[entry] = NULL;
        }
    }
    return st;
}

static tn_status head_take(inlined_call *k, uint32_t h)
{
    const uint32_t entry = k->g->heads[h], from = k->g->entry_node[entry];
    tni_array *value = k->values[entry];
    bool fresh = k->b->sites[from] && !(k->g->nodes[from].def->op->flags & TN_OP_VIEW) &&
                 (!k->given[h] || k->given[h] == value);

    for (uint32_t i = 0; i < k->g->head_count; i++)
        fresh &= i == h || (k->heads[i] != value && k->given[i] != value);
    if (fresh) {
        tni_array_retain(k->heads[h] = value);
        return TN_OK;
    }
    if ((k->heads[h] = k->given[h]) != NULL)
        tni_array_retain(k->heads[h]);
    return tni_invoke(k->b->copy, 1, &value, 1, &k->heads[h]);
}

/* The call gives the caller's arrays new values, so what was recorded of the old ones does not keep them from
 * being written. */
static void given_forget(inlined_call *k)
{
    for (uint32_t h = 0; h < k->g->head_count; h++)
        if (k->given[h]) {
            k->before[h] = k->given[h]->grad_entry;
            k->given[h]->grad_entry = NULL;
        }
}

/* They have it back if the call failed. */
static void given_remember(inlined_call *k, bool failed)
{
    for (uint32_t h = 0; k->before && h < k->g->head_count; h++) {
        if (failed && k->before[h]) {
            tni_array_forget(k->given[h]);
            k->given[h]->grad_entry = k->before[h];
        } else {
            tni_tape_entry_release(k->before[h]);
        }
    }
}

static tn_status call_run(inlined_call *k, tni_array *const *in)
{
    tn_status st = call_init(k, in);

    if (!st)
        given_forget(k);

    for (uint32_t n = 0; !st && n < k->g->node_count; n++)
        if (k->b->sites[n])
            st = node_run(k, n);
    for (uint32_t h = 0; !st && h < k->g->head_count; h++)
        st = head_take(k, h);
    return st;
}

tn_status tni_inlined_call(tni_context *c, const tni_inlined *b, tni_array *const *in, tni_array **out)
{
    inlined_call k = {.b = b, .g = b->g, .given = out};
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st;

    if (b->g->random_count)
        k.draw = before.draw ? *before.draw : tni_random_take(c, b->device, b->g->random_count);
    scope->np_shape = before.np_shape || b->g->np_shape;
    scope->device = b->device;
    st = call_run(&k, in);
    given_remember(&k, st != TN_OK);
    scope->np_shape = before.np_shape;
    scope->device = before.device;
    scope->draw = before.draw;
    for (uint32_t h = 0; !st && h < b->g->head_count; h++)
        if (!out[h]) {
            out[h] = k.heads[h]; /* moved */
            k.heads[h] = NULL;
        }
    call_fini(&k);
    return st;
}

/*
 * Gradients of gradients. The tape becomes one graph, nets on it as their operators; its gradient is called
 * operator by operator while recording, over arrays that know where they come from. So what comes out is on
 * the tape itself, with the bits that any backward over this tape gives.
 */
#include "autograd/higher.h"
#include "autograd/forward.h"

#include <string.h>

typedef struct higher {
    const tni_higher_spec *spec;
    tni_tape_walk w;
    tni_forward f;
    tni_forward_tables tables;
    uint32_t *first_slot, slot_count;
    uint32_t *heads, *head_vars; /* entries; nodes, of those that lead to something */
    uint32_t *which_head;        /* the head of each */
    uint32_t *wanted, *which;    /* entries; the variable of each */
    uint32_t *grads, head_count, wanted_count;
    uint32_t forward_nodes, forward_entries;
    uint8_t *used;       /* per node: something wanted depends on it */
    tni_source *sources; /* per entry of the forward part that is read */
    tni_array **value;   /* per entry */
} higher;

/* ---- the walk ------------------------------------------------------------------------------------------ */

static void walk_end(higher *h)
{
    tni_mutex_lock(h->spec->lock);
    tni_tape_leave(&h->w, false);
    tni_mutex_unlock(h->spec->lock);
    tni_tape_walk_fini(&h->w);
}

/* A net whose gradient was refused says why. */
static tn_status nets_find(const higher *h, bool *found)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < h->w.nodes.count && !st; i++) {
        const tni_tape_call *n = tni_tape_at(&h->w, i);

        if (n->function)
            return tni_error(TN_E_UNSUPPORTED,
                             "function %.80s: its backward cannot be recorded, so gradients through it have "
                             "no gradients of their own",
                             tni_tape_name(n));
        *found |= n->cached != NULL;
        st = n->cached ? tni_tape_refusal(n) : TN_OK;
    }
    return st;
}

/* ---- the graph ----------------------------------------------------------------------------------------- */

static tn_status slots_number(higher *h)
{
    const uint64_t heads = h->spec->head_count + 1ull, variables = h->spec->variable_count + 1ull;
    uint32_t *lists = tni_calloc(h->w.nodes.count + 1 + 3 * heads + 3 * variables, sizeof *lists);

    if (!lists)
        return TN_E_NOMEM;
    h->first_slot = lists;
    h->heads = lists + h->w.nodes.count + 1;
    h->head_vars = h->heads + heads;
    h->which_head = h->head_vars + heads;
    h->wanted = h->which_head + heads;
    h->which = h->wanted + variables;
    h->grads = h->which + variables;
    for (uint32_t k = 0; k < h->w.nodes.count; k++) {
        h->first_slot[k] = h->slot_count;
        h->slot_count += tni_tape_at(&h->w, k)->out_count;
    }
    return TN_OK;
}

/* The entry of a leaf that is a head, or is wanted: no operator may read it. */
static tn_status leaf_entry(higher *h, tni_array *a, uint32_t *entry)
{
    const uint32_t leaf = tni_tape_leaf(&h->w, a);
    const tni_tape_spec like = {a->storage->device, a->ndim, a->dtype, a->shape};
    const tni_source from = {TNI_FROM_LEAF, 0, leaf};
    tn_status st;

    *entry = leaf == TNI_NONE ? TNI_NONE : h->tables.leaf_entry[leaf];
    if (leaf == TNI_NONE || *entry != TNI_NONE)
        return TN_OK;
    if ((st = tni_forward_variable(&h->f, &like, &from, &h->tables.leaf_entry[leaf])))
        return st;
    *entry = h->tables.leaf_entry[leaf];
    return TN_OK;
}

/* TNI_NONE: the edge is of no node. */
static uint32_t slot_entry(const higher *h, tni_tape_edge e)
{
    return e.node == TNI_NONE ? TNI_NONE : h->tables.slot_entry[h->first_slot[e.node] + e.index];
}

/* Heads that are leaves which nobody asks for lead nowhere. */
static tn_status heads_find(higher *h)
{
    const tni_higher_spec *s = h->spec;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->head_count && !st; i++) {
        const tni_tape_edge e = tni_tape_head(&h->w, i);
        uint32_t entry = slot_entry(h, e);

        if (e.node == TNI_NONE)
            st = leaf_entry(h, s->heads[i], &entry);
        if (entry == TNI_NONE)
            continue;
        h->heads[h->head_count] = entry;
        h->which_head[h->head_count++] = i;
    }
    return st;
}

static tn_status wanted_find(higher *h)
{
    const tni_higher_spec *s = h->spec;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->variable_count && !st; i++) {
        uint32_t entry = slot_entry(h, tni_tape_wanted(&h->w, i));

        if (!s->variables[i]->grad_entry)
            st = leaf_entry(h, s->variables[i], &entry);
        if (entry == TNI_NONE)
            continue;
        h->wanted[h->wanted_count] = entry;
        h->which[h->wanted_count++] = i;
    }
    return st;
}

static tn_status gradient_make(higher *h)
{
    tni_gradient_spec spec = {.heads = h->heads, .entries = h->wanted};
    tni_graph *g = h->f.g;
    tn_status st;

    if ((st = heads_find(h)) || (st = wanted_find(h)))
        return st;
    h->forward_nodes = g->node_count;
    h->forward_entries = g->entry_count;
    spec.head_count = h->head_count;
    spec.wanted_count = h->wanted_count;
    if ((st = tni_graph_gradient(g, &spec, h->head_vars, h->grads)))
        return st;
    for (uint32_t i = 0; i < h->head_count; i++)
        if (h->head_vars[i] != TNI_NONE)
            tni_forward_like(&h->f, h->head_vars[i], h->heads[i]);
    g->np_shape = h->f.np_shape;
    g->train = h->f.train;
    return tni_graph_infer(g, false);
}

/* An input may count for its shape alone: what has it may be gone. */
static bool only_shaped(const tni_gnode *node, uint32_t input)
{
    return tn_op_shape_only(node->def->op, node->input_count, input) ||
           (node->def->op->flags & TN_OP_VIEW && input > 0);
}

static tn_status source_find(const higher *h, uint32_t entry)
{
    return entry < h->forward_entries ? tni_forward_source(&h->f, entry, &h->sources[entry]) : TN_OK;
}

static tn_status used_mark(higher *h)
{
    const tni_graph *g = h->f.g;

    h->used = tni_calloc(g->node_count + 1u, 1);
    h->value = tni_calloc(g->entry_count + 1u, sizeof(*h->value));
    h->sources = tni_calloc(h->forward_entries + 1u, sizeof *h->sources);
    if (!h->used || !h->value || !h->sources)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < h->wanted_count; i++)
        if (h->grads[i] != TNI_NONE)
            h->used[g->entry_node[h->grads[i]]] = 1;
    tni_graph_wanted(g, h->forward_nodes, h->used);
    return TN_OK;
}

/* Where what the calls read is found. */
static tn_status sources_find(const higher *h)
{
    const tni_graph *g = h->f.g;
    tn_status st = TN_OK;

    for (uint32_t n = h->forward_nodes; n < g->node_count && !st; n++)
        for (uint32_t i = 0; i < g->nodes[n].input_count && h->used[n] && !st; i++)
            if (!only_shaped(&g->nodes[n], i))
                st = source_find(h, tni_graph_input(g, &g->nodes[n], i));
    for (uint32_t i = 0; i < h->wanted_count && !st; i++)
        if (h->grads[i] != TNI_NONE)
            st = source_find(h, h->grads[i]);
    return st;
}

/* Everything that marks in nodes and leaves are needed for. `again`: there are nets to unroll first. */
static tn_status build_locked(higher *h, tni_context *c, bool *again)
{
    tn_status st;

    h->w = (tni_tape_walk){.heads = h->spec->heads,
                           .head_count = h->spec->head_count,
                           .wanted = h->spec->variables,
                           .wanted_count = h->spec->variable_count,
                           .predict = h->spec->predict};
    *again = false;
    if ((st = tni_tape_walk_init(&h->w, c)))
        return st;
    tni_tape_enter(&h->w, true);
    if ((st = nets_find(h, again)) || *again)
        return st;
    if ((st = slots_number(h)) ||
        (st = tni_forward_tables_make(&h->tables, &h->w, h->first_slot, h->slot_count)) ||
        (st = tni_forward_make(&h->f, &h->w, &h->tables, 0, (uint32_t)h->w.nodes.count)) ||
        (st = gradient_make(h)) || (st = used_mark(h)))
        return st;
    return sources_find(h);
}

static tn_status build(higher *h, tni_context *c)
{
    bool again = true;
    tn_status st = TN_OK;

    while (again && !st) {
        tni_mutex_lock(h->spec->lock);
        st = build_locked(h, c, &again);
        tni_mutex_unlock(h->spec->lock);
        if (!again || st)
            break;
        st = tni_tape_unroll(&h->w, h->spec->lock);
        walk_end(h);
        h->w = (tni_tape_walk){.heads = h->spec->heads};
    }
    return st;
}

/* ---- arrays that know where they come from ------------------------------------------------------------- */

static tn_status forward_array(const higher *h, const tni_source *from, tni_array **out)
{
    if (from->kind == TNI_FROM_OUT)
        return tni_tape_kept_output(&h->w, from->node, from->index, out);
    if (from->kind == TNI_FROM_IN)
        return tni_tape_kept_input(&h->w, from->node, from->index, out);
    tni_array_retain(*out = *(tni_array **)tni_vec_at(&h->w.leaves, from->index));
    return TN_OK;
}

static tn_status entry_array(const higher *h, uint32_t entry, tni_array **out)
{
    if (!h->value[entry]) {
        const tn_status st = entry < h->forward_entries
                                 ? forward_array(h, &h->sources[entry], &h->value[entry])
                                 : tni_error(TN_E_INTERNAL, "a gradient reads an output that is hidden");

        if (st)
            return st;
    }
    *out = h->value[entry];
    return TN_OK;
}

/* What arrives at heads: the caller's arrays, with what they depend on, or ones. */
static tn_status head_values(const higher *h)
{
    const tni_higher_spec *s = h->spec;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < h->head_count && !st; k++) {
        const uint32_t i = h->which_head[k];
        uint32_t entry;

        if (h->head_vars[k] == TNI_NONE)
            continue;
        entry = h->f.g->nodes[h->head_vars[k]].first_entry;
        if (s->head_grads && s->head_grads[i])
            tni_array_retain(h->value[entry] = s->head_grads[i]);
        else
            st = tni_array_filled(s->heads[i], 1.0, "gradient", &h->value[entry]);
    }
    return st;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* The array on another device, recorded. [takes] *a */
static tn_status bring(const higher *h, tni_device *d, tni_array **a)
{
    char text[TN_NAME_MAX];
    tni_site *site = NULL;
    tni_array *made = NULL;
    tn_status st;

    if (!d || (*a)->storage->device == d)
        return TN_OK;
    snprintf(text, sizeof text, "%s:%d", d->type, d->index);
    if (!(st = tni_site_create(h->w.ctx, "_copyto", 1, (const char *[]){"ctx"}, (const char *[]){text},
                               &site)))
        st = tni_invoke(site, 1, a, 1, &made);
    tni_site_release(site);
    if (st)
        return st;
    tni_array_release(*a);
    *a = made;
    return TN_OK;
}

static tni_device *device_at(const higher *h, uint32_t entry)
{
    const tni_source *from;

    if (h->value[entry])
        return h->value[entry]->storage->device;
    from = tni_vec_at(&h->f.origins, entry);
    if (from->kind == TNI_FROM_LEAF)
        return (*(tni_array **)tni_vec_at(&h->w.leaves, from->index))->storage->device;
    return tni_tape_output(tni_tape_at(&h->w, from->node), 0).device;
}

/* The shape of an entry: an array that depends on what the entry does, and may have no memory. */
static tn_status shaped_make(const higher *h, tni_device *d, uint32_t entry, tni_array **out)
{
    const tn_shape *shape = &h->f.g->shapes[entry];

    if (entry >= h->forward_entries && !h->value[entry])
        return tni_error(TN_E_INTERNAL, "a gradient asks for the shape of an output that is hidden");
    if (!d || d == device_at(h, entry)) {
        if (!h->value[entry])
            return forward_array(h, (const tni_source *)tni_vec_at(&h->f.origins, entry), out);
        tni_array_retain(*out = h->value[entry]);
        return TN_OK;
    }
    return tni_array_create(h->w.ctx->space, d ? d : device_at(h, entry), h->f.g->dtypes[entry], shape->ndim,
                            shape->dim, "gradient", out);
}

/* As the forward was recorded, or in predict mode. */
static void scope_set(const higher *h, const tni_tape_call *of)
{
    tni_scope *scope = tni_scope_get();
    const uint32_t flags = of ? tni_tape_flags(of) : 0;

    scope->recording = true;
    scope->training = (of ? flags & TN_NODE_TRAIN : h->f.train) && !h->spec->predict;
    scope->np_shape = of ? flags & TN_NODE_NP_SHAPE : h->f.np_shape;
}

static tn_status node_invoke(const higher *h, const tni_gnode *node, tni_array *const *in, tni_array **out)
{
    const uint32_t of = node->forward == TNI_NONE || node->forward >= h->forward_nodes
                            ? TNI_NONE
                            : *(uint32_t *)tni_vec_at(&h->f.tape_of_node, node->forward);
    const tni_tape_call *tape = of == TNI_NONE ? NULL : tni_tape_at(&h->w, of);
    tni_invoke_given given = {.attrs = node->attrs};
    tni_site *site = NULL;
    tn_status st;

    if (tape) {
        given.forward = *(tni_prepared **)tni_vec_at(&h->f.prepared, node->forward);
        given.saved = tape->saved;
    }
    scope_set(h, tape);
    if (!(st = tni_site_of(h->w.ctx, node->def, node->attrs, &site)))
        st = tni_invoke_with(site, &given, node->input_count, in, node->visible_count, out);
    tni_site_release(site);
    return st;
}

static tn_status node_run(const higher *h, uint32_t index)
{
    const tni_gnode *node = &h->f.g->nodes[index];
    tni_array **in = tni_calloc(node->input_count + 1u, sizeof(*in));
    tn_status st = in ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < node->input_count && !st; i++) {
        const uint32_t entry = tni_graph_input(h->f.g, node, i);

        if (only_shaped(node, i))
            st = shaped_make(h, node->device, entry, &in[i]);
        else if (!(st = entry_array(h, entry, &in[i])))
            tni_array_retain(in[i]);
        if (!st)
            st = bring(h, node->device, &in[i]);
    }
    if (!st)
        st = node_invoke(h, node, in, h->value + node->first_entry);
    for (uint32_t i = 0; in && i < node->input_count; i++)
        tni_array_release(in[i]);
    tni_free(in);
    return st;
}

/* Each gradient is an array of its own: what is one already, or was there before, is copied. */
static tn_status grads_give(const higher *h, tni_array **out)
{
    const tni_graph *g = h->f.g;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < h->wanted_count && !st; i++) {
        const uint32_t entry = h->grads[i];
        tni_array *a = NULL;
        bool fresh;

        if (entry == TNI_NONE || (st = entry_array(h, entry, &a)))
            continue;
        fresh = entry >= h->forward_entries && g->nodes[g->entry_node[entry]].def != NULL;
        for (uint32_t k = 0; k < i; k++)
            fresh &= h->grads[k] != entry;
        if (fresh)
            tni_array_retain(out[h->which[i]] = a);
        else
            st = tni_invoke_copy(h->w.ctx, a, &out[h->which[i]]);
        if (!st)
            st = bring(h, h->spec->variables[h->which[i]]->storage->device, &out[h->which[i]]);
    }
    for (uint32_t i = 0; i < h->spec->variable_count && !st; i++)
        if (!out[i])
            st = tni_array_filled(h->spec->variables[i], 0.0, "gradient", &out[i]);
    return st;
}

/* While recording, whatever the thread does otherwise. */
static tn_status calls_run(const higher *h, tni_array **out)
{
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st = head_values(h);

    scope->recording = true;
    for (uint32_t n = h->forward_nodes; n < h->f.g->node_count && !st; n++)
        if (h->used[n] && h->f.g->nodes[n].def)
            st = node_run(h, n);
    if (!st)
        st = grads_give(h, out);
    *scope = before;
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void higher_fini(higher *h)
{
    for (uint32_t e = 0; h->value && e < h->f.g->entry_count; e++)
        tni_array_release(h->value[e]);
    tni_free(h->value);
    tni_free(h->used);
    tni_free(h->sources);
    tni_forward_fini(&h->f);
    tni_forward_tables_fini(&h->tables);
    tni_free(h->first_slot);
    walk_end(h);
}

tn_status tni_higher(tni_context *c, const tni_higher_spec *spec, tni_array **out)
{
    higher h = {.spec = spec};
    tn_status st = build(&h, c);

    if (!st)
        st = calls_run(&h, out);
    higher_fini(&h);
    return st;
}

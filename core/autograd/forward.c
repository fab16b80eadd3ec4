/*
 * Recorded operators as a flat graph: one graph node for each tape node, one variable for each array from
 * outside. The tables grow with the graph; what a gradient appends later has no row in them.
 */
#include "autograd/forward.h"

#include <string.h>

static tni_tape_node *node_at(const tni_forward *f, size_t i)
{
    return *(tni_tape_node **)tni_vec_at(&f->w->nodes, i);
}

/* The tables keep step with the graph. */
static tn_status follow(tni_forward *f, uint32_t kind, uint32_t node, uint32_t index, uint32_t tape,
                        tni_prepared *prepared)
{
    const tni_gnode *last = &f->g->nodes[f->g->node_count - 1];
    tn_status st = tni_vec_push(&f->tape_of_node, &tape);

    if (!st)
        st = tni_vec_push(&f->prepared, &prepared);
    for (uint32_t o = 0; o < last->output_count && !st; o++) {
        const tni_source from = {kind, node, index + o};

        st = tni_vec_push(&f->origins, &from);
    }
    return st;
}

void tni_forward_entry_set(const tni_forward *f, uint32_t entry, const tn_shape *shape, int32_t dtype)
{
    f->g->shapes[entry] = *shape;
    f->g->dtypes[entry] = dtype;
    f->g->storages[entry] = TN_STORAGE_DENSE;
}

tn_status tni_forward_variable(tni_forward *f, tni_device *d, int32_t ndim, const int64_t *dims,
                               int32_t dtype, const tni_source *from, uint32_t *entry)
{
    tn_shape shape = {.ndim = ndim};
    uint32_t node;
    tn_status st = tni_graph_add_variable(f->g, "input", &node);

    if (st)
        return st;
    memcpy(shape.dim, dims, (size_t)ndim * sizeof *dims);
    f->g->nodes[node].device = d;
    *entry = f->g->nodes[node].first_entry;
    tni_forward_entry_set(f, *entry, &shape, dtype);
    return follow(f, from->kind, from->node, from->index, TNI_NONE, NULL);
}

/* The entry that input `i` of tape node `n` reads. */
static tn_status input_entry(tni_forward *f, const tni_tape_node *n, uint32_t i, uint32_t *entry)
{
    const tni_tape_entry *e = tni_tape_source(f->w, n, i);
    const uint32_t leaf = tni_tape_leaf(f->w, n->leaves[i]);
    const uint32_t leaves = (uint32_t)f->w->leaves.count;
    const tni_operand_key *k = &n->signature->in[i];
    tni_source from = {TNI_FROM_IN, n->position, i};
    tni_outside outside;
    uint32_t *known, slot;
    tn_status st;

    if (!e && leaf == TNI_NONE)
        return tni_forward_variable(f, k->device, k->ndim, k->shape, k->dtype, &from, entry);
    slot = e ? f->tables->first_slot[e->node->position] + e->index : 0;
    known = e ? &f->tables->slot_entry[slot] : &f->tables->leaf_entry[leaf];
    if (*known == TNI_NONE) {
        if (!e)
            from = (tni_source){TNI_FROM_LEAF, 0, leaf};
        else
            from = (tni_source){TNI_FROM_OUT, e->node->position, e->index};
        if ((st = tni_forward_variable(f,
                                       e ? tni_tape_device(e->node, e->index) : n->leaves[i]->storage->device,
                                       k->ndim, k->shape, k->dtype, &from, known)))
            return st;
        outside = (tni_outside){f->g->entry_node[*known], e ? leaves + slot : leaf};
        if ((st = tni_vec_push(&f->outside, &outside)))
            return st;
    }
    *entry = *known;
    return TN_OK;
}

/* What a backward may be told of: its forward, unless the block that this saved is not there. */
static tni_prepared *prepared_of(const tni_tape_node *n)
{
    tni_prepared *p = n->signature->prepared;

    return p && p->plan.saved_bytes && !n->saved ? NULL : p;
}

static tn_status operator_add(tni_forward *f, const tni_tape_node *n, const uint32_t *in)
{
    const tni_signature *sig = n->signature;
    uint32_t node;
    tn_status st = tni_graph_add_node(f->g, sig->def, n->attrs, sig->def->op->name, n->in_count, in, &node);

    if (st || (st = follow(f, TNI_FROM_OUT, n->position, 0, n->position, prepared_of(n))))
        return st;
    f->g->nodes[node].device = sig->device;
    f->train |= (sig->flags & TN_NODE_TRAIN) != 0;
    if (sig->flags & TN_NODE_TRAIN && !f->w->predict)
        f->g->nodes[node].flags |= TNI_GNODE_TRAIN;
    f->np_shape |= (sig->flags & TN_NODE_NP_SHAPE) != 0;
    for (uint32_t o = 0; o < sig->out_count; o++) {
        const uint32_t entry = f->g->nodes[node].first_entry + o;

        tni_forward_entry_set(f, entry, &sig->out_shape[o], sig->out_dtype[o]);
        f->tables->slot_entry[f->tables->first_slot[n->position] + o] = entry;
    }
    return TN_OK;
}

static tn_status nodes_add(tni_forward *f, uint32_t first, uint32_t count)
{
    tn_status st = TN_OK;

    for (uint32_t k = first; k < first + count && !st; k++) {
        const tni_tape_node *n = node_at(f, k);
        uint32_t small[16], *in = small;

        if (n->in_count > 16 && !(in = tni_calloc(n->in_count, sizeof *in)))
            return TN_E_NOMEM;
        for (uint32_t i = 0; i < n->in_count && !st; i++)
            st = input_entry(f, n, i, &in[i]);
        if (!st)
            st = operator_add(f, n, in);
        if (in != small)
            tni_free(in);
    }
    return st;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static void kept_find(const tni_forward_tables *t, const tni_tape_walk *w)
{
    for (uint32_t k = 0; k < w->nodes.count; k++) {
        const tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&w->nodes, k);

        for (uint32_t i = 0; i < n->in_count; i++) {
            const tni_tape_entry *e = tni_tape_source(w, n, i);
            tni_source *kept = e ? &t->kept[t->first_slot[e->node->position] + e->index] : NULL;

            if (kept && n->in[i] && kept->node == TNI_NONE)
                *kept = (tni_source){TNI_FROM_IN, k, i};
        }
    }
}

tn_status tni_forward_tables_make(tni_forward_tables *t, const tni_tape_walk *w, const uint32_t *first_slot,
                                  uint32_t slot_count)
{
    const uint64_t entries = w->leaves.count + (uint64_t)slot_count + 1;

    t->first_slot = first_slot;
    t->leaf_entry = tni_alloc(entries * sizeof *t->leaf_entry);
    t->kept = tni_alloc((slot_count + 1ull) * sizeof *t->kept);
    if (!t->leaf_entry || !t->kept)
        return TN_E_NOMEM;
    memset(t->leaf_entry, 0xff, entries * sizeof *t->leaf_entry);
    memset(t->kept, 0xff, (slot_count + 1ull) * sizeof *t->kept);
    t->slot_entry = t->leaf_entry + w->leaves.count;
    kept_find(t, w);
    return TN_OK;
}

void tni_forward_tables_fini(tni_forward_tables *t)
{
    tni_free(t->leaf_entry);
    tni_free(t->kept);
}

/* ---- the graph --------------------------------------------------------------------------------------- */

tn_status tni_forward_make(tni_forward *f, const tni_tape_walk *w, tni_forward_tables *tables, uint32_t first,
                           uint32_t count)
{
    tn_status st;

    *f = (tni_forward){.w = w, .tables = tables, .first = first, .count = count};
    tni_vec_init(&f->origins, sizeof(tni_source), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&f->tape_of_node, sizeof(uint32_t), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&f->prepared, sizeof(tni_prepared *), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&f->outside, sizeof(tni_outside), 2u * TN_TAPE_NODES_MAX);
    if ((st = tni_graph_create(w->ctx->ops, &f->g)))
        return st;
    return nodes_add(f, first, count);
}

/* The next graph finds the tables as this one did. */
static void tables_clear(const tni_forward *f)
{
    const uint32_t leaves = (uint32_t)f->w->leaves.count;

    for (size_t i = 0; i < f->outside.count; i++)
        f->tables->leaf_entry[((tni_outside *)tni_vec_at(&f->outside, i))->target] = TNI_NONE;
    for (uint32_t k = f->first; k < f->first + f->count; k++)
        for (uint32_t o = 0; o < node_at(f, k)->out_count; o++)
            f->tables->leaf_entry[leaves + f->tables->first_slot[k] + o] = TNI_NONE;
}

void tni_forward_fini(tni_forward *f)
{
    if (f->tables)
        tables_clear(f);
    tni_graph_destroy(f->g);
    tni_vec_fini(&f->origins);
    tni_vec_fini(&f->tape_of_node);
    tni_vec_fini(&f->prepared);
    tni_vec_fini(&f->outside);
}

/* A consumer that kept this output of a node as its input. */
static bool kept_by_consumer(const tni_forward *f, const tni_source *of, tni_source *out)
{
    const tni_source *kept = &f->tables->kept[f->tables->first_slot[of->node] + of->index];

    if (kept->node == TNI_NONE)
        return false;
    *out = *kept;
    return true;
}

tn_status tni_forward_source(const tni_forward *f, uint32_t entry, tni_source *out)
{
    const tni_source *from = tni_vec_at(&f->origins, entry);
    const tni_tape_node *n = from->kind == TNI_FROM_LEAF ? NULL : node_at(f, from->node);

    *out = *from;
    if (!n || (from->kind == TNI_FROM_IN && n->in[from->index]) ||
        (from->kind == TNI_FROM_OUT && (n->out[from->index] || kept_by_consumer(f, from, out))))
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED, "a gradient reads %s %u of %s, which the net around it did not keep",
                     from->kind == TNI_FROM_IN ? "input" : "output", from->index,
                     n->signature ? n->signature->def->op->name : "a net");
}

/*
 * Recorded operators as a flat graph: one graph node for each tape node, one variable for each array from
 * outside. The tables grow with the graph; what a gradient appends later has no row in them.
 */
#include "autograd/forward.h"

#include <string.h>

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

static void entry_set(const tni_forward *f, uint32_t entry, const tni_tape_spec *like)
{
    f->g->shapes[entry].ndim = like->ndim;
    memcpy(f->g->shapes[entry].dim, like->shape, (size_t)like->ndim * sizeof *like->shape);
    f->g->dtypes[entry] = like->dtype;
    f->g->storages[entry] = TN_STORAGE_DENSE;
}

void tni_forward_like(const tni_forward *f, uint32_t node, uint32_t of)
{
    const uint32_t entry = f->g->nodes[node].first_entry;

    f->g->shapes[entry] = f->g->shapes[of];
    f->g->dtypes[entry] = f->g->dtypes[of];
    f->g->storages[entry] = TN_STORAGE_DENSE;
}

tn_status tni_forward_variable(tni_forward *f, const tni_tape_spec *like, const tni_source *from,
                               uint32_t *entry)
{
    uint32_t node;
    tn_status st = tni_graph_add_variable(f->g, "input", &node);

    if (st)
        return st;
    f->g->nodes[node].device = like->device;
    *entry = f->g->nodes[node].first_entry;
    entry_set(f, *entry, like);
    return follow(f, from->kind, from->node, from->index, TNI_NONE, NULL);
}

/* The entry that input `i` of tape node `k` reads. */
static tn_status input_entry(tni_forward *f, uint32_t k, uint32_t i, uint32_t *entry)
{
    const tni_tape_call *n = tni_tape_at(f->w, k);
    const tni_tape_edge e = tni_tape_source(f->w, k, i);
    const bool made = e.node != TNI_NONE;
    const uint32_t leaf = tni_tape_leaf(f->w, n->leaves[i]);
    const uint32_t leaves = (uint32_t)f->w->leaves.count;
    tni_tape_spec like = tni_tape_input(n, i);
    tni_source from = {TNI_FROM_IN, k, i};
    tni_outside outside;
    uint32_t *known, slot;
    tn_status st;

    if (!made && leaf == TNI_NONE)
        return tni_forward_variable(f, &like, &from, entry);
    slot = made ? f->tables->first_slot[e.node] + e.index : 0;
    known = made ? &f->tables->slot_entry[slot] : &f->tables->leaf_entry[leaf];
    if (*known == TNI_NONE) {
        from = made ? (tni_source){TNI_FROM_OUT, e.node, e.index} : (tni_source){TNI_FROM_LEAF, 0, leaf};
        like.device =
            made ? tni_tape_output(tni_tape_at(f->w, e.node), e.index).device : n->leaves[i]->storage->device;
        if ((st = tni_forward_variable(f, &like, &from, known)))
            return st;
        outside = (tni_outside){f->g->entry_node[*known], made ? leaves + slot : leaf};
        if ((st = tni_vec_push(&f->outside, &outside)))
            return st;
    }
    *entry = *known;
    return TN_OK;
}

/* All is dense here: a cast between storage types is a copy. */
static tn_status node_add(tni_forward *f, const tni_tape_call *n, const uint32_t *in, uint32_t *node)
{
    const tni_opdef *def = n->attrs->def;
    tni_attrs *attrs = NULL;
    tn_status st = TN_OK;

    if (!strcmp(def->op->name, "cast_storage") && !(st = tni_opset_find(f->w->ctx->ops, "_copy", &def)))
        st = tni_attrs_parse(def, 0, NULL, NULL, &attrs);
    if (!st)
        st = tni_graph_add_node(f->g, def, attrs ? attrs : n->attrs, def->op->name, n->in_count, in, node);
    tni_attrs_release(attrs);
    return st;
}

static tn_status operator_add(tni_forward *f, uint32_t k, const uint32_t *in)
{
    const tni_tape_call *n = tni_tape_at(f->w, k);
    const uint32_t flags = tni_tape_flags(n);
    uint32_t node;
    tn_status st = node_add(f, n, in, &node);

    if (st || (st = follow(f, TNI_FROM_OUT, k, 0, k, tni_tape_prepared(n))))
        return st;
    f->train |= (flags & TN_NODE_TRAIN) != 0;
    if (flags & TN_NODE_TRAIN && !f->w->predict)
        f->g->nodes[node].flags |= TNI_GNODE_TRAIN;
    f->np_shape |= (flags & TN_NODE_NP_SHAPE) != 0;
    for (uint32_t o = 0; o < n->out_count; o++) {
        const uint32_t entry = f->g->nodes[node].first_entry + o;
        const tni_tape_spec like = tni_tape_output(n, o);

        f->g->nodes[node].device = like.device;
        entry_set(f, entry, &like);
        f->tables->slot_entry[f->tables->first_slot[k] + o] = entry;
    }
    return TN_OK;
}

static tn_status nodes_add(tni_forward *f, uint32_t first, uint32_t count)
{
    tn_status st = TN_OK;

    for (uint32_t k = first; k < first + count && !st; k++) {
        const tni_tape_call *n = tni_tape_at(f->w, k);
        uint32_t small[16], *in = small;

        if (n->in_count > 16 && !(in = tni_calloc(n->in_count, sizeof *in)))
            return TN_E_NOMEM;
        for (uint32_t i = 0; i < n->in_count && !st; i++)
            st = input_entry(f, k, i, &in[i]);
        if (!st)
            st = operator_add(f, k, in);
        if (in != small)
            tni_free(in);
    }
    return st;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static void kept_find(const tni_forward_tables *t, const tni_tape_walk *w)
{
    for (uint32_t k = 0; k < w->nodes.count; k++) {
        const tni_tape_call *n = tni_tape_at(w, k);

        for (uint32_t i = 0; i < n->in_count; i++) {
            const tni_tape_edge e = tni_tape_source(w, k, i);
            tni_source *kept = e.node != TNI_NONE ? &t->kept[t->first_slot[e.node] + e.index] : NULL;

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
        for (uint32_t o = 0; o < tni_tape_at(f->w, k)->out_count; o++)
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
    const tni_tape_call *n = from->kind == TNI_FROM_LEAF ? NULL : tni_tape_at(f->w, from->node);

    *out = *from;
    if (!n || (from->kind == TNI_FROM_IN && n->in[from->index]) ||
        (from->kind == TNI_FROM_OUT && (n->out[from->index] || kept_by_consumer(f, from, out))))
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED, "a gradient reads %s %u of %s, which the net around it did not keep",
                     from->kind == TNI_FROM_IN ? "input" : "output", from->index,
                     n->attrs ? n->attrs->def->op->name : "a net");
}

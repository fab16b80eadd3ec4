/*
 * A graph: nodes of random operators, each fed from what is there and from new variables. Heads are mostly
 * entries that no node reads; other entries stay unread.
 */
#include "make.h"

#include <string.h>

#define NODES_MAX 40

/* Entries that a further node may read: states are their nodes' own. */
static uint32_t feed_list(const fuzz_case *c, uint32_t *list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->entry_count; i++) {
        const fuzz_entry *e = &c->entries[i];

        if (e->dtype >= 0 && tn_shape_known(&e->shape) &&
            !(e->node == FUZZ_NONE && c->variables[e->index].state))
            list[count++] = i;
    }
    return count;
}

/* Where arrays of a graph lie is the planner's to say. */
static bool asks_for_places(const tni_opdef *def)
{
    return strcmp(def->op->name, "_npi_share_memory") == 0;
}

/* The latest entries most often, so that graphs are deep as well as wide. */
static void nodes_draw(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r)
{
    const uint32_t wanted = 2 + fuzz_below(r, fuzz_chance(r, 70) ? 10 : NODES_MAX - 1);

    for (uint32_t tries = 0; c->node_count < wanted && tries < 4 * wanted; tries++) {
        uint32_t list[FUZZ_ENTRIES_MAX], count = feed_list(c, list);
        const uint32_t window = fuzz_chance(r, 60) ? 6 : FUZZ_ENTRIES_MAX;
        const uint32_t from = count > window ? count - window : 0;
        const fuzz_feed feed = {list + from, count - from, 80};

        const tni_opdef *def = m->ops[fuzz_below(r, m->op_count)];

        if (!asks_for_places(def))
            (void)fuzz_node_make(c, r, def, &feed, false);
    }
}

static bool is_head(const fuzz_case *c, uint32_t entry)
{
    for (uint32_t h = 0; h < c->head_count; h++)
        if (c->heads[h].entry == entry)
            return true;
    return false;
}

static void heads_draw(fuzz_case *c, fuzz_rng *r)
{
    const uint32_t wanted = 1 + fuzz_below(r, fuzz_chance(r, 60) ? 3 : FUZZ_HEADS_MAX);
    bool read[FUZZ_ENTRIES_MAX] = {false};

    for (uint32_t i = 0; i < c->edge_count; i++)
        read[c->edges[i]] = true;
    for (uint32_t tries = 0; c->entry_count && c->head_count < wanted && tries < 30; tries++) {
        const uint32_t near = fuzz_chance(r, 60) && c->entry_count > 8 ? c->entry_count - 8 : 0;
        const uint32_t i = near + fuzz_below(r, c->entry_count - near);

        if (c->entries[i].node == FUZZ_NONE || is_head(c, i) || (read[i] && tries < 20 && fuzz_chance(r, 80)))
            continue;
        c->heads[c->head_count++] = (fuzz_head){.entry = i};
    }
    for (uint32_t i = c->entry_count; i-- > 0 && !c->head_count;)
        if (c->entries[i].node != FUZZ_NONE)
            c->heads[c->head_count++] = (fuzz_head){.entry = i};
}

/* Results over inputs that nothing needs afterwards, where nobody records. */
static void inplace_draw(fuzz_case *c, fuzz_rng *r)
{
    for (uint32_t n = 0; n < c->node_count; n++) {
        fuzz_node *node = &c->nodes[n];
        const fuzz_entry *out = &c->entries[node->first_entry], *in;
        uint32_t i, root;

        if (!node->in_count || node->view || !fuzz_chance(r, 50))
            continue;
        i = fuzz_below(r, node->in_count);
        in = &c->entries[c->edges[node->first_edge + i]];
        root = fuzz_case_root(c, c->edges[node->first_edge + i]);
        if (c->entries[root].node != FUZZ_NONE && in->dtype == out->dtype &&
            in->shape.ndim == out->shape.ndim &&
            !memcmp(in->shape.dim, out->shape.dim, (size_t)in->shape.ndim * sizeof(int64_t)) &&
            !fuzz_case_needed(c, c->edges[node->first_edge + i], n))
            node->inplace = i;
    }
}

void fuzz_make_graph(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r)
{
    fuzz_make_flags(c, r);
    for (uint32_t tries = 0; !c->node_count && tries < 100; tries++) /* one that fits is found at last */
        nodes_draw(m, c, r);
    heads_draw(c, r);
    fuzz_make_rest(c, r);
    if (!(c->flags & FUZZ_RECORD))
        inplace_draw(c, r);
}

/*
 * Walking a tape: everything that the heads depend on, in order of recording, with a key of numbers that two
 * tapes share exactly if one compiled backward pass serves both.
 */
#include "autograd/walk.h"

#include <stdlib.h>

#define KEY_CONSTANT 0u
#define KEY_LEAF 1u
#define KEY_NODE 2u

void tni_tape_walk_fini(tni_tape_walk *w)
{
    tni_vec_fini(&w->nodes);
    tni_vec_fini(&w->leaves);
    tni_vec_fini(&w->key);
}

static tn_status visit(tni_tape_walk *w, tni_tape_node *n)
{
    if (n->mark == w->mark)
        return TN_OK;
    if (n->consumed)
        return tni_error(TN_E_STATE,
                         "backward went through %s already; keep the tape with retain to walk it again",
                         n->signature ? n->signature->def->op->name : "this net");
    n->mark = w->mark;
    return tni_vec_push(&w->nodes, &n);
}

static int by_order(const void *a, const void *b)
{
    const tni_tape_node *const *x = a, *const *y = b;

    return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

/* Breadth first over producers; the vector is the queue. */
static tn_status nodes_collect(tni_tape_walk *w)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->head_count && !st; i++) {
        const tni_tape_entry *e = w->heads[i] ? w->heads[i]->grad_entry : NULL;

        st = e ? visit(w, e->node)
               : tni_error(TN_E_STATE,
                           "head %u was not recorded: nothing leads from it to an array with a gradient", i);
    }
    for (size_t i = 0; i < w->nodes.count && !st; i++) {
        const tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&w->nodes, i);

        for (uint32_t k = 0; k < n->in_count && !st; k++)
            if (n->in_entries[k])
                st = visit(w, n->in_entries[k]->node);
    }
    if (st)
        return st;
    qsort(w->nodes.data, w->nodes.count, sizeof(tni_tape_node *), by_order);
    for (size_t i = 0; i < w->nodes.count; i++)
        (*(tni_tape_node **)tni_vec_at(&w->nodes, i))->position = (uint32_t)i;
    return TN_OK;
}

uint32_t tni_tape_leaf(const tni_tape_walk *w, const tni_array *a)
{
    return a && a->leaf_mark == w->mark ? a->leaf_index : TNI_NONE;
}

static tn_status leaf_add(tni_tape_walk *w, tni_array *a)
{
    if (a->leaf_mark == w->mark)
        return TN_OK;
    a->leaf_mark = w->mark;
    a->leaf_index = (uint32_t)w->leaves.count;
    return tni_vec_push(&w->leaves, &a);
}

static void key_put(uint64_t **at, uint64_t value)
{
    *(*at)++ = value;
}

/* What an input is: a producer's output, a leaf with what is done to its gradient, or a constant. */
static void key_input(const tni_tape_walk *w, const tni_tape_node *n, uint32_t i, bool own_modes,
                      uint64_t **at)
{
    const tni_tape_entry *e = n->in_entries[i];
    const uint32_t leaf = tni_tape_leaf(w, n->leaves[i]);

    if (e)
        key_put(at, KEY_NODE | (uint64_t)e->node->position << 32 | (uint64_t)e->index << 4);
    else if (leaf != TNI_NONE)
        key_put(at,
                KEY_LEAF | (uint64_t)leaf << 32 | (own_modes ? (uint64_t)n->leaves[i]->grad_req << 4 : 0));
    else
        key_put(at, KEY_CONSTANT);
}

static tn_status key_make(tni_tape_walk *w, bool own_modes)
{
    size_t count = 2 + w->head_count;
    uint64_t *at;
    tn_status st;

    for (size_t i = 0; i < w->nodes.count; i++)
        count += 2 + (*(tni_tape_node **)tni_vec_at(&w->nodes, i))->in_count;
    if ((st = tni_vec_extend(&w->key, count, (void **)&at)))
        return st;
    key_put(&at, own_modes);
    key_put(&at, w->head_count);
    for (uint32_t i = 0; i < w->head_count; i++) {
        const tni_tape_entry *e = w->heads[i]->grad_entry;

        key_put(&at, (uint64_t)e->node->position << 32 | e->index);
    }
    for (size_t i = 0; i < w->nodes.count; i++) {
        const tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&w->nodes, i);

        key_put(&at, n->signature ? n->signature->id << 1 : n->cached->id << 1 | 1u);
        key_put(&at, n->in_count);
        for (uint32_t k = 0; k < n->in_count; k++)
            key_input(w, n, k, own_modes, &at);
    }
    w->hash = tni_hash_bytes(0, w->key.data, w->key.count * sizeof(uint64_t));
    return TN_OK;
}

tn_status tni_tape_walk_init(tni_tape_walk *w, tni_context *c, uint32_t count, tni_array *const *heads,
                             uint32_t wanted_count, tni_array *const *wanted, bool own_modes)
{
    static atomic_uint_fast64_t marks;
    tn_status st;

    *w = (tni_tape_walk){.ctx = c, .heads = heads, .head_count = count};
    w->mark = atomic_fetch_add_explicit(&marks, 1, memory_order_relaxed) + 1;
    tni_vec_init(&w->nodes, sizeof(tni_tape_node *), TN_TAPE_NODES_MAX);
    tni_vec_init(&w->leaves, sizeof(tni_array *), TN_TAPE_NODES_MAX);
    tni_vec_init(&w->key, sizeof(uint64_t), (size_t)TN_TAPE_NODES_MAX * 64);
    if ((st = nodes_collect(w)))
        return st;
    for (uint32_t i = 0; i < wanted_count; i++)
        if ((st = leaf_add(w, wanted[i])))
            return st;
    for (size_t i = 0; !wanted && i < w->nodes.count; i++) {
        const tni_tape_node *n = *(tni_tape_node **)tni_vec_at(&w->nodes, i);

        for (uint32_t k = 0; k < n->in_count; k++)
            if (n->leaves[k] && n->leaves[k]->grad_req != TN_MODE_NONE && (st = leaf_add(w, n->leaves[k])))
                return st;
    }
    return key_make(w, own_modes);
}

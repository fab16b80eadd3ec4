/*
 * Walking a tape: everything that the heads depend on, in order of recording, with a key of numbers that two
 * tapes share exactly if one compiled backward pass serves both.
 */
#include "exec/internal.h"

#include <stdlib.h>

#define KEY_CONSTANT 0u
#define KEY_LEAF 1u
#define KEY_NODE 2u
#define KEY_HEAD 3u /* a leaf as a head; a head that was recorded is KEY_NODE */

static tni_tape_node *node_at(const tni_tape_walk *w, size_t i)
{
    return tni_tape_node_of(tni_tape_at(w, i));
}

void tni_tape_walk_fini(tni_tape_walk *w)
{
    for (size_t i = 0; i < w->spent; i++)
        tni_tape_consume(node_at(w, i));
    for (size_t i = 0; w->entered && i < w->nodes.count; i++)
        tni_tape_node_release(node_at(w, i));
    tni_vec_fini(&w->nodes);
    tni_vec_fini(&w->leaves);
    tni_vec_fini(&w->key);
}

/* What was unrolled is walked as its operators. */
static tni_tape_entry *input_of(const tni_tape_node *n, uint32_t i)
{
    return tni_tape_resolve(n->in_entries[i]);
}

static tni_tape_entry *head_of(const tni_tape_walk *w, uint32_t i)
{
    return tni_tape_resolve(w->heads[i]->grad_entry);
}

/* In the walk? NULL is not. */
static tni_tape_edge edge_of(const tni_tape_walk *w, const tni_tape_entry *e)
{
    return e && e->node->mark == w->mark ? (tni_tape_edge){e->node->position, e->index}
                                         : (tni_tape_edge){TNI_NONE, 0};
}

tni_tape_edge tni_tape_head(const tni_tape_walk *w, uint32_t i)
{
    return edge_of(w, head_of(w, i));
}

tni_tape_edge tni_tape_wanted(const tni_tape_walk *w, uint32_t i)
{
    return edge_of(w, tni_tape_resolve(w->wanted[i]->grad_entry));
}

tni_tape_edge tni_tape_source(const tni_tape_walk *w, uint32_t node, uint32_t i)
{
    return edge_of(w, input_of(node_at(w, node), i));
}

static tn_status visit(tni_tape_walk *w, tni_tape_node *n)
{
    tn_status st;

    if (n->mark == w->mark)
        return TN_OK;
    n->mark = w->mark;
    n->asked = 0;
    if (w->nodes.count == w->nodes.capacity && (st = tni_vec_reserve(&w->nodes, w->nodes.count + 1)))
        return st;
    ((tni_tape_call **)w->nodes.data)[w->nodes.count++] = &n->call;
    return TN_OK;
}

static void ask(const tni_tape_entry *e)
{
    e->node->asked |= (uint64_t)1 << e->index % 64u;
}

/* Does input `i` lead to an output that is asked for? */
static bool asks(const tni_tape_node *n, uint32_t i)
{
    return !n->call.cached || (n->call.cached->leads[i] & n->asked);
}

static int by_order(const void *a, const void *b)
{
    const tni_tape_node *x = tni_tape_node_of(*(tni_tape_call *const *)a);
    const tni_tape_node *y = tni_tape_node_of(*(tni_tape_call *const *)b);

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* A chain is found from its end to its begin. */
static void nodes_sort(tni_tape_call **nodes, size_t count)
{
    size_t falling = 1;

    while (falling < count && by_order(&nodes[falling - 1], &nodes[falling]) > 0)
        falling++;
    if (falling < count) {
        qsort(nodes, count, sizeof(*nodes), by_order);
        return;
    }
    for (size_t i = 0; i < count / 2; i++) {
        tni_tape_call *last = nodes[count - 1 - i];

        nodes[count - 1 - i] = nodes[i];
        nodes[i] = last;
    }
}

/* Breadth first over producers; the vector is the queue. */
static tn_status nodes_collect(tni_tape_walk *w)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->head_count && !st; i++) {
        const tni_array *head = w->heads[i];

        if (head && head->grad_entry)
            st = visit(w, head_of(w, i)->node);
        else if (!head || !head->grad)
            st = tni_error(TN_E_STATE,
                           "cannot differentiate head %u because it is not in a computational graph: it was "
                           "not recorded, or made of no array with a gradient; attach one and compute the "
                           "head while recording",
                           i);
    }
    for (size_t i = 0; i < w->nodes.count && !st; i++) {
        const tni_tape_node *n = node_at(w, i);

        for (uint32_t k = 0; k < n->call.in_count && !st; k++)
            if (n->in_entries[k])
                st = visit(w, input_of(n, k)->node);
    }
    if (!st)
        nodes_sort(w->nodes.data, w->nodes.count);
    return st;
}

/* Keeps the nodes that lead to a head: of a net with several outputs not all inputs do. */
static tn_status nodes_choose(tni_tape_walk *w)
{
    tni_tape_call **nodes = w->nodes.data;
    size_t count = 0;

    for (uint32_t i = 0; i < w->head_count; i++)
        if (w->heads[i]->grad_entry)
            ask(head_of(w, i));
    for (size_t i = w->nodes.count; i-- > 0;) {
        const tni_tape_node *n = node_at(w, i);

        if (n->asked && n->consumed)
            return tni_error(TN_E_STATE,
                             "backward went through %s already; keep the tape with retain to walk it again",
                             tni_tape_name(&n->call));
        for (uint32_t k = 0; n->asked && k < n->call.in_count; k++)
            if (n->in_entries[k] && asks(n, k))
                ask(input_of(n, k));
    }
    for (size_t i = 0; i < w->nodes.count; i++) {
        tni_tape_node *n = node_at(w, i);

        n->position = (uint32_t)count;
        n->mark = n->asked ? w->mark : 0;
        if (n->asked)
            nodes[count++] = &n->call;
    }
    w->nodes.count = count;
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

static bool counts(const tni_array *a)
{
    return a && !a->grad_entry && a->grad && a->grad_req != TN_MODE_NONE;
}

static tn_status leaves_collect(tni_tape_walk *w)
{
    tni_array *const *wanted = w->wanted;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < w->wanted_count && !st; i++)
        if (!wanted[i]->grad_entry)
            st = leaf_add(w, wanted[i]);
    for (size_t i = 0; !wanted && i < w->nodes.count; i++) {
        const tni_tape_node *n = node_at(w, i);

        for (uint32_t k = 0; k < n->call.in_count && !st; k++)
            if (n->call.leaves[k] && n->call.leaves[k]->grad_req != TN_MODE_NONE && asks(n, k))
                st = leaf_add(w, n->call.leaves[k]);
    }
    for (uint32_t i = 0; !wanted && i < w->head_count && !st; i++)
        if (counts(w->heads[i]))
            st = leaf_add(w, w->heads[i]);
    return st;
}

static void key_append(uint64_t **at, uint64_t value)
{
    *(*at)++ = value;
}

static void key_edge(const tni_tape_edge *e, uint64_t **at)
{
    key_append(at, KEY_NODE | (uint64_t)e->node << 32 | (uint64_t)e->index << 4);
}

/* A leaf, with what is done to its gradient. */
static void key_leaf(uint64_t kind, uint32_t leaf, const tni_array *a, bool own_modes, uint64_t **at)
{
    const uint64_t own = (uint64_t)a->grad_req << 4 | (uint64_t)tni_grad_is_rows(a) << 8;

    key_append(at, kind | (uint64_t)leaf << 32 | (own_modes ? own : 0));
}

/* What an input is: a producer's output, a leaf, or a constant. */
static void key_input(const tni_tape_walk *w, uint32_t node, uint32_t i, bool own_modes, uint64_t **at)
{
    const tni_tape_call *n = tni_tape_at(w, node);
    const tni_tape_edge e = tni_tape_source(w, node, i);
    const uint32_t leaf = tni_tape_leaf(w, n->leaves[i]);

    if (e.node != TNI_NONE)
        key_edge(&e, at);
    else if (leaf != TNI_NONE)
        key_leaf(KEY_LEAF, leaf, n->leaves[i], own_modes, at);
    else
        key_append(at, KEY_CONSTANT);
}

static void key_head(const tni_tape_walk *w, uint32_t i, bool own_modes, uint64_t **at)
{
    const tni_array *head = w->heads[i];
    const tni_tape_edge e = tni_tape_head(w, i);

    if (e.node != TNI_NONE) {
        key_edge(&e, at);
        return;
    }
    key_leaf(KEY_HEAD, tni_tape_leaf(w, head), head, own_modes, at);
    key_append(at, (uint64_t)(uintptr_t)head->storage->device); /* no signature says what a leaf looks like */
    key_append(at, (uint64_t)head->dtype << 32 | (uint64_t)head->ndim);
    for (int32_t d = 0; d < head->ndim; d++)
        key_append(at, (uint64_t)head->shape[d]);
}

static void key_wanted(const tni_tape_walk *w, uint64_t **at)
{
    for (uint32_t i = 0; i < w->wanted_count; i++) {
        const tni_tape_edge e = tni_tape_wanted(w, i);

        if (e.node != TNI_NONE)
            key_edge(&e, at);
        else
            key_append(at, KEY_LEAF);
    }
}

/* Of functions a pass knows nothing but how many arrays go in and out. */
static uint64_t key_node(const tni_tape_node *n)
{
    if (n->call.function)
        return UINT64_MAX - n->call.out_count;
    return n->signature ? n->signature->id << 1 : n->call.cached->id << 1 | 1u;
}

static tn_status key_make(tni_tape_walk *w)
{
    const bool own_modes = !w->wanted;
    size_t count = 3 + w->head_count + w->wanted_count;
    uint64_t *at;
    tn_status st;

    for (uint32_t i = 0; i < w->head_count; i++)
        count += w->heads[i]->grad_entry ? 0 : 2 + (size_t)w->heads[i]->ndim;
    for (size_t i = 0; i < w->nodes.count; i++)
        count += 2 + tni_tape_at(w, i)->in_count;
    if ((st = tni_vec_extend(&w->key, count, (void **)&at)))
        return st;
    key_append(&at, own_modes | (uint64_t)w->predict << 1);
    key_append(&at, w->head_count);
    key_append(&at, w->wanted_count);
    key_wanted(w, &at);
    for (uint32_t i = 0; i < w->head_count; i++)
        key_head(w, i, own_modes, &at);
    for (uint32_t i = 0; i < w->nodes.count; i++) {
        const tni_tape_node *n = node_at(w, i);

        key_append(&at, key_node(n));
        key_append(&at, n->call.in_count);
        for (uint32_t k = 0; k < n->call.in_count; k++)
            key_input(w, i, k, own_modes, &at);
    }
    w->hash = tni_hash_bytes(0, w->key.data, w->key.count * sizeof(uint64_t));
    return TN_OK;
}

void tni_tape_enter(tni_tape_walk *w, bool retain)
{
    for (size_t i = 0; i < w->nodes.count; i++) {
        tni_tape_node *n = node_at(w, i);

        tni_tape_node_retain(n);
        n->walkers++;
        n->consumed |= !retain;
        if (retain && n->call.frame) /* now, for a backward that consumes may be queued before this one is */
            tni_frame_lend(n->call.frame);
    }
    w->entered = true;
}

void tni_tape_leave(tni_tape_walk *w, bool undo)
{
    tni_tape_call **nodes = w->nodes.data;

    for (size_t i = 0; w->entered && i < w->nodes.count; i++) {
        tni_tape_node *n = node_at(w, i);

        if (undo)
            n->consumed = false;
        if (--n->walkers || !n->consumed)
            continue;
        nodes[i] = nodes[w->spent];
        nodes[w->spent++] = &n->call;
    }
}

static void walk_begin(tni_tape_walk *w, tni_context *c)
{
    static atomic_uint_fast64_t marks;

    w->ctx = c;
    w->mark = atomic_fetch_add_explicit(&marks, 1, memory_order_relaxed) + 1;
    tni_vec_init_kept(&w->nodes, c->space->keep, sizeof(tni_tape_call *), TN_TAPE_NODES_MAX);
    tni_vec_init_kept(&w->leaves, c->space->keep, sizeof(tni_array *), TN_TAPE_NODES_MAX);
    tni_vec_init_kept(&w->key, c->space->keep, sizeof(uint64_t), (size_t)TN_TAPE_NODES_MAX * 64);
}

/* A node that a head depends on whose program was not known when the walk came by, retained; NULL: there is
 * none. Walks go past what was settled by then: whatever is found here was not, and what it has become by now
 * was not walked. */
static tn_status unsettled_find(tni_context *c, uint32_t count, tni_array *const *heads, tni_tape_node **out)
{
    tni_tape_walk w = {.heads = heads, .head_count = count};
    tn_status st;

    walk_begin(&w, c);
    st = nodes_collect(&w);
    for (size_t i = 0; i < w.nodes.count && !st && !*out; i++)
        if (node_at(&w, i)->later)
            tni_tape_node_retain(*out = node_at(&w, i));
    tni_vec_fini(&w.nodes);
    return st;
}

tn_status tni_tape_wait(tni_context *c, tni_mutex *lock, uint32_t count, tni_array *const *heads)
{
    tn_status st = TN_OK;

    while (atomic_load(&c->exec->unsettled) && !st) {
        tni_tape_node *later = NULL;

        tni_mutex_lock(lock);
        st = unsettled_find(c, count, heads, &later);
        tni_mutex_unlock(lock);
        if (!later)
            break;
        st = tni_engine_wait_read(c->engine, tni_tape_later_var(later), 0);
        tni_tape_node_release(later);
    }
    return st;
}

tn_status tni_tape_walk_init(tni_tape_walk *w, tni_context *c)
{
    tn_status st;

    walk_begin(w, c);
    if ((st = nodes_collect(w)) || (st = nodes_choose(w)) || (st = leaves_collect(w)))
        return st;
    return key_make(w);
}

/* ---- what nodes keep --------------------------------------------------------------------------------- */

/* The data of `a` as the output that `e` names; NULL: a constant. Data that was not kept: its shape, without
 * memory. */
static tn_status with_entry(const tni_tape_walk *w, tni_array *a, const tni_tape_spec *like,
                            tni_tape_entry *e, tni_array **out)
{
    const tn_status st = a ? tni_array_detach(a, out)
                           : tni_array_create(w->ctx->space, like->device, like->dtype, like->ndim,
                                              like->shape, "gradient", out);

    if (!st && e)
        tni_tape_attach(*out, e);
    return st;
}

tn_status tni_tape_kept_input(const tni_tape_walk *w, uint32_t node, uint32_t i, tni_array **out)
{
    const tni_tape_node *n = node_at(w, node);
    const tni_tape_spec like = tni_tape_input(&n->call, i);

    if (!n->call.leaves[i])
        return with_entry(w, n->call.in[i], &like, n->in_entries[i], out);
    tni_array_retain(*out = n->call.leaves[i]);
    return TN_OK;
}

tn_status tni_tape_kept_output(const tni_tape_walk *w, uint32_t node, uint32_t i, tni_array **out)
{
    const tni_tape_node *n = node_at(w, node);
    const tni_tape_spec like = tni_tape_output(&n->call, i);

    return with_entry(w, n->call.out[i], &like, &n->entries[i], out);
}

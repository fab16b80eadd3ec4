/*
 * The tape: what was recorded, as nodes that arrays point into.
 *
 * A node keeps the arrays that its gradient reads and nothing else: inputs as they are, outputs as detached
 * views (an output points to its node, so the node must not point back). A leaf is an array with an attached
 * gradient and no producer. An entry is part of its node and counts as a reference on it. Chains are freed
 * without recursion.
 */
#include "exec/internal.h"

#include <string.h>

static void node_drop_arrays(tni_tape_node *n)
{
    for (uint32_t i = 0; i < n->in_count; i++) {
        tni_array_release(n->in[i]);
        n->in[i] = NULL;
    }
    for (uint32_t i = 0; i < n->out_count; i++) {
        tni_array_release(n->out[i]);
        n->out[i] = NULL;
    }
    tni_array_release(n->saved);
    n->saved = NULL;
}

/* The node stays as a mark that a backward pass went through. */
void tni_tape_consume(tni_tape_node *n)
{
    node_drop_arrays(n);
    if (n->frame)
        tni_cached_give_back(n->cached, n->frame);
    n->frame = NULL;
}

static void node_free(tni_tape_node *n)
{
    tni_tape_consume(n);
    for (uint32_t i = 0; i < n->in_count; i++) {
        tni_array_release(n->leaves[i]);
        tni_tape_entry_release(n->in_entries[i]);
    }
    tni_signature_release(n->signature);
    tni_attrs_release(n->attrs);
    tni_cached_entry_release(n->cached);
    tni_free(n);
}

/* Freeing a node drops arrays and entries, which may free further nodes: those are listed and freed in turn,
 * so that the stack does not grow with the length of the tape. */
void tni_tape_node_release(tni_tape_node *n)
{
    static _Thread_local tni_tape_node *list;
    static _Thread_local bool freeing;

    if (!n || !tni_ref_release(&n->refs))
        return;
    n->free_next = list;
    list = n;
    if (freeing)
        return;
    freeing = true;
    while ((n = list) != NULL) {
        list = n->free_next;
        node_free(n);
    }
    freeing = false;
}

void tni_tape_node_retain(tni_tape_node *n)
{
    tni_ref_retain(&n->refs);
}

void tni_tape_entry_release(tni_tape_entry *e)
{
    if (e)
        tni_tape_node_release(e->node);
}

void tni_array_forget(tni_array *a)
{
    tni_tape_entry *e = a->grad_entry;

    a->grad_entry = NULL;
    tni_tape_entry_release(e);
}

static bool is_leaf(const tni_array *a)
{
    return a->grad && !a->grad_entry && a->grad_req != TN_MODE_NONE;
}

bool tni_tape_tracks(uint32_t in_count, tni_array *const *in)
{
    for (uint32_t i = 0; i < in_count; i++)
        if (in[i]->grad_entry || is_leaf(in[i]))
            return true;
    return false;
}

/* One block: the node, its input tables, its entries. */
static tni_tape_node *node_alloc(tni_context *c, uint32_t in_count, uint32_t out_count)
{
    const uint64_t bytes = sizeof(tni_tape_node) + in_count * 3ull * sizeof(void *) +
                           out_count * (sizeof(void *) + sizeof(tni_tape_entry));
    tni_tape_node *n = tni_zalloc(bytes);

    if (!n)
        return NULL;
    tni_ref_init(&n->refs);
    n->order = atomic_fetch_add_explicit(&c->exec->tape_order, 1, memory_order_relaxed) + 1;
    n->in_count = in_count;
    n->out_count = out_count;
    n->in_entries = (tni_tape_entry **)(n + 1);
    n->in = (tni_array **)(n->in_entries + in_count);
    n->leaves = n->in + in_count;
    n->out = n->leaves + in_count;
    n->entries = (tni_tape_entry *)(n->out + out_count);
    for (uint32_t i = 0; i < out_count; i++)
        n->entries[i] = (tni_tape_entry){.node = n, .index = i};
    return n;
}

static void node_inputs(tni_tape_node *n, tni_array *const *in, uint64_t keep)
{
    for (uint32_t i = 0; i < n->in_count; i++) {
        if (in[i]->grad_entry) {
            n->in_entries[i] = in[i]->grad_entry;
            tni_ref_retain(&n->in_entries[i]->node->refs);
        } else if (is_leaf(in[i])) {
            n->leaves[i] = in[i];
            tni_array_retain(in[i]);
        }
        if (i >= 64 || keep >> i & 1u) {
            n->in[i] = in[i];
            tni_array_retain(in[i]);
        }
    }
}

static tn_status node_outputs(tni_tape_node *n, tni_array *const *out, uint64_t keep)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < n->out_count && !st; i++)
        if (i >= 64 || keep >> i & 1u)
            st = tni_array_detach(out[i], &n->out[i]);
    for (uint32_t i = 0; i < n->out_count && !st; i++) {
        tni_array_forget(out[i]);
        tni_ref_retain(&n->refs);
        out[i]->grad_entry = &n->entries[i];
    }
    return st;
}

tn_status tni_tape_record(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, tni_array *saved)
{
    tni_tape_node *n;
    tn_status st;

    if (sig->def->op->flags & TN_OP_ZERO_GRADIENT || !tni_tape_tracks(sig->in_count, in))
        return TN_OK;
    if (!(n = node_alloc(c, sig->in_count, sig->out_count)))
        return TN_E_NOMEM;
    n->saved = saved;
    if (saved)
        tni_array_retain(saved);
    n->signature = sig;
    tni_signature_retain(sig);
    n->attrs = tni_attrs_retain(attrs);
    node_inputs(n, in, sig->need_in[0]);
    st = node_outputs(n, out, sig->need_out[0]);
    tni_tape_node_release(n); /* the outputs' entries hold it */
    return st;
}

tn_status tni_tape_record_cached(tni_cached_entry *entry, tni_frame *frame, uint32_t in_count,
                                 tni_array *const *in, uint32_t out_count, tni_array *const *out)
{
    tni_tape_node *n = node_alloc(frame->ctx, in_count, out_count);
    tn_status st;

    if (!n)
        return TN_E_NOMEM;
    n->cached = entry;
    tni_cached_entry_retain(entry);
    node_inputs(n, in, UINT64_MAX);
    st = node_outputs(n, out, UINT64_MAX);
    if (!st)
        n->frame = frame; /* the caller's reference moves in */
    tni_tape_node_release(n);
    return st;
}

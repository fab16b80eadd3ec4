/* Nodes of the tape: how calls come there. Nobody outside of room exec includes this. */
#ifndef TN_EXEC_NODE_H
#define TN_EXEC_NODE_H

#include "exec/tape.h"

typedef struct tni_tape_node tni_tape_node;
typedef struct tni_tape_entry { /* array->grad_entry points to one; a reference on it is one on its node */
    tni_tape_node *node;
    uint32_t index;
} tni_tape_entry;
struct tni_tape_node {
    tni_tape_call call; /* first: others have pointers to it */
    tni_refcount refs;
    tni_keep *keep;               /* where this came from: the context's */
    uint64_t order;               /* of recording, over all threads */
    uint32_t place;               /* among the nodes of one order: those of an unrolled call */
    tni_signature *signature;     /* of an operator */
    tni_tape_entry **in_entries;  /* where each input comes from; NULL: a leaf or a constant */
    tni_tape_entry *entries;      /* of its outputs */
    tni_tape_entry **unrolled;    /* of a cached operator: per output, what stands for its entry; NULL */
    struct tni_tape_later *later; /* its program is not known yet: `unrolled` once it is settled; NULL */
    bool dropped;                 /* what only a backward pass needs is given up */
    bool consumed;                /* a backward without retain went through, or is about to; with the rest */
    uint32_t walkers;             /* backward passes that run over it; under the lock of walks, as the rest */
    uint64_t mark, asked;         /* scratch of a walk; asked: bits of the outputs that lead to a head */
    uint32_t position;
    tni_tape_node *free_next;
};

static inline tni_tape_node *tni_tape_node_of(const tni_tape_call *call)
{
    return (tni_tape_node *)call;
}

/* Records a call; outputs that depend on a recorded input or a leaf get entries, through operators without a
 * gradient, too: backward from them gives zeros. Nothing is recorded if there is none. [takes] `sig`, on
 * success only. */
tn_status tni_tape_record(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, tni_array *saved);
tn_status tni_tape_record_cached(tni_compiled *compiled, tni_frame *frame, tni_array *const *in,
                                 tni_array *const *out);
/* [takes] `call`, also on failure. */
tn_status tni_tape_record_function(tni_context *c, tni_function_record *call, uint32_t in_count,
                                   tni_array *const *in, tni_array *const *out);
bool tni_tape_tracks(uint32_t in_count, tni_array *const *in);
/* A node of its own at the place of `of`: arrays and entries of its inputs are still to be filled in. */
tn_status tni_tape_node_at(tni_context *c, const tni_tape_node *of, uint32_t place, tni_signature *sig,
                           tni_attrs *attrs, tni_tape_node **out);
/* What stands for an entry: of a call that was unrolled, one of its operators' entries. NULL is fine. */
tni_tape_entry *tni_tape_resolve_on(tni_tape_entry *e);
static inline tni_tape_entry *tni_tape_resolve(tni_tape_entry *e)
{
    return TN_UNLIKELY(e && (e->node->later || e->node->unrolled)) ? tni_tape_resolve_on(e) : e;
}
void tni_tape_unrolled_free(tni_tape_entry **unrolled, uint32_t count); /* NULL is fine */

void tni_tape_consume(tni_tape_node *n); /* gives up what only a backward pass needs; `consumed` is set */
void tni_tape_node_retain(tni_tape_node *n);
void tni_tape_node_release(tni_tape_node *n);
void tni_tape_entry_release(tni_tape_entry *e);

/*
 * Nodes of calls whose program comes later. Such a node holds the places on the tape of those that will stand
 * for it, and the sources of its inputs as they were at the call.
 */
typedef struct tni_tape_origin { /* where an input comes from; borrowed. Both NULL: a constant */
    tni_tape_entry *entry;
    tni_array *leaf;
} tni_tape_origin;
tni_tape_origin tni_tape_origin_of(const tni_array *a);
#define TNI_TAPE_LEVELS 64u                               /* places that a call takes */
uint64_t tni_tape_places(tni_context *c, uint32_t count); /* the first of so many, in the order of calls */
tn_status tni_tape_defer(tni_context *c, uint64_t order, uint32_t in_count, const tni_tape_origin *from,
                         uint32_t out_count, tni_tape_node **out);
/* A node of a compiled graph's call at place `order`; no array points to it. `*recorded`: bits of the outputs
 * that depend on what is recorded. */
tn_status tni_tape_node_cached(tni_compiled *e, tni_frame *f, uint64_t order, tni_array *const *in,
                               const tni_tape_origin *from, tni_array *const *out, tni_tape_node **node,
                               uint64_t *recorded);
void tni_tape_attach(tni_array *a, tni_tape_entry *e); /* in place of what it had */
/* [takes] `unrolled`: per output an entry, or NULL. Written, with that, before whoever waits for the variable
 * is told. */
void tni_tape_settle(tni_tape_node *later, tni_tape_entry **unrolled);
bool tni_tape_settled(const tni_tape_node *n);     /* or it is a node like any other */
tni_var *tni_tape_later_var(tni_tape_node *later); /* written when it is settled */

#endif

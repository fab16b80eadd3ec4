/* A tape, walked: its nodes in order, its leaves, and the key that names its shape. Used inside room
 * autograd. */
#ifndef TN_AUTOGRAD_WALK_H
#define TN_AUTOGRAD_WALK_H

#include "autograd/autograd.h"

typedef struct tni_tape_walk {
    tni_context *ctx;
    tni_vec nodes;  /* tni_tape_node *, in order of recording */
    tni_vec leaves; /* tni_array *, by first appearance */
    tni_vec key;    /* uint64_t */
    uint64_t mark, hash;
    uint32_t head_count, wanted_count;
    tni_array *const *heads;
    tni_array *const *wanted; /* leaves, or outputs of nodes; NULL: all leaves with an attached gradient */
    bool predict;             /* of the backward to come */
    bool entered;
    size_t spent; /* nodes, brought to the front, that this walk leaves last: they give up what they keep */
} tni_tape_walk;

/* Collects what the heads depend on. Caller holds the lock of the context's autograd; `heads`, `wanted` and
 * `predict` of `w` are set, the rest is zeros. With `wanted` other leaves are constants. */
tn_status tni_tape_walk_init(tni_tape_walk *w, tni_context *c);
/* A node that a head depends on whose program was not known when the walk came by, retained; NULL: there is
 * none. Under the lock; `heads` is set. */
tn_status tni_tape_walk_unsettled(tni_tape_walk *w, tni_context *c, tni_tape_node **out);
/* The output of a node of this walk that a wanted array is; NULL: a leaf, or nothing here leads from it. */
const tni_tape_entry *tni_tape_wanted(const tni_tape_walk *w, uint32_t i);
/* Nodes of a walk that was entered stay, and keep what a gradient reads, until it is left; without `retain`
 * others are refused from then on, with it no other backward writes what they keep. `undo`: this one was to
 * consume them, and failed. Under the lock. */
void tni_tape_enter(tni_tape_walk *w, bool retain);
void tni_tape_leave(tni_tape_walk *w, bool undo);
void tni_tape_walk_fini(tni_tape_walk *w); /* without the lock, after it was left */
/* Where head `i` comes from; NULL: a leaf. */
tni_tape_entry *tni_tape_head(const tni_tape_walk *w, uint32_t i);
/* Where output `index` of a node lies. */
tni_device *tni_tape_device(const tni_tape_node *n, uint32_t index);
/* Index of a leaf in `leaves`; TNI_NONE: a constant in this walk. */
uint32_t tni_tape_leaf(const tni_tape_walk *w, const tni_array *a);
/* Where input `i` of `n` comes from, if its producer is part of this walk; NULL: it is a leaf or a constant.
 */
const tni_tape_entry *tni_tape_source(const tni_tape_walk *w, const tni_tape_node *n, uint32_t i);

#endif

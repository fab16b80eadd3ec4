/* Recorded operators as a flat graph, with tables that say where in the tape each entry is found. Used inside
 * room autograd. */
#ifndef TN_AUTOGRAD_FORWARD_H
#define TN_AUTOGRAD_FORWARD_H

#include "autograd/autograd.h"

/* Where an array of the tape is found. */
#define TNI_FROM_LEAF 0u  /* leaves[index] */
#define TNI_FROM_IN 1u    /* in[index] of tape node `node` */
#define TNI_FROM_OUT 2u   /* out[index] of it */
#define TNI_FROM_SAVED 3u /* the block that it saved */

typedef struct tni_source {
    uint32_t kind, node, index;
} tni_source;

/* A leaf, or an output of a tape node outside, that something in the graph reads. Gradients are numbered:
 * those of leaves first, then those of the outputs of tape nodes (slots). */
typedef struct tni_outside {
    uint32_t node, target; /* a variable of the graph; the number of its gradient */
} tni_outside;

/* What the graphs made of one walk share: tables as long as the tape, made once. */
typedef struct tni_forward_tables {
    uint32_t *leaf_entry; /* per leaf: its variable's entry in the graph being made; TNI_NONE */
    uint32_t *slot_entry; /* per slot: the same, or the entry that an operator there makes */
    tni_source *kept;     /* per slot: the first consumer that kept it as an input; node TNI_NONE: nobody */
    const uint32_t *first_slot; /* per tape node; borrowed */
} tni_forward_tables;
tn_status tni_forward_tables_make(tni_forward_tables *t, const tni_tape_walk *w, const uint32_t *first_slot,
                                  uint32_t slot_count);
void tni_forward_tables_fini(tni_forward_tables *t); /* also of one that is all zeros, or could not be made */

typedef struct tni_forward {
    const tni_tape_walk *w;
    tni_forward_tables *tables; /* no two graphs at a time */
    uint32_t first, count;      /* its tape nodes */
    tni_graph *g;
    tni_vec origins;      /* tni_source, per entry */
    tni_vec tape_of_node; /* per node; TNI_NONE: a variable */
    tni_vec prepared;     /* tni_prepared *, per node: what it ran on, if a backward may be told of it */
    tni_vec outside;      /* tni_outside, in order of their nodes */
    bool train, np_shape; /* some node was recorded so */
} tni_forward;

/* Tape nodes first … first + count - 1 of the walk, operators all of them. */
tn_status tni_forward_make(tni_forward *f, const tni_tape_walk *w, tni_forward_tables *tables, uint32_t first,
                           uint32_t count);
void tni_forward_fini(tni_forward *f); /* also of one that is all zeros, or could not be made */
/* A variable of the graph; `from`: where its array is found. */
tn_status tni_forward_variable(tni_forward *f, const tni_tape_spec *like, const tni_source *from,
                               uint32_t *entry);
/* A variable of what the gradient appends looks like entry `of`. */
void tni_forward_like(const tni_forward *f, uint32_t node, uint32_t of);
/* Where the array of an entry is found. TN_E_UNSUPPORTED: nowhere, since a net that was unrolled did not keep
 * it. */
tn_status tni_forward_source(const tni_forward *f, uint32_t entry, tni_source *out);

#endif

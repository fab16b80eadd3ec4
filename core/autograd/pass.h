/*
 * A backward pass, compiled for tapes of one shape: stages from the end of the tape to its begin. A stage is
 * the backward of one recorded call of a cached operator, or of a stretch of recorded operators. Used inside
 * room autograd.
 */
#ifndef TN_AUTOGRAD_PASS_H
#define TN_AUTOGRAD_PASS_H

#include "autograd/forward.h"

/* Gradients are numbered: those of leaves first, then those of the outputs of tape nodes (slots). */
typedef struct tni_stage {
    uint32_t first, count; /* tape nodes */
    bool cached;           /* of a cached operator */
    bool function;         /* of a program's function */
    uint32_t rows;         /* of a node that gives some rows to leaf `rows` - 1; 0: it is another stage */
    /* a stretch of operators */
    tni_program *program;
    tni_frame_pool *pool;
    tni_source *sources;    /* per port that is no gradient */
    uint32_t *tape_of_node; /* per node of its graph: tape position, TNI_NONE */
    /* a cached operator: of its key; a function: what arrives, and what is done */
    uint8_t *heads, *modes;
    uint32_t *targets; /* per variable, or input: number of its gradient */
} tni_stage;

typedef struct tni_pass {
    struct tni_pass *next; /* of the table, under the lock */
    tni_refcount refs;     /* the table's, and one of each backward that runs it */
    uint64_t hash;
    uint64_t *key;
    size_t key_count;
    tni_stage *stages; /* in the order they run */
    uint32_t stage_count, leaf_count, slot_count, head_count;
    uint32_t *first_slot; /* per tape node */
    uint32_t *head_slot;  /* per head: its slot; TNI_NONE: a leaf */
    uint32_t *wanted;     /* per wanted array: its gradient; TNI_NONE: nothing leads from it */
    uint8_t *made;        /* per gradient: some stage writes it */
    uint8_t *starts;      /* per slot: heads arrive, and stages add to them */
} tni_pass;

/* `modes`: per leaf, what is done to its gradient. */
tn_status tni_pass_build(const tni_tape_walk *w, const uint8_t *modes, tni_pass **out);
void tni_pass_release(tni_pass *p);

#endif

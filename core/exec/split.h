/*
 * Nets of two parts, of which the second, the rest, waits for sizes that only a run of the first one tells.
 */
#ifndef TN_EXEC_SPLIT_H
#define TN_EXEC_SPLIT_H

#include "exec/internal.h"

typedef struct tni_array_spec { /* what an array looks like before anything ran */
    tn_shape shape;             /* not all known: pending */
    int32_t dtype;
    tni_device *device; /* NULL: of the call */
} tni_array_spec;

struct tni_split {
    tni_context *ctx;
    tni_cached_op *first, *rest;
    uint32_t *first_inputs; /* per input of the first part: input of the net */
    uint32_t *rest_inputs;  /* per input of the rest: input of the net, or OF_FIRST + output of the first */
    uint32_t *heads;        /* per head of the net: output of the rest, or OF_FIRST + output of the first */
    tni_array_spec *specs;  /* outputs of the first part, then of the rest */
    uint64_t *rest_leads;   /* per input of the rest: bits of its outputs that it leads to */
    uint32_t head_count, draws;
};
#define TNI_OF_FIRST 0x80000000u

typedef struct tni_bound { /* an array, and the variable that its users are ordered by */
    tni_array *array;
    tni_var *var;
} tni_bound;

typedef struct tni_split_run { /* one call of both parts */
    tni_split *split;
    const tni_cached_key *key; /* of the net: flags, device */
    uint64_t draw;             /* the first of the call's */
    const tni_bound *in;       /* inputs of the net */
    tni_bound *first, *rest;   /* outputs of the parts; arrays are not NULL */
    /* Of a recorded call; NULL: it is not. Per input where it comes from,
     * and what is done to its gradient. */
    const tni_tape_origin *from;
    const uint8_t *modes;
    uint64_t order,
        order_end;            /* its places on the tape: it takes two, what is split within it further ones */
    tni_tape_entry **entries; /* gets, per output of the parts, an entry with a reference, or NULL */
} tni_split_run;

/* ---- split.c ------------------------------------------------------------------------------------------- */

/* An array that looks so; `d`: where the call is. */
tn_status tni_array_spec_make(tni_context *c, const tni_array_spec *like, tni_device *d, tni_array **out);

/* ---- continue.c ---------------------------------------------------------------------------------------- */

/* Queues the first part, with the rest as one asynchronous operation behind it; or nothing. */
tn_status tni_split_queue(const tni_split_run *p);

#endif

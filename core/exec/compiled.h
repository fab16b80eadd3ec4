/*
 * A graph compiled for one signature of its inputs: its program, the frames of that, and further backward
 * passes over what a recorded call keeps. Cached operators have one for each signature that they met; so have
 * stretches of a tape.
 */
#ifndef TN_EXEC_COMPILED_H
#define TN_EXEC_COMPILED_H

#include "exec/frame.h"

/* Which backward: the heads that a gradient arrives at, what is done to the gradient of each variable. */
typedef struct tni_backward_key {
    const uint8_t *heads; /* per head: 1: a gradient arrives */
    const uint8_t *modes; /* per variable: TN_MODE_…; NONE: not wanted */
    bool retain;          /* what the forward keeps is only read */
    bool predict;         /* in predict mode; else as the forward ran */
} tni_backward_key;

typedef struct tni_backward_variant tni_backward_variant;

typedef struct tni_compiled {
    tni_refcount refs;
    uint64_t id; /* never used twice in a process */
    tni_context *ctx;
    tni_graph *graph; /* of the forward, inferred */
    tni_program *program;
    tni_frame_pool *pool;
    uint8_t *heads, *modes; /* of the default backward; as in the key */
    uint64_t *leads;        /* per variable: bits of the heads that it leads to, through whatever operators */
    tni_device *device;
    uint16_t flags;       /* TN_NODE_… */
    bool recorded, keeps; /* keeps: memory of the frames */
    uint32_t bulk[2];
    tn_err *no_gradient; /* why there is no default backward; NULL: there is */
    tn_err **refused; /* per head: why it takes no part in that; NULL: it does, or nobody asked. NULL: all */
    tni_mutex lock;
    tni_backward_variant *variants; /* compiled when first asked for */
    tni_program *values;            /* copies what the forward keeps; NULL: nobody asked */
    tni_frame_pool *values_pool;
} tni_compiled;

typedef struct tni_compiled_spec {
    tni_context *ctx;
    tni_graph *graph; /* [takes], also on failure: inferred */
    tni_device *device;
    uint16_t flags;           /* TN_NODE_… */
    const uint8_t *modes;     /* per variable: what is done to its gradient; NULL: it is not recorded */
    const uint8_t *constants; /* of what is not recorded: as in tni_program_spec */
    uint32_t bulk[2];         /* of forward and backward: as in tni_program_spec */
    bool keeps;               /* memory of its frames stays between calls */
} tni_compiled_spec;
/* Per variable: bits of the heads that it leads to, through whatever operators. */
tn_status tni_graph_leads(const tni_graph *g, uint64_t *leads);
tn_status tni_compiled_create(const tni_compiled_spec *spec, tni_compiled **out);
void tni_compiled_retain(tni_compiled *e);
void tni_compiled_release(tni_compiled *e);

/* How a backward of a recorded call runs: in the frame of its forward, or in one of its own that reads it. */
typedef struct tni_backward_run {
    tni_frame *frame; /* one reference; the caller's */
    tni_frame *lender;
    uint32_t phase;
} tni_backward_run;
tn_status tni_compiled_backward(tni_compiled *e, const tni_backward_key *k, tni_frame *forward,
                                tni_backward_run *out);
/* Copies what a recorded call keeps, which must not be consumed meanwhile, into arrays that fit: entries of
 * its graph that lie in kept memory, or whose copies on the arrays' devices do, or that its backward computes
 * again from `inputs` (per variable; NULL where the tape keeps none). Entries and arrays are the same at each
 * call. */
tn_status tni_compiled_values(tni_compiled *e, uint32_t count, const uint32_t *entries, tni_frame *forward,
                              tni_array *const *inputs, tni_array *const *arrays);
/* Why a gradient at one of these heads (bits) was refused when the net was recorded; TN_OK: it was not. */
tn_status tni_compiled_refusal(const tni_compiled *e, uint64_t heads);
/* Per variable that the key wants: whether a gradient reaches it. TN_E_UNSUPPORTED: an operator on the way
 * has none. */
tn_status tni_compiled_reach(const tni_compiled *e, const tni_backward_key *k, uint8_t *reached);
#endif

/*
 * What was recorded, as a backward reads it: a walk over the recorded calls that heads depend on.
 */
#ifndef TN_TAPE_H
#define TN_TAPE_H

#include "exec/compiled.h"
#include "exec/function.h"
#include "exec/invoke.h"

/* ---- tape.c: recorded calls -------------------------------------------------------------------------- */

typedef struct tni_tape_call {     /* what others see of a node of the tape; they only read it */
    tni_attrs *attrs;              /* of an operator, with the run-time values of the call */
    tni_compiled *cached;          /* of a cached operator, instead */
    tni_frame *frame;              /* its frame, kept until backward is done */
    tni_function_record *function; /* of a program's function, instead */
    uint32_t in_count, out_count;
    tni_array **in, **out; /* what the gradient reads; NULL for the others */
    tni_array **leaves;    /* inputs that are leaves; NULL for the others */
    tni_array *saved;      /* bytes that the kernel left for its backward; NULL: none */
} tni_tape_call;
/* Of the operator, net or function, for messages. */
const char *tni_tape_name(const tni_tape_call *n);
typedef struct tni_tape_spec { /* what an array looks like */
    tni_device *device;
    int32_t ndim, dtype;
    const int64_t *shape;
} tni_tape_spec;
tni_tape_spec tni_tape_input(const tni_tape_call *n, uint32_t i); /* of an operator */
tni_tape_spec tni_tape_output(const tni_tape_call *n, uint32_t i);
uint32_t tni_tape_flags(const tni_tape_call *n); /* TN_NODE_… that an operator was recorded with */
/* Operators of one device and one mode: one program may hold them. */
bool tni_tape_alike(const tni_tape_call *a, const tni_tape_call *b);
/* What an operator ran on, for its backward; NULL: a backward may not be told of it. */
tni_prepared *tni_tape_prepared(const tni_tape_call *n);
/* Why a net gives no gradient to what the last walk asks of it; TN_OK: it does. */
tn_status tni_tape_refusal(const tni_tape_call *n);

static inline bool tni_grad_is_rows(const tni_array *a) /* its attached gradient is row_sparse */
{
    return a->grad && a->grad->storage_type != TN_STORAGE_DENSE;
}

void tni_array_forget(tni_array *a); /* takes it off the tape */

/* ---- walk.c: a tape, walked --------------------------------------------------------------------------- */

typedef struct tni_tape_walk {
    tni_context *ctx;
    tni_vec nodes;  /* tni_tape_call *, in order of recording */
    tni_vec leaves; /* tni_array *, by first appearance */
    tni_vec key;    /* uint64_t: two walks share it exactly if one compiled backward pass serves both */
    uint64_t mark, hash;
    uint32_t head_count, wanted_count;
    tni_array *const *heads;
    tni_array *const *wanted; /* leaves, or outputs of nodes; NULL: all leaves with an attached gradient */
    bool predict;             /* of the backward to come */
    bool entered;
    size_t spent; /* nodes, brought to the front, that this walk leaves last: they give up what they keep */
} tni_tape_walk;

/* Walks mark nodes and leaves: one lock of the caller's for all walks of a context. Collects what the heads
 * depend on, under the lock; `heads`, `wanted` and `predict` of `w` are set, the rest is zeros. With `wanted`
 * other leaves are constants. */
tn_status tni_tape_walk_init(tni_tape_walk *w, tni_context *c);
/* Nodes of a walk that was entered stay, and keep what a gradient reads, until it is left; without `retain`
 * others are refused from then on, with it no other backward writes what they keep. `undo`: this one was to
 * consume them, and failed. Under the lock. */
void tni_tape_enter(tni_tape_walk *w, bool retain);
void tni_tape_leave(tni_tape_walk *w, bool undo);
void tni_tape_walk_fini(tni_tape_walk *w); /* without the lock, after it was left */
/* Waits until all that the heads depend on is on the tape: nets in which a run tells some size are once they
 * are compiled. Takes the lock. */
tn_status tni_tape_wait(tni_context *c, tni_mutex *lock, uint32_t count, tni_array *const *heads);

static inline const tni_tape_call *tni_tape_at(const tni_tape_walk *w, size_t i)
{
    return ((tni_tape_call *const *)w->nodes.data)[i];
}

typedef struct tni_tape_edge { /* an output of a node of the walk; node TNI_NONE: of none */
    uint32_t node, index;
} tni_tape_edge;
tni_tape_edge tni_tape_head(const tni_tape_walk *w, uint32_t i); /* of none: a leaf */
tni_tape_edge tni_tape_wanted(const tni_tape_walk *w,
                              uint32_t i); /* of none: a leaf, or nothing leads to it */
/* Where input `i` of a node comes from; of none: it is a leaf or a constant. */
tni_tape_edge tni_tape_source(const tni_tape_walk *w, uint32_t node, uint32_t i);
/* Index of a leaf in `leaves`; TNI_NONE: a constant in this walk. */
uint32_t tni_tape_leaf(const tni_tape_walk *w, const tni_array *a);
/* What a node keeps of an input or output, as an array that knows where it comes from: for calls that are
 * recorded in turn. */
tn_status tni_tape_kept_input(const tni_tape_walk *w, uint32_t node, uint32_t i, tni_array **out);
tn_status tni_tape_kept_output(const tni_tape_walk *w, uint32_t node, uint32_t i, tni_array **out);

/* ---- unroll.c ---------------------------------------------------------------------------------------- */

/* The nets of a walk that was entered become their operators, one tape node each: what they keep are copies
 * of what the call's frame keeps, so nothing runs again. Later walks see the operators. Takes the lock. */
tn_status tni_tape_unroll(const tni_tape_walk *w, tni_mutex *lock);

#endif

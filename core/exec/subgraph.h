/*
 * Operators of kind SUBGRAPH: what runs their graphs. Such an operator is one asynchronous operation; its
 * definition says which of its bodies (the subgraphs of its node) run on which arrays, in an order that
 * follows from those arrays, and the operation ends when all of them are done. Nobody waits for them.
 */
#ifndef TN_EXEC_SUBGRAPH_H
#define TN_EXEC_SUBGRAPH_H

#include "exec/exec.h"

typedef struct tni_subgraph_call tni_subgraph_call;

/* bodies.c: what the operator's definition says. */
tn_status tni_bodies_run(tni_subgraph_call *call);

const tni_attrs *tni_subgraph_attrs(const tni_subgraph_call *call);
/* Borrowed arrays: input `i`, output `i`; NULL: there is none. */
tni_array *tni_subgraph_in(const tni_subgraph_call *call, uint32_t i);
tni_array *tni_subgraph_out(const tni_subgraph_call *call, uint32_t i);
/* The operator's definition. */
const tn_op *tni_subgraph_op(const tni_subgraph_call *call);
/* Element `index` of axis 0; the call's. */
tn_status tni_subgraph_step(tni_subgraph_call *call, tni_array *a, int64_t index, tni_array **out);
/* An array that looks like `like`, for what lies between two runs; the call's. */
tn_status tni_subgraph_array(tni_subgraph_call *call, const tni_array *like, tni_array **out);
/* Runs a body once. `in`, `out`: arrays of all its inputs and outputs, which it may not both read and write.
 * `modes`: per input: TN_MODE_NONE, or WRITE: its gradient may be asked for; NULL: none is. `*run`: the
 * number of this run among those with modes, for tni_subgraph_backward; may be NULL. */
tn_status tni_subgraph_forward(tni_subgraph_call *call, uint32_t body, tni_array *const *in,
                               tni_array *const *out, const uint8_t *modes, uint32_t *run);
/* The backward of run `run`. `heads`: per output of the body: the gradient that arrives; NULL: none does.
 * `modes`: per input: TN_MODE_…, as above; `grads`: where it is written, or added to. */
tn_status tni_subgraph_backward(tni_subgraph_call *call, uint32_t run, tni_array *const *heads,
                                const uint8_t *modes, tni_array *const *grads);
/* An array such as a body gives as output `index` for the inputs `in`; the call's. */
tn_status tni_subgraph_given(tni_subgraph_call *call, uint32_t body, tni_array *const *in, uint32_t index,
                             tni_array **out);
/* Before all runs that are asked for until the next one of `then`. `src` NULL: zeros. */
tn_status tni_subgraph_copy(tni_subgraph_call *call, tni_array *src, tni_array *dst);
void *tni_subgraph_memory(tni_subgraph_call *call, uint64_t bytes); /* zeros; the call's; NULL: none */
/* What goes on once all of that has run; bodies.c's function says how `next` is called. */
tn_status tni_subgraph_then(tni_subgraph_call *call, tn_body_next next, void *state);
tn_status tni_bodies_next(tni_subgraph_call *call, tn_body_next next, void *state);

#endif

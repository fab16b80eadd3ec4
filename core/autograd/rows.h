/* Gradients that are row_sparse, or made of sparse arrays. Used inside room autograd. */
#ifndef TN_AUTOGRAD_ROWS_H
#define TN_AUTOGRAD_ROWS_H

#include "autograd/pass.h"

/* The leaf whose gradient by this node of a walk tni_rows_give makes; TNI_NONE: none. */
uint32_t tni_rows_leaf(const tni_tape_walk *w, uint32_t node);
/* What such a node gives where `dy` arrives: a row_sparse array or a dense one, as the leaf's gradient is. */
tn_status tni_rows_give(tni_context *c, const tni_tape_call *n, const tni_array *leaf, tni_array *dy,
                        tni_array **out);
tn_status tni_rows_dense(tni_context *c, tni_array *a, tni_array **out);
/* Adds an array of any storage type to *sum, which is row_sparse; NULL: it is the first. */
tn_status tni_rows_add(tni_context *c, tni_array *part, tni_array **sum);

#endif

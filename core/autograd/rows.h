/* Gradients that are row_sparse. Used inside room autograd. */
#ifndef TN_AUTOGRAD_ROWS_H
#define TN_AUTOGRAD_ROWS_H

#include "autograd/pass.h"

/* The leaf with a row_sparse gradient that this node of a walk gives some rows alone; TNI_NONE: none. */
uint32_t tni_rows_leaf(const tni_tape_walk *w, uint32_t node);
/* Adds what such a node gives where `dy` arrives to *sum, which is row_sparse; NULL: it is the first. */
tn_status tni_rows_give(tni_context *c, const tni_tape_call *n, const tni_array *leaf, tni_array *dy,
                        tni_array **sum);
tn_status tni_rows_dense(tni_context *c, tni_array *a, tni_array **out);
/* Adds an array of any storage type. */
tn_status tni_rows_add(tni_context *c, tni_array *part, tni_array **sum);

#endif

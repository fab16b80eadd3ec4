/*
 * The interface of room autograd: attached gradients and backward.
 *
 * Recording itself is room exec's (scope and tape). Backward turns what was recorded into a graph, makes its
 * gradient, compiles that as one program and keeps it under the shape of the tape: the next backward over an
 * equal tape only binds arrays and replays.
 */
#ifndef TN_AUTOGRAD_H
#define TN_AUTOGRAD_H

#include "exec/exec.h"

/* Attaches a gradient (zeros, or `grad`, retained) with TN_MODE_NONE, WRITE or ADD;
 * takes `a` off the tape. */
tn_status tni_grad_attach(tni_context *c, tni_array *a, uint32_t mode, tni_array *grad);
void tni_grad_detach(tni_array *a);
uint32_t tni_grad_turn(void);                /* the next number of a backward; not 0 */
tni_array *tni_grad_get(const tni_array *a); /* borrowed; NULL: none attached */

typedef struct tni_backward_options {
    bool retain;  /* the tape may be walked again */
    bool predict; /* kernels that differ in training run as outside of it; else as their forward ran */
    bool create;  /* of tni_grad: the gradients are recorded in turn, and may be differentiated; retains */
} tni_backward_options;

/* Gradients of sum_i <heads[i], head_grads[i]> into every leaf's attached gradient, by its mode. head_grads
 * NULL, or an item of it: ones. TN_E_STATE: nothing was recorded, or a backward without `retain` went through
 * already. */
tn_status tni_backward(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                       const tni_backward_options *options);
/* The gradients of `variables` (leaves, or recorded arrays on the way) as new arrays; attached ones stay
 * untouched. */
tn_status tni_grad(tni_context *c, uint32_t count, tni_array *const *heads, tni_array *const *head_grads,
                   uint32_t variable_count, tni_array *const *variables, const tni_backward_options *options,
                   tni_array **out);
void tni_autograd_close(tni_context *c); /* frees the cache of programs */

#endif

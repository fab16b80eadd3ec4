/* Gradients that are recorded in turn. Used inside room autograd. */
#ifndef TN_AUTOGRAD_HIGHER_H
#define TN_AUTOGRAD_HIGHER_H

#include "autograd/autograd.h"

typedef struct tni_higher_spec {
    tni_mutex *lock; /* of the context's autograd */
    uint32_t head_count, variable_count;
    tni_array *const *heads, *const *head_grads, *const *variables;
    bool predict;
} tni_higher_spec;
/* The gradients of `variables` as recorded arrays, call by call. On failure `out` holds what was made. */
tn_status tni_higher(tni_context *c, const tni_higher_spec *spec, tni_array **out);

#endif

/* The backward of one recorded call of a program's function, as an operation. Used inside room autograd. */
#ifndef TN_AUTOGRAD_FUNCTION_H
#define TN_AUTOGRAD_FUNCTION_H

#include "autograd/autograd.h"

typedef struct tni_function_backward {
    struct tni_function_backward *self; /* the payload */
    tni_context *ctx;
    tni_function *function;
    tni_attrs *attrs; /* NULL: none */
    bool training, np_shape;
    uint32_t in_count, out_count, saved_count;
    tni_function_spec *out; /* per output: what zeros look like */
    tni_array **grads;      /* per output: what arrives, to be filled in by the maker; NULL: nothing */
    tni_array **targets;    /* per input: to be filled in by the maker; NULL: nobody wants it */
    uint8_t *modes;         /* per input: TN_MODE_…; likewise */
    tni_array **saved;
    tni_array **local; /* while it runs: what stands for `grads`, then for `saved` */
    tni_array **made;  /* per input: what the program gave */
    uint32_t made_count;
    uint8_t *wanted; /* per input */
    tni_var **vars;
    tni_operation *op;
    tni_task task;
    atomic_uint left; /* operations that it waits for */
    tni_mutex lock;   /* over the next two */
    tn_status status;
    tn_err err;
} tni_function_backward;
/* TN_E_UNSUPPORTED: the function has no backward. `predict`: run as outside of training. */
tn_status tni_function_backward_create(tni_context *c, const tni_tape_call *n, bool predict,
                                       tni_function_backward **out);
/* `grads`, `targets` and `modes` are retained and filled in. Once the task is pushed, it destroys `b`. */
void tni_function_backward_task(tni_function_backward *b);
void tni_function_backward_destroy(tni_function_backward *b); /* NULL is fine */

#endif

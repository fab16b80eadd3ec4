/*
 * A program's own forward and backward: calls of them, and what the tape keeps of one.
 */
#ifndef TN_EXEC_FUNCTION_H
#define TN_EXEC_FUNCTION_H

#include "exec/frame.h"
#include "tenon/function.h"

typedef struct tni_function {
    tni_refcount refs;
    char *name;
    void *arg;
    tn_status (*forward)(tn_function_run *run, tn_array *const *in, tn_array **out);
    tn_status (*backward)(tn_function_run *run, tn_array *const *out_grads, tn_array **in_grads);
    void (*destroy)(void *arg); /* with the last reference */
} tni_function;
/* `name` NULL: "function". */
tn_status tni_function_create(const tn_function *of, const char *name, tni_function **out);
void tni_function_retain(tni_function *f);
void tni_function_release(tni_function *f); /* NULL is fine */
void tni_function_disown(tni_function *f);  /* `arg` is the caller's again: `destroy` is not called */
/* A name of the set that this function serves. TN_E_ARG: not a definition that a function may have. */
tn_status tni_function_register(tni_context *c, const tn_op *op, const tn_function *of);
bool tni_function_differentiable(const tni_opdef *def); /* false also of what no function serves */
void tni_functions_release(tni_opset *ops);             /* of all registered ones, before the set goes */

typedef struct tni_function_spec { /* an output */
    tni_device *device;
    tn_shape shape;
    int32_t dtype;
} tni_function_spec;

typedef struct tni_function_record { /* a recorded one, of its tape node */
    tni_function *function;
    tni_attrs *attrs; /* of a registered one; NULL */
    bool training, np_shape;
    uint32_t out_count, saved_count;
    tni_array **saved;
    tni_function_spec out[];
} tni_function_record;
void tni_function_record_drop(tni_function_record *k); /* what only a backward needs */
void tni_function_record_free(tni_function_record *k); /* NULL is fine */

typedef struct tni_function_args {
    tni_attrs *attrs;             /* of a registered one; NULL */
    uint32_t in_count, out_count; /* out: room */
    tni_array *const *in;
} tni_function_args;
/* All of `out` become new arrays. */
tn_status tni_function_call(tni_context *c, tni_function *f, const tni_function_args *args, tni_array **out);
/* An operator that a function serves, called now. out[i] NULL: made; else a copy is written there. */
tn_status tni_function_invoke(tni_context *c, const tni_opdef *def, const tni_function_args *args,
                              tni_array **out, uint32_t *made);
tn_status tni_function_save(tn_function_run *run, uint32_t count, tni_array *const *arrays);
/* What `f` says in its forward or backward (`what`) that ended with `st`: a status,
 * and a text with its name. */
tn_status tni_function_status(const tni_function *f, const char *what, tn_status st);

#endif

/* Running one eager call. Used by invoke.c only. */
#ifndef TN_EXEC_CALL_H
#define TN_EXEC_CALL_H

#include "exec/internal.h"

/* Runs on the calling thread if the variables are free at once; false: nothing happened. */
bool tni_call_short(tni_context *c, const tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                    tni_array *const *out, uint64_t draw);
/* The same for a quick signature, and outputs that nobody else has seen. */
bool tni_call_quick(tni_context *c, const tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                    tni_array *const *out);
typedef struct tni_call_with {
    tni_array *saved; /* bytes that the kernel leaves for its backward, or finds there; NULL: none */
    uint64_t draw;    /* of random numbers */
} tni_call_with;
/* Queues the call. */
tn_status tni_call_queue(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                         tni_array *const *out, const tni_call_with *with);
/* sparse.c: the same for calls with a sparse operand. */
tn_status tni_call_sparse(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, uint64_t draw);
/* stored.c: a call with sparse inputs that was refused as it is, by the error of this thread: on what is
 * stored, or on dense copies. */
bool tni_stored_any(uint32_t in_count, tni_array *const *in);
tn_status tni_stored_invoke(tni_context *c, const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                            tni_array *const *in, uint32_t out_count, tni_array **out);

#endif

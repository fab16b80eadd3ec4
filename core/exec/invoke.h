/*
 * Eager calls: signatures, sites, operators called one by one; which kernel would serve one.
 */
#ifndef TN_INVOKE_H
#define TN_INVOKE_H

#include "exec/frame.h"

/* ---- signature.c: what a call looks like, and how it is run ------------------------------------------ */

#define TNI_SIG_OPERANDS 8 /* inputs or outputs that the short way serves */

typedef struct tni_operand_key {
    int32_t dtype, ndim;
    uint32_t contiguous, aligned;
    const int64_t *shape, *stride; /* stride only looked at if not contiguous */
    tni_device *device;            /* the signature's, but of a copy between devices */
} tni_operand_key;

typedef struct tni_signature {
    tni_refcount refs;
    uint64_t id; /* never used twice in a process */
    uint64_t hash;
    const tni_opdef *def;
    tni_attrs *attrs; /* structural values count */
    tni_device *device;
    uint32_t flags, threads;      /* TN_NODE_… */
    uint64_t generation;          /* of options and plugins */
    uint32_t in_count, out_count; /* out: the definition's */
    uint32_t mutated_count;
    uint32_t mutated[4]; /* inputs that are outputs too */
    tni_operand_key *in; /* in_count */
    uint8_t *modes;      /* out_count + mutated_count */
    tn_shape *out_shape; /* out_count */
    int32_t *out_dtype;
    tni_args args;
    tni_program *program;             /* of one instruction; NULL: a view, which copies nothing */
    tni_frame_pool *pool;             /* its frames, for calls that are queued */
    tni_prepared *prepared;           /* what the program runs; borrowed from it */
    tni_prepared *forward;            /* of a backward: what it was told of its forward; retained, NULL */
    uint64_t need_in[1], need_out[1]; /* what the gradient reads (bits; inputs beyond 63: all) */
    bool short_way;                   /* small host kernel: runs on the caller if variables are free */
    bool view;                        /* output 0 is a view of input 0 */
    bool pending;                     /* an output's shape is known only after the run */
    struct tni_signature *bucket_next, *lru_prev, *lru_next;
} tni_signature;
void tni_signature_retain(tni_signature *s);
void tni_signature_release(tni_signature *s);

/* ---- invoke.c: one eager operator -------------------------------------------------------------------- */

typedef struct tn_site { /* the public tn_site is this very struct: operator and parsed attributes */
    tni_refcount refs;
    tni_context *ctx;
    const tni_opdef *def;
    tni_attrs *attrs;       /* replaced when a run-time attribute is set */
    atomic_flag busy;       /* guards attrs and last */
    tni_signature *last[2]; /* most recent first */
    tni_attrs *spare[4];    /* that `attrs` was before: used again once no call holds them; NULL */
} tni_site;
tn_status tni_site_create(tni_context *c, const char *op, size_t count, const char *const *names,
                          const char *const *texts, tni_site **out);
tn_status tni_site_of(tni_context *c, const tni_opdef *def, const tni_attrs *attrs, tni_site **out);
void tni_site_release(tni_site *s);
tn_status tni_site_set(tni_site *s, uint32_t attr, tn_value value); /* run-time attributes only */

/* out[i] NULL: made; else written in place of a new array (shape and dtype must fit). `out_count`: room in
 * `out`, at least the visible outputs. Records if the scope says so. */
tn_status tni_invoke(tni_site *site, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                     tni_array **out);
typedef struct tni_invoke_given { /* what a call knows beside its inputs */
    tni_attrs *attrs;             /* in place of the site's; NULL: those */
    tni_prepared *forward;        /* of a backward: what its forward ran on; NULL: not known */
    tni_array *saved;             /* the block that this left; NULL: none */
} tni_invoke_given;
tn_status tni_invoke_with(tni_site *site, const tni_invoke_given *given, uint32_t in_count,
                          tni_array *const *in, uint32_t out_count, tni_array **out);
tn_status tni_invoke_text(tni_context *c, const char *op, uint32_t in_count, tni_array *const *in,
                          size_t attr_count, const char *const *names, const char *const *texts,
                          uint32_t out_count, tni_array **out, uint32_t *made);
/* The operator _copy, recorded like any. *out NULL: made. */
tn_status tni_invoke_copy(tni_context *c, tni_array *a, tni_array **out);

/* ---- why.c: which kernel would serve a call, and why --------------------------------------------------- */

#define TNI_WHY_NAME_BYTES 128 /* of an input or output */

typedef struct tni_why_input {
    const char *name; /* NULL: the input at this place */
    const int64_t *shape;
    int32_t ndim, dtype; /* -1: not known */
} tni_why_input;

typedef struct tni_why_query {
    const char *op;
    size_t attr_count;
    const char *const *names, *const *texts; /* of attributes */
    tni_device *device;
    const tni_why_input *inputs;
    uint32_t input_count; /* 0: shapes are not known, and no kernel is asked */
    int32_t dtype;        /* of the first input */
    bool train;
} tni_why_query;

typedef struct tni_why {
    const tni_opdef *def;
    tni_device *device;
    tni_choice choice;
    bool asked; /* shapes were given */
    uint32_t in_count, out_count;
    tn_shape *shapes; /* inputs, then outputs */
    int32_t *dtypes;
    char (*names)[TNI_WHY_NAME_BYTES];
} tni_why;
tn_status tni_why_create(tni_context *c, const tni_why_query *q, tni_why **out);
void tni_why_destroy(tni_why *y);

#endif

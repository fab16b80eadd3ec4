/*
 * Eager calls: signatures, sites, operators called one by one; which kernel would serve one.
 */
#ifndef TN_INVOKE_H
#define TN_INVOKE_H

#include "exec/frame.h"

/* ---- invoke.c: one eager operator -------------------------------------------------------------------- */

typedef struct tni_signature tni_signature; /* what a call looks like, and how it is run */
typedef struct tn_site { /* the public tn_site is this very struct: operator and parsed attributes */
    tni_refcount refs;
    tni_context *ctx;
    const tni_opdef *def;
    tni_attrs *attrs; /* replaced when a run-time attribute is set */
    bool plain;       /* arrays alone tell its signature: no counts, shapes or device of the attributes */
    bool fixed;       /* no run-time attributes: `attrs` stays */
    atomic_uint busy; /* guards attrs and last */
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
/* The elements of a sparse array in a dense one, recorded like any. *out NULL: made. */
tn_status tni_dense_give(tni_context *c, tni_array *sparse, tni_array **out);

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

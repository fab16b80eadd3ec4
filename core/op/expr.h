/*
 * Expressions in the texts of definitions: dimensions of shape rules, steps of gradients, bodies of pointwise
 * operators. What a fact is, and what a sign makes of two values, is each language's own; how signs bind, and
 * the operators that they stand for, is the same everywhere.
 */
#ifndef TN_OP_EXPR_H
#define TN_OP_EXPR_H

#include "op/op.h"

typedef struct tni_sign {
    const char *text;
    uint32_t rank;                /* a higher one binds more */
    const char *name;             /* _NAME, broadcast_NAME, _npi_NAME: over two arrays */
    const char *elemwise, *numpy; /* in the place of _NAME and _npi_NAME; NULL: these */
    const char *scalar, *reverse; /* an array and a number, a number and an array */
} tni_sign;

/* Signs that a language has, as bits. */
#define TNI_SIGNS_ORDER 0x33u /* <= >= < > */
#define TNI_SIGNS_EQUAL 0x0cu /* == != */
#define TNI_SIGNS_SUM 0xc0u   /* + - */
#define TNI_SIGNS_PRODUCT 0x300u
#define TNI_SIGNS_POWER 0x400u
#define TNI_RANK_COMPARISON 0u

#define TNI_EXPR_VALUE_MAX 128 /* bytes of a value */

typedef struct tni_expr { /* a language; `self`: who reads it */
    uint32_t signs;
    bool one_comparison; /* not several in a row */
    const char *blanks;  /* passed over before signs */
    void (*fact)(void *self, void *value);
    void (*apply)(void *self, const tni_sign *sign, void *a, const void *b); /* the result goes to `a` */
} tni_expr;

extern const tni_sign tni_sign_times; /* "*" */
/* A whole expression at `*at`, from left to right; `out`: its value. After a failure (`*st`) no sign is
 * taken. */
void tni_expr_read(const tni_expr *e, void *self, const char **at, const tn_status *st, void *out);
/* The operator of a sign over two arrays, whose name begins with `prefix`; `whole` NULL: has no name of its
 * own. */
void tni_sign_operator(const tni_sign *sign, const char *prefix, const char *whole, char *out);

#endif

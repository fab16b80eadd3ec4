/* Making cases: attribute values by type, shapes, nodes that fit, whole cases. */
#ifndef TN_TESTS_RANDOM_MAKE_H
#define TN_TESTS_RANDOM_MAKE_H

#include "case.h"

typedef struct fuzz_maker {      /* what cases are made from */
    const tni_opdef *const *ops; /* the whole set of a context */
    uint32_t op_count;
} fuzz_maker;

/* ---- attrs.c: texts of attribute values ---------------------------------------------------------------- */

/* A value that operators may well accept; sizes follow `like`, the shape of the first input (ndim -1: there
 * is none). Returns the text. */
uint32_t fuzz_attr_fit(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d, const tn_shape *like);
/* Anything: extremes, nonsense, tuples of thousands. */
uint32_t fuzz_attr_wild(fuzz_case *c, fuzz_rng *r, const tn_attr_def *d);

/* ---- shapes.c: shapes and data types ------------------------------------------------------------------- */

void fuzz_shape_fit(fuzz_rng *r, tn_shape *s);                        /* small: 0 to 6 dimensions */
void fuzz_shape_like(fuzz_rng *r, const tn_shape *like, tn_shape *s); /* related to another one */
void fuzz_shape_wild(fuzz_rng *r, tn_shape *s);                       /* changed in one place */
int32_t fuzz_dtype_fit(fuzz_rng *r);                                  /* floats mostly */
int32_t fuzz_dtype_any(fuzz_rng *r);

/* ---- node.c: one node that fits ------------------------------------------------------------------------ */

typedef struct fuzz_feed { /* where inputs may come from beside new variables */
    const uint32_t *entries;
    uint32_t count;
    uint32_t percent; /* how often one of them is taken */
} fuzz_feed;

/* Adds a node of `def` whose attributes and inputs inference accepts. False: none was found; then what was
 * tried last is there if `keep`, else nothing. */
bool fuzz_node_make(fuzz_case *c, fuzz_rng *r, const tni_opdef *def, const fuzz_feed *feed, bool keep);

/* ---- whole cases --------------------------------------------------------------------------------------- */

typedef void (*fuzz_make_fn)(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r);
void fuzz_make_op(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r);    /* make_op.c: one call */
void fuzz_make_graph(const fuzz_maker *m, fuzz_case *c, fuzz_rng *r); /* make_graph.c */
void fuzz_make_flags(fuzz_case *c, fuzz_rng *r);                      /* first: inference asks for them */
/* Heads' arrays and head gradients, attached gradients. */
void fuzz_make_rest(fuzz_case *c, fuzz_rng *r);

#endif

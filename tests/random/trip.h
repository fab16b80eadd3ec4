/* One way of running a case, from fresh arrays to results. */
#ifndef TN_TESTS_RANDOM_TRIP_H
#define TN_TESTS_RANDOM_TRIP_H

#include "run.h"

#define FUZZ_WAY_CACHED 1u  /* as a cached operator */
#define FUZZ_WAY_PROGRAM 2u /* as a program for serving */
#define FUZZ_WAY_JSON 4u    /* the symbol was written and read again */
#define FUZZ_WAY_TEXT 8u    /* operators are called by name, not by site */
#define FUZZ_WAY_DENSE 16u  /* every array is row-major */
#define FUZZ_WAY_APART 32u  /* no result is written over anything */
#define FUZZ_WAY_TWICE 64u  /* a first call goes before, and its results are dropped */
#define FUZZ_WAY_SETS 128u  /* run-time attributes are set at the site, which begins with others */

typedef struct fuzz_way {
    const char *name;
    uint32_t engine; /* context of the bench */
    uint32_t flags;  /* FUZZ_WAY_… */
} fuzz_way;

typedef struct trip {
    tn_ctx *ctx;
    const tn_device *cpu; /* all cases run there; a seed for every device costs more than a call */
    const fuzz_case *c;
    uint32_t flags; /* FUZZ_WAY_… */
    fuzz_result *r;
    bool live[FUZZ_NODES_MAX];
    bool written[FUZZ_VARIABLES_MAX];
    fuzz_array variables[FUZZ_VARIABLES_MAX], grads[FUZZ_VARIABLES_MAX];
    fuzz_array given[FUZZ_HEADS_MAX], head_grads[FUZZ_HEADS_MAX];
    tn_array *entries[FUZZ_ENTRIES_MAX]; /* retained */
} trip;

/* False: the arrays cannot be made, so there is nothing to run. */
bool fuzz_trip(const fuzz_bench *b, const fuzz_case *c, const fuzz_way *w, fuzz_result *r);
/* The array that the caller gives for head `h`, borrowed; NULL: none. */
tn_array *fuzz_trip_given(const trip *t, uint32_t h);
/* Attributes of a node as pairs, NULL-ended. */
void fuzz_trip_attrs(const fuzz_case *c, const fuzz_node *n, const char **pairs);

tn_status fuzz_trip_eager(trip *t);    /* eager.c: fills in `entries` */
tn_status fuzz_trip_compiled(trip *t); /* compiled.c: entries of heads alone */
/* A status of the harness's own, with a text. */
tn_status fuzz_refused(const char *text);

#define FUZZ_PAIRS_MAX (2 * 160 + 1)

#endif

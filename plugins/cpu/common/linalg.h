/*
 * Linear algebra, matrix by matrix. A plugin has routines for single matrices: loops in C, or a library's.
 * Bodies (../../common/linalg_bodies.inc) load one matrix, call routines and store the result; each is a
 * task of one thread, so the bits do not depend on the number of threads.
 */
#ifndef TNCPU_LINALG_H
#define TNCPU_LINALG_H

#include <stdbool.h>

#include "../../common/linalg.h"
#include "cpu.h"

/* The team of a body is one thread. */
#define LA_CALL tncpu_la_call
#define LA_OWN static
#define LA_PUBLIC
#define FIRST true
#define SYNC() ((void)0)
#define EACH(i, first, end) for (int64_t i = (first); i < (end); i++)
#define WANTED(o) c->x->modes[o]

typedef struct tncpu_la_call {
    const tn_exec *x;
    tnb_la_sizes s;
    tnb_la_how how;
    int64_t failed; /* the first matrix that is refused; `count`: none */
} tncpu_la_call;

/** Computes matrix `i` in the thread's room. Not 0: the values are such that there is no result. */
typedef int tncpu_la_body(const tncpu_la_call *c, int64_t i, void *room);

typedef struct tncpu_la_form {
    const char *op;
    void (*size)(const tn_node *node, tnb_la_sizes *s);
    int64_t (*room)(const tnb_la_sizes *s); /* elements for each thread; NULL: none */
    tncpu_la_body *f32, *f64;                 /* f32 NULL: the other one is for all types */
    int32_t out, in;   /* output `out` may lie where input `in` does; in -1: none may */
    const char *wrong; /* what is said of a matrix that is refused */
} tncpu_la_form;

/** `forms` has a row for the node's operator. `ns`: of a multiplication and an addition. */
tn_status tncpu_la_prepare(const tncpu_la_form *forms, void *plugin, const tn_node *node, tn_plan *plan,
                           double ns, tn_err *err);
tn_status tncpu_la_run(const tn_plan *plan, const tn_exec *x, tn_err *err);

#endif

/*
 * Linear algebra, matrix by matrix: what bodies (linalg_bodies.inc) are told. In C and CUDA; what reads
 * nodes is in linalg_sizes.inc.
 *
 * Bodies and decompositions are written for a team of threads that all walk the same way: a GPU's block,
 * or one thread of a host. The includer's words:
 *
 *     EACH(i, first, end)    a loop whose turns the team shares; they depend on no other turn
 *     SYNC()                 what the team wrote before it is seen behind it
 *     FIRST                  true for one thread
 *     LA_OWN, LA_PUBLIC      in front of functions
 *
 * What is written outside of EACH is done by all threads alike and writes nothing but variables; functions
 * that write begin where all reads before them are done, and end with SYNC().
 */
#ifndef TNB_LINALG_H
#define TNB_LINALG_H

#include <stdint.h>

#define LA_LN2 0.693147180559945309417
#define TNB_LA_DIMS 32 /* TN_NDIM_MAX */

/* The sizes of a call: `count` matrices (m, n), or (n, n), and right sides (n, k). */
typedef struct tnb_la_sizes {
    int64_t count, m, n, k;
} tnb_la_sizes;

/* A triangular matrix beside another one. */
typedef struct tnb_la_triangle {
    int32_t right, lower, transpose, reserved;
    double alpha;
} tnb_la_triangle;

/* Attributes of the call. */
typedef struct tnb_la_how {
    tnb_la_triangle triangle; /* lower: also which triangle is read or made */
    double rcond, least;      /* least: of what gradients divide by */
    int32_t ndim, reserved; /* where number i of something lies: a condition number, an element of a matrix */
    int64_t shape[TNB_LA_DIMS], stride[TNB_LA_DIMS];
} tnb_la_how;

#endif

/*
 * Decompositions of single matrices in double, all row-major: short, safe forms of the textbooks, for
 * linalg.c. Contracts: ../common/linalg_bodies.inc. Iterations have
 * limits: what does not converge is refused.
 */
#ifndef TNCPU_DECOMPOSE_H
#define TNCPU_DECOMPOSE_H

#include "../common/linalg.h"

void tncpu_la_product(int64_t m, int64_t n, int64_t k, const double *a, bool ta, const double *b, bool tb,
                      double *c);
void tncpu_la_trmm(tncpu_la_triangle how, int64_t m, int64_t n, const double *a, double *b);
void tncpu_la_trsm(tncpu_la_triangle how, int64_t m, int64_t n, const double *a, double *b);
int tncpu_la_cholesky(int64_t n, double *a);
int tncpu_la_cholesky_inverse(int64_t n, double *a);
bool tncpu_la_lu(int64_t n, double *a, double *work);
int tncpu_la_inverse(int64_t n, double *a, double *work);
int tncpu_la_solve(int64_t n, int64_t k, double *a, double *b, double *work);
int tncpu_la_lq(int64_t m, int64_t n, double *a, double *l, double *work);
int tncpu_la_eigh(int64_t n, double *a, double *w, bool vectors, double *work);
int tncpu_la_svd(int64_t m, int64_t n, double *a, double *ut, double *s, double *work);
int tncpu_la_eig(int64_t n, double *a, double *w, double *v, double *work);

/* Numbers of `work`. */
static inline int64_t lu_room(int64_t n, int64_t k)
{
    return n + 0 * k;
}

static inline int64_t lq_room(int64_t m)
{
    return m;
}

static inline int64_t eigh_room(int64_t n)
{
    return n * n;
}

static inline int64_t svd_room(int64_t m, int64_t n)
{
    return 0 * (m + n);
}

static inline int64_t eig_room(int64_t n)
{
    return n * (n + 2);
}

#endif

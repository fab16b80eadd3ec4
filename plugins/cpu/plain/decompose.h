/*
 * Decompositions of single matrices in double, for linalg.c: ../../common/decompose.inc and eigen.inc.
 * Contracts: ../../common/linalg_bodies.inc.
 */
#ifndef TNCPU_DECOMPOSE_H
#define TNCPU_DECOMPOSE_H

#include "../../common/decompose.h"
#include "../common/linalg.h"

void tncpu_la_product(int64_t m, int64_t n, int64_t k, const double *a, bool ta, const double *b, bool tb,
                      double *c);
void tncpu_la_trmm(tnb_la_triangle how, int64_t m, int64_t n, const double *a, double *b);
void tncpu_la_trsm(tnb_la_triangle how, int64_t m, int64_t n, const double *a, double *b);
int tncpu_la_cholesky(int64_t n, double *a);
int tncpu_la_cholesky_inverse(int64_t n, double *a);
bool tncpu_la_lu(int64_t n, double *a, double *work);
int tncpu_la_inverse(int64_t n, double *a, double *work);
int tncpu_la_solve(int64_t n, int64_t k, double *a, double *b, double *work);
int tncpu_la_lq(int64_t m, int64_t n, double *a, double *l, double *work);
int tncpu_la_eigh(int64_t n, double *a, double *w, bool vectors, double *work);
int tncpu_la_svd(int64_t m, int64_t n, double *a, double *ut, double *s, double *work);
int tncpu_la_eig(int64_t n, double *a, double *w, double *v, double *work);

#endif

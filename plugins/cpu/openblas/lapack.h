/*
 * The routines of LAPACK that linalg.c calls, as Fortran has them: the library brings no header for most.
 * Behind the arguments stand the lengths of those that are characters.
 */
#ifndef TNBLAS_LAPACK_H
#define TNBLAS_LAPACK_H

#include <cblas.h>
#include <stddef.h>

#define LAPACK_ROUTINES(T, x)                                                                                \
    extern void x##potrf_(const char *uplo, const blasint *n, T *a, const blasint *lda, blasint *info,       \
                          size_t);                                                                           \
    extern void x##potri_(const char *uplo, const blasint *n, T *a, const blasint *lda, blasint *info,       \
                          size_t);                                                                           \
    extern void x##getrf_(const blasint *m, const blasint *n, T *a, const blasint *lda, blasint *pivots,     \
                          blasint *info);                                                                    \
    extern void x##getri_(const blasint *n, T *a, const blasint *lda, const blasint *pivots, T *work,        \
                          const blasint *lwork, blasint *info);                                              \
    extern void x##getrs_(const char *trans, const blasint *n, const blasint *nrhs, const T *a,              \
                          const blasint *lda, const blasint *pivots, T *b, const blasint *ldb,               \
                          blasint *info, size_t);                                                            \
    extern void x##geqrf_(const blasint *m, const blasint *n, T *a, const blasint *lda, T *tau, T *work,     \
                          const blasint *lwork, blasint *info);                                              \
    extern void x##orgqr_(const blasint *m, const blasint *n, const blasint *k, T *a, const blasint *lda,    \
                          const T *tau, T *work, const blasint *lwork, blasint *info);                       \
    extern void x##syevd_(const char *jobz, const char *uplo, const blasint *n, T *a, const blasint *lda,    \
                          T *w, T *work, const blasint *lwork, blasint *iwork, const blasint *liwork,        \
                          blasint *info, size_t, size_t);                                                    \
    extern void x##gesdd_(const char *jobz, const blasint *m, const blasint *n, T *a, const blasint *lda,    \
                          T *s, T *u, const blasint *ldu, T *vt, const blasint *ldvt, T *work,               \
                          const blasint *lwork, blasint *iwork, blasint *info, size_t);                      \
    extern void x##geev_(const char *jobvl, const char *jobvr, const blasint *n, T *a, const blasint *lda,   \
                         T *wr, T *wi, T *vl, const blasint *ldvl, T *vr, const blasint *ldvr, T *work,      \
                         const blasint *lwork, blasint *info, size_t, size_t);
LAPACK_ROUTINES(float, s)
LAPACK_ROUTINES(double, d)

#endif

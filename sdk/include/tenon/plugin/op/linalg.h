/** Attributes of the operators of the family linalg. */
#ifndef TENON_PLUGIN_OP_LINALG_H
#define TENON_PLUGIN_OP_LINALG_H

#include "../attr.h"

#define TN_linalg_gemm_ATTRS(X)                                                                              \
    X(linalg_gemm, BOOL, transpose_a, "0", TN_ANY, "multiply with the transpose of A")                       \
    X(linalg_gemm, BOOL, transpose_b, "0", TN_ANY, "multiply with the transpose of B")                       \
    X(linalg_gemm, FLOAT, alpha, "1", TN_ANY, "factor of the product")                                       \
    X(linalg_gemm, FLOAT, beta, "1", TN_ANY, "factor of C; with 0 C is not read")                            \
    X(linalg_gemm, INT, axis, "-2", TN_ANY, "axis of the rows; the last axis has the columns")
TN_ATTRS(linalg_gemm);

#define TN_linalg_gemm2_ATTRS(X)                                                                             \
    X(linalg_gemm2, BOOL, transpose_a, "0", TN_ANY, "multiply with the transpose of A")                      \
    X(linalg_gemm2, BOOL, transpose_b, "0", TN_ANY, "multiply with the transpose of B")                      \
    X(linalg_gemm2, FLOAT, alpha, "1", TN_ANY, "factor of the product")                                      \
    X(linalg_gemm2, INT, axis, "-2", TN_ANY, "axis of the rows; the last axis has the columns")
TN_ATTRS(linalg_gemm2);

#define TN_linalg_syrk_ATTRS(X)                                                                              \
    X(linalg_syrk, BOOL, transpose, "0", TN_ANY, "multiply the transpose with A, not A with the transpose")  \
    X(linalg_syrk, FLOAT, alpha, "1", TN_ANY, "factor of the product")
TN_ATTRS(linalg_syrk);

/* _linalg_trmm, _linalg_trsm */
#define TN_linalg_trmm_ATTRS(X)                                                                              \
    X(linalg_trmm, BOOL, transpose, "0", TN_ANY, "take the transpose of A")                                  \
    X(linalg_trmm, BOOL, rightside, "0", TN_ANY, "A stands right of B")                                      \
    X(linalg_trmm, BOOL, lower, "1", TN_ANY, "A is the lower triangle, else the upper one")                  \
    X(linalg_trmm, FLOAT, alpha, "1", TN_ANY, "factor of the result")
TN_ATTRS(linalg_trmm);

/* _linalg_potrf, _linalg_potri, _npi_cholesky */
#define TN_linalg_potrf_ATTRS(X)                                                                             \
    X(linalg_potrf, BOOL, lower, "1", TN_ANY, "the triangular matrix is the lower one, else the upper one")
TN_ATTRS(linalg_potrf);

/* _linalg_extractdiag, _linalg_makediag */
#define TN_linalg_diag_ATTRS(X)                                                                              \
    X(linalg_diag, INT, offset, "0", TN_IN(-2147483647, 2147483647),                                         \
      "which diagonal: 0 the main one, above 0 one above it")
TN_ATTRS(linalg_diag);

/* _linalg_extracttrian, _linalg_maketrian */
#define TN_linalg_trian_ATTRS(X)                                                                             \
    X(linalg_trian, INT, offset, "0", TN_IN(-2147483647, 2147483647),                                        \
      "diagonal that bounds the triangle; above 0 it is the upper one, below 0 the lower one")               \
    X(linalg_trian, BOOL, lower, "1", TN_ANY, "with offset 0: the lower triangle, else the upper one")
TN_ATTRS(linalg_trian);

/* _npi_eigh, _npi_eigvalsh */
#define TN_npi_eigh_UPLO_CHOICES(C, op, name) C(op, name, L) C(op, name, U)
#define TN_npi_eigh_ATTRS(X) X(npi_eigh, CHOICE, UPLO, "L", TN_ANY, "triangle of A that is read")
TN_ATTRS(npi_eigh);
TN_CHOICES(npi_eigh, UPLO);

#define TN_npi_pinv_ATTRS(X) X(npi_pinv, BOOL, hermitian, "0", TN_ANY, "A is symmetric; advice only")
TN_ATTRS(npi_pinv);

#define TN_npi_pinv_scalar_rcond_ATTRS(X)                                                                    \
    X(npi_pinv_scalar_rcond, FLOAT, rcond, "1e-15", TN_ANY,                                                  \
      "singular values up to this part of the largest one count as 0")                                       \
    X(npi_pinv_scalar_rcond, BOOL, hermitian, "0", TN_ANY, "A is symmetric; advice only")
TN_ATTRS(npi_pinv_scalar_rcond);

#define TN_npi_tensorinv_ATTRS(X)                                                                            \
    X(npi_tensorinv, INT, ind, "2", TN_IN(1, 2147483647), "how many of the first axes are the rows")
TN_ATTRS(npi_tensorinv);

#define TN_npi_tensorsolve_ATTRS(X)                                                                          \
    X(npi_tensorsolve, TUPLE, a_axes, "()", TN_ANY, "axes of a that are moved behind all others")
TN_ATTRS(npi_tensorsolve);

/* flag as MXNet's np.linalg.norm sets it: -2 all elements, 1 Frobenius, 2 nuclear, else `ord` says it. */
#define TN_npi_norm_ATTRS(X)                                                                                 \
    X(npi_norm, FLOAT, ord, "2", TN_ANY, "order of the norm; of matrices 1, -1, 2, -2, inf or -inf")         \
    X(npi_norm, TUPLE, axis, "None", TN_ANY, "one axis: of vectors, two: of matrices; None: the last two")   \
    X(npi_norm, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")                                \
    X(npi_norm, INT, flag, "-1", TN_IN(-2, 4), "-2: of all elements, 1: Frobenius, 2: nuclear, else: ord")
TN_ATTRS(npi_norm);

#endif

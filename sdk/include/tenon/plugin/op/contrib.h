/** Attributes of the operators of the family contrib. */
#ifndef TENON_PLUGIN_OP_CONTRIB_H
#define TENON_PLUGIN_OP_CONTRIB_H

#include "../attr.h"

#define TN_contrib_quadratic_ATTRS(X)                                                                        \
    X(contrib_quadratic, FLOAT, a, "0", TN_ANY, "of x * x")                                                  \
    X(contrib_quadratic, FLOAT, b, "0", TN_ANY, "of x")                                                      \
    X(contrib_quadratic, FLOAT, c, "0", TN_ANY, "what is added")
TN_ATTRS(contrib_quadratic);

#define TN_contrib_allclose_ATTRS(X)                                                                         \
    X(contrib_allclose, FLOAT, rtol, "9.99999975e-06", TN_ANY, "times |b|")                                  \
    X(contrib_allclose, FLOAT, atol, "9.99999994e-09", TN_ANY, "is added")                                   \
    X(contrib_allclose, BOOL, equal_nan, "1", TN_ANY, "NaN is close to NaN")
TN_ATTRS(contrib_allclose);

#define TN_contrib_getnnz_ATTRS(X) X(contrib_getnnz, OPT_INT, axis, "None", TN_IN(0, 1), "1: of each row")
TN_ATTRS(contrib_getnnz);

/* _contrib_fft and _contrib_ifft */
#define TN_contrib_fft_ATTRS(X)                                                                              \
    X(contrib_fft, INT, compute_size, "128", TN_IN(1, 1e9), "rows at a time; advice only")
TN_ATTRS(contrib_fft);

/* _contrib_interleaved_matmul_… */
#define TN_interleaved_ATTRS(X)                                                                              \
    X(interleaved, INT, heads, TN_REQUIRED, TN_IN(1, 1e6), "heads of the attention")
TN_ATTRS(interleaved);

#define TN_IdentityAttachKLSparseReg_ATTRS(X)                                                                \
    X(IdentityAttachKLSparseReg, FLOAT, sparseness_target, "0.100000001", TN_IN(0, 1),                       \
      "mean that is wanted")                                                                                 \
    X(IdentityAttachKLSparseReg, FLOAT, penalty, "0.00100000005", TN_ANY, "what the divergence counts")      \
    X(IdentityAttachKLSparseReg, FLOAT, momentum, "0.899999976", TN_ANY, "how much of moving_avg is kept")
TN_ATTRS(IdentityAttachKLSparseReg);

#define TN_SVMOutput_ATTRS(X)                                                                                \
    X(SVMOutput, FLOAT, margin, "1", TN_ANY, "that scores have to keep")                                     \
    X(SVMOutput, FLOAT, regularization_coefficient, "1", TN_ANY, "of the loss")                              \
    X(SVMOutput, BOOL, use_linear, "0", TN_ANY, "hinge loss; else it is squared")
TN_ATTRS(SVMOutput);

#endif

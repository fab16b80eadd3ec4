/** Attributes of the operators of the family init. */
#ifndef TENON_PLUGIN_OP_INIT_H
#define TENON_PLUGIN_OP_INIT_H

#include "../attr.h"

#define TN_INIT_ROWS(X, op)                                                                                  \
    X(op, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                                            \
    X(op, DTYPE, dtype, "float32", TN_ANY, "of the output; None: float32")

/* _zeros, _ones */
#define TN_zeros_ATTRS(X)                                                                                    \
    X(zeros, TUPLE, shape, "[]", TN_IN(-1, 9e15), "of the output; -1: to be inferred")                       \
    TN_INIT_ROWS(X, zeros)
TN_ATTRS(zeros);

/* _full */
#define TN_full_ATTRS(X)                                                                                     \
    X(full, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the output; -1: to be inferred")                      \
    TN_INIT_ROWS(X, full)                                                                                    \
    X(full, FLOAT_RUN, value, TN_REQUIRED, TN_ANY, "of every element")
TN_ATTRS(full);

/* _arange */
#define TN_arange_ATTRS(X)                                                                                   \
    X(arange, FLOAT, start, TN_REQUIRED, TN_ANY, "first value; without stop: the end, and 0 is first")       \
    X(arange, OPT_FLOAT, stop, "None", TN_ANY, "end, not included")                                          \
    X(arange, FLOAT, step, "1", TN_ANY, "distance of two values")                                            \
    X(arange, INT, repeat, "1", TN_IN(1, 9e15), "how often each value stands")                               \
    X(arange, BOOL, infer_range, "0", TN_ANY, "the length comes from where the output goes")                 \
    TN_INIT_ROWS(X, arange)
TN_ATTRS(arange);

/* _eye */
#define TN_eye_ATTRS(X)                                                                                      \
    X(eye, INT, N, TN_REQUIRED, TN_IN(0, 9e15), "rows")                                                      \
    X(eye, INT, M, "0", TN_IN(0, 9e15), "columns; 0: as many as rows")                                       \
    X(eye, INT, k, "0", TN_ANY, "which diagonal; above 0: right of the main one")                            \
    TN_INIT_ROWS(X, eye)
TN_ATTRS(eye);

/* _linspace */
#define TN_linspace_ATTRS(X)                                                                                 \
    X(linspace, FLOAT, start, TN_REQUIRED, TN_ANY, "first value")                                            \
    X(linspace, FLOAT, stop, TN_REQUIRED, TN_ANY, "last value, or with endpoint=0 the one behind it")        \
    X(linspace, INT, num, TN_REQUIRED, TN_IN(0, 9e15), "number of values")                                   \
    X(linspace, BOOL, endpoint, "1", TN_ANY, "stop is the last value")                                       \
    TN_INIT_ROWS(X, linspace)
TN_ATTRS(linspace);

/* _npi_logspace: linspace with a base */
#define TN_npi_logspace_ATTRS(X)                                                                             \
    X(npi_logspace, FLOAT, start, TN_REQUIRED, TN_ANY, "first exponent")                                     \
    X(npi_logspace, FLOAT, stop, TN_REQUIRED, TN_ANY, "last exponent, or with endpoint=0 the one behind it") \
    X(npi_logspace, INT, num, TN_REQUIRED, TN_IN(0, 9e15), "number of values")                               \
    X(npi_logspace, BOOL, endpoint, "1", TN_ANY, "stop is the last exponent")                                \
    X(npi_logspace, FLOAT, base, "10", TN_ANY, "what is raised to the exponents")                            \
    TN_INIT_ROWS(X, npi_logspace)
TN_ATTRS(npi_logspace);

/* _npi_eye */
#define TN_npi_eye_ATTRS(X)                                                                                  \
    X(npi_eye, INT, N, TN_REQUIRED, TN_IN(0, 9e15), "rows")                                                  \
    X(npi_eye, OPT_INT, M, "None", TN_IN(0, 9e15), "columns; None: as many as rows")                         \
    X(npi_eye, INT, k, "0", TN_ANY, "which diagonal; above 0: right of the main one")                        \
    TN_INIT_ROWS(X, npi_eye)
TN_ATTRS(npi_eye);

/* _npi_identity */
#define TN_npi_identity_ATTRS(X)                                                                             \
    X(npi_identity, TUPLE, shape, "[]", TN_IN(-1, 9e15), "rows and columns")                                 \
    TN_INIT_ROWS(X, npi_identity)
TN_ATTRS(npi_identity);

/* _npi_indices */
#define TN_npi_indices_ATTRS(X)                                                                              \
    X(npi_indices, TUPLE, dimensions, TN_REQUIRED, TN_IN(0, 9e15), "of the grid")                            \
    X(npi_indices, DTYPE, dtype, "int32", TN_ANY, "of the output; None: float32")                            \
    X(npi_indices, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")
TN_ATTRS(npi_indices);

/* _npi_hamming, _npi_hanning, _npi_blackman */
#define TN_npi_hamming_ATTRS(X)                                                                              \
    X(npi_hamming, OPT_INT, M, "None", TN_IN(-9e15, 9e15), "number of values; below 1: none")                \
    TN_INIT_ROWS(X, npi_hamming)
TN_ATTRS(npi_hamming);

/* _zeros_without_dtype */
#define TN_zeros_without_dtype_ATTRS(X)                                                                      \
    X(zeros_without_dtype, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the output; -1: to be inferred")       \
    X(zeros_without_dtype, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                           \
    X(zeros_without_dtype, INT, dtype, "-1", TN_IN(-1, 12), "number of the data type; -1: float32")
TN_ATTRS(zeros_without_dtype);

/* _contrib_arange_like */
#define TN_arange_like_ATTRS(X)                                                                              \
    X(arange_like, FLOAT, start, "0", TN_ANY, "first value")                                                 \
    X(arange_like, FLOAT, step, "1", TN_ANY, "distance of two values")                                       \
    X(arange_like, INT, repeat, "1", TN_IN(1, 9e15), "how often each value stands")                          \
    X(arange_like, TEXT, ctx, "", TN_ANY, "not read")                                                        \
    X(arange_like, OPT_INT, axis, "None", TN_ANY, "whose length the output has; None: the input's shape")
TN_ATTRS(arange_like);

/* _contrib_index_array */
#define TN_index_array_ATTRS(X)                                                                              \
    X(index_array, TUPLE, axes, "None", TN_ANY, "axes whose indices stand there; None: all")
TN_ATTRS(index_array);

#define TN_set_value_ATTRS(X) X(set_value, FLOAT_RUN, src, TN_REQUIRED, TN_ANY, "the value")
TN_ATTRS(set_value);

#endif

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

#endif

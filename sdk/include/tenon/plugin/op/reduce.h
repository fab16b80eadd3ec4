/** Attributes of the operators of the family reduce. */
#ifndef TENON_PLUGIN_OP_REDUCE_H
#define TENON_PLUGIN_OP_REDUCE_H

#include "../attr.h"

/* sum, mean, prod, nansum, nanprod, max, min, _square_sum */
#define TN_reduce_ATTRS(X)                                                                                   \
    X(reduce, TUPLE, axis, "None", TN_ANY, "axes to reduce; None or (): all")                                \
    X(reduce, BOOL, keepdims, "False", TN_ANY, "keep reduced axes with size 1")                              \
    X(reduce, BOOL, exclude, "False", TN_ANY, "reduce all axes but the given ones")
TN_ATTRS(reduce);

#define TN_norm_ATTRS(X)                                                                                     \
    X(norm, INT, ord, "2", TN_IN(1, 2), "1: sum of absolute values; 2: root of the sum of squares")          \
    X(norm, TUPLE, axis, "None", TN_ANY, "axes to reduce; None or (): all")                                  \
    X(norm, DTYPE, out_dtype, "None", TN_ANY, "type of the output; None: the input's")                       \
    X(norm, BOOL, keepdims, "False", TN_ANY, "keep reduced axes with size 1")
TN_ATTRS(norm);

/* argmax, argmin */
#define TN_argmax_ATTRS(X)                                                                                   \
    X(argmax, OPT_INT, axis, "None", TN_ANY, "axis to search; None: the flat array")                         \
    X(argmax, BOOL, keepdims, "False", TN_ANY, "keep the axis with size 1")
TN_ATTRS(argmax);

/* ---- NumPy's: () is no axis; `initial` is refused ---- */

/* _np_sum, _npi_mean, _np_prod */
#define TN_np_sum_ATTRS(X)                                                                                   \
    X(np_sum, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all")                                      \
    X(np_sum, DTYPE, dtype, "None", TN_ANY, "of the output; None: it follows from the input's")              \
    X(np_sum, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")                                  \
    X(np_sum, OPT_FLOAT, initial, "None", TN_ANY, "None; nothing else is taken")
TN_ATTRS(np_sum);

/* _np_max, _np_min */
#define TN_np_max_ATTRS(X)                                                                                   \
    X(np_max, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all")                                      \
    X(np_max, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")                                  \
    X(np_max, OPT_FLOAT, initial, "None", TN_ANY, "None; nothing else is taken")
TN_ATTRS(np_max);

/* _np_all, _np_any */
#define TN_np_all_ATTRS(X)                                                                                   \
    X(np_all, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all")                                      \
    X(np_all, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")
TN_ATTRS(np_all);

#define TN_np_trace_ATTRS(X)                                                                                 \
    X(np_trace, INT, offset, "0", TN_IN(-9e15, 9e15), "above 0: right of the diagonal; below 0: under it")   \
    X(np_trace, INT, axis1, "0", TN_ANY, "of the rows")                                                      \
    X(np_trace, INT, axis2, "1", TN_ANY, "of the columns")
TN_ATTRS(np_trace);

#endif

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

#define TN_moments_ATTRS(X)                                                                                  \
    X(moments, TUPLE, axes, "None", TN_ANY, "axes over which mean and variance are taken, at least one")     \
    X(moments, BOOL, keepdims, "False", TN_ANY, "keep these axes with size 1")
TN_ATTRS(moments);

#endif

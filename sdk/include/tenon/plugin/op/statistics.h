/** Attributes of the operators of the family statistics. */
#ifndef TENON_PLUGIN_OP_STATISTICS_H
#define TENON_PLUGIN_OP_STATISTICS_H

#include "../attr.h"

#define TN_moments_ATTRS(X)                                                                                  \
    X(moments, TUPLE, axes, "None", TN_ANY, "axes over which mean and variance are taken, at least one")     \
    X(moments, BOOL, keepdims, "False", TN_ANY, "keep these axes with size 1")
TN_ATTRS(moments);

/* _npi_var, _npi_std */
#define TN_npi_var_ATTRS(X)                                                                                  \
    X(npi_var, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all, (): none")                           \
    X(npi_var, DTYPE, dtype, "None", TN_ANY, "of the output; None: the input's")                             \
    X(npi_var, INT, ddof, "0", TN_ANY, "the sum of squares is divided by the number of elements less this")  \
    X(npi_var, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")
TN_ATTRS(npi_var);

#define TN_npi_average_ATTRS(X)                                                                              \
    X(npi_average, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all, (): none")                       \
    X(npi_average, BOOL, returned, "0", TN_ANY, "the sum of the weights is an output, too")                  \
    X(npi_average, BOOL, weighted, "1", TN_ANY, "there are weights")
TN_ATTRS(npi_average);

#define TN_npi_percentile_interpolation_CHOICES(C, op, name)                                                 \
    C(op, name, linear) C(op, name, lower) C(op, name, higher) C(op, name, midpoint) C(op, name, nearest)
#define TN_npi_percentile_ATTRS(X)                                                                           \
    X(npi_percentile, TUPLE, axis, "None", TN_ANY, "axes to reduce; None: all, (): none")                    \
    X(npi_percentile, CHOICE, interpolation, "linear", TN_ANY, "what lies between two elements")             \
    X(npi_percentile, BOOL, keepdims, "0", TN_ANY, "keep reduced axes with size 1")                          \
    X(npi_percentile, OPT_FLOAT, q_scalar, "None", TN_ANY, "the only percentage; None: q is an input")
TN_CHOICES(npi_percentile, interpolation);
TN_ATTRS(npi_percentile);

#define TN_histogram_ATTRS(X)                                                                                \
    X(histogram, OPT_INT, bin_cnt, "None", TN_IN(1, 9e15),                                                \
      "number of bins; None: bins are an input")                \
    X(histogram, FLOATS, range, "None", TN_ANY, "first and last edge of the bins")
TN_ATTRS(histogram);

#define TN_npi_bincount_ATTRS(X)                                                                             \
    X(npi_bincount, INT, minlength, "0", TN_IN(0, 9e15), "the output has this length at least")              \
    X(npi_bincount, BOOL, has_weights, "0", TN_ANY, "there are weights")
TN_ATTRS(npi_bincount);

#endif

/** Attributes of the operators of the family select. */
#ifndef TENON_PLUGIN_OP_SELECT_H
#define TENON_PLUGIN_OP_SELECT_H

#include "../attr.h"

/* _npi_where_lscalar, _npi_where_rscalar */
#define TN_npi_where_scalar_ATTRS(X) X(npi_where_scalar, FLOAT_RUN, scalar, "0", TN_ANY, "the number")
TN_ATTRS(npi_where_scalar);

#define TN_npi_where_scalar2_ATTRS(X)                                                                        \
    X(npi_where_scalar2, FLOAT_RUN, x, "0", TN_ANY, "where the condition is not 0")                          \
    X(npi_where_scalar2, FLOAT_RUN, y, "0", TN_ANY, "where it is 0")
TN_ATTRS(npi_where_scalar2);

#define TN_npi_nan_to_num_ATTRS(X)                                                                           \
    X(npi_nan_to_num, BOOL, copy, "1", TN_ANY, "read by whoever calls")                                      \
    X(npi_nan_to_num, FLOAT_RUN, nan, "0", TN_ANY, "in the place of NaN")                                    \
    X(npi_nan_to_num, OPT_FLOAT, posinf, "None", TN_ANY, "of infinity; None: the largest number")            \
    X(npi_nan_to_num, OPT_FLOAT, neginf, "None", TN_ANY, "of negative infinity; None: the smallest number")
TN_ATTRS(npi_nan_to_num);

#define TN_npi_full_like_ATTRS(X)                                                                            \
    X(npi_full_like, FLOAT_RUN, fill_value, TN_REQUIRED, TN_ANY, "of every element")                         \
    X(npi_full_like, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                                 \
    X(npi_full_like, DTYPE, dtype, "None", TN_ANY, "of the output; None: the input's")
TN_ATTRS(npi_full_like);

#define TN_npi_around_ATTRS(X)                                                                               \
    X(npi_around, INT, decimals, "0", TN_IN(-400, 400),                                                 \
      "digits behind the point that stay; below 0: before it")
TN_ATTRS(npi_around);

#endif

/** Attributes of the operators of the family scan. */
#ifndef TENON_PLUGIN_OP_SCAN_H
#define TENON_PLUGIN_OP_SCAN_H

#include "../attr.h"

#define TN_np_cumsum_ATTRS(X)                                                                                \
    X(np_cumsum, OPT_INT, axis, "None", TN_ANY, "along which sums run; None: the flat array")                \
    X(np_cumsum, DTYPE, dtype, "None", TN_ANY, "of the output; None: it follows from the input's")
TN_ATTRS(np_cumsum);

#define TN_npi_diff_ATTRS(X)                                                                                 \
    X(npi_diff, INT, n, "1", TN_IN(0, 9e15), "how often differences are taken")                              \
    X(npi_diff, INT, axis, "-1", TN_ANY, "along which")
TN_ATTRS(npi_diff);

#define TN_npi_ediff1d_ATTRS(X)                                                                              \
    X(npi_ediff1d, BOOL, to_begin_arr_given, "0", TN_ANY, "input2 stands before the differences")            \
    X(npi_ediff1d, BOOL, to_end_arr_given, "0", TN_ANY, "input3 stands behind them")                         \
    X(npi_ediff1d, OPT_FLOAT, to_begin_scalar, "None", TN_ANY, "a number before them")                       \
    X(npi_ediff1d, OPT_FLOAT, to_end_scalar, "None", TN_ANY, "a number behind them")
TN_ATTRS(npi_ediff1d);

#endif

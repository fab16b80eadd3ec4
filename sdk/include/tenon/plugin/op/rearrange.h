/** Attributes of the operators of the family rearrange. */
#ifndef TENON_PLUGIN_OP_REARRANGE_H
#define TENON_PLUGIN_OP_REARRANGE_H

#include "../attr.h"

#define TN_np_roll_ATTRS(X)                                                                                  \
    X(np_roll, TUPLE, shift, "None", TN_IN(-9e15, 9e15), "places to the end; one for each axis, or for all") \
    X(np_roll, TUPLE, axis, "None", TN_ANY, "axes to roll; None: the flat array")
TN_ATTRS(np_roll);

#define TN_npi_rot90_ATTRS(X)                                                                                \
    X(npi_rot90, INT, k, "1", TN_ANY, "quarter turns from the first axis to the second")                     \
    X(npi_rot90, TUPLE, axes, "None", TN_ANY, "the two axes of the plane")
TN_ATTRS(npi_rot90);

#define TN_npi_tril_ATTRS(X)                                                                                 \
    X(npi_tril, INT, k, "0", TN_IN(-9e15, 9e15), "the last diagonal that stays")
TN_ATTRS(npi_tril);

/* _np_atleast_1d, _np_atleast_2d, _np_atleast_3d */
#define TN_np_atleast_ATTRS(X)                                                                               \
    X(np_atleast, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")
TN_ATTRS(np_atleast);

#endif

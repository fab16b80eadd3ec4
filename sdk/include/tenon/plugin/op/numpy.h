/** Attributes of the operators of the family numpy. */
#ifndef TENON_PLUGIN_OP_NUMPY_H
#define TENON_PLUGIN_OP_NUMPY_H

#include "../attr.h"

/* _np_transpose; operators of an array and a number: scalar.h */
#define TN_np_transpose_ATTRS(X)                                                                             \
    X(np_transpose, TUPLE, axes, "None", TN_ANY, "the input's axes in the output's order; None: reversed")
TN_ATTRS(np_transpose);

/* _npi_concatenate */
#define TN_npi_concatenate_ATTRS(X)                                                                          \
    X(npi_concatenate, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")                     \
    X(npi_concatenate, INT, axis, "0", TN_ANY, "the axis along which inputs follow each other")
TN_ATTRS(npi_concatenate);

#endif

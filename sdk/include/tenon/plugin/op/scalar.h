/** Attributes of the operators of the family scalar. */
#ifndef TENON_PLUGIN_OP_SCALAR_H
#define TENON_PLUGIN_OP_SCALAR_H

#include "../attr.h"

/* _plus_scalar, _mul_scalar and all other operators of an array and a number, those of NumPy too */
#define TN_scalar_ATTRS(X)                                                                                   \
    X(scalar, FLOAT_RUN, scalar, "1", TN_ANY, "the number")                                                  \
    X(scalar, BOOL, is_int, "True", TN_ANY, "the number was written as an integer")
TN_ATTRS(scalar);

#endif

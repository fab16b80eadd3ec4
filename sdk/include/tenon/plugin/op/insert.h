/** Attributes of the operators of the family insert. */
#ifndef TENON_PLUGIN_OP_INSERT_H
#define TENON_PLUGIN_OP_INSERT_H

#include "../attr.h"

#define TN_INDICES_ROWS(X, op)                                                                               \
    X(op, OPT_INT, start, "None", TN_ANY, "of indices that are a range")                                     \
    X(op, OPT_INT, stop, "None", TN_ANY, "of indices that are a range")                                      \
    X(op, OPT_INT, step, "None", TN_ANY, "of indices that are a range")                                      \
    X(op, OPT_INT, int_ind, "None", TN_ANY, "the only index")                                                \
    X(op, OPT_INT, axis, "None", TN_ANY, "whose indices they are; None: those of all elements")

/* _npi_insert_scalar, _npi_insert_slice, _npi_insert_tensor */
#define TN_npi_insert_ATTRS(X)                                                                               \
    X(npi_insert, OPT_FLOAT, val, "None", TN_ANY, "a number in the place of the values")                     \
    TN_INDICES_ROWS(X, npi_insert)
TN_ATTRS(npi_insert);

#define TN_npi_delete_ATTRS(X) TN_INDICES_ROWS(X, npi_delete)
TN_ATTRS(npi_delete);

#endif

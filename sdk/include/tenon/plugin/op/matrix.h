/** Attributes of the operators of the family matrix. */
#ifndef TENON_PLUGIN_OP_MATRIX_H
#define TENON_PLUGIN_OP_MATRIX_H

#include "../attr.h"

/* dot, batch_dot */
#define TN_dot_forward_stype_CHOICES(C, op, name)                                                            \
    C(op, name, None) C(op, name, csr) C(op, name, default) C(op, name, row_sparse)
#define TN_dot_ATTRS(X)                                                                                      \
    X(dot, BOOL, transpose_a, "0", TN_ANY, "lhs is summed over its other end")                               \
    X(dot, BOOL, transpose_b, "0", TN_ANY, "rhs is summed over its other end")                               \
    X(dot, CHOICE, forward_stype, "None", TN_ANY, "storage of the output")
TN_ATTRS(dot);
TN_CHOICES(dot, forward_stype);

#endif

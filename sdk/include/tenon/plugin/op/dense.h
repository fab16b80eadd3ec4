/** Attributes of the operators of the family dense. */
#ifndef TENON_PLUGIN_OP_DENSE_H
#define TENON_PLUGIN_OP_DENSE_H

#include "../attr.h"

/* FullyConnected; fused.h has further rows behind these. */
#define TN_DENSE_ROWS(X, op)                                                                                 \
    X(op, INT, num_hidden, TN_REQUIRED, TN_IN(1, 9e15), "outputs of the layer")                              \
    X(op, BOOL, no_bias, "0", TN_ANY, "there is no input bias")                                              \
    X(op, BOOL, flatten, "1", TN_ANY, "take all axes but the first as one")
#define TN_FullyConnected_ATTRS(X) TN_DENSE_ROWS(X, FullyConnected)
TN_ATTRS(FullyConnected);

#endif

/** Attributes of the operators of the family broadcast. */
#ifndef TENON_PLUGIN_OP_BROADCAST_H
#define TENON_PLUGIN_OP_BROADCAST_H

#include "../attr.h"

#define TN_broadcast_to_ATTRS(X)                                                                             \
    X(broadcast_to, TUPLE, shape, "()", TN_IN(0, 9e18), "shape of the output; 0 keeps the input's dimension")
TN_ATTRS(broadcast_to);

#define TN_broadcast_axis_ATTRS(X)                                                                           \
    X(broadcast_axis, TUPLE, axis, "()", TN_ANY, "dimensions of size 1 to stretch")                          \
    X(broadcast_axis, TUPLE, size, "()", TN_IN(0, 9e18), "their sizes in the output")
TN_ATTRS(broadcast_axis);

#define TN_broadcast_like_ATTRS(X)                                                                           \
    X(broadcast_like, TUPLE, lhs_axes, "None", TN_ANY, "dimensions of lhs to stretch; None: all")            \
    X(broadcast_like, TUPLE, rhs_axes, "None", TN_ANY, "dimensions of rhs whose sizes they take")
TN_ATTRS(broadcast_like);

#endif

/** Attributes of the operators of the family slice. */
#ifndef TENON_PLUGIN_OP_SLICE_H
#define TENON_PLUGIN_OP_SLICE_H

#include "../attr.h"

#define TN_slice_ATTRS(X)                                                                                    \
    X(slice, OPT_TUPLE_SHAPE, begin, TN_REQUIRED, TN_ANY, "first index of each axis; None: its end")         \
    X(slice, OPT_TUPLE_SHAPE, end, TN_REQUIRED, TN_ANY, "where each axis stops; None: its other end")        \
    X(slice, OPT_TUPLE_SHAPE, step, "[]", TN_ANY, "distance of indices, may be negative; None: 1")
TN_ATTRS(slice);

#define TN_slice_axis_ATTRS(X)                                                                               \
    X(slice_axis, INT, axis, TN_REQUIRED, TN_ANY, "the axis that is cut")                                    \
    X(slice_axis, INT_SHAPE, begin, TN_REQUIRED, TN_ANY, "first index")                                      \
    X(slice_axis, OPT_INT_SHAPE, end, TN_REQUIRED, TN_ANY, "where to stop; None: at the end")
TN_ATTRS(slice_axis);

#define TN_slice_like_ATTRS(X) X(slice_like, TUPLE, axes, "[]", TN_ANY, "axes that are cut; (): all")
TN_ATTRS(slice_like);

/* _slice_assign has the attributes of slice. */
#define TN_slice_assign_scalar_ATTRS(X)                                                                      \
    X(slice_assign_scalar, FLOAT_RUN, scalar, "0", TN_ANY, "of every element of the window")                 \
    X(slice_assign_scalar, OPT_TUPLE_SHAPE, begin, TN_REQUIRED, TN_ANY,                                      \
      "first index of each axis; None: its end")                                                             \
    X(slice_assign_scalar, OPT_TUPLE_SHAPE, end, TN_REQUIRED, TN_ANY,                                        \
      "where each axis stops; None: its other end")                                                          \
    X(slice_assign_scalar, OPT_TUPLE_SHAPE, step, "[]", TN_ANY,                                              \
      "distance of indices, may be negative; None: 1")
TN_ATTRS(slice_assign_scalar);

#endif

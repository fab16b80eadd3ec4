/** Attributes of the operators of the family join. */
#ifndef TENON_PLUGIN_OP_JOIN_H
#define TENON_PLUGIN_OP_JOIN_H

#include "../attr.h"

#define TN_Concat_ATTRS(X)                                                                                   \
    X(Concat, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")                              \
    X(Concat, INT, dim, "1", TN_ANY, "the axis along which inputs follow each other")
TN_ATTRS(Concat);

#define TN_stack_ATTRS(X)                                                                                    \
    X(stack, INT, axis, "0", TN_ANY, "where the new axis stands in the output")                              \
    X(stack, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")
TN_ATTRS(stack);

#define TN_SliceChannel_ATTRS(X)                                                                             \
    X(SliceChannel, INT, num_outputs, TN_REQUIRED, TN_IN(1, 4096), "number of equal parts")                  \
    X(SliceChannel, INT, axis, "1", TN_ANY, "the axis that is cut")                                          \
    X(SliceChannel, BOOL, squeeze_axis, "0", TN_ANY, "drop the axis; parts must have size 1")
TN_ATTRS(SliceChannel);

#define TN_tile_ATTRS(X) X(tile, TUPLE, reps, TN_REQUIRED, TN_IN(0, 9e15), "how often along each axis")
TN_ATTRS(tile);

#define TN_repeat_ATTRS(X)                                                                                   \
    X(repeat, INT, repeats, TN_REQUIRED, TN_IN(0, 9e15), "how often each element stands")                    \
    X(repeat, OPT_INT, axis, "None", TN_ANY, "along which; None: the input counts as flat")
TN_ATTRS(repeat);

#define TN_reverse_ATTRS(X) X(reverse, TUPLE, axis, TN_REQUIRED, TN_ANY, "axes whose order is turned round")
TN_ATTRS(reverse);

#endif

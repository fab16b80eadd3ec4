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

/* _npi_hstack, _npi_dstack */
#define TN_npi_hstack_ATTRS(X)                                                                               \
    X(npi_hstack, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")                          \
    X(npi_hstack, INT, dim, "1", TN_ANY, "not read")
TN_ATTRS(npi_hstack);

/* _npi_vstack, _npi_column_stack */
#define TN_npi_vstack_ATTRS(X) X(npi_vstack, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")
TN_ATTRS(npi_vstack);

/* _split_v2, _npi_hsplit, _npi_dsplit */
#define TN_split_v2_ATTRS(X)                                                                                 \
    X(split_v2, TUPLE, indices, TN_REQUIRED, TN_IN(0, 9e15), "where parts begin, 0 first")                   \
    X(split_v2, INT, axis, "1", TN_ANY, "the axis that is cut; of _npi_hsplit and _npi_dsplit not read")     \
    X(split_v2, BOOL, squeeze_axis, "0", TN_ANY, "drop the axis; parts must have size 1")                    \
    X(split_v2, INT, sections, "0", TN_IN(0, 4096), "number of equal parts; 0: indices are read")
TN_ATTRS(split_v2);

#endif

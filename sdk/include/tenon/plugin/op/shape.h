/** Attributes of the operators of the family shape. */
#ifndef TENON_PLUGIN_OP_SHAPE_H
#define TENON_PLUGIN_OP_SHAPE_H

#include "../attr.h"

#define TN_Reshape_ATTRS(X)                                                                                  \
    X(Reshape, TUPLE, shape, "[]", TN_IN(-4, 9e15),                                                          \
      "sizes, or 0 keep, -1 the rest, -2 keep all that follow, -3 merge two, -4 a b split one")              \
    X(Reshape, BOOL, reverse, "0", TN_ANY, "read shapes from right to left")                                 \
    X(Reshape, TUPLE, target_shape, "[]", TN_ANY, "old form of shape: 0 is the rest")                        \
    X(Reshape, BOOL, keep_highest, "0", TN_ANY, "old form: the first dimension stays")
TN_ATTRS(Reshape);

#define TN_expand_dims_ATTRS(X)                                                                              \
    X(expand_dims, INT, axis, TN_REQUIRED, TN_ANY, "where the new axis of size 1 stands")
TN_ATTRS(expand_dims);

#define TN_squeeze_ATTRS(X)                                                                                  \
    X(squeeze, TUPLE, axis, "None", TN_ANY, "axes of size 1 to drop; None: all of them")
TN_ATTRS(squeeze);

#define TN_transpose_ATTRS(X)                                                                                \
    X(transpose, TUPLE, axes, "[]", TN_ANY, "the input's axes in the output's order; (): reversed")
TN_ATTRS(transpose);

#define TN_SwapAxis_ATTRS(X)                                                                                 \
    X(SwapAxis, INT, dim1, "0", TN_ANY, "one axis")                                                          \
    X(SwapAxis, INT, dim2, "0", TN_ANY, "the other")
TN_ATTRS(SwapAxis);

/* The square of the size fits 64 bits. */
#define TN_BLOCK_ROW(X, op)                                                                                  \
    X(op, INT, block_size, TN_REQUIRED, TN_IN(1, 2147483647), "of both sides of a block in space")

#define TN_depth_to_space_ATTRS(X) TN_BLOCK_ROW(X, depth_to_space)
TN_ATTRS(depth_to_space);
#define TN_space_to_depth_ATTRS(X) TN_BLOCK_ROW(X, space_to_depth)
TN_ATTRS(space_to_depth);

#define TN_diag_ATTRS(X)                                                                                     \
    X(diag, INT, k, "0", TN_IN(-9e15, 9e15), "above 0: right of the diagonal; below 0: under it")            \
    X(diag, INT, axis1, "0", TN_ANY, "of the rows; not read for vectors")                                    \
    X(diag, INT, axis2, "1", TN_ANY, "of the columns; not read for vectors")
TN_ATTRS(diag);

#define TN_np_moveaxis_ATTRS(X)                                                                              \
    X(np_moveaxis, TUPLE, source, TN_REQUIRED, TN_ANY, "axes that move")                                     \
    X(np_moveaxis, TUPLE, destination, TN_REQUIRED, TN_ANY, "where they go, one for each")
TN_ATTRS(np_moveaxis);

#define TN_np_reshape_ATTRS(X)                                                                               \
    X(np_reshape, TUPLE, newshape, TN_REQUIRED, TN_IN(-1, 9e15), "sizes; -1: the rest")                      \
    X(np_reshape, TEXT, order, "C", TN_ANY, "C: row-major; there is no other")
TN_ATTRS(np_reshape);

#define TN_npx_reshape_ATTRS(X)                                                                              \
    X(npx_reshape, TUPLE, newshape, TN_REQUIRED, TN_IN(-6, 9e15),                                            \
      "sizes, or -1 the rest, -2 keep, -3 drop a 1, -4 keep all that follow, -5 merge two, -6 a b split "    \
      "one")                                                                                                 \
    X(npx_reshape, BOOL, reverse, "0", TN_ANY, "read shapes from right to left")                             \
    X(npx_reshape, TEXT, order, "C", TN_ANY, "C: row-major; there is no other")
TN_ATTRS(npx_reshape);

#define TN_reshape_like_ATTRS(X)                                                                             \
    X(reshape_like, OPT_INT, lhs_begin, "None", TN_ANY, "first dimension of lhs that is replaced")           \
    X(reshape_like, OPT_INT, lhs_end, "None", TN_ANY, "the dimension behind the last one")                   \
    X(reshape_like, OPT_INT, rhs_begin, "None", TN_ANY, "first dimension of rhs that comes there")           \
    X(reshape_like, OPT_INT, rhs_end, "None", TN_ANY, "the dimension behind the last one")
TN_ATTRS(reshape_like);

/* _np_diag, _np_diagflat */
#define TN_np_diag_ATTRS(X)                                                                                  \
    X(np_diag, INT, k, "0", TN_IN(-9e15, 9e15), "above 0: right of the diagonal; below 0: under it")
TN_ATTRS(np_diag);

#define TN_np_diagonal_ATTRS(X)                                                                              \
    X(np_diagonal, INT, offset, "0", TN_IN(-9e15, 9e15),                                                     \
      "above 0: right of the diagonal; below 0: under it")                                                   \
    X(np_diagonal, INT, axis1, "0", TN_ANY, "of the rows")                                                   \
    X(np_diagonal, INT, axis2, "1", TN_ANY, "of the columns")
TN_ATTRS(np_diagonal);

#endif

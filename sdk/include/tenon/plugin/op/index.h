/** Attributes of the operators of the family index. */
#ifndef TENON_PLUGIN_OP_INDEX_H
#define TENON_PLUGIN_OP_INDEX_H

#include "../attr.h"

#define TN_take_mode_CHOICES(C, op, name) C(op, name, clip) C(op, name, raise) C(op, name, wrap)
#define TN_take_ATTRS(X)                                                                                     \
    X(take, INT, axis, "0", TN_ANY, "along which is looked up")                                              \
    X(take, CHOICE, mode, "clip", TN_ANY, "what happens to indices outside")
TN_ATTRS(take);
TN_CHOICES(take, mode);

#define TN_Embedding_ATTRS(X)                                                                                \
    X(Embedding, INT, input_dim, TN_REQUIRED, TN_IN(1, 9e15), "rows of the weight")                          \
    X(Embedding, INT, output_dim, TN_REQUIRED, TN_IN(1, 9e15), "length of a row")                            \
    X(Embedding, DTYPE, dtype, "float32", TN_ANY, "of the weight, if nothing else says it")                  \
    X(Embedding, BOOL, sparse_grad, "0", TN_ANY, "the weight's gradient may be row_sparse")
TN_ATTRS(Embedding);

#define TN_one_hot_ATTRS(X)                                                                                  \
    X(one_hot, INT, depth, TN_REQUIRED, TN_IN(0, 9e15), "length of the new last axis")                       \
    X(one_hot, FLOAT, on_value, "1", TN_ANY, "at the index")                                                 \
    X(one_hot, FLOAT, off_value, "0", TN_ANY, "elsewhere")                                                   \
    X(one_hot, DTYPE, dtype, "float32", TN_ANY, "of the output; None: float32")
TN_ATTRS(one_hot);

#define TN_pick_mode_CHOICES(C, op, name) C(op, name, clip) C(op, name, wrap)
#define TN_pick_ATTRS(X)                                                                                     \
    X(pick, OPT_INT, axis, "-1", TN_ANY, "along which one element is picked")                                \
    X(pick, BOOL, keepdims, "0", TN_ANY, "the axis stays, with size 1")                                      \
    X(pick, CHOICE, mode, "clip", TN_ANY, "what happens to indices outside")
TN_ATTRS(pick);
TN_CHOICES(pick, mode);

#define TN_scatter_nd_ATTRS(X) X(scatter_nd, TUPLE, shape, TN_REQUIRED, TN_IN(0, 9e15), "of the output")
TN_ATTRS(scatter_nd);

/* _ravel_multi_index, _unravel_index */
#define TN_ravel_ATTRS(X) X(ravel, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the array; the first may be -1")
TN_ATTRS(ravel);

#endif

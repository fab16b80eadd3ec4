/** Attributes of the operators of the family pool. */
#ifndef TENON_PLUGIN_OP_POOL_H
#define TENON_PLUGIN_OP_POOL_H

#include "../attr.h"

#define TN_Pooling_pool_type_CHOICES(C, op, name)                                                            \
    C(op, name, avg) C(op, name, lp) C(op, name, max) C(op, name, sum)
#define TN_Pooling_pooling_convention_CHOICES(C, op, name)                                                   \
    C(op, name, full) C(op, name, same) C(op, name, valid)
#define TN_Pooling_layout_CHOICES(C, op, name)                                                               \
    C(op, name, None)                                                                                        \
    C(op, name, NCDHW)                                                                                       \
    C(op, name, NCHW) C(op, name, NCW) C(op, name, NDHWC) C(op, name, NHWC) C(op, name, NWC)
#define TN_Pooling_ATTRS(X)                                                                                  \
    X(Pooling, TUPLE, kernel, "[]", TN_IN(1, 1e9), "window size; needed unless global_pool")                 \
    X(Pooling, CHOICE, pool_type, "max", TN_ANY, "what is made of a window")                                 \
    X(Pooling, BOOL, global_pool, "0", TN_ANY, "one window over all of space")                               \
    X(Pooling, BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")                                              \
    X(Pooling, CHOICE, pooling_convention, "valid", TN_ANY, "how the output's extent is rounded")            \
    X(Pooling, TUPLE, stride, "[]", TN_IN(1, 1e9), "step of the window, 1 if not given")                     \
    X(Pooling, TUPLE, pad, "[]", TN_IN(0, 1e9), "padding on both sides, 0 if not given")                     \
    X(Pooling, OPT_INT, p_value, "None", TN_ANY, "p of pool_type lp: 1, 2 or 3")                             \
    X(Pooling, OPT_BOOL, count_include_pad, "None", TN_ANY, "averages count the padding")                    \
    X(Pooling, CHOICE, layout, "None", TN_ANY, "of data; None: channels second")
TN_ATTRS(Pooling);
TN_CHOICES(Pooling, pool_type);
TN_CHOICES(Pooling, pooling_convention);
TN_CHOICES(Pooling, layout);

#endif

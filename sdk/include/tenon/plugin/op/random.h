/** Attributes of the operators of the family random. */
#ifndef TENON_PLUGIN_OP_RANDOM_H
#define TENON_PLUGIN_OP_RANDOM_H

#include "../attr.h"

#define TN_RANDOM_ROWS(X, op)                                                                                \
    X(op, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the output; -1: to be inferred")                        \
    X(op, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                                            \
    X(op, DTYPE, dtype, "None", TN_ANY, "of the output; None: float32")

/* _random_uniform */
#define TN_random_uniform_ATTRS(X)                                                                           \
    X(random_uniform, FLOAT_RUN, low, "0", TN_ANY, "lower bound")                                            \
    X(random_uniform, FLOAT_RUN, high, "1", TN_ANY, "upper bound, not included")                             \
    TN_RANDOM_ROWS(X, random_uniform)
TN_ATTRS(random_uniform);

/* _random_normal */
#define TN_random_normal_ATTRS(X)                                                                            \
    X(random_normal, FLOAT_RUN, loc, "0", TN_ANY, "mean")                                                    \
    X(random_normal, FLOAT_RUN, scale, "1", TN_ANY, "standard deviation")                                    \
    TN_RANDOM_ROWS(X, random_normal)
TN_ATTRS(random_normal);

#define TN_Dropout_mode_CHOICES(C, op, name) C(op, name, always) C(op, name, training)
#define TN_Dropout_ATTRS(X)                                                                                  \
    X(Dropout, FLOAT, p, "0.5", TN_IN(0, 1), "share of the elements that become zero")                       \
    X(Dropout, CHOICE, mode, "training", TN_ANY, "when elements are dropped")                                \
    X(Dropout, TUPLE, axes, "[]", TN_ANY, "axes along which all elements share their fate")                  \
    X(Dropout, OPT_BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")
TN_ATTRS(Dropout);
TN_CHOICES(Dropout, mode);

#endif

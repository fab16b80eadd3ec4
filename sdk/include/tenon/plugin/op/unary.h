/** Attributes of the operators of the family unary. */
#ifndef TENON_PLUGIN_OP_UNARY_H
#define TENON_PLUGIN_OP_UNARY_H

#include "../attr.h"

#define TN_clip_ATTRS(X)                                                                                     \
    X(clip, FLOAT_RUN, a_min, TN_REQUIRED, TN_ANY, "smaller elements become this")                           \
    X(clip, FLOAT_RUN, a_max, TN_REQUIRED, TN_ANY, "larger elements become this")
TN_ATTRS(clip);

#define TN_hard_sigmoid_ATTRS(X)                                                                             \
    X(hard_sigmoid, FLOAT_RUN, alpha, "0.2", TN_ANY, "slope")                                                \
    X(hard_sigmoid, FLOAT_RUN, beta, "0.5", TN_ANY, "value at 0")
TN_ATTRS(hard_sigmoid);

#define TN_smooth_l1_ATTRS(X)                                                                                \
    X(smooth_l1, FLOAT_RUN, scalar, "1", TN_ANY, "sigma: quadratic where |x| is at most 1 / sigma^2")
TN_ATTRS(smooth_l1);

#endif

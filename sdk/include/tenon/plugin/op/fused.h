/** Attributes of the operators that passes make of layers: the family fused. */
#ifndef TENON_PLUGIN_OP_FUSED_H
#define TENON_PLUGIN_OP_FUSED_H

#include "conv.h"
#include "dense.h"

/* What follows a layer: an addend, then a function. a_min, a_max: limits of clip; slope: of leaky below 0. */
#define TN_FUSED_ROWS(X, op)                                                                                 \
    X(op, BOOL, with_sum, "0", TN_ANY, "the last input is added to the output")                              \
    X(op, CHOICE, act_type, "None", TN_ANY, "the function of what came of that")                             \
    X(op, FLOAT, a_min, "0", TN_ANY, "clip: lower limit")                                                    \
    X(op, FLOAT, a_max, "0", TN_ANY, "clip: upper limit")                                                    \
    X(op, FLOAT, slope, "0.25", TN_ANY, "leaky: slope below 0")
#define TN_FUSED_ACT_TYPES(C, op, name)                                                                      \
    C(op, name, None)                                                                                        \
    C(op, name, relu)                                                                                        \
    C(op, name, sigmoid) C(op, name, tanh) C(op, name, softrelu) C(op, name, clip) C(op, name, leaky)

/* _fused_conv */
#define TN_fused_conv_cudnn_tune_CHOICES TN_Convolution_cudnn_tune_CHOICES
#define TN_fused_conv_layout_CHOICES TN_Convolution_layout_CHOICES
#define TN_fused_conv_act_type_CHOICES TN_FUSED_ACT_TYPES
#define TN_fused_conv_ATTRS(X)                                                                               \
    TN_CONV_ROWS(X, fused_conv)                                                                              \
    TN_FUSED_ROWS(X, fused_conv)
TN_ATTRS(fused_conv);
TN_CHOICES(fused_conv, cudnn_tune);
TN_CHOICES(fused_conv, layout);
TN_CHOICES(fused_conv, act_type);

/* _fused_dense */
#define TN_fused_dense_act_type_CHOICES TN_FUSED_ACT_TYPES
#define TN_fused_dense_ATTRS(X)                                                                              \
    TN_DENSE_ROWS(X, fused_dense)                                                                            \
    TN_FUSED_ROWS(X, fused_dense)
TN_ATTRS(fused_dense);
TN_CHOICES(fused_dense, act_type);

/* _fold_weight */
#define TN_fold_weight_ATTRS(X)                                                                              \
    X(fold_weight, FLOAT, eps, "0.0010000000474974513", TN_IN(0, 1e300), "added to the variance")            \
    X(fold_weight, BOOL, fix_gamma, "1", TN_ANY, "gamma counts as 1")
TN_ATTRS(fold_weight);

/* _fold_bias */
#define TN_fold_bias_ATTRS(X)                                                                                \
    X(fold_bias, FLOAT, eps, "0.0010000000474974513", TN_IN(0, 1e300), "added to the variance")              \
    X(fold_bias, BOOL, fix_gamma, "1", TN_ANY, "gamma counts as 1")                                          \
    X(fold_bias, BOOL, no_bias, "0", TN_ANY, "the layer has no bias")                                        \
    X(fold_bias, DTYPE, dtype, "None", TN_ANY, "of the output; None: that of gamma")
TN_ATTRS(fold_bias);

/* _fused_pointwise: plugin/pointwise.h says what a program is. r0 … hold run-time attributes of its steps. */
#define TN_FUSED_RUN_ROW(X, n)                                                                               \
    X(fused_pointwise, FLOAT_RUN, r##n, "0", TN_ANY, "a run-time attribute of a step")
#define TN_fused_pointwise_ATTRS(X)                                                                          \
    X(fused_pointwise, TEXT, program, TN_REQUIRED, TN_ANY, "its steps")                                      \
    X(fused_pointwise, COUNT, num_args, TN_REQUIRED, TN_IN(0, 16), "number of inputs")                       \
    TN_FUSED_RUN_ROW(X, 0)                                                                                   \
    TN_FUSED_RUN_ROW(X, 1)                                                                                   \
    TN_FUSED_RUN_ROW(X, 2)                                                                                   \
    TN_FUSED_RUN_ROW(X, 3)                                                                                   \
    TN_FUSED_RUN_ROW(X, 4)                                                                                   \
    TN_FUSED_RUN_ROW(X, 5)                                                                                   \
    TN_FUSED_RUN_ROW(X, 6)                                                                                   \
    TN_FUSED_RUN_ROW(X, 7)                                                                                   \
    TN_FUSED_RUN_ROW(X, 8)                                                                                   \
    TN_FUSED_RUN_ROW(X, 9)                                                                                   \
    TN_FUSED_RUN_ROW(X, 10)                                                                                  \
    TN_FUSED_RUN_ROW(X, 11)                                                                                  \
    TN_FUSED_RUN_ROW(X, 12)                                                                                  \
    TN_FUSED_RUN_ROW(X, 13)                                                                                  \
    TN_FUSED_RUN_ROW(X, 14)                                                                                  \
    TN_FUSED_RUN_ROW(X, 15)
TN_ATTRS(fused_pointwise);

#endif

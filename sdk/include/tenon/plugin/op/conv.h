/** Attributes of the operators of the family conv. */
#ifndef TENON_PLUGIN_OP_CONV_H
#define TENON_PLUGIN_OP_CONV_H

#include "../attr.h"

/* Convolution; fused.h has further rows behind these. */
#define TN_CONV_ROWS(X, op)                                                                                  \
    X(op, TUPLE, kernel, TN_REQUIRED, TN_IN(1, 1e9), "window size: (w,), (h, w) or (d, h, w)")               \
    X(op, TUPLE, stride, "[]", TN_IN(1, 1e9), "step of the window, 1 if not given")                          \
    X(op, TUPLE, dilate, "[]", TN_IN(1, 1e9), "distance of taps, 1 if not given")                            \
    X(op, TUPLE, pad, "[]", TN_IN(0, 1e9), "zeros on both sides, 0 if not given")                            \
    X(op, INT, num_filter, TN_REQUIRED, TN_IN(1, 1e9), "output channels")                                    \
    X(op, INT, num_group, "1", TN_IN(1, 1e9), "groups of channels that do not see each other")               \
    X(op, INT, workspace, "1024", TN_IN(0, 1e9), "MiB a library may use; advice only")                       \
    X(op, BOOL, no_bias, "0", TN_ANY, "there is no input bias")                                              \
    X(op, CHOICE, cudnn_tune, "None", TN_ANY, "advice to cuDNN")                                             \
    X(op, BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")                                                   \
    X(op, CHOICE, layout, "None", TN_ANY, "of data and output; None: channels second")
#define TN_Convolution_cudnn_tune_CHOICES(C, op, name)                                                       \
    C(op, name, None) C(op, name, fastest) C(op, name, limited_workspace) C(op, name, off)
#define TN_Convolution_layout_CHOICES(C, op, name)                                                           \
    C(op, name, None)                                                                                        \
    C(op, name, NCDHW) C(op, name, NCHW) C(op, name, NCW) C(op, name, NDHWC) C(op, name, NHWC)
#define TN_Convolution_ATTRS(X) TN_CONV_ROWS(X, Convolution)
TN_ATTRS(Convolution);
TN_CHOICES(Convolution, cudnn_tune);
TN_CHOICES(Convolution, layout);

#endif

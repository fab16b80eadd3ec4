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

/* ---- the other way round ----------------------------------------------------------------------------- */

/* The first four stand where Convolution has them. */
#define TN_Deconvolution_cudnn_tune_CHOICES(C, op, name) TN_Convolution_cudnn_tune_CHOICES(C, op, name)
#define TN_Deconvolution_layout_CHOICES(C, op, name) TN_Convolution_layout_CHOICES(C, op, name)
#define TN_Deconvolution_ATTRS(X)                                                                            \
    X(Deconvolution, TUPLE, kernel, TN_REQUIRED, TN_IN(1, 1e9), "window size: (w,), (h, w) or (d, h, w)")    \
    X(Deconvolution, TUPLE, stride, "[]", TN_IN(1, 1e9), "step of the window in the output, 1 if not given") \
    X(Deconvolution, TUPLE, dilate, "[]", TN_IN(1, 1e9), "distance of taps, 1 if not given")                 \
    X(Deconvolution, TUPLE, pad, "[]", TN_IN(0, 1e9), "what is cut off on both sides, 0 if not given")       \
    X(Deconvolution, TUPLE, adj, "[]", TN_IN(0, 1e9), "added to the output's extent, below stride")          \
    X(Deconvolution, TUPLE, target_shape, "[]", TN_IN(0, 1e9), "the output's extent; pad and adj follow")    \
    X(Deconvolution, INT, num_filter, TN_REQUIRED, TN_IN(1, 1e9), "output channels")                         \
    X(Deconvolution, INT, num_group, "1", TN_IN(1, 1e9), "groups of channels that do not see each other")    \
    X(Deconvolution, INT, workspace, "512", TN_IN(0, 1e9), "MiB a library may use; advice only")             \
    X(Deconvolution, BOOL, no_bias, "1", TN_ANY, "there is no input bias")                                   \
    X(Deconvolution, CHOICE, cudnn_tune, "None", TN_ANY, "advice to cuDNN")                                  \
    X(Deconvolution, BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")                                        \
    X(Deconvolution, CHOICE, layout, "None", TN_ANY, "of data and output; None: channels second")
TN_ATTRS(Deconvolution);
TN_CHOICES(Deconvolution, cudnn_tune);
TN_CHOICES(Deconvolution, layout);

#define TN_UNFOLD_ROWS(X, op)                                                                                \
    X(op, TUPLE, kernel, TN_REQUIRED, TN_IN(1, 1e9), "window size: (w,), (h, w) or (d, h, w)")               \
    X(op, TUPLE, stride, "[]", TN_IN(1, 1e9), "step of the window, 1 if not given")                          \
    X(op, TUPLE, dilate, "[]", TN_IN(1, 1e9), "distance of taps, 1 if not given")                            \
    X(op, TUPLE, pad, "[]", TN_IN(0, 1e9), "zeros on both sides, 0 if not given")
#define TN_im2col_ATTRS(X) TN_UNFOLD_ROWS(X, im2col)
TN_ATTRS(im2col);
#define TN_col2im_ATTRS(X)                                                                                   \
    X(col2im, TUPLE, output_size, TN_REQUIRED, TN_IN(1, 1e9), "extent of the image")                         \
    TN_UNFOLD_ROWS(X, col2im)
TN_ATTRS(col2im);

/* ---- deformable convolutions: Convolution's first four, then others ---------------------------------- */

#define TN_DEFORMABLE_ROWS(X, op)                                                                            \
    X(op, TUPLE, kernel, TN_REQUIRED, TN_IN(1, 1e9), "window size: (h, w)")                                  \
    X(op, TUPLE, stride, "[]", TN_IN(1, 1e9), "step of the window, 1 if not given")                          \
    X(op, TUPLE, dilate, "[]", TN_IN(1, 1e9), "distance of taps, 1 if not given")                            \
    X(op, TUPLE, pad, "[]", TN_IN(0, 1e9), "zeros on both sides, 0 if not given")                            \
    X(op, INT, num_filter, TN_REQUIRED, TN_IN(1, 1e9), "output channels")                                    \
    X(op, INT, num_group, "1", TN_IN(1, 1e9), "groups of channels that do not see each other")               \
    X(op, INT, num_deformable_group, "1", TN_IN(1, 1e9), "groups of input channels with equal offsets")      \
    X(op, INT, workspace, "1024", TN_IN(0, 1e9), "MiB a library may use; advice only")                       \
    X(op, BOOL, no_bias, "0", TN_ANY, "there is no input bias")
#define TN_DEFORMABLE_LAYOUTS(C, op, name)                                                                   \
    C(op, name, None) C(op, name, NCDHW) C(op, name, NCHW) C(op, name, NCW)
#define TN_contrib_DeformableConvolution_layout_CHOICES(C, op, name) TN_DEFORMABLE_LAYOUTS(C, op, name)
#define TN_contrib_DeformableConvolution_ATTRS(X)                                                            \
    TN_DEFORMABLE_ROWS(X, contrib_DeformableConvolution)                                                     \
    X(contrib_DeformableConvolution, CHOICE, layout, "None", TN_ANY, "only NCHW")
TN_ATTRS(contrib_DeformableConvolution);
TN_CHOICES(contrib_DeformableConvolution, layout);
#define TN_contrib_ModulatedDeformableConvolution_layout_CHOICES(C, op, name)                                \
    TN_DEFORMABLE_LAYOUTS(C, op, name)
#define TN_contrib_ModulatedDeformableConvolution_ATTRS(X)                                                   \
    TN_DEFORMABLE_ROWS(X, contrib_ModulatedDeformableConvolution)                                            \
    X(contrib_ModulatedDeformableConvolution, INT, im2col_step, "64", TN_IN(1, 1e9), "advice only")          \
    X(contrib_ModulatedDeformableConvolution, CHOICE, layout, "None", TN_ANY, "only NCHW")
TN_ATTRS(contrib_ModulatedDeformableConvolution);
TN_CHOICES(contrib_ModulatedDeformableConvolution, layout);

#endif

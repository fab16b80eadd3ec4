/*
 * What Convolution and FullyConnected share with the fused operators made of them (fused.c): the rows of
 * their attributes, and inference of data, weight, bias and output. Further rows and inputs follow these.
 */
#ifndef TN_OP_LAYERS_H
#define TN_OP_LAYERS_H

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/indices.h"

#define CONV_SIZE_MAX                                                                                        \
    1e9 /* of a kernel, stride, pad, filter count: far above any net, keeps arithmetic in 64 bits */

/* clang-format off */
#define TNI_CONVOLUTION_ATTRS \
    [TN_CONVOLUTION_KERNEL] = \
        TN_ATTR_TUPLE_IN("kernel", TN_REQUIRED, 1, CONV_SIZE_MAX, "window size: (w,), (h, w) or (d, h, w)"), \
    [TN_CONVOLUTION_STRIDE] = \
        TN_ATTR_TUPLE_IN("stride", "[]", 1, CONV_SIZE_MAX, "step of the window, 1 if not given"), \
    [TN_CONVOLUTION_DILATE] = \
        TN_ATTR_TUPLE_IN("dilate", "[]", 1, CONV_SIZE_MAX, "distance of taps, 1 if not given"), \
    [TN_CONVOLUTION_PAD] = \
        TN_ATTR_TUPLE_IN("pad", "[]", 0, CONV_SIZE_MAX, "zeros on both sides, 0 if not given"), \
    [TN_CONVOLUTION_NUM_FILTER] = \
        TN_ATTR_INT_IN("num_filter", TN_REQUIRED, 1, CONV_SIZE_MAX, "output channels"), \
    [TN_CONVOLUTION_NUM_GROUP] = \
        TN_ATTR_INT_IN("num_group", "1", 1, CONV_SIZE_MAX, "groups of channels that do not see each other"), \
    [TN_CONVOLUTION_WORKSPACE] = \
        TN_ATTR_INT_IN("workspace", "1024", 0, CONV_SIZE_MAX, "MiB a library may use; advice only"), \
    [TN_CONVOLUTION_NO_BIAS] = TN_ATTR_BOOL("no_bias", "0", "there is no input bias"), \
    [TN_CONVOLUTION_CUDNN_TUNE] = \
        TN_ATTR_CHOICE("cudnn_tune", "None", "None|fastest|limited_workspace|off", "advice to cuDNN"), \
    [TN_CONVOLUTION_CUDNN_OFF] = TN_ATTR_BOOL("cudnn_off", "0", "advice to cuDNN"), \
    [TN_CONVOLUTION_LAYOUT] = TN_ATTR_CHOICE("layout", "None", "None|NCDHW|NCHW|NCW|NDHWC|NHWC", \
                                             "of data and output; None: channels second")

#define TNI_DENSE_ATTRS \
    [TN_FULLYCONNECTED_NUM_HIDDEN] = \
        TN_ATTR_INT_IN("num_hidden", TN_REQUIRED, 1, 9e15, "outputs of the layer"), \
    [TN_FULLYCONNECTED_NO_BIAS] = TN_ATTR_BOOL("no_bias", "0", "there is no input bias"), \
    [TN_FULLYCONNECTED_FLATTEN] = TN_ATTR_BOOL("flatten", "1", "take all axes but the first as one")
/* clang-format on */

/* Parts of their shape rules; the fused operators have a further input. */
#define TNI_CONVOLUTION_INPUTS                                                                               \
    "data:(N,C:channels,S..)^layout weight:(num_filter,C/num_group,kernel..)^layout "                        \
    "bias?!no_bias:(num_filter)"
#define TNI_CONVOLUTION_OUTPUT "(N,num_filter,window(S..))^layout"
#define TNI_CONVOLUTION_CHECK " ; G=num_filter/num_group" /* goes without remainder */
#define TNI_DENSE_FLAT_INPUTS "data:(N,I..) weight:(num_hidden,#I) bias?!no_bias:(num_hidden)"
#define TNI_DENSE_INPUTS "data:(B..,I:inputs) weight:(num_hidden,I) bias?!no_bias:(num_hidden)"

#endif

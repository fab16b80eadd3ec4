/*
 * What Convolution and FullyConnected share with the fused operators made of them (fused.c): inference of
 * data, weight, bias and output. Further inputs follow these.
 */
#ifndef TN_OP_LAYERS_H
#define TN_OP_LAYERS_H

#include "op/cost.h"
#include "op/infer_help.h"

/* Parts of their shape rules; the fused operators have a further input. */
#define TNI_CONVOLUTION_INPUTS                                                                               \
    "data:(N,C:channels,S..)^layout weight:(num_filter,C/num_group,kernel..)^layout "                        \
    "bias?!no_bias:(num_filter)"
#define TNI_CONVOLUTION_OUTPUT "(N,num_filter,window(S..))^layout"
#define TNI_CONVOLUTION_CHECK " ; G=num_filter/num_group" /* goes without remainder */
#define TNI_DENSE_FLAT_INPUTS "data:(N,I..) weight:(num_hidden,#I) bias?!no_bias:(num_hidden)"
#define TNI_DENSE_INPUTS "data:(B..,I:inputs) weight:(num_hidden,I) bias?!no_bias:(num_hidden)"

#endif

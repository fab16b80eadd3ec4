/*
 * Convolution, 1-D to 3-D: data (N, C, space...) or (N, space..., C), weight (F, C/groups, kernel...) or
 * (F, kernel..., C/groups), bias (F). The data's channels give the weight's and the other way round, so that
 * layers may leave either open.
 */
#include "tenon/plugin/op/conv.h"
#include "op/layers.h"

static const tn_attr_def convolution_attrs[] = TN_ATTR_TABLE(Convolution);

static const tn_op convolution =
    TNI_OP("Convolution", .doc = "Slides `num_filter` windows over 1 to 3 dimensions of space.",
           .aliases = TNI_NAMES("_npx_convolution"), .attrs = convolution_attrs,
           .shapes = TNI_CONVOLUTION_INPUTS " -> output:" TNI_CONVOLUTION_OUTPUT TNI_CONVOLUTION_CHECK,
           .gradients = "bilinear: dy data weight -> data weight bias", .types = "T:float",
           .cost = tni_cost_filters);

const tn_op *const tni_family_conv[] = {&convolution, NULL};

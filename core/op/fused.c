/*
 * Operators that only the passes of room compile make: layers with what follows them in one kernel, the
 * folding of BatchNorm's statistics into a layer's parameters, and a change of memory order. They have no
 * gradient, and no call, symbol or file can name them (TN_OP_INTERNAL). Attributes of the layers stand first
 * and keep their indices.
 */
#include "tenon/plugin/op/fused.h"
#include "op/layers.h"

static const tn_attr_def conv_attrs[] = TN_ATTR_TABLE(fused_conv);
static const tn_attr_def dense_attrs[] = TN_ATTR_TABLE(fused_dense);

static const char *const output_names[] = {"output", NULL};

/* ---- folding of BatchNorm ---------------------------------------------------------------------------- */

static const tn_attr_def fold_weight_attrs[] = TN_ATTR_TABLE(fold_weight);

static const tn_attr_def fold_bias_attrs[] = TN_ATTR_TABLE(fold_bias);

/* ---- the family -------------------------------------------------------------------------------------- */

static const tn_op reorder = TNI_OP(
    "_reorder", .doc = "The same elements in another order of memory: that of the output's layout.",
    .inputs = TNI_NAMES("data"), .outputs = output_names, .flags = TN_OP_INTERNAL, .shape = tni_shape_same);

static const tn_op fused_conv =
    TNI_OP("_fused_conv", .doc = "Convolution, then an addend, then a function of each element.",
           .attrs = conv_attrs, .flags = TN_OP_INTERNAL,
           .shapes = TNI_CONVOLUTION_INPUTS " addend?with_sum:" TNI_CONVOLUTION_OUTPUT
                                            " -> output:" TNI_CONVOLUTION_OUTPUT TNI_CONVOLUTION_CHECK,
           .types = "T:float", .cost = tni_cost_filters);

static const tn_op fused_dense =
    TNI_OP("_fused_dense", .doc = "FullyConnected, then an addend, then a function of each element.",
           .attrs = dense_attrs, .flags = TN_OP_INTERNAL,
           .shapes = "[flatten] " TNI_DENSE_FLAT_INPUTS
                     " addend?with_sum:(N,num_hidden) -> output:(N,num_hidden) | " TNI_DENSE_INPUTS
                     " addend?with_sum:(B..,num_hidden) -> output:(B..,num_hidden)",
           .types = "T:float", .cost = tni_cost_filters);

static const tn_op fold_weight = TNI_OP(
    "_fold_weight", .doc = "A layer's weight times gamma / sqrt(var + eps) of each output channel.",
    .attrs = fold_weight_attrs, .flags = TN_OP_INTERNAL,
    .shapes = "weight:(C,S..) gamma:(C) var:(C) -> output:weight", .types = "T:float; gamma,var:stat(T)");

static const tn_op fold_bias =
    TNI_OP("_fold_bias",
           .doc = "beta + (bias - mean) * gamma / sqrt(var + eps): a layer's bias with BatchNorm in it.",
           .attrs = fold_bias_attrs, .flags = TN_OP_INTERNAL,
           .shapes = "gamma:(C) beta:(C) mean:(C) var:(C) bias?!no_bias:(C) -> output:(C)",
           .types = "T:float; T:attr(dtype,or(gamma)); gamma,beta,mean,var:stat(T)");

const tn_op *const tni_family_fused[] = {&reorder, &fused_conv, &fused_dense, &fold_weight, &fold_bias, NULL};

/*
 * Operators that only the passes of room compile make: layers with what follows them in one kernel, the
 * folding of BatchNorm's statistics into a layer's parameters, and a change of memory order. They have no
 * gradient, and no call, symbol or file can name them (TN_OP_INTERNAL). Attributes of the layers stand first
 * and keep their indices.
 */
#include "op/layers.h"

/* What follows a layer: an addend, then a function. a_min, a_max: limits of clip; slope: of leaky below 0. */
#define FOLLOWING_ATTRS(PREFIX)                                                                              \
    [TN_##PREFIX##_WITH_SUM] = TN_ATTR_BOOL("with_sum", "0", "the last input is added to the output"),       \
    [TN_##PREFIX##_ACT_TYPE] =                                                                               \
        TN_ATTR_CHOICE("act_type", "None", "None|relu|sigmoid|tanh|softrelu|clip|leaky",                     \
                       "the function of what came of that"),                                                 \
    [TN_##PREFIX##_A_MIN] = TN_ATTR_FLOAT("a_min", "0", "clip: lower limit"),                                \
    [TN_##PREFIX##_A_MAX] = TN_ATTR_FLOAT("a_max", "0", "clip: upper limit"),                                \
    [TN_##PREFIX##_SLOPE] = TN_ATTR_FLOAT("slope", "0.25", "leaky: slope below 0")

static const tn_attr_def conv_attrs[] = {TNI_CONVOLUTION_ATTRS, FOLLOWING_ATTRS(FUSED_CONV), TN_ATTR_END};
static const tn_attr_def dense_attrs[] = {TNI_DENSE_ATTRS, FOLLOWING_ATTRS(FUSED_DENSE), TN_ATTR_END};

static const char *const output_names[] = {"output", NULL};

/* ---- folding of BatchNorm ---------------------------------------------------------------------------- */

static const tn_attr_def fold_weight_attrs[] = {
    [TN_FOLD_WEIGHT_EPS] =
        TN_ATTR_FLOAT_IN("eps", "0.0010000000474974513", 0, 1e300, "added to the variance"),
    [TN_FOLD_WEIGHT_FIX_GAMMA] = TN_ATTR_BOOL("fix_gamma", "1", "gamma counts as 1"),
    TN_ATTR_END,
};

static const tn_attr_def fold_bias_attrs[] = {
    [TN_FOLD_BIAS_EPS] = TN_ATTR_FLOAT_IN("eps", "0.0010000000474974513", 0, 1e300, "added to the variance"),
    [TN_FOLD_BIAS_FIX_GAMMA] = TN_ATTR_BOOL("fix_gamma", "1", "gamma counts as 1"),
    [TN_FOLD_BIAS_NO_BIAS] = TN_ATTR_BOOL("no_bias", "0", "the layer has no bias"),
    [TN_FOLD_BIAS_DTYPE] = TN_ATTR_DTYPE("dtype", "None", "of the output; None: that of gamma"),
    TN_ATTR_END,
};

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

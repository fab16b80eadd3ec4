/** Attributes of the operators of the family norm. */
#ifndef TENON_PLUGIN_OP_NORM_H
#define TENON_PLUGIN_OP_NORM_H

#include "../attr.h"

#define TN_BatchNorm_ATTRS(X)                                                                                \
    X(BatchNorm, FLOAT, eps, "0.0010000000474974513", TN_IN(0, 1e300), "added to the variance")              \
    X(BatchNorm, FLOAT, momentum, "0.899999976", TN_ANY, "how much of the running statistics is kept")       \
    X(BatchNorm, BOOL, fix_gamma, "1", TN_ANY, "gamma counts as 1")                                          \
    X(BatchNorm, BOOL, use_global_stats, "0", TN_ANY, "running statistics in training, too")                 \
    X(BatchNorm, BOOL, output_mean_var, "0", TN_ANY, "mean and 1 / sqrt(var + eps) are outputs")             \
    X(BatchNorm, INT, axis, "1", TN_ANY, "of the channels")                                                  \
    X(BatchNorm, BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")                                            \
    X(BatchNorm, OPT_FLOAT, min_calib_range, "None", TN_ANY, "for quantization")                             \
    X(BatchNorm, OPT_FLOAT, max_calib_range, "None", TN_ANY, "for quantization")
TN_ATTRS(BatchNorm);

#define TN_LayerNorm_ATTRS(X)                                                                                \
    X(LayerNorm, INT, axis, "-1", TN_ANY, "along which is normalised")                                       \
    X(LayerNorm, FLOAT, eps, "9.99999975e-06", TN_IN(0, 1e300), "added to the variance")                     \
    X(LayerNorm, BOOL, output_mean_var, "0", TN_ANY, "mean and sqrt(var + eps) are outputs")
TN_ATTRS(LayerNorm);

#define TN_InstanceNorm_ATTRS(X)                                                                             \
    X(InstanceNorm, FLOAT, eps, "0.00100000005", TN_IN(0, 1e300), "added to the variance")
TN_ATTRS(InstanceNorm);

#define TN_GroupNorm_ATTRS(X)                                                                                \
    X(GroupNorm, INT, num_groups, "1", TN_IN(1, 2147483647), "groups of channels")                           \
    X(GroupNorm, FLOAT, eps, "9.99999975e-06", TN_IN(0, 1e300), "added to the variance")                     \
    X(GroupNorm, BOOL, output_mean_var, "0", TN_ANY, "mean and sqrt(var + eps) are outputs")
TN_ATTRS(GroupNorm);

#define TN_L2Normalization_mode_CHOICES(C, op, name)                                                         \
    C(op, name, channel) C(op, name, instance) C(op, name, spatial)
#define TN_L2Normalization_ATTRS(X)                                                                          \
    X(L2Normalization, FLOAT, eps, "1.00000001e-10", TN_IN(0, 1e300), "added to the sum")                    \
    X(L2Normalization, CHOICE, mode, "instance", TN_ANY,                                                     \
      "what is one vector: an example, the channels of a place, or the places of a channel")
TN_ATTRS(L2Normalization);
TN_CHOICES(L2Normalization, mode);

#define TN_LRN_ATTRS(X)                                                                                      \
    X(LRN, FLOAT, alpha, "9.99999975e-05", TN_ANY, "what the mean of squares is multiplied by")              \
    X(LRN, FLOAT, beta, "0.75", TN_ANY, "the exponent")                                                      \
    X(LRN, FLOAT, knorm, "2", TN_ANY, "what is added")                                                       \
    X(LRN, INT, nsize, TN_REQUIRED, TN_IN(1, 4294967295),                                                    \
      "channels of a window; an even one counts as one less, but alpha / nsize")
TN_ATTRS(LRN);

#endif

/** Attributes of the operators of the family norm. */
#ifndef TENON_PLUGIN_OP_NORM_H
#define TENON_PLUGIN_OP_NORM_H

#include "../attr.h"

#define TN_BATCH_NORM_ROWS(X, op)                                                                            \
    X(op, FLOAT, eps, "0.0010000000474974513", TN_IN(0, 1e300), "added to the variance")                     \
    X(op, FLOAT, momentum, "0.899999976", TN_ANY, "how much of the running statistics is kept")              \
    X(op, BOOL, fix_gamma, "1", TN_ANY, "gamma counts as 1")                                                 \
    X(op, BOOL, use_global_stats, "0", TN_ANY, "running statistics in training, too")                        \
    X(op, BOOL, output_mean_var, "0", TN_ANY, "mean and 1 / sqrt(var + eps) are outputs")                    \
    X(op, INT, axis, "1", TN_ANY, "of the channels")                                                         \
    X(op, BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")                                                   \
    X(op, OPT_FLOAT, min_calib_range, "None", TN_ANY, "for quantization")                                    \
    X(op, OPT_FLOAT, max_calib_range, "None", TN_ANY, "for quantization")
#define TN_BatchNorm_ATTRS(X) TN_BATCH_NORM_ROWS(X, BatchNorm)
TN_ATTRS(BatchNorm);
#define TN_contrib_BatchNormWithReLU_ATTRS(X) TN_BATCH_NORM_ROWS(X, contrib_BatchNormWithReLU)
TN_ATTRS(contrib_BatchNormWithReLU);
/* The first five stand where BatchNorm has them. In training the calls of `ndev` devices that have one `key`
 * meet in the order in which each device runs them. A call that is skipped because an input has failed is not
 * counted: unless all devices are waited for before other running statistics take the place of failed ones,
 * calls of different batches may meet. */
#define TN_contrib_SyncBatchNorm_ATTRS(X)                                                                    \
    X(contrib_SyncBatchNorm, FLOAT, eps, "0.00100000005", TN_IN(0, 1e300), "added to the variance")          \
    X(contrib_SyncBatchNorm, FLOAT, momentum, "0.899999976", TN_ANY,                                         \
      "how much of the running statistics is kept")                                                          \
    X(contrib_SyncBatchNorm, BOOL, fix_gamma, "1", TN_ANY, "gamma counts as 1")                              \
    X(contrib_SyncBatchNorm, BOOL, use_global_stats, "0", TN_ANY, "running statistics in training, too")     \
    X(contrib_SyncBatchNorm, BOOL, output_mean_var, "0", TN_ANY, "mean and 1 / sqrt(var + eps) are outputs") \
    X(contrib_SyncBatchNorm, INT, ndev, "1", TN_IN(1, 1e6), "devices that share the statistics")             \
    X(contrib_SyncBatchNorm, TEXT, key, TN_REQUIRED, TN_ANY, "of the layer, among devices")
TN_ATTRS(contrib_SyncBatchNorm);

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

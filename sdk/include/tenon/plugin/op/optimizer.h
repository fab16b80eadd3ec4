/** Attributes of the operators of the family optimizer. */
#ifndef TENON_PLUGIN_OP_OPTIMIZER_H
#define TENON_PLUGIN_OP_OPTIMIZER_H

#include "../attr.h"

#define TN_LR_ROW(X, op) X(op, FLOAT_RUN, lr, TN_REQUIRED, TN_ANY, "learning rate")
#define TN_MOMENTUM_ROW(X, op) X(op, FLOAT, momentum, "0", TN_ANY, "how much of the last step is kept")
#define TN_LAZY_ROW(X, op)                                                                                   \
    X(op, BOOL, lazy_update, "1", TN_ANY, "with row_sparse gradients: touch only their rows")
#define TN_EPSILON_ROW(X, op) X(op, FLOAT, epsilon, "9.99999994e-09", TN_ANY, "keeps divisors from zero")
#define TN_CLIP_WEIGHTS_ROW(X, op)                                                                           \
    X(op, FLOAT_RUN, clip_weights, "-1", TN_ANY, "weights are cut to this magnitude; below 0: not")
#define TN_GRAD_ROWS(X, op)                                                                                  \
    X(op, FLOAT_RUN, wd, "0", TN_ANY, "weight decay")                                                        \
    X(op, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")                  \
    X(op, FLOAT_RUN, clip_gradient, "-1", TN_ANY, "gradients are cut to this magnitude; below 0: not")

/* sgd_update, mp_sgd_update */
#define TN_sgd_update_ATTRS(X)                                                                               \
    TN_LR_ROW(X, sgd_update)                                                                                 \
    TN_GRAD_ROWS(X, sgd_update)                                                                              \
    TN_LAZY_ROW(X, sgd_update)
TN_ATTRS(sgd_update);

/* sgd_mom_update, mp_sgd_mom_update */
#define TN_sgd_mom_update_ATTRS(X)                                                                           \
    TN_LR_ROW(X, sgd_mom_update)                                                                             \
    TN_MOMENTUM_ROW(X, sgd_mom_update)                                                                       \
    TN_GRAD_ROWS(X, sgd_mom_update)                                                                          \
    TN_LAZY_ROW(X, sgd_mom_update)
TN_ATTRS(sgd_mom_update);

#define TN_nag_mom_update_ATTRS(X)                                                                           \
    TN_LR_ROW(X, nag_mom_update)                                                                             \
    TN_MOMENTUM_ROW(X, nag_mom_update)                                                                       \
    TN_GRAD_ROWS(X, nag_mom_update)
TN_ATTRS(nag_mom_update);

#define TN_signsgd_update_ATTRS(X)                                                                           \
    TN_LR_ROW(X, signsgd_update)                                                                             \
    TN_GRAD_ROWS(X, signsgd_update)
TN_ATTRS(signsgd_update);

#define TN_signum_update_ATTRS(X)                                                                            \
    TN_LR_ROW(X, signum_update)                                                                              \
    TN_MOMENTUM_ROW(X, signum_update)                                                                        \
    TN_GRAD_ROWS(X, signum_update)                                                                           \
    X(signum_update, FLOAT_RUN, wd_lh, "0", TN_ANY, "weight decay apart from the gradient")
TN_ATTRS(signum_update);

#define TN_adam_update_ATTRS(X)                                                                              \
    TN_LR_ROW(X, adam_update)                                                                                \
    X(adam_update, FLOAT, beta1, "0.899999976", TN_ANY, "decay of the first moment")                         \
    X(adam_update, FLOAT, beta2, "0.999000013", TN_ANY, "decay of the second moment")                        \
    TN_EPSILON_ROW(X, adam_update)                                                                           \
    TN_GRAD_ROWS(X, adam_update)                                                                             \
    TN_LAZY_ROW(X, adam_update)
TN_ATTRS(adam_update);

#define TN_rmsprop_update_ATTRS(X)                                                                           \
    TN_LR_ROW(X, rmsprop_update)                                                                             \
    X(rmsprop_update, FLOAT, gamma1, "0.949999988", TN_ANY, "decay of the mean square")                      \
    TN_EPSILON_ROW(X, rmsprop_update)                                                                        \
    TN_GRAD_ROWS(X, rmsprop_update)                                                                          \
    TN_CLIP_WEIGHTS_ROW(X, rmsprop_update)
TN_ATTRS(rmsprop_update);

#define TN_rmspropalex_update_ATTRS(X)                                                                       \
    TN_LR_ROW(X, rmspropalex_update)                                                                         \
    X(rmspropalex_update, FLOAT, gamma1, "0.949999988", TN_ANY, "decay of the means")                        \
    X(rmspropalex_update, FLOAT, gamma2, "0.899999976", TN_ANY, "how much of the last step is kept")         \
    TN_EPSILON_ROW(X, rmspropalex_update)                                                                    \
    TN_GRAD_ROWS(X, rmspropalex_update)                                                                      \
    TN_CLIP_WEIGHTS_ROW(X, rmspropalex_update)
TN_ATTRS(rmspropalex_update);

/* Any number of weights at once, which the last attribute counts; preloaded_ ones have rates and decays as
 * arrays. */
#define TN_RATES_ROWS(X, op)                                                                                 \
    X(op, FLOATS_RUN, lrs, TN_REQUIRED, TN_ANY, "learning rates, one for each weight")                       \
    X(op, FLOATS_RUN, wds, TN_REQUIRED, TN_ANY, "weight decays, one for each weight")
#define TN_MULTI_ROWS(X, op)                                                                                 \
    X(op, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")                  \
    X(op, FLOAT_RUN, clip_gradient, "-1", TN_ANY, "gradients are cut to this magnitude; below 0: not")       \
    X(op, INT, num_weights, "1", TN_ANY, "weights that are updated")

/* multi_sgd_update, multi_mp_sgd_update */
#define TN_multi_sgd_update_ATTRS(X)                                                                         \
    TN_RATES_ROWS(X, multi_sgd_update)                                                                       \
    TN_MULTI_ROWS(X, multi_sgd_update)
TN_ATTRS(multi_sgd_update);

/* multi_sgd_mom_update, multi_mp_sgd_mom_update */
#define TN_multi_sgd_mom_update_ATTRS(X)                                                                     \
    TN_RATES_ROWS(X, multi_sgd_mom_update)                                                                   \
    TN_MOMENTUM_ROW(X, multi_sgd_mom_update)                                                                 \
    TN_MULTI_ROWS(X, multi_sgd_mom_update)
TN_ATTRS(multi_sgd_mom_update);

/* preloaded_multi_sgd_update, preloaded_multi_mp_sgd_update */
#define TN_preloaded_multi_sgd_update_ATTRS(X) TN_MULTI_ROWS(X, preloaded_multi_sgd_update)
TN_ATTRS(preloaded_multi_sgd_update);

/* preloaded_multi_sgd_mom_update, preloaded_multi_mp_sgd_mom_update */
#define TN_preloaded_multi_sgd_mom_update_ATTRS(X)                                                           \
    TN_MOMENTUM_ROW(X, preloaded_multi_sgd_mom_update)                                                       \
    TN_MULTI_ROWS(X, preloaded_multi_sgd_mom_update)
TN_ATTRS(preloaded_multi_sgd_mom_update);

#define TN_multi_sum_sq_ATTRS(X)                                                                             \
    X(multi_sum_sq, INT, num_arrays, TN_REQUIRED, TN_ANY, "arrays whose squares are summed")
TN_ATTRS(multi_sum_sq);

#define TN_multi_lars_ATTRS(X)                                                                               \
    X(multi_lars, FLOAT, eta, TN_REQUIRED, TN_ANY, "the coefficient of LARS")                                \
    X(multi_lars, FLOAT, eps, TN_REQUIRED, TN_ANY, "keeps divisors from zero")                               \
    X(multi_lars, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")
TN_ATTRS(multi_lars);

#endif

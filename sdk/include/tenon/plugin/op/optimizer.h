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
#define TN_BETAS_ROWS(X, op, first)                                                                          \
    X(op, FLOAT, beta1, first, TN_ANY, "decay of the first moment")                                          \
    X(op, FLOAT, beta2, "0.999000013", TN_ANY, "decay of the second moment")
#define TN_COUNT_ROW(X, op) X(op, INT_RUN, t, TN_REQUIRED, TN_ANY, "number of the step, from 1")
#define TN_BOUNDS_ROWS(X, op)                                                                                \
    X(op, FLOAT_RUN, lower_bound, "-1", TN_ANY, "least norm of the weight; below 0: none")                   \
    X(op, FLOAT_RUN, upper_bound, "-1", TN_ANY, "largest norm of the weight; below 0: none")
#define TN_UNBIASED_ROW(X, op)                                                                               \
    X(op, BOOL, bias_correction, "1", TN_ANY, "moments are divided by what they lack at first")
#define TN_SCALE_ROWS(X, op)                                                                                 \
    X(op, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")                  \
    TN_CLIP_ROW(X, op, clip_gradient)
#define TN_CLIP_ROW(X, op, name)                                                                             \
    X(op, FLOAT_RUN, name, "-1", TN_ANY, "gradients are cut to this magnitude; below 0: not")
#define TN_GRAD_ROWS(X, op)                                                                                  \
    X(op, FLOAT_RUN, wd, "0", TN_ANY, "weight decay")                                                        \
    TN_SCALE_ROWS(X, op)

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
    TN_BETAS_ROWS(X, adam_update, "0.899999976")                                                             \
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

/* _adamw_update, _mp_adamw_update */
#define TN_adamw_update_ATTRS(X)                                                                             \
    TN_LR_ROW(X, adamw_update)                                                                               \
    TN_BETAS_ROWS(X, adamw_update, "0.899999976")                                                            \
    TN_EPSILON_ROW(X, adamw_update)                                                                          \
    X(adamw_update, FLOAT_RUN, wd, "0", TN_ANY, "weight decay, apart from lr")                               \
    X(adamw_update, FLOAT_RUN, eta, TN_REQUIRED, TN_ANY, "what lr and wd are multiplied by")                 \
    TN_CLIP_ROW(X, adamw_update, clip_gradient)
TN_ATTRS(adamw_update);

#define TN_ftrl_update_ATTRS(X)                                                                              \
    TN_LR_ROW(X, ftrl_update)                                                                                \
    X(ftrl_update, FLOAT, lamda1, "0.00999999978", TN_ANY, "weight of the L1 norm")                          \
    X(ftrl_update, FLOAT, beta, "1", TN_ANY, "rate of the rate's decrease")                                  \
    TN_GRAD_ROWS(X, ftrl_update)
TN_ATTRS(ftrl_update);

#define TN_ftml_update_ATTRS(X)                                                                              \
    TN_LR_ROW(X, ftml_update)                                                                                \
    X(ftml_update, FLOAT, beta1, "0.600000024", TN_IN(0, 1), "decay of the first moment")                    \
    X(ftml_update, FLOAT, beta2, "0.999000013", TN_IN(0, 1), "decay of the second moment")                   \
    X(ftml_update, FLOAT, epsilon, "9.9999999392252903e-09", TN_ANY, "keeps divisors from zero")             \
    TN_COUNT_ROW(X, ftml_update)                                                                             \
    X(ftml_update, FLOAT_RUN, wd, "0", TN_ANY, "weight decay")                                               \
    X(ftml_update, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")         \
    TN_CLIP_ROW(X, ftml_update, clip_grad)
TN_ATTRS(ftml_update);

/* _sparse_adagrad_update */
#define TN_adagrad_update_ATTRS(X)                                                                           \
    TN_LR_ROW(X, adagrad_update)                                                                             \
    X(adagrad_update, FLOAT, epsilon, "1.00000001e-07", TN_ANY, "keeps divisors from zero")                  \
    TN_GRAD_ROWS(X, adagrad_update)
TN_ATTRS(adagrad_update);

/* _contrib_group_adagrad_update */
#define TN_group_adagrad_update_ATTRS(X)                                                                     \
    TN_LR_ROW(X, group_adagrad_update)                                                                       \
    TN_SCALE_ROWS(X, group_adagrad_update)                                                                   \
    X(group_adagrad_update, FLOAT, epsilon, "9.99999975e-06", TN_ANY, "keeps divisors from zero")
TN_ATTRS(group_adagrad_update);

/* lamb_update_phase1, mp_lamb_update_phase1 */
#define TN_lamb_update_phase1_ATTRS(X)                                                                       \
    TN_BETAS_ROWS(X, lamb_update_phase1, "0.899999976")                                                      \
    X(lamb_update_phase1, FLOAT, epsilon, "9.99999997e-07", TN_ANY, "keeps divisors from zero")              \
    TN_COUNT_ROW(X, lamb_update_phase1)                                                                      \
    TN_UNBIASED_ROW(X, lamb_update_phase1)                                                                   \
    X(lamb_update_phase1, FLOAT_RUN, wd, TN_REQUIRED, TN_ANY, "weight decay")                                \
    TN_SCALE_ROWS(X, lamb_update_phase1)
TN_ATTRS(lamb_update_phase1);

/* lamb_update_phase2, mp_lamb_update_phase2 */
#define TN_lamb_update_phase2_ATTRS(X)                                                                       \
    TN_LR_ROW(X, lamb_update_phase2)                                                                         \
    TN_BOUNDS_ROWS(X, lamb_update_phase2)
TN_ATTRS(lamb_update_phase2);

/* Any number of weights at once, which the last attribute counts; preloaded_ ones have rates and decays as
 * arrays. */
#define TN_RATES_ROWS(X, op)                                                                                 \
    X(op, FLOATS_RUN, lrs, TN_REQUIRED, TN_ANY, "learning rates, one for each weight")                       \
    X(op, FLOATS_RUN, wds, TN_REQUIRED, TN_ANY, "weight decays, one for each weight")
#define TN_MULTI_ROWS(X, op)                                                                                 \
    TN_SCALE_ROWS(X, op)                                                                                     \
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

/* _multi_adamw_update, _multi_mp_adamw_update */
#define TN_multi_adamw_update_ATTRS(X)                                                                       \
    X(multi_adamw_update, FLOATS_RUN, lrs, TN_REQUIRED, TN_ANY, "learning rates, one for each weight")       \
    TN_BETAS_ROWS(X, multi_adamw_update, "0.899999976")                                                      \
    TN_EPSILON_ROW(X, multi_adamw_update)                                                                    \
    X(multi_adamw_update, FLOATS_RUN, wds, TN_REQUIRED, TN_ANY, "weight decays, one for each weight")        \
    X(multi_adamw_update, FLOATS_RUN, etas, TN_REQUIRED, TN_ANY, "what lrs and wds are multiplied by")       \
    TN_CLIP_ROW(X, multi_adamw_update, clip_gradient)                                                        \
    X(multi_adamw_update, INT, num_weights, "1", TN_ANY, "weights that are updated")
TN_ATTRS(multi_adamw_update);

/* _multi_lamb_update, _multi_mp_lamb_update */
#define TN_multi_lamb_update_ATTRS(X)                                                                        \
    X(multi_lamb_update, FLOATS_RUN, learning_rates, TN_REQUIRED, TN_ANY, "one for each weight")             \
    TN_BETAS_ROWS(X, multi_lamb_update, "0.899999976")                                                       \
    X(multi_lamb_update, FLOAT, epsilon, "9.99999997e-07", TN_ANY, "keeps divisors from zero")               \
    X(multi_lamb_update, FLOATS_RUN, wds, TN_REQUIRED, TN_ANY, "weight decays, one for each weight")         \
    X(multi_lamb_update, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")   \
    TN_BOUNDS_ROWS(X, multi_lamb_update)                                                                     \
    TN_CLIP_ROW(X, multi_lamb_update, clip_gradient)                                                         \
    TN_UNBIASED_ROW(X, multi_lamb_update)                                                                    \
    X(multi_lamb_update, TUPLE_RUN, step_count, TN_REQUIRED, TN_ANY, "numbers of the steps, from 1")         \
    X(multi_lamb_update, INT, num_tensors, "1", TN_ANY, "weights that are updated")
TN_ATTRS(multi_lamb_update);

#define TN_multi_sum_sq_ATTRS(X)                                                                             \
    X(multi_sum_sq, INT, num_arrays, TN_REQUIRED, TN_ANY, "arrays whose squares are summed")
TN_ATTRS(multi_sum_sq);

#define TN_INIT_ROW(X, op)                                                                                   \
    X(op, BOOL, init_output, "1", TN_ANY, "1 at first; else a given array keeps its value or gets 0")

#define TN_all_finite_ATTRS(X) TN_INIT_ROW(X, all_finite)
TN_ATTRS(all_finite);

#define TN_multi_all_finite_ATTRS(X)                                                                         \
    X(multi_all_finite, INT, num_arrays, "1", TN_ANY, "arrays that are looked at")                           \
    TN_INIT_ROW(X, multi_all_finite)
TN_ATTRS(multi_all_finite);

#define TN_reset_arrays_ATTRS(X) X(reset_arrays, INT, num_arrays, TN_REQUIRED, TN_ANY, "arrays that become 0")
TN_ATTRS(reset_arrays);

#define TN_multi_lars_ATTRS(X)                                                                               \
    X(multi_lars, FLOAT, eta, TN_REQUIRED, TN_ANY, "the coefficient of LARS")                                \
    X(multi_lars, FLOAT, eps, TN_REQUIRED, TN_ANY, "keeps divisors from zero")                               \
    X(multi_lars, FLOAT_RUN, rescale_grad, "1", TN_ANY, "what the gradient is multiplied by first")
TN_ATTRS(multi_lars);

#endif

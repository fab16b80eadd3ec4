/** Attributes of the operators of the family random. */
#ifndef TENON_PLUGIN_OP_RANDOM_H
#define TENON_PLUGIN_OP_RANDOM_H

#include "../attr.h"

#define TN_RANDOM_ROWS(X, op)                                                                                \
    X(op, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the output; -1: to be inferred")                        \
    X(op, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                                            \
    X(op, DTYPE, dtype, "None", TN_ANY, "of the output; None: float32")

/* Parameters of the distributions: the first attributes of _random_NAME and _random_NAME_like. */
#define TN_RANDOM_UNIFORM(X, op)                                                                             \
    X(op, FLOAT_RUN, low, "0", TN_ANY, "lower bound")                                                        \
    X(op, FLOAT_RUN, high, "1", TN_ANY, "upper bound, not included")
#define TN_RANDOM_NORMAL(X, op)                                                                              \
    X(op, FLOAT_RUN, loc, "0", TN_ANY, "mean")                                                               \
    X(op, FLOAT_RUN, scale, "1", TN_ANY, "standard deviation")
#define TN_RANDOM_GAMMA(X, op)                                                                               \
    X(op, FLOAT_RUN, alpha, "1", TN_ANY, "shape, above 0")                                                   \
    X(op, FLOAT_RUN, beta, "1", TN_ANY, "scale, above 0")
#define TN_RANDOM_EXPONENTIAL(X, op) X(op, FLOAT_RUN, lam, "1", TN_ANY, "rate, above 0")
#define TN_RANDOM_POISSON(X, op) X(op, FLOAT_RUN, lam, "1", TN_ANY, "mean, at least 0")
#define TN_RANDOM_NEGATIVE_BINOMIAL(X, op)                                                                   \
    X(op, INT_RUN, k, "1", TN_ANY, "failures that end the experiments, at least 0")                          \
    X(op, FLOAT_RUN, p, "1", TN_ANY, "probability of a failure, above 0, at most 1")
#define TN_RANDOM_GENERALIZED_NEGATIVE_BINOMIAL(X, op)                                                       \
    X(op, FLOAT_RUN, mu, "1", TN_ANY, "mean, at least 0")                                                    \
    X(op, FLOAT_RUN, alpha, "1", TN_ANY, "dispersion, at least 0: one through the failures that end it")

#define TN_random_uniform_ATTRS(X) TN_RANDOM_UNIFORM(X, random_uniform) TN_RANDOM_ROWS(X, random_uniform)
TN_ATTRS(random_uniform);
#define TN_random_normal_ATTRS(X) TN_RANDOM_NORMAL(X, random_normal) TN_RANDOM_ROWS(X, random_normal)
TN_ATTRS(random_normal);
#define TN_random_gamma_ATTRS(X) TN_RANDOM_GAMMA(X, random_gamma) TN_RANDOM_ROWS(X, random_gamma)
TN_ATTRS(random_gamma);
#define TN_random_exponential_ATTRS(X)                                                                       \
    TN_RANDOM_EXPONENTIAL(X, random_exponential) TN_RANDOM_ROWS(X, random_exponential)
TN_ATTRS(random_exponential);
#define TN_random_poisson_ATTRS(X) TN_RANDOM_POISSON(X, random_poisson) TN_RANDOM_ROWS(X, random_poisson)
TN_ATTRS(random_poisson);
#define TN_random_negative_binomial_ATTRS(X)                                                                 \
    TN_RANDOM_NEGATIVE_BINOMIAL(X, random_negative_binomial) TN_RANDOM_ROWS(X, random_negative_binomial)
TN_ATTRS(random_negative_binomial);
#define TN_random_generalized_negative_binomial_ATTRS(X)                                                     \
    TN_RANDOM_GENERALIZED_NEGATIVE_BINOMIAL(X, random_generalized_negative_binomial)                         \
    TN_RANDOM_ROWS(X, random_generalized_negative_binomial)
TN_ATTRS(random_generalized_negative_binomial);

/* In the shape of an input. */
#define TN_random_uniform_like_ATTRS(X) TN_RANDOM_UNIFORM(X, random_uniform_like)
#define TN_random_normal_like_ATTRS(X) TN_RANDOM_NORMAL(X, random_normal_like)
#define TN_random_gamma_like_ATTRS(X) TN_RANDOM_GAMMA(X, random_gamma_like)
#define TN_random_exponential_like_ATTRS(X) TN_RANDOM_EXPONENTIAL(X, random_exponential_like)
#define TN_random_poisson_like_ATTRS(X) TN_RANDOM_POISSON(X, random_poisson_like)
#define TN_random_negative_binomial_like_ATTRS(X)                                                            \
    TN_RANDOM_NEGATIVE_BINOMIAL(X, random_negative_binomial_like)
#define TN_random_generalized_negative_binomial_like_ATTRS(X)                                                \
    TN_RANDOM_GENERALIZED_NEGATIVE_BINOMIAL(X, random_generalized_negative_binomial_like)

#define TN_random_randint_ATTRS(X)                                                                           \
    X(random_randint, INT_RUN, low, TN_REQUIRED, TN_ANY, "smallest number")                                  \
    X(random_randint, INT_RUN, high, TN_REQUIRED, TN_ANY, "upper bound, not included")                       \
    X(random_randint, TUPLE, shape, "None", TN_IN(-1, 9e15), "of the output; -1: to be inferred")            \
    X(random_randint, TEXT, ctx, "", TN_ANY, "device, read by whoever calls")                                \
    X(random_randint, DTYPE, dtype, "None", TN_ANY, "of the output; None: int32")
TN_ATTRS(random_randint);

/* _sample_NAME: a batch of draws for each element of the parameters */
#define TN_sample_ATTRS(X)                                                                                   \
    X(sample, TUPLE, shape, "[]", TN_IN(0, 9e15), "of the draws for each element of the parameters")         \
    X(sample, DTYPE, dtype, "None", TN_ANY, "of the output; None: float32")
TN_ATTRS(sample);

#define TN_Dropout_mode_CHOICES(C, op, name) C(op, name, always) C(op, name, training)
#define TN_Dropout_ATTRS(X)                                                                                  \
    X(Dropout, FLOAT, p, "0.5", TN_IN(0, 1), "share of the elements that become zero")                       \
    X(Dropout, CHOICE, mode, "training", TN_ANY, "when elements are dropped")                                \
    X(Dropout, TUPLE, axes, "[]", TN_ANY, "axes along which all elements share their fate")                  \
    X(Dropout, OPT_BOOL, cudnn_off, "0", TN_ANY, "advice to cuDNN")
TN_ATTRS(Dropout);
TN_CHOICES(Dropout, mode);

#endif

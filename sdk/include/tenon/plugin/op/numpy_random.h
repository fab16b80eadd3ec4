/** Attributes of the operators of the family numpy_random. */
#ifndef TENON_PLUGIN_OP_NUMPY_RANDOM_H
#define TENON_PLUGIN_OP_NUMPY_RANDOM_H

#include "../attr.h"

#define TN_NPI_SIZE_ROWS(X, op)                                                                              \
    X(op, TUPLE, size, "None", TN_IN(0, 9e15), "shape of the output; None: that of the parameters")          \
    X(op, TEXT, ctx, "cpu", TN_ANY, "device, read by whoever calls")
#define TN_NPI_DTYPE_ROWS(X, op)                                                                             \
    TN_NPI_SIZE_ROWS(X, op) X(op, DTYPE, dtype, "float32", TN_ANY, "of the output")

#define TN_npi_uniform_ATTRS(X)                                                                              \
    X(npi_uniform, OPT_FLOAT, low, TN_REQUIRED, TN_ANY, "lower bound; None: an input")                       \
    X(npi_uniform, OPT_FLOAT, high, TN_REQUIRED, TN_ANY, "upper bound, not included; None: an input")        \
    TN_NPI_DTYPE_ROWS(X, npi_uniform)
TN_ATTRS(npi_uniform);

#define TN_npi_normal_ATTRS(X)                                                                               \
    X(npi_normal, OPT_FLOAT, loc, TN_REQUIRED, TN_ANY, "mean; None: an input")                               \
    X(npi_normal, OPT_FLOAT, scale, TN_REQUIRED, TN_ANY, "standard deviation; None: an input")               \
    TN_NPI_DTYPE_ROWS(X, npi_normal)
TN_ATTRS(npi_normal);

#define TN_npi_gamma_ATTRS(X)                                                                                \
    X(npi_gamma, OPT_FLOAT, shape, TN_REQUIRED, TN_ANY, "shape, above 0; None: an input")                    \
    X(npi_gamma, OPT_FLOAT, scale, TN_REQUIRED, TN_ANY, "scale, above 0; None: an input")                    \
    TN_NPI_DTYPE_ROWS(X, npi_gamma)
TN_ATTRS(npi_gamma);

/* _npi_gumbel, _npi_logistic */
#define TN_npi_place_ATTRS(X)                                                                                \
    X(npi_place, OPT_FLOAT, loc, TN_REQUIRED, TN_ANY, "place; None: an input")                               \
    X(npi_place, OPT_FLOAT, scale, TN_REQUIRED, TN_ANY, "scale, at least 0; None: an input")                 \
    TN_NPI_SIZE_ROWS(X, npi_place)
TN_ATTRS(npi_place);

/* _npi_exponential, _npi_rayleigh */
#define TN_npi_scale_ATTRS(X)                                                                                \
    X(npi_scale, OPT_FLOAT, scale, "1", TN_ANY, "scale, at least 0; None: an input")                         \
    TN_NPI_SIZE_ROWS(X, npi_scale)
TN_ATTRS(npi_scale);

/* _npi_pareto, _npi_weibull */
#define TN_npi_power_ATTRS(X)                                                                                \
    X(npi_power, OPT_FLOAT, a, "None", TN_ANY, "shape, above 0; None: an input")                             \
    TN_NPI_SIZE_ROWS(X, npi_power)
TN_ATTRS(npi_power);

#define TN_npi_powerd_ATTRS(X)                                                                               \
    X(npi_powerd, OPT_FLOAT, a, "None", TN_ANY, "exponent, above 0; None: an input")                         \
    X(npi_powerd, TUPLE, size, "None", TN_IN(0, 9e15), "shape of the output; None: that of a")
TN_ATTRS(npi_powerd);

#define TN_npi_bernoulli_ATTRS(X)                                                                            \
    X(npi_bernoulli, OPT_FLOAT, prob, TN_REQUIRED, TN_ANY, "probability of a 1, from 0 to 1")                \
    X(npi_bernoulli, OPT_FLOAT, logit, TN_REQUIRED, TN_ANY, "its logit; None, as prob: an input")            \
    TN_NPI_DTYPE_ROWS(X, npi_bernoulli)                                                                      \
    X(npi_bernoulli, BOOL, is_logit, TN_REQUIRED, TN_ANY, "the input is a logit")
TN_ATTRS(npi_bernoulli);

#endif

/*
 * Densities of distributions, and probabilities of discrete ones. The parameters have the first dimensions of
 * the samples: each element of theirs serves all samples behind it.
 */
#include "tenon/plugin/op/pdf.h"
#include "op/infer_help.h"

static const tn_attr_def pdf_attrs[] = TN_ATTR_TABLE(pdf);

#define PDF(name, ...)                                                                                       \
    TNI_ROW("_random_pdf_" #name, .aliases = TNI_NAMES("random_pdf_" #name), .attrs = pdf_attrs,             \
            .types = "T:float", __VA_ARGS__)
#define DENSITY(name, parameters, names, zero, doc_)                                                         \
    PDF(name, .doc = "The density " doc_ ".", .shapes = "sample:(S..,R..) " parameters " -> output:sample",  \
        .gradients = "once: dy sample " names " -> sample" zero " " names)

/* sample (S.., R.., K), alpha (S.., K) -> (S.., R..), which may have no dimension */
static tn_status dirichlet_shape(tn_infer *i)
{
    tn_shape *sample = i->in_shape[0], *alpha = i->in_shape[1], y;
    tn_status st = TN_OK;

    if (sample->ndim < 0 || alpha->ndim < 0)
        return TN_OK;
    if (alpha->ndim < 1 || alpha->ndim > sample->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "alpha has %d dimensions, sample %d: 1 to so many are needed",
                              alpha->ndim, sample->ndim);
    for (int32_t d = 0; d < alpha->ndim - 1 && !st; d++)
        st = tni_dim_unify(i, &sample->dim[d], &alpha->dim[d]);
    if (st || (st = tni_dim_unify(i, &sample->dim[sample->ndim - 1], &alpha->dim[alpha->ndim - 1])))
        return st;
    y = *sample;
    y.ndim--;
    return tni_outputs_assign(i, &y);
}

/* clang-format off */
const tn_op *const tni_family_pdf[] = {
    /* DENSITY(name, parameters, their names, whether samples get a gradient, what it is the density of) */
    DENSITY(uniform, "low:(S..) high:low", "low high", "=0", "of the uniform distribution over [low, high)"),
    DENSITY(normal, "mu:(S..) sigma:mu", "mu sigma", "", "of the normal distribution"),
    DENSITY(gamma, "alpha:(S..) beta:alpha", "alpha beta", "", "of the gamma distribution of shape and rate"),
    DENSITY(exponential, "lam:(S..)", "lam", "", "of the exponential distribution"),
    DENSITY(poisson, "lam:(S..)", "lam", "=0", "of whole numbers in the Poisson distribution"),
    DENSITY(negative_binomial, "k:(S..) p:k", "k p", "=0",
            "of whole numbers in the negative binomial distribution"),
    DENSITY(generalized_negative_binomial, "mu:(S..) alpha:mu", "mu alpha", "=0",
            "of whole numbers in the negative binomial distribution of given mean and dispersion"),
    PDF(dirichlet, .doc = "The density of the Dirichlet distribution; a sample is the last dimension.",
        .inputs = TNI_NAMES("sample", "alpha"), .outputs = TNI_NAMES("output"), .shape = dirichlet_shape,
        .gradients = "once: dy sample alpha -> sample alpha"),
    NULL,
};
/* clang-format on */

/*
 * Operators that take a draw. A distribution has three: with parameters that are run-time attributes, the
 * same in the shape of an input, and with tensors of parameters. Element k uses counter k of the draw
 * (tenon/plugin/random.h). And dropout.
 */
#include <string.h>

#include "op/infer_help.h"
#include "op/shape_attr.h"
#include "tenon/plugin/op/random.h"

static const tn_attr_def sample_attrs[] = TN_ATTR_TABLE(sample);

/* Of operators without inputs: their attribute `shape`. */
static tn_status random_shape(tn_infer *i)
{
    const tn_shape one = {.ndim = 1, .dim = {1}};
    uint32_t shape = 0;
    tn_status st;

    while (strcmp(i->op->attrs[shape].name, "shape") != 0)
        shape++;
    st = tni_shape_attr(i, shape, i->out_shape[0]);
    return st || i->out_shape[0]->ndim >= 0 ? st : tni_shape_assign(i, i->out_shape[0], &one);
}

static tn_status mask_unify(tn_infer *i, const tn_shape *data, tn_shape *mask)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_Dropout_axes);
    tn_shape m = *data;
    uint32_t shared = 0;
    tn_status st;

    if (data->ndim < 0)
        return TN_OK;
    if (tni_tuple_count(axes)) {
        if ((st = tni_axes_mask(i, axes, false, data->ndim, &shared)))
            return st;
        for (int32_t k = 0; k < data->ndim; k++)
            if (shared >> k & 1u)
                m.dim[k] = 1;
    }
    return tni_shape_assign(i, mask, &m);
}

static tn_status dropout_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : mask_unify(i, i->in_shape[0], i->out_shape[1]);
}

/* X(name, inputs of _sample_name with their shapes, their names, what is drawn) */
#define DISTRIBUTIONS(X)                                                                                     \
    X(uniform, "low:(S..) high:low", "low,high", "Numbers drawn evenly from [low, high)")                    \
    X(normal, "mu:(S..) sigma:mu", "mu,sigma", "Numbers drawn from a normal distribution")                   \
    X(gamma, "alpha:(S..) beta:alpha", "alpha,beta", "Numbers drawn from a gamma distribution")              \
    X(exponential, "lam:(S..)", "lam", "Numbers drawn from an exponential distribution")                     \
    X(poisson, "lam:(S..)", "lam", "Numbers drawn from a Poisson distribution")                              \
    X(negative_binomial, "k:(S..) p:k", "k,p",                                                               \
      "Numbers of successes before the k-th failure, drawn from a negative binomial distribution")           \
    X(generalized_negative_binomial, "mu:(S..) alpha:mu", "mu,alpha",                                        \
      "Numbers drawn from a negative binomial distribution of given mean and dispersion")

#define DRAWN .effects = TN_EFFECT_RANDOM
#define NAMES_uniform "random_uniform", "uniform"
#define NAMES_normal "normal", "random_normal"
#define NAMES_gamma "random_gamma"
#define NAMES_exponential "random_exponential"
#define NAMES_poisson "random_poisson"
#define NAMES_negative_binomial "random_negative_binomial"
#define NAMES_generalized_negative_binomial "random_generalized_negative_binomial"

/* The rows of one. */
#define RANDOM(name, inputs, names, doc_)                                                                    \
    TNI_ROW("_random_" #name, .doc = doc_ ".", .aliases = TNI_NAMES(NAMES_##name),                           \
            .attrs = TNI_ATTRS(random_##name), .outputs = TNI_NAMES("output"), .shape = random_shape, DRAWN, \
            .types = "output:attr(dtype,or(f32)); output:float"),
#define LIKE(name, inputs, names, doc_)                                                                      \
    TNI_ROW("_random_" #name "_like", .doc = doc_ ", in the shape of data.",                                 \
            .attrs = TNI_ATTRS(random_##name##_like), .shapes = "data:(S..) -> output:data",                 \
            .types = "T:float", .shapes_only = 1, DRAWN, .flags = TN_OP_ZERO_GRADIENT),
#define SAMPLE(name, inputs, names, doc_)                                                                    \
    TNI_ROW("_sample_" #name, .doc = doc_ ": as many for each element of the parameters as shape says.",     \
            .aliases = TNI_NAMES("sample_" #name), .attrs = sample_attrs,                                    \
            .shapes = inputs " -> output:(S..,shape..)", DRAWN, .flags = TN_OP_ZERO_GRADIENT,                \
            .types = names ":P; output:attr(dtype,or(f32)); output:float"),

/* clang-format off */
const tn_op *const tni_family_random[] = {
    DISTRIBUTIONS(RANDOM) DISTRIBUTIONS(LIKE) DISTRIBUTIONS(SAMPLE)
    TNI_ROW("_random_randint", .doc = "Whole numbers drawn evenly from [low, high).",
            .aliases = TNI_NAMES("_npi_random_randint", "random_randint"),
            .attrs = TNI_ATTRS(random_randint),
            .outputs = TNI_NAMES("output"), .shape = random_shape, DRAWN,
            .types = "output:attr(dtype,or(i32)); output:integer"),
    /* Linear in dy; the mask depends on nothing. */
    TNI_ROW(
        "Dropout",
        .doc = "Sets a random share `p` of the elements to zero and scales the others by 1 / (1 - p).",
        .aliases = TNI_NAMES("_npx_dropout"), .attrs = TNI_ATTRS(Dropout), .inputs = TNI_NAMES("data"),
        .outputs = TNI_NAMES("output", "mask"), .visible = 1, .effects = TN_EFFECT_RANDOM,
        .shape = dropout_shape,
        .types = "T:float", .gradients = "own: dy mask -> data ; dy = _backward_Dropout!(h, mask)"),
    NULL,
};
/* clang-format on */

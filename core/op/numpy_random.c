/*
 * NumPy's distributions. Parameters are attributes, or inputs that stretch; the output has the shape `size`,
 * or theirs. With a place and a scale, or one number that the output follows from, there is a gradient: the
 * noise, a hidden output, is what the parameters were applied to (Kingma and Welling: "Auto-encoding
 * variational Bayes", 2014), or the derivative by the parameter.
 */
#include <string.h>

#include "op/infer_help.h"
#include "tenon/plugin/op/numpy_random.h"

static const tn_attr_def uniform_attrs[] = TN_ATTR_TABLE(npi_uniform);
static const tn_attr_def normal_attrs[] = TN_ATTR_TABLE(npi_normal);
static const tn_attr_def place_attrs[] = TN_ATTR_TABLE(npi_place);
static const tn_attr_def scale_attrs[] = TN_ATTR_TABLE(npi_scale);
static const tn_attr_def power_attrs[] = TN_ATTR_TABLE(npi_power);

/* The first attributes are the parameters: how many there are. */
static uint32_t parameters(const tn_op *op)
{
    uint32_t n = 0;

    while (op->attrs[n].type == TN_ATTR_T_OPT_FLOAT)
        n++;
    return n;
}

static tn_status numpy_args(tn_infer *i)
{
    i->in_count = 0;
    for (uint32_t k = 0; k < parameters(i->op); k++)
        i->in_count += !tni_attr_opt_float(i->attrs, k);
    i->out_count = i->op->outputs[1] ? 2 : 1;
    i->visible_count = 1;
    return TN_OK;
}

static tn_status bernoulli_args(tn_infer *i)
{
    i->in_count = !tni_attr_opt_float(i->attrs, TN_npi_bernoulli_prob) &&
                  !tni_attr_opt_float(i->attrs, TN_npi_bernoulli_logit);
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

/* The inputs' shape, stretched. False: one is not known. */
static tn_status inputs_shape(tn_infer *i, tn_shape *both, bool *known)
{
    tn_status st = TN_OK;

    *both = (tn_shape){.ndim = 0};
    *known = true;
    for (uint32_t k = 0; k < i->in_count && !st; k++) {
        const tn_shape so_far = *both;

        *known = *known && i->in_shape[k]->ndim >= 0;
        if (*known)
            st = tni_shape_broadcast(i, &so_far, i->in_shape[k], both);
    }
    return st;
}

static const tn_tuple *size_of(const tn_infer *i)
{
    uint32_t k = 0;

    while (strcmp(i->op->attrs[k].name, "size") != 0)
        k++;
    return tni_attr_tuple(i->attrs, k);
}

static tn_status numpy_shape(tn_infer *i)
{
    const tn_tuple *size = size_of(i);
    tn_shape both, y, stretched;
    bool known;
    tn_status st = inputs_shape(i, &both, &known);

    if (st || (!size && !known))
        return st;
    if (!size)
        return tni_outputs_assign(i, &both);
    if (size->count > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "size has %lld items", (long long)size->count);
    tni_shape_set(&y, (int32_t)size->count, size->item);
    if (known &&
        ((st = tni_shape_broadcast(i, &both, &y, &stretched)) ||
         (st = tn_shape_unify(i, &y, &stretched)))) /* the parameters are not larger than size says */
        return st;
    return tni_outputs_assign(i, &y);
}

/* size, and behind it the parameters' shape */
static tn_status batches_shape(tn_infer *i)
{
    const tn_tuple *size = size_of(i);
    const int64_t count = tni_tuple_count(size);
    tn_shape both, y;
    bool known;
    tn_status st = inputs_shape(i, &both, &known);

    if (st || !known)
        return st;
    if (count + both.ndim > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "size and parameters have %lld dimensions",
                              (long long)count + both.ndim);
    tni_shape_set(&y, (int32_t)count, size ? size->item : NULL);
    for (int32_t d = 0; d < both.ndim; d++)
        y.dim[y.ndim++] = both.dim[d];
    return tni_outputs_assign(i, &y);
}

/* The place takes what arrives; every other parameter what arrives times the noise. */
static tn_status noise_grad(tn_grad *g)
{
    const bool placed = parameters(g->op) == 2;
    tn_edge dy = tn_grad_of(g, 0), e;
    uint32_t input = 0;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < parameters(g->op) && dy.node && !st; k++) {
        if (tni_attr_opt_float(g->attrs, k))
            continue;
        e = placed && k == 0 ? dy : tni_grad_op2(g, &st, "_npi_multiply", dy, tn_grad_output(g, 1));
        e = tni_grad_op2(g, &st, "_sum_like", e, tn_grad_input(g, input));
        st = tni_grad_set(g, &st, input++, e);
    }
    return st;
}

#define NUMPY(name_, attrs_, doc_, ...)                                                                      \
    TNI_ROW(name_, .doc = doc_, .attrs = attrs_, .visible = 1, .effects = TN_EFFECT_RANDOM, __VA_ARGS__)
#define INPUTS1 .inputs = TNI_NAMES("input1")
#define INPUTS2 .inputs = TNI_NAMES("input1", "input2")
#define SIZED .args = numpy_args, .shape = numpy_shape
#define BATCHES .args = numpy_args, .shape = batches_shape
#define PLAIN .outputs = TNI_NAMES("output"), .flags = TN_OP_ZERO_GRADIENT | TN_OP_CHECKS_VALUES
#define NOISY .outputs = TNI_NAMES("output", "noise"), .flags = TN_OP_CHECKS_VALUES, .gradient = noise_grad
#define TYPES_PAIR .types = "input1:A; input2:B; output:attr(dtype); output:float"
#define TYPES_PAIR_NOISE .types = "input1:A; input2:B; output:attr(dtype); output:float; noise:stat(output)"
#define TYPES_F32 .types = "input1:A; output,noise:f32"
#define TYPES_PAIR_F32 .types = "input1:A; input2:B; output,noise:f32"

/* clang-format off */
const tn_op *const tni_family_numpy_random[] = {
    NUMPY("_npi_uniform", uniform_attrs, "Numbers drawn evenly from [low, high).", INPUTS2, SIZED, PLAIN,
          TYPES_PAIR),
    NUMPY("_npi_uniform_n", uniform_attrs, "As _npi_uniform, size times for each parameter.", INPUTS2,
          BATCHES, PLAIN, TYPES_PAIR),
    NUMPY("_npi_normal", normal_attrs, "Numbers drawn from a normal distribution.", INPUTS2, SIZED, NOISY,
          TYPES_PAIR_NOISE),
    NUMPY("_npi_normal_n", normal_attrs, "As _npi_normal, size times for each parameter.", INPUTS2,
          BATCHES, NOISY, TYPES_PAIR_NOISE),
    NUMPY("_npi_gamma", TNI_ATTRS(npi_gamma), "Numbers drawn from a gamma distribution.", INPUTS2, SIZED,
          PLAIN, TYPES_PAIR),
    NUMPY("_npi_gumbel", place_attrs, "Numbers drawn from a Gumbel distribution.", INPUTS2, SIZED, NOISY,
          TYPES_PAIR_F32),
    NUMPY("_npi_logistic", place_attrs, "Numbers drawn from a logistic distribution.", INPUTS2, SIZED,
          NOISY, TYPES_PAIR_F32),
    NUMPY("_npi_exponential", scale_attrs, "Numbers drawn from an exponential distribution.",
          INPUTS1, SIZED, NOISY, TYPES_F32),
    NUMPY("_npi_rayleigh", scale_attrs, "Numbers drawn from a Rayleigh distribution.", INPUTS1, SIZED,
          NOISY, TYPES_F32),
    NUMPY("_npi_pareto", power_attrs, "Numbers drawn from a Pareto distribution, less 1.", INPUTS1, SIZED,
          NOISY, TYPES_F32),
    NUMPY("_npi_weibull", power_attrs, "Numbers drawn from a Weibull distribution.", INPUTS1, SIZED,
          NOISY, TYPES_F32),
    NUMPY("_npi_powerd", TNI_ATTRS(npi_powerd), "Numbers drawn from [0, 1] with a density like a power.",
          INPUTS1, SIZED, PLAIN, .types = "input1:A; output:f32"),
    NUMPY("_npi_bernoulli", TNI_ATTRS(npi_bernoulli), "Ones of given probability, else zeros.", INPUTS1,
          .args = bernoulli_args, .shape = numpy_shape, PLAIN, .types = "input1:A; output:attr(dtype)"),
    NULL,
};
/* clang-format on */

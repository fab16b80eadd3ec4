/*
 * Operators that take a draw: uniform and normal numbers, and dropout. The bounds are run-time attributes;
 * element k uses counter k of the draw (tenon/plugin/random.h).
 */
#include "tenon/plugin/op/random.h"
#include "op/infer_help.h"
#include "op/shape_attr.h"

static const tn_attr_def uniform_attrs[] = TN_ATTR_TABLE(random_uniform);
static const tn_attr_def normal_attrs[] = TN_ATTR_TABLE(random_normal);
static const tn_attr_def dropout_attrs[] = TN_ATTR_TABLE(Dropout);

_Static_assert((int)TN_random_normal_shape == TN_random_uniform_shape &&
                   (int)TN_random_normal_dtype == TN_random_uniform_dtype,
               "uniform and normal numbers have shape and dtype at the same places");

static tn_status random_shape(tn_infer *i)
{
    const tn_shape one = {.ndim = 1, .dim = {1}};
    tn_status st = tni_shape_attr(i, TN_random_uniform_shape, i->out_shape[0]);

    return st || i->out_shape[0]->ndim >= 0 ? st : tni_shape_assign(i, i->out_shape[0], &one);
}

static tn_status random_dtype(tn_infer *i)
{
    const int32_t asked = (int32_t)tni_attr_int(i->attrs, TN_random_uniform_dtype);
    tn_status st = tni_dtype_asked(i, &i->out_dtype[0], asked);

    if (!st && !tni_dtype_is_float(i->out_dtype[0]))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type", tni_dtype_name(i->out_dtype[0]));
    return st;
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

static tn_status dropout_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_output(g, 1)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_Dropout", 2, in) : TN_OK;
}

static tn_status backward_dropout_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : mask_unify(i, i->in_shape[0], i->in_shape[1]);
}

/* Linear in dy; the mask depends on nothing. */
static tn_status backward_dropout_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_Dropout", 2, in) : TN_OK;
}

static const tn_op uniform =
    TNI_OP("_random_uniform", .doc = "Numbers drawn evenly from [low, high).",
           .aliases = TNI_NAMES("random_uniform", "uniform"), .attrs = uniform_attrs, .inputs = NULL,
           .outputs = TNI_NAMES("output"), .effects = TN_EFFECT_RANDOM, .shape = random_shape,
           .dtype = random_dtype);

static const tn_op normal = TNI_OP("_random_normal", .doc = "Numbers drawn from a normal distribution.",
                                   .aliases = TNI_NAMES("random_normal", "normal"), .attrs = normal_attrs,
                                   .inputs = NULL, .outputs = TNI_NAMES("output"),
                                   .effects = TN_EFFECT_RANDOM, .shape = random_shape, .dtype = random_dtype);

static const tn_op dropout = TNI_OP(
    "Dropout", .doc = "Sets a random share `p` of the elements to zero and scales the others by 1 / (1 - p).",
    .aliases = TNI_NAMES("_npx_dropout"), .attrs = dropout_attrs, .inputs = TNI_NAMES("data"),
    .outputs = TNI_NAMES("output", "mask"), .visible = 1, .effects = TN_EFFECT_RANDOM, .shape = dropout_shape,
    .types = "T:float", .gradient = dropout_grad);

static const tn_op backward_dropout =
    TNI_OP("_backward_Dropout", .doc = "Gradient of Dropout.", .attrs = dropout_attrs,
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "mask"), .outputs = TNI_NAMES("dx"),
           .shape = backward_dropout_shape, .types = "T:float", .gradient = backward_dropout_grad);

const tn_op *const tni_family_random[] = {&uniform, &normal, &dropout, &backward_dropout, NULL};

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

#define DRAW(id, name_, doc_, attrs_, ...)                                                                   \
    static const tn_op id =                                                                                  \
        TNI_OP(name_, .doc = doc_, .aliases = TNI_NAMES(__VA_ARGS__), .attrs = attrs_,                       \
               .outputs = TNI_NAMES("output"), .effects = TN_EFFECT_RANDOM, .shape = random_shape,           \
               .types = "output:attr(dtype,or(f32)); output:float")

DRAW(uniform, "_random_uniform", "Numbers drawn evenly from [low, high).", uniform_attrs, "random_uniform",
     "uniform");
DRAW(normal, "_random_normal", "Numbers drawn from a normal distribution.", normal_attrs, "random_normal",
     "normal");

/* Linear in dy; the mask depends on nothing. */
static const tn_op dropout = TNI_OP(
    "Dropout", .doc = "Sets a random share `p` of the elements to zero and scales the others by 1 / (1 - p).",
    .aliases = TNI_NAMES("_npx_dropout"), .attrs = dropout_attrs, .inputs = TNI_NAMES("data"),
    .outputs = TNI_NAMES("output", "mask"), .visible = 1, .effects = TN_EFFECT_RANDOM, .shape = dropout_shape,
    .types = "T:float", .gradients = "own: dy mask -> data ; dy = _backward_Dropout!(h, mask)");

const tn_op *const tni_family_random[] = {&uniform, &normal, &dropout, NULL};

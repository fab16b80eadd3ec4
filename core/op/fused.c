/*
 * Operators that only the passes of room compile make: layers with what follows them in one kernel, the
 * folding of BatchNorm's statistics into a layer's parameters, and a change of memory order. They have no
 * gradient, and no call, symbol or file can name them (TN_OP_INTERNAL). Attributes of the layers stand first
 * and keep their indices.
 */
#include "op/layers.h"

/* What follows a layer: an addend, then a function. a_min, a_max: limits of clip; slope: of leaky below 0. */
#define FOLLOWING_ATTRS(PREFIX)                                                                              \
    [TN_##PREFIX##_WITH_SUM] = TN_ATTR_BOOL("with_sum", "0", "the last input is added to the output"),       \
    [TN_##PREFIX##_ACT_TYPE] =                                                                               \
        TN_ATTR_CHOICE("act_type", "None", "None|relu|sigmoid|tanh|softrelu|clip|leaky",                     \
                       "the function of what came of that"),                                                 \
    [TN_##PREFIX##_A_MIN] = TN_ATTR_FLOAT("a_min", "0", "clip: lower limit"),                                \
    [TN_##PREFIX##_A_MAX] = TN_ATTR_FLOAT("a_max", "0", "clip: upper limit"),                                \
    [TN_##PREFIX##_SLOPE] = TN_ATTR_FLOAT("slope", "0.25", "leaky: slope below 0")

static const tn_attr_def conv_attrs[] = {TNI_CONVOLUTION_ATTRS, FOLLOWING_ATTRS(FUSED_CONV), TN_ATTR_END};
static const tn_attr_def dense_attrs[] = {TNI_DENSE_ATTRS, FOLLOWING_ATTRS(FUSED_DENSE), TN_ATTR_END};

static const char *const layer_names[] = {"data", "weight", "bias", "addend", NULL};
static const char *const no_bias_names[] = {"data", "weight", "addend", NULL};
static const char *const output_names[] = {"output", NULL};

/* ---- layers ------------------------------------------------------------------------------------------ */

static void layer_args(tn_infer *i, bool no_bias, bool with_sum)
{
    i->in_count = 2u + !no_bias + with_sum;
    i->in_names = no_bias ? no_bias_names : layer_names;
}

/* The addend, where there is one, has the output's shape; and back. */
static tn_status layer_shape(tn_infer *i, tn_status (*of_layer)(tn_infer *), bool with_sum)
{
    tn_shape *addend = i->in_shape[i->in_count - 1];
    tn_status st;

    if (with_sum && (st = tn_shape_unify(i, i->out_shape[0], addend)))
        return st;
    st = of_layer(i);
    return st || !with_sum ? st : tn_shape_unify(i, i->out_shape[0], addend);
}

static tn_status conv_args(tn_infer *i)
{
    layer_args(i, tni_attr_bool(i->attrs, TN_FUSED_CONV_NO_BIAS),
               tni_attr_bool(i->attrs, TN_FUSED_CONV_WITH_SUM));
    return TN_OK;
}

static tn_status conv_shape(tn_infer *i)
{
    return layer_shape(i, tni_convolution_shape, tni_attr_bool(i->attrs, TN_FUSED_CONV_WITH_SUM));
}

static tn_status dense_args(tn_infer *i)
{
    layer_args(i, tni_attr_bool(i->attrs, TN_FUSED_DENSE_NO_BIAS),
               tni_attr_bool(i->attrs, TN_FUSED_DENSE_WITH_SUM));
    return TN_OK;
}

static tn_status dense_shape(tn_infer *i)
{
    return layer_shape(i, tni_dense_shape, tni_attr_bool(i->attrs, TN_FUSED_DENSE_WITH_SUM));
}

/* ---- folding of BatchNorm ---------------------------------------------------------------------------- */

static const tn_attr_def fold_weight_attrs[] = {
    [TN_FOLD_WEIGHT_EPS] =
        TN_ATTR_FLOAT_IN("eps", "0.0010000000474974513", 0, 1e300, "added to the variance"),
    [TN_FOLD_WEIGHT_FIX_GAMMA] = TN_ATTR_BOOL("fix_gamma", "1", "gamma counts as 1"),
    TN_ATTR_END,
};

static const tn_attr_def fold_bias_attrs[] = {
    [TN_FOLD_BIAS_EPS] = TN_ATTR_FLOAT_IN("eps", "0.0010000000474974513", 0, 1e300, "added to the variance"),
    [TN_FOLD_BIAS_FIX_GAMMA] = TN_ATTR_BOOL("fix_gamma", "1", "gamma counts as 1"),
    [TN_FOLD_BIAS_NO_BIAS] = TN_ATTR_BOOL("no_bias", "0", "the layer has no bias"),
    [TN_FOLD_BIAS_DTYPE] = TN_ATTR_DTYPE("dtype", "None", "of the output; None: that of gamma"),
    TN_ATTR_END,
};

/* Gamma and variance have one element for each output channel, the weight's first dimension. */
static tn_status fold_weight_shape(tn_infer *i)
{
    tn_shape *weight = i->in_shape[0];
    tn_shape c = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};
    tn_status st = tn_shape_unify(i, weight, i->out_shape[0]);

    if (!st && weight->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "the weight has no dimensions, at least 1 is needed");
    if (!st && weight->ndim > 0)
        c.dim[0] = weight->dim[0];
    for (int pass = 0; pass < 2; pass++) /* the second carries back what later ones knew */
        for (uint32_t k = 1; !st && k < 3; k++)
            st = tn_shape_unify(i, &c, i->in_shape[k]);
    if (!st && weight->ndim > 0)
        weight->dim[0] = i->out_shape[0]->dim[0] = c.dim[0];
    return st;
}

/* Statistics are float32 where `data` is a short type, as BatchNorm's are. */
static tn_status stats_dtype(tn_infer *i, int32_t data, uint32_t first, uint32_t count)
{
    tn_status st = TN_OK;

    if (data >= 0 && !tni_dtype_is_float(data))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type, cast it first",
                              tni_dtype_name(data));
    for (uint32_t k = first; !st && data >= 0 && k < first + count; k++)
        st = tni_dtype_assign(i, &i->in_dtype[k], data == TN_F64 ? TN_F64 : TN_F32);
    return st;
}

static tn_status fold_weight_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);

    return st ? st : stats_dtype(i, i->in_dtype[0], 1, 2);
}

static tn_status fold_bias_args(tn_infer *i)
{
    i->in_count = tni_attr_bool(i->attrs, TN_FOLD_BIAS_NO_BIAS) ? 4 : 5;
    return TN_OK;
}

static tn_status fold_bias_shape(tn_infer *i)
{
    tn_shape c = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};
    tn_status st = TN_OK;

    for (int pass = 0; pass < 2; pass++) { /* the second carries back what later ones knew */
        for (uint32_t k = 0; !st && k < i->in_count; k++)
            st = tn_shape_unify(i, &c, i->in_shape[k]);
        st = st ? st : tn_shape_unify(i, &c, i->out_shape[0]);
    }
    return st;
}

static tn_status fold_bias_dtype(tn_infer *i)
{
    const int32_t asked = (int32_t)tni_attr_int(i->attrs, TN_FOLD_BIAS_DTYPE);
    int32_t *bias = i->in_count > 4 ? &i->in_dtype[4] : &i->out_dtype[0];
    tn_status st;

    if ((st = tni_dtype_assign(i, bias, asked >= 0 || *bias >= 0 ? asked : i->in_dtype[0])) ||
        (st = tni_dtype_unify(i, bias, &i->out_dtype[0])))
        return st;
    return stats_dtype(i, *bias, 0, 4);
}

/* ---- the family -------------------------------------------------------------------------------------- */

static const tn_op reorder = TNI_OP(
    "_reorder", .doc = "The same elements in another order of memory: that of the output's layout.",
    .inputs = TNI_NAMES("data"), .outputs = output_names, .flags = TN_OP_INTERNAL, .shape = tni_shape_same);

static const tn_op fused_conv =
    TNI_OP("_fused_conv", .doc = "Convolution, then an addend, then a function of each element.",
           .attrs = conv_attrs, .inputs = layer_names, .outputs = output_names, .flags = TN_OP_INTERNAL,
           .args = conv_args, .shape = conv_shape, .dtype = tni_dtype_same_float);

static const tn_op fused_dense =
    TNI_OP("_fused_dense", .doc = "FullyConnected, then an addend, then a function of each element.",
           .attrs = dense_attrs, .inputs = layer_names, .outputs = output_names, .flags = TN_OP_INTERNAL,
           .args = dense_args, .shape = dense_shape, .dtype = tni_dtype_same_float);

static const tn_op fold_weight =
    TNI_OP("_fold_weight", .doc = "A layer's weight times gamma / sqrt(var + eps) of each output channel.",
           .attrs = fold_weight_attrs, .inputs = TNI_NAMES("weight", "gamma", "var"), .outputs = output_names,
           .flags = TN_OP_INTERNAL, .shape = fold_weight_shape, .dtype = fold_weight_dtype);

static const tn_op fold_bias =
    TNI_OP("_fold_bias",
           .doc = "beta + (bias - mean) * gamma / sqrt(var + eps): a layer's bias with BatchNorm in it.",
           .attrs = fold_bias_attrs, .inputs = TNI_NAMES("gamma", "beta", "mean", "var", "bias"),
           .outputs = output_names, .flags = TN_OP_INTERNAL, .args = fold_bias_args, .shape = fold_bias_shape,
           .dtype = fold_bias_dtype);

const tn_op *const tni_family_fused[] = {&reorder, &fused_conv, &fused_dense, &fold_weight, &fold_bias, NULL};

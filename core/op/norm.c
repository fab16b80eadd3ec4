/*
 * BatchNorm and LayerNorm. Both leave what their backward needs as outputs that users see only if they ask:
 * the mean, and 1 / sqrt(var + eps) (BatchNorm) or sqrt(var + eps) (LayerNorm).
 *
 * BatchNorm's running statistics are mutated inputs. They move in the forward pass of training:
 * moving = moving * momentum + batch * (1 - momentum), with the biased variance. `fix_gamma` takes gamma as 1
 * and gives it a gradient of 0.
 */
#include "op/infer_help.h"
#include "tenon/plugin/indices.h"

static const tn_attr_def batch_norm_attrs[] = {
    [TN_BATCHNORM_EPS] = TN_ATTR_FLOAT_IN("eps", "0.0010000000474974513", 0, 1e300, "added to the variance"),
    [TN_BATCHNORM_MOMENTUM] =
        TN_ATTR_FLOAT("momentum", "0.899999976", "how much of the running statistics is kept"),
    [TN_BATCHNORM_FIX_GAMMA] = TN_ATTR_BOOL("fix_gamma", "1", "gamma counts as 1"),
    [TN_BATCHNORM_USE_GLOBAL_STATS] =
        TN_ATTR_BOOL("use_global_stats", "0", "running statistics in training, too"),
    [TN_BATCHNORM_OUTPUT_MEAN_VAR] =
        TN_ATTR_BOOL("output_mean_var", "0", "mean and 1 / sqrt(var + eps) are outputs"),
    [TN_BATCHNORM_AXIS] = TN_ATTR_INT("axis", "1", "of the channels"),
    [TN_BATCHNORM_CUDNN_OFF] = TN_ATTR_BOOL("cudnn_off", "0", "advice to cuDNN"),
    [TN_BATCHNORM_MIN_CALIB_RANGE] = TN_ATTR_OPT_FLOAT("min_calib_range", "None", "for quantization"),
    [TN_BATCHNORM_MAX_CALIB_RANGE] = TN_ATTR_OPT_FLOAT("max_calib_range", "None", "for quantization"),
    TN_ATTR_END,
};

static const tn_attr_def layer_norm_attrs[] = {
    [TN_LAYERNORM_AXIS] = TN_ATTR_INT("axis", "-1", "along which is normalised"),
    [TN_LAYERNORM_EPS] = TN_ATTR_FLOAT_IN("eps", "9.99999975e-06", 0, 1e300, "added to the variance"),
    [TN_LAYERNORM_OUTPUT_MEAN_VAR] =
        TN_ATTR_BOOL("output_mean_var", "0", "mean and sqrt(var + eps) are outputs"),
    TN_ATTR_END,
};

/* Says that each of `count` shapes is (C), C being the data's extent along `axis`; and back. */
static tn_status channels_unify(tn_infer *i, tn_shape *data, int64_t asked, uint32_t count,
                                tn_shape *const *shapes)
{
    tn_shape c = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};
    int32_t axis = 0;
    tn_status st = TN_OK;

    if (data->ndim >= 0) {
        if ((st = tni_axis(i, asked, data->ndim, &axis)))
            return st;
        c.dim[0] = data->dim[axis];
    }
    for (int pass = 0; pass < 2; pass++) /* the second carries back what later ones knew */
        for (uint32_t k = 0; !st && k < count; k++)
            st = tn_shape_unify(i, &c, shapes[k]);
    if (!st && data->ndim >= 0)
        data->dim[axis] = c.dim[0];
    return st;
}

/* Statistics are float32 where the data is a short type. */
static tn_status norm_dtype(tn_infer *i, int32_t *data, uint32_t count, int32_t *const *stats)
{
    tn_status st = TN_OK;

    if (*data >= 0 && !tni_dtype_is_float(*data))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type, cast it first",
                              tni_dtype_name(*data));
    for (uint32_t k = 0; !st && k < count; k++) {
        if (*data >= 0)
            st = tni_dtype_assign(i, stats[k], *data == TN_F64 ? TN_F64 : TN_F32);
        else if (*stats[k] == TN_F64)
            *data = TN_F64;
    }
    return st;
}

static tn_status batch_norm_args(tn_infer *i)
{
    i->visible_count = tni_attr_bool(i->attrs, TN_BATCHNORM_OUTPUT_MEAN_VAR) ? 3 : 1;
    return TN_OK;
}

static tn_status batch_norm_shape(tn_infer *i)
{
    tn_shape *const stats[] = {i->in_shape[1], i->in_shape[2],  i->in_shape[3],
                               i->in_shape[4], i->out_shape[1], i->out_shape[2]};
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : channels_unify(i, i->in_shape[0], tni_attr_int(i->attrs, TN_BATCHNORM_AXIS), 6, stats);
}

static tn_status batch_norm_dtype(tn_infer *i)
{
    int32_t *const stats[] = {&i->in_dtype[1], &i->in_dtype[2],  &i->in_dtype[3],
                              &i->in_dtype[4], &i->out_dtype[1], &i->out_dtype[2]};
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);

    return st || (st = norm_dtype(i, &i->in_dtype[0], 6, stats))
               ? st
               : tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
}

static tn_status batch_norm_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1), tn_grad_output(g, 1),
                          tn_grad_output(g, 2)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_BatchNorm", 5, in, 0, 3) : TN_OK;
}

static tn_status backward_batch_norm_shape(tn_infer *i)
{
    tn_shape *const stats[] = {i->in_shape[2], i->in_shape[3], i->in_shape[4], i->out_shape[1],
                               i->out_shape[2]};
    tn_status st;

    if ((st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1])) ||
        (st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0])))
        return st;
    return channels_unify(i, i->in_shape[1], tni_attr_int(i->attrs, TN_BATCHNORM_AXIS), 5, stats);
}

/* Of both backward operators: dy, data and dx; gamma, two statistics, dgamma, dbeta. */
static tn_status backward_norm_dtype(tn_infer *i)
{
    int32_t *const stats[] = {&i->in_dtype[2], &i->in_dtype[3], &i->in_dtype[4], &i->out_dtype[1],
                              &i->out_dtype[2]};
    tn_status st;

    if ((st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1])) ||
        (st = tni_dtype_unify(i, &i->in_dtype[1], &i->out_dtype[0])))
        return st;
    return norm_dtype(i, &i->in_dtype[1], 5, stats);
}

/* ---- LayerNorm --------------------------------------------------------------------------------------- */

static tn_status layer_norm_args(tn_infer *i)
{
    i->visible_count = tni_attr_bool(i->attrs, TN_LAYERNORM_OUTPUT_MEAN_VAR) ? 3 : 1;
    return TN_OK;
}

/* Mean and deviation have extent 1 along the axis. */
static tn_status rows_unify(tn_infer *i, const tn_shape *data, tn_shape *mean, tn_shape *deviation)
{
    tn_shape s = *data;
    int32_t axis = 0;
    tn_status st;

    if (data->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_LAYERNORM_AXIS), data->ndim, &axis)))
        return st;
    s.dim[axis] = 1;
    return (st = tni_shape_assign(i, mean, &s)) ? st : tni_shape_assign(i, deviation, &s);
}

static tn_status layer_norm_shape(tn_infer *i)
{
    tn_shape *const params[] = {i->in_shape[1], i->in_shape[2]};
    tn_status st;

    if ((st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0])) ||
        (st = channels_unify(i, i->in_shape[0], tni_attr_int(i->attrs, TN_LAYERNORM_AXIS), 2, params)) ||
        (st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0])))
        return st;
    return rows_unify(i, i->in_shape[0], i->out_shape[1], i->out_shape[2]);
}

static tn_status layer_norm_dtype(tn_infer *i)
{
    int32_t *const stats[] = {&i->in_dtype[1], &i->in_dtype[2], &i->out_dtype[1], &i->out_dtype[2]};
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);

    return st || (st = norm_dtype(i, &i->in_dtype[0], 4, stats))
               ? st
               : tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
}

static tn_status layer_norm_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1), tn_grad_output(g, 1),
                          tn_grad_output(g, 2)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_LayerNorm", 5, in, 0, 3) : TN_OK;
}

static tn_status backward_layer_norm_shape(tn_infer *i)
{
    tn_shape *const params[] = {i->in_shape[2], i->out_shape[1], i->out_shape[2]};
    tn_status st;

    if ((st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1])) ||
        (st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0])) ||
        (st = channels_unify(i, i->in_shape[1], tni_attr_int(i->attrs, TN_LAYERNORM_AXIS), 3, params)))
        return st;
    return rows_unify(i, i->in_shape[1], i->in_shape[3], i->in_shape[4]);
}

static const tn_op batch_norm =
    TNI_OP("BatchNorm",
           .doc = "Normalises each channel over the batch, or by running statistics outside of training.",
           .aliases = TNI_NAMES("_npx_batch_norm"), .attrs = batch_norm_attrs, .mutates = 1u << 3 | 1u << 4,
           .inputs = TNI_NAMES("data", "gamma", "beta", "moving_mean", "moving_var"),
           .outputs = TNI_NAMES("output", "mean", "var"), .visible = 1, .args = batch_norm_args,
           .shape = batch_norm_shape, .dtype = batch_norm_dtype, .gradient = batch_norm_grad);

static const tn_op backward_batch_norm =
    TNI_OP("_backward_BatchNorm", .doc = "Gradients of BatchNorm.", .attrs = batch_norm_attrs,
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "data", "gamma", "mean", "var"),
           .outputs = TNI_NAMES("dx", "dgamma", "dbeta"), .shape = backward_batch_norm_shape,
           .dtype = backward_norm_dtype);

static const tn_op layer_norm =
    TNI_OP("LayerNorm", .doc = "Normalises along one axis.", .aliases = TNI_NAMES("_npx_layer_norm"),
           .attrs = layer_norm_attrs, .inputs = TNI_NAMES("data", "gamma", "beta"),
           .outputs = TNI_NAMES("output", "mean", "std"), .visible = 1, .args = layer_norm_args,
           .shape = layer_norm_shape, .dtype = layer_norm_dtype, .gradient = layer_norm_grad);

static const tn_op backward_layer_norm =
    TNI_OP("_backward_LayerNorm", .doc = "Gradients of LayerNorm.", .attrs = layer_norm_attrs,
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "data", "gamma", "mean", "std"),
           .outputs = TNI_NAMES("dx", "dgamma", "dbeta"), .shape = backward_layer_norm_shape,
           .dtype = backward_norm_dtype);

const tn_op *const tni_family_norm[] = {&batch_norm, &backward_batch_norm, &layer_norm, &backward_layer_norm,
                                        NULL};

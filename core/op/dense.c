/*
 * FullyConnected: y = x · weight' + bias. `flatten`: x is (N, rest taken together), else the last axis is
 * transformed. The weight (num_hidden, inputs) follows from the data, and the data's inputs from the weight.
 */
#include "op/layers.h"

static const tn_attr_def dense_attrs[] = {TNI_DENSE_ATTRS, TN_ATTR_END};

/* Inputs of one row of data; unknown while any of its dimensions is. */
static int64_t row_inputs(const tn_shape *data, bool flatten)
{
    int64_t n = 1;

    if (!flatten)
        return data->dim[data->ndim - 1];
    for (int32_t k = 1; k < data->ndim; k++)
        if (data->dim[k] < 0)
            return TN_DIM_UNKNOWN;
    for (int32_t k = 1; k < data->ndim; k++)
        if (__builtin_mul_overflow(n, data->dim[k], &n))
            return TN_DIM_UNKNOWN;
    return n;
}

/* The output of known rank of data, and back. */
static tn_status rows_unify(tn_infer *i, tn_shape *data, tn_shape *out, bool flatten)
{
    tn_shape y = {.ndim = 2, .dim = {TN_DIM_UNKNOWN}};
    tn_status st;

    if (!flatten && data->ndim < 0 && out->ndim >= 1) { /* the rank comes from behind */
        data->ndim = out->ndim;
        for (int32_t k = 0; k < out->ndim; k++)
            data->dim[k] = k < out->ndim - 1 ? out->dim[k] : TN_DIM_UNKNOWN;
    }
    if (!flatten && data->ndim < 0)
        return TN_OK;
    if (!flatten)
        y = *data;
    else if (data->ndim >= 1)
        y.dim[0] = data->dim[0];
    y.dim[y.ndim - 1] = tni_attr_int(i->attrs, TN_FULLYCONNECTED_NUM_HIDDEN);
    if ((st = tn_shape_unify(i, out, &y)))
        return st;
    for (int32_t k = 0; k < (flatten ? 1 : data->ndim - 1) && k < data->ndim; k++)
        data->dim[k] = y.dim[k];
    return TN_OK;
}

static tn_status dense_unify(tn_infer *i, tn_shape *data, tn_shape *weight, tn_shape *out)
{
    const bool flatten = tni_attr_bool(i->attrs, TN_FULLYCONNECTED_FLATTEN);
    tn_shape w = {.ndim = 2, .dim = {tni_attr_int(i->attrs, TN_FULLYCONNECTED_NUM_HIDDEN), TN_DIM_UNKNOWN}};
    tn_status st;

    if (data->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "data has no dimensions, at least 1 is needed");
    if ((st = rows_unify(i, data, out, flatten)))
        return st;
    if (data->ndim >= 1)
        w.dim[1] = row_inputs(data, flatten);
    if ((st = tn_shape_unify(i, &w, weight)))
        return data->ndim >= 1 && weight->ndim == 2
                   ? tni_infer_fail(i, TN_E_SHAPE,
                                    "weight (%lld, %lld), but data gives rows of %lld for num_hidden %lld",
                                    (long long)weight->dim[0], (long long)weight->dim[1],
                                    (long long)row_inputs(data, flatten), (long long)w.dim[0])
                   : st;
    *weight = w;
    if (data->ndim == 2 || (!flatten && data->ndim >= 1))
        data->dim[data->ndim - 1] = w.dim[1];
    return TN_OK;
}

static tn_status bias_unify(tn_infer *i, tn_shape *bias)
{
    const tn_shape b = {.ndim = 1, .dim = {tni_attr_int(i->attrs, TN_FULLYCONNECTED_NUM_HIDDEN)}};

    return tni_shape_assign(i, bias, &b);
}

static tn_status dense_args(tn_infer *i)
{
    i->in_count = tni_attr_bool(i->attrs, TN_FULLYCONNECTED_NO_BIAS) ? 2 : 3;
    return TN_OK;
}

tn_status tni_dense_shape(tn_infer *i)
{
    tn_status st = dense_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);

    return st || tni_attr_bool(i->attrs, TN_FULLYCONNECTED_NO_BIAS) ? st : bias_unify(i, i->in_shape[2]);
}

static tn_status dense_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_FullyConnected", 3, in, 0, g->in_count) : TN_OK;
}

static tn_status backward_dense_args(tn_infer *i)
{
    i->out_count = tni_attr_bool(i->attrs, TN_FULLYCONNECTED_NO_BIAS) ? 2 : 3;
    return TN_OK;
}

static tn_status backward_dense_shape(tn_infer *i)
{
    tn_status st;

    if ((st = dense_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0])) ||
        (st = tn_shape_unify(i, i->out_shape[0], i->in_shape[1])) ||
        (st = tn_shape_unify(i, i->out_shape[1], i->in_shape[2])))
        return st;
    return i->out_count < 3 ? TN_OK : bias_unify(i, i->out_shape[2]);
}

static const tn_op fully_connected =
    TNI_OP("FullyConnected", .doc = "A dense layer: data · weight' + bias.",
           .aliases = TNI_NAMES("_npx_fully_connected", "_sparse_FullyConnected"), .attrs = dense_attrs,
           .inputs = TNI_NAMES("data", "weight", "bias"), .outputs = TNI_NAMES("output"), .args = dense_args,
           .shape = tni_dense_shape, .dtype = tni_dtype_same_float, .gradient = dense_grad);

static const tn_op backward_fully_connected =
    TNI_OP("_backward_FullyConnected", .doc = "Gradients of FullyConnected.", .attrs = dense_attrs,
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "data", "weight"),
           .outputs = TNI_NAMES("dx", "dw", "db"), .args = backward_dense_args, .shape = backward_dense_shape,
           .dtype = tni_dtype_same_float, .gradient = tni_grad_of_product);

const tn_op *const tni_family_dense[] = {&fully_connected, &backward_fully_connected, NULL};

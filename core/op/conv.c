/*
 * Convolution, 1-D to 3-D: data (N, C, space...) or (N, space..., C), weight (F, C/groups, kernel...) or
 * (F, kernel..., C/groups), bias (F).
 *
 * Shapes flow both ways: the data's channels give the weight's and the other way round, so that layers may
 * leave either open. The backward operator has the same attributes in the same order.
 */
#include "op/layers.h"

static const tn_attr_def convolution_attrs[] = {TNI_CONVOLUTION_ATTRS, TN_ATTR_END};

static bool channels_last(const tn_value *attrs)
{
    const int64_t layout = tni_attr_int(attrs, TN_CONVOLUTION_LAYOUT);

    return layout == TN_CONVOLUTION_LAYOUT_NHWC || layout == TN_CONVOLUTION_LAYOUT_NDHWC;
}

/* What can be said without a shape: lengths of the tuples, layout, groups. */
static tn_status convolution_check(tn_infer *i, int32_t *space)
{
    static const int8_t dims[] = {0, 3, 2, 1, 3, 2}; /* of each layout, 0: any */
    static const uint32_t tuples[] = {TN_CONVOLUTION_STRIDE, TN_CONVOLUTION_DILATE, TN_CONVOLUTION_PAD};
    const int64_t n = tni_tuple_count(tni_attr_tuple(i->attrs, TN_CONVOLUTION_KERNEL));
    const int64_t layout = tni_attr_int(i->attrs, TN_CONVOLUTION_LAYOUT);
    const int64_t filters = tni_attr_int(i->attrs, TN_CONVOLUTION_NUM_FILTER);
    const int64_t groups = tni_attr_int(i->attrs, TN_CONVOLUTION_NUM_GROUP);

    if (n < 1 || n > 3)
        return tni_infer_fail(i, TN_E_ATTR, "kernel has %lld dimensions, 1 to 3 are allowed", (long long)n);
    if (dims[layout] && dims[layout] != n)
        return tni_infer_fail(i, TN_E_ATTR, "the layout is for %d dimensions of space, kernel has %lld",
                              dims[layout], (long long)n);
    for (size_t k = 0; k < sizeof tuples / sizeof *tuples; k++) {
        const int64_t count = tni_tuple_count(tni_attr_tuple(i->attrs, tuples[k]));

        if (count && count != n)
            return tni_infer_fail(i, TN_E_ATTR, "%s has %lld dimensions, kernel has %lld",
                                  convolution_attrs[tuples[k]].name, (long long)count, (long long)n);
    }
    if (filters % groups)
        return tni_infer_fail(i, TN_E_ATTR, "num_filter %lld is not a multiple of num_group %lld",
                              (long long)filters, (long long)groups);
    *space = (int32_t)n;
    return TN_OK;
}

/* Channels of `data` and of one group in `weight` say the same. */
static tn_status channels_unify(tn_infer *i, int64_t *data, int64_t *weight)
{
    const int64_t groups = tni_attr_int(i->attrs, TN_CONVOLUTION_NUM_GROUP);

    if (*data >= 0 && *data % groups)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld channels are not a multiple of num_group %lld",
                              (long long)*data, (long long)groups);
    if (*data >= 0 && *weight < 0)
        *weight = *data / groups;
    else if (*data < 0 && *weight >= 0 && __builtin_mul_overflow(*weight, groups, data))
        return tni_infer_fail(i, TN_E_SHAPE, "the weight has too many channels");
    else if (*data >= 0 && *data / groups != *weight)
        return tni_infer_fail(i, TN_E_SHAPE,
                              "data has %lld channels in %lld groups, the weight has %lld of a group",
                              (long long)*data, (long long)groups, (long long)*weight);
    return TN_OK;
}

/* The output's extent along each dimension of space. */
static tn_status spaces_out(tn_infer *i, int32_t space, const int64_t *in, int64_t *out)
{
    for (int32_t k = 0; k < space; k++) {
        const int64_t kernel = tni_tuple_item(tni_attr_tuple(i->attrs, TN_CONVOLUTION_KERNEL), k, 1);
        const int64_t pad = tni_tuple_item(tni_attr_tuple(i->attrs, TN_CONVOLUTION_PAD), k, 0);
        const int64_t dilate = tni_tuple_item(tni_attr_tuple(i->attrs, TN_CONVOLUTION_DILATE), k, 1);

        out[k] = tni_window_size(in[k], kernel,
                                 tni_tuple_item(tni_attr_tuple(i->attrs, TN_CONVOLUTION_STRIDE), k, 1), pad,
                                 dilate);
        if (in[k] >= 0 && out[k] < 0)
            return tni_infer_fail(
                i, TN_E_SHAPE,
                "kernel %lld with dilate %lld is larger than the input, %lld with 2 * pad %lld",
                (long long)kernel, (long long)dilate, (long long)in[k], (long long)pad);
    }
    return TN_OK;
}

/* Data, weight and output, wherever they stand; bias apart. */
static tn_status convolution_unify(tn_infer *i, tn_shape *data, tn_shape *weight, tn_shape *out)
{
    const bool last = channels_last(i->attrs);
    tn_shape d = {0}, w = {0}, y = {0};
    int32_t space = 0;
    tn_status st;

    if ((st = convolution_check(i, &space)))
        return st;
    d.ndim = w.ndim = y.ndim = space + 2;
    for (int32_t k = 0; k < space + 2; k++)
        d.dim[k] = w.dim[k] = y.dim[k] = TN_DIM_UNKNOWN;
    w.dim[0] = y.dim[last ? space + 1 : 1] = tni_attr_int(i->attrs, TN_CONVOLUTION_NUM_FILTER);
    for (int32_t k = 0; k < space; k++)
        w.dim[(last ? 1 : 2) + k] = tni_tuple_item(tni_attr_tuple(i->attrs, TN_CONVOLUTION_KERNEL), k, 1);
    if ((st = tn_shape_unify(i, &d, data)) || (st = tn_shape_unify(i, &w, weight)) ||
        (st = channels_unify(i, &d.dim[last ? space + 1 : 1], &w.dim[last ? space + 1 : 1])) ||
        (st = spaces_out(i, space, &d.dim[last ? 1 : 2], &y.dim[last ? 1 : 2])) ||
        (st = tn_shape_unify(i, &y, out)) || (st = tni_dim_unify(i, &d.dim[0], &y.dim[0])))
        return st;
    *data = d;
    *weight = w;
    *out = y;
    return TN_OK;
}

static tn_status bias_unify(tn_infer *i, tn_shape *bias)
{
    const tn_shape b = {.ndim = 1, .dim = {tni_attr_int(i->attrs, TN_CONVOLUTION_NUM_FILTER)}};

    return tni_shape_assign(i, bias, &b);
}

static tn_status convolution_args(tn_infer *i)
{
    i->in_count = tni_attr_bool(i->attrs, TN_CONVOLUTION_NO_BIAS) ? 2 : 3;
    return TN_OK;
}

tn_status tni_convolution_shape(tn_infer *i)
{
    tn_status st = convolution_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);

    return st || tni_attr_bool(i->attrs, TN_CONVOLUTION_NO_BIAS) ? st : bias_unify(i, i->in_shape[2]);
}

static tn_status convolution_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit_all(g, "_backward_Convolution", 3, in, 0, g->in_count) : TN_OK;
}

static tn_status backward_convolution_args(tn_infer *i)
{
    i->out_count = tni_attr_bool(i->attrs, TN_CONVOLUTION_NO_BIAS) ? 2 : 3;
    return TN_OK;
}

static tn_status backward_convolution_shape(tn_infer *i)
{
    tn_status st;

    if ((st = convolution_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0])) ||
        (st = tn_shape_unify(i, i->out_shape[0], i->in_shape[1])) ||
        (st = tn_shape_unify(i, i->out_shape[1], i->in_shape[2])))
        return st;
    return i->out_count < 3 ? TN_OK : bias_unify(i, i->out_shape[2]);
}

static const tn_op convolution = TNI_OP(
    "Convolution", .doc = "Slides `num_filter` windows over 1 to 3 dimensions of space.",
    .aliases = TNI_NAMES("_npx_convolution"), .attrs = convolution_attrs,
    .inputs = TNI_NAMES("data", "weight", "bias"), .outputs = TNI_NAMES("output"), .args = convolution_args,
    .shape = tni_convolution_shape, .dtype = tni_dtype_same_float, .gradient = convolution_grad);

static const tn_op backward_convolution = TNI_OP(
    "_backward_Convolution", .doc = "Gradients of Convolution.", .attrs = convolution_attrs,
    .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "data", "weight"),
    .outputs = TNI_NAMES("dx", "dw", "db"), .args = backward_convolution_args,
    .shape = backward_convolution_shape, .dtype = tni_dtype_same_float, .gradient = tni_grad_of_product);

const tn_op *const tni_family_conv[] = {&convolution, &backward_convolution, NULL};

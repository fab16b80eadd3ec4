/*
 * Pooling over 1 to 3 dimensions of space: max, avg, sum, lp.
 *
 * Conventions for the output's extent, from input x, kernel k, pad p, stride s: valid floor((x + 2p - k) / s)
 * + 1, full ceil((x + 2p - k) / s) + 1, same ceil((x + 2p) / s). A global pool takes the whole space as its
 * window. Of a window that reaches behind the input, only what lies inside counts; `count_include_pad` (the
 * default) divides an average by the window's size within the padded input.
 */
#include "tenon/plugin/op/pool.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def pooling_attrs[] = TN_ATTR_TABLE(Pooling);

static tn_status pooling_check(tn_infer *i)
{
    const int64_t n = tni_tuple_count(tni_attr_tuple(i->attrs, TN_Pooling_kernel));
    const int64_t strides = tni_tuple_count(tni_attr_tuple(i->attrs, TN_Pooling_stride));
    const int64_t pads = tni_tuple_count(tni_attr_tuple(i->attrs, TN_Pooling_pad));
    const int64_t *p = tni_attr_opt_int(i->attrs, TN_Pooling_p_value);

    if (tni_attr_int(i->attrs, TN_Pooling_pool_type) == TN_Pooling_pool_type_lp && (!p || *p < 1 || *p > 3))
        return tni_infer_fail(i, TN_E_ATTR, "pool_type lp needs p_value 1, 2 or 3");
    if (tni_attr_bool(i->attrs, TN_Pooling_global_pool))
        return TN_OK;
    if (n < 1 || n > 3)
        return tni_infer_fail(i, TN_E_ATTR, "kernel has %lld dimensions, 1 to 3 are allowed", (long long)n);
    if ((strides && strides != n) || (pads && pads != n))
        return tni_infer_fail(i, TN_E_ATTR, "kernel has %lld dimensions, stride %lld and pad %lld",
                              (long long)n, (long long)strides, (long long)pads);
    for (int64_t k = 0; k < n; k++)
        if (tni_tuple_item(tni_attr_tuple(i->attrs, TN_Pooling_pad), k, 0) >=
            tni_attr_tuple(i->attrs, TN_Pooling_kernel)->item[k])
            return tni_infer_fail(i, TN_E_ATTR, "pad must be smaller than kernel in dimension %lld",
                                  (long long)k);
    return TN_OK;
}

static tn_status window_count(tn_infer *i, int32_t k, int64_t in, int64_t *out)
{
    const int64_t kernel = tni_tuple_item(tni_attr_tuple(i->attrs, TN_Pooling_kernel), k, 1);
    const int64_t stride = tni_tuple_item(tni_attr_tuple(i->attrs, TN_Pooling_stride), k, 1);
    const int64_t pad = tni_tuple_item(tni_attr_tuple(i->attrs, TN_Pooling_pad), k, 0);
    const int64_t convention = tni_attr_int(i->attrs, TN_Pooling_pooling_convention);
    int64_t room;

    *out = in;
    if (in < 0)
        return TN_OK;
    if (__builtin_add_overflow(in, 2 * pad, &room) || room > INT64_MAX / 2)
        return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of space is too large", k);
    if (convention == TN_Pooling_pooling_convention_same) {
        *out = (room + stride - 1) / stride;
        return TN_OK;
    }
    if (room < kernel)
        return tni_infer_fail(i, TN_E_SHAPE, "kernel %lld is larger than the input, %lld with 2 * pad %lld",
                              (long long)kernel, (long long)in, (long long)pad);
    *out = (room - kernel + (convention == TN_Pooling_pooling_convention_full ? stride - 1 : 0)) / stride + 1;
    return TN_OK;
}

static tn_status pooling_unify(tn_infer *i, tn_shape *data, tn_shape *out)
{
    const int64_t layout = tni_attr_int(i->attrs, TN_Pooling_layout);
    const bool last = layout >= TN_Pooling_layout_NDHWC,
               global = tni_attr_bool(i->attrs, TN_Pooling_global_pool);
    const int64_t n = tni_tuple_count(tni_attr_tuple(i->attrs, TN_Pooling_kernel));
    static const int8_t dims[] = {0, 3, 2, 1, 3, 2, 1}; /* of each layout, 0: any */
    tn_shape y;
    tn_status st;

    if ((st = pooling_check(i)))
        return st;
    if (data->ndim < 0)
        return TN_OK;
    if (data->ndim < 3 || data->ndim > 5 || (!global && n != data->ndim - 2) ||
        (dims[layout] && dims[layout] != data->ndim - 2))
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions: kernel or layout is for %lld of space",
                              data->ndim, (long long)(global ? dims[layout] : n));
    y = *data;
    for (int32_t k = 0; k < data->ndim - 2; k++) {
        const int32_t d = (last ? 1 : 2) + k;

        if (global)
            y.dim[d] = 1;
        else if ((st = window_count(i, k, data->dim[d], &y.dim[d])))
            return st;
    }
    if ((st = tn_shape_unify(i, &y, out)) || (st = tni_dim_unify(i, &data->dim[0], &y.dim[0])) ||
        (st = tni_dim_unify(i, &data->dim[last ? data->ndim - 1 : 1], &y.dim[last ? data->ndim - 1 : 1])))
        return st;
    *out = y;
    return TN_OK;
}

static tn_status pooling_shape(tn_infer *i)
{
    return pooling_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status pooling_taken_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    return st ? st : pooling_unify(i, i->in_shape[1], i->out_shape[0]);
}

/* One operation for each element of each window. */
static void pooling_cost(const tn_infer *i, tn_cost *c)
{
    const tn_tuple *kernel = tni_attr_tuple(i->attrs, TN_Pooling_kernel);

    if (tni_attr_bool(i->attrs, TN_Pooling_global_pool)) {
        tni_cost_each_input(i, c);
        return;
    }
    tni_cost_each_output(i, c);
    for (int64_t k = 0; k < tni_tuple_count(kernel); k++)
        c->flops = tn_cost_times(c->flops, (uint64_t)kernel->item[k]);
}

const tn_op *const tni_family_pool[] = {
    /* Sums and averages are linear in dy. So are maxima: what arrives is taken from where they stand. */
    TNI_ROW("Pooling", .doc = "The maximum, average, sum or p-norm of each window.",
            .aliases = TNI_NAMES("_npx_pooling"), .attrs = pooling_attrs, .inputs = TNI_NAMES("data"),
            .outputs = TNI_NAMES("output"), .shape = pooling_shape, .types = "T:float",
            .gradients = "own: [pool_type=lp] dy data output -> data | dy data -> data"
                         " ; [pool_type=max] dy = _backward_pooling_taken!(h, data)"
                         " | [pool_type=avg+sum] dy = Pooling!(h)",
            .cost = pooling_cost),
    /* Its own gradient goes back there. */
    TNI_ROW("_backward_pooling_taken", .doc = "Values from where the maxima of the data's windows stand.",
            .attrs = pooling_attrs, .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("values", "data"),
            .outputs = TNI_NAMES("output"), .shape = pooling_taken_shape, .types = "T:float",
            .gradients = "composed: values = _backward_Pooling!(dy, data)"),
    NULL,
};

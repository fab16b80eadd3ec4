/*
 * Operators that only the passes of room compile make: layers with what follows them in one kernel, the
 * folding of BatchNorm's statistics into a layer's parameters, and a change of memory order. They have no
 * gradient, and no call, symbol or file can name them (TN_OP_INTERNAL). Attributes of the layers stand first
 * and keep their indices.
 */
#include "tenon/plugin/op/fused.h"
#include "op/layers.h"
#include "tenon/plugin/pointwise.h"

static const char *const output_names[] = {"output", NULL};

/* ---- pointwise operators as one ---------------------------------------------------------------------- */

static tn_status pointwise_code(tn_infer *i, tn_point_code *out)
{
    const char *text = tn_value_pointer(i->attrs[TN_fused_pointwise_program]), *at = text;

    if (tn_point_read(text, out, &at))
        return tni_infer_fail(i, TN_E_ATTR, "program cannot be read from byte %d on: \"%.40s\"",
                              (int)(at - text), at);
    if (out->input_count > i->in_count)
        return tni_infer_fail(i, TN_E_ATTR, "program reads input %u, but %u are given", out->input_count - 1,
                              i->in_count);
    return TN_OK;
}

static tn_status pointwise_args(tn_infer *i)
{
    tn_point_code code;
    tn_status st;

    if ((st = pointwise_code(i, &code)))
        return st;
    i->out_count = i->visible_count = code.output_count;
    return TN_OK;
}

/* All outputs have one shape, and inputs broadcast to it. */
static tn_status pointwise_shape(tn_infer *i)
{
    tn_shape all = {.ndim = 0};
    bool known = i->in_count > 0;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->in_count && known && !st; k++) {
        const tn_shape before = all;

        known = tn_shape_known(i->in_shape[k]);
        st = known ? tni_shape_broadcast(i, &before, i->in_shape[k], &all) : TN_OK;
    }
    for (uint32_t o = 0; o < i->out_count && known && !st; o++)
        st = tni_shape_assign(i, i->out_shape[o], &all);
    for (uint32_t o = 1; o < i->out_count && !st; o++)
        st = tn_shape_unify(i, i->out_shape[0], i->out_shape[o]);
    return st;
}

static tn_status pointwise_dtype(tn_infer *i)
{
    tn_point_code code;
    tn_status st = pointwise_code(i, &code);

    if (st)
        return st;
    tn_point_dtypes(&code, i->in_dtype);
    for (uint32_t o = 0; o < i->out_count && o < code.output_count && !st; o++) {
        const int32_t dtype = code.step[code.output[o] - TN_POINT_RESULT].dtype;

        st = dtype < 0 ? TN_OK : tni_dtype_assign(i, &i->out_dtype[o], dtype);
    }
    return st;
}

/* One operation for each step and element. */
static void pointwise_cost(const tn_infer *i, tn_cost *cost)
{
    const char *text = tn_value_pointer(i->attrs[TN_fused_pointwise_program]);
    tn_point_code code;

    if (!tn_point_read(text, &code, NULL) && i->out_count)
        cost->flops = tn_cost_times(code.step_count, (uint64_t)tn_shape_count(i->out_shape[0]));
}

/* ---- the family -------------------------------------------------------------------------------------- */

const tn_op *const tni_family_fused[] = {
    TNI_ROW("_reorder", .doc = "The same elements in another order of memory: that of the output's layout.",
            .inputs = TNI_NAMES("data"), .outputs = output_names, .flags = TN_OP_INTERNAL,
            .shape = tni_shape_same),
    TNI_ROW("_fused_conv", .doc = "Convolution, then an addend, then a function of each element.",
            .attrs = TNI_ATTRS(fused_conv), .flags = TN_OP_INTERNAL,
            .shapes = TNI_CONVOLUTION_INPUTS " addend?with_sum:" TNI_CONVOLUTION_OUTPUT
                                             " -> output:" TNI_CONVOLUTION_OUTPUT TNI_CONVOLUTION_CHECK,
            .types = "T:float", .cost = tni_cost_filters),
    TNI_ROW("_fused_dense", .doc = "FullyConnected, then an addend, then a function of each element.",
            .attrs = TNI_ATTRS(fused_dense), .flags = TN_OP_INTERNAL,
            .shapes = "[flatten] " TNI_DENSE_FLAT_INPUTS
                      " addend?with_sum:(N,num_hidden) -> output:(N,num_hidden) | " TNI_DENSE_INPUTS
                      " addend?with_sum:(B..,num_hidden) -> output:(B..,num_hidden)",
            .types = "T:float", .cost = tni_cost_filters),
    TNI_ROW("_fold_weight", .doc = "A layer's weight times gamma / sqrt(var + eps) of each output channel.",
            .attrs = TNI_ATTRS(fold_weight), .flags = TN_OP_INTERNAL,
            .shapes = "weight:(C,S..) gamma:(C) var:(C) -> output:weight",
            .types = "T:float; gamma,var:stat(T)"),
    TNI_ROW("_fold_bias",
            .doc = "beta + (bias - mean) * gamma / sqrt(var + eps): a layer's bias with BatchNorm in it.",
            .attrs = TNI_ATTRS(fold_bias), .flags = TN_OP_INTERNAL,
            .shapes = "gamma:(C) beta:(C) mean:(C) var:(C) bias?!no_bias:(C) -> output:(C)",
            .types = "T:float; T:attr(dtype,or(gamma)); gamma,beta,mean,var:stat(T)"),
    TNI_ROW("_fused_pointwise", .doc = "Pointwise operators one after the other, element by element.",
            .attrs = TNI_ATTRS(fused_pointwise), .inputs = TNI_NAMES("arg*"), .outputs = TNI_NAMES("out*"),
            .flags = TN_OP_INTERNAL, .args = pointwise_args, .shape = pointwise_shape,
            .dtype = pointwise_dtype, .cost = pointwise_cost),
    NULL,
};

/*
 * Statistics: moments, and NumPy's variance, average, percentile, histogram and bincount. MXNet's
 * variances and
 * percentiles have the gradient 0.
 */
#include "tenon/plugin/op/statistics.h"
#include "op/cost.h"
#include "op/infer_help.h"

/* ---- moments ---------------------------------------------------------------------------------- */

static tn_status moments_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_moments_axes);
    uint32_t mask = 0;
    tn_shape out;
    tn_status st;

    if (!tni_tuple_count(axes))
        return tn_fail(i->err, TN_E_ATTR, "axes is empty; list those to take mean and variance over");
    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = tni_axes_mask(i, axes, false, i->in_shape[0]->ndim, &mask)))
        return st;
    tni_shape_reduce(i->in_shape[0], mask, tni_attr_bool(i->attrs, TN_moments_keepdims),
                     i->flags & TN_INFER_NP_SHAPE, &out);
    st = tn_shape_unify(i, i->out_shape[0], &out);
    return st ? st : tn_shape_unify(i, i->out_shape[1], &out);
}

/* What arrives at an output, over its elements. */
#define OVER(op, e) "_backward_" op "(" e ", ~data, axis=@axes, keepdims=@keepdims)"

/* ---- NumPy's ------------------------------------------------------------------------------------ */

static const tn_attr_def var_attrs[] = TN_ATTR_TABLE(npi_var);

#define SPREAD(name_, doc_)                                                                                  \
    TNI_ROW(name_, .doc = doc_, .attrs = var_attrs, .shapes = "a:(D..) -> out:(over(D..))",                  \
            .types = "out:attr(dtype,T)", .flags = TN_OP_ZERO_GRADIENT, .cost = tni_cost_each_input)

#define Q "a:(D..) q?q_scalar=None:(Q..) -> "

/* The edges are an input, or follow from their number and range. */
static tn_status histogram_args(tn_infer *i)
{
    i->in_count = tni_attr_opt_int(i->attrs, TN_histogram_bin_cnt) ? 1 : 2;
    i->out_count = i->visible_count = 2;
    return TN_OK;
}

static tn_status histogram_shape(tn_infer *i)
{
    const int64_t *bins = tni_attr_opt_int(i->attrs, TN_histogram_bin_cnt);
    const tn_floats *range = (const tn_floats *)tn_value_pointer(i->attrs[TN_histogram_range]);
    tn_shape edges = {.ndim = 1}, counts = {.ndim = 1};
    tn_status st;

    if (bins && (!range || range->count != 2 || !(range->item[0] < range->item[1])))
        return tni_infer_fail(i, TN_E_ATTR, "range must have two numbers, the first below the second");
    edges.dim[0] = bins ? *bins + 1 : TN_DIM_UNKNOWN;
    if ((!bins && (st = tn_shape_unify(i, i->in_shape[1], &edges))) ||
        (st = tn_shape_unify(i, i->out_shape[1], &edges)))
        return st;
    if (edges.dim[0] == 0 || edges.dim[0] == 1)
        return tni_infer_fail(i, TN_E_SHAPE, "there are %lld edges, at least 2 are needed",
                              (long long)edges.dim[0]);
    counts.dim[0] = edges.dim[0] < 0 ? TN_DIM_UNKNOWN : edges.dim[0] - 1;
    return tn_shape_unify(i, i->out_shape[0], &counts);
}

/* clang-format off */
const tn_op *const tni_family_statistics[] = {
    TNI_ROW("moments", .doc = "mean and variance over axes", .attrs = TNI_ATTRS(moments), .types = "T:number",
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("mean", "var"), .shape = moments_shape,
            .gradients = "composed: data = " OVER("mean", "dy") "+" OVER("mean", "dy1") "*2*(data-" OVER(
                "sum", "mean") ")",
            .cost = tni_cost_each_input),
    SPREAD("_npi_var", "variance over axes"),
    SPREAD("_npi_std", "standard deviation over axes"),
    /* The gradient of the sum of the weights is left out, as in MXNet. */
    TNI_ROW(
        "_npi_average", .doc = "average over axes, and the sum of the weights",
        .attrs = TNI_ATTRS(npi_average),
        .shapes = "a:(D..) weights?weighted:(D..)/(line(D..)) -> out:(over(D..)) sum_of_weights~returned:out",
        .gradients = "once: dy a weights out sum_of_weights -> a weights", .cost = tni_cost_each_input),
    TNI_ROW("_npi_percentile", .doc = "the numbers below which so many of 100 elements lie",
            .attrs = TNI_ATTRS(npi_percentile), .flags = TN_OP_ZERO_GRADIENT | TN_OP_CHECKS_VALUES,
            .shapes = "[q_scalar=None] " Q "out:(Q..,over(D..)) | " Q "out:(over(D..))",
            .types = "q:Q:float; out:stat(T)", .cost = tni_cost_each_input),
    TNI_ROW(
        "_histogram", .doc = "how many elements lie in each bin, and the edges of the bins",
        .aliases = TNI_NAMES("_npi_histogram"), .attrs = TNI_ATTRS(histogram), .flags = TN_OP_ZERO_GRADIENT,
        .inputs = TNI_NAMES("data", "bins"), .outputs = TNI_NAMES("bin_cnts", "edges"),
        .args = histogram_args, .shape = histogram_shape, .types = "bin_cnts:i64"),
    TNI_ROW("_npi_bincount", .doc = "how often each number from 0 on is there, or the sum of its weights",
            .attrs = TNI_ATTRS(npi_bincount), .flags = TN_OP_ZERO_GRADIENT | TN_OP_CHECKS_VALUES,
            .shapes = "data:(N) weights?has_weights:(N) -> out:(?)",
            .types = "data:D:integer; weights:W; out:D; [has_weights] out:W"),
    NULL,
};
/* clang-format on */

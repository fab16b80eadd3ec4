/*
 * Reductions over axes. None and () mean all axes; `exclude` all but the given ones. Gradients stretch what
 * arrives over the reduced axes (_backward_sum and its relatives) and multiply by the partial derivative.
 */
#include "tenon/plugin/op/reduce.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def reduce_attrs[] = TN_ATTR_TABLE(reduce);
/* ---- positions -------------------------------------------------------------------------------- */

static const tn_attr_def arg_attrs[] = TN_ATTR_TABLE(argmax);

static tn_status arg_shape(tn_infer *i)
{
    const int64_t *axis = tni_attr_opt_int(i->attrs, TN_argmax_axis);
    const tn_shape *in = i->in_shape[0];
    int32_t a = 0;
    tn_shape out;
    tn_status st;

    if (in->ndim < 0)
        return TN_OK;
    if (axis && (st = tni_axis(i, *axis, in->ndim, &a)))
        return st;
    for (int32_t d = 0; d < in->ndim; d++)
        if (in->dim[d] == 0 && (!axis || d == a))
            return tn_fail(i->err, TN_E_SHAPE, "an empty axis has no largest element");
    tni_shape_reduce(in, axis ? 1u << a : UINT32_MAX, tni_attr_bool(i->attrs, TN_argmax_keepdims),
                     i->flags & TN_INFER_NP_SHAPE, &out);
    return tn_shape_unify(i, i->out_shape[0], &out);
}

/* ---- the family ------------------------------------------------------------------------------- */

#define STRETCHED(e) "_backward_sum!(" e ", ~data)"
#define CAST(e) "_backward_cast(" e ", ~data)"

/* Of what is linear in dy with a mask of x, which is the backward operator of ones. */
#define PICKED(name)                                                                                         \
    "own: dy data output -> data ; dy = sum!(h*_backward_" #name "!(ones_like(~dy), data, output))"

/* Sums along one axis of a csr matrix; dense. */
static tn_status csr_storage(tn_infer *i)
{
    uint32_t mask = 0;

    if (i->in_storage[0] > TN_STORAGE_DENSE &&
        (i->in_storage[0] != TN_STORAGE_CSR ||
         tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_reduce_axis),
                       tni_attr_bool(i->attrs, TN_reduce_exclude), 2, &mask) ||
         (mask != 1 && mask != 2)))
        return tni_infer_fail(i, TN_E_UNSUPPORTED,
                              "input 0 is sparse (%s), only csr is summed, along one axis",
                              tni_storage_type_name(i->in_storage[0]));
    if (i->in_storage[0] == TN_STORAGE_UNKNOWN)
        i->in_storage[0] = TN_STORAGE_DENSE;
    i->out_storage[0] = TN_STORAGE_DENSE;
    return TN_OK;
}

/* Along one axis of a row_sparse matrix: rows where they are kept with size 1, else dense. */
static tn_status rows_storage(tn_infer *i)
{
    uint32_t mask = 0;

    i->out_storage[0] = TN_STORAGE_DENSE;
    if (i->in_storage[0] <= TN_STORAGE_DENSE) {
        i->in_storage[0] = TN_STORAGE_DENSE;
        return TN_OK;
    }
    if (i->in_storage[0] != TN_STORAGE_ROW_SPARSE ||
        tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_reduce_axis), tni_attr_bool(i->attrs, TN_reduce_exclude),
                      2, &mask) ||
        (mask != 1 && mask != 2))
        return tni_infer_fail(i, TN_E_UNSUPPORTED, "only row_sparse is summed, along one axis");
    if (mask == 2 && tni_attr_bool(i->attrs, TN_reduce_keepdims))
        i->out_storage[0] = TN_STORAGE_ROW_SPARSE;
    return TN_OK;
}

#define REDUCE(name_, storage_, gradient, doc_, ...)                                                         \
    TNI_ROW(#name_, .doc = doc_, .aliases = TNI_NAMES(__VA_ARGS__), .attrs = reduce_attrs,                   \
            .shapes = "data:(D..) -> output:(reduce(D..))", .gradients = gradient, .storage = storage_,      \
            .cost = tni_cost_each_input)

/* ---- NumPy's --------------------------------------------------------------------------------- */

static const tn_attr_def np_sum_attrs[] = TN_ATTR_TABLE(np_sum);
static const tn_attr_def np_max_attrs[] = TN_ATTR_TABLE(np_max);
static const tn_attr_def np_all_attrs[] = TN_ATTR_TABLE(np_all);

#define OVER_AXES ":(D..) -> out:(over(D..))"
#define NP_PICKED(name) "own: dy a out -> a ; dy = " #name "!(h*_backward_" #name "!(ones_like(~dy), a, out))"

/* What arrives in the type of `a`, over the elements that were reduced. */
#define NP_OVER(op, e) "_backward_" op "(_backward_cast(" e ", ~a), ~a, axis=@axis, keepdims=@keepdims)"
#define NP_LINEAR(op) "linear: [dtype=None] dy ~a -> a | a = " NP_OVER(op, "dy")

#define NP_REDUCE(name_, input, attrs_, types_, gradient, doc_, ...)                                         \
    TNI_ROW(#name_, .doc = doc_, .aliases = TNI_NAMES(__VA_ARGS__), .attrs = attrs_,                         \
            .shapes = input OVER_AXES, .types = types_, .gradients = gradient,                               \
            .flags = (const char *)(gradient) ? 0 : TN_OP_ZERO_GRADIENT, .cost = tni_cost_each_input)

static tn_status trace_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    tn_shape y;
    int32_t row = 0, column = 0;
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = tni_axis_pair(i, TN_np_trace_axis1, x->ndim, &row, &column)))
        return st;
    tni_shape_reduce(x, 1u << row | 1u << column, false, i->flags & TN_INFER_NP_SHAPE, &y);
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* ---- positions --------------------------------------------------------------------------------- */

#define POSITION(name_, doc_, ...)                                                                           \
    TNI_ROW(name_, .doc = doc_, .flags = TN_OP_ZERO_GRADIENT, .cost = tni_cost_each_input, __VA_ARGS__)
#define ARG                                                                                                  \
    .attrs = arg_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = arg_shape
/* clang-format off */
const tn_op *const tni_family_reduce[] = {
    /* REDUCE(name, storage, gradient, doc, aliases) */
    REDUCE(sum, csr_storage, "linear: dy ~data -> data", "sum", "_sparse_sum", "sum_axis"),
    REDUCE(mean, csr_storage, "linear: dy ~data -> data", "arithmetic mean", "_sparse_mean"),
    REDUCE(prod, NULL, "composed: data = " STRETCHED("dy*output") "/data", "product", NULL),
    REDUCE(nansum, NULL, PICKED(nansum), "sum of what is not NaN", NULL),
    REDUCE(nanprod, NULL, "once: dy data output -> data", "product of what is not NaN", NULL),
    REDUCE(max, NULL, PICKED(max), "largest element; NaN if there is one", "max_axis"),
    REDUCE(min, NULL, PICKED(min), "smallest element; NaN if there is one", "min_axis"),
    REDUCE(_square_sum, rows_storage, "composed: data = " STRETCHED("dy") "*data*2", "sum of squares", NULL),
    /* NP_REDUCE(name, input, attributes, types, gradient, doc, aliases) */
    NP_REDUCE(_np_sum, "a", np_sum_attrs, "out:attr(dtype,sumof(T))", NP_LINEAR("_np_sum"), "sum", NULL),
    NP_REDUCE(_npi_mean, "a", np_sum_attrs, "out:attr(dtype,floatof(T))", NP_LINEAR("_npi_mean"), "mean",
              NULL),
    NP_REDUCE(_np_prod, "a", np_sum_attrs, "out:attr(dtype,sumof(T))",
              "composed: [dtype=None] a = _backward__np_sum!(dy*out, ~a)/a | a = " NP_OVER("_np_sum",
              "dy*out") "/a",
              "product", "_np_product"),
    NP_REDUCE(_np_max, "a", np_max_attrs, NULL, NP_PICKED(_np_max), "largest element", "_np_amax"),
    NP_REDUCE(_np_min, "a", np_max_attrs, NULL, NP_PICKED(_np_min), "smallest element", "_np_amin"),
    NP_REDUCE(_np_all, "data", np_all_attrs, "out:bool", NULL, "true where no element is 0", NULL),
    NP_REDUCE(_np_any, "data", np_all_attrs, "out:bool", NULL, "true where an element is not 0",
              "_np_sometrue"),
/* Of ord 1 dy sign(x), else dy x / y, in the type of x. */
    TNI_ROW("norm", .doc = "norm over axes", .aliases = TNI_NAMES("_sparse_norm"), .attrs = TNI_ATTRS(norm),
            .shapes = "data:(D..) -> output:(reduce(D..))", .types = "output:attr(out_dtype,T)",
            .gradients = "composed: [ord=1&out_dtype=None] data = " STRETCHED(
                "dy") "*sign(data)"
                      " | [ord=1] data = " STRETCHED(
                          CAST("dy")) "*sign(data)"
                                      " | [out_dtype=None] data = " STRETCHED("dy") "*(data/" STRETCHED(
                                          "output") ")"
                                                    " | data = " STRETCHED(CAST("dy")) "*(data/" STRETCHED(
                                                        CAST("output")) ")",
            .cost = tni_cost_each_input),
    POSITION("argmax", "position of the largest element; the first if there are several", ARG),
    POSITION("argmin", "position of the smallest element; the first if there are several", ARG),
    POSITION("argmax_channel", "position of the largest element along axis 1",
             .shapes = "data:(N,C,S..) -> output:(N,S..)"),
    TNI_ROW("_np_trace", .doc = "sum of a diagonal", .attrs = TNI_ATTRS(np_trace),
            .inputs = TNI_NAMES("data"),
            .outputs = TNI_NAMES("out"), .shape = trace_shape, .gradients = "linear: dy ~data -> data"),
    NULL,
};
/* clang-format on */

/*
 * dot and batch_dot. dot sums over the last axis of lhs and the first of rhs; `transpose_a` means the first
 * axis of lhs, `transpose_b` the last of rhs. batch_dot multiplies the matrices that the last two axes hold,
 * for all others.
 */
#include "tenon/plugin/op/matrix.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def dot_attrs[] = TN_ATTR_TABLE(dot);

static tn_status dot_unify(tn_infer *i, tn_shape *a, tn_shape *b, tn_shape *out)
{
    const bool ta = tni_attr_bool(i->attrs, TN_dot_transpose_a),
               tb = tni_attr_bool(i->attrs, TN_dot_transpose_b);
    tn_shape y = {0};
    int32_t in_a, in_b;

    if (a->ndim < 0 || b->ndim < 0)
        return TN_OK;
    if (a->ndim == 0 || b->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "an operand has no dimensions, at least 1 is needed");
    if (a->ndim == 1 && b->ndim == 1 && (ta || tb))
        return tni_infer_fail(i, TN_E_SHAPE, "two vectors cannot be transposed");
    if (a->ndim + b->ndim - 2 > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    in_a = ta ? 0 : a->ndim - 1;
    in_b = tb ? b->ndim - 1 : 0;
    if (a->dim[in_a] >= 0 && b->dim[in_b] >= 0 && a->dim[in_a] != b->dim[in_b])
        return tni_infer_fail(i, TN_E_SHAPE, "the sum runs over %lld elements of lhs and %lld of rhs",
                              (long long)a->dim[in_a], (long long)b->dim[in_b]);
    if (a->dim[in_a] < 0)
        a->dim[in_a] = b->dim[in_b];
    b->dim[in_b] = a->dim[in_a];
    for (int32_t k = 0; k < a->ndim; k++)
        if (k != in_a)
            y.dim[y.ndim++] = a->dim[k];
    for (int32_t k = 0; k < b->ndim; k++)
        if (k != in_b)
            y.dim[y.ndim++] = b->dim[k];
    if (y.ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        y.dim[y.ndim++] = 1;
    return tn_shape_unify(i, out, &y);
}

static tn_status batch_dot_unify(tn_infer *i, tn_shape *a, tn_shape *b, tn_shape *out)
{
    const bool ta = tni_attr_bool(i->attrs, TN_dot_transpose_a),
               tb = tni_attr_bool(i->attrs, TN_dot_transpose_b);
    tn_shape y;
    int32_t n;
    tn_status st;

    if (a->ndim < 0 || b->ndim < 0)
        return TN_OK;
    if (a->ndim < 3 || a->ndim != b->ndim)
        return tni_infer_fail(i, TN_E_SHAPE,
                              "operands of %d and %d dimensions, both need the same number, 3 or more",
                              a->ndim, b->ndim);
    n = a->ndim;
    y.ndim = n;
    for (int32_t k = 0; k < n - 2; k++) {
        if ((st = tni_dim_unify(i, &a->dim[k], &b->dim[k])))
            return st;
        y.dim[k] = a->dim[k];
    }
    if ((st = tni_dim_unify(i, &a->dim[ta ? n - 2 : n - 1], &b->dim[tb ? n - 1 : n - 2])))
        return st;
    y.dim[n - 2] = a->dim[ta ? n - 1 : n - 2];
    y.dim[n - 1] = b->dim[tb ? n - 2 : n - 1];
    return tn_shape_unify(i, out, &y);
}

static tn_status dot_shape(tn_infer *i)
{
    return dot_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status batch_dot_shape(tn_infer *i)
{
    return batch_dot_unify(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status gradients(tn_grad *g, const char *op)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return in[0].node ? tn_grad_emit_all(g, op, 3, in, 0, 2) : TN_OK;
}

static tn_status dot_grad(tn_grad *g)
{
    return gradients(g, "_backward_dot");
}

static tn_status batch_dot_grad(tn_grad *g)
{
    return gradients(g, "_backward_batch_dot");
}

static tn_status operands_back(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : tn_shape_unify(i, i->in_shape[2], i->out_shape[1]);
}

static tn_status backward_dot_shape(tn_infer *i)
{
    tn_status st = operands_back(i);

    return st ? st : dot_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

static tn_status backward_batch_dot_shape(tn_infer *i)
{
    tn_status st = operands_back(i);

    return st ? st : batch_dot_unify(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

/* ---- cost ------------------------------------------------------------------------------------- */

/* `products`: each element of `of` is a sum over the axis of `lhs` that stands `from_end` before its end, or
 * with transpose_a `from_end_a`. */
static void products_cost(const tn_infer *i, tn_cost *c, uint64_t products, const tn_shape *of,
                          const tn_shape *lhs, int32_t from_end_a)
{
    const int32_t back = tni_attr_bool(i->attrs, TN_dot_transpose_a) ? from_end_a : 1;
    const uint64_t summed = lhs->ndim >= back ? (uint64_t)lhs->dim[lhs->ndim - back] : 1;

    tni_cost_products(c, tn_cost_times(products, tn_cost_times(tni_cost_elements(of, 0), summed)));
}

static void dot_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, 1, i->out_shape[0], i->in_shape[0], i->in_shape[0]->ndim);
}

static void dot_back_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, 2, i->in_shape[0], i->in_shape[1], i->in_shape[1]->ndim);
}

static void batch_dot_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, 1, i->out_shape[0], i->in_shape[0], 2);
}

static void batch_dot_back_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, 2, i->in_shape[0], i->in_shape[1], 2);
}

/* ---- the family ------------------------------------------------------------------------------- */

static const tn_op dot =
    TNI_OP("dot", .doc = "Sum of products over the last axis of lhs and the first of rhs.",
           .aliases = TNI_NAMES("_sparse_dot"), .attrs = dot_attrs, .inputs = TNI_NAMES("lhs", "rhs"),
           .outputs = TNI_NAMES("output"), .shape = dot_shape, .types = "T:float", .gradient = dot_grad,
           .cost = dot_cost);

static const tn_op backward_dot = TNI_OP(
    "_backward_dot", .doc = "Gradients of dot.", .attrs = dot_attrs, .flags = TN_OP_BACKWARD,
    .inputs = TNI_NAMES("dy", "lhs", "rhs"), .outputs = TNI_NAMES("dlhs", "drhs"),
    .shape = backward_dot_shape, .types = "T:float", .gradient = tni_grad_of_product, .cost = dot_back_cost);

static const tn_op batch_dot =
    TNI_OP("batch_dot", .doc = "Products of matrices, one for each index of the leading axes.",
           .aliases = TNI_NAMES("_npx_batch_dot"), .attrs = dot_attrs, .inputs = TNI_NAMES("lhs", "rhs"),
           .outputs = TNI_NAMES("output"), .shape = batch_dot_shape, .types = "T:float",
           .gradient = batch_dot_grad, .cost = batch_dot_cost);

static const tn_op backward_batch_dot =
    TNI_OP("_backward_batch_dot", .doc = "Gradients of batch_dot.", .attrs = dot_attrs,
           .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "lhs", "rhs"),
           .outputs = TNI_NAMES("dlhs", "drhs"), .shape = backward_batch_dot_shape, .types = "T:float",
           .gradient = tni_grad_of_product, .cost = batch_dot_back_cost);

const tn_op *const tni_family_matrix[] = {&dot, &backward_dot, &batch_dot, &backward_batch_dot, NULL};

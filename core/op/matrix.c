/*
 * dot and batch_dot. dot sums over the last axis of lhs and the first of rhs; `transpose_a` means the first
 * axis of lhs, `transpose_b` the last of rhs. batch_dot multiplies the matrices that the last two axes hold,
 * for all others.
 */
#include "tenon/plugin/op/matrix.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def dot_attrs[] = TN_ATTR_TABLE(dot);

/* As text it would take two vectors that are to be transposed. */
static tn_status dot_shape(tn_infer *i)
{
    tn_shape *a = i->in_shape[0], *b = i->in_shape[1];
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
    return tni_outputs_assign(i, &y);
}

/* Each element of the output is a sum over the axis of lhs that stands `from_end` before its end, or with
 * transpose_a `from_end_a`. */
static void products_cost(const tn_infer *i, tn_cost *c, int32_t from_end_a)
{
    const tn_shape *lhs = i->in_shape[0];
    const int32_t back = tni_attr_bool(i->attrs, TN_dot_transpose_a) ? from_end_a : 1;
    const uint64_t summed = lhs->ndim >= back ? (uint64_t)lhs->dim[lhs->ndim - back] : 1;

    tni_cost_products(c, tn_cost_times(tni_cost_elements(i->out_shape[0], 0), summed));
}

static void dot_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, i->in_shape[0]->ndim);
}

static void batch_dot_cost(const tn_infer *i, tn_cost *c)
{
    products_cost(i, c, 2);
}

/* Of a csr matrix and a dense one: dense; of its transpose: row_sparse, unless a dense one is asked for, or
 * the other is transposed. Of a dense matrix and a csr one: csr, unless a dense one is asked for, or the
 * first is transposed. */
static tn_status dot_storage(tn_infer *i)
{
    const bool ta = tni_attr_bool(i->attrs, TN_dot_transpose_a),
               tb = tni_attr_bool(i->attrs, TN_dot_transpose_b);
    const int64_t asked = tn_value_int(i->attrs[TN_dot_forward_stype]);
    int32_t *in = i->in_storage, *out = i->out_storage;

    *out = TN_STORAGE_DENSE;
    if (in[0] == TN_STORAGE_CSR && in[1] != TN_STORAGE_CSR) {
        in[1] = TN_STORAGE_DENSE;
        if (ta && !tb && asked != TN_dot_forward_stype_default)
            *out = TN_STORAGE_ROW_SPARSE;
    } else if (in[0] <= TN_STORAGE_DENSE && in[1] <= TN_STORAGE_DENSE) {
        in[0] = in[1] = TN_STORAGE_DENSE;
    } else if (in[0] > TN_STORAGE_DENSE || in[1] != TN_STORAGE_CSR ||
               asked == TN_dot_forward_stype_row_sparse) {
        return tni_infer_fail(i, TN_E_UNSUPPORTED,
                              "only products of one csr matrix and a dense array are sparse");
    } else {
        in[0] = TN_STORAGE_DENSE;
        if (!ta && asked != TN_dot_forward_stype_default)
            *out = TN_STORAGE_CSR;
    }
    return TN_OK;
}

const tn_op *const tni_family_matrix[] = {
    TNI_ROW("dot", .doc = "Sum of products over the last axis of lhs and the first of rhs.",
            .aliases = TNI_NAMES("_sparse_dot"), .attrs = dot_attrs, .inputs = TNI_NAMES("lhs", "rhs"),
            .outputs = TNI_NAMES("output"), .shape = dot_shape, .types = "T:float", .storage = dot_storage,
            .gradients = "bilinear: dy lhs rhs -> lhs rhs", .cost = dot_cost),
    TNI_ROW("batch_dot", .doc = "Products of matrices, one for each index of the leading axes.",
            .aliases = TNI_NAMES("_npx_batch_dot"), .attrs = dot_attrs,
            .shapes = "lhs:(B,C..,K,M)?transpose_a/(B,C..,M,K) rhs:(B,C..,N,K)?transpose_b/(B,C..,K,N) "
                      "-> output:(B,C..,M,N)",
            .types = "T:float", .gradients = "bilinear: dy lhs rhs -> lhs rhs", .cost = batch_dot_cost),
    NULL,
};

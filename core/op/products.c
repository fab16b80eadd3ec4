/*
 * Sums of products: NumPy's dot, matmul, tensordot and einsum; khatri_rao. Of two operands each is a
 * matrix whose rows and columns are several axes, and all but einsum know which without looking at the
 * data.
 */
#include "tenon/plugin/op/products.h"
#include "op/cost.h"
#include "op/infer_help.h"

static tn_status dim_push(tn_infer *i, tn_shape *y, int64_t dim)
{
    if (y->ndim == TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    y->dim[y->ndim++] = dim;
    return TN_OK;
}

/* Axes of a and b that are summed over are as long as each other; what is left makes the output. */
static tn_status rest_shape(tn_infer *i, const int32_t *in_a, const int32_t *in_b, int64_t count)
{
    tn_shape *a = i->in_shape[0], *b = i->in_shape[1], y = {0};
    uint32_t gone_a = 0, gone_b = 0;
    tn_status st = TN_OK;

    for (int64_t k = 0; k < count; k++) {
        if ((st = tni_dim_unify(i, &a->dim[in_a[k]], &b->dim[in_b[k]])))
            return st;
        gone_a |= 1u << in_a[k];
        gone_b |= 1u << in_b[k];
    }
    for (int32_t d = 0; !st && d < a->ndim; d++)
        st = gone_a >> d & 1u ? TN_OK : dim_push(i, &y, a->dim[d]);
    for (int32_t d = 0; !st && d < b->ndim; d++)
        st = gone_b >> d & 1u ? TN_OK : dim_push(i, &y, b->dim[d]);
    return st ? st : tni_outputs_assign(i, &y);
}

static tn_status dot_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0], *b = i->in_shape[1];
    const int32_t in_a = a->ndim - 1, in_b = b->ndim > 1 ? b->ndim - 2 : 0;

    if (a->ndim < 0 || b->ndim < 0)
        return TN_OK;
    return rest_shape(i, &in_a, &in_b, a->ndim > 0 && b->ndim > 0);
}

static tn_status matmul_shape(tn_infer *i)
{
    tn_shape *a = i->in_shape[0], *b = i->in_shape[1], y, left = *a, right = *b;
    tn_status st;

    if (a->ndim < 0 || b->ndim < 0)
        return TN_OK;
    if (a->ndim == 0 || b->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "an operand has no dimensions, at least 1 is needed");
    if ((st = tni_dim_unify(i, &a->dim[a->ndim - 1], &b->dim[b->ndim > 1 ? b->ndim - 2 : 0])))
        return st;
    left.ndim = a->ndim > 2 ? a->ndim - 2 : 0;
    right.ndim = b->ndim > 2 ? b->ndim - 2 : 0;
    if ((st = tni_shape_broadcast(i, &left, &right, &y)))
        return st;
    if (a->ndim > 1)
        y.dim[y.ndim++] = a->dim[a->ndim - 2];
    if (b->ndim > 1)
        y.dim[y.ndim++] = b->dim[b->ndim - 1];
    return tni_outputs_assign(i, &y);
}

static tn_status tensordot_shape(tn_infer *i)
{
    const tn_tuple *axes[] = {tni_attr_tuple(i->attrs, TN_npi_tensordot_a_axes_summed),
                              tni_attr_tuple(i->attrs, TN_npi_tensordot_b_axes_summed)};
    const int64_t count = tni_tuple_count(axes[0]);
    int32_t in[2][TN_NDIM_MAX];
    tn_status st;

    if (count != tni_tuple_count(axes[1]))
        return tni_infer_fail(i, TN_E_ATTR, "%lld axes of a, but %lld of b", (long long)count,
                              (long long)tni_tuple_count(axes[1]));
    if (i->in_shape[0]->ndim < 0 || i->in_shape[1]->ndim < 0)
        return TN_OK;
    for (int side = 0; side < 2 && count; side++) {
        uint32_t mask = 0;

        if ((st = tni_axes_mask(i, axes[side], false, i->in_shape[side]->ndim, &mask)))
            return st;
        for (int64_t k = 0; k < count; k++)
            (void)tni_axis(i, axes[side]->item[k], i->in_shape[side]->ndim, &in[side][k]);
    }
    return rest_shape(i, in[0], in[1], count);
}

static tn_status int_axes_shape(tn_infer *i)
{
    const int32_t count = (int32_t)tni_attr_int(i->attrs, TN_npi_tensordot_int_axes_axes);
    const int32_t a = i->in_shape[0]->ndim, b = i->in_shape[1]->ndim;
    int32_t in_a[TN_NDIM_MAX], in_b[TN_NDIM_MAX];

    if (a < 0 || b < 0)
        return TN_OK;
    if (count > a || count > b)
        return tni_infer_fail(i, TN_E_SHAPE, "%d axes are summed over, but there are %d and %d", count, a, b);
    for (int32_t k = 0; k < count; k++) {
        in_a[k] = a - count + k;
        in_b[k] = k;
    }
    return rest_shape(i, in_a, in_b, count);
}

/* ---- einsum ------------------------------------------------------------------------------------- */

static tn_status einsum_shape(tn_infer *i)
{
    int64_t extent[TN_EINSUM_LABELS_MAX];
    int32_t ndim[TN_EINSUM_INPUTS_MAX];
    const char *wrong, *text = tn_value_pointer(i->attrs[TN_npi_einsum_subscripts]);
    tn_einsum e;
    tn_shape y;

    for (uint32_t k = 0; k < i->in_count; k++)
        if (i->in_shape[k]->ndim < 0)
            return TN_OK;
    for (uint32_t k = 0; k < i->in_count && k < TN_EINSUM_INPUTS_MAX; k++)
        ndim[k] = i->in_shape[k]->ndim;
    if ((wrong = tn_einsum_read(text ? text : "", (int32_t)i->in_count, ndim, &e)))
        return tni_infer_fail(i, TN_E_ATTR, "subscripts %.60s: %s", text ? text : "", wrong);
    for (int32_t l = 0; l < TN_EINSUM_LABELS_MAX; l++)
        extent[l] = 1;
    for (int32_t k = 0; k < e.count; k++)
        for (int32_t d = 0; d < e.ndim[k]; d++) {
            const int64_t dim = i->in_shape[k]->dim[d];
            int64_t *known = &extent[e.label[k][d]];

            if (*known >= 0 && *known != 1 && dim >= 0 && dim != 1 && dim != *known)
                return tni_infer_fail(i, TN_E_SHAPE, "axis %d of input %d is %lld, but %lld by another input",
                                      d, k, (long long)dim, (long long)*known);
            *known = *known == 1 || *known < 0 ? (dim == 1 && *known < 0 ? *known : dim) : *known;
        }
    y.ndim = e.ndim[e.count];
    for (int32_t d = 0; d < y.ndim; d++)
        y.dim[d] = extent[e.label[e.count][d]];
    return tni_outputs_assign(i, &y);
}

/* Matrices with as many columns: each row of the output is the product of one row of each. */
static tn_status khatri_rao_shape(tn_infer *i)
{
    tn_shape y = {.ndim = 2, .dim = {1, TN_DIM_UNKNOWN}};
    tn_status st;

    for (uint32_t k = 0; k < i->in_count; k++) {
        tn_shape matrix = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};

        if ((st = tn_shape_unify(i, i->in_shape[k], &matrix)) ||
            (st = tni_dim_unify(i, &y.dim[1], &i->in_shape[k]->dim[1])))
            return st;
        if (i->in_shape[k]->dim[0] < 0)
            y.dim[0] = TN_DIM_UNKNOWN;
        else if (y.dim[0] >= 0 && __builtin_mul_overflow(y.dim[0], i->in_shape[k]->dim[0], &y.dim[0]))
            return tni_infer_fail(i, TN_E_SHAPE, "the output has too many rows");
    }
    return tn_shape_unify(i, i->out_shape[0], &y);
}

#define PRODUCT(name_, ...)                                                                                  \
    TNI_ROW(name_, .inputs = TNI_NAMES("a", "b"), .outputs = TNI_NAMES("out"), .types = "T:float",           \
            .gradients = "bilinear: dy a b -> a b", __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_products[] = {
    PRODUCT("_np_dot", .doc = "Sum of products over the last axis of a and the last but one of b.",
            .shape = dot_shape),
    PRODUCT("_npi_matmul", .doc = "Products of matrices in the last two axes; the others stretch.",
            .shape = matmul_shape),
    PRODUCT("_npi_tensordot", .doc = "Sum of products over given axes.",
            .attrs = TNI_ATTRS(npi_tensordot), .shape = tensordot_shape),
    PRODUCT("_npi_tensordot_int_axes",
            .doc = "Sum of products over the last axes of a and the first of b.",
            .attrs = TNI_ATTRS(npi_tensordot_int_axes), .shape = int_axes_shape),
    TNI_ROW("_npi_einsum", .doc = "Sum of products as subscripts say.", .attrs = TNI_ATTRS(npi_einsum),
            .inputs = TNI_NAMES("data*"), .outputs = TNI_NAMES("out"), .shape = einsum_shape,
            .gradients = "once: dy data* -> data*"),
    TNI_ROW("khatri_rao", .doc = "Products of the rows of matrices, of each with each.",
            .attrs = TNI_ATTRS(khatri_rao), .inputs = TNI_NAMES("arg*"), .outputs = TNI_NAMES("output"),
            .shape = khatri_rao_shape, .types = "T:float"),
    NULL,
};
/* clang-format on */

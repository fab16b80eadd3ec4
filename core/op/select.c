/*
 * Elements chosen by a condition or by what they are: NumPy's where, with numbers on one side or both;
 * nan_to_num; around; full_like; share_memory.
 */
#include "tenon/plugin/op/select.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def where_scalar_attrs[] = TN_ATTR_TABLE(npi_where_scalar);
static const tn_attr_def where_scalar2_attrs[] = TN_ATTR_TABLE(npi_where_scalar2);
static const tn_attr_def nan_to_num_attrs[] = TN_ATTR_TABLE(npi_nan_to_num);
static const tn_attr_def full_like_attrs[] = TN_ATTR_TABLE(npi_full_like);
static const tn_attr_def around_attrs[] = TN_ATTR_TABLE(npi_around);

/* All inputs stretch to each other. */
static tn_status where_shape(tn_infer *i)
{
    tn_shape y = *i->in_shape[0];
    tn_status st = TN_OK;

    for (uint32_t k = 1; !st && k < i->in_count && y.ndim >= 0; k++) {
        const tn_shape before = y;

        if (i->in_shape[k]->ndim < 0)
            return TN_OK;
        st = tni_shape_broadcast(i, &before, i->in_shape[k], &y);
    }
    return st || y.ndim < 0 ? st : tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status scalar_shape(tn_infer *i)
{
    const tn_shape y = {.ndim = i->flags & TN_INFER_NP_SHAPE ? 0 : 1, .dim = {1}};

    return tni_shape_assign(i, i->out_shape[0], &y);
}

#define SELECT(id, name_, ...)                                                                               \
    static const tn_op id = TNI_OP(name_, .outputs = TNI_NAMES("out"), __VA_ARGS__);
/* clang-format off */
SELECT(where, "_npi_where", .doc = "x where the condition is not 0, else y; dimensions of size 1 stretch",
       .inputs = TNI_NAMES("condition", "x", "y"), .shape = where_shape, .types = "condition:C",
       .cost = tni_cost_each_output,
       .gradients = "broadcast: x = _npi_where_rscalar(condition, dy, scalar=0)"
                    " ; y = _npi_where_lscalar(condition, dy, scalar=0)")
SELECT(where_lscalar, "_npi_where_lscalar", .doc = "scalar where the condition is not 0, else x",
       .attrs = where_scalar_attrs, .inputs = TNI_NAMES("condition", "x"), .shape = where_shape,
       .types = "condition:C", .cost = tni_cost_each_output,
       .gradients = "broadcast: x = _npi_where_lscalar(condition, dy, scalar=0)")
SELECT(where_rscalar, "_npi_where_rscalar", .doc = "y where the condition is not 0, else scalar",
       .attrs = where_scalar_attrs, .inputs = TNI_NAMES("condition", "y"), .shape = where_shape,
       .types = "condition:C", .cost = tni_cost_each_output,
       .gradients = "broadcast: y = _npi_where_rscalar(condition, dy, scalar=0)")
SELECT(where_scalar2, "_npi_where_scalar2", .doc = "x where the condition is not 0, else y",
       .attrs = where_scalar2_attrs, .inputs = TNI_NAMES("condition"), .shape = where_shape,
       .types = "condition:C; out:f32", .flags = TN_OP_ZERO_GRADIENT)
SELECT(nan_to_num, "_npi_nan_to_num", .doc = "numbers in the place of NaN and infinities",
       .attrs = nan_to_num_attrs, .inputs = TNI_NAMES("data"), .shape = tni_shape_same,
       .gradients = "numpy: data = dy*_npi_isfinite(data)")
SELECT(full_like, "_npi_full_like", .doc = "one value in every element, in the shape of a",
       .attrs = full_like_attrs, .inputs = TNI_NAMES("a"), .shapes_only = 1, .shape = tni_shape_same,
       .types = "out:attr(dtype,T)", .flags = TN_OP_ZERO_GRADIENT)
SELECT(around, "_npi_around", .doc = "rounded to so many digits, halves to even; of integers cut",
       .attrs = around_attrs, .inputs = TNI_NAMES("x"), .shape = tni_shape_same,
       .flags = TN_OP_ZERO_GRADIENT)
SELECT(share_memory, "_npi_share_memory", .doc = "true where two arrays lie in the same memory",
       .inputs = TNI_NAMES("a", "b"), .shape = scalar_shape, .types = "a:A; b:B; out:bool",
       .flags = TN_OP_ZERO_GRADIENT)
/* clang-format on */

const tn_op *const tni_family_select[] = {
    &where,     &where_lscalar, &where_rscalar, &where_scalar2, &nan_to_num,
    &full_like, &around,        &share_memory,  NULL,
};

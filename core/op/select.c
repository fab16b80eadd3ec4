/*
 * Elements chosen by a condition or by what they are: NumPy's where, with numbers on one side or both;
 * nan_to_num; around; full_like; share_memory.
 */
#include "tenon/plugin/op/select.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def where_scalar_attrs[] = TN_ATTR_TABLE(npi_where_scalar);

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

#define SELECT(name_, ...) TNI_ROW(name_, .outputs = TNI_NAMES("out"), __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_select[] = {
    SELECT("_npi_where", .doc = "x where the condition is not 0, else y; dimensions of size 1 stretch",
           .inputs = TNI_NAMES("condition", "x", "y"), .shape = where_shape, .types = "condition:C",
           .cost = tni_cost_each_output,
           .gradients = "broadcast: x = _npi_where_rscalar(condition, dy, scalar=0)"
                        " ; y = _npi_where_lscalar(condition, dy, scalar=0)"),
    SELECT("_npi_where_lscalar", .doc = "scalar where the condition is not 0, else x",
           .attrs = where_scalar_attrs, .inputs = TNI_NAMES("condition", "x"), .shape = where_shape,
           .types = "condition:C", .cost = tni_cost_each_output,
           .gradients = "broadcast: x = _npi_where_lscalar(condition, dy, scalar=0)"),
    SELECT("_npi_where_rscalar", .doc = "y where the condition is not 0, else scalar",
           .attrs = where_scalar_attrs, .inputs = TNI_NAMES("condition", "y"), .shape = where_shape,
           .types = "condition:C", .cost = tni_cost_each_output,
           .gradients = "broadcast: y = _npi_where_rscalar(condition, dy, scalar=0)"),
    SELECT("_npi_where_scalar2", .doc = "x where the condition is not 0, else y",
           .attrs = TNI_ATTRS(npi_where_scalar2), .inputs = TNI_NAMES("condition"), .shape = where_shape,
           .types = "condition:C; out:f32", .flags = TN_OP_ZERO_GRADIENT),
    SELECT("_npi_nan_to_num", .doc = "numbers in the place of NaN and infinities",
           .attrs = TNI_ATTRS(npi_nan_to_num), .inputs = TNI_NAMES("data"), .shape = tni_shape_same,
           .gradients = "numpy: data = dy*_npi_isfinite(data)"),
    SELECT("_npi_full_like", .doc = "one value in every element, in the shape of a",
           .attrs = TNI_ATTRS(npi_full_like), .inputs = TNI_NAMES("a"), .shapes_only = 1,
           .shape = tni_shape_same, .types = "out:attr(dtype,T)", .flags = TN_OP_ZERO_GRADIENT),
    SELECT("_npi_around", .doc = "rounded to so many digits, halves to even; of integers cut",
           .attrs = TNI_ATTRS(npi_around), .inputs = TNI_NAMES("x"), .shape = tni_shape_same,
           .flags = TN_OP_ZERO_GRADIENT),
    SELECT("_npi_share_memory", .doc = "true where two arrays lie in the same memory",
           .inputs = TNI_NAMES("a", "b"), .shape = scalar_shape, .types = "a:A; b:B; out:bool",
           .flags = TN_OP_ZERO_GRADIENT),
    NULL,
};
/* clang-format on */

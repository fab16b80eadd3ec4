/*
 * Elements chosen by value, so that shapes are known after the run: boolean_mask, nonzero, unique; and
 * arrays that are written where a mask says so.
 */
#include "tenon/plugin/op/filter.h"
#include "op/infer_help.h"

static tn_status nonzero_shape(tn_infer *i)
{
    const tn_shape y = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, i->in_shape[0]->ndim}};

    return i->in_shape[0]->ndim < 0 ? TN_OK : tni_shape_assign(i, i->out_shape[0], &y);
}

/* The mask has some of the data's dimensions, from `*axis` on. */
static tn_status mask_shape(tn_infer *i, int64_t start, int32_t *axis)
{
    tn_shape *data = i->in_shape[0], *mask = i->in_shape[1];
    tn_status st = tn_shape_unify(i, data, i->out_shape[0]);

    if (st || data->ndim < 0 || mask->ndim < 0)
        return st;
    if (start < 0 || start > data->ndim - mask->ndim)
        return tni_infer_fail(i, TN_E_SHAPE,
                              "start_axis %lld, but the mask has %d dimensions and the data %d",
                              (long long)start, mask->ndim, data->ndim);
    *axis = (int32_t)start;
    for (int32_t d = 0; !st && d < mask->ndim; d++)
        st = tni_dim_unify(i, &mask->dim[d], &data->dim[*axis + d]);
    return st ? st : tn_shape_unify(i, data, i->out_shape[0]);
}

static tn_status assign_scalar_shape(tn_infer *i)
{
    int32_t axis = 0;

    return mask_shape(i, tni_attr_int(i->attrs, TN_mask_assign_scalar_start_axis), &axis);
}

/* The value stretches to the data, whose masked axes are one: of the elements that are chosen. */
static tn_status assign_tensor_shape(tn_infer *i)
{
    const tn_shape *data = i->in_shape[0], *mask = i->in_shape[1], *value = i->in_shape[2];
    int32_t axis = 0, rest;
    tn_status st = mask_shape(i, tni_attr_int(i->attrs, TN_mask_assign_tensor_start_axis), &axis);

    if (st || data->ndim < 0 || mask->ndim < 0 || value->ndim < 0)
        return st;
    rest = data->ndim - mask->ndim + 1;
    if (mask->ndim == 0 || value->ndim > rest)
        return tni_infer_fail(i, TN_E_SHAPE, "the value has %d dimensions, at most %d fit", value->ndim,
                              rest);
    for (int32_t d = 0; d < value->ndim; d++) {
        const int32_t at = d + rest - value->ndim;
        const int64_t dim = at < axis ? data->dim[at] : at > axis ? data->dim[at + mask->ndim - 1] : -1;

        if (value->dim[d] != 1 && value->dim[d] >= 0 && dim >= 0 && value->dim[d] != dim)
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of the value is %lld, the data's is %lld", d,
                                  (long long)value->dim[d], (long long)dim);
    }
    return TN_OK;
}

#define UNIQUE_OUTPUTS(inverse)                                                                              \
    " indices?return_index:(?) inverse?return_inverse:(" inverse ") counts?return_counts:(?)"

const tn_op *const tni_family_filter[] = {
    TNI_ROW("_contrib_boolean_mask", .doc = "Elements along an axis where the index is not 0.",
            .aliases = TNI_NAMES("_npi_boolean_mask"), .attrs = TNI_ATTRS(boolean_mask),
            .shapes = "data:(A..,D@axis,B..) index:(D) -> output:(A..,?,B..)", .types = "index:I",
            .gradients = "once: dy ~data index -> data index=0"),
    TNI_ROW("_npx_nonzero", .doc = "The indices of each element that is not 0.",
            .aliases = TNI_NAMES("_npi_nonzero"), .inputs = TNI_NAMES("x"), .outputs = TNI_NAMES("out"),
            .flags = TN_OP_ZERO_GRADIENT, .shape = nonzero_shape, .types = "out:i64"),
    TNI_ROW("_npi_unique", .doc = "The different elements, or slices along an axis, in order.",
            .attrs = TNI_ATTRS(npi_unique), .flags = TN_OP_ZERO_GRADIENT,
            .shapes = "[axis=None] data:(D..) -> out:(?)" UNIQUE_OUTPUTS(
                "#D") " | data:(A..,D@axis,B..) -> out:(A..,?,B..)" UNIQUE_OUTPUTS("D"),
            .types = "indices,inverse,counts:i64"),
    TNI_ROW("_npi_boolean_mask_assign_scalar", .doc = "data, with a number where the mask is not 0.",
            .attrs = TNI_ATTRS(mask_assign_scalar), .inputs = TNI_NAMES("data", "mask"),
            .outputs = TNI_NAMES("out"), .shape = assign_scalar_shape, .types = "mask:M"),
    TNI_ROW("_npi_boolean_mask_assign_tensor", .doc = "data, with elements of value where the mask is not 0.",
            .attrs = TNI_ATTRS(mask_assign_tensor), .inputs = TNI_NAMES("data", "mask", "value"),
            .outputs = TNI_NAMES("out"), .flags = TN_OP_CHECKS_VALUES, .shape = assign_tensor_shape,
            .types = "mask:M"),
    NULL,
};

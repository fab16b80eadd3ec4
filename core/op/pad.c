/*
 * Padding: elements before and behind those of each axis, which are one number, or elements of the input, or
 * the largest or smallest ones of a line.
 */
#include "tenon/plugin/op/pad.h"

#include <string.h>

#include "op/infer_help.h"

static const tn_attr_def pad_attrs[] = TN_ATTR_TABLE(Pad);
static const tn_attr_def npi_pad_attrs[] = TN_ATTR_TABLE(npi_pad);

/* Of modes other than constant: an axis that is padded with its own elements has some; one that is reflected
 * once has more than its padding. */
static tn_status own_elements(tn_infer *i, const tn_tuple *width, bool once, const tn_shape *x)
{
    for (int32_t d = 0; d < x->ndim; d++) {
        const int64_t before = width->item[2 * d], behind = width->item[2 * d + 1];

        if (x->dim[d] == 0 && before + behind > 0)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d has no elements to pad with", d);
        if (once && x->dim[d] >= 0 && before + behind > 0 && (before >= x->dim[d] || behind >= x->dim[d]))
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d of size %lld is no longer than its padding", d,
                                  (long long)x->dim[d]);
    }
    return TN_OK;
}

/* y is x with `width` around it. */
static tn_status width_unify(tn_infer *i, const tn_tuple *width, tn_shape *x, tn_shape *y)
{
    const int32_t ndim = x->ndim >= 0 ? x->ndim : y->ndim;
    tn_shape open = {.ndim = ndim};
    tn_status st;

    if (ndim < 0)
        return TN_OK;
    if (tni_tuple_count(width) != 2 * (int64_t)ndim)
        return tni_infer_fail(i, TN_E_ATTR, "pad_width has %lld items, %d dimensions need two for each",
                              (long long)tni_tuple_count(width), ndim);
    for (int32_t d = 0; d < ndim; d++)
        open.dim[d] = TN_DIM_UNKNOWN;
    if ((st = tni_shape_assign(i, x, &open)) || (st = tni_shape_assign(i, y, &open)))
        return st;
    for (int32_t d = 0; d < ndim; d++) {
        const int64_t around = width->item[2 * d] + width->item[2 * d + 1];
        int64_t outer = TN_DIM_UNKNOWN, inner = TN_DIM_UNKNOWN;

        if (x->dim[d] >= 0 && __builtin_add_overflow(x->dim[d], around, &outer))
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d becomes too long", d);
        if (y->dim[d] >= 0 && (inner = y->dim[d] - around) < 0)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d of size %lld is all padding", d,
                                  (long long)y->dim[d]);
        if ((st = tni_dim_unify(i, &y->dim[d], &outer)) || (st = tni_dim_unify(i, &x->dim[d], &inner)))
            return st;
    }
    return TN_OK;
}

static tn_status pad_unify(tn_infer *i, tn_shape *x, tn_shape *y)
{
    const tn_tuple *width = tni_attr_tuple(i->attrs, TN_Pad_pad_width);
    const int64_t mode = tni_attr_int(i->attrs, TN_Pad_mode);
    tn_status st = width_unify(i, width, x, y);

    return st || mode == TN_Pad_mode_constant ? st : own_elements(i, width, mode == TN_Pad_mode_reflect, x);
}

static tn_status npi_pad_unify(tn_infer *i, tn_shape *x, tn_shape *y)
{
    const tn_tuple *width = tni_attr_tuple(i->attrs, TN_npi_pad_pad_width);
    const char *type = tn_value_pointer(i->attrs[TN_npi_pad_reflect_type]);
    tn_status st;

    if (!type || strcmp(type, "even") != 0)
        return tni_infer_fail(i, TN_E_ATTR, "reflect_type is %.40s, only even is there",
                              type ? type : "None");
    st = width_unify(i, width, x, y);
    if (st || tni_attr_int(i->attrs, TN_npi_pad_mode) == TN_npi_pad_mode_constant)
        return st;
    return own_elements(i, width, false, x);
}

static tn_status pad_shape(tn_infer *i)
{
    return pad_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status npi_pad_shape(tn_infer *i)
{
    return npi_pad_unify(i, i->in_shape[0], i->out_shape[0]);
}

/* dy and the input, of which the shape counts. */
static tn_status back_pad_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : pad_unify(i, i->in_shape[1], i->in_shape[0]);
}

static tn_status back_npi_pad_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : npi_pad_unify(i, i->in_shape[1], i->in_shape[0]);
}

#define KEPT "mode=@mode, pad_width=@pad_width"

const tn_op *const tni_family_pad[] = {
    TNI_ROW("Pad", .doc = "elements around those of each axis", .aliases = TNI_NAMES("pad"),
            .attrs = pad_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
            .shape = pad_shape, .gradients = "composed: data = _backward_Pad(dy, ~data, " KEPT ")"),
    TNI_ROW("_backward_Pad", .doc = "dy of each element and of what repeats it, summed", .attrs = pad_attrs,
            .flags = TN_OP_BACKWARD, .shapes_only = 2, .inputs = TNI_NAMES("dy", "data"),
            .outputs = TNI_NAMES("dx"), .shape = back_pad_shape, .types = "T:float",
            .gradients = "composed: dy = Pad(h, " KEPT ", constant_value=0)"),
    TNI_ROW("_npi_pad", .doc = "elements around those of each axis, as NumPy has them",
            .attrs = npi_pad_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("out"),
            .shape = npi_pad_shape, .gradients = "composed: data = _backward_npi_pad(dy, ~data, " KEPT ")"),
    TNI_ROW("_backward_npi_pad", .doc = "dy of each element and of what repeats it, summed",
            .attrs = npi_pad_attrs, .flags = TN_OP_BACKWARD, .shapes_only = 2,
            .inputs = TNI_NAMES("dy", "data"), .outputs = TNI_NAMES("dx"), .shape = back_npi_pad_shape,
            .types = "T:float", .gradients = "composed: dy = _npi_pad(h, " KEPT ", constant_value=0)"),
    NULL,
};

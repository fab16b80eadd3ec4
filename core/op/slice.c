/*
 * slice, slice_axis, slice_like: a window of the input, with steps. Indices count from the end where
 * negative. The gradient puts dy into zeros in the shape of the input. Where a window lies is a run-time
 * attribute: windows of one size anywhere in an array have one signature.
 */
#include "tenon/plugin/op/slice.h"
#include "op/infer_help.h"
#include "tenon/plugin/util.h"

static const tn_attr_def slice_attrs[] = TN_ATTR_TABLE(slice);
static const tn_attr_def slice_like_attrs[] = TN_ATTR_TABLE(slice_like);

static void number_write(const int64_t *number, char *text, size_t size)
{
    if (number)
        snprintf(text, size, "%lld", (long long)*number);
    else
        snprintf(text, size, "None");
}

/* How many indices are chosen of an axis of `size`; `begin` and `end` NULL: not given. */
static tn_status range_size(tn_infer *i, int32_t axis, int64_t size, const int64_t *begin, const int64_t *end,
                            int64_t step, int64_t *out)
{
    char from[24], to[24];
    int64_t start, stride, count;

    if (step == 0)
        return tni_infer_fail(i, TN_E_ATTR, "step of axis %d is 0", axis);
    if (size < 0) {
        *out = TN_DIM_UNKNOWN;
        return TN_OK;
    }
    if ((count = tn_range_of(size, begin, end, step, &start, &stride)) < 0) {
        number_write(begin, from, sizeof from);
        number_write(end, to, sizeof to);
        return tni_infer_fail(i, TN_E_SHAPE, "begin %s and end %s do not lie in axis %d of size %lld", from,
                              to, axis, (long long)size);
    }
    *out = count;
    return TN_OK;
}

/* `attrs`: from begin on. */
static tn_status window_unify(tn_infer *i, const tn_value *attrs, const tn_shape *x, tn_shape *out)
{
    const tn_tuple *begin = tni_attr_tuple(attrs, TN_slice_begin), *end = tni_attr_tuple(attrs, TN_slice_end);
    const tn_tuple *step = tni_attr_tuple(attrs, TN_slice_step);
    tn_shape y = *x;
    tn_status st;

    if (tni_tuple_count(begin) != tni_tuple_count(end) ||
        (tni_tuple_count(step) && step->count != tni_tuple_count(begin)))
        return tni_infer_fail(i, TN_E_ATTR, "begin, end and step have %lld, %lld and %lld items",
                              (long long)tni_tuple_count(begin), (long long)tni_tuple_count(end),
                              (long long)tni_tuple_count(step));
    if (x->ndim < 0)
        return TN_OK;
    if (tni_tuple_count(begin) > x->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "begin has %lld items, but the input has %d dimensions",
                              (long long)begin->count, x->ndim);
    for (int32_t k = 0; k < tni_tuple_count(begin); k++) {
        const int64_t *s = tn_attrs_tuple_item(attrs, TN_slice_step, k);

        if ((st = range_size(i, k, x->dim[k], tn_attrs_tuple_item(attrs, TN_slice_begin, k),
                             tn_attrs_tuple_item(attrs, TN_slice_end, k), s ? *s : 1, &y.dim[k])))
            return st;
    }
    return tn_shape_unify(i, out, &y);
}

static tn_status slice_axis_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const int64_t begin = tni_attr_int(i->attrs, TN_slice_axis_begin);
    tn_shape y = *x;
    int32_t axis = 0;
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_slice_axis_axis), x->ndim, &axis)) ||
        (st = range_size(i, axis, x->dim[axis], &begin, tni_attr_opt_int(i->attrs, TN_slice_axis_end), 1,
                         &y.dim[axis])))
        return st;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status slice_like_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0], *like = i->in_shape[1];
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_slice_like_axes);
    tn_shape y = *x;
    uint32_t mask = 0;
    tn_status st;

    if (x->ndim < 0 || like->ndim < 0)
        return TN_OK;
    if (!tni_tuple_count(axes) && x->ndim != like->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, shape_like %d: name the axes", x->ndim,
                              like->ndim);
    if ((st = tni_axes_mask(i, axes, false, x->ndim, &mask)))
        return st;
    for (int32_t k = 0; k < x->ndim; k++) {
        if (!(mask >> k & 1u))
            continue;
        if (k >= like->ndim || (x->dim[k] >= 0 && like->dim[k] > x->dim[k]))
            return tni_infer_fail(i, TN_E_SHAPE,
                                  "axis %d of shape_like is missing or longer than that of data", k);
        y.dim[k] = like->dim[k];
    }
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status slice_shape(tn_infer *i)
{
    return window_unify(i, i->attrs, i->in_shape[0], i->out_shape[0]);
}

/* ---- where a window lies ------------------------------------------------------------------------------- */

/* Along one axis. A kernel turns the order round. */
static tn_status range_view(const tn_infer *i, tn_view *v, int32_t axis, const int64_t *begin,
                            const int64_t *end, int64_t step)
{
    int64_t start, stride;

    if (tn_range_of(i->in_shape[0]->dim[axis], begin, end, step, &start, &stride) < 0 || stride < 1)
        return TN_E_UNSUPPORTED;
    v->offset += start * v->in_stride[axis];
    v->stride[axis] = stride * v->in_stride[axis];
    return TN_OK;
}

static void whole_view(const tn_infer *i, tn_view *v)
{
    for (int32_t d = 0; d < i->in_shape[0]->ndim; d++)
        v->stride[d] = v->in_stride[d];
}

static tn_status slice_view(const tn_infer *i, tn_view *v)
{
    const int64_t count = tni_tuple_count(tni_attr_tuple(i->attrs, TN_slice_begin));
    tn_status st = TN_OK;

    whole_view(i, v);
    for (int32_t k = 0; k < count && !st; k++) {
        const int64_t *step = tn_attrs_tuple_item(i->attrs, TN_slice_step, k);

        st = range_view(i, v, k, tn_attrs_tuple_item(i->attrs, TN_slice_begin, k),
                        tn_attrs_tuple_item(i->attrs, TN_slice_end, k), step ? *step : 1);
    }
    return st;
}

static tn_status slice_axis_view(const tn_infer *i, tn_view *v)
{
    const int64_t axis = tni_attr_int(i->attrs, TN_slice_axis_axis),
                  begin = tni_attr_int(i->attrs, TN_slice_axis_begin);

    whole_view(i, v);
    return range_view(i, v, (int32_t)(axis < 0 ? axis + i->in_shape[0]->ndim : axis), &begin,
                      tni_attr_opt_int(i->attrs, TN_slice_axis_end), 1);
}

static tn_status slice_like_view(const tn_infer *i, tn_view *v)
{
    whole_view(i, v);
    return TN_OK;
}

/* dy has the data's extents, and no larger ones along the axes that were cut. */
static tn_status backward_slice_like_shape(tn_infer *i)
{
    tn_shape *dy = i->in_shape[0], *data = i->in_shape[1];
    uint32_t mask = 0;
    tn_status st = tn_shape_unify(i, data, i->out_shape[0]);

    if (st || data->ndim < 0 || dy->ndim < 0)
        return st;
    if (dy->ndim != data->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "dy has %d dimensions, data %d", dy->ndim, data->ndim);
    if ((st = tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_slice_like_axes), false, data->ndim, &mask)))
        return st;
    for (int32_t k = 0; k < data->ndim; k++) {
        if (!(mask >> k & 1u) && (st = tni_dim_unify(i, &dy->dim[k], &data->dim[k])))
            return st;
        if (data->dim[k] >= 0 && dy->dim[k] > data->dim[k])
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d of dy is longer than that of data: %lld and %lld",
                                  k, (long long)dy->dim[k], (long long)data->dim[k]);
    }
    return tn_shape_unify(i, data, i->out_shape[0]);
}

/* Of a csr matrix one, where no element is left out in between. */
static tn_status slice_storage(tn_infer *i)
{
    const tn_tuple *step = tni_attr_tuple(i->attrs, TN_slice_step);

    for (int64_t k = 0; i->in_storage[0] == TN_STORAGE_CSR && k < tni_tuple_count(step); k++)
        if (tn_attrs_tuple_item(i->attrs, TN_slice_step, k) && step->item[k] != 1)
            return tni_infer_fail(i, TN_E_UNSUPPORTED, "input 0 is sparse (csr), whose slices have no steps");
    if (i->in_storage[0] == TN_STORAGE_ROW_SPARSE)
        return tni_infer_fail(i, TN_E_UNSUPPORTED, "input 0 is sparse (row_sparse), only csr is cut");
    if (i->in_storage[0] == TN_STORAGE_UNKNOWN)
        i->in_storage[0] = TN_STORAGE_DENSE;
    i->out_storage[0] = i->in_storage[0];
    return TN_OK;
}

/* ---- windows that are written -------------------------------------------------------------------------- */

static tn_status slice_assign_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : window_unify(i, i->attrs, i->in_shape[0], i->in_shape[1]);
}

static tn_status slice_assign_scalar_shape(tn_infer *i)
{
    tn_shape window = {.ndim = TN_NDIM_UNKNOWN};
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : window_unify(i, i->attrs + TN_slice_assign_scalar_begin, i->in_shape[0], &window);
}

const tn_op *const tni_family_slice[] = {
    TNI_ROW("_slice_assign", .doc = "lhs, with rhs in a window of it.",
            .aliases = TNI_NAMES("_crop_assign", "_npi_slice_assign"), .attrs = slice_attrs,
            .inputs = TNI_NAMES("lhs", "rhs"), .outputs = TNI_NAMES("output"), .shape = slice_assign_shape),
    TNI_ROW("_slice_assign_scalar", .doc = "data, with a number in each element of a window.",
            .aliases = TNI_NAMES("_crop_assign_scalar", "_npi_slice_assign_scalar"),
            .attrs = TNI_ATTRS(slice_assign_scalar), .inputs = TNI_NAMES("data"),
            .outputs = TNI_NAMES("output"), .shape = slice_assign_scalar_shape),
    TNI_ROW("slice", .doc = "A window of the input, with steps.",
            .aliases = TNI_NAMES("_npi_slice", "_npx_slice", "_sparse_slice", "crop"), .attrs = slice_attrs,
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = slice_shape,
            .gradients = "linear: dy ~data -> data", .view = slice_view, .storage = slice_storage),
    TNI_ROW("slice_axis", .doc = "A window along one axis.", .attrs = TNI_ATTRS(slice_axis),
            .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = slice_axis_shape,
            .gradients = "linear: dy ~data -> data", .view = slice_axis_view),
    TNI_ROW("slice_like", .doc = "The beginning of the input, as much as another one has.",
            .attrs = slice_like_attrs, .inputs = TNI_NAMES("data", "shape_like"), .shapes_only = 2,
            .outputs = TNI_NAMES("output"), .shape = slice_like_shape, .view = slice_like_view,
            .gradients = "composed: data = _backward_slice_like!(dy, ~data)"
                         " ; shape_like = zeros_like(~shape_like)"),
    TNI_ROW("_backward_slice_like", .doc = "Gradient of slice_like.", .attrs = slice_like_attrs,
            .flags = TN_OP_BACKWARD, .inputs = TNI_NAMES("dy", "data"), .shapes_only = 2,
            .outputs = TNI_NAMES("dx"), .shape = backward_slice_like_shape,
            .gradients = "composed: dy = slice_like!(h, ~dy)"),
    NULL,
};

/*
 * NumPy's insert and delete: along an axis, or of all elements in a row. Which indices are meant says a
 * number, a range, or an array.
 */
#include "tenon/plugin/op/insert.h"
#include "op/infer_help.h"
#include "tenon/plugin/util.h"

static const tn_attr_def insert_attrs[] = TN_ATTR_TABLE(npi_insert);

/* The array as the operators see it: itself, or without an axis all its elements in a row. */
static tn_status array_of(tn_infer *i, const int64_t *given, tn_shape *x, int32_t *axis)
{
    int64_t count = 1;

    *x = *i->in_shape[0];
    *axis = 0;
    if (x->ndim < 0 || given)
        return x->ndim < 0 ? TN_OK : tni_axis(i, *given, x->ndim, axis);
    for (int32_t d = 0; d < x->ndim && count >= 0; d++)
        if (x->dim[d] < 0 || __builtin_mul_overflow(count, x->dim[d], &count))
            count = TN_DIM_UNKNOWN;
    x->ndim = 1;
    x->dim[0] = count;
    return TN_OK;
}

/* How many indices of an axis of `size` a range has, as Python cuts it. */
static tn_status range_count(tn_infer *i, const tn_value *range, int64_t size, int64_t *out)
{
    int64_t start;
    const int64_t *step = tni_attr_opt_int(range, TN_npi_delete_step);

    if (step && *step == 0)
        return tni_infer_fail(i, TN_E_ATTR, "step is 0");
    *out = size < 0 ? TN_DIM_UNKNOWN
                    : tn_range_cut(size, tni_attr_opt_int(range, TN_npi_delete_start),
                                   tni_attr_opt_int(range, TN_npi_delete_stop), step ? *step : 1, &start);
    return TN_OK;
}

/* ---- insert ------------------------------------------------------------------------------------------ */

/* The values with as many dimensions as the array: missing ones are 1, those too many must be. */
static tn_status values_of(tn_infer *i, const tn_shape *values, int32_t ndim, tn_shape *out)
{
    const int32_t lead = ndim - values->ndim;

    out->ndim = ndim;
    for (int32_t d = 0; d < values->ndim - ndim; d++)
        if (values->dim[d] >= 0 && values->dim[d] != 1)
            return tni_infer_fail(i, TN_E_SHAPE, "the values have %d dimensions, the array %d", values->ndim,
                                  ndim);
    for (int32_t d = 0; d < ndim; d++)
        out->dim[d] = d < lead ? 1 : values->dim[d - lead];
    return TN_OK;
}

/* Each dimension of the values is 1 or that of the array; along the axis 1 or `room`, if that is known. */
static tn_status values_fit(tn_infer *i, const tn_shape *values, const tn_shape *x, int32_t axis,
                            int64_t room)
{
    for (int32_t d = 0; d < x->ndim; d++) {
        const int64_t have = values->dim[d], fits = d == axis ? room : x->dim[d];

        if (have >= 0 && have != 1 && fits >= 0 && have != fits)
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of the values is %lld, 1 or %lld fit", d,
                                  (long long)have, (long long)fits);
    }
    return TN_OK;
}

/* NumPy's moveaxis(values, 0, axis). */
static void first_moved(tn_shape *values, int32_t axis)
{
    const int64_t first = values->ndim > 0 ? values->dim[0] : 1;

    for (int32_t d = 0; d < axis; d++)
        values->dim[d] = values->dim[d + 1];
    values->dim[axis] = first;
}

/* `indices`: how many; `alone`: it is a number, whose values lie along their first axis. */
static tn_status insert_unify(tn_infer *i, const tn_shape *x, int32_t axis, int64_t indices, bool alone)
{
    const bool number = tni_attr_opt_float(i->attrs, TN_npi_insert_val) != NULL;
    const tn_shape one = {.ndim = 0};
    const tn_shape *given = number ? &one : i->in_shape[1];
    tn_shape values, y = *x;
    tn_status st;

    if (given->ndim < 0)
        return TN_OK;
    if ((st = values_of(i, given, x->ndim, &values)))
        return st;
    if (alone)
        first_moved(&values, axis);
    if ((st = values_fit(i, &values, x, axis, indices == 1 ? TN_DIM_UNKNOWN : indices)))
        return st;
    if (indices == 1)
        indices = values.dim[axis];
    if (y.dim[axis] >= 0 && indices >= 0 && __builtin_add_overflow(y.dim[axis], indices, &y.dim[axis]))
        return tni_infer_fail(i, TN_E_SHAPE, "axis %d becomes too long", axis);
    if (indices < 0)
        y.dim[axis] = TN_DIM_UNKNOWN;
    return tni_shape_assign(i, i->out_shape[0], &y);
}

static tn_status insert_array(tn_infer *i, tn_shape *x, int32_t *axis)
{
    return array_of(i, tni_attr_opt_int(i->attrs, TN_npi_insert_axis), x, axis);
}

static tn_status insert_scalar_shape(tn_infer *i)
{
    const int64_t *index = tni_attr_opt_int(i->attrs, TN_npi_insert_int_ind);
    int32_t axis;
    tn_shape x;
    tn_status st = insert_array(i, &x, &axis);

    if (st || x.ndim < 0)
        return st;
    if (!index)
        return tni_infer_fail(i, TN_E_ATTR, "int_ind is missing");
    if (x.dim[axis] >= 0 && (*index < -x.dim[axis] || *index > x.dim[axis]))
        return tni_infer_fail(i, TN_E_SHAPE, "index %lld, but axis %d has the size %lld", (long long)*index,
                              axis, (long long)x.dim[axis]);
    return insert_unify(i, &x, axis, 1, true);
}

static tn_status insert_slice_shape(tn_infer *i)
{
    int64_t count;
    int32_t axis;
    tn_shape x;
    tn_status st = insert_array(i, &x, &axis);

    if (st || x.ndim < 0 || (st = range_count(i, i->attrs + TN_npi_insert_start, x.dim[axis], &count)) ||
        count < 0)
        return st;
    return insert_unify(i, &x, axis, count, false);
}

static tn_status insert_tensor_shape(tn_infer *i)
{
    const tn_shape *obj = i->in_shape[i->in_count - 1];
    int32_t axis;
    tn_shape x;
    tn_status st = insert_array(i, &x, &axis);

    if (st || x.ndim < 0 || obj->ndim < 0)
        return st;
    if (obj->ndim > 1)
        return tni_infer_fail(i, TN_E_SHAPE, "the indices have %d dimensions, at most 1 is possible",
                              obj->ndim);
    if (obj->ndim == 1 && obj->dim[0] < 0)
        return TN_OK;
    return insert_unify(i, &x, axis, obj->ndim ? obj->dim[0] : 1, obj->ndim == 0);
}

/* Values and indices that are there, behind the array. */
static tn_status insert_args(tn_infer *i)
{
    i->in_count = 1 + !tni_attr_opt_float(i->attrs, TN_npi_insert_val);
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

static tn_status insert_tensor_args(tn_infer *i)
{
    static const char *const all[] = {"arr", "values", "obj", NULL}, *const number[] = {"arr", "obj", NULL};

    insert_args(i);
    i->in_names = i->in_count++ == 2 ? all : number;
    return TN_OK;
}

static tn_status insert_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->out_dtype[0], &i->in_dtype[0]);

    return st || i->in_count < 2 || i->in_dtype[1] >= 0
               ? st
               : tni_dtype_assign(i, &i->in_dtype[1], i->in_dtype[0]);
}

static tn_status insert_tensor_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_assign(i, &i->in_dtype[i->in_count - 1], TN_I64);

    return st ? st : insert_dtype(i);
}

#define INSERT(name_, ...) TNI_ROW(name_, .attrs = insert_attrs, .outputs = TNI_NAMES("out"), __VA_ARGS__)

/* ---- delete ------------------------------------------------------------------------------------------ */

static bool indices_are_attrs(const tn_infer *i)
{
    return tni_attr_opt_int(i->attrs, TN_npi_delete_step) ||
           tni_attr_opt_int(i->attrs, TN_npi_delete_int_ind);
}

static tn_status delete_args(tn_infer *i)
{
    i->in_count = indices_are_attrs(i) ? 1 : 2;
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

static tn_status delete_shape(tn_infer *i)
{
    const int64_t *index = tni_attr_opt_int(i->attrs, TN_npi_delete_int_ind);
    int64_t count = TN_DIM_UNKNOWN;
    int32_t axis;
    tn_shape x;
    tn_status st = array_of(i, tni_attr_opt_int(i->attrs, TN_npi_delete_axis), &x, &axis);

    if (st || x.ndim < 0)
        return st;
    if (tni_attr_opt_int(i->attrs, TN_npi_delete_step)) {
        if ((st = range_count(i, i->attrs, x.dim[axis], &count)))
            return st;
    } else if (index) {
        count = 1;
        if (x.dim[axis] >= 0 && (*index < -x.dim[axis] || *index >= x.dim[axis]))
            return tni_infer_fail(i, TN_E_SHAPE, "index %lld, but axis %d has the size %lld",
                                  (long long)*index, axis, (long long)x.dim[axis]);
    }
    x.dim[axis] = count < 0 || x.dim[axis] < 0 ? TN_DIM_UNKNOWN : x.dim[axis] - count;
    return tni_shape_assign(i, i->out_shape[0], &x);
}

/* clang-format off */
const tn_op *const tni_family_insert[] = {
    INSERT("_npi_insert_scalar", .doc = "values put before one index", .args = insert_args,
           .inputs = TNI_NAMES("arr", "values"), .shape = insert_scalar_shape, .dtype = insert_dtype),
    INSERT("_npi_insert_slice", .doc = "values put before the indices of a range",
           .args = insert_args, .inputs = TNI_NAMES("arr", "values"), .shape = insert_slice_shape,
           .dtype = insert_dtype),
    INSERT("_npi_insert_tensor", .doc = "values put before the indices in an array",
           .args = insert_tensor_args, .inputs = TNI_NAMES("arr", "values", "obj"),
           .shape = insert_tensor_shape, .dtype = insert_tensor_dtype, .flags = TN_OP_CHECKS_VALUES),
    TNI_ROW("_npi_delete", .doc = "the array without some indices; the array of them may name them twice",
            .attrs = TNI_ATTRS(npi_delete), .inputs = TNI_NAMES("arr", "obj"), .outputs = TNI_NAMES("out"),
            .args = delete_args, .shape = delete_shape, .types = "obj:I"),
    NULL,
};
/* clang-format on */

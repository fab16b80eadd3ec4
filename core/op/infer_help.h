/*
 * What the families' shape, dtype and gradient functions have in common. All of it is inline and pure;
 * failures fill the inference's `err`. Attributes are read by their index in the family's table.
 */
#ifndef TN_OP_INFER_HELP_H
#define TN_OP_INFER_HELP_H

#include "base/base.h"
#include "op/op.h"
#include "tenon/plugin/attr.h"

/* An operator's row: name, struct_size and version filled in. TNI_OP("exp", .inputs = tni_args_data, ...) */
#define TNI_OP(name_, ...)                                                                                   \
    {                                                                                                        \
        .struct_size = TN_END(tn_op, shapes_only), .version = 1, .exec = TN_EXEC_KERNEL, .name = name_,      \
        __VA_ARGS__                                                                                          \
    }
/* The same as an item of the family's table. */
#define TNI_ROW(...) (&(const tn_op)TNI_OP(__VA_ARGS__))

#define TNI_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
/* The attributes of one definition; a table that several have gets a name. */
#define TNI_ATTRS(op) ((const tn_attr_def[])TN_ATTR_TABLE(op))

static inline tn_status tni_infer_fail(tn_infer *i, tn_status st, const char *format, ...) TN_PRINTF(3, 4);
static inline tn_status tni_infer_fail(tn_infer *i, tn_status st, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tn_fail(i->err, st, text);
}

/* ---- attributes ------------------------------------------------------------------------------- */

static inline bool tni_attr_bool(const tn_value *attrs, uint32_t i)
{
    return attrs[i] != 0;
}

static inline double tni_attr_float(const tn_value *attrs, uint32_t i)
{
    return tn_value_float(attrs[i]);
}

/* NULL: None. */
static inline const tn_tuple *tni_attr_tuple(const tn_value *attrs, uint32_t i)
{
    return (const tn_tuple *)tn_value_pointer(attrs[i]);
}

static inline const int64_t *tni_attr_opt_int(const tn_value *attrs, uint32_t i)
{
    return (const int64_t *)tn_value_pointer(attrs[i]);
}

static inline const double *tni_attr_opt_float(const tn_value *attrs, uint32_t i)
{
    return (const double *)tn_value_pointer(attrs[i]);
}

static inline int64_t tni_tuple_count(const tn_tuple *t)
{
    return t ? t->count : 0;
}

/* Item `i` of a tuple that may be empty, then `fallback`: kernel sizes, strides, pads. */
static inline int64_t tni_tuple_item(const tn_tuple *t, int64_t i, int64_t fallback)
{
    return t && i < t->count ? t->item[i] : fallback;
}

/* The two items of a tuple such as a size (h, w), both above 0. */
static inline tn_status tni_attr_pair(tn_infer *i, uint32_t index, int64_t *out)
{
    const tn_tuple *t = tni_attr_tuple(i->attrs, index);

    if (tni_tuple_count(t) != 2 || t->item[0] < 1 || t->item[1] < 1)
        return tni_infer_fail(i, TN_E_ATTR, "%s needs two items above 0: (h, w)", i->op->attrs[index].name);
    out[0] = t->item[0];
    out[1] = t->item[1];
    return TN_OK;
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static inline void tni_shape_set(tn_shape *s, int32_t ndim, const int64_t *dim)
{
    s->ndim = ndim;
    s->reserved = 0;
    for (int32_t i = 0; i < ndim; i++)
        s->dim[i] = dim[i];
}

/* Says that `s` is `known` (which may have unknown dimensions): fills in, or fails.
 * `known` is not changed. */
static inline tn_status tni_shape_assign(tn_infer *i, tn_shape *s, const tn_shape *known)
{
    tn_shape copy = *known;

    return tn_shape_unify(i, s, &copy);
}

/* All outputs have the shape `y`; without dimensions it is (1) outside of np_shape. */
static inline tn_status tni_outputs_assign(tn_infer *i, tn_shape *y)
{
    tn_status st = TN_OK;

    if (y->ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        *y = (tn_shape){.ndim = 1, .dim = {1}};
    for (uint32_t k = 0; k < i->out_count && !st; k++)
        st = tni_shape_assign(i, i->out_shape[k], y);
    return st;
}

/* Brings one dimension of two shapes to what both say. */
static inline tn_status tni_dim_unify(tn_infer *i, int64_t *a, int64_t *b)
{
    if (*a < 0)
        *a = *b;
    else if (*b < 0)
        *b = *a;
    else if (*a != *b)
        return tni_infer_fail(i, TN_E_SHAPE, "dimensions %lld and %lld must be equal", (long long)*a,
                              (long long)*b);
    return TN_OK;
}

/* All inputs and outputs have one shape; `shape` of elementwise operators. */
static inline tn_status tni_shape_same(tn_infer *i)
{
    tn_status st = TN_OK;

    if (i->in_count + i->out_count == 0)
        return TN_OK;
    for (uint32_t pass = 0; pass < 2; pass++) { /* the second carries back what later ones knew */
        tn_shape *first = i->in_count > 0 ? i->in_shape[0] : i->out_shape[0];

        for (uint32_t k = 0; !st && k < i->in_count; k++)
            if (i->in_shape[k] != first)
                st = tn_shape_unify(i, first, i->in_shape[k]);
        for (uint32_t k = 0; !st && k < i->out_count; k++)
            if (i->out_shape[k] != first)
                st = tn_shape_unify(i, first, i->out_shape[k]);
    }
    return st;
}

/* `axis` in -ndim … ndim-1, made non-negative. */
static inline tn_status tni_axis(tn_infer *i, int64_t axis, int32_t ndim, int32_t *out)
{
    if (axis < -ndim || axis >= ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "axis %lld, but the input has %d dimensions", (long long)axis,
                              ndim);
    *out = (int32_t)(axis < 0 ? axis + ndim : axis);
    return TN_OK;
}

/* Two different axes: attributes `index` and the one behind it. */
static inline tn_status tni_axis_pair(tn_infer *i, uint32_t index, int32_t ndim, int32_t *row,
                                      int32_t *column)
{
    tn_status st;

    if ((st = tni_axis(i, tni_attr_int(i->attrs, index), ndim, row)) ||
        (st = tni_axis(i, tni_attr_int(i->attrs, index + 1), ndim, column)))
        return st;
    return *row == *column ? tni_infer_fail(i, TN_E_ATTR, "axis1 and axis2 are both axis %d", *row) : TN_OK;
}

/* The axes of a reduction as a mask. None or (): all; `exclude`: all but these. An axis twice is an error. */
static inline tn_status tni_axes_mask(tn_infer *i, const tn_tuple *axes, bool exclude, int32_t ndim,
                                      uint32_t *mask)
{
    uint32_t all = ndim == 32 ? UINT32_MAX : (1u << ndim) - 1u, m = 0;

    for (int64_t k = 0; k < tni_tuple_count(axes); k++) {
        int32_t axis = 0;
        tn_status st = tni_axis(i, axes->item[k], ndim, &axis);

        if (st)
            return st;
        if (m >> axis & 1u)
            return tni_infer_fail(i, TN_E_SHAPE, "axis %d is there twice", axis);
        m |= 1u << axis;
    }
    if (tni_tuple_count(axes) == 0)
        m = exclude ? 0 : all;
    else if (exclude)
        m = all & ~m;
    *mask = m;
    return TN_OK;
}

/* The shape that is left when the axes of `mask` are reduced to 1, or dropped. MXNet's classic mode has no
 * 0-d arrays: without np_shape a full reduction gives (1,). */
static inline void tni_shape_reduce(const tn_shape *in, uint32_t mask, bool keepdims, bool np_shape,
                                    tn_shape *out)
{
    int32_t n = 0;

    for (int32_t k = 0; k < in->ndim; k++) {
        if (!(mask >> k & 1u))
            out->dim[n++] = in->dim[k];
        else if (keepdims)
            out->dim[n++] = 1;
    }
    if (n == 0 && !np_shape)
        out->dim[n++] = 1;
    out->ndim = n;
    out->reserved = 0;
}

/* NumPy's broadcast of `a` with `b` into `out` (all dimensions that can be told). */
static inline tn_status tni_shape_broadcast(tn_infer *i, const tn_shape *a, const tn_shape *b, tn_shape *out)
{
    int32_t n = a->ndim > b->ndim ? a->ndim : b->ndim;

    for (int32_t k = 0; k < n; k++) {
        int64_t x = k < n - a->ndim ? 1 : a->dim[k - (n - a->ndim)];
        int64_t y = k < n - b->ndim ? 1 : b->dim[k - (n - b->ndim)];

        if (x == y || y == 1)
            out->dim[k] = x;
        else if (x == 1)
            out->dim[k] = y;
        else if (x < 0 || y < 0)
            out->dim[k] = x < 0 ? y : x; /* the unknown one can only be 1 or this */
        else
            return tni_infer_fail(i, TN_E_SHAPE, "dimensions %lld and %lld do not broadcast", (long long)x,
                                  (long long)y);
    }
    out->ndim = n;
    out->reserved = 0;
    return TN_OK;
}

/* Output size of a window of `kernel` steps `dilate` apart over `in` + 2 `pad`, moved by `stride`; -1:
 * unknown or none. */
static inline int64_t tni_window_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilate)
{
    int64_t span, size;

    if (in < 0 || stride < 1 || __builtin_mul_overflow(dilate, kernel - 1, &span) ||
        __builtin_add_overflow(in, 2 * pad, &size) || size < span + 1)
        return -1;
    return (size - span - 1) / stride + 1;
}

/* ---- dtypes ----------------------------------------------------------------------------------- */

/* Says that `*slot` is `dtype`; -1 says nothing. */
static inline tn_status tni_dtype_assign(tn_infer *i, int32_t *slot, int32_t dtype)
{
    if (dtype < 0 || *slot == dtype)
        return TN_OK;
    if (*slot >= 0)
        return tni_infer_fail(i, TN_E_DTYPE, "%s and %s do not go together", tni_dtype_name(*slot),
                              tni_dtype_name(dtype));
    *slot = dtype;
    return TN_OK;
}

/* Both are the same. */
static inline tn_status tni_dtype_unify(tn_infer *i, int32_t *a, int32_t *b)
{
    tn_status st = tni_dtype_assign(i, a, *b);

    return st ? st : tni_dtype_assign(i, b, *a);
}

/* All inputs and outputs have one data type (what a NULL dtype function means), for use within others. */
static inline tn_status tni_dtype_same(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t pass = 0; pass < 2; pass++) {
        int32_t *first = i->in_count > 0 ? &i->in_dtype[0] : &i->out_dtype[0];

        for (uint32_t k = 0; !st && k < i->in_count; k++)
            st = tni_dtype_unify(i, first, &i->in_dtype[k]);
        for (uint32_t k = 0; !st && k < i->out_count; k++)
            st = tni_dtype_unify(i, first, &i->out_dtype[k]);
    }
    return st;
}

/* As tni_dtype_same, but only floating point will do: functions that mean nothing on integers. */
static inline tn_status tni_dtype_same_float(tn_infer *i)
{
    tn_status st = tni_dtype_same(i);
    int32_t dtype = i->in_count > 0 ? i->in_dtype[0] : i->out_dtype[0];

    if (!st && dtype >= 0 && !tni_dtype_is_float(dtype))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type, cast it first",
                              tni_dtype_name(dtype));
    return st;
}

/* ---- gradients -------------------------------------------------------------------------------- */

/* An operator whose outputs' gradients do not arrive has nothing to hand on: its inputs' gradients stay
 * unset. */
static inline bool tni_grad_arrives(tn_grad *g)
{
    for (uint32_t k = 0; k < g->out_count; k++)
        if (tn_grad_of(g, k).node)
            return true;
    return false;
}

/* Node `op` of one or two inputs without attributes. */
static inline tn_edge tni_grad_op1(tn_grad *g, tn_status *st, const char *op, tn_edge a)
{
    tn_edge out = {NULL, 0, 0};

    if (!*st)
        *st = tn_grad_node(g, op, 1, &a, 0, NULL, &out);
    return out;
}

static inline tn_edge tni_grad_op2(tn_grad *g, tn_status *st, const char *op, tn_edge a, tn_edge b)
{
    const tn_edge in[] = {a, b};
    tn_edge out = {NULL, 0, 0};

    if (!*st)
        *st = tn_grad_node(g, op, 2, in, 0, NULL, &out);
    return out;
}

/* Node `op` (a _…_scalar) with a constant operand. */
static inline tn_edge tni_grad_scalar(tn_grad *g, tn_status *st, const char *op, tn_edge a,
                                      const char *scalar)
{
    const tn_attr_text attr[] = {{"scalar", scalar}};
    tn_edge out = {NULL, 0, 0};

    if (!*st)
        *st = tn_grad_node(g, op, 1, &a, 1, attr, &out);
    return out;
}

/* Of _backward_X(dy, a, b) -> da, db[, dbias], where X is a product of a and b. */
tn_status tni_grad_of_product(tn_grad *g);

/* The end of a chain of the above: `edge` becomes the gradient of `input`, unless a step failed. The status
 * comes by address because the steps may stand among the arguments. */
static inline tn_status tni_grad_set(tn_grad *g, const tn_status *st, uint32_t input, tn_edge edge)
{
    return *st ? *st : g->ops->set(g, input, edge);
}

#endif

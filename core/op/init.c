/*
 * Arrays out of nothing: zeros, ones, a value, a range, a diagonal. The shape is an attribute; what it leaves
 * open (-1, or no shape at all) is inferred from where the output goes.
 */
#include <math.h>

#include "op/infer_help.h"
#include "op/shape_attr.h"
#include "tenon/plugin/op/init.h"

#define LENGTH_MAX 9007199254740992.0 /* 2^53: beyond, lengths are not exact in a double */

static const tn_attr_def fill_attrs[] = TN_ATTR_TABLE(zeros);

_Static_assert((int)TN_zeros_shape == TN_full_shape && (int)TN_zeros_dtype == TN_full_dtype,
               "_zeros, _ones and _full have shape and dtype at the same places");

static tn_status fill_shape(tn_infer *i)
{
    return tni_shape_attr(i, TN_full_shape, i->out_shape[0]);
}

static tn_status arange_shape(tn_infer *i)
{
    const double *stop = tni_attr_opt_float(i->attrs, TN_arange_stop);
    const double start = tni_attr_float(i->attrs, TN_arange_start),
                 step = tni_attr_float(i->attrs, TN_arange_step);
    const double span = stop ? *stop - start : start, length = ceil(span / step);
    tn_shape s = {.ndim = 1, .dim = {0}};

    if (tni_attr_bool(i->attrs, TN_arange_infer_range) && !stop)
        return TN_OK;
    if (step == 0 || !isfinite(length) || fabs(length) > LENGTH_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "a range over %g in steps of %g has no length", span, step);
    if (length > 0 &&
        __builtin_mul_overflow((int64_t)length, tni_attr_int(i->attrs, TN_arange_repeat), &s.dim[0]))
        return tni_infer_fail(i, TN_E_SHAPE, "the range is too long");
    return tn_shape_unify(i, i->out_shape[0], &s);
}

static tn_status eye_shape(tn_infer *i)
{
    const int64_t n = tni_attr_int(i->attrs, TN_eye_N), m = tni_attr_int(i->attrs, TN_eye_M);
    tn_shape s = {.ndim = 2, .dim = {n, m ? m : n}};

    return tn_shape_unify(i, i->out_shape[0], &s);
}

/* A vector of so many elements. */
static tn_status vector_shape(tn_infer *i, int64_t count)
{
    const tn_shape s = {.ndim = 1, .dim = {count}};

    return tni_shape_assign(i, i->out_shape[0], &s);
}

static tn_status linspace_shape(tn_infer *i)
{
    return vector_shape(i, tni_attr_int(i->attrs, TN_linspace_num));
}

static tn_status hamming_shape(tn_infer *i)
{
    const int64_t *count = tni_attr_opt_int(i->attrs, TN_npi_hamming_M);

    if (!count)
        return tni_infer_fail(i, TN_E_ATTR, "M is missing");
    return vector_shape(i, *count > 0 ? *count : 0);
}

static tn_status npi_eye_shape(tn_infer *i)
{
    const int64_t n = tni_attr_int(i->attrs, TN_npi_eye_N), *m = tni_attr_opt_int(i->attrs, TN_npi_eye_M);
    tn_shape s = {.ndim = 2, .dim = {n, m ? *m : n}};

    return tn_shape_unify(i, i->out_shape[0], &s);
}

static tn_status identity_shape(tn_infer *i)
{
    if (tni_tuple_count(tni_attr_tuple(i->attrs, TN_npi_identity_shape)) != 2)
        return tni_infer_fail(i, TN_E_ATTR, "shape must have 2 items, rows and columns");
    return tni_shape_attr(i, TN_npi_identity_shape, i->out_shape[0]);
}

/* Of each point of the grid so many indices. */
static tn_status indices_shape(tn_infer *i)
{
    const tn_tuple *grid = tni_attr_tuple(i->attrs, TN_npi_indices_dimensions);
    const int64_t count = tni_tuple_count(grid);
    tn_shape s;

    if (count >= TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "dimensions has %lld items", (long long)count);
    s.ndim = (int32_t)count + 1;
    s.dim[0] = count;
    for (int64_t k = 0; k < count; k++)
        s.dim[k + 1] = grid->item[k];
    return tn_shape_unify(i, i->out_shape[0], &s);
}

/* ---- like an input
 * -------------------------------------------------------------------------------------- */

static tn_status diag_indices_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    tn_shape s = {.ndim = 2, .dim = {x->ndim, TN_DIM_UNKNOWN}};
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if (x->ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "the input has %d dimensions, at least 2 are needed", x->ndim);
    for (int32_t d = 0; d < x->ndim; d++)
        if ((st = tni_dim_unify(i, &s.dim[1], &i->in_shape[0]->dim[d])))
            return st;
    return tn_shape_unify(i, i->out_shape[0], &s);
}

static tn_status arange_like_shape(tn_infer *i)
{
    const int64_t *given = tni_attr_opt_int(i->attrs, TN_arange_like_axis);
    const tn_shape *x = i->in_shape[0];
    int32_t axis = 0;
    tn_status st;

    if (!given)
        return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    if (x->ndim < 0)
        return TN_OK;
    return (st = tni_axis(i, *given, x->ndim, &axis)) ? st : vector_shape(i, x->dim[axis]);
}

static tn_status index_array_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_index_array_axes);
    tn_shape y = *i->in_shape[0];
    tn_status st;

    if (y.ndim < 0)
        return TN_OK;
    if (y.ndim == TN_NDIM_MAX || tni_tuple_count(axes) > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "there are too many dimensions or axes");
    for (int64_t k = 0; k < tni_tuple_count(axes); k++) {
        int32_t axis = 0;

        if ((st = tni_axis(i, axes->item[k], i->in_shape[0]->ndim, &axis)))
            return st;
    }
    y.dim[y.ndim++] = axes ? axes->count : i->in_shape[0]->ndim;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status zeros_dtype(tn_infer *i)
{
    const int64_t dtype = tni_attr_int(i->attrs, TN_zeros_without_dtype_dtype);

    return tni_dtype_assign(i, &i->out_dtype[0],
                            dtype >= 0            ? (int32_t)dtype
                            : i->out_dtype[0] < 0 ? TN_F32
                                                  : i->out_dtype[0]);
}

/* ---- the family -------------------------------------------------------------------------------------- */

static const tn_attr_def hamming_attrs[] = TN_ATTR_TABLE(npi_hamming);

#define MAKE(name_, doc_, attrs_, shape_, ...)                                                               \
    TNI_ROW(name_, .doc = doc_, .attrs = attrs_, .outputs = TNI_NAMES("output"), .shape = shape_,            \
            .types = "output:attr(dtype,or(f32))", __VA_ARGS__)
#define LIKE(name_, ...)                                                                                     \
    TNI_ROW(name_, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shapes_only = 1,            \
            .flags = TN_OP_ZERO_GRADIENT, __VA_ARGS__)

/* Shape and type are those of the array that it is written to; without one it is one element. */
static tn_status set_value_shape(tn_infer *i)
{
    const tn_shape one = {.ndim = i->flags & TN_INFER_NP_SHAPE ? 0 : 1, .dim = {1}};

    return i->out_shape[0]->ndim >= 0 ? TN_OK : tni_shape_assign(i, i->out_shape[0], &one);
}

/* clang-format off */
const tn_op *const tni_family_init[] = {
    TNI_ROW("_set_value", .doc = "One value in every element of an array that is there, or in one.",
            .attrs = TNI_ATTRS(set_value), .outputs = TNI_NAMES("output"), .shape = set_value_shape,
            .types = "output:or(f32)"),
    MAKE("_zeros", "Zeros.", fill_attrs, fill_shape, .inputs = NULL),
    MAKE("_ones", "Ones.", fill_attrs, fill_shape, .inputs = NULL),
    MAKE("_full", "One value in every element.", TNI_ATTRS(full), fill_shape,
         .aliases = TNI_NAMES("_npi_full")),
    MAKE("_arange", "start, start + step, … below stop.", TNI_ATTRS(arange), arange_shape, .inputs = NULL),
    MAKE("_eye", "Ones on a diagonal, zeros elsewhere.", TNI_ATTRS(eye), eye_shape, .inputs = NULL),
    MAKE("_linspace", "Values from start to stop, equally far from each other.", TNI_ATTRS(linspace),
         linspace_shape, .aliases = TNI_NAMES("_npi_linspace")),
    MAKE("_npi_logspace", "Powers of a base, whose exponents are equally far from each other.",
         TNI_ATTRS(npi_logspace), linspace_shape, .inputs = NULL),
    MAKE("_npi_eye", "Ones on a diagonal, zeros elsewhere.", TNI_ATTRS(npi_eye), npi_eye_shape,
         .inputs = NULL),
    MAKE("_npi_identity", "Ones on the main diagonal, zeros elsewhere.", TNI_ATTRS(npi_identity),
         identity_shape, .inputs = NULL),
    MAKE("_npi_indices", "The indices of each point of a grid, one array for each axis.",
         TNI_ATTRS(npi_indices), indices_shape, .inputs = NULL),
    MAKE("_npi_hamming", "The Hamming window.", hamming_attrs, hamming_shape, .inputs = NULL),
    MAKE("_npi_hanning", "The Hann window.", hamming_attrs, hamming_shape, .inputs = NULL),
    MAKE("_npi_blackman", "The Blackman window.", hamming_attrs, hamming_shape, .inputs = NULL),
    LIKE("_npi_diag_indices_from", .doc = "The indices of the main diagonal.",
         .shape = diag_indices_shape, .types = "output:i64"),
    LIKE("_contrib_arange_like",
         .doc = "start, start + step, … in the shape of the input, or one of its axes.",
         .aliases = TNI_NAMES("_npx_arange_like"), .attrs = TNI_ATTRS(arange_like),
         .shape = arange_like_shape),
    LIKE("_contrib_index_array", .doc = "The indices of each element.",
         .attrs = TNI_ATTRS(index_array), .shape = index_array_shape, .types = "output:i64"),
    TNI_ROW("_zeros_without_dtype", .doc = "Zeros, whose data type is a number.",
            .attrs = TNI_ATTRS(zeros_without_dtype), .outputs = TNI_NAMES("output"), .shape = fill_shape,
            .dtype = zeros_dtype),
    NULL,
};
/* clang-format on */

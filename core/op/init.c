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
static const tn_attr_def full_attrs[] = TN_ATTR_TABLE(full);
static const tn_attr_def arange_attrs[] = TN_ATTR_TABLE(arange);
static const tn_attr_def eye_attrs[] = TN_ATTR_TABLE(eye);

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

#define MAKE(id, name_, doc_, attrs_, shape_, ...)                                                           \
    static const tn_op id = TNI_OP(name_, .doc = doc_, .attrs = attrs_, .outputs = TNI_NAMES("output"),      \
                                   .shape = shape_, .types = "output:attr(dtype,or(f32))", __VA_ARGS__);
/* clang-format off */
MAKE(zeros, "_zeros", "Zeros.", fill_attrs, fill_shape, .inputs = NULL)
MAKE(ones, "_ones", "Ones.", fill_attrs, fill_shape, .inputs = NULL)
MAKE(full, "_full", "One value in every element.", full_attrs, fill_shape, .aliases = TNI_NAMES("_npi_full"))
MAKE(arange, "_arange", "start, start + step, … below stop.", arange_attrs, arange_shape, .inputs = NULL)
MAKE(eye, "_eye", "Ones on a diagonal, zeros elsewhere.", eye_attrs, eye_shape, .inputs = NULL)
/* clang-format on */

const tn_op *const tni_family_init[] = {&zeros, &ones, &full, &arange, &eye, NULL};

/*
 * Arrays out of nothing: zeros, ones, a value, a range, a diagonal. The shape is an attribute; what it leaves
 * open (-1, or no shape at all) is inferred from where the output goes.
 */
#include <math.h>

#include "op/infer_help.h"
#include "op/shape_attr.h"
#include "tenon/plugin/indices.h"

#define CTX TN_ATTR_TEXT("ctx", "", "device, read by whoever calls")
#define DTYPE TN_ATTR_DTYPE("dtype", "float32", "of the output; None: float32")
#define LENGTH_MAX 9007199254740992.0 /* 2^53: beyond, lengths are not exact in a double */

static const tn_attr_def fill_attrs[] = {
    [TN_ZEROS_SHAPE] = TN_ATTR_TUPLE_IN("shape", "[]", -1, 9e15, "of the output; -1: to be inferred"),
    [TN_ZEROS_CTX] = CTX,
    [TN_ZEROS_DTYPE] = DTYPE,
    TN_ATTR_END,
};

static const tn_attr_def full_attrs[] = {
    [TN_FULL_SHAPE] = TN_ATTR_TUPLE_IN("shape", "None", -1, 9e15, "of the output; -1: to be inferred"),
    [TN_FULL_CTX] = CTX,
    [TN_FULL_DTYPE] = DTYPE,
    [TN_FULL_VALUE] = TN_ATTR_FLOAT_RUN("value", TN_REQUIRED, "of every element"),
    TN_ATTR_END,
};

static const tn_attr_def arange_attrs[] = {
    [TN_ARANGE_START] =
        TN_ATTR_FLOAT("start", TN_REQUIRED, "first value; without stop: the end, and 0 is first"),
    [TN_ARANGE_STOP] = TN_ATTR_OPT_FLOAT("stop", "None", "end, not included"),
    [TN_ARANGE_STEP] = TN_ATTR_FLOAT("step", "1", "distance of two values"),
    [TN_ARANGE_REPEAT] = TN_ATTR_INT_IN("repeat", "1", 1, 9e15, "how often each value stands"),
    [TN_ARANGE_INFER_RANGE] = TN_ATTR_BOOL("infer_range", "0", "the length comes from where the output goes"),
    [TN_ARANGE_CTX] = CTX,
    [TN_ARANGE_DTYPE] = DTYPE,
    TN_ATTR_END,
};

static const tn_attr_def eye_attrs[] = {
    [TN_EYE_N] = TN_ATTR_INT_IN("N", TN_REQUIRED, 0, 9e15, "rows"),
    [TN_EYE_M] = TN_ATTR_INT_IN("M", "0", 0, 9e15, "columns; 0: as many as rows"),
    [TN_EYE_K] = TN_ATTR_INT("k", "0", "which diagonal; above 0: right of the main one"),
    [TN_EYE_CTX] = CTX,
    [TN_EYE_DTYPE] = DTYPE,
    TN_ATTR_END,
};

_Static_assert(TN_ZEROS_SHAPE == TN_FULL_SHAPE && TN_ZEROS_DTYPE == TN_FULL_DTYPE,
               "_zeros, _ones and _full have shape and dtype at the same places");

static tn_status fill_shape(tn_infer *i)
{
    return tni_shape_attr(i, TN_FULL_SHAPE, i->out_shape[0]);
}

static tn_status fill_dtype(tn_infer *i)
{
    return tni_dtype_asked(i, &i->out_dtype[0], (int32_t)tni_attr_int(i->attrs, TN_FULL_DTYPE));
}

static tn_status arange_shape(tn_infer *i)
{
    const double *stop = tni_attr_opt_float(i->attrs, TN_ARANGE_STOP);
    const double start = tni_attr_float(i->attrs, TN_ARANGE_START),
                 step = tni_attr_float(i->attrs, TN_ARANGE_STEP);
    const double span = stop ? *stop - start : start, length = ceil(span / step);
    tn_shape s = {.ndim = 1, .dim = {0}};

    if (tni_attr_bool(i->attrs, TN_ARANGE_INFER_RANGE) && !stop)
        return TN_OK;
    if (step == 0 || !isfinite(length) || fabs(length) > LENGTH_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "a range over %g in steps of %g has no length", span, step);
    if (length > 0 &&
        __builtin_mul_overflow((int64_t)length, tni_attr_int(i->attrs, TN_ARANGE_REPEAT), &s.dim[0]))
        return tni_infer_fail(i, TN_E_SHAPE, "the range is too long");
    return tn_shape_unify(i, i->out_shape[0], &s);
}

static tn_status arange_dtype(tn_infer *i)
{
    return tni_dtype_asked(i, &i->out_dtype[0], (int32_t)tni_attr_int(i->attrs, TN_ARANGE_DTYPE));
}

static tn_status eye_shape(tn_infer *i)
{
    const int64_t n = tni_attr_int(i->attrs, TN_EYE_N), m = tni_attr_int(i->attrs, TN_EYE_M);
    tn_shape s = {.ndim = 2, .dim = {n, m ? m : n}};

    return tn_shape_unify(i, i->out_shape[0], &s);
}

static tn_status eye_dtype(tn_infer *i)
{
    return tni_dtype_asked(i, &i->out_dtype[0], (int32_t)tni_attr_int(i->attrs, TN_EYE_DTYPE));
}

static const tn_op zeros = TNI_OP("_zeros", .doc = "Zeros.", .attrs = fill_attrs, .inputs = NULL,
                                  .outputs = TNI_NAMES("output"), .shape = fill_shape, .dtype = fill_dtype);

static const tn_op ones = TNI_OP("_ones", .doc = "Ones.", .attrs = fill_attrs, .inputs = NULL,
                                 .outputs = TNI_NAMES("output"), .shape = fill_shape, .dtype = fill_dtype);

static const tn_op full = TNI_OP("_full", .doc = "One value in every element.",
                                 .aliases = TNI_NAMES("_npi_full"), .attrs = full_attrs, .inputs = NULL,
                                 .outputs = TNI_NAMES("output"), .shape = fill_shape, .dtype = fill_dtype);

static const tn_op arange =
    TNI_OP("_arange", .doc = "start, start + step, … below stop.", .attrs = arange_attrs, .inputs = NULL,
           .outputs = TNI_NAMES("output"), .shape = arange_shape, .dtype = arange_dtype);

static const tn_op eye =
    TNI_OP("_eye", .doc = "Ones on a diagonal, zeros elsewhere.", .attrs = eye_attrs, .inputs = NULL,
           .outputs = TNI_NAMES("output"), .shape = eye_shape, .dtype = eye_dtype);

const tn_op *const tni_family_init[] = {&zeros, &ones, &full, &arange, &eye, NULL};

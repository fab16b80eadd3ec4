/**
 * Short ways for plugins: attributes by index, errors with numbers in them, what several kernels say again
 * and again. Inline functions on top of the tables; nothing here is needed, and nothing here crosses the
 * border.
 */
#ifndef TENON_PLUGIN_UTIL_H
#define TENON_PLUGIN_UTIL_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------------------ */

/** As tn_fail, with a text as for printf; what is too long for `err` is cut off. @since 0.1 */
__attribute__((__format__(__printf__, 3, 4))) static inline tn_status tn_failf(tn_err *err, tn_status code,
                                                                               const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    (void)tn_fail(err, code, "");
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

/* ---- attributes: the value of row `i` ---------------------------------------------------------------- */

/** Of an integer, a bool (0 or 1), a choice (its index) or a data type (-1: None). @since 0.1 */
static inline int64_t tn_attrs_int(const tn_value *attrs, uint32_t i)
{
    return tn_value_int(attrs[i]);
}

/** Of a float. @since 0.1 */
static inline double tn_attrs_float(const tn_value *attrs, uint32_t i)
{
    return tn_value_float(attrs[i]);
}

/** Of a text; NULL: None. @since 0.1 */
static inline const char *tn_attrs_text(const tn_value *attrs, uint32_t i)
{
    return (const char *)tn_value_pointer(attrs[i]);
}

/** Of an integer (or bool) that may be None: `none` then. @since 0.1 */
static inline int64_t tn_attrs_opt_int(const tn_value *attrs, uint32_t i, int64_t none)
{
    const int64_t *value = (const int64_t *)tn_value_pointer(attrs[i]);

    return value ? *value : none;
}

/** Of a float that may be None: `none` then. @since 0.1 */
static inline double tn_attrs_opt_float(const tn_value *attrs, uint32_t i, double none)
{
    const double *value = (const double *)tn_value_pointer(attrs[i]);

    return value ? *value : none;
}

/** Items of a tuple; 0 for None. @since 0.1 */
static inline int64_t tn_attrs_tuple_count(const tn_value *attrs, uint32_t i)
{
    const tn_tuple *tuple = (const tn_tuple *)tn_value_pointer(attrs[i]);

    return tuple ? tuple->count : 0;
}

/** Item `k` of a tuple; `none` where the tuple is None or shorter. @since 0.1 */
static inline int64_t tn_attrs_tuple_at(const tn_value *attrs, uint32_t i, int64_t k, int64_t none)
{
    const tn_tuple *tuple = (const tn_tuple *)tn_value_pointer(attrs[i]);

    return tuple && k >= 0 && k < tuple->count ? tuple->item[k] : none;
}

/** Address of item `k` of a tuple; NULL where the item is None, or the tuple None or shorter. @since 0.1 */
static inline const int64_t *tn_attrs_tuple_item(const tn_value *attrs, uint32_t i, int64_t k)
{
    const tn_tuple *tuple = (const tn_tuple *)tn_value_pointer(attrs[i]);

    return tuple && k >= 0 && k < tuple->count && tuple->item[k] != TN_NONE_ITEM ? &tuple->item[k] : NULL;
}

/**
 * The indices *start, *start + *stride … that `begin`, `end` and `step` choose of an axis of `size`, as slice
 * does: how many they are, or -1 where step is 0, or begin or end lie outside of the axis. Negative ones
 * count from the end of the axis; NULL: not given, up to the axis' end by the sign of step. All indices lie
 * within the axis; of none the start is 0, of less than two the stride is 1. Inference and kernel both call
 * this, so they never disagree. @since 0.1
 */
static inline int64_t tn_range_of(int64_t size, const int64_t *begin, const int64_t *end, int64_t step,
                                  int64_t *start, int64_t *stride)
{
    int64_t from = step > 0 ? 0 : size - 1, to = step > 0 ? size : -1, count;

    if (step == 0 || size < 0)
        return -1;
    if (begin)
        from = *begin < 0 ? *begin + size : *begin;
    if (end)
        to = *end < 0 ? *end + size : *end;
    if ((begin && (from < 0 || from > size || (from == size && to != from))) ||
        (end && (to < 0 || to > size)))
        return -1;
    if (step > 0)
        count = to > from ? (to - from - 1) / step + 1 : 0;
    else
        count = from > to ? (from - to - 1) / (step < -INT64_MAX ? INT64_MAX : -step) + 1 : 0;
    *start = count > 0 ? from : 0;
    *stride = count > 1 ? step : 1;
    return count;
}

/** The same as Python cuts slices: what lies outside of the axis is left out. `step` is not 0. @since 0.1 */
static inline int64_t tn_range_cut(int64_t size, const int64_t *begin, const int64_t *end, int64_t step,
                                   int64_t *start)
{
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? size - 1 : size;
    int64_t from = step < 0 ? high : low, to = step < 0 ? low : high;

    if (begin)
        from = *begin < 0 ? *begin + size : *begin;
    if (end)
        to = *end < 0 ? *end + size : *end;
    from = from < low ? low : from > high ? high : from;
    to = to < low ? low : to > high ? high : to;
    *start = from;
    if (step > 0)
        return to > from ? (to - from - 1) / step + 1 : 0;
    return from > to ? (from - to - 1) / (step < -INT64_MAX ? INT64_MAX : -step) + 1 : 0;
}

/* ---- inference --------------------------------------------------------------------------------------- */

/** A set of data types: TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64). */
#define TN_DTYPE_BIT(dtype) (1u << (dtype))

/**
 * All inputs and outputs have one data type, one of `allowed`; what is known of one holds for all.
 * TN_E_DTYPE: two differ, or it is none of these. @since 0.1
 */
static inline tn_status tn_infer_same_dtype(tn_infer *i, uint32_t allowed)
{
    int32_t dtype = TN_DTYPE_UNKNOWN;

    for (uint32_t k = 0; k < i->in_count + i->out_count; k++) {
        const int32_t have = k < i->in_count ? i->in_dtype[k] : i->out_dtype[k - i->in_count];

        if (have != TN_DTYPE_UNKNOWN && dtype != TN_DTYPE_UNKNOWN && have != dtype)
            return tn_fail(i->err, TN_E_DTYPE,
                           "all inputs and outputs must have one data type, but two differ");
        if (have != TN_DTYPE_UNKNOWN)
            dtype = have;
    }
    if (dtype == TN_DTYPE_UNKNOWN)
        return TN_OK;
    if (dtype < 0 || dtype >= TN_DTYPE_LIMIT || !(allowed & TN_DTYPE_BIT(dtype)))
        return tn_fail(i->err, TN_E_DTYPE, "this data type is not served");
    for (uint32_t k = 0; k < i->in_count; k++)
        i->in_dtype[k] = dtype;
    for (uint32_t k = 0; k < i->out_count; k++)
        i->out_dtype[k] = dtype;
    return TN_OK;
}

/** The same for floating point types, as a function; the text `types = "T:float"` says it, too, and its
 * errors name the type. @since 0.1 */
static inline tn_status tn_infer_floats(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) | TN_DTYPE_BIT(TN_F32) |
                                      TN_DTYPE_BIT(TN_F64));
}

/** All inputs and outputs have one shape; what is known of one holds for all. TN_E_SHAPE: two differ.
 * @since 0.1 */
static inline tn_status tn_infer_same_shape(tn_infer *i)
{
    tn_shape *first = i->in_count ? i->in_shape[0] : i->out_shape[0];
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < 2;
         round++) { /* the second brings the last one's facts to the first ones */
        for (uint32_t k = 0; !st && k < i->in_count; k++)
            st = tn_shape_unify(i, first, i->in_shape[k]);
        for (uint32_t k = 0; !st && k < i->out_count; k++)
            st = tn_shape_unify(i, first, i->out_shape[k]);
    }
    return st;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

/** What is to be done with output `i`: TN_MODE_NONE, TN_MODE_WRITE or TN_MODE_ADD. @since 0.1 */
static inline uint32_t tn_exec_mode(const tn_exec *x, uint32_t i)
{
    return x->modes ? x->modes[i] : (uint32_t)TN_MODE_WRITE;
}

/** Number of elements of output `i`. @since 0.1 */
static inline int64_t tn_exec_count(const tn_exec *x, uint32_t i)
{
    return tn_tensor_count(x->out[i]);
}

/* ---- narrow floating point numbers -------------------------------------------------------------------- */

/** The number whose bits are a sign, `exponent` bits and `fraction` bits, as in IEEE 754. @since 0.1 */
static inline double tn_float_unpack(uint32_t bits, uint32_t exponent, uint32_t fraction)
{
    const uint32_t top = (1u << exponent) - 1, bias = top >> 1, e = bits >> fraction & top;
    const uint64_t m = bits & ((1u << fraction) - 1), sign = (uint64_t)(bits >> (exponent + fraction)) << 63;
    uint64_t wide = (uint64_t)(e == top ? 2047 : e + 1023 - bias) << 52 | m << (52 - fraction);
    double value, scale;

    if (e == 0) { /* m units of the smallest number */
        wide = (uint64_t)(1024 - bias - fraction) << 52;
        memcpy(&scale, &wide, sizeof scale);
        value = (double)m * scale;
        memcpy(&wide, &value, sizeof wide);
    }
    wide |= sign;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/** The bits of the nearest such number, of two the even one. @since 0.1 */
static inline uint32_t tn_float_pack(double value, uint32_t exponent, uint32_t fraction)
{
    const uint32_t top = (1u << exponent) - 1, bias = top >> 1;
    uint64_t wide, half, rest;
    uint32_t sign, e, drop = 52 - fraction, kept;

    memcpy(&wide, &value, sizeof wide);
    sign = (uint32_t)(wide >> 63) << (exponent + fraction);
    e = (uint32_t)(wide >> 52) & 2047;
    wide &= ((uint64_t)1 << 52) - 1;
    if (e == 2047 && wide)
        return sign | top << fraction | 1u << (fraction - 1);
    if (e > 1023 + bias)
        return sign | top << fraction;
    if (e >= 1024 - bias)
        wide |= (uint64_t)(e + bias - 1023) << 52;
    else { /* below the normal numbers */
        if (1024 - bias - e > fraction + 1)
            return sign;
        wide |= (uint64_t)1 << 52;
        drop += 1024 - bias - e;
    }
    half = (uint64_t)1 << (drop - 1);
    rest = wide & (2 * half - 1);
    kept = (uint32_t)(wide >> drop);
    return sign | (kept + (rest > half || (rest == half && (kept & 1))));
}

/** A float16 from memory, and what is stored for a number. @since 0.1 */
static inline double tn_f16_load(uint16_t bits)
{
    return tn_float_unpack(bits, 5, 10);
}

/** @since 0.1 */
static inline uint16_t tn_f16_store(double value)
{
    return (uint16_t)tn_float_pack(value, 5, 10);
}

/** The same of bfloat16. @since 0.1 */
static inline double tn_bf16_load(uint16_t bits)
{
    return tn_float_unpack(bits, 8, 7);
}

/** @since 0.1 */
static inline uint16_t tn_bf16_store(double value)
{
    return (uint16_t)tn_float_pack(value, 8, 7);
}

/* ---- kernels for all floating point types -------------------------------------------------------------- */

/*
 * A kernel that computes in double, whatever its tensors hold, goes through them by tiles:
 *
 *     double tile[TN_TILE];
 *
 *     for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n) {
 *         for (int64_t i = 0; i < n; i++)
 *             tile[i] = exp(tile[i]);
 *         tn_tile_store(x, 0, at, n, tile);
 *     }
 */
#define TN_TILE 256

/** Elements from number `at` on of input `in`, dense and of f16, bf16, f32 or f64; how many, 0 at its end.
 * @since 0.1 */
static inline int64_t tn_tile_load(const tn_exec *x, uint32_t in, int64_t at, double *tile)
{
    const tn_tensor *t = x->in[in];
    const int64_t left = tn_tensor_count(t) - at, count = left < TN_TILE ? left : TN_TILE;

    if (t->dtype == TN_F64)
        for (int64_t i = 0; i < count; i++)
            tile[i] = ((const double *)t->data)[at + i];
    else if (t->dtype == TN_F32)
        for (int64_t i = 0; i < count; i++)
            tile[i] = (double)((const float *)t->data)[at + i];
    else if (t->dtype == TN_F16)
        for (int64_t i = 0; i < count; i++)
            tile[i] = tn_f16_load(((const uint16_t *)t->data)[at + i]);
    else
        for (int64_t i = 0; i < count; i++)
            tile[i] = tn_bf16_load(((const uint16_t *)t->data)[at + i]);
    return count;
}

/** Stores `count` elements from number `at` on of output `out`, each rounded once; nothing where nobody wants
 * the output. @since 0.1 */
static inline void tn_tile_store(const tn_exec *x, uint32_t out, int64_t at, int64_t count,
                                 const double *tile)
{
    const tn_tensor *t = x->out[out];

    if (tn_exec_mode(x, out) == TN_MODE_NONE)
        return;
    if (t->dtype == TN_F64)
        for (int64_t i = 0; i < count; i++)
            ((double *)t->data)[at + i] = tile[i];
    else if (t->dtype == TN_F32)
        for (int64_t i = 0; i < count; i++)
            ((float *)t->data)[at + i] = (float)tile[i];
    else if (t->dtype == TN_F16)
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)t->data)[at + i] = tn_f16_store(tile[i]);
    else
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)t->data)[at + i] = tn_bf16_store(tile[i]);
}

/** Element `at` of a dense tensor of f16, bf16, f32 or f64. @since 0.1 */
static inline double tn_float_get(const tn_tensor *t, int64_t at)
{
    switch (t->dtype) {
    case TN_F64:
        return ((const double *)t->data)[at];
    case TN_F32:
        return (double)((const float *)t->data)[at];
    case TN_F16:
        return tn_f16_load(((const uint16_t *)t->data)[at]);
    default:
        return tn_bf16_load(((const uint16_t *)t->data)[at]);
    }
}

/** Stores one, rounded once. Whether the output is wanted is the caller's to ask: tn_exec_mode. @since 0.1 */
static inline void tn_float_set(const tn_tensor *t, int64_t at, double value)
{
    switch (t->dtype) {
    case TN_F64:
        ((double *)t->data)[at] = value;
        break;
    case TN_F32:
        ((float *)t->data)[at] = (float)value;
        break;
    case TN_F16:
        ((uint16_t *)t->data)[at] = tn_f16_store(value);
        break;
    default:
        ((uint16_t *)t->data)[at] = tn_bf16_store(value);
    }
}

/** A dense tensor as rows along one axis: `count` rows of `size` elements, `step` elements apart.
 *
 *     const tn_rows rows = tn_rows_along(x->in[0], axis);
 *
 *     for (int64_t row = 0; row < rows.count; row++)
 *         for (int64_t k = 0, at = tn_rows_first(&rows, row); k < rows.size; k++, at += rows.step)
 *             sum += tn_float_get(x->in[0], at);
 */
typedef struct tn_rows {
    int64_t count, size, step;
} tn_rows;

/** Negative axes count from the end; the axis is one that the tensor has. @since 0.1 */
static inline tn_rows tn_rows_along(const tn_tensor *t, int64_t axis)
{
    tn_rows r = {1, 1, 1};

    axis += axis < 0 ? t->ndim : 0;
    for (int32_t d = 0; d < t->ndim; d++)
        *(d < axis ? &r.count : d == axis ? &r.size : &r.step) *= t->shape[d];
    r.count *= r.step;
    return r;
}

/** The first element of row `row`. @since 0.1 */
static inline int64_t tn_rows_first(const tn_rows *r, int64_t row)
{
    return row / r->step * r->size * r->step + row % r->step;
}

/** `prepare` of a kernel that goes by tiles on one thread and keeps nothing. @since 0.1 */
static inline tn_status tn_prepare_tiles(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->est_ns = 100 + (uint64_t)tn_tensor_count(node->out[0]);
    return TN_OK;
}

/** The same of a pointwise one, whose output may take over the memory of its first input. @since 0.1 */
static inline tn_status tn_prepare_pointwise(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (plan->inplace)
        plan->inplace[0] = 0;
    return tn_prepare_tiles(plugin, node, plan, err);
}

/* ---- tables, as they mostly are ------------------------------------------------------------------------ */

/** A kernel for one version of an operator: the same bits from run to run, called "OPERATOR.loop".
 * @since 0.1 */
#define TN_KERNEL_SINCE(version_, op_, device_, types_, prepare_, run_)                                      \
    {                                                                                                        \
        (uint32_t) TN_END(tn_kernel, release), 64, op_, op_ ".loop", device_, "", version_, version_,        \
            TN_KERNEL_DETERMINISTIC, types_, 0, 0, prepare_, run_, NULL                                      \
    }
/** Of version 1. @since 0.1 */
#define TN_KERNEL(op_, device_, types_, prepare_, run_)                                                      \
    TN_KERNEL_SINCE(1, op_, device_, types_, prepare_, run_)
/** The tables that a plugin lists, in static memory: TN_OPS("acme-fft", &fft, &ifft). @since 0.1 */
#define TN_OPS(id_, ...)                                                                                     \
    {                                                                                                        \
        TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, id_), (const tn_op *const[])                            \
        {                                                                                                    \
            __VA_ARGS__, NULL                                                                                \
        }                                                                                                    \
    }
/** Kernels for a type of device: TN_KERNELS("cpu", &fft_kernel). @since 0.1 */
#define TN_KERNELS(device_, ...)                                                                             \
    {                                                                                                        \
        TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, device_),                             \
            (const tn_kernel *const[]){__VA_ARGS__, NULL}, NULL                                              \
    }

#ifdef __cplusplus
}
#endif

#endif

/*
 * Elements of every data type as doubles, and what counts as equal: integers exactly; floating point within a
 * bound for each element and a tighter one for the mean square of all differences.
 */
#include <math.h>
#include <string.h>

#include "lab.h"
#include "tenon/plugin/util.h"

bool chk_is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

bool chk_is_unsigned(int32_t dtype)
{
    return dtype == TN_U8 || dtype == TN_U16 || dtype == TN_U32 || dtype == TN_U64 || dtype == TN_BOOL ||
           dtype == TN_U4;
}

static double other_get(const void *data, int32_t dtype, int64_t index)
{
    const uint64_t bytes = tn_dtype_bytes(dtype), above = 64 - 8 * bytes;
    union {
        uint64_t raw;
        uint16_t half;
    } v = {0}; /* little end first */

    if (tn_dtype_bits(dtype) < 8)
        return tn_packed_get(data, dtype, index);
    memcpy(&v, (const char *)data + (uint64_t)index * bytes, (size_t)bytes);
    if (dtype == TN_F16)
        return tn_f16_load(v.half);
    if (dtype == TN_BF16)
        return tn_bf16_load(v.half);
    return chk_is_unsigned(dtype) ? (double)v.raw : (double)((int64_t)(v.raw << above) >> above);
}

double chk_get(const void *data, int32_t dtype, int64_t index)
{
    float single;
    double v;

    if (dtype == TN_F32) {
        memcpy(&single, (const char *)data + 4 * index, sizeof single);
        return (double)single;
    }
    if (dtype != TN_F64)
        return other_get(data, dtype, index);
    memcpy(&v, (const char *)data + 8 * index, sizeof v);
    return v;
}

static void half_set(char *at, int32_t dtype, double value)
{
    const uint16_t half = dtype == TN_F16 ? tn_f16_store(value) : tn_bf16_store(value);

    memcpy(at, &half, sizeof half);
}

/* Not a number: 0. */
static void whole_set(void *data, int32_t dtype, int64_t index, double value)
{
    const int64_t cut = value > -9e18 && value < 9e18 ? (int64_t)value : 0;
    const int64_t whole = dtype == TN_BOOL ? value != 0 : cut; /* little end first */
    const uint64_t bits = tn_dtype_bits(dtype);

    if (bits == 8)
        memcpy((char *)data + index, &whole, 1);
    else if (bits == 16)
        memcpy((char *)data + 2 * index, &whole, 2);
    else if (bits == 32)
        memcpy((char *)data + 4 * index, &whole, 4);
    else if (bits == 64)
        memcpy((char *)data + 8 * index, &whole, 8);
    else
        tn_packed_set(data, index, (int32_t)(whole & 15));
}

void chk_set(void *data, int32_t dtype, int64_t index, double value)
{
    const float single = (float)value;

    if (dtype == TN_F32)
        memcpy((char *)data + 4 * index, &single, sizeof single);
    else if (dtype == TN_F64)
        memcpy((char *)data + 8 * index, &value, sizeof value);
    else if (dtype == TN_F16 || dtype == TN_BF16)
        half_set((char *)data + 2 * index, dtype, value);
    else
        whole_set(data, dtype, index, value);
}

void chk_convert(const void *from, int32_t from_dtype, void *to, int32_t to_dtype, int64_t count)
{
    if (from_dtype == to_dtype) {
        memcpy(to, from, (size_t)tn_dtype_size(to_dtype, (uint64_t)count));
        return;
    }
    for (int64_t i = 0; i < count; i++)
        chk_set(to, to_dtype, i, chk_get(from, from_dtype, i));
}

/* ---- equal enough ------------------------------------------------------------------------------------ */

typedef struct type_bounds {
    double element;       /* of an element's difference, relative to the larger of its size and the mean's */
    double largest, tiny; /* tiny: below lies what no longer has full precision */
} type_bounds;

static const type_bounds bounds_of[TN_DTYPE_LIMIT] = {
    [TN_F32] = {2e-5, 3.4e38, 1e-37},
    [TN_F64] = {1e-11, 1.7e308, 1e-300},
    [TN_F16] = {4e-3, 65504.0, 1e-4},
    [TN_BF16] = {3e-2, 3.3e38, 1e-37},
    [TN_U8] = {0, 255, 0},
    [TN_I8] = {0, 127, 0},
    [TN_I16] = {0, 32767, 0},
    [TN_U16] = {0, 65535, 0},
    [TN_I32] = {0, 2147483647.0, 0},
    [TN_U32] = {0, 4294967295.0, 0},
    [TN_I64] = {0, 9e15, 0},
    [TN_U64] = {0, 9e15, 0},
    [TN_BOOL] = {0, 1, 0},
    [TN_I4] = {0, 7, 0},
    [TN_U4] = {0, 15, 0},
};

static const char *ints_differ(chk_arena *a, const void *got, int32_t dtype, const void *want,
                               int32_t want_dtype, int64_t count)
{
    const uint64_t bytes = tn_dtype_bytes(dtype);

    for (int64_t i = 0; i < count; i++) {
        const double w = chk_get(want, want_dtype, i), g = chk_get(got, dtype, i);
        const char *at = (const char *)got + (uint64_t)i * bytes;
        const double low = chk_is_unsigned(dtype) ? 0 : -bounds_of[dtype].largest;

        if (tn_dtype_bits(dtype) < 8 && g == w)
            continue;
        if (want_dtype == dtype && !memcmp(at, (const char *)want + (uint64_t)i * bytes, (size_t)bytes))
            continue;
        if (want_dtype != dtype &&
            (!isfinite(w) || w != floor(w) || w < low || w > bounds_of[dtype].largest || w == g))
            continue; /* floating point does not say what integers do here */
        return chk_text(a, "element %lld is %.17g, expected %.17g", (long long)i, g, w);
    }
    return NULL;
}

static double mean_size(const void *want, int32_t dtype, int64_t count)
{
    double sum = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < count; i++) {
        const double w = chk_get(want, dtype, i);

        if (isfinite(w) && fabs(w) < 1e100) {
            sum += w * w;
            n++;
        }
    }
    return n ? sqrt(sum / (double)n) : 0;
}

const char *chk_values_differ(chk_arena *a, const void *got, int32_t got_dtype, const void *want,
                              int32_t want_dtype, int64_t count, double loose)
{
    const type_bounds *b = &bounds_of[got_dtype], *w_bounds = &bounds_of[want_dtype];
    const double bound = loose * (w_bounds->element > b->element ? w_bounds->element : b->element);
    const double size = mean_size(want, want_dtype, count);
    double squares = 0, n = 0;

    if (!chk_is_float(got_dtype))
        return ints_differ(a, got, got_dtype, want, want_dtype, count);
    for (int64_t i = 0; i < count; i++) {
        const double w = chk_get(want, want_dtype, i), g = chk_get(got, got_dtype, i);
        const double scale = fabs(w) > size ? fabs(w) : size;

        if (w == g || (isnan(w) && isnan(g)) ||
            (fabs(w) >= 0.99 * b->largest && fabs(g) >= 0.99 * b->largest && (g > 0) == (w > 0)))
            continue;
        if (!(fabs(g - w) <= bound * scale + b->tiny))
            return chk_text(a, "element %lld is %.17g, expected %.17g (allowed: %.3g)", (long long)i, g, w,
                            bound * scale);
        if (scale > b->tiny * 1e3) {
            squares += (g - w) * (g - w) / (scale * scale);
            n++;
        }
    }
    if (n > 8 && sqrt(squares / n) > bound / 2)
        return chk_text(a, "the differences' mean square root is %.3g of the values, allowed: %.3g",
                        sqrt(squares / n), bound / 2);
    return NULL;
}

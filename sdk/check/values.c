/*
 * Elements of every data type as doubles, and what counts as equal: integers exactly; floating point within a
 * bound for each element and a tighter one for the mean square of all differences.
 */
#include <math.h>
#include <string.h>

#include "lab.h"

bool chk_is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

static uint32_t bits_of(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static double half_get(uint16_t h)
{
    const uint32_t exponent = h >> 10 & 31u, fraction = h & 1023u;
    double v;

    if (exponent == 31)
        v = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        v = ldexp((double)fraction, -24);
    else
        v = ldexp((double)(fraction + 1024u), (int)exponent - 25);
    return h & 0x8000u ? -v : v;
}

static uint16_t half_set(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000u : 0u;
    const double m = fabs(v);
    int exponent;

    if (isnan(v))
        return sign | 0x7e00u;
    if (m >= 65520.0)
        return sign | 0x7c00u;
    if (m < ldexp(1.0, -14))
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(m, 24)));
    (void)frexp(m, &exponent);
    return (uint16_t)(sign | (uint16_t)((uint32_t)(exponent + 14) * 1024u - 1024u +
                                        (uint32_t)nearbyint(ldexp(m, 11 - exponent))));
}

static uint16_t bf16_set(double v)
{
    uint32_t bits = bits_of((float)v);

    if (isnan(v))
        return 0x7fc0u;
    bits += 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)(bits >> 16);
}

double chk_get(const void *data, int32_t dtype, int64_t index)
{
    const char *at = (const char *)data + (uint64_t)index * tn_dtype_bytes(dtype);
    union {
        float f;
        double d;
        uint16_t h;
        int32_t i4;
        int64_t i8;
        uint32_t u4;
        uint64_t u8;
    } v;

    if (tn_dtype_bits(dtype) < 8)
        return tn_packed_get(data, dtype, index);
    memcpy(&v, at, (size_t)tn_dtype_bytes(dtype));
    switch (dtype) {
    case TN_F32:
        return (double)v.f;
    case TN_F64:
        return v.d;
    case TN_F16:
        return half_get(v.h);
    case TN_BF16:
        return (double)float_of((uint32_t)v.h << 16);
    case TN_I32:
        return v.i4;
    case TN_I64:
        return (double)v.i8;
    case TN_U32:
        return v.u4;
    case TN_U64:
        return (double)v.u8;
    case TN_I16:
        return (int16_t)v.h;
    case TN_U16:
        return v.h;
    case TN_I8:
        return *(const signed char *)at;
    default:
        return *(const unsigned char *)at;
    }
}

void chk_set(void *data, int32_t dtype, int64_t index, double value)
{
    char *at = (char *)data + (uint64_t)index * tn_dtype_bytes(dtype);
    const float single = (float)value;
    const uint16_t half = dtype == TN_F16 ? half_set(value) : bf16_set(value);
    int64_t whole;

    if (dtype == TN_F32) {
        memcpy(at, &single, 4);
        return;
    }
    if (dtype == TN_F64) {
        memcpy(at, &value, 8);
        return;
    }
    if (dtype == TN_F16 || dtype == TN_BF16) {
        memcpy(at, &half, 2);
        return;
    }
    whole = isfinite(value) && fabs(value) < 9e18 ? (int64_t)value : 0;
    if (dtype == TN_BOOL)
        whole = value != 0;
    if (tn_dtype_bits(dtype) < 8)
        tn_packed_set(data, index, (int32_t)(whole & 15));
    else
        memcpy(at, &whole, (size_t)tn_dtype_bytes(dtype)); /* little end first */
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

static bool is_unsigned(int32_t dtype)
{
    return dtype == TN_U8 || dtype == TN_U16 || dtype == TN_U32 || dtype == TN_U64 || dtype == TN_BOOL ||
           dtype == TN_U4;
}

static const char *ints_differ(chk_arena *a, const void *got, int32_t dtype, const void *want,
                               int32_t want_dtype, int64_t count)
{
    const uint64_t bytes = tn_dtype_bytes(dtype);

    for (int64_t i = 0; i < count; i++) {
        const double w = chk_get(want, want_dtype, i), g = chk_get(got, dtype, i);
        const char *at = (const char *)got + (uint64_t)i * bytes;
        const double low = is_unsigned(dtype) ? 0 : -bounds_of[dtype].largest;

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

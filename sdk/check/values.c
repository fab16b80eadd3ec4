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

/* Not a number: 0. */
static int64_t cut(double value)
{
    return value > -9e18 && value < 9e18 ? (int64_t)value : 0;
}

/* Readers and writers of many elements: one for each type that whole bytes hold. */
#define ELEMENTS(name, T, load, store)                                                                       \
    static void name##_get(const char *at, int64_t count, double *out)                                       \
    {                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                \
            T v;                                                                                             \
                                                                                                             \
            memcpy(&v, at + (int64_t)sizeof v * i, sizeof v);                                                \
            out[i] = (double)load(v);                                                                        \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_set(char *at, int64_t count, const double *values)                                    \
    {                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                \
            const T v = (T)store(values[i]);                                                                 \
                                                                                                             \
            memcpy(at + (int64_t)sizeof v * i, &v, sizeof v);                                                \
        }                                                                                                    \
    }
#define AS_IT_IS(v) (v)
#define IS_TRUE(v) ((v) != 0)

ELEMENTS(f32, float, AS_IT_IS, AS_IT_IS)
ELEMENTS(f64, double, AS_IT_IS, AS_IT_IS)
ELEMENTS(f16, uint16_t, tn_f16_load, tn_f16_store)
ELEMENTS(bf16, uint16_t, tn_bf16_load, tn_bf16_store)
ELEMENTS(u8, uint8_t, AS_IT_IS, cut)
ELEMENTS(i8, int8_t, AS_IT_IS, cut)
ELEMENTS(u16, uint16_t, AS_IT_IS, cut)
ELEMENTS(i16, int16_t, AS_IT_IS, cut)
ELEMENTS(u32, uint32_t, AS_IT_IS, cut)
ELEMENTS(i32, int32_t, AS_IT_IS, cut)
ELEMENTS(u64, uint64_t, AS_IT_IS, cut)
ELEMENTS(i64, int64_t, AS_IT_IS, cut)
ELEMENTS(boolean, uint8_t, AS_IT_IS, IS_TRUE)

static const struct {
    void (*get)(const char *at, int64_t count, double *out);
    void (*set)(char *at, int64_t count, const double *values);
} elements_of[TN_DTYPE_LIMIT] = {
    [TN_F32] = {f32_get, f32_set},
    [TN_F64] = {f64_get, f64_set},
    [TN_F16] = {f16_get, f16_set},
    [TN_U8] = {u8_get, u8_set},
    [TN_I8] = {i8_get, i8_set},
    [TN_U16] = {u16_get, u16_set},
    [TN_I16] = {i16_get, i16_set},
    [TN_U32] = {u32_get, u32_set},
    [TN_I32] = {i32_get, i32_set},
    [TN_U64] = {u64_get, u64_set},
    [TN_I64] = {i64_get, i64_set},
    [TN_BF16] = {bf16_get, bf16_set},
    [TN_BOOL] = {boolean_get, boolean_set},
};

void chk_get_all(const void *data, int32_t dtype, int64_t first, int64_t count, double *out)
{
    const uint64_t bytes = tn_dtype_bytes(dtype);

    if (elements_of[dtype].get)
        elements_of[dtype].get((const char *)data + (uint64_t)first * bytes, count, out);
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = tn_packed_get(data, dtype, first + i);
}

void chk_set_all(void *data, int32_t dtype, int64_t first, int64_t count, const double *values)
{
    const uint64_t bytes = tn_dtype_bytes(dtype);

    if (elements_of[dtype].set)
        elements_of[dtype].set((char *)data + (uint64_t)first * bytes, count, values);
    else
        for (int64_t i = 0; i < count; i++)
            tn_packed_set(data, first + i, (int32_t)(cut(values[i]) & 15));
}

double chk_get(const void *data, int32_t dtype, int64_t index)
{
    float single;
    double v;

    if (dtype == TN_F32) { /* the usual one */
        memcpy(&single, (const char *)data + 4 * index, sizeof single);
        return (double)single;
    }
    chk_get_all(data, dtype, index, 1, &v);
    return v;
}

void chk_set(void *data, int32_t dtype, int64_t index, double value)
{
    const float single = (float)value;

    if (dtype == TN_F32)
        memcpy((char *)data + 4 * index, &single, sizeof single);
    else
        chk_set_all(data, dtype, index, 1, &value);
}

void chk_convert(const void *from, int32_t from_dtype, void *to, int32_t to_dtype, int64_t count)
{
    double values[CHK_BLOCK];

    if (from_dtype == to_dtype) {
        memcpy(to, from, (size_t)tn_dtype_size(to_dtype, (uint64_t)count));
        return;
    }
    for (int64_t i = 0; i < count; i += CHK_BLOCK) {
        const int64_t n = count - i < CHK_BLOCK ? count - i : CHK_BLOCK;

        chk_get_all(from, from_dtype, i, n, values);
        chk_set_all(to, to_dtype, i, n, values);
    }
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
    double sum = 0, w[CHK_BLOCK];
    int64_t n = 0;

    for (int64_t i = 0; i < count; i++) {
        const int64_t k = i % CHK_BLOCK;

        if (k == 0)
            chk_get_all(want, dtype, i, count - i < CHK_BLOCK ? count - i : CHK_BLOCK, w);
        if (isfinite(w[k]) && fabs(w[k]) < 1e100) {
            sum += w[k] * w[k];
            n++;
        }
    }
    return n ? sqrt(sum / (double)n) : 0;
}

/* The same bits, which are no difference in any type. */
static bool same_bits(const void *got, int32_t got_dtype, const void *want, int32_t want_dtype, int64_t count)
{
    return got_dtype == want_dtype && tn_dtype_bits(got_dtype) >= 8 && count > 0 &&
           !memcmp(got, want, (size_t)count * (size_t)tn_dtype_bytes(got_dtype));
}

const char *chk_values_differ(chk_arena *a, const void *got, int32_t got_dtype, const void *want,
                              int32_t want_dtype, int64_t count, double loose)
{
    const type_bounds *b = &bounds_of[got_dtype], *w_bounds = &bounds_of[want_dtype];
    const double bound = loose * (w_bounds->element > b->element ? w_bounds->element : b->element);
    double size, squares = 0, n = 0, wants[CHK_BLOCK], gots[CHK_BLOCK];

    if (same_bits(got, got_dtype, want, want_dtype, count))
        return NULL;
    if (!chk_is_float(got_dtype))
        return ints_differ(a, got, got_dtype, want, want_dtype, count);
    size = mean_size(want, want_dtype, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = i % CHK_BLOCK, block = count - i < CHK_BLOCK ? count - i : CHK_BLOCK;
        double w, g, scale;

        if (k == 0) {
            chk_get_all(want, want_dtype, i, block, wants);
            chk_get_all(got, got_dtype, i, block, gots);
        }
        w = wants[k];
        g = gots[k];
        scale = fabs(w) > size ? fabs(w) : size;

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

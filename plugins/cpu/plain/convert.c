/* The table of conversions: one row per data type, its loops from convert.inc. Saturation is decided in the
 * wide type, so no conversion is undefined in C. */
#include <float.h>
#include <math.h>

#include "../common/isa.h"
#include "convert.h"

#define FILL_PART 16384 /* bytes, a multiple of every element */

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

static const tncpu_shorts *const shorts[TNCPU_ISAS] = {&tncpu_shorts_base, &tncpu_shorts_avx2,
                                                       &tncpu_shorts_avx512};
#define SHORTS (*shorts[tncpu_isa()])

static void saturate(const double *from, int64_t *to, int64_t n, double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = tnb_cut(from[i], low, high);
}

/* Doubles between which and a short float is one rounding. */
static void odd_floats(const double *from, float *to, int64_t n)
{
    int64_t tiny = 0;

    for (int64_t i = 0; i < n; i++)
        tiny += (fabs(from[i]) < (double)FLT_MIN) & (from[i] != 0);
    for (int64_t i = 0; i < n; i++)
        to[i] = tnb_odd_normal(from[i]);
    for (int64_t i = 0; tiny && i < n; i++)
        to[i] = tnb_odd_float(from[i]);
}

static float plus_f32(float a, float b)
{
    return a + b;
}

static double plus_f64(double a, double b)
{
    return a + b;
}

static int32_t plus_i32(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static int64_t plus_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

#define PLUS(a, b)                                                                                           \
    _Generic((a), float : plus_f32, double : plus_f64, int32_t : plus_i32, int64_t : plus_i64)(a, b)

#define N f32
#define T float
#define K float
#define FROM_U(x) ((T)(x))
#include "convert.inc"

#define N f64
#define T double
#define K double
#define FROM_U(x) ((T)(x))
#include "convert.inc"

#define N f16
#define COSTLY
#define T uint16_t
#define K float
#define TO_K tnb_half_float
#define FROM_K tnb_float_half
#define FROM_I(x) tnb_float_half((float)(x))
#define FROM_U(x) tnb_float_half((float)(x))
#include "convert.inc"

#define N bf16
#define COSTLY
#define T uint16_t
#define K float
#define TO_K tnb_bf16_float
#define FROM_K tnb_float_bf16
#define FROM_I(x) tnb_float_bf16((float)(x))
#define FROM_U(x) tnb_float_bf16((float)(x))
#include "convert.inc"

#define N u8
#define T uint8_t
#define K int32_t
#define LOW 0
#define HIGH UINT8_MAX
#include "convert.inc"

#define N i8
#define T int8_t
#define K int32_t
#define LOW INT8_MIN
#define HIGH INT8_MAX
#include "convert.inc"

#define N bln
#define T uint8_t
#define K int32_t
#define TO_K(x) ((int32_t)((x) != 0))
#define FROM_K(x) ((uint8_t)((x) != 0))
#define FROM_F(x) ((uint8_t)((x) != 0.0))
#define FROM_I(x) ((uint8_t)((x) != 0))
#include "convert.inc"

#define N i16
#define T int16_t
#define K int32_t
#define LOW INT16_MIN
#define HIGH INT16_MAX
#include "convert.inc"

#define N u16
#define T uint16_t
#define K int32_t
#define LOW 0
#define HIGH UINT16_MAX
#include "convert.inc"

#define N i32
#define T int32_t
#define K int32_t
#define LOW INT32_MIN
#define HIGH INT32_MAX
#include "convert.inc"

#define N u32
#define T uint32_t
#define K int64_t
#define LOW 0
#define HIGH UINT32_MAX
#include "convert.inc"

#define N i64
#define T int64_t
#define K int64_t
#define FROM_F tnb_i64_of_double
#include "convert.inc"

#define N u64
#define T uint64_t
#define K int64_t
#define FROM_F tnb_u64_of_double
#include "convert.inc"

#define ROW_WITH(n, kind, t, k, native, store_unsigned)                                                      \
    {                                                                                                        \
        kind, sizeof(t), sizeof(k), native, load_##n, store_##n, add_##n, fill_##n, store_f_##n,             \
            store_i_##n, store_unsigned                                                                      \
    }
#define ROW(n, kind, t, k, native) ROW_WITH(n, kind, t, k, native, NULL)
#define ROW_FLOAT(n, kind, t, k, native) ROW_WITH(n, kind, t, k, native, store_u_##n)

const tncpu_convert tncpu_converts[TN_DTYPE_LIMIT] = {
    [TN_F32] = ROW_FLOAT(f32, TNCPU_K_F32, float, float, 1),
    [TN_F64] = ROW_FLOAT(f64, TNCPU_K_F64, double, double, 1),
    [TN_F16] = ROW_FLOAT(f16, TNCPU_K_F32, uint16_t, float, 0),
    [TN_U8] = ROW(u8, TNCPU_K_I32, uint8_t, int32_t, 0),
    [TN_I32] = ROW(i32, TNCPU_K_I32, int32_t, int32_t, 1),
    [TN_I8] = ROW(i8, TNCPU_K_I32, int8_t, int32_t, 0),
    [TN_I64] = ROW(i64, TNCPU_K_I64, int64_t, int64_t, 1),
    [TN_BOOL] = ROW(bln, TNCPU_K_I32, uint8_t, int32_t, 0),
    [TN_I16] = ROW(i16, TNCPU_K_I32, int16_t, int32_t, 0),
    [TN_U16] = ROW(u16, TNCPU_K_I32, uint16_t, int32_t, 0),
    [TN_U32] = ROW(u32, TNCPU_K_I64, uint32_t, int64_t, 0),
    [TN_U64] = ROW(u64, TNCPU_K_I64, uint64_t, int64_t, 1),
    [TN_BF16] = ROW_FLOAT(bf16, TNCPU_K_F32, uint16_t, float, 0),
};

const tncpu_convert *const tncpu_compute[TNCPU_KINDS] = {
    [TNCPU_K_F32] = &tncpu_converts[TN_F32],
    [TNCPU_K_F64] = &tncpu_converts[TN_F64],
    [TNCPU_K_I32] = &tncpu_converts[TN_I32],
    [TNCPU_K_I64] = &tncpu_converts[TN_I64],
};

/* ---- between compute types -------------------------------------------------------------------- */

#define CROSS(name, F, T, expression)                                                                        \
    static void name(const void *from, void *to, int64_t n)                                                  \
    {                                                                                                        \
        const F *x = from;                                                                                   \
        T *y = to;                                                                                           \
                                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                      \
            y[i] = (T)(expression);                                                                          \
    }
CROSS(i64_of_i32, int32_t, int64_t, x[i])
CROSS(f32_of_i32, int32_t, float, x[i])
CROSS(f64_of_i32, int32_t, double, x[i])
CROSS(f32_of_i64, int64_t, float, x[i])
CROSS(f64_of_i64, int64_t, double, x[i])
CROSS(f64_of_f32, float, double, x[i])
CROSS(truth_of_f32, float, int32_t, x[i] != 0)
CROSS(truth_of_f64, double, int32_t, x[i] != 0)
CROSS(truth_of_i64, int64_t, int32_t, x[i] != 0)

const tncpu_cross tncpu_widen[TNCPU_KINDS][TNCPU_KINDS] = {
    [TNCPU_K_I32] = {[TNCPU_K_I64] = i64_of_i32, [TNCPU_K_F32] = f32_of_i32, [TNCPU_K_F64] = f64_of_i32},
    [TNCPU_K_I64] = {[TNCPU_K_F32] = f32_of_i64, [TNCPU_K_F64] = f64_of_i64},
    [TNCPU_K_F32] = {[TNCPU_K_F64] = f64_of_f32},
};

const tncpu_cross tncpu_truth[TNCPU_KINDS] = {
    [TNCPU_K_F32] = truth_of_f32,
    [TNCPU_K_F64] = truth_of_f64,
    [TNCPU_K_I64] = truth_of_i64,
};

/* ---- doubles ----------------------------------------------------------------------------------- */

static void f64_of_u64(const uint64_t *from, double *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

void tncpu_numbers(const tn_tensor *t, int64_t at, int64_t stride, int64_t n, double *to)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    const char *from = (const char *)t->data + at * c->bytes;
    tncpu_tile tile;

    if (c->kind == TNCPU_K_F64) {
        c->load(from, stride, to, n);
        return;
    }
    for (int64_t i = 0; i < n; i += TNCPU_TILE) {
        const int64_t count = n - i < TNCPU_TILE ? n - i : TNCPU_TILE;
        const char *part = from + i * stride * c->bytes;

        if (!c->native || stride != 1) {
            c->load(part, stride, &tile, count);
            part = (const char *)&tile;
        }
        if (t->dtype == TN_U64)
            f64_of_u64((const void *)part, to + i, count);
        else
            tncpu_widen[c->kind][TNCPU_K_F64](part, to + i, count);
    }
}

void tncpu_numbers_store(const tn_tensor *t, int64_t at, int64_t stride, int64_t n, const double *from)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];

    c->store_f(from, (char *)t->data + at * c->bytes, stride, n);
}

double tncpu_number(const tn_tensor *t, int64_t at)
{
    double value;

    tncpu_numbers(t, at, 1, 1, &value);
    return value;
}

void tncpu_fill(const tn_tensor *t, double value)
{
    const int64_t size = tncpu_converts[t->dtype].bytes, bytes = tn_tensor_count(t) * size;
    char *to = t->data;

    if (value == 0 && !signbit(value))
        memset(to, 0, (size_t)bytes);
    if (bytes == 0 || (value == 0 && !signbit(value)))
        return;
    tncpu_numbers_store(t, 0, 1, 1, &value);
    for (int64_t done = size; done < bytes;) { /* what is filled is copied behind itself, out of the cache */
        const int64_t next = done < FILL_PART ? done : FILL_PART;

        memcpy(to + done, to, (size_t)(next < bytes - done ? next : bytes - done));
        done += next;
    }
}

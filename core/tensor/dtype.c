/*
 * Data types: names, the 16-bit floats, and casts between all of them.
 *
 * A cast goes through one of three wide types (double for floats, int64_t, uint64_t for u64) in pieces that
 * stay in the first-level cache: 13 loads and 3 x 13 stores instead of 169 loops. Each value is rounded once,
 * except 64-bit integers to bfloat16 (through float). The pairs that training uses have direct loops.
 */
#include <math.h>

#include "tensor/internal.h"

#define PIECE 256 /* elements: 2 KiB of wide values */
#define TNI_GLUE_(a, b) a##b
#define TNI_GLUE(a, b) TNI_GLUE_(a, b)

static const char *const names[TN_DTYPE_LIMIT] = {"float32", "float64", "float16",  "uint8", "int32",
                                                  "int8",    "int64",   "bool",     "int16", "uint16",
                                                  "uint32",  "uint64",  "bfloat16", "int4",  "uint4"};
static const char *const short_names[TN_DTYPE_LIMIT] = {
    "f32", "f64", "f16", "u8", "i32", "i8", "i64", "bool", "i16", "u16", "u32", "u64", "bf16", "i4", "u4"};

const char *tni_dtype_name(int32_t dtype)
{
    return dtype >= 0 && dtype < TN_DTYPE_LIMIT ? names[dtype] : NULL;
}

const char *tni_storage_type_name(int32_t storage_type)
{
    static const char *const all[] = {"dense", "row_sparse", "csr"};

    return storage_type >= TN_STORAGE_DENSE && storage_type <= TN_STORAGE_CSR ? all[storage_type] : NULL;
}

bool tni_dtype_parse(const char *text, int32_t *out)
{
    for (int32_t i = 0; text && i < TN_DTYPE_LIMIT; i++)
        if (!strcmp(text, names[i]) || !strcmp(text, short_names[i])) {
            *out = i;
            return true;
        }
    return false;
}

static uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static float of_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

float tni_half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;

    if (exponent == 0) /* units of 2^-24: exact */
        return of_bits(sign | bits_of((float)mantissa * 0x1p-24f));
    if (exponent == 31)
        return of_bits(sign | 0x7f800000u | mantissa << 13);
    return of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t tni_float_to_half(float f)
{
    uint32_t x = bits_of(f), sign = (x >> 16) & 0x8000u, a = x & 0x7fffffffu;

    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((a >> 13) & 0x3ffu));
    if (a >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) /* below 2^-14: adding a half leaves units of 2^-24, rounded to nearest even */
        return (uint16_t)(sign | (bits_of(of_bits(a) + 0.5f) - 0x3f000000u));
    a += 0xc8000fffu + ((a >> 13) & 1u); /* exponent minus 112, rounding to nearest even */
    return (uint16_t)(sign | a >> 13);
}

float tni_bf16_to_float(uint16_t b)
{
    return of_bits((uint32_t)b << 16);
}

uint16_t tni_float_to_bf16(float f)
{
    uint32_t x = bits_of(f);

    if ((x & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(x >> 16 | 0x40u);
    return (uint16_t)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}

/* Rounds to odd: a second rounding to fewer bits then gives what one rounding of the double would. */
static float odd_float(double d)
{
    float f = (float)d;
    uint32_t x;

    if ((double)f == d || d != d)
        return f;
    x = bits_of(f);
    if (fabs((double)f) > fabs(d))
        x--;
    return of_bits(x | 1u);
}

#define CLAMP(x, low, high, beyond, type)                                                                    \
    ((x) >= (beyond)        ? (type)(high)                                                                   \
     : (x) > (double)(low)  ? (type)(x)                                                                      \
     : (x) <= (double)(low) ? (type)(low)                                                                    \
                            : (type)0)

#define T float
#define N f32
#define WIDE double
#define TO_WIDE(x) ((double)(x))
#define FROM_F(x) ((float)(x))
#define FROM_I(x) ((float)(x))
#define FROM_U(x) ((float)(x))
#define PLUS(a, b) ((a) + (b))
#include "tensor/cast.inc"

#define T double
#define N f64
#define WIDE double
#define TO_WIDE(x) (x)
#define FROM_F(x) (x)
#define FROM_I(x) ((double)(x))
#define FROM_U(x) ((double)(x))
#define PLUS(a, b) ((a) + (b))
#include "tensor/cast.inc"

#define T uint16_t
#define N f16
#define WIDE double
#define TO_WIDE(x) ((double)tni_half_to_float(x))
#define FROM_F(x) tni_float_to_half(odd_float(x))
#define FROM_I(x) tni_float_to_half((float)(x))
#define FROM_U(x) tni_float_to_half((float)(x))
#define PLUS(a, b) tni_float_to_half(tni_half_to_float(a) + tni_half_to_float(b))
#include "tensor/cast.inc"

#define T uint16_t
#define N bf16
#define WIDE double
#define TO_WIDE(x) ((double)tni_bf16_to_float(x))
#define FROM_F(x) tni_float_to_bf16(odd_float(x))
#define FROM_I(x) tni_float_to_bf16((float)(x))
#define FROM_U(x) tni_float_to_bf16((float)(x))
#define PLUS(a, b) tni_float_to_bf16(tni_bf16_to_float(a) + tni_bf16_to_float(b))
#include "tensor/cast.inc"

#define T uint8_t
#define N bln
#define WIDE int64_t
#define TO_WIDE(x) ((x) != 0)
#define FROM_F(x) ((x) != 0)
#define FROM_I(x) ((x) != 0)
#define FROM_U(x) ((x) != 0)
#define PLUS(a, b) ((a) || (b))
#include "tensor/cast.inc"

#define T uint8_t
#define N u8
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, 0, UINT8_MAX, 256.0, uint8_t)
#define FROM_I(x) ((uint8_t)(x))
#define FROM_U(x) ((uint8_t)(x))
#define PLUS(a, b) ((uint8_t)((a) + (b)))
#include "tensor/cast.inc"

#define T int8_t
#define N i8
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, INT8_MIN, INT8_MAX, 128.0, int8_t)
#define FROM_I(x) ((int8_t)(x))
#define FROM_U(x) ((int8_t)(x))
#define PLUS(a, b) ((int8_t)((a) + (b)))
#include "tensor/cast.inc"

#define T uint16_t
#define N u16
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, 0, UINT16_MAX, 65536.0, uint16_t)
#define FROM_I(x) ((uint16_t)(x))
#define FROM_U(x) ((uint16_t)(x))
#define PLUS(a, b) ((uint16_t)((a) + (b)))
#include "tensor/cast.inc"

#define T int16_t
#define N i16
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, INT16_MIN, INT16_MAX, 32768.0, int16_t)
#define FROM_I(x) ((int16_t)(x))
#define FROM_U(x) ((int16_t)(x))
#define PLUS(a, b) ((int16_t)((a) + (b)))
#include "tensor/cast.inc"

#define T uint32_t
#define N u32
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, 0, UINT32_MAX, 4294967296.0, uint32_t)
#define FROM_I(x) ((uint32_t)(x))
#define FROM_U(x) ((uint32_t)(x))
#define PLUS(a, b) ((a) + (b))
#include "tensor/cast.inc"

#define T int32_t
#define N i32
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, INT32_MIN, INT32_MAX, 2147483648.0, int32_t)
#define FROM_I(x) ((int32_t)(x))
#define FROM_U(x) ((int32_t)(x))
#define PLUS(a, b) ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#include "tensor/cast.inc"

#define T int64_t
#define N i64
#define WIDE int64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, INT64_MIN, INT64_MAX, 9223372036854775808.0, int64_t)
#define FROM_I(x) (x)
#define FROM_U(x) ((int64_t)(x))
#define PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#include "tensor/cast.inc"

#define T uint64_t
#define N u64
#define WIDE uint64_t
#define TO_WIDE(x) (x)
#define FROM_F(x) CLAMP(x, 0, UINT64_MAX, 18446744073709551616.0, uint64_t)
#define FROM_I(x) ((uint64_t)(x))
#define FROM_U(x) (x)
#define PLUS(a, b) ((a) + (b))
#include "tensor/cast.inc"

typedef void (*load_fn)(const void *src, int64_t stride, void *wide, int64_t count);
typedef void (*store_fn)(const void *wide, void *dst, int64_t stride, int64_t count);
typedef void (*add_fn)(const void *src, int64_t src_stride, void *dst, int64_t dst_stride, int64_t count);

#define WIDE_F 0
#define WIDE_I 1
#define WIDE_U 2
#define ROW(name, wide)                                                                                      \
    {                                                                                                        \
        load_##name, add_##name, {store_f_##name, store_i_##name, store_u_##name}, wide                      \
    }
static const struct {
    load_fn load;
    add_fn add;
    store_fn store[3]; /* by wide type */
    uint32_t wide;
} rows[TN_I4] = {ROW(f32, WIDE_F), ROW(f64, WIDE_F), ROW(f16, WIDE_F), ROW(u8, WIDE_I),  ROW(i32, WIDE_I),
                 ROW(i8, WIDE_I),  ROW(i64, WIDE_I), ROW(bln, WIDE_I), ROW(i16, WIDE_I), ROW(u16, WIDE_I),
                 ROW(u32, WIDE_I), ROW(u64, WIDE_U), ROW(bf16, WIDE_F)};

/* Direct loops over contiguous memory. */
static void f32_f64(const float *src, double *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = (double)src[i];
}

static void f64_f32(const double *src, float *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)src[i];
}

static void f32_f16(const float *src, uint16_t *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = tni_float_to_half(src[i]);
}

static void f16_f32(const uint16_t *src, float *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = tni_half_to_float(src[i]);
}

static void f32_bf16(const float *src, uint16_t *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = tni_float_to_bf16(src[i]);
}

static void bf16_f32(const uint16_t *src, float *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = tni_bf16_to_float(src[i]);
}

static void u8_f32(const uint8_t *src, float *dst, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = (float)src[i];
}

static bool cast_direct(const void *src, int32_t from, void *dst, int32_t to, int64_t count)
{
    if (from == TN_F32 && to == TN_F64)
        f32_f64(src, dst, count);
    else if (from == TN_F64 && to == TN_F32)
        f64_f32(src, dst, count);
    else if (from == TN_F32 && to == TN_F16)
        f32_f16(src, dst, count);
    else if (from == TN_F16 && to == TN_F32)
        f16_f32(src, dst, count);
    else if (from == TN_F32 && to == TN_BF16)
        f32_bf16(src, dst, count);
    else if (from == TN_BF16 && to == TN_F32)
        bf16_f32(src, dst, count);
    else if (from == TN_U8 && to == TN_F32)
        u8_f32(src, dst, count);
    else
        return false;
    return true;
}

/* Memory of the program may begin at any address: each element goes as bytes, which is one move each. */
#define MOVE(size)                                                                                           \
    static void move_##size(const char *src, int64_t s, char *dst, int64_t d, int64_t count)                 \
    {                                                                                                        \
        for (int64_t i = 0; i < count; i++)                                                                  \
            memcpy(dst + i * d * size, src + i * s * size, size);                                            \
    }

MOVE(1)
MOVE(2)
MOVE(4)
MOVE(8)

static void move(const void *src, int64_t s, void *dst, int64_t d, uint64_t bytes, int64_t count)
{
    if (s == 1 && d == 1)
        memmove(dst, src, (uint64_t)count * bytes);
    else if (bytes == 1)
        move_1(src, s, dst, d, count);
    else if (bytes == 2)
        move_2(src, s, dst, d, count);
    else if (bytes == 4)
        move_4(src, s, dst, d, count);
    else
        move_8(src, s, dst, d, count);
}

/* ---- two to a byte ------------------------------------------------------------------------------------- */

static int32_t byte_type(int32_t dtype)
{
    return dtype == TN_I4 ? TN_I8 : dtype == TN_U4 ? TN_U8 : dtype;
}

/* Into bytes that saturated or kept their low bits as a byte does: the same for four bits. */
static void pack(const int8_t *from, void *dst, int32_t dtype, bool saturate, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int32_t v = dtype == TN_I4 ? from[i] : (uint8_t)from[i];
        const int32_t low = dtype == TN_I4 ? -8 : 0, high = dtype == TN_I4 ? 7 : 15;

        if (saturate)
            v = v < low ? low : v > high ? high : v;
        if (!((first + i) & 1)) /* what is left over of a last byte is 0 */
            ((uint8_t *)dst)[(first + i) / 2] = 0;
        tn_packed_set(dst, first + i, v);
    }
}

static void cast_packed(const char *src, int32_t src_dtype, int64_t src_stride, char *dst, int32_t dst_dtype,
                        int64_t dst_stride, int64_t count)
{
    const int32_t from = byte_type(src_dtype), to = byte_type(dst_dtype);
    int8_t in[PIECE], out[PIECE];

    for (int64_t done = 0; done < count; done += PIECE) {
        const int64_t piece = count - done < PIECE ? count - done : PIECE;
        const void *x = src + (uint64_t)(done * src_stride) * tn_dtype_bytes(src_dtype);
        void *y = dst + (uint64_t)(done * dst_stride) * tn_dtype_bytes(dst_dtype);

        for (int64_t i = 0; from != src_dtype && i < piece; i++)
            in[i] = (int8_t)tn_packed_get(src, src_dtype, done + i);
        x = from != src_dtype ? in : x;
        if (to == dst_dtype) {
            tni_cast(x, from, from != src_dtype ? 1 : src_stride, y, to, dst_stride, piece);
            continue;
        }
        tni_cast(x, from, from != src_dtype ? 1 : src_stride, out, to, 1, piece);
        pack(out, dst, dst_dtype, tni_dtype_is_float(src_dtype), done, piece);
    }
}

void tni_cast(const void *src, int32_t src_dtype, int64_t src_stride, void *dst, int32_t dst_dtype,
              int64_t dst_stride, int64_t count)
{
    uint64_t src_bytes = tn_dtype_bytes(src_dtype), dst_bytes = tn_dtype_bytes(dst_dtype);
    const char *from = src;
    char *to = dst;
    uint64_t wide[PIECE];

    if (count <= 0)
        return;
    if (tni_dtype_packed(src_dtype) || tni_dtype_packed(dst_dtype)) {
        cast_packed(src, src_dtype, src_stride, dst, dst_dtype, dst_stride, count);
        return;
    }
    if (src_dtype == dst_dtype) {
        move(src, src_stride, dst, dst_stride, src_bytes, count);
        return;
    }
    if (src_stride == 1 && dst_stride == 1 && cast_direct(src, src_dtype, dst, dst_dtype, count))
        return;
    for (int64_t done = 0; done < count; done += PIECE) {
        int64_t piece = count - done < PIECE ? count - done : PIECE;

        rows[src_dtype].load(from + (uint64_t)(done * src_stride) * src_bytes, src_stride, wide, piece);
        rows[dst_dtype].store[rows[src_dtype].wide](wide, to + (uint64_t)(done * dst_stride) * dst_bytes,
                                                    dst_stride, piece);
    }
}

void tni_cast_add(const void *src, int64_t src_stride, void *dst, int64_t dst_stride, int32_t dtype,
                  int64_t count)
{
    rows[dtype].add(src, src_stride, dst, dst_stride, count);
}

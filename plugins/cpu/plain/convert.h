/*
 * Elements of any data type, brought to one of four types that loops are written for (its compute type) and
 * back: f16 and bf16 compute as f32, the small integers as i32, u32 and u64 as i64 (u64 by its bits).
 */
#ifndef TNCPU_CONVERT_H
#define TNCPU_CONVERT_H

#include "plain.h"

#define TNCPU_KINDS 4 /* compute types: */
#define TNCPU_K_F32 0
#define TNCPU_K_F64 1
#define TNCPU_K_I32 2
#define TNCPU_K_I64 3

typedef struct tncpu_convert {
    uint32_t kind;       /* TNCPU_K_… */
    uint32_t bytes;      /* of an element */
    uint32_t kind_bytes; /* of a compute element */
    uint32_t native;     /* 1: elements are compute elements, nothing to convert */
    void (*load)(const void *src, int64_t stride, void *to, int64_t n);
    void (*store)(const void *from, void *dst, int64_t stride, int64_t n);
    void (*add)(const void *from, void *dst, int64_t stride, int64_t n); /* dst += from */
    void (*fill)(const void *element, void *to, int64_t n); /* one stored element, n compute elements */
    /* From wide types: to integers toward zero, out of range saturates, NaN is 0. */
    void (*store_f)(const double *from, void *dst, int64_t stride, int64_t n);
    void (*store_i)(const int64_t *from, void *dst, int64_t stride, int64_t n);
    void (*store_u)(const uint64_t *from, void *dst, int64_t stride, int64_t n); /* NULL: as store_i */
} tncpu_convert;

extern const tncpu_convert tncpu_converts[TN_DTYPE_LIMIT];

/* n compute elements of one kind into another. */
typedef void (*tncpu_cross)(const void *from, void *to, int64_t n);
/* From a kind into a wider one, in the order i32, i64, f32, f64; NULL: the same or a narrower one. */
extern const tncpu_cross tncpu_widen[TNCPU_KINDS][TNCPU_KINDS];
/* Of another kind into i32: 1 where an element is not 0, else 0. */
extern const tncpu_cross tncpu_truth[TNCPU_KINDS];

static inline float tncpu_bits_float(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t tncpu_float_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float tncpu_half_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + 0x38000000u;
    uint32_t special = (rest << 13) | 0x7f800000u;
    float tiny = (float)rest * 5.9604644775390625e-8f; /* 2^-24 */
    uint32_t bits = rest < 0x400u ? tncpu_float_bits(tiny) : rest >= 0x7c00u ? special : normal;

    return tncpu_bits_float(bits | sign);
}

/* Rounds to nearest even. */
static inline uint16_t tncpu_float_half(float f)
{
    uint32_t bits = tncpu_float_bits(f), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
    uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t tiny = tncpu_float_bits(tncpu_bits_float(a) + 0.5f) - 0x3f000000u;
    uint32_t h = a < 0x38800000u ? tiny : a >= 0x47800000u ? 0x7c00u : normal;

    h = a > 0x7f800000u ? 0x7e00u : h;
    return (uint16_t)(h | sign);
}

static inline float tncpu_bf16_float(uint16_t b)
{
    return tncpu_bits_float((uint32_t)b << 16);
}

static inline uint16_t tncpu_float_bf16(float f)
{
    uint32_t bits = tncpu_float_bits(f);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}

/* A float between double and the 16-bit types: rounded to odd, so that rounding twice is rounding once. */
static inline float tncpu_odd_float(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t bits = tncpu_float_bits(f);

    if (back == d || d != d || back - back != 0.0)
        return f;
    if ((back > d) == (d > 0.0)) /* rounded away from zero: one step back is toward it */
        bits--;
    return tncpu_bits_float(bits | 1u);
}

#endif

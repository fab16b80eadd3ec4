/*
 * How elements are stored (T) and computed with (A): the short floats as f32, numbers of other types from a
 * double. One value at a time, in C and CUDA: no state, no header but the compiler's.
 */
#ifndef TNB_STORAGE_H
#define TNB_STORAGE_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define TNB_INLINE static __device__ inline
#else
#define TNB_INLINE static inline
#endif

TNB_INLINE uint64_t tnb_double_bits(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, sizeof bits);
    return bits;
}

TNB_INLINE double tnb_bits_double(uint64_t bits)
{
    double d;

    memcpy(&d, &bits, sizeof d);
    return d;
}

/* ---- short floats ------------------------------------------------------------------------------- */

TNB_INLINE float tnb_bits_float(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

TNB_INLINE uint32_t tnb_float_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

TNB_INLINE float tnb_half_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + 0x38000000u;
    uint32_t special = (rest << 13) | 0x7f800000u;
    float tiny = (float)rest * 5.9604644775390625e-8f; /* 2^-24 */
    uint32_t bits = rest < 0x400u ? tnb_float_bits(tiny) : rest >= 0x7c00u ? special : normal;

    return tnb_bits_float(bits | sign);
}

/* Rounds to nearest even. */
TNB_INLINE uint16_t tnb_float_half(float f)
{
    uint32_t bits = tnb_float_bits(f), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
    uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t tiny = tnb_float_bits(tnb_bits_float(a) + 0.5f) - 0x3f000000u;
    uint32_t h = a < 0x38800000u ? tiny : a >= 0x47800000u ? 0x7c00u : normal;

    h = a > 0x7f800000u ? 0x7e00u : h;
    return (uint16_t)(h | sign);
}

TNB_INLINE float tnb_bf16_float(uint16_t b)
{
    return tnb_bits_float((uint32_t)b << 16);
}

TNB_INLINE uint16_t tnb_float_bf16(float f)
{
    uint32_t bits = tnb_float_bits(f);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
}

/* A float between double and the 16-bit types: rounded to odd, so that rounding twice is rounding once. */
TNB_INLINE float tnb_odd_float(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t bits = tnb_float_bits(f);

    if (back == d || d != d || back - back != 0.0)
        return f;
    if ((back > d) == (d > 0.0)) /* rounded away from zero: one step back is toward it */
        bits--;
    return tnb_bits_float(bits | 1u);
}

/* The same for 0 and for magnitudes from 2^-126 on: what is cut off sets the last bit. */
TNB_INLINE float tnb_odd_normal(double d)
{
    const uint64_t cut = ((uint64_t)1 << 29) - 1, bits = tnb_double_bits(d);

    return (float)tnb_bits_double((bits & ~cut) | (((bits & cut) + cut) & ~cut));
}

/* ---- integers of a double: toward zero; beyond the range its end, NaN 0 -------------------------- */

/* Of integers below 64 bits, from `low` to `high`. Every path is defined in C and has instructions for
 * several elements at once. */
TNB_INLINE int64_t tnb_cut(double x, double low, double high)
{
    x = x == x ? x : 0.0;
    x = x < low ? low : x;
    return (int64_t)(x > high ? high : x);
}

TNB_INLINE int64_t tnb_i64_of_double(double x)
{
    if (!(x == x))
        return 0;
    if (x <= -9223372036854775808.0)
        return INT64_MIN;
    return x >= 9223372036854775808.0 ? INT64_MAX : (int64_t)x;
}

TNB_INLINE uint64_t tnb_u64_of_double(double x)
{
    if (!(x > 0.0))
        return 0;
    return x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x;
}

TNB_INLINE int32_t tnb_i32_of_double(double x)
{
    return (int32_t)tnb_cut(x, INT32_MIN, INT32_MAX);
}

/* The integer part of `v` within lo … hi; of NaN lo. */
TNB_INLINE int64_t tnb_whole(double v, int64_t lo, int64_t hi)
{
    return !(v > (double)lo) ? lo : v >= (double)hi ? hi : (int64_t)v;
}

#endif

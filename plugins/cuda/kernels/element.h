/*
 * Elements of every data type, as the four compute types: f32 of the short floats, i32 of integers to 32
 * bits, i64 of u32 and u64. plugins/cpu/plain/convert.c says the same for hosts.
 */
#ifndef TNCUDA_ELEMENT_H
#define TNCUDA_ELEMENT_H

#include "../../common/functions.h"
#include "../../common/index.h"
#include "args.h"
#include "kernel.h"

enum { /* TN_F32 … of tenon/plugin/base.h, which CUDA does not read */
       ELEMENT_F32 = 0,
       ELEMENT_F64 = 1,
       ELEMENT_F16 = 2,
       ELEMENT_U8 = 3,
       ELEMENT_I32 = 4,
       ELEMENT_I8 = 5,
       ELEMENT_I64 = 6,
       ELEMENT_BOOL = 7,
       ELEMENT_I16 = 8,
       ELEMENT_U16 = 9,
       ELEMENT_U32 = 10,
       ELEMENT_U64 = 11,
       ELEMENT_BF16 = 12
};

TNCUDA_INLINE uint32_t divided(const tncuda_divisor *d, uint32_t n)
{
    return ((uint32_t)(((uint64_t)n * d->magic) >> 32) + n) >> d->shift;
}

#define ELEMENT_AT(type, data, i) (((const type *)(data))[i])
#define ELEMENT_SET(type, data, i, value) (((type *)(data))[i] = (type)(value))

TNCUDA_INLINE int32_t element_is_short(int32_t dtype)
{
    return dtype == ELEMENT_F16 || dtype == ELEMENT_BF16;
}

/* Of a floating point array, as the type that it is computed in. */
TNCUDA_INLINE float element_f32(const void *data, int32_t dtype, int64_t i)
{
    return dtype == ELEMENT_F32   ? ELEMENT_AT(float, data, i)
           : dtype == ELEMENT_F16 ? tnb_half_float(ELEMENT_AT(uint16_t, data, i))
                                  : tnb_bf16_float(ELEMENT_AT(uint16_t, data, i));
}

TNCUDA_INLINE void element_set_f32(void *data, int32_t dtype, int64_t i, float v)
{
    if (dtype == ELEMENT_F32)
        ELEMENT_SET(float, data, i, v);
    else
        ELEMENT_SET(uint16_t, data, i, dtype == ELEMENT_F16 ? tnb_float_half(v) : tnb_float_bf16(v));
}

/* The high half is tnb_float_bf16. */
TNCUDA_INLINE uint32_t element_rounded(float f)
{
    const uint32_t bits = tnb_float_bits(f);

    return f != f ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
}

/* Two elements as a word. */
TNCUDA_INLINE uint32_t element_pair_bf16(float low, float high)
{
    return element_rounded(low) >> 16 | (element_rounded(high) & 0xffff0000u);
}

TNCUDA_INLINE uint32_t element_pair_f16(float low, float high)
{
    return tnb_float_half(low) | (uint32_t)tnb_float_half(high) << 16;
}

/* `words` words of two elements as numbers, and back. `converts`, a constant: by instructions that convert,
 * which are fewer, and need more registers where the data type is no constant. */
TNCUDA_INLINE void element_numbers(int32_t dtype, int32_t words, int32_t converts, const uint32_t *from,
                                   float *to)
{
    int32_t numbers = converts && TNCUDA_CONVERTS;

    TNCUDA_UNROLL
    for (int32_t w = 0; w < words && dtype == ELEMENT_BF16; w++) {
        to[2 * w] = tnb_bits_float(from[w] << 16);
        to[2 * w + 1] = tnb_bits_float(from[w] & 0xffff0000u);
    }
    if (dtype == ELEMENT_BF16)
        return;
    TNCUDA_UNROLL
    for (int32_t w = 0; w < words && converts && TNCUDA_CONVERTS; w++) {
        TNCUDA_HALVES(from[w], to[2 * w], to[2 * w + 1]);
        numbers = numbers && to[2 * w] == to[2 * w] && to[2 * w + 1] == to[2 * w + 1];
    }
    TNCUDA_UNROLL
    for (int32_t w = 0; w < words && !numbers; w++) {
        to[2 * w] = tnb_half_float((uint16_t)from[w]);
        to[2 * w + 1] = tnb_half_float((uint16_t)(from[w] >> 16));
    }
}

TNCUDA_INLINE void element_words(int32_t dtype, int32_t words, int32_t converts, const float *from,
                                 uint32_t *to)
{
    int32_t numbers = converts && TNCUDA_CONVERTS;

    TNCUDA_UNROLL
    for (int32_t w = 0; w < words; w++)
        numbers = numbers && from[2 * w] == from[2 * w] && from[2 * w + 1] == from[2 * w + 1];
    if (numbers && dtype == ELEMENT_BF16) {
        TNCUDA_UNROLL
        for (int32_t w = 0; w < words; w++)
            TNCUDA_PAIR_BF16(to[w], from[2 * w], from[2 * w + 1]);
    } else if (numbers) {
        TNCUDA_UNROLL
        for (int32_t w = 0; w < words; w++)
            TNCUDA_PAIR_F16(to[w], from[2 * w], from[2 * w + 1]);
    } else {
        TNCUDA_UNROLL
        for (int32_t w = 0; w < words; w++)
            to[w] = dtype == ELEMENT_BF16 ? element_pair_bf16(from[2 * w], from[2 * w + 1])
                                          : element_pair_f16(from[2 * w], from[2 * w + 1]);
    }
}

TNCUDA_INLINE double element_f64(const void *data, int32_t dtype, int64_t i)
{
    (void)dtype;
    return ELEMENT_AT(double, data, i);
}

TNCUDA_INLINE void element_set_f64(void *data, int32_t dtype, int64_t i, double v)
{
    (void)dtype;
    ELEMENT_SET(double, data, i, v);
}

/* Of any array of integers. */
TNCUDA_APART int64_t element_whole(const void *data, int32_t dtype, int64_t i)
{
    switch (dtype) {
    case ELEMENT_U8:
        return ELEMENT_AT(uint8_t, data, i);
    case ELEMENT_I8:
        return ELEMENT_AT(int8_t, data, i);
    case ELEMENT_BOOL:
        return ELEMENT_AT(uint8_t, data, i) != 0;
    case ELEMENT_I16:
        return ELEMENT_AT(int16_t, data, i);
    case ELEMENT_U16:
        return ELEMENT_AT(uint16_t, data, i);
    case ELEMENT_I32:
        return ELEMENT_AT(int32_t, data, i);
    case ELEMENT_U32:
        return ELEMENT_AT(uint32_t, data, i);
    default:
        return ELEMENT_AT(int64_t, data, i);
    }
}

/* The low bits of `v`; of bool whether it is 0. */
TNCUDA_APART void element_set_whole(void *data, int32_t dtype, int64_t i, int64_t v)
{
    switch (dtype) {
    case ELEMENT_BOOL:
        ELEMENT_SET(uint8_t, data, i, v != 0);
        break;
    case ELEMENT_U8:
    case ELEMENT_I8:
        ELEMENT_SET(uint8_t, data, i, v);
        break;
    case ELEMENT_I16:
    case ELEMENT_U16:
        ELEMENT_SET(uint16_t, data, i, v);
        break;
    case ELEMENT_I32:
    case ELEMENT_U32:
        ELEMENT_SET(uint32_t, data, i, v);
        break;
    default:
        ELEMENT_SET(int64_t, data, i, v);
    }
}

TNCUDA_INLINE int32_t element_is_float(int32_t dtype)
{
    return dtype == ELEMENT_F32 || dtype == ELEMENT_F64 || dtype == ELEMENT_F16 || dtype == ELEMENT_BF16;
}

/* Of any array of floats, as a double. Calls nothing: a function that calls another one spills where it
 * returns to, and pointwise kernels may not. */
TNCUDA_APART double element_float_of(const void *data, int32_t dtype, int64_t i)
{
    return dtype == ELEMENT_F64 ? ELEMENT_AT(double, data, i) : (double)element_f32(data, dtype, i);
}

/* Of any array, as a double. */
TNCUDA_APART double element_number_of(const void *data, int32_t dtype, int64_t i)
{
    return element_is_float(dtype) ? element_float_of(data, dtype, i)
           : dtype == ELEMENT_U64  ? (double)ELEMENT_AT(uint64_t, data, i)
                                   : (double)element_whole(data, dtype, i);
}

TNCUDA_INLINE double element_number(const void *data, int32_t dtype, int64_t i)
{
    return dtype == ELEMENT_F32 ? (double)ELEMENT_AT(float, data, i) : element_number_of(data, dtype, i);
}

/* A double as an integer of a type (tnb_cut and its like); of bool whether it is other than 0. */
TNCUDA_APART int64_t element_cut(int32_t dtype, double v)
{
    const int32_t bits = dtype == ELEMENT_U8 || dtype == ELEMENT_I8     ? 8
                         : dtype == ELEMENT_I16 || dtype == ELEMENT_U16 ? 16
                                                                        : 32;
    const int32_t is_signed = dtype == ELEMENT_I8 || dtype == ELEMENT_I16 || dtype == ELEMENT_I32;
    const int64_t high = ((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;

    if (dtype == ELEMENT_BOOL)
        return v != 0.0;
    if (dtype == ELEMENT_I64)
        return tnb_i64_of_double(v);
    if (dtype == ELEMENT_U64)
        return (int64_t)tnb_u64_of_double(v);
    return tnb_cut(v, (double)low, (double)high);
}

/* A double, rounded once. */
TNCUDA_APART void element_set_number_of(void *data, int32_t dtype, int64_t i, double v)
{
    if (dtype == ELEMENT_F64)
        ELEMENT_SET(double, data, i, v);
    else if (element_is_float(dtype) && dtype != ELEMENT_F32)
        element_set_f32(data, dtype, i, tnb_odd_float(v));
    else if (dtype == ELEMENT_F32)
        ELEMENT_SET(float, data, i, v);
    else
        element_set_whole(data, dtype, i, element_cut(dtype, v));
}

TNCUDA_INLINE void element_set_number(void *data, int32_t dtype, int64_t i, double v)
{
    if (dtype == ELEMENT_F32)
        ELEMENT_SET(float, data, i, v);
    else
        element_set_number_of(data, dtype, i, v);
}

/* An element of any type as one of any other: integers keep their low bits, or are rounded once to f32. */
TNCUDA_APART void element_convert(void *to, int32_t to_dtype, int64_t to_at, const void *from,
                                  int32_t from_dtype, int64_t from_at)
{
    if (element_is_float(from_dtype) || to_dtype == ELEMENT_F64)
        element_set_number(to, to_dtype, to_at, element_number(from, from_dtype, from_at));
    else if (!element_is_float(to_dtype))
        element_set_whole(to, to_dtype, to_at, element_whole(from, from_dtype, from_at));
    else
        element_set_f32(to, to_dtype, to_at,
                        from_dtype == ELEMENT_U64 ? (float)ELEMENT_AT(uint64_t, from, from_at)
                                                  : (float)element_whole(from, from_dtype, from_at));
}

/* Arrays of a tncuda_call_args: element `i` as a double or an integer, and back. */
#define NUMBER_IN(k, i) element_number(call->in[k].data, call->in[k].dtype, i)
#define NUMBER_OUT(k, i, v) element_set_number(call->out[k].data, call->out[k].dtype, i, v)
#define WHOLE_IN(k, i) element_whole(call->in[k].data, call->in[k].dtype, i)

/* The element's bytes, whatever they mean. */
TNCUDA_INLINE void element_move(void *to, int64_t to_at, const void *from, int64_t from_at, int64_t bytes)
{
    if (bytes == 4)
        ELEMENT_SET(uint32_t, to, to_at, ELEMENT_AT(uint32_t, from, from_at));
    else if (bytes == 2)
        ELEMENT_SET(uint16_t, to, to_at, ELEMENT_AT(uint16_t, from, from_at));
    else if (bytes == 8)
        ELEMENT_SET(uint64_t, to, to_at, ELEMENT_AT(uint64_t, from, from_at));
    else
        ELEMENT_SET(uint8_t, to, to_at, ELEMENT_AT(uint8_t, from, from_at));
}

TNCUDA_INLINE void element_zero(void *to, int64_t at, int64_t bytes)
{
    const uint64_t zero = 0;

    element_move(to, at, &zero, 0, bytes);
}

/* Other than 0: NaN is. */
TNCUDA_INLINE int32_t element_truth(const void *data, int32_t dtype, int64_t i)
{
    return element_is_float(dtype) ? element_number(data, dtype, i) != 0 : element_whole(data, dtype, i) != 0;
}

#endif

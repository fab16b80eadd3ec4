/* Eight or four neighbours of an array of f32, f16 or bf16 at once; the first is aligned to 16 bytes, or to 8
 * where four are short. */
#ifndef TNCUDA_PACKS_H
#define TNCUDA_PACKS_H

#include "element.h"

typedef struct pack_floats {
    float v[4];
} TNCUDA_ALIGNED(16) pack_floats;

typedef struct pack_shorts {
    uint16_t v[8];
} TNCUDA_ALIGNED(16) pack_shorts;

typedef struct pack_bits {
    uint32_t v[4];
} TNCUDA_ALIGNED(16) pack_bits;

typedef struct pack_shorts_4 {
    uint16_t v[4];
} TNCUDA_ALIGNED(8) pack_shorts_4;

#define PACK_ALIGNED(bits) (((bits)&15) == 0)
#define PACK_OF_SHORT(s) (dtype == ELEMENT_F16 ? tnb_half_float(s) : tnb_bf16_float(s))
#define PACK_TO_SHORT(f) (dtype == ELEMENT_F16 ? tnb_float_half(f) : tnb_float_bf16(f))

TNCUDA_INLINE void pack_floats_in(const void *data, int64_t i, float *v)
{
    const pack_floats f = *(const pack_floats *)(const void *)((const float *)data + i);

    TNCUDA_UNROLL
    for (int32_t j = 0; j < 4; j++)
        v[j] = f.v[j];
}

TNCUDA_INLINE void pack_floats_out(void *data, int64_t i, const float *v)
{
    pack_floats f;

    TNCUDA_UNROLL
    for (int32_t j = 0; j < 4; j++)
        f.v[j] = v[j];
    *(pack_floats *)(void *)((float *)data + i) = f;
}

TNCUDA_INLINE void pack_in_4(const void *data, int32_t dtype, int64_t i, float *v)
{
    if (dtype == ELEMENT_F32) {
        pack_floats_in(data, i, v);
    } else {
        const pack_shorts_4 s = *(const pack_shorts_4 *)(const void *)((const uint16_t *)data + i);

        TNCUDA_UNROLL
        for (int32_t j = 0; j < 4; j++)
            v[j] = PACK_OF_SHORT(s.v[j]);
    }
}

TNCUDA_INLINE void pack_in_8(const void *data, int32_t dtype, int64_t i, float *v)
{
    if (dtype == ELEMENT_F32) {
        pack_floats_in(data, i, v);
        pack_floats_in(data, i + 4, v + 4);
    } else {
        const pack_shorts s = *(const pack_shorts *)(const void *)((const uint16_t *)data + i);

        TNCUDA_UNROLL
        for (int32_t j = 0; j < 8; j++)
            v[j] = PACK_OF_SHORT(s.v[j]);
    }
}

TNCUDA_INLINE void pack_out_8(void *data, int32_t dtype, int64_t i, const float *v)
{
    if (dtype == ELEMENT_F32) {
        pack_floats_out(data, i, v);
        pack_floats_out(data, i + 4, v + 4);
    } else {
        pack_shorts s;

        TNCUDA_UNROLL
        for (int32_t j = 0; j < 8; j++)
            s.v[j] = PACK_TO_SHORT(v[j]);
        *(pack_shorts *)(void *)((uint16_t *)data + i) = s;
    }
}

/* As pack_out_8 where the data type is a constant. */
TNCUDA_INLINE void pack_known_out_8(void *data, int32_t dtype, int64_t i, const float *v)
{
    if (dtype == ELEMENT_F32) {
        pack_floats_out(data, i, v);
        pack_floats_out(data, i + 4, v + 4);
    } else {
        pack_bits bits;

        element_words(dtype, 4, 1, v, bits.v);
        *(pack_bits *)(void *)((uint16_t *)data + i) = bits;
    }
}

/* The same wherever the first one lies, as `aligned` tells. */
TNCUDA_INLINE void pack_any_in_8(const void *data, int32_t dtype, int64_t i, int32_t aligned, float *v)
{
    if (aligned) {
        pack_in_8(data, dtype, i, v);
    } else {
        TNCUDA_UNROLL
        for (int32_t j = 0; j < 8; j++)
            v[j] = dtype == ELEMENT_F32 ? ELEMENT_AT(float, data, i + j)
                                        : PACK_OF_SHORT(ELEMENT_AT(uint16_t, data, i + j));
    }
}

TNCUDA_INLINE void pack_any_out_8(void *data, int32_t dtype, int64_t i, int32_t aligned, const float *v)
{
    if (aligned) {
        pack_out_8(data, dtype, i, v);
    } else {
        TNCUDA_UNROLL
        for (int32_t j = 0; j < 8; j++)
            element_set_f32(data, dtype, i + j, v[j]);
    }
}

/* Eight neighbours as they lie in memory: of shorts the first half alone. Where several are read before one
 * of them is looked at, their loads are under way together. */
typedef struct pack_held {
    pack_bits half[2];
} pack_held;

TNCUDA_INLINE pack_held pack_hold(const void *data, int32_t dtype, int64_t i)
{
    pack_held p = {{{{0, 0, 0, 0}}, {{0, 0, 0, 0}}}};

    if (dtype == ELEMENT_F32) {
        p.half[0] = *(const pack_bits *)(const void *)((const float *)data + i);
        p.half[1] = *(const pack_bits *)(const void *)((const float *)data + i + 4);
    } else {
        p.half[0] = *(const pack_bits *)(const void *)((const uint16_t *)data + i);
    }
    return p;
}

/* Element j of it. */
TNCUDA_INLINE float pack_number(const pack_held *p, int32_t dtype, int32_t j)
{
    const uint32_t word = p->half[0].v[j / 2];

    if (dtype == ELEMENT_F32)
        return tnb_bits_float(p->half[j / 4].v[j % 4]);
    if (dtype == ELEMENT_BF16)
        return tnb_bits_float(j % 2 ? word & 0xffff0000u : word << 16);
    return tnb_half_float((uint16_t)(j % 2 ? word >> 16 : word & 0xffffu));
}

TNCUDA_INLINE void pack_numbers(const pack_held *p, int32_t dtype, float *v)
{
    TNCUDA_UNROLL
    for (int32_t j = 0; j < 8; j++)
        v[j] = pack_number(p, dtype, j);
}

/* A row, whose size is a multiple of 8, that `lanes` threads hold in registers, eight neighbours at a time;
 * this one is number `lane`. */
typedef struct pack_row {
    int64_t at; /* the row's first element */
    int32_t size, lanes, lane, aligned;
} pack_row;

/* The place in the row of element j of this thread, a multiple of 8. */
#define PACK_PLACE(row, j) (((j) / 8 * (row)->lanes + (row)->lane) * 8)

/* Its elements; `fill` behind its end. `each`: a constant, a multiple of 8. */
TNCUDA_INLINE void pack_row_in(const pack_row *row, const void *data, int32_t dtype, int32_t each, float fill,
                               float *v)
{
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 8) {
        if (PACK_PLACE(row, j) < row->size) {
            pack_any_in_8(data, dtype, row->at + PACK_PLACE(row, j), row->aligned, v + j);
        } else {
            TNCUDA_UNROLL
            for (int32_t i = 0; i < 8; i++)
                v[j + i] = fill;
        }
    }
}

/* The same as it lies there, which is aligned: 0 behind its end. */
TNCUDA_INLINE void pack_row_hold(const pack_row *row, const void *data, int32_t dtype, int64_t from,
                                 int32_t each, pack_held *p)
{
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 8) {
        const pack_held none = {{{{0, 0, 0, 0}}, {{0, 0, 0, 0}}}};

        p[j / 8] = none;
        if (PACK_PLACE(row, j) < row->size)
            p[j / 8] = pack_hold(data, dtype, from + PACK_PLACE(row, j));
    }
}

/* The sum over `lanes` threads side by side, a power of 2 up to 32: the same bits in each of them. */
TNCUDA_INLINE float pack_lanes_sum_f32(float v, int32_t lanes)
{
    for (int32_t mask = lanes / 2; mask > 0; mask /= 2)
        v += TNCUDA_SHUFFLE_XOR(v, mask);
    return v;
}

TNCUDA_INLINE double pack_lanes_sum_f64(double v, int32_t lanes)
{
    for (int32_t mask = lanes / 2; mask > 0; mask /= 2)
        v += TNCUDA_SHUFFLE_XOR(v, mask);
    return v;
}

TNCUDA_INLINE void pack_row_out(const pack_row *row, void *data, int32_t dtype, int32_t each, const float *v)
{
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 8)
        if (PACK_PLACE(row, j) < row->size)
            pack_any_out_8(data, dtype, row->at + PACK_PLACE(row, j), row->aligned, v + j);
}

#endif

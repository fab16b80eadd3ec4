/*
 * Normalisation, in double: a block makes the sums of a channel or a row. plugins/cpu/plain/norm.c says what
 * inputs, outputs and the formulas are.
 */
#include "block.h"

/* Element k of channel c of (outer, size, inner), k counting outer and inner. */
#define CHANNEL_AT(c, k) (((k) / call->inner * call->size + (c)) * call->inner + (k) % call->inner)
/* Element k of row r of (outer, size, inner). */
#define ROW_AT(r, k) (((r) / call->inner * call->size + (k)) * call->inner + (r) % call->inner)
#define STORE(o, i, v)                                                                                       \
    do {                                                                                                     \
        if (call->out[o].mode)                                                                               \
            NUMBER_OUT(o, i, v);                                                                             \
    } while (0)

/* ---- BatchNorm: n[0] training, n[1] gamma counts as 1, n[2] relu, n[3] z; f: eps, momentum; room: scale,
 * bias, factor of each channel */

#define ROOM(k, c) (((double *)call->room)[(k)*call->size + (c)])

/* Mean and variance of a channel, or those that are kept where it does not train: outputs, scale, bias. */
TNCUDA_INLINE void batch_store(const tncuda_call_args *call, int64_t c, double mean, double var)
{
    const double old_mean = element_number(call->out[3].data, call->out[3].dtype, c),
                 old_var = element_number(call->out[4].data, call->out[4].dtype, c);
    double inverse, scale;

    if (call->n[0]) {
        NUMBER_OUT(3, c, old_mean * call->f[1] + mean * (1 - call->f[1]));
        NUMBER_OUT(4, c, old_var * call->f[1] + var * (1 - call->f[1]));
    } else {
        mean = old_mean;
        var = old_var;
    }
    inverse = 1 / sqrt(var + call->f[0]);
    scale = call->n[1] ? inverse : inverse * NUMBER_IN(1, c);
    ROOM(0, c) = scale;
    ROOM(1, c) = NUMBER_IN(2, c) - mean * scale;
    STORE(1, c, mean);
    STORE(2, c, inverse);
}

/* Of the sums of dy and of dy (x - mean). */
TNCUDA_INLINE void batch_back_store(const tncuda_call_args *call, int64_t c, double sum, double product)
{
    const int64_t each = call->outer * call->inner;
    const double mean = NUMBER_IN(3, c), inverse = NUMBER_IN(4, c);
    const double scale = call->n[1] ? inverse : inverse * NUMBER_IN(2, c);
    const int32_t train = call->n[0] && each > 0;
    const double factor = train ? -scale * inverse * inverse * product / (double)each : 0;

    ROOM(0, c) = scale;
    ROOM(1, c) = train ? -scale * sum / (double)each - factor * mean : 0;
    ROOM(2, c) = factor;
    STORE(1, c, call->n[1] ? 0.0 : product * inverse);
    STORE(2, c, sum);
}

#define BODY "norm.inc"
#include "sums.h"
#undef BODY

typedef struct norm_quad {
    float v[4];
} TNCUDA_ALIGNED(16) norm_quad;

/* norm_batch_map of float32, four elements of one channel at a time. */
TNCUDA_KERNEL(norm_batch_map_quads, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST * 4; i < call->count; i += TNCUDA_STEP * 4) {
        const int64_t c = i / call->inner % call->size;
        const norm_quad x = *(const norm_quad *)(const void *)((const float *)call->in[0].data + i);
        const norm_quad z =
            *(const norm_quad *)(const void *)((const float *)call->in[call->n[3] ? 1 : 0].data + i);
        const float scale = (float)ROOM(0, c), bias = (float)ROOM(1, c),
                    factor = call->n[3] ? (float)ROOM(2, c) : 0;
        norm_quad y;

        TNCUDA_UNROLL
        for (int32_t j = 0; j < 4; j++) {
            const float v = x.v[j] * scale + bias;

            y.v[j] = call->n[3] ? v + z.v[j] * factor : v;
            y.v[j] = call->n[2] && y.v[j] < 0 ? 0 : y.v[j];
        }
        *(norm_quad *)(void *)((float *)call->out[0].data + i) = y;
    }
}

/* y = x scale + bias, or with a second input z: + z factor. */
TNCUDA_KERNEL(norm_batch_map, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i / call->inner % call->size;
        double y;

        if (call->out[0].dtype == ELEMENT_F64) {
            y = NUMBER_IN(0, i) * ROOM(0, c) + ROOM(1, c);
            y = call->n[3] ? y + NUMBER_IN(1, i) * ROOM(2, c) : y;
        } else {
            float v = (float)NUMBER_IN(0, i) * (float)ROOM(0, c) + (float)ROOM(1, c);

            v = call->n[3] ? v + (float)NUMBER_IN(1, i) * (float)ROOM(2, c) : v;
            y = (double)v;
        }
        NUMBER_OUT(0, i, call->n[2] && y < 0 ? 0.0 : y);
    }
}

/* The sums of a channel by blocks: n[4] of them for each, n[5] elements in each; their parts lie in the room
 * behind scale, bias and factor. Elements are four at a time, in this order, where `inner` is a multiple. */
#define BATCH_PART(k, c, slice)                                                                              \
    (((double *)call->room)[3 * call->size + ((c)*call->n[4] + (slice)) * 2 + (k)])
#define BATCH_LOOP(LOAD, add)                                                                                \
    TNCUDA_UNROLL_4                                                                                          \
    for (int64_t k = begin; k < end; k += TNCUDA_BLOCK_THREADS * quad) {                                     \
        const int64_t at = CHANNEL_AT(c, k);                                                                 \
                                                                                                             \
        if (quad == 4) {                                                                                     \
            TNCUDA_UNROLL                                                                                    \
            for (int32_t j = 0; j < 4; j++) {                                                                \
                add(LOAD, at + j)                                                                            \
            }                                                                                                \
        } else {                                                                                             \
            add(LOAD, at)                                                                                    \
        }                                                                                                    \
    }
#define BATCH_SUMS(name, first, add)                                                                         \
    TNCUDA_KERNEL(name, SYNC, tncuda_call_args)                                                              \
    {                                                                                                        \
        TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);                                                   \
        const int64_t each = call->outer * call->inner;                                                      \
        const int32_t quad = call->inner % 4 == 0 ? 4 : 1;                                                   \
        const int32_t native = call->in[0].dtype == ELEMENT_F32 && call->in[1].dtype == ELEMENT_F32;         \
                                                                                                             \
        EACH_BLOCK(b, call->size * call->n[4])                                                               \
        {                                                                                                    \
            const int64_t c = b % call->size, slice = b / call->size;                                        \
            const int64_t begin = slice * call->n[5] + TNCUDA_THREAD * quad;                                 \
            const int64_t behind = (slice + 1) * call->n[5], end = behind < each ? behind : each;            \
            const double base = first;                                                                       \
            double sum = 0, product = 0;                                                                     \
                                                                                                             \
            if (native) {                                                                                    \
                BATCH_LOOP(BATCH_F32, add)                                                                   \
            } else {                                                                                         \
                BATCH_LOOP(NUMBER_IN, add)                                                                   \
            }                                                                                                \
            sum = block_sum(part, sum);                                                                      \
            product = block_sum(part, product);                                                              \
            if (TNCUDA_THREAD == 0) {                                                                        \
                BATCH_PART(0, c, slice) = sum;                                                               \
                BATCH_PART(1, c, slice) = product;                                                           \
            }                                                                                                \
        }                                                                                                    \
    }
#define BATCH_F32(k, i) ((double)ELEMENT_AT(float, call->in[k].data, i))
/* Of data: from the channel's first element on, so that squares are small beside it. */
#define BATCH_FORWARD(LOAD, i)                                                                               \
    const double d = LOAD(0, i) - base;                                                                      \
                                                                                                             \
    sum += d;                                                                                                \
    product += d * d;
#define BATCH_BACK(LOAD, i)                                                                                  \
    const double dy = LOAD(0, i);                                                                            \
                                                                                                             \
    sum += dy;                                                                                               \
    product += dy * (LOAD(1, i) - base);
BATCH_SUMS(norm_batch_sums, NUMBER_IN(0, CHANNEL_AT(c, 0)), BATCH_FORWARD)
BATCH_SUMS(norm_batch_back_sums, NUMBER_IN(3, c), BATCH_BACK)

TNCUDA_INLINE void batch_joined(const tncuda_call_args *call, int64_t c, double *sum, double *product)
{
    *sum = 0;
    *product = 0;
    for (int64_t s = 0; s < call->n[4]; s++) {
        *sum += BATCH_PART(0, c, s);
        *product += BATCH_PART(1, c, s);
    }
}

TNCUDA_KERNEL(norm_batch_end, FREE, tncuda_call_args)
{
    const double each = (double)(call->outer * call->inner);

    for (int64_t c = TNCUDA_FIRST; c < call->size; c += TNCUDA_STEP) {
        double sum, product, var;

        batch_joined(call, c, &sum, &product);
        var = (product - sum * (sum / each)) / each;
        batch_store(call, c, NUMBER_IN(0, CHANNEL_AT(c, 0)) + sum / each, var > 0 || var != var ? var : 0);
    }
}

TNCUDA_KERNEL(norm_batch_back_end, FREE, tncuda_call_args)
{
    for (int64_t c = TNCUDA_FIRST; c < call->size; c += TNCUDA_STEP) {
        double sum, product;

        batch_joined(call, c, &sum, &product);
        batch_back_store(call, c, sum, product);
    }
}

/* ---- rows: count of them; f: eps; room: sums of slices, or of rows */

typedef struct norm_short {
    uint16_t v[4];
} TNCUDA_ALIGNED(8) norm_short;

/* Of each group from the sums of its rows, which norm_row_back left in the room. */
TNCUDA_KERNEL(norm_groups, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);
    const int64_t groups = call->n[TNCUDA_ROW_GROUPS], rows = call->size ? call->outer / groups : 0;

    EACH_BLOCK(g, groups)
    {
        const double *room = (const double *)call->room + 2 * g;
        double sum = 0, product = 0;

        EACH_THREAD(i, rows)
        {
            sum += room[2 * i * groups];
            product += room[2 * i * groups + 1];
        }
        members_sums(part, other, TNCUDA_THREAD, TNCUDA_BLOCK_THREADS, 1, &sum, &product);
        if (TNCUDA_THREAD == 0) {
            STORE(1, g, product);
            STORE(2, g, sum);
        }
    }
}

/* Of each element from the sums of slices, in a tree of fixed form. */
TNCUDA_KERNEL(norm_elements_end, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);
    const int32_t column = TNCUDA_THREAD % TNCUDA_ROW_COLUMNS, member = TNCUDA_THREAD / TNCUDA_ROW_COLUMNS;
    const int32_t members = TNCUDA_BLOCK_THREADS / TNCUDA_ROW_COLUMNS;
    const double *room = (const double *)call->room;

    EACH_BLOCK(tile, (call->size + TNCUDA_ROW_COLUMNS - 1) / TNCUDA_ROW_COLUMNS)
    {
        const int64_t c = tile * TNCUDA_ROW_COLUMNS + column;
        double sum = 0, product = 0;

        TNCUDA_UNROLL_4
        for (int64_t s = member; s < (c < call->size ? call->n[TNCUDA_ROW_SLICES] : 0); s += members) {
            sum += room[(s * call->size + c) * 2];
            product += room[(s * call->size + c) * 2 + 1];
        }
        members_sums(part, other, member, members, TNCUDA_ROW_COLUMNS, &sum, &product);
        if (member == 0 && c < call->size) {
            STORE(1, c, product);
            STORE(2, c, sum);
        }
    }
}

#define BODY "norm_rows.inc"
#include "both.h"
#undef BODY

#undef TNCUDA_BOUNDS
#define TNCUDA_BOUNDS TNCUDA_BLOCK_THREADS, 1
#define BODY "norm_l2.inc"
#include "both.h"
#undef BODY

#define BODY "norm_lrn.inc"
#include "both.h"

/* ---- rows in registers: LayerNorm along the last axis */

#include "packs.h"

#define HELD_ROWS for (int64_t set = TNCUDA_BLOCK * 8; set < call->count; set += TNCUDA_BLOCKS * 8)

/* Row r; behind the last one it has nothing. */
TNCUDA_INLINE pack_row held_place(const tncuda_call_args *call, int64_t r)
{
    pack_row row;

    row.at = r * call->size;
    row.size = r < call->count ? (int32_t)call->size : 0;
    row.lanes = 32;
    row.lane = TNCUDA_THREAD % 32;
    row.aligned = call->n[TNCUDA_ROW_LOADS] == TNCUDA_ROW_PACK;
    return row;
}

/* Eight elements of input k from i on. */
TNCUDA_INLINE void held_eight(const tncuda_call_args *call, int32_t k, int64_t i, float *v)
{
    pack_any_in_8(call->in[k].data, call->in[k].dtype, i, call->n[TNCUDA_ROW_LOADS] == TNCUDA_ROW_PACK, v);
}

#define W float
#define HELD(name) name##_short
#define HELD_SQRT(v) sqrtf(v)
#include "norm_held.inc"
#undef W
#undef HELD
#undef HELD_SQRT
#define W double
#define HELD(name) name##_f32
#define HELD_SQRT(v) sqrt(v)
#include "norm_held.inc"

/* As norm_elements_f32: 32 packs of eight columns are a block's, eight threads of one. */
TNCUDA_KERNEL(norm_elements_packs, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);
    const int32_t lane = TNCUDA_THREAD % 32, member = TNCUDA_THREAD / 32, members = TNCUDA_BLOCK_THREADS / 32;
    const int64_t tiles = (call->size + 255) / 256, slices = call->n[TNCUDA_ROW_SLICES];

    EACH_BLOCK(block, tiles * slices)
    {
        const int64_t c = (block % tiles * 32 + lane) * 8, slice = block / tiles;
        const int64_t behind = (slice + 1) * call->n[TNCUDA_ROW_SLICE];
        const int64_t end = c >= call->size ? 0 : behind < call->count ? behind : call->count;
        double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0}, product[8] = {0, 0, 0, 0, 0, 0, 0, 0};

        TNCUDA_UNROLL_4
        for (int64_t r = slice * call->n[TNCUDA_ROW_SLICE] + member; r < end; r += members) {
            const float mean = element_f32(call->in[3].data, call->in[3].dtype, r);
            const float kept = element_f32(call->in[4].data, call->in[4].dtype, r);
            float dy[8], x[8];

            held_eight(call, 0, r * call->size + c, dy);
            held_eight(call, 1, r * call->size + c, x);
            TNCUDA_UNROLL
            for (int32_t j = 0; j < 8; j++) {
                sum[j] += (double)dy[j];
                product[j] += (double)dy[j] * (double)((x[j] - mean) / kept);
            }
        }
        TNCUDA_UNROLL
        for (int32_t j = 0; j < 8; j++) {
            members_sums(part, other, member, members, 32, &sum[j], &product[j]);
            if (member == 0 && c < call->size && slices > 1) {
                ((double *)call->room)[(slice * call->size + c + j) * 2] = sum[j];
                ((double *)call->room)[(slice * call->size + c + j) * 2 + 1] = product[j];
            } else if (member == 0 && c < call->size) {
                STORE(1, c + j, product[j]);
                STORE(2, c + j, sum[j]);
            }
        }
    }
}

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

/* ---- BatchNorm: n: TNCUDA_BATCH_…; f: eps, momentum; room: scale, bias, factor of each channel, then parts
 * of sums: SLICES for each channel */

#define ROOM(k, c) (((double *)call->room)[(k)*call->size + (c)])
#define BATCH_PART(k, c, slice)                                                                              \
    (((double *)call->room)[3 * call->size + ((c)*call->n[TNCUDA_BATCH_SLICES] + (slice)) * 2 + (k)])

/* y = x scale + bias, or with a second input z: + z factor. */
typedef struct batch_line {
    double scale, bias, factor;
} batch_line;

/* What sums of data count from, so that squares are small beside it: the channel's first element. */
TNCUDA_INLINE double batch_base(const tncuda_call_args *call, int64_t c)
{
    const double first = NUMBER_IN(0, CHANNEL_AT(c, 0));

    return isfinite(first) ? first : 0;
}

/* Of mean and variance of a channel, or of those that are kept where it does not train. `own`: this thread
 * writes the outputs. */
TNCUDA_INLINE batch_line batch_line_of(const tncuda_call_args *call, int64_t c, double mean, double var,
                                       int32_t own)
{
    const double old_mean = element_number(call->out[3].data, call->out[3].dtype, c),
                 old_var = element_number(call->out[4].data, call->out[4].dtype, c);
    batch_line line;
    double inverse;

    if (!call->n[TNCUDA_BATCH_TRAIN]) {
        mean = old_mean;
        var = old_var;
    } else if (own) {
        NUMBER_OUT(3, c, old_mean * call->f[1] + mean * (1 - call->f[1]));
        NUMBER_OUT(4, c, old_var * call->f[1] + var * (1 - call->f[1]));
    }
    inverse = 1 / sqrt(var + call->f[0]);
    line.scale = call->n[TNCUDA_BATCH_FIXED] ? inverse : inverse * NUMBER_IN(1, c);
    line.bias = NUMBER_IN(2, c) - mean * line.scale;
    line.factor = 0;
    if (own) {
        STORE(1, c, mean);
        STORE(2, c, inverse);
    }
    return line;
}

/* The same of the sums of dy and of dy (x - mean). */
TNCUDA_INLINE batch_line batch_back_line(const tncuda_call_args *call, int64_t c, double sum, double product,
                                         int32_t own)
{
    const int64_t each = call->outer * call->inner;
    const double mean = NUMBER_IN(3, c), inverse = NUMBER_IN(4, c);
    const int32_t train = call->n[TNCUDA_BATCH_TRAIN] && each > 0;
    batch_line line;

    line.scale = call->n[TNCUDA_BATCH_FIXED] ? inverse : inverse * NUMBER_IN(2, c);
    line.factor = train ? -line.scale * inverse * inverse * product / (double)each : 0;
    line.bias = train ? -line.scale * sum / (double)each - line.factor * mean : 0;
    if (own) {
        STORE(1, c, call->n[TNCUDA_BATCH_FIXED] ? 0.0 : product * inverse);
        STORE(2, c, sum);
    }
    return line;
}

/* Of a channel's sums: those of data count from batch_base. */
TNCUDA_INLINE batch_line batch_summed(const tncuda_call_args *call, int64_t c, double sum, double product,
                                      int32_t own)
{
    const double each = (double)(call->outer * call->inner);
    double var;

    if (call->n[TNCUDA_BATCH_BACK])
        return batch_back_line(call, c, sum, product, own);
    var = (product - sum * (sum / each)) / each;
    return batch_line_of(call, c, batch_base(call, c) + sum / each, var > 0 || var != var ? var : 0, own);
}

TNCUDA_INLINE void batch_keep(const tncuda_call_args *call, int64_t c, batch_line line)
{
    ROOM(0, c) = line.scale;
    ROOM(1, c) = line.bias;
    ROOM(2, c) = line.factor;
}

/* Of a channel, for its elements: out of the room, or made here of the parts, or of what batches left. */
TNCUDA_INLINE batch_line batch_line_for(const tncuda_call_args *call, int64_t c, int32_t own)
{
    double sum = 0, product = 0;
    batch_line line;

    if (!call->n[TNCUDA_BATCH_JOIN]) {
        line.scale = ROOM(0, c);
        line.bias = ROOM(1, c);
        line.factor = ROOM(2, c);
        return line;
    }
    if (!call->n[TNCUDA_BATCH_BACK] && !call->n[TNCUDA_BATCH_TRAIN])
        return batch_line_of(call, c, 0, 0, own);
    for (int64_t s = 0; s < call->n[TNCUDA_BATCH_SLICES]; s++) {
        sum += BATCH_PART(0, c, s);
        product += BATCH_PART(1, c, s);
    }
    return batch_summed(call, c, sum, product, own);
}

#define BODY "norm.inc"
#include "sums.h"
#undef BODY

/* Arrays of any type and any place: y = x scale + bias, or with a second input z: + z factor. */
TNCUDA_KERNEL(norm_batch_map, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i / call->inner % call->size;
        double y;

        if (call->out[0].dtype == ELEMENT_F64) {
            y = NUMBER_IN(0, i) * ROOM(0, c) + ROOM(1, c);
            y = call->n[TNCUDA_BATCH_BACK] ? y + NUMBER_IN(1, i) * ROOM(2, c) : y;
        } else {
            float v = (float)NUMBER_IN(0, i) * (float)ROOM(0, c) + (float)ROOM(1, c);

            v = call->n[TNCUDA_BATCH_BACK] ? v + (float)NUMBER_IN(1, i) * (float)ROOM(2, c) : v;
            y = (double)v;
        }
        NUMBER_OUT(0, i, call->n[TNCUDA_BATCH_RELU] && y < 0 ? 0.0 : y);
    }
}

/* The sums of a channel by blocks: SLICE elements for each. */
TNCUDA_KERNEL(norm_batch_sums, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);
    const int64_t each = call->outer * call->inner;
    const int32_t back = call->n[TNCUDA_BATCH_BACK] != 0;

    EACH_BLOCK(b, call->size * call->n[TNCUDA_BATCH_SLICES])
    {
        const int64_t c = b % call->size, slice = b / call->size, begin = slice * call->n[TNCUDA_BATCH_SLICE];
        const int64_t behind = begin + call->n[TNCUDA_BATCH_SLICE], end = behind < each ? behind : each;
        const double base = back ? NUMBER_IN(3, c) : batch_base(call, c);
        double sum = 0, product = 0;

        TNCUDA_UNROLL_4
        for (int64_t k = begin + TNCUDA_THREAD; k < end; k += TNCUDA_BLOCK_THREADS) {
            const int64_t at = CHANNEL_AT(c, k);
            const double x = NUMBER_IN(0, at), d = back ? x : x - base;

            sum += d;
            product += d * (back ? NUMBER_IN(1, at) - base : d);
        }
        members_sums(part, other, TNCUDA_THREAD, TNCUDA_BLOCK_THREADS, 1, &sum, &product);
        if (TNCUDA_THREAD == 0) {
            BATCH_PART(0, c, slice) = sum;
            BATCH_PART(1, c, slice) = product;
        }
    }
}

#define BATCH_LANES 32 /* threads that join the parts of a channel */

/* Of each channel from its parts, in a tree of fixed form. */
TNCUDA_KERNEL(norm_batch_end, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(double, other, TNCUDA_BLOCK_THREADS);
    const int32_t member = TNCUDA_THREAD % BATCH_LANES, sets = TNCUDA_BLOCK_THREADS / BATCH_LANES;

    EACH_BLOCK(set, (call->size + sets - 1) / sets)
    {
        const int64_t c = set * sets + TNCUDA_THREAD / BATCH_LANES;
        double sum = 0, product = 0;

        for (int64_t s = member; s < (c < call->size ? call->n[TNCUDA_BATCH_SLICES] : 0); s += BATCH_LANES) {
            sum += BATCH_PART(0, c, s);
            product += BATCH_PART(1, c, s);
        }
        members_sums(part, other, member, BATCH_LANES, 1, &sum, &product);
        if (member == 0 && c < call->size)
            batch_keep(call, c, batch_summed(call, c, sum, product, 1));
    }
}

TNCUDA_INLINE uint32_t batch_divided(const tncuda_call_args *call, int32_t at, uint32_t n)
{
    const tncuda_divisor by = {0, (uint32_t)call->n[at], (uint32_t)call->n[at + 1], 0};

    return divided(&by, n);
}

#define BATCH_TURN 2  /* packs that a thread of the map has under way */
#define BATCH_ROWS 16 /* rows that are added in float */
#define N f32
#define E float
#define WIDE 4
#define LOADED(e) (e)
#define STORED(f) (f)
#include "norm_batch.inc"
#define N f16
#define E uint16_t
#define WIDE 8
#define LOADED(e) tnb_half_float(e)
#define STORED(f) tnb_float_half(f)
#include "norm_batch.inc"
#define N bf16
#define E uint16_t
#define WIDE 8
#define LOADED(e) tnb_bf16_float(e)
#define STORED(f) tnb_float_bf16(f)
#include "norm_batch.inc"

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
    const int32_t column = TNCUDA_THREAD % TNCUDA_ROW_ENDS, member = TNCUDA_THREAD / TNCUDA_ROW_ENDS;
    const int32_t members = TNCUDA_BLOCK_THREADS / TNCUDA_ROW_ENDS;
    const double *room = (const double *)call->room;

    EACH_BLOCK(tile, (call->size + TNCUDA_ROW_ENDS - 1) / TNCUDA_ROW_ENDS)
    {
        const int64_t c = tile * TNCUDA_ROW_ENDS + column;
        double sum = 0, product = 0;

        TNCUDA_UNROLL_4
        for (int64_t s = member; s < (c < call->size ? call->n[TNCUDA_ROW_SLICES] : 0); s += members) {
            sum += room[(s * call->size + c) * 2];
            product += room[(s * call->size + c) * 2 + 1];
        }
        members_sums(part, other, member, members, TNCUDA_ROW_ENDS, &sum, &product);
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
    row.aligned = 1;
    return row;
}

#define HELD_TURN 4 /* rows that a thread has under way */
/* Of column j of eight, of thread `lane` of row `member`: columns lie four banks apart. */
#define HELD_PART(j, member, lane) ((j)*260 + (member)*32 + (lane))
#define HELD_PARTS (8 * 260)

#define HELD_BLOCKS 2 /* of an SM at once: as many as registers hold without spills */
#define HELD_BACK_BLOCKS 1
#define W double
#define HELD_SUM(v) pack_lanes_sum_f64(v, 32)
#define HELD_SQRT(v) sqrt(v)
#define D ELEMENT_F32
#define S(name) name##_f32
#include "norm_held.inc"
#undef W
#undef HELD_SUM
#undef HELD_SQRT
#undef HELD_BLOCKS
#undef HELD_BACK_BLOCKS
#define HELD_BLOCKS 3
#define HELD_BACK_BLOCKS 2
#define W float
#define HELD_SUM(v) pack_lanes_sum_f32(v, 32)
#define HELD_SQRT(v) sqrtf(v)
#define D ELEMENT_F16
#define S(name) name##_f16
#include "norm_held.inc"
#define D ELEMENT_BF16
#define S(name) name##_bf16
#include "norm_held.inc"

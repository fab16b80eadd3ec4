/* Kernels of the family softmax, for both compute types of floating point. */
#define BODY "softmax.inc"
#include "both.h"
#include "packs.h"

/* Rows of up to 1024 elements of f32, f16 or bf16: call->lanes threads make one, up to 32 elements each, which
 * stay in registers. `pack` of them are neighbours, 8 or 1, as the shape has it; `each`: 16 or 32. */

/* The sum of a thread's elements, as a tree. */
TNCUDA_INLINE float soft_sum(const float *v, int32_t each)
{
    float sum = 0;

    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 4)
        sum += (v[j] + v[j + 1]) + (v[j + 2] + v[j + 3]);
    return sum;
}

/* Of a row's threads, which are lanes, a multiple of 4; `part` is shared and has an element for each thread.
 * It may be used again behind the next barrier. */
TNCUDA_INLINE float soft_lanes_sum(float *part, int32_t lanes, float v)
{
    const int32_t first = TNCUDA_THREAD / lanes * lanes;
    float sum = 0;

    TNCUDA_PUT(part, TNCUDA_THREAD, v);
    TNCUDA_SYNC();
    for (int32_t i = first; i < first + lanes; i += 4)
        sum += (TNCUDA_GET(part, i) + TNCUDA_GET(part, i + 1)) +
               (TNCUDA_GET(part, i + 2) + TNCUDA_GET(part, i + 3));
    return sum;
}

TNCUDA_INLINE float soft_lanes_most(float *part, int32_t lanes, float most)
{
    const int32_t first = TNCUDA_THREAD / lanes * lanes;

    TNCUDA_PUT(part, TNCUDA_THREAD, most);
    TNCUDA_SYNC();
    for (int32_t i = first; i < first + lanes; i++) {
        const float v = TNCUDA_GET(part, i);

        most = v > most || v != v ? v : most;
    }
    return most;
}

TNCUDA_INLINE pack_row soft_row(const tncuda_rows_args *call, int64_t r)
{
    pack_row row;

    row.at = r * call->size;
    row.size = r < call->outer ? (int32_t)call->size : 0;
    row.lanes = call->lanes;
    row.lane = TNCUDA_THREAD % call->lanes;
    row.pack = call->pack;
    row.aligned = call->aligned;
    return row;
}

TNCUDA_INLINE void soft_y_row(const tncuda_rows_args *call, int64_t r, int32_t each, float *largest,
                              float *sums)
{
    const pack_row row = soft_row(call, r);
    const float scale = (float)call->scale;
    float v[32], e[32], most = -INFINITY, sum;

    pack_row_in(&row, call->x, call->dtype, each, -INFINITY, v);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++) {
        v[j] = PACK_PLACE(&row, j) < row.size ? v[j] * scale : v[j];
        most = v[j] > most || v[j] != v[j] ? v[j] : most;
    }
    most = soft_lanes_most(largest, call->lanes, most);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++) {
        v[j] -= most;
        e[j] = tnb_exp_f32(v[j]);
    }
    sum = soft_lanes_sum(sums, call->lanes, soft_sum(e, each));
    if (call->form == TNCUDA_SOFT_LOG) {
        const float of = (float)tnb_log((double)sum);

        TNCUDA_UNROLL
        for (int32_t j = 0; j < each; j++)
            v[j] -= of;
        pack_row_out(&row, call->to, call->out_dtype, each, v);
    } else {
        const float inverse = 1 / sum;

        TNCUDA_UNROLL
        for (int32_t j = 0; j < each; j++)
            e[j] *= inverse;
        pack_row_out(&row, call->to, call->out_dtype, each, e);
    }
}

TNCUDA_INLINE void soft_dx_row(const tncuda_rows_args *call, int64_t r, int32_t each, float *sums)
{
    const pack_row row = soft_row(call, r);
    const float scale = (float)call->scale;
    float dy[32], y[32], v[32], sum;

    pack_row_in(&row, call->dy, call->dtype, each, 0, dy);
    pack_row_in(&row, call->y, call->dtype, each, 0, y);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++)
        v[j] = call->form == TNCUDA_SOFT_LOG ? dy[j] : dy[j] * y[j];
    sum = soft_lanes_sum(sums, call->lanes, soft_sum(v, each));
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++)
        v[j] =
            scale * (call->form == TNCUDA_SOFT_LOG ? dy[j] - tnb_exp_f32(y[j]) * sum : y[j] * (dy[j] - sum));
    pack_row_out(&row, call->to, call->out_dtype, each, v);
}

/* All threads of a block come to the same barriers: those behind the last row have one of nothing. */
#define SOFT_SHORT_ROWS                                                                                      \
    const int32_t groups = TNCUDA_BLOCK_THREADS / call->lanes, own = TNCUDA_THREAD / call->lanes;            \
                                                                                                             \
    for (int64_t set = TNCUDA_BLOCK * groups; set < call->outer; set += TNCUDA_BLOCKS * groups)

TNCUDA_KERNEL(soft_y_short, SYNC, tncuda_rows_args)
{
    TNCUDA_SHARED(float, largest, TNCUDA_BLOCK_THREADS);
    TNCUDA_SHARED(float, sums, TNCUDA_BLOCK_THREADS);

    SOFT_SHORT_ROWS
    {
        if (call->size <= call->lanes * 16)
            soft_y_row(call, set + own, 16, largest, sums);
        else
            soft_y_row(call, set + own, 32, largest, sums);
    }
}

TNCUDA_KERNEL(soft_dx_short, SYNC, tncuda_rows_args)
{
    TNCUDA_SHARED(float, sums, TNCUDA_BLOCK_THREADS);

    SOFT_SHORT_ROWS
    {
        if (call->size <= call->lanes * 16)
            soft_dx_row(call, set + own, 16, sums);
        else
            soft_dx_row(call, set + own, 32, sums);
        TNCUDA_SYNC();
    }
}

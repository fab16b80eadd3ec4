/* Kernels of the family softmax, for both compute types of floating point. */
#define BODY "softmax.inc"
#include "both.h"
#include "packs.h"

/* Rows of up to 1024 elements of f32, f16 or bf16, a multiple of 8: call->lanes threads make one, of up to
 * `each` elements, which stay in registers. `logs`: of log_softmax. */

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
    row.aligned = call->aligned;
    return row;
}

TNCUDA_INLINE void soft_y_row(const tncuda_rows_args *call, int64_t r, int32_t each, int32_t logs,
                              float *largest, float *sums)
{
    const pack_row row = soft_row(call, r);
    const float scale = (float)call->scale;
    float v[32], most = -INFINITY, sum = 0, by;

    pack_row_in(&row, call->x, call->dtype, each, 0, v);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++) {
        v[j] = PACK_PLACE(&row, j) < row.size ? v[j] * scale : -INFINITY;
        most = v[j] > most || v[j] != v[j] ? v[j] : most;
    }
    most = soft_lanes_most(largest, row.lanes, most);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 4) {
        float e[4];

        TNCUDA_UNROLL
        for (int32_t i = 0; i < 4; i++) {
            v[j + i] -= most;
            e[i] = tnb_exp_f32(v[j + i]);
            v[j + i] = logs ? v[j + i] : e[i];
        }
        sum += (e[0] + e[1]) + (e[2] + e[3]);
    }
    sum = soft_lanes_sum(sums, row.lanes, sum);
    by = logs ? (float)tnb_log((double)sum) : 1 / sum;
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++)
        v[j] = logs ? v[j] - by : v[j] * by;
    pack_row_out(&row, call->to, call->out_dtype, each, v);
}

TNCUDA_INLINE void soft_dx_row(const tncuda_rows_args *call, int64_t r, int32_t each, int32_t logs,
                               float *sums)
{
    const pack_row row = soft_row(call, r);
    const float scale = (float)call->scale;
    float dy[32], y[32], sum = 0;

    pack_row_in(&row, call->dy, call->dtype, each, 0, dy);
    pack_row_in(&row, call->y, call->dtype, each, 0, y);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j += 2)
        sum += logs ? dy[j] + dy[j + 1] : dy[j] * y[j] + dy[j + 1] * y[j + 1];
    sum = soft_lanes_sum(sums, row.lanes, sum);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < each; j++)
        dy[j] = scale * (logs ? dy[j] - tnb_exp_f32(y[j]) * sum : y[j] * (dy[j] - sum));
    pack_row_out(&row, call->to, call->out_dtype, each, dy);
}

/* All threads of a block come to the same barriers: those behind the last row have one of nothing. */
#define SOFT_SHORT(name, each, logs)                                                                         \
    TNCUDA_KERNEL(soft_y_##name, SYNC, tncuda_rows_args)                                                     \
    {                                                                                                        \
        TNCUDA_SHARED(float, largest, TNCUDA_BLOCK_THREADS);                                                 \
        TNCUDA_SHARED(float, sums, TNCUDA_BLOCK_THREADS);                                                    \
        const int32_t rows = TNCUDA_BLOCK_THREADS / call->lanes, own = TNCUDA_THREAD / call->lanes;          \
                                                                                                             \
        for (int64_t set = TNCUDA_BLOCK * rows; set < call->outer; set += TNCUDA_BLOCKS * rows)              \
            soft_y_row(call, set + own, each, logs, largest, sums);                                          \
    }                                                                                                        \
    TNCUDA_KERNEL(soft_dx_##name, SYNC, tncuda_rows_args)                                                    \
    {                                                                                                        \
        TNCUDA_SHARED(float, sums, TNCUDA_BLOCK_THREADS);                                                    \
        const int32_t rows = TNCUDA_BLOCK_THREADS / call->lanes, own = TNCUDA_THREAD / call->lanes;          \
                                                                                                             \
        for (int64_t set = TNCUDA_BLOCK * rows; set < call->outer; set += TNCUDA_BLOCKS * rows) {            \
            soft_dx_row(call, set + own, each, logs, sums);                                                  \
            TNCUDA_SYNC();                                                                                   \
        }                                                                                                    \
    }
SOFT_SHORT(16, 16, 0)
SOFT_SHORT(32, 32, 0)
SOFT_SHORT(log_16, 16, 1)
SOFT_SHORT(log_32, 32, 1)

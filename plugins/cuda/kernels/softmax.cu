/* Kernels of the family softmax, for both compute types of floating point. */
#include "../../common/functions_float.h"

#define BODY "softmax.inc"
#include "both.h"
#include "packs.h"

/* Rows of up to 1024 elements of f32, f16 or bf16, a multiple of 8: call->lanes threads of a warp make one,
 * of up to `each` elements, which stay in registers. What `form` tells is a constant of the kernel, so that
 * no branch stands between the loads of a row. */
typedef struct soft_form {
    int32_t each, logs; /* logs: of log_softmax */
    int32_t is_whole;   /* arrays are aligned as packs are, and of the same type */
    int32_t dtype, out_dtype;
} soft_form;

/* The largest over `lanes` threads; NaN where there is one. */
TNCUDA_INLINE float soft_lanes_most(float most, int32_t lanes)
{
    for (int32_t mask = lanes / 2; mask > 0; mask /= 2) {
        const float v = TNCUDA_SHUFFLE_XOR(most, mask);

        most = v > most || v != v ? v : most;
    }
    return most;
}

TNCUDA_INLINE pack_row soft_row(const tncuda_rows_args *call, soft_form form, int64_t r)
{
    pack_row row;

    row.at = r * call->size;
    row.size = r < call->outer ? (int32_t)call->size : 0;
    row.lanes = call->lanes;
    row.lane = TNCUDA_THREAD % call->lanes;
    row.aligned = form.is_whole || call->aligned;
    return row;
}

/* A row; 0 behind its end. */
TNCUDA_INLINE void soft_in(const pack_row *row, const void *data, soft_form form, float *v)
{
    pack_held held[4];

    if (!form.is_whole) {
        pack_row_in(row, data, form.dtype, form.each, 0, v);
        return;
    }
    pack_row_hold(row, data, form.dtype, row->at, form.each, held);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j++)
        v[j] = pack_number(&held[j / 8], form.dtype, j % 8);
}

TNCUDA_INLINE void soft_out(const pack_row *row, void *data, soft_form form, const float *v)
{
    if (!form.is_whole) {
        pack_row_out(row, data, form.out_dtype, form.each, v);
        return;
    }
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j += 8)
        if (PACK_PLACE(row, j) < row->size)
            pack_known_out_8(data, form.out_dtype, row->at + PACK_PLACE(row, j), v + j);
}

TNCUDA_INLINE void soft_y_row(const tncuda_rows_args *call, soft_form form, int64_t r)
{
    const pack_row row = soft_row(call, form, r);
    const float scale = (float)call->scale;
    float v[32], most = -INFINITY, sum = 0, by;

    soft_in(&row, call->x, form, v);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j++) {
        v[j] = PACK_PLACE(&row, j) < row.size ? v[j] * scale : -INFINITY;
        most = v[j] > most || v[j] != v[j] ? v[j] : most;
    }
    most = soft_lanes_most(most, row.lanes);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j += 4) {
        float e[4];

        TNCUDA_UNROLL
        for (int32_t i = 0; i < 4; i++) {
            v[j + i] -= most;
            e[i] = tnb_float_exp_below(v[j + i]);
            v[j + i] = form.logs ? v[j + i] : e[i];
        }
        sum += (e[0] + e[1]) + (e[2] + e[3]);
    }
    sum = pack_lanes_sum_f32(sum, row.lanes);
    by = form.logs ? (float)tnb_log((double)sum) : 1 / sum;
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j++)
        v[j] = form.logs ? v[j] - by : v[j] * by;
    soft_out(&row, call->to, form, v);
}

TNCUDA_INLINE void soft_dx_row(const tncuda_rows_args *call, soft_form form, int64_t r)
{
    const pack_row row = soft_row(call, form, r);
    const float scale = (float)call->scale;
    float dy[32], y[32], sum = 0;

    soft_in(&row, call->dy, form, dy);
    soft_in(&row, call->y, form, y);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j += 2)
        sum += form.logs ? dy[j] + dy[j + 1] : dy[j] * y[j] + dy[j + 1] * y[j + 1];
    sum = pack_lanes_sum_f32(sum, row.lanes);
    TNCUDA_UNROLL
    for (int32_t j = 0; j < form.each; j++)
        dy[j] = scale * (form.logs ? dy[j] - tnb_exp_f32(y[j]) * sum : y[j] * (dy[j] - sum));
    soft_out(&row, call->to, form, dy);
}

/* All threads of a warp come to the same shuffles: those behind the last row have one of nothing. */
#define SOFT_KERNEL(kind, name, ...)                                                                         \
    TNCUDA_KERNEL(soft_##kind##_##name, SYNC, tncuda_rows_args)                                              \
    {                                                                                                        \
        const int32_t rows = TNCUDA_BLOCK_THREADS / call->lanes, own = TNCUDA_THREAD / call->lanes;          \
        const soft_form form = {__VA_ARGS__};                                                                \
                                                                                                             \
        for (int64_t set = TNCUDA_BLOCK * rows; set < call->outer; set += TNCUDA_BLOCKS * rows)              \
            soft_##kind##_row(call, form, set + own);                                                        \
    }
#define SOFT_ANY(name, each, logs)                                                                           \
    SOFT_KERNEL(y, name, each, logs, 0, call->dtype, call->out_dtype)                                        \
    SOFT_KERNEL(dx, name, each, logs, 0, call->dtype, call->out_dtype)
#define SOFT_WHOLE(name, each, dtype)                                                                        \
    SOFT_KERNEL(y, name, each, 0, 1, dtype, dtype)                                                           \
    SOFT_KERNEL(dx, name, each, 0, 1, dtype, dtype)
SOFT_ANY(16, 16, 0)
SOFT_ANY(32, 32, 0)
SOFT_ANY(log_16, 16, 1)
SOFT_ANY(log_32, 32, 1)
SOFT_WHOLE(16_f32, 16, ELEMENT_F32)
SOFT_WHOLE(32_f32, 32, ELEMENT_F32)
SOFT_WHOLE(16_f16, 16, ELEMENT_F16)
SOFT_WHOLE(32_f16, 32, ELEMENT_F16)
SOFT_WHOLE(16_bf16, 16, ELEMENT_BF16)
SOFT_WHOLE(32_bf16, 32, ELEMENT_BF16)

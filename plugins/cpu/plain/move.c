/*
 * The strided copy. The last dimension is the inner loop; where the source runs along another dimension, both
 * are walked in square tiles, so that each cache line is read and written once. Threads take parts of the
 * first dimension: every element is written by one of them.
 */
#include "move.h"

#include <string.h>

#include "pointwise.h"
#include "tenon/plugin/op/move.h"

#define TILE 16
#define NS_PER_ELEMENT 0.7

void tncpu_move_plan(const tn_node *node, tn_plan *plan, int64_t count)
{
    tncpu_plan_tasks(node, plan, 20 + NS_PER_ELEMENT * (double)count, count / 4096 + 1);
}

/* One run of n elements, and tiles of rows x columns: src runs along rows, dst along columns. */
typedef void run_function(const void *src, int64_t src_step, void *dst, int64_t dst_step, int64_t n);
typedef void tiles_function(const void *src, int64_t src_step, void *dst, int64_t dst_step, int64_t rows,
                            int64_t cols);

#define DEFINE_LOOPS(T, name)                                                                                \
    static void run_##name(const void *src, int64_t src_step, void *dst, int64_t dst_step, int64_t n)        \
    {                                                                                                        \
        const T *from = src;                                                                                 \
        T *to = dst;                                                                                         \
                                                                                                             \
        if (src_step == 1 && dst_step == 1)                                                                  \
            memcpy(to, from, sizeof(T) * (size_t)n);                                                         \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                  \
                to[i * dst_step] = from[i * src_step];                                                       \
    }                                                                                                        \
    static void tiles_##name(const void *src, int64_t src_step, void *dst, int64_t dst_step, int64_t rows,   \
                             int64_t cols)                                                                   \
    {                                                                                                        \
        const T *from = src;                                                                                 \
        T *to = dst;                                                                                         \
                                                                                                             \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                                          \
            for (int64_t j0 = 0; j0 < cols; j0 += TILE)                                                      \
                for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                                         \
                    for (int64_t j = j0; j < cols && j < j0 + TILE; j++)                                     \
                        to[i * dst_step + j] = from[i + j * src_step];                                       \
    }
DEFINE_LOOPS(uint8_t, 1)
DEFINE_LOOPS(uint16_t, 2)
DEFINE_LOOPS(uint32_t, 4)
DEFINE_LOOPS(uint64_t, 8)

static run_function *const runs[] = {[1] = run_1, [2] = run_2, [4] = run_4, [8] = run_8};
static tiles_function *const tiles[] = {[1] = tiles_1, [2] = tiles_2, [4] = tiles_4, [8] = tiles_8};

/* The dimension along which the source runs, if it is worth tiles; -1: none. */
static int32_t tiled(const tnb_move *m)
{
    const int32_t last = m->ndim - 1;

    if (last < 1 || m->dst_step[last] != 1 || m->src_step[last] == 1 || m->extent[last] < 4)
        return -1;
    for (int32_t k = last - 1; k >= 0; k--)
        if (m->src_step[k] == 1 && m->extent[k] >= 4)
            return k;
    return -1;
}

/* All of `m`, on the calling thread. */
static void move_part(const tnb_move *m, const char *src, char *dst)
{
    const int32_t last = m->ndim - 1, across = tiled(m);
    int64_t at[TNB_MOVE_DIMS] = {0};

    for (;;) {
        int32_t k = last - 1;

        if (across < 0)
            runs[m->size](src, m->src_step[last], dst, m->dst_step[last], m->extent[last]);
        else
            tiles[m->size](src, m->src_step[last], dst, m->dst_step[across], m->extent[across],
                           m->extent[last]);
        for (; k >= 0; k--) {
            if (k == across)
                continue;
            src += m->src_step[k] * m->size;
            dst += m->dst_step[k] * m->size;
            if (++at[k] < m->extent[k])
                break;
            src -= m->src_step[k] * m->size * m->extent[k];
            dst -= m->dst_step[k] * m->size * m->extent[k];
            at[k] = 0;
        }
        if (k < 0)
            return;
    }
}

void tncpu_move_run(const tnb_move *m, const void *src, void *dst, int threads)
{
    tnb_move whole = *m;
    int64_t parts;

    for (int32_t k = 0; k < m->ndim; k++)
        if (m->extent[k] == 0)
            return;
    if (whole.ndim == 0) {
        whole.ndim = 1;
        whole.extent[0] = whole.src_step[0] = whole.dst_step[0] = 1;
    }
    parts = threads > 1 ? tncpu_min(whole.extent[0], 4 * threads) : 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = whole.extent[0] * p / parts, end = whole.extent[0] * (p + 1) / parts;
        tnb_move part = whole;

        part.extent[0] = end - begin;
        move_part(&part, (const char *)src + begin * whole.src_step[0] * whole.size,
                  (char *)dst + begin * whole.dst_step[0] * whole.size);
    }
}

/* ---- of ../../common/move.h ---------------------------------------------------------------------- */

tn_status tnb_move_prepare(void *plugin, const tn_node *node, tn_plan *plan, int64_t count, uint64_t bytes,
                           tn_err *err)
{
    const tn_status st = bytes ? tncpu_state(plugin, plan, bytes, err) : TN_OK;

    if (!st)
        tncpu_move_plan(node, plan, count);
    return st;
}

tn_status tnb_move_run(const tn_plan *plan, const tn_exec *x, const tnb_move *m, const void *src, void *dst,
                       tn_err *err)
{
    (void)err;
    tncpu_move_run(m, src, dst, tncpu_run_threads(plan, x));
    return TN_OK;
}

tn_status tnb_move_number(const tn_plan *plan, const tn_exec *x, const tnb_move *m, int32_t dtype,
                          double number, void *dst, tn_err *err)
{
    tnb_move same = *m;
    uint64_t element = 0;

    tncpu_converts[dtype].store_f(&number, &element, 1, 1);
    for (int32_t k = 0; k < same.ndim; k++)
        same.src_step[k] = 0;
    return tnb_move_run(plan, x, &same, &element, dst, err);
}

/* ---- fills and copies of arrays on a device that runs these kernels ------------------------------ */

/* Dimensions in the order of the output's strides. `src` NULL: one element, read again and again. */
static void array_plan(tnb_move *m, const tn_tensor *src, const tn_tensor *dst)
{
    int32_t order[TN_NDIM_MAX];

    for (int32_t k = 0; k < dst->ndim; k++) {
        int32_t at = k;

        for (; at > 0 && dst->stride[order[at - 1]] < dst->stride[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    m->size = (int32_t)tn_dtype_bytes(dst->dtype);
    for (int32_t k = 0; k < dst->ndim; k++)
        tnb_move_add(m, dst->shape[order[k]], src ? src->stride[order[k]] : 0, dst->stride[order[k]]);
}

static tn_status array_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(tnb_move), err);

    if (st)
        return st;
    array_plan(plan->state, strcmp(node->op, "_fill") ? node->in[0] : NULL, node->out[0]);
    tncpu_plan_tasks(node, plan, 20 + NS_PER_ELEMENT * (double)tn_tensor_count(node->out[0]), 1);
    return TN_OK;
}

static tn_status fill_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double value = tn_value_float(x->attrs[TN_fill_value]);
    uint64_t element = 0;

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncpu_converts[x->out[0]->dtype].store_f(&value, &element, 1, 1);
    tncpu_move_run(plan->state, &element, x->out[0]->data, 1);
    return TN_OK;
}

/* One run of n elements, cast or added. What is added was cast before. */
static void array_row(const tn_exec *x, const char *src, int64_t src_step, char *dst, int64_t dst_step,
                      int64_t n)
{
    const tncpu_convert *from = &tncpu_converts[x->in[0]->dtype], *to = &tncpu_converts[x->out[0]->dtype];
    tncpu_tile cast, sum;

    for (int64_t at = 0; at < n; at += TNCPU_TILE) {
        const int64_t part = tncpu_min(n - at, TNCPU_TILE);
        const char *read = src + at * src_step * from->bytes;
        char *write = dst + at * dst_step * to->bytes;

        if (x->modes[0] != TN_MODE_ADD) {
            tncpu_cast_tile(from, read, src_step, to, write, dst_step, part);
            continue;
        }
        if (from != to)
            tncpu_cast_tile(from, read, src_step, to, &cast, 1, part);
        to->load(from != to ? (const char *)&cast : read, from != to ? 1 : src_step, &sum, part);
        to->add(&sum, write, dst_step, part);
    }
}

/* The rows of `m`, from dimension k on. */
static void array_rows(const tnb_move *m, int32_t k, const tn_exec *x, const char *src, char *dst)
{
    const int64_t src_bytes = tncpu_converts[x->in[0]->dtype].bytes, dst_bytes = m->size;

    if (k >= m->ndim - 1) {
        array_row(x, src, m->ndim ? m->src_step[k] : 1, dst, m->ndim ? m->dst_step[k] : 1,
                  m->ndim ? m->extent[k] : 1);
        return;
    }
    for (int64_t i = 0; i < m->extent[k]; i++)
        array_rows(m, k + 1, x, src + i * m->src_step[k] * src_bytes, dst + i * m->dst_step[k] * dst_bytes);
}

static tn_status move_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    if (x->modes[0] == TN_MODE_WRITE && x->in[0]->dtype == x->out[0]->dtype)
        tncpu_move_run(plan->state, x->in[0]->data, x->out[0]->data, 1);
    else if (x->modes[0] != TN_MODE_NONE)
        array_rows(plan->state, 0, x, x->in[0]->data, x->out[0]->data);
    return TN_OK;
}

const tn_kernel *const tncpu_family_move[] = {
    TNCPU_ROW("_fill", tncpu_all, TN_KERNEL_STRIDED, array_prepare, fill_run),
    TNCPU_ROW("_move", tncpu_all, TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, array_prepare, move_run),
    NULL,
};

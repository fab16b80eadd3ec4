/*
 * The strided copy. The last dimension is the inner loop; where the source runs along another dimension, both
 * are walked in square tiles, so that each cache line is read and written once. Threads take parts of the
 * first dimension: every element is written by one of them.
 */
#include "move.h"

#include <string.h>

#define TILE 16
#define NS_PER_ELEMENT 0.7

void tncpu_move_add(tncpu_move *m, int64_t extent, int64_t src_step, int64_t dst_step)
{
    const int32_t last = m->ndim - 1;
    int64_t joined;

    if (extent == 1)
        return;
    /* beside an extent of 0 the product of the others may be too large */
    if (last >= 0 && m->src_step[last] == src_step * extent && m->dst_step[last] == dst_step * extent &&
        !__builtin_mul_overflow(m->extent[last], extent, &joined)) {
        m->extent[last] = joined;
        m->src_step[last] = src_step;
        m->dst_step[last] = dst_step;
        return;
    }
    m->extent[m->ndim] = extent;
    m->src_step[m->ndim] = src_step;
    m->dst_step[m->ndim] = dst_step;
    m->ndim++;
}

void tncpu_move_steps(const int64_t *shape, int32_t ndim, int64_t *step)
{
    int64_t n = 1;

    for (int32_t k = ndim; k-- > 0; n *= shape[k])
        step[k] = n;
}

tn_status tncpu_move_plan(const tn_node *node, tn_plan *plan, int64_t count)
{
    tncpu_plan_tasks(node, plan, 20 + NS_PER_ELEMENT * (double)count, count / 4096 + 1);
    return TN_OK;
}

/* One run of n elements, and tiles of rows x columns: src runs along rows, dst along columns. */
#define DEFINE_LOOPS(T, name)                                                                                \
    static void run_##name(const T *src, int64_t src_step, T *dst, int64_t dst_step, int64_t n)              \
    {                                                                                                        \
        if (src_step == 1 && dst_step == 1)                                                                  \
            memcpy(dst, src, sizeof(T) * (size_t)n);                                                         \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                  \
                dst[i * dst_step] = src[i * src_step];                                                       \
    }                                                                                                        \
    static void tiles_##name(const T *src, int64_t src_step, T *dst, int64_t dst_step, int64_t rows,         \
                             int64_t cols)                                                                   \
    {                                                                                                        \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE)                                                          \
            for (int64_t j0 = 0; j0 < cols; j0 += TILE)                                                      \
                for (int64_t i = i0; i < rows && i < i0 + TILE; i++)                                         \
                    for (int64_t j = j0; j < cols && j < j0 + TILE; j++)                                     \
                        dst[i * dst_step + j] = src[i + j * src_step];                                       \
    }
DEFINE_LOOPS(uint8_t, 1)
DEFINE_LOOPS(uint16_t, 2)
DEFINE_LOOPS(uint32_t, 4)
DEFINE_LOOPS(uint64_t, 8)

static void run_any(int32_t size, const void *src, int64_t src_step, void *dst, int64_t dst_step, int64_t n)
{
    if (size == 4)
        run_4(src, src_step, dst, dst_step, n);
    else if (size == 8)
        run_8(src, src_step, dst, dst_step, n);
    else if (size == 2)
        run_2(src, src_step, dst, dst_step, n);
    else
        run_1(src, src_step, dst, dst_step, n);
}

static void tiles_any(int32_t size, const void *src, int64_t src_step, void *dst, int64_t dst_step,
                      int64_t rows, int64_t cols)
{
    if (size == 4)
        tiles_4(src, src_step, dst, dst_step, rows, cols);
    else if (size == 8)
        tiles_8(src, src_step, dst, dst_step, rows, cols);
    else if (size == 2)
        tiles_2(src, src_step, dst, dst_step, rows, cols);
    else
        tiles_1(src, src_step, dst, dst_step, rows, cols);
}

/* The dimension along which the source runs, if it is worth tiles; -1: none. */
static int32_t tiled(const tncpu_move *m)
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
static void move_part(const tncpu_move *m, const char *src, char *dst)
{
    const int32_t last = m->ndim - 1, across = tiled(m);
    int64_t at[TNCPU_MOVE_DIMS] = {0};

    for (;;) {
        int32_t k = last - 1;

        if (across < 0)
            run_any(m->size, src, m->src_step[last], dst, m->dst_step[last], m->extent[last]);
        else
            tiles_any(m->size, src, m->src_step[last], dst, m->dst_step[across], m->extent[across],
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

void tncpu_move_run(const tncpu_move *m, const void *src, void *dst, int threads)
{
    tncpu_move whole = *m;
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
        tncpu_move part = whole;

        part.extent[0] = end - begin;
        move_part(&part, (const char *)src + begin * whole.src_step[0] * whole.size,
                  (char *)dst + begin * whole.dst_step[0] * whole.size);
    }
}

/* ../common/move.h for GPUs: a strided copy is one launch. */
#include "../common/move.h"
#include "../common/index.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define TURN_LEAST 8 /* rows and columns of a matrix that is turned by tiles */

tn_status tnb_move_prepare(void *plugin, const tn_node *node, tn_plan *plan, int64_t count, uint64_t bytes,
                           tn_err *err)
{
    (void)count;
    return tncuda_state(plugin, node, plan, bytes, err);
}

static int64_t count_of(const tnb_move *m)
{
    int64_t n = 1;

    for (int32_t k = 0; k < m->ndim; k++)
        if (m->extent[k] == 0)
            return 0;
    for (int32_t k = 0; k < m->ndim; k++)
        n *= m->extent[k];
    return n;
}

/* Elements that lie side by side on both sides are moved as one, up to 16 bytes; the bytes of one then. */
static int32_t widened(tncuda_move_args *a, int32_t size)
{
    const int32_t last = a->ndim - 1;

    while (size < 16) {
        bool even = a->src_step[last] == 1 && a->dst_step[last] == 1 && a->extent[last] % 2 == 0 &&
                    ((uintptr_t)a->src | (uintptr_t)a->dst) % (2u * (uint32_t)size) == 0;

        for (int32_t d = 0; d < last && even; d++)
            even = a->src_step[d] % 2 == 0 && a->dst_step[d] % 2 == 0;
        if (!even)
            break;
        for (int32_t d = 0; d < last; d++) {
            a->src_step[d] /= 2;
            a->dst_step[d] /= 2;
        }
        a->extent[last] /= 2;
        a->count /= 2;
        size *= 2;
    }
    return size;
}

/* The dimension along which a turn reads neighbours, where it writes neighbours along the last one; -1: it is
 * no turn, or too small for one. */
static int32_t turned_from(const tncuda_move_args *a)
{
    const int32_t last = a->ndim - 1;

    if (a->dst_step[last] != 1 || a->src_step[last] == 1 || a->src_step[last] == 0 ||
        a->extent[last] < TURN_LEAST)
        return -1;
    for (int32_t d = 0; d < last; d++)
        if (a->src_step[d] == 1 && a->extent[d] >= TURN_LEAST)
            return d;
    return -1;
}

static int64_t turned_tiles(const tncuda_move_args *a, int64_t count)
{
    const int64_t rows = a->extent[a->from], cols = a->extent[a->ndim - 1];

    return count / rows / cols * ((rows + TNCUDA_TURN - 1) / TNCUDA_TURN) *
           ((cols + TNCUDA_TURN - 1) / TNCUDA_TURN);
}

tn_status tncuda_copy_dense(const tn_exec *x, void *dst, const void *src, uint64_t bytes, tn_err *err)
{
    const tn_tensor *t = x->out[0];
    const tn_place from = {(void *)(uintptr_t)src, t->device, t->memory, "cuda"},
                   to = {dst, t->device, t->memory, "cuda"};

    return dst == src ? TN_OK : tncuda_copy((tn_stream *)(uintptr_t)x->stream, &to, &from, bytes, err);
}

/* Runs in the GPU's order of copies where nothing is strided. */
tn_status tnb_move_run(const tn_plan *plan, const tn_exec *x, const tnb_move *m, const void *src, void *dst,
                       tn_err *err)
{
    const int64_t count = count_of(m);
    tncuda_move_args a = {.count = count, .ndim = m->ndim ? m->ndim : 1, .src = src, .dst = dst};
    const size_t bytes = (size_t)m->ndim * sizeof a.extent[0];
    char kernel[TNCUDA_NAME_BYTES];

    (void)plan;
    if (!count)
        return TN_OK;
    if (m->ndim <= 1 && (!m->ndim || (m->src_step[0] == 1 && m->dst_step[0] == 1)))
        return tncuda_copy_dense(x, dst, src, (uint64_t)(count * m->size), err);
    memcpy(a.extent, m->extent, bytes);
    memcpy(a.src_step, m->src_step, bytes);
    memcpy(a.dst_step, m->dst_step, bytes);
    a.from = turned_from(&a);
    if (a.from >= 0) {
        (void)snprintf(kernel, sizeof kernel, "turn_%d", (int)m->size);
        a.count = turned_tiles(&a, count);
        return tncuda_launch_blocks(x, "move", kernel, tnb_least(a.count, INT32_MAX), &a, err);
    }
    (void)snprintf(kernel, sizeof kernel, "move_%d", (int)widened(&a, m->size));
    a.narrow = a.count <= INT32_MAX && tncuda_is_narrow(a.ndim, a.extent, a.src_step) &&
               tncuda_is_narrow(a.ndim, a.extent, a.dst_step);
    for (int32_t k = 0; k < a.ndim && a.narrow; k++)
        a.split[k] = tncuda_divisor_of(a.extent[k]);
    return tncuda_launch(x, "move", kernel, a.count, &a, err);
}

tn_status tnb_move_number(const tn_plan *plan, const tn_exec *x, const tnb_move *m, int32_t dtype,
                          double number, void *dst, tn_err *err)
{
    tncuda_point_args a = {.count = count_of(m), .number = number, .out = {.data = dst, .dtype = dtype}};
    int64_t *const steps[] = {a.out.stride};

    (void)plan;
    if (m->ndim > TNCUDA_NDIM)
        return tn_fail(err, TN_E_UNSUPPORTED, "more dimensions than a fill has");
    for (int32_t k = 0; k < m->ndim; k++)
        a.out.stride[k] = m->dst_step[k];
    if (a.count)
        a.ndim = tnb_join(m->ndim, m->extent, 1, steps, a.shape);
    return tncuda_fill(x, &a, err);
}

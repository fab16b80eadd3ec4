/* ../common/move.h for GPUs: a strided copy is one launch. */
#include "../common/move.h"
#include "../common/index.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

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
    if (m->ndim <= 1 && (!m->ndim || (m->src_step[0] == 1 && m->dst_step[0] == 1))) {
        const tn_tensor *t = x->out[0];
        const tn_place from = {(void *)(uintptr_t)src, t->device, t->memory, "cuda"},
                       to = {dst, t->device, t->memory, "cuda"};

        return tncuda_copy((tn_stream *)(uintptr_t)x->stream, &to, &from, (uint64_t)(count * m->size), err);
    }
    memcpy(a.extent, m->extent, bytes);
    memcpy(a.src_step, m->src_step, bytes);
    memcpy(a.dst_step, m->dst_step, bytes);
    (void)snprintf(kernel, sizeof kernel, "move_%d", (int)m->size);
    return tncuda_launch(x, "move", kernel, count, &a, err);
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

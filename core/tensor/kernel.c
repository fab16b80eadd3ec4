/*
 * Fills, copies, casts and sums by a kernel of the device, which room compile finds (tni_array_kernels). A
 * kernel is found when the operation is made, and shared with all equal ones.
 */
#include "tensor/internal.h"

/* What a plan may depend on: one for all views of this shape, wherever they begin. */
static void as_planned(const tni_array *a, tn_tensor *t)
{
    uint64_t extent = 0;

    tni_array_tensor(a, t);
    (void)tni_extent(a->ndim, a->shape, a->stride, &extent); /* it fits: the array was made */
    t->bytes = tn_dtype_size(a->dtype, extent);
    t->data = NULL;
    t->version = 0;
}

tn_status tni_kernel_move_find(tni_kernel_move *k)
{
    const tni_space *s = k->dst->storage->space;
    tn_tensor from, to;

    if (!s->kernels_arg)
        return TN_OK;
    if (k->src)
        as_planned(k->src, &from);
    as_planned(k->dst, &to);
    k->table = s->kernels;
    return s->kernels->find(s->kernels_arg, k->dst->storage->device, k->src ? &from : NULL, &to,
                            k->add ? TN_MODE_ADD : TN_MODE_WRITE, &k->kernel);
}

static tn_status kernel_call(void *arg, tn_err *err)
{
    const tni_kernel_move *k = arg;
    const uint8_t mode = k->add ? TN_MODE_ADD : TN_MODE_WRITE;
    tn_tensor from, to;
    const tn_tensor *const in[] = {&from}, *const out[] = {&to};
    tn_exec x = {.struct_size = (uint32_t)TN_END(tn_exec, ops),
                 .threads = k->threads,
                 .in = in,
                 .out = out,
                 .modes = &mode,
                 .stream = k->stream,
                 .stream_slot = k->slot};

    tni_array_tensor(k->src ? k->src : k->dst, &from); /* a fill has the shape of it */
    tni_array_tensor(k->dst, &to);
    return k->table->run(k->kernel, &x, k->value, err);
}

tn_status tni_kernel_move_run(tni_kernel_move *k, const tni_run *run, tn_err *err)
{
    tn_status st = k->table->slot(k->kernel, run, &k->slot);

    if (st)
        return st;
    k->stream = run->stream;
    k->threads = run->threads;
    return tni_kernel_moves_late(run) ? run->device->ops->stream_call(run->stream, kernel_call, k, err)
                                      : kernel_call(k, err);
}

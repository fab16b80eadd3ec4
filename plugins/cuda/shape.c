/* Operators whose output has the elements of input 0 in their order: copies of bytes. */
#include "launch.h"

static tn_status copy_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(uint64_t), err);

    if (!st)
        plan->inplace[0] = 0;
    return st;
}

/* Of no elements: what there is to write is 0. */
static tn_status zeros_run(const tn_exec *x, tn_err *err)
{
    const tn_tensor *to = x->out[0];
    tncuda_point_args a = {.count = tn_tensor_count(to),
                           .ndim = 1,
                           .store = TNCUDA_STORE_CUT,
                           .out = {.data = to->data, .dtype = to->dtype}};

    a.shape[0] = a.count;
    a.out.stride[0] = 1;
    return tncuda_launch(x, "point_f64", "point_COPY_f64", a.count, &a, err);
}

static tn_status copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *from = x->in[0], *to = x->out[0];
    const tn_place src = {from->data, from->device, from->memory, "cuda"},
                   dst = {to->data, to->device, to->memory, "cuda"};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE || from->data == to->data)
        return TN_OK;
    if (!tn_tensor_count(from))
        return zeros_run(x, err);
    return tncuda_copy((tn_stream *)(uintptr_t)x->stream, &dst, &src,
                       (uint64_t)tn_tensor_count(to) * tn_dtype_bytes(to->dtype), err);
}

static const char *const same[] = {"data:" TNCUDA_ALL, "*:=data", NULL};
static const char *const back[] = {"dy:" TNCUDA_ALL, "*:=dy", NULL};

const tn_kernel *const tncuda_family_shape[] = {
    TNCUDA_ROW("Reshape", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("Flatten", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("expand_dims", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("squeeze", same, 0, copy_prepare, copy_run),
    TNCUDA_ROW("_backward_reshape", back, 0, copy_prepare, copy_run),
    NULL,
};

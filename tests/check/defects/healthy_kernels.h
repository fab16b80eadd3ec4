/*
 * A healthy plugin with a device and kernels for it, as a vendor's would be. A file that includes it says by
 * DEFECT what is wrong with it, and by NAME what it is called.
 *
 * The device `far` has the streams and events of the fake device (sdk/template/device): threads that work
 * late. Its memory is its own: an address of it is tagged, and who reads there without asking `near` for the
 * real one faults, as the host does at a GPU's. Kernels put their work into the stream and return.
 */
#ifndef TN_DEFECTS_HEALTHY_KERNELS_H
#define TN_DEFECTS_HEALTHY_KERNELS_H

#include <math.h>

#include "tenon/plugin/op/scalar.h"
#include "tenon/plugin/util.h"

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "plugin.c" /* of the fake device: its options, memory and threads */
#pragma pop_macro("TN_PLUGIN_DEFINE")

enum {
    HEALTHY,
    WRONG_STREAM,
    TOO_EARLY,
    COMPLETES_EARLY,
    WRITES_BEHIND,
    WRITES_BEFORE,
    WRITES_INPUT,
    SHORT_WORKSPACE,
    IGNORES_ADD,
    SAVED_ELSEWHERE,
    READS_HOST,
    HOLDS_ARGUMENTS,
};

/* ---- the device -------------------------------------------------------------------------------------- */

#define FAR ((uintptr_t)1 << 52) /* no address of a process has this bit */

static void *far_of(const void *real)
{
    return (void *)((uintptr_t)real + FAR);
}

static void *near(const void *there)
{
    return there ? (void *)((uintptr_t)there - FAR) : NULL;
}

static tn_status far_count(void *plugin, int32_t *out, tn_err *err)
{
    return tnfake_device_ops.count(plugin, out, err);
}

static tn_status far_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    return tnfake_device_ops.open(plugin, index, out, err);
}

static void far_close(tn_device_handle *device)
{
    tnfake_device_ops.close(device);
}

static tn_status far_info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    tn_status st = tnfake_device_ops.info(device, out, err);

    if (!st && TN_HAS(out, tn_device_info, flags))
        out->flags &= ~TN_DEVICE_F_HOST_ADDRESSABLE;
    return st;
}

static tn_status far_alloc(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    tn_status st = tnfake_device_ops.alloc(device, memory, bytes, out, err);

    if (!st && memory == TN_MEMORY_DEVICE)
        *out = far_of(*out);
    return st;
}

static void far_free(tn_device_handle *device, int32_t memory, void *data)
{
    tnfake_device_ops.free(device, memory, memory == TN_MEMORY_DEVICE ? near(data) : data);
}

static tn_status far_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                          tn_err *err)
{
    tn_place to = *dst, from = *src;

    to.data = to.memory == TN_MEMORY_DEVICE ? near(to.data) : to.data;
    from.data = from.memory == TN_MEMORY_DEVICE ? near(from.data) : from.data;
    to.type = to.type && !strcmp(to.type, "far") ? tnfake_device_ops.head.id : to.type;
    from.type = from.type && !strcmp(from.type, "far") ? tnfake_device_ops.head.id : from.type;
    return tnfake_copy(stream, &to, &from, bytes, err);
}

static const tn_device_ops far_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "far"),
    .count = far_count,
    .open = far_open,
    .close = far_close,
    .info = far_info,
    .alloc = far_alloc,
    .free = far_free,
    .stream_create = tnfake_stream_create,
    .stream_destroy = tnfake_stream_destroy,
    .stream_wait = tnfake_stream_wait,
    .stream_call = tnfake_stream_call,
    .event_create = tnfake_event_create,
    .event_destroy = tnfake_event_destroy,
    .event_record = tnfake_event_record,
    .event_wait = tnfake_event_wait,
    .event_query = tnfake_event_query,
    .event_notify = tnfake_event_notify,
    .copy = far_copy,
};

/* ---- work in a stream -------------------------------------------------------------------------------- */

/* One run, as it waits in the stream: nothing of tn_exec but these outlives the call of `run`. */
typedef struct job {
    tnfake_plugin *plugin;
    void (*work)(const struct job *j);
    void *in[2], *out, *workspace, *saved; /* on the device */
    int64_t count;
    int32_t dtype;
    uint32_t mode;
    double scale;
    const tn_exec *x; /* of HOLDS_ARGUMENTS */
    tn_call *call;    /* NULL: `run` says TN_OK */
    const tn_call_ops *ops;
} job;

static double get(const void *there, int32_t dtype, int64_t at)
{
    return dtype == TN_F32 ? (double)((const float *)near(there))[at] : ((const double *)near(there))[at];
}

static void set(void *there, const job *j, int64_t at, double v)
{
    if (j->mode == TN_MODE_ADD && there == j->out && DEFECT != IGNORES_ADD)
        v += get(there, j->dtype, at);
    if (j->dtype == TN_F32)
        ((float *)near(there))[at] = (float)v;
    else
        ((double *)near(there))[at] = v;
}

static tn_status job_run(void *arg, tn_err *err)
{
    job *j = arg;
    tn_call *call = j->call;
    const tn_call_ops *ops = j->ops;

    (void)err;
    j->work(j);
    tnfake_delete(j->plugin, j);
    if (call && DEFECT != COMPLETES_EARLY)
        ops->complete(call, TN_OK, NULL);
    return TN_OK;
}

/* What is kept for each stream: a vendor's handles, say. */
typedef struct far_handle {
    tn_stream *stream; /* that work goes to */
} far_handle;

/* The stream is the host's handle of one that this plugin made. */
static tn_status handle_of(tnfake_plugin *plugin, const tn_exec *x, far_handle **out, tn_err *err)
{
    far_handle *h = *x->stream_slot;
    tn_status st;

    if (!h) {
        if (!(h = tnfake_new(plugin, sizeof *h)))
            return tn_fail(err, TN_E_NOMEM, "no memory for a handle");
        h->stream = (tn_stream *)(uintptr_t)x->stream;
        if (DEFECT == WRONG_STREAM && (st = tnfake_stream_create(h->stream->device, 0, &h->stream, err))) {
            tnfake_delete(plugin, h);
            return st;
        }
        *x->stream_slot = h;
    }
    *out = h;
    return TN_OK;
}

static void far_detach(void *plugin, void *slot)
{
    if (DEFECT == WRONG_STREAM)
        tnfake_stream_destroy(((far_handle *)slot)->stream);
    tnfake_delete(plugin, slot);
}

static tn_status job_queue(job *j, const tn_exec *x, tn_err *err)
{
    far_handle *h;
    tn_status st;

    if (DEFECT == TOO_EARLY)
        return job_run(j, err);
    if ((st = handle_of(j->plugin, x, &h, err)) || (st = tnfake_stream_call(h->stream, job_run, j, err)))
        tnfake_delete(j->plugin, j);
    return st;
}

static tn_status job_make(const tn_plan *plan, const tn_exec *x, uint32_t in_count, job **out, tn_err *err)
{
    job *j = tnfake_new(plan->state, sizeof *j);

    if (!j)
        return tn_fail(err, TN_E_NOMEM, "no memory for what a stream is to do");
    *j = (job){.plugin = plan->state,
               .out = x->out[0]->data,
               .workspace = x->workspace,
               .saved = x->saved,
               .count = tn_exec_count(x, 0),
               .dtype = x->in[0]->dtype,
               .mode = tn_exec_mode(x, 0)};
    for (uint32_t i = 0; i < in_count; i++)
        j->in[i] = x->in[i]->data;
    *out = j;
    return TN_OK;
}

static tn_status far_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)node;
    (void)err;
    plan->state = plugin;
    plan->threads = 1;
    return TN_OK;
}

/* ---- _mul_scalar: adds, in place, a run-time attribute ----------------------------------------------- */

static void scale_work(const job *j)
{
    const double scale = DEFECT == HOLDS_ARGUMENTS ? tn_attrs_float(j->x->attrs, TN_scalar_scalar) : j->scale;

    for (int64_t i = 0; i < j->count && j->mode != TN_MODE_NONE; i++)
        set(j->out, j, i, scale * get(j->in[0], j->dtype, i));
    if (DEFECT == WRITES_BEHIND && j->count)
        set(j->out, &(job){.dtype = j->dtype}, j->count, 1);
    if (DEFECT == WRITES_BEFORE && j->count)
        set(j->out, &(job){.dtype = j->dtype}, -1, 1);
    if (DEFECT == WRITES_INPUT && j->count && j->in[0] != j->out)
        set(j->in[0], j, 0, 1 + get(j->in[0], j->dtype, 0));
}

static tn_status scale_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->inplace[0] = 0;
    return far_prepare(plugin, node, plan, err);
}

static tn_status scale_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static volatile double seen;
    tn_status st;
    job *j;

    if (DEFECT == READS_HOST)
        seen = *(const volatile float *)x->in[0]->data;
    (void)seen;
    if ((st = job_make(plan, x, 1, &j, err)))
        return st;
    j->x = x;
    j->scale = tn_attrs_float(x->attrs, TN_scalar_scalar);
    j->work = scale_work;
    return job_queue(j, x, err);
}

/* ---- square: says TN_PENDING, works through its workspace -------------------------------------------- */

static void square_work(const job *j)
{
    for (int64_t i = 0; i < j->count; i++)
        set(j->workspace, j, i, get(j->in[0], j->dtype, i));
    for (int64_t i = 0; i < j->count && j->mode != TN_MODE_NONE; i++)
        set(j->out, j, i, get(j->workspace, j->dtype, i) * get(j->in[0], j->dtype, i));
}

static tn_status square_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->workspace_bytes = (uint64_t)tn_tensor_count(node->in[0]) * tn_dtype_bytes(node->in[0]->dtype);
    if (DEFECT == SHORT_WORKSPACE && plan->workspace_bytes > 8)
        plan->workspace_bytes -= 8;
    plan->workspace_align = 512;
    return far_prepare(plugin, node, plan, err);
}

static tn_status square_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_status st;
    job *j;

    if ((st = job_make(plan, x, 1, &j, err)))
        return st;
    j->call = x->call;
    j->ops = x->ops;
    j->work = square_work;
    if ((st = job_queue(j, x, err)))
        return st;
    if (DEFECT == COMPLETES_EARLY)
        x->ops->complete(x->call, TN_OK, NULL);
    return TN_PENDING;
}

/* ---- tanh, which saves 1 - y * y, and its gradient, which reads that --------------------------------- */

#define KEPT_MAX 65536

static double kept[KEPT_MAX]; /* of SAVED_ELSEWHERE: one place for all calls */

static double *saved_of(const job *j)
{
    return DEFECT == SAVED_ELSEWHERE ? kept : near(j->saved);
}

static void tanh_work(const job *j)
{
    double *saved = saved_of(j);

    for (int64_t i = 0; i < j->count && j->mode != TN_MODE_NONE; i++) {
        const double y = tanh(get(j->in[0], j->dtype, i));

        set(j->out, j, i, y);
        if (j->saved && (DEFECT != SAVED_ELSEWHERE || i < KEPT_MAX))
            saved[i] = 1 - y * y;
    }
}

static tn_status tanh_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (node->flags & TN_NODE_RECORDED)
        plan->saved_bytes = 8u * (uint64_t)tn_tensor_count(node->in[0]);
    return far_prepare(plugin, node, plan, err);
}

static tn_status tanh_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_status st;
    job *j;

    if ((st = job_make(plan, x, 1, &j, err)))
        return st;
    j->saved = plan->saved_bytes ? j->saved : NULL;
    j->work = tanh_work;
    return job_queue(j, x, err);
}

static void back_work(const job *j)
{
    const double *saved = saved_of(j);

    for (int64_t i = 0; i < j->count && j->mode != TN_MODE_NONE; i++) {
        const double y = get(j->in[1], j->dtype, i);

        set(j->out, j, i, get(j->in[0], j->dtype, i) * (j->saved ? saved[i] : 1 - y * y));
    }
}

/* workspace_align is a note to `run`: the forward left a block. */
static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (node->forward && node->forward->saved_bytes)
        plan->workspace_align = 128;
    return far_prepare(plugin, node, plan, err);
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_status st;
    job *j;

    if ((st = job_make(plan, x, 2, &j, err)))
        return st;
    j->saved = plan->workspace_align == 128 ? j->saved : NULL;
    j->work = back_work;
    return job_queue(j, x, err);
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static const char *const data_types[] = {"data:f32,f64", "*:=data", NULL};
static const char *const dy_types[] = {"dy:f32,f64", "*:=dy", NULL};

#define KERNEL(op_, types_, flags_, prepare_, run_)                                                          \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = "far",           \
        .device = "far", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_), .types = types_, .prepare = prepare_, .run = run_       \
    }

static const tn_kernel scale_kernel =
    KERNEL("_mul_scalar", data_types, TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK, scale_prepare, scale_run);
static const tn_kernel square_kernel =
    KERNEL("square", data_types, TN_KERNEL_ASYNC, square_prepare, square_run);
static const tn_kernel tanh_kernel = KERNEL("tanh", data_types, 0u, tanh_prepare, tanh_run);
static const tn_kernel back_kernel = KERNEL("_backward_tanh", dy_types, 0u, back_prepare, back_run);
static const tn_kernel *const far_kernels[] = {&scale_kernel, &square_kernel, &tanh_kernel, &back_kernel,
                                               NULL};
static const tn_kernel_table far_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "far"),
    .kernels = far_kernels,
    .stream_detach = far_detach};

static const tn_capability *const far_tables[] = {&far_ops.head, &far_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "device:far kernels@far",
                 fake_init, fake_fini, fake_fork, far_tables);

#endif

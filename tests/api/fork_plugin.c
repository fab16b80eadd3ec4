#include "api/fork_plugin.h"

#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/device.h"
#include "tenon/plugin/op.h"

atomic_int stub_calls;
static atomic_int chosen;
static void (*chosen_fn)(void *arg);
static void *chosen_arg;

void stop_at(stop_place place, void (*fn)(void *arg), void *arg)
{
    chosen_fn = fn;
    chosen_arg = arg;
    atomic_store(&chosen, (int)place);
}

static void reached(stop_place place)
{
    int expected = (int)place;

    if (atomic_compare_exchange_strong(&chosen, &expected, (int)STOP_NOWHERE))
        chosen_fn(chosen_arg);
}

/* ---- the device: everything is complete at once --------------------------------------------------- */

struct tn_device_handle {
    int open;
};
struct tn_stream {
    int open;
};
struct tn_event {
    int open;
};
static struct tn_device_handle the_device;

static tn_status stub_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin;
    (void)err;
    *out = 2;
    return TN_OK;
}

static tn_status stub_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    (void)plugin;
    (void)index;
    (void)err;
    reached(STOP_OPEN);
    *out = &the_device;
    return TN_OK;
}

static void stub_close(tn_device_handle *device)
{
    (void)device;
    atomic_fetch_add(&stub_calls, 1);
}

static tn_status stub_info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    (void)device;
    (void)err;
    out->flags = TN_DEVICE_F_HOST_ADDRESSABLE;
    out->alignment = 64;
    return TN_OK;
}

static tn_status stub_alloc(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    (void)device;
    (void)memory;
    atomic_fetch_add(&stub_calls, 1);
    *out = aligned_alloc(64, (bytes + 63u) & ~(uint64_t)63);
    return *out ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory");
}

static void stub_free(tn_device_handle *device, int32_t memory, void *data)
{
    (void)device;
    (void)memory;
    atomic_fetch_add(&stub_calls, 1);
    free(data);
}

static tn_status stream_create(tn_device_handle *device, int32_t priority, tn_stream **out, tn_err *err)
{
    (void)device;
    (void)priority;
    atomic_fetch_add(&stub_calls, 1);
    *out = calloc(1, sizeof **out);
    return *out ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory");
}

static void stream_destroy(tn_stream *stream)
{
    atomic_fetch_add(&stub_calls, 1);
    free(stream);
}

static tn_status stream_wait(tn_stream *stream, tn_err *err)
{
    (void)stream;
    (void)err;
    atomic_fetch_add(&stub_calls, 1);
    return TN_OK;
}

static tn_status event_create(tn_device_handle *device, tn_event **out, tn_err *err)
{
    (void)device;
    atomic_fetch_add(&stub_calls, 1);
    *out = calloc(1, sizeof **out);
    return *out ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory");
}

static void event_destroy(tn_event *event)
{
    atomic_fetch_add(&stub_calls, 1);
    free(event);
}

static tn_status event_record(tn_event *event, tn_stream *stream, tn_err *err)
{
    (void)event;
    return stream_wait(stream, err);
}

static tn_status event_wait(tn_stream *stream, tn_event *event, tn_err *err)
{
    (void)event;
    return stream_wait(stream, err);
}

static tn_status event_query(tn_event *event, tn_err *err)
{
    (void)event;
    return stream_wait(NULL, err);
}

static tn_status event_notify(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    (void)event;
    atomic_fetch_add(&stub_calls, 1);
    fn(arg, TN_OK, err);
    return TN_OK;
}

static tn_status stub_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                           tn_err *err)
{
    memcpy(dst->data, src->data, bytes);
    return stream_wait(stream, err);
}

static const tn_device_ops device_ops = {.head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "stub"),
                                         .count = stub_count,
                                         .open = stub_open,
                                         .close = stub_close,
                                         .info = stub_info,
                                         .alloc = stub_alloc,
                                         .free = stub_free,
                                         .stream_create = stream_create,
                                         .stream_destroy = stream_destroy,
                                         .stream_wait = stream_wait,
                                         .event_create = event_create,
                                         .event_destroy = event_destroy,
                                         .event_record = event_record,
                                         .event_wait = event_wait,
                                         .event_query = event_query,
                                         .event_notify = event_notify,
                                         .copy = stub_copy};

/* ---- the operator: y = x --------------------------------------------------------------------------- */

static const char *const names_data[] = {"data", NULL}, *const names_output[] = {"output", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status gradient(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? tn_grad_emit(g, 0, "_backward_test_stop", 1, &dy) : TN_OK;
}

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    reached(STOP_PREPARE);
    plan->est_ns = 1000000000; /* never on the caller */
    return TN_OK;
}

static tn_status prepare_backward(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)plan;
    (void)err;
    reached(STOP_PREPARE_BACKWARD);
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    if (x->stream_slot)
        *x->stream_slot = &the_device;
    reached(STOP_RUN);
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return TN_OK;
}

static void stream_detach(void *plugin, void *slot)
{
    (void)plugin;
    (void)slot;
    atomic_fetch_add(&stub_calls, 1);
}

#define OP(name_, gradient_)                                                                                 \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .exec = TN_EXEC_KERNEL,              \
        .name = (name_), .doc = "for tests", .inputs = names_data, .outputs = names_output,                  \
        .shape = same_shape, .gradient = (gradient_)                                                         \
    }
static const tn_op stop = OP("test_stop", gradient), backward = OP("_backward_test_stop", NULL);
static const tn_op *const ops[] = {&stop, &backward, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "stop"),
                                     .ops = ops};

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_, device_, prepare_)                                                                       \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = (op_),         \
        .device = (device_), .isa = "", .op_version_min = 1, .op_version_max = 1,                            \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types, .prepare = (prepare_), .run = run                  \
    }
static const tn_kernel on_cpu = KERNEL("test_stop", "cpu", prepare),
                       back_on_cpu = KERNEL("_backward_test_stop", "cpu", prepare_backward),
                       on_stub = KERNEL("test_stop", "stub", prepare);
static const tn_kernel *const cpu_kernels[] = {&on_cpu, &back_on_cpu, NULL}, *const stub_kernels[] = {
                                                                                 &on_stub, NULL};
static const tn_kernel_table cpu_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = cpu_kernels};
static const tn_kernel_table stub_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "stub"),
    .kernels = stub_kernels,
    .stream_detach = stream_detach};

/* ---- the plugin ------------------------------------------------------------------------------------- */

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    reached(STOP_INIT);
    return TN_OK;
}

static const tn_capability *const capabilities[] = {&device_ops.head, &op_table.head, &cpu_table.head,
                                                    &stub_table.head, NULL};
const tn_plugin stop_plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                               .magic = TN_MAGIC,
                               .abi_major = TN_ABI_MAJOR,
                               .abi_minor = TN_ABI_TARGET,
                               .abi_minor_min = TN_ABI_MIN,
                               .name = "stop",
                               .version = "1.0.0",
                               .vendor = "test",
                               .license = "Apache-2.0",
                               .summary = "calls back",
                               .init = init,
                               .capabilities = capabilities};

/*
 * The plugin inside the tool: operator bench_touch, whose body is as small as one can be that touches memory.
 * It reads one element of each input and writes one: y = a + 0 b + 1. What a program of it costs is what
 * replay costs.
 */
#include "tenon/plugin/op.h"

#include "bench/bench.h"

static const char *const inputs[] = {"a", "b", NULL}, *const outputs[] = {"output", NULL};

static tn_status same_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);
}

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->est_ns = 2;
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *a = x->in[0]->data, *b = x->in[1]->data;
    float *y = x->out[0]->data;

    (void)plan;
    (void)err;
    y[0] = a[0] + 0.0f * b[0] + 1.0f;
    return TN_OK;
}

static const tn_op touch = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = CLI_BENCH_TOUCH,
    .doc = "a + 0 b + 1 of arrays of one element: what `tenon bench engine` replays.",
    .inputs = inputs,
    .outputs = outputs,
    .shape = same_shape,
};

static const tn_op *const ops[] = {&touch, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "bench"),
                                     .ops = ops};

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel kernel = {
    .struct_size = (uint32_t)TN_END(tn_kernel, release),
    .rank = 64,
    .op = CLI_BENCH_TOUCH,
    .name = "bench_touch.one",
    .device = "cpu",
    .isa = "",
    .op_version_min = 1,
    .op_version_max = 1,
    .flags = TN_KERNEL_DETERMINISTIC,
    .types = types,
    .prepare = prepare,
    .run = run,
};

static const tn_kernel *const kernels[] = {&kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

const tn_plugin cli_bench_plugin = {
    .struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
    .magic = TN_MAGIC,
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_TARGET,
    .abi_minor_min = TN_ABI_MIN,
    .name = "bench",
    .version = "1.0.0",
    .vendor = "Tenon",
    .license = "Apache-2.0",
    .summary = "the operator that the tool measures with",
    .capabilities = capabilities,
};

/*
 * A faster kernel for an operator that Tenon has: relu on float32. The host prefers it to the plain one by
 * its rank, and asks the next kernel for what `prepare` declines.
 */
#include "tenon/plugin/util.h"

#define COUNT_MIN 16 /* elements; for fewer of them another kernel is as good */

/* Once per combination of shapes, types and attributes. What `run` needs besides would lie in plan->state. */
static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t count = tn_tensor_count(node->out[0]);

    if (count < COUNT_MIN)
        return tn_failf(err, TN_E_UNSUPPORTED, "%lld elements, %d are worth it", (long long)count, COUNT_MIN);
    (void)tn_prepare_pointwise(plugin, node, plan, err);
    plan->est_ns = 50 + (uint64_t)count / 8;
    return TN_OK;
}

/* Any number of times, from any number of threads at once. A NaN stays one. */
static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan, (void)err;
    if (tn_exec_mode(x, 0) == TN_MODE_NONE)
        return TN_OK;
    for (int64_t i = 0, n = tn_exec_count(x, 0); i < n; i++)
        out[i] = in[i] < 0 ? 0 : in[i];
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel kernel = {
    .struct_size = (uint32_t)TN_END(tn_kernel, release),
    .rank = 192, /* 64 plain, 128 a library, 192 tuned */
    .op = "relu",
    .name = "relu.acme_kernel",
    .device = "cpu",
    .isa = "", /* or x86-64-v3, x86-64-v4: what the compiler may use here */
    .op_version_min = 1,
    .op_version_max = 1,
    .flags = TN_KERNEL_DETERMINISTIC,
    .types = types,
    .prepare = prepare,
    .run = run,
};

static const tn_kernel_table cpu = TN_KERNELS("cpu", &kernel);
static const tn_capability *const tables[] = {&cpu.head, NULL};

TN_PLUGIN_DEFINE("acme-kernel", "1.0.0", "Acme", "Apache-2.0", "a faster relu", "", "kernels@cpu", NULL, NULL,
                 NULL, tables);

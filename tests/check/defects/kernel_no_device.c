/* A kernel that does not say for which device it is, and one without functions. */
#include "tenon/plugin/util.h"

static tn_status square_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)plan, (void)err;
    return TN_OK;
}

static tn_status square_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *in = x->in[0]->data;
    float *out = x->out[0]->data;

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_exec_count(x, 0); i < n; i++)
        out[i] = in[i] * in[i];
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel homeless = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                   .rank = 64,
                                   .op = "square",
                                   .name = "homeless",
                                   .isa = "",
                                   .op_version_min = 1,
                                   .op_version_max = 1,
                                   .types = types,
                                   .prepare = square_prepare,
                                   .run = square_run};
static const tn_kernel idle = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                               .rank = 64,
                               .op = "square",
                               .name = "idle",
                               .device = "cpu",
                               .isa = "",
                               .op_version_min = 1,
                               .op_version_max = 1,
                               .types = types};
static const tn_kernel *const kernels[] = {&homeless, &idle, NULL};
static const tn_kernel_table table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};
static const tn_capability *const tables[] = {&table.head, NULL};

TN_PLUGIN_DEFINE("defect-kernel-no-device", "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "kernels@cpu", NULL, NULL, NULL, tables);

/*
 * A healthy plugin with a kernel for an operator of the core that broadcasts, broadcast_sub. A file that
 * includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 */
#ifndef TN_DEFECTS_HEALTHY_BROADCAST_H
#define TN_DEFECTS_HEALTHY_BROADCAST_H

#include "tenon/plugin/util.h"

enum { HEALTHY, LAST_AXIS, MIDDLE_AXIS, ALL_AXES, LOWER_RANK, LEFT_SIDE };

/* Where in `t` lies what element `index` of `out` is made of. */
static int64_t offset_in(const tn_tensor *t, const tn_tensor *out, int64_t index)
{
    int64_t offset = 0, step = 1;

    for (int32_t d = out->ndim; d-- > 0;) {
        const int64_t at = index % out->shape[d], k = d - (out->ndim - t->ndim);

        index /= out->shape[d];
        if (k < 0)
            continue;
        offset += t->shape[k] == 1 ? 0 : at * step;
        step *= t->shape[k];
    }
    return offset;
}

static int is_wrong(const tn_tensor *lhs, const tn_tensor *rhs, const tn_tensor *out)
{
    const int32_t n = rhs->ndim;
    const int same_rank = n == out->ndim && n > 1;
    const int wrong[] = {
        [HEALTHY] = 0,
        [LAST_AXIS] =
            same_rank && rhs->shape[n - 1] == 1 && out->shape[n - 1] > 1 && tn_tensor_count(rhs) > 1,
        [MIDDLE_AXIS] = same_rank && n == 3 && rhs->shape[1] == 1 && out->shape[1] > 1 && rhs->shape[0] > 1 &&
                        rhs->shape[2] > 1,
        [ALL_AXES] = same_rank && tn_tensor_count(rhs) == 1 && tn_tensor_count(out) > 1,
        [LOWER_RANK] = n < out->ndim,
        [LEFT_SIDE] = tn_tensor_count(lhs) < tn_tensor_count(out),
    };

    return wrong[DEFECT];
}

static tn_status sub_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status sub_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *lhs = x->in[0], *rhs = x->in[1], *out = x->out[0];
    const float *a = lhs->data, *b = rhs->data;
    const int wrong = is_wrong(lhs, rhs, out);
    float *y = out->data;

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(out); i < n && x->modes[0] != TN_MODE_NONE; i++)
        y[i] = a[offset_in(lhs, out, i)] - (wrong ? 0 : b[offset_in(rhs, out, i)]);
    return TN_OK;
}

static const char *const sub_types[] = {"*:f32", NULL};
static const tn_kernel sub_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                     .rank = 64,
                                     .op = "broadcast_sub",
                                     .name = "defect",
                                     .device = "cpu",
                                     .isa = "",
                                     .op_version_min = 1,
                                     .op_version_max = 1,
                                     .flags = TN_KERNEL_DETERMINISTIC,
                                     .types = sub_types,
                                     .prepare = sub_prepare,
                                     .run = sub_run};
static const tn_kernel *const kernels[] = {&sub_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "kernels@cpu", NULL, NULL, NULL,
                 tables);

#endif

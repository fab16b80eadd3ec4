/*
 * A healthy plugin whose forward kernel saves a block for its backward. A file that includes it says by
 * DEFECT what is wrong with it, and by NAME what it is called.
 *
 * defect_cube: output = data^3. The forward saves 3 data^2; the backward reads the block if the forward was
 * its own, else computes from data. From NEEDS_SAVED on the backward declines without the block, and plans
 * have memory of their own.
 */
#ifndef TN_DEFECTS_HEALTHY_SAVED_H
#define TN_DEFECTS_HEALTHY_SAVED_H

#include <stdbool.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    SAVED_BEYOND,
    SAVED_ELSEWHERE,
    SAVED_UNASKED,
    NEEDS_SAVED,
    NEEDS_SWALLOWS,
    NEEDS_ONCE
}; /* ONCE: the backward destroys the block */

/* ---- definitions ------------------------------------------------------------------------------------- */

static const char *const cube_in[] = {"data", NULL}, *const cube_out[] = {"output", NULL};
static const char *const back_in[] = {"dy", "data", NULL}, *const back_out[] = {"dx", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static tn_status cube_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_defect_cube", 2, in) : TN_OK;
}

static const tn_op cube_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_cube",
    .doc = "data to the third power.",
    .inputs = cube_in,
    .outputs = cube_out,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = cube_gradient,
};

static const tn_op back_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "_backward_defect_cube",
    .doc = "Gradient of defect_cube.",
    .inputs = back_in,
    .outputs = back_out,
    .flags = TN_OP_BACKWARD,
    .shape = same_shape,
    .dtype = float_dtype,
};

static const tn_op *const ops[] = {&cube_op, &back_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

/* ---- kernels ----------------------------------------------------------------------------------------- */

#define KEPT_MAX 65536

static double kept[KEPT_MAX]; /* of SAVED_ELSEWHERE: one place for all calls */

static double get(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_F32 ? (double)((const float *)t->data)[at] : ((const double *)t->data)[at];
}

static void set(const tn_tensor *t, int64_t at, double v)
{
    if (t->dtype == TN_F32)
        ((float *)t->data)[at] = (float)v;
    else
        ((double *)t->data)[at] = v;
}

/* Memory of a plan, of those that have some. */
typedef struct own_state {
    const tn_host *host;
    const tn_memory_service *memory;
    void *more;
} own_state;

static tn_status own_create(const tn_host *host, tn_plan *plan, tn_err *err)
{
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);
    own_state *s;

    if (DEFECT < NEEDS_SAVED)
        return TN_OK;
    if (!memory)
        return tn_fail(err, TN_E_UNSUPPORTED, "needs the memory service");
    if (!(s = memory->alloc(host, sizeof *s, 8)))
        return tn_fail(err, TN_E_NOMEM, "no memory for a plan");
    *s = (own_state){host, memory, memory->alloc(host, 64, 8)};
    if (!s->more) {
        memory->free(host, s);
        return tn_fail(err, TN_E_NOMEM, "no memory for the rest of a plan");
    }
    plan->state = s;
    return TN_OK;
}

static void own_release(tn_plan *plan)
{
    own_state *s = plan->state;

    if (DEFECT < NEEDS_SAVED || !s)
        return;
    s->memory->free(s->host, s->more);
    s->memory->free(s->host, s);
}

static tn_status cube_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    if (node->flags & TN_NODE_RECORDED)
        plan->saved_bytes = 8u * (uint64_t)tn_tensor_count(node->in[0]);
    plan->saved_align = 8;
    return own_create(plugin, plan, err);
}

static tn_status cube_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t n = tn_tensor_count(x->in[0]);
    double *block = x->saved;

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t i = 0; i < n; i++) {
        const double v = get(x->in[0], i);

        set(x->out[0], i, v * v * v);
        if (plan->saved_bytes)
            block[i + (DEFECT == SAVED_BEYOND)] = 3 * v * v;
        if (DEFECT == SAVED_ELSEWHERE && i < KEPT_MAX)
            kept[i] = 3 * v * v;
    }
    return TN_OK;
}

static char from_block; /* plan->state points here, or to memory of its own: the block is read */

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool has_block = node->forward && node->forward->saved_bytes;
    tn_status st;

    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    if (DEFECT >= NEEDS_SAVED && !has_block)
        return tn_fail(err, TN_E_UNSUPPORTED, "needs what its forward saved");
    st = own_create(plugin, plan, err);
    if (DEFECT == NEEDS_SWALLOWS && st == TN_E_NOMEM)
        return tn_fail(err, TN_E_UNSUPPORTED, "something went wrong");
    if (DEFECT < NEEDS_SAVED && (DEFECT == SAVED_UNASKED || has_block))
        plan->state = &from_block;
    return st;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double *block = DEFECT == SAVED_ELSEWHERE ? kept : x->saved;

    (void)err;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n; i++) {
        const double v = get(x->in[1], i);

        set(x->out[0], i, get(x->in[0], i) * (plan->state ? block[i] : 3 * v * v));
        if (DEFECT == NEEDS_ONCE)
            ((double *)x->saved)[i] = 0;
    }
    return TN_OK;
}

static const char *const cube_types[] = {"data:f32,f64", "*:=data", NULL};
static const char *const back_types[] = {"dy:f32,f64", "*:=dy", NULL};

#define KERNEL(op_, types_, prepare_, run_)                                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = "defect",        \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types_, .prepare = prepare_, .run = run_,                 \
        .release = own_release                                                                               \
    }

static const tn_kernel cube_kernel = KERNEL("defect_cube", cube_types, cube_prepare, cube_run);
static const tn_kernel back_kernel = KERNEL("_backward_defect_cube", back_types, back_prepare, back_run);
static const tn_kernel *const kernels[] = {&cube_kernel, &back_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    *plugin = (void *)(uintptr_t)host;
    return TN_OK;
}

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "op:defect_cube kernels@cpu",
                 init, NULL, NULL, tables);

#endif

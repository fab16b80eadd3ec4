/*
 * A healthy plugin whose forward kernel draws in training, and saves what it drew for its backward. A file
 * that includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 *
 * defect_mask: output = data * (0 or 2, as drawn) in training, data else.
 */
#ifndef TN_DEFECTS_HEALTHY_MASK_H
#define TN_DEFECTS_HEALTHY_MASK_H

#include "tenon/plugin/random.h"
#include "tenon/plugin/util.h"

#include "meet.h"

enum { HEALTHY, MASK_ELSEWHERE, MASK_FIRST, MASK_SHARED };

/* ---- definitions ------------------------------------------------------------------------------------- */

static const char *const mask_in[] = {"data", NULL}, *const mask_out[] = {"output", NULL};
static const char *const back_in[] = {"dy", NULL}, *const back_out[] = {"dx", NULL};

static tn_status same_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32));
}

static tn_status mask_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0)};

    return in[0].node ? tn_grad_emit(g, 0, "_backward_defect_mask", 1, in) : TN_OK;
}

static const tn_op mask_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_mask",
    .doc = "Half of data in training.",
    .inputs = mask_in,
    .outputs = mask_out,
    .effects = TN_EFFECT_RANDOM,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = mask_gradient,
};

static const tn_op back_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "_backward_defect_mask",
    .doc = "Gradient of defect_mask.",
    .inputs = back_in,
    .outputs = back_out,
    .flags = TN_OP_BACKWARD,
    .shape = same_shape,
    .dtype = float_dtype,
};

static const tn_op *const ops[] = {&mask_op, &back_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

/* ---- kernels ----------------------------------------------------------------------------------------- */

#define SHARED_MAX 400000
#define ALIKE_NEVER 16 /* from so many elements on two masks differ */

static float shared[SHARED_MAX]; /* of MASK_SHARED: one place for all runs */
static const float *latest;      /* of MASK_ELSEWHERE: what the last forward saved */
static char training;            /* plan->state points here */

static tn_status mask_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint64_t bytes = sizeof(float) * (uint64_t)tn_tensor_count(node->in[0]);

    (void)plugin, (void)err;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->workspace_bytes = bytes;
    plan->saved_bytes = node->flags & TN_NODE_RECORDED ? bytes : 0;
    plan->state = node->flags & TN_NODE_TRAIN ? &training : NULL;
    return TN_OK;
}

/* The one that the plan was handed first. */
static inline tn_draw first_draw(const tn_plan *plan, const tn_rng *rng)
{
    static const tn_plan *last;
    static tn_draw first;

    if (last != plan)
        first = tn_draw_of(rng);
    last = plan;
    return first;
}

static tn_status mask_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t n = tn_tensor_count(x->in[0]);
    const float *data = x->in[0]->data;
    float *mask = DEFECT == MASK_SHARED ? shared : x->workspace, *saved = x->saved, *out = x->out[0]->data;
    tn_draw d = {0};

    (void)err;
    if (plan->state)
        d = DEFECT == MASK_FIRST ? first_draw(plan, x->rng) : tn_draw_of(x->rng);
    for (int64_t i = 0; i < n; i++)
        mask[i] = !plan->state ? 1.0f : tn_draw_unit(&d, (uint64_t)i) < 0.5 ? 0.0f : 2.0f;
    if (DEFECT == MASK_SHARED && plan->state && n >= ALIKE_NEVER)
        meet();
    for (int64_t i = 0; i < n && saved; i++)
        saved[i] = mask[i];
    for (int64_t i = 0; i < n && x->modes[0] != TN_MODE_NONE; i++)
        out[i] = data[i] * mask[i];
    if (saved)
        latest = saved;
    return TN_OK;
}

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    if (!node->forward || !node->forward->saved_bytes)
        return tn_fail(err, TN_E_UNSUPPORTED, "needs what its forward saved");
    return TN_OK;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const float *mask = DEFECT == MASK_ELSEWHERE ? latest : x->saved, *dy = x->in[0]->data;
    float *dx = x->out[0]->data;

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n && x->modes[0] != TN_MODE_NONE; i++)
        dx[i] = dy[i] * mask[i];
    return TN_OK;
}

static const char *const mask_types[] = {"*:f32", NULL};

#define KERNEL(op_, prepare_, run_)                                                                          \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = "defect",        \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = mask_types, .prepare = prepare_, .run = run_              \
    }

static const tn_kernel mask_kernel = KERNEL("defect_mask", mask_prepare, mask_run);
static const tn_kernel back_kernel = KERNEL("_backward_defect_mask", back_prepare, back_run);
static const tn_kernel *const kernels[] = {&mask_kernel, &back_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "op:defect_mask kernels@cpu",
                 NULL, NULL, NULL, tables);

#endif

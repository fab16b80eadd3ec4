/*
 * A healthy plugin whose operator has a bit of everything: a state of one element as first input, then any
 * number of inputs, two outputs, a draw, run-time attributes, an aligned workspace, a saved block. Its
 * backward counts outputs by an attribute, and so gives a senseless count for a senseless one.
 */
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/random.h"
#include "tenon/plugin/util.h"

enum { NUM_ARGS, GAIN, NOISE };

static const tn_attr_def attrs[] = {
    TN_ATTR_COUNT("num_args"),
    TN_ATTR_FLOAT_RUN("gain", "1.0", "of the sum"),
    TN_ATTR_FLOAT_RUN_IN("noise", "1.0", 0, 10, "in training"),
    TN_ATTR_END,
};
static const tn_attr_def backward_attrs[] = {
    TN_ATTR_INT("num_args", TN_REQUIRED, "that of the forward"),
    TN_ATTR_FLOAT_RUN("gain", "1.0", "that of the forward"),
    TN_ATTR_END,
};

static tn_status single(tn_infer *i, tn_shape *s)
{
    tn_shape one = {.ndim = 1, .dim = {1}};

    return tn_shape_unify(i, s, &one);
}

static tn_status shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; !st && k < 2 * i->in_count; k++)
        if (k % i->in_count)
            st = tn_shape_unify(i, i->out_shape[0], i->in_shape[k % i->in_count]);
    return st || (st = single(i, i->in_shape[0])) ? st : single(i, i->out_shape[1]);
}

static tn_status backward_args(tn_infer *i)
{
    i->in_count = 2;
    i->out_count = i->visible_count = (uint32_t)tn_attrs_int(i->attrs, NUM_ARGS) - 1;
    return TN_OK;
}

static tn_status backward_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; !st && k < i->out_count; k++)
        st = tn_shape_unify(i, i->in_shape[0], i->out_shape[k]);
    return st ? st : single(i, i->in_shape[1]);
}

static tn_status dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32));
}

static tn_status gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_of(g, 1)};

    return in[0].node || in[1].node ? tn_grad_emit_all(g, "_backward_defect_mixed", 2, in, 1, g->in_count - 1)
                                    : TN_OK;
}

static const char *const in[] = {"state", "arg*", NULL}, *const out[] = {"output", "mean", NULL};
static const char *const heads[] = {"dy", "dmean", NULL}, *const gradients[] = {"d*", NULL};

static const tn_op mixed = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_mixed",
    .doc = "A sum with noise, and its mean.",
    .attrs = attrs,
    .inputs = in,
    .outputs = out,
    .mutates = 1,
    .effects = TN_EFFECT_RANDOM,
    .shape = shape,
    .dtype = dtype,
    .gradient = gradient,
};
static const tn_op backward = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "_backward_defect_mixed",
    .doc = "Gradient of defect_mixed.",
    .attrs = backward_attrs,
    .inputs = heads,
    .outputs = gradients,
    .flags = TN_OP_BACKWARD,
    .args = backward_args,
    .shape = backward_shape,
    .dtype = dtype,
};
static const tn_op *const ops[] = {&mixed, &backward, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "mixed"),
                                     .ops = ops};

typedef struct counts {
    uint32_t in, out;
    int train;
} counts;

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    counts *c = malloc(sizeof *c);

    (void)plugin;
    if (!c)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    *c = (counts){node->in_count, node->out_count, (node->flags & TN_NODE_TRAIN) != 0};
    plan->state = c;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    if (node->op[0] == '_')
        return TN_OK;
    plan->workspace_bytes = sizeof(float) * (uint64_t)tn_tensor_count(node->out[0]);
    plan->workspace_align = 256;
    if (node->flags & TN_NODE_RECORDED)
        plan->saved_bytes = sizeof(double);
    return TN_OK;
}

static void release(tn_plan *plan)
{
    free(plan->state);
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const counts *c = plan->state;
    const double gain = tn_attrs_float(x->attrs, GAIN),
                 noise = c->train ? tn_attrs_float(x->attrs, NOISE) : 0;
    const tn_draw draw = tn_draw_of(x->rng);
    const int64_t count = tn_exec_count(x, 0);
    float *sums = x->workspace;
    double all = 0;

    if ((uintptr_t)sums % 256)
        return tn_fail(err, TN_E_INTERNAL, "the workspace does not begin where it should");
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;

        for (uint32_t k = 1; k < c->in; k++)
            sum += (double)((const float *)x->in[k]->data)[i];
        sums[i] = (float)(gain * sum + noise * (tn_draw_unit(&draw, (uint64_t)i) - 0.5));
        all += (double)sums[i];
    }
    if (tn_exec_mode(x, 0) != TN_MODE_NONE)
        memcpy(x->out[0]->data, sums, sizeof(float) * (size_t)count);
    if (tn_exec_mode(x, 1) != TN_MODE_NONE)
        *(float *)x->out[1]->data = (float)(all / (double)count);
    if (tn_exec_mode(x, 2) != TN_MODE_NONE && c->train)
        *(float *)x->out[2]->data += 1;
    if (x->saved)
        memcpy(x->saved, &gain, sizeof gain);
    return TN_OK;
}

static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const counts *c = plan->state;
    const float *dy = x->in[0]->data, *dmean = x->in[1]->data;
    const int64_t count = tn_tensor_count(x->in[0]);
    double gain = tn_attrs_float(x->attrs, GAIN);

    (void)err;
    if (x->saved)
        memcpy(&gain, x->saved, sizeof gain);
    for (uint32_t k = 0; k < c->out; k++)
        for (int64_t i = 0; i < count && tn_exec_mode(x, k) != TN_MODE_NONE; i++)
            ((float *)x->out[k]->data)[i] = (float)(gain * ((double)dy[i] + (double)*dmean / (double)count));
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};
static const tn_kernel kernels[] = {
    {.struct_size = (uint32_t)TN_END(tn_kernel, release),
     .rank = 64,
     .op = "defect_mixed",
     .name = "mixed",
     .device = "cpu",
     .isa = "",
     .op_version_min = 1,
     .op_version_max = 1,
     .flags = TN_KERNEL_DETERMINISTIC,
     .types = types,
     .prepare = prepare,
     .run = run,
     .release = release},
    {.struct_size = (uint32_t)TN_END(tn_kernel, release),
     .rank = 64,
     .op = "_backward_defect_mixed",
     .name = "backward",
     .device = "cpu",
     .isa = "",
     .op_version_min = 1,
     .op_version_max = 1,
     .flags = TN_KERNEL_DETERMINISTIC,
     .types = types,
     .prepare = prepare,
     .run = run_backward,
     .release = release},
};
static const tn_kernel *const list[] = {&kernels[0], &kernels[1], NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = list};
static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE("defect-mixed-healthy", "1.0.0", "test", "Apache-2.0", "a bit of everything", "",
                 "op:defect_mixed kernels@cpu", NULL, NULL, NULL, capabilities);

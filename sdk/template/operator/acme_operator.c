/*
 * A plugin with one operator of its own: y = scale * x + shift, with its gradient and a kernel for the host.
 *
 * Start from this file: rename `acme`, change the definition, the kernels and the line `provides` at the end.
 * The definition says what the operator means and knows no device; the kernels compute it. Users then call
 * acme_scale_shift like any other operator: eagerly, in symbols, in saved models, with gradients.
 *
 * `scale` and `shift` are run-time attributes: kernels read them at each call, changing them plans nothing
 * anew.
 */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/op.h"

/* ---- definitions --------------------------------------------------------------------------------- */

#define SCALE 0 /* rows of the table, as kernels index them */
#define SHIFT 1

static const tn_attr_def attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "1.0", "what each element is multiplied by"),
    TN_ATTR_FLOAT_RUN("shift", "0.0", "what is added to it then"),
    TN_ATTR_END,
};

/* Both ways: the input may tell the output's shape and the output the input's. */
static tn_status same_shape(tn_infer *i)
{
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status float_dtype(tn_infer *i)
{
    int32_t *in = &i->in_dtype[0], *out = &i->out_dtype[0];

    if (*in == TN_DTYPE_UNKNOWN)
        *in = *out;
    if (*out == TN_DTYPE_UNKNOWN)
        *out = *in;
    if (*in != *out)
        return tn_fail(i->err, TN_E_DTYPE, "acme_scale_shift: data and output have different data types");
    if (*in != TN_DTYPE_UNKNOWN && *in != TN_F32 && *in != TN_F64)
        return tn_fail(i->err, TN_E_DTYPE, "acme_scale_shift takes float32 and float64 only");
    return TN_OK;
}

/* dx = scale * dy. The new node inherits `scale`; whether a gradient arrives is asked first. */
static tn_status gradient(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? tn_grad_emit(g, 0, "_backward_acme_scale_shift", 1, &dy) : TN_OK;
}

static const char *const names_data[] = {"data", NULL}, *const names_dy[] = {"dy", NULL};
static const char *const names_output[] = {"output", NULL}, *const names_dx[] = {"dx", NULL};

static const tn_op scale_shift = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "acme_scale_shift",
    .doc = "scale * data + shift, element by element.",
    .attrs = attrs,
    .inputs = names_data,
    .outputs = names_output,
    .flags = TN_OP_POINTWISE,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = gradient,
};

/* Linear in dy, so its own gradient is itself: second derivatives work too. */
static const tn_op backward_scale_shift = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "_backward_acme_scale_shift",
    .doc = "Gradient of acme_scale_shift.",
    .attrs = attrs,
    .inputs = names_dy,
    .outputs = names_dx,
    .flags = TN_OP_POINTWISE | TN_OP_BACKWARD,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = gradient,
};

static const tn_op *const ops[] = {&scale_shift, &backward_scale_shift, NULL};

static const tn_op_table op_table = {
    .head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "acme"),
    .ops = ops,
};

/* ---- kernels for the host -------------------------------------------------------------------------------
 */

/* Once per signature. There is nothing to plan here, but the output may take over the input's memory. */
static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->est_ns = 100 + (uint64_t)tn_tensor_count(node->out[0]) / 2;
    if (plan->inplace)
        plan->inplace[0] = 0;
    return TN_OK;
}

/* Dense, not empty, and never to be added to: the flags of the kernels below ask for nothing else. */
static void line(const tn_exec *x, double scale, double shift)
{
    const int64_t n = tn_tensor_count(x->out[0]);

    if (x->modes && x->modes[0] == TN_MODE_NONE)
        return;
    if (x->in[0]->dtype == TN_F64) {
        const double *in = x->in[0]->data;
        double *out = x->out[0]->data;

        for (int64_t i = 0; i < n; i++)
            out[i] = scale * in[i] + shift;
    } else {
        const float *in = x->in[0]->data;
        float *out = x->out[0]->data, a = (float)scale, b = (float)shift;

        for (int64_t i = 0; i < n; i++)
            out[i] = a * in[i] + b;
    }
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    line(x, tn_value_float(x->attrs[SCALE]), tn_value_float(x->attrs[SHIFT]));
    return TN_OK;
}

static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    line(x, tn_value_float(x->attrs[SCALE]), 0.0);
    return TN_OK;
}

static const char *const types[] = {"data:f32,f64", "output:=data", NULL};
static const char *const types_backward[] = {"dy:f32,f64", "dx:=dy", NULL};

static const tn_kernel forward_kernel = {
    .struct_size = (uint32_t)TN_END(tn_kernel, release),
    .rank = 64,
    .op = "acme_scale_shift",
    .name = "acme_scale_shift.loop",
    .device = "cpu",
    .isa = "",
    .op_version_min = 1,
    .op_version_max = 1,
    .flags = TN_KERNEL_DETERMINISTIC,
    .types = types,
    .prepare = prepare,
    .run = run,
};

static const tn_kernel backward_kernel = {
    .struct_size = (uint32_t)TN_END(tn_kernel, release),
    .rank = 64,
    .op = "_backward_acme_scale_shift",
    .name = "_backward_acme_scale_shift.loop",
    .device = "cpu",
    .isa = "",
    .op_version_min = 1,
    .op_version_max = 1,
    .flags = TN_KERNEL_DETERMINISTIC,
    .types = types_backward,
    .prepare = prepare,
    .run = run_backward,
};

static const tn_kernel *const kernels[] = {&forward_kernel, &backward_kernel, NULL};

static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"),
    .kernels = kernels,
};

/* ---- the plugin ------------------------------------------------------------------------------------------
 */

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE("acme-operator", "1.0.0", "Acme", "Apache-2.0", "the operator acme_scale_shift", "",
                 "op:acme_scale_shift kernels@cpu", NULL, NULL, NULL, capabilities);

/*
 * A plugin with one operator of its own: y = scale * x + shift, with its gradient and kernels for the host.
 *
 * The definition says what the operator means and knows no device; the kernels compute it. Users then call
 * acme_scale_shift like any other operator: eagerly, in symbols, in saved models, with gradients.
 *
 * `scale` and `shift` are run-time attributes: kernels read them at each call, changing them plans nothing
 * anew. `order` came with version 2 of the operator: it stands behind the others, and its default means what
 * version 1 did.
 */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

/* ---- definitions --------------------------------------------------------------------------------- */

#define SCALE 0 /* rows of the table, as kernels index them */
#define SHIFT 1
#define ORDER 2

static const tn_attr_def attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "1.0", "what each element is multiplied by"),
    TN_ATTR_FLOAT_RUN("shift", "0.0", "what is added to it"),
    TN_ATTR_ROW_SINCE(2, "order", TN_ATTR_T_CHOICE, 0, "scale_first|shift_first", "scale_first", 1.0, 0.0,
                      "scale * x + shift, or scale * (x + shift)"),
    TN_ATTR_END,
};

static const tn_attr_def backward_attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "1.0", "that of the forward"),
    TN_ATTR_FLOAT_RUN("shift", "0.0", "that of the forward; not used"),
    TN_ATTR_END,
};

/* Both functions go both ways: the input may tell the output's shape and type, and the output the input's. */
static tn_status same_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
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
    .version = 2,
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
    .attrs = backward_attrs,
    .inputs = names_dy,
    .outputs = names_dx,
    .flags = TN_OP_POINTWISE | TN_OP_BACKWARD,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = gradient,
};

static const tn_op *const ops[] = {&scale_shift, &backward_scale_shift, NULL};

static const tn_op_table op_table = {
    .head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "acme-operator"),
    .ops = ops,
};

/* ---- kernels --------------------------------------------------------------------------------------- */

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

typedef void line_fn(const void *in, void *out, int64_t count, double scale, double shift);

static void line_f32(const void *in, void *out, int64_t count, double scale, double shift)
{
    const float *x = in, a = (float)scale, b = (float)shift;
    float *y = out;

    for (int64_t i = 0; i < count; i++)
        y[i] = a * x[i] + b;
}

static void line_f64(const void *in, void *out, int64_t count, double scale, double shift)
{
    const double *x = in;
    double *y = out;

    for (int64_t i = 0; i < count; i++)
        y[i] = scale * x[i] + shift;
}

static line_fn *const lines[TN_DTYPE_LIMIT] = {[TN_F32] = line_f32, [TN_F64] = line_f64};

/* Dense, not empty, and never to be added to: the flags of the kernels below ask for nothing else. */
static tn_status line(const tn_exec *x, double scale, double shift)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];

    if (tn_exec_mode(x, 0) != TN_MODE_NONE)
        lines[in->dtype](in->data, out->data, tn_tensor_count(out), scale, shift);
    return TN_OK;
}

/* As in version 1. */
static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    return line(x, tn_attrs_float(x->attrs, SCALE), tn_attrs_float(x->attrs, SHIFT));
}

static tn_status run_ordered(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double scale = tn_attrs_float(x->attrs, SCALE), shift = tn_attrs_float(x->attrs, SHIFT);

    (void)plan;
    (void)err;
    return line(x, scale, tn_attrs_int(x->attrs, ORDER) ? scale * shift : shift);
}

static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    (void)err;
    return line(x, tn_attrs_float(x->attrs, SCALE), 0.0);
}

static const char *const types[] = {"data:f32,f64", "output:=data", NULL};
static const char *const types_backward[] = {"dy:f32,f64", "dx:=dy", NULL};

#define KERNEL(op_, name_, device_, rank_, version_, types_, run_)                                           \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = rank_, .op = op_, .name = name_,        \
        .device = device_, .isa = "", .op_version_min = version_, .op_version_max = version_,                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types_, .prepare = prepare, .run = run_,                  \
    }

/*
 * `loop` is the kernel of version 1. It knows nothing of `order`: the host offers it a node of version 2 only
 * where `order` has its default. `ordered` serves all nodes, and ranks behind.
 */
#define KERNELS(device_)                                                                                     \
    {                                                                                                        \
        KERNEL("acme_scale_shift", "acme_scale_shift.loop", device_, 64, 1, types, run),                     \
            KERNEL("acme_scale_shift", "acme_scale_shift.ordered", device_, 32, 2, types, run_ordered),      \
            KERNEL("_backward_acme_scale_shift", "_backward_acme_scale_shift.loop", device_, 64, 1,          \
                   types_backward, run_backward),                                                            \
    }

/* The device `fake` runs host code late and out of order: tests find out there what waits for nothing. */
static const tn_kernel cpu[] = KERNELS("cpu"), fake[] = KERNELS("fake");
static const tn_kernel *const cpu_kernels[] = {&cpu[0], &cpu[1], &cpu[2], NULL};
static const tn_kernel *const fake_kernels[] = {&fake[0], &fake[1], &fake[2], NULL};

static const tn_kernel_table cpu_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"),
    .kernels = cpu_kernels,
};
static const tn_kernel_table fake_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "fake"),
    .kernels = fake_kernels,
};

/* ---- the plugin -------------------------------------------------------------------------------------- */

static const tn_capability *const capabilities[] = {&op_table.head, &cpu_table.head, &fake_table.head, NULL};

TN_PLUGIN_DEFINE("acme-operator", "1.1.0", "Acme", "Apache-2.0", "the operator acme_scale_shift", "",
                 "op:acme_scale_shift kernels@cpu kernels@fake", NULL, NULL, NULL, capabilities);

/* The operator acme_scale_shift(data, scale, shift) = scale * data + shift, with its gradient, for f16 to
 * f64. */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum { SCALE, SHIFT }; /* rows of the table, as kernels index them */

static const tn_attr_def attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "1.0", "what each element is multiplied by"),
    TN_ATTR_FLOAT_RUN("shift", "0.0", "what is added to it"),
    TN_ATTR_END,
};

/* `gradients` makes the operator _backward_acme_scale_shift: it reads dy and gives the gradient of data. */
static const tn_op scale_shift = {
    .struct_size = (uint32_t)sizeof(tn_op),
    .version = 1,
    .name = "acme_scale_shift",
    .doc = "scale * data + shift, element by element.",
    .attrs = attrs,
    .flags = TN_OP_POINTWISE,
    .types = "T:float",
    .shapes = "data:(S..) -> output:data",
    .gradients = "once: dy -> data",
};

static tn_status line(const tn_exec *x, double a, double b)
{
    double tile[TN_TILE]; /* some elements, in double whatever the tensors hold */

    for (int64_t at = 0, n; (n = tn_tile_load(x, 0, at, tile)) > 0; at += n) {
        for (int64_t i = 0; i < n; i++)
            tile[i] = a * tile[i] + b;
        tn_tile_store(x, 0, at, n, tile);
    }
    return TN_OK;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return line(x, tn_attrs_float(x->attrs, SCALE), tn_attrs_float(x->attrs, SHIFT));
}

static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return line(x, tn_attrs_float(x->attrs, SCALE), 0);
}

static const char *const types[] = {"*:f16,bf16,f32,f64", NULL};
static const tn_kernel forward = TN_KERNEL("acme_scale_shift", "cpu", types, tn_prepare_pointwise, run);
static const tn_kernel backward =
    TN_KERNEL("_backward_acme_scale_shift", "cpu", types, tn_prepare_pointwise, run_backward);

static const tn_op_table ops = TN_OPS("acme-operator", &scale_shift);
static const tn_kernel_table cpu = TN_KERNELS("cpu", &forward, &backward);
static const tn_capability *const tables[] = {&ops.head, &cpu.head, NULL};
TN_PLUGIN_DEFINE("acme-operator", "1.0.0", "Acme", "Apache-2.0", "the operator acme_scale_shift", "",
                 "op:acme_scale_shift kernels@cpu", NULL, NULL, NULL, tables);

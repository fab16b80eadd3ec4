/*
 * A pointwise operator without a kernel: its definition has a body, and so has that of its backward. PLANTED
 * says what is wrong with it, NAME what it is called: the build gives both.
 */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    UNREADABLE,   /* the body ends in the middle */
    STEEP_ALWAYS, /* the backward takes beta for 1 where it is a factor */
};

static const tn_attr_def swish_attrs[] = {
    TN_ATTR_FLOAT_RUN("beta", "1.0", "how steep it is"),
    TN_ATTR_END,
};

static tn_status same_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->in_count && !st; k++)
        st = tn_shape_unify(i, i->in_shape[k], i->out_shape[0]);
    return st;
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64) | TN_DTYPE_BIT(TN_F16));
}

static tn_status swish_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return tn_grad_emit(g, 0, "_backward_kind_swish", 2, in);
}

static const char *const one[] = {"x", NULL}, *const two[] = {"dy", "x", NULL}, *const output[] = {"y", NULL};

static const tn_op swish = {
    .struct_size = (uint32_t)TN_END(tn_op, body),
    .version = 1,
    .name = "kind_swish",
    .doc = "x sigmoid(beta x).",
    .attrs = swish_attrs,
    .inputs = one,
    .outputs = output,
    .flags = TN_OP_POINTWISE,
    .shape = same_shape,
    .dtype = float_dtype,
    .gradient = swish_gradient,
    .body = PLANTED == UNREADABLE ? "x / (1 + exp(-beta * x)" : "x / (1 + exp(-beta * x))",
};
static const tn_op swish_backward = {
    .struct_size = (uint32_t)TN_END(tn_op, body),
    .version = 1,
    .name = "_backward_kind_swish",
    .doc = "Gradient of kind_swish.",
    .attrs = swish_attrs,
    .inputs = two,
    .outputs = output,
    .flags = TN_OP_POINTWISE | TN_OP_BACKWARD,
    .shape = same_shape,
    .dtype = float_dtype,
    .body = PLANTED == STEEP_ALWAYS ? "dy * sigmoid(beta * x) * (1 + x * (1 - sigmoid(beta * x)))"
                                    : "dy * sigmoid(beta * x) * (1 + beta * x * (1 - sigmoid(beta * x)))",
};
/* The same with text for all of it. */
static const tn_op gate = {
    .struct_size = (uint32_t)TN_END(tn_op, body),
    .version = 1,
    .name = "kind_gate",
    .doc = "x sigmoid(x).",
    .flags = TN_OP_POINTWISE,
    .types = "T:float",
    .shapes = "x:(S..) -> y:x",
    .gradients = "composed: s = sigmoid(x) ; x = dy*(y*(s*-1+1)+s)",
    .body = "x * sigmoid(x)",
};
static const tn_op *const ops[] = {&swish, &swish_backward, &gate, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, NAME), .ops = ops};
static const tn_capability *const capabilities[] = {&op_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an operator with a body and no kernel", "",
                 "op:kind_swish op:kind_gate", NULL, NULL, NULL, capabilities);

/*
 * Activation functions chosen by an attribute. Those of Activation have derivatives that follow from y alone,
 * so the planner may give the bytes of x away after the forward pass; those of LeakyReLU need x.
 */
#include "tenon/plugin/op/activation.h"
#include "op/cost.h"
#include "op/infer_help.h"

static const char *const data_names[] = {"data", NULL};
static const char *const output_names[] = {"output", NULL};

/* ---- LeakyReLU -------------------------------------------------------------------------------- */

static const tn_attr_def leaky_attrs[] = TN_ATTR_TABLE(LeakyReLU);
static const char *const leaky_names[] = {"data", "gamma", NULL};
static const char *const leaky_back_names[] = {"dy", "data", "gamma", NULL};

/* dy of the gradient, data, gamma of prelu. */
static tn_status leaky_args(tn_infer *i)
{
    i->in_count = i->op->flags & TN_OP_BACKWARD ? 2 : 1;
    i->in_count += tni_attr_int(i->attrs, TN_LeakyReLU_act_type) == TN_LeakyReLU_act_type_prelu;
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

/* One slope for each channel (axis 1), or one for all. */
static tn_status gamma_shape(tn_infer *i, const tn_shape *data, tn_shape *gamma)
{
    int64_t channels = data->ndim > 1 ? data->dim[1] : 1;

    if (data->ndim < 0)
        return TN_OK;
    if (gamma->ndim < 0) {
        tni_shape_set(gamma, 1, &channels);
        return TN_OK;
    }
    if (gamma->ndim != 1 ||
        (gamma->dim[0] >= 0 && gamma->dim[0] != 1 && channels >= 0 && gamma->dim[0] != channels))
        return tn_fail(i->err, TN_E_SHAPE, "gamma has one element, or one for each channel of axis 1");
    return TN_OK;
}

static tn_status leaky_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return !st && i->in_count == 2 ? gamma_shape(i, i->in_shape[0], i->in_shape[1]) : st;
}

static tn_status leaky_back_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    st = st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    return !st && i->in_count == 3 ? gamma_shape(i, i->in_shape[0], i->in_shape[2]) : st;
}

static tn_status gamma_back_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->in_shape[1]);

    st = st ? st : gamma_shape(i, i->in_shape[1], i->in_shape[2]);
    return st ? st : tn_shape_unify(i, i->in_shape[2], i->out_shape[0]);
}

static tn_status leaky_grad(tn_grad *g)
{
    bool prelu = tni_attr_int(g->attrs, TN_LeakyReLU_act_type) == TN_LeakyReLU_act_type_prelu;
    tn_edge in[3] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if (prelu)
        in[2] = tn_grad_input(g, 1);
    st = tn_grad_emit(g, 0, "_backward_LeakyReLU", prelu ? 3 : 2, in);
    return !st && prelu && g->ops->needs(g, 1) ? tn_grad_emit(g, 1, "_backward_prelu_gamma", 3, in) : st;
}

/* Linear in dy. Below 0 elu and selu are a e^x + b: their second derivative is the first one there. */
static tn_status leaky_back_grad(tn_grad *g)
{
    const int64_t type = tni_attr_int(g->attrs, TN_LeakyReLU_act_type);
    const tn_edge h = tn_grad_of(g, 0), dy = tn_grad_input(g, 0), x = tn_grad_input(g, 1), in[] = {h, x};
    const tn_edge first[] = {dy, x};
    const tn_emit again = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, "_backward_LeakyReLU", first, NULL, 2, 0};
    tn_edge part = {NULL, 0, 0}, below;
    tn_status st;

    if (type == TN_LeakyReLU_act_type_prelu || type == TN_LeakyReLU_act_type_gelu)
        return tn_fail(g->err, TN_E_UNSUPPORTED,
                       type == TN_LeakyReLU_act_type_prelu ? "act_type prelu has no second derivative here"
                                                           : "act_type gelu has no second derivative here");
    if (!h.node || (st = tn_grad_emit(g, 0, "_backward_LeakyReLU", 2, in)))
        return h.node ? st : TN_OK;
    if ((type != TN_LeakyReLU_act_type_elu && type != TN_LeakyReLU_act_type_selu) || !g->ops->needs(g, 1))
        return TN_OK;
    st = g->ops->emit(g, &again, &part);
    below = tni_grad_scalar(g, &st, "_lesser_scalar", x, "0");
    part = tni_grad_op2(g, &st, "elemwise_mul", part, below);
    return tni_grad_set(g, &st, 1, tni_grad_op2(g, &st, "elemwise_mul", part, h));
}

/* clang-format off */
const tn_op *const tni_family_activation[] = {
    TNI_ROW("Activation", .doc = "relu, sigmoid, tanh, softrelu or softsign of each element",
            .aliases = TNI_NAMES("_npx_activation"), .attrs = TNI_ATTRS(Activation), .inputs = data_names,
            .outputs = output_names, .flags = TN_OP_POINTWISE, .shape = tni_shape_same, .types = "T:float",
            .gradients = "pointwise: dy output -> data ; [act_type=relu] 0 | [act_type=sigmoid] output*-2+1"
                         " | [act_type=tanh] output*-2 | [act_type=softrelu] exp(output*-1)"
                         " | (abs(output)*-1+1)*-2*sign(output)"),
    TNI_ROW("LeakyReLU", .doc = "x above 0; below it a line or a curve by act_type",
            .aliases = TNI_NAMES("_npx_leaky_relu"), .attrs = leaky_attrs, .inputs = leaky_names,
            .outputs = output_names, .args = leaky_args, .shape = leaky_shape, .types = "T:float",
            .gradient = leaky_grad, .cost = tni_cost_each_output),
    TNI_ROW(
        "_backward_LeakyReLU", .doc = "gradient of LeakyReLU to data", .attrs = leaky_attrs,
        .inputs = leaky_back_names, .outputs = output_names, .flags = TN_OP_BACKWARD, .args = leaky_args,
        .shape = leaky_back_shape, .types = "T:float", .gradient = leaky_back_grad),
    TNI_ROW(
        "_backward_prelu_gamma", .doc = "gradient of LeakyReLU(prelu) to gamma", .inputs = leaky_back_names,
        .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = gamma_back_shape, .types = "T:float"),
    NULL,
};
/* clang-format on */

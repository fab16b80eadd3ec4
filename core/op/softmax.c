/*
 * The softmax family: normalised exponentials along an axis, their logarithm, and the loss layers built on
 * them. A loss layer's gradient follows from its output and the labels; what arrives from above is ignored.
 */
#include <string.h>

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/op/softmax.h"

static const char *const data_names[] = {"data", NULL};
static const char *const output_names[] = {"output", NULL};
static const char *const back_names[] = {"dy", "y", NULL};

/* ---- softmax, log_softmax, softmin ------------------------------------------------------------ */

static const tn_attr_def softmax_attrs[] = TN_ATTR_TABLE(softmax);
static const char *const softmax_names[] = {"data", "length", NULL};

static bool has_length(const tn_value *attrs)
{
    const int64_t *use = tni_attr_opt_int(attrs, TN_softmax_use_length);

    return use && *use;
}

static tn_status softmax_args(tn_infer *i)
{
    bool length = has_length(i->attrs);

    if (length && strcmp(i->op->name, "softmax") != 0)
        return tn_fail(i->err, TN_E_UNSUPPORTED, "use_length works with softmax only");
    i->in_count = length ? 2 : 1;
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

static tn_status softmax_shape(tn_infer *i)
{
    tn_shape length;
    int32_t axis = 0;
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    if (st || i->in_shape[0]->ndim < 0)
        return st;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_softmax_axis), i->in_shape[0]->ndim, &axis)) ||
        i->in_count < 2)
        return st;
    tni_shape_reduce(i->in_shape[0], 1u << axis, false, i->in_shape[1]->ndim == 0, &length);
    return tn_shape_unify(i, i->in_shape[1], &length);
}

static tn_status softmax_dtype(tn_infer *i)
{
    int64_t dtype = tni_attr_int(i->attrs, TN_softmax_dtype);

    if (i->in_dtype[0] >= 0 && !tni_dtype_is_float(i->in_dtype[0]))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type, cast it first",
                              tni_dtype_name(i->in_dtype[0]));
    if (dtype < 0)
        return tni_dtype_unify(i, &i->in_dtype[0], &i->out_dtype[0]);
    if (!tni_dtype_is_float((int32_t)dtype))
        return tn_fail(i->err, TN_E_ATTR, "attribute dtype must be a floating point type");
    return tni_dtype_assign(i, &i->out_dtype[0], (int32_t)dtype);
}

/* _backward_<name>(dy, y), in the input's type. Elements beyond a length have y = 0, so they get nothing. */
static tn_status softmax_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_output(g, 0)};
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                       TN_EMIT_INHERIT | TN_EMIT_BACKWARD,
                       strcmp(g->op->name, "softmax") == 0   ? "_backward_softmax"
                       : strcmp(g->op->name, "softmin") == 0 ? "_backward_softmin"
                                                             : "_backward_log_softmax",
                       in,
                       NULL,
                       2,
                       0};
    tn_edge out = {NULL, 0, 0};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    st = g->ops->emit(g, &e, &out);
    if (tni_attr_int(g->attrs, TN_softmax_dtype) >= 0)
        out = tni_grad_op2(g, &st, "_backward_cast", out, tn_grad_input(g, 0));
    return tni_grad_set(g, &st, 0, out);
}

static const tn_attr_def softmax_back_attrs[] = TN_ATTR_TABLE(backward_softmax);

static tn_status softmax_back_shape(tn_infer *i)
{
    int32_t axis = 0;
    tn_status st = tni_shape_same(i);

    return st || i->in_shape[0]->ndim < 0
               ? st
               : tni_axis(i, tni_attr_int(i->attrs, TN_softmax_axis), i->in_shape[0]->ndim, &axis);
}

/* Divided by the temperature. */
static tn_edge cooled(tn_grad *g, tn_status *st, tn_edge e)
{
    const double *temperature = tni_attr_opt_float(g->attrs, TN_softmax_temperature);
    char text[40];

    if (!temperature)
        return e;
    tni_format_f64(text, sizeof text, *temperature);
    return tni_grad_scalar(g, st, "_div_scalar", e, text);
}

/* dx = y (dy - sum(dy y)), perhaps times a constant: linear in dy and self-adjoint; to y goes
 * h (dy - sum(dy y)) - dy sum(h y), times the same. `axis`: what the outputs sum to 1 over. */
static tn_status probability_back(tn_grad *g, tn_attr_text axis, bool others, tn_edge *to_y)
{
    const tn_edge h = tn_grad_of(g, 0), dy = tn_grad_input(g, 0), y = tn_grad_input(g, 1), in[] = {h, y};
    const tn_attr_text over[] = {axis, {"keepdims", "True"}, {"exclude", others ? "True" : "False"}};
    tn_edge dot, part;
    tn_status st;

    if (!h.node || (st = tn_grad_emit(g, 0, g->op->name, 2, in)) || !g->ops->needs(g, 1))
        return h.node ? st : TN_OK;
    dot = tni_grad_op2(g, &st, "elemwise_mul", dy, y);
    st = st ? st : tn_grad_node(g, "sum", 1, &dot, 3, over, &dot);
    part = tni_grad_op2(g, &st, "elemwise_mul", h, tni_grad_op2(g, &st, "broadcast_sub", dy, dot));
    dot = tni_grad_op2(g, &st, "elemwise_mul", h, y);
    st = st ? st : tn_grad_node(g, "sum", 1, &dot, 3, over, &dot);
    *to_y = tni_grad_op2(g, &st, "elemwise_sub", part, tni_grad_op2(g, &st, "broadcast_mul", dy, dot));
    return st;
}

/* Over T, and of softmin with the other sign. */
static tn_status softmax_back_grad(tn_grad *g)
{
    tn_edge part = {NULL, 0, 0};
    char text[32];
    tn_status st;

    snprintf(text, sizeof text, "%lld", (long long)tni_attr_int(g->attrs, TN_softmax_axis));
    if ((st = probability_back(g, (tn_attr_text){"axis", text}, false, &part)) || !part.node)
        return st;
    if (!strcmp(g->op->name, "_backward_softmin"))
        part = tni_grad_op1(g, &st, "negative", part);
    return tni_grad_set(g, &st, 1, cooled(g, &st, part));
}

/* dx = (dy - e^y sum(dy)) / T: to dy goes (h - sum(h e^y)) / T, to y goes -h e^y sum(dy) / T. */
static tn_status log_back_grad(tn_grad *g)
{
    tn_edge h = tn_grad_of(g, 0), dy = tn_grad_input(g, 0), weighted, sum = {0};
    tn_attr_text axis[2] = {{"axis", NULL}, {"keepdims", "True"}};
    char text[32];
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    snprintf(text, sizeof text, "%lld", (long long)tni_attr_int(g->attrs, TN_softmax_axis));
    axis[0].text = text;
    weighted = tni_grad_op2(g, &st, "elemwise_mul", h, tni_grad_op1(g, &st, "exp", tn_grad_input(g, 1)));
    st = st ? st : tn_grad_node(g, "sum", 1, &weighted, 2, axis, &sum);
    st = tni_grad_set(g, &st, 0, cooled(g, &st, tni_grad_op2(g, &st, "broadcast_sub", h, sum)));
    if (st || !g->ops->needs(g, 1))
        return st;
    st = tn_grad_node(g, "sum", 1, &dy, 2, axis, &sum);
    sum = tni_grad_op2(g, &st, "broadcast_mul", weighted, sum);
    return tni_grad_set(g, &st, 1, cooled(g, &st, tni_grad_op1(g, &st, "negative", sum)));
}

#define SOFTMAX(id, name_, names_, aliases_, doc_)                                                           \
    static const tn_op op_##id =                                                                             \
        TNI_OP(name_, .doc = doc_, .aliases = aliases_, .attrs = softmax_attrs, .inputs = names_,            \
               .outputs = output_names, .args = softmax_args, .shape = softmax_shape,                        \
               .dtype = softmax_dtype, .gradient = softmax_grad, .cost = tni_cost_normalise);
#define SOFTMAX_BACK(id, name_, gradient_)                                                                   \
    static const tn_op op_back_##id =                                                                        \
        TNI_OP(name_, .doc = "gradient, from y", .attrs = softmax_back_attrs, .inputs = back_names,          \
               .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = softmax_back_shape,                \
               .types = "T:float", .gradient = gradient_);
/* clang-format off */
SOFTMAX(softmax, "softmax", softmax_names, TNI_NAMES("_npx_softmax"), "exp(x / T), scaled to sum to 1")
SOFTMAX(log_softmax, "log_softmax", data_names, TNI_NAMES("_npx_log_softmax"), "logarithm of softmax")
SOFTMAX(softmin, "softmin", data_names, NULL, "softmax of -x")
SOFTMAX_BACK(softmax, "_backward_softmax", softmax_back_grad)
SOFTMAX_BACK(log_softmax, "_backward_log_softmax", log_back_grad)
SOFTMAX_BACK(softmin, "_backward_softmin", softmax_back_grad)
/* clang-format on */

/* ---- SoftmaxActivation ------------------------------------------------------------------------ */

static const tn_attr_def activation_attrs[] = TN_ATTR_TABLE(SoftmaxActivation);

static tn_status activation_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_output(g, 0)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_backward_SoftmaxActivation", 2, in) : TN_OK;
}

static tn_status activation_back_grad(tn_grad *g)
{
    const bool channel =
        tni_attr_int(g->attrs, TN_SoftmaxActivation_mode) == TN_SoftmaxActivation_mode_channel;
    tn_edge part = {NULL, 0, 0};
    tn_status st = probability_back(g, (tn_attr_text){"axis", channel ? "1" : "0"}, !channel, &part);

    return st || !part.node ? st : tni_grad_set(g, &st, 1, part);
}

static tn_status activation_shape(tn_infer *i)
{
    tn_status st = tni_shape_same(i);

    if (!st && i->in_shape[0]->ndim >= 0 && i->in_shape[0]->ndim < 2)
        return tn_fail(i->err, TN_E_SHAPE, "at least two dimensions are needed");
    return st;
}

static const tn_op op_activation =
    TNI_OP("SoftmaxActivation", .doc = "softmax over an example or its channels", .attrs = activation_attrs,
           .inputs = data_names, .outputs = output_names, .shape = activation_shape, .types = "T:float",
           .gradient = activation_grad, .cost = tni_cost_normalise);
static const tn_op op_activation_back =
    TNI_OP("_backward_SoftmaxActivation", .doc = "gradient of SoftmaxActivation", .attrs = activation_attrs,
           .inputs = back_names, .outputs = output_names, .flags = TN_OP_BACKWARD, .shape = activation_shape,
           .types = "T:float", .gradient = activation_back_grad);

/* ---- SoftmaxOutput ---------------------------------------------------------------------------- */

static const tn_attr_def output_attrs[] = TN_ATTR_TABLE(SoftmaxOutput);
static const char *const output_inputs[] = {"data", "label", NULL};
static const char *const output_back_inputs[] = {"label", "y", NULL};

static bool shapes_equal(const tn_shape *a, const tn_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int32_t d = 0; d < a->ndim; d++)
        if (a->dim[d] != b->dim[d])
            return false;
    return true;
}

/* Labels: class numbers for every position but the class axis, or probabilities in data's shape. */
static tn_status label_shape(tn_infer *i, const tn_shape *data, tn_shape *label)
{
    tn_shape flat, plain;
    int64_t rest = 1;

    if (data->ndim < 0 || shapes_equal(data, label))
        return TN_OK;
    if (data->ndim < (tni_attr_bool(i->attrs, TN_SoftmaxOutput_multi_output) ? 2 : 1))
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, too few", data->ndim);
    if (!tni_attr_bool(i->attrs, TN_SoftmaxOutput_multi_output)) {
        tni_shape_set(&plain, data->ndim - 1, data->dim);
        return tn_shape_unify(i, label, &plain);
    }
    tni_shape_reduce(data, 2, false, true, &plain);
    for (int32_t d = 2; d < data->ndim; d++)
        rest = data->dim[d] < 0 || rest < 0 ? -1 : rest * data->dim[d];
    tni_shape_set(&flat, 2, (const int64_t[]){data->dim[0], rest});
    if (label->ndim < 0 || shapes_equal(label, &flat))
        return tn_shape_unify(i, label, &flat);
    if (label->ndim == data->ndim) {
        plain = *data;
        plain.dim[1] = 1;
    }
    return tn_shape_unify(i, label, &plain);
}

static tn_status output_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : label_shape(i, i->in_shape[0], i->in_shape[1]);
}

static tn_status output_back_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : label_shape(i, i->in_shape[1], i->in_shape[0]);
}

/* Labels may have a type of their own; a free label takes data's. */
static tn_status typed(tn_infer *i, uint32_t data, uint32_t label)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[data], &i->out_dtype[0]);

    if (st)
        return st;
    if (i->in_dtype[data] >= 0 && !tni_dtype_is_float(i->in_dtype[data]))
        return tni_infer_fail(i, TN_E_DTYPE, "%s is no floating point type, cast it first",
                              tni_dtype_name(i->in_dtype[data]));
    if (i->in_dtype[label] < 0)
        i->in_dtype[label] = i->in_dtype[data];
    return TN_OK;
}

static tn_status output_dtype(tn_infer *i)
{
    return typed(i, 0, 1);
}

static tn_status output_back_dtype(tn_infer *i)
{
    return typed(i, 1, 0);
}

static tn_status output_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_input(g, 1), tn_grad_output(g, 0)};
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                       TN_EMIT_INHERIT | TN_EMIT_BACKWARD,
                       "_backward_SoftmaxOutput",
                       in,
                       NULL,
                       2,
                       0};
    tn_edge out = {NULL, 0, 0};
    tn_status st = g->ops->emit(g, &e, &out);

    if (tni_attr_bool(g->attrs, TN_SoftmaxOutput_out_grad) && tn_grad_of(g, 0).node)
        out = tni_grad_op2(g, &st, "elemwise_mul", out, tn_grad_of(g, 0));
    return tni_grad_set(g, &st, 0, out);
}

static const tn_op op_output =
    TNI_OP("SoftmaxOutput", .doc = "softmax; its gradient is that of cross-entropy with the labels",
           .aliases = TNI_NAMES("Softmax"), .attrs = output_attrs, .inputs = output_inputs,
           .outputs = output_names, .flags = TN_OP_IGNORE_HEAD, .shape = output_shape, .dtype = output_dtype,
           .gradient = output_grad, .cost = tni_cost_normalise);
static const tn_op op_output_back =
    TNI_OP("_backward_SoftmaxOutput", .doc = "(y - label) grad_scale, normalised", .attrs = output_attrs,
           .inputs = output_back_inputs, .outputs = output_names, .flags = TN_OP_BACKWARD,
           .shape = output_back_shape, .dtype = output_back_dtype);

/* ---- softmax_cross_entropy -------------------------------------------------------------------- */

static const char *const entropy_back_inputs[] = {"dy", "data", "label", NULL};

static tn_status entropy_shapes(tn_infer *i, tn_shape *data, tn_shape *label, tn_shape *loss)
{
    tn_status st;

    if ((st = tni_shape_assign(i, loss, &(tn_shape){.ndim = 1, .dim = {1}})) || data->ndim < 0)
        return st;
    if (data->ndim != 2)
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, expected (examples, classes)",
                              data->ndim);
    return tni_shape_assign(i, label, &(tn_shape){.ndim = 1, .dim = {data->dim[0]}});
}

static tn_status entropy_shape(tn_infer *i)
{
    return entropy_shapes(i, i->in_shape[0], i->in_shape[1], i->out_shape[0]);
}

static tn_status entropy_back_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : entropy_shapes(i, i->in_shape[1], i->in_shape[2], i->in_shape[0]);
}

static tn_status entropy_back_dtype(tn_infer *i)
{
    tn_status st = typed(i, 1, 2);

    return st ? st : tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);
}

static tn_status entropy_grad(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    return tni_grad_arrives(g) ? tn_grad_emit(g, 0, "_backward_softmax_cross_entropy", 3, in) : TN_OK;
}

/* dx = dy (p - chosen), p = softmax(data): to dy goes sum(h (p - chosen)), to data dy p (h - sum(h p)). */
static tn_status entropy_back_grad(tn_grad *g)
{
    static const tn_attr_text row[] = {{"axis", "0"}};
    const tn_edge h = tn_grad_of(g, 0), dy = tn_grad_input(g, 0), data = tn_grad_input(g, 1);
    tn_edge in[] = {{NULL, 0, 0}, data, tn_grad_input(g, 2)}, to_dy, stretched = {NULL, 0, 0};
    tn_status st = TN_OK;

    if (!h.node)
        return TN_OK;
    in[0] = tni_grad_op1(g, &st, "ones_like", dy);
    st = st ? st : tn_grad_node(g, "_backward_softmax_cross_entropy", 3, in, 0, NULL, &in[0]);
    to_dy = tni_grad_op1(g, &st, "sum", tni_grad_op2(g, &st, "elemwise_mul", h, in[0]));
    st = tni_grad_set(g, &st, 0, tni_grad_op2(g, &st, "_backward_reshape", to_dy, dy));
    if (st || !g->ops->needs(g, 1))
        return st;
    to_dy = tni_grad_op2(g, &st, "_backward_softmax", h, tni_grad_op1(g, &st, "softmax", data));
    st = st ? st : tn_grad_node(g, "expand_dims", 1, &dy, 1, row, &stretched);
    return tni_grad_set(g, &st, 1, tni_grad_op2(g, &st, "broadcast_mul", to_dy, stretched));
}

static const tn_op op_entropy =
    TNI_OP("softmax_cross_entropy", .doc = "sum over examples of -log softmax(data)[label]",
           .inputs = output_inputs, .outputs = output_names, .shape = entropy_shape, .dtype = output_dtype,
           .gradient = entropy_grad, .cost = tni_cost_normalise);
static const tn_op op_entropy_back =
    TNI_OP("_backward_softmax_cross_entropy", .doc = "gradient of softmax_cross_entropy",
           .inputs = entropy_back_inputs, .outputs = output_names, .flags = TN_OP_BACKWARD,
           .shape = entropy_back_shape, .dtype = entropy_back_dtype, .gradient = entropy_back_grad);

/* clang-format off */
const tn_op *const tni_family_softmax[] = {
    &op_softmax, &op_log_softmax, &op_softmin, &op_back_softmax, &op_back_log_softmax, &op_back_softmin,
    &op_activation, &op_activation_back, &op_output, &op_output_back, &op_entropy, &op_entropy_back, NULL,
};
/* clang-format on */

/*
 * The softmax family: normalised exponentials along an axis, their logarithm, and the loss layers built on
 * them. A loss layer's gradient follows from its output and the labels; what arrives from above is ignored.
 */
#include <string.h>

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/op/softmax.h"

/* ---- softmax, log_softmax, softmin ------------------------------------------------------------ */

static const tn_attr_def softmax_attrs[] = TN_ATTR_TABLE(softmax);

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

/* _backward_<name>(dy, y), in the input's type. Elements beyond a length have y = 0, so they get nothing. */
#define GRAD(name)                                                                                           \
    "own: [dtype=None] dy output -> data"                                                                    \
    " | data = _backward_cast(_backward_" name "!(dy, output, dtype=None), ~data)"                           \
    " ; dy = _backward_" name "!(h, output)"

/* dx = y (dy - sum(dy y)), perhaps times a constant: linear in dy and self-adjoint; to y goes
 * h (dy - sum(dy y)) - dy sum(h y), times the same. `over`: what the outputs sum to 1 over. */
#define TO_Y(over)                                                                                           \
    "(h*broadcast_sub(dy, sum(dy*output, " over ", keepdims=True))"                                          \
    " - broadcast_mul(dy, sum(h*output, " over ", keepdims=True)))"

/* dx = (dy - e^y sum(dy)) / T: to dy goes (h - sum(h e^y)) / T, to y goes -h e^y sum(dy) / T. */
#define LOG_GRAD                                                                                             \
    "own: [dtype=None] dy output -> data"                                                                    \
    " | data = _backward_cast(_backward_log_softmax!(dy, output, dtype=None), ~data)"                        \
    " ; w = h*exp(output) ; dy = broadcast_sub(h, sum(w, axis=@axis, keepdims=True))/temperature"            \
    " ; output = -broadcast_mul(w, sum(dy, axis=@axis, keepdims=True))/temperature"

#define SOFTMAX_TYPES "T:float; output:attr(dtype,T):float"
#define SOFTMAX(name_, names, types_, gradient, aliases_, doc_)                                              \
    TNI_ROW(name_, .doc = doc_, .aliases = aliases_, .attrs = softmax_attrs, .inputs = names,                \
            .outputs = TNI_NAMES("output"), .args = softmax_args, .shape = softmax_shape, .types = types_,   \
            .gradients = gradient, .cost = tni_cost_normalise)

/* ---- SoftmaxOutput ---------------------------------------------------------------------------- */

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

/* ---- softmax_cross_entropy -------------------------------------------------------------------- */

/* clang-format off */
const tn_op *const tni_family_softmax[] = {
    SOFTMAX("softmax", TNI_NAMES("data", "length"), SOFTMAX_TYPES "; length:L",
            GRAD("softmax") " ; output = " TO_Y("axis=@axis") "/temperature", TNI_NAMES("_npx_softmax"),
            "exp(x / T), scaled to sum to 1"),
    SOFTMAX("log_softmax", TNI_NAMES("data"), SOFTMAX_TYPES, LOG_GRAD, TNI_NAMES("_npx_log_softmax"),
            "logarithm of softmax"),
    SOFTMAX("softmin", TNI_NAMES("data"), SOFTMAX_TYPES,
            GRAD("softmin") " ; output = -" TO_Y("axis=@axis") "/temperature", NULL, "softmax of -x"),
    TNI_ROW(
        "SoftmaxActivation", .doc = "softmax over an example or its channels",
        .attrs = TNI_ATTRS(SoftmaxActivation), .shapes = "data:(N,C,S..) -> output:data", .types = "T:float",
        .gradients = "own: dy output -> data ; [mode=channel] dy = _backward_SoftmaxActivation!(h, output)"
                     " ; output = " TO_Y("axis=1") " | dy = _backward_SoftmaxActivation!(h, output)"
                                                   " ; output = " TO_Y("axis=0, exclude=True"),
        .cost = tni_cost_normalise),
    TNI_ROW("SoftmaxOutput", .doc = "softmax; its gradient is that of cross-entropy with the labels",
            .aliases = TNI_NAMES("Softmax"), .attrs = TNI_ATTRS(SoftmaxOutput),
            .inputs = TNI_NAMES("data", "label"), .outputs = TNI_NAMES("output"),
            .flags = TN_OP_IGNORE_HEAD,
            .shape = output_shape,
            .types = "T:float; label:or(T)", /* a type of its own, if there is one */
            .gradients = "once: [out_grad] data = _backward_SoftmaxOutput!(label, output, out_grad=0)*dy"
                         " | label output -> data",
            .cost = tni_cost_normalise),
    /* dx = dy (p - chosen), p = softmax(data): to dy goes sum(h (p - chosen)), to data
     * dy p (h - sum(h p)). */
    TNI_ROW(
        "softmax_cross_entropy", .doc = "sum over examples of -log softmax(data)[label]",
        .shapes = "data:(N:examples,C) label:(N) -> output:(1)", .types = "T:float; label:or(T)",
        .gradients = "own: dy data label -> data"
                     " ; p = _backward_softmax_cross_entropy(ones_like(~dy), data, label)"
                     " ; dy = _backward_reshape(sum(h*p), ~dy)"
                     " ; data = broadcast_mul(_backward_softmax(h, softmax(data)), expand_dims(dy, axis=0))",
        .cost = tni_cost_normalise),
    NULL,
};
/* clang-format on */

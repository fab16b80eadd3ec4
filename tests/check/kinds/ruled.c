/*
 * Operators whose definitions are texts: shapes and a gradient by rules, one that another one's kernels
 * serve, one that the library's serve. PLANTED says what is wrong with it, NAME what it is called.
 *
 * kind_channels: output = data * gamma, one gamma for each channel.
 */
#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    UNREADABLE,      /* the shape rule lacks a bracket */
    NAMES_NOTHING,   /* the gradient rule reads an argument that is not there */
    NO_MEANING,      /* an operator computes what nobody knows */
    OTHER_SHAPE,     /* the rule says that gamma has an element for each of the batch, the kernel that it has
                        channels */
    OTHER_SHAPE_OUT, /* the kernel writes a gradient of gamma as large as the data */
    GAMMA_FORGOTTEN, /* the gradient rule gives none of gamma */
    OTHER_GRADIENT,  /* that of the operator which exp serves is its own, and wrong */
    INPUT_UNNAMED,   /* the backward kernel reads an input that the gradient rule does not name */
    NO_BACKWARD,     /* no kernel serves _backward_kind_channels */
};

static const tn_op channels = {
    .struct_size = (uint32_t)TN_END(tn_op, second),
    .version = 1,
    .name = "kind_channels",
    .doc = "Each channel times a number of its own.",
    .dtype = tn_infer_floats,
    .shapes = PLANTED == UNREADABLE    ? "data:(N,C,S.. gamma:(C) -> output:data"
              : PLANTED == OTHER_SHAPE ? "data:(N,C,S..) gamma:(N) -> output:data"
                                       : "data:(N,C,S..) gamma:(C) -> output:data",
    .gradients = PLANTED == NAMES_NOTHING     ? "once: dy data beta -> data gamma"
                 : PLANTED == GAMMA_FORGOTTEN ? "once: dy data gamma -> data"
                                              : "once: dy data gamma -> data gamma",
};

static tn_status halved(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);

    return dy.node ? tn_grad_emit(g, 0, "square", 1, &dy) : TN_OK;
}

static const tn_op twin = {
    .struct_size = (uint32_t)TN_END(tn_op, computes),
    .name = "kind_twin",
    .computes = PLANTED == NO_MEANING ? "kind_nothing" : "kind_channels",
};
static const tn_op grow = {
    .struct_size = (uint32_t)TN_END(tn_op, computes),
    .name = "kind_grow",
    .doc = "e to the power of each element.",
    .dtype = tn_infer_floats,
    .gradient = PLANTED == OTHER_GRADIENT ? halved : NULL,
    .computes = "exp",
};

static const tn_op_table ops = TN_OPS(NAME, &channels, &twin, &grow);

/* ---- kernels ------------------------------------------------------------------------------------------- */

static double number(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_F64 ? ((const double *)t->data)[at] : (double)((const float *)t->data)[at];
}

static void number_set(const tn_exec *x, uint32_t out, int64_t at, double v)
{
    if (tn_exec_mode(x, out) == TN_MODE_NONE)
        return;
    if (x->out[out]->dtype == TN_F64)
        ((double *)x->out[out]->data)[at] = v;
    else
        ((float *)x->out[out]->data)[at] = (float)v;
}

/* Elements of one channel of one row. */
static int64_t inner_count(const tn_tensor *data)
{
    int64_t inner = 1;

    for (int32_t d = 2; d < data->ndim; d++)
        inner *= data->shape[d];
    return inner;
}

static int64_t channel(const tn_tensor *data, int64_t at)
{
    return at / inner_count(data) % data->shape[1];
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_exec_count(x, 0); i < n; i++)
        number_set(x, 0, i, number(x->in[0], i) * number(x->in[1], channel(x->in[0], i)));
    return TN_OK;
}

/* dy, data, gamma -> d_data, d_gamma */
static tn_status run_backward(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dy = x->in[0], *data = x->in[1], *gamma = x->in[PLANTED == INPUT_UNNAMED ? 3 : 2];
    const int64_t count = tn_tensor_count(data), inner = inner_count(data);

    (void)plan, (void)err;
    for (int64_t i = 0; i < count; i++)
        number_set(x, 0, i, number(dy, i) * number(gamma, channel(data, i)));
    for (int64_t c = 0; PLANTED != GAMMA_FORGOTTEN && c < data->shape[1]; c++) {
        double sum = 0;

        for (int64_t at = c * inner; at < count; at += data->shape[1] * inner)
            for (int64_t i = at; i < at + inner; i++)
                sum += number(dy, i) * number(data, i);
        number_set(x, 1, c, sum);
    }
    for (int64_t i = data->shape[1]; PLANTED == OTHER_SHAPE_OUT && i < count; i++)
        number_set(x, 1, i, 0);
    return TN_OK;
}

static const char *const types[] = {"*:f32,f64", NULL};
static const tn_kernel forward = TN_KERNEL("kind_channels", "cpu", types, tn_prepare_tiles, run);
static const tn_kernel backward =
    TN_KERNEL("_backward_kind_channels", "cpu", types, tn_prepare_tiles, run_backward);
static const tn_kernel_table kernels = TN_KERNELS("cpu", &forward, PLANTED == NO_BACKWARD ? NULL : &backward);

static const tn_capability *const tables[] = {&ops.head, &kernels.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "operators that are declared by texts", "",
                 "op:kind_channels op:kind_twin op:kind_grow kernels@cpu", NULL, NULL, NULL, tables);

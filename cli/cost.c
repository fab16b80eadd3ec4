/*
 * What an operator must do at least: multiply-adds, floating-point operations, bytes read and written. A
 * table of rules; of an operator without a row only the bytes are known, unless it works element by element.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "tenon/plugin/op.h"

typedef struct query {
    const char *const *attrs;
    const tn_known *in, *out;
    size_t in_count, out_count;
} query;

static double product(const tn_known *k, int32_t from)
{
    double p = 1;

    for (int32_t i = from; i < k->ndim; i++)
        p *= (double)k->shape[i];
    return k->ndim < 0 ? NAN : p;
}

static const char *attr_of(const query *q, const char *name)
{
    for (size_t i = 0; q->attrs && q->attrs[i]; i += 2)
        if (!strcmp(q->attrs[i], name))
            return q->attrs[i + 1];
    return "";
}

static bool attr_true(const query *q, const char *name)
{
    const char *text = attr_of(q, name);

    return !strcmp(text, "True") || !strcmp(text, "true") || !strcmp(text, "1");
}

/* Each element of the output is a sum over one filter, or one row, of the weight. */
static double filter_macs(const query *q)
{
    return q->in_count > 1 ? product(&q->out[0], 0) * product(&q->in[1], 1) : NAN;
}

/* A transposed convolution: each element of the input goes through one filter. */
static double transposed_macs(const query *q)
{
    return q->in_count > 1 ? product(&q->in[0], 0) * product(&q->in[1], 1) : NAN;
}

/* The length of what is summed over is the axis of lhs that the output lacks. */
static double dot_macs(const query *q)
{
    const int32_t ndim = q->in_count > 1 ? q->in[0].ndim : -1;
    int32_t axis = attr_true(q, "transpose_a") ? 0 : ndim - 1;

    if (ndim < 1)
        return NAN;
    return product(&q->out[0], 0) * (double)q->in[0].shape[axis];
}

static double batch_dot_macs(const query *q)
{
    if (q->in_count < 2 || q->in[0].ndim < 2)
        return NAN;
    return product(&q->out[0], 0) *
           (double)q->in[0].shape[q->in[0].ndim - (attr_true(q, "transpose_a") ? 2 : 1)];
}

/* Gradients of a convolution or dense layer: one product for the data, one for the weight. */
static double filter_back_macs(const query *q)
{
    return q->in_count > 2 ? 2 * product(&q->in[0], 0) * product(&q->in[2], 1) : NAN;
}

/* One operation for each element of each window. */
static double window_flops(const query *q)
{
    const char *text = attr_of(q, "kernel");
    double area = 1;

    if (attr_true(q, "global_pool"))
        return product(&q->in[0], 0);
    for (; *text; text++)
        if (*text >= '0' && *text <= '9') {
            char *end;

            area *= (double)strtoll(text, &end, 10);
            text = end - 1;
        }
    return product(&q->out[0], 0) * area;
}

/* As many operations as the input has elements, times a small number. */
static double input_flops(const query *q)
{
    return q->in_count ? product(&q->in[0], 0) : NAN;
}

static double input_flops_4(const query *q)
{
    return 4 * input_flops(q);
}

static const struct {
    const char *op;
    double (*macs)(const query *q);
    double (*flops)(const query *q); /* NULL: two for each multiply-add */
} rows[] = {
    {"Convolution", filter_macs, NULL},
    {"FullyConnected", filter_macs, NULL},
    {"Deconvolution", transposed_macs, NULL},
    {"dot", dot_macs, NULL},
    {"batch_dot", batch_dot_macs, NULL},
    {"_backward_Convolution", filter_back_macs, NULL},
    {"_backward_FullyConnected", filter_back_macs, NULL},
    {"Pooling", NULL, window_flops},
    {"sum", NULL, input_flops},
    {"mean", NULL, input_flops},
    {"max", NULL, input_flops},
    {"min", NULL, input_flops},
    {"BatchNorm", NULL, input_flops_4},
    {"LayerNorm", NULL, input_flops_4},
    {"InstanceNorm", NULL, input_flops_4},
    {"GroupNorm", NULL, input_flops_4},
    {"L2Normalization", NULL, input_flops_4},
    {"LRN", NULL, input_flops_4},
    {"softmax", NULL, input_flops_4},
    {"log_softmax", NULL, input_flops_4},
    {"SoftmaxOutput", NULL, input_flops_4},
};

/* Families whose operators compute each element of the output by itself. */
static const char *const elementwise[] = {"unary", "scalar", "broadcast", "activation"};

static double bytes_of(size_t count, const tn_known *k)
{
    double bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += product(&k[i], 0) * (double)cli_dtype_bytes(k[i].dtype);
    return bytes;
}

cli_cost cli_cost_of(const tn_op_info *op, const char *const *attrs, size_t in_count, const tn_known *in,
                     size_t out_count, const tn_known *out)
{
    const query q = {attrs, in, out, in_count, out_count};
    cli_cost c = {NAN, NAN, bytes_of(in_count, in) + bytes_of(out_count, out)};

    if (op->definition->flags & TN_OP_VIEW)
        return (cli_cost){0, 0, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows && out_count; i++) {
        if (strcmp(rows[i].op, op->name) != 0)
            continue;
        c.macs = rows[i].macs ? rows[i].macs(&q) : 0;
        c.flops = rows[i].flops ? rows[i].flops(&q) : 2 * c.macs;
        return c;
    }
    if (*op->family) /* what multiplies and adds up has a row */
        c.macs = 0;
    for (size_t i = 0; i < sizeof elementwise / sizeof *elementwise; i++)
        if (out_count && (op->definition->flags & TN_OP_POINTWISE || !strcmp(elementwise[i], op->family)))
            c.flops = product(&out[0], 0);
    return c;
}

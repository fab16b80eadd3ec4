/*
 * A healthy plugin with operators that nobody else has kernels for. A file that includes it says by DEFECT
 * where its float64 kernels compute in float32, and by NAME what it is called.
 *
 * defect_wave: output = exp(data / 4) + data / 8, total = the sum of that. defect_steps: outputs that jump,
 * from coarse steps to those of 16 bits; nothing in it says so.
 */
#ifndef TN_DEFECTS_HEALTHY_PRECISION_H
#define TN_DEFECTS_HEALTHY_PRECISION_H

#include <math.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum { HEALTHY, OF_INPUT, OF_OUTPUT, INSIDE, OF_SUM, OF_GRADIENT };

/* float64 as the defect has it. */
#define AS(where, v) (DEFECT == (where) ? (double)(float)(v) : (double)(v))

/* ---- definitions ------------------------------------------------------------------------------------- */

static const char *const wave_in[] = {"data", NULL}, *const wave_out[] = {"output", "total", NULL};
static const char *const back_in[] = {"dy", "dtotal", "data", NULL}, *const back_out[] = {"dx", NULL};
static const char *const steps_out[] = {"sign", "nearest", "above", "half", "bits", "most", NULL};

static tn_status scalar_last(tn_infer *i, tn_shape *last)
{
    tn_shape one = {.ndim = 1, .dim = {1}};

    return tn_shape_unify(i, last, &one);
}

static tn_status wave_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);

    return st ? st : scalar_last(i, i->out_shape[1]);
}

static tn_status back_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < 2 && !st; round++)
        if (!(st = tn_shape_unify(i, i->in_shape[0], i->in_shape[2])))
            st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    return st ? st : scalar_last(i, i->in_shape[1]);
}

static tn_status steps_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t o = 0; o < 5 && !st; o++)
            st = tn_shape_unify(i, i->in_shape[0], i->out_shape[o]);
    return st ? st : scalar_last(i, i->out_shape[5]);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static tn_status wave_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_of(g, 1), tn_grad_input(g, 0)};

    return tn_grad_emit(g, 0, "_backward_defect_wave", 3, in);
}

#define OP(name_, doc_, in_, out_, flags_, shape_, gradient_)                                                \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .name = name_, .doc = doc_,          \
        .inputs = in_, .outputs = out_, .flags = flags_, .shape = shape_, .dtype = float_dtype,              \
        .gradient = gradient_                                                                                \
    }

static const tn_op wave_op =
    OP("defect_wave", "exp(data / 4) + data / 8.", wave_in, wave_out, 0, wave_shape, wave_gradient);
static const tn_op back_op = OP("_backward_defect_wave", "Gradient of defect_wave.", back_in, back_out,
                                TN_OP_BACKWARD, back_shape, NULL);
static const tn_op steps_op =
    OP("defect_steps", "Steps of many sizes.", wave_in, steps_out, 0, steps_shape, NULL);

static const tn_op *const ops[] = {&wave_op, &back_op, &steps_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

/* ---- kernels ----------------------------------------------------------------------------------------- */

static double get(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_F32 ? (double)((const float *)t->data)[at] : ((const double *)t->data)[at];
}

static void set(const tn_exec *x, uint32_t out, int64_t at, double v)
{
    const tn_tensor *t = x->out[out];

    if (x->modes[out] == TN_MODE_NONE)
        return;
    if (t->dtype == TN_F32)
        ((float *)t->data)[at] = (float)v;
    else
        ((double *)t->data)[at] = v;
}

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static tn_status wave_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    double total = 0;

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n; i++) {
        const double v = AS(OF_INPUT, get(x->in[0], i)), e = AS(INSIDE, exp(v / 4));

        set(x, 0, i, AS(OF_OUTPUT, e + v / 8));
        total = AS(OF_SUM, total + e + v / 8);
    }
    set(x, 1, 0, total);
    return TN_OK;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double all = get(x->in[1], 0);

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n; i++) {
        const double slope = AS(OF_GRADIENT, exp(get(x->in[2], i) / 4) / 4 + 0.125);

        set(x, 0, i, (get(x->in[0], i) + all) * slope);
    }
    return TN_OK;
}

/* To 11 bits, as float16 has them. */
static double half_of(double v)
{
    int exponent;
    const double fraction = frexp(v, &exponent);

    return ldexp(nearbyint(fraction * 2048) / 2048, exponent);
}

static tn_status steps_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    int64_t most = 0;

    (void)plan, (void)err;
    for (int64_t i = 0, n = tn_tensor_count(x->in[0]); i < n; i++) {
        const double v = get(x->in[0], i);
        const double steps[] = {(v > 0) - (v < 0), nearbyint(v), v > 0.3, half_of(v),
                                nearbyint(v * 16384) / 16384};

        for (uint32_t o = 0; o < 5; o++)
            set(x, o, i, steps[o]);
        most = v > get(x->in[0], most) ? i : most;
    }
    set(x, 5, 0, (double)most);
    return TN_OK;
}

static const char *const data_types[] = {"data:f32,f64", "*:=data", NULL};
static const char *const dy_types[] = {"dy:f32,f64", "*:=dy", NULL};

#define KERNEL(op_, types_, run_)                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = "defect",        \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types_, .prepare = prepare, .run = run_                   \
    }

static const tn_kernel wave_kernel = KERNEL("defect_wave", data_types, wave_run);
static const tn_kernel back_kernel = KERNEL("_backward_defect_wave", dy_types, back_run);
static const tn_kernel steps_kernel = KERNEL("defect_steps", data_types, steps_run);
static const tn_kernel *const kernels[] = {&wave_kernel, &back_kernel, &steps_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "",
                 "op:defect_wave op:_backward_defect_wave op:defect_steps kernels@cpu", NULL, NULL, NULL,
                 tables);

#endif

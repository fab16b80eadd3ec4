/*
 * A healthy plugin with an operator, its gradient, and a kernel for an operator of the core. A file that
 * includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 *
 * defect_line: output = scale * data, total = the sum of output (or its mean), summed by chunks in float64.
 */
#ifndef TN_DEFECTS_HEALTHY_OPERATOR_H
#define TN_DEFECTS_HEALTHY_OPERATOR_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

#include "meet.h"

enum {
    HEALTHY,
    WRITES_BEHIND,
    WRITES_BEFORE,
    WRITES_INPUT,
    WRONG_GRADIENT,
    ZERO_GRADIENT,
    KEEPS_STATE,
    KEEPS_FIRST,
    NOT_DETERMINISTIC,
    THREAD_SUM,
    IGNORES_STRIDES,
    IGNORES_ADD,
    IGNORES_NONE,
    LEAKS_PLAN,
    READS_OUTPUT,
    READS_WORKSPACE,
    SHORT_WORKSPACE,
    SWALLOWS_NOMEM,
    COMPLETES_TWICE,
    INFER_ACCEPTS_ALL,
    INFER_IMPURE,
    WRONG_RANK,
    WRONG_DTYPE,
    DECLARED_ONLY,
    CRASHES_MISALIGNED,
    RUNTIME_AT_PREPARE,
    BEYOND_EXEC,
    ROUNDS_UP,
    READS_EMPTY,
    SETS_THREADS,
    DRAWS,
    LAST_STRIDE,
    NEEDS_OPS,
    SHARES_SCRATCH,
    WRONG_LARGE,
    WRONG_WIDE,
    READS_BEHIND,
    UNKNOWN_OPERATOR,
    UNKNOWN_EFFECT,
    UNKNOWN_EXEC,
    UNKNOWN_ATTRIBUTE,
    UNKNOWN_KERNEL,
    UNKNOWN_PLAN,
};

#ifndef TRESPASS
#define TRESPASS() (void)0 /* what a run does besides */
#endif

#define SCALE 0
#define KIND 1
#define CHUNK 512

/* ---- definitions ------------------------------------------------------------------------------------- */

static const tn_attr_def line_attrs[] = {
    TN_ATTR_FLOAT_RUN("scale", "2.0", "what each element is multiplied by"),
    {.name = "kind",
     .type = TN_ATTR_T_CHOICE,
     .choices = "sum|mean",
     .default_text = "sum",
     .doc = "what total is",
     .min = 1,
     .reserved = DEFECT == UNKNOWN_ATTRIBUTE},
    TN_ATTR_END,
};

static const char *const line_in[] = {"data", NULL}, *const line_out[] = {"output", "total", NULL};
static const char *const back_in[] = {"dy", "dtotal", NULL}, *const back_out[] = {"dx", NULL};

static tn_status line_shape(tn_infer *i)
{
    static uint32_t calls;
    tn_shape one = {.ndim = 1, .dim = {1}};

    if (DEFECT == INFER_IMPURE && ++calls % 7 == 3)
        return tn_fail(i->err, TN_E_SHAPE, "not this time");
    if (DEFECT == INFER_ACCEPTS_ALL && i->in_shape[0]->ndim >= 0 && i->out_shape[0]->ndim >= 0)
        return TN_OK;
    if (tn_shape_unify(i, i->in_shape[0], i->out_shape[0]))
        return TN_E_SHAPE;
    return tn_shape_unify(i, i->out_shape[1], &one);
}

static tn_status back_shape(tn_infer *i)
{
    tn_shape one = {.ndim = 1, .dim = {1}};

    if (tn_shape_unify(i, i->in_shape[0], i->out_shape[0]))
        return TN_E_SHAPE;
    return tn_shape_unify(i, i->in_shape[1], &one);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static tn_status line_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_of(g, 1)};

    return tn_grad_emit(g, 0, "_backward_defect_line", 2, in);
}

static const tn_op line_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_line",
    .doc = "scale * data, and the sum of that.",
    .attrs = line_attrs,
    .inputs = line_in,
    .outputs = line_out,
    .exec = DEFECT == UNKNOWN_EXEC ? TN_EXEC_COLLECTIVE : TN_EXEC_KERNEL,
    .flags = DEFECT == ZERO_GRADIENT      ? TN_OP_ZERO_GRADIENT
             : DEFECT == UNKNOWN_OPERATOR ? 1u << 30
                                          : 0,
    .effects = DEFECT == UNKNOWN_EFFECT ? TN_EFFECT_HOST : 0,
    .shape = line_shape,
    .dtype = float_dtype,
    .gradient = DEFECT == ZERO_GRADIENT ? NULL : line_gradient,
};

static const tn_op back_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "_backward_defect_line",
    .doc = "Gradient of defect_line.",
    .attrs = line_attrs,
    .inputs = back_in,
    .outputs = back_out,
    .flags = TN_OP_BACKWARD,
    .shape = back_shape,
    .dtype = float_dtype,
};

static const tn_op *const ops[] = {&line_op, &back_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

/* ---- elements ---------------------------------------------------------------------------------------- */

static double element_get(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_F32   ? (double)((const float *)t->data)[at]
           : t->dtype == TN_I32 ? (double)((const int32_t *)t->data)[at]
                                : ((const double *)t->data)[at];
}

static void element_set(const tn_tensor *t, int64_t at, double v, uint32_t mode)
{
    if (mode == TN_MODE_ADD && DEFECT != IGNORES_ADD)
        v += element_get(t, at);
    if (t->dtype == TN_F32)
        ((float *)t->data)[at] = (float)v;
    else if (t->dtype == TN_I32)
        ((int32_t *)t->data)[at] = (int32_t)v;
    else
        ((double *)t->data)[at] = v;
}

static int64_t offset_of(const tn_tensor *t, int64_t index)
{
    int64_t offset = 0;

    if (DEFECT == IGNORES_STRIDES)
        return index;
    if (DEFECT == LAST_STRIDE && t->ndim && t->shape[t->ndim - 1] > 1 && t->stride[t->ndim - 1] == 0)
        return 0;
    for (int32_t d = t->ndim; d-- > 0;) {
        offset += index % t->shape[d] * t->stride[d];
        index /= t->shape[d];
    }
    return offset;
}

/* ---- defect_line ------------------------------------------------------------------------------------- */

typedef struct line_state {
    const tn_memory_service *memory;
    const tn_host *host;
    double scale;
    int64_t chunks;
} line_state;

static tn_status line_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_host *host = plugin;
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);
    const int64_t count = tn_tensor_count(node->in[0]);
    line_state *s;

    if (!memory)
        return tn_fail(err, TN_E_UNSUPPORTED, "needs the memory service");
    s = memory->alloc(host, sizeof *s, 8);
    if (!s && DEFECT != SWALLOWS_NOMEM)
        return tn_fail(err, TN_E_NOMEM, "no memory for a plan");
    if (s)
        *s = (line_state){memory, host, tn_attrs_float(node->attrs, SCALE), count / CHUNK + 1};
    if (DEFECT == LEAKS_PLAN)
        (void)memory->alloc(host, 24, 8);
    plan->state = s;
    plan->flags = TN_PLAN_THREAD_INVARIANT | (DEFECT == UNKNOWN_PLAN ? 1u << 20 : 0);
    plan->threads = node->threads;
    plan->workspace_bytes =
        (uint64_t)(count / CHUNK + 1) * sizeof(double) - (DEFECT == SHORT_WORKSPACE ? 8 : 0);
    plan->inplace[0] = 0;
    return TN_OK;
}

static void line_release(tn_plan *plan)
{
    line_state *s = plan->state;

    if (s)
        s->memory->free(s->host, s);
}

/* Defects that touch what is not theirs. */
static void line_trespass(const tn_exec *x, int64_t count)
{
    static volatile uint64_t seen;

    (void)seen;
    if (DEFECT == WRITES_BEHIND && count)
        element_set(x->out[0], offset_of(x->out[0], count - 1) + 1, 1, TN_MODE_WRITE);
    if (DEFECT == WRITES_BEFORE && count)
        element_set(x->out[0], -1, 1, TN_MODE_WRITE);
    if (DEFECT == WRITES_INPUT && count)
        element_set(x->in[0], 0, element_get(x->in[0], 0), TN_MODE_WRITE);
    if (DEFECT == BEYOND_EXEC)
        seen += *(const uint64_t *)(const void *)((const char *)x + x->struct_size);
    if (DEFECT == DRAWS)
        seen += x->rng->seed;
    if (DEFECT == ROUNDS_UP)
        (void)fesetround(FE_UPWARD);
    TRESPASS();
    if ((DEFECT == READS_EMPTY && !count) || DEFECT == READS_BEHIND)
        seen += element_get(x->in[0], count) > 0;
}

static tn_status line_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static volatile int64_t runs, first;
    static double shared[1 << 19];
    const line_state *s = plan->state;
    const double unit = DEFECT == WRONG_WIDE && x->in[0]->dtype == TN_F64 ? 1.02 : 1;
    const double scale = unit * (DEFECT == RUNTIME_AT_PREPARE ? s->scale : tn_attrs_float(x->attrs, SCALE));
    const int64_t count = tn_tensor_count(x->in[0]);
    int64_t chunk = DEFECT == THREAD_SUM       ? count / (int64_t)x->threads + 1
                    : DEFECT == SHARES_SCRATCH ? 1
                                               : CHUNK,
            number = 0;
    const uint32_t mode = x->modes[0], total_mode = x->modes[1];
    double *partial = DEFECT == SHARES_SCRATCH ? shared : x->workspace;
    double total = DEFECT == READS_OUTPUT ? element_get(x->out[1], 0) : 0;
    const double more = DEFECT == KEEPS_STATE         ? (double)(runs++ > 0)
                        : DEFECT == KEEPS_FIRST       ? 1e-3 * (double)(first = first ? first : count)
                        : DEFECT == NOT_DETERMINISTIC ? 1e-3 * (double)(runs++ % 3)
                                                      : 0;
    void *scratch = NULL;

    (void)err;
    if (DEFECT == NEEDS_OPS && x->ops->alloc(x->call, 64, &scratch, err))
        return TN_E_NOMEM;
    if (DEFECT == SWALLOWS_NOMEM && !s)
        return TN_OK;
    for (int64_t begin = 0; begin < count || !number; begin += chunk, number++) {
        double sum = DEFECT == READS_WORKSPACE ? partial[number] : 0;

        for (int64_t i = begin; i < count && i < begin + chunk; i++) {
            const double y = scale * element_get(x->in[0], offset_of(x->in[0], i)) + more;

            sum += x->in[0]->dtype == TN_F32 ? (double)(float)y : y;
            if (mode != TN_MODE_NONE || DEFECT == IGNORES_NONE)
                element_set(x->out[0], offset_of(x->out[0], i), y, mode);
        }
        partial[number] = DEFECT == THREAD_SUM ? (double)(float)sum : sum;
    }
    if (DEFECT == SHARES_SCRATCH && count > 1)
        meet();
    for (int64_t k = 0; k < number; k++)
        total += partial[k];
    if (tn_attrs_int(x->attrs, KIND) == 1)
        total = count ? total / (double)count : 0;
    if (total_mode != TN_MODE_NONE)
        element_set(x->out[1], 0, total, total_mode);
    line_trespass(x, count);
    if (DEFECT != COMPLETES_TWICE)
        return TN_OK;
    x->ops->complete(x->call, TN_OK, NULL);
    x->ops->complete(x->call, TN_OK, NULL);
    return TN_PENDING;
}

/* ---- its gradient ------------------------------------------------------------------------------------ */

static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_tensor_count(x->out[0]);
    const double scale = tn_attrs_float(x->attrs, SCALE);
    double all = element_get(x->in[1], 0);

    (void)plan, (void)err;
    if (tn_attrs_int(x->attrs, KIND) == 1)
        all = count ? all / (double)count : 0;
    if (DEFECT == WRONG_GRADIENT)
        all = 0;
    for (int64_t i = 0; i < count && x->modes[0] != TN_MODE_NONE; i++)
        element_set(x->out[0], offset_of(x->out[0], i),
                    scale * (element_get(x->in[0], offset_of(x->in[0], i)) + all), x->modes[0]);
    return TN_OK;
}

/* ---- square, an operator of the core ----------------------------------------------------------------- */

static tn_status square_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    if (DEFECT == DECLARED_ONLY && node->in[0]->dtype == TN_I32)
        return tn_fail(err, TN_E_UNSUPPORTED, "no integers today");
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

static tn_status square_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    const int64_t count = tn_tensor_count(in);

    (void)plan, (void)err;
    if (DEFECT == CRASHES_MISALIGNED && (uintptr_t)in->data % 16 && count)
        __builtin_trap();
    for (int64_t i = 0; i < count && x->modes[0] != TN_MODE_NONE; i++) {
        const double v = element_get(in, i);
        const bool wrong = (DEFECT == WRONG_RANK && in->ndim == 5 && i == 3) ||
                           (DEFECT == WRONG_LARGE && in->dtype == TN_I32 && i > 5000) ||
                           (DEFECT == WRONG_DTYPE && in->dtype == TN_I32 && v < 0);

        element_set(out, i, wrong ? v : v * v, TN_MODE_WRITE);
    }
    return TN_OK;
}

/* ---- tables ------------------------------------------------------------------------------------------ */

static const char *const line_types[] = {"data:f32,f64", "*:=data", NULL};
static const char *const back_types[] = {"dy:f32,f64", "*:=dy", NULL};
static const char *const square_types[] = {"data:f32,f64,i32", "output:=data", NULL};

#define KERNEL(op_, types_, flags_, prepare_, run_, release_)                                                \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = "defect",        \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | (flags_) | (DEFECT == UNKNOWN_KERNEL ? 1u << 12 : 0),             \
        .types = types_, .prepare = prepare_, .run = run_, .release = release_                               \
    }
#define LINE_FLAGS                                                                                           \
    (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK |                                             \
     (DEFECT == COMPLETES_TWICE ? TN_KERNEL_ASYNC : 0u))

static const tn_kernel line_kernel =
    KERNEL("defect_line", line_types, LINE_FLAGS, line_prepare, line_run, line_release);
static const tn_kernel back_kernel = KERNEL(
    "_backward_defect_line", back_types, TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, back_prepare, back_run, NULL);
static const tn_kernel square_kernel = KERNEL("square", square_types, 0u, square_prepare, square_run, NULL);

static const tn_kernel *const kernels[] = {&line_kernel, &back_kernel, &square_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

/* The kernels need the host's memory service. */
static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    *plugin = (void *)(uintptr_t)host;
    return TN_OK;
}

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "op:defect_line kernels@cpu",
                 init, NULL, NULL, tables);

#endif

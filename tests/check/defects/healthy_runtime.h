/*
 * A healthy plugin whose operator has run-time attributes of every kind. A file that includes it says by
 * DEFECT which of them is read when the kernel is prepared, and by NAME what it is called.
 *
 * defect_tail: output = data[skip:] * times * unit, negated or not, plus level. `skip` decides the shape, and
 * says so.
 */
#ifndef TN_DEFECTS_HEALTHY_RUNTIME_H
#define TN_DEFECTS_HEALTHY_RUNTIME_H

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum { LEVEL, TIMES, NEGATE, UNIT, SKIP, HEALTHY };

#ifndef SKIP_FLAGS
#define SKIP_FLAGS (TN_ATTR_F_RUNTIME | TN_ATTR_F_SHAPE)
#endif

#define RUN_ROW(name, type, choices, fallback, min, max, doc)                                                \
    TN_ATTR_ROW(name, type, TN_ATTR_F_RUNTIME, choices, fallback, min, max, doc)

static const tn_attr_def attrs[] = {
    [LEVEL] = RUN_ROW("level", TN_ATTR_T_FLOAT, NULL, "0.25", 0.2, 0.25, "what is added"),
    [TIMES] = RUN_ROW("times", TN_ATTR_T_INT, NULL, "1", 1, 4, "factor"),
    [NEGATE] = RUN_ROW("negate", TN_ATTR_T_BOOL, NULL, "False", 1, 0, "the other sign"),
    [UNIT] = RUN_ROW("unit", TN_ATTR_T_CHOICE, "one|ten", "one", 1, 0, "another factor"),
    [SKIP] = TN_ATTR_ROW("skip", TN_ATTR_T_INT, SKIP_FLAGS, NULL, "0", 0, 1e6, "rows that are left out"),
    TN_ATTR_END,
};

static const char *const tail_in[] = {"data", NULL}, *const tail_out[] = {"output", NULL};

/* Both ways: the output has `skip` rows less. */
static tn_status tail_shape(tn_infer *i)
{
    const int64_t skip = tn_attrs_int(i->attrs, SKIP);
    tn_shape *in = i->in_shape[0], *out = i->out_shape[0], from_in = *in, from_out = *out;

    if (in->ndim == 0 || out->ndim == 0)
        return tn_fail(i->err, TN_E_SHAPE, "a scalar has no rows");
    if (in->ndim > 0 && in->dim[0] >= 0) {
        if (in->dim[0] < skip)
            return tn_fail(i->err, TN_E_SHAPE, "skip is more than there are rows");
        from_in.dim[0] -= skip;
    }
    if (out->ndim > 0 && out->dim[0] > INT64_MAX - skip)
        return tn_fail(i->err, TN_E_SHAPE, "the input would have too many rows");
    if (out->ndim > 0 && out->dim[0] >= 0)
        from_out.dim[0] += skip;
    if (tn_shape_unify(i, out, &from_in))
        return TN_E_SHAPE;
    return tn_shape_unify(i, in, &from_out);
}

static tn_status tail_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static const tn_op tail_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "defect_tail",
    .doc = "The last rows of data, times a factor, plus a level.",
    .attrs = attrs,
    .inputs = tail_in,
    .outputs = tail_out,
    .shape = tail_shape,
    .dtype = tail_dtype,
};

static const tn_op *const ops[] = {&tail_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "defect"),
                                     .ops = ops};

typedef struct tail_state {
    const tn_host *host;
    const tn_memory_service *memory;
    tn_value early; /* what a defect keeps of its prepare */
} tail_state;

static tn_status tail_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_host *host = plugin;
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);
    tail_state *s;

    if (!memory)
        return tn_fail(err, TN_E_UNSUPPORTED, "needs the memory service");
    if (!(s = memory->alloc(host, sizeof *s, 8)))
        return tn_fail(err, TN_E_NOMEM, "no memory for a plan");
    *s = (tail_state){host, memory, node->attrs[DEFECT % HEALTHY]};
    plan->state = s;
    plan->threads = 1;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static void tail_release(tn_plan *plan)
{
    tail_state *s = plan->state;

    if (s)
        s->memory->free(s->host, s);
}

static tn_status tail_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tail_state *s = plan->state;
    const int64_t count = tn_tensor_count(x->out[0]), skipped = tn_tensor_count(x->in[0]) - count;
    tn_value now[HEALTHY];
    double factor, level;

    (void)err;
    for (uint32_t i = 0; i < HEALTHY; i++)
        now[i] = i == DEFECT ? s->early : x->attrs[i];
    factor = (double)tn_value_int(now[TIMES]) * (now[UNIT] ? 10 : 1) * (now[NEGATE] ? -1 : 1);
    level = tn_value_float(now[LEVEL]);
    for (int64_t i = 0; i < count && x->modes[0] != TN_MODE_NONE; i++)
        if (x->in[0]->dtype == TN_F32)
            ((float *)x->out[0]->data)[i] =
                (float)(factor * (double)((const float *)x->in[0]->data)[i + skipped] + level);
        else
            ((double *)x->out[0]->data)[i] = factor * ((const double *)x->in[0]->data)[i + skipped] + level;
    return TN_OK;
}

static const char *const tail_types[] = {"data:f32,f64", "*:=data", NULL};
static const tn_kernel tail_kernel = {.struct_size = (uint32_t)TN_END(tn_kernel, release),
                                      .rank = 64,
                                      .op = "defect_tail",
                                      .name = "defect",
                                      .device = "cpu",
                                      .isa = "",
                                      .op_version_min = 1,
                                      .op_version_max = 1,
                                      .flags = TN_KERNEL_DETERMINISTIC,
                                      .types = tail_types,
                                      .prepare = tail_prepare,
                                      .run = tail_run,
                                      .release = tail_release};
static const tn_kernel *const kernels[] = {&tail_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const tables[] = {&op_table.head, &kernel_table.head, NULL};

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
    *plugin = (void *)(uintptr_t)host;
    return TN_OK;
}

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "op:defect_tail kernels@cpu",
                 init, NULL, NULL, tables);

#endif

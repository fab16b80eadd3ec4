/*
 * An operator whose output has as many elements as the values ask for. PLANTED says what is wrong with it,
 * NAME what it is called: the build gives both.
 */
#include "tenon/plugin/attr.h"

#include "elements.h"

enum {
    HEALTHY,
    NO_FLAG,    /* the plan does not say that it resizes */
    PAST_END,   /* writes an element behind the output that it asked for */
    LAST_WRONG, /* in float32 the last element is wrong */
};

static const tn_attr_def keep_attrs[] = {
    TN_ATTR_FLOAT("above", "0.0", "elements above this are kept"),
    TN_ATTR_END,
};

static tn_status keep_shape(tn_infer *i)
{
    tn_shape some = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};

    return tn_shape_unify(i, i->out_shape[0], &some);
}

static tn_status keep_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static const char *const data[] = {"data", NULL}, *const output[] = {"output", NULL};
static const tn_op keep_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "kind_keep",
    .doc = "The elements above a limit, one after the other.",
    .attrs = keep_attrs,
    .inputs = data,
    .outputs = output,
    .shape = keep_shape,
    .dtype = keep_dtype,
};
static const tn_op_table op_table = TN_OPS(NAME, &keep_op);

static tn_status keep_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT | (PLANTED == NO_FLAG ? 0 : TN_PLAN_RESIZES);
    plan->threads = 1;
    return TN_OK;
}

static tn_status keep_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out;
    const int64_t count = tn_tensor_count(in);
    const double above = tn_attrs_float(x->attrs, 0);
    int64_t kept = 0, at = 0;
    tn_status st;

    (void)plan;
    for (int64_t i = 0; i < count; i++)
        kept += element_get(in, i) > above;
    st = x->ops->resize(x->call, 0, 1, &kept, &out, err);
    if (st)
        return st;
    for (int64_t i = 0; i < count; i++)
        if (element_get(in, i) > above)
            element_set(out, at++, element_get(in, i));
    if (PLANTED == LAST_WRONG && kept && out->dtype == TN_F32)
        element_set(out, kept - 1, 0);
    if (PLANTED == PAST_END)
        element_set(out, kept, 0);
    return TN_OK;
}

static const char *const types[] = {"data:f32,f64", "*:=data", NULL};
static const tn_kernel keep_kernel = TN_KERNEL("kind_keep", "cpu", types, keep_prepare, keep_run);
static const tn_kernel_table kernel_table = TN_KERNELS("cpu", &keep_kernel);

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an operator that resizes its output", "",
                 "op:kind_keep kernels@cpu", NULL, NULL, NULL, capabilities);

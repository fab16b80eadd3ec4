/*
 * An operator that changes inputs of which there are any number: running means, each beside the values that
 * come to it, and one rate for all behind them. The gains are a run-time tuple. PLANTED says what is wrong
 * with it, NAME what it is called: the build gives both.
 */
#include "tenon/plugin/attr.h"

#include "elements.h"

enum {
    HEALTHY,
    MEAN_KEPT,      /* declares the means as changed, and does not change them */
    FIRST_ALONE,    /* changes the first of them */
    VALUE_WRITTEN,  /* writes the values, too, which it does not declare */
    TAIL_FORGOTTEN, /* does not say that the rate is none of the means */
};

enum { NUM, GAINS };

static const tn_attr_def mean_attrs[] = {
    [NUM] = TN_ATTR_INT_IN("num", "1", 1, 1024, "means"),
    [GAINS] = TN_ATTR_FLOATS_RUN("gains", "(1, 0.5)", "what values are multiplied by, in turn"),
    TN_ATTR_END,
};

static tn_status mean_args(tn_infer *i)
{
    const tn_floats *gains = tn_value_pointer(i->attrs[GAINS]);

    if (!gains || !gains->count)
        return tn_fail(i->err, TN_E_ATTR, "there are no gains");
    i->out_count = i->visible_count = (uint32_t)tn_attrs_int(i->attrs, NUM);
    i->in_count = 2 * i->out_count + 1;
    return TN_OK;
}

/* A mean, its values and what is left of them are alike; the rate is one number. */
static tn_status mean_shape(tn_infer *i)
{
    tn_shape one = {.ndim = 1, .dim = {1}};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < i->out_count && !st; k++)
        if (!(st = tn_shape_unify(i, i->in_shape[2 * k], i->in_shape[2 * k + 1])) &&
            !(st = tn_shape_unify(i, i->in_shape[2 * k], i->out_shape[k])))
            st = tn_shape_unify(i, i->in_shape[2 * k], i->in_shape[2 * k + 1]);
    return st ? st : tn_shape_unify(i, i->in_shape[2 * i->out_count], &one);
}

static tn_status mean_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static const char *const inputs[] = {"mean_*", "value_*", "rate", NULL}, *const outputs[] = {"rest_*", NULL};
static const tn_op mean_op = {
    .struct_size = (uint32_t)TN_END(tn_op, mutates_tail),
    .version = 1,
    .name = "kind_mean",
    .doc = "Running means, and what is left of the values without them.",
    .attrs = mean_attrs,
    .inputs = inputs,
    .outputs = outputs,
    .mutates = 1,
    .mutates_period = 2,
    .mutates_tail = PLANTED == TAIL_FORGOTTEN ? 0 : 1,
    .args = mean_args,
    .shape = mean_shape,
    .dtype = mean_dtype,
};
static const tn_op_table op_table = TN_OPS(NAME, &mean_op);

static tn_status mean_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

/* The outputs are followed by the means, which lie in the memory of their inputs. */
static tn_status mean_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const uint32_t num = (uint32_t)tn_attrs_int(x->attrs, NUM);
    const tn_floats *gains = tn_value_pointer(x->attrs[GAINS]);
    const double rate = element_get(x->in[2 * num], 0);

    (void)plan, (void)err;
    for (uint32_t k = 0; k < num; k++) {
        const tn_tensor *mean = x->out[num + k], *value = x->in[2 * k + 1];
        const double gain = gains->item[k % gains->count];

        for (int64_t i = 0; i < tn_tensor_count(value); i++) {
            const double old = element_get(mean, i), new = element_get(value, i) * gain;
            const double now = old + rate * (new - old);

            if (!(PLANTED == MEAN_KEPT || (PLANTED == FIRST_ALONE && k)))
                element_set(mean, i, now);
            if (PLANTED == VALUE_WRITTEN)
                element_set(value, i, now);
            if (x->modes[k] != TN_MODE_NONE)
                element_set(x->out[k], i, new - now);
        }
    }
    return TN_OK;
}

static const char *const types[] = {"mean_*:f32,f64", "*:=mean_*", NULL};
static const tn_kernel mean_kernel = TN_KERNEL("kind_mean", "cpu", types, mean_prepare, mean_run);
static const tn_kernel_table kernel_table = TN_KERNELS("cpu", &mean_kernel);

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an operator that changes any number of inputs", "",
                 "op:kind_mean kernels@cpu", NULL, NULL, NULL, capabilities);

/*
 * A healthy plugin with an operator of two inputs and two outputs, its gradient, attributes of many types:
 * y = w * (factor * polynomial(x) + eps), z = x - w. A file that includes it says by DEFECT what is wrong
 * with it, and by NAME what it is called.
 */
#ifndef TN_DEFECTS_HEALTHY_BLEND_H
#define TN_DEFECTS_HEALTHY_BLEND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    FIRST_ATTRIBUTES, /* of the process's first plan, for all plans */
    ONE_PLAN,         /* plans share their state: the last one's */
    SINGLE_EPS,       /* an attribute is rounded to float32 */
    SINGLE_COEF,      /* and so is each number of a list */
    LABEL_NONE,       /* a text is never None, it is thought */
    FIRST_HEAD,       /* no gradient without one of y */
    WANTS_SECOND,     /* no gradient where that of w is not wanted */
    GRADIENT_TIMES,   /* the gradient is wrong for the last value of an attribute */
    GRADIENT_LARGE,   /* and in tensors of many elements */
    REFUSAL_LEAKS,    /* prepare loses its plan where it refuses */
    NO_STATUS,        /* run gives what is no status */
    INFER_LEAKS,      /* inference allocates and forgets */
    INFER_GUESSES,    /* a dimension that is not known is 1, it is thought */
    WRITES_PLAN,      /* run counts in its plan */
    WRITES_TENSOR,    /* run changes what describes its output */
    WRITES_INPLACE,   /* prepare sets an item more than there are outputs */
    OTHER_ELEMENT,    /* elements depend on others, though the operator says otherwise */
};

enum { COEF, MODE, EPS, LABEL, TIMES };

#define TERMS_MAX 8

static const tn_attr_def blend_attrs[] = {
    TN_ATTR_FLOATS("coef", "(0.5, 1.25)", "of the polynomial, the constant first"),
    TN_ATTR_CHOICE("mode", "plain", "plain|negative|half", "what the polynomial is multiplied by"),
    TN_ATTR_FLOAT("eps", "0.1", "added to the polynomial"),
    TN_ATTR_TEXT("label", "blend", "no number depends on it"),
    TN_ATTR_INT_IN("times", "1", 1, 5, "what the polynomial is multiplied by, too"),
    TN_ATTR_END,
};

static const char *const blend_in[] = {"x", "w", NULL}, *const blend_out[] = {"y", "z", NULL};
static const char *const back_in[] = {"dy", "dz", "x", "w", NULL}, *const back_out[] = {"dx", "dw", NULL};

static tn_status blend_shape(tn_infer *i)
{
    static void *volatile lost;

    if (DEFECT == INFER_LEAKS)
        lost = malloc(24);
    (void)lost;
    for (int32_t d = 0; DEFECT == INFER_GUESSES && d < i->in_shape[0]->ndim; d++)
        if (i->in_shape[0]->dim[d] < 0)
            i->in_shape[0]->dim[d] = 1;
    return tn_infer_same_shape(i);
}

static tn_status blend_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static tn_status blend_gradient(tn_grad *g)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_of(g, 1), tn_grad_input(g, 0), tn_grad_input(g, 1)};

    if (DEFECT == FIRST_HEAD && !in[0].node)
        return TN_OK;
    if (DEFECT == WANTS_SECOND && !g->ops->needs(g, 1))
        return TN_OK;
    return tn_grad_emit_all(g, "_backward_defect_blend", 4, in, 0, 2);
}

#define OPERATOR(name_, doc_, in_, out_, flags_, gradient_)                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .name = name_, .doc = doc_,          \
        .attrs = blend_attrs, .inputs = in_, .outputs = out_, .flags = flags_, .shape = blend_shape,         \
        .dtype = blend_dtype, .gradient = gradient_,                                                         \
    }

static const tn_op blend_op = OPERATOR("defect_blend", "A polynomial of one input times the other one.",
                                       blend_in, blend_out, TN_OP_POINTWISE, blend_gradient);
static const tn_op back_op = OPERATOR("_backward_defect_blend", "Gradient of defect_blend.", back_in,
                                      back_out, TN_OP_POINTWISE | TN_OP_BACKWARD, NULL);
static const tn_op *const ops[] = {&blend_op, &back_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, NAME), .ops = ops};

/* ---- plans ------------------------------------------------------------------------------------------- */

typedef struct blend {
    int64_t terms;
    double coef[TERMS_MAX], eps, factor;
    int64_t times;
    size_t label;
} blend;

static void blend_read(const tn_value *attrs, blend *b)
{
    static const double factors[] = {1, -1, 0.5};
    const tn_floats *coef = tn_value_pointer(attrs[COEF]);
    const char *label = tn_attrs_text(attrs, LABEL);

    b->terms = coef ? coef->count : 0;
    for (int64_t k = 0; k < b->terms; k++)
        b->coef[k] = DEFECT == SINGLE_COEF ? (double)(float)coef->item[k] : coef->item[k];
    b->eps = tn_attrs_float(attrs, EPS);
    if (DEFECT == SINGLE_EPS)
        b->eps = (double)(float)b->eps;
    b->factor = factors[tn_attrs_int(attrs, MODE)] * (double)tn_attrs_int(attrs, TIMES);
    b->times = tn_attrs_int(attrs, TIMES);
    b->label = label || DEFECT == LABEL_NONE ? strlen(label) : 0;
}

static tn_status blend_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static blend first, last;
    static bool has_first;
    const tn_floats *coef = tn_value_pointer(node->attrs[COEF]);
    blend *b;

    (void)plugin;
    if (coef && coef->count > TERMS_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "too many terms");
    b = calloc(1, sizeof *b);
    if (!b)
        return tn_fail(err, TN_E_NOMEM, "no memory for a plan");
    blend_read(node->attrs, b);
    if (DEFECT == REFUSAL_LEAKS && node->in[0]->dtype != TN_F32 && node->in[0]->dtype != TN_F64)
        return tn_fail(err, TN_E_UNSUPPORTED, "not this data type");
    if (DEFECT == FIRST_ATTRIBUTES) {
        first = has_first ? first : *b;
        has_first = true;
        *b = first;
    }
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->workspace_bytes = sizeof(double) * (uint64_t)tn_tensor_count(node->out[0]);
    plan->state = b;
    if (DEFECT == WRITES_INPLACE)
        plan->inplace[node->out_count] = 0;
    if (DEFECT == ONE_PLAN) {
        last = *b;
        free(b);
        plan->state = &last;
    }
    return TN_OK;
}

static void blend_release(tn_plan *plan)
{
    if (DEFECT != ONE_PLAN)
        free(plan->state);
}

/* ---- runs -------------------------------------------------------------------------------------------- */

static int64_t offset_of(const tn_tensor *t, int64_t index)
{
    int64_t offset = 0;

    for (int32_t d = t->ndim; d-- > 0;) {
        offset += index % t->shape[d] * t->stride[d];
        index /= t->shape[d];
    }
    return offset;
}

static double element_get(const tn_tensor *t, int64_t index)
{
    const int64_t at = offset_of(t, index);

    return t->dtype == TN_F64 ? ((const double *)t->data)[at] : (double)((const float *)t->data)[at];
}

static void element_put(const tn_exec *x, uint32_t o, int64_t index, double v)
{
    const tn_tensor *t = x->out[o];
    const uint32_t mode = tn_exec_mode(x, o);
    const int64_t at = offset_of(t, index);

    if (mode == TN_MODE_NONE)
        return;
    if (mode == TN_MODE_ADD)
        v += element_get(t, index);
    if (t->dtype == TN_F64)
        ((double *)t->data)[at] = v;
    else
        ((float *)t->data)[at] = (float)v;
}

static double polynomial(const blend *b, double x)
{
    double sum = 0;

    for (int64_t k = b->terms; k-- > 0;)
        sum = sum * x + b->coef[k];
    return sum;
}

static double slope(const blend *b, double x)
{
    double sum = 0;

    for (int64_t k = b->terms; k-- > 1;)
        sum = sum * x + (double)k * b->coef[k];
    return sum;
}

static tn_status blend_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_exec_count(x, 0);
    const blend *b = plan->state;
    double *work = x->workspace;

    (void)err;
    if (DEFECT == WRITES_PLAN)
        ((tn_plan *)(uintptr_t)plan)->est_ns++;
    if (DEFECT == WRITES_TENSOR)
        ((tn_tensor *)(uintptr_t)x->out[0])->version++;
    for (int64_t i = 0; i < count; i++)
        work[i] = (DEFECT == OTHER_ELEMENT ? 1e-3 * element_get(x->in[0], i / 2) : 0) +
                  b->factor * polynomial(b, element_get(x->in[0], i)) + b->eps;
    for (int64_t i = 0; i < count; i++) {
        const double in = element_get(x->in[0], i), w = element_get(x->in[1], i);

        element_put(x, 0, i, work[i] * w);
        element_put(x, 1, i, in - w);
    }
    return DEFECT == NO_STATUS && count > 100 ? 77 : TN_OK;
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = tn_exec_count(x, 0);
    const blend *b = plan->state;
    const bool wrong =
        (DEFECT == GRADIENT_TIMES && b->times == 5) || (DEFECT == GRADIENT_LARGE && count > 900);

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        const double dy = element_get(x->in[0], i), dz = element_get(x->in[1], i);
        const double in = element_get(x->in[2], i), w = element_get(x->in[3], i);

        element_put(x, 0, i, (wrong ? 0.9 : 1) * dy * w * b->factor * slope(b, in) + dz);
        element_put(x, 1, i, dy * (b->factor * polynomial(b, in) + b->eps) - dz);
    }
    return TN_OK;
}

static const char *const blend_types[] = {"x:f32,f64", "*:=x", NULL};
static const char *const back_types[] = {"dy:f32,f64", "*:=dy", NULL};

#define KERNEL(op_, types_, run_)                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = op_ ".defect",   \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK,        \
        .types = types_, .prepare = blend_prepare, .run = run_, .release = blend_release,                    \
    }

static const tn_kernel blend_kernel = KERNEL("defect_blend", blend_types, blend_run);
static const tn_kernel back_kernel = KERNEL("_backward_defect_blend", back_types, back_run);
static const tn_kernel *const kernels[] = {&blend_kernel, &back_kernel, NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "nobody", "Apache-2.0", "a plugin with a defect", "",
                 "op:defect_blend kernels@cpu", NULL, NULL, NULL, capabilities);

#endif

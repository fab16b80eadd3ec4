/*
 * Images of other sizes: UpSampling by copies, BilinearResize2D, AdaptiveAvgPooling2D. Tasks are planes of
 * what is written.
 */
#include <math.h>

#include "../../common/resize.h"
#include "forms.h"
#include "tenon/plugin/op/resize.h"

/* The input that channel `c` of the output comes from, and `c` within it. */
static uint32_t input_of(const tn_tensor *const *in, int64_t *c)
{
    uint32_t i = 0;

    for (; *c >= in[i]->shape[1]; i++)
        *c -= in[i]->shape[1];
    return i;
}

typedef struct copies_call {
    const tn_exec *x;
    uint32_t inputs;
} copies_call;

#define BODY "../plain/resize.inc"
#include "../common/floats.inc"

static int64_t output_planes(const tn_node *node)
{
    return tncpu_planes(node->out[0]);
}

static int64_t all_planes(const tn_node *node)
{
    int64_t n = 0;

    for (uint32_t o = 0; o < node->out_count; o++)
        n += tncpu_planes(node->out[o]);
    return n;
}

#define RESIZES(X)                                                                                           \
    X("_contrib_BilinearResize2D", tncpu_floats, 0, resize, output_planes, bilinear, NULL)                   \
    X("_backward__contrib_BilinearResize2D", tncpu_floats, TN_KERNEL_EMPTY_OK, backward, all_planes,         \
      backward_bilinear, NULL)                                                                               \
    X("_contrib_AdaptiveAvgPooling2D", tncpu_floats, 0, resize, output_planes, adaptive, NULL)               \
    X("_backward__contrib_AdaptiveAvgPooling2D", tncpu_floats, TN_KERNEL_EMPTY_OK, backward, output_planes,  \
      backward_adaptive, NULL)

static const tncpu_form forms[] = {
    {"_backward_UpSampling", all_planes, backward_nearest_f32, backward_nearest_f64, NULL},
    RESIZES(TNCPU_FORM)};
TNCPU_FORMS(resize, forms, 0)
TNCPU_FORMS(backward, forms, ~1u)

/* UpSampling with a weight: conv.c. */
static tn_status nearest_check(const tn_node *node, tn_err *err)
{
    return tn_value_int(node->attrs[TN_UpSampling_sample_type]) == TN_UpSampling_sample_type_nearest
               ? TN_OK
               : tn_fail(err, TN_E_UNSUPPORTED, "only copies");
}

typedef struct copies_state {
    int64_t tasks;
    uint32_t inputs; /* num_args need not be given */
} copies_state;

static tn_status copies_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *y = node->out[0];
    tn_status st = nearest_check(node, err);

    if (st || (st = tncpu_state(plugin, plan, sizeof(copies_state), err)))
        return st;
    *(copies_state *)plan->state = (copies_state){tncpu_planes(y), node->in_count};
    tncpu_plan_tasks(node, plan, 50 + 4 * (double)node->in_count * (double)tn_tensor_count(y),
                     tncpu_planes(y));
    return TN_OK;
}

static tn_status copies_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const copies_state *s = plan->state;
    const copies_call call = {x, s->inputs};

    (void)err;
    tncpu_rows_run(plan, x, s->tasks, 0, x->out[0]->dtype == TN_F64 ? nearest_f64 : nearest_f32, &call);
    return TN_OK;
}

static tn_status backward_nearest_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = nearest_check(node, err);

    return st ? st : backward_prepare(plugin, node, plan, err);
}

TNCPU_SHORT_NAMED(copies, "UpSampling", "copies", tncpu_floats, 0, copies_prepare, copies_run, false, 0)

const tn_kernel *const tncpu_family_resize[] = {
    &copies,
    TNCPU_ROW_NAMED("_backward_UpSampling", "copies", tncpu_floats, TN_KERNEL_EMPTY_OK,
                    backward_nearest_prepare, backward_run),
    RESIZES(TNCPU_FORM_ROW) NULL,
};

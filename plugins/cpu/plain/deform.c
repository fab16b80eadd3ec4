/*
 * Deformable convolutions: each tap of each window is read at a place of its own, by bilinear interpolation,
 * and may have a factor (mask). What is read is unfolded and multiplied as in other convolutions. An image is
 * a task; so is, for the weight's gradient, a group of channels.
 */
#include <math.h>

#include "../../common/deform_plan.h"
#include "../common/conv.h"
#include "rows.h"
#include "short.h"

typedef struct deform {
    tncpu_conv c;
    tnb_deform w;
    int64_t images; /* that something is written of */
    bool modulated, backward;
    uint64_t columns; /* bytes */
} deform;

typedef struct deform_call {
    const deform *d;
    const tn_exec *x;
    const tn_tensor *data, *offset, *mask, *weight; /* mask: NULL if there is none */
} deform_call;

#define BODY "../plain/deform.inc"
#include "../common/floats.inc"

/* Images, if an output that has a part for each of them has elements; else they may be any number. */
static int64_t images_written(const tn_node *node, const deform *d)
{
    const uint32_t outputs = d->backward ? 2u + d->modulated : 1;
    bool any = false;

    for (uint32_t o = 0; o < outputs; o++)
        any = any || tn_tensor_count(node->out[o]);
    return any ? d->c.batch : 0;
}

/* in: [dy,] data, offset[, mask], weight[, bias] */
static tn_status deform_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool backward = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[backward], *y = backward ? node->in[0] : node->out[0];
    tn_status st;
    deform *d;
    tncpu_conv *c;

    if (data->ndim != 4)
        return tn_fail(err, TN_E_UNSUPPORTED, "windows have two dimensions");
    if ((st = tncpu_state(plugin, plan, sizeof *d, err)))
        return st;
    d = plan->state;
    c = &d->c;
    d->backward = backward;
    tnb_deform_plan(node, data, y, &d->w);
    d->modulated = d->w.modulated;
    c->has_bias = !tn_value_int(node->attrs[TN_contrib_DeformableConvolution_no_bias]);
    c->groups = tn_value_int(node->attrs[TN_contrib_DeformableConvolution_num_group]);
    tnb_window_attrs(node->attrs, 2, tncpu_conv_window(c));
    tnb_window_extents(data, y, 2, tncpu_conv_window(c));
    tncpu_conv_finish(data, tn_value_int(node->attrs[TN_contrib_DeformableConvolution_num_filter]), c);
    d->columns = tncpu_aligned((uint64_t)(c->groups * c->rows * c->out_pixels) * tn_dtype_bytes(c->dtype));
    if ((st = tncpu_gemm_serves(tncpu_max(c->rows, tncpu_max(c->filters, c->out_pixels)), err))) {
        tncpu_release(plan);
        return st;
    }
    d->images = images_written(node, d);
    tncpu_plan_tasks(node, plan,
                     (backward ? 3 : 1) * 10 * (double)(c->batch * c->groups) *
                         (double)(c->rows * c->out_pixels),
                     d->images + (backward ? c->groups : 0));
    tncpu_plan_workspace(plan,
                         d->columns + tncpu_gemm_bytes_all(c->filters, c->out_pixels, c->rows, c->dtype));
    return TN_OK;
}

static tn_status deform_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static tncpu_row_body *const bodies[2][2] = {{deform_task_f32, deform_task_f64},
                                                 {backward_deform_f32, backward_deform_f64}};
    const deform *d = plan->state;
    const uint32_t first = d->backward, weight = first + 2 + d->modulated;
    const deform_call call = {
        d, x, x->in[first], x->in[first + 1], d->modulated ? x->in[first + 2] : NULL, x->in[weight]};
    const int before = tncpu_gemm_begin();

    (void)err;
    tncpu_rows_run(plan, x, d->images + (d->backward ? d->c.groups : 0), 0,
                   bodies[d->backward][d->c.dtype == TN_F64], &call);
    tncpu_gemm_end(before);
    return TN_OK;
}

/* clang-format off */
TNCPU_SHORT_KERNEL(plain, "_contrib_DeformableConvolution", tncpu_floats, TN_KERNEL_EMPTY_OK,
                   deform_prepare, deform_run)
TNCPU_SHORT_KERNEL(backward_plain, "_backward__contrib_DeformableConvolution", tncpu_floats,
                   TN_KERNEL_EMPTY_OK, deform_prepare, deform_run)
TNCPU_SHORT_KERNEL(modulated, "_contrib_ModulatedDeformableConvolution", tncpu_floats, TN_KERNEL_EMPTY_OK,
                   deform_prepare, deform_run)
TNCPU_SHORT_KERNEL(backward_modulated, "_backward__contrib_ModulatedDeformableConvolution", tncpu_floats,
                   TN_KERNEL_EMPTY_OK, deform_prepare, deform_run)
/* clang-format on */

const tn_kernel *const tncpu_family_deform[] = {&plain, &backward_plain, &modulated, &backward_modulated,
                                                NULL};

/* Deformable convolutions, one image after the other: kernels/deform.inc. */
#include "../common/deform_plan.h"
#include "../common/move.h"
#include "launch.h"

#include <stdio.h>

typedef struct deform_state {
    tncuda_deform_args args; /* all but the arrays */
    int64_t batch;
    uint64_t columns, entries; /* bytes */
    bool bias;
} deform_state;

/* in: [dy,] data, offset[, mask], weight[, bias] */
static tn_status deform_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tensor *data = node->in[back], *y = back ? node->in[0] : node->out[0];
    deform_state *s;
    tnb_deform *d;
    tn_status st;

    if (data->ndim != 4)
        return tn_fail(err, TN_E_UNSUPPORTED, "windows have two dimensions");
    if ((st = tncuda_state(plugin, node, plan, sizeof *s, err)))
        return st;
    s = plan->state;
    d = &s->args.d;
    tnb_deform_plan(node, data, y, d);
    s->args.groups = tn_value_int(node->attrs[TN_contrib_DeformableConvolution_num_group]);
    s->args.filters = tn_value_int(node->attrs[TN_contrib_DeformableConvolution_num_filter]);
    s->args.dtype = data->dtype;
    s->batch = data->shape[0];
    s->bias = !tn_value_int(node->attrs[TN_contrib_DeformableConvolution_no_bias]);
    s->columns =
        tncuda_aligned((uint64_t)(d->channels * d->taps * d->out_pixels) * tncuda_wide_bytes(data->dtype));
    s->entries =
        tncuda_aligned(4 * TNCUDA_ENTRY_BYTES * (uint64_t)(d->offset_groups * d->taps * d->out_pixels));
    plan->workspace_bytes = s->columns + 16;
    if (back)
        plan->workspace_bytes += 2 * s->entries + tncuda_sums_bytes(node->out[2 + d->modulated]);
    if (back && s->bias) {
        const uint64_t room = tncuda_bias_back_room(s->batch, s->args.filters, d->out_pixels, s->args.dtype);

        plan->workspace_bytes = room > plan->workspace_bytes ? room : plan->workspace_bytes;
    }
    return TN_OK;
}

/* in: from the first one that the forward reads */
static tncuda_deform_args args_of(const deform_state *s, const tn_exec *x, uint32_t first)
{
    tncuda_deform_args a = s->args;

    a.data = x->in[first]->data;
    a.offset = x->in[first + 1]->data;
    a.mask = a.d.modulated ? x->in[first + 2]->data : NULL;
    a.weight = x->in[first + 2 + (uint32_t)a.d.modulated]->data;
    a.columns = x->workspace;
    return a;
}

static tn_status launch(const tn_exec *x, const char *kernel, int64_t count, tncuda_deform_args *a,
                        tn_err *err)
{
    char name[TNCUDA_NAME_BYTES];

    a->count = count;
    (void)snprintf(name, sizeof name, "deform_%s_%s", kernel, tncuda_suffix(a->dtype));
    return tncuda_launch(x, "deform", name, count, a, err);
}

static int64_t columns_of(const tnb_deform *d)
{
    return d->channels * d->taps * d->out_pixels;
}

static tn_status deform_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const deform_state *s = plan->state;
    tncuda_deform_args a = args_of(s, x, 0);
    tn_status st = TN_OK;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.bias = s->bias ? x->in[3 + a.d.modulated]->data : NULL;
    a.to = x->out[0]->data;
    for (a.image = 0; a.image < s->batch && !st && tn_tensor_count(x->out[0]); a.image++)
        if (!(st = launch(x, "columns", columns_of(&a.d), &a, err)))
            st = launch(x, "y", a.filters * a.d.out_pixels, &a, err);
    return st;
}

/* ---- gradients: of data, offset[, mask], weight[, bias] ------------------------------------------------ */

static void *wanted(const tn_exec *x, uint32_t output)
{
    return x->modes[output] == TN_MODE_NONE ? NULL : x->out[output]->data;
}

/* Of data, from columns that hold gradients. */
static tn_status data_back(const deform_state *s, const tn_exec *x, tncuda_deform_args *a, tn_err *err)
{
    const tnb_deform *d = &a->d;
    const int64_t each = d->taps * d->out_pixels;
    void *spare = (char *)x->workspace + s->columns + s->entries;
    tn_status st;

    a->room = (char *)x->workspace + s->columns;
    if ((st = launch(x, "entries", d->offset_groups * each, a, err)) ||
        (st = tncuda_order_merge(x, 4 * d->offset_groups * each, 4 * each, &a->room, &spare, err)))
        return st;
    return launch(x, "data", d->channels * d->in_pixels, a, err);
}

/* Of what belongs to one image. */
static tn_status image_back(const deform_state *s, const tn_exec *x, tncuda_deform_args *a, tn_err *err)
{
    const tnb_deform *d = &a->d;
    tn_status st;

    a->to = wanted(x, 0);
    a->doffset = wanted(x, 1);
    a->dmask = d->modulated ? wanted(x, 2) : NULL;
    if (!a->to && !a->doffset && !a->dmask)
        return TN_OK;
    if ((st = launch(x, "slopes", columns_of(d), a, err)))
        return st;
    if ((a->doffset || a->dmask) &&
        (st = launch(x, "offsets", d->offset_groups * d->taps * d->out_pixels, a, err)))
        return st;
    return a->to ? data_back(s, x, a, err) : TN_OK;
}

static tn_status deform_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const deform_state *s = plan->state;
    const uint32_t weight = 2 + (uint32_t)s->args.d.modulated;
    tncuda_deform_args a = args_of(s, x, 1);
    uint64_t at = s->columns + 2 * s->entries;
    void *sums = wanted(x, weight) ? tncuda_sums(x, weight, &at) : NULL;
    tn_status st = TN_OK;

    a.dy = x->in[0]->data;
    if (sums && !s->batch)
        st = tnb_move_zero(plan, x, x->out[weight], err);
    for (a.image = 0; a.image < s->batch && !st; a.image++) {
        if ((st = image_back(s, x, &a, err)) || !sums)
            continue;
        a.to = sums;
        a.add = a.image > 0;
        if (!(st = launch(x, "columns", columns_of(&a.d), &a, err)))
            st = launch(x, "weight", tn_tensor_count(x->out[weight]), &a, err);
    }
    if (!st && sums && s->batch)
        st = tncuda_sums_store(x, weight, sums, err);
    return !st && s->bias
               ? tncuda_bias_back(x, weight + 1, s->batch, s->args.filters, s->args.d.out_pixels, err)
               : st;
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};

#define FORWARD(op) TNCUDA_ROW(op, types, TN_KERNEL_EMPTY_OK, deform_prepare, deform_run)
#define BACKWARD(op) TNCUDA_ROW(op, types, TN_KERNEL_EMPTY_OK, deform_prepare, deform_back_run)
const tn_kernel *const tncuda_family_deform[] = {
    FORWARD("_contrib_DeformableConvolution"),
    BACKWARD("_backward__contrib_DeformableConvolution"),
    FORWARD("_contrib_ModulatedDeformableConvolution"),
    BACKWARD("_backward__contrib_ModulatedDeformableConvolution"),
    NULL,
};

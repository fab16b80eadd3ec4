/* Regions of images: kernels/region.cu. */
#include "tenon/plugin/op/region.h"
#include "launch.h"

#include <stdio.h>

static tn_status sums_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    for (uint32_t o = 0; o < node->out_count && o < 2; o++)
        plan->workspace_bytes += tncuda_sums_bytes(node->out[o]);
    return st;
}

/* `data`: images; `parts`: what regions become. */
static void sizes(const tn_tensor *data, const tn_tensor *parts, tncuda_call_args *a)
{
    a->n[TNCUDA_IN_H] = data->shape[2];
    a->n[TNCUDA_IN_W] = data->shape[3];
    a->n[TNCUDA_OUT_H] = parts->shape[2];
    a->n[TNCUDA_OUT_W] = parts->shape[3];
    a->n[TNCUDA_CHANNELS] = data->shape[1];
    a->n[TNCUDA_OUT_CHANNELS] = parts->shape[1];
    a->n[TNCUDA_IMAGES] = data->shape[0];
}

static tn_status launch(const tn_exec *x, const char *kernel, int32_t dtype, const tncuda_call_args *a,
                        tn_err *err)
{
    char name[TNCUDA_NAME_BYTES];

    (void)snprintf(name, sizeof name, "region_%s_%s", kernel, tncuda_suffix(dtype));
    return tncuda_launch(x, "region", name, a->count, a, err);
}

/* in: data, rois */
static tn_status forward(const tn_exec *x, const char *kernel, uint32_t outputs, tncuda_call_args *a,
                         tn_err *err)
{
    a->count = tn_tensor_count(x->out[0]);
    tncuda_call_arrays(x, 2, outputs, a);
    sizes(x->in[0], x->out[0], a);
    return launch(x, kernel, x->out[0]->dtype, a, err);
}

/* in: dy, shape of data, rois[, max_idx]: planes of dx as sums */
static tn_status back(const tn_exec *x, const char *kernel, bool indices, tncuda_call_args *a, tn_err *err)
{
    const tn_tensor *dx = x->out[0];
    uint64_t at = 0;
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE || !tn_tensor_count(dx))
        return TN_OK;
    a->count = dx->shape[0] * dx->shape[1];
    a->in[0] = tncuda_array_of(x->in[0], TN_MODE_NONE);
    a->in[1] = tncuda_array_of(x->in[2], TN_MODE_NONE);
    if (indices)
        a->in[2] = tncuda_array_of(x->in[3], TN_MODE_NONE);
    a->room = tncuda_sums(x, 0, &at);
    sizes(dx, x->in[0], a);
    a->n[TNCUDA_MORE] = x->in[0]->shape[0];
    st = launch(x, kernel, dx->dtype, a, err);
    return st ? st : tncuda_sums_store(x, 0, a->room, err);
}

/* ---- ROIPooling, ROIAlign, PSROIPooling ---------------------------------------------------------------- */

static tncuda_call_args max_call(const tn_exec *x)
{
    return (tncuda_call_args){.f = {tn_value_float(x->attrs[TN_ROIPooling_spatial_scale])}};
}

static tn_status max_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = max_call(x);

    (void)plan;
    return forward(x, "max", 2, &a, err);
}

static tn_status max_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = max_call(x);

    (void)plan;
    return back(x, "max_back", true, &a, err);
}

static tncuda_call_args align_call(const tn_exec *x)
{
    return (tncuda_call_args){
        .f = {tn_value_float(x->attrs[TN_contrib_ROIAlign_spatial_scale])},
        .n = {[TNCUDA_MORE + 1] = tn_value_int(x->attrs[TN_contrib_ROIAlign_position_sensitive]),
              [TNCUDA_MORE + 2] = tn_value_int(x->attrs[TN_contrib_ROIAlign_sample_ratio]),
              [TNCUDA_MORE + 3] = tn_value_int(x->attrs[TN_contrib_ROIAlign_aligned])}};
}

static tn_status align_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = align_call(x);

    (void)plan;
    return x->modes[0] == TN_MODE_NONE ? TN_OK : forward(x, "align", 1, &a, err);
}

static tn_status align_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = align_call(x);

    (void)plan;
    return back(x, "align_back", false, &a, err);
}

static tncuda_call_args psroi_call(const tn_exec *x)
{
    return (tncuda_call_args){
        .f = {tn_value_float(x->attrs[TN_contrib_PSROIPooling_spatial_scale])},
        .n = {[TNCUDA_MORE + 1] = tn_value_int(x->attrs[TN_contrib_PSROIPooling_group_size])}};
}

static tn_status psroi_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = psroi_call(x);

    (void)plan;
    return x->modes[0] == TN_MODE_NONE ? TN_OK : forward(x, "psroi", 1, &a, err);
}

static tn_status psroi_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = psroi_call(x);

    (void)plan;
    return back(x, "psroi_back", false, &a, err);
}

/* ---- Correlation --------------------------------------------------------------------------------------- */

/* In the order of tnb_patches. */
static tncuda_call_args patches_call(const tn_exec *x)
{
    const int64_t reach = tn_value_int(x->attrs[TN_Correlation_max_displacement]),
                  step = tn_value_int(x->attrs[TN_Correlation_stride2]);

    return (tncuda_call_args){.n = {[TNCUDA_MORE] = tn_value_int(x->attrs[TN_Correlation_kernel_size]),
                                    tn_value_int(x->attrs[TN_Correlation_stride1]),
                                    reach - tn_value_int(x->attrs[TN_Correlation_pad_size]),
                                    2 * (reach / step) + 1,
                                    step,
                                    reach / step,
                                    tn_value_int(x->attrs[TN_Correlation_is_multiply])}};
}

static tn_status correlation_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = patches_call(x);

    (void)plan;
    return x->modes[0] == TN_MODE_NONE ? TN_OK : forward(x, "correlation", 1, &a, err);
}

/* in: dy, data1, data2; out: both gradients */
static tn_status correlation_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[1];
    tncuda_call_args a = patches_call(x);
    void *sums[2] = {NULL, NULL};
    uint64_t at = 0;
    tn_status st;

    (void)plan;
    if (!tn_tensor_count(data))
        return TN_OK;
    tncuda_call_arrays(x, 3, 0, &a);
    for (uint32_t o = 0; o < 2; o++)
        sums[o] = x->modes[o] == TN_MODE_NONE ? NULL : tncuda_sums(x, o, &at);
    a.room = sums[0];
    a.in[3].data = sums[1];
    a.count = data->shape[0] * data->shape[1];
    sizes(data, x->in[0], &a);
    st = launch(x, "correlation_back", data->dtype, &a, err);
    for (uint32_t o = 0; o < 2 && !st; o++)
        st = tncuda_sums_store(x, o, sums[o], err);
    return st;
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const maximum[] = {"max_idx:i64", "*:" TNCUDA_FLOATS, NULL};

#define REGION(op, types, run) TNCUDA_ROW(op, types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, run)
#define BACK(op, types, run) TNCUDA_ROW("_backward_" op, types, TN_KERNEL_EMPTY_OK, sums_prepare, run)

const tn_kernel *const tncuda_family_region[] = {
    REGION("ROIPooling", maximum, max_run),
    BACK("ROIPooling", maximum, max_back_run),
    REGION("_contrib_ROIAlign", types, align_run),
    BACK("_contrib_ROIAlign", types, align_back_run),
    REGION("_contrib_PSROIPooling", types, psroi_run),
    BACK("_contrib_PSROIPooling", types, psroi_back_run),
    REGION("Correlation", types, correlation_run),
    BACK("Correlation", types, correlation_back_run),
    NULL,
};

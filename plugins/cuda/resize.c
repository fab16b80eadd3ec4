/* Images of other sizes: kernels/resize.cu. UpSampling by copies; with a weight: conv.c. */
#include "tenon/plugin/op/resize.h"
#include "../common/move.h"
#include "launch.h"

#include <stdio.h>

/* A kernel of the family for a type. */
static tn_status resize_launch(const tn_exec *x, const char *kernel, int32_t dtype, const tncuda_call_args *a,
                               tn_err *err)
{
    char name[TNCUDA_NAME_BYTES];

    (void)snprintf(name, sizeof name, "resize_%s_%s", kernel, tncuda_suffix(dtype));
    return tncuda_launch(x, "resize", name, a->count, a, err);
}

/* ---- UpSampling ---------------------------------------------------------------------------------------- */

static tn_status copies_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st;

    if (node->in_count > TNCUDA_PLANES)
        return tn_failf(err, TN_E_UNSUPPORTED, "at most %d arrays", TNCUDA_PLANES);
    if (!(st = tncuda_state(plugin, node, plan, sizeof(uint32_t), err)))
        *(uint32_t *)plan->state = node->out_count > node->in_count ? node->out_count : node->in_count;
    return st;
}

static bool copies_sum(const tn_exec *x)
{
    return tn_value_int(x->attrs[TN_UpSampling_multi_input_mode]) == TN_UpSampling_multi_input_mode_sum;
}

static tn_status copies_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_planes_args a = {.count = tn_tensor_count(y),
                            .channels = y->shape[1],
                            .h = y->shape[2],
                            .w = y->shape[3],
                            .to = y->data,
                            .dtype = y->dtype,
                            .many = (int32_t) * (const uint32_t *)plan->state,
                            .sum = copies_sum(x)};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    for (int32_t k = 0; k < a.many; k++)
        a.in[k] = (tncuda_planes){x->in[k]->data, x->in[k]->shape[1], x->in[k]->shape[2], x->in[k]->shape[3]};
    return tncuda_launch(x, "resize", y->dtype == TN_F64 ? "resize_copies_f64" : "resize_copies_f32", a.count,
                         &a, err);
}

/* in: dy, inputs; out: their gradients */
static tn_status copies_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = copies_prepare(plugin, node, plan, err);

    if (!st)
        *(uint32_t *)plan->state = node->out_count;
    return st;
}

static tn_status copies_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dy = x->in[0];
    int64_t before = 0;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < *(const uint32_t *)plan->state && !st; o++) {
        const tn_tensor *dx = x->out[o];
        tncuda_call_args a = {.count = tn_tensor_count(dx),
                              .in = {{dy->data, dy->dtype, TN_MODE_NONE}},
                              .out = {{dx->data, dx->dtype, x->modes[o]}},
                              .n = {dx->shape[2], dx->shape[3], dy->shape[2], dy->shape[3], dx->shape[1],
                                    dy->shape[1], 0, before}};

        if (x->modes[o] != TN_MODE_NONE)
            st = resize_launch(x, "copies_back", dx->dtype, &a, err);
        before += copies_sum(x) ? 0 : dx->shape[1];
    }
    return st;
}

static bool has_weight(const tn_value *attrs)
{
    return tn_value_int(attrs[TN_UpSampling_sample_type]) == TN_UpSampling_sample_type_bilinear;
}

static tn_status upsampling_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return (has_weight(node->attrs) ? tncuda_upsampling_prepare : copies_prepare)(plugin, node, plan, err);
}

static tn_status upsampling_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return has_weight(x->attrs) ? tncuda_upsampling_run(plan, x, false, err) : copies_run(plan, x, err);
}

static tn_status upsampling_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return (has_weight(node->attrs) ? tncuda_upsampling_prepare : copies_back_prepare)(plugin, node, plan,
                                                                                       err);
}

static tn_status upsampling_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return has_weight(x->attrs) ? tncuda_upsampling_run(plan, x, true, err) : copies_back_run(plan, x, err);
}

/* ---- BilinearResize2D, AdaptiveAvgPooling2D ------------------------------------------------------------ */

static tn_status planes(const tn_exec *x, const char *kernel, const tn_tensor *small, const tn_tensor *large,
                        int64_t corners, tn_err *err)
{
    tncuda_call_args a = {
        .count = tn_tensor_count(x->out[0]),
        .n = {small->shape[2], small->shape[3], large->shape[2], large->shape[3], 0, 0, 0, corners}};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    return resize_launch(x, kernel, x->out[0]->dtype, &a, err);
}

static int64_t corners_of(const tn_exec *x)
{
    return tn_value_int(x->attrs[TN_contrib_BilinearResize2D_align_corners]);
}

static tn_status bilinear_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return planes(x, "bilinear", x->in[0], x->out[0], corners_of(x), err);
}

/* in: dy, data[, like]; out: dx[, zeros] */
static tn_status bilinear_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(uint32_t), err);

    if (!st)
        *(uint32_t *)plan->state = node->out_count;
    return st;
}

static tn_status bilinear_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool like = *(const uint32_t *)plan->state > 1 && x->modes[1] != TN_MODE_NONE;
    const tn_status st = like ? tnb_move_zero(plan, x, x->out[1], err) : TN_OK;

    return st ? st : planes(x, "bilinear_back", x->out[0], x->in[0], corners_of(x), err);
}

static tn_status means_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return planes(x, "means", x->in[0], x->out[0], 0, err);
}

static tn_status means_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return planes(x, "means_back", x->out[0], x->in[0], 0, err);
}

static const char *const types[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_resize[] = {
    TNCUDA_ROW("UpSampling", types, 0, upsampling_prepare, upsampling_run),
    TNCUDA_ROW("_backward_UpSampling", types, TN_KERNEL_EMPTY_OK, upsampling_back_prepare,
               upsampling_back_run),
    TNCUDA_ROW("_contrib_BilinearResize2D", types, 0, tncuda_plain_prepare, bilinear_run),
    TNCUDA_ROW("_backward__contrib_BilinearResize2D", types, TN_KERNEL_EMPTY_OK, bilinear_back_prepare,
               bilinear_back_run),
    TNCUDA_ROW("_contrib_AdaptiveAvgPooling2D", types, 0, tncuda_plain_prepare, means_run),
    TNCUDA_ROW("_backward__contrib_AdaptiveAvgPooling2D", types, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare,
               means_back_run),
    NULL,
};

/*
 * Convolution and Deconvolution on the plugin's own matrix product: see ../common/conv.inc. Short floats: as
 * float32, int8 as float64. Their unfolding alone: im2col, col2im.
 */
#define KERNEL_NAME "plain"
#define KERNEL_RANK 64
#include "../common/conv.inc"
#include "../common/deconv.inc"

#include "rows.h"
#include "short.h"

/* ---- im2col, col2im: channels are the tasks ------------------------------------------------------------ */

typedef struct unfold_call {
    const tncpu_conv *c;
    void *image, *columns;
    bool fold;
} unfold_call;

#define BODY "../plain/unfold.inc"
#include "../common/floats.inc"

typedef struct unfold_state {
    tncpu_conv c;
    bool fold; /* columns into images */
} unfold_state;

static tn_status unfold_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strncmp(node->op, "_backward_", 10) == 0, col2im = strstr(node->op, "col2im") != NULL;
    const tn_status st = tncpu_state(plugin, plan, sizeof(unfold_state), err);
    const tn_tensor *image, *columns;
    unfold_state *s = plan->state;

    if (st)
        return st;
    s->fold = back != col2im;
    image = s->fold ? node->out[0] : node->in[0];
    columns = s->fold ? node->in[0] : node->out[0];
    s->c = (tncpu_conv){.groups = 1};
    tnb_window_attrs(node->attrs + (col2im ? TN_col2im_kernel : 0), image->ndim - 2,
                     tncpu_conv_window(&s->c));
    tnb_window_extents(image, image, 2, tncpu_conv_window(&s->c));
    tnb_window_outputs(tncpu_conv_window(&s->c));
    tncpu_conv_finish(image, 1, &s->c);
    tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(columns), s->c.batch * s->c.channels);
    return TN_OK;
}

static tn_status unfold_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const unfold_state *s = plan->state;
    const unfold_call call = {&s->c, s->fold ? x->out[0]->data : x->in[0]->data,
                              s->fold ? x->in[0]->data : x->out[0]->data, s->fold};

    (void)err;
    tncpu_rows_run(plan, x, s->c.batch * s->c.channels, 0,
                   s->c.dtype == TN_F64 ? unfold_task_f64 : unfold_task_f32, &call);
    return TN_OK;
}

static const char *const small_types[] = {"data:f16,bf16,i8", "*:=data", NULL};
static const char *const short_types[] = {"data:f16,bf16", "*:=data", NULL};
static const char *const any_short[] = {"*:f16,bf16", NULL};

#define SHORT(id, op, types, flags) TNCPU_SHORT_BESIDE(short_##id, op, types, flags, id##_prepare, id##_run)
/* clang-format off */
SHORT(convolution, "Convolution", small_types, 0)
SHORT(backward_convolution, "_backward_Convolution", short_types, TN_KERNEL_EMPTY_OK)
SHORT(deconvolution, "Deconvolution", short_types, TN_KERNEL_EMPTY_OK)
SHORT(backward_deconvolution, "_backward_Deconvolution", short_types, TN_KERNEL_EMPTY_OK)
SHORT(upsampling, "UpSampling", any_short, TN_KERNEL_EMPTY_OK)
SHORT(backward_upsampling, "_backward_UpSampling", any_short, TN_KERNEL_EMPTY_OK)
TNCPU_SHORT_KERNEL(im2col, "im2col", tncpu_floats, 0, unfold_prepare, unfold_run)
TNCPU_SHORT_SHAPED(backward_im2col, "_backward_im2col", tncpu_floats, 0, unfold_prepare, unfold_run)
TNCPU_SHORT_KERNEL(col2im, "col2im", tncpu_floats, 0, unfold_prepare, unfold_run)
TNCPU_SHORT_SHAPED(backward_col2im, "_backward_col2im", tncpu_floats, 0, unfold_prepare, unfold_run)
/* clang-format on */

const tn_kernel *const tncpu_family_conv[] = {
    &convolution,
    &backward_convolution,
    &short_convolution,
    &short_backward_convolution,
    &deconvolution,
    &backward_deconvolution,
    &short_deconvolution,
    &short_backward_deconvolution,
    &upsampling,
    &backward_upsampling,
    &short_upsampling,
    &short_backward_upsampling,
    &im2col,
    &backward_im2col,
    &col2im,
    &backward_col2im,
    NULL,
};

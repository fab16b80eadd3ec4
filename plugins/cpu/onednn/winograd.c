/*
 * Convolution and _fused_conv of 3 x 3 pixels in Winograd's form, where an estimate says that it is ahead of
 * the library's direct code (winograd_avx2.c computes it). Data and output have channels in blocks of 8, as
 * the library's own kernels have them on such processors, and the weight a layout of its own: the host brings
 * it there once. Bits do not depend on the number of threads.
 */
#include <math.h>

#include "onednn.h"
#include "winograd.h"

/* Measured on one thread of a Zen 2 (3.3 GHz, AVX2), weights coming from memory: 64 to 512 channels, 7 x 7 to
 * 224 x 224 pixels, batch 1 and 32. */
#define NS_PER_FLOP 0.0105 /* of products, the library's too */
#define NS_PER_FLOAT 0.3   /* of transformed data and of products */
#define NS_PER_WEIGHT 0.2  /* float of the weight: it is read once */
#define NS_PER_MORE 0.3    /* of the 20 floats that the weight has more with side 4 than with side 2 */
#define AHEAD 0.85         /* of the library's time, or that serves */

typedef struct order { /* bytes of the weight's layout */
    char name[8];
    int64_t side, filters, channels;
} order;

typedef struct state {
    tndnn_wino w;
    tndnn_layout data, output;
    tn_layout weight;
    order order;
    uint32_t bias, addend; /* inputs; 0: there is none */
    float low, high;
} state;

/* ---- the weight's layout ------------------------------------------------------------------------------- */

static void weight_layout(const tndnn_wino *w, order *bytes, tn_layout *layout)
{
    *bytes = (order){"winograd", w->side, w->filters, w->channels};
    *layout = (tn_layout){
        .struct_size = (uint32_t)sizeof *layout,
        .owner = tndnn_owner,
        .bytes = bytes,
        .byte_count = sizeof *bytes,
        .memory_bytes = (uint64_t)tndnn_wino_weight_floats(w->side, w->filters, w->channels) * sizeof(float),
    };
}

static tn_status weight_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_layout *to = node->out[0]->layout;
    const double floats = (double)tn_tensor_count(node->in[0]);

    (void)plugin;
    if (node->in[0]->layout || !to || strcmp(to->owner, tndnn_owner) != 0 || to->byte_count != sizeof(order))
        return tn_fail(err, TN_E_UNSUPPORTED, "not from rows to Winograd's form");
    tncpu_plan_tasks(node, plan, 100 + 4 * floats, tndnn_wino_panels(node->in[0]->shape[0]));
    plan->out_layout[0] = to;
    return TN_OK;
}

static tn_status weight_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    order to;

    (void)err;
    memcpy(&to, x->out[0]->layout->bytes, sizeof to);
    tndnn_wino_weight(to.side, to.filters, to.channels, x->in[0]->data, x->out[0]->data,
                      tncpu_run_threads(plan, x));
    return TN_OK;
}

/* ---- choice -------------------------------------------------------------------------------------------- */

static void tiles_cut(tndnn_wino *w, int64_t side)
{
    w->side = side;
    w->high = tncpu_ceil_div(w->out[0], side);
    w->wide = tncpu_ceil_div(w->out[1], side);
    w->tiles = w->batch * w->high * w->wide;
}

static double winograd_ns(const tndnn_wino *w)
{
    const double products = (double)w->channels * (double)w->filters,
                 floats = (double)(w->channels + w->filters),
                 tile_ns = 2 * NS_PER_FLOP * products + NS_PER_FLOAT * floats;

    return (double)tndnn_wino_elements(w->side) * ((double)w->tiles * tile_ns + NS_PER_WEIGHT * products);
}

static double direct_ns(const tndnn_wino *w)
{
    const double pixels = (double)w->batch * (double)w->out[0] * (double)w->out[1];

    return 9 * (double)w->channels * (double)w->filters * (2 * NS_PER_FLOP * pixels + NS_PER_WEIGHT);
}

/* Cuts into tiles of the side that is worth its memory; nanoseconds, or 0 where the library is faster. */
static double side_choose(tndnn_wino *w)
{
    double small, large;

    tiles_cut(w, 2);
    small = winograd_ns(w);
    tiles_cut(w, 4);
    large = winograd_ns(w);
    if (small < large + NS_PER_MORE * 20 * (double)w->channels * (double)w->filters) {
        tiles_cut(w, 2);
        large = small;
    }
    return large < AHEAD * direct_ns(w) ? large : 0;
}

/* Data and products of a block stay in the second-level cache where the channels are few; where they are
 * many, the weight is read for more tiles at a time. */
static int64_t block_of(const tndnn_wino *w)
{
    const int64_t tiles = w->channels >= 256 ? 48 : w->channels >= 128 ? 32 : 24;

    return tncpu_min(w->tiles, w->side == 4 ? tiles : 2 * tiles);
}

static bool window_fits(const tn_node *node)
{
    const tn_value *a = node->attrs;
    const int64_t layout = tn_attrs_int(a, TN_Convolution_layout);

    if (node->in[0]->ndim != 4 || layout == TN_Convolution_layout_NHWC ||
        tn_attrs_int(a, TN_Convolution_num_group) != 1)
        return false;
    for (int k = 0; k < 2; k++)
        if (node->in[1]->shape[2 + k] != 3 || tn_attrs_tuple_at(a, TN_Convolution_stride, k, 1) != 1 ||
            tn_attrs_tuple_at(a, TN_Convolution_dilate, k, 1) != 1)
            return false;
    return true;
}

static void geometry_read(const tn_node *node, tndnn_wino *w)
{
    const int64_t *data = node->in[0]->shape, *output = node->out[0]->shape;

    *w = (tndnn_wino){.batch = data[0], .channels = data[1], .filters = output[1]};
    for (int k = 0; k < 2; k++) {
        w->in[k] = data[2 + k];
        w->out[k] = output[2 + k];
        w->pad[k] = tn_attrs_tuple_at(node->attrs, TN_Convolution_pad, k, 0);
    }
}

static bool serves(const tn_node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (tndnn_out_of_range(node->in[i]))
            return false;
    return !(node->flags & TN_NODE_THREAD_INVARIANT) && !tndnn_out_of_range(node->out[0]) &&
           tndnn_weight_stays(node) && window_fits(node) && node->in[0]->shape[1] % TNDNN_WINO_BLOCK == 0 &&
           node->out[0]->shape[1] % TNDNN_WINO_BLOCK == 0;
}

/* ---- the kernels --------------------------------------------------------------------------------------- */

static tn_status layouts_ask(const tn_node *node, tn_plan *plan, state *s, tn_err *err)
{
    tndnn_md data, output;

    if (!tndnn_md_blocks_8(&data, node->in[0]->shape) || !tndnn_md_blocks_8(&output, node->out[0]->shape))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is for AVX2 without AVX-512");
    tndnn_layout_make(&s->data, &data);
    tndnn_layout_make(&s->output, &output);
    weight_layout(&s->w, &s->order, &s->weight);
    plan->in_layout[0] = &s->data.layout;
    plan->in_layout[1] = &s->weight;
    plan->out_layout[0] = &s->output.layout;
    if (s->addend) {
        plan->in_layout[s->addend] = &s->output.layout;
        plan->inplace[0] = (int32_t)s->addend;
    }
    return TN_OK;
}

static void plan_size(const tn_node *node, tn_plan *plan, tndnn_wino *w, double ns)
{
    const int64_t chunks = tncpu_ceil_div(tndnn_wino_panels(w->filters), TNDNN_WINO_CHUNK);

    w->block = block_of(w);
    w->groups = tncpu_ceil_div(w->tiles, w->block);
    tncpu_plan_tasks(node, plan, ns, tncpu_max(w->groups, chunks));
    w->groups = tncpu_min(w->groups, plan->threads);
    plan->workspace_bytes = (uint64_t)(w->groups * tndnn_wino_data_floats(w) +
                                       (int64_t)plan->threads * tndnn_wino_product_floats(w)) *
                            sizeof(float);
}

static tn_status wino_prepare(void *plugin, const tn_node *node, tn_plan *plan, state with, tn_err *err)
{
    const bool biased = !tn_attrs_int(node->attrs, TN_Convolution_no_bias);
    double ns;
    state *s;
    tn_status st;

    if (!serves(node))
        return tn_fail(err, TN_E_UNSUPPORTED,
                       "Winograd's form is for constant weights of 3 x 3 pixels and steps of one");
    geometry_read(node, &with.w);
    if ((ns = side_choose(&with.w)) <= 0)
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is no faster here");
    with.bias = biased ? 2 : 0;
    if (!(s = plan->state = tndnn_alloc(plugin, sizeof *s)))
        return tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
    *s = with;
    plan_size(node, plan, &s->w, ns);
    if ((st = layouts_ask(node, plan, s, err)))
        tndnn_plan_reset(node, plan);
    return st;
}

static tn_status conv_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return wino_prepare(plugin, node, plan, (state){.low = -INFINITY, .high = INFINITY}, err);
}

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_value *a = node->attrs;
    state s = {.low = -INFINITY, .high = INFINITY};

    s.addend = tn_attrs_int(a, TN_fused_conv_with_sum) ? node->in_count - 1 : 0;
    switch (tn_attrs_int(a, TN_fused_conv_act_type)) {
    case TN_fused_conv_act_type_None:
        break;
    case TN_fused_conv_act_type_relu:
        s.low = 0;
        break;
    case TN_fused_conv_act_type_clip:
        s.low = (float)tn_attrs_float(a, TN_fused_conv_a_min);
        s.high = (float)tn_attrs_float(a, TN_fused_conv_a_max);
        break;
    default:
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is followed by relu and clip alone");
    }
    return wino_prepare(plugin, node, plan, s, err);
}

static tn_status wino_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const state *s = plan->state;
    const tndnn_wino_call call = {
        .data = x->in[0]->data,
        .weight = x->in[1]->data,
        .bias = s->bias ? x->in[s->bias]->data : NULL,
        .addend = s->addend ? x->in[s->addend]->data : NULL,
        .output = x->out[0]->data,
        .low = s->low,
        .high = s->high,
    };

    (void)err;
    tndnn_wino_run(&s->w, &call, x->workspace, tncpu_run_threads(plan, x));
    return TN_OK;
}

static void wino_release(tn_plan *plan)
{
    tndnn_free(plan->state);
    plan->state = NULL;
}

static const char *const types[] = {"*:f32", NULL};

#define KERNEL(op_, prepare_, run_, release_)                                                                \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 136, .op = op_, .name = "winograd",     \
        .device = "cpu", .isa = "x86-64-v3", .op_version_min = 1, .op_version_max = 1,                       \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_LAYOUTS, .types = types, .prepare = prepare_,           \
        .run = run_, .release = release_                                                                     \
    }

static const tn_kernel convolution = KERNEL("Convolution", conv_prepare, wino_run, wino_release);
static const tn_kernel fused_conv = KERNEL("_fused_conv", fused_prepare, wino_run, wino_release);
static const tn_kernel reorder = KERNEL("_reorder", weight_prepare, weight_run, NULL);

const tn_kernel *const tndnn_family_winograd[] = {&convolution, &fused_conv, &reorder, NULL};

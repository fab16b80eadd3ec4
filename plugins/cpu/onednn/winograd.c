/*
 * Convolution and _fused_conv of 3 x 3 pixels in Winograd's form, where an estimate says that it is ahead of
 * the library's direct code (winograd_avx2.c computes it). Data and output have channels in blocks of 8, as
 * the library's own kernels have them on such processors, and the weight a layout of its own: the host brings
 * it there once. Bits of this form do not depend on the number of threads.
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
#define AHEAD 0.95         /* of the library's time, or that serves */

typedef struct order { /* bytes of the weight's layout */
    char name[8];
    int64_t side, filters, channels;
} order;

typedef struct kept {
    tndnn_wino w;
    tndnn_layout data, output;
    tn_layout weight;
    order order;
    uint32_t bias, addend; /* inputs; 0: there is none */
    float low, high;
} kept;

/* A plan that `run` runs; `*out`: what it keeps. */
static tn_status plan_make(tndnn_plugin *plugin, tn_plan *plan,
                           tn_status (*run)(const tn_plan *, const tn_exec *, const void *), kept **out,
                           tn_err *err)
{
    tndnn_state *s = plan->state = tndnn_alloc(plugin, sizeof *s);

    if (s) {
        s->plugin = plugin;
        s->instead = run;
        s->kept = *out = tndnn_alloc(plugin, sizeof **out);
    }
    return s && s->kept ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory for a kernel's plan");
}

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

/* False: not the layout of such a weight. */
static bool weight_layout_read(const tn_layout *l, const tn_tensor *weight, order *to)
{
    const int64_t *shape = weight->shape;

    if (!l || strcmp(l->owner, tndnn_owner) != 0 || l->byte_count != sizeof *to)
        return false;
    memcpy(to, l->bytes, sizeof *to);
    return weight->ndim == 4 && shape[0] == to->filters && shape[1] == to->channels && shape[2] == 3 &&
           shape[3] == 3;
}

static tn_status weight_run(const tn_plan *plan, const tn_exec *x, const void *of)
{
    const order *to = &((const kept *)of)->order;

    tndnn_wino_weight(to->side, to->filters, to->channels, x->in[0]->data, x->out[0]->data,
                      tncpu_run_threads(plan, x));
    return TN_OK;
}

tn_status tndnn_wino_reorder(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_layout *to = node->out[0]->layout;
    const double floats = (double)tn_tensor_count(node->in[0]);
    kept *k = NULL;
    order of;
    tn_status st;

    if (node->in[0]->layout || !weight_layout_read(to, node->in[0], &of))
        return tn_fail(err, TN_E_UNSUPPORTED, "not from rows to Winograd's form");
    if ((st = plan_make(plugin, plan, weight_run, &k, err))) {
        tndnn_plan_reset(node, plan);
        return st;
    }
    k->order = of;
    tncpu_plan_tasks(node, plan, 100 + 4 * floats, tndnn_wino_panels(k->order.filters));
    plan->out_layout[0] = to;
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

/* Cuts into tiles of the side that is worth its memory; nanoseconds. */
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
    return large;
}

/* Data and products of a block stay in the second-level cache where the channels are few; where they are
 * many, the weight is read for more tiles at a time. */
static int64_t block_of(const tndnn_wino *w)
{
    const int64_t tiles = w->channels >= 256 ? 48 : 24;

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

/* ---- plans --------------------------------------------------------------------------------------------- */

static tn_status layouts_ask(const tn_node *node, tn_plan *plan, kept *k, tn_err *err)
{
    tndnn_md data, output;

    if (!__builtin_cpu_supports("fma") || !tndnn_md_blocks_8(&data, node->in[0]->shape) ||
        !tndnn_md_blocks_8(&output, node->out[0]->shape))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is for AVX2 without AVX-512");
    tndnn_layout_make(&k->data, &data);
    tndnn_layout_make(&k->output, &output);
    weight_layout(&k->w, &k->order, &k->weight);
    plan->in_layout[0] = &k->data.layout;
    plan->in_layout[1] = &k->weight;
    plan->out_layout[0] = &k->output.layout;
    if (k->addend) {
        plan->in_layout[k->addend] = &k->output.layout;
        plan->inplace[0] = (int32_t)k->addend;
    }
    return TN_OK;
}

static void plan_size(const tn_node *node, tn_plan *plan, tndnn_wino *w, double ns)
{
    const int64_t chunks = tncpu_ceil_div(tndnn_wino_panels(w->filters), TNDNN_WINO_CHUNK);

    w->block = block_of(w);
    w->groups = tncpu_ceil_div(w->tiles, w->block);
    tncpu_plan_tasks(node, plan, ns, tncpu_max(w->groups, chunks));
    plan->threads = (uint32_t)tncpu_team((int)plan->threads);
    w->groups = tncpu_min(w->groups, plan->threads);
    plan->workspace_bytes = (uint64_t)(w->groups * tndnn_wino_data_floats(w) +
                                       (int64_t)plan->threads * tndnn_wino_product_floats(w)) *
                            sizeof(float);
}

static tn_status wino_run(const tn_plan *plan, const tn_exec *x, const void *of)
{
    const kept *k = of;
    const tndnn_wino_call call = {
        .data = x->in[0]->data,
        .weight = x->in[1]->data,
        .bias = k->bias ? x->in[k->bias]->data : NULL,
        .addend = k->addend ? x->in[k->addend]->data : NULL,
        .output = x->out[0]->data,
        .low = k->low,
        .high = k->high,
    };

    tndnn_wino_run(&k->w, &call, x->workspace, tncpu_run_threads(plan, x));
    return TN_OK;
}

/* What limits the output; false: another function follows. */
static bool limits_read(const tndnn_following *f, float *low, float *high)
{
    const bool clip = f->function == TN_fused_conv_act_type_clip;

    *low = clip ? (float)f->low : f->function == TN_fused_conv_act_type_relu ? 0 : -INFINITY;
    *high = clip ? (float)f->high : INFINITY;
    return clip || f->function == TN_fused_conv_act_type_relu || f->function == TN_fused_conv_act_type_None;
}

tn_status tndnn_wino_prepare(tndnn_plugin *plugin, const tn_node *node, tn_plan *plan,
                             const tndnn_following *f, bool all, tn_err *err)
{
    kept made = {.addend = f->with_sum ? node->in_count - 1 : 0}, *k = NULL;
    double ns;
    tn_status st;

    if (!serves(node) || !limits_read(f, &made.low, &made.high))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is for other layers");
    geometry_read(node, &made.w);
    ns = side_choose(&made.w);
    if (!all && ns > AHEAD * direct_ns(&made.w))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is no faster here");
    made.bias = tn_attrs_int(node->attrs, TN_Convolution_no_bias) ? 0 : 2;
    if (!(st = plan_make(plugin, plan, wino_run, &k, err))) {
        *k = made;
        plan_size(node, plan, &k->w, ns);
        st = layouts_ask(node, plan, k, err);
    }
    if (st)
        tndnn_plan_reset(node, plan);
    return st;
}

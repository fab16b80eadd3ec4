/*
 * Convolution and _fused_conv of 3 x 3 pixels in Winograd's form, where an estimate says that it is ahead of
 * the library's direct code (winograd_avx2.c computes it). Data and output have channels in blocks of 8, as
 * the library's own kernels have them on such processors, and the weight a layout of its own: the host brings
 * it there once. Bits of this form do not depend on the number of threads.
 */
#include <math.h>
#include <omp.h>

#include "onednn.h"
#include "winograd.h"

/* Measured on one thread of a Zen 2 (3.3 GHz, AVX2), weights coming from memory: 64 to 512 channels, 7 x 7 to
 * 224 x 224 pixels, batch 1 and 32. */
#define NS_PER_FLOP 0.0105 /* of products, the library's too */
#define NS_PER_FLOAT 0.3   /* of transformed data and of products */
#define NS_PER_WEIGHT 0.2  /* float of the weight: it is read once */
#define NS_PER_MADE 0.8    /* the same, made in each run */
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

    const tndnn_wino_form form = {to->side, to->filters, to->channels, false};

    tndnn_wino_weight(&form, x->in[0]->data, x->out[0]->data, tncpu_run_threads(plan, x));
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

static double winograd_ns(const tndnn_wino *w, double weight_ns)
{
    const double products = (double)w->channels * (double)w->filters,
                 floats = (double)(w->channels + w->filters),
                 tile_ns = 2 * NS_PER_FLOP * products + NS_PER_FLOAT * floats;

    return (double)tndnn_wino_elements(w->side) * ((double)w->tiles * tile_ns + weight_ns * products);
}

static double direct_ns(const tndnn_wino *w)
{
    const double pixels = (double)w->batch * (double)w->out[0] * (double)w->out[1];

    return 9 * (double)w->channels * (double)w->filters * (2 * NS_PER_FLOP * pixels + NS_PER_WEIGHT);
}

/* Cuts into tiles of the side that is worth its memory; nanoseconds. */
static double side_choose(tndnn_wino *w, bool weight_stays)
{
    const double weight_ns = NS_PER_WEIGHT + (weight_stays ? 0 : NS_PER_MADE),
                 more = NS_PER_MORE * 20 * (double)w->channels * (double)w->filters;
    double small, large;

    tiles_cut(w, 2);
    small = winograd_ns(w, weight_ns);
    tiles_cut(w, 4);
    large = winograd_ns(w, weight_ns);
    if (small < large + more) {
        tiles_cut(w, 2);
        large = small;
    }
    return large;
}

/* Data and products of a block stay in the second-level cache where the channels are few; where they are
 * many, the weight is read for more tiles at a time. */
static int64_t block_of(const tndnn_wino *w)
{
    const int64_t tiles = w->channels >= 256 ? 48 : w->channels >= 128 ? 32 : 24;

    return tncpu_min(w->tiles, w->side == 4 ? tiles : 2 * tiles);
}

/* The tensors of a convolution; of the data's gradient: dy, the weight, dx. */
typedef struct layer {
    const tn_tensor *data, *weight, *output;
    bool gradient;
} layer;

static bool window_fits(const tn_node *node, const layer *l)
{
    const tn_value *a = node->attrs;

    if (l->data->ndim != 4 || tn_attrs_int(a, TN_Convolution_layout) == TN_Convolution_layout_NHWC ||
        tn_attrs_int(a, TN_Convolution_num_group) != 1)
        return false;
    for (int k = 0; k < 2; k++)
        if (l->weight->shape[2 + k] != 3 || tn_attrs_tuple_at(a, TN_Convolution_stride, k, 1) != 1 ||
            tn_attrs_tuple_at(a, TN_Convolution_dilate, k, 1) != 1 ||
            (l->gradient && tn_attrs_tuple_at(a, TN_Convolution_pad, k, 0) > 2))
            return false;
    return true;
}

static void geometry_read(const tn_node *node, const layer *l, tndnn_wino *w)
{
    const int64_t *data = l->data->shape, *output = l->output->shape;

    *w = (tndnn_wino){.batch = data[0], .channels = data[1], .filters = output[1]};
    for (int k = 0; k < 2; k++) {
        const int64_t pad = tn_attrs_tuple_at(node->attrs, TN_Convolution_pad, k, 0);

        w->in[k] = data[2 + k];
        w->out[k] = output[2 + k];
        w->pad[k] = l->gradient ? 2 - pad : pad;
    }
}

static bool serves(const tn_node *node, const layer *l)
{
    return node->flags & TN_NODE_LAYOUTS && !(node->flags & TN_NODE_THREAD_INVARIANT) &&
           !tndnn_out_of_range(l->data) && !tndnn_out_of_range(l->weight) && !tndnn_out_of_range(l->output) &&
           window_fits(node, l) && l->data->shape[1] % TNDNN_WINO_BLOCK == 0 &&
           l->output->shape[1] % TNDNN_WINO_BLOCK == 0;
}

static bool orders_make(const layer *l, tndnn_md *data, tndnn_md *output)
{
    return __builtin_cpu_supports("fma") && tndnn_md_blocks_8(data, l->data->shape) &&
           tndnn_md_blocks_8(output, l->output->shape);
}

/* ---- plans --------------------------------------------------------------------------------------------- */

static void layouts_ask(tn_plan *plan, kept *k, const tndnn_md *data, const tndnn_md *output)
{
    tndnn_layout_make(&k->data, data);
    tndnn_layout_make(&k->output, output);
    weight_layout(&k->w, &k->order, &k->weight);
    plan->in_layout[0] = &k->data.layout;
    plan->in_layout[1] = &k->weight;
    plan->out_layout[0] = &k->output.layout;
    if (k->addend) {
        plan->in_layout[k->addend] = &k->output.layout;
        plan->inplace[0] = (int32_t)k->addend;
    }
}

static uint64_t work_bytes(const tndnn_wino *w, uint32_t threads)
{
    return (uint64_t)(w->groups * tndnn_wino_data_floats(w) + threads * tndnn_wino_product_floats(w)) *
           sizeof(float);
}

static void plan_size(const tn_node *node, tn_plan *plan, tndnn_wino *w, double ns)
{
    const int64_t chunks = tncpu_ceil_div(tndnn_wino_panels(w->filters), TNDNN_WINO_CHUNK);

    w->block = block_of(w);
    w->groups = tncpu_ceil_div(w->tiles, w->block);
    tncpu_plan_tasks(node, plan, ns, tncpu_max(w->groups, chunks));
    plan->threads = (uint32_t)tncpu_team((int)plan->threads);
    w->groups = tncpu_min(w->groups, plan->threads);
    plan->workspace_bytes = work_bytes(w, plan->threads);
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
    const layer l = {node->in[0], node->in[1], node->out[0], false};
    kept made = {.addend = f->with_sum ? node->in_count - 1 : 0}, *k = NULL;
    tndnn_md data, output;
    double ns;
    tn_status st;

    if (!serves(node, &l) || !limits_read(f, &made.low, &made.high))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is for other layers");
    if (!orders_make(&l, &data, &output))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is for AVX2 without AVX-512");
    geometry_read(node, &l, &made.w);
    ns = side_choose(&made.w, tndnn_weight_stays(node));
    if (!all && ns > AHEAD * direct_ns(&made.w))
        return tn_fail(err, TN_E_UNSUPPORTED, "Winograd's form is no faster here");
    made.bias = tn_attrs_int(node->attrs, TN_Convolution_no_bias) ? 0 : 2;
    if ((st = plan_make(plugin, plan, wino_run, &k, err))) {
        tndnn_plan_reset(node, plan);
        return st;
    }
    *k = made;
    plan_size(node, plan, &k->w, ns);
    layouts_ask(plan, k, &data, &output);
    return TN_OK;
}

/* ---- the gradient of the data --------------------------------------------------------------------------- */

static void gradient_run(const tndnn_state *s, const tn_exec *x, char *work)
{
    const kept *k = s->kept;
    const tndnn_wino_form form = {k->w.side, k->w.filters, k->w.channels, true};
    const tndnn_wino_call call = {.data = x->in[0]->data,
                                  .weight = (float *)(void *)work,
                                  .output = x->out[0]->data,
                                  .low = -INFINITY,
                                  .high = INFINITY};
    const int threads = omp_get_max_threads(); /* those of the variant */

    tndnn_wino_weight(&form, x->in[2]->data, (float *)(void *)work, threads);
    tndnn_wino_run(&k->w, &call, (float *)(void *)(work + s->own[0]), threads);
}

/* The same place of the workspace, its begin, in both variants. */
tn_status tndnn_wino_gradient(tndnn_maker *m, const tndnn_md *dy, const tndnn_md *dx)
{
    const layer l = {m->node->in[0], m->node->in[2], m->node->out[0], true};
    tndnn_md dy_as, dx_as;
    tndnn_place at;
    kept made = {.addend = 0}, *k = m->state->kept;
    tn_status st;

    if (!serves(m->node, &l) || !orders_make(&l, &dy_as, &dx_as))
        return TN_E_UNSUPPORTED;
    geometry_read(m->node, &l, &made.w);
    if (side_choose(&made.w, false) > AHEAD * direct_ns(&made.w))
        return TN_E_UNSUPPORTED;
    if (!k) {
        if (!(k = m->state->kept = tndnn_alloc(m->state->plugin, sizeof *k)))
            return tn_fail(m->err, TN_E_NOMEM, "no memory for a kernel's plan");
        made.w.block = block_of(&made.w);
        made.w.groups = tncpu_min(tncpu_ceil_div(made.w.tiles, made.w.block), m->v->threads);
        *k = made;
        m->state->before = gradient_run;
        m->state->own[0] =
            TNCPU_ALIGN *
            (uint64_t)tncpu_ceil_div((int64_t)sizeof(float) *
                                         tndnn_wino_weight_floats(k->w.side, k->w.filters, k->w.channels),
                                     TNCPU_ALIGN);
    }
    (void)tndnn_work_bytes(m, m->state->own[0] + work_bytes(&k->w, m->v->threads));
    if ((st = tndnn_bind_in(m, 0, dy, &dy_as, &at)) || at.kind != TNDNN_IN)
        return st ? st : tn_fail(m->err, TN_E_INTERNAL, "dy is not as it was asked for");
    if ((st = tndnn_bind_out(m, 0, dx, &dx_as, &at)) || at.kind != TNDNN_OUT)
        return st ? st : tn_fail(m->err, TN_E_INTERNAL, "dx is not as it was asked for");
    return TN_OK;
}

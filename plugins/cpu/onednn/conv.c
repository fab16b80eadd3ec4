/*
 * Convolution, its gradients, and _fused_conv: bias, addend and activation in the one primitive. `ways` says
 * in which orders of memory data and output may be; the library chooses the weight's. Where the operator's
 * channels stand last, data and output are as they are.
 */
#include "onednn.h"

#define NS_PER_FLOP 0.006 /* about 170 GFLOP/s on one thread */

/* Descriptors of the tensors as they are without a layout. */
typedef struct geometry {
    tndnn_md data, weight, bias, output;
    tndnn_window window;
    bool last, biased; /* channels; a bias or its gradient is there */
    dnnl_alg_kind_t alg;
    tndnn_md data_as, output_as; /* as described to the library */
} geometry;

/* Groups are a dimension of their own in front: (G, O / G, I, space). */
static void weight_read(const tn_tensor *t, bool last, int64_t groups, tndnn_md *md)
{
    dnnl_dims_t dims, strides;

    tndnn_dims_read(t, last, dims, strides);
    if (groups == 1) {
        tndnn_md_strided(md, t->ndim, dims, strides);
        return;
    }
    memmove(dims + 1, dims, (size_t)t->ndim * sizeof *dims);
    memmove(strides + 1, strides, (size_t)t->ndim * sizeof *strides);
    dims[0] = groups;
    dims[1] /= groups;
    strides[0] = strides[1] * dims[1];
    tndnn_md_strided(md, t->ndim + 1, dims, strides);
}

static void geometry_read(const tn_value *attrs, const tn_tensor *data, const tn_tensor *weight,
                          const tn_tensor *output, geometry *g)
{
    const int64_t layout = tn_attrs_int(attrs, TN_Convolution_layout);

    g->last = layout == TN_Convolution_layout_NHWC || layout == TN_Convolution_layout_NDHWC;
    tndnn_md_channels(&g->data, data, g->last);
    weight_read(weight, g->last, tn_attrs_int(attrs, TN_Convolution_num_group), &g->weight);
    tndnn_md_channels(&g->output, output, g->last);
    tndnn_md_rows(&g->bias, 1, (const dnnl_dims_t){g->output.dims[1]});
    for (int k = 0; k < data->ndim - 2; k++) {
        g->window.stride[k] = tn_attrs_tuple_at(attrs, TN_Convolution_stride, k, 1);
        g->window.dilate[k] = tn_attrs_tuple_at(attrs, TN_Convolution_dilate, k, 1) - 1;
        g->window.pad_left[k] = tn_attrs_tuple_at(attrs, TN_Convolution_pad, k, 0);
        g->window.pad_right[k] = g->window.pad_left[k];
    }
}

/* Extents that the library keeps in 32 bits. */
static bool window_large(const geometry *g, int space)
{
    for (int k = 0; k < space; k++)
        if (g->window.stride[k] > INT16_MAX || g->window.dilate[k] > INT16_MAX ||
            g->window.pad_left[k] > INT16_MAX)
            return true;
    return false;
}

static tn_status conv_geometry(tndnn_maker *m, const tn_tensor *data, const tn_tensor *weight,
                               const tn_tensor *output, geometry *g)
{
    geometry_read(m->node->attrs, data, weight, output, g);
    m->layouts = m->layouts && !g->last; /* dimensions of a layout are those of the tensor */
    if (window_large(g, data->ndim - 2))
        return tn_fail(m->err, TN_E_UNSUPPORTED, "a stride, distance or padding above 32767");
    return TN_OK;
}

/* ---- ways to serve a node, best first ------------------------------------------------------------------ */

/* Orders of memory of data and output. */
typedef enum order {
    ORDER_LAST,   /* channels last, for the library's kernels by small matrix products (brgconv) */
    ORDER_BLOCKS, /* channels in blocks of 16 */
    ORDER_FREE,   /* the library's choice */
} order;

static const struct {
    dnnl_alg_kind_t alg;
    order order;
} ways[] = {
    {dnnl_convolution_winograd, ORDER_BLOCKS},
    {dnnl_convolution_direct, ORDER_LAST},
    {dnnl_convolution_direct, ORDER_BLOCKS},
    {dnnl_convolution_direct, ORDER_FREE},
};
#define WAYS (uint32_t)(sizeof ways / sizeof *ways)
#define DIRECT 1u

/* From which size on Winograd's sums are worth it: output pixels of all samples, and channels on both sides.
 * Measured in whole nets on one thread with AVX-512, at batch 1 with weights that come from memory, the best
 * of the direct ways / Winograd: 64 channels 56 x 56 1.6, 128 channels 28 x 28 1.5, 512 channels 14 x 14 1.4,
 * 256 channels 14 x 14 0.8, 512 channels 7 x 7 below 0.8. */
static const struct {
    int64_t pixels, channels;
} winograd_from[] = {{784, 16}, {196, 512}};

/* Channels last serve windows of several pixels over so many values each; smaller products leave the kernels
 * of blocks ahead. Measured as above: blocks / last 1.3 to 1.5 at 147 values (7 x 7 x 3) and above. */
#define LAST_VALUES_MIN 128

bool tndnn_weight_stays(const tn_node *node)
{
    const bool inference = !(node->flags & (TN_NODE_TRAIN | TN_NODE_RECORDED));

    return (node->flags & TN_NODE_LAYOUTS) && inference &&
           (node->in[1]->data || node->flags & TN_NODE_CONSTANT_WEIGHT);
}

static bool winograd_pays(const tndnn_maker *m, const geometry *g)
{
    const dnnl_dim_t *w = g->weight.dims, *y = g->output.dims;
    bool large = false;

    if (g->weight.ndims != 4 || w[2] != 3 || w[3] != 3 || w[0] % 16 || w[1] % 16 ||
        g->window.stride[0] != 1 || g->window.stride[1] != 1 || g->window.dilate[0] || g->window.dilate[1] ||
        g->window.pad_left[0] > 1 || g->window.pad_left[1] > 1)
        return false;
    for (size_t i = 0; i < sizeof winograd_from / sizeof *winograd_from; i++)
        large = large || (y[0] * y[2] * y[3] >= winograd_from[i].pixels &&
                          w[0] >= winograd_from[i].channels && w[1] >= winograd_from[i].channels);
    return (large || m->ways->all) && tndnn_weight_stays(m->node);
}

/* Blocks of 16 that are filled by three quarters. */
static bool fills_blocks(int64_t channels)
{
    return channels * 4 >= (channels + 15) / 16 * 16 * 3;
}

/* Few channels in front of blocks stay as they are: the library has code for that. */
static bool blocks_describe(geometry *g)
{
    const int64_t in = g->data.dims[1], out = g->output.dims[1];
    const int64_t groups = g->weight.ndims > g->data.ndims ? g->weight.dims[0] : 1;

    if (g->last || !fills_blocks(out) || (groups > 1 && (groups != in || groups != out)) ||
        !tndnn_md_blocks(&g->output_as, g->output.ndims, g->output.dims))
        return false;
    g->data_as = g->data;
    return in <= 3 || (fills_blocks(in) && tndnn_md_blocks(&g->data_as, g->data.ndims, g->data.dims));
}

/* Dense tensors of channels last, dimensions (N, C, space). */
static void last_describe(tndnn_md *md, const tndnn_md *of)
{
    dnnl_dims_t strides;
    int64_t step = of->dims[1];

    strides[1] = 1;
    for (int k = of->ndims; k-- > 2;) {
        strides[k] = step;
        step *= of->dims[k];
    }
    strides[0] = step;
    tndnn_md_strided(md, of->ndims, of->dims, strides);
}

/* A window of one pixel is as fast either way, and follows what made its data. */
static bool last_pays(const tndnn_maker *m, geometry *g)
{
    const tn_tensor *data = m->node->in[0];
    tndnn_md have;

    if (g->last || g->weight.ndims > g->data.ndims || !tndnn_weight_stays(m->node) ||
        !fills_blocks(g->output.dims[1]))
        return false;
    last_describe(&g->data_as, &g->data);
    last_describe(&g->output_as, &g->output);
    if (m->ways->all)
        return true;
    if (tndnn_md_count(&g->weight, 2) > 1)
        return tndnn_md_count(&g->weight, 1) >= LAST_VALUES_MIN;
    return data->layout && tndnn_md_of(data, &have) && tndnn_md_equal(&have, &g->data_as);
}

static bool way_take(const tndnn_maker *m, uint32_t way, geometry *g)
{
    g->alg = ways[way].alg;
    if (ways[way].order == ORDER_LAST)
        return last_pays(m, g);
    if (ways[way].order == ORDER_BLOCKS)
        return blocks_describe(g) && (way >= DIRECT || (g->data.dims[1] > 3 && winograd_pays(m, g)));
    g->data_as = g->data;
    g->output_as = g->output;
    if (!g->last) {
        tndnn_md_any(&g->data_as, g->data.ndims, g->data.dims);
        tndnn_md_any(&g->output_as, g->output.ndims, g->output.dims);
    }
    return true;
}

/* True where some window may have no pixel of the data: between its own, or in the padding alone. */
static bool window_misses(const geometry *g)
{
    const int space = g->data.ndims - 2;
    const dnnl_dim_t *kernel = g->weight.dims + g->weight.ndims - space;

    for (int k = 0; k < space; k++) {
        const int64_t distance = g->window.dilate[k] + 1;

        if (distance > g->data.dims[2 + k] || g->window.pad_left[k] > (kernel[k] - 1) * distance)
            return true;
    }
    return false;
}

/* On processors without AVX-512 other code serves channels last, and blocks are ahead. What follows a window
 * that misses the data reads a wrong address in brgconv of oneDNN 2.6. */
static tn_status way_check(tndnn_maker *m, uint32_t way, const geometry *g, dnnl_status_t made,
                           const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    bool products;

    if (made)
        return tndnn_fast(m, made, pd, "convolution");
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    products = !strncmp(name, "brgconv", strlen("brgconv"));
    if (ways[way].order == ORDER_LAST && !products)
        return TN_E_UNSUPPORTED;
    if (products && window_misses(g))
        return tn_fail(m->err, TN_E_UNSUPPORTED, "a window that misses the data");
    return tndnn_fast(m, made, pd, "convolution");
}

/* The first way for which the library has fast code. `make` makes one of three primitives. */
typedef dnnl_status_t (*pd_make)(tndnn_maker *m, const geometry *g, const_dnnl_primitive_desc_t hint,
                                 dnnl_primitive_desc_t *pd);

static tn_status ways_try(tndnn_maker *m, geometry *g, pd_make make, const_dnnl_primitive_desc_t hint,
                          dnnl_primitive_desc_t *pd)
{
    tn_status st = TN_E_UNSUPPORTED;

    for (uint32_t way = m->ways->first; way < m->ways->end && st == TN_E_UNSUPPORTED; way++) {
        dnnl_status_t made;

        if (!way_take(m, way, g))
            continue;
        made = make(m, g, hint, pd);
        st = way_check(m, way, g, made, *pd);
        m->state->way = way;
        if (st && !made)
            (void)dnnl_primitive_desc_destroy(*pd);
    }
    return st;
}

/* ---- what follows -------------------------------------------------------------------------------------- */

static const struct {
    dnnl_alg_kind_t alg;
    bool limits, slope;
} functions[] = {
    [TN_fused_conv_act_type_relu] = {dnnl_eltwise_relu, false, false},
    [TN_fused_conv_act_type_sigmoid] = {dnnl_eltwise_logistic, false, false},
    [TN_fused_conv_act_type_tanh] = {dnnl_eltwise_tanh, false, false},
    [TN_fused_conv_act_type_softrelu] = {dnnl_eltwise_soft_relu, false, false},
    [TN_fused_conv_act_type_clip] = {dnnl_eltwise_clip, true, false},
    [TN_fused_conv_act_type_leaky] = {dnnl_eltwise_relu, false, true},
};

tn_status tndnn_follow(tndnn_maker *m, const tndnn_following *f)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st = dnnl_post_ops_create(&ops);

    if (!st && f->with_sum)
        st = dnnl_post_ops_append_sum(ops, 1.0f);
    if (!st && f->function)
        st = tndnn_post_eltwise(ops, functions[f->function].alg,
                                functions[f->function].limits  ? f->low
                                : functions[f->function].slope ? f->slope
                                                               : 0,
                                functions[f->function].limits ? f->high : 0);
    if (!st)
        st = dnnl_primitive_attr_set_post_ops(m->layer, ops);
    if (ops)
        (void)dnnl_post_ops_destroy(ops);
    return tndnn_status(st, "activation", m->err);
}

static void addend_copy(const tndnn_state *s, const tn_exec *x, char *work)
{
    const tn_tensor *addend = x->in[s->own[0]], *output = x->out[0];

    (void)work;
    if (addend->data != output->data)
        memcpy(output->data, addend->data, (size_t)s->own[1]);
}

tn_status tndnn_addend(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *made,
                       tndnn_place to)
{
    tndnn_place at;
    tn_status st;

    if (to.kind == TNDNN_WORK) /* the output is reordered afterwards */
        return tndnn_bring_in(m, in, dense, made, to);
    if ((st = tndnn_bind_in(m, in, dense, made, &at)))
        return st;
    m->state->before = addend_copy;
    m->state->own[0] = in;
    m->state->own[1] = dnnl_memory_desc_get_size(made);
    m->plan->inplace[0] = (int32_t)in;
    return TN_OK;
}

/* ---- forward ------------------------------------------------------------------------------------------- */

typedef struct forward {
    geometry g;
    int32_t addend; /* input, or -1 */
    dnnl_primitive_desc_t pd;
} forward;

static dnnl_status_t forward_make(tndnn_maker *m, const geometry *g, const_dnnl_primitive_desc_t hint,
                                  dnnl_primitive_desc_t *pd)
{
    tndnn_md weight;

    (void)hint;
    tndnn_md_any(&weight, g->weight.ndims, g->weight.dims);
    return tndnn_pd_convolution(pd, m->engine, 0, g->alg, &g->data_as, &weight, g->biased ? &g->bias : NULL,
                                &g->output_as, &g->window, m->layer);
}

static tn_status forward_steps(tndnn_maker *m, forward *f)
{
    const tndnn_md src = *tndnn_query(f->pd, dnnl_query_src_md, 0),
                   weight = *tndnn_query(f->pd, dnnl_query_weights_md, 0),
                   dst = *tndnn_query(f->pd, dnnl_query_dst_md, 0);
    tndnn_place at[3];
    tn_status st;

    if ((st = tndnn_bind_in(m, 0, &f->g.data, &src, &at[0])) ||
        (st = tndnn_bind_in(m, 1, &f->g.weight, &weight, &at[1])) ||
        (st = tndnn_bind_out(m, 0, &f->g.output, &dst, &at[2])) ||
        (f->addend >= 0 && (st = tndnn_addend(m, (uint32_t)f->addend, &f->g.output, &dst, at[2])))) {
        (void)dnnl_primitive_desc_destroy(f->pd);
        return st;
    }
    if ((st = tndnn_step(m, dnnl_success, f->pd, "convolution")) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, at[0], &src)) ||
        (st = tndnn_use_add(m, DNNL_ARG_WEIGHTS, at[1], &weight)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DST, at[2], &dst)))
        return st;
    return f->g.biased ? tndnn_use_add(m, DNNL_ARG_BIAS, (tndnn_place){TNDNN_IN, 2, 0}, &f->g.bias) : TN_OK;
}

static tn_status forward_build(tndnn_maker *m, forward *f)
{
    tn_status st = conv_geometry(m, m->node->in[0], m->node->in[1], m->node->out[0], &f->g);

    f->g.biased = !tn_attrs_int(m->node->attrs, TN_Convolution_no_bias);
    if (st || (st = ways_try(m, &f->g, forward_make, NULL, &f->pd)))
        return st;
    return forward_steps(m, f);
}

static tn_status conv_build(tndnn_maker *m)
{
    forward f = {.addend = -1};

    return forward_build(m, &f);
}

static tndnn_following following_read(const tn_node *node)
{
    const tn_value *a = node->attrs;

    return (tndnn_following){
        .with_sum = tn_attrs_int(a, TN_fused_conv_with_sum) != 0,
        .function = (uint32_t)tn_attrs_int(a, TN_fused_conv_act_type),
        .low = tn_attrs_float(a, TN_fused_conv_a_min),
        .high = tn_attrs_float(a, TN_fused_conv_a_max),
        .slope = tn_attrs_float(a, TN_fused_conv_slope),
    };
}

static tn_status fused_build(tndnn_maker *m)
{
    const tndnn_following following = following_read(m->node);
    forward f = {.addend = following.with_sum ? (int32_t)m->node->in_count - 1 : -1};
    tn_status st = tndnn_follow(m, &following);

    return st ? st : forward_build(m, &f);
}

static double flops_of(const tn_tensor *output, const tn_tensor *weight)
{
    return 2 * (double)tn_tensor_count(output) * (double)tn_tensor_count(weight) /
           (double)tncpu_max(weight->shape[0], 1);
}

typedef struct conv_call { /* what `prepare` was given */
    void *plugin;
    const tn_node *node;
    tn_plan *plan;
    double flops;
    tndnn_build build;
    const tndnn_following *following; /* NULL: a backward */
    tn_err *err;
} conv_call;

/* The number of code of our own, behind the library's ways. */
#define OWN WAYS

static tn_status ways_prepare(const conv_call *c, uint32_t first, uint32_t end, bool all)
{
    const tndnn_ways tried = {first, end, all};

    return tndnn_prepare_ways(c->plugin, c->node, c->plan, 500 + NS_PER_FLOP * c->flops, c->build, &tried,
                              c->err);
}

static tn_status own_prepare(const conv_call *c, bool all)
{
    tn_status st = TN_E_UNSUPPORTED;

    if (c->following && !(st = tndnn_wino_prepare(c->plugin, c->node, c->plan, c->following, all, c->err)))
        ((tndnn_state *)c->plan->state)->way = OWN;
    return st;
}

/* One way, whatever the tables say of it. */
static tn_status way_prepare(const conv_call *c, uint32_t way)
{
    return way == OWN ? own_prepare(c, true) : ways_prepare(c, way, way + 1, true);
}

/* What Winograd's primitives want may differ between two numbers of threads: then there is none. */
static tn_status table_prepare(const conv_call *c)
{
    tn_status st = own_prepare(c, false);

    if (st != TN_E_UNSUPPORTED)
        return st;
    st = ways_prepare(c, 0, WAYS, false);
    return st == TN_E_UNSUPPORTED ? ways_prepare(c, DIRECT, WAYS, false) : st;
}

/* A way other than the tables' is taken where it is ahead by so much: what it costs neighbours to have their
 * values in another order of memory is not measured. */
#define AHEAD(ns) ((ns) - (ns) / 8)

static uint32_t way_measure(const conv_call *c, tndnn_tuner *t, uint32_t by_table)
{
    uint64_t least = tndnn_tuner_time(t, c->plan, OWN + 1);
    uint32_t best = by_table;

    if (least == UINT64_MAX)
        return by_table;
    least = AHEAD(least);
    for (uint32_t way = 0; way <= OWN && tndnn_tuner_goes_on(t); way++) {
        uint64_t ns;

        if (way == by_table)
            continue;
        tndnn_plan_reset(c->node, c->plan);
        if (way_prepare(c, way))
            continue;
        if ((ns = tndnn_tuner_time(t, c->plan, OWN + 1 - way)) < least) {
            least = ns;
            best = way;
        }
    }
    return best;
}

/* As stored, as measured, or as the tables say. */
static tn_status forward_prepare(const conv_call *c)
{
    uint32_t way, by_table;
    tndnn_tuner t;
    tn_status st;

    if (tndnn_tuned_way(c->node, &way) && way <= OWN && !way_prepare(c, way))
        return TN_OK;
    if ((st = table_prepare(c)) || !tndnn_tuner_start(&t, c->node, c->plan, OWN + 1))
        return st;
    by_table = ((const tndnn_state *)c->plan->state)->way;
    way = way_measure(c, &t, by_table);
    tndnn_plan_reset(c->node, c->plan);
    if (way == by_table || (st = way_prepare(c, way)) == TN_E_UNSUPPORTED)
        st = table_prepare(c);
    if (!st)
        tndnn_tuned_leave(c->plugin, c->plan, ((const tndnn_state *)c->plan->state)->way);
    return st;
}

static tn_status conv_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return forward_prepare(&(conv_call){plugin, node, plan, flops_of(node->out[0], node->in[1]), conv_build,
                                        &(tndnn_following){.with_sum = false}, err});
}

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tndnn_following following = following_read(node);

    return forward_prepare(
        &(conv_call){plugin, node, plan, flops_of(node->out[0], node->in[1]), fused_build, &following, err});
}

/* ---- backward: dy, data, weight to dx, dw, db ---------------------------------------------------------- */

typedef struct backward {
    geometry g;
    dnnl_primitive_desc_t hint; /* of a forward */
} backward;

static bool strides_differ(const geometry *g)
{
    for (int k = 1; k < g->data.ndims - 2; k++)
        if (g->window.stride[k] != g->window.stride[0])
            return true;
    return false;
}

/* The gradient by matrix products of oneDNN 2.6 is wrong where the strides of the axes differ. */
static dnnl_status_t data_make(tndnn_maker *m, const geometry *g, const_dnnl_primitive_desc_t hint,
                               dnnl_primitive_desc_t *pd)
{
    const char *name = "";
    dnnl_status_t st;
    tndnn_md weight;

    tndnn_md_any(&weight, g->weight.ndims, g->weight.dims);
    st = tndnn_pd_convolution_data(pd, m->engine, g->alg, &g->data_as, &weight, &g->output_as, &g->window,
                                   m->attr, hint);
    if (st || !strides_differ(g))
        return st;
    (void)dnnl_primitive_desc_query(*pd, dnnl_query_impl_info_str, 0, &name);
    if (!strstr(name, "gemm"))
        return st;
    (void)dnnl_primitive_desc_destroy(*pd);
    *pd = NULL;
    return dnnl_unimplemented;
}

static dnnl_status_t weights_make(tndnn_maker *m, const geometry *g, const_dnnl_primitive_desc_t hint,
                                  dnnl_primitive_desc_t *pd)
{
    tndnn_md dw;

    tndnn_md_any(&dw, g->weight.ndims, g->weight.dims);
    return tndnn_pd_convolution_weights(pd, m->engine, g->alg, &g->data_as, &dw, g->biased ? &g->bias : NULL,
                                        &g->output_as, &g->window, m->attr, hint);
}

static tn_status backward_data(tndnn_maker *m, backward *b)
{
    tndnn_md dy, weight, dx;
    tndnn_place at[3];
    dnnl_primitive_desc_t pd = NULL;
    tn_status st = ways_try(m, &b->g, data_make, b->hint, &pd);

    if (st)
        return st;
    dy = *tndnn_query(pd, dnnl_query_diff_dst_md, 0);
    weight = *tndnn_query(pd, dnnl_query_weights_md, 0);
    dx = *tndnn_query(pd, dnnl_query_diff_src_md, 0);
    if ((st = tndnn_bind_in(m, 0, &b->g.output, &dy, &at[0])) ||
        (st = tndnn_bind_in(m, 2, &b->g.weight, &weight, &at[1])) ||
        (st = tndnn_bind_out(m, 0, &b->g.data, &dx, &at[2])))
        goto cleanup;
    st = tndnn_step(m, dnnl_success, pd, "gradient of data");
    pd = NULL; /* taken */
    if (st || (st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, at[0], &dy)) ||
        (st = tndnn_use_add(m, DNNL_ARG_WEIGHTS, at[1], &weight)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_SRC, at[2], &dx)))
        goto cleanup;

cleanup:
    if (pd)
        (void)dnnl_primitive_desc_destroy(pd);
    return st;
}

/* Gradients of parameters are rows: an optimizer reads them. */
static tn_status weights_bind(tndnn_maker *m, const backward *b, const tndnn_md *dw, tndnn_place *at)
{
    if (m->node->modes[1] == TN_MODE_NONE) {
        *at = tndnn_work(m, dw);
        return TN_OK;
    }
    return tndnn_late_add(m, 1, &b->g.weight, dw, at);
}

/* The library adds the products of all samples one after the other, and the error grows with the root of
 * their number. From so many output pixels on each half of an even batch is summed apart, where the second
 * sum stays in a cache. */
#define HALVES_PIXELS_MIN 256
#define HALVES_WEIGHTS_MAX (1 << 19)

/* With more output pixels of one sample the gradient of the weight is left to products that add blocks of
 * them. In inceptionv3's first layers (147 x 147) the sums of the library were 5 times as far from double. */
#define SUM_PIXELS_MAX (1 << 14)

static int64_t parts_of(const geometry *g)
{
    const int64_t samples = g->output.dims[0];

    return samples % 2 == 0 && samples * tndnn_md_count(&g->output, 2) >= HALVES_PIXELS_MIN &&
                   tndnn_md_count(&g->weight, 0) <= HALVES_WEIGHTS_MAX
               ? 2
               : 1;
}

static void samples_scale(tndnn_md *md, int64_t times, int64_t parts)
{
    md->dims[0] = md->dims[0] * times / parts;
    md->padded_dims[0] = md->padded_dims[0] * times / parts;
}

/* Arguments of the primitive for one part of the samples; `data` and `dy` describe the part. */
typedef struct part {
    tndnn_md data, dy, dw;
    tndnn_place data_at, dy_at, dw_at, db_at;
} part;

static tn_status part_bind(tndnn_maker *m, const backward *b, int64_t parts, part *p)
{
    tndnn_md data = p->data, dy = p->dy;
    tn_status st;

    samples_scale(&data, parts, 1);
    samples_scale(&dy, parts, 1);
    p->db_at = (tndnn_place){TNDNN_OUT, 2, 0};
    if ((st = tndnn_bind_in(m, 0, &b->g.output, &dy, &p->dy_at)) ||
        (st = tndnn_bind_in(m, 1, &b->g.data, &data, &p->data_at)))
        return st;
    return weights_bind(m, b, &p->dw, &p->dw_at);
}

static tn_status part_step(tndnn_maker *m, const backward *b, const_dnnl_primitive_desc_t of, const part *p)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made = dnnl_primitive_desc_clone(&pd, of);
    tn_status st = tndnn_step(m, made, pd, "gradient of the weight");

    if (st || (st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, p->dy_at, &p->dy)) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, p->data_at, &p->data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_WEIGHTS, p->dw_at, &p->dw)) || !b->g.biased)
        return st;
    return tndnn_use_add(m, DNNL_ARG_DIFF_BIAS, p->db_at, &b->g.bias);
}

static tn_status part_add(tndnn_maker *m, tndnn_place sum, tndnn_place more, const tndnn_md *md)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made = tndnn_pd_add(&pd, m->engine, md, m->attr);
    tn_status st = tndnn_step(m, made, pd, "sum of gradients");

    if (st || (st = tndnn_use_add(m, DNNL_ARG_MULTIPLE_SRC, sum, md)) ||
        (st = tndnn_use_add(m, DNNL_ARG_MULTIPLE_SRC + 1, more, md)))
        return st;
    return tndnn_use_add(m, DNNL_ARG_DST, sum, md);
}

/* The second half of the samples, and what it gives added to the first's. */
static tn_status second_half(tndnn_maker *m, const backward *b, const_dnnl_primitive_desc_t pd,
                             const part *first)
{
    part p = *first;
    tn_status st;

    p.data_at.offset += dnnl_memory_desc_get_size(&p.data);
    p.dy_at.offset += dnnl_memory_desc_get_size(&p.dy);
    p.dw_at = tndnn_work(m, &p.dw);
    p.db_at = tndnn_work(m, &b->g.bias);
    if ((st = part_step(m, b, pd, &p)) || (st = part_add(m, first->dw_at, p.dw_at, &p.dw)) || !b->g.biased)
        return st;
    return part_add(m, first->db_at, p.db_at, &b->g.bias);
}

static tn_status backward_weights(tndnn_maker *m, backward *b)
{
    const int64_t parts = parts_of(&b->g);
    geometry of_part = b->g;
    dnnl_primitive_desc_t pd = NULL;
    part p;
    tn_status st;

    b->g.biased = of_part.biased = m->node->out_count > 2 && m->node->modes[2] != TN_MODE_NONE;
    samples_scale(&of_part.data, 1, parts);
    samples_scale(&of_part.output, 1, parts);
    if ((st = ways_try(m, &of_part, weights_make, b->hint, &pd)))
        return st;
    p.dy = *tndnn_query(pd, dnnl_query_diff_dst_md, 0);
    p.data = *tndnn_query(pd, dnnl_query_src_md, 0);
    p.dw = *tndnn_query(pd, dnnl_query_diff_weights_md, 0);
    if (!(st = part_bind(m, b, parts, &p)) && !(st = part_step(m, b, pd, &p)) && parts > 1)
        st = second_half(m, b, pd, &p);
    (void)dnnl_primitive_desc_destroy(pd);
    return st;
}

/* Inputs are asked for in one order of memory; where the two primitives want two,
 * the other is made inside. */
static tn_status backward_build(tndnn_maker *m)
{
    const uint8_t *modes = m->node->modes;
    const bool weights = modes[1] != TN_MODE_NONE || (m->node->out_count > 2 && modes[2] != TN_MODE_NONE);
    backward b = {.hint = NULL};
    tndnn_md data, weight, output;
    tn_status st = conv_geometry(m, m->node->in[1], m->node->in[2], m->node->in[0], &b.g);

    if (st)
        return st;
    if (weights && tndnn_md_count(&b.g.output, 2) > SUM_PIXELS_MAX)
        return tn_fail(m->err, TN_E_UNSUPPORTED, "a gradient of the weight over too many pixels");
    tndnn_md_any(&data, b.g.data.ndims, b.g.data.dims);
    tndnn_md_any(&weight, b.g.weight.ndims, b.g.weight.dims);
    tndnn_md_any(&output, b.g.output.ndims, b.g.output.dims);
    st = tndnn_status(tndnn_pd_convolution(&b.hint, m->engine, 1, dnnl_convolution_direct, &data, &weight,
                                           NULL, &output, &b.g.window, m->attr),
                      "convolution", m->err);
    if (!st && modes[0] != TN_MODE_NONE)
        st = backward_data(m, &b);
    if (!st && weights)
        st = backward_weights(m, &b);
    if (b.hint)
        (void)dnnl_primitive_desc_destroy(b.hint);
    return st;
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return table_prepare(
        &(conv_call){plugin, node, plan, 2 * flops_of(node->in[0], node->in[2]), backward_build, NULL, err});
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel convolution = TNDNN_KERNEL("Convolution", 128, "", types, conv_prepare);
static const tn_kernel fused_conv = TNDNN_KERNEL("_fused_conv", 128, "", types, fused_prepare);
static const tn_kernel backward_convolution =
    TNDNN_KERNEL("_backward_Convolution", 128, "", types, backward_prepare);

const tn_kernel *const tndnn_family_conv[] = {&convolution, &fused_conv, &backward_convolution, NULL};

/*
 * FullyConnected, its gradients, and _fused_dense. Data and output stay rows; the library chooses the order
 * of the weight.
 */
#include "onednn.h"

#define RANK 112 /* behind OpenBLAS, which is as fast with rows and serves every number of threads */
#define NS_PER_FLOP 0.006
#define NS_PER_WEIGHT 0.25 /* it is read once */

typedef struct geometry {
    tndnn_md data, weight, bias, output;
    double ns;
} geometry;

static void geometry_read(const tn_tensor *data, const tn_tensor *weight, geometry *g)
{
    const int64_t hidden = weight->shape[0], inputs = weight->shape[1];
    const int64_t rows = tn_tensor_count(data) / inputs;

    tndnn_md_rows(&g->data, 2, (const dnnl_dims_t){rows, inputs});
    tndnn_md_rows(&g->weight, 2, (const dnnl_dims_t){hidden, inputs});
    tndnn_md_rows(&g->bias, 1, (const dnnl_dims_t){hidden});
    tndnn_md_rows(&g->output, 2, (const dnnl_dims_t){rows, hidden});
    g->ns = 300 + (double)hidden * (double)inputs * (NS_PER_WEIGHT + 2 * NS_PER_FLOP * (double)rows);
}

/* ---- forward ------------------------------------------------------------------------------------------- */

static tn_status forward_steps(tndnn_maker *m, const geometry *g, dnnl_primitive_desc_t pd, int32_t addend)
{
    const tndnn_md weight = *tndnn_query(pd, dnnl_query_weights_md, 0);
    const bool biased = m->node->in_count > (addend < 0 ? 2u : 3u);
    const tndnn_place out = {TNDNN_OUT, 0, 0};
    tndnn_place at;
    tn_status st;

    if ((st = tndnn_bind_in(m, 1, &g->weight, &weight, &at)) ||
        (addend >= 0 && (st = tndnn_addend(m, (uint32_t)addend, &g->output, &g->output, out)))) {
        (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    if ((st = tndnn_step(m, dnnl_success, pd, "dense layer")) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 0, 0}, &g->data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_WEIGHTS, at, &weight)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DST, out, &g->output)))
        return st;
    return biased ? tndnn_use_add(m, DNNL_ARG_BIAS, (tndnn_place){TNDNN_IN, 2, 0}, &g->bias) : TN_OK;
}

static tn_status forward_build(tndnn_maker *m, bool no_bias, int32_t addend)
{
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t made;
    tndnn_md weight;
    geometry g;
    tn_status st;

    geometry_read(m->node->in[0], m->node->in[1], &g);
    weight = g.weight;
    if (m->layouts) /* a constant weight is reordered once; else as it is */
        tndnn_md_any(&weight, 2, g.weight.dims);
    made = tndnn_pd_dense(&pd, m->engine, 0, &g.data, &weight, no_bias ? NULL : &g.bias, &g.output, m->layer);
    if ((st = tndnn_fast(m, made, pd, "dense layer"))) {
        if (!made)
            (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    return forward_steps(m, &g, pd, addend);
}

static tn_status dense_build(tndnn_maker *m)
{
    return forward_build(m, tn_attrs_int(m->node->attrs, TN_FullyConnected_no_bias) != 0, -1);
}

static tn_status fused_build(tndnn_maker *m)
{
    const tn_value *a = m->node->attrs;
    const tndnn_following following = {
        .with_sum = tn_attrs_int(a, TN_fused_dense_with_sum) != 0,
        .function = (uint32_t)tn_attrs_int(a, TN_fused_dense_act_type),
        .low = tn_attrs_float(a, TN_fused_dense_a_min),
        .high = tn_attrs_float(a, TN_fused_dense_a_max),
        .slope = tn_attrs_float(a, TN_fused_dense_slope),
    };
    tn_status st = tndnn_follow(m, &following);

    return st ? st
              : forward_build(m, tn_attrs_int(a, TN_fused_dense_no_bias) != 0,
                              following.with_sum ? (int32_t)m->node->in_count - 1 : -1);
}

static double forward_ns(const tn_node *node)
{
    geometry g;

    if (tndnn_out_of_range(node->in[0]) || tndnn_out_of_range(node->in[1]))
        return 1; /* refused */
    geometry_read(node->in[0], node->in[1], &g);
    return g.ns;
}

static tn_status dense_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, forward_ns(node), dense_build, err);
}

static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, forward_ns(node), fused_build, err);
}

/* ---- backward: dy, data, weight to dx, dw, db ---------------------------------------------------------- */

static tn_status backward_data(tndnn_maker *m, const geometry *g, dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made =
        tndnn_pd_dense_data(&pd, m->engine, &g->data, &g->weight, &g->output, m->attr, hint);
    tn_status st;

    if ((st = tndnn_step(m, made, pd, "gradient of data")) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, (tndnn_place){TNDNN_IN, 0, 0}, &g->output)) ||
        (st = tndnn_use_add(m, DNNL_ARG_WEIGHTS, (tndnn_place){TNDNN_IN, 2, 0}, &g->weight)))
        return st;
    return tndnn_use_add(m, DNNL_ARG_DIFF_SRC, (tndnn_place){TNDNN_OUT, 0, 0}, &g->data);
}

static tn_status backward_weights(tndnn_maker *m, const geometry *g, dnnl_primitive_desc_t hint)
{
    const bool biased = m->node->out_count > 2 && m->node->modes[2] != TN_MODE_NONE;
    const tndnn_place dw =
        m->node->modes[1] == TN_MODE_NONE ? tndnn_work(m, &g->weight) : (tndnn_place){TNDNN_OUT, 1, 0};
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made = tndnn_pd_dense_weights(&pd, m->engine, &g->data, &g->weight,
                                                      biased ? &g->bias : NULL, &g->output, m->attr, hint);
    tn_status st;

    if ((st = tndnn_step(m, made, pd, "gradient of the weight")) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, (tndnn_place){TNDNN_IN, 0, 0}, &g->output)) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 1, 0}, &g->data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_WEIGHTS, dw, &g->weight)))
        return st;
    return biased ? tndnn_use_add(m, DNNL_ARG_DIFF_BIAS, (tndnn_place){TNDNN_OUT, 2, 0}, &g->bias) : TN_OK;
}

static tn_status backward_build(tndnn_maker *m)
{
    const uint8_t *modes = m->node->modes;
    const bool weights = modes[1] != TN_MODE_NONE || (m->node->out_count > 2 && modes[2] != TN_MODE_NONE);
    dnnl_primitive_desc_t hint = NULL;
    geometry g;
    tn_status st;

    geometry_read(m->node->in[1], m->node->in[2], &g);
    st = tndnn_status(tndnn_pd_dense(&hint, m->engine, 1, &g.data, &g.weight, NULL, &g.output, m->attr),
                      "dense layer", m->err);
    if (!st && modes[0] != TN_MODE_NONE)
        st = backward_data(m, &g, hint);
    if (!st && weights)
        st = backward_weights(m, &g, hint);
    if (hint)
        (void)dnnl_primitive_desc_destroy(hint);
    return st;
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    geometry g = {.ns = 1};

    if (!tndnn_out_of_range(node->in[1]) && !tndnn_out_of_range(node->in[2]))
        geometry_read(node->in[1], node->in[2], &g);
    return tndnn_prepare(plugin, node, plan, 2 * g.ns, backward_build, err);
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel fully_connected = TNDNN_KERNEL("FullyConnected", RANK, "", types, dense_prepare);
static const tn_kernel fused_dense = TNDNN_KERNEL("_fused_dense", RANK, "", types, fused_prepare);
static const tn_kernel backward_dense =
    TNDNN_KERNEL("_backward_FullyConnected", RANK, "", types, backward_prepare);

const tn_kernel *const tndnn_family_dense[] = {&fully_connected, &fused_dense, &backward_dense, NULL};

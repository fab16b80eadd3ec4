/*
 * BatchNorm and its gradient, in the layout that is offered. The library makes mean and variance; what
 * MXNet's operator has beside them (1 / sqrt(var + eps), running statistics) is done around the primitive.
 */
#include <math.h>

#include "onednn.h"

#define NS_PER_ELEMENT 0.5
#define OWN_VARIANCE 0 /* offset in the workspace */
#define OWN_MEAN 1     /* training: the same; NONE: it is an output */
#define OWN_TRAIN 2
#define OWN_EPS 3
#define NONE UINT64_MAX

typedef struct geometry {
    tndnn_md data, channels;
    bool last, fixed, train;
    double eps;
    unsigned flags;
} geometry;

static bool wants_batch(const tn_node *node)
{
    return (node->flags & TN_NODE_TRAIN) && !tn_attrs_int(node->attrs, TN_BatchNorm_use_global_stats);
}

static tn_status geometry_read(tndnn_maker *m, const tn_tensor *x, bool train, geometry *g)
{
    const int32_t axis = x->ndim ? tncpu_axis(tn_attrs_int(m->node->attrs, TN_BatchNorm_axis), x->ndim) : 0;

    if (x->ndim < 2 || x->ndim > 5 || (axis != 1 && axis != x->ndim - 1))
        return tn_fail(m->err, TN_E_UNSUPPORTED, "channels are neither the second axis nor the last");
    g->last = axis != 1;
    g->fixed = tn_attrs_int(m->node->attrs, TN_BatchNorm_fix_gamma) != 0;
    g->eps = tn_attrs_float(m->node->attrs, TN_BatchNorm_eps);
    g->train = train;
    g->flags = (unsigned)dnnl_use_shift | (g->fixed ? 0u : (unsigned)dnnl_use_scale) |
               (train ? 0u : (unsigned)dnnl_use_global_stats);
    m->layouts = m->layouts && !g->last;
    m->state->own[OWN_TRAIN] = train;
    tndnn_md_channels(&g->data, x, g->last);
    tndnn_md_rows(&g->channels, 1, (const dnnl_dims_t){x->shape[axis]});
    return TN_OK;
}

static float inverse_of(double variance, double eps)
{
    return (float)(1 / sqrt(variance + eps));
}

/* Of running statistics: what users may ask for beside the output. */
static void statistics_show(const tndnn_state *s, const tn_exec *x, char *work)
{
    const double eps = tn_attrs_float(x->attrs, TN_BatchNorm_eps);
    const float *mean = x->in[3]->data, *variance = x->in[4]->data;

    (void)s, (void)work;
    for (int64_t c = 0; c < x->in[3]->shape[0]; c++) {
        if (x->modes[1] != TN_MODE_NONE)
            ((float *)x->out[1]->data)[c] = mean[c];
        if (x->modes[2] != TN_MODE_NONE)
            ((float *)x->out[2]->data)[c] = inverse_of((double)variance[c], eps);
    }
}

/* The same of the batch, and the running statistics move. */
static void statistics_move(const tndnn_state *s, const tn_exec *x, char *work)
{
    const double eps = tn_attrs_float(x->attrs, TN_BatchNorm_eps);
    const double keep = tn_attrs_float(x->attrs, TN_BatchNorm_momentum);
    const float *variance = (const float *)(const void *)(work + s->own[OWN_VARIANCE]);
    const float *mean =
        s->own[OWN_MEAN] == NONE ? x->out[1]->data : (const float *)(const void *)(work + s->own[OWN_MEAN]);
    float *moving_mean = x->out[3]->data, *moving_variance = x->out[4]->data;

    for (int64_t c = 0; c < x->in[3]->shape[0]; c++) {
        moving_mean[c] = (float)((double)moving_mean[c] * keep + (double)mean[c] * (1 - keep));
        moving_variance[c] = (float)((double)moving_variance[c] * keep + (double)variance[c] * (1 - keep));
        if (x->modes[2] != TN_MODE_NONE)
            ((float *)x->out[2]->data)[c] = inverse_of((double)variance[c], eps);
    }
}

static tn_status forward_uses(tndnn_maker *m, const geometry *g, const tndnn_md *data, tndnn_place out)
{
    tndnn_place mean = {TNDNN_IN, 3, 0}, variance = {TNDNN_IN, 4, 0};
    tn_status st;

    if (g->train) {
        variance = tndnn_work(m, &g->channels);
        mean = (tndnn_place){TNDNN_OUT, 1, 0};
        if (m->node->modes[1] == TN_MODE_NONE)
            mean = tndnn_work(m, &g->channels);
        m->state->own[OWN_VARIANCE] = variance.offset;
        m->state->own[OWN_MEAN] = mean.kind == TNDNN_OUT ? NONE : mean.offset;
    }
    m->state->after = g->train ? statistics_move : statistics_show;
    if ((st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 0, 0}, data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DST, out, data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_MEAN, mean, &g->channels)) ||
        (st = tndnn_use_add(m, DNNL_ARG_VARIANCE, variance, &g->channels)) ||
        (st = tndnn_use_add(m, DNNL_ARG_SHIFT, (tndnn_place){TNDNN_IN, 2, 0}, &g->channels)))
        return st;
    return g->fixed ? TN_OK : tndnn_use_add(m, DNNL_ARG_SCALE, (tndnn_place){TNDNN_IN, 1, 0}, &g->channels);
}

static tn_status forward_build(tndnn_maker *m)
{
    dnnl_primitive_desc_t pd = NULL;
    geometry g = {.last = false};
    dnnl_status_t made;
    tndnn_place at;
    tndnn_md data;
    tn_status st;

    if (m->node->modes[0] == TN_MODE_NONE)
        return tn_fail(m->err, TN_E_UNSUPPORTED, "statistics without the output");
    if ((st = geometry_read(m, m->node->in[0], wants_batch(m->node), &g)) ||
        (st = tndnn_keep_in(m, 0, &g.data, &data)))
        return st;
    made = tndnn_pd_batch_norm(&pd, m->engine, g.train, &data, g.eps, g.flags, m->attr);
    if ((st = tndnn_fast(m, made, pd, "BatchNorm")) || (st = tndnn_bind_out(m, 0, &g.data, &data, &at))) {
        if (!made)
            (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    st = tndnn_step(m, made, pd, "BatchNorm");
    return st ? st : forward_uses(m, &g, &data, at);
}

/* ---- backward: dy, data, gamma, mean, 1 / sqrt(var + eps) to dx, dgamma, dbeta ------------------------- */

static void variance_make(const tndnn_state *s, const tn_exec *x, char *work)
{
    const double eps = tn_attrs_float(x->attrs, TN_BatchNorm_eps);
    const float *inverse = x->in[4]->data;
    float *variance = (float *)(void *)(work + s->own[OWN_VARIANCE]);

    for (int64_t c = 0; c < x->in[4]->shape[0]; c++)
        variance[c] = (float)(1 / ((double)inverse[c] * (double)inverse[c]) - eps);
}

/* A fixed gamma has the gradient 0. */
static void gamma_clear(const tndnn_state *s, const tn_exec *x, char *work)
{
    (void)s, (void)work;
    if (x->modes[1] != TN_MODE_NONE && tn_attrs_int(x->attrs, TN_BatchNorm_fix_gamma))
        memset(x->out[1]->data, 0, (size_t)x->out[1]->shape[0] * sizeof(float));
}

static tndnn_place output_or_work(tndnn_maker *m, uint32_t out, const tndnn_md *md)
{
    return m->node->modes[out] == TN_MODE_NONE ? tndnn_work(m, md) : (tndnn_place){TNDNN_OUT, out, 0};
}

static tn_status backward_uses(tndnn_maker *m, const geometry *g, const tndnn_md *data, const tndnn_place *at)
{
    const tndnn_place variance = tndnn_work(m, &g->channels);
    tn_status st;

    m->state->own[OWN_VARIANCE] = variance.offset;
    m->state->before = variance_make;
    m->state->after = gamma_clear;
    if ((st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, at[0], data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 1, 0}, data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_SRC, at[1], data)) ||
        (st = tndnn_use_add(m, DNNL_ARG_MEAN, (tndnn_place){TNDNN_IN, 3, 0}, &g->channels)) ||
        (st = tndnn_use_add(m, DNNL_ARG_VARIANCE, variance, &g->channels)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_SHIFT, output_or_work(m, 2, &g->channels), &g->channels)))
        return st;
    if ((st = tndnn_use_add(m, DNNL_ARG_SHIFT, (tndnn_place){TNDNN_IN, 2, 0}, &g->channels)) || g->fixed)
        return st; /* the library asks for a shift, and reads none */
    st = tndnn_use_add(m, DNNL_ARG_SCALE, (tndnn_place){TNDNN_IN, 2, 0}, &g->channels);
    return st ? st : tndnn_use_add(m, DNNL_ARG_DIFF_SCALE, output_or_work(m, 1, &g->channels), &g->channels);
}

static tn_status backward_steps(tndnn_maker *m, const geometry *g, const tndnn_md *data,
                                const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made =
        tndnn_pd_batch_norm_back(&pd, m->engine, data, data, g->eps, g->flags, m->attr, hint);
    tndnn_place at[2];
    tn_status st = tndnn_fast(m, made, pd, "gradient of BatchNorm");

    if (!st)
        st = tndnn_bind_in(m, 0, &g->data, data, &at[0]);
    if (!st && m->node->modes[0] == TN_MODE_NONE)
        at[1] = tndnn_work(m, data);
    else if (!st)
        st = tndnn_bind_out(m, 0, &g->data, data, &at[1]);
    if (st) {
        if (!made)
            (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    st = tndnn_step(m, made, pd, "gradient of BatchNorm");
    return st ? st : backward_uses(m, g, data, at);
}

static tn_status backward_build(tndnn_maker *m)
{
    const tn_plan *forward = m->node->forward;
    const bool train = wants_batch(m->node) && /* of a backward in predict mode, or of a forward in it, not */
                       (!forward || ((const tndnn_state *)forward->state)->own[OWN_TRAIN]);
    dnnl_primitive_desc_t hint = NULL;
    geometry g = {.last = false};
    tndnn_md data;
    tn_status st;

    if ((st = geometry_read(m, m->node->in[1], train, &g)) || (st = tndnn_keep_in(m, 1, &g.data, &data)))
        return st;
    st = tndnn_status(tndnn_pd_batch_norm(&hint, m->engine, 1, &data, g.eps, g.flags, m->attr), "BatchNorm",
                      m->err);
    if (!st)
        st = backward_steps(m, &g, &data, hint);
    if (hint)
        (void)dnnl_primitive_desc_destroy(hint);
    return st;
}

static tn_status forward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, 500 + NS_PER_ELEMENT * (double)tn_tensor_count(node->in[0]),
                         forward_build, err);
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, 1000 + 2 * NS_PER_ELEMENT * (double)tn_tensor_count(node->in[1]),
                         backward_build, err);
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel batch_norm = TNDNN_KERNEL("BatchNorm", 128, "", types, forward_prepare);
static const tn_kernel backward_batch_norm =
    TNDNN_KERNEL("_backward_BatchNorm", 128, "", types, backward_prepare);

const tn_kernel *const tndnn_family_norm[] = {&batch_norm, &backward_batch_norm, NULL};

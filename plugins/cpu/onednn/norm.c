/*
 * BatchNorm and its gradient, in the layout that is offered. The library applies statistics; those of a
 * batch, and the gradient, are sums that are made here (channels.c): in float alone their errors would decide
 * how exact a net's gradients are (decision 51).
 */
#include <math.h>
#include <omp.h>

#include "onednn.h"

#define NS_PER_ELEMENT 0.5
#define OWN_ROOM 0     /* offset in the workspace: sums */
#define OWN_VARIANCE 1 /* the same; in backward maps of the gradient */
#define OWN_MEAN 2     /* the same; NONE: it is an output */
#define OWN_TRAIN 3
#define OWN_DY 4 /* the gradient that comes in; NONE: it is an input */
#define NONE UINT64_MAX

typedef struct geometry {
    tndnn_md data, channels;
    bool last, fixed, train;
    double eps;
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
    m->layouts = m->layouts && !g->last;
    m->state->own[OWN_TRAIN] = train;
    tndnn_md_channels(&g->data, x, g->last);
    tndnn_md_rows(&g->channels, 1, (const dnnl_dims_t){x->shape[axis]});
    return TN_OK;
}

/* Where the channels lie, kept for runs, and room for their sums: the first of the workspace, so that it is
 * the same for each number of threads. */
static tn_status channels_keep(tndnn_maker *m, const tndnn_md *data)
{
    tndnn_state *s = m->state;

    if (!s->kept && !(s->kept = tndnn_alloc(s->plugin, sizeof(tndnn_channels))))
        return tn_fail(m->err, TN_E_NOMEM, "no memory for a kernel's plan");
    if (!tndnn_channels_of(data, s->kept))
        return tn_fail(m->err, TN_E_UNSUPPORTED, "channels in another order of memory");
    s->own[OWN_ROOM] = tndnn_work_bytes(m, tndnn_channels_bytes(s->kept)).offset;
    return TN_OK;
}

static void *own_at(const tndnn_state *s, int which, char *work)
{
    return work + s->own[which];
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

/* Mean and variance of the batch. The second pass adds what differs from the mean, as float has it. */
static void moments_make(const tndnn_state *s, const tn_exec *x, char *work)
{
    const tndnn_channels *c = s->kept;
    const float *data = x->in[0]->data;
    const double count = (double)(c->samples * c->pixels);
    double *room = own_at(s, OWN_ROOM, work);
    float *mean = s->own[OWN_MEAN] == NONE ? x->out[1]->data : own_at(s, OWN_MEAN, work),
          *variance = own_at(s, OWN_VARIANCE, work);

    tndnn_channels_sum(c, data, data, NULL, NULL, omp_get_max_threads(), room);
    for (int64_t k = 0; k < c->channels; k++)
        mean[k] = (float)(tndnn_channel_sum(c, room, k, 0) / count);
    tndnn_channels_sum(c, data, data, mean, mean, omp_get_max_threads(), room);
    for (int64_t k = 0; k < c->channels; k++) {
        const double rest = tndnn_channel_sum(c, room, k, 0) / count;

        variance[k] = (float)(tndnn_channel_sum(c, room, k, 1) / count - rest * rest);
    }
}

/* The same of the batch, and the running statistics move. */
static void statistics_move(const tndnn_state *s, const tn_exec *x, char *work)
{
    const double eps = tn_attrs_float(x->attrs, TN_BatchNorm_eps);
    const double keep = tn_attrs_float(x->attrs, TN_BatchNorm_momentum);
    const float *variance = own_at(s, OWN_VARIANCE, work);
    const float *mean = s->own[OWN_MEAN] == NONE ? x->out[1]->data : own_at(s, OWN_MEAN, work);
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
        if ((st = channels_keep(m, data)))
            return st;
        variance = tndnn_work(m, &g->channels);
        mean = (tndnn_place){TNDNN_OUT, 1, 0};
        if (m->node->modes[1] == TN_MODE_NONE)
            mean = tndnn_work(m, &g->channels);
        m->state->own[OWN_VARIANCE] = variance.offset;
        m->state->own[OWN_MEAN] = mean.kind == TNDNN_OUT ? NONE : mean.offset;
    }
    m->state->before = g->train ? moments_make : NULL;
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
    made = tndnn_pd_batch_norm(&pd, m->engine, &data, g.eps, !g.fixed, m->attr);
    if ((st = tndnn_fast(m, made, pd, "BatchNorm")) || (st = tndnn_bind_out(m, 0, &g.data, &data, &at))) {
        if (!made)
            (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    st = tndnn_step(m, made, pd, "BatchNorm");
    return st ? st : forward_uses(m, &g, &data, at);
}

/* ---- backward: dy, data, gamma, mean, 1 / sqrt(var + eps) to dx, dgamma, dbeta ------------------------- */

/* With the batch's statistics dx = gamma·inverse·(dy - Σdy / n - (x - mean)·inverse²·Σdy(x - mean) / n);
 * else gamma·inverse·dy. Gradients of channel `k`, and its part of the map of dy and x to dx. */
static void channel_back(const tndnn_state *s, const tn_exec *x, const double *room, int64_t k,
                         tndnn_channel_map *map)
{
    const tndnn_channels *c = s->kept;
    const bool fixed = tn_attrs_int(x->attrs, TN_BatchNorm_fix_gamma) != 0;
    const double count = s->own[OWN_TRAIN] ? (double)(c->samples * c->pixels) : INFINITY;
    const double sum = tndnn_channel_sum(c, room, k, 0), product = tndnn_channel_sum(c, room, k, 1);
    const double inverse = (double)((const float *)x->in[4]->data)[k];
    const double scale = fixed ? inverse : inverse * (double)((const float *)x->in[2]->data)[k];

    map->scale[k % c->lanes] = (float)scale;
    map->mean[k % c->lanes] = ((const float *)x->in[3]->data)[k];
    map->factor[k % c->lanes] = (float)(-scale * inverse * inverse * product / count);
    map->bias[k % c->lanes] = (float)(-scale * sum / count);
    if (x->modes[1] != TN_MODE_NONE) /* a fixed gamma has the gradient 0 */
        ((float *)x->out[1]->data)[k] = fixed ? 0 : (float)(product * inverse);
    if (x->modes[2] != TN_MODE_NONE)
        ((float *)x->out[2]->data)[k] = (float)sum;
}

static void backward_make(const tndnn_state *s, const tn_exec *x, char *work)
{
    const tndnn_channels *c = s->kept;
    const float *dy = s->own[OWN_DY] == NONE ? x->in[0]->data : own_at(s, OWN_DY, work);
    tndnn_channel_map *maps = own_at(s, OWN_VARIANCE, work);
    double *room = own_at(s, OWN_ROOM, work);

    tndnn_channels_sum(c, dy, x->in[1]->data, NULL, x->in[3]->data, omp_get_max_threads(), room);
    memset(maps, 0, (size_t)c->blocks * sizeof *maps);
    for (int64_t k = 0; k < c->channels; k++)
        channel_back(s, x, room, k, &maps[k / c->lanes]);
    if (x->modes[0] != TN_MODE_NONE)
        tndnn_channels_map(c, dy, x->in[1]->data, maps, omp_get_max_threads(), x->out[0]->data);
}

static tn_status backward_build(tndnn_maker *m)
{
    const tn_plan *forward = m->node->forward;
    const bool train = wants_batch(m->node) && /* of a backward in predict mode, or of a forward in it, not */
                       (!forward || ((const tndnn_state *)forward->state)->own[OWN_TRAIN]);
    tndnn_state *s = m->state;
    geometry g = {.last = false};
    tndnn_place dy, dx;
    tndnn_md data;
    tn_status st;

    if ((st = geometry_read(m, m->node->in[1], train, &g)) || (st = tndnn_keep_in(m, 1, &g.data, &data)) ||
        (st = channels_keep(m, &data)))
        return st;
    s->own[OWN_VARIANCE] =
        tndnn_work_bytes(m, (uint64_t)((tndnn_channels *)s->kept)->blocks * sizeof(tndnn_channel_map)).offset;
    s->after = backward_make;
    if ((st = tndnn_bind_in(m, 0, &g.data, &data, &dy)))
        return st;
    s->own[OWN_DY] = dy.kind == TNDNN_IN ? NONE : dy.offset;
    /* the data's order of memory is a layout of the plan, or rows: nothing is reordered behind */
    return m->node->modes[0] == TN_MODE_NONE ? TN_OK : tndnn_bind_out(m, 0, &g.data, &data, &dx);
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

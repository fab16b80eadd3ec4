/*
 * Pooling by maximum or average, and its gradient, in the layout that is offered. The gradient of a maximum
 * makes the forward pass again: it says where the maxima stand. The library's maximum passes over what is not
 * a number, so rows are left to the plugin `cpu`, whose maximum keeps it.
 */
#include "onednn.h"

#define NS_PER_ELEMENT 0.6

typedef struct geometry {
    tndnn_md data, output; /* rows, or channels last */
    tndnn_window window;
    dnnl_alg_kind_t alg;
    bool last;
} geometry;

/* The window of one dimension of space; what it has beyond the input on the right follows from the output. */
static bool window_read(const tn_value *a, const tn_tensor *x, const tn_tensor *y, int32_t k, geometry *g)
{
    const int32_t at = k + (g->last ? 1 : 2);
    const bool global = tn_attrs_int(a, TN_Pooling_global_pool) != 0;
    const int64_t kernel = global ? x->shape[at] : tn_attrs_tuple_at(a, TN_Pooling_kernel, k, 1);
    const int64_t stride = global ? 1 : tn_attrs_tuple_at(a, TN_Pooling_stride, k, 1);
    const int64_t left = global ? 0 : tn_attrs_tuple_at(a, TN_Pooling_pad, k, 0);
    const int64_t right = (y->shape[at] - 1) * stride + kernel - x->shape[at] - left;

    g->window.kernel[k] = kernel;
    g->window.stride[k] = stride;
    g->window.pad_left[k] = left;
    g->window.pad_right[k] = right < left ? left : right;
    if (kernel > INT16_MAX || stride > INT16_MAX || left >= kernel || right >= kernel)
        return false; /* a window that sees nothing of the input */
    if (g->alg == dnnl_pooling_avg_include_padding && right > left)
        return false; /* these windows count fewer elements */
    return (x->shape[at] + left + g->window.pad_right[k] - kernel) / stride + 1 == y->shape[at];
}

static tn_status geometry_read(tndnn_maker *m, const tn_tensor *x, const tn_tensor *y, geometry *g)
{
    const tn_value *a = m->node->attrs;
    const int64_t type = tn_attrs_int(a, TN_Pooling_pool_type);
    bool served = type == TN_Pooling_pool_type_max || type == TN_Pooling_pool_type_avg;

    g->last = tn_attrs_int(a, TN_Pooling_layout) >= TN_Pooling_layout_NDHWC;
    g->alg = type == TN_Pooling_pool_type_max                       ? dnnl_pooling_max
             : tn_attrs_opt_int(a, TN_Pooling_count_include_pad, 1) ? dnnl_pooling_avg_include_padding
                                                                    : dnnl_pooling_avg_exclude_padding;
    m->layouts = m->layouts && !g->last;
    if (g->alg == dnnl_pooling_max && !(m->layouts && tndnn_is_own(x->layout)))
        served = false;
    for (int32_t k = 0; served && k < x->ndim - 2; k++)
        served = window_read(a, x, y, k, g);
    if (!served)
        return tn_fail(m->err, TN_E_UNSUPPORTED, "oneDNN does not pool like this");
    tndnn_md_channels(&g->data, x, g->last);
    tndnn_md_channels(&g->output, y, g->last);
    return TN_OK;
}

static tn_status forward_pd(tndnn_maker *m, const geometry *g, int training, const tndnn_md *src,
                            dnnl_primitive_desc_t *pd)
{
    tndnn_md dst = g->output;
    dnnl_status_t made;
    tn_status st;

    if (!g->last)
        tndnn_md_any(&dst, g->output.ndims, g->output.dims);
    made = tndnn_pd_pooling(pd, m->engine, training, g->alg, src, &dst, &g->window, m->attr);
    if ((st = tndnn_fast(m, made, *pd, "pooling")) && !made) {
        (void)dnnl_primitive_desc_destroy(*pd);
        *pd = NULL;
    }
    return st;
}

static tn_status pooling_build(tndnn_maker *m)
{
    dnnl_primitive_desc_t pd = NULL;
    geometry g = {.last = false};
    tndnn_md src, dst;
    tndnn_place at;
    tn_status st;

    if ((st = geometry_read(m, m->node->in[0], m->node->out[0], &g)) ||
        (st = tndnn_keep_in(m, 0, &g.data, &src)) || (st = forward_pd(m, &g, 0, &src, &pd)))
        return st;
    dst = *tndnn_query(pd, dnnl_query_dst_md, 0);
    if ((st = tndnn_bind_out(m, 0, &g.output, &dst, &at))) {
        (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    if ((st = tndnn_step(m, dnnl_success, pd, "pooling")) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 0, 0}, &src)))
        return st;
    return tndnn_use_add(m, DNNL_ARG_DST, at, &dst);
}

/* ---- backward: dy, data to dx -------------------------------------------------------------------------- */

/* The forward pass once more: its output is thrown away, `where` is kept. `pd` stays the caller's. */
static tn_status maxima_step(tndnn_maker *m, const tndnn_md *src, const_dnnl_primitive_desc_t pd,
                             tndnn_place *where, tndnn_md *where_md)
{
    const tndnn_md dst = *tndnn_query(pd, dnnl_query_dst_md, 0);
    const tndnn_place out = tndnn_work(m, &dst);
    dnnl_primitive_desc_t copy = NULL;
    dnnl_status_t made;
    tn_status st;

    *where_md = *tndnn_query(pd, dnnl_query_workspace_md, 0);
    *where = tndnn_work(m, where_md);
    made = dnnl_primitive_desc_clone(&copy, pd);
    if ((st = tndnn_step(m, made, copy, "pooling")) ||
        (st = tndnn_use_add(m, DNNL_ARG_SRC, (tndnn_place){TNDNN_IN, 1, 0}, src)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DST, out, &dst)))
        return st;
    return tndnn_use_add(m, DNNL_ARG_WORKSPACE, *where, where_md);
}

static tn_status backward_step(tndnn_maker *m, const geometry *g, const tndnn_md *src,
                               dnnl_primitive_desc_t forward)
{
    const tndnn_md dy = *tndnn_query(forward, dnnl_query_dst_md, 0);
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_status_t made =
        tndnn_pd_pooling_back(&pd, m->engine, g->alg, src, &dy, &g->window, m->attr, forward);
    tndnn_place at[3];
    tndnn_md where;
    tn_status st = tndnn_fast(m, made, pd, "gradient of pooling");

    if (st || (st = tndnn_bind_in(m, 0, &g->output, &dy, &at[0])) ||
        (st = tndnn_bind_out(m, 0, &g->data, src, &at[1])) ||
        (g->alg == dnnl_pooling_max && (st = maxima_step(m, src, forward, &at[2], &where)))) {
        if (!made)
            (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    if ((st = tndnn_step(m, made, pd, "gradient of pooling")) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_DST, at[0], &dy)) ||
        (st = tndnn_use_add(m, DNNL_ARG_DIFF_SRC, at[1], src)))
        return st;
    return g->alg == dnnl_pooling_max ? tndnn_use_add(m, DNNL_ARG_WORKSPACE, at[2], &where) : TN_OK;
}

static tn_status backward_build(tndnn_maker *m)
{
    dnnl_primitive_desc_t forward = NULL;
    geometry g = {.last = false};
    tndnn_md src;
    tn_status st;

    if ((st = geometry_read(m, m->node->in[1], m->node->in[0], &g)) ||
        (st = tndnn_keep_in(m, 1, &g.data, &src)) || (st = forward_pd(m, &g, 1, &src, &forward)))
        return st;
    st = backward_step(m, &g, &src, forward);
    (void)dnnl_primitive_desc_destroy(forward);
    return st;
}

static tn_status pooling_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, 500 + NS_PER_ELEMENT * (double)tn_tensor_count(node->in[0]),
                         pooling_build, err);
}

static tn_status backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, 1000 + 2 * NS_PER_ELEMENT * (double)tn_tensor_count(node->in[1]),
                         backward_build, err);
}

static const char *const types[] = {"*:f32", NULL};

/* Below AVX-512 the library has no fast code for blocks of 16 channels. */
#define FAST_ISA "x86-64-v4"

static const tn_kernel pooling = TNDNN_KERNEL("Pooling", 128, FAST_ISA, types, pooling_prepare);
static const tn_kernel backward_pooling =
    TNDNN_KERNEL("_backward_Pooling", 128, FAST_ISA, types, backward_prepare);

const tn_kernel *const tndnn_family_pool[] = {&pooling, &backward_pooling, NULL};

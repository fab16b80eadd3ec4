/*
 * Private layouts: the library's descriptor of a memory order, in its canonical form, is what tn_layout.bytes
 * points to. Its dimensions are the tensor's, or split (groups of a weight); rows over them are the same
 * memory as the tensor without a layout.
 */
#include "onednn.h"

const char tndnn_owner[] = "cpu-onednn";

void tndnn_md_rows(tndnn_md *md, int ndims, const dnnl_dims_t dims)
{
    dnnl_dims_t strides;
    int64_t step = 1;

    for (int i = ndims; i-- > 0;) {
        strides[i] = step;
        step *= dims[i] > 0 ? dims[i] : 1;
    }
    tndnn_md_strided(md, ndims, dims, strides);
}

bool tndnn_is_own(const tn_layout *layout)
{
    return layout && !strcmp(layout->owner, tndnn_owner) && layout->byte_count == sizeof(tndnn_md);
}

bool tndnn_md_of(const tn_tensor *t, tndnn_md *md)
{
    const int ndims = t->ndim > 0 ? t->ndim : 1;
    dnnl_dims_t dims = {1};

    if (t->ndim > DNNL_MAX_NDIMS || (t->layout && !tndnn_is_own(t->layout)))
        return false;
    if (t->layout) {
        memcpy(md, t->layout->bytes, sizeof *md);
        return true;
    }
    for (int i = 0; i < t->ndim; i++)
        dims[i] = t->shape[i];
    tndnn_md_rows(md, ndims, dims);
    return true;
}

void tndnn_dims_read(const tn_tensor *t, bool last, dnnl_dims_t dims, dnnl_dims_t strides)
{
    const int n = t->ndim;
    int64_t step = 1;

    for (int k = n; k-- > 0;) {
        const int to = !last || k == 0 ? k : k == n - 1 ? 1 : k + 1;

        dims[to] = t->shape[k];
        strides[to] = step;
        step *= t->shape[k];
    }
}

void tndnn_md_channels(tndnn_md *md, const tn_tensor *t, bool last)
{
    dnnl_dims_t dims, strides;

    tndnn_dims_read(t, last, dims, strides);
    tndnn_md_strided(md, t->ndim, dims, strides);
}

bool tndnn_out_of_range(const tn_tensor *t)
{
    int64_t count = 1;

    if (t->ndim > DNNL_MAX_NDIMS)
        return true;
    for (int32_t i = 0; i < t->ndim; i++)
        if (t->shape[i] <= 0 || __builtin_mul_overflow(count, t->shape[i], &count) ||
            count > TNDNN_ELEMENTS_MAX)
            return true;
    return false;
}

/* ---- what a plan asks for ------------------------------------------------------------------------------ */

int64_t tndnn_md_count(const tndnn_md *md, int first)
{
    int64_t count = 1;

    for (int k = first; k < md->ndims; k++)
        count *= md->dims[k];
    return count;
}

void tndnn_layout_make(tndnn_layout *made, const tndnn_md *md)
{
    tndnn_md_canonical(&made->md, md);
    made->layout = (tn_layout){
        .struct_size = (uint32_t)sizeof made->layout,
        .owner = tndnn_owner,
        .bytes = &made->md,
        .byte_count = sizeof made->md,
        .memory_bytes = dnnl_memory_desc_get_size(md),
    };
    if (md->format_kind == dnnl_blocked &&
        made->layout.memory_bytes == (uint64_t)tndnn_md_count(md, 0) * sizeof(float))
        made->layout.flags = TN_LAYOUT_POINTWISE; /* no padding: every element of the memory is one of x */
}

/* Descriptors of rows are no layout: they are the tensor as it is without one. */
static const tn_layout *layout_add(tndnn_maker *m, const tndnn_md *md)
{
    tndnn_state *s = m->state;
    tndnn_layout *made = &s->layouts[s->layout_count];

    if (s->layout_count == s->layout_max)
        return NULL;
    s->layout_count++;
    tndnn_layout_make(made, md);
    return &made->layout;
}

tn_status tndnn_ask_in(tndnn_maker *m, uint32_t in, const tndnn_md *md)
{
    m->plan->in_layout[in] = layout_add(m, md);
    return m->plan->in_layout[in] ? TN_OK : tn_fail(m->err, TN_E_INTERNAL, "too many layouts");
}

tn_status tndnn_ask_out(tndnn_maker *m, uint32_t out, const tndnn_md *md)
{
    m->plan->out_layout[out] = layout_add(m, md);
    return m->plan->out_layout[out] ? TN_OK : tn_fail(m->err, TN_E_INTERNAL, "too many layouts");
}

/* What an input comes in. */
static void have_of(const tndnn_maker *m, uint32_t in, const tndnn_md *dense, tndnn_md *have)
{
    const tn_layout *asked = m->plan->in_layout[in];

    *have = *dense;
    if (asked)
        memcpy(have, asked->bytes, sizeof *have);
}

tn_status tndnn_bring_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *want,
                         tndnn_place to)
{
    tndnn_md have;

    have_of(m, in, dense, &have);
    return tndnn_reorder(m, (tndnn_place){TNDNN_IN, in, 0}, &have, to, want);
}

tn_status tndnn_bind_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, const tndnn_md *want,
                        tndnn_place *at)
{
    const uint64_t bit = in < 64 ? UINT64_C(1) << in : 0;
    tndnn_md have;

    *at = (tndnn_place){TNDNN_IN, in, 0};
    have_of(m, in, dense, &have);
    if (tndnn_md_equal(&have, want)) {
        m->rows_in |= m->plan->in_layout[in] ? 0 : bit;
        return TN_OK;
    }
    if (m->layouts && !m->again && !m->plan->in_layout[in] && !(m->rows_in & bit))
        return tndnn_ask_in(m, in, want);
    *at = tndnn_work(m, want);
    return tndnn_bring_in(m, in, dense, want, *at);
}

tn_status tndnn_late_add(tndnn_maker *m, uint32_t out, const tndnn_md *want, const tndnn_md *made,
                         tndnn_place *at)
{
    *at = (tndnn_place){TNDNN_OUT, out, 0};
    if (tndnn_md_equal(want, made))
        return TN_OK;
    if (m->late_count == TNDNN_LATE_MAX)
        return tn_fail(m->err, TN_E_INTERNAL, "too many outputs to reorder");
    *at = tndnn_work(m, made);
    m->late[m->late_count++] = (tndnn_late){.from = *at, .out = out, .made = *made, .want = *want};
    return TN_OK;
}

tn_status tndnn_bind_out(tndnn_maker *m, uint32_t out, const tndnn_md *dense, const tndnn_md *made,
                         tndnn_place *at)
{
    const tn_layout *asked = m->plan->out_layout[out];
    tndnn_md want = *dense;

    if (asked)
        memcpy(&want, asked->bytes, sizeof want);
    *at = (tndnn_place){TNDNN_OUT, out, 0};
    if (m->layouts && !m->again && !tndnn_md_equal(dense, made))
        return tndnn_ask_out(m, out, made);
    return tndnn_late_add(m, out, &want, made, at);
}

tn_status tndnn_keep_in(tndnn_maker *m, uint32_t in, const tndnn_md *dense, tndnn_md *md)
{
    const tn_layout *offered = m->node->in[in]->layout;

    *md = *dense;
    if (!m->layouts || !tndnn_is_own(offered))
        return TN_OK;
    memcpy(md, offered->bytes, sizeof *md);
    return m->again ? TN_OK : tndnn_ask_in(m, in, md);
}

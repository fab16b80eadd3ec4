/*
 * Concat. Inputs that come in blocks of channels stay so where every input fills its blocks; otherwise all
 * are rows. Long rows are left to the plain kernel, which copies 4 MiB in 0.13 ms where the library takes
 * 2.4.
 */
#include "onednn.h"

#define INPUTS_MAX 16
#define ROWS_MAX 4096 /* elements of a result that is made of rows here */

typedef struct join {
    tndnn_md dense[INPUTS_MAX], md[INPUTS_MAX];
    tndnn_place at[INPUTS_MAX];
    int count, axis;
} join;

/* True if all inputs can be taken in blocks, and one comes in them. */
static bool blocks_describe(const tndnn_maker *m, join *j)
{
    bool offered = false;

    for (int i = 0; i < j->count; i++) {
        const tn_tensor *x = m->node->in[i];
        tndnn_md have;

        if (x->ndim < 3 || x->shape[1] % 16 || !tndnn_md_blocks(&j->md[i], x->ndim, j->dense[i].dims))
            return false;
        offered |= tndnn_is_own(x->layout) && tndnn_md_of(x, &have) && tndnn_md_equal(&have, &j->md[i]);
    }
    return offered;
}

static tn_status inputs_bind(tndnn_maker *m, join *j)
{
    tn_status st = TN_OK;

    if (!m->layouts || !blocks_describe(m, j)) {
        if (tn_tensor_count(m->node->out[0]) > ROWS_MAX)
            return tn_fail(m->err, TN_E_UNSUPPORTED, "long rows, which the plain kernel copies");
        memcpy(j->md, j->dense, sizeof j->md);
    }
    for (int i = 0; !st && i < j->count; i++)
        st = tndnn_bind_in(m, (uint32_t)i, &j->dense[i], &j->md[i], &j->at[i]);
    return st;
}

static tn_status join_steps(tndnn_maker *m, join *j, const tndnn_md *dense, dnnl_primitive_desc_t pd)
{
    const tndnn_md dst = *tndnn_query(pd, dnnl_query_dst_md, 0);
    tndnn_place out;
    tn_status st = tndnn_bind_out(m, 0, dense, &dst, &out);

    if (st) {
        (void)dnnl_primitive_desc_destroy(pd);
        return st;
    }
    st = tndnn_step(m, dnnl_success, pd, "Concat");
    for (int i = 0; !st && i < j->count; i++)
        st = tndnn_use_add(m, DNNL_ARG_MULTIPLE_SRC + i, j->at[i], &j->md[i]);
    return st ? st : tndnn_use_add(m, DNNL_ARG_DST, out, &dst);
}

static tn_status join_build(tndnn_maker *m)
{
    join j = {.count = (int)m->node->in_count};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t made;
    tndnn_md dense;
    tn_status st;

    if (j.count < 1 || j.count > INPUTS_MAX || m->node->out[0]->ndim < 1)
        return tn_failf(m->err, TN_E_UNSUPPORTED, "Concat of more than %d tensors", INPUTS_MAX);
    j.axis = tncpu_axis(tn_attrs_int(m->node->attrs, TN_Concat_dim), m->node->out[0]->ndim);
    for (int i = 0; i < j.count; i++)
        tndnn_md_channels(&j.dense[i], m->node->in[i], false);
    tndnn_md_channels(&dense, m->node->out[0], false);
    if ((st = inputs_bind(m, &j)))
        return st;
    made = tndnn_pd_concat(&pd, m->engine, NULL, j.count, j.axis, j.md, m->attr);
    st = tndnn_status(made, "Concat", m->err);
    return st ? st : join_steps(m, &j, &dense, pd);
}

static tn_status join_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tndnn_prepare(plugin, node, plan, 500 + 0.4 * (double)tn_tensor_count(node->out[0]), join_build,
                         err);
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel concat = TNDNN_KERNEL("Concat", 128, "", types, join_prepare);

const tn_kernel *const tndnn_family_join[] = {&concat, NULL};

/* _reorder: between rows and a layout of this plugin, or between two of them. */
#include "onednn.h"

/* The side without a layout is rows over the dimensions of the other. */
static tn_status reorder_sides(tndnn_maker *m, tndnn_md *from, tndnn_md *to)
{
    const tn_tensor *x = m->node->in[0], *y = m->node->out[0];
    const tn_layout *known = x->layout ? x->layout : y->layout;

    if ((x->layout && !tndnn_is_own(x->layout)) || (y->layout && !tndnn_is_own(y->layout)))
        return tn_fail(m->err, TN_E_UNSUPPORTED, "the layout of another plugin");
    if (known)
        memcpy(from, known->bytes, sizeof *from);
    else
        (void)tndnn_md_of(x, from);
    *to = *from;
    if (!x->layout)
        tndnn_md_rows(from, to->ndims, to->dims);
    if (!y->layout)
        tndnn_md_rows(to, from->ndims, from->dims);
    else
        memcpy(to, y->layout->bytes, sizeof *to);
    return TN_OK;
}

static tn_status reorder_build(tndnn_maker *m)
{
    tndnn_md from, to;
    tn_status st = reorder_sides(m, &from, &to);

    if (st)
        return st;
    return tndnn_reorder(m, (tndnn_place){TNDNN_IN, 0, 0}, &from, (tndnn_place){TNDNN_OUT, 0, 0}, &to);
}

/* The layouts of the node are given: a plan that asks for them says that it takes them as they are. */
static tn_status reorder_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tndnn_wino_reorder(plugin, node, plan, err);

    if (st != TN_E_UNSUPPORTED)
        return st;
    st = tndnn_prepare(plugin, node, plan, 100 + 0.4 * (double)tn_tensor_count(node->in[0]), reorder_build,
                       err);
    if (st)
        return st;
    plan->in_layout[0] = node->in[0]->layout;
    plan->out_layout[0] = node->out[0]->layout;
    return TN_OK;
}

static const char *const types[] = {"*:f32", NULL};

static const tn_kernel reorder = TNDNN_KERNEL("_reorder", 128, "", types, reorder_prepare);

const tn_kernel *const tndnn_family_reorder[] = {&reorder, NULL};

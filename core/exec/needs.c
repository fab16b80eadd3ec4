/*
 * Which arrays a gradient reads: its function is run once on edges that only count. Where only the shape of
 * one is read (tn_op.shapes_only), the signature of the call knows it. While that does not know the shapes of
 * outputs, arrays have to tell them: also for head gradients of nodes with several outputs, which may be
 * missing later and are then zeros in the shape of the output.
 */
#include "exec/internal.h"

typedef struct dry_run {
    tn_grad grad;
    uint64_t in, out;
    tni_opset *ops;
    bool sized;
    char input, output, head, made; /* their addresses tell the kinds of edges apart */
} dry_run;

static tn_edge edge_of(void *node, uint32_t index)
{
    return (tn_edge){.node = node, .index = index};
}

static tn_edge dry_input(tn_grad *g, uint32_t index)
{
    return edge_of(&((dry_run *)g->self)->input, index);
}

static tn_edge dry_output(tn_grad *g, uint32_t index)
{
    return edge_of(&((dry_run *)g->self)->output, index);
}

static tn_edge dry_head(tn_grad *g, uint32_t index)
{
    return edge_of(&((dry_run *)g->self)->head, index);
}

static int32_t dry_needs(tn_grad *g, uint32_t index)
{
    (void)g;
    (void)index;
    return 1;
}

static void dry_count(dry_run *d, tn_edge e)
{
    const uint64_t bit = e.index < 64 ? (uint64_t)1 << e.index : 0;

    if (e.node == &d->input)
        d->in |= bit;
    else if (e.node == &d->output || (e.node == &d->head && d->grad.out_count > 1 && !d->sized))
        d->out |= bit;
}

static tn_status dry_emit(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    dry_run *d = g->self;

    const tni_opdef *def = NULL;
    const tn_status st = d->sized ? tni_opset_find(d->ops, e->op, &def) : TN_OK;

    if (st == TN_E_NOMEM)
        return st;
    if (st) /* an error only if somebody asks for the gradient */
        tni_error_clear();
    for (uint32_t i = 0; i < e->in_count; i++)
        if (!def || !tn_op_shape_only(def->op, e->in_count, i))
            dry_count(d, e->in[i]);
    *out = edge_of(&d->made, 0);
    return TN_OK;
}

static tn_status dry_set(tn_grad *g, uint32_t input, tn_edge edge)
{
    (void)input;
    dry_count(g->self, edge);
    return TN_OK;
}

static const tn_grad_ops dry_ops = {
    .struct_size = (uint32_t)TN_END(tn_grad_ops, set),
    .input = dry_input,
    .output = dry_output,
    .head = dry_head,
    .needs = dry_needs,
    .emit = dry_emit,
    .set = dry_set,
};

tn_status tni_gradient_needs(tni_opset *ops, bool sized, const tni_opdef *def, const tni_attrs *attrs,
                             uint32_t in_count, uint32_t out_count, uint64_t *need_in, uint64_t *need_out)
{
    tn_err err = {0};
    dry_run d = {.ops = ops, .sized = sized};
    tn_status st;

    *need_in = *need_out = 0;
    if (!def->op->gradient)
        return TN_OK; /* an error only if somebody asks for the gradient */
    d.grad.struct_size = (uint32_t)TN_END(tn_grad, self);
    d.grad.op = tni_op_argument(def, TNI_OF_GRADIENT);
    d.grad.attrs = attrs->values;
    d.grad.attr_count = def->attr_count;
    d.grad.in_count = in_count;
    d.grad.out_count = out_count;
    d.grad.err = &err;
    d.grad.ops = &dry_ops;
    d.grad.self = &d;
    if ((st = def->op->gradient(&d.grad)))
        return tni_error_take(st, &err, def->op->name);
    if (in_count > 64)
        d.in = UINT64_MAX;
    *need_in = d.in;
    *need_out = d.out;
    return TN_OK;
}

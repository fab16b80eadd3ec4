/* Gradients of gradients that several families share: products of two operands are linear in each. */
#include <string.h>

#include "op/infer_help.h"

/* A node with inherited attributes that is no backward of this one: its kernel knows nothing of it. */
static tn_edge node(tn_grad *g, tn_status *st, const char *op, uint32_t count, const tn_edge *in,
                    const tn_attr_text *attr)
{
    const tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, op, in, attr, count, attr != NULL};
    tn_edge out = {NULL, 0, 0};

    if (!*st)
        *st = g->ops->emit(g, &e, &out);
    return out;
}

static const char *forward_name(const tn_grad *g)
{
    return g->op->name + strlen("_backward_");
}

/* To dy: op(h0, b) + op(a, h1) + h2, the bias. */
static tn_edge product_to_dy(tn_grad *g, tn_status *st, tn_edge a, tn_edge b)
{
    const tn_attr_text plain = {"no_bias", "True"};
    const tn_attr_text *const bare = g->out_count > 2 ? &plain : NULL;
    const tn_edge left[] = {tn_grad_of(g, 0), b};
    const tn_edge right[] = {a, tn_grad_of(g, 1), g->out_count > 2 ? tn_grad_of(g, 2) : a};
    const bool biased = g->out_count > 2 && right[2].node;
    tn_edge x = {NULL, 0, 0}, y = {NULL, 0, 0};

    if (left[0].node)
        x = node(g, st, forward_name(g), 2, left, bare);
    if (right[1].node || biased)
        y = node(g, st, forward_name(g), biased ? 3 : 2, right, biased ? NULL : bare);
    return !x.node ? y : !y.node ? x : tni_grad_op2(g, st, "_grad_add", x, y);
}

tn_status tni_grad_of_product(tn_grad *g)
{
    const tn_edge dy = tn_grad_input(g, 0), a = tn_grad_input(g, 1), b = tn_grad_input(g, 2);
    const tn_edge to_a[] = {dy, a, tn_grad_of(g, 1)}, to_b[] = {dy, tn_grad_of(g, 0), b};
    tn_edge made;
    tn_status st = TN_OK;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if (g->ops->needs(g, 0))
        st = tni_grad_set(g, &st, 0, product_to_dy(g, &st, a, b));
    if (!st && g->ops->needs(g, 1) && to_a[2].node)
        st = tni_grad_set(g, &st, 1, node(g, &st, g->op->name, 3, to_a, NULL));
    if (st || !g->ops->needs(g, 2) || !to_b[1].node)
        return st;
    made = node(g, &st, g->op->name, 3, to_b, NULL);
    made.index = 1;
    return tni_grad_set(g, &st, 2, made);
}

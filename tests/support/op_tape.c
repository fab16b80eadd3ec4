/*
 * Gradients without a graph: nodes are evaluated the moment they are made, so a definition's gradient
 * function runs on values. The tape keeps them in order; going back over it emits further nodes, over which
 * one can go back again.
 */
#include "op_run.h"

#include <stdlib.h>
#include <string.h>

typedef struct tape_node {
    op_node n;
    bool variable;
    op_tensor own; /* of a variable: a borrowed view */
    tn_edge in[OP_ARGS_MAX];
} tape_node;

struct op_tape {
    tape_node **nodes;
    size_t count, capacity;
    uint32_t flags;
};

op_tape *op_tape_create(uint32_t flags)
{
    op_tape *t = calloc(1, sizeof *t);

    t->flags = flags;
    return t;
}

void op_tape_destroy(op_tape *t)
{
    while (t->count-- > 0) {
        if (!t->nodes[t->count]->variable)
            op_node_free(&t->nodes[t->count]->n);
        free(t->nodes[t->count]);
    }
    free(t->nodes);
    free(t);
}

static tape_node *node_add(op_tape *t)
{
    tape_node *n = calloc(1, sizeof *n);

    if (t->count == t->capacity) {
        t->capacity = 2 * t->capacity + 16;
        t->nodes = realloc(t->nodes, t->capacity * sizeof(tape_node *));
    }
    t->nodes[t->count++] = n;
    return n;
}

tn_edge op_tape_input(op_tape *t, const op_tensor *value)
{
    tape_node *n = node_add(t);

    n->variable = true;
    n->own = *value;
    n->own.t.shape = n->own.shape;
    n->own.t.stride = n->own.stride;
    return (tn_edge){n, 0, 0};
}

static op_tensor *value_of(tn_edge e)
{
    tape_node *n = e.node;

    return n->variable ? &n->own : &n->n.out[e.index];
}

const op_tensor *op_tape_value(const op_tape *t, tn_edge e)
{
    (void)t;
    return value_of(e);
}

uint32_t op_tape_outputs(const op_tape *t, tn_edge e)
{
    (void)t;
    return ((tape_node *)e.node)->n.args.visible_count;
}

static void shape_of(const op_tensor *v, tn_shape *s)
{
    s->ndim = v->t.ndim;
    memcpy(s->dim, v->shape, sizeof s->dim);
}

tn_status op_tape_invoke(op_tape *t, const tni_opdef *def, const tni_attrs *attrs, uint32_t count,
                         const tn_edge *in, const op_node *forward, tn_edge *out)
{
    op_form form = {.threads = 1, .node_flags = t->flags, .mode = TN_MODE_WRITE, .recorded = true};
    tn_shape in_shape[OP_ARGS_MAX], out_shape[OP_ARGS_MAX];
    int32_t in_dtype[OP_ARGS_MAX], out_dtype[OP_ARGS_MAX];
    op_tensor zeros[OP_ARGS_MAX], *values[OP_ARGS_MAX];
    op_kernel kernels[8];
    size_t kernel_count;
    tape_node *n;
    tni_args args;
    tn_status st;

    if ((st = tni_op_args(def, attrs, count, &args)))
        return st;
    if (args.in_count != count)
        return tni_error(TN_E_ARG, "%s takes %u inputs, a gradient gives %u", def->op->name, args.in_count,
                         count);
    for (uint32_t i = 0; i < OP_ARGS_MAX; i++) {
        in_shape[i].ndim = out_shape[i].ndim = -1;
        in_dtype[i] = out_dtype[i] = -1;
        if (i < count && in[i].node) {
            shape_of(value_of(in[i]), &in_shape[i]);
            in_dtype[i] = value_of(in[i])->t.dtype;
        }
    }
    if ((st = op_infer(def, attrs, &args, t->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0, in_shape, out_shape,
                       in_dtype, out_dtype)))
        return st;
    if ((kernel_count = op_kernels_find(def, &args, in_dtype, out_dtype, kernels, 8)) == 0)
        return tni_error(TN_E_UNSUPPORTED, "%s has no kernel for these data types", def->op->name);
    for (uint32_t i = 0; i < count; i++) {
        memset(&zeros[i], 0, sizeof zeros[i]);
        if (in[i].node) {
            values[i] = value_of(in[i]);
            continue;
        }
        op_tensor_create(&zeros[i], in_dtype[i], in_shape[i].ndim, in_shape[i].dim, false);
        memset(zeros[i].block, 0, (size_t)zeros[i].t.bytes);
        values[i] = &zeros[i];
    }
    n = node_add(t);
    memcpy(n->in, in, count * sizeof *in);
    st = TN_E_UNSUPPORTED;
    for (size_t k = 0; k < kernel_count && st == TN_E_UNSUPPORTED; k++) { /* the next one, as the core does */
        if (k > 0)
            op_node_free(&n->n);
        n->n = (op_node){.def = def, .attrs = tni_attrs_retain(attrs), .args = args, .kernel = kernels[k]};
        st = op_node_run(&n->n, values, out_shape, out_dtype, &form, forward);
    }
    for (uint32_t i = 0; i < count; i++)
        op_tensor_free(&zeros[i]);
    *out = (tn_edge){n, 0, 0};
    return st ? tni_error(st, "%s: %s", def->op->name, op_error()->message) : TN_OK;
}

/* ---- going back ------------------------------------------------------------------------------- */

typedef struct slot { /* the gradient of one output, as it grows */
    tn_edge edge, sum;
} slot;

typedef struct walk {
    op_tape *tape;
    slot *slots;
    size_t count;
    tape_node *at;
    tn_status st;
} walk;

static tn_edge sum_of(const walk *w, tn_edge edge)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->slots[i].edge.node == edge.node && w->slots[i].edge.index == edge.index)
            return w->slots[i].sum;
    return (tn_edge){NULL, 0, 0};
}

static tn_status sum_add(walk *w, tn_edge edge, tn_edge grad)
{
    const tni_opdef *def;
    tni_attrs *attrs;
    tn_status st;

    for (size_t i = 0; i < w->count; i++)
        if (w->slots[i].edge.node == edge.node && w->slots[i].edge.index == edge.index) {
            const tn_edge both[] = {w->slots[i].sum, grad};

            if ((st = tni_opset_find(op_set(), "elemwise_add", &def)) ||
                (st = tni_attrs_parse(def, 0, NULL, NULL, &attrs)))
                return st;
            st = op_tape_invoke(w->tape, def, attrs, 2, both, NULL, &w->slots[i].sum);
            tni_attrs_release(attrs);
            return st;
        }
    w->slots = realloc(w->slots, (w->count + 1) * sizeof *w->slots);
    w->slots[w->count++] = (slot){edge, grad};
    return TN_OK;
}

static walk *walk_of(tn_grad *g)
{
    return g->self;
}

static tn_edge grad_input(tn_grad *g, uint32_t index)
{
    return walk_of(g)->at->in[index];
}

static tn_edge grad_output(tn_grad *g, uint32_t index)
{
    return (tn_edge){walk_of(g)->at, index, 0};
}

static tn_edge grad_head(tn_grad *g, uint32_t index)
{
    return sum_of(walk_of(g), grad_output(g, index));
}

static int32_t grad_needs(tn_grad *g, uint32_t index)
{
    return walk_of(g)->at->in[index].node != NULL;
}

static tn_status grad_emit(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    walk *w = walk_of(g);
    const tni_opdef *def;
    tni_attrs *attrs = NULL;
    tn_status st = tni_opset_find(op_set(), e->op, &def);

    if (!st)
        st = tni_attrs_inherit(def, e->flags & TN_EMIT_INHERIT ? w->at->n.attrs : NULL, e->attr_count,
                               e->attrs, &attrs);
    if (!st)
        st = op_tape_invoke(w->tape, def, attrs, e->in_count, e->in,
                            e->flags & TN_EMIT_BACKWARD ? &w->at->n : NULL, out);
    if (st)
        w->st = st;
    tni_attrs_release(attrs);
    return st;
}

static tn_status grad_set(tn_grad *g, uint32_t input, tn_edge edge)
{
    walk *w = walk_of(g);
    const op_tensor *a, *b;

    if (input >= w->at->n.args.in_count || !edge.node)
        return tni_error(TN_E_INTERNAL, "gradient of input %u of %s", input, w->at->n.def->op->name);
    if (!w->at->in[input].node)
        return TN_OK;
    a = value_of(edge);
    b = value_of(w->at->in[input]);
    if (edge.index >= (((tape_node *)edge.node)->variable ? 1 : ((tape_node *)edge.node)->n.args.out_count) ||
        a->t.ndim != b->t.ndim || memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->t.ndim) != 0)
        return w->st = tni_error(TN_E_SHAPE, "%s: the gradient of input %u has not its shape",
                                 w->at->n.def->op->name, input);
    return w->st = sum_add(w, w->at->in[input], edge);
}

static const tn_grad_ops grad_ops = {(uint32_t)TN_END(tn_grad_ops, set),
                                     0,
                                     grad_input,
                                     grad_output,
                                     grad_head,
                                     grad_needs,
                                     grad_emit,
                                     grad_set};

static tn_status node_back(walk *w)
{
    const tni_opdef *def = w->at->n.def;
    tn_err err = {0};
    tn_grad g = {.struct_size = TN_END(tn_grad, self),
                 .flags = w->tape->flags & TN_NODE_TRAIN ? TN_GRAD_TRAIN : 0u,
                 .op = tni_op_argument(def, TNI_OF_GRADIENT),
                 .attrs = w->at->n.attrs->values,
                 .attr_count = def->attr_count,
                 .in_count = w->at->n.args.in_count,
                 .out_count = w->at->n.args.out_count,
                 .err = &err,
                 .ops = &grad_ops,
                 .self = w};
    bool arrives = false;
    tn_status st;

    for (uint32_t i = 0; i < g.out_count; i++)
        arrives = arrives || grad_head(&g, i).node;
    if (!arrives || (def->op->flags & TN_OP_ZERO_GRADIENT))
        return TN_OK;
    if (!def->op->gradient)
        return tni_error(TN_E_UNSUPPORTED, "%s has no gradient", def->op->name);
    st = def->op->gradient(&g);
    if (st && w->st != st)
        return tni_error(st, "gradient of %s: %s", def->op->name, err.message);
    return st;
}

tn_status op_tape_backward(op_tape *t, uint32_t heads, const tn_edge *edges, const tn_edge *grads,
                           uint32_t count, const tn_edge *wrt, tn_edge *out)
{
    walk w = {.tape = t};
    size_t nodes = t->count;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < heads; i++)
        st = sum_add(&w, edges[i], grads[i]);
    while (!st && nodes-- > 0) {
        w.at = t->nodes[nodes];
        if (!w.at->variable)
            st = node_back(&w);
    }
    for (uint32_t i = 0; !st && i < count; i++)
        out[i] = sum_of(&w, wrt[i]);
    free(w.slots);
    return st;
}

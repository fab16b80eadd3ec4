/*
 * Problems for backward operators. What their inputs are is said by the forward's gradient function alone: so
 * the forward's problems are made, its gradient is built, and what the backward node is fed with is computed:
 * inputs, outputs, heads, and the outputs of other nodes that the gradient makes.
 */
#include <string.h>

#include "generate.h"

#define EMITTED_MAX 32
#define FORWARDS_MAX 4

typedef struct value {
    tn_shape shape;
    int32_t dtype;
    void *data;
} value;

/* An input or a head of the forward, the forward itself, or a node that its gradient made. */
typedef struct vertex {
    const tn_op *op; /* NULL: an input or a head */
    const chk_problem *problem;
    chk_attrs attrs;
    tn_edge *in;
    uint32_t in_count, out_count;
    bool computed, failed;
    value *out;
} vertex;

typedef struct tape {
    chk_lab *lab;
    const chk_problem *forward;
    vertex *inputs, *heads, self;
    vertex *emitted[EMITTED_MAX];
    uint32_t emitted_count, in_count, visible_count;
    const char *looked_for; /* names only: */
    bool found;
} tape;

/* ---- what a gradient function is given --------------------------------------------------------------- */

static tn_edge edge_of(vertex *v, uint32_t index)
{
    return (tn_edge){v, index, 0};
}

static tn_edge grad_input(tn_grad *g, uint32_t index)
{
    tape *t = g->self;

    return edge_of(index < t->in_count ? &t->inputs[index] : NULL, 0);
}

static tn_edge grad_output(tn_grad *g, uint32_t index)
{
    tape *t = g->self;

    return edge_of(&t->self, index);
}

static tn_edge grad_head(tn_grad *g, uint32_t index)
{
    tape *t = g->self;

    return edge_of(index < t->visible_count ? &t->heads[index] : NULL, 0);
}

static int32_t grad_needs(tn_grad *g, uint32_t index)
{
    (void)g;
    (void)index;
    return 1;
}

static tn_status grad_emit(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    tape *t = g->self;
    vertex *v;

    if (t->emitted_count == EMITTED_MAX || e->in_count > CHK_ARGS_MAX)
        return TN_E_UNSUPPORTED;
    v = chk_take(&t->lab->arena, sizeof *v);
    t->emitted[t->emitted_count++] = v;
    *out = edge_of(v, 0);
    if (t->looked_for) {
        t->found |= !strcmp(e->op, t->looked_for);
        return TN_OK;
    }
    v->op = chk_op_find(t->lab, e->op);
    v->in_count = e->in_count;
    v->in = chk_take(&t->lab->arena, (e->in_count + 1u) * sizeof *e->in);
    memcpy(v->in, e->in, e->in_count * sizeof *e->in);
    v->failed =
        !v->op || !chk_attrs_inherit(&t->lab->arena, v->op, t->forward->op, &t->forward->attrs, e, &v->attrs);
    return TN_OK;
}

static tn_status grad_set(tn_grad *g, uint32_t input, tn_edge edge)
{
    (void)g;
    (void)input;
    (void)edge;
    return TN_OK;
}

static const tn_grad_ops grad_ops = {.struct_size = (uint32_t)TN_END(tn_grad_ops, set),
                                     .input = grad_input,
                                     .output = grad_output,
                                     .head = grad_head,
                                     .needs = grad_needs,
                                     .emit = grad_emit,
                                     .set = grad_set};

static tape *tape_make(chk_lab *lab, const chk_args *args)
{
    tape *t = chk_take(&lab->arena, sizeof *t);

    t->lab = lab;
    t->inputs = chk_take(&lab->arena, (args->in_count + args->out_count + 1u) * sizeof *t->inputs);
    t->heads = t->inputs + args->in_count;
    return t;
}

static tn_status gradient_call(tape *t, const tn_op *op, const chk_attrs *attrs, const chk_args *args)
{
    tn_err err;
    tn_grad g = {.struct_size = (uint32_t)TN_END(tn_grad, self),
                 .op = CHK_TOLD(op, gradient),
                 .attrs = attrs->values,
                 .attr_count = attrs->count,
                 .in_count = args->in_count,
                 .out_count = args->out_count,
                 .err = &err,
                 .ops = &grad_ops,
                 .self = t};

    memset(&err, 0, sizeof err);
    t->in_count = args->in_count;
    t->visible_count = args->visible_count;
    return op->gradient(&g);
}

/* ---- values ------------------------------------------------------------------------------------------ */

static bool vertex_compute(tape *t, vertex *v);

static const value *edge_value(tape *t, tn_edge e)
{
    vertex *v = e.node;

    return v && vertex_compute(t, v) && e.index < v->out_count ? &v->out[e.index] : NULL;
}

/* The call that a vertex stands for; false: an input cannot be computed, or inference refuses. */
static bool vertex_problem(tape *t, vertex *v, chk_problem *p)
{
    bool ignored;
    tn_err err;

    p->op = v->op;
    p->attrs = v->attrs;
    p->flags = t->forward->flags;
    p->rank = t->forward->rank;
    p->forward = t->forward;
    if (v->failed || chk_infer_args(v->op, &v->attrs, v->in_count, &p->f.args, &err) ||
        p->f.args.in_count != v->in_count)
        return false;
    chk_facts_unknown(&p->f);
    for (uint32_t i = 0; i < v->in_count; i++) {
        const value *in = edge_value(t, v->in[i]);

        if (!in)
            return false;
        p->f.shape[i] = in->shape;
        p->f.dtype[i] = in->dtype;
        p->in_data[i] = in->data;
    }
    ignored = chk_infer_dtypes(v->op, &v->attrs, &p->f, &err) ||
              chk_infer_shapes(v->op, &v->attrs, p->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0, &p->f, &err);
    for (uint32_t o = v->in_count; o < chk_all(&p->f) && !ignored; o++)
        ignored = !tn_shape_known(&p->f.shape[o]) || p->f.dtype[o] < 0;
    chk_problem_finish(p);
    p->text = ignored ? "" : chk_problem_text(t->lab, p);
    return !ignored;
}

static bool vertex_run(tape *t, vertex *v, const chk_problem *p)
{
    chk_outputs outputs;
    chk_side side;
    tn_err err;

    if (!chk_side_find(t->lab, t->lab->reference, p, &side) &&
        !chk_side_find(t->lab, t->lab->plugin.descriptor, p, &side) && !chk_side_beside(t->lab, p, &side))
        return false;
    if (chk_outputs_of(t->lab, &side, p, &outputs, &err))
        return false;
    v->out_count = p->f.args.out_count;
    v->out = chk_take(&t->lab->arena, (v->out_count + 1u) * sizeof *v->out);
    for (uint32_t o = 0; o < v->out_count; o++)
        v->out[o] = (value){p->f.shape[chk_out(&p->f, o)], p->f.dtype[chk_out(&p->f, o)], outputs.data[o]};
    return true;
}

static bool vertex_compute(tape *t, vertex *v)
{
    chk_problem *p;

    if (v->computed || v->failed)
        return !v->failed;
    v->computed = true; /* no cycles */
    if (v->problem) {
        v->failed = v->problem->resizes || !vertex_run(t, v, v->problem);
        return !v->failed;
    }
    p = chk_take(&t->lab->arena, sizeof *p);
    v->failed = !vertex_problem(t, v, p) || !vertex_run(t, v, p);
    return !v->failed;
}

static void vertex_set(tape *t, vertex *v, const tn_shape *s, int32_t dtype, void *data)
{
    v->computed = true;
    v->out_count = 1;
    v->out = chk_take(&t->lab->arena, sizeof *v->out);
    *v->out = (value){*s, dtype, data};
}

static tape *tape_of(chk_lab *lab, const chk_problem *p)
{
    const chk_facts *f = &p->f;
    tape *t = tape_make(lab, &f->args);

    t->forward = p;
    t->self.op = p->op;
    t->self.problem = p;
    for (uint32_t i = 0; i < f->args.in_count; i++)
        vertex_set(t, &t->inputs[i], &f->shape[i], f->dtype[i], p->in_data[i]);
    for (uint32_t o = 0; o < f->args.out_count; o++) {
        const tn_shape *shape = &f->shape[chk_out(f, o)];
        const int32_t dtype = f->dtype[chk_out(f, o)];
        const int64_t count = chk_shape_elements(shape, INT64_MAX / 16);
        void *data = chk_take(&lab->arena, (uint64_t)(count < 0 ? 0 : count) * 8 + 1);

        if (count < 0)
            continue;
        chk_fill(data, dtype, count, chk_is_float(dtype) ? -1 : 0, 2, chk_mix(lab->env->seed + 1000 + o));
        vertex_set(t, &t->heads[o], shape, dtype, data);
    }
    return t;
}

/* ---- visits ------------------------------------------------------------------------------------------ */

typedef struct relay {
    chk_visit visit;
    void *arg;
    uint32_t made;
    bool go_on;
} relay;

static bool forward_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    relay *r = arg;
    tape *t;

    if (p->resizes)
        return true;
    t = tape_of(lab, p);
    if (gradient_call(t, p->op, &p->attrs, &p->f.args))
        return true;
    for (uint32_t k = 0; k < t->emitted_count && r->go_on; k++) {
        chk_problem *made = chk_take(&lab->arena, sizeof *made);

        if (t->emitted[k]->op != lab->op || !vertex_problem(t, t->emitted[k], made) ||
            (lab->side.kernel && !chk_kernel_matches(lab, lab->side.kernel, made)))
            continue;
        r->made++;
        r->go_on = !chk_is_wanted(lab, made) || r->visit(lab, made, r->arg);
    }
    return r->go_on;
}

/* Does the gradient of `op` make a node of operator `name`? Its first sets of attributes are tried. */
static bool emits(chk_lab *lab, const tn_op *op, const char *name)
{
    const chk_mark mark = chk_mark_set(&lab->arena);
    generator g = {.lab = lab, .op = op, .bases_most = 3};
    chk_base *bases;
    tape *t;
    uint32_t count;
    chk_args args;
    tn_err err;
    bool found = false;

    if (op->gradient && op->struct_size >= TN_END(tn_op, gradient) && op != lab->op) {
        bases = chk_take(&lab->arena, CHK_BASES_MAX * sizeof *bases);
        count = chk_bases(&g, bases);
        for (uint32_t i = 0; i < count && !found; i++) {
            if (chk_infer_args(op, &bases[i].attrs, 2, &args, &err))
                continue;
            t = tape_make(lab, &args);
            t->looked_for = name;
            (void)gradient_call(t, op, &bases[i].attrs, &args);
            found = t->found;
        }
    }
    chk_mark_back(&lab->arena, mark);
    return found;
}

/* "_backward_X" is X's mostly; else all operators are asked. */
static uint32_t forwards_find(chk_lab *lab, const tn_op **out)
{
    const char *name = lab->op->name;
    uint32_t count = 0;
    const tn_op *op;

    if (!strncmp(name, "_backward_", 10) && (op = chk_op_find(lab, name + 10)) && emits(lab, op, name)) {
        out[0] = op;
        return 1;
    }
    for (size_t i = 0; count < FORWARDS_MAX && (op = chk_op_at(lab, i)); i++)
        if ((!count || out[count - 1] != op) && emits(lab, op, name)) /* the plugin's may be known twice */
            out[count++] = op;
    return count;
}

bool chk_problems_backward(chk_lab *lab, uint32_t what, chk_visit visit, void *arg)
{
    const tn_op *forwards[FORWARDS_MAX];
    const uint32_t count = forwards_find(lab, forwards);
    relay r = {.visit = visit, .arg = arg, .go_on = true};

    for (uint32_t i = 0; i < count && r.go_on; i++)
        (void)chk_problems_of(lab, forwards[i], what, forward_visit, &r);
    return r.made > 0;
}

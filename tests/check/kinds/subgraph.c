/*
 * An operator that runs a graph of its own: a loop over axis 0 with a state that goes from step to step, as
 * MXNet's _foreach with one body. The body's variables, by first use, are one step of data, the state, and a
 * weight that all steps share; its outputs are one step of the output and the next state. PLANTED says what
 * is wrong with it, NAME what it is called: the build gives both.
 */
#include <stdbool.h>

#include "tenon/plugin/util.h"

enum {
    HEALTHY,
    STEPS_GUESSED,  /* a number of steps that is not known is taken to be 1 */
    STATE_LOST,     /* the state stands where the gradient of the last one should */
    WEIGHT_WRITTEN, /* the gradient of the weight is that of the first step alone */
    OTHER_BACKWARD, /* the gradient names an operator that nobody defines */
};

/* ---- shapes ------------------------------------------------------------------------------------------ */

/* One step of `all`. */
static tn_status step_of(const tn_infer *i, const tn_shape *all, tn_shape *step)
{
    step->ndim = all->ndim < 0 ? all->ndim : all->ndim - 1;
    if (all->ndim == 0 || (all->ndim > 0 && all->dim[0] == 0))
        return tn_fail(i->err, TN_E_SHAPE, "a loop over axis 0 needs that axis, and a step at least");
    for (int32_t d = 0; d < step->ndim; d++)
        step->dim[d] = all->dim[d + 1];
    return TN_OK;
}

static void steps_of(const tn_shape *step, tn_shape *all)
{
    if (step->ndim < 0 || step->ndim == TN_NDIM_MAX)
        return;
    if (all->ndim < 0)
        all->dim[0] = TN_DIM_UNKNOWN;
    all->ndim = step->ndim + 1;
    for (int32_t d = 0; d < step->ndim; d++)
        all->dim[d + 1] = step->dim[d];
}

static tn_status count_unify(const tn_infer *i, tn_shape *a, tn_shape *b)
{
    if (a->ndim < 1 || b->ndim < 1)
        return TN_OK;
    if (PLANTED == STEPS_GUESSED && a->dim[0] < 0)
        a->dim[0] = 1;
    if (a->dim[0] >= 0 && b->dim[0] >= 0 && a->dim[0] != b->dim[0])
        return tn_failf(i->err, TN_E_SHAPE, "data has %lld steps, the output %lld", (long long)a->dim[0],
                        (long long)b->dim[0]);
    if (a->dim[0] < 0)
        a->dim[0] = b->dim[0];
    b->dim[0] = a->dim[0];
    return TN_OK;
}

static tn_status body_check(const tn_infer *i)
{
    uint32_t ins = 0, outs = 0;
    tn_status st;

    if (!TN_HAS(i, tn_infer, bodies) || i->bodies->count != 1)
        return tn_failf(i->err, TN_E_ARG, "kind_scan runs one graph, and has %u",
                        TN_HAS(i, tn_infer, bodies) ? i->bodies->count : 0);
    if ((st = i->bodies->counts(i->bodies, 0, &ins, &outs, i->err)))
        return st;
    if (ins != 3 || outs != 2)
        return tn_failf(i->err, TN_E_ARG,
                        "the graph of kind_scan takes a step, a state and a weight and gives a step and a "
                        "state, but this one has %u inputs and %u outputs",
                        ins, outs);
    return TN_OK;
}

static tn_status scan_shape(tn_infer *i)
{
    tn_shape x = {.ndim = 0}, y = {.ndim = 0};
    tn_shape *const in[] = {&x, i->in_shape[1], i->in_shape[2]}, *const out[] = {&y, i->out_shape[1]};
    tn_status st;

    if ((st = body_check(i)) || (st = step_of(i, i->in_shape[0], &x)) ||
        (st = step_of(i, i->out_shape[0], &y)) || (st = tn_shape_unify(i, i->in_shape[1], i->out_shape[1])) ||
        (st = i->bodies->infer(i->bodies, 0, i->flags, in, out, NULL, NULL, i->err)))
        return st;
    steps_of(&x, i->in_shape[0]);
    steps_of(&y, i->out_shape[0]);
    return count_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status scan_dtype(tn_infer *i)
{
    tn_status st;

    if ((st = body_check(i)))
        return st;
    if (i->in_dtype[1] < 0)
        i->in_dtype[1] = i->out_dtype[1];
    if (i->out_dtype[1] < 0)
        i->out_dtype[1] = i->in_dtype[1];
    if (i->in_dtype[1] != i->out_dtype[1])
        return tn_fail(i->err, TN_E_DTYPE, "the state changes its data type");
    return i->bodies->infer(i->bodies, 0, i->flags, NULL, NULL, i->in_dtype, i->out_dtype, i->err);
}

/* ---- gradient ---------------------------------------------------------------------------------------- */

/* What does not arrive is zeros. */
static tn_status scan_gradient(tn_grad *g)
{
    tn_edge in[5] = {tn_grad_of(g, 0), tn_grad_of(g, 1), tn_grad_input(g, 0), tn_grad_input(g, 1),
                     tn_grad_input(g, 2)};
    tn_status st = TN_OK;

    if (!in[0].node && !in[1].node)
        return TN_OK;
    for (uint32_t o = 0; o < 2 && !st; o++) {
        const tn_edge out = tn_grad_output(g, o);

        if (!in[o].node)
            st = tn_grad_node(g, "zeros_like", 1, &out, 0, NULL, &in[o]);
    }
    if (st)
        return st;
    return tn_grad_emit_all(g, PLANTED == OTHER_BACKWARD ? "_backward_kind_loop" : "_backward_kind_scan", 5,
                            in, 0, 3);
}

static tn_status backward_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < 3 && !st; k++)
        st = tn_shape_unify(i, i->in_shape[2 + k], i->out_shape[k]);
    return st ? st : tn_shape_unify(i, i->in_shape[1], i->in_shape[3]);
}

static tn_status backward_dtype(tn_infer *i)
{
    for (uint32_t k = 0; k < 3; k++) {
        if (i->out_dtype[k] < 0)
            i->out_dtype[k] = i->in_dtype[2 + k];
        if (i->in_dtype[2 + k] < 0)
            i->in_dtype[2 + k] = i->out_dtype[k];
        if (i->out_dtype[k] != i->in_dtype[2 + k])
            return tn_fail(i->err, TN_E_DTYPE, "a gradient has the data type of what it is a gradient of");
    }
    if (i->in_dtype[1] < 0)
        i->in_dtype[1] = i->in_dtype[3];
    return TN_OK;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

typedef struct loop {
    tn_body_call *call;
    const tn_body_ops *ops;
    tn_err *err;
    tn_body_array *data, *state, *weight;
    int64_t steps;
} loop;

static loop loop_of(tn_body_call *call, const tn_body_ops *ops, uint32_t first, tn_err *err)
{
    loop l = {.call = call,
              .ops = ops,
              .err = err,
              .data = ops->input(call, first),
              .state = ops->input(call, first + 1),
              .weight = ops->input(call, first + 2)};
    tn_tensor t;

    ops->tensor(l.data, &t);
    l.steps = t.shape[0];
    return l;
}

/* Step `t`: its output goes to that step of `all`, or to a new array like it if `aside`;
 * the state goes on. */
static tn_status step_run(loop *l, int64_t t, tn_body_array *all, bool aside, tn_body_array *last,
                          const uint8_t *modes)
{
    const tn_body_ops *o = l->ops;
    tn_body_array *in[3] = {NULL, l->state, l->weight}, *out[2] = {NULL, last}, *row;
    tn_status st;

    if ((st = o->step(l->call, l->data, t, &in[0], l->err)) || (st = o->step(l->call, all, t, &row, l->err)))
        return st;
    out[0] = row;
    if ((aside && (st = o->like(l->call, row, &out[0], l->err))) ||
        (!last && (st = o->like(l->call, l->state, &out[1], l->err))) ||
        (st = o->forward(l->call, 0, in, out, modes, NULL, l->err)))
        return st;
    l->state = out[1];
    return TN_OK;
}

static tn_status scan_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    loop l = loop_of(call, ops, 0, err);
    tn_status st = TN_OK;

    for (int64_t t = 0; t < l.steps && !st; t++)
        st =
            step_run(&l, t, ops->output(call, 0), false, t + 1 < l.steps ? NULL : ops->output(call, 1), NULL);
    return st;
}

/* The loop again, its runs being numbered by its steps; then back from the last step to the first. */
static tn_status backward_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    static const uint8_t all[] = {TN_MODE_WRITE, TN_MODE_WRITE, TN_MODE_WRITE};
    uint8_t modes[] = {TN_MODE_WRITE, TN_MODE_WRITE, TN_MODE_WRITE};
    tn_body_array *heads[2] = {NULL, ops->input(call, PLANTED == STATE_LOST ? 3 : 1)};
    tn_body_array *grads[3] = {NULL, NULL, ops->output(call, 2)};
    loop l = loop_of(call, ops, 2, err);
    tn_status st = TN_OK;

    for (int64_t t = 0; t < l.steps && !st; t++)
        st = step_run(&l, t, ops->input(call, 0), true, NULL, all);
    for (int64_t t = l.steps; t-- > 0 && !st;) {
        grads[1] = ops->output(call, 1);
        if ((st = ops->step(call, ops->input(call, 0), t, &heads[0], err)) ||
            (st = ops->step(call, ops->output(call, 0), t, &grads[0], err)) ||
            (t && (st = ops->like(call, heads[1], &grads[1], err))) ||
            (st = ops->backward(call, (uint32_t)t, heads, modes, grads, err)))
            return st;
        heads[1] = grads[1];
        modes[2] = PLANTED == WEIGHT_WRITTEN ? TN_MODE_WRITE : TN_MODE_ADD;
    }
    return st;
}

/* ---- definitions ------------------------------------------------------------------------------------- */

static const char *const scan_in[] = {"data", "state", "weight", NULL}, *const scan_out[] = {"output", "last",
                                                                                             NULL};
static const tn_op scan_op = {
    .struct_size = (uint32_t)TN_END(tn_op, run_bodies),
    .version = 1,
    .exec = TN_EXEC_SUBGRAPH,
    .name = "kind_scan",
    .doc = "A graph run for each step of data, with a state that goes from step to step.",
    .inputs = scan_in,
    .outputs = scan_out,
    .shape = scan_shape,
    .dtype = scan_dtype,
    .gradient = scan_gradient,
    .run_bodies = scan_run,
};

static const char *const back_in[] = {"dy", "dlast", "data", "state", "weight", NULL}, *const back_out[] = {
                                                                                           "ddata", "dstate",
                                                                                           "dweight", NULL};
static const tn_op back_op = {
    .struct_size = (uint32_t)TN_END(tn_op, run_bodies),
    .version = 1,
    .exec = TN_EXEC_SUBGRAPH,
    .name = "_backward_kind_scan",
    .doc = "Gradient of kind_scan.",
    .inputs = back_in,
    .outputs = back_out,
    .flags = TN_OP_BACKWARD,
    .shape = backward_shape,
    .dtype = backward_dtype,
    .run_bodies = backward_run,
};

static const tn_op *const ops[] = {&scan_op, &back_op, NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, NAME), .ops = ops};
static const tn_capability *const capabilities[] = {&op_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an operator that runs a graph", "", "op:kind_scan",
                 NULL, NULL, NULL, capabilities);

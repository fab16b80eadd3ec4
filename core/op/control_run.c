/*
 * How loops and branches run. A runner has, for each input of the node, the array that it is now: states move
 * on from step to step. A backward runs the forward again, with gradients wanted and each result in memory of
 * its own, then the steps from the last to the first. What decides is an array of one element, looked at
 * behind the run that wrote it.
 */
#include "op/control.h"

#include <string.h>

typedef struct runner {
    tn_body_call *call;
    const tn_body_ops *ops;
    tni_control c;
    uint32_t heads;                     /* inputs of the call before those of the node */
    tn_body_array **slots;              /* per input of the node */
    tn_body_array **in, **out, **grads; /* of one run: room for the widest graph */
    tn_body_array **pair[2];            /* per state: where steps leave it by turns */
    tn_body_array **arriving;           /* backward, per output: the gradient; NULL: none */
    tn_body_array *truth;
    uint32_t *given; /* backward, per input of the node: the output with its gradient; TNI_SLOT_NONE */
    uint8_t *modes;  /* backward: of the inputs of the graph that runs */
    int64_t step, most;
} runner;

/* ---- making -------------------------------------------------------------------------------------------- */

static tn_status memory_of(const runner *r, uint64_t count, uint64_t size, void *out, tn_err *err)
{
    void *p = r->ops->memory(r->call, (count + 1) * size);

    memcpy(out, &p, sizeof p);
    return p ? TN_OK : tn_fail(err, TN_E_NOMEM, "no memory for a loop");
}

static uint32_t widest(const tni_control *c)
{
    uint32_t most = c->in_count > c->out_count ? c->in_count : c->out_count;

    for (uint32_t b = 0; b < c->kind->bodies; b++)
        if (tni_control_inputs(c, b) > most)
            most = tni_control_inputs(c, b);
    return most;
}

static tn_status lists_make(runner *r, tn_err *err)
{
    const uint64_t most = widest(&r->c), size = sizeof(tn_body_array *);
    tn_status st;

    (void)((st = memory_of(r, r->c.in_count, size, &r->slots, err)) ||
           (st = memory_of(r, most, size, &r->in, err)) || (st = memory_of(r, most, size, &r->out, err)) ||
           (st = memory_of(r, most, size, &r->grads, err)) ||
           (st = memory_of(r, r->c.states, size, &r->pair[0], err)) ||
           (st = memory_of(r, r->c.states, size, &r->pair[1], err)));
    return st;
}

static tn_status backward_lists(runner *r, tn_err *err)
{
    const tn_tuple *heads = tni_control_heads(&r->c), *wanted = tni_control_wanted(&r->c);
    tn_status st;

    if ((st = memory_of(r, r->c.out_count, sizeof(tn_body_array *), &r->arriving, err)) ||
        (st = memory_of(r, r->c.in_count, sizeof *r->given, &r->given, err)) ||
        (st = memory_of(r, widest(&r->c), 1, &r->modes, err)))
        return st;
    r->heads = (uint32_t)tni_tuple_count(heads);
    for (uint32_t h = 0; h < r->heads; h++)
        r->arriving[heads->item[h]] = r->ops->input(r->call, h);
    for (uint32_t i = 0; i < r->c.in_count; i++)
        r->given[i] = TNI_SLOT_NONE;
    for (uint32_t w = 0; w < (uint32_t)tni_tuple_count(wanted); w++)
        r->given[wanted->item[w]] = w;
    return TN_OK;
}

static tn_status runner_make(tn_body_call *call, const tn_body_ops *ops, const tni_control_kind *kind,
                             bool backward, runner **out, tn_err *err)
{
    runner *r = ops->memory(call, sizeof *r);
    tn_status st;

    if (!(*out = r))
        return tn_fail(err, TN_E_NOMEM, "no memory for a loop");
    r->call = call;
    r->ops = ops;
    r->c = tni_control_of(kind, ops->attrs(call));
    if ((st = lists_make(r, err)) || (backward && (st = backward_lists(r, err))))
        return st;
    for (uint32_t i = 0; i < r->c.in_count; i++)
        r->slots[i] = ops->input(call, r->heads + i);
    return TN_OK;
}

/* ---- one run ------------------------------------------------------------------------------------------- */

static tn_status inputs_gather(runner *r, uint32_t body, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < tni_control_inputs(&r->c, body) && !st; k++) {
        const tni_link l = tni_control_input(&r->c, body, k);

        r->in[k] = r->slots[l.slot];
        if (l.step)
            st = r->ops->step(r->call, r->slots[l.slot], r->step, &r->in[k], err);
    }
    return st;
}

/* Forward: in the output. Backward: apart, since gradients read it. */
static tn_status output_find(runner *r, uint32_t o, bool last, tn_err *err)
{
    const uint32_t body = tni_control_stepping(&r->c);
    tn_body_array **at = &r->out[o];
    tn_status st = TN_OK;

    if (r->modes)
        return *at ? r->ops->like(r->call, *at, at, err) : r->ops->given(r->call, body, r->in, o, at, err);
    if (o < r->c.data)
        return r->ops->step(r->call, r->ops->output(r->call, o), r->step, at, err);
    if (last) {
        *at = r->ops->output(r->call, o);
        return TN_OK;
    }
    if (!r->pair[r->step & 1][o - r->c.data])
        st = r->ops->given(r->call, body, r->in, o, &r->pair[r->step & 1][o - r->c.data], err);
    *at = r->pair[r->step & 1][o - r->c.data];
    return st;
}

static uint32_t state_slot(const runner *r, uint32_t s)
{
    return tni_control_input(&r->c, tni_control_stepping(&r->c), tni_control_state(&r->c, s)).slot;
}

/* States are what comes out of it, then. `last`: of known length; they are outputs. */
static tn_status step_run(runner *r, bool last, tn_err *err)
{
    tn_status st = inputs_gather(r, tni_control_stepping(&r->c), err);

    for (uint32_t o = 0; o < r->c.out_count && !st; o++)
        st = output_find(r, o, last, err);
    if (!st)
        st = r->ops->forward(r->call, tni_control_stepping(&r->c), r->in, r->out, r->modes, NULL, err);
    for (uint32_t s = 0; s < r->c.states && !st; s++)
        r->slots[state_slot(r, s)] = r->out[r->c.data + s];
    r->step++;
    return st;
}

/* Asks what decides, and goes on with `next`. */
static tn_status decide(runner *r, tn_body_next next, tn_err *err)
{
    tn_status st = inputs_gather(r, 0, err);

    if (!st && !r->truth)
        st = r->ops->given(r->call, 0, r->in, 0, &r->truth, err);
    if (!st)
        st = r->ops->forward(r->call, 0, r->in, &r->truth, NULL, NULL, err);
    return st ? st : r->ops->then(r->call, next, r, err);
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

static tn_body_array *gradient_of(const runner *r, uint32_t slot)
{
    return r->given[slot] == TNI_SLOT_NONE ? NULL : r->ops->output(r->call, r->given[slot]);
}

static bool is_state(const runner *r, uint32_t input)
{
    for (uint32_t s = 0; s < r->c.states; s++)
        if (tni_control_state(&r->c, s) == input)
            return true;
    return false;
}

/* Which inputs of a graph have a gradient: those that somebody asks for, and states. False: none has. */
static bool modes_fill(runner *r, uint32_t body)
{
    bool any = false;

    for (uint32_t k = 0; k < tni_control_inputs(&r->c, body); k++) {
        const bool wanted = gradient_of(r, tni_control_input(&r->c, body, k).slot) || is_state(r, k);

        r->modes[k] = wanted ? TN_MODE_WRITE : TN_MODE_NONE;
        any |= wanted;
    }
    return any;
}

/* Where step `k` leaves the gradient of input `input` of its graph, and how. */
static tn_status gradient_place(runner *r, uint32_t input, int64_t k, tn_err *err)
{
    const tni_link l = tni_control_input(&r->c, tni_control_stepping(&r->c), input);
    tn_body_array *whole = gradient_of(r, l.slot);

    r->grads[input] = whole;
    if (r->modes[input] == TN_MODE_NONE)
        return TN_OK;
    if (l.step)
        return r->ops->step(r->call, whole, k, &r->grads[input], err);
    if (is_state(r, input))
        return k || !whole ? r->ops->like(r->call, r->slots[l.slot], &r->grads[input], err) : TN_OK;
    r->modes[input] = k + 1 == r->step ? TN_MODE_WRITE : TN_MODE_ADD;
    return TN_OK;
}

static tn_status step_back(runner *r, int64_t k, tn_err *err)
{
    const uint32_t body = tni_control_stepping(&r->c);
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < r->c.out_count && !st; o++) {
        r->out[o] = r->arriving[o];
        if (o < r->c.data && r->arriving[o])
            st = r->ops->step(r->call, r->arriving[o], k, &r->out[o], err);
    }
    for (uint32_t i = 0; i < tni_control_inputs(&r->c, body) && !st; i++)
        st = gradient_place(r, i, k, err);
    if (!st)
        st = r->ops->backward(r->call, (uint32_t)k, r->out, r->modes, r->grads, err);
    for (uint32_t s = 0; s < r->c.states && !st; s++)
        r->arriving[r->c.data + s] = r->grads[tni_control_state(&r->c, s)];
    return st;
}

/* Runs of `body` give the gradients of its inputs. */
static void given_forget(runner *r, uint32_t body)
{
    for (uint32_t k = 0; k < tni_control_inputs(&r->c, body); k++)
        r->given[tni_control_input(&r->c, body, k).slot] = TNI_SLOT_NONE;
}

/* Gradients that nothing gives are zero. */
static tn_status rest_clear(runner *r, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < r->c.in_count && !st; i++)
        if (gradient_of(r, i))
            st = r->ops->copy(r->call, NULL, gradient_of(r, i), err);
    return st;
}

/* Of no steps: what arrives at the states is their gradient. */
static tn_status none_back(runner *r, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t s = 0; s < r->c.states && !st; s++) {
        const uint32_t slot = state_slot(r, s);

        if (gradient_of(r, slot))
            st = r->ops->copy(r->call, r->arriving[r->c.data + s], gradient_of(r, slot), err);
        r->given[slot] = TNI_SLOT_NONE;
    }
    return st ? st : rest_clear(r, err);
}

/* All steps, from the last to the first. */
static tn_status steps_back(runner *r, tn_err *err)
{
    tn_status st = TN_OK;

    if (!r->step)
        return none_back(r, err);
    for (int64_t k = r->step; k-- > 0 && !st;)
        st = step_back(r, k, err);
    given_forget(r, tni_control_stepping(&r->c));
    return st ? st : rest_clear(r, err);
}

/* ---- _foreach ------------------------------------------------------------------------------------------ */

static tn_status states_hand_on(runner *r, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t s = 0; s < r->c.states && !st; s++)
        st = r->ops->copy(r->call, r->slots[state_slot(r, s)], r->ops->output(r->call, r->c.data + s), err);
    return st;
}

static tn_status foreach_steps(runner *r, tn_err *err)
{
    tn_tensor data;
    tn_status st = TN_OK;

    r->ops->tensor(r->slots[0], &data);
    if (data.ndim < 1)
        return tn_fail(err, TN_E_SHAPE, "a number has no elements to step over");
    r->most = data.shape[0];
    while (r->step < r->most && !st)
        st = step_run(r, r->step + 1 == r->most, err);
    return st;
}

tn_status tni_foreach_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    runner *r = NULL;
    tn_status st = runner_make(call, ops, &tni_control_foreach, false, &r, err);

    if (!st)
        st = foreach_steps(r, err);
    return st || r->most ? st : states_hand_on(r, err);
}

tn_status tni_foreach_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    runner *r = NULL;
    tn_status st = runner_make(call, ops, &tni_control_foreach, true, &r, err);

    if (st || !modes_fill(r, 0))
        return st ? st : rest_clear(r, err);
    return (st = foreach_steps(r, err)) ? st : steps_back(r, err);
}

/* ---- _while_loop --------------------------------------------------------------------------------------- */

static tn_status while_end(runner *r, tn_err *err)
{
    return r->modes ? steps_back(r, err) : states_hand_on(r, err);
}

static tn_status while_next(tn_body_call *call, const tn_body_ops *ops, void *state, tn_err *err)
{
    runner *r = state;
    int32_t more = 0;
    tn_status st = r->step < r->most ? ops->truth(call, r->truth, &more, err) : TN_OK;

    if (st || !more)
        return st ? st : while_end(r, err);
    if ((st = step_run(r, false, err)))
        return st;
    return r->step < r->most ? decide(r, while_next, err) : ops->then(call, while_next, r, err);
}

static tn_status while_run(tn_body_call *call, const tn_body_ops *ops, bool backward, tn_err *err)
{
    runner *r = NULL;
    tn_status st = runner_make(call, ops, &tni_control_while_loop, backward, &r, err);

    if (st || (backward && !modes_fill(r, 1)))
        return st ? st : rest_clear(r, err);
    r->most = tn_value_int(ops->attrs(call)[TN_while_loop_max_iterations]);
    for (uint32_t o = 0; o < r->c.data && !backward && !st; o++) /* rows that no step fills stay zero */
        st = ops->copy(call, NULL, ops->output(call, o), err);
    return st ? st : decide(r, while_next, err);
}

tn_status tni_while_loop_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    return while_run(call, ops, false, err);
}

tn_status tni_while_loop_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    return while_run(call, ops, true, err);
}

/* ---- _cond --------------------------------------------------------------------------------------------- */

static tn_status branch_take(runner *r, uint32_t *body, tn_err *err)
{
    int32_t yes = 0;
    tn_status st = r->ops->truth(r->call, r->truth, &yes, err);

    *body = yes ? 1 : 2;
    return st ? st : inputs_gather(r, *body, err);
}

static tn_status cond_next(tn_body_call *call, const tn_body_ops *ops, void *state, tn_err *err)
{
    runner *r = state;
    uint32_t body = 0;
    tn_status st = branch_take(r, &body, err);

    for (uint32_t o = 0; o < r->c.out_count && !st; o++)
        r->out[o] = ops->output(call, o);
    return st ? st : ops->forward(call, body, r->in, r->out, NULL, NULL, err);
}

static tn_status branch_back(runner *r, uint32_t body, tn_err *err)
{
    uint32_t run = 0;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < r->c.out_count && !st; o++)
        st = r->ops->given(r->call, body, r->in, o, &r->out[o], err);
    for (uint32_t k = 0; k < tni_control_inputs(&r->c, body); k++)
        r->grads[k] = gradient_of(r, tni_control_input(&r->c, body, k).slot);
    if (!st && !(st = r->ops->forward(r->call, body, r->in, r->out, r->modes, &run, err)))
        st = r->ops->backward(r->call, run, r->arriving, r->modes, r->grads, err);
    return st;
}

static tn_status cond_next_back(tn_body_call *call, const tn_body_ops *ops, void *state, tn_err *err)
{
    runner *r = state;
    uint32_t body = 0;
    tn_status st = branch_take(r, &body, err);

    (void)call, (void)ops;
    if (!st && modes_fill(r, body))
        st = branch_back(r, body, err);
    given_forget(r, body);
    return st ? st : rest_clear(r, err);
}

static tn_status cond_run(tn_body_call *call, const tn_body_ops *ops, bool backward, tn_err *err)
{
    runner *r = NULL;
    tn_status st = runner_make(call, ops, &tni_control_cond, backward, &r, err);

    return st ? st : decide(r, backward ? cond_next_back : cond_next, err);
}

tn_status tni_cond_run(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    return cond_run(call, ops, false, err);
}

tn_status tni_cond_run_back(tn_body_call *call, const tn_body_ops *ops, tn_err *err)
{
    return cond_run(call, ops, true, err);
}

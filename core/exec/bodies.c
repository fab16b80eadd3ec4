/* What a definition may ask while it says how its bodies run: subgraph.c as a table of functions. */
#include "exec/subgraph.h"

static tni_subgraph_call *call_of(tn_body_call *c)
{
    return (tni_subgraph_call *)(void *)c;
}

static tni_array *array_of(const tn_body_array *a)
{
    return (tni_array *)(uintptr_t)a;
}

static tni_array *const *arrays_of(tn_body_array *const *list)
{
    return (tni_array *const *)(const void *)list;
}

static tn_status reported(tn_status st, tn_err *err)
{
    if (st)
        tni_error_get(err);
    return st;
}

static const tn_value *attrs(tn_body_call *c)
{
    return tni_subgraph_attrs(call_of(c))->values;
}

static tn_body_array *input(tn_body_call *c, uint32_t index)
{
    return (tn_body_array *)(void *)tni_subgraph_in(call_of(c), index);
}

static tn_body_array *output(tn_body_call *c, uint32_t index)
{
    return (tn_body_array *)(void *)tni_subgraph_out(call_of(c), index);
}

static tn_status like(tn_body_call *c, const tn_body_array *a, tn_body_array **out, tn_err *err)
{
    return reported(tni_subgraph_array(call_of(c), array_of(a), (tni_array **)(void *)out), err);
}

static tn_status step(tn_body_call *c, tn_body_array *a, int64_t index, tn_body_array **out, tn_err *err)
{
    return reported(tni_subgraph_step(call_of(c), array_of(a), index, (tni_array **)(void *)out), err);
}

static tn_status forward(tn_body_call *c, uint32_t body, tn_body_array *const *in, tn_body_array *const *out,
                         const uint8_t *modes, uint32_t *run, tn_err *err)
{
    return reported(tni_subgraph_forward(call_of(c), body, arrays_of(in), arrays_of(out), modes, run), err);
}

static tn_status backward(tn_body_call *c, uint32_t run, tn_body_array *const *heads, const uint8_t *modes,
                          tn_body_array *const *grads, tn_err *err)
{
    return reported(tni_subgraph_backward(call_of(c), run, arrays_of(heads), modes, arrays_of(grads)), err);
}

static tn_status given(tn_body_call *c, uint32_t body, tn_body_array *const *in, uint32_t index,
                       tn_body_array **out, tn_err *err)
{
    return reported(tni_subgraph_given(call_of(c), body, arrays_of(in), index, (tni_array **)(void *)out),
                    err);
}

static tn_status copy(tn_body_call *c, tn_body_array *src, tn_body_array *dst, tn_err *err)
{
    return reported(tni_subgraph_copy(call_of(c), array_of(src), array_of(dst)), err);
}

static void *memory(tn_body_call *c, uint64_t bytes)
{
    return tni_subgraph_memory(call_of(c), bytes);
}

static tn_status then(tn_body_call *c, tn_body_next next, void *state, tn_err *err)
{
    return reported(tni_subgraph_then(call_of(c), next, state), err);
}

/* The end of all that wrote it is what calls `next`, so its bytes are there and nobody else is at them. */
static tn_status truth(tn_body_call *c, const tn_body_array *a, int32_t *out, tn_err *err)
{
    const tni_array *array = array_of(a);
    uint8_t value = 0;

    (void)c;
    if (tni_array_count(array) != 1)
        return reported(tni_error(TN_E_SHAPE, "a condition of %llu elements, one is needed",
                                  (unsigned long long)tni_array_count(array)),
                        err);
    if (!tni_array_data(array))
        return reported(tni_error(TN_E_STATE, "a condition that no run has written"), err);
    tni_cast(tni_array_data(array), array->dtype, 1, &value, TN_BOOL, 1, 1);
    *out = value;
    return TN_OK;
}

static void tensor(const tn_body_array *a, tn_tensor *out)
{
    tni_array_tensor(array_of(a), out);
    out->data = NULL;
}

static const tn_body_ops ops = {.struct_size = (uint32_t)TN_END(tn_body_ops, truth),
                                .attrs = attrs,
                                .input = input,
                                .output = output,
                                .tensor = tensor,
                                .like = like,
                                .step = step,
                                .forward = forward,
                                .backward = backward,
                                .given = given,
                                .copy = copy,
                                .memory = memory,
                                .then = then,
                                .truth = truth};

static tn_status checked(const tn_op *op, tn_status st, const tn_err *err)
{
    return st < TN_OK || st > TN_E_INTERNAL
               ? tni_error(TN_E_INTERNAL, "operator %s returned status %d", op->name, st)
           : st ? tni_error(st, "%s", err->message[0] ? err->message : tni_status_name(st))
                : TN_OK;
}

tn_status tni_bodies_run(tni_subgraph_call *call)
{
    const tn_op *op = tni_subgraph_op(call);
    tn_err err = {0};

    return checked(op, op->run_bodies((tn_body_call *)(void *)call, &ops, &err), &err);
}

tn_status tni_bodies_next(tni_subgraph_call *call, tn_body_next next, void *state)
{
    tn_err err = {0};

    return checked(tni_subgraph_op(call), next((tn_body_call *)(void *)call, &ops, state, &err), &err);
}

/*
 * Running one eager call: the fast path on the caller, or as a program of one instruction.
 */
#include "exec/call.h"

#include <string.h>

#define PORTS_ON_STACK 32u

/* ---- the fast path ----------------------------------------------------------------------------------- */

typedef struct var_set {
    tni_var *reads[TNI_SIG_OPERANDS * 2], *writes[TNI_SIG_OPERANDS];
    uint32_t read_count, write_count;
} var_set;

static bool var_in(tni_var *const *list, uint32_t count, const tni_var *v)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == v)
            return true;
    return false;
}

/* Distinct variables; what is written is not listed as read. False: does not fit the fast path. */
static bool vars_collect(const tni_signature *sig, tni_array *const *in, tni_array *const *out, var_set *v)
{
    v->read_count = v->write_count = 0;
    for (uint32_t i = 0; i < sig->out_count; i++) {
        tni_var *var = tni_array_var(out[i]);

        if (!var_in(v->writes, v->write_count, var))
            v->writes[v->write_count++] = var;
    }
    for (uint32_t i = 0; i < sig->mutated_count; i++) {
        tni_var *var = tni_array_var(in[sig->mutated[i]]);

        if (v->write_count == TNI_SIG_OPERANDS)
            return false;
        if (!var_in(v->writes, v->write_count, var))
            v->writes[v->write_count++] = var;
    }
    for (uint32_t i = 0; i < sig->in_count; i++) {
        tni_var *var = tni_array_var(in[i]);

        if (!var_in(v->writes, v->write_count, var) && !var_in(v->reads, v->read_count, var))
            v->reads[v->read_count++] = var;
    }
    return true;
}

/* May output `o` lie where it lies? It may share storage with inputs only if it takes over one of them
 * exactly. */
static bool output_apart(const tni_signature *sig, tni_array *const *in, const tni_array *out, uint32_t o)
{
    const int32_t inplace = sig->prepared->plan.inplace[o];
    const bool pointwise = (sig->def->op->flags & TN_OP_POINTWISE) != 0;

    for (uint32_t i = 0; i < sig->in_count; i++) {
        if (in[i]->storage != out->storage)
            continue;
        if ((inplace != (int32_t)i && !(inplace >= 0 && pointwise)) || in[i]->offset != out->offset ||
            in[i]->dtype != out->dtype || !(in[i]->flags & out->flags & TNI_ARRAY_CONTIGUOUS) ||
            tni_array_count(in[i]) != tni_array_count(out))
            return false;
    }
    return true;
}

/* Between two events of the profiler, if it is on. */
static tn_status kernel_run(const tni_signature *sig, const tn_exec *x, tn_err *err)
{
    const tni_prepared *p = sig->prepared;
    tn_status st;

    if (TN_LIKELY(!atomic_load_explicit(&tni_trace_on, memory_order_relaxed)))
        return p->kernel->run(&p->plan, x, err);
    tni_trace_event('B', "caller", sig->def->op->name, 0);
    st = p->kernel->run(&p->plan, x, err);
    tni_trace_event('E', "caller", sig->def->op->name, 0);
    return st;
}

/* Outputs have memory from now on, inputs that nobody wrote as well. */
static tn_status memory_take(const tni_signature *sig, tni_array *const *in, tni_array *const *out)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < sig->out_count && !st; i++)
        if (!out[i]->storage->data)
            st = tni_storage_allocate(out[i]->storage, NULL);
    for (uint32_t i = 0; i < sig->in_count && !st; i++)
        if (TN_UNLIKELY(!tni_array_data(in[i])))
            st = tni_storage_touch(in[i]->storage, NULL);
    return st;
}

/* Runs the kernel on what its arrays hold. */
static tn_status operands_run(const tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                              tni_array *const *out, const tn_rng *rng)
{
    tn_tensor tensors[TNI_SIG_OPERANDS * 2], *t = tensors;
    const tn_tensor *list[TNI_SIG_OPERANDS * 2], **at = list;
    tn_exec x;
    tn_err err;
    tn_status st;

    for (uint32_t i = 0; i < sig->in_count; i++, *at++ = t++)
        tni_array_tensor_now(in[i], t);
    for (uint32_t i = 0; i < sig->out_count; i++, *at++ = t++)
        tni_array_tensor_now(out[i], t);
    for (uint32_t i = 0; i < sig->mutated_count; i++)
        *at++ = &tensors[sig->mutated[i]];
    x.struct_size = (uint32_t)TN_END(tn_exec, ops); /* member by member, as in tni_array_tensor_now */
    x.threads = 1;
    x.in = list;
    x.out = list + sig->in_count;
    x.modes = sig->modes;
    x.attrs = attrs->values;
    x.workspace = x.saved = NULL;
    x.stream = NULL;
    x.stream_slot = NULL;
    x.rng = rng;
    x.call = NULL;
    x.ops = NULL;
    err.native = 0;
    err.number = 0;
    err.message[0] = '\0';
    if (TN_UNLIKELY((st = kernel_run(sig, &x, &err))))
        st = tni_error_take(st, &err, sig->def->op->name);
    return st;
}

/* A failure sticks to the outputs, as everywhere. */
bool tni_call_short(tni_context *c, const tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                    tni_array *const *out, uint64_t draw)
{
    const tn_rng rng = {.struct_size = (uint32_t)TN_END(tn_rng, step_add),
                        .seed = tni_random_key(c, sig->device),
                        .stream = (uint64_t)sig->device->index,
                        .step = &draw};
    var_set v;
    tn_status st;

    if (!vars_collect(sig, in, out, &v))
        return false;
    for (uint32_t i = 0; i < sig->out_count; i++)
        if (!(out[i]->flags & TNI_ARRAY_CONTIGUOUS) || !output_apart(sig, in, out[i], i))
            return false;
    if (!tni_engine_enter(c->engine, v.reads, v.read_count, v.writes, v.write_count))
        return false;
    if (memory_take(sig, in, out)) { /* holding variables nobody may wait for memory: the long way may */
        tni_engine_leave(c->engine, v.reads, v.read_count, v.writes, v.write_count, TN_OK, NULL);
        return false;
    }
    st = operands_run(sig, attrs, in, out, &rng);
    tni_engine_leave(c->engine, v.reads, v.read_count, v.writes, v.write_count, st, sig->def->op->name);
    tni_space_count_call(c->space);
    return true;
}

static void outputs_spoil(tni_context *c, const tni_signature *sig, tni_array *const *out, tn_status st)
{
    tni_var *vars[TNI_SIG_OPERANDS];

    for (uint32_t i = 0; i < sig->out_count; i++)
        vars[i] = tni_array_var(out[i]);
    tni_engine_spoil(c->engine, vars, sig->out_count, st, sig->def->op->name);
}

bool tni_call_quick(tni_context *c, const tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                    tni_array *const *out)
{
    tni_var *reads[TNI_SIG_OPERANDS];
    uint32_t count = 0;
    tn_status st;

    for (uint32_t i = 0; i < sig->in_count; i++)
        if (!var_in(reads, count, tni_array_var(in[i])))
            reads[count++] = tni_array_var(in[i]);
    if (!tni_engine_enter(c->engine, reads, count, NULL, 0))
        return false;
    if (TN_UNLIKELY(memory_take(sig, in, out))) {
        tni_engine_leave(c->engine, reads, count, NULL, 0, TN_OK, NULL);
        return false;
    }
    st = operands_run(sig, attrs, in, out, NULL);
    for (uint32_t i = 0; i < sig->out_count; i++)
        tni_var_written(tni_array_var(out[i]));
    if (TN_UNLIKELY(st))
        outputs_spoil(c, sig, out, st);
    tni_engine_leave(c->engine, reads, count, NULL, 0, TN_OK, NULL);
    tni_space_count_call(c->space);
    return true;
}

/* ---- a queued call ----------------------------------------------------------------------------------- */

tn_status tni_call_queue(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                         tni_array *const *out, const tni_call_with *with)
{
    const tni_program *p = sig->program;
    tni_array **arrays;
    uint8_t small[PORTS_ON_STACK], *aside = small;
    tni_launch l = {.phase = TNI_FORWARD, .draw = with->draw, .name = sig->def->op->name, .attrs = attrs};
    tn_status st;

    if (p->port_count > PORTS_ON_STACK && !(aside = tni_keep_take(c->space->keep, p->port_count)))
        return TN_E_NOMEM;
    if (!(st = tni_frame_take(sig->pool, false, &l.frame))) {
        arrays = tni_frame_arrays(l.frame, l.phase);
        for (uint32_t i = 0; i < p->port_count; i++) {
            const uint32_t o = i - sig->in_count;

            arrays[i] = i < sig->in_count ? in[i] : o < sig->out_count ? out[o] : with->saved;
            aside[i] = i >= sig->in_count && o < sig->out_count && !out[o]->pending &&
                       !output_apart(sig, in, out[o], o);
        }
        l.arrays = arrays;
        l.aside = aside;
        st = tni_launch_all(c, &(tni_launch_group){.launches = &l, .count = 1});
        tni_frame_release(l.frame);
    }
    if (aside != small)
        tni_keep_give(c->space->keep, aside);
    return st;
}

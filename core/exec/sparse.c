/*
 * Eager calls with sparse operands: each is an operation of its own, without a program or a frame.
 *
 * It reads the variables of values and indices, and writes those of its outputs. How many elements a sparse
 * output stores the kernel tells while it runs; until then its index array is pending, and who asks waits.
 * What a kernel wrote is looked at before anybody else may read it, since kernels trust indices. Hosts only.
 * A recorded call is a node like any: it keeps sparse arrays as they are.
 */
#include <string.h>

#include "exec/call.h"

typedef struct operand {
    tni_array *array; /* a reference */
    tn_tensor t, aux[2];
} operand;

typedef struct sparse_call {
    tni_context *ctx;
    tni_signature *sig;
    tni_attrs *attrs;
    uint64_t draw;
    operand *operands; /* inputs, then outputs */
    const tn_tensor **list;
    tni_vec scratch; /* tni_block */
} sparse_call;

#define SCRATCH_MAX (1u << 16)

tn_status tni_sparse_serves(const tni_signature *s)
{
    const tni_prepared *p = s->prepared;
    const char *what = NULL;

    if (!s->device->host)
        return tni_error(TN_E_UNSUPPORTED, "operator %s: sparse arrays are served on hosts, not on %s:%d",
                         s->def->op->name, s->device->type, s->device->index);
    for (uint32_t o = 0; o < s->out_count; o++)
        if (s->out_storage[o] && !(p->plan.flags & TN_PLAN_RESIZES))
            what = "writes a sparse output, but its plan does not say that it resizes";
        else if (s->out_storage[o] && !tn_shape_known(&s->out_shape[o]))
            what = "has a sparse output whose shape is not known";
    if (s->mutated_count)
        what = "changes an input";
    else if (p->kernel->flags & TN_KERNEL_ASYNC)
        what = "completes later";
    else if (p->plan.saved_bytes || tni_prepared_reads(p))
        what = "saves something for a backward";
    return what ? tni_error(TN_E_UNSUPPORTED,
                            "operator %s: kernel %s %s, which is not served with sparse arrays",
                            s->def->op->name, p->kernel->name, what)
                : TN_OK;
}

/* ---- what a kernel may call ---------------------------------------------------------------------------- */

static operand *output_of(const sparse_call *c, uint32_t out, bool sparse)
{
    operand *o = out < c->sig->out_count ? &c->operands[c->sig->in_count + out] : NULL;

    return o && c->sig->prepared->plan.flags & TN_PLAN_RESIZES &&
                   (o->array->storage_type != TN_STORAGE_DENSE) == sparse
               ? o
               : NULL;
}

static tn_status resized(operand *o, tn_status st, const tn_tensor **tensor, tn_err *err)
{
    if (st) {
        tni_error_get(err);
        return st;
    }
    tni_sparse_tensors(o->array, &o->t, o->aux);
    *tensor = &o->t;
    return TN_OK;
}

static tn_status op_resize(tn_call *call, uint32_t out, int32_t ndim, const int64_t *shape,
                           const tn_tensor **tensor, tn_err *err)
{
    operand *o = output_of((sparse_call *)(void *)call, out, false);

    if (!o)
        return tn_fail(err, TN_E_ARG,
                       "resize of an output that is sparse or not there, or by a plan that "
                       "does not resize");
    return resized(o, tni_array_resolve(o->array, ndim, shape, NULL), tensor, err);
}

static tn_status op_resize_sparse(tn_call *call, uint32_t out, int64_t stored, const tn_tensor **tensor,
                                  tn_err *err)
{
    operand *o = output_of((sparse_call *)(void *)call, out, true);

    if (!o)
        return tn_fail(err, TN_E_ARG,
                       "resize_sparse of an output that is dense or not there, or by a plan "
                       "that does not resize");
    return resized(o, tni_sparse_resolve(o->array, stored), tensor, err);
}

static tn_status block_take(sparse_call *c, uint64_t bytes, void **out)
{
    tni_block block = {0};
    tn_status st = tni_block_alloc(c->sig->device, TN_MEMORY_DEVICE, bytes, NULL, "scratch", &block);

    if (!st && (st = tni_vec_push(&c->scratch, &block)))
        tni_block_free(&block, NULL);
    if (!st)
        *out = block.memory.data;
    return st;
}

static tn_status op_alloc(tn_call *call, uint64_t bytes, void **out, tn_err *err)
{
    const tn_status st = block_take((sparse_call *)(void *)call, bytes, out);

    if (st)
        tni_error_get(err);
    return st;
}

/* Of kernels that say TN_KERNEL_ASYNC, which are not served here. */
static void op_complete(tn_call *call, tn_status status, const tn_err *err)
{
    (void)call, (void)status, (void)err;
}

static const tn_call_ops call_ops = {.struct_size = (uint32_t)TN_END(tn_call_ops, resize_sparse),
                                     .resize = op_resize,
                                     .alloc = op_alloc,
                                     .complete = op_complete,
                                     .resize_sparse = op_resize_sparse};

/* ---- the run ------------------------------------------------------------------------------------------- */

/* Inputs are there, dense outputs of known shape get memory; other outputs come with resize. */
static tn_status operands_ready(sparse_call *c)
{
    const uint32_t ins = c->sig->in_count;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < ins + c->sig->out_count && !st; i++) {
        operand *o = &c->operands[i];
        tni_array *a = o->array;
        const bool sparse = a->storage_type != TN_STORAGE_DENSE;

        if (i < ins)
            st = tni_storage_touch(a->storage, NULL);
        else if (!a->pending && !sparse)
            st = tni_storage_allocate(a->storage, NULL);
        for (uint32_t k = 0; i < ins && k < 2 && !st; k++)
            st = a->aux[k] ? tni_storage_touch(a->aux[k]->storage, NULL) : TN_OK;
        if (i < ins || !sparse)
            tni_sparse_tensors(a, &o->t, o->aux);
        else
            tni_array_tensor(a, &o->t);
        c->list[i] = &o->t;
    }
    return st;
}

/* What the next kernel will trust. */
static tn_status outputs_check(const sparse_call *c)
{
    for (uint32_t i = 0; i < c->sig->out_count; i++) {
        const tni_array *a = c->operands[c->sig->in_count + i].array;
        const char *op = c->sig->def->op->name, *kernel = c->sig->prepared->kernel->name, *fault;
        int64_t value = 0;

        if (a->storage_type == TN_STORAGE_DENSE ? a->pending != 0 : tni_sparse_pending(a))
            return tni_error(TN_E_INTERNAL, "operator %s: kernel %s gave output %u no size", op, kernel, i);
        if (a->storage_type != TN_STORAGE_DENSE && (fault = tni_sparse_fault(a, &value)))
            return tni_error(TN_E_INTERNAL, "operator %s: kernel %s wrote output %u (%s) with a %s %lld", op,
                             kernel, i, tni_storage_type_name(a->storage_type), fault, (long long)value);
    }
    return TN_OK;
}

static tn_status call_run(void *payload, tni_run *run)
{
    sparse_call *c = *(sparse_call **)payload;
    const tni_prepared *p = c->sig->prepared;
    const tn_rng rng = {.seed = tni_random_key(c->ctx, c->sig->device),
                        .stream = (uint64_t)c->sig->device->index,
                        .step = &c->draw};
    tn_exec x = {.struct_size = (uint32_t)TN_END(tn_exec, ops),
                 .threads = p->plan.threads,
                 .in = c->list,
                 .out = c->list + c->sig->in_count,
                 .modes = c->sig->modes,
                 .attrs = c->attrs->values,
                 .rng = &rng,
                 .call = (tn_call *)(void *)c,
                 .ops = &call_ops};
    tn_err err = {0};
    tn_status st;

    (void)run;
    if ((st = operands_ready(c)) ||
        (p->plan.workspace_bytes && (st = block_take(c, tni_workspace_bytes(&p->plan), &x.workspace))))
        return st;
    x.workspace = tni_workspace_at(&p->plan, x.workspace);
    if ((st = p->kernel->run(&p->plan, &x, &err)))
        return st == TN_PENDING ? tni_error(TN_E_INTERNAL, "operator %s: kernel %s completes later unasked",
                                            c->sig->def->op->name, p->kernel->name)
                                : tni_error_take(st, &err, c->sig->def->op->name);
    return outputs_check(c);
}

static void call_free(sparse_call *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->scratch.count; i++)
        tni_block_free(tni_vec_at(&c->scratch, i), NULL);
    tni_vec_fini(&c->scratch);
    for (uint32_t i = 0; c->operands && i < c->sig->in_count + c->sig->out_count; i++)
        tni_array_release(c->operands[i].array);
    tni_free(c->operands);
    tni_free((void *)c->list);
    tni_signature_release(c->sig);
    tni_attrs_release(c->attrs);
    tni_free(c);
}

static void call_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    call_free(*(sparse_call **)payload);
}

/* ---- the call ------------------------------------------------------------------------------------------ */

/* An input as the kernel takes it: dense ones row-major, unless it was prepared for strides. */
static tn_status input_take(const tni_signature *s, uint32_t i, tni_array *a, tni_array **out)
{
    tn_status st;

    if (a->storage_type != TN_STORAGE_DENSE || a->flags & TNI_ARRAY_CONTIGUOUS ||
        tni_prepared_strides(s->prepared, s->def, i)) {
        tni_array_retain(*out = a);
        return TN_OK;
    }
    if (!(st = tni_array_like(a, "array", out)))
        st = tni_array_copy(a, *out);
    return st;
}

static tn_status call_make(tni_context *ctx, tni_signature *s, tni_attrs *attrs, tni_array *const *in,
                           tni_array *const *out, sparse_call **made)
{
    const uint32_t count = s->in_count + s->out_count;
    sparse_call *c = tni_zalloc(sizeof *c);
    tn_status st = TN_OK;

    if (!(*made = c))
        return TN_E_NOMEM;
    c->ctx = ctx;
    tni_signature_retain(c->sig = s);
    c->attrs = tni_attrs_retain(attrs);
    tni_vec_init(&c->scratch, sizeof(tni_block), SCRATCH_MAX);
    c->operands = tni_calloc(count + 1u, sizeof *c->operands);
    c->list = tni_calloc(count + 1u, sizeof(*c->list));
    if (!c->operands || !c->list)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->in_count && !st; i++)
        st = input_take(s, i, in[i], &c->operands[i].array);
    for (uint32_t o = 0; o < s->out_count && !st; o++)
        tni_array_retain(c->operands[s->in_count + o].array = out[o]);
    return st;
}

/* The variables of an array and of its indices. */
static uint32_t vars_list(const tni_array *a, tni_var **out)
{
    uint32_t count = 0;

    out[count++] = tni_array_var(a);
    for (uint32_t k = 0; k < 2; k++)
        if (a->aux[k])
            out[count++] = tni_array_var(a->aux[k]);
    return count;
}

/* Kernels write dense outputs row-major, and read inputs meanwhile. */
static bool stands_apart(const tni_signature *s, tni_array *const *in, tni_array *out)
{
    bool apart = out->storage_type != TN_STORAGE_DENSE || out->pending || out->flags & TNI_ARRAY_CONTIGUOUS;

    for (uint32_t i = 0; i < s->in_count; i++)
        apart &= in[i]->storage != out->storage;
    return apart;
}

static tn_status call_push(tni_context *ctx, tni_signature *s, tni_attrs *attrs, tni_array *const *in,
                           tni_array *const *out, uint64_t draw)
{
    tni_var **vars = tni_calloc(3ull * (s->in_count + s->out_count) + 1, sizeof(*vars));
    tni_task task = {.run = call_run,
                     .done = call_done,
                     .payload_bytes = sizeof(sparse_call *),
                     .flags = s->prepared->plan.flags & TN_PLAN_PARALLEL ? TNI_TASK_PARALLEL : 0u,
                     .reads = vars,
                     .device = s->device,
                     .name = s->def->op->name,
                     .est_ns = s->prepared->plan.est_ns};
    sparse_call *c = NULL;
    tn_status st = vars ? call_make(ctx, s, attrs, in, out, &c) : TN_E_NOMEM;

    if (!st) {
        c->draw = draw;
        task.payload = &c;
        for (uint32_t i = 0; i < s->in_count; i++)
            task.read_count += vars_list(c->operands[i].array, vars + task.read_count);
        task.writes = vars + task.read_count;
        for (uint32_t o = 0; o < s->out_count; o++)
            task.write_count += vars_list(out[o], vars + task.read_count + task.write_count);
        st = tni_engine_push(ctx->engine, &task);
    }
    if (st)
        call_free(c);
    tni_free((void *)vars);
    return st;
}

tn_status tni_call_sparse(tni_context *ctx, tni_signature *s, tni_attrs *attrs, tni_array *const *in,
                          tni_array *const *out, uint64_t draw)
{
    tni_array **aside = tni_calloc(s->out_count + 1u, sizeof(*aside));
    tn_status st = aside ? TN_OK : TN_E_NOMEM;

    for (uint32_t o = 0; o < s->out_count && !st; o++)
        if (stands_apart(s, in, out[o]))
            tni_array_retain(aside[o] = out[o]);
        else
            st = tni_array_like(out[o], "array", &aside[o]);
    if (!st)
        st = call_push(ctx, s, attrs, in, aside, draw);
    for (uint32_t o = 0; o < s->out_count && !st; o++)
        if (aside[o] != out[o])
            st = tni_array_copy(aside[o], out[o]);
    for (uint32_t o = 0; aside && o < s->out_count; o++)
        tni_array_release(aside[o]);
    tni_free((void *)aside);
    return st;
}

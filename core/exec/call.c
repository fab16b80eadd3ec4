/*
 * Running one eager call: the short way on the caller, or as an operation of the engine.
 *
 * A queued call is one block of memory that keeps its arrays, signature and attributes until it is complete.
 * Before the kernel runs it gets memory for outputs, workspace, and dense stand-ins: for strided operands
 * that the kernel does not take, and for outputs that overlap an input which they may not take over.
 */
#include "exec/call.h"

#include <string.h>

typedef struct call {
    tni_context *ctx;
    tni_signature *sig;
    tni_attrs *attrs;
    tni_op *op;                   /* for complete */
    uint32_t in_count, out_count; /* out: with the mutated inputs */
    tni_array **arrays;           /* inputs, then outputs; retained */
    tn_tensor *tensors;           /* the same order */
    const tn_tensor **list;
    tni_block *standin; /* dense memory per operand, mostly empty */
    tn_tensor *real;    /* the tensors that stand-ins stand for */
    int64_t *strides;   /* of stand-ins */
    tni_block workspace;
    tni_array *saved; /* bytes for the backward, or of the forward; retained; NULL: none */
    bool reads;       /* of the forward */
    tni_vec scratch;  /* tni_block, from call_ops.alloc */
    tni_run run;
    tn_rng rng;
    uint64_t draw;
    tn_exec x;
} call;

/* ---- the short way ----------------------------------------------------------------------------------- */

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

/* Distinct variables; what is written is not listed as read. False: does not fit the short way. */
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

bool tni_call_short(tni_context *c, tni_signature *sig, const tni_attrs *attrs, tni_array *const *in,
                    tni_array *const *out, uint64_t draw, tn_status *status)
{
    tn_tensor tensors[TNI_SIG_OPERANDS * 2];
    const tn_tensor *list[TNI_SIG_OPERANDS * 2];
    const uint32_t outs = sig->out_count + sig->mutated_count;
    const tn_rng rng = {
        .seed = tni_random_key(c, sig->device), .stream = (uint64_t)sig->device->index, .step = &draw};
    tn_exec x = {.struct_size = (uint32_t)TN_END(tn_exec, ops), .threads = 1};
    tn_err err;
    var_set v;
    tn_status st = TN_OK;

    if (!vars_collect(sig, in, out, &v))
        return false;
    for (uint32_t i = 0; i < sig->out_count; i++)
        if (!(out[i]->flags & TNI_ARRAY_CONTIGUOUS) || !output_apart(sig, in, out[i], i))
            return false;
    if (!tni_engine_enter(c->engine, v.reads, v.read_count, v.writes, v.write_count))
        return false;
    for (uint32_t i = 0; i < sig->out_count && !st; i++)
        st = tni_storage_allocate(out[i]->storage, NULL);
    for (uint32_t i = 0; i < sig->in_count && !st; i++)
        st = tni_storage_touch(in[i]->storage, NULL);
    if (st) { /* holding variables nobody may wait for memory: the long way may */
        tni_engine_leave(c->engine, v.reads, v.read_count, v.writes, v.write_count, TN_OK, NULL);
        return false;
    }
    for (uint32_t i = 0; i < sig->in_count + outs; i++) {
        const tni_array *a = i < sig->in_count ? in[i]
                             : i < sig->in_count + sig->out_count
                                 ? out[i - sig->in_count]
                                 : in[sig->mutated[i - sig->in_count - sig->out_count]];

        tni_array_tensor(a, &tensors[i]);
        list[i] = &tensors[i];
    }
    x.in = list;
    x.out = list + sig->in_count;
    x.modes = sig->modes;
    x.attrs = attrs->values;
    x.rng = &rng;
    err.native = 0;
    err.number = 0;
    err.message[0] = '\0';
    if ((st = kernel_run(sig, &x, &err)))
        st = tni_error_take(st, &err, sig->def->op->name);
    tni_engine_leave(c->engine, v.reads, v.read_count, v.writes, v.write_count, st, sig->def->op->name);
    *status = TN_OK; /* a failure sticks to the outputs, as everywhere */
    return true;
}

/* ---- a queued call ----------------------------------------------------------------------------------- */

static void call_destroy(call *k)
{
    if (!k)
        return;
    for (uint32_t i = 0; i < k->in_count + k->out_count; i++) {
        tni_block_free(&k->standin[i], k->run.stream);
        tni_array_release(k->arrays[i]);
    }
    tni_array_release(k->saved);
    tni_block_free(&k->workspace, k->run.stream);
    for (size_t i = 0; i < k->scratch.count; i++)
        tni_block_free(tni_vec_at(&k->scratch, i), k->run.stream);
    tni_vec_fini(&k->scratch);
    tni_signature_release(k->sig);
    tni_attrs_release(k->attrs);
    tni_free(k);
}

static tn_status call_create(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                             tni_array *const *out, call **result)
{
    const uint32_t outs = sig->out_count + sig->mutated_count, count = sig->in_count + outs;
    call *k =
        tni_zalloc(sizeof *k + count * (sizeof(tni_block) + 2 * sizeof(tn_tensor) + 2 * sizeof(void *)));

    if (!k)
        return TN_E_NOMEM;
    k->tensors = (tn_tensor *)(k + 1);
    k->real = k->tensors + count;
    k->standin = (tni_block *)(k->real + count);
    k->arrays = (tni_array **)(k->standin + count);
    k->list = (const tn_tensor **)(k->arrays + count);
    k->ctx = c;
    k->sig = sig;
    k->attrs = attrs;
    k->in_count = sig->in_count;
    k->out_count = outs;
    tni_signature_retain(sig);
    tni_attrs_retain(attrs);
    tni_vec_init(&k->scratch, sizeof(tni_block), 4096);
    for (uint32_t i = 0; i < count; i++) {
        k->arrays[i] = i < sig->in_count ? in[i]
                       : i < sig->in_count + sig->out_count
                           ? out[i - sig->in_count]
                           : in[sig->mutated[i - sig->in_count - sig->out_count]];
        tni_array_retain(k->arrays[i]);
    }
    *result = k;
    return TN_OK;
}

/* Gives operand `i` dense memory of its own. */
static tn_status standin_make(call *k, uint32_t i)
{
    tn_tensor *t = &k->tensors[i];
    int64_t *stride;
    tn_status st;

    if (!k->sig->device->host_addressable)
        return tni_error(TN_E_UNSUPPORTED,
                         "operator %s: an output shares memory with an input, and the host does not reach "
                         "the memory of device %s to part them",
                         k->sig->def->op->name, k->sig->device->type);
    if (!k->strides &&
        !(k->strides = tni_calloc((uint64_t)k->in_count + k->out_count, TN_NDIM_MAX * sizeof(int64_t))))
        return TN_E_NOMEM;
    k->real[i] = *t;
    t->stride = stride = k->strides + (size_t)i * TN_NDIM_MAX;
    t->bytes = (uint64_t)tni_row_major(t->ndim, t->shape, stride) * tn_dtype_bytes(t->dtype);
    st = tni_block_alloc(k->sig->device, TN_MEMORY_DEVICE, t->bytes, k->run.stream, "stand-in",
                         &k->standin[i]);
    t->data = k->standin[i].memory.data;
    return st;
}

/* Memory of outputs, tensors, stand-ins, workspace: on the worker, just before the kernel. */
static tn_status call_bind(call *k)
{
    const tni_prepared *p = k->sig->prepared;
    const bool strided = (p->kernel->flags & TN_KERNEL_STRIDED) != 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < k->in_count + k->out_count; i++) {
        const uint32_t o = i - k->in_count;
        tni_array *a = k->arrays[i];
        const bool near = p->near && a->storage->device->host;
        tn_stream *stream = near ? NULL : k->run.stream;

        if (!a->pending && (st = i < k->in_count ? tni_storage_touch(a->storage, stream)
                                                 : tni_storage_allocate(a->storage, stream)))
            return st;
        tni_array_tensor(a, &k->tensors[i]);
        if (near)
            k->tensors[i].memory = TN_MEMORY_HOST;
        k->list[i] = &k->tensors[i];
        if (a->pending)
            continue;
        if ((!strided && !tni_is_row_major(a->ndim, a->shape, a->stride)) ||
            (i >= k->in_count && o < k->sig->out_count && !output_apart(k->sig, k->arrays, a, o)))
            if ((st = standin_make(k, i)))
                return st;
    }
    if (p->plan.workspace_bytes &&
        (st = tni_block_alloc(k->sig->device, TN_MEMORY_DEVICE, tni_workspace_bytes(&p->plan), k->run.stream,
                              "workspace", &k->workspace)))
        return st;
    if (!k->saved)
        return TN_OK;
    return k->reads ? tni_storage_touch(k->saved->storage, k->run.stream)
                    : tni_storage_allocate(k->saved->storage, k->run.stream);
}

/* ---- what a kernel may call -------------------------------------------------------------------------- */

static tn_status op_resize(tn_call *opaque, uint32_t out, int32_t ndim, const int64_t *shape,
                           const tn_tensor **tensor, tn_err *err)
{
    call *k = (call *)opaque;
    tn_status st;

    if (out >= k->sig->out_count || !k->arrays[k->in_count + out]->pending)
        return tn_fail(err, TN_E_ARG, "resize of an output whose shape is known");
    if ((st = tni_array_resolve(k->arrays[k->in_count + out], ndim, shape, k->run.stream))) {
        tni_error_get(err);
        return st;
    }
    tni_array_tensor(k->arrays[k->in_count + out], &k->tensors[k->in_count + out]);
    *tensor = &k->tensors[k->in_count + out];
    return TN_OK;
}

static tn_status op_alloc(tn_call *opaque, uint64_t bytes, void **out, tn_err *err)
{
    call *k = (call *)opaque;
    tni_block block = {0};
    tn_status st;

    if ((st = tni_block_alloc(k->sig->device, TN_MEMORY_DEVICE, bytes, k->run.stream, "scratch", &block)) ||
        (st = tni_vec_push(&k->scratch, &block))) {
        tni_block_free(&block, k->run.stream);
        tni_error_get(err);
        return st;
    }
    *out = block.memory.data;
    return TN_OK;
}

/* What the kernel wrote into stand-ins goes to the memory that they stand for. */
static void standins_copy_back(const call *k)
{
    for (uint32_t i = k->in_count; i < k->in_count + k->out_count; i++)
        if (k->standin[i].pool)
            tni_copy_strided(&k->tensors[i], &k->real[i]);
}

/* On whatever thread the kernel came to its end: the variables are the call's until the last line. */
static void op_complete(tn_call *opaque, tn_status status, const tn_err *err)
{
    const call *k = (const call *)opaque;

    if (!status)
        standins_copy_back(k);
    tni_engine_complete(k->op, status, err);
}

static const tn_call_ops call_ops = {
    .struct_size = (uint32_t)TN_END(tn_call_ops, complete),
    .resize = op_resize,
    .alloc = op_alloc,
    .complete = op_complete,
};

/* ---- running ----------------------------------------------------------------------------------------- */

static bool all_empty(const call *k)
{
    for (uint32_t i = k->in_count; i < k->in_count + k->out_count; i++)
        if (k->arrays[i]->pending || tn_tensor_count(&k->tensors[i]))
            return false;
    return true;
}

/* The kernel with its dense stand-ins, in stream order where there is a stream. After TN_PENDING the call
 * belongs to `op_complete`. */
static tn_status call_kernel(void *arg, tn_err *err)
{
    call *k = arg;
    const tni_prepared *p = k->sig->prepared;
    tn_status st;

    for (uint32_t i = 0; i < k->in_count + k->out_count; i++)
        if (k->standin[i].pool && (i < k->in_count || i >= k->in_count + k->sig->out_count))
            tni_copy_strided(&k->real[i], &k->tensors[i]);
    if (!(p->kernel->flags & TN_KERNEL_EMPTY_OK) && all_empty(k))
        return TN_OK;
    if ((st = p->kernel->run(&p->plan, &k->x, err)))
        return st;
    standins_copy_back(k);
    return TN_OK;
}

static tn_status call_run(void *payload, tni_run *run)
{
    call *k = *(call **)payload;
    tn_err err = {0};
    tn_status st;

    k->run = *run;
    k->op = run->op;
    if ((st = call_bind(k)))
        return st;
    k->x.struct_size = (uint32_t)TN_END(tn_exec, ops);
    k->x.threads = run->threads < k->sig->threads ? run->threads : k->sig->threads;
    k->x.in = k->list;
    k->x.out = k->list + k->in_count;
    k->x.modes = k->sig->modes;
    k->x.attrs = k->attrs->values;
    k->x.workspace = tni_workspace_at(&k->sig->prepared->plan, k->workspace.memory.data);
    k->x.saved = k->saved ? tni_array_data(k->saved) : NULL;
    k->x.stream = run->stream;
    if ((st = tni_slot_get(run, k->sig->prepared->plugin, k->sig->prepared->table, &k->x.stream_slot)))
        return st;
    k->x.rng = &k->rng;
    k->x.call = (tn_call *)k;
    k->x.ops = &call_ops;
    if (run->stream && run->device->kernels_plugin)
        st = run->device->ops->stream_call(run->stream, call_kernel, k, &err);
    else
        st = call_kernel(k, &err);
    return st == TN_OK || st == TN_PENDING ? st : tni_error_take(st, &err, k->sig->def->op->name);
}

static void call_done(void *payload, tni_engine *engine, tn_status status)
{
    call *k = *(call **)payload;
    int64_t *strides = k->strides;

    (void)engine;
    (void)status;
    call_destroy(k);
    tni_free(strides);
}

/* Nothing of the old contents of what is written survives or is read: an old failure there is over. */
static bool overwrites_whole(const tni_signature *sig, tni_array *const *in, tni_array *const *out)
{
    if (sig->mutated_count)
        return false;
    for (uint32_t i = 0; i < sig->out_count; i++) {
        if (out[i]->pending)
            continue;
        if (tni_array_bytes(out[i]) < out[i]->storage->bytes)
            return false;
        for (uint32_t k = 0; k < sig->in_count; k++)
            if (in[k]->storage == out[i]->storage)
                return false;
    }
    return true;
}

tn_status tni_call_push(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                        tni_array *const *out, const tni_call_with *with)
{
    const uint32_t outs = sig->out_count + sig->mutated_count;
    const uint32_t blocks = with->saved != NULL, reads = sig->in_count + (with->reads ? blocks : 0);
    tni_task task = {.run = call_run, .done = call_done, .payload_bytes = sizeof(call *)};
    tni_var *small[24], **vars = small;
    call *k = NULL;
    tn_status st;

    if ((st = call_create(c, sig, attrs, in, out, &k)))
        return st;
    if (sig->in_count + outs >= 24 && !(vars = tni_calloc(sig->in_count + outs + 1u, sizeof *vars))) {
        call_destroy(k);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < sig->in_count; i++)
        vars[i] = tni_array_var(k->arrays[i]);
    for (uint32_t i = 0; i < outs; i++)
        vars[reads + i] = tni_array_var(k->arrays[sig->in_count + i]);
    if (with->saved) {
        tni_array_retain(k->saved = with->saved);
        vars[with->reads ? sig->in_count : reads + outs] = tni_array_var(with->saved);
    }
    k->reads = with->reads;
    k->draw = with->draw;
    k->rng = (tn_rng){tni_random_key(c, sig->device), (uint64_t)sig->device->index, &k->draw, 0};
    task.payload = &k;
    task.reads = vars;
    task.read_count = reads;
    task.writes = vars + reads;
    task.write_count = sig->in_count + outs + blocks - reads;
    task.device = sig->device;
    task.name = sig->def->op->name;
    task.origin = tni_scope_get()->origin;
    task.est_ns = sig->prepared->plan.est_ns;
    task.flags = sig->prepared->plan.flags & TN_PLAN_PARALLEL ? TNI_TASK_PARALLEL : 0;
    if (sig->prepared->kernel->flags & TN_KERNEL_ASYNC)
        task.flags |= TNI_TASK_ASYNC;
    if (sig->prepared->near)
        task.flags |= TNI_TASK_ARRIVED;
    if (overwrites_whole(sig, in, out))
        task.flags |= TNI_TASK_CLEARS;
    if ((st = tni_engine_push(c->engine, &task)))
        call_destroy(k);
    if (vars != small)
        tni_free(vars);
    return st;
}

/*
 * Running a segment: memory, addresses, then the instructions in a row.
 *
 * There is one table from a definition's exec kind to what runs it. Kernels are replayed without a
 * allocation, lock, hash or text on the way; what the segment is through with is given free in between.
 */
#include <string.h>

#include "exec/frame_internal.h"

static frame_phase *phase_of(const frame_segment *s)
{
    return &s->frame->phases[s->frame->program->segments[s->index].phase];
}

/* ---- what a kernel may call -------------------------------------------------------------------------- */

/* The shape is known from what reads the output: the run is to tell the same. */
static tn_status resize_known(const tn_tensor *t, int32_t ndim, const int64_t *shape,
                              const tn_tensor **tensor, tn_err *err)
{
    bool same = t->ndim == ndim;

    for (int32_t d = 0; same && d < ndim; d++)
        same = t->shape[d] == shape[d];
    if (!same)
        return tn_fail(err, TN_E_SHAPE, "gives an output another shape than the one that its readers need");
    *tensor = t;
    return TN_OK;
}

static bool tensor_known(const tn_tensor *t)
{
    bool known = t->ndim >= 0;

    for (int32_t d = 0; d < t->ndim; d++)
        known &= t->shape[d] >= 0;
    return known;
}

static tn_status op_alloc(tn_call *opaque, uint64_t bytes, void **out, tn_err *err);

/* No array waits for the output, since nobody reads it: it gets scratch until the end of the call. */
static tn_status resize_unread(frame_segment *s, const tni_instruction *in, uint32_t out, int32_t ndim,
                               const int64_t *shape, tn_err *err)
{
    tn_tensor *t = &s->frame->tensors[s->frame->program->slots[in->first_operand + in->in_count + out]];
    uint64_t count;
    tn_status st = tni_shape_check(t->dtype, ndim, shape, &count);
    int64_t *dims;

    if (st || (!s->dims && !(s->dims = tni_calloc(in->out_count, sizeof *s->dims)))) {
        tni_error_get(err);
        return st ? st : TN_E_NOMEM;
    }
    dims = s->dims[out];
    memcpy(dims, shape, (size_t)ndim * sizeof *dims);
    (void)tni_row_major(ndim, dims, dims + TN_NDIM_MAX);
    t->ndim = ndim;
    t->shape = dims;
    t->stride = dims + TN_NDIM_MAX;
    t->bytes = tn_dtype_size(t->dtype, count);
    return op_alloc((tn_call *)s, t->bytes ? t->bytes : 1, &t->data, err);
}

static tn_status op_resize(tn_call *opaque, uint32_t out, int32_t ndim, const int64_t *shape,
                           const tn_tensor **tensor, tn_err *err)
{
    frame_segment *s = (frame_segment *)opaque;
    tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const tni_instruction *in = &p->code[p->segments[s->index].first_code];
    const uint32_t at = in->first_operand + in->in_count + out;
    const tni_value *v = out < in->out_count ? &p->values[p->operands[at]] : NULL;
    tni_array *a = v && v->place == TNI_PLACE_PORT ? phase_of(s)->arrays[v->port] : NULL;
    tn_status st;

    if (!v || !(in->prepared->plan.flags & TN_PLAN_RESIZES))
        return tn_fail(err, TN_E_ARG,
                       "resize of an output that it has not, or by a plan that does not resize");
    if (!a && !tensor_known(&v->tensor)) {
        *tensor = &f->tensors[p->slots[at]];
        return resize_unread(s, in, out, ndim, shape, err);
    }
    if (!a || !a->pending)
        return resize_known(&f->tensors[p->slots[at]], ndim, shape, tensor, err);
    if ((st = tni_array_resolve(a, ndim, shape, s->run.stream))) {
        tni_error_get(err);
        return st;
    }
    tni_array_tensor(a, &f->tensors[p->slots[at]]);
    *tensor = &f->tensors[p->slots[at]];
    return TN_OK;
}

static tn_status op_alloc(tn_call *opaque, uint64_t bytes, void **out, tn_err *err)
{
    frame_segment *s = (frame_segment *)opaque;
    tni_block block = {0};
    tn_status st;

    if ((st = tni_block_alloc(s->frame->program->segments[s->index].device, TN_MEMORY_DEVICE, bytes,
                              s->run.stream, "scratch", &block)) ||
        (st = tni_vec_push(&s->scratch, &block))) {
        tni_block_free(&block, s->run.stream);
        tni_error_get(err);
        return st;
    }
    *out = block.memory.data;
    return TN_OK;
}

/* On whatever thread the kernel came to its end: the variables are the call's until the last line. */
static void op_complete(tn_call *opaque, tn_status status, const tn_err *err)
{
    frame_segment *s = (frame_segment *)opaque;
    tn_err later = {0};

    if (!status && s->after && (status = tni_moves_run(s->after, &s->run))) {
        tni_error_get(&later);
        err = &later;
    }
    tni_engine_complete(s->run.op, status, err);
}

const tn_call_ops tni_frame_call_ops = {
    .struct_size = (uint32_t)TN_END(tn_call_ops, complete),
    .resize = op_resize,
    .alloc = op_alloc,
    .complete = op_complete,
};

/* ---- before the first instruction ---------------------------------------------------------------------- */

/* All memory, before anything is written; what phase ONCE alone reads is its own matter. What is read or
 * added up and was never written begins as zeros. */
static tn_status ports_reserve(const frame_segment *s, tn_stream *stream)
{
    const tni_program *p = s->frame->program;
    const tni_segment *segment = &p->segments[s->index];
    tni_array *const *arrays = phase_of(s)->arrays;
    tn_status st = TN_OK;

    for (uint32_t u = 0; u < segment->read_count + segment->write_count && !st; u++) {
        const uint32_t port = p->uses[segment->first_use + u];
        tni_storage *storage = arrays[port]->storage;
        const bool reads = u < segment->read_count || p->ports[port].read >> segment->phase & 1u;
        tn_stream *on = storage->device->host ? NULL : stream;

        if (!arrays[port]->pending && !tni_port_once(&p->ports[port]))
            st = reads ? tni_storage_touch(storage, on) : tni_storage_allocate(storage, on);
    }
    return st;
}

/* The caller wrote an array since, so what is computed again from it would be something else. */
static tn_status written_since(const tni_program *p, const tni_port *port)
{
    const tni_graph *g = p->graph;

    return tni_error(TN_E_STATE,
                     "input %u (\"%.200s\") of a net was written between its forward and its backward, which "
                     "computes values again from it (compile.mirror)",
                     port->index, g->nodes[g->variables[port->index]].name);
}

static tn_status versions_check(const frame_segment *s)
{
    const tni_frame *f = s->frame, *of = phase_of(s)->lender ? phase_of(s)->lender : f;
    const tni_program *p = f->program;
    const tni_segment *segment = &p->segments[s->index];
    tn_status st = TN_OK;

    for (uint32_t u = 0; u < segment->read_count && !st; u++) {
        const tni_port *port = &p->ports[p->uses[segment->first_use + u]];
        const uint64_t version =
            tni_var_version(tni_array_var(phase_of(s)->given[p->uses[segment->first_use + u]]));
        uint64_t *seen = port->again ? &of->seen[port->again - 1] : NULL;

        if (seen && segment->phase == TNI_FORWARD)
            __atomic_store_n(seen, version, __ATOMIC_RELAXED);
        else if (seen && __atomic_load_n(seen, __ATOMIC_RELAXED) != version)
            st = written_since(p, port);
    }
    return st;
}

static void ports_bind(const frame_segment *s, uint32_t phase)
{
    tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const tni_segment *segment = &p->segments[s->index];
    tni_array *const *arrays = f->phases[phase].arrays;

    for (uint32_t b = 0; b < segment->binding_count; b++) {
        const tni_binding *binding = &p->bindings[segment->first_binding + b];
        char *data = tni_array_data(arrays[binding->port]);

        f->tensors[binding->slot].data = data ? data + p->values[binding->value].delta : NULL;
    }
    for (uint32_t c = 0; segment->flags & TNI_SEGMENT_BLOCKS && c < segment->code_count; c++) {
        const tni_instruction *in = &p->code[segment->first_code + c];

        if (in->saved != TNI_NONE && p->values[in->saved].place == TNI_PLACE_PORT)
            f->steps[segment->first_code + c].x.saved = tni_array_data(arrays[p->values[in->saved].port]);
    }
}

/* A device has one stream for compute, so it is the same from the first call on. */
static tn_status stream_bind(frame_segment *s, const tni_run *run)
{
    tni_frame *f = s->frame;
    const tni_segment *segment = &f->program->segments[s->index];
    tn_status st = TN_OK;

    for (uint32_t c = segment->first_code;
         s->stream != run->stream && c < segment->first_code + segment->code_count; c++) {
        const tni_prepared *prepared = f->program->code[c].prepared;

        f->steps[c].x.stream = run->stream;
        if (prepared &&
            (st = tni_slot_get(run, prepared->plugin, prepared->table, &f->steps[c].x.stream_slot)))
            return st;
    }
    s->stream = run->stream;
    return st;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static tn_status step_run(const frame_step *step, const char *name, tn_err *err)
{
    tn_status st;

    tni_trace_event('B', "kernel", name, 0);
    st = step->run(step->plan, &step->x, err);
    tni_trace_event('E', "kernel", name, 0);
    return st;
}

static const char *name_of(const tni_program *p, uint32_t code)
{
    return p->graph ? p->graph->nodes[p->code[code].node].name : p->code[code].def->op->name;
}

/* The variable of port use `use`: reads come first, then the segments waited for, then writes. Phase ONCE
 * runs within another segment, which keeps the variables. */
static void use_release(frame_segment *s, const tni_segment *segment, uint32_t use)
{
    const uint32_t waited = segment->edge_count + s->frame->program->lender_segments;

    tni_engine_release_at(&s->run, use < segment->read_count ? use : use + waited);
}

/* With events of the profiler, and giving free early. */
static tn_status replay_slowly(const frame_segment *s, uint32_t *at, tn_err *err)
{
    const tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const tni_segment *segment = &p->segments[s->index];
    const bool traced = atomic_load_explicit(&tni_trace_on, memory_order_relaxed);
    const bool early =
        !phase_of(s)->standins && !s->captured && !(s->run.stream && s->run.device->kernels_plugin);
    uint32_t next = segment->first_release, end = next + segment->release_count + segment->spent_count;
    tn_status st = TN_OK;

    for (; *at < segment->first_code + segment->code_count && !st; ++*at) {
        const frame_step *step = &f->steps[*at];

        if (step->run)
            st = traced ? step_run(step, name_of(p, *at), err) : step->run(step->plan, &step->x, err);
        for (; !st && early && next < end && p->releases[next].code == *at; next++)
            if (segment->spent_count)
                tni_constants_spent(s, p->uses[segment->first_use + p->releases[next].use]);
            else
                use_release((frame_segment *)s, segment, p->releases[next].use);
    }
    return st;
}

/* The whole replay. [worker], or in stream order on a device that runs host kernels. */
static tn_status kernels_replay(void *arg, tn_err *err)
{
    const frame_segment *s = arg;
    const tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const tni_segment *segment = &p->segments[s->index];
    const uint32_t end = segment->first_code + segment->code_count;
    uint32_t at = segment->first_code;
    tn_status st = TN_OK;

    if (segment->release_count + segment->spent_count ||
        TN_UNLIKELY(atomic_load_explicit(&tni_trace_on, memory_order_relaxed))) {
        st = replay_slowly(s, &at, err);
    } else {
        for (; at < end && !st; at++) {
            const frame_step *step = &f->steps[at];

            if (TN_LIKELY(step->run != NULL))
                st = step->run(step->plan, &step->x, err);
        }
    }
    if (st > 0 && p->graph && at > segment->first_code) { /* name the layer */
        tn_err inner = *err;

        tni_err_format(err, st, "node \"%s\": %.400s", name_of(p, at - 1),
                       inner.message[0] ? inner.message : "failed without saying why");
    }
    return st;
}

static tn_status kernels_run(frame_segment *s, tn_err *err)
{
    return s->run.stream ? tni_capture_run(s, kernels_replay, err) : kernels_replay(s, err);
}

tn_status tni_segment_kernels(frame_segment *s, uint32_t phase, tn_err *err)
{
    const tn_status st = stream_bind(s, &s->run);

    if (st)
        return st;
    ports_bind(s, phase);
    return kernels_run(s, err);
}

/* ---- copies between devices -------------------------------------------------------------------------- */

static tn_place place_of(const tn_tensor *t, const tni_value *v)
{
    const bool host = v->device->host;

    return (tn_place){.data = t->data,
                      .device = host ? -1 : v->device->index,
                      .memory = host ? TN_MEMORY_HOST : TN_MEMORY_DEVICE,
                      .type = host ? NULL : v->device->type};
}

static tn_status copy_run(frame_segment *s, tn_err *err)
{
    const tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const uint32_t code = p->segments[s->index].first_code;
    const tni_instruction *in = &p->code[code];
    const uint32_t *operand = p->operands + in->first_operand;
    const tn_tensor *src = f->operands[in->first_operand], *dst = f->operands[in->first_operand + 1];
    const tn_place from = place_of(src, &p->values[operand[0]]), to = place_of(dst, &p->values[operand[1]]);

    if (!src->bytes)
        return TN_OK;
    if (s->run.stream)
        return s->run.device->ops->copy(s->run.stream, &to, &from, src->bytes, err);
    memcpy(dst->data, src->data, src->bytes);
    return TN_OK;
}

/* ---- the table --------------------------------------------------------------------------------------- */

static tn_status (*const runners[])(frame_segment *s, tn_err *err) = {
    [TN_EXEC_KERNEL] = kernels_run,
    [TN_EXEC_SUBGRAPH] = tni_subgraph_run,
    [TN_EXEC_HOST] = kernels_run,
    [TN_EXEC_COPY] = copy_run,
};

/* What only this run uses is free for what the stream is given next, long before the run has ended: however
 * many calls are under way, they take turns with one block. */
static void memory_pass(frame_segment *s, const tni_run *run)
{
    tni_frame *f = s->frame;

    if (!run->stream || !f->pool->passes)
        return;
    tni_mutex_lock(&f->lock);
    tni_frame_phase_free(f, f->program->segments[s->index].phase);
    tni_mutex_unlock(&f->lock);
}

static tn_status segment_run(frame_segment *s, tni_run *run)
{
    const tni_segment *segment = &s->frame->program->segments[s->index];
    tn_err err = {0};
    tn_status st;

    s->run = *run;
    if (run->stream) {
        tni_mutex_lock(&s->frame->lock);
        st = tni_frame_memory(s->frame, segment->phase, run);
        tni_mutex_unlock(&s->frame->lock);
        if (st)
            return st;
    }
    if ((segment->flags & TNI_SEGMENT_AGAIN && (st = versions_check(s))) ||
        (st = ports_reserve(s, run->stream)) || (st = tni_moves_reserve(s->before, run)) ||
        (st = tni_moves_reserve(s->after, run)) || (st = stream_bind(s, run)) ||
        (st = tni_moves_run(s->before, run)))
        return st;
    ports_bind(s, segment->phase);
    if (!(segment->flags & TNI_SEGMENT_CONSTANTS) || !(st = tni_constants_refresh(s, &err)))
        st = runners[segment->kind](s, &err);
    if (st)
        return st == TN_PENDING ? st : tni_error_take(st, &err, s->frame->tasks[s->index].name);
    if (!(st = tni_moves_run(s->after, run)))
        memory_pass(s, run);
    return st;
}

tn_status tni_segment_run(void *payload, tni_run *run)
{
    return segment_run(*(frame_segment **)payload, run);
}

/*
 * Frames: the memory and the ready-made steps of one program, called again and again.
 *
 * All that can be settled once is settled when the frame is made: operand pointers, modes, attributes, where
 * each entry of the arena lies. A call binds the addresses of its inputs and outputs and runs the steps in a
 * row: no allocation, lock, hash or text on the way. A call's own record keeps its arrays until it is done.
 */
#include "exec/internal.h"

#include <string.h>

typedef struct tni_frame_call {
    struct tni_frame_call *next;
    tni_frame *frame;
    tni_array **arrays;        /* inputs, then outputs; retained; dense ones in place of strided */
    tni_moves *before, *after; /* into those, and out of them; zeros; mostly NULL */
    tn_value *values;          /* of links, taken when the call was made, as key and draw */
    uint64_t key, draw, moved_bytes;
} tni_frame_call;

/* ---- making ------------------------------------------------------------------------------------------ */

static void frame_destroy(tni_frame *f)
{
    while (f->calls) {
        tni_frame_call *next = f->calls->next;

        tni_free(f->calls);
        f->calls = next;
    }
    tni_mutex_fini(&f->lock);
    tni_array_release(f->arena);
    tni_program_release(f->program);
    tni_free(f->tensors);
    tni_free((void *)f->operands);
    tni_free_aligned(f->steps);
    tni_free(f->rngs);
    tni_free(f->values);
    tni_free(f);
}

void tni_frame_retain(tni_frame *f)
{
    tni_ref_retain(&f->refs);
}

void tni_frame_release(tni_frame *f)
{
    if (f && tni_ref_release(&f->refs))
        frame_destroy(f);
}

static uint64_t values_count(const tni_program *p)
{
    uint64_t n = 0;

    for (uint32_t c = 0; c < p->code_count; c++)
        if (p->code[c].link_count)
            n += p->code[c].def->attr_count;
    return n;
}

static uint64_t random_steps(const tni_program *p)
{
    uint64_t n = 0;

    for (uint32_t c = 0; c < p->code_count; c++)
        n += p->code[c].random != TNI_NONE;
    return n;
}

/* Steps point into the frame: operands, attributes, random draw. */
static void steps_make(tni_frame *f)
{
    const tni_program *p = f->program;
    tn_value *values = f->values;
    tn_rng *rng = f->rngs;

    for (uint32_t c = 0; c < p->code_count; c++) {
        const tni_instruction *in = &p->code[c];
        tni_step *step = &f->steps[c];

        step->run = in->prepared->kernel->run;
        step->plan = &in->prepared->plan;
        step->special = (in->skip_empty ? TNI_STEP_SKIP : 0u) | (in->add_by_core ? TNI_STEP_ADD : 0u);
        step->x.struct_size = (uint32_t)TN_END(tn_exec, ops);
        step->x.threads = p->threads;
        step->x.in = f->operands + in->first_operand;
        step->x.out = step->x.in + in->in_count;
        step->x.modes = p->modes + in->first_operand + in->in_count;
        step->x.attrs = in->attrs->values;
        if (in->random != TNI_NONE) {
            *rng = (tn_rng){0, (uint64_t)p->device->index, &f->draw, in->random};
            step->x.rng = rng++;
        }
        if (in->link_count) {
            memcpy(values, in->attrs->values, in->def->attr_count * sizeof *values);
            step->x.attrs = values;
            values += in->def->attr_count;
        }
    }
}

tn_status tni_frame_create(tni_context *c, tni_program *p, tni_frame **out)
{
    const int64_t bytes = (int64_t)p->arena_bytes;
    tni_frame *f = tni_zalloc(sizeof *f);
    tn_status st = TN_OK;

    if (!f)
        return TN_E_NOMEM;
    if (tni_mutex_init(&f->lock)) {
        tni_free(f);
        return TN_E_NOMEM;
    }
    tni_ref_init(&f->refs);
    f->ctx = c;
    f->program = p;
    tni_program_retain(p);
    f->tensors = tni_calloc(p->graph->entry_count + 1u, sizeof *f->tensors);
    f->operands = tni_calloc(p->operand_count + 1u, sizeof *f->operands);
    f->steps = tni_alloc_aligned(64, (p->code_count + 1ull) * sizeof *f->steps);
    f->random_steps = random_steps(p);
    f->rngs = tni_calloc(f->random_steps + 1u, sizeof *f->rngs);
    f->values = tni_calloc(values_count(p) + 1u, sizeof *f->values);
    if (!f->tensors || !f->operands || !f->steps || !f->rngs || !f->values)
        st = TN_E_NOMEM;
    else
        memset(f->steps, 0, (p->code_count + 1ull) * sizeof *f->steps);
    if (st || (st = tni_array_create(c->space, p->device, TN_U8, 1, &bytes, "frame", &f->arena))) {
        frame_destroy(f);
        return st;
    }
    memcpy(f->tensors, p->tensors, p->graph->entry_count * sizeof *f->tensors);
    for (uint32_t i = 0; i < p->operand_count; i++)
        f->operands[i] = &f->tensors[p->operands[i]];
    steps_make(f);
    atomic_fetch_add_explicit(&c->exec->frames, 1, memory_order_relaxed);
    *out = f;
    return TN_OK;
}

tn_status tni_frame_entry(tni_frame *f, uint32_t entry, tni_array **out)
{
    const tni_program *p = f->program;
    const tn_tensor *t = &p->tensors[entry];

    if (p->places[entry].kind != TNI_PLACE_ARENA)
        return tni_error(TN_E_INTERNAL, "entry %u of a program is not kept in its frame", entry);
    return tni_array_on(f->arena->storage, t->dtype, p->places[entry].offset / tn_dtype_bytes(t->dtype),
                        t->ndim, t->shape, NULL, out);
}

tn_status tni_frame_saved(tni_frame *f, uint32_t instruction, tni_array **out)
{
    const tni_instruction *in = &f->program->code[instruction];
    const int64_t bytes = (int64_t)in->prepared->plan.saved_bytes;

    return tni_array_on(f->arena->storage, TN_U8, in->saved_offset, 1, &bytes, NULL, out);
}

/* ---- running ----------------------------------------------------------------------------------------- */

static void bind_arena(tni_frame *f)
{
    const tni_program *p = f->program;
    char *base = tni_array_data(f->arena);

    for (uint32_t e = 0; e < p->graph->entry_count; e++)
        if (p->places[e].kind == TNI_PLACE_ARENA)
            f->tensors[e].data = base + p->places[e].offset;
    for (uint32_t c = 0; c < p->code_count; c++) {
        const tni_instruction *in = &p->code[c];

        if (in->workspace != TNI_NONE)
            f->steps[c].x.workspace = tni_workspace_at(f->steps[c].plan, base + in->workspace_offset);
        if (in->saved != TNI_NONE || in->saved_of != TNI_NONE)
            f->steps[c].x.saved = base + in->saved_offset;
    }
    f->bound = true;
}

/* Today's inputs, outputs, draw and run-time attributes. */
static void bind_call(tni_frame *f, const tni_frame_call *k)
{
    const tni_program *p = f->program;
    const tn_value *value = k->values;

    for (uint32_t i = 0; i < p->external_count; i++) {
        const uint32_t e = p->external[i];
        const tni_place *place = &p->places[e];
        const tni_array *a =
            k->arrays[place->kind == TNI_PLACE_INPUT ? place->index : p->input_count + place->index];

        f->tensors[e].data = tni_array_data(a);
    }
    for (uint32_t c = 0; p->saved_input_count && c < p->code_count; c++)
        if (p->code[c].saved_input != TNI_NONE)
            f->steps[c].x.saved = tni_array_data(k->arrays[p->code[c].saved_input]);
    f->draw = k->draw;
    for (uint32_t c = 0; p->link_count && c < p->code_count; c++)
        for (uint32_t l = 0; l < p->code[c].link_count; l++)
            ((tn_value *)f->steps[c].x.attrs)[p->links[p->code[c].first_link + l].to] = *value++;
    if (p->random_count)
        for (uint64_t i = 0; i < f->random_steps; i++)
            f->rngs[i].seed = k->key;
}

/* For a kernel that only writes: what it made is put aside and added. Outputs that are not added are written.
 */
static tn_status step_add(tni_frame *f, uint32_t c, tn_err *err)
{
    const tni_instruction *in = &f->program->code[c];
    const tni_step *step = &f->steps[c];
    tn_tensor *aside = tni_calloc(in->out_count, sizeof *aside);
    const tn_tensor **out = tni_calloc(in->out_count, sizeof *out);
    tn_exec x = step->x;
    tn_status st = aside && out ? TN_OK : tn_fail(err, TN_E_NOMEM, "out of memory for a sum of gradients");

    if (!st && !f->program->device->host_addressable)
        st = tn_fail(err, TN_E_UNSUPPORTED, "the host does not reach the device's memory to add gradients");
    for (uint32_t o = 0; !st && o < in->out_count; o++) {
        aside[o] = *step->x.out[o];
        out[o] = &aside[o];
        if (step->x.modes[o] == TN_MODE_ADD && !(aside[o].data = tni_alloc(aside[o].bytes)))
            st = tn_fail(err, TN_E_NOMEM, "out of memory for a sum of gradients");
    }
    x.out = out;
    if (!st)
        st = step->run(step->plan, &x, err);
    for (uint32_t o = 0; aside && out && o < in->out_count; o++) {
        if (!out[o] || step->x.modes[o] != TN_MODE_ADD)
            continue;
        if (!st)
            tni_add_strided(&aside[o], step->x.out[o]);
        tni_free(aside[o].data);
    }
    tni_free(aside);
    tni_free((void *)out);
    return st;
}

/* The whole replay. [worker], or in stream order on a device that runs host kernels. */
static tn_status frame_replay(void *arg, tn_err *err)
{
    tni_frame_call *k = arg;
    tni_frame *f = k->frame;
    const tni_program *p = f->program;
    const uint32_t count = p->code_count;
    tn_status st = TN_OK;
    uint32_t c;

    if (!f->bound)
        bind_arena(f);
    bind_call(f, k);
    for (c = 0; c < count && !st; c++) {
        const tni_step *step = &f->steps[c];

        if (TN_LIKELY(!step->special))
            st = step->run(step->plan, &step->x, err);
        else if (!(step->special & TNI_STEP_SKIP))
            st = step_add(f, c, err);
    }
    if (st && c) { /* name the layer */
        tn_err inner = *err;

        tni_err_format(err, st, "node \"%s\": %.400s", p->graph->nodes[p->code[c - 1].node].name,
                       inner.message[0] ? inner.message : "failed without saying why");
    }
    return st;
}

/* All memory, before anything is written: of the arena, the outputs, the moves. What is read or added up and
 * was never written begins as zeros. */
static tn_status call_allocate(tni_frame_call *k, tn_stream *stream)
{
    tni_frame *f = k->frame;
    const tni_program *p = f->program;
    tn_status st = TN_OK;

    if (p->arena_bytes && !f->arena->storage->data && (st = tni_storage_allocate(f->arena->storage, stream)))
        return st;
    for (uint32_t i = 0; i < p->input_count + p->output_count && !st; i++) {
        tni_storage *s = k->arrays[i] ? k->arrays[i]->storage : NULL;

        const bool adds = i >= p->input_count && p->outputs[i - p->input_count].mode == TN_MODE_ADD;

        if (s)
            st = i < p->input_count || adds ? tni_storage_touch(s, stream) : tni_storage_allocate(s, stream);
    }
    return st;
}

static tn_status call_reserve(tni_frame_call *k, const tni_run *run)
{
    tn_status st = call_allocate(k, run->stream);

    if (!st)
        st = tni_moves_reserve(k->before, run);
    return st ? st : tni_moves_reserve(k->after, run);
}

/* A device has one worker for programs, so its stream is the same from the first call on. */
static tn_status bind_stream(tni_frame *f, const tni_run *run)
{
    const tni_program *p = f->program;
    tn_status st = TN_OK;

    for (uint32_t c = 0; f->stream != run->stream && c < p->code_count && !st; c++) {
        const tni_prepared *prepared = p->code[c].prepared;

        f->steps[c].x.stream = run->stream;
        st = tni_slot_get(run, prepared->plugin, prepared->table, &f->steps[c].x.stream_slot);
    }
    if (!st)
        f->stream = run->stream;
    return st;
}

static tn_status call_run(void *payload, tni_run *run)
{
    tni_frame_call *k = *(tni_frame_call **)payload;
    tn_err err = {0};
    tn_status st = call_reserve(k, run);

    if (st || (st = bind_stream(k->frame, run)) || (st = tni_moves_run(k->before, run)))
        return st;
    if (run->stream && run->device->kernels_plugin)
        st = run->device->ops->stream_call(run->stream, frame_replay, k, &err);
    else
        st = frame_replay(k, &err);
    return st ? tni_error_take(st, &err, "program") : tni_moves_run(k->after, run);
}

static void call_release(tni_frame_call *k)
{
    tni_frame *f = k->frame;
    const tni_program *p = f->program;

    for (uint32_t i = 0; i < p->input_count + p->output_count; i++) {
        tni_array_release(k->arrays[i]);
        k->arrays[i] = NULL;
    }
    tni_moves_destroy(k->before);
    tni_moves_destroy(k->after);
    k->before = k->after = NULL;
    tni_mutex_lock(&f->lock);
    k->next = f->calls;
    f->calls = k;
    tni_mutex_unlock(&f->lock);
    atomic_fetch_sub(&f->queued, 1);
    tni_frame_release(f);
}

static void call_done(void *payload, tni_engine *engine, tn_status status)
{
    tni_frame_call *k = *(tni_frame_call **)payload;

    if (status) /* the arena holds nothing that anybody could still want */
        tni_engine_clear(engine, tni_array_var(k->frame->arena));
    call_release(k);
}

/* ---- queueing ---------------------------------------------------------------------------------------- */

static tn_status call_take(tni_frame *f, tni_frame_call **out)
{
    const tni_program *p = f->program;
    const uint32_t ports = p->input_count + p->output_count;
    tni_frame_call *k;

    tni_mutex_lock(&f->lock);
    if ((k = f->calls) != NULL)
        f->calls = k->next;
    tni_mutex_unlock(&f->lock);
    if (!k) {
        if (!(k = tni_zalloc(sizeof *k + (ports + 1u) * sizeof *k->arrays +
                             p->link_count * sizeof *k->values)))
            return TN_E_NOMEM;
        k->arrays = (tni_array **)(k + 1);
        k->values = (tn_value *)(k->arrays + ports);
        k->frame = f;
    }
    tni_frame_retain(f);
    atomic_fetch_add(&f->queued, 1);
    *out = k;
    return TN_OK;
}

static tn_status port_check(const tni_program *p, const tni_port *port, const tni_array *a, const char *what,
                            uint32_t index)
{
    if (!a)
        return tni_error(TN_E_ARG, "%s %u of a program is NULL", what, index);
    if (!tni_array_has_shape(a, port->shape.ndim, port->shape.dim))
        return tni_error(TN_E_SHAPE, "%s %u of a program has another shape than it was made for", what,
                         index);
    if (a->dtype != port->dtype)
        return tni_error(TN_E_DTYPE, "%s %u of a program is %s, it was made for %s", what, index,
                         tni_dtype_name(a->dtype), tni_dtype_name(port->dtype));
    if (a->storage->device != p->device)
        return tni_error(TN_E_DEVICE, "%s %u of a program is on %s:%d, it was made for %s:%d", what, index,
                         a->storage->device->type, a->storage->device->index, p->device->type,
                         p->device->index);
    return TN_OK;
}

/* The array itself if it is row-major, else a dense one that the operation fills before and empties after. */
static tn_status call_array(tni_frame_call *k, uint32_t i, tni_array *a, bool fill, bool empty)
{
    const tni_program *p = k->frame->program;
    const uint32_t most = p->input_count + p->output_count;
    tn_status st;

    if (empty && !tni_array_writable(a))
        return tni_error(TN_E_STATE, "a program would write memory that may only be read");
    if (TN_LIKELY(a->flags & TNI_ARRAY_CONTIGUOUS)) {
        tni_array_retain(k->arrays[i] = a);
        return TN_OK;
    }
    st = tni_array_create(k->frame->ctx->space, p->device, a->dtype, a->ndim, a->shape, "array",
                          &k->arrays[i]);
    k->moved_bytes += tni_array_bytes(a);
    if (!st && fill)
        st = tni_moves_add(&k->before, most, a, k->arrays[i], false);
    if (!st && empty)
        st = tni_moves_add(&k->after, most, k->arrays[i], a, false);
    return st;
}

static tn_status call_arrays(tni_frame_call *k, tni_array *const *inputs, tni_array *const *outputs)
{
    const tni_program *p = k->frame->program;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->input_count && !st; i++)
        if (!(st = port_check(p, &p->inputs[i], inputs[i], "input", i)))
            st = call_array(k, i, inputs[i], true, p->inputs[i].written);
    for (uint32_t i = 0; i < p->output_count && !st; i++)
        if (!(st = port_check(p, &p->outputs[i], outputs[i], "output", i)))
            st = call_array(k, p->input_count + i, outputs[i], p->outputs[i].mode == TN_MODE_ADD, true);
    return st;
}

static void call_values(tni_frame_call *k, const tni_attrs *const *sources)
{
    const tni_program *p = k->frame->program;

    for (uint32_t l = 0; l < p->link_count; l++) {
        const tni_attr_link *link = &p->links[l];
        const tni_attrs *from = sources ? sources[link->source] : NULL;

        if (!from)
            from = p->graph->nodes[link->source].attrs;
        k->values[l] = from->values[link->from];
    }
}

/* The variables are those of the arrays given, not of what stands in for them. */
static tn_status call_push(tni_frame_call *k, tni_array *const *inputs, tni_array *const *outputs,
                           const tni_frame_zeros *zeros)
{
    const tni_program *p = k->frame->program;
    const uint32_t zero_count = zeros ? zeros->count : 0;
    const uint32_t count = p->input_count + p->output_count + zero_count + 1u;
    tni_var *small[64], **vars = count * 2 > 64 ? tni_calloc(count * 2ull, sizeof *vars) : small;
    tni_task task = {.run = call_run, .done = call_done, .payload = &k, .payload_bytes = sizeof k};
    bool clears = true;
    tn_status st;

    if (!vars)
        return TN_E_NOMEM;
    task.reads = vars;
    task.writes = vars + count;
    vars[count + task.write_count++] = tni_array_var(k->frame->arena);
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (p->inputs[i].written) {
            vars[count + task.write_count++] = tni_array_var(inputs[i]);
            clears = false;
        } else {
            vars[task.read_count++] = tni_array_var(inputs[i]);
        }
    }
    for (uint32_t i = 0; i < p->output_count; i++) {
        vars[count + task.write_count++] = tni_array_var(outputs[i]);
        clears &= p->outputs[i].mode == TN_MODE_WRITE && k->arrays[p->input_count + i] == outputs[i] &&
                  tni_array_bytes(outputs[i]) == outputs[i]->storage->bytes;
    }
    for (uint32_t i = 0; i < zero_count; i++) {
        vars[count + task.write_count++] = tni_array_var(zeros->arrays[i]);
        clears &= tni_array_bytes(zeros->arrays[i]) == zeros->arrays[i]->storage->bytes;
    }
    task.device = p->device;
    task.name = "program";
    task.est_ns = p->est_ns ? p->est_ns + k->moved_bytes / 4 : 0;
    task.flags = (p->parallel ? TNI_TASK_PARALLEL : 0u) | (clears ? TNI_TASK_CLEARS : 0u);
    st = tni_engine_push(k->frame->ctx->engine, &task);
    if (vars != small)
        tni_free(vars);
    return st;
}

tn_status tni_frame_run(tni_frame *f, tni_array *const *inputs, tni_array *const *outputs,
                        const tni_attrs *const *sources, uint64_t draw, const tni_frame_zeros *zeros)
{
    const uint32_t ports = f->program->input_count + f->program->output_count;
    tni_frame_call *k;
    tn_status st = call_take(f, &k);

    if (st)
        return st;
    k->moved_bytes = 0;
    for (uint32_t i = 0; zeros && i < zeros->count && !st; i++) {
        st = tni_moves_add(&k->after, ports + zeros->count, NULL, zeros->arrays[i], false);
        k->moved_bytes += tni_array_bytes(zeros->arrays[i]);
    }
    if (!st && !(st = call_arrays(k, inputs, outputs))) {
        k->key = f->program->random_count ? tni_random_key(f->ctx, f->program->device) : 0;
        k->draw = draw;
        call_values(k, sources);
        st = call_push(k, inputs, outputs, zeros);
    }
    if (st)
        call_release(k);
    return st;
}

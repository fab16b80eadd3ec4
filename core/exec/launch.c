/*
 * Queueing phases of frames: everything is checked and reserved first, then all operations enter the engine
 * as one group.
 *
 * An array that is not as the program was made for it (strided, or an output that overlaps an input) has a
 * dense stand-in: each segment fills it before and empties it afterwards.
 */
#include <string.h>

#include "exec/frame_internal.h"

#define TASKS_ON_STACK 16u

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Gives back what a phase holds. The frame may be gone afterwards. */
static void phase_end(tni_frame *f, uint32_t phase)
{
    const tni_program *p = f->program;
    frame_phase *call = &f->phases[phase];
    tni_frame *lender = call->lender;
    tni_attrs *attrs = call->attrs;

    while (call->held_count)
        tni_attrs_release(call->held[--call->held_count]);
    for (uint32_t i = 0; i < p->port_count; i++) {
        tni_array_release(call->arrays[i]);
        call->arrays[i] = NULL;
    }
    for (uint32_t s = 0; s < p->phases[phase].segment_count; s++) {
        frame_segment *segment = &f->segments[p->phases[phase].first_segment + s];

        tni_moves_destroy(segment->before);
        tni_moves_destroy(segment->after);
        segment->before = segment->after = NULL;
    }
    tni_frame_phase_free(f, phase);
    if (phase == TNI_FORWARD)
        tni_constants_leave(f);
    call->lender = NULL;
    call->attrs = NULL;
    tni_attrs_release(attrs);
    tni_frame_release(lender);
    tni_frame_release(f);
}

static void segment_done(void *payload, tni_engine *engine, tn_status status)
{
    frame_segment *s = *(frame_segment **)payload;
    tni_frame *f = s->frame;
    const uint32_t phase = f->program->segments[s->index].phase;
    tn_stream *stream = s->run.stream;

    (void)engine;
    for (size_t i = 0; i < s->scratch.count; i++)
        tni_block_free(tni_vec_at(&s->scratch, i), stream);
    s->scratch.count = 0;
    s->run.stream = NULL;
    if (status)
        f->spoiled = true; /* read when the last reference is gone */
    if (atomic_fetch_sub(&f->phases[phase].left, 1) == 1)
        phase_end(f, phase);
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

static tn_status port_check(const tni_program *p, uint32_t at, const tni_array *a)
{
    const tni_port *port = &p->ports[at];
    const char *what = port->kind == TNI_PORT_INPUT    ? "input"
                       : port->kind == TNI_PORT_OUTPUT ? "output"
                                                       : "array";

    if (!a)
        return tni_error(TN_E_ARG, "%s %u of a program is NULL", what, port->index);
    if (!tn_shape_known(&port->shape) && !a->pending)
        return tni_error(TN_E_UNSUPPORTED,
                         "%s %u: its shape is not known before it ran, so no array can be given for it", what,
                         port->index);
    if (!a->pending && !tni_array_has_shape(a, port->shape.ndim, port->shape.dim))
        return tni_error(TN_E_SHAPE, "%s %u of a program has another shape than it was made for", what,
                         port->index);
    if (a->dtype != port->dtype)
        return tni_error(TN_E_DTYPE, "%s %u of a program is %s, it was made for %s", what, port->index,
                         tni_dtype_name(a->dtype), tni_dtype_name(port->dtype));
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "%s %u of a program is sparse (%s)", what, port->index,
                         tni_storage_type_name(a->storage_type));
    if (a->storage->device != port->device)
        return tni_error(TN_E_DEVICE, "%s %u of a program is on %s:%d, it was made for %s:%d", what,
                         port->index, a->storage->device->type, a->storage->device->index, port->device->type,
                         port->device->index);
    return TN_OK;
}

/* The array itself, or a dense stand-in. */
static tn_status array_hold(frame_phase *call, const tni_program *p, const tni_launch *l, uint32_t at,
                            bool written)
{
    tni_array *a = l->arrays[at];
    tn_status st = port_check(p, at, a);

    if (st)
        return st;
    if (written && !tni_array_writable(a))
        return tni_error(TN_E_STATE, "a program would write memory that may only be read");
    call->given[at] = a;
    if (TN_LIKELY((a->flags & TNI_ARRAY_CONTIGUOUS || p->ports[at].strided || a->pending) &&
                  !(l->aside && l->aside[at]))) {
        tni_array_retain(call->arrays[at] = a);
        return TN_OK;
    }
    call->standins = true;
    call->moved_bytes += tni_array_bytes(a);
    return tni_array_like(a, "array", &call->arrays[at]);
}

/* Which segments fill stand-ins and empty them: each for itself. */
static tn_status moves_make(tni_frame *f, uint32_t phase)
{
    const tni_program *p = f->program;
    const frame_phase *call = &f->phases[phase];
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->phases[phase].segment_count && !st; i++) {
        const uint32_t index = p->phases[phase].first_segment + i;
        const tni_segment *s = &p->segments[index];
        const uint32_t count = s->read_count + s->write_count;

        for (uint32_t u = 0; u < count && !st; u++) {
            const uint32_t at = p->uses[s->first_use + u];
            const bool writes = u >= s->read_count, reads = !writes || p->ports[at].read >> phase & 1u;

            if (call->arrays[at] == call->given[at])
                continue;
            if (reads)
                st = tni_moves_add(&f->segments[index].before, count, call->given[at], call->arrays[at],
                                   false);
            if (writes && !st)
                st =
                    tni_moves_add(&f->segments[index].after, count, call->arrays[at], call->given[at], false);
        }
    }
    return st;
}

static tn_status arrays_hold(const tni_launch *l)
{
    tni_frame *f = l->frame;
    const tni_program *p = f->program;
    frame_phase *call = &f->phases[l->phase];
    tn_status st = TN_OK;

    call->standins = false;
    call->moved_bytes = 0;
    for (uint32_t i = 0; i < p->port_count && !st; i++) {
        const bool written = p->ports[i].written >> l->phase & 1u;

        if (written || p->ports[i].read >> l->phase & 1u)
            st = array_hold(call, p, l, i, written);
    }
    return !st && call->standins ? moves_make(f, l->phase) : st;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static bool overwritten(const tni_program *p, const frame_phase *call, const tni_segment *s)
{
    for (uint32_t u = s->read_count; u < s->read_count + s->write_count; u++) {
        const uint32_t at = p->uses[s->first_use + u];
        const tni_array *a = call->arrays[at];

        if (p->ports[at].read >> s->phase & 1u || p->ports[at].mode != TN_MODE_WRITE ||
            a != call->given[at] || (!a->pending && tni_array_bytes(a) < a->storage->bytes))
            return false;
        for (uint32_t r = 0; !p->graph && r < s->read_count; r++)
            if (call->arrays[p->uses[s->first_use + r]]->storage == a->storage)
                return false;
    }
    return true;
}

static tni_var *port_var(const frame_phase *call, uint32_t port)
{
    return call->vars ? call->vars[port] : tni_array_var(call->given[port]);
}

/* Reads: ports, then the segments that it waits for. Writes: ports, then its own end. */
static void task_fill(tni_frame *f, uint32_t index)
{
    const tni_program *p = f->program;
    const tni_segment *s = &p->segments[index];
    const frame_phase *call = &f->phases[s->phase];
    frame_segment *segment = &f->segments[index];
    tni_task *t = &f->tasks[index];
    tni_var **at = f->vars + segment->first_var;

    t->reads = at;
    for (uint32_t u = 0; u < s->read_count; u++)
        *at++ = port_var(call, p->uses[s->first_use + u]);
    for (uint32_t e = 0; e < s->edge_count; e++)
        *at++ = &f->done[p->edges[s->first_edge + e]];
    for (uint32_t e = 0; e < p->lender_segments; e++)
        *at++ = &call->lender->done[call->lender->program->phases[TNI_FORWARD].first_segment + e];
    t->read_count = (uint32_t)(at - (tni_var **)t->reads);
    t->writes = at;
    for (uint32_t u = s->read_count; u < s->read_count + s->write_count; u++)
        *at++ = port_var(call, p->uses[s->first_use + u]);
    if (s->flags & TNI_SEGMENT_AWAITED || f->recorded || f->gated)
        *at++ = &f->done[index];
    t->write_count = (uint32_t)(at - (tni_var **)t->writes);
    t->flags = (t->flags & ~TNI_TASK_CLEARS) | (overwritten(p, call, s) ? TNI_TASK_CLEARS : 0u);
    t->est_ns = s->est_ns ? s->est_ns + call->moved_bytes / 4 : 0;
    t->origin = tni_scope_get()->origin;
    t->room = segment->room_bytes ? (char *)f->room + segment->room_at : NULL;
    t->room_bytes = segment->room_bytes;
}

static void draws_lend(tni_frame *f, const tni_frame *lender)
{
    for (uint32_t i = 0; i < f->rng_count && lender->rng_count; i++) {
        f->rngs[i].seed = lender->rngs[0].seed;
        f->rngs[i].stream = (uint32_t)f->rngs[i].stream | (uint64_t)lender->under << 32;
    }
    tni_frame_draw(f, lender->draw);
    f->under = lender->under;
}

/* The values of a link's source, now. What they point to stays until the phase ends. */
static tn_value value_take(const tni_launch *l, const tni_attr_link *link)
{
    frame_phase *call = &l->frame->phases[l->phase];
    const tni_attrs *from = l->sources ? l->sources[link->source] : NULL;

    if (!from)
        return l->frame->program->graph->nodes[link->source].attrs->values[link->from];
    if (from->slots && (!call->held_count || call->held[call->held_count - 1] != from))
        call->held[call->held_count++] = tni_attrs_retain(from);
    return from->values[link->from];
}

static void values_take(const tni_launch *l)
{
    tni_frame *f = l->frame;
    const tni_program *p = f->program;

    for (uint32_t c = 0; p->link_count && c < p->code_count; c++)
        for (uint32_t k = 0; k < p->code[c].link_count; k++) {
            const tni_attr_link *link = &p->links[p->code[c].first_link + k];

            ((tn_value *)f->steps[c].x.attrs)[link->to] = value_take(l, link);
        }
    if (l->attrs && p->code_count) { /* a call of one operator: the values of this call */
        f->phases[l->phase].attrs = tni_attrs_retain(l->attrs);
        f->steps[p->main_code].x.attrs = l->attrs->values;
    }
    if (l->phase != TNI_FORWARD && l->lender && f->rng_count) /* what is computed again draws what it drew */
        draws_lend(f, l->lender);
    if (l->phase != TNI_FORWARD)
        return;
    for (uint32_t i = 0; i < f->rng_count; i++) {
        f->rngs[i].seed = tni_random_key(f->ctx, p->device);
        f->rngs[i].stream = (uint32_t)f->rngs[i].stream | (uint64_t)l->under << 32;
    }
    tni_frame_draw(f, l->draw);
    f->under = l->under;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* Everything that one phase needs before it is queued. `phase_end` undoes it, whatever came of it. */
static tn_status launch_prepare(const tni_launch *l)
{
    tni_frame *f = l->frame;
    frame_phase *call = &f->phases[l->phase];
    const tni_phase *phase = &f->program->phases[l->phase];
    tn_status st;

    tni_frame_retain(f);
    tni_frame_launched(f, l->phase);
    if ((call->lender = l->lender) != NULL) {
        tni_frame_retain(l->lender);
        tni_frame_lend(l->lender);
    }
    atomic_store(&call->left, phase->segment_count);
    call->vars = l->vars;
    if ((st = arrays_hold(l)) || (st = tni_frame_memory(f, l->phase, NULL)))
        return st;
    values_take(l);
    for (uint32_t i = 0; i < phase->segment_count; i++) {
        task_fill(f, phase->first_segment + i);
        f->tasks[phase->first_segment + i].name = l->name ? l->name : "program";
    }
    return TN_OK;
}

static void tasks_add(const tni_launch *l, const frame_segment **payloads, tni_task *tasks, uint32_t *count)
{
    tni_frame *f = l->frame;
    const tni_phase *phase = f ? &f->program->phases[l->phase] : NULL;

    if (l->task)
        tasks[(*count)++] = *l->task;
    for (uint32_t i = 0; phase && i < phase->segment_count; i++, ++*count) {
        payloads[*count] = &f->segments[phase->first_segment + i];
        tasks[*count] = f->tasks[phase->first_segment + i];
        tasks[*count].done = segment_done;
        tasks[*count].payload = &payloads[*count];
        tasks[*count].payload_bytes = sizeof payloads[*count];
    }
}

static tn_status all_push(tni_context *c, const tni_launch_group *g, uint32_t task_count)
{
    const frame_segment *few[TASKS_ON_STACK], **payloads = few;
    tni_task small[TASKS_ON_STACK], *tasks = small;
    uint32_t filled = 0;
    tn_status st = TN_OK;

    if (task_count > TASKS_ON_STACK) {
        tasks = tni_keep_zeroed(c->space->keep, task_count, sizeof *tasks);
        payloads = tni_keep_zeroed(c->space->keep, task_count, sizeof(*payloads));
        st = tasks && payloads ? TN_OK : TN_E_NOMEM;
    }
    for (; filled < g->first_count && !st; filled++)
        tasks[filled] = g->first[filled];
    for (uint32_t i = 0; i < g->count && !st; i++)
        tasks_add(&g->launches[i], payloads, tasks, &filled);
    for (uint32_t i = 0; i < g->last_count && !st; i++)
        tasks[filled++] = g->last[i];
    if (!st)
        st = tni_engine_push_group(c->engine, tasks, task_count);
    if (task_count > TASKS_ON_STACK) {
        tni_keep_give(c->space->keep, tasks);
        tni_keep_give(c->space->keep, (void *)payloads);
    }
    return st;
}

static uint32_t segments_of(const tni_launch *l)
{
    return l->frame ? l->frame->program->phases[l->phase].segment_count : 0;
}

/* One less than the operations of each phase. The frames may be done, but not gone: the caller holds them. A
 * task between the first and the last launch is one, too. */
static void cuts_count(tni_context *c, uint32_t count, const tni_launch *launches)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t segments = segments_of(&launches[i]);

        if (segments > 1)
            atomic_fetch_add_explicit(&c->exec->cuts, segments - 1, memory_order_relaxed);
        if (launches[i].task && i && i + 1 < count)
            atomic_fetch_add_explicit(&c->exec->cuts, 1, memory_order_relaxed);
    }
}

tn_status tni_launch_all(tni_context *c, const tni_launch_group *g)
{
    uint32_t prepared = 0, tasks = g->first_count + g->last_count;
    tn_status st = TN_OK;

    while (prepared < g->count && !st) {
        const tni_launch *l = &g->launches[prepared++];

        st = l->frame ? launch_prepare(l) : TN_OK;
        tasks += l->task ? 1 : segments_of(l);
    }
    if (!st && tasks && !(st = all_push(c, g, tasks)))
        cuts_count(c, g->count, g->launches);
    for (uint32_t i = 0; i < prepared; i++) { /* of phases without segments nothing else comes to an end */
        const tni_launch *l = &g->launches[i];

        if (l->frame && (st || !segments_of(l)))
            phase_end(l->frame, l->phase);
    }
    return st;
}

/*
 * Frames and their pools.
 *
 * All that can be settled once is settled when a frame is made: operand pointers, modes, attributes, the
 * variables' places. Memory comes when a call is queued and goes when it is done; the addresses are written
 * anew only where they moved.
 */
#include <string.h>

#include "exec/frame_internal.h"

#define FREE_FEW 4u            /* frames that every pool keeps for further calls */
#define BUSY_LARGE 8u          /* calls in flight of a program with a large arena */
#define BUSY_GRAPHS 3u         /* the same where a device records: graphs know few sets of addresses */
#define BUSY_SMALL 1024u       /* the same of a small one */
#define LOOK_AGAIN_MS 100u     /* for what must not be waited for */
#define LARGE_BYTES (1u << 20) /* an arena that is large */

/* ---- making ------------------------------------------------------------------------------------------ */

static void phase_fini(frame_phase *p)
{
    tni_free(p->arrays);
    tni_free(p->scratch);
    tni_free((void *)p->scratch_on);
    tni_free((void *)p->bound);
    tni_free((void *)p->lent);
    tni_free(p->held);
}

static void memory_free(tni_frame *f)
{
    for (uint32_t a = 0; a < f->program->arena_count; a++) {
        tni_block_free(&f->kept[a], f->kept_stream[a]);
        for (uint32_t i = 0; i < TNI_PHASES; i++)
            tni_block_free(&f->phases[i].scratch[a], f->phases[i].scratch_on[a]);
    }
}

static void frame_destroy(tni_frame *f)
{
    if (f->pool) /* it ran */
        memory_free(f);
    tni_block_free(&f->step_block, NULL);
    for (uint32_t i = 0; f->segments && i < f->program->segment_count; i++) {
        tni_vec_fini(&f->segments[i].scratch);
        tni_free(f->segments[i].dims);
    }
    for (uint32_t i = 0; f->done && i < f->program->segment_count; i++)
        tni_var_fini(&f->done[i]);
    for (uint32_t i = 0; i < TNI_PHASES; i++)
        phase_fini(&f->phases[i]);
    tni_program_release(f->program);
    tni_free(f->tensors);
    tni_free((void *)f->operands);
    tni_free_aligned(f->steps);
    tni_free(f->rngs);
    tni_free(f->values);
    tni_free(f->seen);
    tni_free(f->segments);
    tni_free(f->done);
    tni_free((void *)f->vars);
    tni_free(f->tasks);
    tni_free(f->room);
    tni_free(f->kept);
    tni_free((void *)f->constants);
    tni_free((void *)f->kept_bound);
    tni_free((void *)f->kept_stream);
    tni_mutex_fini(&f->lock);
    tni_free(f);
}

typedef struct counts {
    uint64_t values, rngs, vars;
} counts;

static counts counts_of(const tni_program *p)
{
    counts n = {0};

    for (uint32_t c = 0; c < p->code_count; c++) {
        n.values += p->code[c].link_count ? p->code[c].def->attr_count : 0;
        n.rngs += p->code[c].random != TNI_NONE;
    }
    for (uint32_t s = 0; s < p->segment_count; s++)
        n.vars += p->segments[s].read_count + p->segments[s].write_count + p->segments[s].edge_count + 1u +
                  p->lender_segments;
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
        frame_step *step = &f->steps[c];

        step->run = in->prepared ? in->prepared->kernel->run : NULL;
        step->plan = in->prepared ? &in->prepared->plan : NULL;
        if (in->flags & TNI_CODE_SKIP_EMPTY)
            step->run = NULL;
        step->x.struct_size = (uint32_t)TN_END(tn_exec, ops);
        step->x.threads = p->threads;
        step->x.in = f->operands + in->first_operand;
        step->x.out = step->x.in + in->in_count;
        step->x.modes = p->modes + in->first_operand + in->in_count;
        step->x.attrs = in->attrs->values;
        step->x.call = (tn_call *)&f->segments[in->segment];
        step->x.ops = &tni_frame_call_ops;
        if (in->random != TNI_NONE) {
            *rng = (tn_rng){.struct_size = (uint32_t)TN_END(tn_rng, step_add),
                            .stream = (uint64_t)p->segments[in->segment].device->index,
                            .step = f->step,
                            .step_add = in->random};
            step->x.rng = rng++;
        }
        if (in->link_count) {
            memcpy(values, in->attrs->values, in->def->attr_count * sizeof *values);
            step->x.attrs = values;
            values += in->def->attr_count;
        }
    }
}

static tn_status tables_make(tni_frame *f)
{
    const tni_program *p = f->program;
    const uint32_t arenas = p->arena_count + 1u;
    const counts n = counts_of(p);
    bool all = true;

    f->rng_count = (uint32_t)n.rngs;
    f->tensors = tni_calloc(p->slot_count + 1u, sizeof *f->tensors);
    f->operands = tni_calloc(p->operand_count + 1u, sizeof *f->operands);
    f->steps = tni_alloc_aligned(64, (p->code_count + 1ull) * sizeof *f->steps);
    f->rngs = tni_calloc(n.rngs + 1u, sizeof *f->rngs);
    f->values = tni_calloc(n.values + 1u, sizeof *f->values);
    f->seen = tni_calloc(p->port_count + 1u, sizeof *f->seen);
    f->segments = tni_calloc(p->segment_count + 1u, sizeof *f->segments);
    f->done = tni_calloc(p->segment_count + 1u, sizeof *f->done);
    f->vars = tni_calloc(n.vars + 1u, sizeof(*f->vars));
    f->tasks = tni_calloc(p->segment_count + 1u, sizeof *f->tasks);
    f->kept = tni_calloc(arenas, sizeof *f->kept);
    f->constants = tni_calloc(arenas, sizeof(*f->constants));
    f->kept_bound = tni_calloc(arenas, sizeof(*f->kept_bound));
    f->kept_stream = tni_calloc(arenas, sizeof(*f->kept_stream));
    for (uint32_t i = 0; i < TNI_PHASES; i++) {
        frame_phase *phase = &f->phases[i];

        phase->arrays = tni_calloc(2ull * p->port_count + 1u, sizeof(*phase->arrays));
        phase->scratch = tni_calloc(arenas, sizeof *phase->scratch);
        phase->scratch_on = tni_calloc(arenas, sizeof(*phase->scratch_on));
        phase->bound = tni_calloc(arenas, sizeof(*phase->bound));
        phase->lent = tni_calloc(p->lender_arenas + 1u, sizeof(*phase->lent));
        phase->held = tni_calloc(p->link_count + 1u, sizeof(*phase->held));
        all = all && phase->arrays && phase->scratch && phase->scratch_on && phase->bound && phase->lent &&
              phase->held;
        phase->given = phase->arrays + p->port_count;
    }
    if (!all || !f->tensors || !f->operands || !f->steps || !f->rngs || !f->values || !f->seen ||
        !f->segments || !f->done || !f->vars || !f->tasks || !f->kept || !f->constants || !f->kept_bound ||
        !f->kept_stream)
        return TN_E_NOMEM;
    memset(f->steps, 0, (p->code_count + 1ull) * sizeof *f->steps);
    return TN_OK;
}

/* Where parts without bytes lie: a valid pointer that nobody dereferences. */
static _Alignas(64) char nothing[64];

static void tensors_make(tni_frame *f)
{
    const tni_program *p = f->program;

    for (uint32_t v = 0; v < p->value_count; v++) {
        f->tensors[v] = p->values[v].tensor;
        f->tensors[v].data = nothing;
    }
    for (uint32_t s = 0; s < p->segment_count; s++)
        for (uint32_t b = 0; b < p->segments[s].binding_count; b++) {
            const tni_binding *binding = &p->bindings[p->segments[s].first_binding + b];

            f->tensors[binding->slot] = p->values[binding->value].tensor;
        }
    for (uint32_t i = 0; i < p->operand_count; i++)
        f->operands[i] = &f->tensors[p->slots[i]];
}

static uint32_t reads_of(const tni_program *p, const tni_segment *s)
{
    return s->read_count + s->edge_count + p->lender_segments;
}

/* The fixed part of each operation; its variables come with each call. */
static tn_status tasks_make(tni_frame *f)
{
    const tni_program *p = f->program;
    uint32_t at = 0;
    size_t room = 0;

    for (uint32_t i = 0; i < p->segment_count; i++) {
        const tni_segment *s = &p->segments[i];
        frame_segment *segment = &f->segments[i];

        segment->frame = f;
        segment->index = i;
        segment->first_var = at;
        tni_vec_init(&segment->scratch, sizeof(tni_block), 4096);
        tni_var_init(&f->done[i]);
        segment->room_at = room;
        segment->room_bytes = tni_engine_room_bytes(reads_of(p, s), s->write_count + 1u);
        room += (segment->room_bytes + 15u) & ~(size_t)15u;
        at += reads_of(p, s) + s->write_count + 1u;
        f->tasks[i] = (tni_task){.run = tni_segment_run, .device = s->device, .name = "program"};
        f->tasks[i].flags = (s->flags & TNI_SEGMENT_PARALLEL ? TNI_TASK_PARALLEL : 0u) |
                            (s->flags & TNI_SEGMENT_ASYNC ? TNI_TASK_ASYNC : 0u) |
                            (s->flags & TNI_SEGMENT_ARRIVED ? TNI_TASK_ARRIVED : 0u) |
                            (s->kind == TN_EXEC_HOST ? TNI_TASK_HOST_CALL : 0u) |
                            (s->kind == TN_EXEC_SUBGRAPH ? TNI_TASK_HOST_CALL | TNI_TASK_ASYNC : 0u);
    }
    return room && !(f->room = tni_alloc(room)) ? TN_E_NOMEM : TN_OK;
}

/* The draw lies where the kernels' device reads it. One that has no pinned memory reads the host's. */
static tn_status step_make(tni_frame *f)
{
    tni_device *d = f->program->device;
    tn_status st;

    f->step = &f->draw;
    if (!f->rng_count || d->host)
        return TN_OK;
    st = tni_block_alloc(d, TN_MEMORY_PINNED, sizeof *f->step, NULL, "draw", &f->step_block);
    if (!st)
        f->step = f->step_block.memory.data;
    return st == TN_E_UNSUPPORTED ? TN_OK : st;
}

void tni_frame_draw(tni_frame *f, uint64_t draw)
{
    f->draw = draw;
    *f->step = draw;
}

/* What a frame takes between two calls: its tables, and its arenas if it keeps them. */
static uint64_t bytes_of(const tni_frame_pool *pool, const tni_frame *f)
{
    const tni_program *p = f->program;
    const void *const tables[] = {
        f,           f->tensors, (const void *)f->operands, f->steps, f->rngs, f->values,
        f->segments, f->done,    (const void *)f->vars,     f->tasks, f->room};
    uint64_t bytes = 0;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        bytes += tables[i] ? tni_mem_bytes(tables[i]) : 0;
    for (uint32_t i = 0; i < TNI_PHASES; i++)
        bytes += tni_mem_bytes((const void *)f->phases[i].arrays);
    for (uint32_t a = 0; pool->keeps && a < p->arena_count; a++) {
        bytes += p->arenas[a].kept_bytes;
        for (uint32_t i = 0; i < TNI_PHASES; i++)
            bytes += p->arenas[a].scratch_bytes[i];
    }
    return bytes;
}

static tn_status frame_create(tni_frame_pool *pool, tni_frame **out)
{
    tni_frame *f = tni_zalloc(sizeof *f);
    tn_status st;

    if (!f)
        return TN_E_NOMEM;
    if (tni_mutex_init(&f->lock)) {
        tni_free(f);
        return TN_E_NOMEM;
    }
    tni_ref_init(&f->refs);
    f->ctx = pool->ctx;
    f->program = pool->program;
    tni_program_retain(f->program);
    if ((st = tables_make(f)) || (st = step_make(f)) || (st = tasks_make(f))) {
        frame_destroy(f);
        return st;
    }
    tensors_make(f);
    steps_make(f);
    f->bytes = bytes_of(pool, f);
    atomic_fetch_add_explicit(&f->ctx->exec->frames, 1, memory_order_relaxed);
    *out = f;
    return TN_OK;
}

/* ---- addresses --------------------------------------------------------------------------------------- */

static bool in_phase(const tni_program *p, const tni_value *v, uint32_t phase)
{
    return v->first >= p->phases[phase].first_code &&
           v->first - p->phases[phase].first_code < p->phases[phase].code_count;
}

/* Does a value lie in that part of that arena? */
static bool block_in(const tni_program *p, uint32_t value, uint32_t place, uint32_t arena, uint32_t phase)
{
    const tni_value *v = value == TNI_NONE ? NULL : &p->values[value];

    return v && v->place == place && v->arena == arena && v->first != TNI_NONE &&
           (place != TNI_PLACE_SCRATCH || in_phase(p, v, phase));
}

void tni_frame_part_bind(tni_frame *f, uint32_t place, uint32_t arena, uint32_t phase, void *base)
{
    const tni_program *p = f->program;

    for (uint32_t v = 0; v < p->value_count; v++) {
        if (block_in(p, v, place, arena, phase))
            f->tensors[v].data = base ? (char *)base + p->values[v].offset : nothing;
    }
    for (uint32_t c = 0; place != TNI_PLACE_CONSTANT && c < p->code_count; c++) {
        const tni_instruction *in = &p->code[c];

        /* Steps whose blocks lie elsewhere may be running, or about to be bound by others. */
        if (block_in(p, in->workspace, place, arena, phase))
            f->steps[c].x.workspace = tni_workspace_at(f->steps[c].plan, f->tensors[in->workspace].data);
        if (block_in(p, in->saved, place, arena, phase))
            f->steps[c].x.saved = f->tensors[in->saved].data;
    }
}

static tn_status block_take(tni_device *d, uint64_t bytes, tn_stream *stream, tni_block *block)
{
    return block->pool || !bytes ? TN_OK
                                 : tni_block_alloc(d, TN_MEMORY_DEVICE, bytes, stream, "frame", block);
}

/* Arenas of hosts are taken when a call is queued (`run` NULL), those of devices with streams there. */
static bool arena_now(const tni_arena_plan *plan, const tni_run *run)
{
    return run ? plan->device == run->device && !plan->device->host : plan->device->host;
}

tn_status tni_frame_memory(tni_frame *f, uint32_t phase, const tni_run *run)
{
    const tni_program *p = f->program;
    frame_phase *call = &f->phases[phase];
    tn_stream *const stream = run ? run->stream : NULL;
    tn_status st = TN_OK;

    for (uint32_t a = 0; a < p->arena_count && !st; a++) {
        const tni_arena_plan *plan = &p->arenas[a];

        if (!arena_now(plan, run))
            continue;
        if ((st = block_take(plan->device, plan->kept_bytes, stream, &f->kept[a])) ||
            (st = block_take(plan->device, plan->scratch_bytes[phase], stream, &call->scratch[a])))
            break;
        f->kept_stream[a] = call->scratch_on[a] = stream;
        if (f->kept_bound[a] != f->kept[a].memory.data)
            tni_frame_part_bind(f, TNI_PLACE_KEPT, a, phase, f->kept[a].memory.data);
        f->kept_bound[a] = f->kept[a].memory.data;
        if (call->bound[a] != call->scratch[a].memory.data)
            tni_frame_part_bind(f, TNI_PLACE_SCRATCH, a, phase, call->scratch[a].memory.data);
        call->bound[a] = call->scratch[a].memory.data;
    }
    for (uint32_t a = 0; a < p->lender_arenas && call->lender && !st; a++) {
        if (!arena_now(&call->lender->program->arenas[a], run))
            continue; /* its block may be about to be taken by the lender's segments */
        if (call->lent[a] != call->lender->kept[a].memory.data)
            tni_frame_part_bind(f, TNI_PLACE_LENT, a, phase, call->lender->kept[a].memory.data);
        call->lent[a] = call->lender->kept[a].memory.data;
    }
    return st;
}

void tni_frame_phase_free(tni_frame *f, uint32_t phase)
{
    for (uint32_t a = 0; !f->pool->keeps && a < f->program->arena_count; a++)
        tni_block_free(&f->phases[phase].scratch[a], f->phases[phase].scratch_on[a]);
}

/* ---- the pool ---------------------------------------------------------------------------------------- */

/* One operation on a stream uses it, and nobody reads it later. */
static bool memory_passes(const tni_program *p)
{
    if (p->segment_count != 1 || p->segments[0].device->host || p->segments[0].kind != TN_EXEC_KERNEL)
        return false;
    for (uint32_t a = 0; a < p->arena_count; a++)
        if (p->arenas[a].kept_bytes)
            return false;
    return true;
}

tn_status tni_frame_pool_create(tni_context *c, tni_program *p, tni_frame_pool **out)
{
    tni_frame_pool *pool = tni_zalloc(sizeof *pool);
    tn_status st;

    if (!pool)
        return TN_E_NOMEM;
    if (tni_mutex_init(&pool->lock)) {
        tni_free(pool);
        return TN_E_NOMEM;
    }
    if ((st = tni_constants_create(p, &pool->constants)) || (st = tni_captures_create(p, &pool->graphs)) ||
        (st = tni_bodies_create(c, p, &pool->bodies))) {
        tni_captures_destroy(p, pool->graphs);
        tni_constants_destroy(p, pool->constants);
        tni_mutex_fini(&pool->lock);
        tni_free(pool);
        return st;
    }
    tni_ref_init(&pool->refs);
    pool->ctx = c;
    pool->program = p;
    pool->own = pool->graphs && !p->device->kernels_plugin;
    pool->passes = memory_passes(p);
    pool->busy_max = pool->graphs                                      ? BUSY_GRAPHS
                     : p->planned_bytes > LARGE_BYTES && !pool->passes ? BUSY_LARGE
                                                                       : BUSY_SMALL;
    tni_program_retain(p);
    *out = pool;
    return TN_OK;
}

void tni_frame_pool_keep(tni_frame_pool *pool)
{
    pool->keeps = true;
}

static void pool_release(tni_frame_pool *pool)
{
    if (!tni_ref_release(&pool->refs))
        return;
    tni_bodies_destroy(pool->program, pool->bodies);
    tni_captures_destroy(pool->program, pool->graphs);
    tni_constants_destroy(pool->program, pool->constants);
    tni_program_release(pool->program);
    tni_mutex_fini(&pool->lock);
    tni_free(pool);
}

void tni_frame_pool_close(tni_frame_pool *pool)
{
    tni_frame *f;

    if (!pool)
        return;
    tni_mutex_lock(&pool->lock);
    pool->closed = true;
    f = pool->free;
    pool->free = NULL;
    tni_mutex_unlock(&pool->lock);
    while (f) {
        tni_frame *next = f->next;

        atomic_fetch_sub(&pool->ctx->exec->kept_bytes, f->bytes);
        frame_destroy(f);
        f = next;
    }
    pool_release(pool);
}

static void busy_remove_locked(tni_frame_pool *pool, tni_frame *f)
{
    *(f->prev ? &f->prev->next : &pool->busy) = f->next;
    *(f->next ? &f->next->prev : &pool->busy_last) = f->prev;
    pool->busy_count--;
}

static void busy_add_locked(tni_frame_pool *pool, tni_frame *f)
{
    f->next = NULL;
    f->prev = pool->busy_last;
    *(f->prev ? &f->prev->next : &pool->busy) = f;
    pool->busy_last = f;
    pool->busy_count++;
    f->counted = true;
}

/* Number `skip` among those in flight that can be waited for, retained; NULL: there are no more. */
static tni_frame *gated_locked(tni_frame_pool *pool, uint32_t skip)
{
    tni_frame *f = pool->busy;

    while (f && !(f->gated && skip-- == 0))
        f = f->next;
    if (f)
        tni_frame_retain(f);
    return f;
}

/* Until a call has run; its failure is its own. False: what something outside is to complete is under way:
 * that may be this thread's to do, and nothing is waited for. */
static bool call_wait(tni_frame *f)
{
    const uint32_t launched = atomic_load(&f->launched);
    const tni_phase *phase = &f->program->phases[launched < TNI_PHASES ? launched : TNI_FORWARD];
    tni_engine *e = f->ctx->engine;
    tn_status st = TN_OK;

    for (uint32_t s = 0; s < phase->segment_count && launched < TNI_PHASES; s += st == TN_OK) {
        if (tni_engine_outstanding(e, !f->pool->own))
            return false;
        st = tni_engine_wait_quiet(e, &f->done[phase->first_segment + s], LOOK_AGAIN_MS);
        if (st)
            tni_error_clear();
        if (st && st != TN_E_TIMEOUT) /* nobody may wait here */
            return false;
    }
    return true;
}

/* Very many are in flight: the oldest come first. One that has run may still be on its way back, so of
 * several that wait here each waits for another one. */
static void room_wait(tni_frame_pool *pool)
{
    tni_frame *f = NULL;
    uint32_t waited = 0;
    bool more;

    do {
        tni_mutex_lock(&pool->lock);
        f = pool->busy_count >= pool->busy_max ? gated_locked(pool, waited++) : NULL;
        tni_mutex_unlock(&pool->lock);
        more = f && call_wait(f);
        tni_frame_release(f);
    } while (more);
}

tn_status tni_frame_take(tni_frame_pool *pool, bool recorded, tni_frame **out)
{
    tni_frame *f;
    tn_status st;

    if ((!recorded || pool->own) && !tni_engine_inside())
        room_wait(pool);
    tni_mutex_lock(&pool->lock);
    if ((f = pool->free) != NULL) {
        pool->free = f->next;
        pool->free_count--;
        atomic_fetch_sub(&pool->ctx->exec->kept_bytes, f->bytes);
    }
    tni_mutex_unlock(&pool->lock);
    if (f)
        tni_ref_init(&f->refs);
    else if ((st = frame_create(pool, &f)))
        return st;
    tni_ref_retain(&pool->refs);
    f->pool = pool;
    f->recorded = recorded;
    f->gated = f->counted = false;
    atomic_store(&f->launched, TNI_PHASES);
    tni_mutex_lock(&pool->lock);
    if (!recorded) {
        f->gated = pool->busy_count >= pool->busy_max / 2;
        busy_add_locked(pool, f);
    }
    tni_mutex_unlock(&pool->lock);
    *out = f;
    return TN_OK;
}

void tni_frame_retain(tni_frame *f)
{
    tni_ref_retain(&f->refs);
}

/* A pool keeps the few that it needs again soon, and what a busier time left as long as all pools of the
 * context together keep little. */
static bool keep_locked(tni_frame_pool *pool, const tni_frame *f)
{
    atomic_uint_fast64_t *kept = &pool->ctx->exec->kept_bytes;

    if (pool->closed || pool->free_count >= pool->busy_max)
        return false;
    if (atomic_fetch_add(kept, f->bytes) + f->bytes <= TN_FRAMES_BYTES_MAX || pool->free_count < FREE_FEW)
        return true;
    atomic_fetch_sub(kept, f->bytes);
    return false;
}

/* Back to the pool, or gone. */
static void frame_return(tni_frame *f)
{
    tni_frame_pool *pool = f->pool;
    bool keep;

    if (!pool->keeps)
        memory_free(f);
    for (uint32_t s = 0; f->spoiled && s < f->program->segment_count; s++)
        tni_engine_clear(f->ctx->engine, &f->done[s]);
    f->spoiled = false;
    f->lent = false;
    tni_mutex_lock(&pool->lock);
    if ((keep = keep_locked(pool, f))) {
        tni_frame **at = &pool->free;

        while (pool->own && *at) /* by turns, so that a graph sees the same addresses again */
            at = &(*at)->next;
        f->next = *at;
        *at = f;
        pool->free_count++;
    }
    tni_mutex_unlock(&pool->lock);
    if (!keep)
        frame_destroy(f);
    pool_release(pool);
}

/* Under the lock, so that nobody finds it among those in flight without a reference. */
void tni_frame_release(tni_frame *f)
{
    bool last;

    if (!f)
        return;
    tni_mutex_lock(&f->pool->lock);
    last = tni_ref_release(&f->refs);
    if (last && f->counted)
        busy_remove_locked(f->pool, f);
    tni_mutex_unlock(&f->pool->lock);
    if (last)
        frame_return(f);
}

/* A recorded call is in flight from the time that its backward is queued: until then nobody knows whether it
 * comes. Its segments write `done` as it is. */
void tni_frame_launched(tni_frame *f, uint32_t phase)
{
    atomic_store(&f->launched, phase);
    if (!f->recorded || phase == TNI_FORWARD || !f->pool->own)
        return;
    tni_mutex_lock(&f->pool->lock);
    f->gated = true;
    if (!f->counted)
        busy_add_locked(f->pool, f);
    tni_mutex_unlock(&f->pool->lock);
}

void tni_frame_lend(tni_frame *f)
{
    atomic_store(&f->lent, true);
}

bool tni_frame_lent(const tni_frame *f)
{
    return atomic_load(&f->lent);
}

tni_array **tni_frame_arrays(tni_frame *f, uint32_t phase)
{
    return f->phases[phase].given;
}

const tni_program *tni_frame_program(const tni_frame *f)
{
    return f->program;
}

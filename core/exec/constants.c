/*
 * Phase ONCE: what follows from constants alone (packed and folded weights) lies in memory that frames of a
 * program share.
 *
 * A segment that reads it counts the constants among its ports and holds them until its end, so nobody writes
 * them while it runs. The block that it reads is the call's until the call is done: a call with other arrays,
 * or after a write, makes one of its own, in the same memory if nobody holds it.
 */
#include "exec/frame_internal.h"

/* What one port gave. */
typedef struct source {
    const tni_storage *storage; /* NULL: none yet */
    uint64_t version, offset;
} source;

struct frame_block {
    tni_refcount refs; /* the pool's, and one of each frame that reads it */
    tni_block block;
    tn_stream *stream; /* where it was taken */
    bool made;
    source sources[]; /* per port of the program */
};

static void block_release(frame_block *b)
{
    if (!b || !tni_ref_release(&b->refs))
        return;
    tni_block_free(&b->block, b->stream);
    tni_free(b);
}

void tni_constants_destroy(const tni_program *p, frame_constants *constants)
{
    for (uint32_t a = 0; constants && a < p->arena_count; a++) {
        block_release(constants[a].current);
        tni_mutex_fini(&constants[a].lock);
    }
    tni_free(constants);
}

tn_status tni_constants_create(const tni_program *p, frame_constants **out)
{
    frame_constants *made;

    if (!p->phases[TNI_ONCE].segment_count)
        return TN_OK;
    if (!(made = tni_calloc(p->arena_count + 1u, sizeof *made)))
        return TN_E_NOMEM;
    for (uint32_t a = 0; a < p->arena_count; a++)
        if (tni_mutex_init(&made[a].lock)) {
            while (a-- > 0)
                tni_mutex_fini(&made[a].lock);
            tni_free(made);
            return TN_E_NOMEM;
        }
    *out = made;
    return TN_OK;
}

void tni_constants_leave(tni_frame *f)
{
    for (uint32_t a = 0; f->constants && a < f->program->arena_count; a++) {
        block_release(f->constants[a]);
        f->constants[a] = NULL;
    }
}

/* ---- one device ---------------------------------------------------------------------------------------- */

/* Ports that phase ONCE reads on the segment's device. */
static bool is_source(const tni_program *p, uint32_t port, const tni_device *device)
{
    return p->ports[port].read >> TNI_ONCE & 1u && p->ports[port].device == device;
}

/* Memory that others may write whenever they like; views that are no rows come through a stand-in. */
static bool unsteady(const tni_array *a)
{
    return !(a->flags & TNI_ARRAY_CONTIGUOUS) || a->storage->external_free ||
           __atomic_load_n(&a->storage->flags, __ATOMIC_RELAXED) & TNI_STORAGE_LENT;
}

static bool fresh(const frame_block *b, const frame_segment *s, const tni_device *device)
{
    const tni_program *p = s->frame->program;
    tni_array *const *given = s->frame->phases[TNI_FORWARD].given;
    bool same = b && b->made;

    for (uint32_t i = 0; i < p->port_count && same; i++) {
        const source *from = &b->sources[i];

        same = !is_source(p, i, device) ||
               (given[i]->storage == from->storage && given[i]->offset == from->offset &&
                tni_var_version(tni_array_var(given[i])) == from->version && !unsteady(given[i]));
    }
    return same;
}

static void sources_note(frame_block *b, const frame_segment *s, const tni_device *device)
{
    const tni_program *p = s->frame->program;
    tni_array *const *given = s->frame->phases[TNI_FORWARD].given;

    for (uint32_t i = 0; i < p->port_count; i++)
        if (is_source(p, i, device))
            b->sources[i] =
                (source){given[i]->storage, tni_var_version(tni_array_var(given[i])), given[i]->offset};
    b->made = true;
}

static tn_status block_make(const tni_program *p, uint32_t arena, tn_stream *stream, frame_block **out)
{
    const tni_arena_plan *plan = &p->arenas[arena];
    frame_block *made = tni_zalloc(sizeof *made + (uint64_t)p->port_count * sizeof *made->sources);
    tn_status st = TN_OK;

    if (!made)
        return TN_E_NOMEM;
    tni_ref_init(&made->refs);
    made->stream = stream;
    if (plan->constant_bytes)
        st = tni_block_alloc(plan->device, TN_MEMORY_DEVICE, plan->constant_bytes, stream, "constants",
                             &made->block);
    if (st)
        block_release(made);
    else
        *out = made;
    return st;
}

/* What nobody but phase ONCE reads has no memory before, and may have none behind. */
static tn_status sources_touch(const frame_segment *part)
{
    const tni_program *p = part->frame->program;
    const tni_segment *segment = &p->segments[part->index];
    tni_array *const *arrays = part->frame->phases[TNI_FORWARD].arrays;
    tn_status st = TN_OK;

    for (uint32_t u = 0; u < segment->read_count && !st; u++) {
        tni_storage *storage = arrays[p->uses[segment->first_use + u]]->storage;

        st = tni_storage_touch(storage, storage->device->host ? NULL : part->run.stream);
    }
    return st;
}

void tni_constants_spent(const frame_segment *s, uint32_t port)
{
    const tni_frame *f = s->frame;

    if (tni_port_once(&f->program->ports[port]))
        tni_storage_drop(f->phases[TNI_FORWARD].arrays[port]->storage);
}

static tn_status segments_run(frame_segment *s, const tni_device *device, tn_err *err)
{
    tni_frame *f = s->frame;
    const tni_phase *once = &f->program->phases[TNI_ONCE];
    tn_status st = TN_OK;

    for (uint32_t i = once->first_segment; i < once->first_segment + once->segment_count && !st; i++) {
        frame_segment *part = &f->segments[i];

        if (f->program->segments[i].device != device)
            continue;
        part->run = s->run;
        if ((st = sources_touch(part)))
            tni_error_get(err);
        else
            st = tni_segment_kernels(part, TNI_FORWARD, err);
        for (size_t k = 0; k < part->scratch.count; k++)
            tni_block_free(tni_vec_at(&part->scratch, k), s->run.stream);
        part->scratch.count = 0;
    }
    return st;
}

/* Runs phase ONCE into the frame's block. */
static tn_status block_fill(frame_block *b, frame_segment *s, uint32_t arena, tn_err *err)
{
    tni_frame *f = s->frame;
    const tni_arena_plan *plan = &f->program->arenas[arena];
    tni_block *scratch = &f->phases[TNI_ONCE].scratch[arena];
    tn_stream *const stream = s->run.stream;
    tn_status st;

    b->made = false;
    if (plan->scratch_bytes[TNI_ONCE] &&
        (st = tni_block_alloc(plan->device, TN_MEMORY_DEVICE, plan->scratch_bytes[TNI_ONCE], stream, "frame",
                              scratch))) {
        tni_error_get(err);
        return st;
    }
    tni_frame_part_bind(f, TNI_PLACE_SCRATCH, arena, TNI_ONCE, scratch->memory.data);
    if (!(st = segments_run(s, plan->device, err)))
        sources_note(b, s, plan->device);
    tni_block_free(scratch, stream);
    return st;
}

/* Under the lock: the call gets the current block, which is made anew if it is another's. */
static tn_status constants_take(frame_constants *c, frame_segment *s, uint32_t arena, tn_err *err)
{
    tni_frame *f = s->frame;
    const bool steady = fresh(c->current, s, f->program->arenas[arena].device);
    tn_status st = TN_OK;

    if (!steady && (!c->current || tni_ref_count(&c->current->refs) > 1)) {
        frame_block *made = NULL;

        if ((st = block_make(f->program, arena, s->run.stream, &made))) {
            tni_error_get(err);
            return st;
        }
        block_release(c->current);
        c->current = made;
    }
    tni_ref_retain(&c->current->refs);
    f->constants[arena] = c->current;
    if (f->phases[TNI_ONCE].bound[arena] != c->current->block.memory.data)
        tni_frame_part_bind(f, TNI_PLACE_CONSTANT, arena, TNI_ONCE, c->current->block.memory.data);
    f->phases[TNI_ONCE].bound[arena] = c->current->block.memory.data;
    return steady ? TN_OK : block_fill(c->current, s, arena, err);
}

tn_status tni_constants_refresh(frame_segment *s, tn_err *err)
{
    tni_frame *f = s->frame;
    const tni_program *p = f->program;
    const tni_device *device = p->segments[s->index].device;
    tn_status st = TN_OK;

    for (uint32_t a = 0; a < p->arena_count && !st; a++) {
        frame_constants *c = &f->pool->constants[a];

        if (p->arenas[a].device != device)
            continue;
        tni_mutex_lock(&c->lock);
        if (!f->constants[a]) /* the first segment of the call there */
            st = constants_take(c, s, a, err);
        else if (!f->constants[a]->made) /* whose turn was it, failed */
            st = block_fill(f->constants[a], s, a, err);
        tni_mutex_unlock(&c->lock);
    }
    return st;
}

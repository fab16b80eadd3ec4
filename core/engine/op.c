/*
 * Operations as blocks: made in slabs, handed from the workers that finish them back to the pushers in
 * magazines of pointers, so that a steady stream of pushes allocates nothing and no block's line is read to
 * find the next.
 */
#include "engine/internal.h"

tn_status tni_operation_check(const tni_engine *e, const tni_task *task)
{
    (void)e;
    if (!task || !task->run)
        return tni_error(TN_E_ARG, "a task without a function");
    if (task->payload_bytes > TNI_PAYLOAD_MAX)
        return tni_error(TN_E_ARG, "payload of %u bytes, but at most %d fit", task->payload_bytes,
                         TNI_PAYLOAD_MAX);
    if (task->lane >= TNI_LANES)
        return tni_error(TN_E_ARG, "lane %u, but lanes go from 0 to %u", task->lane, TNI_LANES - 1);
    if ((task->payload_bytes && !task->payload) || (task->read_count && !task->reads) ||
        (task->write_count && !task->writes))
        return tni_error(TN_E_ARG, "task '%s': a count without its array", task->name ? task->name : "");
    if (task->read_count > OP_VARS_MAX || task->write_count > OP_VARS_MAX - task->read_count)
        return tni_error(TN_E_ARG, "task '%s' names more than %u variables", task->name ? task->name : "",
                         OP_VARS_MAX);
    return TN_OK;
}

/* ---- variables: each once, written ones first ---------------------------------------------------------- */

static inline uint32_t find(tni_var *const *list, uint32_t count, const tni_var *v)
{
    uint32_t i = 0;

    while (i < count && list[i] != v)
        i++;
    return i;
}

/* Some are named several times: which position names which, and how often. */
static void places_fill(tni_operation *op, const tni_task *task)
{
    op->places = op->left = 0;
    for (uint32_t at = 0; at < op->named; at++) {
        const uint32_t reads = task->read_count;
        const tni_var *v = at < reads ? task->reads[at] : task->writes[at - reads];
        const uint32_t i = find(op->vars, op->var_count, v);

        op->places |= i << 4 * at;
        op->left += 1u << 4 * i;
    }
}

static void vars_few(tni_operation *op, const tni_task *task)
{
    tni_var **out = (tni_var **)(void *)op->data;
    uint32_t n = 0;

    op->vars = out;
    for (uint32_t i = 0; i < task->write_count; i++)
        if (find(out, n, task->writes[i]) == n)
            out[n++] = task->writes[i];
    op->write_count = n;
    for (uint32_t i = 0; i < task->read_count; i++)
        if (find(out, n, task->reads[i]) == n)
            out[n++] = task->reads[i];
    op->var_count = n;
    op->left = 0x11111111u;
    if (TN_UNLIKELY(n != op->named))
        places_fill(op, task);
}

/* Until the operation is entered its links serve as a hash table: of indices and 1, at most half full. */
typedef struct distinct {
    tni_var **vars;
    uint32_t *table, *left, *place;
    uint32_t bits, count;
} distinct;

static void distinct_add(distinct *d, tni_var *v, uint32_t at)
{
    const uint32_t mask = (1u << d->bits) - 1;
    uint32_t slot = (uint32_t)((uint64_t)(uintptr_t)v * 0x9e3779b97f4a7c15u >> (64 - d->bits));

    while (d->table[slot] && d->vars[d->table[slot] - 1] != v)
        slot = (slot + 1) & mask;
    if (!d->table[slot]) {
        d->vars[d->count] = v;
        d->left[d->count] = 0;
        d->table[slot] = ++d->count;
    }
    d->place[at] = d->table[slot] - 1;
    d->left[d->place[at]]++;
}

static void vars_many(tni_operation *op, const tni_task *task)
{
    distinct d = {.vars = op->vars,
                  .table = (uint32_t *)(void *)op_links(op),
                  .left = op_lefts(op),
                  .place = op_lefts(op) + op->named,
                  .bits = 31u - (uint32_t)__builtin_clz(op->named * (uint32_t)sizeof(op_link) / 4)};

    memset(d.table, 0, sizeof *d.table << d.bits);
    for (uint32_t i = 0; i < task->write_count; i++)
        distinct_add(&d, task->writes[i], task->read_count + i);
    op->write_count = d.count;
    for (uint32_t i = 0; i < task->read_count; i++)
        distinct_add(&d, task->reads[i], i);
    op->var_count = d.count;
}

size_t tni_engine_room_bytes(uint32_t reads, uint32_t writes)
{
    const size_t named = (size_t)reads + writes;

    return named <= OP_VARS_INLINE ? 0 : named * OP_VAR_BYTES;
}

/* Sets OP_ROOM. */
static tn_status vars_fill(tni_operation *op, const tni_task *task)
{
    const size_t bytes = tni_engine_room_bytes(task->read_count, task->write_count);

    op->named = task->read_count + task->write_count;
    if (TN_LIKELY(!bytes)) {
        vars_few(op, task);
        return TN_OK;
    }
    if (task->room && task->room_bytes >= bytes && (uintptr_t)task->room % sizeof(void *) == 0) {
        op->vars = task->room;
        op->flags |= OP_ROOM;
    } else if (!(op->vars = tni_alloc(bytes))) {
        return TN_E_NOMEM;
    }
    vars_many(op, task);
    return TN_OK;
}

tn_status tni_operation_fill(tni_operation *op, const tni_task *task, engine_queue *q)
{
    tn_status st;

    op->flags = (uint16_t)(task->flags & OP_FLAGS_TASK);
    if (TN_UNLIKELY(st = vars_fill(op, task)))
        return st;
    op->released = 0;
    if (op->flags & TNI_TASK_ASYNC)
        atomic_store_explicit(&op->pend, 0u, memory_order_relaxed);
    op->run = task->run;
    op->done = task->done;
    op->queue = q;
    op->name = task->name;
    op->origin = task->origin;
    op->priority = task->priority;
    memcpy(op_payload(op), task->payload ? task->payload : "", task->payload_bytes);
    return TN_OK;
}

void tni_operation_fini(tni_operation *op)
{
    if (TN_UNLIKELY(op->named > OP_VARS_INLINE) && !(op->flags & OP_ROOM))
        tni_free(op->vars);
    if (TN_UNLIKELY(op->async != NULL))
        tni_operation_async_end(op);
}

/* ---- recycling ------------------------------------------------------------------------------------- */

engine_mag *tni_operation_mag(void)
{
    engine_mag *mag = tni_alloc_aligned(LINE_BYTES, sizeof *mag);

    if (mag)
        mag->count = 0;
    return mag;
}

/* As many magazines as the operations of one more slab, and those there are, can ever fill: however work is
 * spread over time later, none is missing. Each worker has one more, its own. */
static tn_status mags_provide(tni_engine *e)
{
    engine_mag *mag = NULL;
    bool enough;

    do {
        tni_spin_lock(&e->depot_lock);
        if (mag) {
            mag->next = e->empty;
            e->empty = mag;
            e->mag_count++;
        }
        enough = e->mag_count * MAG_OPS > (e->slab_count + 1) * SLAB_OPS;
        tni_spin_unlock(&e->depot_lock);
    } while (!enough && (mag = tni_operation_mag()) != NULL);
    return enough ? TN_OK : TN_E_NOMEM;
}

static bool slab_add(tni_engine *e)
{
    engine_slab *slab;

    if (mags_provide(e) || !(slab = tni_alloc_aligned(LINE_BYTES, sizeof *slab)))
        return false;
    memset(slab, 0, sizeof *slab);
    tni_spin_lock(&e->depot_lock);
    slab->next = e->slabs;
    e->slabs = slab;
    e->slab_count++;
    for (uint32_t i = SLAB_OPS; i-- > 0;) {
        slab->ops[i].next = e->loose;
        e->loose = &slab->ops[i];
    }
    tni_spin_unlock(&e->depot_lock);
    return true;
}

/* Each worker keeps a magazine back until it is full; the pusher comes again when its own is empty. */
bool tni_operation_provide_locked(tni_engine *e, uint32_t count)
{
    const uint64_t pending = atomic_load_explicit(&e->pushed, memory_order_relaxed) - atomic_load(&e->done);
    const uint64_t kept = MAG_OPS * (1 + (uint64_t)atomic_load(&e->worker_mags));

    while (e->slab_count * SLAB_OPS < pending + count + kept)
        if (!slab_add(e))
            return false;
    return true;
}

static tni_operation *depot_pop(tni_engine *e)
{
    engine_mag *mag;
    tni_operation *op = NULL;

    tni_spin_lock(&e->depot_lock);
    if ((mag = e->full)) {
        e->full = mag->next;
        if (e->push_mag) {
            e->push_mag->next = e->empty;
            e->empty = e->push_mag;
        }
        e->push_mag = mag;
        op = mag->ops[--mag->count];
    } else if ((op = e->loose)) {
        e->loose = op->next;
    }
    tni_spin_unlock(&e->depot_lock);
    return op;
}

static tni_operation *depot_take(tni_engine *e)
{
    tni_operation *op;

    if (!tni_operation_provide_locked(e, 1))
        return NULL;
    while (!(op = depot_pop(e)) && slab_add(e)) /* those of groups that are not pushed yet were not counted */
        ;
    return op;
}

tni_operation *tni_operation_take(tni_engine *e)
{
    engine_mag *mag = e->push_mag;

    if (TN_UNLIKELY(!mag || !mag->count))
        return depot_take(e);
    if (mag->count > 3) { /* lines that a worker had: asked for before they are needed */
        __builtin_prefetch(mag->ops[mag->count - 4], 1);
        __builtin_prefetch(mag->ops[mag->count - 4]->data, 1);
    }
    return mag->ops[--mag->count];
}

void tni_operation_give_back(tni_engine *e, tni_operation *op)
{
    atomic_store_explicit(&op->phase, PHASE_FREE, memory_order_relaxed);
    tni_spin_lock(&e->depot_lock);
    op->next = e->loose;
    e->loose = op;
    tni_spin_unlock(&e->depot_lock);
}

/* Puts away a full magazine and brings an empty one; NULL: none to be had. */
static engine_mag *mag_change(tni_engine *e, engine_mag *full)
{
    engine_mag *mag;

    tni_spin_lock(&e->depot_lock);
    if (full) {
        full->next = e->full;
        e->full = full;
    }
    if ((mag = e->empty))
        e->empty = mag->next;
    tni_spin_unlock(&e->depot_lock);
    return mag ? mag : tni_operation_mag();
}

void tni_operation_recycle(tni_engine *e, tni_operation *op)
{
    engine_worker *w = tni_engine_tls.worker;

    if (TN_UNLIKELY(op->named > OP_VARS_INLINE || op->async))
        tni_operation_fini(op);
    if (TN_UNLIKELY(op->flags & OP_STACK))
        return;
    if (TN_UNLIKELY(!w || w->queue->engine != e)) {
        tni_operation_give_back(e, op);
        return;
    }
    atomic_store_explicit(&op->phase, PHASE_FREE, memory_order_relaxed);
    if (TN_UNLIKELY(!w->mag || w->mag->count == MAG_OPS))
        w->mag = mag_change(e, w->mag);
    if (TN_LIKELY(w->mag != NULL))
        w->mag->ops[w->mag->count++] = op;
    else
        tni_operation_give_back(e, op);
}

static void mags_free(engine_mag *mag)
{
    while (mag) {
        engine_mag *next = mag->next;

        tni_free_aligned(mag);
        mag = next;
    }
}

void tni_operation_depot_fini(tni_engine *e)
{
    mags_free(e->full);
    mags_free(e->empty);
    if (e->push_mag)
        tni_free_aligned(e->push_mag);
    while (e->asyncs) {
        op_async *a = e->asyncs;

        e->asyncs = a->next;
        tni_free(a->deps);
        tni_free(a);
    }
    while (e->slabs) {
        engine_slab *slab = e->slabs;

        e->slabs = slab->next;
        tni_free_aligned(slab);
    }
}

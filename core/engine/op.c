/*
 * Operations as blocks: made in slabs, handed from the workers that finish them back to the pushers in
 * magazines of pointers, so that a steady stream of pushes allocates nothing and no block's line is read to
 * find the next.
 */
#include <stdlib.h>

#include "engine/internal.h"

tn_status tni_op_check(const tni_engine *e, const tni_task *task)
{
    (void)e;
    if (!task || !task->run)
        return tni_error(TN_E_ARG, "a task without a function");
    if (task->payload_bytes > TNI_PAYLOAD_MAX)
        return tni_error(TN_E_ARG, "payload of %u bytes, but at most %d fit", task->payload_bytes,
                         TNI_PAYLOAD_MAX);
    if ((task->payload_bytes && !task->payload) || (task->read_count && !task->reads) ||
        (task->write_count && !task->writes))
        return tni_error(TN_E_ARG, "task '%s': a count without its array", task->name ? task->name : "");
    if (task->read_count > OP_VARS_MAX || task->write_count > OP_VARS_MAX - task->read_count)
        return tni_error(TN_E_ARG, "task '%s' names more than %u variables", task->name ? task->name : "",
                         OP_VARS_MAX);
    return TN_OK;
}

/* ---- variables: each once, written ones first ------------------------------------------------------------
 */

static inline bool among(tni_var *const *list, uint32_t count, const tni_var *v)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == v)
            return true;
    return false;
}

static void vars_few(tni_op *op, tni_var **out, const tni_task *task)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < task->write_count; i++)
        if (!among(out, n, task->writes[i]))
            out[n++] = task->writes[i];
    op->write_count = n;
    for (uint32_t i = 0; i < task->read_count; i++)
        if (!among(out, n, task->reads[i]))
            out[n++] = task->reads[i];
    op->var_count = n;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (tni_var *const *)a, y = (uintptr_t) * (tni_var *const *)b;

    return x < y ? -1 : x > y;
}

static uint32_t sort_unique(tni_var **list, uint32_t count)
{
    uint32_t n = 0;

    qsort(list, count, sizeof *list, by_address);
    for (uint32_t i = 0; i < count; i++)
        if (!n || list[n - 1] != list[i])
            list[n++] = list[i];
    return n;
}

static void vars_many(tni_op *op, tni_var **out, const tni_task *task)
{
    uint32_t writes, reads, n;
    tni_var **tail;

    memcpy(out, task->writes, task->write_count * sizeof *out);
    writes = n = sort_unique(out, task->write_count);
    tail = out + writes;
    memcpy(tail, task->reads, task->read_count * sizeof *out);
    reads = sort_unique(tail, task->read_count);
    for (uint32_t i = 0, w = 0; i < reads; i++) {
        while (w < writes && (uintptr_t)out[w] < (uintptr_t)tail[i])
            w++;
        if (w == writes || out[w] != tail[i])
            out[n++] = tail[i];
    }
    op->write_count = writes;
    op->var_count = n;
}

static tn_status vars_fill(tni_op *op, const tni_task *task)
{
    uint32_t total = task->read_count + task->write_count;
    tni_var **list = (tni_var **)(void *)op->data;

    op->vars = list;
    if (TN_LIKELY(total <= OP_VARS_INLINE)) {
        vars_few(op, list, task);
        return TN_OK;
    }
    if (!(list = tni_calloc(total, sizeof *list + sizeof(op_link) + 1)))
        return TN_E_NOMEM;
    if (total <= 64)
        vars_few(op, list, task);
    else
        vars_many(op, list, task);
    op->vars = list;
    if (op->var_count > OP_VARS_INLINE)
        return TN_OK;
    memcpy(op->data, list, op->var_count * sizeof *list); /* after removing repetitions they fit */
    op->vars = (tni_var **)(void *)op->data;
    tni_free(list);
    return TN_OK;
}

tn_status tni_op_fill(tni_op *op, const tni_task *task, engine_queue *q)
{
    tn_status st = vars_fill(op, task);

    if (TN_UNLIKELY(st))
        return st;
    op->run = task->run;
    op->done = task->done;
    op->queue = q;
    op->name = task->name;
    op->origin = task->origin;
    op->priority = task->priority;
    op->flags = (uint16_t)(task->flags & OP_FLAGS_TASK);
    memcpy(op_payload(op), task->payload ? task->payload : "", task->payload_bytes);
    return TN_OK;
}

void tni_op_fini(tni_op *op)
{
    if (op->var_count > OP_VARS_INLINE)
        tni_free(op->vars);
    if (TN_UNLIKELY(op->async != NULL)) {
        for (uint32_t i = 0; i < op->async->dep_count; i++)
            tni_token_release(op->async->deps[i]);
        tni_free(op->async->deps);
        tni_poison_release(op->async->poison);
        tni_free(op->async);
        op->async = NULL;
    }
}

/* ---- recycling ------------------------------------------------------------------------------------- */

static tni_op *slab_take(tni_engine *e)
{
    engine_slab *slab = tni_alloc_aligned(LINE_BYTES, sizeof *slab);

    if (!slab)
        return NULL;
    memset(slab, 0, sizeof *slab);
    tni_spin_lock(&e->depot_lock);
    slab->next = e->slabs;
    e->slabs = slab;
    for (uint32_t i = SLAB_OPS - 1; i >= 1; i--) {
        slab->ops[i].next = e->loose;
        e->loose = &slab->ops[i];
    }
    tni_spin_unlock(&e->depot_lock);
    return &slab->ops[0];
}

static tni_op *depot_take(tni_engine *e)
{
    engine_mag *mag;
    tni_op *op = NULL;

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
    return op ? op : slab_take(e);
}

tni_op *tni_op_take(tni_engine *e)
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

void tni_op_give_back(tni_engine *e, tni_op *op)
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
    if (!mag && (mag = tni_alloc_aligned(LINE_BYTES, sizeof *mag)))
        mag->count = 0;
    return mag;
}

void tni_op_recycle(tni_engine *e, tni_op *op)
{
    engine_worker *w = tni_engine_tls.worker;

    tni_op_fini(op);
    if (TN_UNLIKELY(op->flags & OP_STACK))
        return;
    if (TN_UNLIKELY(!w || w->queue->engine != e)) {
        tni_op_give_back(e, op);
        return;
    }
    atomic_store_explicit(&op->phase, PHASE_FREE, memory_order_relaxed);
    if (TN_UNLIKELY(!w->mag || w->mag->count == MAG_OPS))
        w->mag = mag_change(e, w->mag);
    if (TN_LIKELY(w->mag != NULL))
        w->mag->ops[w->mag->count++] = op;
    else
        tni_op_give_back(e, op);
}

static void mags_free(engine_mag *mag)
{
    while (mag) {
        engine_mag *next = mag->next;

        tni_free_aligned(mag);
        mag = next;
    }
}

void tni_op_depot_fini(tni_engine *e)
{
    mags_free(e->full);
    mags_free(e->empty);
    if (e->push_mag)
        tni_free_aligned(e->push_mag);
    while (e->slabs) {
        engine_slab *slab = e->slabs;

        e->slabs = slab->next;
        tni_free_aligned(slab);
    }
}

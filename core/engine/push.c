/*
 * The doors that programs go through: push, and the short way for small host operations (enter, leave).
 */
#include "engine/internal.h"

/* ---- the short way --------------------------------------------------------------------------------- */

/* Everything pushed before must have been entered, else the short way would overtake it. */
static inline bool caller_may_run(tni_engine *e)
{
    if (TN_UNLIKELY(tni_engine_tls.brief))
        return false; /* the sequencer is ours */
    if (TN_UNLIKELY(!tni_submit_empty(e)) && !((void)tni_submit_drain(e, DRAIN_BATCH), tni_submit_empty(e)))
        return false;
    return !atomic_load_explicit(&e->stopping, memory_order_relaxed);
}

/* After variables were taken one by one: a brief operation that saw them free before may still be running. */
static inline void brief_wait(tni_engine *e)
{
    for (uint32_t spins = 1; TN_UNLIKELY(atomic_load(&e->seq_lock) == SEQ_BRIEF); spins++)
        if (spins % 64 == 0)
            (void)sched_yield();
        else
            tni_pause();
}

static void vars_put_back(tni_var *const *vars, uint32_t count, bool write)
{
    while (count-- > 0)
        tni_var_leave(vars[count], write, false, NULL);
}

bool tni_engine_enter(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                      uint32_t write_count)
{
    uint32_t i, k = 0;

    if (!e->inline_ns || e->type == ENGINE_STEPPED)
        return false;
    tni_hold();
    if (!caller_may_run(e)) {
        tni_unhold();
        return false;
    }
    for (i = 0; i < write_count && tni_var_try(writes[i], true); i++)
        ;
    while (i == write_count && k < read_count && tni_var_try(reads[k], false))
        k++;
    if (TN_UNLIKELY(i < write_count || k < read_count)) {
        vars_put_back(reads, k, false);
        vars_put_back(writes, i, true);
        tni_unhold();
        return false;
    }
    brief_wait(e);
    tni_engine_tls.held++;
    return true;
}

static tni_poison *leave_poison(tni_engine *e, tn_status status, const char *name)
{
    tn_err err;

    tni_error_get(&err);
    if (err.code != status)
        err.message[0] = '\0';
    atomic_fetch_add_explicit(&e->failed, 1u, memory_order_relaxed);
    return tni_poison_create(e, tni_order_inline(e, atomic_load(&e->pushed)), name, NULL, status, &err);
}

void tni_engine_leave(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                      uint32_t write_count, tn_status status, const char *name)
{
    tni_poison *poison = TN_UNLIKELY(status) ? leave_poison(e, status, name) : NULL;

    tni_engine_tls.held--;
    for (uint32_t i = 0; i < write_count; i++)
        tni_var_leave(writes[i], true, true, poison);
    for (uint32_t i = 0; i < read_count; i++)
        tni_var_leave(reads[i], false, false, NULL);
    tni_poison_release(poison);
    tni_unhold();
}

/*
 * Brief: holds the sequencer instead of the variables. While it does nothing can be granted that is free now,
 * except by the long form of enter and by inline pushes, which mark their variables first and look at the
 * sequencer then, as we take the sequencer first and look at the variables then: one of the two sees the
 * other.
 */
bool tni_engine_enter_brief(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                            uint32_t write_count)
{
    uint64_t busy = 0;
    unsigned open = 0;

    if (!e->inline_ns || e->type == ENGINE_STEPPED)
        return false;
    tni_hold();
    if (!caller_may_run(e) || !atomic_compare_exchange_strong(&e->seq_lock, &open, SEQ_BRIEF)) {
        tni_unhold();
        return false;
    }
    for (uint32_t i = 0; i < write_count; i++)
        busy |= atomic_load(&writes[i]->state);
    for (uint32_t i = 0; i < read_count; i++)
        busy |= atomic_load(&reads[i]->state) & ~VAR_READERS;
    if (TN_UNLIKELY(busy)) {
        tni_spin_unlock(&e->seq_lock);
        tni_unhold();
        return false;
    }
    tni_engine_tls.held++;
    tni_engine_tls.brief = true;
    return true;
}

void tni_engine_leave_brief(tni_engine *e, tni_var *const *writes, uint32_t write_count, tn_status status,
                            const char *name)
{
    for (uint32_t i = 0; i < write_count; i++)
        tni_var_written(writes[i]);
    if (TN_UNLIKELY(status)) {
        tni_poison *poison = leave_poison(e, status, name);

        for (uint32_t i = 0; i < write_count; i++)
            tni_var_spoil(writes[i], poison);
        tni_poison_release(poison);
    }
    tni_engine_tls.brief = false;
    tni_engine_tls.held--;
    tni_spin_unlock(&e->seq_lock);
    tni_unhold();
}

/* ---- inline ---------------------------------------------------------------------------------------- */

#define INLINE_NEVER (TNI_TASK_PARALLEL | TNI_TASK_ASYNC | TNI_TASK_COPY | TNI_TASK_HOST_CALL)

static bool vars_try(tni_op *op)
{
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!tni_var_try(op->vars[i], op_is_write(op, i))) {
            while (i-- > 0)
                tni_var_leave(op->vars[i], op_is_write(op, i), false, NULL);
            return false;
        }
    brief_wait(op->queue->engine);
    return true;
}

/* True: it ran, on this thread. */
static bool push_inline(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tni_op op;
    bool ran;

    if (!task->est_ns || task->est_ns > e->inline_ns || (task->flags & INLINE_NEVER) || task->priority ||
        q->async || e->type != ENGINE_THREADED || task->read_count + task->write_count > OP_VARS_INLINE ||
        tni_engine_tls.depth >= INLINE_DEPTH_MAX || !caller_may_run(e))
        return false;
    op.async = NULL;
    op.released = 0;
    op.order = atomic_load_explicit(&e->pushed, memory_order_relaxed);
    atomic_init(&op.phase, PHASE_PUSHED);
    if (tni_op_fill(&op, task, q))
        return false;
    tni_hold();
    if ((ran = vars_try(&op))) {
        op.flags |= OP_STACK;
        atomic_fetch_add_explicit(&e->inlined, 1u, memory_order_relaxed);
        (void)tni_op_run_inline(e, &op);
    }
    tni_unhold();
    return ran;
}

/* ---- push ------------------------------------------------------------------------------------------ */

static void peak_update_locked(tni_engine *e, uint64_t pushed)
{
    uint64_t peak = atomic_load_explicit(&e->queue_peak, memory_order_relaxed);

    if (pushed - e->done_seen <= peak || (e->queue_max > 4096 && pushed % 64))
        return; /* `done` is the workers' line: long queues look at it now and then */
    e->done_seen = atomic_load(&e->done);
    if (pushed - e->done_seen > peak)
        atomic_store_explicit(&e->queue_peak, pushed - e->done_seen, memory_order_relaxed);
}

/* False: the queue is full and the caller is one that waits. */
static bool room_locked(tni_engine *e)
{
    uint64_t pushed = atomic_load_explicit(&e->pushed, memory_order_relaxed);

    if (TN_LIKELY(pushed - e->done_seen < e->queue_max))
        return true;
    e->done_seen = atomic_load(&e->done);
    if (pushed - e->done_seen < e->queue_max)
        return true;
    if (!tni_engine_tls.inside && !tni_engine_tls.held)
        return false;
    atomic_fetch_add_explicit(&e->over_limit, 1u, memory_order_relaxed);
    return true;
}

static tn_status push_locked(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tni_op *op;
    tn_status st;

    if (TN_UNLIKELY(atomic_load_explicit(&e->stopping, memory_order_relaxed)))
        return tni_error(TN_E_STATE, "the engine is shutting down");
    if ((st = tni_submit_reserve_locked(e)))
        return st;
    if (!(op = tni_op_take(e)))
        return TN_E_NOMEM;
    if ((st = tni_op_fill(op, task, q))) {
        tni_op_give_back(e, op);
        return st;
    }
    op->era = e->era;
    atomic_store_explicit(&op->phase, PHASE_PUSHED, memory_order_relaxed);
    atomic_store_explicit(&e->eras[e->era].pushed,
                          atomic_load_explicit(&e->eras[e->era].pushed, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    tni_submit_locked(e, op);
    peak_update_locked(e, atomic_load_explicit(&e->pushed, memory_order_relaxed));
    return TN_OK;
}

static bool may_push_locked(tni_engine *e)
{
    return atomic_load_explicit(&e->stopping, memory_order_relaxed) || (!tni_fork_waits() && room_locked(e));
}

/* The queue is full, or somebody forks: waits. Counted as inside to the end, so that shutdown
 * waits. */
static tn_status push_blocked(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tn_status st;

    atomic_fetch_add(&e->inside, 1u);
    do {
        tni_spin_unlock(&e->push_lock);
        tni_fork_let_by();
        tni_wait_room(e);
        tni_spin_lock(&e->push_lock);
    } while (!may_push_locked(e));
    st = push_locked(e, task, q);
    tni_spin_unlock(&e->push_lock);
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

static tn_status device_allowed(const tni_engine *e, const tni_device *d)
{
    if (TN_UNLIKELY(atomic_load_explicit(&e->dead, memory_order_relaxed)))
        return tni_error(TN_E_STATE, "the process was forked inside a callback of the engine");
    if (TN_UNLIKELY(!d->host && atomic_load_explicit(&e->forked, memory_order_relaxed)))
        return tni_error(TN_E_STATE, "%s:%d cannot be used after fork: the child has host devices only",
                         d->type, d->index);
    return TN_OK;
}

tn_status tni_engine_push(tni_engine *e, const tni_task *task)
{
    engine_queue *q;
    tni_device *d;
    tn_status st;

    if ((st = tni_op_check(e, task)))
        return st;
    d = task->device ? task->device : e->host;
    if ((st = device_allowed(e, d)) || (st = tni_queue_for(e, d, task->flags, task->priority, &q)))
        return st;
    if (task->est_ns && push_inline(e, task, q))
        return TN_OK;
    tni_spin_lock(&e->push_lock);
    if (TN_UNLIKELY(!may_push_locked(e))) {
        st = push_blocked(e, task, q); /* unlocks */
    } else {
        st = push_locked(e, task, q);
        tni_spin_unlock(&e->push_lock);
    }
    if (TN_UNLIKELY(st))
        return st;
    if (TN_LIKELY(e->type == ENGINE_THREADED))
        tni_queue_wake(q);
    else
        tni_step_pushed(e);
    return TN_OK;
}

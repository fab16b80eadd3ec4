/*
 * The calls that programs make: push, and the fast path for small host operations (enter, leave).
 */
#include "engine/internal.h"

/* ---- the fast path --------------------------------------------------------------------------------- */

/* Everything pushed before must have been entered, else the fast path would overtake it. */
static inline bool caller_may_run(tni_engine *e)
{
    if (TN_UNLIKELY(!tni_submit_empty(e)) && !((void)tni_submit_drain(e, DRAIN_BATCH), tni_submit_empty(e)))
        return false;
    return !atomic_load_explicit(&e->stopping, memory_order_relaxed);
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

    if (!e->inline_ns || e->type == ENGINE_STEPPED || tni_engine_tls.gathering)
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

static void leave_failed(tni_engine *e, tni_var *const *writes, uint32_t write_count, tn_status status,
                         const char *name)
{
    tni_poison *poison = leave_poison(e, status, name);

    for (uint32_t i = 0; i < write_count; i++)
        tni_var_leave(writes[i], true, true, poison);
    tni_poison_release(poison);
}

void tni_engine_leave(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                      uint32_t write_count, tn_status status, const char *name)
{
    tni_engine_tls.held--;
    if (TN_UNLIKELY(status)) {
        leave_failed(e, writes, write_count, status, name);
        write_count = 0;
    }
    for (uint32_t i = 0; i < write_count; i++) {
        tni_var_written(writes[i]);
        tni_var_leave_quick(writes[i], true);
    }
    for (uint32_t i = 0; i < read_count; i++)
        tni_var_leave_quick(reads[i], false);
    tni_unhold();
}

void tni_engine_spoil(tni_engine *e, tni_var *const *vars, uint32_t count, tn_status status, const char *name)
{
    tni_poison *poison = leave_poison(e, status, name);

    for (uint32_t i = 0; i < count; i++)
        tni_var_spoil(vars[i], poison);
    tni_poison_release(poison);
}

/* ---- inline ---------------------------------------------------------------------------------------- */

#define INLINE_NEVER (TNI_TASK_PARALLEL | TNI_TASK_ASYNC | TNI_TASK_HOST_CALL)

static bool vars_try(tni_operation *op)
{
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!tni_var_try(op->vars[i], op_is_write(op, i))) {
            while (i-- > 0)
                tni_var_leave(op->vars[i], op_is_write(op, i), false, NULL);
            return false;
        }
    return true;
}

/* True: it ran, on this thread. */
static bool push_inline(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tni_operation op;
    bool ran;

    if (!task->est_ns || task->est_ns > e->inline_ns || (task->flags & INLINE_NEVER) || task->priority ||
        task->lane || q->async || e->type != ENGINE_THREADED ||
        task->read_count + task->write_count > OP_VARS_INLINE || tni_engine_tls.depth >= INLINE_DEPTH_MAX ||
        !caller_may_run(e))
        return false;
    op.async = NULL;
    op.order = atomic_load_explicit(&e->pushed, memory_order_relaxed);
    atomic_init(&op.phase, PHASE_PUSHED);
    if (tni_operation_fill(&op, task, q))
        return false;
    tni_hold();
    if ((ran = vars_try(&op))) {
        op.flags |= OP_STACK;
        atomic_fetch_add_explicit(&e->inlined, 1u, memory_order_relaxed);
        (void)tni_operation_run_inline(e, &op);
    }
    tni_unhold();
    return ran;
}

/* ---- short operations -------------------------------------------------------------------------------- */

/* Whoever may run them on its own holds from before its push on: a fork waits for what it has taken. */
static bool here_begin(const tni_engine *e, uint32_t flags)
{
    if (TN_LIKELY(!(flags & TNI_TASK_SHORT)) || e->type != ENGINE_THREADED || tni_engine_tls.depth ||
        tni_engine_tls.held || tni_engine_tls.here)
        return false;
    tni_hold();
    return true;
}

/* Whoever is going to sleep does not hold. */
static void here_drop(bool *here)
{
    if (*here)
        tni_unhold();
    *here = false;
}

/* Behind a push to `q`; what this thread could not enter is for a worker. NULL: nothing was pushed. */
static void here_end(tni_engine *e, engine_queue *q)
{
    if (q)
        tni_operation_here(e, NULL);
    if (q && !tni_submit_empty(e))
        tni_queue_wake(q);
    tni_unhold();
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

/* False: the queue is full and the caller is one that waits;
 * `waited`: since when, NULL for one that comes. */
static bool room_locked(tni_engine *e, uint32_t count, const engine_room *waited)
{
    uint64_t pushed = atomic_load_explicit(&e->pushed, memory_order_relaxed);
    uint64_t most = tni_room_most(e, count, false);

    e->done_seen = atomic_load(&e->done);
    if (pushed - e->done_seen <= most)
        return true;
    if (tni_engine_tls.inside || tni_engine_tls.held ||
        (waited && tni_room_due(waited, pushed, e->done_seen))) {
        atomic_fetch_add_explicit(&e->over_limit, count, memory_order_relaxed);
        return true;
    }
    return false;
}

static bool may_push_locked(tni_engine *e, uint32_t count, const engine_room *waited)
{
    return atomic_load_explicit(&e->stopping, memory_order_relaxed) ||
           (!tni_fork_waits() && room_locked(e, count, waited));
}

/* Most of the time. */
static inline bool may_push_at_once_locked(const tni_engine *e)
{
    return atomic_load_explicit(&e->pushed, memory_order_relaxed) - e->done_seen < e->queue_max &&
           !tni_fork_waits();
}

/* The queue is full, or somebody forks. The caller is counted as inside to the end,
 * so that shutdown waits. */
static void push_wait_locked(tni_engine *e, uint32_t count)
{
    engine_room room = {.engine = e, .count = count, .since = atomic_load(&e->done)};

    do {
        tni_spin_unlock(&e->push_lock);
        tni_fork_let_by();
        tni_wait_room(&room);
        tni_spin_lock(&e->push_lock);
    } while (!may_push_locked(e, count, &room));
}

static tn_status stopping_error(void)
{
    return tni_error(TN_E_STATE, "the engine is shutting down");
}

static inline void submit_locked(tni_engine *e, tni_operation *op)
{
    op->era = e->era;
    atomic_store_explicit(&op->phase, PHASE_PUSHED, memory_order_relaxed);
    tni_submit_put_locked(e, op);
}

static inline void publish_locked(tni_engine *e, uint32_t count)
{
    atomic_uint_fast64_t *era = &e->eras[e->era].pushed;

    atomic_store_explicit(era, atomic_load_explicit(era, memory_order_relaxed) + count, memory_order_relaxed);
    tni_submit_publish_locked(e, count);
    peak_update_locked(e, atomic_load_explicit(&e->pushed, memory_order_relaxed));
}

static tn_status push_locked(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tni_operation *op;
    tn_status st;

    if (TN_UNLIKELY(atomic_load_explicit(&e->stopping, memory_order_relaxed)))
        return stopping_error();
    if ((st = tni_submit_reserve_locked(e, 1)))
        return st;
    if (!(op = tni_operation_take(e)))
        return TN_E_NOMEM;
    if ((st = tni_operation_fill(op, task, q))) {
        tni_operation_give_back(e, op);
        return st;
    }
    submit_locked(e, op);
    publish_locked(e, 1);
    return TN_OK;
}

static tn_status push_blocked(tni_engine *e, const tni_task *task, engine_queue *q)
{
    tn_status st;

    atomic_fetch_add(&e->inside, 1u);
    push_wait_locked(e, 1);
    st = push_locked(e, task, q);
    tni_spin_unlock(&e->push_lock);
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

static inline tn_status device_allowed(const tni_engine *e, const tni_device *d)
{
    if (TN_UNLIKELY(atomic_load_explicit(&e->dead, memory_order_relaxed)))
        return tni_error(TN_E_STATE, "the process was forked inside a callback of the engine");
    if (TN_UNLIKELY(!d->host && atomic_load_explicit(&e->forked, memory_order_relaxed)))
        return tni_error(TN_E_STATE, "%s:%d cannot be used after fork: the child has host devices only",
                         d->type, d->index);
    return TN_OK;
}

static tn_status task_queue(tni_engine *e, const tni_task *task, engine_queue **out)
{
    tni_device *d = task->device ? task->device : e->host;
    tn_status st = device_allowed(e, d);

    return st ? st : tni_queue_for(e, d, task, out);
}

/* ---- groups ---------------------------------------------------------------------------------------- */

static tn_status group_check(tni_engine *e, const tni_task *tasks, uint32_t count)
{
    engine_queue *q;
    tn_status st = TN_OK;

    if (count > GROUP_MAX || !tasks)
        return tni_error(TN_E_ARG, "a group of %u tasks, but at most %u go at once", count, GROUP_MAX);
    for (uint32_t i = 0; i < count && !st; i++)
        (void)((st = tni_operation_check(e, &tasks[i])) || (st = task_queue(e, &tasks[i], &q)));
    return st;
}

static tn_status group_take(tni_engine *e, uint32_t count, engine_list *out)
{
    tn_status st = TN_OK;
    tni_operation *op;

    tni_spin_lock(&e->push_lock);
    if (!tni_operation_provide_locked(e, count))
        st = TN_E_NOMEM;
    for (uint32_t i = 0; i < count && !st; i++)
        if ((op = tni_operation_take(e)))
            tni_list_add(out, op);
        else
            st = TN_E_NOMEM;
    tni_spin_unlock(&e->push_lock);
    return st;
}

/* The operations of a group, ready to be submitted; on failure as many as there are, the first `*filled` of
 * them with their lists. */
static tn_status group_make(tni_engine *e, const tni_task *tasks, uint32_t count, engine_list *out,
                            uint32_t *filled)
{
    tn_status st = group_take(e, count, out);
    tni_operation *op = out->head;
    engine_queue *q;

    for (*filled = 0; !st && *filled < count; op = op->next)
        if (!(st = task_queue(e, &tasks[*filled], &q)) && !(st = tni_operation_fill(op, &tasks[*filled], q)))
            ++*filled;
    return st;
}

/* `here`: as here_begin; false now if it had to wait. */
static tn_status group_submit(tni_engine *e, uint32_t count, engine_list *ops, bool *here)
{
    tn_status st = TN_OK;

    tni_spin_lock(&e->push_lock);
    if (TN_UNLIKELY(!may_push_locked(e, count, NULL))) {
        here_drop(here);
        push_wait_locked(e, count);
    }
    if (TN_UNLIKELY(atomic_load_explicit(&e->stopping, memory_order_relaxed)))
        st = stopping_error();
    else
        st = tni_submit_reserve_locked(e, count);
    if (!st) {
        for (tni_operation *op; (op = tni_list_pop(ops));)
            submit_locked(e, op);
        publish_locked(e, count);
    }
    tni_spin_unlock(&e->push_lock);
    return st;
}

static void group_drop(tni_engine *e, engine_list *ops, uint32_t filled)
{
    for (tni_operation *op; (op = tni_list_pop(ops)); filled -= filled != 0) {
        if (filled)
            tni_operation_fini(op);
        tni_operation_give_back(e, op);
    }
}

/* One of its queues may be busy for long while another one's worker sleeps: all are told. */
static void group_wake(tni_engine *e, const tni_task *tasks, uint32_t count)
{
    engine_queue *q = NULL, *last = NULL;

    for (uint32_t i = 0; i < count && e->type == ENGINE_THREADED; i++, last = q)
        if (!task_queue(e, &tasks[i], &q) && q != last)
            tni_queue_wake(q);
    if (e->type != ENGINE_THREADED)
        tni_step_pushed(e);
}

/* ---- gatherings: pushes that become a group ---------------------------------------------------------- */

static inline tni_gathering *gathering_of(const tni_engine *e)
{
    tni_gathering *g = tni_engine_tls.gathering;

    return TN_UNLIKELY(g != NULL) && g->engine == e ? g : NULL;
}

static tn_status gather(tni_gathering *g, const tni_task *tasks, uint32_t count)
{
    engine_list ops = {NULL, NULL}, all = {g->head, g->tail};
    uint32_t filled = 0;
    tn_status st = count > GROUP_MAX - g->count ? tni_error(TN_E_ARG, "more than %u tasks at once", GROUP_MAX)
                                                : group_make(g->engine, tasks, count, &ops, &filled);

    if (st) {
        group_drop(g->engine, &ops, filled);
        return st;
    }
    for (tni_operation *op; (op = tni_list_pop(&ops));) {
        g->queues |= (uint64_t)1 << op->queue->index % 64;
        tni_list_add(&all, op);
    }
    g->head = all.head;
    g->tail = all.tail;
    g->count += count;
    return TN_OK;
}

void tni_engine_gather_begin(tni_engine *e, tni_gathering *g)
{
    *g = (tni_gathering){.engine = e};
    tni_engine_tls.gathering = g;
    atomic_fetch_add(&e->inside, 1u);
}

/* They were pushed, as far as their pushers know. */
static void gathered_cancel(tni_engine *e, engine_list *ops, tn_status st)
{
    tni_engine_tls.depth++;
    tni_engine_tls.inside++;
    for (tni_operation *op; (op = tni_list_pop(ops));) {
        if (op->done)
            op->done(op_payload(op), e, st);
        tni_operation_fini(op);
        tni_operation_give_back(e, op);
    }
    tni_engine_tls.depth--;
    tni_engine_tls.inside--;
}

static void gathered_wake(tni_engine *e, uint64_t queues)
{
    if (e->type != ENGINE_THREADED) {
        tni_step_pushed(e);
        return;
    }
    tni_mutex_lock(&e->start_mutex);
    for (engine_queue *q = e->queues; q; q = q->next)
        if (queues >> q->index % 64 & 1u)
            tni_queue_wake(q);
    tni_mutex_unlock(&e->start_mutex);
}

tn_status tni_engine_gather_end(tni_gathering *g, tn_status st)
{
    tni_engine *e = g->engine;
    engine_list ops = {g->head, g->tail};
    engine_queue *q = ops.head ? ops.head->queue : NULL;
    bool here;
    tn_err err;

    tni_engine_tls.gathering = NULL;
    here = !st && g->count == 1 && here_begin(e, ops.head->flags);
    if (!st && g->count)
        st = group_submit(e, g->count, &ops, &here);
    if (st) {
        tni_error_get(&err);
        gathered_cancel(e, &ops, st);
        tni_error_set(&err);
    } else if (g->count && !here) {
        gathered_wake(e, g->queues);
    }
    if (here)
        here_end(e, st ? NULL : q);
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

/* ---- the calls --------------------------------------------------------------------------------------- */

tn_status tni_engine_push(tni_engine *e, const tni_task *task)
{
    tni_gathering *g = gathering_of(e);
    tni_device *d;
    engine_queue *q;
    bool here;
    tn_status st;

    if ((st = tni_operation_check(e, task)))
        return st;
    d = task->device ? task->device : e->host;
    if ((st = device_allowed(e, d)) || (st = tni_queue_for(e, d, task, &q)))
        return st;
    if (g)
        return gather(g, task, 1);
    if (task->est_ns && push_inline(e, task, q))
        return TN_OK;
    here = here_begin(e, task->flags);
    tni_spin_lock(&e->push_lock);
    if (TN_UNLIKELY(!may_push_at_once_locked(e)) && !may_push_locked(e, 1, NULL)) {
        here_drop(&here);
        st = push_blocked(e, task, q); /* unlocks */
    } else {
        st = push_locked(e, task, q);
        tni_spin_unlock(&e->push_lock);
    }
    if (TN_UNLIKELY(here))
        here_end(e, st ? NULL : q);
    else if (TN_UNLIKELY(st))
        return st;
    else if (TN_LIKELY(e->type == ENGINE_THREADED))
        tni_queue_wake(q);
    else
        tni_step_pushed(e);
    return st;
}

tn_status tni_engine_push_group(tni_engine *e, const tni_task *tasks, uint32_t count)
{
    engine_list ops = {NULL, NULL};
    tni_gathering *g;
    uint32_t filled = 0;
    bool here = false;
    tn_status st;

    if (count == 1)
        return tni_engine_push(e, tasks);
    if (!count || (st = group_check(e, tasks, count)))
        return count ? st : TN_OK;
    if ((g = gathering_of(e)))
        return gather(g, tasks, count);
    atomic_fetch_add(&e->inside, 1u);
    if ((st = group_make(e, tasks, count, &ops, &filled)) || (st = group_submit(e, count, &ops, &here)))
        group_drop(e, &ops, filled);
    else
        group_wake(e, tasks, count);
    atomic_fetch_sub(&e->inside, 1u);
    return st;
}

/*
 * Engines without threads of their own: naive runs everything on the caller before push returns, stepped runs
 * one chosen operation per call.
 *
 * Both enter operations into the same variables and queues as the threaded engine; only who serves the queues
 * differs: one thread at a time, the owner, and nobody while all sleep. A push from inside an operation is
 * left to the owner's loop; a push from inside a host callback is run within it, as far as it can run. So is
 * one that finds operations which something outside is to complete: its thread may be the one that completes
 * them. Whoever began them waits, and runs what had to wait for them.
 */
#include "engine/internal.h"

#define POLL_NS 100000000u

/* A right that a child must not find taken: its owner holds it, but while it sleeps without it. */
bool tni_step_enter(tni_engine *e, uint64_t deadline)
{
    uint64_t me = tni_thread_id();
    bool mine, in_time = true;

    tni_mutex_lock(&e->progress_mutex);
    while (!(mine = !e->step_owner || e->step_owner == me) && in_time)
        in_time = tni_cond_wait_until(&e->progress, &e->progress_mutex, deadline);
    if (mine) {
        e->step_owner = me;
        if (e->step_nested++ == 0)
            tni_hold();
    }
    tni_mutex_unlock(&e->progress_mutex);
    return mine;
}

void tni_step_leave(tni_engine *e)
{
    tni_mutex_lock(&e->progress_mutex);
    if (--e->step_nested == 0) {
        e->step_owner = 0;
        tni_cond_broadcast(&e->progress);
        tni_unhold();
    }
    tni_mutex_unlock(&e->progress_mutex);
}

static bool step_mine(tni_engine *e)
{
    bool mine;

    tni_mutex_lock(&e->progress_mutex);
    mine = e->step_owner == tni_thread_id();
    tni_mutex_unlock(&e->progress_mutex);
    return mine;
}

static engine_queue *queues_of(tni_engine *e)
{
    engine_queue *q;

    tni_mutex_lock(&e->start_mutex);
    q = e->queues;
    tni_mutex_unlock(&e->start_mutex);
    return q;
}

static void enter_all(tni_engine *e)
{
    while (!tni_submit_empty(e))
        if (!tni_submit_drain(e, SIZE_MAX))
            (void)sched_yield();
}

/* Completions first: they are not choices. */
static bool complete_some(tni_engine *e)
{
    bool some = false;

    for (engine_queue *q = queues_of(e); q; q = q->next) {
        while (tni_queue_complete_some(q, &q->workers[0])) {
            tni_worker_flush(&q->workers[0]);
            some = true;
        }
        tni_token_ask_newest(&q->workers[0]);
    }
    return some;
}

void tni_step_completions(tni_engine *e)
{
    (void)tni_step_enter(e, 0);
    (void)complete_some(e);
    tni_step_leave(e);
}

static size_t ready_count(tni_engine *e)
{
    size_t n = 0;

    for (engine_queue *q = queues_of(e); q; q = q->next) {
        tni_spin_lock(&q->lock);
        for (const tni_operation *op = q->ready.head; op; op = op->next)
            n++;
        tni_spin_unlock(&q->lock);
    }
    return n;
}

static tni_operation *ready_take(tni_engine *e, size_t which)
{
    tni_operation *found = NULL;

    for (engine_queue *q = queues_of(e); q && !found; q = q->next) {
        tni_operation *previous = NULL;

        tni_spin_lock(&q->lock);
        for (tni_operation *op = q->ready.head; op; previous = op, op = op->next)
            if (which-- == 0) {
                found = op;
                if (previous)
                    previous->next = op->next;
                else
                    q->ready.head = op->next;
                if (q->ready.tail == op)
                    q->ready.tail = previous;
                break;
            }
        tni_spin_unlock(&q->lock);
    }
    return found;
}

static bool run_one(tni_engine *e, size_t which)
{
    tni_operation *op = ready_take(e, which);
    engine_worker *w;

    if (!op)
        return false;
    w = &op->queue->workers[0];
    e->step_running++;
    tni_operation_dispatch(w, op);
    e->step_running--;
    tni_worker_flush(w);
    return true;
}

/* Naive: the oldest in its queue. Stepped: by the seed. */
static size_t choose(tni_engine *e, size_t count)
{
    uint32_t draw[4];

    if (e->type == ENGINE_NAIVE || count < 2)
        return 0;
    tn_philox(e->seed, 0, e->step_draws++, draw);
    return draw[0] % count;
}

bool tni_step_some(tni_engine *e)
{
    size_t count;

    enter_all(e);
    if (complete_some(e))
        return true;
    count = ready_count(e);
    return count && run_one(e, choose(e, count));
}

/* The owner sleeps and is no owner meanwhile: what it waits for may be held by a thread that wants
 * to step. */
static void progress_sleep(tni_engine *e, uint64_t deadline)
{
    uint64_t until =
        tni_clock_ns() + POLL_NS / 1000; /* completions may come between the look and the sleep */
    const uint64_t me = tni_thread_id();
    uint32_t nested;

    if (deadline && deadline < until)
        until = deadline;
    tni_mutex_lock(&e->progress_mutex);
    nested = e->step_nested;
    e->step_owner = 0;
    e->step_nested = 0;
    tni_cond_broadcast(&e->progress);
    tni_unhold();
    tni_hold_pass(true); /* an operation may be running below on this stack, and a fork waits for it */
    (void)tni_cond_wait_until(&e->progress, &e->progress_mutex, until);
    while (e->step_owner && e->step_owner != me)
        tni_cond_wait(&e->progress, &e->progress_mutex);
    tni_hold();
    tni_hold_pass(false);
    e->step_owner = me;
    e->step_nested = nested;
    tni_mutex_unlock(&e->progress_mutex);
}

bool tni_step_until(tni_engine *e, bool (*reached)(void *arg), void *arg, uint64_t deadline_ns)
{
    bool done;

    if (!tni_step_enter(e, deadline_ns))
        return false;
    while (!(done = reached(arg))) {
        if (deadline_ns && tni_clock_ns() >= deadline_ns)
            break;
        if (!tni_step_some(e) && !reached(arg))
            progress_sleep(e, deadline_ns);
    }
    tni_step_leave(e);
    return done;
}

/* All but the host callbacks that wait within themselves, on this stack or another. */
static bool pushed_done(const tni_engine *e)
{
    return atomic_load(&e->pushed) - atomic_load(&e->done) <= e->step_running;
}

void tni_step_pushed(tni_engine *e)
{
    bool others;

    if (e->type == ENGINE_STEPPED || (tni_engine_tls.depth && step_mine(e)) || tni_engine_tls.held) {
        enter_all(e);
        return;
    }
    (void)tni_step_enter(e, 0);
    while (complete_some(e))
        ;
    others = tni_engine_outstanding(e, true);
    while (!pushed_done(e)) {
        if (tni_step_some(e))
            continue;
        if (others || (!tni_engine_outstanding(e, true) && e->step_running))
            break; /* what is left needs what others complete, or what a callback below us holds */
        progress_sleep(e, 0);
    }
    tni_step_leave(e);
}

size_t tni_engine_ready_count(tni_engine *e)
{
    size_t n;

    if (e->type != ENGINE_STEPPED)
        return 0;
    (void)tni_step_enter(e, 0);
    enter_all(e);
    (void)complete_some(e);
    n = ready_count(e);
    tni_step_leave(e);
    return n;
}

tn_status tni_engine_step(tni_engine *e, size_t which)
{
    bool ran;

    if (e->type != ENGINE_STEPPED)
        return tni_error(TN_E_STATE, "only the stepped engine can be stepped");
    if (tni_engine_on_worker())
        return tni_error(TN_E_STATE, "stepping the engine inside one of its operations");
    (void)tni_step_enter(e, 0);
    enter_all(e);
    ran = run_one(e, which);
    tni_step_leave(e);
    return ran ? TN_OK : tni_error(TN_E_ARG, "operation %zu of those ready, but there are fewer", which);
}

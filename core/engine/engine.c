/*
 * The engine as an object: creation, shutdown, fork, numbers, the list of what is pending.
 */
#include "engine/internal.h"

#define FORK_LOOK_NS 50000u    /* who forks looks this often */
#define RELIEF_NS 30000000000u /* a driver that has not told of a completion for so long tells of none */

/* ---- creation -------------------------------------------------------------------------------------- */

static tni_poison *poison_spare(tn_status status, const char *text)
{
    tni_poison *p = tni_zalloc(sizeof *p);

    if (!p)
        return NULL;
    tni_ref_init(&p->refs);
    atomic_init(&p->reported, false);
    tni_err_format(&p->err, status, "%s", text);
    return p;
}

static tn_status type_parse(const char *text, int *out)
{
    static const char *const names[] = {"threaded", "naive", "stepped"};

    for (int i = 0; i < 3; i++)
        if (!text || !strcmp(text, names[i])) {
            *out = i;
            return TN_OK;
        }
    return tni_error(TN_E_ARG, "engine '%s', but engines are threaded, naive, stepped", text);
}

void tni_engine_wait_warn(tni_engine *e, uint64_t ms)
{
    atomic_store(&e->wait_warn_ns, ms < UINT64_MAX / 4000000u ? ms * 1000000u : 0);
}

static void settings(tni_engine *e, const tni_engine_options *o)
{
    e->threads = o->threads ? o->threads : tni_cpu_count();
    e->worker_max = o->workers ? o->workers : 1;
    if (e->worker_max > WORKERS_MAX)
        e->worker_max = WORKERS_MAX;
    e->queue_max = o->queue_max ? o->queue_max : 1;
    if (e->queue_max > TN_SIZE_MAX)
        e->queue_max = TN_SIZE_MAX;
    e->inline_ns = o->inline_ns;
    tni_engine_wait_warn(e, o->wait_warn_ms);
    e->seed = o->seed;
}

static tn_status locks_init(tni_engine *e)
{
    tn_status st;

    (void)((st = tni_mutex_init(&e->start_mutex)) || (st = tni_mutex_init(&e->progress_mutex)) ||
           (st = tni_mutex_init(&e->poison_mutex)) || (st = tni_mutex_init(&e->dump_mutex)) ||
           (st = tni_cond_init(&e->progress)));
    return st;
}

/* What waits for memory is everything pushed. On a worker only its own stream's work can be waited for. */
static bool engine_relief(void *arg)
{
    tni_engine *e = arg;
    engine_worker *w = tni_engine_tls.worker;
    uint64_t until;
    tn_err err;

    if (!tni_engine_tls.inside && !tni_engine_tls.held) {
        tni_wait_pushed(e);
        return true;
    }
    if (!w || w->queue->engine != e || !w->stream || !w->issued)
        return false;
    (void)w->queue->device->ops->stream_wait(w->stream, &err);
    for (until = tni_clock_ns() + RELIEF_NS; w->issued && tni_clock_ns() < until;) {
        if (tni_queue_complete_some(w->queue, w))
            until = tni_clock_ns() + RELIEF_NS;
        else
            tni_token_ask_newest(w); /* each time: it asks for none while an older one is under way */
        (void)sched_yield();
    }
    return true;
}

tn_status tni_engine_create(const tni_engine_options *options, tni_device_set *devices, const tni_log *log,
                            tni_engine **out)
{
    tni_engine *e = NULL;
    tn_status st;

    if (!options || !devices)
        return tni_error(TN_E_ARG, "an engine needs options and devices");
    if (!(e = tni_alloc_aligned(LINE_BYTES, sizeof *e)))
        return TN_E_NOMEM;
    memset(e, 0, sizeof *e);
    e->devices = devices;
    e->log = log;
    settings(e, options);
    if ((st = type_parse(options->type, &e->type)) || (st = tni_device_get(devices, "cpu", 0, &e->host)) ||
        (st = locks_init(e)))
        goto cleanup;
    if (!(e->no_memory = poison_spare(TN_E_NOMEM, "out of memory while an error was recorded")) ||
        !(e->cancelled = poison_spare(TN_E_CANCELLED, "cancelled: the engine was shut down"))) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    if ((st = tni_live_add(e)))
        goto cleanup;
    tni_device_set_relief(devices, engine_relief, e);
    *out = e;
    return TN_OK;

cleanup:
    tni_poison_release(e->no_memory);
    tni_poison_release(e->cancelled);
    tni_free_aligned(e);
    return st;
}

/* ---- shutdown ------------------------------------------------------------------------------------------ */

static void workers_join(tni_engine *e)
{
    atomic_store(&e->quit, true);
    for (engine_queue *q = e->queues; q; q = q->next) {
        tni_mutex_lock(&q->mutex);
        tni_cond_broadcast(&q->cond);
        tni_mutex_unlock(&q->mutex);
    }
    for (engine_queue *q = e->queues; q; q = q->next)
        for (uint32_t i = 0; i < WORKERS_MAX; i++) {
            tni_thread_join(q->workers[i].thread);
            q->workers[i].thread = NULL;
        }
}

static void engine_free(tni_engine *e)
{
    while (e->queues) {
        engine_queue *q = e->queues;

        e->queues = q->next;
        tni_queue_destroy(q);
    }
    for (size_t i = 0; i < tni_device_count(e->devices); i++) {
        tni_device *d = tni_device_at(e->devices, i);

        tni_free(d->engine_data);
        d->engine_data = NULL;
    }
    tni_operation_depot_fini(e);
    tni_submit_fini(e);
    for (uint32_t i = 0; i < e->poison_count; i++)
        tni_poison_release(e->poisons[i]);
    tni_poison_release(e->no_memory);
    tni_poison_release(e->cancelled);
    tni_cond_fini(&e->progress);
    tni_mutex_fini(&e->poison_mutex);
    tni_mutex_fini(&e->dump_mutex);
    tni_mutex_fini(&e->progress_mutex);
    tni_mutex_fini(&e->start_mutex);
    tni_free_aligned(e);
}

void tni_engine_destroy(tni_engine *e)
{
    if (!e)
        return;
    tni_device_set_relief(e->devices, NULL, NULL);
    if (!atomic_load(&e->dead)) {
        tni_spin_lock(&e->push_lock);
        atomic_store(&e->stopping, true);
        tni_spin_unlock(&e->push_lock);
        tni_progress(e); /* blocked pushers */
        tni_wait_idle(e, 0);
        /* Waits on other threads are over, but not gone;
         * so are notifications of what is complete by others. */
        while (atomic_load(&e->inside) || atomic_load(&e->watching)) {
            tni_progress(e);
            if (e->type != ENGINE_THREADED)
                tni_step_completions(e);
            (void)sched_yield();
        }
        workers_join(e);
    }
    tni_live_remove(e);
    tni_handles_drop(e);
    engine_free(e);
}

/* ---- fork ------------------------------------------------------------------------------------------ */

static void locks_take(tni_engine *e) TN_NO_THREAD_CHECK
{
    tni_spin_lock(&e->seq_lock); /* entering may start a thread: above start_mutex */
    tni_spin_lock(&e->push_lock);
    tni_mutex_lock(&e->start_mutex);
    for (engine_queue *q = e->queues; q; q = q->next) {
        tni_mutex_lock(&q->mutex);
        tni_spin_lock(&q->lock);
    }
    tni_spin_lock(&e->depot_lock);
    tni_mutex_lock(&e->poison_mutex);
    tni_mutex_lock(&e->progress_mutex);
}

static void locks_give(tni_engine *e) TN_NO_THREAD_CHECK
{
    tni_mutex_unlock(&e->progress_mutex);
    tni_mutex_unlock(&e->poison_mutex);
    tni_spin_unlock(&e->depot_lock);
    for (engine_queue *q = e->queues; q; q = q->next) {
        tni_spin_unlock(&q->lock);
        tni_mutex_unlock(&q->mutex);
    }
    tni_mutex_unlock(&e->start_mutex);
    tni_spin_unlock(&e->push_lock);
    tni_spin_unlock(&e->seq_lock);
}

static bool workers_asleep(const tni_engine *e) /* start_mutex held */
{
    for (const engine_queue *q = e->queues; q && e->type == ENGINE_THREADED; q = q->next)
        if (atomic_load(&q->sleepers) != atomic_load(&q->worker_count))
            return false;
    return true;
}

/* Every worker asleep at its condition, none on its way there: what a worker does behind its last operation,
 * such as freeing memory, holds locks of libraries that the child could never give back. All locks held. */
static bool workers_parked(const tni_engine *e)
{
    bool parked = workers_asleep(e);

    for (const engine_queue *q = e->queues; q && e->type == ENGINE_THREADED; q = q->next)
        parked &= !q->waking;
    return parked;
}

/* Work that needs a thread to step gets this one. */
static void steps_run(tni_engine *e, uint64_t deadline)
{
    if (!tni_step_enter(e, deadline))
        return;
    while (!tni_engine_idle(e) && tni_clock_ns() < deadline && tni_step_some(e))
        ;
    tni_step_leave(e);
}

static bool all_left(tni_engine *e)
{
    /* waits were signalled by now, and are about to leave; no driver calls while the process forks */
    return tni_engine_idle(e) && !atomic_load(&e->waits) && !atomic_load(&e->watching);
}

static bool all_asleep(tni_engine *e)
{
    bool asleep;

    tni_mutex_lock(&e->start_mutex);
    asleep = workers_asleep(e);
    tni_mutex_unlock(&e->start_mutex);
    return asleep;
}

bool tni_engine_fork_drain(tni_engine *e, uint64_t deadline, uint64_t *done)
{
    bool left;

    if (atomic_load(&e->dead))
        return true; /* of a parent's callback: nothing of it goes on */
    if (!tni_engine_idle(e) && e->type == ENGINE_THREADED)
        tni_wait_idle(e, deadline);
    else if (!tni_engine_idle(e))
        steps_run(e, deadline);
    while (!(left = all_left(e) && all_asleep(e)) && tni_clock_ns() < deadline)
        tni_sleep_ns(FORK_LOOK_NS);
    *done += atomic_load(&e->done);
    return left;
}

bool tni_engine_fork_lock(tni_engine *e)
{
    if (atomic_load(&e->dead))
        return true; /* its locks are the parent's */
    locks_take(e);
    if (all_left(e) && workers_parked(e))
        return true;
    locks_give(e);
    return false;
}

void tni_engine_fork_unlock(tni_engine *e)
{
    if (!atomic_load(&e->dead))
        locks_give(e);
}

/* No stream of the parent is a child's: none is used, waited for or destroyed,
 * nor what plugins kept for it. */
static void streams_forget(tni_engine *e)
{
    for (engine_queue *q = e->queues; q; q = q->next)
        for (uint32_t i = 0; i < WORKERS_MAX; i++) {
            q->workers[i].thread = NULL;
            q->workers[i].stream = NULL;
            q->workers[i].slots = NULL;
        }
}

/* The threads are not there any more, nor whoever slept at a condition. */
static void fork_child(tni_engine *e)
{
    for (engine_queue *q = e->queues; q; q = q->next) {
        atomic_store(&q->sleepers, 0u);
        q->waking = 0;
        atomic_store(&q->worker_count, 0u);
        atomic_store(&q->threads, 1u);
        if (q->kind != QUEUE_CALL)
            q->worker_max = 1;
    }
    atomic_store(&e->waiters, 0u);
    atomic_store(&e->inside, 0u);
    e->outside = (tni_engine_loop){0}; /* its threads are not here */
    e->outsiders = 0;
    if (e->step_owner != tni_thread_id())
        e->step_owner = e->step_nested = 0;
    e->threads = 1;
    e->worker_max = 1;
}

void tni_engine_forked(tni_engine *e, bool drained)
{
    tni_device_set_forked(e->devices);
    streams_forget(e);
    if (drained)
        fork_child(e);
    else
        atomic_store(&e->dead, true);
    atomic_store(&e->forked, true);
}

bool tni_engine_inside(void)
{
    return tni_engine_tls.inside || tni_engine_tls.held;
}

/* ---- numbers --------------------------------------------------------------------------------------- */

void tni_engine_stats_get(tni_engine *e, tni_engine_stats *out)
{
    uint64_t signals, inlined = atomic_load(&e->inlined);

    out->done = 0;
    tni_spin_lock(&e->push_lock);
    signals = e->signals;
    for (uint32_t i = 0; i < ERAS; i++) /* what wait_all waits for; e->done follows a moment later */
        out->done += atomic_load(&e->eras[i].done);
    out->pushed = atomic_load(&e->pushed);
    tni_spin_unlock(&e->push_lock);
    out->pushed += inlined - signals;
    out->done += inlined;
    out->done -= out->done < signals ? out->done : signals; /* waits under way count as done */
    out->inlined = inlined;
    out->failed = atomic_load(&e->failed);
    out->skipped = atomic_load(&e->skipped);
    out->over_limit = atomic_load(&e->over_limit);
    out->event_waits = atomic_load(&e->event_waits);
    out->notifications = atomic_load(&e->asked);
    out->queue_peak = atomic_load(&e->queue_peak);
}

uint64_t tni_engine_inline_ns(const tni_engine *e)
{
    return e->type == ENGINE_STEPPED ? 0 : e->inline_ns;
}

uint32_t tni_engine_threads(const tni_engine *e)
{
    return e->threads;
}

bool tni_engine_is_naive(const tni_engine *e)
{
    return e->type == ENGINE_NAIVE;
}

bool tni_engine_on_worker(void)
{
    return tni_engine_tls.depth != 0;
}

bool tni_engine_thread(void)
{
    return tni_engine_tls.worker != NULL;
}

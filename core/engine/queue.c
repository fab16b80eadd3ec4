/*
 * Queues of ready operations and the workers that serve them: one per lane of a device that is used (COMPUTE
 * is first in, first out; the others go by priority), one of the engine for host callbacks.
 *
 * A queue with one worker keeps what that worker made ready itself in a list without a lock. Going to sleep
 * and adding work are ordered: the sleeper counts itself, then looks again; who adds looks for sleepers
 * afterwards. A waker takes the sleeper off the count, so that one sleep costs one signal.
 */
#include "engine/internal.h"

TN_THREAD_LOCAL_FAST engine_tls tni_engine_tls;

static bool queue_has_work(engine_queue *q)
{
    return atomic_load(&q->filled) || !tni_submit_empty(q->engine);
}

/* ---- the priority heap: child in links[0].next as a tni_operation, sibling in next --------------- */

static inline tni_operation *heap_child(tni_operation *op)
{
    return op->links[0].op;
}

static tni_operation *heap_meld(tni_operation *a, tni_operation *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->priority > a->priority || (b->priority == a->priority && b->order < a->order)) {
        tni_operation *t = a;

        a = b;
        b = t;
    }
    b->next = heap_child(a);
    a->links[0].op = b;
    return a;
}

static tni_operation *heap_pop(tni_operation **heap)
{
    tni_operation *top = *heap, *at = top ? heap_child(top) : NULL, *pairs = NULL, *rest = NULL;

    while (at) { /* left to right in pairs, then right to left */
        tni_operation *a = at, *b = a->next;

        at = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = heap_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        tni_operation *next = pairs->next;

        pairs->next = NULL;
        rest = heap_meld(rest, pairs);
        pairs = next;
    }
    *heap = rest;
    return top;
}

/* ---- adding ---------------------------------------------------------------------------------------- */

void tni_queue_wake(engine_queue *q)
{
    if (TN_LIKELY(!atomic_load(&q->sleepers)))
        return;
    tni_mutex_lock(&q->mutex);
    if (atomic_load_explicit(&q->sleepers, memory_order_relaxed)) {
        atomic_fetch_sub(&q->sleepers, 1u);
        q->waking++;
        tni_cond_signal(&q->cond);
    }
    tni_mutex_unlock(&q->mutex);
}

static void queue_filled(engine_queue *q) /* lists locked; unlocks */
{
    atomic_store(&q->filled, true);
    tni_spin_unlock(&q->lock);
    if (q->engine->type != ENGINE_THREADED)
        tni_progress(q->engine);
    else
        tni_queue_wake(q);
}

/* Callbacks may wait for each other: whenever all threads are at work there is to be one more. */
static void calls_grow(engine_queue *q)
{
    if (!atomic_load(&q->sleepers) && atomic_load(&q->worker_count) < q->worker_max) {
        atomic_store(&q->threads, atomic_load(&q->worker_count) + 1);
        (void)tni_queue_start(q); /* the first one is there: without a further one it only takes longer */
    }
}

void tni_queue_push(engine_queue *q, tni_operation *op)
{
    engine_worker *w = tni_engine_tls.worker;

    if (q->single && w && w->queue == q) {
        tni_list_add(&w->local, op);
        return;
    }
    tni_spin_lock(&q->lock);
    if (q->by_priority) {
        op->links[0].op = NULL;
        op->next = NULL;
        q->heap = heap_meld(q->heap, op);
    } else {
        tni_list_add(&q->ready, op);
    }
    queue_filled(q);
    if (q->kind == QUEUE_CALL && q->engine->type == ENGINE_THREADED)
        calls_grow(q);
}

void tni_queue_completed(engine_queue *q, tni_operation *op)
{
    tni_spin_lock(&q->lock);
    tni_list_add(&q->completed, op);
    queue_filled(q);
}

void tni_queue_note(engine_queue *q, engine_note *n)
{
    n->next = NULL;
    tni_spin_lock(&q->lock);
    if (q->note_tail)
        q->note_tail->next = n;
    else
        q->note_head = n;
    q->note_tail = n;
    queue_filled(q);
}

/* ---- taking ---------------------------------------------------------------------------------------- */

static void filled_update(engine_queue *q)
{
    if (!q->ready.head && !q->heap && !q->note_head && !q->completed.head)
        atomic_store_explicit(&q->filled, false, memory_order_relaxed);
}

tni_operation *tni_queue_take(engine_queue *q, engine_worker *w)
{
    tni_operation *op = tni_list_pop(&w->local);

    if (op || !atomic_load_explicit(&q->filled, memory_order_acquire))
        return op;
    tni_spin_lock(&q->lock);
    if (q->heap) {
        op = heap_pop(&q->heap);
    } else if ((op = tni_list_pop(&q->ready)) && q->single) {
        w->local = q->ready;
        q->ready = (engine_list){NULL, NULL};
    }
    filled_update(q);
    tni_spin_unlock(&q->lock);
    return op;
}

bool tni_queue_complete_some(engine_queue *q, engine_worker *w)
{
    engine_note *note;
    tni_operation *op;

    if (!atomic_load_explicit(&q->filled, memory_order_acquire))
        return false;
    tni_spin_lock(&q->lock);
    if ((note = q->note_head) && !(q->note_head = note->next))
        q->note_tail = NULL;
    op = tni_list_pop(&q->completed);
    filled_update(q);
    tni_spin_unlock(&q->lock);
    if (note)
        tni_token_noted(w, note);
    if (op)
        tni_operation_pending_finish(w, op);
    return note || op;
}

/* ---- workers --------------------------------------------------------------------------------------- */

tn_status tni_worker_open(engine_worker *w)
{
    tni_device *d = w->queue->device;
    tn_err err = {0};
    tn_status st;

    if (w->stream || !w->queue->async)
        return TN_OK;
    if (atomic_load(&w->queue->engine->forked))
        return tni_error(TN_E_STATE, "%s:%d cannot be used after fork", d->type, d->index);
    st = d->ops->stream_create(d->handle, w->queue->kind != TNI_LANE_COMPUTE, &w->stream, &err);
    return st ? tni_error_take(st, &err, d->type) : TN_OK;
}

void tni_worker_flush(engine_worker *w)
{
    tni_engine *e = w->queue->engine;
    uint64_t n = w->finished;

    if (TN_UNLIKELY(w->failed | w->skipped | w->event_waits)) {
        atomic_fetch_add_explicit(&e->failed, w->failed, memory_order_relaxed);
        atomic_fetch_add_explicit(&e->skipped, w->skipped, memory_order_relaxed);
        atomic_fetch_add_explicit(&e->event_waits, w->event_waits, memory_order_relaxed);
        w->failed = w->skipped = w->event_waits = 0;
    }
    w->finished = 0;
    if (n)
        tni_count_done(e, w->era, n);
}

static void worker_sleep(engine_queue *q)
{
    tni_engine *e = q->engine;

    tni_mutex_lock(&q->mutex);
    atomic_fetch_add(&q->sleepers, 1u);
    if (queue_has_work(q) || atomic_load(&e->quit)) {
        atomic_fetch_sub(&q->sleepers, 1u);
    } else {
        while (!q->waking && !atomic_load(&e->quit))
            tni_cond_wait(&q->cond, &q->mutex);
        if (q->waking)
            q->waking--;
        else
            atomic_fetch_sub(&q->sleepers, 1u);
    }
    tni_mutex_unlock(&q->mutex);
}

static void worker_idle(engine_queue *q)
{
    uint64_t until = 0;

    if (!atomic_load(&q->filled) && !tni_submit_empty(q->engine)) {
        (void)sched_yield(); /* somebody else is entering */
        return;
    }
    if (TN_UNLIKELY(atomic_load_explicit(&tni_fork_gate, memory_order_relaxed))) {
        worker_sleep(q); /* whoever forks waits for that */
        return;
    }
    for (uint32_t i = 0; !queue_has_work(q) && !atomic_load_explicit(&q->engine->quit, memory_order_relaxed);
         i++) {
        tni_pause();
        if (i % 64)
            continue;
        if (!until) {
            until = tni_clock_ns() + SPIN_NS;
        } else if (tni_clock_ns() > until) {
            worker_sleep(q);
            return;
        }
    }
}

static void worker_main(void *arg)
{
    engine_worker *w = arg;
    engine_queue *q = w->queue;
    tni_engine *e = q->engine;
    tni_operation *op;

    tni_engine_tls.worker = w;
    tni_hold_pass(true);
    for (;;) {
        bool worked = false;

        while (tni_queue_complete_some(q, w))
            worked = true;
        if (tni_submit_drain(e, DRAIN_BATCH))
            worked = true;
        for (uint32_t n = 0; n < RUN_BATCH && (op = tni_queue_take(q, w)); n++) {
            worked = true;
            tni_operation_dispatch(w, op);
            if (q->kind != TNI_LANE_COMPUTE || atomic_load_explicit(&e->waiters, memory_order_relaxed))
                tni_worker_flush(w);
        }
        tni_worker_flush(w);
        if (worked)
            continue;
        if (atomic_load(&e->quit))
            break;
        tni_token_ask_newest(w);
        worker_idle(q);
    }
    tni_engine_tls.worker = NULL;
}

static tn_status worker_start(engine_queue *q, uint32_t i)
{
    static const char *const kinds[] = {"", "in", "out", "comm", "call"};
    engine_worker *w = &q->workers[i];
    char name[48];
    tn_status st;

    w->queue = q;
    (void)snprintf(name, sizeof name, "tn-%.6s%d%s", q->device->type, q->device->index, kinds[q->kind]);
    if (!w->mag) {
        if (!(w->mag = tni_operation_mag()))
            return TN_E_NOMEM;
        atomic_fetch_add(&q->engine->worker_mags, 1u);
    }
    if ((st = tni_thread_create(name, worker_main, w, &w->thread)))
        return st;
    atomic_store(&q->worker_count, i + 1);
    return TN_OK;
}

static inline bool queue_started(engine_queue *q)
{
    return atomic_load_explicit(&q->worker_count, memory_order_acquire) >=
           atomic_load_explicit(&q->threads, memory_order_relaxed);
}

tn_status tni_queue_start(engine_queue *q)
{
    uint32_t count;
    tn_status st = TN_OK;

    if (TN_LIKELY(queue_started(q)))
        return TN_OK;
    if (q->engine->type != ENGINE_THREADED) {
        atomic_store(&q->worker_count, atomic_load(&q->threads));
        return TN_OK;
    }
    tni_mutex_lock(&q->engine->start_mutex);
    while (!st && (count = atomic_load(&q->worker_count)) < atomic_load(&q->threads) && count < q->worker_max)
        st = worker_start(q, count);
    tni_mutex_unlock(&q->engine->start_mutex);
    return st && !atomic_load(&q->worker_count) ? st : TN_OK; /* fewer workers than asked for will do */
}

/* ---- creation -------------------------------------------------------------------------------------- */

static tn_status queue_create(tni_engine *e, tni_device *d, int kind, engine_queue **out)
{
    engine_queue *q = tni_alloc_aligned(LINE_BYTES, sizeof *q);
    tn_status st;

    if (!q)
        return TN_E_NOMEM;
    memset(q, 0, sizeof *q);
    q->engine = e;
    q->device = d;
    q->kind = kind;
    q->async = !d->host;
    q->worker_max = kind == TNI_LANE_COMPUTE && d->host ? e->worker_max : 1;
    atomic_init(&q->threads, q->worker_max);
    if (kind == QUEUE_CALL)
        q->worker_max = CALL_THREADS_MAX;
    q->single = q->worker_max == 1 && kind == TNI_LANE_COMPUTE && e->type == ENGINE_THREADED;
    q->by_priority = kind != TNI_LANE_COMPUTE && kind != QUEUE_CALL && e->type == ENGINE_THREADED;
    if ((st = tni_mutex_init(&q->mutex)) || (st = tni_cond_init(&q->cond))) {
        tni_free_aligned(q);
        return st;
    }
    q->workers[0].queue = q; /* where there are no threads, whoever runs something is this one */
    q->index = e->queue_count++;
    q->next = e->queues;
    e->queues = q;
    *out = q;
    return TN_OK;
}

static tn_status queue_make(tni_engine *e, tni_device *d, int kind, engine_queue **slot)
{
    engine_queue *q;
    tn_status st = TN_OK;

    tni_mutex_lock(&e->start_mutex);
    if (!*slot && !(st = queue_create(e, d, kind, &q)))
        __atomic_store_n(slot, q, __ATOMIC_RELEASE);
    tni_mutex_unlock(&e->start_mutex);
    return st;
}

static tn_status device_make(tni_engine *e, tni_device *d, engine_device **out)
{
    engine_device *made = tni_zalloc(sizeof *made);

    if (!made)
        return TN_E_NOMEM;
    tni_mutex_lock(&e->start_mutex);
    if (!d->engine_data) {
        __atomic_store_n(&d->engine_data, made, __ATOMIC_RELEASE);
        made = NULL;
    }
    tni_mutex_unlock(&e->start_mutex);
    tni_free(made);
    *out = d->engine_data;
    return TN_OK;
}

static uint32_t lane_of(const tni_device *d, const tni_task *task)
{
    if (TN_LIKELY(!task->lane && !task->priority))
        return TNI_LANE_COMPUTE;
    if (!task->lane)
        return task->flags & TNI_TASK_PARALLEL ? TNI_LANE_COMPUTE : TNI_LANE_COMM;
    return d->host && task->lane == TNI_LANE_OUT ? TNI_LANE_IN : task->lane;
}

/* An asynchronous host callback ends on a worker of the host: that is made, too. */
tn_status tni_queue_for(tni_engine *e, tni_device *d, const tni_task *task, engine_queue **out)
{
    static const tni_task plain = {.flags = 0};
    engine_device *data = __atomic_load_n(&d->engine_data, __ATOMIC_ACQUIRE);
    const bool call = task->flags & TNI_TASK_HOST_CALL;
    const uint32_t lane = lane_of(d, task);
    engine_queue **slot,
        *there = TN_LIKELY(data && !call) ? __atomic_load_n(&data->lanes[lane], __ATOMIC_ACQUIRE) : NULL;
    tn_status st;

    if (TN_LIKELY(there && queue_started(there))) {
        *out = there;
        return TN_OK;
    }
    if (TN_UNLIKELY(call && (task->flags & TNI_TASK_ASYNC)) && (st = tni_queue_for(e, e->host, &plain, out)))
        return st;
    if (TN_UNLIKELY(!data) && (st = device_make(e, d, &data)))
        return st;
    slot = call ? &e->calls : &data->lanes[lane];
    if (TN_UNLIKELY(!__atomic_load_n(slot, __ATOMIC_ACQUIRE)) &&
        (st = queue_make(e, call ? e->host : d, call ? QUEUE_CALL : (int)lane, slot)))
        return st;
    *out = *slot;
    return tni_queue_start(*slot);
}

void tni_queue_destroy(engine_queue *q)
{
    tni_tokens_free(q);
    for (uint32_t i = 0; i < WORKERS_MAX; i++) {
        tni_free(q->workers[i].followed);
        tni_slots_free(q->workers[i].slots);
        if (q->workers[i].stream)
            q->device->ops->stream_destroy(q->workers[i].stream);
        if (q->workers[i].mag)
            tni_free_aligned(q->workers[i].mag);
    }
    tni_cond_fini(&q->cond);
    tni_mutex_fini(&q->mutex);
    tni_free_aligned(q);
}

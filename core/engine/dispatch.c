/*
 * From ready to finished: run an operation, or skip it for the failure of an input; give its variables free;
 * call `done`. Errors stick to what was written and travel from there, so that they reach exactly the
 * dependants.
 */
#include "engine/internal.h"

void tni_operation_ready(tni_operation *op)
{
    engine_worker *w = tni_engine_tls.worker;

    if (TN_LIKELY(w && w->queue == op->queue && op->queue->single && !(op->flags & OP_SIGNAL)))
        tni_list_add(&w->local, op);
    else if (TN_UNLIKELY(op->flags & OP_SIGNAL))
        tni_signal(op);
    else if (TN_UNLIKELY(op->flags & TNI_TASK_SHORT) && tni_engine_tls.here)
        tni_list_add(tni_engine_tls.here, op);
    else
        tni_queue_push(op->queue, op);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Between two events of the profiler, if it is on. */
static tn_status op_body(tni_operation *op, tni_run *run)
{
    const char *name;
    tn_status st;

    if (TN_LIKELY(!atomic_load_explicit(&tni_trace_on, memory_order_relaxed)))
        return op->run(op_payload(op), run);
    name = op->name ? op->name : "operation";
    tni_trace_event('B', "engine", name, 0);
    st = op->run(op_payload(op), run);
    tni_trace_event('E', "engine", name, 0);
    return st;
}

static void count_done(engine_worker *w, uint8_t era)
{
    if (w->era != era)
        tni_worker_flush(w);
    w->era = era;
    w->finished++;
}

/* It was marked as done. */
static void op_close(engine_worker *w, tni_operation *op, tn_status status)
{
    tni_engine *e = op->queue->engine;
    uint8_t era = op->era;
    bool stack = op->flags & OP_STACK;

    if (op->done) {
        tni_engine_tls.depth++;
        tni_engine_tls.inside++;
        op->done(op_payload(op), e, status);
        tni_engine_tls.depth--;
        tni_engine_tls.inside--;
    }
    tni_operation_recycle(e, op);
    if (!stack)
        count_done(w, era);
}

static void op_end(engine_worker *w, tni_operation *op, tn_status status)
{
    tni_fault_hold_ends(op->queue->engine);
    tni_operation_mark(op, PHASE_DONE);
    op_close(w, op, status);
}

/* It ran without a failure, and nothing of it is under way. */
static inline void op_finish_plain(engine_worker *w, tni_operation *op)
{
    tni_operation_mark(op, TN_LIKELY(!op->async) ? PHASE_DONE : PHASE_PUSHED | PHASE_LEFT);
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!op_released(op, i))
            tni_var_release_quick(op, i);
    if (TN_UNLIKELY(op->async != NULL)) {
        tni_operation_let_go(w, op, TN_OK, NULL);
        return;
    }
    tni_fault_hold_ends(op->queue->engine);
    op_close(w, op, TN_OK);
}

void tni_operation_finish(engine_worker *w, tni_operation *op, tn_status status, tni_poison *poison)
{
    tni_operation_mark(op, PHASE_PUSHED | PHASE_LEFT);
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!op_released(op, i))
            tni_var_release(op, i, poison, NULL);
    tni_operation_let_go(w, op, status, poison);
}

void tni_operation_let_go(engine_worker *w, tni_operation *op, tn_status status, tni_poison *poison)
{
    op_async *a = op->async;

    if (TN_UNLIKELY(a != NULL)) {
        if (poison && !a->poison)
            a->poison = tni_poison_retain(poison);
        tni_poison_release(poison);
        if (atomic_fetch_sub(&a->tokens, 1u) != 1u)
            return;
        if (a->poison)
            status = a->poison->err.code;
    } else if (TN_UNLIKELY(poison != NULL)) {
        tni_poison_release(poison);
    }
    op_end(w, op, status);
}

static tni_poison *poison_of_thread(tni_operation *op, tn_status status)
{
    tni_poison *p;
    tn_err err;

    tni_error_get(&err);
    if (err.code != status)
        err.message[0] = '\0';
    p = tni_poison_create(op->queue->engine, op->order, op->name, op->origin, status, &err);
    tni_error_clear();
    return p;
}

/* ---- before the run ------------------------------------------------------------------------------------ */

static void op_skip(engine_worker *w, tni_operation *op, tni_poison *poison)
{
    w->skipped++;
    tni_operation_finish(w, op, poison->err.code, poison);
}

static bool device_usable(engine_worker *w, tni_operation *op)
{
    tni_device *d = op->queue->device;
    tn_status st;

    if (atomic_load(&d->failed))
        st =
            tni_error(TN_E_DEVICE, "device %s:%d failed earlier and refuses further work", d->type, d->index);
    else
        st = tni_worker_open(w);
    if (!st || (op->flags & TNI_TASK_ALWAYS))
        return true;
    w->failed++;
    tni_operation_finish(w, op, st, poison_of_thread(op, st));
    return false;
}

/* The rare things: cancelled, tokens, poison, streams.
 * False: the operation was dealt with, or will be later. */
static bool op_prepare(engine_worker *w, tni_operation *op, tn_status *skipped)
{
    tni_engine *e = op->queue->engine;
    tni_poison *poison = NULL;

    if (atomic_load_explicit(&op->check, memory_order_relaxed) && !tni_token_gather(w, op, &poison))
        return false;
    if (atomic_load_explicit(&e->stopping, memory_order_relaxed)) {
        tni_poison_release(poison);
        op_skip(w, op, tni_poison_retain(e->cancelled));
        return false;
    }
    if (poison && !(op->flags & TNI_TASK_ALWAYS)) {
        op_skip(w, op, poison);
        return false;
    }
    if (poison)
        *skipped = poison->err.code;
    tni_poison_release(poison);
    if (!op->queue->async)
        return true;
    if (!device_usable(w, op))
        return false;
    if (!*skipped && (atomic_load(&op->queue->device->failed) || !w->stream))
        *skipped = TN_E_DEVICE;
    return true;
}

/* ---- after the run --------------------------------------------------------------------------------- */

static void op_failed(engine_worker *w, tni_operation *op, tn_status status)
{
    tni_poison *poison = poison_of_thread(op, status);
    tni_device *d = op->queue->device;
    tn_err err;

    if (op->queue->async && w->stream) /* the stream may still touch what we give free */
        (void)d->ops->stream_wait(w->stream, &err);
    w->failed++;
    tni_operation_finish(w, op, status, poison);
}

static void op_issued(engine_worker *w, tni_operation *op)
{
    tni_device *d = op->queue->device;
    tn_err err = {0};

    if (op->queue->engine->type != ENGINE_NAIVE && w->stream) {
        tni_token_issue(w, op);
        return;
    }
    if (w->stream && d->ops->stream_wait(w->stream, &err)) {
        atomic_store(&d->failed, 1);
        (void)tni_error_take(TN_E_DEVICE, &err, d->type);
        op_failed(w, op, TN_E_DEVICE);
        return;
    }
    tni_operation_finish(w, op, TN_OK, NULL);
}

static void op_returned(engine_worker *w, tni_operation *op, tn_status status)
{
    if (status == TN_PENDING && (op->flags & TNI_TASK_ASYNC)) {
        atomic_fetch_add(&op->queue->engine->outstanding, 1u);
        if (atomic_exchange(&op->pend, 1u) == 2u)
            tni_operation_pending_finish(w, op);
        return;
    }
    if (status == TN_PENDING)
        status = tni_error(TN_E_INTERNAL, "returned TN_PENDING, but was not pushed as asynchronous");
    if (status)
        op_failed(w, op, status);
    else
        op_issued(w, op);
}

/* Waiting and pushing are allowed. */
static tn_status call_body(tni_operation *op, tni_run *run)
{
    engine_tls *tls = &tni_engine_tls;
    const tni_engine *outer = tls->calls;
    tn_status st;

    tls->calls = run->engine;
    tls->inside++;
    st = op_body(op, run);
    tls->inside--;
    tls->calls = outer;
    return st;
}

static tn_status worker_body(tni_operation *op, tni_run *run)
{
    engine_tls *tls = &tni_engine_tls;
    tn_status st;

    tls->depth++;
    tls->inside++;
    st = op_body(op, run);
    tls->depth--;
    tls->inside--;
    return st;
}

void tni_operation_dispatch(engine_worker *w, tni_operation *op)
{
    engine_queue *q = op->queue;
    tni_run run;
    tn_status st;

    run.engine = q->engine; /* member by member: compilers clear a struct by a slow loop */
    run.op = op;
    run.device = q->device;
    run.threads = q->engine->threads;
    run.worker = w;
    run.skipped = TN_OK;
    if (TN_UNLIKELY(atomic_load_explicit(&op->check, memory_order_relaxed) || q->async ||
                    atomic_load_explicit(&q->engine->stopping, memory_order_relaxed)) &&
        !op_prepare(w, op, &run.skipped))
        return;
    run.stream = w->stream;
    run.slots = &w->slots;
    if (q->kind != TNI_LANE_COMPUTE)
        run.threads = 1;
    st = TN_UNLIKELY(q->kind == QUEUE_CALL) ? call_body(op, &run) : worker_body(op, &run);
    if (TN_LIKELY(st == TN_OK && !q->async))
        op_finish_plain(w, op);
    else
        op_returned(w, op, st);
}

tn_status tni_operation_run_inline(tni_engine *e, tni_operation *op)
{
    tni_run run = {.engine = e, .op = op, .device = op->queue->device, .threads = 1};
    tni_poison *poison = NULL;
    tn_status st = worker_body(op, &run);

    if (TN_UNLIKELY(st == TN_PENDING))
        st = tni_error(TN_E_INTERNAL, "returned TN_PENDING, but was not pushed as asynchronous");
    if (TN_UNLIKELY(st)) {
        op->order = tni_order_inline(e, op->order); /* `order` was the pushes before it */
        poison = poison_of_thread(op, st);
        atomic_fetch_add_explicit(&e->failed, 1u, memory_order_relaxed);
    }
    tni_operation_finish(NULL, op, st, poison);
    return TN_OK;
}

/* ---- completion and release from outside ----------------------------------------------------------- */

void tni_operation_pending_finish(engine_worker *w, tni_operation *op)
{
    tni_poison *poison = op->poison;

    op->poison = NULL;
    atomic_fetch_sub(&op->queue->engine->outstanding, 1u);
    if (poison)
        w->failed++;
    tni_operation_finish(w, op, poison ? poison->err.code : TN_OK, poison);
}

/* The thread's error stays what it was, whatever runs here. */
void tni_operation_here(tni_engine *e, tni_operation *ended)
{
    engine_list list = {NULL, NULL}, *outer = tni_engine_tls.here;
    engine_worker w;
    tn_err before;

    tni_error_get(&before);
    memset(&w, 0, sizeof w);
    if (!outer)
        tni_engine_tls.here = &list;
    if (ended) {
        w.queue = ended->queue;
        tni_operation_pending_finish(&w, ended);
    } else {
        (void)tni_submit_drain(e, DRAIN_BATCH);
    }
    for (tni_operation *op; !outer && (op = tni_list_pop(&list));) {
        w.queue = op->queue;
        tni_operation_dispatch(&w, op);
    }
    tni_engine_tls.here = outer;
    if (w.queue)
        tni_worker_flush(&w);
    if (TN_UNLIKELY(strcmp(before.message, tni_error_message())))
        tni_error_set(&before);
}

/* The threads of host callbacks may all wait for this very completion: a worker of the host ends it. */
void tni_engine_complete(tni_operation *op, tn_status status, const tn_err *err)
{
    tni_engine *e = op->queue->engine;
    engine_queue *q = op->queue;

    tni_hold_pass(true);
    atomic_fetch_add(&e->inside, 1u); /* the operation, once it is queued, no longer keeps the engine */
    if (q->kind == QUEUE_CALL)
        q = ((engine_device *)e->host->engine_data)->lanes[TNI_LANE_COMPUTE];
    if (status)
        op->poison = tni_poison_create(e, op->order, op->name, op->origin, status, err);
    if (op->flags & TNI_TASK_SHORT && e->type == ENGINE_THREADED) {
        tni_hold();
        if (atomic_exchange(&op->pend, 2u) == 1u)
            tni_operation_here(e, op);
        tni_unhold();
    } else if (atomic_exchange(&op->pend, 2u) == 1u) {
        tni_queue_completed(q, op);
    }
    atomic_fetch_sub(&e->inside, 1u);
    tni_hold_pass(false);
}

void tni_engine_release_at(tni_run *run, uint32_t at)
{
    tni_operation *op = run->op;
    uint32_t i;

    if (at >= op->named || !op_left(op, i = op_place(op, at)))
        return; /* more often than it is named */
    op_left_add(op, i, -1);
    if (op_left(op, i))
        return;
    op->released++;
    if (!run->stream) {
        tni_var_release(op, i, NULL, NULL);
    } else if (!tni_token_issue_one(run->worker, op, i)) { /* the end of the operation gives it free */
        op->released--;
        op_left_add(op, i, 1);
    }
}

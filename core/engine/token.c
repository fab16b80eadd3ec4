/*
 * Completions of what was issued to streams.
 *
 * When an operation's run returned on a stream, an event is recorded behind it: its token. The token is left
 * at each variable (follow.c) and the variables are given free at once, so that the next operations become
 * ready. The tokens of a stream are reached in their order. A notification of one tells of all before it,
 * too; so one is asked for when somebody waits for a token, else every few operations, and by a worker that
 * has nothing else to do. A token retires on the worker of its stream, after the driver's callback, which
 * only leaves a note, and after the tokens whose data its operation relied on; then `done` is called. If the
 * stream failed, what the token still covers is poisoned, and so is all that was issued behind it on the
 * strength of that data.
 *
 * A token keeps its event when it is used again: an event may be recorded anew once nobody can wait for its
 * point.
 */
#include "engine/internal.h"

#define LOOK_NS 20000u /* an event that tells nobody is looked at so often */

/* ---- life ---------------------------------------------------------------------------------------------- */

engine_token *tni_token_retain(engine_token *t)
{
    tni_ref_retain(&t->refs);
    return t;
}

void tni_token_release(engine_token *t)
{
    engine_queue *q;
    bool kept;

    if (!t || !tni_ref_release(&t->refs))
        return;
    q = t->queue;
    tni_poison_release(t->poison);
    tni_free(t->err);
    tni_free(t->notified_err);
    tni_spin_lock(&q->lock);
    if ((kept = q->free_count < TOKENS_KEPT)) {
        t->next = q->free_tokens;
        q->free_tokens = t;
        q->free_count++;
    }
    tni_spin_unlock(&q->lock);
    if (kept)
        return;
    tni_device_event_give(q->device, t->event);
    tni_free(t);
}

void tni_tokens_free(engine_queue *q)
{
    const bool child = atomic_load(&q->engine->forked);

    for (engine_token *t = q->free_tokens, *next; t; t = next) {
        next = t->next;
        if (!child)
            tni_device_event_give(q->device, t->event);
        tni_free(t);
    }
}

static engine_token *token_reuse(engine_queue *q)
{
    engine_token *t;

    tni_spin_lock(&q->lock);
    if ((t = q->free_tokens)) {
        q->free_tokens = t->next;
        q->free_count--;
    }
    tni_spin_unlock(&q->lock);
    return t;
}

static void token_resumed(engine_park *park) /* what a token waited for has retired */
{
    engine_token *t = (engine_token *)(void *)((char *)park - offsetof(engine_token, park));

    tni_queue_note(t->queue, &t->resumed);
}

static tn_status token_create(engine_worker *w, tni_operation *op, uint32_t only, engine_token **out)
{
    engine_token *t = token_reuse(w->queue);
    tn_event *event = t ? t->event : NULL;
    tn_status st = TN_OK;

    if (!t && !(t = tni_zalloc(sizeof *t)))
        return TN_E_NOMEM;
    if (!event && (st = tni_device_event_take(w->queue->device, &event))) {
        tni_free(t);
        return st;
    }
    memset(t, 0, sizeof *t);
    tni_ref_init(&t->refs);
    t->queue = w->queue;
    t->stream = w->stream;
    t->event = event;
    t->op = op;
    t->only = only;
    t->park.resume = token_resumed;
    t->resumed.token = t->notified.token = t;
    if ((st = tni_operation_async(op))) {
        tni_token_release(t);
        return st;
    }
    *out = t;
    return TN_OK;
}

void tni_token_host_wait(engine_token *t)
{
    tni_device *d = t->queue->device;
    tn_err err;

    tni_error_clear();
    if (d->ops->stream_wait(t->stream, &err))
        atomic_store(&d->failed, 1);
}

bool tni_token_retired(engine_token *t)
{
    bool retired;

    tni_spin_lock(&t->lock);
    retired = t->retired;
    tni_spin_unlock(&t->lock);
    return retired;
}

/* ---- notifications ------------------------------------------------------------------------------------- */

/* [driver], or whoever asked: from here on the worker has it. */
static void token_notified(void *arg, tn_status status, const tn_err *err)
{
    engine_token *t = arg;
    tni_engine *e = t->queue->engine;

    tni_hold_pass(true);
    atomic_fetch_add(&e->inside, 1u); /* the token, once the worker has it, no longer keeps the engine */
    t->notified_status = status;
    if (status && err && (t->notified_err = tni_alloc(sizeof *t->notified_err)))
        *t->notified_err = *err;
    tni_queue_note(t->queue, &t->notified);
    atomic_fetch_sub(&e->inside, 1u);
    tni_hold_pass(false);
}

/* True if the caller is the first one to ask for `t`. */
static bool ask_begin(engine_token *t)
{
    engine_worker *w = &t->queue->workers[0];
    tni_engine *e = t->queue->engine;
    uint64_t asked = atomic_load(&w->asked);

    if (atomic_exchange(&t->asked, true))
        return false;
    (void)tni_token_retain(t);
    while (asked < t->number && !atomic_compare_exchange_weak(&w->asked, &asked, t->number))
        ;
    atomic_fetch_add(&w->watching, 1u);
    atomic_fetch_add(&e->watching, 1u);
    return true;
}

/* On the host, for a device that cannot tell. Its worker may be recording work on the stream, which nobody
 * may wait for meanwhile: other threads look at the event alone. */
static tn_status reached_wait(const engine_token *t, tn_err *err)
{
    const tn_device_ops *ops = t->queue->device->ops;
    const bool own = tni_engine_tls.worker == &t->queue->workers[0];
    const tn_status st = own ? ops->stream_wait(t->stream, err) : TN_OK;
    tn_status query;

    while ((query = ops->event_query(t->event, err)) == TN_PENDING && !own)
        tni_sleep_ns(LOOK_NS);
    return query == TN_PENDING ? st : query;
}

static void ask_device(engine_token *t)
{
    tn_err err = {0};

    atomic_fetch_add_explicit(&t->queue->engine->asked, 1u, memory_order_relaxed);
    if (!t->queue->device->ops->event_notify(t->event, token_notified, t, &err))
        return;
    err = (tn_err){0};
    token_notified(t, reached_wait(t, &err), &err);
}

static void token_ask(engine_token *t)
{
    if (ask_begin(t))
        ask_device(t);
}

/* The same for what is reached most likely, since a stream that waited for it has come further. */
static void token_look(engine_token *t)
{
    tn_err err = {0};
    tn_status st;

    if (!ask_begin(t))
        return;
    if ((st = t->queue->device->ops->event_query(t->event, &err)) == TN_PENDING)
        ask_device(t);
    else
        token_notified(t, st, &err);
}

void tni_token_ask_newest(engine_worker *w)
{
    if (w->open_tail && !atomic_load(&w->watching))
        token_ask(w->open_tail);
}

static bool token_park(engine_token *t, engine_park *park)
{
    bool parked;

    tni_spin_lock(&t->lock);
    if ((parked = !t->retired)) {
        park->next = t->waiters;
        t->waiters = park;
    }
    tni_spin_unlock(&t->lock);
    return parked;
}

/* The caller holds a reference: once parked, what waits may be resumed and gone. */
bool tni_token_park(engine_token *t, engine_park *park)
{
    if (!token_park(t, park))
        return false;
    token_ask(t);
    return true;
}

bool tni_token_unpark(engine_token *t, engine_park *park)
{
    bool found = false;

    tni_spin_lock(&t->lock);
    for (engine_park **at = &t->waiters; *at && !found; at = found ? at : &(*at)->next)
        if ((found = *at == park))
            *at = park->next;
    tni_spin_unlock(&t->lock);
    return found;
}

/* ---- issue ----------------------------------------------------------------------------------------- */

static tn_status token_record(engine_worker *w, tni_operation *op, uint32_t only, engine_token **out)
{
    tni_device *d = w->queue->device;
    engine_token *t = NULL;
    tn_err err = {0};
    tn_status st;

    if ((st = token_create(w, op, only, &t)))
        return st;
    if ((st = d->ops->event_record(t->event, w->stream, &err))) {
        tni_token_release(t);
        return tni_error_take(st, &err, d->type);
    }
    t->number = ++w->number;
    if (w->open_tail)
        w->open_tail->next = t;
    else
        w->open_head = t;
    w->open_tail = t;
    atomic_fetch_add(&op->async->tokens, 1u);
    atomic_fetch_add(&op->queue->engine->issued, 1u);
    w->issued++;
    *out = t;
    return TN_OK;
}

/* After its variables were given free: `t` may be gone otherwise. */
static void token_recorded(engine_worker *w, engine_token *t)
{
    if (t->number - atomic_load_explicit(&w->asked, memory_order_relaxed) >= WATCH_EVERY)
        token_ask(t);
}

/* No token to be had: the host waits for the stream, and what it did is complete or failed. */
static void issue_waited(engine_worker *w, tni_operation *op)
{
    tni_device *d = w->queue->device;
    tni_poison *poison = NULL;
    tn_err err = {0};

    tni_error_clear();
    if (d->ops->stream_wait(w->stream, &err)) {
        atomic_store(&d->failed, 1);
        w->failed++;
        poison = tni_poison_create(op->queue->engine, op->order, op->name, op->origin, TN_E_DEVICE, &err);
    }
    tni_operation_finish(w, op, poison ? TN_E_DEVICE : TN_OK, poison);
}

void tni_token_issue(engine_worker *w, tni_operation *op)
{
    engine_token *t;

    if (token_record(w, op, UINT32_MAX, &t)) {
        issue_waited(w, op);
        return;
    }
    atomic_fetch_or(&op->phase, PHASE_ISSUED);
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!op_released(op, i))
            tni_var_release(op, i, NULL, t);
    token_recorded(w, t); /* this worker retires it, not before it comes back from here */
    tni_operation_let_go(w, op, TN_OK, NULL);
}

/* Without a token the variable may only be given free when the stream is there; false: it failed. */
static bool release_waited(engine_worker *w, tni_operation *op, uint32_t i)
{
    tni_device *d = w->queue->device;
    tn_err err = {0};

    tni_error_clear();
    if (d->ops->stream_wait(w->stream, &err)) {
        atomic_store(&d->failed, 1);
        return false;
    }
    tni_var_release(op, i, NULL, NULL);
    return true;
}

bool tni_token_issue_one(engine_worker *w, tni_operation *op, uint32_t i)
{
    engine_token *t;

    if (w->queue->engine->type == ENGINE_NAIVE || token_record(w, op, i, &t))
        return release_waited(w, op, i);
    tni_var_release(op, i, NULL, t);
    token_recorded(w, t);
    return true;
}

/* ---- retirement ------------------------------------------------------------------------------------ */

/* The first token not retired that `op` relied on.
 * NULL: all have, and a->inherited is their oldest failure. */
static engine_token *deps_open(op_async *a)
{
    for (; a->dep_closed < a->dep_count; a->dep_closed++) {
        engine_token *dep = a->deps[a->dep_closed];

        if (!tni_token_retired(dep))
            return dep;
        if (dep->poison && (!a->inherited || dep->poison->order < a->inherited->order)) {
            tni_poison_release(a->inherited);
            a->inherited = tni_poison_retain(dep->poison);
        }
        tni_token_release(dep);
    }
    return NULL;
}

static tni_poison *token_poison(engine_token *t, tni_poison *inherited)
{
    tni_operation *op = t->op;
    tni_device *d = t->queue->device;
    tn_err err = {0};

    if (t->status)
        atomic_store(&d->failed, 1);
    if (inherited)
        return tni_poison_retain(inherited);
    if (!t->status)
        return NULL;
    tni_err_format(&err, TN_E_DEVICE, "device %s:%d failed: %s", d->type, d->index,
                   t->err && t->err->message[0] ? t->err->message : tni_status_name(t->status));
    if (t->err)
        err.native = t->err->native;
    return tni_poison_create(op->queue->engine, op->order, op->name, op->origin, TN_E_DEVICE, &err);
}

static void token_close(engine_token *t, tni_poison *poison)
{
    engine_park *waiters;

    tni_spin_lock(&t->lock);
    t->poison = poison ? tni_poison_retain(poison) : NULL;
    t->retired = true;
    waiters = t->waiters;
    t->waiters = NULL;
    tni_spin_unlock(&t->lock);
    while (waiters) {
        engine_park *next = waiters->next;

        waiters->resume(waiters);
        waiters = next;
    }
}

static void token_retire(engine_worker *w, engine_token *t)
{
    tni_operation *op = t->op;
    tni_engine *e = op->queue->engine;
    tni_poison *poison;
    engine_token *dep;
    bool parked;

    while ((dep = deps_open(op->async))) {
        (void)tni_token_retain(dep); /* once parked, `t` may be resumed, and gone, before the look */
        if ((parked = token_park(dep, &t->park)))
            token_look(dep);
        tni_token_release(dep);
        if (parked)
            return;
    }
    poison = token_poison(t, op->async->inherited);
    if (t->only == UINT32_MAX)
        tni_operation_mark(op, PHASE_PUSHED | PHASE_LEFT);
    if (t->only != UINT32_MAX)
        tni_token_detach(op->vars[t->only], t, op_is_write(op, t->only) ? poison : NULL);
    for (uint32_t i = 0; t->only == UINT32_MAX && i < op->var_count; i++)
        if (!op_released(op, i))
            tni_token_detach(op->vars[i], t, op_is_write(op, i) ? poison : NULL);
    token_close(t, poison);
    atomic_fetch_sub(&e->issued, 1u);
    w->issued--;
    tni_token_release(t);
    w->failed += poison != NULL;
    tni_operation_let_go(w, op, TN_OK, poison);
}

/* What the driver said of `t` goes for all before it if it is good; else each of them is asked. */
static void stream_reached(engine_worker *w, engine_token *t)
{
    while (w->open_head && w->open_head->number <= t->number) {
        engine_token *at = w->open_head;
        tn_err err = {0};

        if (!(w->open_head = at->next))
            w->open_tail = NULL;
        if (at == t) {
            at->status = t->notified_status;
            at->err = t->notified_err;
            t->notified_err = NULL;
        } else if (t->notified_status) {
            at->status = w->queue->device->ops->event_query(at->event, &err);
            if (at->status == TN_PENDING) {
                at->status = t->notified_status;
                err = t->notified_err ? *t->notified_err : err;
            }
            if (at->status && (at->err = tni_alloc(sizeof *at->err)))
                *at->err = err;
        }
        token_retire(w, at);
    }
}

void tni_token_noted(engine_worker *w, engine_note *n)
{
    engine_token *t = n->token;
    tni_engine *e = t->queue->engine;

    if (n == &t->resumed) {
        token_retire(w, t);
        return;
    }
    stream_reached(w, t);
    tni_token_release(t);
    atomic_fetch_sub(&w->watching, 1u);
    atomic_fetch_sub(&e->watching, 1u);
}

/*
 * Completions of what was issued to streams.
 *
 * When an operation's run returned on a stream, an event is recorded behind it: its token. The token is left
 * at each variable (the last write, and the reads after it) and the variables are given free at once, so that
 * the next operations become ready. What comes next looks at the tokens: on a stream of the same plugin it
 * tells its stream to wait, everything else is parked until the token retires. A token retires on a worker of
 * its queue, after the driver's callback, which only marks and enqueues it; then `done` is called. If the
 * stream failed, what the token still covers is poisoned, and so is all that was issued behind it on the
 * strength of that data (its dependants' tokens wait for it and take its poison).
 */
#include "engine/internal.h"

#define SET_FIRST 4u

/* ---- tokens -----------------------------------------------------------------------------------------------
 */

void tni_token_release(engine_token *t)
{
    if (!t || !tni_ref_release(&t->refs))
        return;
    tni_device_event_give(t->queue->device, t->event);
    tni_poison_release(t->poison);
    tni_free(t->err);
    tni_free(t);
}

static engine_token *token_retain(engine_token *t)
{
    tni_ref_retain(&t->refs);
    return t;
}

static void token_requeue(engine_park *park) /* a token that waited for another one */
{
    engine_token *t = (engine_token *)(void *)((char *)park - offsetof(engine_token, park));

    tni_queue_token(t->queue, t);
}

static tn_status token_create(engine_worker *w, tni_op *op, uint32_t only, engine_token **out)
{
    engine_token *t = tni_zalloc(sizeof *t);
    tn_status st;

    if (!t)
        return TN_E_NOMEM;
    tni_ref_init(&t->refs);
    t->queue = w->queue;
    t->stream = w->stream;
    t->op = op;
    t->only = only;
    t->park.resume = token_requeue;
    if ((st = tni_device_event_take(w->queue->device, &t->event)) || (st = tni_op_async(op))) {
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

/* Something that waits for `t`; false: it has retired. */
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

static bool token_retired(engine_token *t)
{
    bool retired;

    tni_spin_lock(&t->lock);
    retired = t->retired;
    tni_spin_unlock(&t->lock);
    return retired;
}

/* ---- tokens at variables --------------------------------------------------------------------------- */

void tni_token_set_free(engine_token_set *s)
{
    for (uint32_t i = 0; s && i < s->count; i++)
        tni_token_release(s->items[i]);
    tni_free(s);
}

/* One token per stream is enough: later ones imply it. */
static bool set_add(tni_var *v, engine_token *t)
{
    engine_token_set *s = v->read_tokens, *grown;
    uint32_t capacity = s ? s->capacity : 0;

    for (uint32_t i = 0; s && i < s->count; i++)
        if (s->items[i]->stream == t->stream) {
            tni_token_release(s->items[i]);
            s->items[i] = token_retain(t);
            return true;
        }
    if (!s || s->count == capacity) {
        capacity = capacity ? capacity * 2 : SET_FIRST;
        if (!(grown = tni_realloc(s, sizeof *s + capacity * sizeof(engine_token *))))
            return false;
        if (!s)
            grown->count = 0;
        grown->capacity = capacity;
        v->read_tokens = s = grown;
    }
    s->items[s->count++] = token_retain(t);
    return true;
}

bool tni_token_attach(tni_var *v, engine_token *t, bool write)
{
    if (!write)
        return set_add(v, t);
    if (v->write_token)
        tni_token_release(v->write_token);
    tni_token_set_free(v->read_tokens);
    v->read_tokens = NULL;
    v->write_token = token_retain(t);
    return true;
}

static void token_detach(engine_token *t, tni_var *v, tni_poison *poison)
{
    uint64_t s = tni_var_lock(v);
    engine_token_set *set = v->read_tokens;

    if (v->write_token == t) {
        v->write_token = NULL;
        if (poison) {
            tni_poison_release(v->poison);
            v->poison = tni_poison_retain(poison);
        }
        tni_token_release(t);
    }
    for (uint32_t i = 0; set && i < set->count; i++)
        if (set->items[i] == t) {
            set->items[i] = set->items[--set->count];
            tni_token_release(t);
            break;
        }
    if (set && !set->count) {
        tni_free(set);
        v->read_tokens = NULL;
    }
    tni_var_unlock(v, s);
}

/* ---- issue ----------------------------------------------------------------------------------------- */

static void op_resume(engine_park *park)
{
    op_async *a = (op_async *)(void *)((char *)park - offsetof(op_async, park));

    tni_op_ready(a->op);
}

tn_status tni_op_async(tni_op *op)
{
    op_async *a;

    if (op->async)
        return TN_OK;
    if (!(a = tni_zalloc(sizeof *a)))
        return TN_E_NOMEM;
    a->op = op;
    atomic_init(&a->tokens, 1u); /* its run; let go at its end */
    a->park.resume = op_resume;
    op->async = a;
    return TN_OK;
}

/* [driver] */
static void token_reached(void *arg, tn_status status, const tn_err *err)
{
    engine_token *t = arg;
    tni_engine *e = t->queue->engine;

    tni_hold_pass(true);
    atomic_fetch_add(&e->inside, 1u); /* the token, once queued, no longer keeps the engine */
    t->status = status;
    if (status && err && (t->err = tni_alloc(sizeof *t->err)))
        *t->err = *err;
    tni_queue_token(t->queue, t);
    atomic_fetch_sub(&e->inside, 1u);
    tni_hold_pass(false);
}

static tn_status token_record(engine_worker *w, tni_op *op, uint32_t only, engine_token **out)
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
    *out = t;
    return TN_OK;
}

/* Asks to be told. If the device cannot, the host waits here, and the token retires as if it had been told.
 */
static void token_watch(engine_worker *w, engine_token *t)
{
    tni_device *d = w->queue->device;
    tn_err err = {0};

    if (!d->ops->event_notify(t->event, token_reached, t, &err))
        return;
    err = (tn_err){0};
    token_reached(t, d->ops->stream_wait(w->stream, &err), &err);
}

/* No token to be had: the host waits for the stream, and what it did is complete or failed. */
static void issue_waited(engine_worker *w, tni_op *op)
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
    tni_op_finish(w, op, poison ? TN_E_DEVICE : TN_OK, poison);
}

static void token_counted(engine_worker *w, tni_op *op)
{
    atomic_fetch_add(&op->async->tokens, 1u);
    atomic_fetch_add(&op->queue->engine->outstanding, 1u);
    w->issued++;
}

void tni_token_issue(engine_worker *w, tni_op *op)
{
    engine_token *t;

    if (token_record(w, op, UINT32_MAX, &t)) {
        issue_waited(w, op);
        return;
    }
    atomic_fetch_or(&op->phase, PHASE_ISSUED);
    token_counted(w, op);
    for (uint32_t i = 0; i < op->var_count; i++)
        if (!op_released(op, i))
            tni_var_release(op, i, NULL, t);
    token_watch(w, t);
    tni_op_let_go(w, op, TN_OK, NULL);
}

bool tni_token_issue_one(engine_worker *w, tni_op *op, uint32_t i)
{
    engine_token *t;
    tn_err err;

    if (token_record(w, op, i, &t)) { /* without a token it may only be given free when the stream is there */
        tni_error_clear();
        if (w->queue->device->ops->stream_wait(w->stream, &err))
            atomic_store(&w->queue->device->failed, 1);
        return false;
    }
    token_counted(w, op);
    tni_var_release(op, i, NULL, t);
    token_watch(w, t);
    return true;
}

/* ---- retirement ------------------------------------------------------------------------------------ */

/* The first token not retired that `op` relied on, else NULL and the oldest failure among them. */
static engine_token *deps_open(tni_op *op, tni_poison **poison)
{
    op_async *a = op->async;

    *poison = NULL;
    for (uint32_t i = 0; i < a->dep_count; i++) {
        engine_token *dep = a->deps[i];

        if (!token_retired(dep))
            return dep;
        if (dep->poison && (!*poison || dep->poison->order < (*poison)->order))
            *poison = dep->poison;
    }
    return NULL;
}

static tni_poison *token_poison(engine_token *t, tni_poison *inherited)
{
    tni_op *op = t->op;
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

void tni_token_retire(engine_worker *w, engine_token *t)
{
    tni_op *op = t->op;
    tni_engine *e = op->queue->engine;
    tni_poison *inherited, *poison;
    engine_token *dep;

    while ((dep = deps_open(op, &inherited)))
        if (token_park(dep, &t->park))
            return;
    poison = token_poison(t, inherited);
    for (uint32_t i = 0; i < op->var_count; i++)
        if (t->only == i || (t->only == UINT32_MAX && !op_released(op, i)))
            token_detach(t, op->vars[i], op_is_write(op, i) ? poison : NULL);
    token_close(t, poison);
    atomic_fetch_sub(&e->outstanding, 1u);
    w->issued--;
    tni_token_release(t);
    w->failed += poison != NULL;
    tni_op_let_go(w, op, TN_OK, poison);
}

/* ---- before dispatch ------------------------------------------------------------------------------- */

/* Tokens at variable `i` that matter to `op`, retained; the one that carries its data comes first. */
static engine_token_set *tokens_of(tni_op *op, uint32_t i, bool *data, bool *no_memory)
{
    tni_var *v = op->vars[i];
    bool write = op_is_write(op, i);
    engine_token_set *out = NULL, *reads;
    uint64_t s = tni_var_lock(v);

    reads = write ? v->read_tokens : NULL;
    *no_memory = false;
    *data = v->write_token && (!write || !(op->flags & TNI_TASK_CLEARS));
    if (v->write_token || reads) {
        if ((out = tni_alloc(sizeof *out + (1u + (reads ? reads->count : 0u)) * sizeof out->items[0]))) {
            out->count = 0;
            if (v->write_token)
                out->items[out->count++] = token_retain(v->write_token);
            for (uint32_t k = 0; reads && k < reads->count; k++)
                out->items[out->count++] = token_retain(reads->items[k]);
        } else {
            *no_memory = true;
        }
    }
    tni_var_unlock(v, s);
    return out;
}

static bool dep_known(const tni_op *op, const engine_token *t)
{
    for (uint32_t i = 0; op->async && i < op->async->dep_count; i++)
        if (op->async->deps[i] == t)
            return true;
    return false;
}

static tn_status dep_add(tni_op *op, engine_token *t)
{
    op_async *a = op->async;
    engine_token **grown;
    uint32_t capacity;

    if (a->dep_count == a->dep_capacity) {
        capacity = a->dep_capacity ? a->dep_capacity * 2 : SET_FIRST;
        if (!(grown = tni_realloc(a->deps, capacity * sizeof *grown)))
            return TN_E_NOMEM;
        a->deps = grown;
        a->dep_capacity = capacity;
    }
    a->deps[a->dep_count++] = token_retain(t);
    return TN_OK;
}

/* Same plugin: the stream waits. A stream that runs in order needs none for itself. */
static tn_status stream_follow(engine_worker *w, tni_op *op, engine_token *t, bool data)
{
    tni_device *d = op->queue->device;
    tn_err err = {0};

    if (dep_known(op, t))
        return TN_OK;
    if (t->stream != w->stream) {
        if (tni_fault_drop_event_wait(op->queue->engine))
            return TN_OK;
        const tn_status st = d->ops->event_wait(w->stream, t->event, &err);

        if (st)
            return tni_error_take(st, &err, d->type);
        w->event_waits++;
    }
    return data ? dep_add(op, t) : TN_OK;
}

typedef enum gather_result { GATHER_READY, GATHER_PARKED, GATHER_FAILED } gather_result;

/* `follow` false: parks on tokens of others. True: makes the stream wait for those of its own plugin. */
static gather_result gather_one(engine_worker *w, tni_op *op, uint32_t i, bool follow)
{
    bool data, no_memory, async = op->queue->async && !(op->flags & TNI_TASK_ARRIVED);
    engine_token_set *set = tokens_of(op, i, &data, &no_memory);
    gather_result result = no_memory ? GATHER_FAILED : GATHER_READY;

    for (uint32_t k = 0; set && k < set->count && result == GATHER_READY; k++) {
        engine_token *t = set->items[k];
        bool own = async && t->queue->device->plugin == op->queue->device->plugin;

        if (own && follow && stream_follow(w, op, t, data && k == 0))
            result = GATHER_FAILED;
        if (!own && !follow && !token_retired(t)) {
            if (tni_op_async(op))
                result = GATHER_FAILED;
            else if (token_park(t, &op->async->park))
                result = GATHER_PARKED;
        }
    }
    tni_token_set_free(set);
    return result;
}

static tni_poison *gather_poison(tni_op *op)
{
    tni_poison *oldest = NULL;

    for (uint32_t i = 0; i < op->var_count; i++) {
        tni_var *v = op->vars[i];
        uint64_t s;

        if (op_is_write(op, i) && (op->flags & TNI_TASK_CLEARS))
            continue;
        s = tni_var_lock(v);
        if (v->poison && (!oldest || v->poison->order < oldest->order)) {
            tni_poison_release(oldest);
            oldest = tni_poison_retain(v->poison);
        }
        tni_var_unlock(v, s);
    }
    return oldest;
}

static tni_poison *gather_failed(tni_op *op)
{
    tn_err err;

    tni_error_get(&err);
    tni_error_clear();
    return tni_poison_create(op->queue->engine, op->order, op->name, op->origin,
                             err.code ? err.code : TN_E_NOMEM, &err);
}

bool tni_token_gather(engine_worker *w, tni_op *op, tni_poison **poison)
{
    gather_result result = GATHER_READY;
    bool async = op->queue->async;

    for (uint32_t i = 0; result == GATHER_READY && i < op->var_count; i++)
        if ((result = gather_one(w, op, i, false)) == GATHER_PARKED)
            return false; /* another worker may have it already: not to be touched any more */
    if (result == GATHER_READY && async && !tni_worker_open(w)) {
        result = tni_op_async(op) ? GATHER_FAILED : GATHER_READY;
        for (uint32_t i = 0; i < op->var_count && result == GATHER_READY; i++)
            result = gather_one(w, op, i, true);
    }
    *poison = gather_poison(op);
    if (result == GATHER_FAILED && !*poison)
        *poison = gather_failed(op);
    return true;
}

/* A token leaves its variables before it is retired, so the same one is never found retired twice. Allocates
 * nothing: who waits has no other way. */
engine_token *tni_token_wait(tni_op *op, engine_park *park)
{
    tni_var *v = op->vars[0];

    for (;;) {
        const uint64_t s = tni_var_lock(v);
        const engine_token_set *reads = op_is_write(op, 0) ? v->read_tokens : NULL;
        engine_token *t = v->write_token ? v->write_token : reads && reads->count ? reads->items[0] : NULL;

        if (t)
            token_retain(t);
        tni_var_unlock(v, s);
        if (!t || token_park(t, park))
            return t;
        tni_token_release(t);
    }
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

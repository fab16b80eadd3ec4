/*
 * Tokens at variables, and what comes behind them.
 *
 * A variable has the token of its last issued write, and those of the reads behind it, one per stream: a
 * later one implies the earlier ones. Who is granted the variable looks at them: on a stream of the same
 * plugin it tells its stream to wait, everything else is parked until the token retires. A stream that waits
 * for a token needs no wait for an earlier one of the same stream.
 */
#include "engine/internal.h"

#define SET_FIRST 4u
#define FEW 16u /* tokens of a variable that are looked at without an allocation */

/* ---- the reads of a variable ------------------------------------------------------------------------- */

static engine_token *reads_one(const tni_var *v) /* NULL: none, or a set */
{
    return (uintptr_t)v->read_tokens & READS_ONE
               ? (engine_token *)(void *)((char *)v->read_tokens - READS_ONE)
               : NULL;
}

static engine_token_set *reads_set(const tni_var *v)
{
    return (uintptr_t)v->read_tokens & READS_ONE ? NULL : v->read_tokens;
}

static uint32_t reads_count(const tni_var *v)
{
    const engine_token_set *s = reads_set(v);

    return s ? s->count : v->read_tokens != NULL;
}

static engine_token *reads_at(const tni_var *v, uint32_t i)
{
    engine_token_set *s = reads_set(v);

    return s ? s->items[i] : reads_one(v);
}

static void reads_put(tni_var *v, uint32_t i, engine_token *t)
{
    engine_token_set *s = reads_set(v);

    if (s)
        s->items[i] = t;
    else
        v->read_tokens = (char *)(void *)t + READS_ONE;
}

void tni_reads_drop(tni_var *v)
{
    for (uint32_t i = 0, n = reads_count(v); i < n; i++)
        tni_token_release(reads_at(v, i));
    tni_free(reads_set(v));
    v->read_tokens = NULL;
}

/* Room for one more behind `count`; false: no memory. */
static bool reads_grow(tni_var *v, uint32_t count)
{
    engine_token_set *s = reads_set(v), *grown;
    engine_token *one = reads_one(v);
    uint32_t capacity = s ? s->capacity * 2 : SET_FIRST;

    if (!count || (s && count < s->capacity))
        return true;
    if (!(grown = tni_realloc(s, sizeof *s + capacity * sizeof(engine_token *))))
        return false;
    if (!s) {
        grown->items[0] = one;
        grown->count = 1;
    }
    grown->capacity = capacity;
    v->read_tokens = grown;
    return true;
}

static bool reads_add(tni_var *v, engine_token *t)
{
    const uint32_t count = reads_count(v);
    engine_token_set *s;

    for (uint32_t i = 0; i < count; i++) {
        engine_token *old = reads_at(v, i);

        if (old->queue != t->queue)
            continue;
        reads_put(v, i, tni_token_retain(t));
        tni_token_release(old);
        return true;
    }
    if (!reads_grow(v, count))
        return false;
    if ((s = reads_set(v)))
        s->count++;
    reads_put(v, count, tni_token_retain(t));
    return true;
}

static void reads_remove(tni_var *v, const engine_token *t)
{
    engine_token_set *s = reads_set(v);
    uint32_t i = 0, count = reads_count(v);

    while (i < count && reads_at(v, i) != t)
        i++;
    if (i == count)
        return;
    tni_token_release(reads_at(v, i));
    if (s)
        s->items[i] = s->items[--s->count];
    if (s && s->count)
        return;
    tni_free(s);
    v->read_tokens = NULL;
}

bool tni_token_attach(tni_var *v, engine_token *t, bool write)
{
    if (!write)
        return reads_add(v, t);
    if (v->write_token)
        tni_token_release(v->write_token);
    tni_reads_drop(v);
    v->write_token = tni_token_retain(t);
    return true;
}

void tni_token_detach(tni_var *v, engine_token *t, tni_poison *poison)
{
    uint64_t s = tni_var_lock(v);

    if (v->write_token == t) {
        v->write_token = NULL;
        if (poison) {
            tni_poison_release(v->poison);
            v->poison = tni_poison_retain(poison);
        }
        tni_token_release(t);
    }
    reads_remove(v, t);
    tni_var_unlock(v, s);
}

/* ---- operations that follow ---------------------------------------------------------------------------- */

static void op_resume(engine_park *park)
{
    op_async *a = (op_async *)(void *)((char *)park - offsetof(op_async, park));

    tni_operation_ready(a->op);
}

tn_status tni_operation_async(tni_operation *op)
{
    tni_engine *e = op->queue->engine;
    op_async *a;

    if (op->async)
        return TN_OK;
    tni_spin_lock(&e->depot_lock);
    if ((a = e->asyncs))
        e->asyncs = a->next;
    tni_spin_unlock(&e->depot_lock);
    if (!a && !(a = tni_zalloc(sizeof *a)))
        return TN_E_NOMEM;
    a->op = op;
    atomic_store_explicit(&a->tokens, 1u, memory_order_relaxed); /* its run; let go at its end */
    a->park.resume = op_resume;
    op->async = a;
    return TN_OK;
}

void tni_operation_async_end(tni_operation *op)
{
    tni_engine *e = op->queue->engine;
    op_async *a = op->async;

    for (; a->dep_closed < a->dep_count; a->dep_closed++)
        tni_token_release(a->deps[a->dep_closed]);
    tni_poison_release(a->inherited);
    tni_poison_release(a->poison);
    a->inherited = a->poison = NULL;
    a->dep_count = a->dep_closed = 0;
    op->async = NULL;
    tni_spin_lock(&e->depot_lock);
    a->next = e->asyncs;
    e->asyncs = a;
    tni_spin_unlock(&e->depot_lock);
}

/* A token is often at many variables of an operation: noted once, or, if another operation looks at it
 * meanwhile, a few times. */
static tn_status dep_add(tni_operation *op, engine_token *t)
{
    op_async *a = op->async;
    engine_token **grown;
    uint32_t capacity;

    if (atomic_exchange_explicit(&t->depended, op->order, memory_order_relaxed) == op->order)
        return TN_OK;
    if (a->dep_count == a->dep_capacity) {
        capacity = a->dep_capacity ? a->dep_capacity * 2 : SET_FIRST;
        if (!(grown = tni_realloc(a->deps, capacity * sizeof *grown))) {
            atomic_store_explicit(&t->depended, 0u, memory_order_relaxed);
            return TN_E_NOMEM;
        }
        a->deps = grown;
        a->dep_capacity = capacity;
    }
    a->deps[a->dep_count++] = tni_token_retain(t);
    return TN_OK;
}

/* Without memory for the table each wait is made. */
static void followed_note(engine_worker *w, const engine_token *t)
{
    const uint32_t index = t->queue->index, count = index + SET_FIRST;
    uint64_t *grown;

    if (index >= w->followed_count) {
        if (!(grown = tni_realloc(w->followed, count * sizeof *grown))) {
            tni_error_clear();
            return;
        }
        memset(grown + w->followed_count, 0, (count - w->followed_count) * sizeof *grown);
        w->followed = grown;
        w->followed_count = count;
    }
    if (w->followed[index] < t->number)
        w->followed[index] = t->number;
}

/* Same plugin: the stream waits. A stream that runs in order needs none for itself. */
static tn_status stream_follow(engine_worker *w, tni_operation *op, engine_token *t, bool data)
{
    const uint32_t index = t->queue->index;
    tni_device *d = op->queue->device;
    tn_err err = {0};
    tn_status st;

    if (t->queue != w->queue && (index >= w->followed_count || w->followed[index] < t->number)) {
        if (tni_fault_drop_event_wait(op->queue->engine))
            return TN_OK;
        if ((st = d->ops->event_wait(w->stream, t->event, &err)))
            return tni_error_take(st, &err, d->type);
        followed_note(w, t);
        w->event_waits++;
    }
    return data ? dep_add(op, t) : TN_OK;
}

typedef enum gather_result { GATHER_READY, GATHER_PARKED, GATHER_FAILED } gather_result;

/* `follow` false: parks on a token of others. True: makes the stream wait for one of its own plugin. */
static gather_result gather_token(engine_worker *w, tni_operation *op, engine_token *t, bool data,
                                  bool follow)
{
    const bool async = op->queue->async && !(op->flags & TNI_TASK_ARRIVED);
    const bool own = async && t->queue->device->plugin == op->queue->device->plugin;

    if (own)
        return follow && stream_follow(w, op, t, data) ? GATHER_FAILED : GATHER_READY;
    if (follow || tni_token_retired(t))
        return GATHER_READY;
    if (tni_operation_async(op))
        return GATHER_FAILED;
    return tni_token_park(t, &op->async->park) ? GATHER_PARKED : GATHER_READY;
}

/* The tokens at variable `i` that matter to `op`, retained, into `few` or a block of their own; the one that
 * carries its data comes first. NULL: no memory. */
static engine_token **tokens_of(tni_operation *op, uint32_t i, engine_token *few[FEW], uint32_t *count,
                                bool *data)
{
    tni_var *v = op->vars[i];
    const bool write = op_is_write(op, i);
    engine_token **out = few;
    uint64_t s = tni_var_lock(v);
    const uint32_t reads = write ? reads_count(v) : 0;
    uint32_t n = 0;

    *data = v->write_token && (!write || !(op->flags & TNI_TASK_CLEARS));
    if (reads < FEW || (out = tni_calloc(reads + 1, sizeof(engine_token *)))) {
        if (v->write_token)
            out[n++] = tni_token_retain(v->write_token);
        for (uint32_t k = 0; k < reads; k++)
            out[n++] = tni_token_retain(reads_at(v, k));
    }
    tni_var_unlock(v, s);
    *count = n;
    return out;
}

static gather_result gather_one(engine_worker *w, tni_operation *op, uint32_t i, bool follow)
{
    engine_token *few[FEW], **tokens;
    gather_result result = GATHER_READY;
    uint32_t count;
    bool data;

    if (!(atomic_load_explicit(&op->vars[i]->state, memory_order_acquire) & VAR_TOKENS))
        return GATHER_READY; /* none comes while the variable is ours */
    if (!(tokens = tokens_of(op, i, few, &count, &data)))
        return GATHER_FAILED;
    for (uint32_t k = 0; k < count && result == GATHER_READY; k++)
        result = gather_token(w, op, tokens[k], data && k == 0, follow);
    for (uint32_t k = 0; k < count; k++)
        tni_token_release(tokens[k]);
    if (tokens != few)
        tni_free(tokens);
    return result;
}

static tni_poison *gather_poison(tni_operation *op)
{
    tni_poison *oldest = NULL;

    for (uint32_t i = 0; i < op->var_count; i++) {
        tni_var *v = op->vars[i];
        uint64_t s;

        if ((op_is_write(op, i) && (op->flags & TNI_TASK_CLEARS)) ||
            !(atomic_load_explicit(&v->state, memory_order_acquire) & VAR_POISON))
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

static tni_poison *gather_failed(tni_operation *op)
{
    tn_err err;

    tni_error_get(&err);
    tni_error_clear();
    return tni_poison_create(op->queue->engine, op->order, op->name, op->origin,
                             err.code ? err.code : TN_E_NOMEM, &err);
}

bool tni_token_gather(engine_worker *w, tni_operation *op, tni_poison **poison)
{
    gather_result result = GATHER_READY;
    bool async = op->queue->async;

    for (uint32_t i = 0; result == GATHER_READY && i < op->var_count; i++)
        if ((result = gather_one(w, op, i, false)) == GATHER_PARKED)
            return false; /* another worker may have it already: not to be touched any more */
    if (result == GATHER_READY && async && !tni_worker_open(w)) {
        result = tni_operation_async(op) ? GATHER_FAILED : GATHER_READY;
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
engine_token *tni_token_wait(tni_operation *op, engine_park *park)
{
    tni_var *v = op->vars[0];

    for (;;) {
        const uint64_t s = tni_var_lock(v);
        const uint32_t reads = op_is_write(op, 0) ? reads_count(v) : 0;
        engine_token *t = v->write_token ? v->write_token : reads ? reads_at(v, 0) : NULL;

        if (t)
            (void)tni_token_retain(t);
        tni_var_unlock(v, s);
        if (!t || tni_token_park(t, park))
            return t;
        tni_token_release(t);
    }
}

/*
 * Variables: who may touch what, in which order.
 *
 * `state` says who holds the variable (a writer, or so many readers), whether operations wait in its queue
 * and whether there is more to look at (tokens, poison). Everything else of a variable is read and written
 * under the lock bit only. Whoever holds a variable keeps it alive; nobody touches it after the store that
 * gives it free.
 *
 * A write excludes all, reads that follow each other share, and the queue is first in, first out: so writes
 * keep the order of their pushes. Operations are entered by one thread at a time (the sequencer), in push
 * order, which is why two of them never wait for each other in a circle.
 */
#include "engine/internal.h"

void tni_var_init(tni_var *v)
{
    memset(v, 0, sizeof *v);
}

void tni_var_fini(tni_var *v)
{
    if (v->poison)
        tni_poison_release(v->poison);
    if (v->write_token)
        tni_token_release(v->write_token);
    tni_reads_drop(v);
    memset(v, 0, sizeof *v);
}

uint64_t tni_var_lock(tni_var *v)
{
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);

    for (uint32_t spins = 1;; spins++) {
        if (!(s & VAR_LOCK) && atomic_compare_exchange_weak_explicit(
                                   &v->state, &s, s | VAR_LOCK, memory_order_acquire, memory_order_relaxed))
            return s;
        if (spins % 64 == 0)
            (void)sched_yield(); /* its holder may have lost the processor */
        else
            tni_pause();
        s = atomic_load_explicit(&v->state, memory_order_relaxed);
    }
}

void tni_var_unlock(tni_var *v, uint64_t state)
{
    state &= ~(uint64_t)(VAR_LOCK | VAR_CHECK | VAR_QUEUED);
    if (v->queue_head)
        state |= VAR_QUEUED;
    if (v->write_token || v->read_tokens)
        state |= VAR_TOKENS;
    if (v->poison)
        state |= VAR_POISON;
    atomic_store_explicit(&v->state, state, memory_order_release);
}

bool tni_var_enter(tni_operation *op, uint32_t i)
{
    tni_var *v = op->vars[i];
    bool write = op_is_write(op, i);
    uint64_t blocks = VAR_QUEUED | VAR_WRITER | (write ? VAR_READERS : 0);
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);
    op_link *link, *tail;

    while (!(s & (blocks | VAR_LOCK)))
        if (atomic_compare_exchange_weak_explicit(&v->state, &s, write ? s | VAR_WRITER : s + VAR_READER,
                                                  memory_order_acquire, memory_order_relaxed)) {
            if (TN_UNLIKELY(s & VAR_CHECK))
                atomic_store_explicit(&op->check, 1u, memory_order_relaxed);
            return true;
        }
    s = tni_var_lock(v);
    if (!(s & blocks)) {
        if (s & VAR_CHECK)
            atomic_store_explicit(&op->check, 1u, memory_order_relaxed);
        atomic_store_explicit(&v->state, write ? s | VAR_WRITER : s + VAR_READER, memory_order_release);
        return true;
    }
    link = &op_links(op)[i];
    link->op = op;
    link->next = NULL;
    if ((tail = v->queue_tail))
        tail->next = link;
    else
        v->queue_head = link;
    v->queue_tail = link;
    atomic_store_explicit(&v->state, s | VAR_QUEUED, memory_order_release);
    return false;
}

/* Grants what the queue's head may have now; returns the granted links, first to last. The variable is
 * locked. */
static op_link *queue_grant(tni_var *v, uint64_t *state)
{
    op_link *first = v->queue_head, *last = NULL, *at = first;
    uint64_t s = *state;

    while (at) {
        bool write = op_is_write(at->op, (uint32_t)(at - op_links(at->op)));

        if ((s & VAR_WRITER) || (write && s >= VAR_READER))
            break;
        s = write ? s | VAR_WRITER : s + VAR_READER;
        last = at;
        at = at->next;
    }
    if (!last)
        return NULL;
    last->next = NULL;
    v->queue_head = at;
    if (!at)
        v->queue_tail = NULL;
    *state = s;
    return first;
}

/* The variable is unlocked by now and may be gone; the operations are ours until their last variable is
 * granted. */
static void granted_ready(op_link *link, bool check)
{
    while (link) {
        op_link *next = link->next;
        tni_operation *op = link->op;

        if (check)
            atomic_store_explicit(&op->check, 1u, memory_order_relaxed);
        if (atomic_fetch_sub_explicit(&op->wait, 1u, memory_order_acq_rel) == 1u)
            tni_operation_ready(op);
        link = next;
    }
}

static void release_locked(tni_var *v, uint64_t s)
{
    op_link *granted = queue_grant(v, &s);
    bool check = v->write_token || v->read_tokens || v->poison;

    tni_var_unlock(v, s);
    granted_ready(granted, check);
}

static void poison_put(tni_var *v, tni_poison *poison)
{
    tni_poison *old = v->poison;

    v->poison = poison ? tni_poison_retain(poison) : NULL;
    if (old)
        tni_poison_release(old);
}

/* The common case: nobody waits, nothing to note. */
static bool release_quick(tni_var *v, bool write, uint64_t blocks)
{
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);

    while (!(s & (blocks | VAR_LOCK | VAR_QUEUED)))
        if (atomic_compare_exchange_weak_explicit(&v->state, &s,
                                                  write ? s & ~(uint64_t)VAR_WRITER : s - VAR_READER,
                                                  memory_order_release, memory_order_relaxed))
            return true;
    return false;
}

void tni_var_release(tni_operation *op, uint32_t i, tni_poison *poison, engine_token *token)
{
    if (op_is_write(op, i))
        tni_var_written(op->vars[i]);
    tni_var_give(op, i, poison, token);
}

void tni_var_give(tni_operation *op, uint32_t i, tni_poison *poison, engine_token *token)
{
    tni_var *v = op->vars[i];
    bool write = op_is_write(op, i);
    uint64_t s;

    if (!token && (!write || !poison) &&
        release_quick(v, write, write && (op->flags & TNI_TASK_CLEARS) ? VAR_POISON : 0))
        return;
    s = tni_var_lock(v);
    if (write && (poison || (op->flags & TNI_TASK_CLEARS)))
        poison_put(v, poison);
    if (token && !tni_token_attach(v, token, write)) { /* no memory: the host waits, then none is needed */
        tni_var_unlock(v, s);
        tni_token_host_wait(token);
        s = tni_var_lock(v);
    }
    release_locked(v, write ? s & ~(uint64_t)VAR_WRITER : s - VAR_READER);
}

void *tni_var_take(tni_var *v, void **word)
{
    void *was = NULL;
    uint64_t s;

    tni_hold();
    s = tni_var_lock(v);
    if ((s & VAR_READERS) == VAR_READER && !(s & (VAR_WRITER | VAR_TOKENS)))
        was = __atomic_exchange_n(word, NULL, __ATOMIC_RELAXED);
    tni_var_unlock(v, s);
    tni_unhold();
    return was;
}

void tni_var_leave(tni_var *v, bool write, bool written, tni_poison *poison)
{
    uint64_t s;

    if (written)
        tni_var_written(v);
    if (!poison && release_quick(v, write, 0))
        return;
    s = tni_var_lock(v);
    if (poison)
        poison_put(v, poison);
    release_locked(v, write ? s & ~(uint64_t)VAR_WRITER : s - VAR_READER);
}

bool tni_var_abandon(tni_operation *op)
{
    tni_var *v = op->vars[0];
    op_link *mine = &op_links(op)[0], *previous = NULL;
    uint64_t s = tni_var_lock(v);

    for (op_link *at = v->queue_head; at; previous = at, at = at->next)
        if (at == mine) {
            if (previous)
                previous->next = at->next;
            else
                v->queue_head = at->next;
            if (v->queue_tail == at)
                v->queue_tail = previous;
            release_locked(v, s);
            return true;
        }
    tni_var_unlock(v, s);
    return false;
}

void tni_var_spoil(tni_var *v, tni_poison *poison)
{
    uint64_t s;

    tni_hold();
    s = tni_var_lock(v);
    poison_put(v, poison);
    tni_var_unlock(v, s);
    tni_unhold();
}

void tni_engine_clear(tni_engine *e, tni_var *v)
{
    (void)e;
    tni_var_spoil(v, NULL);
}

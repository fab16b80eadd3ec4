/*
 * The submission list: what pushers share, and the sequencer that empties it.
 *
 * A pusher writes its operation and one pointer, and looks whether somebody must be woken; it touches no
 * variable. Whoever holds the sequencer enters operations in exactly the order of the list. A worker never
 * sleeps while the list has something, and a push wakes a sleeping worker of its queue, so that the list is
 * always being emptied; where all workers are deep in long operations, those who wait do it
 * (tni_submit_help).
 */
#include "engine/internal.h"

#define HELP_AFTER_NS 5000u /* a waiter leaves the list to a worker that is at it for so long */

/* ---- pushers ------------------------------------------------------------------------------------------- */

/* Chunks wait in `chunk_spare` until the one before them is full. Up to CHUNKS_USED come back: a program that
 * has had its busiest time asks for no more. There are two from the start: one fills while the other is
 * emptied. */
tn_status tni_submit_chunks_locked(tni_engine *e, uint32_t count)
{
    uint64_t places = e->push_chunk ? CHUNK_OPS - e->push_at : 0;

    count += e->push_chunk ? 0 : CHUNK_OPS;
    for (engine_chunk **at = &e->chunk_spare; places < count; places += CHUNK_OPS, at = &(*at)->next) {
        if (!*at)
            *at = atomic_exchange_explicit(&e->chunk_used, NULL, memory_order_acquire);
        if (*at)
            continue;
        if (!(*at = tni_alloc_aligned(LINE_BYTES, sizeof **at)))
            return TN_E_NOMEM;
        (*at)->next = NULL;
    }
    return TN_OK;
}

void tni_submit_next_locked(tni_engine *e)
{
    engine_chunk *chunk = e->chunk_spare;

    e->chunk_spare = chunk->next;
    chunk->next = NULL;
    if (e->push_chunk)
        e->push_chunk->next = chunk; /* published by the next operation's `pushed` */
    else
        e->seq_chunk = chunk;
    e->push_chunk = chunk;
    e->push_at = 0;
}

/* ---- the sequencer ------------------------------------------------------------------------------------- */

static void op_enter(tni_operation *op, uint64_t order)
{
    uint32_t count = op->var_count, granted = 0;

    op->order = tni_order_entered(order);
    op->poison = NULL;
    atomic_store_explicit(&op->check, 0u, memory_order_relaxed);
    atomic_store_explicit(&op->wait, count + 1, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        granted += tni_var_enter_quick(op, i) || tni_var_enter(op, i);
    if (granted == count ||
        atomic_fetch_sub_explicit(&op->wait, granted + 1, memory_order_acq_rel) == granted + 1)
        tni_operation_ready(op);
}

static inline void prefetch_op(engine_chunk *chunk, uint32_t at)
{
    if (at < CHUNK_OPS) {
        __builtin_prefetch(chunk->ops[at], 1);
        __builtin_prefetch(&chunk->ops[at]->next, 1);
        __builtin_prefetch(chunk->ops[at]->data);
    }
}

/* Whoever holds the sequencer is the only one that puts here, and frees. */
static void chunk_give_locked(tni_engine *e, engine_chunk *chunk)
{
    engine_chunk *top = atomic_load_explicit(&e->chunk_used, memory_order_relaxed);

    do {
        if (top && top->used >= CHUNKS_USED) {
            tni_free_aligned(chunk);
            return;
        }
        chunk->next = top;
        chunk->used = top ? top->used + 1 : 1;
    } while (!atomic_compare_exchange_weak_explicit(&e->chunk_used, &top, chunk, memory_order_acq_rel,
                                                    memory_order_acquire));
}

static size_t drain_locked(tni_engine *e, size_t limit)
{
    uint64_t from = atomic_load_explicit(&e->entered, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&e->pushed, memory_order_acquire);
    uint64_t n = to - from < limit ? to - from : limit;

    for (uint64_t i = 0; i < n; i++) {
        engine_chunk *chunk = e->seq_chunk;

        if (TN_UNLIKELY(e->seq_at == CHUNK_OPS)) {
            e->seq_chunk = chunk->next;
            e->seq_at = 0;
            chunk_give_locked(e, chunk);
            chunk = e->seq_chunk;
        }
        if (from + i + 4 < to)
            prefetch_op(chunk, e->seq_at + 4);
        op_enter(chunk->ops[e->seq_at++], from + i);
    }
    if (n)
        atomic_store(&e->entered, from + n);
    return n;
}

size_t tni_submit_drain(tni_engine *e, size_t limit)
{
    size_t n = 0;

    if (tni_submit_empty(e))
        return 0;
    tni_hold();
    if (tni_spin_try(&e->seq_lock)) {
        n = drain_locked(e, limit);
        tni_spin_unlock(&e->seq_lock);
    }
    tni_unhold();
    return n;
}

void tni_submit_help(tni_engine *e, uint64_t upto)
{
    uint64_t entered = atomic_load(&e->entered), since = 0;

    for (uint64_t at; (at = atomic_load(&e->entered)) < upto;) {
        uint64_t now = tni_clock_ns();

        if (at + 1 == upto && tni_submit_drain(e, DRAIN_BATCH))
            continue; /* one operation is nothing to leave to others */
        if (at != entered || !since) {
            entered = at;
            since = now;
        } else if (now - since > HELP_AFTER_NS && !tni_submit_drain(e, DRAIN_BATCH)) {
            (void)sched_yield(); /* who is at it may have lost the processor */
        }
        for (int i = 0; i < 32; i++)
            tni_pause();
    }
}

static void chunks_free(engine_chunk *chunk)
{
    while (chunk) {
        engine_chunk *next = chunk->next;

        tni_free_aligned(chunk);
        chunk = next;
    }
}

void tni_submit_fini(tni_engine *e)
{
    chunks_free(e->seq_chunk);
    chunks_free(e->chunk_spare);
    chunks_free(atomic_load(&e->chunk_used));
}

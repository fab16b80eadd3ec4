/*
 * What a worker sends again after the loss of a server (protocol.h, rule 9): requests that have ended since
 * the last snapshot that all servers hold, in the order in which they ended, with copies of their bytes.
 *
 * Invariant: the log is empty, or begins with a mark: a request for a snapshot. All requests before a mark
 * had ended when it was made, and none behind it had begun. The mark of step 0 is the beginning of the job. A
 * log that lacks something is emptied, and begins again with the next mark.
 */
#include <string.h>

#include "kv/rows.h"
#include "kv/worker.h"

static bool is_logged(const tni_kv_op *op)
{
    const uint32_t others = 1u << TNI_KV_DO_PULL | 1u << TNI_KV_DO_BARRIER | 1u << TNI_KV_DO_BYE;

    return !(others >> op->r.kind & 1u);
}

static bool is_mark(const tni_kv_op *op)
{
    return op->r.kind == TNI_KV_DO_SNAPSHOT;
}

static uint64_t bytes_of(const tni_kv_op *op)
{
    const uint32_t code = op->r.kind == TNI_KV_DO_INIT ? 0 : op->r.shrink_log2;

    if (op->r.cuts)
        return (op->lot->plan.parts + 1ull) * sizeof *op->r.cuts + op->r.cuts[op->lot->plan.parts].at;
    if (!tni_kv_op_sends(op))
        return op->r.kind == TNI_KV_DO_COMMAND ? op->r.bytes : 0;
    return (op->lot->plan.bytes + ((uint64_t)1 << code) - 1) >> code;
}

void tni_kv_op_free(tni_kv_worker *w, tni_kv_op *op)
{
    w->log_bytes -= op->copied;
    tni_free(op->copy);
    tni_free(op);
}

/* Frees what lies before `end`. */
static void log_cut(tni_kv_worker *w, const tni_kv_op *end)
{
    while (w->log != end) {
        tni_kv_op *op = w->log;

        w->log = op->next;
        tni_kv_op_free(w, op);
    }
    w->log_last = w->log ? w->log_last : NULL;
}

void tni_kv_log_clear(tni_kv_worker *w)
{
    log_cut(w, NULL);
}

/* The newest mark up to `step`. */
static tni_kv_op *mark_of(const tni_kv_worker *w, uint64_t step)
{
    tni_kv_op *mark = NULL;

    for (tni_kv_op *op = w->log; op; op = op->next)
        if (is_mark(op) && op->r.step <= step)
            mark = op;
    return mark;
}

void tni_kv_log_trim(tni_kv_worker *w, uint64_t step)
{
    const tni_kv_op *mark = mark_of(w, TNI_KV_BUG(REPLAY_TRIM) ? UINT64_MAX : step);

    if (mark)
        log_cut(w, mark);
}

/* Takes `bytes` of what the log may have. False: there are not as many, and the log is empty now. */
static bool charge(tni_kv_worker *w, tni_kv_op *op, uint64_t bytes)
{
    if (bytes > w->node.settings->replay_bytes - w->log_bytes) {
        tni_kv_log_clear(w);
        return false;
    }
    op->copied += bytes;
    w->log_bytes += bytes;
    return true;
}

void tni_kv_log_copy(tni_kv_worker *w, tni_kv_op *op)
{
    const uint64_t bytes = bytes_of(op);

    if (!w->log || op->copy || !bytes || !is_logged(op) ||
        !charge(w, op, bytes + sizeof *op))
        return;
    if ((op->copy = tni_alloc(bytes)))
        tni_kv_bytes_copy(op->copy, op->r.cuts ? (const void *)op->r.cuts : op->r.in, bytes);
    else
        tni_kv_log_clear(w);
}

void tni_kv_log_use(tni_kv_op *op)
{
    op->own = op->copy != NULL;
    op->r.in = op->copy;
    if (op->r.cuts) {
        op->r.cuts = op->copy;
        op->r.in = tni_kv_rows_payload(op->r.cuts, op->lot->plan.parts);
    }
}

static void log_append(tni_kv_worker *w, tni_kv_op *op)
{
    op->next = NULL;
    *(w->log ? &w->log_last->next : &w->log) = op;
    w->log_last = op;
}

void tni_kv_log_mark(tni_kv_worker *w, uint64_t step)
{
    tni_kv_op *mark = w->logs ? tni_zalloc(sizeof *mark) : NULL;

    if (!mark) {
        tni_kv_log_clear(w);
        return;
    }
    mark->r.kind = TNI_KV_DO_SNAPSHOT;
    mark->r.step = step;
    mark->lot = &w->saves;
    log_append(w, mark);
}

void tni_kv_log_begin(tni_kv_worker *w)
{
    w->logs = w->node.settings->replay_bytes && !w->node.async &&
              w->node.incarnation <= w->node.settings->workers + w->node.settings->servers;
    tni_kv_log_mark(w, 0);
}

/* Whether the log needs it; what ended with an error and is needed empties the log. A broken round is part of
 * it, and so is a command whose error others ask for; a round behind the end of the data never was. */
static bool needed(tni_kv_worker *w, tni_kv_op *op, tn_status st)
{
    if (!w->logs || !is_logged(op) || st == TN_E_CANCELLED)
        return false;
    if (is_mark(op)) {
        if (!st && !op->released)
            tni_kv_log_mark(w, op->r.step);
        return false;
    }
    if (st && op->r.kind != TNI_KV_DO_COMMAND && op->r.kind != TNI_KV_DO_BREAK) {
        tni_kv_log_clear(w);
        return false;
    }
    tni_kv_log_copy(w, op);
    return w->log && (op->copy || !bytes_of(op)) && (op->copied || charge(w, op, sizeof *op));
}

void tni_kv_log_take(tni_kv_worker *w, tni_kv_op *op, tn_status st)
{
    if (!needed(w, op, st)) {
        tni_kv_op_free(w, op);
        return;
    }
    op->r.kind = op->r.kind == TNI_KV_DO_PUSHPULL ? TNI_KV_DO_PUSH : op->r.kind;
    tni_kv_log_use(op);
    op->r.out = NULL;
    op->r.land = NULL;
    op->r.cookie = 0;
    op->silent = true;
    op->started = false;
    log_append(w, op);
}

bool tni_kv_log_back(tni_kv_worker *w, uint64_t step)
{
    tni_kv_op *mark, *list, **at = &list;

    if (w->log && w->first && is_mark(w->first) &&
        w->first->r.step == step) { /* all that has ended is in it */
        log_cut(w, w->log_last);
        w->log->r.kind = TNI_KV_DO_SNAPSHOT;
        w->log->r.step = step;
    }
    mark = mark_of(w, step);
    if (!mark || (tni_kv_worker_rank(w) == 0 && mark->r.step != step)) {
        tni_kv_log_clear(w);
        return false;
    }
    log_cut(w, mark);
    list = mark->next;
    mark->next = NULL;
    w->log_last = mark;
    while (*at) {
        tni_kv_op *op = *at;

        if (!is_mark(op)) {
            at = &op->next;
            continue;
        }
        *at = op->next; /* servers have forgotten it */
        tni_kv_op_free(w, op);
    }
    tni_kv_ops_again(w, list);
    return true;
}

/*
 * What a worker sends again after the loss of a server (protocol.h, rule 9): requests that have ended since
 * the last snapshot that all servers hold, in the order in which they ended, with copies of their bytes.
 *
 * Invariant: the log is empty, or begins with a mark: a request for a snapshot. All requests before a mark
 * had ended when it was made, and none behind it had begun. The mark of step 0 is the beginning of the job. A
 * log that lacks something is emptied, and begins again with the next mark.
 *
 * Without rounds a server goes back alone, and gradients that it lost stay lost. What it may lack beside them
 * only worker 0 has: first values, and commands, since the last snapshot that all servers have written, which
 * it knows by the end of its request. It gives them again, and asks for a snapshot then: so the server knows
 * that it has all, and takes the gradients of others from then on. A first value that is not kept the server
 * misses when somebody asks for it; a command that is not kept nobody would miss, so worker 0 ends then.
 */
#include <string.h>

#include "kv/rows.h"
#include "kv/update.h"
#include "kv/worker.h"

#define COMMANDS_BYTES (1u << 20)

static bool is_logged(const tni_kv_worker *w, const tni_kv_op *op)
{
    const uint32_t others = 1u << TNI_KV_DO_PULL | 1u << TNI_KV_DO_BARRIER | 1u << TNI_KV_DO_BYE;
    const uint32_t given = 1u << TNI_KV_DO_INIT | 1u << TNI_KV_DO_COMMAND | 1u << TNI_KV_DO_SNAPSHOT;

    return (w->node.async ? given : ~others) >> op->r.kind & 1u;
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

/* This one is not in it. With rounds the rest is of no use then. */
static void lack(tni_kv_worker *w, const tni_kv_op *op)
{
    w->lacks = true;
    if (!w->node.async)
        tni_kv_log_clear(w);
    else if (op->r.kind == TNI_KV_DO_COMMAND && w->log)
        w->log_last->lost = true;
}

/* Takes `bytes` of what the log may have. False: there are not as many. Without rounds commands, which are
 * short, have some more: a server without an optimizer would not know that it lacks one. */
static bool charge(tni_kv_worker *w, tni_kv_op *op, uint64_t bytes)
{
    const bool more = w->node.async && op->r.kind == TNI_KV_DO_COMMAND;

    if (w->log_bytes + bytes > w->node.settings->replay_bytes + (more ? COMMANDS_BYTES : 0)) {
        lack(w, op);
        return false;
    }
    op->copied += bytes;
    w->log_bytes += bytes;
    return true;
}

/* Without rounds a gradient is kept, whatever the limit, while values of some parts lie where it was: the
 * request could not begin anew. */
bool tni_kv_log_copy(tni_kv_worker *w, tni_kv_op *op)
{
    const uint64_t bytes = bytes_of(op);
    const bool logged = is_logged(w, op);
    const bool lands = w->node.async && op->r.out == op->r.in && op->lot->left > 1;

    if (!w->log || op->copy || !bytes || !(logged || lands) || (logged && !charge(w, op, bytes + sizeof *op)))
        return true;
    if ((op->copy = tni_alloc(bytes)))
        tni_kv_bytes_copy(op->copy, op->r.cuts ? (const void *)op->r.cuts : op->r.in, bytes);
    else if (logged)
        lack(w, op);
    return op->copy || logged;
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
    op->ended = op->ended ? op->ended : ++w->ended;
    *(w->log ? &w->log_last->next : &w->log) = op;
    w->log_last = op;
}

void tni_kv_log_mark(tni_kv_worker *w, uint64_t step)
{
    tni_kv_op *mark = w->logs ? tni_zalloc(sizeof *mark) : NULL;

    if (!mark && !w->node.async) /* without rounds a longer log does, too */
        tni_kv_log_clear(w);
    if (!mark)
        return;
    mark->r.kind = TNI_KV_DO_SNAPSHOT;
    mark->r.step = step;
    mark->lot = &w->saves;
    log_append(w, mark);
}

/* It has taken nobody's place. */
static bool original(const tni_kv_worker *w)
{
    return !tni_kv_late_comer(&w->node.view, w->node.incarnation);
}

void tni_kv_log_begin(tni_kv_worker *w)
{
    const tni_kv_settings *s = w->node.settings;

    w->logs = w->node.async ? !tni_kv_worker_rank(w) && (s->replay_bytes || s->snapshot_steps)
                            : s->replay_bytes && original(w);
    w->given = original(w);
    tni_kv_log_mark(w, 0);
}

/* Of a snapshot that failed behind its mark. */
static void mark_drop(tni_kv_worker *w, const tni_kv_op *of)
{
    for (tni_kv_op *op = w->log, *mark; op && (mark = op->next); op = mark)
        if (is_mark(mark) && mark->r.step == of->r.step) {
            op->lost = op->lost || mark->lost;
            op->next = mark->next;
            w->log_last = w->log_last == mark ? op : w->log_last;
            tni_kv_op_free(w, mark);
            return;
        }
}

/* A snapshot is over. Without rounds all servers have written what lies before it. If not, and there were
 * gradients, first values are too old for a server without any snapshot. */
static void saved(tni_kv_worker *w, const tni_kv_op *op, tn_status st)
{
    if (st && op->released)
        mark_drop(w, op);
    if (!st && !op->released)
        tni_kv_log_mark(w, op->r.step);
    if (!st && w->node.async)
        tni_kv_log_trim(w, UINT64_MAX);
    else if (w->pushed)
        w->lacks = true;
}

/* Whether the log needs it; what ended with an error and is needed empties the log. A broken round is part of
 * it, and so is a command whose error others ask for; a round behind the end of the data never was. */
static bool needed(tni_kv_worker *w, tni_kv_op *op, tn_status st)
{
    if (w->node.async && tni_kv_kinds[op->r.kind].pushes && !tni_kv_is_gradient(op->r.what))
        w->lacks = true; /* what was assigned took the place of first values */
    if (!w->logs || !is_logged(w, op) || st == TN_E_CANCELLED)
        return false;
    if (is_mark(op)) {
        saved(w, op, st);
        return false;
    }
    if (st && op->r.kind != TNI_KV_DO_COMMAND && op->r.kind != TNI_KV_DO_BREAK) {
        lack(w, op);
        return false;
    }
    (void)tni_kv_log_copy(w, op);
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

/* What follows `mark`, without further marks, which servers have forgotten. */
static tni_kv_op *log_cut_off(tni_kv_worker *w, tni_kv_op *mark)
{
    tni_kv_op *list = mark->next, **at = &list;

    mark->next = NULL;
    w->log_last = mark;
    while (*at) {
        tni_kv_op *op = *at;

        if (!is_mark(op)) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        tni_kv_op_free(w, op);
    }
    return list;
}

bool tni_kv_log_back(tni_kv_worker *w, uint64_t step)
{
    tni_kv_op *mark;

    if (w->node.async) { /* all of them are empty */
        tni_kv_log_clear(w);
        tni_kv_log_mark(w, step);
        w->lacks = w->given = false;
        return false;
    }
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
    tni_kv_ops_again(w, log_cut_off(w, mark));
    return true;
}

bool tni_kv_log_whole(const tni_kv_worker *w)
{
    return w->log && !w->log->r.step && !w->lacks && w->given;
}

/* A request for a snapshot of our own; NULL: one waits already; or there is no memory; or the program of a
 * worker in another's place, or one that was rolled back, still gives values. */
static tni_kv_op *end_make(const tni_kv_worker *w)
{
    tni_kv_op *end;

    for (const tni_kv_op *op = w->saves.first; op; op = op->after)
        if (op->silent && !op->released)
            return NULL;
    if (!w->given || !(end = tni_zalloc(sizeof *end)))
        return NULL;
    end->r.kind = TNI_KV_DO_SNAPSHOT;
    end->r.step = 1; /* servers count on from theirs */
    end->lot = (tni_kv_lot *)(uintptr_t)&w->saves;
    end->silent = true;
    return end;
}

void tni_kv_log_given(tni_kv_worker *w, const tni_kv_request *r)
{
    const bool gradient = tni_kv_kinds[r->kind].pushes && tni_kv_is_gradient(r->what);
    tni_kv_op *end;

    if (w->given || !w->node.async || tni_kv_worker_rank(w) ||
        !(gradient || r->kind == TNI_KV_DO_END || r->kind == TNI_KV_DO_SNAPSHOT))
        return;
    w->given = true;
    if (r->kind != TNI_KV_DO_SNAPSHOT && (!gradient || w->node.settings->snapshot_steps) &&
        (end = end_make(w))) {
        tni_kv_op_link(w, end);
        tni_kv_ops_start(w);
    }
}

static bool command_lost(const tni_kv_worker *w)
{
    bool lost = !w->log;

    for (const tni_kv_op *op = w->log; op; op = op->next)
        lost = lost || op->lost;
    return lost;
}

/* All begins anew, since a request that has not ended may have ended at that server. While servers recover
 * the scheduler makes them all begin empty where something is not kept. */
void tni_kv_log_again(tni_kv_worker *w)
{
    const bool lost = command_lost(w);
    tni_kv_op *list, **at = &list;

    if (lost && w->node.view.flags & TNI_KV_RECOVERING)
        return;
    if (lost) {
        tni_kv_worker_stop(
            w, tni_error(TN_E_STATE, "a server came back without commands that no snapshot has, and worker "
                                     "0 does not keep them (kvstore.replay_bytes): begin again from a "
                                     "checkpoint"));
        return;
    }
    list = log_cut_off(w, w->log);
    if (list)
        tni_logf(w->node.host.log, TN_LOG_WARNING,
                 "kvstore: a server came back: it gets the first values and commands that no snapshot has; "
                 "later gradients are lost there");
    for (; *at; at = &(*at)->next)
        (*at)->again = (*at)->r.kind == TNI_KV_DO_INIT;
    *at = end_make(w);
    tni_kv_ops_again(w, list);
}

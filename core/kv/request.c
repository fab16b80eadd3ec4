/*
 * A worker's requests. Each key has one under way, cut into pieces, one for each part; a piece is queued at
 * its server's lane, sent when the lane has credit, repeated until it is answered.
 *
 * Invariants: a piece is in `flights` exactly while it is SENT or WAITS, and its cost is counted in its lane
 * exactly while it is SENT. Entries of a heap whose piece has gone on are passed over.
 */
#include <string.h>

#include "kv/worker.h"

#define RETRY_MIN_NS 50000000u
#define RETRY_MAX_NS 2000000000u
#define ASK_NS 1000000000u /* how often one asks for what is held */
#define CACHE_BYTES ((uint64_t)16 << 20) /* values of a round that are more do not stay in caches */

typedef struct kind_row {
    uint8_t type, flags;
    bool fence, pushes, scheduler, value; /* value: an answer brings one */
    const char *name;
    uint8_t time; /* TNI_KV_T_… + 1; 0: none */
} kind_row;

static const kind_row kinds[] = {
    [TNI_KV_DO_INIT] = {TNI_KV_INIT, 0, false, false, false, false, "init of", 0},
    [TNI_KV_DO_PUSH] = {TNI_KV_PUSH, 0, false, true, false, false, "push of", TNI_KV_T_PUSH + 1},
    [TNI_KV_DO_PULL] = {TNI_KV_PULL, 0, false, false, false, true, "pull of", TNI_KV_T_PULL + 1},
    [TNI_KV_DO_PUSHPULL] = {TNI_KV_PUSH, TNI_KV_WANT, false, true, false, true, "pushpull of",
                            TNI_KV_T_PUSHPULL + 1},
    [TNI_KV_DO_COMMAND] = {TNI_KV_COMMAND, 0, true, false, false, false, "command", 0},
    [TNI_KV_DO_SNAPSHOT] = {TNI_KV_SNAPSHOT, 0, true, false, false, false, "snapshot", 0},
    [TNI_KV_DO_BARRIER] = {TNI_KV_BARRIER, 0, true, false, true, false, "barrier", TNI_KV_T_BARRIER + 1},
    [TNI_KV_DO_END] = {TNI_KV_END, 0, true, false, true, false, "end of data", 0},
    [TNI_KV_DO_BYE] = {TNI_KV_BYE, 0, true, false, true, false, "leaving", 0},
    [TNI_KV_DO_BREAK] = {TNI_KV_PUSH, TNI_KV_BROKEN, false, true, false, false, "break of", 0},
};

static const kind_row *kind_of(const tni_kv_op *op)
{
    return &kinds[op->r.kind];
}

static bool has_payload(const tni_kv_op *op)
{
    return op->r.kind == TNI_KV_DO_INIT || op->r.kind == TNI_KV_DO_PUSH || op->r.kind == TNI_KV_DO_PUSHPULL;
}

static uint16_t target(const tni_kv_worker *w, const tni_kv_lot *l, uint32_t piece)
{
    return l == &w->scheduler
               ? TNI_KV_SCHEDULER_NODE
               : TNI_KV_NODE(TNI_KV_SERVER, l->control ? piece : tni_kv_plan_part(&l->plan, piece).server);
}

static tni_kv_lane *lane_of(tni_kv_worker *w, const tni_kv_lot *l, uint32_t piece)
{
    return l == &w->scheduler ? NULL : &w->lanes[TNI_KV_RANK(target(w, l, piece))];
}

/* ---- pieces ---- */

static void piece_land(tni_kv_worker *w, tni_kv_lot *l, uint32_t index, uint8_t state)
{
    tni_kv_piece *p = &l->pieces[index];
    tni_kv_lane *lane = lane_of(w, l, index);
    tni_kv_queued *v = w->flights.data;

    if ((p->state == TNI_KV_WAITS) != (state == TNI_KV_WAITS) && !l->control)
        tni_kv_span(state == TNI_KV_WAITS ? 'b' : 'e', "wait", tni_kv_plan_part(&l->plan, index).key,
                    l->first->round);
    if (p->state == TNI_KV_SENT && lane)
        lane->in_flight -= p->cost;
    if (p->state >= TNI_KV_SENT && state < TNI_KV_SENT) {
        v[p->flight] = v[--w->flights.count];
        v[p->flight].lot->pieces[v[p->flight].piece].flight = p->flight;
    }
    p->state = state;
}

static void retry_at(tni_kv_worker *w, tni_kv_piece *p, uint64_t ns)
{
    const uint64_t least = w->node.settings->retry_ns;
    uint64_t wait = least ? least : ns;

    for (uint32_t i = 1; i < p->tries && wait < RETRY_MAX_NS / 2; i++)
        wait *= 2;
    wait += tni_hash_bytes(p->tries, &p->sequence, 8) % (wait / 4 + 1); /* so that not all come at once */
    p->retry_ns = TNI_KV_BUG(GIVE_UP) && p->tries > 5 ? TNI_KV_NEVER : w->node.now + wait;
    w->retry_ns = p->retry_ns < w->retry_ns ? p->retry_ns : w->retry_ns;
}

static uint64_t answer_time(const tni_kv_lane *lane)
{
    const uint64_t ns = lane ? 4 * lane->answer_ns : 0;

    return ns > RETRY_MIN_NS ? ns : 4u * RETRY_MIN_NS;
}

#ifdef TN_TEST_SWITCHES
static bool all_sent(const tni_kv_lot *l)
{
    bool all = l->left == l->plan.parts;

    for (uint32_t i = 0; all && i < l->plan.parts; i++)
        all = l->pieces[i].state == TNI_KV_SENT;
    return all;
}

static void piece_sent(const tni_kv_lot *l)
{
    const tni_kv_kind kind = l->first->r.kind;

    TNI_KV_POINT_IF(kind == TNI_KV_DO_INIT, init_pushed);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_BARRIER, in_barrier);
    TNI_KV_POINT_IF(has_payload(l->first) && kind_of(l->first)->pushes && l->plan.parts > 1 && !all_sent(l),
                    push_part);
    TNI_KV_POINT_IF(kind_of(l->first)->pushes && all_sent(l), all_sent);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_PULL, pull_asked);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_SNAPSHOT, save_asked);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_BYE, leave_sent);
}
#else
#define piece_sent(l) ((void)0)
#endif

static void piece_send(tni_kv_worker *w, tni_kv_lot *l, uint32_t index)
{
    const tni_kv_op *op = l->first;
    const kind_row *k = kind_of(op);
    tni_kv_piece *p = &l->pieces[index];
    const tni_kv_part part = tni_kv_plan_part(&l->plan, index);
    const bool ask = p->state == TNI_KV_WAITS && k->type == TNI_KV_PUSH;
    const uint32_t code = op->r.kind == TNI_KV_DO_INIT ? 0 : op->r.shrink_log2;
    const uint64_t round_up = ((uint64_t)1 << code) - 1;
    tni_kv_header h = {.type = k->type,
                       .flags = k->flags,
                       .dtype = l->dtype,
                       .what = op->r.what,
                       .priority = (uint8_t)op->r.priority,
                       .round = op->round,
                       .sequence = p->sequence,
                       .key = l->control ? op->r.step : part.key};
    const void *payload = op->r.in;
    uint64_t bytes = l->control ? op->r.bytes : 0;

    h.flags |= (p->tries ? TNI_KV_RETRY : 0) | (ask ? TNI_KV_PROBE : 0);
    h.flags |= op->r.kind == TNI_KV_DO_PULL && (!l->known || op->r.any) ? TNI_KV_ANY : 0;
    if (has_payload(op) && !ask) {
        payload = (const char *)op->r.in + (part.offset >> code);
        bytes = (part.bytes + round_up) >> code;
        w->sending = op->r.cookie;
    }
    *tni_kv_number(&w->node, TNI_KV_N_REPEATED) += p->tries && !ask;
    p->tries++;
    p->sent_ns = w->node.now;
    retry_at(w, p, p->state == TNI_KV_WAITS ? ASK_NS : answer_time(lane_of(w, l, index)));
    tni_kv_node_send(&w->node, target(w, l, index), &h, payload, bytes);
    w->sending = 0;
    piece_sent(l);
}

/* There was no memory: the next tick tries again. */
static void starve(tni_kv_worker *w)
{
    const uint64_t at = w->node.now + RETRY_MIN_NS;

    w->starved = true;
    w->retry_ns = at < w->retry_ns ? at : w->retry_ns;
}

/* Once for each piece. */
static void stall_count(tni_kv_worker *w, tni_kv_piece *p)
{
    *tni_kv_number(&w->node, TNI_KV_N_STALLS) += !p->stalled;
    p->stalled = true;
}

/* Sends the next piece of a lane if it has credit; true if so. One piece may always be under way. */
static bool lane_send(tni_kv_worker *w, tni_kv_lane *lane)
{
    while (lane->heap.count) {
        const tni_kv_queued top = *(const tni_kv_queued *)lane->heap.data;
        tni_kv_piece *p = &top.lot->pieces[top.piece];

        if (p->sequence != top.sequence || p->state != TNI_KV_QUEUED) {
            tni_kv_lane_pop(lane);
            continue;
        }
        if (lane->in_flight && lane->in_flight + p->cost > w->node.settings->credit_bytes) {
            stall_count(w, p);
            return false;
        }
        if (tni_vec_push(&w->flights, &top)) {
            starve(w);
            return false;
        }
        tni_kv_lane_pop(lane);
        p->flight = (uint32_t)w->flights.count - 1;
        p->state = TNI_KV_SENT;
        lane->in_flight += p->cost;
        piece_send(w, top.lot, top.piece);
        return true;
    }
    return false;
}

static void lane_pump(tni_kv_worker *w, tni_kv_lane *lane)
{
    while (lane_send(w, lane))
        ;
}

/* One piece to each server in turn, so that none waits while another is flooded. */
static void lanes_pump(tni_kv_worker *w)
{
    bool more = true;

    while (more) {
        more = false;
        for (uint32_t i = 0; i < w->node.settings->servers; i++)
            more |= lane_send(w, &w->lanes[i]);
    }
}

/* Waits for credit again, with the same sequence; a failure leaves a piece of a lane as it was. */
static tn_status piece_queue(tni_kv_worker *w, tni_kv_lot *l, uint32_t index)
{
    tni_kv_piece *p = &l->pieces[index];
    const tni_kv_queued q = {l, w->order++, p->sequence, index, l->first->r.priority};
    tni_kv_lane *lane = lane_of(w, l, index);
    tn_status st = lane ? tni_kv_lane_push(lane, &q) : TN_OK;

    if (st)
        return st;
    piece_land(w, l, index, TNI_KV_QUEUED);
    if (lane)
        return TN_OK;
    st = tni_vec_push(&w->flights, &q);
    if (st)
        return st;
    p->flight = (uint32_t)w->flights.count - 1;
    p->state = TNI_KV_SENT;
    piece_send(w, l, index);
    return TN_OK;
}

/* ---- operations ---- */

static void op_land(tni_kv_worker *w, const tni_kv_op *op)
{
    for (uint32_t i = 0; op->started && i < op->lot->plan.parts; i++) {
        piece_land(w, op->lot, i, TNI_KV_IDLE);
        op->lot->pieces[i].sequence = 0;
    }
}

static void op_begin(tni_kv_worker *w, tni_kv_op *op)
{
    tni_kv_lot *l = op->lot;
    tn_status st = TN_OK;

    op->started = true;
    op->begun_ns = w->node.now;
    l->left = l->plan.parts;
    l->got = UINT32_MAX;
    if (op->r.kind == TNI_KV_DO_BARRIER)
        op->round = (w->node.view.released > w->barriers ? w->node.view.released : w->barriers) + 1;
    if (op->r.kind == TNI_KV_DO_PULL && op->round > w->node.view.end_round)
        op->round = w->node.view.end_round;
    tni_kv_op_span('b', op, kind_of(op)->name);
    for (uint32_t i = 0; i < l->plan.parts; i++) {
        tni_kv_piece *p = &l->pieces[i];

        p->sequence = (uint64_t)w->node.incarnation << 32 | ++w->counter;
        p->tries = p->missing = 0;
        p->stalled = false;
        p->cost = l->control ? 0 : tni_kv_plan_part(&l->plan, i).bytes;
        if (!st)
            st = piece_queue(w, l, i);
    }
    if (!st) {
        lanes_pump(w);
        return;
    }
    op_land(w, op);
    tni_kv_op_span('e', op, kind_of(op)->name);
    op->started = false;
    starve(w);
}

/* True: begins now. Behind a fence nothing does, and a fence behind something does not. */
static bool op_may(const tni_kv_worker *w, const tni_kv_op *op)
{
    return !op->started && op->lot->first == op && tni_kv_ready(w) && (!kind_of(op)->fence || w->first == op);
}

void tni_kv_ops_start(tni_kv_worker *w)
{
    for (tni_kv_op *op = w->first; op; op = op->next) {
        if (op_may(w, op))
            op_begin(w, op);
        if (kind_of(op)->fence)
            return;
    }
}

static void op_unlink(tni_kv_worker *w, tni_kv_op *op)
{
    tni_kv_op **at = &op->lot->first;

    for (; *at != op; at = &(*at)->after)
        ;
    *at = op->after;
    if (op->lot->last == op) {
        op->lot->last = op->lot->first;
        while (op->lot->last && op->lot->last->after)
            op->lot->last = op->lot->last->after;
    }
    *(op->previous ? &op->previous->next : &w->first) = op->next;
    *(op->next ? &op->next->previous : &w->last) = op->previous;
    w->fences -= kind_of(op)->fence;
    w->op_count--;
}

/* Ends an operation, begins what may begin then, and tells. */
static void op_end(tni_kv_worker *w, tni_kv_op *op, tn_status st)
{
    tni_kv_lot *l = op->lot;
    const bool fence = kind_of(op)->fence, silent = op->silent;
    const uint64_t cookie = op->r.cookie;

    if (!st && kind_of(op)->time)
        tni_kv_op_timed(w, op, kind_of(op)->name, kind_of(op)->time - 1u);
    TNI_KV_POINT_IF(!st && kind_of(op)->value, installed);
    if (op->started)
        tni_kv_op_span('e', op, kind_of(op)->name);
    op_land(w, op);
    op_unlink(w, op);
    tni_free(op);
    if (st)
        lanes_pump(w); /* with the credit of what was given up */
    if (fence || w->fences)
        tni_kv_ops_start(w);
    else if (l->first && op_may(w, l->first))
        op_begin(w, l->first);
    if (!silent)
        w->done(w->node.host.arg, cookie, st);
}

void tni_kv_ops_fail(tni_kv_worker *w, tn_status st)
{
    tni_kv_op *op = w->first, *next;
    tn_err error;

    tni_error_get(&error);
    for (; op; op = op->next) {
        op_land(w, op);
        op->lot->first = op->lot->last = NULL;
    }
    op = w->first;
    w->first = w->last = NULL;
    w->fences = w->op_count = 0;
    for (; op; op = next) {
        const uint64_t cookie = op->r.cookie;
        const bool silent = op->silent;

        next = op->next;
        tni_free(op);
        tni_error_set(&error);
        if (!silent)
            w->done(w->node.host.arg, cookie, st);
    }
}

void tni_kv_ops_free(tni_kv_worker *w)
{
    tni_kv_op *op = w->first, *next;

    for (; op; op = next) {
        next = op->next;
        tni_free(op);
    }
}

void tni_kv_ops_end(tni_kv_worker *w)
{
    const uint32_t end = w->node.view.end_round;
    tni_kv_op *op = w->first, *next;

    for (uint32_t i = 0; i < w->key_count; i++)
        if (w->keys[i] && w->keys[i]->round > end)
            w->keys[i]->round = end;
    for (; op; op = next) {
        next = op->next;
        if (!kind_of(op)->pushes || op->round <= end)
            continue;
        (void)tni_error(TN_E_CANCELLED, "the data of a worker ended: there is no round behind %u", end);
        op_end(w, op, TN_E_CANCELLED);
        next = w->first; /* the callback may have changed the list */
    }
}

static void op_name(const tni_kv_op *op, uint32_t part, char out[96])
{
    if (op->lot->control)
        (void)snprintf(out, 96, "%s", kind_of(op)->name);
    else
        (void)snprintf(out, 96, "%s key %u part %u round %u", kind_of(op)->name, op->r.key, part, op->round);
}

/* Names the first piece that is not there, and for whom it waits. */
static void op_late(tni_kv_worker *w, tni_kv_op *op)
{
    const double seconds = (double)(w->node.now - (op->started ? op->begun_ns : op->deadline_ns)) / 1e9;
    const tni_kv_lot *l = op->lot;
    const tni_kv_piece *p;
    char name[96], peer[24], who[24], ago[40] = "never heard";
    uint32_t i = 0;

    while (op->started && i + 1 < l->plan.parts && l->pieces[i].state == TNI_KV_IDLE)
        i++;
    op_name(op, i, name);
    p = &l->pieces[i];
    if (!op->started) {
        (void)tni_error(TN_E_TIMEOUT, "%s: did not begin, view %u", name, w->node.view.number);
    } else if (p->missing) {
        (void)tni_error(TN_E_TIMEOUT, "%s: waits for %s and %u more for %.1f s, view %u", name,
                        tni_kv_node_name(p->who, who), p->missing - 1, seconds, w->node.view.number);
    } else {
        const uint16_t to = target(w, l, i);
        const uint64_t heard = tni_kv_node_peer(&w->node, to)->heard_ns;
        const char *what = p->state == TNI_KV_QUEUED ? "no credit" : "no answer";

        if (heard)
            (void)snprintf(ago, sizeof ago, "last heard %.1f s ago", (double)(w->node.now - heard) / 1e9);
        (void)tni_error(TN_E_TIMEOUT, "%s: %s from %s for %.1f s, %s, view %u", name, what,
                        tni_kv_node_name(to, peer), seconds, ago, w->node.view.number);
    }
    op_end(w, op, op->r.kind == TNI_KV_DO_BYE ? TN_OK : TN_E_TIMEOUT); /* who leaves needs no answer */
}

/* Each piece of a request that has begun, or the request itself. */
static void op_report(tni_kv_worker *w, const tni_kv_op *op, tni_kv_report *r)
{
    static const uint8_t states[] = {[TNI_KV_QUEUED] = TNI_KV_WAIT_CREDIT,
                                     [TNI_KV_SENT] = TNI_KV_WAIT_ANSWER,
                                     [TNI_KV_WAITS] = TNI_KV_WAIT_HELD};
    const tni_kv_lot *l = op->lot;

    for (uint32_t i = 0; i < (op->started ? l->plan.parts : 1); i++) {
        const tni_kv_piece *p = &l->pieces[i];
        tni_kv_wait wait = {.kind = (uint8_t)op->r.kind,
                            .state = op->started ? states[p->state] : TNI_KV_WAIT_BEHIND,
                            .at = target(w, l, i),
                            .part = (uint16_t)i,
                            .key = l->control ? 0 : op->r.key,
                            .round = op->round};

        if (op->started && p->state == TNI_KV_IDLE)
            continue;
        if (op->started) {
            wait.age_ms = tni_kv_ago_ms(&w->node, op->begun_ns);
            wait.missing = p->missing;
            wait.who = p->who;
        }
        wait.heard_ms = tni_kv_ago_ms(&w->node, tni_kv_node_peer(&w->node, wait.at)->heard_ns);
        tni_kv_report_wait(r, &wait);
    }
}

void tni_kv_ops_report(tni_kv_worker *w, const tni_kv_header *ask)
{
    tni_kv_report r;

    if (ask->from != TNI_KV_SCHEDULER_NODE)
        return;
    tni_kv_node_report(&w->node, &r);
    r.numbers[TNI_KV_N_REQUESTS] = w->op_count;
    r.numbers[TNI_KV_N_ROUND_MIN] = UINT64_MAX;
    for (const tni_kv_op *op = w->first; op; op = op->next)
        op_report(w, op, &r);
    for (uint32_t i = 0; i < w->key_count; i++) {
        const tni_kv_lot *l = w->keys[i];

        if (!l)
            continue;
        tni_kv_report_row(&r, i, &l->cost);
        r.numbers[TNI_KV_N_PARTS] += l->plan.parts;
        r.numbers[TNI_KV_N_ROUND_MIN] =
            l->round < r.numbers[TNI_KV_N_ROUND_MIN] ? l->round : r.numbers[TNI_KV_N_ROUND_MIN];
        r.numbers[TNI_KV_N_ROUND_MAX] =
            l->round > r.numbers[TNI_KV_N_ROUND_MAX] ? l->round : r.numbers[TNI_KV_N_ROUND_MAX];
    }
    if (!r.numbers[TNI_KV_N_PARTS])
        r.numbers[TNI_KV_N_ROUND_MIN] = 0;
    tni_kv_node_report_send(&w->node, ask, &r, NULL);
}

/* ---- answers ---- */

static tni_kv_lot *answer_lot(tni_kv_worker *w, const tni_kv_header *h, uint32_t *piece)
{
    const uint64_t key = h->key >> 16;
    tni_kv_lot *l;

    *piece = 0;
    if (h->from == TNI_KV_SCHEDULER_NODE)
        return &w->scheduler;
    *piece = TNI_KV_RANK(h->from);
    if (w->servers.pieces[*piece].sequence == h->sequence)
        return &w->servers;
    *piece = (uint32_t)(h->key & 0xffff);
    l = key < w->key_count ? w->keys[key] : NULL;
    return l && *piece < l->plan.parts && target(w, l, *piece) == h->from ? l : NULL;
}

static void piece_done(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece, const tni_kv_header *h)
{
    tni_kv_op *op = l->first;
    tni_kv_piece *p = &l->pieces[piece];
    tni_kv_lane *lane = lane_of(w, l, piece);

    piece_land(w, l, piece, TNI_KV_IDLE);
    p->sequence = 0;
    l->got = h->round < l->got ? h->round : l->got;
    l->left--;
    TNI_KV_POINT_IF(l->left && kind_of(op)->pushes, half_acked);
    TNI_KV_POINT_IF(l->left && kind_of(op)->value, pull_in_half);
    TNI_KV_POINT_IF(l->left && op->r.kind == TNI_KV_DO_SNAPSHOT, save_half);
    if (l->left == 0) {
        if (!l->control && !l->known && (op->r.kind == TNI_KV_DO_INIT || op->r.kind == TNI_KV_DO_PULL)) {
            l->known = true;
            l->round = l->got;
        }
        if (op->r.kind == TNI_KV_DO_BARRIER)
            w->barriers = l->got > op->round ? l->got : op->round;
        op_end(w, op, TN_OK);
    }
    if (lane)
        lane_pump(w, lane);
}

static void op_void(tni_kv_worker *w, tni_kv_lot *l, const uint8_t *payload, uint64_t bytes)
{
    const uint32_t round = l->first->round, key = l->first->r.key;
    char who[24] = "a worker";
    tn_err error;

    if (bytes >= 2)
        (void)tni_kv_node_name((uint16_t)tni_kv_get(payload, 2), who);
    (void)tni_error(TN_E_STATE, "key %u round %u: the step was broken by %s", key, round, who);
    tni_error_get(&error);
    if (!w->broken)
        (void)tni_kv_worker_break(w, round, w->node.now);
    tni_error_set(&error);
    op_end(w, l->first, TN_E_STATE);
}

static void op_failed(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece, const tni_kv_header *h,
                      const uint8_t *payload)
{
    tn_status st = h->bytes >= 4 ? (tn_status)tni_kv_get(payload, 4) : TN_E_PEER;
    const uint64_t length = h->bytes < 4 ? 0 : h->bytes - 4;
    char name[96], peer[24];

    if (st <= TN_OK || st > TN_E_INTERNAL)
        st = TN_E_PEER;
    op_name(l->first, piece, name);
    (void)tni_error(st, "%s: %s says: %.*s", name, tni_kv_node_name(h->from, peer),
                    (int)(length < 396 ? length : 396), length ? (const char *)payload + 4 : "");
    op_end(w, l->first, st);
}

static void value_take(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece, const tni_kv_header *h,
                       const uint8_t *payload)
{
    const tni_kv_part part = tni_kv_plan_part(&l->plan, piece);
    tni_kv_op *op = l->first;
    void *landing;

    if (l->control || !kind_of(op)->value || h->bytes != part.bytes || h->dtype != l->dtype)
        return;
    if (op->r.land && (landing = op->r.land(op->r.land_arg)))
        op->r.out = landing;
    op->r.land = NULL;
    if (op->r.out && part.bytes)
        (w->value_bytes > CACHE_BYTES ? tni_kv_bytes_store : tni_kv_bytes_copy)(
            (char *)op->r.out + part.offset, payload, part.bytes);
    piece_done(w, l, piece, h);
}

void tni_kv_ops_answer(tni_kv_worker *w, const tni_kv_header *h, const uint8_t *payload)
{
    uint32_t piece;
    tni_kv_lot *l = answer_lot(w, h, &piece);
    tni_kv_lane *lane;
    tni_kv_piece *p;
    bool asked;

    if (!l || !h->sequence || l->pieces[piece].sequence != h->sequence ||
        l->pieces[piece].state < TNI_KV_SENT)
        return;
    p = &l->pieces[piece];
    lane = lane_of(w, l, piece);
    if (lane && p->state == TNI_KV_SENT) /* of the last try: too short at worst, which the next one mends */
        lane->answer_ns = (7 * lane->answer_ns + (w->node.now - p->sent_ns)) / 8;
    if (h->type == TNI_KV_VALUE) {
        value_take(w, l, piece, h, payload);
        return;
    }
    p->who = h->bytes == 8 ? (uint16_t)tni_kv_get(payload, 2) : 0;
    p->missing = h->bytes == 8 ? (uint32_t)tni_kv_get(payload + 4, 4) : 0;
    switch (h->what) {
    case TNI_KV_APPLIED:
        if (!kind_of(l->first)->value)
            piece_done(w, l, piece, h);
        break;
    case TNI_KV_HELD:
        piece_land(w, l, piece, TNI_KV_WAITS);
        p->tries = 1;
        retry_at(w, p, ASK_NS);
        if (lane)
            lane_pump(w, lane);
        break;
    case TNI_KV_ABSENT: /* lost by the server: at once; not there yet: later */
        asked = p->state == TNI_KV_WAITS;
        if (asked && !piece_queue(w, l, piece) && lane)
            lane_pump(w, lane);
        break;
    case TNI_KV_VOID:
        if (l->first->r.kind == TNI_KV_DO_BREAK)
            piece_done(w, l, piece, h); /* another worker broke it before */
        else
            op_void(w, l, payload, h->bytes);
        break;
    case TNI_KV_FAILED:
        op_failed(w, l, piece, h, payload);
        break;
    default: /* BUSY: the retry comes */
        break;
    }
}

/* ---- time ---- */

static void deadlines_check(tni_kv_worker *w)
{
    tni_kv_op *op, *late;

    do {
        late = NULL;
        w->deadline_ns = TNI_KV_NEVER;
        for (op = w->first; op && !late; op = op->next)
            if (op->deadline_ns <= w->node.now)
                late = op;
            else if (op->deadline_ns < w->deadline_ns)
                w->deadline_ns = op->deadline_ns;
        if (late)
            op_late(w, late);
    } while (late);
}

/* What there was no memory for. */
static void feed(tni_kv_worker *w)
{
    w->starved = false;
    if (w->break_round)
        (void)tni_kv_worker_break(w, w->break_round, w->node.now);
    tni_kv_ops_start(w);
    lanes_pump(w);
}

void tni_kv_ops_tick(tni_kv_worker *w)
{
    if (w->node.now >= w->retry_ns) {
        w->retry_ns = TNI_KV_NEVER;
        for (size_t i = 0; i < w->flights.count; i++) {
            const tni_kv_queued *q = tni_vec_at(&w->flights, i);
            tni_kv_piece *p = &q->lot->pieces[q->piece];

            if (p->retry_ns <= w->node.now)
                piece_send(w, q->lot, q->piece);
            else if (p->retry_ns < w->retry_ns)
                w->retry_ns = p->retry_ns;
        }
        if (w->starved)
            feed(w);
    }
    if (w->node.now >= w->deadline_ns && !TNI_KV_BUG(NO_DEADLINE))
        deadlines_check(w);
    for (tni_kv_op *op = w->first; TNI_KV_BUG(LIVE_BUFFER) && op; op = op->next)
        if (op->started && !op->silent && op->r.kind == TNI_KV_DO_PUSHPULL) {
            op->silent = true;
            w->done(w->node.host.arg, op->r.cookie, TN_OK);
            break;
        }
}

/* ---- requests ---- */

static tn_status request_check(const tni_kv_worker *w, const tni_kv_request *r, tni_kv_lot **lot)
{
    const kind_row *k = &kinds[r->kind];
    tni_kv_lot *l;

    if (w->over) {
        tni_error_set(&w->error);
        return w->status;
    }
    if (w->op_count >= TNI_KV_OPS_MAX)
        return tni_error(TN_E_NOMEM, "%u requests wait already", w->op_count);
    if (k->fence) {
        *lot = (tni_kv_lot *)(k->scheduler ? &w->scheduler : &w->servers);
        if (r->kind == TNI_KV_DO_COMMAND && r->bytes > TNI_KV_COMMAND_MAX)
            return tni_error(TN_E_ARG, "command of %llu bytes, at most %u", (unsigned long long)r->bytes,
                             TNI_KV_COMMAND_MAX);
        if ((r->kind == TNI_KV_DO_SNAPSHOT && !r->step) ||
            (r->kind == TNI_KV_DO_END && r->step >= UINT32_MAX))
            return tni_error(TN_E_ARG, "%s at step %llu", k->name, (unsigned long long)r->step);
        return TN_OK;
    }
    l = r->key < w->key_count ? w->keys[r->key] : NULL;
    if (!l)
        return tni_error(TN_E_KEY, "key %u is not known to this worker", r->key);
    *lot = l;
    if (!k->pushes)
        return TN_OK;
    if (!l->known)
        return tni_error(TN_E_STATE, "key %u: its round is not known here; pull it first", r->key);
    if (w->broken && r->kind != TNI_KV_DO_BREAK)
        return tni_error(TN_E_STATE, "a step was broken: pull the values, then resume");
    if (l->round >= w->node.view.end_round)
        return tni_error(TN_E_CANCELLED, "the data of a worker ended: there is no round behind %u",
                         w->node.view.end_round);
    return TN_OK;
}

tn_status tni_kv_worker_request(tni_kv_worker *w, const tni_kv_request *r, uint64_t now)
{
    const tni_kv_settings *o = w->node.settings;
    tni_kv_lot *l = NULL;
    tni_kv_op *op;
    tn_status st;

    w->node.now = now;
    if ((uint32_t)r->kind > TNI_KV_DO_BREAK)
        return tni_error(TN_E_ARG, "request of kind %d", (int)r->kind);
    st = request_check(w, r, &l);
    if (st)
        return st;
    op = tni_zalloc(sizeof *op);
    if (!op) {
        if (kinds[r->kind].pushes && r->kind != TNI_KV_DO_BREAK)
            (void)tni_kv_worker_break(w, l->round + 1, now); /* the others would wait for it */
        return TN_E_NOMEM;
    }
    op->r = *r;
    op->lot = l;
    op->silent = r->kind == TNI_KV_DO_BREAK;
    op->deadline_ns =
        kinds[r->kind].fence && r->kind != TNI_KV_DO_END ? o->control_timeout_ns : o->timeout_ns;
    op->deadline_ns += now;
    w->deadline_ns = op->deadline_ns < w->deadline_ns ? op->deadline_ns : w->deadline_ns;
    l->round += kinds[r->kind].pushes;
    op->round = l->control ? (uint32_t)r->step : l->round;
    op->previous = w->last;
    *(w->last ? &w->last->next : &w->first) = op;
    w->last = op;
    *(l->last ? &l->last->after : &l->first) = op;
    l->last = op;
    w->op_count++;
    w->fences += kinds[r->kind].fence;
    if (op_may(w, op) && (w->fences == 0 || w->first == op))
        op_begin(w, op);
    return TN_OK;
}

tn_status tni_kv_worker_break(tni_kv_worker *w, uint32_t round, uint64_t now)
{
    const uint32_t last = round < w->node.view.end_round ? round : w->node.view.end_round;
    tn_status st = TN_OK;

    w->broken = true;
    w->break_round = 0;
    for (uint32_t i = 0; !st && i < w->key_count; i++)
        while (!st && w->keys[i] && w->keys[i]->known && w->keys[i]->round < last) {
            const tni_kv_request r = {.kind = TNI_KV_DO_BREAK, .key = i, .priority = 255};

            st = tni_kv_worker_request(w, &r, now);
        }
    if (st == TN_E_NOMEM) { /* the rest of it, later */
        w->break_round = round;
        starve(w);
        st = TN_OK;
    }
    return st;
}

/*
 * A worker's requests. Each key has one under way, cut into pieces, one for each part; a piece is queued at
 * its server's lane, sent when the lane has credit, repeated until it is answered.
 *
 * Invariants: a piece is in `flights` exactly while it is SENT or WAITS, and its cost is counted in its lane
 * exactly while it is SENT. Entries of a heap whose piece has gone on are passed over.
 */
#include <string.h>

#include "kv/rows.h"
#include "kv/update.h"
#include "kv/worker.h"

#define RETRY_MIN_NS 50000000u
#define RETRY_MAX_NS 2000000000u
#define CACHE_BYTES ((uint64_t)16 << 20) /* values of a round that are more do not stay in caches */

uint16_t tni_kv_op_target(const tni_kv_worker *w, const tni_kv_lot *l, uint32_t piece)
{
    return l == &w->scheduler
               ? TNI_KV_SCHEDULER_NODE
               : TNI_KV_NODE(TNI_KV_SERVER, l->control ? piece : tni_kv_plan_part(&l->plan, piece).server);
}

static tni_kv_lane *lane_of(tni_kv_worker *w, const tni_kv_lot *l, uint32_t piece)
{
    return l == &w->scheduler ? NULL : &w->lanes[TNI_KV_RANK(tni_kv_op_target(w, l, piece))];
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

static void piece_send(tni_kv_worker *w, tni_kv_lot *l, uint32_t index)
{
    const tni_kv_op *op = l->first;
    const tni_kv_kind_row *k = tni_kv_op_kind(op);
    tni_kv_piece *p = &l->pieces[index];
    const tni_kv_part part = tni_kv_plan_part(&l->plan, index);
    const bool ask = p->last && k->type == TNI_KV_PUSH && tni_kv_op_sends(op);
    const uint32_t code = op->r.kind == TNI_KV_DO_INIT ? 0 : op->r.shrink_log2;
    const uint64_t round_up = ((uint64_t)1 << code) - 1;
    const tni_kv_cut *c = op->r.cuts;
    tni_kv_header h = {.type = k->type,
                       .flags = k->flags,
                       .dtype = l->dtype,
                       .what = op->r.what,
                       .priority = (uint8_t)op->r.priority,
                       .alone = ask && p->cost > TNI_KV_SMALL_MAX,
                       .round = op->round,
                       .sequence = p->sequence,
                       .key = l->control ? op->r.step : part.key};
    const void *payload = op->r.in;
    uint64_t bytes = l->control ? op->r.bytes : 0;

    h.flags |= (p->tries ? TNI_KV_RETRY : 0) | (ask ? TNI_KV_PROBE : 0) | (op->again ? TNI_KV_LOST : 0);
    h.flags |= op->r.kind == TNI_KV_DO_PULL && (!l->known || op->r.any) ? TNI_KV_ANY : 0;
    if (!ask && (c || tni_kv_op_sends(op))) {
        payload = (const char *)op->r.in + (c ? c[index].at : part.offset >> code);
        bytes = c ? c[index + 1].at - c[index].at : (part.bytes + round_up) >> code;
        w->sending = op->own ? 0 : op->r.cookie;
    }
    *tni_kv_number(&w->node, TNI_KV_N_REPEATED) += p->tries && !ask;
    p->tries++;
    p->last = ask ? TNI_KV_SEND_PROBE : TNI_KV_SEND_ALL;
    p->sent_ns = w->node.now;
    retry_at(w, p, p->state == TNI_KV_WAITS ? TNI_KV_ASK_NS : answer_time(lane_of(w, l, index)));
    tni_kv_node_send(&w->node, tni_kv_op_target(w, l, index), &h, payload, bytes);
    w->sending = 0;
    tni_kv_op_sent(l);
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

/* Bytes of a piece, there or back. */
static uint64_t op_cost(const tni_kv_op *op, uint32_t i)
{
    const tni_kv_cut *c = op->r.cuts;

    if (op->lot->control)
        return 0;
    return c ? c[i + 1].at - c[i].at + (c[i + 1].row - c[i].row) * op->r.row_bytes
             : tni_kv_plan_part(&op->lot->plan, i).bytes;
}

static void op_begin(tni_kv_worker *w, tni_kv_op *op)
{
    tni_kv_lot *l = op->lot;
    tn_status st = TN_OK;

    op->started = true;
    op->begun_ns = w->node.now;
    op->behind = op->sequence ? op->behind : w->ended;
    l->left = l->plan.parts;
    if (!op->sequence || op->r.kind != TNI_KV_DO_COMMAND) { /* servers know by it what they have done */
        op->sequence = ((uint64_t)w->node.incarnation << 32) + w->counter + 1;
        w->counter += l->plan.parts;
    }
    if (op->r.kind == TNI_KV_DO_BARRIER && !op->round)
        op->round = (w->node.view.released > w->barriers ? w->node.view.released : w->barriers) + 1;
    if (op->r.kind == TNI_KV_DO_PULL && op->round > w->node.view.end_round)
        op->round = w->node.view.end_round;
    tni_kv_op_span('b', op, tni_kv_op_kind(op)->name);
    for (uint32_t i = 0; i < l->plan.parts; i++) {
        tni_kv_piece *p = &l->pieces[i];

        p->sequence = op->sequence + i;
        p->tries = p->missing = 0;
        p->last = TNI_KV_SEND_NONE;
        p->stalled = false;
        p->cost = op_cost(op, i);
        if (!st)
            st = piece_queue(w, l, i);
    }
    if (!st) {
        lanes_pump(w);
        return;
    }
    op_land(w, op);
    tni_kv_op_span('e', op, tni_kv_op_kind(op)->name);
    op->started = false;
    starve(w);
}

/* True: begins now. Behind a fence nothing does, and a fence behind something does not. */
static bool op_may(const tni_kv_worker *w, const tni_kv_op *op)
{
    return !op->started && op->lot->first == op && tni_kv_ready(w) &&
           (!tni_kv_op_kind(op)->fence || w->first == op);
}

/* What is sent again keeps its order: a request begins behind all that had ended when it was asked for, or
 * began, the first time. So keys stay in step, and who takes this worker's place finds one step torn at most:
 * it pushes that again. */
void tni_kv_ops_start(tni_kv_worker *w)
{
    uint64_t oldest = UINT64_MAX; /* place of the first one that is sent again */

    for (tni_kv_op *op = w->first; op && op->rest_behind < oldest; op = op->next) {
        if (op->behind < oldest && op_may(w, op))
            op_begin(w, op);
        if (op->ended && op->ended < oldest)
            oldest = op->ended;
        if (tni_kv_op_kind(op)->fence)
            return;
    }
}

/* A snapshot that servers still write is forgotten. */
static void save_drop(tni_kv_worker *w)
{
    tni_kv_op *op = w->saves.first;

    if (!op || !op->released)
        return;
    op_land(w, op);
    tni_kv_op_unlink(w, op);
    tni_kv_op_free(w, op);
}

/* Ends an operation, begins what may begin then, and tells. */
static void op_end(tni_kv_worker *w, tni_kv_op *op, tn_status st)
{
    tni_kv_lot *l = op->lot;
    const bool frees = tni_kv_op_kind(op)->fence || op->ended, silent = op->silent; /* other keys' */
    const uint64_t cookie = op->r.cookie;

    if (st && op->r.kind == TNI_KV_DO_SNAPSHOT)
        tni_logf(w->node.host.log, TN_LOG_WARNING, "kvstore: no snapshot of step %llu: %s",
                 (unsigned long long)op->r.step, tni_error_message());
    if (!st && tni_kv_op_kind(op)->time)
        tni_kv_op_timed(w, op, tni_kv_op_kind(op)->name, tni_kv_op_kind(op)->time - 1u);
    TNI_KV_POINT_IF(!st && tni_kv_op_kind(op)->value, installed);
    if (op->started)
        tni_kv_op_span('e', op, tni_kv_op_kind(op)->name);
    op_land(w, op);
    tni_kv_op_unlink(w, op);
    tni_kv_log_take(w, op, st);
    if (st)
        lanes_pump(w); /* with the credit of what was given up */
    if (frees || w->fences || (w->first && w->first->ended))
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
    save_drop(w);
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
        tni_kv_op_free(w, op);
        tni_error_set(&error);
        if (!silent)
            w->done(w->node.host.arg, cookie, st);
    }
}

void tni_kv_ops_again(tni_kv_worker *w, tni_kv_op *before)
{
    tni_kv_op *lists[2] = {before, w->first}, *next;

    save_drop(w);
    for (tni_kv_op *op = w->first; op; op = op->next) {
        if (op->started)
            tni_kv_op_span('e', op, tni_kv_op_kind(op)->name);
        op_land(w, op);
        op->started = false;
        if (op->copy)
            tni_kv_log_use(op);
        op->lot->first = op->lot->last = NULL;
    }
    w->first = w->last = NULL;
    w->fences = w->op_count = 0;
    for (int i = 0; i < 2; i++)
        for (tni_kv_op *op = lists[i]; op; op = next) {
            next = op->next;
            tni_kv_op_link(w, op);
        }
    for (tni_kv_op *op = w->last; op; op = op->previous)
        op->rest_behind = op->next && op->next->rest_behind < op->behind ? op->next->rest_behind : op->behind;
}

void tni_kv_ops_free(tni_kv_worker *w)
{
    tni_kv_op *op = w->first, *next;

    save_drop(w);
    for (; op; op = next) {
        next = op->next;
        tni_kv_op_free(w, op);
    }
    tni_kv_log_clear(w);
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
        if (!tni_kv_op_kind(op)->pushes || op->round <= end)
            continue;
        (void)tni_error(TN_E_CANCELLED, "the data of a worker ended: there is no round behind %u", end);
        op_end(w, op, TN_E_CANCELLED);
        next = w->first; /* the callback may have changed the list */
    }
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
    if (w->saves.pieces[*piece].sequence == h->sequence)
        return &w->saves;
    *piece = (uint32_t)(h->key & 0xffff);
    l = key < w->key_count ? w->keys[key] : NULL;
    return l && *piece < l->plan.parts && tni_kv_op_target(w, l, *piece) == h->from ? l : NULL;
}

/* All servers have copied what they hold: the program goes on while they write. */
static void save_release(tni_kv_worker *w)
{
    tni_kv_op *op = w->saves.first;
    const uint64_t cookie = op->r.cookie;
    const bool silent = op->silent;

    for (uint32_t i = 0; i < w->saves.plan.parts; i++)
        if (w->saves.pieces[i].state == TNI_KV_QUEUED || w->saves.pieces[i].state == TNI_KV_SENT)
            return;
    if (op->released)
        return;
    tni_kv_op_leave(w, op);
    op->released = op->silent = true;
    op->deadline_ns = w->node.now + w->node.settings->timeout_ns;
    w->deadline_ns = op->deadline_ns < w->deadline_ns ? op->deadline_ns : w->deadline_ns;
    tni_kv_log_mark(w, op->r.step);
    tni_kv_ops_start(w);
    if (!silent)
        w->done(w->node.host.arg, cookie, TN_OK);
}

static void piece_done(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece, const tni_kv_header *h)
{
    tni_kv_op *op = l->first;
    tni_kv_piece *p = &l->pieces[piece];
    tni_kv_lane *lane = lane_of(w, l, piece);

    piece_land(w, l, piece, TNI_KV_IDLE);
    p->sequence = 0;
    tni_kv_lot_got(l, h->round, h->flags & TNI_KV_LOST, w->node.async);
    l->left--;
    TNI_KV_POINT_IF(l->left && tni_kv_op_kind(op)->pushes, half_acked);
    TNI_KV_POINT_IF(l->left && tni_kv_op_kind(op)->value, pull_in_half);
    TNI_KV_POINT_IF(l->left && op->r.kind == TNI_KV_DO_SNAPSHOT, save_half);
    if (l->left == 0) {
        /* Of the process before this one a round may complete between this one's init and a later answer: the
         * key's round is then that of the answer, unless this one has asked for more meanwhile. It is also
         * that of a value which this one goes back to. */
        if ((op->r.kind == TNI_KV_DO_INIT || op->r.kind == TNI_KV_DO_PULL) &&
            (!l->known || (l->last == op && (l->got > l->round || tni_kv_of_parity(op->r.what))))) {
            l->known = true;
            l->round = l->got;
        }
        if (op->r.kind == TNI_KV_DO_BARRIER)
            w->barriers = l->got > op->round ? l->got : op->round;
        op_end(w, op, TN_OK);
    } else if (l == &w->saves) {
        save_release(w);
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
    l->first->r.kind = TNI_KV_DO_BREAK; /* what it came to */
    op_end(w, l->first, TN_E_STATE);
}

static void value_take(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece, const tni_kv_header *h,
                       const uint8_t *payload)
{
    tni_kv_part part = tni_kv_plan_part(&l->plan, piece);
    tni_kv_op *op = l->first;
    void *landing;

    if (op->r.cuts && op->r.kind == TNI_KV_DO_PULL) {
        part.offset = op->r.cuts[piece].row * op->r.row_bytes;
        part.bytes = op->r.cuts[piece + 1].row * op->r.row_bytes - part.offset;
    }

    if (l->control || !tni_kv_op_kind(op)->value || h->bytes != part.bytes || h->dtype != l->dtype)
        return;
    if (!TNI_KV_BUG(REPLAY_LATE) && !tni_kv_log_copy(w, op)) /* the value may land where the gradient is */
        return;
    if (op->r.land && (landing = op->r.land(op->r.land_arg)))
        op->r.out = landing;
    op->r.land = NULL;
    if (op->r.out && part.bytes)
        (w->value_bytes > CACHE_BYTES ? tni_kv_bytes_store : tni_kv_bytes_copy)(
            (char *)op->r.out + part.offset, payload, part.bytes);
    piece_done(w, l, piece, h);
}

/* Its bytes are not under way any more. */
static void piece_wait(tni_kv_worker *w, tni_kv_lot *l, uint32_t piece)
{
    tni_kv_lane *lane = lane_of(w, l, piece);

    piece_land(w, l, piece, TNI_KV_WAITS);
    if (l == &w->saves)
        save_release(w);
    if (lane)
        lane_pump(w, lane);
}

void tni_kv_ops_answer(tni_kv_worker *w, const tni_kv_header *h, const uint8_t *payload)
{
    uint32_t piece;
    tni_kv_lot *l = answer_lot(w, h, &piece);
    tni_kv_lane *lane;
    tni_kv_piece *p;

    if (!l || !h->sequence || l->pieces[piece].sequence != h->sequence ||
        l->pieces[piece].state < TNI_KV_SENT)
        return;
    p = &l->pieces[piece];
    lane = lane_of(w, l, piece);
    if (lane && p->state == TNI_KV_SENT) /* of the last try: too short at worst, which the next one mends */
        lane->answer_ns = (7 * lane->answer_ns + (w->node.now - p->sent_ns)) / 8;
    if (h->type == TNI_KV_VALUE) {
        if (lane)
            lane->value_ns = w->node.now;
        value_take(w, l, piece, h, payload);
        return;
    }
    if (h->bytes == 8) { /* else the error of one that is late names whom it waited for before */
        p->who = (uint16_t)tni_kv_get(payload, 2);
        p->missing = (uint32_t)tni_kv_get(payload + 4, 4);
    }
    switch (h->what) {
    case TNI_KV_APPLIED:
        if (!tni_kv_op_kind(l->first)->value)
            piece_done(w, l, piece, h);
        else if (l->first->r.cuts && p->state == TNI_KV_WAITS && !piece_queue(w, l, piece) && lane)
            lane_pump(w, lane); /* its rows are there now */
        break;
    case TNI_KV_HELD:
        p->tries = 1;
        retry_at(w, p, TNI_KV_ASK_NS);
        piece_wait(w, l, piece);
        break;
    case TNI_KV_ABSENT: /* lost on its way or by the server: at once; the part is not there yet: later */
        if (p->last == TNI_KV_SEND_PROBE && !piece_queue(w, l, piece)) {
            p->last = TNI_KV_SEND_NONE;
            lane_pump(w, lane);
        }
        break;
    case TNI_KV_VOID:
        if (l->first->r.kind == TNI_KV_DO_BREAK)
            piece_done(w, l, piece, h); /* another worker broke it before */
        else
            op_void(w, l, payload, h->bytes);
        break;
    case TNI_KV_FAILED:
        op_end(w, l->first, tni_kv_op_refused(l, piece, h, payload));
        break;
    default: /* BUSY: the retry comes. A server may want what waits here behind it before it has room again */
        if (!l->control)
            piece_wait(w, l, piece);
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
        op = w->saves.first; /* released ones are in no list */
        if (op && op->deadline_ns <= w->node.now)
            late = op;
        else if (op)
            w->deadline_ns = op->deadline_ns;
        for (op = w->first; op && !late; op = op->next)
            if (op->deadline_ns <= w->node.now)
                late = op;
            else if (op->deadline_ns < w->deadline_ns)
                w->deadline_ns = op->deadline_ns;
        if (late) {
            tni_kv_op_late(w, late);
            op_end(w, late, late->r.kind == TNI_KV_DO_BYE ? TN_OK : TN_E_TIMEOUT); /* who leaves needs no
                                                                                     answer */
        }
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
                tni_kv_value_await(w, lane_of(w, q->lot, q->piece), q->lot->first, p);
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
    const tni_kv_kind_row *k = &tni_kv_kinds[r->kind];
    tni_kv_lot *l;

    if (w->over) {
        tni_error_set(&w->error);
        return w->status;
    }
    if (w->op_count >= TNI_KV_OPS_MAX)
        return tni_error(TN_E_NOMEM, "%u requests wait already", w->op_count);
    if (k->fence) {
        *lot = (tni_kv_lot *)(k->scheduler                    ? &w->scheduler
                              : r->kind == TNI_KV_DO_SNAPSHOT ? &w->saves
                                                              : &w->servers);
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

/* Of keys that have had fewer rounds than others. */
static tn_status lasts_request(tni_kv_worker *w, uint64_t step, uint64_t now)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < w->key_count; i++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_LAST, .key = i, .priority = 255};

        if (w->keys[i] && w->keys[i]->known && w->keys[i]->round < step)
            st = tni_kv_worker_request(w, &r, now);
    }
    return st;
}

tn_status tni_kv_worker_request(tni_kv_worker *w, const tni_kv_request *r, uint64_t now)
{
    const tni_kv_request end = {.kind = TNI_KV_DO_END};
    tni_kv_lot *l = NULL;
    tni_kv_op *op;
    tn_err error;
    tn_status st;

    w->node.now = now;
    if ((uint32_t)r->kind > TNI_KV_DO_LAST)
        return tni_error(TN_E_ARG, "request of kind %d", (int)r->kind);
    st = request_check(w, r, &l);
    if (!st && r->kind == TNI_KV_DO_END)
        st = lasts_request(w, r->step, now);
    if (st == TN_E_CANCELLED && !w->over) { /* behind the end of the data */
        tni_error_get(&error);
        tni_kv_log_given(w, &end);
        tni_error_set(&error);
    }
    if (st)
        return st;
    tni_kv_log_given(w, r);
    op = tni_zalloc(sizeof *op);
    if (!op) {
        if (tni_kv_kinds[r->kind].pushes && r->kind != TNI_KV_DO_BREAK)
            (void)tni_kv_worker_break(w, l->round + 1, now); /* the others would wait for it */
        return TN_E_NOMEM;
    }
    *op = (tni_kv_op){.r = *r, .lot = l, .silent = r->kind >= TNI_KV_DO_BREAK, .behind = w->ended};
    if (tni_kv_kinds[r->kind].pushes)
        tni_kv_step_again(w, l, r->what);
    l->round += tni_kv_kinds[r->kind].pushes;
    op->round = l->control ? (uint32_t)r->step : l->round + (r->kind == TNI_KV_DO_LAST);
    tni_kv_op_link(w, op);
    if (op_may(w, op) && !w->first->ended && (w->fences == 0 || w->first == op))
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

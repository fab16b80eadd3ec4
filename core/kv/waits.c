/* What a worker's requests wait for: in errors of late ones, and in its report. */
#include "kv/worker.h"

#define AWAIT_NS 8000000000u /* the longest that others' values put a question off */

void tni_kv_op_name(const tni_kv_op *op, uint32_t part, char out[96])
{
    if (op->lot->control)
        (void)snprintf(out, 96, "%s", tni_kv_op_kind(op)->name);
    else
        (void)snprintf(out, 96, "%s key %u part %u round %u", tni_kv_op_kind(op)->name, op->r.key, part,
                       op->round);
}

/* Names the first piece that is not there, and for whom it waits. */
void tni_kv_op_late(tni_kv_worker *w, const tni_kv_op *op)
{
    const double seconds = (double)(w->node.now - (op->started ? op->begun_ns : op->deadline_ns)) / 1e9;
    const tni_kv_lot *l = op->lot;
    const tni_kv_piece *p;
    char name[96], peer[24], who[24], ago[40] = "never heard";
    uint32_t i = 0;

    while (op->started && i + 1 < l->plan.parts && l->pieces[i].state == TNI_KV_IDLE)
        i++;
    tni_kv_op_name(op, i, name);
    p = &l->pieces[i];
    if (!op->started) {
        (void)tni_error(TN_E_TIMEOUT, "%s: did not begin, view %u", name, w->node.view.number);
    } else if (p->missing) {
        (void)tni_error(TN_E_TIMEOUT, "%s: waits for %s and %u more for %.1f s, view %u", name,
                        tni_kv_node_name(p->who, who), p->missing - 1, seconds, w->node.view.number);
    } else {
        const uint16_t to = tni_kv_op_target(w, l, i);
        const uint64_t heard = tni_kv_node_peer(&w->node, to)->heard_ns;
        const char *what = p->state == TNI_KV_QUEUED ? "no credit" : "no answer";

        if (heard)
            (void)snprintf(ago, sizeof ago, "last heard %.1f s ago", (double)(w->node.now - heard) / 1e9);
        (void)tni_error(TN_E_TIMEOUT, "%s: %s from %s for %.1f s, %s, view %u", name, what,
                        tni_kv_node_name(to, peer), seconds, ago, w->node.view.number);
    }
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
                            .at = tni_kv_op_target(w, l, i),
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

/* ---- named points ---- */

#ifdef TN_TEST_SWITCHES
static bool all_sent(const tni_kv_lot *l)
{
    bool all = l->left == l->plan.parts;

    for (uint32_t i = 0; all && i < l->plan.parts; i++)
        all = l->pieces[i].state == TNI_KV_SENT;
    return all;
}

void tni_kv_op_sent(const tni_kv_lot *l)
{
    const tni_kv_kind kind = l->first->r.kind;

    TNI_KV_POINT_IF(kind == TNI_KV_DO_INIT, init_pushed);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_BARRIER, in_barrier);
    TNI_KV_POINT_IF(tni_kv_op_sends(l->first) && tni_kv_op_kind(l->first)->pushes && l->plan.parts > 1 &&
                        !all_sent(l),
                    push_part);
    TNI_KV_POINT_IF(tni_kv_op_kind(l->first)->pushes && all_sent(l), all_sent);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_PULL, pull_asked);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_SNAPSHOT, save_asked);
    TNI_KV_POINT_IF(kind == TNI_KV_DO_BYE, leave_sent);
}
#endif

tn_status tni_kv_op_refused(const tni_kv_lot *l, uint32_t piece, const tni_kv_header *h,
                            const uint8_t *payload)
{
    tn_status st = h->bytes >= 4 ? (tn_status)tni_kv_get(payload, 4) : TN_E_PEER;
    const uint64_t length = h->bytes < 4 ? 0 : h->bytes - 4;
    char name[96], peer[24];

    if (st <= TN_OK || st > TN_E_INTERNAL)
        st = TN_E_PEER;
    tni_kv_op_name(l->first, piece, name);
    return tni_error(st, "%s: %s says: %.*s", name, tni_kv_node_name(h->from, peer),
                     (int)(length < 396 ? length : 396), length ? (const char *)payload + 4 : "");
}

/* Values come one behind the other: a server from which they come is not asked for one that may be among
 * them, as it would send it twice. */
void tni_kv_value_await(const tni_kv_worker *w, const tni_kv_lane *lane, const tni_kv_op *op, tni_kv_piece *p)
{
    const uint64_t quiet = lane ? lane->value_ns + TNI_KV_ASK_NS : 0, most = p->sent_ns + AWAIT_NS;

    if (tni_kv_op_kind(op)->value && quiet > w->node.now)
        p->retry_ns = quiet < most ? quiet : most;
}

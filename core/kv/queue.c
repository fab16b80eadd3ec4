/* The kinds of a worker's requests, and the lists that they are in: all in their order, those of one key. */
#include "kv/worker.h"

const tni_kv_kind_row tni_kv_kinds[] = {
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
    [TNI_KV_DO_LAST] = {TNI_KV_PUSH, TNI_KV_LAST, false, false, false, false, "end of", 0},
};

void tni_kv_op_link(tni_kv_worker *w, tni_kv_op *op)
{
    const tni_kv_settings *o = w->node.settings;
    const bool fence = tni_kv_op_kind(op)->fence;
    tni_kv_lot *l = op->lot;

    op->deadline_ns =
        w->node.now + (fence && op->r.kind != TNI_KV_DO_END ? o->control_timeout_ns : o->timeout_ns);
    w->deadline_ns = op->deadline_ns < w->deadline_ns ? op->deadline_ns : w->deadline_ns;
    op->next = op->after = NULL;
    op->previous = w->last;
    *(w->last ? &w->last->next : &w->first) = op;
    w->last = op;
    *(l->last ? &l->last->after : &l->first) = op;
    l->last = op;
    w->op_count++;
    w->fences += fence;
}

void tni_kv_op_leave(tni_kv_worker *w, const tni_kv_op *op)
{
    *(op->previous ? &op->previous->next : &w->first) = op->next;
    *(op->next ? &op->next->previous : &w->last) = op->previous;
    w->fences -= tni_kv_op_kind(op)->fence;
    w->op_count--;
}

void tni_kv_op_unlink(tni_kv_worker *w, tni_kv_op *op)
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
    if (!op->released)
        tni_kv_op_leave(w, op);
}

/* The lists that a worker's requests are in: all of them in their order, and those of one key. */
#include "kv/worker.h"

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

void tni_kv_op_link_first(tni_kv_worker *w, tni_kv_op *op)
{
    tni_kv_op *first = w->first, *last = w->last;
    tni_kv_lot *l = op->lot, lot = *l;

    w->first = w->last = l->first = l->last = NULL;
    tni_kv_op_link(w, op);
    op->next = first;
    op->after = lot.first;
    if (first) {
        first->previous = op;
        w->last = last;
    }
    if (lot.first)
        l->last = lot.last;
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

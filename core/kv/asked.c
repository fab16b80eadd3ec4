/* What a scheduler is asked of a job, by who is no member, and what members answer (ask.c asks). */
#include "kv/scheduler.h"

/* Its own report: numbers, counts and silence (ms) of members, the view. */
static void report_send(tni_kv_scheduler *s, const tni_kv_header *ask)
{
    const tni_kv_view *v = &s->node.view;
    tni_kv_report r;
    tni_str more;

    tni_kv_node_report(&s->node, &r);
    tni_str_init(&more, TN_TEXT_MAX);
    tni_kv_write(&more, s->node.settings->job, 8);
    tni_kv_write(&more, v->workers, 4);
    tni_kv_write(&more, v->servers, 4);
    for (uint32_t i = 0; i < s->count; i++)
        tni_kv_write(&more, tni_kv_ago_ms(&s->node, s->seats[i].heard_ns), 4);
    tni_kv_view_write(v, &more);
    if (!more.status)
        tni_kv_node_report_send(&s->node, ask, &r, &more);
    tni_str_fini(&more);
}

/* Nothing is kept of a question: it travels on, and its answer comes back, by the number in it. */
tn_status tni_kv_asked(tni_kv_scheduler *s, const tni_kv_header *h)
{
    tni_kv_header on = {.type = TNI_KV_ASK, .sequence = h->sequence, .key = h->key, .priority = 255};
    const tni_kv_member *m =
        h->key < TNI_KV_UNKNOWN ? tni_kv_view_member(&s->node.view, (uint16_t)h->key) : NULL;

    if (h->from != TNI_KV_UNKNOWN || !h->sequence || h->bytes)
        return tni_error(TN_E_FORMAT, "question of node %u", h->from);
    if (h->key == TNI_KV_SCHEDULER_NODE)
        report_send(s, h);
    else if (m && tni_kv_member_speaks(m))
        tni_kv_node_send(&s->node, (uint16_t)h->key, &on, NULL, 0);
    return TN_OK;
}

tn_status tni_kv_asked_answer(tni_kv_scheduler *s, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_header on = {.type = TNI_KV_REPORT, .sequence = h->sequence, .key = h->from, .priority = 255};

    if (!h->sequence || h->bytes > TNI_KV_REPORT_MAX)
        return tni_error(TN_E_FORMAT, "report of %llu bytes", (unsigned long long)h->bytes);
    tni_kv_node_send(&s->node, TNI_KV_UNKNOWN, &on, payload, h->bytes);
    return TN_OK;
}

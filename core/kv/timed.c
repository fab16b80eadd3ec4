/* How long a worker's requests take: as histograms, by key, in traces; with kvstore.verbose=2 in the log. */
#include "kv/worker.h"

void tni_kv_op_timed(tni_kv_worker *w, const tni_kv_op *op, const char *name, uint32_t time)
{
    const uint64_t ns = w->node.now - op->begun_ns;
    const tni_log *log = w->node.host.log;
    char own[24];

    tni_kv_histogram_add(&w->node.metrics.times[time], ns / 1000u);
    if (!op->lot->control)
        tni_kv_row_add(&op->lot->cost, ns);
    if (w->node.settings->verbose < 2)
        return;
    (void)tni_kv_node_name(w->node.id, own);
    if (op->lot->control)
        tni_logf(log, TN_LOG_INFO, "kvstore: %s: %s: %.3f ms", own, name, (double)ns / 1e6);
    else
        tni_logf(log, TN_LOG_INFO, "kvstore: %s: %s key %u round %u: %.3f ms", own, name, op->r.key,
                 op->round, (double)ns / 1e6);
}

void tni_kv_op_span(char phase, const tni_kv_op *op, const char *name)
{
    tni_kv_span(phase, name, op->lot->control ? UINT64_MAX : TNI_KV_WHOLE | (uint64_t)op->r.key << 16,
                op->round);
}

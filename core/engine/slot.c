/*
 * What plugins keep for a stream: one pointer of each plugin, made when a kernel of it first runs there. Only
 * the worker of the stream looks for them; a kernel uses its own in stream order.
 */
#include "engine/internal.h"

struct tni_slot {
    tni_slot *next;
    const tni_plugin *plugin;
    const tn_kernel_table *table;
    void *value; /* the plugin's */
};

tn_status tni_slot_get(const tni_run *run, const tni_plugin *plugin, const tn_kernel_table *table,
                       void ***out)
{
    tni_slot *s = run->slots ? *run->slots : NULL;

    *out = NULL;
    if (!run->stream || !run->slots)
        return TN_OK;
    while (s && s->plugin != plugin)
        s = s->next;
    if (!s) {
        if (!(s = tni_zalloc(sizeof *s)))
            return TN_E_NOMEM;
        s->plugin = plugin;
        s->table = table;
        s->next = *run->slots;
        *run->slots = s;
    }
    if (!TN_OFFERS(s->table, tn_kernel_table, stream_detach))
        s->table = table; /* another table of the plugin may offer it */
    *out = &s->value;
    return TN_OK;
}

void tni_slots_free(tni_slot *first)
{
    while (first) {
        tni_slot *next = first->next;

        if (first->value && TN_OFFERS(first->table, tn_kernel_table, stream_detach))
            first->table->stream_detach(first->plugin->self, first->value);
        tni_free(first);
        first = next;
    }
}

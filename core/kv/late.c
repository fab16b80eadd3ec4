/*
 * What servers know of the pace of workers: who comes last in rounds, and without rounds how old the values
 * are that gradients come from. Reports have it; kvstore.verbose logs it every 100 rounds of all parts.
 * And, without rounds, how far a worker counts as being after a server lost rounds of it.
 */
#include <string.h>

#include "kv/server.h"

#define LATE_ROUNDS 100u /* of all parts, between two tables */
#define LATE_ROWS 4u

/* The workers that were last most often, and how late. */
static void late_table(tni_kv_server *s)
{
    const uint64_t rounds = s->late_rounds;
    char own[24], name[24];

    for (uint32_t row = 0; s->node.settings->verbose && row < LATE_ROWS; row++) {
        uint32_t most = 0;

        for (uint32_t w = 1; w < s->node.settings->workers; w++)
            most = s->late[w].rounds > s->late[most].rounds ? w : most;
        if (!s->late[most].rounds)
            break;
        tni_logf(s->node.host.log, TN_LOG_INFO,
                 "kvstore: %s: %s was last in %.0f %% of %llu rounds of parts, %.1f ms behind the first one",
                 tni_kv_node_name(s->node.id, own), tni_kv_node_name(TNI_KV_NODE(TNI_KV_WORKER, most), name),
                 100.0 * (double)s->late[most].rounds / (double)rounds, (unsigned long long)rounds,
                 (double)s->late[most].ns / 1e6 / (double)s->late[most].rounds);
        s->late[most].rounds = 0;
    }
    for (uint32_t w = 0; w < s->node.settings->workers; w++)
        s->late[w].rounds = s->late[w].ns = 0;
    s->late_rounds = 0;
}

void tni_kv_late_count(tni_kv_server *s, const tni_kv_store_part *p)
{
    tni_kv_late *late = &s->late[p->latest];
    const uint64_t ns = s->node.now - p->begun_ns;

    if (p->here < 2)
        return;
    late->rounds++;
    late->ns += ns;
    tni_kv_row_add(&late->all, ns);
    if (++s->late_rounds >= LATE_ROUNDS * s->part_count)
        late_table(s);
}

void tni_kv_stale_count(tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_slot *slot)
{
    tni_kv_histogram *h = &s->node.metrics.times[TNI_KV_T_STALENESS];
    char own[24];

    if (!slot->seen)
        return;
    tni_kv_histogram_add(h, p->version + 1 - slot->seen);
    if (s->node.settings->verbose && h->count % (LATE_ROUNDS * s->part_count) == 0)
        tni_logf(
            s->node.host.log, TN_LOG_INFO,
            "kvstore: %s: staleness of %llu gradients of parts: half at most %llu updates, 90 %% at most "
            "%llu, 99 %% at most %llu, the most %llu",
            tni_kv_node_name(s->node.id, own), (unsigned long long)h->count,
            (unsigned long long)tni_kv_histogram_at(h, 500), (unsigned long long)tni_kv_histogram_at(h, 900),
            (unsigned long long)tni_kv_histogram_at(h, 990), (unsigned long long)h->max);
}

static bool took_a_place(const tni_kv_server *s, uint32_t rank)
{
    return tni_kv_late_comer(&s->node.view, s->node.view.members[rank].incarnation);
}

void tni_kv_part_unheard(const tni_kv_server *s, tni_kv_store_part *p)
{
    for (uint32_t w = 0; w < s->node.settings->workers; w++) {
        p->slots[w].lost = TNI_KV_UNHEARD;
        p->slots[w].back = true;
    }
}

/* A worker that was there before the server came back knows its rounds. A replacement worker knows only the
 * rounds that this server still has. To require the lost ones of it would deadlock: servers that kept them
 * make it wait for the other workers, which wait for it here. So the server credits it with the lost rounds,
 * at most one beyond the furthest other worker. A worker that is first heard later may be further than all
 * before it: then the credit of the replacements that are behind it grows to its rounds. */
bool tni_kv_lost_credit(tni_kv_server *s, tni_kv_store_part *p, uint32_t rank)
{
    tni_kv_slot *slot = &p->slots[rank];
    const bool first = slot->lost == TNI_KV_UNHEARD, late = took_a_place(s, rank);
    uint32_t most = slot->applied;

    if (!slot->lost)
        return false;
    for (uint32_t w = 0; w < s->node.settings->workers; w++) {
        tni_kv_slot *other = &p->slots[w];

        if (w == rank || other->lost == TNI_KV_UNHEARD || s->node.view.members[w].state > TNI_KV_DEAD)
            continue;
        if (first && took_a_place(s, w) && other->applied + other->lost < slot->applied)
            other->lost = slot->applied - other->applied;
        if (other->applied + other->lost >= most)
            most = other->applied + other->lost + 1;
    }
    most -= slot->applied;
    slot->lost = !late ? 0 : most < slot->lost ? most : slot->lost;
    return first;
}

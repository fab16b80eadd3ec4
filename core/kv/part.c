/*
 * A part on its server: rounds (protocol.h, rules 4 to 7).
 *
 * Invariant of sync: gradients of ranks below `folded` are in `sum`, or not needed; those of higher ranks
 * that have come wait in their slots. So the sum is made in one order, whatever order they came in. A part
 * that is complete is applied at once, within the call that completed it. The first gradient stays where it
 * came, if the host keeps it there: the second one is added in the pass that writes `sum`.
 */
#include <string.h>

#include "kv/rows.h"
#include "kv/server.h"

static uint64_t bucket(const tni_kv_server *s, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> 32 & (s->table_size - 1);
}

tni_kv_store_part *tni_kv_part_find(const tni_kv_server *s, uint64_t key)
{
    tni_kv_store_part *p = s->table_size ? s->table[bucket(s, key)] : NULL;

    while (p && p->key != key)
        p = p->next;
    return p;
}

static uint64_t slots_bytes(const tni_kv_server *s)
{
    return sizeof(tni_kv_store_part) + (uint64_t)s->node.settings->workers * sizeof(tni_kv_slot);
}

static tn_status limit_check(const tni_kv_server *s, uint64_t bytes)
{
    const uint64_t most = s->node.settings->server_bytes;
    const uint64_t held = s->bytes + s->part_count * slots_bytes(s);

    if (s->part_count >= TNI_KV_SERVER_PARTS_MAX)
        return tni_error(TN_E_NOMEM, "a server holds at most %u parts", TNI_KV_SERVER_PARTS_MAX);
    if (most && (held > most || slots_bytes(s) + 2 * bytes > most - held))
        return tni_error(TN_E_NOMEM,
                         "a server holds %llu bytes and takes no part of %llu: kvstore.server_bytes is %llu",
                         (unsigned long long)held, (unsigned long long)bytes, (unsigned long long)most);
    return TN_OK;
}

/* ---- the table ---- */

static tn_status table_grow(tni_kv_server *s)
{
    const uint64_t size = s->table_size ? s->table_size * 2 : 64;
    tni_kv_server grown = {.table_size = size};
    tni_kv_store_part *p, *next;

    if (s->part_count < s->table_size)
        return TN_OK;
    grown.table = tni_calloc(size, sizeof *grown.table);
    if (!grown.table)
        return TN_E_NOMEM;
    for (uint64_t i = 0; i < s->table_size; i++)
        for (p = s->table[i]; p; p = next) {
            next = p->next;
            p->next = grown.table[bucket(&grown, p->key)];
            grown.table[bucket(&grown, p->key)] = p;
        }
    tni_free(s->table);
    s->table = grown.table;
    s->table_size = size;
    return TN_OK;
}

tn_status tni_kv_part_create(tni_kv_server *s, uint64_t key, uint8_t dtype, uint64_t bytes,
                             tni_kv_store_part **out)
{
    tni_kv_store_part *p;

    if (limit_check(s, bytes) || table_grow(s))
        return TN_E_NOMEM;
    p = tni_zalloc(slots_bytes(s));
    if (!p)
        return TN_E_NOMEM;
    p->value = tni_kv_block_make(bytes);
    p->sum = p->value ? tni_kv_block_make(bytes) : NULL;
    if (!p->sum) {
        tni_kv_block_drop(p->value);
        tni_free(p);
        return TN_E_NOMEM;
    }
    memset(p->value, 0, bytes);
    p->key = key;
    p->dtype = dtype;
    p->bytes = bytes;
    p->next = s->table[bucket(s, key)];
    s->table[bucket(s, key)] = p;
    s->part_count++;
    s->bytes += 2 * bytes;
    *out = p;
    return TN_OK;
}

static void landing_free(tni_kv_server *s, tni_kv_landing **at)
{
    tni_kv_landing *l = *at;

    if (!l)
        return;
    *at = NULL;
    s->landing_bytes -= l->bytes;
    if (l->kept)
        s->node.host.give(s->node.host.arg, l->kept, l->bytes);
    tni_free(l);
}

/* NULL: there is no room; or, unless it `copies`, the host does not keep the payload. */
static tni_kv_landing *landing_make(tni_kv_server *s, const tni_kv_header *h, const uint8_t *payload,
                                    bool copies)
{
    const tni_kv_host *host = &s->node.host;
    tni_kv_landing *l = NULL;
    void *kept;

    if (s->landing_bytes + h->bytes > s->node.settings->landing_bytes)
        return NULL;
    kept = host->keep ? host->keep(host->arg, h->bytes) : NULL;
    if (kept || copies)
        l = tni_alloc(sizeof *l + (kept ? 0 : h->bytes));
    if (!l) {
        if (kept)
            host->give(host->arg, kept, h->bytes);
        return NULL;
    }
    *l = (tni_kv_landing){
        .bytes = h->bytes, .kept = kept, .payload = kept ? payload : l->own, .what = h->what};
    if (!kept)
        tni_kv_bytes_copy(l->own, payload, h->bytes);
    s->landing_bytes += h->bytes;
    return l;
}

void tni_kv_parts_clear(tni_kv_server *s)
{
    tni_kv_store_part *p, *next;

    for (uint64_t i = 0; i < s->table_size; i++)
        for (p = s->table[i]; p; p = next) {
            next = p->next;
            for (uint32_t w = 0; w < s->node.settings->workers; w++)
                landing_free(s, &p->slots[w].landing);
            landing_free(s, &p->base);
            tni_kv_block_drop(p->value);
            tni_kv_block_drop(p->sum);
            tni_free(p);
        }
    tni_free(s->table);
    s->table = NULL;
    s->table_size = s->part_count = s->bytes = 0;
}

/* ---- answers ---- */

static uint32_t rank_of(const tni_kv_header *h)
{
    return TNI_KV_BUG(ID_WRAP) ? TNI_KV_RANK(h->from) & 0xffu : TNI_KV_RANK(h->from);
}

/* Round `version` + 1 cannot do without this worker. */
static bool needed(const tni_kv_server *s, const tni_kv_store_part *p, uint32_t rank)
{
    const tni_kv_member *m = &s->node.view.members[rank];

    if (p->slots[rank].last && p->version + 1 >= p->slots[rank].last)
        return false;
    return TNI_KV_BUG(NO_LEAVE) ? m->state != TNI_KV_GONE : tni_kv_member_needed(m, p->version + 1);
}

static uint32_t worker_count(const tni_kv_server *s, const tni_kv_store_part *p, uint32_t rank)
{
    return s->node.async ? p->slots[rank].applied : p->version;
}

static bool was_void(const tni_kv_store_part *p, uint32_t round)
{
    return p->version - round < 64 && p->voids >> (p->version - round) & 1u;
}

/* A round that another worker broke is still before it, behind the one that it knows: its own push of that
 * round is told so. */
void tni_kv_part_says(const tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_header *h,
                      tni_kv_header *answer)
{
    uint32_t round = worker_count(s, p, rank_of(h));

    while (!s->node.async && round > h->round && was_void(p, round))
        round--;
    answer->round = round;
    answer->flags |= p->slots[rank_of(h)].back ? TNI_KV_LOST : 0;
}

/* The checksum of a value that is sent as a message: taken once for all workers of a round. */
static void value_sum(tni_kv_store_part *p, tni_kv_header *answer)
{
    if (p->sum_of != p->version + 1)
        p->value_sum = tni_kv_payload_sum(p->value, p->bytes);
    p->sum_of = p->version + 1;
    answer->payload_sum = p->value_sum;
    answer->summed = true;
}

/* Answers with the value, or with `rows` of it. */
static void value_send(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                       const tni_kv_row_set *rows)
{
    tni_kv_header answer = {.type = TNI_KV_VALUE,
                            .dtype = p->dtype,
                            .priority = h->priority,
                            .sequence = h->sequence,
                            .key = p->key,
                            .flags = h->flags & TNI_KV_RETRY};
    const uint64_t bytes = rows ? rows->count * rows->row_bytes : p->bytes;
    tn_status st = TN_OK;
    void *made;

    tni_kv_part_says(s, p, h, &answer);
    p->slots[rank_of(h)].seen = p->version + 1;
    if (!rows && (!h->what || h->type != TNI_KV_PULL || !s->update.read)) {
        if (s->node.settings->checked)
            value_sum(p, &answer);
        s->sending = &tni_kv_block_of(p->value)->hold;
        tni_kv_node_send(&s->node, h->from, &answer, p->value, p->bytes);
        TNI_KV_POINT_IF(h->type == TNI_KV_PULL && p->key & 0xffff, pull_half);
        s->sending = NULL;
        return;
    }
    if (!(made = tni_alloc(bytes)))
        st = TN_E_NOMEM;
    else if (rows)
        tni_kv_rows_take(rows, p->value, made);
    else
        st = s->update.read(s->update.arg, h, p->dtype, p->value, made, bytes);
    answer.round -= st == TN_PENDING;
    if (st > TN_OK)
        tni_kv_node_answer_failed(&s->node, h, st);
    else
        tni_kv_node_send(&s->node, h->from, &answer, made, bytes);
    tni_free(made);
}

static void answer(tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_header *h, uint8_t state,
                   uint16_t who, uint32_t count)
{
    tni_kv_header of = *h;

    of.round = worker_count(s, p, rank_of(h));
    tni_kv_node_answer(&s->node, &of, state, who, count);
}

/* Smallest count of rounds of workers that still push. After a server came back a worker may be further than
 * it knows, so it holds nobody back before it was heard. */
static uint32_t slowest(const tni_kv_server *s, const tni_kv_store_part *p, uint16_t *who)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t w = 0; w < s->node.settings->workers; w++)
        if (s->node.view.members[w].state <= TNI_KV_DEAD && p->slots[w].lost != TNI_KV_UNHEARD &&
            p->slots[w].applied + p->slots[w].lost < least) {
            least = p->slots[w].applied + p->slots[w].lost;
            *who = TNI_KV_NODE(TNI_KV_WORKER, w);
        }
    return least;
}

static bool due(const tni_kv_server *s, const tni_kv_store_part *p, uint32_t round, uint16_t *who)
{
    const uint32_t staleness = s->node.settings->staleness;

    if (TNI_KV_BUG(PULL_LATEST))
        return true;
    if (!s->node.async)
        return p->version >= round;
    if (staleness == UINT32_MAX || round <= staleness)
        return true;
    return slowest(s, p, who) >= round - staleness;
}

/* How many needed workers have not pushed, and the first of them. If all workers are needed, those below
 * `folded` have pushed: nobody is looked for. */
static uint32_t missing(const tni_kv_server *s, const tni_kv_store_part *p, uint16_t *who)
{
    const uint32_t workers = s->node.settings->workers;
    uint32_t count = 0;

    if (s->all_needed && p->here <= workers) {
        *who = TNI_KV_NODE(TNI_KV_WORKER, p->folded);
        return workers - p->here;
    }
    for (uint32_t w = workers; w-- > 0;)
        if (!p->slots[w].here && needed(s, p, w)) {
            *who = TNI_KV_NODE(TNI_KV_WORKER, w);
            count++;
        }
    return count;
}

static void wait_begin(tni_kv_store_part *p, const tni_kv_header *h, bool want)
{
    tni_kv_slot *slot = &p->slots[rank_of(h)];

    if (slot->sequence > h->sequence)
        return; /* one that was late on its way */
    p->waiting += !slot->sequence;
    slot->sequence = h->sequence;
    slot->round = h->round;
    slot->want = want;
    slot->priority = h->priority;
}

/* Answers whoever waited for the rounds that are complete now. */
static void waiting_answer(tni_kv_server *s, tni_kv_store_part *p)
{
    for (uint32_t w = 0; p->waiting && w < s->node.settings->workers; w++) {
        tni_kv_slot *slot = &p->slots[w];
        const tni_kv_header h = {.from = TNI_KV_NODE(TNI_KV_WORKER, w),
                                 .sequence = slot->sequence,
                                 .priority = slot->priority,
                                 .key = p->key,
                                 .round = slot->round};
        uint16_t who = 0;

        if (!slot->sequence || !due(s, p, slot->round, &who))
            continue;
        slot->sequence = 0;
        p->waiting--;
        TNI_KV_POINT_HALF(acks_half);
        if (!s->node.async && was_void(p, slot->round))
            answer(s, p, &h, TNI_KV_VOID, p->breaker, 1);
        else if (slot->want)
            value_send(s, p, &h, NULL);
        else
            answer(s, p, &h, TNI_KV_APPLIED, 0, 0);
    }
}

/* ---- rounds ---- */

static bool next_waits(const tni_kv_server *s, const tni_kv_store_part *p)
{
    return p->folded + 1 < s->node.settings->workers && p->slots[p->folded + 1].landing;
}

/* Adds a gradient. The first one may stay in its landing `l`, which it takes; NULL: it lies in a message. */
static tn_status fold(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h, const uint8_t *payload,
                      tni_kv_landing *l)
{
    const bool first = p->added == 0, whole = h->bytes == p->bytes && h->what != TNI_KV_ROWS;
    tn_status st;

    if (first && !l && whole && !(l = landing_make(s, h, payload, false)) && next_waits(s, p) &&
        (l = tni_alloc(sizeof *l)))
        *l = (tni_kv_landing){.payload = payload}; /* lent: the next one is added within this call */
    if (first && l && whole) {
        p->base = l;
        st = s->update.add(s->update.arg, h, true, l->payload, (void *)(uintptr_t)l->payload, l->payload,
                           p->bytes);
    } else {
        st = s->update.add(s->update.arg, h, first, p->base ? p->base->payload : p->sum, p->sum, payload,
                           p->bytes);
        landing_free(s, &p->base);
        landing_free(s, &l);
    }
    if (p->added++ == 0)
        p->head = *h;
    if (st)
        tni_kv_server_stop(s, st); /* a round half summed is no round */
    return st;
}

static void round_clear(tni_kv_server *s, tni_kv_store_part *p)
{
    for (uint32_t w = 0; w < s->node.settings->workers; w++) {
        landing_free(s, &p->slots[w].landing);
        p->slots[w].here = false;
    }
    landing_free(s, &p->base);
    p->here = p->folded = p->added = 0;
}

static void round_end(tni_kv_server *s, tni_kv_store_part *p, bool is_void)
{
    if (!is_void)
        tni_kv_late_count(s, p);
    if (!is_void)
        tni_kv_histogram_add(&s->node.metrics.times[TNI_KV_T_ROUND], (s->node.now - p->begun_ns) / 1000u);
    tni_kv_span('e', "round", p->key, p->version + 1);
    round_clear(s, p);
    p->version++;
    p->voids = p->voids << 1 | is_void;
    waiting_answer(s, p);
}

static tn_status apply(tni_kv_server *s, tni_kv_store_part *p, uint32_t members)
{
    const uint64_t begun = s->node.host.clock ? s->node.host.clock() : 0;
    void *sum = p->sum;
    tn_status st = TN_OK;

    if (!s->node.async)
        p->head.round = p->version + 1;
    p->head.key = p->key;
    p->head.dtype = p->dtype;
    if (p->base)
        tni_kv_bytes_copy(sum, p->base->payload, p->bytes);
    landing_free(s, &p->base);
    if (s->update.replaces && s->update.replaces(s->update.arg, &p->head)) {
        p->sum = p->value;
        p->value = sum;
    } else {
        st = tni_kv_block_own(&p->value, p->bytes, true);
    }
    tni_kv_span('B', "apply", p->key, p->head.round);
    if (!st)
        st = s->update.apply(s->update.arg, &p->head, p->value, sum, p->bytes, p->added, members);
    tni_kv_span('E', "apply", p->key, p->head.round);
    if (st)
        tni_kv_server_stop(s, st);
    else if (s->node.host.clock)
        tni_kv_histogram_add(&s->node.metrics.times[TNI_KV_T_APPLY], (s->node.host.clock() - begun) / 1000u);
    ++*tni_kv_number(&s->node, TNI_KV_N_ROUNDS);
    return st;
}

/* The server has stopped in a round of this part: the workers that wait for it hear why. */
static void round_failed(tni_kv_server *s, const tni_kv_store_part *p)
{
    for (uint32_t w = 0; w < s->node.settings->workers; w++) {
        const tni_kv_header h = {
            .from = TNI_KV_NODE(TNI_KV_WORKER, w), .sequence = p->slots[w].sequence, .key = p->key};

        tni_error_set(&s->error);
        if (h.sequence)
            tni_kv_node_answer_failed(&s->node, &h, s->status);
    }
}

/* Adds what is next in order of ranks, and ends the round if nobody is missing. */
static tn_status round_step(tni_kv_server *s, tni_kv_store_part *p)
{
    const uint32_t workers = s->node.settings->workers;
    tn_status st = TN_OK;

    for (; !st && p->folded < workers; p->folded++) {
        tni_kv_slot *slot = &p->slots[p->folded];
        tni_kv_header h = {.from = TNI_KV_NODE(TNI_KV_WORKER, p->folded), .key = p->key, .dtype = p->dtype};

        if (slot->landing) {
            tni_kv_landing *l = slot->landing;

            slot->landing = NULL;
            h.what = l->what;
            h.bytes = l->bytes;
            st = fold(s, p, &h, l->payload, l);
        } else if (!slot->here && needed(s, p, p->folded)) {
            break;
        }
    }
    if (!st && p->here > 0 && (p->folded == workers || (TNI_KV_BUG(COUNT_MESSAGES) && p->here >= workers))) {
        TNI_KV_POINT(reduced);
        st = p->added ? apply(s, p, workers) : TN_OK;
        TNI_KV_POINT(applied);
        if (!st)
            round_end(s, p, false);
    }
    return st;
}

static void busy_answer(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h)
{
    uint16_t who = 0;
    const uint32_t count = missing(s, p, &who);

    answer(s, p, h, TNI_KV_BUSY, who, count);
}

/* A gradient of the round under way, the first of this worker. */
static tn_status round_take(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                            const uint8_t *payload)
{
    const uint32_t rank = rank_of(h);
    tni_kv_slot *slot = &p->slots[rank];
    tn_status st = TN_OK;
    uint16_t who;

    TNI_KV_POINT_IF(missing(s, p, &who) == 1, all_in);
    if (!p->here && tni_kv_block_own(&p->sum, p->bytes, false)) {
        busy_answer(s, p, h);
        return TN_OK;
    }
    if (TNI_KV_BUG(OVERWRITE) && p->here == 0)
        memcpy(p->value, payload, p->bytes);
    if (rank == p->folded || s->node.settings->any_order || (TNI_KV_BUG(COUNT_MESSAGES) && slot->here)) {
        st = fold(s, p, h, payload, NULL);
    } else if (!(slot->landing = landing_make(s, h, payload, true))) {
        busy_answer(s, p, h);
        return TN_OK;
    }
    slot->here = true;
    if (p->here++ == 0) {
        p->begun_ns = s->node.now;
        tni_kv_span('b', "round", p->key, p->version + 1);
    }
    p->latest = (uint16_t)rank;
    wait_begin(p, h, h->flags & TNI_KV_WANT);
    TNI_KV_POINT_IF(missing(s, p, &who) > 0, some_in);
    TNI_KV_POINT_IF(p->key & 0xffff, push_half);
    return st ? st : round_step(s, p);
}

/* Says how far a push of this worker is. Who pushed little is in no hurry to hear it: the value, which comes
 * when the others have pushed, is mostly there before. */
static void held_answer(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h)
{
    tni_kv_header of = *h;
    uint16_t who = 0;
    const uint32_t count = missing(s, p, &who);

    wait_begin(p, h, h->flags & TNI_KV_WANT);
    of.round = worker_count(s, p, rank_of(h));
    if (p->bytes > TNI_KV_SMALL_MAX || h->flags & TNI_KV_RETRY)
        tni_kv_node_answer(&s->node, &of, TNI_KV_HELD, who, count);
    else
        tni_kv_node_answer_late(&s->node, &of, TNI_KV_HELD, who, count);
}

static tn_status sync_push(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                           const uint8_t *payload)
{
    tni_kv_slot *slot = &p->slots[rank_of(h)];
    const bool last = h->round == p->version + 1 && h->round <= s->node.view.end_round;
    const uint32_t version = p->version;
    tn_status st;

    if (h->flags & TNI_KV_LAST) {
        slot->last = h->round;
        s->all_needed = false;
        s->lasts = true;
        st = round_step(s, p);
        answer(s, p, h, TNI_KV_APPLIED, 0, 0);
        return st;
    }
    if (h->round <= p->version) {
        *tni_kv_number(&s->node, TNI_KV_N_DUPLICATES) += !(h->flags & (TNI_KV_PROBE | TNI_KV_BROKEN));
        if (was_void(p, h->round))
            answer(s, p, h, TNI_KV_VOID, p->breaker, 1);
        else if (h->flags & TNI_KV_WANT)
            value_send(s, p, h, NULL);
        else
            answer(s, p, h, TNI_KV_APPLIED, 0, 0);
        return TN_OK;
    }
    if (!last)
        return tni_error(TN_E_STATE, "push of round %u to a part of %u rounds", h->round, p->version);
    if (h->flags & TNI_KV_BROKEN) {
        p->breaker = h->from;
        if (TNI_KV_BUG(HALF_ROUND) && p->added)
            (void)apply(s, p, s->node.settings->workers);
        round_end(s, p, true);
        answer(s, p, h, TNI_KV_APPLIED, 0, 0);
        return TN_OK;
    }
    if (slot->here && !(TNI_KV_BUG(COUNT_MESSAGES) && !(h->flags & TNI_KV_PROBE))) {
        *tni_kv_number(&s->node, TNI_KV_N_DUPLICATES) += !(h->flags & TNI_KV_PROBE);
        held_answer(s, p, h);
        return TN_OK;
    }
    if (h->flags & TNI_KV_PROBE) {
        answer(s, p, h, TNI_KV_ABSENT, 0, 0);
        return TN_OK;
    }
    st = round_take(s, p, h, payload);
    if (!st && p->version == version && slot->here)
        held_answer(s, p, h);
    return st;
}

void tni_kv_part_heard(tni_kv_server *s, tni_kv_store_part *p, uint32_t rank)
{
    if (s->node.async && tni_kv_lost_credit(s, p, rank))
        waiting_answer(s, p);
}

static tn_status async_push(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                            const uint8_t *payload)
{
    tni_kv_slot *slot = &p->slots[rank_of(h)];
    uint16_t who = 0;
    tn_status st = TN_OK;

    if (h->flags & TNI_KV_LAST) {
        answer(s, p, h, TNI_KV_APPLIED, 0, 0);
        return TN_OK;
    }
    if (h->round > slot->applied) {
        if (h->flags & TNI_KV_PROBE) {
            answer(s, p, h, TNI_KV_ABSENT, 0, 0);
            return TN_OK;
        }
        if (!(h->flags & TNI_KV_BROKEN)) {
            p->added = 0;
            if (tni_kv_block_own(&p->sum, p->bytes, false)) {
                busy_answer(s, p, h);
                return TN_OK;
            }
            st = fold(s, p, h, payload, NULL);
            if (!st)
                st = apply(s, p, 1); /* it is alone */
            p->added = 0;
        }
        if (st)
            return st;
        tni_kv_stale_count(s, p, slot);
        slot->applied = h->round;
        slot->back = false;
        p->version++;
        tni_kv_part_heard(s, p, rank_of(h));
        waiting_answer(s, p);
    } else {
        *tni_kv_number(&s->node, TNI_KV_N_DUPLICATES) += !(h->flags & (TNI_KV_PROBE | TNI_KV_BROKEN));
        tni_kv_part_heard(s, p, rank_of(h));
    }
    if (!(h->flags & TNI_KV_WANT)) {
        answer(s, p, h, TNI_KV_APPLIED, 0, 0);
    } else if (due(s, p, h->round, &who)) {
        value_send(s, p, h, NULL);
    } else {
        wait_begin(p, h, true);
        answer(s, p, h, TNI_KV_HELD, who, 1);
    }
    return TN_OK;
}

tn_status tni_kv_part_push(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                           const uint8_t *payload)
{
    const bool empty = h->flags & (TNI_KV_PROBE | TNI_KV_BROKEN | TNI_KV_LAST);
    uint64_t expected;
    tn_status st;

    if (TNI_KV_BUG(ACK_EARLY) && !empty) {
        answer(s, p, h, TNI_KV_APPLIED, 0, 0);
    }
    expected = empty ? 0 : s->update.payload_bytes(s->update.arg, p->dtype, h->what, p->bytes);
    if (expected && h->what == TNI_KV_ROWS) {
        tni_kv_row_set r;

        st = tni_kv_rows_read(payload, h->bytes, true, p->bytes, tn_dtype_bytes(p->dtype), &r);
        if (st)
            return st;
        expected = h->bytes;
    }
    if (h->bytes != expected ||
        (!empty && (h->dtype != p->dtype || (!expected && (p->bytes || h->what == TNI_KV_ROWS)))))
        return tni_error(TN_E_FORMAT, "push of %llu bytes to a part that takes %llu",
                         (unsigned long long)h->bytes, (unsigned long long)expected);
    if (s->node.view.members[rank_of(h)].state == TNI_KV_LEFT || h->round == 0)
        return tni_error(TN_E_STATE, "push of a worker that has left");
    st = s->node.async ? async_push(s, p, h, payload) : sync_push(s, p, h, payload);
    if (s->status) {
        wait_begin(p, h, false);
        round_failed(s, p);
    }
    return st;
}

/* Who has to wait for rows is told APPLIED once they are there, and asks again. */
tn_status tni_kv_part_pull(tni_kv_server *s, tni_kv_store_part *p, const tni_kv_header *h,
                           const uint8_t *payload)
{
    tni_kv_slot *slot = &p->slots[rank_of(h)];
    const bool rows = h->what == TNI_KV_ROWS;
    bool raised = false;
    uint16_t who = 0;
    uint32_t count = 1;
    tni_kv_row_set r;

    if (rows && tni_kv_rows_read(payload, h->bytes, false, p->bytes, tn_dtype_bytes(p->dtype), &r))
        return TN_E_FORMAT;
    if (s->node.async && !(h->flags & TNI_KV_ANY) && h->round > slot->applied) {
        slot->applied = h->round; /* pushed before; a server that went back knows only now */
        slot->back = false;
        raised = true;
    }
    tni_kv_part_heard(s, p, rank_of(h));
    if (raised)
        waiting_answer(s, p);
    /* While others wait for worker 0 it waits for nobody. */
    if (h->flags & TNI_KV_ANY || (s->waits && !rank_of(h)) || due(s, p, h->round, &who)) {
        if (!(h->flags & TNI_KV_ANY) && !s->node.async && was_void(p, h->round))
            answer(s, p, h, TNI_KV_VOID, p->breaker, 1);
        else
            value_send(s, p, h, rows ? &r : NULL);
        return TN_OK;
    }
    if (!s->node.async)
        count = missing(s, p, &who);
    wait_begin(p, h, !rows);
    answer(s, p, h, TNI_KV_HELD, who, count);
    return TN_OK;
}

/* No round follows: what came for one is dropped, and nobody waits for it. */
static void rounds_over(tni_kv_server *s, tni_kv_store_part *p)
{
    round_clear(s, p);
    for (uint32_t w = 0; w < s->node.settings->workers; w++)
        if (p->slots[w].sequence && p->slots[w].round > p->version) {
            p->slots[w].sequence = 0;
            p->waiting--;
        }
}

void tni_kv_part_view(tni_kv_server *s, tni_kv_store_part *p)
{
    tn_status st = TN_OK;

    if (!s->node.async && p->version >= s->node.view.end_round)
        rounds_over(s, p);
    else if (!s->node.async)
        st = round_step(s, p);
    if (st)
        round_failed(s, p);
    else
        waiting_answer(s, p);
}

/* A round of which some gradients are here, or for which somebody waits. */
static void part_report(const tni_kv_server *s, const tni_kv_store_part *p, tni_kv_report *out)
{
    tni_kv_wait w = {.kind = TNI_KV_DO_PUSH,
                     .state = TNI_KV_WAIT_HELD,
                     .at = s->node.id,
                     .part = (uint16_t)p->key,
                     .key = (uint32_t)(p->key >> 16),
                     .round = p->version + 1,
                     .age_ms = p->here ? tni_kv_ago_ms(&s->node, p->begun_ns) : 0};

    if (!p->here && !p->waiting)
        return;
    if (!s->node.async) {
        w.missing = missing(s, p, &w.who);
    } else {
        w.round = slowest(s, p, &w.who) + 1;
        w.missing = w.round != 0;
    }
    tni_kv_report_wait(out, &w);
}

void tni_kv_parts_report(tni_kv_server *s, tni_kv_report *out)
{
    uint64_t least = UINT64_MAX, most = 0;

    for (uint64_t i = 0; i < s->table_size; i++)
        for (const tni_kv_store_part *p = s->table[i]; p; p = p->next) {
            least = p->version < least ? p->version : least;
            most = p->version > most ? p->version : most;
            part_report(s, p, out);
        }
    for (uint32_t w = 0; w < s->node.settings->workers; w++)
        tni_kv_report_row(out, w, &s->late[w].all);
    out->numbers[TNI_KV_N_PARTS] = s->part_count;
    out->numbers[TNI_KV_N_VALUE_BYTES] = s->bytes;
    out->numbers[TNI_KV_N_LANDING_BYTES] = s->landing_bytes;
    out->numbers[TNI_KV_N_ROUND_MIN] = s->part_count ? least : 0;
    out->numbers[TNI_KV_N_ROUND_MAX] = most;
}

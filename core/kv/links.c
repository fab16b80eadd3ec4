/*
 * Links, and what goes over them. A payload is copied if it is short or lives for the call only; else it is
 * held until the transport has given it back. What the transport has no room for waits here, the highest
 * priority first, in bounds; a message that is sent again takes no second place.
 */
#include <string.h>

#include "kv/links.h"

#define TYPE_AT 3u
#define FLAGS_AT 4u
#define ROUND_AT 28u
#define SEQUENCE_AT 32u
#define KEY_AT 40u /* behind the sequence */

/* ---- nodes and links ---- */

tni_kv_dial *tni_kv_post_node(tni_kv_post *p, uint16_t node)
{
    const tni_kv_settings *s = &p->setup->settings;
    const uint32_t rank = TNI_KV_RANK(node);

    switch (TNI_KV_ROLE(node)) {
    case TNI_KV_SCHEDULER:
        return rank ? NULL : &p->nodes[0];
    case TNI_KV_SERVER:
        return rank < s->servers ? &p->nodes[1 + rank] : NULL;
    case TNI_KV_WORKER:
        return rank < s->workers ? &p->nodes[1 + s->servers + rank] : NULL;
    default:
        return NULL;
    }
}

bool tni_kv_post_dials(const tni_kv_post *p, uint16_t node)
{
    return TNI_KV_ROLE(node) < p->own && node != TNI_KV_UNKNOWN;
}

static tni_kv_link **bucket(const tni_kv_post *p, const tn_link *link)
{
    const uint64_t key = (uint64_t)(uintptr_t)link * 0x9e3779b97f4a7c15u;

    return (tni_kv_link **)&p->buckets[key >> 32 & (TNI_KV_BUCKETS - 1)];
}

tni_kv_link *tni_kv_link_find(const tni_kv_post *p, const tn_link *link)
{
    tni_kv_link *l = *bucket(p, link);

    while (l && l->link != link)
        l = l->next;
    return l;
}

tni_kv_link *tni_kv_link_add(tni_kv_post *p, tn_link *link)
{
    tni_kv_link **at = bucket(p, link), *l = tni_zalloc(sizeof *l);

    if (!l)
        return NULL;
    *l = (tni_kv_link){.next = *at, .link = link, .node = TNI_KV_UNKNOWN, .up_ns = p->now};
    *at = l;
    p->strangers++;
    return l;
}

/* ---- holds ---- */

static void hold_drop(tni_kv_hold *h)
{
    if (h && --h->count == 0 && h->ended)
        h->free(h);
}

static void copy_free(tni_kv_hold *h)
{
    tni_kv_copy *c = (tni_kv_copy *)h;

    tni_keep_give(c->keep, c);
}

/* The memory of a payload that lives for the call only: one copy for all that get it in this turn. */
static tni_kv_hold *copy_make(tni_kv_post *p, const uint8_t *header, const void *payload, uint64_t bytes)
{
    const uint64_t key = tni_kv_get(header + KEY_AT, 8);
    const uint32_t round = (uint32_t)tni_kv_get(header + ROUND_AT, 4);
    tni_kv_copy *c = p->copy;

    if (c && p->copy_turn == p->turn && p->copy_of == payload && p->copy_bytes == bytes &&
        p->copy_key == key && p->copy_round == round)
        return &c->hold;
    c = tni_keep_take(p->keep, sizeof *c + bytes);
    if (!c)
        return NULL;
    c->hold = (tni_kv_hold){.free = copy_free};
    c->keep = p->keep;
    tni_kv_bytes_copy(c->bytes, payload, bytes);
    if (p->copy) {
        p->copy->hold.ended = true;
        p->copy->hold.count++;
        hold_drop(&p->copy->hold);
    }
    p->copy = c;
    p->copy_turn = p->turn;
    p->copy_of = payload;
    p->copy_bytes = bytes;
    p->copy_key = key;
    p->copy_round = round;
    return &c->hold;
}

static tni_kv_flight *flight_take(tni_kv_post *p, tni_kv_link *l, const tni_kv_parcel *m)
{
    tni_kv_flight *f = p->spare;

    if (f)
        p->spare = f->next;
    else if (!(f = tni_alloc(sizeof *f)))
        return NULL;
    f->next = p->flights;
    f->previous = NULL;
    f->hold = m->hold;
    f->link = l;
    memcpy(f->header, m->header, sizeof f->header);
    if (p->flights)
        p->flights->previous = f;
    p->flights = f;
    return f;
}

/* Its payload is the owner's again, if `counted`. */
static void flight_give(tni_kv_post *p, tni_kv_flight *f, bool counted)
{
    tni_kv_hold *hold = f->hold;

    *(f->previous ? &f->previous->next : &p->flights) = f->next;
    if (f->next)
        f->next->previous = f->previous;
    f->next = p->spare;
    p->spare = f;
    if (counted)
        hold_drop(hold);
}

void tni_kv_link_sent(tni_kv_post *p, uint64_t cookie)
{
    flight_give(p, (tni_kv_flight *)(uintptr_t)cookie, true);
}

/* ---- sending ---- */

/* As tn_transport_ops.send. */
static tn_status transfer(tni_kv_post *p, tni_kv_link *l, const tni_kv_parcel *m)
{
    tni_kv_flight *f = m->hold ? flight_take(p, l, m) : NULL;
    const tn_piece piece = {.data = m->payload, .bytes = m->bytes};
    const tn_send send = {.struct_size = (uint32_t)sizeof send,
                          .flags = m->flags | (f ? 0 : TN_SEND_COPY),
                          .header = m->header,
                          .pieces = &piece,
                          .piece_count = m->bytes ? 1 : 0,
                          .priority = (int32_t)m->priority,
                          .cookie = (uint64_t)(uintptr_t)f};
    tn_err err = {0};
    tn_status st;

    if (f)
        m->hold->count++;
    st = p->ops->send(l->link, &send, &err);
    if (st && f) {
        m->hold->count--; /* the caller's: it is not freed here */
        flight_give(p, f, false);
    }
    if (st && st != TN_PENDING && st != TN_E_PEER)
        tni_logf(p->setup->log, TN_LOG_WARNING, "kvstore: a message of %llu bytes cannot be sent: %s",
                 (unsigned long long)m->bytes, err.message);
    return st;
}

static void parcel_free(tni_kv_post *p, tni_kv_link *l, tni_kv_parcel *m)
{
    tni_kv_hold *hold = m->hold;

    p->waiting_bytes -= m->copied;
    l->parcel_count--;
    tni_free(m);
    hold_drop(hold);
}

static bool same(const uint8_t *a, const uint8_t *b)
{
    return a[TYPE_AT] == b[TYPE_AT] && b[TYPE_AT] != TNI_KV_BATCH &&
           !memcmp(a + SEQUENCE_AT, b + SEQUENCE_AT, 16);
}

/* It is sent again, and the one before has not left this process. */
static bool leaves(const tni_kv_post *p, const tni_kv_link *l, const uint8_t *header)
{
    if (!(header[FLAGS_AT] & TNI_KV_RETRY))
        return false;
    for (const tni_kv_parcel *o = l->parcels; o; o = o->next)
        if (same(o->header, header))
            return true;
    for (const tni_kv_flight *f = p->flights; f; f = f->next)
        if (f->link == l && same(f->header, header))
            return true;
    return false;
}

/* Keeps it until there is credit, behind those of its priority. */
static void park(tni_kv_post *p, tni_kv_link *l, const tni_kv_parcel *m)
{
    const uint64_t copied = m->hold ? 0 : m->bytes;
    tni_kv_parcel **at = &l->parcels, *kept;

    if (l->parcel_count >= TNI_KV_PARCELS_MAX || p->waiting_bytes + copied > TNI_KV_PARCEL_BYTES_MAX)
        return;
    kept = tni_alloc(sizeof *kept + copied);
    if (!kept)
        return;
    *kept = *m;
    kept->copied = copied;
    if (copied) {
        memcpy(kept + 1, m->payload, copied);
        kept->payload = kept + 1;
    }
    if (m->hold)
        m->hold->count++;
    p->waiting_bytes += copied;
    l->parcel_count++;
    while (*at && ((*at)->flags > m->flags || ((*at)->flags == m->flags && (*at)->priority >= m->priority)))
        at = &(*at)->next;
    kept->next = *at;
    *at = kept;
}

void tni_kv_link_drain(tni_kv_post *p, tni_kv_link *l)
{
    while (l->parcels) {
        tni_kv_parcel *m = l->parcels;

        if (transfer(p, l, m) == TN_PENDING)
            return;
        l->parcels = m->next;
        parcel_free(p, l, m);
    }
}

static void nodes_leave(tni_kv_post *p, const tni_kv_link *l)
{
    for (uint32_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].link == l)
            p->nodes[i].link = NULL;
}

void tni_kv_link_close(tni_kv_post *p, tni_kv_link *l)
{
    if (l->closing)
        return;
    l->closing = true;
    nodes_leave(p, l);
    p->ops->disconnect(l->link);
}

void tni_kv_link_gone(tni_kv_post *p, tni_kv_link *l)
{
    tni_kv_link **at = bucket(p, l->link);
    tni_kv_flight *f, *next;

    for (; *at != l; at = &(*at)->next)
        ;
    *at = l->next;
    p->strangers -= !l->known && !l->dialed;
    nodes_leave(p, l);
    if (p->receiving == l)
        p->receiving = NULL;
    while (l->parcels) {
        tni_kv_parcel *m = l->parcels;

        l->parcels = m->next;
        parcel_free(p, l, m);
    }
    for (f = p->flights; f; f = next) { /* a transport that keeps its word has given them back */
        next = f->next;
        if (f->link == l)
            flight_give(p, f, true);
    }
    tni_free(l);
}

static tni_kv_link *link_to(tni_kv_post *p, uint16_t to, const uint8_t *header)
{
    const tni_kv_dial *d = tni_kv_post_node(p, to);
    const uint64_t birth = tni_kv_get(header + SEQUENCE_AT, 8);

    if (d || to != TNI_KV_UNKNOWN)
        return d ? d->link : NULL;
    for (uint32_t i = 0; i < TNI_KV_BUCKETS; i++)
        for (tni_kv_link *l = p->buckets[i]; l; l = l->next)
            if (birth && l->birth == birth)
                return l;
    return NULL;
}

/* Signs of life, acknowledgements and views do not wait behind gradients; batches are short, and mostly
 * acknowledgements. */
static bool urgent(uint8_t type, uint64_t bytes)
{
    return bytes <= TNI_KV_BATCH_MAX && (type < TNI_KV_INIT || type == TNI_KV_ACK || type >= TNI_KV_BARRIER);
}

void tni_kv_post_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority)
{
    tni_kv_post *p = arg;
    tni_kv_link *l = link_to(p, to, header);
    tni_kv_parcel m = {.payload = payload, .bytes = bytes, .priority = priority};

    if (!l || leaves(p, l, header))
        return;
    memcpy(m.header, header, sizeof m.header);
    m.flags = urgent(header[TYPE_AT], bytes) ? TN_SEND_URGENT : 0;
    if (bytes > TNI_KV_COPY_MAX && !(p->info.flags & TN_TRANSPORT_REGIONS)) {
        m.hold = p->role && p->role->hold ? p->role->hold(p->role->arg) : NULL;
        if (!m.hold && (m.hold = copy_make(p, header, payload, bytes)))
            m.payload = ((tni_kv_copy *)m.hold)->bytes;
    }
    if (p->setup->verbose > 1)
        tni_logf(p->setup->log, TN_LOG_INFO, "kvstore: to %04x type %u key %llx round %u bytes %llu", to,
                 header[TYPE_AT], (unsigned long long)tni_kv_get(header + KEY_AT, 8),
                 (unsigned)tni_kv_get(header + ROUND_AT, 4), (unsigned long long)bytes);
    if (m.hold)
        m.hold->count++; /* ours, while it is tried */
    if ((l->parcels && !m.flags) || transfer(p, l, &m) == TN_PENDING)
        park(p, l, &m);
    hold_drop(m.hold);
}

void tni_kv_post_drop(tni_kv_post *p, const tni_kv_hold *hold)
{
    for (uint32_t i = 0; i < TNI_KV_BUCKETS; i++)
        for (tni_kv_link *l = p->buckets[i]; l; l = l->next)
            for (tni_kv_parcel **at = &l->parcels, *m; (m = *at) != NULL;) {
                if (m->hold != hold) {
                    at = &m->next;
                    continue;
                }
                *at = m->next;
                parcel_free(p, l, m);
            }
    for (const tni_kv_flight *f = p->flights; f; f = f->next)
        if (f->hold == hold)
            tni_kv_link_close(p, f->link);
}

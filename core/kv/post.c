/*
 * The loop of a process: what the role has to do, then what comes. And who is dialed: the scheduler by its
 * text, servers by the addresses of the view; a link that is lost is made again, with growing pauses.
 */
#include <string.h>

#include "kv/kv.h"
#include "kv/links.h"

#define EVENTS 32u
#define DIAL_MIN_NS 100000000u
#define DIAL_MAX_NS 2000000000u
#define UP_WAITS 20u             /* pauses within which a link that was dialed has to be up */
#define STRANGER_NS 10000000000u /* a link on which nothing valid came is closed then */
#define RECEIVE_BYTES ((uint64_t)64 << 20)
#define MEMBER_BYTES 300u /* of a view, at most */

static tn_status plugin_error(tn_status st, const tn_err *err, const tni_kv_post *p)
{
    return tni_error_take(st, err, p->ops->head.id);
}

/* ---- opening ---- */

/* The longest payload: a part, a view, a batch. Arrays below the bound are one part. */
static uint64_t message_max(const tni_kv_settings *s)
{
    const uint64_t whole = s->bound * 8, view = ((uint64_t)s->workers + s->servers) * MEMBER_BYTES;
    uint64_t most = s->part_bytes > whole ? s->part_bytes : whole;

    most = most > view ? most : view;
    return most + 2 * (uint64_t)TNI_KV_BATCH_MAX;
}

static tn_status transport_open(tni_kv_post *p, uint32_t role)
{
    const tni_kv_setup *s = p->setup;
    const uint64_t most = message_max(&s->settings);
    const tn_transport_config config = {.struct_size = (uint32_t)sizeof config,
                                        .flags = TN_OPEN_SHARED | (s->insecure ? TN_OPEN_INSECURE : 0),
                                        .secret = s->secured ? s->secret : NULL,
                                        .receive_bytes = 4 * most > RECEIVE_BYTES ? 4 * most : RECEIVE_BYTES,
                                        .message_max = most,
                                        .links_max = 2 * p->node_count + 64,
                                        .lanes = s->lanes};
    tn_err err = {0};
    tn_status st = p->ops->open(s->plugin, &config, &p->transport, &err);

    if (st)
        return plugin_error(st, &err, p);
    p->kept_max = config.receive_bytes / 2; /* the other half has room for two messages */
    p->info.struct_size = (uint32_t)sizeof p->info;
    p->ops->info(p->transport, &p->info);
    if (p->info.message_max < most)
        return tni_error(TN_E_UNSUPPORTED,
                         "transport %s takes messages of %llu bytes, kvstore.part_bytes needs %llu",
                         p->ops->head.id, (unsigned long long)p->info.message_max, (unsigned long long)most);
    if (role == TNI_KV_WORKER)
        return TN_OK;
    p->address_bytes = sizeof p->address;
    st = p->ops->listen(p->transport, s->listen, p->address, &p->address_bytes, &err);
    return st ? plugin_error(st, &err, p) : TN_OK;
}

tn_status tni_kv_post_open(tni_kv_setup *setup, uint32_t role, tni_kv_post **out)
{
    tni_kv_post *p = tni_zalloc(sizeof *p);
    tn_status st;

    if (!p)
        return TN_E_NOMEM;
    p->setup = setup;
    p->ops = setup->ops;
    p->own = role;
    p->node_count = 1 + setup->settings.servers + setup->settings.workers;
    p->now = setup->clock();
    p->random = p->now;
    p->nodes = tni_calloc(p->node_count, sizeof *p->nodes);
    st = p->nodes ? tni_keep_create(4 * setup->settings.part_bytes, &p->keep) : TN_E_NOMEM;
    if (!st)
        st = transport_open(p, role);
    if (st)
        tni_kv_post_close(p, 0);
    else
        *out = p;
    return st;
}

static void links_free(tni_kv_post *p)
{
    for (uint32_t i = 0; i < TNI_KV_BUCKETS; i++)
        while (p->buckets[i])
            tni_kv_link_gone(p, p->buckets[i]);
}

void tni_kv_post_close(tni_kv_post *p, uint64_t flush_ns)
{
    tni_kv_flight *f;

    if (!p)
        return;
    if (p->transport)
        p->ops->close(p->transport, flush_ns);
    links_free(p);
    while ((f = p->spare) != NULL) {
        p->spare = f->next;
        tni_free(f);
    }
    if (p->copy)
        tni_keep_give(p->keep, p->copy);
    tni_keep_destroy(p->keep);
    tni_free(p->nodes);
    tni_free(p);
}

/* A message of a node came: its answers go where it came from. */
static void heard(void *arg, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_post *p = arg;
    tni_kv_link *l = p->receiving;
    tni_kv_dial *d = tni_kv_post_node(p, h->from);

    if (!l)
        return;
    p->strangers -= !l->known && !l->dialed;
    l->known = true;
    l->heard_ns = p->now;
    if (h->type == TNI_KV_HELLO && h->bytes >= 13)
        l->birth = tni_kv_get(payload + 5, 8);
    else if (h->type == TNI_KV_ASK)
        l->birth = h->sequence;
    if (!d)
        return;
    if (l->dialed) {
        d->wait_ns = DIAL_MIN_NS;
    } else if (d->link != l) {
        if (d->link)
            tni_kv_link_close(p, d->link);
        d->link = l;
        l->node = h->from;
    }
}

/* A payload that no batch can hold is a message of its own. The transport has room for further ones. */
static void *keep(void *arg, uint64_t bytes)
{
    tni_kv_post *p = arg;
    void *held = p->held;

    if (!held || bytes <= TNI_KV_BATCH_MAX || bytes > p->kept_max - p->kept_bytes)
        return NULL;
    p->kept_bytes += bytes;
    p->held = NULL;
    return held;
}

static void give(void *arg, void *kept, uint64_t bytes)
{
    tni_kv_post *p = arg;

    p->kept_bytes -= bytes;
    p->ops->release(p->transport, kept);
}

void tni_kv_post_host(tni_kv_post *p, tni_kv_host *out)
{
    *out = (tni_kv_host){.arg = p,
                         .send = tni_kv_post_send,
                         .keep = keep,
                         .give = give,
                         .log = p->setup->log,
                         .heard = heard,
                         .clock = p->setup->clock,
                         .links_lost = &p->links_lost};
}

void tni_kv_post_address(const tni_kv_post *p, const void **out, uint32_t *bytes)
{
    *out = p->address;
    *bytes = p->address_bytes;
}

void tni_kv_post_wake(tni_kv_post *p)
{
    p->ops->wake(p->transport);
}

const char *tni_kv_post_why(const tni_kv_post *p)
{
    return p->why;
}

uint64_t tni_kv_post_bytes(const tni_kv_post *p)
{
    return p->waiting_bytes;
}

/* ---- dialing ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void why_set(tni_kv_post *p, uint16_t node, const char *text)
{
    if (node == TNI_KV_SCHEDULER_NODE)
        (void)snprintf(p->why, sizeof p->why, "%.*s", (int)sizeof p->why - 1, text);
}

static void dial_later(tni_kv_post *p, tni_kv_dial *d)
{
    d->at_ns = p->now + d->wait_ns;
    d->wait_ns = 2 * d->wait_ns > DIAL_MAX_NS ? DIAL_MAX_NS : 2 * d->wait_ns;
}

static void dial(tni_kv_post *p, tni_kv_dial *d, uint16_t node, const void *address, uint32_t bytes)
{
    tni_kv_link *l = NULL;
    tn_link *link = NULL;
    tn_err err = {0};
    tn_status st;

    if (p->ops != &tni_kv_near_ops)
        bytes = tni_kv_far_bytes(address, bytes);
    if ((st = p->ops->connect(p->transport, address, bytes, &link, &err)))
        why_set(p, node, err.message);
    else if (!(l = tni_kv_link_add(p, link)))
        p->ops->disconnect(link);
    if (!l) {
        dial_later(p, d);
        return;
    }
    p->strangers--;
    l->dialed = true;
    l->node = node;
    d->link = l;
}

/* A link that does not come up is dialed again, and one on which the scheduler, who answers each beat, is
 * silent; when it is due. */
static uint64_t dial_check(tni_kv_post *p, tni_kv_dial *d)
{
    const tni_kv_settings *s = &p->setup->settings;
    const tni_kv_link *l = d->link;
    uint64_t due = l->up_ns + UP_WAITS * d->wait_ns;

    if (l->up)
        due = d != p->nodes || !s->beat_ns ? TNI_KV_NEVER
                                           : (l->heard_ns ? l->heard_ns : l->up_ns) + 2 * s->suspect_ns;
    if (p->now < due)
        return due;
    dial_later(p, d);
    tni_kv_link_close(p, d->link);
    return d->at_ns;
}

/* Dials who is to be dialed and has no link; when the next is due. */
static uint64_t dial_all(tni_kv_post *p)
{
    const tni_kv_view *v = p->role->view(p->role->arg);
    const uint32_t servers = p->own == TNI_KV_WORKER ? v->servers : 0;
    uint64_t next = TNI_KV_NEVER;

    for (uint32_t i = 0; p->own != TNI_KV_SCHEDULER && i <= servers; i++) {
        const uint16_t node = i ? TNI_KV_NODE(TNI_KV_SERVER, i - 1) : TNI_KV_SCHEDULER_NODE;
        const tni_kv_member *m = i ? tni_kv_view_member(v, node) : NULL;
        tni_kv_dial *d = &p->nodes[i];

        if (m && (!m->address_bytes || m->state > TNI_KV_DEAD))
            continue;
        if (m && m->incarnation != d->incarnation) { /* another process */
            if (d->link)
                tni_kv_link_close(p, d->link);
            *d = (tni_kv_dial){.incarnation = m->incarnation};
        }
        if (d->link) {
            next = least(next, dial_check(p, d));
            continue;
        }
        d->wait_ns = d->wait_ns ? d->wait_ns : DIAL_MIN_NS;
        if (p->now >= d->at_ns)
            dial(p, d, node, m ? (const void *)m->address : p->setup->scheduler,
                 m ? m->address_bytes : (uint32_t)strlen(p->setup->scheduler));
        next = least(next, d->link ? d->link->up_ns + UP_WAITS * d->wait_ns : d->at_ns);
    }
    return next;
}

/* Closes links of which nobody knows who they are; when the next is due. */
static uint64_t strangers_close(tni_kv_post *p)
{
    uint64_t next = TNI_KV_NEVER;

    for (uint32_t i = 0; p->strangers && i < TNI_KV_BUCKETS; i++)
        for (tni_kv_link *l = p->buckets[i]; l; l = l->next) {
            const uint64_t due = l->up_ns + STRANGER_NS;

            if (l->known || l->dialed || l->closing)
                continue;
            if (p->now >= due)
                tni_kv_link_close(p, l);
            else
                next = due < next ? due : next;
        }
    return next;
}

/* ---- events ---- */

static void link_up(tni_kv_post *p, tn_link *link)
{
    tni_kv_link *l = tni_kv_link_find(p, link);
    char name[24] = "a peer";

    if (l)
        l->up = true;
    else if (!tni_kv_link_add(p, link))
        p->ops->disconnect(link);
    if (p->setup->verbose)
        tni_logf(p->setup->log, TN_LOG_INFO, "kvstore: connected with %s",
                 l ? tni_kv_node_name(l->node, name) : name);
}

static void link_down(tni_kv_post *p, const tn_transport_event *e)
{
    tni_kv_link *l = tni_kv_link_find(p, e->link);
    const char *text = e->text ? e->text : "the connection is lost";
    char name[24] = "a peer";
    tni_kv_dial *d;

    if (!l)
        return;
    p->links_lost++;
    d = l->dialed ? tni_kv_post_node(p, l->node) : NULL;
    if (p->setup->verbose)
        tni_logf(p->setup->log, TN_LOG_INFO, "kvstore: connection with %s: %s",
                 l->known || l->dialed ? tni_kv_node_name(l->node, name) : name, text);
    if (d && (!d->link || d->link == l)) {
        why_set(p, l->node, text);
        dial_later(p, d);
    }
    d = l->dialed ? NULL : tni_kv_post_node(p, l->node);
    if (!l->dialed && p->role->lost && (d ? d->link == l : l->birth != 0))
        p->role->lost(p->role->arg, l->node, l->birth);
    tni_kv_link_gone(p, l);
}

static bool planted(tni_kv_post *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->setup->drop && (p->random >> 33) % 1000000u < p->setup->drop;
}

/* Elements and no code: whoever changes them while they are read could as well have sent others. */
static bool numbers(const uint8_t *header)
{
    return header[3] == TNI_KV_VALUE || (header[3] == TNI_KV_PUSH && !header[6]);
}

static void message_take(tni_kv_post *p, const tn_transport_event *e)
{
    tni_kv_link *l = tni_kv_link_find(p, e->link);
    const uint16_t from = (uint16_t)tni_kv_get(e->header + 16, 2);

    /* what was dialed alone speaks for its node */
    p->held = e->held;
    if (l && !l->closing && !planted(p) && (l->dialed ? from == l->node : !tni_kv_post_dials(p, from))) {
        p->receiving = l;
        p->turn++;
        if (p->setup->verbose > 1)
            tni_logf(p->setup->log, TN_LOG_INFO, "kvstore: from %04x type %u round %u bytes %llu", from,
                     e->header[3], (unsigned)tni_kv_get(e->header + 28, 4), (unsigned long long)e->bytes);
        (void)p->role->receive(p->role->arg, e->header, e->data, e->bytes, p->now);
        p->receiving = NULL;
    }
    p->ops->release(p->transport, p->held);
    p->held = NULL;
}

/* What the sender can still change is looked at by way of a copy, and not kept. */
static void shared_take(tni_kv_post *p, const tn_transport_event *e)
{
    tn_transport_event own = *e;
    void *copy = numbers(e->header) ? NULL : tni_keep_take(p->keep, e->bytes);

    own.flags = 0;
    own.held = NULL;
    if (copy)
        own.data = memcpy(copy, e->data, e->bytes);
    if (copy || numbers(e->header))
        message_take(p, &own);
    if (copy)
        tni_keep_give(p->keep, copy);
    p->ops->release(p->transport, e->held);
}

static void event_take(tni_kv_post *p, const tn_transport_event *e)
{
    tni_kv_link *l;

    switch (e->kind) {
    case TN_EVENT_UP:
        link_up(p, e->link);
        break;
    case TN_EVENT_DOWN:
        link_down(p, e);
        break;
    case TN_EVENT_RECV:
        (e->flags & TN_RECV_SHARED ? shared_take : message_take)(p, e);
        break;
    case TN_EVENT_SENT:
        tni_kv_link_sent(p, e->cookie);
        break;
    case TN_EVENT_CREDIT:
        l = tni_kv_link_find(p, e->link);
        if (l && !l->closing)
            tni_kv_link_drain(p, l);
        break;
    default:
        break;
    }
}

uint64_t tni_kv_post_step(tni_kv_post *p)
{
    p->now = p->setup->clock();
    p->turn++;
    return p->role->step(p->role->arg, p->now);
}

tn_status tni_kv_post_run(tni_kv_post *p, const tni_kv_role *role)
{
    tn_transport_event events[EVENTS];
    tn_err err = {0};
    tn_status st = TN_OK;

    p->role = role;
    while (!st) {
        uint32_t count = EVENTS;
        uint64_t next;

        p->now = p->setup->clock();
        next = least(dial_all(p), strangers_close(p));
        next = least(next, tni_kv_post_step(p));
        if (role->over(role->arg))
            break;
        for (uint32_t i = 0; i < EVENTS; i++) {
            events[i].struct_size = (uint32_t)sizeof *events;
            events[i].flags = 0; /* a plugin may not know them */
        }
        p->now = p->setup->clock();
        st = p->ops->poll(p->transport, events, &count,
                          next == TNI_KV_NEVER ? UINT64_MAX : (next > p->now ? next - p->now : 0), &err);
        p->now = p->setup->clock();
        for (uint32_t i = 0; !st && i < count; i++)
            event_take(p, &events[i]);
    }
    return st ? plugin_error(st, &err, p) : TN_OK;
}

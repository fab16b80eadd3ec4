/*
 * The referee of transports: sites, ends, messages, events.
 */
#include "transport.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x74726f70736e6172ull
#define EVENTS 8u
#define PLAIN ((uint64_t)1 << 20)
#define POISON 0xEEu
#define TAIL 48u /* bytes of an event that only a later host knows */

/* The header of each message. */
typedef struct letter_head {
    uint64_t magic, seed, bytes;
    uint32_t end, order, sequence, post;
    uint64_t sum, reserved[2];
} letter_head;
_Static_assert(sizeof(letter_head) == TN_HEADER_BYTES, "the host's bytes of a message");

static uint64_t sum_of(const letter_head *h)
{
    uint64_t sum = h->magic;
    const uint64_t of[] = {h->seed, h->bytes, h->end, h->order, h->sequence, h->post};

    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        sum = (sum ^ of[i]) * 0x100000001b3u + i;
    return sum;
}

uint8_t chk_letter_byte(uint64_t seed, uint64_t at)
{
    return seed ? (uint8_t)(at * 0x9E37u + (at >> 8) * 7u + (at >> 16) + seed)
                : (uint8_t)(at * 31u + (at >> 8));
}

static void bytes_check(chk_env *env, const uint8_t *data, uint64_t seed, uint64_t bytes, const char *when)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i] != chk_letter_byte(seed, i))
            chk_fail(env, "T-bytes", "byte %llu of a message of %llu is another one than was sent%s",
                     (unsigned long long)i, (unsigned long long)bytes, when);
}

/* ---- sites -------------------------------------------------------------------------------------------- */

void chk_net_open(chk_net *net, chk_env *env, chk_host_kind kind)
{
    *net = (chk_net){.env = env,
                     .kind = kind,
                     .sites = calloc(CHK_SITES_MAX, sizeof *net->sites),
                     .ends = calloc(CHK_ENDS_MAX, sizeof *net->ends),
                     .posts = calloc(CHK_POSTS_MAX, sizeof *net->posts),
                     .plain = malloc(PLAIN)};
    chk_fail_if(env, !net->sites || !net->ends || !net->posts || !net->plain, "kit", "out of memory");
    for (uint64_t i = 0; i < PLAIN; i++)
        net->plain[i] = chk_letter_byte(0, i);
    net->ops = chk_capability(env, TN_KIND_TRANSPORT, env->subject, NULL);
    chk_fault_rules(env, "R3", "R3", "the transport");
    (void)chk_plugin_open(env, kind, &net->plugin);
}

static void post_free(chk_net *net, chk_post *p)
{
    for (uint32_t i = 0; p->regions && i < p->piece_count; i++) {
        tn_err err = {0};

        if (p->regions[i] && net->ops->region_remove(p->end->site->t, p->regions[i], &err))
            chk_fail(net->env, "T-region", "region_remove fails, though its cookie is back: %s", err.message);
    }
    free((void *)p->regions);
    p->regions = NULL;
    free(p->data);
    p->data = NULL;
}

void chk_net_close(chk_net *net)
{
    for (uint32_t i = 0; i < net->site_count; i++)
        if (net->sites[i].t)
            chk_site_close(&net->sites[i], 0);
    for (uint32_t i = 0; i < net->post_count; i++)
        post_free(net, &net->posts[i]);
    (void)chk_plugin_close(net->env, &net->plugin);
    free(net->sites);
    free(net->ends);
    free(net->posts);
    free(net->plain);
}

static uint32_t event_stride(const chk_net *net)
{
    return (uint32_t)TN_END(tn_transport_event, flags) + (net->kind == CHK_HOST_FUTURE ? TAIL : 0);
}

tn_status chk_site_try(chk_net *net, const tn_transport_config *limits, chk_site **out, tn_err *err)
{
    static const tn_transport_config usual = {0};
    const tn_transport_config *l = limits ? limits : &usual;
    tn_transport_config config = {.struct_size = (uint32_t)TN_END(tn_transport_config, lanes),
                                  .flags = l->flags,
                                  .secret = l->secret,
                                  .message_max = l->message_max ? l->message_max : (uint64_t)1 << 20,
                                  .receive_bytes = l->receive_bytes ? l->receive_bytes : (uint64_t)4 << 20,
                                  .links_max = l->links_max ? l->links_max : 64,
                                  .lanes = 1};
    chk_site *n = &net->sites[net->site_count];
    void *made, *info;
    tn_status st;

    chk_fail_if(net->env, net->site_count == CHK_SITES_MAX, "kit", "too many sites");
    *n = (chk_site){.net = net, .config = config, .held = calloc(CHK_HELD_MAX, sizeof *n->held)};
    chk_fail_if(net->env, !n->held, "kit", "out of memory");
    made = chk_struct_make(net->env, net->kind, &config, CHK_SIZES(tn_transport_config, lanes));
    st = net->ops->open(net->plugin.self, made, &n->t, err);
    chk_struct_free(made);
    if (st == TN_E_DEVICE && *err->message) /* as of a machine without one */
        chk_skip(net->env, "%s", err->message);
    if (st) {
        free(n->held);
        return st;
    }
    chk_fail_if(net->env, !n->t, "R1", "open gives no transport");
    info = chk_struct_make(net->env, net->kind,
                           &(tn_transport_info){.struct_size = (uint32_t)TN_END(tn_transport_info, reserved)},
                           CHK_SIZES(tn_transport_info, reserved));
    net->ops->info(n->t, info);
    memcpy(&n->info, info, TN_END(tn_transport_info, reserved));
    chk_fail_if(net->env, !chk_struct_intact(info), "R3", "info writes behind the end of the host's struct");
    chk_struct_free(info);
    n->events = chk_buffer_create(net->env, (uint64_t)EVENTS * event_stride(net), 0, CHK_GUARD_END);
    chk_buffer_guard(n->events, "T-events", "behind the events that poll may fill in");
    net->site_count++;
    *out = n;
    return TN_OK;
}

chk_site *chk_site_open(chk_net *net, const tn_transport_config *limits)
{
    chk_site *n = NULL;
    tn_err err = {0};
    const tn_status st = chk_site_try(net, limits, &n, &err);

    chk_fail_if(net->env, st, "T-open", "open fails with %s: %s", tn_status_name(st), err.message);
    return n;
}

void chk_site_listen(chk_site *n)
{
    tn_err err = {0};
    const tn_status st = n->net->ops->listen(n->t, "127.0.0.1:0", n->address, &n->address_bytes, &err);

    chk_fail_if(n->net->env, st, "T-listen", "listen on 127.0.0.1:0 fails with %s: %s", tn_status_name(st),
                err.message);
    chk_fail_if(n->net->env, !n->address_bytes || n->address_bytes > TN_TRANSPORT_ADDRESS_MAX, "T-listen",
                "listen gives an address of %u bytes", (unsigned)n->address_bytes);
}

void chk_site_release(chk_site *n, uint32_t keep)
{
    while (n->held_count > keep) {
        const uint32_t at = (uint32_t)(chk_random(n->net->env) % n->held_count);
        const chk_held h = n->held[at];

        bytes_check(n->net->env, h.data, h.seed, h.bytes, ", once others have come behind it");
        n->held[at] = n->held[--n->held_count];
        n->held_bytes -= h.bytes;
        n->net->ops->release(n->t, h.held);
    }
}

void chk_site_close(chk_site *n, uint64_t timeout_ns)
{
    chk_site_release(n, 0);
    n->net->ops->close(n->t, timeout_ns);
    chk_site_closed(n);
}

void chk_site_closed(chk_site *n)
{
    chk_net *net = n->net;

    n->t = NULL;
    for (uint32_t i = 0; i < net->post_count; i++)
        if (net->posts[i].end->site == n) { /* what it held is used no more; regions went with it */
            free((void *)net->posts[i].regions);
            net->posts[i].regions = NULL;
            net->posts[i].out = false;
            if (net->posts[i].data)
                memset(net->posts[i].data, POISON, net->posts[i].bytes);
        }
    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++)
        if (net->ends[i].used && net->ends[i].site == n)
            net->ends[i].down = true;
    chk_buffer_destroy(n->events);
    free(n->held);
}

/* ---- ends --------------------------------------------------------------------------------------------- */

static chk_end *end_new(chk_site *n, tn_link *link, bool called)
{
    chk_net *net = n->net;

    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++)
        if (!net->ends[i].used) {
            net->ends[i] = (chk_end){.site = n, .link = link, .used = true, .called = called};
            return &net->ends[i];
        }
    chk_fail(net->env, "kit", "too many links");
}

static chk_end *end_of(const chk_site *n, const tn_link *link)
{
    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++) {
        chk_end *e = &n->net->ends[i];

        if (e->used && e->site == n && !e->down && e->link == link)
            return e;
    }
    return NULL;
}

static chk_end *connect_to(chk_site *n, const void *address, uint32_t bytes)
{
    tn_link *link = NULL;
    tn_err err = {0};
    const tn_status st = n->net->ops->connect(n->t, address, bytes, &link, &err);

    if (st == TN_E_NOMEM && n->net->forgives)
        return NULL;
    chk_fail_if(n->net->env, st, "T-connect", "connect fails with %s: %s", tn_status_name(st), err.message);
    chk_fail_if(n->net->env, !link, "R1", "connect gives no link");
    chk_fail_if(n->net->env, end_of(n, link) != NULL, "R1", "connect gives a link that there is already");
    return end_new(n, link, true);
}

chk_end *chk_site_connect(chk_site *n, const chk_site *to)
{
    return connect_to(n, to->address, to->address_bytes);
}

chk_end *chk_site_connect_text(chk_site *n, const char *address)
{
    return connect_to(n, address, (uint32_t)strlen(address));
}

chk_end *chk_site_came(const chk_site *n, uint32_t index)
{
    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++) {
        chk_end *e = &n->net->ends[i];

        if (e->used && e->site == n && !e->called && index-- == 0)
            return e;
    }
    return NULL;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

chk_letter chk_letter_random(chk_end *end, uint64_t bytes)
{
    const uint64_t r = chk_random(end->site->net->env);
    const uint32_t pieces = end->site->info.pieces_max < 16 ? end->site->info.pieces_max : 16;
    chk_letter l = {.flags = r >> 8 & 1 ? TN_SEND_COPY : 0, .pieces = 1 + (uint32_t)(r >> 16) % pieces};

    l.bytes = r % 4 ? (r >> 32) % (bytes < 2000 ? bytes + 1 : 2000) : (r >> 32) % (bytes + 1);
    if (r >> 12 & 1)
        l.pieces = 1;
    return l;
}

/* Cuts the payload into pieces, of which some are empty; `regions` holds room for theirs, or is NULL.
 * False: no memory for a region. */
static bool pieces_fill(chk_post *p, const uint8_t *data, tn_piece *pieces)
{
    chk_net *net = p->end->site->net;
    uint64_t at = 0;

    for (uint32_t i = 0; i < p->piece_count; i++) {
        const uint64_t left = p->bytes - at;
        const uint64_t bytes = i + 1 == p->piece_count ? left : chk_random(net->env) % (left + 1) / 2;
        tn_err err = {0};

        pieces[i] = (tn_piece){.data = bytes ? data + at : NULL, .bytes = bytes};
        if (p->regions && bytes) {
            const tn_status st = net->ops->region_add(p->end->site->t, (void *)(uintptr_t)pieces[i].data,
                                                      bytes, &p->regions[i], &err);

            if (st == TN_E_NOMEM && net->forgives)
                return false;
            chk_fail_if(net->env, st, "T-region", "region_add fails with %s: %s", tn_status_name(st),
                        err.message);
            pieces[i].region = p->regions[i];
        }
        at += bytes;
    }
    return true;
}

/* Calls send with structs that are the host's for the call alone. */
static tn_status send_call(chk_post *p, const chk_letter *l, letter_head *head, tn_piece *pieces, tn_err *err)
{
    chk_net *net = p->end->site->net;
    tn_send what = {.struct_size = (uint32_t)TN_END(tn_send, offset),
                    .flags = l->flags,
                    .header = head,
                    .pieces = pieces,
                    .piece_count = p->piece_count,
                    .priority = l->order == 2   ? 7
                                : l->order == 1 ? -3
                                                : 0,
                    .cookie = p->cookie};
    void *made = chk_struct_make(net->env, net->kind, &what, CHK_SIZES(tn_send, offset));
    const tn_status st = net->ops->send(p->end->link, made, err);

    chk_fail_if(net->env, !chk_struct_intact(made), "R3", "send writes to the host's message");
    chk_struct_free(made);
    memset(head, POISON, sizeof *head);
    memset(pieces, POISON, sizeof *pieces * (p->piece_count ? p->piece_count : 1));
    return st;
}

tn_status chk_end_send(chk_end *end, const chk_letter *l)
{
    chk_net *net = end->site->net;
    const uint32_t order = l->flags & TN_SEND_URGENT ? CHK_URGENT : l->order;
    const bool regions = end->site->info.flags & TN_TRANSPORT_REGIONS && !(l->flags & TN_SEND_COPY);
    chk_post *p = &net->posts[net->post_count];
    letter_head head = {.magic = MAGIC, .bytes = l->bytes, .end = (uint32_t)(end - net->ends)};
    tn_piece pieces[17];
    tn_err err = {0};
    tn_status st;

    chk_fail_if(net->env, net->post_count == CHK_POSTS_MAX, "kit", "too many messages");
    *p = (chk_post){.end = end,
                    .cookie = chk_random(net->env) << 20 | net->post_count,
                    .seed = l->plain ? 0 : chk_random(net->env) | 1,
                    .bytes = l->bytes,
                    .piece_count = l->pieces  ? l->pieces
                                   : l->bytes ? 1
                                              : 0,
                    .data = l->plain ? NULL : malloc(l->bytes + 1),
                    .regions = regions ? calloc(16, sizeof *p->regions) : NULL};
    chk_fail_if(net->env, (!l->plain && !p->data) || (regions && !p->regions), "kit", "out of memory");
    for (uint64_t i = 0; p->data && i < l->bytes; i++)
        p->data[i] = chk_letter_byte(p->seed, i);
    if (!pieces_fill(p, l->plain ? net->plain : p->data, pieces)) {
        post_free(net, p);
        return TN_E_NOMEM;
    }
    head.seed = p->seed;
    head.order = order;
    head.sequence = end->sent[order];
    head.post = net->post_count;
    head.sum = sum_of(&head);
    st = send_call(p, l, &head, pieces, &err);
    if (st && st != TN_PENDING && st != TN_E_PEER && (st != TN_E_NOMEM || !net->forgives))
        chk_fail(net->env, NULL, "send of %llu bytes fails with %s: %s", (unsigned long long)l->bytes,
                 tn_status_name(st), err.message);
    if (st) {
        post_free(net, p);
        end->waits |= st == TN_PENDING;
        return st;
    }
    net->post_count++;
    end->sent[order]++;
    end->sent_all++;
    p->out = !(l->flags & TN_SEND_COPY);
    end->out += p->out;
    if (!p->out && p->data)
        memset(p->data, POISON, p->bytes); /* it was copied */
    return TN_OK;
}

/* ---- events ------------------------------------------------------------------------------------------- */

uint64_t chk_letter_seed(const uint8_t *header)
{
    letter_head h;

    memcpy(&h, header, sizeof h);
    return h.seed;
}

static void event_received(chk_end *e, const tn_transport_event *x)
{
    chk_site *n = e->site;
    chk_env *env = n->net->env;
    letter_head h;

    memcpy(&h, x->header, sizeof h);
    chk_fail_if(env, h.magic != MAGIC || h.sum != sum_of(&h) || h.order >= CHK_CLASSES, "T-header",
                "a message comes whose header nobody sent");
    chk_fail_if(env, x->bytes != h.bytes, "T-bytes", "a message of %llu bytes comes with %llu",
                (unsigned long long)h.bytes, (unsigned long long)x->bytes);
    chk_fail_if(env, x->bytes && (!x->data || (uintptr_t)x->data % 8), "T-align",
                "a payload is not aligned to 8 bytes");
    chk_fail_if(env, e->from && e->from != h.end + 1, "T-link",
                "a message comes by another link than that on which it was sent");
    for (uint32_t i = 0; i < CHK_ENDS_MAX && !e->from; i++)
        chk_fail_if(env, n->net->ends[i].from == h.end + 1, "T-link", "messages of one link come by two%s",
                    n->net->ends[i].down ? ", of which one is down" : "");
    e->from = h.end + 1;
    if (h.sequence != e->received[h.order])
        chk_fail(env, h.sequence < e->received[h.order] ? "T-once" : "T-order",
                 "message %u of its kind comes where message %u was awaited", (unsigned)h.sequence,
                 (unsigned)e->received[h.order]);
    chk_fail_if(env, x->slot != UINT64_MAX, "T-slot", "a message that is no put names a slot");
    bytes_check(env, x->data, h.seed, x->bytes, "");
    e->received[h.order]++;
    e->received_all++;
    n->net->received++;
    chk_fail_if(env, n->held_count == CHK_HELD_MAX, "kit", "too many messages are held");
    n->held[n->held_count++] = (chk_held){x->held, x->data, h.seed, x->bytes};
    n->held_bytes += x->bytes;
    chk_fail_if(env, n->held_bytes > n->config.receive_bytes, "T-bound",
                "%llu bytes are handed out and not released; receive_bytes is %llu",
                (unsigned long long)n->held_bytes, (unsigned long long)n->config.receive_bytes);
}

static void event_sent(chk_end *e, const tn_transport_event *x)
{
    chk_net *net = e->site->net;
    const uint64_t index = x->cookie & 0xfffff;
    chk_post *p = index < net->post_count ? &net->posts[index] : NULL;

    chk_fail_if(net->env, !p || p->cookie != x->cookie, "T-cookie",
                "SENT comes for a cookie that was not sent");
    chk_fail_if(net->env, !p->out, "T-cookie", "SENT comes twice, or for a message that was copied");
    chk_fail_if(net->env, p->end != e, "T-cookie", "SENT comes for another link than that of the message");
    chk_fail_if(net->env, x->status != TN_OK && x->status != TN_E_CANCELLED, "T-cookie", "SENT with %s",
                tn_status_name(x->status));
    p->out = false;
    e->out--;
    e->cancelled += x->status == TN_E_CANCELLED;
    if (p->data)
        memset(p->data, POISON, p->bytes); /* ours again */
    if (p->regions)
        post_free(net, p);
}

static void event_down(chk_end *e, const tn_transport_event *x)
{
    chk_env *env = e->site->net->env;

    chk_fail_if(env, e->out, "T-cookie", "the link is down, and %u cookies have not come back",
                (unsigned)e->out);
    chk_fail_if(env, x->status != TN_OK && x->status != TN_E_PEER && x->status != TN_E_CANCELLED, "T-down",
                "DOWN with %s", tn_status_name(x->status));
    chk_fail_if(env, (x->status == TN_E_CANCELLED) > e->quits, "T-down",
                "DOWN says that the host disconnected, which it did not");
    chk_fail_if(env, x->text && !memchr(x->text, 0, 4096), "R1", "the text of DOWN has no end");
    e->down = true;
    e->waits = false;
    e->why = x->status;
}

static void event_look(chk_site *n, const tn_transport_event *x)
{
    chk_env *env = n->net->env;
    chk_end *e = end_of(n, x->link);

    chk_count(env);
    chk_fail_if(env, !x->link, "R1", "an event without a link");
    chk_fail_if(env, x->reserved || x->flags, "R1", "`reserved` of an event is %u, its flags %llu",
                (unsigned)x->reserved, (unsigned long long)x->flags);
    if (!e && x->kind == TN_EVENT_UP)
        e = end_new(n, x->link, false);
    chk_fail_if(env, !e, "T-down", "an event of kind %u for a link that is down, or never came up",
                (unsigned)x->kind);
    switch (x->kind) {
    case TN_EVENT_UP:
        chk_fail_if(env, e->up, "T-up", "UP comes twice");
        e->up = true;
        break;
    case TN_EVENT_DOWN:
        event_down(e, x);
        break;
    case TN_EVENT_RECV:
        chk_fail_if(env, !e->up, "T-up", "a message comes before UP");
        event_received(e, x);
        break;
    case TN_EVENT_SENT:
        event_sent(e, x);
        break;
    case TN_EVENT_CREDIT:
        chk_fail_if(env, !e->waits, "T-credit", "CREDIT comes, though send has not said TN_PENDING");
        e->waits = false;
        e->credits++;
        break;
    default:
        chk_fail(env, "R1", "an event of kind %u", (unsigned)x->kind);
    }
}

uint32_t chk_site_poll(chk_site *n, uint64_t timeout_ns)
{
    chk_env *env = n->net->env;
    const uint32_t room = 1 + (uint32_t)(chk_random(env) % EVENTS), stride = event_stride(n->net);
    uint8_t *from = (uint8_t *)chk_buffer_data(n->events) + (uint64_t)(EVENTS - room) * stride;
    uint32_t count = room;
    tn_err err = {0};
    tn_status st;

    memset(from, POISON, (uint64_t)room * stride);
    for (uint32_t i = 0; i < room; i++)
        memcpy(from + (uint64_t)i * stride, &stride, sizeof stride);
    st = n->net->ops->poll(n->t, (tn_transport_event *)(void *)from, &count, timeout_ns, &err);
    if (st == TN_E_NOMEM && n->net->forgives)
        return 0;
    chk_fail_if(env, st, "T-poll", "poll fails with %s: %s", tn_status_name(st), err.message);
    chk_fail_if(env, count > room, "T-events", "poll gives %u events where %u may be", (unsigned)count,
                (unsigned)room);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *at = from + (uint64_t)i * stride;
        tn_transport_event x;

        memcpy(&x, at, TN_END(tn_transport_event, flags));
        chk_fail_if(env, x.struct_size != stride, "R3", "an event has struct_size %u, the host's is %u",
                    (unsigned)x.struct_size, (unsigned)stride);
        for (uint32_t k = (uint32_t)TN_END(tn_transport_event, flags); k < stride; k++)
            chk_fail_if(env, at[k] != POISON, "R3",
                        "poll writes to what only a later host knows of an event");
        event_look(n, &x);
    }
    if (!n->keeps)
        chk_site_release(n, (uint32_t)(chk_random(env) % 4));
    return count;
}

uint32_t chk_net_turn(chk_net *net)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < net->site_count; i++)
        if (net->sites[i].t)
            count += chk_site_poll(&net->sites[i], 0);
    for (uint32_t i = 0; !count && i < net->site_count; i++)
        if (net->sites[i].t)
            count += chk_site_poll(&net->sites[i], 500000);
    return count;
}

void chk_net_until(chk_net *net, bool (*over)(const void *arg), const void *arg, const char *rule,
                   const char *text)
{
    chk_stillness still = {0};

    while (!over(arg)) {
        if (chk_net_turn(net))
            still = (chk_stillness){0};
        else if (chk_is_over(&still, CHK_QUIET * chk_patience()))
            chk_fail(net->env, rule, "nothing comes any more: %s", text);
        for (uint32_t i = 0; i < net->site_count; i++)
            if (net->sites[i].t && !net->sites[i].keeps && chk_random(net->env) % 8 == 0)
                chk_site_release(&net->sites[i], 0);
    }
}

static bool has_credit(const void *arg)
{
    return !((const chk_end *)arg)->waits;
}

void chk_end_post(chk_end *end, const chk_letter *l)
{
    chk_net *net = end->site->net;
    tn_status st;

    while ((st = chk_end_send(end, l)) == TN_PENDING)
        chk_net_until(net, has_credit, end, "T-credit", "send has said TN_PENDING, and CREDIT does not come");
    chk_fail_if(net->env, st, "T-send", "send says that a link is gone which should be up");
}

typedef struct pair {
    chk_site *there;
    const chk_end *here;
} pair;

static bool pair_up(const void *arg)
{
    const pair *p = arg;

    return p->here->up && chk_site_came(p->there, 0);
}

void chk_net_two(chk_net *net, chk_env *env, const tn_transport_config *here,
                 const tn_transport_config *there, chk_site **a, chk_site **b)
{
    chk_net_open(net, env, CHK_HOST_EXACT);
    *a = chk_site_open(net, here);
    *b = chk_site_open(net, there);
    chk_site_listen(*b);
}

void chk_net_pair(chk_net *net, chk_end **here, chk_end **there)
{
    chk_site *a = chk_site_open(net, NULL), *b = chk_site_open(net, NULL);
    pair p = {.there = b};

    chk_site_listen(b);
    p.here = *here = chk_site_connect(a, b);
    chk_net_until(net, pair_up, &p, "T-up", "connect was called, and UP has not come at both ends");
    *there = chk_site_came(b, 0);
}

/* Pairs are known by what came: of the number of messages alone. */
bool chk_net_settled(const void *arg)
{
    const chk_net *net = arg;
    uint64_t sent = 0;
    bool back = true;

    for (uint32_t i = 0; i < CHK_ENDS_MAX; i++) {
        sent += net->ends[i].sent_all;
        back &= !net->ends[i].out && !net->ends[i].waits;
    }
    return back && net->received == sent;
}

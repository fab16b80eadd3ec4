/*
 * The transport of `plugins new`, with puts and regions: each payload has a prefix that says what it is.
 * PLANTED says what is wrong with it, NAME what it is called.
 */
#include "tenon/plugin/transport.h"

enum {
    HEALTHY,
    SENT_LOST,        /* every 20th SENT is not told */
    SENT_TWICE,       /* and here twice */
    SENT_EARLY,       /* SENT is told while the bytes still wait */
    SENT_BEHIND,      /* SENT is told behind DOWN */
    CUT,              /* a long message arrives without its last byte */
    JOINED,           /* a message arrives with the next one behind it */
    HALF,             /* RECV is told before the last bytes are here */
    CAME_TWICE,       /* every 20th message arrives twice */
    SWAPPED,          /* two messages arrive in each other's place */
    SHIFTED,          /* payloads are aligned to 4 bytes */
    WRITTEN,          /* a payload changes before it is released */
    CREDIT_LOST,      /* TN_PENDING without TN_EVENT_CREDIT */
    NO_QUEUE_LIMIT,   /* send never says TN_PENDING */
    NO_RECEIVE_LIMIT, /* nor does a peer that does not release hold anybody up */
    DOWN_TWICE,       /* DOWN is told twice */
    DOWN_LOST,        /* a link that is lost is not told */
    BYE_LOST,         /* nor one that the peer closed */
    CLOSE_CUTS,       /* close does not send what waits */
    WAKE_LOST,        /* wake before poll is forgotten */
    IMPATIENT,        /* poll does not wait */
    LONG_SENT,        /* send takes what is longer than message_max */
    LONG_TAKEN,       /* so does the peer */
    NO_LINKS_LIMIT,   /* links_max is ignored */
    LISTENS_TWICE,    /* a second listen is TN_OK */
    ANYWHERE,         /* goes beyond loopback without a secret */
    DESCRIPTOR_LEFT,  /* a link leaves a descriptor behind */
    BLOCK_LEFT,       /* a link leaves memory behind */
    STRANGER_COSTS,   /* so does each connection that is refused */
    STRIDE,           /* events are written at a distance of its own */
    MEMORY_OTHER,     /* out of memory is called something else */
    BEYOND_LANDING,   /* a put is written past the end of its landing */
    OTHER_SLOT,       /* RECV behind a put names another slot */
    REGION_LEFT,      /* region_remove frees nothing */
    DESCRIPTOR_DEAF,  /* the descriptor tells of wake alone */
};

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "../../../sdk/template/transport/acme_transport.h"
#undef QUEUE_MAX
#define QUEUE_MAX (PLANTED == NO_QUEUE_LIMIT ? 1u << 30 : 64u)
#include "../../../sdk/template/transport/acme_transport.c"
#include "../../../sdk/template/transport/acme_transport_address.c"
#include "../../../sdk/template/transport/acme_transport_link.c"
#pragma pop_macro("TN_PLUGIN_DEFINE")

#include <pthread.h>

#define PREFIX 32u
#define LANDINGS 64u
#define EVENTS 16u

struct tn_region {
    const uint8_t *data;
    uint64_t bytes;
};

typedef struct prefix {
    uint64_t is_put, token, offset, reserved;
} prefix;

typedef struct landing {
    tn_link *link;
    uint64_t token, slot, bytes;
    uint8_t *data;
} landing;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static landing landings[LANDINGS]; /* of all transports; link NULL: free */
static uint64_t tokens;
static const prefix message_prefix;
static uint32_t faults; /* chances up to now */

/* Every so-manieth time. */
static bool now_and_then(uint32_t every)
{
    return ++faults % every == 0;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

#define EARLY_MAX 128u
static struct early { /* what SENT is told of by the next poll */
    tn_transport *t;
    tn_link *link;
    uint64_t cookie;
} early[EARLY_MAX];
static uint32_t early_count;
#define EARLY_COOKIE UINT64_MAX

static bool regions_hold(const tn_send *message)
{
    for (uint32_t i = 0; i < message->piece_count && !(message->flags & TN_SEND_COPY); i++) {
        const tn_piece *p = &message->pieces[i];
        const tn_region *r = p->region;

        if (p->bytes && (!r || (const uint8_t *)p->data < r->data || p->bytes > r->bytes ||
                         (uint64_t)((const uint8_t *)p->data - r->data) > r->bytes - p->bytes))
            return false;
    }
    return true;
}

static tn_status prefixed_send(tn_link *l, const tn_send *message, const prefix *what, tn_err *err)
{
    tn_piece pieces[PIECES_MAX];
    tn_send with;
    tn_status st;

    memset(&with, 0, sizeof with);
    memcpy(&with, message, message->struct_size < sizeof with ? message->struct_size : sizeof with);
    if (with.piece_count >= PIECES_MAX || !regions_hold(message))
        return tn_fail(err, TN_E_ARG, "too many pieces, or one that lies in no region");
    pieces[0] = (tn_piece){.data = what, .bytes = sizeof *what};
    for (uint32_t i = 0; i < with.piece_count; i++)
        pieces[i + 1] = message->pieces[i];
    with.struct_size = (uint32_t)sizeof with;
    with.pieces = pieces;
    with.piece_count++;
    if (PLANTED == SENT_EARLY && !(with.flags & TN_SEND_COPY) && early_count < EARLY_MAX)
        with.cookie = EARLY_COOKIE;
    st = tcp_send(l, &with, err);
    if (!st && with.cookie == EARLY_COOKIE)
        early[early_count++] = (struct early){l->t, l, message->cookie};
    return st;
}

static tn_status own_send(tn_link *l, const tn_send *message, tn_err *err)
{
    return prefixed_send(l, message, &message_prefix, err);
}

/* Puts are always copied. */
static tn_status own_put(tn_link *l, const tn_send *message, tn_err *err)
{
    const prefix what = {.is_put = 1, .token = message->token, .offset = message->offset};

    if (!(message->flags & TN_SEND_COPY))
        return tn_fail(err, TN_E_UNSUPPORTED, "a put that is not copied");
    return prefixed_send(l, message, &what, err);
}

/* ---- landings and regions ----------------------------------------------------------------------------- */

static tn_status own_landing(tn_link *l, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                             uint64_t *token, tn_err *err)
{
    tn_status st = TN_E_NOMEM;

    (void)region;
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < LANDINGS && st; i++)
        if (!landings[i].link) {
            landings[i] = (landing){l, *token = ++tokens * 0x9E3779B97F4A7C15u, slot, bytes, data};
            st = TN_OK;
        }
    (void)pthread_mutex_unlock(&lock);
    return st ? tn_fail(err, st, "too many landings") : TN_OK;
}

/* Of `link` that with `token`; 0: all of its. */
static void own_landing_remove(tn_link *link, uint64_t token)
{
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < LANDINGS; i++)
        if (landings[i].link == link && (!token || landings[i].token == token))
            landings[i].link = NULL;
    (void)pthread_mutex_unlock(&lock);
}

/* False: the put has no place there. */
static bool put_land(tn_transport_event *e, const prefix *what, const uint8_t *data, uint64_t bytes)
{
    landing at = {NULL, 0, 0, 0, NULL};

    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < LANDINGS; i++)
        if (landings[i].link == e->link && landings[i].token == what->token)
            at = landings[i];
    (void)pthread_mutex_unlock(&lock);
    if (!at.link || what->offset > at.bytes)
        return false;
    if (bytes > at.bytes - what->offset && !(PLANTED == BEYOND_LANDING))
        return false;
    if (bytes)
        memcpy(at.data + what->offset, data, bytes);
    e->slot = at.slot + (PLANTED == OTHER_SLOT);
    e->data = NULL;
    e->bytes = bytes;
    return true;
}

static tn_status own_region_add(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err)
{
    tn_region *r = malloc(sizeof *r);

    (void)t;
    if (!r)
        return tn_fail(err, TN_E_NOMEM, "out of memory for a region");
    *r = (tn_region){data, bytes};
    *out = r;
    return TN_OK;
}

static tn_status own_region_remove(tn_transport *t, tn_region *region, tn_err *err)
{
    (void)t;
    (void)err;
    if (!(PLANTED == REGION_LEFT))
        free(region);
    return TN_OK;
}

/* ---- events ------------------------------------------------------------------------------------------- */

/* Takes the prefix off a message. False: it is a put without a place, and nothing is told. */
static bool received(tn_transport *t, tn_transport_event *e)
{
    prefix what;
    uint8_t *data = (uint8_t *)(uintptr_t)e->data;

    if (e->bytes < sizeof what) {
        tcp_link_end(e->link, TN_E_PEER, "a message without a prefix");
        transport_release(t, e->held);
        return false;
    }
    memcpy(&what, data, sizeof what);
    e->data = data + PREFIX;
    e->bytes -= PREFIX;
    if (what.is_put && !put_land(e, &what, data + PREFIX, e->bytes)) {
        tcp_link_end(e->link, TN_E_PEER, "a put without a place");
        transport_release(t, e->held);
        return false;
    }
    if (PLANTED == CUT && e->bytes > 50000)
        e->bytes--;
    if (PLANTED == HALF && e->bytes > 50000)
        memset(data + PREFIX + e->bytes - 64, 0, 64);
    if (PLANTED == SHIFTED && e->bytes > 50000) {
        memmove(data + 20, data + PREFIX, e->bytes);
        e->data = data + 20;
    }
    return true;
}

/* What is wrong with lists of events: `list` has room for twice as many. */
static uint32_t events_spoil(tn_transport_event *list, uint32_t count)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < count; i++) {
        const tn_transport_event e = list[i];
        const bool sent = e.kind == TN_EVENT_SENT, came = e.kind == TN_EVENT_RECV;

        if ((PLANTED == SENT_LOST && sent && now_and_then(20)) ||
            (PLANTED == SENT_EARLY && sent && e.cookie == EARLY_COOKIE) ||
            (PLANTED == CREDIT_LOST && e.kind == TN_EVENT_CREDIT) ||
            (PLANTED == DOWN_LOST && e.kind == TN_EVENT_DOWN && e.status == TN_E_PEER) ||
            (PLANTED == BYE_LOST && e.kind == TN_EVENT_DOWN && e.status == TN_OK))
            continue;
        if (PLANTED == SENT_BEHIND && sent && e.status == TN_E_CANCELLED && early_count < EARLY_MAX) {
            early[early_count++] = (struct early){e.link->t, e.link, e.cookie};
            continue;
        }
        if (PLANTED == JOINED && came && used && list[used - 1].kind == TN_EVENT_RECV && now_and_then(20)) {
            list[used - 1].bytes += e.bytes;
            continue;
        }
        list[used++] = e;
        if (PLANTED == SWAPPED && used > 1 && came && list[used - 2].kind == TN_EVENT_RECV &&
            now_and_then(20)) {
            list[used - 1] = list[used - 2];
            list[used - 2] = e;
        }
        if ((PLANTED == SENT_TWICE && sent && now_and_then(20)) ||
            (PLANTED == DOWN_TWICE && e.kind == TN_EVENT_DOWN) ||
            (PLANTED == CAME_TWICE && came && now_and_then(20))) {
            memmove(&list[used + 1], &list[i + 1], (count - i - 1) * sizeof *list);
            list[used++] = e;
            count++;
            i++;
            list[used - 1].held = NULL;
        }
    }
    return used;
}

static uint32_t early_take(tn_transport *t, tn_transport_event *list, uint32_t room)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < early_count && count < room; i++)
        if (early[i].t == t) {
            list[count++] = (tn_transport_event){.struct_size = (uint32_t)sizeof *list,
                                                 .kind = TN_EVENT_SENT,
                                                 .link = early[i].link,
                                                 .cookie = early[i].cookie,
                                                 .slot = UINT64_MAX};
            early[i] = early[--early_count];
            i--;
        }
    return count;
}

/* What a fault leaves behind where a link goes, or a stranger. */
static void leave(const tn_transport *t, uint32_t kind)
{
    static uint64_t refused;

    if (PLANTED == DESCRIPTOR_LEFT && kind == TN_EVENT_DOWN)
        (void)dup(t->wake);
    if ((PLANTED == BLOCK_LEFT && kind == TN_EVENT_DOWN) ||
        (PLANTED == STRANGER_COSTS && !kind && t->refused > refused)) {
        void *volatile lost = malloc(65536);

        (void)lost;
        refused++;
    }
}

static tn_status own_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                          tn_err *err)
{
    static uint8_t *written;
    tn_transport_event list[3 * EVENTS];
    const uint32_t stride = events->struct_size, most = *count < EVENTS ? *count : EVENTS;
    uint32_t got = (most + 1) / 2, used = early_take(t, list, most - got), room = got;
    tn_status st;

    if (PLANTED == WRITTEN && written && t->held)
        *written ^= 1;
    written = NULL;
    for (uint32_t i = 0; i < room; i++)
        list[used + i].struct_size = (uint32_t)sizeof *list;
    st = transport_poll(t, list + used, &got, PLANTED == IMPATIENT || used ? 0 : timeout_ns, err);
    leave(t, 0);
    for (uint32_t i = used, end = used + got; i < end; i++) {
        if (list[i].kind == TN_EVENT_RECV && !received(t, &list[i]))
            continue;
        if (list[i].kind == TN_EVENT_RECV && list[i].bytes > 1000)
            written = (uint8_t *)(uintptr_t)list[i].data;
        if (list[i].kind == TN_EVENT_DOWN)
            own_landing_remove(list[i].link, 0);
        leave(t, list[i].kind);
        list[used++] = list[i];
    }
    used = events_spoil(list, used);
    *count = used < *count ? used : *count;
    for (uint32_t i = 0; i < *count; i++) {
        tn_transport_event *to = PLANTED == STRIDE ? &events[i] : tn_transport_event_at(events, i);

        list[i].struct_size = stride;
        memcpy(to, &list[i], stride < sizeof *list ? stride : sizeof *list);
    }
    return st;
}

/* ---- the transport ------------------------------------------------------------------------------------ */

static tn_status own_open(void *self, const tn_transport_config *config, tn_transport **out, tn_err *err)
{
    tn_transport_config c = *config;
    tn_status st;

    if (config->message_max > config->receive_bytes || config->message_max > UINT32_MAX)
        return tn_fail(err, TN_E_ARG, "limits that cannot be");
    c.message_max += PREFIX + (PLANTED == LONG_TAKEN || PLANTED == LONG_SENT ? 5000 : 0);
    c.receive_bytes = PLANTED == NO_RECEIVE_LIMIT ? UINT64_MAX / 2 : c.receive_bytes + PREFIX;
    c.links_max += PLANTED == NO_LINKS_LIMIT ? 1000 : 0;
    c.flags |= PLANTED == ANYWHERE ? TN_OPEN_INSECURE : 0;
    if (PLANTED == LONG_SENT)
        c.receive_bytes += 5000;
    st = transport_open(self, &c, out, err);
    return PLANTED == MEMORY_OTHER && st == TN_E_NOMEM ? tn_fail(err, TN_E_INTERNAL, "no transport") : st;
}

static void own_info(tn_transport *t, tn_transport_info *out)
{
    transport_info(t, out);
    out->flags = TN_TRANSPORT_PUT | TN_TRANSPORT_REGIONS;
    out->pieces_max = PIECES_MAX - 1;
}

static tn_status own_listen(tn_transport *t, const char *where, void *address, uint32_t *bytes, tn_err *err)
{
    if (PLANTED == LISTENS_TWICE && t->listener >= 0)
        return TN_OK;
    return tcp_listen(t, where, address, bytes, err);
}

static void own_wake(tn_transport *t)
{
    static bool first;

    first = !first;
    if (!(PLANTED == WAKE_LOST) || first)
        transport_wake(t);
}

static void own_release(tn_transport *t, void *held)
{
    transport_release(t, held);
}

static void own_close(tn_transport *t, uint64_t timeout_ns)
{
    for (tn_link *l = t->links; l; l = l->next)
        own_landing_remove(l, 0);
    early_count = 0;
    transport_close(t, PLANTED == CLOSE_CUTS ? 0 : timeout_ns);
}

static int32_t own_descriptor(tn_transport *t)
{
    return PLANTED == DESCRIPTOR_DEAF ? t->wake : t->epoll;
}

static const tn_transport_ops own_ops = {
    .head = TN_CAPABILITY(tn_transport_ops, descriptor, TN_KIND_TRANSPORT, "acme_put"),
    .open = own_open,
    .info = own_info,
    .listen = own_listen,
    .connect = tcp_connect,
    .send = own_send,
    .poll = own_poll,
    .wake = own_wake,
    .release = own_release,
    .disconnect = transport_disconnect,
    .close = own_close,
    .statistics = transport_statistics,
    .region_add = own_region_add,
    .region_remove = own_region_remove,
    .landing = own_landing,
    .landing_remove = own_landing_remove,
    .put = own_put,
    .descriptor = own_descriptor,
};
static const tn_capability *const own_tables[] = {&own_ops.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a transport with puts", "", "transport:acme_put", init,
                 fini, NULL, own_tables);

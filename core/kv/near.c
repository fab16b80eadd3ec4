/*
 * A transport made of two. A listener's address is "FAR;shm:NEAR"; who connects takes NEAR if its own
 * near transport does, which knows its host, and FAR otherwise, or once a near link to that address did not
 * come up. Links and held payloads are known by blocks of this file, which say whose they are.
 *
 * `poll` asks both without waiting, then waits for their descriptors: of no transport a thread of its own is
 * needed, and each is called by the thread that calls this one.
 */
#include "kv/near.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define BUCKETS 256u
#define BARRED_MAX 64u         /* addresses to which no near link came up, the last ones */
#define LOOK_NS 100000000u     /* transports are polled at least so often (tn_transport_ops.descriptor) */
#define STRETCH 1000000000000u /* ns, over all sums of times */

static const char mark[] = ";" TNI_KV_NEAR_ID ":";
#define MARK_BYTES ((uint32_t)sizeof mark - 1)

typedef struct near_link {
    struct near_link *next; /* of its bucket, or of those that are gone */
    struct near *n;
    tn_link *inner;
    uint64_t address; /* hash of what was connected to; 0: a peer's connect */
    uint32_t carrier;
    bool up;
} near_link;

typedef struct near_held {
    struct near_held *next; /* of spare ones */
    void *inner;
    uint32_t carrier;
} near_held;

typedef struct near {
    tni_kv_carriers of;
    tn_transport *t[TNI_KV_CARRIERS];
    near_link *buckets[BUCKETS], *gone;
    near_held *spare;
    uint64_t barred[BARRED_MAX];
    uint32_t barred_at, first; /* first: the carrier that is asked first next time */
    atomic_bool woken;
} near;

static near *near_of(tn_transport *t)
{
    return (near *)(void *)t;
}

static near_link *link_of(tn_link *l)
{
    return (near_link *)(void *)l;
}

bool tni_kv_near_fits(const tni_kv_carriers *c)
{
    return TN_OFFERS(c->ops[TNI_KV_FAR], tn_transport_ops, descriptor) &&
           TN_OFFERS(c->ops[TNI_KV_NEAR], tn_transport_ops, descriptor);
}

/* ---- links ---- */

static near_link **bucket(near *n, const tn_link *inner)
{
    return &n->buckets[((uint64_t)(uintptr_t)inner * 0x9e3779b97f4a7c15u) >> 56];
}

static near_link *link_find(near *n, const tn_link *inner, uint32_t carrier)
{
    near_link *l = *bucket(n, inner);

    while (l && (l->inner != inner || l->carrier != carrier))
        l = l->next;
    return l;
}

static void link_put(near *n, near_link *l, tn_link *inner, uint32_t carrier)
{
    near_link **at = bucket(n, inner);

    *l = (near_link){.next = *at, .n = n, .inner = inner, .carrier = carrier};
    *at = l;
}

static void link_drop(near *n, near_link *l)
{
    near_link **at = bucket(n, l->inner);

    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    l->next = n->gone;
    n->gone = l;
}

static void gone_free(near *n)
{
    while (n->gone) {
        near_link *l = n->gone;

        n->gone = l->next;
        tni_free(l);
    }
}

static bool barred(const near *n, uint64_t address)
{
    for (uint32_t i = 0; i < BARRED_MAX; i++)
        if (n->barred[i] == address)
            return true;
    return false;
}

/* ---- opening and closing ---- */

static void near_close(tn_transport *t, uint64_t timeout_ns)
{
    near *n = near_of(t);

    for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++)
        if (n->t[i])
            n->of.ops[i]->close(n->t[i], timeout_ns);
    for (uint32_t i = 0; i < BUCKETS; i++)
        while (n->buckets[i])
            link_drop(n, n->buckets[i]);
    gone_free(n);
    while (n->spare) {
        near_held *h = n->spare;

        n->spare = h->next;
        tni_free(h);
    }
    tni_free(n);
}

static tn_status near_open(void *plugin, const tn_transport_config *config, tn_transport **out, tn_err *err)
{
    near *n = tni_zalloc(sizeof *n);
    tn_status st = TN_OK;

    if (!n)
        return tn_fail(err, TN_E_NOMEM, "out of memory for a transport");
    n->of = *(const tni_kv_carriers *)plugin;
    for (uint32_t i = 0; !st && i < TNI_KV_CARRIERS; i++)
        st = n->of.ops[i]->open(n->of.plugin[i], config, &n->t[i], err);
    if (st)
        near_close((tn_transport *)(void *)n, 0);
    else
        *out = (tn_transport *)(void *)n;
    return st;
}

static void near_info(tn_transport *t, tn_transport_info *out)
{
    near *n = near_of(t);
    tn_transport_info other = {.struct_size = (uint32_t)sizeof other};

    n->of.ops[TNI_KV_FAR]->info(n->t[TNI_KV_FAR], out);
    n->of.ops[TNI_KV_NEAR]->info(n->t[TNI_KV_NEAR], &other);
    out->flags =
        (out->flags & other.flags & ~TN_TRANSPORT_PUT) | ((out->flags | other.flags) & TN_TRANSPORT_REGIONS);
    out->message_max = out->message_max < other.message_max ? out->message_max : other.message_max;
    out->pieces_max = out->pieces_max < other.pieces_max ? out->pieces_max : other.pieces_max;
}

static tn_status near_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                             tn_err *err)
{
    near *n = near_of(t);
    uint8_t own[TN_TRANSPORT_ADDRESS_MAX];
    uint32_t own_bytes = sizeof own;
    tn_status st = n->of.ops[TNI_KV_FAR]->listen(n->t[TNI_KV_FAR], where, address, address_bytes, err);

    if (st || n->of.ops[TNI_KV_NEAR]->listen(n->t[TNI_KV_NEAR], "127.0.0.1:0", own, &own_bytes, NULL))
        return st;
    if (*address_bytes + MARK_BYTES + own_bytes > TN_TRANSPORT_ADDRESS_MAX)
        return TN_OK;
    memcpy((uint8_t *)address + *address_bytes, mark, MARK_BYTES);
    memcpy((uint8_t *)address + *address_bytes + MARK_BYTES, own, own_bytes);
    *address_bytes += MARK_BYTES + own_bytes;
    return TN_OK;
}

uint32_t tni_kv_far_bytes(const void *address, uint32_t bytes)
{
    const uint8_t *at = memmem(address, bytes, mark, MARK_BYTES);

    return at ? (uint32_t)(at - (const uint8_t *)address) : bytes;
}

static tn_status near_connect(tn_transport *t, const void *address, uint32_t bytes, tn_link **out,
                              tn_err *err)
{
    near *n = near_of(t);
    const uint64_t hash = tni_hash_bytes(7, address, bytes) | 1;
    const uint32_t far_bytes = tni_kv_far_bytes(address, bytes);
    uint32_t carrier = TNI_KV_NEAR;
    near_link *l = tni_alloc(sizeof *l);
    tn_link *inner = NULL;
    tn_status st = TN_E_ARG;

    if (!l)
        return tn_fail(err, TN_E_NOMEM, "out of memory for a link");
    if (far_bytes < bytes && !barred(n, hash))
        st = n->of.ops[carrier]->connect(n->t[carrier], (const uint8_t *)address + far_bytes + MARK_BYTES,
                                         bytes - far_bytes - MARK_BYTES, &inner, err);
    if (st) {
        carrier = TNI_KV_FAR;
        st = n->of.ops[carrier]->connect(n->t[carrier], address, far_bytes, &inner, err);
    }
    if (st) {
        tni_free(l);
        return st;
    }
    link_put(n, l, inner, carrier);
    l->address = hash;
    *out = (tn_link *)(void *)l;
    return TN_OK;
}

static tn_status near_send(tn_link *link, const tn_send *message, tn_err *err)
{
    near_link *l = link_of(link);

    return l->n->of.ops[l->carrier]->send(l->inner, message, err);
}

static void near_disconnect(tn_link *link)
{
    near_link *l = link_of(link);

    l->n->of.ops[l->carrier]->disconnect(l->inner);
}

/* ---- events ---- */

static void near_release(tn_transport *t, void *held)
{
    near *n = near_of(t);
    near_held *h = held;

    if (!h)
        return;
    n->of.ops[h->carrier]->release(n->t[h->carrier], h->inner);
    h->next = n->spare;
    n->spare = h;
}

static bool held_wrap(near *n, uint32_t carrier, tn_transport_event *e)
{
    near_held *h = n->spare;

    if (h)
        n->spare = h->next;
    else if (!(h = tni_alloc(sizeof *h)))
        return false;
    *h = (near_held){.inner = e->held, .carrier = carrier};
    e->held = h;
    return true;
}

/* Makes it an event of this transport. False: it is none, for want of memory; a message is lost then. */
static bool event_wrap(near *n, uint32_t carrier, tn_transport_event *e)
{
    tn_link *inner = e->link;
    near_link *l = link_find(n, inner, carrier);

    if (!l && e->kind == TN_EVENT_UP) {
        if ((l = tni_alloc(sizeof *l)))
            link_put(n, l, inner, carrier);
        else
            n->of.ops[carrier]->disconnect(inner);
    }
    e->link = (tn_link *)(void *)l;
    if (e->kind == TN_EVENT_RECV && (!l || !held_wrap(n, carrier, e))) {
        n->of.ops[carrier]->release(n->t[carrier], e->held);
        return false;
    }
    if (!l)
        return false;
    l->up |= e->kind == TN_EVENT_UP;
    if (e->kind == TN_EVENT_DOWN) {
        if (carrier == TNI_KV_NEAR && l->address && !l->up)
            n->barred[n->barred_at++ % BARRED_MAX] = l->address;
        link_drop(n, l);
    }
    return true;
}

/* What is there at one of both: those that can be told come to the front. */
static tn_status carrier_poll(near *n, uint32_t carrier, tn_transport_event *events, uint32_t *count,
                              tn_err *err)
{
    uint32_t told = 0;
    tn_status st = n->of.ops[carrier]->poll(n->t[carrier], events, count, 0, err);

    for (uint32_t i = 0; !st && i < *count; i++) {
        tn_transport_event *from = tn_transport_event_at(events, i),
                           *to = tn_transport_event_at(events, told);

        if (!event_wrap(n, carrier, from))
            continue;
        if (to != from)
            *to = *from;
        told++;
    }
    *count = st ? 0 : told;
    return st;
}

static void descriptors_wait(near *n, uint64_t wait_ns)
{
    struct pollfd files[TNI_KV_CARRIERS];
    struct timespec time = {0};

    wait_ns = wait_ns < LOOK_NS ? wait_ns : LOOK_NS;
    time.tv_nsec = (long)wait_ns;
    for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++)
        files[i] = (struct pollfd){.fd = n->of.ops[i]->descriptor(n->t[i]), .events = POLLIN};
    (void)ppoll(files, TNI_KV_CARRIERS, &time, NULL); /* an error is a reason to look, too */
}

static tn_status near_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                           tn_err *err)
{
    near *n = near_of(t);
    const uint32_t room = *count;
    const uint64_t from = tni_clock_ns(), time = timeout_ns < STRETCH ? timeout_ns : STRETCH;
    tn_status st = TN_OK;

    gone_free(n);
    n->first ^= 1;
    for (;;) {
        const uint64_t spent = tni_clock_ns() - from;

        for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++) {
            *count = room;
            st = carrier_poll(n, n->first ^ i, events, count, err);
            if (st || *count)
                return st;
        }
        if (atomic_exchange(&n->woken, false) || (spent >= time && timeout_ns != UINT64_MAX))
            return TN_OK;
        descriptors_wait(n, timeout_ns == UINT64_MAX ? LOOK_NS : time - spent);
    }
}

static void near_wake(tn_transport *t)
{
    near *n = near_of(t);

    atomic_store(&n->woken, true);
    n->of.ops[TNI_KV_FAR]->wake(n->t[TNI_KV_FAR]);
}

const tn_transport_ops tni_kv_near_ops = {
    .head = TN_CAPABILITY(tn_transport_ops, close, TN_KIND_TRANSPORT, "auto"),
    .open = near_open,
    .info = near_info,
    .listen = near_listen,
    .connect = near_connect,
    .send = near_send,
    .poll = near_poll,
    .wake = near_wake,
    .release = near_release,
    .disconnect = near_disconnect,
    .close = near_close,
};

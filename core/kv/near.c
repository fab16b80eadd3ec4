/*
 * A transport made of several. A listener's address is "FAR;shm:NEAR;rdma:...", without those that it does
 * not have; who connects takes the first whose transport takes its part (that of shm knows its host) and
 * which has not failed before, else FAR. A part has failed if its link did not come up, of rdma also if
 * nothing ever came over it: the handshake goes over TCP and does not show that the cards reach each other.
 * Links and held payloads are known by blocks of this file, which say whose they are.
 *
 * `poll` first asks each transport that may have something, without waiting; then it waits for the
 * descriptors of all. No transport needs a thread of its own: each is called by the thread that calls this
 * one.
 */
#include "kv/near.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BUCKETS 256u
#define BARRED_MAX 64u         /* addresses to which no near link came up, the last ones */
#define LOOK_NS 100000000u     /* transports are polled at least so often (tn_transport_ops.descriptor) */
#define LOOKS_EVERY 8u         /* polls, of which all may find something at one transport */
#define STRETCH 1000000000000u /* ns, over all sums of times */

const char tni_kv_carrier_id[TNI_KV_CARRIERS][8] = {"zmq", "shm", "rdma"};
static const char marks[TNI_KV_CARRIERS][8] = {"", ";shm:", ";rdma:"}; /* before its part of an address */

typedef struct near_link {
    struct near_link *next; /* of its bucket, or of those that are gone */
    struct near *n;
    tn_link *inner;
    uint64_t address; /* hash of what was connected to; 0: a peer's connect */
    uint32_t carrier;
    bool proved; /* that this way leads to the peer */
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
    uint32_t barred_at, first, polls;  /* first: the carrier that is asked first next time */
    bool warned, due[TNI_KV_CARRIERS]; /* due: to be asked before anything is waited for */
    uint64_t looked_ns;                /* when all were */
    int bell;
    atomic_bool woken, asleep; /* asleep: `wake` has to ring */
} near;

static near *near_of(tn_transport *t)
{
    return (near *)(void *)t;
}

static near_link *link_of(tn_link *l)
{
    return (near_link *)(void *)l;
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

static void warn(near *n, const char *why)
{
    if (n->of.log && !n->warned)
        tni_logf(n->of.log, TN_LOG_WARNING, "kvstore.transport is auto, and RDMA is not used: %.200s", why);
    n->warned = true;
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
    if (n->bell >= 0)
        (void)close(n->bell);
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
    if ((n->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        st = tn_fail(err, TN_E_IO, "no descriptor is left for a transport");
    for (uint32_t i = 0; !st && i < TNI_KV_CARRIERS; i++) {
        if (n->of.ops[i])
            st = n->of.ops[i]->open(n->of.plugin[i], config, &n->t[i], err);
        if (st && i == TNI_KV_RDMA) {
            if (st != TN_E_DEVICE) /* one that is there and cannot be used */
                warn(n, err ? err->message : "");
            st = TN_OK;
        }
    }
    if (st)
        near_close((tn_transport *)(void *)n, 0);
    else
        *out = (tn_transport *)(void *)n;
    return st;
}

static void near_info(tn_transport *t, tn_transport_info *out)
{
    near *n = near_of(t);

    n->of.ops[TNI_KV_FAR]->info(n->t[TNI_KV_FAR], out);
    for (uint32_t i = TNI_KV_NEAR; i < TNI_KV_CARRIERS; i++) {
        tn_transport_info other = {.struct_size = (uint32_t)sizeof other};

        if (!n->t[i])
            continue;
        n->of.ops[i]->info(n->t[i], &other);
        out->flags = (out->flags & other.flags & ~TN_TRANSPORT_PUT) |
                     ((out->flags | other.flags) & TN_TRANSPORT_REGIONS);
        out->message_max = out->message_max < other.message_max ? out->message_max : other.message_max;
        out->pieces_max = out->pieces_max < other.pieces_max ? out->pieces_max : other.pieces_max;
    }
}

/* `where` as the transports besides the far one listen: on a port that is free. */
static void where_free(uint32_t carrier, const char *where, char out[TN_TRANSPORT_ADDRESS_MAX])
{
    const char *colon = strrchr(where, ':');

    (void)snprintf(out, TN_TRANSPORT_ADDRESS_MAX, "%.*s:0", (int)(colon ? colon - where : 0),
                   carrier == TNI_KV_NEAR ? "127.0.0.1" : where);
}

static tn_status near_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                             tn_err *err)
{
    near *n = near_of(t);
    char own[TN_TRANSPORT_ADDRESS_MAX], at[TN_TRANSPORT_ADDRESS_MAX], *to = address;
    tn_status st = n->of.ops[TNI_KV_FAR]->listen(n->t[TNI_KV_FAR], where, address, address_bytes, err);

    n->looked_ns = 0;
    for (uint32_t i = TNI_KV_NEAR; !st && i < TNI_KV_CARRIERS; i++) {
        uint32_t bytes = sizeof own;
        const uint32_t mark = (uint32_t)strlen(marks[i]);

        where_free(i, where, at);
        if (!n->t[i] || n->of.ops[i]->listen(n->t[i], at, own, &bytes, NULL) ||
            *address_bytes + bytes + mark > TN_TRANSPORT_ADDRESS_MAX)
            continue;
        memcpy(to + *address_bytes, marks[i], mark);
        memcpy(to + *address_bytes + mark, own, bytes);
        *address_bytes += mark + bytes;
    }
    return st;
}

uint32_t tni_kv_far_bytes(const void *address, uint32_t bytes)
{
    uint32_t least = bytes;

    for (uint32_t i = TNI_KV_NEAR; i < TNI_KV_CARRIERS; i++) {
        const char *at = memmem(address, least, marks[i], strlen(marks[i]));

        least = at ? (uint32_t)(at - (const char *)address) : least;
    }
    return least;
}

/* The part of an address that is of `carrier`; NULL: it has none. */
static const char *part_of(const char *address, uint32_t bytes, uint32_t carrier, uint32_t *part_bytes)
{
    const size_t length = strlen(marks[carrier]); /* of the far one: 0 */
    const char *at = memmem(address, bytes, marks[carrier], length);

    if (at) {
        at += length;
        *part_bytes = tni_kv_far_bytes(at, bytes - (uint32_t)(at - address));
    }
    return at;
}

static tn_status near_connect(tn_transport *t, const void *address, uint32_t bytes, tn_link **out,
                              tn_err *err)
{
    near *n = near_of(t);
    near_link *l = tni_alloc(sizeof *l);
    uint32_t carrier = TNI_KV_FAR, part_bytes = 0;
    uint64_t hash = 0;
    tn_link *inner = NULL;
    tn_status st = TN_E_ARG;

    if (!l)
        return tn_fail(err, TN_E_NOMEM, "out of memory for a link");
    for (uint32_t i = TNI_KV_NEAR; st && i <= TNI_KV_CARRIERS; i++) {
        const char *part =
            part_of(address, bytes, carrier = i < TNI_KV_CARRIERS ? i : TNI_KV_FAR, &part_bytes);

        hash = part ? tni_hash_bytes(7 + carrier, part, part_bytes) | 1 : 0;
        n->due[carrier] = n->t[carrier] != NULL;
        if (part && n->t[carrier] && !barred(n, hash))
            st = n->of.ops[carrier]->connect(n->t[carrier], part, part_bytes, &inner, err);
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

    l->n->due[l->carrier] = true;
    return l->n->of.ops[l->carrier]->send(l->inner, message, err);
}

static void near_disconnect(tn_link *link)
{
    near_link *l = link_of(link);

    l->n->due[l->carrier] = true;
    l->n->of.ops[l->carrier]->disconnect(l->inner);
}

/* ---- events ---- */

static void near_release(tn_transport *t, void *held)
{
    near *n = near_of(t);
    near_held *h = held;

    if (!h)
        return;
    n->due[h->carrier] = true;
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
    l->proved |= e->kind == (carrier == TNI_KV_RDMA ? TN_EVENT_RECV : TN_EVENT_UP);
    if (e->kind == TN_EVENT_DOWN) {
        if (carrier && l->address && !l->proved && e->status == TN_E_PEER) {
            n->barred[n->barred_at++ % BARRED_MAX] = l->address;
            if (carrier == TNI_KV_RDMA)
                warn(n, e->text ? e->text : "a link did not come up");
        }
        link_drop(n, l);
    }
    return true;
}

/* What is there at one of them: those that can be told come to the front. */
static tn_status carrier_poll(near *n, uint32_t carrier, tn_transport_event *events, uint32_t *count,
                              tn_err *err)
{
    uint32_t told = 0;
    tn_status st;

    n->due[carrier] = false;
    st = n->of.ops[carrier]->poll(n->t[carrier], events, count, 0, err);
    n->due[carrier] |= st || *count;

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

/* For at most `wait_ns`, and not beyond the next look at all. */
static void descriptors_wait(near *n, uint64_t wait_ns, uint64_t now)
{
    const uint64_t look = n->looked_ns + LOOK_NS - now;
    struct pollfd files[TNI_KV_CARRIERS + 1];
    struct timespec time = {.tv_nsec = (long)(wait_ns < look ? wait_ns : look)};
    uint64_t count;

    for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++)
        files[i] = (struct pollfd){.fd = n->t[i] ? n->of.ops[i]->descriptor(n->t[i]) : -1, .events = POLLIN};
    files[TNI_KV_CARRIERS] = (struct pollfd){.fd = n->bell, .events = POLLIN};
    atomic_store(&n->asleep, true);
    if (!atomic_load(&n->woken))
        (void)ppoll(files, TNI_KV_CARRIERS + 1, &time, NULL); /* an error: nothing is told, as by a signal */
    atomic_store(&n->asleep, false);
    for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++)
        n->due[i] |= files[i].revents != 0;
    if (files[TNI_KV_CARRIERS].revents)
        (void)!read(n->bell, &count, sizeof count);
}

static tn_status near_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                           tn_err *err)
{
    near *n = near_of(t);
    const uint32_t room = *count;
    const uint64_t from = tni_clock_ns(), time = timeout_ns < STRETCH ? timeout_ns : STRETCH;
    uint64_t now = from;
    bool looks = ++n->polls % LOOKS_EVERY == 0;
    tn_status st = TN_OK;

    gone_free(n);
    n->first = n->first ? n->first - 1 : TNI_KV_CARRIERS - 1;
    for (;; now = tni_clock_ns()) {
        bool any = false;

        if (now - n->looked_ns >= LOOK_NS || looks) {
            for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++)
                n->due[i] = n->t[i] != NULL;
            n->looked_ns = now;
            looks = false;
        }
        for (uint32_t i = 0; i < TNI_KV_CARRIERS; i++) {
            const uint32_t at = n->first + i, carrier = at < TNI_KV_CARRIERS ? at : at - TNI_KV_CARRIERS;

            if (!n->due[carrier])
                continue;
            *count = room;
            st = carrier_poll(n, carrier, events, count, err);
            if (st || *count)
                return st;
            any |= n->due[carrier];
        }
        *count = 0;
        if (atomic_exchange(&n->woken, false) || (now - from >= time && timeout_ns != UINT64_MAX))
            return TN_OK;
        if (!any)
            descriptors_wait(n, timeout_ns == UINT64_MAX ? LOOK_NS : time - (now - from), now);
    }
}

static void near_wake(tn_transport *t)
{
    const uint64_t one = 1;
    near *n = near_of(t);

    atomic_store(&n->woken, true);
    if (atomic_load(&n->asleep))
        (void)!write(n->bell, &one, sizeof one);
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

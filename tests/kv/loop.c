#include "kv/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPEN_MAX 64u

typedef struct event {
    struct event *next;
    uint32_t kind, flags;
    tn_link *link, *from; /* from: the sender's end, of a message */
    tn_status status;
    uint64_t cookie, bytes;
    const void *lent; /* payload that is still the sender's; NULL: behind it */
    uint8_t header[TN_HEADER_BYTES];
    uint8_t payload[];
} event;

struct tn_link {
    tn_link *next; /* of its transport */
    tn_transport *own;
    tn_link *peer; /* NULL: gone */
    uint32_t waiting;
    bool refused, down;
};

struct tn_transport {
    tn_link *links;
    event *first, **last;
    char name[64];
    uint32_t index;
    bool open, dead, told, cut, woken, polling; /* told: that it is dead */
    uint64_t due_ns, held;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tn_transport *all[OPEN_MAX];
    uint32_t count, ports, lose;
    int32_t busy;    /* threads that work and do not poll */
    const char *end; /* of addresses */
    uint64_t now, random;
    loop_count counts;
} net = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void lock(void)
{
    pthread_mutex_lock(&net.lock);
}

static void unlock(void)
{
    pthread_cond_broadcast(&net.changed);
    pthread_mutex_unlock(&net.lock);
}

static event *event_add(tn_transport *t, uint32_t kind, tn_link *link, uint64_t bytes)
{
    event *e = calloc(1, sizeof *e + bytes);

    if (!e)
        abort();
    e->kind = kind;
    e->link = link;
    *t->last = e;
    t->last = &e->next;
    return e;
}

/* ---- opening ---- */

static tn_status loop_open(void *plugin, const tn_transport_config *config, tn_transport **out, tn_err *err)
{
    tn_transport *t = calloc(1, sizeof *t);

    (void)plugin;
    (void)err;
    if (!t || config->struct_size != sizeof *config || !config->message_max || !config->links_max)
        abort();
    t->last = &t->first;
    t->open = true;
    lock();
    if (net.count == OPEN_MAX)
        abort();
    t->index = net.count;
    net.all[net.count++] = t;
    unlock();
    *out = t;
    return TN_OK;
}

static void loop_info(tn_transport *t, tn_transport_info *out)
{
    (void)t;
    *out =
        (tn_transport_info){.struct_size = (uint32_t)sizeof *out, .message_max = UINT64_MAX, .pieces_max = 1};
}

static tn_transport *listener(const char *name, size_t bytes)
{
    for (uint32_t i = net.count; i-- > 0;)
        if (net.all[i]->open && !net.all[i]->dead && strlen(net.all[i]->name) == bytes &&
            !memcmp(net.all[i]->name, name, bytes))
            return net.all[i];
    return NULL;
}

static tn_status loop_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                             tn_err *err)
{
    const char *port = strrchr(where, ':');
    tn_status st = TN_OK;

    lock();
    if (listener(where, strlen(where))) {
        tni_err_format(err, TN_E_IO, "%s is taken", where);
        st = TN_E_IO;
    } else if (port && !strcmp(port, ":0")) {
        (void)snprintf(t->name, sizeof t->name, "%.*s:%u", (int)(port - where), where, ++net.ports);
    } else {
        (void)snprintf(t->name, sizeof t->name, "%s", where);
    }
    *address_bytes = (uint32_t)snprintf(address, TN_TRANSPORT_ADDRESS_MAX, "%s%s", t->name, net.end);
    unlock();
    return st;
}

static tn_link *link_make(tn_transport *t)
{
    tn_link *l = calloc(1, sizeof *l);

    if (!l)
        abort();
    l->own = t;
    l->next = t->links;
    t->links = l;
    return l;
}

static void sent(const event *e, tn_status st);

/* What it has not handed out is gone. */
static void link_strip(tn_link *l)
{
    event **at = &l->own->first;
    event *e;

    while ((e = *at) != NULL) {
        if (e->link != l || e->kind != TN_EVENT_RECV) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        sent(e, TN_E_CANCELLED);
        free(e);
    }
    l->own->last = at;
}

static void link_down(tn_link *l, tn_status st)
{
    l->down = true;
    l->peer = NULL;
    event_add(l->own, TN_EVENT_DOWN, l, 0)->status = st;
}

static void link_end(tn_link *l, tn_status st)
{
    tn_link *peer = l->peer;

    if (l->down)
        return;
    link_strip(l);
    if (peer)
        link_strip(peer);
    link_down(l, st);
    if (peer)
        link_down(peer, st == TN_E_CANCELLED ? TN_OK : TN_E_PEER);
}

static tn_status loop_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                              tn_err *err)
{
    tn_transport *to;
    tn_link *l;

    (void)err;
    lock();
    to = listener(address, address_bytes);
    *out = l = link_make(t);
    if (!to || to->cut || t->cut) {
        link_end(l, TN_E_PEER);
    } else {
        l->peer = link_make(to);
        l->peer->peer = l;
        (void)event_add(t, TN_EVENT_UP, l, 0);
        (void)event_add(to, TN_EVENT_UP, l->peer, 0);
    }
    unlock();
    return TN_OK;
}

/* ---- sending ---- */

/* The sender's payload is its own again. */
static void sent(const event *e, tn_status st)
{
    event *back;

    if (e->from)
        e->from->waiting--;
    if (!e->from || !e->from->own->open || !e->lent)
        return;
    back = event_add(e->from->own, TN_EVENT_SENT, e->from, 0);
    back->cookie = e->cookie;
    back->status = st;
}

static bool lost(const tn_link *l)
{
    net.random = net.random * 6364136223846793005u + 1442695040888963407u;
    return l->own->cut || l->peer->own->cut || (net.random >> 33) % 1000 < net.lose;
}

static void message_put(tn_link *l, const tn_send *m)
{
    const bool copy = m->flags & TN_SEND_COPY || !m->piece_count;
    const uint64_t bytes = m->piece_count ? m->pieces->bytes : 0;
    event *e;

    e = event_add(l->peer->own, TN_EVENT_RECV, l->peer, copy ? bytes : 0);
    e->from = l;
    e->flags = m->flags;
    e->cookie = m->cookie;
    e->bytes = bytes;
    memcpy(e->header, m->header, sizeof e->header);
    if (copy && bytes)
        memcpy(e->payload, m->pieces->data, bytes);
    else if (!copy)
        e->lent = m->pieces->data;
    l->waiting++;
}

static tn_status loop_send(tn_link *l, const tn_send *m, tn_err *err)
{
    tn_status st = TN_OK;

    (void)err;
    if (m->struct_size != sizeof *m || m->flags & ~TN_SEND_KNOWN || m->piece_count > 1)
        abort();
    lock();
    if (l->down || !l->peer) {
        st = TN_E_PEER;
    } else if (l->waiting >= LOOP_ROOM * (m->flags & TN_SEND_URGENT ? 2 : 1)) {
        l->refused = true;
        net.counts.refused++;
        st = TN_PENDING;
    } else {
        net.counts.messages++;
        message_put(l, m);
        if (lost(l)) { /* given back, but nobody gets it */
            event **at = &l->peer->own->first;

            while ((*at)->next)
                at = &(*at)->next;
            net.counts.lost++;
            sent(*at, TN_OK);
            free(*at);
            *at = NULL;
            l->peer->own->last = at;
        }
    }
    unlock();
    return st;
}

/* ---- receiving ---- */

static void event_hand(tn_transport *t, event *e, tn_transport_event *out)
{
    tn_link **at = &t->links;

    *out = (tn_transport_event){.struct_size = (uint32_t)sizeof *out,
                                .kind = e->kind,
                                .link = e->link,
                                .cookie = e->cookie,
                                .status = e->status,
                                .slot = UINT64_MAX};
    if (e->kind == TN_EVENT_RECV) {
        uint8_t *data = malloc(e->bytes + 1);

        if (!data)
            abort();
        if (e->bytes)
            memcpy(data, e->lent ? e->lent : e->payload, e->bytes);
        memcpy(out->header, e->header, sizeof out->header);
        out->data = out->held = data;
        out->bytes = e->bytes;
        t->held++;
        sent(e, TN_OK);
        if (e->from && e->from->refused && !e->from->down) {
            e->from->refused = false;
            (void)event_add(e->from->own, TN_EVENT_CREDIT, e->from, 0);
        }
    } else if (e->kind == TN_EVENT_DOWN) {
        out->text = "the loop has ended it";
        while (*at != e->link)
            at = &(*at)->next;
        *at = e->link->next;
    }
}

static tn_status loop_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                           tn_err *err)
{
    uint32_t room = *count;
    tn_status st = TN_OK;

    *count = 0;
    lock();
    t->due_ns = timeout_ns > UINT64_MAX - net.now ? UINT64_MAX : net.now + timeout_ns;
    while (!t->first && !t->woken && !t->dead && net.now < t->due_ns) {
        t->polling = true;
        pthread_cond_broadcast(&net.changed);
        pthread_cond_wait(&net.changed, &net.lock);
    }
    t->polling = t->woken = false;
    if (t->dead) {
        t->told = true;
        tni_err_format(err, TN_E_IO, "the loop has killed it");
        st = TN_E_IO;
    }
    for (; !st && t->first && *count < room; ++*count) {
        event *e = t->first;

        t->first = e->next;
        if (!t->first)
            t->last = &t->first;
        event_hand(t, e, &events[*count]);
        if (e->kind == TN_EVENT_DOWN)
            free(e->link);
        free(e);
    }
    unlock();
    return st;
}

static void loop_wake(tn_transport *t)
{
    lock();
    t->woken = true;
    unlock();
}

static void loop_release(tn_transport *t, void *held)
{
    lock();
    t->held -= held != NULL;
    unlock();
    free(held);
}

static void loop_disconnect(tn_link *l)
{
    lock();
    link_end(l, TN_E_CANCELLED);
    unlock();
}

static void loop_close(tn_transport *t, uint64_t timeout_ns)
{
    (void)timeout_ns;
    lock();
    if (t->held)
        abort();
    for (tn_link *l = t->links; l; l = l->next)
        link_end(l, TN_E_CANCELLED);
    t->open = false;
    while (t->first) {
        event *e = t->first;

        t->first = e->next;
        free(e);
    }
    while (t->links) {
        tn_link *l = t->links;

        t->links = l->next;
        free(l);
    }
    unlock();
}

const tn_transport_ops loop_ops = {
    .head = {.struct_size = (uint32_t)TN_END(tn_transport_ops, close),
             .kind = TN_KIND_TRANSPORT,
             .id = "loop"},
    .open = loop_open,
    .info = loop_info,
    .listen = loop_listen,
    .connect = loop_connect,
    .send = loop_send,
    .poll = loop_poll,
    .wake = loop_wake,
    .release = loop_release,
    .disconnect = loop_disconnect,
    .close = loop_close,
};

static const tn_capability *const capabilities[] = {&loop_ops.head, NULL};

const tn_plugin loop_plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                               .magic = TN_MAGIC,
                               .abi_major = TN_ABI_MAJOR,
                               .abi_minor = TN_ABI_TARGET,
                               .abi_minor_min = TN_ABI_MIN,
                               .name = "kv-loop",
                               .version = "1",
                               .license = "Apache-2.0",
                               .capabilities = capabilities};

/* ---- what tests call ---- */

void loop_begin(void)
{
    net.count = net.ports = net.lose = 0;
    net.now = 1000000000;
    net.random = 5;
    net.end = "";
    net.counts = (loop_count){0};
}

void loop_end(void)
{
    for (uint32_t i = 0; i < net.count; i++) {
        assert_false(net.all[i]->open);
        free(net.all[i]);
    }
    net.count = 0;
}

uint64_t loop_clock(void)
{
    uint64_t now;

    lock();
    now = net.now;
    pthread_mutex_unlock(&net.lock);
    return now;
}

void loop_busy(int32_t change)
{
    lock();
    net.busy += change;
    unlock();
}

/* Nobody has anything to do; when the first one wants to be woken. */
static bool quiet(uint64_t *next)
{
    *next = UINT64_MAX;
    if (net.busy)
        return false;
    for (uint32_t i = 0; i < net.count; i++) {
        const tn_transport *t = net.all[i];

        if (!t->open || t->told)
            continue;
        if (!t->polling || t->first || t->woken || t->dead || net.now >= t->due_ns)
            return false;
        *next = t->due_ns < *next ? t->due_ns : *next;
    }
    return true;
}

bool loop_until(bool (*is)(void *arg), void *arg, double seconds)
{
    const uint64_t end = loop_clock() + (uint64_t)(seconds * 1e9);
    uint64_t next;

    while (true) {
        bool over;

        lock();
        while (!quiet(&next))
            pthread_cond_wait(&net.changed, &net.lock);
        pthread_mutex_unlock(&net.lock);
        if (is(arg))
            return true;
        lock();
        over = next == UINT64_MAX || next > end;
        if (!over && quiet(&next) && next > net.now)
            net.now = next;
        unlock();
        if (over)
            return false;
    }
}

void loop_wait_open(uint32_t count)
{
    lock();
    while (net.count < count)
        pthread_cond_wait(&net.changed, &net.lock);
    unlock();
}

void loop_kill(uint32_t index)
{
    lock();
    net.all[index]->dead = true;
    for (tn_link *l = net.all[index]->links; l; l = l->next)
        link_end(l, TN_E_PEER);
    unlock();
}

void loop_watch(tn_transport *t)
{
    lock();
    t->told = true;
    unlock();
}

void loop_cut(uint32_t index, bool on)
{
    lock();
    net.all[index]->cut = on;
    unlock();
}

void loop_links_down(uint32_t index)
{
    lock();
    for (tn_link *l = net.all[index]->links; l; l = l->next)
        link_end(l, TN_E_PEER);
    unlock();
}

void loop_address_end(const char *end)
{
    lock();
    net.end = end;
    unlock();
}

void loop_lose(uint32_t per_mille)
{
    lock();
    net.lose = per_mille;
    unlock();
}

loop_count loop_counts(void)
{
    loop_count counts;

    lock();
    counts = net.counts;
    unlock();
    return counts;
}

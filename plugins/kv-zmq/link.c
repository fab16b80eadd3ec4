/*
 * Links: how they are dialled, what is sent on them, how they end.
 *
 * A message that is sent is a record. It is libzmq's until libzmq's free function gives it back, on one of
 * its own threads, which only puts it into a list. A link is DOWN when all its records are back and its
 * connections are gone, so each cookie comes back once and before DOWN.
 */
#include "kv_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- by id ------------------------------------------------------------------------------------------ */

static tn_link **bucket_of(const tn_transport *t, const uint8_t *id)
{
    uint32_t hash;

    memcpy(&hash, id + 4, sizeof hash); /* ids are random; chains are no longer than links_max */
    return &t->buckets[hash & t->buckets_mask];
}

tn_link *tnzmq_link_find(tn_transport *t, const uint8_t *id)
{
    tn_link *link = *bucket_of(t, id);

    while (link && memcmp(link->id, id, sizeof link->id) != 0)
        link = link->next;
    return link;
}

static tn_link *link_new(tn_transport *t, const uint8_t *id, bool dialled)
{
    tn_link *link = calloc(1, sizeof *link), **bucket = bucket_of(t, id);

    if (!link)
        return NULL;
    link->t = t;
    link->dialled = link->known = dialled;
    link->deadline_ns = UINT64_MAX;
    memcpy(link->id, id, sizeof link->id);
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++)
        link->channel[i].fd = -1;
    link->next = *bucket;
    *bucket = link;
    tnzmq_list_add(&t->links, &link->node);
    t->links_count++;
    return link;
}

static void link_forget(tn_link *link)
{
    tn_link **at = bucket_of(link->t, link->id);

    while (*at && *at != link)
        at = &(*at)->next;
    if (*at)
        *at = link->next;
    link->t->links_count--;
}

void tnzmq_link_destroy(tn_link *link)
{
    tnzmq_list_remove(&link->node);
    free(link);
}

static void link_deadline(tn_link *link, uint64_t after_ns)
{
    link->deadline_ns = monotonic_ns() + after_ns;
    tnzmq_deadline(link->t, link->deadline_ns);
}

static uint64_t handshake_ns(const tn_transport *t)
{
    return 2 * (uint64_t)t->plugin->handshake_ms * 1000000u; /* of two connections */
}

/* ---- dialling --------------------------------------------------------------------------------------- */

/* Events of a socket that was dialled: they tell when its connection is there, and when it is gone. */
static void serve_dialled(tn_transport *t, tnzmq_source *s)
{
    tn_link *link = s->of;
    tnzmq_channel *c = &link->channel[s->channel];
    char where[80], text[200];
    uint16_t event;
    int32_t value;

    do {
        if (!tnzmq_monitor_next(s->socket, &event, &value))
            return;
        if (event == ZMQ_EVENT_CONNECTED && !c->dying)
            c->fd = value;
    } while (event == ZMQ_EVENT_CONNECTED);
    c->fd = -1;
    if (link->state == TNZMQ_UP) { /* what has come is still read */
        c->dying = true;
        tnzmq_source_ready(t, &c->source);
        return;
    }
    place_print(&link->at, where, sizeof where);
    (void)snprintf(text, sizeof text, "%s %s", where,
                   event == ZMQ_EVENT_CLOSED         ? "cannot be reached"
                   : event == ZMQ_EVENT_DISCONNECTED ? "has closed the connection before it was one"
                                                     : "has another key or none, or is no process of a job");
    tnzmq_link_close(link, TN_E_PEER, text, 0);
}

static tn_status channel_dial(tn_link *link, uint32_t channel, tn_err *err)
{
    tn_transport *t = link->t;
    tnzmq_channel *c = &link->channel[channel];
    void *s = tnzmq_socket(t, ZMQ_DEALER, channel, err);
    char where[80], endpoint[96];
    tn_status st;

    if (!s)
        return TN_E_IO;
    c->source = (tnzmq_source){.of = link, .channel = channel, .serve = tnzmq_serve_dealer};
    c->monitor = (tnzmq_source){.of = link, .channel = channel, .serve = serve_dialled};
    if (zmq_setsockopt(s, ZMQ_ROUTING_ID, link->id, sizeof link->id) || !tnzmq_socket_keys(t, s, false)) {
        st = tnzmq_fail(err, TN_E_IO, "the options of a socket");
        (void)zmq_close(s);
        return st;
    }
    if ((st = tnzmq_source_open(t, &c->source, s, err)) || (st = tnzmq_monitor_open(t, s, &c->monitor, err)))
        return st;
    place_print(&link->at, where, sizeof where);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%s", where);
    if (tnzmq_call(s, endpoint))
        return tnzmq_fail(err, TN_E_IO, endpoint);
    c->phase = TNZMQ_GREETED; /* it goes out when the connection is there */
    return tnzmq_frame_send(link, channel, &(tnzmq_frame){.kind = TNZMQ_HELLO})
               ? TN_OK
               : tnzmq_fail(err, TN_E_IO, endpoint);
}

tn_status tnzmq_connect(tn_transport *t, const void *address, uint32_t bytes, tn_link **out, tn_err *err)
{
    uint8_t id[TNZMQ_ID_BYTES];
    place at = {0};
    tn_link *link;
    tn_status st = place_read(&t->config, address, bytes, false, &at, err);

    if (st)
        return st;
    if (t->links_count >= t->config.links_max)
        return tn_failf(err, TN_E_STATE, "there are %u links, and no more may be", (unsigned)t->links_count);
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return tn_failf(err, TN_E_IO, "no random bytes: %s", strerror(errno));
    id[0] |= 1; /* those that start with 0 are libzmq's */
    if (!(link = link_new(t, id, true)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    link->at = at;
    if ((st = channel_dial(link, TNZMQ_CONTROL, err))) {
        for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++)
            tnzmq_monitored_close(t, &link->channel[i].source, &link->channel[i].monitor, 0);
        link_forget(link);
        tnzmq_link_destroy(link);
        return st;
    }
    link_deadline(link, handshake_ns(t));
    t->counters.dialled++;
    *out = link;
    return TN_OK;
}

tn_link *tnzmq_link_accept(tn_transport *t, const uint8_t *id)
{
    tn_link *link = t->links_count < t->config.links_max ? link_new(t, id, false) : NULL;

    if (link)
        link_deadline(link, handshake_ns(t));
    return link;
}

bool tnzmq_frame_take(tn_link *link, uint32_t channel, const tnzmq_frame *frame)
{
    tnzmq_channel *c = &link->channel[channel];
    tn_err err;

    if (frame->kind == TNZMQ_BYE && c->phase == TNZMQ_OPEN) {
        c->phase = TNZMQ_ENDED;
        if (link->channel[!channel].phase == TNZMQ_ENDED || link->state == TNZMQ_DIALLING)
            tnzmq_link_close(link, TN_OK, "", 0);
        return true;
    }
    if (frame->kind != TNZMQ_WELCOME || !link->dialled || c->phase != TNZMQ_GREETED)
        return false;
    c->phase = TNZMQ_OPEN;
    if (channel == TNZMQ_BULK) {
        tnzmq_link_up(link);
        return true;
    }
    if (!frame->port)
        return false;
    link->at.port = frame->port;
    if (channel_dial(link, TNZMQ_BULK, &err))
        tnzmq_link_close(link, TN_E_PEER, err.message, 0);
    return true;
}

/* ---- ups and downs ---------------------------------------------------------------------------------- */

/* Whether records of copies matter at once. */
static void link_count(tn_link *link)
{
    const bool counts = link->state == TNZMQ_CLOSING ||
                        (link->state == TNZMQ_UP &&
                         (link->channel[TNZMQ_CONTROL].wanted || link->channel[TNZMQ_BULK].wanted));

    if (counts == link->counted)
        return;
    link->counted = counts;
    if (counts)
        atomic_fetch_add(&link->t->waiting, 1);
    else
        atomic_fetch_sub(&link->t->waiting, 1);
}

static bool channel_has_room(const tnzmq_channel *c, uint64_t bytes)
{
    return c->count < TNZMQ_WINDOW_COUNT && (!c->bytes || c->bytes + bytes <= TNZMQ_WINDOW_BYTES);
}

static void link_credit(tn_link *link)
{
    bool room = false;

    if (link->state != TNZMQ_UP)
        return;
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
        tnzmq_channel *c = &link->channel[i];

        if (!c->wanted || !channel_has_room(c, c->wanted))
            continue;
        c->wanted = 0;
        room = true;
    }
    if (room)
        tnzmq_event_add(link->t, &link->credit, TN_EVENT_CREDIT, link);
    link_count(link);
}

void tnzmq_link_up(tn_link *link)
{
    link->state = TNZMQ_UP;
    link->known = true;
    link->deadline_ns = UINT64_MAX;
    tnzmq_event_add(link->t, &link->up, TN_EVENT_UP, link);
    link_credit(link);
    if (link->dialled) /* it was left alone meanwhile */
        tnzmq_source_ready(link->t, &link->channel[TNZMQ_CONTROL].source);
}

static void link_kick(tn_link *link)
{
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
        tnzmq_serve_monitor(link->t,
                            &link->t->door[i].monitor); /* it may be gone, and its number given away */
        if (link->channel[i].fd >= 0)
            tnzmq_kick(&link->t->door[i], link->channel[i].fd);
    }
}

void tnzmq_link_close(tn_link *link, tn_status status, const char *text, int linger_ms)
{
    tn_transport *t = link->t;

    if (link->state >= TNZMQ_CLOSING)
        return;
    t->counters.lost += status == TN_E_PEER && link->state == TNZMQ_UP;
    link->state = TNZMQ_CLOSING;
    link->deadline_ns = UINT64_MAX;
    link->status = status;
    (void)snprintf(link->text, sizeof link->text, "%s", text);
    for (uint32_t i = 0; link->dialled && i < TNZMQ_CHANNELS; i++) {
        link->channel[i].dying = false;
        link->channel[i].fd = -1;
        tnzmq_monitored_close(t, &link->channel[i].source, &link->channel[i].monitor, linger_ms);
    }
    if (!link->dialled && status == TN_E_PEER)
        link_kick(link);
    else if (!link->dialled)
        link_deadline(link, TNZMQ_BYE_NS); /* the peer closes the connections */
    link_count(link);
    tnzmq_link_finish(link);
}

void tnzmq_link_finish(tn_link *link)
{
    if (link->state != TNZMQ_CLOSING)
        return;
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++)
        if (link->channel[i].count || link->channel[i].fd >= 0 || link->channel[i].dying)
            return;
    link->state = TNZMQ_DOWN;
    link->deadline_ns = UINT64_MAX;
    link_count(link);
    link_forget(link);
    if (link->known) {
        tnzmq_event_add(link->t, &link->down, TN_EVENT_DOWN, link);
        return;
    }
    tnzmq_list_remove(&link->node);
    tnzmq_list_add(&link->t->graves, &link->node);
}

void tnzmq_disconnect(tn_link *link)
{
    if (link->state == TNZMQ_UP)
        for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++)
            (void)tnzmq_frame_send(link, i, &(tnzmq_frame){.kind = TNZMQ_BYE});
    tnzmq_link_close(link, TN_E_CANCELLED, "", link->state == TNZMQ_UP ? (int)(TNZMQ_BYE_NS / 1000000) : 0);
}

void tnzmq_link_stalled(tn_link *link)
{
    if (link->state == TNZMQ_UP && link->deadline_ns == UINT64_MAX)
        link_deadline(link, TNZMQ_BYE_NS);
}

/* Its deadline is over. */
static void link_late(tn_link *link)
{
    link->deadline_ns = UINT64_MAX;
    if (link->state == TNZMQ_DIALLING) {
        tnzmq_link_close(link, TN_E_PEER, "the peer has not answered in time", 0);
    } else if (link->state == TNZMQ_CLOSING) {
        link_kick(link);
    } else if (!tnzmq_may_receive(link->t, TNZMQ_BULK)) {
        for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++)
            link->channel[i].dying = false;
        tnzmq_link_close(link, TN_E_PEER,
                         "the connection is lost, and there was no room for its last messages", 0);
    }
}

void tnzmq_link_tick(tn_transport *t, uint64_t now_ns)
{
    tnzmq_node *next;

    for (tnzmq_node *n = t->links.next; n != &t->links; n = next) {
        tn_link *link = (tn_link *)(void *)n;

        next = n->next;
        if (link->deadline_ns <= now_ns)
            link_late(link);
        tnzmq_deadline(t, link->deadline_ns);
    }
}

/* ---- sending ---------------------------------------------------------------------------------------- */

/* Called by libzmq, also on its threads. */
static void record_done(void *data, void *hint)
{
    tnzmq_record *r = hint;
    tn_transport *t;
    uint64_t left;
    bool copied;

    (void)data;
    (void)atomic_load_explicit(&r->published, memory_order_acquire);
    t = r->event.link->t;
    copied = r->copied;
    left = atomic_fetch_sub(&r->event.link->channel[r->channel].left, r->bytes) - r->bytes;
    r->next_done = atomic_load(&t->done);
    while (!atomic_compare_exchange_weak(&t->done, &r->next_done, r))
        ;
    if (left <= TNZMQ_WINDOW_FULL && (!copied || atomic_load(&t->waiting)))
        tnzmq_ring(t);
}

void tnzmq_links_reap(tn_transport *t)
{
    tnzmq_record *r = atomic_exchange(&t->done, NULL), *first = NULL, *next;

    for (; r; r = next) { /* back into their order */
        next = r->next_done;
        r->next_done = first;
        first = r;
    }
    for (r = first; r; r = next) {
        tn_link *link = r->event.link;
        tnzmq_channel *c = &link->channel[r->channel];

        next = r->next_done;
        c->bytes -= r->bytes;
        c->count--;
        r->status = link->state == TNZMQ_UP ? TN_OK : TN_E_CANCELLED;
        if (r->copied)
            free(r);
        else
            tnzmq_event_add(t, &r->event, TN_EVENT_SENT, link);
        link_credit(link);
        tnzmq_link_finish(link);
    }
}

/* The payload lies in the caller's memory, or behind the record where it is copied: where its owner asks for
 * that, where it is short, and where it is in pieces. */
static tnzmq_record *record_new(tn_link *link, const tn_send *m, uint64_t bytes, uint32_t channel)
{
    const bool here = m->flags & TN_SEND_COPY || m->piece_count > 1 || bytes <= TNZMQ_COPY_MAX;
    tnzmq_record *r = bytes > SIZE_MAX - sizeof *r ? NULL : malloc(sizeof *r + (here ? bytes : 0));
    uint64_t at = 0;

    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    r->event.link = link;
    r->cookie = m->cookie;
    r->bytes = bytes + TN_HEADER_BYTES;
    r->channel = channel;
    r->copied = m->flags & TN_SEND_COPY;
    memcpy(r->header, m->header, TN_HEADER_BYTES);
    for (uint32_t i = 0; here && i < m->piece_count; at += m->pieces[i++].bytes)
        if (m->pieces[i].bytes)
            memcpy(r->copy + at, m->pieces[i].data, m->pieces[i].bytes);
    return r;
}

/* The last frame of a record, which gives it back, whatever becomes of it. */
static bool frame_last(tnzmq_record *r, void *socket, void *data, uint64_t bytes)
{
    zmq_msg_t frame;

    if (zmq_msg_init_data(&frame, data, bytes, record_done, r))
        return false; /* out of memory */
    if (tnzmq_part_send(socket, &frame, ZMQ_DONTWAIT) >= 0)
        return true;
    (void)zmq_msg_close(&frame);
    return true;
}

static bool frames_send(tnzmq_record *r, void *socket, void *payload, uint64_t bytes)
{
    zmq_msg_t header;

    if (!bytes)
        return frame_last(r, socket, r->header, TN_HEADER_BYTES);
    /* The header's frame is used up before the payload's is given back, and with it the record. */
    if (zmq_msg_init_data(&header, r->header, TN_HEADER_BYTES, NULL, NULL))
        return false;
    if (tnzmq_part_send(socket, &header, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
        (void)zmq_msg_close(&header);
        return false;
    }
    return frame_last(r, socket, payload, bytes);
}

/* False: it is still ours, and the link is of no use any more. */
static bool record_send(tnzmq_record *r, void *payload, uint64_t bytes)
{
    tn_link *link = r->event.link;
    tnzmq_source *s = tnzmq_link_source(link, r->channel);
    void *socket = s->socket;

    tnzmq_source_ready(link->t, s); /* libzmq looks for news, and tells of them once */
    if (!link->dialled && tnzmq_write(socket, link->id, sizeof link->id, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return false;
    atomic_store_explicit(&r->published, true, memory_order_release);
    if (frames_send(r, socket, payload, bytes))
        return true;
    (void)tnzmq_write(socket, "", 0, ZMQ_DONTWAIT); /* ends what was begun, if anything was */
    return false;
}

static tn_status payload_count(const tn_transport *t, const tn_send *m, uint64_t *bytes, tn_err *err)
{
    *bytes = 0;
    if (m->piece_count > TNZMQ_PIECES_MAX)
        return tn_failf(err, TN_E_ARG, "more than %d pieces", TNZMQ_PIECES_MAX);
    if (m->flags & ~TN_SEND_KNOWN)
        return tn_failf(err, TN_E_ARG, "flags %u", (unsigned)m->flags);
    for (uint32_t i = 0; i < m->piece_count; i++) {
        if (m->pieces[i].bytes > t->config.message_max - *bytes)
            return tn_failf(err, TN_E_ARG, "a message of more than %llu bytes",
                            (unsigned long long)t->config.message_max);
        *bytes += m->pieces[i].bytes;
    }
    return TN_OK;
}

tn_status tnzmq_send(tn_link *link, const tn_send *m, tn_err *err)
{
    tn_transport *t = link->t;
    tnzmq_channel *c;
    tnzmq_record *r;
    uint64_t bytes;
    uint32_t channel;
    tn_status st = payload_count(t, m, &bytes, err);

    if (st)
        return st;
    channel = m->flags & TN_SEND_URGENT && bytes <= TNZMQ_URGENT_MAX ? TNZMQ_CONTROL : TNZMQ_BULK;
    c = &link->channel[channel];
    if (link->state == TNZMQ_UP && !channel_has_room(c, bytes + TN_HEADER_BYTES))
        tnzmq_links_reap(t);
    if (link->state >= TNZMQ_CLOSING)
        return tn_fail(err, TN_E_PEER, "the link is gone");
    if (link->state == TNZMQ_DIALLING || !channel_has_room(c, bytes + TN_HEADER_BYTES)) {
        c->wanted = bytes + TN_HEADER_BYTES;
        link_count(link);
        return TN_PENDING;
    }
    if (channel == TNZMQ_BULK && bytes > TNZMQ_COPY_MAX)
        tnzmq_sendbuf_fit(link);
    if (!(r = record_new(link, m, bytes, channel)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    c->count++;
    c->bytes += r->bytes;
    atomic_fetch_add(&c->left, r->bytes);
    /* r is not read after this: it may have come back already */
    if (!record_send(r,
                     m->piece_count == 1 && bytes > TNZMQ_COPY_MAX && !r->copied
                         ? (void *)(uintptr_t)m->pieces[0].data
                         : r->copy,
                     bytes)) {
        c->count--;
        c->bytes -= r->bytes;
        atomic_fetch_sub(&c->left, r->bytes);
        free(r);
        tnzmq_link_close(link, TN_E_PEER, "the connection is lost", 0);
        return tn_fail(err, TN_E_PEER, "the connection is lost");
    }
    t->counters.sent++;
    t->counters.sent_bytes += bytes;
    return TN_OK;
}

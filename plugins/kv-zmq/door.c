/*
 * What peers connect to: two ROUTERs, and the handler of ZAP that lets in those with the job's key.
 *
 * A ROUTER says nothing of peers that come and go. Its monitor does, by the number of the connection's
 * descriptor, and each message names that number, too. So a table by descriptor says which connections live
 * and whose they are. A number is given to a new connection only after the monitor told of the old one's end,
 * since libzmq tells before it closes.
 */
#include "kv_zmq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ZAP_PARTS 8 /* of a request: version, id, domain, address, identity, mechanism, key */

/* ---- connections ------------------------------------------------------------------------------------ */

static tnzmq_connection *connection_at(tnzmq_door *d, int fd)
{
    return fd >= 0 && (uint32_t)fd < d->connections_count ? &d->connections[fd] : NULL;
}

/* False: out of memory. */
static bool connections_grow(tnzmq_door *d, int fd)
{
    const uint32_t count = (uint32_t)fd + 64;
    tnzmq_connection *grown;

    if ((uint32_t)fd < d->connections_count)
        return true;
    if (!(grown = realloc(d->connections, count * sizeof *grown)))
        return false;
    memset(grown + d->connections_count, 0, (count - d->connections_count) * sizeof *grown);
    d->connections = grown;
    d->connections_count = count;
    return true;
}

static void connection_begin(tn_transport *t, tnzmq_door *d, int fd)
{
    if (fd < 0)
        return;
    if (d->alive >= t->config.links_max + TNZMQ_CONNECTIONS_MORE || !connections_grow(d, fd)) {
        t->counters.refused++;
        tnzmq_kick(d, fd);
        return;
    }
    t->counters.accepted++;
    d->alive++;
    d->connections[fd] = (tnzmq_connection){.since_ns = monotonic_ns()};
    tnzmq_deadline(t, d->connections[fd].since_ns + 2 * (uint64_t)t->plugin->handshake_ms * 1000000u);
}

static void connection_end(tn_transport *t, uint32_t channel, int fd)
{
    tnzmq_door *d = &t->door[channel];
    tnzmq_connection *c = connection_at(d, fd);

    if (!c || !c->since_ns)
        return;
    if (c->link) {
        c->link->channel[channel].fd = -1;
        c->link->channel[channel].dying = true;
        d->dying++;
        tnzmq_source_ready(t, &d->router);
    } else {
        t->counters.strangers++;
    }
    d->alive--;
    *c = (tnzmq_connection){0};
}

void tnzmq_serve_monitor(tn_transport *t, tnzmq_source *s)
{
    uint16_t event;
    int32_t value;

    while (s->socket && tnzmq_monitor_next(s->socket, &event, &value)) {
        if (event == ZMQ_EVENT_ACCEPTED)
            connection_begin(t, &t->door[s->channel], value);
        else if (event == ZMQ_EVENT_DISCONNECTED)
            connection_end(t, s->channel, value);
    }
}

void tnzmq_door_bury(tn_transport *t, uint32_t channel)
{
    tnzmq_node *next;

    if (!t->door[channel].dying)
        return;
    t->door[channel].dying = 0;
    for (tnzmq_node *n = t->links.next; n != &t->links; n = next) {
        tn_link *link = (tn_link *)(void *)n;
        tnzmq_channel *c = &link->channel[channel];

        next = n->next;
        if (!c->dying)
            continue;
        c->dying = false;
        if (c->phase != TNZMQ_ENDED)
            tnzmq_link_close(link, TN_E_PEER, "the connection is lost", 0);
        tnzmq_link_finish(link);
    }
}

/* Connections that have not said whose they are in time. */
void tnzmq_door_tick(tn_transport *t, uint64_t now_ns)
{
    const uint64_t patience = 2 * (uint64_t)t->plugin->handshake_ms * 1000000u;

    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
        tnzmq_door *d = &t->door[i];

        tnzmq_serve_monitor(t, &d->monitor);
        for (uint32_t fd = 0; fd < d->connections_count; fd++) {
            tnzmq_connection *c = &d->connections[fd];

            if (!c->since_ns || c->link)
                continue;
            if (now_ns >= c->since_ns && now_ns - c->since_ns >= patience) {
                t->counters.refused++;
                c->since_ns = now_ns; /* its end is told by the monitor */
                tnzmq_kick(d, (int)fd);
            }
            tnzmq_deadline(t, c->since_ns + patience);
        }
    }
}

/* ---- greetings -------------------------------------------------------------------------------------- */

bool tnzmq_door_hello(tn_transport *t, uint32_t channel, const uint8_t *id, int fd)
{
    const tnzmq_frame welcome = {.kind = TNZMQ_WELCOME,
                                 .port = channel == TNZMQ_CONTROL ? t->door[TNZMQ_BULK].port : 0};
    tn_link *link = tnzmq_link_find(t, id);
    tnzmq_connection *c;

    tnzmq_serve_monitor(t, &t->door[channel].monitor); /* it told of the connection before the message came */
    c = connection_at(&t->door[channel], fd);
    if (!c || !c->since_ns)
        return true; /* it is gone already */
    if (c->link) {   /* it was one before, whose number this connection has got */
        tnzmq_link_close(c->link, TN_E_PEER, "the connection is lost", 0);
        return false;
    }
    if ((channel == TNZMQ_CONTROL) == (link != NULL) ||
        (link &&
         (link->dialled || link->state != TNZMQ_DIALLING || link->channel[channel].phase != TNZMQ_NONE)))
        return false;
    if (!link && !(link = tnzmq_link_accept(t, id))) {
        t->counters.refused++;
        tnzmq_kick(&t->door[channel], fd);
        return true;
    }
    c->link = link;
    link->channel[channel].fd = fd;
    link->channel[channel].phase = TNZMQ_OPEN;
    if (!tnzmq_frame_send(link, channel, &welcome))
        tnzmq_link_close(link, TN_E_PEER, "the connection is lost", 0);
    else if (channel == TNZMQ_BULK)
        tnzmq_link_up(link);
    return true;
}

/* ---- who is let in ---------------------------------------------------------------------------------- */

static bool key_equal(const uint8_t *a, const uint8_t *b)
{
    uint8_t differ = 0;

    for (uint32_t i = 0; i < 32; i++)
        differ |= a[i] ^ b[i];
    return !differ;
}

/* https://rfc.zeromq.org/spec/27: a request, and the answer to it. */
static bool zap_answer(tn_transport *t)
{
    zmq_msg_t part[ZAP_PARTS];
    uint32_t count = 0;
    bool more = true, good;

    while (more && count < ZAP_PARTS) {
        (void)zmq_msg_init(&part[count]);
        if (tnzmq_part_read(t->zap.socket, &part[count]) < 0) {
            (void)zmq_msg_close(&part[count]);
            break;
        }
        more = zmq_msg_more(&part[count++]);
    }
    if (!count)
        return false;
    good = count > 5 && !more && zmq_msg_size(&part[0]) == 3 && !memcmp(zmq_msg_data(&part[0]), "1.0", 3);
    if (good && *t->keys[0])
        good = count == 7 && zmq_msg_size(&part[5]) == 5 && !memcmp(zmq_msg_data(&part[5]), "CURVE", 5) &&
               zmq_msg_size(&part[6]) == 32 && key_equal(zmq_msg_data(&part[6]), t->key);
    (void)tnzmq_write(t->zap.socket, "1.0", 3, ZMQ_SNDMORE);
    (void)tnzmq_write(t->zap.socket, count > 1 ? zmq_msg_data(&part[1]) : "",
                      count > 1 ? zmq_msg_size(&part[1]) : 0, ZMQ_SNDMORE);
    (void)tnzmq_write(t->zap.socket, good ? "200" : "400", 3, ZMQ_SNDMORE);
    (void)tnzmq_write(t->zap.socket, good ? "OK" : "another key", good ? 2 : 11, ZMQ_SNDMORE);
    (void)tnzmq_write(t->zap.socket, "", 0, ZMQ_SNDMORE);
    (void)tnzmq_write(t->zap.socket, "", 0, 0);
    for (uint32_t i = 0; i < count; i++)
        (void)zmq_msg_close(&part[i]);
    return true;
}

static void serve_zap(tn_transport *t, tnzmq_source *s)
{
    (void)s;
    while (zap_answer(t))
        ;
}

/* ---- listening -------------------------------------------------------------------------------------- */

static tn_status zap_open(tn_transport *t, tn_err *err)
{
    void *s;

    if (t->zap.socket) /* of a try before; its name stays taken for a while */
        return TN_OK;
    s = zmq_socket(t->context, ZMQ_REP);
    t->zap = (tnzmq_source){.serve = serve_zap};
    if (!s || !tnzmq_socket_int(s, ZMQ_LINGER, 0) || zmq_bind(s, "inproc://zeromq.zap.01")) {
        (void)tnzmq_fail(err, TN_E_IO, "the handler of keys");
        if (s)
            (void)zmq_close(s);
        return TN_E_IO;
    }
    return tnzmq_source_open(t, &t->zap, s, err);
}

static tn_status door_open(tn_transport *t, uint32_t channel, const place *at, tn_err *err)
{
    static const char domain[] = "tenon";
    /* All of a door is the work of one of libzmq's threads: it tells of a connection after it has passed it
     * on, so another thread would at times bring its HELLO, or its end, before. */
    const uint64_t thread = (uint64_t)1 << (channel == TNZMQ_CONTROL ? 0 : t->config.lanes - 1);
    tnzmq_door *d = &t->door[channel];
    void *s = tnzmq_socket(t, ZMQ_ROUTER, channel, err);
    char where[80], endpoint[96];
    size_t bytes = sizeof endpoint;
    tn_status st;

    if (!s)
        return TN_E_IO;
    d->router = (tnzmq_source){.channel = channel, .serve = tnzmq_serve_door};
    d->monitor = (tnzmq_source){.channel = channel, .serve = tnzmq_serve_monitor};
    if (!tnzmq_socket_int(s, ZMQ_ROUTER_MANDATORY, 1) || !tnzmq_socket_keys(t, s, true) ||
        zmq_setsockopt(s, ZMQ_AFFINITY, &thread, sizeof thread) ||
        zmq_setsockopt(s, ZMQ_ZAP_DOMAIN, domain, sizeof domain - 1)) {
        (void)tnzmq_fail(err, TN_E_IO, "the options of a socket");
        (void)zmq_close(s);
        return TN_E_IO;
    }
    if ((st = tnzmq_source_open(t, &d->router, s, err)) || (st = tnzmq_monitor_open(t, s, &d->monitor, err)))
        return st;
    place_print(at, where, sizeof where);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%s", where);
    if (zmq_bind(s, endpoint))
        return tnzmq_fail(err, zmq_errno() == ENODEV || zmq_errno() == EADDRNOTAVAIL ? TN_E_ARG : TN_E_IO,
                          where);
    if (zmq_getsockopt(s, ZMQ_LAST_ENDPOINT, endpoint, &bytes))
        return tnzmq_fail(err, TN_E_IO, where);
    d->port = (uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    return TN_OK;
}

tn_status tnzmq_listen(tn_transport *t, const char *where, void *address, uint32_t *bytes, tn_err *err)
{
    place at = {0}, any;
    char text[80];
    tn_status st;

    if (t->listening)
        return tn_fail(err, TN_E_STATE, "it listens already");
    if ((st = place_read(&t->config, where, where ? strlen(where) : 0, true, &at, err)))
        return st;
    any = at;
    any.port = 0;
    if ((st = zap_open(t, err)) || (st = door_open(t, TNZMQ_CONTROL, &at, err)) ||
        (st = door_open(t, TNZMQ_BULK, &any, err))) {
        tnzmq_doors_close(t, 0);
        return st;
    }
    at.port = t->door[TNZMQ_CONTROL].port;
    place_print(&at, text, sizeof text);
    *bytes = (uint32_t)strlen(text);
    memcpy(address, text, *bytes);
    t->listening = true;
    return TN_OK;
}

void tnzmq_doors_close(tn_transport *t, int linger_ms)
{
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
        tnzmq_monitored_close(t, &t->door[i].router, &t->door[i].monitor, linger_ms);
        free(t->door[i].connections);
        t->door[i].connections = NULL;
        t->door[i].connections_count = 0;
    }
}

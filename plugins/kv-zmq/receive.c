/*
 * What comes: a host's message, which is held until `release`, or a frame of the plugin's own. Anything else
 * ends the connection that it came on.
 */
#include "kv_zmq.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 64  /* messages of one source before the others have their turn */
#define ALIGNED 8 /* bytes, of libzmq's own memory for long frames */

/* The parts of one message, without its sender. */
typedef struct incoming {
    zmq_msg_t part[2];
    uint32_t count; /* 3: there were more */
} incoming;

static void incoming_close(incoming *in)
{
    for (uint32_t i = 0; i < in->count && i < 2; i++)
        (void)zmq_msg_close(&in->part[i]);
    in->count = 0;
}

/* False: there is no message now. */
static bool incoming_read(void *socket, incoming *in)
{
    bool more = true;
    zmq_msg_t rest;

    for (in->count = 0; more; in->count += in->count < 3) {
        zmq_msg_t *m = in->count < 2 ? &in->part[in->count] : &rest;

        (void)zmq_msg_init(m);
        if (tnzmq_part_read(socket, m) < 0) {
            (void)zmq_msg_close(m);
            break;
        }
        more = zmq_msg_more(m);
        if (m == &rest)
            (void)zmq_msg_close(m);
    }
    return in->count > 0;
}

bool tnzmq_may_receive(const tn_transport *t, uint32_t channel)
{
    const tn_transport_config *c = &t->config;
    const uint64_t largest =
        channel == TNZMQ_CONTROL && c->message_max > TNZMQ_URGENT_MAX ? TNZMQ_URGENT_MAX : c->message_max;

    return !t->held_bytes ||
           (t->held_bytes < c->receive_bytes && c->receive_bytes - t->held_bytes >= largest);
}

static uint64_t held_bytes(const tnzmq_held *h)
{
    return h->bytes + sizeof *h;
}

/* Short payloads are copied: in libzmq they would keep a whole buffer of the connection. */
static bool held_add(tn_link *link, incoming *in)
{
    tn_transport *t = link->t;
    const uint64_t bytes = in->count > 1 ? zmq_msg_size(&in->part[1]) : 0;
    const void *data = bytes ? zmq_msg_data(&in->part[1]) : NULL;
    const bool copied = bytes <= TNZMQ_COPY_MAX || (uintptr_t)data % ALIGNED;
    tnzmq_held *h = malloc(sizeof *h + (copied ? bytes : 0));

    if (!h)
        return false;
    memset(h, 0, sizeof *h);
    h->bytes = bytes;
    h->data = data;
    memcpy(h->header, zmq_msg_data(&in->part[0]), TN_HEADER_BYTES);
    (void)zmq_msg_init(&h->frame);
    if (!copied)
        (void)zmq_msg_move(&h->frame, &in->part[1]);
    else if (bytes)
        h->data = memcpy(h->copy, data, bytes);
    t->held_bytes += held_bytes(h);
    t->counters.received++;
    t->counters.received_bytes += bytes;
    tnzmq_event_add(t, &h->event, TN_EVENT_RECV, link);
    return true;
}

void tnzmq_release(tn_transport *t, void *held)
{
    tnzmq_held *h = held;

    if (!h)
        return;
    t->held_bytes -= held_bytes(h);
    (void)zmq_msg_close(&h->frame);
    free(h);
    if (!t->stalled || !tnzmq_may_receive(t, TNZMQ_BULK))
        return;
    t->stalled = false;
    for (uint32_t i = 0; i < TNZMQ_CHANNELS; i++) {
        tnzmq_source_ready(t, &t->door[i].router);
        for (tnzmq_node *n = t->links.next; n != &t->links; n = n->next)
            tnzmq_source_ready(t, &((tn_link *)(void *)n)->channel[i].source);
    }
}

/* False: it is none that this peer may send. */
static bool message_take(tn_link *link, uint32_t channel, incoming *in)
{
    tnzmq_channel *c = &link->channel[channel];
    const size_t size = zmq_msg_size(&in->part[0]);
    tnzmq_frame frame;

    if (link->state == TNZMQ_CLOSING)
        return true; /* nobody waits for it */
    if (in->count == 1 && tnzmq_frame_read(zmq_msg_data(&in->part[0]), size, &frame))
        return tnzmq_frame_take(link, channel, &frame);
    if (in->count > 2 || size != TN_HEADER_BYTES || c->phase != TNZMQ_OPEN || link->state != TNZMQ_UP ||
        (in->count == 2 && zmq_msg_size(&in->part[1]) > link->t->config.message_max))
        return false;
    if (!held_add(link, in))
        tnzmq_link_close(link, TN_E_PEER, "no memory for a message", 0);
    return true;
}

static const char no_message[] = "the peer has sent something that is no message";

/* ---- a link that was dialled ------------------------------------------------------------------------ */

/* Whether there is something to read; it may end the link. */
static bool dealer_ready(tn_link *link, uint32_t channel)
{
    tnzmq_channel *c = &link->channel[channel];

    if (tnzmq_readable(c->source.socket))
        return true;
    if (c->dying && c->phase != TNZMQ_ENDED)
        tnzmq_link_close(link, TN_E_PEER, "the connection is lost", 0);
    return false;
}

void tnzmq_serve_dealer(tn_transport *t, tnzmq_source *s)
{
    tn_link *link = s->of;
    incoming in;

    for (uint32_t i = 0; s->socket && i < BATCH; i++) {
        if (!dealer_ready(link, s->channel))
            return;
        if (link->state == TNZMQ_DIALLING && link->channel[s->channel].phase == TNZMQ_OPEN)
            return; /* UP comes first */
        if (!tnzmq_may_receive(t, s->channel)) {
            t->stalled = true;
            if (link->channel[s->channel].dying)
                tnzmq_link_stalled(link);
            return;
        }
        if (!incoming_read(s->socket, &in))
            return;
        if (!message_take(link, s->channel, &in)) {
            t->counters.malformed++;
            tnzmq_link_close(link, TN_E_PEER, no_message, 0);
        }
        incoming_close(&in);
    }
    tnzmq_source_ready(t, s);
}

/* ---- a door ----------------------------------------------------------------------------------------- */

static void door_take(tn_transport *t, uint32_t channel, const uint8_t *id, int id_bytes, incoming *in)
{
    tn_link *link = id_bytes == TNZMQ_ID_BYTES ? tnzmq_link_find(t, id) : NULL;
    const int fd = in->count ? zmq_msg_get(&in->part[0], ZMQ_SRCFD) : -1;
    tnzmq_frame frame;
    bool good;

    if (in->count == 1 && id_bytes == TNZMQ_ID_BYTES &&
        tnzmq_frame_read(zmq_msg_data(&in->part[0]), zmq_msg_size(&in->part[0]), &frame) &&
        frame.kind == TNZMQ_HELLO)
        good = tnzmq_door_hello(t, channel, id, fd);
    else
        good = link && !link->dialled && in->count && message_take(link, channel, in);
    if (good)
        return;
    t->counters.malformed++;
    if (link && !link->dialled)
        tnzmq_link_close(link, TN_E_PEER, no_message, 0);
    tnzmq_kick(&t->door[channel], fd);
}

void tnzmq_serve_door(tn_transport *t, tnzmq_source *s)
{
    uint8_t id[255];
    incoming in;

    for (uint32_t i = 0; i < BATCH; i++) {
        int id_bytes;

        if (!tnzmq_readable(s->socket)) {
            tnzmq_door_bury(t, s->channel);
            return;
        }
        if (!tnzmq_may_receive(t, s->channel)) {
            t->stalled = true;
            for (tnzmq_node *n = t->links.next; t->door[s->channel].dying && n != &t->links; n = n->next)
                if (((tn_link *)(void *)n)->channel[s->channel].dying)
                    tnzmq_link_stalled((tn_link *)(void *)n);
            return;
        }
        id_bytes = tnzmq_read(s->socket, id, sizeof id);
        if (id_bytes < 0)
            return;
        (void)incoming_read(s->socket, &in);
        door_take(t, s->channel, id, id_bytes, &in);
        incoming_close(&in);
    }
    tnzmq_source_ready(t, s);
}

/* The plugin's own messages: one frame of 16 bytes. A message of the host has one of 64, or two. */
#include "kv_zmq.h"

#include <string.h>

static const uint8_t magic[5] = {'T', 'n', 'z', 'q', 1};

bool tnzmq_frame_read(const void *bytes, size_t count, tnzmq_frame *out)
{
    static const uint8_t zeros[8];
    const uint8_t *b = bytes;

    if (count != TNZMQ_FRAME_BYTES || memcmp(b, magic, sizeof magic) != 0 || b[5] < TNZMQ_HELLO ||
        b[5] > TNZMQ_BYE || memcmp(b + 8, zeros, sizeof zeros) != 0)
        return false;
    out->kind = b[5];
    out->port = (uint16_t)(b[6] | b[7] << 8);
    return (out->port != 0) <= (out->kind == TNZMQ_WELCOME);
}

bool tnzmq_frame_send(tn_link *link, uint32_t channel, const tnzmq_frame *frame)
{
    tnzmq_source *s = tnzmq_link_source(link, channel);
    uint8_t b[TNZMQ_FRAME_BYTES] = {0};

    tnzmq_source_ready(link->t, s); /* libzmq looks for news, and tells of them once */
    if (!s->socket ||
        (!link->dialled && tnzmq_write(s->socket, link->id, sizeof link->id, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0))
        return false;
    memcpy(b, magic, sizeof magic);
    b[5] = frame->kind;
    b[6] = (uint8_t)(frame->port & 255);
    b[7] = (uint8_t)(frame->port >> 8);
    return tnzmq_write(s->socket, b, sizeof b, ZMQ_DONTWAIT) == (int)sizeof b;
}

/* Sockets of libzmq with the options that those of one kind have, and their monitors. */
#include "kv_zmq.h"

#include <errno.h>
#include <string.h>

#define NEVER_MS 86400000
#define INTERRUPTS_MAX 1000
#define FRAME_MORE 128 /* bytes: a header, and what CURVE puts around a frame */

tn_status tnzmq_fail(tn_err *err, tn_status code, const char *what)
{
    return tn_failf(err, code, "%.200s: %.200s", what, zmq_strerror(zmq_errno()));
}

bool tnzmq_socket_int(void *socket, int option, int value)
{
    return !zmq_setsockopt(socket, option, &value, sizeof value);
}

/* Messages of one connection that libzmq may read ahead, so that those of all links take half of what is
 * allowed; two at least, or a connection stands still while a message goes from thread to thread. */
static int read_ahead(const tn_transport *t, uint32_t channel)
{
    const tn_transport_config *c = &t->config;
    const uint64_t size = channel == TNZMQ_CONTROL ? TNZMQ_URGENT_MAX : c->message_max + 1,
                   count = c->receive_bytes / 2 / (c->links_max ? c->links_max : 1) / size;

    return count < 2 ? 2 : count > 1000 ? 1000 : (int)count;
}

void *tnzmq_socket(tn_transport *t, int type, uint32_t channel, tn_err *err)
{
    const tnzmq_plugin *p = t->plugin;
    const uint64_t largest = channel == TNZMQ_CONTROL ? TNZMQ_URGENT_MAX : t->config.message_max;
    const int64_t limit = largest > INT64_MAX / 2 ? INT64_MAX : (int64_t)largest + FRAME_MORE;
    void *s = zmq_socket(t->context, type);

    if (!s) {
        (void)tnzmq_fail(err, TN_E_IO, "a socket");
        return NULL;
    }
    /* Our own windows bound what lies in a socket. Nothing connects again: a link is closed before its socket
     * would, and without that time libzmq would drop what has come and is not read yet. A receiver that lets
     * its peers wait does not answer on `bulk`, so only `control` has heartbeats. */
    if (tnzmq_socket_int(s, ZMQ_SNDBUF, p->send_bytes ? (int)p->send_bytes : -1) &&
        tnzmq_socket_int(s, ZMQ_SNDHWM, 0) && tnzmq_socket_int(s, ZMQ_RCVHWM, read_ahead(t, channel)) &&
        tnzmq_socket_int(s, ZMQ_IPV6, 1) && tnzmq_socket_int(s, ZMQ_LINGER, 0) &&
        tnzmq_socket_int(s, ZMQ_RECONNECT_IVL, NEVER_MS) &&
        tnzmq_socket_int(s, ZMQ_HANDSHAKE_IVL, (int)p->handshake_ms) &&
        tnzmq_socket_int(s, ZMQ_CONNECT_TIMEOUT, (int)p->handshake_ms) &&
        (channel != TNZMQ_CONTROL || (tnzmq_socket_int(s, ZMQ_HEARTBEAT_IVL, (int)p->heartbeat_ms) &&
                                      tnzmq_socket_int(s, ZMQ_HEARTBEAT_TIMEOUT, (int)p->dead_ms))) &&
        !zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &limit, sizeof limit))
        return s;
    (void)tnzmq_fail(err, TN_E_IO, "the options of a socket");
    (void)zmq_close(s);
    return NULL;
}

bool tnzmq_socket_keys(tn_transport *t, void *socket, bool server)
{
    if (!*t->keys[0])
        return true;
    return (!server || tnzmq_socket_int(socket, ZMQ_CURVE_SERVER, 1)) &&
           (server || !zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, t->keys[0], sizeof t->keys[0])) &&
           !zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, t->keys[0], sizeof t->keys[0]) &&
           !zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, t->keys[1], sizeof t->keys[1]);
}

tn_status tnzmq_monitor_open(tn_transport *t, void *socket, tnzmq_source *monitor, tn_err *err)
{
    const int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED |
                       ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    char name[40];
    void *s;

    (void)snprintf(name, sizeof name, "inproc://tnzmq-monitor-%u", (unsigned)t->names++);
    if (zmq_socket_monitor(socket, name, events) || !(s = zmq_socket(t->context, ZMQ_PAIR)))
        return tnzmq_fail(err, TN_E_IO, "a socket's monitor");
    /* Without a limit: at one, libzmq's thread would wait for us. */
    if (!tnzmq_socket_int(s, ZMQ_RCVHWM, 0) || !tnzmq_socket_int(s, ZMQ_LINGER, 0) || zmq_connect(s, name)) {
        (void)tnzmq_fail(err, TN_E_IO, "a socket's monitor");
        (void)zmq_close(s);
        return TN_E_IO;
    }
    return tnzmq_source_open(t, monitor, s, err);
}

/* The events end first: libzmq's thread waits for ever with one that nobody can get any more, and with it all
 * connections of that thread. */
void tnzmq_monitored_close(tn_transport *t, tnzmq_source *s, tnzmq_source *monitor, int linger_ms)
{
    if (s->socket)
        (void)zmq_socket_monitor(s->socket, NULL, 0);
    tnzmq_source_close(t, monitor, 0);
    tnzmq_source_close(t, s, linger_ms);
}

/* `left`: how often it may yet be. In a child of a fork libzmq says EINTR each time. */
static bool interrupted(int result, int *left)
{
    return result < 0 && zmq_errno() == EINTR && --*left > 0;
}

int tnzmq_call(void *socket, const char *endpoint)
{
    int n, left = INTERRUPTS_MAX;

    do
        n = zmq_connect(socket, endpoint);
    while (interrupted(n, &left));
    return n;
}

int tnzmq_write(void *socket, const void *data, size_t bytes, int flags)
{
    int n, left = INTERRUPTS_MAX;

    do
        n = zmq_send(socket, data, bytes, flags);
    while (interrupted(n, &left));
    return n;
}

int tnzmq_read(void *socket, void *data, size_t bytes)
{
    int n, left = INTERRUPTS_MAX;

    do
        n = zmq_recv(socket, data, bytes, ZMQ_DONTWAIT);
    while (interrupted(n, &left));
    return n;
}

int tnzmq_part_send(void *socket, zmq_msg_t *part, int flags)
{
    int n, left = INTERRUPTS_MAX;

    do
        n = zmq_msg_send(part, socket, flags);
    while (interrupted(n, &left));
    return n;
}

int tnzmq_part_read(void *socket, zmq_msg_t *part)
{
    int n, left = INTERRUPTS_MAX;

    do
        n = zmq_msg_recv(part, socket, ZMQ_DONTWAIT);
    while (interrupted(n, &left));
    return n;
}

bool tnzmq_readable(void *socket)
{
    int events = 0, n, left = INTERRUPTS_MAX;
    size_t bytes = sizeof events;

    do
        n = zmq_getsockopt(socket, ZMQ_EVENTS, &events, &bytes);
    while (interrupted(n, &left));
    return !n && events & ZMQ_POLLIN;
}

bool tnzmq_monitor_next(void *socket, uint16_t *event, int32_t *value)
{
    unsigned char bytes[6];
    char address[8];

    /* An event's second part, an address, comes with its first. */
    if (tnzmq_read(socket, bytes, sizeof bytes) != (int)sizeof bytes)
        return false;
    (void)tnzmq_read(socket, address, sizeof address);
    memcpy(event, bytes, sizeof *event);
    memcpy(value, bytes + sizeof *event, sizeof *value);
    return true;
}

/*
 * What the files of the plugin kv-zmq share.
 *
 * A link is two connections, `control` for urgent messages and the plugin's own, `bulk` for the rest. The
 * side that dials has a DEALER for each; the side that listens has two doors, each a ROUTER with its monitor.
 * A link's id, 16 random bytes, is the routing id of both DEALERs: by it the doors tell links apart.
 */
#ifndef TNZMQ_KV_ZMQ_H
#define TNZMQ_KV_ZMQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <zmq.h>

#include "../common/place.h"
#include "../common/system.h"
#include "sendbuf.h"
#include "tenon/plugin/transport.h"

#define TNZMQ_ID_BYTES 16
#define TNZMQ_URGENT_MAX 8192 /* bytes of a payload; a longer one goes the way of the others */
#define TNZMQ_WINDOW_BYTES ((uint64_t)8 << 20) /* of one connection that may lie in libzmq */
#define TNZMQ_PIECES_MAX 64
#define TNZMQ_WINDOW_COUNT 1024
#define TNZMQ_WINDOW_FULL                                                                                    \
    (TNZMQ_WINDOW_BYTES / 4 * 3) /* with more in it nobody is told of what has left it */
#define TNZMQ_COPY_MAX 8192      /* bytes: longer payloads are neither copied to be sent nor when they come */
#define TNZMQ_CONNECTIONS_MORE 64 /* than links may have, for those that have not said anything yet */
#define TNZMQ_BYE_NS 1000000000u  /* for what waits on a link that `disconnect` ends */

/* ---- lists ------------------------------------------------------------------------------------------ */

typedef struct tnzmq_node {
    struct tnzmq_node *next, *last; /* NULL: in no list */
} tnzmq_node;

static inline void tnzmq_list_init(tnzmq_node *list)
{
    list->next = list->last = list;
}

static inline void tnzmq_list_add(tnzmq_node *list, tnzmq_node *n)
{
    n->last = list->last;
    n->next = list;
    list->last->next = n;
    list->last = n;
}

static inline void tnzmq_list_remove(tnzmq_node *n)
{
    if (!n->next)
        return;
    n->last->next = n->next;
    n->next->last = n->last;
    n->next = n->last = NULL;
}

/* ---- what the transport consists of ----------------------------------------------------------------- */

/* A socket whose readiness `poll` waits for. */
typedef struct tnzmq_source {
    tnzmq_node ready; /* first: in tn_transport.ready */
    void *socket;     /* NULL: closed */
    void *of;         /* door or link */
    uint32_t channel; /* TNZMQ_… */
    int fd;           /* libzmq's, in the epoll set */
    void (*serve)(tn_transport *t, struct tnzmq_source *s);
} tnzmq_source;

/* What waits to be handed out. */
typedef struct tnzmq_event {
    tnzmq_node node; /* first: in tn_transport.events */
    uint32_t kind;   /* TN_EVENT_… */
    tn_link *link;
} tnzmq_event;

/* A message that was received. */
typedef struct tnzmq_held {
    tnzmq_event event; /* first */
    uint64_t bytes;
    const void *data;
    zmq_msg_t frame; /* that `data` lies in, unless it lies behind this */
    uint8_t header[TN_HEADER_BYTES];
    _Alignas(16) unsigned char copy[];
} tnzmq_held;

/* A message that is sent. libzmq's threads give it back. */
typedef struct tnzmq_record {
    tnzmq_event event; /* first: SENT */
    struct tnzmq_record *next_done;
    uint64_t cookie, bytes;
    uint32_t channel;
    tn_status status;
    bool copied;           /* no event follows */
    atomic_bool published; /* orders what is written here before libzmq's thread reads it */
    uint8_t header[TN_HEADER_BYTES];
    unsigned char copy[];
} tnzmq_record;

enum { TNZMQ_CONTROL, TNZMQ_BULK, TNZMQ_CHANNELS };

typedef enum tnzmq_phase { TNZMQ_NONE, TNZMQ_GREETED, TNZMQ_OPEN, TNZMQ_ENDED } tnzmq_phase;

typedef struct tnzmq_channel {
    tnzmq_source source, monitor; /* of a link that was dialled */
    tnzmq_phase phase;            /* ENDED: the peer's BYE has come */
    int fd;           /* the connection's, which is libzmq's; -1: there is none, or an accepted one is gone */
    uint64_t look_ns; /* when its send buffer is looked at again */
    tnzmq_sendbuf sendbuf;
    bool dying;                /* it is gone, but what it has sent is not read yet */
    uint64_t bytes, count;     /* of messages in libzmq */
    atomic_uint_fast64_t left; /* of these bytes, those that are not given back; by libzmq's threads */
    uint64_t wanted;           /* bytes of a message that found no room; 0: none */
} tnzmq_channel;

typedef enum tnzmq_state { TNZMQ_DIALLING, TNZMQ_UP, TNZMQ_CLOSING, TNZMQ_DOWN } tnzmq_state;

struct tn_link {
    tnzmq_node node; /* first: in tn_transport.links, or .graves */
    tn_transport *t;
    tn_link *next; /* of the same bucket */
    uint8_t id[TNZMQ_ID_BYTES];
    bool dialled, known, counted; /* known: to the host · counted: in tn_transport.waiting */
    tnzmq_state state;
    tnzmq_channel channel[TNZMQ_CHANNELS];
    tnzmq_event up, down, credit;
    uint64_t deadline_ns; /* UINT64_MAX: none */
    tn_status status;     /* of DOWN */
    place at;             /* of a link that was dialled */
    char text[200];
};

/* A connection that a door has accepted, by its descriptor: 0 in `since_ns` where there is none. */
typedef struct tnzmq_connection {
    uint64_t since_ns;
    tn_link *link; /* NULL: it has not said whose it is */
} tnzmq_connection;

typedef struct tnzmq_door {
    tnzmq_source router, monitor;
    tnzmq_connection *connections;
    uint32_t connections_count, alive; /* room, and how many there are */
    uint32_t dying;                    /* channels that are gone, but have sent more */
    uint16_t port;
} tnzmq_door;

typedef struct tnzmq_counters {
    uint64_t sent, sent_bytes, received, received_bytes; /* messages, and bytes of payloads */
    uint64_t accepted, dialled;                          /* connections, links */
    uint64_t refused;                                    /* connections: too many, or silent for too long */
    uint64_t strangers; /* connections that ended before they said whose they are: other keys, no ZMTP */
    uint64_t malformed; /* messages; their connections were ended */
    uint64_t lost;      /* links that ended without BYE */
} tnzmq_counters;

typedef struct tnzmq_plugin {
    int64_t handshake_ms, heartbeat_ms, dead_ms, send_bytes; /* options */
} tnzmq_plugin;

struct tn_transport {
    const tnzmq_plugin *plugin;
    tn_transport_config config;
    char keys[2][41]; /* Z85: public, secret; empty without a secret */
    uint8_t key[32];  /* the public one */
    void *context;
    int epoll, bell;       /* the bell is an eventfd: `wake`, and records that libzmq gave back */
    uint32_t names;        /* given to monitors so far */
    uint64_t sendbuf_most; /* bytes that are set by connection.c; 0: it sets none */

    tnzmq_node links, graves, events, ready; /* graves: DOWN was handed out; until the next poll */
    tn_link **buckets;
    uint32_t buckets_mask, links_count, events_count;
    tnzmq_door door[TNZMQ_CHANNELS];
    tnzmq_source zap;
    bool listening, stalled; /* stalled: a source was left alone as too much is held */
    uint64_t held_bytes;
    uint64_t tick_ns; /* the earliest deadline, or before it */
    tnzmq_counters counters;
    char statistics[768];

    atomic_bool woken, sleeping;
    atomic_uint waiting; /* links that wait for records, of copies as well */
    _Atomic(tnzmq_record *) done;
};

/* ---- door.c: what peers connect to ------------------------------------------------------------------ */

tn_status tnzmq_listen(tn_transport *t, const char *where, void *address, uint32_t *bytes, tn_err *err);
/* A HELLO has come from the DEALER `id` on connection `fd`; false: the connection is to end. */
bool tnzmq_door_hello(tn_transport *t, uint32_t channel, const uint8_t *id, int fd);
/* Everything that connections which are gone have sent has been read. */
void tnzmq_door_bury(tn_transport *t, uint32_t channel);
void tnzmq_serve_monitor(tn_transport *t, tnzmq_source *s);
void tnzmq_door_tick(tn_transport *t, uint64_t now_ns);
void tnzmq_doors_close(tn_transport *t, int linger_ms);

/* ---- connection.c: connections below libzmq --------------------------------------------------------- */

/* Ends the connection `fd` of a door, if it still is one. */
void tnzmq_kick(const tnzmq_door *d, int fd);
uint64_t tnzmq_sendbuf_most(void); /* bytes; 0: sizes of send buffers are the kernel's */
/* Before a long message: at most every 10 ms, sets the size of the send buffer of `bulk`. */
void tnzmq_sendbuf_fit(tn_link *link);

/* ---- link.c ----------------------------------------------------------------------------------------- */

tn_status tnzmq_connect(tn_transport *t, const void *address, uint32_t bytes, tn_link **out, tn_err *err);
tn_status tnzmq_send(tn_link *link, const tn_send *message, tn_err *err);
void tnzmq_disconnect(tn_link *link);
tn_link *tnzmq_link_find(tn_transport *t, const uint8_t *id);
/* A link that a door accepts. NULL: no more are served. */
tn_link *tnzmq_link_accept(tn_transport *t, const uint8_t *id);
/* The socket that a message of the link goes to. */
static inline tnzmq_source *tnzmq_link_source(tn_link *link, uint32_t channel)
{
    return link->dialled ? &link->channel[channel].source : &link->t->door[channel].router;
}
void tnzmq_link_up(tn_link *link);
/* Ends a link; DOWN follows when all its records are back. The first status and text count. It may close the
 * source that is served. */
void tnzmq_link_close(tn_link *link, tn_status status, const char *text, int linger_ms);
void tnzmq_link_finish(tn_link *link); /* hands out DOWN where nothing is left to wait for */
void tnzmq_link_destroy(tn_link *link);
/* Its connection is gone, and what it has sent cannot be read now: it has a moment for that. */
void tnzmq_link_stalled(tn_link *link);
void tnzmq_link_tick(tn_transport *t, uint64_t now_ns);
void tnzmq_links_reap(tn_transport *t); /* records that libzmq has given back */

/* ---- frame.c: the plugin's own messages ------------------------------------------------------------- */

enum { TNZMQ_HELLO = 1, TNZMQ_WELCOME, TNZMQ_BYE };
#define TNZMQ_FRAME_BYTES 16

typedef struct tnzmq_frame {
    uint8_t kind;
    uint16_t port; /* of WELCOME: of the door for bulk */
} tnzmq_frame;

bool tnzmq_frame_read(const void *bytes, size_t count, tnzmq_frame *out); /* false: it is none */
bool tnzmq_frame_send(tn_link *link, uint32_t channel, const tnzmq_frame *frame);

/* ---- receive.c -------------------------------------------------------------------------------------- */

/* Whether a message of `channel` may be read now. */
bool tnzmq_may_receive(const tn_transport *t, uint32_t channel);
/* Handles what a peer's frame on a link says; false: it says nothing that fits. */
bool tnzmq_frame_take(tn_link *link, uint32_t channel, const tnzmq_frame *frame);
void tnzmq_serve_door(tn_transport *t, tnzmq_source *s);
void tnzmq_serve_dealer(tn_transport *t, tnzmq_source *s);
void tnzmq_release(tn_transport *t, void *held);

/* ---- poll.c ----------------------------------------------------------------------------------------- */

void tnzmq_ring(tn_transport *t); /* any thread */
int32_t tnzmq_descriptor(tn_transport *t);
void tnzmq_wake(tn_transport *t);
tn_status tnzmq_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                     tn_err *err);
void tnzmq_event_add(tn_transport *t, tnzmq_event *e, uint32_t kind, tn_link *link);
void tnzmq_deadline(tn_transport *t, uint64_t at_ns);
/* Watches a socket from now on; the source is ready at once. */
tn_status tnzmq_source_open(tn_transport *t, tnzmq_source *s, void *socket, tn_err *err);
void tnzmq_source_ready(tn_transport *t, tnzmq_source *s);
void tnzmq_source_close(tn_transport *t, tnzmq_source *s, int linger_ms);

/* ---- socket.c --------------------------------------------------------------------------------------- */

tn_status tnzmq_fail(tn_err *err, tn_status code, const char *what); /* with libzmq's errno in words */
/* A socket with the options that all have; NULL: `err` says why. */
void *tnzmq_socket(tn_transport *t, int type, uint32_t channel, tn_err *err);
bool tnzmq_socket_int(void *socket, int option, int value);
/* libzmq's calls, none of which waits, again while a signal interrupts them: the host's thread may be its
 * user's. */
int tnzmq_call(void *socket, const char *endpoint);
int tnzmq_write(void *socket, const void *data, size_t bytes, int flags);
int tnzmq_read(void *socket, void *data, size_t bytes);
int tnzmq_part_send(void *socket, zmq_msg_t *part, int flags);
int tnzmq_part_read(void *socket, zmq_msg_t *part);
bool tnzmq_readable(void *socket);
bool tnzmq_socket_keys(tn_transport *t, void *socket, bool server);
/* A PAIR that gets the socket's events; watched as `monitor`. */
tn_status tnzmq_monitor_open(tn_transport *t, void *socket, tnzmq_source *monitor, tn_err *err);
/* Closes a socket and its monitor; either may be closed already. */
void tnzmq_monitored_close(tn_transport *t, tnzmq_source *s, tnzmq_source *monitor, int linger_ms);
/* The next event; false: there is none now. */
bool tnzmq_monitor_next(void *socket, uint16_t *event, int32_t *value);

#endif

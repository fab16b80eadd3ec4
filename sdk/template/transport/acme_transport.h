/* What the files of acme-transport share. */
#ifndef ACME_TRANSPORT_H
#define ACME_TRANSPORT_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "tenon/plugin/transport.h"

#define MAGIC 0x31706374u /* "tcp1" */
#define HEAD_BYTES (16 + TN_HEADER_BYTES)
#define PIECES_MAX 16u
#define QUEUE_MAX 64u                  /* messages that wait for a link, but for urgent ones */
#define URGENT_MAX 16u                 /* and these */
#define COPIED_MAX ((uint64_t)4 << 20) /* bytes of a link's messages that were copied */
#define STRANGERS_MAX 64u              /* connections whose first frame has not come; the oldest one goes */
#define ROUND_MAX 32u                  /* frames of one link that are read before another link has its turn */
#define WAITS_MAX 64                   /* of one epoll_wait */
#define BYTE_NS 16u                    /* a frame takes at most stall_ms and this for each of its bytes */
#define STALL_MS 10000                 /* default of the option */
#define TURN_NS 1000000u               /* of a wait in `close`, which nobody tells when all is sent */
#define RANK_HELLO ((int64_t)INT32_MAX + 2) /* order in a queue: first of all, urgent, by priority */
#define RANK_URGENT ((int64_t)INT32_MAX + 1)

enum { FRAME_CALL = 1, FRAME_ANSWER, FRAME_MESSAGE, FRAME_BYE };

typedef struct plugin {
    uint64_t stall_ns;
} plugin;

/* As it goes over the wire. Both ends are little-endian: so is every platform with an ABI tag. */
typedef struct head {
    uint32_t magic, kind;
    uint64_t bytes; /* of the payload */
    uint8_t header[TN_HEADER_BYTES];
} head;
_Static_assert(sizeof(head) == HEAD_BYTES, "no padding");

/* What `poll` is to tell; part of a link or a message. */
typedef struct event {
    struct event *next;
    uint32_t kind;
    bool waits; /* in the list */
    tn_link *link;
} event;

typedef struct incoming {
    event e;
    uint64_t bytes;
    uint8_t header[TN_HEADER_BYTES];
    _Alignas(16) uint8_t data[];
} incoming;

typedef struct outgoing {
    event e;               /* `next` is that of the queue before */
    bool told;             /* SENT follows */
    tn_status status;      /* of SENT */
    int64_t rank;          /* higher ones go first */
    uint64_t cookie, done; /* done: bytes that the system took */
    uint64_t bytes;        /* all of them, the head too */
    head head;
    uint32_t piece_count;
    tn_piece pieces[]; /* copied bytes lie behind */
} outgoing;

typedef enum state { CALLING, GREETING, OPEN, CLOSED } state;

struct tn_link {
    tn_transport *t;
    tn_link *next;
    tn_link **place; /* what points to it */
    int fd;
    state state;
    bool called;      /* we connected */
    bool seen;        /* the host knows it */
    bool no_room;     /* `send` said so */
    uint32_t armed;   /* for epoll */
    uint64_t starved; /* no room for its payload: nothing is read. Its place among those; 0: it is not */
    uint64_t late_ns; /* on the clock of `polled_ns`: the peer must have done by then; 0: nothing to do */
    head head;        /* of the frame that comes */
    uint64_t got;     /* bytes of the head, then of the payload behind it */
    incoming *in;     /* NULL: it has not begun */
    outgoing *queue;
    uint32_t queued;
    uint64_t copied;
    event up, credit, down;
    tn_status why;
    char text[128];
};

struct tn_transport {
    const plugin *plugin;
    tn_transport_config config;
    int epoll, wake, listener;        /* listener: -1: none */
    bool deaf;                        /* no descriptor was left for a connection */
    tn_link *links, *gone;            /* gone: freed by the next poll */
    uint32_t open, strangers;         /* open: those that the host knows or made */
    uint64_t polled_ns;               /* the time spent in `poll`: no peer is late because nobody reads */
    uint64_t held;                    /* of receive_bytes */
    uint64_t turn;                    /* the last place that was given to a starved link */
    uint32_t starving;                /* links */
    uint64_t received, sent, refused; /* messages, connections */
    event *first, **last;
    char statistics[200];
};

/* ---- acme_transport_link.c ---- */

/* The system's error; its text and `what`. */
tn_status tcp_fail_system(tn_err *err, const char *what);
event *tcp_event_pop(tn_transport *t);
void tcp_event_take(tn_transport *t, tn_transport_event *to);
void tcp_incoming_free(tn_transport *t, incoming *in);
tn_link *tcp_link_create(tn_transport *t, int fd, bool called);
void tcp_link_arm(tn_link *l);
void tcp_link_end(tn_link *l, tn_status why, const char *format, ...);
void tcp_listener_arm(tn_transport *t, bool deaf);
bool tcp_frame_queue(tn_link *l, uint32_t kind, int64_t rank);
void tcp_link_write(tn_link *l);
void tcp_link_read(tn_link *l);
tn_status tcp_send(tn_link *l, const tn_send *message, tn_err *err);
void *tcp_bytes_want(tn_link *l, uint64_t *bytes);
bool tcp_bytes_got(tn_link *l, uint64_t bytes);
void tcp_starved_serve(tn_transport *t);

/* ---- acme_transport_address.c ---- */

tn_status tcp_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes, tn_err *err);
tn_status tcp_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                      tn_err *err);
void tcp_accept(tn_transport *t);

#endif

/*
 * On the host, for transports whose messages go through rings of memory (kv-shm, kv-rdma): messages that
 * wait to be sent, events for the host, memory of payloads, links and the loop. The plugin has the rings, the
 * handshake, and the table `ring_ops`. Its file ring.c includes ring.inc, where the functions are.
 *
 * A link has two classes of messages, each with a ring of its own in both directions: urgent ones wait
 * behind no others. In a tn_link, `out` and `in` are the plugin's ends of them; ring.inc uses of an `out` the
 * ring_queue `queue`, of an `in` the message that comes, `in`, with a ring_incoming `base`, and the
 * ring_wait `wait`.
 */
#ifndef TNB_RING_H
#define TNB_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "proof.h"
#include "settings.h"
#include "tenon/plugin/transport.h"

#define RING_PIECES_MAX 64u
#define RING_QUEUE_MAX 64u                   /* messages of a class that wait for room in its ring */
#define RING_COPIED_MAX ((uint64_t)4 << 20)  /* bytes of copies among them */
#define RING_STRANGERS_MAX 64u               /* connections that are not linked yet; the oldest one goes */
#define RING_ROUND_BYTES ((uint64_t)4 << 20) /* that are read of one class before another one has its turn */
#define RING_ROUND_CALLERS 32                /* before others have their turn */

enum { RING_URGENT, RING_BULK, RING_CLASSES };

/* CLOSING: what was written is still sent. DRAINING: the peer has gone, what it has sent is still read. */
typedef enum ring_state {
    RING_CALLING,
    RING_GREETING,
    RING_OFFERED,
    RING_UP,
    RING_CLOSING,
    RING_DRAINING,
    RING_CLOSED
} ring_state;

/* What `poll` is to tell; part of a link or a message. */
typedef struct ring_event {
    struct ring_event *next;
    uint32_t kind;
    bool waits; /* in the list */
    tn_link *link;
} ring_event;

/* A message that has come, or comes; its payload of `bytes` follows the plugin's struct. */
typedef struct ring_incoming {
    ring_event e; /* `next`: of spare ones, too */
    uint64_t bytes;
    uint8_t header[TN_HEADER_BYTES];
} ring_incoming;

typedef struct ring_outgoing {
    ring_event e; /* `next` is that of the queue before */
    bool told;    /* SENT follows */
    tn_status status;
    int32_t priority;
    uint32_t piece_count;
    uint64_t cookie, payload, done, bytes; /* done, bytes: with all that is written beside the payload */
    const tn_piece *pieces;
} ring_outgoing;

typedef struct ring_queue {
    ring_outgoing *first;
    uint32_t count;
    uint64_t copied;
} ring_queue;

/* What a class that is read waits for. */
typedef struct ring_wait {
    uint64_t starved; /* no room for its payload: its place among those; 0: it is not */
    uint64_t wants;   /* bytes of that payload */
    uint64_t late_ns; /* on the clock of polled_ns; 0: nothing is half here */
} ring_wait;

typedef struct ring_ops {
    uint64_t incoming_bytes; /* of a message that comes, without its payload */
    /* The end of a link, before its socket is closed, and behind. NULL: nothing */
    void (*leave)(tn_link *l);
    void (*closed)(tn_link *l);
    void (*awake)(tn_link *l);                                   /* it is active; NULL: nothing */
    bool (*serve)(tn_link *l);                                   /* without waiting; whether anything came */
    void (*resume)(tn_link *l, uint32_t class);                  /* there is room for a payload */
    void (*late)(tn_link *l);                                    /* its peer */
    bool (*sleep)(tn_transport *t, uint64_t wait_ns);            /* active links; true: all do */
    void (*accept)(tn_transport *t);                             /* callers wait */
    void (*socket)(tn_transport *t, void *of, uint32_t events);  /* of a link, or what ring_watch was told */
    void (*received)(ring_incoming *in, tn_transport_event *to); /* where its payload is */
    void (*release)(tn_transport *t, ring_incoming *in);
    bool (*quiet)(const tn_link *l); /* all that was written has gone; NULL: it has */
} ring_ops;

/* The fields of a tn_link and of a tn_transport that ring.inc uses. */
#define RING_LINK(out_, in_)                                                                                 \
    tn_transport *t;                                                                                         \
    tn_link *next, **place; /* of all; `place` points to it */                                               \
    tn_link *active_next;   /* of those that are looked at in each turn */                                   \
    int fd;                                                                                                  \
    ring_state state;                                                                                        \
    bool called, seen, no_room, active; /* seen: the host knows it; no_room: `send` said so */               \
    uint64_t late_ns;                   /* of the handshake, or of the end; 0: of nothing */                 \
    uint8_t nonce[2][PROOF_BYTES];                                                                           \
    out_ out[RING_CLASSES];                                                                                  \
    in_ in[RING_CLASSES];                                                                                    \
    ring_event up, credit, down;                                                                             \
    tn_status why;                                                                                           \
    char text[200]

#define RING_TRANSPORT(plugin_)                                                                              \
    const ring_ops *ops;                                                                                     \
    const plugin_ *plugin; /* with handshake_ms and stall_ms */                                              \
    tn_transport_config config;                                                                              \
    uint8_t key[PROOF_KEY_BYTES];                                                                            \
    int epoll, wake, listener;                                                                               \
    bool deaf; /* no descriptor was left for a connection */                                                 \
    atomic_bool woken;                                                                                       \
    tn_link *links, *active, *gone; /* gone: freed by the next poll */                                       \
    uint32_t open, strangers;       /* open: those that the host knows */                                    \
    uint64_t polled_ns, due_ns;     /* the time spent in `poll`; when a peer may be late */                  \
    uint64_t held, spare_bytes;     /* of receive_bytes */                                                   \
    ring_incoming *spare;                                                                                    \
    uint64_t turn; /* the last place that was given to a starved class */                                    \
    uint32_t starving, polls;                                                                                \
    uint64_t received, sent, refused, faults;                                                                \
    ring_event *first, **last;                                                                               \
    char statistics[500]

/* The rows of statistics that all have. */
#define RING_STATISTICS(t_)                                                                                  \
    {"links", (t_)->open}, {"strangers", (t_)->strangers}, {"refused", (t_)->refused},                       \
        {"malformed", (t_)->faults}, {"messages_sent", (t_)->sent}, {"messages_received", (t_)->received},   \
        {"bytes_held", (t_)->held},                                                                          \
    {                                                                                                        \
        "bytes_spare", (t_)->spare_bytes                                                                     \
    }

/* ---- opening and closing ------------------------------------------------------------------------------ */

/* A transport with its configuration and key; TN_E_ARG: limits that cannot be. */
tn_status ring_create(const ring_ops *ops, void *plugin, const tn_transport_config *config,
                      tn_transport **out, tn_err *err);
tn_status ring_loop_open(tn_transport *t, tn_err *err);
bool ring_watch(tn_transport *t, int fd, void *of); /* `of`: goes to ops->socket */
void ring_destroy(tn_transport *t);
/* Goes on until all messages are written, for at most `timeout_ns`; what comes is told to nobody. */
void ring_flush(tn_transport *t, uint64_t timeout_ns);
void ring_close(tn_transport *t); /* all links, then what is left of the messages */

/* ---- the entries of a table of transports that are the same for all ----------------------------------- */

tn_status ring_poll(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                    tn_err *err);
void ring_wake(tn_transport *t);
int32_t ring_descriptor(tn_transport *t);

/* ---- messages that are sent --------------------------------------------------------------------------- */

/* Checks a message of at most `payload_max` bytes and fills in `out`, but for `bytes`. TN_PENDING: there is
 * no room · TN_E_ARG · TN_E_PEER the link is closed */
tn_status ring_message(tn_link *l, const tn_send *m, uint32_t class, uint64_t payload_max, ring_outgoing *out,
                       tn_err *err);
/* A message on the heap, with its list of pieces, or a copy of their bytes; `from` is the begin of a struct
 * of `size` bytes. NULL: out of memory */
void *ring_outgoing_keep(const ring_outgoing *from, size_t size);
void ring_outgoing_end(tn_link *l, ring_outgoing *o, tn_status status); /* it has gone, or will not */
void ring_queue_add(ring_queue *q, ring_outgoing *o);
ring_outgoing *ring_queue_pop(ring_queue *q);
void ring_credit(tn_link *l); /* tells that there is room again */

/* Gives `write` the next `bytes` from `done` on, of the head, the pieces, and zeros behind them. */
typedef void (*ring_write)(void *to, const void *data, uint64_t bytes);
void ring_outgoing_copy(ring_outgoing *o, const void *head, uint64_t head_bytes, uint64_t bytes,
                        ring_write write, void *to);

/* ---- messages that come ------------------------------------------------------------------------------- */

/* Memory for a payload, which is held from now on; with room where ring_may_come said so. */
void *ring_incoming_create(tn_transport *t, uint64_t payload);
void ring_incoming_free(tn_transport *t, ring_incoming *in);
void ring_spare_free(tn_transport *t, uint64_t keep);
bool ring_may_come(const tn_transport *t, uint64_t payload, uint32_t class);
void ring_starve(tn_transport *t, ring_wait *w, uint64_t payload); /* until ops->resume */
/* A message that has begun comes on: it is late `stall_ms` from now. */
uint64_t ring_stalls_at(const tn_transport *t);
void ring_received(tn_link *l, ring_incoming *in, ring_wait *w);

/* ---- links -------------------------------------------------------------------------------------------- */

/* For a socket, which it owns; CALLING: connect(2) goes on. NULL: errno says why. */
tn_link *ring_link_create(tn_transport *t, int fd, bool called, ring_state state);
void ring_link_active(tn_link *l);
void ring_link_up(tn_link *l);
void ring_link_seen(tn_link *l); /* a stranger is one that the host knows */
/* Ends it at once, with what has not been read. */
void ring_link_end(tn_link *l, tn_status why, const char *text);
void ring_fault(tn_link *l, const char *text); /* of the peer; ends the link */
/* Its peer has gone: it ends once all is read. */
void ring_link_drain(tn_link *l, tn_status why, const char *text);
void ring_outs_cancel(tn_link *l);
void ring_event_push(tn_transport *t, ring_event *e, uint32_t kind, tn_link *l);
ring_event *ring_event_pop(tn_transport *t);
void ring_due(tn_transport *t, uint64_t at_ns);
/* The links that are active are served; whether anything came. */
bool ring_serve(tn_transport *t);
/* `*at` is active no more. */
void ring_link_rest(tn_link **at);

/* ---- callers ------------------------------------------------------------------------------------------ */

/* The next one; -1: there is none now. */
int ring_accept(tn_transport *t, struct sockaddr *from, socklen_t *bytes);
void ring_stranger_room(tn_transport *t); /* the oldest one goes if there are many */
void ring_listener_arm(tn_transport *t, bool deaf);

#endif

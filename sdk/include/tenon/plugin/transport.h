/**
 * A transport plugin: moves messages between the processes of a job. It knows nothing of keys, rounds or
 * roles: the parameter store repeats what is lost, drops what comes twice and checks what is damaged. So a
 * transport may pass on what a bad network does to messages, but it may not cut one, join two, or make one
 * up, and on a sound network a link that stays up delivers each message once.
 *
 * Threads. All functions of one transport are called by one thread at a time, not always the same one, and
 * signals may interrupt what they call, as it may be a user's thread; `wake` is called by any. Nothing blocks
 * but `poll`, `close` and, where a host has to be looked up by its name, `listen` and `connect`. A transport
 * may have threads of its own, made by the host's service "threads".
 *
 * Links. `connect` makes one to a peer; a peer's connect makes one here, which appears with TN_EVENT_UP. Both
 * ends send on it. A link lives until its TN_EVENT_DOWN was handed out, which follows a failure, the peer's
 * end or `disconnect`, exactly once, as its last event; messages that wait for room may come before it. The
 * host makes a new link then, if it still needs one: a transport does not connect again by itself. Messages
 * of one link, direction and priority arrive in the order in which they were sent. Those of a higher
 * priority, and those with TN_SEND_URGENT, may overtake.
 *
 * Memory. Nothing that a peer sends makes a transport take more than tn_transport_config.receive_bytes of
 * memory for payloads that are not yet released, or serve more than `links_max` links; it lets peers wait, or
 * hangs up.
 */
#ifndef TENON_PLUGIN_TRANSPORT_H
#define TENON_PLUGIN_TRANSPORT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_transport tn_transport; /* the plugin's: one open transport */
typedef struct tn_link tn_link;           /* the plugin's: the way to one peer */
typedef struct tn_region tn_region;       /* the plugin's: memory that it may send from and receive in */

#define TN_HEADER_BYTES 64           /* of each message; the host's, opaque to the transport */
#define TN_TRANSPORT_ADDRESS_MAX 256 /* bytes of what `listen` gives */
#define TN_TRANSPORT_SECRET_BYTES 32

/** How a transport is opened. Texts and bytes are the host's and live for the call. */
typedef struct tn_transport_config {
    uint32_t struct_size, flags; /* TN_OPEN_… */
    /** What all processes of the job know and nobody else; NULL: nothing. A transport that can, encrypts by
     * it and lets in only peers that know it. */
    const uint8_t *secret;  /* TN_TRANSPORT_SECRET_BYTES */
    uint64_t receive_bytes; /* at least message_max */
    uint64_t message_max;   /* bytes of a payload; a peer that sends longer ones is hung up on */
    uint32_t links_max;
    uint32_t lanes; /* connections of one link, or threads, that a transport may use side by side */
} tn_transport_config;

/** May listen on, and connect to, other addresses than loopback without a secret. Without this flag `listen`
 * and `connect` answer TN_E_STATE there. */
#define TN_OPEN_INSECURE 1u
/** Payloads may be handed out where they came, in memory that the sender can still write (TN_RECV_SHARED).
 * The host releases them soon: links may stand still until then. */
#define TN_OPEN_SHARED 2u
#define TN_OPEN_KNOWN 3u

typedef struct tn_transport_info {
    uint32_t struct_size, flags; /* TN_TRANSPORT_… */
    uint64_t message_max;        /* bytes of a payload; UINT64_MAX: no limit of its own */
    uint32_t pieces_max;         /* of one send, at least 1 */
    uint32_t reserved;
} tn_transport_info;

#define TN_TRANSPORT_PUT 1u         /* `landing` and `put` are there */
#define TN_TRANSPORT_REGIONS 2u     /* pieces sent without TN_SEND_COPY must lie in regions */
#define TN_TRANSPORT_CHECKSUMMED 4u /* damaged bytes never arrive */
#define TN_TRANSPORT_ENCRYPTED 8u   /* nobody else reads or forges messages, as there is a secret */
#define TN_TRANSPORT_SECRET 16u     /* uses a secret; without this flag `open` refuses one */
#define TN_TRANSPORT_KNOWN 31u

/** A part of what is sent. Never grows. */
typedef struct tn_piece {
    const void *data;
    uint64_t bytes;
    tn_region *region; /* NULL where TN_TRANSPORT_REGIONS does not ask for one */
} tn_piece;

/** A message, or a put. It, its header and its list of pieces live for the call. */
typedef struct tn_send {
    uint32_t struct_size, flags; /* TN_SEND_… */
    const void *header;          /* TN_HEADER_BYTES; copied */
    const tn_piece *pieces;      /* the payload, one behind the other */
    uint32_t piece_count;        /* 0: none */
    int32_t priority;            /* the highest goes first, among what waits in the transport */
    uint64_t cookie;
    uint64_t token, offset; /* of a put: the peer's landing, and where in it the payload goes */
} tn_send;

/** The pieces are copied before the call returns; no TN_EVENT_SENT follows. */
#define TN_SEND_COPY 1u
/** Does not wait behind long messages; small. */
#define TN_SEND_URGENT 2u
#define TN_SEND_KNOWN 3u

#define TN_EVENT_UP 1u     /* the link works; of a peer's connect: it is new */
#define TN_EVENT_DOWN 2u   /* it is gone, and not used again; `status` and `text` say why */
#define TN_EVENT_RECV 3u   /* a message, all of whose bytes are here */
#define TN_EVENT_SENT 4u   /* the bytes of `cookie` may be used again; not that they arrived */
#define TN_EVENT_CREDIT 5u /* `send` on this link, which had no room, may be tried again */

typedef struct tn_transport_event {
    uint32_t struct_size, kind; /* TN_EVENT_… */
    tn_link *link;
    uint64_t cookie;                 /* SENT */
    tn_status status;                /* SENT: TN_OK or TN_E_CANCELLED; DOWN: TN_OK: the peer has closed it,
                                        TN_E_PEER: it is lost or refused, TN_E_CANCELLED: `disconnect` */
    uint32_t reserved;               /* 0 */
    uint8_t header[TN_HEADER_BYTES]; /* RECV */
    const void *data;                /* RECV: the payload, until `release`; aligned to 8 bytes */
    uint64_t bytes;   /* of the payload, also of a put, whose `data` is NULL */
    void *held;       /* RECV: for `release` */
    uint64_t slot;    /* RECV behind a put: the landing's; else UINT64_MAX */
    const char *text; /* DOWN: for people; until the next poll. NULL: nothing to say */
    uint64_t flags;   /* RECV: TN_RECV_…; else 0 */
} tn_transport_event;

/** The sender can change the payload until it is released, so nothing may depend on two reads of it. */
#define TN_RECV_SHARED 1u

/** The event `index` of those that `poll` fills in: each has as many bytes as the host's struct. */
static inline tn_transport_event *tn_transport_event_at(tn_transport_event *events, uint32_t index)
{
    return (tn_transport_event *)(void *)((unsigned char *)events + (uint64_t)index * events->struct_size);
}

typedef struct tn_transport_ops {
    tn_capability head; /* kind TN_KIND_TRANSPORT, id: "zmq" */
    /** Several may be open in one process. TN_E_UNSUPPORTED: a secret that it cannot use. TN_E_DEVICE: this
     * machine has no device for it; the message says which, and what would help. */
    tn_status (*open)(void *plugin, const tn_transport_config *config, tn_transport **out, tn_err *err);
    void (*info)(tn_transport *t, tn_transport_info *out);
    /**
     * Lets peers connect, once for a transport.
     *
     * @param where   "HOST:PORT", PORT 0: one that is free; HOST: an address or name of one interface
     * @param address room for TN_TRANSPORT_ADDRESS_MAX bytes: with which others connect; `*address_bytes` of
     *                them are used then
     * @return TN_E_IO: the system refuses it, such as a port that is taken · TN_E_ARG: no such place ·
     *         TN_E_STATE: not loopback and no secret, or it listens already
     */
    tn_status (*listen)(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                        tn_err *err);
    /**
     * TN_EVENT_UP or TN_EVENT_DOWN follows; `send` may be used before.
     *
     * @param address what the peer's `listen` gave, or the text "HOST:PORT" of one that listens there
     * @return TN_E_ARG: no such place · TN_E_STATE: not loopback and no secret, or links_max are there
     */
    tn_status (*connect)(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                         tn_err *err);
    /** TN_PENDING: no room, try again after TN_EVENT_CREDIT, which follows then, or TN_EVENT_DOWN. TN_E_PEER:
     * the link is gone; its TN_EVENT_DOWN is to come. TN_OK without TN_SEND_COPY: TN_EVENT_SENT follows,
     * exactly once, and before TN_EVENT_DOWN. TN_E_ARG: longer than message_max, or more pieces than
     * pieces_max. */
    tn_status (*send)(tn_link *link, const tn_send *message, tn_err *err);
    /**
     * Events, in their order; waits for the first one.
     *
     * @param events     `*count` of them, at least 1, whose struct_size the host has set, all the same
     *                   (tn_transport_event_at); how many came is `*count` then
     * @param timeout_ns 0: only what is there; UINT64_MAX: for ever
     * @return TN_OK, with no event: the time is over, or `wake` was called · TN_E_IO: the transport is of no
     *         use any more
     */
    tn_status (*poll)(tn_transport *t, tn_transport_event *events, uint32_t *count, uint64_t timeout_ns,
                      tn_err *err);
    /** [any] The poll that waits, or else the next one, returns at once. */
    void (*wake)(tn_transport *t);
    /** Gives back `held` of a TN_EVENT_RECV, also after its link is gone; NULL is fine. */
    void (*release)(tn_transport *t, void *held);
    /** TN_EVENT_DOWN follows. */
    void (*disconnect)(tn_link *link);
    /** Sends what waits for at most `timeout_ns`, then ends all. No event follows, and pieces and landings
     * are used no more. All that was received has been released before. */
    void (*close)(tn_transport *t, uint64_t timeout_ns);

    /* Optional from here. */
    /** Numbers for people and tests, as one JSON object; valid until the next call. */
    const char *(*statistics)(tn_transport *t);
    /** Memory that pieces and landings lie in; both or none. TN_E_STATE: something still uses it. */
    tn_status (*region_add)(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err);
    tn_status (*region_remove)(tn_transport *t, tn_region *region, tn_err *err);
    /** Where a put of this link's peer may land; `token` goes to it in a message. `slot` is what
     * TN_EVENT_RECV says of it. Ends with the link, or by `landing_remove`. All three or none
     * (TN_TRANSPORT_PUT). */
    tn_status (*landing)(tn_link *link, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                         uint64_t *token, tn_err *err);
    void (*landing_remove)(tn_link *link, uint64_t token);
    /** As `send`, but the payload goes straight to the peer's landing, which TN_EVENT_RECV names. Bytes
     * outside the landing are never written. */
    tn_status (*put)(tn_link *link, const tn_send *message, tn_err *err);
    /** For a host that waits for several transports: a descriptor that can be read from, as poll(2) says,
     * once something comes behind a `poll` with time 0 that gave no event, if nothing was called since;
     * `wake` is such a thing. It may be readable without a reason. A transport's own deadlines are kept if it
     * is polled ten times a second. -1: there is none. */
    int32_t (*descriptor)(tn_transport *t);
} tn_transport_ops;

#ifdef __cplusplus
}
#endif

#endif

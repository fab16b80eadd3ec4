/**
 * Sketch: a transport plugin. Hosts refuse this kind until the parameter store goes over plugins' transports;
 * the table may change before.
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

#define TN_HEADER_BYTES 64 /* of each message; the host's, opaque to the transport */

typedef struct tn_transport_info {
    uint32_t struct_size, flags; /* TN_TRANSPORT_… */
    uint64_t message_max;        /* bytes */
    uint64_t eager_max;          /* bytes that `send` may copy */
    uint32_t pieces_max, lanes_max;
} tn_transport_info;

#define TN_TRANSPORT_PUT 1u         /* `landing` and `put` write memory of the peer; else: `send` */
#define TN_TRANSPORT_REGIONS 2u     /* pieces must lie in regions */
#define TN_TRANSPORT_CHECKSUMMED 4u /* damaged bytes never arrive */
#define TN_TRANSPORT_ENCRYPTED 8u

/** A peer as the scheduler knows it; `blob` is what its `listen` gave. */
typedef struct tn_peer {
    uint32_t struct_size, blob_bytes;
    uint64_t nonce, id, incarnation;
    const void *blob;
} tn_peer;

/** A part of what is sent. */
typedef struct tn_piece {
    const void *data;
    uint64_t bytes;
    tn_region *region; /* NULL where TN_TRANSPORT_REGIONS does not ask for one */
} tn_piece;

#define TN_EVENT_UP 1u     /* the link works */
#define TN_EVENT_DOWN 2u   /* it is gone; every cookie came back before */
#define TN_EVENT_RECV 3u   /* a message, all of whose bytes are visible */
#define TN_EVENT_SENT 4u   /* the bytes of `cookie` may be used again; not that they arrived */
#define TN_EVENT_CREDIT 5u /* `send` may be tried again */
#define TN_EVENT_ERROR 6u

typedef struct tn_event_record {
    uint32_t struct_size, kind; /* TN_EVENT_… */
    tn_link *link;
    uint64_t cookie; /* SENT: that of the send or put */
    uint32_t lane;
    tn_status status; /* SENT, DOWN, ERROR */
    uint8_t header[TN_HEADER_BYTES];
    const void *data; /* RECV: until `release` */
    uint64_t bytes;
    uint64_t slot; /* RECV behind a put: the landing's */
} tn_event_record;

/** Moves bytes between peers; knows nothing of keys and rounds. Nothing in it blocks but `poll`. */
typedef struct tn_transport_ops {
    tn_capability head; /* kind TN_KIND_TRANSPORT, id: "zmq" */
    tn_status (*open)(void *plugin, tn_transport **out, tn_err *err);
    void (*info)(tn_transport *t, tn_transport_info *out);
    /** `blob`: at most 256 bytes, with which others connect. */
    tn_status (*listen)(tn_transport *t, void *blob, uint32_t *blob_bytes, tn_err *err);
    /** TN_EVENT_UP or TN_EVENT_DOWN follows. */
    tn_status (*connect)(tn_transport *t, const tn_peer *peer, uint32_t lanes, tn_link **out, tn_err *err);
    tn_status (*region_add)(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err);
    tn_status (*region_remove)(tn_transport *t, tn_region *region, tn_err *err);
    /** TN_PENDING: no room, try again after TN_EVENT_CREDIT. TN_OK: TN_EVENT_SENT follows, exactly once. */
    tn_status (*send)(tn_link *link, uint32_t lane, const void *header, const tn_piece *pieces,
                      uint32_t piece_count, int32_t priority, uint64_t cookie, tn_err *err);
    /** Where a put of the peer may land; `token` goes to it in a message. */
    tn_status (*landing)(tn_link *link, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                         uint64_t *token, tn_err *err);
    tn_status (*put)(tn_link *link, uint32_t lane, uint64_t token, uint64_t offset, const void *header,
                     const tn_piece *pieces, uint32_t piece_count, uint64_t cookie, tn_err *err);
    /** One thread for each lane; `count`: room, then events. `timeout_ns` 0: only what is there. */
    tn_status (*poll)(tn_transport *t, uint32_t lane, tn_event_record *const *events, uint32_t *count,
                      uint64_t timeout_ns, tn_err *err);
    int32_t (*wake_fd)(tn_transport *t, uint32_t lane); /* -1: there is none */
    void (*release)(tn_transport *t, const tn_event_record *received);
    void (*disconnect)(tn_link *link);
    /** Every cookie comes back, TN_OK or TN_E_CANCELLED, before TN_EVENT_DOWN and before it returns. */
    void (*close)(tn_transport *t, uint64_t timeout_ns);
} tn_transport_ops;

#ifdef __cplusplus
}
#endif

#endif

/*
 * What the files of kv-rdma share. A peer writes into the rings of `area` and nowhere else: what comes from
 * there, from a note or from a packet is copied first, and checked before it is used.
 */
#ifndef TNRDMA_H
#define TNRDMA_H

#include <infiniband/verbs.h>

#include "../common/ring.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packets, notes and heads are little endian");

#define TNRDMA_MAGIC 0x31646d72u /* "rmd1" */
#define TNRDMA_VERSION 1u
#define TNRDMA_URGENT_BYTES ((uint64_t)64 << 10) /* the ring of urgent messages */
#define TNRDMA_RING_MIN ((uint64_t)64 << 10)     /* the other ring, by option ring_bytes */
#define TNRDMA_RING_MAX ((uint64_t)256 << 20)
#define TNRDMA_LANES_MAX 8u
#define TNRDMA_PAIRS_MAX (1 + TNRDMA_LANES_MAX) /* queue pairs of a link; the first one: urgent, and notes */
#define TNRDMA_DEPTH 64u                        /* fragments of a class that the peer has not told it has */
#define TNRDMA_NOTES                                                                                         \
    (2 * TNRDMA_DEPTH + 8) /* of a peer at a time: no more than fragments, of which they tell */
#define TNRDMA_NOTE_BYTES 64u
#define TNRDMA_PUT_MAX ((uint64_t)1 << 30) /* bytes of one work request */
#define TNRDMA_PUTS_MAX TNRDMA_DEPTH       /* under way on a link */
#define TNRDMA_BYE_NS 1000000000u          /* for what is under way on a link that `disconnect` ends */
#define TNRDMA_SGES_MAX 4u                 /* of a work request: a head, and pieces in regions */

/* ---- verbs.c: the functions of libibverbs, which a test replaces --------------------------------------- */

typedef struct tnrdma_verbs {
    struct ibv_device **(*device_list)(int *count);
    void (*device_list_free)(struct ibv_device **list);
    const char *(*device_name)(struct ibv_device *device);
    struct ibv_context *(*device_open)(struct ibv_device *device);
    int (*device_close)(struct ibv_context *context);
    int (*device_query)(struct ibv_context *context, struct ibv_device_attr *out);
    int (*port_query)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out);
    ssize_t (*gid_table)(struct ibv_context *context, struct ibv_gid_entry *out, size_t room);
    struct ibv_pd *(*pd_alloc)(struct ibv_context *context);
    int (*pd_free)(struct ibv_pd *pd);
    struct ibv_mr *(*mr_reg)(struct ibv_pd *pd, void *data, size_t bytes, uint64_t iova, int access);
    int (*mr_dereg)(struct ibv_mr *mr);
    struct ibv_comp_channel *(*channel_create)(struct ibv_context *context);
    int (*channel_destroy)(struct ibv_comp_channel *channel);
    struct ibv_cq *(*cq_create)(struct ibv_context *context, int room, void *of,
                                struct ibv_comp_channel *channel);
    int (*cq_destroy)(struct ibv_cq *cq);
    int (*cq_arm)(struct ibv_cq *cq);
    int (*cq_poll)(struct ibv_cq *cq, int room, struct ibv_wc *out);
    int (*cq_event)(struct ibv_comp_channel *channel, void **of); /* taken and acknowledged; -1: none */
    int (*async_event)(struct ibv_context *context, int *kind,
                       void **of); /* `of`: of its queue pair, or NULL */
    struct ibv_qp *(*qp_create)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
    int (*qp_modify)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
    int (*qp_destroy)(struct ibv_qp *qp);
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr);
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr);
} tnrdma_verbs;

extern const tnrdma_verbs tnrdma_libibverbs;

/* ---- options ------------------------------------------------------------------------------------------ */

typedef struct tnrdma_plugin {
    const tnrdma_verbs *verbs;
    const tn_host *host;
    char device[64]; /* "auto", "mlx5_0" or "mlx5_0:1" */
    int32_t gid;     /* -1: the best one */
    uint32_t mtu;    /* bytes; 0: the port's */
    int64_t timeout, retry, traffic_class, handshake_ms, stall_ms, ring_bytes, spin_us;
} tnrdma_plugin;

/* ---- device.c ----------------------------------------------------------------------------------------- */

/* The device, port and GID of a transport. */
typedef struct tnrdma_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    char name[80]; /* "rxe0 port 1" */
    uint8_t port, gid_index;
    bool ethernet;
    uint16_t lid;
    enum ibv_mtu mtu;
    union ibv_gid gid;
    uint32_t inline_bytes;
} tnrdma_device;

tn_status tnrdma_device_open(const tnrdma_plugin *p, tnrdma_device *d, tn_err *err);
void tnrdma_device_close(const tnrdma_plugin *p, tnrdma_device *d);
uint32_t tnrdma_mtu_bytes(enum ibv_mtu mtu);
void tnrdma_gid_print(const union ibv_gid *gid, char out[48]); /* an address of IPv4 or IPv6 */
bool tnrdma_gid_is_ipv4(const union ibv_gid *gid);
/* ibv_reg_mr failed: what it is about, and what to do. */
tn_status tnrdma_fail_memory(tn_err *err, uint64_t bytes, int number);

/* ---- on the socket, until the link is up -------------------------------------------------------------- */

enum { TNRDMA_HELLO = 1, TNRDMA_WELCOME, TNRDMA_OFFER, TNRDMA_READY, TNRDMA_GO, TNRDMA_BYE, TNRDMA_REFUSE };

/* What the other side has to know of a link's queue pairs and memory. */
typedef struct tnrdma_endpoint {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t mtu, ethernet;
    uint32_t lanes, packet_number;
    uint32_t pair[TNRDMA_PAIRS_MAX];
    uint32_t rkey;
    uint64_t ring_at; /* of urgent messages; the other one follows */
    uint64_t ring_bytes;
} tnrdma_endpoint;

typedef struct tnrdma_packet {
    uint32_t magic, version, kind, reserved;
    uint8_t nonce[PROOF_BYTES];
    union {
        tnrdma_endpoint endpoint;
        uint32_t posted[RING_CLASSES]; /* BYE: fragments in all */
        char text[120];                /* REFUSE */
    } of;
    uint8_t proof[PROOF_BYTES]; /* over all before it, and what was said before */
} tnrdma_packet;

/* What is sent on the first queue pair: what was read of the peer's messages. */
typedef struct tnrdma_note {
    uint32_t magic, reserved;
    uint64_t read[RING_CLASSES];  /* bytes */
    uint32_t count[RING_CLASSES]; /* fragments */
} tnrdma_note;
_Static_assert(sizeof(tnrdma_note) <= TNRDMA_NOTE_BYTES, "a note fits its buffer");

/* ---- ours --------------------------------------------------------------------------------------------- */

/* What goes before each payload in a ring. */
typedef struct tnrdma_head {
    uint32_t magic, put; /* put: 1: the payload is in a landing */
    uint64_t bytes;      /* of the payload */
    uint64_t token;      /* of a put; else 0 */
    uint8_t header[TN_HEADER_BYTES];
} tnrdma_head;
#define TNRDMA_HEAD_BYTES ((uint64_t)sizeof(tnrdma_head))

typedef struct tnrdma_incoming {
    ring_incoming base;
    uint64_t slot;
    uint64_t put; /* bytes in the landing of `slot`; UINT64_MAX: it is no put */
    _Alignas(16) uint8_t data[];
} tnrdma_incoming;

typedef struct tnrdma_outgoing {
    ring_outgoing base;
    uint64_t offset; /* of a put */
    tnrdma_head head;
} tnrdma_outgoing;

/* A piece of a ring that one work request writes. */
typedef struct tnrdma_fragment {
    uint64_t end;
    bool done;
} tnrdma_fragment;

/* One direction of one class, where it is sent: `data` is what the peer's ring will hold. Indices count bytes
 * and never go back: read <= posted <= own, and own - read <= size. */
typedef struct tnrdma_out {
    uint8_t *data;
    uint64_t size, remote;
    uint64_t own, posted, done, read; /* copied in; in work requests; written; the peer has read */
    uint32_t posts, posts_done, posts_read;
    tnrdma_fragment fragment[TNRDMA_DEPTH];
    ring_queue queue;
} tnrdma_out;

/* And where it comes. */
typedef struct tnrdma_in {
    const uint8_t *data;
    uint64_t size;
    uint64_t own, filled;          /* read; written */
    uint32_t next, told_count;     /* the fragment that is awaited; of those before, the peer knows */
    uint64_t told;                 /* bytes that the peer knows we have read */
    uint32_t length[TNRDMA_DEPTH]; /* of fragments that came, by number; 0: it has not */
    tnrdma_head head;              /* of the message that comes */
    uint64_t got;                  /* bytes of the head, then of the payload behind it */
    tnrdma_incoming *in;
    ring_wait wait;
} tnrdma_in;

/* Memory that the host has registered, as often as it has added it. */
struct tn_region {
    tn_region *next;
    uint8_t *data;
    uint64_t bytes;
    struct ibv_mr *mr;
    uint32_t added, uses; /* uses: puts under way and landings */
};

/* Memory that a link's peer may write, and that alone. The token is the key, a random part, and where the
 * memory begins within its page: addresses that the device knows of it begin there. */
typedef struct tnrdma_landing {
    struct tnrdma_landing *next;
    uint64_t token, slot, bytes;
    struct ibv_mr *mr;
    tn_region *region;
} tnrdma_landing;

/* A put whose payload is being written. */
typedef struct tnrdma_put {
    tnrdma_outgoing *o; /* NULL: this place is free */
    struct ibv_mr *mr;  /* for this put alone; NULL: all pieces are in regions */
    void *copy;
} tnrdma_put;

/* Queue pairs, their completions, and the memory of a link. */
typedef struct tnrdma_wire {
    struct ibv_cq *cq;
    struct ibv_qp *pair[TNRDMA_PAIRS_MAX];
    uint32_t lanes, next_lane;
    struct ibv_mr *in_mr, *out_mr;
    uint8_t *area; /* rings that are written, notes, rings that are read */
    uint64_t area_bytes, in_at;
    uint32_t note, notes;         /* that is sent next; under way */
    uint32_t packet_number, rkey; /* rkey: the peer's */
    tnrdma_put put[TNRDMA_PUTS_MAX];
} tnrdma_wire;

struct tn_link {
    RING_LINK(tnrdma_out, tnrdma_in);
    bool bye, flushed;      /* bye: the peer said so; flushed: a work request has failed */
    tnrdma_endpoint end[2]; /* 0: the caller's */
    tnrdma_packet packet;   /* that comes */
    uint32_t packet_bytes;
    uint64_t ring_bytes; /* of the rings for other messages, both directions */
    tnrdma_wire wire;
    tnrdma_landing *landings;
    uint32_t last[RING_CLASSES]; /* fragments that the peer says it has posted in all; with `bye` */
    char peer[56];               /* its address */
};

struct tn_transport {
    RING_TRANSPORT(tnrdma_plugin);
    const tnrdma_verbs *verbs;
    tnrdma_device device;
    uint64_t ring_bytes, spin_ns;
    tn_region *regions;
    uint64_t requests, notes;
};

/* ---- proof.c ------------------------------------------------------------------------------------------ */

/* What a peer with the key alone can say of a packet, after what was said before. */
void tnrdma_proof(const tn_link *l, const tnrdma_packet *p, uint8_t out[PROOF_BYTES]);

/* ---- door.c: places, listening, calling ---------------------------------------------------------------- */

tn_status tnrdma_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                        tn_err *err);
tn_status tnrdma_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                         tn_err *err);
void tnrdma_accept(tn_transport *t);

/* ---- greet.c: the handshake ---------------------------------------------------------------------------- */

void tnrdma_greet(tn_link *l, uint32_t events); /* the socket has something of the handshake, or of the end */
void tnrdma_bye(tn_link *l);

/* ---- wire.c: queue pairs, work requests, completions --------------------------------------------------- */

/* Queue pairs and memory of a link; `lanes` of them. */
tn_status tnrdma_wire_create(tn_link *l, uint32_t lanes, tn_err *err);
void tnrdma_wire_endpoint(const tn_link *l, tnrdma_endpoint *out);
/* The text says what is wrong with the peer's. NULL: nothing */
const char *tnrdma_endpoint_wrong(const tn_link *l, const tnrdma_endpoint *peer);
tn_status tnrdma_wire_connect(tn_link *l, const tnrdma_endpoint *peer, tn_err *err);
void tnrdma_wire_destroy(tn_link *l);
uint64_t tnrdma_out_room(const tnrdma_out *o);
void tnrdma_out_copy(tnrdma_out *o, const void *data, uint64_t bytes);
/* Work requests for what was copied in. */
void tnrdma_wire_post(tn_link *l);
/* Completions that are there; whether there were any. */
bool tnrdma_wire_poll(tn_link *l);
/* Posts a WRITE of a put's payload on the queue pair that the next fragment takes. */
bool tnrdma_wire_write(tn_link *l, struct ibv_sge *pieces, int count, uint64_t at, uint32_t rkey,
                       uint32_t number);
void tnrdma_note_send(tn_link *l);        /* if there is something to tell */
bool tnrdma_wire_quiet(const tn_link *l); /* all that was copied in was written */

/* ---- region.c: memory of the host, landings, puts ------------------------------------------------------ */

tn_status tnrdma_region_add(tn_transport *t, void *data, uint64_t bytes, tn_region **out, tn_err *err);
tn_status tnrdma_region_remove(tn_transport *t, tn_region *region, tn_err *err);
void tnrdma_regions_free(tn_transport *t);
tn_status tnrdma_landing_add(tn_link *l, uint64_t slot, void *data, uint64_t bytes, tn_region *region,
                             uint64_t *token, tn_err *err);
void tnrdma_landing_remove(tn_link *l, uint64_t token);
void tnrdma_landings_free(tn_link *l);
const tnrdma_landing *tnrdma_landing_find(const tn_link *l, uint64_t token);
tn_status tnrdma_put_message(tn_link *l, const tn_send *message, tn_err *err);
/* A work request for the payload of a put, on the queue pair of the next fragment. False: there is no room
 * now, or the link has ended. */
bool tnrdma_put_begin(tn_link *l, tnrdma_outgoing *o);
void tnrdma_put_done(tn_link *l, uint32_t number);
void tnrdma_puts_cancel(tn_link *l); /* their queue pairs are gone */

/* ---- link.c ------------------------------------------------------------------------------------------- */

extern const ring_ops tnrdma_links;
/* Its peer has gone: it ends once all is read. */
void tnrdma_link_hangup(tn_link *l, const char *text);
void tnrdma_link_leave(tn_link *l); /* by `disconnect` */
void tnrdma_link_write(tn_link *l);
tn_status tnrdma_send(tn_link *l, const tn_send *message, tn_err *err);
/* `put`: to message->token, behind `offset`. */
tn_status tnrdma_message_queue(tn_link *l, const tn_send *message, bool put, tn_err *err);

/* ---- receive.c ---------------------------------------------------------------------------------------- */

void tnrdma_link_read(tn_link *l);
void tnrdma_payload_resume(tn_link *l, uint32_t class); /* there is room for it */
void tnrdma_received(ring_incoming *in, tn_transport_event *to);

/* ---- poll.c ------------------------------------------------------------------------------------------- */

bool tnrdma_serve(tn_link *l);
bool tnrdma_sleep(tn_transport *t, uint64_t wait_ns);
void tnrdma_socket(tn_transport *t, void *of, uint32_t events);

#endif

/*
 * What the files of kv-shm share. Memory that a peer writes is read once, by tnshm_pipe_… and `area_token`
 * alone; all they give is a copy or a number that was checked.
 */
#ifndef TNSHM_H
#define TNSHM_H

#include "../common/ring.h"

#define TNSHM_MAGIC 0x326d6873u                 /* "shm2" */
#define TNSHM_URGENT_BYTES ((uint64_t)64 << 10) /* the ring of urgent messages */
#define TNSHM_RING_MIN ((uint64_t)64 << 10)     /* the other ring, by option ring_bytes */
#define TNSHM_RING_MAX ((uint64_t)64 << 20)
#define TNSHM_STEP ((uint64_t)64 << 10)      /* bytes that are copied before the other side is told */
#define TNSHM_PLACE_MIN ((uint64_t)64 << 10) /* longer payloads may stay in the ring */

typedef struct tnshm_plugin {
    int64_t handshake_ms, stall_ms, ring_bytes;
} tnshm_plugin;

/* ---- in shared memory: indices count bytes and never go back ------------------------------------------ */

typedef struct tnshm_ring {
    _Alignas(64) _Atomic uint64_t tail; /* bytes that were written */
    _Atomic uint32_t hungry;            /* the writer waits for room */
    _Alignas(64) _Atomic uint64_t head; /* bytes that were read */
} tnshm_ring;

typedef struct tnshm_side {
    _Alignas(64) _Atomic uint32_t asleep; /* waits for a byte on the socket */
    _Atomic uint32_t bye;                 /* ends the link on purpose */
} tnshm_side;

/* The begin of the file; the rings' bytes follow at TNSHM_AREA_BYTES, in the order of `ring`. A bulk ring is
 * mapped twice, one behind the other: no message ends at its end. */
typedef struct tnshm_area {
    uint8_t token[PROOF_BYTES];
    tnshm_side side[2];               /* 0: the one that connected */
    tnshm_ring ring[2][RING_CLASSES]; /* by the side that writes */
} tnshm_area;
#define TNSHM_AREA_BYTES 65536u /* of whole pages, everywhere */
_Static_assert(sizeof(tnshm_area) <= TNSHM_AREA_BYTES, "it fits its page");

/* ---- on the socket, until the link is up -------------------------------------------------------------- */

#define TNSHM_NAME "tenon-kv-shm-%u" /* of the abstract socket of a port */

enum { TNSHM_HELLO = 1, TNSHM_WELCOME, TNSHM_OFFER, TNSHM_READY };

/* Each message of the handshake. */
typedef struct tnshm_packet {
    uint32_t magic, kind;
    uint64_t ring_bytes;
    uint8_t nonce[PROOF_BYTES], token[PROOF_BYTES], proof[PROOF_BYTES];
} tnshm_packet;

/* ---- ours --------------------------------------------------------------------------------------------- */

/* A link's memory as it is mapped; payloads in it may be held for longer than the link lives. */
typedef struct tnshm_map {
    void *at;
    uint64_t bytes;
    uint32_t uses;
} tnshm_map;

/* One side of a ring. */
typedef struct tnshm_pipe {
    tnshm_ring *ring;
    uint8_t *data;
    uint64_t size; /* a power of two */
    uint64_t own;  /* our index: tail of a ring that is written, head of one that is read */
    uint64_t seen; /* the peer's, once checked */
} tnshm_pipe;

/* What goes before each payload in a ring; zeros up to a multiple of TNSHM_ALIGN bytes follow it. */
typedef struct tnshm_head {
    uint32_t magic, reserved;
    uint64_t bytes; /* of the payload */
    uint8_t header[TN_HEADER_BYTES];
} tnshm_head;
#define TNSHM_HEAD_BYTES ((uint64_t)sizeof(tnshm_head))
#define TNSHM_ALIGN ((uint64_t)16)
static inline uint64_t tnshm_padded(uint64_t bytes)
{
    return (bytes + TNSHM_ALIGN - 1) & ~(TNSHM_ALIGN - 1);
}
_Static_assert(sizeof(tnshm_head) % TNSHM_ALIGN == 0, "payloads are aligned");

typedef struct tnshm_incoming {
    ring_incoming base;
    const uint8_t *payload;       /* `data`, or in the ring */
    tnshm_map *map;               /* of the ring; NULL: it is copied, to `data` */
    struct tnshm_in *of;          /* whose `places` it stands in; NULL: the link is gone */
    struct tnshm_incoming *later; /* the next one of `places` */
    uint64_t begin;               /* its index in the ring */
    bool released;                /* but an earlier one is not */
    _Alignas(16) uint8_t data[];
} tnshm_incoming;

typedef struct tnshm_outgoing {
    ring_outgoing base;
    tnshm_head head;
} tnshm_outgoing;

/* One direction of one kind of messages. */
typedef struct tnshm_out {
    tnshm_pipe pipe;
    ring_queue queue;
} tnshm_out;

typedef struct tnshm_in {
    tnshm_pipe pipe;
    tnshm_head head; /* of the message that comes */
    uint64_t got;    /* bytes of the head, then of the payload behind it */
    tnshm_incoming *in;
    ring_wait wait;
    uint64_t came;                         /* bytes of a payload that stays in the ring, so far */
    tnshm_incoming *places, **places_last; /* payloads in the ring, in order; the last may still come */
} tnshm_in;

struct tn_link {
    RING_LINK(tnshm_out, tnshm_in);
    bool armed;     /* `asleep` is set */
    uint32_t bells; /* bytes that the peer may still send on the socket */
    uint8_t token[PROOF_BYTES];
    tnshm_area *area;
    tnshm_map *map;
    uint64_t area_bytes; /* of the file */
};

struct tn_transport {
    RING_TRANSPORT(tnshm_plugin);
    int port; /* a socket of TCP that holds the number */
};

/* ---- memory.c ----------------------------------------------------------------------------------------- */

/* A sealed file for a link, and its mapping. */
tn_status tnshm_area_create(tn_link *l, uint64_t ring_bytes, int *fd, tn_err *err);
/* Takes the peer's; the text says what is wrong with it, NULL: nothing. */
const char *tnshm_area_take(tn_link *l, int fd, uint64_t ring_bytes);
void tnshm_area_drop(tn_link *l);
void tnshm_map_drop(tnshm_map *m); /* one use of it */
/* Bytes that can be written, or read; UINT64_MAX: the peer's index is impossible. */
uint64_t tnshm_pipe_room(tnshm_pipe *p);
uint64_t tnshm_pipe_filled(tnshm_pipe *p);
void tnshm_pipe_write(tnshm_pipe *p, const void *data, uint64_t bytes);
void tnshm_pipe_read(tnshm_pipe *p, void *data, uint64_t bytes);

/* ---- proof.c ------------------------------------------------------------------------------------------ */

/* What a peer with the key alone can say of this handshake; `step` tells the answers apart. */
void tnshm_proof(const tn_link *l, char step, uint8_t out[PROOF_BYTES]);
/* Machine, boot and network namespace as 16 digits: within them abstract sockets are found. */
void tnshm_host_name(char out[17]);

/* ---- link.c ------------------------------------------------------------------------------------------- */

extern const ring_ops tnshm_links;
void tnshm_link_ring(tn_link *l); /* wakes the peer if it sleeps */
void tnshm_link_write(tn_link *l);
tn_status tnshm_send(tn_link *l, const tn_send *message, tn_err *err);

/* ---- receive.c ---------------------------------------------------------------------------------------- */

void tnshm_link_read(tn_link *l);
void tnshm_payload_resume(tn_link *l, uint32_t class); /* there is room for it */
bool tnshm_in_ready(tnshm_in *in);     /* enough has come to go on, or the peer's index is impossible */
void tnshm_places_leave(tnshm_in *in); /* the link ends */
void tnshm_incoming_free(tn_transport *t, ring_incoming *in);
void tnshm_received(ring_incoming *in, tn_transport_event *to);

/* ---- door.c ------------------------------------------------------------------------------------------- */

tn_status tnshm_listen(tn_transport *t, const char *where, void *address, uint32_t *address_bytes,
                       tn_err *err);
tn_status tnshm_connect(tn_transport *t, const void *address, uint32_t address_bytes, tn_link **out,
                        tn_err *err);
void tnshm_accept(tn_transport *t);
void tnshm_greet(tn_link *l); /* the socket has something of the handshake */

/* ---- poll.c ------------------------------------------------------------------------------------------- */

bool tnshm_sleep(tn_transport *t, uint64_t wait_ns);
void tnshm_socket(tn_transport *t, void *of, uint32_t events);

#endif

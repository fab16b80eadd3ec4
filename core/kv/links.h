/* Links of a post, and what goes over them (links.c), for its loop (post.c). */
#ifndef TN_KV_LINKS_H
#define TN_KV_LINKS_H

#include "kv/post.h"

#define TNI_KV_BUCKETS 256u
#define TNI_KV_PARCELS_MAX 4096u                     /* of one link, that wait for credit */
#define TNI_KV_PARCEL_BYTES_MAX ((uint64_t)64 << 20) /* of copies among them, of a process */

typedef struct tni_kv_parcel { /* a message that waits for credit */
    struct tni_kv_parcel *next;
    uint8_t header[TNI_KV_HEADER_BYTES];
    const void *payload;
    uint64_t bytes, copied; /* copied: of its own */
    uint32_t priority, flags;
    tni_kv_hold *hold; /* NULL: the payload stands behind it */
} tni_kv_parcel;

typedef struct tni_kv_link {
    struct tni_kv_link *next; /* of its bucket */
    tn_link *link;
    tni_kv_parcel *parcels; /* highest first */
    uint32_t parcel_count;
    uint64_t birth;                  /* of the process that said HELLO on it */
    uint64_t up_ns, heard_ns;        /* when it was made; when a valid message came last */
    uint16_t node;                   /* whose messages came last, or which was dialed */
    bool dialed, up, known, closing; /* known: a valid message came; closing: its end is to come */
} tni_kv_link;

typedef struct tni_kv_flight { /* a payload in the transport's hands; its address is the cookie */
    struct tni_kv_flight *next, *previous;
    tni_kv_hold *hold;
    tni_kv_link *link;
    uint8_t header[TNI_KV_HEADER_BYTES];
} tni_kv_flight;

typedef struct tni_kv_dial { /* a node, and the way to it */
    tni_kv_link *link;       /* NULL: none */
    uint64_t at_ns, wait_ns; /* when it is dialed again; the next pause */
    uint32_t incarnation;    /* that was dialed */
} tni_kv_dial;

typedef struct tni_kv_copy { /* a value that several workers get */
    tni_kv_hold hold;        /* first */
    tni_keep *keep;
    _Alignas(16) uint8_t bytes[];
} tni_kv_copy;

struct tni_kv_post {
    tni_kv_setup *setup;
    const tni_kv_role *role;
    const tn_transport_ops *ops;
    tn_transport *transport;
    tn_transport_info info;
    uint32_t own; /* role */
    tni_kv_link *buckets[TNI_KV_BUCKETS], *receiving;
    tni_kv_dial *nodes;                   /* scheduler, servers, workers */
    uint32_t node_count, view, strangers; /* view: that links were made for; strangers: links not known */
    tni_kv_flight *flights, *spare;
    void *held; /* of the message that is being received; NULL: the machine keeps it */
    uint64_t kept_bytes, kept_max;
    uint64_t waiting_bytes, now, random, turn; /* turn: calls of the machine */
    uint64_t links_lost;
    tni_keep *keep;
    tni_kv_copy *copy; /* the last one, of this turn */
    uint64_t copy_turn, copy_key, copy_bytes;
    uint32_t copy_round;
    const void *copy_of;
    uint8_t address[TN_TRANSPORT_ADDRESS_MAX];
    uint32_t address_bytes;
    char why[160];
};

tni_kv_dial *tni_kv_post_node(tni_kv_post *p, uint16_t node); /* NULL: the job has none */
bool tni_kv_post_dials(const tni_kv_post *p, uint16_t node);
void tni_kv_post_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority);
tni_kv_link *tni_kv_link_add(tni_kv_post *p, tn_link *link); /* NULL: no memory */
tni_kv_link *tni_kv_link_find(const tni_kv_post *p, const tn_link *link);
void tni_kv_link_close(tni_kv_post *p, tni_kv_link *l); /* nothing is sent on it any more; `gone` follows */
void tni_kv_link_gone(tni_kv_post *p, tni_kv_link *l);  /* frees it */
void tni_kv_link_drain(tni_kv_post *p, tni_kv_link *l);
void tni_kv_link_sent(tni_kv_post *p, uint64_t cookie);

#endif

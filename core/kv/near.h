/*
 * Several transports as one (near.c): `far` reaches every host, the others are better where they reach a
 * peer: the first that both sides have and that comes up is used, link by link; post.c sees a transport.
 */
#ifndef TN_KV_NEAR_H
#define TN_KV_NEAR_H

#include "base/base.h"
#include "tenon/plugin/transport.h"

/* In this order they are tried, the far one last: `shm` reaches the processes of one host. */
enum { TNI_KV_FAR, TNI_KV_NEAR, TNI_KV_RDMA, TNI_KV_CARRIERS };
extern const char tni_kv_carrier_id[TNI_KV_CARRIERS][8];

typedef struct tni_kv_carriers {
    const tn_transport_ops *ops[TNI_KV_CARRIERS]; /* NULL: without it */
    void *plugin[TNI_KV_CARRIERS];
    const tni_log *log; /* NULL: warnings are not wanted */
} tni_kv_carriers;

/* How much of a listener's address its far transport has said: what a process without the others dials. */
uint32_t tni_kv_far_bytes(const void *address, uint32_t bytes);
/* Its `open` takes carriers for the plugin, which may go after the call. */
extern const tn_transport_ops tni_kv_near_ops;

#endif

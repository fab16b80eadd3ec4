/*
 * Two transports as one (near.c): `far` reaches every host, `near` the processes of this one. Peers that have
 * both use the near one, link by link; post.c sees a transport.
 */
#ifndef TN_KV_NEAR_H
#define TN_KV_NEAR_H

#include "base/base.h"
#include "tenon/plugin/transport.h"

enum { TNI_KV_FAR, TNI_KV_NEAR, TNI_KV_CARRIERS };

typedef struct tni_kv_carriers {
    const tn_transport_ops *ops[TNI_KV_CARRIERS];
    void *plugin[TNI_KV_CARRIERS];
} tni_kv_carriers;

#define TNI_KV_NEAR_ID "shm" /* the near transport */

/* How much of a listener's address its far transport has said: what a process without the near one dials. */
uint32_t tni_kv_far_bytes(const void *address, uint32_t bytes);
/* Whether both can be waited for at once. */
bool tni_kv_near_fits(const tni_kv_carriers *c);
/* Its `open` takes carriers for the plugin, which may go after the call. */
extern const tn_transport_ops tni_kv_near_ops;

#endif

/*
 * A network card in memory: the table of verbs that a test gives kv-rdma. Queue pairs of one process
 * reach each other, memory is written within the bounds of its registration alone, and faults come when
 * they are asked for.
 */
#ifndef TN_TEST_KV_RDMA_CARD_H
#define TN_TEST_KV_RDMA_CARD_H

#include "../../plugins/kv-rdma/kv_rdma.h"

/* What the card is, and what goes wrong with it; all 0: one good device, "card0". */
typedef struct card_state {
    bool absent, closed; /* no device; it cannot be opened */
    int port_state;      /* IBV_PORT_…; 0: active */
    bool no_gids, infiniband;
    int ipv6;                 /* all GIDs are of IPv6 */
    int mtu;                  /* IBV_MTU_…; 0: 1024 */
    int mr_fails;             /* the n-th registration from now fails with ENOMEM */
    int connect_fails;        /* errno of RTR */
    bool no_inline;           /* queue pairs that want it are refused */
    int status_of, status_in; /* the n-th request from now ends with this status, 1: the next */
    bool silent;              /* peers do not acknowledge: requests wait for card_give_up */
    uint64_t requests, writes, sends, recvs; /* that were posted */
} card_state;

extern card_state card;
extern const tnrdma_verbs card_verbs;

/* Requests that wait end as they do once retries are over. */
void card_give_up(void);
/* Contexts, protection domains, channels, queues, queue pairs and registrations that are there. */
uint32_t card_left(void);
/* As any machine of the network could: a write into memory by its key. Its status. */
int card_write(uint32_t rkey, uint64_t at, const void *data, uint64_t bytes);

#endif

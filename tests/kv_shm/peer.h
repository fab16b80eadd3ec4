/* A peer of kv-shm that a test makes by hand, out of the plugin's own parts: honest up to where it is not. */
#ifndef TN_TEST_KV_SHM_PEER_H
#define TN_TEST_KV_SHM_PEER_H

#include "support/wire.h"

#include "../../plugins/kv-shm/kv_shm.h"

typedef struct peer {
    tn_transport t; /* without a secret; nothing but its key is used */
    tn_link l;      /* the calling side of a link: its socket, and its rings once they are offered */
} peer;

uint16_t peer_port(const char *address);
void peer_call(peer *p, uint16_t port);
void peer_say(peer *p, tnshm_packet *what, int file); /* file: -1: none */
/* HELLO, and the answer to it, while `n` polls. */
void peer_hello(peer *p, wire_node *n);
/* A file as it is right, with the token; a file descriptor. */
int peer_file(peer *p, uint64_t ring_bytes);
/* OFFER with this file, as it is right; then READY, while `n` polls. False: it hangs up. */
bool peer_offer(peer *p, wire_node *n, int file, uint64_t ring_bytes);
/* All of it. */
void peer_join(peer *p, wire_node *n);
bool peer_hung_up(peer *p); /* the socket has ended */
void peer_close(peer *p);

#endif

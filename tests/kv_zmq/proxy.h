/* A path between a peer and a port of this machine that keeps what goes through it, and can fall silent. */
#ifndef TN_TEST_KV_ZMQ_PROXY_H
#define TN_TEST_KV_ZMQ_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct proxy proxy;

/* Listens at 127.0.0.2 on `port`, and passes on to 127.0.0.1. */
proxy *proxy_open(uint16_t port);
/* From now on nothing passes, and nothing is closed: as a machine that lost its power. */
void proxy_silence(proxy *p);
/* What the dialling side has sent on the first connection, and both on all, one piece behind the other. */
size_t proxy_first(proxy *p, const unsigned char **bytes);
size_t proxy_all(proxy *p, const unsigned char **bytes);
void proxy_close(proxy *p);

/* A plain connection to 127.0.0.1; -1 */
int plain_connect(uint16_t port);

#endif

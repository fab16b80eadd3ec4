/* A transport plugin as the host sees it: its table, opened with options of a test's own, and what came. */
#ifndef TN_TEST_WIRE_H
#define TN_TEST_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/plugin/transport.h"

#define WIRE_LINKS_MAX 2048
#define WIRE_KINDS 6 /* TN_EVENT_… */

/* What a link has told so far. */
typedef struct wire_link {
    tn_link *link;
    uint64_t seen[WIRE_KINDS]; /* events by kind */
    tn_status down;            /* and its text */
    char text[200];
} wire_link;

/* One open transport. Messages that come are checked (wire_send) and released, unless `hold`. */
typedef struct wire_node {
    tn_transport *t;
    wire_link links[WIRE_LINKS_MAX];
    uint32_t links_count;
    uint64_t seen[WIRE_KINDS];
    uint64_t bytes;   /* of payloads that came */
    uint64_t next[2]; /* the numbers of messages that come next, and of urgent ones */
    uint64_t cookies; /* sum of those that came back */
    bool hold;        /* messages stay, in `held` */
    void *held[4096];
    uint32_t held_count;
    uint64_t held_bytes;
    void (*received)(struct wire_node *n, const tn_transport_event *e); /* instead of the check; NULL */
} wire_node;

/* Loads the plugin `name`; false: it was not built, which is said. `options`: "handshake=500 dead=500". */
bool wire_load(const char *name, const char *options);
extern const tn_transport_ops *wire;
void *wire_plugin(void);                                  /* its state */
void wire_use(const tn_transport_ops *ops, void *plugin); /* instead of a plugin's */

extern uint32_t wire_flags; /* TN_OPEN_… of wire_open */
/* With a secret of 32 such bytes, or 0: none. */
wire_node *wire_open(uint8_t secret);
wire_node *wire_open_with(const tn_transport_config *config);
void wire_close(wire_node *n, uint64_t timeout_ns);
/* `address`: where it listens now. */
void wire_listen(wire_node *n, const char *where, char address[TN_TRANSPORT_ADDRESS_MAX + 1]);
tn_link *wire_connect(wire_node *n, const char *address);
wire_link *wire_of(wire_node *n, const tn_link *link); /* what it has told */

/* Message `number` of `bytes`, which wire_poll checks. With `memory` of as many bytes that stay, or NULL:
 * copied. */
tn_status wire_send(tn_link *link, uint64_t number, uint64_t bytes, unsigned char *memory, uint32_t flags);
/* Handles what is there, waiting up to a millisecond for it; how many events came. */
uint32_t wire_poll(wire_node *n);
void wire_release(wire_node *n, uint32_t count); /* of the held ones, the first */

/* Polls both until the expression holds; after minutes the test fails. `b` may be NULL. */
#define WIRE_UNTIL(a, b, EXPRESSION)                                                                         \
    do {                                                                                                     \
        const uint64_t wire_begin = wire_now_ns();                                                           \
        while (!(EXPRESSION)) {                                                                              \
            wire_node *const wire_other = (b);                                                               \
            (void)wire_poll(a);                                                                              \
            if (wire_other)                                                                                  \
                (void)wire_poll(wire_other);                                                                 \
            if (wire_now_ns() - wire_begin > 240000000000u)                                                  \
                fail_msg("still not: %s", #EXPRESSION);                                                      \
        }                                                                                                    \
    } while (0)
uint64_t wire_now_ns(void);
/* Entries of a folder, but for those that other tests make in /dev/shm meanwhile: folders, segments of Open
 * MPI, those of the double of NCCL. */
uint32_t wire_entries(const char *folder);

/* A number of the transport's statistics. */
uint64_t wire_statistic(wire_node *n, const char *name);
/* Both listen and connect; a link on each, up. */
void wire_pair(wire_node *a, wire_node *b, tn_link **of_a, tn_link **of_b);
/* What transports of plugins/common/place.h take for a place, to listen at and to connect to. */
void wire_places(void);

#endif

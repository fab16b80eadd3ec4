/*
 * Transports under test: several open ones in a process (sites), the ends of the links between them, and a
 * referee who knows every message and cookie that is under way.
 *
 * Each event is looked at here, so every test finds a cookie that is lost or comes twice, a message that is
 * cut, joined, changed, out of order or made up, and an event behind TN_EVENT_DOWN.
 */
#ifndef TN_CHECK_TRANSPORT_H
#define TN_CHECK_TRANSPORT_H

#include "internal.h"

#define CHK_SITES_MAX 4u
#define CHK_ENDS_MAX 256u
#define CHK_POSTS_MAX 65536u
#define CHK_HELD_MAX 8192u
#define CHK_URGENT 3u   /* the class of urgent messages */
#define CHK_CLASSES 4u  /* messages of one class keep their order: three priorities, and urgent ones */
#define CHK_QUIET 3000u /* ms without an event, after which none will come */

typedef struct chk_site chk_site;

/* A link as one side sees it. */
typedef struct chk_end {
    chk_site *site;
    tn_link *link;
    bool used, up, down; /* down: TN_EVENT_DOWN came; the link is gone */
    bool called;         /* by this side's connect */
    bool waits;          /* send said TN_PENDING */
    bool quits;          /* disconnect was called */
    uint32_t from;       /* the other end's number and 1, which its messages tell; 0: none came */
    tn_status why;
    uint32_t sent[CHK_CLASSES], received[CHK_CLASSES];
    uint32_t sent_all, received_all;
    uint32_t out; /* cookies that have not come back */
    uint32_t credits, cancelled;
    uint32_t puts; /* messages that came behind puts */
} chk_end;

/* A message that was sent. */
typedef struct chk_post {
    chk_end *end;
    uint64_t cookie, seed, bytes;
    uint8_t *data;       /* NULL: somebody else's */
    tn_region **regions; /* of its pieces; NULL: none are asked for */
    uint32_t piece_count;
    bool out;
} chk_post;

typedef struct chk_held {
    void *held;
    const uint8_t *data;
    uint64_t seed, bytes;
} chk_held;

typedef struct chk_net {
    chk_env *env;
    chk_plugin plugin;
    const tn_transport_ops *ops;
    chk_host_kind kind;
    chk_site *sites;
    uint32_t site_count;
    chk_end *ends;
    chk_post *posts;
    uint32_t post_count;
    uint64_t received; /* messages */
    bool forgives;     /* statuses of allocations that fail are no defects */
    uint8_t *plain;    /* PLAIN bytes that many messages are sent from */
} chk_net;

struct chk_site {
    chk_net *net;
    tn_transport *t;
    tn_transport_config config;
    tn_transport_info info;
    char address[TN_TRANSPORT_ADDRESS_MAX];
    uint32_t address_bytes;
    chk_buffer *events;
    bool keeps; /* what it receives is not released before chk_site_release */
    chk_held *held;
    uint32_t held_count;
    uint64_t held_bytes;
};

void chk_net_open(chk_net *net, chk_env *env, chk_host_kind kind);
/* Closes all sites; each allocation and descriptor of the plugin is back then. */
void chk_net_close(chk_net *net);

/* `limits`: receive_bytes, message_max, links_max, secret and flags; 0 or NULL: as usual. */
chk_site *chk_site_open(chk_net *net, const tn_transport_config *limits);
tn_status chk_site_try(chk_net *net, const tn_transport_config *limits, chk_site **out, tn_err *err);
void chk_site_listen(chk_site *site); /* on a free port of loopback */
void chk_site_close(chk_site *site, uint64_t timeout_ns);
void chk_site_closed(chk_site *site); /* somebody else has called close */
void chk_site_release(chk_site *site, uint32_t keep);
chk_end *chk_site_connect(chk_site *site, const chk_site *to);
chk_end *chk_site_connect_text(chk_site *site, const char *address);
/* The so-manieth end that came up at `site` by a peer's connect, or NULL. */
chk_end *chk_site_came(const chk_site *site, uint32_t index);

/* What to send. */
typedef struct chk_letter {
    uint64_t bytes;
    uint32_t flags, pieces; /* pieces: 0: one, or none for a message without payload */
    uint32_t order;         /* 0 to 2: by priority */
    bool plain;             /* out of memory that other messages share */
} chk_letter;

/* TN_OK, TN_PENDING or TN_E_PEER; others fail the case. */
tn_status chk_end_send(chk_end *end, const chk_letter *letter);
/* Sends it, and waits for room first where there is none. */
void chk_end_post(chk_end *end, const chk_letter *letter);
/* A random one, of up to `bytes` bytes. */
chk_letter chk_letter_random(chk_end *end, uint64_t bytes);
uint8_t chk_letter_byte(uint64_t seed, uint64_t at);
uint64_t chk_letter_seed(const uint8_t *header);             /* of a message that was received */
uint32_t chk_site_poll(chk_site *site, uint64_t timeout_ns); /* events that came */
/* Polls all sites once; events that came. */
uint32_t chk_net_turn(chk_net *net);
/* Polls until `over` holds. Where nothing comes any more `rule` is broken; the text says what was awaited. */
void chk_net_until(chk_net *net, bool (*over)(const void *arg), const void *arg, const char *rule,
                   const char *text);
/* Opens it with two sites, of which the second listens; limits as of chk_site_open. */
void chk_net_two(chk_net *net, chk_env *env, const tn_transport_config *here,
                 const tn_transport_config *there, chk_site **a, chk_site **b);
/* Two sites and a link between them, up at both ends. */
void chk_net_pair(chk_net *net, chk_end **here, chk_end **there);
/* All that was sent on these links has come, and every cookie is back. */
bool chk_net_settled(const void *net);

#endif
